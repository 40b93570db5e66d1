"""The cost of one run or one set, from the numbers of a plan."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.jit import jit, popcount
from anonflow.kernels.state import ENTROPY, GRID, NODES, SLOPE, STEP, WHOLE, Plan

_ONE = np.uint64(1)
_FRACTION = np.int64(0xFFFFFFFFFFFFF)
_UNIT_EXPONENT = np.int64(0x3FF0000000000000)
# Adding it leaves multiples of 16 GRID, which costs below 128 are rounded to without a call.
_ROUNDER = 1.5 * 2.0**52 * 16.0 * GRID
# 2 / (ln 2 (2 t + 1)): log2 m = s (c0 + c1 s^2 + ...), s = (m - 1) / (m + 1)
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9 = (2.0 / np.log(2.0) / np.arange(1, 20, 2)).tolist()


def bit_cost(unit: float, mass: float, mlog: float) -> float:
    """Return `unit` times the entropy in bits of values that occur `mass` times in all, on the grid.

    H = log2 N - (1/N) sum c log2 c. The logarithm is our own: it has no calls, so loops around it are
    vectorized, and it is the same on every machine.
    """
    # an empty set has mass 0, and must not be divided by; mass 1 gives no bits either
    mass = mass if mass > 1.0 else 1.0
    word = np.float64(mass).view(np.int64)
    exponent = (word >> np.int64(52)) - np.int64(1023)
    m = np.int64((word & _FRACTION) | _UNIT_EXPONENT).view(np.float64)
    # from sqrt(1/2) to sqrt(2), |s| is at most 0.172: the ten terms leave less than a float64 resolves
    wide = m > 1.4142135623730951
    m = m * 0.5 if wide else m
    whole = float(exponent) + (1.0 if wide else 0.0)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    tail = _C5 + z * (_C6 + z * (_C7 + z * (_C8 + z * _C9)))
    log2 = whole + s * (_C0 + z * (_C1 + z * (_C2 + z * (_C3 + z * (_C4 + z * tail)))))
    bits = log2 - mlog / mass
    # rounding may leave the entropy of one value just below 0
    bits = bits if bits > 0.0 else 0.0
    return (unit * bits + _ROUNDER) - _ROUNDER


bit_cost_jit = jit(bit_cost, borrows=True)


def node_of(plan: Plan, t: int, lo: float, hi: float) -> int:
    """Return the lowest node of range QI `t` (of form NODES) that covers the leaves lo..hi; O(height)."""
    node = plan.leaf[plan.range_at[t] + np.int64(lo)]
    while plan.last[node] < hi:
        node = plan.parent[node]
    return node


node_of_jit = jit(node_of, borrows=True)


def run_cost(plan: Plan, t: int, lo: float, hi: float) -> float:
    """Return the cost of a run on range QI `t`, which need not be closed; the empty run costs nothing."""
    form = plan.range_form[t]
    if lo > hi:
        return 0.0
    if form == NODES:
        return plan.node_cost[node_of(plan, t, lo, hi)]
    if form == WHOLE:
        return plan.range_unit[t] if lo <= 0.0 and hi >= plan.range_last[t] else 0.0
    if form == ENTROPY:
        start = plan.range_at[t] + np.int64(lo)
        stop = plan.range_at[t] + np.int64(hi) + 1
        return bit_cost(
            plan.range_unit[t], plan.mass[stop] - plan.mass[start], plan.mlog[stop] - plan.mlog[start]
        )
    return hi - lo  # LINEAR, OPTIONAL


run_cost_jit = jit(run_cost, borrows=True)


def set_cost(plan: Plan, t: int, count: int, mass: float, mlog: float) -> float:
    """Return the cost of a set of `count` members on set QI `t`."""
    form = plan.set_form[t]
    if form == SLOPE:
        return plan.set_unit[t] * (count - 1)
    if form == STEP:
        return plan.set_unit[t] if count >= plan.set_least[t] else 0.0
    return bit_cost(plan.set_unit[t], mass, mlog)


set_cost_jit = jit(set_cost, borrows=True)


def lowest(word: int) -> int:
    """Return the position of the lowest bit that is set in a word other than 0."""
    return popcount((word & (~word + _ONE)) - _ONE)


lowest_jit = jit(lowest, borrows=True)
