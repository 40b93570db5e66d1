"""Read Parquet files, and folders of them, without guessing: the types that are in the files, and all of them the same columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from os import PathLike, fsdecode, fsencode, fspath
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from anonflow.errors import DataError
from anonflow.system import total_memory
from anonflow.table.arrow import as_written, check_nested, exact_frame, is_time_zone
from anonflow.table.files.opening import (
    Opener,
    check_count,
    check_fits,
    check_names,
    must_be_there,
    must_exist,
    open_file,
)
from anonflow.table.files.parquet_metadata import is_parquet


def read_parquet(
    path: str | PathLike[str], *, opener: Opener | None = None, named: Collection[str] | None = None
) -> pd.DataFrame:
    """Read a Parquet file, or all of a folder's, in the order of their names; pandas metadata is ignored.

    Parameters
    ----------
    path : path
    opener : callable, optional
        Opens each file.
    named : collection of str, optional
        The columns that are needed, all without it. Lists and structures in another column are not read: it is empty.

    Raises
    ------
    DataError
        If the file is missing, is not a Parquet file, or has columns that are not plain values; if files of a folder
        have other columns than its first, or types that no type holds without loss.
    """
    import pyarrow.parquet as pq

    files = parquet_files(path)
    fields = parquet_fields(path, opener=opener, named=named)
    read = [field.name for field in fields if not pa.types.is_null(field.type)]
    try:
        check_fits(fspath(path), (size for file in files for size in _unpacked_sizes(file)))
        tables = [pq.ParquetFile((opener or open_file)(file)).read(columns=read) for file in files]
        parts = [
            with_fields(part, fields, file) for file, part in zip(files, tables, strict=True) if part.num_rows
        ]
        table = pa.concat_tables([fields.empty_table(), *parts])
        table.validate(full=True)  # invalid texts would otherwise raise an error only when they are used
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise not_parquet(fspath(path), error) from None
    return exact_frame(table)


def parquet_batches(
    path: str | PathLike[str], fields: pa.Schema, rows: int, *, opener: Opener | None = None
) -> Iterator[pa.RecordBatch]:
    """Read a Parquet file, or all of a folder's, batch by batch; plain values without dictionaries.

    Parameters
    ----------
    path : path
    fields : pyarrow.Schema
        Those of :func:`parquet_fields`, or some of them.
    rows : int
        Of a batch, at most.
    opener : callable, optional
        Opens each file.

    Raises
    ------
    DataError
        As :func:`read_parquet`.
    """
    import pyarrow.parquet as pq

    read = [field.name for field in fields if not pa.types.is_null(field.type)]
    for file in parquet_files(path):
        try:
            for batch in pq.ParquetFile((opener or open_file)(file)).iter_batches(rows, columns=read):
                yield from (
                    plain_values(with_fields(pa.Table.from_batches([batch]), fields, file))
                    .combine_chunks()
                    .to_batches()
                )
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise not_parquet(file, error) from None


def with_fields(table: pa.Table, fields: pa.Schema, file: Path) -> pa.Table:
    """Return the columns of a table in the order and types of some fields; one that was not read is empty.

    Parameters
    ----------
    table : pyarrow.Table
    fields : pyarrow.Schema
        As :func:`parquet_fields` returns it.
    file : pathlib.Path
        Of the table.

    Raises
    ------
    DataError
        If a value would be changed.
    """
    columns = []
    for field in fields:
        if field.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, field.type))
            continue
        column = table.column(field.name)
        try:
            columns.append(column.cast(field.type))
        except pa.ArrowInvalid:
            if column.type == field.type or _FILE not in (field.metadata or {}):
                raise
            raise _other_type(
                field.name, file, column.type, fsdecode(field.metadata[_FILE]), field.type
            ) from None
    return pa.table(columns, schema=fields)


def plain_values(table: pa.Table) -> pa.Table:
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
    table = as_written(table.cast(pa.schema(fields)).replace_schema_metadata(None))
    table.validate(full=True)
    return table


_FILE = b"file"
"""In the metadata of a field: the file of a folder that its type comes from."""


def _other_type(
    column: str, file: object, kind: pa.DataType, other: str, other_kind: pa.DataType
) -> DataError:
    return DataError(
        f"column {column!r}: is {kind} in {file} and {other_kind} in {other}, which cannot be joined without loss; write "
        "all files of the folder with one type"
    )


def not_parquet(name: object, error: Exception) -> DataError:
    """Return the error message for a Parquet file that cannot be read."""
    if "crypt" in str(error):
        return DataError(f"{name}: is encrypted; decrypt it, and name the file that can be read")
    return DataError(f"{name}: is not a readable Parquet file ({type(error).__name__})")


def parquet_files(path: str | PathLike[str]) -> list[Path]:
    """Return the Parquet files that a path names: itself, or those in a folder, by name.

    Raises
    ------
    DataError
        If there is none, or some are in folders of a partitioned table (``sex=m``): their rows would be left out.
    """
    place = Path(path)
    must_be_there(place)
    if not place.is_dir():
        must_exist(place)
        return [place]
    files = sorted(file for file in place.iterdir() if is_parquet(file) and file.name[0] not in "._")
    # what is published may lie in a folder inside, but not under such a name
    parts = sorted(file.parent.name for file in place.glob("*=*/[!._]*") if is_parquet(file))
    if parts:
        raise DataError(
            f"{fspath(path)}: has .parquet files in folders such as {parts[0]}, which are not read; put all files into one folder, and what the "
            "names of the folders say into a column"
        )
    if not files:
        raise DataError(f"{fspath(path)}: is a folder without .parquet files; name one that has some")
    return files


def parquet_fields(
    path: str | PathLike[str], *, opener: Opener | None = None, named: Collection[str] | None = None
) -> pa.Schema:
    """Return the columns of a Parquet file or folder without reading rows.

    Parameters
    ----------
    path : path
    opener : callable, optional
        Opens each file.
    named : collection of str, optional
        The columns that are needed, all without it. Another one with lists or structures has the type null.

    Raises
    ------
    DataError
        As :func:`read_parquet`.
    """
    import pyarrow.parquet as pq

    names: list[str] = []
    kinds: dict[str, tuple[pa.DataType, str]] = {}  # with the file that the type comes from
    some_rows, first = False, ""
    for file in parquet_files(path):
        name = fspath(file)
        try:
            content = pq.ParquetFile((opener or open_file)(file))
            fields, rows = content.schema_arrow.remove_metadata(), content.metadata.num_rows
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise not_parquet(name, error) from None
        check_nested(f"{name}: cannot be used", fields, named)
        check_count(name, len(fields))
        check_names(name, fields.names)
        if not first:
            names, first = list(fields.names), name
        for column in sorted(set(names) ^ set(fields.names)):
            lacking, having = (first, name) if column in fields.names else (name, first)
            raise DataError(
                f"{lacking}: has no column {column!r}, which {having} has; write both with the same columns"
            )
        for field in fields:
            # types of a file without rows say nothing: pandas 2 writes its texts as nulls
            if field.name not in kinds or (rows and not some_rows):
                kinds[field.name] = field.type, name
            elif rows:
                kind, other = kinds[field.name]
                both = _common_type(kind, field.type)
                if both is None:
                    raise _other_type(field.name, name, field.type, other, kind)
                if both != kind:
                    kinds[field.name] = both, name
        some_rows = some_rows or rows > 0
    return pa.schema(
        [
            pa.field(column, pa.null() if _is_unread(kind) else kind, metadata={_FILE: fsencode(name)})
            for column in names
            for kind, name in [kinds[column]]
        ]
    )


def _is_unread(kind: pa.DataType) -> bool:
    """Return whether a column of this type is not read: lists and structures, and an unknown time zone."""
    return pa.types.is_nested(kind) or (pa.types.is_timestamp(kind) and not is_time_zone(kind.tz))


def _common_type(kind: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that holds the values of two types; None if there is none."""
    if kind == other:
        return kind
    if _is_unread(kind) or _is_unread(other):
        empty = [
            data_type for data_type in (kind, other) if _is_unread(data_type) or pa.types.is_null(data_type)
        ]
        return next(filter(_is_unread, empty)) if len(empty) == 2 else None
    plain = [
        data_type.value_type if pa.types.is_dictionary(data_type) else data_type
        for data_type in (kind, other)
    ]
    if any(map(pa.types.is_decimal, plain)) and any(map(pa.types.is_floating, plain)):
        return None  # 0.1 is no float
    schemas = [pa.schema([("", data_type)]) for data_type in plain]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowTypeError:
        return None


def _unpacked_sizes(file: Path) -> Iterator[int]:
    """Yield bytes of the values of a Parquet file, part by part; nothing where they are few for certain.

    A value that repeats is in the file once, and stays so while its length is counted.
    """
    import pyarrow.parquet as pq

    parquet_file = pq.ParquetFile(open_file(file))
    groups = [parquet_file.metadata.row_group(at) for at in range(parquet_file.metadata.num_row_groups)]
    yield 8 * parquet_file.metadata.num_rows * parquet_file.metadata.num_columns
    chunks = [group.column(at) for group in groups for at in range(group.num_columns)]
    # each value is in its chunk at least once, so that none is longer than the chunk
    if sum(chunk.num_values * chunk.total_uncompressed_size for chunk in chunks) <= total_memory():
        return
    texts = [
        field.name
        for field in parquet_file.schema_arrow
        if pa.types.is_string(field.type) or pa.types.is_binary(field.type)
    ]
    reader = pq.ParquetFile(open_file(file), read_dictionary=texts)
    for batch in reader.iter_batches(1 << 16, columns=texts, use_threads=False):
        for column in batch.columns:
            lengths = pc.binary_length(column.dictionary)
            counts = pc.value_counts(column.indices)
            used = lengths.take(counts.field("values")).cast(pa.int64())
            yield int(pc.sum(pc.multiply(used, counts.field("counts"))).as_py() or 0)
