"""Assignments chosen greedily, one original after the other (Doka 2015, section 5, Algorithm 1)."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.costs import move, widen
from anonflow.kernels.jit import NO_NANS, jit
from anonflow.kernels.row_costs import increase_row
from anonflow.kernels.state import Plan, State, empty_state

_BLOCK = 1024
_FAR = np.int64(2**62)


def least(out: np.ndarray, ids: np.ndarray, m: int) -> int:
    """Return the slot of the least of ``out[:m]``, the one with the lowest id among ties; -1 if all are infinite.

    Parameters
    ----------
    out : numpy.ndarray, shape (at least m,), float64
        No NaN.
    ids : numpy.ndarray, shape (at least m,), int64
        Distinct.
    m : int
    """
    best = np.inf
    at = -1
    lowest = _FAR
    start = 0
    while start < m:
        # the minimum of a block is a loop of vectors; ids are only read in blocks that can win
        values = out[start : min(start + _BLOCK, m)]
        low = np.inf
        for s in range(len(values)):
            low = values[s] if values[s] < low else low
        if low <= best and low < np.inf:
            names = ids[start : start + len(values)]
            if low < best:
                best = low
                lowest = _FAR
            for s in range(len(values)):
                if values[s] == best and names[s] < lowest:
                    lowest = names[s]
                    at = start + s
        start += _BLOCK
    return at


least_jit = jit(least, fastmath=NO_NANS, borrows=True)


def is_assigned(assigned: np.ndarray, i: int, j: int, level: int) -> bool:
    """Return whether edge (i, j) is in one of the first `level` assignments."""
    result = False
    for l in range(level):
        result |= assigned[i, l] == j
    return result


is_assigned_jit = jit(is_assigned, borrows=True)


def augment(
    assigned: np.ndarray,
    level: int,
    i: int,
    chosen: np.ndarray,
    holder: np.ndarray,
    reached: np.ndarray,
    queue: np.ndarray,
) -> int:
    """Match original `i` along a shortest augmenting path of edges not used before; O(n^2) at worst.

    The unused edges of the complete graph form a regular graph, so there is a perfect matching (Hall), and by Berge's theorem
    an augmenting path from every unmatched original.

    Parameters
    ----------
    assigned : numpy.ndarray, shape (n, k), int32
        ``assigned[i, :level]`` are the generalized records that original i has been matched to.
    level : int
    i : int
    chosen : numpy.ndarray, shape (n,), int64
        Generalized record of each original in this assignment, changed along the path.
    holder : numpy.ndarray, shape (n,), int64
        Its inverse, -1 for generalized records that are still available.
    reached, queue : numpy.ndarray, shape (n,), int64
        Working memory.

    Returns
    -------
    int
        The generalized record that is no longer available; -1 if there is no path.
    """
    n = len(chosen)
    reached[:] = -1
    # breadth first, so that the path is a shortest one
    queue[0] = i
    head = 0
    tail = 1
    while head < tail:
        u = queue[head]
        head += 1
        for j in range(n):
            if reached[j] >= 0 or is_assigned(assigned, u, j, level):
                continue
            reached[j] = u
            if holder[j] >= 0:
                queue[tail] = holder[j]
                tail += 1
                continue
            end = j
            while True:
                u = reached[j]
                before = chosen[u]
                chosen[u] = j
                holder[j] = u
                if u == i:
                    return end
                j = before
    return -1


augment_jit = jit(augment, borrows=True)


def greedy_rounds(
    plan: Plan,
    origin: State,
    state: State,
    work: State,
    order: np.ndarray,
    matches: np.ndarray,
    assigned: np.ndarray,
    facts: np.ndarray,
) -> None:
    """Find the assignments 2 to k of the Greedy algorithm; the first is the identity. O(k n^2 q).

    Generalized records that are still available are stored side by side in `work` (the last one moves into the place of
    one that is taken), so an assignment needs n(n + 1)/2 joins, not n^2.

    Parameters
    ----------
    plan : Plan
    origin : State
        n originals.
    state : State
        n generalized records, at the beginning the originals; at the end as wide as `matches` makes them.
    work : State
        Room for n more.
    order : numpy.ndarray, shape (n,), int64
        The originals in the order in which they choose.
    matches : numpy.ndarray, shape (n, k), int32
        Written: ``matches[j]`` are the originals that generalized record j covers.
    assigned : numpy.ndarray, shape (n, k), int32
        Written: ``assigned[i]`` are the generalized records that cover original i.
    facts : numpy.ndarray, shape (2,), int64
        Added to: dead ends resolved by backtracking, and by an augmenting path.
    """
    n = len(order)
    out = np.empty(n)
    ids = np.empty(n, np.int64)
    slot = np.empty(n, np.int64)
    chosen = np.empty(n, np.int64)
    holder = np.empty(n, np.int64)
    reached = np.empty(n, np.int64)
    queue = np.empty(n, np.int64)
    for j in range(n):
        matches[j, 0] = j
        assigned[j, 0] = j
    for level in range(1, matches.shape[1]):
        for j in range(n):
            move(work, j, j, state)
            ids[j] = j
            slot[j] = j
            chosen[j] = -1
            holder[j] = -1
        m = n
        for v in range(n):
            i = order[v]
            # Algorithm 1, line 7, for i; at a dead end (lines 3 to 5) for i's predecessors, the last one
            # first, that could hand their record over to i. By Lemma 5.1 one of the first 2 (level + 1) +
            # i - n - 3 of them can, as long as k < (n + 3) / 2 (Theorem 5.2).
            back = 0
            y = i
            at = -1
            while True:
                # no literal 0: its type would be another one than that of other callers
                increase_row(plan, origin, y, work, np.int64(0), m, out)
                # the k originals of a generalized record differ: one that it has is not taken again
                for l in range(level):
                    s = slot[assigned[y, l]]
                    if s >= 0:
                        out[s] = np.inf
                at = least(out, ids, m)
                if at >= 0:
                    break
                back += 1
                while back <= v and is_assigned(assigned, i, chosen[order[v - back]], level):
                    back += 1
                if back > v:
                    break
                y = order[v - back]
            if at >= 0:
                if back > 0:
                    facts[0] += 1
                    chosen[i] = chosen[y]
                    holder[chosen[i]] = i
                record = ids[at]
                chosen[y] = record
                holder[record] = y
            else:
                # beyond the theorem's bound: a path over several originals always exists
                facts[1] += 1
                record = augment(assigned, level, i, chosen, holder, reached, queue)
                at = slot[record]
            m -= 1
            slot[record] = -1
            if at != m:
                move(work, at, m, work)
                ids[at] = ids[m]
                slot[ids[at]] = at
        for v in range(n):
            i = order[v]
            matches[chosen[i], level] = i
            assigned[i, level] = chosen[i]
            # only now: within an assignment all originals choose among the same generalized records
            widen(plan, state, chosen[i], origin, i)


greedy_rounds_jit = jit(greedy_rounds)


def greedy_parts(
    plan: Plan,
    origin: State,
    starts: np.ndarray,
    order: np.ndarray,
    matches: np.ndarray,
    assigned: np.ndarray,
    facts: np.ndarray,
) -> None:
    """Find the assignments of the Greedy algorithm in each of several partitions, which lie one after the other.

    Parameters
    ----------
    plan : Plan
    origin : State
        n originals.
    starts : numpy.ndarray, shape (p + 1,), int64
        Where each partition begins; the last one is n.
    order : numpy.ndarray, shape (n,), int64
        As :func:`greedy_rounds` takes it, for each partition.
    matches, assigned : numpy.ndarray, shape (n, k), int32
        Written, for each partition: positions in it.
    facts : numpy.ndarray, shape (p, 2), int64
        Added to.
    """
    most = 0
    for p in range(len(facts)):
        most = max(most, int(starts[p + 1] - starts[p]))
    originals = origin  # of a single partition, which may be the whole table, no copy is made
    if len(facts) > 1:
        originals = empty_state(plan, most)
    state = empty_state(plan, most)
    work = empty_state(plan, most)
    for p in range(len(facts)):
        start = starts[p]
        stop = starts[p + 1]
        for j in range(stop - start):
            if len(facts) > 1:
                move(originals, j, start + j, origin)
            move(state, j, start + j, origin)
        greedy_rounds(
            plan,
            originals,
            state,
            work,
            order[start:stop],
            matches[start:stop],
            assigned[start:stop],
            facts[p],
        )


greedy_parts_jit = jit(greedy_parts)
