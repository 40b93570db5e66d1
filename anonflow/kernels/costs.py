"""What joins of generalized records cost, whatever the loss and whatever the kinds of the QIs.

The primitives that every algorithm is built on, each plain and compiled (``_jit``):

``join_row``      cost of the join of one record with each of many
``increase_row``  the same, less what each of the many costs now
``join_cost``     one pair; ``join_pairs`` a list of pairs
``widen``         put a join in the place of a record
``move``          copy a record to another place of a state

`A` and `B` are states (they may be the same), `i` a record of A, `j` of B. All agree to the last bit: costs
are multiples of ``GRID``, so every sum is exact.
"""

from __future__ import annotations

import numpy as np

from anonflow.kernels.jit import jit, popcount
from anonflow.kernels.state import (
    ENTROPY,
    GRID,
    LINEAR,
    NODES,
    SLOPE,
    STEP,
    WHOLE,
    Plan,
    State,
    empty_state,
)

__all__ = [
    "increase_row",
    "increase_row_jit",
    "join_cost",
    "join_cost_jit",
    "join_pairs",
    "join_pairs_jit",
    "join_row",
    "join_row_jit",
    "load",
    "move",
    "move_jit",
    "node_of",
    "renew",
    "renew_jit",
    "unload",
    "widen",
    "widen_jit",
]

BLOCK = 1024  # three rows of float64 of this length stay in the first-level cache

_NONE = np.uint64(0)
_ONE = np.uint64(1)
_LOW = np.int64(63)
_FRACTION = np.int64(0xFFFFFFFFFFFFF)
_UNIT_EXPONENT = np.int64(0x3FF0000000000000)
# Adding it leaves multiples of 16 GRID, which costs below 128 are rounded to without a call.
_ROUNDER = 1.5 * 2.0**52 * 16.0 * GRID
# 2 / (ln 2 (2 t + 1)): log2 m = s (c0 + c1 s^2 + ...), s = (m - 1) / (m + 1)
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9 = (2.0 / np.log(2.0) / np.arange(1, 20, 2)).tolist()


def bit_cost(unit: float, mass: float, mlog: float) -> float:
    """`unit` times the entropy in bits of values that occur `mass` times in all, on the grid.

    H = log2 N - (1/N) sum c log2 c. The logarithm is our own: it has no calls, so loops around it are
    vectorized, and it is the same on every machine.

    Raises
    ------
    None
    """
    mass = mass if mass > 1.0 else 1.0
    word = np.float64(mass).view(np.int64)
    exponent = (word >> np.int64(52)) - np.int64(1023)
    m = np.int64((word & _FRACTION) | _UNIT_EXPONENT).view(np.float64)
    wide = m > 1.4142135623730951
    m = m * 0.5 if wide else m
    whole = float(exponent) + (1.0 if wide else 0.0)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    tail = _C5 + z * (_C6 + z * (_C7 + z * (_C8 + z * _C9)))
    log2 = whole + s * (_C0 + z * (_C1 + z * (_C2 + z * (_C3 + z * (_C4 + z * tail)))))
    bits = log2 - mlog / mass
    bits = bits if bits > 0.0 else 0.0
    return (unit * bits + _ROUNDER) - _ROUNDER


bit_cost_jit = jit(bit_cost)


def node_of(plan: Plan, t: int, lo: float, hi: float) -> int:
    """The lowest node of range QI `t` (of form NODES) that covers the leaves lo..hi; O(height).

    Raises
    ------
    None
    """
    node = plan.leaf[plan.range_at[t] + np.int64(lo)]
    while plan.last[node] < hi:
        node = plan.parent[node]
    return node


node_of_jit = jit(node_of)


def run_cost(plan: Plan, t: int, lo: float, hi: float) -> float:
    """Cost of a run on range QI `t`, not necessarily closed.

    Raises
    ------
    None
    """
    form = plan.range_form[t]
    if form == LINEAR:
        return hi - lo
    if form == NODES:
        return plan.node_cost[node_of(plan, t, lo, hi)]
    if form == WHOLE:
        return plan.range_unit[t] if lo <= 0.0 and hi >= plan.range_last[t] else 0.0
    start = plan.range_at[t] + np.int64(lo)
    stop = plan.range_at[t] + np.int64(hi) + 1
    return bit_cost(
        plan.range_unit[t], plan.mass[stop] - plan.mass[start], plan.mlog[stop] - plan.mlog[start]
    )


run_cost_jit = jit(run_cost)


def set_cost(plan: Plan, t: int, count: int, mass: float, mlog: float) -> float:
    """Cost of a set of `count` members on set QI `t`.

    Raises
    ------
    None
    """
    form = plan.set_form[t]
    if form == SLOPE:
        return plan.set_unit[t] * (count - 1)
    if form == STEP:
        return plan.set_unit[t] if count >= plan.set_least[t] else 0.0
    return bit_cost(plan.set_unit[t], mass, mlog)


set_cost_jit = jit(set_cost)


def lowest(word: int) -> int:
    """Position of the lowest one bit of a word that has one.

    Raises
    ------
    None
    """
    return popcount((word & (~word + _ONE)) - _ONE)


lowest_jit = jit(lowest)


def renew(plan: Plan, B: State) -> None:
    """Everything about each record of `B` from its ``lo, hi, bits``: counts, masses, costs.

    Raises
    ------
    None
    """
    for t in range(len(plan.set_form)):
        entropy = plan.set_form[t] == ENTROPY
        start = plan.word_at[t]
        for j in range(len(B.cost)):
            count = 0
            only = -1
            mass = 0.0
            mlog = 0.0
            for w in range(start, plan.word_at[t + 1]):
                word = B.bits[w, j]
                count += popcount(word)
                while word != _NONE:
                    only = 64 * (w - start) + lowest(word)
                    if not entropy:
                        break
                    mass += plan.mass[plan.set_at[t] + only]
                    mlog += plan.mlog[plan.set_at[t] + only]
                    word = word & (word - _ONE)
            B.count[t, j] = count
            B.only[t, j] = only if count == 1 else -1
            B.mass[t, j] = mass
            B.mlog[t, j] = mlog
    for j in range(len(B.cost)):
        base = 0.0
        rest = 0.0
        for t in range(len(plan.range_form)):
            rest += run_cost(plan, t, B.lo[t, j], B.hi[t, j])
        for t in range(len(plan.set_form)):
            cost = set_cost(plan, t, B.count[t, j], B.mass[t, j], B.mlog[t, j])
            if plan.set_form[t] == SLOPE:
                base += cost
            else:
                rest += cost
        B.base[j] = base
        B.cost[j] = base + rest


renew_jit = jit(renew)


def join_cost(plan: Plan, A: State, i: int, B: State, j: int) -> float:
    """Cost of the join of A's record i and B's record j; O(q), more for sets of several words.

    Raises
    ------
    None
    """
    total = B.base[j]
    for t in range(len(plan.range_form)):
        lo = A.lo[t, i] if A.lo[t, i] < B.lo[t, j] else B.lo[t, j]
        hi = A.hi[t, i] if A.hi[t, i] > B.hi[t, j] else B.hi[t, j]
        total += run_cost(plan, t, lo, hi)
    for t in range(len(plan.set_form)):
        form = plan.set_form[t]
        start = plan.word_at[t]
        stop = plan.word_at[t + 1]
        only = A.only[t, i]
        if only >= 0:
            start += only >> 6
            stop = start + 1
        fresh = 0
        mass = B.mass[t, j]
        mlog = B.mlog[t, j]
        for w in range(start, stop):
            word = A.bits[w, i] & ~B.bits[w, j]
            fresh += popcount(word)
            if form == ENTROPY:
                while word != _NONE:
                    at = plan.set_at[t] + 64 * (w - plan.word_at[t]) + lowest(word)
                    mass += plan.mass[at]
                    mlog += plan.mlog[at]
                    word = word & (word - _ONE)
        if form == SLOPE:
            total += plan.set_unit[t] * fresh
        else:
            total += set_cost(plan, t, B.count[t, j] + fresh, mass, mlog)
    return total


join_cost_jit = jit(join_cost)


def join_pairs(plan: Plan, A: State, ia: np.ndarray, B: State, ib: np.ndarray, out: np.ndarray) -> None:
    """``out[e]`` is the cost of the join of A's record ``ia[e]`` and B's record ``ib[e]``.

    Parameters
    ----------
    plan : Plan
    A, B : State
    ia, ib : numpy.ndarray, shape (E,), int64
    out : numpy.ndarray, shape (E,), float64
        Written.

    Raises
    ------
    None
    """
    for e in range(len(out)):
        out[e] = join_cost(plan, A, ia[e], B, ib[e])


join_pairs_jit = jit(join_pairs)


# The four functions below add the cost of the joins of A's record i with B's records start..stop-1 to
# ``out[start:stop]``, for some of the forms; SLOPE cells without their base. They are separate because numba
# drops its reference counting, dearer than a short loop, only from small functions without calls. Unsigned
# indexes cannot count from the end, which leaves loops that LLVM turns into SIMD ones.


def add_linear(plan: Plan, A: State, i: int, B: State, start: int, stop: int, out: np.ndarray) -> int:
    """LINEAR runs; how many QIs these are.

    Raises
    ------
    None
    """
    begin = np.uint64(start)
    end = np.uint64(stop)
    done = 0
    for t in range(len(plan.range_form)):
        if plan.range_form[t] == LINEAR:
            done += 1
            a = A.lo[t, i]
            b = A.hi[t, i]
            for j in range(begin, end):
                low = B.lo[t, j] if B.lo[t, j] < a else a
                high = B.hi[t, j] if B.hi[t, j] > b else b
                out[j] += high - low
    return done


add_linear_jit = jit(add_linear)


def add_nodes(plan: Plan, A: State, i: int, B: State, start: int, stop: int, out: np.ndarray) -> int:
    """NODES; how many QIs these are.

    Raises
    ------
    None
    """
    begin = np.uint64(start)
    end = np.uint64(stop)
    done = 0
    for t in range(len(plan.range_form)):
        if plan.range_form[t] == NODES:
            done += 1
            node = plan.leaf[plan.range_at[t] + np.int64(A.lo[t, i])]
            while plan.last[node] < A.hi[t, i]:
                node = plan.parent[node]
            # Walk up from i's node: j adds the step to the next node wherever this one does not cover it.
            cost = plan.node_cost[node]
            inside = cost
            if plan.parent[node] < 0:
                for j in range(begin, end):
                    out[j] += cost
            while plan.parent[node] >= 0:
                first = plan.first[node]
                last = plan.last[node]
                node = plan.parent[node]
                outside = plan.node_cost[node] - cost + inside
                for j in range(begin, end):
                    out[j] += inside if (B.lo[t, j] >= first) & (B.hi[t, j] <= last) else outside
                cost = plan.node_cost[node]
                inside = 0.0
    return done


add_nodes_jit = jit(add_nodes)


def add_singles(plan: Plan, A: State, i: int, B: State, start: int, stop: int, out: np.ndarray) -> int:
    """SLOPE sets where record i has one value; how many QIs these are.

    Raises
    ------
    None
    """
    begin = np.uint64(start)
    end = np.uint64(stop)
    done = 0
    for t in range(len(plan.set_form)):
        only = A.only[t, i]
        if plan.set_form[t] == SLOPE and only >= 0:
            done += 1
            unit = plan.set_unit[t]
            w = plan.word_at[t] + (only >> 6)
            mask = _ONE << np.uint64(only & _LOW)
            for j in range(begin, end):
                out[j] += unit if B.bits[w, j] & mask == _NONE else 0.0
    return done


add_singles_jit = jit(add_singles)


def add_rest(plan: Plan, A: State, i: int, B: State, start: int, stop: int, out: np.ndarray) -> None:
    """All others: WHOLE and ENTROPY runs, SLOPE sets where record i has several values, STEP, ENTROPY sets.

    Raises
    ------
    None
    """
    begin = np.uint64(start)
    end = np.uint64(stop)
    for t in range(len(plan.range_form)):
        form = plan.range_form[t]
        unit = plan.range_unit[t]
        a = A.lo[t, i]
        b = A.hi[t, i]
        if form == WHOLE:
            whole = plan.range_last[t]
            for j in range(begin, end):
                low = B.lo[t, j] if B.lo[t, j] < a else a
                high = B.hi[t, j] if B.hi[t, j] > b else b
                out[j] += unit if (low <= 0.0) & (high >= whole) else 0.0
        elif form == ENTROPY:
            at = plan.range_at[t]
            for j in range(begin, end):
                low = B.lo[t, j] if B.lo[t, j] < a else a
                high = B.hi[t, j] if B.hi[t, j] > b else b
                before = np.uint64(at + np.int64(low))
                after = np.uint64(at + np.int64(high) + 1)
                sum_mass = plan.mass[after] - plan.mass[before]
                out[j] += bit_cost(unit, sum_mass, plan.mlog[after] - plan.mlog[before])
    for t in range(len(plan.set_form)):
        form = plan.set_form[t]
        unit = plan.set_unit[t]
        if form == SLOPE and A.only[t, i] < 0:
            for w in range(plan.word_at[t], plan.word_at[t + 1]):
                word = A.bits[w, i]
                if word != _NONE:
                    for j in range(begin, end):
                        out[j] += unit * popcount(word & ~B.bits[w, j])
        elif form == STEP:
            total = B.count[t, start:stop].copy()
            for w in range(plan.word_at[t], plan.word_at[t + 1]):
                word = A.bits[w, i]
                if word != _NONE:
                    for j in range(begin, end):
                        total[j - begin] += popcount(word & ~B.bits[w, j])
            least = plan.set_least[t]
            for j in range(begin, end):
                out[j] += unit if total[j - begin] >= least else 0.0
        elif form == ENTROPY:
            mass = B.mass[t, start:stop].copy()
            mlog = B.mlog[t, start:stop].copy()
            for w in range(plan.word_at[t], plan.word_at[t + 1]):
                word = A.bits[w, i]
                while word != _NONE:
                    at = plan.set_at[t] + 64 * (w - plan.word_at[t]) + lowest(word)
                    mask = word & (~word + _ONE)
                    word = word & (word - _ONE)
                    more = plan.mass[at]
                    more_log = plan.mlog[at]
                    for j in range(begin, end):
                        fresh = B.bits[w, j] & mask == _NONE
                        mass[j - begin] += more if fresh else 0.0
                        mlog[j - begin] += more_log if fresh else 0.0
            for j in range(begin, end):
                out[j] += bit_cost(unit, mass[j - begin], mlog[j - begin])


add_rest_jit = jit(add_rest)


def join_row(plan: Plan, A: State, i: int, B: State, start: int, stop: int, out: np.ndarray) -> None:
    """``out[j]`` is the cost of the join of A's record i and B's record j, start <= j < stop.

    Parameters
    ----------
    plan : Plan
    A, B : State
        May be the same.
    i : int
    start, stop : int
        Records of B.
    out : numpy.ndarray, shape (at least stop,), float64
        Written from `start` to `stop`.

    Raises
    ------
    None
    """
    cells = len(plan.range_form) + len(plan.set_form)
    at = np.int64(start)  # a literal would be a type of its own, and compile everything below once more
    while at < stop:
        end = at + BLOCK if at + BLOCK < stop else np.int64(stop)
        for j in range(np.uint64(at), np.uint64(end)):
            out[j] = B.base[j]
        done = add_linear(plan, A, i, B, at, end, out)
        done += add_singles(plan, A, i, B, at, end, out)
        if done < cells:
            done += add_nodes(plan, A, i, B, at, end, out)
        if done < cells:
            add_rest(plan, A, i, B, at, end, out)
        at = end


join_row_jit = jit(join_row)


def increase_row(plan: Plan, A: State, i: int, B: State, start: int, stop: int, out: np.ndarray) -> None:
    """``out[j]`` is what B's record j would cost more if it covered A's record i too, start <= j < stop.

    It is never negative but for entropy.

    Raises
    ------
    None
    """
    cells = len(plan.range_form) + len(plan.set_form)
    at = np.int64(start)  # a literal would be a type of its own, and compile everything below once more
    while at < stop:
        end = at + BLOCK if at + BLOCK < stop else np.int64(stop)
        for j in range(np.uint64(at), np.uint64(end)):
            out[j] = B.base[j] - B.cost[j]
        done = add_linear(plan, A, i, B, at, end, out)
        done += add_singles(plan, A, i, B, at, end, out)
        if done < cells:
            done += add_nodes(plan, A, i, B, at, end, out)
        if done < cells:
            add_rest(plan, A, i, B, at, end, out)
        at = end


increase_row_jit = jit(increase_row)


def widen(plan: Plan, B: State, j: int, A: State, i: int) -> None:
    """Make B's record j the closed join of itself and A's record i, with its counts and its cost.

    Raises
    ------
    None
    """
    rest = 0.0
    base = B.base[j]
    for t in range(len(plan.range_form)):
        lo = A.lo[t, i] if A.lo[t, i] < B.lo[t, j] else B.lo[t, j]
        hi = A.hi[t, i] if A.hi[t, i] > B.hi[t, j] else B.hi[t, j]
        if plan.range_form[t] == NODES:
            node = node_of(plan, t, lo, hi)
            lo = plan.first[node]
            hi = plan.last[node]
            rest += plan.node_cost[node]
        else:
            rest += run_cost(plan, t, lo, hi)
        B.lo[t, j] = lo
        B.hi[t, j] = hi
    for t in range(len(plan.set_form)):
        form = plan.set_form[t]
        start = plan.word_at[t]
        stop = plan.word_at[t + 1]
        only = A.only[t, i]
        if only >= 0:
            start += only >> 6
            stop = start + 1
        fresh = 0
        for w in range(start, stop):
            word = A.bits[w, i] & ~B.bits[w, j]
            B.bits[w, j] |= word
            fresh += popcount(word)
            if form == ENTROPY:
                while word != _NONE:
                    at = plan.set_at[t] + 64 * (w - plan.word_at[t]) + lowest(word)
                    B.mass[t, j] += plan.mass[at]
                    B.mlog[t, j] += plan.mlog[at]
                    word = word & (word - _ONE)
        if fresh > 0:
            B.count[t, j] += fresh
            B.only[t, j] = -1
        if form == SLOPE:
            base += plan.set_unit[t] * fresh
        else:
            rest += set_cost(plan, t, B.count[t, j], B.mass[t, j], B.mlog[t, j])
    B.base[j] = base
    B.cost[j] = base + rest


widen_jit = jit(widen)


def move(B: State, to: int, at: int, C: State) -> None:
    """Copy C's record `at` to the place `to` of B.

    Raises
    ------
    None
    """
    for t in range(len(B.lo)):
        B.lo[t, to] = C.lo[t, at]
        B.hi[t, to] = C.hi[t, at]
    for t in range(len(B.bits)):
        B.bits[t, to] = C.bits[t, at]
    for t in range(len(B.count)):
        B.count[t, to] = C.count[t, at]
        B.only[t, to] = C.only[t, at]
        B.mass[t, to] = C.mass[t, at]
        B.mlog[t, to] = C.mlog[t, at]
    B.base[to] = C.base[at]
    B.cost[to] = C.cost[at]


move_jit = jit(move)


def load(plan: Plan, lo: np.ndarray, hi: np.ndarray, bits: np.ndarray, compiled: bool = True) -> State:
    """Generalized records as the kernels hold them.

    Parameters
    ----------
    plan : Plan
    lo, hi : numpy.ndarray, shape (r, P), integer
        Closed runs of codes.
    bits : numpy.ndarray, shape (w, P), uint64
    compiled : bool, optional
        Whether compiled kernels do it.

    Returns
    -------
    State
        Shares nothing with the arguments.

    Raises
    ------
    None
    """
    state = empty_state(plan, lo.shape[1])
    for t in range(len(plan.range_form)):
        points = plan.points[plan.point_at[t] : plan.point_at[t + 1]]
        if len(points):
            state.lo[t] = points[lo[t]]
            state.hi[t] = points[hi[t]]
        else:
            state.lo[t] = state.hi[t] = 0.0
    state.bits[:] = bits
    (renew_jit if compiled else renew)(plan, state)
    return state


def unload(plan: Plan, state: State) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The codes of generalized records: ``lo, hi`` (r, P) int32 and ``bits`` (w, P) uint64.

    The widest runs that cost the same: values nearer to each other than ``GRID`` times the domain's width
    are taken together.

    Raises
    ------
    None
    """
    lo = np.zeros(state.lo.shape, np.int32)
    hi = np.zeros(state.hi.shape, np.int32)
    for t in range(len(plan.range_form)):
        points = plan.points[plan.point_at[t] : plan.point_at[t + 1]]
        lo[t] = np.searchsorted(points, state.lo[t], side="left")
        hi[t] = np.searchsorted(points, state.hi[t], side="right") - 1
    return lo, hi, state.bits.copy()
