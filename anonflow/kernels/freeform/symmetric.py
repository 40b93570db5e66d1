"""Symmetric generalization graphs, one step after the other: an assignment and its inverse, or pairs.

``near (n, w) int32`` lists the neighbours of each record, itself first: ``near[j, :level]`` are those of earlier
steps, ``near[j, level:size[j]]`` those of this one. Links are mutual: i occurs in j's row if and only if j occurs in
i's, each once. A step gives every record `need` more: two (cycles of at least three records, which read in one
direction are an assignment and in the other its inverse) or one (pairs).
"""

from __future__ import annotations

import numpy as np

from anonflow.kernels.costs import move, widen
from anonflow.kernels.freeform.links import link, linked
from anonflow.kernels.greedy import least
from anonflow.kernels.jit import jit
from anonflow.kernels.row_costs import increase_row
from anonflow.kernels.state import Plan, State


def greedy_links(
    plan: Plan,
    origin: State,
    state: State,
    work: State,
    bare: State,
    order: np.ndarray,
    near: np.ndarray,
    size: np.ndarray,
    level: int,
    need: int,
) -> None:
    """Link the records, one after the other, with the nearest records that still need neighbours. O(n^2 q).

    Parameters
    ----------
    plan : Plan
    origin : State
        n originals.
    state : State
        n generalized records as earlier steps have made them.
    work, bare : State
        Room for n more each: the generalized records and originals that still need neighbours, side by side.
    order : numpy.ndarray, shape (n,), int64
    near : numpy.ndarray, shape (n, w), int32
    size : numpy.ndarray, shape (n,), int64
        Written, as `near` is. Records that end up with fewer than `need` are linked with one another.
    level, need : int
    """
    n = len(order)
    full = level + need
    out = np.empty(n)
    back = np.empty(n)
    ids = np.empty(n, np.int64)
    slot = np.empty(n, np.int64)
    for j in range(n):
        move(work, j, j, state)
        move(bare, j, j, origin)
        ids[j] = j
        slot[j] = j
    m = n
    for v in range(n):
        i = order[v]
        while size[i] < full:
            # no literal 0: its type would be another one than that of other callers
            increase_row(plan, origin, i, work, np.int64(0), m, out)
            increase_row(plan, state, i, bare, np.int64(0), m, back)
            for s in range(m):
                # the other direction: i's record with j in it, but for its present cost, which is the same for every j
                out[s] += back[s] + bare.cost[s]
            for l in range(size[i]):
                s = slot[near[i, l]]
                if s >= 0:
                    out[s] = np.inf
            at = least(out, ids, m)
            if at < 0:
                break
            j = ids[at]
            link(near, size, i, j)
            for end in (i, j):
                s = slot[end]
                if size[end] == full:
                    m -= 1
                    slot[end] = -1
                    if s != m:
                        move(work, s, m, work)
                        move(bare, s, m, bare)
                        ids[s] = ids[m]
                        slot[ids[s]] = s


greedy_links_jit = jit(greedy_links)


def sorted_links(
    costs: np.ndarray, edges: np.ndarray, ids: np.ndarray, near: np.ndarray, size: np.ndarray, full: int
) -> None:
    """Link the ends of every edge, the cheapest first, where both still need a neighbour. O(m^2).

    Parameters
    ----------
    costs : numpy.ndarray, shape (n, n), float64
        Symmetric; infinite where records are linked from earlier steps.
    edges : numpy.ndarray, shape (m * m,), int64
        ``a * m + b`` for the records ``ids[a], ids[b]``, by ascending cost.
    ids : numpy.ndarray, shape (m,), int64
        Ascending.
    near, size : numpy.ndarray
        As in this module's head.
    full : int
        ``level + need``.
    """
    m = len(ids)
    for e in range(len(edges)):
        i = ids[edges[e] // m]
        j = ids[edges[e] % m]
        is_candidate = i < j and size[i] < full and size[j] < full and costs[i, j] < np.inf
        if is_candidate and not linked(near, 1, size[i], i, j):
            link(near, size, i, j)


sorted_links_jit = jit(sorted_links, borrows=True)


def link_assignment(to: np.ndarray, near: np.ndarray, size: np.ndarray, level: int) -> None:
    """Link each record with the one it is assigned to; the two of a pair once, so that each needs one more."""
    for i in range(len(to)):
        if not linked(near, level, size[i], i, to[i]):
            link(near, size, i, to[i])


link_assignment_jit = jit(link_assignment, borrows=True)


def pair_cycles(to: np.ndarray, costs: np.ndarray, near: np.ndarray, size: np.ndarray, level: int) -> None:
    """Take every other link of each cycle of an assignment, the cheapest choice; an odd cycle leaves one record without a link."""
    n = len(to)
    cycle = np.empty(n, np.int64)
    for start in range(n):
        if size[start] > level:
            continue
        length = 0
        i = start
        seen = False
        while not seen:
            cycle[length] = i
            length += 1
            i = to[i]
            # an earlier cycle, which began with its lowest record, left this one without a link
            seen = i <= start
        if i < start or length == 1:
            continue
        best = np.inf
        first = 0
        # an even cycle has two such halves; an odd one has one for each record that it may leave out
        for offset in range(2 if length % 2 == 0 else length):
            total = 0.0
            for t in range(length // 2):
                a = cycle[(offset + 2 * t) % length]
                total += costs[a, cycle[(offset + 2 * t + 1) % length]]
            if total < best:
                best = total
                first = offset
        for t in range(length // 2):
            link(near, size, cycle[(first + 2 * t) % length], cycle[(first + 2 * t + 1) % length])


pair_cycles_jit = jit(pair_cycles)


def halve_trails(half: np.ndarray, costs: np.ndarray, near: np.ndarray, size: np.ndarray) -> None:
    """Link every other edge of each closed trail, the cheaper choice; a trail of odd length leaves its start one short.

    Parameters
    ----------
    half : numpy.ndarray, shape (n, n), bool
        Symmetric; an even number of edges at each record. Emptied.
    costs : numpy.ndarray, shape (n, n), float64
    near, size : numpy.ndarray
        As in this module's head; written.

    Notes
    -----
    A trail passes all edges of its component, by Hierholzer's algorithm. O(n^2).
    """
    n = len(half)
    edges = 0
    for i in range(n):
        for j in range(n):
            if half[i, j]:
                edges += 1
    edges //= 2
    open_trail = np.empty(edges + 1, np.int64)
    trail = np.empty(edges + 1, np.int64)
    at = np.zeros(n, np.int64)
    for start in range(n):
        opened = 1
        closed = 0
        open_trail[0] = start
        while opened > 0:
            i = open_trail[opened - 1]
            while at[i] < n and not half[i, at[i]]:
                at[i] += 1
            if at[i] == n:
                trail[closed] = i
                closed += 1
                opened -= 1
            else:
                j = at[i]
                half[i, j] = False
                half[j, i] = False
                open_trail[opened] = j
                opened += 1
        # of a trail of odd length the first and the last edge are left out: both are at its start
        length = closed - 1
        first = 1
        if length % 2 == 0:
            excess = 0.0
            for e in range(0, length, 2):
                excess += costs[trail[e + 1], trail[e + 2]] - costs[trail[e], trail[e + 1]]
            if excess > 0.0:
                first = 0
        for e in range(first, length, 2):
            link(near, size, trail[e], trail[e + 1])


halve_trails_jit = jit(halve_trails)


def orient_links(near: np.ndarray, level: int) -> None:
    """Read every cycle of a step in one direction: ``near[:, level]`` is an assignment, the next its inverse."""
    n = len(near)
    has_direction = np.zeros(n, np.bool_)
    for start in range(n):
        i = start
        before = near[start, level + 1]
        while not has_direction[i]:
            has_direction[i] = True
            after = near[i, level]
            if after == before:
                after = near[i, level + 1]
            near[i, level] = after
            near[i, level + 1] = before
            before = i
            i = after


orient_links_jit = jit(orient_links)


def orient_unused(near: np.ndarray, level: int, arcs: np.ndarray) -> None:
    """Give every pair that is not linked yet a direction, so that from and to each record equally many go.

    Parameters
    ----------
    near : numpy.ndarray, shape (n, w), int32
        ``near[:, :level]``: an even number of records is not among them, for each record.
    level : int
    arcs : numpy.ndarray, shape (n, n), bool
        Written: ``arcs[i, j]`` if the pair goes from i to j.

    Notes
    -----
    Along closed trails: Petersen's proof that a regular graph of even degree has a 2-factor, since the arcs are
    then a regular bipartite graph. No cycle of two is in it. O(n^2 + n level).
    """
    n = len(near)
    # a record is the first of its neighbours, so no pair of it with itself stays free
    free = np.ones((n, n), np.bool_)
    for i in range(n):
        for l in range(level):
            free[i, near[i, l]] = False
    arcs[:] = False
    at = np.zeros(n, np.int64)
    for start in range(n):
        i = start
        while True:
            while at[i] < n and not free[i, at[i]]:
                at[i] += 1
            if at[i] == n:
                break
            j = at[i]
            free[i, j] = False
            free[j, i] = False
            arcs[i, j] = True
            i = j


orient_unused_jit = jit(orient_unused)


def enter_links(plan: Plan, origin: State, state: State, near: np.ndarray, level: int, need: int) -> None:
    """Widen every generalized record to cover its neighbours of this step. O(n q)."""
    for j in range(len(near)):
        for l in range(level, level + need):
            widen(plan, state, j, origin, near[j, l])


enter_links_jit = jit(enter_links, borrows=True)
