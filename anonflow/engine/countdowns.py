"""How long the runs of a flow will take, shown in a notebook or a terminal while they work."""

from __future__ import annotations

from collections.abc import Callable

from anonflow.drawing.countdown import Countdown, notebook_cell, terminal_line
from anonflow.engine.execution.events import Event, PartitionDone, RunStarted


def countdowns(start: Callable[[str, int], Countdown] = Countdown) -> Callable[[Event], None]:
    """Return what listens to a flow's events and shows a countdown of each run.

    Parameters
    ----------
    start : callable, optional
        Name and partitions of a run -> its countdown.
    """
    running: dict[int, Countdown] = {}

    def listen(event: Event) -> None:
        if isinstance(event, RunStarted):
            running[event.run] = start(event.name, event.partitions)
        elif isinstance(event, PartitionDone) and event.run in running:
            running[event.run].step()

    return listen


def for_who_reads() -> Callable[[Event], None] | None:
    """Return a listener for the cell of a notebook, or a terminal; None where nobody reads along."""
    return None if notebook_cell() is None and terminal_line() is None else countdowns()
