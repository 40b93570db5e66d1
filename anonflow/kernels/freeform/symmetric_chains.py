"""Ejection chains on a symmetric graph: links are exchanged, and both ends of each stay mutual.

A link {i, b} is cut. Record i links up with c, which cuts its link {c, x}; x links up with another record, and so on,
until the last one links up with b. Every record of the chain gives one neighbour for another, so the graph stays
k-regular and symmetric, and the loss changes by the sum of the changes of their costs (as in the search of Lin and
Kernighan, Oper. Res. 21, 1973, for tours).
"""

from __future__ import annotations

import numpy as np

from anonflow.kernels.freeform.chains import ChainScratch, Search, candidates, holds, stands
from anonflow.kernels.freeform.slot_rows import SlotRows, rises
from anonflow.kernels.jit import jit


def slot_of(matches: np.ndarray, j: int | np.int64, i: int | np.int64) -> int:
    """Return the slot in which record j has its neighbour i; O(k)."""
    slot = 0
    for s in range(1, matches.shape[1]):
        if matches[j, s] == i:
            slot = s
    return slot


slot_of_jit = jit(slot_of, borrows=True)


def rise(rows: SlotRows, place: int | np.int64, i: int | np.int64, work: ChainScratch) -> float:
    """Return by how much the cost of a place's row rises if it covers original i as well."""
    work.ids[0] = i
    rises(rows, place, work.ids, 1, work.back)
    return work.back[0]


rise_jit = jit(rise, borrows=True)


def symmetric_chain(
    rows: SlotRows, search: Search, i: int | np.int64, s: int | np.int64, work: ChainScratch
) -> int:
    """Look for a chain that begins by cutting record i's link in slot s and lowers the loss.

    Parameters
    ----------
    rows : SlotRows
    search : Search
        Symmetric: i occurs in j's row of the matches if and only if j occurs in i's.
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
    From the open end the search follows the pair of a new link and a cut link of largest gain. If the chain can be
    closed at a gain, it is closed with the largest one. O(depth C k (q + k)).
    """
    k = rows.size[0]
    matches = search.matches
    block = search.block[i]
    last = np.int64(matches[i, s])  # the end that the chain returns to
    if search.block[last] != block:
        return 0
    back = slot_of(matches, last, i)
    work.record[0] = last
    work.slot[0] = back
    work.record[1] = i
    work.slot[1] = s
    gain = rows.drop[last * k + back] + rows.drop[i * k + s]
    length = 2
    while length + 2 <= len(work.record):
        j = work.record[length - 1]
        count = candidates(search, j, work)
        rises(rows, j * k + work.slot[length - 1], work.ids, count, work.up)
        best = 0.0
        closed = False
        best_c = np.int64(-1)
        best_d = np.int64(0)
        for c in range(count):
            other = np.int64(search.near[j, c])
            # the new links must cost less than the links that the chain cuts
            if gain - work.up[c] <= 0.0 or search.block[other] != block or holds(matches, j, other):
                continue
            if stands(work, length, other):
                continue
            for d in range(1, k):
                x = np.int64(matches[other, d])
                if search.block[x] != block or stands(work, length, x):
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


symmetric_chain_jit = jit(symmetric_chain, borrows=True)
