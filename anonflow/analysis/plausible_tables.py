"""Plausible tables: complete tables that a release may stand for, drawn from the release alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from typing import Any, Literal

import numpy as np
import pandas as pd

from anonflow.analysis import certain, models
from anonflow.analysis.candidates import CandidateColumn, CandidateTable
from anonflow.analysis.mixture import Mixture, Model
from anonflow.analysis.models import Weights
from anonflow.analysis.pooling import Target, combine
from anonflow.option import check_whole
from anonflow.release.tables import write_table
from anonflow.table import Schema
from anonflow.table.published.published_cells import IS_NUMBER, code_name

NOTICE = (
    "A plausible table: drawn by a model from a published release. No row describes a real person, and single rows "
    "mean nothing; pool the results of all tables of the set."
)
"""The notice in every plausible table."""

NUMBER = "plausible table (no real person)"
"""The column of a file of plausible tables with the number of a row's table."""

RENEWED = 8
"""Rounds of EM with which the parameters of each table are fitted anew, from those of the release."""


@dataclass(frozen=True, eq=False)
class PlausibleTables:
    """m complete tables that a release may stand for.

    Attributes
    ----------
    tables : tuple of pandas.DataFrame
        Each with the release's n rows in its order and its columns; columns without generalized cells are as
        published. ``NAME (code)`` stands beside numbers with codes. ``attrs["notice"]`` says that it describes no real person.
    model : str
        The model, in words.
    suppressed : numpy.ndarray, shape (n,), bool
        Rows that hide all generalized columns: their values come from the model alone.
    candidates : CandidateTable or None
        What each cell of the release may stand for: where `least` and `most` come from.

    Notes
    -----
    Beside its estimate a mean, a quantile, a share and a group mean have `least` and `most`: the truth of the originals
    is between these whatever the cells stand for, without a model; infinite where nothing limits it, and NaN where it is not
    computed (a condition that is a function).
    """

    tables: tuple[pd.DataFrame, ...]
    model: str
    suppressed: np.ndarray
    candidates: CandidateTable | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.tables)

    def __iter__(self) -> Iterator[pd.DataFrame]:
        return iter(self.tables)

    def __getitem__(self, number: int) -> pd.DataFrame:
        return self.tables[number]

    def __repr__(self) -> str:
        return f"PlausibleTables({len(self)} tables of {len(self.suppressed)} rows; they describe no real person)"

    def estimate(self, analysis: Callable[[pd.DataFrame], Any], target: Target = "originals") -> pd.DataFrame:
        """Run an analysis on every table and pool it.

        Parameters
        ----------
        analysis : callable
            Table -> what :func:`anonflow.combine` takes: a number, a Series of them, a pair (estimate, variance), or
            a fitted model of statsmodels.
        target : {"originals", "population"}

        Returns
        -------
        pandas.DataFrame
            As :func:`anonflow.combine` gives it.

        Raises
        ------
        ParameterError
            As there.
        """
        return combine([analysis(table) for table in self.tables], target=target)

    def _with_bounds(
        self,
        pooled: pd.DataFrame,
        target: Target,
        weights: Weights,
        limits: Callable[[CandidateTable, np.ndarray], certain.Bounds] | None,
    ) -> pd.DataFrame:
        """Add the certain bounds, which need no model, to estimates; an interval for the originals does not leave them."""
        nothing = np.full(len(pooled), np.nan)
        least, most = nothing, nothing
        table_weights = [models.weights_of(table, weights) for table in self.tables]
        rows = [
            np.ones(len(self.suppressed)) if row_weights is None else row_weights
            for row_weights in table_weights
        ]
        # else a weight is hidden itself
        same = all(np.array_equal(rows[0], row_weights) for row_weights in rows)
        if self.candidates is not None and limits is not None and same:
            least, most = limits(self.candidates, rows[0])
        if target == "originals":
            low, high = np.fmax(pooled["low"], least), np.fmin(pooled["high"], most)
            pooled = pooled.assign(
                low=low.where(pooled["low"].notna()), high=high.where(pooled["high"].notna())
            )
        return pooled.assign(least=least, most=most)

    def mean(self, column: str, target: Target = "originals", weights: Weights = None) -> pd.DataFrame:
        """Return the mean of a column of numbers, of all rows that have one.

        Parameters
        ----------
        column : str
        target : {"originals", "population"}
        weights : str or array, optional
            Of a survey: a column of the release, or a number for each row in its order.

        Raises
        ------
        ParameterError
            If there is no such column, it has no numbers, or weights are not numbers of at least 0.
        """
        pooled = self.estimate(lambda table: models.mean(table, column, weights), target)
        return self._with_bounds(
            pooled, target, weights, lambda release, rows: certain.mean_bounds(release, column, rows)
        )

    def quantiles(
        self,
        column: str,
        at: Sequence[float] = (0.25, 0.5, 0.75),
        target: Target = "originals",
        weights: Weights = None,
    ) -> pd.DataFrame:
        """Return quantiles of a column of numbers; their sampling variance is Woodruff's (1952).

        Raises
        ------
        ParameterError
            As :meth:`mean`, and if a quantile is not between 0 and 1.

        Notes
        -----
        Without weights between two numbers as :func:`numpy.quantile` has it; with weights the smallest number up to which
        the numbers have that part of them.
        """
        pooled = self.estimate(lambda table: models.quantiles(table, column, at, weights), target)
        return self._with_bounds(
            pooled,
            target,
            weights,
            lambda release, rows: certain.quantile_bounds(
                release, column, at, None if weights is None else rows
            ),
        )

    def share(
        self,
        where: Mapping[str, Any] | Callable[[pd.DataFrame], Any],
        target: Target = "originals",
        weights: Weights = None,
    ) -> pd.DataFrame:
        """Return the share of rows that meet a condition.

        Parameters
        ----------
        where : mapping or callable
            As :func:`anonflow.count` takes it; or a function of a table that returns n bools.
        target : {"originals", "population"}
        weights : str or array, optional
            As :meth:`mean` takes them.

        Raises
        ------
        ParameterError
            If the condition names columns that are not there, or cannot be read, or weights are not numbers of at least 0.
        """
        pooled = self.estimate(lambda table: models.share(table, where, weights), target)
        limits = None if callable(where) else partial(certain.share_bounds, where=where)
        return self._with_bounds(
            pooled,
            target,
            weights,
            limits and (lambda release, rows: limits(release, weights=rows)),
        )

    def crosstab(
        self, rows: str, columns: str, target: Target = "originals", weights: Weights = None
    ) -> pd.DataFrame:
        """Return the shares of all pairs of values of two columns.

        Raises
        ------
        ParameterError
            If there is no such column, or weights are not numbers of at least 0.
        """
        levels = models.levels(self.tables, [rows, columns])
        pooled = self.estimate(lambda table: models.crosstab(table, rows, columns, levels, weights), target)
        return self._with_bounds(
            pooled,
            target,
            weights,
            lambda release, row_weights: certain.crosstab_bounds(release, rows, columns, levels, row_weights),
        )

    def group_means(
        self, column: str, by: str, target: Target = "originals", weights: Weights = None
    ) -> pd.DataFrame:
        """Return the means of a column of numbers for each value of another.

        A group that only some tables have is pooled from these.

        Raises
        ------
        ParameterError
            As :meth:`mean`.
        """
        levels = models.levels(self.tables, [by])[by]
        pooled = self.estimate(lambda table: models.group_means(table, column, by, levels, weights), target)
        return self._with_bounds(
            pooled,
            target,
            weights,
            lambda release, rows: certain.group_mean_bounds(release, column, by, levels, rows),
        )

    def regress(
        self,
        formula: str,
        kind: Literal["linear", "logistic"] | None = None,
        target: Target = "originals",
        weights: Weights = None,
    ) -> pd.DataFrame:
        """Return a linear or logistic regression: least squares, or maximum likelihood of a logit.

        Parameters
        ----------
        formula : str
            ``income ~ age + education + age:education``: columns and their products, nothing else. Categories become
            one column for each value but the most frequent.
        kind : {"linear", "logistic"}, optional
            Logistic for an outcome of two values, linear for numbers, if it is not said.
        target : {"originals", "population"}
        weights : str or array, optional
            As :meth:`mean` takes them.

        Returns
        -------
        pandas.DataFrame
            A row for each coefficient.

        Raises
        ------
        ParameterError
            If the formula cannot be read or names columns that are not there, the outcome goes with neither kind, or weights
            are not numbers of at least 0.
        """
        design = models.Design.of(formula, self.tables, kind)
        return self.estimate(lambda table: design.fit(table, weights), target)

    def write(self, path: str | PathLike[str]) -> None:
        """Write all tables into one CSV or Parquet file, one below the other.

        The first column, ``plausible table (no real person)``, has the table's number, from 1.

        Parameters
        ----------
        path : path
            ``.csv``, ``.parquet`` or ``.pq``.

        Raises
        ------
        ParameterError
            If the name ends in neither.
        DataError, AnonflowError
            If the file cannot be written.
        """
        numbered = []
        for number, table in enumerate(self.tables, 1):
            plain = table.copy()
            plain.attrs = {}
            plain.insert(0, NUMBER, number)
            numbered.append(plain)
        write_table(pd.concat(numbered, ignore_index=True), path)


def plausible(
    release: Any,
    m: int = 20,
    seed: int | None = None,
    *,
    schema: Schema | Mapping[str, Any] | None = None,
    k: int | None = None,
    classes: int | None = None,
    columns: Sequence[str] | None = None,
) -> PlausibleTables:
    """Draw complete tables that a release may stand for, from the release alone.

    Parameters
    ----------
    release : Release or pandas.DataFrame
        n published rows with every column of the analysis: relations to columns that are not there shrink to zero,
        however many tables are drawn. Its certificate says k and the criterion, which are published anyway; nothing
        else of it is looked at.
    m : int
        Tables.
    seed : int, optional
        Seed of these draws; never that of the release. By default the operating system draws it.
    schema : Schema or mapping, optional
        Which columns are numbers, and the trees of hierarchies. Without it a column is numbers if all its cells read
        so, and labels of a hierarchy stand for themselves.
    k : int, optional
        Of a k-regular release: how many originals each row stands for. By default that of its certificate.
    classes : int, optional
        Latent classes of the model; :func:`~anonflow.analysis.plausible_tables.default_classes` without it.
    columns : sequence of str, optional
        Those of the analysis; all without it.

    Returns
    -------
    PlausibleTables

    Raises
    ------
    ParameterError
        If m, seed, k or classes are not such whole numbers, `release` is not a release, or a column is not there.
    DataError
        If a column cannot be read.

    Notes
    -----
    The model is a mixture of latent classes over all columns, fitted to the release by EM; for each table it is fitted
    anew to rows with random weights (the Bayesian bootstrap, Rubin 1981), so that parameters are drawn, not assumed
    known (proper imputation). Then each row draws a latent class, and each cell a value among those that it covers. A
    cell is never contradicted. Of k-regular releases the ends of ranges and the members of sets are taken to be there
    among the k originals of the row; see :class:`anonflow.analysis.mixture.Model`. O((60 + 8 m) n c H) for c columns
    and H classes.

    Codes, and missing values, beside the numbers of a column are categories: its numbers are missing there, and a further
    column, ``NAME (code)``, has the code, ``number`` where there is none, and nothing (``""``) for a missing value.

    Examples
    --------
    >>> import pandas as pd
    >>> tables = plausible(pd.DataFrame({"age": ["20-30", "25", "20-40", "30"]}), m=3, seed=1)
    >>> [table["age"].between(20, 40).all().item() for table in tables]
    [True, True, True]
    """
    return plausible_of(CandidateTable.of(release, schema, k, columns=columns), m, seed, classes)


def default_classes(n: int) -> int:
    """Latent classes for n rows: one for each 300, at least 2, at most 30."""
    return min(max(n // 300, 2), 30)


def plausible_of(
    candidates: CandidateTable, m: int, seed: int | None = None, classes: int | None = None
) -> PlausibleTables:
    """Run :func:`plausible` on candidates that were read before.

    Raises
    ------
    ParameterError
        If m, seed or classes are no such whole numbers.
    """
    for name, number, least in (("m", m, 1), ("seed", seed, 0), ("classes", classes, 1)):
        if number is not None or name == "m":
            check_whole(number, least, f"plausible: {name} must be a whole number of at least {least}")
    h = default_classes(candidates.n) if classes is None else int(classes)
    model = Model(candidates, h)
    # a stream of its own: the same number elsewhere gives other bits
    sequence = np.random.SeedSequence(seed if seed is None else int(seed), spawn_key=(0x9147,))
    first, *others = (np.random.Generator(np.random.PCG64(child)) for child in sequence.spawn(1 + int(m)))
    fitted = model.fit(first)
    tables = tuple(_drawn_table(model, fitted, rng) for rng in others)
    words = f"mixture of {h} latent classes over {len(candidates.columns)} columns ({', '.join(candidates.names)})"
    return PlausibleTables(tables, words, candidates.suppressed, candidates)


def _drawn_table(model: Model, fitted: Mixture, rng: np.random.Generator) -> pd.DataFrame:
    n = model.candidates.n
    weights = rng.standard_exponential(n)
    mixture = model.fit(rng, rounds=RENEWED, weights=weights * (n / weights.sum()), start=fitted)
    drawn = model.draw(mixture, rng)
    columns = {}
    beside = {}
    for column in model.candidates.columns:
        code = drawn.get(column.name, column.first[column.at])
        if column.name in drawn and not column.numeric:
            columns[column.name] = pd.array(np.asarray(column.values)[code], dtype="str")
        elif column.numeric:
            columns[column.name] = _drawn_numbers(column, code, rng)
        else:
            columns[column.name] = column.cells.reset_index(drop=True)
        if column.coded:
            names = np.concatenate([np.full(column.is_number.sum(), IS_NUMBER, object), column.codes])
            beside[code_name(column.name)] = pd.array(names[code], dtype="str")
    table = pd.DataFrame({**columns, **beside})
    table.attrs["notice"] = NOTICE
    return table


def _drawn_numbers(column: CandidateColumn, code: np.ndarray, rng: np.random.Generator) -> Any:
    """Return a number of the drawn candidate of each row; missing where that is a code."""
    is_number = column.is_number[code]
    ends = np.asarray(column.low)[column.at], np.asarray(column.high)[column.at]
    points, edges = np.asarray(column.points), np.asarray(column.edges)
    place = np.where(is_number, code, 0)
    low = np.where(code == column.first[column.at], ends[0], np.maximum(ends[0], edges[place]))
    if not column.exact:
        # an interval ends before the next one begins; the last of a cell, where the cell ends
        next_one = np.searchsorted(points, edges[place + 1], side="left")
        stop = np.minimum(np.searchsorted(points, ends[1], side="right"), next_one)
        start = np.searchsorted(points, low, side="left")
        number = points[
            np.minimum(start + (rng.random(len(code)) * (stop - start)).astype(np.int64), len(points) - 1)
        ]
        low = np.where(stop > start, number, low)
    numbers = np.where(is_number, low, np.nan)
    if column.dates:
        return pd.Timestamp("1970-01-01") + pd.to_timedelta(numbers, unit="D")
    return numbers.astype(np.int64) if column.whole_numbers and is_number.all() else numbers
