"""Least costs by trying everything: of covering k records, and of k-regular graphs of a few records."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

Cost = Callable[[Sequence[int]], float]
"""The cost of the generalized record that covers some originals."""


def pair_bound(cost: Cost, n: int, i: int, k: int) -> float:
    """The (k-1)-th smallest cost of covering record i and another one; its own for k = 1."""
    others = sorted(cost([i, j]) for j in range(n) if j != i)
    return others[k - 2] if k > 1 else cost([i])


def cover_bound(cost: Cost, n: int, i: int, k: int) -> float:
    """The least cost of covering record i and k - 1 others."""
    others = [j for j in range(n) if j != i]
    return min(cost([i, *chosen]) for chosen in itertools.combinations(others, k - 1))


def least_regular(cost: Cost, n: int, k: int) -> float:
    """The least sum of costs of a k-regular graph in which every record covers its own original."""
    prices = {rows: cost(rows) for rows in itertools.combinations(range(n), k)}
    best = float("inf")

    def place(j: int, left: list[int], total: float) -> None:
        nonlocal best
        if total >= best and min(prices.values()) >= 0:
            return
        if j == n:
            best = min(best, total)
            return
        for rows, price in prices.items():
            if j in rows and all(left[i] for i in rows):
                place(j + 1, [amount - (i in rows) for i, amount in enumerate(left)], total + price)

    place(0, [k] * n, 0.0)
    return best
