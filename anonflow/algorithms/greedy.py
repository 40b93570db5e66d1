"""Greedy (Doka, Xue, Tsoumakos and Karras, ASIACCS 2015, section 5): k assignments, each chosen greedily."""

from __future__ import annotations

import numpy as np

from anonflow.algorithms.contract import Algorithm, Outcome, Partition
from anonflow.algorithms.reciprocal import check_reciprocal, reciprocal_outcome
from anonflow.generalization import Generalization
from anonflow.kernels.costs import load
from anonflow.kernels.greedy import greedy_rounds, greedy_rounds_jit
from anonflow.kernels.state import copy_state, empty_state
from anonflow.partition import lexicographic_order

__all__ = ["GREEDY", "greedy", "greedy_matches"]


def greedy(part: Partition, k: int, *, reciprocal: bool = False) -> Outcome:
    """A k-regular generalization graph out of k assignments, each chosen greedily.

    The first assignment is the identity. In each of the k - 1 others the originals, in lexicographic order, one
    after the other take the generalized record that is still available and whose information loss grows least
    by covering them too; costs are renewed after each assignment. No edge is used twice.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int
        At least 1.
    reciprocal : bool, optional
        Whether record j covers original i wherever record i covers original j (paper 1, section 2.2): safer
        against attackers who know true matches, for about as much loss. See
        :func:`anonflow.algorithms.reciprocal.reciprocal_matches`; one partition of an odd size may use k + 1.

    Returns
    -------
    Outcome
        With matches. Facts: how many dead ends were resolved by backtracking (`backtracked`), and by an
        augmenting path (`augmented`).

    Raises
    ------
    ParameterError
        If `reciprocal` is no truth value.

    Notes
    -----
    Paper 1, Algorithm 1. O(k P^2 q) time, O(P (q + k)) memory: costs are computed, never kept.

    An original may find every available record among those that cover it already: a dead end. Then the
    nearest predecessor whose record it may take, and that finds another one for itself, hands it over. Such a
    predecessor is among the last 2l + i - n - 3 when the i-th original is stuck in assignment l (Lemma 5.1),
    so it exists for k < (n + 3) / 2 (Theorem 5.2). Small partitions are beyond that bound: there, when no
    predecessor will do, an augmenting path over unused edges completes the assignment, up to k = n.

    Ties: the generalized record of lowest position. The paper's lexicographic order is also the order of
    visiting inside partitions cut along another order.
    """
    if check_reciprocal(reciprocal):
        return reciprocal_outcome(part, k, "greedy")
    matches, facts = greedy_matches(part, k)
    return Outcome.of_matches(part.records, matches, backtracked=int(facts[0]), augmented=int(facts[1]))


def greedy_matches(part: Partition, k: int, compiled: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """The matches of :func:`greedy`, and its dead ends.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int
    compiled : bool, optional
        Whether compiled kernels do it; the plain ones give the same.

    Returns
    -------
    matches : numpy.ndarray, shape (P, k), int32
    facts : numpy.ndarray, shape (2,), int64
        Dead ends resolved by backtracking, and by an augmenting path.

    Raises
    ------
    None
    """
    own = Generalization.of(part.records)
    origin = load(part.plan, own.lo, own.hi, own.bits, compiled)
    matches = np.empty((part.n, k), np.int32)
    given = np.empty((part.n, k), np.int32)
    facts = np.zeros(2, np.int64)
    (greedy_rounds_jit if compiled else greedy_rounds)(
        part.plan,
        origin,
        copy_state(origin),
        empty_state(part.plan, part.n),
        lexicographic_order(part.records),
        matches,
        given,
        facts,
    )
    return matches, facts


GREEDY = Algorithm(
    name="greedy",
    run=greedy,
    family="freeform",
    paper="Doka, Xue, Tsoumakos, Karras: k-anonymization by freeform generalization. ASIACCS 2015, section 5",
    guarantee="k-regular",
    complexity="O(k n P q) in partitions of P",
    summary="the fastest freeform method: far less loss than any homogeneous one, in seconds",
)
