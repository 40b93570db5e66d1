"""Dask's part of a run without processes: workers of a test run their tasks in its own process, one after another."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import dask
import distributed
import pytest
from distributed.scheduler import KilledWorker

from anonflow.engine.execution import schedulers


class WorkerEnd(BaseException):
    """Ends the worker whose task raises it, as a signal does."""


def end_worker(*_: object) -> NoReturn:
    """A task that ends whoever runs it."""
    raise WorkerEnd


class _Task:
    """Dask's future: what was submitted, and its result, which travels as bytes."""

    def __init__(self, key: str, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.key = key
        self.status = "pending"
        self.ends = 0  # workers that ended while they had it
        self.value: Any = None
        self._work = work
        self._arguments = arguments

    def run(self) -> None:
        arguments = [item.result() if isinstance(item, _Task) else item for item in self._arguments]
        self.value = pickle.loads(pickle.dumps(self._work(*arguments)))
        self.status = "finished"

    def done(self) -> bool:
        return True

    def result(self, timeout: float | None = None) -> Any:
        if self.status == "pending":
            self.run()
        if self.status == "error":
            raise self.value
        return self.value

    def release(self) -> None:
        """Nothing: whoever drops it drops its result."""


class Workers:
    """A cluster, its client, and the tasks that it has.

    Attributes
    ----------
    count : int
        How many workers there are; none may be there for a while.
    status : str
        That of the client: ``running``, or ``closed`` once the scheduler is gone.
    ended : int
        How many workers ended so far; another one takes the place of each.
    sent : list of list of Call
        The calls of each task, in the order in which tasks were sent.
    cancelled : list of str
        The tasks that were cancelled.
    settings : dict
        What a local cluster was started with.
    """

    dashboard_link = ""
    loop = None
    ncores = None  # never called: sync has the answer

    def __init__(self, count: int) -> None:
        self.count = count
        self.status = "running"
        self.ended = 0
        self.sent: list[list[schedulers.Call]] = []
        self.cancelled: list[str] = []
        self.settings: dict[str, Any] = {}
        self.scheduler = self
        self._queues: list[deque[_Task]] = []
        self._finished: deque[_Task] = deque()

    def __call__(self, *_: object, **settings: Any) -> Workers:
        """A client of these workers, or the cluster itself."""
        if "n_workers" in settings:
            self.count, self.settings = settings["n_workers"], settings
        return self

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._queues.clear()

    def sync(self, *_: object, **__: object) -> dict[int, int]:
        return dict.fromkeys(range(self.count), 1)

    def submit(self, work: Callable[..., Any], *arguments: Any, key: str = "", **_: object) -> _Task:
        if (data := getattr(work, "_data", None)) and isinstance(
            group := pickle.loads(data), schedulers._Group
        ):
            self.sent.append(list(group.calls))
        return _Task(key, work, arguments)

    def cancel(self, tasks: Iterable[_Task], force: bool) -> None:
        self.cancelled += [task.key for task in tasks]
        self._queues.clear()

    def as_completed(self, *_: object, **__: object) -> Workers:
        return self

    def add(self, task: _Task) -> None:
        while len(self._queues) < max(1, self.count):
            self._queues.append(deque())
        min(self._queues, key=len).append(task)

    def has_ready(self) -> bool:
        return bool(self._finished) or (self.count > 0 and any(self._queues))

    def __next__(self) -> tuple[_Task, Any]:
        while not self._finished:
            self._step()
        task = self._finished.popleft()
        return task, task.value

    def _step(self) -> None:
        """The worker with most tasks runs its first one; if that ends it, all that it had counts as tried."""
        queue = max(self._queues, key=len)
        try:
            queue[0].run()
        except WorkerEnd:
            self.ended += 1
            lost = [*queue]
            queue.clear()
            allowed = dask.config.get("distributed.scheduler.allowed-failures")
            for task in lost:
                task.ends += 1
                if task.ends <= allowed:
                    self.add(task)
                    continue
                task.status, task.value = "error", KilledWorker(task.key, None, allowed)
                self._finished.append(task)
            return
        self._finished.append(queue.popleft())


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    """Two workers in place of Dask's, for the scheduler ``processes`` and for every address."""
    own = Workers(2)
    for name in ("Client", "LocalCluster"):
        monkeypatch.setattr(distributed, name, own)
    monkeypatch.setattr(distributed, "as_completed", own.as_completed)
    monkeypatch.setattr(schedulers, "start_resource_tracker", lambda: None)
    return own
