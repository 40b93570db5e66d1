"""The output of the shell: aligned tables on stdout, progress on stderr."""

from __future__ import annotations

import json
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Any

from anonflow.cli.streams import number, say, say_json
from anonflow.engine.execution.events import (
    Event,
    FlowStarted,
    Log,
    PartitionDone,
    RoundDone,
    RunDone,
    StepDone,
    StepStarted,
)
from anonflow.errors import printable
from anonflow.hierarchy.wording import plural

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

LEVELS = ("debug", "info", "warning", "error")
"""The levels of logs, the gravest last."""

_REPORTED = {
    "load": "reading and coding the table",
    "fit": "timing partitions",
    "cut": "sorting and cutting",
    "compile": "compiling",
    "draw": "drawing",
    "shuffle": "shuffling",
    "verify": "verifying the release",
    "attack": "trying attackers",
    "card": "judging the release",
    "publish": "writing",
}


def is_told(level: str, least: str) -> bool:
    """Return whether a log is shown to users who chose a level and all graver ones."""
    return LEVELS.index(level) >= LEVELS.index(least)


class ProgressDisplay:
    """Follows a run on stderr: a bar on a terminal, a line for each step elsewhere."""

    def __init__(self, quiet: bool = False, level: str = "info") -> None:
        self._quiet = quiet or level in ("warning", "error")
        self._level = max(level, "warning", key=LEVELS.index) if quiet else level
        self._bar: Bar | None = None
        self._task: Any = None
        self._runs = 0

    def __enter__(self) -> ProgressDisplay:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                console=Console(stderr=True),
            )
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: Event) -> None:
        """Show an event."""
        if isinstance(event, Log) and is_told(event.level, self._level):
            self._say(event.message if event.level == "info" else f"{event.level}: {event.message}")
        if self._quiet:
            return
        if isinstance(event, FlowStarted):
            self._runs = len(event.runs)
            names = f"{len(event.runs)} runs" if len(event.runs) > 1 else event.runs[0]
            self._say(f"{event.flow}: {names}, {event.workers} {event.scheduler}")
            for step, sentence in event.plan:
                self._say(f"  {step:<9} {sentence}")
        elif isinstance(event, StepStarted) and event.step == "anonymize":
            if self._bar is not None:
                self._task = self._bar.add_task("anonymizing", total=event.tasks)
            else:
                self._say(f"anonymizing {plural(event.tasks, 'partition')}")
        elif isinstance(event, PartitionDone):
            if self._bar is not None:
                self._bar.advance(self._task)
            if self._level == "debug":
                self._say(
                    f"debug: partition {event.partition} of run {event.run}: {event.records} records, "
                    f"{event.seconds:.3f} s, loss {event.loss:.4f}"
                )
        elif isinstance(event, RoundDone) and self._level == "debug":
            self._say(
                f"debug: partition {event.partition} of run {event.run}: round {event.done} of {event.of}, "
                f"loss {event.loss:.4f}"
            )
        elif isinstance(event, RunDone) and self._runs == 1 and (loss := number(event.row["gcp"])) != "-":
            # attackers and the release card may take longer than the method
            self._say(f"loss: GCP {loss}")
        elif isinstance(event, StepDone) and event.step != "anonymize" and self._level == "debug":
            self._say(f"debug: {event.step}: {event.seconds:.3f} s")
        elif isinstance(event, StepStarted) and event.step in _REPORTED:
            self._say(_REPORTED[event.step])
        elif isinstance(event, StepDone) and event.step == "anonymize" and self._bar is None:
            self._say(f"anonymized in {event.seconds:.1f} s")

    def _say(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(printable(text), markup=False, highlight=False)
        else:
            say(text, err=True)


class JsonLines:
    """Events as lines of JSON on the standard error, for programs that follow a run."""

    def __init__(self, level: str = "info") -> None:
        self._level = level

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(self, *rest: object) -> None:
        """Nothing is open."""

    def __call__(self, event: Event) -> None:
        """Write an event."""
        if not isinstance(event, Log) or is_told(event.level, self._level):
            say_json(json.dumps(event.to_mapping(), default=str), err=True)
