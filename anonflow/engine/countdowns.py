"""How long the runs of a flow will take, shown in a notebook or a terminal while they work."""

from __future__ import annotations

from collections.abc import Callable

from anonflow.drawing.countdown import Countdown, notebook_cell, terminal_line
from anonflow.engine.execution.events import (
    Event,
    Expectation,
    FlowDone,
    FlowStarted,
    PartitionDone,
    RunStarted,
)


class Countdowns:
    """Listens to a flow's events and shows a countdown of each run that has partitions, or of all runs on the whole table together.

    Parameters
    ----------
    start : callable, optional
        A name and the number of parts -> a countdown.
    """

    def __init__(self, start: Callable[[str, int], Countdown] = Countdown) -> None:
        self._start = start
        self._running: dict[int, Countdown] = {}
        self._whole: Countdown | None = None

    def __call__(self, event: Event) -> None:
        """Take an event."""
        if isinstance(event, FlowStarted):
            name = event.runs[0] if len(event.runs) == 1 else f"{len(event.runs)} runs"
            self._whole = self._start(name, 1)
        elif isinstance(event, Expectation) and self._whole is not None:
            self._whole.announce(event.message, event.seconds)
        elif isinstance(event, RunStarted) and event.partitions > 1:
            self._running[event.run] = self._start(event.name, event.partitions)
        elif isinstance(event, PartitionDone) and event.run in self._running:
            self._running[event.run].step()
        elif isinstance(event, FlowDone) and event.ok and self._whole is not None:
            self._whole.step()

    def wait(self) -> None:
        """Say how long runs on the whole table have been at work; called again and again while no result arrives."""
        if self._whole is not None and not self._running:
            self._whole.wait()


def for_who_reads() -> Countdowns | None:
    """Return a listener for the cell of a notebook, or a terminal; None where nobody reads along."""
    return None if notebook_cell() is None and terminal_line() is None else Countdowns()
