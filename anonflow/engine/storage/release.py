"""The release of a table in pieces: drawn and verified batch by batch, distributed to buckets, shuffled and written there.

It is never completely in memory. This is the client's part; its tasks are in :mod:`batch_release` and :mod:`shuffle_buckets`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from anonflow.algorithms.seeds import derived_seed
from anonflow.criteria.diversity import DiversityCriterion, of_one_class
from anonflow.criteria.request import CriterionRequest as Criterion
from anonflow.criteria.request import read_criteria, with_patterns
from anonflow.criteria.verification import Finding
from anonflow.criteria.verify import verify
from anonflow.engine.context import Session
from anonflow.engine.execution.batches import Place, Tally, folded
from anonflow.engine.execution.plan import RunPlan
from anonflow.engine.execution.result import RunResult
from anonflow.engine.execution.schedulers import Call, Executor
from anonflow.engine.execution.totals import Totals
from anonflow.engine.publish import listed_sizes
from anonflow.engine.report.attacks import MOST, AttackedPart, attacked, attacked_part, is_attacked, sampled
from anonflow.engine.storage.arrays import mapped
from anonflow.engine.storage.batch_release import (
    AttackedRows,
    BatchDrawn,
    ReleaseContext,
    VerifiedRows,
    attack_batch,
    check_batch,
    covering_batch,
    deal_rows,
    draw_batch,
    draw_hidden,
    named_batch,
    stored_batches,
)
from anonflow.engine.storage.mapped_columns import MappedColumns
from anonflow.engine.storage.shuffle_buckets import Bucket, Buckets, shuffle_bucket
from anonflow.generalization import Generalization
from anonflow.release import RandomWords, Release
from anonflow.release.columns import linked_in_sample, told_by_values
from anonflow.release.draw import bucket_count
from anonflow.release.randomness import seed_of_table
from anonflow.risk.attacker import Success
from anonflow.risk.attackers.people import people_named
from anonflow.table import Records, Table
from anonflow.table.frame import WholeOwners
from anonflow.table.identification.linkage import Candidates
from anonflow.table.row_marks import KEY_LENGTH, Content, joint_codes
from anonflow.table.spreadsheets import formula_cells, formula_sentence

if TYPE_CHECKING:
    from anonflow.engine.storage.batch_files import InFiles

__all__ = ["check_made", "draw"]


def draw(
    session: Session, executor: Executor, run_plan: RunPlan, totals: Totals, result: RunResult, table: Table,
    *, place: InFiles, hidden: Sequence[int], others: MappedColumns, units: str | None = None,
) -> tuple[tuple[Finding, ...], Buckets]:  # fmt: skip
    """Draw and verify batch by batch, distribute the rows to buckets, and shuffle these.

    Parameters
    ----------
    session : Session
    executor : Executor
    run_plan : RunPlan
    totals : Totals
    result : RunResult
    table : Table
    place : InFiles
        Where the results of batches are.
    hidden : sequence of int
        Batches with suppressed records.
    others : MappedColumns
    units : str, optional
        The file that says whose each position is, where people have several rows.

    Returns
    -------
    findings : tuple of Finding
    buckets : Buckets
        Shuffled, if every check passed.

    Raises
    ------
    AnonflowError
        If a draw or a file fails.
    """
    context = _context(
        session,
        totals,
        result,
        table,
        place,
        others=others,
        units=units,
        options=run_plan.run.anonymize.options,
    )
    offsets, tallies = session.step(
        "draw", lambda: _draw(session, executor, run_plan, context, place, hidden), result.number
    )
    findings = tuple(tally.finding() for tally in tallies)
    sample = _sample(session, executor, run_plan, context, table, place)
    if sample is not None:
        hidden_rows = sample.suppressed & context.blanks
        for sentence in linked_in_sample(sample.table, sample.release, context.k, hidden_rows):
            session.warn(sentence)
    buckets: list[Bucket] = []
    if all(finding.holds for finding in findings):
        calls = [Call(shuffle_bucket, (b,), "shuffle") for b in range(bucket_count(context.n))]
        buckets = session.step("shuffle", lambda: executor.all(calls, context, offsets), result.number)
        for bucket in buckets:
            session.used(bucket.memory)
        if session.flow.table_path is not None:
            names = formula_cells(pd.DataFrame(columns=list(context.columns)))
            formulas = names + sum(bucket.formulas for bucket in buckets)
            of_formulas = formula_sentence(formulas, session.flow.table_path)
            if of_formulas:
                session.warn(of_formulas)

    def attacks() -> pd.DataFrame | None:
        if not is_attacked(session.flow, context.n):
            return None
        return session.step(
            "attack",
            lambda: _attacked(session, executor, run_plan, context, result, place, sample),
            result.number,
        )

    return findings, Buckets(context, totals.kind, buckets, len(offsets), hidden, attacks)


def _attacked(
    session: Session,
    executor: Executor,
    run_plan: RunPlan,
    context: ReleaseContext,
    result: RunResult,
    place: Place,
    sample: _Sample | None,
) -> pd.DataFrame | None:
    """Run the attackers on all rows, or on a sample of partitions; without a sample, only those that need none."""
    part = None
    if sample is not None:
        if sample.whole:
            return attacked(
                session.flow, session.fingerprint, sample.table, sample.release, context.k, session.seed
            )
        elsewhere = np.zeros(sample.table.n, np.int64)
        calls = _sample_calls(session, run_plan, context, place, covering_batch, True, sample.table.codes)
        for _, count in executor.answers(calls, context):
            elsewhere += count
        part = AttackedPart(sample.table, sample.release, elsewhere)
    people = _people(session, executor, run_plan, context, place)
    return attacked_part(
        session.flow,
        session.fingerprint,
        part,
        result.guarantee,
        listed_sizes(result, context.unit_rows),
        result.k,
        session.seed,
        people,
    )


def _people(
    session: Session, executor: Executor, run_plan: RunPlan, context: ReleaseContext, place: Place
) -> Success | None:
    """Return the result of the attacker who looks for people by all their rows; None without units or lists."""
    if context.units is None:
        return None
    calls = (
        Call(named_batch, (stored,), "attack", stored.batch.number)
        for stored in stored_batches(session, run_plan, context.n, place)
    )
    chance = np.zeros(context.n)
    for _, (positions, own) in executor.answers(calls, context):
        if own is None:
            return None
        chance[positions] = own
    at = np.flatnonzero(~np.isnan(chance))
    owners = np.array(mapped(context.units)[:, at])
    return people_named(chance[at], owners[0], owners[1] if len(owners) > 1 else None, context.k)


def _sample_calls(
    session: Session,
    run_plan: RunPlan,
    context: ReleaseContext,
    place: Place,
    function: Callable[..., Any],
    every: bool,
    *more: Any,
) -> Iterator[Call]:
    """Yield calls with the partitions of the sample that each batch has; of `every` batch, or of those that have some."""
    picked = sampled(len(run_plan.cuts), context.n, session.seed)
    for stored in stored_batches(session, run_plan, context.n, place):
        batch = stored.batch
        own = picked[(picked >= batch.first) & (picked < batch.first + len(batch.bounds))]
        if every or len(own):
            yield Call(function, (stored, own, *more), "attack", batch.number)


@dataclass(frozen=True, eq=False)
class _Sample:
    """Published rows in memory, in random order.

    Attributes
    ----------
    table : Table
        Their m originals.
    release : Release
        With the truth.
    suppressed : numpy.ndarray, shape (m,), bool
        Of the rows.
    whole : bool
        Whether they are all rows, as of a small table; otherwise some partitions, without suppressed records.
    """

    table: Table
    release: Release
    suppressed: np.ndarray
    whole: bool


def _sample(
    session: Session,
    executor: Executor,
    run_plan: RunPlan,
    context: ReleaseContext,
    table: Table,
    place: Place,
) -> _Sample | None:
    """Return all published rows, or those of some partitions; None if a partition is too large."""
    whole = context.n <= MOST
    if whole:
        calls: Iterator[Call] = (
            Call(attack_batch, (stored, None), "attack", stored.batch.number)
            for stored in stored_batches(session, run_plan, context.n, place)
        )
    elif int(run_plan.cuts.lengths[0][-1]) > MOST:
        return None
    else:
        calls = _sample_calls(session, run_plan, context, place, attack_batch, False)
    by_batch = dict(executor.answers(calls, context))
    parts = [by_batch[number] for number in sorted(by_batch) if len(by_batch[number].shown)]
    return _put_together(context, table, parts, session.seed, whole) if parts else None


def _put_together(
    context: ReleaseContext, table: Table, parts: Sequence[AttackedRows], seed: int, whole: bool
) -> _Sample:
    """Return the rows of batches as a table and its release, in random order."""
    starts = np.cumsum([0, *(len(each.shown) for each in parts)])[:-1].tolist()
    at = np.concatenate([each.positions for each in parts])
    few = table.take(at)
    if table.unit is not None and not whole:
        few.whole_owners = WholeOwners.of(table.unit, table.household, at)
    shown = pd.concat([each.shown for each in parts], ignore_index=True)
    truth = np.concatenate([each.origin + start for each, start in zip(parts, starts, strict=True)])
    suppressed = np.concatenate([each.suppressed for each in parts])
    order = np.random.default_rng(derived_seed(seed, "attacked rows")).permutation(len(truth))
    listed = [each.candidates for each in parts if each.candidates is not None]
    proof = None
    if listed or whole:
        candidates = Candidates.joined(listed, starts) if listed else Candidates.of_nobody(len(truth))
        candidates = candidates.with_class(suppressed, np.flatnonzero(suppressed))
        proof = context.certificate(candidates.take(order))
    release = Release(shown.iloc[order].reset_index(drop=True), proof, truth[order])
    return _Sample(few, release, suppressed[order], whole)


def _context(
    session: Session, totals: Totals, result: RunResult, table: Table, place: InFiles,
    *, others: MappedColumns, units: str | None, options: Mapping[str, Any],
) -> ReleaseContext:  # fmt: skip
    for sentence in told_by_values(table):
        session.warn(sentence)
    weak = totals.texts.get("warning")
    if weak:
        session.warn(weak)
    blanks = 0 < totals.suppressed < result.k * table.unit_rows
    kinds = {name: _published_kind(table.frame[name], blanks) for name in table.other_columns}
    names = [str(name) for name in table.frame.columns]
    seed = seed_of_table(session.seed, Content.of(table.frame, names).to_bytes())
    key = RandomWords(seed).lanes("marks", 0, 2 * KEY_LENGTH // 8).tobytes().hex()[:KEY_LENGTH]
    criteria = tuple(with_patterns(read_criteria(session.flow.criteria, totals.guarantee), options))
    return ReleaseContext(
        table.schema, table.domains, tuple(names), kinds, result.k, totals.guarantee, result.algorithm,
        criteria, table.n, totals.suppressed, seed, key, place.spill, others, _overall(table, criteria), units=units,
        unit_rows=table.unit_rows,
    )  # fmt: skip


def _published_kind(cells: pd.Series, hidden: bool) -> str:
    """Return the published type of another column: int, float, bool or text, as in a table that is read at once.

    Parameters
    ----------
    cells : pandas.Series, n cells
    hidden : bool
        Whether some are published as ``*``.
    """
    if hidden or cells.isna().all() or isinstance(cells.dtype, pd.api.extensions.ExtensionDtype):
        return "text"
    kind = cells.dtype.kind
    if kind == "u" and int(cells.max()) >= 1 << 63:
        return "text"
    return {"b": "bool", "i": "int", "u": "int", "f": "float"}.get(kind, "text")


def _overall(table: Table, criteria: Sequence[Criterion]) -> dict[str, dict[str, int]]:
    """Return column whose diversity is asked for -> how often the table has each text, as the verifier reads cells."""
    names: list[str] = []
    for criterion in criteria:
        if criterion.declared.of_a_column:
            column = criterion.parameters.get("column")
            names += table.sensitive if column is None else [str(column)]
    overall = {}
    for name in dict.fromkeys(names):
        if name in table.other_columns:
            texts, codes, _ = joint_codes(table.frame[name], table.frame[name].iloc[:0])
            overall[name] = dict(zip(texts, np.bincount(codes, minlength=len(texts)).tolist(), strict=True))
    return overall


def _draw(
    session: Session,
    executor: Executor,
    run_plan: RunPlan,
    context: ReleaseContext,
    place: Place,
    hidden: Sequence[int],
) -> tuple[list[int], tuple[Tally, ...]]:
    """Return the number of each batch's first class, and the findings."""
    first = [Call(deal_rows, (), "deal")]
    if hidden:
        first.append(Call(draw_hidden, (hidden,), "draw"))
    executor.all(first, context)
    calls = (
        Call(draw_batch, (stored,), "draw-verify", stored.batch.number)
        for stored in stored_batches(session, run_plan, context.n, place)
    )
    drawn: dict[int, BatchDrawn] = {}
    for number, done in executor.answers(calls, context):
        session.used(done.memory)
        drawn[number] = done
    in_order = [drawn[number] for number in range(len(drawn))]
    return [0, *accumulate(done.lists for done in in_order)][:-1], _with_hidden(context, in_order)


def check_made(
    session: Session, executor: Executor, run_plan: RunPlan, totals: Totals, table: Table, place: InFiles,
    criteria: Sequence[Criterion], *, others: MappedColumns, units: str | None = None,
) -> tuple[Finding, ...]:  # fmt: skip
    """Check criteria that need more than a partition's quasi-identifiers, for a run without a draw.

    Parameters
    ----------
    session : Session
    executor : Executor
    run_plan : RunPlan
    totals : Totals
    table : Table
    place : InFiles
        Where the results of batches are.
    criteria : sequence of CriterionRequest
    others : MappedColumns
    units : str, optional
        The file that says whose each position is, where people have several rows.

    Raises
    ------
    ParameterError, DataError
        As :func:`anonflow.verify`.
    AnonflowError
        If results are gone.
    """
    kinds = dict.fromkeys(table.other_columns, "")
    context = ReleaseContext(
        table.schema, table.domains, tuple(table.frame.columns), kinds, run_plan.run.anonymize.k, totals.guarantee,
        run_plan.run.anonymize.algorithm, tuple(criteria), table.n, totals.suppressed, b"", "", place.spill, others,
        _overall(table, criteria), False, units=units, unit_rows=table.unit_rows,
    )  # fmt: skip
    calls = (
        Call(check_batch, (stored,), "verify", stored.batch.number)
        for stored in stored_batches(session, run_plan, context.n, place)
    )
    checked = dict(executor.answers(calls, context))
    in_order = [checked[number] for number in range(len(checked))]
    for done in in_order:
        session.used(done.memory)
    return tuple(tally.finding() for tally in _with_hidden(context, in_order))


def _with_hidden(context: ReleaseContext, batches: Sequence[BatchDrawn]) -> tuple[Tally, ...]:
    """Return the batches' tallies with those for the suppressed records, which are one class of the whole table."""
    tallies = folded(done.findings for done in batches)
    if not context.suppressed:
        return tallies
    shown: dict[str, dict[str, int]] = {name: {} for name in context.overall}
    for done in batches:
        for name, counts in done.hidden.items():
            for text, count in counts.items():
                shown[name][text] = shown[name].get(text, 0) + count
    sensitive = [name for name in context.columns if context.schema[name].role == "sensitive"]
    findings: list[Finding | None] = []
    for criterion in context.criteria:
        declared = criterion.declared
        if isinstance(declared, DiversityCriterion):
            column = criterion.parameters.get("column")
            findings += [
                of_one_class(declared, criterion.parameters, name, shown[name], context.overall[name])
                if context.suppressed >= context.enough
                else None
                for name in (sensitive if column is None else [str(column)])
            ]
        elif declared.of_units:
            findings.append(_units_of_suppressed(context, batches))
        else:
            alone = declared.each_row or not tallies
            findings.append(_of_suppressed(context, criterion) if alone else None)
    if context.units is not None and not any(criterion.declared.of_units for criterion in context.criteria):
        findings.append(_units_of_suppressed(context, batches))  # the verifier checks it without a request
    if not tallies:  # there are no other records
        return tuple(Tally.of(own) for own in findings if own is not None)
    return tuple(
        tally if own is None else tally.then(Tally.of(own))
        for tally, own in zip(tallies, findings, strict=True)
    )


def _units_of_suppressed(context: ReleaseContext, batches: Sequence[BatchDrawn]) -> Finding | None:
    """Return whether no unit has more than 1/k of the suppressed records; None if they are not published."""
    if context.units is None or context.suppressed < context.enough:
        return None
    most = int(np.bincount(np.concatenate([done.hidden_units for done in batches])).max())
    holds = most * context.k <= context.suppressed
    return Finding("units", holds, 0 if holds else context.suppressed, parameters={"k": context.k})


def _of_suppressed(context: ReleaseContext, criterion: Criterion) -> Finding:
    """Return a finding for the suppressed records' quasi-identifiers: all are equal, so k of them are enough."""
    few = min(context.suppressed, context.k)
    records = Records(context.domains, np.zeros((few, len(context.domains)), np.int32))
    everyone = np.ones(few, bool)
    generalization = Generalization.of(records).with_suppressed(everyone)
    nobody = VerifiedRows(generalization, everyone, context.k, context.guarantee)
    table = Table.coded(records, context.schema, (), {})
    (finding,) = verify(table, nobody, [criterion], context.k).findings
    return replace(finding, failed=context.suppressed if finding.holds is False else 0)
