"""Generalized records: join, covers, and their published text."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd

from anonflow.errors import DataError
from anonflow.hierarchy import number_text
from anonflow.hierarchy.wording import plural
from anonflow.table.domain import Domain, coded_texts
from anonflow.table.forms.text_columns import categories_at, texts_at
from anonflow.table.level_cells import ends_among
from anonflow.table.published.notation import ColumnReader, readers_of
from anonflow.table.published.published_cells import WHOLE, PublishedCells
from anonflow.table.records import Records, equal_columns, take_into, take_positions
from anonflow.threads import by_column

_ONE = np.uint64(1)

_BLOCK = 1 << 14
"""Generalized records that are joined at a time, so that what lies between stays small."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Which rows of ``lo, hi`` and of ``bits`` belong to which QI.

    Attributes
    ----------
    ranges : numpy.ndarray, shape (r,), intp
        The QIs of shape range, in schema order: row t of ``lo, hi`` belongs to QI ``ranges[t]``.
    sets : numpy.ndarray, shape (s,), intp
        The QIs of shape set: rows ``offset[t]:offset[t + 1]`` of ``bits`` belong to QI ``sets[t]``.
    offset : numpy.ndarray, shape (s + 1,), intp
    """

    ranges: np.ndarray
    sets: np.ndarray
    offset: np.ndarray

    @cached_property
    def row_of_range(self) -> dict[int, int]:
        """The row of ``lo, hi`` of each QI of shape range."""
        return {a: t for t, a in enumerate(self.ranges.tolist())}

    @cached_property
    def words(self) -> dict[int, slice]:
        """The rows of ``bits`` of each QI of shape set, in schema order."""
        ends = itertools.pairwise(self.offset.tolist())
        return {a: slice(*pair) for a, pair in zip(self.sets.tolist(), ends, strict=True)}

    @cached_property
    def place_of_set(self) -> dict[int, int]:
        """The place of each QI of shape set in ``sets``."""
        return {a: t for t, a in enumerate(self.sets.tolist())}

    @classmethod
    def of(cls, domains: Sequence[Domain]) -> Layout:
        """Return the layout of some domains."""
        return _layout(tuple(domain.words if domain.shape == "set" else None for domain in domains))


@lru_cache(maxsize=64)
def _layout(words: tuple[int | None, ...]) -> Layout:
    """Return the layout of QIs with sets of so many words each, or runs: the same for each partition of a table."""
    ranges = [a for a, count in enumerate(words) if count is None]
    sets = [a for a, count in enumerate(words) if count is not None]
    offset = np.cumsum([0, *(count for count in words if count is not None)])
    return Layout(np.array(ranges, np.intp), np.array(sets, np.intp), offset.astype(np.intp))


@dataclass(frozen=True, eq=False)
class Generalization:
    """Generalized records: a closed run for each range QI, a set for each set QI.

    Attributes
    ----------
    domains : tuple of Domain, length q
    lo, hi : numpy.ndarray, shape (r, n), int32, C-contiguous
        First and last code of each run; a row per QI of shape range, in schema order.
    bits : numpy.ndarray, shape (w, n), uint64, C-contiguous
        The sets, 64 codes a word, lowest code in the lowest bit; the words of one QI in consecutive rows.
    aggregates : numpy.ndarray, shape (c, n), float64, or None
        The mean or median that each of the c QIs with an ``aggregate`` is published as, in schema order; NaN where its run is
        published. None where none is.

    Notes
    -----
    Invariant: ``0 <= lo <= hi < D``; on a hierarchy QI, ``lo, hi`` is the run of a node; every set has a
    member. A text that covers no value of the domain is read as ``lo = D, hi = -1``, the empty run: it covers nothing.
    On a numeric QI with codes (``has_codes``) a generalized record has the empty run exactly where no number is in the set of
    codes beside it. It is the identity of join, and covered by every run.
    """

    domains: tuple[Domain, ...]
    lo: np.ndarray
    hi: np.ndarray
    bits: np.ndarray
    aggregates: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"Generalization({self.n} generalized records, {len(self.domains)} quasi-identifiers)"

    @cached_property
    def layout(self) -> Layout:
        """The rows that belong to each QI."""
        return Layout.of(self.domains)

    @property
    def n(self) -> int:
        """Number of generalized records."""
        return int(self.lo.shape[1])

    @classmethod
    def of(cls, records: Records) -> Generalization:
        """Return each record as its own generalized record, O(nq)."""
        layout = Layout.of(records.domains)
        lo = np.empty((len(layout.ranges), records.n), np.int32)
        hi = np.empty_like(lo)
        bits = np.zeros((int(layout.offset[-1]), records.n), np.uint64)
        for t, a in enumerate(layout.ranges):
            lo[t], hi[t] = records.ends(int(a))
        every = np.arange(records.n)
        for a, words in layout.words.items():
            codes = records.codes[:, a]
            bits[words][codes >> 6, every] = _ONE << (codes & 63).astype(np.uint64)
        return cls(records.domains, lo, hi, bits).closure()

    @classmethod
    def join_of(cls, records: Records, matches: np.ndarray) -> Generalization:
        """Return generalized records; row j is the closure of ``records[matches[j]]``.

        Parameters
        ----------
        records : Records
            n originals.
        matches : numpy.ndarray, shape (m, d), integer
            Positions of originals; -1 is no original. Every row has at least one.

        Returns
        -------
        Generalization
            m generalized records. O(m d q) time, O(m q + d) memory.
        """
        layout = Layout.of(records.domains)
        m = len(matches)
        lo = np.empty((len(layout.ranges), m), np.int32)
        hi = np.empty_like(lo)
        bits = np.zeros((int(layout.offset[-1]), m), np.uint64)
        for start in range(0, m, _BLOCK):
            rows = slice(start, min(start + _BLOCK, m))
            # a place without an original repeats another of the row, which joins nothing
            members = matches[rows]
            members = np.ascontiguousarray(
                np.where(members < 0, members.max(axis=1, keepdims=True), members).T
            )
            for t, a in enumerate(layout.ranges):
                low, high = records.ends(a)
                lo[t, rows] = low[members].min(axis=0)
                hi[t, rows] = high[members].max(axis=0)
            for a, span in layout.words.items():
                words = bits[span, rows]
                codes = records.codes[:, a]
                single = _ONE << (codes & 63).astype(np.uint64)
                if len(words) == 1:  # most sets: one pass over all members
                    np.bitwise_or.reduce(single[members], axis=0, out=words[0])
                    continue
                every = np.arange(words.shape[1])
                for places in members:
                    # each record sets one bit, so no two updates change the same cell
                    words[codes[places] >> 6, every] |= single[places]
        return cls(records.domains, lo, hi, bits).closure()

    @classmethod
    def join_by_class(cls, records: Records, labels: np.ndarray) -> Generalization:
        """Return generalized records; each is the closure of its record's class.

        Parameters
        ----------
        records : Records
            n originals.
        labels : numpy.ndarray, shape (n,), integer
            Equal labels, one class.

        Returns
        -------
        Generalization
            n generalized records, equal within a class. O(n log n + nq).
        """
        if not records.n:
            return cls.of(records)
        _, member = np.unique(labels, return_inverse=True)
        order = np.argsort(member, kind="stable")
        starts = np.flatnonzero(np.diff(member[order], prepend=-1))
        originals = cls.of(records)
        ordered = originals.take(order)
        joined = cls(
            records.domains,
            np.minimum.reduceat(ordered.lo, starts, axis=1),
            np.maximum.reduceat(ordered.hi, starts, axis=1),
            np.bitwise_or.reduceat(ordered.bits, starts, axis=1),
        )
        return joined.closure().take(member)

    @classmethod
    def gathered(cls, parts: Sequence[Generalization], index: Sequence[np.ndarray], n: int) -> Generalization:
        """Combine the generalized records of partitions in the table's order.

        Parameters
        ----------
        parts : sequence of Generalization
        index : sequence of numpy.ndarray, integer
            For each part the table positions of its records; together each of ``range(n)`` once.
        n : int
        """
        model = parts[0]
        lo = np.empty((model.lo.shape[0], n), np.int32)
        hi = np.empty_like(lo)
        bits = np.empty((model.bits.shape[0], n), np.uint64)
        for part, at in zip(parts, index, strict=True):
            lo[:, at], hi[:, at], bits[:, at] = part.lo, part.hi, part.bits
        return cls(model.domains, lo, hi, bits)

    def take(self, index: np.ndarray) -> Generalization:
        """Return the generalized records at some positions (repeats allowed).

        Raises
        ------
        IndexError
            If a position does not exist.
        """
        lo, hi, bits = (take_positions(part, index, 1) for part in (self.lo, self.hi, self.bits))
        aggregates = None if self.aggregates is None else take_positions(self.aggregates, index, 1)
        return Generalization(self.domains, lo, hi, bits, aggregates)

    def aggregated(
        self, records: Records, classes: np.ndarray | None, suppressed: np.ndarray | None = None
    ) -> Generalization:
        """Return the same as they are published: with the mean or median of its class for every QI that has an ``aggregate``.

        Parameters
        ----------
        records : Records
            n originals, record i that of generalized record i.
        classes : numpy.ndarray, shape (n,), integer, or None
            The class of each; None leaves the runs.
        suppressed : numpy.ndarray, shape (n,), bool, optional
            Records that are published as ``*``.

        Returns
        -------
        Generalization
            O(n log n) for each such QI. A class in which a number is missing keeps its run.
        """
        means = [a for a, domain in enumerate(self.domains) if domain.aggregate is not None]
        if not means or classes is None:
            return self
        aggregates = np.full((len(means), self.n), np.nan)
        published = np.arange(self.n) if suppressed is None else np.flatnonzero(~suppressed)
        groups = groups_of(classes[published])
        for row, a in zip(aggregates, means, strict=True):
            domain, codes = self.domains[a], records.codes[:, a]
            for group in groups:
                at = published[group]
                members = codes[at]
                if members.min() >= 0:
                    row[at] = aggregate_of(domain, members)
        return replace(self, aggregates=aggregates)

    def closure(self) -> Generalization:
        """Return the runs of hierarchy QIs widened to the run of the lowest node that covers them."""
        trees = [(t, self.domains[a].hierarchy) for t, a in enumerate(self.layout.ranges)]
        if all(tree is None for _, tree in trees):
            return self
        lo, hi = self.lo.copy(), self.hi.copy()
        for t, tree in trees:
            if tree is not None:
                lo[t], hi[t] = tree.closure(lo[t], hi[t])
        return replace(self, lo=lo, hi=hi)

    def join(self, other: Generalization) -> Generalization:
        """Return the least generalized records that cover both, record by record.

        Raises
        ------
        ValueError
            If the two have different numbers of records.
        """
        lo, hi = np.minimum(self.lo, other.lo), np.maximum(self.hi, other.hi)
        return Generalization(self.domains, lo, hi, self.bits | other.bits).closure()

    def covers(self, other: Generalization) -> np.ndarray:
        """Return whether each generalized record covers the one at the same position in `other`.

        Returns
        -------
        numpy.ndarray, shape (n,), bool

        Raises
        ------
        ValueError
            If the two have different numbers of records.
        """
        covered: np.ndarray = np.all((self.lo <= other.lo) & (self.hi >= other.hi), axis=0)
        covered &= np.all((other.bits & ~self.bits) == 0, axis=0)
        return covered

    def covers_records(self, at: np.ndarray | int, records: Records) -> np.ndarray:
        """Return whether the generalized record at each of some positions covers the original there, O(m q).

        Parameters
        ----------
        at : numpy.ndarray, shape (m,), integer, or int
            Positions of generalized records; one is asked about all originals.
        records : Records
            m originals.

        Returns
        -------
        numpy.ndarray, shape (m,), bool

        Raises
        ------
        IndexError
            If a position does not exist.
        """
        covered = np.ones(records.n, bool)
        for t, a in enumerate(self.layout.ranges):
            low, high = records.ends(int(a))
            covered &= (self.lo[t, at] <= low) & (high <= self.hi[t, at])
        for a, words in self.layout.words.items():
            codes = records.codes[:, a]
            word = self.bits[words][codes >> 6, at]
            covered &= (word >> (codes & 63).astype(np.uint64)) & _ONE == _ONE
        return covered

    def counts(self) -> np.ndarray:
        """Return members of each set, shape (s, n), int64."""
        ones = np.bitwise_count(self.bits).astype(np.int64)
        rows = [ones[words].sum(axis=0) for words in self.layout.words.values()]
        return np.array(rows, np.int64).reshape(len(rows), self.n)

    def whole(self) -> np.ndarray:
        """Return which cells are the whole domain, shape (q, n), bool; domains of one value always are."""
        cells = np.empty((len(self.domains), self.n), bool)
        for t, a in enumerate(self.layout.ranges):
            cells[a] = (self.lo[t] <= 0) & (self.hi[t] >= self.domains[a].size - 1)
        counts = self.counts()
        for t, a in enumerate(self.layout.sets):
            cells[a] = counts[t] >= self.domains[a].size
        for a, values in self.by_aggregate():
            cells[a] &= np.isnan(values)
        return cells

    def hidden(self) -> np.ndarray:
        """Return which cells are published as ``*`` if their record is not suppressed, shape (q, n), bool.

        Of a numeric QI with codes, both domains have the same: ``*`` stands for every number and every code.
        """
        cells = self.whole()
        for a, domain in enumerate(self.domains):
            cells[a] &= domain.size > 1 or domain.has_missing or domain.has_codes
        for a, domain in enumerate(self.domains):
            if domain.has_codes:
                cells[a : a + 2] = cells[a] & cells[a + 1]
        return cells

    def by_aggregate(self) -> list[tuple[int, np.ndarray]]:
        """Return the QIs that are published as a mean or median, each with these: shape (n,), float64."""
        if self.aggregates is None:
            return []
        positions = [a for a, domain in enumerate(self.domains) if domain.aggregate is not None]
        return list(zip(positions, self.aggregates, strict=True))

    def suppressed_rows(self) -> np.ndarray:
        """Return which generalized records cover everything, shape (n,), bool."""
        return np.asarray(np.all(self.whole(), axis=0))

    def with_suppressed(self, mask: np.ndarray) -> Generalization:
        """Return the same with the records of `mask` (n,) bool widened to every whole domain."""
        if not mask.any():
            return self
        lo, hi, bits = self.lo.copy(), self.hi.copy(), self.bits.copy()
        aggregates = None if self.aggregates is None else np.where(mask, np.nan, self.aggregates)
        wider = Generalization(self.domains, lo, hi, bits, aggregates)
        wider.suppress(mask)
        return wider

    def suppress(self, at: np.ndarray) -> None:
        """Widen some generalized records, by position or by a mask, to every whole domain, in place."""
        for t, a in enumerate(self.layout.ranges):
            self.lo[t, at], self.hi[t, at] = 0, self.domains[a].size - 1
        for a, words in self.layout.words.items():
            self.bits[words][:, at] = _full(self.domains[a].size)[:, None]

    def narrowed(self, records: Records) -> Generalization:
        """Return the same with ranges of numbers that end at values of records whose cell is not ``*``.

        Intervals that are chosen for a column end at values that occur, which may be values of hidden records alone.

        Parameters
        ----------
        records : Records
            n originals, record i that of generalized record i.
        """
        lo, hi, hidden = self.lo.copy(), self.hi.copy(), self.hidden() | self.suppressed_rows()
        for t, a in enumerate(self.layout.ranges):
            if self.domains[a].kind != "numeric":
                continue
            # the run of a code in place of a number is empty
            at = np.flatnonzero(~hidden[a] & (lo[t] <= hi[t]))
            values = np.unique(records.codes[at, a])
            lo[t, at], hi[t, at] = ends_among(values, lo[t, at], hi[t, at])
        same = np.array_equal(lo, self.lo) and np.array_equal(hi, self.hi)
        return self if same else replace(self, lo=lo, hi=hi)

    def cell_numbers(self, at: Iterable[int]) -> list[np.ndarray]:
        """Return the cells of some QIs as numbers: views, a row for each end of a range and each word of a set."""
        rows: list[np.ndarray] = []
        for a in at:
            t = self.layout.row_of_range.get(a)
            rows.extend(self.bits[self.layout.words[a]] if t is None else [self.lo[t], self.hi[t]])
        return rows

    def numbers(self) -> np.ndarray:
        """Return all cells as numbers, shape (2r + w, n), int64: a row for each end of a range and each word of a set."""
        return np.concatenate([self.lo.astype(np.int64), self.hi.astype(np.int64), self.bits.view(np.int64)])

    def classes(self) -> np.ndarray:
        """Return labels of equal generalized records, shape (n,), int64."""
        # floats of equal text have equal bits here; NaN always has the same bits
        aggregate_bits = [] if self.aggregates is None else [*self.aggregates.view(np.int64)]
        return equal_columns([*self.lo, *self.hi, *self.bits, *aggregate_bits], self.n)

    def decode(self, index: pd.Index | None = None, suppressed: np.ndarray | None = None) -> pd.DataFrame:
        """Return the published text, a column for each QI column.

        Parameters
        ----------
        index : pandas.Index, optional
            The frame's index; a RangeIndex without it.
        suppressed : numpy.ndarray, shape (n,), bool, optional
            Records whose every cell is ``*``, also where a domain has a single value.

        Returns
        -------
        pandas.DataFrame, shape (n, QI columns), text
        """
        frame = self._columns(suppressed, texts_at)
        return pd.DataFrame(frame, index=pd.RangeIndex(self.n) if index is None else index)

    def decode_categories(self, suppressed: np.ndarray | None = None) -> pd.DataFrame:
        """Return the published text as :meth:`decode` does, but as categories: each text of a column once, and codes.

        Parameters
        ----------
        suppressed : numpy.ndarray, shape (n,), bool, optional
            As for :meth:`decode`.

        Returns
        -------
        pandas.DataFrame, shape (n, QI columns), categorical
            O(n) a column, and its texts only as often as they differ.
        """
        return pd.DataFrame(self._columns(suppressed, categories_at))

    def _columns(
        self, suppressed: np.ndarray | None, form: Callable[[np.ndarray, np.ndarray], Any]
    ) -> dict[str, Any]:
        """Return each column, which `form` makes of texts, of which some may be equal, and of the one that every record has."""
        parts_of: dict[str, list[int]] = {}
        for a, domain in enumerate(self.domains):
            if not domain.has_codes:  # the codes beside have the text of both
                parts_of.setdefault(domain.column, []).append(a)

        def column(parts: list[int]) -> Any:
            (at, texts), *others = map(self._coded_texts, parts)
            for code, characters in others:
                at, pairs = pd.factorize(at * len(characters) + code)
                texts = texts[pairs // len(characters)] + characters[pairs % len(characters)]
            if others:
                texts = np.where(texts == WHOLE * len(parts), WHOLE, texts)  # a completely hidden code
            if suppressed is not None and suppressed.any():
                at, texts = np.where(suppressed, len(texts), at), np.append(texts, WHOLE)
            return form(texts, at)

        return dict(zip(parts_of, by_column(column, parts_of.values(), self.n), strict=True))

    def _coded_texts(self, a: int) -> tuple[np.ndarray, np.ndarray]:
        """Return of a domain the code of every record, and the text of each code."""
        domain, layout = self.domains[a], self.layout
        if domain.shape == "range":
            t = layout.row_of_range[a]
            at, distinct = pd.factorize(self.lo[t].astype(np.int64) * domain.size + self.hi[t])
            runs = np.array(domain.run_texts(distinct // domain.size, distinct % domain.size), object)
            aggregates = dict(self.by_aggregate()).get(a)
            if aggregates is None:
                return at, runs
            code, numbers = pd.factorize(aggregates)
            number_texts = np.array([number_text(number) for number in numbers.tolist()], object)
            return np.where(code >= 0, len(runs) + code, at), np.concatenate([runs, number_texts])
        words = self.bits[layout.words[a]]
        beside = domain.kind == "codes"
        run = (self.lo[layout.row_of_range[a - 1]], self.hi[layout.row_of_range[a - 1]]) if beside else ()
        at, _ = pd.factorize(words[0])
        for word in (*words[1:], *run):
            code, distinct = pd.factorize(word)
            at = pd.factorize(at * len(distinct) + code)[0]
        first = np.empty(int(at.max(initial=-1)) + 1, np.int64)
        first[at[::-1]] = np.arange(self.n)[::-1]
        if beside:
            lo, hi = (ends[first] for ends in run)
            return at, np.array(coded_texts(self.domains[a - 1], domain, lo, hi, words[:, first]), object)
        return at, np.array(domain.set_texts(words[:, first]), object)

    @classmethod
    def parse(
        cls,
        frame: pd.DataFrame,
        domains: Sequence[Domain],
        *,
        canonical: bool = False,
        readers: Sequence[ColumnReader] | None = None,
        empty: Callable[..., np.ndarray] = np.empty,
    ) -> Generalization:
        """Read published text back.

        Parameters
        ----------
        frame : pandas.DataFrame, n rows
            Has the QI columns of `domains` as :meth:`decode` writes them; plain numbers are read as text.
        domains : sequence of Domain
        canonical : bool, optional
            Whether to refuse cells in another notation than the published one, as verifiers do: a second spelling
            distinguishes equal rows. Printed tables have ranges that go beyond what is observed.
        readers : sequence of ColumnReader, optional
            One for each domain, of a release that another tool wrote in its own notation.
        empty : callable, optional
            Makes the arrays of the result, as :func:`numpy.empty` does.

        Returns
        -------
        Generalization
            n generalized records.

        Raises
        ------
        DataError
            If a column is missing, or has cells that no generalization is written as (column and count).
        """
        domains = tuple(domains)
        layout = Layout.of(domains)
        n = len(frame)
        lo, hi = (empty((len(layout.ranges), n), np.int32) for _ in range(2))
        bits = empty((int(layout.offset[-1]), n), np.uint64)
        bits[:] = 0
        means = [a for a, domain in enumerate(domains) if domain.aggregate is not None]
        aggregates = np.full((len(means), n), np.nan) if means else None
        readers = readers_of(domains, None, canonical) if readers is None else readers

        def read_column(a: int) -> str | None:
            domain, reader = domains[a], readers[a]
            if domain.column not in frame.columns:
                return (
                    None if domain.position else f"column {domain.column!r}: missing from the published table"
                )
            if domain.kind == "codes":
                return None  # read with its numbers
            published = PublishedCells.of(frame[domain.column])
            at = published.rows
            read = reader.read(published.texts, np.bincount(at, minlength=len(published.texts)).tolist())
            if domain.shape == "range":
                t = layout.row_of_range[a]
                take_into(lo[t], read.lo, at)
                take_into(hi[t], read.hi, at)
            if len(read.bits):
                for row, words in zip(bits[layout.words[a + domain.has_codes]], read.bits, strict=True):
                    take_into(row, words, at)
            if aggregates is not None and domain.aggregate is not None:
                aggregates[means.index(a)] = read.numbers[at]
            if not read.bad.any() or domain.position:
                return None
            return (
                f"column {domain.column!r}: {plural(published.count(read.bad), 'cell', 'are')} no generalization of its values; "
                "use the schema and the original table that the release was made with"
                + (", or say that another tool made it" if canonical else "")
            )

        problems = [problem for problem in by_column(read_column, range(len(domains)), n) if problem]
        if problems:
            raise DataError.collected("the published table cannot be read", problems)
        return cls(domains, lo, hi, bits, aggregates)._bounded()

    def _bounded(self) -> Generalization:
        """Return the same with the runs of means narrowed to what a class of that size and mean can have.

        A member of a class of m with the mean v is at least m v - (m - 1) max, and at most m v - (m - 1) min.
        """
        if not any(self.domains[a].aggregate == "mean" for a, _ in self.by_aggregate()):
            return self
        lo, hi = self.lo.copy(), self.hi.copy()
        labels = self.classes()
        size = np.bincount(labels)[labels].astype(np.float64)
        row_of = self.layout.row_of_range
        for a, values in self.by_aggregate():
            domain = self.domains[a]
            if domain.aggregate != "mean":
                continue
            points = domain.points
            # a mean is printed in full, but a sum of floats is rounded: without slack the member at an end could be left out
            slack = 1e-9 * (1.0 + np.abs(points[[0, -1]]).max()) * size
            with np.errstate(over="ignore", invalid="ignore"):
                least = size * values - (size - 1) * points[-1] - slack
                most = size * values - (size - 1) * points[0] + slack
            has_bounds = np.isfinite(least) & np.isfinite(most)
            lo[row_of[a], has_bounds] = np.searchsorted(points, least[has_bounds], side="left")
            hi[row_of[a], has_bounds] = np.searchsorted(points, most[has_bounds], side="right") - 1
        return replace(self, lo=lo, hi=hi)


def aggregate_of(domain: Domain, codes: np.ndarray) -> float:
    """Return the mean or median of the numbers of a class: the same float in whatever order its members come.

    Parameters
    ----------
    domain : Domain
        Numeric, with an `aggregate`.
    codes : numpy.ndarray, shape (m,), integer
        Of its members, m >= 1; none is missing.
    """
    values = domain.points[codes]
    if domain.aggregate == "median":
        ordered = np.sort(values)
        low, high = float(ordered[(len(ordered) - 1) // 2]), float(ordered[len(ordered) // 2])
        middle = (low + high) / 2
        return (middle if math.isfinite(middle) else low / 2 + high / 2) + 0.0  # never -0.0
    try:
        mean = math.fsum(values.tolist()) / len(values)
    except OverflowError:  # intermediate sums overflow a float: use the slow, equally exact way
        mean = float(sum(map(Fraction, values.tolist()), Fraction(0)) / len(values))
    # a mean lies between its members; rounding of the division must not change this
    return float(min(max(mean, values.min()), values.max())) + 0.0


def groups_of(labels: np.ndarray) -> list[np.ndarray]:
    """Return the positions of each label, ascending, O(n log n)."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order])) + 1
    return np.split(order, starts) if len(order) else []


def _full(size: int) -> np.ndarray:
    """Return the words of a set that has every code, shape (words,), uint64."""
    flags = np.zeros(-(-size // 64) * 64, np.uint8)
    flags[:size] = 1
    return np.packbits(flags, bitorder="little").view(np.uint64)
