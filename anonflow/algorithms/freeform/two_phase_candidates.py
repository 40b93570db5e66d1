"""Two-phase over candidate edges: sparse assignments, and cycles found by labelling (Murakami 2018, section 3.2)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from anonflow.algorithms.freeform.chains import search_of
from anonflow.algorithms.freeform.near_pairs import costs_of_difference, sorted_pairs
from anonflow.algorithms.method import Partition, Progress
from anonflow.kernels.costs import join_pairs_jit
from anonflow.kernels.freeform.assignment import take_assignment_jit
from anonflow.kernels.freeform.cycles import (
    cancel_cycles_jit,
    cancel_simple_cycles_jit,
)
from anonflow.kernels.freeform.slot_rows import SlotRows, empty_rows, renew_span_jit
from anonflow.kernels.nearest import nearest_jit
from anonflow.kernels.row_costs import join_row_jit
from anonflow.kernels.state import Plan, State, take
from anonflow.threads import run_each

SCALE = 720_720
"""Costs are below 32; the solver multiplies them by the number of records and must stay below 2^63.

A multiple of all numbers up to 16: where a value is published or concealed, costs of as many columns are exact.
"""

EVERYBODY = 512
"""Records of a table in which negative cycles are sought among all pairs."""

DEEPEST = 64
"""Records in a cycle at most."""

LABELS = 10_000
"""Labels between two checks of whether the run continues."""

NO_LIMIT = 2**62
"""More labels than any search takes."""

SAMPLE = 256
"""Number of originals whose neighbourhoods decide the start."""


def nearness(
    plan: Plan,
    origin: State,
    inner: list[np.ndarray],
    outer: list[np.ndarray],
    k: int,
    rng: np.random.Generator,
) -> float:
    """Return the mean cost of records with their nearest among many, divided by that with their nearest among few.

    Parameters
    ----------
    plan : Plan
    origin : State
        n originals.
    inner, outer : list of numpy.ndarray
        Two divisions of the records, k in a part at least.
    k : int
        The mean is over a record and its k - 1 nearest.
    rng : numpy.random.Generator
        Draws the records that are looked at.

    Returns
    -------
    float
        1 where the nearest lie in the same part of `inner`, and where all costs are 0.

    Notes
    -----
    O(n q) time and memory.
    """
    n = len(origin.cost)
    sums = []
    chosen = rng.choice(n, min(SAMPLE, n), replace=False)
    for parts in (outer, inner):
        label = np.empty(n, np.int64)
        for number, rows in enumerate(parts):
            label[rows] = number
        total = 0.0
        for number in np.unique(label[chosen]):
            around = take(origin, parts[number])
            costs = np.empty(len(around.cost))
            for i in chosen[label[chosen] == number].tolist():
                join_row_jit(plan, origin, i, around, 0, len(costs), costs)
                total += float(np.partition(costs, k - 1)[:k].sum())
        sums.append(total)
    return sums[0] / sums[1] if sums[1] else 1.0


def near_records(
    plan: Plan, origin: State, joined: State, count: int, pool: ThreadPoolExecutor
) -> np.ndarray:
    """Return for each original the generalized records whose cost rises least if they cover it.

    With the two exchanged, for each generalized record the originals that it grows least by covering: for one of them, what
    both cost together differs from its growth by the same whatever the original.

    Parameters
    ----------
    plan : Plan
    origin : State
        n originals.
    joined : State
        n generalized records.
    count : int
        Candidates, n at most.
    pool : concurrent.futures.ThreadPoolExecutor

    Returns
    -------
    numpy.ndarray, shape (n, count), int32

    Notes
    -----
    O(n^2 q) time, O(n count) memory.
    """
    n = len(joined.cost)
    near = np.empty((n, count), np.int32)

    def find(start: int) -> None:
        nearest_jit(plan, origin, joined, start, min(start + 512, n), near)

    run_each(pool, find, range(0, n, 512))
    return near


def sparse_assignment(left: np.ndarray, right: np.ndarray, cost: np.ndarray, n: int) -> np.ndarray | None:
    """Return the assignment of least cost among some edges, or None where they hold none.

    Parameters
    ----------
    left, right : numpy.ndarray, shape (E,), integer
        Ends of each edge, below n.
    cost : numpy.ndarray, shape (E,), float64
        Rounded to multiples of 1 / ``SCALE``.
    n : int

    Returns
    -------
    numpy.ndarray, shape (n,), int64, or None
        The right end of each left one.

    Notes
    -----
    Goldberg and Kennedy's cost-scaling push-relabel, as in Murakami 2018.
    """
    from ortools.graph.python.linear_sum_assignment import SimpleLinearSumAssignment

    if len(np.unique(left)) < n or len(np.unique(right)) < n:
        return None
    solver = SimpleLinearSumAssignment()
    units = np.rint(cost * SCALE).astype(np.int64)
    # the solver has fewer rounds the smaller its costs are: without a common factor it takes half the time
    units //= max(int(np.gcd.reduce(units)), 1)
    solver.add_arcs_with_cost(left.astype(np.int32), right.astype(np.int32), units)
    if solver.solve() != solver.OPTIMAL:
        return None
    return np.array([solver.right_mate(i) for i in range(n)], np.int64)


def sparse_matches(
    part: Partition,
    k: int,
    count: int,
    pool: ThreadPoolExecutor,
    pairs: str = "all",
) -> tuple[np.ndarray, int]:
    """Return a k-regular graph out of k - 1 assignments of least cost among candidate edges.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int
    count : int
        Candidates of each original that are not used yet, at least 1.
    pool : concurrent.futures.ThreadPoolExecutor
    pairs : {"all", "sorted"}, optional
        Where candidates are sought; ``sorted`` for losses that :func:`costs_of_difference` knows.

    Returns
    -------
    matches : numpy.ndarray, shape (P, k), int32
    widened : int
        How often the candidates held no assignment and were doubled.

    Notes
    -----
    Murakami 2018, Steps 0 to 5 of the greedy algorithm. The paper chooses the candidates once, by the distances of the
    originals; so does ``sorted`` (:func:`~anonflow.algorithms.freeform.near_pairs.sorted_pairs`). With ``all`` they are sought
    again for each assignment, from the generalized records as they have grown. The next 2k - 1 records
    join them: that is the order of the records in lexicographic order. Candidates that hold no
    assignment are doubled: in the end they are all edges not used so far, a regular graph, which has one.

    O(k P^2 q), or the time of sorted pairs, and k sparse assignments of P (count + 2k) edges;
    O(P (q + k (k + count))) memory unless widened.
    """
    n = part.n
    plan = part.plan
    origin, joined, assigned, matches = part.first_assignment(k)
    widened = 0
    costs = costs_of_difference(part.records, plan) if pairs == "sorted" else None
    near = np.empty((n, 0), np.int32)
    # edges to the next along the order, too: most records are somebody's candidate then
    ring = ((np.arange(n)[:, None] + np.arange(1, min(2 * k, n))) % n).astype(np.int32)
    for d in range(1, k):
        wide = min(count + d, n)
        while True:
            if costs is None:
                near = near_records(plan, origin, joined, wide, pool)
            elif near.shape[1] < wide:
                wide = min(max(wide, count + k), n)
                near = sorted_pairs(part.records, plan, origin, costs, wide, pool)
            # each edge once, in a fixed order: the solver then gives the same result on every machine
            ends = np.sort(np.concatenate([near, ring], axis=1), axis=1)
            free = np.ones(ends.shape, bool)
            np.not_equal(ends[:, 1:], ends[:, :-1], out=free[:, 1:])
            for matched in assigned[:, :d].T:
                free &= ends != matched[:, None]
            left, right = np.nonzero(free)[0], ends[free].astype(np.int64)
            cost = np.empty(len(left))
            join_pairs_jit(plan, origin, left, joined, right, cost)
            cost -= joined.cost[right]
            # increments may be negative (entropy); the solver needs values that are not
            to = sparse_assignment(left, right, cost - cost.min(initial=0.0), n)
            if to is not None:
                break
            wide = min(2 * wide, n)
            widened += 1
        take_assignment_jit(plan, origin, joined, to, d, assigned, matches)
    return matches, widened


class MatchedRecords(NamedTuple):
    """A k-regular graph that is improved in place.

    Attributes
    ----------
    plan : Plan
    origin : State
        n originals.
    matches : numpy.ndarray, shape (n, k), int32
        k-regular, before and after.
    joined : State
        The generalized records.
    """

    plan: Plan
    origin: State
    matches: np.ndarray
    joined: State


def slot_rows(graph: MatchedRecords) -> SlotRows:
    """Return the generalized records without each of their matches. O(n k q) memory."""
    n, k = graph.matches.shape
    rows = empty_rows(graph.plan, graph.origin, k)
    renew_span_jit(rows, graph.matches, 0, n)
    return rows


def cancel(
    graph: MatchedRecords,
    count: int,
    t: int,
    p: int,
    rng: np.random.Generator,
) -> tuple[int, int]:
    """Cancel negative cycles over candidate edges; `matches` change in place.

    Parameters
    ----------
    graph : MatchedRecords
        The generalized records are not renewed.
    count : int
        Candidate records of each original.
    t, p : int
        Thresholds of :func:`anonflow.kernels.freeform.cycles.cancel_cycles`.
    rng : numpy.random.Generator
        Draws the roots.

    Returns
    -------
    cycles : int
        Reversed.
    labels : int
        Taken.
    """
    plan, origin, matches, joined = graph
    n, k = matches.shape
    roots = rng.permutation(n).astype(np.int64)
    if p <= 0:
        return 0, 0
    # records that already hold an original are not candidates, although their cost rises least
    near = np.full((n, min(count + k, n)), -1, np.int32)
    rows = slot_rows(graph)
    cycles, _, labels = cancel_cycles_jit(rows, matches, plan, origin, joined, near, roots, t, p)
    return int(cycles), int(labels)


def cancel_all(
    graph: MatchedRecords,
    count: int,
    most: int,
    rng: np.random.Generator,
    pool: ThreadPoolExecutor,
    watch: Callable[[Progress], None] | None = None,
    pairs: bool = False,
) -> tuple[int, bool]:
    """Cancel negative cycles over candidate edges, the short ones first, until none is left; `matches` change in place.

    Parameters
    ----------
    graph : MatchedRecords
        The generalized records are not renewed.
    count : int
        Candidates of each record; everybody in tables of at most ``EVERYBODY``.
    most : int
        Labels at most: records whose candidates are priced.
    rng : numpy.random.Generator
        Draws the order of the records.
    pool : concurrent.futures.ThreadPoolExecutor
    watch : callable, optional
        Called with the progress.
    pairs : bool, optional
        Whether cycles of two records are cancelled until none is left, beyond `most` labels, too.

    Returns
    -------
    cycles : int
        Reversed.
    finished : bool
        Whether no negative cycle is left that passes every record at most once, all of the candidates.

    Notes
    -----
    Prices are incremental: the cost of each record without each of its matches is computed again only where it has
    changed. Cycles of two take polynomial time, long ones exponential. O(n k q) memory.
    """
    plan, origin, matches, joined = graph
    n, k = matches.shape
    order = rng.permutation(n).astype(np.int64)
    if most <= 0 and not pairs:
        return 0, False
    rows = slot_rows(graph)
    search = search_of(matches, min(count + k, n) if n > EVERYBODY else n)
    search.near[:] = near_records(plan, joined, origin, search.near.shape[1], pool)
    stand = np.array([2, 0, 0, 0, 0, 0], np.int64)
    deepest = min(n, DEEPEST)
    before = -1
    while before < stand[4] < most:  # else none is left, or no label
        before = int(stand[4])
        cancel_simple_cycles_jit(rows, search, order, deepest, most, before + LABELS, stand)
        if watch is not None:
            watch(Progress(int(stand[4]), most, float(rows.drop[::k].sum())))
    finished = bool(stand[0] == 0)
    if pairs and not finished:
        # exchanges between two records are so few that they are always tried to the end
        stand[:4] = (2, 0, 0, 0)
        while stand[0] == 2 and stand[2] < n * (k - 1):
            cancel_simple_cycles_jit(rows, search, order, 2, NO_LIMIT, int(stand[4]) + LABELS, stand)
            if watch is not None:
                watch(Progress(most, most, float(rows.drop[::k].sum())))
    return int(stand[5]), finished
