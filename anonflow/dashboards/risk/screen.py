"""The screen Risk: a reviewer's questions about a table before anonymization."""

from __future__ import annotations

from typing import Any

import panel as pn
import param
from markupsafe import Markup

from anonflow.dashboards.components.at_work import AtWork
from anonflow.dashboards.components.html import (
    badge,
    button,
    card,
    empty,
    html,
    in_lines,
    refused,
    say,
    soft,
    stack,
)
from anonflow.dashboards.components.option_field import param_field
from anonflow.dashboards.components.released_before import ReleasedCard, ReleasesModel
from anonflow.dashboards.components.shown_part import Screen
from anonflow.dashboards.components.upload import DiskDropper
from anonflow.dashboards.risk import parts
from anonflow.dashboards.risk.model import RiskModel
from anonflow.dashboards.risk.register_model import RegisterModel
from anonflow.dashboards.session.screen_words import NO_TABLE
from anonflow.dashboards.session.workspace import Workspace
from anonflow.hierarchy.wording import plural, verb_of

ALL_SIZES = "all sizes"


class RiskScreen(Screen):
    """Show which records are unique, on which columns, and in which population.

    Nothing is computed while the screen is hidden.
    """

    title = "Risk"
    model = param.ClassSelector(class_=RiskModel, constant=True)
    register = param.ClassSelector(class_=RegisterModel, constant=True)
    releases = param.ClassSelector(class_=ReleasesModel, constant=True)

    def __init__(self, workspace: Workspace, **settings: Any) -> None:
        super().__init__(
            workspace=workspace,
            model=RiskModel(workspace),
            register=RegisterModel(workspace),
            releases=ReleasesModel(workspace),
            **settings,
        )
        self._drawn: Any = None
        self.nothing = empty(NO_TABLE)
        self._make_settings()
        self._make_register()
        self._make_cards()
        self.lay_out(
            "What a reviewer asks about the table before it is anonymized. This screen shows values of the table: do not publish "
            "pictures of it.",
            self.nothing,
            self.inside,
            badge=badge(False, "Owner's view"),
        )
        self._show()

    # ------------------------------------------------------------------------------------- settings

    def _make_settings(self) -> None:
        self.known = html("")
        self.most = pn.widgets.Select(label="Look at every combination of", options={}, width=300)
        self.fraction = param_field(
            self.model.param.fraction, "Sampling fraction, if it is a sample", 310, start=1e-9, end=1.0, step=0.01,
            placeholder="such as 0.05",
        )  # fmt: skip
        self.sampled = html("")
        self.status = html("")
        pn.bind(self._most_changed, self.most, watch=True)

    def _most_changed(self, size: int | None) -> None:
        # on a narrow table fewer are shown than were chosen
        if size is not None and size != min(self.model.most, max(self.model.sizes())):
            self.model.most = size

    @param.depends("model.most", "model.fraction", watch=True)
    def _settings_changed(self) -> None:
        if self.shown:
            self.model.draw()

    @param.depends(
        "workspace.data.frame",
        "workspace.data.table",
        "workspace.data.coding",
        "workspace.data.answers",
        "shown",
        watch=True,
    )
    def _show(self) -> None:
        """Show the settings of the open table, and its picture if the screen is visible."""
        workspace, table = self.workspace, self.model.table
        usable = table is not None and bool(table.qi_columns)
        self.nothing.visible, self.inside.visible = not usable, usable
        if not usable:
            why = "No column is a quasi-identifier yet: choose on the screen Data which columns others can know."
            if workspace.data.frame is None:
                why = NO_TABLE
            elif workspace.data.coding:
                why = "The table is being coded under its columns: this takes some seconds."
            elif table is None:
                why = "The columns cannot be used like this yet; the screen Data says why."
            say(self.nothing, why)
            return
        assert table is not None
        sizes = self.model.sizes()
        options = {
            f"{'' if m == 1 else 'up to '}{plural(m, 'column')}: {plural(number, 'set')}": m
            for m, number in sizes.items()
        }
        self.most.param.update(options=options, value=min(self.model.most, max(sizes)))
        self.fraction.visible = not self.model.weighted
        weight = table.schema.weight_column
        says = "says for how many people of the population each record stands."
        of_weight = Markup("<p class='soft'>The column <b>{}</b> {}</p>").format(weight, says)
        say(self.sampled, "" if weight is None else of_weight)
        absent = table.dropped + table.filtered
        note = f" {plural(absent, 'record')} of the file {verb_of(absent, 'are')} left out, by the steps on the screen Prepare or for a missing value."
        strangers = workspace.data.known_to_strangers(table.qi_columns)
        others = [name for name in table.qi_columns if name not in strangers]
        knowledge = [("Others can know:", others)]
        if strangers:
            knowledge = [("Everybody can know:", strangers), ("Acquaintances also:", others)]
        sentences = [
            Markup("{} <b>{}</b>.").format(attacker, ", ".join(names)) for attacker, names in knowledge
        ]
        say(self.known, Markup("<p>{}{}</p>").format(Markup(" ").join(sentences), note if absent else ""))
        if self.shown:
            self.model.draw()
            self.register.count()
            self.releases.count(table)
        self._show_register()

    # ------------------------------------------------------------------------------------- register

    def _make_register(self) -> None:
        self.dropper = DiskDropper(
            self.workspace,
            self.register.take,
            lambda sentence: self.register.param.update(problem=sentence),
            "A register of the population: CSV or Parquet file",
        )
        self.forget = button("Remove the register", self.register.forget, visible=False)
        self.of_register = html("", "af-risk-register")

    @param.depends(
        "workspace.draft.spec", "register.figures", "register.busy", "register.problem", watch=True
    )
    def _show_register(self) -> None:
        model = self.register
        named = model.file is not None
        self.forget.visible = named
        text = refused(f"This register cannot be used: {model.problem}") if model.problem else Markup("")
        if model.figures is not None:
            text += parts.register(model.figures)
        self.of_register.object = str(text)

    # -------------------------------------------------------------------------------------- released

    @param.depends("releases.known", watch=True)
    def _show_released(self) -> None:
        if self.model.table is not None:
            self.released.show(self.model.table.n)

    @param.depends("workspace.uploads", "workspace.drawings", watch=True)
    def _released_changed(self) -> None:
        if self.shown:
            self.releases.count(self.model.table)
        self._show_released()

    # ---------------------------------------------------------------------------------------- cards

    def _make_cards(self) -> None:
        names = ("alone", "sets", "sets_table", "pairs", "columns", "riskiest", "population", "owners")
        self.parts = {name: html("", f"af-risk-{name.replace('_', '-')}") for name in names}
        self.size = pn.widgets.RadioButtonGroup(label="Sets of", options={ALL_SIZES: 0}, value=0)
        pn.bind(self._show_sets, self.size, watch=True)
        part = self.parts
        self.unsampled = html(
            soft(
                "A person who is unique here need not be unique in the population. If the table is a sample, type the sampling fraction "
                "above, or give a column the role weight on the screen Data."
            )
        )
        self.people = card("People and households", part["owners"])
        self.released = ReleasedCard(
            self.releases,
            lead=(
                "Whoever has two releases of the same people can compare them, and then k no longer holds: publish once, or let the next release go on "
                "from the earlier ones. The screen Publish offers it."
            ),
        )
        self.cards = [
            card("Who stands alone", part["alone"]),
            card("Every combination of columns", self.size, part["sets"], part["sets_table"], part["pairs"],
                 lead="Somebody who knows these columns of a person, and nothing else, finds the person's record if it is unique."),
            card("Which columns it comes from", part["columns"], lead="Of all minimal sample uniques, the share that contains each column."),
            card("The riskiest records", part["riskiest"], lead="By SUDA's score: a high score means that many small sets of columns single the record out. Marked: one of the smallest sets. Records are counted from 0."),
            self.people,
            card("In the population", self.unsampled, part["population"]),
        ]  # fmt: skip
        self.listed = card(
            "A register of the population", self.dropper, self.forget, AtWork(self.register.background), self.of_register,
            lead=("A list of people that others may have, with every quasi-identifier under the table's names, such as a voters' list. The "
    "attackers journalist and presence try it on the release; the file stays in your session."),
        )  # fmt: skip
        self.inside = stack(
            card(
                "What others know",
                self.known,
                in_lines(self.most, self.fraction),
                self.sampled,
                self.status,
                AtWork(self.model.background, self.model.stop),
            ),
            *self.cards,
            self.released.card,
            self.listed,
        )  # fmt: skip

    @param.depends("model.picture", "model.stopped", "model.stale", "model.problem", watch=True)
    def _show_picture(self) -> None:
        model, picture = self.model, self.model.picture
        for panel in self.cards:
            panel.css_classes = ["af-card", *(["af-stale"] if model.stale else [])]
            panel.visible = picture is not None and (panel is not self.people or self._has_owners())
        wrong = refused(f"This cannot be computed: {model.problem}")
        stopped = (
            soft("Cancelled. It begins again when you change a setting, or come back to this screen.")
            if model.stopped
            else ""
        )
        say(self.status, wrong if model.problem else stopped)
        if picture is None or picture is self._drawn:
            return
        self._drawn = picture
        risk = picture.risk
        sizes = {ALL_SIZES: 0} | {plural(s, "column"): s for s in range(1, risk.sets.most + 1)}
        if self.size.options != sizes:
            self.size.param.update(options=sizes, value=0)
        part = self.parts
        say(part["alone"], parts.alone(risk))
        say(part["pairs"], parts.pairs_of(risk))
        say(part["columns"], parts.column_parts(risk))
        say(part["riskiest"], parts.riskiest(picture))
        say(part["owners"], parts.owners(risk) if self._has_owners() else "")
        say(part["population"], "" if risk.population is None else parts.population(risk.population))
        self.unsampled.visible = risk.population is None
        self._show_sets(self.size.value)

    def _has_owners(self) -> bool:
        picture = self.model.picture
        return picture is not None and (
            picture.risk.people is not None or picture.risk.households is not None
        )

    def _show_sets(self, size: int) -> None:
        picture = self.model.picture
        if picture is None:
            return
        say(self.parts["sets"], parts.column_sets_of(picture.risk, size or None))
        say(self.parts["sets_table"], parts.sets_table(picture.risk, size or None))
