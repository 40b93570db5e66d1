"""The minimality attack: the attacker runs the method again on exchanged values, and learns from what stays the same."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import pandas as pd
import scipy

from anonflow.errors import InfeasibleError, ParameterError
from anonflow.generalization import groups_of
from anonflow.hierarchy.wording import plural
from anonflow.option import Option
from anonflow.risk.attack_context import AttackContext
from anonflow.risk.attacker import AttackerKind, Success, percent
from anonflow.risk.attackers.people import PeopleAtRisk
from anonflow.table.identification.linkage import complete_components

MOST = 2_000
"""The most ways to exchange values that are all tried; of more, some are drawn at random."""

LEAST = 10
"""The fewest exchanges with the same class that say something about its people."""

_BY_CHANCE = 0.01
"""How often sampling alone may put somebody of a table at risk."""

Publish = Callable[[np.ndarray], Sequence[Hashable] | None]
"""Codes of everybody's values, shape (n,), int64 -> what is published of each group; None if the method refuses them."""


@dataclass(frozen=True, eq=False)
class Beliefs:
    """What the attacker believes about the people of one group, among whom values were exchanged.

    Attributes
    ----------
    people : numpy.ndarray, shape (m,), int64
    values : numpy.ndarray, shape (v,), int64
        The codes of the values that they have.
    own : numpy.ndarray, shape (m,), int64
        Which of these each of them has.
    shares : numpy.ndarray, shape (v,), float64
        The share of the people with each: the probability that the group alone gives.
    times : numpy.ndarray, shape (m, v), int64
        In how many of the exchanges that publish the same each person has each value.
    same : int
        How many exchanges these are.
    exact : bool
        Whether they are all that there are.
    """

    people: np.ndarray
    values: np.ndarray
    own: np.ndarray
    shares: np.ndarray
    times: np.ndarray
    same: int
    exact: bool

    @property
    def chance(self) -> np.ndarray:
        """The probability of each value for each person, shape (m, v); the shares where no exchange publishes the same."""
        return self.times / self.same if self.same else np.tile(self.shares, (len(self.people), 1))

    def above(self, by_chance: float) -> np.ndarray:
        """Return which probabilities are above the shares: shape (m, v), bool; of a sample, so far that chance is rarer than said."""
        if self.exact:
            return self.chance > self.shares + 1e-9
        # the probability of so many or more, if values were dealt by their shares
        tail = scipy.special.bdtrc(self.times - 1.0, self.same, self.shares)
        return (self.times > 0) & (self.shares < 1) & (tail < by_chance)


def ways(values: np.ndarray, groups: Sequence[np.ndarray]) -> int:
    """Return in how many ways values can be exchanged inside groups of people.

    Parameters
    ----------
    values : numpy.ndarray, shape (n,), int64
    groups : sequence of numpy.ndarray
    """
    number = 1
    for people in groups:
        number *= math.factorial(len(people))
        for count in np.unique(values[people], return_counts=True)[1].tolist():
            number //= math.factorial(count)
    return number


def beliefs(
    values: np.ndarray,
    groups: Sequence[np.ndarray],
    publish: Publish,
    exchanges: int,
    rng: np.random.Generator,
    most: float = MOST,
) -> list[Beliefs]:
    """Exchange values inside groups of people, publish again, and count who has which value where the same is published.

    Parameters
    ----------
    values : numpy.ndarray, shape (n,), int64
        Codes of the true values.
    groups : sequence of numpy.ndarray, int64
        Disjoint; values are exchanged inside each.
    publish : callable
    exchanges : int
        If there are more than `most` ways, how many of them are drawn at random.
    rng : numpy.random.Generator
    most : float

    Returns
    -------
    list of Beliefs
        One for each group. Where all ways are tried, of those that publish the same of all groups: exact. Else of those that publish
        the same of this group: exact but for sampling if what happens in one group says nothing about another.
    """
    published = publish(values)
    coded = [np.unique(values[people], return_inverse=True) for people in groups]
    times = [
        np.zeros((len(people), len(kinds)), np.int64)
        for people, (kinds, _) in zip(groups, coded, strict=True)
    ]
    same = np.zeros(len(groups), np.int64)
    exact = ways(values, groups) <= most
    counts = [np.bincount(codes) for _, codes in coded]
    drawn: Iterator[Sequence[np.ndarray]]
    if exact:
        drawn = itertools.product(*(list(_deals(count.tolist())) for count in counts))
    else:
        drawn = ([rng.permutation(codes) for _, codes in coded] for _ in range(exchanges))
    for dealt in drawn:
        assignment = values.copy()
        for people, (kinds, _), codes in zip(groups, coded, dealt, strict=True):
            assignment[people] = kinds[codes]
        again = publish(assignment)
        # a sample hardly ever publishes the whole file again: its groups are compared one by one
        if again is None or published is None or (exact and list(again) != list(published)):
            continue
        for g, codes in enumerate(dealt):
            if again[g] == published[g]:
                same[g] += 1
                times[g][np.arange(len(codes)), codes] += 1
    return [
        Beliefs(people, kinds, codes, count / max(len(people), 1), often, int(number), exact)
        for people, (kinds, codes), count, often, number in zip(
            groups, coded, counts, times, same, strict=True
        )
    ]


def _deals(counts: list[int]) -> Iterator[np.ndarray]:
    """Yield each way to deal values that occur so often once."""
    remainder = list(counts)

    def rest(hand: list[int]) -> Iterator[np.ndarray]:
        if len(hand) == sum(counts):
            yield np.array(hand, np.int64)
            return
        for value, count in enumerate(remainder):
            if count:
                remainder[value] -= 1
                yield from rest([*hand, value])
                remainder[value] += 1

    return rest([])


def lists_of(anonymization: Any) -> np.ndarray | None:
    """Return for each person the group whose rows may be the person's: shape (n,), int64.

    Parameters
    ----------
    anonymization : Anonymization

    Returns
    -------
    numpy.ndarray or None
        -1 for people of whom nothing is published: suppressed ones that are no class. None where a draw changes what rows show.
    """
    hidden = anonymization.suppressed
    if anonymization.classes is not None:
        label = anonymization.classes
    elif anonymization.matches is not None:
        label, complete = complete_components(np.where(hidden[:, None], -1, anonymization.matches))
        if not complete[label[~hidden]].all():
            return None
    else:
        return None
    label = np.unique(label, return_inverse=True)[1].astype(np.int64)
    is_class = hidden.sum() >= anonymization.k * anonymization.table.unit_rows
    return np.where(hidden, label.max(initial=-1) + 1 if is_class else -1, label)


def exchanged(
    anonymization: Any, column: str, exchanges: int, rng: np.random.Generator
) -> list[Beliefs] | None:
    """Exchange values inside the classes of a result, run its steps again, and return what this tells; None where a draw decides.

    Parameters
    ----------
    anonymization : Anonymization
        With classes, or with complete components.
    column : str
        That is published beside the quasi-identifiers.
    exchanges : int
        As :func:`beliefs`.
    rng : numpy.random.Generator
    """
    table = anonymization.table
    values = pd.factorize(table.frame[column], use_na_sentinel=False)[0].astype(np.int64)
    first = np.unique(values, return_index=True)[1]
    label = lists_of(anonymization)
    if label is None:
        return None
    groups = [people for people in groups_of(label) if label[people[0]] >= 0]

    def publish(assignment: np.ndarray) -> Sequence[Hashable] | None:
        cells = table.frame[column].iloc[first[assignment]].set_axis(table.frame.index)
        try:
            again = anonymization.of_table(table.with_others({column: cells}))
        except InfeasibleError:
            return None
        others = lists_of(again)
        if others is None:
            return None
        size = np.bincount(others + 1)
        numbers = again.generalization.numbers()
        return [
            (
                np.ptp(others[people]),
                size[others[people[0]] + 1],
                others[people[0]] < 0,
                numbers[:, people].tobytes(),
            )
            for people in groups
        ]

    return beliefs(values, groups, publish, exchanges, rng)


@dataclass(frozen=True, eq=False)
class Minimality(
    AttackerKind,
    name="minimality",
    not_of_sample="each exchange runs the method again; try it in Python, with af.attack(table, anonymization, 'minimality')",
    does="asks why classes were united",
    needs_truth=True,
    knows="everybody's quasi-identifiers and the method with its seeds; asks why it changed what it changed",
):
    """Runs the method again on exchanged values, and asks why it changed what it changed.

    It exchanges sensitive values among the people of each class as published, runs method and diversity again with the same
    seeds, and keeps the exchanges that publish the same. If the method decides by nobody's value, all do.

    Parameters
    ----------
    column : str, optional
        The sensitive column; by default the one that was made diverse last, else the only one of the table.
    exchanges : int
        How many are drawn at random; each takes as long as the release did. Where there are at most 2,000, all are tried.
    anonymization : Anonymization, optional
        The released anonymization; by default the context's.

    Notes
    -----
    Wong, Fu, Wang and Pei, VLDB 2007; Cormode, Srivastava, Li and Li, PVLDB 3, 2010. It knows the seeds, which is more than others
    know. Where exchanges are drawn, somebody counts as at risk only if sampling alone would put anybody at risk in 1 of 100 tables.
    """

    column: str | None = None
    exchanges: Annotated[int, Option("Exchanges", least=1)] = 100
    anonymization: Any = None

    def with_result(self, anonymization: Any) -> AttackerKind:
        """Return the attacker with the result whose steps are run again."""
        return replace(self, anonymization=anonymization)

    def attack(self, context: AttackContext) -> Success:
        """Attack the release. O(exchanges) runs of the method.

        Raises
        ------
        ParameterError
            If there is no anonymization whose steps could be run again, no such column, or a draw changes what rows show.
        """
        anonymization = self.anonymization if self.anonymization is not None else context.anonymization
        if anonymization is None:
            raise ParameterError(
                "minimality: there is no result in memory; give the result whose steps are run again, with risk.Minimality(anonymization=...)"
            )
        column = self._column(anonymization)
        groups = exchanged(anonymization, column, self.exchanges, context.rng)
        if groups is None:
            raise ParameterError(
                "minimality: a draw, or covers alone, decide what a person's rows show; only classes, and graphs that became "
                "classes, can be run again"
            )
        return self._success(anonymization, groups)

    def _column(self, anonymization: Any) -> str:
        table = anonymization.table
        latest = anonymization.parameters.get("diversify")
        column = self.column or (latest["column"] if latest else None)
        if column is None and len(table.sensitive) == 1:
            column = table.sensitive[0]
        if column not in table.other_columns:
            raise ParameterError("minimality: column names a published column besides the quasi-identifiers")
        return str(column)

    def _success(self, anonymization: Any, groups: Sequence[Beliefs]) -> Success:
        n = anonymization.n
        by_chance = _BY_CHANCE / max(1, sum(group.times.size for group in groups))
        top_chance, share = np.full(n, np.nan), np.full(n, np.nan)
        certain, higher = np.zeros(n, bool), np.zeros(n, bool)
        promise, worst, unknown = 0.0, 0.0, 0
        for group in groups:
            above = group.above(by_chance)
            chance = np.where(above, group.chance, group.shares)
            certain[group.people] = (chance >= 1 - 1e-12).any(axis=1)
            higher[group.people] = above.any(axis=1)
            promise, worst = max(promise, float(group.shares.max())), max(worst, float(chance.max()))
            top_chance[group.people] = chance.max(axis=1)
            share[group.people] = group.shares.max()
            unknown += 0 if group.exact or group.same >= LEAST else len(group.people)
        at = np.flatnonzero(~np.isnan(top_chance))
        risk = PeopleAtRisk.of(anonymization.table, top_chance[at], at)
        sentence = (
            f"An attacker who runs the method again and asks why it changed what it changed is certain of the value of {int(certain.sum()):,} of {plural(len(at), 'person')}; "
            f"the largest probability of a value is {percent(worst)}, and the classes promise {percent(promise)} at most. "
            f"For {plural(int(higher.sum()), 'person')} it is higher than the share in the class."
        )
        if unknown:
            sentence += (
                f" For {plural(unknown, 'person')} fewer than {LEAST} of {self.exchanges:,} exchanges give the same class, too few to say what "
                "the method tells of them."
            )
        return risk.success(
            float(np.mean(share[at])) if len(at) else 0.0, sentence, worst=worst, at_risk=int(higher.sum()),
            counted=not all(group.exact for group in groups),
        )  # fmt: skip
