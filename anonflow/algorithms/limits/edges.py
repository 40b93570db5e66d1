"""Exchange matches of a k-regular graph; an edge that breaks ``max-width`` or ``max-set`` has infinite cost."""

from __future__ import annotations

from math import fsum

import numpy as np
import scipy

from anonflow.algorithms.method import Partition
from anonflow.algorithms.near_blocks import near_blocks
from anonflow.kernels.freeform.reassign import cover_jit, slot_costs_jit
from anonflow.kernels.state import empty_state
from anonflow.partition import limited
from anonflow.table.records import Records, matches_among

BLOCK = 128
PASSES = 3


def improve_within(part: Partition, matches: np.ndarray, suppressed: np.ndarray) -> np.ndarray:
    """Exchange matches between near records, inside the limits; the loss never rises.

    Parameters
    ----------
    part : Partition
        P records.
    matches : numpy.ndarray, shape (P, k), int32
        k-regular among the records that are not suppressed, and within the limits.
    suppressed : numpy.ndarray, shape (P,), bool

    Returns
    -------
    numpy.ndarray, shape (P, k), int32
        Likewise; suppressed rows as they were.

    Notes
    -----
    Slot re-assignment, after Murakami 2018: each record of a block of near records releases one match, and an optimal assignment
    distributes them again. O(P^2 q / 128 + 128 k P q) a pass.
    """
    rows = np.flatnonzero(~suppressed)
    k = matches.shape[1]
    if len(rows) < 2 or k < 2:
        return matches
    inner = matches_among(matches, rows)
    records = part.records.take(rows)
    plan, n = part.plan, len(rows)
    origin = part.take(rows).originals()
    joined = empty_state(plan, n)
    for _ in range(PASSES):
        cover_jit(plan, origin, inner, 0, n, joined)
        before = float(joined.cost.sum())
        order = part.rng.permutation(n)
        slots = np.argsort(part.rng.random((n, k - 1)), axis=1) + 1
        for block in near_blocks(plan, origin, joined, order, BLOCK):
            rest, freed = empty_state(plan, len(block)), empty_state(plan, len(block))
            costs = np.empty((len(block), len(block)))
            for turn in range(k - 1):
                slot = slots[block, turn]
                slot_costs_jit(plan, origin, inner, block, slot, rest, freed, costs)
                costs[broken(records, inner, block, slot)] = np.inf
                source, to = scipy.optimize.linear_sum_assignment(costs - costs.min(axis=0))
                # exact sums: those of a block may exceed what GRID keeps exact
                if fsum(costs[source, to]) <= fsum(costs.diagonal()):
                    inner[block[to], slot[to]] = inner[block, slot]
        cover_jit(plan, origin, inner, 0, n, joined)
        # a further pass takes as long and gains less
        if before - float(joined.cost.sum()) <= 1e-5 * before:
            break
    improved = matches.copy()
    improved[rows] = rows[inner]
    return improved


def broken(records: Records, matches: np.ndarray, block: np.ndarray, slot: np.ndarray) -> np.ndarray:
    """Return whether record ``block[b]`` breaks a limit if its match in ``slot[b]`` gives way to the one a loses.

    Parameters
    ----------
    records : Records
    matches : numpy.ndarray, shape (n, k), int32
    block, slot : numpy.ndarray, shape (B,), int64

    Returns
    -------
    numpy.ndarray, shape (B, B), bool
        Entry (a, b). O(B^2) and O(B k) for each limited QI and, of a category, each of its words.
    """
    size = len(block)
    lost = matches[block, slot]
    stay = np.ones((size, matches.shape[1]), bool)
    stay[np.arange(size), slot] = False
    rest = matches[block][stay].reshape(size, -1)
    over = np.zeros((size, size), bool)
    for a in limited(records):
        domain = records.domains[a]
        assert domain.limit is not None
        codes = records.codes[:, a]
        if domain.shape == "range":
            points = domain.exact_points[codes]
            inside, outside = points[rest], points[lost]
            low = np.minimum(outside[:, None], inside.min(axis=1)[None, :])
            high = np.maximum(outside[:, None], inside.max(axis=1)[None, :])
            over |= (high - low > domain.limit).astype(bool)
            continue
        held = np.zeros((size, domain.size), bool)
        held[np.arange(size)[:, None], codes[rest]] = True
        over |= held.sum(axis=1)[None, :] + ~held.T[codes[lost]] > domain.limit
    return over
