"""The data structures of the cost kernels: a plan (the loss, as numbers) and a state (generalized records)."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from anonflow.kernels.jit import jit

Index: TypeAlias = int | np.integer[Any]
"""A position: a number of Python's, or one that is read from an array."""

GRID = 2.0**-48
"""Every cost is a multiple of this.

Sums and differences of costs below 32 are then exact in float64: their order does not matter, equal costs are equal to
the last bit, and every machine computes the same costs. A cost differs from the loss by at most q GRID/2.
"""

# How a run is priced.
LINEAR = 0  # hi - lo, both scaled by the weight
NODES = 1  # the cost of the lowest node of a hierarchy that covers it
WHOLE = 2  # a unit if it is the whole domain
ENTROPY = 3  # the entropy of the values inside (runs and sets)
# How a set is priced.
SLOPE = 4  # a slope for every member but one
STEP = 5  # a unit from a certain number of members on
# A run of numbers, in a QI where some records have a code instead. It is a form of its own to keep the LINEAR loops fast.
OPTIONAL = 6  # as LINEAR, and 0 for the empty run


class Plan(NamedTuple):
    """The information loss over r range QIs and s set QIs, weights included; ``loss.plan`` builds it.

    The cost of a generalized record is the sum of the costs of its r + s cells.

    Attributes
    ----------
    range_form : numpy.ndarray, shape (r,), int64
        LINEAR, NODES, WHOLE, ENTROPY or OPTIONAL.
    range_at : numpy.ndarray, shape (r,), int64
        Where the QI begins in ``leaf`` (NODES) or in ``mass, mlog`` (ENTROPY: D + 1 prefix sums).
    range_unit : numpy.ndarray, shape (r,), float64
        WHOLE: the cost; ENTROPY: the cost of one bit.
    range_last : numpy.ndarray, shape (r,), float64
        The greatest value of ``lo, hi``.
    point_at : numpy.ndarray, shape (r + 1,), int64
        Where the QI begins in ``points``.
    points : numpy.ndarray, shape (sum of D,), float64
        ``lo, hi`` of each code, not descending: scaled values (LINEAR) or the code itself.
    leaf : numpy.ndarray, int64
        Node of each leaf of the hierarchies, one after the other.
    first, last : numpy.ndarray, float64
        First and last leaf below each node.
    parent : numpy.ndarray, int64
        -1 for a root.
    node_cost : numpy.ndarray, float64
    mass : numpy.ndarray, float64
        Occurrences c of each value of a set; of a run, prefix sums of these.
    mlog : numpy.ndarray, float64
        c log2 c of each value of a set; of a run, prefix sums of these.
    set_form : numpy.ndarray, shape (s,), int64
        SLOPE, STEP or ENTROPY.
    set_at : numpy.ndarray, shape (s,), int64
        ENTROPY: where the QI begins in ``mass, mlog``.
    set_unit : numpy.ndarray, shape (s,), float64
        The slope, the unit, or the cost of one bit.
    set_least : numpy.ndarray, shape (s,), int64
        STEP: the number of members from which on a set costs the unit.
    word_at : numpy.ndarray, shape (s + 1,), int64
        Rows of words of each set QI.
    """

    range_form: np.ndarray
    range_at: np.ndarray
    range_unit: np.ndarray
    range_last: np.ndarray
    point_at: np.ndarray
    points: np.ndarray
    leaf: np.ndarray
    first: np.ndarray
    last: np.ndarray
    parent: np.ndarray
    node_cost: np.ndarray
    mass: np.ndarray
    mlog: np.ndarray
    set_form: np.ndarray
    set_at: np.ndarray
    set_unit: np.ndarray
    set_least: np.ndarray
    word_at: np.ndarray


class State(NamedTuple):
    """P generalized records in the form that the kernels use: 64-bit lanes, a row for each QI, records side by side.

    Attributes
    ----------
    lo, hi : numpy.ndarray, shape (r, P), float64
        Ends of the runs as ``Plan.points``; of a hierarchy the run of a node. The empty run, the identity of join, has its
        first end above all points and its last below; it costs nothing.
    bits : numpy.ndarray, shape (w, P), uint64
    count : numpy.ndarray, shape (s, P), int64
        Members of each set.
    only : numpy.ndarray, shape (s, P), int64
        The code of a set's only member; -1 where it has several.
    mass, mlog : numpy.ndarray, shape (s, P), float64
        Of an ENTROPY QI: sums of the plan's ``mass, mlog`` over the members, else 0.
    base : numpy.ndarray, shape (P,), float64
        The part of the cost that stays in every join: that of the SLOPE cells.
    cost : numpy.ndarray, shape (P,), float64
        Cost of each generalized record.
    """

    lo: np.ndarray
    hi: np.ndarray
    bits: np.ndarray
    count: np.ndarray  # type: ignore[assignment]  # hides tuple.count, which nobody misses
    only: np.ndarray
    mass: np.ndarray
    mlog: np.ndarray
    base: np.ndarray
    cost: np.ndarray


def on_grid(cost: np.ndarray | float) -> np.ndarray:
    """Return the nearest multiples of :data:`GRID`."""
    return np.rint(np.asarray(cost, np.float64) / GRID) * GRID


def empty_state(plan: Plan, n: int) -> State:
    """Return room for n generalized records, of zeros."""
    r, s, w = len(plan.range_form), len(plan.set_form), int(plan.word_at[-1])
    return State(
        lo=np.zeros((r, n)),
        hi=np.zeros((r, n)),
        bits=np.zeros((w, n), np.uint64),
        count=np.zeros((s, n), np.int64),
        only=np.zeros((s, n), np.int64),
        mass=np.zeros((s, n)),
        mlog=np.zeros((s, n)),
        base=np.zeros(n),
        cost=np.zeros(n),
    )


empty_state_jit = jit(empty_state)


def take(state: State, index: np.ndarray) -> State:
    """Return the generalized records at some positions, as a state of their own.

    Raises
    ------
    IndexError
        If a position does not exist.
    """
    return State(*(np.take(part, index, axis=-1) for part in state))


def copy_state(state: State) -> State:
    """Return a copy that shares nothing with the original."""
    return State(*(part.copy() for part in state))
