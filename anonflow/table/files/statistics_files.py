"""Read files of SPSS, Stata and SAS: value labels, and codes that stand for a missing value."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from anonflow.errors import AnonflowError, DataError
from anonflow.table.arrow import frame_as_written
from anonflow.table.forms.text_columns import text_type

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
"""Ending of a file -> the function of pyreadstat that reads it."""

PIECE = 1 << 28
"""Bytes that the rows of one read take at most: the number of rows that a file declares may be wrong, and pyreadstat reserves memory for it."""

TEXT_OBJECT = 64
"""Bytes that a text takes besides its characters."""


def read_statistics(
    path: str | PathLike[str],
    *,
    labels: bool = True,
    user_missing: bool = False,
    opener: Callable[[Path], Any] | None = None,
    fits: Callable[[Iterable[int]], None],
) -> pd.DataFrame:
    """Read a file of SPSS (``.sav``, ``.zsav``, ``.por``), Stata (``.dta``) or SAS (``.sas7bdat``, ``.xpt``).

    Parameters
    ----------
    path : path
    labels : bool
        Whether a column whose values all have a label becomes the labels; one where only some have, such as an age
        with a label for "older", keeps its numbers.
    user_missing : bool
        Whether codes that the file declares to be missing (SPSS: missing values; Stata and SAS: ``.a`` to ``.z``) are
        values, with their labels; they are missing without it.
    opener : callable, optional
        Opens the file.
    fits : callable
        Takes the bytes of the cells as they are read; raises an error if they are too many.

    Returns
    -------
    pandas.DataFrame
        Whole numbers without a fraction are integers; texts are texts, an empty one is missing.

    Raises
    ------
    DataError
        If pyreadstat is not installed, the file is missing, or it has another format.
    """
    file = Path(path)
    name = fspath(path)
    try:
        import pyreadstat
    except ModuleNotFoundError:
        raise DataError(
            f"{name}: files of SPSS, Stata and SAS need the package pyreadstat; install it with: pip install 'anonflow[stats]'"
        ) from None
    if file.suffix.lower() not in READERS:
        raise DataError(f"{name}: such a file ends in {', '.join(READERS)}; rename or convert it")
    if not file.is_file():
        raise DataError(f"{name}: does not exist; check the path")
    read = getattr(pyreadstat, READERS[file.suffix.lower()])
    # transport files and .por declare no missing codes of the user's
    declared = {} if file.suffix.lower() in (".por", ".xpt") else {"user_missing": user_missing}

    def read_rows(**settings: Any) -> tuple[pd.DataFrame, Any]:
        with opener(file) if opener else file.open("rb") as stream:
            return read(stream, **settings, **declared)

    columns: dict[str, pd.Series] = {}
    try:
        _, metadata = read_rows(metadataonly=True)
        if not metadata.column_names:
            raise DataError(f"{name}: has no columns; save it again with its variables")
        widths = list(metadata.variable_storage_width.values())
        longest = 0
        if file.suffix.lower() == ".dta":
            with opener(file) if opener else file.open("rb") as stream:
                longest = _longest_shared_text(stream)
        rows = max(1, PIECE // sum(TEXT_OBJECT + (width or longest) for width in widths))
        fits(_read_columns(read_rows, rows, metadata.variable_value_labels if labels else {}, columns))
        # pyreadstat reads Stata's 0.1 as 0.10000000149011612
        singles = {
            column: columns[column].astype(np.float32)
            for column, kind in zip(columns, metadata.readstat_variable_types.values(), strict=True)
            if kind == "float" and columns[column].dtype.kind == "f"
        }
        columns |= {str(column): cells for column, cells in frame_as_written(pd.DataFrame(singles)).items()}
    except (AnonflowError, MemoryError):
        raise
    except Exception as error:  # pyreadstat's own ones, and whatever damaged or invented numbers lead to
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            raise DataError(f"{name}: cannot be read ({type(error).__name__})") from None
        raise DataError(
            f"{name}: is not a readable {file.suffix.lower()} file; save it again, or export it as CSV"
        ) from None
    return pd.DataFrame(columns)


def _longest_shared_text(stream: Any) -> int:
    """Return bytes of the longest text that a Stata file stores apart from its rows (strL); any number of cells may refer to it.

    Raises
    ------
    ValueError
        If the file has no end: pyreadstat would read it without its labels.
    """
    with io.BufferedReader(stream) as content:
        header = content.read(1 << 12)
        if not header.startswith(b"<stata_dta>"):  # before Stata 13
            return 0
        content.seek(-64, io.SEEK_END)
        if b"</stata_dta>" not in content.read():
            raise ValueError
        order: Literal["big", "little"] = "big" if b"<byteorder>MSF" in header else "little"
        size = 16 if b"<release>117<" in header else 20
        place = header.index(b"<map>") + len(b"<map>") + 10 * 8
        content.seek(int.from_bytes(header[place : place + 8], order) + len(b"<strls>"))
        longest = 0
        while (beginning := content.read(size)).startswith(b"GSO"):
            length = int.from_bytes(beginning[-4:], order)
            longest = max(longest, length)
            content.seek(length, io.SEEK_CUR)
    return longest


def _read_columns(
    read_rows: Callable[..., tuple[pd.DataFrame, Any]],
    rows: int,
    labels: Mapping[str, Mapping[Any, str]],
    columns: dict[str, pd.Series],
) -> Iterator[int]:
    """Read some rows at a time and put the columns into a mapping; yield the bytes that their cells take, before they are held."""
    pieces: list[pd.DataFrame] = []
    while not pieces or len(pieces[-1]) == rows:
        piece, _ = read_rows(row_offset=len(pieces) * rows, row_limit=rows)
        yield sum(_size(piece[name]) for name in piece.columns)
        pieces.append(piece)
    pieces = [piece for piece in pieces if len(piece)] or pieces[:1]
    for name in pieces[0].columns:
        parts = [piece[name] for piece in pieces]
        cells = (
            parts[0] if len(parts) == 1 else pd.Series(np.concatenate([part.to_numpy() for part in parts]))
        )
        counts = cells.value_counts()
        named = labels.get(str(name), {})
        if len(counts) and all(value in named for value in counts.index):
            # the file has a label once, the table in every cell
            yield sum(len(str(named[value])) * int(count) for value, count in counts.items())
            columns[str(name)] = _labelled(cells, named)
        else:
            columns[str(name)] = _read_as_parquet(cells)


def _size(cells: pd.Series) -> int:
    if cells.dtype.kind in "biuf":
        return int(cells.nbytes)
    return sum(TEXT_OBJECT + (len(cell) if isinstance(cell, str) else 0) for cell in cells)


def _labelled(cells: pd.Series, labels: Mapping[Any, str]) -> pd.Series:
    labelled = np.full(len(cells), None, object)
    labelled[cells.notna().to_numpy()] = [str(labels[value]) for value in cells.dropna()]
    return pd.Series(labelled, dtype=text_type())


def _read_as_parquet(cells: pd.Series) -> pd.Series:
    """Return a column as a Parquet file of it would be read: numbers, or texts."""
    present = cells.dropna()
    if pd.api.types.is_float_dtype(cells.dtype) and (present == np.floor(present)).all():
        inside = len(present) and present.abs().max() < 2**53
        return cells.astype("Int64" if cells.hasnans else "int64") if inside else cells
    if pd.api.types.is_object_dtype(cells.dtype) or pd.api.types.is_string_dtype(cells.dtype):
        if all(isinstance(value, str) for value in present):
            return pd.Series(cells.mask(cells == "", None).to_numpy(object), dtype=text_type())
        if any(isinstance(value, str) for value in present):  # a letter of a missing code among numbers
            return pd.Series([None if pd.isna(v) else _value_as_text(v) for v in cells], dtype=text_type())
    return cells


def _value_as_text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
