"""Fields of forms: for any option that a method, or a table to start with, declares, and for any param of a form."""

from __future__ import annotations

import json
import re
from typing import Any

import panel as pn
import param
from markupsafe import Markup

from anonflow import strict_yaml
from anonflow.dashboards.components.html import html
from anonflow.errors import AnonflowError
from anonflow.option import NEEDED, Option


def field_value(option: Option, value: Any) -> Any:
    """Return what a field shows of an option's value: a mapping or lists as text on one line, anything else as it is."""
    if isinstance(value, str) or not (option.mapping or option.lists):
        return value
    if option.lists:
        return ", ".join(f"[{', '.join(map(_yaml_name, columns))}]" for columns in value or ())
    return ", ".join(strict_yaml.dumps(value or {}).splitlines()).strip("{}")


def option_value(option: Option, entry: Any) -> Any:
    """Return the option's value for what a field shows; text that is no mapping or no lists stays text, which the option refuses."""
    if not (option.mapping or option.lists):
        return entry
    # the highest level is written without quotes, too
    text = re.sub(r":\s*\*\s*(?=,|$)", ': "*"', entry.strip("{} "))
    try:
        if option.lists:
            return strict_yaml.loads(f"{{value: [{entry}]}}").data["value"] or None
        return strict_yaml.loads(f"{{{text}}}").data or None
    except AnonflowError:
        return entry


def _yaml_name(column: Any) -> str:
    """Return a column's name as a list in YAML has it."""
    return str(column) if re.fullmatch(r"[^\W\d][\w-]*( [\w-]+)*", str(column)) else json.dumps(str(column))


_WIDGETS: dict[type[param.Parameter], Any] = {
    param.Boolean: pn.widgets.Checkbox,
    param.Integer: pn.widgets.IntInput,
    param.Number: pn.widgets.FloatInput,
    param.String: pn.widgets.TextInput,
    param.Selector: pn.widgets.Select,
}
"""What each kind of a form's param is chosen with."""


def param_field(of: param.Parameter, label: str, width: int | None = None, **widget_params: Any) -> Any:
    """Return the widget to choose a form's param with; both follow each other."""
    widget = next(widget for kind, widget in _WIDGETS.items() if isinstance(of, kind))
    return widget.from_param(of, label=label, **({} if width is None else {"width": width}), **widget_params)


def explained(field: Any, option: Option) -> pn.Column:
    """Return a field of an option above the sentence that says what it is."""
    explanation = html(Markup("<small class='soft'>{}</small>").format(option.sentence), margin=(0, 10))
    return pn.Column(field, explanation, margin=0, width=290)


class OptionalSelect(pn.widgets.Select):
    """Choices of which None may be one: at first, Panel shows nothing in its place."""

    def _get_properties(self, doc: Any) -> dict[str, Any]:
        return {"value": str(self.value), **super()._get_properties(doc)}


def option_field(option: Option, value: Any, width: int) -> Any:
    """Return the widget to choose a value of an option with, and the value that it shows at first."""
    value = None if value is NEEDED else value
    if option.choices or (option.kind is bool and option.optional):
        words: dict[str, Any] = {
            "a space" if choice == " " else str(choice): choice for choice in option.choices
        }
        words = words or {"yes": True, "no": False}
        if option.optional:
            words = {"by itself": None, **words}
        return OptionalSelect(label=option.label, options=words, value=value, width=width)
    if option.kind is bool:
        return pn.widgets.Checkbox(label=option.label, value=value)
    if option.kind is float:
        number = None if value is None else float(value)
        return pn.widgets.FloatInput(
            label=option.label, value=number, start=option.least, step=option.step, width=width
        )
    if option.kind is int:
        least = None if option.least is None else int(option.least)
        return pn.widgets.IntInput(label=option.label, value=value, start=least, width=width)
    if option.mapping or option.lists:
        return pn.widgets.TextInput(label=option.label, value=field_value(option, value), width=width)
    return pn.widgets.TextInput(label=option.label, value=str(value), width=width)
