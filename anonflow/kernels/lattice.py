"""Groups of rows that have equal cells when every quasi-identifier (QI) is published at a level: their sizes and costs."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.jit import jit

_ONE = np.uint64(1)
# 2^64 over the golden ratio, for multiplicative hashing (Knuth): its multiples spread over all words
_MIX = np.uint64(0x9E3779B97F4A7C15)


def same_cells(cells: np.ndarray, at: np.ndarray, codes: np.ndarray, t: int, u: int) -> bool:
    """Return whether row types t and u are published as the same cells."""
    same = True
    for a in range(len(at)):
        same &= cells[at[a] + codes[t, a]] == cells[at[a] + codes[u, a]]
    return same


same_cells_jit = jit(same_cells, borrows=True)


def count_groups(
    codes: np.ndarray,
    rows: np.ndarray,
    count: np.ndarray,
    cells: np.ndarray,
    words: np.ndarray,
    at: np.ndarray,
    first: np.ndarray,
    size: np.ndarray,
    label: np.ndarray,
) -> int:
    """Group row types that are published as the same cells.

    Parameters
    ----------
    codes : numpy.ndarray, shape (t, q), int64, C-contiguous
        Row types: their codes, not negative.
    rows : numpy.ndarray, shape (r,), int64
        The types to be grouped: one of each group of a finer node.
    count : numpy.ndarray, shape (r,), int64
        How many records each of them stands for.
    cells : numpy.ndarray, int64
        What each code is published as, at each level of each QI: equal numbers, equal cells.
    words : numpy.ndarray, uint64
        A word for each entry of `cells`, equal for equal cells.
    at : numpy.ndarray, shape (q,), int64
        Where the QI's cells at its level begin in `cells` and `words`.
    first, size : numpy.ndarray, shape (r,), int64
        Written: a row type of each group, and the group's records.
    label : numpy.ndarray, shape (r,), int64
        Written: the group of each row, numbered in the order in which they come.

    Returns
    -------
    int
        Number of groups, g; the first g entries of `first` and `size` are written.

    Notes
    -----
    The kernel uses a hash table; rows of equal hash are compared cell by cell, so a collision costs time but changes no
    result. O(r q) expected time, O(r) memory.
    """
    q, r = len(at), len(rows)
    room = np.int64(4)
    shift = np.uint64(62)
    # at most half full, so that few slots are probed
    while room < 2 * r:
        room *= 2
        shift -= _ONE
    slot = np.full(room, -1, np.int64)
    key = np.empty(r, np.uint64)
    groups = 0
    for i in range(r):
        t = rows[i]
        hashed = np.uint64(0)
        for a in range(q):
            hashed = hashed * _MIX + words[at[a] + codes[t, a]]
        # the upper bits of a product depend on all cells, its lower bits only on their lower bits: they are mixed
        hashed ^= hashed >> np.uint64(32)
        place = np.int64((hashed * _MIX) >> shift)
        while True:
            g = slot[place]
            if g < 0:
                slot[place] = groups
                key[groups], first[groups], size[groups] = hashed, t, count[i]
                label[i] = groups
                groups += 1
                break
            if key[g] == hashed and same_cells(cells, at, codes, first[g], t):
                size[g] += count[i]
                label[i] = g
                break
            place = (place + 1) & (room - 1)
    return groups


count_groups_jit = jit(count_groups)


def small_groups(
    codes: np.ndarray,
    first: np.ndarray,
    size: np.ndarray,
    groups: int,
    cost: np.ndarray,
    at: np.ndarray,
    k: int,
    star: float,
) -> tuple[int, float]:
    """Count the records in groups of fewer than k, and compute by how much their suppression raises the cost.

    Parameters
    ----------
    codes : numpy.ndarray, shape (t, q), int64
    first, size : numpy.ndarray, shape (r,), int64
        As :func:`count_groups` writes them.
    groups : int
    cost : numpy.ndarray, float64
        Cost of each cell, indexed as `cells` there.
    at : numpy.ndarray, shape (q,), int64
    k : int
    star : float
        Cost of a suppressed record.

    Returns
    -------
    small : int
        Records in groups of fewer than k.
    rise : float
        Sum over them of `star` less the cost of their cells.

    Notes
    -----
    O(g q) time.
    """
    small = 0
    rise = 0.0
    for g in range(groups):
        if size[g] < k:
            group_cost = 0.0
            for a in range(len(at)):
                group_cost += cost[at[a] + codes[first[g], a]]
            small += size[g]
            rise += size[g] * (star - group_cost)
    return small, rise


small_groups_jit = jit(small_groups, borrows=True)
