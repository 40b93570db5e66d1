"""Ejection chains: records pass matches on to each other until the loss has fallen.

A local search on a k-regular graph in the manner of Lin and Kernighan (Oper. Res. 21, 1973; Glover, Discrete Appl.
Math. 65, 1996). Record i drops a match a and takes another original b from a record j that holds it; j takes one
from a third record, and so on, until the last one takes a. Every original keeps its k places, so the graph stays
k-regular; the loss changes by the sum of the changes of the records' costs, because a chain contains each record once.

A chain stays inside one block of records: it changes only records of the block and places that they hold. So blocks can
be processed in parallel, and the result is the same in any order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anonflow.kernels.freeform.slot_rows import SlotRows, renew_rows, rises, rises_of
from anonflow.kernels.jit import jit


class Search(NamedTuple):
    """A k-regular graph of n records, stored from both sides, with the candidates and blocks of the chains.

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
    """Working memory of a search, allocated once for a block.

    Attributes
    ----------
    record, slot, gained : numpy.ndarray, shape (depth,), int64
        The chain: ``record[e]`` takes ``gained[e]`` in ``slot[e]``.
    freed : numpy.ndarray, shape (depth,), int64
        Which of an original's k places the chain frees with ``record[e]``.
    ids : numpy.ndarray, shape (C,), int64
        Candidates.
    up : numpy.ndarray, shape (C,), float64
        By how much they raise a cost.
    place : numpy.ndarray, shape (tests,), int64
        Of steps from the last record of the chain, best first: the place that releases an original.
    taken : numpy.ndarray, shape (tests,), int64
        The original.
    after : numpy.ndarray, shape (tests,), float64
        The partial gain after the step.
    back : numpy.ndarray, shape (tests,), float64
        By how much the first record's match raises the cost of each record that could take it.
    words : numpy.ndarray, shape (k,), uint64
    """

    record: np.ndarray
    slot: np.ndarray
    gained: np.ndarray
    freed: np.ndarray
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


holds_jit = jit(holds, borrows=True)


def stands(work: ChainScratch, length: int, i: int | np.int64) -> bool:
    """Return whether record i is among the first records of a chain."""
    present = False
    for e in range(length):
        present |= work.record[e] == i
    return present


stands_jit = jit(stands, borrows=True)


def candidates(search: Search, j: int | np.int64, work: ChainScratch) -> int:
    """Write the originals that are near to record j to ``work.ids``; return how many."""
    count = 0
    while count < search.near.shape[1] and search.near[j, count] >= 0:
        work.ids[count] = search.near[j, count]
        count += 1
    return count


candidates_jit = jit(candidates, borrows=True)


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
    From the last record of the chain the search examines the steps of largest positive partial gain, as many as `work`
    has room for. If the first record's match can be taken by one of them at a gain, the chain closes with the largest;
    else the first step is followed. Gains are exact: a chain contains no record twice, and no edge is doubled.

    O(depth (C (q + k) + tests q)).
    """
    k = rows.size[0]
    depth = len(work.record)
    tests = len(work.after)
    matches = search.matches
    first = np.int64(matches[i, s])
    block = search.block[i]
    work.record[0] = i
    work.slot[0] = s
    gain = rows.drop[i * k + s]
    length = 1
    while length < depth and gain > 0.0:
        j = work.record[length - 1]
        m = candidates(search, j, work)
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
                # another block's records may be changed by another thread meanwhile
                if search.block[other] != block or holds(matches, other, first):
                    continue
                if stands(work, length, other):
                    continue
                # the best places so far, sorted by insertion: there are few
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
        # what closes a chain is dear to price: only the best places are
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
        # closed at once where that gains: what is left to gain, the next chains find
        if closing > 0.0:
            work.gained[length - 1] = first
            return length
        gain = work.after[0]
    return 0


chain_jit = jit(chain, borrows=True)


def hand_on(rows: SlotRows, search: Search, work: ChainScratch, length: int, mutual: bool) -> None:
    """Reverse a chain: ``record[e]`` takes ``gained[e]`` in ``slot[e]``, all at once; O(length k q).

    Each record takes the match that the next one releases. In a chain of links, records at odd places take it from the
    record after the next, the others from the record before the last.
    """
    k = rows.size[0]
    for e in range(length):
        # all places are read before the first one is written: the chain changes them in a circle
        work.freed[e] = search.turn[work.record[e], work.slot[e]]
    for e in range(length):
        j = work.record[e]
        s = work.slot[e]
        step = 1
        if mutual:
            step = 2 if e % 2 == 1 else length - 2
        d = work.freed[(e + step) % length]
        search.matches[j, s] = work.gained[e]
        search.holders[work.gained[e], d] = j * k + s
        search.turn[j, s] = d
    for e in range(length):
        renew_rows(rows, search.matches, work.record[e], work.words)


hand_on_jit = jit(hand_on, borrows=True)


def note(search: Search, work: ChainScratch, length: int, journal: np.ndarray, entries: int) -> int:
    """Enter in a journal the places that a chain is about to change; return the number of entries."""
    for e in range(length):
        j = work.record[e]
        s = work.slot[e]
        journal[entries + e, 0] = j
        journal[entries + e, 1] = s
        journal[entries + e, 2] = search.matches[j, s]
        journal[entries + e, 3] = search.turn[j, s]
    return entries + length


note_jit = jit(note, borrows=True)


def take_back(rows: SlotRows, search: Search, work: ChainScratch, journal: np.ndarray, entries: int) -> None:
    """Undo the changes of a journal, the last entry first; the graph then has the same bits as before."""
    k = rows.size[0]
    for e in range(entries - 1, -1, -1):
        j = journal[e, 0]
        s = journal[e, 1]
        search.matches[j, s] = journal[e, 2]
        search.turn[j, s] = journal[e, 3]
        search.holders[journal[e, 2], journal[e, 3]] = j * k + s
        search.waiting[j] = True
    # a record may be in the journal several times, and is renewed once
    for e in range(entries):
        j = journal[e, 0]
        if search.waiting[j]:
            search.waiting[j] = False
            renew_rows(rows, search.matches, j, work.words)


take_back_jit = jit(take_back, borrows=True)
