"""Clusters of at least k records, one after the other, with enough different values of columns (Byun et al., DASFAA 2007)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anonflow.kernels.costs import move, widen
from anonflow.kernels.greedy import least
from anonflow.kernels.jit import NO_NANS, jit
from anonflow.kernels.prices import run_cost, set_cost
from anonflow.kernels.row_costs import join_row
from anonflow.kernels.state import ENTROPY, LINEAR, Index, Plan, State

BLOCK = 128
"""Records of a block at most: fewer need more bounds, of more many are priced in vain (64 to 256 take equally long on Adult)."""

_NONE = np.uint64(0)


class Blocks(NamedTuple):
    """Records without a cluster in blocks of :data:`BLOCK` slots, with bounds of what joins with a cluster cost.

    Block b has its records in the first ``filled[b]`` of its slots, from b BLOCK on; ``lo, hi, bits, wide, blank`` are those of
    the records that it had when it was packed.

    Attributes
    ----------
    ids : numpy.ndarray, shape (n,), int64
        The record in each slot.
    filled : numpy.ndarray, shape (B,), int64
    lo, hi : numpy.ndarray, shape (r, B), float64
        The least first and the greatest last value.
    bits : numpy.ndarray, shape (w, B), uint64
        The union of the sets.
    wide, blank : numpy.ndarray, shape (r, B), int64
        1 where a record has several values, as a missing one has, or none, as a code among numbers; else 0. A set of an original
        always has one value.
    near : numpy.ndarray, shape (B,), float64
        At most the least cost of a join with the present cluster.
    far : numpy.ndarray, shape (B,), float64
        At least the greatest cost of a join with the first record of the present cluster.
    shared, fresh : numpy.ndarray, shape (B,), uint64
        Working memory of :func:`bound`.
    """

    ids: np.ndarray
    filled: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    bits: np.ndarray
    wide: np.ndarray
    blank: np.ndarray
    near: np.ndarray
    far: np.ndarray
    shared: np.ndarray
    fresh: np.ndarray


def empty_blocks(plan: Plan, n: int) -> Blocks:
    """Return room for n records."""
    r, size = len(plan.range_form), (n + BLOCK - 1) // BLOCK
    return Blocks(
        ids=np.zeros(n, np.int64),
        filled=np.zeros(size, np.int64),
        lo=np.zeros((r, size)),
        hi=np.zeros((r, size)),
        bits=np.zeros((plan.word_at[-1], size), np.uint64),
        wide=np.zeros((r, size), np.int64),
        blank=np.zeros((r, size), np.int64),
        near=np.zeros(size),
        far=np.zeros(size),
        shared=np.zeros(size, np.uint64),
        fresh=np.zeros(size, np.uint64),
    )


empty_blocks_jit = jit(empty_blocks)


def drop(work: State, ids: np.ndarray, at: int, m: int) -> None:
    """Remove the record in slot `at` from those before slot `m`: the last one moves into its slot."""
    if at != m - 1:
        move(work, at, m - 1, work)
        ids[at] = ids[m - 1]


drop_jit = jit(drop, borrows=True)


def pack(plan: Plan, work: State, blocks: Blocks, count: int) -> int:
    """Move the records of the first `count` blocks together; return the number of blocks that they fill."""
    r = len(plan.range_form)
    m = 0
    for b in range(count):
        for s in range(b * BLOCK, b * BLOCK + blocks.filled[b]):
            if s != m:
                move(work, m, s, work)
                blocks.ids[m] = blocks.ids[s]
            m += 1
    count = (m + BLOCK - 1) // BLOCK
    for b in range(count):
        start = b * BLOCK
        stop = start + BLOCK if start + BLOCK < m else m
        blocks.filled[b] = stop - start
        for t in range(r):
            lo = np.inf
            hi = -np.inf
            wide = False
            blank = False
            for s in range(start, stop):
                lo = min(lo, work.lo[t, s])
                hi = max(hi, work.hi[t, s])
                wide |= work.lo[t, s] < work.hi[t, s]
                blank |= work.lo[t, s] > work.hi[t, s]
            blocks.lo[t, b] = lo
            blocks.hi[t, b] = hi
            blocks.wide[t, b] = wide
            blocks.blank[t, b] = blank
        for w in range(plan.word_at[-1]):
            word = _NONE
            for s in range(start, stop):
                word |= work.bits[w, s]
            blocks.bits[w, b] = word
    return count


pack_jit = jit(pack, borrows=True)


def bound(
    plan: Plan, heads: State, c: Index, blocks: Blocks, count: int, near: np.ndarray, far: np.ndarray
) -> None:
    """Write for each block what a join with the generalized record `c` costs at least, and at most.

    The cost of a join is a sum over QIs. In each of them the value that is nearest in the block costs least, and the one
    that is furthest, or all of them together where a record has several, costs most. O(count q).

    Parameters
    ----------
    plan : Plan
        Without entropy.
    heads : State
    c : int
    blocks : Blocks
    count : int
        Blocks that are filled.
    near, far : numpy.ndarray, shape (at least count,), float64
        Written.
    """
    r = len(plan.range_form)
    # unsigned indexes cannot count from the end, so that the loops without branches become SIMD loops
    end = np.uint64(count)
    for b in range(end):
        near[b] = 0.0
        far[b] = 0.0
    for t in range(r):
        lo = heads.lo[t, c]
        hi = heads.hi[t, c]
        present = run_cost(plan, t, lo, hi)
        if plan.range_form[t] == LINEAR:
            for b in range(end):
                down = lo - blocks.lo[t, b]
                up = blocks.hi[t, b] - hi
                down = down if down > 0.0 else 0.0
                up = up if up > 0.0 else 0.0
                greater = down if down > up else up
                far[b] += present + (down + up if blocks.wide[t, b] > 0 else greater)
                above = blocks.lo[t, b] - hi
                below = lo - blocks.hi[t, b]
                gap = above if above > below else below
                near[b] += present + (gap if gap > 0.0 else 0.0)
        else:
            for b in range(end):
                first = blocks.lo[t, b]
                last = blocks.hi[t, b]
                down = run_cost(plan, t, min(lo, first), max(hi, first))
                up = run_cost(plan, t, min(lo, last), max(hi, last))
                both = run_cost(plan, t, min(lo, first), max(hi, last))
                far[b] += both if blocks.wide[t, b] > 0 else max(down, up)
                apart = first > hi or last < lo
                near[b] += min(down, up) if apart and blocks.blank[t, b] == 0 else present
    for t in range(len(plan.set_form)):
        members = heads.count[t, c]
        present = set_cost(plan, t, members, 0.0, 0.0)
        wider = set_cost(plan, t, members + 1, 0.0, 0.0)
        for b in range(end):
            blocks.shared[b] = _NONE
            blocks.fresh[b] = _NONE
        for w in range(plan.word_at[t], plan.word_at[t + 1]):
            word = heads.bits[w, c]
            for b in range(end):
                blocks.shared[b] |= blocks.bits[w, b] & word
                blocks.fresh[b] |= blocks.bits[w, b] & ~word
        for b in range(end):
            near[b] += wider if blocks.shared[b] == _NONE else present
            far[b] += present if blocks.fresh[b] == _NONE else wider


bound_jit = jit(bound, fastmath=NO_NANS, borrows=True)


def furthest(
    plan: Plan, origin: State, i: Index, work: State, blocks: Blocks, count: int, out: np.ndarray
) -> int:
    """Return the slot of the record that costs most to join with the original `i`, the lowest id among equals.

    Only blocks are priced whose bound `far` reaches the greatest cost that is found, that with the greatest bound first.

    Parameters
    ----------
    plan : Plan
    origin : State
    i : int
    work : State
        The records in the blocks' slots; at least one.
    blocks : Blocks
    count : int
        Blocks that are filled.
    out : numpy.ndarray, shape (n,), float64
        Working memory.

    Returns
    -------
    int
    """
    first = 0
    for b in range(1, count):
        first = b if blocks.far[b] > blocks.far[first] else first
    best = -np.inf
    at = -1
    for turn in range(-1, count):
        b = first if turn < 0 else turn
        if turn == first or blocks.far[b] < best:
            continue
        start = b * BLOCK
        stop = start + blocks.filled[b]
        join_row(plan, origin, i, work, start, stop, out)
        for s in range(start, stop):
            if out[s] > best or (out[s] == best and blocks.ids[s] < blocks.ids[at]):
                best = out[s]
                at = s
    return at


furthest_jit = jit(furthest, fastmath=NO_NANS, borrows=True)


def nearest(
    plan: Plan,
    heads: State,
    c: Index,
    work: State,
    blocks: Blocks,
    count: int,
    fits: np.ndarray,
    begins: bool,
    out: np.ndarray,
) -> int:
    """Return the slot of the record that costs least to join with the generalized record `c`, the lowest id among equals.

    Only blocks are priced whose bound `near` does not exceed the least cost that is found, that with the least bound first.
    A block's bound becomes the least cost of its joins: a cluster only grows, so later joins cost no less.

    Parameters
    ----------
    plan : Plan
    heads : State
    c : int
    work : State
        The records in the blocks' slots.
    blocks : Blocks
    count : int
        Blocks that are filled.
    fits : numpy.ndarray, shape (n,), bool
        Per id: whether the record may be taken.
    begins : bool
        Whether the cluster has one record. Then the bound `far` of a block that is priced becomes the greatest cost.
    out : numpy.ndarray, shape (n,), float64
        Working memory.

    Returns
    -------
    int
        -1 where no candidate fits.
    """
    first = 0
    for b in range(1, count):
        first = b if blocks.near[b] < blocks.near[first] else first
    best = np.inf
    at = -1
    for turn in range(-1, count):
        b = first if turn < 0 else turn
        if turn == first or blocks.near[b] > best:
            continue
        start = b * BLOCK
        stop = start + blocks.filled[b]
        join_row(plan, heads, c, work, start, stop, out)
        low = np.inf
        high = -np.inf
        for s in range(start, stop):
            low = out[s] if out[s] < low else low
            high = out[s] if out[s] > high else high
        blocks.near[b] = low
        if begins:
            blocks.far[b] = high
        if low <= best:
            for s in range(start, stop):
                if (
                    out[s] <= best
                    and fits[blocks.ids[s]]
                    and (out[s] < best or at < 0 or blocks.ids[s] < blocks.ids[at])
                ):
                    best = out[s]
                    at = s
    return at


nearest_jit = jit(nearest, fastmath=NO_NANS, borrows=True)


def k_member_clusters(
    plan: Plan,
    origin: State,
    work: State,
    heads: State,
    first: int,
    k: int,
    values: np.ndarray,
    distinct: np.ndarray,
    stop: int,
    labels: np.ndarray,
) -> int:
    """Label each record with its cluster; return the number of clusters. O(n^2 (q + c)).

    Records without a cluster lie in blocks, in the order in which they are given: if near ones are side by side, bounds
    leave most blocks unpriced. A bound decides what is priced and never what is chosen. When half of the records have a
    cluster, blocks are packed anew. While a cluster lacks different values of a column, only records with a value of it that
    is new to the cluster may join.

    Parameters
    ----------
    plan : Plan
    origin : State
        n originals, n >= k.
    work : State
        Room for n.
    heads : State
        Room for n // k; at the end the generalized record of each cluster.
    first : int
        The record from which the first cluster is to be far.
    k : int
        At least 1.
    values : numpy.ndarray, shape (n, c), int64
        Each record's value in every column; no two columns share a number. Without columns a cluster has k records.
    distinct : numpy.ndarray, shape (c,), int64
        The least number of different values in a cluster.
    stop : int
        All numbers are below it.
    labels : numpy.ndarray, shape (n,), int64
        Written.

    Returns
    -------
    int
        0 if the records together have too few values; then all labels are 0.

    Notes
    -----
    If the records left cannot complete a cluster, they and the records of that cluster have too few values together. No
    further cluster is possible then, and each record goes where it raises the loss least.

    Entropy may fall when a cluster grows, so no cost of it is a bound for later: there every search prices all records.
    """
    n, columns = values.shape
    out = np.empty(n)
    blocks = empty_blocks(plan, n)
    near = np.empty(len(blocks.near))
    sizes = np.zeros(n // k, np.int64)
    seen_in = np.full(stop, -1)
    lacks = np.empty(columns, np.int64)
    fits = np.ones(n, np.bool_)
    start = np.int64(0)  # a literal would be a type of its own
    monotone = True
    for form in plan.range_form:
        monotone &= form != ENTROPY
    for form in plan.set_form:
        monotone &= form != ENTROPY
    for i in range(n):
        move(work, i, i, origin)
        blocks.ids[i] = i
        labels[i] = -1
    for b in range(len(blocks.filled)):
        blocks.filled[b] = min(BLOCK, n - b * BLOCK)
    count = pack(plan, work, blocks, len(blocks.filled))
    packed = n
    m = n
    c = 0
    whole = True
    blocks.far[:] = np.inf  # the first one is sought in all blocks
    head = np.int64(first)
    while m >= k and whole:
        at = furthest(plan, origin, head, work, blocks, count, out)
        head = blocks.ids[at]
        size = 0
        lacking = np.int64(0)
        for t in range(columns):
            lacks[t] = distinct[t]
            lacking += lacks[t]
        while True:
            i = blocks.ids[at]
            labels[i] = c
            if size == 0:
                move(heads, c, at, work)
            else:
                widen(plan, heads, c, origin, i)
            for t in range(columns):
                if seen_in[values[i, t]] != c:
                    seen_in[values[i, t]] = c
                    if lacks[t] > 0:
                        lacks[t] -= 1
                        lacking -= 1
            b = at // BLOCK
            drop(work, blocks.ids, at, b * BLOCK + blocks.filled[b])
            blocks.filled[b] -= 1
            m -= 1
            size += 1
            if size == 1:
                if 2 * m <= packed:
                    count = pack(plan, work, blocks, count)
                    packed = m
                if monotone:
                    bound(plan, heads, c, blocks, count, blocks.near, blocks.far)
                else:
                    # every block is priced
                    blocks.near[:] = -np.inf
                    blocks.far[:] = np.inf
            if size >= k and lacking == 0:
                break
            if size > 1 and monotone:
                # `out` takes what joins cost at most, which nobody needs here
                bound(plan, heads, c, blocks, count, near, out)
                for b in range(count):
                    blocks.near[b] = max(blocks.near[b], near[b])
            elif size > 1:
                # what a join costs may have fallen
                blocks.near[:] = -np.inf
            if columns > 0:
                for b in range(count):
                    for s in range(b * BLOCK, b * BLOCK + blocks.filled[b]):
                        i = blocks.ids[s]
                        fits[i] = lacking == 0
                        for t in range(columns):
                            fits[i] |= lacks[t] > 0 and seen_in[values[i, t]] != c
            at = nearest(plan, heads, c, work, blocks, count, fits, size == 1, out)
            if at < 0:
                whole = False
                break
        if whole:
            sizes[c] = size
            c += 1
    if c == 0:
        for i in range(n):
            labels[i] = 0
        return c
    for i in range(n):
        # the records of the cluster that could not be completed
        if labels[i] == c:
            labels[i] = -1
    clusters = np.arange(c)
    for i in range(n):
        if labels[i] >= 0:
            continue
        join_row(plan, origin, i, heads, start, np.int64(c), out)
        for s in range(c):
            # (size + 1) new - size old, without a product that could be off the grid of costs
            out[s] += sizes[s] * (out[s] - heads.cost[s])
        at = least(out, clusters, c)
        labels[i] = at
        sizes[at] += 1
        widen(plan, heads, at, origin, i)
    return c


k_member_clusters_jit = jit(k_member_clusters)
