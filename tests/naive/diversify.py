"""Diversity by widening and by uniting, from the definitions: all perfect matchings, every cost computed anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import permutations

Cost = Callable[[frozenset[int]], Fraction]
Covers = Callable[[frozenset[int], int], bool]


def matches(n: int, boxes: list[frozenset[int]], covers: Covers) -> list[set[int]]:
    """For each original the rows on a perfect matching with it, by trying all permutations. n <= 7."""
    result: list[set[int]] = [set() for _ in range(n)]
    edge = [[covers(boxes[j], i) for j in range(n)] for i in range(n)]
    for order in permutations(range(n)):
        if all(edge[i][j] for i, j in enumerate(order)):
            for i, j in enumerate(order):
                result[i].add(j)
    return result


def lacks(criterion: str, value: float, values: Iterable[str]) -> Fraction:
    """How much diversity some values lack: p less distinct values, or l less size / most frequent, in doubles."""
    counts = Counter(values)
    own = len(counts) if criterion == "p" else counts.total() / max(counts.values())
    return Fraction(max(value - own, 0.0))


def algorithm_7(
    n: int,
    boxes: list[frozenset[int]],
    values: list[str],
    order: list[int],
    first: list[int],
    cost: Cost,
    covers: Covers,
    criterion: str,
    value: float,
) -> list[frozenset[int]]:
    """Boxes (as the originals that each was widened by) after passes over `order` until none fails.

    Parameters
    ----------
    order : list of int
        Originals to visit, one of each kind of equal ones.
    first : list of int
        For each original the first one that is equal to it.
    """
    boxes = list(boxes)
    while True:
        changed = False
        for i in order:
            while True:
                rows = matches(n, boxes, covers)[i]
                shown = [values[j] for j in rows]
                if not lacks(criterion, value, shown):
                    break
                counts = Counter(shown)
                top = max(counts.values())
                wanted = [
                    j
                    for j in range(n)
                    if j not in rows
                    and (values[j] not in counts if criterion == "p" else counts[values[j]] < top)
                ]

                def increase(j: int, i: int = i) -> Fraction:
                    there = cost(boxes[j] | {i}) - cost(boxes[j])
                    return there + cost(boxes[i] | {first[j]}) - cost(boxes[i])

                j = min(wanted, key=lambda j: (increase(j), j))
                boxes[j] |= {i}
                boxes[i] |= {first[j]}
                changed = True
        if not changed:
            return boxes
