"""What one match of each record of a block is worth to the others: the costs of slot re-assignment."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.costs import join_row, move, widen
from anonflow.kernels.jit import jit
from anonflow.kernels.state import Plan, State

__all__ = ["cover", "cover_jit", "slot_costs", "slot_costs_jit"]


def cover(plan: Plan, origin: State, matches: np.ndarray, out: State) -> None:
    """Make ``out`` the generalized records that cover their matches; O(n k q).

    Parameters
    ----------
    plan : Plan
    origin : State
        n originals.
    matches : numpy.ndarray, shape (n, k), int32
        ``matches[j, 0] == j``.
    out : State
        Room for n, written.

    Raises
    ------
    None
    """
    for j in range(len(matches)):
        move(out, j, j, origin)
        for d in range(1, matches.shape[1]):
            widen(plan, out, j, origin, matches[j, d])


cover_jit = jit(cover)


def slot_costs(
    plan: Plan,
    origin: State,
    matches: np.ndarray,
    block: np.ndarray,
    slot: np.ndarray,
    rest: State,
    out: np.ndarray,
) -> None:
    """``out[a, b]``: cost of record ``block[b]`` if its match in ``slot[b]`` gave way to the one a loses.

    Infinite where that would be a double edge. The diagonal is what the records cost now, so the identity is
    an assignment, and since every record changes one match at most, costs add up to the true ones.

    Parameters
    ----------
    plan : Plan
    origin : State
        n originals.
    matches : numpy.ndarray, shape (n, k), int32
    block : numpy.ndarray, shape (B,), int64
        Distinct records.
    slot : numpy.ndarray, shape (B,), int64
        1 to k - 1: the self-match stays.
    rest : State
        Room for B records.
    out : numpy.ndarray, shape (B, B), float64
        Written.

    Raises
    ------
    None

    Notes
    -----
    O(B^2 (q + k)).
    """
    k = matches.shape[1]
    size = len(block)
    for b in range(size):
        move(rest, b, block[b], origin)
        for d in range(1, k):
            if d != slot[b]:
                widen(plan, rest, b, origin, matches[block[b], d])
    for a in range(size):
        i = np.int64(matches[block[a], slot[a]])
        # no literal 0: its type would be another one than that of other callers
        join_row(plan, origin, i, rest, np.int64(0), size, out[a])  # type: ignore[arg-type]
        for b in range(size):
            double = False
            for d in range(k):
                double |= matches[block[b], d] == i
            if double and a != b:
                out[a, b] = np.inf


slot_costs_jit = jit(slot_costs)
