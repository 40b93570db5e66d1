"""Cancelling negative cycles of a k-regular graph: those that labelling finds (Murakami 2018, section 3.2.2), then all short ones."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from anonflow.kernels.freeform.chains import ChainScratch, Search, chain_scratch, hand_on, holds
from anonflow.kernels.freeform.slot_rows import SlotRows, renew_rows, rises, rises_of
from anonflow.kernels.jit import jit
from anonflow.kernels.nearest import nearest
from anonflow.kernels.state import Plan, State


def exchange(
    rows: SlotRows, matches: np.ndarray, record: np.ndarray, slot: np.ndarray, gained: np.ndarray, stop: int
) -> float:
    """Make ``gained[e]`` the match of ``record[e]`` in ``slot[e]``, for all e at once, if the loss falls.

    A record may occur several times: the kernel prices the complete change, never the sum of its parts.

    Parameters
    ----------
    rows : SlotRows
        Of `matches`, before and after.
    matches : numpy.ndarray, shape (n, k), int32
        Changed only if the change is negative and makes no double edge.
    record, slot, gained : numpy.ndarray, shape (at least stop,), int64
    stop : int
        How many there are.

    Returns
    -------
    float
        The change, negative; 0 if the exchange was not applied.

    Notes
    -----
    O(stop k q + stop^2).
    """
    k = matches.shape[1]
    lost = np.empty(stop, np.int64)
    room = np.empty(k, np.uint64)
    for e in range(stop):
        lost[e] = matches[record[e], slot[e]]
    for e in range(stop):
        matches[record[e], slot[e]] = gained[e]
    double = False
    for e in range(stop):
        for a in range(k):
            double |= a != slot[e] and matches[record[e], a] == gained[e]
    change = 0.0
    if not double:
        for e in range(stop):
            j = record[e]
            # a record that occurs again does not change again
            change -= rows.drop[j * k]
            renew_rows(rows, matches, j, room)
            change += rows.drop[j * k]
        if change < 0.0:
            return change
    for e in range(stop):
        matches[record[e], slot[e]] = lost[e]
    if not double:
        for e in range(stop):
            renew_rows(rows, matches, record[e], room)
    return 0.0


exchange_jit = jit(exchange)


def cancel_cycles(
    rows: SlotRows,
    matches: np.ndarray,
    plan: Plan,
    origin: State,
    joined: State,
    near: np.ndarray,
    roots: np.ndarray,
    t: int,
    p: int,
) -> tuple[int, float, int]:
    """Reverse negative cycles until p labels have been taken; `matches` and `rows` change in place.

    The vertices are originals. An arc u -> v by record j: j gives up its match v and takes u, a candidate
    (``j in near[u]``); its length is by how much j grows. A cycle of arcs keeps all degrees.

    Parameters
    ----------
    rows : SlotRows
        Of `matches`, before and after.
    matches : numpy.ndarray, shape (n, k), int32
        k-regular, before and after; ``matches[:, 0]`` stays.
    plan : Plan
    origin : State
        n originals.
    joined : State
        n generalized records, by which candidates are chosen.
    near : numpy.ndarray, shape (n, C), int32
        Candidate records of each original. A row that begins with -1 is written when the label of its original is taken, with the
        nearest: few are.
    roots : numpy.ndarray, shape (n,), int64
        The first root, and the next ones for when no label can be improved.
    t : int
        A vertex whose label was improved t times is traced upstream for a cycle.
    p : int
        The most labels taken, over all roots.

    Returns
    -------
    cycles : int
        How many were reversed.
    change : float
        Of the total cost: 0 or negative.
    label_count : int
        Labels taken.

    Notes
    -----
    Murakami 2018's Steps 0 to 6. The paper leaves these points open; we decide: lengths are those of the moment a label
    is taken, so a cycle is priced again before it is reversed (``exchange``); a cycle that lowers nothing or has a
    stale arc is discarded; when no label is left the next root begins; labels downstream of a cycle become infinite.

    O(p C k q), O(n) per cycle, and O(n q) for each original whose candidates are sought; O(n) memory besides.
    """
    n, k = matches.shape
    label = np.full(n, np.inf)
    parent = np.full(n, -1, np.int64)
    by = np.full(n, -1, np.int64)  # the record of the arc from the parent
    updates = np.zeros(n, np.int64)
    stamp = np.full(n, -1, np.int64)
    record = np.empty(n, np.int64)
    slot = np.empty(n, np.int64)
    gained = np.empty(n, np.int64)
    places = np.empty(k - 1, np.int64)
    rise = np.empty(k - 1)
    cycles = 0
    total = 0.0
    label_count = 0
    trace = 0
    for r in range(n):
        if label_count >= p:
            break
        root = roots[r]
        if label[root] < np.inf:
            continue
        label[root] = 0.0
        parent[root] = -1
        heap = [(0.0, root)]
        while len(heap) > 0 and label_count < p:
            length, u = heapq.heappop(heap)
            # an old entry of the heap: the label has fallen since
            if length != label[u]:
                continue
            label_count += 1
            if near[u, 0] < 0:
                nearest(plan, origin, joined, u, u + 1, near)
            for c in range(near.shape[1]):
                j = np.int64(near[u, c])
                held = False
                for d in range(k):
                    held |= matches[j, d] == u
                if held:
                    continue
                for s in range(1, k):
                    places[s - 1] = j * k + s
                rises_of(rows, u, places, k - 1, rise)
                for s in range(1, k):
                    v = np.int64(matches[j, s])
                    reach = length + rise[s - 1] - rows.drop[j * k + s]
                    if reach >= label[v]:
                        continue
                    label[v] = reach
                    parent[v] = u
                    by[v] = j
                    updates[v] += 1
                    if updates[v] < t:
                        heapq.heappush(heap, (reach, v))
                        continue
                    updates[v] = 0
                    # Follow the parents until a vertex repeats: it is on a cycle.
                    trace += 1
                    w = v
                    while w >= 0 and stamp[w] != trace:
                        stamp[w] = trace
                        w = parent[w]
                    if w < 0:
                        heapq.heappush(heap, (reach, v))
                        continue
                    size = 0
                    sound = True
                    x = w
                    while True:
                        record[size] = by[x]
                        gained[size] = parent[x]
                        slot[size] = -1
                        for d in range(1, k):
                            if matches[by[x], d] == x:
                                slot[size] = d
                        sound &= slot[size] > 0
                        size += 1
                        x = parent[x]
                        if x == w:
                            break
                    change = 0.0
                    if sound:
                        change = exchange(rows, matches, record, slot, gained, size)
                    if change < 0.0:
                        cycles += 1
                        total += change
                    # Remove the labels of the cycle and of everything below it.
                    # three marks: below the cycle (trace), on the path at hand (trace - 1), apart from both (-trace)
                    trace += 2
                    for e in range(size):
                        stamp[gained[e]] = trace
                    for y in range(n):
                        # each vertex is stamped once: all paths together take O(n)
                        x = np.int64(y)
                        while x >= 0 and stamp[x] != trace and stamp[x] != trace - 1 and stamp[x] != -trace:
                            stamp[x] = trace - 1
                            x = parent[x]
                        mark = trace if x >= 0 and stamp[x] == trace else -trace
                        # all vertices of the path from y get the result of its end
                        x = np.int64(y)
                        while x >= 0 and stamp[x] == trace - 1:
                            stamp[x] = mark
                            x = parent[x]
                    for y in range(n):
                        if stamp[y] == trace:
                            label[y] = np.inf
                            parent[y] = -1
                            updates[y] = 0
                    if label[u] == np.inf:
                        break
                if label[u] == np.inf:
                    break
    return cycles, total, label_count


cancel_cycles_jit = jit(cancel_cycles)


class CycleScratch(NamedTuple):
    """Working memory of a search for cycles: a path of records, and the position of the search at each of them.

    Attributes
    ----------
    path : ChainScratch
        ``record[e]`` takes ``gained[e]`` in ``slot[e]``.
    gain : numpy.ndarray, shape (depth,), float64
        By how much the cost of the records so far has fallen, the last one without the match in its slot.
    candidate, holder : numpy.ndarray, shape (depth,), int64
        The next step of the search.
    up : numpy.ndarray, shape (depth, C), float64
        By how much each candidate raises the cost of the record without its match.
    """

    path: ChainScratch
    gain: np.ndarray
    candidate: np.ndarray
    holder: np.ndarray
    up: np.ndarray


def cycle_scratch(k: int, candidates: int, depth: int) -> CycleScratch:
    """Return room for a search."""
    return CycleScratch(
        chain_scratch(k, candidates, depth, 1),
        np.empty(depth),
        np.empty(depth, np.int64),
        np.empty(depth, np.int64),
        np.empty((depth, candidates)),
    )


cycle_scratch_jit = jit(cycle_scratch)


def simple_cycle(
    rows: SlotRows,
    search: Search,
    i: int | np.int64,
    s: int | np.int64,
    depth: int | np.int64,
    most: int | np.int64,
    work: CycleScratch,
) -> tuple[int, int, bool]:
    """Return the first negative cycle of at most `depth` records that begins with record i's match in slot s.

    Parameters
    ----------
    rows : SlotRows
    search : Search
        Blocks are not looked at.
    i, s : int
        0 < s < k.
    depth : int
    most : int
        The most labels, 1 or more: records whose candidates are priced.
    work : CycleScratch
        Its path is the cycle that was found.

    Returns
    -------
    length : int
        Of the cycle; 0 if there is no cycle, -1 if the labels were too few to decide.
    labels : int
        Taken.
    cut : bool
        Whether a longer one is possible.

    Notes
    -----
    The search tries all paths without a repeated record on which every partial sum is negative. A cycle whose sum is negative
    has such a beginning (Lin and Kernighan, Oper. Res. 21, 1973), so the search over all records and slots misses no
    cycle. Prices are exact. O(labels C (q + k^2)), exponential in the depth if all are to be tried.
    """
    path = work.path
    k = rows.size[0]
    count = search.near.shape[1]
    matches = search.matches
    first = np.int64(matches[i, s])
    labels = 0
    cut = False
    length = 0
    other = np.int64(i)
    place = np.int64(i * k + s)
    gain = rows.drop[place]
    while True:
        # the path goes on with `other`, which gives up what it has in `place`
        if labels == most:
            return -1, labels, cut
        labels += 1
        path.record[length] = other
        path.slot[length] = place % k
        work.gain[length] = gain
        work.candidate[length] = 0
        work.holder[length] = 1
        for c in range(count):
            path.ids[c] = search.near[other, c]
        rises(rows, place, path.ids, count, work.up[length])
        length += 1
        longer = False
        while length > 0 and not longer:
            e = length - 1
            c = work.candidate[e]
            if c == count:
                length -= 1
                continue
            j = path.record[e]
            b = np.int64(search.near[j, c])
            left = work.gain[e] - work.up[e, c]
            if work.holder[e] == k or left <= 0.0 or b == first or holds(matches, j, b):
                work.candidate[e] = c + 1
                work.holder[e] = 1
                continue
            place = np.int64(search.holders[b, work.holder[e]])
            work.holder[e] += 1
            other = place // k
            passed = False
            for f in range(length):
                passed |= path.record[f] == other
            if passed:
                continue
            gain = left + rows.drop[place]
            path.gained[e] = b
            if not holds(matches, other, first):
                path.ids[0] = first
                rises(rows, place, path.ids, 1, path.back)
                if gain > path.back[0]:
                    path.record[length] = other
                    path.slot[length] = place % k
                    path.gained[length] = first
                    return length + 1, labels, cut
            if length + 1 == depth:
                # a path has each record once: where the depth is that of all records, none is longer
                if depth < len(matches):
                    cut = True
                continue
            longer = True
        if length == 0:
            return 0, labels, cut


simple_cycle_jit = jit(simple_cycle, borrows=True)


def cancel_simple_cycles(
    rows: SlotRows, search: Search, order: np.ndarray, deepest: int, most: int, pause: int, stand: np.ndarray
) -> None:
    """Reverse negative cycles, the short ones first, until none is left; the graph changes in place.

    Parameters
    ----------
    rows : SlotRows
    search : Search
        Blocks are not looked at.
    order : numpy.ndarray, shape (n,), int64
        The records as they come.
    deepest : int
        Records in a cycle at most, 2 or more.
    most, pause : int
        The most labels, and the number after which the kernel returns, to be called again.
    stand : numpy.ndarray, shape (6,), int64
        The state of the search where an earlier call ended, at first zeros and a depth of 2: the depth, the next place
        to begin with, places in a row from which no cycle of that depth begins, whether a longer one is possible,
        labels, cycles. When all places have been tried and no longer cycle is possible, the depth becomes 0: no cycle
        is left.

    Notes
    -----
    O(labels C (q + k^2)) time, O(deepest C) memory.
    """
    n, k = search.matches.shape
    places = n * (k - 1)
    work = cycle_scratch(k, search.near.shape[1], deepest)
    while stand[0] > 0:
        if stand[2] == places:
            if stand[3] == 0:
                stand[0] = 0
                break
            if stand[0] == deepest:
                break
            stand[0] += 1
            stand[2] = 0
            stand[3] = 0
        if stand[4] >= pause or stand[4] == most:
            break
        length, labels, cut = simple_cycle(
            rows,
            search,
            order[stand[1] // (k - 1)],
            1 + stand[1] % (k - 1),
            stand[0],
            most - stand[4],
            work,
        )
        stand[4] += labels
        if length > 0:
            hand_on(rows, search, work.path, length, False)
            stand[5] += 1
            # the graph has changed: every place is searched anew
            stand[2] = 0
            stand[3] = 0
        elif length == 0:
            stand[1] = (stand[1] + 1) % places
            stand[2] += 1
            stand[3] = max(stand[3], np.int64(cut))


cancel_simple_cycles_jit = jit(cancel_simple_cycles)
