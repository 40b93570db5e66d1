"""Candidate originals of a record: those two steps away in the graph, neighbours along orders, and some at given distances."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.freeform.chains import Search
from anonflow.kernels.freeform.slot_rows import SlotRows, rises
from anonflow.kernels.jit import jit
from anonflow.kernels.state import Index

_SLOTS = 4096  # size of the hash table of originals seen; several times as many as are ever entered
_MOST = 1024  # originals two steps away that are examined


def enter(table: np.ndarray, i: int, b: Index) -> bool:
    """Enter original b as seen by record i; return whether it is new."""
    # an entry names its record, so the table is not cleared for the next one; 0 is an empty place
    stamp = np.int64(i + 1) << 32
    # 2^16 over the golden ratio, for multiplicative hashing (Knuth)
    at = (b * 40503) & (_SLOTS - 1)
    while table[at] >> 32 == i + 1:
        if table[at] == stamp | b:
            return False
        at = (at + 1) & (_SLOTS - 1)
    table[at] = stamp | b
    return True


enter_jit = jit(enter, borrows=True)


def two_hops(
    rows: SlotRows,
    search: Search,
    orders: np.ndarray,
    ranks: np.ndarray,
    reach: int,
    shifts: np.ndarray,
    begin: int,
    start: int,
    stop: int,
) -> None:
    """Write ``search.near`` of the records start to stop - 1: the candidate originals that raise their costs least.

    The candidates are the previous ones, the matches of records that hold a record's matches, the originals `reach`
    before and behind it along each order, and those at some distances, all but its own matches.

    Parameters
    ----------
    rows : SlotRows
    search : Search
        `near` is written.
    orders, ranks : numpy.ndarray, shape (o, n), int64
        Permutations and their inverses.
    reach : int
    shifts : numpy.ndarray, shape (m,), int64
        Distances, 0 to n - 1.
    begin : int
        The holder of each match that comes first, 0 to k - 1: for large k not all are looked at.
    start, stop : int

    Notes
    -----
    O((stop - start) (k^3 + (1024 + o reach + m) (q + C))), k^3 being 1024 k at most.
    """
    k = rows.size[0]
    n = len(search.matches)
    room = search.near.shape[1]
    table = np.zeros(_SLOTS, np.int64)
    ids = np.empty(room + _MOST + (2 * reach + 1) * len(orders) + len(shifts), np.int64)
    cost = np.empty(len(ids))
    key = np.empty(room)
    for i in range(start, stop):
        count = 0
        for d in range(k):
            enter(table, i, np.int64(search.matches[i, d]))
        for e in range(room):
            b = np.int64(search.near[i, e])
            if b >= 0 and enter(table, i, b):
                ids[count] = b
                count += 1
        # one holder of each match, then another of each
        for x in range(min(k * k, _MOST)):
            d = x % k
            j = np.int64(search.holders[search.matches[i, d], (begin + d + x // k) % k]) // k
            if count + k > room + _MOST:
                break
            for f in range(k):
                b = np.int64(search.matches[j, f])
                if enter(table, i, b):
                    ids[count] = b
                    count += 1
        for o in range(len(orders)):
            at = ranks[o, i]
            for e in range(max(at - reach, 0), min(at + reach + 1, n)):
                if enter(table, i, orders[o, e]):
                    ids[count] = orders[o, e]
                    count += 1
        for e in range(len(shifts)):
            b = (i + shifts[e]) % n
            if enter(table, i, b):
                ids[count] = b
                count += 1
        rises(rows, i * k, ids, count, cost)
        filled = 0
        for e in range(count):
            if filled == room and cost[e] >= key[room - 1]:
                continue
            at = filled if filled < room else room - 1
            while at > 0 and key[at - 1] > cost[e]:
                key[at] = key[at - 1]
                search.near[i, at] = search.near[i, at - 1]
                at -= 1
            key[at] = cost[e]
            search.near[i, at] = ids[e]
            filled = min(filled + 1, room)
        for e in range(filled, room):
            search.near[i, e] = -1


two_hops_jit = jit(two_hops)
