"""Make classes diverse by exchanging members between them, and by uniting classes where no exchange helps."""

from __future__ import annotations

import numpy as np

from anonflow.algorithms.diversity.target import Targets
from anonflow.algorithms.method import Partition
from anonflow.generalization import Generalization
from anonflow.kernels.costs import join_row_jit, load
from anonflow.kernels.state import State

__all__ = ["exchanged"]

LARGE = 64
"""Members of larger classes are not exchanged; such classes only take others in."""


def exchanged(part: Partition, labels: np.ndarray, values: np.ndarray, targets: Targets) -> np.ndarray:
    """Exchange members and unite classes until all classes are diverse.

    Parameters
    ----------
    part : Partition
        P records.
    labels : numpy.ndarray, shape (P,), int64
        Classes 0..b-1.
    values : numpy.ndarray, shape (P, c), int64
        Each record's value in every column, numbered as in `targets`.
    targets : Targets
        All records together keep them.

    Returns
    -------
    numpy.ndarray, shape (P,), int64
        Labels of diverse classes; none is smaller than the smallest before. O(P q) for each exchange that is looked
        at, times the members of the class that lacks most.

    Notes
    -----
    Ours. The class that lacks most diversity (ties: the lowest) gives one member for one of another class, or is united
    with another class: what lowers the lack, summed over both, at the least increase of the information loss for
    what it lowers. An exchange may not make another class lack more than before. Every exchange lowers the sum of
    what is lacking and every union the number of classes, so the algorithm ends: one class of all records at the
    latest.
    """
    return _Exchange(part, labels, values, targets).run()


class _Exchange:
    def __init__(self, part: Partition, labels: np.ndarray, values: np.ndarray, targets: Targets) -> None:
        self.part, self.values, self.targets = part, values, targets
        self.label = labels.astype(np.int64).copy()
        own = Generalization.of(part.records)
        self.own = load(part.plan, own.lo, own.hi, own.bits)
        # record x of `rest` is x's class without x
        self.rest = load(part.plan, own.lo, own.hi, own.bits)
        b = int(labels.max(initial=-1)) + 1
        self.boxes = self._joined(Generalization.join_by_class(part.records, self.label), self._first(b))
        self.shows = np.zeros((part.n, targets.size), np.int64)
        for column in values.T:
            self.shows[np.arange(part.n), column] = 1
        self.counts = np.zeros((b, targets.size), np.int64)
        np.add.at(self.counts, self.label, self.shows)
        self.size = np.bincount(self.label, minlength=b)
        self.gaps = targets.gaps(self.counts)
        self.movable = np.zeros(part.n, bool)
        for at in range(b):
            self._renew(at)

    def _first(self, b: int) -> np.ndarray:
        first = np.zeros(b, np.int64)
        first[self.label[::-1]] = np.arange(self.part.n)[::-1]
        return first

    def _joined(self, generalization: Generalization, at: np.ndarray) -> State:
        generalization = generalization.take(at)
        return load(self.part.plan, generalization.lo, generalization.hi, generalization.bits)

    def run(self) -> np.ndarray:
        while True:
            m = int(np.argmax(self.gaps))
            if not self.gaps[m] > 0:
                return np.unique(self.label, return_inverse=True)[1].astype(np.int64)
            union = self._best_union(m)
            exchange = self._best_exchange(m)
            if exchange is not None and (union is None or exchange[0] <= union[0]):
                _, a, x = exchange
                self.label[a], self.label[x] = self.label[x], m
                changed = (m, int(self.label[a]))
            else:
                assert union is not None  # all records together are diverse
                other = union[1]
                self.label[self.label == other] = m
                changed = (m, other)
            for at in changed:
                self._renew(at)

    def _best_union(self, m: int) -> tuple[float, int] | None:
        there = self.size > 0
        there[m] = False
        if not there.any():
            return None
        cost = np.empty(len(self.size))
        join_row_jit(self.part.plan, self.boxes, m, self.boxes, np.int64(0), np.int64(len(cost)), cost)
        size, box = self.size, self.boxes.cost
        rise = (size + size[m]) * cost - size * box - size[m] * box[m]
        lower = self.gaps + self.gaps[m] - self.targets.gaps(self.counts + self.counts[m])
        price = np.where(there & (lower > 0), _price(rise, lower), np.inf)
        if np.isfinite(price).any():
            best = int(np.argmin(price))
            return float(price[best]), best
        # no other class helps by itself: the cheapest, if there is no exchange either
        return np.inf, int(np.argmin(np.where(there, rise, np.inf)))

    def _best_exchange(self, m: int) -> tuple[float, int, int] | None:
        if not self.size[m] <= LARGE:
            return None
        n, plan = self.part.n, self.part.plan
        free = self.movable & (self.label != m)
        there = np.flatnonzero(free)
        if not len(there):
            return None
        of = self.label[there]
        mine, theirs = np.empty(n), np.empty(n)
        best_pair: tuple[float, int, int] | None = None
        tried: dict[bytes, np.ndarray] = {}
        for a in np.flatnonzero(self.label == m).tolist():
            key = self.values[a].tobytes()
            if key not in tried:  # the gain depends on the values alone
                own_gaps = self.targets.gaps(self.counts[m] - self.shows[a] + self.shows[there])
                their_gaps = self.targets.gaps(self.counts[of] - self.shows[there] + self.shows[a])
                lower = self.gaps[m] - own_gaps + self.gaps[of] - their_gaps
                tried[key] = np.where((own_gaps < self.gaps[m]) & (their_gaps <= self.gaps[of]), lower, 0.0)
            lower = tried[key]
            if not (lower > 0).any():
                continue
            join_row_jit(plan, self.rest, a, self.own, np.int64(0), np.int64(n), mine)
            join_row_jit(plan, self.own, a, self.rest, np.int64(0), np.int64(n), theirs)
            rise = self.size[m] * (mine[there] - self.boxes.cost[m])
            rise = rise + self.size[of] * (theirs[there] - self.boxes.cost[of])
            price = np.where(lower > 0, _price(rise, lower), np.inf)
            best = int(np.argmin(price))
            if best_pair is None or price[best] < best_pair[0]:
                best_pair = float(price[best]), a, int(there[best])
        return best_pair

    def _renew(self, at: int) -> None:
        """Renew a class whose members have changed: its record, its values, and its record without each member."""
        members = np.flatnonzero(self.label == at)
        self.size[at] = len(members)
        self.counts[at] = self.shows[members].sum(axis=0)
        self.gaps[at] = self.targets.gaps(self.counts[at][None, :])[0]
        if not len(members):
            return
        self.movable[members] = 1 < len(members) <= LARGE
        lists = np.arange(len(members))[None, :]
        if self.movable[members[0]]:
            # the lists without each member, and last the whole one; a name twice changes no join
            lists = np.repeat(lists, len(members) + 1, axis=0)
            diagonal = np.arange(len(members))
            lists[diagonal, diagonal] = (diagonal - 1) % len(members)
        generalization = Generalization.join_of(self.part.records.take(members), lists.astype(np.int32))
        state = load(self.part.plan, generalization.lo, generalization.hi, generalization.bits)
        for whole, box, part in zip(self.rest, self.boxes, state, strict=True):
            box[..., at] = part[..., -1]
            if len(lists) > 1:
                whole[..., members] = part[..., :-1]


def _price(rise: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """Return loss for each unit of what is lacking; a gain counts the more, the more it lowers."""
    lowered = np.maximum(lower, 1e-300)
    return np.where(rise > 0, rise / lowered, rise * lowered)
