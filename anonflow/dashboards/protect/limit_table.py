"""The table in which weights and limits of the quasi-identifiers are typed."""

from __future__ import annotations

import math
from html import escape
from typing import Any

import pandas as pd
import panel as pn
import param

from anonflow.dashboards.protect.column_limits import FIELDS, LimitChoice


class LimitTable(pn.viewable.Viewer):
    """Type weights and limits."""

    choice = param.ClassSelector(class_=LimitChoice, constant=True)

    def __init__(self, choice: LimitChoice, **params: Any) -> None:
        super().__init__(choice=choice, **params)
        number = {"type": "number"}
        names = ["column", "kind", *FIELDS, "boundary"]
        self.table = pn.widgets.Tabulator(
            pd.DataFrame(columns=names),
            show_index=False,
            sortable=False,
            selectable=False,
            editors={name: number if name in FIELDS else None for name in names},
            titles={
    "column": "Column",
    "kind": "Kind",
    "weight": "Weight ✎",
    "interval": "Intervals ✎",
    "max-width": "Max width ✎",
    "max-set": "Max set ✎",
    "at-least": "At least ✎",
    "boundary": "Boundary",
},
            header_tooltips={
    "weight": "how many times the column counts in the information loss",
    "interval": "numeric: no value leaves its interval of this width",
    "max-width": "numeric: no published range is wider",
    "max-set": "categorical: no published set has more values",
    "at-least": "hierarchy: nothing below this level is published; 1 for the parents of its leaves",
    "boundary": "hierarchy: click them on the tree, under Hierarchies",
},
            layout="fit_columns",
            widths={"column": 185, "kind": 94, "weight": 84, "interval": 104, "max-width": 112, "max-set": 98, "at-least": 96},
            sizing_mode="stretch_width",

        )  # fmt: skip
        self.table.on_edit(self.edited)
        self.refusal = pn.pane.HTML("", css_classes=["af-bad"], visible=False, sizing_mode="stretch_width")
        self._show()

    def edited(self, event: Any) -> None:
        """Take a number that was typed."""
        rows = self.choice.rows
        if rows is not None and 0 <= event.row < len(rows):
            self.choice.choose(str(rows["column"].iloc[event.row]), event.column, event.value)

    @param.depends("choice.rows", "choice.refusal", watch=True)
    def _show(self) -> None:
        rows = self.choice.rows
        if rows is not None:
            shown = rows.copy()
            for name in FIELDS:
                shown[name] = [None if math.isnan(number) else number for number in shown[name]]
            shown = shown.astype(dict.fromkeys(FIELDS, object))
            if not shown.equals(self.table.value):
                self.table.value = shown
        self.refusal.object = f"<p>{escape(self.choice.refusal)}</p>"
        self.refusal.visible = bool(self.choice.refusal)

    def __panel__(self) -> pn.viewable.Viewable:
        return pn.Column(
            pn.pane.HTML(
                "<p>Click a number to change it; empty the field to remove it.</p>", css_classes=["af-muted"]
            ),
            self.table,
            self.refusal,
            sizing_mode="stretch_width",
        )
