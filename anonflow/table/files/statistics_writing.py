"""Write files of SPSS and Stata: texts become codes with value labels, as statistical offices hand out tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anonflow.errors import DataError, ParameterError
from anonflow.table.files.statistics_files import read_statistics
from anonflow.table.published.published_cells import WHOLE

WRITTEN = (".sav", ".zsav", ".dta")
"""Endings of the files of SPSS and Stata that can be written."""

LONGEST_NAME = 32
"""Bytes of a column's name that both programs take; Stata allows no more."""

LONGEST_LABEL = 120
"""Bytes of a value label in a file of SPSS."""

MOST_LABELS = 10_000
"""Distinct texts of a column that get labels; more of them stay texts."""

_RESERVED = frozenset(
    [
        "_all",
        "all",
        "and",
        "by",
        "byte",
        "double",
        "eq",
        "float",
        "ge",
        "gt",
        "if",
        "in",
        "int",
        "le",
        "long",
        "lt",
        "ne",
        "not",
        "or",
        "str",
        "strl",
        "to",
        "using",
        "with",
    ]
)
_EXACT = 1 << 53  # up to it float64, the only number of these files, has every whole number
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_DIGITS = 15  # float64 keeps any decimal number of so many digits


def is_written(path: str | PathLike[str]) -> bool:
    """Return whether a name is that of a file of SPSS or Stata that can be written."""
    return Path(path).suffix.lower() in WRITTEN


def writing_problems(names: Iterable[str]) -> list[str]:
    """Return why columns cannot be written, a sentence each: a package that is not installed, names that SPSS or Stata does not take."""
    problems: list[str] = []
    seen: set[str] = set()
    if find_spec("pyreadstat") is None:
        problems.append(
            "files of SPSS and Stata need the package pyreadstat; install it with: pip install 'anonflow[stats]'"
        )
    for name in names:
        small = name.casefold()
        if (
            not name.isidentifier()
            or name.startswith("_")
            or len(name.encode()) > LONGEST_NAME
            or small in _RESERVED
        ):
            problems.append(
                f"column {name!r}: SPSS and Stata take names of letters, digits and _, of at most {LONGEST_NAME} bytes; "
                "rename it before, or publish .csv or .parquet"
            )
        elif small in seen:
            problems.append(
                f"column {name!r}: SPSS takes it for another column, because it ignores case; rename it"
            )
        seen.add(small)
    return problems


def write_statistics(frame: pd.DataFrame, path: str | PathLike[str]) -> None:
    """Write a table of plain values as a file of SPSS or Stata, by the name's ending.

    Parameters
    ----------
    frame : pandas.DataFrame
    path : path
        ``.sav``, ``.zsav`` (SPSS) or ``.dta`` (Stata). Numbers and times stay what they are. Texts of a column with at most
        10,000 distinct ones become codes in their order, from 1, with the texts as value labels; numbers beside ``*`` stay texts.

    Raises
    ------
    ParameterError
        If the name ends otherwise.
    DataError
        If pyreadstat is not installed, a column has a name that such files do not take, or cells of a column that they
        do not hold.
    """
    name = fspath(path)
    if not is_written(path):
        raise ParameterError(f"{name}: a file of SPSS or Stata ends in {', '.join(WRITTEN)}; rename it")
    problems = writing_problems(str(column) for column in frame.columns)
    if problems:
        raise DataError.collected(f"{name}: cannot be written", problems)
    import pyreadstat

    columns: dict[str, Any] = {}
    labels: dict[str, dict[Any, str]] = {}
    for column in frame.columns:
        columns[str(column)], texts = _stored(frame[column])
        if texts:
            labels[str(column)] = dict(enumerate(texts, 1))
    stored = pd.DataFrame(columns)
    try:
        if Path(path).suffix.lower() == ".dta":
            pyreadstat.write_dta(stored, path, variable_value_labels=labels)
        else:
            pyreadstat.write_sav(
                stored,
                path,
                variable_value_labels=labels,
                compress=Path(path).suffix.lower() == ".zsav",
            )
        read = read_statistics(path, fits=_hold)
    except pyreadstat.ReadstatError:
        raise DataError(f"{name}: pyreadstat cannot write these columns; publish .csv or .parquet") from None
    lost = [
        f"column {column!r}: has cells that such a file does not hold as they are; publish .csv or .parquet"
        for column in map(str, frame.columns)
        if not _is_same(frame[column], read[column])
    ]
    if lost:
        raise DataError.collected(f"{name}: cannot be written", lost)


def with_numbers(frame: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Return the same with numbers in the columns whose texts are all plain numbers, as those of a CSV source are.

    A weight or an income would otherwise become a code with a label. Texts with zeros in front are no numbers, but codes.

    Parameters
    ----------
    frame : pandas.DataFrame
    names : iterable of str
        The columns that may change.
    """
    numbers = {}
    for name in names:
        cells = frame[name]
        texts = None if pd.api.types.is_numeric_dtype(cells.dtype) else pd.unique(cells.dropna())
        if texts is not None and len(texts) and all(map(_is_number, texts)):
            numbers[name] = pd.to_numeric(cells)
    return frame.assign(**numbers) if numbers else frame


def _is_number(text: Any) -> bool:
    """Return whether a cell is the text of a number that a float holds as it is written."""
    return isinstance(text, str) and len(text) <= _DIGITS and _NUMBER.fullmatch(text) is not None


def _hold(sizes: Iterable[int]) -> None:
    for _ in sizes:
        pass


def _stored(cells: pd.Series) -> tuple[pd.Series, list[str]]:
    """Return the cells of a column as they are stored, and the labels of its codes, none without codes."""
    if pd.api.types.is_bool_dtype(cells.dtype):
        cells = cells.astype(object)
    elif pd.api.types.is_datetime64_dtype(cells.dtype) or pd.api.types.is_float_dtype(cells.dtype):
        return cells, []
    elif pd.api.types.is_integer_dtype(cells.dtype) and not (cells.abs() > _EXACT).any():
        return cells.astype(float) if cells.hasnans else cells.astype("int64").astype(float), []
    texts = _cell_texts(cells)
    distinct = sorted({text for text in texts if text is not None})
    # numbers with hidden ones among them stay texts: who computes with a code in the place of a number does not see it
    beside_hidden = WHOLE in distinct and len(distinct) > 1 and all(map(_is_number, set(distinct) - {WHOLE}))
    too_long = any(not 0 < len(text.encode()) <= LONGEST_LABEL for text in distinct)
    if beside_hidden or too_long or len(distinct) > MOST_LABELS:
        return pd.Series(["" if text is None else text for text in texts], dtype=object), []
    code = {text: number for number, text in enumerate(distinct, 1)}
    if None in texts:
        return pd.Series([np.nan if text is None else float(code[text]) for text in texts]), distinct
    return pd.Series([code[text] for text in texts if text is not None], dtype="int32"), distinct


def _cell_texts(cells: pd.Series) -> list[str | None]:
    missing = cells.isna().to_numpy()
    return [None if gone or str(cell) == "" else str(cell) for cell, gone in zip(cells, missing, strict=True)]


def _is_same(cells: pd.Series, read: pd.Series) -> bool:
    """Return whether cells were read as they were written."""
    is_number = pd.api.types.is_numeric_dtype(read.dtype)
    if is_number and pd.api.types.is_numeric_dtype(cells.dtype) and len(cells) == len(read):
        return bool(
            np.array_equal(
                cells.to_numpy(float, na_value=np.nan), read.to_numpy(float, na_value=np.nan), equal_nan=True
            )
        )
    return _cell_texts(cells) == _cell_texts(read)
