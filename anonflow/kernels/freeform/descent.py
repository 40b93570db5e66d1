"""Chains from every record of a block until there is none, then kicks: random exchanges that are undone unless the loss falls.

Both kinds of chains are applied here: those of :mod:`anonflow.kernels.freeform.chains` and, where matches are mutual,
those of links (:mod:`anonflow.kernels.freeform.symmetric_chains`).
"""

from __future__ import annotations

import numpy as np

from anonflow.kernels.freeform.chains import (
    ChainScratch,
    Search,
    chain,
    chain_scratch,
    hand_on,
    holds,
    note,
    take_back,
)
from anonflow.kernels.freeform.slot_rows import SlotRows, rises
from anonflow.kernels.freeform.symmetric_chains import slot_of, symmetric_chain
from anonflow.kernels.jit import jit

DRAWS = 6
"""Random numbers of a kick: four records, a slot and a candidate."""

_SHIFT = np.int64(32)


def descend(
    rows: SlotRows,
    search: Search,
    mutual: bool,
    work: ChainScratch,
    queue: np.ndarray,
    tail: int,
    visits: int,
    owed: float,
    journal: np.ndarray,
    facts: np.ndarray,
) -> float:
    """Visit the records in the queue, and those that chains change, until the queue is empty.

    Parameters
    ----------
    rows : SlotRows
    search : Search
    mutual : bool
        Whether chains are those of links.
    work : ChainScratch
    queue : numpy.ndarray, shape (at least the block's records,), int64
        ``queue[:tail]`` are the records that wait; a ring.
    tail : int
    visits : int
        At most.
    owed : float
        The descent ends where the change of the loss is exactly this: the kick of this price is undone then, and
        nothing else has changed.
    journal : numpy.ndarray, shape (J, 4), int64
        Entries are kept, and the descent ends when there is no more room; none are kept if J is 0.
    facts : numpy.ndarray, shape (5,), int64
        Added to: chains, records in them. ``facts[4]`` is the number of entries in the journal.

    Returns
    -------
    float
        The change of the loss, 0 or negative.
    """
    k = rows.size[0]
    size = len(queue)
    head = 0
    change = 0.0
    while head < tail and head < visits:
        i = queue[head % size]
        head += 1
        search.waiting[i] = False
        s = np.int64(1)
        while s < k:
            length = 0
            if mutual:
                length = symmetric_chain(rows, search, i, s, work)
            elif rows.drop[i * k + s] > 0.0:
                length = chain(rows, search, i, s, work)
            if length == 0:
                s += 1
                continue
            if len(journal) > 0:
                if facts[4] + length > len(journal):
                    visits = head
                    break
                facts[4] = note(search, work, length, journal, facts[4])
            facts[0] += 1
            facts[1] += length
            # the first slot has the cost of the whole row
            for e in range(length):
                change -= rows.drop[work.record[e] * k]
            hand_on(rows, search, work, length, mutual)
            for e in range(length):
                j = work.record[e]
                change += rows.drop[j * k]
                if not search.waiting[j]:
                    search.waiting[j] = True
                    queue[tail % size] = j
                    tail += 1
            # the kick is taken back exactly: these chains lead to where it began. Sums are exact, so they can be compared
            if change + owed == 0.0:
                visits = head
                break
    # a descent that ended before its queue must not keep these records out of the next one's
    while head < tail:
        search.waiting[queue[head % size]] = False
        head += 1
    return change


descend_jit = jit(descend, borrows=True)


def kick(
    rows: SlotRows, search: Search, mutual: bool, members: np.ndarray, lane: np.ndarray, work: ChainScratch
) -> tuple[int, float]:
    """Draw an exchange of two matches, or of the ends of two links, in a block.

    The costliest of four drawn records takes a candidate, from the record of its block that gains most by giving it away: where much
    is lost, there is much to gain.

    Parameters
    ----------
    rows : SlotRows
    search : Search
    mutual : bool
    members : numpy.ndarray, shape (m,), int64
        The block's records.
    lane : numpy.ndarray, shape (``DRAWS``,), uint32
        Which records, slot and candidate.
    work : ChainScratch
        ``record, slot, gained`` are the exchange, for :func:`anonflow.kernels.freeform.chains.hand_on`.

    Returns
    -------
    length : int
        Records that change: 2, or 4 where matches are mutual; 0 where what was drawn cannot be exchanged.
    price : float
        By how much the loss rises. O(k + q).
    """
    k = rows.size[0]
    # 32 random bits times the number of choices, the upper half: uniform but for 1 in 2^32 / choices
    i = members[(np.int64(lane[0]) * len(members)) >> _SHIFT]
    for e in range(1, DRAWS - 2):
        j = members[(np.int64(lane[e]) * len(members)) >> _SHIFT]
        # the dearest of a few records: where the loss is, an exchange gains most
        if rows.drop[j * k] > rows.drop[i * k]:
            i = j
    s = 1 + ((np.int64(lane[DRAWS - 2]) * (k - 1)) >> _SHIFT)
    b = np.int64(search.near[i, (np.int64(lane[DRAWS - 1]) * search.near.shape[1]) >> _SHIFT])
    if b < 0 or holds(search.matches, i, b):
        return 0, 0.0
    block = search.block[i]
    if mutual and search.block[b] != block:
        return 0, 0.0
    d = np.int64(0)
    most = -np.inf
    for e in range(1, k):
        place = b * k + e if mutual else np.int64(search.holders[b, e])
        j = np.int64(search.matches[b, e]) if mutual else place // k
        # what a record of another block gains is another thread's, and changes meanwhile
        if search.block[j] == block and rows.drop[place] > most:
            most = rows.drop[place]
            d = np.int64(e)
    if d == 0:
        return 0, 0.0
    a = np.int64(search.matches[i, s])
    length = 2
    if mutual:
        # i releases a, and b releases its neighbour j: i and b become neighbours, a and j as well
        j = np.int64(search.matches[b, d])
        if search.block[a] != block:
            return 0, 0.0
        if j == a or holds(search.matches, j, a):
            return 0, 0.0
        work.record[0] = a
        work.slot[0] = slot_of(search.matches, a, i)
        work.gained[0] = j
        work.record[1] = i
        work.slot[1] = s
        work.gained[1] = b
        work.record[2] = b
        work.slot[2] = d
        work.gained[2] = i
        work.record[3] = j
        work.slot[3] = slot_of(search.matches, j, b)
        work.gained[3] = a
        length = 4
    else:
        place = np.int64(search.holders[b, d])
        j = place // k
        if j == i or holds(search.matches, j, a):
            return 0, 0.0
        work.record[0] = i
        work.slot[0] = s
        work.gained[0] = b
        work.record[1] = j
        work.slot[1] = place % k
        work.gained[1] = a
    price = 0.0
    for e in range(length):
        place = work.record[e] * k + work.slot[e]
        work.ids[0] = work.gained[e]
        rises(rows, place, work.ids, 1, work.up)
        price += work.up[0] - rows.drop[place]
    return length, price


kick_jit = jit(kick, borrows=True)


def block_chains(
    rows: SlotRows,
    search: Search,
    mutual: bool,
    members: np.ndarray,
    lanes: np.ndarray,
    highest_price: float,
    sizes: np.ndarray,
    facts: np.ndarray,
) -> float:
    """Apply chains among the records of a block until there is none, then kicks.

    A kick exchanges two matches or links at random, up to a price; chains follow from the records that changed. All of
    it is undone if the loss has risen.

    Parameters
    ----------
    rows : SlotRows
    search : Search
    mutual : bool
        Whether matches are mutual and have to stay so: chains and kicks are those of links then.
    members : numpy.ndarray, shape (m,), int64
        The block's records, in the order in which they are visited.
    lanes : numpy.ndarray, shape (kicks, ``DRAWS``), uint32
        Random numbers.
    highest_price : float
        The highest price of a kick.
    sizes : numpy.ndarray, shape (5,), int64
        Records in a chain at most; steps looked at from each; visits in all; visits after a kick; entries of its
        journal.
    facts : numpy.ndarray, shape (5,), int64
        Added to: chains, records in them, kicks made, kicks that lowered the loss.

    Returns
    -------
    float
        The change of the loss, 0 or negative.

    Notes
    -----
    O(visits k depth (C (q + k) + tests q)) time; O(m + C + depth tests) memory.
    """
    count = len(members)
    work = chain_scratch(rows.size[0], search.near.shape[1], sizes[0], sizes[1])
    queue = np.empty(count + 4, np.int64)
    for e in range(count):
        queue[e] = members[e]
        search.waiting[members[e]] = True
    journal = np.empty((0, 4), np.int64)
    change = descend(rows, search, mutual, work, queue, count, sizes[2], np.inf, journal, facts)
    journal = np.empty((sizes[4], 4), np.int64)
    for e in range(len(lanes)):
        length, owed = kick(rows, search, mutual, members, lanes[e], work)
        if length == 0 or owed > highest_price:
            continue
        facts[2] += 1
        facts[4] = note(search, work, length, journal, 0)
        hand_on(rows, search, work, length, mutual)
        for f in range(length):
            queue[f] = work.record[f]
            search.waiting[queue[f]] = True
        owed += descend(rows, search, mutual, work, queue, length, sizes[3], owed, journal, facts)
        if owed > 0.0:
            take_back(rows, search, work, journal, facts[4])
        else:
            change += owed
            facts[3] += owed < 0.0
    return change


block_chains_jit = jit(block_chains)
