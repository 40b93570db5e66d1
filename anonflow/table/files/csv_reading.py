"""Read CSV files without guessing: every cell is text, an empty cell is missing."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from csv import Error as CSVError
from csv import reader as csv_rows
from itertools import pairwise
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from anonflow.errors import DataError, setting
from anonflow.hierarchy.wording import plural, some
from anonflow.option import check_text, check_texts
from anonflow.strict_yaml import shorten
from anonflow.table.files.csv_form import (
    AUTO,
    BEGINNING,
    CsvForm,
    NoCsvError,
    complete_lines,
    form_of,
    refuse_others,
)
from anonflow.table.files.csv_head import PLAIN, TAIL, CsvHead, CsvShape, check_last, head_of
from anonflow.table.files.opening import Opener, check_count, check_fits, must_exist, open_file
from anonflow.whole_file import as_path

DELIMITER = r"^([\t !#-~]|auto)$"


DELIMITER_WORDS = "one character of ASCII: a space, a tab, or a visible one that is no quote; or auto"
"""The delimiters of a CSV file, as a regular expression and in words."""


def is_csv(path: str | PathLike[str]) -> bool:
    """Return whether a name has the ending of a CSV file, also of a packed one."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    return suffixes[-1:] in ([".csv"], [".tsv"], [".txt"], [".data"])


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
    must_exist(as_path(path))
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
                    check_fits(name, [size])
                if not started:
                    refuse_others(block)
                    check_count(name, _header_count(block, delimiter, encoding))
                    beginning = complete_lines(block, encoding, len(block) < BEGINNING)
                started = True
                quotes += block.count(b'"')
                if decoder:
                    decoder.decode(block)
        if decoder:
            decoder.decode(b"", True)
        # an open quote leaves an odd number of them: only then a second pass over the rows is needed
        # closed quotes are an even number; only otherwise is the file read row by row, which is slow
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
        fields = pa.schema([(place, pa.string()) for place in places])
        ended = pa.RecordBatch.from_pylist([], schema=fields)
        with _unpacked(path, opener) as stream:
            parts = _parsed(stream, options, whole, ended)
            batches = (_named_columns(name, part, head) for part in _rows_of_people(parts, shape))
            for batch in _without_footer(name, batches, shape):
                yield _blanked(batch, blank)
    except NoCsvError as error:
        raise DataError(f"{name}: " + error.args[0]) from None
    except UnicodeError:
        raise _not_encoded(name, encoding) from None
    except pa.ArrowInvalid as error:
        text = str(error)
        if "UTF8" in text or "utf8" in text:
            raise _not_encoded(name, encoding) from None
        raise DataError(f"{name}: is not a readable CSV file; check its quotes and delimiter") from None
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None
    if ragged:
        lines, halves = _ragged_lines(path, encoding, opener, head, shape)
        look = ", as decimal commas without quotes make them" if halves else ""
        raise DataError(
            f"{name}: {plural(ragged, 'row', 'have')} more or fewer than {len(places)} cells ({some(lines, 10)}){look}; "
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
        # pyarrow has no error of its own for a file that ends below its header
        # pyarrow refuses a file without rows
        if "Empty CSV" in str(error):
            return
        raise
    if whole:
        yield from rows.to_batches()
        return
    with rows:
        yield from rows


def _named_columns(name: str, batch: pa.RecordBatch, head: CsvHead) -> pa.RecordBatch:
    """Return the columns that are read with their names."""
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


def _rows_of_people(batches: Iterable[pa.RecordBatch], shape: CsvShape) -> Iterator[pa.RecordBatch]:
    """Yield the batches without comments, and without the rows at the end that have nothing in any cell.

    Spreadsheets write such rows below the last one: people who are not there would be published, and counted among k. Elsewhere
    they are people of whom nothing is known; with `blank_rows`, or `footer` 0, at the end, too.
    """
    rest: list[pa.RecordBatch] = []
    everything = shape.blank_rows or shape.footer == 0
    for batch in batches:
        if shape.comment:
            batch = batch.filter(pc.invert(pc.starts_with(batch.column(0), shape.comment)))
        ready = batch.num_rows
        if (
            not everything
            and ready
            and batch.num_columns > 1
            and not any(batch.slice(ready - 1).to_pylist()[0].values())
        ):
            lengths = [pc.binary_length(column).to_numpy(zero_copy_only=False) for column in batch.columns]
            ready = int(np.flatnonzero(np.any(lengths, axis=0)).max(initial=-1)) + 1
        if ready:
            yield from rest
            rest = []
        yield batch.slice(0, ready)  # also without a row: it has the names of the columns
        if ready < batch.num_rows:
            rest.append(batch.slice(ready))


def _without_footer(
    name: str, batches: Iterable[pa.RecordBatch], shape: CsvShape
) -> Iterator[pa.RecordBatch]:
    """Yield the batches without the rows at the end that are not read."""
    rest: list[pa.RecordBatch] = []
    tail: list[pa.RecordBatch] = []
    for batch in batches:
        tail = [*(tail if batch.num_rows < TAIL else []), batch.slice(max(0, batch.num_rows - TAIL))][-TAIL:]
        if not shape.footer:
            yield batch
            continue
        table = pa.Table.from_batches([*rest, batch])
        ready = max(0, table.num_rows - shape.footer)
        rest = table.slice(ready).to_batches()
        yield from table.slice(0, ready).to_batches() or [batch.slice(0, 0)]
    rows = [list(row.values()) for part in tail for row in part.to_pylist()][-TAIL:]
    if shape.footer is None and rows:
        check_last(name, rows)


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


def _unreadable(path: str | PathLike[str], error: Exception) -> DataError:
    advice = (
        "; check that the file is complete and packed by gzip" if Path(path).suffix.lower() == ".gz" else ""
    )
    return DataError(f"{fspath(path)}: cannot be read ({type(error).__name__}){advice}")


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
    must_exist(as_path(path))
    check_text("delimiter", delimiter)
    check_text("encoding", encoding)
    try:
        with _unpacked(path, opener) as stream:
            return form_of(stream, delimiter, encoding, shape)
    except NoCsvError as error:
        raise DataError(f"{fspath(path)}: " + error.args[0]) from None
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from None


def _header_count(block: bytes, delimiter: str, encoding: str) -> int:
    """Return a lower bound of the number of columns of a CSV file from its first bytes."""
    text = codecs.getincrementaldecoder(encoding)("replace").decode(block)
    try:
        return len(next(csv_rows(io.StringIO(text, newline=""), delimiter=delimiter), ()))
    except CSVError:  # a cell that is longer than any name
        return 0


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


def _blanked(batch: pa.RecordBatch, blank: pa.Array) -> pa.RecordBatch:
    """Return the same table with empty cells instead of texts that mean a missing value."""
    nothing = pa.scalar(None, pa.string())
    columns = [pc.if_else(pc.is_in(cells, value_set=blank), nothing, cells) for cells in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
