"""Analyses of one complete table, each with its sampling variance."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from anonflow.analysis.conditions import numbers_among, numbers_of, rows_that_meet, text_of
from anonflow.errors import AnonflowError, DataError, ParameterError
from anonflow.table.schema import did_you_mean

__all__ = [
    "Design",
    "crosstab",
    "group_means",
    "levels",
    "mean",
    "quantiles",
    "share",
    "statsmodels",
    "texts",
]

Estimate = tuple[Any, Any, Any]
"""Numbers, their sampling variances (NaN where one row does not tell), and the degrees of freedom: of all, or of each."""


def mean(table: pd.DataFrame, column: str) -> Estimate:
    """Return the mean of a column, its variance, n - 1."""
    numbers = _numbers(table, column)
    n = len(numbers)
    return float(numbers.mean()), float(numbers.var(ddof=1) / n) if n > 1 else np.nan, n - 1.0


def quantiles(table: pd.DataFrame, column: str, at: Sequence[float]) -> Estimate:
    """Return quantiles of a column, named ``quantile 0.5``, with Woodruff's (1952) variance: that of their ranks, read back.

    Raises
    ------
    ParameterError
        If a quantile is not between 0 and 1, there is no such column, or it has no numbers.
    """
    at = [float(each) for each in at]
    if not at or any(not 0 < each < 1 for each in at):
        raise ParameterError("quantiles: give numbers between 0 and 1, such as [0.25, 0.5, 0.75]")
    numbers = np.sort(_numbers(table, column))
    n = len(numbers)
    middle = np.quantile(numbers, at)
    reach = 1.96 * np.sqrt(np.multiply(at, np.subtract(1, at)) / n)
    low = np.quantile(numbers, np.maximum(np.subtract(at, reach), 0))
    high = np.quantile(numbers, np.minimum(np.add(at, reach), 1))
    names = [f"quantile {each:g}" for each in at]
    return pd.Series(middle, names), pd.Series(((high - low) / 3.92) ** 2, names), n - 1.0


def share(table: pd.DataFrame, where: Mapping[str, Any] | Callable[[pd.DataFrame], Any]) -> Estimate:
    """Return the share of rows that meet a condition."""
    met = rows_that_meet(table, where)
    n = len(met)
    p = float(met.mean())
    return p, p * (1 - p) / n, n - 1.0


def crosstab(table: pd.DataFrame, rows: str, columns: str, known: Mapping[str, Sequence[str]]) -> Estimate:
    """Return the shares of all pairs of known values, under an index of pairs."""
    n = len(table)
    codes = []
    for name in (rows, columns):
        place = {value: code for code, value in enumerate(known[name])}
        codes.append(texts(table[name]).map(place).to_numpy(np.int64))
    sizes = [len(known[name]) for name in (rows, columns)]
    p = np.bincount(codes[0] * sizes[1] + codes[1], minlength=sizes[0] * sizes[1]) / n
    index = pd.MultiIndex.from_product([known[rows], known[columns]], names=[rows, columns])
    return pd.Series(p, index), pd.Series(p * (1 - p) / n, index), n - 1.0


def group_means(table: pd.DataFrame, column: str, by: str, known: list[str]) -> Estimate:
    """Return the means of a column in groups, their variances and degrees of freedom; NaN where a group has no row, or one."""
    numbers = numbers_among(_column(table, column))
    if numbers is None:
        raise _no_numbers(column)
    groups = pd.Series(numbers).groupby(texts(_column(table, by)).to_numpy())
    index = pd.Index(known, name=by)
    size = groups.count().reindex(known).set_axis(index)
    means = groups.mean().reindex(known).set_axis(index)
    return means, groups.var().reindex(known).set_axis(index) / size, size - 1.0


def levels(tables: Iterable[pd.DataFrame], names: Sequence[str]) -> dict[str, list[str]]:
    """Return the values that some columns have in any of several tables, as text, sorted.

    Raises
    ------
    ParameterError
        If a column is not there.
    """
    values_of: dict[str, set[str]] = {name: set() for name in names}
    for table in tables:
        for name in names:
            values_of[name] |= set(texts(_column(table, name)).unique())
    return {name: sorted(values) for name, values in values_of.items()}


def texts(cells: pd.Series) -> pd.Series:
    """Return a column as text; what is missing is empty."""
    at, distinct = pd.factorize(cells, use_na_sentinel=False)
    words = np.array([text_of(value) for value in distinct], object)
    return pd.Series(words[at], name=cells.name)


def _column(table: pd.DataFrame, name: str) -> pd.Series:
    if name not in table.columns:
        raise ParameterError(
            f"there is no column {name!r}{did_you_mean(str(name), tuple(map(str, table.columns)))}"
        )
    return table[name]


def _no_numbers(name: str) -> ParameterError:
    return ParameterError(f"column {name!r} has no numbers; take shares or a cross table")


def _numbers(table: pd.DataFrame, name: str) -> np.ndarray:
    numbers = numbers_among(_column(table, name))
    if numbers is None:
        raise _no_numbers(name)
    numbers = numbers[~np.isnan(numbers)]
    if not len(numbers):
        raise DataError(f"column {name!r} has no number at all")
    return numbers


# --- regression -----------------------------------------------------------------------------------------


def statsmodels() -> Any:
    """Return the package statsmodels, which the base install does not have.

    Raises
    ------
    AnonflowError
        If it is not installed.
    """
    try:
        import statsmodels.api as api
    except ImportError:
        raise AnonflowError(
            "this needs statsmodels, which the base install leaves out: pip install 'anonflow[utility]'"
        ) from None
    return api


@dataclass(frozen=True, eq=False)
class Design:
    """A regression that is the same for all tables: its terms, and the values that get a column each.

    Attributes
    ----------
    outcome : str
    terms : tuple of tuple of str
        Columns whose product is a term.
    known : dict
        Category column -> its values, the most frequent first, which gets no column.
    kind : {"linear", "logistic"}
    positive : str or None
        Of a logistic regression of text: the value that counts as 1, the second by text.
    """

    outcome: str
    terms: tuple[tuple[str, ...], ...]
    known: dict[str, list[str]]
    kind: Literal["linear", "logistic"]
    positive: str | None = None

    @classmethod
    def of(
        cls,
        formula: str,
        tables: Sequence[pd.DataFrame],
        kind: Literal["linear", "logistic"] | None = None,
    ) -> Design:
        """Read a formula for some tables.

        Parameters
        ----------
        formula : str
            ``income ~ age + education + age:education``; column names as they are. It is no program.
        tables : sequence of pandas.DataFrame
            With the same columns.
        kind : {"linear", "logistic"}, optional

        Raises
        ------
        ParameterError
            If it cannot be read, names columns that are not there, or the outcome does not go with the kind.
        """
        outcome, terms = _terms(formula, [str(name) for name in tables[0].columns])
        used = dict.fromkeys(name for term in terms for name in term)
        known = {}
        for name in used:
            if numbers_of(tables[0][name]) is None:
                counts = Counter(value for table in tables for value in texts(table[name]).tolist())
                every = sorted(counts)
                if len(every) > MOST_LEVELS:
                    raise ParameterError(
                        f"formula: column {name!r} has {len(every)} values; a regression takes at most {MOST_LEVELS} of a category"
                    )
                most = max(every, key=lambda value: counts[value])
                known[name] = [most, *(value for value in every if value != most)]
        values = levels(tables, [outcome])[outcome]
        numeric = numbers_of(tables[0][outcome]) is not None
        if kind is None:
            kind = "logistic" if len(values) == 2 else "linear"
        if kind not in ("linear", "logistic"):
            raise ParameterError("regression: kind is one of linear, logistic")
        if kind == "logistic" and len(values) != 2:
            raise ParameterError(
                f"formula: {outcome!r} has {len(values)} values; a logistic regression needs two"
            )
        if kind == "linear" and not numeric:
            raise ParameterError(
                f"formula: {outcome!r} has no numbers and {len(values)} values; take an outcome of numbers, or of two values"
            )
        return cls(outcome, terms, known, kind, values[1] if kind == "logistic" else None)

    def matrix(self, table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray, list[str]]:
        """Return outcome (n,), regressors (n, p), and their names; a constant comes first."""
        n = len(table)
        columns, names = [np.ones(n)], ["constant"]
        for term in self.terms:
            for choice in itertools.product(*(self._levels(name) for name in term)):
                product = np.ones(n)
                for name, level in zip(term, choice, strict=True):
                    product = product * self._part(table, name, level)
                columns.append(product)
                names.append(
                    ":".join(
                        name if level is None else f"{name}={level}"
                        for name, level in zip(term, choice, strict=True)
                    )
                )
        if self.kind == "logistic":
            outcome = (texts(table[self.outcome]) == self.positive).to_numpy(np.float64)
        else:
            outcome = np.asarray(numbers_of(table[self.outcome]))
        matrix = np.column_stack(columns)
        kept = ~(np.isnan(outcome) | np.isnan(matrix).any(axis=1))
        return outcome[kept], matrix[kept], names

    def _levels(self, name: str) -> Sequence[str | None]:
        return self.known[name][1:] if name in self.known else [None]

    def _part(self, table: pd.DataFrame, name: str, level: str | None) -> np.ndarray:
        if level is None:
            return np.asarray(numbers_of(table[name]))
        return (texts(table[name]) == level).to_numpy(np.float64)

    def fit(self, table: pd.DataFrame) -> Estimate:
        """Return coefficients and their variances: ordinary least squares, or maximum likelihood of a logit.

        Raises
        ------
        ParameterError
            If the coefficients cannot be told apart in this table.
        AnonflowError
            If statsmodels is not installed.
        """
        import warnings

        api = statsmodels()
        outcome, matrix, names = self.matrix(table)
        scale = np.maximum(np.abs(matrix).max(axis=0, initial=0.0), 1e-12)
        if len(outcome) <= len(names) or np.linalg.matrix_rank(matrix / scale) < len(names):
            raise ParameterError(
                "formula: two of its columns contain the same information, or a value has no row; leave out a column, or unite rare values"
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if self.kind == "linear":
                fitted = api.OLS(outcome, matrix / scale).fit()
            else:
                fitted = api.GLM(outcome, matrix / scale, family=api.families.Binomial()).fit()
        return (
            pd.Series(np.asarray(fitted.params) / scale, names),
            pd.Series((np.asarray(fitted.bse) / scale) ** 2, names),
            float(fitted.df_resid),
        )


MOST_LEVELS = 100
"""Values of a category in a regression."""


def _terms(formula: Any, columns: Sequence[str]) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """Return outcome and terms. Names of columns may hold any characters: the longest that fits is taken."""
    if not isinstance(formula, str) or formula.count("~") != 1:
        raise ParameterError("a formula is text such as 'income ~ age + education'")
    left, right = formula.split("~")
    outcome = _name(left.strip(), columns)
    terms: list[tuple[str, ...]] = []
    for text in _split(right.strip(), "+", columns):
        factors = [_name(each, columns) for each in _split(text, ":", columns)]
        if outcome in factors:
            raise ParameterError(f"formula: {outcome!r} stands on both sides")
        if len(set(factors)) < len(factors) or tuple(factors) in terms:
            raise ParameterError("formula: a term has a column twice, or is listed twice")
        terms.append(tuple(factors))
    return outcome, tuple(terms)


def _split(text: str, mark: str, columns: Sequence[str]) -> list[str]:
    """Return the parts between marks; a mark inside a column's name separates nothing."""
    names = "|".join(re.escape(name) for name in sorted(columns, key=len, reverse=True) if mark in name)
    pattern = f"(?:{names}|[^{re.escape(mark)}])+" if names else f"[^{re.escape(mark)}]+"
    parts = [part.strip() for part in re.findall(pattern, text)]
    if not parts or not all(parts) or text.endswith(mark) or text.startswith(mark):
        raise ParameterError(
            "formula: a column is missing between the signs; write 'income ~ age + education'"
        )
    return parts


def _name(text: str, columns: Sequence[str]) -> str:
    if text not in columns:
        raise ParameterError(f"formula: there is no column {text!r}{did_you_mean(text, tuple(columns))}")
    return text
