"""Ejection chains: matches handed on from record to record until the loss has fallen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anonflow.kernels.jit import jit
from anonflow.kernels.slot_rows import Rows, renew_rows, rises, rises_of

DEPTH = 8
_SHIFT = np.int64(32)


class Search(NamedTuple):
    matches: np.ndarray  # (n, k) int32
    holders: np.ndarray  # (n, k) int32: places j k + s
    turn: np.ndarray  # (n, k) int32: holders[matches[j, s], turn[j, s]] == j k + s
    near: np.ndarray  # (n, C) int32, -1 none
    block: np.ndarray  # (n,) int32
    active: np.ndarray  # (n,) bool


def holds(matches: np.ndarray, j: int, a: int) -> bool:
    for d in range(matches.shape[1]):
        if matches[j, d] == a:
            return True
    return False


holds_jit = jit(holds)


def chain(rows: Rows, search: Search, i: int, s: int, record: np.ndarray, slot: np.ndarray, gained: np.ndarray, depth: int, ids: np.ndarray, up: np.ndarray, places: np.ndarray, who: np.ndarray, afters: np.ndarray, up_a: np.ndarray, breadth: np.ndarray, filled: np.ndarray, tried: np.ndarray) -> int:
    """Find a chain from record i's slot s that lowers the loss; its length, 0 if none."""
    k = rows.size[0]
    matches = search.matches
    a = np.int64(matches[i, s])
    mine = search.block[i]
    most = places.shape[1]
    record[0] = i
    slot[0] = s
    partial = rows.drop[i * k + s]
    level = 0
    fresh = True
    while level >= 0:
        if fresh:
            cur = record[level]
            m = 0
            while m < search.near.shape[1] and search.near[cur, m] >= 0:
                ids[m] = search.near[cur, m]
                m += 1
            rises(rows, cur * k + slot[level], ids, m, up)
            count = 0
            for c in range(m):
                left = partial - up[c]
                if left <= 0.0:
                    continue
                b = ids[c]
                if b == a or holds(matches, cur, b):
                    continue
                for d in range(1, k):
                    place = np.int64(search.holders[b, d])
                    after = left + rows.drop[place]
                    if count == most and after <= afters[level, most - 1]:
                        continue
                    j = place // k
                    if search.block[j] != mine or holds(matches, j, a):
                        continue
                    passed = False
                    for e in range(level + 1):
                        passed |= record[e] == j
                    if passed:
                        continue
                    x = count if count < most else most - 1
                    while x > 0 and afters[level, x - 1] < after:
                        afters[level, x] = afters[level, x - 1]
                        places[level, x] = places[level, x - 1]
                        who[level, x] = who[level, x - 1]
                        x -= 1
                    afters[level, x] = after
                    places[level, x] = place
                    who[level, x] = b
                    count = min(count + 1, most)
            filled[level] = count
            tried[level] = 0
            rises_of(rows, a, places[level], count, up_a)
            closing = 0.0
            at = -1
            for x in range(count):
                if afters[level, x] - up_a[x] > closing:
                    closing = afters[level, x] - up_a[x]
                    at = x
            if at >= 0:
                gained[level] = who[level, at]
                record[level + 1] = places[level, at] // k
                slot[level + 1] = places[level, at] % k
                gained[level + 1] = a
                return level + 2
        if level + 2 < depth and tried[level] < filled[level] and tried[level] < breadth[level]:
            x = tried[level]
            tried[level] += 1
            gained[level] = who[level, x]
            record[level + 1] = places[level, x] // k
            slot[level + 1] = places[level, x] % k
            partial = afters[level, x]
            level += 1
            fresh = True
        else:
            level -= 1
            fresh = False
    return 0


chain_jit = jit(chain)


def hand_on(rows: Rows, search: Search, record: np.ndarray, slot: np.ndarray, gained: np.ndarray, length: int) -> None:
    """Make gained[e] the match of record[e] in slot[e], for all e at once."""
    k = rows.size[0]
    last = length - 1
    a_turn = search.turn[record[0], slot[0]]
    for e in range(length):
        j = record[e]
        s = slot[e]
        d = search.turn[record[e + 1], slot[e + 1]] if e < last else a_turn
        search.matches[j, s] = gained[e]
        search.holders[gained[e], d] = j * k + s
        search.turn[j, s] = d
    room = np.empty(k, np.uint64)
    for e in range(length):
        renew_rows(rows, search.matches, record[e], room)


hand_on_jit = jit(hand_on)


def descend(rows: Rows, search: Search, queue: np.ndarray, waiting: np.ndarray, tail: int, most: int, depth: int, most_tests: int, breadth: np.ndarray,
            record: np.ndarray, slot: np.ndarray, gained: np.ndarray, journal: np.ndarray, kept: np.ndarray, counts: np.ndarray, debt: float) -> float:
    """Visit queued records until none is left or `most` visits; total change.

    journal: (J, 3) record, slot, lost ; kept[0] number of entries, -1: none kept."""
    k = rows.size[0]
    size = len(queue)
    head = 0
    visits = 0
    ids = np.empty(search.near.shape[1], np.int64)
    up = np.empty(search.near.shape[1])
    places = np.empty((depth, most_tests), np.int64)
    who = np.empty((depth, most_tests), np.int64)
    afters = np.empty((depth, most_tests))
    filled = np.empty(depth, np.int64)
    tried = np.empty(depth, np.int64)
    up_a = np.empty(most_tests)
    change = 0.0
    while tail > head and visits < most:
        i = queue[head % size]
        head += 1
        waiting[i] = False
        visits += 1
        s = 1
        while s < k:
            length = 0
            if rows.drop[i * k + s] > 0.0:
                length = chain(rows, search, i, s, record, slot, gained, depth, ids, up, places, who, afters, up_a, breadth, filled, tried)
            if length == 0:
                s += 1
                continue
            if kept[0] >= 0:
                if kept[0] + length > len(journal):
                    break
                for e in range(length):
                    journal[kept[0] + e, 0] = record[e]
                    journal[kept[0] + e, 1] = slot[e]
                    journal[kept[0] + e, 2] = search.matches[record[e], slot[e]]
                kept[0] += length
            for e in range(length):
                change -= rows.drop[record[e] * k]
            hand_on(rows, search, record, slot, gained, length)
            counts[0] += 1
            counts[1] += length
            for e in range(length):
                change += rows.drop[record[e] * k]
                if not waiting[record[e]] and debt + change != 0.0:
                    waiting[record[e]] = True
                    queue[tail % size] = record[e]
                    tail += 1
            if debt + change == 0.0:
                most = 0
                break
    while tail > head:
        waiting[queue[head % size]] = False
        head += 1
    counts[2] += visits
    return change


descend_jit = jit(descend)


def improve_block(rows: Rows, search: Search, members: np.ndarray, waiting: np.ndarray, most: int, depth: int, most_tests: int, breadth: np.ndarray, lanes: np.ndarray, dear: float, cap: int, counts: np.ndarray) -> float:
    """Chains from all active records of a block, then a kick for each row of lanes."""
    k = rows.size[0]
    ids1 = np.empty(1, np.int64)
    up1 = np.empty(1)
    queue = np.empty(len(members) + 1, np.int64)
    record = np.empty(depth + 1, np.int64)
    slot = np.empty(depth + 1, np.int64)
    gained = np.empty(depth + 1, np.int64)
    journal = np.empty((4096, 3), np.int64)
    kept = np.full(1, -1, np.int64)
    tail = 0
    for e in range(len(members)):
        if search.active[members[e]]:
            queue[tail] = members[e]
            waiting[members[e]] = True
            tail += 1
    change = descend(rows, search, queue, waiting, tail, most, depth, most_tests, breadth, record, slot, gained, journal, kept, counts, np.inf)
    for e in range(len(lanes)):
        i = members[(np.int64(lanes[e, 0]) * len(members)) >> _SHIFT]
        s = 1 + ((np.int64(lanes[e, 1]) * (k - 1)) >> _SHIFT)
        b = np.int64(search.near[i, (np.int64(lanes[e, 2]) * search.near.shape[1]) >> _SHIFT])
        if b < 0:
            continue
        place = np.int64(search.holders[b, 1 + ((np.int64(lanes[e, 3]) * (k - 1)) >> _SHIFT)])
        j = place // k
        a = np.int64(search.matches[i, s])
        if search.block[j] != search.block[i] or j == i or holds(search.matches, i, b) or holds(search.matches, j, a):
            continue
        ids1[0] = b
        rises(rows, i * k + s, ids1, 1, up1)
        delta = up1[0] - rows.drop[i * k + s]
        if delta > dear:
            continue
        ids1[0] = a
        rises(rows, place, ids1, 1, up1)
        delta += up1[0] - rows.drop[place]
        if delta > dear:
            continue
        counts[3] += 1
        record[0] = i
        slot[0] = s
        gained[0] = b
        record[1] = j
        slot[1] = place % k
        gained[1] = a
        journal[0, 0] = i
        journal[0, 1] = s
        journal[0, 2] = a
        journal[1, 0] = j
        journal[1, 1] = place % k
        journal[1, 2] = b
        kept[0] = 2
        hand_on(rows, search, record, slot, gained, 2)
        queue[0] = i
        queue[1] = j
        waiting[i] = True
        waiting[j] = True
        delta += descend(rows, search, queue, waiting, 2, cap, depth, most_tests, breadth, record, slot, gained, journal, kept, counts, delta)
        if delta > 0.0:
            undo(rows, search, journal, kept[0])
        else:
            change += delta
            if delta < 0.0:
                counts[4] += 1
    return change


def undo(rows: Rows, search: Search, journal: np.ndarray, count: int) -> None:
    """Take the journal back, last entry first: entries of one chain are consecutive; each restores a slot."""
    k = rows.size[0]
    room = np.empty(k, np.uint64)
    for e in range(count - 1, -1, -1):
        search.matches[journal[e, 0], journal[e, 1]] = journal[e, 2]
    for e in range(count):
        j = journal[e, 0]
        s = journal[e, 1]
        seen = False
        for f in range(e):
            seen |= journal[f, 0] == j
        if not seen:
            renew_rows(rows, search.matches, j, room)
    # holders: places not in use any more get what came free
    for e in range(count):
        j = journal[e, 0]
        s = journal[e, 1]
        a = np.int64(search.matches[j, s])
        # this place must be in holders[a]; find a stale place there
        found = False
        for d in range(k):
            found |= search.holders[a, d] == j * k + s
        if not found:
            for d in range(k):
                p = np.int64(search.holders[a, d])
                if search.matches[p // k, p % k] != a:
                    search.holders[a, d] = j * k + s
                    search.turn[j, s] = d
                    break
        else:
            for d in range(k):
                if search.holders[a, d] == j * k + s:
                    search.turn[j, s] = d


undo_jit = jit(undo)
improve_block_jit = jit(improve_block)


def two_hops(rows: Rows, search: Search, orders: np.ndarray, ranks: np.ndarray, reach: int, strangers: np.ndarray, start: int, stop: int, seed: int) -> None:
    """near[i] for start..stop-1."""
    k = rows.size[0]
    C = search.near.shape[1]
    n = len(search.matches)
    most = 1024
    table = np.zeros(4096, np.int64)
    ids = np.empty(most + 2 * reach * len(orders) + strangers.shape[0], np.int64)
    cost = np.empty(len(ids))
    key = np.empty(C)
    place = np.empty(C, np.int64)
    for i in range(start, stop):
        stamp = np.int64(i + 1) << 32
        count = 0
        for d in range(k):
            a = np.int64(search.matches[i, d])
            h = (a * 2654435761) & 4095
            while table[h] >> 32 == i + 1:
                h = (h + 1) & 4095
            table[h] = stamp | a
        for d in range(k):
            a = np.int64(search.matches[i, d])
            for e in range(k):
                j = np.int64(search.holders[a, e]) // k
                for f in range(k):
                    b = np.int64(search.matches[j, f])
                    h = (b * 2654435761) & 4095
                    while table[h] >> 32 == i + 1 and table[h] != stamp | b:
                        h = (h + 1) & 4095
                    if table[h] != stamp | b and count < most:
                        table[h] = stamp | b
                        ids[count] = b
                        count += 1
        for o in range(len(orders)):
            at = ranks[o, i]
            for e in range(-reach, reach + 1):
                if 0 <= at + e < n:
                    b = orders[o, at + e]
                    h = (b * 2654435761) & 4095
                    while table[h] >> 32 == i + 1 and table[h] != stamp | b:
                        h = (h + 1) & 4095
                    if table[h] != stamp | b:
                        table[h] = stamp | b
                        ids[count] = b
                        count += 1
        for e in range(len(strangers)):
            b = (i + strangers[e]) % n
            h = (b * 2654435761) & 4095
            while table[h] >> 32 == i + 1 and table[h] != stamp | b:
                h = (h + 1) & 4095
            if table[h] != stamp | b:
                table[h] = stamp | b
                ids[count] = b
                count += 1
        # the C cheapest, by insertion into a sorted list
        filled = 0
        rises(rows, i * k, ids, count, cost)
        for e in range(count):
            c = cost[e]
            if filled == C and c >= key[C - 1]:
                continue
            at = filled if filled < C else C - 1
            while at > 0 and key[at - 1] > c:
                key[at] = key[at - 1]
                place[at] = place[at - 1]
                at -= 1
            key[at] = c
            place[at] = ids[e]
            filled = min(filled + 1, C)
        for e in range(C):
            search.near[i, e] = place[e] if e < filled else -1


two_hops_jit = jit(two_hops)


