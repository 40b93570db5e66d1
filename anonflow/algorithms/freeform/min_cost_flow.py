"""Minimum-cost flow (a baseline of Doka, Xue, Tsoumakos and Karras, ASIACCS 2015, section 8): static costs."""

from __future__ import annotations

import numpy as np

from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.generalization import Generalization
from anonflow.kernels.assignment import increase_matrix, increase_matrix_jit
from anonflow.kernels.costs import load

__all__ = ["MIN_COST_FLOW", "min_cost_flow", "min_cost_flow_matches"]

SCALE = 2.0**32
"""Costs are rounded to multiples of its inverse: the solver takes integers."""


def min_cost_flow(part: Partition, k: int) -> Outcome:
    """The k-regular graph with self-matches whose edges cost least, each priced alone.

    An edge from original i to record j costs what j alone would lose by covering i. The sum of these is not
    the information loss of the result unless k = 2, where the result is optimal.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int

    Returns
    -------
    Outcome
        With matches.

    Raises
    ------
    RuntimeError
        If the solver gives up, which needs costs or a table beyond its integers.

    Notes
    -----
    Doka 2015, section 8. A flow of k - 1 through every record, each edge once at most. O(P^2) memory: choose
    partitions of about a thousand at most. Costs are exact to 2^-32.
    """
    return Outcome.of_matches(part.records, min_cost_flow_matches(part, k))


def min_cost_flow_matches(part: Partition, k: int, compiled: bool = True) -> np.ndarray:
    """The matches of :func:`min_cost_flow`, shape (P, k), int32; those of a record in ascending order.

    Parameters
    ----------
    part : Partition
    k : int
    compiled : bool, optional
        Whether compiled kernels do it; the plain ones give the same.

    Raises
    ------
    RuntimeError
        If the solver gives up.
    """
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

    n = part.n
    own = Generalization.of(part.records)
    origin = load(part.plan, own.lo, own.hi, own.bits, compiled)
    costs = np.empty((n, n))
    itself = np.arange(n, dtype=np.int32)[:, None]
    (increase_matrix_jit if compiled else increase_matrix)(part.plan, origin, origin, itself, 1, costs)
    i, j = np.nonzero(np.isfinite(costs))
    flow = SimpleMinCostFlow()
    prices = np.rint(costs[i, j] * SCALE).astype(np.int64)
    arcs = flow.add_arcs_with_capacity_and_unit_cost(
        i.astype(np.int32), (n + j).astype(np.int32), np.ones(len(i), np.int64), prices
    )
    supplies = np.repeat(np.array([k - 1, 1 - k], np.int64), n)
    flow.set_nodes_supplies(np.arange(2 * n, dtype=np.int32), supplies)
    if k > 1 and flow.solve() != flow.OPTIMAL:
        raise RuntimeError("min-cost-flow: the solver found no solution; use smaller partitions")
    taken = flow.flows(arcs) > 0 if k > 1 else np.zeros(len(i), bool)
    i, j = i[taken], j[taken]
    matches = np.empty((n, k), np.int32)
    matches[:, 0] = np.arange(n)
    matches[:, 1:] = i[np.lexsort([i, j])].reshape(n, k - 1)
    return matches


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
