"""The requested diversity: how far a group of sensitive values is from it, and the most that a table allows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from scipy import special

from anonflow.criteria.diversity import LIKENESS, along_tree, declared_tree, leaves_of
from anonflow.criteria.registry import CRITERIA
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.hierarchy import Hierarchy
from anonflow.table import Schema, Table
from anonflow.table.row_marks import cell_text
from anonflow.table.schema import did_you_mean

__all__ = [
    "DIVERSITIES",
    "PARAMETERS",
    "SensitiveValues",
    "Target",
    "Targets",
    "check_diversity",
    "check_parameters",
    "places_of",
    "sensitive_codes",
    "sensitive_column",
    "sensitive_values",
    "target_of_values",
    "targets_of",
]

DIVERSITIES: dict[str, tuple[str, ...]] = {
    name: criterion.needed for name, criterion in CRITERIA.items() if criterion.of_a_column
}
"""The criteria that a result can be diversified for, and what each needs."""

PARAMETERS = tuple(dict.fromkeys(name for needed in DIVERSITIES.values() for name in needed))
"""The parameters of all of them."""

_SLACK = 1e-12
_SHORT = 1e-9


@dataclass(frozen=True, eq=False)
class Target:
    """A diversity criterion on one column.

    Attributes
    ----------
    criterion : str
        One of `DIVERSITIES`.
    parameters : dict
        ``p``, ``l``, ``c``, ``t``, ``beta``, ``delta``, ``alpha`` as the criterion needs.
    overall : numpy.ndarray, shape (V,), float64
        Share of each value in the whole table.
    numeric : bool
        Whether values are numbers, in whose order t-closeness measures; `overall` is in that order.
    tree : tuple of Hierarchy and numpy.ndarray, or None
        The hierarchy that the schema has for the column, along which t-closeness measures, and the leaf of each value.
    """

    criterion: str
    parameters: Mapping[str, float]
    overall: np.ndarray
    numeric: bool = False
    tree: tuple[Hierarchy, np.ndarray] | None = None

    @property
    def distinct(self) -> int:
        """How many different values a diverse group has at least: p of p-sensitivity, l of l-diversity."""
        parameter = "p" if self.criterion == "p-sensitivity" else "l"
        return max(1, math.ceil(self.parameters.get(parameter, 1.0) - _SLACK))

    def gaps(self, counts: np.ndarray) -> np.ndarray:
        """Return how much diversity groups of values lack.

        Parameters
        ----------
        counts : numpy.ndarray, shape (g, V), float64 or int64
            How often each value occurs in each group.

        Returns
        -------
        numpy.ndarray, shape (g,), float64
            0 exactly where the criterion holds, and for groups without values; else the parameter less the group's
            own diversity (t-closeness: the other way round), at least 1e-9. O(g V log V).
        """
        size = counts.sum(axis=1)
        filled = np.maximum(size, 1e-300)
        lacking, good = self._gap(np.asarray(counts, np.float64), filled)
        gap: np.ndarray = np.where(good | (size <= 0), 0.0, np.maximum(lacking, _SHORT))
        return gap

    def _gap(self, counts: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.criterion == "p-sensitivity":
            distinct = (counts > 0).sum(axis=1)
            return self.parameters["p"] - distinct, distinct >= self.parameters["p"]
        if self.criterion == "l-diversity":
            top, l = counts.max(axis=1), self.parameters["l"]
            return l - size / np.maximum(top, 1e-300), top * l <= size * (1 + _SLACK)
        if self.criterion == "entropy-l-diversity":
            entropy = _entropy(counts / size[:, None])
            l = self.parameters["l"]
            return l - np.exp(entropy), entropy >= math.log(l) - _SLACK
        if self.criterion == "recursive-l-diversity":
            falling = -np.sort(-counts, axis=1)
            at = int(self.parameters["l"]) - 1
            lacking = falling[:, 0] - self.parameters["c"] * falling[:, at:].sum(axis=1)
            enough = (counts > 0).sum(axis=1) > at
            # groups with too few values are furthest off
            missing = np.maximum(at + 1 - (counts > 0).sum(axis=1), 0)
            return lacking / size + missing, enough & (lacking < 0)
        if self.criterion == "alpha-k-anonymity":
            top = counts.max(axis=1) / size
            return top - self.parameters["alpha"], top <= self.parameters["alpha"] * (1 + _SLACK)
        if self.criterion in LIKENESS:
            return self._unlike(counts / size[:, None])
        moved = counts / size[:, None] - self.overall
        if self.tree is not None:
            far = along_tree(moved, *self.tree)
        elif self.numeric:
            far = np.abs(np.cumsum(moved, axis=1)[:, :-1]).sum(axis=1) / max(moved.shape[1] - 1, 1)
        else:
            far = np.abs(moved).sum(axis=1) / 2
        return far - self.parameters["t"], far <= self.parameters["t"] + _SLACK

    def _unlike(self, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return how far shares of values, shape (g, V), are from being as frequent as in the whole table, and which are not."""
        known = self.overall > 0
        usual = self.overall[known]
        ratio = share[:, known] / usual
        if self.criterion == "delta-disclosure":
            lacking = (ratio <= 0).sum(axis=1)
            far = np.abs(np.log(np.where(ratio > 0, ratio, 1.0))).max(axis=1)
            # groups that lack most values are furthest off
            delta = self.parameters["delta"]
            return np.maximum(far - delta, 0.0) + lacking, (far < delta) & (lacking == 0)
        most = np.full(len(usual), self.parameters["beta"])
        if self.criterion == "enhanced-beta-likeness":
            most = np.minimum(most, -np.log(usual))
        over = np.where(ratio > 1, ratio - 1 - most * (1 + _SLACK), -1.0).max(axis=1)
        return over, over <= _SLACK

    def least_removed(self, counts: np.ndarray) -> np.ndarray:
        """Return the least number of records that groups must lose before the remaining ones keep the criterion.

        Parameters
        ----------
        counts : numpy.ndarray, shape (g, V), int64
            Groups that lack it.

        Returns
        -------
        numpy.ndarray, shape (g,), int64
            A lower bound, at least 1, at most the group's records: exact for p-sensitivity, l-diversity by frequency and
            (alpha, k)-anonymity, of which the most frequent value goes. O(g V).
        """
        size = counts.sum(axis=1)
        least = np.ones(len(counts), np.int64)
        top = counts.max(axis=1, initial=0)
        if self.criterion == "p-sensitivity":
            return np.asarray(size)
        if self.criterion in ("l-diversity", "alpha-k-anonymity"):
            share = self.parameters.get("alpha", 1 / self.parameters.get("l", 1.0))
            # the others stay, with as many records of the most frequent value as they allow
            stay = (size - top) * share / max(1 - share, _SLACK)
            least = np.ceil(top - stay * (1 + _SLACK) - _SHORT).astype(np.int64)
        elif self.criterion == "t-closeness":
            # each record that leaves changes the distribution by at most its share of the group
            least = np.ceil(size * self.gaps(counts) * (1 - _SHORT) - _SHORT).astype(np.int64)
        return np.clip(least, 1, size)

    def unsafe(self, rows: int, risk: float) -> float:
        """Return how far independent rows, each with a value drawn with the whole table's shares, are from keeping the criterion.

        Parameters
        ----------
        rows : int
        risk : float
            The chance of failing that is to be kept.

        Returns
        -------
        float
            0 if the criterion holds but for that chance, else a positive number. O(V log V), p-sensitivity
            O(V^(p - 1)) while that is small.

        Notes
        -----
        p-sensitivity: all rows have one of some p - 1 values, or one of the p most frequent values is absent, added up.
        l-diversity: binomial tails, over all values. Others: every share within epsilon of its expectation
        (Hoeffding 1963), then the worst that this allows (entropy: Audenaert's inequality).
        """
        share = self.overall[self.overall > 0]
        if self.criterion == "p-sensitivity":
            chance = _too_few(share, int(self.parameters["p"]), rows)
            return max(0.0, math.log(chance / risk)) if chance > 0 else 0.0
        short = float(self.gaps(self.overall[None, :])[0])
        if short > 0:
            return short
        # no share above 1 / l makes an entropy of at least log l, too
        top = self.parameters.get("alpha", 1 / self.parameters.get("l", math.inf))
        if top > 0 and self.criterion != "recursive-l-diversity":
            chance = float(_more_than(math.floor(rows * top * (1 + _SLACK)), rows, share).sum())
            by_share = max(0.0, math.log(chance / risk)) if chance > 0 else 0.0
            if self.criterion != "entropy-l-diversity" or by_share == 0.0:
                return by_share
        if self.criterion in LIKENESS:
            return self._unlike_by_chance(share, rows, risk)
        values = max(len(share), 2)
        epsilon = math.sqrt(math.log(2 * values / risk) / (2 * rows))
        return self._worst(share, epsilon, values)

    def _unlike_by_chance(self, share: np.ndarray, rows: int, risk: float) -> float:
        """Return the same for likeness, by binomial tails of every value."""
        if self.criterion == "delta-disclosure":
            delta = self.parameters["delta"]
            # strictly between: counts at the bounds themselves fail
            high = np.ceil(rows * share * math.exp(delta) * (1 - _SLACK)) - 1
            low = np.floor(rows * share * math.exp(-delta) * (1 + _SLACK))
            chance = float((_more_than(high, rows, share) + special.bdtr(low, rows, share)).sum())
        else:
            most = np.full(len(share), self.parameters["beta"])
            if self.criterion == "enhanced-beta-likeness":
                most = np.minimum(most, -np.log(share))
            high = np.floor(rows * share * (1 + most) * (1 + _SLACK))
            chance = float(_more_than(high, rows, share).sum())
        return max(0.0, math.log(chance / risk)) if chance > 0 else 0.0

    def _worst(self, share: np.ndarray, epsilon: float, values: int) -> float:
        moved = min(1.0, values * epsilon / 2)
        if self.criterion == "entropy-l-diversity":
            mixed = (
                0.0 if moved in (0.0, 1.0) else -moved * math.log(moved) - (1 - moved) * math.log(1 - moved)
            )
            slack = moved * math.log(max(values - 1, 1)) + mixed
            return max(0.0, math.log(self.parameters["l"]) + slack - float(_entropy(share[None, :])[0]))
        if self.criterion == "recursive-l-diversity":
            falling = -np.sort(-share)
            at = int(self.parameters["l"]) - 1
            tail = float(np.maximum(falling[at:] - epsilon, 0).sum())
            return max(0.0, float(falling[0]) + epsilon - self.parameters["c"] * tail + _SHORT)
        full = np.zeros(len(self.overall))
        full[self.overall > 0] = share
        far = self._gap(full[None, :], np.ones(1))[0]
        return max(0.0, float(far[0]) + moved)

    def wanted(self, counts: np.ndarray) -> np.ndarray:
        """Return which values bring a group nearer to the criterion: those of which one more lowers the gap.

        Where none does, the values that the group lacks most. O(V^2 log V), for many values O(V log V).
        """
        counts = np.asarray(counts, np.float64)
        known = self.overall > 0
        if self.criterion == "p-sensitivity":
            wanted = known & (counts <= 0)
        elif self.criterion in ("l-diversity", "alpha-k-anonymity"):
            wanted = known & (counts < counts.max() - 1e-9)
        elif len(counts) <= 200:
            gap = self.gaps(counts[None, :])[0]
            wanted = known & (self.gaps(counts + np.eye(len(counts))) < gap - 1e-15)
        else:
            wanted = np.zeros(len(counts), bool)
        if not wanted.any():
            if self.criterion == "t-closeness" or self.criterion in LIKENESS:
                lack = np.where(known, counts / max(counts.sum(), 1e-300) - self.overall, np.inf)
            else:
                lack = np.where(known, counts, np.inf)
            wanted = lack <= lack.min() + 1e-12
        return wanted

    def refuse(self, counts: np.ndarray, column: str) -> None:
        """Refuse a diversity that not even all records together have.

        Raises
        ------
        InfeasibleError
            With the largest value that is feasible.
        """
        if not self.gaps(np.asarray(counts)[None, :])[0] > 0:
            return
        parameters = ", ".join(f"{name} = {value:g}" for name, value in self.parameters.items())
        raise InfeasibleError(
            f"{self.criterion} with {parameters} is more than column {column!r} of the whole table has; "
            f"the largest feasible {self.largest(counts)}"
        )

    def largest(self, counts: np.ndarray) -> str:
        """Return the largest parameter that all records together allow, such as ``l is 1.5``.

        Parameters
        ----------
        counts : numpy.ndarray, shape (V,)
            How often each value occurs in the whole table.
        """
        present = np.asarray(counts, np.float64)
        present = present[present > 0]
        if not len(present):
            return "value is none: it has no values"
        if self.criterion == "p-sensitivity":
            return f"p is {len(present)}"
        if self.criterion == "t-closeness":
            return "t is any: the whole table is at distance 0 of itself"
        if self.criterion == "delta-disclosure":
            return "delta is any above 0: the whole table is as frequent as itself"
        if self.criterion in LIKENESS:
            return "beta is any: the whole table is as frequent as itself"
        if self.criterion == "alpha-k-anonymity":
            return f"share is {math.ceil(present.max() / present.sum() * 10000) / 10000:g}: no smaller alpha will do"
        if self.criterion == "recursive-l-diversity":
            falling = -np.sort(-present)
            c = self.parameters["c"]
            best = [l for l in range(1, len(falling) + 1) if falling[0] < c * falling[l - 1 :].sum()]
            return f"l is {max(best)}" if best else f"l does not exist for c = {c:g}; use a larger c"
        most = present.sum() / present.max()
        if self.criterion == "entropy-l-diversity":
            most = math.exp(float(_entropy((present / present.sum())[None, :])[0]))
        return f"l is {math.floor(most * 10000) / 10000:g}"


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
        gaps: np.ndarray = np.sum([target.gaps(part) for target, part in self._parts(counts)], axis=0)
        return gaps

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
        lacking: np.ndarray = self.targets.gaps(self.targets.counts(self.values, group, groups)) > 0
        return lacking


_MOST_ROWS = 1 << 20


_SUBSETS = 20_000
"""More sets of values are not tried."""


def _more_than(count: np.ndarray | int, rows: int, share: np.ndarray) -> np.ndarray:
    """Return the chance that a value has more than so many of some independent rows."""
    # not scipy.stats, which takes 0.4 s to import
    return np.asarray(special.bdtrc(np.minimum(count, rows), rows, share))


def _too_few(share: np.ndarray, p: int, rows: int) -> float:
    """Return an upper bound of the chance that independent rows show fewer than p values."""
    if len(share) < p:
        return 1.0
    surest = float(np.exp(rows * np.log1p(-np.minimum(-np.sort(-share)[:p], 1 - 1e-16))).sum())
    if p < 2:
        return 0.0
    if math.comb(len(share), p - 1) > _SUBSETS:
        return surest
    among = sum(math.fsum(some) ** rows for some in combinations(share.tolist(), p - 1))
    return min(surest, among)


def _entropy(share: np.ndarray) -> np.ndarray:
    logs = np.log(share, where=share > 0, out=np.zeros_like(share))
    entropy: np.ndarray = -(share * logs).sum(axis=1)
    return entropy


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
    import pandas as pd

    cells = table.frame[column]
    if isinstance(cells.dtype, pd.CategoricalDtype):
        cells = cells.astype(cells.cat.categories.dtype)
    at, distinct = pd.factorize(cells, use_na_sentinel=False)
    return at, tuple(distinct)


def places_of(values: Sequence[Any]) -> tuple[np.ndarray, bool]:
    """Return the code of each different value, shape (V,), int64: numbers in their order; and whether all are numbers."""
    numbers = [_number(value) for value in values]
    places = np.arange(len(numbers), dtype=np.int64)
    if any(number is None for number in numbers):
        return places, False
    places[np.argsort(np.array(numbers, float), kind="stable")] = np.arange(len(numbers))
    return places, True


def _number(value: Any) -> float | None:
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
    needed = DIVERSITIES[criterion]
    present = {name: value for name, value in parameters.items() if value is not None}
    for name in present:
        if name not in needed:
            raise ParameterError(f"{criterion} takes {' and '.join(needed)}, not {name}", subject="diversify")
    checked = {}
    for name in needed:
        option = CRITERIA[criterion].options[name]
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
    if criterion == "t-closeness":
        texts = [""] * len(places)
        for value, place in zip(values, places.tolist(), strict=True):
            texts[place] = cell_text(value, False)
        declared = declared_tree(schema, column, texts)
        tree = None if declared is None else leaves_of(declared, texts)
    return Target(criterion, needed, shares, numeric, tree), places


def check_diversity(table: Table, criterion: str, column: str | None = None, **parameters: Any) -> Target:
    """Refuse a diversity that no release of a table can have, before any work is done.

    Parameters
    ----------
    table : Table
    criterion : str
    column : str, optional
    **parameters
        As :func:`anonflow.diversify` takes them.

    Raises
    ------
    ParameterError
        If the criterion, the column or a parameter cannot be used.
    InfeasibleError
        If the whole table has less diversity; with the largest feasible value.
    DataError, HierarchyError
        As :func:`target_of_values`.
    """
    column = sensitive_column(column, tuple(table.sensitive), tuple(table.other_columns))
    at, values = _values_of(table, column)
    counts = np.bincount(at, minlength=len(values))
    target, places = target_of_values(criterion, parameters, table.schema, column, values, counts)
    target.refuse(counts[np.argsort(places)], column)
    return target


def sensitive_values(table: Table, requests: Sequence[Mapping[str, Any]]) -> SensitiveValues | None:
    """Return the sensitive values and targets that the classes of a table must keep; None without a request.

    Parameters
    ----------
    table : Table
    requests : sequence of mapping
        As ``parameters["diversified"]`` has them.

    Raises
    ------
    ParameterError, InfeasibleError
        As :func:`check_diversity`.
    """
    return SensitiveValues(*targets_of(table, requests)) if requests else None


def targets_of(table: Table, requests: Sequence[Mapping[str, Any]]) -> tuple[Targets, np.ndarray]:
    """Return criteria with the whole table's shares, and the values of all records, numbered one column after the other.

    Parameters
    ----------
    table : Table
    requests : sequence of mapping
        At least one.

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
    for each in requests:
        parameters = {name: value for name, value in each.items() if name not in ("criterion", "column")}
        targets.append(check_diversity(table, each["criterion"], each["column"], **parameters))
        codes, values, _ = sensitive_codes(table, each["column"])
        columns.append(codes + used)
        used += values
    return Targets(tuple(targets)), np.column_stack(columns).astype(np.int64)
