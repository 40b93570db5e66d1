"""Pooling what several plausible tables say, with the uncertainty that comes from the release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from anonflow.errors import ParameterError

Target = Literal["originals", "population"]
"""What an estimate is about: the originals of the release, or the population that they are a sample of."""

MOSTLY_ASSUMPTION = 0.5
"""An estimate with a larger fraction of missing information rests mostly on the model."""


def combine(
    estimates: Sequence[Any],
    variances: Sequence[Any] | None = None,
    *,
    target: Target = "originals",
    rows: int | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Pool the estimates of m plausible tables.

    Parameters
    ----------
    estimates : sequence
        One for each table: a number, a Series or mapping of numbers, an array, a pair (estimate, variance) of these, a
        triple with the degrees of freedom too, or a fitted model of statsmodels (its ``params``, ``bse`` and
        ``df_resid``). NaN where a table has no answer, such as a group without rows: the others are pooled.
    variances : sequence, optional
        The sampling variance of each, the square of its usual standard error, where `estimates` do not have them.
    target : {"originals", "population"}
        What is estimated: the answer that the originals would have given, or that of their population.
    rows : int, optional
        Rows of each table minus parameters: the degrees of freedom without missing information. Those of the estimates
        without it, and infinite where they have none.
    confidence : float
        Of the interval.

    Returns
    -------
    pandas.DataFrame
        A row for each number: ``estimate``; ``error``, the square root of the total variance T; ``low`` and ``high``,
        the interval; ``missing``, the fraction of missing information, unknown without variances; ``note``, "mostly
        assumption" where it is above 0.5, or where only some tables have an answer (then look at certain bounds:
        :func:`anonflow.count`). What fewer than two tables answer has no interval (NaN).

    Raises
    ------
    ParameterError
        If there are fewer than two estimates, they differ in what they estimate, the target is unknown, rows are not
        positive, or the population is asked for without variances.

    Notes
    -----
    With the mean B of squares of deviations between tables (over m - 1) and the mean U of the variances: for the
    originals T = (1 + 1/m) B with m - 1 degrees of freedom; for the population T = U + (1 + 1/m) B with those of
    Barnard and Rubin (1999). The fraction of missing information is Rubin's (1987),
    ``(r + 2 / (df + 3)) / (r + 1)`` with ``r = (1 + 1/m) B / U``, for both targets. It is about the model: ranges are
    not coarsened at random, and how often the intervals cover the truth is measured in experiments.

    Examples
    --------
    >>> combine([1.0, 2.0, 3.0], [0.5, 0.5, 0.5], target="population")[["estimate", "error"]].round(3)
       estimate  error
    0       2.0  1.354
    """
    if target not in get_args(Target):
        raise ParameterError(f"combine: target is one of {', '.join(get_args(Target))}")
    if not 0 < confidence < 1:
        raise ParameterError("combine: confidence is between 0 and 1")
    if rows is not None and not rows > 0:
        raise ParameterError("combine: rows, less parameters, must be more than 0")
    if len(estimates) < 2:
        raise ParameterError("combine: needs the estimates of at least two plausible tables")
    if variances is not None and len(variances) != len(estimates):
        raise ParameterError("combine: needs a variance for each estimate")
    answers = [_answer(estimate) for estimate in estimates]
    values = [_series(value) for value, _, _ in answers]
    spreads = [
        _series(variance) for variance in (variances if variances is not None else [v for _, v, _ in answers])
    ]
    names = values[0].index
    if any(list(value.index) != list(names) for value in values):
        raise ParameterError(
            "combine: the estimates of the tables have different names; give the same names for each table"
        )
    has_variances = all(len(spread) for spread in spreads)
    if target == "population" and not has_variances:
        raise ParameterError(
            "combine: the population needs the variance of each estimate; give pairs, or variances="
        )
    if has_variances and any(list(spread.index) != list(names) for spread in spreads):
        raise ParameterError("combine: variances and estimates have different names")
    table = _stacked(values)
    within = _mean_of_known(_stacked(spreads)) if has_variances else None
    freedom = np.full(len(names), np.inf if rows is None else float(rows))
    freedoms = [np.broadcast_to(_series(df).to_numpy(), len(names)) for *_, df in answers if df is not None]
    if rows is None and len(freedoms) == len(answers):
        freedom = _mean_of_known(np.array(freedoms))
    return _pooled(names, table, within, target, freedom, confidence)


def _stacked(rows: Sequence[pd.Series]) -> np.ndarray:
    return np.array([row.to_numpy(np.float64) for row in rows])


def _mean_of_known(table: np.ndarray) -> np.ndarray:
    """Return the mean of each column without its NaN; NaN where there is nothing else."""
    has_number = ~np.isnan(table)
    count = has_number.sum(axis=0)
    total = np.where(has_number, table, 0.0).sum(axis=0)
    return np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)


def _pooled(
    names: pd.Index,
    table: np.ndarray,
    within: np.ndarray | None,
    target: Target,
    rows: np.ndarray,
    confidence: float,
) -> pd.DataFrame:
    from scipy import stats

    m = (~np.isnan(table)).sum(axis=0)  # the tables that have an answer
    middle = _mean_of_known(table)
    least, most = (np.where(np.isnan(table), far, table) for far in (np.inf, -np.inf))
    same = least.min(axis=0) == most.max(axis=0)
    middle = np.where(same, least.min(axis=0), middle)
    squares = np.where(np.isnan(table), 0.0, (table - middle) ** 2).sum(axis=0)
    between = np.divide(squares, m - 1, out=np.full(len(m), np.nan), where=m > 1) * (1 + 1 / np.maximum(m, 1))
    missing = np.full(table.shape[1], np.nan)
    df = np.maximum(m - 1.0, 1.0)
    total = between
    if within is not None:
        both = within + between
        share = np.divide(between, both, out=np.zeros_like(both), where=both > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            old = np.where(share > 0, (m - 1) / share**2, np.inf)
            observed = np.where(np.isinf(rows), np.inf, (rows + 1) / (rows + 3) * rows * (1 - share))
            joint = 1 / (1 / old + 1 / observed)
            ratio = np.where(between == 0, 0.0, between / within)
            missing = np.where(np.isinf(ratio), 1.0, (ratio + 2 / (joint + 3)) / (ratio + 1))
        missing = np.where((between == 0) & ~np.isnan(within), 0.0, missing)
        if target == "population":
            total, df = both, joint
    error = np.sqrt(total)
    reach = stats.t.ppf((1 + confidence) / 2, np.maximum(df, 1e-3)) * error
    reach = np.where(error == 0, 0.0, reach)
    return pd.DataFrame(
        {
            "estimate": middle,
            "error": error,
            "low": middle - reach,
            "high": middle + reach,
            "missing": missing,
            "note": np.where((missing > MOSTLY_ASSUMPTION) | (m < len(table)), "mostly assumption", ""),
        },
        index=names,
    )


def _answer(estimate: Any) -> tuple[Any, Any, Any]:
    """Return estimate, variance if there is one, degrees of freedom if they are known."""
    if isinstance(estimate, tuple) and len(estimate) in (2, 3):
        return estimate[0], estimate[1], estimate[2] if len(estimate) == 3 else None
    if hasattr(estimate, "params") and hasattr(estimate, "bse"):
        df = getattr(estimate, "df_resid", None)
        return estimate.params, _series(estimate.bse) ** 2, None if df is None else float(df)
    return estimate, None, None


def _series(value: Any) -> pd.Series:
    if value is None:
        return pd.Series([], dtype=np.float64)
    if isinstance(value, pd.DataFrame):
        value = value.stack()
    if isinstance(value, pd.Series):
        return value.astype(np.float64)
    if isinstance(value, Mapping):
        return pd.Series(dict(value), dtype=np.float64)
    try:
        return pd.Series(np.atleast_1d(np.asarray(value, np.float64)).ravel())
    except (TypeError, ValueError):
        raise ParameterError(
            "combine: an estimate is a number, a Series of numbers, a pair with its variance, or a fitted model"
        ) from None
