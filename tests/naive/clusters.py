"""Classes by exhaustive search: k-member from its definition, every loss computed anew; and the best there are."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations

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


def diverse(
    cost: Cost, n: int, k: int, first: int, values: list[tuple[int, ...]], distinct: list[int]
) -> list[list[int]]:
    """Clusters as of :func:`k_member`, each with so many different values of every column; none where all have too few.

    Parameters
    ----------
    cost, n, k, first
        As there; n is at least k.
    values : list of tuple, length n
        The value of each record in every column.
    distinct : list of int
        So many different values a cluster needs at least.
    """

    def loss(cluster: list[int]) -> Fraction:
        return len(cluster) * cost(frozenset(cluster))

    def lacking(cluster: list[int]) -> list[int]:
        return [t for t, need in enumerate(distinct) if len({values[i][t] for i in cluster}) < need]

    left = list(range(n))
    clusters: list[list[int]] = []
    head = first
    while len(left) >= k:
        head = max(left, key=lambda i: (cost(frozenset([i, head])), -i))
        cluster, rest = [head], [i for i in left if i != head]
        while len(cluster) < k or lacking(cluster):
            lacks = lacking(cluster)
            new = [i for i in rest if any(values[i][t] not in {values[j][t] for j in cluster} for t in lacks)]
            fitting = new if lacks else rest
            if not fitting:
                break
            best = min(fitting, key=lambda i: (loss([*cluster, i]) - loss(cluster), i))
            cluster.append(best)
            rest.remove(best)
        if len(cluster) < k or lacking(cluster):
            break
        clusters.append(cluster)
        left = rest
    for i in left if clusters else []:
        at = min(range(len(clusters)), key=lambda c: (loss([*clusters[c], i]) - loss(clusters[c]), c))
        clusters[at].append(i)
    return clusters


def least_loss(cost: Cost, n: int, k: int) -> Fraction:
    """The least loss of all divisions of n records into classes of at least k; n is at least k.

    The lowest record that is left is put into a class with each set of at least k - 1 of the others in turn.
    """
    known: dict[frozenset[int], Fraction] = {frozenset(): Fraction(0)}

    def best(left: frozenset[int]) -> Fraction:
        if left not in known:
            first, *others = sorted(left)
            sizes = [size for size in range(k - 1, len(others) + 1) if len(others) - size not in range(1, k)]
            known[left] = min(
                len(chosen) * cost(chosen) + best(left - chosen)
                for size in sizes
                for chosen in (frozenset([first, *rest]) for rest in combinations(others, size))
            )
        return known[left]

    return best(frozenset(range(n)))
