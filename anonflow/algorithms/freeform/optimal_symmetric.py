"""Symmetric graphs as an integer program: which set of k records each record covers, mutual in every pair."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import sparse

from anonflow.algorithms.freeform.column_generation import ROOM, generated_bound, relaxation, solver_of
from anonflow.algorithms.freeform.optimal_model import Sets

CHEAPEST = 3
"""Sets of each record that column generation begins with."""

ENTERING = 5
"""Sets of each record that enter in a round at most, those of least reduced cost."""

CHOICES = 150_000
"""The most sets that the integer solver gets; with more sets left, its result is not a proof."""


class SymmetricPrices(NamedTuple):
    """Prices of the pairs, shape (n, n), int64, ``pairs[i, j] == -pairs[j, i]``, and of the records, shape (n,), int64."""

    pairs: np.ndarray
    records: np.ndarray


class SymmetricSets:
    """The sets that each record may cover, and the cost of each set.

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
        """Return the cost of a choice for each record, in multiples of ``GRID``."""
        return int(self.sets.cost[choices // self.sets.k].sum())

    def reduced(self, prices: SymmetricPrices) -> np.ndarray:
        """Return the cost of each choice less the prices of its pairs, shape (s k,), int64."""
        members = self.sets.members
        rest = np.repeat(self.sets.cost[:, None], self.sets.k, axis=1)
        for d in range(self.sets.k):
            for e in range(self.sets.k):
                if d != e:
                    rest[:, d] -= prices.pairs[members[:, d], members[:, e]]
        return rest.ravel()

    def least(self, reduced: np.ndarray) -> np.ndarray:
        """Return the least reduced cost of the choices of each record, shape (n,), int64; their sum is a lower bound."""
        least = np.full(self.sets.n, np.iinfo(np.int64).max)
        np.minimum.at(least, self.holder, reduced)
        return least

    def bound(self, used: np.ndarray, best: int, end: float) -> tuple[int, np.ndarray]:
        """Return a lower bound of the cost of all choices among these sets, by column generation.

        Parameters
        ----------
        used : numpy.ndarray, shape (n,), int64
            The choices of a solution.
        best : int
            Its cost.
        end : float
            When to stop, by :func:`~anonflow.kernels.jit.method_clock`.

        Returns
        -------
        bound : int
            Exact in integers: that of the solver's prices, rounded.
        prices : numpy.ndarray, shape (n, n), int64
        """
        n = self.sets.n
        free = SymmetricPrices(np.zeros((n, n), np.int64), np.zeros(n, np.int64))
        pool = np.union1d(used, self._cheapest(self.reduced(free), CHEAPEST))
        bound, prices = generated_bound(self, pool, free, best, end)
        return bound, prices.pairs

    def lagrangian(self, prices: SymmetricPrices, reduced: np.ndarray) -> int:
        """Return the lower bound of the reduced costs at some prices."""
        return int(self.least(reduced).sum())

    def entering(self, prices: SymmetricPrices, reduced: np.ndarray) -> np.ndarray:
        """Return the cheapest choices of each record that cost less than its price."""
        fresh = self._cheapest(reduced, ENTERING)
        return fresh[reduced[fresh] < prices.records[self.holder[fresh]]]

    def _cheapest(self, reduced: np.ndarray, several: int) -> np.ndarray:
        """Return some of the choices of least reduced cost of each record."""
        order = np.lexsort([reduced, self.holder])
        holder = self.holder[order]
        rank = np.arange(len(order)) - np.searchsorted(holder, holder)
        return order[rank < several]

    def relaxed(self, pool: np.ndarray, seconds: float) -> tuple[int, SymmetricPrices] | None:
        """Return the linear relaxation over a pool: its value, and the prices of pairs and records."""
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
        sides = np.concatenate([np.ones(n), np.zeros(len(pairs))])
        solved = relaxation(self.sets.cost[pool // k], matrix, sides, seconds)
        if solved is None:
            return None
        value, duals = solved
        prices = np.zeros((n, n), np.int64)
        prices[pairs // n, pairs % n] = duals[n:]
        return value, SymmetricPrices(prices - prices.T, duals[:n])

    def solve(
        self, choices: np.ndarray, best: int, prices: np.ndarray, bound: int, gap: float, end: float
    ) -> tuple[np.ndarray, int]:
        """Return the cheapest choice of sets found until `end`, and a lower bound of all choices.

        Parameters
        ----------
        choices : numpy.ndarray, shape (n,), int64
            The solution to improve on.
        best : int
            Its cost.
        prices, bound
            As :meth:`bound` gives them, for these sets.
        gap : float
            The relative gap at which the search stops.
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
        reduced = self.reduced(SymmetricPrices(prices, np.zeros(n, np.int64)))
        least = self.least(reduced)
        slack = reduced - least[self.holder]
        candidates = np.flatnonzero(slack <= best - bound)
        proves = len(candidates) <= CHOICES
        if not proves:
            candidates = candidates[np.argsort(slack[candidates], kind="stable")[:CHOICES]]
        candidates = np.union1d(candidates, choices)
        shift = 0
        while int(slack[candidates].max()) >> shift > ROOM // n:
            shift += 1
        weights = (slack[candidates] >> shift).tolist()
        model = cp_model.CpModel()
        variables = [model.new_bool_var("") for _ in candidates]
        places_of: list[list[int]] = [[] for _ in range(n)]
        ends: dict[tuple[int, int], list[int]] = {}
        for place, choice in enumerate(candidates.tolist()):
            holder = int(self.holder[choice])
            places_of[holder].append(place)
            for i in self.sets.members[choice // k].tolist():
                if i != holder:
                    ends.setdefault((holder, i), []).append(place)
        for places in places_of:
            model.add_exactly_one(variables[place] for place in places)
        for (i, j), places in ends.items():
            back = ends.get((j, i), [])
            if i < j or not back:
                forth = cp_model.LinearExpr.sum([variables[place] for place in places])
                model.add(forth == cp_model.LinearExpr.sum([variables[place] for place in back]))
        model.minimize(cp_model.LinearExpr.weighted_sum(variables, weights))
        hinted = set(choices.tolist())
        for place, choice in enumerate(candidates.tolist()):
            model.add_hint(variables[place], choice in hinted)
        solver = solver_of(model, end, gap * best / 2**shift)
        if solver is None:
            return choices, bound
        proved = (math.floor(solver.best_objective_bound) << shift) + int(least.sum())
        better = candidates[[bool(solver.value(variable)) for variable in variables]]
        # choices that were left out are in solutions that cost `best` and more
        return (better if self.cost(better) < best else choices), max(
            bound, min(proved, best)
        ) if proves else bound
