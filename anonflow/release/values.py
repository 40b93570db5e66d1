"""Plain values of a column in another order, without any trace of the original column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from anonflow.errors import DataError
from anonflow.table.forms.text_columns import (
    categories_at,
    check_characters,
    factorized,
    texts_at,
    value_text,
)
from anonflow.table.published.published_cells import WHOLE

_EXACT = 1 << 53  # up to it float64 has every whole number


@dataclass(frozen=True, eq=False)
class PlainColumn:
    """A column's values, to be published in another order without any trace of the original column.

    Attributes
    ----------
    code : numpy.ndarray, shape (n,), integer
        Which value each record has; -1 for a missing one.
    values : numpy.ndarray
        Bools or numbers if all values are (missing ones become NaN), otherwise text; the last is a missing one.
    """

    code: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, cells: pd.Series, name: str, hidden: bool) -> PlainColumn:
        """Read a column.

        Parameters
        ----------
        cells : pandas.Series, n values
        name : str
            The column, for messages.
        hidden : bool
            Whether some rows get ``*`` instead; the column is text then.

        Raises
        ------
        DataError
            If the cells are lists or other values that are no single value, bytes, or text that is no Unicode.
        """
        code, distinct = factorized(cells, name)
        values = [
            value.item()
            if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64)
            else value
            for value in list(distinct)
        ]
        numbers = None if hidden else _as_numbers(values, bool((code < 0).any()))
        if numbers is not None:
            return cls(code, numbers)
        if any(isinstance(value, bytes) for value in values):
            raise DataError(f"column {name!r}: holds bytes; decode them to text")
        texts = [value_text(value) for value in values]
        check_characters(texts, name)
        return cls(code, np.array([*texts, None], object))

    def at(self, records: np.ndarray, hidden: np.ndarray | None, coded: bool = False) -> Any:
        """Return the values of some records.

        Parameters
        ----------
        records : numpy.ndarray, shape (m,), integer
        hidden : numpy.ndarray, shape (m,), bool, optional
            Rows that get ``*`` instead.
        coded : bool
            Whether texts become categories.

        Returns
        -------
        numpy.ndarray or pandas array, m values
        """
        code = self.code[records]
        if self.values.dtype != object:
            return self.values[code]  # a missing one, -1, is the NaN at the end
        code, texts = np.where(code < 0, len(self.values) - 1, code), self.values
        if hidden is not None and hidden.any():
            code, texts = np.where(hidden, len(texts), code), np.append(texts, WHOLE)
        return (categories_at if coded else texts_at)(texts, code)


def _as_numbers(values: list[Any], missing: bool) -> np.ndarray | None:
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
