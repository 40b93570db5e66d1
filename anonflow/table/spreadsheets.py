"""Texts that spreadsheets would execute: their form in a published CSV file, and how they are read back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anonflow.hierarchy.wording import plural
from anonflow.large_arrays import IN_MEMORY, Arrays
from anonflow.table.files.csv_head import PLAIN, CsvShape
from anonflow.table.files.read import read_frame
from anonflow.table.forms.text_columns import text_type
from anonflow.table.published.published_cells import range_pattern

_CSV = ".csv"
_EXECUTED = ("=", "+", "-", "@", "\t", "\r")
"""The beginnings of texts that a spreadsheet takes for formulas, or skips."""

_PLAIN = re.compile(rf"(?:\+(?!-))?{range_pattern()}")
"""Numbers and ranges of them, which stay as they are: a spreadsheet computes nothing from them."""


def guarded_text(text: str) -> str:
    """Return a text that no spreadsheet executes: with an apostrophe before it, where it begins like a formula.

    A text that begins with apostrophes and then like a formula gets one more, so that :func:`unguarded_text` gives back
    every text. Numbers and published ranges such as ``-500--20`` stay as they are.
    """
    bare = text.lstrip("'")
    return (
        f"'{text}" if bare.startswith(_EXECUTED) and not (bare == text and _PLAIN.fullmatch(text)) else text
    )


def unguarded_text(text: str) -> str:
    """Return the original text of :func:`guarded_text`."""
    return text[1:] if text[:1] == "'" and text.lstrip("'").startswith(_EXECUTED) else text


def formula_cells(frame: pd.DataFrame) -> int:
    """Return how many cells and names of a frame :func:`guarded_text` changes in a CSV file."""
    count = sum(guarded_text(str(name)) != str(name) for name in frame.columns)
    for name in frame.columns:
        at, texts = _places_of_texts(frame[name])
        if texts is not None:
            changed = np.array([isinstance(text, str) and guarded_text(text) != text for text in texts], bool)
            count += int(np.append(changed, False)[at].sum())
    return count


def formula_warning(frame: pd.DataFrame, path: str | PathLike[str]) -> str | None:
    """Return the warning for a frame that is written to a CSV file; None for other files, and if no cell is changed."""
    return formula_sentence(formula_cells(frame), path) if Path(path).suffix.lower() == _CSV else None


def formula_sentence(count: int, path: str | PathLike[str]) -> str | None:
    """Return the same warning from the number of cells that begin like a formula."""
    if not count or Path(path).suffix.lower() != _CSV:
        return None
    return (
        f"{plural(count, 'cell', 'begin')} like a formula (=, +, -, @, tab or return); in the CSV file an apostrophe stands before "
        "them, so that no spreadsheet executes them; read_release and verify remove it"
    )


def _places_of_texts(cells: pd.Series) -> tuple[np.ndarray, list[Any] | None]:
    """Return where each cell's text stands among the distinct ones, -1 where it is missing; None of numbers."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return np.asarray(cells.array.codes), list(cells.cat.categories)
    if not (pd.api.types.is_string_dtype(cells.dtype) or pd.api.types.is_object_dtype(cells.dtype)):
        return np.zeros(0, np.intp), None
    at, distinct = pd.factorize(cells)
    return at, list(distinct)


def changed_texts(cells: pd.Series, change: Callable[[list[str]], Iterable[str | None]]) -> pd.Series:
    """Return a column with its distinct texts changed, all at once; the same column where none is."""
    at, values = _places_of_texts(cells)
    if values is None:
        return cells
    texts = [value for value in values if isinstance(value, str)]
    of_text = dict(zip(texts, change(texts), strict=True))
    changed = [of_text[value] if isinstance(value, str) else value for value in values]
    if changed == values:
        return cells
    return pd.Series(
        np.array([*changed, None], object)[at], index=cells.index, name=cells.name, dtype=text_type()
    )


def read_published(
    path: str | PathLike[str],
    *,
    delimiter: str = ",",
    encoding: str = "utf-8",
    shape: CsvShape = PLAIN,
    arrays: Arrays = IN_MEMORY,
) -> pd.DataFrame:
    """Return the cells of a published file: as :func:`read_frame`, but texts of a CSV file as they were.

    Parameters
    ----------
    path : path
    delimiter, encoding : str
        Of a CSV file that another tool wrote.
    shape : CsvShape
        Of a CSV file: what is said about its header and the lines above it.
    arrays : Arrays
        Where its columns are.

    Raises
    ------
    DataError
        If the file cannot be read.
    """
    frame = read_frame(path, delimiter=delimiter, encoding=encoding, shape=shape, arrays=arrays)
    if not any(suffix.lower() == _CSV for suffix in Path(path).suffixes):
        return frame
    columns = {
        unguarded_text(str(name)): changed_texts(frame[name], partial(map, unguarded_text))
        for name in frame.columns
    }
    if len(columns) < len(frame.columns):
        return frame  # names that differ only in their guards: the caller reports them
    return pd.DataFrame(columns)
