"""Agglomerative clustering (Gionis, Mazza and Tassa, ICDE 2008): the nearest two clusters are merged."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from anonflow.algorithms.classes.class_chains import (
    IMPROVED,
    KICKS,
    ROUNDS,
    Improve,
    Kicks,
    Rounds,
    Threads,
    effort_of,
    outcome_of,
)
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.kernels.classes.agglomerative import LOG, PLAIN, RATIO, WEIGHTED, agglomerate_jit
from anonflow.kernels.state import empty_state
from anonflow.option import Option

DISTANCES = {"weighted": WEIGHTED, "plain": PLAIN, "log": LOG, "ratio": RATIO}
"""Distance of two clusters A and B, d the cost of a cluster's closure:

``weighted``  |A u B| d(A u B) - |A| d(A) - |B| d(B)
``plain``     d(A u B) - d(A) - d(B)
``log``       the same / log2 |A u B|
``ratio``     d(A u B) / (d(A) + d(B) + 0.1)
"""


def agglomerative(
    part: Partition,
    k: int,
    *,
    dist: Annotated[Literal["log", "plain", "weighted", "ratio"], Option("Distance of clusters")] = "log",
    modified: Annotated[bool, Option("Give back records")] = False,
    improve: Improve = "none",
    rounds: Rounds = ROUNDS,
    kicks: Kicks = KICKS,
    threads: Threads = None,
) -> Outcome:
    """Return equivalence classes by merging the two clusters of least distance until each has k records.

    Every record starts as a cluster. The two clusters of fewer than k records that are nearest are merged; one of
    k or more is ripe and set aside. The records of a last unripe cluster each go to the nearest ripe one.

    Parameters
    ----------
    part : Partition
        P records.
    k : int
    dist : {"log", "plain", "weighted", "ratio"}, optional
        The distance, one of four (`DISTANCES`), that decides which two clusters are united next.
    modified : bool, optional
        A ripe cluster releases, one at a time, the records without which it costs least, until it has k.
    improve, rounds, kicks, threads : optional
        As :mod:`anonflow.algorithms.classes.class_chains` declares them: classes are improved by chains, or not.

    Returns
    -------
    Outcome
        With classes. Facts: their number, `found`; of an improvement `chains`, `kicks` and `gained`.

    Notes
    -----
    Gionis 2008, and docs/reference/departures.md, Agglomerative; ties are broken by the lowest record. O(P^2 q) time as a rule, since each cluster
    keeps its nearest one until that is gone and nothing else is as near; O(P (q + k)) memory, no P x P matrix.
    """
    effort = effort_of(improve, rounds, kicks, threads)
    labels, clusters = agglomerative_labels(part, k, DISTANCES[dist], modified)
    return outcome_of(part, labels, clusters, k, effort)


def agglomerative_labels(part: Partition, k: int, dist: int, modified: bool) -> tuple[np.ndarray, int]:
    """Return the cluster of each record, shape (P,), int64, and the number of clusters.

    Parameters
    ----------
    part : Partition
    k : int
    dist : int
        A value of `DISTANCES`.
    modified : bool
    """
    n = part.n
    labels = np.zeros(n, np.int64)
    origin = part.originals()
    clusters = agglomerate_jit(
        part.plan,
        dist,
        modified,
        k,
        origin,
        empty_state(part.plan, n),
        empty_state(part.plan, n // k + 1),
        empty_state(part.plan, 1),
        labels,
    )
    return labels, int(clusters)


AGGLOMERATIVE = Algorithm(
    name="agglomerative",
    run=agglomerative,
    family="clustering",
    paper="Gionis, Mazza, Tassa: k-Anonymization revisited. ICDE 2008",
    guarantee="k-anonymity",
    complexity="O(n P q) in partitions of P",
    summary="equal records with the least loss of the clustering methods, slower than k-member",
    colour="#2a7fb8",
    shape="square_pin",
    **IMPROVED,
)
