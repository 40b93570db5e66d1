"""An attacker who looks for people, not rows: whoever has several is named by any of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from anonflow.errors import ParameterError
from anonflow.risk.attacker import Households, Success, percent
from anonflow.table.row_marks import coded_texts

if TYPE_CHECKING:
    from anonflow.risk.attack_context import AttackContext
    from anonflow.table import Table

__all__ = ["PeopleAtRisk", "Unit", "at_least_one", "chances_of_lists", "intersections", "people_named"]


@dataclass(frozen=True, eq=False)
class PeopleAtRisk:
    """The probability that an attacker is right about a person: by any of the person's rows.

    Attributes
    ----------
    chance : numpy.ndarray, shape (people,), float64
        Of the people who are attacked; a row is a person where the schema has no unit.
    households : Households or None

    Notes
    -----
    Rows of one person are named independently: 1 - product of (1 - chance), at most their sum. A household likewise: one of
    its people is named.
    """

    chance: np.ndarray
    households: Households | None = None

    @classmethod
    def of(cls, table: Table, chance: np.ndarray, records: np.ndarray | None = None) -> PeopleAtRisk:
        """From the probabilities of rows.

        Parameters
        ----------
        table : Table
            The n originals.
        chance : numpy.ndarray, shape (m,), float64
        records : numpy.ndarray, shape (m,), int64, optional
            Whose rows these are: those that are attacked, each once. All n without them.
        """
        at = np.arange(table.n) if records is None else records
        if table.unit is None:
            return cls(np.asarray(chance, np.float64))
        return cls.of_owners(chance, table.unit[at], None if table.household is None else table.household[at])

    @classmethod
    def of_owners(
        cls, chance: np.ndarray, unit: np.ndarray, household: np.ndarray | None = None
    ) -> PeopleAtRisk:
        """From the probabilities of rows, and whose these are.

        Parameters
        ----------
        chance : numpy.ndarray, shape (m,), float64
        unit : numpy.ndarray, shape (m,), int64
        household : numpy.ndarray, shape (m,), int64, optional
        """
        units, whose = np.unique(unit, return_inverse=True)
        of_units = at_least_one(chance, whose)
        if household is None:
            return cls(of_units)
        home = np.zeros(len(units), np.int64)
        home[whose] = np.unique(household, return_inverse=True)[1]
        homes = at_least_one(of_units, home)
        return cls(
            of_units, Households(len(homes), float(homes.mean()), float(homes.max())) if len(homes) else None
        )

    @property
    def mean(self) -> float:
        """Over the people, 0 of nobody."""
        return float(self.chance.mean()) if len(self.chance) else 0.0

    @property
    def worst(self) -> float:
        """Of the person that is known best."""
        return float(self.chance.max(initial=0.0))

    def above(self, baseline: float) -> int:
        """Return how many people are named more often than a baseline."""
        return int((self.chance > baseline * (1 + 1e-9)).sum())


@dataclass(frozen=True)
class Unit:
    """Knows the quasi-identifiers of all rows of everybody, and the method; wins if one row of a person is named rightly.

    Notes
    -----
    The linker's figures (:class:`PeopleAtRisk`), and of columns that are constant for each person the values that all rows
    of a person allow: one left is known.
    """

    name: ClassVar[str] = "unit"
    needs_truth: ClassVar[bool] = False
    knows: ClassVar[str] = "the quasi-identifiers of all rows of everybody, whose they are, and the method"

    def attack(self, context: AttackContext) -> Success:
        """O(pairs of a person and a row), where a column is constant for each unit; else as the linker.

        Raises
        ------
        ParameterError
            If the table has no units, or there are too many pairs.
        DataError
            If the release does not cover the table.
        """
        unit = context.table.unit
        if unit is None:
            raise ParameterError("unit: the schema has no column with the role unit")
        people = context.people
        chance = 1.0 / np.maximum(context.candidates()[people], 1)
        home = context.table.household
        success = people_named(chance, unit[people], None if home is None else home[people], context.k)
        sentence = success.sentence
        for name, left in intersections(context).items():
            known = int((left == 1).sum())
            sentence += (
                f" {name} is the same on all rows of a person: {left.mean():.1f} values are left on average of those that the rows "
                f"allow, and for {known:,} of {len(left):,} people with several rows only one."
            )
        return replace(success, sentence=sentence)


def people_named(chance: np.ndarray, unit: np.ndarray, household: np.ndarray | None, k: int) -> Success:
    """Return how often one of a person's rows is named rightly, and somebody of a household.

    Parameters
    ----------
    chance : numpy.ndarray, shape (m,), float64
        With which each row's person is named by that row.
    unit : numpy.ndarray, shape (m,), int64
        Whose each row is.
    household : numpy.ndarray, shape (m,), int64, or None
    k : int

    Returns
    -------
    Success
        O(m log m).
    """
    risk = PeopleAtRisk.of_owners(chance, unit, household)
    rows = np.unique(unit, return_counts=True)[1]
    surest = rows[int(risk.chance.argmax())] if len(rows) else 0
    sentence = (
        f"Who looks for a person by all of the person's rows names one of them rightly for {percent(risk.mean)} of "
        f"{len(risk.chance):,} people, and for {percent(risk.worst)} of the surest, who has {surest:,} rows."
    )
    return Success(
        len(risk.chance),
        risk.mean,
        risk.worst,
        risk.above(1 / k),
        1 / k,
        sentence,
        households=risk.households,
    )


def chances_of_lists(
    matches: np.ndarray | None, classes: np.ndarray | None, suppressed: np.ndarray, hidden: int, k: int
) -> np.ndarray | None:
    """With which probability a row that lists a record is that record's; None where a method lists nobody.

    Parameters
    ----------
    matches : numpy.ndarray, shape (n, w), integer, or None
        What each row lists, -1 where it lists fewer; of whole partitions.
    classes : numpy.ndarray, shape (n,), int64, or None
    suppressed : numpy.ndarray, shape (n,), bool
    hidden : int
        Suppressed records of the whole table; of fewer than k nothing is published.
    k : int

    Returns
    -------
    numpy.ndarray, shape (n,), float64
        nan of whom nothing is published. O(n w).
    """
    if matches is not None:
        listed = matches[~suppressed]
        many = np.bincount(listed[listed >= 0], minlength=len(suppressed))
    elif classes is not None:
        labels = np.unique(classes, return_inverse=True)[1]
        many = np.bincount(labels)[labels]
    else:
        return None
    chance: np.ndarray = 1.0 / np.maximum(many, 1)
    chance[suppressed] = 1.0 / hidden if hidden >= k else np.nan
    return chance


def at_least_one(chance: np.ndarray, whose: np.ndarray) -> np.ndarray:
    """For each owner the probability that one of its independent chances comes true: 1 - product of (1 - chance).

    Parameters
    ----------
    chance : numpy.ndarray, shape (n,), float64
        Between 0 and 1.
    whose : numpy.ndarray, shape (n,), int64
        Labels 0.. .
    """
    missed = np.ones(int(whose.max(initial=-1)) + 1)
    np.multiply.at(missed, whose, 1 - chance)
    return 1 - missed


def intersections(context: AttackContext) -> dict[str, np.ndarray]:
    """Return published columns that are constant for each unit -> how many values all rows of a unit allow.

    Parameters
    ----------
    context : AttackContext

    Returns
    -------
    dict
        Of quasi-identifiers none: they are generalized. For each column an array of int64, an entry for each unit with
        several rows.

    Raises
    ------
    ParameterError
        If there are too many pairs of a person and a row.
    """
    unit = context.table.unit
    left: dict[str, np.ndarray] = {}
    if unit is None or int(np.bincount(unit).max()) < 2:
        return left
    rows = np.bincount(unit)
    several = np.flatnonzero(rows > 1)
    for name in context.table.other_columns:
        if name not in context.frame.columns:
            continue
        own = coded_texts(context.table.frame[name], {}, False)
        first = np.full(len(rows), -1)
        first[unit] = own
        if (first[unit] != own).any():
            continue
        shown = coded_texts(context.frame[name], {}, False)
        original, row = context.pairs
        values = int(shown.max()) + 1
        # a value counts once for each of the unit's rows that allows it
        per_row = np.unique(original * values + shown[row])
        whose, value = unit[per_row // values], per_row % values
        pair, times = np.unique(whose * values + value, return_counts=True)
        common = times == rows[pair // values]
        left[name] = np.bincount(pair[common] // values, minlength=len(rows))[several]
    return left
