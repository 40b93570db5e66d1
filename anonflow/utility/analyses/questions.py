"""Measures of a regression and of a question that the user defines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from anonflow.analysis.conditions import rows_that_meet
from anonflow.analysis.models import Design
from anonflow.analysis.pooling import combine
from anonflow.errors import ParameterError
from anonflow.table.published.published_cells import stars
from anonflow.utility.analyses.comparison import Comparison


def regression(comparison: Comparison, formula: str) -> dict[str, float]:
    """Return the agreement of the 95% intervals of a regression's coefficients, from originals and from the release.

    The overlap of two intervals is the mean of what share of each lies in the other (Karr and others, 2006), and 0
    where they do not meet. ``coverage``: the share of coefficients whose interval from the release (for the originals)
    has the originals' coefficient. Both times the share of rows that are not suppressed. ``signs``: of the coefficients
    whose interval from the originals is without 0 (the intercept left out), the share with the same sign in the release;
    1 if there are none.

    Raises
    ------
    ParameterError
        If the formula cannot be read, or names columns that are not there.
    """
    from scipy import stats

    design = Design.of(formula, [comparison.original])  # a wrong formula is always an error
    value, variance, df = design.fit(comparison.original)
    used = [name for term in design.terms for name in term]
    if len(comparison.tables) < 2 or not all(map(len, comparison.tables)):
        return {"": 0.0, "coverage": 0.0, "signs": 0.0}
    if any(stars(table[name]).all() for table in comparison.tables for name in (design.outcome, *used)):
        return {"": 0.0, "coverage": 0.0, "signs": 0.0}
    reach = stats.t.ppf(0.975, df) * np.sqrt(variance.to_numpy())
    estimates = []
    for table in comparison.tables:
        try:
            estimates.append(design.fit(table))
        except ParameterError:  # its columns are the same in the release
            return {"": 0.0, "coverage": 0.0, "signs": 0.0}
    # a value of the originals is in no row of the release
    if any(estimate.isna().any() for estimate, _, _ in estimates):
        return {"": 0.0, "coverage": 0.0, "signs": 0.0}
    population = combine(estimates, target="population")
    originals = combine(estimates, target="originals")
    overlap = [
        _overlap(*pair)
        for pair in zip(value - reach, value + reach, population["low"], population["high"], strict=True)
    ]
    slack = 1e-9 * np.maximum(np.abs(value), 1e-12)
    covered = (originals["low"] - slack <= value) & (value <= originals["high"] + slack)
    return {
        "": float(np.mean(overlap)) * comparison.kept,
        "coverage": float(covered.mean()) * comparison.kept,
        "signs": _same_signs(value.to_numpy()[1:], reach[1:], originals["estimate"].to_numpy()[1:]),
    }


def _same_signs(value: np.ndarray, reach: np.ndarray, other: np.ndarray) -> float:
    """Return the share of coefficients with another's sign, of those whose interval ``value`` ± ``reach`` is without 0."""
    has_sign = np.abs(value) > reach
    return float((np.sign(other) == np.sign(value))[has_sign].mean()) if has_sign.any() else 1.0


def _overlap(low: float, high: float, other_low: float, other_high: float) -> float:
    both = min(high, other_high) - max(low, other_low)
    widths = high - low, other_high - other_low
    if both < 0:
        return 0.0
    if min(widths) <= 0:  # a coefficient that is certain
        return 1.0 if max(widths) <= 0 else 0.5
    return (both / widths[0] + both / widths[1]) / 2


def question(
    comparison: Comparison,
    where: Mapping[str, Any] | Callable[..., Any],
    among: Mapping[str, Any] | None = None,
) -> dict[str, float]:
    """Return the error of the answer to the user's own question.

    Parameters
    ----------
    comparison : Comparison
    where : mapping or callable
        A condition: the question is how many people meet it. Or table -> number.
    among : mapping, optional
        Then it is which share of those who meet this one.

    Returns
    -------
    dict
        The error of the mean answer over the tables beside the originals' answer, at most 1, of the rows that are not
        suppressed; suppressed rows count as an error of 1. Counts are first scaled to all rows. ``truth`` and
        ``answer``.

    Raises
    ------
    ParameterError
        If a condition cannot be read, or the callable gives no number.
    """
    ask = _answer(where, among)
    truth = ask(comparison.original)
    tables = [table for table in comparison.tables if len(table)]
    if not tables:
        return {"": 1.0, "truth": truth, "answer": 0.0}
    whole = len(comparison.original)
    counted = not callable(where) and among is None
    answer = float(np.mean([ask(table) * (whole / len(table) if counted else 1.0) for table in tables]))
    error = 0.0 if answer == truth else min(1.0, abs(answer - truth) / abs(truth)) if truth else 1.0
    return {"": comparison.lost + comparison.kept * error, "truth": truth, "answer": answer}


def _answer(
    where: Mapping[str, Any] | Callable[..., Any], among: Mapping[str, Any] | None
) -> Callable[..., float]:
    if callable(where):
        return lambda table: _checked_answer(where(table))

    def count(table: Any) -> float:
        met = rows_that_meet(table, where)
        if among is None:
            return float(met.sum())
        of = rows_that_meet(table, among)
        return float((met & of).sum() / of.sum()) if of.any() else 0.0

    return count


def _checked_answer(answer: Any) -> float:
    if isinstance(answer, bool) or not isinstance(answer, int | float | np.integer | np.floating):
        raise ParameterError("question: the function must give one number for a table")
    if not np.isfinite(answer):
        raise ParameterError("question: the function gave no finite number")
    return float(answer)
