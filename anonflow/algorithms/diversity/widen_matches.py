"""Diversity of matches: records are widened until the rows that may be each original's differ (paper 4, Algorithm 7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anonflow.algorithms.concealment.components import Components
from anonflow.algorithms.concealment.expansion import Merged
from anonflow.algorithms.diversity.target import Target
from anonflow.algorithms.method import Partition
from anonflow.kernels.concealment import covered_jit, covering_jit
from anonflow.kernels.costs import join_row_jit, widen_jit
from anonflow.kernels.state import State

__all__ = ["Shown", "widened"]

STEP_UP = 8
"""Of random values, a step adds one row for so many that an original has."""


@dataclass(frozen=True, eq=False)
class Shown:
    """What each row shows: its value, or, before a draw, the values of its matches.

    Attributes
    ----------
    values : numpy.ndarray, shape (n,), int64
        The value of each original.
    lists : numpy.ndarray, shape (n, k), int32
        The originals that each row may carry the value of; -1 is none. One column where nothing is drawn.
    seen : numpy.ndarray, shape (n,), bool
        Rows that show anything.
    size : int
        V.
    """

    values: np.ndarray
    lists: np.ndarray
    seen: np.ndarray
    size: int

    @property
    def random(self) -> bool:
        """Whether the values are still to be drawn."""
        return self.lists.shape[1] > 1

    def shares(self) -> np.ndarray:
        """The chance that each row shows each value: shape (n, V), float64; zero for rows that show nothing."""
        n = len(self.values)
        found = np.zeros((n, self.size))
        for column in self.lists.T:
            rows = np.flatnonzero((column >= 0) & self.seen)
            found[rows, self.values[column[rows]]] += 1.0
        total: np.ndarray = np.maximum(found.sum(axis=1, keepdims=True), 1.0)
        return found / total

    def components(self) -> tuple[np.ndarray, np.ndarray]:
        """The part of the graph of matches that each row is in, and the size of each part."""
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import connected_components

        n = len(self.values)
        given = self.lists >= 0
        rows = np.repeat(np.arange(n), given.sum(axis=1))
        graph = csr_array((np.ones(len(rows), np.int8), (rows, self.lists[given])), shape=(n, n))
        label = connected_components(graph, directed=False)[1].astype(np.int64)
        return label, np.bincount(label)


def widened(
    part: Partition,
    boxes: State,
    shown: Shown,
    zones: np.ndarray,
    target: Target,
    risk: float,
) -> int:
    """Widen generalized records until the values that may be each original's are diverse.

    Parameters
    ----------
    part : Partition
        All n records.
    boxes : State
        n generalized records; record j covers original j. Widened.
    shown : Shown
    zones : numpy.ndarray, shape (n,), int64
        Records may be widened for others of their zone; -1 is suppressed, and takes no part.
    target : Target
    risk : float
        Of values that are still to be drawn: the chance that some original fails after the draw.

    Returns
    -------
    int
        How many pairs of records were widened for each other. O(n q) for each, and for each look at an original.

    Notes
    -----
    The rows that may be an original's are those on a perfect matching of who covers whom. While their values lack
    diversity, the row that brings the most of what is wanted for the least increase of the loss becomes one of them:
    it is widened by the original, and the original's own row by the row's own original. Since that may make more
    matches elsewhere, passes over all originals are repeated until none fails. Equal originals have equal rows, so
    one of them stands for all.

    Where a draw is still to come, nothing here looks at it. A row shows each of its matches' values with chance 1/k
    (exactly), and rows are reckoned to be independent, which they need not be: whether the release is diverse is
    checked after the draw. Whole components of the graph of matches are not random at all: they show the values of
    their own originals.
    """
    return _Widening(part, boxes, shown, zones, target, risk).run()


class _Widening:
    def __init__(
        self, part: Partition, boxes: State, shown: Shown, zones: np.ndarray, target: Target, risk: float
    ) -> None:
        self.part, self.boxes, self.shown, self.zones, self.target = part, boxes, shown, zones, target
        self.merged = Merged.of(part)
        self.links = Components(self.merged, boxes)
        self.chance = shown.shares()
        n = part.n
        self.risk = risk / max(n, 1)
        if shown.random:
            with np.errstate(divide="ignore"):
                self.absent = np.log1p(-np.minimum(self.chance, 1.0))
            self.of, self.sizes = shown.components()

    def run(self) -> int:
        done = 0
        order = self.merged.visits(self.part.rng)
        failing = True
        while failing:
            failing = False
            for u in order.tolist():
                steps = self._until(u)
                done += steps
                failing |= steps > 0
        return done

    def _rows(self, u: int) -> np.ndarray:
        """Which rows may be different original u's, shape (n,), bool."""
        near = np.empty(self.part.n, bool)
        covering_jit(self.merged.state, u, self.boxes, near)
        found: np.ndarray = near & (self.links.of[self.merged.label] == self.links.of[u])
        return found

    def _gap(self, rows: np.ndarray) -> tuple[float, np.ndarray]:
        """What the values of some rows lack, and which values would help."""
        expected = self.chance[rows].sum(axis=0)
        if not self.shown.random:
            return float(self.target.gaps(expected[None, :])[0]), expected
        touched = np.bincount(self.of[rows], minlength=len(self.sizes))
        if ((touched == 0) | (touched == self.sizes)).all():
            # all rows that these values can be on: the draw changes nothing
            return float(self.target.gaps(np.rint(expected)[None, :])[0]), expected
        absent = self.absent[rows].sum(axis=0)
        return self.target.unsafe(expected, absent, self.risk), np.where(
            absent < np.log(self.risk), expected, 0
        )

    def _until(self, u: int) -> int:
        i = int(self.merged.first[u])
        if self.zones[i] < 0:
            i = self._standing_for(u)
            if i < 0:
                return 0
        steps = 0
        n = self.part.n
        while True:
            rows = self._rows(u)
            gap, expected = self._gap(rows)
            if not gap > 0:
                return steps
            free = ~rows & (self.zones == self.zones[i])
            if not free.any():
                return steps
            wanted = self.target.wanted(expected)
            value = self.chance[:, wanted].sum(axis=1)  # not a product: BLAS rounds by its threads
            helps = free & (value > 1e-12)
            if not helps.any():
                helps, value = free, np.ones(n)
            cost = self._cost(u, i)
            price = np.where(cost > 0, cost / np.maximum(value, 1e-12), cost * value)
            price[~helps] = np.inf
            batch = max(1, int(rows.sum()) // STEP_UP) if self.shown.random else 1
            batch = min(batch, int(helps.sum()))
            # Not argpartition: which of several equals it takes may differ between machines.
            best = np.argsort(price, kind="stable")[:batch] if batch > 1 else [int(np.argmin(price))]
            for j in sorted(int(each) for each in best):
                self._widen(j, u)
                self._widen(i, int(self.merged.label[j]))
                steps += 1

    def _standing_for(self, u: int) -> int:
        """The first original equal to u that is not suppressed, -1 if all are."""
        same = np.flatnonzero((self.merged.label == u) & (self.zones >= 0))
        return int(same[0]) if len(same) else -1

    def _cost(self, u: int, i: int) -> np.ndarray:
        """What it costs to make each row a match: both records widened."""
        n, many = self.part.n, len(self.merged.first)
        there = np.empty(n)
        back = np.empty(many)
        join_row_jit(self.part.plan, self.merged.state, u, self.boxes, np.int64(0), np.int64(n), there)
        join_row_jit(self.part.plan, self.boxes, i, self.merged.state, np.int64(0), np.int64(many), back)
        cost: np.ndarray = (there - self.boxes.cost) + (back - self.boxes.cost[i])[self.merged.label]
        return cost

    def _widen(self, j: int, by: int) -> None:
        before = np.empty(len(self.merged.first), bool)
        after = np.empty(len(self.merged.first), bool)
        covered_jit(self.merged.state, self.boxes, j, before)
        if before[by]:
            return
        widen_jit(self.part.plan, self.boxes, j, self.merged.state, by)
        covered_jit(self.merged.state, self.boxes, j, after)
        self.links.add(np.flatnonzero(after & ~before), int(self.merged.label[j]))
