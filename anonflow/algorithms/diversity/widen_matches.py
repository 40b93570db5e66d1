"""Diversity of covers: records are widened until the rows that may be each original's differ (Tassa 2012, Algorithm 7)."""

from __future__ import annotations

import numpy as np

from anonflow.algorithms.concealment.components import Components
from anonflow.algorithms.concealment.expansion import DistinctRecords
from anonflow.algorithms.diversity.target import Target, Targets
from anonflow.algorithms.method import Partition
from anonflow.kernels.concealment import covered_jit, covering_jit
from anonflow.kernels.costs import widen_jit
from anonflow.kernels.row_costs import join_row_jit
from anonflow.kernels.state import State


def widened(
    part: Partition,
    boxes: State,
    row_values: np.ndarray,
    zones: np.ndarray,
    suppressed: np.ndarray,
    target: Target | Targets,
) -> tuple[int, np.ndarray]:
    """Widen generalized records until the values that may be each original's are diverse.

    Parameters
    ----------
    part : Partition
        All n records.
    boxes : State
        n generalized records; record j covers original j. Widened.
    row_values : numpy.ndarray, shape (n, V), int64
        How often each row shows each value: once in every column, or not at all.
    zones : numpy.ndarray, shape (n,), int64
        Records may be widened for others of their zone.
    suppressed : numpy.ndarray, shape (n,), bool
        Rows that cover everything. They are not widened, yet their originals need diversity like others.
    target : Target or Targets

    Returns
    -------
    steps : int
        How many pairs of records were widened for each other. O(n q) for each, and for each look at an original.
    failing : numpy.ndarray, shape (n,), bool
        Originals for whom no other row of their zone was left.

    Notes
    -----
    The rows that may be an original's are those on a perfect matching of who covers whom. While their values lack
    diversity, the row that brings one of what is wanted for the least increase of the loss becomes one of them: it is
    widened by the original, and the original's own row by the row's own original. Since that may make more matches
    elsewhere, passes over all originals are repeated until none fails. Equal originals have equal rows, so one of them
    represents all.
    """
    return _Widening(part, boxes, row_values, zones, suppressed, target).run()


class _Widening:
    def __init__(
        self,
        part: Partition,
        boxes: State,
        row_values: np.ndarray,
        zones: np.ndarray,
        suppressed: np.ndarray,
        target: Target | Targets,
    ) -> None:
        self.part, self.boxes, self.row_values, self.target = part, boxes, row_values, target
        self.zones, self.suppressed = zones, suppressed
        self.merged = DistinctRecords.of(part)
        self.links = Components(self.merged, boxes)

    def run(self) -> tuple[int, np.ndarray]:
        widened = 0
        order = self.merged.visits(self.part.rng)
        lacking = np.zeros(len(self.merged.first), bool)
        while True:
            # a row that is widened for one original may be another one's, too, and change its values: again until nothing changes
            before = widened
            for u in order.tolist():
                steps, lacking[u] = self._until(u)
                widened += steps
            if widened == before:
                return widened, lacking[self.merged.label]

    def _rows(self, u: int) -> np.ndarray:
        """Return which rows may be different original u's, shape (n,), bool."""
        near = np.empty(self.part.n, bool)
        covering_jit(self.merged.state, u, self.boxes, near)
        return near & (self.links.of[self.merged.label] == self.links.of[u])

    def _until(self, u: int) -> tuple[int, bool]:
        """Return how often rows were widened for a different original, and whether it lacks diversity still."""
        i = self._standing_for(u)
        steps = 0
        while True:
            rows = self._rows(u)
            counts = self.row_values[rows].sum(axis=0)
            if not self.target.gaps(counts[None, :])[0] > 0:
                return steps, False
            free = ~rows & ~self.suppressed & (self.zones == self.zones[i])
            if not free.any():
                return steps, True
            helps = free & self.row_values[:, self.target.wanted(counts)].any(axis=1)
            price = np.where(helps if helps.any() else free, self._cost(u, i), np.inf)
            j = int(np.argmin(price))
            self._widen(j, u)
            self._widen(i, int(self.merged.label[j]))
            steps += 1

    def _standing_for(self, u: int) -> int:
        """Return the first original equal to u that is not suppressed, the first of all if all are."""
        same = np.flatnonzero((self.merged.label == u) & ~self.suppressed)
        return int(same[0]) if len(same) else int(self.merged.first[u])

    def _cost(self, u: int, i: int) -> np.ndarray:
        """Return what it costs to make each row a match: both records widened."""
        n, distinct = self.part.n, len(self.merged.first)
        row_cost = np.empty(n)
        back = np.empty(distinct)
        join_row_jit(self.part.plan, self.merged.state, u, self.boxes, np.int64(0), np.int64(n), row_cost)
        join_row_jit(self.part.plan, self.boxes, i, self.merged.state, np.int64(0), np.int64(distinct), back)
        return (row_cost - self.boxes.cost) + (back - self.boxes.cost[i])[self.merged.label]

    def _widen(self, j: int, by: int) -> None:
        before = np.empty(len(self.merged.first), bool)
        after = np.empty(len(self.merged.first), bool)
        covered_jit(self.merged.state, self.boxes, j, before)
        if before[by]:
            return
        widen_jit(self.part.plan, self.boxes, j, self.merged.state, by)
        covered_jit(self.merged.state, self.boxes, j, after)
        self.links.add(np.flatnonzero(after & ~before), int(self.merged.label[j]))
