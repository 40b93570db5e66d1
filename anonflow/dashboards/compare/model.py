"""The model of the screen Compare."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
import param

from anonflow.algorithms.registry import look_of
from anonflow.criteria.guarantee import promises_one_in_k
from anonflow.dashboards.components.direction import arrow, better, directed
from anonflow.dashboards.components.screen_model import ScreenModel
from anonflow.dashboards.session.diff import changes, differences
from anonflow.dashboards.session.publication import measured_risk
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.jobs import FinishedRun
from anonflow.drawing.figures import Point
from anonflow.drawing.fragments import or_dash
from anonflow.drawing.method_mark import sparkline
from anonflow.hierarchy.wording import plural
from anonflow.table.domain import missing_cells
from anonflow.table.schema import MISSING_RULES
from anonflow.utility import MEASURES
from anonflow.utility.frontier import frontier
from anonflow.utility.missing_loss import loss_of_blanks

SHORT = {"gcp": "GCP"}
"""The names of measures beside an axis, if they differ."""

LABELS = {"gcp": "information loss (GCP)"}
"""The names of measures in sentences, if they differ."""

BARS = 20
"""Bars of the small picture of records by their loss."""

RISKS = {
    "promised": "promised: one in k",
    "measured": "measured: for the most exposed person",
}
"""Descriptions of risks, by name."""


class CompareModel(ScreenModel):
    """The comparison of a workspace's runs.

    ``first`` and ``second`` are ids of runs that exist, or None; ``measured`` has ids of runs that exist only.
    """

    risk = param.Selector(
        default="promised", objects=list(RISKS), doc="What the frontier takes for the risk."
    )
    measured = param.Dict(default={}, doc="Id of a run -> measured risk, between 0 and 1.")
    first = param.Integer(default=None, allow_None=True, doc="Id of the first of two runs side by side.")
    second = param.Integer(default=None, allow_None=True, doc="Id of the second.")

    def __init__(self, workspace: Workspace, **params: Any) -> None:
        super().__init__(workspace, **params)
        self._blanks: dict[int, tuple[float, list[str]]] = {}
        self._runs_changed()

    # ------------------------------------------------------------------------------------ the table

    @property
    def results(self) -> list[FinishedRun]:
        """Runs that have a result, oldest first."""
        return [run for run in self.workspace.runs.finished if run.result.problem is None]

    def rows(self, search: str = "") -> pd.DataFrame:
        """Return the table of runs with a text in their names or notes, pinned ones first, then oldest first; pictures are SVG of numbers alone."""
        best = set(self.best())
        text = search.strip().lower()
        rows = []
        for run in sorted(self.workspace.runs.finished, key=lambda run: not run.pinned):
            if text not in f"{run.label}\n{run.result.name}\n{run.note}".lower():
                continue
            result, row = run.result, run.row()
            losses = run.losses
            heights = [0.0] * BARS
            for percent, count in result.spread:
                heights[min(BARS - 1, int(percent) * BARS // 100)] += count
            listed = ", ".join(f"{name} {100 * loss:.0f}%" for name, loss in losses.items())
            size = run.spec.partition.size
            rows.append(
                {
                    "id": run.id,
                    "mark": str(look_of(result.algorithm).svg()),
                    "run": f"{'📌 ' if run.pinned else ''}{run.name}{' ✎' if run.note else ''}",
                    "best": "● best" if run.id in best else "",
                    **{name: row[name] for name in ("gcp", "usefulness", "suppressed", "seconds")},
                    "checks": verdict(run),
                    "columns": str(sparkline(list(losses.values()), f"loss by column: {listed}", 1.0))
                    if losses
                    else "",
                    "records": str(sparkline(heights, "records by their loss, from 0% left to 100% right"))
                    if result.spread
                    else "",
                    "partition": "whole table" if size is None or size >= result.records else f"{size:,}",
                    "problem": result.problem or "",
                }
            )
        return pd.DataFrame(rows, columns=list(rows[0]) if rows else ["id"])

    @property
    def hidden(self) -> tuple[str, ...]:
        """Measures that are not shown, because runs that treat missing values differently cannot be compared by them."""
        ways: dict[str, set[str]] = {}
        for run in self.results:
            for name, column in run.spec.columns.items():
                if column.role == "quasi-identifier" and column.kind in MISSING_RULES:
                    ways.setdefault(name, set()).add(column.missing or MISSING_RULES[column.kind][0])
        frame = self.workspace.data.named
        differing = [name for name, used in ways.items() if len(used) > 1]
        are_blank = (
            frame is None or name not in frame or missing_cells(frame[name]).any() for name in differing
        )
        return ("usefulness",) if any(are_blank) else ()

    def blanks(self) -> str:
        """Return warnings about missing values: runs that treat them differently, and runs most of whose loss comes from them; empty without any."""
        unequal = (
            "These runs treat missing values differently, so they cannot be compared by usefulness, and it is not shown: a run that hides more may seem more useful. "
            "Compare their loss."
        )
        return " ".join(filter(None, [unequal if self.hidden else "", self._lost_by_blanks()]))

    def _lost_by_blanks(self) -> str:
        for run in self.results:
            if run.id not in self._blanks:
                anonymization = run.result.anonymization  # a project has no records
                self._blanks[run.id] = (0.0, []) if anonymization is None else loss_of_blanks(anonymization)
        parts = [(run, *self._blanks[run.id]) for run in self.results]
        worst = max((part for part in parts if part[1] > 0.5), key=lambda part: part[1], default=None)
        if worst is None:
            return ""
        run, share, columns = worst
        return (
            f"{share:.0%} of the loss of {run.name} comes from blanks in {' and '.join(columns)}, which only * covers. Choose value under "
            "Without a value, on the screen Data, to publish them as blanks."
        )

    # ---------------------------------------------------------------------------------- the figures

    def measures(self) -> dict[str, str]:
        """Return what can be drawn against k, and its label with its direction: each measure that is declared to judge, and the seconds.

        In the order of the declarations.
        """
        measured = {name for run in self.results for name in run.result.measures}
        names = [name for name in MEASURES if name in measured - {*self.hidden} and better(name)]
        return {name: directed(SHORT.get(name, name), name) for name in [*names, "seconds"]}

    def points(self, measure: str) -> list[Point]:
        """Return every result by its k and a measure of :meth:`measures`."""
        numbers = [
            {**run.result.measures, "seconds": run.result.seconds}.get(measure) for run in self.results
        ]
        return [
            point(run, float(run.result.k), number, ", ".join(run.losses))
            for run, number in zip(self.results, numbers, strict=True)
        ]

    def frontier_points(self) -> list[Point]:
        """Return every result by its risk and its GCP; those whose risk is not measured yet, or that promise none, are left out."""
        points = []
        for run in self.results:
            risk = self.measured.get(run.id)
            if self.risk == "promised":
                risk = 1 / run.result.k if promises_one_in_k(run.result.guarantee) else None
            if risk is not None:
                points.append(point(run, float(risk), run.result.measures.get("gcp")))
        return points

    def best(self) -> list[int]:
        """Return ids of the runs on the frontier, by increasing risk."""
        points = self.frontier_points()
        return [points[at].id for at in frontier([p.x for p in points], [p.y for p in points])]

    def measure_risks(self) -> None:
        """Attack every result that was not attacked yet, aside; ``measured`` fills as they are done."""
        waiting = [
            run
            for run in self.results
            if run.id not in self.measured
            and run.result.anonymization is not None  # a project has no records
        ]
        if self.busy or not waiting:
            return
        run, of = waiting[0], len(self.results)

        def done(rate: float) -> dict[str, Any]:
            still = {remaining.id for remaining in self.workspace.runs.finished}
            rates = {id: run_rate for id, run_rate in {**self.measured, run.id: rate}.items() if id in still}
            self.noted.risks = dict(rates)
            return {"measured": rates}

        words = f"attacking {run.name}: {len(waiting)} of {plural(of, 'run')} left"
        self.compute(lambda: measured_risk(run.seed, run.result), done, words)

    # ------------------------------------------------------------------------------- two of the runs

    def pair(self) -> tuple[FinishedRun, FinishedRun] | None:
        """Return the two runs side by side, or None as long as there are no two."""
        runs_by_id = {run.id: run for run in self.results}
        if self.first not in runs_by_id or self.second not in runs_by_id or self.first == self.second:
            return None
        return runs_by_id[self.first], runs_by_id[self.second]

    def what_differs(self) -> list[tuple[str, str, str]]:
        """Return settings and results in which the two runs differ: name, the first's, the second's."""
        both = self.pair()
        if both is None:
            return []
        a, b = both
        pairs = differences(a.spec, b.spec)
        measures: list[tuple[str, Callable[[FinishedRun], str]]] = [
            (arrow(LABELS.get(measure, measure), measure), partial(_measured, measure))
            for measure in dict.fromkeys([*a.result.measures, *b.result.measures])
            if measure not in self.hidden
            and all(isinstance(run.result.measures.get(measure, 0.0), int | float) for run in both)
        ]
        for name, text in (
            *measures,
            (arrow("suppressed records", "suppressed"), lambda run: f"{run.result.suppressed:,}"),
            (arrow("seconds", "seconds"), lambda run: f"{run.result.seconds:.2f}"),
            ("guarantee", lambda run: run.result.guarantee),
            ("checks", verdict),
        ):
            if text(a) != text(b):
                pairs.append((name, text(a), text(b)))
        return pairs

    # -------------------------------------------------------------------------------------- history

    def history(self) -> list[str]:
        """Return the edits of the flow, the latest first, as sentences."""
        specs = [*self.workspace.draft.past, self.workspace.draft.spec]
        return [changes(a, b) for a, b in itertools.pairwise(specs)][::-1]

    def take_up(self, id: int) -> None:
        """Put the settings of a run into the flow, as one edit that can be undone."""
        self.workspace.draft.put(self.workspace.runs.settings_of(id))

    # --------------------------------------------------------------------------------------- inside

    @param.depends("workspace.runs.chosen", watch=True)
    def _run_chosen(self) -> None:
        """Put the chosen run side by side with another one."""
        chosen = self.workspace.runs.chosen_run
        if chosen is not None and chosen.id not in (self.first, self.second):
            self.first = chosen.id

    @param.depends("workspace.runs.finished", watch=True)
    def _runs_changed(self) -> None:
        ids, chosen = [run.id for run in self.results], self.workspace.runs.chosen
        first, second = self.first, self.second
        if first not in ids:
            first = chosen if chosen in ids else next(iter(ids), None)
        if second not in ids or second == first:
            second = next((id for id in reversed(ids) if id != first), None)
        rates = {id: rate for id, rate in self.noted.risks.items() if id in ids}
        self.param.update(first=first, second=second, measured=rates)
        if not ids:
            self.background.forget()
            self.busy = False
        elif self.risk == "measured" and not self.workspace.starts.running:
            self.measure_risks()

    @param.depends("risk", "measured", watch=True)
    def _risk_changed(self) -> None:
        if self.risk == "measured":
            self.measure_risks()
        else:
            self.background.cancel()


def point(run: FinishedRun, x: float, y: Any, columns: str = "") -> Point:
    """Return a run at a place of a picture; not a number where there is no `y`."""
    return Point(run.id, run.name, run.result.algorithm, x, math.nan if y is None else float(y), columns)


def verdict(run: FinishedRun) -> str:
    """Return the result of a run's checks: text and a symbol."""
    if run.result.problem is not None:
        return "✗ no result"
    passed = sum(bool(finding.holds) for finding in run.result.findings)
    return f"{'✓' if run.ok else '✗'} {passed} of {len(run.result.findings)} hold"


def _measured(measure: str, run: FinishedRun) -> str:
    return or_dash(run.result.measures.get(measure))
