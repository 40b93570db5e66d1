"""The worker processes that all sessions of a server share."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from anonflow.engine.execution.trust import guarded, known

LOG = logging.getLogger("anonflow.dashboards")

GRACE = 2.0
"""Seconds that a cancelled partition has to end by itself."""


class SharedCluster:
    """Worker processes on this machine, with one thread each, behind a Dask scheduler on the loopback interface.

    A kernel that runs cannot be stopped from outside, and Dask lets a cancelled task run on. So that it does not keep a
    worker from the others, :meth:`sweep` ends the workers that still compute what nobody wants any more; Dask starts
    them again.

    Attributes
    ----------
    address : str
        As :func:`anonflow.engine.start` takes it for a scheduler.
    """

    def __init__(self, workers: int) -> None:
        import dask
        from distributed import Client, LocalCluster

        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        self.workers = workers
        settings = {
            "distributed.admin.large-graph-warning-threshold": "100GB",
            "distributed.scheduler.worker-saturation": 1.0,
        }
        with dask.config.set(settings):
            self._cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
                **guarded(),
            )
        self.address: str = self._cluster.scheduler_address
        known(self.address, self._cluster.security)
        self._client = Client(self.address, set_as_default=False, security=self._cluster.security)
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    @property
    def healthy(self) -> bool:
        """Whether the scheduler is there, and a worker with it."""
        info = self._client.scheduler_info() if self._client.status == "running" else {}
        return bool(info.get("workers"))

    @property
    def memory(self) -> tuple[int, int]:
        """How many workers are there, and the bytes of memory that they hold, as they said last."""
        info = self._client.scheduler_info(n_workers=-1) if self._client.status == "running" else {}
        held = [worker.get("metrics", {}).get("memory", 0) for worker in info.get("workers", {}).values()]
        return len(held), int(sum(held))

    def warm(self) -> None:
        """Have every worker import what runs need, so that the first run does not."""
        threading.Thread(target=self._quietly, args=(self._import,), daemon=True).start()

    def sweep(self) -> None:
        """After a cancellation or a time limit: end, after a moment, the workers that still compute the task."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = threading.Timer(GRACE, self._quietly, (self._sweep,))
            self._timer.daemon = True
            self._timer.start()

    def _import(self) -> None:
        self._client.run(_import_all)

    def _sweep(self) -> None:
        stuck = [address for address, busy in self._client.run(_unwanted).items() if busy]
        if stuck:
            self._client.restart_workers(stuck, timeout=30, raise_for_error=False)

    def _quietly(self, work: Callable[[], None]) -> None:
        """Do `work`; log the type of its error only: the next job tries again, and a closed server needs nothing."""
        try:
            work()
        except Exception as error:
            if self._client.status == "running":
                LOG.warning("%s while the workers were looked after", type(error).__name__)

    def close(self) -> None:
        """End the workers."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
        with suppress(TimeoutError):
            self._client.close(timeout=5)
        try:
            self._cluster.close(timeout=10)
        except TimeoutError:  # what the server has to say of its end comes after this
            LOG.warning("the workers did not end in time; the system ends them with this process")


def _unwanted(dask_worker: Any) -> int:
    """Return, on a worker, how many cancelled tasks it still computes."""
    tasks = dask_worker.state.tasks.values()
    return sum(task.state == "cancelled" and task.previous == "executing" for task in tasks)


def _import_all() -> None:
    import anonflow.engine  # noqa: F401
    from anonflow.algorithms import registry  # noqa: F401
