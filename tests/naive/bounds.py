"""Least costs by trying everything: of covering k records, and of k-regular graphs of a few records."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from scipy.optimize import linprog

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


def least_fractional(cost: Cost, n: int, k: int, whole: float) -> float:
    """The least cost of fractions of sets of k records in which each record is k times, or suppressed at the cost `whole`."""
    sets = list(itertools.combinations(range(n), k))
    member = np.array([[i in rows for rows in sets] for i in range(n)], float)
    prices = [*(cost(rows) for rows in sets), *[whole] * n]
    return float(linprog(prices, A_eq=np.hstack([member, k * np.eye(n)]), b_eq=np.full(n, k)).fun)


def least_classes(cost: Cost, n: int, k: int, whole: float) -> float:
    """The least sum of costs of records in classes of at least k, or suppressed at the cost `whole` each."""

    def place(left: tuple[int, ...]) -> float:
        if not left:
            return 0.0
        first, *others = left
        best = whole + place(tuple(others))
        for size in range(k - 1, min(2 * k - 1, len(left))):
            for chosen in itertools.combinations(others, size):
                rest = tuple(i for i in others if i not in chosen)
                best = min(best, (size + 1) * cost([first, *chosen]) + place(rest))
        return best

    return place(tuple(range(n)))
