"""Prices of records: sets of k originals whose prices exceed their cost, by branch and bound, and prices that rise against such sets."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.costs import move, widen
from anonflow.kernels.jit import jit, popcount
from anonflow.kernels.ordering import stable_order
from anonflow.kernels.prices import run_cost, set_cost
from anonflow.kernels.row_costs import join_row
from anonflow.kernels.state import GRID, LINEAR, NODES, SLOPE, Index, Plan, State, empty_state

BUCKETS = 64
"""Intervals of costs in which a node's candidates are sorted."""

DEPTH = 64
"""Cells by which a box grows at most; the search gives up beyond."""

NODE = 20
"""What a node of the search counts beside its candidates."""

_NONE = np.uint64(0)


def insert(greatest: np.ndarray, size: int, most: int, value: float) -> int:
    """Put a number into a descending list of at most `most`; return the list's new length."""
    if size == most and (most == 0 or greatest[most - 1] >= value):
        return size
    at = size if size < most else most - 1
    while at > 0 and greatest[at - 1] < value:
        greatest[at] = greatest[at - 1]
        at -= 1
    greatest[at] = value
    return size + 1 if size < most else size


insert_jit = jit(insert, borrows=True)


def covered(plan: Plan, B: State, b: Index, A: State, j: Index, e: Index, t: int) -> bool:
    """Return whether the join of B's record b and A's record j covers A's record e in QI t: ranges are counted first, then sets."""
    r = len(plan.range_form)
    if t < r:
        lo = min(A.lo[t, j], B.lo[t, b])
        hi = max(A.hi[t, j], B.hi[t, b])
        if plan.range_form[t] == NODES:
            node = plan.leaf[plan.range_at[t] + np.int64(lo)]
            while plan.last[node] < hi:
                node = plan.parent[node]
            lo = plan.first[node]
            hi = plan.last[node]
        return lo <= A.lo[t, e] and hi >= A.hi[t, e]
    for w in range(plan.word_at[t - r], plan.word_at[t - r + 1]):
        if A.bits[w, e] & ~(B.bits[w, b] | A.bits[w, j]) != _NONE:
            return False
    return True


covered_jit = jit(covered, borrows=True)


def growth(plan: Plan, B: State, b: Index, A: State, e: Index, t: int) -> float:
    """Return what it costs that B's record b covers A's record e in QI t, too; -1 if it does."""
    r = len(plan.range_form)
    if t < r:
        if A.lo[t, e] >= B.lo[t, b] and A.hi[t, e] <= B.hi[t, b]:
            return -1.0
        lo = min(A.lo[t, e], B.lo[t, b])
        hi = max(A.hi[t, e], B.hi[t, b])
        return run_cost(plan, t, lo, hi) - run_cost(plan, t, B.lo[t, b], B.hi[t, b])
    s = t - r
    fresh = 0
    for w in range(plan.word_at[s], plan.word_at[s + 1]):
        fresh += popcount(A.bits[w, e] & ~B.bits[w, b])
    if fresh == 0:
        return -1.0
    count = B.count[s, b]
    return set_cost(plan, s, count + fresh, 0.0, 0.0) - set_cost(plan, s, count, 0.0, 0.0)


growth_jit = jit(growth, borrows=True)


def widen_cell(plan: Plan, B: State, b: Index, A: State, e: Index, t: int, room: State) -> None:
    """Make B's record b cover A's record e in QI t; `room` has one record."""
    r = len(plan.range_form)
    move(room, np.int64(0), b, B)
    if t < r:
        room.lo[t, 0] = A.lo[t, e]
        room.hi[t, 0] = A.hi[t, e]
    else:
        for w in range(plan.word_at[t - r], plan.word_at[t - r + 1]):
            room.bits[w, 0] = A.bits[w, e]
    for s in range(len(plan.set_form)):
        room.only[s, 0] = A.only[s, e] if s == t - r else -1
    widen(plan, B, b, room, np.int64(0))


widen_cell_jit = jit(widen_cell, borrows=True)


def shifted(
    plan: Plan,
    B: State,
    b: Index,
    A: State,
    t: int,
    who: np.ndarray,
    cost: np.ndarray,
    next_who: np.ndarray,
    next_cost: np.ndarray,
) -> None:
    """Write candidates and their costs of a join with B's record b + 1, which differs from b in QI t alone.

    Parameters
    ----------
    plan : Plan
    B : State
    b : int
    A : State
        The candidates.
    t : int
    who, cost : numpy.ndarray, shape (m,), int32 and float64
        Candidates, and what their joins with b cost.
    next_who, next_cost : numpy.ndarray, shape (m,)
        Written.
    """
    r = len(plan.range_form)
    if t < r:
        lo0 = B.lo[t, b]
        hi0 = B.hi[t, b]
        lo1 = B.lo[t, b + 1]
        hi1 = B.hi[t, b + 1]
        linear = plan.range_form[t] == LINEAR
        for a in range(len(who)):
            j = who[a]
            next_who[a] = j
            lo = A.lo[t, j]
            hi = A.hi[t, j]
            if linear:
                next_cost[a] = cost[a] + ((max(hi, hi1) - min(lo, lo1)) - (max(hi, hi0) - min(lo, lo0)))
            else:
                after = run_cost(plan, t, min(lo, lo1), max(hi, hi1))
                next_cost[a] = cost[a] + (after - run_cost(plan, t, min(lo, lo0), max(hi, hi0)))
        return
    s = t - r
    unit = plan.set_unit[s]
    least = plan.set_least[s]
    slope = plan.set_form[s] == SLOPE
    count0 = B.count[s, b]
    count1 = B.count[s, b + 1]
    for a in range(len(who)):
        j = who[a]
        next_who[a] = j
        size0 = count0
        size1 = count1
        for w in range(plan.word_at[s], plan.word_at[s + 1]):
            size0 += popcount(A.bits[w, j] & ~B.bits[w, b])
            size1 += popcount(A.bits[w, j] & ~B.bits[w, b + 1])
        if slope:
            next_cost[a] = cost[a] + unit * (size1 - size0)
        else:
            next_cost[a] = cost[a] + (unit if size1 >= least > size0 else 0.0)


shifted_jit = jit(shifted, borrows=True)


def without(
    plan: Plan, B: State, b: Index, A: State, e: Index, t: int, who: np.ndarray, cost: np.ndarray
) -> int:
    """Move candidates whose join with B's record b does not cover A's record e in QI t to the front; return how many they are."""
    r = len(plan.range_form)
    p = 0
    if t < r and plan.range_form[t] != NODES:
        lo0 = B.lo[t, b]
        hi0 = B.hi[t, b]
        lo1 = A.lo[t, e]
        hi1 = A.hi[t, e]
        for a in range(len(who)):
            j = who[a]
            who[p] = j
            cost[p] = cost[a]
            p += not (min(A.lo[t, j], lo0) <= lo1 and max(A.hi[t, j], hi0) >= hi1)
    else:
        for a in range(len(who)):
            j = who[a]
            who[p] = j
            cost[p] = cost[a]
            p += not covered(plan, B, b, A, j, e, t)
    return p


without_jit = jit(without, borrows=True)


def branch(plan: Plan, B: State, b: Index, A: State, chosen: np.ndarray, m: int) -> int:
    """Return by which cell of which of the m chosen records to branch, as QI times m and position; -1 if B's record b covers all.

    The cell costs much, and many of them need it.
    """
    best = -1.0
    at = -1
    for t in range(len(plan.range_form) + len(plan.set_form)):
        for c in range(m):
            e = chosen[c]
            if c > 0 and e == chosen[c - 1]:
                continue
            rise = growth(plan, B, b, A, e, t)
            if rise < 0.0:
                continue
            count = 0
            for g in range(m):
                count += covered(plan, B, b, A, chosen[g], e, t)
            # a cell may cost nothing now, and something with another one
            score = (rise + GRID) * count
            if score > best:
                best = score
                at = t * m + c
    return at


branch_jit = jit(branch, borrows=True)


def least_surplus(
    plan: Plan,
    origin: State,
    weight: np.ndarray,
    k: int,
    price: np.ndarray,
    rank: np.ndarray,
    peak: np.ndarray,
    slack: float,
    limit: int,
    start: int,
    stop: int,
    proved: np.ndarray,
    least: np.ndarray,
    sets: np.ndarray,
) -> None:
    """Write how much less than its prices a set of k originals can cost, for the sets whose member of highest rank is original i.

    Parameters
    ----------
    plan : Plan
        Of a loss that never falls.
    origin : State
        u different originals.
    weight : numpy.ndarray, shape (u,), int64
        How often each of them occurs, and how often a set may have it.
    k : int
        At least 2.
    price : numpy.ndarray, shape (u,), float64
        Multiples of ``GRID``.
    rank : numpy.ndarray, shape (u,), int64
        A permutation.
    peak : numpy.ndarray, shape (u,), float64
        The greatest price of the originals of this rank and lower ones.
    slack : float
        The search stops where it proves no more than this below the least.
    limit : int
        Candidates that the search for one original looks at, about, before it stops.
    start, stop : int
    proved : numpy.ndarray, shape (u,), float64
        Written from `start` to `stop`: no set costs less than its prices by more than this; at most 0.
    least : numpy.ndarray, shape (u,), float64
        Written: what the cheapest set that was met costs, less its prices; at most 0, and 0 if there is none below.
    sets : numpy.ndarray, shape (u, k), int32
        Written: that set.

    Notes
    -----
    A node of the search is a box (a generalized record that the set must have room in) and candidates. The set has k -
    1 candidates, one of them is the farthest, and the others are at best those of the highest prices that are no
    farther: this bounds a node. It is branched by a cell of one of these: the set needs it, then the box grows by this
    cell, or it does not, then no candidate that needs it remains. A first search leaves all nodes that are not much
    better than the best set out, each further one half as much as the search before; so a search that is stopped has
    a bound. All sums are exact. O(q) for each candidate of a node, O(u (q + log u)) for each original, O(u) memory.
    """
    n = len(weight)
    need = k - 1
    box = empty_state(plan, DEPTH)
    room = empty_state(plan, 1)
    near = empty_state(plan, n)
    row = np.empty(n)
    alone = np.empty(n)
    label = np.empty(n, np.int64)
    worth = np.empty(n)
    times = np.empty(n, np.int64)
    who = np.empty((DEPTH, n), np.int32)
    cost = np.empty((DEPTH, n))
    size = np.empty(DEPTH, np.int64)
    cell = np.empty(DEPTH, np.int64)
    maker = np.empty(DEPTH, np.int64)
    bucket = np.empty(n, np.int32)
    order = np.empty(n, np.int32)
    ends = np.empty(BUCKETS + 2, np.int64)
    nearest = np.empty(BUCKETS + 1)
    rest = np.empty(BUCKETS + 1)
    greatest = np.empty(k + 1)
    chosen = np.empty(k + 1, np.int64)
    for i in range(start, stop):
        own_price = price[i]
        best = 0.0
        outside = np.inf
        lowest = np.inf
        join_row(plan, origin, i, origin, np.int64(0), n, row)
        m = 0
        for j in range(n):
            if rank[j] < rank[i] or (j == i and weight[i] > 1):
                bound = row[j] - own_price - price[j] - peak[i] * (need - 1)
                if bound < -slack:
                    label[m] = j
                    alone[m] = row[j]
                    m += 1
                elif bound < outside:
                    outside = bound
        by_cost = stable_order(alone[:m])
        label[:m] = label[:m][by_cost]
        alone[:m] = alone[:m][by_cost]
        # the farthest member that is of use
        size[0] = 0
        length = 0
        total = 0.0
        for e in range(m):
            j = label[e]
            worth[e] = price[j]
            times[e] = weight[j] - (1 if j == i else 0)
            for _ in range(min(times[e], need)):
                if length == need:
                    if greatest[need - 1] >= worth[e]:
                        break
                    total -= greatest[need - 1]
                length = insert(greatest, length, need, worth[e])
                total += worth[e]
            if length == need:
                bound = alone[e] - own_price - total
                lowest = min(lowest, bound)
                if bound < -slack:
                    size[0] = e + 1
                elif bound < outside:
                    outside = bound
        for e in range(size[0]):
            move(near, e, label[e], origin)
        first = size[0]
        lower_bound = min(lowest, outside)
        # a multiple of GRID, so that bounds less it stay exact
        allowed = max(slack, np.floor(-0.5 * lower_bound / GRID) * GRID)
        used = 0
        ended = first == 0
        while not ended:
            # the least bound of what this pass leaves out: no set that it has not met is below it
            floor = outside
            size[0] = first
            move(box, np.int64(0), i, origin)
            for e in range(first):
                who[0, e] = e
                cost[0, e] = alone[e]
            d = 0
            grown = True
            while d >= 0 and used < limit:
                if not grown:
                    # the other branch: without this cell
                    size[d] = without(
                        plan, box, d, near, maker[d], cell[d], who[d, : size[d]], cost[d, : size[d]]
                    )
                grown = False
                m = size[d]
                used += m + NODE
                aim = best - allowed
                length = 0
                for a in range(m):
                    j = who[d, a]
                    for _ in range(min(times[j], need)):
                        if length == need and greatest[need - 1] >= worth[j]:
                            break
                        length = insert(greatest, length, need, worth[j])
                if length < need:
                    d -= 1
                    continue
                total = 0.0
                for c in range(need):
                    total += greatest[c]
                inner = box.cost[d]
                far = aim + own_price + total
                if inner >= far:
                    floor = min(floor, inner - own_price - total)
                    d -= 1
                    continue
                scale = (BUCKETS - 1) / (far - inner)
                ends[:] = 0
                nearest[:] = np.inf
                for a in range(m):
                    b = 0
                    if cost[d, a] >= far:
                        b = BUCKETS
                    elif cost[d, a] > inner:
                        b = min(int((cost[d, a] - inner) * scale) + 1, BUCKETS - 1)
                    bucket[a] = b
                    ends[b + 1] += 1
                    nearest[b] = min(nearest[b], cost[d, a])
                for b in range(BUCKETS + 1):
                    ends[b + 1] += ends[b]
                for a in range(m):
                    order[ends[bucket[a]]] = a
                    ends[bucket[a]] += 1
                # a bucket ends where the next one began
                floor = min(floor, nearest[BUCKETS] - own_price - total)
                bound = np.inf
                star = 0
                length = 0
                total = 0.0
                at = 0
                for b in range(BUCKETS):
                    while at < ends[b]:
                        j = who[d, order[at]]
                        for _ in range(min(times[j], need)):
                            if length == need:
                                if greatest[need - 1] >= worth[j]:
                                    break
                                total -= greatest[need - 1]
                            length = insert(greatest, length, need, worth[j])
                            total += worth[j]
                        at += 1
                    rest[b] = np.inf
                    if length == need and nearest[b] < np.inf:
                        rest[b] = nearest[b] - own_price - total + greatest[need - 1]
                        if nearest[b] - own_price - total < bound:
                            bound = nearest[b] - own_price - total
                            star = b
                if bound >= aim:
                    floor = min(floor, bound)
                    d -= 1
                    continue
                # the members by which it is bounded
                length = 0
                for a in range(ends[star]):
                    j = who[d, order[a]]
                    for _ in range(min(times[j], need)):
                        if length == need and greatest[need - 1] >= worth[j]:
                            break
                        at = length if length < need else need - 1
                        while at > 0 and greatest[at - 1] < worth[j]:
                            greatest[at] = greatest[at - 1]
                            chosen[at] = chosen[at - 1]
                            at -= 1
                        greatest[at] = worth[j]
                        chosen[at] = j
                        length = min(length + 1, need)
                total = own_price
                for c in range(need):
                    total += greatest[c]
                last = DEPTH - 1
                move(box, last, d, box)
                for c in range(need):
                    if box.cost[last] - total < best:
                        widen(plan, box, last, near, chosen[c])
                if box.cost[last] - total < best:
                    best = box.cost[last] - total
                    sets[i, 0] = i
                    for c in range(need):
                        sets[i, 1 + c] = label[chosen[c]]
                    aim = best - allowed
                # the last in order of cost that a useful set may have as its farthest
                least_rest = np.inf
                for b in range(BUCKETS - 1, -1, -1):
                    least_rest = min(least_rest, rest[b])
                    rest[b] = least_rest
                p = 0
                for a in range(m):
                    if bucket[a] < BUCKETS:
                        useful = rest[bucket[a]] - worth[who[d, a]]
                        if useful < aim:
                            who[d, p] = who[d, a]
                            cost[d, p] = cost[d, a]
                            p += 1
                        else:
                            floor = min(floor, useful)
                size[d] = p
                pick = branch(plan, box, d, near, chosen, need)
                if bound >= aim or pick < 0 or d + 2 >= DEPTH:
                    floor = min(floor, bound)
                    d -= 1
                    continue
                cell[d] = pick // need
                maker[d] = chosen[pick % need]
                move(box, d + 1, d, box)
                widen_cell(plan, box, d + 1, near, maker[d], cell[d], room)
                shifted(plan, box, d, near, cell[d], who[d, :p], cost[d, :p], who[d + 1, :p], cost[d + 1, :p])
                size[d + 1] = p
                d += 1
                grown = True
            if d >= 0:
                break
            lower_bound = max(lower_bound, min(floor, best))
            ended = lower_bound >= best - slack or allowed <= slack
            allowed = max(slack, np.floor(0.5 * allowed / GRID) * GRID)
        proved[i] = min(best, lower_bound)
        least[i] = best


least_surplus_jit = jit(least_surplus)


def greedy_sets(
    plan: Plan,
    origin: State,
    weight: np.ndarray,
    k: int,
    start: int,
    stop: int,
    sets: np.ndarray,
    cost: np.ndarray,
) -> None:
    """Write a cheap set of k originals with original i, and its cost: the cheapest one more, again and again.

    Parameters
    ----------
    plan : Plan
    origin : State
        u different originals.
    weight : numpy.ndarray, shape (u,), int64
        At least k in all.
    k : int
    start, stop : int
    sets : numpy.ndarray, shape (u, k), int32
        Written from `start` to `stop`.
    cost : numpy.ndarray, shape (u,), float64
        Written likewise.

    Notes
    -----
    O(k u q) for each original.
    """
    n = len(weight)
    row = np.empty(n)
    left = weight.copy()
    box = empty_state(plan, 1)
    for i in range(start, stop):
        left[:] = weight
        move(box, np.int64(0), i, origin)
        sets[i, 0] = i
        left[i] -= 1
        size = 1
        while size < k:
            join_row(plan, box, np.int64(0), origin, np.int64(0), n, row)
            at = -1
            for j in range(n):
                if left[j] > 0 and (at < 0 or row[j] < row[at]):
                    at = j
            widen(plan, box, np.int64(0), origin, at)
            # records equal to it join at no further cost
            while size < k and left[at] > 0:
                sets[i, size] = at
                left[at] -= 1
                size += 1
        cost[i] = box.cost[0]


greedy_sets_jit = jit(greedy_sets)


def lagrangian(
    sets: np.ndarray,
    cost: np.ndarray,
    weight: np.ndarray,
    highest: np.ndarray,
    price: np.ndarray,
    surplus: np.ndarray,
    direction: np.ndarray,
) -> float:
    """Return the Lagrangian value of prices if there are only these sets; every original is in one, or suppressed.

    Parameters
    ----------
    sets : numpy.ndarray, shape (s, k), int32
    cost : numpy.ndarray, shape (s,), float64
    weight : numpy.ndarray, shape (u,), int64
    highest : numpy.ndarray, shape (u,), float64
        What each price may be at most: a k-th of what it costs to suppress an original, or less.
    price : numpy.ndarray, shape (u,), float64
    surplus : numpy.ndarray, shape (u,), float64
        Written: the least cost, less the prices, of a set with each original.
    direction : numpy.ndarray, shape (u,), float64
        Written: a subgradient.
    """
    s, k = sets.shape
    u = len(price)
    cheapest = np.zeros(u, np.int64)
    surplus[:] = np.inf
    for x in range(s):
        reduced = cost[x]
        for c in range(k):
            reduced -= price[sets[x, c]]
        for c in range(k):
            j = sets[x, c]
            if reduced < surplus[j]:
                surplus[j] = reduced
                cheapest[j] = x
    total = 0.0
    direction[:] = 0.0
    for j in range(u):
        value = surplus[j] + k * price[j]
        if value < k * highest[j]:
            total += weight[j] * value
            direction[j] += k * weight[j]
            for c in range(k):
                direction[sets[cheapest[j], c]] -= weight[j]
        else:
            total += weight[j] * k * highest[j]
    return total


lagrangian_jit = jit(lagrangian)


def ascent(
    sets: np.ndarray,
    cost: np.ndarray,
    weight: np.ndarray,
    highest: np.ndarray,
    price: np.ndarray,
    rounds: int,
    reach: float,
) -> float:
    """Raise the Lagrangian value of prices if there are only these sets; return the value.

    Parameters
    ----------
    sets, cost, weight, highest
        As :func:`lagrangian` takes them.
    price : numpy.ndarray, shape (u,), float64
        Written: prices; but for rounding, no set costs less than its prices.
    rounds : int
    reach : float
        By how much the first step aims above the value.

    Notes
    -----
    Subgradients are averaged, as the volume algorithm does it, and a step is as long as if the value could rise by
    `reach`, which shrinks. In the end each original's price takes a k-th of its surplus. O(s k) for each round.
    """
    k = sets.shape[1]
    u = len(price)
    trial = price.copy()
    surplus = np.empty(u)
    direction = np.empty(u)
    best = lagrangian(sets, cost, weight, highest, price, surplus, direction)
    mean = direction.copy()
    idle = 0
    for _ in range(rounds):
        square = 0.0
        for j in range(u):
            mean[j] = 0.3 * direction[j] + 0.7 * mean[j]
            square += mean[j] * mean[j] / weight[j]
        # no step of finite length along a direction that vanishes
        if square <= GRID:
            break
        step = reach / square
        for j in range(u):
            trial[j] = min(price[j] + step * mean[j] / weight[j], highest[j])
        value = lagrangian(sets, cost, weight, highest, trial, surplus, direction)
        if value > best:
            best = value
            price[:] = trial
            idle = 0
            reach *= 1.1
        else:
            idle += 1
            if idle == 10:
                reach *= 0.7
                idle = 0
    for _ in range(10):
        lagrangian(sets, cost, weight, highest, price, surplus, direction)
        for j in range(u):
            price[j] = min(price[j] + surplus[j] / k, highest[j])
    return best


ascent_jit = jit(ascent)
