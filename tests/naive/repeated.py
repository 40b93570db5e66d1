"""What several releases of the same people leave together, by trying every world that fits them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from math import lcm, prod

import numpy as np

Person = int
Rows = tuple[int | None, ...]
"""The row of a person in each release; None where they have none."""


@dataclass(frozen=True)
class Published:
    """A release, as an attacker sees it who runs the method again: whose each row may be, and what it shows.

    `shown` is what stays the same of a person, the same text in all releases; `tied` names rows whose other columns were not drawn
    again: a row here -> the number of an earlier release and the row there that has the same person.
    """

    lists: Sequence[frozenset[Person]]
    shown: Sequence[Hashable]
    tied: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def people(self) -> frozenset[Person]:
        return frozenset().union(*self.lists)


@dataclass
class Left:
    """What is left of a person: ways to have a row in each release, values, and the largest probabilities of a row and of a value."""

    rows: set[Rows] = field(default_factory=set)
    values: set[Hashable] = field(default_factory=set)
    likeliest_row: Fraction = Fraction(0)
    likeliest_value: Fraction = Fraction(0)


def worlds(years: Sequence[Published], people: Sequence[Person]) -> Iterator[dict[Person, Rows]]:
    """Every way to give each of the people a row in each release that has them, so that nothing contradicts anything."""
    possible = [
        [
            (rows, {(t, row) for t, row in enumerate(rows) if row is not None})
            for rows in rows_of(person, years)
        ]
        for person in people
    ]
    world: dict[Person, Rows] = {}
    taken: set[tuple[int, int]] = set()

    def rest(at: int) -> Iterator[dict[Person, Rows]]:
        if at == len(people):
            yield dict(world)
            return
        for rows, places in possible[at]:
            if taken.isdisjoint(places):
                taken.update(places)
                world[people[at]] = rows
                yield from rest(at + 1)
                taken.difference_update(places)

    return rest(0)


def rows_of(person: Person, years: Sequence[Published]) -> Iterator[Rows]:
    """Every way to give somebody a row in each release that has them: it lists them, all show the same, and tied rows are theirs."""
    choices: list[list[int | None]] = []
    for year in years:
        listed = [row for row, members in enumerate(year.lists) if person in members]
        choices.append([*listed] or [None])
    for rows in product(*choices):
        there = [(year, row) for year, row in zip(years, rows, strict=True) if row is not None]
        ties = [year.tied[row] for year, row in there if row in year.tied]
        if len({year.shown[row] for year, row in there}) <= 1 and all(rows[t] == row for t, row in ties):
            yield rows


def left(years: Sequence[Published], shares: Mapping[Hashable, Fraction] | None = None) -> dict[Person, Left]:
    """What all releases together leave of each person.

    The attacker knows the lists, who is in each release, and how common each value is (`shares`; equally common without): a world
    is as probable as its people's values are.
    """
    result = {}
    # all worlds of the same people: shares of a common denominator are as good, and whole numbers are quicker
    common = lcm(*(share.denominator for share in (shares or {}).values()))
    number = {value: int(share * common) for value, share in (shares or {}).items()}
    for people in connected(years):
        total = 0
        weights: dict[tuple[Person, Rows], int] = defaultdict(int)
        values: dict[Rows, Hashable] = {}
        for world in worlds(years, people):
            for rows in world.values():
                if rows not in values:
                    values[rows] = next(years[t].shown[row] for t, row in enumerate(rows) if row is not None)
            weight = prod(number[values[rows]] for rows in world.values()) if shares else 1
            total += weight
            for of_person in world.items():
                weights[of_person] += weight
        beliefs = {person: Left() for person in people}
        row_weight: dict[tuple[Person, int, int], int] = defaultdict(int)
        value_weight: dict[tuple[Person, Hashable], int] = defaultdict(int)
        for (person, rows), weight in weights.items():
            beliefs[person].rows.add(rows)
            beliefs[person].values.add(values[rows])
            value_weight[person, values[rows]] += weight
            for t, row in enumerate(rows):
                if row is not None:
                    row_weight[person, t, row] += weight
        for (person, _, _), weight in row_weight.items():
            beliefs[person].likeliest_row = max(beliefs[person].likeliest_row, Fraction(weight, total))
        for (person, _), weight in value_weight.items():
            beliefs[person].likeliest_value = max(beliefs[person].likeliest_value, Fraction(weight, total))
        result.update(beliefs)
    return result


def linked(years: Sequence[Published]) -> dict[Person, dict[Hashable, Fraction]]:
    """How likely each track is a person's, for an attacker who links rows that show the same, which no two people do.

    All bijections of the people and tracks that lists join, at most 8, are tried at once: one fits if in each release a track has a
    row if and only if its person is there, and that row lists the person.
    """
    result: dict[Person, dict[Hashable, Fraction]] = {}
    for people in connected(years):
        tracks = sorted(
            {
                str(shown): shown
                for year in years
                for shown, members in zip(year.shown, year.lists, strict=True)
                if members & set(people)
            }.values(),
            key=str,
        )
        column = {track: j for j, track in enumerate(tracks)}
        place = {person: i for i, person in enumerate(people)}
        listed = tuple(
            tuple(
                sorted(
                    (column[shown], tuple(sorted(place[person] for person in members)))
                    for shown, members in zip(year.shown, year.lists, strict=True)
                    if members & set(people)
                )
            )
            for year in years
        )
        often, number = ways(len(people), len(tracks), listed)
        for person, i in place.items():
            result[person] = {
                track: Fraction(often[i][j], number) for track, j in column.items() if often[i][j]
            }
    return result


@cache
def ways(
    people: int, tracks: int, years: tuple[tuple[tuple[int, tuple[int, ...]], ...], ...]
) -> tuple[list[list[int]], int]:
    """How many bijections give each of the people each track, and how many there are; a year has tracks and whom they list.

    Many sequences of releases have the same parts: each is tried once.
    """
    fits = np.ones((people, tracks), bool)
    for year in years:
        listed = np.zeros((people, tracks), bool)
        for track, members in year:
            listed[list(members), track] = True
        present = listed.any(axis=1)[:, None]
        of_year = listed.any(axis=0)[None, :]
        fits &= (present == of_year) & (~present | listed)
    worlds = bijections(people)
    worlds = worlds[fits[np.arange(people), worlds].all(axis=1)]
    return [np.bincount(column, minlength=tracks).tolist() for column in worlds.T], len(worlds)


@cache
def bijections(n: int) -> np.ndarray:
    """All permutations of n numbers, shape (n!, n)."""
    return np.array(list(permutations(range(n))), np.int8)


def connected(years: Sequence[Published]) -> list[list[Person]]:
    """People whom lists join, directly or through others."""
    groups: list[set[Person]] = []
    for members in (each for year in years for each in year.lists):
        joined = [group for group in groups if group & members]
        groups = [group for group in groups if not group & members]
        groups.append(set(members).union(*joined))
    return [sorted(group) for group in groups]


def most_worlds(years: Sequence[Published]) -> int:
    """How many worlds of connected people there are at most: rows that show the same may be exchanged."""
    most = 1
    for people in connected(years):
        number = 1
        for year in years:
            rows = [shown for shown, each in zip(year.shown, year.lists, strict=True) if each & set(people)]
            for count in Counter(rows).values():
                for factor in range(2, count + 1):
                    number *= factor
        most = max(most, number)
    return most


def parts_by_fate(
    group: frozenset[Person], present: frozenset[Person], k: int, splits: bool
) -> tuple[frozenset[Person], list[frozenset[Person]]]:
    """Who of a group is published again, and the groups that are left of it.

    A group that is there as a whole stays. One that `splits`, a class, is divided into those who are published again and the
    rest, who left or are held back, at least k each. Else nobody is published again.
    """
    there = group & present
    gone = len(group) - len(there)
    if not gone:
        return group, [group]
    again = frozenset(sorted(there)[max(0, k - gone) :])
    if splits and len(again) >= k:
        return again, [again, group - again]
    return frozenset(), [group]
