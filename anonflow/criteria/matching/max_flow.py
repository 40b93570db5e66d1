"""Maximum flows between two sides of a bipartite graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, csr_matrix
from scipy.sparse.csgraph import (
    breadth_first_order,
    connected_components,
    maximum_bipartite_matching,
    maximum_flow,
)

from anonflow.criteria.matching.graph import runs
from anonflow.errors import DataError

_BLOCK = 1 << 18
"""Vertices whose edges are compared at a time."""


@dataclass(frozen=True, eq=False)
class MaxFlow:
    """A maximum flow.

    Attributes
    ----------
    value : int
    edge : numpy.ndarray, shape (E,), int64
        The flow on each edge.
    unsent : numpy.ndarray, shape (u,), int64
        What remains at each vertex of the left side.
    unmet : numpy.ndarray, shape (v,), int64
        What each vertex of the right side lacks.
    """

    value: int
    edge: np.ndarray
    unsent: np.ndarray
    unmet: np.ndarray


_MANY = 10_000_000
"""With more edges than this, a thinned graph is tried first."""

_KEPT = 64
"""About how many edges of each vertex a thinned graph keeps, and four for each unit of `need`."""


def largest_flow(
    supply: np.ndarray,
    demand: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    capacity: np.ndarray | None = None,
    need: int = 1,
) -> MaxFlow:
    """Return a maximum flow from the left to the right side, by Dinic's algorithm (scipy).

    Parameters
    ----------
    supply : numpy.ndarray, shape (u,), integer
    demand : numpy.ndarray, shape (v,), integer
    left, right : numpy.ndarray, shape (E,), integer
        The ends of the edges; no edge twice.
    capacity : numpy.ndarray, shape (E,), integer, optional
        Without it each edge carries all that its ends allow.
    need : int
        How many units a single record is to send.

    Returns
    -------
    MaxFlow
        With very many edges, a random share of them is tried first: a flow through these is a flow.

    Raises
    ------
    DataError
        If the flow could exceed 32 bits.
    """
    u, v = len(supply), len(demand)
    # scipy's capacities have 32 bits
    if max(int(supply.sum()), int(demand.sum())) >= 2**31:
        raise DataError("the table is too large for one flow; verify it with the owner's certificate")
    if not len(left):
        return MaxFlow(0, np.zeros(0, np.int64), supply.astype(np.int64), demand.astype(np.int64))
    if len(left) > _MANY:
        sample = _thinned(u, v, left, right, _KEPT + 4 * need)
        thinned = _dinic(
            supply, demand, left[sample], right[sample], None if capacity is None else capacity[sample]
        )
        # one side is used up: no edge that was left out could add to it
        if thinned.value == min(int(supply.sum()), int(demand.sum())):
            edge = np.zeros(len(left), np.int64)
            edge[sample] = thinned.edge
            return MaxFlow(thinned.value, edge, thinned.unsent, thinned.unmet)
    return _dinic(supply, demand, left, right, capacity)


def unmet(supply: np.ndarray, demand: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return what each vertex of the right side lacks in a maximum flow, as :func:`largest_flow`.

    Parameters
    ----------
    supply, demand, left, right : numpy.ndarray
        As in :func:`largest_flow`; each edge carries all that its ends allow.

    Returns
    -------
    numpy.ndarray, shape (v,), int64
        Vertices of the left side with the same edges can be exchanged, and are one vertex of the network: where few lists of edges
        differ, it is small.

    Raises
    ------
    DataError
        If the flow could exceed 32 bits.
    """
    u, v = len(supply), len(demand)
    graph = csr_matrix((np.ones(len(left), np.int8), (left, right)), shape=(u, v))
    group, first = _equal_lists(graph.indptr, graph.indices)
    lists = graph[first].tocsc()
    total = np.bincount(group, supply, len(first)).astype(np.int64)
    del graph, group
    ends = np.repeat(np.arange(v, dtype=np.int32), np.diff(lists.indptr))
    return largest_flow(total, demand, lists.indices, ends).unmet


def _equal_lists(starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return of each vertex the group of those with the same list of ends, and the first vertex of each group.

    Vertices are grouped by a sum of random numbers, one for each end. Then each list is compared with the first one of its group: if
    any differs, nothing is grouped.
    """
    u, lengths = len(starts) - 1, np.diff(starts)
    # equal lists have equal sums of random numbers; that equal sums are of equal lists is checked below
    keys = np.random.default_rng(0).integers(0, 2**63, int(ends.max(initial=0)) + 1)
    sums = np.zeros(u, np.int64)
    for begin in range(0, u, _BLOCK):
        part = starts[begin : begin + _BLOCK + 1]
        totals = np.append(0, np.cumsum(keys[ends[part[0] : part[-1]]]))
        sums[begin : begin + _BLOCK] = np.diff(totals[part - part[0]])
    _, first, group = np.unique(sums, return_index=True, return_inverse=True)
    for begin in range(0, u, _BLOCK):
        part, like = starts[begin : begin + _BLOCK + 1], first[group[begin : begin + _BLOCK]]
        same = np.array_equal(lengths[like], np.diff(part)) and np.array_equal(
            ends[runs(starts[like].astype(np.int64), lengths[like])], ends[part[0] : part[-1]]
        )
        if not same:  # whoever knows the numbers can make two lists with one sum
            return np.arange(u), np.arange(u)
    return group, first


def _thinned(u: int, v: int, left: np.ndarray, right: np.ndarray, degree: int) -> np.ndarray:
    """Return a random share of the edges, about `degree` or all of each vertex."""
    draw = np.random.default_rng(0).random(len(left), dtype=np.float32)
    # an edge is spared as its scarcer end is: a vertex with few edges keeps all of them
    scarce = np.minimum(np.bincount(left, minlength=u)[left], np.bincount(right, minlength=v)[right])
    return np.flatnonzero(draw * scarce < degree)


def _dinic(
    supply: np.ndarray, demand: np.ndarray, left: np.ndarray, right: np.ndarray, capacity: np.ndarray | None
) -> MaxFlow:
    """Return a maximum flow; the network leads from the right side to the left one, along which edges mostly lie in order."""
    u, v = len(supply), len(demand)
    order = None
    ascending = (right[1:] > right[:-1]) | ((right[1:] == right[:-1]) & (left[1:] > left[:-1]))
    if not ascending.all():
        order = np.lexsort((left, right))
        left, right = left[order], right[order]
        capacity = None if capacity is None else capacity[order]
    del ascending
    source, sink = u + v, u + v + 1
    room = np.minimum(supply.astype(np.int32)[left], demand.astype(np.int32)[right])
    if capacity is not None:
        np.minimum(room, capacity, out=room, casting="unsafe")
    indices = np.concatenate(
        [np.full(u, sink, np.int32), left.astype(np.int32), u + np.arange(v, dtype=np.int32)]
    )
    weight = np.concatenate([supply.astype(np.int32), room, demand.astype(np.int32)])
    degree = np.concatenate([[0], np.ones(u, np.int64), np.bincount(right, minlength=v), [v, 0]])
    network = csr_matrix((weight, indices, np.cumsum(degree).astype(np.int32)), shape=(u + v + 2, u + v + 2))
    del room, weight, indices
    result = maximum_flow(network, source, sink, method="dinic")
    flow = result.flow
    of_right = slice(flow.indptr[u], flow.indptr[u + v])
    inner = flow.indices[of_right] < u
    edge = flow.data[of_right][inner].astype(np.int64)
    end = flow.indices[of_right][inner]
    value = int(result.flow_value)
    del result, flow, inner
    if not np.array_equal(end, left):  # within a row they may lie in any order
        edge = edge[np.lexsort((end, right))]
    sent = np.bincount(left, edge, u).astype(np.int64)
    met = np.bincount(right, edge, v).astype(np.int64)
    if order is not None:
        ordered, edge = edge, np.empty_like(edge)
        edge[order] = ordered
    return MaxFlow(value, edge, supply - sent, demand - met)


def matched_all(starts: np.ndarray, left: np.ndarray, n: int) -> bool:
    """Return whether some of these edges match all n records of one side with all n of the other (Hopcroft and Karp, scipy).

    Parameters
    ----------
    starts : numpy.ndarray, shape (n + 1,), int64
        The edges of record r on the right side are ``left[starts[r] : starts[r + 1]]``.
    left : numpy.ndarray, shape (E,), integer
        Their ends on the left side.
    n : int
    """
    graph = csr_matrix((np.ones(len(left), np.int8), left, starts), shape=(n, n))
    return bool((maximum_bipartite_matching(graph, perm_type="column") >= 0).all())


def cyclic_edges(u: int, v: int, left: np.ndarray, right: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return the edges that some perfect matching uses, given one: those inside a strongly connected component.

    Parameters
    ----------
    u, v : int
        Sizes of the two sides.
    left, right : numpy.ndarray, shape (E,), integer
        The ends of the edges.
    used : numpy.ndarray, shape (E,), bool
        The edges of the given perfect matching; with copies merged, those that carry flow.

    Returns
    -------
    numpy.ndarray, shape (E,), bool
        O(u + v + E).

    Notes
    -----
    Every edge leads from left to right and the used ones back as well; exchanging along a directed cycle
    gives another perfect matching, and every one is reached so (Tassa 2012, Proposition 10 and Algorithm 4).
    """
    # forward along every edge, back along those in use: around a cycle, one perfect matching turns into another
    tail = np.concatenate([left, u + right[used].astype(np.int64)])
    head = np.concatenate([u + right.astype(np.int64), left[used]])
    graph = csr_array((np.ones(len(tail), np.int8), (tail, head)), shape=(u + v, u + v))
    _, component = connected_components(csr_matrix(graph), directed=True, connection="strong")
    return component[left] == component[u + right.astype(np.int64)]


def can_be_left_out(left: np.ndarray, right: np.ndarray, flow: MaxFlow) -> np.ndarray:
    """Return the vertices of the left side that some maximum flow does not use fully.

    Parameters
    ----------
    left, right : numpy.ndarray, shape (E,), integer
        The ends of the edges; each edge could carry all that its ends allow.
    flow : MaxFlow
        Any maximum flow along them.

    Returns
    -------
    numpy.ndarray, shape (u,), bool
        O(u + v + E).

    Notes
    -----
    Two maximum flows differ by alternating paths and cycles (Berge 1957): a vertex has a remainder in another flow
    exactly if a path leads to it from a vertex with a remainder, along any edge to the right and along a used one back.
    """
    u, v = len(flow.unsent), len(flow.unmet)
    used = flow.edge > 0
    begin = np.flatnonzero(flow.unsent > 0)
    # from what is not used fully, alternating paths hand the lack on to every vertex that they reach
    tail = np.concatenate([left, u + right[used].astype(np.int64), np.full(len(begin), u + v)])
    head = np.concatenate([u + right.astype(np.int64), left[used], begin])
    graph = csr_array((np.ones(len(tail), np.int8), (tail, head)), shape=(u + v + 1, u + v + 1))
    reached = np.zeros(u + v + 1, bool)
    reached[breadth_first_order(csr_matrix(graph), u + v, return_predecessors=False)] = True
    return reached[:u]
