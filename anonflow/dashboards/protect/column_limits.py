"""Weights, boundaries of numbers and limits of each quasi-identifier, and the table in which they are typed."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import panel as pn
import param

from anonflow.dashboards.components.draft_form import DraftForm
from anonflow.dashboards.components.html import LightTable, html, notice, say, soft, stack
from anonflow.dashboards.session.draft_spec import written
from anonflow.errors import ParameterError
from anonflow.option import plain_number

LIMITS = {
    "weight": ("", 0, "above 0", "Weight ✎", 84, "how many times the column counts in the information loss"),
    "interval": ("numeric", 0, "above 0", "Intervals ✎", 104, "numeric: no value leaves its interval of this width"),
    "max-width": ("numeric", 0, "0 or more", "Max width ✎", 112, "numeric: no published range is wider"),
    "max-set": ("categorical", 1, "1 or more", "Max set ✎", 98, "categorical: no published set has more values"),
    "at-least": (
        "hierarchy", 1, "1 or more", "At least ✎", 96,
        "hierarchy: nothing below this level is published; 1 for the parents of its leaves",
    ),
}  # fmt: skip
"""What is typed: the kind of quasi-identifier that it goes with (empty: any), its least number, its numbers in words, title, width, tooltip."""

FIELDS = {name: home for name, (home, *_) in LIMITS.items()}


class LimitTable(DraftForm, pn.viewable.Viewer):
    """Weight, boundary and limits of the quasi-identifiers, typed in a table, one edit of the draft for each number."""

    refusal = param.String(default="", doc="Why the last number was not taken; empty if it was.")
    rows = param.Parameter(default=None, doc="The table, a DataFrame, or None.")

    def __init__(self, workspace: Any, **params: Any) -> None:
        names = ["column", "kind", *FIELDS, "boundary"]
        self.table = LightTable(
            pd.DataFrame(columns=names),
            show_index=False,
            sortable=False,
            selectable=False,
            editors={name: {"type": "number"} if name in FIELDS else None for name in names},
            titles={"column": "Column", "kind": "Kind", "boundary": "Boundary"}
            | {name: title for name, (_, _, _, title, _, _) in LIMITS.items()},
            header_tooltips={"boundary": "hierarchy: click them on the tree, under Hierarchies"}
            | {name: tip for name, (*_, tip) in LIMITS.items()},
            layout="fit_columns",
            widths={"column": 185, "kind": 94} | {name: width for name, (*_, width, _) in LIMITS.items()},
            sizing_mode="stretch_width",
        )
        self.table.on_edit(self.edited)
        self.wrong = notice("af-bad")
        super().__init__(workspace, **params)
        self._show()

    def _table(self) -> pd.DataFrame:
        """Return a row for each quasi-identifier; NaN where nothing is said."""
        rows = []
        for name in self.quasi_identifiers:
            column = self.flow.columns[name]
            numbers = {"weight": 1, "interval": column.interval, **written(column)}
            limits = [math.nan if numbers.get(field) is None else float(numbers[field]) for field in FIELDS]
            rows.append((name, column.kind or "", *limits, ", ".join(column.limit_labels)))
        return pd.DataFrame(rows, columns=["column", "kind", *FIELDS, "boundary"])

    def choose(self, column: str, field: str, value: Any) -> bool:
        """Take a number that was typed, as the browser sent it; an empty one takes the limit away. `refusal` says why one is not taken."""
        success = self.attempt(lambda: self._take(column, field, _read(value)))
        if not success:
            self.param.trigger("rows")
        return success

    def _take(self, column: str, field: str, number: float | None) -> None:
        if field not in FIELDS or column not in self.quasi_identifiers:
            raise ParameterError("weights and limits are those of quasi-identifiers")
        kind, home = self.flow.columns[column].kind or "", FIELDS[field]
        if home and kind != home:
            if number is None:
                return
            why = (
                "boundaries of a hierarchy are clicked on its tree"
                if kind == "hierarchy"
                else f"it is {kind}"
            )
            raise ParameterError(f"column {column!r}: {field} goes with kind {home}; {why}")
        least, words = LIMITS[field][1:3]
        if number is not None and (number < least or (number == 0 and words == "above 0")):
            raise ParameterError(f"column {column!r}: {field} is a number {words}")
        plain = plain_number(number)
        if field == "weight":
            self.workspace.data.set_column(column, weight=None if plain == 1 else plain)
        elif field == "interval":
            self.workspace.data.set_column(column, boundary=None if plain is None else {"width": plain})
        else:
            self.workspace.data.set_column(column, **{field: plain})

    def _now(self) -> tuple[Any, ...]:
        return self.workspace.data.named, self.flow.columns

    def _read(self) -> None:
        self.rows = None if self.workspace.data.named is None else self._table()

    def edited(self, event: Any) -> None:
        """Take a number that was typed."""
        rows = self.rows
        if rows is not None and 0 <= event.row < len(rows):
            self.choose(str(rows["column"].iloc[event.row]), event.column, event.value)

    @param.depends("rows", "refusal", watch=True)
    def _show(self) -> None:
        rows = self.rows
        if rows is not None:
            frame = rows.copy()
            for name in FIELDS:
                frame[name] = [None if math.isnan(number) else number for number in frame[name]]
            frame = frame.astype(dict.fromkeys(FIELDS, object))
            if not frame.equals(self.table.value):
                self.table.value = frame
        say(self.wrong, self.refusal)

    def __panel__(self) -> pn.viewable.Viewable:
        hint = html(soft("Click a number to change it; empty the field to remove it."))
        return stack(hint, self.table, self.wrong)


def _read(value: Any) -> float | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ParameterError("a limit is a number; empty is no limit") from None
    if math.isnan(number):
        return None
    if math.isinf(number):
        raise ParameterError("a limit is a finite number; empty is no limit")
    return number
