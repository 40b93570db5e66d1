"""Linkable columns: whether other published columns lead from a row to the person it is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from anonflow.candidate_lists import Candidates
from anonflow.criteria.criterion import Criterion
from anonflow.criteria.evidence import Evidence
from anonflow.criteria.matching.concealment import match_edges
from anonflow.criteria.verification import Finding
from anonflow.errors import DataError, ParameterError
from anonflow.option import Option
from anonflow.table.identification.linkage import TOGETHER, Link, linkage

_MOST = 20_000_000
"""More pairs of an original and a distinct row are not listed."""


def linkable_columns(
    evidence: Evidence,
    *,
    threshold: Annotated[float, Option("Largest probability", least=0, most=1, step=0.05)],
    column: Annotated[str | None, Option("Published column")] = None,
    declared: Annotated[str | Sequence[str], Option("Columns that everybody can compute")] = (),
) -> list[Finding]:
    """Return whether no row has a candidate that its other columns make too probable.

    Parameters
    ----------
    evidence : Evidence
    threshold : float
        The largest allowed probability, at least 1/k.
    column : str, optional
        One published column; without it each, and all together.
    declared : str or list of str, optional
        Columns that everybody can compute from the quasi-identifiers.

    Returns
    -------
    list of Finding
        One for each column, and one for all together where there are several. A published row fails.

    Raises
    ------
    ParameterError
        If a column is not published, the threshold is below 1/k, or a k-regular anonymization has not been drawn.
    DataError
        If the consistency graph is too large.

    Notes
    -----
    :func:`anonflow.table.identification.linkage.linkage`, which describes the model and its limits.
    """
    k = evidence.need_k("linkable-columns")
    if threshold < 1 / k - 1e-9:
        raise ParameterError(
            f"criterion 'linkable-columns': no release with k = {k} is below 1/k; threshold must be at least {1 / k:.4g}"
        )
    parameters: dict[str, Any] = {"threshold": threshold, "column": column}
    if declared:
        parameters["declared"] = declared
    findings = []
    for link in linked_columns(evidence, column, declared):
        failing = np.nan_to_num(link.highest) > threshold + 1e-9
        findings.append(
            Finding.of(
                "linkable-columns", failing, "published", detail(link, threshold),
                {**parameters, "column": None if link.column == TOGETHER else link.column},
            )
        )  # fmt: skip
    if not findings:
        findings.append(
            Finding("linkable-columns", True, detail="no other column is published", parameters=parameters)
        )
    return findings


def detail(link: Link, threshold: float) -> str:
    """Return the result for a column, in numbers."""
    predictor = TOGETHER if link.column == TOGETHER else f"column {link.column!r}"
    return (
        f"{predictor}: the likeliest candidate of a row has a probability of {link.mean:.3f} on average, {link.largest:.3f} "
        f"at most, above {threshold:g} for {100 * link.above(threshold):.1f}% of the rows; by this model only"
    )


def linked_columns(evidence: Evidence, column: Any = None, declared: Any = None) -> list[Link]:
    """Return the probability of each row's likeliest candidate, for each other column and for all together.

    Parameters
    ----------
    evidence : Evidence
        Of a release.
    column : str, optional
        One of the columns.
    declared : str or list of str, optional
        Columns that everybody can compute from the quasi-identifiers.

    Raises
    ------
    ParameterError
        If a column is not published, or nothing has been drawn yet.
    DataError
        If the consistency graph is too large.
    """
    if evidence.frame is None:
        raise ParameterError("linkable columns are a property of a release: draw it first")
    names = list(evidence.others)
    computed = [declared] if isinstance(declared, str) else list(declared or ())
    for name in (*([] if column is None else [column]), *computed):
        if name not in names:
            raise ParameterError(
                f"criterion 'linkable-columns': column {str(name)!r} is not a published column besides the "
                "quasi-identifiers"
            )
    if column is not None:
        names = [column]
    originals = {name: evidence.table.frame[name] for name in names}
    published_columns = {name: evidence.frame[name] for name in names}
    return linkage(evidence.records, originals, published_columns, candidates(evidence), computed)


def candidates(evidence: Evidence) -> Candidates:
    """Return the candidate originals of each row: those of the certificate, else those of all perfect matchings.

    Raises
    ------
    DataError
        If there are too many pairs to list.
    """
    if evidence.listing is not None:
        pairs = _once(evidence.listing, evidence.n)
    else:
        graph = evidence.graph
        matches = match_edges(evidence)
        if matches is not None:
            graph = graph.only(matches)
        if int(graph.degrees()[1].sum()) > _MOST:
            raise DataError(f"more than {_MOST:,} pairs of a person and a row; give the certificate")
        pairs = graph.lists()
    # the other columns of exempt rows are "*": there is nothing to link with
    return pairs.without(evidence.exempt)


def _once(claimed: Candidates, n: int) -> Candidates:
    """Return the claimed originals that are in the table, each once: a claim may contain anything."""
    if not claimed.strangers(n).any():
        return claimed
    row, original = claimed.pairs()
    inside = (original >= 0) & (original < n)
    row, original = np.unique(np.stack([row[inside], original[inside]]), axis=1)
    return Candidates.of_lists(np.bincount(row, minlength=claimed.rows), original)


LINKABLE_COLUMNS = Criterion(
    name="linkable-columns",
    check=linkable_columns,
    sentence="No row has a candidate that its other columns make more probable than the threshold.",
    adds_up=False,
    of_release=True,
)
