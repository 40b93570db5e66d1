"""The three questions and DiSCO by loops over people and rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any


def linkability(
    first: Sequence[Sequence[bool]], second: Sequence[Sequence[bool]], rows: int, people: int
) -> float:
    """Mean chance that a random row that fits a person's first columns leads to the person among those who fit the row's
    second ones. Both are indexed by row and person.
    """
    total = 0.0
    for i in range(people):
        mine = [j for j in range(rows) if first[j][i]]
        for j in mine:
            if second[j][i]:
                total += 1 / len(mine) / sum(second[j])
    return total / people


def same_row(
    first: Sequence[Sequence[bool]],
    second: Sequence[Sequence[bool]],
    sizes: tuple[Sequence[float], Sequence[float]],
    people: int,
) -> float:
    """Mean chance that both halves of a person pick the same row, each one of the smallest rows that fit it."""
    total = 0.0
    for i in range(people):
        picks = []
        for fits, size in zip((first, second), sizes, strict=True):
            mine = [j for j in range(len(fits)) if fits[j][i]]
            least = min((size[j] for j in mine), default=0)
            picks.append([j for j in mine if size[j] == least])
        shared = set(picks[0]) & set(picks[1])
        total += sum(1 / len(picks[0]) / len(picks[1]) for _ in shared)
    return total / people


def inference(covers: Sequence[Sequence[bool]], rows: Sequence[Any], people: Sequence[Any]) -> float:
    """Mean chance that the commonest value on covering rows is the person's, ties shared."""
    total = 0.0
    for i, value in enumerate(people):
        seen = Counter(rows[j] for j in range(len(rows)) if covers[j][i]) or Counter(rows)
        most = max(seen.values())
        best = [item for item, many in seen.items() if many == most]
        total += (value in best) / len(best)
    return total / len(people)


def disco(covers: Sequence[Sequence[bool]], rows: Sequence[Any], people: Sequence[Any]) -> int:
    """People all of whose covering rows show one value, which is theirs."""
    many = 0
    for i, value in enumerate(people):
        seen = {rows[j] for j in range(len(rows)) if covers[j][i]}
        many += seen == {value}
    return many


def replicated_uniques(covers: Sequence[Sequence[bool]], keys: Sequence[Any]) -> int:
    """People who are unique on the key and are covered by exactly one row."""
    return sum(
        keys.count(key) == 1 and sum(row[i] for row in covers) == 1 for i, key in enumerate(list(keys))
    )


def fitting(
    conditions: Sequence[Sequence[tuple[int, float, float]]], points: Sequence[Sequence[float]]
) -> list[int]:
    """How many points lie between the two values of every coordinate of each condition."""
    return [
        sum(all(low <= point[at] <= high for at, low, high in condition) for point in points)
        for condition in conditions
    ]
