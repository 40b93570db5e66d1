"""GreedyCKA (Miller, Campan and Truta, P3DM 2008): clusters within generalization boundaries."""

from __future__ import annotations

from typing import Any

import numpy as np

from anonflow.algorithms.assembly import gathered_facts
from anonflow.algorithms.classes.class_chains import (
    IMPROVED,
    KICKS,
    ROUNDS,
    Improve,
    Kicks,
    Rounds,
    Threads,
    effort_of,
    improve_labels,
)
from anonflow.algorithms.classes.k_member import k_member_labels
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.partition import boundary_classes

__all__ = ["GREEDY_CKA", "greedy_cka"]


def greedy_cka(
    part: Partition,
    k: int,
    *,
    improve: Improve = "none",
    rounds: Rounds = ROUNDS,
    kicks: Kicks = KICKS,
    threads: Threads = None,
) -> Outcome:
    """Return equivalence classes of at least k records in which no value is generalized beyond its boundary.

    The records are divided into the classes of the maximum allowed microdata; a class of fewer than k records
    is suppressed, every other one is clustered by :func:`anonflow.algorithms.classes.k_member.k_member`.

    Parameters
    ----------
    part : Partition
        P records.
    k : int
    improve, rounds, kicks, threads : optional
        As :mod:`anonflow.algorithms.classes.class_chains` declares them: classes are improved by chains, or not.

    Returns
    -------
    Outcome
        With classes. Facts: their number, `found`, and how many records were suppressed, `out`; of an improvement
        `chains`, `kicks` and `gained`.

    Notes
    -----
    Miller 2008, section 4, Figure 5. The fewest records are suppressed that have to be (Properties 5 and 6).
    O(sum of C^2 q) time for classes of C records, so more boundaries make it faster. Calling it through
    :func:`anonflow.anonymize` divides the table before it is cut into partitions, and this finds one class.
    """
    effort = effort_of(improve, rounds, kicks, threads)
    within = boundary_classes(part.records)
    labels = np.full(part.n, -1, np.int64)
    order = np.argsort(within, kind="stable")
    total = 0
    improved: list[dict[str, Any]] = []
    for positions in np.split(order, np.flatnonzero(np.diff(within[order])) + 1):
        if len(positions) >= k:
            inside = Partition(part.records.take(positions), part.loss, part.rng)
            own, clusters = k_member_labels(inside, k)
            if effort is not None:
                own, facts = improve_labels(inside, own, k, effort)
                clusters = facts.pop("found")
                improved.append(facts)
            labels[positions] = own + total
            total += clusters
    out = labels < 0
    labels[out] = total
    sums = gathered_facts(improved)
    return Outcome.of_classes(part.records, labels, out, found=total, out=int(out.sum()), **sums)


GREEDY_CKA = Algorithm(
    name="greedy-cka",
    run=greedy_cka,
    family="clustering",
    paper="Miller, Campan, Truta: Constrained k-anonymity: privacy with generalization boundaries. P3DM 2008",
    guarantee="k-anonymity",
    complexity="O(n C q) for boundary classes of C records",
    summary="k-member inside your boundaries: nothing is generalized further, little is suppressed",
    colour="#56b4e9",
    shape="inverted_triangle",
    without_boundaries="k-member",
    **IMPROVED,
)
