"""The three questions and DiSCO by loops over people and rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any


def linkability(covers: Sequence[Sequence[bool]], rows: Sequence[Any], people: Sequence[Any]) -> float:
    """Mean chance that a random covering row leads to the person among those with the row's other cells.

    `covers` is indexed by row and person; `rows` and `people` are the other cells of each.
    """
    total = 0.0
    for i, cells in enumerate(people):
        mine = [j for j in range(len(rows)) if covers[j][i]]
        for j in mine:
            if rows[j] == cells:
                total += 1 / len(mine) / sum(other == cells for other in people)
    return total / len(people)


def inference(covers: Sequence[Sequence[bool]], rows: Sequence[Any], people: Sequence[Any]) -> float:
    """Mean chance that the commonest value on covering rows is the person's, ties shared."""
    total = 0.0
    for i, value in enumerate(people):
        seen = Counter(rows[j] for j in range(len(rows)) if covers[j][i]) or Counter(rows)
        most = max(seen.values())
        best = [one for one, many in seen.items() if many == most]
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
