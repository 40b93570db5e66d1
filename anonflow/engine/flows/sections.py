"""The parts of a flow file, each as its model; what is wrong with them is noted with its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from anonflow import strict_yaml
from anonflow.engine.flows.references import check_hierarchy, dataset_problems
from anonflow.engine.flows.spec import SCHEDULER, DrawSpec, SourceSpec
from anonflow.errors import AnonflowError
from anonflow.table.schema import Schema

__all__ = ["STEPS", "KeyPath", "Parts", "reworded"]

STEPS = ("anonymize", "diversify", "draw", "verify", "attack", "measure")

Model = TypeVar("Model", bound=BaseModel)
KeyPath = tuple[str | int, ...]


class Parts:
    """Reads one part of a flow after the other.

    Attributes
    ----------
    data : dict
        The flow as it was read.
    problems : Problems
        What is wrong with it.
    folder : pathlib.Path
        What its paths are relative to.
    """

    def __init__(self, data: dict[str, Any], problems: strict_yaml.Problems, folder: Path) -> None:
        self.data = data
        self.problems = problems
        self.folder = folder

    def _model(
        self, model: type[Model], path: KeyPath, optional: bool = False, data: Any = None
    ) -> Model | None:
        """A part of the flow as its model; its problems are noted."""
        if data is None:
            data = self.data.get(str(path[0]))
            if data is None:
                if path[0] in self.data and not optional:
                    self.problems.add(path, f"'{path[0]}' is empty")
                return None
        if not isinstance(data, dict):
            self.problems.add(path, f"'{path[-1]}' is a mapping of {', '.join(_keys(model))}", value=True)
            return None
        try:
            return model.model_validate(data)
        except ValidationError as error:
            for one in error.errors(include_url=False, include_input=False):
                self._pydantic(model, path, data, one)
            return None

    def _pydantic(self, model: type[BaseModel], path: KeyPath, data: Any, error: Mapping[str, Any]) -> None:
        inside: list[str | int] = []
        level = data
        for part in error["loc"]:
            known = isinstance(level, dict) and part in level
            listed = isinstance(level, list | tuple) and isinstance(part, int) and part < len(level)
            if not known and not listed:
                break
            inside.append(part)
            level = level[part]
        at = (*path, *inside)
        kind = error["type"]
        if kind == "extra_forbidden":
            self.problems.add(at, strict_yaml.unknown(str(error["loc"][-1]), _keys(_model_at(model, inside))))
        elif kind == "missing":
            self.problems.add(at, f"'{error['loc'][-1]}' is missing")
        else:
            self.problems.add(at, f"'{at[-1]}' {reworded(kind, error.get('ctx') or {})}", value=True)

    def _schema(self) -> Schema | None:
        data = self.data.get("table")
        columns = data.get("columns") if isinstance(data, dict) else None
        if not isinstance(columns, dict):
            return None
        if not columns:
            self.problems.add(
                ("table", "columns"), "no column is named; say what the columns are", value=True
            )
            return None
        try:
            schema = Schema(columns, folder=self.folder)
        except AnonflowError as error:
            for problem in error.problems:
                self._column_problem(columns, problem)
            return None
        for name, column in schema.columns.items():
            if isinstance(column.hierarchy, str | Mapping):
                try:
                    check_hierarchy(column.hierarchy, self.folder)
                except AnonflowError as error:
                    for problem in error.problems:
                        self.problems.add(("table", "columns", name, "hierarchy"), problem)
        return schema

    def _column_problem(self, columns: dict[str, Any], problem: str) -> None:
        path: KeyPath = ("table", "columns")
        for name, entry in columns.items():
            if problem.startswith(f"column {name!r}: "):
                path = (*path, name)
                said = re.search(r"unknown (?:key '(?P<key>[^']*)'|(?P<word>role|kind) )", problem)
                key = said and (said["key"] or said["word"])
                if key and isinstance(entry, dict) and key in entry:
                    path = (*path, key)
                break
        self.problems.add(path, problem)

    def _usable(self, path: KeyPath, text: str) -> bool:
        """Whether a text can be a path at all."""
        if text and "\0" not in text and len(text) <= 4096:
            return True
        self.problems.add(path, "is no usable path", value=True)
        return False

    def _source(self, source: SourceSpec) -> None:
        path: KeyPath = ("table", "source")
        given = [key for key in ("csv", "parquet", "dataset") if getattr(source, key) is not None]
        if len(given) != 1:
            self.problems.add(path, "a source names exactly one of csv, parquet and dataset")
            return
        form = given[0]
        about = {
            "csv": {"csv", "delimiter", "encoding", "missing", "pieces"},
            "parquet": {"parquet", "pieces"},
            "dataset": {"dataset", "part", "complete", "n", "q", "sd", "seed"},
        }[form]
        for key in source.model_fields_set - about:
            self.problems.add((*path, key), f"'{key}' does not go with a {form} source")
        if form == "dataset":
            options = source.model_fields_set & about - {"dataset"}
            for key, text in dataset_problems(str(source.dataset), sorted(options)):
                self.problems.add((*path, key), text, value=True)
            return
        if not self._usable((*path, form), str(getattr(source, form))):
            return
        file = self.folder / str(getattr(source, form))
        if not file.exists():
            self.problems.add((*path, form), "no such file; the path is relative to the flow", value=True)
        elif not file.is_file() and not (form == "parquet" and file.is_dir()):
            self.problems.add((*path, form), "is no file", value=True)

    def _steps(self) -> tuple[dict[str, Any], dict[str, int]]:
        """The steps by name, and where in the list each stands."""
        given = self.data.get("steps")
        found: dict[str, Any] = {}
        at: dict[str, int] = {}
        if "steps" not in self.data:
            return found, at
        if not isinstance(given, list) or not given:
            self.problems.add(("steps",), "'steps' is a list that begins with anonymize", value=True)
            return found, at
        for i, step in enumerate(given):
            path = ("steps", i)
            if not isinstance(step, dict) or len(step) != 1:
                self.problems.add(
                    path, "a step is one name and its settings, such as '- verify: [covers]'", value=True
                )
                continue
            ((name, settings),) = step.items()
            if name not in STEPS:
                self.problems.add((*path, name), strict_yaml.unknown(name, STEPS, "step"))
            elif name in found:
                self.problems.add((*path, name), f"a second step {name!r}; a flow has one of each")
            else:
                found[name], at[name] = settings, i
        order = [name for name in found if name in ("anonymize", "diversify", "draw")]
        if "anonymize" not in found:
            self.problems.add(("steps",), "no step 'anonymize'; it comes first")
        elif next(iter(found)) != "anonymize":
            self.problems.add(("steps", at["anonymize"]), "'anonymize' is the first step")
        elif "diversify" in order and at["diversify"] != 1:
            self.problems.add(("steps", at["diversify"]), "'diversify' comes right after 'anonymize'")
        elif "draw" in order and at["draw"] != order.index("draw"):
            self.problems.add(
                ("steps", at["draw"]), f"'draw' comes right after '{order[order.index('draw') - 1]}'"
            )
        if found.get("draw"):
            self._model(DrawSpec, ("steps", at["draw"], "draw"), data=found["draw"])
        for name in ("verify", "attack", "measure"):
            if name in found and (not isinstance(found[name], list) or not found[name]):
                self.problems.add(
                    ("steps", at[name], name), f"{name!r} is a list of names, such as [{_EXAMPLE[name]}]"
                )
                found[name] = []
        return found, at


_EXAMPLE = {"verify": "covers, guarantee", "attack": "prosecutor, linker", "measure": "gcp, usefulness"}

_WORDS = {
    "int_type": "must be a whole number",
    "partition_size": "must be a whole number, or auto",
    "finite_number": "must be a number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be text; put it in quotes",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "string_too_short": "must not be empty",
}


def reworded(kind: str, context: Mapping[str, Any]) -> str:
    """What pydantic says about a value, in our words and without the value."""
    if kind == "string_pattern_mismatch" and context.get("pattern") == SCHEDULER:
        return "must be threads, processes, or the address of a Dask scheduler such as tcp://HOST:8786"
    if kind == "literal_error":
        return f"must be one of {context['expected']}".replace("'", "")
    if kind == "greater_than_equal":
        return f"must be a number of at least {context['ge']}"
    if kind == "greater_than":
        return f"must be a number greater than {context['gt']}"
    if kind == "less_than_equal":
        return f"must be a number of at most {context['le']}"
    if kind == "string_too_long":
        return "must be one character"
    return _WORDS.get(kind, "has a value of the wrong kind")


def _keys(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(field.alias or name for name, field in model.model_fields.items())


def _model_at(model: type[BaseModel], inside: list[str | int]) -> type[BaseModel]:
    """The model that the mapping one above the end of `inside` is checked against."""
    for part in inside[:-1]:
        declared = model.model_fields.get(str(part))
        if declared is not None and isinstance(declared.annotation, type):
            model = declared.annotation
    return model
