"""The numbers and dates of a column, read from whatever type its cells have."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal

import numpy as np
import pandas as pd

from anonflow.errors import DataError
from anonflow.hierarchy.wording import no_such, plural
from anonflow.table.forms.text_columns import factorized
from anonflow.table.forms.text_forms import other_form
from anonflow.table.named_settings import NAME_MISSING

_LARGEST = 1 << 63  # the first whole number beyond int64
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:Z|[+-]\d\d:?\d\d)?")
_HUGE = 2.0**900
"""Sums of as many smaller numbers as there can be records are finite; larger ones divided by it are, too."""

_WHOLE = re.compile(r"\s*[+-]?\d{1,400}\s*")  # a longer one is infinite
_NUMBER = re.compile(r"\s*[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\s*")


_ADVICE = "use kind categorical, or " + NAME_MISSING


def numbers_of(cells: pd.Series, name: str, advice: str | None = _ADVICE) -> tuple[np.ndarray, str | None]:
    """Return values as int64, float64 or datetime64 (in microseconds; in nanoseconds if needed), and the kind of dates.

    Parameters
    ----------
    cells : pandas.Series, n values
        None missing. Text is read where all of it is numbers, or all of it ISO dates.
    name : str
        The column, for messages.
    advice : str or None, optional
        What to do about texts that are not numbers in any form, for messages; None for callers that show no message: then no form is
        looked for.

    Returns
    -------
    values : numpy.ndarray, shape (n,)
    dates : {None, "date", "time", "utc"}

    Raises
    ------
    DataError
        If some values are not numbers, infinite, of mixed types, or dates that do not exist.
    """
    if pd.api.types.is_bool_dtype(cells.dtype):
        raise DataError(f"column {name!r}: truth values are not numeric; use kind categorical")
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(cells.cat.categories.dtype)
    if pd.api.types.is_datetime64_any_dtype(cells.dtype) or str(cells.dtype).startswith(
        ("date32", "date64", "timestamp")
    ):
        return _dates(cells, name)
    # decimals of Arrow are numbers to pandas, and would be rounded
    if not pd.api.types.is_numeric_dtype(cells.dtype) or str(cells.dtype).startswith("decimal"):
        return _read_numbers(cells, name, advice)
    if pd.api.types.is_complex_dtype(cells.dtype):
        raise DataError(
            f"column {name!r}: complex numbers have no order; leave it out of the quasi-identifiers"
        )
    if pd.api.types.is_integer_dtype(cells.dtype):
        unsigned = pd.api.types.is_unsigned_integer_dtype(cells.dtype)
        if unsigned and len(cells) and int(cells.max()) > np.iinfo(np.int64).max:
            raise DataError(f"column {name!r}: integers beyond 64 bits; use kind suppression")
        return cells.to_numpy(dtype=np.int64), None
    values = cells.to_numpy(dtype=np.float64)
    infinite = int(np.isinf(values).sum())
    if infinite:
        raise DataError(f"column {name!r}: {plural(infinite, 'infinite value')}; replace or drop them")
    return values + 0.0, None  # -0.0 becomes 0.0


def _dates(cells: pd.Series, name: str) -> tuple[np.ndarray, str]:
    sort = "time"
    try:
        stamps = pd.DatetimeIndex(pd.to_datetime(cells))
        if stamps.tz is not None:
            stamps, sort = stamps.tz_convert("UTC").tz_localize(None), "utc"
        # microseconds reach from year 1 to 9999 and beyond, nanoseconds from 1677 to 2262
        coarse = stamps.as_unit("us")
    except (ValueError, TypeError):
        raise DataError(
            f"column {name!r}: some dates cannot be computed with, or have a time zone where others have none; "
            "write them all in one way"
        ) from None
    values = (coarse if (coarse == stamps).all() else stamps).to_numpy()
    years = values[~np.isnat(values)].astype("datetime64[Y]").astype(np.int64) + 1970
    if ((years < 1) | (years > 9999)).any():  # nobody could read them in a release
        raise DataError(f"column {name!r}: has a date outside the years 1 to 9999; correct it")
    midnight = (values == values.astype("datetime64[D]")).all()
    return values, "date" if midnight and sort == "time" else sort


def _read_numbers(cells: pd.Series, name: str, advice: str | None) -> tuple[np.ndarray, str | None]:
    """Return numbers or ISO dates from text, or from a column of Python objects; distinct values are read once."""
    at, distinct = factorized(cells, name)
    values = list(distinct)
    if values and all(isinstance(value, datetime.date) for value in values):
        return _dates(cells, name)
    texts = [value if isinstance(value, str) else None for value in values]
    if texts and all(text is not None and _DATE.fullmatch(text) for text in texts):
        zoned = sum(bool(re.search(r"(?:Z|[+-]\d\d:?\d\d)$", text[10:])) for text in texts if text)
        if zoned not in (0, len(texts)):
            raise DataError(f"column {name!r}: dates with and without a time zone; write them all in one way")
        try:
            stamps = pd.to_datetime(pd.Series(texts), format="ISO8601", utc=bool(zoned))
        except ValueError:
            raise DataError(f"column {name!r}: some dates do not exist; correct them") from None
        read, dates = _dates(stamps, name)
        return read[at], dates
    numbers: list[int | float] = []
    wrong, rounds = np.zeros(len(values), bool), False
    for value in values:
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            numbers.append(int(value) if _WHOLE.fullmatch(value) else float(value))
        elif isinstance(value, int | float | np.integer | np.floating) and not isinstance(
            value, bool | np.bool_
        ):
            numbers.append(value.item() if isinstance(value, np.generic) else value)
        elif isinstance(value, Decimal) and value.is_finite():
            numbers.append(int(value) if value == value.to_integral_value() else float(value))
            rounds |= Decimal(repr(numbers[-1])) != value
        else:
            wrong[len(numbers)] = True
            numbers.append(0)
    bad = int(wrong[at].sum())
    if bad:
        problem = f"column {name!r}: {no_such(bad, 'numbers')}"
        if advice is None:
            raise DataError(problem)
        words = [value for value in values if isinstance(value, str)]
        form = (
            other_form(words, np.bincount(at, minlength=len(values))) if len(words) == len(values) else None
        )
        raise DataError(problem + "; " + (form or advice))
    types = {type(value) for value in values if not isinstance(value, str)}
    if types and any(isinstance(value, str) for value in values):
        raise DataError(f"column {name!r}: mixes text and numbers; make the values of one type")
    if rounds:
        raise DataError(
            f"column {name!r}: decimals with more digits than a float has would be rounded; round them before, by the step round under prepare, or use "
            "kind suppression"
        )
    if any(isinstance(number, int) and not -_LARGEST <= number < _LARGEST for number in numbers):
        raise DataError(f"column {name!r}: integers beyond 64 bits; use kind suppression")
    if any(isinstance(number, float) for number in numbers) and any(
        number != float(number) for number in numbers
    ):
        raise DataError(
            f"column {name!r}: whole numbers beyond 2^53 beside fractions would be rounded; use kind suppression"
        )
    array = np.array(numbers, np.int64 if all(isinstance(number, int) for number in numbers) else np.float64)
    infinite = 0 if array.dtype == np.int64 else int(np.isinf(array)[at].sum())
    if infinite:
        raise DataError(f"column {name!r}: {plural(infinite, 'infinite value')}; replace or drop them")
    return array[at] + 0, None


def summable(values: np.ndarray) -> np.ndarray:
    """Return numbers of which only ratios matter: if differences or sums would overflow, all are scaled down."""
    largest = np.fmax.reduce(np.abs(values), initial=0.0)  # missing ones are NaN
    return values / _HUGE if largest > _HUGE else values
