"""Near candidates: for each original, the records that grow least by covering it."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.costs import increase_row
from anonflow.kernels.jit import jit
from anonflow.kernels.state import Plan, State

__all__ = [
    "least",
    "least_jit",
    "nearest",
    "nearest_jit",
]


def least(values: np.ndarray, begin: int, key: np.ndarray, place: np.ndarray) -> None:
    """The least of `values`, ``len(place)`` of them, equals in cyclic order from `begin` on.

    A heap with its greatest on top, so that most values are refused by one comparison; O(m) and a little.

    Parameters
    ----------
    values : numpy.ndarray, shape (m,), float64
    begin : int
        Equals are spread, not all the same for everybody.
    key : numpy.ndarray, shape (C,), float64
        Room, C <= m.
    place : numpy.ndarray, shape (C,), int32
        Written: positions, in no order.
    """
    m = len(values)
    room = len(place)
    filled = 0
    for part in range(2):
        start = begin if part == 0 else 0
        stop = m if part == 0 else begin
        for j in range(start, stop):
            value = values[j]
            if filled < room:
                at = filled
                filled += 1
                while at > 0 and key[(at - 1) // 2] < value:
                    key[at] = key[(at - 1) // 2]
                    place[at] = place[(at - 1) // 2]
                    at = (at - 1) // 2
            elif value < key[0]:
                at = 0
                while 2 * at + 1 < room:
                    child = 2 * at + 1
                    if child + 1 < room and key[child + 1] > key[child]:
                        child += 1
                    if key[child] <= value:
                        break
                    key[at] = key[child]
                    place[at] = place[child]
                    at = child
            else:
                continue
            key[at] = value
            place[at] = j


least_jit = jit(least)


def nearest(plan: Plan, origin: State, joined: State, start: int, stop: int, near: np.ndarray) -> None:
    """``near[i]`` for the originals start..stop-1: the records that grow least by covering i.

    Parameters
    ----------
    plan : Plan
    origin, joined : State
        n originals; n generalized records as they are now.
    start, stop : int
    near : numpy.ndarray, shape (n, C), int32
        C <= n; those rows are written, in no order within a row.

    Notes
    -----
    O((stop - start) n q) time, O(n) memory besides.
    """
    n = len(joined.cost)
    growth = np.empty(n)
    key = np.empty(near.shape[1])
    for i in range(start, stop):
        increase_row(plan, origin, i, joined, np.int64(0), n, growth)  # type: ignore[arg-type]
        least(growth, i, key, near[i])


nearest_jit = jit(nearest)
