"""Read files into frames without guessing: every CSV cell is text, an empty cell is missing."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from csv import Error as CSVError
from csv import reader as csv_rows
from os import PathLike, fsencode, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonflow.errors import DataError, setting
from anonflow.option import check_text, check_texts
from anonflow.strict_yaml import shorten
from anonflow.system import total_memory
from anonflow.table.files.csv_form import AUTO, CsvForm, form_of
from anonflow.table.files.parquet_metadata import is_parquet
from anonflow.table.files.statistics_files import READERS, read_statistics
from anonflow.table.files.workbooks import ENDINGS, read_workbook
from anonflow.whole_file import as_path

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = [
    "Opener",
    "check_nested",
    "csv_batches",
    "csv_form",
    "exact_frame",
    "has_wide",
    "is_csv",
    "must_fit",
    "not_parquet",
    "open_file",
    "parquet_fields",
    "parquet_files",
    "read_csv",
    "read_frame",
    "read_parquet",
    "with_fields",
]

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
    import pyarrow as pa

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

    Raises
    ------
    DataError
        If the file does not exist or is not what its name says, or a package that reads it is not installed.
    ParameterError
        If the path, the delimiter, the encoding or the missing texts have another type.
    """
    file = as_path(path)
    if is_parquet(file):
        return read_parquet(file, named=named)
    if is_csv(file):
        return read_csv(file, delimiter=delimiter, encoding=encoding, missing=missing)
    if file.suffix.lower() in READERS:
        return read_statistics(file, labels=labels, user_missing=user_missing, fits=must_fit(file))
    if file.suffix.lower() in ENDINGS:
        _must_be_there(file)
        return read_workbook(file, sheet=sheet, fits=must_fit(file))
    if _is_folder(file):
        return read_parquet(file, named=named)
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
) -> list[str]:
    """Return the names of a file's columns; of CSV and Parquet files no row is held.

    Parameters
    ----------
    path, delimiter, encoding, missing
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
        first = next(csv_batches(file, delimiter=delimiter, encoding=encoding, missing=missing))
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
        have other columns than its first.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = parquet_files(path)
    fields = parquet_fields(path, opener=opener, named=named)
    read = [field.name for field in fields if not pa.types.is_null(field.type)]
    try:
        _must_fit(fspath(path), (size for file in files for size in _unpacked_sizes(file)))
        tables = [pq.ParquetFile((opener or open_file)(file)).read(columns=read) for file in files]
        parts = [with_fields(part, fields) for part in tables if part.num_rows]
        table = pa.concat_tables([fields.empty_table(), *parts])
        table.validate(full=True)  # invalid texts would otherwise raise an error only when they are used
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise not_parquet(fspath(path), error) from None
    return exact_frame(table)


def with_fields(table: pa.Table, fields: pa.Schema) -> pa.Table:
    """Return the columns of a table in the order and types of some fields; one that was not read is empty."""
    import pyarrow as pa

    columns = [
        table.column(field.name).cast(field.type)
        if field.name in table.column_names
        else pa.nulls(table.num_rows, field.type)
        for field in fields
    ]
    return pa.table(columns, schema=fields)


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
    import pandas as pd

    frame = table.to_pandas(split_blocks=split_blocks)
    for at, field in enumerate(table.schema):
        dtype = _WIDE.get(str(field.type))
        if dtype is not None and frame.iloc[:, at].dtype.kind == "f" and has_wide(table.column(at)):
            frame.isetitem(at, pd.array(table.column(at).to_pylist(), dtype=dtype))
    return frame


def has_wide(column: pa.ChunkedArray) -> bool:
    """Return whether a column of whole numbers has some that floats cannot be trusted with."""
    import pyarrow.compute as pc

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
    import pyarrow as pa

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
    import pyarrow as pa

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
    import pyarrow as pa
    import pyarrow.parquet as pq

    first: pa.Schema | None = None
    some_rows = False
    for file in parquet_files(path):
        name = fspath(file)
        try:
            content = pq.ParquetFile((opener or open_file)(file))
            fields, rows = content.schema_arrow.remove_metadata(), content.metadata.num_rows
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise not_parquet(name, error) from None
        check_nested(f"{name}: cannot be used", fields, named)
        fields = pa.schema(
            [
                field.with_type(pa.null())
                if pa.types.is_nested(field.type)
                or (pa.types.is_timestamp(field.type) and not _is_time_zone(field.type.tz))
                else field
                for field in fields
            ]
        )
        _check_count(name, len(fields))
        _check_names(name, fields.names)
        # types of a file without rows say nothing: pandas 2 writes its texts as nulls
        if first is not None and (
            sorted(fields.names) != sorted(first.names)
            or (some_rows and rows and any(fields.field(n).type != first.field(n).type for n in first.names))
        ):
            raise DataError(
                f"{name}: has other columns, or columns of other types, than the first file of its folder"
            )
        if first is None or (rows and not some_rows):
            first = fields if first is None else pa.schema([fields.field(n) for n in first.names])
        some_rows = some_rows or rows > 0
    assert first is not None
    return first


def read_csv(
    path: str | PathLike[str],
    *,
    delimiter: str = ",",
    encoding: str = "utf-8",
    missing: Sequence[str] = (),
    opener: Opener | None = None,
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

    Raises
    ------
    DataError
        If the file is missing or empty, not in the encoding, has rows of another length than the header
        (how many), a quote that is never closed, or a column name twice.
    """
    import pyarrow as pa

    batches = csv_batches(
        path, delimiter=delimiter, encoding=encoding, missing=missing, whole=True, opener=opener
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
) -> Iterator[pa.RecordBatch]:
    """Read a CSV file batch by batch, in its order; columns of text, missing cells are null.

    Parameters
    ----------
    path, delimiter, encoding, missing, opener
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
    import pyarrow as pa
    from pyarrow import csv

    _must_exist(as_path(path))
    name = fspath(path)
    check_text("delimiter", delimiter)
    check_text("encoding", encoding)
    check_texts("missing", missing)
    if re.fullmatch(DELIMITER, delimiter) is None:
        raise DataError(f"{name}: the delimiter must be {DELIMITER_WORDS}")
    if AUTO in (delimiter, encoding):
        form = csv_form(path, delimiter=delimiter, encoding=encoding, opener=opener)
        delimiter, encoding = form.delimiter, form.encoding
    if not _is_encoding(encoding):
        raise DataError(
            f"{name}: unknown encoding {shorten(encoding)}; name one that Python knows, such as utf-8"
        )
    encoding = codecs.lookup(encoding).name
    ragged: list[int] = []

    def count(row: Any) -> str:
        ragged.append(1)
        return "skip"

    def options(names: list[str]) -> dict[str, Any]:
        return {
            "read_options": csv.ReadOptions(encoding=encoding),
            "parse_options": csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=True,
                ignore_empty_lines=True,
                invalid_row_handler=count,
            ),
            "convert_options": csv.ConvertOptions(
                column_types={name: pa.string() for name in names}, strings_can_be_null=False
            ),
        }

    blank = pa.array(["", *missing], pa.string())
    try:
        # pyarrow would only find bad UTF-8 in a cell that it converts, never in a ragged row, and an open quote never
        decoder = codecs.getincrementaldecoder(encoding)() if encoding == "utf-8" else None
        quotes, size, started = 0, 0, False
        with _unpacked(path, opener) as stream:
            while block := stream.read(1 << 22):
                size += len(block)
                if whole:
                    _must_fit(name, [size])
                if not started:
                    _check_count(name, _header_count(block, delimiter, encoding))
                started = True
                quotes += block.count(b'"')
                if decoder:
                    decoder.decode(block)
        if decoder:
            decoder.decode(b"", True)
        if quotes % 2:
            _check_quotes(path, delimiter, encoding, opener)
        with (
            _unpacked(path, opener) as stream,
            csv.open_csv(stream, **options([])) as reader,
        ):
            names = list(reader.schema.names)
        _check_names(name, names)
        ragged.clear()
        with _unpacked(path, opener) as stream:
            if whole:
                table = csv.read_csv(stream, **options(names))
                for batch in table.to_batches() or [_no_rows(table.schema)]:
                    yield _blanked(batch, blank)
            else:
                with csv.open_csv(stream, **options(names)) as reader:
                    yield _no_rows(reader.schema)
                    for batch in reader:
                        yield _blanked(batch, blank)
    except UnicodeError:
        raise _not_encoded(name, encoding) from None
    except pa.ArrowInvalid as error:
        text = str(error)
        if "Empty CSV" in text:
            raise DataError(f"{name}: is empty; a CSV file has a header and rows") from None
        if "UTF8" in text or "utf8" in text:
            raise _not_encoded(name, encoding) from None
        raise DataError(f"{name}: is not a readable CSV file; check its quotes and delimiter") from None
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{name}: cannot be read ({type(error).__name__})") from None
    if ragged:
        raise DataError(
            f"{name}: {len(ragged)} rows have more or fewer than {len(names)} cells; "
            + setting("delimiter", "check the delimiter and quotes")
        )


def _not_encoded(name: str, encoding: str) -> DataError:
    return DataError(f"{name}: is not {encoding}; " + setting("encoding", "name its encoding in the source"))


def csv_form(
    path: str | PathLike[str], *, delimiter: str = AUTO, encoding: str = AUTO, opener: Opener | None = None
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

    Raises
    ------
    DataError
        If the file is missing, or cannot be read.
    """
    import pyarrow as pa

    _must_exist(as_path(path))
    check_text("delimiter", delimiter)
    check_text("encoding", encoding)
    try:
        with _unpacked(path, opener) as stream:
            return form_of(stream, delimiter, encoding)
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
    import pyarrow as pa
    import pyarrow.compute as pc
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
    import pyarrow as pa

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
    import pyarrow as pa

    try:
        decode = codecs.getincrementaldecoder(name)().decode
        return all(isinstance(decode(pa.py_buffer(block)), str) for block in (b"", b"a"))
    except (LookupError, ValueError, TypeError, AttributeError):
        return False


def _no_rows(fields: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_pylist([], schema=fields)


def _blanked(batch: pa.RecordBatch, blank: pa.Array) -> pa.RecordBatch:
    """Return the same table with empty cells instead of texts that mean a missing value."""
    import pyarrow as pa
    import pyarrow.compute as pc

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
