"""The runs of the draft: each is a job in the engine, which has a result; those of one start report their progress together."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from anonflow import engine
from anonflow.algorithms.diversity.target import DIVERSITIES
from anonflow.criteria.guarantee import promises_classes
from anonflow.dashboards.session.draft_spec import DraftSpec, MethodSpec
from anonflow.dashboards.session.screen_words import on_screen
from anonflow.dashboards.work import fair_queue
from anonflow.dashboards.work.fair_queue import Ticket
from anonflow.dashboards.work.turns import Turns
from anonflow.engine.attempt import Attempt, Stage
from anonflow.engine.flows.spec import PartitionSpec, PublishSpec
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.kernels.jit import CompileTimer
from anonflow.table import Table

PAUSE = 0.1
"""Seconds between two updates of the progress."""

TICK = 1.0
"""Seconds after which the progress is shown again without an event, so that the user sees that the run is alive."""


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """A finished run."""

    id: int
    """Of this workspace."""
    spec: DraftSpec = field(repr=False)
    """The flow that repeats this run alone, given the seed."""
    seed: int = field(repr=False)
    """A secret."""
    result: engine.RunResult
    """Its anonymization is the owner's."""
    when: float
    """Seconds since 1970."""
    label: str = ""
    """The user's name for it; empty for its own name."""
    note: str = field(default="", repr=False)
    """The user's note."""
    pinned: bool = False
    """Whether it stands first, and stays when others go."""

    @property
    def name(self) -> str:
        """The name that the user gave the run; by default one such as ``greedy k=10``."""
        return self.label or self.result.name

    @property
    def ok(self) -> bool:
        """Whether there is a result and every check passed."""
        return self.result.ok

    @property
    def losses(self) -> dict[str, float]:
        """The mean loss (NCP) of each column of quasi-identifiers, each between 0 and 1."""
        return {column.column: column.loss for column in self.result.columns}

    def row(self) -> dict[str, Any]:
        """Return the run as a row of the table of runs, with its id and name first."""
        return {"id": self.id, "name": self.name, **self.result.row()}


class Job(Attempt):
    """One run of the draft: it waits, works, and ends.

    Parameters
    ----------
    run : anonflow.engine.Run
        Of the draft's flow.
    spec : DraftSpec
        The flow of this run alone, as it will be handed to the owner.
    flow : anonflow.engine.Flow
        What is run: the same without draw and publication.
    settings : dict
        How: ``scheduler`` and ``workers``, as :func:`anonflow.engine.start` takes them.
    seconds : float or None
        Cap on the run's time.
    seed : int, optional
        A secret; a new one without it.
    results : callable, optional
        Gives the folder of its partitions' results for its seed: those that are there are not computed again.
    """

    def __init__(
        self,
        run: engine.Run,
        spec: DraftSpec,
        flow: engine.Flow,
        table: Table,
        settings: dict[str, Any],
        seconds: float | None,
        seed: int | None = None,
        results: Callable[[int], Path] | None = None,
    ) -> None:
        seed = secrets.randbits(128) if seed is None else seed
        super().__init__(
            flow, run, table, seed, settings=settings, results=None if results is None else results(seed),
            seconds=seconds, words=on_screen,
        )  # fmt: skip
        self.spec = spec
        self.ticket: Ticket | None = None
        self.ended = False

    @property
    def doing(self) -> str:
        """Show the current step in a few words; the progress moves meanwhile."""
        if self.ended or self.share >= 1.0:
            return "done"
        if self.stage is Stage.WAITING:
            return "waiting"
        seconds = f"{perf_counter() - self.since:.0f} s"
        if self.stage is Stage.COMPILING:
            return f"compiling, once on this machine ({seconds})"
        stage = f"at work for {seconds}" if self.share <= 0.0 else f"{self.share:.0%} of its partitions"
        return "; ".join(filter(None, (stage, self.over_budget)))

    def cancel(self) -> None:
        """Stop as soon as possible; or never begin."""
        super().cancel()
        if self.ticket is not None:
            self.ticket.leave()

    @property
    def is_at_work(self) -> bool:
        """Whether it began, and its end was not told yet."""
        return self.stage is not Stage.WAITING and not self.ended

    @property
    def stopped(self) -> bool:
        """Whether it was ended from outside: a partition of it may still be computed somewhere."""
        return self.stage is not Stage.WAITING and self.stop is not None

    def final_spec(self, result: engine.RunResult) -> DraftSpec:
        """Return the flow that repeats a result: what a budget left open is what was chosen."""
        anon = result.anonymization
        if anon is None or "budget" not in anon.parameters:
            return self.spec
        options = {name: anon.parameters[name] for name in anon.algorithm.options if name in anon.parameters}
        method = self.spec.method.model_dump(include={"k", "loss", "boundaries"})
        step = MethodSpec(algorithm=anon.algorithm.name, **method, **options)
        cut = PartitionSpec(order=self.spec.partition.order, size=anon.parameters["partition_size"])
        return self.spec.with_steps(anonymize=step).model_copy(update={"partition": cut})


def running_flow(flow: engine.Flow, run: engine.Run, table: Table | None = None) -> engine.Flow:
    """Return what is run to compare: one run of a flow, without the draw, the attacks, the files, and what only a draw can show."""
    steps = flow.spec.steps
    criteria = steps.verify
    guarantee = run.anonymize.guarantee or run.anonymize.method.guarantee
    if not promises_classes(guarantee):
        # the diversity of what is not in classes is a property of the release
        criteria = tuple(
            request
            for request in criteria
            if (request.partition("=")[0] if isinstance(request, str) else next(iter(request), ""))
            not in DIVERSITIES
        )
    bare = steps.model_copy(
        update={"anonymize": run.anonymize, "draw": None, "attack": (), "verify": criteria}
    )
    spec = flow.spec.model_copy(
        update={"partition": run.partition, "steps": bare, "matrix": None, "publish": PublishSpec(), "target": None}
    )  # fmt: skip
    name = f"{run.anonymize.algorithm} k={run.anonymize.k}"
    alone = engine.Run(0, name, run.anonymize, run.partition)
    return replace(flow, spec=spec, runs=(alone,), published=None, target=None, space=None, table=table)


class JobGroup:
    """Some jobs that were started together.

    Invariant: after :meth:`abandon` neither `progressed` nor `ended` is called.

    Parameters
    ----------
    turns : Turns
        Of the user.
    freed : callable
        Called when a job was stopped, and may still occupy a worker.
    progressed : callable
        ``progressed(batch)``, on the event loop: some job is further, but not too often.
    ended : callable
        ``ended(batch, job, result)``, on the event loop, once for each job; the result is None if it was cancelled.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        turns: Turns,
        freed: Callable[[], None],
        progressed: Callable[[JobGroup], None],
        ended: Callable[[JobGroup, Job, engine.RunResult | None], None],
    ) -> None:
        self.jobs = tuple(jobs)
        self._turns = turns
        self._freed = freed
        self._progressed = progressed
        self._ended = ended
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._abandoned = False
        self._last_shown = 0.0
        self._began, self._compiler = time.monotonic(), CompileTimer()
        self.compiled = ""
        """Once the jobs are over: how long they took, and the compiler; empty if it had nothing to do."""

    @property
    def is_over(self) -> bool:
        """Whether every job has ended."""
        return all(job.ended for job in self.jobs)

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._began

    @property
    def compiling(self) -> str:
        """What of the seconds was to compile: in this process, or, as far as is known, in others."""
        return seconds_of_compiler(
            self._compiler.seconds or min(self.seconds, sum(job.compiled_in for job in self.jobs))
        )

    def start(self) -> None:
        """Join the queue: the jobs run when it is the user's turn."""
        for job in self.jobs:
            job.ticket = self._turns.aside(partial(self._work, job), self._tell)
        fair_queue.begin_thread(self._tick, "anonflow-progress")
        self._turns.later(self._show)  # a place in the queue can be told once its ticket is here

    def cancel(self) -> None:
        """Stop running and waiting jobs; finished ones are kept."""
        for job in self.jobs:
            if not job.ended:
                job.cancel()
                # at once: what is still computed somewhere is nobody's any more
                self._turns.later(partial(self._end, job, None))

    def abandon(self) -> None:
        """Stop without notifying listeners."""
        with self._lock:
            self._abandoned = True
        for job in self.jobs:
            if not job.ended:
                job.cancel()
        self._over.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until every job has ended and its listener was called; return whether that was within the timeout."""
        return self._over.wait(timeout)

    def _work(self, job: Job) -> None:
        result = job.result(lambda event: self._tell())
        if job.stopped:
            self._freed()
        self._turns.later(partial(self._end, job, result))

    def _tick(self) -> None:
        while not self._over.wait(TICK):
            if any(job.is_at_work for job in self.jobs):
                self._tell()

    def _tell(self) -> None:
        """From the threads of jobs: show how far they are, but not too often."""
        now = time.monotonic()
        with self._lock:
            if now - self._last_shown < PAUSE:
                return
            self._last_shown = now
        self._turns.later(self._show)

    def _show(self) -> None:
        with self._lock:
            if not self._abandoned and not self.is_over:
                self._progressed(self)

    def _end(self, job: Job, result: engine.RunResult | None) -> None:
        with self._lock:
            if job.ended or self._abandoned:
                return
            job.ended = True
            if result is not None:
                job.share = 1.0
            if self.is_over and self.compiling and not any(job.cancelled for job in self.jobs):
                self.compiled = summary(self)
            self._ended(self, job, result)
            over = self.is_over  # asked here: the next job may have ended, and not been told, right after
        if over:
            self._over.set()
        else:
            self._show()


def sentence(jobs: list[Job]) -> str:
    """Return the progress of the runs, in plain words."""
    progress = f"{sum(job.ended for job in jobs)} of {plural(len(jobs), 'run')} done."
    at_work = [f"{job.run.name} ({job.doing})" for job in jobs if job.is_at_work]
    if at_work:
        return f"Running {', '.join(at_work)}; {progress}"
    places = [job.ticket.place for job in jobs if job.ticket is not None and job.ticket.place >= 0]
    if places:
        return f"Waiting for a free processor: you are {_ordinal(min(places) + 1)} in the queue; {progress}"
    return progress


def over_budget(runs: Iterable[FinishedRun]) -> list[str]:
    """Return of each run whose budget of seconds no method keeps that this is so, and what was taken."""
    return [f"{run.name}: {run.result.over_budget}." for run in runs if run.result.over_budget]


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def seconds_of_compiler(seconds: float) -> str:
    """Return what of some seconds was to compile, as the end of a sentence about them; empty if that is nothing."""
    return f", {seconds:.1f} s of them to compile methods, once on this machine" if seconds >= 0.1 else ""


def summary(group: JobGroup) -> str:
    """Return how the runs ended."""
    jobs = group.jobs
    of = len(jobs)
    if any(job.cancelled for job in jobs):
        count = sum(job.share == 1.0 and not job.cancelled for job in jobs)
        if not count:
            return "Cancelled: no run was done."
        return (
            f"Cancelled: {count} of {of} runs {verb_of(count, 'were')} done and {verb_of(count, 'are')} kept."
        )
    return f"Done: {of} run{'s' if of > 1 else ''} in {group.seconds:.1f} s{group.compiling}."
