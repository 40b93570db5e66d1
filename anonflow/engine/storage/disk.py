"""A flow over a table in pieces, from its first look at the source to its publication."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from anonflow import partition as partitions
from anonflow import utility
from anonflow.algorithms.anonymize import check_k
from anonflow.algorithms.freeform.reciprocal import even_size
from anonflow.engine.context import Session
from anonflow.engine.execution import tasks
from anonflow.engine.execution.combine import infeasible
from anonflow.engine.execution.events import PartitionDone, RunDone, RunStarted, StepDone, StepStarted
from anonflow.engine.execution.plan import settings_of
from anonflow.engine.execution.result import RunReport, RunResult
from anonflow.engine.execution.schedulers import Crew
from anonflow.engine.execution.tasks import Failed
from anonflow.engine.flows.flow import Run
from anonflow.engine.large import reading, scan, sorting
from anonflow.engine.large.asked import fields_of, pieces_of
from anonflow.engine.large.classes import add_classes
from anonflow.engine.large.result import Outline, result_of
from anonflow.engine.large.spill import Spill
from anonflow.engine.large.units import Keep, Shared, Unit, UnitDone, solve_unit, units_of
from anonflow.engine.large.writing import publish_large
from anonflow.errors import BUG, AnonflowError, DataError, InfeasibleError
from anonflow.release.draw import shelf_count
from anonflow.table.frame import check_columns

__all__ = ["Call", "Large", "run_large"]


@dataclass(frozen=True, eq=False)
class Call:
    """A task: a function and its arguments, which the scheduler neither looks into nor logs: the seed is among them."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = field(repr=False)

    def __call__(self, *shared: Any) -> Any:
        """Do it; what goes wrong is the result."""
        try:
            return self.function(*shared, *self.arguments)
        except AnonflowError as error:
            return Failed(error, error.message)
        except OSError as error:
            why = f"pieces of the table cannot be put aside: {error.strerror or type(error).__name__}"
            return Failed(AnonflowError(f"{why}; make room in the owner's folder and run again"), why)
        except Exception as error:
            return tasks.bug(error)


def run_large(session: Session) -> RunReport:
    """Run a flow whose table is worked on in pieces.

    Parameters
    ----------
    session : Session
        Its flow is one that :func:`anonflow.engine.large.asked.pieces_of` gives a size for.

    Returns
    -------
    RunReport
        Without a release in memory.

    Raises
    ------
    AnonflowError
        As :func:`anonflow.engine.run`.
    """
    assert session.owner is not None
    session.owner.make()
    memory = session.flow.spec.run.memory_bytes
    with (
        Spill(session.owner.path) as spill,
        Crew(session.scheduler, session.workers, session.events, memory) as crew,
    ):
        return Large(session, spill, crew).run()


class Large:
    """One run of a flow, piece by piece. Nothing here holds a record."""

    def __init__(self, session: Session, spill: Spill, crew: Crew) -> None:
        self.session = session
        self.flow = session.flow
        self.spill = spill
        self.crew = crew
        self.rows = pieces_of(session.flow) or 0

    def run(self) -> RunReport:
        """Every step, one after the other.

        Raises
        ------
        AnonflowError
            As :func:`run_large`.
        """
        session = self.session
        session.step("load", self._look)
        plans = session.step("cut", self._cut)
        if session.keeper is None:
            self.keep = Keep(self.spill.file("results"), os.urandom(32))
        else:
            self.keep = Keep(*session.keeper.begin(session.seed), session.keeper.fresh)
        results, units = self._anonymize(plans)
        return publish_large(self, results, units)

    # -------------------------------------------------------------------------------- load and sort

    def _look(self) -> None:
        flow = self.flow
        fields = fields_of(flow)
        schema = flow.schema
        check_columns(fields.names, schema)
        self.columns = tuple(
            name for name in fields.names if name in schema and schema[name].role != "identifier"
        )
        unnamed = [name for name in fields.names if name not in schema]
        self.fields: dict[str, pa.DataType] = {name: fields.field(name).type for name in self.columns}
        source, path = flow.spec.table.source, flow.source_path
        assert path is not None
        self.pieces = None if source.parquet is None else reading.parquet_pieces(path, self.rows)
        if self.pieces is None:
            into = self.spill.file("source-")
            found = self.all([Call(reading.rewrite, (str(path), source, self.columns, self.rows, into))])
            self.pieces = found[0]
        assert self.pieces is not None
        looks = self.all([Call(scan.scan, (piece, schema, self.columns)) for piece in self.pieces])
        if not looks:
            raise DataError("the table has no rows")
        self.starts = [0]
        whole = looks[0]
        for look in looks[1:]:
            self.starts.append(whole.kept)
            whole = whole.then(look)
        if not whole.rows:
            raise DataError("the table has no rows")
        if not whole.kept:
            raise DataError(
                "every record has a missing value that the schema drops; say missing: value or suppress"
            )
        self.found: scan.Found = whole
        self.n: int = whole.kept
        self.coders, self.domains = scan.coders(whole, schema)
        self.outline = Outline(self.n, whole.rows - whole.kept, self.columns, schema, self.domains)
        self.session.tell_about(unnamed, self.outline.dropped)

    def _cut(self) -> dict[int, tuple[sorting.Ordered, list[slice]]]:
        """Orders and cuts of all runs that may have a result; every order once."""
        plans = {}
        orders: dict[str, sorting.Ordered] = {}
        self.problems: dict[int, str] = {}
        for run in self.flow.runs:
            try:
                k = check_k(run.anonymize.k, self.n)
                size = even_size(run.partition.cut, k, run.anonymize.options.get("reciprocal"))
                cuts = partitions.cut(self.n, size, k)
            except InfeasibleError as error:
                if len(self.flow.runs) == 1:
                    raise
                self.problems[run.number] = error.message
                continue
            name = run.partition.order
            if name not in orders:
                orders[name] = self._order(name)
            plans[run.number] = (orders[name], cuts)
        return plans

    def _order(self, name: str) -> sorting.Ordered:
        assert self.pieces is not None
        compared = sorting.order_columns(name, self.domains)
        files = [self.spill.file(f"{name}-piece-{p}.arrow") for p in range(len(self.pieces))]
        samples = self.all(
            [
                Call(sorting.sort_piece, (piece, start, self.flow.schema, self.columns, compared, file))
                for piece, start, file in zip(self.pieces, self.starts, files, strict=True)
            ],
            self.coders,
        )
        cuts = sorting.splitters(samples, -(-self.n // self.rows))
        ends: list[Any] = [None, *cuts, None]
        merged = [self.spill.file(f"{name}-range-{b}.arrow") for b in range(len(ends) - 1)]
        counts = self.all(
            [
                Call(sorting.merge_range, (files, compared, low, high, into))
                for low, high, into in zip(ends[:-1], ends[1:], merged, strict=True)
            ]
        )
        for file in files:
            os.unlink(file)
        end, places = 0, []
        for count in counts:
            end += count
            places.append(end)
        return sorting.Ordered(tuple(merged), tuple(places))

    # ------------------------------------------------------------------------------------- anonymize

    def _anonymize(
        self, plans: dict[int, tuple[sorting.Ordered, list[slice]]]
    ) -> tuple[list[RunResult], dict[int, list[tuple[Unit, UnitDone]]]]:
        session = self.session
        ready = scan.stand_in(self.coders, self.domains, self.found)
        names = list(dict.fromkeys(("gcp", *self.flow.spec.steps.measure)))
        runs = {run.number: run for run in self.flow.runs}
        self.shared = Shared(
            self.domains,
            {number: utility.asked(ready, names, runs[number].anonymize.k) for number in plans},
            shelf_count(self.n),
        )
        self.settings = {number: settings_of(self.flow, runs[number], session.seed) for number in plans}
        results: dict[int, RunResult] = {}
        graph: dict[str, Any] = {"shared": self.shared}
        leaves: dict[str, tuple[int, Unit]] = {}
        for run in self.flow.runs:
            if run.number not in plans:
                problem = self.problems[run.number]
                results[run.number] = self._told(infeasible(run, problem, self.n))
                continue
            self.ordered = getattr(self, "ordered", {}) | {run.number: plans[run.number][0]}
            cuts = plans[run.number][1]
            session.events.emit(RunStarted(run=run.number, name=run.name, partitions=len(cuts)))
            for unit in units_of(cuts):
                name = f"unit-{run.number}-{unit.number}"
                hidden = self.spill.file(f"hidden-{run.number}-{unit.number}.npz")
                call = Call(
                    solve_unit,
                    (
                        self.settings[run.number], plans[run.number][0], unit, self.keep, hidden,
                        self._classes(run.number, unit),
                    ),
                )  # fmt: skip
                graph[name] = (call, "shared")
                leaves[name] = (run.number, unit)
        by_class = [name for name in names if name in utility.measures_by_class()]
        total = sum(len(cuts) for _, cuts in plans.values())
        waiting = {number: sum(at == number for at, _ in leaves.values()) for number in plans}
        arrived: dict[int, list[tuple[Unit, UnitDone]]] = {number: [] for number in plans}
        failed: dict[int, Failed] = {}
        broken: list[AnonflowError] = []

        def compute() -> None:
            for name, done in self.crew.stream(graph, tuple(leaves)):
                number, unit = leaves[name]
                waiting[number] -= 1
                if isinstance(done, tasks.PartitionResult):
                    done = done.matched  # a unit that took its workers down
                if isinstance(done, Failed):
                    self._broke(runs[number], unit, done, failed, broken)
                else:
                    arrived[number].append((unit, done))
                    self._tell_partitions(runs[number], unit, done, arrived[number], len(plans[number][1]))
                if not waiting[number] and not broken and not by_class:
                    results[number] = self._told(self._result(runs[number], arrived[number], failed))

        session.events.emit(StepStarted(step="anonymize", tasks=total))
        seconds = session.timed("anonymize", compute)
        if broken:
            raise broken[0]
        session.events.emit(StepDone(step="anonymize", seconds=seconds))
        if by_class:
            for number in plans:
                work = partial(self._result, runs[number], arrived[number], failed)
                results[number] = self._told(session.step("measure", work, number))
        return [results[run.number] for run in self.flow.runs], {
            number: sorted(done, key=lambda pair: pair[0].number) for number, done in arrived.items()
        }

    def _result(self, run: Run, arrived: list[tuple[Unit, UnitDone]], failed: dict[int, Failed]) -> RunResult:
        if run.number in failed:
            return infeasible(run, failed[run.number].message, self.n)
        done = [one for _, one in sorted(arrived, key=lambda pair: pair[0].number)]
        found = sum(len(one.partitions) for one in done if one.found)
        if found:
            self.session.events.log(f"{run.name}: {found} partitions are there from an earlier run")
        for one in done:
            self.session.used(one.memory)
        ready = self.shared.ready[run.number]
        by_class = [name for name in ready.prepared if name in utility.measures_by_class()]
        files = [self._classes(run.number, unit) for unit, _ in arrived]
        shelves = range(self.shared.shelves if by_class else 0)
        sums = self.all([Call(add_classes, (by_class, files, shelf)) for shelf in shelves], ready)
        return result_of(run, self.outline, done, ready, sums)

    def _classes(self, run: int, unit: Unit) -> str:
        return self.spill.file(f"classes-{run}-{unit.number}.arrow")

    def _told(self, result: RunResult) -> RunResult:
        self.session.events.emit(RunDone(run=result.number, ok=result.ok, row=result.row()))
        return result

    def _broke(
        self, run: Run, unit: Unit, problem: Failed, failed: dict[int, Failed], broken: list[AnonflowError]
    ) -> None:
        """As in memory: the infeasible of several runs is one without a result, a bug lets the others go on."""
        error = problem.error
        if isinstance(error, InfeasibleError) and len(self.flow.runs) > 1:
            failed[run.number] = problem
            return
        if error is not None and type(error) is not AnonflowError:
            raise error
        last = unit.first + len(unit.bounds) - 1
        where = f"partitions {unit.first} to {last} of run {run.name!r}"
        if error is None:
            error = AnonflowError(f"{where}: {problem.message}; {BUG}")
            error.add_note(problem.trace)
        else:
            error = AnonflowError(f"{where}: {problem.error.message if problem.error else problem.message}")
        broken.append(error)
        self.session.events.log(f"{where}: {problem.message}; the other partitions go on", "error")

    def _tell_partitions(
        self, run: Run, unit: Unit, done: UnitDone, arrived: list[tuple[Unit, UnitDone]], of: int
    ) -> None:
        before = sum(len(one.partitions) for _, one in arrived[:-1])
        for at, told in enumerate(done.partitions):
            self.session.events.emit(
                PartitionDone(
                    run=run.number,
                    partition=unit.first + at,
                    done=before + at + 1,
                    of=of,
                    records=told.records,
                    seconds=told.seconds,
                    loss=told.loss,
                )
            )

    # ------------------------------------------------------------------------------------ the graphs

    def all(self, calls: Sequence[Call], *shared: Any) -> list[Any]:
        """The results of some calls, each a task, in their order; the first failure ends them.

        Raises
        ------
        AnonflowError
            If one failed.
        """
        graph: dict[str, Any] = {f"shared-{s}": one for s, one in enumerate(shared)}
        names = [f"task-{c}" for c in range(len(calls))]
        for name, call in zip(names, calls, strict=True):
            graph[name] = (call, *(f"shared-{s}" for s in range(len(shared))))
        found = {}
        for name, result in self.crew.stream(graph, names):
            if isinstance(result, tasks.PartitionResult):
                result = result.matched
            if isinstance(result, Failed):
                number = names.index(name)
                what = calls[number].function.__name__.replace("_", " ")
                raise raised(result, f"{what} {number} of {len(calls)}")
            found[name] = result
        return [found[name] for name in names]


def raised(failed: Failed, where: str) -> AnonflowError:
    """The error of a task; it says which task, where that is not the user's doing."""
    if failed.error is not None and type(failed.error) is not AnonflowError:
        return failed.error
    if failed.error is not None:
        return AnonflowError(f"{where}: {failed.error.message}")
    error = AnonflowError(f"{where}: {failed.message}; {BUG}")
    error.add_note(failed.trace)
    return error
