"""The flow format as JSON Schema, for editors that complete and check while a flow is written.

It says what :mod:`anonflow.engine.flows.spec` says. The loader checks more: names, columns, files, and what goes with what.
"""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from anonflow import datasets, utility
from anonflow.algorithms import REGISTRY, Algorithm
from anonflow.criteria.registry import CRITERIA
from anonflow.engine.flows import spec
from anonflow.engine.flows.matrix import DIVERSIFY
from anonflow.option import NEEDED, Option, options_of
from anonflow.risk import ATTACKERS
from anonflow.table.prepare import STEPS
from anonflow.table.published.notation import RANGES
from anonflow.table.schema import COLUMN_OPTIONS, PUBLIC_HIERARCHY

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def flow_schema() -> dict[str, Any]:
    """Return a JSON Schema (2020-12) of flow files.

    Returns
    -------
    dict
        Plain data. Of steps it says what each may be, not their order.
    """
    schema = spec.FlowSpec.model_json_schema()
    parts = schema["$defs"]
    for name, sentences in _sentences().items():
        for field, sentence in sentences.items():
            entry = parts.get(name, schema)["properties"].get(field.replace("_", "-"))
            entry = entry or parts.get(name, schema)["properties"].get(field, {})
            entry.setdefault("description", sentence)
    for part in parts.values():
        part.pop("title", None)
    schema["properties"]["steps"] = _steps(parts.pop("StepsSpec")["properties"])
    parts["TableSpec"]["properties"]["columns"] = _columns_schema()
    parts["TableSpec"]["properties"]["prepare"]["items"] = _preparation()
    # not where the key is declared: the oldest pydantic cannot name a model in the type of an input
    parts["PublishSpec"]["properties"]["report"]["anyOf"].insert(0, {"type": "string"})
    source = parts["SourceSpec"]["properties"]
    for name in datasets.names():
        for option in datasets.declared(name).values():
            if option.choices and option.name in source:
                source[option.name]["anyOf"] = [{"enum": list(option.choices)}, _NULL]
    anonymize = parts["AnonymizeSpec"]
    for name, entry in _method_options().items():
        anonymize["properties"].setdefault(name, entry)
        anonymize["properties"].setdefault(name.replace("_", "-"), entry)
    anonymize["properties"]["options"] = {
        "description": "Algorithm -> options that go for it alone, in a matrix of algorithms.",
        "type": "object",
        "additionalProperties": False,
        "properties": {name: _of_method(method) for name, method in REGISTRY.items()},
    }
    swept = [f"anonymize.{name}" for name in anonymize["properties"] if name != "options"]
    swept += [f"partition.{name}" for name in parts["PartitionSpec"]["properties"]]
    swept.append(DIVERSIFY)
    schema["properties"]["matrix"]["propertyNames"] = {"enum": swept}
    # what can be swept is given by the matrix instead
    anonymize.pop("required", None)
    return {**schema, "$schema": DIALECT, "title": "anonflow flow", "description": "A flow of anonflow."}


def _sentences() -> dict[str, dict[str, str]]:
    """Return the docstring of each field of the flow format, by model; pydantic would read them at every import, for a quarter of a second."""
    sentences: dict[str, dict[str, str]] = {}
    for model in ast.parse(inspect.getsource(spec)).body:
        if not isinstance(model, ast.ClassDef):
            continue
        for field, text in itertools.pairwise(model.body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                sentence = " ".join(str(ast.literal_eval(text.value)).split())
                sentences.setdefault(model.name, {})[ast.unparse(field.target)] = sentence
    return sentences


_NULL = {"type": "null"}


def _value_schema(option: Option) -> dict[str, Any]:
    """Return what an option may be."""
    if option.kind is None:
        return {"anyOf": [{"enum": list(option.words)}, {}]} if option.words else {}
    bounds = {
        "minimum": option.least,
        "maximum": option.most,
        "exclusiveMinimum": option.above,
        "exclusiveMaximum": option.below,
    }
    number: dict[str, Any] = {word: bound for word, bound in bounds.items() if bound is not None}
    value = {
        bool: {"type": "boolean"},
        int: {"type": "integer", **number},
        float: {"type": "number", **number},
        str: {"enum": list(option.choices)}
        if option.choices
        else {"type": "string", **({"pattern": option.pattern} if option.pattern else {})},
    }[option.kind]
    return {"anyOf": [value, _NULL]} if option.optional else value


def _of_method(method: Algorithm) -> dict[str, Any]:
    """Return the options of a method, in both spellings."""
    entries = {
        name: {
            "description": option.sentence or option.label,
            **_value_schema(option),
            **({} if option.default is None else {"default": option.default}),
        }
        for name, option in method.options.items()
    }
    spelled = entries | {name.replace("_", "-"): entry for name, entry in entries.items()}
    return {"type": "object", "additionalProperties": False, "properties": spelled}


def _method_options() -> dict[str, dict[str, Any]]:
    """Return every option that some method has, as any of these methods takes it."""
    having: dict[str, dict[str, Option]] = {}
    for method in REGISTRY.values():
        for name, option in method.options.items():
            having.setdefault(name, {})[method.name] = option
    entries = {}
    for name, options in having.items():
        values: list[dict[str, Any]] = []
        for option in options.values():
            if _value_schema(option) not in values:
                values.append(_value_schema(option))
        sentences = dict.fromkeys(option.sentence or option.label for option in options.values())
        entries[name] = {
            "description": f"{' '.join(sentences)} (an option of {', '.join(options)})",
            **(values[0] if len(values) == 1 else {"anyOf": values}),
        }
    return entries


def _steps(described: dict[str, Any]) -> dict[str, Any]:
    lists: dict[str, dict[str, Mapping[str, Option]]] = {
        "verify": {"guarantee": {}, **{name: declared.options for name, declared in CRITERIA.items()}},
        "attack": {name: options_of(kind, keyword_only=False) for name, kind in ATTACKERS.items()},
        "measure": {name: declared.options for name, declared in utility.MEASURES.items()},
    }
    steps: dict[str, Any] = {
        name: {
            "type": "array",
            "minItems": 1,
            "description": described[name]["description"],
            "items": {
                "anyOf": [
                    {"enum": list(options_by_name)},
                    {"type": "string"},
                    _names_with_options(options_by_name),
                ]
            },
        }
        for name, options_by_name in lists.items()
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


def _names_with_options(options_by_name: Mapping[str, Mapping[str, Option]]) -> dict[str, Any]:
    """Return a mapping of a name to its options, or to the first of them; the loader checks combinations."""
    entries = {}
    for name, options in options_by_name.items():
        values = {key: _value_schema(option) for key, option in options.items()}
        forms: list[dict[str, Any]] = [{"type": "object", "properties": values}, _NULL]
        entries[name] = {"anyOf": [*forms, *list(values.values())[:1]]}
    return {"type": "object", "minProperties": 1, "properties": entries}


def _preparation() -> dict[str, Any]:
    """Return one step before; what a table of values holds is the loader's."""
    named = {}
    for name, function in STEPS.items():
        options = options_of(function)
        entries = {
            key.replace("_", "-"): {"description": option.sentence, **_value_schema(option)}
            for key, option in options.items()
        }
        needed = [key.replace("_", "-") for key, option in options.items() if option.default is NEEDED]
        named[name] = {
            "type": "object",
            "additionalProperties": False,
            "required": ["column", *needed],
            "properties": {"column": {"type": "string"}, **entries},
        }
    return {
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
        "properties": named,
    }


def _columns_schema() -> dict[str, Any]:
    nested: dict[str, dict[str, Any]] = {
        "hierarchy": {"type": ["string", "object"]},
        "boundary": {"type": ["array", "object"], "properties": {"width": {"type": "number"}}},
        "codes": {"type": "array", "items": {"type": "string"}, "minItems": 1},
        "notation": {
            "anyOf": [
                {"enum": list(RANGES)},
                {
                    "type": "object",
                    "additionalProperties": False,
                    "minProperties": 1,
                    "properties": {
                        "ranges": {"enum": list(RANGES)},
                        "hidden": {"type": "array", "items": {"type": "string"}},
                    },
                },
            ]
        },
        "domain": {
            "anyOf": [
                {"const": PUBLIC_HIERARCHY},
                {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["low", "high"],
                    "properties": {end: {"type": ["number", "string"]} for end in ("low", "high")},
                },
                {"type": "array", "minItems": 1, "items": {"type": ["string", "null"]}},
            ]
        },
    }
    return {
        "type": "object",
        "minProperties": 1,
        "description": "Column name -> what it is; a column that is not named is not published.",
        "additionalProperties": {
            "type": "object",
            "required": ["role"],
            "additionalProperties": False,
            "properties": {
                key: {"description": option.sentence, **(nested.get(key) or _value_schema(option))}
                for key, option in COLUMN_OPTIONS.items()
            },
        },
    }


def words_of(schema: Any) -> Iterator[str]:
    """Yield every word that a JSON Schema itself says a file may hold: its keys and the values to choose from."""
    if isinstance(schema, Mapping):
        yield from schema.get("properties", ())
        for entry in (*schema.get("enum", ()), schema.get("const"), schema.get("default")):
            if isinstance(entry, str):
                yield entry
        for key, value in schema.items():
            if key not in ("enum", "const", "default", "description"):
                yield from words_of(value)
    elif isinstance(schema, list):
        for entry in schema:
            yield from words_of(entry)
