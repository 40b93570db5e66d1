"""Two-phase (Murakami and Uno, Int. J. Inf. Secur. 17, 2018, section 3.2): assignments, then improvement."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from math import fsum

import numpy as np
from scipy.optimize import linear_sum_assignment

from anonflow.algorithms.contract import Algorithm, Outcome, Partition
from anonflow.algorithms.hungarian import hungarian_matches
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.costs import increase_row, increase_row_jit, load
from anonflow.kernels.reassign import cover, cover_jit, slot_costs, slot_costs_jit
from anonflow.kernels.state import Plan, State, empty_state
from anonflow.partition import lexicographic_order

__all__ = ["TWO_PHASE", "improve", "two_phase", "two_phase_matches"]

PATIENCE = 20
"""Passes without gain after which a table of one block is given up: only the slots differ between them."""

STRETCH = 100_000
"""Records, along the lexicographic order, among which neighbours are sought (the cited work's blocks)."""


def two_phase(
    part: Partition,
    k: int,
    *,
    first: int = 1_000,
    block: int = 256,
    passes: int = 60,
    threads: int | None = None,
) -> Outcome:
    """A k-regular generalization graph out of k assignments, improved until little is left to gain.

    First phase: the optimal assignments of :func:`~anonflow.algorithms.hungarian.hungarian` in stretches of
    the lexicographic order. Second phase: passes over blocks of records that are near to each other. From
    each record of a block one match is taken, never the self-match, and the block's records share them out
    again by an optimal assignment whose costs are true ones: cost of the remaining k - 1 matches joined with
    each one taken. Each of the k - 1 places of a record is emptied once in a pass.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int
    first : int, optional
        Records per stretch of the first phase.
    block : int, optional
        Records per block of the second phase, at least 2.
    passes : int, optional
        Passes at most; ten times as many where all records fit one block. It ends before when a pass
        (there: 20 in a row) gains less than a thousandth of a percent.
    threads : int, optional
        As many as there are processors without it; every number of them gives the same.

    Returns
    -------
    Outcome
        With matches. Facts: the number of `passes`, and by what share they lowered the loss (`gained`).

    Raises
    ------
    ParameterError
        If `first`, `block` or `passes` is out of range.

    Notes
    -----
    Paper 2, section 3.2, for every loss. Departures: the first phase is dense within its stretches, not
    sparse over all records. Where the paper cancels one negative cycle at a time, found by labelling up to
    thresholds t and p, an optimal assignment cancels the best set of disjoint cycles within a block at once;
    a record is passed once at most, so the loss changes by exactly the sum that was priced and never rises.
    No edge is doubled. Blocks are drawn anew in every pass from the generalized records as they are then: a
    random original and the records that would grow least by covering it.

    O(k P first^2) time for the first phase, O(P^2 q / block + k P block^2) per pass at worst, P^2 being
    P times 100,000 beyond that size; O(P (q + k) + threads (first^2 + block^2)) memory.
    """
    if first < 1 or block < 2 or passes < 0:
        raise ParameterError("two-phase: first must be at least 1, block at least 2, passes at least 0")
    matches, done, gained = two_phase_matches(part, k, first, block, passes, threads)
    return Outcome.of_matches(part.records, matches, passes=done, gained=gained)


def two_phase_matches(
    part: Partition,
    k: int,
    first: int = 1_000,
    block: int = 256,
    passes: int = 60,
    threads: int | None = None,
    compiled: bool = True,
) -> tuple[np.ndarray, int, float]:
    """The matches of :func:`two_phase`, how many passes it took and the share of the loss they gained.

    Parameters
    ----------
    part : Partition
    k, first, block, passes, threads
        As there.
    compiled : bool, optional
        Whether compiled kernels do it; the plain ones give the same.

    Returns
    -------
    matches : numpy.ndarray, shape (P, k), int32
    passes : int
    gained : float

    Raises
    ------
    None
    """
    threads = threads or os.cpu_count() or 1
    order = lexicographic_order(part.records)
    matches = np.empty((part.n, k), np.int32)
    plan = part.plan

    def begin(rows: np.ndarray) -> None:
        here = Partition(part.records.take(rows), part.loss, part.rng)
        matches[rows] = rows[hungarian_matches(here, k, compiled)]

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(begin, stretches(order, max(first, k), k)))
        own = Generalization.of(part.records)
        origin = load(plan, own.lo, own.hi, own.bits, compiled)
        joined = empty_state(plan, part.n)
        (cover_jit if compiled else cover)(plan, origin, matches, 0, part.n, joined)
        start = before = float(joined.cost.sum())
        done = idle = 0
        if k > 1 and part.n > 1:
            for _ in range(passes * (10 if part.n <= block else 1)):
                done += 1
                improve(plan, origin, matches, joined, order, block, part.rng, pool, compiled)
                now = float(joined.cost.sum())
                idle = idle + 1 if before - now <= 1e-5 * before else 0
                before = now
                if now == 0.0 or idle == (PATIENCE if part.n <= block else 1):
                    break
    return matches, done, 1.0 - before / start if start else 0.0


def stretches(order: np.ndarray, size: int, k: int) -> list[np.ndarray]:
    """The records in runs of `size` along an order; one that is left with fewer than k joins its neighbour.

    Raises
    ------
    None
    """
    cuts = list(range(size, len(order), size))
    if cuts and len(order) - cuts[-1] < k:
        cuts.pop()
    return np.split(order, cuts)


def improve(
    plan: Plan,
    origin: State,
    matches: np.ndarray,
    joined: State,
    order: np.ndarray,
    size: int,
    rng: np.random.Generator,
    pool: ThreadPoolExecutor,
    compiled: bool = True,
) -> None:
    """One pass of slot re-assignment over blocks of near records; `matches` and `joined` change in place.

    Parameters
    ----------
    plan : Plan
    origin : State
        n originals.
    matches : numpy.ndarray, shape (n, k), int32
        k-regular, before and after.
    joined : State
        The generalized records.
    order : numpy.ndarray, shape (n,), int64
    size : int
        Records per block.
    rng : numpy.random.Generator
    pool : concurrent.futures.ThreadPoolExecutor
    compiled : bool, optional

    Raises
    ------
    None
    """
    n, k = matches.shape
    # A fair offset, so that the ends of the stretches lie elsewhere in each pass.
    turned = np.roll(order, int(rng.integers(n))) if n > STRETCH else order
    sources = [rng.permutation(rows) for rows in np.array_split(turned, -(-n // STRETCH))]

    def gather(rows: np.ndarray) -> list[np.ndarray]:
        return near_blocks(plan, origin, joined, rows, size, compiled)

    blocks = [one for found in pool.map(gather, sources) for one in found]
    slots = np.argsort(rng.random((n, k - 1)), axis=1) + 1

    def work(block: np.ndarray) -> None:
        rest, given = empty_state(plan, len(block)), empty_state(plan, len(block))
        costs = np.empty((len(block), len(block)))
        for turn in range(k - 1):
            slot = slots[block, turn]
            (slot_costs_jit if compiled else slot_costs)(
                plan, origin, matches, block, slot, rest, given, costs
            )
            # Costs less the least of their column: the same optima, found several times as fast.
            taken, to = linear_sum_assignment(costs - costs.min(axis=0))
            if fsum(costs[taken, to]) <= fsum(costs.diagonal()):
                matches[block[to], slot[to]] = matches[block, slot]

    # Blocks share no record and each writes its own rows only, so the threads' order does not show.
    list(pool.map(work, blocks))

    def renew(start: int) -> None:
        stop = min(start + 4096, n)
        (cover_jit if compiled else cover)(plan, origin, matches, start, stop, joined)

    list(pool.map(renew, range(0, n, 4096)))


def near_blocks(
    plan: Plan, origin: State, joined: State, rows: np.ndarray, size: int, compiled: bool = True
) -> list[np.ndarray]:
    """`rows` in blocks: the first one left and those that would grow least by covering it, again and again.

    Parameters
    ----------
    plan : Plan
    origin, joined : State
        n originals; n generalized records.
    rows : numpy.ndarray, shape (m,), int64
        In random order, which also decides between equals.
    size : int
    compiled : bool, optional

    Returns
    -------
    list of numpy.ndarray, int64
        Disjoint, of `size` records; the last one of `size` at most.

    Raises
    ------
    None
    """
    lowest, highest = int(rows.min()), int(rows.max()) + 1
    out = np.empty(len(joined.cost))
    blocks = []
    left = rows
    while len(left) > size:
        seed = int(left[0])
        (increase_row_jit if compiled else increase_row)(plan, origin, seed, joined, lowest, highest, out)
        growth = out[left]
        growth[0] = -np.inf
        # Not argpartition: which of several equals it takes may differ between machines.
        limit = np.partition(growth, size - 1)[size - 1]
        inside = growth < limit
        inside[np.flatnonzero(growth == limit)[: size - int(inside.sum())]] = True
        blocks.append(left[inside])
        left = left[~inside]
    if len(left) > 1:
        blocks.append(left)
    return blocks


TWO_PHASE = Algorithm(
    name="two-phase",
    run=two_phase,
    family="freeform",
    paper="Murakami, Uno: Optimization algorithm for k-anonymization of datasets with low information loss. "
    "Int. J. Inf. Secur. 17, 2018, section 3.2",
    guarantee="k-regular",
    complexity="O(n^2 q / B + k n B^2) per pass, B = 256",
    summary="the least loss on whole tables, for a minute of work",
)
