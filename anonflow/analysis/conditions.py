"""Declarative conditions on rows: columns, and the values that they may have."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from anonflow.errors import ParameterError
from anonflow.table.published.published_cells import IS_NUMBER, code_name, day_number
from anonflow.table.schema import did_you_mean

_DIGIT = re.compile(r"[0-9]")
_WRITTEN = re.compile(r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,17})?(?:[eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True, eq=False)
class ColumnCondition:
    """The condition on one column.

    Attributes
    ----------
    column : str
    low, high : float or None
        A range of numbers, both ends included; None is no end. Of a date, days since 1970-01-01.
    values : frozenset of str or None
        Or the values, as text; None for a range.
    has_dates : bool
        Whether the ends of the range are dates.
    """

    column: str
    low: float | None = None
    high: float | None = None
    values: frozenset[str] | None = None
    has_dates: bool = False

    def holds(self, cells: pd.Series) -> np.ndarray:
        """Return which cells meet it, shape (n,), bool; a missing cell meets only the value ``""``.

        Raises
        ------
        ParameterError
            If it is a range and the values are not numbers.
        """
        dates = pd.api.types.is_datetime64_any_dtype(cells.dtype)
        if self.values is not None and not dates:
            at, distinct = pd.factorize(cells, use_na_sentinel=False)
            inside = np.array([text_of(cell) in self.values for cell in distinct], bool)
            return inside[at]
        numbers = numbers_of(cells)
        if numbers is None:
            raise ParameterError(
                f"condition: column {self.column!r} has no numbers; give values instead of from and to"
            )
        is_missing = np.isnan(numbers) & ("" in (self.values or ()))
        return self.inside(numbers, dates) | is_missing

    def inside(self, numbers: np.ndarray, dates: bool) -> np.ndarray:
        """Return which numbers lie in the range, or are among the values; `dates`: they are days since 1970-01-01.

        Raises
        ------
        ParameterError
            As :meth:`ends` and :meth:`numbers`.
        """
        if self.values is not None:
            return np.isin(numbers, self.numbers(dates))
        low, high = self.ends(dates)
        return np.asarray((numbers >= low) & (numbers <= high))

    def ends(self, dates: bool) -> tuple[float, float]:
        """Return the ends of the range, infinite where there is none.

        Raises
        ------
        ParameterError
            If it is a range of numbers and the column has dates, or the other way round.
        """
        if dates and not self.has_dates and (self.low, self.high) != (None, None):
            raise self._needs_dates("from and to")
        if self.has_dates and not dates:
            raise ParameterError(
                f"condition: column {self.column!r} has numbers and no dates; give from and to as numbers"
            )
        return (-np.inf if self.low is None else self.low, np.inf if self.high is None else self.high)

    def numbers(self, dates: bool) -> np.ndarray:
        """Return those of the values that are numbers, or dates as days since 1970-01-01, ascending, each once; others are codes.

        Raises
        ------
        ParameterError
            If the column has dates, and a value is a number, or a date that could be read in two ways.
        """
        values = self.values or frozenset()
        read = {value: day_number(value) if dates else _number_from(value) for value in values}
        unread = [value for value, number in read.items() if number is None] if dates else []
        if any(_days_of(value) is not None for value in unread if _DIGIT.search(value)):
            raise self._needs_dates("the values")
        return np.unique([number for number in read.values() if number is not None])

    def _needs_dates(self, form: str) -> ParameterError:
        return ParameterError(
            f"condition: column {self.column!r} has dates; give {form} as dates, such as 2020-12-31"
        )


def conditions(where: Any, columns: Sequence[str]) -> tuple[ColumnCondition, ...]:
    """Read conditions, which must all hold.

    Parameters
    ----------
    where : mapping
        Column -> a value, a list of values, or a range of numbers: ``{"from": 30, "to": 39}`` or a pair ``(30, 39)``,
        both ends included.
    columns : sequence of str
        Those that there are.

    Raises
    ------
    ParameterError
        If a column is not there, or a condition cannot be read.
    """
    if not isinstance(where, Mapping) or not where:
        raise ParameterError(
            "a condition is a mapping such as {age: {from: 30, to: 39}, sex: Female}; give at least one column"
        )
    return tuple(_condition(name, condition, columns) for name, condition in where.items())


def _condition(name: Any, condition: Any, columns: Sequence[str]) -> ColumnCondition:
    if name not in columns:
        raise ParameterError(
            f"condition: there is no column {name!r}{did_you_mean(str(name), tuple(columns))}"
        )
    if isinstance(condition, tuple) and len(condition) == 2:
        condition = {"from": condition[0], "to": condition[1]}
    if isinstance(condition, Mapping):
        if not condition or set(condition) - {"from", "to"}:
            raise ParameterError(
                f"condition on {name!r}: a range is {{from: NUMBER, to: NUMBER}}, or one of the two"
            )
        ends = {key: end for key, end in condition.items() if end is not None}
        numbers = {key: _number_from(end) for key, end in ends.items()}
        has_dates = bool(ends) and all(number is None for number in numbers.values())
        if has_dates:
            numbers = {key: _days_of(end) for key, end in ends.items()}
        if None in numbers.values():
            raise ParameterError(f"condition on {name!r}: from and to are numbers or dates")
        low, high = numbers.get("from"), numbers.get("to")
        if low is not None and high is not None and low > high:
            raise ParameterError(f"condition on {name!r}: from is larger than to")
        return ColumnCondition(str(name), low, high, has_dates=has_dates)
    several = condition if isinstance(condition, list | set | frozenset) else [condition]
    if not several or any(isinstance(value, Mapping | list | tuple) for value in several):
        raise ParameterError(f"condition on {name!r}: give a value, a list of values, or {{from: , to: }}")
    return ColumnCondition(str(name), values=frozenset(text_of(value) for value in several))


def rows_that_meet(frame: pd.DataFrame, where: Any) -> np.ndarray:
    """Return which rows of a complete table meet conditions, shape (n,), bool.

    Parameters
    ----------
    frame : pandas.DataFrame
    where : mapping or callable
        As :func:`conditions` takes it, or a function of a table that returns n bools.

    Raises
    ------
    ParameterError
        As :func:`conditions`, or if the callable does not return a bool for each row.
    """
    if callable(where):
        met = np.asarray(where(frame))
        if met.shape != (len(frame),) or met.dtype != bool:
            raise ParameterError("condition: the function must return True or False for each row")
        return met
    met = np.ones(len(frame), bool)
    for condition in conditions(where, [str(name) for name in frame.columns]):
        meets = condition.holds(frame[condition.column])
        beside = code_name(condition.column)
        if condition.values is not None and beside in frame.columns:
            codes = frame[beside]
            meets = np.where(codes == IS_NUMBER, meets, condition.holds(codes))
        met &= meets
    return met


def numbers_of(cells: pd.Series) -> np.ndarray | None:
    """Return a column as numbers, NaN where one is missing; days since 1970-01-01 of dates; None where it has others."""
    if pd.api.types.is_bool_dtype(cells.dtype):
        return None
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        plain = cells.dt.tz_localize(None) if getattr(cells.dt, "tz", None) is not None else cells
        return ((plain - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)).to_numpy(np.float64)
    if pd.api.types.is_numeric_dtype(cells.dtype):
        return cells.to_numpy(np.float64, na_value=np.nan)
    return None


def numbers_among(cells: pd.Series) -> np.ndarray | None:
    """Return the same, and of a column of text those of its texts that are numbers; None if it has no number at all."""
    numbers = numbers_of(cells)
    if numbers is not None or pd.api.types.is_bool_dtype(cells.dtype):
        return numbers
    at, distinct = pd.factorize(cells)
    values = [float(text) if _WRITTEN.fullmatch(str(text)) else np.nan for text in distinct]
    every = np.array([*values, np.nan])[at]
    return None if np.isnan(every).all() else every


def written_numbers(cells: pd.Series) -> pd.Series:
    """Return a column of text as numbers, where all its texts are numbers and no codes (``007``); else as it is."""
    if not (pd.api.types.is_string_dtype(cells.dtype) or pd.api.types.is_object_dtype(cells.dtype)):
        return cells
    distinct = pd.unique(cells.dropna())
    if not len(distinct) or not all(_WRITTEN.fullmatch(str(text)) for text in distinct):
        return cells
    return pd.to_numeric(cells)


def _days_of(value: Any) -> float | None:
    """Return a date as days since 1970-01-01, also a text; None where it is none."""
    try:
        moment = pd.Timestamp(value)
    except (TypeError, ValueError):
        return None
    days = (moment.tz_localize(None) - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    return None if np.isnan(days) else float(days)


def _number_from(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, Real):
        return float(value)
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def text_of(value: Any) -> str:
    """Return a value as text: whole numbers without ``.0``, dates as ISO 8601 has them, empty where it is missing."""
    if isinstance(value, str):
        return value
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and np.isnan(value)):
        return ""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, date | np.datetime64):
        return pd.Timestamp(value).isoformat().removesuffix("T00:00:00")
    return str(value)
