"""Slow references for k-concealment, agglomerative clustering and forests, over a cost of sets of records.

`cost(members)` is the cost of the closure of a set of records; `covers(members, i)` whether that closure covers i.
Nothing here knows how records are generalized.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from math import log2

import numpy as np

Cost = Callable[[frozenset[int]], float]
Covers = Callable[[frozenset[int], int], bool]


def expansion(n: int, k: int, cost: Cost, covers: Covers) -> list[frozenset[int]]:
    """Algorithm 2: what is covered joins first of equal increases, then the lowest position."""
    sets = []
    for i in range(n):
        chosen = frozenset([i])
        while len(chosen) < k:
            best = min(
                (j for j in range(n) if j not in chosen),
                key=lambda j: (cost(chosen | {j}) - cost(chosen), not covers(chosen, j), j),
            )
            chosen |= {best}
        sets.append(chosen)
    return sets


def exhaustive(n: int, k: int, cost: Cost) -> list[float]:
    """Algorithm 1: the least cost of each record with k - 1 others."""
    return [
        min(cost(frozenset([i, *others])) for others in combinations([j for j in range(n) if j != i], k - 1))
        for i in range(n)
    ]


def cover_all(n: int, k: int, sets: list[frozenset[int]], cost: Cost, covers: Covers) -> list[frozenset[int]]:
    """Algorithm 3, in the order of the records."""
    sets = list(sets)
    for i in range(n):
        have = [j for j in range(n) if covers(sets[j], i)]
        others = [j for j in range(n) if j not in have]
        others.sort(key=lambda j: (cost(sets[j] | {i}) - cost(sets[j]), j))
        for j in others[: max(0, k - len(have))]:
            sets[j] |= {i}
    return sets


def matches(graph: np.ndarray) -> np.ndarray:
    """Which edges i -> j (record j covers original i) lie on a cycle; every record covers its own original."""
    n = len(graph)
    reach = graph | np.eye(n, dtype=bool)
    for via in range(n):
        reach |= reach[:, via][:, None] & reach[via][None, :]
    return graph & reach.T


def conceal(n: int, k: int, sets: list[frozenset[int]], cost: Cost, covers: Covers) -> list[frozenset[int]]:
    """Algorithm 5, matches found anew after every widening."""
    sets = list(sets)

    def graph() -> np.ndarray:
        return np.array([[covers(sets[j], i) for j in range(n)] for i in range(n)])

    for i in range(n):
        while True:
            edges = graph()
            found = matches(edges)
            if found[i].sum() >= k:
                break
            others = [j for j in range(n) if edges[i, j] and not found[i, j]]
            best = min(others, key=lambda j: (cost(sets[i] | {j}) - cost(sets[i]), j))
            sets[i] |= {best}
    return sets


def dist(kind: str, cost: Cost, one: frozenset[int], other: frozenset[int]) -> float:
    joint, a, b = cost(one | other), cost(one), cost(other)
    if kind == "weighted":
        return len(one | other) * joint - len(one) * a - len(other) * b
    if kind == "plain":
        return joint - a - b
    if kind == "log":
        return (joint - a - b) / log2(len(one | other))
    return joint / (a + b + 0.1)


def agglomerative(n: int, k: int, cost: Cost, kind: str, modified: bool) -> list[frozenset[int]]:
    """Clusters are named by the lowest record of what they were merged from."""
    unripe: dict[int, frozenset[int]] = {i: frozenset([i]) for i in range(n)}
    ripe: list[frozenset[int]] = []
    while len(unripe) > 1:
        _, low, high = min(
            (dist(kind, cost, unripe[a], unripe[b]), a, b) for a, b in combinations(sorted(unripe), 2)
        )
        merged = unripe[low] | unripe.pop(high)
        unripe[low] = merged
        if len(merged) < k:
            continue
        del unripe[low]
        while modified and len(merged) > k:
            leaves = min(merged, key=lambda r: (cost(merged - {r}), r))
            merged -= {leaves}
            unripe[leaves] = frozenset([leaves])
        ripe.append(merged)
    for last in unripe.values():
        if not ripe:
            return [last]
        for i in sorted(last):
            at = min(range(len(ripe)), key=lambda c: (dist(kind, cost, frozenset([i]), ripe[c]), c))
            ripe[at] |= {i}
    return ripe


def least_classes(n: int, k: int, cost: Cost) -> float:
    """The least total cost of any partition into classes of at least k: sum of size times cost."""

    def best(left: tuple[int, ...]) -> float:
        if not left:
            return 0.0
        first, rest = left[0], left[1:]
        found = float("inf")
        for size in range(k - 1, len(rest) + 1):
            if 0 < len(rest) - size < k:
                continue
            for others in combinations(rest, size):
                mine = frozenset([first, *others])
                below = best(tuple(i for i in rest if i not in mine))
                found = min(found, len(mine) * cost(mine) + below)
        return found

    return best(tuple(range(n)))


def is_tree_of_parts(sizes: Sequence[int], k: int) -> bool:
    """Sizes that the forest algorithm may leave."""
    return min(sizes) >= k and max(sizes) <= max(2 * k - 1, 3 * k - 3)
