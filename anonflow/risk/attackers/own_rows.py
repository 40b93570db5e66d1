"""Rows with their own records' values: an attacker who runs the method again knows the record behind each row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anonflow.candidate_lists import Candidates
from anonflow.criteria.order import DRAWS, SUSPICIOUS, chance
from anonflow.errors import ParameterError
from anonflow.hierarchy.wording import plural
from anonflow.release import draws_of_graph
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import AttackerKind, Success, percent
from anonflow.risk.attackers.people import PeopleAtRisk
from anonflow.table.records import matches_among, places_in
from anonflow.table.row_marks import row_labels

_RECORDS = 2_000
"""Number of records whose rows are examined, in complete components."""

_BLOCK = 1 << 22
"""Matches that are drawn from at a time."""


@dataclass(frozen=True)
class OwnRowsTest:
    """The test of a file by running the method again: whether its rows were drawn and shuffled.

    Attributes
    ----------
    rows : int
        Rows of the file that were made from records, and are looked at.
    found : int
        Those of them that running the method again makes, too.
    shown : int
        T: rows that show their own record's values.
    expected : float
        The mean of T over fresh draws.
    drawn : float
        The chance of as large a T along a draw.
    shuffled : float
        The chance of as many neighbouring rows that were made from neighbouring records, in a shuffled file.
    people : PeopleAtRisk
        The probability that one of a person's rows is correctly attributed; a row is a person where the schema has no
        unit.
    people_expected : float
        The mean of that over people and fresh draws.
    """

    rows: int
    found: int
    shown: int
    expected: float
    drawn: float
    shuffled: float
    people: PeopleAtRisk = field(repr=False)
    people_expected: float

    def remarks(self) -> tuple[str, ...]:
        """Return remarks about steps that seem to be left out; they are never a reason to draw again."""
        remarks = (
            self.found < self.rows
            and f"running the method again makes only {self.found:,} of {plural(self.rows, 'row')}, and the others were not tested: "
            "its version, options or partitions are not those of the release",
            self.drawn < SUSPICIOUS
            and f"rows show the values of the records that they were made from: {self.shown:,} of {self.found:,}, where "
            f"draws give {self.expected:,.1f} (p = {self.drawn:.1g}); release() draws them",
            self.shuffled < SUSPICIOUS
            and f"neighbouring rows were made from neighbouring records (p = {self.shuffled:.1g}); shuffle them, "
            "because the place of a row identifies its person",
        )
        return tuple(remark for remark in remarks if remark)


@dataclass(frozen=True, eq=False)
class OwnRows(
    AttackerKind,
    name="own-rows",
    does="tests whether the rows were drawn",
    needs_truth=True,
    knows="everybody's quasi-identifiers and the method; takes rows for those of their own records",
):
    """Runs the method again, and attributes each row to the record behind it.

    It wins against a file that was shuffled but not drawn. A file does not show this alone, only in comparison with
    fresh draws.

    Parameters
    ----------
    anonymization : Anonymization, optional
        The result of running the method again; by default the context's.
    """

    anonymization: Any = None

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(999 k) for each of the rows that are looked at.

        Raises
        ------
        ParameterError
            As :func:`own_rows_test`.
        """
        anonymization = self.anonymization if self.anonymization is not None else context.anonymization
        if anonymization is None:
            raise ParameterError(
                "own-rows: give what running the method again makes: risk.OwnRows(anonymization=...)"
            )
        seen = own_rows_test(context.table, context.frame, anonymization)
        rate, usual = seen.shown / max(seen.found, 1), seen.expected / max(seen.found, 1)
        sentence = (
            f"An attacker who runs the method again makes {seen.found:,} of {plural(seen.rows, 'row')}; {percent(rate)} of them show their own "
            f"record's values, and {percent(usual)} after a draw (p = {seen.drawn:.1g})."
        )
        risk = seen.people
        if context.table.unit is None:
            at_risk = seen.shown if seen.drawn < SUSPICIOUS else 0
            return Success(seen.found, rate, rate, at_risk, usual, sentence, counted=True)
        sentence += (
            f" They belong to {plural(len(risk.chance), 'person')}: for {percent(risk.mean)} of them one row is attributed correctly, and for "
            f"{percent(seen.people_expected)} after a draw."
        )
        at_risk = risk.above(seen.people_expected) if seen.drawn < SUSPICIOUS else 0
        return risk.success(seen.people_expected, sentence, at_risk=at_risk, counted=True)


def own_rows_test(table: Any, frame: Any, anonymization: Any) -> OwnRowsTest:
    """Compare the rows of a file that show their own record's values with fresh draws.

    Parameters
    ----------
    table : Table
        The n originals.
    frame : pandas.DataFrame
        The published table, n rows.
    anonymization : Anonymization
        The result of running the method again on the table.

    Returns
    -------
    OwnRowsTest

    Raises
    ------
    ParameterError
        If all published rows are equal, or each row shows its own record by design (k-concealment); if no other
        column is published, or the anonymization is of another table.

    Notes
    -----
    T = number of rows with their own record's values, the rows of equal quasi-identifiers taken together, against 999
    draws of the graph: p = (1 + #{T_r >= T}) / 1000, and below that as :func:`anonflow.criteria.order.chance`. Order
    alike: neighbouring rows from neighbouring records, against 999 shuffles. Rows without such a partner (a
    randomized method, other options) are left out and counted.
    """
    n = table.n
    names = [name for name in table.other_columns if name in frame.columns]
    if anonymization.n != n or len(frame) != n:
        raise ParameterError(
            "own-rows: the release, the table and the anonymization have other numbers of rows"
        )
    if anonymization.matches is None:
        raise ParameterError(
            "own-rows: only rows of a freeform method can be compared with their own records: rows of a class are equal, "
            "and k-concealment publishes each record's own values by design"
        )
    if not names:
        raise ParameterError("own-rows: no other column is published: nothing shows whose a row is")
    # the same draws each time: a file that is tested again gets the same answer
    rng = np.random.default_rng(n)
    at = _whole_components(anonymization, rng)
    keys = list(table.qi_columns)
    generalized, of_file = row_labels([anonymization.frame(), frame], keys)
    record_values, known_of_rows = row_labels([table.frame, frame], names)
    # as many rows of a kind in the file as the method makes: then they are these
    kinds = int(max(generalized.max(initial=-1), of_file.max(initial=-1))) + 1
    kind_agrees = np.bincount(generalized, minlength=kinds) == np.bincount(of_file, minlength=kinds)
    inside = np.zeros(kinds, bool)
    inside[generalized[at]] = True
    outside = np.ones(n, bool)
    outside[at] = False
    inside[generalized[outside]] = False  # a kind that other components have, too
    kind_agrees &= inside
    values = int(max(record_values.max(initial=-1), known_of_rows.max(initial=-1))) + 1
    records = at[kind_agrees[generalized[at]]]
    rows = np.flatnonzero(kind_agrees[of_file])
    kind_value, pair_of_record, sizes = np.unique(
        generalized[records] * values + record_values[records], return_inverse=True, return_counts=True
    )

    def together(pairs: np.ndarray) -> np.ndarray:
        """Return, for each kind and value, the largest number of records whose rows have their own values; equal rows are indistinguishable."""
        kinds_there, counts = np.unique(pairs, return_counts=True)
        place = np.minimum(np.searchsorted(kind_value, kinds_there), max(len(kind_value) - 1, 0))
        same = kind_value[place] == kinds_there if len(kind_value) else np.zeros(len(place), bool)
        right = np.zeros(len(kind_value), np.int64)
        right[place[same]] = np.minimum(sizes[place[same]], counts[same])
        return right

    def people(right: np.ndarray) -> PeopleAtRisk:
        return PeopleAtRisk.of(table, (right / np.maximum(sizes, 1))[pair_of_record], records)

    shown_of_kinds = together(of_file[rows] * values + known_of_rows[rows])
    count = int(shown_of_kinds.sum())
    graph = matches_among(anonymization.matches, at)
    looked_at = places_in(at, n)[records]
    draws, of_people = [], []
    for block in draws_of_graph(graph, DRAWS, rng.bytes(32), max(1, _BLOCK // max(graph.size, 1))):
        for assignment in block:
            right = together(generalized[records] * values + record_values[at[assignment[looked_at]]])
            draws.append(int(right.sum()))
            of_people.append(people(right).mean)
    expected = float(np.mean(draws)) if draws else 0.0
    people_expected = float(np.mean(of_people)) if of_people else 0.0
    return OwnRowsTest(
        len(at), len(records), count, expected, chance(count, draws) if len(records) else 1.0,
        _order(generalized, of_file, kind_agrees, rng), people(shown_of_kinds), people_expected,
    )  # fmt: skip


def _whole_components(anonymization: Any, rng: np.random.Generator) -> np.ndarray:
    """Return records of some components of the graph, ascending, without suppressed ones."""
    label = Candidates.of_matches(anonymization.matches).components(anonymization.n)
    sizes = np.bincount(label)
    order = rng.permutation(len(sizes))
    chosen = order[: int(np.searchsorted(np.cumsum(sizes[order]), _RECORDS)) + 1]
    return np.flatnonzero(np.isin(label, chosen) & ~anonymization.suppressed)


def _order(
    generalized: np.ndarray, of_file: np.ndarray, kind_agrees: np.ndarray, rng: np.random.Generator
) -> float:
    """Return the chance of so many neighbouring rows from neighbouring records, of rows that nothing else reads like."""
    alone = kind_agrees & (np.bincount(generalized, minlength=len(kind_agrees)) == 1)
    record = places_in(generalized, len(kind_agrees))[of_file[alone[of_file]]]
    ranks = np.argsort(np.argsort(record))
    if len(ranks) < 2:
        return 1.0

    def neighbours(order: np.ndarray) -> int:
        return int((np.abs(np.diff(order)) == 1).sum())

    return chance(neighbours(ranks), [neighbours(rng.permutation(ranks)) for _ in range(DRAWS)])
