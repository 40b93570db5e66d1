"""Clusters of at least k records, one after the other, with enough different values of columns (Byun et al., DASFAA 2007)."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.costs import join_row, move, widen
from anonflow.kernels.greedy import least
from anonflow.kernels.jit import jit
from anonflow.kernels.state import Plan, State

__all__ = ["k_member_clusters", "k_member_clusters_jit"]


def drop(work: State, ids: np.ndarray, at: int, m: int) -> None:
    """Remove the record in slot `at` from the first `m`: the last one moves into its slot."""
    if at != m - 1:
        move(work, at, m - 1, work)
        ids[at] = ids[m - 1]


drop_jit = jit(drop, borrows=True)


def k_member_clusters(
    plan: Plan,
    origin: State,
    work: State,
    heads: State,
    first: int,
    k: int,
    values: np.ndarray,
    distinct: np.ndarray,
    many: int,
    labels: np.ndarray,
) -> int:
    """Label each record with its cluster; return the number of clusters. O(n^2 (q + c)).

    Records without a cluster are stored side by side in `work`, so that every search is one row of joins. While a cluster
    lacks different values of a column, only records with a value of it that is new to the cluster may join.

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
    values : numpy.ndarray, shape (n, c), int64
        Each record's value in every column; no two columns share a number. Without columns a cluster has k records.
    distinct : numpy.ndarray, shape (c,), int64
        The least number of different values in a cluster.
    many : int
        All numbers are below it.
    labels : numpy.ndarray, shape (n,), int64
        Written.

    Returns
    -------
    int
        0 if the records together have too few values; then all labels are 0.

    Notes
    -----
    If the records left cannot complete a cluster, they and the records of that cluster have too few values together. No
    further cluster is possible then, and each record goes where it raises the loss least.
    """
    n, columns = values.shape
    out = np.empty(n)
    ids = np.empty(n, np.int64)
    sizes = np.zeros(n // k, np.int64)
    seen_in = np.full(many, -1)
    lacks = np.empty(columns, np.int64)
    start = np.int64(0)  # a literal would be a type of its own
    for i in range(n):
        move(work, i, i, origin)
        ids[i] = i
        labels[i] = -1
    m = n
    far = first
    c = 0
    whole = True
    while m >= k and whole:
        join_row(plan, origin, far, work, start, m, out)
        for s in range(m):
            out[s] = -out[s]
        at = least(out, ids, m)
        far = ids[at]
        size = 0
        lacking = np.int64(0)
        for t in range(columns):
            lacks[t] = distinct[t]
            lacking += lacks[t]
        while True:
            i = ids[at]
            labels[i] = c
            if size == 0:
                move(heads, c, at, work)
            else:
                widen(plan, heads, c, origin, i)
            for t in range(columns):
                if seen_in[values[i, t]] != c:
                    seen_in[values[i, t]] = c
                    if lacks[t] > 0:
                        lacks[t] -= 1
                        lacking -= 1
            drop(work, ids, at, m)
            m -= 1
            size += 1
            if size >= k and lacking == 0:
                break
            # The cluster's size is the same for every candidate: least increase is least cost of the join.
            join_row(plan, heads, c, work, start, m, out)
            fitting = m
            if lacking > 0:
                fitting = 0
                for s in range(m):
                    new = False
                    for t in range(columns):
                        new |= lacks[t] > 0 and seen_in[values[ids[s], t]] != c
                    if new:
                        fitting += 1
                    else:
                        out[s] = np.inf
            if fitting == 0:
                whole = False
                break
            at = least(out, ids, m)
        if whole:
            sizes[c] = size
            c += 1
    if c == 0:
        for i in range(n):
            labels[i] = 0
        return c
    for i in range(n):
        if labels[i] == c:
            labels[i] = -1
    clusters = np.arange(c)
    for i in range(n):
        if labels[i] >= 0:
            continue
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
