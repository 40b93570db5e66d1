"""A flow that has passed every check that needs no data, and its runs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from anonflow.algorithms.anonymize import check_size
from anonflow.algorithms.budget import AUTO, MOST_SECONDS, check_automatic, check_budget
from anonflow.algorithms.registry import algorithm_named
from anonflow.drawing import grid, view
from anonflow.engine.flows.addresses import is_address, shown_address
from anonflow.engine.flows.spec import (
    VERSION,
    AnonymizeSpec,
    FlowSpec,
    PartitionSpec,
    SourceSpec,
    StepsSpec,
    TableSpec,
)
from anonflow.engine.search.space import Space
from anonflow.engine.search.trials import SearchTarget
from anonflow.errors import ParameterError
from anonflow.loss import measure_named
from anonflow.table import Schema, Table
from anonflow.table.files.parquet_metadata import in_folder
from anonflow.table.identification.earlier import OWNER

_MOST = 6
"""The most runs that are named; for more, their number is shown."""


@dataclass(frozen=True, eq=False)
class Run:
    """One run of a flow: one combination of its matrix.

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

    @property
    def budget(self) -> float | None:
        """The budget in seconds, if it leaves a choice."""
        seconds = self.partition.budget if self.anonymize.budget is None else self.anonymize.budget
        return None if seconds is None else min(seconds, MOST_SECONDS)


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
        The run whose release is published or returned; None if there is none.
    table : Table or None
        The table, if the caller has it in memory: the source is not read then. It must be the source's table.
    digest : bytes or None
        The SHA-256 hash of the file as it was read, if it came from one.
    staging : pathlib.Path or None
        While it runs: the folder in which what is published to addresses is written first.
    staged_source : pathlib.Path or None
        While it runs: where its source lies, if that is no file of its folder.
    target : SearchTarget or None
        The requirements of a release.
    space : Space or None
        The search space of a target without a pick. Such a flow cannot be run.
    """

    name: str
    folder: Path
    path: Path | None
    spec: FlowSpec
    schema: Schema
    runs: tuple[Run, ...]
    published: Run | None
    table: Table | None = None
    digest: bytes | None = field(default=None, repr=False)
    staging: Path | None = None
    staged_source: Path | None = None
    target: SearchTarget | None = None
    space: Space | None = None

    @property
    def measures(self) -> dict[str, dict[str, Any]]:
        """Name -> its options, of all that is measured: what is asked for, and what every report has.

        Where columns are published as means or medians of classes, that is also what this does to their variances.
        """
        measures = self.spec.steps.measures
        aggregated = any(column.aggregate is not None for column in self.schema.columns.values())
        names = ("gcp", *measures, *(("sse", "variance-kept") if aggregated else ()), "usefulness")
        return {name: measures.get(name, {}) for name in dict.fromkeys(names)}

    @classmethod
    def for_table(
        cls,
        table: Table,
        algorithms: Sequence[str],
        k: Sequence[int],
        *,
        partition_size: int | str | None = None,
        budget: float | None = None,
        guarantee: str | None = None,
        order: Literal["lexicographic", "input", "random"] = "lexicographic",
        loss: str = "ncp",
        boundaries: bool = True,
        options: Mapping[str, Mapping[str, Any]] | None = None,
        verify: Sequence[Any] = ("covers", "guarantee"),
        measure: Sequence[str | Mapping[str, Any]] = ("gcp", "usefulness"),
        pieces: bool | int | None = None,
        name: str = "comparison",
    ) -> Flow:
        """Return a flow over a table in memory, with a run for every method and k; it publishes nothing.

        Parameters
        ----------
        table : Table
        algorithms : sequence of str
            Names of :func:`anonflow.algorithms`, or ``auto``.
        k : sequence of int
        partition_size : int or "auto", optional
            Records in a partition, at least k of them; the whole table without it; the largest that fit the `budget`
            with ``"auto"``.
        budget : float, optional
            Seconds for each run, with ``"auto"``, or of methods that have an effort.
        guarantee : str, optional
            Of the method ``auto``.
        order : {"lexicographic", "input", "random"}, optional
        loss : str, optional
        boundaries : bool, optional
        options : mapping, optional
            Algorithm -> its own options.
        verify, measure : sequence, optional
            As the steps of a flow name them.
        pieces : bool or int, optional
            As a flow's source says it: True to work in pieces on disk, or the rows of a piece.
        name : str, optional

        Returns
        -------
        Flow

        Raises
        ------
        ParameterError
            If a name, a k, the partition size, the budget, the guarantee or an option is unknown or outside its domain.
        """
        size: int | Literal["auto"] | None = (
            "auto" if isinstance(partition_size, str) else check_size(partition_size)
        )
        own_options = dict(options or {})
        for configured in own_options:
            algorithm_named(configured)
        runs = []
        for number, (algorithm, run_k) in enumerate(itertools.product(algorithms, k)):
            method_options = own_options.get(algorithm, {})
            cut = max(size, run_k) if isinstance(size, int) else size
            automatic = algorithm == AUTO
            if automatic:
                for _, problem in check_automatic(guarantee, None, budget, method_options):
                    raise ParameterError(problem)
                cut, seconds = None, check_budget(AUTO, budget)
            else:
                method = algorithm_named(algorithm)
                method.check_options(method_options)
                seconds = check_budget(partition_size, budget, method.effort_under(method_options))
            settings = AnonymizeSpec(
                algorithm=algorithm,
                k=run_k,
                loss=measure_named(loss),
                boundaries=boundaries,
                budget=seconds,
                guarantee=guarantee if automatic else None,  # type: ignore[arg-type]
                **method_options,
            )
            runs.append(Run(number, f"{algorithm} k={run_k}", settings, PartitionSpec(order=order, size=cut)))
        if not runs:
            raise ParameterError("a flow needs a method and a k")
        roles = {column: {"role": table.schema[column].role} for column in table.schema.columns}
        spec = FlowSpec(
            flow=name,
            version=VERSION,
            table=TableSpec(source=SourceSpec(pieces=pieces), columns=roles),
            partition=runs[0].partition,
            steps=StepsSpec(
                anonymize=runs[0].anonymize,
                verify=tuple(verify),
                measure=tuple(entry if isinstance(entry, str) else dict(entry) for entry in measure),
            ),
        )
        return cls(name, Path(), None, spec, table.schema, tuple(runs), None, table)

    @property
    def owner_folder(self) -> Path:
        """The owner's folder."""
        return self.folder / OWNER / self.name

    def going_on_from(self, owner: Path) -> Flow:
        """Return the same flow; if it goes on from earlier releases, they lie in another owner's folder."""
        if self.spec.earlier is None:
            return self
        earlier = self.spec.earlier.model_copy(update={"owner": (str(owner.absolute()),)})
        return replace(self, spec=self.spec.model_copy(update={"earlier": earlier}))

    @property
    def earlier(self) -> list[Path]:
        """The owner's folders of the earlier releases of its people; none where it does not go on from them."""
        return [] if self.spec.earlier is None else [self.folder / name for name in self.spec.earlier.owner]

    @property
    def targets(self) -> tuple[str | None, str | None, str | None]:
        """The files to which the release, the report and its PDF are published."""
        report = self.spec.publish.report
        if report is None:
            return self.spec.publish.table, None, None
        return self.spec.publish.table, report.file, report.pdf

    @property
    def table_path(self) -> Path | None:
        """The file that the release is written to."""
        return self._written("table", self.targets[0])

    @property
    def table_target(self) -> str:
        """The name that the release is written under: of a folder of files it ends with a slash."""
        assert self.targets[0] is not None
        return f"{self.table_path}/" if in_folder(self.targets[0]) else str(self.table_path)

    @property
    def report_path(self) -> Path | None:
        """The file that the report is written to."""
        return self._written("report", self.targets[1])

    @property
    def pdf_path(self) -> Path | None:
        """The file that the report is written to as a PDF, too."""
        return self._written("pdf", self.targets[2])

    def _written(self, kind: str, named: str | None) -> Path | None:
        """Return a file of the flow's folder; of an address the file that is uploaded."""
        if named is None or self.staging is None or not is_address(named):
            return None if named is None else self.folder / named
        return self.staging / kind / PurePosixPath(shown_address(named)).name

    @property
    def needed(self) -> frozenset[str]:
        """The columns of the source that the flow names, in its columns, steps before and recipes."""
        units = self.spec.table.units
        return self.schema.needed.union(() if units is None else (units.unit, *(units.recipes or ())))

    @property
    def source_path(self) -> Path | None:
        """The file that the table is read from; None for a data set, and of an address that is not fetched yet."""
        named = self.spec.table.source.file
        if self.staged_source is not None or named is None or is_address(named):
            return self.staged_source
        return self.folder / named

    @property
    def criteria(self) -> tuple[Any, ...]:
        """The criteria to verify; never empty, because nothing is published without a check."""
        criteria: tuple[Any, ...] = self.spec.steps.verify or ("covers", "guarantee")
        diversify = self.spec.steps.diversify
        return criteria if diversify is None else (*criteria, diversify.request)

    def _repr_html_(self) -> str:
        return view(f"Flow {self.name}", grid(["step", "what it does"], self.outline()))

    def over(self, table: Table) -> Flow:
        """Return the flow over its table, which was read before."""
        held = self.spec.table.source.model_copy(update={"pieces": False})
        whole = self.spec.table.model_copy(update={"source": held})
        return replace(self, table=table, spec=self.spec.model_copy(update={"table": whole}))

    def outline(self) -> list[tuple[str, str]]:
        """Return the steps in their order, each with a description; no file is read.

        Returns
        -------
        list of (str, str)
            Names of steps, as events, the seconds of each step and Dask's labels have them, and a few words: names and
            numbers of the flow.
        """
        spec = self.spec
        source, steps = spec.table.source, spec.steps
        file = source.file and (shown_address(source.file) if is_address(source.file) else source.file)
        name = source.dataset or (f"a query to {file}" if source.sql else file) or "a table in memory"
        where = {None: "", False: ", in memory", True: ", in pieces"}
        pieces = source.pieces
        place = (
            where[pieces] if pieces is None or isinstance(pieces, bool) else f", in pieces of {pieces:,} rows"
        )
        coded = "; ".join(step.words for step in self.schema.preparation.steps)
        is_open = any(run.partition.size == AUTO or run.budget is not None for run in self.runs)
        cuts = dict.fromkeys((run.partition.order, run.partition.size) for run in self.runs)
        named = [run.name for run in self.runs]
        rest = f" and {len(named) - _MOST:,} more" if len(named) > _MOST else ""
        criteria = ", ".join(_in_few_words(entry) for entry in steps.verify or ("covers", "guarantee"))
        drawn = self.published if self.published is not None and self.draws(self.published) else None
        written = [
            shown_address(path) if is_address(path) else path for path in self.targets if path is not None
        ]
        rows = (
            ("load", f"{name}{place}"),
            ("prepare", coded),
            ("fit", is_open and "what the budget leaves open is timed on some partitions"),
            ("cut", "; ".join(_cut(order, size) for order, size in cuts)),
            (
                "match",
                spec.earlier is not None
                and "people of earlier releases stay in their classes or components, newcomers are apart",
            ),
            ("match", f"each partition: {', '.join(named[:_MOST])}{rest}"),
            ("diversify", steps.diversify and f"each partition: {_in_few_words(steps.diversify.request)}"),
            ("verify", f"each partition: {criteria}"),
            ("measure", f"each partition: {', '.join(self.measures)}"),
            ("draw", drawn and f"an assignment of {drawn.name}, and a shuffle"),
            ("verify", drawn and "the release, before anything is written"),
            ("attack", drawn and ", ".join(_in_few_words(entry) for entry in steps.attack)),
            ("publish", ", ".join(written)),
        )
        return [(step, words) for step, words in rows if words]

    def draws(self, run: Run) -> bool:
        """Return whether an assignment is drawn for a run: only for the run that is published or returned."""
        has_draw = self.spec.steps.draw is not None or self.spec.publish.table is not None
        return has_draw and run is self.published


def _cut(order: str, size: Any) -> str:
    parts = (
        "the whole table" if size is None else f"partitions of {size if size == AUTO else format(size, ',')}"
    )
    return f"{order} order, {parts}"


def _in_few_words(request: Any) -> str:
    """Return a criterion or an attacker in a few words; of a hierarchy no labels, which are a column's values."""
    if not isinstance(request, Mapping):
        return str(request)
    return ", ".join(
        f"{name}({', '.join(f'{key}={_shown(value)}' for key, value in parameters.items())})"
        if isinstance(parameters, Mapping)
        else f"{name}({parameters})"
        for name, parameters in request.items()
    )


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, str | int | float | list | tuple) else "..."
