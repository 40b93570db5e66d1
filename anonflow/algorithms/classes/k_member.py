"""k-member clustering (Byun, Kamra, Bertino and Li, DASFAA 2007): clusters are built one after the other."""

from __future__ import annotations

import numpy as np

from anonflow.algorithms.classes.class_chains import (
    IMPROVED,
    KICKS,
    ROUNDS,
    Improve,
    Kicks,
    Rounds,
    Threads,
    clustered,
    effort_of,
    outcome_of,
)
from anonflow.algorithms.diversity.target import SensitiveValues
from anonflow.algorithms.lowering import for_sets
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.algorithms.set_options import Importance, Of, Sets, sets_problems, weighted

NAME = "k-member"


def k_member(
    part: Partition,
    k: int,
    *,
    improve: Improve = "none",
    rounds: Rounds = ROUNDS,
    kicks: Kicks = KICKS,
    threads: Threads = None,
    sets: Sets = None,
    of: Of = None,
    importance: Importance = None,
) -> Outcome:
    """Return equivalence classes of at least k records, each built around a record that is far from the previous one.

    While at least k records are left, the record furthest from the head of the previous cluster begins a new cluster,
    and k - 1 times the record joins that raises its information loss least. The remaining records, fewer than k, go
    where each raises the loss least.

    Parameters
    ----------
    part : Partition
        P records.
    k : int
    improve, rounds, kicks, threads : optional
        As :mod:`anonflow.algorithms.classes.class_chains` declares them: classes are improved by chains, or not.
    sets : list of lists of str, optional
        Columns that others may know, each set by itself: cells are lowered as far as each set allows.

        See :func:`anonflow.algorithms.lowering.for_sets`.
    of : int, optional
        Instead of sets: all sets of so many columns.
    importance : mapping, optional
        Of sets: column -> number, 0 where none is given. Classes differ least in the columns with the greatest number, whose
        cells are lowered first.

    Returns
    -------
    Outcome
        With classes. Facts: their number, `found`; of an improvement `chains`, `kicks` and `gained`.

    Notes
    -----
    Byun et al., section 4; the algorithm that Miller 2008 calls Greedy_k-member_Clustering. O(P^2 q) time,
    O(P q) memory. The distance of two records is the cost of generalizing them together, the loss of a
    cluster is its size times the cost of its generalized record, both by the information loss asked for:
    with ``height`` they are the authors' (Miller 2008, Definition 10). The record from which the first cluster
    is to be far is drawn at random, so a seed makes the same clusters again. Equal choices: the record, or
    the cluster, of lowest position. Fewer than k records are one cluster.
    """
    effort = effort_of(improve, rounds, kicks, threads)
    heavy = weighted(part, sets, of, importance, NAME)
    labels, clusters = k_member_labels(heavy, k)
    return for_sets(part, k, outcome_of(heavy, labels, clusters, k, effort), sets, of, importance, NAME)


def k_member_labels(
    part: Partition, k: int, sensitive: SensitiveValues | None = None
) -> tuple[np.ndarray, int]:
    """Return the cluster of each record and the number of clusters, as :func:`clustered`; fewer than k records are one cluster.

    Parameters
    ----------
    part : Partition
        P records; the first cluster is far from a random one.
    k : int
        At least 1.
    sensitive : SensitiveValues, optional
    """
    if part.n < k:
        return np.zeros(part.n, np.int64), 1
    return clustered(part.plan, part.originals(), int(part.rng.integers(part.n)), k, sensitive)


K_MEMBER = Algorithm(
    name=NAME,
    run=k_member,
    family="clustering",
    paper="Byun, Kamra, Bertino, Li: Efficient k-anonymization using clustering techniques. DASFAA 2007",
    guarantee="k-anonymity",
    complexity="O(n P q) in partitions of P",
    summary="equal records by clustering: less loss than cuts, quadratic time",
    colour="#8a8a8a",
    shape="star",
    variants=({}, {"improve": "chains", "kicks": 0}),
    option_problems=sets_problems,
    **IMPROVED,
)
