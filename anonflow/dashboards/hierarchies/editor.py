"""The editor of a column's hierarchy: build it, see it drawn, and set boundaries by clicks on the drawing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import panel as pn
import param
from markupsafe import Markup

from anonflow.dashboards.components.clickable import Clickable
from anonflow.dashboards.components.html import button, download, html, in_lines, notice, say, soft, stack
from anonflow.dashboards.components.option_field import param_field
from anonflow.dashboards.components.shown_part import ShownPart
from anonflow.dashboards.components.upload import DiskDropper
from anonflow.dashboards.hierarchies.form import FROM_LOWEST, HierarchyChoice
from anonflow.dashboards.session.files.hierarchy_files import MOST
from anonflow.dashboards.session.files.paths import safe_name
from anonflow.dashboards.session.screen_words import listed
from anonflow.drawing.trees import BEYOND_LEGEND

NAMED = 6
"""Labels about to be grouped that are named."""

_LEGEND = Markup(
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
        of = choice.param
        self.step = param_field(of.step, "Narrowest width", 150)
        self.levels = param_field(of.levels, "Levels", 100)
        self.fanout = param_field(of.fanout, "Intervals joined at each level", 230)
        self.origin = param_field(of.origin, "An interval begins at", 170)
        self.hide = pn.widgets.RadioButtonGroup.from_param(of.hide, label="Positions are hidden from the")
        self.lengths = param_field(
            of.lengths,
            "Characters of the prefixes, or a classification",
            330,
            placeholder="such as 1, 3 or nace",
        )
        self.periods = pn.widgets.MultiChoice.from_param(
            of.periods, label="Periods that a date is generalized to", options=list(FROM_LOWEST), width=420
        )
        meanings = {"Clicks choose values to group": "group", "Clicks set boundaries": "boundary"}
        self.clicks = pn.widgets.RadioButtonGroup.from_param(
            of.clicks, label="Clicks on the tree", options=meanings
        )
        self.label = pn.widgets.TextInput(label="Name of the group", placeholder="such as Europe", width=220)
        self.group = button("Put together", lambda: self._named(choice.group), color="primary")
        self.rename = button("Rename", lambda: self._named(choice.rename))
        self.dissolve = button("Dissolve", choice.dissolve)
        self.picked = html()
        delimiters = {"semicolon": ";", "comma": ",", "tab": "\t", "bar": "|"}
        self.delimiter = pn.widgets.Select(label="Delimiter", options=delimiters, width=150)
        self.dropper = DiskDropper(
            choice.workspace,
            lambda name, path: choice.take_file(path, self.delimiter.value),
            lambda sentence: choice.param.update(problem=sentence),
            "CSV file: no header, a row for each value, from the value to the root",
            MOST,
        )
        self.use = button("Use this hierarchy", choice.use, color="primary")
        self.drop = button("No hierarchy", choice.drop)
        self.export = download("Save as CSV", choice.export, "hierarchy.csv", width=130)
        self.to = pn.widgets.Select(label="Copy it to the column", options=[], width=220)
        self.copy = button("Copy", lambda: choice.copy_to(self.to.value) if self.to.value else None)
        self.further = in_lines(self.to, pn.Row(self.copy, self.export, margin=(18, 0, 0, 0)))
        self.state, self.problem = html(), notice("af-bad")
        self.tree = Clickable(on_click=choice.click, sizing_mode="stretch_width")
        self.legend = html(_LEGEND)
        names = in_lines(self.label, pn.Row(self.group, self.rename, self.dissolve, margin=(18, 0, 0, 0)))
        self.groups = stack(self.clicks, names, self.picked)
        self.of_way = {
            "intervals": in_lines(self.step, self.levels, self.fanout, self.origin),
            "positions": in_lines(self.hide),
            "prefixes": in_lines(self.lengths),
            "calendar": in_lines(self.periods),
            "groups": self.groups,
            "file": stack(self.delimiter, self.dropper),
        }
        for name, widget in (("column", self.column), ("way", self.way)):
            pn.bind(partial(self._chosen, name), widget, watch=True)
        self.draw_after(
            choice,
            ["column", "way", "tree", "problem", "used", "boundary", "picked", "opened"],
            self._show,
        )
        self.draw_after(choice.workspace.draft, "spec", self._show)
        self.draw_once_shown(self._show)

    def _chosen(self, name: str, value: str | None) -> None:
        if value is not None:
            self.choice.param.update(**{name: value})

    def _named(self, edit: Callable[[str], None]) -> None:
        """Give a group the name that was typed."""
        edit(self.label.value)
        if not self.choice.problem:
            self.label.value = ""

    def _show(self) -> None:
        choice = self.choice
        columns = [name for name in choice.param.column.objects if name is not None]
        self.column.param.update(options=columns, value=choice.column)
        ways = choice.ways if choice.column is not None else {}
        self.way.param.update(options=ways, value=choice.way if choice.way in ways.values() else None)
        for way, part in self.of_way.items():
            part.visible = choice.way == way
        drawing = choice.drawing()
        self.tree.html = "" if drawing is None else f'<div class="tree">{drawing.svg()}</div>'
        self.legend.visible = drawing is not None
        self.use.disabled = choice.tree is None or choice.used
        if self.to.options != choice.others:
            self.to.options = choice.others
            self.to.value = choice.others[0] if choice.others else None
        self.further.visible = choice.tree is not None
        self.export.filename = f"{safe_name(str(choice.column))}-hierarchy.csv"
        self.drop.visible = choice.has_hierarchy
        say(self.problem, choice.problem)
        picked = choice.picked
        chosen = f"Chosen: {listed(picked, NAMED)}"
        say(self.picked, soft(chosen if picked else "Click values on the tree, then name their group."))
        self.state.object = str(self._state())

    def _state(self) -> Markup:
        """Return whether the tree is used, and what can be done with it."""
        choice = self.choice
        kind, limits = choice.entry.kind or "", ", ".join(choice.boundary)
        if choice.column is None:
            text = "Open a table, and say which columns are quasi-identifiers or sensitive."
        elif choice.is_sensitive and choice.used:
            text = "t-closeness measures along this hierarchy; the column is published as it is."
        elif choice.is_sensitive:
            text = "Not used yet: this column is sensitive. If it has a hierarchy, values below the same node are closer for t-closeness than others; the column is published as it is."
        elif choice.used and limits:
            text = f"Limits: {limits}. Click the root to remove them."
        elif choice.used:
            text = "Click a node of the tree, and nothing is generalized beyond it."
        elif choice.tree is None:
            text = f"This column is {kind} now."
        else:
            text = f"Not used yet: this column is {kind} now. Use this hierarchy, or click a node to use it with that limit."
        used = Markup("<b>{}</b> ").format("Used.") if choice.column is not None and choice.used else ""
        return Markup("<p>{}{}</p>").format(used, text)

    def __panel__(self) -> pn.viewable.Viewable:
        return stack(
            in_lines(self.column, self.way, pn.Row(self.use, self.drop, margin=(18, 0, 0, 0))),
            *self.of_way.values(),
            self.problem,
            self.state,
            self.tree,
            self.legend,
            self.further,
        )
