"""Parts of the calendar: the period that a day lies in, its label, and the hierarchy of days under periods."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from anonflow.errors import HierarchyError
from anonflow.hierarchy.sources import ROOT, Forest, from_rows
from anonflow.hierarchy.wording import plural, verb_of

NESTED_UNITS = ("day", "month", "quarter", "half", "year", "5-years", "10-years")
"""Periods of which each lies in one of the next."""

UNITS = (*NESTED_UNITS, "week", "weekday")
"""Periods of a hierarchy; a week is one of ISO 8601, and lies in no month; a weekday is 1 for Monday to 7."""

_MONTHS = {"month": 1, "quarter": 3, "half": 6, "year": 12, "5-years": 60, "10-years": 120}
_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ].*)?")
_PARTIAL = re.compile(r"[0-9]{4}(?:-(?:0[1-9]|1[0-2]))?")


def is_partial(text: str) -> bool:
    """Return whether a text is a year, or a year and a month: ``1984``, ``1984-07``."""
    return _PARTIAL.fullmatch(text) is not None


def partial_leaf(text: str) -> str:
    """Return the leaf of a date of which the day, or the month, is not known; it is published as the period above it at least."""
    return f"{text}-??" if len(text) == 7 else f"{text}-??-??"


def periods(days: np.ndarray, unit: str) -> np.ndarray:
    """Return the number of the period that each day lies in.

    Parameters
    ----------
    days : numpy.ndarray, shape (n,), datetime64[D]
    unit : str
        Of `UNITS`.

    Returns
    -------
    numpy.ndarray, shape (n,), int64
        Ascending with time, but for weekdays.
    """
    number = days.astype("datetime64[D]").astype(np.int64)
    if unit == "day":
        return number
    if unit == "week":
        return (number + 3) // 7  # time begins on a Thursday
    if unit == "weekday":
        return (number + 3) % 7 + 1
    months = days.astype("datetime64[M]").astype(np.int64) + 1970 * 12
    return months // _MONTHS[unit]


def period_labels(days: np.ndarray, unit: str) -> list[str]:
    """Return the label of the period that each day lies in.

    Parameters
    ----------
    days : numpy.ndarray, shape (n,), datetime64[D]
    unit : str
        Labels are `2021-02-15` (day), `2021-02` (month), `2021-Q1`, `2021-H1`, `2021` (year), `2020-2024`, `2020-2029`,
        `2021-W07`, and 1 (weekday, a Monday).
    """
    if unit in ("day", "month", "year"):
        return [str(text) for text in np.datetime_as_string(days.astype(f"datetime64[{unit[0].upper()}]"))]
    number = periods(days, unit)
    if unit == "weekday":
        return [str(day) for day in number.tolist()]
    if unit == "week":
        thursday = (number * 7).astype("datetime64[D]")  # the day that says which year a week belongs to
        year = periods(thursday, "year")
        first = (thursday.astype("datetime64[Y]")).astype("datetime64[D]")
        week = (thursday - first).astype(np.int64) // 7 + 1
        return [f"{y:04d}-W{w:02d}" for y, w in zip(year.tolist(), week.tolist(), strict=True)]
    if unit in ("quarter", "half"):
        parts, letter = (4, "Q") if unit == "quarter" else (2, "H")
        return [f"{at // parts:04d}-{letter}{at % parts + 1}" for at in number.tolist()]
    years = _MONTHS[unit] // 12
    return [f"{at * years:04d}-{(at + 1) * years - 1:04d}" for at in number.tolist()]


def from_calendar(values: Iterable[str], levels: Sequence[str], root: str = ROOT) -> Forest:
    """Return the tree of dates under the periods that they lie in.

    Parameters
    ----------
    values : iterable of str
        ISO dates or times; a year or a year and a month lies in the lowest period that holds all of it, under the leaf of
        :func:`partial_leaf`. A blank text is a leaf right under the root.
    levels : sequence of str
        Of `UNITS`, from the lowest; each period must lie in one of the next.
    root : str
        Label of the root.

    Raises
    ------
    HierarchyError
        If values are no dates or there are none, or the levels do not nest.
    """
    _check_levels(levels)
    distinct = set(values)
    blank = "" in distinct
    distinct.discard("")
    partial = list(filter(is_partial, distinct))
    whole = list(distinct.difference(partial))
    dates = [_DAY.fullmatch(text) for text in whole]
    try:
        days = np.array([match[1] for match in dates if match is not None], "datetime64[D]")
        wrong = dates.count(None)
    except ValueError:
        days, wrong = np.array([], "datetime64[D]"), 1
    if wrong:
        raise HierarchyError(
            f"calendar: {plural(wrong, 'value')} that {verb_of(wrong, 'are')} no date; write dates as 2020-01-31, or "
            "say how they are written (dates: d.m.y)"
        )
    if not distinct:
        raise HierarchyError("calendar: no dates")
    names = [period_labels(days, unit) for unit in levels]
    # a day is its own label; 7 may be a weekday and no value
    rows = [[text, *path] for text, *path in zip(whole, *names, strict=True)]
    rows += [_partial_row(text, levels) for text in partial]

    def lines() -> Iterator[tuple[int, list[str]]]:
        # the leaf of a partial date comes first: a coded column publishes it as the period that begins there
        order = sorted(rows, key=lambda row: [(not label.endswith("-??"), label) for label in reversed(row)])
        for line, row in enumerate(order, start=1):
            yield line, [*row, root]
        if blank:
            yield len(rows) + 1, [""] * (len(levels) + 1) + [root]

    return from_rows(lines(), "calendar")


def _partial_row(text: str, levels: Sequence[str]) -> list[str]:
    """Return the path of a year or a month, from its leaf: periods that are shorter are that leaf."""
    day = np.array([text], "datetime64[M]" if len(text) == 7 else "datetime64[Y]").astype("datetime64[D]")
    least = NESTED_UNITS.index("month" if len(text) == 7 else "year")
    leaf = partial_leaf(text)
    row = [leaf]
    for unit in levels:
        holds = unit in NESTED_UNITS and NESTED_UNITS.index(unit) >= least
        row.append(period_labels(day, unit)[0] if holds else leaf)
    return row


def _check_levels(levels: Sequence[str]) -> None:
    unit_names = ", ".join(UNITS)
    if isinstance(levels, str) or not isinstance(levels, Sequence) or not levels:
        raise HierarchyError(f"calendar: name the levels as a list of {unit_names}")
    if any(unit not in UNITS for unit in levels):
        raise HierarchyError(f"calendar: a level is none of {unit_names}")
    places = [NESTED_UNITS.index(unit) if unit in NESTED_UNITS else -1 for unit in levels]
    above = places[1:] if places[0] == 0 else places
    if above != [-1] and (-1 in places or places != sorted(set(places))):
        raise HierarchyError(
            f"calendar: each level must lie in the next: some of {', '.join(NESTED_UNITS)} in this order, or week or weekday alone"
        )
