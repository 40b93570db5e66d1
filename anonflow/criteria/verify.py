"""The function `verify`: read the subject and the criteria, run the checks, return the findings."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from anonflow.candidate_lists import Candidates
from anonflow.criteria.aggregates import aggregates
from anonflow.criteria.description import description, with_promise
from anonflow.criteria.evidence import Evidence, Subject, collect, collect_alone, subject_of
from anonflow.criteria.guarantee import promised_criteria, promises_classes
from anonflow.criteria.matching.claim import uncovered
from anonflow.criteria.matching.covers import covers
from anonflow.criteria.order import order_remarks
from anonflow.criteria.registry import CRITERIA
from anonflow.criteria.repeated import REPEATED, released_people
from anonflow.criteria.request import CriterionRequest, read_criteria
from anonflow.criteria.verification import Finding, Verification
from anonflow.errors import DataError, ParameterError
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.option import check_whole
from anonflow.table import Schema, Table, row_marks
from anonflow.table.files.metadata_file import read_metadata
from anonflow.table.published.metadata import ReleaseMetadata

_STRONGEST_FIRST = ("k-anonymity", "k-regular", "k-concealment")


def criteria_names() -> tuple[str, ...]:
    """Return the names of all criteria."""
    return tuple(CRITERIA)


def verify(
    table: Any,
    subject: Any,
    criteria: Any = None,
    k: int | None = None,
    certificate: Any = None,
    overall: Mapping[str, Mapping[str, int]] | None = None,
    *,
    another_tool: bool = False,
    schema: Schema | Mapping[str, Any] | str | PathLike[str] | None = None,
) -> Verification:
    """Check a release, or an anonymization, against its original table, or a release alone.

    No code of the algorithms takes part: the verifier reads the data and does its own computations.

    Parameters
    ----------
    table : Table, Schema, or frame
        The n originals, a frame with its `schema`; without them the release's schema: then only the rows can be checked.
    subject : Anonymization, Release, frame or path
        What is verified; a frame is one of pandas, or speaks Arrow's PyCapsule interface (polars, DuckDB, pyarrow). Rows
        of an anonymization belong to the originals at the same positions; those of a release, of a frame and of a CSV or
        Parquet file are in no order. A description beside a file is compared with the cells and with what the schema
        declares: where they differ, a finding of its own, ``description``, fails. Without the original, or of another
        tool's release, it is among the findings where it holds, too; a description that is not anonflow's is left alone.
    criteria : str, mapping, or list of them, optional
        Names as :func:`criteria_names` gives them, ``guarantee`` for what the algorithm promises; with
        parameters ``l-diversity(l=3, column=disease)`` or ``{l-diversity: {l: 3}}``. Without it: ``covers``
        and the strongest of k-anonymity, k-regular, k-concealment that holds (all three, if none does); of a release that
        promises something for sets of columns alone, this promise.
    k : int, optional
        At least 2. By default the k of the subject, the certificate or the description beside a file.
    certificate : Certificate, or numpy.ndarray, shape (n, k), integer, optional
        The owner's claim of which originals each published row matches. Criteria about matches are then
        checked along it, in O(nk) instead of by maximum flow; where rows are not those it was made with, a finding
        of its own, ``certificate``, names them; if the verifier cannot decide it, the finding is not checked.
    overall : mapping, optional
        If `table` is a part of a larger table: sensitive column -> how often each text occurs in the larger one.
    another_tool : bool
        Whether another tool made the release: cells may be written in other notations (``[27, 47[``, ``>=90``; the schema's
        ``notation`` says how, the rest is guessed and remarked on), and records may have been deleted: they are counted.
    schema : Schema, mapping or path, optional
        Where the original is a frame.

    Returns
    -------
    Verification
        True only if every criterion holds and could be checked. If the release has another number of rows, every criterion
        fails, unless another tool deleted records, or the criterion ``repeated`` names the owner's folder that says who was held back. Without the original, or with deletions, criteria that need the missing
        data are not checked, and every other finding says what it could not see. For a file or frame it remarks that the
        data do not show whether there was a draw, and describes the order.

    Raises
    ------
    ParameterError
        If the subject, a criterion or k cannot be used.
    SchemaError, HierarchyError
        If the frame of the originals does not go with its schema.
    DataError
        If a file or column is missing, cells are no generalizations of the table's values, the certificate
        is about another release, or the consistency graph is too large.

    Notes
    -----
    Releases are checked from the consistency graph of distinct rows: its edges by bitsets in O(v u q / 64),
    k-regularity by one maximum flow (Murakami 2018, section 3.1), matches by strongly connected components (Tassa
    2012, Algorithm 4).
    """
    if schema is not None:
        table = Table.of(table, schema, "verify")
    if not isinstance(table, Table | Schema):
        raise ParameterError(
            f"the original is an anonflow Table, or a frame with schema=, not a {type(table).__name__} alone"
        )
    published = subject_of(subject, table)
    metadata = None
    if isinstance(subject, str | PathLike):
        metadata = read_metadata(subject, ignore_others=another_tool or isinstance(table, Schema))
    k = _k(k, published, certificate, metadata)
    guarantee = (
        published.guarantee or getattr(certificate, "criterion", None) or getattr(metadata, "guarantee", None)
    )
    requests = None if criteria is None else read_criteria(criteria, guarantee)
    if criteria is None and isinstance(table, Schema) and guarantee and not promises_classes(guarantee):
        with suppress(ParameterError):  # anybody may write a description
            # rows that are no classes do not fail for being none
            requests = read_criteria(["guarantee"], guarantee)
    held_back = 0
    if isinstance(table, Table) and published.frame is not None and published.rows < table.n:
        for request in requests or ():
            if request.name == REPEATED.name:
                part = released_people(table, published.frame, request.parameters["earlier"])
                held_back, table = held_back + table.n - part.n, part
    if published.rows == 0 and isinstance(table, Schema):
        raise DataError("the release has no rows: there is nothing to check")
    if requests is None and k is None:
        raise ParameterError("verifying needs k, or the criteria to check; give one, for example k=10")
    described: tuple[Finding, ...] = ()
    if metadata is not None and published.frame is not None:
        declared = table if isinstance(table, Schema) else table.schema
        described = (description(metadata, declared, published.frame, certificate, subject),)
    if isinstance(table, Schema):
        unit_remark = _UNSEEN_UNITS if table.unit_column is not None else ""
        evidence = collect_alone(published.published_rows(), table, k)
        return _of_rows(evidence, requests, k, _promised(described, metadata, evidence), unit_remark)
    deletions = (
        another_tool and 0 < published.rows < table.n and published.frame is not None and certificate is None
    )
    if published.rows != table.n and not deletions:
        names = [request.name for request in requests] if requests else ["covers", *_STRONGEST_FIRST]
        return Verification(_wrong_length(table, published, names, certificate), table.n, k)
    evidence = collect(table, published, k, certificate, overall, another_tool)
    described = _promised(described, metadata, evidence)
    if deletions:
        return _of_rows(evidence, requests, k, described)
    changed = _changed(table, published, certificate)
    if requests is None:
        findings = [covers(evidence), *_strongest(evidence, guarantee)]
    else:
        findings = [
            finding
            for request in requests
            for finding in _findings(evidence, request.name, request.parameters)
        ]
    if (
        table.schema.unit_column is not None
        and k is not None
        and all(finding.criterion != "units" for finding in findings)
    ):
        findings += _findings(evidence, "units", {})
    star_rows = int((evidence.suppressed & ~evidence.blank).sum())
    remarks: tuple[str, ...] = ()
    if held_back:
        remarks += (
            f"{plural(held_back, 'person')} of the table {verb_of(held_back, 'were')} held back, by the owner's folder: what was checked are "
            "the others",
        )
    if certificate is None and published.frame is not None and 0 < star_rows < (k or 0):
        sentence = f"{plural(star_rows, 'row', 'are')} {_SHOWN}"
        if requests is None:
            findings.append(Finding("suppressed", None, detail=sentence))
        else:
            remarks += (sentence,)
    if metadata is not None and metadata.k is not None and k is not None and metadata.k > k:
        remarks += (f"the description beside the file says k = {metadata.k}; what was checked is k = {k}",)
    if evidence.published.aggregates is not None and all(
        finding.criterion != "aggregates" for finding in findings
    ):
        of_means = aggregates(evidence)
        if of_means.holds is None:
            remarks += (of_means.detail,)
        else:
            findings.append(of_means)
    findings += [finding for finding in described if another_tool or not finding.holds]
    if (
        changed is None
        and getattr(certificate, "row_marks", None) is not None
        and published.frame is not None
    ):
        findings.append(Finding("certificate", None, detail=_NO_OTHERS))
    elif changed is not None and changed.any():
        findings.append(Finding.of("certificate", changed, "published", _CHANGED))
    uneven = _uneven(evidence, certificate)
    if uneven.any():
        findings.append(Finding.of("certificate", uneven, "published", _UNEVEN))
    # a release in memory was certainly drawn
    if getattr(subject, "truth", None) is None:
        remarks += order_remarks(evidence)
    return Verification(tuple(findings), table.n, k, evidence.remarks + remarks)


def _of_rows(
    evidence: Evidence,
    requests: list[CriterionRequest] | None,
    k: int | None,
    described: tuple[Finding, ...],
    unit_remark: str = "",
) -> Verification:
    """Return the findings if the original, or a row of every original, is missing; `unit_remark` adds a remark about units."""
    if requests is None:
        requests = [CriterionRequest("k-anonymity")]
        if not evidence.alone:
            requests.insert(0, CriterionRequest("covers"))
    findings: list[Finding] = []
    for request in requests:
        criterion = CRITERIA[request.name]
        need = criterion.need(request.parameters)
        if need == "everybody" or (evidence.alone and need == "originals"):
            lacking = "the original table" if evidence.alone else "a row of every record"
            detail = f"needs {lacking}; of these rows only classes can be judged"
            findings.append(Finding(request.name, None, detail=detail, parameters=request.parameters))
            continue
        unseen = f"{_UNSEEN_ALONE}{unit_remark}" if evidence.alone else _UNSEEN_DELETED
        for finding in criterion.findings(evidence, request.parameters):
            findings.append(replace(finding, detail=f"{finding.detail}; {unseen}"))
    remarks = list(evidence.remarks)
    star_rows = int((evidence.suppressed & ~evidence.blank).sum())
    if star_rows:
        remarks.append(
            f"{plural(star_rows, 'row', 'hide')} every quasi-identifier and {verb_of(star_rows, 'show')} other columns: "
            f"{'it is' if star_rows == 1 else 'they are'} a class like any other"
        )
    if evidence.deleted:
        remarks.append(
            f"{evidence.deleted:,} of {plural(evidence.n, 'record')} {verb_of(evidence.deleted, 'are')} not in the release: "
            "suppressed by deletion"
        )
    return Verification((*findings, *described), evidence.n, k, tuple(remarks))


_SHOWN = (
    "* throughout, and other columns show values: without the certificate the verifier cannot tell them from suppressed "
    "people, who would be found among so few rows; verify with the certificate"
)
_UNSEEN_ALONE = "not seen: the original, whom the rows cover, who was left out"
_UNSEEN_UNITS = ", whose the rows are (rows are counted, not people)"
_UNSEEN_DELETED = "not seen: who was left out, and why"


_NO_OTHERS = (
    "the release lacks columns that the table publishes, so the verifier cannot compare its rows with those of "
    "the certificate, nor say which values belong to which row"
)
_CHANGED = (
    "these are not the rows that the certificate was made with: they were changed, or are in another place"
)
_UNEVEN = "the certificate lists another number of originals for these rows than their class has rows"
_HIDDEN_RANGES = "means and medians do not say whom they cover: only the owner's certificate does"


def _changed(table: Table, published: Subject, certificate: Any) -> np.ndarray | None:
    """Return rows that differ from those of the certificate, (rows,), bool; None if this cannot be decided."""
    marks = getattr(certificate, "row_marks", None)
    if marks is None or published.frame is None:
        return None
    names = [str(name) for name in (*table.qi_columns, *table.other_columns)]
    if any(name not in published.frame.columns for name in names):
        return None
    rows = min(len(marks), published.rows)
    changed = np.ones(published.rows, bool)
    changed[:rows] = row_marks(published.frame.iloc[:rows], names, certificate.key) != marks[:rows]
    return changed


def _uneven(evidence: Evidence, certificate: Any) -> np.ndarray:
    """Return rows whose class has another number of originals than of rows by the certificate, shape (rows,), bool."""
    listed = getattr(certificate, "candidates", None)
    if listed is None or not promises_classes(getattr(certificate, "criterion", None)):
        return np.zeros(evidence.rows, bool)
    return np.asarray(listed.sizes != np.bincount(listed.row_list)[listed.row_list])


def _k(k: Any, published: Subject, certificate: Any, metadata: ReleaseMetadata | None) -> int | None:
    for candidate in (k, published.k, getattr(certificate, "k", None), getattr(metadata, "k", None)):
        if candidate is not None:
            return check_whole(candidate, 2, "k must be a whole number of at least 2")
    return None


def _findings(evidence: Evidence, name: str, parameters: Mapping[str, Any]) -> list[Finding]:
    """Return a criterion's findings; without lists of the classes, the ranges behind means and medians prove nothing."""
    criterion = CRITERIA[name]
    findings = criterion.findings(evidence, parameters)
    if not evidence.hides_ranges or criterion.need(parameters) != "everybody":
        return findings
    return [
        replace(finding, holds=None, detail=_HIDDEN_RANGES) if finding.holds else finding
        for finding in findings
    ]


def _strongest(evidence: Evidence, guarantee: str | None) -> list[Finding]:
    """Return the finding of the strongest criterion that holds, with those of all that is promised; all if none holds.

    Where the promise is of sets of columns, nothing is to hold on all of them together.
    """
    promises = [request for name in promised_criteria(guarantee) for request in _promised_requests(name)]
    findings = []
    of_sets = any(request.declared.of_sets for request in promises)
    for name in () if of_sets else _STRONGEST_FIRST:
        (finding,) = _findings(evidence, name, {})
        findings.append(finding)
        if finding.holds:
            names = {name, *(request.name for request in promises)}
            findings = [candidate for candidate in findings if candidate.criterion in names]
            break
    for request in promises:
        if request.name not in _STRONGEST_FIRST:
            findings += _findings(evidence, request.name, request.parameters)
    return findings


def _promised_requests(name: str) -> list[CriterionRequest]:
    """Return a promised criterion; none if a description names what does not exist."""
    try:
        return read_criteria(name, None)
    except ParameterError:
        return []


def _promised(
    described: tuple[Finding, ...], metadata: ReleaseMetadata | None, evidence: Evidence
) -> tuple[Finding, ...]:
    """Return the finding about a description, failing if the rows do not keep the guarantee that it states, with its k or that of the check."""
    k = evidence.k if metadata is None or metadata.k is None else metadata.k
    if metadata is None or not described or metadata.guarantee is None or k is None:
        return described
    failed, unchecked = [], []
    metadata, stated = replace(metadata, k=k), evidence if k == evidence.k else replace(evidence, k=k)
    for name in promised_criteria(metadata.guarantee):
        if not _promised_requests(name):
            failed.append("what is no criterion")
        for request in _promised_requests(name):
            if evidence.alone and CRITERIA[request.name].need(request.parameters) != "rows":
                unchecked.append(request.name)
            elif any(
                finding.holds is False for finding in _findings(stated, request.name, request.parameters)
            ):
                failed.append(request.name)
    return tuple(with_promise(finding, metadata, failed, unchecked) for finding in described)


def _wrong_length(
    table: Table, published: Subject, names: list[str], certificate: Any
) -> tuple[Finding, ...]:
    """Return a failed finding for every criterion; a certificate shows the first row that does not belong to it."""
    detail = f"the release has {plural(published.rows, 'row')}, the original {table.n}"
    place = min(table.n, published.rows)
    changed = _changed(table, published, certificate)
    if changed is not None:
        place = int(changed.argmax()) if changed.any() else published.rows
    elif certificate is not None and published.frame is not None:
        listed = Candidates.of_claim(certificate)
        rows = min(place, listed.rows)
        cut = listed.take(slice(rows))
        evidence = collect(
            table.take(np.arange(rows)), Subject(rows, None, published.frame.iloc[:rows]), None, None
        )
        if rows and not cut.strangers(table.n).any():
            wrong = np.flatnonzero(uncovered(cut, table.records, evidence.published))
            place = int(wrong[0]) if len(wrong) else rows
    failed = abs(table.n - published.rows)
    return tuple(Finding(name, False, failed, "published", (place,), detail) for name in names)
