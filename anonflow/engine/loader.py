"""Flow files into flows: read strictly, every problem reported in one go with its place."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from anonflow import strict_yaml
from anonflow.engine import names
from anonflow.engine.spec import (
    VERSION,
    AnonymizeSpec,
    DrawSpec,
    FlowSpec,
    PartitionSpec,
    PublishSpec,
    RunSpec,
    SourceSpec,
    StepsSpec,
    TableSpec,
)
from anonflow.errors import AnonflowError, FlowError
from anonflow.table.schema import Schema

__all__ = ["Flow", "Run", "flow_from", "load_flow"]

KEYS = ("flow", "version", "table", "partition", "steps", "matrix", "publish", "run")
STEPS = ("anonymize", "draw", "verify", "measure")
MAX_RUNS = 1000
OWNER = "owner"

Model = TypeVar("Model", bound=BaseModel)
Path_ = tuple[str | int, ...]


@dataclass(frozen=True, eq=False)
class Run:
    """One run of a flow: what the matrix left of it.

    Attributes
    ----------
    number : int
    name : str
        Such as ``greedy k=10``.
    anonymize : AnonymizeSpec
    partition : PartitionSpec
    values : dict
        What the matrix set, by its keys.
    """

    number: int
    name: str
    anonymize: AnonymizeSpec
    partition: PartitionSpec
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Flow:
    """A flow that has passed every check that needs no data.

    Attributes
    ----------
    name : str
    folder : pathlib.Path
        What paths in the flow are relative to.
    path : pathlib.Path or None
        The file, if it came from one.
    spec : FlowSpec
    schema : Schema
    runs : tuple of Run
        One, or one for each combination of the matrix.
    published : Run or None
        The run whose release is published or handed back; None if none is.
    """

    name: str
    folder: Path
    path: Path | None
    spec: FlowSpec
    schema: Schema
    runs: tuple[Run, ...]
    published: Run | None

    @property
    def owner_folder(self) -> Path:
        """Where the owner's things are kept."""
        return self.folder / OWNER / self.name

    @property
    def table_path(self) -> Path | None:
        """Where the release is published."""
        given = self.spec.publish.table
        return None if given is None else self.folder / given

    @property
    def report_path(self) -> Path | None:
        """Where the report is published."""
        given = self.spec.publish.report
        return None if given is None else self.folder / given

    @property
    def source_path(self) -> Path | None:
        """The file that the table is read from, None for a data set."""
        source = self.spec.table.source
        given = source.csv if source.csv is not None else source.parquet
        return None if given is None else self.folder / given

    @property
    def criteria(self) -> tuple[Any, ...]:
        """What is verified; nothing is published unverified, so never empty."""
        return self.spec.steps.verify or ("covers", "guarantee")


def load_flow(path: str | PathLike[str]) -> Flow:
    """Read and check a flow file.

    Parameters
    ----------
    path : path

    Returns
    -------
    Flow

    Raises
    ------
    FlowError
        With every problem, each with file, line and column.
    """
    return flow_from(strict_yaml.read(path, error=FlowError), Path(fspath(path)))


def flow_from(document: strict_yaml.Document, path: Path | None = None, folder: Path | None = None) -> Flow:
    """Check a flow that was read.

    Parameters
    ----------
    document : Document
    path : pathlib.Path, optional
        The flow's file.
    folder : pathlib.Path, optional
        What its paths are relative to; the file's folder without it.

    Returns
    -------
    Flow

    Raises
    ------
    FlowError
        With every problem, each with file, line and column.
    """
    problems = document.problems()
    data = document.data
    if not isinstance(data, dict):
        problems.add((), "a flow is a mapping with flow, version, table and steps", value=True)
        problems.raise_if_any()
    base = folder if folder is not None else path.parent if path is not None else Path()
    checker = _Checker(data, problems, base.resolve() if path is not None or folder else base)
    flow = checker.flow(path)
    problems.raise_if_any()
    assert flow is not None
    return flow


class _Checker:
    """Looks at one part of a flow after the other and notes what is wrong with it."""

    def __init__(self, data: dict[str, Any], problems: strict_yaml.Problems, folder: Path) -> None:
        self.data = data
        self.problems = problems
        self.folder = folder

    def flow(self, path: Path | None) -> Flow | None:
        self.problems.add_unknown_keys((), self.data, KEYS)
        for key in ("flow", "version", "table", "steps"):
            if key not in self.data:
                self.problems.add((), f"'{key}' is missing")
        if "version" in self.data and self.data["version"] != VERSION:
            self.problems.add(
                ("version",), f"this anonflow reads version {VERSION} of the format", value=True
            )
        table = self._model(TableSpec, ("table",))
        schema = self._schema(table)
        if table is not None:
            self._source(table.source)
        partition = self._model(PartitionSpec, ("partition",), optional=True) or PartitionSpec()
        run = self._model(RunSpec, ("run",), optional=True) or RunSpec()
        publish = self._model(PublishSpec, ("publish",), optional=True) or PublishSpec()
        steps, at = self._steps()
        matrix = self._matrix()
        runs = self._runs(steps, at, partition, matrix)
        if runs:
            self._verify(steps, at, runs)
        self._measure(steps, at)
        published = self._published(publish, runs, matrix)
        self._paths(publish)
        if len(self.problems) or table is None or schema is None or not runs:
            return self._named()
        spec = self._spec(table, partition, steps, runs, matrix, publish, run)
        if spec is None:
            return None
        return Flow(spec.flow, self.folder, path, spec, schema, runs, published)

    def _named(self) -> None:
        """Nothing else can be built, but the name can still be looked at."""
        if "flow" in self.data:
            self._name_problem()

    def _name_problem(self) -> None:
        name = self.data["flow"]
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
            self.problems.add(
                ("flow",), "a flow's name has up to 64 letters, digits, '.', '-' and '_'", value=True
            )

    def _spec(
        self,
        table: TableSpec,
        partition: PartitionSpec,
        steps: dict[str, Any],
        runs: tuple[Run, ...],
        matrix: dict[str, list[Any]],
        publish: PublishSpec,
        run: RunSpec,
    ) -> FlowSpec | None:
        self._name_problem()
        if len(self.problems):
            return None
        return FlowSpec(
            flow=self.data["flow"],
            version=1,
            table=table,
            partition=partition,
            steps=StepsSpec(
                anonymize=runs[0].anonymize,
                draw=DrawSpec() if "draw" in steps else None,
                verify=tuple(steps.get("verify") or ()),
                measure=tuple(steps.get("measure") or ()),
            ),
            matrix={key: tuple(values) for key, values in matrix.items()} or None,
            publish=publish,
            run=run,
        )

    # ------------------------------------------------------------------------------------- parts

    def _model(
        self, model: type[Model], path: Path_, optional: bool = False, data: Any = None
    ) -> Model | None:
        """A part of the flow as its model; its problems are noted."""
        if data is None:
            data = self.data.get(path[0])
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

    def _pydantic(self, model: type[BaseModel], path: Path_, data: Any, error: Mapping[str, Any]) -> None:
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
            self.problems.add(at, f"'{at[-1]}' {_reworded(kind, error.get('ctx') or {})}", value=True)

    def _schema(self, table: TableSpec | None) -> Schema | None:
        data = self.data.get("table")
        columns = data.get("columns") if isinstance(data, dict) else None
        if not isinstance(columns, dict):
            return None
        if not columns:
            self.problems.add(("table", "columns"), "no column is named; say what the columns are", value=True)
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
                    names.check_hierarchy(column.hierarchy, self.folder)
                except AnonflowError as error:
                    for problem in error.problems:
                        self.problems.add(("table", "columns", name, "hierarchy"), problem)
        return schema

    def _column_problem(self, columns: dict[str, Any], problem: str) -> None:
        path: Path_ = ("table", "columns")
        for name, entry in columns.items():
            if problem.startswith(f"column {name!r}: "):
                path = (*path, name)
                said = re.search(r"unknown (?:key '(?P<key>[^']*)'|(?P<word>role|kind) )", problem)
                key = said and (said["key"] or said["word"])
                if isinstance(entry, dict) and key in entry:
                    path = (*path, key)
                break
        self.problems.add(path, problem)

    def _source(self, source: SourceSpec) -> None:
        path: Path_ = ("table", "source")
        given = [key for key in ("csv", "parquet", "dataset") if getattr(source, key) is not None]
        if len(given) != 1:
            self.problems.add(path, "a source names exactly one of csv, parquet and dataset")
            return
        form = given[0]
        about = {
            "csv": {"csv", "delimiter", "encoding", "missing"},
            "parquet": {"parquet"},
            "dataset": {"dataset", "part", "complete", "n", "q", "sd", "seed"},
        }[form]
        for key in source.model_fields_set - about:
            self.problems.add((*path, key), f"'{key}' does not go with a {form} source")
        if form == "dataset":
            options = source.model_fields_set & about - {"dataset"}
            for key, text in names.dataset_problems(str(source.dataset), sorted(options)):
                self.problems.add((*path, key), text, value=True)
            return
        file = self.folder / str(getattr(source, form))
        if not file.exists():
            self.problems.add((*path, form), "no such file; the path is relative to the flow", value=True)
        elif not file.is_file():
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
        order = [name for name in found if name in ("anonymize", "draw")]
        if "anonymize" not in found:
            self.problems.add(("steps",), "no step 'anonymize'; it comes first")
        elif next(iter(found)) != "anonymize":
            self.problems.add(("steps", at["anonymize"]), "'anonymize' is the first step")
        elif "draw" in order and at["draw"] != 1:
            self.problems.add(("steps", at["draw"]), "'draw' comes right after 'anonymize'")
        if found.get("draw"):
            self._model(DrawSpec, ("steps", at["draw"], "draw"), data=found["draw"])
        for name in ("verify", "measure"):
            if name in found and (not isinstance(found[name], list) or not found[name]):
                self.problems.add(
                    ("steps", at[name], name), f"{name!r} is a list of names, such as [{_EXAMPLE[name]}]"
                )
                found[name] = []
        return found, at

    # ------------------------------------------------------------------------------- combinations

    def _matrix(self) -> dict[str, list[Any]]:
        given = self.data.get("matrix")
        if "matrix" not in self.data:
            return {}
        if not isinstance(given, dict) or not given:
            self.problems.add(
                ("matrix",), "'matrix' is a mapping such as {anonymize.k: [5, 10]}", value=True
            )
            return {}
        matrix = {}
        for key, values in given.items():
            part, _, name = key.partition(".")
            if part not in ("anonymize", "partition") or not name:
                self.problems.add(
                    ("matrix", key), "a matrix key is 'anonymize.' or 'partition.' and a parameter's name"
                )
            elif part == "partition" and name not in PartitionSpec.model_fields:
                self.problems.add(
                    ("matrix", key), strict_yaml.unknown(name, PartitionSpec.model_fields, "parameter")
                )
            elif not isinstance(values, list) or not values:
                self.problems.add(("matrix", key), "a matrix key has a list of values", value=True)
            elif any(value in values[:i] for i, value in enumerate(values)):
                self.problems.add(("matrix", key), "a value stands twice", value=True)
            else:
                matrix[key] = values
        size = 1
        for values in matrix.values():
            size *= len(values)
        if size > MAX_RUNS:
            self.problems.add(("matrix",), f"{size} combinations; a flow has at most {MAX_RUNS}")
            return {}
        return matrix

    def _runs(
        self,
        steps: dict[str, Any],
        at: dict[str, int],
        partition: PartitionSpec,
        matrix: dict[str, list[Any]],
    ) -> tuple[Run, ...]:
        if "anonymize" not in steps:
            return ()
        home: Path_ = ("steps", at["anonymize"], "anonymize")
        base = steps["anonymize"]
        if not isinstance(base, dict):
            self.problems.add(home, "'anonymize' needs settings such as {algorithm: greedy, k: 10}")
            return ()
        runs: list[Run] = []
        said: set[tuple[Path_, str]] = set()

        def note(path: Path_, text: str) -> None:
            if (path, text) not in said:
                said.add((path, text))
                self.problems.add(path, text, value=True)

        for number, values in enumerate(itertools.product(*matrix.values())):
            chosen = dict(zip(matrix, values, strict=True))
            settings = dict(base)
            cut = {name: getattr(partition, name) for name in partition.model_fields_set}
            places: dict[str, Path_] = {str(key): (*home, key) for key in base}
            for key, value in chosen.items():
                part, _, name = key.partition(".")
                place: Path_ = ("matrix", key, matrix[key].index(value))
                if part == "partition":
                    cut[name] = value
                    places["partition." + name] = place
                else:
                    settings[name] = value
                    places[name] = place
            for key in ("algorithm", "k"):
                if settings.get(key) is None:
                    note(home, f"'{key}' is missing")
                    settings.pop(key, None)
            spec, slices = self._combination(settings, cut, home, places, note)
            if spec is not None and slices is not None:
                runs.append(Run(number, _run_name(spec, chosen), spec, slices, chosen))
        return () if said else tuple(runs)

    def _combination(
        self, settings: dict[str, Any], cut: dict[str, Any], home: Path_, places: dict[str, Path_], note: Any
    ) -> tuple[AnonymizeSpec | None, PartitionSpec | None]:
        spec = slices = None
        try:
            spec = AnonymizeSpec.model_validate(
                {key if key in AnonymizeSpec.model_fields else key.replace("-", "_"): value
                 for key, value in settings.items()}
            )  # fmt: skip
        except ValidationError as error:
            for one in error.errors(include_url=False, include_input=False):
                if one["type"] != "missing":
                    key = str(one["loc"][0])
                    note(places.get(key, home), f"'{key}' {_reworded(one['type'], one.get('ctx') or {})}")
        try:
            slices = PartitionSpec.model_validate(cut)
        except ValidationError as error:
            for one in error.errors(include_url=False, include_input=False):
                key = str(one["loc"][0])
                note(
                    places.get("partition." + key, ("partition", key)),
                    f"'{key}' {_reworded(one['type'], one.get('ctx') or {})}",
                )
        if spec is not None:
            for key, text in names.method_problems(spec.algorithm, spec.loss, spec.options):
                written = key if key in places else key.replace("_", "-")
                note(places.get(written, home), text)
            if slices is not None and slices.size is not None and slices.size < spec.k:
                note(
                    places.get("partition.size", ("partition", "size")),
                    f"partitions of {slices.size} are smaller than k = {spec.k}; use at least {spec.k}",
                )
        return spec, slices

    def _verify(self, steps: dict[str, Any], at: dict[str, int], runs: tuple[Run, ...]) -> None:
        for i, criterion in enumerate(steps.get("verify") or ()):
            for run in runs:
                text = names.criterion_problem(criterion, run.anonymize.algorithm)
                if text is not None:
                    self.problems.add(("steps", at["verify"], "verify", i), text, value=True)
                    break

    def _measure(self, steps: dict[str, Any], at: dict[str, int]) -> None:
        for i, measure in enumerate(steps.get("measure") or ()):
            text = names.measure_problem(measure)
            if text is not None:
                self.problems.add(("steps", at["measure"], "measure", i), text, value=True)

    # ---------------------------------------------------------------------------------- publishing

    def _published(
        self, publish: PublishSpec, runs: tuple[Run, ...], matrix: dict[str, list[Any]]
    ) -> Run | None:
        if publish.run is not None and not matrix:
            self.problems.add(("publish", "run"), "'run' picks one run of a matrix, and there is none")
            return None
        if not matrix:
            return runs[0] if runs else None
        if publish.run is None:
            if publish.table is not None:
                self.problems.add(
                    ("publish", "table"),
                    "with a matrix, 'run' says which run is published, such as {anonymize.k: 10}",
                )
            return None
        good = True
        for key, value in publish.run.items():
            if key not in matrix:
                self.problems.add(("publish", "run", key), strict_yaml.unknown(key, matrix))
                good = False
            elif value not in matrix[key]:
                self.problems.add(("publish", "run", key), "is no value of the matrix", value=True)
                good = False
        if not good or not runs:
            return None
        picked = [run for run in runs if all(run.values[key] == value for key, value in publish.run.items())]
        if len(picked) != 1:
            self.problems.add(("publish", "run"), f"picks {len(picked)} runs of the matrix, not one")
            return None
        return picked[0]

    def _paths(self, publish: PublishSpec) -> None:
        owner = (self.folder / OWNER).resolve()
        taken: dict[Path, str] = {}
        source = self.data.get("table")
        source = source.get("source") if isinstance(source, dict) else None
        if isinstance(source, dict):
            for form in ("csv", "parquet"):
                if isinstance(source.get(form), str):
                    taken[(self.folder / source[form]).resolve()] = "the source"
        for key, endings in (("table", (".parquet", ".csv")), ("report", (".html",))):
            given = getattr(publish, key)
            if given is None:
                continue
            place = ("publish", key)
            if Path(given).suffix.lower() not in endings:
                self.problems.add(place, f"'{key}' is a file that ends in {' or '.join(endings)}", value=True)
                continue
            target = (self.folder / given).resolve()
            if target in taken:
                self.problems.add(place, f"'{key}' would be written over {taken[target]}", value=True)
            taken[target] = f"'{key}'"
            if target.is_relative_to(owner):
                self.problems.add(
                    place, "lies inside the owner's folder, which is never published", value=True
                )
            elif owner.is_relative_to(target.parent):
                self.problems.add(
                    place,
                    "the owner's folder would lie inside the folder that is published to; "
                    "publish to a folder of its own, such as out/",
                    value=True,
                )


_EXAMPLE = {"verify": "covers, guarantee", "measure": "gcp, usefulness"}

_WORDS = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be text; put it in quotes",
    "tuple_type": "must be a list",
    "dict_type": "must be a mapping",
    "model_type": "must be a mapping",
    "string_too_short": "must not be empty",
}


def _reworded(kind: str, context: Mapping[str, Any]) -> str:
    if kind == "literal_error":
        return f"must be one of {context['expected']}".replace("'", "")
    if kind == "greater_than_equal":
        return f"must be a number of at least {context['ge']}"
    if kind == "greater_than":
        return f"must be a number greater than {context['gt']}"
    if kind == "less_than_equal":
        return f"must be a number of at most {context['le']}"
    if kind == "string_too_long":
        return f"must have {context['max_length']} characters at most"
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


def _run_name(spec: AnonymizeSpec, chosen: Mapping[str, Any]) -> str:
    more = [
        f"{key.partition('.')[2]}={value}"
        for key, value in chosen.items()
        if key not in ("anonymize.algorithm", "anonymize.k") and isinstance(value, str | int | float)
    ]
    return " ".join([spec.algorithm, f"k={spec.k}", *more])
