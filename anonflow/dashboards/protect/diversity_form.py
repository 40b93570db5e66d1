"""The form of diversity, with what it means and what the table allows."""

from __future__ import annotations

from html import escape
from typing import Any

import panel as pn
import param

from anonflow.algorithms.diversity.target import PARAMETERS, PRICE
from anonflow.dashboards.protect.diversity import CRITERIA, NONE, DiversityChoice


class DiversityForm(pn.viewable.Viewer):
    """Choose a criterion, its column and its parameters."""

    choice = param.ClassSelector(class_=DiversityChoice, constant=True)

    def __init__(self, choice: DiversityChoice, **params: Any) -> None:
        super().__init__(choice=choice, **params)
        words = {"none": NONE} | {name: name for name in CRITERIA if name != NONE}
        self.criterion = pn.widgets.Select.from_param(
            choice.param.criterion, label="Diversity of the sensitive value", options=words, width=260
        )
        self.sensitive = pn.widgets.Select(label="Sensitive column", options=[], width=220)
        self.numbers = {
            name: (pn.widgets.IntInput if option.whole else pn.widgets.FloatInput).from_param(
                choice.param[name],
                label=option.label,
                step=1 if option.whole else option.step,
                width=max(110, 9 * len(option.label)),
            )
            for name, option in PARAMETERS.items()
        }
        self.chance = pn.widgets.FloatInput.from_param(
            choice.param.risk, label="Chance that the draw is refused", step=0.01, width=275
        )
        self.way = pn.widgets.Select.from_param(
            choice.param.way,
            label="Against a draw that fails",
            options={"make classes": "classes", "more rows for all (blind)": "blind"},
            width=240,
        )
        self.meaning = pn.pane.HTML("", sizing_mode="stretch_width")
        self.feasible = pn.pane.HTML("", sizing_mode="stretch_width")
        pn.bind(self._set_sensitive, self.sensitive, watch=True)
        self._show()

    def _set_sensitive(self, column: str | None) -> None:
        if column is not None:
            self.choice.column = column

    @param.depends(
        *(f"choice.{name}" for name in ("criterion", "column", *PARAMETERS, "problem", "feasible")),
        "choice.workspace.draft.spec",
        watch=True,
    )
    def _show(self) -> None:
        choice = self.choice
        columns = choice.columns
        self.sensitive.param.update(
            options=columns, value=choice.column if choice.column in columns else None
        )
        is_diverse = choice.criterion != NONE
        for name, widget in self.numbers.items():
            widget.visible = name in choice.needed
        for widget in (self.sensitive, self.chance, self.way):
            widget.visible = is_diverse
        price = PRICE if is_diverse else ""
        self.meaning.object = f"<p>{escape(CRITERIA[choice.criterion])} {escape(choice.distance)} {price}</p>"
        if choice.problem:
            self.feasible.css_classes = ["af-bad"]
            self.feasible.object = f"<p><b>This cannot work.</b> {escape(choice.problem)}</p>"
        elif is_diverse and choice.feasible:
            self.feasible.css_classes = ["af-good"]
            self.feasible.object = (
                f"<p>The whole table allows this; the largest feasible {escape(choice.feasible)}.</p>"
            )
        else:
            self.feasible.css_classes = ["af-muted"]
            self.feasible.object = (
                ""
                if is_diverse
                else "<p>Without diversity, the k records that may belong to a person can all have the same sensitive value: then everybody knows this value.</p>"
            )

    def __panel__(self) -> pn.viewable.Viewable:
        return pn.Column(
            pn.FlexBox(self.criterion, self.sensitive, *self.numbers.values(), gap="8px"),
            self.meaning,
            self.feasible,
            pn.FlexBox(self.chance, self.way, gap="8px"),
            sizing_mode="stretch_width",
        )
