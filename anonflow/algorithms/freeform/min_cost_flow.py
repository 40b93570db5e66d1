"""Minimum-cost flow (a baseline of Doka, Xue, Tsoumakos and Karras, ASIACCS 2015, section 8): static costs."""

from __future__ import annotations

import numpy as np

from anonflow.algorithms.freeform.reciprocal import SWEEPS, Reciprocal, mutual_outcome, reciprocal_matches
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.kernels.freeform.assignment import increase_matrix_jit
from anonflow.kernels.freeform.links import (
    complete_links_jit,
    exchange_links_jit,
)
from anonflow.kernels.freeform.symmetric import halve_trails_jit

SCALE = 2.0**32
"""Costs are rounded to multiples of its inverse: the solver takes integers."""


def min_cost_flow(part: Partition, k: int, *, reciprocal: Reciprocal = False) -> Outcome:
    """Return the k-regular graph with self-matches whose edges cost least, each priced alone.

    An edge from original i to record j costs what j alone would lose by covering i. The sum of these is not
    the information loss of the result unless k = 2, where the result is optimal.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int
    reciprocal : bool, optional
        If row A could be person B's, row B could be person A's: safer against those who know some true matches.

        See :func:`mutual_flow_matches`, for up to 1.2% more loss (k from 3 to 10, 1,000 records of two tables in
        250s: the benchmark reciprocal); one partition of an odd size may use k + 1.

    Returns
    -------
    Outcome
        With matches. Facts of reciprocal ones: as :func:`anonflow.algorithms.freeform.reciprocal.reciprocal_outcome`.

    Raises
    ------
    RuntimeError
        If the solver finds no solution, which happens only if costs or table exceed its integers.

    Notes
    -----
    Doka 2015, section 8. A flow of k - 1 through every record, each edge once at most. O(P^2) memory: choose
    partitions of about a thousand at most. Costs are exact to 2^-32.
    """
    if reciprocal:
        matches, facts = mutual_flow_matches(part, k)
        return mutual_outcome(part, k, matches, facts)
    return Outcome.of_matches(part.records, min_cost_flow_matches(part, k))


def min_cost_flow_matches(part: Partition, k: int) -> np.ndarray:
    """Return the matches of :func:`min_cost_flow`, shape (P, k), int32; those of a record in ascending order.

    Parameters
    ----------
    part : Partition
    k : int

    Raises
    ------
    RuntimeError
        If the solver finds no solution.
    """
    costs = _edge_costs(part)
    edges = _least_flow(costs, k - 1)
    i, j = np.nonzero(edges)
    matches = np.empty((part.n, k), np.int32)
    matches[:, 0] = np.arange(part.n)
    matches[:, 1:] = i[np.lexsort([i, j])].reshape(part.n, k - 1)
    return matches


def mutual_flow_matches(part: Partition, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return symmetric matches of :func:`min_cost_flow`; those of a record in ascending order.

    Parameters
    ----------
    part : Partition
    k : int

    Returns
    -------
    matches : numpy.ndarray, shape (P, d), int32
        d = k, or k + 1 where P (k - 1) is odd.
    facts : numpy.ndarray, shape (2,), int64
        Records that a trail of odd length left over, each given a link that was exchanged; 1 if the graph is that of
        ``sort-greedy`` because these could not be had.

    Raises
    ------
    RuntimeError
        If the solver finds no solution.

    Notes
    -----
    A link costs what both its edges do. The least flow of d - 1 through every record, taken in both directions and halved,
    costs no more than any symmetric graph. What it halves are closed trails: of one of even length every other link is
    taken, which costs no more. Only trails of odd length cost something; the record that they leave without a link gets
    one by an exchange, and ends of links are exchanged while that costs less. O(P^2) memory.
    """
    n = part.n
    # links are pairs: n records have an odd number of links each only if n is even
    degree = k + n * (k - 1) % 2
    costs = _edge_costs(part)
    costs += costs.T.copy()
    edges = _least_flow(costs, degree - 1)
    both = edges & edges.T
    near = np.empty((n, degree), np.int32)
    near[:, 0] = np.arange(n)
    size = 1 + both.sum(axis=1)
    i, j = np.nonzero(both)
    near[i, 1 + np.arange(len(i)) - np.repeat(np.cumsum(size - 1) - (size - 1), size - 1)] = j
    halve_trails_jit(edges ^ edges.T, costs, near, size)
    origin = part.originals()
    facts = np.zeros(2, np.int64)
    if not complete_links_jit(part.plan, origin, origin, near, size, 1, degree - 1, facts):
        near, _ = reciprocal_matches(part, k, "sort-greedy")
        facts[:] = 0, 1
    exchange_links_jit(costs, near, 1, degree - 1, SWEEPS)
    near[:, 1:].sort(axis=1)
    return near, facts


def _edge_costs(part: Partition) -> np.ndarray:
    """Return what each record alone loses by covering each original, shape (P, P); infinite for itself."""
    origin = part.originals()
    costs = np.empty((part.n, part.n))
    itself = np.arange(part.n, dtype=np.int32)[:, None]
    increase_matrix_jit(part.plan, origin, origin, itself, 1, costs)
    return costs


def _least_flow(costs: np.ndarray, amount: int) -> np.ndarray:
    """Return the edges, `amount` at each record on either side, that cost least; shape (n, n), bool."""
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

    n = len(costs)
    edges = np.zeros((n, n), bool)
    if amount == 0:
        return edges
    i, j = np.nonzero(np.isfinite(costs))
    flow = SimpleMinCostFlow()
    prices = np.rint(costs[i, j] * SCALE).astype(np.int64)
    arcs = flow.add_arcs_with_capacity_and_unit_cost(
        i.astype(np.int32), (n + j).astype(np.int32), np.ones(len(i), np.int64), prices
    )
    supplies = np.repeat(np.array([amount, -amount], np.int64), n)
    flow.set_nodes_supplies(np.arange(2 * n, dtype=np.int32), supplies)
    if flow.solve() != flow.OPTIMAL:
        raise RuntimeError("min-cost-flow: the solver found no solution; use smaller partitions")
    edges[i, j] = flow.flows(arcs) > 0
    return edges


MIN_COST_FLOW = Algorithm(
    name="min-cost-flow",
    run=min_cost_flow,
    family="freeform",
    paper="Doka, Xue, Tsoumakos, Karras: k-anonymization by freeform generalization. ASIACCS 2015, section 8",
    guarantee="k-regular",
    complexity="O(P^2 log P) and more in partitions of P",
    summary="a baseline: optimal for k = 2, behind the others as k grows",
    colour="#b8609a",
    shape="triangle",
)
