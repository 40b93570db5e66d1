"""Slow references for two-phase: what a graph costs, and which exchanges of matches would lower that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np

Cost = Callable[[Sequence[int]], float]


def total(matches: np.ndarray, cost: Cost) -> float:
    """The sum over records of the cost of covering all they match."""
    return sum(cost(row) for row in matches.tolist())


def least_assignment(n: int, edges: set[tuple[int, int]], cost: dict[tuple[int, int], float]) -> float | None:
    """The least cost of an assignment among some edges, all tried; None where there is none."""
    sums = [
        sum(cost[i, order[i]] for i in range(n))
        for order in permutations(range(n))
        if all((i, order[i]) in edges for i in range(n))
    ]
    return min(sums, default=None)


def best_trade(matches: np.ndarray, cost: Cost) -> float:
    """By how much the best exchange of one match each (never the self-match) between two records changes the sum.

    0 where none lowers it; an exchange that doubles an edge is none.
    """
    n, k = matches.shape
    best = 0.0
    for a in range(n):
        for b in range(a):
            for d in range(1, k):
                for e in range(1, k):
                    one, other = matches[a].copy(), matches[b].copy()
                    if other[e] in one or one[d] in other:
                        continue
                    one[d], other[e] = other[e], one[d]
                    change = sum(cost(row.tolist()) for row in (one, other))
                    change -= sum(cost(matches[j].tolist()) for j in (a, b))
                    best = min(best, change)
    return best


def least_distances(
    rows: Sequence[Sequence[object]], costs: Sequence[float], count: int
) -> list[list[float]]:
    """For each row the `count` least sums of costs of the cells in which it differs from a row, itself among them."""
    return [
        sorted(sum(cost for cost, a, b in zip(costs, one, other, strict=True) if a != b) for other in rows)[
            :count
        ]
        for one in rows
    ]
