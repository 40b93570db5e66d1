"""Read files into frames without guessing: every CSV cell is text, an empty cell is missing."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from csv import Error as CSVError
from csv import reader as csv_rows
from itertools import chain, pairwise
from os import PathLike, fsdecode, fsencode, fspath
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from anonflow.errors import DataError, setting
from anonflow.hierarchy.wording import some
from anonflow.large_arrays import IN_MEMORY, Arrays
from anonflow.option import check_text, check_texts
from anonflow.strict_yaml import shorten
from anonflow.system import total_memory
from anonflow.table.files.csv_form import AUTO, BEGINNING, CsvForm, complete_lines, form_of
from anonflow.table.files.csv_head import PLAIN, CsvHead, CsvShape, head_of, is_total
from anonflow.table.files.parquet_metadata import is_parquet
from anonflow.table.files.statistics_files import READERS, read_statistics
from anonflow.table.files.workbooks import ENDINGS, read_workbook
from anonflow.whole_file import as_path

DELIMITER = r"^([\t !#-~]|auto)$"
DELIMITER_WORDS = "one character of ASCII: a space, a tab, or a visible one that is no quote; or auto"
"""The delimiters of a CSV file, as a regular expression and in words."""

MOST_COLUMNS = 10_000
"""The most columns of a table; a wider one is refused before its rows are read, because each column takes memory."""

Opener = Callable[[Path], Any]
"""A function that opens a file for reading; it may check the content that is read."""


def open_file(path: str | PathLike[str]) -> Any:
    """Open a file for pyarrow, which takes no names with characters that the system's encoding lacks.

    Parameters
    ----------
    path : path

    Raises
    ------
    OSError
        If it cannot be opened.
    """
    return pa.OSFile(fsencode(path))


def read_frame(
    path: str | PathLike[str],
    *,
    delimiter: str = ",",
    encoding: str = "utf-8",
    missing: Sequence[str] = (),
    sheet: str | None = None,
    labels: bool = True,
    user_missing: bool = False,
    named: Collection[str] | None = None,
    shape: CsvShape = PLAIN,
    arrays: Arrays = IN_MEMORY,
) -> pd.DataFrame:
    """Read a table from a file; the name's ending gives the format.

    Parameters
    ----------
    path : path
        ``.parquet`` or ``.pq``, or a folder of such files; ``.csv``, ``.tsv``, ``.txt``, ``.data``, also gzipped (``.gz``); files of SPSS
        (``.sav``, ``.zsav``, ``.por``), Stata (``.dta``) and SAS (``.sas7bdat``, ``.xpt``); Excel (``.xlsx``).
    delimiter, encoding : str
        Of a CSV file; ``auto`` detects them (:func:`csv_form`).
    missing : sequence of str
        Texts that stand for a missing value in a CSV file, besides the empty cell.
    sheet : str, optional
        Of an Excel workbook; the first one without it.
    labels, user_missing : bool
        Of a file of SPSS, Stata or SAS (:func:`anonflow.table.files.statistics_files.read_statistics`).
    named : collection of str, optional
        Of a Parquet file (:func:`read_parquet`).
    shape : CsvShape
        Of a CSV file: what is said about its header and the lines above it.
    arrays : Arrays
        Where the columns of a CSV or Parquet file are; those of other files are in memory.

    Raises
    ------
    DataError
        If the file does not exist or is not what its name says, or a package that reads it is not installed.
    AnonflowError
        If there is no room for the columns.
    ParameterError
        If the path, the delimiter, the encoding or the missing texts have another type.
    """
    file = as_path(path)
    if is_parquet(file):
        return _read_parquet(file, named, arrays)
    if is_csv(file):
        form: dict[str, Any] = {
            "delimiter": delimiter,
            "encoding": encoding,
            "missing": missing,
            "shape": shape,
        }
        if arrays.rows is None:
            return read_csv(file, **form)
        batches = csv_batches(file, **form)
        first = next(batches)
        return arrays.columns(first.schema, chain([first], batches))
    if file.suffix.lower() in READERS:
        return read_statistics(file, labels=labels, user_missing=user_missing, fits=must_fit(file))
    if file.suffix.lower() in ENDINGS:
        _must_be_there(file)
        return read_workbook(file, sheet=sheet, fits=must_fit(file))
    if _is_folder(file):
        return _read_parquet(file, named, arrays)
    raise DataError(
        f"{fspath(path)}: a table is a .csv or .parquet file, one of SPSS, Stata or SAS, or an Excel workbook; "
        "rename or convert it"
    )


def column_names(
    path: str | PathLike[str],
    *,
    delimiter: str = ",",
    encoding: str = "utf-8",
    missing: Sequence[str] = (),
    shape: CsvShape = PLAIN,
) -> list[str]:
    """Return the names of a file's columns; of CSV and Parquet files no row is held.

    Parameters
    ----------
    path, delimiter, encoding, missing, shape
        As :func:`read_frame` takes them.

    Raises
    ------
    DataError
        As :func:`read_frame`.
    """
    file = as_path(path)
    if is_parquet(file):
        return list(parquet_fields(file).names)
    if is_csv(file):
        first = next(csv_batches(file, delimiter=delimiter, encoding=encoding, missing=missing, shape=shape))
        return list(first.schema.names)
    return [str(name) for name in read_frame(file).columns]


def _is_folder(path: Path) -> bool:
    """Return whether a path names a folder."""
    try:
        return path.is_dir()
    except OSError:  # such as a name that is too long: the reader says so
        return False


def is_csv(path: str | PathLike[str]) -> bool:
    """Return whether a name has the ending of a CSV file, also of a packed one."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    return suffixes[-1:] in ([".csv"], [".tsv"], [".txt"], [".data"])


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
        _must_fit(fspath(path), (size for file in files for size in _unpacked_sizes(file)))
        tables = [pq.ParquetFile((opener or open_file)(file)).read(columns=read) for file in files]
        parts = [
            with_fields(part, fields, file) for file, part in zip(files, tables, strict=True) if part.num_rows
        ]
        table = pa.concat_tables([fields.empty_table(), *parts])
        table.validate(full=True)  # invalid texts would otherwise raise an error only when they are used
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise not_parquet(fspath(path), error) from None
    return exact_frame(table)


def _read_parquet(path: Path, named: Collection[str] | None, arrays: Arrays) -> pd.DataFrame:
    """Return the rows of Parquet files, in memory or elsewhere."""
    if arrays.rows is None:
        return read_parquet(path, named=named)
    fields = parquet_fields(path, named=named)
    return arrays.columns(
        plain_values(fields.empty_table()).schema, parquet_batches(path, fields, arrays.rows)
    )


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
    table = table.cast(pa.schema(fields)).replace_schema_metadata(None)
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


_WIDE = {"int64": "Int64", "uint64": "UInt64"}
_EXACT = 1 << 53
"""The largest whole number below which every whole number is a float."""


def exact_frame(table: pa.Table, *, split_blocks: bool = False) -> pd.DataFrame:
    """Return a frame of an Arrow table; whole numbers that floats cannot hold stay exact beside missing values.

    Parameters
    ----------
    table : pyarrow.Table
    split_blocks : bool
        Whether columns stay apart: numbers in one piece, none of them missing, are then not copied, and cannot be changed.

    Notes
    -----
    Whole numbers beside missing ones become floats otherwise, and 2^53 + 1 would be published as 2^53.
    """
    frame = table.to_pandas(split_blocks=split_blocks)
    for at, field in enumerate(table.schema):
        dtype = _WIDE.get(str(field.type))
        if dtype is not None and frame.iloc[:, at].dtype.kind == "f" and _has_wide(table.column(at)):
            frame.isetitem(at, pd.array(table.column(at).to_pylist(), dtype=dtype))
    return frame


def _has_wide(column: pa.ChunkedArray) -> bool:
    """Return whether a column of whole numbers has some that floats cannot be trusted with."""
    ends = pc.min_max(column)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    return least is not None and (least < -_EXACT or most > _EXACT)


def check_nested(subject: str, fields: pa.Schema, named: Collection[str] | None) -> None:
    """Refuse columns of lists or structures, or with an unknown time zone, that are needed.

    Parameters
    ----------
    subject : str
        Beginning of the message.
    fields : pyarrow.Schema
    named : collection of str or None
        The columns that are needed; None is all.

    Raises
    ------
    DataError
        If there are any.
    """
    nested = [
        f"column {field.name!r}: holds lists or structures"
        for field in fields
        if pa.types.is_nested(field.type)
        and not pa.types.is_run_end_encoded(field.type)
        and (named is None or field.name in named)
    ]
    nested += [
        f"column {field.name!r}: has a time zone that is not known here; write its times as UTC"
        for field in fields
        if pa.types.is_timestamp(field.type)
        and not _is_time_zone(field.type.tz)
        and (named is None or field.name in named)
    ]
    if nested:
        raise DataError.collected(subject, nested)


def _is_time_zone(name: str | None) -> bool:
    """Return whether times with a time zone, or none, can be read."""
    try:
        return name is None or pa.lib.string_to_tzinfo(name) is not None
    except (pa.ArrowException, ValueError, LookupError, OSError):
        return False


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
        If there is none.
    """
    place = Path(path)
    _must_be_there(place)
    if not place.is_dir():
        _must_exist(place)
        return [place]
    files = sorted(file for file in place.iterdir() if is_parquet(file) and file.name[0] not in "._")
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
        _check_count(name, len(fields))
        _check_names(name, fields.names)
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
                both = _joined(kind, field.type)
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
    return pa.types.is_nested(kind) or (pa.types.is_timestamp(kind) and not _is_time_zone(kind.tz))


def _joined(kind: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that holds the values of two types; None if there is none."""
    if kind == other:
        return kind
    if _is_unread(kind) or _is_unread(other):
        empty = [each for each in (kind, other) if _is_unread(each) or pa.types.is_null(each)]
        return next(filter(_is_unread, empty)) if len(empty) == 2 else None
    plain = [each.value_type if pa.types.is_dictionary(each) else each for each in (kind, other)]
    if any(map(pa.types.is_decimal, plain)) and any(map(pa.types.is_floating, plain)):
        return None  # 0.1 is no float
    schemas = [pa.schema([("", each)]) for each in plain]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowTypeError:
        return None


def read_csv(
    path: str | PathLike[str],
    *,
    delimiter: str = ",",
    encoding: str = "utf-8",
    missing: Sequence[str] = (),
    opener: Opener | None = None,
    shape: CsvShape = PLAIN,
) -> pd.DataFrame:
    """Read a CSV file with a header; cells stay text, empty ones and those in `missing` are missing.

    Parameters
    ----------
    path : path
        May be gzipped (``.gz``).
    delimiter : str
        One character; ``auto`` detects it.
    encoding : str
        A codec that Python knows; ``auto`` detects it.
    missing : sequence of str
    opener : callable, optional
        Opens the file, each time that it is read: to be checked, and then to be parsed.
    shape : CsvShape
        What is said about its header and the lines above it.

    Raises
    ------
    DataError
        If the file is missing or empty, not in the encoding, has rows of another length than the header
        (how many, and the first lines), lines above the header that the shape does not name, a quote that is never closed, or a column name twice.
    """
    batches = csv_batches(
        path, delimiter=delimiter, encoding=encoding, missing=missing, whole=True, opener=opener, shape=shape
    )
    return pa.Table.from_batches(list(batches)).to_pandas()


def csv_batches(
    path: str | PathLike[str],
    *,
    delimiter: str = ",",
    encoding: str = "utf-8",
    missing: Sequence[str] = (),
    whole: bool = False,
    opener: Opener | None = None,
    shape: CsvShape = PLAIN,
) -> Iterator[pa.RecordBatch]:
    """Read a CSV file batch by batch, in its order; columns of text, missing cells are null.

    Parameters
    ----------
    path, delimiter, encoding, missing, opener, shape
        As :func:`read_csv` takes them.
    whole : bool
        Whether all of it may be held at once, which is faster.

    Yields
    ------
    pyarrow.RecordBatch
        At least one.

    Raises
    ------
    DataError
        As :func:`read_csv`.
    """
    _must_exist(as_path(path))
    name = fspath(path)
    check_text("delimiter", delimiter)
    check_text("encoding", encoding)
    check_texts("missing", missing)
    if re.fullmatch(DELIMITER, delimiter) is None:
        raise DataError(f"{name}: the delimiter must be {DELIMITER_WORDS}")
    if AUTO in (delimiter, encoding):
        form = csv_form(path, delimiter=delimiter, encoding=encoding, opener=opener, shape=shape)
        delimiter, encoding = form.delimiter, form.encoding
    if not _is_encoding(encoding):
        raise DataError(
            f"{name}: unknown encoding {shorten(encoding)}; name one that Python knows, such as utf-8"
        )
    encoding = codecs.lookup(encoding).name
    ragged = 0

    def count(row: Any) -> str:
        nonlocal ragged
        ragged += not (shape.comment and row.text.startswith(shape.comment))
        return "skip"

    blank = pa.array(["", *missing], pa.string())
    try:
        # pyarrow would only find bad UTF-8 in a cell that it converts, never in a ragged row, and an open quote never
        decoder = codecs.getincrementaldecoder(encoding)() if encoding == "utf-8" else None
        quotes, size, started, beginning = 0, 0, False, ""
        with _unpacked(path, opener) as stream:
            while block := stream.read(BEGINNING):
                size += len(block)
                if whole:
                    _must_fit(name, [size])
                if not started:
                    _check_count(name, _header_count(block, delimiter, encoding))
                    beginning = complete_lines(block, encoding, len(block) < BEGINNING)
                started = True
                quotes += block.count(b'"')
                if decoder:
                    decoder.decode(block)
        if decoder:
            decoder.decode(b"", True)
        if quotes % 2:
            _check_quotes(path, delimiter, encoding, opener)
        head = head_of(name, beginning, delimiter, shape)
        places = [str(at) for at in range(len(head.names))]
        options = {
            "read_options": csv.ReadOptions(
                encoding=encoding,
                column_names=places,
                skip_rows=head.lines,
                skip_rows_after_names=int(head.header),
            ),
            "parse_options": csv.ParseOptions(
                delimiter=head.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=True,
                invalid_row_handler=count,
            ),
            "convert_options": csv.ConvertOptions(
                column_types=dict.fromkeys(places, pa.string()), strings_can_be_null=False
            ),
        }
        ended = _no_rows(pa.schema([(place, pa.string()) for place in places]))
        with _unpacked(path, opener) as stream:
            parts = _parsed(stream, options, whole, ended)
            shown = (_named_columns(name, part, head, shape) for part in parts)
            for batch in _without_footer(name, shown, shape):
                yield _blanked(batch, blank)
    except UnicodeError:
        raise _not_encoded(name, encoding) from None
    except pa.ArrowInvalid as error:
        text = str(error)
        if "UTF8" in text or "utf8" in text:
            raise _not_encoded(name, encoding) from None
        raise DataError(f"{name}: is not a readable CSV file; check its quotes and delimiter") from None
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{name}: cannot be read ({type(error).__name__})") from None
    if ragged:
        lines, halves = _ragged_lines(path, encoding, opener, head, shape)
        look = ", as decimal commas without quotes make them" if halves else ""
        raise DataError(
            f"{name}: {ragged} rows have more or fewer than {len(places)} cells ({some(lines, 10)}){look}; "
            + (
                "put these numbers in quotes, or save the file with another delimiter"
                if halves
                else setting("delimiter", "check the delimiter and quotes")
            )
        )


def _parsed(
    stream: Any, options: Mapping[str, Any], whole: bool, ended: pa.RecordBatch
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a CSV file below its header, at least one batch."""
    yield ended
    try:
        rows = csv.read_csv(stream, **options) if whole else csv.open_csv(stream, **options)
    except pa.ArrowInvalid as error:
        if "Empty CSV" in str(error):
            return
        raise
    if whole:
        yield from rows.to_batches()
        return
    with rows:
        yield from rows


def _named_columns(name: str, batch: pa.RecordBatch, head: CsvHead, shape: CsvShape) -> pa.RecordBatch:
    """Return the columns that are read with their names, without rows that are comments."""
    if shape.comment:
        batch = batch.filter(pc.invert(pc.starts_with(batch.column(0), shape.comment)))
    for at in head.blank:
        if pc.any(pc.not_equal(pc.utf8_trim_whitespace(batch.column(at)), "")).as_py():
            raise DataError(
                f"{name}: column {at + 1} has no name and is not empty: the header ends with the delimiter; name the "
                "column, or remove it"
            )
    chosen = [at for at in range(len(head.names)) if at not in head.left_out]
    return pa.RecordBatch.from_arrays(
        [batch.column(at) for at in chosen], names=[head.names[at] for at in chosen]
    )


_TAIL = 100
"""Rows at the end among which a row of totals is looked for."""


def _without_footer(
    name: str, batches: Iterable[pa.RecordBatch], shape: CsvShape
) -> Iterator[pa.RecordBatch]:
    """Yield the batches without the rows at the end that are not read."""
    rest: list[pa.RecordBatch] = []
    tail: list[pa.RecordBatch] = []
    for batch in batches:
        tail = [*(tail if batch.num_rows < _TAIL else []), batch.slice(max(0, batch.num_rows - _TAIL))][
            -_TAIL:
        ]
        if not shape.footer:
            yield batch
            continue
        table = pa.Table.from_batches([*rest, batch])
        ready = max(0, table.num_rows - shape.footer)
        rest = table.slice(ready).to_batches()
        yield from table.slice(0, ready).to_batches() or [batch.slice(0, 0)]
    rows = [list(row.values()) for part in tail for row in part.to_pylist()][-_TAIL:]
    if shape.footer is None and rows and is_total(rows[-1], rows[:-1]):
        raise DataError(
            f"{name}: its last row looks like a total and not like a record; "
            + setting("footer", "set footer: 1 in the source to leave it out, or footer: 0 to read it")
        )


def _ragged_lines(
    path: str | PathLike[str], encoding: str, opener: Opener | None, head: CsvHead, shape: CsvShape
) -> tuple[list[int], bool]:
    """Return the lines of rows that do not have a cell for each column, and whether halves of numbers explain all of them."""
    lines: list[int] = []
    halves = head.delimiter == ","
    with (
        _unpacked(path, opener) as stream,
        io.TextIOWrapper(stream, encoding=encoding, newline="") as text,
    ):
        for _ in range(head.lines):
            text.readline()
        reader, line = csv_rows(text, delimiter=head.delimiter), head.lines + 1
        for at, row in enumerate(reader):
            comment = shape.comment and row and row[0].startswith(shape.comment)
            if row and len(row) != len(head.names) and not comment and (at or not head.header):
                lines.append(line)
                both = sum(_WHOLE.fullmatch(a) is not None and b.isdigit() for a, b in pairwise(row))
                halves = halves and 0 < len(row) - len(head.names) <= both
            line = head.lines + reader.line_num + 1
    return lines, halves


_WHOLE = re.compile(r" *[+-]?[0-9]{1,15}")


def _not_encoded(name: str, encoding: str) -> DataError:
    return DataError(f"{name}: is not {encoding}; " + setting("encoding", "name its encoding in the source"))


def csv_form(
    path: str | PathLike[str],
    *,
    delimiter: str = AUTO,
    encoding: str = AUTO,
    opener: Opener | None = None,
    shape: CsvShape = PLAIN,
) -> CsvForm:
    """Detect the form of a CSV file (:func:`anonflow.table.files.csv_form.form_of`).

    Parameters
    ----------
    path : path
        May be gzipped (``.gz``).
    delimiter, encoding : str
        The known parts of the form; ``auto`` is detected.
    opener : callable, optional
        Opens the file.
    shape : CsvShape
        What is said about its header and the lines above it.

    Raises
    ------
    DataError
        If the file is missing, or cannot be read.
    """
    _must_exist(as_path(path))
    check_text("delimiter", delimiter)
    check_text("encoding", encoding)
    try:
        with _unpacked(path, opener) as stream:
            return form_of(stream, delimiter, encoding, shape)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{fspath(path)}: cannot be read ({type(error).__name__})") from None


def must_fit(path: str | PathLike[str]) -> Callable[[Iterable[int]], None]:
    """Return a function that refuses a file whose parts exceed this machine's memory, and that can only be read whole.

    Parameters
    ----------
    path : path
        For the message.
    """
    return lambda sizes: _must_fit(
        fspath(path), sizes, "save it as CSV or Parquet, and run that in pieces (source: {pieces: true})"
    )


def _must_fit(
    name: str, sizes: Iterable[int], advice: str = "run it in pieces if it is (source: {pieces: true})"
) -> None:
    """Refuse a file whose parts unpack to more than this machine's memory: reading it would end the process."""
    most, size = _memory(), 0
    for part in sizes:
        size += part
        if size > most:
            raise DataError(
                f"{name}: unpacks to more than the {most / 1e9:.3g} GB of memory of this machine; see that it is what you "
                f"expect, and {advice}"
            )


def _memory() -> int:
    """Return bytes of memory that this machine has."""
    return total_memory()


def _unpacked_sizes(file: Path) -> Iterator[int]:
    """Yield bytes of the values of a Parquet file, part by part; nothing where they are few for certain.

    A value that repeats is in the file once, and stays so while its length is counted.
    """
    import pyarrow.parquet as pq

    about = pq.ParquetFile(open_file(file))
    groups = [about.metadata.row_group(at) for at in range(about.metadata.num_row_groups)]
    yield 8 * about.metadata.num_rows * about.metadata.num_columns
    chunks = [group.column(at) for group in groups for at in range(group.num_columns)]
    if sum(chunk.num_values * chunk.total_uncompressed_size for chunk in chunks) <= _memory():
        return
    texts = [
        field.name
        for field in about.schema_arrow
        if pa.types.is_string(field.type) or pa.types.is_binary(field.type)
    ]
    reader = pq.ParquetFile(open_file(file), read_dictionary=texts)
    for batch in reader.iter_batches(1 << 16, columns=texts, use_threads=False):
        for column in batch.columns:
            lengths = pc.binary_length(column.dictionary)
            counts = pc.value_counts(column.indices)
            used = lengths.take(counts.field("values")).cast(pa.int64())
            yield int(pc.sum(pc.multiply(used, counts.field("counts"))).as_py() or 0)


def _header_count(block: bytes, delimiter: str, encoding: str) -> int:
    """Return a lower bound of the number of columns of a CSV file from its first bytes."""
    text = codecs.getincrementaldecoder(encoding)("replace").decode(block)
    try:
        return len(next(csv_rows(io.StringIO(text, newline=""), delimiter=delimiter), ()))
    except CSVError:  # a cell that is longer than any name
        return 0


def _check_count(name: str, columns: int) -> None:
    if columns > MOST_COLUMNS:
        raise DataError(
            f"{name}: has {columns} columns, and {MOST_COLUMNS} are the most; see that it has line ends and the right "
            "delimiter, or leave out columns that are not needed"
        )


def _unpacked(path: str | PathLike[str], opener: Opener | None) -> pa.NativeFile:
    """Return the bytes of a text file, unpacked where its name says that it is packed."""
    try:
        packed = pa.Codec.detect(f"x{Path(path).suffix}").name
    except (ValueError, TypeError):  # pyarrow does not know this ending
        packed = None
    return pa.input_stream((opener or open_file)(Path(path)), compression=packed)


def _check_quotes(path: str | PathLike[str], delimiter: str, encoding: str, opener: Opener | None) -> None:
    """Refuse a file whose last quote is not closed: everything after it would be one cell."""
    rows = 0
    with (
        _unpacked(path, opener) as stream,
        io.TextIOWrapper(stream, encoding=encoding, newline="") as text,
    ):
        try:
            for _ in csv_rows(text, delimiter=delimiter, strict=True):
                rows += 1
        except CSVError as error:
            if "unexpected end" in str(error) or "field limit" in str(error):
                raise DataError(
                    f"{fspath(path)}: a quote is opened after row {rows} and never closed; close it, or double it "
                    "where it is part of a value"
                ) from None


def _is_encoding(name: str) -> bool:
    """Return whether Python knows an encoding of text that can be read in blocks:

    ``bz2`` and ``hex`` are not encodings of text.
    """
    try:
        decode = codecs.getincrementaldecoder(name)().decode
        return all(isinstance(decode(pa.py_buffer(block)), str) for block in (b"", b"a"))
    except (LookupError, ValueError, TypeError, AttributeError):
        return False


def _no_rows(fields: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=fields)


def _blanked(batch: pa.RecordBatch, blank: pa.Array) -> pa.RecordBatch:
    """Return the same table with empty cells instead of texts that mean a missing value."""
    nothing = pa.scalar(None, pa.string())
    columns = [pc.if_else(pc.is_in(cells, value_set=blank), nothing, cells) for cells in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _must_be_there(path: Path) -> None:
    try:
        there = path.exists()
    except OSError as error:  # such as a name that is too long
        raise DataError(f"{path}: cannot be opened: {error.strerror}; check the path") from None
    if not there:
        raise DataError(f"{path}: does not exist; check the path")


def _must_exist(path: Path) -> None:
    _must_be_there(path)
    if not path.is_file():
        raise DataError(f"{path}: is not a file; name a CSV or Parquet file")


def _check_names(name: str, columns: Sequence[str]) -> None:
    problems = []
    seen: dict[str, int] = {}
    for place, column in enumerate(columns, 1):
        first = seen.setdefault(column, place)
        if first != place and column.strip():
            # name columns by position: if the header is missing, these are a person's values
            problems.append(f"{name}: columns {first} and {place} have the same name; rename one")
    if any(not column.strip() for column in columns):
        problems.append(f"{name}: a column has no name; the first line must be the header")
    if problems:
        raise DataError.collected(f"{name}: its header cannot be used", problems)
