"""The sets of k records that a k-regular graph is made of, as an integer program: bounds and solutions."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import maximum_bipartite_matching

from anonflow.algorithms.freeform.column_generation import ROOM, generated_bound, relaxation, solver_of
from anonflow.kernels.freeform.subsets import set_costs_jit
from anonflow.kernels.row_costs import join_row_jit
from anonflow.kernels.state import GRID, Plan, State, empty_state


class Sets:
    """Sets of k of n records that generalized records may cover, and the cost of each.

    Attributes
    ----------
    n, k : int
    members : numpy.ndarray, shape (s, k), int32
        Different sets, each in ascending order.
    cost : numpy.ndarray, shape (s,), int64
        In multiples of ``GRID``.

    Notes
    -----
    A k-regular generalization graph is a choice of ``y[S]`` copies of each set S of k records such that every
    record is in k copies. Each generalized record can always cover its own original: records and chosen copies are a
    k-regular bipartite graph, which has a perfect matching. So the problem (Doka 2015, section 4, equations 4 to 11) is
    ``min sum cost[S] y[S]``, ``sum of y[S] over S with i = k`` for each i.
    """

    def __init__(self, n: int, members: np.ndarray, cost: np.ndarray) -> None:
        self.n = n
        self.k = members.shape[1]
        self.members = members
        self.cost = cost

    def bound(self, used: np.ndarray, best: int, end: float) -> tuple[int, np.ndarray]:
        """Return a lower bound of the cost of all choices among these sets, by column generation.

        Parameters
        ----------
        used : numpy.ndarray, shape (u,), intp
            Sets that a solution uses.
        best : int
            Its cost.
        end : float
            When to stop, by :func:`~anonflow.kernels.jit.method_clock`.

        Returns
        -------
        bound : int
            Exact in integers, whatever the linear solver's rounding: it is the Lagrangian bound at the
            solver's prices.
        prices : numpy.ndarray, shape (n,), int64
            Of each record's k places.
        """
        pool = np.unique(np.concatenate([used, self._cheapest(self.cost, 3)]))
        return generated_bound(self, pool, np.zeros(self.n, np.int64), best, end)

    def reduced(self, prices: np.ndarray) -> np.ndarray:
        """Cost of each set less the prices of its records, shape (s,), int64."""
        rest = self.cost.copy()
        for d in range(self.k):
            rest -= prices[self.members[:, d]]
        return rest

    def lagrangian(self, prices: np.ndarray, reduced: np.ndarray) -> int:
        """Return the lower bound at some prices, of the reduced costs that go with them."""
        return int(self.k * prices.sum() + self.least(reduced).sum())

    def entering(self, prices: np.ndarray, reduced: np.ndarray) -> np.ndarray:
        """Return the cheapest of the sets of negative reduced cost."""
        fresh = self._cheapest(reduced, 5)
        return fresh[reduced[fresh] < 0]

    def least(self, reduced: np.ndarray) -> np.ndarray:
        """Return the least reduced cost of the sets that each record is in, shape (n,), int64."""
        least = np.full(self.n, np.iinfo(np.int64).max)
        for d in range(self.k):
            np.minimum.at(least, self.members[:, d], reduced)
        return least

    def _cheapest(self, cost: np.ndarray, several: int) -> np.ndarray:
        """Return positions of the cheapest sets over all, and of some of the cheapest ones of each record."""
        most = min(several * self.n, len(cost))
        chosen = [np.argpartition(cost, most - 1)[:most]]
        least = self.least(cost)
        for d in range(self.k):
            tied = np.flatnonzero(cost == least[self.members[:, d]])
            # thousands may cost the same: the first of each record is enough
            chosen.append(tied[np.unique(self.members[tied, d], return_index=True)[1]])
        return np.unique(np.concatenate(chosen))

    def relaxed(self, pool: np.ndarray, seconds: float) -> tuple[int, np.ndarray] | None:
        """Return the linear relaxation over a pool: its value and the records' prices."""
        sides = np.full(self.n, float(self.k))
        return relaxation(self.cost[pool], self._incidence(pool), sides, seconds)

    def _incidence(self, pool: np.ndarray) -> sparse.csc_array:
        ends = np.arange(0, len(pool) * self.k + 1, self.k)
        ones = np.ones(len(pool) * self.k)
        return sparse.csc_array((ones, self.members[pool].ravel(), ends), shape=(self.n, len(pool)))

    def solve(
        self, copies: dict[int, int], best: int, prices: np.ndarray, bound: int, gap: float, end: float
    ) -> tuple[dict[int, int], int]:
        """Return the cheapest choice of sets found until `end`, and a lower bound of all choices.

        Parameters
        ----------
        copies : dict
            Set -> copies: the solution to improve on.
        best : int
            Its cost.
        prices, bound
            As :meth:`bound` gives them, for these sets.
        gap : float
            The relative gap at which the search stops.
        end : float

        Returns
        -------
        copies : dict
        bound : int

        Notes
        -----
        A set whose reduced cost exceeds the gap is in no better solution, and each copy of a set uses up its reduced
        cost of the gap: few sets and few copies are left. CP-SAT runs with one worker, so it gives the same solution
        every time unless the time limit ends it. Its costs are rounded down where they would not fit 64 bits, by less
        than 1e-9 in all for a hundred records.
        """
        from ortools.sat.python import cp_model

        reduced = self.reduced(prices)
        least = self.least(reduced)
        # a set with more slack than the best solution has room is in no better one
        slack = reduced - least[self.members].max(axis=1)
        room = best - bound
        candidates = np.flatnonzero(slack <= room)
        most = np.minimum(self.k, room // np.maximum(slack[candidates], 1))
        most[slack[candidates] <= 0] = self.k
        most = np.maximum(most, [copies.get(int(s), 0) for s in candidates])
        shift = 0
        weights = reduced[candidates]
        # the solver's sums must not overflow: costs are made coarser until they cannot
        while sum(abs(w) * m for w, m in zip((weights >> shift).tolist(), most.tolist(), strict=True)) > ROOM:
            shift += 1
        model = cp_model.CpModel()
        amounts = [model.new_int_var(0, int(m), "") for m in most]
        holders: list[list[int]] = [[] for _ in range(self.n)]
        for place, row in enumerate(self.members[candidates].tolist()):
            for i in row:
                holders[i].append(place)
        for places in holders:
            model.add(cp_model.LinearExpr.sum([amounts[place] for place in places]) == self.k)
        model.minimize(cp_model.LinearExpr.weighted_sum(amounts, (weights >> shift).tolist()))
        for place, s in enumerate(candidates.tolist()):
            model.add_hint(amounts[place], copies.get(s, 0))
        solver = solver_of(model, end, gap * best / 2**shift)
        if solver is None:
            return copies, bound
        constant = int(self.k * prices.sum())
        proved = (math.floor(solver.best_objective_bound) << shift) + constant
        copies_of = {int(s): int(solver.value(x)) for s, x in zip(candidates, amounts, strict=True)}
        copies_of = {s: times for s, times in copies_of.items() if times}
        cost = sum(int(self.cost[s]) * times for s, times in copies_of.items())
        # sets that were left out are in solutions that cost `best` and more
        return (copies_of if cost < best else copies), max(bound, min(proved, best))


def all_sets(plan: Plan, origin: State, k: int) -> Sets:
    """Return all sets of k records in lexicographic order; O((n choose k) (q + k))."""
    n = len(origin.cost)
    count = math.comb(n, k)
    flat = itertools.chain.from_iterable(itertools.combinations(range(n), k))
    return _priced(plan, origin, np.fromiter(flat, np.int32, count * k).reshape(count, k))


def near_sets(plan: Plan, origin: State, k: int, matches: np.ndarray, room: int) -> Sets:
    """Return sets of a record and k - 1 of its nearest, about `room` in all, and those of a solution.

    Parameters
    ----------
    plan : Plan
    origin : State
    k : int
    matches : numpy.ndarray, shape (n, k), int32
    room : int
    """
    n = len(origin.cost)
    near = k - 1
    while near + 1 < n and n * math.comb(near + 1, k - 1) <= room:
        near += 1
    chosen = np.array(list(itertools.combinations(range(near), k - 1)), np.int64).reshape(-1, k - 1)
    out = np.empty(n)
    parts = [np.sort(matches, axis=1)]
    for i in range(n):
        # no literal 0: its type would be another one than that of other callers
        join_row_jit(plan, origin, i, origin, np.int64(0), n, out)
        # the record itself comes first, and is left out below
        out[i] = -np.inf
        nearest = np.argsort(out, kind="stable")[1 : near + 1]
        rows = np.column_stack([np.full(len(chosen), i), nearest[chosen]])
        parts.append(np.sort(rows, axis=1))
    members = np.unique(np.concatenate(parts).astype(np.int32), axis=0)
    return _priced(plan, origin, members)


def _priced(plan: Plan, origin: State, members: np.ndarray) -> Sets:
    cost = np.empty(len(members))
    partial = empty_state(plan, members.shape[1])
    set_costs_jit(plan, origin, members, partial, cost)
    return Sets(len(origin.cost), members, np.rint(cost / GRID).astype(np.int64))


def positions(sets: Sets, matches: np.ndarray) -> dict[int, int]:
    """Return how often each of the sets is a row of `matches`; every row is one of the sets."""
    # sets are compared by their bytes: both sides are sorted, and int32
    number = {row: s for s, row in enumerate(map(bytes, sets.members))}
    copies: dict[int, int] = {}
    for row in np.sort(matches, axis=1).astype(np.int32):
        s = number[row.tobytes()]
        copies[s] = copies.get(s, 0) + 1
    return copies


def as_matches(sets: Sets, copies: dict[int, int]) -> np.ndarray:
    """Return the k-regular graph of some copies of sets: which record gets which set by a perfect matching.

    Returns
    -------
    numpy.ndarray, shape (n, k), int32
        ``matches[j, 0] == j``, the others ascending.
    """
    rows = np.repeat(sets.members[list(copies)], list(copies.values()), axis=0)
    n, k = rows.shape
    copy = np.repeat(np.arange(n), k)
    graph = sparse.csr_array((np.ones(n * k), (rows.ravel(), copy)), shape=(n, n))
    assigned = rows[maximum_bipartite_matching(sparse.csr_matrix(graph), perm_type="column")]
    others = assigned != np.arange(n)[:, None]
    matches = np.empty((n, k), np.int32)
    matches[:, 0] = np.arange(n)
    matches[:, 1:] = assigned[others].reshape(n, k - 1)
    return matches
