"""GreedyCKA (Miller, Campan and Truta, P3DM 2008): clusters within generalization boundaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

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
from anonflow.option import Option
from anonflow.partition import boundary_classes


def greedy_cka(
    part: Partition,
    k: int,
    *,
    distinct_first: Annotated[bool, Option("Different sensitive values first")] = False,
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
    distinct_first : bool, optional
        Where p-sensitivity or l-diversity is asked for, each class takes different sensitive values first, then near records.

        This loses less than uniting classes afterwards, as :func:`anonflow.diversify` does otherwise. But it uses the
        sensitive values of all records: classes reveal more than their counts, on small tables many people's values for certain
        (:class:`anonflow.risk.Minimality` measures it).
        Without a request for diversity it changes nothing; of it, only ``improve="none"``.
    improve, rounds, kicks, threads : optional
        As :mod:`anonflow.algorithms.classes.class_chains` declares them: classes are improved by chains, or not.

    Returns
    -------
    Outcome
        With classes. Facts: their number, `found`, and how many records were suppressed, `out`; of an improvement
        `chains`, `kicks` and `gained`.

    Notes
    -----
    Miller 2008, section 4, Figure 5. The number of suppressed records is the least possible (Properties 5 and 6).
    Different values first: Truta, Campan and Meyer (SDM at VLDB 2007), after whose EnhancedPKClustering p different values are
    found before the nearest records; here within boundaries, for every information loss, and a class goes on beyond k until
    it has them. Boundary classes that lack the values are suppressed.
    O(sum of C^2 q) time for classes of C records, so more boundaries make it faster. Calling it through
    :func:`anonflow.anonymize` divides the table before it is cut into partitions, and this finds one class.
    """
    effort = effort_of(improve, rounds, kicks, threads)
    within = boundary_classes(part.records)
    labels = np.full(part.n, -1, np.int64)
    order = np.argsort(within, kind="stable")
    total = 0
    improved: list[dict[str, Any]] = []
    sensitive = part.sensitive if distinct_first else None
    for positions in np.split(order, np.flatnonzero(np.diff(within[order])) + 1):
        if len(positions) >= k:
            inside = part.take(positions)
            values = None if sensitive is None else sensitive.take(positions)
            inner_labels, clusters = k_member_labels(inside, k, values)
            if not clusters:
                continue  # too few different values
            if effort is not None and sensitive is None:
                inner_labels, facts = improve_labels(inside, inner_labels, k, effort)
                clusters = facts.pop("found")
                improved.append(facts)
            labels[positions] = inner_labels + total
            total += clusters
    out = labels < 0
    labels[out] = total
    sums = gathered_facts(improved)
    return Outcome.of_classes(part.records, labels, out, found=total, out=int(out.sum()), **sums)


def looks_at_values(options: Mapping[str, Any]) -> bool:
    """Return whether classes are formed by sensitive values, where diversity is asked for."""
    return options.get("distinct_first") is True


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
    diverse=looks_at_values,
    **IMPROVED,
)
