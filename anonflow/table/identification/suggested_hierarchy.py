"""A hierarchy to start from: intervals that suit numbers, positions or prefixes of codes, else no inner node."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

from anonflow.errors import HierarchyError
from anonflow.hierarchy import Hierarchy
from anonflow.hierarchy.grouping import Grouping
from anonflow.option import plain_number
from anonflow.table.identification.code_signs import code_entry, code_name, code_values

CALENDAR = ("month", "quarter", "year")
"""The levels of dates to start from."""

NESTED = 5_000
"""Nodes of a tree that is written into the flow."""


def suggested_hierarchy(values: list[str], column: str = "") -> dict[str, Any]:
    """Return a hierarchy to start from, for distinct values of a column that is to have one: intervals, positions, prefixes, else no inner node.

    Raises
    ------
    HierarchyError
        If there are too many values to write down.
    """
    if code_name(column, values) or code_values(column, values):
        coded = code_entry(column, values, missing=False)
        if coded["kind"] in ("hierarchy", "positions"):
            return dict(coded.get("hierarchy", {"positions": {"hide": "right"}}))
    if are_dates(values):
        return {"calendar": list(CALENDAR)}
    if values and all(map(is_number, values)):
        numbers = [float(value) for value in values]
        step, levels = steps_over(min(numbers), max(numbers))
        return {"intervals": {"step": plain_number(step), "levels": levels}}
    if (
        len({len(value) for value in values}) == 1
        and len(values[0]) > 1
        and not any("*" in v for v in values)
    ):
        return {"positions": {"hide": "right"}}
    if len(values) > NESTED:
        raise HierarchyError(
            f"{len(values):,} values are too many for a tree by hand; keep the kind, or upload a hierarchy on Protect"
        )
    return Grouping.flat(values).spec()


def steps_over(low: float, high: float) -> tuple[float, int]:
    """Return a round width of which some twenty cover a range, and how many doublings cover it whole."""
    wide = max(high - low, 1.0)
    power = 10.0 ** math.floor(math.log10(wide / 16))
    step = next(power * m for m in (1, 2, 5, 10) if wide / (power * m) <= 20)
    step = max(step, 1.0) if float(low).is_integer() and float(high).is_integer() else step
    levels = max(1, min(6, math.ceil(math.log2(max(wide / step, 1.0)))))
    return float(step), levels


def are_dates(values: list[str]) -> bool:
    """Return whether all values are dates, some of them with a day."""
    if any(len(value) >= len("2020-01-31") for value in values):
        with suppress(HierarchyError):
            Hierarchy.from_calendar(values, CALENDAR)
            return True
    return False


def is_number(text: str) -> bool:
    """Return whether a text is a finite number."""
    try:
        # Python reads 1_000 as a number, files do not
        return math.isfinite(float(text)) and "_" not in text
    except ValueError:
        return False
