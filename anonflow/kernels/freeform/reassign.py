"""The costs of slot re-assignment: each record of a block exchanges one of its matches."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.costs import move, widen
from anonflow.kernels.jit import jit, popcount
from anonflow.kernels.ordering import stable_order
from anonflow.kernels.prices import node_of
from anonflow.kernels.row_costs import join_row
from anonflow.kernels.state import LINEAR, NODES, SLOPE, Plan, State

_NONE = np.uint64(0)


def cover(plan: Plan, origin: State, matches: np.ndarray, start: int, stop: int, out: State) -> None:
    """Make ``out[start:stop]`` the generalized records that cover their matches; O(k q) each.

    Parameters
    ----------
    plan : Plan
    origin : State
        n originals.
    matches : numpy.ndarray, shape (n, k), int32
        ``matches[j, 0] == j``.
    start, stop : int
    out : State
        Room for n, written.
    """
    for j in range(start, stop):
        move(out, j, j, origin)
        for d in range(1, matches.shape[1]):
            widen(plan, out, j, origin, matches[j, d])


cover_jit = jit(cover, borrows=True)


def join_block(plan: Plan, A: State, B: State, out: np.ndarray) -> None:
    """``out[a, b]``: cost of the join of A's record a and B's record b, for plans that ``is_plain``.

    One loop per QI over all pairs: for blocks, calls per row
    would take longer than the rows. Costs are exact, so it agrees with ``join_row`` to the last bit.

    Parameters
    ----------
    plan : Plan
    A, B : State
    out : numpy.ndarray, shape (records of A, records of B), float64
        Written.
    """
    rows, columns = out.shape
    for a in range(rows):
        row = out[a]
        for b in range(columns):
            # the base is what B's own sets cost: only the other values are added below
            row[b] = B.base[b]
    for t in range(len(plan.range_form)):
        low = B.lo[t]
        high = B.hi[t]
        for a in range(rows):
            row = out[a]
            lo = A.lo[t, a]
            hi = A.hi[t, a]
            if plan.range_form[t] == LINEAR:
                for b in range(columns):
                    row[b] += (high[b] if high[b] > hi else hi) - (low[b] if low[b] < lo else lo)
                continue
            # up the path to the root, each b adds the steps that its run needs: a loop without a branch, unlike a search for each b
            node = node_of(plan, t, lo, hi)
            cost = plan.node_cost[node]
            for b in range(columns):
                row[b] += cost
            while plan.parent[node] >= 0:
                first = plan.first[node]
                last = plan.last[node]
                node = plan.parent[node]
                step = plan.node_cost[node] - cost
                cost = plan.node_cost[node]
                for b in range(columns):
                    row[b] += step if (low[b] < first) | (high[b] > last) else 0.0
    for t in range(len(plan.set_form)):
        unit = plan.set_unit[t]
        for a in range(rows):
            row = out[a]
            start = plan.word_at[t]
            stop = plan.word_at[t + 1]
            only = A.only[t, a]
            if only >= 0:
                start += only >> 6
                stop = start + 1
            for w in range(start, stop):
                word = A.bits[w, a]
                bits = B.bits[w]
                if only >= 0:
                    for b in range(columns):
                        row[b] += 0.0 if (word & bits[b]) != _NONE else unit
                else:
                    for b in range(columns):
                        row[b] += unit * popcount(word & ~bits[b])


join_block_jit = jit(join_block, borrows=True)


def cover_rest(
    plan: Plan, origin: State, matches: np.ndarray, block: np.ndarray, slot: np.ndarray, rest: State
) -> None:
    """``rest``: records of a block without the match in one slot each, as far as ``join_block`` reads them.

    Written are lo, hi, bits and base, QI by QI: several times as fast as one ``widen`` per match.

    Parameters
    ----------
    plan : Plan
        Of the forms that ``join_block`` knows.
    origin : State
    matches : numpy.ndarray, shape (n, k), int32
    block, slot : numpy.ndarray, shape (B,), int64
    rest : State
        Room for B records.

    Notes
    -----
    O(B k q).
    """
    k = matches.shape[1]
    for t in range(len(plan.range_form)):
        for b in range(len(block)):
            lo = np.inf
            hi = -np.inf
            for d in range(k):
                if d != slot[b]:
                    i = matches[block[b], d]
                    lo = min(lo, origin.lo[t, i])
                    hi = max(hi, origin.hi[t, i])
            if plan.range_form[t] == NODES:
                node = node_of(plan, t, lo, hi)
                lo = plan.first[node]
                hi = plan.last[node]
            rest.lo[t, b] = lo
            rest.hi[t, b] = hi
    for b in range(len(block)):
        rest.base[b] = 0.0
    for t in range(len(plan.set_form)):
        for b in range(len(block)):
            count = -1  # one value costs nothing
            for w in range(plan.word_at[t], plan.word_at[t + 1]):
                word = _NONE
                for d in range(k):
                    if d != slot[b]:
                        word |= origin.bits[w, matches[block[b], d]]
                rest.bits[w, b] = word
                count += popcount(word)
            rest.base[b] += plan.set_unit[t] * count


cover_rest_jit = jit(cover_rest, borrows=True)


def is_plain(plan: Plan) -> bool:
    """Return whether ``join_block`` knows the forms of a plan: LINEAR and NODES runs, SLOPE sets."""
    plain = True
    for t in range(len(plan.range_form)):
        plain &= plan.range_form[t] == LINEAR or plan.range_form[t] == NODES
    for t in range(len(plan.set_form)):
        plain &= plan.set_form[t] == SLOPE
    return plain


is_plain_jit = jit(is_plain, borrows=True)


def slot_costs(
    plan: Plan,
    origin: State,
    matches: np.ndarray,
    block: np.ndarray,
    slot: np.ndarray,
    rest: State,
    freed: State,
    out: np.ndarray,
) -> None:
    """Write to ``out[a, b]`` the cost of record ``block[b]`` if the match that a loses replaced its match in ``slot[b]``.

    Infinite where that would be a double edge. The diagonal is what the records cost now, so the identity is
    an assignment, and the sum of costs is exact, since every record changes one match at most.

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
    rest, freed : State
        Room for B records each.
    out : numpy.ndarray, shape (B, B), float64
        Written.

    Notes
    -----
    O(B^2 q + B k (q + log B)).
    """
    k = matches.shape[1]
    size = len(block)
    for b in range(size):
        move(freed, b, matches[block[b], slot[b]], origin)
    if is_plain(plan):
        cover_rest(plan, origin, matches, block, slot, rest)
        join_block(plan, freed, rest, out)
    else:
        for b in range(size):
            move(rest, b, block[b], origin)
            for d in range(1, k):
                if d != slot[b]:
                    widen(plan, rest, b, origin, matches[block[b], d])
        for a in range(size):
            # no literal 0: its type would be another one than that of other callers
            join_row(plan, freed, a, rest, np.int64(0), size, out[a])
    # A record may not get an original that another of its slots holds: these are few pairs of a block.
    lost = np.empty(size, np.int64)
    for b in range(size):
        lost[b] = matches[block[b], slot[b]]
    holders = stable_order(lost)
    for b in range(size):
        for d in range(k):
            if d != slot[b]:
                i = np.int64(matches[block[b], d])
                low = 0
                high = size
                while low < high:
                    middle = (low + high) // 2
                    if lost[holders[middle]] < i:
                        low = middle + 1
                    else:
                        high = middle
                while low < size and lost[holders[low]] == i:
                    out[holders[low], b] = np.inf
                    low += 1


slot_costs_jit = jit(slot_costs)
