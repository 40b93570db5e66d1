"""Hungarian (Doka, Xue, Tsoumakos and Karras, ASIACCS 2015, section 7): k optimal assignments."""

from __future__ import annotations

import numpy as np
import scipy

from anonflow.algorithms.freeform.reciprocal import Reciprocal, reciprocal_outcome
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.kernels.freeform.assignment import (
    increase_matrix_jit,
    take_assignment_jit,
)
from anonflow.kernels.freeform.auction import auction_jit

BIDS = 20
"""Bids of an auction for each record at most: after that the assignment problem is solved."""


def hungarian(part: Partition, k: int, *, reciprocal: Reciprocal = False) -> Outcome:
    """Return a k-regular generalization graph out of k assignments, each of least increase of the information loss.

    The first assignment is the identity. Each of the k - 1 others is an optimal solution of the assignment
    problem whose costs are the increases that the edges not used so far would bring; costs are renewed after
    each assignment.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int
    reciprocal : bool, optional
        If row A could be person B's, row B could be person A's: safer against those who know some true matches.

        Record j covers original i wherever record i covers original j (Doka 2015, section 2.2), for more
        loss: 2.5 to 12% as measured. See :func:`anonflow.algorithms.freeform.reciprocal.reciprocal_matches`; one partition of an odd size
        may use k + 1.

    Returns
    -------
    Outcome
        With matches.

    Notes
    -----
    Doka 2015, section 7. O(k P^3) time in the worst case, O(P^2) memory: choose partitions of about a thousand.
    There are no dead ends: the edges not used so far are a (P - l)-regular graph, which has an assignment.
    """
    if reciprocal:
        return reciprocal_outcome(part, k, "hungarian")
    return Outcome.of_matches(part.records, hungarian_matches(part, k))


def hungarian_matches(part: Partition, k: int, slack: float = 0.0) -> np.ndarray:
    """Return the matches of :func:`hungarian`, shape (P, k), int32.

    Parameters
    ----------
    part : Partition
    k : int
    slack : float, optional
        Above 0, assignments are nearly optimal: an auction whose smallest bid is this share of the mean of the records' least
        increases finds them (:func:`anonflow.kernels.freeform.auction.auction`). Where it comes to no end, and with 0, they are
        optimal.
    """
    n = part.n
    origin, joined, assigned, matches = part.first_assignment(k)
    costs = np.empty((n, n))
    to, price = np.empty(n, np.int64), np.empty(n)
    for d in range(1, k):
        increase_matrix_jit(part.plan, origin, joined, assigned, d, costs)
        if not (slack > 0.0 and auction_jit(costs, slack, BIDS * n, to, price)):
            to[:] = scipy.optimize.linear_sum_assignment(costs)[1]
        take_assignment_jit(part.plan, origin, joined, to, d, assigned, matches)
    return matches


HUNGARIAN = Algorithm(
    name="hungarian",
    run=hungarian,
    family="freeform",
    paper="Doka, Xue, Tsoumakos, Karras: k-anonymization by freeform generalization. ASIACCS 2015, section 7",
    guarantee="k-regular",
    complexity="O(k n P^2) in partitions of P",
    summary="less loss than greedy for more time; memory grows with the square of the partition",
    colour="#d9731a",
    shape="square",
)
