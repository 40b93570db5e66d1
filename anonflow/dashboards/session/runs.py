"""The runs of one user: what is started, what is at work, what is finished, and which one is chosen."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import param

from anonflow import engine
from anonflow.dashboards.session.draft_spec import DraftSpec, DraftTable
from anonflow.dashboards.session.files.folders import SessionFolder
from anonflow.dashboards.session.files.memory import ReleaseMemory
from anonflow.dashboards.session.noted import Noted
from anonflow.dashboards.session.open_table import OpenTable
from anonflow.dashboards.session.project import session_runs_text
from anonflow.dashboards.session.screen_words import BEGIN
from anonflow.dashboards.session.validation import code, running_flow
from anonflow.dashboards.work.jobs import FinishedRun, Job, JobGroup, sentence, summary
from anonflow.dashboards.work.screen_work import Background
from anonflow.dashboards.work.turns import Turns
from anonflow.dashboards.work.user_limits import Limits
from anonflow.errors import AnonflowError, FlowError, ParameterError
from anonflow.table import Table


class Runs(param.Parameterized):
    """The runs on the open table.

    ``noted`` is what screens found out about them, so that it outlives their page.

    Invariants: ``finished`` is replaced, never changed in place; what comes from the threads of runs reaches params
    through the turns alone.

    Parameters
    ----------
    data : OpenTable
        What they run on.
    turns : Turns
        Of the user.
    memory : ReleaseMemory
        Earlier releases, which flows go on from.
    place : SessionFolder
        Where they are kept, for a server that was lost.
    limits : Limits
        Caps on their number and time.
    scheduler : str
        What runs run on, as :func:`anonflow.engine.start` takes it.
    freed : callable
        Called when a run was cancelled or ran too long, and may still occupy a worker.
    """

    finished = param.List(default=[], doc="Finished runs, oldest first.")
    chosen = param.Integer(default=None, allow_None=True, doc="Id of the run that is explored and published.")
    running = param.Boolean(default=False)
    progress = param.Dict(default={}, doc="Run name -> share done, while running.")
    doing = param.Dict(default={}, doc="Run name -> what it is at, in a few words, while running.")
    status = param.String(default=BEGIN, doc="One plain sentence: what was opened, or how the runs stand.")

    def __init__(
        self,
        data: OpenTable,
        turns: Turns,
        memory: ReleaseMemory,
        place: SessionFolder,
        limits: Limits,
        scheduler: str,
        freed: Callable[[], None],
    ) -> None:
        super().__init__()
        self.noted = Noted()
        self._data = data
        self._turns = turns
        self._memory = memory
        self._place = place
        self.limits = limits
        self._scheduler = scheduler
        self._freed = freed
        self.batch: JobGroup | None = None
        self.restorer = Background(turns, at_once=True)
        self._started: tuple[DraftSpec, frozenset[str]] | None = None
        self._ids = 0
        self._seeds: dict[str, int] = {}
        self._chooses_next = False
        data.confirmed = self.keep

    def __repr__(self) -> str:
        # without the params: a log of this object would contain cells
        return f"Runs({len(self.finished)})"

    def __iter__(self) -> Iterator[FinishedRun]:
        return iter(self.finished)

    @property
    def has_work(self) -> bool:
        """Whether there is a run, finished or at work."""
        return bool(self.finished or self.running)

    def keep(self) -> None:
        """Keep the runs, the chosen one, what was drawn, and the answers on columns in the session's folder."""
        seeds = [run.seed for run in self.finished] + list(self._seeds.values())
        if self.batch is not None:
            seeds += [job.seed for job in self.batch.jobs if not job.ended]
        self._place.keep_runs(
            session_runs_text(self.finished, self.chosen, self.noted.drawn, self._data.answers), seeds
        )

    def abandon(self) -> None:
        """Stop what is at work, and forget it and the runs."""
        if self.batch is not None:
            self.batch.abandon()
        self._seeds = {}
        self._place.keep_unfinished({})
        self.restorer.forget()
        self.noted = Noted(drawn=self.noted.drawn)
        self.param.update(finished=[], chosen=None, running=False, progress={}, doing={})

    def take_up(self, runs: Sequence[FinishedRun]) -> None:
        """Take up the runs of a project."""
        first = self._ids + 1
        self._ids += len(runs)
        self.finished = [replace(run, id=id) for id, run in enumerate(runs, first)]
        self.keep()

    def resume(
        self,
        runs: Sequence[FinishedRun],
        chosen: int | None,
        drawn: Mapping[str, list[tuple[int, str]]],
        unfinished: Mapping[str, int],
    ) -> None:
        """Take up the runs of a server that was lost, what was drawn, and the seeds of those that it did not finish."""
        self._ids = max((run.id for run in runs), default=0)
        self._seeds = dict(unfinished)
        self.noted = Noted(drawn=dict(drawn))
        self.param.update(finished=list(runs), chosen=chosen)
        self.keep()
        self._restore([run for run in runs if run.seed and self._place.results(run.seed).is_dir()])

    def start(self) -> None:
        """Run every method with every k in the background; results arrive in ``finished`` one by one.

        After :meth:`cancel`, as long as the draft is the same, what was done is not done again.

        Raises
        ------
        FlowError
            If something cannot work: then ``problems`` says what.
        """
        if self.running:
            return
        if self._data.problems:
            raise FlowError.collected("this cannot run", self._data.problems)
        flow, spec = self._data.judgement.flow, self._data.draft.spec
        assert self._data.table is not None
        assert flow is not None
        done = self._done_before_cancel()
        runs = [run for run in self._data.judgement.runs if run.name not in done]
        self._started = spec, done
        self._begin([(flow, run, spec.single(run)) for run in runs], self._data.table)

    def start_flows(self, runs: Sequence[tuple[engine.Flow, engine.Run, DraftSpec]]) -> None:
        """Run other flows than the draft on the open table, in the background: of each run its flow, and the flow that it is alone.

        Raises
        ------
        FlowError
            If the table cannot be used.
        """
        if self.running:
            return
        self._data.check()
        self._started = None
        self._begin(runs, self._data.table)

    def run_again(self, id: int, **options: Any) -> None:
        """Run a finished run again on its own table, with other options of its method; it is chosen when it is done.

        The draft stays as it is; None takes an option away.

        Raises
        ------
        ParameterError
            If there is no such run with a result.
        """
        done = self.of(id)
        if self.running:
            return
        if done.result.anonymization is None:
            raise ParameterError("this run has no result; choose one that has")
        again = done.spec.changed((("steps", "anonymize", name), value) for name, value in options.items())
        flow = again.loaded(self._data.draft.folder)
        self._started = None
        table = done.result.anonymization.table
        self._choose_next(lambda: self._begin([(flow, flow.runs[0], again)], table))

    def apply(self, id: int, change: Sequence[tuple[Sequence[str], Any]]) -> None:
        """Take up the settings of a run with a change, as one edit, and run that; the new run is chosen when it is done.

        The change is as :meth:`DraftSpec.changed` takes it.
        """
        if self.running:
            return
        self._data.draft.put(self.settings_of(id).changed(change))
        self._data.when_coded(lambda: self._choose_next(self.start))

    def settings_of(self, id: int) -> DraftSpec:
        """Return the flow of a finished run, without what it publishes."""
        return self.of(id).spec.unpublished().model_copy(update={"target": None})

    @property
    def repeatable(self) -> list[FinishedRun]:
        """The runs without a result that their seeds repeat, such as those of a project that was saved with its table."""
        return [
            run
            for run in self.finished
            if run.seed and run.result.problem is None and run.result.anonymization is None
        ]

    def repeat(self) -> None:
        """Give the runs of :attr:`repeatable` their results, with the same bits, in the background; nothing else changes."""
        if not self.running:
            self._restore(self.repeatable)

    def _restore(self, runs: Sequence[FinishedRun]) -> None:
        """Give runs their results again, in the background: those of their partitions are stored."""
        frame, folder, source = self._data.frame, self._data.draft.folder, self._data.source

        def tables() -> list[Table | None]:
            coded: list[tuple[DraftTable, Table | None]] = []
            for run in runs:
                if all(of != run.spec.table for of, _ in coded):
                    coded.append((run.spec.table, code(frame, run.spec, folder, source)[0]))
            return [next(table for of, table in coded if of == run.spec.table) for run in runs]

        def begin(of_runs: list[Table | None]) -> None:
            status, jobs, ids = self.status, [], {}
            for run, table in zip(runs, of_runs, strict=True):
                with suppress(AnonflowError):
                    flow = run.spec.loaded(folder)
                    if table is not None and not self.running:
                        jobs.append(self._job(flow, flow.runs[0], run.spec, table, len(runs), run.seed))
                        ids[jobs[-1]] = run.id

            def restored(batch: JobGroup, job: Job, result: engine.RunResult | None) -> None:
                if result is not None and result.problem is None:
                    self.finished = [
                        replace(run, result=replace(result, number=run.id, name=run.result.name, values=run.result.values))
                        if run.id == ids[job]
                        else run
                        for run in self.finished
                    ]  # fmt: skip
                    if self.chosen is None:
                        self.chosen = ids[job]
                if batch.is_over:
                    self.param.update(running=False, progress={}, doing={}, status=status)

            if jobs and not self.running:
                self.batch = JobGroup(jobs, self._turns, self._freed, self._show, restored)
                self.param.update(running=True, progress={job.run.name: 0.0 for job in jobs})
                self.batch.start()

        if runs:
            self.restorer.start(tables, begin, lambda problem: None)

    def _choose_next(self, start: Callable[[], None]) -> None:
        """Start a run, which is chosen when it is done."""
        self._chooses_next = True  # before the start: a short run may be over when it returns
        try:
            start()
        finally:
            self._chooses_next &= self.running

    def _begin(self, runs: Sequence[tuple[engine.Flow, engine.Run, DraftSpec]], table: Table) -> None:
        """Run some runs of flows in the background, each with the flow that it is alone."""
        jobs = [
            self._job(flow, run, spec, table, len(runs), self._seeds.pop(run.name, None))
            for flow, run, spec in runs
        ]
        self.batch = JobGroup(jobs, self._turns, self._freed, self._show, self._end)
        self.param.update(running=True, progress={job.run.name: 0.0 for job in jobs}, status="Starting.")
        self._place.keep_unfinished({job.run.name: job.seed for job in jobs})
        self.batch.start()

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
        alone = running_flow(flow.going_on_from(self._memory.folder), run, table)
        return Job(run, spec, alone, table, settings, self.limits.seconds, seed, self._place.results)

    def _done_before_cancel(self) -> frozenset[str]:
        """Return names of the draft's runs that were done when the others were cancelled; none once all are done."""
        if self.batch is None or self._started is None or self._started[0] != self._data.draft.spec:
            return frozenset()
        jobs = self.batch.jobs
        if not any(job.cancelled for job in jobs):
            return frozenset()
        kept = {run.result.name for run in self.finished}
        now = {job.run.name for job in jobs if job.ended and not job.cancelled}
        return frozenset((now | self._started[1]) & kept)

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

    def _show(self, batch: JobGroup) -> None:
        progress = {job.run.name: job.share for job in batch.jobs}
        doing = {job.run.name: job.doing for job in batch.jobs}
        self.param.update(progress=progress, doing=doing, status=sentence(list(batch.jobs)))

    def _end(self, batch: JobGroup, job: Job, result: engine.RunResult | None) -> None:
        """Keep the run of a finished job; the last one ends the start."""
        changes: dict[str, Any] = {}
        if result is not None:
            self._ids += 1
            spec = job.final_spec(result)
            run = FinishedRun(self._ids, spec, job.seed, replace(result, number=self._ids), time.time())
            changes["finished"] = self._capped([*self.finished, run])
            if (self.chosen_run is None or self._chooses_next) and run.result.anonymization is not None:
                changes["chosen"], self._chooses_next = run.id, False
        if batch.is_over:
            self._chooses_next = False
            status = summary(list(batch.jobs), batch.seconds)
            changes |= {"running": False, "progress": {}, "doing": {}, "status": status}
        self.param.update(**changes)
        if result is not None:
            self.keep()
        self._place.keep_unfinished({job.run.name: job.seed for job in batch.jobs if not job.ended})

    def keep_results(
        self, results: Sequence[tuple[DraftSpec, int, engine.RunResult]], instead_of: Sequence[int] = ()
    ) -> list[int]:
        """Keep results that were made aside among the runs, and return the ids of these.

        Parameters
        ----------
        results : sequence of (DraftSpec, int, RunResult)
            The flow that repeats it, its seed, and the result.
        instead_of : sequence of int
            Ids of the runs that the first results stand for from now on.
        """
        runs = {run.id: run for run in self.finished}
        ids = []
        for at, (spec, seed, result) in enumerate(results):
            run = runs.get(instead_of[at]) if at < len(instead_of) else None
            if run is not None:
                runs[run.id] = replace(run, spec=spec, result=replace(result, number=run.id))
                ids.append(run.id)
            elif at < len(instead_of):
                ids.append(instead_of[at])  # was deleted meanwhile, and stays so
            else:
                self._ids += 1
                numbered = replace(result, number=self._ids)
                runs[self._ids] = FinishedRun(self._ids, spec, seed, numbered, time.time())
                ids.append(self._ids)
        finished = self._capped(list(runs.values()))
        there = {run.id for run in finished if run.result.anonymization is not None}
        chosen = self.chosen if self.chosen in there else next((id for id in ids if id in there), None)
        self.param.update(finished=finished, chosen=chosen)
        self.keep()
        return ids

    def _capped(self, runs: list[FinishedRun]) -> list[FinishedRun]:
        """Without the oldest that are one too many; pinned ones go last."""
        most = self.limits.runs
        while most is not None and len(runs) > most:
            runs.remove(next((run for run in runs if not run.pinned), runs[0]))
        return runs

    def edit(self, id: int, **changes: Any) -> None:
        """Say how a run is called (``label``), a note on it (``note``), or whether it is ``pinned``."""
        changed = replace(self.of(id), **changes)
        self.finished = [changed if run.id == id else run for run in self.finished]
        self.keep()

    def delete(self, id: int) -> None:
        """Delete a run, and its drawn release."""
        self.of(id)
        left = [run for run in self.finished if run.id != id]
        chosen = self.chosen if self.chosen != id else None
        if chosen is None:
            chosen = next((run.id for run in reversed(left) if run.result.anonymization is not None), None)
        self.param.update(finished=left, chosen=chosen)
        self.keep()

    def choose(self, id: int) -> None:
        """Choose the run that is explored and published."""
        self.of(id)
        self.chosen = id
        self.keep()

    @property
    def chosen_run(self) -> FinishedRun | None:
        """The run that is explored and published; None if no run with a result is chosen."""
        run = self.selection
        return None if run is None or run.result.anonymization is None else run

    @property
    def selection(self) -> FinishedRun | None:
        """The chosen run, whether or not it has a result; None if no run is chosen."""
        return next((run for run in self.finished if run.id == self.chosen), None)

    def of(self, id: int) -> FinishedRun:
        """Return a finished run by its id.

        Raises
        ------
        ParameterError
            If there is no such run.
        """
        for run in self.finished:
            if run.id == id:
                return run
        raise ParameterError(f"there is no run {id}; choose one of the table of runs")

    def note_drawn(self, table: str, run: FinishedRun) -> None:
        """Remember that the release of a run of a table was drawn."""
        of_table = self.noted.drawn.setdefault(table, [])
        if run.id not in dict(of_table):
            of_table.append((run.id, run.name))
            self.keep()
