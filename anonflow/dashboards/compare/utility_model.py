"""The model of the utility card: any declared measure, with its settings, for each run."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import param

from anonflow.dashboards.compare.model import point
from anonflow.dashboards.components.direction import sentence
from anonflow.dashboards.components.screen_model import ScreenModel
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.jobs import FinishedRun
from anonflow.drawing.figures import Point
from anonflow.utility import MEASURES, measure, measures_of_analyses, numbers_of_measure

EVERYTHING = "all analyses that need no settings"
"""The choice that stands for several measures."""


def about(name: str) -> str:
    """Return a measure's description, its better direction, and its cost, from its declaration."""
    needs = f" Needs {MEASURES[name].extra}." if MEASURES[name].extra else ""
    return f"{sentence(name)} Cost: {MEASURES[name].cost}.{needs}"


def request_title(name: str, settings: Mapping[str, Any]) -> str:
    """Return a measure and its settings in a line: ``question: where Age 30 to 39``."""
    words = [f"{key} {_words(value)}" for key, value in settings.items()]
    return f"{name}: {'; '.join(words)}" if words else name


def _words(value: Any) -> str:
    if not isinstance(value, Mapping):
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return " and ".join(
        f"{column} {_range(limit)}" if isinstance(limit, Mapping) else f"{column} = {_words(limit)}"
        for column, limit in value.items()
    )


def _range(ends: Mapping[str, Any]) -> str:
    """Return such as ``30 to 39``; one of the ends may be missing."""
    low, high = ends.get("from"), ends.get("to")
    if high is None:
        return f"from {low}"
    return f"up to {high}" if low is None else f"{low} to {high}"


class UtilityModel(ScreenModel):
    """Measures of all runs of a workspace that have their records.

    ``numbers`` is replaced, never changed in place: title of a request -> id of a run -> name -> number. It lies with
    what the workspace notes of its runs, so that it outlives a page, and is the owner's: what analyses lose tells about the
    originals.
    """

    numbers = param.Dict(default={}, doc="Title -> id of a run -> name -> number.")
    status = param.String(default="")

    def __init__(self, workspace: Workspace, **params: Any) -> None:
        super().__init__(workspace, **params)
        self._waiting: deque[tuple[FinishedRun, str, dict[str, Any]]] = deque()
        self._all = 0
        self._runs_changed()

    @property
    def results(self) -> list[FinishedRun]:
        """Runs that have their records, oldest first: a project's have only their numbers."""
        return [run for run in self.workspace.runs.finished if run.result.anonymization is not None]

    def offered(self) -> list[str]:
        """Return the names of all measures that judge, those of analyses first."""
        analyses = measures_of_analyses()
        return [
            *analyses,
            *(name for name, declared in MEASURES.items() if declared.better and name not in analyses),
        ]

    def without_settings(self) -> list[str]:
        """Return the measures of analyses that need nothing to be said."""
        table = self.workspace.data.table
        sensitive = table is not None and bool(table.sensitive)
        return [
            name
            for name in measures_of_analyses()
            if not MEASURES[name].needs and (sensitive or not MEASURES[name].of_sensitive)
        ]

    def measure_runs(self, name: str, settings: Mapping[str, Any]) -> None:
        """Measure every run that was not measured like this, by a measure or `EVERYTHING`, aside, one after the other."""
        if self.busy:
            return
        everything: list[tuple[str, dict[str, Any]]] = [(key, {}) for key in self.without_settings()]
        requests = everything if name == EVERYTHING else [(name, dict(settings))]
        # run by run: all measures of a run look at the same plausible tables
        self._waiting = deque(
            (run, key, measure_settings)
            for run in self.results
            for key, measure_settings in requests
            if run.id not in self.numbers.get(request_title(key, measure_settings), {})
        )
        self._all = len(self._waiting)
        self.problem = ""
        self._next()

    def stop(self) -> None:
        """Stop measuring: do not wait for the running measure, and start no other."""
        self._waiting.clear()
        self.background.forget()
        self.param.update(busy=False, status="Stopped: what was measured is kept.")

    def clear(self) -> None:
        """Delete all measured numbers."""
        self.noted.utility = {}
        self.param.update(numbers={}, status="", problem="")

    def points(self, title: str) -> list[Point]:
        """Return every run by its k and a number."""
        name, numbers = title.partition(":")[0], self.numbers.get(title, {})
        return [
            point(run, float(run.result.k), numbers[run.id].get(name))
            for run in self.results
            if run.id in numbers
        ]

    def best(self, title: str) -> frozenset[int]:
        """Return the runs of the best number, as the measure declares what is better; none where all are equal."""
        name = title.partition(":")[0]
        better = MEASURES[name].better
        values = {
            id: numbers[name]
            for id, numbers in self.numbers.get(title, {}).items()
            if numbers[name] == numbers[name]
        }
        if not better or len(set(values.values())) < 2:
            return frozenset()
        top = (min if better == "lower" else max)(values.values())
        return frozenset(id for id, value in values.items() if value == top)

    # --------------------------------------------------------------------------------------- inside

    def _next(self) -> None:
        if not self._waiting:
            status = "" if not self._all else f"Measured: {self._all} of {self._all}."
            self.param.update(busy=False, status=status)
            return
        run, name, settings = self._waiting.popleft()
        anonymization = run.result.anonymization
        place = self._all - len(self._waiting)
        self.param.update(busy=True, status=f"Measuring {name} of {run.name}: {place} of {self._all}.")

        def work() -> dict[str, float]:
            assert anonymization is not None
            numbers = measure(anonymization.table, anonymization, {name: settings}, k=anonymization.k)
            return {key: float(value) for key, value in numbers_of_measure(name, numbers).items()}

        def done(numbers: dict[str, float]) -> None:
            title = request_title(name, settings)
            noted = self.noted.utility
            noted.setdefault(run.id, {})[title] = numbers
            self._show_noted()
            self._next()

        def failed(problem: str) -> None:
            # the other runs would fail alike
            self._waiting = deque(measurement for measurement in self._waiting if measurement[1] != name)
            self.problem = f"{self.problem} {name}: {problem}.".strip()
            self._next()

        self.background.start(work, done, failed)

    def _show_noted(self) -> None:
        numbers: dict[str, dict[int, dict[str, float]]] = {}
        for id, of_run in self.noted.utility.items():
            for title, noted in of_run.items():
                numbers.setdefault(title, {})[id] = noted
        self.numbers = numbers

    @param.depends("workspace.runs.finished", watch=True)
    def _runs_changed(self) -> None:
        if not self.results and self.busy:
            self.stop()
        self._show_noted()
