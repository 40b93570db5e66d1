"""Check during a run whether a cluster has workers; without workers the run reports it, and waits."""

from __future__ import annotations

import time
from typing import Any

from anonflow.engine.duration import in_words
from anonflow.engine.execution.events import EventStream
from anonflow.errors import AnonflowError

LOOK = 1.0
"""Seconds between two checks."""

SILENT = 4.0
"""Seconds without a worker that are not reported: a local process that ended is started again."""

ANSWER = 5.0
"""Seconds that a scheduler has for its answer; without an answer nothing changes."""


class WorkerPresence:
    """The workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
    where : str
        The cluster's name for messages.
    wait : float
        Seconds that a cluster without workers is waited for.
    events : EventStream
        Called when there are no workers, and when there are workers again.

    Attributes
    ----------
    threads : int
        Threads of all workers when there were some; at least 1.
    there : bool
        Whether there were workers at the last check.
    seconds : float
        Total seconds with workers, as far as they were checked.
    """

    def __init__(self, client: Any, where: str, wait: float, events: EventStream) -> None:
        self._client = client
        self._where = where
        self._wait = wait
        self._events = events
        self._looked = -LOOK
        self._since: float | None = None
        self._reported = False
        self.threads = 1
        self.there = False
        self.seconds = 0.0

    def look(self) -> None:
        """See whether there are workers, at most once a second.

        Raises
        ------
        AnonflowError
            If there were none for too long.
        """
        now = time.monotonic()
        passed = now - self._looked
        if passed < LOOK or self._client.status != "running":
            return
        self._looked = now
        threads = self._ask()
        if threads is None:
            return
        self.there = threads > 0
        if self.there:
            if self._reported:
                self._events.log(f"{self._where}: the cluster has workers again")
            self._since, self._reported, self.threads = None, False, threads
            # what was between two looks far apart, as when the machine was suspended, is not known
            self.seconds += min(passed, 2 * LOOK)
            return
        self._since = now if self._since is None else self._since
        if now - self._since >= self._wait:
            raise AnonflowError(
                f"{self._where}: the cluster has no workers, and none came in {in_words(self._wait)}; nothing was "
                f"published. {self._advice()} and run the flow again: it continues where it stopped "
                "(run: {wait: 1h} waits longer)"
            )
        if not self._reported and now - self._since >= min(SILENT, self._wait / 2):
            self._reported = True
            self._events.log(
                f"{self._where}: the cluster has no workers; waiting {in_words(self._wait)} for one. {self._advice()}",
                "warning",
            )

    def _ask(self) -> int | None:
        """Return the threads of all workers; None if the scheduler does not answer."""
        client = self._client
        try:
            threads = client.sync(client.scheduler.ncores, callback_timeout=ANSWER)
        except (OSError, TimeoutError, AttributeError, RuntimeError):
            return None
        return sum(threads.values())

    def _advice(self) -> str:
        if "://" in self._where:
            return f"Start some with 'dask worker {self._where}'"
        return "See that processes may be started here"
