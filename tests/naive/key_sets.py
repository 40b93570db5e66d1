"""Minimal sample uniques from the definition: every set of columns, every record, every smaller set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations


def is_unique(rows: Sequence[Sequence[object]], i: int, columns: Sequence[int]) -> bool:
    """Whether no other record has the same values on the columns."""
    return not any(j != i and all(rows[j][a] == rows[i][a] for a in columns) for j in range(len(rows)))


def minimal_uniques(rows: Sequence[Sequence[object]], i: int, most: int) -> list[tuple[int, ...]]:
    """Sets of at most `most` columns on which record i is unique, and on no proper part of them."""
    q = len(rows[i])
    return [
        each
        for size in range(1, most + 1)
        for each in combinations(range(q), size)
        if is_unique(rows, i, each)
        and not any(is_unique(rows, i, part) for s in range(size) for part in combinations(each, s))
    ]


def score(rows: Sequence[Sequence[object]], i: int, most: int) -> int:
    """The sum over them of the product of (columns - j), j from their size to the largest."""
    q = len(rows[i])
    return sum(
        math.prod(max(q - j, 1) for j in range(len(each), most + 1))
        for each in minimal_uniques(rows, i, most)
    )


def intrusion(rows: Sequence[Sequence[object]], fraction: float) -> float:
    """Take each record out, and put it back or not: of the cases with one match, the share in which that one is right."""
    right = wrong = 0.0
    for i, row in enumerate(rows):
        others = [list(other) for j, other in enumerate(rows) if j != i]
        matches = others.count(list(row))
        if matches == 0:
            right += fraction  # it is back, alone, and matched
        if matches == 1:
            wrong += 1 - fraction  # it is not back, and another is matched
    return right / (right + wrong) if right + wrong else float("nan")
