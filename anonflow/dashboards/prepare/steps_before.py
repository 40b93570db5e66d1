"""Steps before, added one after the other, each with what it changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import panel as pn
import param

from anonflow.dashboards.components.html import card, facts, html
from anonflow.dashboards.components.option_field import option_field
from anonflow.dashboards.session.workspace import Workspace
from anonflow.errors import AnonflowError
from anonflow.option import NEEDED, Option, options_of
from anonflow.table.prepare import STEPS, Preparation

__all__ = ["StepsBefore"]

PATH = ("table", "prepare")


class StepsBefore(pn.viewable.Viewer):
    """The steps of the draft, what each changes in the open table, and a form to add one.

    Parameters
    ----------
    workspace : Workspace
    """

    workspace = param.ClassSelector(class_=Workspace, constant=True)

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.step = pn.widgets.Select(label="Step", options=list(STEPS), width=150)
        self.column = pn.widgets.Select(label="Column", options=[], width=180)
        self.fields: dict[str, Any] = {}
        self._asked = pn.FlexBox(sizing_mode="stretch_width", gap="8px")
        self.add = pn.widgets.Button(label="Add the step", on_click=self._add)
        self.remove = pn.widgets.Button(label="Take the last one away", on_click=self._remove)
        self.wrong = pn.pane.HTML("", css_classes=["af-bad"], visible=False, sizing_mode="stretch_width")
        self.changes = html()
        self._card = card(
            "Prepare: steps before",
            pn.FlexBox(self.step, self.column, gap="8px"),
            self._asked,
            pn.Row(self.add, self.remove),
            self.wrong,
            self.changes,
            lead="Coded before anything else, in this order. The release is verified against the table after them.",
        )
        self.step.param.watch(self._ask, "value")
        self.workspace.param.watch(self._show, ["frame", "table", "problems"])
        self._ask()
        self._show()

    def options(self) -> dict[str, Any]:
        """Return what the form says now, as a step's options in a flow.

        Fields that are empty or as they were are left out. In a table of values, ``old = new`` stand between commas; in a
        list of values, each between commas.
        """
        filled: dict[str, Any] = {}
        for name, option in _asked_for(self.step.value).items():
            value = self.fields[name].value
            if option.kind is None and isinstance(value, str):
                value = _read_value(self.step.value, name, value)
            if value in (None, "", [], {}, option.default):
                continue
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            filled[name.replace("_", "-")] = value
        return filled

    def _ask(self, *events: Any) -> None:
        self.fields = {
            name: _field(self.step.value, name, option)
            for name, option in _asked_for(self.step.value).items()
        }
        self._asked.objects = list(self.fields.values())

    def _add(self, *events: Any) -> None:
        entry = {self.step.value: {"column": self.column.value, **self.options()}}
        self._take([*self._steps(), entry])

    def _remove(self, *events: Any) -> None:
        self._take(self._steps()[:-1])

    def _steps(self) -> list[Any]:
        return list(self.workspace.draft.get(PATH, []))

    def _take(self, steps: list[Any]) -> None:
        """Put the steps into the draft, if they go with the table."""
        try:
            if self.workspace.frame is not None:
                Preparation(steps, self.workspace.draft.folder).apply(self.workspace.frame)
        except AnonflowError as error:
            self._refuse(" ".join(error.problems[:3]))
            return
        self._refuse("")
        self.workspace.draft.set_all([(PATH, steps or None), *self._columns(steps)])
        self._show()

    def _columns(self, steps: list[Any]) -> list[tuple[tuple[str, ...], Any]]:
        """Return what is declared of the columns, under the names that they have after these steps: an edit, or none."""
        frame, folder = self.workspace.frame, self.workspace.draft.folder
        if frame is None:
            return []
        names = [str(name) for name in frame.columns]
        before, after = (Preparation(each, folder).renamed(names) for each in (self._steps(), steps))
        if before == after:
            return []
        new = {before.get(name, name): after.get(name, name) for name in names}
        declared = self.workspace.draft.get(("table", "columns"), {})
        return [(("table", "columns"), {new.get(name, name): entry for name, entry in declared.items()})]

    def _refuse(self, sentence: str) -> None:
        from markupsafe import Markup

        self.wrong.object = str(Markup("<p><b>Not added.</b> {}</p>").format(sentence))
        self.wrong.visible = bool(sentence)

    def _show(self, *events: Any) -> None:
        frame = self.workspace.frame
        self._card.visible = frame is not None
        named = self.workspace.named
        names = [] if named is None else [str(name) for name in named.columns]
        if self.column.options != names:
            self.column.options = names
            self.column.value = names[0] if names else None
        steps = self._steps()
        self.remove.disabled = not steps
        if frame is None or not steps:
            self.changes.object = ""
            return
        try:
            changes = Preparation(steps, self.workspace.draft.folder).changes(frame)
        except AnonflowError as error:
            self.changes.object = ""
            self._refuse(" ".join(error.problems[:3]))
            return
        keys = ("step", "changed", "removed", "distinct", "left")
        rows = [[_shown(row[key]) for key in keys] for row in changes.to_dict("records")]
        header = ["step", "cells changed", "rows removed", "distinct before", "after"]
        self.changes.object = str(facts(header, rows, numbers=range(1, 5)))

    def __panel__(self) -> pn.viewable.Viewable:
        return self._card


def _asked_for(step: str) -> dict[str, Option]:
    """Return the options that the form asks for: values of a table are typed, its file is named in a flow."""
    return {
        name: option for name, option in options_of(STEPS[step]).items() if (step, name) != ("recode", "file")
    }


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:,}"


def _field(step: str, name: str, option: Option) -> Any:
    if option.kind is not None:
        return option_field(option, None if option.default is NEEDED else option.default, width=150)
    example = {
        ("recode", "values"): "old = new, old = new",
        ("date-part", "on"): "2024-01-01",
    }.get((step, name), "value, value")
    return pn.widgets.TextInput(label=option.label, value="", placeholder=example, width=260)


def _read_value(step: str, name: str, text: str) -> Any:
    """Return what a text of the form stands for: a table, a list, or the text itself."""
    if name == "on":
        return text.strip()
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if step != "recode":
        return parts
    table: Mapping[str, str | None] = {
        old.strip(): new.strip() or None for old, _, new in (part.partition("=") for part in parts)
    }
    return dict(table)
