"""Ejection chains on a symmetric graph: links are exchanged, and both ends of each stay mutual.

A link {i, b} is cut. Record i links up with c, which cuts its link {c, x}; x links up with another record, and so on,
until the last one links up with b. Every record of the chain gives one neighbour for another, so the graph stays
k-regular and symmetric, and the loss changes by the sum of what the records cost more or less (as in the search of Lin
and Kernighan, Oper. Res. 21, 1973, for tours).
"""

from __future__ import annotations

import numpy as np

from anonflow.kernels.chains import ChainScratch, chain_scratch, holds
from anonflow.kernels.jit import jit
from anonflow.kernels.slot_rows import SlotRows, renew_rows, rises

__all__ = [
    "rise",
    "rise_jit",
    "slot_of",
    "slot_of_jit",
    "stands",
    "stands_jit",
    "symmetric_chain",
    "symmetric_chain_jit",
    "symmetric_chains",
    "symmetric_chains_jit",
]


def slot_of(matches: np.ndarray, j: int | np.int64, i: int | np.int64) -> int:
    """Return the slot in which record j has its neighbour i; O(k)."""
    slot = 0
    for s in range(1, matches.shape[1]):
        if matches[j, s] == i:
            slot = s
    return slot


slot_of_jit = jit(slot_of)


def stands(work: ChainScratch, length: int, i: int | np.int64) -> bool:
    """Return whether record i stands among the first ones of a chain."""
    present = False
    for e in range(length):
        present |= work.record[e] == i
    return present


stands_jit = jit(stands)


def rise(rows: SlotRows, place: int | np.int64, i: int | np.int64, work: ChainScratch) -> float:
    """Return what the row of a place costs more if it covers original i as well."""
    work.ids[0] = i
    rises(rows, place, work.ids, 1, work.back)
    return work.back[0]


rise_jit = jit(rise)


def symmetric_chain(
    rows: SlotRows,
    matches: np.ndarray,
    near: np.ndarray,
    i: int | np.int64,
    s: int | np.int64,
    work: ChainScratch,
) -> int:
    """Look for a chain that begins by cutting record i's link in slot s and lowers the loss.

    Parameters
    ----------
    rows : SlotRows
    matches : numpy.ndarray, shape (n, k), int32
        Symmetric: ``matches[j, 0] == j``, and i stands in j's row if and only if j stands in i's.
    near : numpy.ndarray, shape (n, C), int32
        Records that a record may link up with.
    i, s : int
        0 < s < k.
    work : ChainScratch
        ``record[e]`` takes ``gained[e]`` in ``slot[e]``: the chain that was found. Room for an even number of records, 4 or
        more.

    Returns
    -------
    int
        How many records change; 0 if none was found.

    Notes
    -----
    From the open end the pair of a link that is made and one that is cut, of largest gain, is followed, unless the chain can
    be closed with one of them at a gain; then with the largest. O(depth C k (q + k)).
    """
    k = rows.size[0]
    count = near.shape[1]
    last = np.int64(matches[i, s])  # the end that the chain returns to
    back = slot_of(matches, last, i)
    work.record[0] = last
    work.slot[0] = back
    work.record[1] = i
    work.slot[1] = s
    gain = rows.drop[last * k + back] + rows.drop[i * k + s]
    length = 2
    while length + 2 <= len(work.record):
        j = work.record[length - 1]
        for c in range(count):
            work.ids[c] = near[j, c]
        rises(rows, j * k + work.slot[length - 1], work.ids, count, work.up)
        best = 0.0
        closed = False
        best_c = np.int64(-1)
        best_d = np.int64(0)
        for c in range(count):
            other = np.int64(near[j, c])
            # what it makes must cost less than what it cuts
            if gain - work.up[c] <= 0.0 or holds(matches, j, other):
                continue
            if stands(work, length, other):
                continue
            for d in range(1, k):
                x = np.int64(matches[other, d])
                if stands(work, length, x):
                    continue
                t = slot_of(matches, x, other)
                left = gain - work.up[c] - rise(rows, other * k + d, j, work)
                if left <= 0.0:
                    continue
                after = left + rows.drop[other * k + d] + rows.drop[x * k + t]
                if not holds(matches, x, last):
                    total = after - rise(rows, x * k + t, last, work) - rise(rows, last * k + back, x, work)
                    if total > 0.0 and (not closed or total > best):
                        closed = True
                        best = total
                        best_c = other
                        best_d = np.int64(d)
                if not closed and after > best:
                    best = after
                    best_c = other
                    best_d = np.int64(d)
        if best_c < 0:
            return 0
        x = np.int64(matches[best_c, best_d])
        work.gained[length - 1] = best_c
        work.record[length] = best_c
        work.slot[length] = best_d
        work.gained[length] = j
        work.record[length + 1] = x
        work.slot[length + 1] = slot_of(matches, x, best_c)
        length += 2
        if closed:
            work.gained[length - 1] = last
            work.gained[0] = x
            return length
        gain = best
    return 0


symmetric_chain_jit = jit(symmetric_chain)


def symmetric_chains(
    rows: SlotRows, matches: np.ndarray, near: np.ndarray, order: np.ndarray, depth: int, most: int
) -> int:
    """Apply chains from every link until none is found; `matches` and `rows` change in place.

    Parameters
    ----------
    rows : SlotRows
    matches : numpy.ndarray, shape (n, k), int32
        Symmetric, before and after.
    near : numpy.ndarray, shape (n, C), int32
    order : numpy.ndarray, shape (n,), int64
        The records as they are visited; those that a chain changes are visited again.
    depth : int
        Records in a chain at most, even, 4 or more.
    most : int
        Visits of records at most.

    Returns
    -------
    int
        Chains that lowered the loss.

    Notes
    -----
    O(visits k depth C k (q + k)) time, O(n + C) memory.
    """
    n, k = matches.shape
    work = chain_scratch(k, near.shape[1], depth, 1)
    waiting = np.ones(n, np.bool_)
    queue = np.empty(n + 1, np.int64)
    for e in range(n):
        queue[e] = order[e]
    head = 0
    tail = n
    chains = 0
    while head < tail and head < most:
        i = queue[head % (n + 1)]
        head += 1
        waiting[i] = False
        s = np.int64(1)
        while s < k:
            length = symmetric_chain(rows, matches, near, i, s, work)
            if length == 0:
                s += 1
                continue
            chains += 1
            for e in range(length):
                matches[work.record[e], work.slot[e]] = work.gained[e]
            for e in range(length):
                j = work.record[e]
                renew_rows(rows, matches, j, work.words)
                if not waiting[j]:
                    waiting[j] = True
                    queue[tail % (n + 1)] = j
                    tail += 1
    return chains


symmetric_chains_jit = jit(symmetric_chains)
