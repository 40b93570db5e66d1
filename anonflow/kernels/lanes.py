"""Random choices from 32-bit lanes that the caller has drawn from a cryptographic source.

No kernel draws random numbers of its own. A kernel that has too few lanes reports it, and the caller calls it again
with *more of the same stream*: new lanes instead would favour the results that need few. ``cursor[0]`` counts the lanes
used.
"""

from __future__ import annotations

import numpy as np

from anonflow.kernels.jit import jit

_LANE = 1 << 32
_GROUP = 1 << 31  # a lane times the product of a group's bounds stays within int64


def below(bound: int, lanes: np.ndarray, cursor: np.ndarray) -> np.int64:
    """Return a uniform integer in [0, bound), by multiplication and rejection (Lemire, TOMACS 29, 2019).

    Parameters
    ----------
    bound : int
        1 to 2**31.
    lanes : numpy.ndarray, shape (l,), uint32
    cursor : numpy.ndarray, shape (1,), int64

    Returns
    -------
    numpy.int64
        -1 if the lanes did not suffice.
    """
    while cursor[0] < len(lanes):
        product = np.int64(lanes[cursor[0]]) * bound
        cursor[0] += 1
        low = product & (_LANE - 1)
        if low >= bound or low >= (_LANE - bound) % bound:
            return product >> 32
    return np.int64(-1)


below_jit = jit(below, borrows=True)


def pair_up(items: np.ndarray, start: int, d: int, lanes: np.ndarray, cursor: np.ndarray) -> bool:
    """Permute ``items[start : start + d]`` so that the neighbours 2t, 2t + 1 are a uniform pairing.

    One lane serves as many choices as the product of their bounds allows.

    Parameters
    ----------
    items : numpy.ndarray, int32
    start, d : int
        d is even.
    lanes : numpy.ndarray, shape (l,), uint32
    cursor : numpy.ndarray, shape (1,), int64

    Returns
    -------
    bool
        False if the lanes did not suffice.
    """
    size = d
    while size > 2:
        product = np.int64(1)
        rest = size
        while rest > 2 and product * (rest - 1) <= _GROUP:
            product *= rest - 1
            rest -= 2
        while True:
            if cursor[0] >= len(lanes):
                return False
            lane = np.int64(lanes[cursor[0]])
            cursor[0] += 1
            low = (lane * product) & (_LANE - 1)
            if low >= product or low >= (_LANE - product) % product:
                break
        while size > rest:
            lane *= size - 1
            at = start + (lane >> 32)
            lane &= _LANE - 1
            swapped = items[at]
            items[at] = items[start + size - 2]
            items[start + size - 2] = swapped
            size -= 2
    return True


pair_up_jit = jit(pair_up, borrows=True)


def permute_batch(
    offsets: np.ndarray,
    members: np.ndarray,
    batch: np.ndarray,
    lanes: np.ndarray,
    lane_offsets: np.ndarray,
    assignment: np.ndarray,
) -> np.ndarray:
    """Permute the members of some classes uniformly (Fisher and Yates), independently in each class.

    Parameters
    ----------
    offsets : numpy.ndarray, shape (c + 1,), int64
    members : numpy.ndarray, shape (m,), int64
        Class t has ``members[offsets[t] : offsets[t + 1]]``.
    batch : numpy.ndarray, shape (b,), int64
        Which classes.
    lanes : numpy.ndarray, shape (l,), uint32
    lane_offsets : numpy.ndarray, shape (b + 1,), int64
        Class ``batch[t]`` takes ``lanes[lane_offsets[t] : lane_offsets[t + 1]]``.
    assignment : numpy.ndarray, shape (n,), int64
        ``assignment[i]`` becomes a member of i's class, all different.

    Returns
    -------
    numpy.ndarray, shape (b,), bool
        Where the lanes did not suffice; these are as before.

    Notes
    -----
    O(m) time.
    """
    short = np.zeros(len(batch), np.bool_)
    cursor = np.zeros(1, np.int64)
    for t in range(len(batch)):
        start = offsets[batch[t]]
        size = offsets[batch[t] + 1] - start
        order = members[start : start + size].copy()
        stream = lanes[lane_offsets[t] : lane_offsets[t + 1]]
        cursor[0] = 0
        for s in range(size - 1, 0, -1):
            r = below(s + 1, stream, cursor)
            if r < 0:
                short[t] = True
                break
            swapped = order[r]
            order[r] = order[s]
            order[s] = swapped
        if not short[t]:
            for s in range(size):
                assignment[members[start + s]] = order[s]
    return short


permute_batch_jit = jit(permute_batch)
