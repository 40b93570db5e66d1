"""Diversity of classes: the least diverse one is united with another until all are diverse (Tassa 2012, Algorithm 8)."""

from __future__ import annotations

import numpy as np

from anonflow.algorithms.diversity.target import Target, Targets
from anonflow.kernels.costs import join_row_jit, widen_jit
from anonflow.kernels.state import Plan, State

__all__ = ["united"]


def united(
    plan: Plan,
    boxes: State,
    counts: np.ndarray,
    zones: np.ndarray,
    hidden: int,
    target: Target | Targets,
    w: float,
) -> tuple[np.ndarray, int]:
    """Unite classes until all are diverse.

    Parameters
    ----------
    plan : Plan
    boxes : State
        The generalized records of b classes; widened where classes are united.
    counts : numpy.ndarray, shape (b, V), int64
        How often each sensitive value occurs in each class.
    zones : numpy.ndarray, shape (b,), int64
        Only classes of one zone may be united: they share boundaries.
    hidden : int
        A class without records, for those of classes that remain without diversity: they are to be suppressed.
    target : Target or Targets
    w : float
        Weight of the information loss against diversity.

    Returns
    -------
    into : numpy.ndarray, shape (b,), int64
        The class that each class has become part of.
    unions : int
        O(b) unions of O(b (q + V)).

    Notes
    -----
    The cost of a union is ``w cost_I + (1 - w) cost_D`` (equation 10): cost_I is what it adds to the information
    loss, averaged over all records (equation 2), cost_D what it still lacks (equation 9). Ties: the lowest class. A
    class that no other may be united with is suppressed (docs/reference/departures.md, Boundaries and limits).
    """
    b = len(counts)
    counts = counts.astype(np.int64)
    n = int(counts.sum())
    into = np.arange(b)
    there = counts.sum(axis=1) > 0
    gaps = target.gaps(counts)
    unions = 0
    row = np.empty(b)
    while True:
        gaps[hidden] = 0.0
        m = int(np.argmax(np.where(there, gaps, -1.0)))
        if not gaps[m] > 0:
            break
        partners = there & (zones == zones[m])
        partners[[hidden, m]] = False
        if not partners.any():
            best = hidden
        else:
            join_row_jit(plan, boxes, m, boxes, np.int64(0), np.int64(b), row)
            size = counts.sum(axis=1)
            loss = (size + size[m]) * row - size * boxes.cost - size[m] * boxes.cost[m]
            cost = w * loss / n + (1 - w) * target.gaps(counts + counts[m])
            cost[~partners] = np.inf
            best = int(np.argmin(cost))
        keep, gone = (hidden, m + best - hidden) if hidden in (m, best) else (min(m, best), max(m, best))
        widen_jit(plan, boxes, keep, boxes, gone)
        counts[keep] += counts[gone]
        counts[gone] = 0
        there[keep], there[gone] = True, False
        into[into == gone] = keep
        gaps[keep] = target.gaps(counts[keep][None, :])[0]
        gaps[gone] = 0.0
        unions += 1
    return into, unions
