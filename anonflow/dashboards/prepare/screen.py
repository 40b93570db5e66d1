"""The screen Prepare: the preparation steps of the draft, added one after the other, each with its changes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import panel as pn
import param
from markupsafe import Markup

from anonflow.dashboards.components.html import (
    button,
    card,
    empty,
    facts,
    html,
    in_lines,
    notice,
    say,
    soft,
)
from anonflow.dashboards.components.option_field import explained, option_field
from anonflow.dashboards.components.shown_part import Screen
from anonflow.dashboards.components.upload import DiskDropper
from anonflow.dashboards.session.draft_spec import ColumnSpec
from anonflow.dashboards.session.files.hierarchy_files import labelled, with_steps
from anonflow.dashboards.session.screen_words import NO_TABLE, on_screen
from anonflow.dashboards.work.screen_work import Background
from anonflow.errors import AnonflowError
from anonflow.option import NEEDED, Option, options_of, plain_number
from anonflow.table.prepare import MOST_BYTES, STEPS, Preparation

STAY = options_of(STEPS["top-code"])["others"].label


class PrepareScreen(Screen):
    """The steps of the draft, their changes in the open table, and a form to add a step."""

    title = "Prepare"

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.nothing = empty(NO_TABLE)
        self.step = pn.widgets.Select(label="Step", options=list(STEPS), width=150)
        self.column = pn.widgets.Select(label="Column", options=[], width=330)
        self.background = Background(self.workspace.turns, at_once=True)
        self._counted: tuple[Any, list[Any], Any] | None = None
        self.fields: dict[str, Any] = {}
        self.explanation = html()
        self._form = in_lines()
        self.add = button("Add the step", self._add)
        self.remove = button("Remove the last step", self._remove)
        self.codebook = DiskDropper(
            self.workspace,
            self._take_codebook,
            self._refuse,
            "A codebook of this column: CSV file with the header value,label",
            MOST_BYTES,
        )
        self.wrong = notice("af-bad")
        self.changes = html()
        self.steps = card(
            "Steps",
            in_lines(self.step, self.column),
            self.explanation,
            self._form,
            pn.Row(self.add, self.remove),
            self.codebook,
            self.wrong,
            self.changes,
            lead="These steps change the table before it is anonymized, in this order. The release is verified against the table after them.",
        )
        self.lay_out(
            "Statistical offices recode a table before they anonymize it: ages above 90 become 90, incomes are rounded, a date of birth "
            "becomes a year. Without a step, the table stays as it is.",
            self.nothing,
            self.steps,
        )
        pn.bind(self._make_fields, self.step, watch=True)
        pn.bind(self._fill_codes, self.column, watch=True)
        self._make_fields()
        self._show()

    def options(self) -> dict[str, Any]:
        """Return what the form says now, as a step's options in a flow.

        Fields that are empty or as they were are left out. In a table of values, ``old = new`` stand between commas; in a
        list of values, each between commas.
        """
        filled: dict[str, Any] = {}
        for name, option in _options_of(self.step.value).items():
            value = self.fields[name].value
            if option.kind is None and isinstance(value, str):
                value = _read_value(self.step.value, name, value)
            if value in (None, "", [], {}, option.default):
                continue
            filled[name.replace("_", "-")] = plain_number(value)
        return filled

    def _make_fields(self, *steps: str) -> None:
        options = _options_of(self.step.value)
        self.fields = {name: _step_field(self.step.value, name, option) for name, option in options.items()}
        self._form.objects = [explained(field, options[name]) for name, field in self.fields.items()]
        first, _, _ = (STEPS[self.step.value].__doc__ or "").partition("\n\n")
        say(self.explanation, soft(" ".join(first.replace("``", "").split())))
        self._fill_codes()

    def _fill_codes(self, *columns: str) -> None:
        """Let the codes of a column stay in a step that works on numbers."""
        column = self.workspace.draft.spec.columns.get(self.column.value or "", ColumnSpec())
        if "others" in self.fields and self.fields["others"].label == STAY:
            self.fields["others"].value = ", ".join(column.codes or ())

    def _add(self) -> None:
        filled = self.options()
        empty = [
            option.label
            for name, option in _options_of(self.step.value).items()
            if option.default is NEEDED and name.replace("_", "-") not in filled
        ]
        if empty:
            self._refuse(f"Fill in {' and '.join(empty)}.")
            return
        entry = {self.step.value: {"column": self.column.value, **filled}}
        self._take([*self._steps(), entry])

    def _take_codebook(self, name: str, path: Path) -> None:
        """Let labels stand in place of a column's values, here and in all that is published."""
        try:
            step = labelled(self.column.value, path)
        except AnonflowError as error:
            self._refuse(on_screen(error.problems[0]).replace(path.name, name))
            return
        finally:
            path.unlink(missing_ok=True)
        self._take([*self._steps(), step])

    def _remove(self) -> None:
        self._take(self._steps()[:-1])

    def _steps(self) -> list[Any]:
        return list(self.workspace.draft.spec.table.prepare)

    def _take(self, steps: list[Any]) -> None:
        """Put the steps into the draft, if they go with the table; of many records that is seen in a thread of its own."""
        workspace = self.workspace
        frame = workspace.data.frame
        if frame is None:
            return
        try:
            spec = with_steps(workspace, steps)
        except AnonflowError as error:
            self._refuse(" ".join(map(on_screen, error.problems[:3])))
            return

        def fits() -> None:
            self._refuse("")
            if workspace.data.frame is frame:
                workspace.draft.put(spec)

        self._count(frame, steps, fits)

    def _be_busy(self, busy: bool) -> None:
        self.add.disabled = busy
        self.remove.disabled = busy or not self._steps()
        if busy:
            self.changes.object = str(soft("Counting what the steps change…", "status"))

    def _refuse(self, sentence: str) -> None:
        say(self.wrong, Markup("<p><b>Not added.</b> {}</p>").format(sentence) if sentence else "")

    @param.depends("workspace.data.frame", "workspace.data.table", "workspace.data.problems", watch=True)
    def _show(self) -> None:
        frame = self.workspace.data.frame
        self.nothing.visible, self.steps.visible = frame is None, frame is not None
        named = self.workspace.data.named
        names = [] if named is None else [str(name) for name in named.columns]
        if self.column.options != names:
            self.column.options = names
            self.column.value = names[0] if names else None
        steps = self._steps()
        self.remove.disabled = not steps
        if frame is None or not steps:
            self.changes.object = ""
            return
        if self._counted is None or self._counted[0] is not frame or self._counted[1] != steps:
            self._count(frame, steps)
            return
        changes = self._counted[2]
        keys = ("step", "changed", "removed", "distinct", "left")
        rows = [
            [row[key] if key == "step" else f"{row[key]:,}" for key in keys]
            for row in changes.to_dict("records")
        ]
        names_of_keys = ("step", "cells changed", "rows removed", "distinct before", "after")
        self.changes.object = str(facts(names_of_keys, rows, numbers=range(1, 5)))

    def _count(self, frame: Any, steps: list[Any], then: Callable[[], None] = lambda: None) -> None:
        """Count what the steps change, and show it; where they do not go with the table, say why."""
        folder = self.workspace.draft.folder

        def done(changes: Any) -> None:
            self._be_busy(False)
            self._counted = frame, steps, changes
            then()
            self._show()

        def refused(problem: str) -> None:
            self._be_busy(False)
            self._refuse(problem)
            self.changes.object = ""
            if steps != self._steps():
                self._show()

        self._be_busy(True)
        self.background.of_records(
            len(frame), lambda: Preparation(steps, folder).changes(frame) if steps else None, done, refused
        )


def _options_of(step: str) -> dict[str, Option]:
    """Return the options that the form asks for: values of a table are typed, its file is named in a flow."""
    return {
        name: option for name, option in options_of(STEPS[step]).items() if (step, name) != ("recode", "file")
    }


def _step_field(step: str, name: str, option: Option) -> Any:
    if option.kind is not None:
        return option_field(option, option.default, width=230)
    example = {
        ("recode", "values"): "old = new, old = new",
        ("date-part", "on"): "2024-01-01",
    }.get((step, name), "value, value")
    return pn.widgets.TextInput(label=option.label, value="", placeholder=example, width=260)


def _read_value(step: str, name: str, text: str) -> Any:
    """Parse a text of the form: a table, a list, or the text itself."""
    if name == "on":
        return text.strip()
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if step != "recode":
        return parts
    return {old.strip(): new.strip() or None for old, _, new in (part.partition("=") for part in parts)}
