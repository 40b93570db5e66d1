"""Published tables as files: CSV, Parquet, SPSS and Stata, written completely or not at all, and read without guessing."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa

from anonflow.errors import DataError, ParameterError
from anonflow.hierarchy import number_text
from anonflow.system import release_memory
from anonflow.table.arrow import table_of_frame
from anonflow.table.files.metadata_file import ENDINGS, PACKAGE, metadata_path, metadata_text, without_table
from anonflow.table.files.parquet_metadata import in_folder, is_parquet
from anonflow.table.files.statistics_writing import is_written, with_numbers, write_statistics
from anonflow.table.forms.text_columns import plain_frame, text_type
from anonflow.table.published.metadata import ReleaseMetadata
from anonflow.table.published.release_forms import forms_of, in_source_forms
from anonflow.table.spreadsheets import changed_texts, guarded_text
from anonflow.whole_file import as_path, drafted, failing_as, locked, streamed, write_whole

_CSV = ".csv"

_ROWS = 1 << 17
"""Rows of a CSV file that are written together."""

_GROUP = 1 << 20
"""Rows of a Parquet file that are compressed together: what its writer takes by itself."""

FILE_ROWS = 1_000_000
"""Rows of a file in a folder of Parquet files."""

# statistics and the stored Arrow schema would say more than the rows do
_PLAINLY: dict[str, Any] = {"compression": "zstd", "write_statistics": False, "store_schema": False}


def write_described(
    path: str | PathLike[str],
    write: Callable[[Path], ReleaseMetadata | None],
    ready: Callable[[], Any] = lambda: None,
    named: Callable[[], Any] = lambda: None,
) -> tuple[Path, ...]:
    """Write a published table and its description; both are complete before either gets its name.

    Parameters
    ----------
    path : path
        Of the table. A text that ends with a slash names a folder of Parquet files.
    write : callable
        Writes the table to a path, and returns its description, or None.
    ready : callable, optional
        Called when everything is written, before a file gets its name: if it raises, no file changes.
    named : callable, optional
        Called when the table has its name.

    Returns
    -------
    tuple of pathlib.Path
        The files that were written, the table first.

    Raises
    ------
    DataError
        If a folder may not be written to, or its data package is not of anonflow.
    ParameterError, AnonflowError
        As :func:`write_table`.

    Notes
    -----
    Two files cannot get their names at once. The old description goes first and the new one comes last, so that whatever
    interrupts this leaves a table without a description, never one with another's.
    """
    target, descriptions = as_path(path), []
    place = metadata_path(target)
    several = in_folder(path)

    def draft_table(draft: Path) -> None:
        descriptions.append(write(draft))
        if several:
            _split_into_files(draft)

    with drafted(target, draft_table, make_folders=True) as name_table:
        metadata = descriptions[0]
        packed = place is not None and place.name == PACKAGE
        with locked(target.parent) if packed else nullcontext():
            if place is None or metadata is None:
                ready()
                if place is not None:
                    _withdraw(place, target)
                name_table()
                named()
                return (target,)
            text = metadata_text(metadata, target, _content_of(place) if packed else None)
            with drafted(
                place, lambda draft: draft.write_text(text, encoding="utf-8", newline="\n")
            ) as name_description:
                # the description of an earlier table goes first: at no moment does one stand beside rows that it is not about
                ready()
                _withdraw(place, target)
                name_table()
                named()
                name_description()
    return target, place


def _split_into_files(draft: Path) -> None:
    """Put a folder in the place of a Parquet file: its rows in their order, so many in a file."""
    import pyarrow.parquet as pq

    whole = draft.with_name(f"{draft.stem}-whole{draft.suffix}")
    draft.rename(whole)
    try:
        draft.mkdir()
        with pq.ParquetFile(whole) as content:
            batches = content.iter_batches(batch_size=FILE_ROWS)
            for number, batch in enumerate(batches):
                rows = pa.Table.from_batches([batch]).replace_schema_metadata(None)
                pq.write_table(rows, draft / f"part-{number:06d}.parquet", **_PLAINLY)
    finally:
        whole.unlink()


def check_package(table: str | PathLike[str]) -> None:
    """See that a Parquet release can be described in its folder.

    Raises
    ------
    DataError
        If the folder's data package describes other data.
    """
    place = metadata_path(table)
    if place is not None and place.name == PACKAGE and place.is_file():
        package = _content_of(place)
        if package is not None:
            without_table(package, Path(table))


def _content_of(place: Path) -> str | None:
    """Return a file's content; None if there is no file.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    try:
        return place.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError):
        raise DataError(f"{place}: cannot be read; publish to another folder, or move it away") from None


def _withdraw(place: Path, table: Path) -> None:
    """Remove the description of an earlier table of this name."""
    others = None
    if place.name == PACKAGE:
        package = _content_of(place)
        others = None if package is None else without_table(package, table)
    if others is None:
        with failing_as(table, place):
            place.unlink(missing_ok=True)
    else:
        write_whole(place, lambda draft: draft.write_text(others, encoding="utf-8", newline="\n"))


def write_table(
    frame: pd.DataFrame, path: str | PathLike[str], about: ReleaseMetadata | None = None
) -> ReleaseMetadata | None:
    """Write a published table as CSV, Parquet, SPSS or Stata, by the name's ending; return its description. The file appears whole.

    Parameters
    ----------
    frame : pandas.DataFrame
        Its categories are written as the texts that they are.
    path : path
        ``.csv`` (UTF-8, commas, numbers in their shortest form, an apostrophe before texts that a spreadsheet would
        execute), ``.parquet`` or ``.pq`` (no pandas metadata, no statistics), ``.sav``, ``.zsav`` or ``.dta``
        (:func:`anonflow.table.files.statistics_writing.write_statistics`), with numbers in columns that are published as they
        were and have texts of numbers alone.
    about : ReleaseMetadata, optional
        Names the columns that are written in the form of the source.

    Returns
    -------
    ReleaseMetadata or None
        `about`, with the types of the columns that the file has as numbers.

    Raises
    ------
    ParameterError
        If the name ends otherwise.
    DataError
        If the folder may not be written to.
    AnonflowError
        If the disk is full.
    """
    suffix = as_path(path).suffix.lower()
    frame = in_source_forms(frame, forms_of(about))
    if suffix == _CSV:
        write_whole(path, streamed(lambda stream: _write_csv(frame, stream)), make_folders=True)
    elif is_parquet(path):
        write_whole(path, streamed(lambda stream: _write_parquet(frame, stream)), make_folders=True)
    elif is_written(path):
        exact = (
            [] if about is None else [column.name for column in about.columns if not column.is_generalized]
        )
        stored = with_numbers(plain_frame(frame), exact)
        write_whole(path, lambda draft: write_statistics(stored, draft), make_folders=True)
        if about is not None:
            about = about.with_numbers(stored)
    else:
        raise _unknown(path)
    return about


def _unknown(path: str | PathLike[str]) -> ParameterError:
    """Return the error of a name with another ending."""
    return ParameterError(f"{fspath(path)}: a release is written as {', '.join(ENDINGS)}; use such a name")


def _write_csv(frame: pd.DataFrame, stream: BinaryIO) -> None:
    # the writer quotes a cell with a line feed by itself, but none with a carriage return
    quoted = has_returns(frame)
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    for start in range(0, max(1, len(frame)), _ROWS):
        block = plain_frame(frame.iloc[start : start + _ROWS])
        columns = {guarded_text(str(name)): _csv_cells(block[name]) for name in block.columns}
        pd.DataFrame(columns).to_csv(
            text,
            index=False,
            header=not start,
            lineterminator="\n",
            quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL,
        )
    text.detach()


def has_returns(frame: pd.DataFrame) -> bool:
    """Return whether a text has a carriage return: readers take it for the end of a line, but the writer does not quote it."""
    columns = [
        cells.cat.categories if isinstance(cells.dtype, pd.CategoricalDtype) else cells
        for _, cells in frame.items()
    ]
    return any("\r" in str(name) for name in frame.columns) or any(
        bool(cells.str.contains("\r", regex=False, na=False).any())
        for cells in columns
        if pd.api.types.is_string_dtype(cells.dtype)
    )


def _csv_cells(cells: pd.Series) -> pd.Series:
    """Return floats in their shortest form, whole ones without ``.0``: the same text as a range has."""
    if not pd.api.types.is_float_dtype(cells.dtype):
        return changed_texts(cells, partial(map, guarded_text))
    at, distinct = pd.factorize(cells)
    texts = np.array([*(number_text(value) for value in distinct.tolist()), None], object)
    return pd.Series(texts[at], dtype=text_type())


def _write_parquet(frame: pd.DataFrame, stream: BinaryIO) -> None:
    import pyarrow.parquet as pq

    first = table_of_frame(frame.iloc[:_GROUP])
    with pq.ParquetWriter(stream, first.schema, **_PLAINLY) as writer:
        writer.write_table(first)
        for start in range(_GROUP, len(frame), _GROUP):
            writer.write_table(table_of_frame(frame.iloc[start : start + _GROUP]).cast(first.schema))
    release_memory()  # of ten million rows, the writer's buffers are 400 MiB
