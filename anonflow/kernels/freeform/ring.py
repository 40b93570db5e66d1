"""Rings: each run of records is put in an order in which neighbours are near."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.costs import join_cost
from anonflow.kernels.jit import jit
from anonflow.kernels.state import Plan, State


def nearest_rings(plan: Plan, origin: State, order: np.ndarray, starts: np.ndarray) -> None:
    """Reorder each run of `order` in place: begin with its first record, and always append the nearest record left.

    Parameters
    ----------
    plan : Plan
    origin : State
        P originals; the distance of two is the cost of their join.
    order : numpy.ndarray, shape (P,), int64
        Records, run after run.
    starts : numpy.ndarray, shape (number of runs + 1,), int64
        Where the runs start; the last entry is P.

    Notes
    -----
    O(sum of m^2 q) for runs of m. Ties go to the first record of the run.
    """
    for part in range(len(starts) - 1):
        stop = starts[part + 1]
        for at in range(starts[part], stop - 1):
            nearest = at + 1
            least = np.inf
            for other in range(at + 1, stop):
                cost = join_cost(plan, origin, order[at], origin, order[other])
                if cost < least:
                    least = cost
                    nearest = other
            chosen = order[nearest]
            # the others keep their order, so that ties stay deterministic
            for other in range(nearest, at + 1, -1):
                order[other] = order[other - 1]
            order[at + 1] = chosen


nearest_rings_jit = jit(nearest_rings, borrows=True)
