"""The pieces of a source: row groups of Parquet files, or Arrow files that replace a CSV file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from anonflow.engine.flows.spec import SourceSpec
from anonflow.engine.storage.spill import read_batch, write_batches
from anonflow.errors import DataError
from anonflow.table.domain import missing_cells
from anonflow.table.files.read import (
    Opener,
    csv_batches,
    not_parquet,
    open_file,
    parquet_fields,
    parquet_files,
)
from anonflow.table.prepare import Preparation
from anonflow.table.schema import Schema

__all__ = [
    "Piece",
    "fields_of",
    "held_table",
    "kept_rows",
    "parquet_pieces",
    "put_aside",
    "put_batches",
    "read_piece",
    "rewrite",
]


@dataclass(frozen=True)
class Piece:
    """Some consecutive rows of a source.

    Attributes
    ----------
    path : str
        A Parquet file, or an Arrow file of one record batch.
    groups : tuple of int or None
        Row groups of the Parquet file; None for an Arrow file.
    rows : int
    """

    path: str
    groups: tuple[int, ...] | None
    rows: int


def fields_of(path: Path, source: SourceSpec, opener: Opener, named: Collection[str]) -> pa.Schema:
    """Return the columns of a source, seen without reading its rows; `named` are the ones that are needed.

    Raises
    ------
    DataError
        If it cannot be read, or has changed.
    """
    if source.parquet is not None:
        return parquet_fields(path, opener=opener, named=named)
    first = next(
        csv_batches(
            path, delimiter=source.delimiter, encoding=source.encoding, missing=source.missing, opener=opener
        )
    )
    return first.schema


def parquet_pieces(path: Path, rows: int, opener: Opener | None = None) -> list[Piece] | None:
    """Return a Parquet source as pieces of about as many rows; None where its row groups are too large for that.

    Parameters
    ----------
    path : pathlib.Path
        A file, or a folder of files.
    rows : int
    opener : callable, optional
        Opens each file.

    Raises
    ------
    DataError
        If there is no Parquet file, or one cannot be read.
    """
    pieces = []
    for file in parquet_files(path):
        try:
            about = pq.ParquetFile((opener or open_file)(file)).metadata
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise not_parquet(file, error) from None
        groups: list[int] = []
        held = 0
        for number in range(about.num_row_groups):
            count = about.row_group(number).num_rows
            if count > 2 * rows:
                return None
            if groups and held + count > rows:
                pieces.append(Piece(str(file), tuple(groups), held))
                groups, held = [], 0
            groups.append(number)
            held += count
        if held:
            pieces.append(Piece(str(file), tuple(groups), held))
    return pieces


def rewrite(
    path: str,
    source: SourceSpec,
    columns: Sequence[str],
    rows: int,
    into: str,
    opener: Opener | None = None,
    steps: Preparation | None = None,
    before: Sequence[Piece] | None = None,
) -> tuple[list[Piece], int]:
    """Write a source that cannot be read in parts as Arrow files, from its first row to its last.

    Parameters
    ----------
    path : str
    source : SourceSpec
    columns : sequence of str
        Those that are needed.
    rows : int
        Of a piece.
    into : str
        Beginning of the files' names.
    opener : callable, optional
        Opens each file of the source.
    steps : Preparation, optional
        Taken before; `columns` are those after them.
    before : sequence of Piece, optional
        Arrow files that are read in place of the source.

    Returns
    -------
    pieces : list of Piece
    read : int
        Rows of the source. No more than a piece is held at a time.

    Raises
    ------
    DataError
        If the source cannot be read.
    OSError
        If a file cannot be written.
    """
    pieces: list[Piece] = []

    def put(batches: list[pa.RecordBatch]) -> None:
        table = pa.Table.from_batches(batches).combine_chunks()
        pieces.extend(put_batches(table.to_batches(), into, len(pieces)))

    waiting: list[pa.RecordBatch] = []
    held = read = 0
    own = None if steps else columns
    batches = _batches(path, source, own, rows, opener) if before is None else _stored(before)
    for batch in batches:
        read += batch.num_rows
        if steps:
            done = prepared(pa.Table.from_batches([batch]), steps).select(list(columns))
            batch = done.combine_chunks().to_batches()[0] if done.num_rows else batch.slice(0, 0)
        while batch.num_rows:
            part = batch.slice(0, rows - held)
            batch = batch.slice(part.num_rows)
            waiting.append(part)
            held += part.num_rows
            if held == rows:
                put(waiting)
                waiting, held = [], 0
    if waiting:
        put(waiting)
    return pieces, read


def prepared(table: pa.Table, steps: Preparation) -> pa.Table:
    """Return a table after the preparation steps; columns that no step names keep their values.

    Raises
    ------
    SchemaError, DataError
        If a step does not go with the table.
    """
    frame, fields = _named(table, steps), _named(table.schema.empty_table(), steps)
    before = pd.RangeIndex(table.num_rows)
    after, fields = steps.apply(frame.set_index(before)), steps.apply(fields)
    rows = pa.array(after.index.to_numpy())
    named = {step.column for step in steps.steps}
    columns = {}
    for name in after.columns:
        if name in table.column_names and name not in named:
            columns[name] = table.column(name).take(rows)
        else:
            kind = pa.array(fields[name], from_pandas=True).type
            # texts have no type of their own before pandas 3: an empty column has no known type
            kind = pa.string() if pa.types.is_null(kind) else kind
            columns[name] = pa.array(after[name], kind, from_pandas=True)
    return pa.table(columns).replace_schema_metadata(None)


_NULLABLE = {
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint8(): pd.UInt8Dtype(),
    pa.uint16(): pd.UInt16Dtype(),
    pa.uint32(): pd.UInt32Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
}


def _named(table: pa.Table, steps: Preparation) -> pd.DataFrame:
    """Return the columns that steps name as a frame, of types that do not rest on the values; of the others, the names."""
    named = {step.column for step in steps.steps}
    cells = table.select([name for name in table.column_names if name in named]).to_pandas(
        types_mapper=_NULLABLE.get
    )
    nothing = np.zeros(table.num_rows, np.int8)
    return pd.DataFrame({name: cells[name] if name in named else nothing for name in table.column_names})


def held_table(frame: pd.DataFrame) -> pa.Table:
    """Return a table in memory as an Arrow table of plain columns.

    Raises
    ------
    DataError
        If a column has values of several kinds, which no file could hold.
    """
    columns = {}
    for name in frame.columns:
        try:
            columns[str(name)] = pa.array(frame[name], from_pandas=True)
        except (pa.ArrowException, UnicodeError):
            raise DataError(
                f"column {str(name)!r}: has values of several kinds, which cannot be stored in pieces; make them "
                "of one kind, or set source.pieces to false"
            ) from None
    return _plain(pa.table(columns))


def put_aside(table: pa.Table, rows: int, into: str) -> list[Piece]:
    """Write a table in memory as Arrow files, as :func:`rewrite` writes a source.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    pieces: list[Piece] = []
    for start in range(0, table.num_rows, rows):
        part = table.slice(start, rows).combine_chunks()
        pieces += put_batches(part.to_batches(), into, len(pieces))
    return pieces


def put_batches(batches: Sequence[pa.RecordBatch], into: str, number: int) -> list[Piece]:
    """Write record batches as a piece each, numbered from `number`: Arrow splits a table whose texts are beyond 2 GiB.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    pieces = []
    for at, batch in enumerate(batches, number):
        name = f"{into}{at}.arrow"
        write_batches(name, [batch])
        pieces.append(Piece(name, None, batch.num_rows))
    return pieces


def _batches(
    path: str, source: SourceSpec, columns: Sequence[str] | None, rows: int, opener: Opener | None
) -> Iterator[pa.RecordBatch]:
    if source.parquet is not None:
        for file in parquet_files(path):
            try:
                content = pq.ParquetFile((opener or open_file)(file))
                names = list(columns) if columns is not None else content.schema_arrow.names
                for batch in content.iter_batches(min(rows, 1 << 16), columns=names):
                    yield _plain(pa.Table.from_batches([batch]).select(names)).to_batches()[0]
            except (pa.ArrowException, OSError, UnicodeError) as error:
                raise not_parquet(file, error) from None
        return
    for batch in csv_batches(
        path, delimiter=source.delimiter, encoding=source.encoding, missing=source.missing, opener=opener
    ):
        yield batch if columns is None else batch.select(list(columns))


def _stored(pieces: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
    for piece in pieces:
        yield read_batch(piece.path)


def read_piece(
    piece: Piece, columns: Sequence[str], opener: Opener | None = None, schema: Schema | None = None
) -> pa.Table:
    """Return the rows of a piece.

    Parameters
    ----------
    piece : Piece
    columns : sequence of str
    opener : callable, optional
        Opens the file of a source; the run's own temporary files need no opener.
    schema : Schema, optional
        What the columns are; without it texts stay as they are.

    Raises
    ------
    DataError
        If the file cannot be read.
    """
    if piece.groups is None:
        return _without_empty_texts(
            pa.Table.from_batches([read_batch(piece.path)]).select(list(columns)), schema
        )
    try:
        with pq.ParquetFile((opener or open_file)(Path(piece.path))) as file:
            table = file.read_row_groups(list(piece.groups), columns=list(columns))
        return _without_empty_texts(_plain(table.select(list(columns))), schema)
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise not_parquet(piece.path, error) from None


def _without_empty_texts(table: pa.Table, schema: Schema | None) -> pa.Table:
    """Return the same as :class:`anonflow.table.Table` has it: what no CSV file can tell from a missing value is one."""
    if schema is None:
        return table
    for at, field in enumerate(table.schema):
        text = pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        if text and schema[field.name].empty_is_missing:
            cells = table.column(at)
            empty = pc.fill_null(pc.equal(cells, ""), False)
            if pc.any(empty).as_py():
                table = table.set_column(at, field, pc.if_else(empty, pa.scalar(None, field.type), cells))
    return table


def _plain(table: pa.Table) -> pa.Table:
    """Return the same without metadata, and with the values themselves where a file has dictionaries of them.

    Every column may have blanks, whatever its file says: the pieces of all files have the same columns.

    Raises
    ------
    pyarrow.ArrowInvalid
        If texts are none.
    """
    fields = [
        pa.field(field.name, field.type.value_type if pa.types.is_dictionary(field.type) else field.type)
        for field in table.schema
    ]
    table = table.cast(pa.schema(fields)).replace_schema_metadata(None)
    table.validate(full=True)
    return table


def kept_rows(frame: pd.DataFrame, schema: Schema) -> np.ndarray:
    """Return which rows stay where the schema drops those without a value, shape (m,), bool."""
    kept = np.ones(len(frame), bool)
    for name in frame.columns:
        if schema[name].missing == "drop":
            kept &= ~missing_cells(frame[name])
    return kept
