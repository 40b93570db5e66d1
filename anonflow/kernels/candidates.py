"""Candidate records: for each original, the records whose cost rises least if they cover it."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.costs import increase_row
from anonflow.kernels.jit import jit
from anonflow.kernels.ordering import least
from anonflow.kernels.state import Plan, State

__all__ = ["nearest", "nearest_jit"]


def nearest(plan: Plan, origin: State, joined: State, start: int, stop: int, near: np.ndarray) -> None:
    """Write ``near[i]`` for the originals start..stop-1: the records whose cost rises least if they cover i.

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
        increase_row(plan, origin, i, joined, np.int64(0), n, growth)
        least(growth, i, key, near[i])


nearest_jit = jit(nearest)
