"""Slow references for two-phase: what a graph costs, and which exchanges of matches would lower that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations, product

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
                    item, other = matches[a].copy(), matches[b].copy()
                    if other[e] in item or item[d] in other:
                        continue
                    item[d], other[e] = other[e], item[d]
                    change = sum(cost(row.tolist()) for row in (item, other))
                    change -= sum(cost(matches[j].tolist()) for j in (a, b))
                    best = min(best, change)
    return best


def best_cycle(matches: np.ndarray, cost: Cost) -> float:
    """By how much the best cycle of exchanges changes the sum: each of some records gives a match to the next one.

    All cycles are tried that pass every record at most once and double no edge; 0 where none lowers the sum.
    """
    n, k = matches.shape
    best = 0.0
    for size in range(2, n + 1):
        for circle in permutations(range(n), size):
            if circle[0] != min(circle):
                continue  # the same one, begun elsewhere
            for slots in product(range(1, k), repeat=size):
                change = 0.0
                for e, j in enumerate(circle):
                    gained = matches[circle[e - 1], slots[e - 1]]
                    if gained in matches[j]:
                        break
                    row = matches[j].tolist()
                    row[slots[e]] = gained
                    change += cost(row) - cost(matches[j].tolist())
                else:
                    best = min(best, change)
    return best


def least_distances(
    rows: Sequence[Sequence[object]], costs: Sequence[float], count: int
) -> list[list[float]]:
    """For each row the `count` least sums of costs of the cells in which it differs from a row, itself among them."""
    return [
        sorted(sum(cost for cost, a, b in zip(costs, row, other, strict=True) if a != b) for other in rows)[
            :count
        ]
        for row in rows
    ]
