"""Attackers who link by quasi-identifiers: one person, everybody, a register, and values that all candidates share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from anonflow.criteria.classes import class_rows, is_of_classes
from anonflow.criteria.diversity.diversity import judged, spread
from anonflow.criteria.diversity.l_diversity import P_SENSITIVITY
from anonflow.errors import ParameterError
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import AttackerKind, Success, WholeRelease, percent
from anonflow.risk.attackers.people import PeopleAtRisk
from anonflow.risk.register import RegisterCounts
from anonflow.table import Table
from anonflow.table.identification.earlier import history_with


def _people(context: AttackContext, side: str, certain: np.ndarray) -> PeopleAtRisk:
    """Return the people whose value is certain, from a mask of rows or of originals."""
    if context.table.unit is None:
        return PeopleAtRisk(certain)
    if side == "original":
        return PeopleAtRisk.of(context.table, certain)
    if context.listing is not None:  # the rows of an original are those of one class
        of_original = np.zeros(context.n)
        original, row = context.pairs
        of_original[original] = certain[row]
    else:
        of_original = 1 - context.likeliest(1 - certain)
    return PeopleAtRisk.of(context.table, of_original[context.people], context.people)


@dataclass(frozen=True)
class Prosecutor(
    AttackerKind,
    name="prosecutor",
    usual_where=lambda context: True,
    does="looks for one person",
    of_strangers=True,
    beside_register=True,
    reads_rows_alone=True,
    points_at_row=True,
    needs_originals=True,
    knows="one person's quasi-identifiers, and that the person is in the table",
):
    """Knows one person's quasi-identifiers, and that the person is in the table; picks a row of the person's class.

    The probability is 1 / the size of the smallest class that covers the person; where rows are no classes, 1 / the number of rows
    that cover the person. Hidden rows (``*`` in every quasi-identifier) are no class, and people who have no other row are
    left out. The largest probability is 1 / the smallest class, as :func:`anonflow.risk.describe` says it.
    """

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(edges of the consistency graph).

        Raises
        ------
        DataError
            If the consistency graph is too large.
        """
        hidden = int(context.hidden.sum())
        risk = PeopleAtRisk.guessing(context, context.shown_people, context.smallest_classes())
        return risk.success(
            1 / context.k,
            f"An attacker who looks for one person finds the right row with probability {percent(risk.worst)} at most, and "
            f"{percent(risk.mean)} on average"
            + (f"; hidden rows, which are left out: {hidden:,}." if hidden else "."),
        )  # fmt: skip


@dataclass(frozen=True)
class Marketer(
    AttackerKind,
    name="marketer",
    usual_where=lambda context: True,
    does="links everybody",
    beside_register=True,
    reads_rows_alone=True,
    points_at_row=True,
    needs_originals=True,
    knows="everybody's quasi-identifiers",
):
    """Knows everybody's quasi-identifiers and links each person to a row that covers them, at random."""

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(edges of the consistency graph).

        Raises
        ------
        DataError
            If the consistency graph is too large.
        """
        risk = PeopleAtRisk.guessing(context, context.people, context.covering())
        return risk.success(
            1 / context.k,
            f"An attacker who links everybody to a row that could be theirs is right for {percent(risk.mean)} of the people.",
        )  # fmt: skip


@dataclass(frozen=True)
class Linker(
    AttackerKind,
    name="linker",
    usual_where=lambda context: context.is_whole,
    does="rules rows out",
    points_at_row=True,
    of_earlier=True,
    beside_register=True,
    knows="everybody's quasi-identifiers and the method",
):
    """Knows everybody's quasi-identifiers and the method, and counts only true matches.

    Rows that cover a person but are on no perfect matching are excluded, and so are rows that running the method again
    excludes: only the matches of the certificate remain. With the context's earlier releases, only people remain whose rows in all
    releases may be the person's (:class:`anonflow.table.identification.history.History`).
    """

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. One maximum flow on the consistency graph; with earlier releases O(pairs of a row and a person).

        Raises
        ------
        ParameterError
            If it is not known whose columns each row has, of a context with earlier releases.
        DataError
            If the consistency graph is too large, or the release does not cover the table; or the earlier releases are not of its people.
        """
        if context.earlier is not None:
            return linked_by_all(context.table, context, context.earlier, context.k)
        candidates = context.candidates()
        risk = PeopleAtRisk.guessing(context, context.people, candidates)
        return risk.success(
            1 / context.k,
            _rows_left(candidates[context.people].min(initial=context.n), "person", risk.mean),
        )  # fmt: skip

    @classmethod
    def of_whole(cls, whole: WholeRelease) -> Success | None:
        """Return the exact success: by the lengths of the rows' lists, or by the earlier releases.

        Raises
        ------
        ParameterError, DataError
            As :func:`linked_by_all`.
        """
        if whole.earlier:
            return linked_by_all(whole.table, whole.release, whole.earlier, whole.k)
        return linker_of_lists(whole.sizes, whole.k, whole.people) if whole.sizes else None


def linked_by_all(table: Table, release: Any, earlier: Any, k: int) -> Success:
    """Return the success of a linker who has the earlier releases of a table's people as well.

    Parameters
    ----------
    table : Table
    release : Release
        With its certificate, and in memory or stored in an owner's folder.
    earlier : path, or list of paths
        The owner's folders.
    k : int

    Raises
    ------
    ParameterError, DataError
        As :func:`anonflow.table.identification.earlier.history_with`; and if it is not known whose columns each row has.
    """
    history, marks = history_with(earlier, table, release)
    if history is None:
        raise ParameterError(
            f"{Linker.name}: with earlier releases it needs a release in memory, or one that was kept in the owner's folder"
        )
    in_table = np.isin(history.marks, marks)
    people_left, of_absent = history.people_left[in_table], history.people_left[~in_table]
    chance = 1.0 / people_left
    addition = (
        f" {plural(len(of_absent), 'person', 'are')} in earlier releases only, and {verb_of(len(of_absent), 'have')} at least {of_absent.min():,}."
        if len(of_absent)
        else ""
    )
    return Success(
        len(chance), float(chance.mean()), float(chance.max()), int((people_left < k).sum()), 1 / k,
        f"An attacker who has {plural(len(history.releases), 'release')} of these people, and sees which rows are one person's, has at "
        f"least {plural(people_left.min(), 'person')} left for each person of this one and is right for {percent(float(chance.mean()))} of them.{addition}",
    )  # fmt: skip


def linker_of_lists(sizes: Sequence[tuple[int, int]], k: int, people: Success | None = None) -> Success:
    """Return the success of the linker, who knows all matches, from the lengths of the rows' lists alone: it needs no estimate.

    Parameters
    ----------
    sizes : sequence of (int, int)
        Of rows that list people, at least one, and how many people are listed by so many.
    k : int
    people : Success, optional
        Of the attacker who looks for people with several rows: the linker's equals it.
    """
    rows, listed = np.array(sizes, np.int64).T
    if people is not None:
        return replace(people, sentence=_rows_left(rows.min(), "row of a person", people.rate))
    mean = float((listed / rows).sum() / listed.sum())
    return Success(
        int(listed.sum()), mean, float(1 / rows.min()), int(listed[rows < k].sum()), 1 / k,
        _rows_left(rows.min(), "person", mean),
    )  # fmt: skip


def _rows_left(fewest: int, of: str, rate: float) -> str:
    return (
        f"An attacker who rules out every row that no complete matching allows has at least {plural(fewest, 'row')} left for each {of} "
        f"and is right for {percent(rate)} of the people."
    )


@dataclass(frozen=True, eq=False)
class Journalist(
    AttackerKind,
    name="journalist",
    does="has a register",
    reads_rows_alone=True,
    points_at_row=True,
    takes_register=True,
    of_population=True,
    knows="a register of the population, not who is in the table",
):
    """Has a register of a population that includes the table's people; does not know who is in the table.

    Parameters
    ----------
    population : pandas.DataFrame
        With the table's quasi-identifiers.
    """

    population: pd.DataFrame

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(edges between register and release).

        Raises
        ------
        ParameterError
            If the register lacks a quasi-identifier.
        DataError
            If a value of the register is in no hierarchy, or the graph is too large.
        """
        counts = _register(context, self.population)
        people = counts.of_row
        # people outside the register cannot be found in it
        chance = np.where(people > 0, 1.0 / np.maximum(people, 1), 0.0)
        risk = PeopleAtRisk(chance)
        if context.schema is None and context.table.unit is not None:
            risk = PeopleAtRisk.of(context.table, context.likeliest(chance)[context.people], context.people)
        return risk.success(
            1 / context.k,
            f"An attacker who compares the rows with a register of {plural(counts.people, 'person')} names the right one with "
            f"probability {percent(risk.worst)} at most, and {percent(risk.mean)} on average.",
        )  # fmt: skip


def _register(context: AttackContext, population: pd.DataFrame) -> RegisterCounts:
    if context.schema is not None:
        return RegisterCounts.of(context.frame, context.schema, population)
    table = context.table
    classes = None
    if table.unit is not None and is_of_classes(context.evidence):
        classes = class_rows(context.evidence)
    return RegisterCounts.of(context.frame, table.schema, population, table, classes)


@dataclass(frozen=True, eq=False)
class Presence(
    AttackerKind,
    name="presence",
    does="has a register, asks who is in the table",
    reads_rows_alone=True,
    takes_register=True,
    of_population=True,
    knows="a register of the population; wants to know who is in the table",
):
    """Has a register of the population, and wants to know which of its people are in the table (delta-presence; Nergiz 2007).

    Parameters
    ----------
    population : pandas.DataFrame
        With the table's quasi-identifiers; the table's people are among it.
    """

    population: pd.DataFrame

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(edges between register and release).

        Raises
        ------
        ParameterError
            If the register lacks a quasi-identifier.
        DataError
            If a value of the register is in no hierarchy, or the graph is too large.

        Notes
        -----
        In a release of classes, a person is present with the probability (people of the table) / (people of the register) of the
        person's class; rows count as people where the schema has no unit, or the originals are not there. Of a freeform release
        the result says only who could be absent: the people without whom all rows could belong to others
        (:class:`RegisterCounts`).
        """
        counts = _register(context, self.population)
        unit = context.table.unit
        present = len(context.frame) if unit is None else int(unit.max()) + 1
        baseline = min(1.0, present / counts.people)
        covered = counts.of_person > 0
        if not counts.is_of_classes:
            sure, absent = int((~counts.could_be_absent).sum()), int((~covered).sum())
            sentence = (
                f"Of a register of {plural(counts.people, 'person')} {absent:,} {verb_of(absent, 'are')} absent for certain; "
                f"{f'{sure:,} cannot be absent, and ' if sure else ''}each of the others could be absent: all rows could "
                "be other people's."
            )
            if counts.unlisted:
                sentence += f" At least {plural(counts.unlisted, 'row', 'are')} of nobody in the register, and the others may be, too."
            return Success(
                counts.people, sure / counts.people, 1.0 if sure else baseline, sure if baseline < 1 else 0,
                baseline, sentence,
            )  # fmt: skip
        # a class's people share its probability; a person whom no row covers is absent for certain
        chance = counts.chance
        worst = float(counts.presence.max(initial=0.0))
        sure = int((chance >= 1 - 1e-12).sum())
        low = float(chance.min(initial=1.0))
        return Success(
            counts.people, sure / counts.people, worst, int((chance > baseline + 1e-12).sum()), baseline,
            f"An attacker who looks for people of a register of {counts.people:,} in the table is sure that {sure:,} "
            f"{verb_of(sure, 'are')} in it; "
            f"presence is known with probability {percent(low)} to {percent(worst)}, and {percent(baseline)} without the rows.",
        )  # fmt: skip


@dataclass(frozen=True)
class Homogeneity(
    AttackerKind,
    name="homogeneity",
    usual_where=lambda context: True,
    of_each_column=True,
    does="guesses the value",
    reads_rows_alone=True,
    knows="everybody's quasi-identifiers and the method; wants the sensitive value",
):
    """Wants the sensitive value, not the row: it wins if all possible rows of a person have the same value.

    Parameters
    ----------
    column : str, optional
        The sensitive column; the only one of the table without it.
    """

    column: str | None = None

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(pairs of a person and a row); counted where the criteria of diversity count.

        Raises
        ------
        ParameterError
            If there is no such column, or several to choose from.
        DataError
            If the consistency graph is too large.
        """
        column = context.sensitive_column(self.column)
        value_spread = spread(context.evidence, column)
        mixed, _ = judged(value_spread, P_SENSITIVITY, {"p": 2})
        member = value_spread.members[value_spread.members >= 0]
        is_certain = np.zeros(len(value_spread.members), bool)
        is_certain[value_spread.members >= 0] = ~mixed[member]
        risk = _people(context, value_spread.side, is_certain.astype(float))
        people, certain = len(risk.chance), risk.above(0.0)
        # the values that are published: those of fewer than k suppressed records are not
        visible = context.frame[column][~context.evidence.exempt].value_counts(normalize=True, dropna=False)
        common = float(visible.max()) if len(visible) else 0.0
        # for people without published rows nothing more is known
        highest = value_spread.counts.max(axis=1).toarray().ravel()
        share = np.where(value_spread.sizes > 0, highest / np.maximum(value_spread.sizes, 1), common)[member]
        best = np.full(len(value_spread.members), common)
        best[value_spread.members >= 0] = share
        mean = float(best.mean())
        alone = "" if value_spread.read_off in ("lists", "classes") else ", as far as the rows alone tell"
        of_one, rows = ("theirs", "") if context.table.unit is None else ("one of theirs", " of the rows")
        return risk.success(
            0.0,
            f"For {certain:,} of {plural(people, 'person')} every row that may be {of_one} has the same {column}{alone}; the "
            f"best guess is right for {percent(mean)}{rows}, and for {percent(common)} without the quasi-identifiers.",
            worst=float(share.max(initial=common)),
        )  # fmt: skip
