"""The data structure of the class chains: the records of each class, and the class without each of its records."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anonflow.kernels.costs import renew
from anonflow.kernels.jit import jit
from anonflow.kernels.prices import node_of
from anonflow.kernels.state import NODES, Plan, State, empty_state


class Classes(NamedTuple):
    """C classes of n records, each with room for R; some may be empty.

    Class c has the records ``member[c, :size[c]]``. The place of record i is ``label[i] * R + slot[i]``: so are the
    columns of `rest` numbered.

    Attributes
    ----------
    member : numpy.ndarray, shape (C, R), int64
    size : numpy.ndarray, shape (C,), int64
    label, slot : numpy.ndarray, shape (n,), int64
    worth : numpy.ndarray, shape (C R,), float64
        By how much the cost of each generalized record of the class falls without the record in that place.
    most : numpy.ndarray, shape (C,), float64
        The greatest `worth` of each class.
    joined : State
        C generalized records: the closure of each class.
    rest : State
        C R generalized records: the closure of each class without the record in that place.
    """

    member: np.ndarray
    size: np.ndarray
    label: np.ndarray
    slot: np.ndarray
    worth: np.ndarray
    most: np.ndarray
    joined: State
    rest: State


def classes_of(plan: Plan, labels: np.ndarray, count: int, room: int) -> Classes:
    """Return classes with these labels; call :func:`renew_class` for each class to compute its costs.

    Parameters
    ----------
    plan : Plan
    labels : numpy.ndarray, shape (n,), int64
        Below `count`.
    count : int
        Classes, C.
    room : int
        Records of a class at most, R.
    """
    size = np.bincount(labels, minlength=count).astype(np.int64)
    order = np.argsort(labels, kind="stable")
    slot = np.empty(len(labels), np.int64)
    slot[order] = np.arange(len(labels)) - np.repeat(np.cumsum(size) - size, size)
    member = np.full((count, room), -1, np.int64)
    member[labels, slot] = np.arange(len(labels))
    return Classes(
        member,
        size,
        labels.astype(np.int64).copy(),
        slot,
        np.zeros(count * room),
        np.zeros(count),
        empty_state(plan, count),
        empty_state(plan, count * room),
    )


def put(classes: Classes, i: int, place: int) -> None:
    """Write record i into a place; the class's costs are not renewed."""
    room = classes.member.shape[1]
    classes.member[place // room, place % room] = i
    classes.label[i] = place // room
    classes.slot[i] = place % room


put_jit = jit(put, borrows=True)


# A class and its rests are renewed column of the table by column: each joins the records before a place with those after
# it, in O(R) instead of the O(R^2) of one `widen` per record.


def renew_runs(plan: Plan, origin: State, classes: Classes, c: int) -> None:
    """Compute the runs of a class and of the class without each of its records."""
    room = classes.member.shape[1]
    size = classes.size[c]
    start = c * room
    member = classes.member[c]
    rest = classes.rest
    joined = classes.joined
    for t in range(len(plan.range_form)):
        lo = origin.lo[t, member[0]]
        hi = origin.hi[t, member[0]]
        for s in range(1, size):
            rest.lo[t, start + s] = lo
            rest.hi[t, start + s] = hi
            lo = min(lo, origin.lo[t, member[s]])
            hi = max(hi, origin.hi[t, member[s]])
        whole_lo = lo
        whole_hi = hi
        lo = np.inf
        hi = -np.inf
        # -1 is the class itself, after its rests
        for s in range(size - 1, -2, -1):
            if s < 0:
                low = whole_lo
                high = whole_hi
            elif s == 0:
                low = lo
                high = hi
            else:
                low = min(lo, rest.lo[t, start + s])
                high = max(hi, rest.hi[t, start + s])
                lo = min(lo, origin.lo[t, member[s]])
                hi = max(hi, origin.hi[t, member[s]])
            if plan.range_form[t] == NODES and low <= high:
                node = node_of(plan, t, low, high)
                low = plan.first[node]
                high = plan.last[node]
            if s < 0:
                joined.lo[t, c] = low
                joined.hi[t, c] = high
            else:
                rest.lo[t, start + s] = low
                rest.hi[t, start + s] = high


renew_runs_jit = jit(renew_runs, borrows=True)


def renew_words(plan: Plan, origin: State, classes: Classes, c: int) -> None:
    """Compute the words of the sets, of a class and of the class without each of its records."""
    room = classes.member.shape[1]
    size = classes.size[c]
    start = c * room
    member = classes.member[c]
    rest = classes.rest
    for w in range(len(origin.bits)):
        word = origin.bits[w, member[0]]
        for s in range(1, size):
            rest.bits[w, start + s] = word
            word |= origin.bits[w, member[s]]
        classes.joined.bits[w, c] = word
        word = origin.bits[w, member[size - 1]]
        for s in range(size - 2, 0, -1):
            rest.bits[w, start + s] |= word
            word |= origin.bits[w, member[s]]
        rest.bits[w, start] = word


renew_words_jit = jit(renew_words, borrows=True)


def renew_class(plan: Plan, origin: State, classes: Classes, c: int) -> None:
    """Compute everything about class c from its members; O(R q), and O(R D) for the entropy of sets of D values.

    Parameters
    ----------
    plan : Plan
    origin : State
        n originals.
    classes : Classes
        Class c has at least two records.
    c : int
    """
    room = classes.member.shape[1]
    start = c * room
    stop = start + classes.size[c]
    renew_runs(plan, origin, classes, c)
    renew_words(plan, origin, classes, c)
    renew(plan, classes.joined, c, c + 1)
    renew(plan, classes.rest, start, stop)
    most = 0.0
    for place in range(start, stop):
        worth = classes.joined.cost[c] - classes.rest.cost[place]
        classes.worth[place] = worth
        most = max(most, worth)
    classes.most[c] = most


renew_class_jit = jit(renew_class, borrows=True)
