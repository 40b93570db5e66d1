"""The numbers of a run, and the release card, as screens show them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import panel as pn
from markupsafe import Markup

from anonflow.dashboards.components.direction import directed
from anonflow.dashboards.components.html import (
    button,
    cards,
    facts,
    html,
    in_lines,
    items,
    notice,
    say,
    stack,
    verdict_of,
)
from anonflow.dashboards.session.screen_words import on_screen
from anonflow.dashboards.session.workspace import Workspace
from anonflow.engine.execution.result import RunResult
from anonflow.engine.report.card import ReleaseCard, Remedy
from anonflow.errors import AnonflowError

PRICE, PRICING = "What would each cost?", "Trying each of them…"
TRYING = "trying each remedy, which is a run of the method"


def run_numbers(result: RunResult) -> Markup:
    """Return what there is to know of a run at first, in numbers."""
    loss = result.measures.get("gcp", float("nan"))
    return cards(
        [
            (result.algorithm, "method"),
            (str(result.k), "k"),
            (f"{result.records:,}", "records"),
            (f"{loss:.4f}", directed("information loss (GCP)", "gcp")),
            (f"{result.suppressed:,}", directed("suppressed", "suppressed")),
            (result.guarantee, "guarantee"),
        ]
    )


def card_lines(card: ReleaseCard) -> Markup:
    """Return a line for each thing to know of a release: its verdict, what was found, and what remedies cost."""
    signs = {"passed": verdict_of(True, "passed"), "failed": verdict_of(False, bad="failed")}
    rows = []
    for line in card.lines:
        remedies = items(remedy.sentence() for remedy in line.remedies) if line.remedies else ""
        finding = Markup("{}{}").format(line.says, remedies)
        rows.append([line.name.capitalize(), signs.get(line.verdict, line.verdict), finding])
    return facts(["line", "verdict", "what was found, and what to do"], rows)


class Remedies(pn.viewable.Viewer):
    """A button for each remedy of the lines that fail: it changes the settings of the run, and runs it again; another tries what each costs."""

    def __init__(self, workspace: Workspace, price: Callable[[], None], **params: Any) -> None:
        super().__init__(**params)
        self._workspace = workspace
        self.price = button(PRICE, price, css="af-price", width=240)
        self.buttons = in_lines()
        self.refusal = notice("af-bad")
        heading = html(
            Markup("<h4>{}</h4>").format("Apply one of these to the settings of this run, and run it again")
        )
        self._inside = [heading, self.buttons, self.price, self.refusal]
        self._whole = stack(visible=False)

    def show(self, card: ReleaseCard | None, run: int | None, pricing: bool = False) -> None:
        """Show the remedies of a run's card; none without a card, or without a line that fails."""
        remedies = [] if card is None else [remedy for line in card.failing for remedy in line.remedies]
        changes = [remedy for remedy in remedies if remedy.change]
        self.refusal.visible = False
        if changes and not len(self._whole):
            self._whole[:] = self._inside
        self._whole.visible = run is not None and bool(changes)
        self.price.label, self.price.disabled = (PRICING if pricing else PRICE), pricing
        self.price.visible = not any(remedy.price is not None for remedy in remedies)
        if run is not None:
            self.buttons.objects = [
                button(remedy.action, partial(self._apply, run, remedy), css="af-remedy")
                for remedy in changes
            ]

    def _apply(self, run: int, remedy: Remedy) -> None:
        try:
            self._workspace.starts.apply(run, remedy.change)
        except AnonflowError as error:
            say(self.refusal, Markup("<p role='alert'>{}</p>").format(on_screen(error.message)))

    def __panel__(self) -> pn.viewable.Viewable:
        return self._whole
