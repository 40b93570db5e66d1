"""Slow references for the k-concealment family, over a cost of sets of records.

`cost(members)` is the cost of the closure of a set of records; `covers(members, i)` whether that closure covers i.
Nothing here knows how records are generalized.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, permutations

import numpy as np
from scipy.optimize import linear_sum_assignment

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


def matches_of(graph: np.ndarray) -> np.ndarray | None:
    """The same where no row is known to cover an original of its own; None without a perfect matching."""
    columns = linear_sum_assignment(~graph)[1]
    if not graph[np.arange(len(graph)), columns].all():
        return None
    values = np.empty_like(graph)
    values[:, columns] = matches(graph[:, columns])
    return values


def matches_by_matchings(graph: np.ndarray) -> np.ndarray:
    """Definition 6: which edges lie on a perfect matching, by trying all of them."""
    n = len(graph)
    values = np.zeros_like(graph)
    for order in permutations(range(n)):
        if all(graph[i, order[i]] for i in range(n)):
            values[np.arange(n), list(order)] = True
    return values


def conceal(n: int, k: int, sets: list[frozenset[int]], cost: Cost, covers: Covers) -> list[frozenset[int]]:
    """Algorithm 5, matches found anew after every widening."""
    sets = list(sets)

    def graph() -> np.ndarray:
        return np.array([[covers(sets[j], i) for j in range(n)] for i in range(n)])

    for i in range(n):
        while True:
            edges = graph()
            result = matches(edges)
            if result[i].sum() >= k:
                break
            others = [j for j in range(n) if edges[i, j] and not result[i, j]]
            best = min(others, key=lambda j: (cost(sets[i] | {j}) - cost(sets[i]), j))
            sets[i] |= {best}
    return sets
