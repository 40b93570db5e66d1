"""Measures of an analysis from tables of codes, row by row. Imports nothing from anonflow."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence

Rows = Sequence[Sequence[int]]


def distance(original: Rows, release: Rows, columns: Sequence[int], lost: float) -> float:
    """Total variation distance of a marginal; suppressed rows are in no cell."""
    p = Counter(tuple(row[c] for c in columns) for row in original)
    q = Counter(tuple(row[c] for c in columns) for row in release)
    cells = set(p) | set(q)
    gap = sum(abs(p[cell] / len(original) - (1 - lost) * q[cell] / len(release)) for cell in cells)
    return (gap + lost) / 2


def k_marginals(original: Rows, release: Rows, ways: int, lost: float) -> float:
    """NIST's score over all marginals."""
    c = len(original[0])
    results = [
        distance(original, release, columns, lost) for columns in itertools.combinations(range(c), ways)
    ]
    return 1000 * (1 - sum(results) / len(results))


def cramer(a: Sequence[int], b: Sequence[int]) -> float:
    """Cramer's V."""
    n, rows, columns, both = len(a), Counter(a), Counter(b), Counter(zip(a, b, strict=True))
    if min(len(rows), len(columns)) < 2:
        return 0.0
    chi = sum(
        (both[x, y] - rows[x] * columns[y] / n) ** 2 / (rows[x] * columns[y] / n)
        for x in rows
        for y in columns
    )
    return math.sqrt(chi / n / (min(len(rows), len(columns)) - 1))


def ratio(groups: Sequence[int], numbers: Sequence[float]) -> float:
    """The correlation ratio."""
    mean = sum(numbers) / len(numbers)
    total = sum((x - mean) ** 2 for x in numbers)
    between = 0.0
    for group in set(groups):
        own = [x for x, g in zip(numbers, groups, strict=True) if g == group]
        between += len(own) * (sum(own) / len(own) - mean) ** 2
    return math.sqrt(between / total) if total else 0.0


def overlap(interval: tuple[float, float], other: tuple[float, float]) -> float:
    """Of two intervals."""
    both = min(interval[1], other[1]) - max(interval[0], other[0])
    if both < 0:
        return 0.0
    return 0.5 * (both / (interval[1] - interval[0]) + both / (other[1] - other[0]))
