"""k-type anonymity by widening: expansion, the (1,k)-anonymizer, and which records cover which (Tassa, Mazza, Gionis)."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.costs import join_cost, move, widen
from anonflow.kernels.jit import jit
from anonflow.kernels.ordering import least, stable_order
from anonflow.kernels.row_costs import join_row
from anonflow.kernels.state import Plan, State

_NONE = np.uint64(0)


def cover(A: State, i: int, B: State, j: int) -> bool:
    """Return whether B's record j covers A's record i; O(q)."""
    for t in range(len(A.lo)):
        if A.lo[t, i] < B.lo[t, j] or A.hi[t, i] > B.hi[t, j]:
            return False
    left = _NONE
    for w in range(len(A.bits)):
        left |= A.bits[w, i] & ~B.bits[w, j]
    return bool(left == _NONE)


cover_jit = jit(cover, borrows=True)


def covering(A: State, i: int, B: State, out: np.ndarray) -> int:
    """Write which of B's records cover A's record i, QI by QI; return how many.

    Parameters
    ----------
    A : State
    i : int
    B : State
        P records.
    out : numpy.ndarray, shape (P,), bool
        Written.
    """
    n = len(out)
    for j in range(n):
        out[j] = True
    # one QI for all records, not one record for all QIs: records lie side by side, so the inner loop is one of vectors
    for t in range(len(A.lo)):
        lo = A.lo[t, i]
        hi = A.hi[t, i]
        for j in range(n):
            out[j] = out[j] & (B.lo[t, j] <= lo) & (hi <= B.hi[t, j])
    for w in range(len(A.bits)):
        word = A.bits[w, i]
        for j in range(n):
            out[j] = out[j] & (word & ~B.bits[w, j] == _NONE)
    count = 0
    for j in range(n):
        count += out[j]
    return count


covering_jit = jit(covering, borrows=True)


def covered(A: State, B: State, j: int, out: np.ndarray) -> int:
    """Write which of A's records B's record j covers; return how many.

    Parameters
    ----------
    A : State
        P records.
    B : State
    j : int
    out : numpy.ndarray, shape (P,), bool
        Written.
    """
    n = len(out)
    for i in range(n):
        out[i] = True
    for t in range(len(A.lo)):
        lo = B.lo[t, j]
        hi = B.hi[t, j]
        for i in range(n):
            out[i] = out[i] & (lo <= A.lo[t, i]) & (A.hi[t, i] <= hi)
    for w in range(len(A.bits)):
        word = B.bits[w, j]
        for i in range(n):
            out[i] = out[i] & (A.bits[w, i] & ~word == _NONE)
    count = 0
    for i in range(n):
        count += out[i]
    return count


covered_jit = jit(covered, borrows=True)


def near(plan: Plan, origin: State, start: int, stop: int, ids: np.ndarray, costs: np.ndarray) -> None:
    """Find the nearest records of each of some records, by the cost of their join; O(u q + u) for each.

    Parameters
    ----------
    plan : Plan
    origin : State
        u records, all different.
    start, stop : int
        Records whose neighbours are wanted.
    ids : numpy.ndarray, shape (stop - start, m), int32
        Written: the m nearest, itself among them, by cost and then position.
    costs : numpy.ndarray, shape (stop - start, m), float64
        Written: costs of the joins.
    """
    u = len(origin.cost)
    m = ids.shape[1]
    out = np.empty(u)
    key = np.empty(m)
    place = np.empty(m, np.int32)
    for i in range(start, stop):
        join_row(plan, origin, i, origin, np.int64(0), np.int64(u), out)
        out[i] = -1.0  # itself comes first
        least(out, 0, key, place)
        # `least` takes any of those at the limit: the closer ones are certain, the others are taken by position, so that the result is defined
        limit = key[0]
        at = 0
        for j in range(u):
            if out[j] < limit:
                place[at] = j
                at += 1
        for j in range(u):
            if at == m:
                break
            if out[j] == limit:
                place[at] = j
                at += 1
        order = stable_order(out[place])
        for s in range(m):
            ids[i - start, s] = place[order[s]]
            costs[i - start, s] = out[place[order[s]]]
        # -1 only put the record first
        costs[i - start, 0] = origin.cost[i]


near_jit = jit(near)


def expand(
    plan: Plan,
    origin: State,
    count: np.ndarray,
    start: int,
    stop: int,
    k: int,
    ids: np.ndarray,
    costs: np.ndarray,
    boxes: State,
) -> int:
    """Compute a (k,1)-anonymization by expansion (Algorithm 2) of different records, each with its number of copies.

    A set grows by the record that raises the cost of its closure least; records that its closure covers join it at no
    cost. Under a monotone loss no set with a record in it costs less than its pair with the first record; under another
    loss its floor (:func:`anonflow.algorithms.concealment.expansion.floor`) has this property. So records beyond the m
    nearest are not examined while the closure and the best join cost less than the last of these.

    Parameters
    ----------
    plan : Plan
    origin : State
        u different records.
    count : numpy.ndarray, shape (u,), int64
        Copies of each; at least k in all.
    start, stop : int
        Records to be generalized.
    k : int
    ids, costs : numpy.ndarray, shape (stop - start, m)
        As :func:`near` finds them, under the loss or its floor.
    boxes : State
        u generalized records; start .. stop - 1 are written.

    Returns
    -------
    int
        Number of steps that examined all records.
    """
    u = len(origin.cost)
    m = ids.shape[1]
    zero = np.int64(0)
    full = 0
    row = np.empty(u)
    inside = np.empty(u, np.bool_)
    for i in range(start, stop):
        move(boxes, i, i, origin)
        size = np.int64(1)
        while size < k:
            few = m == u or boxes.cost[i] < costs[i - start, m - 1]
            have = np.int64(0)
            best = -1
            least = np.inf
            if few:
                for s in range(m):
                    j = ids[i - start, s]
                    if costs[i - start, s] > least and costs[i - start, s] > boxes.cost[i]:
                        break  # neither covered nor better, and the same holds for all that follow
                    if cover(origin, j, boxes, i):
                        have += count[j]
                    elif costs[i - start, s] <= least:
                        cost = join_cost(plan, origin, j, boxes, i)
                        # the same of equal ones as in the search of all records below, which meets them by position
                        if cost < least or (cost == least and j < best):
                            least = cost
                            best = j
                few = have >= k or m == u or (best >= 0 and least < costs[i - start, m - 1])
            if not few:
                full += 1
                covered(origin, boxes, i, inside)
                have = np.int64(0)
                join_row(plan, boxes, i, origin, zero, np.int64(u), row)
                best = -1
                least = np.inf
                for j in range(u):
                    if inside[j]:
                        have += count[j]
                    elif row[j] < least:
                        least = row[j]
                        best = j
            # covered records join at no cost, unless another record even lowers the cost (entropy)
            if best < 0 or least >= boxes.cost[i]:
                size = have if have < k else np.int64(k)
            if size < k:
                widen(plan, boxes, i, origin, best)
                size += 1
    return full


expand_jit = jit(expand)


def within(
    origin: State, count: np.ndarray, boxes: State, start: int, stop: int, ids: np.ndarray, out: np.ndarray
) -> None:
    """Find records that boxes cover: those listed first, then by position, until there are enough copies.

    Parameters
    ----------
    origin : State
        u different records.
    count : numpy.ndarray, shape (u,), int64
        Copies of each.
    boxes : State
        u generalized records; those of start .. stop - 1 cover at least `need` copies.
    start, stop : int
    ids : numpy.ndarray, shape (stop - start, m), int32
        The order in which records are examined, the own record first.
    out : numpy.ndarray, shape (u, need), int32
        Rows start .. stop - 1 are written; the own record once more where the others are enough.

    Notes
    -----
    O(m q) for each record, and O(u q + need^2) where the listed ones are not enough.
    """
    u = len(count)
    m = ids.shape[1]
    need = out.shape[1]
    for i in range(start, stop):
        at = 0
        have = np.int64(0)
        for s in range(m):
            j = ids[i - start, s]
            if have < need and cover(origin, j, boxes, i):
                out[i, at] = j
                at += 1
                have += count[j]
        listed = at
        for j in range(u):
            if have >= need:
                break
            if cover(origin, j, boxes, i):
                new = True
                for s in range(listed):
                    new &= out[i, s] != j
                if new:
                    out[i, at] = j
                    at += 1
                    have += count[j]
        for s in range(at, need):
            out[i, s] = i


within_jit = jit(within, borrows=True)


def mend(plan: Plan, origin: State, order: np.ndarray, k: int, boxes: State) -> int:
    """Run the (1,k)-anonymizer (Algorithm 3): widen generalized records until k of them cover each original.

    Parameters
    ----------
    plan : Plan
    origin : State
        u originals.
    order : numpy.ndarray, integer
        Originals in the order in which they are visited.
    k : int
    boxes : State
        n >= k generalized records; those that cover a visited original for the least increase are widened.

    Returns
    -------
    int
        Number of widenings. O(u n q) time, O(n) memory.
    """
    n = len(boxes.cost)
    inside = np.empty(n, np.bool_)
    row = np.empty(n)
    key = np.empty(k)
    place = np.empty(k, np.int32)
    widenings = 0
    for i in order:
        have = covering(origin, i, boxes, inside)
        # widening earlier originals' records may have covered this one, too
        if have >= k:
            continue
        join_row(plan, origin, i, boxes, np.int64(0), np.int64(n), row)
        for j in range(n):
            row[j] = np.inf if inside[j] else row[j] - boxes.cost[j]
        want = k - have
        least(row, 0, key[:want], place[:want])
        # as in `near`: which of equally dear records are widened is decided by position
        limit = key[0]
        for j in range(n):
            if row[j] < limit:
                widen(plan, boxes, j, origin, i)
                want -= 1
        for j in range(n):
            if want == 0:
                break
            if row[j] == limit:
                widen(plan, boxes, j, origin, i)
                want -= 1
        widenings += k - have
    return widenings


mend_jit = jit(mend)


def best_choice(
    plan: Plan,
    origin: State,
    i: int,
    chosen: np.ndarray,
    depth: int,
    best: float,
    steps: int,
    monotone: bool,
    work: State,
    boxes: State,
) -> tuple[int, float]:
    """Continue the search for the cheapest closure of record i and k - 1 others (Algorithm 1), choice by choice.

    Parameters
    ----------
    plan : Plan
    origin : State
        n originals, n >= k.
    i : int
    chosen : numpy.ndarray, shape (k,), int64
        The choice that was tried last; written. Before the first, all -1.
    depth : int
        The position in `chosen` where the search continues; 1 before the first step, also for k = 1.
    best : float
        Cost of the cheapest closure so far; infinity before the first step.
    steps : int
        The most records that one call chooses or discards.
    monotone : bool
        Whether a partial choice that costs as much as the best choice can be discarded.
    work : State
        Room for k records; written.
    boxes : State
        Record i is written.

    Returns
    -------
    depth : int
        0 once all choices were tried.
    best : float

    Notes
    -----
    O(n^(k - 1) q) time in all, O(steps q) in one call: the caller may check the time between calls. Interruptions do
    not change the result.
    """
    n = len(origin.cost)
    k = len(chosen)
    # the first call for this record: later ones find its closure in `work`
    if best == np.inf and depth == 1 and chosen[min(1, k - 1)] == -1:
        move(work, 0, i, origin)
        if k == 1:
            move(boxes, i, 0, work)
            return 0, work.cost[0]
    while depth > 0 and steps > 0:
        steps -= 1
        chosen[depth] += 1
        if chosen[depth] == i:
            chosen[depth] += 1
        others = n - 1 - chosen[depth] - (1 if i > chosen[depth] else 0)
        if chosen[depth] >= n or others < k - 1 - depth:  # too few are left to choose the rest from
            depth -= 1
            continue
        move(work, depth, depth - 1, work)
        widen(plan, work, depth, origin, chosen[depth])
        # more records make it no cheaper
        if monotone and work.cost[depth] >= best:
            continue
        if depth == k - 1:
            if work.cost[depth] < best:
                best = work.cost[depth]
                move(boxes, i, depth, work)
        else:
            chosen[depth + 1] = chosen[depth]
            depth += 1
    return depth, best


best_choice_jit = jit(best_choice, borrows=True)


def switch(
    matches: np.ndarray,
    rows: np.ndarray,
    start: np.ndarray,
    stop: np.ndarray,
    ends: np.ndarray,
    originals: np.ndarray,
    members: np.ndarray,
    begin: np.ndarray,
    randoms: np.ndarray,
) -> int:
    """Change a d-regular graph along random cycles, until the random numbers are used up.

    A walk starts at a random original. From an original it takes one of the d rows that match it, from a row one of the
    originals that it covers. It ends if that edge is a match already, or if it reaches a vertex of the walk again:
    along that cycle, matches become covers and covers become matches.

    Parameters
    ----------
    matches : numpy.ndarray, shape (n, d), int32
        Originals of each row; changed.
    rows : numpy.ndarray, shape (n, d), int32
        Rows of each original, the same graph; changed.
    start, stop, ends, originals, members, begin
        As in :class:`anonflow.algorithms.concealment.covered.Covered`.
    randoms : numpy.ndarray, shape (r,), float64
        In [0, 1).

    Returns
    -------
    int
        Number of cycles. O(r (d + log n)) time, O(n) memory.
    """
    n, d = matches.shape
    met = np.full(n, -1, np.int64)
    path = np.empty(n, np.int64)
    through = np.empty(n, np.int64)
    cycles = 0
    used = 0
    length = 0
    original = np.int64(-1)
    # a step takes at most three numbers: a start, a row, a member
    while used + 3 <= len(randoms):
        if original < 0:
            original = np.int64(randoms[used] * n)
            used += 1
        met[original] = length
        path[length] = original
        row = np.int64(rows[original, np.int64(randoms[used] * d)])
        through[length] = row
        length += 1
        at = start[row] + np.int64(randoms[used + 1] * (stop[row] - start[row]))
        used += 2
        # searched by hand: numba's `searchsorted` is a closure that its cache mixes up (`kernels/ordering.py`)
        low = np.int64(0)
        high = np.int64(len(ends) - 1)
        while low < high:  # the first end beyond `at`
            middle = (low + high) // 2
            if ends[middle] > at:
                high = middle
            else:
                low = middle + 1
        kind = originals[low]
        before = ends[low - 1] if low > 0 else np.int64(0)
        following = members[begin[kind] + at - before]
        is_match = False
        for s in range(d):
            is_match |= matches[row, s] == following
        if not is_match and met[following] < 0:
            original = following
            continue
        if not is_match:
            cycles += 1
            first = met[following]
            for t in range(first, length):
                after = first if t + 1 == length else t + 1
                for s in range(d):
                    if matches[through[t], s] == path[t]:
                        matches[through[t], s] = path[after]
                        break
                for s in range(d):
                    if rows[path[after], s] == through[after]:
                        rows[path[after], s] = through[t]
                        break
        # only what this walk has met is cleared: O(length), not O(n)
        for t in range(length):
            met[path[t]] = -1
        length = 0
        original = np.int64(-1)
    return cycles


switch_jit = jit(switch)
