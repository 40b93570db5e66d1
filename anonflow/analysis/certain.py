"""Certain bounds from a release: they hold for all values that its cells may stand for, without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from anonflow.analysis.candidates import CandidateColumn, CandidateTable
from anonflow.analysis.conditions import ColumnCondition, conditions, numbers_among
from anonflow.table.published.published_cells import WHOLE, fits

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
        certain, possible, share = _met_beside_codes(column, condition)
    elif column.values is None:
        met = condition.holds(column.cells)
        return met, met | _any_value(column), met.astype(np.float64)
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
    return certain[column.at], possible[column.at] | _any_value(column), share[column.at]


def _any_value(column: CandidateColumn) -> np.ndarray:
    """Return which rows have a label that any value may be below, shape (n,), bool."""
    return column.cells.ne("").to_numpy(bool) if column.labels else np.zeros(len(column.at), bool)


def _met_beside_codes(
    column: CandidateColumn, condition: ColumnCondition
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the same for each cell of a column of numbers, shape (u,) each: a number and the codes are equal parts of it."""
    certain, possible, share = _met_range(column, condition)
    if not len(column.codes):
        return certain, possible, share
    numbers, codes = column.numbers, column.member[:, ~column.is_number]
    met = codes @ np.array([code in (condition.values or ()) for code in column.codes], np.int64)
    count = codes.sum(axis=1)
    return (
        (certain | ~numbers) & (met == count),
        (possible & numbers) | (met > 0),
        (np.where(numbers, share, 0.0) + met) / (numbers + count),
    )


def _met_range(
    column: CandidateColumn, condition: ColumnCondition
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    low, high = np.asarray(column.low), np.asarray(column.high)
    single = low == high
    step = 1.0 if column.whole_numbers else 0.0
    if condition.values is not None:
        # single numbers: as many as a range of whole numbers has; of others, nothing of its width
        numbers = condition.numbers(column.dates)
        hits = _within(numbers, low, high)
        if step:
            share = _within(numbers[numbers == np.floor(numbers)], low, high) / (high - low + 1)
        else:
            share = np.where(single, hits > 0, 0.0)
        # that a range has whole ends does not prove that its numbers are whole
        return single & (hits > 0), hits > 0, np.asarray(share, np.float64)
    least, most = condition.ends(column.dates)
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
    return condition.holds(pd.Series(column.values, dtype=object, name=column.name))


def share_bounds(candidates: CandidateTable, where: Mapping[str, Any], weights: np.ndarray) -> Bounds:
    """Return the share of rows that meet a condition.

    Raises
    ------
    ParameterError
        If a column is not there, or a condition cannot be read.
    """
    certain, possible = np.ones(candidates.n, bool), np.ones(candidates.n, bool)
    for condition in conditions(where, candidates.all_names):
        all_of, some_of, _ = rows_meeting(candidates[condition.column], condition)
        certain &= all_of
        possible &= some_of
    return np.array([weights @ certain]) / weights.sum(), np.array([weights @ possible]) / weights.sum()


def mean_bounds(candidates: CandidateTable, name: str, weights: np.ndarray) -> Bounds:
    """Return the mean of a column of numbers, of all who have one."""
    least, most = _mean_between(_Numbers.of(candidates[name], weights))
    return np.array([least]), np.array([most])


def quantile_bounds(
    candidates: CandidateTable, name: str, at: Sequence[float], weights: np.ndarray | None = None
) -> Bounds:
    """Return quantiles of a column of numbers, of all who have one.

    Between neighbours as :func:`numpy.quantile` has them; with weights as :func:`~anonflow.analysis.models.weighted_quantiles`.
    """
    numbers = _Numbers.of(candidates[name], np.ones(candidates.n) if weights is None else weights)
    turned = numbers.turned
    if weights is not None:
        pairs = [
            (numbers.least_weighted(quantile), -turned.least_weighted(1 - quantile, last=True))
            for quantile in at
        ]
    else:
        pairs = [(numbers.least_quantile(quantile), -turned.least_quantile(1 - quantile)) for quantile in at]
    return np.array([least for least, _ in pairs]), np.array([most for _, most in pairs])


def crosstab_bounds(
    candidates: CandidateTable,
    rows: str,
    columns: str,
    categories: Mapping[str, Sequence[str]],
    weights: np.ndarray,
) -> Bounds:
    """Return the shares of all pairs of values of two columns, row by row."""
    masks = [_groups(candidates[name], categories[name]) for name in (rows, columns)]
    least, most = ((first.T * weights) @ second for first, second in zip(*masks, strict=True))
    return least.ravel() / weights.sum(), most.ravel() / weights.sum()


def group_mean_bounds(
    candidates: CandidateTable, name: str, by: str, categories: Sequence[str], weights: np.ndarray
) -> Bounds:
    """Return the means of a column of numbers in groups; NaN of a group that no row may be in.

    Notes
    -----
    The least mean of a group has the low ends of all rows that are certainly in it, and of those that may be in it the
    lowest ones, as long as each is below the mean of the others. O(n log n) for each group.
    """
    numbers = _Numbers.of(candidates[name], weights)
    certain, possible = _groups(candidates[by], categories)
    ends = [_mean_between(numbers.within(certain[:, g], possible[:, g])) for g in range(len(categories))]
    return np.array([least for least, _ in ends]), np.array([most for _, most in ends])


def _mean_between(numbers: _Numbers) -> tuple[float, float]:
    return numbers.least_mean(), -numbers.turned.least_mean()


def _groups(column: CandidateColumn, categories: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows have each value for certain, and which may have it, shape (n, values), bool each."""
    masks = [
        rows_meeting(column, ColumnCondition(column.name, values=frozenset([value])))[:2]
        for value in categories
    ]
    certain, possible = zip(*masks, strict=True)
    return np.column_stack(certain), np.column_stack(possible)


@dataclass(frozen=True, eq=False)
class _Numbers:
    """What is known of some rows' numbers.

    Attributes
    ----------
    low, high : numpy.ndarray, shape (r,), float64
        The lowest and the highest number of each row.
    certain : numpy.ndarray, shape (r,), bool
        Whether it has one that counts; else it may have one.
    weights : numpy.ndarray, shape (r,), float64
    """

    low: np.ndarray
    high: np.ndarray
    certain: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, column: CandidateColumn, weights: np.ndarray) -> _Numbers:
        """Return those of all rows of a column; NaN where one is missing."""
        hidden = column.whole[column.at]
        if column.low is None or column.high is None:
            if column.labels:
                hidden = _any_value(column)
                least = np.where(hidden, -np.inf, np.nan)
                return cls(least, -least, ~hidden, weights)
            if column.values is not None and not column.whole.all():
                return cls._of_members(column, weights)
            numbers = None if column.whole.all() else numbers_among(column.cells)
            if numbers is None:  # it is hidden, or text
                hidden, numbers = np.ones(len(hidden), bool), np.zeros(len(hidden))
            ends = np.where(hidden, -np.inf, numbers), np.where(hidden, np.inf, numbers)
            return cls(*ends, ~hidden, weights)
        low, high = column.low, column.high
        if column.unbounded:
            low, high = np.where(column.whole, -np.inf, low), np.where(column.whole, np.inf, high)
        beside = (column.member & ~column.is_number).any(axis=1)
        return cls(low[column.at], high[column.at], ~beside[column.at], weights)

    @classmethod
    def _of_members(cls, column: CandidateColumn, weights: np.ndarray) -> _Numbers:
        """Return those of a column of categories, whose cells are sets of values or hide some: the members that are numbers count."""
        numbers = numbers_among(pd.Series(column.values, dtype=object))
        if numbers is None:  # it is text
            numbers = np.full(column.size, np.nan)
        counts = column.member & ~np.isnan(numbers)
        certain = (counts == column.member).all(axis=1)
        low = np.where(counts, numbers, np.inf).min(axis=1)
        high = np.where(counts, numbers, -np.inf).max(axis=1)
        unknown = column.whole if column.unbounded else np.zeros(len(low), bool)
        if column.patterns is not None:  # a code that is hidden in part may be one that no row shows
            unknown = unknown | np.array([WHOLE in pattern for pattern in column.patterns], bool)
        without = ~counts.any(axis=1)
        low = np.where(unknown, -np.inf, np.where(without, np.nan, low))
        high = np.where(unknown, np.inf, np.where(without, np.nan, high))
        at = column.at
        return cls(low[at], high[at], (certain & ~unknown)[at], weights)

    @property
    def turned(self) -> _Numbers:
        """The same with the opposite sign."""
        return _Numbers(-self.high, -self.low, self.certain, self.weights)

    def within(self, certain: np.ndarray, possible: np.ndarray) -> _Numbers:
        """Return those of a group of rows, some of which may be in it."""
        return _Numbers(
            self.low[possible],
            self.high[possible],
            (self.certain & certain)[possible],
            self.weights[possible],
        )

    def _lowest(self, certain: bool) -> tuple[np.ndarray, np.ndarray]:
        """Return the low ends of those that count, or of those that may count, ascending, and their weights."""
        rows = np.flatnonzero(~np.isnan(self.low) & (self.certain == certain) & (self.weights > 0))
        rows = rows[np.argsort(self.low[rows], kind="stable")]
        return self.low[rows], self.weights[rows]

    def least_mean(self) -> float:
        """Return the least mean: of those that may count the lowest are in it, as long as each is below the mean of the others."""
        (inside, inside_weights), (maybe, others) = self._lowest(True), self._lowest(False)
        total, sums = (np.concatenate([[0.0], np.cumsum(terms)]) for terms in (others, others * maybe))
        total, sums = total + inside_weights.sum(), sums + (inside_weights * inside).sum()
        means = sums[total > 0] / total[total > 0]
        return float(means.min()) if len(means) else float("nan")

    def least_quantile(self, at: float) -> float:
        """Return the least quantile without weights, for every number of the lowest that may count."""
        inside, maybe = (self._lowest(certain)[0] for certain in (True, False))
        if not len(inside) and not len(maybe):
            return float("nan")
        both, _, highest = _merged(inside, maybe)
        extra = np.arange(len(maybe) + 1)[(0 if len(inside) else 1) :]
        place = at * (len(inside) + extra - 1)
        first = np.floor(place).astype(np.int64)
        part = place - first

        def ranked(rank: np.ndarray) -> np.ndarray:
            # up to the highest that counts all are there, above it only those that count for certain
            rest = inside[np.clip(rank - extra, 0, len(inside) - 1)] if len(inside) else both[rank]
            return np.where(rank <= highest, both[rank], rest)

        low = ranked(first)
        high = ranked(np.minimum(first + 1, len(inside) + extra - 1))
        # an infinite neighbour counts only where it has a part
        between = np.where(part > 0, high, 0.0) * part
        return float((low * (1 - part) + np.where(part > 0, between, 0.0)).min())

    def least_weighted(self, at: float, last: bool = False) -> float:
        """Return the least weighted quantile, for every number of the lowest that may count.

        Parameters
        ----------
        at : float
        last : bool
            Whether the quantile is that of numbers that were turned, and so the last of its kind and not the first.
        """
        (inside, inside_weights), (maybe, others) = self._lowest(True), self._lowest(False)
        if not len(inside) and not len(maybe):
            return float("nan")
        both, order, highest = _merged(inside, maybe)
        of_both = np.cumsum(np.concatenate([inside_weights, others])[order])
        extra = np.concatenate([[0.0], np.cumsum(others)])[(0 if len(inside) else 1) :]
        target = at * (inside_weights.sum() + extra)
        slack = 1e-12 * of_both[-1]  # sums that differ by rounding are equal

        def ranks(sums: np.ndarray, place: np.ndarray) -> np.ndarray:
            side = (
                np.searchsorted(sums, place + slack, "right")
                if last
                else np.searchsorted(sums, place - slack)
            )
            return np.minimum(side, len(sums) - 1)

        # up to the highest that counts all are there, above it only those that count for certain
        rank = ranks(of_both, target)
        rest = inside[ranks(np.cumsum(inside_weights), target - extra)] if len(inside) else both[rank]
        return float(np.where(rank <= highest, both[rank], rest).min())


def _merged(inside: np.ndarray, maybe: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return two ascending arrays as one, its order, and the place in it of the last of the first 0, 1, ... of `maybe`.

    Without `inside` of the first 1, 2, ...; -1 is no place.
    """
    both = np.concatenate([inside, maybe])
    order = np.argsort(both, kind="stable")
    places = np.concatenate([[-1], np.argsort(order, kind="stable")[len(inside) :]])
    return both[order], order, places[(0 if len(inside) else 1) :]
