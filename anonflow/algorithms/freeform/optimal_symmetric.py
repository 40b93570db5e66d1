"""Symmetric graphs as an integer program: which set of k records each record covers, mutual in every pair."""

from __future__ import annotations

import math
import time

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from anonflow.algorithms.freeform.optimal_model import ROOM, ROUNDS, Sets
from anonflow.kernels.state import GRID

__all__ = ["SymmetricSets"]

CHEAPEST = 3
"""Sets of each record that column generation begins with."""

ENTERING = 5
"""Sets of each record that enter in a round at most, those of least reduced cost."""

CHOICES = 150_000
"""Sets of all records that the integer solver is handed at most: beyond that what it finds is no proof."""


class SymmetricSets:
    """Which of some sets each record may cover, and what a set costs.

    Attributes
    ----------
    sets : Sets
        s sets of k of n records.
    holder : numpy.ndarray, shape (s k,), int64
        Choice ``c = set * k + d``: the set's member d covers it.

    Notes
    -----
    A symmetric k-regular graph is a choice of one set for each of its members, such that record i is in j's set if and only
    if j is in i's: ``min sum cost[S] z[j, S]``, ``sum of z[j, S] over S with j = 1``, and for each pair i < j
    ``sum of z[i, S] over S with j - sum of z[j, S] over S with i = 0``. Relaxed with prices of the pairs, antisymmetric in
    their ends, each record takes the set of least reduced cost, whatever the prices a lower bound; with prices
    ``p[j] - p[i]`` it is that of :class:`~anonflow.algorithms.freeform.optimal_model.Sets`.
    """

    def __init__(self, sets: Sets) -> None:
        self.sets = sets
        self.holder = sets.members.ravel().astype(np.int64)

    def choices(self, matches: np.ndarray) -> np.ndarray:
        """Return the choices that a symmetric graph makes, shape (n,), int64; every row is one of the sets."""
        number = {row: s for s, row in enumerate(map(bytes, self.sets.members))}
        rows = np.sort(matches, axis=1).astype(np.int32)
        at = (rows == np.arange(len(rows))[:, None]).argmax(axis=1)
        return np.array([number[row.tobytes()] for row in rows], np.int64) * self.sets.k + at

    def matches(self, choices: np.ndarray) -> np.ndarray:
        """Return the graph of a choice for each record, shape (n, k), int32: itself first, the others ascending."""
        n, k = self.sets.n, self.sets.k
        rows = np.empty((n, k), np.int32)
        rows[self.holder[choices]] = self.sets.members[choices // k]
        others = rows != np.arange(n)[:, None]
        return np.column_stack([np.arange(n), rows[others].reshape(n, k - 1)]).astype(np.int32)

    def cost(self, choices: np.ndarray) -> int:
        """Return what a choice for each record costs, in multiples of ``GRID``."""
        return int(self.sets.cost[choices // self.sets.k].sum())

    def reduced(self, prices: np.ndarray) -> np.ndarray:
        """Cost of each choice less the prices of its pairs, shape (s k,), int64.

        Parameters
        ----------
        prices : numpy.ndarray, shape (n, n), int64
            ``prices[i, j] == -prices[j, i]``.
        """
        members = self.sets.members
        rest = np.repeat(self.sets.cost[:, None], self.sets.k, axis=1)
        for d in range(self.sets.k):
            for e in range(self.sets.k):
                if d != e:
                    rest[:, d] -= prices[members[:, d], members[:, e]]
        return rest.ravel()

    def least(self, reduced: np.ndarray) -> np.ndarray:
        """Return the least reduced cost of the choices of each record, shape (n,), int64; their sum is a lower bound."""
        least = np.full(self.sets.n, np.iinfo(np.int64).max)
        np.minimum.at(least, self.holder, reduced)
        return least

    def bound(self, used: np.ndarray, best: int, end: float) -> tuple[int, np.ndarray]:
        """Return what no choice among these sets costs less than, by column generation.

        Parameters
        ----------
        used : numpy.ndarray, shape (n,), int64
            The choices of a solution.
        best : int
            Its cost.
        end : float
            When to stop, by ``time.monotonic``.

        Returns
        -------
        bound : int
            Exact in integers: that of the solver's prices, rounded.
        prices : numpy.ndarray, shape (n, n), int64
        """
        prices = np.zeros((self.sets.n, self.sets.n), np.int64)
        reduced = self.reduced(prices)
        bound = int(self.least(reduced).sum())
        pool = np.union1d(used, self._cheapest(reduced, CHEAPEST))
        for _ in range(ROUNDS):
            if time.monotonic() >= end or bound >= best:
                break
            solved = self._relaxed(pool, end - time.monotonic())
            if solved is None:
                break
            value, own, here = solved
            reduced = self.reduced(here)
            least = self.least(reduced)
            if int(least.sum()) > bound:
                bound, prices = int(least.sum()), here
            if bound >= value - 1:
                break
            fresh = self._cheapest(reduced, ENTERING)
            before = len(pool)
            pool = np.union1d(pool, fresh[reduced[fresh] < own[self.holder[fresh]]])
            if len(pool) == before:
                break
        return bound, prices

    def _cheapest(self, reduced: np.ndarray, several: int) -> np.ndarray:
        """Return some of the choices of least reduced cost of each record."""
        order = np.lexsort([reduced, self.holder])
        holder = self.holder[order]
        rank = np.arange(len(order)) - np.searchsorted(holder, holder)
        return order[rank < several]

    def _relaxed(self, pool: np.ndarray, seconds: float) -> tuple[int, np.ndarray, np.ndarray] | None:
        """Return the linear relaxation over a pool: its value, the records' prices and those of the pairs."""
        n, k = self.sets.n, self.sets.k
        holder, members = self.holder[pool], self.sets.members[pool // k].astype(np.int64)
        column, e = np.nonzero(members != holder[:, None])
        i, j = holder[column], members[column, e]
        pairs, row = np.unique(np.minimum(i, j) * n + np.maximum(i, j), return_inverse=True)
        count = len(pool)
        matrix = sparse.csc_array(
            (
                np.concatenate([np.ones(count), np.where(i < j, 1.0, -1.0)]),
                (np.concatenate([holder, n + row]), np.concatenate([np.arange(count), column])),
            ),
            shape=(n + len(pairs), count),
        )
        solved = linprog(
            self.sets.cost[pool // k] * GRID,
            A_eq=matrix,
            b_eq=np.concatenate([np.ones(n), np.zeros(len(pairs))]),
            method="highs",
            options={"time_limit": max(seconds, 0.01)},
        )
        if solved.status != 0:
            return None
        duals = np.rint(solved.eqlin.marginals / GRID).astype(np.int64)
        prices = np.zeros((n, n), np.int64)
        prices[pairs // n, pairs % n] = duals[n:]
        return math.floor(solved.fun / GRID), duals[:n], prices - prices.T

    def solve(
        self, choices: np.ndarray, best: int, prices: np.ndarray, bound: int, gap: float, end: float
    ) -> tuple[np.ndarray, int]:
        """Return the cheapest choice of sets that is found until `end`, and what no choice costs less than.

        Parameters
        ----------
        choices : numpy.ndarray, shape (n,), int64
            The solution to improve on.
        best : int
            Its cost.
        prices, bound
            As :meth:`bound` gives them, for these sets.
        gap : float
            The relative gap at which to be content.
        end : float

        Returns
        -------
        choices : numpy.ndarray, shape (n,), int64
        bound : int

        Notes
        -----
        A choice whose reduced cost is above its record's least one by more than the gap is in no better solution. CP-SAT with
        one worker: the same solution every time unless time ends it. Its costs are rounded down where they would not
        fit 64 bits.
        """
        from ortools.sat.python import cp_model

        n, k = self.sets.n, self.sets.k
        reduced = self.reduced(prices)
        least = self.least(reduced)
        slack = reduced - least[self.holder]
        kept = np.flatnonzero(slack <= best - bound)
        proves = len(kept) <= CHOICES
        if not proves:
            kept = kept[np.argsort(slack[kept], kind="stable")[:CHOICES]]
        kept = np.union1d(kept, choices)
        shift = 0
        while int(slack[kept].max()) >> shift > ROOM // n:
            shift += 1
        weights = (slack[kept] >> shift).tolist()
        model = cp_model.CpModel()
        taken = [model.new_bool_var("") for _ in kept]
        own: list[list[int]] = [[] for _ in range(n)]
        ends: dict[tuple[int, int], list[int]] = {}
        for place, choice in enumerate(kept.tolist()):
            holder = int(self.holder[choice])
            own[holder].append(place)
            for i in self.sets.members[choice // k].tolist():
                if i != holder:
                    ends.setdefault((holder, i), []).append(place)
        for places in own:
            model.add_exactly_one(taken[place] for place in places)
        for (i, j), places in ends.items():
            back = ends.get((j, i), [])
            if i < j or not back:
                forth = cp_model.LinearExpr.sum([taken[place] for place in places])
                model.add(forth == cp_model.LinearExpr.sum([taken[place] for place in back]))
        model.minimize(cp_model.LinearExpr.weighted_sum(taken, weights))
        hinted = set(choices.tolist())
        for place, choice in enumerate(kept.tolist()):
            model.add_hint(taken[place], choice in hinted)
        seconds = end - time.monotonic()
        if seconds <= 0.01:
            return choices, bound
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 0
        solver.parameters.max_time_in_seconds = seconds
        # the solver's gap is relative to reduced costs: ours is an absolute one in these
        solver.parameters.absolute_gap_limit = max(gap * best / 2**shift, 0.0)
        solver.parameters.relative_gap_limit = 0.0
        status = solver.solve(model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return choices, bound
        proved = (math.floor(solver.best_objective_bound) << shift) + int(least.sum())
        better = kept[[bool(solver.value(variable)) for variable in taken]]
        # choices that were left out are in solutions that cost `best` and more
        return (better if self.cost(better) < best else choices), max(
            bound, min(proved, best)
        ) if proves else bound
