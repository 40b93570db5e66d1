"""The runs of one start: they run one after the other, report their progress, and are kept when they end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from anonflow import engine
from anonflow.dashboards.work import fair_queue
from anonflow.dashboards.work.fair_queue import FairQueue
from anonflow.dashboards.work.jobs import Job

PAUSE = 0.1
"""Seconds between two updates of the progress."""

TICK = 1.0
"""Seconds after which the progress is shown again without an event, so that the user sees that the run is alive."""


class JobGroup:
    """Some jobs that were started together.

    Invariant: after :meth:`abandon` neither `progressed` nor `ended` is called.

    Parameters
    ----------
    schedule : callable
        Takes a callable and has it called where params may change.
    freed : callable
        Called when a job was stopped, and may still occupy a worker.
    progressed : callable
        ``progressed(batch)``, through `schedule`: some job is further, but not too often.
    ended : callable
        ``ended(batch, job, result)``, through `schedule`, once for each job; the result is None if it was cancelled.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        schedule: Callable[[Callable[[], None]], None],
        freed: Callable[[], None],
        progressed: Callable[[JobGroup], None],
        ended: Callable[[JobGroup, Job, engine.RunResult | None], None],
    ) -> None:
        self.jobs = tuple(jobs)
        self._schedule = schedule
        self._freed = freed
        self._progressed = progressed
        self._ended = ended
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._abandoned = False
        self._last_shown = 0.0
        self._began = time.monotonic()

    @property
    def is_over(self) -> bool:
        """Whether every job has ended."""
        return all(job.ended for job in self.jobs)

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._began

    def start(self, line: FairQueue, owner: int) -> None:
        """Join the queue: the jobs run when it is the user's turn."""
        for job in self.jobs:
            job.ticket = line.join(owner, partial(self._work, job), self._tell)
        fair_queue.begin_thread(self._tick, "anonflow-progress")
        self._schedule(self._show)  # a place in the queue can be told once its ticket is here

    def cancel(self) -> None:
        """Stop running and waiting jobs; finished ones are kept."""
        for job in self.jobs:
            if not job.ended:
                job.cancel()
                # at once: what is still computed somewhere is nobody's any more
                self._schedule(partial(self._end, job, None))

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
        self._schedule(partial(self._end, job, result))

    def _tick(self) -> None:
        while not self._over.wait(TICK):
            if any(job.begun and not job.ended for job in self.jobs):
                self._tell()

    def _tell(self) -> None:
        """From the threads of jobs: show how far they are, but not too often."""
        now = time.monotonic()
        with self._lock:
            if now - self._last_shown < PAUSE:
                return
            self._last_shown = now
        self._schedule(self._show)

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
            self._ended(self, job, result)
            over = self.is_over  # asked here: the next job may have ended, and not been told, right after
        if over:
            self._over.set()
        else:
            self._show()
