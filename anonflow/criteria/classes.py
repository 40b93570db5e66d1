"""k-anonymity: equal published rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from anonflow.criteria.criterion import Criterion
from anonflow.criteria.evidence import Evidence
from anonflow.criteria.guarantee import promises_classes
from anonflow.criteria.verification import Finding
from anonflow.errors import ParameterError
from anonflow.hierarchy.wording import plural
from anonflow.option import Option
from anonflow.table import Table
from anonflow.table.identification.population import check_fraction, dankar, individual_risk
from anonflow.table.identification.uniqueness import at_least_one, keys_of_owners
from anonflow.table.sampling_weights import (
    WeightSummary,
    checked_weights,
    sampling_fraction,
    weights_of_owners,
)


def class_sizes(evidence: Evidence) -> np.ndarray:
    """Return, for each published row, the number of rows with the same quasi-identifiers, shape (n,)."""
    return np.bincount(evidence.classes)[evidence.classes]


def k_anonymity(evidence: Evidence) -> Finding:
    """Return whether every published row is equal, on the quasi-identifiers, to at least k - 1 others, O(nq log n).

    The check uses the release alone. Fewer than k rows that are ``*`` in every column are exempt.

    Raises
    ------
    ParameterError
        If k is not known.
    """
    k = evidence.need_k("k-anonymity")
    sizes = class_sizes(evidence)
    nonexempt_sizes = sizes[~evidence.exempt]
    failing = (sizes < k) & ~evidence.exempt
    detail = (
        f"the smallest class has {plural(int(nonexempt_sizes.min()), 'row')}"
        if len(nonexempt_sizes)
        else "every row is * throughout"
    )
    return Finding.of("k-anonymity", failing, "published", detail, {"k": k})


K_ANONYMITY = Criterion(
    name="k-anonymity",
    check=k_anonymity,
    sentence="Every published row is one of at least k rows that read the same on the quasi-identifiers.",
    promise="Every published row is one of at least k rows with the same quasi-identifiers.",
    covers_k=True,
    needs="rows",
    also={"k-anonymous": {}},
)


def is_of_classes(evidence: Evidence) -> bool:
    """Return whether each person is in one class only: of an anonymization by its guarantee, of a release by the covers.

    Rows of ``*`` alone do not count.
    """
    if evidence.alone or evidence.hides_ranges:
        return True
    if evidence.own:
        return evidence.guarantee is None or promises_classes(evidence.guarantee)
    graph = evidence.graph
    says = np.bincount(graph.published.label, ~evidence.blank, graph.published.size) > 0
    return not bool((np.bincount(graph.end[says[graph.box]], minlength=1) > 1).any())


def are_classes(evidence: Evidence) -> bool:
    """Return whether the rows of a release are classes: by its guarantee, by what they cover, or because k of them are equal.

    Classes of one release may overlap: rows of one may cover people of another.
    """
    if evidence.guarantee is not None:
        return promises_classes(evidence.guarantee)
    return is_of_classes(evidence) or (
        evidence.table.unit is None and evidence.k is not None and bool(k_anonymity(evidence).holds)
    )


def class_risks(evidence: Evidence) -> np.ndarray:
    """Return the chance of naming each published row's person, shape (rows,): 1 / class, by weights in the population.

    Raises
    ------
    ParameterError
        If the release is not of classes: its rows' risks are those of its guarantee.
    DataError
        If a weight cannot be one.

    Notes
    -----
    With a column of the role ``weight`` these are the individual risks of Benedetti and Franconi (1998): the attacker
    does not know who is in the table. Exempt rows have the risk 0.
    """
    if evidence.guarantee is not None and not promises_classes(evidence.guarantee):
        raise ParameterError(
            "this criterion needs classes, and rows of this release are drawn along matches: its guarantee bounds its risks"
        )
    if evidence.guarantee is None and not is_of_classes(evidence):
        raise ParameterError(
            "this criterion needs classes, and rows of this release overlap (freeform, or hidden cells beside shown ones); "
            "leave it out"
        )
    listed = np.flatnonzero(~evidence.exempt)
    labels = np.unique(evidence.classes[listed], return_inverse=True)[1]
    sizes = np.bincount(labels)
    frame = evidence.frame if evidence.frame is not None else evidence.table.frame
    weights = checked_weights(evidence.table.schema, frame.iloc[listed])
    risks = np.zeros(evidence.rows)
    of_class = 1.0 / sizes if weights is None else individual_risk(sizes, np.bincount(labels, weights))
    risks[listed] = of_class[labels]
    return risks


@dataclass(frozen=True, eq=False)
class Risks:
    """With which probability each person is named by a release of classes.

    Attributes
    ----------
    of : numpy.ndarray, shape (people,), float64
    whose : numpy.ndarray, shape (m,), int64
        Which of `of` is that of each published row, or, where the originals say whose each row is, of each original.
    side : {"published", "original"}
        What `whose` counts.
    counted : str
        ``people`` or ``rows``.
    """

    of: np.ndarray
    whose: np.ndarray
    side: str
    counted: str


def person_risks(evidence: Evidence) -> Risks:
    """Return the risk of each person: a row's (:func:`class_risks`), or that one of the person's rows is named.

    Raises
    ------
    ParameterError, DataError
        As :func:`class_risks`; also if the rows of a person have different weights.

    Notes
    -----
    A person with several rows is named by any of them: in one class with the sum of their risks, in several independently, 1 -
    product of (1 - risk in a class). With a column of the
    role ``weight`` all rows of a person are one key, and its risk is that of Benedetti and Franconi (1998). Whoever has no row
    that says something has the risk 0. A release alone does not say whose its rows are.
    """
    rows = class_risks(evidence)
    unit = evidence.table.unit
    if unit is None:
        return Risks(rows, np.arange(len(rows)), "published", "rows")
    row = class_rows(evidence)
    at = np.flatnonzero(row >= 0)
    cells, weights = person_cells(evidence)
    if weights is None:
        chance, groups = np.zeros(evidence.n), np.zeros(evidence.n, np.int64)
        chance[at] = rows[row[at]]
        groups[at] = 1 + evidence.classes[row[at]]
        hidden = evidence.blank & ~evidence.exempt
        if hidden.any():
            # enough suppressed rows are a class: any of them may be that of whom no other row covers
            chance[np.setdiff1d(np.arange(evidence.n), at)] = 1.0 / int(hidden.sum())
        return Risks(at_least_one(chance, unit, group=groups), unit, "original", "people")
    of_cell = individual_risk(np.bincount(cells), np.bincount(cells, weights))
    risks = np.zeros(int(unit.max(initial=-1)) + 1)
    risks[np.unique(unit[at])] = of_cell[cells]
    return Risks(risks, unit, "original", "people")


def average_risk(
    evidence: Evidence, *, most: Annotated[float, Option("Most on average", least=0, most=1, step=0.01)]
) -> Finding:
    """Return whether the mean of :func:`person_risks` is at most a number: expected re-identifications / people.

    Raises
    ------
    ParameterError, DataError
        As :func:`person_risks`.
    """
    evidence.need_k("average-risk")
    risks = person_risks(evidence)
    mean = float(risks.of.mean()) if len(risks.of) else 0.0
    detail = f"{float(risks.of.sum()):,.4g} of {len(risks.of):,} {risks.counted} are expected to be named correctly: {mean:.4g} on average"
    # three times 0.1 is more than 0.3 in floats
    above = (risks.of > most + 1e-12)[risks.whose]
    return Finding.of("average-risk", above, risks.side, detail, {"most": most}, mean <= most + 1e-12)


def share_at_risk(
    evidence: Evidence,
    *,
    threshold: Annotated[float, Option("Risk", least=0, most=1, step=0.01)],
    most: Annotated[float, Option("Most people above it, as a share", least=0, most=1, step=0.01)] = 0.0,
) -> Finding:
    """Return whether at most a share of the people has a risk (:func:`person_risks`) above a threshold.

    Raises
    ------
    ParameterError, DataError
        As :func:`person_risks`.
    """
    evidence.need_k("share-at-risk")
    risks = person_risks(evidence)
    over = risks.of > threshold + 1e-12
    share = float(over.mean()) if len(over) else 0.0
    detail = f"a share of {share:.4g} of the {risks.counted} is above {threshold:g}"
    parameters = {"threshold": threshold, "most": most}
    return Finding.of(
        "share-at-risk", over[risks.whose], risks.side, detail, parameters, share <= most + 1e-12
    )


def uniqueness(
    evidence: Evidence,
    *,
    most: Annotated[float, Option("Largest share of unique people", least=0, most=1, step=0.01)],
    fraction: Annotated[float | None, Option("Sampling fraction", above=0, most=1, step=0.01)] = None,
) -> Finding:
    """Return whether at most a share of the population is unique on the published quasi-identifiers, by Dankar's rule.

    Parameters
    ----------
    evidence : Evidence
        Of a release of classes.
    most : float
    fraction : float, optional
        n / N of a simple random sample; without it equal weights say it.

    Raises
    ------
    ParameterError
        If the release is not of classes, there is neither a fraction nor a weight, or both, or weights are unequal.
    DataError
        If a weight cannot be one.

    Notes
    -----
    If no model can be estimated, the finding is "not checked", which does not mean 0.
    """
    class_risks(evidence)  # refuse releases that are not of classes
    cells, weights = person_cells(evidence)
    check_uniqueness(fraction, None if weights is None else WeightSummary.of(weights))
    fraction = fraction if weights is None else sampling_fraction(weights)
    share_sampled = check_fraction(fraction)
    sizes = np.bincount(cells)
    chosen, _ = dankar(sizes, share_sampled)
    parameters = {"most": most, "fraction": fraction}
    if not chosen.is_there:
        return Finding("uniqueness", None, detail="not estimable by any of the models", parameters=parameters)
    share = min(1.0, float(chosen.uniques) / max(1.0, float(sizes.sum()) / share_sampled))
    alone = class_sizes(evidence) == 1
    detail = (
        f"a share of about {share:.4g} of the population is unique, by the model {chosen.model}, if it holds"
    )
    return Finding.of(
        "uniqueness", alone & ~evidence.blank, "published", detail, parameters, share <= most + 1e-12
    )


def person_cells(evidence: Evidence) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the cell of the key that each person is in, numbered from 0, and the weight of each.

    Parameters
    ----------
    evidence : Evidence
        Of a release of classes.

    Returns
    -------
    cells : numpy.ndarray, shape (people,), int64
        The class of each published row that says something. Where the originals say whose each row is, the classes of all rows
        of a person together: they are one key (:func:`anonflow.table.identification.uniqueness.keys_of_owners`).
    weights : numpy.ndarray, shape (people,), float64, or None
        Of the column of the role ``weight``.

    Raises
    ------
    DataError
        If a weight cannot be one, or a person's rows have different weights.
    """
    table, unit = evidence.table, evidence.table.unit
    if unit is None:
        listed = np.flatnonzero(~evidence.blank)
        frame = evidence.frame if evidence.frame is not None else table.frame
        cells = np.unique(evidence.classes[listed], return_inverse=True)[1]
        return cells, checked_weights(table.schema, frame.iloc[listed])
    row = class_rows(evidence)
    at = np.flatnonzero(row >= 0)
    return person_keys(table, evidence.classes[row[at]], at)


def person_keys(
    table: Table, classes: np.ndarray, at: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the key of each person by all its rows, numbered from 0, and the weight of each.

    Parameters
    ----------
    table : Table
    classes : numpy.ndarray, shape (m,), int64
        0.., of the records.
    at : numpy.ndarray, shape (m,), int64, optional
        Which records; all without it.

    Raises
    ------
    DataError
        If a weight cannot be one, or a person's rows have different weights.
    """
    frame = table.frame if at is None else table.frame.iloc[at]
    weights = checked_weights(table.schema, frame)
    if table.unit is None:
        return classes, weights
    owner = np.unique(table.unit if at is None else table.unit[at], return_inverse=True)[1]
    keys = keys_of_owners(classes, owner)
    return keys, None if weights is None else weights_of_owners(table.schema.weight_column, weights, owner)


def class_rows(evidence: Evidence) -> np.ndarray:
    """Return a published row of the class that each original is in, shape (n,), int64; -1 if its row has ``*`` alone.

    Parameters
    ----------
    evidence : Evidence
        Of a release of classes; records that were deleted have -1, too. By the certificate, where it says whom a row lists: a
        class may lie inside the ranges of another. O(edges of the consistency graph).
    """
    if evidence.own:
        return np.where(evidence.blank, -1, np.arange(evidence.n))
    proof = evidence.certificate
    if hasattr(proof, "candidates") and proof.complete:
        lists = proof.candidates
        row_of_list = np.full(len(lists.offsets) - 1, -1)
        row_of_list[lists.row_list] = np.where(evidence.blank, -1, np.arange(evidence.rows))
        listed = np.full(evidence.n, -1)
        listed[lists.originals] = np.repeat(row_of_list, np.diff(lists.offsets))
        return listed
    graph = evidence.graph
    says = np.bincount(graph.published.label, ~evidence.blank, graph.published.size) > 0
    edges = says[graph.box]
    of_end = np.full(graph.originals.size, -1)
    of_end[graph.end[edges]] = graph.published.first[graph.box[edges]]
    return of_end[graph.originals.label]


def check_uniqueness(fraction: float | None, weights: WeightSummary | None) -> None:
    """Refuse a request in which :func:`uniqueness` does not know the population that the table is a simple random sample of.

    Parameters
    ----------
    fraction : float or None
    weights : WeightSummary or None
        Of the column of the role ``weight``; None without one.

    Raises
    ------
    ParameterError
        If there is neither a fraction nor a weight, or both, or weights are unequal.
    """
    if fraction is not None and weights is not None:
        raise ParameterError(
            "criterion 'uniqueness': the table has a weight; leave the sampling fraction out"
        )
    if weights is not None and not weights.equal:
        raise ParameterError(
            "criterion 'uniqueness': the weights are unequal, and the models assume a simple random sample; ask for "
            "average-risk or share-at-risk"
        )
    if fraction is None and weights is None:
        raise ParameterError(
            "criterion 'uniqueness': needs the sampling fraction, such as fraction=0.05, or a column of the role weight"
        )


UNIQUENESS = Criterion(
    name="uniqueness",
    check=uniqueness,
    sentence="At most a share of the population is unique on what is published, as far as a model tells.",
    adds_up=False,
    needs="rows",
)

AVERAGE_RISK = Criterion(
    name="average-risk",
    check=average_risk,
    sentence="On average a person is named with at most this probability.",
    adds_up=False,
    needs="rows",
)

SHARE_AT_RISK = Criterion(
    name="share-at-risk",
    check=share_at_risk,
    sentence="At most a share of the people has a greater risk than a threshold.",
    adds_up=False,
    needs="rows",
)
