"""The requested diversity: how far a group of sensitive values is from it, and the most that a table allows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from anonflow.criteria.diversity.diversity import DiversityCriterion, declared_tree, leaves_of
from anonflow.criteria.diversity.diversity_target import Target
from anonflow.criteria.registry import CRITERIA
from anonflow.errors import ParameterError
from anonflow.hierarchy import Hierarchy
from anonflow.option import Option
from anonflow.table import Schema, Table
from anonflow.table.records import places_in
from anonflow.table.row_marks import cell_text
from anonflow.table.schema import did_you_mean

DIVERSITIES = {
    name: criterion for name, criterion in CRITERIA.items() if isinstance(criterion, DiversityCriterion)
}
"""The criteria that a result can be diversified for."""

# nobody has so many rows: where they do not suffice, the search for their number ends
_MOST_ROWS = 1 << 20

PRICE = (
    "It costs loss: on 600 people of Adult (greedy, k = 5, salary class) the GCP of 0.070 becomes 0.191 with p-sensitivity "
    "(p = 2), 0.586 with entropy l-diversity (l = 1.5) and 0.595 with t-closeness (t = 0.15). Freeform methods lose as much "
    "as diverse k-member then. full-domain, local-recoding, methods with patterns and distinct_first choose by sensitive values: "
    "an attacker who runs them again may know values for certain."
)
"""What a step for diversity costs, and which methods tell values by it, for whoever is about to ask for it."""

PARAMETERS: dict[str, Option] = {}
"""The parameters of all of them; one that several have as the first declares it."""

for _criterion in DIVERSITIES.values():
    for _name in _criterion.needed:
        PARAMETERS.setdefault(_name, _criterion.options[_name])


def target_of(
    criterion: str,
    parameters: Mapping[str, float],
    overall: np.ndarray,
    numeric: bool = False,
    tree: tuple[Hierarchy, np.ndarray] | None = None,
) -> Target:
    """Return the target of a diversity criterion, with its parameters and as `Target` takes the rest."""
    return DIVERSITIES[criterion].target(criterion, parameters, overall, numeric, tree)


@dataclass(frozen=True, eq=False)
class Targets:
    """Criteria on one or several columns, which must all hold; their values are numbered one column after the other.

    Attributes
    ----------
    each : tuple of Target
    """

    each: tuple[Target, ...]

    @cached_property
    def starts(self) -> np.ndarray:
        """The first position of each column's values, and their number in all: shape (c + 1,), int64."""
        return np.concatenate([[0], np.cumsum([len(target.overall) for target in self.each])]).astype(
            np.int64
        )

    @property
    def size(self) -> int:
        """V, values of all columns."""
        return int(self.starts[-1])

    def _parts(self, counts: np.ndarray) -> list[tuple[Target, np.ndarray]]:
        ends = self.starts
        return [(target, counts[..., ends[t] : ends[t + 1]]) for t, target in enumerate(self.each)]

    @property
    def distinct(self) -> np.ndarray:
        """How many different values of each column a diverse group has at least, shape (c,), int64."""
        return np.array([target.distinct for target in self.each], np.int64)

    def gaps(self, counts: np.ndarray) -> np.ndarray:
        """Return how much diversity groups lack, added up over the criteria: shape (g,); see :meth:`Target.gaps`.

        Parameters
        ----------
        counts : numpy.ndarray, shape (g, V)
        """
        return np.sum([target.gaps(part) for target, part in self._parts(counts)], axis=0)

    def least_removed(self, counts: np.ndarray) -> np.ndarray:
        """Return how many records of groups that lack a criterion must go at least: shape (g,); see :meth:`Target.least_removed`.

        Parameters
        ----------
        counts : numpy.ndarray, shape (g, V), int64
        """
        least = np.zeros(len(counts), np.int64)
        for target, part in self._parts(counts):
            lacking = target.gaps(part) > 0
            least[lacking] = np.maximum(least[lacking], target.least_removed(part[lacking]))
        return least

    def counts(self, values: np.ndarray, group: np.ndarray, groups: int) -> np.ndarray:
        """Return how often each value occurs in each group.

        Parameters
        ----------
        values : numpy.ndarray, shape (m, c), int64
            Each record's value in every column, numbered as here.
        group : numpy.ndarray, shape (m,), int64
        groups : int

        Returns
        -------
        numpy.ndarray, shape (groups, V), int64
        """
        places = group[:, None] * self.size + values
        return np.bincount(places.ravel(), minlength=groups * self.size).reshape(groups, self.size)

    def wanted(self, counts: np.ndarray) -> np.ndarray:
        """Return which values bring a group nearer to a criterion that it lacks: shape (V,), bool."""
        parts = self._parts(np.asarray(counts, np.float64))
        lacking = [bool(target.gaps(part[None, :])[0] > 0) for target, part in parts]
        return np.concatenate(
            [
                target.wanted(part) if lacks or not any(lacking) else np.zeros(len(part), bool)
                for lacks, (target, part) in zip(lacking, parts, strict=True)
            ]
        )

    def rows_needed(self, least: int, n: int, risk: float) -> int | None:
        """Return how many independent rows a person needs, so that with values of the whole table's shares all are diverse.

        It uses only the shares of the whole table, not the values of individual records.

        Parameters
        ----------
        least : int
        n : int
            People, each of whom may fail.
        risk : float
            That one of them does.

        Returns
        -------
        int or None
            At least `least`; None if a million rows would not do.
        """

        def enough(rows: int) -> bool:
            return all(target.unsafe(rows, risk / (n * len(self.each))) == 0 for target in self.each)

        high = max(least, 1)
        while not enough(high):
            high *= 2
            if high > _MOST_ROWS:
                return None
        # half of it was too few
        low = max(least, high // 2)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle + 1, high)
        return high


@dataclass(frozen=True, eq=False)
class SensitiveValues:
    """The values of a partition's records in the columns that must be diverse.

    Attributes
    ----------
    targets : Targets
        With the shares of the whole table.
    values : numpy.ndarray, shape (P, c), int64
        Each record's value in every column, numbered as in the targets.
    """

    targets: Targets
    values: np.ndarray

    def take(self, index: np.ndarray) -> SensitiveValues:
        """Return those of some records.

        Raises
        ------
        IndexError
            If a position does not exist.
        """
        return SensitiveValues(self.targets, self.values[index])

    def lacking(self, group: np.ndarray, groups: int) -> np.ndarray:
        """Return which groups of records lack a criterion: shape (groups,), bool.

        Parameters
        ----------
        group : numpy.ndarray, shape (P,), int64
        groups : int
        """
        return self.targets.gaps(self.targets.counts(self.values, group, groups)) > 0


def sensitive_column(column: str | None, sensitive: tuple[str, ...], others: tuple[str, ...]) -> str:
    """Return the column that is to be diverse.

    Parameters
    ----------
    column : str, optional
        Without it, the only sensitive one.
    sensitive : tuple of str
    others : tuple of str
        Columns that are published besides the quasi-identifiers.

    Raises
    ------
    ParameterError
        If it is not a published column besides the quasi-identifiers, or there is no single column to choose.
    """
    if column is None:
        if len(sensitive) != 1:
            raise ParameterError(
                f"diversify needs column: the schema has {len(sensitive) or 'no'} sensitive columns; name one"
            )
        return sensitive[0]
    if not isinstance(column, str) or column not in others:
        raise ParameterError(
            f"{str(column)[:40]!r} is not a sensitive column{did_you_mean(str(column), others)}"
            if others
            else "the schema publishes no column besides the quasi-identifiers",
            subject="diversify",
        )
    return column


def sensitive_codes(table: Table, column: str) -> tuple[np.ndarray, int, bool]:
    """Return codes of a column's values: shape (n,), int64; how many values; whether they are numbers, in their order."""
    at, distinct = _values_of(table, column)
    places, numeric = places_of(distinct)
    return places[at], len(distinct), numeric


def _values_of(table: Table, column: str) -> tuple[np.ndarray, tuple[Any, ...]]:
    """Return a column's different values, and which of them each record has: shape (n,), int64."""
    cells = table.frame[column]
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(cells.cat.categories.dtype)
    at, distinct = pd.factorize(cells, use_na_sentinel=False)
    return at, tuple(distinct)


def places_of(values: Sequence[Any]) -> tuple[np.ndarray, bool]:
    """Return the code of each different value, shape (V,), int64, and whether all are numbers.

    Numbers are in their order, others in that of their texts. Neither says who has the first of them: a step must not depend on it.
    """
    numbers = [_finite_number(value) for value in values]
    numeric = all(number is not None for number in numbers)
    by_text = sorted(
        range(len(values)), key=lambda at: (cell_text(values[at], False), isinstance(values[at], str))
    )
    order = sorted(by_text, key=lambda at: numbers[at] or 0.0) if numeric else by_text
    return places_in(np.array(order, np.int64), len(order)), numeric


def _finite_number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def check_parameters(criterion: Any, parameters: Mapping[str, Any]) -> dict[str, float]:
    """Return the parameters of a criterion, all there and in their domains.

    Raises
    ------
    ParameterError
        If the criterion is unknown, or a parameter is missing, unknown, or no number it can be.
    """
    if not isinstance(criterion, str) or criterion not in DIVERSITIES:
        raise ParameterError(
            f"unknown criterion {str(criterion)[:40]!r}{did_you_mean(str(criterion), tuple(DIVERSITIES))}",
            subject="diversify",
        )
    needed = DIVERSITIES[criterion].needed
    present = {name: value for name, value in parameters.items() if value is not None}
    for name in present:
        if name not in needed:
            raise ParameterError(f"{criterion} takes {' and '.join(needed)}, not {name}", subject="diversify")
    checked = {}
    for name in needed:
        option = DIVERSITIES[criterion].options[name]
        value = present.get(name)
        if value is None or option.problem(value):
            raise ParameterError(f"{criterion} needs {name}, {option.value_words()}", subject="diversify")
        checked[name] = float(value)
    return checked


def target_of_values(
    criterion: Any,
    parameters: Mapping[str, Any],
    schema: Schema,
    column: str,
    values: Sequence[Any],
    counts: np.ndarray,
) -> tuple[Target, np.ndarray]:
    """Return the criterion over a column's values, and the code of each of them: shape (V,), int64.

    Parameters
    ----------
    criterion : str
    parameters : mapping
    schema : Schema
        Whose hierarchy of the column, if it has one, is the distance of t-closeness.
    column : str
    values : sequence
        The different values of the whole table.
    counts : numpy.ndarray, shape (V,), int64
        How often each occurs there.

    Raises
    ------
    ParameterError
        As :func:`check_parameters`.
    DataError
        If t-closeness is asked for, and a value is no leaf of the hierarchy.
    HierarchyError
        If the hierarchy cannot be read.
    """
    needed = check_parameters(criterion, parameters)
    places, numeric = places_of(values)
    shares = np.zeros(len(places))
    shares[places] = counts / max(float(np.sum(counts)), 1.0)
    tree = None
    if DIVERSITIES[criterion].of_distances:
        texts = [""] * len(places)
        for value, place in zip(values, places.tolist(), strict=True):
            texts[place] = cell_text(value, False)
        declared = declared_tree(schema, column, texts)
        tree = None if declared is None else leaves_of(declared, texts)
    return target_of(criterion, needed, shares, numeric, tree), places


def check_diversity(
    table: Table, criterion: str, column: str | None = None, spare: int = 0, **parameters: Any
) -> Target:
    """Refuse a diversity that no release of a table can have, before any work is done.

    Parameters
    ----------
    table : Table
    criterion : str
    column : str, optional
    spare : int, optional
        Records that a release may suppress without a class of their own: fewer than k.
    **parameters
        As :func:`anonflow.diversify` takes them.

    Raises
    ------
    ParameterError
        If the criterion, the column or a parameter cannot be used.
    InfeasibleError
        If the whole table has less diversity, also without so many records; with the largest value that it allows.
    DataError, HierarchyError
        As :func:`target_of_values`.
    """
    column = sensitive_column(column, tuple(table.sensitive), tuple(table.other_columns))
    at, values = _values_of(table, column)
    counts = np.bincount(at, minlength=len(values))
    target, places = target_of_values(criterion, parameters, table.schema, column, values, counts)
    target.refuse(counts[np.argsort(places)], column, spare)
    return target


def sensitive_values(
    table: Table, requests: Sequence[Mapping[str, Any]], spare: int = 0
) -> SensitiveValues | None:
    """Return the sensitive values and targets that the classes of a table must keep; None without a request.

    Parameters
    ----------
    table : Table
    requests : sequence of mapping
        As ``parameters["diversified"]`` has them.
    spare : int, optional
        As of :func:`check_diversity`.

    Raises
    ------
    ParameterError, InfeasibleError
        As :func:`check_diversity`.
    """
    return SensitiveValues(*targets_of(table, requests, spare)) if requests else None


def targets_of(
    table: Table, requests: Sequence[Mapping[str, Any]], spare: int = 0
) -> tuple[Targets, np.ndarray]:
    """Return criteria with the whole table's shares, and the values of all records, numbered one column after the other.

    Parameters
    ----------
    table : Table
    requests : sequence of mapping
        At least one.
    spare : int, optional
        As of :func:`check_diversity`.

    Returns
    -------
    targets : Targets
    values : numpy.ndarray, shape (n, c), int64

    Raises
    ------
    ParameterError, InfeasibleError
        As :func:`check_diversity`.
    """
    targets, columns = [], []
    used = 0
    for request in requests:
        parameters = {name: value for name, value in request.items() if name not in ("criterion", "column")}
        targets.append(check_diversity(table, request["criterion"], request["column"], spare, **parameters))
        codes, values, _ = sensitive_codes(table, request["column"])
        columns.append(codes + used)
        used += values
    return Targets(tuple(targets)), np.column_stack(columns).astype(np.int64)
