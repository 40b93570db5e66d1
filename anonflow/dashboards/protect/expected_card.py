"""The card of the expected time of the draft's runs, and of its error afterwards."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import panel as pn
import param
from markupsafe import Markup

from anonflow.dashboards.components.at_work import AtWork
from anonflow.dashboards.components.html import button, facts, html, soft
from anonflow.dashboards.components.screen_model import ScreenModel
from anonflow.dashboards.session.draft_spec import NO_FLOW
from anonflow.dashboards.session.screen_words import OPEN_FIRST, on_screen
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.jobs import running_flow, seconds_of_compiler
from anonflow.drawing.fragments import or_dash
from anonflow.engine.expected import ExpectedRun, expected_of
from anonflow.errors import AnonflowError
from anonflow.kernels.jit import CompileTimer

EXPECT = "Expect time and memory"

MIB = 1 << 20

METHODS = 1.0
"""Seconds that the stretches of one method may take here."""


class ExpectedCard(ScreenModel, pn.viewable.Viewer):
    """Expectations of the runs of a workspace's draft, and of those that have been run since, with their errors.

    They wait in the same queue as all runs, off the event loop. Expectations belong to one draft and one table; when
    one of the two changes, only those of finished runs are still shown.
    """

    answers = param.Parameter((), doc="ExpectedRun of each run of the draft, once they were computed.")
    compiled = param.String(
        default="", doc="How long it took, and the compiler; empty if that had nothing to do."
    )
    known = param.Dict(default={}, doc="Id of a finished run -> what was expected of it.")

    def __init__(self, workspace: Workspace, **params: Any) -> None:
        super().__init__(workspace, **params)
        self._of = NO_FLOW
        self.start = button(EXPECT, self.expect, css="af-expect", width=230)
        self.shown = html("", "af-expected")
        self._show()

    def expect(self) -> None:
        """Compute those of the draft, aside."""
        workspace = self.workspace
        if self.busy:
            return
        table = workspace.data.table
        if table is None or workspace.data.problems:
            self.problem = "; ".join(workspace.data.problems) or OPEN_FIRST
            return
        try:
            flow = workspace.draft.flow()
            flows = [(run.name, running_flow(flow, run, table)) for run in flow.runs]
        except AnonflowError as error:
            self.problem = on_screen(error.message)
            return
        self._of = workspace.draft.spec

        def work() -> dict[str, Any]:
            answers: list[ExpectedRun] = []
            began, compiler = perf_counter(), CompileTimer()
            for at, (name, flow) in enumerate(flows):
                self.background.tell(f"running {name} on a few records", at, len(flows))
                answers += [replace(answer, name=name) for answer in expected_of(flow, seconds=METHODS)]
            of_them = seconds_of_compiler(compiler.seconds)
            took = f"This took {perf_counter() - began:.1f} s{of_them}." if of_them else ""
            return {"answers": tuple(answers), "compiled": took}

        self.compute(
            work,
            dict,
            "running the methods on a few records",
            answers=(),
        )

    @param.depends("workspace.draft.spec", "workspace.data.frame", watch=True)
    def _changed(self) -> None:
        if self.workspace.draft.spec != self._of:
            self.background.forget()
            self.param.update(busy=False, answers=(), problem="")

    @param.depends("workspace.runs.finished", watch=True)
    def _ended(self) -> None:
        """Keep what was expected of runs that are over now."""
        named = {answer.name: answer for answer in self.answers}
        ids = {run.id for run in self.workspace.runs.finished}
        expectations = {id: answer for id, answer in self.known.items() if id in ids}
        for run in self.workspace.runs.finished:
            if run.id not in expectations and run.result.name in named and not self.busy:
                expectations[run.id] = named[run.result.name]
        self.known = expectations

    def errors(self) -> list[tuple[str, ExpectedRun, float]]:
        """Return the finished runs of which something was expected: name, what, and the seconds that it took."""
        place = {answer.name: at for at, answer in enumerate(self.answers)}
        ended = [
            run for run in self.workspace.runs.finished if run.id in self.known and run.result.problem is None
        ]
        # as they are expected, not as they ended
        ended.sort(key=lambda run: place.get(run.result.name, len(place)))
        return [(run.name, self.known[run.id], run.result.seconds) for run in ended]

    @param.depends("busy", "answers", "known", "problem", watch=True)
    def _show(self) -> None:
        self.start.disabled = self.busy
        self.start.label = "Running the methods on a few records…" if self.busy else EXPECT
        parts = [soft(self.problem, "status")] if self.problem else []
        if self.answers:
            rows = [
                (
                    answer.name,
                    or_dash(answer.seconds, ".2g"),
                    "–" if answer.memory is None else f"{answer.memory / MIB:,.0f}",
                    answer.problem or f"from up to {answer.largest:,} records",
                )
                for answer in self.answers
            ]
            parts.append(facts(("run", "seconds expected", "MiB expected", ""), rows, (1, 2)))
            parts += [soft(self.compiled)] if self.compiled else []
        finished = self.errors()
        if finished:
            rows = [
                (
                    name,
                    or_dash(expected.seconds, ".2g"),
                    f"{seconds:.2g}",
                    wrong_by(expected, seconds),
                )
                for name, expected, seconds in finished
            ]
            parts.append(Markup("<h4>What it took</h4>"))
            parts.append(facts(("run", "seconds expected", "seconds", "the expectation was"), rows, (1, 2)))
        self.shown.object = str(Markup("").join(parts))

    def __panel__(self) -> pn.viewable.Viewable:
        return pn.Column(self.start, AtWork(self.background), self.shown, sizing_mode="stretch_width")


def wrong_by(expected: ExpectedRun, seconds: float) -> str:
    """Return in words by how much an expectation was wrong."""
    error = expected.error(seconds)
    if error is None:
        return ""
    if abs(error) < 0.005:
        return "right"
    return f"{abs(error):.0%} too {'long' if error > 0 else 'short'}"
