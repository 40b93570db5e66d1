"""The table of a run and its results, in memory or mapped from disk, whichever is chosen: a run ends as an anonymization."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anonflow import utility
from anonflow.algorithms.anonymize import Anonymization, anonymize, assemble
from anonflow.algorithms.assembly import Assembly
from anonflow.algorithms.diversity.diversify import DiverseParts, with_diverse_parts
from anonflow.algorithms.diversity.target import Targets
from anonflow.algorithms.method import Outcome
from anonflow.criteria import Finding, verify
from anonflow.engine import publish
from anonflow.engine.context import Session
from anonflow.engine.execution.batches import Batch, BatchDone, BatchFailed, summary_of, values_of_parts
from anonflow.engine.execution.plan import FlowPlan, RunPlan, refuse_early, settings_of
from anonflow.engine.execution.result import RunResult
from anonflow.engine.execution.schedulers import Call
from anonflow.engine.execution.tasks import (
    OF_THE_WHOLE,
    Matched,
    measure,
    without_draw,
)
from anonflow.engine.execution.totals import Totals, infeasible, measures_of_parts, said_of
from anonflow.engine.flows import source
from anonflow.engine.flows.fingerprint import Fingerprint
from anonflow.engine.flows.flow import Flow, Run
from anonflow.engine.owner.checkpoints import ResultNames
from anonflow.engine.storage.arrays import TableOrder, write_array
from anonflow.engine.storage.load import load, load_of
from anonflow.engine.storage.spill import Spill
from anonflow.errors import DataError, InfeasibleError, ParameterError
from anonflow.large_arrays import IN_MEMORY, Arrays
from anonflow.loss import measure_named
from anonflow.release import Release
from anonflow.system import total_memory
from anonflow.table import Table
from anonflow.table.files.csv_reading import is_csv
from anonflow.table.files.opening import open_file
from anonflow.table.files.parquet_reading import parquet_files
from anonflow.threads import in_threads
from anonflow.utility.measures import MeasureRequest

CLASSES = 1 << 20
"""Classes of a table on disk that are in a bucket, about."""

BUCKETS = 4
"""The most buckets that are put together at a time, on however many cores: they are in memory."""


class Storage:
    """A run's table and the results of its partitions: arrays in memory, or in files of the run that are mapped.

    Parameters
    ----------
    session : Session
    rows : int or None
        Rows of the source that are read together, where the arrays are to be mapped.
    """

    table: Table

    def __init__(self, session: Session, rows: int | None) -> None:
        self._session = session
        self._rows = rows or 0
        self._spill = None if rows is None else Spill.of(session.owner)
        self._arrays: Arrays = IN_MEMORY if self._spill is None else self._spill
        self._orders: dict[tuple[str, bool], TableOrder] = {}
        self._resumed: dict[tuple[int, int], Mapping[int, Matched]] = {}
        self._outcomes: dict[int, Assembly] = {}
        self._diverse: dict[int, DiverseParts] = {}
        self._classes: dict[int, dict[int, Mapping[str, list[Any]]]] = {}
        self._values: np.ndarray | None = None
        self.names: ResultNames | None = None
        """What gives results their names; None where none are stored."""

    def __enter__(self) -> Storage:
        if self._spill is not None:
            self._spill.__enter__()
            if self._spill.is_elsewhere and self._session.owner is not None:
                # no warning of the report: who reads it learns no path of the owner's machine
                self._session.events.log(
                    f"files in {self._session.owner.path} cannot be mapped into memory: the run's temporary files are in "
                    f"{self._spill.path.parent}; name another local folder in TMPDIR if there is too little room",
                    "warning",
                )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._session.resume_store is not None:
                self._session.resume_store.ended(self._session.seed, kind is not None)
        finally:
            if self._spill is not None:
                self._spill.__exit__(kind, error, trace)

    @property
    def in_memory(self) -> bool:
        """Whether the arrays are in memory, not in files of the run."""
        return self._spill is None

    def load(self) -> Table:
        """Read and code the table.

        Raises
        ------
        DataError, SchemaError, HierarchyError
            If it cannot be read, has changed, or does not go with its columns.
        AnonflowError
            If a file cannot be written.
        """
        session = self._session
        if self._spill is None:
            self.table = source.read(session.flow, session.fingerprint, session.seed)
        else:
            self.table = load_of(session, self._spill, self._rows)
        return self.table

    def refuse_early(self) -> Targets | None:
        """Refuse requirements that not even the whole table meets; return what its diversity must be, if that is asked for.

        Raises
        ------
        InfeasibleError, ParameterError
            If the flow has such a requirement.
        """
        diversity = refuse_early(self._session.flow, self.table)
        if diversity is None:
            return None
        targets, self._values = diversity
        if self._spill is not None:
            self._values = Call(write_array, (self._spill.file("values.npy"), self._values), "code").done()
        return targets

    def order(self, name: str, bounded: bool) -> TableOrder:
        """Return the table in an order; if requested, boundary classes follow one another."""
        if (name, bounded) not in self._orders:
            end = "-bounded" if bounded else ""
            file = None if self._spill is None else self._spill.file(f"{name}{end}.npy")
            arguments = self.table.records, name, self._session.seed, bounded, self._values, file
            self._orders[name, bounded] = Call(TableOrder.of, arguments, "sort").done()
        return self._orders[name, bounded]

    def begin(self, plan: FlowPlan) -> None:
        """Find the results of an earlier run.

        Raises
        ------
        AnonflowError
            If files of an earlier run cannot be deleted.
        """
        for run_plan in plan.runs:
            number = run_plan.run.number
            self._classes[number] = {}
            index = _partition_positions(run_plan)
            shape = self.table.domains, self.table.n, index, self._arrays.empty
            self._outcomes[number] = Assembly(*shape)
            if run_plan.diversity is not None:
                self._diverse[number] = DiverseParts(Assembly(*shape))
        if self._session.resume_store is not None:
            self._session.resume_store.find()
            self.names = self._session.resume_store.names(self.table.domains)

    def resumed(self, run_plan: RunPlan, batch: Batch) -> Mapping[int, Matched]:
        """Return the results that an earlier run left of a batch's partitions, by partition."""
        store, domains = self._session.resume_store, self.table.domains
        if store is None or self.names is None or store.is_empty:
            return {}
        rows = run_plan.order.rows(batch.start, batch.stop)
        _, records, values = Call(rows.load, (domains,), "resume").done()
        settings = settings_of(self._session.flow, run_plan, self._session.seed)
        parts = [records.take(at) for at in batch.parts]
        names = self.names(settings, parts, batch.first, values_of_parts(settings, batch, values))
        results = store.of_batch(batch, names, domains)
        self._resumed[run_plan.run.number, batch.number] = results
        return results

    def arrived(self, run_plan: RunPlan, batch: Batch, result: BatchDone | BatchFailed) -> None:
        """Store the results that a task returned."""
        number = run_plan.run.number
        key = number, batch.number
        if isinstance(result, BatchFailed):
            self.forget(run_plan)
        elif number in self._outcomes:
            classes = result.summary.classes
            self._classes[number][batch.number] = (
                classes if self._spill is None else self._spill.copy(classes)
            )
            results = {**self._resumed.get(key, {}), **result.new}
            parts = range(batch.first, batch.first + len(batch.bounds))
            self._outcomes[number].add(batch.first, [results[p].outcome for p in parts])
            if number in self._diverse:
                for p in parts:
                    diverse = results[p].diverse
                    if diverse is not None:
                        self._diverse[number].add(p, diverse)
        self._resumed.pop(key, None)
        if self._session.resume_store is not None:
            self._session.resume_store.add(batch, result.names, result.new, self._session.seed)

    def forget(self, run_plan: RunPlan) -> None:
        """Free the arrays of a run that will have no result."""
        for results in (self._outcomes, self._diverse, self._classes):
            results.pop(run_plan.run.number, None)

    def class_sums(
        self, run_plan: RunPlan, names: Sequence[str], ready: MeasureRequest
    ) -> list[dict[str, tuple[float, ...]]]:
        """Return the parts of all classes in measures, as :func:`anonflow.utility.class_sums` gives them, bucket by bucket."""
        by_batch = self._classes.pop(run_plan.run.number)
        chunks = {name: [part for b in sorted(by_batch) for part in by_batch[b][name]] for name in names}
        if self._spill is None:
            return [utility.class_sums(ready, chunks)]
        # equal classes share a bucket: buckets are summed one by one, and few classes are in memory
        buckets = -(-self.table.n // CLASSES)

        def of_bucket(bucket: int) -> dict[str, tuple[float, ...]]:
            classes = {
                name: [utility.classes_of_bucket(part, bucket, buckets) for part in chunks[name]]
                for name in names
            }
            return utility.class_sums(ready, classes)

        return in_threads(of_bucket, range(buckets), min(BUCKETS, os.cpu_count() or 1))

    def completed(self, run_plan: RunPlan, totals: Totals, result: RunResult) -> RunResult:
        """Return the result with its anonymization, diversified, and with the figures that need the whole table."""
        outcomes = self._outcomes.pop(run_plan.run.number)
        parts = self._diverse.pop(run_plan.run.number, None)
        if result.problem is not None:
            return result
        run, diversify = run_plan.run, self._session.flow.spec.steps.diversify
        at_once = diversify is not None and run_plan.diversity is None
        try:
            outcome = outcomes.whole()
            anonymization = self._assembled(run_plan, outcome)
            changed = at_once or anonymization.generalization is not outcome.generalization
            if diversify is not None:
                # whom it suppresses may have ended an interval of others, which is narrower then
                changed |= run.anonymize.method.has_fixed_cells(run.anonymize.options)
                begin = perf_counter()
                anonymization = self._made_diverse(run_plan, anonymization, parts)
                if at_once:
                    result = replace(result, seconds=result.seconds + perf_counter() - begin)
        except InfeasibleError as error:
            return infeasible(run, error.message, self.table.n)
        result = replace(result, without_pattern=int(anonymization.facts.get("rows_without_pattern", 0)))
        return self._checked(result, run, anonymization, totals.ready, again=changed)

    def _checked(
        self, result: RunResult, run: Run, anonymization: Anonymization, ready: MeasureRequest, again: bool
    ) -> RunResult:
        """Return a result with its anonymization, and with the figures that need the whole table.

        Parameters
        ----------
        result : RunResult
        run : Run
        anonymization : Anonymization
        ready : MeasureRequest
            The measures of parts.
        again : bool
            Whether records are generalized further than its parts were, or their intervals narrowed, so that all is checked and measured again.
        """
        flow, table = self._session.flow, self.table
        findings = result.findings
        undrawn: tuple[str, ...] = ()
        if not flow.draws(run):
            criteria, undrawn = without_draw(
                flow.criteria, anonymization.guarantee, anonymization.matches is not None
            )
            if again:
                findings = ()
            else:
                criteria = [criterion for criterion in criteria if criterion.name in OF_THE_WHOLE]
            if criteria:
                findings += verify(table, anonymization, criteria, anonymization.k).findings
        if again:
            result = _measured_again(result, anonymization, ready)
        names = flow.measures
        others = [
            {name: options}
            for name, options in names.items()
            if name not in result.measures
            or (utility.MEASURES[name].of_covers and anonymization.classes is None)
        ]
        measures = result.measures | (utility.measure(table, anonymization, others) if others else {})
        facts = anonymization.facts
        return replace(
            result,
            guarantee=anonymization.guarantee,
            findings=findings,
            undrawn=undrawn,
            measures={
                key: figure
                for name in names
                for key, figure in utility.numbers_of_measure(name, measures).items()
            },
            anonymization=anonymization,
            said=tuple(str(facts[name]) for name in ("compared", "promise") if name in facts),
        )

    def _made_diverse(
        self, run_plan: RunPlan, anonymization: Anonymization, parts: DiverseParts | None
    ) -> Anonymization:
        """Return a run with the diverse outcomes of its partitions, or made diverse at once."""
        spec, session = self._session.flow.spec.steps.diversify, self._session
        assert spec is not None

        def diversify() -> Anonymization:
            return with_diverse_parts(
                anonymization, parts, spec.criterion, **spec.settings, seed=session.seed
            )

        return session.step("diversify", diversify, run_plan.run.number) if parts is None else diversify()

    def _assembled(self, run_plan: RunPlan, whole: Outcome) -> Anonymization:
        spec, cut = run_plan.run.anonymize, run_plan.run.partition
        parameters = {
            "loss": measure_named(spec.loss),
            "partition_size": spec.method.partition_size(cut.cut, spec.k, spec.options),
            "order": cut.order,
            **spec.options,
            **({} if spec.boundaries else {"boundaries": False}),
            **({} if run_plan.run.budget is None else {"budget": run_plan.run.budget}),
        }
        return assemble(self.table, spec.method, spec.k, _partition_positions(run_plan), whole, parameters)

    def again(self) -> RunResult:
        """Return the result of the flow's run where its people were published before; the table is then that of the published people.

        Raises
        ------
        ParameterError
            If the table is worked on in pieces, or as :func:`anonflow.anonymize` with `earlier`.
        DataError, InfeasibleError
            As there.
        """
        session, flow = self._session, self._session.flow
        (run,) = flow.runs
        spec, earlier = run.anonymize, flow.spec.earlier
        assert earlier is not None
        if not self.in_memory:
            raise ParameterError(
                "earlier releases need the table in memory; write 'pieces: false' under table: source"
            )
        if session.replayed:
            raise ParameterError(
                "a release that goes on from earlier ones cannot be replayed: the owner's folder has this release by now; keep its files"
            )
        begin = perf_counter()
        anonymization = anonymize(
            self.table,
            spec.algorithm,
            spec.k,
            partition_size=run.partition.size,
            order=run.partition.order,
            loss=spec.loss,
            seed=session.seed,
            workers=session.workers,
            boundaries=spec.boundaries,
            budget=run.budget,
            guarantee=spec.guarantee,
            earlier=flow.earlier,
            people=earlier.people,
            **spec.options,
        )
        table = self.table = anonymization.table
        result = RunResult(
            run.number,
            run.name,
            anonymization.algorithm.name,
            anonymization.guarantee,
            anonymization.k,
            table.n,
            seconds=perf_counter() - begin,
        )
        ready = measures_of_parts(flow, table, anonymization.k)
        return self._checked(result, run, anonymization, ready, again=True)

    def draw(self, result: RunResult) -> tuple[Release, tuple[Finding, ...]]:
        """Draw the release of a run, and verify all of it.

        Raises
        ------
        Cancelled
            If the run was cancelled.
        VerificationError
            If the matches are not regular.
        AnonflowError
            If something cannot be drawn, or written.
        """
        return publish.release_of(self._session, self.table, result, self._arrays)


def _partition_positions(run_plan: RunPlan) -> list[np.ndarray]:
    """Return the table positions of each partition's records."""
    assert isinstance(run_plan.order, TableOrder)
    positions = np.asarray(run_plan.order.positions)
    return [positions[cut] for cut in run_plan.cuts]


def _measured_again(result: RunResult, anonymization: Anonymization, ready: MeasureRequest) -> RunResult:
    """Return a result whose records were generalized further."""
    whole = Outcome(
        anonymization.generalization, anonymization.matches, anonymization.classes, anonymization.suppressed
    )
    measured = measure(anonymization.table.records, whole)
    summary = summary_of(ready, anonymization.table.records, whole, anonymization.partitions)
    sums = [utility.class_sums(ready, summary.classes)]
    return said_of(result, ready, anonymization.table.domains, summary, measured, sums)


ROWS = 1 << 18
"""Default number of rows that are read together."""

_CELL = 100
"""Bytes that a cell takes, from the file to the release, where a table is in memory."""

_TEXT = 30
"""How many times its size a CSV file takes in memory."""

MUCH = 1 << 30
"""Bytes that a table may take in memory where it is only looked at."""


def storage_of(session: Session) -> Storage:
    """Return the storage of a run's table.

    Raises
    ------
    DataError
        As :func:`pieces_of`.
    """
    return Storage(session, pieces_of(session.flow))


@contextmanager
def table_of(flow: Flow, seed: int) -> Iterator[Table]:
    """Yield the table of a flow: in memory, or mapped from temporary files where a run works on it in pieces.

    Raises
    ------
    DataError, SchemaError, HierarchyError
        If it cannot be read, or does not go with its columns.
    AnonflowError
        If it cannot be written.
    """
    rows, fingerprint = pieces_of(flow), Fingerprint.of(flow)
    if rows is None:
        yield source.read(flow, fingerprint, seed)
        return
    with Spill(None) as spill:
        yield Call(load, (flow, fingerprint, seed, spill, rows, lambda: None), "load").done()


@contextmanager
def arrays_for(path: Path | None) -> Iterator[Arrays]:
    """Yield where the arrays of a table in a file are made: in temporary files that are mapped, if they would take much memory.

    Raises
    ------
    AnonflowError
        If it cannot be written.
    """
    if path is None or _need(path, is_csv(path)) <= MUCH:
        yield IN_MEMORY
        return
    with Spill(None) as spill:
        yield spill


def pieces_of(flow: Flow) -> int | None:
    """Return the rows that are read together, if the flow's table is worked on in pieces; else None.

    It is where the source says ``pieces: N``, or where the table would take more memory than ``run: memory`` allows,
    half of the machine's without it; never with ``pieces: false``.

    Raises
    ------
    DataError
        If the source cannot be read.
    """
    source = flow.spec.table.source
    if source.pieces is False:
        return None
    if source.pieces is not None:
        return ROWS if source.pieces is True else source.pieces
    if flow.source_path is None or flow.table is not None or source.form not in ("csv", "parquet"):
        return None
    allowed = flow.spec.run.memory_bytes or _half_of_memory()
    return ROWS if _need(flow.source_path, source.csv is not None) > allowed else None


def text_in_memory() -> int:
    """Return the default size of the largest CSV file that is processed in memory, in bytes."""
    return _half_of_memory() // _TEXT


def _half_of_memory() -> int:
    return total_memory() // 2


def _need(path: Path, text: bool) -> int:
    """Return about how many bytes a table would take in memory."""
    if text:
        try:
            return path.stat().st_size * _TEXT
        except OSError:
            return 0  # the reader reports it
    try:
        # Parquet is compressed: its size says little, and its footers count the cells
        footers = [pq.ParquetFile(open_file(file)).metadata for file in parquet_files(path)]
    except (pa.ArrowException, OSError, DataError):
        return 0
    return sum(columns.num_rows * columns.num_columns for columns in footers) * _CELL
