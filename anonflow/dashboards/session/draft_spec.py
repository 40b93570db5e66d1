"""The flow behind the screens as one frozen model: the flow format, with its columns and steps as a file has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AliasGenerator,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    model_validator,
)

from anonflow import strict_yaml
from anonflow.engine import Flow, Run, flow_from
from anonflow.engine.flows.goal import CHECKED
from anonflow.engine.flows.sections import reworded
from anonflow.engine.flows.spec import (
    AnonymizeSpec,
    DrawSpec,
    FlowSpec,
    PartitionSpec,
    PublishSpec,
    ReportSpec,
    RunSpec,
    SourceSpec,
    StepsSpec,
    TableSpec,
)
from anonflow.errors import FlowError
from anonflow.option import Option

Number = StrictInt | StrictFloat


class ColumnSpec(BaseModel):
    """The entry of a column, by the keys of ``anonflow.table.schema.COLUMN_KEYS``; the schema judges its values."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        alias_generator=AliasGenerator(alias=lambda name: name.replace("_", "-")),
    )

    role: StrictStr | None = None
    kind: StrictStr | None = None
    weight: Number | None = None
    hierarchy: StrictStr | dict[str, Any] | None = None
    boundary: tuple[StrictStr, ...] | dict[str, Number] | None = None
    missing: StrictStr | None = None
    codes: tuple[StrictStr, ...] | None = None
    code_weight: Number | None = None
    max_width: Number | None = None
    max_set: Number | None = None
    at_least: Number | None = None
    aggregate: StrictStr | None = None
    notation: StrictStr | dict[str, Any] | None = None
    domain: StrictStr | dict[str, Any] | tuple[StrictStr | None, ...] | None = None
    decimal: StrictStr | None = None
    thousands: StrictStr | None = None
    percent: StrictBool | None = None
    dates: StrictStr | None = None
    pivot: StrictInt | None = None
    write: StrictStr | None = None
    scope: StrictStr | None = None

    @property
    def tree(self) -> dict[str, Any]:
        """The hierarchy that is written out here; empty without one, and where a file has it."""
        return self.hierarchy if isinstance(self.hierarchy, dict) else {}

    @property
    def limit_labels(self) -> tuple[str, ...]:
        """The node labels of the boundary."""
        return self.boundary if isinstance(self.boundary, tuple) else ()

    @property
    def interval(self) -> float | None:
        """The width of the fixed intervals of the boundary."""
        return self.boundary.get("width") if isinstance(self.boundary, dict) else None


class MethodSpec(AnonymizeSpec):
    """The step anonymize as a file has it: its values may stand in the matrix alone, and options may be of one method."""

    model_config = ConfigDict(populate_by_name=True)

    algorithm: StrictStr = CHECKED[0]
    k: Annotated[StrictInt, Field(ge=2)] = CHECKED[1]
    of_methods: dict[str, dict[str, Any]] = Field(default={}, alias="options")
    """Method -> its own options, over those of the step."""

    @model_validator(mode="before")
    @classmethod
    def _underscored(cls, data: Any) -> Any:
        """Write the names of options as Python has them."""
        if not isinstance(data, dict):
            return data
        options = data.get("options")
        if isinstance(options, dict):
            options = {
                name: _underscored(setting) if isinstance(setting, dict) else setting
                for name, setting in options.items()
            }
            data = {**data, "options": options}
        return _underscored(data)

    def option(self, method: str, option: Option) -> Any:
        """Return the value of an option of a method; its default where nothing is said."""
        return self.of_methods.get(method, {}).get(option.name, self.options.get(option.name, option.default))

    def with_option(self, method: str, option: Option, value: Any) -> MethodSpec:
        """Return the step with another value of an option of a method; the default is not said."""
        rest = {
            name: setting for name, setting in self.of_methods.get(method, {}).items() if name != option.name
        }
        is_default = value == option.default and type(value) is type(option.default)
        return self.with_own({method: rest if is_default and option.name not in self.options else {**rest, option.name: value}})  # fmt: skip

    def with_own(self, changes: Mapping[str, Mapping[str, Any]]) -> MethodSpec:
        """Return the step with other own options of methods."""
        of_methods = {name: options for name, options in {**self.of_methods, **changes}.items() if options}
        return self.model_copy(update={"of_methods": of_methods})

    def without(self, *names: str) -> MethodSpec:
        """Return the step without these options, which it has for all methods."""
        return MethodSpec(
            **{name: value for name, value in self if name in self.model_fields_set - set(names)}
        )


def _underscored(options: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name).replace("-", "_"): value for name, value in options.items()}


class DraftSteps(StepsSpec):
    """The steps; a file has a list of them."""

    anonymize: MethodSpec

    @model_validator(mode="before")
    @classmethod
    def _of_list(cls, data: Any) -> Any:
        """Return the steps of a list by name; another list stays as it is, and is refused."""
        if isinstance(data, list) and all(isinstance(step, dict) and len(step) == 1 for step in data):
            by_name = {name: settings for step in data for name, settings in step.items()}
            return by_name if len(by_name) == len(data) else data
        return data


class DraftTable(TableSpec):
    """The table with typed columns."""

    columns: dict[str, ColumnSpec]


class DraftSpec(FlowSpec):
    """A flow while it is being written: complete in its form, but a schema, a method or a table may refuse it."""

    table: DraftTable
    steps: DraftSteps
    matrix: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = Field(default={})

    @model_validator(mode="after")
    def _checked_sweep(self) -> DraftSpec:
        for algorithm in self.algorithms:
            MethodSpec(algorithm=algorithm)
        for k in self.ks:
            MethodSpec(k=k)
        return self

    @classmethod
    def of(cls, document: Any) -> DraftSpec:
        """Return the flow of a file's content, plain data, of which only the form is checked.

        Raises
        ------
        FlowError
            If it is no flow.
        """
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise FlowError.collected("this is not a flow", form_problems(error)) from None

    @classmethod
    def read(cls, document: strict_yaml.Document, folder: Path) -> DraftSpec:
        """Return the flow of a file that the loader takes.

        Raises
        ------
        FlowError
            With every problem, and its place.
        """
        try:
            spec = cls.of(document.data)
        except FlowError:
            flow_from(document, folder=folder)  # says where
            raise
        published = {"publish": written(spec.attacked().publish)} if spec.steps.attack else {}
        flow_from(document.with_data({**document.data, **published}), folder=folder)
        return spec

    @property
    def document(self) -> dict[str, Any]:
        """The content of the flow's file: what differs from the defaults."""
        document = self._by_name()
        return {**document, "steps": [{name: settings} for name, settings in document["steps"].items()]}

    def _by_name(self) -> dict[str, Any]:
        """Return the content of the file with its steps by name."""
        document = written(self)
        method = self.steps.anonymize
        whole = {
            name: getattr(method, name) for name in ("algorithm", "k") if name in method.model_fields_set
        }
        document["steps"]["anonymize"] = {**whole, **document["steps"].get("anonymize", {})}
        return document

    def changed(self, edits: Iterable[tuple[Sequence[str], Any]]) -> DraftSpec:
        """Return the flow after edits of places, such as ``("steps", "anonymize", "k")``, and their values.

        A step is named by its word; None removes what is there; mappings on the way are made.
        """
        document = self._by_name()
        for path, value in edits:
            *parents, last = path
            at = document
            for key in parents:
                at = at.setdefault(key, {})
            if value is None:
                at.pop(last, None)
            else:
                at[last] = value
        return DraftSpec.of(document)

    # ------------------------------------------------------------------------------------ its parts

    @property
    def columns(self) -> dict[str, ColumnSpec]:
        """The columns by name."""
        return self.table.columns

    @property
    def method(self) -> MethodSpec:
        """The step anonymize."""
        return self.steps.anonymize

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The methods that are run."""
        return self.matrix.get("anonymize.algorithm", (self.method.algorithm,))

    @property
    def ks(self) -> tuple[int, ...]:
        """The ks that are run."""
        return self.matrix.get("anonymize.k", (self.method.k,))

    def with_table(self, **changes: Any) -> DraftSpec:
        """Return the flow with other fields of the table."""
        return self.model_copy(update={"table": self.table.model_copy(update=changes)})

    def with_steps(self, **changes: Any) -> DraftSpec:
        """Return the flow with other steps."""
        return self.model_copy(update={"steps": self.steps.model_copy(update=changes)})

    def with_method(self, **changes: Any) -> DraftSpec:
        """Return the flow with other fields of the step anonymize."""
        return self.with_steps(anonymize=self.method.model_copy(update=changes))

    def with_partition(self, **fields: Any) -> DraftSpec:
        """Return the flow with another partition; without fields it has none."""
        return self.model_copy(update={"partition": PartitionSpec(**fields)})

    def with_columns(self, changes: Mapping[str, ColumnSpec | None]) -> DraftSpec:
        """Return the flow with other columns; None is a column that is not published."""
        columns = {**self.columns, **changes}
        return self.with_table(
            columns={name: column for name, column in columns.items() if column is not None}
        )

    def sweeping(self, key: Literal["algorithm", "k"], values: Sequence[Any]) -> DraftSpec:
        """Return the flow that runs these values: one stands in the step, several in the matrix, too."""
        matrix = {name: swept for name, swept in self.matrix.items() if name != f"anonymize.{key}"}
        if len(values) > 1:
            matrix[f"anonymize.{key}"] = tuple(values)
        return self.with_method(**{key: values[0]}).model_copy(
            update={"matrix": dict(sorted(matrix.items()))}
        )

    def unpublished(self) -> DraftSpec:
        """Return the flow without what it publishes and runs on."""
        return self.model_copy(update={"publish": PublishSpec(), "run": RunSpec()})

    def single(self, run: Run) -> DraftSpec:
        """Return the flow of one of its runs alone: without the matrix, with a draw, and with what its release is published as."""
        anonymize = MethodSpec(**run.anonymize.model_dump())
        files = PublishSpec(table=f"out/{self.flow}.csv", report=ReportSpec(file=f"out/{self.flow}.html"))
        alone = self.unpublished().with_steps(anonymize=anonymize, draw=DrawSpec())
        return alone.model_copy(
            update={"partition": run.partition, "matrix": {}, "target": None, "publish": files}
        )

    # -------------------------------------------------------------------------------- as the engine has it

    def loaded(self, folder: Path) -> Flow:
        """Return the flow, checked by the engine's loader; its paths are relative to `folder`."""
        return flow_from(strict_yaml.Document(self.attacked().document, "this flow"), folder=folder)

    def attacked(self) -> DraftSpec:
        """Return the flow as if its first run were published, where it has attackers: for checking alone.

        Which run is published, and so attacked, is chosen on the screens, after the runs.
        """
        if not self.steps.attack:
            return self
        first = {key: values[0] for key, values in self.matrix.items()}
        publish = {"table": "out/release.csv", "run": first or None, **written(self.publish)}
        return self.model_copy(update={"publish": PublishSpec(**publish)})


def columns_of(entries: Mapping[str, Any]) -> dict[str, ColumnSpec]:
    """Return the columns of what a flow has under ``columns``.

    Raises
    ------
    FlowError
        If an entry is none of a column.
    """
    try:
        return {str(name): ColumnSpec.model_validate(entry) for name, entry in entries.items()}
    except ValidationError as error:
        raise FlowError.collected("a column cannot be used", form_problems(error)) from None


def written(part: BaseModel) -> dict[str, Any]:
    """Return a part of a flow as its file has it: what differs from the defaults, as plain data."""
    data: dict[str, Any] = _with_lists(part.model_dump(by_alias=True, exclude_defaults=True))
    return data


def form_problems(error: ValidationError) -> list[str]:
    """Return what keeps data from being a flow, without a value of it."""
    return [
        f"this is not a flow: {'.'.join(map(str, problem['loc'])) or 'it'} "
        + (_FORM.get(problem["type"]) or reworded(problem["type"], problem.get("ctx") or {}))
        for problem in error.errors(include_url=False, include_input=False)
    ]


_FORM = {"missing": "is missing", "extra_forbidden": "is no key of a flow"}


def _with_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_lists(item) for key, item in value.items()}
    return list(map(_with_lists, value)) if isinstance(value, list | tuple) else value


NO_FLOW = DraftSpec(
    flow="draft",
    version=1,
    table=DraftTable(source=SourceSpec(), columns={}),
    steps=DraftSteps(anonymize=MethodSpec()),
)
"""The flow before a table is open."""
