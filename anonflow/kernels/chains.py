"""Ejection chains: a match is handed on from record to record until the loss has fallen.

A local search on a k-regular graph in the manner of Lin and Kernighan (Oper. Res. 21, 1973; Glover, Discrete Appl.
Math. 65, 1996). Record i drops a match a and takes another original b from a record j that holds it; j takes one
from a third record, and so on, until the last one takes a. Every original keeps its k places, so the graph stays
k-regular; the loss changes by the sum of what the records of the chain cost more or less, each standing in it once.

Chains are confined to blocks of records: what is written belongs to records of the block and to places that they
hold. So blocks can be worked on at once, and the result is the same in any order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anonflow.kernels.jit import jit
from anonflow.kernels.slot_rows import SlotRows, renew_rows, rises, rises_of

__all__ = [
    "ChainScratch",
    "Search",
    "block_chains",
    "block_chains_jit",
    "chain",
    "chain_jit",
    "chain_scratch",
    "chain_scratch_jit",
    "descend",
    "descend_jit",
    "hand_on",
    "hand_on_jit",
    "holds",
    "holds_jit",
    "note",
    "note_jit",
    "take_back",
    "take_back_jit",
]

_SHIFT = np.int64(32)


class Search(NamedTuple):
    """A k-regular graph of n records, from both sides, and where chains may go.

    Attributes
    ----------
    matches : numpy.ndarray, shape (n, k), int32
        ``matches[j, 0] == j``.
    holders : numpy.ndarray, shape (n, k), int32
        The k places that hold each original: place ``j k + s`` is record j's slot s. ``holders[i, 0] == i k``.
    turn : numpy.ndarray, shape (n, k), int32
        ``holders[matches[j, s], turn[j, s]] == j k + s``: both ends of an edge change in O(1).
    near : numpy.ndarray, shape (n, C), int32
        Originals that a record may take, those that raise its cost least first; -1 from where there are no more.
    block : numpy.ndarray, shape (n,), int32
        A chain stays among records of one number.
    waiting : numpy.ndarray, shape (n,), bool
        Records in the queue of their block; none between calls.
    """

    matches: np.ndarray
    holders: np.ndarray
    turn: np.ndarray
    near: np.ndarray
    block: np.ndarray
    waiting: np.ndarray


class ChainScratch(NamedTuple):
    """What a search writes on, made once for a block.

    Attributes
    ----------
    record, slot, gained : numpy.ndarray, shape (depth,), int64
        The chain: ``record[e]`` takes ``gained[e]`` in ``slot[e]``.
    ids, up : numpy.ndarray, shape (C,), int64 and float64
        Candidates, and by how much they raise a cost.
    place, taken, after : numpy.ndarray, shape (tests,), int64, int64 and float64
        Steps from the last record of the chain, best first: the place that gives an original up, the original, and the
        partial gain after it.
    back : numpy.ndarray, shape (tests,), float64
        By how much the first record's match raises the cost of those who would take it.
    words : numpy.ndarray, shape (k,), uint64
    """

    record: np.ndarray
    slot: np.ndarray
    gained: np.ndarray
    ids: np.ndarray
    up: np.ndarray
    place: np.ndarray
    taken: np.ndarray
    after: np.ndarray
    back: np.ndarray
    words: np.ndarray


def chain_scratch(k: int, candidates: int, depth: int, tests: int) -> ChainScratch:
    """Return room for a search."""
    return ChainScratch(
        np.empty(depth, np.int64),
        np.empty(depth, np.int64),
        np.empty(depth, np.int64),
        np.empty(candidates, np.int64),
        np.empty(candidates),
        np.empty(tests, np.int64),
        np.empty(tests, np.int64),
        np.empty(tests),
        np.empty(tests),
        np.empty(k, np.uint64),
    )


chain_scratch_jit = jit(chain_scratch)


def holds(matches: np.ndarray, j: int | np.int64, i: int | np.int64) -> bool:
    """Return whether record j matches original i."""
    held = False
    for d in range(matches.shape[1]):
        held |= matches[j, d] == i
    return held


holds_jit = jit(holds)


def chain(rows: SlotRows, search: Search, i: int, s: int | np.int64, work: ChainScratch) -> int:
    """Look for a chain that begins with record i's match in slot s and lowers the loss.

    Parameters
    ----------
    rows : SlotRows
    search : Search
    i, s : int
        0 < s < k.
    work : ChainScratch
        ``record, slot, gained`` are the chain that was found.

    Returns
    -------
    int
        Its length, 2 or more; 0 if none was found.

    Notes
    -----
    From the last record of the chain the steps of largest partial gain are looked at, as many as `work` has room
    for, all positive. If the first record's match can be taken by one of them at a gain, the chain closes with the
    largest; else the first step is followed. Gains are true ones: no record stands in a chain twice, and no edge is
    doubled.

    O(depth (C (q + k) + tests q)).
    """
    k = rows.size[0]
    depth = len(work.record)
    tests = len(work.after)
    matches = search.matches
    first = np.int64(matches[i, s])
    mine = search.block[i]
    work.record[0] = i
    work.slot[0] = s
    gain = rows.drop[i * k + s]
    length = 1
    while length < depth and gain > 0.0:
        j = work.record[length - 1]
        m = 0
        while m < search.near.shape[1] and search.near[j, m] >= 0:
            work.ids[m] = search.near[j, m]
            m += 1
        rises(rows, j * k + work.slot[length - 1], work.ids, m, work.up)
        count = 0
        for c in range(m):
            left = gain - work.up[c]
            b = work.ids[c]
            if left <= 0.0 or b == first or holds(matches, j, b):
                continue
            for d in range(1, k):
                place = np.int64(search.holders[b, d])
                after = left + rows.drop[place]
                if after <= 0.0 or (count == tests and after <= work.after[tests - 1]):
                    continue
                other = place // k
                if search.block[other] != mine or holds(matches, other, first):
                    continue
                passed = False
                for e in range(length):
                    passed |= work.record[e] == other
                if passed:
                    continue
                at = count if count < tests else tests - 1
                while at > 0 and work.after[at - 1] < after:
                    work.after[at] = work.after[at - 1]
                    work.place[at] = work.place[at - 1]
                    work.taken[at] = work.taken[at - 1]
                    at -= 1
                work.after[at] = after
                work.place[at] = place
                work.taken[at] = b
                count = min(count + 1, tests)
        if count == 0:
            return 0
        rises_of(rows, first, work.place, count, work.back)
        closing = 0.0
        at = 0
        for e in range(count):
            if work.after[e] - work.back[e] > closing:
                closing = work.after[e] - work.back[e]
                at = e
        work.gained[length - 1] = work.taken[at]
        work.record[length] = work.place[at] // k
        work.slot[length] = work.place[at] % k
        length += 1
        if closing > 0.0:
            work.gained[length - 1] = first
            return length
        gain = work.after[0]
    return 0


chain_jit = jit(chain)


def hand_on(rows: SlotRows, search: Search, work: ChainScratch, length: int) -> None:
    """Reverse a chain: ``record[e]`` takes ``gained[e]`` in ``slot[e]``, all at once; O(length k q)."""
    k = rows.size[0]
    last = search.turn[work.record[0], work.slot[0]]
    for e in range(length):
        j = work.record[e]
        s = work.slot[e]
        d = last
        if e + 1 < length:
            d = search.turn[work.record[e + 1], work.slot[e + 1]]
        search.matches[j, s] = work.gained[e]
        search.holders[work.gained[e], d] = j * k + s
        search.turn[j, s] = d
    for e in range(length):
        renew_rows(rows, search.matches, work.record[e], work.words)


hand_on_jit = jit(hand_on)


def note(search: Search, work: ChainScratch, length: int, journal: np.ndarray, entries: int) -> int:
    """Enter in a journal what a chain is about to change; the number of entries now."""
    for e in range(length):
        j = work.record[e]
        s = work.slot[e]
        journal[entries + e, 0] = j
        journal[entries + e, 1] = s
        journal[entries + e, 2] = search.matches[j, s]
        journal[entries + e, 3] = search.turn[j, s]
    return entries + length


note_jit = jit(note)


def take_back(rows: SlotRows, search: Search, work: ChainScratch, journal: np.ndarray, entries: int) -> None:
    """Undo what a journal says, the last entry first: every bit is as before."""
    k = rows.size[0]
    for e in range(entries - 1, -1, -1):
        j = journal[e, 0]
        s = journal[e, 1]
        search.matches[j, s] = journal[e, 2]
        search.turn[j, s] = journal[e, 3]
        search.holders[journal[e, 2], journal[e, 3]] = j * k + s
        search.waiting[j] = True
    for e in range(entries):
        j = journal[e, 0]
        if search.waiting[j]:
            search.waiting[j] = False
            renew_rows(rows, search.matches, j, work.words)


take_back_jit = jit(take_back)


def descend(
    rows: SlotRows,
    search: Search,
    work: ChainScratch,
    queue: np.ndarray,
    tail: int,
    visits: int,
    owed: float,
    journal: np.ndarray,
    facts: np.ndarray,
) -> float:
    """Visit records that wait, and those that chains change, until none is left.

    Parameters
    ----------
    rows : SlotRows
    search : Search
    work : ChainScratch
    queue : numpy.ndarray, shape (at least the block's records,), int64
        ``queue[:tail]`` are the records that wait; a ring.
    tail : int
    visits : int
        At most.
    owed : float
        It ends where the change makes up for exactly that: with a kick of this price undone nothing else is new.
    journal : numpy.ndarray, shape (J, 4), int64
        Entries are kept, and it ends where there is no more room; none are kept where J is 0.
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
            if rows.drop[i * k + s] > 0.0:
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
            for e in range(length):
                change -= rows.drop[work.record[e] * k]
            hand_on(rows, search, work, length)
            for e in range(length):
                j = work.record[e]
                change += rows.drop[j * k]
                if not search.waiting[j]:
                    search.waiting[j] = True
                    queue[tail % size] = j
                    tail += 1
            if change + owed == 0.0:
                visits = head
                break
    while head < tail:
        search.waiting[queue[head % size]] = False
        head += 1
    return change


descend_jit = jit(descend)


def block_chains(
    rows: SlotRows,
    search: Search,
    members: np.ndarray,
    lanes: np.ndarray,
    dear: float,
    sizes: np.ndarray,
    facts: np.ndarray,
) -> float:
    """Apply chains among the records of a block until none is found, then kicks.

    A kick exchanges two matches at random, not too dearly; chains follow from the two records. All of it is undone
    unless the loss has not risen.

    Parameters
    ----------
    rows : SlotRows
    search : Search
    members : numpy.ndarray, shape (m,), int64
        The block's records, in the order in which they are visited.
    lanes : numpy.ndarray, shape (kicks, 4), uint32
        Random numbers: which record, slot, candidate and holder of it.
    dear : float
        What a kick may cost.
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
    k = rows.size[0]
    count = len(members)
    work = chain_scratch(k, search.near.shape[1], sizes[0], sizes[1])
    queue = np.empty(count + 1, np.int64)
    for e in range(count):
        queue[e] = members[e]
        search.waiting[members[e]] = True
    journal = np.empty((0, 4), np.int64)
    change = descend(rows, search, work, queue, count, sizes[2], np.inf, journal, facts)
    journal = np.empty((sizes[4], 4), np.int64)
    for e in range(len(lanes)):
        i = members[(np.int64(lanes[e, 0]) * count) >> _SHIFT]
        s = 1 + ((np.int64(lanes[e, 1]) * (k - 1)) >> _SHIFT)
        b = np.int64(search.near[i, (np.int64(lanes[e, 2]) * search.near.shape[1]) >> _SHIFT])
        if b < 0 or holds(search.matches, i, b):
            continue
        place = np.int64(search.holders[b, 1 + ((np.int64(lanes[e, 3]) * (k - 1)) >> _SHIFT)])
        j = place // k
        a = np.int64(search.matches[i, s])
        if search.block[j] != search.block[i] or j == i or holds(search.matches, j, a):
            continue
        work.ids[0] = b
        rises(rows, i * k + s, work.ids, 1, work.up)
        owed = work.up[0] - rows.drop[i * k + s]
        work.ids[0] = a
        rises(rows, place, work.ids, 1, work.up)
        owed += work.up[0] - rows.drop[place]
        if owed > dear:
            continue
        facts[2] += 1
        work.record[0] = i
        work.slot[0] = s
        work.gained[0] = b
        work.record[1] = j
        work.slot[1] = place % k
        work.gained[1] = a
        facts[4] = note(search, work, 2, journal, 0)
        hand_on(rows, search, work, 2)
        queue[0] = i
        queue[1] = j
        search.waiting[i] = True
        search.waiting[j] = True
        owed += descend(rows, search, work, queue, 2, sizes[3], owed, journal, facts)
        if owed > 0.0:
            take_back(rows, search, work, journal, facts[4])
        else:
            change += owed
            facts[3] += owed < 0.0
    return change


block_chains_jit = jit(block_chains)
