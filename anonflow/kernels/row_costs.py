"""Costs of the joins of one record with many: most of the computing time is spent in these loops."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.jit import jit, popcount
from anonflow.kernels.prices import bit_cost, lowest
from anonflow.kernels.state import ENTROPY, LINEAR, NODES, OPTIONAL, SLOPE, STEP, WHOLE, Index, Plan, State

BLOCK = 1024  # three rows of float64 of this length stay in the first-level cache

_NONE = np.uint64(0)
_ONE = np.uint64(1)
_LOW = np.int64(63)

# The four functions below add the cost of the joins of A's record i with B's records start..stop-1 to
# ``out[start:stop]``, for some of the forms; SLOPE cells without their base. They are separate because numba
# removes its reference counting, which takes longer than a short loop, only from small functions without calls.
# Unsigned indexes cannot count from the end, so LLVM can turn the loops into SIMD loops.


def add_linear(plan: Plan, A: State, i: Index, B: State, start: Index, stop: Index, out: np.ndarray) -> int:
    """Add the costs of LINEAR runs; return the number of these QIs."""
    begin = np.uint64(start)
    end = np.uint64(stop)
    count = 0
    for t in range(len(plan.range_form)):
        if plan.range_form[t] == LINEAR:
            count += 1
            a = A.lo[t, i]
            b = A.hi[t, i]
            for j in range(begin, end):
                low = B.lo[t, j] if B.lo[t, j] < a else a
                high = B.hi[t, j] if B.hi[t, j] > b else b
                out[j] += high - low
    return count


add_linear_jit = jit(add_linear, borrows=True)


def add_nodes(plan: Plan, A: State, i: Index, B: State, start: Index, stop: Index, out: np.ndarray) -> int:
    """Add the costs of NODES; return the number of these QIs."""
    begin = np.uint64(start)
    end = np.uint64(stop)
    count = 0
    for t in range(len(plan.range_form)):
        if plan.range_form[t] == NODES:
            count += 1
            # once for record i; a search for each j would be a loop with branches
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
    return count


add_nodes_jit = jit(add_nodes, borrows=True)


def add_singles(plan: Plan, A: State, i: Index, B: State, start: Index, stop: Index, out: np.ndarray) -> int:
    """Add the costs of SLOPE sets in which record i has one value; return the number of these QIs."""
    begin = np.uint64(start)
    end = np.uint64(stop)
    count = 0
    for t in range(len(plan.set_form)):
        only = A.only[t, i]
        if plan.set_form[t] == SLOPE and only >= 0:
            count += 1
            unit = plan.set_unit[t]
            w = plan.word_at[t] + (only >> 6)
            mask = _ONE << np.uint64(only & _LOW)
            for j in range(begin, end):
                out[j] += unit if B.bits[w, j] & mask == _NONE else 0.0
    return count


add_singles_jit = jit(add_singles, borrows=True)


def add_rest(plan: Plan, A: State, i: Index, B: State, start: Index, stop: Index, out: np.ndarray) -> None:
    """Add all others:

    WHOLE, ENTROPY and OPTIONAL runs, SLOPE sets in which record i has several values, STEP and ENTROPY sets.
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
        elif form == OPTIONAL:
            for j in range(begin, end):
                low = B.lo[t, j] if B.lo[t, j] < a else a
                high = B.hi[t, j] if B.hi[t, j] > b else b
                out[j] += high - low if high > low else 0.0
        elif form == ENTROPY:
            at = plan.range_at[t]
            for j in range(begin, end):
                low = B.lo[t, j] if B.lo[t, j] < a else a
                high = B.hi[t, j] if B.hi[t, j] > b else b
                before = np.uint64(at + np.int64(low))
                after = np.uint64(at + np.int64(high) + 1)
                sum_mass = plan.mass[after] - plan.mass[before]
                cost = bit_cost(unit, sum_mass, plan.mlog[after] - plan.mlog[before])
                out[j] += cost if high >= low else 0.0  # the empty run costs nothing
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
            least = plan.set_least[t]
            for j in range(begin, end):
                total = B.count[t, j]
                for w in range(plan.word_at[t], plan.word_at[t + 1]):
                    total += popcount(A.bits[w, i] & ~B.bits[w, j])
                out[j] += unit if total >= least else 0.0
        elif form == ENTROPY:
            for j in range(begin, end):
                mass = B.mass[t, j]
                mlog = B.mlog[t, j]
                for w in range(plan.word_at[t], plan.word_at[t + 1]):
                    word = A.bits[w, i] & ~B.bits[w, j]
                    while word != _NONE:
                        at = plan.set_at[t] + 64 * (w - plan.word_at[t]) + lowest(word)
                        word = word & (word - _ONE)
                        mass += plan.mass[at]
                        mlog += plan.mlog[at]
                out[j] += bit_cost(unit, mass, mlog)


add_rest_jit = jit(add_rest, borrows=True)


def cost_row(
    plan: Plan, A: State, i: Index, B: State, start: Index, stop: Index, out: np.ndarray, less: bool
) -> None:
    """Write to ``out[j]`` the cost of the join of A's record i and B's record j, start <= j < stop; `less`: less B's cost.

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
    less : bool
    """
    cells = len(plan.range_form) + len(plan.set_form)
    at = int(start)  # a literal would be a type of its own, and compile everything below once more
    while at < stop:
        end = at + BLOCK if at + BLOCK < stop else int(stop)
        for j in range(np.uint64(at), np.uint64(end)):
            out[j] = B.base[j] - B.cost[j] if less else B.base[j]
        count = add_linear(plan, A, i, B, at, end, out)
        count += add_singles(plan, A, i, B, at, end, out)
        if count < cells:
            count += add_nodes(plan, A, i, B, at, end, out)
        if count < cells:
            add_rest(plan, A, i, B, at, end, out)
        at = end


cost_row_jit = jit(cost_row, borrows=True)


def join_row(plan: Plan, A: State, i: Index, B: State, start: Index, stop: Index, out: np.ndarray) -> None:
    """Write to ``out[j]`` the cost of the join of A's record i and B's record j, start <= j < stop."""
    cost_row(plan, A, i, B, start, stop, out, False)


join_row_jit = jit(join_row, borrows=True)


def increase_row(
    plan: Plan, A: State, i: Index, B: State, start: Index, stop: Index, out: np.ndarray
) -> None:
    """Write to ``out[j]`` by how much the cost of B's record j would rise if it covered A's record i too, start <= j < stop.

    Only entropy can make it negative.
    """
    cost_row(plan, A, i, B, start, stop, out, True)


increase_row_jit = jit(increase_row, borrows=True)
