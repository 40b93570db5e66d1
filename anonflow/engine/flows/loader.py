"""Read flow files strictly; one error reports every problem with its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path, PurePath
from typing import Any

from anonflow import strict_yaml
from anonflow.engine.flows.addresses import (
    address_problem,
    is_address,
    overwriting,
    place_of,
    shown_address,
)
from anonflow.engine.flows.fingerprint import files_beside_source
from anonflow.engine.flows.flow import Flow, Run
from anonflow.engine.flows.goal import Goal
from anonflow.engine.flows.matrix import Matrix
from anonflow.engine.flows.overrides import overridden
from anonflow.engine.flows.sections import KeyPath, Sections
from anonflow.engine.flows.spec import (
    NAME_PATTERN,
    VERSION,
    DrawSpec,
    EarlierSpec,
    FlowSpec,
    PartitionSpec,
    PublishSpec,
    RunSpec,
    SourceSpec,
    StepsSpec,
    TableSpec,
    UnitsSpec,
)
from anonflow.engine.flows.steps import Steps
from anonflow.engine.flows.versions import newest
from anonflow.errors import FlowError
from anonflow.table.files.metadata_file import ENDINGS
from anonflow.table.files.parquet_metadata import in_folder
from anonflow.table.files.statistics_writing import is_written, writing_problems
from anonflow.table.identification.earlier import OWNER
from anonflow.table.schema import UNPUBLISHED, Schema

KEYS = ("flow", "version", "table", "partition", "steps", "matrix", "target", "earlier", "publish", "run")


def load_flow(
    path: str | PathLike[str], settings: Sequence[str] = (), *, another_source: bool = False
) -> Flow:
    """Read and check a flow file.

    Parameters
    ----------
    path : path
    settings : sequence of str
        Keys that are set from outside, such as ``steps.anonymize.k=20``.
    another_source : bool
        Whether the table comes from elsewhere, so that the file that the flow names need not be there.

    Returns
    -------
    Flow

    Raises
    ------
    FlowError
        With every problem, each with file, line and column.
    ParameterError
        If a setting has another form.
    """
    if not isinstance(path, str | PathLike):
        raise FlowError(f"a flow is named by the path of its file, not by a {type(path).__name__}")
    document = overridden(strict_yaml.read(path, error=FlowError), settings)
    return flow_from(document, Path(fspath(path)), another_source=another_source)


def flow_from(
    document: strict_yaml.Document,
    path: Path | None = None,
    folder: Path | None = None,
    *,
    another_source: bool = False,
) -> Flow:
    """Check a flow that was read.

    Parameters
    ----------
    document : Document
    path : pathlib.Path, optional
        The flow's file.
    folder : pathlib.Path, optional
        What its paths are relative to; the file's folder without it.
    another_source : bool
        As :func:`load_flow`.

    Returns
    -------
    Flow

    Raises
    ------
    FlowError
        With every problem, each with file, line and column.
    """
    document, problem = newest(document)
    problems = document.problems()
    if problem is not None:
        # in another version every key may mean something else: nothing more is said
        problems.add(("version",), problem, value=True)
        problems.raise_if_any()
    data = document.data
    if not isinstance(data, dict):
        problems.add((), "a flow is a mapping with flow, version, table and steps", value=True)
        problems.raise_if_any()
    base = folder if folder is not None else path.parent if path is not None else Path()
    checker = _Checker(Sections(data, problems, base.resolve() if path is not None or folder else base))
    flow = checker.flow(path, another_source)
    problems.raise_if_any()
    assert flow is not None
    return replace(flow, digest=document.digest)


def source_of(document: strict_yaml.Document) -> SourceSpec:
    """Check the source alone of a flow that was read: how its table is to be read, whatever else the flow says.

    Parameters
    ----------
    document : Document
        With a source under ``table``.

    Raises
    ------
    FlowError
        With every problem of the source, each with file, line and column.
    """
    problems = document.problems()
    path: KeyPath = ("table", "source")
    source = Sections(document.data, problems, Path()).model(
        SourceSpec, path, data=document.data["table"]["source"]
    )
    problems.raise_if_any()
    assert source is not None
    return source


def units_of(document: strict_yaml.Document) -> UnitsSpec | None:
    """Check what a flow that was read says of people with several rows, whatever else it says; None if it says nothing.

    Parameters
    ----------
    document : Document
        With a table.

    Raises
    ------
    FlowError
        With every problem, each with file, line and column.
    """
    section = document.data["table"].get("units")
    if section is None:
        return None
    problems = document.problems()
    sections = Sections(document.data, problems, Path())
    units = sections.model(UnitsSpec, ("table", "units"), data=section)
    if units is not None:
        sections.units(units)
    problems.raise_if_any()
    return units


class _Checker:
    """Check a flow, section by section."""

    def __init__(self, sections: Sections) -> None:
        self.sections = sections
        self.data, self.problems, self.folder = sections.data, sections.problems, sections.folder

    def flow(self, path: Path | None, another_source: bool) -> Flow | None:
        """Return the flow, None if it has problems."""
        sections = self.sections
        self.problems.add_unknown_keys((), self.data, KEYS)
        for key in ("flow", "version", "table", "steps"):
            if key not in self.data:
                self.problems.add((), f"'{key}' is missing")
        table = sections.model(TableSpec, ("table",))
        schema = sections.schema()
        if table is not None:
            sections.source(table.source, is_read=not another_source)
            if table.units is not None:
                sections.units(table.units)
        partition = sections.model(PartitionSpec, ("partition",), optional=True) or PartitionSpec()
        run = sections.model(RunSpec, ("run",), optional=True) or RunSpec()
        publish = sections.model(PublishSpec, ("publish",), optional=True) or PublishSpec()
        earlier = self._earlier()
        steps = Steps(sections)
        diversify = steps.diversify(schema)
        goal = Goal(sections)
        # a search goes on without a method that refuses the columns
        matrix = Matrix(sections, None if goal.is_open else schema)
        space = goal.space(steps, matrix.values, partition, schema) if goal.is_open else None
        runs = matrix.runs(steps, partition)
        goal.check_pick(runs, diversify)
        if schema is not None:
            self._columns(schema, runs)
        steps.check_measure()
        published = None if goal.is_open else self._published(publish, runs, matrix.values)
        drawn = goal.is_open or (
            published is not None and ("draw" in steps.settings or publish.table is not None)
        )
        methods = list(dict.fromkeys(planned.anonymize.method for planned in runs))
        steps.check_verify(methods, drawn or not runs)
        steps.check_diversify(methods)
        steps.check_attack(
            drawn or not runs,
            schema,
            None if table is None else table.source,
            None if published is None else published.anonymize.method,
        )
        self._paths(publish, table, schema, steps.settings.get("attack") or ())
        if "flow" in self.data:
            self._name_problem()
        if len(self.problems) or table is None or schema is None or not runs:
            return None
        settings = steps.settings
        spec = FlowSpec(
            flow=self.data["flow"],
            version=VERSION,
            table=table,
            partition=partition,
            steps=StepsSpec(
                anonymize=runs[0].anonymize,
                diversify=diversify,
                draw=DrawSpec() if "draw" in settings else None,
                verify=tuple(settings.get("verify") or ()),
                attack=tuple(settings.get("attack") or ()),
                measure=tuple(settings.get("measure") or ()),
            ),
            matrix={key: tuple(values) for key, values in matrix.values.items()} or None,
            target=goal.spec,
            earlier=earlier,
            publish=publish,
            run=run,
        )
        return Flow(
            spec.flow, self.folder, path, spec, schema, runs, published, target=goal.target, space=space
        )

    def _earlier(self) -> EarlierSpec | None:
        """Return what the flow says of earlier releases; with them it has a single run of a method, with a draw."""
        earlier = self.sections.model(EarlierSpec, ("earlier",)) if "earlier" in self.data else None
        if earlier is None:
            return None
        for key in ("matrix", "target"):
            if key in self.data:
                self.problems.add(
                    (key,),
                    f"'{key}' and 'earlier' do not go together: only one release can follow the earlier ones",
                )
        steps = self.data.get("steps")
        for number, step in enumerate(steps if isinstance(steps, list) else ()):
            if isinstance(step, dict) and "diversify" in step:
                self.problems.add(
                    ("steps", number),
                    "'diversify' would unite the people of the earlier releases with others; make the first release diverse",
                )
        for name in earlier.owner:
            self.sections.usable(("earlier", "owner"), name)
        return earlier

    def _name_problem(self) -> None:
        name = self.data["flow"]
        if not isinstance(name, str) or not re.fullmatch(NAME_PATTERN, name):
            self.problems.add(
                ("flow",), "a flow's name has up to 64 letters, digits, '.', '-' and '_'", value=True
            )

    def _columns(self, schema: Schema, runs: tuple[Run, ...]) -> None:
        """Check that the methods of the runs can publish the columns as the schema wants."""
        for method in dict.fromkeys(run.anonymize.method for run in runs):
            for name, column in schema.columns.items():
                if column.aggregate is not None:
                    self.problems.add(("table", "columns", name, "aggregate"), method.aggregate_problem(name))
                if column.kind == "categorical":
                    self.problems.add(("table", "columns", name, "kind"), method.levels_problem(name))

    # ---------------------------------------------------------------------------------- publishing

    def _published(
        self, publish: PublishSpec, runs: tuple[Run, ...], matrix: dict[str, list[Any]]
    ) -> Run | None:
        if publish.run is not None and not matrix:
            self.problems.add(
                ("publish", "run"),
                "'run' picks a run of a matrix, and the flow has no matrix; leave 'run' out",
            )
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
                self.problems.add(("publish", "run", key), "is not a value of the matrix", value=True)
                good = False
        if not good or not runs:
            return None
        picked = [run for run in runs if all(run.values[key] == value for key, value in publish.run.items())]
        if len(picked) != 1:
            self.problems.add(("publish", "run"), f"picks {len(picked)} runs of the matrix, not one")
            return None
        return picked[0]

    def _paths(
        self, publish: PublishSpec, table: TableSpec | None, schema: Schema | None, attackers: Any
    ) -> None:
        """Check that nothing is published over what the flow reads, into the owner's folder or beside it."""
        owner = (self.folder / OWNER).resolve()
        roles: dict[PurePath, str] = {}
        if schema is not None:
            for path in files_beside_source(schema, self.folder, attackers):
                roles[place_of(str(path), self.folder)] = "a file that the flow reads"
        named = None if table is None else table.source.file
        if named is not None and "\0" not in named:
            roles[place_of(named, self.folder)] = "the source"
        report = publish.report
        data = self.data.get("publish")
        mapped = isinstance(data, dict) and isinstance(data.get("report"), dict)
        in_report: KeyPath = ("publish", "report", "file") if mapped else ("publish", "report")
        targets: tuple[tuple[str, KeyPath, str | None, tuple[str, ...]], ...] = (
            ("table", ("publish", "table"), publish.table, ENDINGS),
            ("report", in_report, None if report is None else report.file, (".html",)),
            ("pdf", ("publish", "report", "pdf"), None if report is None else report.pdf, (".pdf",)),
        )
        for key, place, file, endings in targets:
            if file is None:
                continue
            if not self.sections.usable(place, file):
                continue
            problem = address_problem(file, written=True) if is_address(file) else None
            if problem is not None:
                self.problems.add(place, problem, value=True)
                continue
            name = shown_address(file) if is_address(file) else file
            if PurePath(name).suffix.lower() not in endings:
                words = [", ".join(endings[:-1])] * (len(endings) > 1) + [endings[-1]]
                self.problems.add(place, f"'{key}' is a file that ends in {' or '.join(words)}", value=True)
                continue
            if key == "table":
                self._check_form(place, file, schema)
            target = place_of(file, self.folder)
            problem = overwriting(target, roles)
            if problem is not None:
                self.problems.add(place, f"'{key}' {problem}; name another file", value=True)
            roles[target] = f"'{key}'"
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

    def _check_form(self, place: KeyPath, file: str, schema: Schema | None) -> None:
        """Check what is published as a folder, or to SPSS or Stata."""
        if in_folder(file) and is_address(file):
            self.problems.add(place, "a folder is published to this machine only; name a file", value=True)
        elif file.endswith("/") and not in_folder(file):
            self.problems.add(place, "a folder of Parquet files ends in .parquet/", value=True)
        if schema is not None and is_written(file):
            published = [name for name, column in schema.columns.items() if column.role not in UNPUBLISHED]
            for problem in writing_problems(published):
                self.problems.add(place, problem, value=True)
