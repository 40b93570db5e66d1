"""The same graph on threads or on local processes; results arrive one by one."""

from __future__ import annotations

import logging
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import resource_tracker
from typing import Any

from anonflow.engine import tasks
from anonflow.engine.events import Cancelled, EventStream
from anonflow.errors import AnonflowError

__all__ = ["SCHEDULERS", "stream"]

SCHEDULERS = ("threads", "processes")

READY = 60
"""Seconds that worker processes have to start and import the package."""

Put = Callable[[tuple[str, Any]], None]


def stream(
    graph: Mapping[str, Any],
    leaves: Sequence[str],
    scheduler: str,
    workers: int | None,
    events: EventStream,
) -> Iterator[tuple[str, Any]]:
    """Compute a graph and give its results as they arrive, in any order.

    Parameters
    ----------
    graph : mapping
    leaves : sequence of str
        Keys of the results.
    scheduler : {"threads", "processes"}
    workers : int, optional
        As many as there are processors without it.
    events : EventStream
        Listened to for being cancelled.

    Yields
    ------
    (str, object)
        Key and result.

    Raises
    ------
    Cancelled
        If the run was cancelled.
    """
    arrived: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
    stop = threading.Event()
    compute = _on_threads if scheduler == "threads" else _on_processes
    count = workers or os.cpu_count() or 1

    def work() -> None:
        try:
            compute(graph, leaves, count, arrived.put, stop)
        except BaseException as error:
            arrived.put(("", error))

    thread = threading.Thread(target=work, name="anonflow-scheduler", daemon=True)
    thread.start()
    left = len(leaves)
    try:
        while left:
            try:
                key, result = arrived.get(timeout=0.1)
            except queue.Empty:
                events.check()
                continue
            events.check()
            if not key:
                raise result
            left -= 1
            yield key, result
    finally:
        stop.set()
        # processes must be gone before we are; a running kernel on a thread cannot be stopped, so is not
        # waited for when something went wrong
        thread.join(timeout=None if scheduler == "processes" or not left else 2.0)


def _on_threads(
    graph: Mapping[str, Any], leaves: Sequence[str], workers: int, put: Put, stop: threading.Event
) -> None:
    from dask.callbacks import Callback
    from dask.threaded import get

    wanted = set(leaves)

    def finished(key: str, result: Any, *rest: Any) -> None:
        if stop.is_set():
            raise Cancelled("cancelled")
        if key in wanted:
            put((key, result))

    pool = ThreadPoolExecutor(workers, thread_name_prefix="anonflow")
    try:
        get(dict(graph), list(leaves), pool=pool, callbacks=[Callback(posttask=finished)._callback])
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _on_processes(
    graph: Mapping[str, Any], leaves: Sequence[str], workers: int, put: Put, stop: threading.Event
) -> None:
    import dask
    from distributed import Client, LocalCluster, as_completed

    # Ctrl-C reaches every process of the terminal. It is this process that ends the others; they, and the
    # threads that start them, inherit from this thread that it is none of their business.
    resource_tracker.ensure_running()  # its start would lift the mask again
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    settings = {
        # the whole coded table is one node of the graph, and meant to be
        "distributed.admin.large-graph-warning-threshold": "100GB",
        "distributed.worker.memory.terminate": False,
        "distributed.scheduler.allowed-failures": 3,
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        _must_be_ready(client)
        futures = client.get(dict(graph), list(leaves), sync=False)
        names = {future.key: name for future, name in zip(futures, leaves, strict=True)}
        waiting = as_completed(futures, with_results=True, raise_errors=True)
        left = len(futures)
        while left:
            if stop.is_set():
                client.cancel(futures, force=True)
                return
            if not waiting.has_ready():
                stop.wait(0.02)
                continue
            future, result = next(waiting)
            put((names[future.key], result))
            left -= 1


def _must_be_ready(client: Any) -> None:
    """A worker that cannot import the tasks answers nothing at all, not even with an error."""
    try:
        client.submit(tasks.ready, pure=False).result(timeout=READY)
    except (TimeoutError, ImportError, AttributeError):
        raise AnonflowError(
            f"the worker processes gave no answer in {READY} seconds; "
            "see that anonflow can be imported where they run, or use the scheduler threads"
        ) from None
