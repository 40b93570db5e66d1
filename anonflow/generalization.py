"""Generalized records: join, covers, and their published text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from anonflow.errors import DataError
from anonflow.table.domain import (
    NUMBER_MEMBER,
    WHOLE,
    Domain,
    coded_texts,
    number_text,
    read_coded,
    set_members,
)
from anonflow.table.records import Records, equal_columns
from anonflow.table.text_columns import texts_at

if TYPE_CHECKING:
    import pandas as pd

    from anonflow.table.notation import ColumnReader

__all__ = ["Generalization", "Layout", "Records", "aggregate_of", "groups_of"]

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
    def place_of_set(self) -> dict[int, int]:
        """The place of each QI of shape set in ``sets``."""
        return {a: t for t, a in enumerate(self.sets.tolist())}

    @classmethod
    def of(cls, domains: Sequence[Domain]) -> Layout:
        """Return the layout of some domains."""
        ranges = [a for a, domain in enumerate(domains) if domain.shape == "range"]
        sets = [a for a, domain in enumerate(domains) if domain.shape == "set"]
        offset = np.concatenate([[0], np.cumsum([domains[a].words for a in sets])])
        return cls(np.array(ranges, np.intp), np.array(sets, np.intp), offset.astype(np.intp))


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
        for t, a in enumerate(layout.sets):
            codes = records.codes[:, a]
            words = bits[layout.offset[t] : layout.offset[t + 1]]
            words[codes >> 6, every] = _ONE << (codes & 63).astype(np.uint64)
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
            for t, a in enumerate(layout.sets):
                words = bits[layout.offset[t] : layout.offset[t + 1], rows]
                each = np.arange(words.shape[1])
                for codes in records.codes[:, a][members]:
                    # each record sets one bit, so no two updates change the same cell
                    words[codes >> 6, each] |= _ONE << (codes & 63).astype(np.uint64)
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
        own = cls.of(records)
        ordered = own.take(order)
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
        lo, hi, bits = (np.ascontiguousarray(part[:, index]) for part in (self.lo, self.hi, self.bits))
        own = None if self.aggregates is None else self.aggregates[:, index]
        return Generalization(self.domains, lo, hi, bits, own)

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
        wanted = [a for a, domain in enumerate(self.domains) if domain.aggregate is not None]
        if not wanted or classes is None:
            return self
        aggregates = np.full((len(wanted), self.n), np.nan)
        kept = np.arange(self.n) if suppressed is None else np.flatnonzero(~suppressed)
        groups = groups_of(classes[kept])
        for row, a in zip(aggregates, wanted, strict=True):
            domain, codes = self.domains[a], records.codes[:, a]
            for group in groups:
                at = kept[group]
                own = codes[at]
                if own.min() >= 0:
                    row[at] = aggregate_of(domain, own)
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

    def counts(self) -> np.ndarray:
        """Return members of each set, shape (s, n), int64."""
        layout = self.layout
        ones = np.bitwise_count(self.bits).astype(np.int64)
        ends = zip(layout.offset[:-1], layout.offset[1:], strict=True)
        rows = [ones[start:stop].sum(axis=0) for start, stop in ends]
        return np.array(rows, np.int64).reshape(len(layout.sets), self.n)

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
        wanted = [a for a, domain in enumerate(self.domains) if domain.aggregate is not None]
        return list(zip(wanted, self.aggregates, strict=True))

    def suppressed_rows(self) -> np.ndarray:
        """Return which generalized records cover everything, shape (n,), bool."""
        return np.asarray(np.all(self.whole(), axis=0))

    def with_suppressed(self, mask: np.ndarray) -> Generalization:
        """Return the same with the records of `mask` (n,) bool widened to every whole domain."""
        if not mask.any():
            return self
        lo, hi, bits = self.lo.copy(), self.hi.copy(), self.bits.copy()
        own = None if self.aggregates is None else np.where(mask, np.nan, self.aggregates)
        wider = Generalization(self.domains, lo, hi, bits, own)
        wider.suppress(mask)
        return wider

    def suppress(self, at: np.ndarray) -> None:
        """Widen some generalized records, by position or by a mask, to every whole domain, in place."""
        for t, a in enumerate(self.layout.ranges):
            self.lo[t, at], self.hi[t, at] = 0, self.domains[a].size - 1
        for t, a in enumerate(self.layout.sets):
            words = self.bits[self.layout.offset[t] : self.layout.offset[t + 1]]
            words[:, at] = _full(self.domains[a].size)[:, None]

    def numbers(self) -> np.ndarray:
        """Return all cells as numbers, shape (2r + w, n), int64: a row for each end of a range and each word of a set."""
        return np.concatenate([self.lo.astype(np.int64), self.hi.astype(np.int64), self.bits.view(np.int64)])

    def classes(self) -> np.ndarray:
        """Return labels of equal generalized records, shape (n,), int64."""
        # floats of equal text have equal bits here; NaN always has the same bits
        own = [] if self.aggregates is None else [*self.aggregates.view(np.int64)]
        return equal_columns([*self.lo, *self.hi, *self.bits, *own], self.n)

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
        import pandas as pd

        columns = self._columns(suppressed)
        frame = {name: texts_at(texts, at) for name, (at, texts) in columns.items()}
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
        import pandas as pd

        frame = {}
        for name, (at, texts) in self._columns(suppressed).items():
            to, distinct = pd.factorize(texts)
            frame[name] = pd.Categorical.from_codes(to[at], pd.Index(distinct))
        return pd.DataFrame(frame)

    def _columns(self, suppressed: np.ndarray | None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return for each column which text every record has, and the texts, of which some may be equal."""
        import pandas as pd

        parts_of: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        for domain, coded in zip(self.domains, self._coded_texts(), strict=True):
            if not domain.has_codes:  # the codes beside have the text of both
                parts_of.setdefault(domain.column, []).append(coded)
        columns = {}
        for name, parts in parts_of.items():
            at, texts = parts[0]
            for code, more in parts[1:]:
                at, pairs = pd.factorize(at * len(more) + code)
                texts = texts[pairs // len(more)] + more[pairs % len(more)]
            if len(parts) > 1:
                texts = np.where(texts == WHOLE * len(parts), WHOLE, texts)  # a completely hidden code
            if suppressed is not None and suppressed.any():
                at, texts = np.where(suppressed, len(texts), at), np.append(texts, WHOLE)
            columns[name] = at, texts
        return columns

    def _coded_texts(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return for each domain the code of every record, and the text of each code."""
        import pandas as pd

        cells: list[tuple[np.ndarray, np.ndarray]] = [(np.empty(0, np.int64), np.empty(0, object))] * len(
            self.domains
        )
        layout = self.layout
        for t, a in enumerate(layout.ranges):
            domain = self.domains[a]
            if domain.has_codes:
                continue
            at, distinct = pd.factorize(self.lo[t].astype(np.int64) * domain.size + self.hi[t])
            lo, hi = distinct // domain.size, distinct % domain.size
            cells[a] = at, np.array(domain.run_texts(lo, hi), object)
        for a, values in self.by_aggregate():
            at, runs = cells[a]
            code, numbers = pd.factorize(values)
            shown = np.array([number_text(number) for number in numbers.tolist()], object)
            cells[a] = np.where(code >= 0, len(runs) + code, at), np.concatenate([runs, shown])
        for t, a in enumerate(layout.sets):
            words = self.bits[layout.offset[t] : layout.offset[t + 1]]
            domain = self.domains[a]
            number = int(np.searchsorted(layout.ranges, a - 1)) if domain.kind == "codes" else 0
            at, values = pd.factorize(words[0])
            for word in (*words[1:], *((self.lo[number], self.hi[number]) if domain.kind == "codes" else ())):
                code, values = pd.factorize(word)
                at = pd.factorize(at * len(values) + code)[0]
            first = np.empty(int(at.max(initial=-1)) + 1, np.int64)
            first[at[::-1]] = np.arange(self.n)[::-1]
            if domain.kind == "codes":
                run = self.lo[number, first], self.hi[number, first]
                texts = coded_texts(self.domains[a - 1], domain, *run, words[:, first])
            else:
                texts = domain.set_texts(words[:, first])
            cells[a] = at, np.array(texts, object)
        return cells

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
        wanted = [a for a, domain in enumerate(domains) if domain.aggregate is not None]
        aggregates = np.full((len(wanted), n), np.nan) if wanted else None
        problems: list[str] = []
        row_of = layout.row_of_range
        word_of = {a: int(layout.offset[t]) for a, t in layout.place_of_set.items()}
        width = {d.column: 1 + (d.position or 0) for d in domains}
        for a, domain in enumerate(domains):
            if domain.column not in frame.columns:
                if not domain.position:
                    problems.append(f"column {domain.column!r}: missing from the published table")
                continue
            texts, at = _distinct_texts(frame[domain.column])
            bad = np.zeros(len(texts), bool)
            times = np.bincount(at, minlength=len(texts)).tolist()
            if domain.has_codes:
                reader = None if readers is None else readers[a]
                runs, words, bad = _read_coded_cells(texts, times, domain, domains[a + 1], reader, canonical)
                lo[row_of[a]], hi[row_of[a]] = runs[0][at], runs[1][at]
                bits[word_of[a + 1] : word_of[a + 1] + len(words)] = words[:, at]
            elif domain.kind == "codes":
                continue  # read with its numbers
            elif domain.aggregate is not None and aggregates is not None:
                reader = None if readers is None else readers[a]
                numbers, bad = _read_aggregates(texts, domain, reader, canonical)
                aggregates[wanted.index(a)] = numbers[at]
                lo[row_of[a]], hi[row_of[a]] = 0, domain.size - 1
            elif domain.shape == "range":
                runs = np.zeros((2, len(texts)), np.int32)
                cells = [_cell(text, domain, width) for text in texts]
                for u, cell in enumerate(cells):
                    if readers is not None:
                        run = readers[a].run(texts[u], times[u])
                    else:
                        run = None if cell is None else domain.read_run(cell)
                    bad[u] = run is None
                    runs[:, u] = run or (domain.size, -1)
                if canonical:
                    bad |= _odd_runs(domain, cells, runs)
                lo[row_of[a]], hi[row_of[a]] = runs[0][at], runs[1][at]
            else:
                words, bad = domain.read_sets(texts) if readers is None else readers[a].bits(texts, times)
                if canonical:
                    read = np.flatnonzero(~bad)
                    plain = domain.set_texts(words[:, read])
                    bad[read] = [texts[u] not in (WHOLE, text) for u, text in zip(read, plain, strict=True)]
                bits[word_of[a] : word_of[a] + domain.words] = words[:, at]
            if bad.any() and not domain.position:
                count = int(bad[at].sum())
                problems.append(
                    f"column {domain.column!r}: {count} cells are no generalization of its values; "
                    "use the schema and the original table that the release was made with"
                    + (", or say that another tool made it" if canonical else "")
                )
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
            slack = 1e-9 * (1.0 + np.abs(points[[0, -1]]).max()) * size
            with np.errstate(over="ignore", invalid="ignore"):
                least = size * values - (size - 1) * points[-1] - slack
                most = size * values - (size - 1) * points[0] + slack
            shown = np.isfinite(least) & np.isfinite(most)
            lo[row_of[a], shown] = np.searchsorted(points, least[shown], side="left")
            hi[row_of[a], shown] = np.searchsorted(points, most[shown], side="right") - 1
        return replace(self, lo=lo, hi=hi)


def _read_coded_cells(
    texts: Sequence[str],
    times: Sequence[int],
    numbers: Domain,
    codes: Domain,
    reader: ColumnReader | None,
    canonical: bool,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return cells of a numeric column with codes: runs (2, u), words of codes (words, u), and which cannot be read (u,)."""
    runs = np.empty((2, len(texts)), np.int32)
    words = np.zeros((codes.words, len(texts)), np.uint64)
    bad = np.zeros(len(texts), bool)
    for u, text in enumerate(texts):
        cell = read_coded(codes, text) if reader is None else reader.coded(text, times[u])
        run: tuple[int, int] | None = (numbers.size, -1)
        if cell is not None and cell[0] is not None:
            run = numbers.read_run(cell[0]) if reader is None else reader.run(cell[0], times[u])
        bad[u] = cell is None or run is None
        runs[:, u] = run or (numbers.size, -1)
        for code in cell[1] if cell is not None else ():
            words[code >> 6, u] |= _ONE << np.uint64(code & 63)
    if canonical:
        plain = coded_texts(numbers, codes, runs[0], runs[1], words)
        for u, text in enumerate(texts):
            if bad[u] or text in (WHOLE, plain[u]):
                continue
            run_text, *rest = set_members(text)
            held = [
                label
                for code, label in enumerate(codes.labels)
                if words[code >> 6, u] >> np.uint64(code & 63) & _ONE
            ]
            bad[u] = [NUMBER_MEMBER, *rest] != held or not numbers.is_within(run_text)
    return runs, words, bad


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


def _read_aggregates(
    texts: Sequence[str], domain: Domain, reader: ColumnReader | None, canonical: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return cells that are the mean or median of a class: the numbers (u,), NaN for ``*``, and which cannot be read (u,)."""
    numbers = np.full(len(texts), np.nan)
    bad = np.zeros(len(texts), bool)
    for u, text in enumerate(texts):
        if text == WHOLE or (reader is not None and reader.hides(text)):
            continue
        number = domain.read_aggregate(text, canonical and reader is None)
        bad[u] = number is None
        if number is not None:
            numbers[u] = number
    return numbers, bad


def _odd_runs(domain: Domain, cells: Sequence[str | None], runs: np.ndarray) -> np.ndarray:
    """Return cells in another notation than the published one: a second spelling distinguishes equal rows."""
    odd = np.array([cell is not None and cell != WHOLE for cell in cells], bool)
    covering = odd & (runs[0] <= runs[1])
    for u, text in zip(np.flatnonzero(covering).tolist(), domain.run_texts(*runs[:, covering]), strict=True):
        odd[u] = cells[u] != text
    for u in np.flatnonzero(odd).tolist():
        odd[u] = not domain.is_within(str(cells[u]))
    return odd


def _cell(text: str, domain: Domain, width: dict[str, int]) -> str | None:
    """Return the part of a published text that is about this domain: of a code, the character at its position."""
    if domain.position is None or text == WHOLE:
        return text
    return text[domain.position] if len(text) == width[domain.column] else None


def _distinct_texts(cells: pd.Series) -> tuple[list[str], np.ndarray]:
    """Return the distinct cells of a column as text, and the position of each row's cell among them."""
    import pandas as pd

    at, distinct = pd.factorize(cells, use_na_sentinel=False)
    plain = np.asarray(distinct, object)
    texts = [cell if isinstance(cell, str) else "" if pd.isna(cell) else _plain(cell) for cell in plain]
    return texts, at


def _plain(cell: object) -> str:
    is_number = isinstance(cell, int | float | np.integer | np.floating) and not isinstance(
        cell, bool | np.bool_
    )
    return number_text(cell) if is_number else str(cell)  # type: ignore[arg-type]


def _full(size: int) -> np.ndarray:
    """Return the words of a set that has every code, shape (words,), uint64."""
    flags = np.zeros(-(-size // 64) * 64, np.uint8)
    flags[:size] = 1
    return np.packbits(flags, bitorder="little").view(np.uint64)
