"""The card of the screen Compare with the losses of analyses: every declared measure, for every run."""

from __future__ import annotations

from typing import Any

import panel as pn
import param
from markupsafe import Markup

from anonflow.algorithms.registry import look_of
from anonflow.dashboards.compare.measure_form import MeasureForm
from anonflow.dashboards.compare.utility_model import EVERYTHING, UtilityModel, about
from anonflow.dashboards.components.clickable import Clickable
from anonflow.dashboards.components.direction import directed, direction
from anonflow.dashboards.components.html import badge, button, card, facts, html, notice, say, soft, stack
from anonflow.dashboards.session.workspace import Workspace
from anonflow.drawing.figures import against_k
from anonflow.drawing.fragments import or_dash


class UtilityCard(pn.viewable.Viewer):
    """A measure, its settings, and its value for each run."""

    workspace = param.ClassSelector(class_=Workspace, constant=True)
    model = param.ClassSelector(class_=UtilityModel, constant=True)

    def __init__(self, workspace: Workspace, **params: Any) -> None:
        super().__init__(workspace=workspace, model=UtilityModel(workspace), **params)
        self.form: MeasureForm | None = None
        self.measure = pn.widgets.Select(
            label="Measure", options=[EVERYTHING, *self.model.offered()], value=EVERYTHING, width=330
        )
        self.explanation = html("")
        self.settings = stack()
        self.start = button("Measure every run", self._start, css="af-measure", color="primary", width=190)
        self.stop = button("Stop", self.model.stop, width=100)
        self.clear = button("Clear", self.model.clear, width=100)
        self.status = html("")
        self.problem = notice("af-bad")
        self.table = html("", "af-utility")
        self.title = pn.widgets.Select(label="Against k", options=[], width=330)
        self.figure = Clickable(
            on_click=lambda key: self.workspace.runs.choose(int(key.partition(":")[2])),
            css_classes=["af-utility-figure"],
            sizing_mode="stretch_width",
        )
        self._card = card(
            "What analyses lose",
            html(badge(False, "Owner's view")),
            self.measure,
            self.explanation,
            self.settings,
            pn.Row(self.start, self.stop, self.clear),
            self.status,
            self.problem,
            self.table,
            self.title,
            self.figure,
            lead=(
                "Computed from the originals and from plausible tables of what each run would publish; a suppressed row counts as lost. "
                "These numbers reveal something about the originals: do not publish them."
            ),
        )
        pn.bind(lambda name: self._name_changed(), self.measure, watch=True)
        pn.bind(self._show_figure, self.title, watch=True)
        self._name_changed()
        self._show()

    @param.depends("workspace.data.table", watch=True)
    def _name_changed(self) -> None:
        """Show the settings of the measure, over the columns of the table that is open."""
        name, table = self.measure.value, self.workspace.data.table
        self.form = None if name == EVERYTHING or table is None else MeasureForm(name, table)
        self.settings.objects = [] if self.form is None else self.form.rows
        words = ", ".join(self.model.without_settings()) if name == EVERYTHING else about(name)
        self.explanation.object = str(soft(words))

    def _start(self) -> None:
        name = self.measure.value
        self.model.measure_runs(name, {} if self.form is None else self.form.settings())

    @param.depends(
        "model.numbers", "model.busy", "model.status", "model.problem",
        "workspace.runs.finished", "workspace.runs.chosen", watch=True,
    )  # fmt: skip
    def _show(self) -> None:
        model = self.model
        titles = list(model.numbers)
        self.start.disabled = model.busy or not model.results
        self.stop.visible = model.busy
        self.clear.visible = bool(titles) and not model.busy
        self.status.object = str(soft(model.status, "status"))
        say(self.problem, model.problem)
        self.table.object = str(self._rows(titles)) if titles else ""
        if self.title.options != titles:
            self.title.param.update(options=titles, value=titles[-1] if titles else None)
        self.title.visible = self.figure.visible = bool(titles)
        self._show_figure()

    def _rows(self, titles: list[str]) -> Markup:
        model = self.model
        header: list[Any] = ["run"]
        for title in titles:
            header.append(Markup("{}<br><small>{}</small>").format(title, direction(title.partition(":")[0])))
        rows = []
        for run in model.results:
            numbers = [model.numbers[title].get(run.id) for title in titles]
            if any(number is not None for number in numbers):
                cells = [
                    _cell(title, number, run.id in model.best(title))
                    for title, number in zip(titles, numbers, strict=True)
                ]
                rows.append([f"{run.name} (#{run.id})", *cells])
        return facts(header, rows, range(1, 1 + len(titles)))

    def _show_figure(self, *titles: str) -> None:
        title = self.title.value
        if title not in self.model.numbers:
            return
        name = title.partition(":")[0]
        self.figure.html = against_k(
            self.model.points(title),
            directed(name, name),
            look_of,
            chosen=self.workspace.runs.chosen,
            number=".3f",
            width=760,
        )

    def __panel__(self) -> pn.viewable.Viewable:
        return self._card


def _cell(title: str, numbers: dict[str, float] | None, best: bool) -> Markup:
    """Return a run's number, with the measure's further numbers below it."""
    if numbers is None:
        return Markup("–")
    name = title.partition(":")[0]
    main_number = Markup("<b>● {}</b>" if best else "{}").format(_figure_text(numbers.get(name)))
    beside = [
        f"{key.removeprefix(f'{name}-')} {_figure_text(value)}"
        for key, value in numbers.items()
        if key != name
    ]
    lines = Markup("").join(Markup("<br><small class='soft'>{}</small>").format(line) for line in beside)
    return main_number + lines


def _figure_text(value: float | None) -> str:
    return or_dash(value, ",.0f" if value is not None and abs(value) >= 100 else ".3f")
