"""All of one user's state: the table, the draft, the runs. Screens show it; it knows no screen."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import param

from anonflow import engine
from anonflow.dashboards.session.draft import Draft
from anonflow.dashboards.session.fair_queue import Line, local_line
from anonflow.dashboards.session.jobs import Job, Run, sentence, summary
from anonflow.dashboards.session.publication import Publication, publication
from anonflow.dashboards.session.share_link import link
from anonflow.dashboards.session.table import Tables
from anonflow.dashboards.session.validation import code, problems_of, running_flow, single_document
from anonflow.errors import FlowError, ParameterError

__all__ = ["Run", "Workspace"]

PAUSE = 0.1
"""Seconds between two looks at the progress."""


class Workspace(Tables):
    """All of one user's state.

    Parameters
    ----------
    schedule : callable, optional
        Takes a callable and has it called where params may change: a server's event loop. At once without it.
    line : Line, optional
        Where runs wait for their turn; that of the process without it.
    scheduler : str
        What runs run on, as :func:`anonflow.engine.start` takes it.
    freed : callable, optional
        Called when a run was cancelled or ran too long, and may still occupy a worker.
    limits : Limits, optional

    Notes
    -----
    Invariants: ``draft`` stays the same object; ``table`` is ``frame`` coded under the draft's columns, or None while
    they are not valid; ``runs`` is replaced, never changed in place; what comes from the threads of runs reaches
    params through `schedule` alone.
    """

    table = param.Parameter(None, doc="The frame coded under the draft's columns, or None.")
    problems = param.Parameter((), doc="What cannot work, one sentence each.")
    algorithms = param.List(default=[], doc="Names of the methods that are run.")
    ks = param.List(default=[], doc="The ks that are run.")
    runs = param.List(default=[], doc="Finished runs, oldest first.")
    chosen = param.Integer(default=None, allow_None=True, doc="Id of the run that is explored and published.")
    running = param.Boolean(default=False)
    progress = param.Dict(default={}, doc="Run name -> share done, while running.")
    dark = param.Boolean(default=False, doc="Whether the screens are dark.")

    def __init__(
        self,
        schedule: Callable[[Callable[[], None]], None] | None = None,
        line: Line | None = None,
        scheduler: str = "threads",
        freed: Callable[[], None] | None = None,
        **given: Any,
    ) -> None:
        folder = Path(tempfile.mkdtemp(prefix="anonflow-"))  # 0700
        given.setdefault("draft", Draft(folder=folder))
        super().__init__(folder=folder, **given)
        self._schedule = schedule or (lambda change: change())
        self._line = line or local_line()
        self._scheduler = scheduler
        self._freed = freed or (lambda: None)
        self._lock = threading.RLock()
        self._jobs: list[Job] = []
        self._over = threading.Event()
        self._over.set()
        self._ended = 0
        self._told = 0.0
        self._began = 0.0
        self._ids = 0
        self._coded: dict[str, Any] | None = None
        self._column_problems: tuple[str, ...] = ()
        self._delete = weakref.finalize(self, shutil.rmtree, folder, True)
        self.draft.param.watch(self._draft_changed, "document")

    def __repr__(self) -> str:
        # of params it would be the frame and the runs: whatever logs this object would log cells
        records = "no table" if self.frame is None else f"{len(self.frame)} records"
        return f"Workspace({records}, {len(self.runs)} runs)"

    # ------------------------------------------------------------------------------------- the table

    def _take(self, frame: Any, source: dict[str, Any], document: dict[str, Any]) -> None:
        self._abandon()
        self._coded = None
        status = f"{len(frame):,} records and {len(frame.columns)} columns are open."
        self.param.update(frame=frame, source=source, runs=[], chosen=None, status=status)
        self.draft.restart(document, folder=self._own_folder())
        self._refresh()

    def _abandon(self) -> None:
        """Runs that are on their way are stopped, and will not be kept."""
        self.cancel()
        with self._lock:
            self._jobs = []
        self.param.update(running=False, progress={})
        self._over.set()

    # ------------------------------------------------------------------------------------- the draft

    def set_algorithms(self, names: Sequence[str]) -> None:
        """Say which methods are run; one edit of the draft.

        Raises
        ------
        ParameterError
            If there are none.
        """
        self._sweep("algorithm", list(names))

    def set_ks(self, ks: Sequence[int]) -> None:
        """Say which ks are run; one edit of the draft.

        Raises
        ------
        ParameterError
            If there are none.
        """
        self._sweep("k", sorted(set(ks)))

    def _sweep(self, key: str, values: list[Any]) -> None:
        """One value stands in the step, several in the matrix, too."""
        if not values:
            raise ParameterError(f"at least one {key} is needed; choose one")
        matrix = dict(self.draft.get(("matrix",), {}))
        matrix.pop(f"anonymize.{key}", None)
        if len(values) > 1:
            matrix[f"anonymize.{key}"] = values
        self.draft.set_all(
            [
                (("steps", "anonymize", key), values[0]),
                (("matrix",), dict(sorted(matrix.items())) or None),
            ]
        )

    def _draft_changed(self, *events: param.parameterized.Event) -> None:
        self._refresh()

    def _refresh(self) -> None:
        """Everything that follows from the draft, in one go."""
        document = self.draft.document
        table = self.table
        columns = self.draft.get(("table", "columns"), {})
        if self.frame is None:
            table, self._column_problems, self._coded = None, ("no table is open; open one first",), None
        elif columns != self._coded:
            table, self._column_problems = code(self.frame, columns, self.draft.folder)
            self._coded = columns
        problems = self._column_problems
        if not problems and table is not None:
            problems = problems_of(self.draft, table, self.source)
        matrix = document.get("matrix") if isinstance(document.get("matrix"), dict) else {}
        self.param.update(
            table=table,
            problems=tuple(problems),
            algorithms=_listed(matrix, self.draft, "algorithm"),
            ks=_listed(matrix, self.draft, "k"),
        )

    # -------------------------------------------------------------------------------------- the runs

    def start(self) -> None:
        """Run every method with every k in the background; results arrive in ``runs`` one by one.

        Raises
        ------
        FlowError
            If something cannot work: then ``problems`` says what.
        """
        if self.running:
            return
        if self.problems:
            raise FlowError.collected("this cannot run", self.problems)
        assert self.table is not None
        flow = self.draft.flow()
        processors = os.cpu_count() or 1
        settings: dict[str, Any] = {"scheduler": self._scheduler}
        if self._scheduler == "threads":
            settings["workers"] = max(1, processors // min(len(flow.runs), self._line.slots))
        jobs = []
        for run in flow.runs:
            document = single_document(self.draft.document, run)
            alone = running_flow(document, self.draft.folder)
            jobs.append(Job(run, document, alone, self.table, settings, self.limits.seconds))
        self._over.clear()
        with self._lock:
            self._jobs, self._ended, self._began = jobs, 0, time.monotonic()
        self.param.update(running=True, progress={job.run.name: 0.0 for job in jobs}, status="Starting.")
        for job in jobs:
            job.ticket = self._line.join(id(self), self._work(job), self._tell)

    def _work(self, job: Job) -> Callable[[], None]:
        def work() -> None:
            result = job.work(self._tell)
            if job.stopped:
                self._freed()
            self._schedule(partial(self._end, job, result))

        return work

    def cancel(self) -> None:
        """Stop what runs and what waits; finished runs are kept."""
        for job in list(self._jobs):
            if not job.ended:
                job.cancel()
                # at once: what is still computed somewhere is nobody's any more
                self._schedule(partial(self._end, job, None))

    def wait(self, timeout: float | None = None) -> None:
        """Wait until nothing runs, from another thread than the one that `schedule` calls in.

        Raises
        ------
        TimeoutError
            If that takes longer than `timeout` seconds.
        """
        if not self._over.wait(timeout):
            raise TimeoutError("the runs are not over yet")

    def _tell(self) -> None:
        """From the threads of runs: show how far they are, but not too often."""
        now = time.monotonic()
        with self._lock:
            if now - self._told < PAUSE:
                return
            self._told = now
        self._schedule(self._show)

    def _show(self) -> None:
        with self._lock:
            if not self.running:
                return
            jobs = list(self._jobs)
            progress = {job.run.name: job.share for job in jobs}
            self.param.update(progress=progress, status=sentence(jobs))

    def _end(self, job: Job, result: engine.RunResult | None) -> None:
        """A job is over: its run is kept, and the last one says so."""
        with self._lock:
            if job.ended or job not in self._jobs:
                return
            job.ended = True
            changes: dict[str, Any] = {}
            if result is not None:
                job.share = 1.0
                self._ids += 1
                run = Run(
                    self._ids,
                    job.final_document(result),
                    job.seed,
                    replace(result, number=self._ids),
                    time.time(),
                )
                changes["runs"] = [*self.runs, run][-(self.limits.runs or 1_000_000) :]
                if self.chosen is None and run.result.anonymization is not None:
                    changes["chosen"] = run.id
            if all(one.ended for one in self._jobs):
                changes |= {
                    "running": False,
                    "progress": {},
                    "status": summary(self._jobs, time.monotonic() - self._began),
                }
            self.param.update(**changes)
        if not self.running:
            self._over.set()
        else:
            self._show()

    def choose(self, id: int) -> None:
        """Say which run is explored and published.

        Raises
        ------
        ParameterError
            If there is no such run.
        """
        self.run_of(id)
        self.chosen = id

    @property
    def chosen_run(self) -> Run | None:
        """The run that is explored and published; None where there is none with a result."""
        for run in self.runs:
            if run.id == self.chosen and run.result.anonymization is not None:
                return run
        return None

    def run_of(self, id: int) -> Run:
        """A finished run by its id.

        Raises
        ------
        ParameterError
            If there is no such run.
        """
        for run in self.runs:
            if run.id == id:
                return run
        raise ParameterError(f"there is no run {id}; choose one of the table of runs")

    def link(self) -> str:
        """The configuration as the query of a link (:func:`anonflow.dashboards.session.share_link.link`): no data in it."""
        return link(self.draft.document)

    def publish(self, id: int) -> Publication:
        """The release of a run, and all that goes with it; verified again, and empty if a check fails.

        Parameters
        ----------
        id : int

        Raises
        ------
        ParameterError
            If there is no such run, or it has no result.
        AnonflowError
            If it cannot be drawn.
        """
        run = self.run_of(id)
        return publication(run.document, run.seed, run.result, self.draft.folder)

    def aside(self, work: Callable[[], None]) -> None:
        """Have `work` done in a thread of its own, in line with the runs of everybody."""
        self._line.join(id(self), work, lambda: None)

    def later(self, change: Callable[[], None]) -> None:
        """Have `change` called where params may change; for work of a screen that ends in another thread."""
        self._schedule(change)

    # --------------------------------------------------------------------------------------- the end

    def close(self) -> None:
        """Stop everything and delete this workspace's folder, uploads and all."""
        with param.parameterized.discard_events(self):  # whoever looked is gone
            self._abandon()
            self.param.update(frame=None, table=None, runs=[], chosen=None)
        self._line.forget(id(self))
        self._delete()


def _listed(matrix: Any, draft: Draft, key: str) -> list[Any]:
    values = matrix.get(f"anonymize.{key}")
    if isinstance(values, list):
        return list(values)
    one = draft.get(("steps", "anonymize", key))
    return [] if one is None else [one]
