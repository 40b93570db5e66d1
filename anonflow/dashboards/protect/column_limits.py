"""Weights, boundaries of numbers and limits of each quasi-identifier, as a table in which they are typed."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import param

from anonflow.dashboards.components.draft_form import DraftForm
from anonflow.dashboards.session.draft_spec import written
from anonflow.errors import AnonflowError, ParameterError

DOMAINS = {
    "weight": "above 0",
    "interval": "above 0",
    "max-width": "0 or more",
    "max-set": "1 or more",
    "at-least": "1 or more",
}
"""The numbers that each limit takes."""


FIELDS = {
    "weight": "",
    "interval": "numeric",
    "max-width": "numeric",
    "max-set": "categorical",
    "at-least": "hierarchy",
}
"""What is typed, and the kind of quasi-identifier that it goes with; an empty one: any."""


class LimitChoice(DraftForm):
    """Weight, boundary and limits of the quasi-identifiers, one edit of the draft for each number."""

    refusal = param.String(default="", doc="Why the last number was not taken; empty if it was.")
    rows = param.Parameter(default=None, doc="The table, a DataFrame, or None.")

    def __init__(self, workspace: Any, **params: Any) -> None:
        self._seen: Any = None
        super().__init__(workspace, **params)

    def table(self) -> pd.DataFrame:
        """Return a row for each quasi-identifier; NaN where nothing is said."""
        rows = []
        for name in self.quasi_identifiers:
            column = self.flow.columns[name]
            numbers = {"weight": 1, "interval": column.interval, **written(column)}
            limits = [math.nan if numbers.get(field) is None else float(numbers[field]) for field in FIELDS]
            rows.append((name, column.kind or "", *limits, ", ".join(column.limit_labels)))
        return pd.DataFrame(rows, columns=["column", "kind", *FIELDS, "boundary"])

    def choose(self, column: str, field: str, value: Any) -> bool:
        """Take a number that was typed; an empty one takes the limit away.

        Parameters
        ----------
        field : str
            One of `FIELDS`.
        value : object
            As the browser sent it.

        Returns
        -------
        bool
            Whether it was taken; else `refusal` says why not.
        """
        self.refusal = ""
        try:
            self._take(column, field, _read(value))
        except AnonflowError as error:
            self.refusal = error.problems[0]
            self.param.trigger("rows")
            return False
        return True

    def _take(self, column: str, field: str, number: float | None) -> None:
        if field not in FIELDS or column not in self.quasi_identifiers:
            raise ParameterError("weights and limits are those of quasi-identifiers")
        kind, home = self.flow.columns[column].kind or "", FIELDS[field]
        if home and kind != home:
            if number is None:
                return
            raise ParameterError(_other_kind(column, field, home, kind))
        least = {"weight": 0.0, "interval": 0.0, "max-width": -1.0, "max-set": 0.999, "at-least": 0.999}[
            field
        ]
        if number is not None and number <= least:
            raise ParameterError(f"column {column!r}: {field} is a number {DOMAINS[field]}")
        plain = None if number is None else int(number) if number.is_integer() else number
        if field == "weight":
            self.workspace.set_column(column, weight=None if plain == 1 else plain)
        elif field == "interval":
            self.workspace.set_column(column, boundary=None if plain is None else {"width": plain})
        else:
            self.workspace.set_column(column, **{field: plain})

    def _read(self) -> None:
        seen = (self.workspace.named, self.flow.columns)
        if self._seen is not None and seen[0] is self._seen[0] and seen[1] == self._seen[1]:
            return
        self._seen = seen
        self.rows = None if self.workspace.named is None else self.table()


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


def _other_kind(column: str, limit: str, home: str, kind: str) -> str:
    """Return why a limit does not go with a column; `home` is the kind that it goes with."""
    sentence = "boundaries of a hierarchy are clicked on its tree" if kind == "hierarchy" else f"it is {kind}"
    return f"column {column!r}: {limit} goes with kind {home}; {sentence}"
