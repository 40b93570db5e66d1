"""Clusters of at least k records, one after the other (Byun et al., DASFAA 2007)."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.costs import join_row, move, widen
from anonflow.kernels.greedy import least
from anonflow.kernels.jit import jit
from anonflow.kernels.ordering import sort
from anonflow.kernels.state import Plan, State

__all__ = ["k_member_clusters", "k_member_clusters_jit"]


def drop(work: State, ids: np.ndarray, at: int, m: int) -> None:
    """Remove the record in slot `at` from the first `m`: the last one moves into its slot."""
    if at != m - 1:
        move(work, at, m - 1, work)
        ids[at] = ids[m - 1]


drop_jit = jit(drop)


def k_member_clusters(
    plan: Plan, origin: State, work: State, heads: State, first: int, k: int, labels: np.ndarray
) -> int:
    """Label each record with its cluster; return the number of clusters.

    O(n^2 q). Records without a cluster are stored side by side in `work`, so that every search is one row of joins.

    Parameters
    ----------
    plan : Plan
    origin : State
        n originals, n >= k.
    work : State
        Room for n.
    heads : State
        Room for n // k; at the end the generalized record of each cluster.
    first : int
        The record from which the first cluster is to be far.
    k : int
        At least 1.
    labels : numpy.ndarray, shape (n,), int64
        Written.

    Returns
    -------
    int
    """
    n = len(labels)
    out = np.empty(n)
    ids = np.empty(n, np.int64)
    sizes = np.zeros(n // k, np.int64)
    start = np.int64(0)  # a literal would be a type of its own
    for i in range(n):
        move(work, i, i, origin)
        ids[i] = i
    m = n
    far = first
    c = 0
    while m >= k:
        join_row(plan, origin, far, work, start, m, out)
        for s in range(m):
            out[s] = -out[s]
        at = least(out, ids, m)
        far = ids[at]
        labels[far] = c
        move(heads, c, at, work)
        drop(work, ids, at, m)
        m -= 1
        for _ in range(1, k):
            # The cluster's size is the same for every candidate: least increase is least cost of the join.
            join_row(plan, heads, c, work, start, m, out)
            at = least(out, ids, m)
            labels[ids[at]] = c
            widen(plan, heads, c, origin, ids[at])
            drop(work, ids, at, m)
            m -= 1
        sizes[c] = k
        c += 1
    clusters = np.arange(c)
    rest = ids[:m]
    sort(rest)
    for i in rest:
        join_row(plan, origin, i, heads, start, np.int64(c), out)
        for s in range(c):
            # (size + 1) new - size old, without a product that could be off the grid of costs
            out[s] += sizes[s] * (out[s] - heads.cost[s])
        at = least(out, clusters, c)
        labels[i] = at
        sizes[at] += 1
        widen(plan, heads, at, origin, i)
    return c


k_member_clusters_jit = jit(k_member_clusters)
