"""One pass over a source: the domains of its quasi-identifiers, and what its other columns would reveal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from anonflow.engine.flows.fingerprint import Fingerprint
from anonflow.engine.storage.pieces import Piece, kept_rows, read_piece
from anonflow.engine.storage.spill import write_batches
from anonflow.errors import AnonflowError, DataError
from anonflow.table import Domain, Schema
from anonflow.table.coding import check_missing, code_column
from anonflow.table.domain import missing_cells
from anonflow.table.files.read import exact_frame
from anonflow.table.row_marks import Content, unit_marks

__all__ = [
    "Coder",
    "Scanned",
    "code_piece",
    "coders",
    "marks_of",
    "published_kind",
    "scan",
    "units_of",
]

MOST = 1_000_000
"""Distinct values of a quasi-identifier: every worker holds them all."""


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
        QI column -> cells without a value.
    content : Content
        Of the rows that are kept, for the words of the draw.
    """

    rows: int
    kept: int
    values: dict[str, pd.Series]
    missing: dict[str, int]
    content: Content

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
            self.content.then(other.content),
        )


def scan(fingerprint: Fingerprint, piece: Piece, schema: Schema, columns: Sequence[str]) -> Scanned:
    """Scan a piece.

    Parameters
    ----------
    fingerprint : Fingerprint
        Of the source.
    piece : Piece
    schema : Schema
    columns : sequence of str
        Those that are published.

    Returns
    -------
    Scanned

    Raises
    ------
    DataError
        If it cannot be read or has changed, or a quasi-identifier has too many distinct values.
    """
    frame = exact_frame(read_piece(piece, columns, fingerprint.open, schema))
    kept = kept_rows(frame, schema)
    if not kept.all():
        frame = frame[kept]
    values, missing = {}, {}
    for name in schema.quasi_identifiers:
        missing[name] = int(missing_cells(frame[name]).sum())
        values[name] = frame[name].value_counts(sort=False, dropna=True)
        _check_distinct(name, len(values[name]))
    return Scanned(len(kept), int(kept.sum()), values, missing, Content.of(frame, columns))


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


def published_kind(cells: pd.Series, hidden: bool) -> str:
    """Return the published type of another column: int, float, bool or text, as in a table that is read at once.

    Parameters
    ----------
    cells : pandas.Series, n cells
    hidden : bool
        Whether some are published as ``*``.
    """
    if hidden or cells.isna().all() or isinstance(cells.dtype, pd.api.extensions.ExtensionDtype):
        return "text"
    kind = cells.dtype.kind
    if kind == "u" and int(cells.max()) >= 1 << 63:
        return "text"
    return {"b": "bool", "i": "int", "u": "int", "f": "float"}.get(kind, "text")
