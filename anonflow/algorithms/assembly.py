"""Combine the outcomes of several partitions: generalized records, matches, classes, facts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from anonflow.algorithms.method import Outcome
from anonflow.generalization import Generalization, Layout
from anonflow.table.domain import Domain
from anonflow.table.records import places_in, take_into

TOGETHER = 1 << 17
"""Rows of partitions that are written together, if there is not one partition of more."""


class Assembly:
    """The outcomes of partitions as one, written into arrays of all records as they come, in any order.

    A partition's records lie together in these arrays until all have come, so that each page of a mapped array is written
    once; then each array is put into the order of the table, with one pass over it.

    Parameters
    ----------
    domains : sequence of Domain
        The table's boundaries: a method that ran without boundaries is still measured against them.
    n : int
        Records.
    index : sequence of numpy.ndarray, integer
        Where each partition's records are among the n, no place twice. Records in no partition are suppressed.
    empty : callable
        Makes arrays, as :func:`numpy.empty` does.

    Notes
    -----
    O(n (q + k)) time and memory in all. Suppressed records cover everything, and share one class.
    """

    def __init__(
        self,
        domains: Sequence[Domain],
        n: int,
        index: Sequence[np.ndarray],
        empty: Callable[..., np.ndarray] = np.empty,
    ) -> None:
        self._domains, self._n, self._index, self._empty = tuple(domains), n, index, empty
        self._matches: np.ndarray | None = None
        self._classes: np.ndarray | None = None
        self._lists_all = self._labels_all = True
        self._starts = np.cumsum([0, *map(len, index)]).tolist()
        self._facts: list[Mapping[str, Any]] = [{}] * len(index)
        self._labels = np.zeros(len(index) + 1, np.int64)

    def add(self, first: int, outcomes: Sequence[Outcome]) -> None:
        """Write the outcomes of partitions that follow one another; those that come again replace what was written.

        Parameters
        ----------
        first : int
            Number of the first partition.
        outcomes : sequence of Outcome
        """
        starts, last = self._starts, first + len(outcomes)
        self._facts[first:last] = [outcome.facts for outcome in outcomes]
        start = first
        while start < last:
            stop = min(last, max(start + 1, bisect_right(starts, starts[start] + TOGETHER) - 1))
            self._write(start, outcomes[start - first : stop - first])
            start = stop

    def _write(self, first: int, outcomes: Sequence[Outcome]) -> None:
        """Write the records of some partitions at once: calls for each of 40,000 take longer than what they do."""
        place = slice(self._starts[first], self._starts[first + len(outcomes)])
        whole, suppressed = self._cells, self._suppressed[place]
        cells = [outcome.generalization for outcome in outcomes]
        np.concatenate([part.lo for part in cells], axis=1, out=whole.lo[:, place])
        np.concatenate([part.hi for part in cells], axis=1, out=whole.hi[:, place])
        np.concatenate([part.bits for part in cells], axis=1, out=whole.bits[:, place])
        np.concatenate([outcome.suppressed for outcome in outcomes], out=suppressed)
        if suppressed.any():
            whole.suppress(place.start + np.flatnonzero(suppressed))
        index = self._index[first : first + len(outcomes)]
        lengths = np.array([len(at) for at in index])
        lists = [outcome.matches for outcome in outcomes if outcome.matches is not None]
        self._lists_all &= len(lists) == len(outcomes)
        if self._lists_all and lists:
            width = max(rows.shape[1] for rows in lists)
            matches = self._matches = self._wide_enough(width)
            local = np.concatenate([_as_wide(rows, width) for rows in lists])
            before = np.repeat(np.cumsum(lengths) - lengths, lengths)
            # where nothing is listed some other place is read, and not used
            matches[place, :width] = np.where(local < 0, -1, np.concatenate(index)[local + before[:, None]])
            # other partitions may have needed more places
            matches[place, width:] = -1
        labels = [outcome.classes for outcome in outcomes if outcome.classes is not None]
        self._labels_all &= len(labels) == len(outcomes)
        if self._labels_all and labels:
            if self._classes is None:
                self._classes = self._empty((self._n,), np.int64)
            part = np.repeat(np.arange(len(labels)), lengths)
            # methods number classes as they like: here 0, 1, 2 ... in each partition
            values, value = np.unique(np.concatenate(labels), return_inverse=True)
            pairs, label = np.unique(part * len(values) + value, return_inverse=True)
            counts = np.bincount(pairs // max(len(values), 1), minlength=len(labels))
            self._classes[place] = label - (np.cumsum(counts) - counts)[part]
            self._labels[first + 1 : first + len(outcomes) + 1] = counts

    def whole(self) -> Outcome:
        """Return the outcome of all records, once; every partition was added."""
        if not self._index:
            self._matches, self._classes = self._wide_enough(1), self._empty((self._n,), np.int64)
        rest = np.ones(self._n, bool)
        for at in self._index:
            rest[at] = False
        unplaced, first = np.flatnonzero(rest), self._starts[-1]
        self._suppressed[first:] = True
        self._cells.suppress(np.arange(first, self._n))
        if self._matches is not None:
            self._matches[first:, 0], self._matches[first:, 1:] = unplaced, -1
        classes = self._all_classes() if self._labels_all else None
        self._restore_order(np.concatenate([*self._index, unplaced]))
        return Outcome(
            self._cells,
            matches=self._matches if self._lists_all else None,
            classes=classes,
            suppressed=self._suppressed,
            facts=gathered_facts(self._facts),
        )

    def _restore_order(self, position: np.ndarray) -> None:
        """Put the arrays into the order of the table, where these are the positions of their records."""
        if (position[1:] > position[:-1]).all():
            return
        place, cells = places_in(position, self._n), self._cells
        # row by row: one row at a time is held twice, not the whole table
        flat = [row for array in (cells.lo, cells.hi, cells.bits) for row in array]
        flat += [self._suppressed, *([] if self._classes is None else [self._classes])]
        for array in flat:
            take_into(array, array.copy(), place)
        if self._matches is not None:
            before, self._matches = self._matches, self._empty(self._matches.shape, np.int32)
            take_into(self._matches, before, place)

    @cached_property
    def _cells(self) -> Generalization:
        layout = Layout.of(self._domains)
        lo, hi = (self._empty((len(layout.ranges), self._n), np.int32) for _ in range(2))
        return Generalization(
            self._domains, lo, hi, self._empty((int(layout.offset[-1]), self._n), np.uint64)
        )

    @cached_property
    def _suppressed(self) -> np.ndarray:
        return self._empty((self._n,), bool)

    def _wide_enough(self, width: int) -> np.ndarray:
        """Return the array of matches with at least so many columns: partitions of odd sizes may need a match more than others."""
        matches = self._matches
        if matches is not None and matches.shape[1] >= width:
            return matches
        wider = self._empty((self._n, width), np.int32)
        if matches is not None:
            wider[:, : matches.shape[1]], wider[:, matches.shape[1] :] = matches, -1
        return wider

    def _all_classes(self) -> np.ndarray | None:
        """Return class labels 0, 1, 2, ... in the order of partitions, suppressed records in the last class."""
        classes = self._classes
        assert classes is not None
        before = np.cumsum(self._labels)
        for start, stop, used in zip(self._starts, self._starts[1:], before.tolist(), strict=False):
            classes[start:stop] += used
        classes[self._suppressed] = before[-1]
        occupied = np.zeros(int(before[-1]) + 1, bool)
        occupied[classes] = True
        # all members of a class may have been suppressed: no number is left out
        if not occupied.all():
            classes[:] = (np.cumsum(occupied) - 1)[classes]
        return classes


def gathered(
    domains: Sequence[Domain], outcomes: Sequence[Outcome], index: Sequence[np.ndarray], n: int
) -> Outcome:
    """Return the outcomes of partitions as one, as :class:`Assembly` does."""
    assembly = Assembly(domains, n, index)
    assembly.add(0, outcomes)
    return assembly.whole()


def _as_wide(matches: np.ndarray, width: int) -> np.ndarray:
    """Return lists of matches with so many places; -1 where a list has fewer."""
    missing = width - matches.shape[1]
    return np.pad(matches, ((0, 0), (0, missing)), constant_values=-1) if missing else matches


def gathered_facts(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the facts of several partitions: numbers are added up, others kept where all partitions agree."""
    facts: dict[str, Any] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        values = [part[name] for part in parts if name in part]
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            facts[name] = sum(values)
        elif all(value == values[0] for value in values):
            facts[name] = values[0]
    if "lower_bound" in facts and "cost" in facts:
        # ratios cannot be added: compute the ratio of the sums
        facts["gap"] = 1 - facts["lower_bound"] / facts["cost"] if facts["cost"] else 0.0
        facts["proven"] = facts["lower_bound"] >= facts["cost"]
    return facts
