"""Reciprocal generalization: symmetric graphs for greedy, sort-greedy, hungarian and two-phase.

Those of nh, min-cost-flow and optimal stand where these do.

A k-regular graph is symmetric if record j covers original i whenever record i covers original j. Against attackers
who know c true matches it still hides everybody among k - c, as classes of equal records do; freeform graphs may
lose more (Doka 2015, section 2.2; Choromanski, Jebara and Tang).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Literal

import numpy as np
from scipy.optimize import linear_sum_assignment

from anonflow.algorithms.freeform.chains import ENOUGH
from anonflow.algorithms.freeform.two_phase_candidates import near_records
from anonflow.algorithms.method import Outcome, Partition, Progress
from anonflow.generalization import Generalization
from anonflow.kernels import links, symmetric
from anonflow.kernels.assignment import increase_matrix, increase_matrix_jit
from anonflow.kernels.costs import load
from anonflow.kernels.reassign import cover, cover_jit
from anonflow.kernels.slot_rows import empty_rows, renew_span, renew_span_jit
from anonflow.kernels.state import State, copy_state, empty_state
from anonflow.kernels.symmetric_chains import symmetric_chains, symmetric_chains_jit
from anonflow.option import Option
from anonflow.partition import lexicographic_order

__all__ = [
    "Method",
    "Reciprocal",
    "improve_reciprocal",
    "mutual_outcome",
    "reciprocal_matches",
    "reciprocal_outcome",
]

Method = Literal["greedy", "sort-greedy", "hungarian"]

Reciprocal = Annotated[bool, Option("Reciprocal matches", symmetric=True)]
"""The option that they all have."""

DEPTH = 10
"""Records in a chain of links at most."""

VISITS = 20
"""Of each record in a round of chains, at most."""

ROUNDS = 5
"""How often hungarian solves a step's assignment problem anew to be rid of pairs."""

SWEEPS = 30
"""How often hungarian goes through all pairs of links to exchange ends, at most."""


def reciprocal_outcome(part: Partition, k: int, method: Method) -> Outcome:
    """Return what a method makes of a partition with ``reciprocal=True``.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int
    method : {"greedy", "sort-greedy", "hungarian"}

    Returns
    -------
    Outcome
        With symmetric matches. Facts: dead ends resolved by exchanging a link (`backtracked`), steps that were
        completed as a whole (`augmented`), and how many records have k + 1 matches (`one_more_match`).
    """
    return mutual_outcome(part, k, *reciprocal_matches(part, k, method))


def mutual_outcome(part: Partition, k: int, matches: np.ndarray, facts: np.ndarray, **more: Any) -> Outcome:
    """Return the outcome of symmetric matches, with the two facts of :func:`reciprocal_matches` and others.

    Parameters
    ----------
    part : Partition
    k : int
    matches : numpy.ndarray, shape (P, d), int32
    facts : numpy.ndarray, shape (2,), int64
    **more
        Facts.
    """
    return Outcome.of_matches(
        part.records,
        matches,
        backtracked=int(facts[0]),
        augmented=int(facts[1]),
        one_more_match=part.n if matches.shape[1] > k else 0,
        **more,
    )


def reciprocal_matches(
    part: Partition, k: int, method: Method, compiled: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Return symmetric matches: each record itself, then an assignment and its inverse at a time.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int
    method : {"greedy", "sort-greedy", "hungarian"}
    compiled : bool, optional
        Whether compiled kernels do it; the plain ones give the same.

    Returns
    -------
    matches : numpy.ndarray, shape (P, d), int32
        d = k, or k + 1 where P (k - 1) is odd: no symmetric graph of degree k has all self-matches then. Columns
        are assignments: the identity; for even d an involution (pairs); then each one followed by its inverse.
    facts : numpy.ndarray, shape (2,), int64
        Dead ends resolved by exchanging a link; steps completed as a whole.

    Notes
    -----
    A step costs what both its assignment and the inverse add. Seen without direction it gives each record two
    neighbours, on cycles of three records or more. greedy: the records in lexicographic order take their nearest
    ones; sort-greedy: the cheapest links of all first; hungarian: an optimal assignment, whose pairs (they use a
    link twice) are forbidden in one direction and the problem solved again, a few times; then ends of links are
    exchanged while that lowers the cost. The least 2-factor is not promised. Time and memory: as without.

    Records left over by a step exchange a link, which is possible for k < (P + 3) / 2, as in Doka 2015's Theorem
    5.2 (proof: :func:`anonflow.kernels.links.complete_links`). Beyond that, a step that comes to a dead end
    is made as a whole: unused pairs, an even number for each record, are given directions along closed trails,
    and the arcs contain an assignment (Petersen). For P even and k odd that number is odd; there some pairs are
    set aside from the start and never used.
    """
    n = part.n
    degree = k + n * (k - 1) % 2
    aside = int(n % 2 == 0 and degree % 2 == 1 and 2 * degree >= n + 3)
    order = lexicographic_order(part.records)
    near = np.empty((n, degree + aside), np.int32)
    near[:, 0] = np.arange(n)
    if aside:
        near[order, 1] = np.roll(order, n // 2)
    own = Generalization.of(part.records)
    origin = load(part.plan, own.lo, own.hi, own.bits, compiled)
    state = copy_state(origin)
    room = (empty_state(part.plan, n), empty_state(part.plan, n)) if method == "greedy" else None
    facts = np.zeros(2, np.int64)
    level = 1 + aside
    while level < near.shape[1]:
        need = 1 if (near.shape[1] - level) % 2 else 2
        size = np.full(n, level)
        costs = None
        if room is not None:
            _kernel("greedy_links", compiled)(part.plan, origin, state, *room, order, near, size, level, need)
        else:
            costs = _costs(part, origin, state, near[:, :level], compiled)
            if method == "hungarian":
                _assign(costs, near, size, level, need, compiled)
            _cheapest(costs, near, size, level + need, compiled)
        done = _kernel("complete_links", compiled)(part.plan, origin, state, near, size, level, need, facts)
        if not done:
            facts[1] += 1
            if costs is None:
                costs = _costs(part, origin, state, near[:, :level], compiled)
            _as_a_whole(costs, near, level, compiled)
        if method == "hungarian":
            _kernel("exchange_links", compiled)(costs, near, level, need, SWEEPS)
        if need == 2:
            _kernel("orient_links", compiled)(near, level)
        _kernel("enter_links", compiled)(part.plan, origin, state, near, level, need)
        level += need
    return (np.delete(near, 1, axis=1) if aside else near), facts


def improve_reciprocal(
    part: Partition,
    matches: np.ndarray,
    candidates: int,
    most: int,
    pool: ThreadPoolExecutor,
    compiled: bool = True,
) -> tuple[np.ndarray, dict[str, Any]]:
    """Return a symmetric graph of lower loss, by ejection chains of links.

    Parameters
    ----------
    part : Partition
        P records.
    matches : numpy.ndarray, shape (P, d), int32
        Symmetric, ``matches[:, 0]`` the records themselves.
    candidates : int
        Records that each one may link up with, at most: those that raise its cost least, and whose cost it raises least.
    most : int
        Rounds at most.
    pool : concurrent.futures.ThreadPoolExecutor
        The result does not depend on its threads.
    compiled : bool, optional

    Returns
    -------
    matches : numpy.ndarray, shape (P, d), int32
        Symmetric.
    facts : dict
        `chains` that lowered the loss, `rounds`.

    Notes
    -----
    In each round candidates are renewed; the last one lowers the loss by less than a hundredth of a percent. O(P^2 q) time
    each, besides the chains (:func:`anonflow.kernels.symmetric_chains.symmetric_chains`); O(P d q) memory.
    """
    n, k = matches.shape
    plan = part.plan
    own = Generalization.of(part.records)
    origin = load(plan, own.lo, own.hi, own.bits, compiled)
    matches = matches.copy()
    joined = empty_state(plan, n)
    rows = empty_rows(plan, origin, k)
    (renew_span_jit if compiled else renew_span)(rows, matches, 0, n)
    now = float(rows.drop[::k].sum())
    chains = done = 0
    count = min(candidates + k, n)
    search = symmetric_chains_jit if compiled else symmetric_chains
    while done < most and k > 1 and now > 0.0:
        (cover_jit if compiled else cover)(plan, origin, matches, 0, n, joined)
        takes = near_records(plan, joined, origin, count, pool, compiled)
        taken = near_records(plan, origin, joined, count, pool, compiled)
        near = np.concatenate([taken, takes], axis=1)
        chains += search(rows, matches, near, part.rng.permutation(n).astype(np.int64), DEPTH, VISITS * n)
        done += 1
        before, now = now, float(rows.drop[::k].sum())
        if part.watch is not None:
            part.watch(Progress(done, most, now))
        if before - now <= ENOUGH * before:
            break
    return matches, {"rounds": done, "chains": chains}


def _kernel(name: str, compiled: bool) -> Any:
    room = links if name in ("complete_links", "exchange_links") else symmetric
    return getattr(room, f"{name}_jit" if compiled else name)


def _costs(part: Partition, origin: State, state: State, used: np.ndarray, compiled: bool) -> np.ndarray:
    """Return what each link would add, shape (P, P); infinite for those that there are."""
    n = part.n
    costs = np.empty((n, n))
    (increase_matrix_jit if compiled else increase_matrix)(part.plan, origin, state, used, 0, costs)
    costs += costs.T.copy()
    costs[np.arange(n)[:, None], used] = np.inf
    return costs


def _assign(
    costs: np.ndarray, near: np.ndarray, size: np.ndarray, level: int, need: int, compiled: bool
) -> None:
    """Link along an optimal assignment; pairs, and what odd cycles leave over where pairs are wanted, need more."""
    n = len(costs)
    here = np.arange(n)
    allowed = costs.copy()
    to = here
    for _ in range(ROUNDS):
        try:
            with np.errstate(invalid="ignore"):
                to = linear_sum_assignment(allowed - allowed.min(axis=0))[1]
        except ValueError:  # too much is forbidden: what the last round left is completed
            break
        pairs = np.flatnonzero((to[to] == here) & (here < to))
        if need == 1 or not len(pairs):
            break
        allowed[pairs, to[pairs]] = np.inf
    if need == 1:
        _kernel("pair_cycles", compiled)(to, costs, near, size, level)
    else:
        _kernel("link_assignment", compiled)(to, near, size, level)


def _cheapest(costs: np.ndarray, near: np.ndarray, size: np.ndarray, full: int, compiled: bool) -> None:
    """Link the records that need it, the cheapest links first."""
    ids = np.flatnonzero(size < full)
    edges = np.argsort(costs[np.ix_(ids, ids)], axis=None, kind="stable")
    _kernel("sorted_links", compiled)(costs, edges, ids, near, size, full)


def _as_a_whole(costs: np.ndarray, near: np.ndarray, level: int, compiled: bool) -> None:
    """Make a step of two anew: an assignment along arcs of which none is the inverse of another."""
    arcs = np.empty(costs.shape, bool)
    _kernel("orient_unused", compiled)(near, level, arcs)
    to = linear_sum_assignment(np.where(arcs, costs, np.inf))[1]
    near[:, level] = to
    near[to, level + 1] = np.arange(len(to))
