"""The even start of k-concealment: no row belongs to a person with more than 5/(4k) probability, even if the method is rerun."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from anonflow.algorithms.concealment.covered import Covered
from anonflow.algorithms.concealment.expansion import DistinctRecords
from anonflow.algorithms.freeform.greedy import greedy_matches
from anonflow.algorithms.freeform.two_phase import two_phase_matches
from anonflow.generalization import Generalization
from anonflow.kernels.concealment import covered_jit, mend_jit, switch_jit
from anonflow.kernels.costs import join_pairs_jit, load, widen_jit
from anonflow.kernels.row_costs import join_row_jit
from anonflow.kernels.state import State
from anonflow.release import RandomWords, draw_assignment

ROUNDS = 100
"""Each of 4 P random numbers; the bound holds for any number of them."""


def even_matches(k: int) -> int:
    """Return how many matches of each record are equally likely, ceil(4 k / 5): 1/d is at most 1/k + 0.05, and 5/(4k)."""
    return -(-4 * k // 5)


def evenly_started(
    merged: DistinctRecords, k: int, chained: bool = False
) -> tuple[State, np.ndarray, int, int]:
    """Return generalized records in which each person has k possible rows, d of them equally likely.

    Each record is generalized with the others of a d-regular graph, d = ceil(4k/5), and widened until it covers k
    originals; then records are widened until k of them cover each original, and until of these edges k at each original
    and at each record may be drawn.

    Parameters
    ----------
    merged : DistinctRecords
        P originals.
    k : int
        At most P.
    chained : bool, optional
        Whether the graph is that of :func:`anonflow.algorithms.freeform.two_phase.two_phase_matches`, which ends in chains and
        kicks; else of greedy.

    Returns
    -------
    boxes : State
        P generalized records; without chains nothing in them is random.
    matches : numpy.ndarray, shape (P, d), int32
        The d-regular graph.
    covering, possible : int
        Widenings for either reason.

    Notes
    -----
    An edge may be drawn if it is on some d-regular graph among the edges: these are perfect matchings d times over, so
    that k such edges are k matches. Directed from rows to originals where it is not in the graph, back where it is, an
    edge is on one exactly if it is in the graph or its ends are in one strong component. Where fewer than k are, a
    record of the graph is widened so that a cycle leads through another row that covers the original already.

    Chains keep the promise: that no edge has more than 1/d probability holds for any d-regular graph that is made of the
    quasi-identifiers alone (:func:`evenly_dealt`).
    """
    plan = merged.part.plan
    degree = even_matches(k)
    if chained:
        matches = two_phase_matches(merged.part, degree, threads=1)[0]
    else:
        matches = greedy_matches(merged.part, degree)[0]
    generalization = Generalization.join_of(merged.part.records, matches)
    boxes = load(plan, generalization.lo, generalization.hi, generalization.bits)
    _grown(merged, boxes, k)
    covering = int(mend_jit(plan, merged.state, merged.visits(None), k, boxes))
    exchanged = 0
    while True:
        wide, by = _wanted(merged, boxes, matches, k)
        if not len(wide):
            return boxes, matches, covering, exchanged
        for j, original in zip(wide.tolist(), by.tolist(), strict=True):
            widen_jit(plan, boxes, j, merged.state, original)
        exchanged += len(wide)


def evenly_dealt(
    merged: DistinctRecords,
    boxes: State,
    generalization: Generalization,
    matches: np.ndarray,
    rng: np.random.Generator,
) -> Generalization:
    """Return the same generalized records, assigned to originals so that no original has a record with more than 1/d probability.

    Parameters
    ----------
    merged : DistinctRecords
        P originals.
    boxes : State
        Their P generalized records.
    generalization : Generalization
        The same.
    matches : numpy.ndarray, shape (P, d), int32
        A d-regular graph of what they cover.
    rng : numpy.random.Generator

    Returns
    -------
    Generalization
        Record i covers original i.

    Notes
    -----
    Walks through the covers, there on an edge that is not in the graph and back on one that is, close to cycles, along
    which the two kinds change places: every graph that comes so is d-regular. Whichever it is, an assignment is drawn
    from it that has each of its edges with probability 1/d (:func:`anonflow.release.draw.draw_assignment`): for an
    attacker who knows the method, no edge has a higher probability. Walks that end without a cycle change nothing, so
    every edge of a strong component can be drawn. O(rounds P d + E) expected time.
    """
    lists = Covered.of(merged, boxes)
    matches = matches.copy()
    rows = np.argsort(matches, axis=None, kind="stable") // matches.shape[1]
    rows = np.ascontiguousarray(rows.reshape(matches.shape)).astype(np.int32)
    for _ in range(ROUNDS):
        switch_jit(
            matches, rows, lists.start, lists.stop, lists.ends, lists.originals, lists.members, lists.begin,
            rng.random(4 * merged.part.n),
        )  # fmt: skip
    assignment = draw_assignment(matches, RandomWords(rng.bytes(32)))
    return generalization.take(np.argsort(assignment, kind="stable"))


def _wanted(
    merged: DistinctRecords, boxes: State, matches: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return which records to widen by which different originals, for all originals with fewer than k possible rows."""
    n, d = matches.shape
    lists = Covered.of(merged, boxes)
    is_frequent = merged.count > d
    # copies of an original that has more than d of them are in one component: the first represents all of them
    stands = np.where(is_frequent[merged.label], merged.first[merged.label], np.arange(n))
    sizes = np.where(is_frequent, 1, merged.count)[lists.originals]
    row = np.repeat(lists.row, sizes)
    copy = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    original = lists.members[np.repeat(lists.begin[lists.originals], sizes) + copy]
    key = row * n + original
    graph = (np.arange(n)[:, None] * n + matches).ravel()
    drawn = np.isin(key, graph) & ~is_frequent[merged.label[original]]
    tail = np.concatenate([row[~drawn], n + stands[matches.ravel()]])
    head = np.concatenate([n + original[~drawn], np.repeat(np.arange(n), d)])
    directed = csr_array((np.ones(len(tail), np.int8), (tail, head)), shape=(2 * n, 2 * n))
    of = connected_components(directed, connection="strong")[1]
    possible = drawn | (of[row] == of[n + original])
    copies = np.where(is_frequent, merged.count, 1)[merged.label[original]]
    rows_of = np.bincount(original[possible], minlength=n)
    originals_of = np.bincount(row[possible], copies[possible], n)
    short = np.flatnonzero(~possible & ((rows_of[original] < k) | (originals_of[row] < k)))
    receiver = np.where(rows_of[original] < k, original, n + row)[short]
    rows = (np.argsort(matches, axis=None, kind="stable") // d).reshape(n, d)
    # a row of the original is widened by an original of the row: a cycle through both
    wide = np.repeat(rows[original[short]], d, axis=1).ravel()
    by = np.tile(merged.label[matches[row[short]]], (1, d)).ravel()
    receiver = np.repeat(receiver, d * d)
    u = len(merged.first)
    fresh = ~np.isin(wide * u + by, lists.row * u + lists.originals)
    wide, by, receiver = wide[fresh], by[fresh], receiver[fresh]
    cost = np.empty(len(wide))
    join_pairs_jit(merged.part.plan, merged.state, by, boxes, wide, cost)
    order = np.lexsort((cost - boxes.cost[wide], receiver))
    best = order[np.diff(receiver[order], prepend=-1) > 0]
    return wide[best], by[best]


def _grown(merged: DistinctRecords, boxes: State, k: int) -> None:
    """Widen records by the different originals that cost least until each covers k originals, O(P u q)."""
    plan, u = merged.part.plan, len(merged.first)
    inside, cost = np.empty(u, bool), np.empty(u)
    for j in range(merged.part.n):
        while True:
            covered_jit(merged.state, boxes, j, inside)
            if merged.count[inside].sum() >= k:
                break
            join_row_jit(plan, boxes, j, merged.state, 0, u, cost)
            cost[inside] = np.inf
            widen_jit(plan, boxes, j, merged.state, int(np.argmin(cost)))
