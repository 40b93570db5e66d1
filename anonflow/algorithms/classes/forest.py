"""The forest algorithm (Aggarwal et al., Journal of Privacy Technology 2005): a guaranteed approximation."""

from __future__ import annotations

import numpy as np

from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.kernels.classes.forest import grow_jit, split_jit
from anonflow.kernels.concealment import near_jit

BLOCK = 256
"""Records whose neighbours are looked for at a time."""


def forest(part: Partition, k: int) -> Outcome:
    """Return equivalence classes of k to about 3k - 5 records: trees of near records, cut into parts.

    While a tree has fewer than k records, its record without an edge gets one to its nearest neighbour outside
    the tree. Trees that are too large are then cut.

    Parameters
    ----------
    part : Partition
        P records.
    k : int

    Returns
    -------
    Outcome
        With classes. Facts: their number, `found`.

    Notes
    -----
    docs/reference/departures.md, Forest. The loss is at most 3k - 3 times the least of all k-anonymizations where it is a tree
    measure: where the cost of a set is at most the sum of the costs of the edges of a tree over it. The paper does not
    say which tree is joined first: we take that of the lowest record. It does not say either how to cut under a vertex
    that is a Steiner copy itself: our cut may leave a part of up to 3k - 3 records instead of max(2k - 1, 3k - 5).
    O(P^2 q + P k) time, O(P (q + k)) memory.
    """
    labels, clusters = forest_labels(part, k)
    return Outcome.of_classes(part.records, labels, found=clusters)


def forest_labels(part: Partition, k: int) -> tuple[np.ndarray, int]:
    """Return the part of each record, shape (P,), int64, and the number of parts.

    Parameters
    ----------
    part : Partition
    k : int
    """
    n = part.n
    origin = part.originals()
    nearest = np.empty((n, min(n, k)), np.int32)
    for start in range(0, n, BLOCK):
        stop = min(n, start + BLOCK)
        costs = np.empty((stop - start, nearest.shape[1]))
        near_jit(part.plan, origin, start, stop, nearest[start:stop], costs)
    to = np.empty(n, np.int64)
    grow_jit(nearest, k, to)
    labels = np.zeros(n, np.int64)
    clusters = split_jit(to, k, labels)
    return labels, int(clusters)


FOREST = Algorithm(
    name="forest",
    run=forest,
    family="clustering",
    paper="Aggarwal et al.: Approximation algorithms for k-anonymity. Journal of Privacy Technology, 2005",
    guarantee="k-anonymity",
    complexity="O(n P q) in partitions of P",
    summary="a baseline: equal records within 3k - 3 of the least loss for tree measures",
    colour="#d9731a",
    shape="circle",
)
