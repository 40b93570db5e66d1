"""Blocks of records that are near to each other: the unit that a search improves at a time."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.row_costs import increase_row_jit
from anonflow.kernels.state import Plan, State


def near_blocks(plan: Plan, origin: State, joined: State, rows: np.ndarray, size: int) -> list[np.ndarray]:
    """Return `rows` in blocks: each has the first row left and the rows whose cost rises least if they cover it.

    Parameters
    ----------
    plan : Plan
    origin : State
        n originals.
    joined : State
        n generalized records.
    rows : numpy.ndarray, shape (m,), int64
        In random order, which also decides between equals.
    size : int

    Returns
    -------
    list of numpy.ndarray, int64
        Disjoint, of `size` records; the last one of `size` at most.
    """
    lowest, highest = int(rows.min()), int(rows.max()) + 1
    out = np.empty(len(joined.cost))
    blocks = []
    remainder = rows
    while len(remainder) > size:
        seed = int(remainder[0])
        increase_row_jit(plan, origin, seed, joined, lowest, highest, out)
        growth = out[remainder]
        growth[0] = -np.inf
        # Not argpartition: which of several equals it takes may differ between machines.
        limit = np.partition(growth, size - 1)[size - 1]
        inside = growth < limit
        inside[np.flatnonzero(growth == limit)[: size - int(inside.sum())]] = True
        blocks.append(remainder[inside])
        remainder = remainder[~inside]
    if len(remainder) > 1:
        blocks.append(remainder)
    return blocks
