"""From results to a publication: draw and verify the release, attack it, and only after that write files."""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anonflow.algorithms.anonymize import Anonymization
from anonflow.criteria import Finding, verify
from anonflow.criteria.request import read_criteria, with_patterns
from anonflow.engine.context import Session
from anonflow.engine.execution.result import RunReport, RunResult
from anonflow.engine.flows.addresses import beside, is_address, removed, shown_address, uploaded
from anonflow.engine.flows.flow import Flow
from anonflow.engine.owner import record
from anonflow.engine.report import pdf
from anonflow.engine.report.attacks import (
    MOST,
    attacked,
    attacked_part,
    is_attacked,
    part_of_release,
    untried,
)
from anonflow.engine.report.card import PASSED, ReleaseCard, cards_of
from anonflow.engine.report.held_out import held_out
from anonflow.engine.report.report import render
from anonflow.engine.report.reviewer import review
from anonflow.errors import ParameterError
from anonflow.large_arrays import IN_MEMORY, Arrays
from anonflow.release import Earlier, Release, SeedWarning, publish
from anonflow.release.tables import write_described, write_table
from anonflow.risk import Answer
from anonflow.risk.attacker import WholeRelease
from anonflow.risk.attackers.people import people_named
from anonflow.table import Table
from anonflow.table.files.metadata_file import metadata_path
from anonflow.table.forms.text_columns import plain_frame
from anonflow.table.identification.earlier import MOST_PEOPLE
from anonflow.table.published.metadata import ReleaseMetadata
from anonflow.table.spreadsheets import formula_warning
from anonflow.threads import FEW_ROWS, in_threads
from anonflow.whole_file import write_whole


def release_of(
    session: Session, table: Table, result: RunResult, arrays: Arrays = IN_MEMORY
) -> tuple[Release, tuple[Finding, ...]]:
    """Draw a run's assignment, and verify the release in memory.

    Parameters
    ----------
    session : Session
    table : Table
    result : RunResult
        With its anonymization.
    arrays : Arrays
        Where the release is.

    Returns
    -------
    release : Release
    findings : tuple of Finding
        The verifier's findings.

    Raises
    ------
    Cancelled
        If the run was cancelled.
    VerificationError
        If the matches are not regular, or earlier releases of the same people and this one leave somebody too few people.
    """
    anonymization = result.anonymization
    assert anonymization is not None
    release = session.step("draw", lambda: _draw(session, anonymization, arrays), result.number)
    if session.owner is not None and not session.replayed:
        if table.n > MOST_PEOPLE:
            session.warn(
                f"anonflow keeps no marks of the people in this release: it has more than {MOST_PEOPLE:,} people; check "
                "yourself that no other release contains them"
            )
        earlier = Earlier(session.owner.path.parent)
        session.releases = earlier.kept
        if session.flow.earlier:
            earlier.check_left(table, release, session.flow.earlier)
        elif overlap := earlier.overlap(table, release):
            session.warn(overlap.sentence())
    knowledge = (
        None if session.flow.table_path is None else formula_warning(release.frame, session.flow.table_path)
    )
    if knowledge:
        session.warn(knowledge)
    promised = result.guarantee if release.certificate is None else release.certificate.criterion
    requests = with_patterns(read_criteria(session.flow.criteria, promised), anonymization.parameters)
    checked = session.step(
        "verify",
        lambda: verify(table, release, requests, result.k, certificate=release.certificate),
        result.number,
    )
    return release, checked.findings


def warn_of_earlier(session: Session, table: Table) -> None:
    """Warn of a second draw of one table, or of the same people; not of a table of people who are in no earlier release."""
    if session.flow.earlier or session.owner is None or session.replayed:
        return
    released = session.owner.has_release
    if not released and not session.owner.has_interrupted(session.resumes_publication):
        return
    if Earlier(session.owner.path.parent).has_others_alone(table):
        session.events.log(f"the earlier releases are of other people, by {', '.join(table.unit_columns)}")
        return
    before = (
        "this flow has been released before"
        if released
        else "the publication of another draw of this flow was interrupted, and its files may be out"
    )
    session.warn(
        f"{before}: an attacker with two draws of one table can intersect them; publish one of them only"
    )


def _draw(session: Session, anonymization: Anonymization, arrays: Arrays) -> Release:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", SeedWarning)  # the session has reported it
        release = publish(anonymization, seed=session.seed, arrays=arrays)
    for warning in caught:
        session.warn(str(warning.message))
    # attackers and the card look at all rows of a small table, as whoever receives the file has them
    return replace(release, frame=plain_frame(release.frame)) if anonymization.table.n <= MOST else release


def attack(session: Session, table: Table, release: Release, result: RunResult) -> pd.DataFrame | None:
    """Try the attackers that a flow names against the release of a run.

    Raises
    ------
    Cancelled
        If the run was cancelled.
    """
    if not is_attacked(session.flow, table.n):
        return None

    def work() -> pd.DataFrame | None:
        anonymization = result.anonymization
        if table.n <= MOST or anonymization is None or release.truth is None:
            return attacked(
                session.flow, session.fingerprint, table, release, result.k, session.seed, anonymization
            )
        part = part_of_release(anonymization, release, session.seed, session.workers)
        named = None
        proof = release.certificate
        if table.unit is not None and proof is not None and proof.complete:
            suppressed = anonymization.suppressed
            shows_hidden = int(suppressed.sum()) >= result.k * table.unit_rows
            at = np.arange(table.n) if shows_hidden else np.flatnonzero(~suppressed)
            counts = proof.candidates.counts(table.n)[at]
            named = people_named(table, 1.0 / np.maximum(counts, 1), at, proof.candidates, result.k)
        sizes, earlier = listed_sizes(result, table.unit_rows), session.flow.earlier
        whole = WholeRelease(table, release, sizes, result.k, named, earlier)
        attacks = attacked_part(
            session.flow, session.fingerprint, part, result.guarantee, whole, session.seed
        )
        left_out = untried(session.flow, session.fingerprint, attacks) if part is None else []
        if left_out:
            session.warn(
                f"attackers {', '.join(left_out)}: not tried, because matches link the rows with each other, and no more than {MOST:,} can be looked at "
                "together; smaller partitions can be attacked"
            )
        return attacks

    return session.step("attack", work, result.number)


def with_card(session: Session, table: Table, report: RunReport, result: RunResult) -> RunReport:
    """Return a report with its release card, and, if it is for a reviewer, with answers to the three questions.

    Parameters
    ----------
    session : Session
    table : Table
        The originals.
    report : RunReport
        With its release, where that is in memory, and what attackers were tried.
    result : RunResult
        The run that is published.

    Raises
    ------
    Cancelled
        If the run was cancelled.
    DataError
        If a file of the flow has changed since it was read.
    """
    form = session.flow.spec.publish.report
    if form is None:
        return report
    cards: list[ReleaseCard] = []
    session.step(
        "card",
        lambda: cards.extend(
            cards_of_result(result, table, report.release, report.attacks, [form.limit], session.seed)
        ),
        result.number,
    )
    report = replace(report, card=cards[0])
    if form.threshold is not None:
        report = _with_threshold(report, result, form.threshold)
    return with_answers(session, report, result) if form.template == "ema" and report.ok else report


def _with_threshold(report: RunReport, result: RunResult, threshold: float) -> RunReport:
    """Return a report with one more check: what the card judges by the threshold was measured, and is below it."""
    assert report.card is not None
    lines = [line for line in report.card.lines if line.name in ("measured", "linkable columns")]
    missed = [line.says for line in lines if line.verdict != PASSED]
    finding = Finding(
        "threshold",
        not missed,
        detail=" ".join([*missed, *([_WHAT_PASSES.format(threshold)] if missed else [])])
        or f"the largest probability of any person is below {threshold}",
        parameters={"threshold": threshold},
    )
    judged = replace(result, findings=(*result.findings, finding))
    results = tuple(judged if other.number == result.number else other for other in report.results)
    return replace(report, results=results)


_WHAT_PASSES = "What passes is tried by anonflow search FLOW --output PICKED, of this flow without its k and with target: {{risk: {:g}}}."


def cards_of_result(
    result: RunResult,
    table: Table,
    release: Release | None,
    attacks: pd.DataFrame | None,
    thresholds: Sequence[float | None],
    seed: int,
    prices: bool = True,
) -> list[ReleaseCard]:
    """Return the cards of a published run, one for each threshold; for large tables without the lines that need all rows.

    Parameters
    ----------
    result : RunResult
    table : Table
        The originals.
    release : Release or None
        Where it is in memory.
    attacks : pandas.DataFrame or None
        What attackers were tried already.
    thresholds : sequence of float or None
    seed : int
        128 bits.
    prices : bool
        Whether remedies of lines that fail are tried.

    Raises
    ------
    DataError
        If the consistency graph is too large.
    """
    few = result.records <= MOST
    return cards_of(
        result.anonymization if few else None, release if few else None, result.findings, attacks, thresholds, seed, prices,
        k=result.k, gcp=result.measures.get("gcp"), suppressed=result.suppressed, guarantee=result.guarantee,
        listed=result.listed, published_gcp=result.published_gcp, table=table,
    )  # fmt: skip


def with_answers(session: Session, report: RunReport, result: RunResult) -> RunReport:
    """Return a report with answers to the three questions, or with the reason why there are none.

    Raises
    ------
    Cancelled
        If the run was cancelled.
    """
    anonymization, release = result.anonymization, report.release
    assert anonymization is not None
    assert release is not None
    try:
        session.events.check()
        session.events.log("attacking people who are held out, and people who are released")
        answers: list[Answer] = []
        session.timed("hold out", lambda: answers.extend(held_out(anonymization, release, session.seed)))
    except ParameterError as error:
        return replace(report, unanswered=error.message)
    return replace(report, answers=tuple(answers))


def page_of(flow: Flow, table: Table, report: RunReport, seconds: float) -> str:
    """Return the report of a flow as an HTML page, in the form that the flow names.

    Parameters
    ----------
    flow : Flow
    table : Table
    report : RunReport
    seconds : float
        What the run took.
    """
    form, picked = flow.spec.publish.report, flow.published
    if form is None or form.template == "plain" or picked is None:
        return render(flow, table, report, seconds)
    return review(flow, table, report, report.results[picked.number])


def listed_sizes(result: RunResult, unit_rows: int = 1) -> list[tuple[int, int]]:
    """Return how many people are listed by how many rows; of fewer than k suppressed units nothing is published."""
    counts, suppressed = dict(result.sizes), result.suppressed
    if counts and suppressed:
        size = 1 if result.kind == "matches" else suppressed
        counts[size] = counts.get(size, 0) - suppressed
        if suppressed >= result.k * unit_rows:
            counts[suppressed] = counts.get(suppressed, 0) + suppressed
    return sorted((rows, people) for rows, people in counts.items() if people > 0)


def write_all(session: Session, table: Table, report: RunReport, release: Release | None) -> RunReport:
    """Write the owner's files, then the published ones: each appears completely, by rename.

    The large files, the release and its certificate, are written under other names first. Then the files of the flow
    are read once more: if one has changed, nothing gets its name.

    Parameters
    ----------
    session : Session
    table : Table
    report : RunReport
    release : Release or None
        The release; None if there was no draw.

    Returns
    -------
    RunReport
        With the published files, and the total seconds.

    Raises
    ------
    DataError, AnonflowError
        If something cannot be written, or a file of the flow is no longer what was read.
    Cancelled
        If the run was cancelled.
    """
    flow = session.flow
    published: list[Path | str] = []
    html, sheets = None, None
    seconds = time.perf_counter() - session.clock
    if flow.report_path is not None:
        html = page_of(flow, table, report, seconds)
        if flow.pdf_path is not None:
            sheets = pdf.printed(html)
    marks: list[Path] = []
    keep = functools.partial(_keep_owners, session, table, release, marks)
    if flow.table_path is not None and release is not None:
        target = str(flow.targets[0])
        named = functools.partial(_deliver_without_description, flow.table_path, target, marks.clear)
        try:
            write = functools.partial(_write_and_hash, session, table, release)
            written, *descriptions = write_described(flow.table_target, write, keep, named)
            published.append(shown_address(target) if is_address(target) else written)
            published += [
                _delivered(path, beside(target, path.name) if is_address(target) else None)
                for path in descriptions
            ]
        finally:
            for file in marks:  # what was not published is not remembered
                file.unlink(missing_ok=True)
    else:
        keep()
    if flow.report_path is not None and html is not None:
        write_whole(
            flow.report_path,
            lambda path: path.write_text(html, encoding="utf-8", newline="\n"),
            make_folders=True,
        )
        published.append(_delivered(flow.report_path, flow.targets[1]))
    if flow.pdf_path is not None and sheets is not None:
        write_whole(flow.pdf_path, lambda path: path.write_bytes(sheets), make_folders=True)
        published.append(_delivered(flow.pdf_path, flow.targets[2]))
    return replace(
        report,
        published=tuple(published),
        seconds=time.perf_counter() - session.clock,
        warnings=tuple(session.warnings),
    )


def write_record(session: Session, report: RunReport) -> None:
    """Write the owner's record of a run that is published.

    Raises
    ------
    DataError, AnonflowError
        If it cannot be written.
    """
    if session.owner is None:
        return
    session.owner.write_record(
        record.of_run(
            session.flow,
            session.owner,
            session.fingerprint,
            report,
            began=session.began,
            steps=session.seconds,
            client_steps=session.client_seconds,
            scheduler=session.scheduler,
            workers=session.workers,
            choices=session.choices,
            memory=session.memory,
        )
    )


def _write_and_hash(session: Session, table: Table, release: Release, path: Path) -> ReleaseMetadata | None:
    """Write the published table, and hash its people meanwhile, whose marks are stored when it is written."""
    works: list[Callable[[], Any]] = [functools.partial(write_table, release.frame, path, release.about)]
    if session.owner is not None and not session.replayed and FEW_ROWS < table.n <= MOST_PEOPLE:
        works.append(functools.partial(Earlier(session.owner.path.parent).marks_of, table))
    return in_threads(lambda work: work(), works)[0]


def _delivered(file: Path, named: str | None) -> Path | str:
    """Return the published place of a written file: its path, or the address in the flow."""
    if named is None or not is_address(named):
        return file
    uploaded(file, named)
    return shown_address(named)


def _deliver_without_description(table: Path, target: str, named: Callable[[], None]) -> None:
    """Upload a table that has no description yet, if it is published to an address; call `named` when it has its name there.

    The description of an earlier table goes first, as :func:`anonflow.release.tables.write_described` has it in a folder.
    """
    if not is_address(target):
        named()
        return
    place = metadata_path(table)

    def withdraw() -> None:
        if place is None:
            return
        if place.exists():  # a package, which has other tables
            uploaded(place, beside(target, place.name))
        else:
            removed(beside(target, place.name))

    uploaded(table, target, withdraw, named)


def _keep_owners(session: Session, table: Table, release: Release | None, marks: list[Path]) -> None:
    """Write the owner's files; the flow's files are compared when only the renames are left.

    The new file with marks of people is added to `marks`; releases that were stored meanwhile count as well.
    """
    owner = session.owner
    if owner is None:
        session.before_publishing()
        return

    def check(is_same: bool) -> None:
        session.before_publishing()
        # with a time limit, or earlier releases, a run that is resumed may make another release
        again = session.replayed or (is_same and session.resumes_publication and not owner.has_record)
        if not again or not owner.has_seed(session.seed):
            owner.set_earlier_aside()
        owner.write_seed(session.seed)  # before the certificate: a later run sees whose an interrupted one is

    owner.make()
    if release is None or release.certificate is None:
        check(False)
    else:
        owner.write_certificate(release.certificate, check)
    if release is not None and not session.replayed:
        earlier, folders = Earlier(owner.path.parent), session.flow.earlier or None
        people = None if folders is None else earlier.check_left(table, release, folders)
        file, missed = earlier.keep_and_check(table, release, session.releases, people, folders)
        marks += [] if file is None else [file]
        if missed is not None:
            session.warn(missed.sentence())
