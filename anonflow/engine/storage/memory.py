"""A table in memory, or mapped from disk, whose results return to the client: a run ends as an anonymization."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from anonflow import utility
from anonflow.algorithms.anonymize import Anonymization, assemble
from anonflow.algorithms.diversity.diversify import with_diverse_parts
from anonflow.algorithms.diversity.target import Targets
from anonflow.algorithms.method import Outcome
from anonflow.algorithms.registry import algorithm_named
from anonflow.criteria.verification import Finding
from anonflow.criteria.verify import verify
from anonflow.engine import publish
from anonflow.engine.context import Session
from anonflow.engine.execution.batches import Batch, BatchDone, BatchFailed, summary_of
from anonflow.engine.execution.plan import FlowPlan, RunPlan, refuse_early, settings_of
from anonflow.engine.execution.result import RunResult
from anonflow.engine.execution.schedulers import Call, Executor
from anonflow.engine.execution.tasks import (
    OF_THE_WHOLE,
    Matched,
    TaskSettings,
    measure,
    without_draw,
)
from anonflow.engine.execution.totals import Totals, infeasible, said_of
from anonflow.engine.flows import source
from anonflow.engine.storage.arrays import TableOrder
from anonflow.engine.storage.load import load_of
from anonflow.engine.storage.spill import Spill
from anonflow.errors import InfeasibleError
from anonflow.loss import measure_named
from anonflow.release import Earlier, Release
from anonflow.release.tables import write_table
from anonflow.table import Domain, Records, Table
from anonflow.utility.measures import MeasureRequest

if TYPE_CHECKING:
    import pandas as pd

    from anonflow.table.metadata import ReleaseMetadata

__all__ = ["HeldRelease", "InMemory"]


@dataclass(frozen=True, eq=False)
class InHand:
    """Results that are returned to the client.

    Attributes
    ----------
    resumed : mapping
        Partition of the batch -> its result from an earlier run.
    """

    resumed: Mapping[int, Matched]

    def open(
        self,
        settings: TaskSettings,
        batch: Batch,
        domains: tuple[Domain, ...],
        parts: Sequence[Records],
        values: Sequence[np.ndarray] | None,
    ) -> InHand:
        """Return the results of the batch."""
        return self

    def keep(self, results: Mapping[int, Matched]) -> dict[int, Matched]:
        """Return those of which something is new."""
        return {
            number: result for number, result in results.items() if result is not self.resumed.get(number)
        }

    def put(
        self, positions: np.ndarray, whole: Outcome, classes: Mapping[str, list[Any]]
    ) -> Mapping[str, list[Any]]:
        """Return what the batch adds to measures of classes."""
        return classes


class InMemory:
    """A table in memory, or mapped from disk, with its results in memory.

    Parameters
    ----------
    session : Session
    rows : int, optional
        That are read together, where the table is to be mapped.
    """

    table: Table

    def __init__(self, session: Session, rows: int | None = None) -> None:
        self._session = session
        self._rows = rows or 0
        self._spill = None if rows is None else Spill.of(session.owner)
        self._names: dict[tuple[int, int], str] = {}
        self._results: dict[int, dict[int, Matched]] = {}
        self._classes: dict[int, dict[int, Mapping[str, list[Any]]]] = {}
        self._values: np.ndarray | None = None

    def __enter__(self) -> InMemory:
        if self._spill is not None:
            self._spill.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is not None and self._session.resume_store is not None:
                self._session.resume_store.stopped(self._session.seed)
        finally:
            if self._spill is not None:
                self._spill.__exit__(kind, error, trace)

    def load(self, executor: Executor) -> Table:
        """Read and code the table."""
        session = self._session
        if self._spill is None:
            self.table = source.read(session.flow, session.fingerprint, session.seed)
        else:
            self.table, _ = load_of(session, self._spill, self._rows)
        return self.table

    def refuse_early(self) -> Targets | None:
        """Refuse a diversity that not even the whole table has; return its targets."""
        diversity = refuse_early(self._session.flow, self.table)
        if diversity is None:
            return None
        targets, self._values = diversity
        return targets

    def order(self, name: str, bounded: bool) -> TableOrder:
        """Return the table in an order."""
        return TableOrder.of(self.table.records, name, self._session.seed, bounded, self._values)

    def begin(self, plan: FlowPlan) -> None:
        """Read the results of an earlier run."""
        session = self._session
        for run_plan in plan.runs:
            self._results[run_plan.run.number], self._classes[run_plan.run.number] = {}, {}
        if session.resume_store is None:
            return
        for run_plan in plan.runs:
            parts = (self.table.records.take(at) for at in _index(run_plan))
            settings = settings_of(session.flow, run_plan, session.seed)
            for p, name in enumerate(session.resume_store.names(settings, self.table.domains, parts)):
                self._names[run_plan.run.number, p] = name
        there = session.resume_store.find(self._names.values(), self.table.domains)
        for (number, p), name in self._names.items():
            if name in there:
                self._results[number][p] = there[name]

    def place(self, run_plan: RunPlan, batch: Batch) -> InHand:
        """Return the store of a batch's results for a task: it returns them to the client."""
        there = self._results[run_plan.run.number]
        numbers = range(batch.first, batch.first + len(batch.bounds))
        return InHand({p: there[p] for p in numbers if p in there})

    def arrived(self, run_plan: RunPlan, batch: Batch, done: BatchDone | BatchFailed) -> None:
        """Store the results that a task returned."""
        number = run_plan.run.number
        new = done.kept.keys() - self._results[number].keys()
        self._results[number] |= done.kept
        if isinstance(done, BatchDone):
            self._classes[number][batch.number] = done.put
        if self._session.resume_store is not None:
            for p in sorted(new):
                self._session.resume_store.add(self._names[number, p], done.kept[p], self._session.seed)

    def needs_workers(self, run_plan: RunPlan) -> bool:
        """Return False: completing a run needs no tasks."""
        return False

    def class_calls(self, run_plan: RunPlan, names: Sequence[str], ready: MeasureRequest) -> list[Call]:
        """Return one call: all classes are in memory."""
        chunks = self._classes.pop(run_plan.run.number)
        together = {name: [each for b in sorted(chunks) for each in chunks[b][name]] for name in names}
        return [Call(utility.class_sums, (together,))]

    def completed(self, run_plan: RunPlan, totals: Totals, result: RunResult) -> RunResult:
        """Return the result with its anonymization, diversified, and with the figures that need the whole table."""
        results = self._results.pop(run_plan.run.number)
        if result.problem is not None:
            return result
        flow, table, run = self._session.flow, self.table, run_plan.run
        more = flow.spec.steps.diversify
        at_once = more is not None and run_plan.diversity is None
        try:
            anonymization = self._gathered(run_plan, [results[p].outcome for p in range(len(results))])
            if more is not None:
                begin = perf_counter()
                anonymization = self._diverse(run_plan, anonymization, results)
                if at_once:
                    result = replace(result, seconds=result.seconds + perf_counter() - begin)
        except InfeasibleError as error:
            return infeasible(run, error.message, table.n)
        findings = result.findings
        undrawn: tuple[str, ...] = ()
        if not flow.draws(run):
            criteria, undrawn = without_draw(
                flow.criteria, anonymization.guarantee, anonymization.matches is not None
            )
            if at_once:
                findings = ()  # everything is checked again
            else:
                criteria = [criterion for criterion in criteria if criterion.name in OF_THE_WHOLE]
            if criteria:
                findings += verify(table, anonymization, criteria, run.anonymize.k).findings
        if at_once:
            result = _said_again(result, anonymization, totals.ready)
        names = flow.measures
        others = [
            {name: options}
            for name, options in names.items()
            if name not in result.measures
            or (utility.MEASURES[name].of_covers and anonymization.classes is None)
        ]
        measures = result.measures | (utility.measure(table, anonymization, others) if others else {})
        return replace(
            result,
            guarantee=anonymization.guarantee,
            findings=findings,
            undrawn=undrawn,
            measures={
                key: own for name in names for key, own in utility.numbers_of_measure(name, measures).items()
            },
            anonymization=anonymization,
            without_pattern=int(anonymization.facts.get("rows_without_pattern", 0)),
        )

    def _diverse(
        self, run_plan: RunPlan, anonymization: Anonymization, results: Mapping[int, Matched]
    ) -> Anonymization:
        """Return a run with the diverse outcomes of its partitions, or made diverse at once."""
        spec, session = self._session.flow.spec.steps.diversify, self._session
        assert spec is not None
        parts = [matched.diverse for _, matched in sorted(results.items()) if matched.diverse is not None]

        def diversify() -> Anonymization:
            return with_diverse_parts(
                anonymization, parts or None, spec.criterion, **spec.settings, seed=session.seed
            )

        return diversify() if parts else session.step("diversify", diversify, run_plan.run.number)

    def _gathered(self, run_plan: RunPlan, outcomes: list[Outcome]) -> Anonymization:
        spec, cut = run_plan.run.anonymize, run_plan.run.partition
        parameters = {
            "loss": measure_named(spec.loss),
            "partition_size": spec.method.partition_size(cut.cut, spec.k, spec.options),
            "order": cut.order,
            **spec.options,
            **({} if spec.boundaries else {"boundaries": False}),
            **({} if run_plan.run.budget is None else {"budget": run_plan.run.budget}),
        }
        index = _index(run_plan)
        out = np.ones(self.table.n, bool)
        for at in index:
            out[at] = False
        method = algorithm_named(spec.algorithm)
        return assemble(self.table, method, spec.k, index, outcomes, parameters, np.flatnonzero(out))

    def draw(
        self, executor: Executor, plan: FlowPlan, totals: Totals, result: RunResult
    ) -> tuple[tuple[Finding, ...], HeldRelease]:
        """Draw the release of a run, and verify all of it."""
        release, findings = publish.release_of(self._session, self.table, result)
        return findings, HeldRelease(self._session, self.table, release, result)


@dataclass(frozen=True, eq=False)
class HeldRelease:
    """A release in memory.

    Attributes
    ----------
    session : Session
    table : Table
    release : Release
    result : RunResult
    """

    session: Session
    table: Table
    release: Release
    result: RunResult

    def attack(self) -> pd.DataFrame | None:
        """Return how often attackers win against it."""
        return publish.attack(self.session, self.table, self.release, self.result)

    def remember(self) -> Path | None:
        """Store marks of the released people in the owner's folder."""
        assert self.session.owner is not None
        return Earlier(self.session.owner.path.parent).keep(self.table, self.release)

    def write_release(self, path: Path) -> ReleaseMetadata | None:
        """Write the published table and its description."""
        write_table(self.release.frame, path, self.release.about)
        return self.release.about

    def write_certificate(self, path: Path) -> None:
        """Write the owner's certificate."""
        if self.release.certificate is not None:
            self.release.certificate.save(path)


def _index(run_plan: RunPlan) -> list[np.ndarray]:
    """Return the table positions of each partition's records."""
    assert isinstance(run_plan.order, TableOrder)
    return [run_plan.order.positions[cut] for cut in run_plan.cuts]


def _said_again(result: RunResult, anonymization: Anonymization, ready: MeasureRequest) -> RunResult:
    """Return a result whose records were generalized further."""
    whole = Outcome(
        anonymization.generalization, anonymization.matches, anonymization.classes, anonymization.suppressed
    )
    measured = measure(anonymization.table.records, whole)
    summary = summary_of(ready, anonymization.table.records, whole, anonymization.partitions)
    sums = [utility.class_sums(ready, summary.classes)]
    return replace(
        said_of(result, ready, anonymization.table.domains, summary, measured, sums),
        said=tuple(str(anonymization.facts[name]) for name in ("compared", "promise")),
    )
