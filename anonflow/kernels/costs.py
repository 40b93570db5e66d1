"""Costs of joins of generalized records, for every loss and every kind of QI.

All algorithms use these functions; each exists as a plain and as a compiled function (``_jit``):

``join_row``      cost of the join of one record with each of many
``increase_row`` the same, less the present cost of each
``join_cost``     one pair; ``join_pairs`` a list of pairs
``widen``         put a join in the place of a record
``move``          copy a record to another place of a state

`A` and `B` are states (they may be the same), `i` a record of A, `j` of B. All agree to the last bit: costs
are multiples of ``GRID``, so every sum is exact.
"""

from __future__ import annotations

import numpy as np

from anonflow.kernels.jit import jit, popcount
from anonflow.kernels.prices import lowest, node_of, run_cost, set_cost
from anonflow.kernels.state import ENTROPY, NODES, SLOPE, Index, Plan, State, empty_state

_NONE = np.uint64(0)
_ONE = np.uint64(1)


def renew(plan: Plan, B: State, start: Index, stop: Index) -> None:
    """Compute counts, masses and costs of the records start to stop - 1 of `B` from their ``lo, hi, bits``."""
    for j in range(start, stop):
        B.base[j] = 0.0
        B.cost[j] = 0.0
    for t in range(len(plan.range_form)):
        for j in range(start, stop):
            B.cost[j] += run_cost(plan, t, B.lo[t, j], B.hi[t, j])
    for t in range(len(plan.set_form)):
        form = plan.set_form[t]
        first = plan.word_at[t]
        for j in range(start, stop):
            count = 0
            only = -1
            mass = 0.0
            mlog = 0.0
            for w in range(first, plan.word_at[t + 1]):
                word = B.bits[w, j]
                count += popcount(word)
                while word != _NONE:
                    only = 64 * (w - first) + lowest(word)
                    # other forms price the number of values alone, and one of them says which it is where there is one
                    if form != ENTROPY:
                        break
                    mass += plan.mass[plan.set_at[t] + only]
                    mlog += plan.mlog[plan.set_at[t] + only]
                    word = word & (word - _ONE)
            B.count[t, j] = count
            # of one value the word is known: a join looks at one word, not at all of the set
            B.only[t, j] = only if count == 1 else -1
            B.mass[t, j] = mass
            B.mlog[t, j] = mlog
            cost = set_cost(plan, t, count, mass, mlog)
            if form == SLOPE:
                B.base[j] += cost
            else:
                B.cost[j] += cost
    for j in range(start, stop):
        B.cost[j] += B.base[j]


renew_jit = jit(renew, borrows=True)


def join_cost(plan: Plan, A: State, i: Index, B: State, j: Index) -> float:
    """Cost of the join of A's record i and B's record j; O(q), more for sets of several words."""
    # SLOPE costs a unit for each value, so B's part of it is known, and only A's other values are added
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


join_cost_jit = jit(join_cost, borrows=True)


def join_pairs(plan: Plan, A: State, ia: np.ndarray, B: State, ib: np.ndarray, out: np.ndarray) -> None:
    """``out[e]`` is the cost of the join of A's record ``ia[e]`` and B's record ``ib[e]``.

    Parameters
    ----------
    plan : Plan
    A, B : State
    ia, ib : numpy.ndarray, shape (E,), int64
    out : numpy.ndarray, shape (E,), float64
        Written.
    """
    for e in range(len(out)):
        out[e] = join_cost(plan, A, ia[e], B, ib[e])


join_pairs_jit = jit(join_pairs, borrows=True)


def widen(plan: Plan, B: State, j: Index, A: State, i: Index) -> None:
    """Make B's record j the closed join of itself and A's record i, with its counts and its cost."""
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
    # multiples of GRID: the sum is the one that `renew` would compute, to the last bit
    B.cost[j] = base + rest


widen_jit = jit(widen, borrows=True)


def move(B: State, to: Index, at: Index, C: State) -> None:
    """Copy C's record `at` to the place `to` of B."""
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


move_jit = jit(move, borrows=True)


def load(plan: Plan, lo: np.ndarray, hi: np.ndarray, bits: np.ndarray) -> State:
    """Return generalized records in the form that the kernels use.

    Parameters
    ----------
    plan : Plan
    lo, hi : numpy.ndarray, shape (r, P), integer
        Closed runs of codes.
    bits : numpy.ndarray, shape (w, P), uint64

    Returns
    -------
    State
        Shares nothing with the arguments.
    """
    state = empty_state(plan, lo.shape[1])
    for t in range(len(plan.range_form)):
        points = plan.points[plan.point_at[t] : plan.point_at[t + 1]]
        if len(points):
            # clipped: the codes of the empty run lie outside, and are set below
            points.take(lo[t], out=state.lo[t], mode="clip")
            points.take(hi[t], out=state.hi[t], mode="clip")
            # the empty run lies beyond all points on both sides
            state.lo[t][lo[t] == len(points)] = points[-1] + 1.0
            state.hi[t][hi[t] < 0] = -1.0
        else:
            state.lo[t] = state.hi[t] = 0.0
    state.bits[:] = bits
    renew_jit(plan, state, 0, lo.shape[1])
    return state


def unload(plan: Plan, state: State) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the codes of generalized records: ``lo, hi`` (r, P) int32 and ``bits`` (w, P) uint64.

    The widest runs that cost the same: values nearer to each other than ``GRID`` times the domain's width
    are taken together.
    """
    lo = np.zeros(state.lo.shape, np.int32)
    hi = np.zeros(state.hi.shape, np.int32)
    for t in range(len(plan.range_form)):
        points = plan.points[plan.point_at[t] : plan.point_at[t + 1]]
        lo[t] = np.searchsorted(points, state.lo[t], side="left")
        hi[t] = np.searchsorted(points, state.hi[t], side="right") - 1
    return lo, hi, state.bits.copy()
