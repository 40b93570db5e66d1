"""k-member clustering from its definition: every loss computed anew, every choice by exhaustive search."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

Cost = Callable[[frozenset[int]], Fraction]


def k_member(cost: Cost, n: int, k: int, first: int) -> list[list[int]]:
    """Clusters in the order in which they are founded.

    Parameters
    ----------
    cost : callable
        Cost of one generalized record that covers some originals; a cluster loses its size times that.
    n : int
    k : int
    first : int
        The record from which the first cluster is to be far.
    """

    def loss(cluster: list[int]) -> Fraction:
        return len(cluster) * cost(frozenset(cluster))

    if n < k:
        return [list(range(n))]
    left = list(range(n))
    clusters: list[list[int]] = []
    head = first
    while len(left) >= k:
        head = max(left, key=lambda i: (cost(frozenset([i, head])), -i))
        cluster = [head]
        left.remove(head)
        while len(cluster) < k:
            best = min(left, key=lambda i: (loss([*cluster, i]) - loss(cluster), i))
            cluster.append(best)
            left.remove(best)
        clusters.append(cluster)
    for i in left:
        at = min(range(len(clusters)), key=lambda c: (loss([*clusters[c], i]) - loss(clusters[c]), c))
        clusters[at].append(i)
    return clusters
