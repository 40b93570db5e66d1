"""The tab Target of the screen Protect: the target, a search that the user may stop, and its trials."""

from __future__ import annotations

from typing import Any

import panel as pn
import param
from markupsafe import Markup

from anonflow.dashboards.components.html import facts, html
from anonflow.dashboards.protect.target_search import TargetChoice
from anonflow.engine.search.trials import Trial, frontier_of, picked


class TargetCard(pn.viewable.Viewer):
    """The form of a search, and its trials."""

    choice = param.ClassSelector(class_=TargetChoice, constant=True)

    def __init__(self, choice: TargetChoice, **params: Any) -> None:
        super().__init__(choice=choice, **params)
        of = choice.param
        self.loss = pn.widgets.FloatInput.from_param(
            of.loss, label="Loss (GCP) at most", step=0.01, width=170
        )
        self.percent = pn.widgets.FloatInput.from_param(
            of.percent, label="Risk of being found, at most (%)", step=1.0, width=255
        )
        self.guessed = pn.widgets.FloatInput.from_param(
            of.guessed, label="Risk of a guessed sensitive value, at most (%)", step=5.0, width=370
        )
        self.signs = pn.widgets.TextInput.from_param(
            of.signs,
            label="Regressions that keep their signs",
            placeholder="income ~ age + education",
            width=330,
        )
        self.seconds = pn.widgets.FloatInput.from_param(
            of.seconds, label="Seconds it may take", step=10.0, width=160
        )
        self.only = pn.widgets.Checkbox.from_param(of.chosen_only, label="Only the methods that are chosen")
        self.start = pn.widgets.Button(label="Search", color="primary", width=130, css_classes=["af-search"])
        self.stop = pn.widgets.Button(label="Stop the search", width=150)
        self.start.on_click(lambda _: choice.start())
        self.stop.on_click(lambda _: choice.stop())
        self.state = html("", "af-searched")
        self.tried = html("", "af-trials")
        self._show()

    @param.depends(
        "choice.searching", "choice.doing", "choice.trials", "choice.report", "choice.problem", watch=True
    )
    def _show(self) -> None:
        choice = self.choice
        self.start.disabled = choice.searching
        self.stop.visible = choice.searching
        self.state.object = str(Markup('<p role="status">{}</p>').format(choice.sentence()))
        self.tried.object = str(trials_markup(choice)) if choice.trials else ""

    def __panel__(self) -> pn.viewable.Viewable:
        return pn.Column(
            html(
                Markup(
                    "<p class='soft'>An empty field sets no target. All other settings of this screen apply to each trial: boundaries, limits, diversity and the loss to keep low.</p>"
                )
            ),
            pn.FlexBox(self.loss, self.percent, self.guessed, self.signs, self.seconds, gap="8px"),
            self.only,
            pn.Row(self.start, self.stop),
            self.state,
            self.tried,
            sizing_mode="stretch_width",
        )


def trials_markup(choice: TargetChoice) -> Markup:
    """Return the trials as a table, the latest first."""
    trials: tuple[Trial, ...] = tuple(choice.trials)
    target = choice.target if choice.report is None else choice.report.target
    shown, best = set(frontier_of(trials)), picked(target, trials)
    rows = []
    for at in reversed(range(len(trials))):
        trial = trials[at]
        words = [
            word
            for word, holds in (
                ("picked", at == best),
                ("meets the target", trial.shortfall(target) == 0.0),
                ("on the frontier", at in shown),
            )
            if holds
        ]
        number = "–" if trial.loss is None else f"{trial.loss:.4f}"
        risk = "–" if trial.risk is None else f"{100 * trial.risk:.2f} %"
        disclosure = "–" if trial.disclosure is None else f"{100 * trial.disclosure:.1f} %"
        signs = {True: "kept", False: "lost", None: ""}[trial.signs]
        rows.append(
            (
                trial.candidate.name,
                number,
                risk,
                disclosure,
                signs,
                f"{trial.seconds:.1f}",
                f"{trial.expected:.1f}",
                trial.problem or ", ".join(words),
            )
        )
    return facts(
        ("trial", "loss", "risk", "guessed", "signs", "seconds", "expected", ""), rows, (1, 2, 3, 5, 6)
    )
