"""The tab Target of the screen Protect: a search for a target, which the user may stop, and whose trials become runs."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import panel as pn
import param
from markupsafe import Markup

from anonflow import engine
from anonflow.dashboards.components.html import button, facts, html, in_lines, soft, stack
from anonflow.dashboards.components.option_field import param_field
from anonflow.dashboards.components.screen_model import ScreenModel
from anonflow.dashboards.session.draft_spec import DraftSpec
from anonflow.dashboards.session.screen_words import OPEN_FIRST, WAITING, on_screen
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.jobs import running_flow
from anonflow.drawing.fragments import or_dash
from anonflow.engine.flows.goal import CHECKED
from anonflow.engine.flows.spec import AnonymizeSpec, PartitionSpec
from anonflow.engine.search.document import target_section, with_diversity
from anonflow.engine.search.search import run_of
from anonflow.engine.search.space import Space
from anonflow.engine.search.trials import SearchReport, SearchTarget, Trial, frontier_of, picked
from anonflow.errors import AnonflowError, FlowError
from anonflow.hierarchy.wording import plural

KEPT = 40
"""Trials that become runs, at most; the search goes on."""


class TargetChoice(ScreenModel):
    """The target, and the search for it.

    A search waits in line with everybody's runs, and takes one place there. Each trial that has a result becomes a run of the
    workspace, so that the page Compare shows the frontier as it grows; when the search is over, the flow of each of these
    runs says what was tried. Of a trial that another one beats, the records are let go.
    """

    loss = param.Number(default=None, allow_None=True, bounds=(0, 1), inclusive_bounds=(False, True))
    percent = param.Number(default=9.0, allow_None=True, bounds=(0, 100), inclusive_bounds=(False, True))
    guessed = param.Number(default=None, allow_None=True, bounds=(0, 100), inclusive_bounds=(False, True))
    signs = param.String(default="", doc="Formulas, separated by semicolons.")
    seconds = param.Number(default=120.0, bounds=(1, None))
    chosen_only = param.Boolean(default=False, doc="Whether only the methods that are chosen are tried.")
    doing = param.String(default="", doc="What the search is at, in a few words.")
    trials = param.Parameter((), doc="What was tried, in this order.")
    report = param.Parameter(None, doc="Of the last search that is over; None before.")

    def __init__(self, workspace: Workspace, **params: Any) -> None:
        super().__init__(workspace, **params)
        self._work: engine.TargetSearch | None = None
        self._ids: list[int] = []
        self._stopped = threading.Event()

    @property
    def target(self) -> SearchTarget:
        """The target that the form describes."""
        seconds, most = float(self.seconds), self.workspace.limits.seconds
        return SearchTarget(
            self.loss,
            None if self.percent is None else self.percent / 100.0,
            tuple(text.strip() for text in self.signs.split(";") if text.strip()),
            seconds if most is None else min(seconds, most),
            None if self.guessed is None else self.guessed / 100.0,
        )

    def start(self) -> None:
        """Search in the background; ``problem`` has the reason if this is impossible."""
        if self.busy:
            return
        workspace = self.workspace
        try:
            if workspace.data.table is None or workspace.data.problems:
                raise FlowError.collected("this cannot run", workspace.data.problems or (OPEN_FIRST,))
            target = self.target
            draft = workspace.draft.flow()
            first = draft.runs[0]
            method = AnonymizeSpec(
                algorithm=CHECKED[0],
                k=CHECKED[1],
                loss=first.anonymize.loss,
                boundaries=first.anonymize.boundaries,
            )
            run = replace(first, anonymize=method, partition=PartitionSpec(order=first.partition.order))
            single, flow = workspace.draft.spec.single(run), running_flow(draft, run, workspace.data.table)
            space = Space(tuple(workspace.data.algorithms) if self.chosen_only else ())
            work = engine.TargetSearch(
                flow,
                target,
                space,
                # from the search's thread, after each trial
                watch=lambda trial: workspace.turns.later(lambda: self._show(work, flow, single, None)),
            )
        except AnonflowError as error:
            self.problem = on_screen(error.message)
            return
        self._work, self._ids = work, []
        self._stopped.clear()

        def search() -> SearchReport:
            if self._stopped.is_set():
                work.cancel()
            return work.run()

        def done(report: SearchReport) -> dict[str, Any]:
            self._show(work, flow, single, report)
            return {"doing": "", "report": report}

        self.compute(search, done, trials=(), report=None, doing=WAITING)

    def stop(self) -> None:
        """End the search; its trials are kept."""
        self._stopped.set()
        if self._work is not None:
            self._work.cancel()

    @param.depends("workspace.data.frame", watch=True)
    def _table_changed(self) -> None:
        """Forget the search: its table is no longer open."""
        self.stop()
        self.background.forget()
        self._work = None
        self.param.update(busy=False, doing="", trials=(), report=None, problem="")

    def _show(
        self,
        work: engine.TargetSearch,
        flow: engine.Flow,
        single: DraftSpec,
        report: SearchReport | None,
    ) -> None:
        if work is not self._work:
            return  # of a table that is no longer open
        trials: tuple[Trial, ...] = tuple(work.trials) if report is None else report.trials
        results: list[tuple[DraftSpec, int, engine.RunResult]] = []
        for at, trial in enumerate(trials):
            if trial.result is not None and len(results) < KEPT:
                setup = trial.candidate.setup
                document = single.single(run_of(flow, trial.candidate)).document
                document["steps"] = with_diversity(document["steps"], setup)
                if report is not None:
                    document["target"] = target_section(report, at)
                results.append((DraftSpec.of(document), work.seed, trial.result))
        self._ids = self.workspace.runs.keep_results(results, self._ids)
        best = None if report is None or report.best is None else report.best.result
        if best is not None and self.workspace.runs.chosen in self._ids:
            # no run of the user's own is looked at: the next screens show what was picked
            pairs = zip(self._ids, results, strict=False)
            picked = [id for id, (*_, result) in pairs if result is best]
            self.workspace.runs.chosen = picked[0] if picked else self.workspace.runs.chosen
        self.param.update(trials=trials, doing=work.doing)

    def sentence(self) -> str:
        """Return the state or the result of the search, in plain words."""
        if self.problem:
            return f"This cannot be searched: {self.problem}"
        if self.busy:
            return f"Searching ({self.doing}): {plural(len(self.trials), 'trial')} so far; each is a run on the screen Compare."
        if self.report is None:
            return "Set a target; anonflow then tries methods, k and partitions, the most promising first."
        report = self.report
        return f"{report.sentence()} {plural(len(report.trials), 'trial')} in {report.seconds:.0f} s; {report.ended}."


class TargetCard(pn.viewable.Viewer):
    """The form of a search, and its trials."""

    choice = param.ClassSelector(class_=TargetChoice, constant=True)

    def __init__(self, choice: TargetChoice, **params: Any) -> None:
        super().__init__(choice=choice, **params)
        of = choice.param
        self.loss = param_field(of.loss, "Loss (GCP) at most", 170, step=0.01)
        self.percent = param_field(of.percent, "Risk of being found, at most (%)", 255, step=1.0)
        self.guessed = param_field(
            of.guessed, "Risk of a guessed sensitive value, at most (%)", 370, step=5.0
        )
        self.signs = param_field(
            of.signs, "Regressions that keep their signs", 330, placeholder="income ~ age + education"
        )
        self.seconds = param_field(of.seconds, "Seconds it may take", 160, step=10.0)
        self.only = param_field(of.chosen_only, "Only the methods that are chosen")
        self.start = button("Search", choice.start, css="af-search", color="primary", width=130)
        self.stop = button("Stop the search", choice.stop, width=150)
        self.state = html("", "af-searched")
        self.tried = html("", "af-trials")
        self._show()

    @param.depends(
        "choice.busy", "choice.doing", "choice.trials", "choice.report", "choice.problem", watch=True
    )
    def _show(self) -> None:
        choice = self.choice
        self.start.disabled = choice.busy
        self.stop.visible = choice.busy
        self.state.object = str(Markup('<p role="status">{}</p>').format(choice.sentence()))
        self.tried.object = str(trials_markup(choice)) if choice.trials else ""

    def __panel__(self) -> pn.viewable.Viewable:
        return stack(
            html(
                soft(
                    "An empty field sets no target. All other settings of this screen apply to each trial: boundaries, limits, diversity and the loss to keep low."
                )
            ),
            in_lines(self.loss, self.percent, self.guessed, self.signs, self.seconds),
            self.only,
            pn.Row(self.start, self.stop),
            self.state,
            self.tried,
        )


def trials_markup(choice: TargetChoice) -> Markup:
    """Return the trials as a table, the latest first."""
    trials: tuple[Trial, ...] = tuple(choice.trials)
    target = choice.target if choice.report is None else choice.report.target
    frontier, best = set(frontier_of(trials)), picked(target, trials)
    rows = []
    for at in reversed(range(len(trials))):
        trial = trials[at]
        words = {
            "picked": at == best,
            "meets the target": trial.shortfall(target) == 0.0,
            "on the frontier": at in frontier,
        }
        rows.append(
            (
                trial.candidate.name,
                or_dash(trial.loss),
                or_dash(trial.risk, ".2%"),
                or_dash(trial.disclosure, ".1%"),
                {True: "kept", False: "lost", None: ""}[trial.signs],
                f"{trial.seconds:.1f}",
                f"{trial.expected:.1f}",
                trial.problem or ", ".join(word for word, holds in words.items() if holds),
            )
        )
    return facts(
        ("trial", "loss", "risk", "guessed", "signs", "seconds", "expected", ""), rows, (1, 2, 3, 5, 6)
    )
