"""Costs of sets of k records, for exact methods on few records."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.costs import move, widen
from anonflow.kernels.jit import jit
from anonflow.kernels.state import Plan, State


def set_costs(plan: Plan, origin: State, members: np.ndarray, partial: State, out: np.ndarray) -> None:
    """Cost of the join of each of some sets of k records.

    Parameters
    ----------
    plan : Plan
    origin : State
        n records.
    members : numpy.ndarray, shape (s, k), int32
        Positions. A set that begins with the same members as the set before it takes less time: lexicographic order is best.
    partial : State
        Room for k records: record d is the join of the first d + 1 members of the set at hand.
    out : numpy.ndarray, shape (s,), float64
        Written.

    Notes
    -----
    O(s k q) time at most, O(s q) for all sets in lexicographic order.
    """
    k = members.shape[1]
    for c in range(len(out)):
        fresh = 0
        if c > 0:
            # the members that it begins with like the set before are joined already
            while fresh < k and members[c, fresh] == members[c - 1, fresh]:
                fresh += 1
        for d in range(fresh, k):
            if d == 0:
                move(partial, 0, members[c, 0], origin)
            else:
                move(partial, d, d - 1, partial)
                widen(plan, partial, d, origin, members[c, d])
        out[c] = partial.cost[k - 1]


set_costs_jit = jit(set_costs, borrows=True)
