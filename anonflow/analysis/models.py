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
from scipy import sparse

from anonflow.analysis.conditions import numbers_among, numbers_of, rows_that_meet, text_of
from anonflow.errors import DataError, ParameterError
from anonflow.hierarchy.wording import plural
from anonflow.table.schema import did_you_mean

Weights = str | Sequence[float] | np.ndarray | None
"""The name of a column, or a number for each row; None for equal weights."""

Estimate = tuple[Any, Any, Any]
"""Numbers, their sampling variances (NaN where one row does not tell), and the degrees of freedom: of all, or of each."""


def weights_of(table: pd.DataFrame, weights: Weights) -> np.ndarray | None:
    """Return the weights of a table's rows, shape (n,), float64; None without weights.

    Raises
    ------
    ParameterError
        If there is no such column, or they are not one number of at least 0 for each row, with one above 0.
    """
    if weights is None:
        return None
    values = numbers_of(_existing_column(table, weights)) if isinstance(weights, str) else np.asarray(weights)
    if values is None or values.dtype.kind not in "iuf" or values.shape != (len(table),):
        raise ParameterError("weights: give the name of a column of numbers, or a number for each row")
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all() or (numbers < 0).any() or not numbers.any():
        raise ParameterError("weights: must be numbers of at least 0, none missing and one above 0")
    return numbers


def mean(table: pd.DataFrame, column: str, weights: Weights = None) -> Estimate:
    """Return the mean of a column, its variance, n - 1.

    With weights the variance is the linearized one of a ratio of two totals, for rows that are drawn independently with
    unequal chances.
    """
    numbers, row_weights = _numbers_and_weights(table, column, weights)
    return *_weighted_mean(numbers, row_weights), len(numbers) - 1.0


def _weighted_mean(numbers: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Return a weighted mean, and its variance (NaN of a single number)."""
    n, total = len(numbers), weights.sum()
    middle = float((weights * numbers).sum() / total) if total else np.nan
    squares = ((weights * (numbers - middle)) ** 2).sum()
    return middle, float(squares / total**2 * n / (n - 1)) if n > 1 and total else np.nan


def quantiles(table: pd.DataFrame, column: str, at: Sequence[float], weights: Weights = None) -> Estimate:
    """Return quantiles of a column, named ``quantile 0.5``, with Woodruff's (1952) variance: that of their ranks, read back.

    With weights a quantile is the smallest number up to which the numbers have that part of the weights.

    Raises
    ------
    ParameterError
        If a quantile is not between 0 and 1, there is no such column, or it has no numbers.
    """
    at = [float(quantile) for quantile in at]
    if not at or any(not 0 < quantile < 1 for quantile in at):
        raise ParameterError("quantiles: give numbers between 0 and 1, such as [0.25, 0.5, 0.75]")
    numbers, row_weights = _numbers_and_weights(table, column, weights)
    order = np.argsort(numbers, kind="stable")
    numbers, row_weights = numbers[order], row_weights[order]
    if weights is None:
        middle = np.quantile(numbers, at)
        ranks = np.multiply(at, np.subtract(1, at)) / len(numbers)
    else:
        middle = weighted_quantiles(numbers, row_weights, at)
        ranks = np.array(
            [_weighted_mean((numbers <= point).astype(np.float64), row_weights)[1] for point in middle],
            np.float64,
        )
    reach = 1.96 * np.sqrt(ranks)
    ends = [np.clip(np.add(at, sign * reach), 0, 1) for sign in (-1, 1)]
    low, high = (
        np.quantile(numbers, end) if weights is None else weighted_quantiles(numbers, row_weights, end)
        for end in ends
    )
    names = [f"quantile {quantile:g}" for quantile in at]
    return pd.Series(middle, names), pd.Series(((high - low) / 3.92) ** 2, names), len(numbers) - 1.0


def weighted_quantiles(ascending: np.ndarray, weights: np.ndarray, at: Any) -> np.ndarray:
    """Return the smallest numbers up to which sorted numbers have a part of their weights, shape of `at`."""
    sums = np.cumsum(weights)
    # sums that differ by rounding are equal
    place = np.searchsorted(sums * (1 + 1e-12), np.multiply(at, sums[-1]), side="left")
    return np.asarray(ascending[np.minimum(place, len(ascending) - 1)])


def share(
    table: pd.DataFrame,
    where: Mapping[str, Any] | Callable[[pd.DataFrame], Any],
    weights: Weights = None,
) -> Estimate:
    """Return the share of rows that meet a condition."""
    met = rows_that_meet(table, where).astype(np.float64)
    row_weights = weights_of(table, weights)
    return *_weighted_mean(met, np.ones(len(met)) if row_weights is None else row_weights), len(met) - 1.0


def crosstab(
    table: pd.DataFrame,
    rows: str,
    columns: str,
    categories: Mapping[str, Sequence[str]],
    weights: Weights = None,
) -> Estimate:
    """Return the shares of all pairs of known values, under an index of pairs."""
    n = len(table)
    codes = []
    for name in (rows, columns):
        place = {value: code for code, value in enumerate(categories[name])}
        codes.append(texts(table[name]).map(place).to_numpy(np.int64))
    sizes = [len(categories[name]) for name in (rows, columns)]
    row_weights = weights_of(table, weights)
    row_weights = np.ones(n) if row_weights is None else row_weights
    row_weights = row_weights / row_weights.sum()
    cell = codes[0] * sizes[1] + codes[1]
    p, inside = (
        np.bincount(cell, summands, minlength=sizes[0] * sizes[1])
        for summands in (row_weights, row_weights**2)
    )
    # of the cell's rows each is 1 - p from the mean, of the others p
    squares = inside * (1 - p) ** 2 + ((row_weights**2).sum() - inside) * p**2
    index = pd.MultiIndex.from_product([categories[rows], categories[columns]], names=[rows, columns])
    variance = squares * n / (n - 1) if n > 1 else np.full(len(p), np.nan)
    return pd.Series(p, index), pd.Series(variance, index), n - 1.0


def group_means(
    table: pd.DataFrame, column: str, by: str, categories: list[str], weights: Weights = None
) -> Estimate:
    """Return the means of a column in groups, their variances and degrees of freedom; NaN where a group has no row, or one."""
    numbers, row_weights = _numbers_and_weights(table, column, weights, every=True)
    group = texts(_existing_column(table, by)).to_numpy()
    present = ~np.isnan(numbers)
    group_rows = [present & (group == value) for value in categories]
    pairs = [_weighted_mean(numbers[rows], row_weights[rows]) for rows in group_rows]
    index = pd.Index(categories, name=by)
    means, variances = (pd.Series([pair[at] for pair in pairs], index, dtype=np.float64) for at in (0, 1))
    size = pd.Series([rows.sum() for rows in group_rows], index, dtype=np.float64)
    return means, variances, size - 1.0


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
            values_of[name] |= set(texts(_existing_column(table, name)).unique())
    return {name: sorted(values) for name, values in values_of.items()}


def texts(cells: pd.Series) -> pd.Series:
    """Return a column as text; what is missing is empty."""
    at, distinct = pd.factorize(cells, use_na_sentinel=False)
    words = np.array([text_of(value) for value in distinct], object)
    return pd.Series(words[at], name=cells.name)


def _existing_column(table: pd.DataFrame, name: str) -> pd.Series:
    if name not in table.columns:
        raise ParameterError(
            f"there is no column {name!r}{did_you_mean(str(name), tuple(map(str, table.columns)))}"
        )
    return table[name]


def _numbers_and_weights(
    table: pd.DataFrame, name: str, weights: Weights, every: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of a column and their weights, of all rows or of those that have one.

    Raises
    ------
    ParameterError
        If there is no such column, or it has no numbers.
    DataError
        If all are missing.
    """
    numbers = numbers_among(_existing_column(table, name))
    if numbers is None:
        raise ParameterError(f"column {name!r} has no numbers; take shares or a cross table")
    row_weights = weights_of(table, weights)
    row_weights = np.ones(len(numbers)) if row_weights is None else row_weights
    present = ~np.isnan(numbers)
    if not row_weights[present].any():
        raise DataError(f"column {name!r} has no number at all")
    return (numbers, row_weights) if every else (numbers[present], row_weights[present])


# --- regression -----------------------------------------------------------------------------------------


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
        categories = {}
        for name in used:
            if numbers_of(tables[0][name]) is None:
                counts = _counts([table[name] for table in tables])
                every = sorted(counts)
                if len(every) > MOST_LEVELS:
                    raise ParameterError(
                        f"formula: column {name!r} has {len(every)} values; a regression takes at most {MOST_LEVELS} of a category"
                    )
                most = max(every, key=lambda value: counts[value])
                categories[name] = [most, *(value for value in every if value != most)]
        values = levels(tables, [outcome])[outcome]
        numeric = numbers_of(tables[0][outcome]) is not None
        if kind is None:
            kind = "logistic" if len(values) == 2 else "linear"
        if kind not in ("linear", "logistic"):
            raise ParameterError("regression: kind is one of linear, logistic")
        if kind == "logistic" and len(values) != 2:
            raise ParameterError(
                f"formula: {outcome!r} has {plural(len(values), 'value')}; a logistic regression needs two"
            )
        if kind == "linear" and not numeric:
            raise ParameterError(
                f"formula: {outcome!r} has no numbers and {plural(len(values), 'value')}; take an outcome of numbers, or of two values"
            )
        return cls(outcome, terms, categories, kind, values[1] if kind == "logistic" else None)

    def matrix(self, table: pd.DataFrame) -> tuple[np.ndarray, sparse.csr_matrix, list[str]]:
        """Return outcome (n,), regressors (n, p), and their names; a constant comes first. NaN where a number is missing.

        Sparse, since each category is 1 in one column at most.
        """
        n = len(table)
        places, values, names = [np.zeros(n, np.int64)], [np.ones(n)], ["constant"]
        for term in self.terms:
            place, value = np.zeros(n, np.int64), np.ones(n)
            levels = [
                [f"{name}={level}" for level in self.known[name][1:]] if name in self.known else [name]
                for name in term
            ]
            for name, of_name in zip(term, levels, strict=True):
                if name in self.known:
                    number = {level: at for at, level in enumerate(self.known[name])}
                    code = texts(table[name]).map(number).to_numpy(np.float64) - 1
                    value = value * (code >= 0)  # the first value has no column, nor has another table's
                    place = place * len(of_name) + np.maximum(np.nan_to_num(code, nan=-1), 0).astype(np.int64)
                else:
                    value = value * np.asarray(numbers_of(table[name]))
                    place = place * len(of_name)
            places.append(place + len(names))
            values.append(value)
            names.extend(":".join(choice) for choice in itertools.product(*levels))
        if self.kind == "logistic":
            outcome = (texts(table[self.outcome]) == self.positive).to_numpy(np.float64)
        else:
            outcome = np.asarray(numbers_of(table[self.outcome]))
        rows = np.tile(np.arange(n), len(values))
        matrix = sparse.csr_matrix(
            (np.concatenate(values), (rows, np.concatenate(places))), shape=(n, len(names))
        )
        matrix.eliminate_zeros()
        return outcome, matrix, names

    def fit(self, table: pd.DataFrame, weights: Weights = None) -> Estimate:
        """Return coefficients and their variances: least squares, or maximum likelihood of a logit; NaN of a value without a row.

        With weights the variances are those of a survey whose rows are drawn independently with unequal chances
        (linearized).

        Raises
        ------
        ParameterError
            If the coefficients cannot be told apart in this table, or weights are not as :func:`weights_of` takes them.

        Notes
        -----
        O(n t^2 + p^3) for t terms and p coefficients, in each of about 10 steps of a logit.
        """
        outcome, matrix, names = self.matrix(table)
        row_weights = weights_of(table, weights)
        present = ~(np.isnan(outcome) | np.isnan(matrix.sum(axis=1)).A1)
        outcome, matrix = outcome[present], matrix[present]
        seen = matrix.getnnz(axis=0) > 0
        matrix = matrix[:, seen]
        row_weights = (
            np.ones(len(outcome))
            if row_weights is None
            else row_weights[present] / row_weights[present].mean()
        )
        scale = np.maximum(np.sqrt(matrix.multiply(matrix).sum(axis=0).A1), 1e-300)
        matrix = sparse.csr_matrix(matrix.multiply(1 / scale))
        freedom = len(outcome) - matrix.shape[1]
        if freedom < 1 or np.linalg.eigvalsh(_products(matrix, row_weights))[0] < SAME:
            raise ParameterError(
                "formula: two of its columns contain the same information, or there are fewer rows than coefficients; leave out a column"
            )
        step = _least_squares if self.kind == "linear" else _logit
        value, inverse, rest = step(outcome, matrix, row_weights)
        if weights is not None:
            spread = _products(matrix, (row_weights * rest) ** 2) * (len(outcome) / (len(outcome) - 1))
            inverse = inverse @ spread @ inverse
        elif self.kind == "linear":
            inverse = inverse * (rest @ rest / freedom)
        values, variances = np.full((2, len(names)), np.nan)
        values[seen], variances[seen] = value / scale, np.diag(inverse) / scale**2
        return pd.Series(values, names), pd.Series(variances, names), float(freedom)


def _products(matrix: sparse.csr_matrix, weights: np.ndarray) -> np.ndarray:
    """Return the weighted sums of products of each two columns, shape (p, p)."""
    return np.asarray((matrix.T @ sparse.diags(weights) @ matrix).toarray())


SAME = 1e-11
"""Columns of a regression, each of length 1, contain the same information if their products' least eigenvalue is below this."""


def _least_squares(
    outcome: np.ndarray, matrix: sparse.csr_matrix, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return coefficients, the inverse of the matrix of products, and residuals."""
    inverse = np.linalg.inv(_products(matrix, weights))
    value = inverse @ (matrix.T @ (weights * outcome))
    # once more with the residuals, which rounding has left
    value = value + inverse @ (matrix.T @ (weights * (outcome - matrix @ value)))
    return value, inverse, outcome - matrix @ value


def _logit(
    outcome: np.ndarray, matrix: sparse.csr_matrix, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the same of a logit, by Newton's steps until the deviance stays the same."""
    value, before = np.zeros(matrix.shape[1]), np.inf
    for _ in range(100):
        line = matrix @ value
        chance = 1 / (1 + np.exp(-np.clip(line, -500, 500)))
        information = weights * np.maximum(chance * (1 - chance), 1e-10)  # where an outcome is certain
        inverse = np.linalg.inv(_products(matrix, information))
        deviance = 2 * (weights * (np.logaddexp(0, line) - outcome * line)).sum()
        # as R's glm decides it: relative, but for deviances near 0
        if abs(before - deviance) < 1e-9 * (abs(deviance) + 0.1):
            break
        before = deviance
        value = value + inverse @ (matrix.T @ (weights * (outcome - chance)))
    return value, inverse, outcome - chance


def _counts(columns: Sequence[pd.Series]) -> Counter[str]:
    """Return how often each text occurs in several columns."""
    counts: Counter[str] = Counter()
    for cells in columns:
        counts.update({str(text): int(count) for text, count in texts(cells).value_counts().items()})
    return counts


MOST_LEVELS = 100
"""Values of a category in a regression."""


def _terms(formula: Any, columns: Sequence[str]) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """Return outcome and terms. Names of columns may hold any characters: the longest that fits is taken."""
    if not isinstance(formula, str) or formula.count("~") != 1:
        raise ParameterError("a formula is text such as 'income ~ age + education'")
    left, right = formula.split("~")
    outcome = _column_name(left.strip(), columns)
    terms: list[tuple[str, ...]] = []
    for text in _split_outside_names(right.strip(), "+", columns):
        factors = [_column_name(factor, columns) for factor in _split_outside_names(text, ":", columns)]
        if outcome in factors:
            raise ParameterError(f"formula: {outcome!r} stands on both sides")
        if len(set(factors)) < len(factors) or tuple(factors) in terms:
            raise ParameterError("formula: a term has a column twice, or is listed twice")
        terms.append(tuple(factors))
    return outcome, tuple(terms)


def _split_outside_names(text: str, mark: str, columns: Sequence[str]) -> list[str]:
    """Return the parts between marks; a mark inside a column's name separates nothing."""
    names = "|".join(re.escape(name) for name in sorted(columns, key=len, reverse=True) if mark in name)
    pattern = f"(?:{names}|[^{re.escape(mark)}])+" if names else f"[^{re.escape(mark)}]+"
    parts = [part.strip() for part in re.findall(pattern, text)]
    if not parts or not all(parts) or text.endswith(mark) or text.startswith(mark):
        raise ParameterError(
            "formula: a column is missing between the signs; write 'income ~ age + education'"
        )
    return parts


def _column_name(text: str, columns: Sequence[str]) -> str:
    if text not in columns:
        raise ParameterError(f"formula: there is no column {text!r}{did_you_mean(text, tuple(columns))}")
    return text
