"""The text of a value, and the type of a column of texts: pandas' own from its third version on, plain objects before."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from anonflow.errors import DataError
from anonflow.hierarchy import number_text

_BOOLS = bool | np.bool_


def value_text(value: object) -> str:
    """Return the text of a plain value: that of a category, of a published cell, and of what is compared with both.

    Parameters
    ----------
    value : object
        Not a missing one. Midnight without a time zone is its date; a span of time is what files have.
    """
    if isinstance(value, np.timedelta64):  # numpy takes it for a whole number
        return str(value)
    if isinstance(value, _BOOLS):
        return str(bool(value))
    if isinstance(value, int | float | np.integer | np.floating):
        return number_text(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat().removesuffix("T00:00:00")
    return str(value)


def check_characters(texts: Iterable[str], name: str) -> None:
    """Refuse texts of a column that no file can hold.

    Raises
    ------
    DataError
        If a text has a part of a character.
    """
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        raise DataError(
            f"column {name!r}: has characters that no file can hold; correct its encoding"
        ) from None


def factorized(cells: Any, name: str, *, with_missing: bool = False) -> tuple[np.ndarray, Any]:
    """Return which distinct value each cell of a column has, and these values.

    Parameters
    ----------
    cells : pandas.Series or array
    name : str
        Of the column.
    with_missing : bool
        Whether a cell without a value has one of these values; otherwise its number is -1.

    Raises
    ------
    DataError
        If cells are lists, or have no single value otherwise.
    """
    try:
        at, distinct = pd.factorize(cells, use_na_sentinel=not with_missing)
    except (TypeError, NotImplementedError):  # the second from Arrow
        raise DataError(f"column {name!r}: has lists or other values that are no single value") from None
    return (
        (at, distinct) if distinct.dtype != object else _bools_apart(np.asarray(cells, object), at, distinct)
    )


def _bools_apart(cells: np.ndarray, at: np.ndarray, distinct: Any) -> tuple[np.ndarray, Any]:
    """Return the same with bools apart from numbers: pandas takes True for 1, and whichever comes first stands for both."""
    if not pd.api.types.infer_dtype(cells, skipna=True).startswith("mixed"):
        return at, distinct
    values = list(distinct)
    for number, value in enumerate(distinct):
        if not isinstance(value, bool | int | float | Decimal | np.generic) or value not in (0, 1):
            continue
        rows = np.flatnonzero(at == number)
        others = rows[[isinstance(cell, _BOOLS) != isinstance(value, _BOOLS) for cell in cells[rows]]]
        if len(others):
            at[others] = len(values)
            values.append(cells[others[0]])
    return at, pd.Index(values, dtype=object, tupleize_cols=False)


@cache
def text_type() -> Any:
    """Return the type that this pandas gives to a column of texts; in both, None is a missing value and stays one."""
    return "str" if int(pd.__version__.partition(".")[0]) >= 3 else object


def text_array(texts: Iterable[Any]) -> Any:
    """Return texts, or None for a missing one, as the array of a column.

    Parameters
    ----------
    texts : iterable of str or None
    """
    cells = texts if isinstance(texts, np.ndarray) else np.array([*texts, None], object)[:-1]
    return pd.array(cells.astype(object), dtype=text_type())


def categories_at(texts: np.ndarray, at: np.ndarray) -> pd.Categorical:
    """Return the texts at some positions as categories: each text once, and numbers.

    Parameters
    ----------
    texts : numpy.ndarray, shape (u,), object
        Some may be equal; None is a missing one.
    at : numpy.ndarray, shape (n,), integer
        -1 for a missing one, too.
    """
    code, distinct = pd.factorize(texts)
    return pd.Categorical.from_codes(np.append(code, -1)[at], pd.Index(distinct, dtype=text_type()))


def plain_column(cells: pd.Series) -> pd.Series:
    """Return a column of categories as the texts that they are, and any other as it is."""
    if not isinstance(cells.dtype, pd.CategoricalDtype):
        return cells
    texts = np.array([*cells.cat.categories, None], object)
    at = np.asarray(cells.array.codes)
    at = np.where(at < 0, len(texts) - 1, at)
    return pd.Series(texts_at(texts, at), index=cells.index, name=cells.name)


def plain_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose categories are the texts that they are."""
    if not any(isinstance(kind, pd.CategoricalDtype) for kind in frame.dtypes):
        return frame
    return pd.DataFrame({name: plain_column(cells) for name, cells in frame.items()}, index=frame.index)


def texts_at(texts: np.ndarray, at: np.ndarray) -> Any:
    """Return the texts at some positions as the array of a column.

    Parameters
    ----------
    texts : numpy.ndarray, shape (u,), object
        None is a missing one.
    at : numpy.ndarray, shape (n,), integer
    """
    if text_type() is object:
        return text_array(texts[at])
    return pd.array(pa.array(texts, pa.large_string()).take(pa.array(at)), dtype=text_type())
