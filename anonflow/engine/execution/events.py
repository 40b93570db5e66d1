"""The events of a running flow, as a stream that the shell or the dashboard reads."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from anonflow.errors import AnonflowError


class Cancelled(AnonflowError):
    """The run was cancelled; nothing was published."""

    exit_status = 130


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event: names and numbers, never a cell's value.

    Attributes
    ----------
    at : float
        Seconds since the stream began; set by the stream.
    """

    kind: ClassVar[str] = "event"
    at: float = field(default=0.0)

    def to_mapping(self) -> dict[str, Any]:
        """Return the event as plain data, for a line of JSON."""
        return {"event": self.kind, **vars(self)}


@dataclass(frozen=True, kw_only=True)
class FlowStarted(Event):
    """A flow begins: its name, the names of its runs, its scheduler, and its steps."""

    kind: ClassVar[str] = "flow-started"
    flow: str
    runs: tuple[str, ...]
    scheduler: str
    workers: int
    plan: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class StepStarted(Event):
    """A step begins; `run` is None for work that all runs share, `tasks` how many parts it has."""

    kind: ClassVar[str] = "step-started"
    step: str
    run: int | None = None
    tasks: int = 1


@dataclass(frozen=True, kw_only=True)
class StepDone(Event):
    """A step is done."""

    kind: ClassVar[str] = "step-done"
    step: str
    seconds: float
    run: int | None = None


@dataclass(frozen=True, kw_only=True)
class RunStarted(Event):
    """A run's partitions are handed to the scheduler."""

    kind: ClassVar[str] = "run-started"
    run: int
    name: str
    partitions: int


@dataclass(frozen=True, kw_only=True)
class PartitionDone(Event):
    """A partition is matched, verified and measured; `done` of `of` are, `loss` is its mean NCP."""

    kind: ClassVar[str] = "partition-done"
    run: int
    partition: int
    done: int
    of: int
    records: int
    seconds: float
    loss: float


@dataclass(frozen=True, kw_only=True)
class RoundDone(Event):
    """A method has improved a partition for `done` of at most `of` rounds; `loss` is the mean that it lowers."""

    kind: ClassVar[str] = "round-done"
    run: int
    partition: int
    done: int
    of: int
    loss: float


@dataclass(frozen=True, kw_only=True)
class RunDone(Event):
    """A run is done: its row of the table of runs, and whether it has a result and passed every check."""

    kind: ClassVar[str] = "run-done"
    run: int
    ok: bool
    row: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Log(Event):
    """A message for the user."""

    kind: ClassVar[str] = "log"
    level: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Expectation(Log):
    """A message that runs are expected to take long: `seconds` until all of them are done."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class OverBudget(Log):
    """A message that no method is expected to keep a run's budget of seconds, and what is taken."""


@dataclass(frozen=True, kw_only=True)
class FlowDone(Event):
    """The last event of a stream."""

    kind: ClassVar[str] = "flow-done"
    ok: bool
    seconds: float


PAST = 20_000
"""The most events of finished partitions that a late listener gets: the last ones."""


class EventStream:
    """The events of one run of a flow, for any number of listeners; safe between threads.

    A listener is called in the thread that runs the flow or in that of a partition, with one event at a time, so it must be
    quick. Iterating gives every event from the first on, waits for the next, and ends after :class:`FlowDone`. With very many
    finished partitions, a late listener gets only the last ones, so that memory does not grow with their number.

    Attributes
    ----------
    publishing : bool
        Whether the run writes its files, or has written them: it can no longer be cancelled.
    """

    ends_itself = False
    """A run that is cancelled has no result."""

    def __init__(self) -> None:
        self.publishing = False
        self._start = time.perf_counter()
        self._lock = threading.Lock()
        self._telling = threading.RLock()
        self._past: list[Event] = []
        self._partitions = 0
        self._listeners: list[Callable[[Event], None]] = []
        self._queues: list[queue.SimpleQueue[Event | None]] = []
        self._cancel = threading.Event()
        self._closed = False

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` with every event from now on."""
        with self._lock:
            self._listeners.append(listener)

    def emit(self, event: Event) -> None:
        """Send an event to all listeners."""
        object.__setattr__(event, "at", round(time.perf_counter() - self._start, 6))
        with self._lock:
            self._past.append(event)
            self._partitions += isinstance(event, PartitionDone)
            if self._partitions >= 2 * PAST:
                self._forget()
            listeners, queues = list(self._listeners), list(self._queues)
            for line in queues:
                line.put(event)
        # without the lock of the events, which a listener may need; it may also emit one itself
        with self._telling:
            for listener in listeners:
                listener(event)

    def _forget(self) -> None:
        """Delete the events of all but the last partitions; O(1) for each event on average."""
        places = [at for at, event in enumerate(self._past) if isinstance(event, PartitionDone)]
        oldest = set(places[:-PAST])
        self._past = [event for at, event in enumerate(self._past) if at not in oldest]
        self._partitions = PAST

    def close(self) -> None:
        """Close the stream: iterators end."""
        with self._lock:
            self._closed = True
            for line in self._queues:
                line.put(None)

    def log(self, message: str, level: str = "info") -> None:
        """Emit a :class:`Log`."""
        self.emit(Log(level=level, message=message))

    def cancel(self) -> None:
        """Ask the run to stop as soon as it can; from any thread."""
        self._cancel.set()

    @property
    def cancelled(self) -> bool:
        """Whether the run was cancelled."""
        return self._cancel.is_set()

    def check(self) -> None:
        """Stop here if the run was asked to.

        Raises
        ------
        Cancelled
            If it was.
        """
        if self._cancel.is_set():
            raise Cancelled("cancelled; nothing was published")

    def __iter__(self) -> Iterator[Event]:
        line: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        with self._lock:
            # under the lock, so that no event is missed, or comes twice, between the past and the queue
            for event in self._past:
                line.put(event)
            if self._closed:
                line.put(None)
            else:
                self._queues.append(line)
        while (event_or_end := line.get()) is not None:
            yield event_or_end
