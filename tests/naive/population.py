"""Population risk from its definitions: sums over every class and every possible size, one by one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache


def zayatz(sizes: Sequence[int], people: int) -> float:
    """Sample uniques times the chance that one is a population unique, over the sampling fraction."""
    n = sum(sizes)
    ways = {f: f * math.comb(people - f, n - 1) / math.comb(people, n) for f in set(sizes)}
    shown = sum(ways[f] for f in sizes)
    if 1 not in ways or shown == 0:
        return 0.0
    chance = sum(ways[1] for f in sizes if f == 1) / shown
    return sizes.count(1) * chance / (n / people)


def pitman_singletons(alpha: float, theta: float, people: int) -> float:
    """Expected singletons of Pitman's partition: how likely the last one is alone, times N, seat by seat."""
    product = 1.0
    for i in range(people - 1):
        product *= (theta + alpha + i) / (theta + 1 + i)
    return people * product


def pitman_log_likelihood(sizes: Sequence[int], alpha: float, theta: float) -> float:
    """Of a partition into classes of these sizes."""
    n = sum(sizes)
    total = sum(math.log(theta + i * alpha) for i in range(1, len(sizes)))
    total -= sum(math.log(theta + i) for i in range(1, n))
    return total + sum(math.log(i - alpha) for size in sizes for i in range(1, size))


@cache
def individual_risk(f: int, people: float, terms: int = 200_000) -> float:
    """E(1 / F | f) with F - f negative binomial, size by size."""
    p = f / people
    chance, total = p**f, 0.0
    for extra in range(terms):
        total += chance / (f + extra)
        chance *= (f + extra) / (extra + 1) * (1 - p)
    return total
