"""Cancelling negative cycles of a k-regular graph, found by labelling (Murakami 2018, section 3.2.2)."""

from __future__ import annotations

import heapq

import numpy as np

from anonflow.kernels.costs import join_cost, move, widen
from anonflow.kernels.jit import jit
from anonflow.kernels.state import Plan, State

__all__ = ["cancel_cycles", "cancel_cycles_jit", "exchange", "exchange_jit"]


def exchange(
    plan: Plan,
    origin: State,
    matches: np.ndarray,
    cost: np.ndarray,
    scratch: State,
    record: np.ndarray,
    slot: np.ndarray,
    gained: np.ndarray,
    stop: int,
) -> float:
    """Make ``gained[e]`` the match of ``record[e]`` in ``slot[e]``, for all e at once, if the loss falls.

    A record may occur several times: the change is priced as a whole, never summed up from its parts.

    Parameters
    ----------
    plan : Plan
    origin : State
    matches : numpy.ndarray, shape (n, k), int32
        Changed only if the change is negative and makes no double edge.
    cost : numpy.ndarray, shape (n,), float64
        Costs of the generalized records; changed likewise.
    scratch : State
        Room for one record.
    record, slot, gained : numpy.ndarray, shape (at least stop,), int64
    stop : int
        How many there are.

    Returns
    -------
    float
        The change, negative; 0 if nothing was done.

    Notes
    -----
    O(stop k q + stop^2).
    """
    k = matches.shape[1]
    lost = np.empty(stop, np.int64)
    for e in range(stop):
        lost[e] = matches[record[e], slot[e]]
    for e in range(stop):
        matches[record[e], slot[e]] = gained[e]
    change = 0.0
    double = False
    fresh = np.empty(stop)
    for e in range(stop):
        j = record[e]
        for a in range(k):
            double |= a != slot[e] and matches[j, a] == gained[e]
        move(scratch, np.int64(0), j, origin)  # type: ignore[arg-type]
        for d in range(1, k):
            widen(plan, scratch, np.int64(0), origin, matches[j, d])  # type: ignore[arg-type]
        fresh[e] = scratch.cost[0]
        seen = False
        for b in range(e):
            seen |= record[b] == j
        if not seen:
            change += fresh[e] - cost[j]
    if double or change >= 0.0:
        for e in range(stop):
            matches[record[e], slot[e]] = lost[e]
        return 0.0
    for e in range(stop):
        cost[record[e]] = fresh[e]
    return change


exchange_jit = jit(exchange)


def cancel_cycles(
    plan: Plan,
    origin: State,
    matches: np.ndarray,
    cost: np.ndarray,
    near: np.ndarray,
    roots: np.ndarray,
    t: int,
    p: int,
) -> tuple[int, float, int]:
    """Reverse negative cycles until p labels have been taken; `matches` and `cost` change in place.

    The vertices are originals. An arc u -> v by record j: j gives up its match v and takes u, a candidate
    (``j in near[u]``); its length is by how much j grows. A cycle of arcs keeps all degrees.

    Parameters
    ----------
    plan : Plan
    origin : State
    matches : numpy.ndarray, shape (n, k), int32
        k-regular, before and after; ``matches[:, 0]`` stays.
    cost : numpy.ndarray, shape (n,), float64
        Costs of the generalized records.
    near : numpy.ndarray, shape (n, C), int32
        Candidate records of each original.
    roots : numpy.ndarray, shape (n,), int64
        Where to start, and where to start anew when no label is left to improve.
    t : int
        A vertex whose label was improved t times is traced upstream for a cycle.
    p : int
        Labels taken at most, over all roots.

    Returns
    -------
    cycles : int
        How many were reversed.
    change : float
        Of the total cost: 0 or negative.
    taken : int
        Labels taken.

    Notes
    -----
    Murakami 2018's Steps 0 to 6. What it leaves open: lengths are those of the moment a label is taken, so a cycle
    is priced again before it is reversed (``exchange``), and one that does not pay or has a stale arc is only
    forgotten; when labels run out the next root begins; labels downstream of a cycle become infinite.

    O(p C k^2 q), each match of each candidate being priced anew, and O(n) per cycle; O(n) memory besides.
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
    scratch = State(
        origin.lo[:, :1].copy(),
        origin.hi[:, :1].copy(),
        origin.bits[:, :1].copy(),
        origin.count[:, :1].copy(),
        origin.only[:, :1].copy(),
        origin.mass[:, :1].copy(),
        origin.mlog[:, :1].copy(),
        origin.base[:1].copy(),
        origin.cost[:1].copy(),
    )
    here = np.int64(0)
    cycles = 0
    total = 0.0
    taken = 0
    trace = 0
    for r in range(n):
        if taken >= p:
            break
        root = roots[r]
        if label[root] < np.inf:
            continue
        label[root] = 0.0
        parent[root] = -1
        heap = [(0.0, root)]
        while len(heap) > 0 and taken < p:
            length, u = heapq.heappop(heap)
            if length != label[u]:
                continue
            taken += 1
            for c in range(near.shape[1]):
                j = np.int64(near[u, c])
                held = False
                for d in range(k):
                    held |= matches[j, d] == u
                if held:
                    continue
                for s in range(1, k):
                    v = np.int64(matches[j, s])
                    move(scratch, here, j, origin)  # type: ignore[arg-type]
                    for d in range(1, k):
                        if d != s:
                            widen(plan, scratch, here, origin, matches[j, d])  # type: ignore[arg-type]
                    reach = length + join_cost(plan, origin, u, scratch, here) - cost[j]  # type: ignore[arg-type]
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
                    # Upstream until a vertex comes twice: it is on a cycle.
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
                        change = exchange(plan, origin, matches, cost, scratch, record, slot, gained, size)
                    if change < 0.0:
                        cycles += 1
                        total += change
                    # Forget the cycle and all that hangs on it.
                    trace += 2
                    for e in range(size):
                        stamp[gained[e]] = trace
                    for y in range(n):
                        x = np.int64(y)
                        while x >= 0 and stamp[x] != trace and stamp[x] != trace - 1 and stamp[x] != -trace:
                            stamp[x] = trace - 1
                            x = parent[x]
                        mark = trace if x >= 0 and stamp[x] == trace else -trace
                        # the whole path from y shares its end's fate
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
    return cycles, total, taken


cancel_cycles_jit = jit(cancel_cycles)
