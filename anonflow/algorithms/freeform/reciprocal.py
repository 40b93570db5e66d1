"""Reciprocal generalization: symmetric graphs for greedy, sort-greedy, hungarian and two-phase.

The modules of nh, min-cost-flow and optimal contain their own symmetric graphs.

A k-regular graph is symmetric if record j covers original i whenever record i covers original j. Against attackers who
know c true matches it still hides each person among k - c rows, as classes of equal records do; freeform graphs may
lose more (Doka 2015, section 2.2; Choromanski, Jebara and Tang).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
import scipy

from anonflow.algorithms.method import Outcome, Partition
from anonflow.kernels.freeform.assignment import increase_matrix_jit
from anonflow.kernels.freeform.links import complete_links_jit, exchange_links_jit
from anonflow.kernels.freeform.symmetric import (
    enter_links_jit,
    greedy_links_jit,
    link_assignment_jit,
    orient_links_jit,
    orient_unused_jit,
    pair_cycles_jit,
    sorted_links_jit,
)
from anonflow.kernels.state import State, copy_state, empty_state
from anonflow.option import Option
from anonflow.partition import lexicographic_order

Method = Literal["greedy", "sort-greedy", "hungarian"]

Reciprocal = Annotated[bool, Option("Reciprocal matches", symmetric=True)]
"""The option that they all have."""

ROUNDS = 5
"""How often hungarian solves a step's assignment problem again to avoid pairs."""

SWEEPS = 30
"""How often, at most, hungarian goes through all pairs of links to exchange ends."""


def reciprocal_outcome(part: Partition, k: int, method: Method) -> Outcome:
    """Return a method's outcome of a partition with ``reciprocal=True``.

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


def mutual_outcome(
    part: Partition, k: int, matches: np.ndarray, facts: np.ndarray, **further_facts: Any
) -> Outcome:
    """Return the outcome of symmetric matches, with the two facts of :func:`reciprocal_matches` and others.

    Parameters
    ----------
    part : Partition
    k : int
    matches : numpy.ndarray, shape (P, d), int32
    facts : numpy.ndarray, shape (2,), int64
    **further_facts
        Facts.
    """
    return Outcome.of_matches(
        part.records,
        matches,
        backtracked=int(facts[0]),
        augmented=int(facts[1]),
        one_more_match=part.n if matches.shape[1] > k else 0,
        **further_facts,
    )


def reciprocal_matches(part: Partition, k: int, method: Method) -> tuple[np.ndarray, np.ndarray]:
    """Return symmetric matches: the identity, then assignments, each with its inverse.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int
    method : {"greedy", "sort-greedy", "hungarian"}

    Returns
    -------
    matches : numpy.ndarray, shape (P, d), int32
        d = k, or k + 1 where P (k - 1) is odd: no symmetric graph of degree k has all self-matches then. Columns
        are assignments: the identity; for even d an involution (pairs); then each one followed by its inverse.
    facts : numpy.ndarray, shape (2,), int64
        Dead ends resolved by exchanging a link; steps computed again as a whole.

    Notes
    -----
    The cost of a step is the sum of what its assignment and the inverse add. Without direction, a step gives each record two
    neighbours, on cycles of three records or more. greedy: the records in lexicographic order take their nearest
    ones; sort-greedy: the cheapest links of all first; hungarian: an optimal assignment, whose pairs (they use a
    link twice) are forbidden in one direction and the problem solved again, a few times; then ends of links are
    exchanged while that lowers the cost. The result need not be the least 2-factor. Time and memory are as without the
    option.

    Records left over by a step exchange a link, which is possible for k < (P + 3) / 2, as in Doka 2015's Theorem
    5.2 (proof: :func:`anonflow.kernels.freeform.links.complete_links`). Beyond that, a step that comes to a dead end
    is made as a whole: unused pairs, an even number for each record, are given directions along closed trails,
    and the arcs contain an assignment (Petersen). For P even and k odd that number is odd; there some pairs are
    set aside from the start and never used.
    """
    n = part.n
    # links are pairs: an odd number of records cannot have an odd number of neighbours each, and takes one more
    degree = k + n * (k - 1) % 2
    aside = int(n % 2 == 0 and degree % 2 == 1 and 2 * degree >= n + 3)
    order = lexicographic_order(part.records)
    near = np.empty((n, degree + aside), np.int32)
    near[:, 0] = np.arange(n)
    if aside:
        near[order, 1] = np.roll(order, n // 2)
    origin = part.originals()
    state = copy_state(origin)
    room = (empty_state(part.plan, n), empty_state(part.plan, n)) if method == "greedy" else None
    facts = np.zeros(2, np.int64)
    level = 1 + aside
    while level < near.shape[1]:
        # links come in twos, an assignment and its inverse; of an odd number, a step of pairs comes first
        need = 1 if (near.shape[1] - level) % 2 else 2
        size = np.full(n, level)
        costs = None
        if room is not None:
            greedy_links_jit(part.plan, origin, state, *room, order, near, size, level, need)
        else:
            costs = _costs(part, origin, state, near[:, :level])
            if method == "hungarian":
                _assign(costs, near, size, level, need)
            _cheapest(costs, near, size, level + need)
        is_complete = complete_links_jit(part.plan, origin, state, near, size, level, need, facts)
        if not is_complete:
            facts[1] += 1
            if costs is None:
                costs = _costs(part, origin, state, near[:, :level])
            _as_a_whole(costs, near, level)
        if method == "hungarian":
            exchange_links_jit(costs, near, level, need, SWEEPS)
        if need == 2:
            orient_links_jit(near, level)
        enter_links_jit(part.plan, origin, state, near, level, need)
        level += need
    return (np.delete(near, 1, axis=1) if aside else near), facts


def _costs(part: Partition, origin: State, state: State, used: np.ndarray) -> np.ndarray:
    """Return by how much each link would raise the cost, shape (P, P); infinite for existing links."""
    n = part.n
    costs = np.empty((n, n))
    increase_matrix_jit(part.plan, origin, state, used, 0, costs)
    # a link is paid at both ends
    costs += costs.T.copy()
    costs[np.arange(n)[:, None], used] = np.inf
    return costs


def _assign(costs: np.ndarray, near: np.ndarray, size: np.ndarray, level: int, need: int) -> None:
    """Link along an optimal assignment; pairs need further links, and so do records that odd cycles leave without a link."""
    n = len(costs)
    identity = np.arange(n)
    allowed = costs.copy()
    to = identity
    for _ in range(ROUNDS):
        try:
            with np.errstate(invalid="ignore"):
                to = scipy.optimize.linear_sum_assignment(allowed - allowed.min(axis=0))[1]
        except ValueError:  # too many pairs are forbidden: complete the result of the last round
            break
        pairs = np.flatnonzero((to[to] == identity) & (identity < to))
        if need == 1 or not len(pairs):
            break
        allowed[pairs, to[pairs]] = np.inf
    if need == 1:
        pair_cycles_jit(to, costs, near, size, level)
    else:
        link_assignment_jit(to, near, size, level)


def _cheapest(costs: np.ndarray, near: np.ndarray, size: np.ndarray, full: int) -> None:
    """Link the records that need it, the cheapest links first."""
    ids = np.flatnonzero(size < full)
    edges = np.argsort(costs[np.ix_(ids, ids)], axis=None, kind="stable")
    sorted_links_jit(costs, edges, ids, near, size, full)


def _as_a_whole(costs: np.ndarray, near: np.ndarray, level: int) -> None:
    """Compute a step of two links again: an assignment along arcs without inverse arcs."""
    arcs = np.empty(costs.shape, bool)
    orient_unused_jit(near, level, arcs)
    to = scipy.optimize.linear_sum_assignment(np.where(arcs, costs, np.inf))[1]
    near[:, level] = to
    near[to, level + 1] = np.arange(len(to))
