"""A run's partitions put together: one anonymization, what was found, what it costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from anonflow import utility
from anonflow.algorithms.anonymize import assemble
from anonflow.algorithms.diversity.diversify import check_diversity, diversify
from anonflow.algorithms.method import Outcome
from anonflow.algorithms.registry import algorithm_named
from anonflow.algorithms.view import sizes_of
from anonflow.criteria.request import DIVERSITY, read_criteria
from anonflow.criteria.verification import Finding
from anonflow.criteria.verify import verify
from anonflow.engine.execution.plan import Plan, RunPlan
from anonflow.engine.execution.result import ColumnLoss, RunResult
from anonflow.engine.execution.tasks import OF_THE_WHOLE, Failed, Matched, Measured, PartitionResult, measure
from anonflow.engine.flows.flow import Flow, Run
from anonflow.errors import InfeasibleError
from anonflow.generalization import Generalization
from anonflow.loss import measure_named, record_costs
from anonflow.table import Domain, Table

__all__ = [
    "column_losses",
    "combine",
    "infeasible",
    "merged",
    "refuse_early",
    "spread_of",
    "with_findings",
]


def combine(
    flow: Flow, table: Table, plan: Plan, one: RunPlan, parts: list[PartitionResult], entropy: int
) -> RunResult:
    """Put a run's partitions together.

    Parameters
    ----------
    flow : Flow
    table : Table
        n records.
    plan : Plan
    one : RunPlan
    parts : list of PartitionResult
        In the order of the run's cuts.
    entropy : int
        The flow's seed, for the step diversify.

    Returns
    -------
    RunResult
        One without a result, if a partition has none.

    Raises
    ------
    ParameterError
        If a measure or criterion cannot be used with this table.
    """
    matched = []
    for part in parts:
        if isinstance(part.matched, Failed):
            return infeasible(one.run, part.matched.message, table.n)
        matched.append(part.matched)
    spec = one.run.anonymize
    method = algorithm_named(spec.algorithm)
    parameters = {
        "loss": measure_named(spec.loss),
        "partition_size": spec.method.partition_size(one.run.partition.cut, spec.k, spec.options),
        "order": one.run.partition.order,
        **spec.options,
        **({} if spec.boundaries else {"boundaries": False}),
        **({} if one.run.partition.budget is None else {"budget": one.run.partition.budget}),
    }
    outcomes = [each.outcome for each in matched]
    try:
        anonymization = assemble(table, method, spec.k, plan.index(one), outcomes, parameters, plan.left(one))
    except InfeasibleError as error:
        return infeasible(one.run, error.message, table.n)
    findings = merged([part.findings for part in parts])
    seconds = sum(each.seconds for each in matched)
    columns = _columns(table, parts)
    more = flow.spec.steps.diversify
    if more is not None:
        begin = time.perf_counter()
        try:
            anonymization = diversify(anonymization, more.criterion, **more.settings, seed=entropy)
        except InfeasibleError as error:
            return infeasible(one.run, error.message, table.n)
        seconds += time.perf_counter() - begin
        made = Outcome(anonymization.generalization, suppressed=anonymization.suppressed)
        columns = _columns(table, [PartitionResult(matched[0], (), _measured(table, made))])
    if not flow.draws(one.run):
        asked = read_criteria(flow.criteria, anonymization.guarantee)
        whole = [each for each in asked if more is not None or each.name in OF_THE_WHOLE]
        if more is not None:
            # everything again; what a k-regular result shows is known after the draw only
            drawn = anonymization.matches is not None
            whole = [each for each in whole if not (drawn and each.name in DIVERSITY)]
            findings = ()
        if whole:
            findings += verify(table, anonymization, whole, spec.k).findings
    measures = dict.fromkeys(("gcp", *flow.spec.steps.measure, "usefulness"))
    return RunResult(
        one.run.number,
        one.run.name,
        method.name,
        anonymization.guarantee,
        spec.k,
        table.n,
        measures=utility.measure(table, anonymization, list(measures)),
        suppressed=int(anonymization.suppressed.sum()),
        seconds=seconds,
        findings=findings,
        columns=columns,
        sizes=sizes_of(anonymization),
        spread=tuple(enumerate(spread_of(anonymization.generalization).tolist())),
        values=dict(one.run.values),
        anonymization=anonymization,
    )


def refuse_early(flow: Flow, table: Table) -> None:
    """Refuse a diversity that not even the whole table has, before any work.

    Raises
    ------
    InfeasibleError
        With the largest feasible value.
    ParameterError
        If the column is none of the table's.
    """
    more = flow.spec.steps.diversify
    if more is not None:
        check_diversity(table, more.criterion, more.column, **more.needed)


def infeasible(run: Run, problem: str, records: int) -> RunResult:
    """A run without a result, and why."""
    method = algorithm_named(run.anonymize.algorithm)
    return RunResult(
        run.number,
        run.name,
        method.name,
        method.guarantee,
        run.anonymize.k,
        records,
        values=dict(run.values),
        problem=problem,
    )


def _measured(table: Table, outcome: Outcome) -> Measured:
    """The information loss of the whole table."""
    found = measure(table.records, Matched(outcome, 0.0))
    assert isinstance(found, Measured)
    return found


def merged(findings: Sequence[tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """What was found in the partitions, as one finding for each criterion."""
    merged = []
    for same in zip(*findings, strict=True):
        failed = [finding for finding in same if not finding.holds]
        merged.append(
            Finding(
                same[0].criterion,
                not failed,
                sum(finding.failed for finding in failed),
                failed[0].side if failed else "",
                (),
                f"{len(same) - len(failed)} of {len(same)} partitions",
                same[0].parameters,
            )
        )
    return tuple(merged)


def with_findings(result: RunResult, findings: tuple[Finding, ...]) -> RunResult:
    """The same result with what was found in the release, which replaces what the partitions said."""
    failed = tuple(finding for finding in result.findings if not finding.holds)
    return replace(result, findings=(*failed, *findings))


def _columns(table: Table, parts: list[PartitionResult]) -> tuple[ColumnLoss, ...]:
    """Mean loss of each published column, over all records: also those that are in no partition."""
    return column_losses(
        table.domains, [part.measured for part in parts if part.measured is not None], table.n
    )


def column_losses(domains: Sequence[Domain], measured: Sequence[Measured], n: int) -> tuple[ColumnLoss, ...]:
    """Mean loss of each published column over n records; positions of a code are one column."""
    costs, exact, whole = (
        np.sum([getattr(one, what) for one in measured], axis=0) / n for what in ("costs", "exact", "whole")
    )
    found = []
    for name in dict.fromkeys(domain.column for domain in domains):
        at = [a for a, domain in enumerate(domains) if domain.column == name]
        found.append(ColumnLoss(name, *(float(np.mean(values[at])) for values in (costs, exact, whole))))
    return tuple(found)


def spread_of(made: Generalization) -> np.ndarray:
    """How many generalized records lose 0, 1, 2, ... percent, up to the highest; shape (percents,), int64."""
    return np.bincount(np.floor(100 * record_costs(made, "ncp") + 1e-9).astype(np.int64))
