"""The sections of a flow file, each as its model; their problems are noted with their places."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from anonflow import strict_yaml
from anonflow.engine.duration import DURATION, DURATION_WORDS
from anonflow.engine.flows.addresses import address_problem, is_address
from anonflow.engine.flows.references import check_hierarchy, dataset_problems
from anonflow.engine.flows.spec import FORMS, SCHEDULER, SourceSpec, UnitsSpec, form_of
from anonflow.errors import AnonflowError, Problem
from anonflow.strict_yaml.names import did_you_mean
from anonflow.table.files.csv_reading import DELIMITER, DELIMITER_WORDS
from anonflow.table.files.statistics_files import READERS
from anonflow.table.files.workbooks import ENDINGS
from anonflow.table.forms.number_forms import DECIMALS, THOUSANDS, NumberForm
from anonflow.table.prepare import Preparation
from anonflow.table.schema import Schema

Model = TypeVar("Model", bound=BaseModel)
KeyPath = tuple[str | int, ...]


class Sections:
    """Reads one section of a flow after the other.

    Attributes
    ----------
    data : dict
        The flow as it was read.
    problems : Problems
        Its problems.
    folder : pathlib.Path
        What its paths are relative to.
    """

    def __init__(self, data: dict[str, Any], problems: strict_yaml.Problems, folder: Path) -> None:
        self.data = data
        self.problems = problems
        self.folder = folder

    def model(
        self, model: type[Model], path: KeyPath, optional: bool = False, data: Any = None
    ) -> Model | None:
        """Return a part of the flow as its model; its problems are noted."""
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
            for entry in error.errors(include_url=False, include_input=False):
                self._pydantic(model, path, data, entry)
            return None

    def _pydantic(self, model: type[BaseModel], path: KeyPath, data: Any, error: Mapping[str, Any]) -> None:
        inside: list[str | int] = []
        level = data
        for part in error["loc"]:
            is_key = isinstance(level, dict) and part in level
            listed = isinstance(level, list | tuple) and isinstance(part, int) and part < len(level)
            if not is_key and not listed:
                break
            inside.append(part)
            level = level[part]
        at = (*path, *inside)
        kind = error["type"]
        if kind == "extra_forbidden":
            key, inner_model = str(error["loc"][-1]), _model_at(model, inside)
            names_file = inner_model is SourceSpec and isinstance(level, str) and Path(level).suffix
            likely = form_of(level) if names_file else None
            self.problems.add(at, strict_yaml.unknown(key, _keys(inner_model), likely=likely))
        elif kind == "missing":
            self.problems.add(at, f"'{error['loc'][-1]}' is missing")
        else:
            words = reworded(kind, error.get("ctx") or {})
            if kind == "model_type":
                words += did_you_mean("", _keys(_model_at(model, [*inside, ""])))
            self.problems.add(at, f"'{at[-1]}' {words}", value=True)

    def schema(self) -> Schema | None:
        """Return the columns, None if they have problems."""
        data = self.data.get("table")
        columns = data.get("columns") if isinstance(data, dict) else None
        steps = self._preparation(data)
        if not isinstance(columns, dict):
            return None
        if not columns:
            self.problems.add(
                ("table", "columns"), "no column is named; list them under 'columns'", value=True
            )
            return None
        try:
            schema = Schema(columns, folder=self.folder, prepare=steps)
        except AnonflowError as error:
            for path, text in error.found or [Problem((), text) for text in error.problems]:
                self.problems.add(("table", "columns", *path), text)
            return None
        source = data.get("source") if isinstance(data, dict) else None
        if isinstance(source, dict):
            separators = [source.get(key) for key in ("decimal", "thousands")]
            if all(sign is None or isinstance(sign, str) for sign in separators):
                schema = self._separated(schema, *separators)
        for name, column in schema.columns.items():
            if isinstance(column.hierarchy, str | Mapping):
                try:
                    check_hierarchy(column.hierarchy, self.folder)
                except AnonflowError as error:
                    for problem in error.problems:
                        self.problems.add(("table", "columns", name, "hierarchy"), problem)
        return schema

    def units(self, units: UnitsSpec) -> None:
        """Check the section `units`: the treatment of people's rows."""
        path: KeyPath = ("table", "units")
        if units.cap is None and units.recipes is None:
            self.problems.add(path, "'units' needs a cap of rows, or recipes for one row per unit")
        if units.rows is not None and units.recipes is None:
            self.problems.add((*path, "rows"), "'rows' goes with recipes: one row per unit")

    def _separated(self, schema: Schema, decimal: str | None, thousands: str | None) -> Schema:
        """Return the schema with the separators of the source."""
        if decimal not in (None, *DECIMALS) or thousands not in (None, *THOUSANDS):
            return schema  # the check of the source says so
        problem = NumberForm(decimal, thousands).problem
        if problem is not None:
            self.problems.add(("table", "source", "thousands"), problem, value=True)
            return schema
        return schema.with_separators(decimal, thousands)

    def _preparation(self, table: Any) -> Preparation:
        """Return the preparation steps; their problems are noted."""
        written = table.get("prepare") if isinstance(table, dict) else None
        try:
            return Preparation(written, self.folder)
        except AnonflowError as error:
            for path, text in error.found:
                self.problems.add(("table", "prepare", *path), text)
            return Preparation()

    def usable(self, path: KeyPath, text: str) -> bool:
        """Return whether a text can be a path at all."""
        if text and "\0" not in text and len(text) <= 4096:
            return True
        self.problems.add(path, "is not a usable path", value=True)
        return False

    def source(self, source: SourceSpec, *, is_read: bool = True) -> None:
        """Check where the table comes from; the file itself only if the table is read from it."""
        path: KeyPath = ("table", "source")
        forms = [key for key in FORMS if getattr(source, key) is not None]
        if len(forms) != 1:
            self.problems.add(path, f"a source names exactly one of {', '.join(FORMS[:-1])} and {FORMS[-1]}")
            return
        form = forms[0]
        keys = {
            "csv": {
                "csv",
                "delimiter",
                "encoding",
                "missing",
                "pieces",
                "header",
                "names",
                "skip",
                "comment",
                "index",
                "footer",
                "decimal",
                "thousands",
            },
            "parquet": {"parquet", "pieces"},
            "stats": {"stats", "labels", "codes", "pieces"},
            "excel": {"excel", "sheet", "skip", "footer", "pieces"},
            "sql": {"sql", "database", "pieces"},
            "dataset": {"dataset", "part", "complete", "n", "q", "sd", "seed", "pieces"},
        }[form]
        for key in source.model_fields_set - keys:
            self.problems.add((*path, key), f"'{key}' does not go with a {form} source")
        if source.names and source.header is not False:
            self.problems.add((*path, "names"), "'names' are for a file without a header; add header: false")
        if form == "dataset":
            options = source.model_fields_set & keys - {"dataset", "pieces"}
            for key, text in dataset_problems(str(source.dataset), sorted(options)):
                self.problems.add((*path, key), text, value=True)
            return
        if form == "sql":
            form = "database"
            if source.database is None:
                self.problems.add(path, "a query needs 'database', the DuckDB file that it reads")
                return
        named = str(getattr(source, form))
        if is_address(named):
            self.problems.add((*path, form), address_problem(named), value=True)
            self._ending(path, form, named)
            return
        if not self.usable((*path, form), named) or not is_read:
            return
        file = self.folder / named
        if not file.exists():
            variable = f"; a flow reads no variable, but --set table.source.{form}='{named}' does"
            why = "no such file; the path is relative to the flow" + variable * named.startswith("${env:")
            self.problems.add((*path, form), why, value=True)
        elif not file.is_file() and not (form == "parquet" and file.is_dir()):
            self.problems.add((*path, form), "is not a file", value=True)
        else:
            self._ending(path, form, named)

    def _ending(self, path: KeyPath, form: str, named: str) -> None:
        """Check that a file's ending names a form."""
        endings = {"stats": tuple(READERS), "excel": ENDINGS}.get(form)
        if endings is not None and not named.lower().endswith(endings):
            self.problems.add((*path, form), f"is a file that ends in {' or '.join(endings)}", value=True)


_WORDS = {
    "bool_type": "must be true or false",
    "dict_type": "must be a mapping",
    "finite_number": "must be a number",
    "float_type": "must be a number",
    "greater_than": "must be a number greater than {gt}",
    "greater_than_equal": "must be a number of at least {ge}",
    "int_type": "must be a whole number",
    "less_than_equal": "must be a number of at most {le}",
    "literal_error": "must be one of {expected}",
    "model_type": "must be a mapping",
    "partition_size": "must be a whole number, or auto",
    "pieces": "must be true, false, or a number of rows of at least 2",
    "report": "must be the name of an .html file, or a mapping of file, template, threshold and pdf",
    "string_too_short": "must not be empty",
    "string_type": "must be text; put it in quotes",
    "too_short": "must not be empty",
    "tuple_type": "must be a list",
    SCHEDULER: "must be threads, processes, or the address of a Dask scheduler such as tcp://HOST:8786",
    DURATION: f"must be {DURATION_WORDS}",
    DELIMITER: f"must be {DELIMITER_WORDS}",
}
"""What a value must be, by pydantic's name of the problem, or by the pattern that the value does not have."""


def reworded(kind: str, context: Mapping[str, Any]) -> str:
    """Return pydantic's message about a value in our words and without the value."""
    limits = {name: str(limit).replace("'", "") for name, limit in context.items()}
    return _WORDS.get(context.get("pattern", kind), "has a value of the wrong kind").format(**limits)


def _keys(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(field.alias or name for name, field in model.model_fields.items())


def _model_at(model: type[BaseModel], inside: list[str | int]) -> type[BaseModel]:
    """Return the model that the mapping one above the end of `inside` is checked against."""
    for part in inside[:-1]:
        declared = model.model_fields.get(str(part))
        if declared is None:
            continue
        for kind in (declared.annotation, *get_args(declared.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                model = kind
    return model
