"""The shared state of the steps of one run of a flow: its seed, owner's folder, clock and messages."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TypeVar

from anonflow.algorithms.budget import AUTO, Choice
from anonflow.algorithms.registry import algorithm_named
from anonflow.engine.execution.events import EventStream, StepDone, StepStarted
from anonflow.engine.execution.schedulers import checked_workers, is_scheduler
from anonflow.engine.flows.fingerprint import Fingerprint
from anonflow.engine.flows.flow import Flow
from anonflow.engine.owner import record
from anonflow.engine.owner.folder import START_OVER, OwnerFolder
from anonflow.engine.owner.resume import ResumeStore, StoredResults
from anonflow.errors import ParameterError
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.release.randomness import GUESSABLE, checked_seed, seed_can_be_guessed
from anonflow.system import release_memory
from anonflow.threads import default_threads

LEAST = 640 << 20
"""Bytes that a worker process must be allowed: one that has loaded the package holds 342 MiB, and one that compiled and
ran nine of the methods on tables of 200 records 560 MiB at the most; it is ended at 99% of what it is allowed."""

Result = TypeVar("Result")


def checked_executor(flow: Flow, scheduler: str | None, workers: int | None) -> tuple[str, int | None]:
    """Return the scheduler and the number of workers of a run; None for those that the flow names.

    Raises
    ------
    ParameterError
        If they cannot be used.
    """
    scheduler = scheduler or flow.spec.run.scheduler
    if not is_scheduler(scheduler):
        raise ParameterError(
            "unknown scheduler; known are threads, processes, and an address such as tcp://HOST:8786"
        )
    memory = flow.spec.run.memory_bytes
    if scheduler == "processes" and memory is not None and memory < LEAST:
        raise ParameterError(
            f"run: memory: {flow.spec.run.memory} is less than a worker process takes before it starts to work; "
            f"give it at least {LEAST >> 20}MiB, or use the scheduler threads"
        )
    return scheduler, checked_workers(workers if workers is not None else flow.spec.run.workers)


def checked_keep(keep: float) -> float:
    """Return for how many seconds results are kept, checked.

    Raises
    ------
    ParameterError
        If it is no number, or below 0.
    """
    if isinstance(keep, bool) or not isinstance(keep, int | float) or not keep >= 0:
        raise ParameterError("keep is a number of seconds of at least 0")
    return float(keep)


class Session:
    """One run of a flow, from its check to its publication.

    Parameters
    ----------
    flow : Flow
    events : EventStream
    seed : int, bytes, str or None
    scheduler : str or None
    workers : int or None
    replay : path or None
    fresh : bool
    keep : float
        All as :func:`anonflow.engine.run` takes them.
    results : path or None
        Likewise.
    waiting : callable
        Called again and again while no result of a partition arrives.

    Attributes
    ----------
    flow : Flow
    events : EventStream
    seed : int
        The run's secret.
    owner : OwnerFolder or None
        None for a flow that did not come from a file.
    resume_store : StoredResults or None
        Of the partitions' results; None where nothing is kept.
    partition_workers : int
        How many workers solve partitions; a running cluster has its own.
    seconds : dict
        Step -> how long it took, and what tasks did of it.
    client_seconds : dict
        Step -> how long this process took for it, and how long its processors were at work.
    memory : int
        The most bytes that a worker used, as far as workers reported it.
    warnings : list of str
    releases : int
        How many releases the owner's folder had when this one was drawn.

    Raises
    ------
    ParameterError
        If a setting cannot be used.
    FlowError, DataError
        If what is to be replayed is another flow, or another source; if a file of the flow has changed since the run
        that is taken up.
    """

    def __init__(
        self,
        flow: Flow,
        events: EventStream,
        *,
        seed: int | bytes | str | None = None,
        scheduler: str | None = None,
        workers: int | None = None,
        replay: str | PathLike[str] | None = None,
        fresh: bool = False,
        keep: float = 0.0,
        results: Path | None = None,
        waiting: Callable[[], None] = lambda: None,
    ) -> None:
        self.flow = flow
        self.events = events
        self.waiting = waiting
        self.began = time.time()
        self.clock = time.perf_counter()
        self.scheduler, self.workers = checked_executor(flow, scheduler, workers)
        sizes = [run.partition.size for run in flow.runs] if self.scheduler == "threads" else [None]
        methods = {run.anonymize.algorithm for run in flow.runs}
        together = all(name != AUTO and algorithm_named(name).together is not None for name in methods)
        self.partition_workers = self.workers or default_threads(sizes, together)
        self.owner = OwnerFolder(flow.owner_folder) if flow.path is not None else None
        self.replayed = replay is not None
        if replay is not None:
            if seed is not None:
                raise ParameterError("a replay takes its seed from the owner's folder; leave the seed out")
            seed = record.replayed_seed(flow, OwnerFolder(replay), self.fingerprint)
        earlier = {} if replay is None else record.replayed_choices(OwnerFolder(replay))
        guessable = seed is not None and replay is None and seed_can_be_guessed(seed)
        if seed is not None:
            seed = checked_seed(seed)
        keep = checked_keep(keep)
        self.warnings: list[str] = []
        self.releases = 0
        if guessable:
            self.warn(GUESSABLE)
        # a replay shows that the result is the same again, so it repeats everything
        self.resume_store: StoredResults | None = None
        if self.owner is not None and not self.replayed:
            store = ResumeStore(flow, self.owner, fresh, keep, self.warn, lambda: self.fingerprint)
            seed, earlier = store.seed(seed), store.choices
            self.resume_store = store
        elif results is not None:
            self.resume_store = StoredResults(results, lambda: f"{self.seed:x}".encode(), self.warn)
        self.earlier = earlier
        self.choices: dict[int, Choice] = {}
        self.seed = int.from_bytes(os.urandom(16), "big") if seed is None else seed
        self.seconds: dict[str, float] = {}
        self.client_seconds: dict[str, tuple[float, float]] = {}
        self.memory = 0

    @property
    def resumes_publication(self) -> bool:
        """Whether this run makes the release again whose publication was interrupted."""
        return self.resume_store is not None and self.resume_store.resumes_publication

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """The flow's files at the first use of this property."""
        return Fingerprint.of(self.flow)

    def before_publishing(self) -> None:
        """Stop here if the run was cancelled: after this, files are published, and a run that stops is resumed with its seed.

        Raises
        ------
        Cancelled
            If the run was cancelled.
        DataError
            If a file of the flow is no longer what was read.
        AnonflowError
            If its seed cannot be written down.
        """
        self.fingerprint.check(content=True)
        self.events.check()
        if self.resume_store is not None:
            self.resume_store.publishing(self.seed)
        self.events.publishing = True

    def refused(self) -> None:
        """Say that the same flow makes a release again that a check refused."""
        if self.resume_store is not None and self.resume_store.keeps_draw:
            self.warn(
                f"a check refused this release, and the same flow gives it again: to draw until one passes would bias the draw; change the flow, or {START_OVER}"
            )

    def step(self, name: str, work: Callable[[], Result], run: int | None = None) -> Result:
        """Run a step: announce it and measure its time.

        Parameters
        ----------
        name : str
        work : callable
        run : int, optional
            The run that the step is for; None for one that all runs share.

        Raises
        ------
        Cancelled
            If the run was cancelled.
        DataError
            If a file of the flow has changed since it was read.
        """
        self.events.check()
        if "fingerprint" in vars(self):
            self.fingerprint.check()
        self.events.emit(StepStarted(step=name, run=run))
        begin = clocks()
        result = work()
        release_memory()
        self.events.emit(StepDone(step=name, seconds=self.spent(name, begin), run=run))
        return result

    def timed(self, name: str, work: Callable[[], object]) -> float:
        """Measure the seconds of a part of the run that is announced elsewhere."""
        begin = clocks()
        work()
        return self.spent(name, begin)

    def spent(self, name: str, begin: tuple[float, float], of: str | None = None) -> float:
        """Add what has passed since some :func:`clocks` to a step, and take it off the step that it is a part of; return its seconds."""
        seconds, busy = (now - before for now, before in zip(clocks(), begin, strict=True))
        for step, sign in ((name, 1), *([] if of is None else [(of, -1)])):
            self.seconds[step] = self.seconds.get(step, 0.0) + sign * seconds
            earlier = self.client_seconds.get(step, (0.0, 0.0))
            self.client_seconds[step] = earlier[0] + sign * seconds, earlier[1] + sign * busy
        return seconds

    def used(self, memory: int) -> None:
        """Note how many bytes a worker has used at most."""
        self.memory = max(self.memory, memory)

    def tell_about(self, unnamed: Sequence[str], dropped: int, filtered: int = 0) -> None:
        """Report the columns and rows of the table that are not published."""
        if unnamed:
            self.warn(
                f"{plural(len(unnamed), 'column', 'are')} not named by the flow and not published: "
                + ", ".join(unnamed[:10])
                + (", ..." if len(unnamed) > 10 else "")
            )
        if filtered:
            self.warn(
                f"{plural(filtered, 'row', 'are')} left out by a filter under prepare, as the flow says"
            )
        if dropped:
            self.warn(
                f"{plural(dropped, 'record')} with a missing value {verb_of(dropped, 'are')} left out, as the flow says"
            )

    def warn(self, message: str) -> None:
        """Add a message to the report."""
        self.warnings.append(message)
        self.events.log(message, "warning")


def clocks() -> tuple[float, float]:
    """Return the seconds of two clocks: the wall's, and that of this process's processors."""
    return time.perf_counter(), time.process_time()
