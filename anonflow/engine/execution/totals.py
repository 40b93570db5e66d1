"""The sums over a run's batches: the client's knowledge of a run, for any number of partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from anonflow import utility
from anonflow.criteria.verification import Finding
from anonflow.engine.execution.batches import Batch, BatchDone, Summary, Tally, added, folded
from anonflow.engine.execution.result import ColumnLoss, RunResult
from anonflow.engine.execution.tasks import Measured
from anonflow.engine.flows.flow import Flow, Run
from anonflow.generalization import Layout
from anonflow.loss.measure import relative
from anonflow.table import Domain, Table
from anonflow.utility.measures import MeasureRequest


class Totals:
    """The sums over the batches of a run, in their order: bits do not depend on which batch was finished first.

    Parameters
    ----------
    run : Run
    ready : MeasureRequest
        The measures.

    Attributes
    ----------
    resumed : int
        Partitions that an earlier run had left.
    """

    def __init__(self, run: Run, ready: MeasureRequest) -> None:
        self.run = run
        self.ready = ready
        self.rows = self.resumed = self.suppressed = 0
        self.seconds = 0.0
        self.steps: dict[str, float] = {}
        self.findings: tuple[Tally, ...] = ()
        self.kind = "none"
        self.sizes = self.spread = np.zeros(0, np.int64)
        self._measured: Measured | None = None
        self._measures: dict[str, list[Any]] = {}
        self._next = 0
        self._waiting: dict[int, tuple[Batch, BatchDone]] = {}

    def add(self, batch: Batch, result: BatchDone) -> None:
        """Add a batch. Batches that arrive early wait: at most as many as run at the same time."""
        self._waiting[batch.number] = batch, result
        while self._next in self._waiting:
            self._add(*self._waiting.pop(self._next))
            self._next += 1

    def _add(self, batch: Batch, result: BatchDone) -> None:
        self.rows += batch.stop - batch.start
        self.resumed += result.resumed
        self.seconds += float(result.seconds.sum())
        for step, seconds in result.steps.items():
            self.steps[step] = self.steps.get(step, 0.0) + seconds
        summary = result.summary
        self.findings = folded((self.findings, result.findings))
        self.kind = summary.kind
        self.suppressed += summary.suppressed
        self.sizes, self.spread = _sum(self.sizes, summary.sizes), _sum(self.spread, summary.spread)
        self._measured = (
            result.measured if self._measured is None else added([self._measured, result.measured])
        )
        for name, chunks in summary.measures.items():
            self._measures.setdefault(name, []).extend(chunks)

    @property
    def measured(self) -> Measured:
        """The information loss."""
        assert self._measured is not None
        return self._measured

    @property
    def summary(self) -> Summary:
        """All of it; what the batches add to measures of classes is elsewhere."""
        return Summary(self._measures, {}, self.sizes, self.spread, self.suppressed, self.kind)


def measures_of_parts(flow: Flow, table: Table, k: int) -> MeasureRequest:
    """Return the measures of a flow that parts of its table have a share in."""
    names = (*utility.measures_by_record(), *utility.measures_by_class())
    measures = [{name: options} for name, options in flow.measures.items() if name in names]
    return utility.asked(table.records, measures, k)


def result_of(
    totals: Totals, domains: Sequence[Domain], n: int, sums: Sequence[Mapping[str, tuple[float, ...]]]
) -> RunResult:
    """Return the combined result of a run's batches.

    Parameters
    ----------
    totals : Totals
    domains : sequence of Domain
        Of the table.
    n : int
        Its records.
    sums : sequence of mapping
        The part of its classes in each measure of classes.
    """
    findings = tuple(tally.finding() for tally in totals.findings)
    result = replace(_without_figures(totals.run, n), seconds=totals.seconds, findings=findings)
    return said_of(result, totals.ready, domains, totals.summary, totals.measured, sums)


def said_of(
    result: RunResult,
    ready: MeasureRequest,
    domains: Sequence[Domain],
    summary: Summary,
    measured: Measured,
    sums: Sequence[Mapping[str, tuple[float, ...]]],
) -> RunResult:
    """Return a result with its measures, and the data of its page.

    Parameters
    ----------
    result : RunResult
    ready : MeasureRequest
        The measures.
    domains : sequence of Domain
    summary : Summary
        Of all records.
    measured : Measured
        Of all records.
    sums : sequence of mapping
        The part of the classes in the measures of classes.
    """
    measures = utility.finish_sums(ready, sums) if sums and sums[0] else {}
    rest = MeasureRequest({name: ready.prepared[name] for name in summary.measures})
    measures |= utility.finalize(rest, summary.measures)
    sizes = {size: int(summary.sizes[size]) for size in np.flatnonzero(summary.sizes).tolist()}
    hidden = summary.suppressed
    if summary.kind == "classes" and hidden:
        sizes[hidden] = sizes.get(hidden, 0) + hidden
    return replace(
        result,
        measures={name: measures[name] for name in ready.prepared},
        suppressed=hidden,
        columns=column_losses(domains, measured, result.records),
        published=published_losses(domains, measured, result.records),
        sizes=tuple(sorted(sizes.items())),
        spread=tuple(enumerate(summary.spread.tolist())),
        kind=summary.kind,
    )


def infeasible(run: Run, problem: str, records: int) -> RunResult:
    """Return a run without a result, and why."""
    return replace(_without_figures(run, records), problem=problem)


def _without_figures(run: Run, records: int) -> RunResult:
    spec = run.anonymize
    method = spec.method
    return RunResult(
        run.number, run.name, method.name, method.guarantee, spec.k, records, values=dict(run.values)
    )


def with_findings(result: RunResult, findings: tuple[Finding, ...]) -> RunResult:
    """Return the same result with the findings for the release, which replace those of the partitions."""
    failed = tuple(finding for finding in result.findings if not finding.holds)
    return replace(result, findings=(*failed, *findings))


def column_losses(domains: Sequence[Domain], measured: Measured, n: int) -> tuple[ColumnLoss, ...]:
    """Return the mean loss of each published column over n records; positions of a code are one column."""
    return _by_column(domains, measured.costs / n, measured.single / n, measured.blank / n)


def published_losses(domains: Sequence[Domain], measured: Measured, n: int) -> tuple[ColumnLoss, ...]:
    """Return the mean loss of each published column over n records, on the values that its published cells show.

    A cell that is published as ``*`` costs 1. The loss is NaN where values that no cell shows decide about it.
    """
    layout = Layout.of(domains)
    costs = measured.visible.copy()
    for t, a in enumerate(layout.ranges):
        costs[a] *= _rescaled(domains[a], int(measured.lowest[t]), int(measured.highest[t]))
    for a, words in layout.words.items():
        members = int(np.bitwise_count(measured.members[words]).sum())
        costs[a] *= (domains[a].size - 1) / max(members - 1, 1)
    unknown = np.array([domain.values_decide for domain in domains])
    loss = np.where(unknown, np.nan, (costs + measured.hidden) / n)
    return _by_column(domains, loss, measured.single / n, measured.blank / n)


def _rescaled(domain: Domain, lowest: int, highest: int) -> float:
    """Return the domain's width divided by that of the values that published cells show."""
    if lowest >= highest:
        return 0.0
    if domain.hierarchy is None:
        points = relative(domain)
        width = float(points[highest] - points[lowest])
        return 1.0 / width if width else 0.0  # large integers may be one float
    # all leaves of a hierarchy are public, but not whether a blank was added to them
    blank = domain.labels[-1] == "" and highest < domain.size - 1
    return domain.width / max(domain.width - blank, 1.0)


def _by_column(domains: Sequence[Domain], *shares: np.ndarray) -> tuple[ColumnLoss, ...]:
    """Return the means of each column; positions of a code are one column."""
    losses = []
    for name in dict.fromkeys(domain.column for domain in domains):
        at = [a for a, domain in enumerate(domains) if domain.column == name]
        loss, exact, whole = (float(np.mean(values[at])) for values in shares)
        losses.append(ColumnLoss(name, loss, exact, whole, sum(domains[a].weight for a in at)))
    return tuple(losses)


def _sum(counts: np.ndarray, other: np.ndarray) -> np.ndarray:
    total = np.zeros(max(len(counts), len(other)), np.int64)
    total[: len(counts)] += counts
    total[: len(other)] += other
    return total
