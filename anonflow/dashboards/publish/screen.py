"""The screen Publish: the checks, the files to publish, and the files that stay with the owner."""

from __future__ import annotations

from functools import partial
from typing import Any

import panel as pn
import param
from markupsafe import Markup

from anonflow.dashboards.components.at_work import AtWork
from anonflow.dashboards.components.html import (
    badge,
    button,
    card,
    cards,
    download,
    empty,
    facts,
    html,
    items,
    notice,
    say,
    soft,
    stack,
    verdict_of,
)
from anonflow.dashboards.components.option_field import param_field
from anonflow.dashboards.components.release_card import Remedies, card_lines, run_numbers
from anonflow.dashboards.components.released_before import ReleasedCard, outlook_of
from anonflow.dashboards.components.run_select import RunSelect
from anonflow.dashboards.components.shown_part import Screen
from anonflow.dashboards.publish.model import OWNER, PUBLIC, PublishModel
from anonflow.dashboards.publish.review_form import ReviewForm
from anonflow.dashboards.session.publication import Publication
from anonflow.dashboards.session.screen_words import CONFIRM, on_screen, roles_wait
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.jobs import FinishedRun

AGREE = "Draw another release: I will publish only one of them"

GO_ON = "Run again, and go on from these releases"
WITHOUT = "Run again without earlier releases"
HOW = {
    True: (
        "A plain second release can be compared with the earlier ones: whoever joined or left is found, and others have fewer than k people "
        "left. A run that goes on from them keeps people in their classes. Whoever cannot stay is held back: more people the more must be left."
    ),
    False: (
        "A plain second release can be compared with the earlier ones, and others have fewer than k people left. A run that goes on from them "
        "keeps people in their components; of a component that somebody left, all are held back."
    ),
}
"""What going on does, of methods of classes or not."""

DRAW = "Draw the release"
REDRAW = "Draw the same release again"
MOST_LISTED = 8
"""Settings that are named beside the link, at most."""


class PublishScreen(Screen):
    """The release of the chosen run."""

    title = "Publish"
    model = param.ClassSelector(class_=PublishModel, constant=True)

    def __init__(self, workspace: Workspace, **params: Any) -> None:
        super().__init__(workspace=workspace, model=PublishModel(workspace), **params)
        self.buttons: dict[str, pn.widgets.FileDownload] = {}
        self.about: dict[str, pn.pane.HTML] = {}
        self._make_draw()
        self._make_page()
        self.draw_after(workspace.draft, "spec", self._show_link)
        self.draw_after(self.model, "guess", self._show_link)
        self._show()
        self._show_released()
        self._show_link()

    # ----------------------------------------------------------------------------------------- draw

    def _make_draw(self) -> None:
        self.nothing = empty(
            "No run yet: go to Compare and press Run, choose a run there, then come back to publish it."
        )
        self.chosen = RunSelect(self.workspace, "Run").select
        self.promise = html("")
        self.second = notice("af-warn")
        self.agree = pn.widgets.Checkbox(label=AGREE, value=False)
        self.agree.link(self.model, value="agreed", bidirectional=True)
        self.draw = button(DRAW, self.model.draw, css="af-draw", color="primary", width=260)
        self._make_released()
        self.guessed = notice("af-warn")
        self.confirm = button(CONFIRM, self.model.confirm)
        self.state = html("")
        self.remedies = Remedies(self.workspace, self.model.price)
        self.may = html("")

    def _make_released(self) -> None:
        self.people = param_field(
            self.model.param.people, "People that all releases leave everybody", 280, start=2
        )
        self.go_on = button(
            GO_ON,
            lambda: self.model.go_on(not self.model.goes_on),
            css="af-go-on",
            color="primary",
            width=360,
        )
        self.released = ReleasedCard(self.model.releases, self.people, self.go_on)

    @param.depends("workspace.uploads", watch=True)
    def _releases_uploaded(self) -> None:
        self._show_released()

    @param.depends(
        "model.releases.known", "workspace.runs.chosen", "workspace.runs.finished", "workspace.starts.running", watch=True
    )  # fmt: skip
    def _show_released(self) -> None:
        model, run, earlier_releases = self.model, self.model.run, self.model.releases.known
        table = None if run is None or run.result.anonymization is None else run.result.anonymization.table
        # the release that was drawn of this run counts as no earlier one; it is told apart once it is here again
        self.released.card.visible = table is not None and not model.was_drawn
        self.go_on.visible = model.goes_on or earlier_releases.has_people
        # whoever has releases of these people decides about them before the draw; a first visitor has none
        parts = [part for part in self.inside if part is not self.released.card]
        parts.insert(1 if self.go_on.visible else len(parts), self.released.card)
        if parts != list(self.inside):
            self.inside.objects = parts
        self.people.visible = False
        if run is None or table is None:
            return
        obstacle = "" if model.goes_on else model.obstacle_to_going_on
        beside = None
        if model.goes_on:
            beside = _costs(run, model.plain)
        elif earlier_releases.has_people:
            beside = Markup("<p>{}</p>").format(obstacle or HOW[model.divides]) + outlook_of(earlier_releases)
            self.people.visible = model.divides and not obstacle
        self.released.show(table.n, beside)
        self.people.end = run.result.k
        self.go_on.label = WITHOUT if model.goes_on else GO_ON
        self.go_on.color = "default" if model.goes_on else "primary"
        self.go_on.disabled = bool(obstacle) or self.workspace.starts.running

    @param.depends(
        "workspace.runs.chosen", "workspace.runs.finished", "workspace.starts.running", "model.publication", "model.busy",
        "model.problem", "model.agreed", "workspace.data.answers", watch=True,
    )  # fmt: skip
    def _show(self) -> None:
        model, run = self.model, self.model.run
        self.nothing.visible, self.inside.visible = run is None, run is not None
        if run is None:
            return
        say(self.promise, run_numbers(run.result) + Markup("<p>{}</p>").format(model.promise()))
        drawn = bool(model.drawn or model.earlier) and model.publication is None
        self.agree.visible = drawn
        text = Markup("<p>{}.</p>").format(on_screen(model.earlier)) if model.earlier else Markup("")
        if model.drawn:
            text += Markup("<p><b>{}</b> {}</p>").format(
                f"A release of this table was drawn already: {', '.join(model.drawn)}.",
                "Somebody who has two releases about the same people can compare them and learn more. Publish only one, or none of the earlier ones.",
            )
        say(self.second, text if drawn else "")
        unconfirmed = model.unconfirmed
        self.confirm.visible = bool(unconfirmed)
        roles = "; ".join(f"{name}: {run.spec.columns[name].role}" for name in unconfirmed)
        say(self.guessed, f"{roles_wait(unconfirmed)} {roles}." if unconfirmed else "")
        self.draw.disabled = (
            model.busy or model.publication is not None or model.needs_agreement or bool(unconfirmed)
        )
        drawn_already = (
            "Already drawn" if model.publication is not None else REDRAW if model.was_drawn else DRAW
        )
        self.draw.label = "Drawing…" if model.busy and model.publication is None else drawn_already
        self._show_checks()
        self._show_released()
        say(self.limits, items(model.limits()))

    def _show_checks(self) -> None:
        model, publication = self.model, self.model.publication
        release_card = None if publication is None else publication.card
        self.remedies.show(release_card, None if model.run is None else model.run.id, model.busy)
        ready = publication is not None and publication.ok
        if ready and not len(self.files):
            self._make_files()
        self.files.visible = ready
        settled = release_card is None or release_card.ok
        fails = "For the public, but lines of the card fail: settle them, or accept them, before you publish"
        say(self.may, badge(True, "Public: may be published") if settled else verdict_of(False, bad=fails))
        for file, offer in self.buttons.items():
            offer.filename = model.file_name(file)
            obstacle = model.obstacle(file)
            offer.disabled = not ready or bool(obstacle)
            say(self.about[file], soft(obstacle or (PUBLIC | OWNER)[file][2]))
        if model.problem:
            text = verdict_of(False, bad="no release") + Markup("<p>{}</p>").format(model.problem)
        elif publication is not None:
            text = _checks(publication)
        elif model.busy:
            text = Markup("")
        elif model.was_drawn:
            text = soft(
                "A release of this run was drawn before this session was interrupted. The seed of the run gives the same one again, row by row: this is no "
                "second release."
            )
        else:
            text = soft(
                "Nothing is drawn yet. The draw gives every row one of its possible originals at random, then an independent verifier "
                "checks the result against the table."
            )
        say(self.state, text)

    # ---------------------------------------------------------------------------------------- files

    def _make_files(self) -> None:
        """Offer the files of a release; there is nothing of them before the first is drawn."""
        self.buttons = {
            file: download(
                title,
                partial(self.model.content, file),
                self.model.file_name(file),
                f"af-file-{file}",
                color="default" if file in OWNER else "primary",
                width=230,
            )
            for file, (title, _, _) in (PUBLIC | OWNER).items()
        }
        self.about = {file: html() for file in PUBLIC | OWNER}
        self.show_seed = pn.widgets.Checkbox(
            label="I know that the seed reveals whose row is whose: offer it for download", value=False
        )
        offers = {
            file: pn.Row(self.buttons[file], self.about[file], sizing_mode="stretch_width", margin=0)
            for file in PUBLIC | OWNER
        }
        self.seed = offers["seed"]
        self.seed.visible = False
        self.show_seed.link(self.seed, value="visible")
        public = card("Public", self.may, *(offers[file] for file in PUBLIC), classes=["af-public"])
        owner = card(
            "The owner's files",
            html(badge(False, "Owner only: keep these to yourself")),
            *(offers[file] for file in OWNER if file != "seed"),
            html(
                Markup("<p class='soft'>{} <code>anonflow run FLOW --seed-file SEED</code>.</p>").format(
                    "To repeat the run: put the flow beside the table, save the seed to a file that only you can read, then"
                )
            ),
            html(
                Markup("<p><b>The seed</b> {}</p>").format(
                    "is not among the files. With it and the table anybody can repeat the draw and learn whose row is whose. Never put it "
                    "beside the release."
                ),
                "af-warn",
            ),
            self.show_seed,
            self.seed,
            classes=["af-owner"],
        )
        both = pn.Row(public, owner, css_classes=["af-two"], sizing_mode="stretch_width")
        self.files[:] = [both, ReviewForm(self.model)]

    def _make_page(self) -> None:
        self.files = stack(visible=False)
        self.limits = html()
        self.link = html("", "af-link")
        self.inside = stack(
            self.chosen,
            card(
                "What is published", self.promise, self.second, self.agree, self.guessed, self.confirm, self.draw,
                AtWork(self.model.background), self.state, self.remedies,
            ),
            self.files,
            card("What it does not protect against", self.limits),
            self.released.card,
        )  # fmt: skip
        about_link = (
            "It contains methods, k, settings and the name of a built-in table. It never contains data."
        )
        self.lay_out(
            "One run becomes one release. The files in green may be published; the files in red stay with the owner of the table.",
            self.nothing,
            self.inside,
            card("A link to this configuration", self.link, lead=about_link),
        )

    # ----------------------------------------------------------------------------------------- link

    def _show_link(self) -> None:
        query = self.model.link()
        if not query:
            say(self.link, soft("Open a table first."))
            return
        text = Markup(
            '<code class="link" tabindex="0">{0}</code><button class="bk-btn" data-copy="{0}">Copy</button>'
        ).format(f"{_address()}?{query}")
        if self.workspace.data.source.dataset is None:
            text += Markup("<p>{}</p>").format(
                "It contains nothing of your file, not even column names: whoever opens it uploads a file first."
            )
        missing = self.model.not_in_the_link()
        if missing:
            listed = ", ".join(missing[:MOST_LISTED]) + (", ..." if len(missing) > MOST_LISTED else "")
            text += Markup("<p>{}</p>").format(
                f"Not in the link, because it may reveal something about the data: {listed}. The flow file has it."
            )
        say(self.link, text)


def _costs(run: FinishedRun, plain: FinishedRun | None) -> Markup:
    """Return what it costs to go on from earlier releases: people, and loss beside the run without them."""
    assert run.result.anonymization is not None
    facts_of, loss = run.result.anonymization.facts, run.result.measures.get("gcp")
    held, n = facts_of["held_back"], run.result.records
    numbers = [
        (f"{facts_of['persisting']:,}", "published again"),
        (f"{facts_of['newcomers']:,}", "published for the first time"),
        (f"{held:,} ({held / (held + n):.0%})", "held back"),
    ]
    if loss is not None:
        other = None if plain is None else plain.result.measures.get("gcp")
        beside = "" if other is None else f", {other:.4f} without earlier releases"
        numbers.append((f"{loss:.4f}", f"information loss (GCP){beside}"))
    return Markup("{}<p>{}</p>").format(cards(numbers), f"{facts_of['promise']}.")


def _checks(publication: Publication) -> Markup:
    """Return the verdict, the card, what was verified, and what to know before publishing."""
    rows = [
        [
            verdict_of(bool(item.holds), bad="not checked" if item.holds is None else "fails"),
            item.criterion,
            f"{item.failed:,}",
            item.detail or "from the data",
        ]
        for item in publication.findings
    ]
    text = Markup("<p>{}</p>").format(_verdict(publication))
    if publication.card is not None:
        text += Markup("<h4>Release card</h4>{}<h4>What was verified</h4>").format(
            card_lines(publication.card)
        )
    text += facts(("verdict", "criterion", "records failing", "how"), rows, [2])
    if publication.warnings:
        text += Markup("<h4>Before you publish</h4>{}").format(items(map(on_screen, publication.warnings)))
    return text


def _verdict(publication: Publication) -> Markup:
    """Return the verifier's result, always together with the attackers' results."""
    if not publication.ok:
        return verdict_of(
            False,
            bad=(
                "A check failed: there is nothing to download. Runs with the same settings give this release again, because to draw until one "
                "passes would bias the draw: change the settings."
            ),
        )
    if publication.card is None or publication.card.ok:
        return verdict_of(True, "Every check passed: this release may be published.")
    return verdict_of(
        False,
        bad=(
            f"{publication.card.headline()} Every check passed, so the release keeps what its method promises; these lines say what that does not "
            "prevent here."
        ),
    )


def _address() -> str:
    """Return where the app is, without a query."""
    location = pn.state.location
    if location is None or not location.hostname:
        return ""
    port = f":{location.port}" if location.port else ""
    return f"{location.protocol}//{location.hostname}{port}{location.pathname}"
