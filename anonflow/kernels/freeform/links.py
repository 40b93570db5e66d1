"""Links of a symmetric generalization graph: add them, and exchange their ends.

:mod:`anonflow.kernels.freeform.symmetric` describes how they are stored.
"""

from __future__ import annotations

import numpy as np

from anonflow.kernels.costs import join_cost
from anonflow.kernels.jit import jit
from anonflow.kernels.state import Plan, State


def linked(near: np.ndarray, start: int, stop: int, i: int, j: int) -> bool:
    """Return whether j is among ``near[i, start:stop]``."""
    present = False
    for l in range(start, stop):
        present |= near[i, l] == j
    return present


linked_jit = jit(linked, borrows=True)


def link(near: np.ndarray, size: np.ndarray, i: int, j: int) -> None:
    """Make two records neighbours."""
    near[i, size[i]] = j
    near[j, size[j]] = i
    size[i] += 1
    size[j] += 1


link_jit = jit(link, borrows=True)


def relink(near: np.ndarray, level: int, i: int, old: int, new: int) -> None:
    """Replace a neighbour of this step by another one, on one side."""
    for l in range(level, near.shape[1]):
        if near[i, l] == old:
            near[i, l] = new
            return


relink_jit = jit(relink, borrows=True)


def link_cost(plan: Plan, origin: State, B: State, i: int, j: int) -> float:
    """Return by how much a link raises the loss: record j covers original i as well, and record i original j."""
    return join_cost(plan, origin, i, B, j) - B.cost[j] + join_cost(plan, origin, j, B, i) - B.cost[i]


link_cost_jit = jit(link_cost, borrows=True)


def complete_links(
    plan: Plan,
    origin: State,
    state: State,
    near: np.ndarray,
    size: np.ndarray,
    level: int,
    need: int,
    facts: np.ndarray,
) -> bool:
    """Give neighbours to the records that still need some: a link x - y of this step becomes u - x and v - y.

    Parameters
    ----------
    plan : Plan
    origin, state : State
    near, size : numpy.ndarray
        Records that need more are linked with one another.
    level, need : int
    facts : numpy.ndarray, shape (2,), int64
        ``facts[0]`` counts the exchanges.

    Returns
    -------
    bool
        False if some record is still left over: only for n + 3 <= 2 (level + need).

    Notes
    -----
    u is a record that needs two more, and v = u, or u and v need one each. The kernel takes the cheapest of all links
    that can be exchanged, the one of lowest x, then y, among ties. O(n (q + level)) each.

    There is always one: let the step have E links and the records left over need L in all, 2 E = 2 n - L. A link in one
    of its two directions cannot be used if x is u or linked with u, or y with v; u is linked with at most b = level +
    need - 1 records, itself among them, v as well, and those of them that are left over, L in all, have so many links
    fewer. That rules out 2 (2 b - L) directions of 2 E, not all if 2 n + L > 4 b; L >= 2.
    """
    n = len(size)
    full = level + need
    by_u = np.empty(n)
    by_v = np.empty(n)
    for u in range(n):
        while size[u] < full:
            v = u
            # a link gives two neighbours: an odd one goes to another record that lacks some
            if full - size[u] == 1:
                v = u + 1
                while v < n and size[v] == full:
                    v += 1
            for x in range(n):
                by_u[x] = np.inf
                by_v[x] = np.inf
                if not linked(near, 0, size[u], u, x):
                    by_u[x] = link_cost(plan, origin, state, u, x)
                if not linked(near, 0, size[v], v, x):
                    by_v[x] = link_cost(plan, origin, state, v, x)
            best = np.inf
            at = -1
            to = -1
            for x in range(n):
                if by_u[x] < np.inf:
                    for l in range(level, size[x]):
                        y = near[x, l]
                        if by_v[y] < np.inf:
                            cost = by_u[x] + by_v[y] - link_cost(plan, origin, state, x, y)
                            if cost < best or (cost == best and at == x and y < to):
                                best = cost
                                at = x
                                to = y
            if at < 0:
                return False
            facts[0] += 1
            relink(near, level, at, to, u)
            relink(near, level, to, at, v)
            near[u, size[u]] = at
            size[u] += 1
            near[v, size[v]] = to
            size[v] += 1
    return True


complete_links_jit = jit(complete_links)


def exchange_links(costs: np.ndarray, near: np.ndarray, level: int, need: int, sweeps: int) -> int:
    """Exchange the ends of two links of this step where that costs less, until there is no such pair or for some sweeps.

    Parameters
    ----------
    costs : numpy.ndarray, shape (n, n), float64
        Symmetric; infinite where records are linked from earlier steps, and for a record itself.
    near : numpy.ndarray, shape (n, w), int32
        ``near[:, level:level + need]`` is changed.
    level, need, sweeps : int

    Returns
    -------
    int
        Number of exchanges. O(n^2) for a sweep.
    """
    n = len(costs)
    full = level + need
    tail = np.empty(n * need // 2, np.int64)
    head = np.empty(n * need // 2, np.int64)
    count = 0
    for i in range(n):
        for l in range(level, full):
            # each link once, though both ends store it
            if i < near[i, l]:
                tail[count] = i
                head[count] = near[i, l]
                count += 1
    total = 0
    for _ in range(sweeps):
        before = total
        for e in range(count):
            for f in range(count):
                a = tail[e]
                b = head[e]
                x = tail[f]
                y = head[f]
                if (a == x) | (a == y) | (b == x) | (b == y):
                    continue
                now = costs[a, b] + costs[x, y]
                straight = costs[a, x] + costs[b, y]
                across = costs[a, y] + costs[b, x]
                if across < straight:
                    x = head[f]
                    y = tail[f]
                    straight = across
                if straight >= now or linked(near, level, full, a, x) or linked(near, level, full, b, y):
                    continue
                relink(near, level, a, b, x)
                relink(near, level, b, a, y)
                relink(near, level, x, y, a)
                relink(near, level, y, x, b)
                head[e] = x
                tail[f] = b
                head[f] = y
                total += 1
        if total == before:
            break
    return total


exchange_links_jit = jit(exchange_links)
