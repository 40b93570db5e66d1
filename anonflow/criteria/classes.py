"""k-anonymity: equal published rows."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from anonflow.criteria.criterion import Criterion
from anonflow.criteria.evidence import Evidence
from anonflow.criteria.verification import Finding
from anonflow.errors import ParameterError
from anonflow.option import Option
from anonflow.table import equal_columns
from anonflow.table.population import (
    check_fraction,
    checked_weights,
    dankar,
    individual_risk,
    sampling_fraction,
)
from anonflow.table.row_marks import coded_texts

__all__ = [
    "AVERAGE_RISK",
    "KEY_SETS",
    "K_ANONYMITY",
    "SHARE_AT_RISK",
    "UNIQUENESS",
    "average_risk",
    "class_risks",
    "class_sizes",
    "is_of_classes",
    "k_anonymity",
    "key_sets",
    "share_at_risk",
    "uniqueness",
]


def class_sizes(evidence: Evidence) -> np.ndarray:
    """For each published row the number of rows that read the same on the quasi-identifiers, shape (n,)."""
    sizes: np.ndarray = np.bincount(evidence.classes)[evidence.classes]
    return sizes


def k_anonymity(evidence: Evidence) -> Finding:
    """Return whether every published row is equal, on the quasi-identifiers, to at least k - 1 others, O(nq log n).

    Only the release is looked at. Fewer than k rows that are ``*`` in every column may stand alone.

    Raises
    ------
    ParameterError
        If k is not known.
    """
    k = evidence.need_k("k-anonymity")
    sizes = class_sizes(evidence)
    kept = sizes[~evidence.exempt]
    failing = (sizes < k) & ~evidence.exempt
    detail = f"the smallest class has {int(kept.min())} rows" if len(kept) else "every row is * throughout"
    return Finding.of("k-anonymity", failing, "published", detail, {"k": k})


K_ANONYMITY = Criterion(
    name="k-anonymity",
    check=k_anonymity,
    sentence="Every published row reads the same on the quasi-identifiers as at least k - 1 others.",
    promise="Every published row has the same quasi-identifiers as at least k - 1 others.",
    covers_k=True,
    needs="rows",
    also={"k-anonymous": {}},
)


def key_sets(
    evidence: Evidence,
    *,
    sets: Annotated[Any, Option("Sets of columns that others may know, each by itself")],
) -> list[Finding]:
    """k-anonymity on each of several sets of columns, whoever knows which: a finding for each set.

    Parameters
    ----------
    evidence : Evidence
    sets : list of lists of str
        Published columns, quasi-identifiers or not.

    Raises
    ------
    ParameterError
        If k is not known, or sets are no lists of published columns.
    """
    k = evidence.need_k("key-sets")
    frame = evidence.frame if evidence.frame is not None else evidence.published.decode()
    if (
        not isinstance(sets, list | tuple)
        or not sets
        or not all(isinstance(columns, list | tuple) and columns for columns in sets)
    ):
        raise ParameterError(
            "criterion 'key-sets': sets is a list of lists of columns, such as [[age, sex], [zip]]"
        )
    findings = []
    for columns in sets:
        lacking = [name for name in columns if name not in frame.columns]
        if lacking:
            raise ParameterError(f"criterion 'key-sets': {str(lacking[0])[:40]!r} is no published column")
        labels = equal_columns([coded_texts(frame[name], {}, False) for name in columns], len(frame))
        sizes = np.bincount(labels)[labels]
        failing = (sizes < k) & ~evidence.exempt
        words = f"{', '.join(columns)}: the smallest class has {int(sizes.min(initial=len(frame)))} rows"
        findings.append(
            Finding.of("key-sets", failing, "published", words, {"k": k, "sets": ", ".join(columns)})
        )
    return findings


def is_of_classes(evidence: Evidence) -> bool:
    """Return whether each person is in one cell only: of an anonymization by its guarantee, of a release by who is covered.

    Rows that say nothing do not count.
    """
    if evidence.alone:
        return True
    if evidence.own:
        return evidence.guarantee is None or "k-anonymity" in evidence.guarantee
    graph = evidence.graph
    says = np.bincount(graph.published.label, ~evidence.blank, graph.published.size) > 0
    return not bool((np.bincount(graph.end[says[graph.box]], minlength=1) > 1).any())


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
    With a column of the role ``weight`` the individual risks of Benedetti and Franconi (1998): who is in the table is not
    known. Exempt rows say nothing: their risk is 0.
    """
    if evidence.guarantee is not None and "k-anonymity" not in evidence.guarantee:
        raise ParameterError(
            "risks of classes are asked of a release whose rows are drawn along matches: its guarantee says its risks"
        )
    if evidence.guarantee is None and not is_of_classes(evidence):
        raise ParameterError(
            "risks of classes are asked of a release whose rows overlap (freeform, or hidden cells beside shown ones): nobody "
            "is in one class"
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


def average_risk(
    evidence: Evidence, *, most: Annotated[float, Option("Most on average", least=0, most=1, step=0.01)]
) -> Finding:
    """Return whether the mean of :func:`class_risks` is at most a number: expected re-identifications / rows.

    Raises
    ------
    ParameterError, DataError
        As :func:`class_risks`.
    """
    evidence.need_k("average-risk")
    risks = class_risks(evidence)
    mean = float(risks.mean()) if len(risks) else 0.0
    holds = mean <= most + 1e-12
    detail = f"{float(risks.sum()):,.4g} of {len(risks):,} rows are expected to be named rightly: {mean:.4g} on average"
    return Finding.of("average-risk", risks > most + 1e-12, "published", detail, {"most": most}, holds)


def share_at_risk(
    evidence: Evidence,
    *,
    threshold: Annotated[float, Option("Risk", least=0, most=1, step=0.01)],
    most: Annotated[float, Option("Most rows above it, as a share", least=0, most=1, step=0.01)] = 0.0,
) -> Finding:
    """Return whether at most a share of the rows has a risk (:func:`class_risks`) above a threshold.

    Raises
    ------
    ParameterError, DataError
        As :func:`class_risks`.
    """
    evidence.need_k("share-at-risk")
    over = class_risks(evidence) > threshold + 1e-12
    share = float(over.mean()) if len(over) else 0.0
    detail = f"a share of {share:.4g} of the rows is above {threshold:g}"
    parameters = {"threshold": threshold, "most": most}
    return Finding.of("share-at-risk", over, "published", detail, parameters, share <= most + 1e-12)


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
    Where no model is estimable the finding is not checked: that is no 0.
    """
    class_risks(evidence)  # refuses what is no release of classes
    frame = evidence.frame if evidence.frame is not None else evidence.table.frame
    weights = checked_weights(evidence.table.schema, frame.iloc[np.flatnonzero(~evidence.blank)])
    if fraction is not None and weights is not None:
        raise ParameterError(
            "criterion 'uniqueness': the table has a weight; leave the sampling fraction out"
        )
    if weights is not None:
        fraction = sampling_fraction(weights)
        if fraction is None:
            raise ParameterError(
                "criterion 'uniqueness': the weights are unequal, and the models assume a simple random sample; ask for "
                "average-risk or share-at-risk"
            )
    if fraction is None:
        raise ParameterError(
            "criterion 'uniqueness': needs the sampling fraction, such as fraction=0.05, or a column of the role weight"
        )
    sizes = np.bincount(np.unique(evidence.classes[~evidence.blank], return_inverse=True)[1])
    chosen, _ = dankar(sizes, check_fraction(fraction))
    parameters = {"most": most, "fraction": fraction}
    if not chosen.is_there:
        return Finding("uniqueness", None, detail="not estimable by any of the models", parameters=parameters)
    share = min(1.0, float(chosen.uniques) / max(1.0, float(sizes.sum()) / fraction))
    alone = class_sizes(evidence) == 1
    detail = (
        f"a share of about {share:.4g} of the population is unique, by the model {chosen.model}, if it holds"
    )
    return Finding.of(
        "uniqueness", alone & ~evidence.blank, "published", detail, parameters, share <= most + 1e-12
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
    sentence="On average a row's person is named with at most this probability.",
    adds_up=False,
    needs="rows",
)

SHARE_AT_RISK = Criterion(
    name="share-at-risk",
    check=share_at_risk,
    sentence="At most a share of the rows has a greater risk than a threshold.",
    adds_up=False,
    needs="rows",
)

KEY_SETS = Criterion(
    name="key-sets",
    check=key_sets,
    sentence="On each of several sets of columns, every published row reads the same as at least k - 1 others.",
    adds_up=False,
    needs="rows",
)
