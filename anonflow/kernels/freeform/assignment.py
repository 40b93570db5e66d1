"""One assignment after the other: the costs of all edges, and the widening by the chosen edges."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.costs import widen
from anonflow.kernels.jit import jit
from anonflow.kernels.row_costs import increase_row
from anonflow.kernels.state import Plan, State


def increase_matrix(
    plan: Plan, origin: State, B: State, assigned: np.ndarray, used: int, out: np.ndarray
) -> None:
    """Write to ``out[i, j]`` by how much the cost of record j would rise if it covered original i too; infinite if it does.

    Parameters
    ----------
    plan : Plan
    origin : State
        P originals.
    B : State
        P generalized records.
    assigned : numpy.ndarray, shape (P, k), int32
        ``assigned[i, d]`` is the record that assignment d gives to original i.
    used : int
        Assignments so far.
    out : numpy.ndarray, shape (P, P), float64

    Notes
    -----
    O(P^2 q).
    """
    n = len(B.cost)
    for i in range(n):
        row = out[i]
        increase_row(plan, origin, i, B, 0, n, row)
        for d in range(used):
            row[assigned[i, d]] = np.inf


increase_matrix_jit = jit(increase_matrix, borrows=True)


def take_assignment(
    plan: Plan, origin: State, B: State, to: np.ndarray, d: int, assigned: np.ndarray, matches: np.ndarray
) -> None:
    """Enter an assignment: original i goes to record ``to[i]``, which is widened to cover it.

    Parameters
    ----------
    plan : Plan
    origin, B : State
    to : numpy.ndarray, shape (P,), int64
        A permutation.
    d : int
        The assignment's number: column of `assigned` and `matches`.
    assigned, matches : numpy.ndarray, shape (P, k), int32
        Records by original, originals by record.
    """
    for i in range(len(to)):
        j = to[i]
        assigned[i, d] = j
        matches[j, d] = i
        widen(plan, B, j, origin, i)


take_assignment_jit = jit(take_assignment, borrows=True)
