"""One pass over a source: the domains of its quasi-identifiers, and what its other columns would reveal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from anonflow.engine.flows.fingerprint import Fingerprint
from anonflow.engine.storage.pieces import Piece, kept_rows, read_piece
from anonflow.engine.storage.spill import read_table, write_batches
from anonflow.errors import AnonflowError, DataError
from anonflow.release.columns import telling
from anonflow.table import Domain, Schema
from anonflow.table.coding import check_missing, code_column
from anonflow.table.domain import missing_cells
from anonflow.table.files.read import exact_frame, has_wide
from anonflow.table.row_marks import Content, cell_text, unit_marks
from anonflow.table.sampling_weights import WeightSummary, weights_of

__all__ = [
    "Coder",
    "Scanned",
    "Sketch",
    "ValueCounts",
    "code_piece",
    "code_values",
    "coders",
    "marks_of",
    "published_kind",
    "scan",
    "sketched",
    "units_of",
]

MOST = 1_000_000
"""Distinct values of a quasi-identifier: every worker holds them all."""

JOINT = 8_192
"""Combinations of several other columns' values that are counted; of more, a share."""

SKETCH = 100_000
"""Distinct values of another column that are counted; of more, a share."""


@dataclass(frozen=True, eq=False)
class Sketch:
    """How often values occur, and in how many runs: for all values, or for those whose hash ends in zeros.

    Attributes
    ----------
    level : int
        How many zeros; one value in 2^level is here, with all its occurrences.
    values : numpy.ndarray, shape (v,), uint64, ascending
        Hashes.
    counts, runs : numpy.ndarray, shape (v,), int64
    first, last : int or None
        The hashes of the first and of the last cell that is not missing.
    joint : bool
        Whether it is of combinations of several columns, of which fewer are kept.
    """

    level: int
    values: np.ndarray
    counts: np.ndarray
    runs: np.ndarray
    first: int | None
    last: int | None
    joint: bool = False

    @classmethod
    def of(cls, cells: pd.Series) -> Sketch:
        """Return the sketch of consecutive cells."""
        at, hashes = _hashed(cells)
        distinct, place = hashes, at[at >= 0]
        counts = np.bincount(place, minlength=len(distinct))
        starts = np.concatenate([place[:1], place[1:][place[1:] != place[:-1]]])
        runs = np.bincount(starts, minlength=len(distinct))
        first, last = (int(hashes[place[0]]), int(hashes[place[-1]])) if len(place) else (None, None)
        order = np.argsort(hashes)
        return cls(0, hashes[order], counts[order], runs[order], first, last)._thinned()

    @classmethod
    def of_rows(cls, columns: Sequence[pd.Series]) -> list[Sketch]:
        """Return sketches of rows in the first of some columns, in the first two, and so on; without runs."""
        rows = np.zeros(len(columns[0]), np.uint64)
        marks = []
        for cells in columns:
            at, hashes = _hashed(cells)
            rows = (rows + np.append(hashes, np.uint64(1))[at]) * np.uint64(0x9E3779B97F4A7C15)
            rows ^= rows >> np.uint64(29)
            values, counts = np.unique(rows, return_counts=True)
            marks.append(cls(0, values, counts, np.zeros_like(counts), None, None, True)._thinned(JOINT))
        return marks

    @property
    def alone(self) -> int:
        """About how many cells have a value that no other has; so many where the level is 0."""
        return int((self.counts == 1).sum()) << self.level

    def then(self, other: Sketch) -> Sketch:
        """Return this one's cells and those that follow."""
        level = max(self.level, other.level)
        mine, theirs = self._at(level), other._at(level)
        values, at = np.unique(np.concatenate([mine.values, theirs.values]), return_inverse=True)
        counts = np.bincount(at, np.concatenate([mine.counts, theirs.counts]), len(values)).astype(np.int64)
        runs = np.bincount(at, np.concatenate([mine.runs, theirs.runs]), len(values)).astype(np.int64)
        if self.last is not None and self.last == other.first:
            runs[values == np.uint64(self.last)] -= 1  # a run continues across the border
        first = other.first if self.first is None else self.first
        last = self.last if other.last is None else other.last
        most = JOINT if self.joint else None
        return Sketch(level, values, counts, runs, first, last, self.joint)._thinned(most)

    def _at(self, level: int) -> Sketch:
        if level == self.level:
            return self
        kept = (self.values & np.uint64((1 << level) - 1)) == 0
        return replace(
            self, level=level, values=self.values[kept], counts=self.counts[kept], runs=self.runs[kept]
        )

    def _thinned(self, most: int | None = None) -> Sketch:
        sketch = self
        while len(sketch.values) > (SKETCH if most is None else most):
            sketch = sketch._at(sketch.level + 1)
        return sketch

    def warning(self, name: str) -> str | None:
        """Return a warning about the column; None if it reveals nothing."""
        return telling(name, self.counts, int(self.runs.sum()) - len(self.counts), 1 << self.level)


def _hashed(cells: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return which different value each cell has, -1 where it is missing, and the values' hashes, uint64."""
    at, distinct = pd.factorize(cells)
    if pd.api.types.is_numeric_dtype(distinct.dtype) and not pd.api.types.is_bool_dtype(distinct.dtype):
        # where some are missing, whole numbers are read as floats, and truth values as objects
        return at, pd.util.hash_array(np.asarray(distinct, np.float64))
    return at, pd.util.hash_array(np.array([str(value) for value in distinct], object), categorize=False)


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """The values of a column whose diversity is asked for, in the order in which the table first has them.

    Attributes
    ----------
    values : tuple
        Plain values; None is a missing one. Never to be printed.
    counts : numpy.ndarray, shape (V,), int64
    """

    values: tuple[Any, ...]
    counts: np.ndarray

    @classmethod
    def of(cls, cells: pd.Series) -> ValueCounts:
        """Return those of consecutive cells."""
        at, distinct = pd.factorize(cells, use_na_sentinel=False)
        values = tuple(_plain(value) for value in distinct)
        return cls(values, np.bincount(at, minlength=len(values)).astype(np.int64))

    def then(self, name: str, other: ValueCounts) -> ValueCounts:
        """Return this one's cells and those that follow.

        Raises
        ------
        DataError
            If they are too many.
        """
        values = tuple(dict.fromkeys((*self.values, *other.values)))
        _check_distinct(name, len(values))
        place = {value: at for at, value in enumerate(values)}
        counts = np.zeros(len(values), np.int64)
        for part in (self, other):
            counts[[place[value] for value in part.values]] += part.counts
        return ValueCounts(values, counts)

    def codes(self, cells: pd.Series) -> np.ndarray:
        """Return which of the values each cell has, shape (m,), int64."""
        at, distinct = pd.factorize(cells, use_na_sentinel=False)
        place = {value: number for number, value in enumerate(self.values)}
        codes: np.ndarray = np.array([place[_plain(value)] for value in distinct], np.int64)[at]
        return codes


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    return None if pd.isna(value) else value


@dataclass(frozen=True, eq=False)
class Scanned:
    """The content of one or several pieces.

    Attributes
    ----------
    rows, kept : int
        Of the pieces, and without those that a missing value drops.
    values : dict of pandas.Series
        QI column -> its distinct values (the index) and how often each occurs.
    missing : dict of int
        Published column -> cells without a value.
    sketches : dict of Sketch
        Other columns.
    beyond : frozenset of str
        Other columns with whole numbers that 64 bits with a sign cannot hold.
    wide : frozenset of str
        Other columns with whole numbers that floats cannot hold.
    content : Content
        Of the rows that are kept, for the words of the draw.
    sensitive : dict of ValueCounts
        Columns whose diversity is asked for.
    weights : WeightSummary or None
        Of the column of the role ``weight``.
    """

    rows: int
    kept: int
    values: dict[str, pd.Series]
    missing: dict[str, int]
    sketches: dict[str, Sketch]
    beyond: frozenset[str] = frozenset()
    wide: frozenset[str] = frozenset()
    content: Content = field(default_factory=lambda: Content(0, 0))
    sensitive: dict[str, ValueCounts] = field(default_factory=dict)
    weights: WeightSummary | None = None

    def then(self, other: Scanned) -> Scanned:
        """Return this one's rows and those that follow.

        Raises
        ------
        DataError
            If a quasi-identifier has too many distinct values.
        """
        values = {}
        for name, counts in self.values.items():
            both = pd.concat([part for part in (counts, other.values[name]) if len(part)] or [counts])
            values[name] = both.groupby(level=0, sort=False).sum()
            _check_distinct(name, len(values[name]))
        return Scanned(
            self.rows + other.rows,
            self.kept + other.kept,
            values,
            {name: count + other.missing[name] for name, count in self.missing.items()},
            {name: sketch.then(other.sketches[name]) for name, sketch in self.sketches.items()},
            self.beyond | other.beyond,
            self.wide | other.wide,
            self.content.then(other.content),
            {name: counts.then(name, other.sensitive[name]) for name, counts in self.sensitive.items()},
            None if self.weights is None or other.weights is None else self.weights.then(other.weights),
        )

    def texts(self) -> dict[str, dict[str, int]]:
        """Return column whose diversity is asked for -> how often each text occurs, as the verifier reads cells."""
        texts: dict[str, dict[str, int]] = {}
        for name, counts in self.sensitive.items():
            own = texts[name] = {}
            for value, count in zip(counts.values, counts.counts.tolist(), strict=True):
                text = cell_text(value, False)
                own[text] = own.get(text, 0) + count
        return texts


def scan(
    fingerprint: Fingerprint,
    piece: Piece,
    schema: Schema,
    columns: Sequence[str],
    sensitive: Sequence[str] = (),
) -> Scanned:
    """Scan a piece.

    Parameters
    ----------
    fingerprint : Fingerprint
        Of the source.
    piece : Piece
    schema : Schema
    columns : sequence of str
        Those that are published.
    sensitive : sequence of str
        Those of them whose diversity is asked for.

    Returns
    -------
    Scanned

    Raises
    ------
    DataError
        If it cannot be read or has changed, or a quasi-identifier has too many distinct values.
    """
    table = read_piece(piece, columns, fingerprint.open, schema)
    frame = exact_frame(table)
    kept = kept_rows(frame, schema)
    if not kept.all():
        frame = frame[kept]
    values, missing, sketches = {}, {}, {}
    beyond, wide = set(), set()
    for name in columns:
        cells = frame[name]
        missing[name] = int(missing_cells(cells).sum())
        if schema[name].role != "quasi-identifier":
            sketches[name] = Sketch.of(cells)
            if str(cells.dtype).lower() == "uint64" and len(cells) and int(cells.max()) >= 1 << 63:
                beyond.add(name)
            if pa.types.is_integer(table.column(name).type) and has_wide(table.column(name)):
                wide.add(name)
            continue
        values[name] = cells.value_counts(sort=False, dropna=True)
        _check_distinct(name, len(values[name]))
    content = Content.of(frame, columns)
    counted = {name: ValueCounts.of(frame[name]) for name in sensitive}
    whole = frozenset(beyond), frozenset(wide)
    by_weight = schema.weight_column
    weights = WeightSummary.of(weights_of(frame[by_weight])) if by_weight in columns else None
    return Scanned(len(kept), int(kept.sum()), values, missing, sketches, *whole, content, counted, weights)


def _check_distinct(name: str, count: int) -> None:
    if count > MOST:
        raise DataError(
            f"column {name!r}: more than {MOST:,} distinct values, too many for a table that is worked on in "
            "pieces; make it coarser, or set source.pieces to false"
        )


_LOOKUP = threading.Lock()
"""pandas builds an index's table of values at the first lookup: a second thread must not look into half of it."""


@dataclass(frozen=True, eq=False)
class Coder:
    """The codes of a column's values.

    Attributes
    ----------
    name : str
    values : pandas.Index, length v
    codes : numpy.ndarray, shape (v + 1, positions), int32
        The last row is for a missing value.
    """

    name: str
    values: pd.Index
    codes: np.ndarray

    def code(self, cells: pd.Series) -> np.ndarray:
        """Return the codes of some cells, shape (m, positions), int32."""
        at, distinct = pd.factorize(cells)
        with _LOOKUP:
            place = self.values.get_indexer(pd.Index(distinct))
        codes: np.ndarray = self.codes[np.append(place, len(self.values))[at]]
        return codes


def coders(scanned: Scanned, schema: Schema) -> tuple[list[Coder], tuple[Domain, ...]]:
    """Return the domains of a table and the codes of its values, the same as for the whole table at once.

    Parameters
    ----------
    scanned : Scanned
        Of all pieces.
    schema : Schema

    Returns
    -------
    coders : list of Coder
        In schema order.
    domains : tuple of Domain

    Raises
    ------
    DataError, HierarchyError, SchemaError
        If values do not go with their column.
    """
    coders_of_columns: list[Coder] = []
    domains: list[Domain] = []
    errors: list[AnonflowError] = []
    for name in schema.quasi_identifiers:
        try:
            coder, own = _coder(name, scanned.values[name], scanned.missing[name], schema)
        except AnonflowError as error:
            errors.append(error)
            continue
        coders_of_columns.append(coder)
        domains += own
    if errors:
        problems = [problem for error in errors for problem in error.problems]
        raise type(errors[0]).collected("the table does not match its schema", problems)
    return coders_of_columns, tuple(domains)


def _coder(name: str, counted: pd.Series, missing: int, schema: Schema) -> tuple[Coder, list[Domain]]:
    """Code each distinct value once, and count it as often as it occurs."""
    check_missing(schema[name], missing)
    cells = counted.index.to_series(index=pd.RangeIndex(len(counted)))
    if missing:
        nothing = pd.Series([None], dtype=cells.dtype if len(cells) else object)
        cells = pd.concat([cells, nothing], ignore_index=True) if len(cells) else nothing
    often = np.append(counted.to_numpy(np.int64), missing)
    coded = code_column(cells, schema[name], Path(schema.folder), often[: len(cells)])
    codes = np.full((len(counted) + 1, len(coded.codes)), -1, np.int32)
    codes[: len(cells)] = np.stack(coded.codes, axis=1)
    domains = []
    for t, domain in enumerate(coded.domains):
        present = codes[:, t] >= 0
        counts = np.bincount(codes[present, t], often[present], domain.size).astype(np.int64)
        domains.append(replace(domain, counts=counts))
    return Coder(name, counted.index, codes), domains


def code_piece(
    coders: Sequence[Coder],
    fingerprint: Fingerprint,
    piece: Piece,
    schema: Schema,
    columns: Sequence[str],
    start: int,
    put_codes: Callable[[int, np.ndarray], None],
    others: str | None,
) -> None:
    """Code the rows of a piece, and put them and their other columns into the table's files.

    Parameters
    ----------
    coders : sequence of Coder
    fingerprint : Fingerprint
        Of the source.
    piece : Piece
    schema : Schema
    columns : sequence of str
        Those that are published.
    start : int
        Position in the table of the first row that is kept.
    put_codes : callable
        Writes the codes of consecutive rows, and takes the position of the first.
    others : str, optional
        The file of the piece's other columns, if there are any.

    Raises
    ------
    DataError, OSError
        If it cannot be read or has changed, or a file cannot be written.
    """
    table = read_piece(piece, columns, fingerprint.open, schema)
    qis = {coder.name for coder in coders}
    frame = exact_frame(
        table.select([name for name in columns if schema[name].missing == "drop" or name in qis])
    )
    kept = kept_rows(frame, schema)
    if not kept.all():
        frame, table = frame[kept], table.filter(pa.array(kept))
    put_codes(start, np.concatenate([coder.code(frame[coder.name]) for coder in coders], axis=1))
    if others is not None:
        beside = table.select([name for name in columns if name not in qis]).combine_chunks()
        write_batches(others, beside.to_batches() or [pa.RecordBatch.from_pylist([], schema=beside.schema)])


def code_values(
    counted: ValueCounts,
    others: str,
    column: str,
    places: np.ndarray,
    start: int,
    put_values: Callable[[int, np.ndarray], None],
) -> None:
    """Code the values of a piece that must be diverse, and put them into the table's file.

    Parameters
    ----------
    counted : ValueCounts
        Of the column.
    others : str
        The file of the piece's other columns.
    column : str
    places : numpy.ndarray, shape (V,), int64
        The code of each value.
    start : int
        Position in the table of the piece's first row.
    put_values : callable
        Writes the codes of consecutive rows, and takes the position of the first.

    Raises
    ------
    OSError
        If a file cannot be read or written.
    """
    cells = exact_frame(read_table(others).select([column])).iloc[:, 0]
    put_values(start, places[counted.codes(cells)][:, None])


def marks_of(
    fingerprint: Fingerprint,
    piece: Piece,
    schema: Schema,
    columns: Sequence[str],
    by: Sequence[str],
    key: str,
) -> np.ndarray:
    """Return the marks of a piece's people in the form of the owner's folder, shape (m,), uint64.

    Parameters
    ----------
    fingerprint : Fingerprint
        Of the source.
    piece : Piece
    schema : Schema
    columns : sequence of str
        All that the source has of the schema.
    by : sequence of str
        The columns that identify people.
    key : str

    Raises
    ------
    DataError
        If it cannot be read or has changed.
    """
    needed = [name for name in columns if schema[name].missing == "drop" or name in by]
    frame = exact_frame(read_piece(piece, needed, fingerprint.open, schema))
    return unit_marks(frame[kept_rows(frame, schema)], by, key)


def units_of(
    fingerprint: Fingerprint, piece: Piece, schema: Schema, columns: Sequence[str], names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the units of a piece's rows as hashes that are the same in every piece.

    Parameters
    ----------
    fingerprint : Fingerprint
        Of the source.
    piece : Piece
    schema : Schema
    columns : sequence of str
        All that the source has of the schema.
    names : sequence of str
        The columns of units and households.

    Returns
    -------
    hashes : numpy.ndarray, shape (len(names), m), uint64
        Two units have one hash once in 2^64.
    blank : numpy.ndarray, shape (len(names), m), bool

    Raises
    ------
    DataError
        If it cannot be read or has changed.
    """
    needed = [name for name in columns if schema[name].missing == "drop" or name in names]
    frame = exact_frame(read_piece(piece, needed, fingerprint.open, schema))
    frame = frame[kept_rows(frame, schema)]
    hashes = np.zeros((len(names), len(frame)), np.uint64)
    blank = np.zeros((len(names), len(frame)), bool)
    for t, name in enumerate(names):
        hashes[t], blank[t] = owner_hashes(frame[name])
    return hashes, blank


def owner_hashes(cells: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return the units of rows as hashes that are the same in every piece, and which rows have none, shape (m,) each."""
    at, distinct = pd.factorize(cells)
    own = np.array([_owner_word(value) for value in distinct] or [""], object)
    return pd.util.hash_array(own, categorize=False)[at], at < 0


def _owner_word(value: Any) -> str:
    """Return a unit's value as text: a whole number reads the same where blanks elsewhere made its column one of floats."""
    plain = _plain(value)
    return str(int(plain)) if isinstance(plain, float) and plain.is_integer() else str(plain)


def sketched(scanned: Scanned) -> tuple[list[str], list[str]]:
    """Return what is to be said of the other columns before they are published, and the others by their number of values.

    Returns
    -------
    said : list of str
    quiet : list of str
        Columns of which nothing is said, those with the most values first.
    """
    sentences = {name: sketch.warning(name) for name, sketch in scanned.sketches.items()}
    values = {
        name: (len(sketch.values) << sketch.level) + (scanned.missing[name] > 0)
        for name, sketch in scanned.sketches.items()
    }
    quiet = sorted(
        (name for name, sentence in sentences.items() if not sentence), key=lambda name: -values[name]
    )
    return [sentence for sentence in sentences.values() if sentence], quiet


def published_kind(name: str, field: pa.DataType, scanned: Scanned, hidden: bool) -> str:
    """Return the published type of another column: int, float, bool or text, as in a table that is read at once.

    Parameters
    ----------
    name : str
    field : pyarrow.DataType
        Of the source.
    scanned : Scanned
    hidden : bool
        Whether some cells are published as ``*``.
    """
    missing = scanned.missing[name]
    if hidden or missing == scanned.kept or name in scanned.beyond or (missing and name in scanned.wide):
        return "text"
    if pa.types.is_boolean(field) and not missing:
        return "bool"
    if pa.types.is_integer(field):
        return "float" if missing else "int"
    return "float" if pa.types.is_floating(field) else "text"
