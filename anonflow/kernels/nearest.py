"""Candidate records: for each original, the records whose cost rises least if they cover it."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.jit import jit
from anonflow.kernels.ordering import least
from anonflow.kernels.row_costs import BLOCK, increase_row
from anonflow.kernels.state import Plan, State

GROUP = 8
"""Originals that are worked on together."""


def nearest(plan: Plan, origin: State, joined: State, start: int, stop: int, near: np.ndarray) -> None:
    """Write ``near[i]`` for the originals start..stop-1: the records whose cost rises least if they cover i.

    Parameters
    ----------
    plan : Plan
    origin : State
        n originals.
    joined : State
        n generalized records as they are now.
    start, stop : int
    near : numpy.ndarray, shape (n, C), int32
        C <= n; those rows are written, in no order within a row.

    Notes
    -----
    O((stop - start) n q) time, O(n) memory besides. A block of records is read once for `GROUP` originals, so that
    the processor does not wait for memory.
    """
    n = len(joined.cost)
    growth = np.empty((GROUP, n))
    key = np.empty(near.shape[1])
    for first in range(start, stop, GROUP):
        last = min(first + GROUP, stop)
        for begin in range(0, n, BLOCK):
            end = min(begin + BLOCK, n)
            for i in range(first, last):
                increase_row(plan, origin, i, joined, begin, end, growth[i - first])
        for i in range(first, last):
            # ties begin at i: else the first records of the table would be everybody's candidates
            least(growth[i - first], i, key, near[i])


nearest_jit = jit(nearest)
