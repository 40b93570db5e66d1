"""The same graph on threads, on local processes, or on a running cluster; results arrive one by one."""

from __future__ import annotations

import logging
import os
import queue
import re
import secrets
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import resource_tracker
from typing import Any

from anonflow.engine.execution import tasks
from anonflow.engine.execution.events import Cancelled, EventStream
from anonflow.engine.execution.fusing import batched, fused, is_task
from anonflow.engine.execution.trust import guarded, security_of
from anonflow.engine.flows.spec import SCHEDULER
from anonflow.errors import AnonflowError

__all__ = ["Crew", "is_scheduler", "stream"]

READY = 180
"""Seconds that worker processes have to start and import the package."""

CONNECT = 10
"""Seconds that a running cluster has to answer."""

TOGETHER = "7d"
"""Flows that share a cluster take turns, partition by partition; otherwise all of the first come first."""

AHEAD = 4
"""Tasks that each worker is given before it is known how long they take."""

BRIEF = 0.2
"""Seconds that tasks may take that are sent together."""

TOGETHER_MOST = 64
"""Tasks that are sent together, at most."""

LOST = 1
"""A partition may take so many local workers down with it; after one more it is tried alone."""

TRIED = 3
"""When so many partitions were given up that had been tried alone, no more are tried: the workers are too small."""

Put = Callable[[tuple[str, Any]], None]
Job = tuple[Mapping[str, Any], tuple[str, ...]]


def is_scheduler(name: str) -> bool:
    """Whether that is a scheduler: threads, processes, or the address of a running one."""
    return re.fullmatch(SCHEDULER, name) is not None


def stream(
    graph: Mapping[str, Any],
    leaves: Sequence[str],
    scheduler: str,
    workers: int | None,
    events: EventStream,
    memory: int | None = None,
) -> Iterator[tuple[str, Any]]:
    """Compute one graph and give its results as they arrive, in any order.

    Parameters
    ----------
    graph : mapping
    leaves : sequence of str
        Keys of the results.
    scheduler, workers, events, memory
        As :class:`Crew` takes them.

    Yields
    ------
    (str, object)
        Key and result.

    Raises
    ------
    Cancelled
        If the run was cancelled.
    AnonflowError
        If workers cannot be had, the cluster is lost, or a partition ends one worker after another.
    """
    with Crew(scheduler, workers, events, memory) as crew:
        yield from crew.stream(graph, leaves)


class Crew:
    """Workers that compute one graph after another.

    Parameters
    ----------
    scheduler : {"threads", "processes"} or str
        Or the address of a running Dask scheduler, such as ``tcp://10.0.0.5:8786``.
    workers : int, optional
        As many as there are processors without it; a running cluster has its own.
    events : EventStream
        Listened to for being cancelled.
    memory : int, optional
        Bytes that each local process may use: one that uses more is ended, and another takes its place.

    Notes
    -----
    Nothing starts before the first graph that has leaves. The workers belong to a thread of their own, which
    computes one graph at a time and ends with the crew.
    """

    def __init__(
        self, scheduler: str, workers: int | None, events: EventStream, memory: int | None = None
    ) -> None:
        self._scheduler = scheduler
        self._count = workers or os.cpu_count() or 1
        self._events = events
        self._memory = memory
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._arrived: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._left = 0

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *rest: object) -> None:
        self._stop.set()
        self._jobs.put(None)
        if self._thread is not None:
            # processes must be gone before we are; a running kernel on a thread cannot be stopped, so is not
            # waited for when something went wrong
            self._thread.join(timeout=2.0 if self._scheduler == "threads" and self._left else None)

    def stream(self, graph: Mapping[str, Any], leaves: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Compute a graph and give its results as they arrive, in any order.

        Parameters
        ----------
        graph : mapping
        leaves : sequence of str
            Keys of the results.

        Yields
        ------
        (str, object)
            Key and result.

        Raises
        ------
        Cancelled
            If the run was cancelled.
        AnonflowError
            If workers cannot be had, the cluster is lost, or a partition ends one worker after another.
        """
        if not leaves:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="anonflow-scheduler", daemon=True)
            self._thread.start()
        self._left = len(leaves)
        self._jobs.put((fused(graph, leaves), tuple(leaves)))
        while self._left:
            try:
                key, result = self._arrived.get(timeout=0.1)
            except queue.Empty:
                self._events.check()
                continue
            self._events.check()
            if not key:
                raise result
            self._left -= 1
            yield key, result

    def _work(self) -> None:
        try:
            if self._scheduler == "threads":
                self._on_threads()
            elif self._scheduler == "processes":
                self._on_processes()
            else:
                self._on_cluster()
        except BaseException as error:
            self._arrived.put(("", error))

    def _on_threads(self) -> None:
        pool = ThreadPoolExecutor(self._count, thread_name_prefix="anonflow")
        try:
            for graph, leaves in iter(self._jobs.get, None):
                _compute_on(pool, graph, leaves, self._arrived.put, self._stop)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _on_processes(self) -> None:
        import dask
        from distributed import LocalCluster

        # Ctrl-C reaches every process of the terminal. It is this process that ends the others; they, and the
        # threads that start them, inherit from this thread that it is none of their business.
        resource_tracker.ensure_running()  # its start would lift the mask again
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        settings = {
            # the whole coded table is one node of the graph, and meant to be
            "distributed.admin.large-graph-warning-threshold": "100GB",
            # what a task holds is not Dask's to write to disk; who was given a limit is ended above it
            "distributed.worker.memory.target": False,
            "distributed.worker.memory.spill": False,
            "distributed.worker.memory.pause": False,
            "distributed.worker.memory.terminate": False if self._memory is None else 0.99,
            "distributed.scheduler.allowed-failures": LOST,
        }
        more: dict[str, Any] = {} if self._memory is None else {"memory_limit": self._memory}
        with (
            dask.config.set(settings),
            LocalCluster(
                n_workers=self._count,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",  # without a host it would answer the whole network
                silence_logs=logging.CRITICAL,
                **guarded(),
                **more,
            ) as cluster,
        ):
            self._with_client(cluster)

    def _on_cluster(self) -> None:
        import dask
        import distributed  # noqa: F401  (its defaults must be there before they are overruled)

        # the client's own words about a lost connection are not for the user
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "100GB"}):
            self._with_client(self._scheduler)

    def _with_client(self, where: Any) -> None:
        from distributed import Client

        try:
            client = Client(where, timeout=CONNECT, set_as_default=False, security=security_of(where))
        except (OSError, TimeoutError, ValueError):
            raise AnonflowError(
                f"{where}: no scheduler answers there in {CONNECT} seconds; start one with 'dask scheduler', "
                "or use the scheduler threads"
            ) from None
        with client:
            _must_be_ready(client)
            if client.dashboard_link:
                self._events.log(f"the cluster's own dashboard: {client.dashboard_link}")
            for graph, leaves in iter(self._jobs.get, None):
                _compute(client, where, graph, leaves, self._arrived.put, self._stop)


def _compute_on(
    pool: ThreadPoolExecutor, graph: Mapping[str, Any], leaves: Sequence[str], put: Put, stop: threading.Event
) -> None:
    """Compute a graph on threads and put down each result when it is there."""
    from dask.callbacks import Callback
    from dask.threaded import get

    wanted = set(leaves)

    def finished(key: str, result: Any, *rest: Any) -> None:
        if stop.is_set():
            raise Cancelled("cancelled")
        if key in wanted:
            put((key, result))

    get(dict(graph), list(leaves), pool=pool, callbacks=[Callback(posttask=finished)._callback])


def _compute(
    client: Any, where: Any, graph: Mapping[str, Any], leaves: Sequence[str], put: Put, stop: threading.Event
) -> None:
    """Send a graph to a cluster and put down each result when it is there.

    What waits on a worker that ends is blamed for it as well as what ran there. So a partition that lost too many
    workers is tried once more with nothing beside it, and given up only if it then ends them again.
    """
    given_up = 0
    for name in list(_gather(client, where, graph, leaves, put, stop)):
        if given_up == TRIED:
            put((name, tasks.given_up(alone=False)))
        elif list(_gather(client, where, graph, (name,), put, stop)):
            put((name, tasks.given_up(alone=True)))
            given_up += 1


def _gather(
    client: Any, where: Any, graph: Mapping[str, Any], leaves: Sequence[str], put: Put, stop: threading.Event
) -> Iterator[str]:
    """Compute a graph; the names of the results that it does not have because workers ended, one after another.

    A few tasks go first. How long they take says how many of the others are sent, and answered, together.
    """
    from concurrent.futures import CancelledError

    from distributed.comm import CommClosedError
    from distributed.scheduler import KilledWorker

    workers = max(1, sum(client.nthreads().values()))
    rest = list(leaves)
    first, rest = rest[: AHEAD * workers], rest[AHEAD * workers :]
    sent = _Sent(client, graph)
    sent.send([(name,) for name in first])
    took: list[float] = []
    while sent.left or rest:
        if stop.is_set():
            client.cancel(sent.futures, force=True)
            return
        if client.status not in ("running", "connecting"):
            raise _lost(where)
        if rest and (len(took) >= 2 * workers or not sent.left):
            most = max(1, min(TOGETHER_MOST, len(rest) // (AHEAD * workers)))
            size = max(1, min(most, int(BRIEF / max(min(took, default=BRIEF), 1e-6))))
            sent.send([tuple(rest[at : at + size]) for at in range(0, len(rest), size)])
            rest = []
        if not sent.waiting.has_ready():
            stop.wait(0.02)
            continue
        sent.left -= 1
        try:
            future, result = next(sent.waiting)
            if future.status == "error":
                future.result(timeout=READY)
        except KilledWorker:
            yield from sent.names[future.key]
            continue
        except (CancelledError, CommClosedError, TimeoutError, OSError):
            raise _lost(where) from None
        if isinstance(result, CancelledError):
            raise _lost(where)
        seconds, results = result
        names = sent.names[future.key]
        took.append(seconds / len(names))
        for each in zip(names, results, strict=True):
            put(each)
        future.release()


class _Sent:
    """What a cluster was given to do, and has not answered yet."""

    def __init__(self, client: Any, graph: Mapping[str, Any]) -> None:
        from distributed import as_completed

        self._client = client
        self._graph = graph
        self.waiting = as_completed([], loop=client.loop, with_results=True, raise_errors=False)
        self.futures: list[Any] = []
        self.names: dict[str, tuple[str, ...]] = {}
        self.left = 0

    def send(self, groups: Sequence[tuple[str, ...]]) -> None:
        """Send tasks, those of a group as one."""
        # names of an earlier run of the same flow may still be known to a cluster that others use, too
        mark = secrets.token_hex(4)
        batches = {f"batch-{number}": batched(self._graph, group) for number, group in enumerate(groups)}
        own = _renamed(fused({**self._graph, **batches}, tuple(batches)), mark)
        keys = [_own(name, mark) for name in batches]
        futures = self._client.get(own, keys, sync=False, fifo_timeout=TOGETHER)
        self.names |= {future.key: group for future, group in zip(futures, groups, strict=True)}
        self.futures += futures
        self.left += len(futures)
        self.waiting.update(futures)


def _own(name: str, mark: str) -> str:
    return f"{mark}-{name}"


def _renamed(graph: Mapping[str, Any], mark: str) -> dict[str, Any]:
    """The same graph under names that no other run has."""

    def told(part: Any) -> Any:
        return _own(part, mark) if isinstance(part, str) and part in graph else part

    return {
        _own(name, mark): tuple(told(part) for part in task) if is_task(task) else task
        for name, task in graph.items()
    }


def _lost(where: Any) -> AnonflowError:
    name = where if isinstance(where, str) else "the local cluster"
    return AnonflowError(
        f"{name}: the cluster is lost; nothing was published. Run the flow again: it goes on where it stopped"
    )


def _must_be_ready(client: Any) -> None:
    """A worker that cannot import the tasks answers nothing at all, not even with an error."""
    try:
        # before whatever else waits: others may keep the workers busy for longer than this waits
        client.submit(tasks.ready, pure=False, priority=1).result(timeout=READY)
    except (TimeoutError, ImportError, AttributeError):
        raise AnonflowError(
            f"the worker processes gave no answer in {READY} seconds; "
            "see that anonflow can be imported where they run, or use the scheduler threads"
        ) from None
