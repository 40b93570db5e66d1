"""Plain values of a column in another order, without any trace of the original column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from anonflow.errors import DataError
from anonflow.table.domain import WHOLE
from anonflow.table.text_columns import check_characters, factorized, text_array, value_text

__all__ = ["plain_values"]

_EXACT = 1 << 53


def plain_values(
    cells: pd.Series,
    order: np.ndarray,
    *,
    hidden: np.ndarray | None = None,
    name: str = "",
    text: bool = False,
) -> Any:
    """Return a column's values in another order, rebuilt so that no trace of the original column remains.

    Parameters
    ----------
    cells : pandas.Series, n values
    order : numpy.ndarray, shape (n,), integer
        Which value each row gets.
    hidden : numpy.ndarray, shape (n,), bool, optional
        Rows that get ``*`` instead; the column is text then.
    name : str
        The column, for messages.
    text : bool
        Whether to make it text also where all values are numbers: of a part of a column, others may be none.

    Returns
    -------
    numpy.ndarray or pandas array, n values
        Bools or numbers if all values are (missing ones become NaN), otherwise text; missing text stays missing.

    Raises
    ------
    DataError
        If the cells are lists or other values that are no single value, bytes, or text that is no Unicode.
    """
    at, distinct = factorized(cells, name)
    at = at[order]
    values = [
        value.item()
        if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64)
        else value
        for value in list(distinct)
    ]
    missing = at < 0
    if hidden is None and not text:
        numbers = _numbers(values, bool(missing.any()))
        if numbers is not None:
            return numbers[at]  # a missing one, -1, is the NaN at the end
    if any(isinstance(value, bytes) for value in values):
        raise DataError(f"column {name!r}: holds bytes; decode them to text")
    shown = [value_text(value) for value in values]
    check_characters(shown, name)
    texts = np.array([*shown, None], object)[at]
    if hidden is not None:
        texts[hidden] = WHOLE
    return text_array(texts)


def _numbers(values: list[Any], missing: bool) -> np.ndarray | None:
    """Return the values as plain numbers, NaN last if any is missing; None where they must be text."""
    kinds = {type(value) for value in values}
    if kinds == {bool} and not missing:
        return np.array(values, bool)
    if kinds == {int} and not missing and all(-(1 << 63) <= value < 1 << 63 for value in values):
        return np.array(values, np.int64)
    if not kinds or not kinds <= {int, float}:
        return None
    if any(isinstance(value, int) and abs(value) > _EXACT for value in values):
        return None
    return np.array([*values, np.nan], np.float64)
