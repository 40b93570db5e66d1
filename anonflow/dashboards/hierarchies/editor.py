"""The editor of a column's hierarchy: build it, see it drawn, and set boundaries by clicks on the drawing."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import panel as pn
import param

from anonflow.dashboards.components.clickable import Clickable
from anonflow.dashboards.components.shown_part import ShownPart
from anonflow.dashboards.components.upload import DiskDropper
from anonflow.dashboards.hierarchies.form import FROM_LOWEST, HierarchyChoice
from anonflow.dashboards.hierarchies.tree_picture import BEYOND_LEGEND
from anonflow.dashboards.session.hierarchy_files import MOST
from anonflow.dashboards.session.paths import safe_name

USED = "Used."


_LEGEND = (
    f'<div class="legend"><span><b>◆</b> limit: nothing is generalized beyond</span>'
    f"<span><b>dashed</b> {BEYOND_LEGEND}</span>"
    f"<span><b>▸ n +</b> opens what is below</span></div>"
)


class HierarchyBuilder(ShownPart):
    """Choose a column, say where its hierarchy comes from, look at it, use it, click boundaries."""

    choice = param.ClassSelector(class_=HierarchyChoice)

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        choice = self.choice
        self.column = pn.widgets.Select(label="Column", options=[], width=240)
        self.way = pn.widgets.Select(label="Hierarchy from", options=[], width=240)
        self.step = pn.widgets.FloatInput.from_param(choice.param.step, label="Narrowest width", width=130)
        self.levels = pn.widgets.IntInput.from_param(choice.param.levels, label="Levels", width=100)
        self.fanout = pn.widgets.IntInput.from_param(
            choice.param.fanout, label="Intervals joined at each level", width=230
        )
        self.origin = pn.widgets.FloatInput.from_param(
            choice.param.origin, label="An interval begins at", width=170
        )
        self.hide = pn.widgets.RadioButtonGroup.from_param(
            choice.param.hide, label="Positions are hidden from the", options=["right", "left"]
        )
        self.lengths = pn.widgets.TextInput.from_param(
            choice.param.lengths,
            label="Characters of the prefixes, or a classification",
            placeholder="such as 1, 3 or nace",
            width=330,
        )
        self.periods = pn.widgets.MultiChoice.from_param(
            choice.param.periods,
            label="Periods that a date is generalized to",
            options=list(FROM_LOWEST),
            width=420,
        )
        self.clicks = pn.widgets.RadioButtonGroup.from_param(
            choice.param.clicks,
            label="Clicks on the tree",
            options={"Clicks choose values to group": "group", "Clicks set boundaries": "boundary"},
        )
        self.label = pn.widgets.TextInput(label="Name of the group", placeholder="such as Europe", width=220)
        self.group = pn.widgets.Button(label="Put together", color="primary", on_click=self._group)
        self.rename = pn.widgets.Button(label="Rename", on_click=self._rename)
        self.dissolve = pn.widgets.Button(label="Dissolve", on_click=lambda event: choice.dissolve())
        self.picked = pn.pane.HTML("", sizing_mode="stretch_width", css_classes=["af-muted"])
        self.delimiter = pn.widgets.Select(
            label="Delimiter",
            options={"semicolon": ";", "comma": ",", "tab": "\t", "bar": "|"},
            width=150,
        )
        self.dropper = DiskDropper(
            lambda: choice.workspace.folder, self._file, self._refused, most=MOST,
            label="CSV file: no header, a row for each value, from the value to the root",
            sizing_mode="stretch_width", css_classes=["af-dropper"],
        )  # fmt: skip
        self.use = pn.widgets.Button(
            label="Use this hierarchy", color="primary", on_click=lambda event: choice.use()
        )
        self.drop = pn.widgets.Button(label="No hierarchy", on_click=lambda event: choice.drop())
        self.export = pn.widgets.FileDownload(
            callback=lambda: io.BytesIO(choice.export()),
            filename="hierarchy.csv",
            label="Save as CSV",
            width=130,
        )
        self.to = pn.widgets.Select(label="Copy it to the column", options=[], width=220)
        self.copy = pn.widgets.Button(label="Copy", on_click=self._copy)
        self.further = pn.FlexBox(self.to, pn.Row(self.copy, self.export, margin=(18, 0, 0, 0)), gap="12px")
        self.state = pn.pane.HTML("", sizing_mode="stretch_width")
        self.problem = pn.pane.HTML("", sizing_mode="stretch_width", css_classes=["af-bad"], visible=False)
        self.tree = Clickable(on_click=choice.click, sizing_mode="stretch_width")
        self.legend = pn.pane.HTML(_LEGEND, sizing_mode="stretch_width")
        self.intervals = pn.FlexBox(self.step, self.levels, self.fanout, self.origin, gap="8px")
        self.positions = pn.Row(self.hide)
        self.prefixes = pn.Row(self.lengths)
        self.calendar = pn.Row(self.periods)
        self.groups = pn.Column(
            self.clicks,
            pn.FlexBox(
                self.label, pn.Row(self.group, self.rename, self.dissolve, margin=(18, 0, 0, 0)), gap="8px"
            ),
            self.picked,
            sizing_mode="stretch_width",
        )
        self.file = pn.Column(self.delimiter, self.dropper, sizing_mode="stretch_width")
        pn.bind(self._column, self.column, watch=True)
        pn.bind(self._way, self.way, watch=True)
        self.draw_after(
            choice,
            ["column", "way", "tree", "problem", "used", "boundary", "picked", "opened"],
            self._show,
        )
        self.draw_after(choice.workspace.draft, "spec", self._show)
        self.draw_once_shown(self._show)

    def _column(self, name: str | None) -> None:
        if name is not None:
            self.choice.column = name

    def _way(self, way: str | None) -> None:
        if way is not None:
            self.choice.way = way

    def _group(self, *events: Any) -> None:
        self.choice.group(self.label.value)
        if not self.choice.problem:
            self.label.value = ""

    def _rename(self, *events: Any) -> None:
        self.choice.rename(self.label.value)
        if not self.choice.problem:
            self.label.value = ""

    def _copy(self, *events: Any) -> None:
        if self.to.value:
            self.choice.copy_to(self.to.value)

    def _file(self, name: str, path: Path) -> None:
        self.choice.take_file(path, self.delimiter.value)

    def _refused(self, sentence: str) -> None:
        self.choice.problem = sentence

    def _show(self) -> None:
        choice = self.choice
        columns = [name for name in choice.param.column.objects if name is not None]
        self.column.param.update(options=columns, value=choice.column)
        ways = choice.ways if choice.column is not None else {}
        self.way.param.update(options=ways, value=choice.way if choice.way in ways.values() else None)
        self.intervals.visible = choice.way == "intervals"
        self.positions.visible = choice.way == "positions"
        self.prefixes.visible = choice.way == "prefixes"
        self.calendar.visible = choice.way == "calendar"
        self.groups.visible = choice.way == "groups"
        self.file.visible = choice.way == "file"
        drawing = choice.drawing()
        self.tree.html = "" if drawing is None else drawing.svg()
        self.legend.visible = drawing is not None
        self.use.disabled = choice.tree is None or choice.used
        if self.to.options != choice.others:
            self.to.options = choice.others
            self.to.value = choice.others[0] if choice.others else None
        self.further.visible = choice.tree is not None
        self.export.filename = f"{safe_name(str(choice.column))}-hierarchy.csv"
        self.drop.visible = choice.has_hierarchy
        self.problem.object = f"<p>{escape(choice.problem)}</p>"
        self.problem.visible = bool(choice.problem)
        picked = (
            _chosen(choice.picked) if choice.picked else "Click values on the tree, then name their group."
        )
        self.picked.object = f"<p>{escape(picked)}</p>"
        self.state.object = self._state()

    def _state(self) -> str:
        choice = self.choice
        if choice.column is None:
            return "<p>Open a table, and say which columns are quasi-identifiers or sensitive.</p>"
        if choice.is_sensitive:
            return (
                f"<p><b>{USED}</b> t-closeness measures along this hierarchy; the column is published as it is.</p>"
                if choice.used
                else "<p>Not used yet: this column is sensitive. If it has a hierarchy, values below the same node are closer for t-closeness than others; the column is published as it is.</p>"
            )
        kind = choice.entry.kind or ""
        if choice.used and choice.boundary:
            return f"<p><b>{USED}</b> {escape(_limits(choice.boundary))}</p>"
        if choice.used:
            return f"<p><b>{USED}</b> Click a node of the tree, and nothing is generalized beyond it.</p>"
        if choice.tree is None:
            return f"<p>{escape(_kind_now(kind))}</p>"
        return f"<p>{escape(_unused(kind))}</p>"

    def __panel__(self) -> pn.viewable.Viewable:
        return pn.Column(
            pn.FlexBox(self.column, self.way, pn.Row(self.use, self.drop, margin=(18, 0, 0, 0)), gap="12px"),
            self.intervals,
            self.positions,
            self.prefixes,
            self.calendar,
            self.groups,
            self.file,
            self.problem,
            self.state,
            self.tree,
            self.legend,
            self.further,
            sizing_mode="stretch_width",
        )


def _chosen(labels: Sequence[str], shown: int = 6) -> str:
    """Return which labels are about to be grouped, the first of them by name."""
    more = f" and {len(labels) - shown:,} more" if len(labels) > shown else ""
    return f"Chosen: {', '.join(labels[:shown])}{more}"


def _limits(labels: Sequence[str]) -> str:
    """Return the limits of the column, and how to remove them."""
    return f"Limits: {', '.join(labels)}. Click the root to remove them."


def _kind_now(kind: str) -> str:
    """Return the kind of a column that has no hierarchy."""
    return f"This column is {kind} now."


def _unused(kind: str) -> str:
    """Return how to use the hierarchy that is drawn."""
    return (
        f"Not used yet: this column is {kind} now. Use this hierarchy, "
        "or click a node to use it with that limit."
    )
