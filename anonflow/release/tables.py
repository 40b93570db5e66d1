"""Published tables as files: CSV and Parquet, written whole, read without guessing."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from anonflow.errors import ParameterError
from anonflow.table.arrow import table_of_frame
from anonflow.table.domain import number_text
from anonflow.table.spreadsheets import changed_texts, guarded_text
from anonflow.table.texts import text_type
from anonflow.whole_file import streamed, write_whole

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["has_returns", "write_parts", "write_table"]

_CSV = ".csv"
_PARQUET = (".parquet", ".pq")

# statistics and the stored Arrow schema would say more than the rows do
_PLAINLY: dict[str, Any] = {"compression": "zstd", "write_statistics": False, "store_schema": False}


def write_table(frame: pd.DataFrame, path: str | PathLike[str]) -> None:
    """Write a published table as CSV or Parquet, by the name's ending; the file appears whole.

    Parameters
    ----------
    frame : pandas.DataFrame
    path : path
        ``.csv`` (UTF-8, commas, numbers in their shortest form, an apostrophe before texts that a spreadsheet would
        execute), ``.parquet`` or ``.pq`` (no pandas metadata, no statistics).

    Raises
    ------
    ParameterError
        If the name ends otherwise.
    DataError
        If the folder may not be written to.
    AnonflowError
        If the disk is full.
    """
    suffix = Path(path).suffix.lower()
    if suffix == _CSV:
        write_whole(
            path,
            streamed(lambda stream: _write_csv(frame, stream, quoted=has_returns(frame))),
            make_folders=True,
        )
    elif suffix in _PARQUET:
        write_whole(path, streamed(lambda stream: _write_parquet(frame, stream)), make_folders=True)
    else:
        raise ParameterError(
            f"{fspath(path)}: a release is written as .csv or .parquet; use one of these names"
        )


def write_parts(path: str | PathLike[str], parts: Iterable[pa.Table], quoted: bool = False) -> None:
    """Write a published table that is not in memory: its rows come part by part, as :func:`write_table` writes them.

    Parameters
    ----------
    path : path
    parts : iterable of pyarrow.Table
        All with the same columns of plain values; at least one.
    quoted : bool, optional
        Whether :func:`has_returns` says so of one of them: then every cell of a CSV file is quoted.

    Raises
    ------
    ParameterError, DataError, AnonflowError
        As :func:`write_table`.
    """
    import pyarrow.parquet as pq

    suffix = Path(path).suffix.lower()

    def write_csv(stream: BinaryIO) -> None:
        for number, part in enumerate(parts):
            _write_csv(part.to_pandas(), stream, header=not number, quoted=quoted)

    def write_parquet(stream: BinaryIO) -> None:
        writer = None
        for part in parts:
            writer = writer or pq.ParquetWriter(stream, part.schema, **_PLAINLY)
            writer.write_table(part)
        if writer is not None:
            writer.close()

    if suffix == _CSV:
        write_whole(path, streamed(write_csv), make_folders=True)
    elif suffix in _PARQUET:
        write_whole(path, streamed(write_parquet), make_folders=True)
    else:
        raise ParameterError(
            f"{fspath(path)}: a release is written as .csv or .parquet; use one of these names"
        )


def _write_csv(frame: pd.DataFrame, stream: BinaryIO, *, quoted: bool, header: bool = True) -> None:
    import pandas as pd

    columns = {guarded_text(str(name)): _csv_cells(frame[name]) for name in frame.columns}
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    pd.DataFrame(columns).to_csv(
        text,
        index=False,
        header=header,
        lineterminator="\n",
        quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL,
    )
    text.detach()


def has_returns(frame: pd.DataFrame) -> bool:
    """Whether a carriage return is in a text: it ends a line for readers, but the writer does not quote it alone."""
    import pandas as pd

    return any("\r" in str(name) for name in frame.columns) or any(
        bool(cells.str.contains("\r", regex=False, na=False).any())
        for _, cells in frame.items()
        if pd.api.types.is_string_dtype(cells.dtype)
    )


def _csv_cells(cells: pd.Series) -> pd.Series:
    """Floats in their shortest form, whole ones without ``.0``: the same text as a range has."""
    import pandas as pd

    if not pd.api.types.is_float_dtype(cells.dtype):
        return changed_texts(cells, guarded_text)
    at, distinct = pd.factorize(cells)
    texts = np.array([*(number_text(value) for value in distinct.tolist()), None], object)
    return pd.Series(texts[at], dtype=text_type())


def _write_parquet(frame: pd.DataFrame, stream: BinaryIO) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table_of_frame(frame), stream, **_PLAINLY)
