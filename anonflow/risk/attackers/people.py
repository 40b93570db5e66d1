"""An attacker who looks for people, not rows: a person with several rows is named by any of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import maximum_bipartite_matching

from anonflow.candidate_lists import Candidates
from anonflow.errors import ParameterError
from anonflow.hierarchy.wording import plural
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import AttackerKind, Households, Success, WholeRelease, percent
from anonflow.table import Schema, Table
from anonflow.table.identification.uniqueness import at_least_one
from anonflow.table.row_marks import coded_texts


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
    Whoever looks for a person points at a row. Rows of one person that share a candidate row, as those of one class do, are named
    with the sum of their chances, at most 1: 3 of the 5 rows of a class are a person's with probability 3/5. Other rows of the
    person are named independently: 1 - product of (1 - sum). The same holds for the people of a household. If a table is a part of a larger one (:attr:`anonflow.table.Table.whole_owners`), an owner's
    other rows are assumed to be like those of the part. An owner with more rows is more often in the part, and counts less.
    """

    chance: np.ndarray
    households: Households | None = None
    weight: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        table: Table,
        chance: np.ndarray,
        records: np.ndarray | None = None,
        candidates: Candidates | None = None,
    ) -> PeopleAtRisk:
        """Compute it from the probabilities of rows.

        Parameters
        ----------
        table : Table
            The n originals.
        chance : numpy.ndarray, shape (m,), float64
        records : numpy.ndarray, shape (m,), int64, optional
            The originals of these rows: those that are attacked, each once. By default all n.
        candidates : Candidates, optional
            The originals that each row may be of, for attackers who point at a row. Without it all rows are independent.
        """
        at = np.arange(table.n) if records is None else records
        if table.unit is None:
            return cls(np.asarray(chance, np.float64))
        whole = table.whole_owners

        def of_owners(owner: np.ndarray, rows: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
            """Return for each owner the probability that it is named, and its weight: s / w with s of w rows here."""
            labels, person = np.unique(owner[at], return_inverse=True)
            # an attacked owner with s rows here and w in all: each row counts w / s times
            times = None if rows is None else (rows / np.bincount(owner)[owner])[at]
            group = None if candidates is None else candidates.owner_groups(owner)[at]
            named = at_least_one(np.asarray(chance, np.float64), person, times, group)
            return named, None if times is None else np.bincount(person) / np.bincount(
                person, times, len(labels)
            )

        of_units, weight = of_owners(table.unit, None if whole is None else whole.unit_rows)
        if table.household is None or (whole is not None and whole.household_rows is None):
            return cls(of_units, None, weight)
        homes, by = of_owners(table.household, None if whole is None else whole.household_rows)
        if not len(homes):
            return cls(of_units, None, weight)
        average = float(np.average(homes, weights=by))
        return cls(of_units, Households(len(homes), average, float(homes.max())), weight)

    @classmethod
    def guessing(cls, context: AttackContext, people: np.ndarray, candidates: np.ndarray) -> PeopleAtRisk:
        """Compute it of a random guess among candidates.

        Parameters
        ----------
        context : AttackContext
        people : numpy.ndarray, int64
            The originals that are attacked, each once.
        candidates : numpy.ndarray, shape (n,), int64
            How many rows may be of each original.
        """
        chance = 1.0 / np.maximum(candidates[people], 1)
        return cls.of(context.table, chance, people, context.row_candidates)

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
        # equal to the baseline, but for rounding, is not above it
        return int((self.chance > baseline * (1 + 1e-9)).sum())

    def success(self, baseline: float, sentence: str, **figures: Any) -> Success:
        """Return the success of an attacker with these probabilities.

        Parameters
        ----------
        baseline : float
        sentence : str
            As of :class:`Success`.
        **figures
            Figures of :class:`Success` in the place of those computed here.
        """
        computed = Success(
            len(self.chance), self.mean, self.worst, self.above(baseline), baseline, sentence, households=self.households
        )  # fmt: skip
        return replace(computed, **figures)


@dataclass(frozen=True)
class Unit(
    AttackerKind,
    name="unit",
    usual_where=lambda context: context.is_whole and context.table.schema.unit_column is not None,
    of_people=True,
    not_of_sample="this attacker needs the role unit and a method whose rows list people; take another method, or leave the attacker out",
    does="looks for a person by all of that person's rows",
    points_at_row=True,
    knows="the quasi-identifiers of all rows of everybody, whose they are, and the method",
):
    """Knows the quasi-identifiers of all rows of everybody, and the method; wins if one row of a person is named correctly.

    Notes
    -----
    The result has the linker's figures (:class:`PeopleAtRisk`) and, for columns that may be constant for each person, the
    number of values that all rows of a person allow; if one is left, it is known. The originals are not read to decide
    whether a column is constant, because two tables with the same release must have the same report.
    """

    @classmethod
    def of_whole(cls, whole: WholeRelease) -> Success | None:
        """Return the success that was counted on all rows, where they list people."""
        return whole.people

    def schema_problem(self, schema: Schema) -> str | None:
        """Return that the columns do not say whose a row is."""
        if schema.unit_column is None:
            return "'unit' needs a column with the role unit, which says whose each row is"
        return None

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(pairs of a person and a row), where another column is published; else as the linker.

        Raises
        ------
        ParameterError
            If the table has no units.
        DataError
            If the release does not cover the table.
        """
        if context.table.unit is None or context.table.schema.unit_column is None:
            raise ParameterError("unit: the schema has no column with the role unit")
        people = context.people
        chance = 1.0 / np.maximum(context.candidates()[people], 1)
        success = people_named(context.table, chance, people, context.row_candidates, context.k)
        sentence = success.sentence
        try:
            shared = intersections(context)
        except ParameterError as error:
            shared, sentence = (
                {},
                f"{sentence} What all rows of a person allow was not computed: {error.message}.",
            )
        for name, values_left in shared.items():
            certain = int((values_left == 1).sum())
            sentence += (
                f" If {name} is the same on all rows of a person, {values_left.mean():.1f} values are left on average of those that the rows "
                f"allow, and for {certain:,} of {plural(len(values_left), 'person')} with several rows only one."
            )
        return replace(success, sentence=sentence)


def people_named(
    table: Table, chance: np.ndarray, records: np.ndarray, candidates: Candidates | None, k: int
) -> Success:
    """Return how often one of a person's rows is named correctly, and a member of a household.

    Parameters
    ----------
    table : Table
        With units.
    chance : numpy.ndarray, shape (m,), float64
        The probability that a row names its person.
    records : numpy.ndarray, shape (m,), int64
        The originals of these rows.
    candidates : Candidates or None
        As :meth:`PeopleAtRisk.of` takes it.
    k : int

    Returns
    -------
    Success
        O(e log e) for e pairs of a row and a candidate.
    """
    risk = PeopleAtRisk.of(table, chance, records, candidates)
    surest = 0
    if table.unit is not None and len(records):
        surest = np.unique(table.unit[records], return_counts=True)[1][int(risk.chance.argmax())]
    sentence = (
        f"An attacker who looks for a person by all of the person's rows names one of them correctly for {percent(risk.mean)} of "
        f"{plural(len(risk.chance), 'person')}, and with probability {percent(risk.worst)} for the person at highest risk, who has "
        f"{plural(surest, 'row')}."
    )
    return risk.success(1 / k, sentence)


def intersections(context: AttackContext) -> dict[str, np.ndarray]:
    """Return published columns that may be constant for each unit -> how many values all rows of a unit allow.

    Parameters
    ----------
    context : AttackContext

    Returns
    -------
    dict
        For each column an array of int64 with an entry for each unit with several rows: so many values are there for all rows of
        the unit, each on a published row of its own. Quasi-identifiers are left out,
        because they are generalized. A column is not constant, and left out, if the rows of some unit allow no common
        value. Only the release and the owners of the quasi-identifiers are used, not the originals' other columns.

    Raises
    ------
    ParameterError
        If there are too many pairs of a person and a row.
    """
    unit = context.table.unit
    values_left: dict[str, np.ndarray] = {}
    if unit is None or int(np.bincount(unit).max()) < 2:
        return values_left
    names = [name for name in context.table.other_columns if name in context.frame.columns]
    if not names:  # pairs take long
        return values_left
    rows = np.bincount(unit)
    several = np.flatnonzero(rows > 1)
    original, row = context.pairs
    original, row = (ends[rows[unit[original]] > 1] for ends in (original, row))
    for name in names:
        codes = coded_texts(context.frame[name], {}, False)
        values = int(codes.max()) + 1
        # each of a unit's rows must be another published row of the value: a matching for each unit and value
        per_row, at = np.unique(original * values + codes[row], return_inverse=True)
        _, of_unit = np.unique(unit[original] * len(codes) + row, return_inverse=True)
        graph = sparse.csr_array((np.ones(len(at), np.int8), (at, of_unit)))
        matched = per_row[maximum_bipartite_matching(graph, perm_type="column") >= 0]
        pair, times = np.unique(unit[matched // values] * values + matched % values, return_counts=True)
        common = times == rows[pair // values]
        allowed = np.bincount(pair[common] // values, minlength=len(rows))[several]
        if allowed.all():
            values_left[name] = allowed
    return values_left
