"""Agglomerative clustering and the forest algorithm from their definitions, every cost computed anew."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction

Cost = Callable[[frozenset[int]], Fraction]


def distance(dist: str, cost: Cost, values: Iterable[int], other: Iterable[int]) -> float | Fraction:
    """Distance of two clusters: docs/reference/departures.md, Agglomerative."""
    a, b = frozenset(values), frozenset(other)
    joint = cost(a | b)
    size = len(a) + len(b)
    if dist == "weighted":
        return size * joint - len(a) * cost(a) - len(b) * cost(b)
    if dist == "plain":
        return joint - cost(a) - cost(b)
    if dist == "log":
        return float(joint - cost(a) - cost(b)) / math.log2(size)
    return float(joint) / (float(cost(a)) + float(cost(b)) + 0.1)


def agglomerative(cost: Cost, n: int, k: int, dist: str, modified: bool) -> list[list[int]]:
    """Clusters in the order in which they got ripe; the identity of a cluster is its lowest first record."""
    unripe: dict[int, list[int]] = {i: [i] for i in range(n)}
    ripe: list[list[int]] = []
    while len(unripe) > 1:
        low, high = min(
            ((a, b) for a in unripe for b in unripe if a < b),
            key=lambda pair: (distance(dist, cost, unripe[pair[0]], unripe[pair[1]]), pair),
        )
        unripe[low] += unripe.pop(high)
        if len(unripe[low]) >= k:
            cluster = unripe.pop(low)
            while modified and len(cluster) > k:
                # S less R is nearest to S where it costs least: every dist grows as that falls
                out = min(cluster, key=lambda i: (cost(frozenset(cluster) - {i}), i))
                cluster.remove(out)
                unripe[out] = [out]
            ripe.append(cluster)
    for left in unripe.values():
        if not ripe:
            return [sorted(left)]
        for i in sorted(left):
            at = min(range(len(ripe)), key=lambda c: (distance(dist, cost, [i], ripe[c]), c))
            ripe[at].append(i)
    return [sorted(cluster) for cluster in ripe]


def forest_edges(cost: Cost, n: int, k: int) -> list[int]:
    """Where each record's edge leads, -1 where it has none: the component of the lowest record grows first."""
    to = [-1] * n
    part = list(range(n))
    for i in range(n):
        while part.count(part[i]) < k:
            mine = [v for v in range(n) if part[v] == part[i]]
            (u,) = (v for v in mine if to[v] < 0)
            near = sorted((v for v in range(n) if v != u), key=lambda v: (cost(frozenset({u, v})), v))[
                : k - 1
            ]
            v = next(v for v in near if v not in mine)
            to[u] = v
            taken = part[v]
            part = [part[i] if p == taken else p for p in part]
    return to


def least_loss(cost: Cost, n: int, k: int) -> Fraction:
    """The least sum of costs over records of all partitions into parts of at least k."""
    best: dict[frozenset[int], Fraction] = {frozenset(): Fraction(0)}

    def solve(left: frozenset[int]) -> Fraction:
        if left in best:
            return best[left]
        first = min(left)
        rest = sorted(left - {first})
        result = None
        for mask in range(1 << len(rest)):
            part = frozenset([first, *(v for b, v in enumerate(rest) if mask >> b & 1)])
            remaining = left - part
            if len(part) < k or 0 < len(remaining) < k:
                continue
            value = len(part) * cost(part) + solve(remaining)
            if result is None or value < result:
                result = value
        assert result is not None
        best[left] = result
        return result

    return solve(frozenset(range(n)))
