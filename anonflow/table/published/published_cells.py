"""The notation of published cells: how ranges, sets, codes and hidden cells are written, and read.

No other module knows a sign of it: what the cells of a release read like is decided here alone.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from anonflow.hierarchy import number_text
from anonflow.table.forms.text_columns import value_text

WHOLE = "*"
"""The published text of a whole domain, and of a hidden position of a code."""

NUMBER = r"-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:e[+-]?[0-9]+)?"
"""The published form of a number."""

_MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?"
BETWEEN = {False: "-", True: "/"}
"""Whether the ends of a range are dates -> the sign between them."""

_OR = "|"
_RESERVED = re.compile(r"[{|}]")


def range_pattern(dates: bool = False, number: str = NUMBER) -> str:
    """Return a regular expression (ECMAScript, too) of a range of dates or of numbers, or a single one.

    Parameters
    ----------
    dates : bool
    number : str
        The pattern of a number.
    """
    return _pattern(_MOMENT if dates else number, dates)


def _pattern(end: str, dates: bool) -> str:
    return rf"{end}(?:{BETWEEN[dates]}{end})?"


_NUMBERS, _DATES = (re.compile(_pattern(f"({end})", end == _MOMENT)) for end in (NUMBER, _MOMENT))


class Range(NamedTuple):
    """A published range of numbers or of dates, both ends included; a single value has two equal ends.

    Attributes
    ----------
    low, high : str
        The ends as they are written.
    dates : bool
        Whether they are dates or times.
    """

    low: str
    high: str
    dates: bool

    @classmethod
    def read(cls, text: str) -> Range | None:
        """Read ``53-59``, ``53``, ``2020-01-01/2020-03-31``; return None if the text has another form, as ``*`` has."""
        dates = _DATES.fullmatch(text)
        match = dates or _NUMBERS.fullmatch(text)
        return None if match is None else cls(match[1], match[2] or match[1], dates is not None)

    @classmethod
    def between(cls, low: str, high: str) -> Range | None:
        """Return the range between two numbers or two dates; None if they are neither, or not in order."""
        either = (cls(low, high, dates) for dates in BETWEEN)
        ends = next((ends for ends in either if cls.read(ends.text) == ends), None)
        return ends if ends is not None and ends.is_inside(ends) else None

    @staticmethod
    def cuts(text: str, dates: bool) -> list[tuple[str, str]]:
        """Return all pairs of ends that a text may be a range of, in whatever form they are written."""
        cuts = [at for at, sign in enumerate(text) if sign == BETWEEN[dates] and 0 < at < len(text) - 1]
        return [(text, text), *((text[:at], text[at + 1 :]) for at in cuts)]

    @property
    def text(self) -> str:
        """The published text."""
        return self.written(str)

    def written(self, form: Callable[[str], str]) -> str:
        """Return the text with both ends in another form."""
        return BETWEEN[self.dates].join(map(form, dict.fromkeys((self.low, self.high))))

    @property
    def points(self) -> tuple[float, float]:
        """The ends as numbers, dates as days since 1970; NaN where an end is none."""
        number = day_number if self.dates else read_float
        low, high = number(self.low), number(self.high)
        return math.nan if low is None else low, math.nan if high is None else high

    @property
    def type(self) -> str:
        """The type of its ends: utc, time, date, integer or number."""
        if self.dates:
            return "utc" if self.low.endswith("Z") else "time" if "T" in self.low else "date"
        return "integer" if all(end.lstrip("-").isdigit() for end in (self.low, self.high)) else "number"

    def is_inside(self, domain: Range) -> bool:
        """Return whether its ends are in order and in a domain."""
        if self.dates != domain.dates:
            return False
        (lowest, highest), (low, high) = domain.points, self.points
        return lowest <= low <= high <= highest

    def is_text(self, text: str) -> bool:
        """Return whether a text is this range in its only published spelling, the shortest one."""
        return text == self.text and (self.dates or (is_canonical(self.low) and is_canonical(self.high)))


def is_canonical(text: str) -> bool:
    """Return whether a number is written in its shortest form, and is finite."""
    number: int | float = float(text)
    if not math.isfinite(number):
        return False
    if text.lstrip("-").isdigit():
        number = int(text)
    return number_text(number) == text


def read_number(text: str, canonical: bool = False) -> float | None:
    """Return a published number; None if the text is none, or not the shortest spelling where only `canonical` ones count."""
    if not re.fullmatch(NUMBER, text) or (canonical and not is_canonical(text)):
        return None
    return float(text)


def read_float(text: str) -> float | None:
    """Return a number however it is spelled, also an infinite one; None if the text is none."""
    try:
        return float(text)
    except ValueError:
        return None


def reads_as_number(text: str) -> bool:
    """Return whether a text is a number, a date or a range of them, and so could be confused with a published range."""
    return read_float(text) is not None or Range.read(text) is not None


def day_number(text: str) -> float | None:
    """Return an ISO date or time as days since 1970; None where it does not exist."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return float(
        (np.datetime64(moment.replace(tzinfo=None), "us") - np.datetime64(0, "us")) / np.timedelta64(1, "D")
    )


def moment(text: str) -> np.datetime64:
    """Return an ISO date or time in UTC, datetime64[us]; NaT where it does not exist."""
    exists = day_number(text) is not None
    return pd.Timestamp(text).as_unit("us").to_datetime64() if exists else np.datetime64("NaT", "us")


def values_of(ends: Sequence[tuple[str, str] | None], dates: bool) -> np.ndarray:
    """Return the ends of ranges as values, shape (u, 2), float64 or datetime64[us].

    Parameters
    ----------
    ends : sequence of ((str, str) or None), u ranges
        Missing values (NaN, NaT) for None, and for dates that do not exist.
    dates : bool
    """
    if dates:
        pairs = [[moment(end) for end in pair or ("", "")] for pair in ends]
        return np.array(pairs, "datetime64[us]").reshape(-1, 2)
    return np.array([pair or (math.nan, math.nan) for pair in ends], np.float64).reshape(-1, 2)


# ------------------------------------------------------------------------------------------------ sets and codes


def category_text(value: str | None) -> str:
    """Return the published text of a category: itself, or a JSON string if it could be misread.

    Parameters
    ----------
    value : str or None
        The category; None is the missing value.

    Returns
    -------
    str
        ``""`` for a missing value.
    """
    if value is None:
        return ""
    odd = value in ("", WHOLE) or value[0] in "\"'" or _RESERVED.search(value) or value != value.strip()
    return json.dumps(value, ensure_ascii=False) if odd else value


def quoted_value(text: str) -> str:
    """Return a category without its quotes."""
    if text[:1] != '"':
        return text
    try:
        return str(json.loads(text))
    except ValueError:
        return text


def set_text(members: Sequence[str]) -> str:
    """Return the published text of a set of categories, given as texts; of a single one that text."""
    return members[0] if len(members) == 1 else "{" + _OR.join(members) + "}"


def set_texts(labels: Sequence[str], members: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the published text of each of u sets, shape (u,), object.

    Parameters
    ----------
    labels : sequence of str
    members : numpy.ndarray, shape (sum of sizes,), integer
        Positions of labels, set by set.
    sizes : numpy.ndarray, shape (u,), int64
    """
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    parts = pa.array(labels, pa.large_string()).take(pa.array(members))
    joined = pc.binary_join(pa.LargeListArray.from_arrays(offsets, parts), pa.scalar(_OR, pa.large_string()))
    texts: np.ndarray = joined.to_numpy(zero_copy_only=False)
    return np.where(sizes == 1, texts, "{" + texts + "}")


def coded_text(run: str, codes: Iterable[str]) -> str:
    """Return the published text of numbers that may also be one of some codes: ``53-59|N``."""
    return _OR.join([run, *codes])


def is_set(text: str) -> bool:
    """Return whether a cell is a set in braces."""
    return len(text) > 1 and text[0] == "{" and text[-1] == "}"


def members_of(text: str) -> list[str]:
    """Return the members of a published set, as they are written; of another cell the cell."""
    return _split_set(text[1:-1]) if is_set(text) else [text]


def plain_sets(texts: Sequence[str]) -> tuple[np.ndarray, pa.ListArray]:
    """Return which texts are sets in braces without a quoted member, shape (u,), bool, and the members of these."""
    try:
        cells = pa.array(texts, pa.large_string())
    except UnicodeEncodeError:
        # a part of a character: there is no such value, so nothing can be read at once
        return np.zeros(len(texts), bool), pa.array([], pa.list_(pa.large_string()))
    plain = pc.and_not(
        pc.and_(pc.starts_with(cells, "{"), pc.ends_with(cells, "}")), pc.match_substring(cells, '"')
    )
    inside = pc.utf8_slice_codeunits(cells.filter(plain), 1, -1)
    return plain.to_numpy(zero_copy_only=False), pc.split_pattern(inside, _OR)


def coded_parts(text: str) -> tuple[str | None, list[str]]:
    """Return the numbers of ``53-59|N``, None of a set ``{N|R}``, and the codes."""
    if is_set(text):
        return None, members_of(text)
    run, *codes = _split_set(text)
    return run, codes


def coded_cell(text: str) -> tuple[str | None, list[str]]:
    """Return the range of numbers of a cell of a column with codes, and the codes as they are written.

    A code is no number: what is none and stands alone is a code, the empty cell a missing value.
    """
    run, codes = coded_parts(text)
    return (None, [run, *codes]) if run is not None and Range.read(run) is None else (run, codes)


IS_NUMBER = "number"
"""The value of the column beside a column with codes, where there is a number and no code."""


def code_name(name: str) -> str:
    """Return the name of the column beside a column of numbers with codes: which code a cell is, or that it is a number."""
    return f"{name} (code)"


def code_cells(cells: pd.Series) -> pd.Series:
    """Return the column of categories beside a column of numbers with codes, as published cells: ``{number|N}`` of ``53-59|N``."""
    published = PublishedCells.of(cells)
    texts = []
    for text in published.texts:
        run, codes = coded_cell(text)
        texts.append(WHOLE if text == WHOLE else set_text([*([] if run is None else [IS_NUMBER]), *codes]))
    return pd.Series(
        np.array(texts, object)[published.rows], index=cells.index, name=code_name(str(cells.name))
    )


def named_values(text: str) -> tuple[str | None, ...]:
    """Return the values that a published cell of categories names, one or a set; None is a missing one."""
    return tuple(quoted_value(member) if member else None for member in members_of(text))


def _split_set(inside: str) -> list[str]:
    """Split the inside of a published set at the bars that are not in a JSON string."""
    if '"' not in inside:
        return inside.split(_OR)
    members, at, decoder = [], 0, json.JSONDecoder()
    while True:
        if inside[at : at + 1] == '"':
            try:
                _, end = decoder.raw_decode(inside, at)
            except ValueError:
                return [inside]
        else:
            end = inside.find(_OR, at)
            end = len(inside) if end < 0 else end
        members.append(inside[at:end])
        if end >= len(inside):
            return members
        if inside[end] != _OR:
            return [inside]
        at = end + 1


def fits(value: str, text: str | None) -> bool:
    """Return whether a code with hidden positions may stand for a value."""
    if text == WHOLE:
        return True
    return (
        text is not None
        and len(value) == len(text)
        and all(sign in (WHOLE, character) for character, sign in zip(value, text, strict=True))
    )


# ------------------------------------------------------------------------------------------------ columns


def stars(cells: pd.Series) -> np.ndarray:
    """Return which cells of a column read ``*``, shape (n,), bool."""
    if isinstance(cells.dtype, pd.CategoricalDtype):
        whole = np.append(np.array(cells.cat.categories == WHOLE, bool), False)
        return np.asarray(whole[cells.array.codes], bool)
    return (cells == WHOLE).to_numpy(dtype=bool, na_value=False)


def rows_of_stars(frame: pd.DataFrame, names: Sequence[str]) -> np.ndarray:
    """Return in which rows all cells of some columns read ``*``, shape (n,), bool; in none without columns."""
    every = np.full(len(frame), bool(names))
    for name in names:
        if not every.any():
            break
        every &= stars(frame[name])
    return every


@dataclass(frozen=True, eq=False)
class PublishedCells:
    """The cells of a published column: n rows, u distinct texts, each of which is read once.

    Attributes
    ----------
    rows : numpy.ndarray, shape (n,), intp
        For each row its text.
    texts : tuple of (str or None), length u
    """

    rows: np.ndarray
    texts: tuple[Any, ...]

    @classmethod
    def of(cls, column: pd.Series, blank: str | None = "") -> PublishedCells:
        """Read a column as it was published, or as a file has it: texts, numbers, dates.

        Parameters
        ----------
        column : pandas.Series, n rows
        blank : str or None
            The text of a missing cell.
        """
        rows, distinct = pd.factorize(column, use_na_sentinel=False)
        cells = np.asarray(distinct, object)
        texts = (
            cell if isinstance(cell, str) else blank if pd.isna(cell) else value_text(cell) for cell in cells
        )
        return cls(rows, tuple(texts))

    @cached_property
    def hidden(self) -> np.ndarray:
        """Whether each text is ``*`` alone, shape (u,), bool."""
        return np.array([text == WHOLE for text in self.texts], bool)

    @cached_property
    def ranges(self) -> tuple[Range | None, ...]:
        """Each text as a range of numbers or dates, None where it is none."""
        return tuple(None if text is None else Range.read(text) for text in self.texts)

    def count(self, marked: np.ndarray) -> int:
        """Return how many rows have one of the marked texts, shape (u,), bool."""
        return int(marked[self.rows].sum())
