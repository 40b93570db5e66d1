"""The settings of a measure as a form, built from its declaration, with columns to choose and conditions to fill in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import panel as pn

from anonflow.dashboards.components.html import in_lines
from anonflow.dashboards.components.option_field import OptionalSelect, option_field
from anonflow.option import Option, plain_number
from anonflow.table import Table
from anonflow.utility import MEASURES

IS_ONE_OF = "is one of"

LISTED = 200
"""Values of a column that are listed to choose from; of a column with more they are typed."""

COLUMNS = ("by", "target")
"""Options that name a column."""

CONDITIONS = ("where", "among")
"""Options that are conditions."""


class ConditionForm:
    """A condition on one column: values of it, or a range of numbers; there may be none where it is optional."""

    def __init__(self, label: str, table: Table, optional: bool = False) -> None:
        self._table = table
        names = [str(name) for name in table.frame.columns]
        options: dict[str, str] = {"everybody": ""} if optional else {}
        self.column = pn.widgets.Select(
            label=f"{label}: column", options=options | {name: name for name in names}, width=190
        )
        self.low = pn.widgets.FloatInput(label="from", value=None, width=110, step=1.0)
        self.high = pn.widgets.FloatInput(label="to", value=None, width=110, step=1.0)
        self.values = pn.widgets.MultiSelect(label=IS_ONE_OF, options=[], width=220, size=4)
        self.typed = pn.widgets.TextInput(label=IS_ONE_OF, placeholder="value, value", width=220)
        pn.bind(self._ask, self.column, watch=True)
        self._ask()

    @property
    def fields(self) -> list[Any]:
        """Its widgets."""
        return [self.column, self.low, self.high, self.values, self.typed]

    def condition(self) -> dict[str, Any] | None:
        """Return the condition in a flow's form; None if the form is empty."""
        name = self.column.value
        if not name:
            return None
        if self.low.visible:
            ends = {key: plain_number(field.value) for key, field in (("from", self.low), ("to", self.high))}
            bounds = {key: value for key, value in ends.items() if value is not None}
            return {name: bounds} if bounds else None
        values = (
            self.values.value
            if self.values.visible
            else [part.strip() for part in self.typed.value.split(",") if part.strip()]
        )
        return {name: list(values)} if values else None

    def _ask(self, *events: Any) -> None:
        name = self.column.value
        cells = self._table.frame[name] if name else None
        numeric = cells is not None and pd.api.types.is_numeric_dtype(cells) and cells.dtype != bool
        distinct_values = [] if cells is None or numeric else sorted(map(str, cells.dropna().unique()))
        self.low.visible = self.high.visible = numeric
        self.values.visible = 0 < len(distinct_values) <= LISTED
        self.typed.visible = len(distinct_values) > LISTED
        if self.values.visible:
            self.values.options, self.values.value = distinct_values, []


class MeasureForm:
    """A form of all settings of a measure, over the columns of a table."""

    def __init__(self, name: str, table: Table) -> None:
        self._options = {key: option for key, option in MEASURES[name].options.items() if option.in_form}
        self._conditions = {
            key: ConditionForm(option.label, table, optional=key != MEASURES[name].needs)
            for key, option in self._options.items()
            if key in CONDITIONS
        }
        names = [str(column) for column in table.frame.columns]
        self.fields = {
            key: _measure_field(key, option, names)
            for key, option in self._options.items()
            if key not in CONDITIONS and option.kind is not None
        }

    @property
    def rows(self) -> list[Any]:
        """The rows of the form: the conditions, a row each, and then the fields."""
        rows = [in_lines(*form.fields) for form in self._conditions.values()]
        return [*rows, in_lines(*self.fields.values())] if self.fields else rows

    def condition(self, key: str) -> ConditionForm:
        """Return the form of a condition."""
        return self._conditions[key]

    def settings(self) -> Mapping[str, Any]:
        """Return the settings that differ from the declared defaults."""
        filled: dict[str, Any] = {key: form.condition() for key, form in self._conditions.items()}
        filled |= {key: plain_number(field.value) for key, field in self.fields.items()}
        return {
            key: value
            for key, value in filled.items()
            if value not in (None, "") and value != self._options[key].default
        }


def _measure_field(key: str, option: Option, names: list[str]) -> Any:
    if key in COLUMNS:
        return OptionalSelect(
            label=option.label, options={"–": None} | {name: name for name in names}, value=None, width=190
        )
    if key == "formula":
        return pn.widgets.TextInput(label=option.label, placeholder="income ~ age + education", width=380)
    return option_field(option, option.default, width=150)
