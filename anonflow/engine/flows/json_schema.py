"""The flow format as JSON Schema, for editors that complete and check while a flow is written.

It says what :mod:`anonflow.engine.flows.spec` says. The loader checks more: names, columns, files, and what goes with what.
"""

from __future__ import annotations

import ast
import inspect
from typing import Any

from anonflow import datasets, utility
from anonflow.algorithms.registry import REGISTRY
from anonflow.criteria.request import CRITERIA
from anonflow.engine.flows import spec
from anonflow.loss import measure_named
from anonflow.risk import ATTACKERS
from anonflow.table.schema import KINDS, ROLES

__all__ = ["flow_schema"]

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def flow_schema() -> dict[str, Any]:
    """A JSON Schema (2020-12) of flow files.

    Returns
    -------
    dict
        Plain data. Of steps it says what each may be, not their order.
    """
    made = spec.FlowSpec.model_json_schema()
    parts = made["$defs"]
    for name, model in vars(spec).items():
        if inspect.isclass(model) and name in parts:
            parts[name].pop("title", None)
            for key, text in _told(model).items():
                parts[name].get("properties", {}).get(key, {})["description"] = text
    for key, text in _told(spec.FlowSpec).items():
        made["properties"][key]["description"] = text
    del parts["StepsSpec"]
    made["properties"]["steps"] = _steps()
    parts["TableSpec"]["properties"]["columns"] = _columns()
    parts["PartitionSpec"]["properties"]["size"] = {
        "description": _told(spec.PartitionSpec)["size"],
        "anyOf": [{"type": "integer", "minimum": 2}, {"const": "auto"}, {"type": "null"}],
    }
    parts["SourceSpec"]["properties"]["pieces"] = {
        "description": _told(spec.SourceSpec)["pieces"],
        "anyOf": [{"type": "boolean"}, {"type": "integer", "minimum": 2}, {"type": "null"}],
    }
    parts["SourceSpec"]["properties"]["dataset"] = {
        "anyOf": [{"enum": list(datasets.names())}, {"type": "null"}],
        "description": _told(spec.SourceSpec)["dataset"],
    }
    anonymize = parts["AnonymizeSpec"]["properties"]
    anonymize["algorithm"] = {"enum": list(REGISTRY), "description": anonymize["algorithm"]["description"]}
    anonymize["loss"] = {"enum": _losses(), "default": "ncp", "description": anonymize["loss"]["description"]}
    for method in REGISTRY.values():
        for option in method.options:
            anonymize.setdefault(option, {"description": f"An option of {method.name}."})
            anonymize.setdefault(option.replace("_", "-"), anonymize[option])
    anonymize["options"] = {
        "description": "Algorithm -> options that go for it alone, in a matrix of algorithms.",
        "type": "object",
        "propertyNames": {"enum": list(REGISTRY)},
        "additionalProperties": {"type": "object"},
    }
    # what can be swept is given by the matrix instead
    parts["AnonymizeSpec"].pop("required", None)
    return {**made, "$schema": DIALECT, "title": "anonflow flow", "description": "A flow of anonflow."}


def _steps() -> dict[str, Any]:
    named = {"type": "object", "minProperties": 1}
    lists = {
        "verify": ["guarantee", *CRITERIA],
        "attack": list(ATTACKERS),
        "measure": list(utility.measure_names()),
    }
    told = _told(spec.StepsSpec)
    steps: dict[str, Any] = {
        name: {
            "type": "array",
            "minItems": 1,
            "description": told[name],
            "items": {"anyOf": [{"enum": known}, {"type": "string"}, named]},
        }
        for name, known in lists.items()
    }
    steps["anonymize"] = {"$ref": "#/$defs/AnonymizeSpec"}
    steps["diversify"] = {"$ref": "#/$defs/DiversifySpec"}
    steps["draw"] = {"anyOf": [{"$ref": "#/$defs/DrawSpec"}, {"type": "null"}]}
    for name in spec.StepsSpec.model_fields:
        steps.setdefault(name, {})
    return {
        "type": "array",
        "minItems": 1,
        "description": "What is done, in order; anonymize comes first.",
        "items": {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": False,
            "properties": steps,
        },
    }


def _columns() -> dict[str, Any]:
    entry = {
        "type": "object",
        "required": ["role"],
        "additionalProperties": False,
        "properties": {
            "role": {"enum": list(ROLES)},
            "kind": {"enum": list(KINDS)},
            "weight": {"type": "number", "exclusiveMinimum": 0},
            "hierarchy": {"type": ["string", "object"]},
            "boundary": {"type": ["array", "object"]},
            "missing": {"enum": ["refuse", "suppress", "drop", "value"]},
            "max-width": {"type": "number", "exclusiveMinimum": 0},
            "max-set": {"type": "integer", "minimum": 1},
        },
    }
    return {
        "type": "object",
        "minProperties": 1,
        "description": "Column name -> what it is; a column that is not named is not published.",
        "additionalProperties": entry,
    }


def _losses() -> list[str]:
    known = ("ncp", "gcp", "lm", "entropy", "em", "height", "il", "suppressions")
    return [name for name in known if measure_named(name)]


def _told(model: Any) -> dict[str, str]:
    """The text under each field of a model."""
    (body,) = [node for node in ast.parse(inspect.getsource(model)).body if isinstance(node, ast.ClassDef)]
    told = {}
    for field, after in zip(body.body, body.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            told[field.target.id] = " ".join(str(after.value.value).split())
    return told
