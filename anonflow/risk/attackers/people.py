"""An attacker who looks for people, not rows: a person with several rows is named by any of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from anonflow.errors import ParameterError
from anonflow.risk.attacker import AttackerKind, Households, Success, percent
from anonflow.table.identification.uniqueness import at_least_one
from anonflow.table.row_marks import coded_texts

if TYPE_CHECKING:
    from anonflow.risk.attack_context import AttackContext
    from anonflow.table import Table

__all__ = ["PeopleAtRisk", "Unit", "chances_of_lists", "intersections", "people_named"]


@dataclass(frozen=True, eq=False)
class PeopleAtRisk:
    """The probability that an attacker is right about a person, by any of the person's rows.

    Attributes
    ----------
    chance : numpy.ndarray, shape (people,), float64
        Of the people who are attacked; a row is a person if the schema has no unit.
    households : Households or None
    weight : numpy.ndarray, shape (people,), float64, or None
        The weight of each person in the mean; by default all equal.

    Notes
    -----
    Rows of one person are named independently: 1 - product of (1 - chance), at most their sum. The same holds for the
    people of a household. If a table is a part of a larger one (:attr:`anonflow.table.Table.whole_owners`), an owner's
    other rows are assumed to be like those of the part. An owner with more rows is more often in the part, and counts less.
    """

    chance: np.ndarray
    households: Households | None = None
    weight: np.ndarray | None = None

    @classmethod
    def of(cls, table: Table, chance: np.ndarray, records: np.ndarray | None = None) -> PeopleAtRisk:
        """Compute it from the probabilities of rows.

        Parameters
        ----------
        table : Table
            The n originals.
        chance : numpy.ndarray, shape (m,), float64
        records : numpy.ndarray, shape (m,), int64, optional
            The originals of these rows: those that are attacked, each once. By default all n.
        """
        at = np.arange(table.n) if records is None else records
        if table.unit is None:
            return cls(np.asarray(chance, np.float64))
        unit, household = table.unit[at], table.household
        whole = table.whole_owners
        if whole is None:
            return cls.of_owners(chance, unit, None if household is None else household[at])
        # an attacked owner with s rows here and w in all: each row counts w / s times
        times = whole.unit_rows[at] / np.bincount(table.unit)[unit]
        if household is None or whole.household_rows is None:
            return cls.of_owners(chance, unit, None, times)
        home = household[at]
        of_home = whole.household_rows[at] / np.bincount(household)[home]
        return cls.of_owners(chance, unit, home, times, of_home)

    @classmethod
    def of_owners(
        cls,
        chance: np.ndarray,
        unit: np.ndarray,
        household: np.ndarray | None = None,
        times: np.ndarray | None = None,
        times_of_household: np.ndarray | None = None,
    ) -> PeopleAtRisk:
        """Compute it from the probabilities of rows, and their owners.

        Parameters
        ----------
        chance : numpy.ndarray, shape (m,), float64
        unit : numpy.ndarray, shape (m,), int64
        household : numpy.ndarray, shape (m,), int64, optional
        times, times_of_household : numpy.ndarray, shape (m,), float64, optional
            How many rows of the person, and of the household, each row stands for; 1 by default.
        """
        of_units, weight = _of_owners(chance, unit, times)
        if household is None:
            return cls(of_units, None, weight)
        homes, by = _of_owners(chance, household, times_of_household)
        return cls(
            of_units,
            Households(len(homes), float(np.average(homes, weights=by)), float(homes.max()))
            if len(homes)
            else None,
            weight,
        )

    @property
    def mean(self) -> float:
        """The mean over the people; 0 if there are none."""
        return float(np.average(self.chance, weights=self.weight)) if len(self.chance) else 0.0

    @property
    def worst(self) -> float:
        """The probability of the person at highest risk."""
        return float(self.chance.max(initial=0.0))

    def above(self, baseline: float) -> int:
        """Return how many people are named more often than a baseline."""
        return int((self.chance > baseline * (1 + 1e-9)).sum())


@dataclass(frozen=True)
class Unit(AttackerKind):
    """Knows the quasi-identifiers of all rows of everybody, and the method; wins if one row of a person is named correctly.

    Notes
    -----
    The result has the linker's figures (:class:`PeopleAtRisk`) and, for columns that may be constant for each person, the
    number of values that all rows of a person allow; if one is left, it is known. The originals are not read to decide
    whether a column is constant, because two tables with the same release must have the same report.
    """

    name: ClassVar[str] = "unit"
    does: ClassVar[str] = "looks for a person by all of that person's rows"
    points_at_row: ClassVar[bool] = True
    knows: ClassVar[str] = "the quasi-identifiers of all rows of everybody, whose they are, and the method"

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(pairs of a person and a row), where another column is published; else as the linker.

        Raises
        ------
        ParameterError
            If the table has no units.
        DataError
            If the release does not cover the table.
        """
        unit = context.table.unit
        if unit is None or context.table.schema.unit_column is None:
            raise ParameterError("unit: the schema has no column with the role unit")
        people = context.people
        chance = 1.0 / np.maximum(context.candidates()[people], 1)
        home = context.table.household
        success = people_named(chance, unit[people], None if home is None else home[people], context.k)
        sentence = success.sentence
        try:
            shared = intersections(context)
        except ParameterError as error:
            shared, sentence = (
                {},
                f"{sentence} What all rows of a person allow was not computed: {error.message}.",
            )
        for name, left in shared.items():
            known = int((left == 1).sum())
            sentence += (
                f" If {name} is the same on all rows of a person, {left.mean():.1f} values are left on average of those that the rows "
                f"allow, and for {known:,} of {len(left):,} people with several rows only one."
            )
        return replace(success, sentence=sentence)


def people_named(chance: np.ndarray, unit: np.ndarray, household: np.ndarray | None, k: int) -> Success:
    """Return how often one of a person's rows is named correctly, and a member of a household.

    Parameters
    ----------
    chance : numpy.ndarray, shape (m,), float64
        The probability that a row names its person.
    unit : numpy.ndarray, shape (m,), int64
        The unit of each row.
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
        f"An attacker who looks for a person by all of the person's rows names one of them correctly for {percent(risk.mean)} of "
        f"{len(risk.chance):,} people, and with probability {percent(risk.worst)} for the person at highest risk, who has {surest:,} rows."
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
    """Return the probability that a row that lists a record is that record's; None if a method has no lists.

    Parameters
    ----------
    matches : numpy.ndarray, shape (n, w), integer, or None
        The originals that each row lists, filled up with -1; of whole partitions.
    classes : numpy.ndarray, shape (n,), int64, or None
    suppressed : numpy.ndarray, shape (n,), bool
    hidden : int
        Number of suppressed records of the whole table.
    k : int
        Of fewer suppressed records nothing is published.

    Returns
    -------
    numpy.ndarray, shape (n,), float64
        nan for records of which nothing is published. O(n w).
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


def _of_owners(
    chance: np.ndarray, owner: np.ndarray, times: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return for each owner the probability that it is named, and its weight: s / w with s of w rows here."""
    labels, whose = np.unique(owner, return_inverse=True)
    named = at_least_one(chance, whose, times)
    weight = None if times is None else 1.0 / np.bincount(whose, times, len(labels)) * np.bincount(whose)
    return named, weight


def intersections(context: AttackContext) -> dict[str, np.ndarray]:
    """Return published columns that may be constant for each unit -> how many values all rows of a unit allow.

    Parameters
    ----------
    context : AttackContext

    Returns
    -------
    dict
        For each column an array of int64 with an entry for each unit with several rows. Quasi-identifiers are left out,
        because they are generalized. A column is not constant, and left out, if the rows of some unit allow no common
        value. Only the release and the owners of the quasi-identifiers are used, not the originals' other columns.

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
        shown = coded_texts(context.frame[name], {}, False)
        original, row = context.pairs
        values = int(shown.max()) + 1
        # a value counts once for each of the unit's rows that allows it
        per_row = np.unique(original * values + shown[row])
        whose, value = unit[per_row // values], per_row % values
        pair, times = np.unique(whose * values + value, return_counts=True)
        common = times == rows[pair // values]
        allowed = np.bincount(pair[common] // values, minlength=len(rows))[several]
        if allowed.all():
            left[name] = allowed
    return left
