"""Agglomerative clustering: the two unripe clusters (of fewer than k records) of least distance are merged until none is left."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.classes.clusters import drop
from anonflow.kernels.costs import move, widen
from anonflow.kernels.greedy import least
from anonflow.kernels.jit import jit
from anonflow.kernels.ordering import sort
from anonflow.kernels.row_costs import join_row
from anonflow.kernels.state import Plan, State

WEIGHTED, PLAIN, LOG, RATIO = 1, 2, 3, 4


def distance(kind: int, joint: float, cost: float, other: float, size: int, rest: int) -> float:
    """Return the distance of two clusters of sizes `size` and `rest`, costs `cost` and `other`, and `joint` for their union."""
    if kind == WEIGHTED:
        return (size + rest) * joint - size * cost - rest * other
    if kind == PLAIN:
        return joint - cost - other
    if kind == LOG:
        return (joint - cost - other) / np.log2(size + rest)
    return joint / (cost + other + 0.1)


distance_jit = jit(distance, borrows=True)


def nearest(
    plan: Plan, kind: int, work: State, sizes: np.ndarray, ids: np.ndarray, at: int, m: int, row: np.ndarray
) -> int:
    """Return the position of the cluster nearest to the cluster at `at`; write all distances to `row` (infinite to itself)."""
    join_row(plan, work, at, work, np.int64(0), np.int64(m), row)
    for s in range(m):
        row[s] = distance(kind, row[s], work.cost[at], work.cost[s], sizes[at], sizes[s])
    row[at] = np.inf
    return least(row, ids, m)


nearest_jit = jit(nearest, borrows=True)


def drop_cluster(
    work: State,
    ids: np.ndarray,
    sizes: np.ndarray,
    bound: np.ndarray,
    mate: np.ndarray,
    place: np.ndarray,
    at: int,
    m: int,
) -> None:
    """Remove the cluster in slot `at` from the first `m`: the last one moves into its slot, with all that is known of it."""
    place[ids[at]] = -1
    if at != m - 1:
        place[ids[m - 1]] = at
        sizes[at] = sizes[m - 1]
        bound[at] = bound[m - 1]
        mate[at] = mate[m - 1]
    drop(work, ids, at, m)


drop_cluster_jit = jit(drop_cluster, borrows=True)


def worst_member(plan: Plan, origin: State, members: np.ndarray, size: int, room: State) -> int:
    """Return the position of the member without which a cluster costs least, the lowest of ties. O(size^2 q)."""
    best = 0
    cost = np.inf
    # a closure does not tell what it would be without a member: it is joined anew for each
    for leave in range(size):
        first = 0 if leave != 0 else 1
        move(room, 0, members[first], origin)
        for s in range(first + 1, size):
            if s != leave:
                widen(plan, room, 0, origin, members[s])
        if room.cost[0] < cost or (room.cost[0] == cost and members[leave] < members[best]):
            cost = room.cost[0]
            best = leave
    return best


worst_member_jit = jit(worst_member, borrows=True)


def agglomerate(
    plan: Plan,
    kind: int,
    modified: bool,
    k: int,
    origin: State,
    work: State,
    ripe: State,
    room: State,
    labels: np.ndarray,
) -> int:
    """Label each record with its cluster; return the number of clusters.

    Unripe clusters are stored side by side in `work`. For each one the kernel keeps its nearest cluster, or a lower
    bound of the distance to it: where the nearest cluster has been merged, the search is repeated only if no other pair
    is nearer.

    Parameters
    ----------
    plan : Plan
    kind : int
        Of distance.
    modified : bool
        Whether a ripe cluster releases the records that it has beyond k.
    k : int
    origin : State
        n >= k records.
    work : State
        Room for n clusters.
    ripe : State
        Room for n // k + 1 clusters; at the end the generalized record of each.
    room : State
        Room for one.
    labels : numpy.ndarray, shape (n,), int64
        Written.

    Returns
    -------
    int
        Number of clusters. O(n^2 q) time if few clusters lose their nearest at a time, O(n^3 q) at worst; O(n) memory
        besides.
    """
    n = len(labels)
    # ids of the clusters in work: their lowest record, or that of the cluster they came from
    ids = np.empty(n, np.int64)
    sizes = np.ones(n, np.int64)
    bound = np.empty(n)
    mate = np.empty(n, np.int64)  # id of the nearest cluster; -1 where it must be searched again
    place = np.arange(n)  # position of each id in work, -1 where it is not there
    after = np.full(n, -1, np.int64)  # members of a cluster as a chain from its id
    row = np.empty(n)
    # two clusters of fewer than k records are at most 2k - 2
    members = np.empty(2 * k, np.int64)
    ripe_sizes = np.zeros(n // k + 1, np.int64)
    clusters = np.arange(n // k + 1)
    for i in range(n):
        move(work, i, i, origin)
        ids[i] = i
        # less than any distance: a pair counts only after the search has set this bound
        bound[i] = -np.inf
        mate[i] = -1
    m = n
    ripe_count = 0
    while m > 1:
        # the pair of least distance, of lowest ids
        while True:
            at = -1
            for s in range(m):
                if at < 0 or bound[s] < bound[at]:
                    at = s
                elif bound[s] == bound[at]:
                    # among equal bounds: first the clusters that must be searched again, then the lowest pair
                    if mate[at] < 0:
                        if mate[s] < 0 and ids[s] < ids[at]:
                            at = s
                    elif (
                        mate[s] < 0
                        or min(ids[s], mate[s]) < min(ids[at], mate[at])
                        or (
                            min(ids[s], mate[s]) == min(ids[at], mate[at])
                            and max(ids[s], mate[s]) < max(ids[at], mate[at])
                        )
                    ):
                        at = s
            if mate[at] >= 0:
                break
            other = nearest(plan, kind, work, sizes, ids, at, m, row)
            bound[at] = row[other]
            mate[at] = ids[other]
        low = min(ids[at], mate[at])
        high = max(ids[at], mate[at])
        union = place[low]
        other = place[high]
        widen(plan, work, union, work, other)
        sizes[union] += sizes[other]
        # both clusters have fewer than k records: the end of the chain is near
        last = low
        while after[last] >= 0:
            last = after[last]
        after[last] = high
        drop_cluster(work, ids, sizes, bound, mate, place, other, m)
        m -= 1
        union = place[low]
        # the union is new: its distances are computed, and may be less than what others have as their nearest
        if sizes[union] < k:
            other = nearest(plan, kind, work, sizes, ids, union, m, row)
            for s in range(m):
                gone = mate[s] == low or mate[s] == high
                if s == union:
                    continue
                if row[s] < bound[s] or (row[s] == bound[s] and (gone or (mate[s] >= 0 and low < mate[s]))):
                    bound[s] = row[s]
                    mate[s] = low
                # the bound stays: all other distances are at least what the merged cluster's was
                elif gone:
                    mate[s] = -1
            bound[union] = row[other] if m > 1 else np.inf
            mate[union] = ids[other] if m > 1 else -1
            continue
        # the cluster is ripe: set it aside, without the records that it releases
        size = 0
        member = low
        while member >= 0:
            members[size] = member
            size += 1
            member = after[member]
        left = size
        while modified and left > k:
            worst = worst_member(plan, origin, members, left, room)
            member = members[worst]
            members[worst] = members[left - 1]
            members[left - 1] = member
            left -= 1
        move(ripe, ripe_count, members[0], origin)
        for s in range(left):
            labels[members[s]] = ripe_count
            widen(plan, ripe, ripe_count, origin, members[s])
        ripe_sizes[ripe_count] = left
        ripe_count += 1
        drop_cluster(work, ids, sizes, bound, mate, place, union, m)
        m -= 1
        for s in range(m):
            if mate[s] == low or mate[s] == high:
                mate[s] = -1
        for t in range(left, size):
            member = members[t]
            after[member] = -1
            move(work, m, member, origin)
            ids[m] = member
            place[member] = m
            sizes[m] = 1
            m += 1
            other = nearest(plan, kind, work, sizes, ids, m - 1, m, row)
            for s in range(m - 1):
                if row[s] < bound[s] or (row[s] == bound[s] and mate[s] >= 0 and member < mate[s]):
                    bound[s] = row[s]
                    mate[s] = member
            bound[m - 1] = row[other] if m > 1 else np.inf
            mate[m - 1] = ids[other] if m > 1 else -1
    # the last cluster is too small and has no partner: each of its records joins the nearest cluster
    if m == 1 and ripe_count > 0:
        member = ids[0]
        rest = np.empty(n, np.int64)
        size = 0
        while member >= 0:
            rest[size] = member
            size += 1
            member = after[member]
        # each join changes the next choice: in the order of the table, not in that of the merges
        sort(rest[:size])
        for s in range(size):
            i = rest[s]
            join_row(plan, origin, i, ripe, np.int64(0), np.int64(ripe_count), row)
            for c in range(ripe_count):
                row[c] = distance(kind, row[c], origin.cost[i], ripe.cost[c], 1, ripe_sizes[c])
            to = least(row, clusters, ripe_count)
            labels[i] = to
            ripe_sizes[to] += 1
            widen(plan, ripe, to, origin, i)
    elif m == 1:
        labels[:] = 0
        ripe_count = 1
    return ripe_count


agglomerate_jit = jit(agglomerate)
