"""Clusters of at least k records, one after the other, with enough different values of columns (Byun et al., DASFAA 2007)."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.costs import move, widen
from anonflow.kernels.greedy import least
from anonflow.kernels.jit import NO_NANS, jit
from anonflow.kernels.row_costs import join_row
from anonflow.kernels.state import ENTROPY, Index, Plan, State

BLOCK = 128
"""Slots that are priced at a time: fewer cost more calls, more are priced in vain (64 to 256 take equally long on Adult)."""


def drop(work: State, ids: np.ndarray, at: int, m: int) -> None:
    """Remove the record in slot `at` from the first `m`: the last one moves into its slot."""
    if at != m - 1:
        move(work, at, m - 1, work)
        ids[at] = ids[m - 1]


drop_jit = jit(drop, borrows=True)


def lowest_of_blocks(costs: np.ndarray, m: int, lows: np.ndarray) -> None:
    """Write to ``lows[b]`` the least of the costs ``costs[:m]`` in block b."""
    for b in range((m + BLOCK - 1) // BLOCK):
        low = np.inf
        for s in range(b * BLOCK, min((b + 1) * BLOCK, m)):
            low = costs[s] if costs[s] < low else low
        lows[b] = low


lowest_of_blocks_jit = jit(lowest_of_blocks, fastmath=NO_NANS, borrows=True)


def nearest(
    plan: Plan,
    heads: State,
    c: Index,
    work: State,
    ids: np.ndarray,
    m: int,
    fits: np.ndarray,
    out: np.ndarray,
    lows: np.ndarray,
) -> int:
    """Return the slot of the record that costs least to join with the generalized record `c`, the lowest id among equals.

    A cluster only grows, so what a join cost before is a lower bound of what it costs now: a block is priced again only
    where its lower bound does not exceed the least cost that is found. The block with the least bound comes first.

    The record that moves into the slot of one that has joined changes no bound: that of its block is at most the present
    cost of the cluster, and every join costs at least that.

    Parameters
    ----------
    plan : Plan
    heads : State
    c : int
    work : State
        Candidates in the slots below `m`.
    ids : numpy.ndarray, shape (n,), int64
    m : int
        At least 1.
    fits : numpy.ndarray, shape (n,), bool
        Per id: whether the record may be taken.
    out : numpy.ndarray, shape (n,), float64
        Working memory.
    lows : numpy.ndarray, shape (blocks,), float64
        Per block of slots: at most the least cost of a join. Raised to it where the block is priced.

    Returns
    -------
    int
        -1 where no candidate fits.
    """
    blocks = (m + BLOCK - 1) // BLOCK
    first = 0
    for b in range(1, blocks):
        first = b if lows[b] < lows[first] else first
    best = np.inf
    at = -1
    for turn in range(-1, blocks):
        b = first if turn < 0 else turn
        if turn == first or lows[b] > best:
            continue
        start = b * BLOCK
        stop = start + BLOCK if start + BLOCK < m else m
        join_row(plan, heads, c, work, start, stop, out)
        low = np.inf
        for s in range(start, stop):
            low = out[s] if out[s] < low else low
        lows[b] = low
        if low <= best:
            for s in range(start, stop):
                if out[s] <= best and fits[ids[s]] and (out[s] < best or at < 0 or ids[s] < ids[at]):
                    best = out[s]
                    at = s
    return at


nearest_jit = jit(nearest, fastmath=NO_NANS, borrows=True)


def k_member_clusters(
    plan: Plan,
    origin: State,
    work: State,
    heads: State,
    first: int,
    k: int,
    values: np.ndarray,
    distinct: np.ndarray,
    stop: int,
    labels: np.ndarray,
) -> int:
    """Label each record with its cluster; return the number of clusters. O(n^2 (q + c)).

    Records without a cluster are stored side by side in `work`, so that all are priced in one row of joins: once a cluster,
    with its first record. From these prices follow the next first record, the one that is furthest, and bounds for
    :func:`nearest`. While a cluster lacks different values of a column, only records with a value of it that is new to the
    cluster may join.

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
    stop : int
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

    Entropy may fall when a cluster grows, so no cost of it is a bound for later: there every search prices all records.
    """
    n, columns = values.shape
    # per slot: the cost of the join with the first record of the last cluster, negative
    closeness = np.empty(n)
    out = np.empty(n)
    lows = np.empty((n + BLOCK - 1) // BLOCK)  # per block of slots: at most the least cost of a join
    ids = np.empty(n, np.int64)
    sizes = np.zeros(n // k, np.int64)
    seen_in = np.full(stop, -1)
    lacks = np.empty(columns, np.int64)
    fits = np.ones(n, np.bool_)
    start = np.int64(0)  # a literal would be a type of its own
    monotone = True
    for form in plan.range_form:
        monotone &= form != ENTROPY
    for form in plan.set_form:
        monotone &= form != ENTROPY
    for i in range(n):
        move(work, i, i, origin)
        ids[i] = i
        labels[i] = -1
    m = n
    c = 0
    whole = True
    join_row(plan, origin, first, work, start, m, closeness)
    for s in range(m):
        closeness[s] = -closeness[s]
    while m >= k and whole:
        at = least(closeness, ids, m)
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
            m -= 1
            drop(work, ids, at, m + 1)
            closeness[at] = closeness[m]
            size += 1
            if size == 1:
                join_row(plan, heads, c, work, start, m, closeness)
                lowest_of_blocks(closeness, m, lows)
                for s in range(m):
                    closeness[s] = -closeness[s]
            # earlier prices are no lower bounds where a loss may fall: every block is priced again
            elif not monotone:
                lows[:] = -np.inf
            if size >= k and lacking == 0:
                break
            for s in range(m if columns > 0 else 0):
                fits[ids[s]] = lacking == 0
                for t in range(columns):
                    fits[ids[s]] |= lacks[t] > 0 and seen_in[values[ids[s], t]] != c
            # The cluster's size is the same for every candidate: least increase is least cost of the join.
            at = nearest(plan, heads, c, work, ids, m, fits, out, lows)
            if at < 0:
                whole = False
                break
        if whole:
            sizes[c] = size
            c += 1
    if c == 0:
        for i in range(n):
            labels[i] = 0
        return c
    for i in range(n):
        # the records of the cluster that could not be completed
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
