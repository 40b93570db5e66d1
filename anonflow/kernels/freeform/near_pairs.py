"""Pairs of records that agree on some quasi-identifiers, searched in a sorted order instead of among all pairs."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.jit import jit


def enter_pairs(
    codes: np.ndarray,
    order: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    hidden: np.ndarray,
    start: int,
    stop: int,
    near: np.ndarray,
    filled: np.ndarray,
) -> None:
    """Enter the partners of the records ``order[start:stop]`` that differ in all of some QIs and agree on the others.

    Partners are taken along the order, from the record itself onwards and then from the beginning of its run.

    Parameters
    ----------
    codes : numpy.ndarray, shape (n, q), int64
    order : numpy.ndarray, shape (n,), int64
        Records that agree on the QIs that are not hidden lie next to each other.
    first, last : numpy.ndarray, shape (n,), int64
        Where, in `order`, the run of records that agree begins, and where it ends, for each place.
    hidden : numpy.ndarray, shape (h,), int64
        The other QIs.
    start, stop : int
    near : numpy.ndarray, shape (n, C), int32
        Partners of each record; written from ``filled`` on.
    filled : numpy.ndarray, shape (n,), int64
        How many there are so far, C at most; changed.

    Notes
    -----
    Records of a run that differ from a record in fewer QIs are its partners already if smaller sets were hidden before
    and it has fewer than C partners: each record examines at most 2C others. O((stop - start) C h).
    """
    room = near.shape[1]
    for x in range(start, stop):
        i = order[x]
        if filled[i] == room:
            continue
        size = last[x] - first[x]
        for step in range(size):
            j = order[first[x] + (x - first[x] + step) % size]
            differs = True
            for h in range(len(hidden)):
                differs &= codes[i, hidden[h]] != codes[j, hidden[h]]
            if differs:
                near[i, filled[i]] = j
                filled[i] += 1
                if filled[i] == room:
                    break


enter_pairs_jit = jit(enter_pairs, borrows=True)
