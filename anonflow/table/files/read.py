"""Read a table from a file, whatever its format."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import pandas as pd

from anonflow.errors import DataError
from anonflow.large_arrays import IN_MEMORY, Arrays
from anonflow.table.files.csv_head import PLAIN, CsvShape
from anonflow.table.files.csv_reading import csv_batches, is_csv, read_csv
from anonflow.table.files.opening import must_be_there, must_fit
from anonflow.table.files.parquet_metadata import is_parquet
from anonflow.table.files.parquet_reading import parquet_batches, parquet_fields, plain_values, read_parquet
from anonflow.table.files.statistics_files import READERS, read_statistics
from anonflow.table.files.workbooks import ENDINGS, read_workbook
from anonflow.whole_file import as_path


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
        Of a CSV file: what is said about its header and the lines above it; of a workbook its ``skip`` and ``footer`` alone.
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
        must_be_there(file)
        return read_workbook(file, sheet=sheet, skip=shape.skip, footer=shape.footer, fits=must_fit(file))
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
    return [str(name) for name in read_frame(file, shape=shape).columns]


def _is_folder(path: Path) -> bool:
    """Return whether a path names a folder."""
    try:
        return path.is_dir()
    except OSError:  # such as a name that is too long: the reader says so
        return False


def _read_parquet(path: Path, named: Collection[str] | None, arrays: Arrays) -> pd.DataFrame:
    """Return the rows of Parquet files, in memory or elsewhere."""
    if arrays.rows is None:
        return read_parquet(path, named=named)
    fields = parquet_fields(path, named=named)
    return arrays.columns(
        plain_values(fields.empty_table()).schema, parquet_batches(path, fields, arrays.rows)
    )
