"""Signs of identifying columns in their cells: the form of the values, and how rare they are."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from anonflow.errors import DataError
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.table.domain import missing_cells
from anonflow.table.forms.numbers import numbers_of
from anonflow.table.identification.code_signs import code_texts
from anonflow.table.identification.column_signs import values_say

MANY = 0.9
"""Share of distinct values from which text is assumed to identify a person."""

_ALMOST_EMPTY = 0.25
"""A column is almost empty if at most this share of the records have a value."""

_LOOKED_AT = 2_000
"""Distinct values that patterns are tried on."""

_OFTEN = 5
"""Records with a value from which it is no longer rare."""

CODES = frozenset(
    {
        "?",
        "-",
        "--",
        ".",
        "n",
        "na",
        "n/a",
        "nan",
        "none",
        "null",
        "unknown",
        "missing",
        "k.a.",
        "s/d",
        "nd",
        "nr",
    }
)
"""Texts that usually stand for a missing value, in lower case."""


_LETTERS = ("y", "j", "s", "o", "esw")
"""Beside what letters alone N is an answer: yes in several languages, and the other points of a compass."""


def codes_among(texts: Iterable[str]) -> set[str]:
    """Return which texts of a column are usual codes for a missing value, those apart that are answers beside the others.

    N beside Y alone says no, - beside + alone is a sign, and none in small letters, as the other words are written, says that there is none;
    programs write None, NULL and NA for what they do not know.

    Parameters
    ----------
    texts : iterable of str
        Distinct.
    """
    plain = {text: text.strip() for text in texts}
    codes = {text for text, word in plain.items() if word.lower() in CODES}
    others = {word.lower() for word in plain.values() if word} - CODES
    words = [word for text, word in plain.items() if text not in codes and word[:1].isalpha()]
    answers = {"n", "N"} if "".join(sorted(others)) in _LETTERS else {"-"} if others == {"+"} else set()
    if words and all(word[0].islower() for word in words):
        answers.add("none")
    return {text for text in codes if plain[text] not in answers}


def filled(cells: pd.Series) -> pd.Series:
    """Return the cells of a column that have a value: neither a blank nor a usual code for one."""
    values = cells[~missing_cells(cells)]
    blank = [
        text
        for text in values.drop_duplicates()
        if isinstance(text, str) and (not text.strip() or text.strip().lower() in CODES)
    ]
    return values[~values.isin(blank)] if blank else values


def form(values: pd.Series, numeric: bool, dates: bool) -> str | None:
    """Return why the values identify people by their form, whatever the name of their column; else None."""
    look = None if dates else values_say(code_texts(values.drop_duplicates().head(_LOOKED_AT)))
    if look is not None and not (look.startswith("phone") and numeric):
        return f"its values look like {look}"
    if numeric and not dates and _counts_up(values):
        return "its values are different whole numbers that count up"
    return None


def rarity(values: pd.Series, n: int) -> str | None:
    """Return why the texts of a column identify people because they are rare among n records; else None."""
    if len(values) >= 10 and values.nunique() >= MANY * len(values):
        return "nearly every value occurs once"
    texts = filled(values)
    times = texts.value_counts()
    if times.empty or len(texts) > _ALMOST_EMPTY * n or times.max() >= _OFTEN:
        return None
    words = sorted(len(str(text).split()) for text in times.index)
    if words[len(words) // 2] > 1 or 1 < len(times) >= MANY * len(texts):
        return f"{len(texts):,} of {plural(n, 'record')} {verb_of(len(texts), 'have')} a text, which may be about single people"
    return None


def is_numeric(values: pd.Series) -> bool:
    """Return numbers, dates, or text that is one of them throughout."""
    if pd.api.types.is_bool_dtype(values.dtype):
        return False
    try:
        numbers_of(values, "", advice=None)
    except (DataError, ValueError, TypeError):
        return False
    return True


def is_dates(values: pd.Series) -> bool:
    """Return whether values that are numeric are dates."""
    return numbers_of(values, "", advice=None)[1] is not None


def numbers_in(values: pd.Series) -> np.ndarray:
    """Return values as numbers, NaN for those that are none; each distinct text is read once."""
    if pd.api.types.is_numeric_dtype(values.dtype):
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    at, distinct = pd.factorize(values)
    read = pd.to_numeric(pd.Series(distinct), errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    return np.append(read, np.nan)[at]  # -1 is a missing value


def _counts_up(values: pd.Series) -> bool:
    """Return whether all are different whole numbers without large gaps, like the numbers of a register."""
    numbers = numbers_in(values)
    if len(numbers) < 20 or not (numbers == np.floor(numbers)).all():
        return False
    half = float(numbers.max() / 2 - numbers.min() / 2)  # the difference may overflow
    return len(np.unique(numbers)) == len(numbers) and half < 0.6 * len(numbers)
