"""Columns that a release would publish in the open although their values are about single people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from anonflow.table.domain import missing_cells
from anonflow.table.identification.value_signs import filled, form, is_dates, is_numeric, rarity

if TYPE_CHECKING:
    from anonflow.table.frame import Table


def exposed_columns(table: Table, k: int) -> dict[str, str]:
    """Return the columns that are published in the open and say too much about single people, each with the reason.

    Parameters
    ----------
    table : Table
    k : int
        Of an insensitive column, a state that fewer people have tells them apart: a value among blanks, or one of two values.

    Returns
    -------
    dict
        Sensitive and insensitive columns -> counts and words of this package, never a value. O(n) per column.
    """
    exposed = {}
    for name in table.other_columns:
        role, cells = table.schema[name].role, table.frame[name]
        values = filled(cells)
        if role == "weight" or not len(values):
            continue
        numeric = is_numeric(values)
        reason = form(values, numeric, numeric and is_dates(values))
        if reason is None and not numeric:
            reason = rarity(values, len(cells))
        if reason is None and role == "insensitive":
            people = _fewest(cells, table.unit)
            if people is not None and people < k:
                reason = f"fewer than k = {k} people have its value, or its blank"
        if reason is not None:
            exposed[name] = reason
    return exposed


def _fewest(cells: pd.Series, unit: np.ndarray | None) -> int | None:
    """Return how many people have a value in a column with blanks, or the rarer of two states; None of other columns."""
    missing = missing_cells(cells)
    values = cells[~missing]
    same = ~missing
    same[same] = (values == values.iloc[0]).to_numpy(dtype=bool)
    rest = int(cells[~missing & ~same].nunique())
    if not missing.any():
        states = [same, ~same] if rest == 1 else []
    else:
        states = [~missing] if rest else [~missing, missing]
    person = np.arange(len(cells)) if unit is None else unit
    return min((len(np.unique(person[state])) for state in states), default=None)
