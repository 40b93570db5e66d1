"""The starts of runs: what is run, how far it is, and what becomes of the results."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import param
from param.parameterized import batch_call_watchers

from anonflow import engine
from anonflow.dashboards.session.draft_spec import DraftSpec
from anonflow.dashboards.session.files.folders import SessionFolder
from anonflow.dashboards.session.files.memory import ReleaseMemory
from anonflow.dashboards.session.open_table import OpenTable
from anonflow.dashboards.session.runs import Runs
from anonflow.dashboards.session.screen_words import BEGIN
from anonflow.dashboards.session.validation import code
from anonflow.dashboards.work.jobs import FinishedRun, Job, JobGroup, running_flow, sentence, summary
from anonflow.dashboards.work.screen_work import Background
from anonflow.dashboards.work.turns import Turns
from anonflow.dashboards.work.user_limits import Limits
from anonflow.errors import AnonflowError, FlowError, ParameterError
from anonflow.table import Table


class Starts(param.Parameterized):
    """What runs on the open table; results go to the runs.

    Invariant: what comes from the threads of runs reaches params through the turns alone.

    Parameters
    ----------
    scheduler : str
        What runs run on, as :func:`anonflow.engine.start` takes it.
    freed : callable
        Called when a run was cancelled or ran too long, and may still occupy a worker.
    """

    running = param.Boolean(default=False)
    progress = param.Dict(default={}, doc="Run name -> share done, while running.")
    doing = param.Dict(default={}, doc="Run name -> what it is at, in a few words, while running.")
    status = param.String(default=BEGIN, doc="One plain sentence: what was opened, or how the runs stand.")

    def __init__(
        self,
        data: OpenTable,
        runs: Runs,
        turns: Turns,
        memory: ReleaseMemory,
        place: SessionFolder,
        limits: Limits,
        scheduler: str,
        freed: Callable[[], None],
    ) -> None:
        super().__init__()
        self.limits = limits
        self.batch: JobGroup | None = None
        self.restorer = Background(turns, at_once=True)
        self._data, self._runs, self._turns, self._memory, self._place = data, runs, turns, memory, place
        self._scheduler, self._freed = scheduler, freed
        self._started: tuple[DraftSpec, frozenset[str]] | None = None
        self._chooses_next = False

    def start(self) -> None:
        """Run every method with every k in the background; results arrive among the runs one by one.

        After :meth:`cancel`, as long as the draft is the same, what was done is not done again.

        Raises
        ------
        FlowError
            If something cannot work: then ``problems`` of the open table says what.
        """
        if self.running:
            return
        if self._data.problems:
            raise FlowError.collected("this cannot run", self._data.problems)
        flow, spec = self._data.judgement.flow, self._data.draft.spec
        assert flow is not None
        finished_names = self._done_before_cancel()
        runs = [run for run in self._data.judgement.runs if run.name not in finished_names]
        self._begin([(flow, run, spec.single(run)) for run in runs], self._data.table, (spec, finished_names))

    def start_flows(self, runs: Sequence[tuple[engine.Flow, engine.Run, DraftSpec]]) -> None:
        """Run other flows than the draft on the open table, in the background: of each run its flow, and the flow that it is alone.

        Raises
        ------
        FlowError
            If the table cannot be used.
        """
        if not self.running:
            self._data.check()
            self._begin(runs, self._data.table)

    def run_again(self, id: int, **options: Any) -> None:
        """Run a finished run again on its own table, with other options of its method; it is chosen when it is done.

        The draft stays as it is; None takes an option away.

        Raises
        ------
        ParameterError
            If there is no such run with a result.
        """
        run = self._runs.of(id)
        if self.running:
            return
        if run.result.anonymization is None:
            raise ParameterError("this run has no result; choose one that has")
        again = run.spec.changed((("steps", "anonymize", name), value) for name, value in options.items())
        flow, table = again.loaded(self._data.draft.folder), run.result.anonymization.table
        self._choose_next(lambda: self._begin([(flow, flow.runs[0], again)], table))

    def apply(self, id: int, change: Sequence[tuple[Sequence[str], Any]]) -> None:
        """Take up the settings of a run with a change, as one edit, and run that; the new run is chosen when it is done.

        The change is as :meth:`DraftSpec.changed` takes it.
        """
        if not self.running:
            self._data.draft.put(self._runs.settings_of(id).changed(change))
            self._data.when_coded(lambda: self._choose_next(self.start))

    def repeat(self) -> None:
        """Give the runs that their seeds repeat their results, with the same bits, in the background; nothing else changes."""
        if not self.running:
            self.restore(self._runs.repeatable)

    def restore(self, runs: Sequence[FinishedRun]) -> None:
        """Give runs their results again, in the background: those of their partitions may be stored."""
        frame, folder, source = self._data.frame, self._data.draft.folder, self._data.source

        def tables() -> list[Table | None]:
            coded: list[Table | None] = []
            for at, run in enumerate(runs):
                same = next((other for other in range(at) if runs[other].spec.table == run.spec.table), None)
                coded.append(code(frame, run.spec, folder, source)[0] if same is None else coded[same])
            return coded

        def begin(of_runs: list[Table | None]) -> None:
            if self.running:
                return
            status, ids = self.status, {}
            for run, table in zip(runs, of_runs, strict=True):
                with suppress(AnonflowError):
                    flow = run.spec.loaded(folder)
                    if table is not None:
                        ids[self._job(flow, flow.runs[0], run.spec, table, len(runs), run.seed)] = run.id

            def restored(batch: JobGroup, job: Job, result: engine.RunResult | None) -> None:
                id = ids[job]
                if result is not None and result.problem is None:
                    with suppress(ParameterError):  # it may have been deleted
                        before = self._runs.of(id).result
                        result = replace(result, number=id, name=before.name, values=before.values)
                        self._runs.edit(id, result=result)
                        if self._runs.chosen is None:
                            self._runs.choose(id)
                if batch.is_over:
                    self._rest(status)

            if ids:
                self._work(list(ids), restored)

        if runs:
            self.restorer.start(tables, begin, lambda problem: None)

    @property
    def missing(self) -> int:
        """How many runs a start would do: all of the draft that can have a result, or what a cancelled start left."""
        return self.possible - len(self._done_before_cancel())

    @property
    def possible(self) -> int:
        """How many runs of the draft can have a result."""
        return len(self._data.judgement.runs)

    def cancel(self) -> None:
        """Stop running and waiting jobs; finished runs are kept."""
        if self.batch is not None:
            self.batch.cancel()

    def abandon(self) -> None:
        """Stop what is at work, and forget it and the runs."""
        if self.batch is not None:
            self.batch.abandon()
        self.restorer.forget()
        self._runs.forget()
        self._rest(self.status)

    def wait(self, timeout: float | None = None) -> None:
        """Wait until nothing is coded and nothing runs, from another thread than the one that `schedule` calls in.

        Raises
        ------
        TimeoutError
            If that takes longer than `timeout` seconds.
        """
        if self._data.coding:
            self._data.coder.wait(timeout)
        if self.batch is not None and not self.batch.wait(timeout):
            raise TimeoutError("the runs are not over yet")

    # --------------------------------------------------------------------------------------- inside

    def _choose_next(self, start: Callable[[], None]) -> None:
        """Start a run, which is chosen when it is done."""
        self._chooses_next = True  # before the start: a short run may be over when it returns
        try:
            start()
        finally:
            self._chooses_next &= self.running

    def _begin(
        self,
        runs: Sequence[tuple[engine.Flow, engine.Run, DraftSpec]],
        table: Table,
        started: tuple[DraftSpec, frozenset[str]] | None = None,
    ) -> None:
        """Run some runs of flows in the background, each with the flow that it is alone.

        Of a draft, `started` has what it is, and the names of its runs that are done.
        """
        jobs = [
            self._job(flow, run, spec, table, len(runs), self._runs.seed_for(spec))
            for flow, run, spec in runs
        ]
        self._runs.unfinished |= {job.run.name: job.seed for job in jobs}
        self._runs.remember_seeds((job.spec, job.seed) for job in jobs)
        self._place.keep_unfinished(self._runs.unfinished)
        self._started, self.status = started, "Starting."
        self._work(jobs, self._end)

    def _job(
        self,
        flow: engine.Flow,
        run: engine.Run,
        spec: DraftSpec,
        table: Table,
        together: int,
        seed: int | None,
    ) -> Job:
        """Return the job of one of some runs that begin together."""
        settings: dict[str, Any] = {"scheduler": self._scheduler}
        if self._scheduler == "threads":
            settings["workers"] = max(1, (os.cpu_count() or 1) // min(together, self._turns.line.slots))
        if flow.spec.earlier is not None:
            flow = flow.going_on_from(self._memory.folder)
        alone = running_flow(flow, run, table)
        return Job(run, spec, alone, table, settings, self.limits.seconds, seed, self._place.results)

    def _work(
        self, jobs: Sequence[Job], ended: Callable[[JobGroup, Job, engine.RunResult | None], None]
    ) -> None:
        self.batch = JobGroup(jobs, self._turns, self._freed, self._show, ended)
        self.param.update(running=True, progress={job.run.name: 0.0 for job in jobs})
        self.batch.start()

    def _rest(self, status: str) -> None:
        self.param.update(running=False, progress={}, doing={}, status=status)

    def _done_before_cancel(self) -> frozenset[str]:
        """Return names of the draft's runs that were done when the others were cancelled; none once all are done."""
        if self.batch is None or self._started is None or self._started[0] != self._data.draft.spec:
            return frozenset()
        jobs = self.batch.jobs
        if not any(job.cancelled for job in jobs):
            return frozenset()
        run_names = {run.result.name for run in self._runs.finished}
        now = {job.run.name for job in jobs if job.ended and not job.cancelled}
        return frozenset((now | self._started[1]) & run_names)

    def _show(self, batch: JobGroup) -> None:
        progress = {job.run.name: job.share for job in batch.jobs}
        doing = {job.run.name: job.doing for job in batch.jobs}
        self.param.update(progress=progress, doing=doing, status=sentence(list(batch.jobs)))

    def _end(self, batch: JobGroup, job: Job, result: engine.RunResult | None) -> None:
        """Hand the result of a job to the runs; the last one ends the start."""
        self._runs.unfinished.pop(job.run.name, None)
        with batch_call_watchers(self), batch_call_watchers(self._runs):  # whoever watches either finds both
            ids = []
            if result is not None:
                results = [(job.final_spec(result), job.seed, result)]
                ids = self._runs.keep_results(results, choose=self._chooses_next)
            self._chooses_next &= not batch.is_over and self._runs.chosen not in ids
            if batch.is_over:
                self._rest(batch.compiled or summary(batch))
        self._place.keep_unfinished(self._runs.unfinished)
