"""The screen Risk: a reviewer's questions about a table before anonymization."""

from __future__ import annotations

from typing import Any

import panel as pn
import param
from markupsafe import Markup

from anonflow.dashboards.components.clickable import PARTS
from anonflow.dashboards.components.html import badge, card, empty, html
from anonflow.dashboards.components.shown_part import Filling
from anonflow.dashboards.components.upload import DiskDropper
from anonflow.dashboards.risk import parts, texts
from anonflow.dashboards.risk.model import RiskModel
from anonflow.dashboards.risk.register_model import RegisterModel
from anonflow.dashboards.session.screen_words import NO_TABLE
from anonflow.dashboards.session.workspace import Workspace

__all__ = ["RiskScreen"]


class RiskScreen(pn.viewable.Viewer):
    """Show which records are unique, on which columns, and in which population.

    Parameters
    ----------
    workspace : Workspace

    Notes
    -----
    Nothing is computed while the screen is hidden.
    """

    workspace = param.ClassSelector(class_=Workspace, constant=True)
    title = param.String(default=texts.TITLE, constant=True)

    def __init__(self, workspace: Workspace, **settings: Any) -> None:
        super().__init__(workspace=workspace, **settings)
        self.model = RiskModel(workspace)
        self.register = RegisterModel(workspace)
        self._filling = Filling()
        self._drawn: Any = None
        self.nothing = empty(NO_TABLE)
        self._make_settings()
        self._make_register()
        self._make_cards()
        self._root = pn.Column(
            html(
                Markup("<h2>{}</h2><p>{} <span class='soft'>{}</span></p>").format(
                    texts.TITLE, badge(False, texts.OWNERS_VIEW), texts.LEAD
                )
            ),
            self.nothing,
            self.inside,
            sizing_mode="stretch_width",
        )
        workspace.param.watch(self._show, ["frame", "table", "coding"])
        workspace.draft.param.watch(self._show_reasons, "spec")
        workspace.draft.param.watch(self._show_register, "spec")
        self._root.param.watch(self._show, "visible")
        self.model.param.watch(self._settings_changed, ["most", "fraction"])
        self.model.param.watch(self._show_picture, ["picture", "computing", "stale", "problem"])
        self.register.param.watch(self._show_register, ["figures", "computing", "problem"])
        self._show()

    # ------------------------------------------------------------------------------------- settings

    def _make_settings(self) -> None:
        self.known = html("")
        self.most = pn.widgets.Select(label=texts.MOST, options={}, width=300)
        self.fraction = pn.widgets.FloatInput(
            label=texts.FRACTION, value=None, start=1e-9, end=1.0, step=0.01,
            placeholder=texts.FRACTION_EXAMPLE, width=240,
        )  # fmt: skip
        self.sampled = html("")
        self.status = html("")
        self.most.param.watch(self._most_changed, "value")
        self.fraction.param.watch(self._fraction_changed, "value")

    def _most_changed(self, event: Any) -> None:
        if not self._filling and event.new is not None:
            self.model.most = event.new

    def _fraction_changed(self, event: Any) -> None:
        if not self._filling:
            self.model.fraction = event.new

    def _settings_changed(self, *events: Any) -> None:
        if self._root.visible:
            self.model.compute()

    def _show(self, *events: Any) -> None:
        """Show the settings of the open table, and its picture if the screen is visible."""
        workspace, table = self.workspace, self.model.table
        usable = table is not None and bool(table.qi_columns)
        self.nothing.visible, self.inside.visible = not usable, usable
        if not usable:
            why = NO_TABLE if workspace.frame is None else texts.NO_COLUMNS
            if workspace.frame is not None and table is None:
                why = texts.CODING if workspace.coding else texts.WRONG
            self.nothing.object = str(Markup("<p>{}</p>").format(why))
            return
        assert table is not None
        sizes = self.model.sizes()
        with self._filling:
            options = {texts.combinations(m, number): m for m, number in sizes.items()}
            if self.most.options != options:
                self.most.options = options
            self.most.value = min(self.model.most, max(sizes))
            self.fraction.visible = not self.model.weighted
        weight = table.schema.weight_column
        self.sampled.object = "" if weight is None else str(
            Markup("<p class='soft'>{}</p>").format(Markup(texts.WEIGHTED).format(column=Markup("<b>{}</b>").format(weight)))
        )  # fmt: skip
        left = table.dropped + table.filtered
        note = f" {texts.left_out(left)}" if left else ""
        self.known.object = str(
            Markup("<p>{} <b>{}</b>.{}</p>").format(texts.OTHERS_KNOW, ", ".join(table.qi_columns), note)
        )
        self._show_reasons()
        if self._root.visible:
            self.model.compute()
            self.register.compute()
        self._show_register()

    # ------------------------------------------------------------------------------------- register

    def _make_register(self) -> None:
        limits = self.workspace.limits
        self.dropper = DiskDropper(
            lambda: self.workspace.folder, self.register.take, self._register_refused, most=limits.upload_bytes,
            elsewhere=limits.elsewhere, stylesheets=[PARTS], label=texts.REGISTER_FILE,
            sizing_mode="stretch_width", css_classes=["af-dropper"],
        )  # fmt: skip
        self.forget = pn.widgets.Button(label=texts.FORGET, visible=False)
        self.forget.on_click(lambda event: self.register.forget())
        self.of_register = html("", "af-risk-register")

    def _register_refused(self, sentence: str) -> None:
        self.register.problem = sentence

    def _show_register(self, *events: Any) -> None:
        model = self.register
        named = model.file is not None
        self.forget.visible = named
        text = Markup("")
        if model.problem:
            text += Markup("<p class='af-bad' role='alert'>{}</p>").format(
                texts.register_refused(model.problem)
            )
        if model.computing:
            text += Markup("<p class='soft' role='status'>{}</p>").format(texts.COMPARING)
        elif model.figures is not None:
            text += parts.register(model.figures)
        self.of_register.object = str(text)

    # ---------------------------------------------------------------------------------------- cards

    def _make_cards(self) -> None:
        names = (
            "alone",
            "sets",
            "sets_table",
            "pairs",
            "columns",
            "riskiest",
            "population",
            "owners",
            "reasons",
        )
        self.parts = {name: html("", f"af-risk-{name.replace('_', '-')}") for name in names}
        self.size = pn.widgets.RadioButtonGroup(label=texts.SIZE, options={texts.ALL_SIZES: 0}, value=0)
        self.size.param.watch(self._show_sets, "value")
        part = self.parts
        self.unsampled = html(Markup("<p class='soft'>{}</p>").format(texts.UNSAMPLED))
        self.people = card(texts.OWNERS, part["owners"])
        self.reasons = card(texts.REASONS, part["reasons"], lead=texts.ABOUT_REASONS)
        self.cards = [
            card(texts.ALONE, part["alone"]),
            card(texts.COMBINATIONS, self.size, part["sets"], part["sets_table"], part["pairs"],
                 lead=texts.ABOUT_COMBINATIONS),
            card(texts.FROM_COLUMNS, part["columns"], lead=texts.ABOUT_FROM_COLUMNS),
            card(texts.RISKIEST, part["riskiest"], lead=texts.ABOUT_RISKIEST),
            self.people,
            card(texts.POPULATION, self.unsampled, part["population"]),
        ]  # fmt: skip
        self.listed = card(
            texts.REGISTER, self.dropper, self.forget, self.of_register,
            lead=texts.ABOUT_REGISTER,
        )  # fmt: skip
        self.inside = pn.Column(
            card(
                texts.KNOWN,
                self.known,
                pn.FlexBox(self.most, self.fraction, gap="8px", sizing_mode="stretch_width"),
                self.sampled,
                self.status,
            ),
            *self.cards,
            self.listed,
            self.reasons,
            sizing_mode="stretch_width",
            margin=0,
        )  # fmt: skip

    def _show_picture(self, *events: Any) -> None:
        model, picture = self.model, self.model.picture
        for each in self.cards:
            each.css_classes = ["af-card", *(["af-stale"] if model.stale else [])]
            each.visible = picture is not None and (each is not self.people or self._has_owners())
        self.reasons.visible = picture is not None
        if model.problem:
            self.status.object = str(
                Markup("<p class='af-bad' role='alert'>{}</p>").format(texts.not_computed(model.problem))
            )
        else:
            computing = f"<p class='soft' role='status'>{texts.COMPUTING}</p>"
            self.status.object = computing if model.computing else ""
        if picture is None or picture is self._drawn:
            return
        self._drawn = picture
        risk = picture.risk
        sizes = {texts.ALL_SIZES: 0} | {texts.of_columns(s): s for s in range(1, risk.sets.most + 1)}
        with self._filling:
            if self.size.options != sizes:
                self.size.options = sizes
                self.size.value = 0
        part = self.parts
        part["alone"].object = str(parts.alone(risk))
        part["pairs"].object = str(parts.pairs_of(risk))
        part["columns"].object = str(parts.column_parts(risk))
        part["riskiest"].object = str(parts.riskiest(picture))
        part["owners"].object = str(parts.owners(risk)) if self._has_owners() else ""
        part["population"].object = (
            str(parts.population(risk.population)) if risk.population is not None else ""
        )
        self.unsampled.visible = risk.population is None
        self._show_sets()
        self._show_reasons()

    def _has_owners(self) -> bool:
        picture = self.model.picture
        return picture is not None and (
            picture.risk.people is not None or picture.risk.households is not None
        )

    def _show_sets(self, *events: Any) -> None:
        picture = self.model.picture
        if picture is None or self._filling:
            return
        size = self.size.value or None
        self.parts["sets"].object = str(parts.column_sets_of(picture.risk, size))
        self.parts["sets_table"].object = str(parts.sets_table(picture.risk, size))

    def _show_reasons(self, *events: Any) -> None:
        picture = self.model.picture
        if picture is not None:
            columns = self.workspace.draft.spec.columns
            self.parts["reasons"].object = str(parts.reasons(picture.advice, columns))

    def __panel__(self) -> pn.viewable.Viewable:
        return self._root
