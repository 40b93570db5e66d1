"""Classes for sets of columns: cells of a class are lowered wherever each set alone still names nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anonflow.algorithms.method import Outcome, Partition
from anonflow.algorithms.set_options import columns_of, promise_of_sets, qis_of, sets_of
from anonflow.criteria.matching.graph import (
    Bipartite,
    DistinctRows,
    consistency_graph,
    covered_pairs,
    merge,
    runs,
)
from anonflow.criteria.matching.max_flow import cyclic_edges
from anonflow.criteria.set_counts import on_columns
from anonflow.errors import DataError
from anonflow.generalization import Generalization
from anonflow.kernels.classes.lowering import lower_cells_jit
from anonflow.loss import cell_costs
from anonflow.partition import bounded, limited
from anonflow.table.records import Records, equal_columns, rank_within

FROM_CLASSES = 200_000
"""Records times sets up to which all cells of the classes are there to begin with."""

MOST_TRIES = 100_000
"""Cells that are lowered after complete matchings, times records and sets."""

MOST_COVERED = 50_000_000
"""People of rows on sets that are in memory together."""


def for_sets(
    part: Partition,
    k: int,
    outcome: Outcome,
    sets: Any,
    of: int | None,
    importance: Any,
    subject: str,
    levels: Sequence[Generalization] = (),
    *,
    follows_patterns: bool = False,
) -> Outcome:
    """Return classes with as few generalized cells as sets of columns need; the classes themselves where no set is named.

    The cells of the classes are lowered, important and expensive ones first, wherever on each set every row still covers k people,
    everybody is covered by k rows, and all of these lie on complete matchings.

    Parameters
    ----------
    part : Partition
        P records.
    k : int
    outcome : Outcome
        Classes of at least k records, of these records, whatever their weights.
    sets : list of lists of str or None
    of : int or None
    importance : mapping or None
        Column -> number, 0 where none is given. Cells of important columns are lowered first.
    subject : str
        The method, for errors.
    levels : sequence of Generalization, optional
        Of these records, between their values and the cells of the classes, from low to high: cells of a level that are
        equal cover the same values. Without them a cell is that of the class or the value itself.
    follows_patterns : bool, optional
        Whether a record that is suppressed must not hide some of its cells only.

    Returns
    -------
    Outcome
        With neither matches nor classes. Further facts: `guarantee`, with the sets; `lowered_cells`, published narrower than those of
        the class.

    Raises
    ------
    ParameterError
        If the sets are not sets of columns, the importance is none of these, or the table has a unit column.

    Notes
    -----
    On a set, k people with the same values are covered by each other's rows, and so are k of one class by the cells of the class. So
    the classes keep the promise, and so do the cells of :func:`_wide`: rows whose values on a set are rare, and those that join them,
    have the class's cells there. A small table begins with all cells of the classes, a large one with these. Each cell is then lowered
    if the counts of rows and people allow it. Where complete matchings have become too few, the rows have the cells of
    :func:`_wide` again, and in the end their classes.

    Of fewer than k suppressed records, and of all where there are boundaries, limits or patterns, those are published as they are whose values are
    frequent on each set; the others stay suppressed, and cover nobody. k or more are a class. O(s n log n + E) for s sets, E the people whom the rows of wide cells cover on the sets.
    """
    records, names = part.records, columns_of(part.records.domains)
    chosen = sets_of(records, sets, of, importance, subject)
    if not chosen:
        return outcome
    outcome = replace(outcome, generalization=replace(outcome.generalization, domains=records.domains))
    suppressed = outcome.suppressed
    originals = Generalization.of(records)
    classes = outcome.generalization.classes() if outcome.classes is None else outcome.classes
    if suppressed.sum() >= k and not (follows_patterns or limited(records) or bounded(records)):
        # a class; under limits a record is suppressed whole, or not at all
        suppressed = np.zeros(records.n, bool)
    is_frequent = suppressed & _all_frequent(records, chosen, k, suppressed)
    suppressed = suppressed & ~is_frequent
    rows = np.flatnonzero(~suppressed)
    classes = np.where(outcome.suppressed, -1, classes)
    classes = np.where(is_frequent, classes.max(initial=0) + 1 + np.arange(records.n), classes)
    joined = outcome.generalization.take(np.arange(records.n))
    write_cells(joined, originals, range(records.q), np.flatnonzero(is_frequent))
    lowering = _Lowering(
        records.take(rows),
        joined.take(rows),
        [level.take(rows) for level in (originals, *levels)],
        np.unique(classes[rows], return_inverse=True)[1],
        [[names.index(name) for name in columns] for columns in chosen],
        k,
    )
    cells = joined.take(np.arange(records.n))
    lowering.run(part.loss, [float((importance or {}).get(name, 0)) for name in names])
    visible = lowering.cells
    if not follows_patterns:  # their cells are values or hidden
        visible = narrowed_for_sets(records.take(rows), visible, chosen, k)
    for part_of in ("lo", "hi", "bits"):
        getattr(cells, part_of)[:, rows] = getattr(visible, part_of)
    facts = outcome.facts | {
        "guarantee": promise_of_sets(sets, chosen, "matches"),
        "lowered_cells": sum(int(_differ(cells, outcome.generalization, at).sum()) for at in lowering.qis),
    }
    return Outcome(cells, suppressed=outcome.suppressed & cells.suppressed_rows(), facts=facts)


def _all_frequent(
    records: Records, chosen: Sequence[Sequence[str]], k: int, suppressed: np.ndarray
) -> np.ndarray:
    """Return which records have values that k have on each set, of those that are not suppressed, and of these themselves."""
    sets = qis_of(records.domains, chosen) if suppressed.any() else []
    labels = [equal_columns(records.codes[:, at].T, records.n) for at in sets]
    good = np.ones(records.n, bool)
    while True:
        # whoever stays suppressed makes the values of others rarer: again, until nobody is left to drop
        counted = ~suppressed | good
        frequent = [np.bincount(label[counted], minlength=len(label))[label] >= k for label in labels]
        now = good & np.all(frequent, axis=0)
        if (now == good)[suppressed].all():
            return good
        good = now


@dataclass(eq=False)
class _Lowering:
    """The cells of classes, which are lowered while each set of columns holds.

    Attributes
    ----------
    records : Records
        n records.
    joined : Generalization
        The cells of their classes.
    levels : list of Generalization
        Lower cells of all records: their values, and what lies between.
    classes : numpy.ndarray, shape (n,), int64
        Labels 0.. of classes of at least k.
    sets : list of list of int
        Published columns.
    k : int
    cells : Generalization
        What is published.
    """

    records: Records
    joined: Generalization
    levels: list[Generalization]
    classes: np.ndarray
    sets: list[list[int]]
    k: int

    def __post_init__(self) -> None:
        domains = self.records.domains
        self.names = columns_of(domains)
        self.qis = [[a for a, domain in enumerate(domains) if domain.column == name] for name in self.names]
        self.cells = self.joined.take(np.arange(self.records.n))
        lower = np.array([[_differ(level, self.joined, at) for at in self.qis] for level in self.levels])
        self.top = np.logical_and.accumulate(lower).sum(axis=0)  # how many levels are below the class's cell
        self.at = self.top.copy()
        self.labels = np.array(
            [
                [equal_columns(level.cell_numbers(at), self.records.n) for at in self.qis]
                for level in self.levels
            ],
            np.int32,
        )

    def run(self, loss: str, importance: Sequence[float]) -> None:
        """Lower the cells."""
        domains = self.records.domains
        weight = np.array([domain.weight for domain in domains])[:, None]
        rises = weight * (cell_costs(self.joined, loss) - cell_costs(self.levels[0], loss))
        prices = np.array([rises[at].sum(axis=0) for at in self.qis])
        rank = np.unique(importance, return_inverse=True)[1]
        prices += (rank * (1 + prices.max(initial=0.0)))[:, None]  # any important cell before all others
        wide = _wide(
            [(np.array(columns), np.flatnonzero(self._rare(columns))) for columns in self.sets],
            prices,
            self.classes,
            self.k,
        )
        start = wide
        if self.records.n * len(self.sets) <= FROM_CLASSES:
            in_sets = np.isin(np.arange(len(self.names)), np.concatenate(self.sets))
            start = np.broadcast_to(in_sets[:, None], wide.shape)
        self._publish(np.where(start, self.top, 0))
        c, row = np.nonzero(self.at)
        order = np.lexsort((row, c, -prices[c, row]))
        self._lower(c[order], row[order])
        self._complete_matchings(wide, prices)

    def _rare(self, columns: Sequence[int]) -> np.ndarray:
        """Return which records have values that fewer than k have, on some columns, shape (n,), bool."""
        label = equal_columns(self.labels[0][list(columns)], self.records.n)
        return np.asarray(np.bincount(label)[label] < self.k)

    def _publish(self, at: np.ndarray) -> None:
        """Give the cells other levels, shape (q, n); `top` is that of the class."""
        for c, qis in enumerate(self.qis):
            for level in np.unique(at[c, at[c] != self.at[c]]).tolist():
                rows = np.flatnonzero((at[c] != self.at[c]) & (at[c] == level))
                high = self.top[c, rows] == level
                write_cells(self.cells, self.joined, qis, rows[high])
                if not high.all():
                    write_cells(self.cells, self.levels[level], qis, rows[~high])
        self.at = at

    def _graph(self, columns: Sequence[int]) -> Bipartite:
        """Return which rows cover whom on some columns; rows that show their values cover those who have them, and are not compared."""
        people, rows = on_columns(self.records, self.cells, [self.names[c] for c in columns])
        originals = merge(list(people.codes.T), people.n)
        exact = (self.at[columns] == 0).all(axis=0) & (people.codes >= 0).all(axis=1)
        others = np.flatnonzero(~exact)
        boxes = merge(list(rows.take(others).numbers()), len(others))
        start, end = covered_pairs(people.take(originals.first), rows.take(others[boxes.first]))
        label = originals.label.copy()
        label[others] = originals.size + boxes.label
        size = originals.size + boxes.size
        published = DistinctRows(
            label, np.concatenate([originals.first, others[boxes.first]]), np.bincount(label, minlength=size)
        )
        identity = np.arange(originals.size)
        return Bipartite(
            originals,
            published,
            np.concatenate([identity, originals.size + start]),
            np.concatenate([identity.astype(np.int32), end]),
        )

    def _lower(self, c: np.ndarray, row: np.ndarray) -> None:
        """Lower cells in this order; so many together that the people of their rows fit the memory."""
        n, s = self.records.n, len(self.sets)
        of_column = [
            [x for x, columns in enumerate(self.sets) if column in columns]
            for column in range(len(self.names))
        ]
        size = np.zeros(n, np.int64)
        for columns in self.sets:
            graph = self._graph(columns)
            size += np.diff(graph.start)[graph.published.label]
        batch = (
            np.cumsum(size[row]) // MOST_COVERED
            if size.sum() > MOST_COVERED
            else np.zeros(len(row), np.int64)
        )
        for number in range(int(batch.max(initial=-1)) + 1):
            cells = np.flatnonzero(batch == number)
            column, rows = c[cells], row[cells]
            place = np.full((s, n), -1, np.int32)
            start, end, person, people, covering = [np.zeros(1, np.int64)], [], [], [], []
            lists = edges = combinations = 0
            for x, columns in enumerate(self.sets):
                graph = self._graph(columns)
                rows_of_set = np.unique(rows[np.isin(column, columns)])
                box = graph.published.label[rows_of_set]
                length = np.diff(graph.start)[box]
                place[x, rows_of_set] = lists + np.arange(len(rows_of_set))
                start.append(edges + np.cumsum(length))
                end.append(combinations + graph.end[runs(graph.start[box], length)])
                person.append(graph.originals.first)
                people.append(graph.originals.count)
                covering.append(graph.degrees()[0])
                lists, edges = lists + len(rows_of_set), edges + int(length.sum())
                combinations += graph.originals.size
            level = np.empty(len(cells), np.int64)
            lower_cells_jit(
                column,
                rows,
                self.at[column, rows],
                np.cumsum([0, *map(len, of_column)]),
                np.array([x for of in of_column for x in of], np.int64),
                place,
                np.concatenate(start),
                np.concatenate(end).astype(np.int32),
                np.ones(edges, bool),
                np.concatenate(person),
                np.concatenate(people),
                np.concatenate(covering),
                self.labels,
                self.k,
                level,
            )
            at = self.at.copy()
            at[column[level >= 0], rows[level >= 0]] = level[level >= 0]
            self._publish(at)

    def _complete_matchings(self, wide: np.ndarray, prices: np.ndarray) -> None:
        """Raise cells until, on each set, k rows of each person and k people of each row lie on complete matchings.

        Raised are cells of `wide`, which keep the promise where whole classes have them: first of the rows that lack something, then of
        their classes. Then cells are lowered again one by one, as many as the size of the table allows.
        """
        raised = False
        for columns in self.sets:
            while len(rows := np.flatnonzero(self._short(columns))):
                for group in (rows, np.flatnonzero(np.isin(self.classes, self.classes[rows]))):
                    at = self.at.copy()
                    cells = np.ix_(np.array(columns), group)
                    at[cells] = np.where(wide[cells], self.top[cells], at[cells])
                    if (at != self.at).any():
                        break
                self._publish(at)
                raised = True
        c, row = np.nonzero(self.at)
        tries = MOST_TRIES // (self.records.n * len(self.sets)) if raised else 0
        for cell in np.lexsort((row, c, -prices[c, row]))[:tries].tolist():
            self._lower_matched(int(c[cell]), int(row[cell]))

    def _lower_matched(self, c: int, row: int) -> None:
        """Give a cell the lowest level under which there are complete matchings enough."""
        now = self.at
        for level in range(int(now[c, row])):
            at = now.copy()
            at[c, row] = level
            self._publish(at)
            if not any(self._short(columns).any() for columns in self.sets if c in columns):
                return
        self._publish(now)

    def _short(self, columns: Sequence[int]) -> np.ndarray:
        """Return whose rows, or people of whose row, on complete matchings of a set are fewer than k, shape (n,), bool."""
        return _lacks(_on_matchings(self._graph(columns)), self.k)


def narrowed_for_sets(
    records: Records,
    cells: Generalization,
    chosen: Sequence[Sequence[str]],
    k: int,
    rows: str = "matches",
    exempt: np.ndarray | None = None,
) -> Generalization:
    """Return cells whose intervals end at values that some record shows, wherever each set of columns allows it.

    Somebody whose value is hidden may need the row of a wide interval; such an interval stays, and the release warns of it.

    Parameters
    ----------
    records : Records
        n records.
    cells : Generalization
        Of these records; each covers its own.
    chosen : sequence of sequence of str
        Sets of columns.
    k : int
    rows : {"matches", "compatible"}, optional
        Which rows and people count on a set.
    exempt : numpy.ndarray, shape (n,), bool, optional
        Records that need no company.

    Returns
    -------
    Generalization
        All intervals of a column are tried together first, then one by one as far as the size of the table allows.
    """

    narrowed = cells.narrowed(records)
    needs = np.ones(records.n, bool) if exempt is None else ~exempt

    def names_nobody(trial: Generalization, columns: Sequence[str]) -> bool:
        try:
            graph = consistency_graph(*on_columns(records, trial, columns))
        except DataError:  # more pairs than can be listed: the interval stays, as the release says
            return False
        return not (_lacks(_on_matchings(graph) if rows == "matches" else graph, k) & needs).any()

    tries = MOST_TRIES // (records.n * len(chosen))
    for t, a in enumerate(cells.layout.ranges.tolist()):
        changed = (narrowed.lo[t] != cells.lo[t]) | (narrowed.hi[t] != cells.hi[t])
        if not changed.any():
            continue
        sets = [columns for columns in chosen if cells.domains[a].column in columns]
        interval = equal_columns([cells.lo[t], cells.hi[t]], cells.n)
        several = [changed & (interval == label) for label in np.unique(interval[changed])[:tries].tolist()]
        for at in [changed, *several]:
            lo, hi = cells.lo.copy(), cells.hi.copy()
            lo[t, at], hi[t, at] = narrowed.lo[t, at], narrowed.hi[t, at]
            trial = replace(cells, lo=lo, hi=hi)
            if all(names_nobody(trial, columns) for columns in sets):
                cells = trial
            if at is changed and cells is trial:
                break
    return cells


def _lacks(graph: Bipartite, k: int) -> np.ndarray:
    """Return who has fewer than k rows, or whose row fewer than k people, shape (n,), bool."""
    of_person, of_row = graph.degrees()
    return np.asarray((of_person[graph.originals.label] < k) | (of_row[graph.published.label] < k))


def _on_matchings(graph: Bipartite) -> Bipartite:
    """Return the edges that lie on complete matchings: everybody's own row makes one, and cycles lead from it to all others."""
    u, v = graph.originals.size, graph.published.size
    pair = graph.box.astype(np.int64) * u + graph.end
    used = np.isin(pair, graph.published.label * u + graph.originals.label)
    return graph.only(cyclic_edges(u, v, graph.end, graph.box, used))


def _wide(
    sets: Sequence[tuple[np.ndarray, np.ndarray]], prices: np.ndarray, classes: np.ndarray, k: int
) -> np.ndarray:
    """Return which cells are the class's, shape (q, n), bool.

    Parameters
    ----------
    sets : sequence of tuple of numpy.ndarray
        Columns, and the rows whose values there are rare.
    prices : numpy.ndarray, shape (q, n), float64
        How much more the class's cell costs.
    classes : numpy.ndarray, shape (n,), int64
        Labels 0.. of classes of at least k.
    k : int
    """
    wide = np.zeros(prices.shape, bool)
    # the set with most rare rows first: cells that it widens cost the later sets nothing
    for at, rows in sorted(sets, key=lambda rare: -len(rare[1])):
        count = np.bincount(classes[rows], minlength=int(classes.max(initial=0)) + 1)
        company = np.flatnonzero((count > 0)[classes] & (count < k)[classes])
        company = np.setdiff1d(company, rows, assume_unique=True)
        cost = np.where(wide[at][:, company], 0.0, prices[at][:, company]).sum(axis=0)
        order = company[np.lexsort((company, cost, classes[company]))]
        joining = order[rank_within(classes[order]) < (k - count)[classes[order]]]
        wide[at[:, None], rows] = True
        wide[at[:, None], joining] = True
    return wide


def _differ(cells: Generalization, others: Generalization, at: Sequence[int]) -> np.ndarray:
    """Return which generalized records differ in some quasi-identifiers, shape (n,), bool."""
    pairs = zip(cells.cell_numbers(at), others.cell_numbers(at), strict=True)
    return np.any([left != right for left, right in pairs], axis=0)


def write_cells(cells: Generalization, source: Generalization, at: Sequence[int], rows: np.ndarray) -> None:
    """Give some generalized records the cells of others in some quasi-identifiers, in place."""
    for target, values in zip(cells.cell_numbers(at), source.cell_numbers(at), strict=True):
        target[rows] = values[rows]
