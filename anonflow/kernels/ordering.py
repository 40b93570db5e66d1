"""Sorting and selecting inside kernels. Each algorithm is one function, so that no two closures share a name.

numba's own ``sort``, ``argsort``, ``partition`` and ``searchsorted`` are closures that differ only in their cells (see
:mod:`anonflow.kernels.cache`), and kernels do not use them. No value is NaN.
"""

from __future__ import annotations

import numpy as np

from anonflow.kernels.jit import jit

RUN = 16
"""Length of the runs that are sorted by insertion."""


def stable_order(values: np.ndarray) -> np.ndarray:
    """Return the positions of some numbers in ascending order; equal ones stay in place.

    Parameters
    ----------
    values : numpy.ndarray, shape (m,)
        Integers or floats without NaN.

    Returns
    -------
    numpy.ndarray, shape (m,), int64
        What ``numpy.argsort(values, kind="stable")`` gives. O(m log m) time, O(m) memory.

    Notes
    -----
    Runs are sorted by insertion, then merged in pairs; two runs that are already in order are copied.
    """
    m = len(values)
    order = np.empty(m, np.int64)
    keys = np.empty_like(values)
    for start in range(0, m, RUN):
        for i in range(start, min(start + RUN, m)):
            value = values[i]
            at = i
            # strictly greater: equal values stay in their order
            while at > start and keys[at - 1] > value:
                keys[at] = keys[at - 1]
                order[at] = order[at - 1]
                at -= 1
            keys[at] = value
            order[at] = i
    if m <= RUN:
        return order
    next_order = np.empty_like(order)
    next_keys = np.empty_like(keys)
    width = RUN
    while width < m:
        for start in range(0, m, 2 * width):
            middle = min(start + width, m)
            stop = min(start + 2 * width, m)
            left = start
            right = middle
            at = start
            if middle < stop and keys[middle - 1] > keys[middle]:
                while left < middle and right < stop:
                    # without a branch: the processor cannot predict which of the two is less
                    from_right = keys[right] < keys[left]
                    source = right if from_right else left
                    next_keys[at] = keys[source]
                    next_order[at] = order[source]
                    right += from_right
                    left += not from_right
                    at += 1
            while left < middle:
                next_keys[at] = keys[left]
                next_order[at] = order[left]
                left += 1
                at += 1
            while right < stop:
                next_keys[at] = keys[right]
                next_order[at] = order[right]
                right += 1
                at += 1
        order, next_order = next_order, order
        keys, next_keys = next_keys, keys
        width *= 2
    return order


stable_order_jit = jit(stable_order)


def sort(values: np.ndarray) -> None:
    """Sort some numbers in place, ascending.

    Parameters
    ----------
    values : numpy.ndarray, shape (m,)
        Integers or floats without NaN; written. O(m log m) time, O(m) memory.
    """
    values[:] = values[stable_order(values)]


sort_jit = jit(sort)


def least(values: np.ndarray, begin: int, key: np.ndarray, place: np.ndarray) -> None:
    """Select the ``len(place)`` least of `values`, equals in cyclic order from `begin` on.

    A heap with its greatest on top, so that most values are refused by one comparison; O(m) and a little.

    Parameters
    ----------
    values : numpy.ndarray, shape (m,), float64
    begin : int
        Callers vary it, so that ties are spread.
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
            # strictly less: of equal ones, those that come first in the cyclic order stay
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


least_jit = jit(least, borrows=True)
