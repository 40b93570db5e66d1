"""The partitions of all runs of a flow: solved batch by batch, reported as they arrive, and summed for each run."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter

from anonflow import utility
from anonflow.algorithms.method import Progress
from anonflow.algorithms.solve import in_a_partition
from anonflow.engine.context import Session, clocks
from anonflow.engine.execution.batches import Batch, BatchDone, BatchFailed, Shared, solve_batch
from anonflow.engine.execution.events import (
    PartitionDone,
    RoundDone,
    RunDone,
    RunStarted,
    StepDone,
    StepStarted,
)
from anonflow.engine.execution.plan import STEPS, FlowPlan, RunPlan, settings_of
from anonflow.engine.execution.result import RunResult
from anonflow.engine.execution.schedulers import Call, Executor, raised
from anonflow.engine.execution.tasks import Failed
from anonflow.engine.execution.totals import Totals, infeasible, measures_of_parts, result_of
from anonflow.engine.storage.storage import Storage
from anonflow.errors import SHOWN, AnonflowError, InfeasibleError
from anonflow.table import Table


class Partitions:
    """The work on all partitions of a flow.

    Parameters
    ----------
    session : Session
    storage : Storage
    executor : Executor
    plan : FlowPlan
    table : Table

    Attributes
    ----------
    totals : dict
        Run -> the sums over its batches.

    Notes
    -----
    This class does not know where rows are stored, and its memory does not grow with the number of partitions.
    """

    def __init__(
        self, session: Session, storage: Storage, executor: Executor, plan: FlowPlan, table: Table
    ) -> None:
        self._session = session
        self._storage = storage
        self._executor = executor
        self._plan = plan
        self._table = table
        ks = dict.fromkeys(run_plan.run.anonymize.k for run_plan in plan.runs)
        ready = {k: measures_of_parts(session.flow, table, k) for k in ks}
        self.totals = {
            run_plan.run.number: Totals(run_plan.run, ready[run_plan.run.anonymize.k])
            for run_plan in plan.runs
        }
        self._shared = Shared(table.domains, {number: totals.ready for number, totals in self.totals.items()})
        self._by_class = [name for name in session.flow.measures if name in utility.measures_by_class()]
        self._results: dict[int, RunResult] = {}
        self._without: dict[int, tuple[int, str]] = {}
        self._ended = False
        self._errors: list[tuple[int, int, AnonflowError]] = []
        self._progress = dict.fromkeys(self.totals, 0)
        self._reported: dict[tuple[int, int], float] = {}

    def compute(self) -> list[RunResult]:
        """Solve all partitions.

        Returns
        -------
        list of RunResult
            In the order of the flow's runs.

        Raises
        ------
        Cancelled
            If the run was cancelled.
        AnonflowError
            If a partition broke, or the cluster was lost; of several, the first one's error.
        InfeasibleError
            If a partition of the only run has no solution; likewise.
        """
        session, plan = self._session, self._plan
        plans = {run_plan.run.number: run_plan for run_plan in plan.runs}
        for run in session.flow.runs:
            if run.number in plan.problems:
                self._tell(infeasible(run, plan.problems[run.number], plan.n))
            else:
                partitions = len(plans[run.number].cuts)
                session.events.emit(RunStarted(run=run.number, name=run.name, partitions=partitions))
        self._storage.begin(plan)
        begin = clocks()
        session.events.emit(StepStarted(step="anonymize", tasks=plan.partitions))
        for call, result in self._executor.stream(self._calls(), self._shared, waiting=session.waiting):
            run_plan, batch = call.key
            self._take(run_plan, batch, result)
            if self.totals[run_plan.run.number].rows == plan.n:
                start = clocks()
                self._finish(run_plan)
                session.spent("combine", start, of="anonymize")
        if self._errors:
            further = len(self._errors) - SHOWN
            if further > 0:
                session.events.log(f"{further:,} more failed", "error")
            raise min(self._errors, key=itemgetter(0, 1))[2]
        self._tell_found()
        session.events.emit(StepDone(step="anonymize", seconds=session.spent("anonymize", begin)))
        for run_plan in plan.runs:
            if run_plan.run.number not in self._results:  # a partition has no solution
                self._finish(run_plan)
        session.seconds |= dict.fromkeys(STEPS, 0.0)
        for totals in self.totals.values():
            for step, step_seconds in totals.steps.items():
                session.seconds[step] = session.seconds.get(step, 0.0) + step_seconds
        return [self._results[run.number] for run in session.flow.runs]

    def _calls(self) -> Iterator[Call]:
        session = self._session
        settings = {
            run_plan.run.number: settings_of(session.flow, run_plan, session.seed)
            for run_plan in self._plan.runs
        }
        if session.scheduler == "threads":
            settings = {
                number: replace(run_settings, watch=self._watch) for number, run_settings in settings.items()
            }
        for run_plan, batch in self._plan.batches():
            if self._ended:
                return  # those before are all made, so that the error is that of the first one that fails
            rows = run_plan.order.rows(batch.start, batch.stop)
            resumed = self._storage.resumed(run_plan, batch)
            arguments = (settings[run_plan.run.number], batch, rows, resumed, self._storage.names)
            yield Call(
                solve_batch,
                arguments,
                f"{'-'.join(STEPS)}-{run_plan.run.number}-{batch.number}",
                (run_plan, batch),
            )

    def _watch(self, run: int, partition: int, records: int, progress: Progress) -> None:
        """Act between two rounds of a method: stop it if the run was cancelled, and report its progress once a second."""
        events = self._session.events
        events.check()
        now = time.perf_counter()
        if now - self._reported.get((run, partition), -math.inf) >= 1.0 or progress.done == progress.of:
            self._reported[run, partition] = now
            loss = progress.loss / records
            events.emit(
                RoundDone(run=run, partition=partition, done=progress.done, of=progress.of, loss=loss)
            )

    def _take(self, run_plan: RunPlan, batch: Batch, result: BatchDone | BatchFailed | Failed) -> None:
        if isinstance(result, Failed):
            self._broke(run_plan, str(batch), batch.first, result)
            return
        self._session.used(result.memory)
        self._storage.arrived(run_plan, batch, result)
        if isinstance(result, BatchFailed):
            for number, failed in result.failed:
                self._broke(run_plan, f"partition {number}", number, failed)
            return
        self.totals[run_plan.run.number].add(batch, result)
        of = len(run_plan.cuts)
        rows = zip(result.records.tolist(), result.seconds.tolist(), result.losses.tolist(), strict=True)
        for number, (records, seconds, loss) in enumerate(rows, batch.first):
            self._progress[run_plan.run.number] += 1
            self._reported.pop((run_plan.run.number, number), None)
            self._session.events.emit(
                PartitionDone(
                    run=run_plan.run.number,
                    partition=number,
                    done=self._progress[run_plan.run.number],
                    of=of,
                    records=records,
                    seconds=seconds,
                    loss=loss,
                )
            )

    def _broke(self, run_plan: RunPlan, where: str, partition: int, failed: Failed) -> None:
        """Report a partition that failed, by a bug or for want of memory: the others go on.

        Wrong parameters end the flow at once; of the infeasible, the partitions that wait are left where there is one run.
        """
        number = run_plan.run.number
        if isinstance(failed.error, InfeasibleError):
            refusal = in_a_partition(failed.error, len(run_plan.cuts))
            if len(self._session.flow.runs) == 1:
                self._errors.append((number, partition, refusal))
                self._ended = True
            else:
                earlier_refusal = self._without.get(number, (partition, refusal.message))
                self._without[number] = min(earlier_refusal, (partition, refusal.message))
            return
        error = raised(failed, f"{where} of run {run_plan.run.name!r}")
        if error is failed.error:
            raise error
        self._errors.append((number, partition, error))
        if len(self._errors) <= SHOWN:
            text = f"{where} of run {run_plan.run.name!r}: {failed.message}; the other partitions go on"
            self._session.events.log(text, "error")

    def _tell_found(self) -> None:
        resumed = sum(totals.resumed for totals in self.totals.values())
        if resumed:
            of = self._plan.partitions
            self._session.events.log(f"{resumed} of {of} partitions are there from an earlier run")

    def _finish(self, run_plan: RunPlan) -> None:
        """Complete a run."""
        number = run_plan.run.number
        if number in self._without:
            self._tell(infeasible(run_plan.run, self._without[number][1], self._plan.n))
            return
        totals = self.totals[number]
        sums = self._storage.class_sums(run_plan, self._by_class, totals.ready)
        result = result_of(totals, self._table.domains, self._plan.n, sums)
        choice = self._session.choices.get(number)
        if choice is not None and not choice.fits:
            result = replace(result, over_budget=choice.sentence())
        self._tell(self._storage.completed(run_plan, totals, result))

    def _tell(self, result: RunResult) -> None:
        self._results[result.number] = result
        self._session.events.emit(RunDone(run=result.number, ok=result.ok, row=result.row()))
