"""The report that a reviewer signs: modelled on the anonymization report of EMA's Policy 0070 and of Health Canada.

Its sections follow the steps of the guidance (EMA/90915/2016, version 1.3 of 20 September 2017, chapter 3): identifiers,
adversaries and attacks, utility, threshold, actual risk, method, documentation. Nothing here is accepted by an agency.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

from anonflow import __version__, risk
from anonflow.criteria.registry import promise_of
from anonflow.engine.execution.result import RunReport, RunResult
from anonflow.engine.flows.flow import Flow
from anonflow.engine.report.attacks import publishable
from anonflow.engine.report.card import smallest_k
from anonflow.engine.report.report import (
    detail_of,
    how_of,
    left_out_of,
    limits_of,
    template_named,
)
from anonflow.hierarchy.wording import plural
from anonflow.risk.attack import OF_THE_ROW
from anonflow.risk.attacker import THRESHOLD
from anonflow.risk.three_questions import QUESTIONS
from anonflow.table import Schema, Table

SECTIONS = (
    "Purpose and scope",
    "Data dictionary: identifiers and quasi-identifiers",
    "Adversaries and plausible attacks",
    "Threshold and way of assessment",
    "Measured risk of re-identification",
    "Method and transformations",
    "Singling out, linkability, inference",
    "Data utility",
    "Residual risk",
    "Protocol for a test by human intruders",
    "What was verified",
    "Signatures",
)
"""The sections, in their order."""

NOT_ASKED = "these columns do not allow this attack"

_OPEN = {
    "failed": "the attack is right more often than the threshold allows for people of the release",
    "too weak": "the attack is right no more often than a naive guess, and shows nothing",
    "not decided": "there are too few people to say whether the attack stays below the threshold",
}
"""What a verdict that is no pass means."""

_SINGLED_OUT = (
    "Ranges that end at somebody's value let conditions single that person out, whatever k is; intervals that are fixed "
    "beforehand (a hierarchy) do so much less."
)

SIGNERS = ("Data owner", "Author of this report", "Privacy officer", "Reviewer")

FIELDS = {
    "purpose": (1, "Why the data are released"),
    "recipients": (1, "Who receives them: anybody, or named recipients"),
    "source": (1, "Where the data come from, and when"),
    "earlier": (1, "Earlier releases about the same people"),
    "analyses": (8, "Which analyses the data are still good for"),
    "residual": (9, "Why the residual risk is accepted"),
    "intruders": (10, "Intruders, and when"),
    "claims": (10, "Claims; right; right and confident; by chance"),
    "changes": (10, "What was changed because of it"),
    **{
        f"{signer.lower().replace(' ', '-')}-{field}": (12, f"{signer}: {field}")
        for signer in SIGNERS
        for field in ("name", "date")
    },
    "threshold": (12, "Another threshold, and why"),
    "remarks": (12, "Remarks"),
}
"""The fields that people fill in, in the page's order: section and question. Signatures are by hand."""

_TREATMENT = {
    "quasi-identifier": "generalized by the method",
    "identifier": "not published",
    "sensitive": "published as it was, on a row drawn for it",
    "insensitive": "published as it was, on a row drawn for it",
    "weight": "published as it was, on a row drawn for it",
}


def review(
    flow: Flow,
    table: Table,
    report: RunReport,
    result: RunResult,
) -> str:
    """Return the reviewer's report of a flow as an HTML page.

    Parameters
    ----------
    flow : Flow
    table : Table
    report : RunReport
        With its card, and the answers to the three questions.
    result : RunResult
        The run that is published.

    Returns
    -------
    str
        HTML: names and numbers, never a cell's value, and fields that people fill in and sign.
    """
    spec = flow.spec.publish.report
    threshold = THRESHOLD if spec is None or spec.limit is None else spec.limit
    attacks = publishable(report.attacks, result.listed)
    hidden = 0 if report.attacks is None else len(report.attacks) - len(attacks)
    card = None if report.card is None else report.card.published
    return template_named("reviewer.html.j2").render(
        title=f"{flow.name}: anonymization report",
        flow=flow.name,
        version=__version__,
        sections=SECTIONS,
        result=result,
        findings=[(finding, how_of(finding)) for finding in result.findings],
        lead=(
            f"{plural(table.n, 'record')}, anonymized by the method {result.algorithm} with k = {result.k}; its "
            f"guarantee is {result.guarantee}."
        ),
        card=card,
        promise=promise_of(result.guarantee, result.k) or result.guarantee,
        said=[f"{promise}." for promise in result.promises],
        dictionary=_dictionary(flow.schema),
        unnamed=len(table.unnamed),
        left_out=left_out_of(table),
        threshold=threshold,
        smallest=smallest_k(threshold),
        measured=None if card is None else next(line for line in card.lines if line.name == "measured"),
        attacks=[
            {**row, "judged": row["attacker"] in OF_THE_ROW, "below": row["worst"] < threshold} for row in attacks
        ],
        hidden=hidden,
        not_tried=[name for name, kind in risk.ATTACKERS.items()
                   if kind.of_population and name not in {row["attacker"] for row in attacks}],
        questions=QUESTIONS,
        answers={answer.question: answer for answer in report.answers},
        unanswered=report.unanswered or NOT_ASKED,
        open_questions=_open_questions(report, threshold),
        detail=detail_of(result, False),
        settings=_settings(result),
        limits=limits_of(result.guarantee),
        signers=SIGNERS,
        fields=FIELDS,
    )  # fmt: skip


def filled_in(page: str, texts: Mapping[str, str]) -> str:
    """Return the page of :func:`review` with the fields that people filled in.

    Parameters
    ----------
    page : str
    texts : mapping
        Key of `FIELDS` -> plain text, which is escaped; others, and empty ones, are ignored.
    """
    for key in FIELDS:
        text = str(texts.get(key, "")).strip()
        if text:
            lines = Markup("<br>").join(escape(line) for line in text.splitlines())
            page = page.replace(f'data-field="{key}">&nbsp;<', f'data-field="{key}">{lines}<', 1)
    return page


def _dictionary(schema: Schema) -> list[tuple[str, str, str, str]]:
    """Return name, role, kind and treatment of every column that the flow names."""
    rows = []
    for name, column in schema.columns.items():
        treatment = _TREATMENT.get(column.role, "not published")
        limit = "" if column.limit is None and column.boundary is None else "; never beyond its limits"
        missing = "" if column.missing is None else f"; missing: {column.missing}"
        rows.append((name, column.role, column.kind or "", f"{treatment}{limit}{missing}"))
    return rows


def _open_questions(report: RunReport, threshold: float) -> list[str]:
    """Return a sentence for each of the three questions that is not passed."""
    answers = {answer.question: answer for answer in report.answers}
    lines = []
    for question in QUESTIONS:
        answer = answers.get(question)
        verdict = "not measured" if answer is None else answer.verdict(threshold)
        if verdict != "passed":
            why = _OPEN.get(verdict, report.unanswered or NOT_ASKED)
            remedy = f" {_SINGLED_OUT}" if (question, verdict) == (QUESTIONS[0], "failed") else ""
            lines.append(f"{question}: {verdict}: {why}.{remedy}")
    return lines


def _settings(result: RunResult) -> list[tuple[str, Any]]:
    """Return the settings of the method: plain numbers and names, never labels of a column."""
    anonymization = result.anonymization
    if anonymization is None:
        return []
    return [
        (name, value)
        for name, value in anonymization.parameters.items()
        if isinstance(value, bool | int | float | str) and name != "seed"
    ]
