"""Maximum distance to average vector (Domingo-Ferrer and Mateo-Sanz 2002): the classes of microaggregation."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from anonflow.algorithms.classes.class_chains import (
    IMPROVED,
    KICKS,
    ROUNDS,
    Kicks,
    Rounds,
    Threads,
    effort_of,
    outcome_of,
)
from anonflow.algorithms.classes.square_exchanges import exchange_for_squares
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.kernels.classes.mdav import mdav_clusters_jit
from anonflow.option import Option
from anonflow.table import Domain, Records

Improve = Annotated[
    Literal["none", "chains", "squares"],
    Option(
        "Afterwards",
        sentence="Chains: records then move between the classes while that lowers the loss. Squares: while that lowers the sum of "
        "squares within classes, by which microaggregation is compared.",
    ),
]


def mdav(
    part: Partition,
    k: int,
    *,
    improve: Improve = "none",
    rounds: Rounds = ROUNDS,
    kicks: Kicks = KICKS,
    threads: Threads = None,
) -> Outcome:
    """Return equivalence classes of k to 2k - 1 records, around records that are furthest from the average of the records left.

    While at least 3k records are left, the one furthest from their average and the k - 1 nearest to it are a class, and
    so are the one that is furthest from it and the k - 1 nearest to that. Of 2k to 3k - 1 records the first half is made
    so, and all others are the last class.

    Parameters
    ----------
    part : Partition
        P records.
    k : int
    improve : {"none", "chains", "squares"}, optional
        Classes are improved by chains, which lower the loss; or by exchanges, which lower the sum of squares and keep k to 2k - 1 records
        (:func:`anonflow.algorithms.classes.square_exchanges.exchange_for_squares`); or not.
    rounds, kicks, threads : optional
        Of the chains, as :mod:`anonflow.algorithms.classes.class_chains` declares them.

    Returns
    -------
    Outcome
        With classes. Facts: their number, `found`; of an improvement `chains`, `kicks` and `gained`, or `exchanges`; over the numeric
        quasi-identifiers (QIs), standardized, the sum of squares within classes, `sse`, and in all, `sst`, whose ratio is the
        information loss by which microaggregation is compared.

    Notes
    -----
    Domingo-Ferrer and Mateo-Sanz, IEEE TKDE 14(1), 2002, section 4.1, in the form of Domingo-Ferrer and Torra, Data Mining
    and Knowledge Discovery 11, 2005, algorithm MDAV-generic. O(P^2 q / k) time, O(P q) memory. Numbers are standardized by
    the whole table's variance, and count with their weights. Values of other columns are 0 or 1 apart, and the average has
    the most frequent one, as for the nominal attributes of the later paper, also where there is a hierarchy. A missing number is 1
    apart from every number, and lies at the mean. The choice does not look at the information loss asked for. Equal choices: the
    record of lowest position. Classes are published as their ranges.
    """
    labels, clusters = mdav_labels(part.records, k)
    if improve == "squares":
        labels, facts = exchange_for_squares(*standardized(part.records), labels, k)
        outcome = Outcome.of_classes(part.records, labels, **facts)
    else:
        outcome = outcome_of(part, labels, clusters, k, effort_of(improve, rounds, kicks, threads))
    outcome.facts.update(squares(part.records, labels if outcome.classes is None else outcome.classes))
    return outcome


def mdav_labels(records: Records, k: int) -> tuple[np.ndarray, int]:
    """Return the class of each record, shape (P,), int64, and the number of classes.

    Parameters
    ----------
    records : Records
    k : int
        At least 1.
    """
    labels = np.zeros(records.n, np.int64)
    if records.n < k:
        return labels, 1
    points, codes, weight = standardized(records)
    clusters = mdav_clusters_jit(points, codes, weight, int(codes.max(initial=0)) + 1, k, labels)
    return labels, int(clusters)


def standardized(records: Records) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return records as MDAV compares them.

    Parameters
    ----------
    records : Records

    Returns
    -------
    points : numpy.ndarray, shape (n, m), float64
        Numbers less the whole table's mean, in units of its standard deviation, times the root of the QI's weight.
    codes : numpy.ndarray, shape (n, c), int64
        Of the other QIs, and of numbers that are missing or not.
    weight : numpy.ndarray, shape (c,), float64
        What two different codes add to a squared distance.
    """
    points, codes, weight = [], [], []
    for a, domain in enumerate(records.domains):
        column = records.codes[:, a].astype(np.int64)
        if domain.kind != "numeric":
            codes.append(column)
            weight.append(domain.weight)
            continue
        points.append(np.append(_scaled(domain), 0.0)[column])  # the last one is that of a missing number
        if domain.has_missing:
            codes.append((column < 0).astype(np.int64))
            weight.append(domain.weight)
    return (
        np.ascontiguousarray(np.stack(points, axis=1)) if points else np.zeros((records.n, 0)),
        np.ascontiguousarray(np.stack(codes, axis=1)) if codes else np.zeros((records.n, 0), np.int64),
        np.array(weight, np.float64),
    )


def squares(records: Records, classes: np.ndarray) -> dict[str, float]:
    """Return the sum of squares of the standardized numbers: within classes, `sse`, and in all, `sst`.

    Parameters
    ----------
    records : Records
        n records; in all means around the whole table's mean.
    classes : numpy.ndarray, shape (n,), int64
    """
    points = standardized(records)[0]
    label = np.unique(classes, return_inverse=True)[1]
    size = np.bincount(label).astype(np.float64)
    within = 0.0
    for column in points.T:
        mean = np.bincount(label, column) / size
        within += float(((column - mean[label]) ** 2).sum())
    return {"sse": within, "sst": float((points**2).sum())}


def _scaled(domain: Domain) -> np.ndarray:
    """Return the values of a numeric domain, standardized by how often they occur: shape (D,)."""
    points, share = domain.points, domain.counts / domain.counts.sum()
    scale = max(float(np.abs(points).max()), 1e-300)  # squares of large numbers overflow a float
    away = points / scale
    away = away - float(share @ away)
    deviation = float(np.sqrt(share @ away**2))
    return np.asarray(away / deviation * np.sqrt(domain.weight)) if deviation > 0 else np.zeros(len(points))


MDAV = Algorithm(
    name="mdav",
    run=mdav,
    family="clustering",
    paper="Domingo-Ferrer, Mateo-Sanz: Practical data-oriented microaggregation for statistical disclosure control. "
    "IEEE TKDE 14(1), 2002",
    guarantee="k-anonymity",
    complexity="O(n P q / k) in partitions of P",
    summary="microaggregation: classes of nearly k records, near each other in all numbers",
    colour="#7a5230",
    shape="hex",
    **IMPROVED,
)
