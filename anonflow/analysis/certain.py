"""Certain bounds from a release: they hold for all values that its cells may stand for, without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anonflow.analysis.candidates import CandidateColumn, CandidateTable
from anonflow.analysis.conditions import ColumnCondition, conditions, numbers_of
from anonflow.table.published.published_cells import WHOLE, fits, read_float

__all__ = [
    "crosstab_bounds",
    "group_mean_bounds",
    "mean_bounds",
    "quantile_bounds",
    "rows_meeting",
    "share_bounds",
    "values_meeting",
]

Bounds = tuple[np.ndarray, np.ndarray]
"""The least and the greatest that the originals may have, shape (c,) each; infinite where nothing limits it."""


def rows_meeting(
    column: CandidateColumn, condition: ColumnCondition
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which rows meet a condition for certain and possibly, and the share of their values that do, shape (n,) each.

    A hidden cell may stand for a value that no cell names, unless the domain is published.

    Raises
    ------
    ParameterError
        If the condition is a range and the column has no numbers.
    """
    n = len(column.at)
    if column.whole.all():
        return np.zeros(n, bool), np.ones(n, bool), np.full(n, np.nan)
    if column.numeric:
        certain, possible, share = _met_range(column, condition)
    elif column.values is None:
        met = condition.holds(column.cells)
        return met, met, met.astype(np.float64)
    else:
        inside = column.member & values_meeting(column, condition)
        share = inside.sum(axis=1) / column.width
        certain, possible = share == 1, share > 0
        if column.patterns is not None:
            # a code that is hidden in part may be one that no row shows
            hidden = np.array([WHOLE in pattern for pattern in column.patterns], bool)
            certain &= ~hidden
            possible |= np.array(
                [any(fits(value, pattern) for value in condition.values or ()) for pattern in column.patterns]
            )
    if column.unbounded:
        certain, possible = certain & ~column.whole, possible | column.whole
    return certain[column.at], possible[column.at], share[column.at]


def _met_range(
    column: CandidateColumn, condition: ColumnCondition
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    low, high = np.asarray(column.low), np.asarray(column.high)
    single = low == high
    step = 1.0 if column.whole_numbers else 0.0
    if condition.values is not None:
        # single numbers: as many as a range of whole numbers has; of others, nothing of its width
        numbers = np.unique([number for number in map(read_float, condition.values) if number is not None])
        hits = _within(numbers, low, high)
        if step:
            share = _within(numbers[numbers == np.floor(numbers)], low, high) / (high - low + 1)
        else:
            share = np.where(single, hits > 0, 0.0)
        # that a range has whole ends does not prove that its numbers are whole
        return single & (hits > 0), hits > 0, np.asarray(share, np.float64)
    least = -np.inf if condition.low is None else condition.low
    most = np.inf if condition.high is None else condition.high
    if step:
        least, most = np.ceil(least), np.floor(most)
    both = np.maximum(np.minimum(high, most) - np.maximum(low, least) + step, 0.0)
    share = np.divide(both, high - low + step, out=np.zeros(len(low)), where=high - low + step > 0)
    inside = (low >= least) & (high <= most)
    touches = (low <= most) & (high >= least)
    return inside, touches, np.where(inside, 1.0, np.where(touches, share, 0.0))


def _within(numbers: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return how many of some numbers, ascending, lie in each range, shape (u,)."""
    return np.searchsorted(numbers, high, side="right") - np.searchsorted(numbers, low, side="left")


def values_meeting(column: CandidateColumn, condition: ColumnCondition) -> np.ndarray:
    """Return which candidate values of a column of categories meet a condition, shape (D,), bool.

    Raises
    ------
    ParameterError
        If the condition is a range.
    """
    import pandas as pd

    return condition.holds(pd.Series(column.values, dtype=object, name=column.name))


def share_bounds(candidates: CandidateTable, where: Mapping[str, Any]) -> Bounds:
    """Return the share of rows that meet a condition.

    Raises
    ------
    ParameterError
        If a column is not there, or a condition cannot be read.
    """
    certain, possible = np.ones(candidates.n, bool), np.ones(candidates.n, bool)
    for condition in conditions(where, candidates.names):
        all_of, some_of, _ = rows_meeting(candidates[condition.column], condition)
        certain &= all_of
        possible &= some_of
    return np.array([certain.mean()]), np.array([possible.mean()])


def mean_bounds(candidates: CandidateTable, name: str) -> Bounds:
    """Return the mean of a column of numbers."""
    low, high = _ends(candidates[name])
    known = ~np.isnan(low)
    return np.array([low[known].mean()]), np.array([high[known].mean()])


def quantile_bounds(candidates: CandidateTable, name: str, at: Sequence[float]) -> Bounds:
    """Return quantiles of a column of numbers, between neighbours as :func:`numpy.quantile` has them."""
    low, high = _ends(candidates[name])
    known = ~np.isnan(low)
    return _quantiles(np.sort(low[known]), at), _quantiles(np.sort(high[known]), at)


def crosstab_bounds(
    candidates: CandidateTable, rows: str, columns: str, known: Mapping[str, Sequence[str]]
) -> Bounds:
    """Return the shares of all pairs of values of two columns, row by row."""
    masks = [_groups(candidates[name], known[name]) for name in (rows, columns)]
    least, most = (first.T.astype(np.float64) @ second for first, second in zip(*masks, strict=True))
    return least.ravel() / candidates.n, most.ravel() / candidates.n


def group_mean_bounds(candidates: CandidateTable, name: str, by: str, known: Sequence[str]) -> Bounds:
    """Return the means of a column of numbers in groups; NaN of a group that no row may be in.

    Notes
    -----
    The least mean of a group has the low ends of all rows that are certainly in it, and of those that may be in it the
    lowest ones, as long as each is below the mean of the others. O(n log n) for each group.
    """
    low, high = _ends(candidates[name])
    numbers = ~np.isnan(low)
    certain, possible = _groups(candidates[by], known)
    least, most = np.empty(len(known)), np.empty(len(known))
    for group in range(len(known)):
        inside = certain[:, group] & numbers
        maybe = possible[:, group] & ~certain[:, group] & numbers
        least[group] = _least_mean(low[inside], low[maybe])
        most[group] = -_least_mean(-high[inside], -high[maybe])
    return least, most


def _least_mean(inside: np.ndarray, maybe: np.ndarray) -> float:
    """Return the least mean of numbers, all of some and any of others (one at least)."""
    ordered = np.sort(maybe)
    count = len(inside) + np.arange(len(ordered) + 1)
    sums = inside.sum() + np.concatenate([[0.0], np.cumsum(ordered)])
    means = sums[count > 0] / count[count > 0]
    return float(means.min()) if len(means) else float("nan")


def _groups(column: CandidateColumn, known: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows have each value for certain, and which may have it, shape (n, values), bool each."""
    masks = [
        rows_meeting(column, ColumnCondition(column.name, values=frozenset([value])))[:2] for value in known
    ]
    certain, possible = zip(*masks, strict=True)
    return np.column_stack(certain), np.column_stack(possible)


def _ends(column: CandidateColumn) -> Bounds:
    """Return the lowest and the highest number of each row, shape (n,) each; NaN where one is missing."""
    numbers = None if column.whole.all() else numbers_of(column.cells)
    if numbers is not None:
        return numbers, numbers
    if column.low is None or column.high is None:  # it is hidden, or text
        return np.full(len(column.at), -np.inf), np.full(len(column.at), np.inf)
    low, high = column.low, column.high
    if column.unbounded:
        low, high = np.where(column.whole, -np.inf, low), np.where(column.whole, np.inf, high)
    return low[column.at], high[column.at]


def _quantiles(ascending: np.ndarray, at: Sequence[float]) -> np.ndarray:
    place = np.multiply(at, len(ascending) - 1)
    first = np.floor(place).astype(np.int64)
    last = np.minimum(first + 1, len(ascending) - 1)
    part = place - first
    # an infinite neighbour counts only where it has a part
    between = np.where(part > 0, ascending[last], 0.0) * part
    return np.asarray(ascending[first] * (1 - part) + np.where(part > 0, between, 0.0))
