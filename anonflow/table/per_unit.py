"""People with several rows: one row for each, by a recipe for every column, or at most some rows of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from anonflow.errors import DataError, ParameterError
from anonflow.hierarchy.wording import plural
from anonflow.option import check_whole
from anonflow.table.forms.numbers import numbers_of
from anonflow.table.forms.text_columns import text_array
from anonflow.table.schema import did_you_mean

Recipe = Literal[
    "first", "last", "min", "max", "mean", "median", "sum", "count", "distinct", "common", "all", "same"
]
"""The recipes that combine a unit's cells of a column."""

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
        The column with the unit of a row; it comes first in the result.
    recipes : mapping
        Column -> one of :data:`RECIPES`; other columns are left out. Cells without a value are ignored; ``first`` and
        ``last`` are of the frame's order, of equally common values the first by text is taken, ``all`` joins the different
        values by " + ", sorted by text. Texts that are all numbers, as those of a CSV file, are compared, added and averaged
        as numbers; the smallest and the largest stay as they are written.
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
    check_recipes(list(frame.columns), unit, recipes, rows)
    label = first_labels(frame[unit], unit)
    first = np.unique(label, return_index=True)[1]
    columns: dict[str, Any] = {unit: frame[unit].iloc[first].array}
    for name, recipe in recipes.items():
        if name == unit:
            continue
        cells = _Cells(frame[name], label, len(first))
        columns[name] = cells.combined(recipe)
        several = int((cells.distinct() > 1).sum()) if recipe == "same" else 0
        if several:
            raise DataError(
                f"column {name!r}: {plural(several, 'unit', 'have')} several values, and the recipe is same; take another one"
            )
    if rows is not None:
        columns[rows] = np.bincount(label, minlength=len(first))
    return pd.DataFrame(columns)


def check_recipes(
    names: Sequence[Any], unit: str, recipes: Mapping[str, str], rows: str | None = None
) -> None:
    """Refuse unknown recipes and columns.

    Parameters
    ----------
    names : sequence
        Of the frame's columns.
    unit, recipes, rows
        As :func:`one_row_per_unit` takes them.

    Raises
    ------
    DataError
        If a column is missing.
    ParameterError
        If a recipe is unknown, or the new column has the name of another.
    """
    check_unit_column(names, unit)
    for name, recipe in recipes.items():
        if name not in names:
            raise DataError(
                f"column {str(name)!r}: has a recipe, and is not in the table{did_you_mean(name, list(names))}"
            )
        if recipe not in RECIPES:
            raise ParameterError(
                f"column {name!r}: unknown recipe {str(recipe)[:40]!r}{did_you_mean(recipe, RECIPES)}"
            )
    if rows is not None and (rows == unit or rows in recipes):
        raise ParameterError(
            f"column {rows!r}: is in the result already; give the number of rows another name"
        )


def _number_type(cells: pd.Series) -> str | None:
    """Return the number type of a column's texts: ``int64``, ``float64``, or None if they are not numbers."""
    if pd.api.types.is_numeric_dtype(cells.dtype) or pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return None
    if not len(cells):
        return "int64"
    present = cells[cells.notna()]
    if not len(present):
        return "float64"
    if not all(isinstance(value, str) for value in present.unique()):
        return None
    try:
        values, dates = numbers_of(present, str(cells.name))
    except DataError:
        return None
    if dates is not None:
        return None
    return "int64" if len(present) == len(cells) and values.dtype == np.int64 else "float64"


def capped_rows(frame: pd.DataFrame, unit: str, most: int, *, seed: int | None = None) -> pd.DataFrame:
    """Return at most some rows of each unit, drawn at random: a bound on the contribution of one person.

    Parameters
    ----------
    frame : pandas.DataFrame
    unit : str
        The column with the unit of a row.
    most : int
        At least 1.
    seed : int, optional
        The same seed makes the same choice.

    Returns
    -------
    pandas.DataFrame
        In the frame's order. O(n log n).

    Raises
    ------
    DataError
        If the column is missing, or blank in some row.
    ParameterError
        If `most` is not a whole number of at least 1.
    """
    check_unit_column(list(frame.columns), unit)
    check_whole(most, 1, "a cap is a number of rows of at least 1")
    label = first_labels(frame[unit], unit)
    drawn = np.random.default_rng(seed).permutation(len(label))
    order = np.lexsort([drawn, label])
    start = np.concatenate([[0], np.cumsum(np.bincount(label))[:-1]])
    rank = np.empty(len(label), np.int64)
    rank[order] = np.arange(len(label)) - start[label[order]]
    return frame.loc[rank < most]


def check_unit_column(names: Sequence[Any], unit: str) -> None:
    """See that the column that says whose a row is, is there.

    Raises
    ------
    DataError
        If it is not.
    """
    if unit not in names:
        raise DataError(
            f"column {str(unit)!r}: is to be the unit, and is not in the table{did_you_mean(unit, list(names))}"
        )


def first_labels(cells: Any, unit: str) -> np.ndarray:
    """Return the unit of each row, labels 0.. in the order in which units first appear, shape (n,), int64.

    Raises
    ------
    DataError
        If a unit is blank.
    """
    label = np.asarray(pd.factorize(cells)[0], np.int64)
    blank = int(np.count_nonzero(label < 0))
    if blank:
        raise DataError(
            f"column {unit!r}: {plural(blank, 'row', 'have')} no unit; every row needs one: fill them in, or leave these rows out"
        )
    return label


class _Cells:
    """The cells of a column, by units.

    Parameters
    ----------
    cells : pandas.Series, n cells
    label : numpy.ndarray, shape (n,), int64
    units : int
    """

    def __init__(self, cells: pd.Series, label: np.ndarray, units: int) -> None:
        self._cells = cells.reset_index(drop=True)
        self._label = label
        self._units = units
        self._present = np.flatnonzero(self._cells.notna().to_numpy())
        self._numbers = None
        numbers = _number_type(cells)  # as which texts are read
        if numbers is not None:
            read = np.full(len(cells), np.nan) if numbers == "float64" else np.zeros(len(cells), np.int64)
            if len(self._present):
                read[self._present] = numbers_of(self._cells.iloc[self._present], str(cells.name))[0]
            self._numbers = pd.Series(read, name=cells.name)

    def combined(self, recipe: str) -> Any:
        """Return a cell for each unit, as an array of the column's type where cells are chosen."""
        if recipe in ("first", "last", "same", "common"):
            return self._at(getattr(self, f"_{recipe}")())
        if recipe in ("min", "max") and self._numbers is not None:
            return self._at(self._extreme(self._numbers, largest=recipe == "max"))
        if recipe == "count":
            return np.bincount(self._label[self._present], minlength=self._units)
        if recipe == "distinct":
            return self.distinct()
        if recipe == "all":
            return self._all()
        cells, name = self._cells, str(self._cells.name)
        if recipe in OF_NUMBERS:
            cells = cells if self._numbers is None else self._numbers
            if not pd.api.types.is_numeric_dtype(cells.dtype):
                raise DataError(f"column {name!r}: the recipe {recipe} needs numbers")
        label = self._label
        if recipe in ("min", "max"):  # before version 3, pandas compares a text with a missing one
            cells, label = cells.iloc[self._present], label[self._present]
        try:
            combined = getattr(cells.groupby(label), recipe)()
        except TypeError:
            raise DataError(
                f"column {name!r}: its values have no order; take another recipe than {recipe}"
            ) from None
        return combined.reindex(range(self._units)).array

    def distinct(self) -> np.ndarray:
        """Return how many values each unit has, shape (units,), int64."""
        pairs = self._pairs()
        return np.bincount(pairs.unit, minlength=self._units)

    def _at(self, positions: np.ndarray) -> Any:
        """Return the cells at some positions; a missing one at -1."""
        return self._cells.array.take(positions, allow_fill=bool((positions < 0).any()))

    def _first(self) -> np.ndarray:
        return self._latest(self._present[::-1])

    def _last(self) -> np.ndarray:
        return self._latest(self._present)

    def _same(self) -> np.ndarray:
        return self._first()

    def _latest(self, order: np.ndarray) -> np.ndarray:
        """Return for each unit the last of its positions in an order, -1 without one."""
        positions = np.full(self._units, -1)
        positions[self._label[order]] = order
        return positions

    def _extreme(self, numbers: pd.Series, largest: bool) -> np.ndarray:
        """Return where the smallest or largest number of each unit first is."""
        number = numbers.to_numpy()[self._present]
        order = np.lexsort((self._present, -number if largest else number))
        return self._latest(self._present[order[::-1]])

    def _common(self) -> np.ndarray:
        """Return where each unit's commonest value first is; the first by text of equally common ones."""
        pairs = self._pairs()
        order = np.lexsort((pairs.rank, -pairs.times, pairs.unit))
        positions = np.full(self._units, -1)
        positions[pairs.unit[order[::-1]]] = pairs.position[order[::-1]]
        return positions

    def _all(self) -> Any:
        """Return the different values as one text, sorted."""
        pairs = self._pairs()
        order = np.lexsort((pairs.rank, pairs.unit))
        texts = pairs.text[order]
        ends = np.cumsum(np.bincount(pairs.unit, minlength=self._units)).tolist()
        joined = (
            " + ".join(dict.fromkeys(texts[start:end].tolist())) or None
            for start, end in pairwise([0, *ends])
        )
        return text_array(joined)

    def _pairs(self) -> _Pairs:
        """Return each unit's different values."""
        codes, values = pd.factorize(self._cells)
        texts = np.array([*(str(value) for value in values), ""], object)[:-1]
        # equal texts have one rank: 1 and "1" are two values
        rank = pd.factorize(texts, sort=True)[0]
        at = self._present
        value_count = max(len(values), 1)
        pair, position, times = np.unique(
            self._label[at] * value_count + codes[at], return_index=True, return_counts=True
        )
        value = pair % value_count
        return _Pairs(pair // value_count, rank[value], texts[value], times, at[position])


@dataclass(frozen=True, eq=False)
class _Pairs:
    """A unit and one of its values, each pair once.

    Attributes
    ----------
    unit : numpy.ndarray, shape (pairs,), int64
        The unit.
    rank : numpy.ndarray, shape (pairs,), int64
        The value's position among all by text.
    times : numpy.ndarray, shape (pairs,), int64
        How often the unit has it.
    position : numpy.ndarray, shape (pairs,), int64
        Where first.
    text : numpy.ndarray, shape (pairs,), object
    """

    unit: np.ndarray
    rank: np.ndarray
    text: np.ndarray
    times: np.ndarray
    position: np.ndarray
