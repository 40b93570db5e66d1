"""The sections of a flow file, each as its model, and the steps: their order, and the names in each. Problems are noted with their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from anonflow import strict_yaml
from anonflow.algorithms.method import Algorithm
from anonflow.engine.duration import DURATION, DURATION_WORDS
from anonflow.engine.flows.addresses import address_problem, is_address
from anonflow.engine.flows.references import (
    attacker_problem,
    check_hierarchy,
    criterion_problem,
    dataset_problems,
    diversify_problem,
    measure_problem,
)
from anonflow.engine.flows.registers import register_problem
from anonflow.engine.flows.spec import (
    FORMS,
    SCHEDULER,
    DiversifySpec,
    DrawSpec,
    SourceSpec,
    StepsSpec,
    UnitsSpec,
    form_of,
)
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
            "excel": {"excel", "sheet", "skip", "pieces"},
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


STEPS = tuple(StepsSpec.model_fields)

_EXAMPLE = {"verify": "covers, guarantee", "attack": "prosecutor, linker", "measure": "gcp, usefulness"}


class Steps:
    """The steps of a flow by name; problems are noted with their place.

    Parameters
    ----------
    sections : Sections
        Of the flow.

    Attributes
    ----------
    settings : dict
        Step -> what is said of it.
    """

    def __init__(self, sections: Sections) -> None:
        self.sections = sections
        self.problems = sections.problems
        self.settings: dict[str, Any] = {}
        self._at: dict[str, int] = {}
        self._read()

    def place(self, name: str) -> KeyPath:
        """Return the place of a step."""
        return ("steps", self._at[name], name)

    def _read(self) -> None:
        read, at = self.settings, self._at
        steps = self.sections.data.get("steps")
        if "steps" not in self.sections.data:
            return
        if not isinstance(steps, list) or not steps:
            self.problems.add(("steps",), "'steps' is a list that begins with anonymize", value=True)
            return
        for i, step in enumerate(steps):
            path = ("steps", i)
            if not isinstance(step, dict) or len(step) != 1:
                self.problems.add(
                    path, "a step is one name and its settings, such as '- verify: [covers]'", value=True
                )
                continue
            ((name, settings),) = step.items()
            if name not in STEPS:
                self.problems.add((*path, name), strict_yaml.unknown(name, STEPS, "step"))
            elif name in read:
                self.problems.add((*path, name), f"a second step {name!r}; a flow has one of each")
            else:
                read[name], at[name] = settings, i
        order = [name for name in read if name in ("anonymize", "diversify", "draw")]
        if "anonymize" not in read:
            self.problems.add(("steps",), "no step 'anonymize'; it comes first")
        elif next(iter(read)) != "anonymize":
            self.problems.add(("steps", at["anonymize"]), "'anonymize' is the first step")
        elif "diversify" in order and at["diversify"] != 1:
            self.problems.add(("steps", at["diversify"]), "'diversify' comes right after 'anonymize'")
        elif "draw" in order and at["draw"] != order.index("draw"):
            self.problems.add(
                ("steps", at["draw"]), f"'draw' comes right after '{order[order.index('draw') - 1]}'"
            )
        if read.get("draw"):
            self.sections.model(DrawSpec, ("steps", at["draw"], "draw"), data=read["draw"])
        for name in ("verify", "attack", "measure"):
            if name in read and (not isinstance(read[name], list) or not read[name]):
                self.problems.add(
                    ("steps", at[name], name), f"{name!r} is a list of names, such as [{_EXAMPLE[name]}]"
                )
                read[name] = []

    def check_verify(self, methods: Sequence[Algorithm], draws: bool) -> None:
        """Check the criteria, for every method that is run, and that there is a release for those that need it."""
        for i, criterion in enumerate(self.settings.get("verify") or ()):
            for method in (*methods,) or (None,):
                text = criterion_problem(criterion, method, draws, "diversify" in self.settings)
                if text is not None:
                    self.problems.add((*self.place("verify"), i), text, value=True)
                    break

    def diversify(self, schema: Schema | None) -> DiversifySpec | None:
        """Return the step diversify as its model, None without one and where it has problems."""
        if "diversify" not in self.settings:
            return None
        home = self.place("diversify")
        settings = self.settings["diversify"]
        if not isinstance(settings, dict) or not settings:
            self.problems.add(
                home, "'diversify' needs settings such as {criterion: l-diversity, l: 2}", value=True
            )
            return None
        return checked_diversify(self.sections, home, settings, schema)

    def check_diversify(self, methods: Sequence[Algorithm]) -> None:
        """Refuse a step diversify after a method whose results cannot be made diverse."""
        for method in methods if "diversify" in self.settings else ():
            self.problems.add(self.place("diversify"), method.diversity_problem, value=True)

    def check_attack(
        self,
        draws: bool,
        schema: Schema | None = None,
        source: SourceSpec | None = None,
        method: Algorithm | None = None,
    ) -> None:
        """Check the attackers and their registers, and that there is a release for them."""
        if "attack" in self.settings and not draws:
            self.problems.add(
                self.place("attack"),
                "there is no release to attack: add '- draw: {}', and with a matrix pick a run to publish",
            )
        for i, attacker in enumerate(self.settings.get("attack") or ()):
            text = register_problem([attacker], schema, source, self.sections.folder)
            text = text or attacker_problem(attacker, schema, method)
            self.problems.add((*self.place("attack"), i), text, value=True)

    def check_measure(self) -> None:
        """Check the names of the measures."""
        for i, measure in enumerate(self.settings.get("measure") or ()):
            self.problems.add((*self.place("measure"), i), measure_problem(measure), value=True)


def checked_diversify(
    sections: Sections, place: KeyPath, settings: dict[str, Any], schema: Schema | None
) -> DiversifySpec | None:
    """Return the settings of a step diversify as its model, None where it is none; problems are noted with their place."""
    spec = sections.model(DiversifySpec, place, data=settings)
    if spec is None:
        return None
    key, text = diversify_problem(spec.criterion, spec.settings, schema)
    sections.problems.add((*place, key) if key in settings else place, text, value=key in settings)
    return spec
