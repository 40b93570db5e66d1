"""Run tasks on threads, on local processes, or on a running cluster; results arrive one by one."""

from __future__ import annotations

import errno
import logging
import os
import pickle
import queue
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from anonflow.engine.execution import tasks
from anonflow.engine.execution.events import EventStream
from anonflow.engine.execution.presence import WorkerPresence
from anonflow.engine.execution.tasks import Failed
from anonflow.engine.execution.trust import guarded, security_of
from anonflow.engine.flows.spec import SCHEDULER
from anonflow.errors import BUG, AnonflowError
from anonflow.option import check_whole
from anonflow.system import block_interrupt, start_resource_tracker

READY = 180
"""Seconds that worker processes have to start and import the package."""

WAIT = 300.0
"""Default number of seconds to wait for a cluster without workers."""

CONNECT = 10
"""Seconds that a running cluster has to answer."""

TOGETHER = "7d"
"""Flows that share a cluster alternate, task by task; otherwise all tasks of the first flow would run first."""

AHEAD = 4
"""Tasks that each worker gets besides the running ones; further tasks are sent only after results."""

BRIEF = 0.2
"""The most seconds of calls that are sent together."""

TOGETHER_MOST = 64
"""The most calls that are sent together."""

NEVER = "365d"
"""Longer than any flow runs."""

_OPEN_FILES = (errno.EMFILE, errno.ENFILE)
"""The errors of a process, and of a system, with too many of them: every array in a file has one open."""

LOST = 1
"""The number of local workers that may end during a task; after one more, the task runs alone."""

TRIED = 3
"""After so many tasks failed although they ran alone, no more are tried: the workers are too small."""


def is_scheduler(name: Any) -> bool:
    """Return whether that is a scheduler: threads, processes, or the address of a running one."""
    return isinstance(name, str) and re.fullmatch(SCHEDULER, name) is not None


def checked_workers(workers: Any) -> int | None:
    """Return a number of workers; None for one for each processor.

    Raises
    ------
    ParameterError
        If it is no whole number in its range.
    """
    if workers is None:
        return None
    return check_whole(workers, 1, "workers is a number of at least 1 and at most 1024", most=1024)


@dataclass(frozen=True, eq=False)
class Call:
    """A function and its arguments. The scheduler neither reads nor logs them: they contain the seed.

    Attributes
    ----------
    function : callable
        Of a module, so that any worker process can import it.
    arguments : tuple
    label : str
        The steps that it does, as Dask's own dashboard shows them: words with dashes.
    key : object
        The sender's key of the call; it is not sent.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = field(repr=False)
    label: str = "task"
    key: Any = field(default=None, repr=False)

    def __call__(self, *shared: Any) -> Any:
        """Run the function; an error becomes the result."""
        try:
            return self.function(*shared, *self.arguments)
        except AnonflowError as error:
            return Failed(error, error.message)
        except FileNotFoundError:
            why = "a file of this run is gone, or out of this worker's reach"
            return Failed(
                AnonflowError(f"{why}; let all workers reach the owner's folder and run again"), why
            )
        except OSError as error:
            why = f"pieces of the table cannot be written to disk: {error.strerror or type(error).__name__}"
            room = (
                "allow more open files" if error.errno in _OPEN_FILES else "make room in the owner's folder"
            )
            return Failed(AnonflowError(f"{why}; {room} and run again"), why)
        except (
            Exception
        ) as error:  # any bug of a method: its message may contain a cell, so only its type is reported
            return tasks.bug(error)

    def done(self, *shared: Any) -> Any:
        """Do it here.

        Raises
        ------
        AnonflowError
            If it fails; the label says where.
        """
        result = self(*shared)
        if isinstance(result, Failed):
            raise raised(result, self.label)
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        return Call, (self.function, self.arguments, self.label)


@dataclass(eq=False)
class _Group:
    """Small calls that are sent, and answered, together.

    Once they are answered it is empty: Dask's client remembers for long what it was given.
    """

    calls: tuple[Call, ...]

    def __call__(self, *shared: Any) -> tuple[float, list[Any]]:
        """Return seconds, and the results."""
        begin = time.perf_counter()
        results = [call(*shared) for call in self.calls]
        return time.perf_counter() - begin, results


class _Packed:
    """An object as bytes, pickled here, so that an error is raised before Dask has it: Dask would wait for ever."""

    def __init__(self, value: Any, name: str) -> None:
        try:
            self._data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # pickling calls the object's own code, which may raise any exception
            raise AnonflowError(
                f"{name} cannot be sent to other processes ({type(error).__name__}); use the scheduler threads"
            ) from None

    def __repr__(self) -> str:
        return "_Packed()"

    def __call__(self, *shared: Any) -> Any:
        """Return the packed object; run it if it is a group of calls."""
        value = pickle.loads(self._data)
        return value(*shared) if isinstance(value, _Group) else value


@dataclass(frozen=True, eq=False)
class _Submission:
    """Calls, how many they are if that is known, and what all of them are given first."""

    calls: Iterable[Call]
    count: int | None
    shared: tuple[Any, ...]


@contextmanager
def _environment_kept() -> Iterator[None]:
    """Restore this process's environment: Dask writes settings for its workers into it and does not remove them."""
    import dask

    names = ["PYTHONHASHSEED", "__DASK_PARENT_PID", *dask.config.get("distributed.nanny.pre-spawn-environ")]
    before = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class Executor:
    """Workers that process one stream of calls after another.

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
    wait : float, optional
        Seconds to wait for a cluster without workers.

    Notes
    -----
    Nothing starts before the first call, or :meth:`begin`. The workers belong to a thread of their own, which does one stream at a time
    and ends with the executor. The number of open calls is bounded: new calls are created only when results have been taken.
    """

    def __init__(
        self,
        scheduler: str,
        workers: int | None,
        events: EventStream,
        memory: int | None = None,
        wait: float = WAIT,
    ) -> None:
        self._scheduler = scheduler
        self._count = workers or os.cpu_count() or 1
        self._events = events
        self._memory = memory
        self._wait = wait
        self._jobs: queue.SimpleQueue[_Submission | None] = queue.SimpleQueue()
        self._arrived: queue.SimpleQueue[tuple[Call | None, Any]] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._busy = False

    def __enter__(self) -> Executor:
        return self

    def __exit__(self, *rest: object) -> None:
        self._stop.set()
        self._jobs.put(None)
        if self._thread is not None:
            # processes must end before this process does; a running kernel on a thread cannot be stopped, so after an
            # error we do not wait for it
            self._thread.join(timeout=2.0 if self._scheduler == "threads" and self._busy else None)

    def begin(self) -> None:
        """Start the workers; if they do not start, the first stream says it."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="anonflow-scheduler", daemon=True)
            self._thread.start()

    def stream(
        self,
        calls: Iterable[Call],
        *shared: Any,
        count: int | None = None,
        waiting: Callable[[], None] = lambda: None,
    ) -> Iterator[tuple[Call, Any]]:
        """Run calls and yield their results as they arrive, in any order.

        Parameters
        ----------
        calls : iterable of Call
            Made one by one, in a thread of the executor's, when there is room.
        *shared
            The first arguments of every call; sent to each worker once.
        count : int, optional
            How many there are.
        waiting : callable, optional
            Called again and again while no result arrives.

        Yields
        ------
        (Call, object)
            The call and its result: :class:`~anonflow.engine.execution.tasks.Failed` if it has none.

        Raises
        ------
        Cancelled
            If the run was cancelled.
        AnonflowError
            If workers do not start, or the cluster is lost.
        """
        self.begin()
        self._busy = True
        self._jobs.put(_Submission(calls, count, shared))
        while True:
            try:
                call, result = self._arrived.get(timeout=0.1)
            except queue.Empty:
                self._events.check()
                waiting()
                continue
            self._events.check()
            if call is None:
                if result is not None:
                    raise result
                break
            yield call, result
        self._busy = False

    def all(self, calls: Sequence[Call], *shared: Any) -> list[Any]:
        """Return the results of some calls in their order; the first failure ends them.

        Raises
        ------
        AnonflowError
            If one failed.
        """
        numbered = [replace(call, key=at) for at, call in enumerate(calls)]
        answers: list[Any] = [None] * len(numbered)
        for at, result in self.answers(numbered, *shared, count=len(numbered)):
            answers[at] = result
        return answers

    def answers(
        self, calls: Iterable[Call], *shared: Any, count: int | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield the results of calls whose keys are their numbers, as they arrive; the first failure ends them.

        Raises
        ------
        AnonflowError
            If one failed.
        """
        for call, result in self.stream(calls, *shared, count=count):
            if isinstance(result, Failed):
                of = "" if count is None else f" of {count}"
                raise raised(result, f"{call.function.__name__.replace('_', ' ')} {call.key}{of}")
            yield call.key, result

    def _work(self) -> None:
        try:
            if self._scheduler == "threads":
                self._on_threads()
            elif self._scheduler == "processes":
                self._on_processes()
            else:
                self._on_cluster()
        except BaseException as error:  # whoever takes the results raises it: in this thread nobody would
            self._arrived.put((None, error))

    def _put(self, call: Call, result: Any) -> None:
        self._arrived.put((call, result))

    def _has_room(self, under_way: int, most: int) -> bool:
        """Return whether another task may be sent: results that were not taken yet count, too."""
        return under_way + self._arrived.qsize() < most

    def _on_threads(self) -> None:
        most = AHEAD * self._count
        under_way = threading.Semaphore(most)

        def work(call: Call, shared: tuple[Any, ...]) -> None:
            try:
                if not self._stop.is_set():
                    self._put(call, call(*shared))
            except BaseException as error:  # likewise
                self._arrived.put((None, error))
            finally:
                under_way.release()

        pool = ThreadPoolExecutor(self._count, thread_name_prefix="anonflow")
        try:
            for job in iter(self._jobs.get, None):
                for call in job.calls:
                    while not (self._has_room(0, most) and under_way.acquire(timeout=0.02)):
                        if self._stop.wait(0.001):
                            return
                    pool.submit(work, call, job.shared)
                for _ in range(most):  # until all are done
                    while not under_way.acquire(timeout=0.1):
                        if self._stop.is_set():
                            return
                # taken only to wait for the end: the next stream needs them
                under_way.release(most)
                self._arrived.put((None, None))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _on_processes(self) -> None:
        import dask
        from distributed import LocalCluster

        # Ctrl-C reaches every process of the terminal. It is this process that ends the others; they, and the
        # threads that start them, inherit from this thread that they should ignore it.
        start_resource_tracker()  # its start would lift the mask again
        block_interrupt()
        settings = {
            # the whole coded table is one node of the graph, on purpose
            "distributed.admin.large-graph-warning-threshold": "100GB",
            # messages contain the tasks' arguments, and Dask would keep them for debugging
            "distributed.admin.low-level-log-length": 10,
            # Dask must not write a task's data to disk; a worker with a limit is ended above it
            "distributed.worker.memory.target": False,
            "distributed.worker.memory.spill": False,
            "distributed.worker.memory.pause": False,
            "distributed.worker.memory.terminate": False if self._memory is None else 0.99,
            "distributed.scheduler.allowed-failures": LOST,
            # a worker that ended is started again by its nanny; Dask dismisses both if that takes longer than this
            "distributed.deploy.lost-worker-timeout": NEVER,
            # anonflow gives the same warning; a worker would write it to the terminal
            "distributed.nanny.pre-spawn-environ.PYTHONWARNINGS": "ignore",
        }
        limits: dict[str, Any] = {} if self._memory is None else {"memory_limit": self._memory}
        with dask.config.set(settings), _environment_kept(), ExitStack() as stack:
            try:
                cluster = stack.enter_context(
                    LocalCluster(
                        n_workers=self._count,
                        threads_per_worker=1,
                        processes=True,
                        dashboard_address="127.0.0.1:0",  # without a host it would listen on the whole network
                        silence_logs=logging.CRITICAL,
                        **guarded(),
                        **limits,
                    )
                )
            except (
                OSError,
                RuntimeError,
            ):  # Dask raises the latter for a process that ended while it started
                raise AnonflowError(
                    "the worker processes cannot be started; use fewer of them, or the scheduler threads; a script "
                    "starts a run below \"if __name__ == '__main__':\""
                ) from None
            self._with_client(cluster)

    def _on_cluster(self) -> None:
        import dask
        import distributed  # noqa: F401  (its defaults must be there before they are overruled)

        # the client's own messages about a lost connection are not for the user; its loggers have levels of their own
        for name in ("distributed", *logging.root.manager.loggerDict):
            if name.partition(".")[0] == "distributed":
                logging.getLogger(name).setLevel(logging.CRITICAL)
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
            presence = WorkerPresence(client, _cluster_name(where), self._wait, self._events)
            if not self._is_ready(client, where, presence):
                return
            if client.dashboard_link:
                self._events.log(f"the cluster's own dashboard: {client.dashboard_link}")
            for job in iter(self._jobs.get, None):
                self._on_client(client, where, job, presence)
                self._arrived.put((None, None))

    def _is_ready(self, client: Any, where: Any, presence: WorkerPresence) -> bool:
        """Wait until a worker answers; return False if the result is no longer needed.

        A worker that cannot import the tasks answers nothing at all, not even with an error.
        """
        from distributed import TimeoutError as NoAnswer

        answer = None
        while presence.seconds < READY:
            if self._stop.is_set():
                return False
            if client.status not in ("running", "connecting"):
                raise _lost(where)
            presence.look()
            if not presence.there:
                self._stop.wait(0.1)
                continue
            if answer is None:
                # before all waiting tasks: others may keep the workers busy for longer than we wait
                answer = client.submit(tasks.ready, pure=False, priority=1)
            if not answer.done():
                # asked for with a short time limit, its result may be neither there nor late (distributed issue 8514)
                self._stop.wait(0.1)
                continue
            try:
                answer.result(timeout=CONNECT)
            except (TimeoutError, NoAnswer):
                continue
            except (ImportError, AttributeError):
                break
            return True
        raise AnonflowError(
            f"the worker processes did not answer within {READY} seconds; "
            "see that anonflow can be imported where they run, or use the scheduler threads"
        )

    def _on_client(self, client: Any, where: Any, job: _Submission, presence: WorkerPresence) -> None:
        """Send calls to a cluster, and store each result when it arrives.

        Dask counts the end of a worker against its waiting tasks, too, not only the running ones. So a call that lost
        too many workers runs once more alone, and fails only if it then ends workers again.
        """
        # the task that hands it on has it: it is made again where it was lost with its worker
        shared = [
            client.submit(
                _Packed(argument, f"a {type(argument).__name__}"),
                # a name of its own: Dask would take a known one for the same value
                key=f"shared-{number}-{secrets.token_hex(4)}",
            )
            for number, argument in enumerate(job.shared)
        ]
        given_up = 0
        # alone means that all others have their results: none of them loses a worker by it
        for call in list(self._gather(client, where, job.calls, shared, job.count, presence)):
            if given_up == TRIED:
                self._put(call, tasks.given_up(alone=False))
            elif list(self._gather(client, where, (call,), shared, 1, presence)):
                self._put(call, tasks.given_up(alone=True))
                given_up += 1

    def _gather(
        self,
        client: Any,
        where: Any,
        calls: Iterable[Call],
        shared: list[Any],
        count: int | None,
        presence: WorkerPresence,
    ) -> Iterator[Call]:
        """Run calls; yield those that have no result because workers ended, one after another.

        A few go alone first. How long they take says how many of the others are sent, and answered, together.
        """
        from concurrent.futures import CancelledError

        from distributed.comm import CommClosedError

        flights = _Sent(client, shared)
        coming, exhausted, calls_left = iter(calls), False, count
        fastest, answered = BRIEF, 0
        while True:
            if self._stop.is_set():
                flights.cancel()
                return
            if client.status not in ("running", "connecting"):
                raise _lost(where)
            presence.look()
            workers = presence.threads
            while not exhausted and self._has_room(len(flights), AHEAD * workers):
                size = 1
                if answered >= 2 * workers:
                    most = TOGETHER_MOST if calls_left is None else calls_left // (AHEAD * workers)
                    size = max(1, min(TOGETHER_MOST, most, int(BRIEF / max(fastest, 1e-6))))
                group = tuple(islice(coming, size))
                if not group:
                    exhausted = True
                    break
                calls_left = None if calls_left is None else calls_left - len(group)
                try:
                    flights.send(group)
                except AnonflowError as error:
                    for call in group:
                        self._put(call, Failed(error, error.message))
            if exhausted and not len(flights):
                return
            if not flights.has_ready():
                self._stop.wait(0.005)
                continue
            try:
                group, result = flights.take()
            except (CancelledError, CommClosedError, TimeoutError, OSError):
                raise _lost(where) from None
            if isinstance(result, CancelledError):
                raise _lost(where)
            if result is None:
                yield from group
                continue
            seconds, results = result
            fastest = min(fastest, seconds / len(group))
            answered += 1
            for call, call_result in zip(group, results, strict=True):
                self._put(call, call_result)


class _Sent:
    """The tasks that were sent to a cluster and have no result yet."""

    def __init__(self, client: Any, shared: list[Any]) -> None:
        from distributed import as_completed

        self._client = client
        self._shared = shared
        self._waiting = as_completed([], loop=client.loop, with_results=True, raise_errors=False)
        self._futures: dict[str, tuple[Any, _Group]] = {}

    def __len__(self) -> int:
        return len(self._futures)

    def send(self, group: tuple[Call, ...]) -> None:
        """Send calls as one task. Its name is one that no other flow on the cluster has, and its label the steps.

        Raises
        ------
        AnonflowError
            If they cannot be sent.
        """
        key = f"{group[0].label}-{secrets.randbits(64)}"
        flight = _Group(group)
        packed = _Packed(flight, f"what {group[0].function.__name__.replace('_', ' ')} needs")
        future = self._client.submit(packed, *self._shared, key=key, pure=False, fifo_timeout=TOGETHER)
        self._futures[key] = future, flight
        self._waiting.add(future)

    def has_ready(self) -> bool:
        """Return whether there is an answer."""
        return bool(self._waiting.has_ready())

    def take(self) -> tuple[tuple[Call, ...], Any]:
        """Return calls, and their seconds and results; None if the workers that they were given to ended."""
        from distributed.scheduler import KilledWorker

        future, result = next(self._waiting)
        _, flight = self._futures.pop(future.key)
        group, flight.calls = flight.calls, ()
        if future.status == "error":
            try:
                # raises what went wrong: only the end of workers is handled here
                future.result(timeout=READY)
            except KilledWorker:
                return group, None
        future.release()
        return group, result

    def cancel(self) -> None:
        """Cancel all open tasks."""
        self._client.cancel([future for future, _ in self._futures.values()], force=True)


def raised(failed: Failed, where: str) -> AnonflowError:
    """Return the error of a task; it names the task, unless the user caused it."""
    if failed.error is not None and type(failed.error) is not AnonflowError:
        return failed.error
    if failed.error is not None:
        return AnonflowError(f"{where}: {failed.error.message}")
    error = AnonflowError(f"{where}: {failed.message}; {BUG}")
    error.add_note(failed.trace)
    return error


def _cluster_name(where: Any) -> str:
    return where if isinstance(where, str) else "the local cluster"


def _lost(where: Any) -> AnonflowError:
    return AnonflowError(
        f"{_cluster_name(where)}: the cluster is lost; nothing was published. Run the flow again: it continues where it stopped"
    )
