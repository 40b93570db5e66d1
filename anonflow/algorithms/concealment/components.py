"""Matches of every record, kept up to date while records are widened (Tassa 2012, Algorithms 4 and 5)."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from anonflow.algorithms.concealment.expansion import DistinctRecords
from anonflow.kernels.concealment import covered_jit, covering_jit
from anonflow.kernels.costs import join_pairs_jit, widen_jit
from anonflow.kernels.state import Plan, State


class Components:
    """Strongly connected components of the graph of possible identities, while edges are added.

    An edge leads from an original to another one if the other one's generalized record covers it. Equal originals
    reach each other, so the nodes are the u different originals; a pair of an original and a generalized record that
    covers it is a match exactly if the original and the record's own original are in one component (Proposition 10).

    Parameters
    ----------
    merged : DistinctRecords
    boxes : State
        P generalized records; record j covers original j.

    Notes
    -----
    Invariant: ``of`` labels the components of the graph with all edges added so far; ``start, end`` are the edges
    between different components, each once, so that a new edge costs a search of the small graph of components.
    """

    def __init__(self, merged: DistinctRecords, boxes: State) -> None:
        self.merged = merged
        u = len(merged.first)
        label, first, count = _equal_boxes(boxes)
        inside = np.empty(u, bool)
        starts: list[np.ndarray] = []
        ends: list[np.ndarray] = []
        for j in first:
            covered_jit(merged.state, boxes, int(j), inside)
            members = np.flatnonzero(inside).astype(np.int32)
            starts.append(members)
            ends.append(np.full(len(members), len(ends), np.int32))
        tail, box = np.concatenate(starts), np.concatenate(ends)
        v = len(first)
        # from a box to all originals that have this box
        rows = np.concatenate([tail, u + label])
        columns = np.concatenate([u + box, merged.label])
        graph = csr_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(u + v, u + v))
        of = connected_components(graph, connection="strong")[1]
        self.of: np.ndarray = of[:u]
        # an edge is on a perfect matching if it lies on a cycle of the graph, and so within a strong component
        matched = of[tail] == of[u + box]
        self.of_original = np.bincount(tail, count[box] * matched, u).astype(np.int64)
        of_box = np.bincount(box, merged.count[tail] * matched, v).astype(np.int64)
        self.of_box: np.ndarray = of_box[label]
        self._size = u + v
        self._edges(of[tail[~matched]], of[u + box[~matched]])

    def _edges(self, start: np.ndarray, end: np.ndarray) -> None:
        apart = start != end
        key = np.unique(start[apart].astype(np.int64) * self._size + end[apart])
        self.start, self.end = key // self._size, key % self._size

    def add(self, tails: np.ndarray, head: int) -> None:
        """Add edges from different originals `tails` to the different original `head`."""
        # only components matter: edges inside one change nothing
        fresh = np.unique(self.of[tails])
        target = self.of[head]
        fresh = fresh[fresh != target]
        if not len(fresh):
            return
        start = np.concatenate([self.start, fresh])
        end = np.concatenate([self.end, np.full(len(fresh), target)])
        nodes, at = np.unique(np.concatenate([start, end]), return_inverse=True)
        graph = csr_array(
            (np.ones(len(start), np.int8), (at[: len(start)], at[len(start) :])), shape=(len(nodes),) * 2
        )
        strong = connected_components(graph, connection="strong")[1]
        # of each new component the smallest old label
        name = np.full(strong.max() + 1, self._size, np.int64)
        np.minimum.at(name, strong, nodes)
        renamed = np.arange(self._size)
        renamed[nodes] = name[strong]
        self.of = renamed[self.of]
        self._edges(renamed[start], renamed[end])


def concealed(
    plan: Plan, merged: DistinctRecords, boxes: State, k: int, sides: str, visits: np.ndarray
) -> int:
    """Widen generalized records until every record has k matches (Algorithm 5).

    Parameters
    ----------
    plan : Plan
    merged : DistinctRecords
        P records.
    boxes : State
        P generalized records that are (k,k)-anonymous; widened.
    k : int
    sides : {"o", "g", "og"}
        Whether originals, generalized records or both need k matches.
    visits : numpy.ndarray, shape (P,), integer
        Records in the order in which they are visited.

    Returns
    -------
    int
        How many widenings there were.
    """
    components = Components(merged, boxes)
    steps = 0
    for side in sides:
        short = components.of_original[merged.label] < k if side == "o" else components.of_box < k
        for i in visits[short[visits]].tolist():
            steps += _until(plan, merged, boxes, k, side, i, components)
    return steps


def _until(
    plan: Plan, merged: DistinctRecords, boxes: State, k: int, side: str, i: int, components: Components
) -> int:
    """Widen records until record i has k matches on one side."""
    n, label = merged.part.n, merged.label
    kind = int(label[i])
    steps = 0
    near = np.empty(n if side == "o" else len(merged.first), bool)
    while True:
        if side == "o":
            # generalized records that cover original i; a match is in its component
            covering_jit(merged.state, kind, boxes, near)
            matched = near & (components.of[label] == components.of[kind])
            if np.count_nonzero(matched) >= k:
                return steps
            others = np.flatnonzero(near & ~matched)
            wide, by = np.full(len(others), i), label[others]
        else:
            # originals that generalized record i covers
            covered_jit(merged.state, boxes, i, near)
            matched = near & (components.of == components.of[kind])
            if int(merged.count[matched].sum()) >= k:
                return steps
            wide = np.flatnonzero((near & ~matched)[label])
            by = np.full(len(wide), kind)
        cost = np.empty(len(wide))
        join_pairs_jit(plan, merged.state, by, boxes, wide, cost)
        best = int(np.argmin(cost - boxes.cost[wide]))
        _widen(plan, merged, boxes, int(wide[best]), int(by[best]), components)
        steps += 1


def _widen(
    plan: Plan, merged: DistinctRecords, boxes: State, j: int, by: int, components: Components
) -> None:
    """Widen generalized record j by a different original, and add every edge that this makes."""
    before = np.empty(len(merged.first), bool)
    after = np.empty(len(merged.first), bool)
    covered_jit(merged.state, boxes, j, before)
    widen_jit(plan, boxes, j, merged.state, by)
    covered_jit(merged.state, boxes, j, after)
    components.add(np.flatnonzero(after & ~before), int(merged.label[j]))


def _equal_boxes(boxes: State) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which different generalized record each one is, the first of each, and how many there are of it."""
    rows = [*boxes.lo, *boxes.hi, *boxes.bits]
    n = len(boxes.cost)
    order = np.lexsort(rows) if rows else np.arange(n)
    new = np.zeros(n, bool)
    new[0] = True
    for row in rows:
        new[1:] |= row[order[1:]] != row[order[:-1]]
    label = np.empty(n, np.int64)
    label[order] = np.cumsum(new) - 1
    return label, order[new], np.bincount(label)
