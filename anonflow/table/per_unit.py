"""People with several rows: one row for each, by a recipe for every column, or at most some rows of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from anonflow.errors import DataError, ParameterError
from anonflow.table.schema import did_you_mean

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["OF_NUMBERS", "RECIPES", "Recipe", "capped_rows", "one_row_per_unit"]

Recipe = Literal[
    "first", "last", "min", "max", "mean", "median", "sum", "count", "distinct", "common", "all", "same"
]
"""What may become of a unit's cells of a column."""

RECIPES: tuple[str, ...] = get_args(Recipe)
"""All of them."""

OF_NUMBERS = ("mean", "median", "sum")
"""Recipes that need numbers."""


def one_row_per_unit(
    frame: pd.DataFrame, unit: str, recipes: Mapping[str, str], *, rows: str | None = None
) -> pd.DataFrame:
    """Return one row for each unit, in the order in which units first appear.

    Parameters
    ----------
    frame : pandas.DataFrame
        n rows.
    unit : str
        The column that says whose a row is; it comes first in the result.
    recipes : mapping
        Column -> one of :data:`RECIPES`; other columns are left out. Cells without a value are passed over; ``first`` and
        ``last`` are of the frame's order, of equally common values the first by text is taken, ``all`` joins the different
        values by " + ", sorted by text.
    rows : str, optional
        A column with the number of rows of each unit: others may know it.

    Returns
    -------
    pandas.DataFrame
        O(n log n) for each column.

    Raises
    ------
    DataError
        If a column is missing, a unit blank, or a column's values do not go with its recipe.
    ParameterError
        If a recipe is unknown, or the new column has the name of another.
    """
    import pandas as pd

    label, first = _units(frame, unit)
    for name, recipe in recipes.items():
        if name not in frame.columns:
            raise DataError(
                f"column {str(name)!r}: has a recipe, and is not in the table{did_you_mean(name, list(frame.columns))}"
            )
        if recipe not in RECIPES:
            raise ParameterError(
                f"column {name!r}: unknown recipe {str(recipe)[:40]!r}{did_you_mean(recipe, RECIPES)}"
            )
    if rows is not None and (rows == unit or rows in recipes):
        raise ParameterError(
            f"column {rows!r}: is in the result already; give the number of rows another name"
        )
    columns: dict[str, Any] = {unit: frame[unit].iloc[first].array}
    for name, recipe in recipes.items():
        if name != unit:
            columns[name] = _column(frame[name], recipe, label, len(first))
    if rows is not None:
        columns[rows] = np.bincount(label, minlength=len(first))
    return pd.DataFrame(columns)


def capped_rows(frame: pd.DataFrame, unit: str, most: int, *, seed: int | None = None) -> pd.DataFrame:
    """At most some rows of each unit, drawn at random: a bound on what one person contributes.

    Parameters
    ----------
    frame : pandas.DataFrame
    unit : str
        The column that says whose a row is.
    most : int
        At least 1.
    seed : int, optional
        Makes the same choice again.

    Returns
    -------
    pandas.DataFrame
        In the frame's order. O(n log n).

    Raises
    ------
    DataError
        If the column is missing, or blank in some row.
    ParameterError
        If `most` is none.
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise ParameterError("a cap is a number of rows of at least 1")
    label, _ = _units(frame, unit)
    drawn = np.random.default_rng(seed).permutation(len(frame))
    order = np.lexsort([drawn, label])
    start = np.concatenate([[0], np.cumsum(np.bincount(label))[:-1]])
    rank = np.empty(len(frame), np.int64)
    rank[order] = np.arange(len(frame)) - start[label[order]]
    return frame.loc[rank < most]


def _units(frame: pd.DataFrame, unit: str) -> tuple[np.ndarray, np.ndarray]:
    """Return labels of units in the order in which they first appear, and where that is."""
    import pandas as pd

    if unit not in frame.columns:
        raise DataError(
            f"column {str(unit)!r}: is to be the unit, and is not in the table{did_you_mean(unit, list(frame.columns))}"
        )
    label = np.asarray(pd.factorize(frame[unit])[0], np.int64)
    blank = int(np.count_nonzero(label < 0))
    if blank:
        raise DataError(
            f"column {unit!r}: {blank:,} rows have no unit; every row needs one: fill them in, or leave these rows out"
        )
    return label, np.unique(label, return_index=True)[1]


def _column(cells: pd.Series, recipe: str, label: np.ndarray, units: int) -> Any:
    import pandas as pd

    name = str(cells.name)
    if recipe in OF_NUMBERS and not pd.api.types.is_numeric_dtype(cells.dtype):
        raise DataError(f"column {name!r}: the recipe {recipe} needs numbers")
    groups = cells.reset_index(drop=True).groupby(label)
    if recipe in ("first", "last", "min", "max", *OF_NUMBERS):
        try:
            combined = getattr(groups, recipe)()
        except TypeError:
            raise DataError(
                f"column {name!r}: its values have no order; take another recipe than {recipe}"
            ) from None
        return combined.reindex(range(units)).array
    if recipe == "count":
        return groups.count().reindex(range(units)).to_numpy()
    distinct = groups.nunique().reindex(range(units))
    if recipe == "distinct":
        return distinct.to_numpy()
    if recipe == "same":
        several = int((distinct > 1).sum())
        if several:
            raise DataError(
                f"column {name!r}: {several:,} units have several values, and the recipe is same; take another one"
            )
        return groups.first().reindex(range(units)).array
    if recipe == "all":
        return groups.agg(_joined).reindex(range(units)).array
    return groups.agg(_common).reindex(range(units)).array


def _joined(cells: pd.Series) -> Any:
    """Return the different values, sorted by text."""
    return " + ".join(sorted({str(cell) for cell in cells.dropna()})) or None


def _common(cells: pd.Series) -> Any:
    """Return the commonest value; the first by text of equally common ones."""
    times = cells.value_counts()
    if not len(times):
        return None
    best = times.index[times == times.iloc[0]]
    return min(best, key=str)
