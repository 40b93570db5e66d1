"""The lattice of full-domain generalization: a level for each column, and the cost of each node."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from anonflow.algorithms.diversity.target import SensitiveValues
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.lattice import count_groups_jit, small_groups_jit
from anonflow.loss import LOSSES, measure_named
from anonflow.loss.costs import run_costs
from anonflow.loss.measure import Loss
from anonflow.table import Domain, Records, equal_columns
from anonflow.table.level_cells import MOST_WIDTHS, Runs, coded_runs, interval_runs, node_runs, position_runs
from anonflow.table.named_settings import LEVELS
from anonflow.table.schema import did_you_mean

MOST_NODES = 10_000_000
"""Nodes of a lattice that is searched; 25 bytes each."""

MOST_WIDTH = sys.float_info.max
"""A width is below it: whole numbers beyond are no numbers of a table."""

MOST_KEPT = 16
"""Groups of counted nodes that are kept, as a multiple of the row types; 16 bytes each."""

MOST_COUNTS = 1 << 22
"""Numbers of values that are counted at a time; 8 bytes each."""


@dataclass(frozen=True, eq=False)
class ColumnLevels:
    """The levels of a published column: at each, every value has one cell.

    Attributes
    ----------
    column : str
    labels : tuple of str, length L
        What each level is, from the values themselves to the whole domain.
    qis : tuple of int
        The coded quasi-identifiers (QIs) that the column is made of: one, one for each position of a code, or numbers and the codes beside them.
    lo, hi : tuple of numpy.ndarray, each shape (L, D + 1), int32
        For each of these QIs, the run that each code is published as; the last one that of a missing number. Of the codes
        beside numbers, the run is the set of its members.

    Notes
    -----
    Invariant: the runs of a level are unions of those of the level before, so that equal cells stay equal.
    """

    column: str
    labels: tuple[str, ...]
    qis: tuple[int, ...]
    lo: tuple[np.ndarray, ...]
    hi: tuple[np.ndarray, ...]

    def take(self, levels: Sequence[int]) -> ColumnLevels:
        """Return some of the levels, by their numbers."""
        return replace(
            self,
            labels=tuple(self.labels[level] for level in levels),
            lo=tuple(lo[levels] for lo in self.lo),
            hi=tuple(hi[levels] for hi in self.hi),
        )

    def write(
        self, cells: Generalization, records: Records, level: int | np.ndarray, rows: Any = slice(None)
    ) -> None:
        """Give records the cells of a level, or each that of its own, in place.

        Parameters
        ----------
        cells : Generalization
        records : Records
        level : int, or numpy.ndarray of the rows' number
        rows : slice or numpy.ndarray, optional
            Which records; all without it.
        """
        layout = cells.layout
        for a, lo, hi in zip(self.qis, self.lo, self.hi, strict=True):
            code = records.codes[rows, a]  # -1, a missing number, is the last entry
            if a in layout.words:
                words = _runs_as_sets(records.domains[a], lo.ravel(), hi.ravel()).reshape(-1, *lo.shape)
                cells.bits[layout.words[a], rows] = words[:, level, code]
            else:
                at = layout.row_of_range[a]
                cells.lo[at, rows], cells.hi[at, rows] = lo[level, code], hi[level, code]


def column_levels(records: Records, widths: Mapping[str, Any] | None = None) -> list[ColumnLevels]:
    """Return the levels of every column, from own values to the whole domain.

    A hierarchy: at level h, each value is published as its highest ancestor of height at most h. A number: own
    values, then intervals of each width, which begin at multiples of it, then the whole domain; a code in place of a
    number stays as it is until the last level. Positions: the
    last ones are hidden first. Levels that break a boundary or a limit of the column are left out, those below its
    `at-least`, and those that publish the same as the level before.

    Parameters
    ----------
    records : Records
    widths : mapping, optional
        Column -> ascending widths of the intervals of a numeric column, each a multiple of the one before; in the
        column's unit, days for dates.

    Returns
    -------
    list of ColumnLevels
        In the schema's order. O(sum of L D) time and memory.

    Raises
    ------
    ParameterError
        If a categorical column has no hierarchy, or widths do not nest or are of a column that is not numeric.
    """
    widths = _checked_widths(records.domains, widths)
    columns: dict[str, list[int]] = {}
    for a, domain in enumerate(records.domains):
        columns.setdefault(domain.column, []).append(a)
    without = [d.column for d in records.domains if d.kind == "categorical"]
    if without:
        raise ParameterError(
            f"no hierarchy for {', '.join(map(repr, without))}; give each one "
            + LEVELS
            + ", which publishes a value or hides it",
            subject="full-domain",
        )
    levels = []
    for column, qis in columns.items():
        domain = records.domains[qis[0]]
        if domain.kind == "positions":
            labels, runs = position_runs([records.domains[a] for a in qis])
        elif domain.hierarchy is not None:
            labels, runs = node_runs(domain.hierarchy)
        elif domain.has_codes:
            labels, runs = coded_runs([records.domains[a] for a in qis], widths.get(column))
        else:
            labels, runs = interval_runs(domain, widths.get(column))
        lows, highs = zip(*runs, strict=True)
        whole = ColumnLevels(column, tuple(labels), tuple(qis), lows, highs)
        levels.append(whole.take(_allowed(records, qis, runs)))
    return levels


def fixed_levels(columns: Sequence[ColumnLevels], levels: Any) -> list[ColumnLevels]:
    """Return the same, of some columns one level alone.

    Parameters
    ----------
    columns : sequence of ColumnLevels
    levels : mapping or None
        Column -> the label of its level.

    Raises
    ------
    ParameterError
        If it is not a mapping, or a column or a level does not exist.
    """
    if levels is None:
        return list(columns)
    if not isinstance(levels, Mapping):
        raise ParameterError(
            'levels is a mapping of columns to levels, such as {"age": "width 10"}', subject="full-domain"
        )
    names = [qi_levels.column for qi_levels in columns]
    for column in levels:
        if column not in names:
            raise ParameterError(
                f"levels names {str(column)[:40]!r}, no quasi-identifier{did_you_mean(str(column), names)}",
                subject="full-domain",
            )
    return [
        _only(qi_levels, levels[qi_levels.column]) if qi_levels.column in levels else qi_levels
        for qi_levels in columns
    ]


def option_problems(
    domains: Sequence[Domain] | None, options: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield the problems of `widths` and `levels`: the option and what is wrong with it.

    Parameters
    ----------
    domains : sequence of Domain or None
        None where they are not known: then nothing is checked. The levels of numbers are not: they depend on the values.
    options : mapping
        A method's.
    """
    if domains is None or any(domain.kind == "categorical" for domain in domains):
        return
    try:
        _checked_widths(domains, options.get("widths"))
    except ParameterError as error:
        yield "widths", error.text
    columns = column_levels(Records(tuple(domains), np.zeros((0, len(domains)), np.int32)))
    levels = options.get("levels")
    numeric = {domain.column for domain in domains if domain.kind == "numeric"}
    if isinstance(levels, Mapping):
        levels = {column: label for column, label in levels.items() if column not in numeric}
    try:
        fixed_levels(columns, levels)
    except ParameterError as error:
        yield "levels", error.text


def _only(qi_levels: ColumnLevels, label: Any) -> ColumnLevels:
    if label not in qi_levels.labels:
        raise ParameterError(
            f"column {qi_levels.column!r} has no level {str(label)[:40]!r}; its levels are {', '.join(qi_levels.labels)}",
            subject="full-domain",
        )
    return qi_levels.take([qi_levels.labels.index(label)])


def _allowed(records: Records, qis: Sequence[int], runs: Runs) -> list[int]:
    """Return the levels within the column's boundary, limit and lowest level that differ from the one before."""
    levels = len(runs[0][0])
    good = np.ones(levels, bool)
    high_enough = np.ones(levels, bool)
    for a, (lo, hi) in zip(qis, runs, strict=True):
        domain = records.domains[a]
        present = np.unique(records.codes[:, a])
        present = present[present >= 0]
        low, high = lo[:, present], hi[:, present]
        if domain.bound is not None:
            inside = domain.bound[present]
            good &= ((low >= inside[:, 0]) & (high <= inside[:, 1])).all(axis=1)
        if domain.floor is not None:
            least = domain.floor[present]
            high_enough &= ((low <= least[:, 0]) & (high >= least[:, 1])).all(axis=1)
        if domain.limit is not None and domain.kind == "numeric":
            good &= (domain.points[high] - domain.points[low] <= domain.limit).all(axis=1)
    first = int(np.argmax(high_enough))
    good[first] = True
    level_indexes = [first]
    for level in np.flatnonzero(good & (np.arange(levels) > first)).tolist():
        before = level_indexes[-1]
        if any((lo[level] != lo[before]).any() or (hi[level] != hi[before]).any() for lo, hi in runs):
            level_indexes.append(level)
    return level_indexes


def _runs_as_sets(domain: Domain, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """Return runs of codes as sets, shape (words, n), uint64."""
    words = np.zeros((domain.words, len(lo)), np.uint64)
    for code in range(domain.size):
        words[code >> 6] |= ((lo <= code) & (code <= hi)).astype(np.uint64) << np.uint64(code & 63)
    return words


def _prices(loss: Loss, domain: Domain, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """Return the costs of runs of codes, of a domain of sets those of the sets: shape (n,), float64."""
    if domain.shape == "set":
        return np.asarray(loss.set_costs(domain, _runs_as_sets(domain, lo, hi), hi - lo + 1), np.float64)
    return run_costs(loss, domain, lo, hi)


def _checked_widths(domains: Sequence[Domain], widths: Any) -> dict[str, list[float]]:
    if widths is None:
        return {}
    numeric = [domain.column for domain in domains if domain.kind == "numeric"]
    if not isinstance(widths, Mapping):
        raise ParameterError(
            "widths are a mapping from numeric columns to lists of widths", subject="full-domain"
        )
    checked = {}
    for column, declared in widths.items():
        if column not in numeric:
            raise ParameterError(
                f"widths of {column!r}, which is no numeric quasi-identifier"
                f"{did_you_mean(str(column), tuple(numeric))}",
                subject="full-domain",
            )
        numbers = [declared] if isinstance(declared, int | float) else declared
        if (
            not isinstance(numbers, Sequence)
            or isinstance(numbers, str)
            or not 0 < len(numbers) <= MOST_WIDTHS
            # the type itself: True is an int, too
            or not all(type(w) in (int, float) and 0 < w < MOST_WIDTH for w in numbers)
        ):
            raise ParameterError(
                f"widths of {column!r} are 1 to {MOST_WIDTHS} positive numbers", subject="full-domain"
            )
        for narrow, wide in pairwise(numbers):
            times = wide / narrow
            # in floats 0.3 is no exact multiple of 0.1
            if not 2 - 1e-9 <= times < math.inf or abs(times - round(times)) > 1e-9 * times:
                raise ParameterError(
                    f"the widths of {column!r} do not nest; make each a multiple of the one before, such as 5, 10, 20",
                    subject="full-domain",
                )
        checked[str(column)] = [float(w) for w in numbers]
    return checked


@dataclass(frozen=True, eq=False)
class Groups:
    """The row types that a node of the lattice publishes as equal cells.

    Attributes
    ----------
    node : numpy.ndarray, shape (c,), int64
        A level for each column.
    first : numpy.ndarray, shape (g,), int64
        A row type of each group.
    size : numpy.ndarray, shape (g,), int64
        Records in it.
    suppressed : int
        Records in groups that are suppressed: of fewer than k, or not diverse.
    loss : float
        Sum over all records of their loss, with these suppressed.
    below : int
        At least so many records are suppressed at every node below.
    more : float
        At least what these lose beyond their cells here.
    good : bool
        Whether the suppressed records, where they are k, are diverse.
    """

    node: np.ndarray
    first: np.ndarray
    size: np.ndarray
    suppressed: int
    loss: float
    below: int
    more: float
    good: bool = True


@dataclass(eq=False)
class Lattice:
    """All ways to give each column one level, over some records.

    Parameters
    ----------
    records : Records
        n records.
    columns : list of ColumnLevels
    loss : str
    sensitive : SensitiveValues, optional
        What groups must keep besides k; by default nothing, and no group is suppressed for it.

    Attributes
    ----------
    shape : tuple of int
        ColumnLevels of each column; a node is an index.
    bound : numpy.ndarray of `shape`, float64
        For each node a lower bound of the loss of that node and of every node above it.

    Notes
    -----
    O(n q log n) time to find the t row types; O(t q + nodes) memory.
    """

    records: Records
    columns: list[ColumnLevels]
    loss: str
    sensitive: SensitiveValues | None = None
    shape: tuple[int, ...] = field(init=False)
    bound: np.ndarray = field(init=False)
    star: float = field(init=False)
    _cache: dict[bytes, tuple[np.ndarray, np.ndarray]] = field(init=False, default_factory=dict)
    _rows_kept: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        records, domains = self.records, self.records.domains
        self.shape = tuple(len(levels.labels) for levels in self.columns)
        nodes = math.prod(self.shape)
        if nodes > MOST_NODES:
            raise ParameterError(
                f"the columns' levels make a lattice of {nodes:,} nodes, more than {MOST_NODES:,}; give "
                "columns fewer levels (shorter hierarchies, fewer `widths`), or fewer quasi-identifiers",
                subject="full-domain",
            )
        self._type = equal_columns(records.codes.T, records.n)
        _, example, self._count = np.unique(self._type, return_index=True, return_counts=True)
        codes = records.codes[example].astype(np.int64)
        self._codes = np.ascontiguousarray(
            np.where(codes < 0, [domain.size for domain in domains], codes), np.int64
        )
        self._price()
        self._everyone = np.arange(len(codes)), self._count.astype(np.int64)
        values = [sum(domains[a].size for a in levels.qis) for levels in self.columns]
        # raised first where most values are merged: what is counted from there is small
        self._order = sorted(range(len(values)), key=lambda c: -values[c])

    def _price(self) -> None:
        """Lay out the cells of every level one after the other, with their words and costs."""
        domains, measure = self.records.domains, LOSSES[measure_named(self.loss)]
        weights = np.array([domain.weight for domain in domains], np.float64)
        shares = weights / weights.sum()
        # fixed words: they affect the speed, never the result; groups are compared cell by cell
        rng = np.random.Generator(np.random.PCG64(5))
        self.star = 0.0
        self._at: list[np.ndarray] = [np.zeros(0, np.int64)] * len(domains)
        cells, words, costs, whole_cells, start = [], [], [], [], 0
        bound = np.zeros(())
        self._level_costs: list[np.ndarray] = []
        for levels in self.columns:
            least, totals = np.zeros(len(levels.labels)), np.zeros(len(levels.labels))
            for a, lo, hi in zip(levels.qis, levels.lo, levels.hi, strict=True):
                domain = domains[a]
                price = shares[a] * _prices(measure, domain, lo.ravel(), hi.ravel()).reshape(lo.shape)
                ends = np.zeros(1, np.int32), np.full(1, domain.size - 1, np.int32)
                whole = float(shares[a] * _prices(measure, domain, *ends)[0])
                self.star += whole
                self._at[a] = start + np.arange(len(lo)) * lo.shape[1]
                # both ends as one number, so that equal cells are equal numbers
                cells.append((lo.astype(np.int64) * (domain.size + 1) + hi).ravel())
                ends_words = rng.integers(0, 2**64, (2, domain.size + 1), np.uint64)
                words.append((ends_words[0][lo] ^ (ends_words[1][hi] << np.uint64(1))).ravel())
                costs.append(price.ravel())
                whole_cells.append(((lo == 0) & (hi == domain.size - 1)).ravel())
                start += lo.size
                # a record is published at this level, at a higher one, or suppressed
                lowest = np.minimum.accumulate(np.minimum(price, whole)[::-1], axis=0)[::-1]
                occurs = np.bincount(self._codes[:, a], self._count, minlength=lo.shape[1])
                least += lowest @ occurs
                totals += price @ occurs
            bound = np.add.outer(bound, least)
            self._level_costs.append(totals)
        self._cells, self._words = np.concatenate(cells), np.concatenate(words)
        self._costs, self.bound = np.concatenate(costs), bound
        self._whole = np.concatenate(whole_cells)

    def _place(self, node: np.ndarray) -> np.ndarray:
        at = np.empty(len(self._at), np.int64)
        for levels, level in zip(self.columns, node.tolist(), strict=True):
            for a in levels.qis:
                at[a] = self._at[a][level]
        return at

    def groups(self, node: np.ndarray, k: int, below: Groups | None = None) -> Groups:
        """Count the groups of a node, from those of a node below it.

        Parameters
        ----------
        node : numpy.ndarray, shape (c,), int64
        k : int

        Returns
        -------
        Groups
            O(g' q) time for the g' groups of the node below, once those are counted.
        """
        # groups of a finer node are merged, not records: there are far fewer of them
        rows, count = self._counted_below(node) if below is None else (below.first, below.size)
        first, size, _ = self._grouped(node, rows, count)
        at = self._place(node)
        small, rise = small_groups_jit(self._codes, first, size, len(first), self._costs, at, k, self.star)
        cost = sum(float(costs[level]) for costs, level in zip(self._level_costs, node.tolist(), strict=True))
        return Groups(node, first, size, int(small), cost + float(rise), int(small), float(rise))

    def diverse(self, groups: Groups, k: int, pool: bool = True) -> Groups:
        """Return the same with the groups suppressed that lack diversity.

        Parameters
        ----------
        groups : Groups
            As :meth:`groups` counts them.
        k : int
        pool : bool, optional
            Whether the suppressed records, a class of their own where they are k, are to be diverse, too.

        Returns
        -------
        Groups
            `below` and `more` count how many records of each group must go before the others can be classes that are
            diverse. O(t q + n) time for t row types, and what the criteria take.
        """
        if self.sensitive is None:
            return groups
        first, size, label = self._grouped(groups.node, *self._everyone)
        lacking, least = self._lacking(size, label, k)
        at = self._place(groups.node)
        beyond = self.star - self._costs[at + self._codes[first]].sum(axis=1)
        out = lacking | (size < k)
        hidden = out | self._whole[at + self._codes[first]].all(axis=1)
        good = (
            not pool
            or size[hidden].sum() < k
            or not self.sensitive.lacking(np.where(hidden, 0, 1)[label][self._type], 2)[0]
        )
        rise = float((size * beyond)[lacking].sum())
        return replace(
            groups,
            suppressed=int(size[out].sum()),
            loss=groups.loss + rise,
            below=groups.below + int(least.sum()),
            more=groups.more + float((least * np.maximum(beyond, 0.0)).sum()),
            good=bool(good),
        )

    def _lacking(self, size: np.ndarray, label: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return which groups of k or more lack diversity, and how many of their records must go at least."""
        lacking, least = np.zeros(len(size), bool), np.zeros(len(size), np.int64)
        if self.sensitive is None:
            return lacking, least
        targets, values = self.sensitive.targets, self.sensitive.values
        # smaller groups are suppressed in any case
        large = np.flatnonzero(size >= k)
        rank = np.full(len(size), len(large))
        rank[large] = np.arange(len(large))
        of_record = rank[label][self._type]
        # groups one after the other: some are counted at a time, as all counts together may not fit in memory
        order = np.argsort(of_record, kind="stable")
        step = max(1, MOST_COUNTS // max(1, targets.size))
        for start in range(0, len(large), step):
            batch = large[start : start + step]
            low, high = np.searchsorted(of_record, [start, start + len(batch)], sorter=order)
            rows = order[low:high]
            counts = targets.counts(values[rows], of_record[rows] - start, len(batch))
            bad = np.flatnonzero(targets.gaps(counts) > 0)
            lacking[batch[bad]] = True
            least[batch[bad]] = targets.least_removed(counts[bad])
        return lacking, least

    def _counted_below(self, node: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the groups of the node that is raised in all columns of this one but the last: a row type, and the records.

        Columns come by their number of values, the largest first: the nodes of a search share such beginnings, and
        after a few columns there are few groups.
        """
        raised = [c for c in self._order if node[c]]
        lower = np.zeros(len(node), np.int64)
        groups = self._everyone
        for c in raised[:-1]:
            lower[c] = node[c]
            key = lower.tobytes()
            entry = self._cache.pop(key, None)
            if entry is None:
                first, size, _ = self._grouped(lower, *groups)
                entry = first, size
                self._rows_kept += len(first)
            self._cache[key] = entry  # the most recently used entry is deleted last
            groups = entry
        while self._rows_kept > MOST_KEPT * len(self._codes) + 1024:
            oldest = self._cache.pop(next(iter(self._cache)))
            self._rows_kept -= len(oldest[0])
        return groups

    def _grouped(
        self, node: np.ndarray, rows: np.ndarray, count: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        first, size, label = (np.empty(len(rows), np.int64) for _ in range(3))
        at = self._place(node)
        with np.errstate(over="ignore"):
            groups = count_groups_jit(
                self._codes, rows, count, self._cells, self._words, at, first, size, label
            )
        return first[:groups].copy(), size[:groups].copy(), label

    def published(self, node: np.ndarray, k: int) -> tuple[Generalization, np.ndarray, np.ndarray]:
        """Return the generalized records of a node.

        Parameters
        ----------
        node : numpy.ndarray, shape (c,), int64
        k : int

        Returns
        -------
        generalization : Generalization
            n generalized records.
        labels : numpy.ndarray, shape (n,), int64
            The class of each record.
        suppressed : numpy.ndarray, shape (n,), bool
            Records of classes of fewer than k, or that are not diverse. Not in `generalization`.
        """
        _, size, label = self._grouped(node, *self._everyone)
        cells = Generalization.of(self.records)
        for levels, level in zip(self.columns, node.tolist(), strict=True):
            levels.write(cells, self.records, level)
        labels = label[self._type]
        out = (size < k) | self._lacking(size, label, k)[0]
        return cells, labels, out[labels]

    def level_labels(self, node: np.ndarray) -> dict[str, str]:
        """Return which level each column has at a node, by column."""
        return {
            levels.column: levels.labels[level]
            for levels, level in zip(self.columns, node.tolist(), strict=True)
        }
