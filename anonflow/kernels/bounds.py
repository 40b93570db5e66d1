"""Lower bounds of the cost of a generalized record that covers k originals, for each record and for losses that never fall."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.costs import join_cost, move, widen
from anonflow.kernels.jit import jit
from anonflow.kernels.ordering import stable_order
from anonflow.kernels.row_costs import join_row
from anonflow.kernels.state import STEP, Plan, State, empty_state

_NONE = np.uint64(0)


def nearest(
    row: np.ndarray, weight: np.ndarray, k: int, value: np.ndarray, who: np.ndarray, times: np.ndarray
) -> int:
    """Return how many of the cheapest originals are needed to have k records, and write them in ascending order of cost.

    Parameters
    ----------
    row : numpy.ndarray, shape (u,), float64
        Costs.
    weight : numpy.ndarray, shape (u,), int64
        At least k in all.
    k : int
    value : numpy.ndarray, shape (k + 1,), float64
        Their costs, written.
    who, times : numpy.ndarray, shape (k + 1,), int64
        Their positions and how often they occur, written.

    Notes
    -----
    O(u) in practice: the best originals so far are kept in order, and few of the others enter that list.
    """
    size = 0
    total = 0
    worst = np.inf
    for j in range(len(row)):
        if row[j] < worst:
            at = size
            while at > 0 and value[at - 1] > row[j]:
                value[at] = value[at - 1]
                who[at] = who[at - 1]
                times[at] = times[at - 1]
                at -= 1
            value[at] = row[j]
            who[at] = j
            times[at] = weight[j]
            size += 1
            total += weight[j]
            # those beyond k records leave, so the list never needs more than k + 1 places
            while total - times[size - 1] >= k:
                size -= 1
                total -= times[size]
            if total >= k:
                worst = value[size - 1]
    return size


nearest_jit = jit(nearest, borrows=True)


def kth_costs(
    plan: Plan, origin: State, weight: np.ndarray, k: int, start: int, stop: int, out: np.ndarray
) -> None:
    """Write the k-th smallest cost of a join of original i with one original (i itself counts) to ``out[i]``.

    Parameters
    ----------
    plan : Plan
    origin : State
        u different originals.
    weight : numpy.ndarray, shape (u,), int64
        How often each of them occurs; at least k in all.
    k : int
    start, stop : int
    out : numpy.ndarray, shape (u,), float64
        Written from `start` to `stop`.

    Notes
    -----
    O(u q) for each record.
    """
    n = len(weight)
    row = np.empty(n)
    value = np.empty(k + 1)
    who = np.empty(k + 1, np.int64)
    times = np.empty(k + 1, np.int64)
    for i in range(start, stop):
        #  a literal 0 would have a type of its own, and numba would compile the callee once more
        join_row(plan, origin, i, origin, np.int64(0), n, row)
        out[i] = value[nearest(row, weight, k, value, who, times) - 1]


kth_costs_jit = jit(kth_costs)


def is_free(plan: Plan, A: State, i: int, B: State, j: int) -> bool:
    """Return whether B's record j can take A's record i at no cost, now and later.

    In each QI, j already covers i or already has the highest possible cost. A cost of 0 now is not enough: under a loss
    that prices whole domains only, a run costs nothing until it becomes the whole domain.
    """
    free = True
    for t in range(len(plan.range_form)):
        free &= B.lo[t, j] <= A.lo[t, i] and B.hi[t, j] >= A.hi[t, i]
    for t in range(len(plan.set_form)):
        if plan.set_form[t] != STEP or B.count[t, j] < plan.set_least[t]:
            for w in range(plan.word_at[t], plan.word_at[t + 1]):
                free &= A.bits[w, i] & ~B.bits[w, j] == _NONE
    return free


is_free_jit = jit(is_free, borrows=True)


def cover_bounds(
    plan: Plan,
    origin: State,
    weight: np.ndarray,
    k: int,
    joins: int,
    start: int,
    stop: int,
    out: np.ndarray,
    exact: np.ndarray,
) -> None:
    """Write the least cost of a join of original i with k - 1 others to ``out[i]``, by branch and bound.

    Parameters
    ----------
    plan : Plan
        Of a loss that never falls.
    origin : State
        u different originals.
    weight : numpy.ndarray, shape (u,), int64
        How often each of them occurs; at least k in all.
    k : int
    joins : int
        The most joins that the search for one record prices, beside those with each original. If the search stops
        there, the bound is the value proved so far.
    start, stop : int
    out : numpy.ndarray, shape (u,), float64
        Written from `start` to `stop`; never above the least cost.
    exact : numpy.ndarray, shape (u,), bool
        Written: whether it is the least cost.

    Notes
    -----
    The search chooses the member that is farthest from the members chosen before, then the farthest of the rest, and so
    on. At each node it takes all originals that are free. The nearest others that make up k give the first possible
    farthest member; the best set so far gives the last one. Farther originals cost more, so where the search stops, the
    next one at the root is a bound. O((u + joins) q) for each record, O(k u) memory.
    """
    n = len(weight)
    row = np.empty(n)
    value = np.empty(k + 1)
    first = np.empty(k + 1, np.int64)
    times = np.empty(k + 1, np.int64)
    depth_most = k + 1
    partial = empty_state(plan, depth_most)
    who = np.empty((depth_most, n), np.int64)
    price = np.empty((depth_most, n))
    needs = np.empty(depth_most, np.int64)
    at = np.empty(depth_most, np.int64)
    size = np.empty(depth_most, np.int64)
    for i in range(start, stop):
        join_row(plan, origin, i, origin, np.int64(0), n, row)
        # the join with the nearest originals is a first solution
        move(partial, 0, i, origin)
        for e in range(nearest(row, weight, k, value, first, times)):
            widen(plan, partial, 0, origin, first[e])
        best = partial.cost[0]
        move(partial, 0, i, origin)
        bound = np.inf
        used = 0
        depth = 0
        fresh = True
        while depth >= 0:
            if fresh:
                # price the candidates of this node; take those that cost nothing
                used += size[depth] if depth > 0 else 0
                need = k - weight[i] if depth == 0 else needs[depth]
                m = 0
                if depth == 0:
                    for j in range(n):
                        if j != i:
                            # the price is there already and refuses most records, before their cells are compared
                            if row[j] <= partial.cost[0] and is_free(plan, origin, j, partial, 0):
                                need -= weight[j]
                            elif row[j] < best:
                                who[0, m] = j
                                price[0, m] = row[j]
                                m += 1
                else:
                    for e in range(size[depth]):
                        j = who[depth, e]
                        cost = join_cost(plan, origin, j, partial, depth)
                        if cost <= partial.cost[depth] and is_free(plan, origin, j, partial, depth):
                            need -= weight[j]
                        # a member that alone is as dear as the best set is in no better one: the loss never falls
                        elif cost < best:
                            who[depth, m] = j
                            price[depth, m] = cost
                            m += 1
                if need <= 0:
                    best = min(best, partial.cost[depth])
                    depth -= 1
                    fresh = False
                    continue
                order = stable_order(price[depth, :m])
                who[depth, :m] = who[depth, :m][order]
                price[depth, :m] = price[depth, :m][order]
                size[depth] = m
                # the first possible farthest member: with all nearer ones there are k records
                e = 0
                total = 0
                while e < m and total + weight[who[depth, e]] < need:
                    total += weight[who[depth, e]]
                    e += 1
                at[depth] = e
                needs[depth] = need
                fresh = False
            e = at[depth]
            if e >= size[depth] or price[depth, e] >= best:
                depth -= 1
                continue
            if used >= joins:
                # at the root, the candidate whose subtree is unfinished, else the next one: no set left out costs less
                bound = price[0, at[0] - 1] if depth > 0 else price[0, e]
                break
            # the e-th is the farthest member: continue with the nearer ones
            j = who[depth, e]
            at[depth] = e + 1
            need = needs[depth] - weight[j]
            move(partial, depth + 1, depth, partial)
            widen(plan, partial, depth + 1, origin, j)
            if need <= 0:
                best = min(best, partial.cost[depth + 1])
                continue
            for f in range(e):
                who[depth + 1, f] = who[depth, f]
            size[depth + 1] = e
            needs[depth + 1] = need
            depth += 1
            fresh = True
        out[i] = min(best, bound)
        exact[i] = best <= bound


cover_bounds_jit = jit(cover_bounds)


def group_bounds(
    key: np.ndarray,
    cost: np.ndarray,
    level_at: np.ndarray,
    weight: np.ndarray,
    k: int,
    best: np.ndarray,
) -> None:
    """Lower ``best[i]`` to the least cost of a combination of levels at which k originals have the same cells as original i.

    Parameters
    ----------
    key : numpy.ndarray, shape (levels, u), uint64
        A random number for each cell of an original at each level of each QI: equal cells have equal numbers.
    cost : numpy.ndarray, shape (levels, u), float64
    level_at : numpy.ndarray, shape (q + 1,), int64
        Where the levels of each QI begin.
    weight : numpy.ndarray, shape (u,), int64
    k : int
    best : numpy.ndarray, shape (u,), float64
        The bound known so far, infinity where there is none; written.

    Notes
    -----
    O(u) expected time for each combination of levels, less those that cost more than the bounds of all originals; O(u
    q) memory. Different originals have the same number once in 2^64 times; they are then taken for equal, which only
    lowers the bound.
    """
    q = len(level_at) - 1
    n = len(weight)
    room = 2
    # at most half of the table is full: a search meets few strange entries
    while room < 2 * n:
        room *= 2
    # the numbers are random, so their lowest bits are a hash
    mask = np.uint64(room - 1)
    slot_key = np.empty(room, np.uint64)
    slot_weight = np.empty(room, np.int64)
    place = np.empty(n, np.int64)
    keys = np.zeros((q + 1, n), np.uint64)
    costs = np.zeros((q + 1, n))
    level = level_at[:-1].copy()
    depth = 0
    while depth >= 0:
        if depth < q and level[depth] < level_at[depth + 1]:
            # add one QI, at its next level
            added = level[depth]
            level[depth] += 1
            useful = False
            for i in range(n):
                total = costs[depth, i] + cost[added, i]
                costs[depth + 1, i] = total
                useful |= total < best[i]
            # costs only add up: levels that already cost too much for everybody are not continued
            if useful:
                for i in range(n):
                    # an exclusive or of random numbers, one a QI: it is as random as they are, and equal for equal cells
                    keys[depth + 1, i] = keys[depth, i] ^ key[added, i]
                depth += 1
                if depth < q:
                    level[depth] = level_at[depth]
            continue
        if depth == q:
            # a slot without weight is empty: the numbers in it need not be cleared
            slot_weight[:] = 0
            for i in range(n):
                record_key = keys[q, i]
                s = np.int64(record_key & mask)
                while slot_weight[s] > 0 and slot_key[s] != record_key:
                    s = (s + 1) & (room - 1)
                slot_key[s] = record_key
                slot_weight[s] += weight[i]
                place[i] = s
            for i in range(n):
                if slot_weight[place[i]] >= k and costs[q, i] < best[i]:
                    best[i] = costs[q, i]
        depth -= 1


group_bounds_jit = jit(group_bounds)
