"""A table in pieces on disk: it is read and coded piece by piece, and its results are in files, too.

The source is read piece by piece (:mod:`pieces`, :mod:`scan`); codes and orders are arrays in files that are mapped into
memory (:mod:`arrays`), results are kept in a file for each batch, and published rows are distributed to shuffle buckets and
shuffled there (:mod:`release`). No task holds more than a piece, a batch or a bucket; the client holds an order while it
sorts. Temporary files are in the owner's folder (:mod:`spill`), which all workers must reach, and are
deleted afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

import numpy as np
import pyarrow as pa

from anonflow import utility
from anonflow.criteria.request import read_criteria
from anonflow.criteria.verification import Finding
from anonflow.engine.context import Session
from anonflow.engine.execution.batches import Batch, BatchDone, BatchFailed, Shared
from anonflow.engine.execution.plan import (
    BoundaryClasses,
    FlowPlan,
    RunPlan,
    check_weights,
    refuse_many_values,
    spare_records,
)
from anonflow.engine.execution.result import RunResult
from anonflow.engine.execution.schedulers import Call, Executor
from anonflow.engine.execution.tasks import OF_THE_WHOLE, without_draw
from anonflow.engine.execution.totals import Totals
from anonflow.engine.flows import source
from anonflow.engine.flows.flow import Run
from anonflow.engine.flows.spec import UnitsSpec
from anonflow.engine.storage import pieces, scan
from anonflow.engine.storage.arrays import OtherColumns, TableOrder, create_array, mapped, write_rows
from anonflow.engine.storage.batch_files import InFiles
from anonflow.engine.storage.batch_release import pairs_of_batch, stored_batches
from anonflow.engine.storage.class_buckets import add_classes
from anonflow.engine.storage.diversified import context_of, diversified, target_of_table
from anonflow.engine.storage.outline import Outline
from anonflow.engine.storage.release import check_made, draw
from anonflow.engine.storage.shuffle_buckets import Buckets
from anonflow.engine.storage.spill import Spill
from anonflow.engine.storage.unit_labels import Units
from anonflow.engine.storage.unit_rows import needed_columns, rows_of_units
from anonflow.errors import DataError
from anonflow.release import Earlier
from anonflow.release.draw import bucket_count
from anonflow.table import Records, Schema
from anonflow.table.frame import check_columns
from anonflow.table.named_settings import NO_ROW_KEPT, NO_ROW_PREPARED
from anonflow.table.prepare import Preparation
from anonflow.table.row_marks import unit_marks
from anonflow.table.schema import UNPUBLISHED
from anonflow.utility.measures import MeasureRequest

__all__ = ["OnDisk"]

REMEMBERED = 20_000_000
"""People whose marks the client holds at the end of a run, 8 bytes each; for more people, none are kept."""


class OnDisk:
    """A table in pieces, with its results in files. No attribute holds a record.

    Parameters
    ----------
    session : Session
    rows : int
        Of a piece.
    """

    outline: Outline

    def __init__(self, session: Session, rows: int) -> None:
        self._own: TemporaryDirectory[str] | None = None
        if session.owner is None:  # a flow that is not a file
            self._own = TemporaryDirectory(prefix="anonflow-")
            home = Path(self._own.name)
        else:
            session.owner.make()
            home = session.owner.path
        self._session = session
        self._flow = session.flow
        self._rows = rows
        self._spill = Spill(home)
        self._executor: Executor
        self._batches: dict[int, int] = {}
        self._hidden: dict[int, list[int]] = {}
        self._remarks: dict[int, tuple[str, ...]] = {}
        self._diverse: dict[int, InFiles] = {}
        self._orders: dict[tuple[str, bool], TableOrder] = {}
        self._unit_file: str | None = None

    def __enter__(self) -> OnDisk:
        self._spill.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._spill.__exit__(kind, error, trace)
        if self._own is not None:
            self._own.cleanup()

    # ------------------------------------------------------------------------------- load and sort

    def load(self, executor: Executor) -> Outline:
        """Read the source once: its domains, and what its other columns would reveal.

        Raises
        ------
        DataError
            If it cannot be read or has changed, or no record is left.
        """
        self._executor = executor
        with source.problems_name_the_file(self._flow, self._session.fingerprint):
            self.outline = self._scan(executor)
            units = None
            if self.outline.schema.unit_column is not None:
                units = self._read_units()
                self._unit_file = Call(units.write, (self._spill.file("units.npy"),), "units").done()
            codes = self._code()
        self._records = Records(self.outline.domains, codes, None if units is None else units.unit)
        return self.outline

    def _code(self) -> np.ndarray:
        """Code the pieces, and put their other columns into files."""
        table, file = self.outline, self._spill.file("codes.npy")
        Call(create_array, (file, (table.n, len(table.domains)), np.int32), "code").done()
        named = any(table.schema[name].role != "quasi-identifier" for name in table.columns)
        files = [self._spill.file(f"others-{p}.arrow") for p in range(len(self._pieces))] if named else []
        self._others = OtherColumns(tuple(files), tuple(self._starts))
        on_network = self._session.scheduler not in ("threads", "processes")
        put_codes = partial(write_rows, file, on_network=on_network)
        calls = [
            Call(
                scan.code_piece,
                (piece, table.schema, table.columns, start, put_codes, files[p] if named else None),
                "code",
            )
            for p, (piece, start) in enumerate(zip(self._pieces, self._starts, strict=True))
        ]
        self._executor.all(calls, self._coders, self._session.fingerprint)
        return mapped(file)

    def _scan(self, executor: Executor) -> Outline:
        """Scan the table piece by piece, and code the values of its columns."""
        flow = self._flow
        schema, path = flow.schema, flow.source_path
        fingerprint = self._session.fingerprint
        frame = source.frame_of(flow, fingerprint)
        steps = schema.preparation
        units = flow.spec.table.units if flow.table is None else None
        read = 0
        of_units: list[pieces.Piece] | None = None
        if frame is not None and flow.table is None:
            frame = source.per_unit(flow, frame, self._session.seed)
            if steps:
                read, frame = len(frame), steps.apply(frame)
        held = None if frame is None else pieces.held_table(frame)
        if held is not None:
            fields = held.schema
        elif path is not None:
            fields = pieces.fields_of(path, flow.spec.table.source, fingerprint.open, flow.needed)
            if units is not None:
                of_units, fields = self._rows_of_units(path, units, fields)
            if steps:
                fields = pieces.prepared(fields.empty_table(), steps).schema
        else:
            raise DataError("the flow names no source")
        check_columns(fields.names, schema)
        columns = tuple(
            name for name in fields.names if name in schema and schema[name].role not in UNPUBLISHED
        )
        # identifiers are read to recognize people in a later release; they are never published
        self._read = tuple(name for name in fields.names if name in schema)
        self._fields = {name: fields.field(name).type for name in columns}
        if held is not None:
            self._pieces = pieces.put_aside(held.select(self._read), self._rows, self._spill.file("source-"))
        else:
            assert path is not None
            self._pieces, read = self._cut_source(path, self._read, of_units)
        sensitive = self._diverse_columns(schema, columns)
        looks = executor.all(
            [Call(scan.scan, (piece, schema, columns, sensitive), "scan") for piece in self._pieces],
            fingerprint,
        )
        if not looks:
            raise DataError(NO_ROW_PREPARED if read else "the table has no rows")
        self._starts = [0]
        whole = looks[0]
        for look in looks[1:]:
            self._starts.append(whole.kept)
            whole = whole.then(look)
        if not whole.rows:
            raise DataError("the table has no rows")
        if not whole.kept:
            raise DataError(NO_ROW_KEPT)
        self._scanned: scan.Scanned = whole
        with fingerprint.others_read():
            self._coders, domains = scan.coders(whole, schema)
        unnamed = tuple(name for name in fields.names if name not in schema)
        dropped = whole.rows - whole.kept
        if flow.table is not None:  # it has reported the rows that it left out
            unnamed, dropped = tuple(flow.table.unnamed), dropped + flow.table.dropped
        filtered = max(0, read - whole.rows) if flow.table is None else flow.table.filtered
        return Outline(whole.kept, dropped, columns, unnamed, schema, domains, filtered)

    @property
    def _unit_rows(self) -> int:
        """Rows of the unit that has most of them; 1 if each row counts as a person."""
        return 1 if self._records.units is None else int(np.bincount(self._records.units).max())

    def _read_units(self) -> Units:
        """Return the unit of each row."""
        schema, held = self.outline.schema, self._flow.table
        if held is not None:
            assert held.unit is not None
            return Units.checked(schema, held.unit, held.household)
        names = [name for name in (schema.unit_column, schema.household_column) if name is not None]
        calls = [Call(scan.units_of, (piece, schema, self._read, names), "scan") for piece in self._pieces]
        return Units.of_hashes(schema, names, self._executor.all(calls, self._session.fingerprint))

    def _rows_of_units(
        self, path: Path, units: UnitsSpec, fields: pa.Schema
    ) -> tuple[list[pieces.Piece], pa.Schema]:
        """Return the rows of a source after the treatment of people with several rows, and their columns."""
        columns = needed_columns(units, fields.names)
        schema = self._flow.schema
        if units.recipes is None and not schema.preparation:
            columns = [name for name in columns if name in schema or name == units.unit]
        fingerprint = self._session.fingerprint
        whole, _ = self._raw_pieces(path, columns, "raw-")
        seed = source.seed_of_caps(self._session.seed)
        of_units, own = rows_of_units(
            self._executor, fingerprint, self._spill, units, whole, columns, self._rows, seed
        )
        return of_units, fields if units.recipes is None else own

    def _cut_source(
        self, path: Path, columns: tuple[str, ...], of_units: list[pieces.Piece] | None
    ) -> tuple[list[pieces.Piece], int]:
        """Return the pieces of a source, and the rows that it has where steps before look at all of them, else 0."""
        steps = self._flow.schema.preparation
        if of_units is not None and not steps:
            return of_units, 0
        cut, read = self._raw_pieces(path, columns, "source-", steps, of_units)
        return cut, read if steps else 0

    def _raw_pieces(
        self,
        path: Path,
        columns: Sequence[str],
        name: str,
        steps: Preparation | None = None,
        before: list[pieces.Piece] | None = None,
    ) -> tuple[list[pieces.Piece], int]:
        """Return the pieces of a source, in its own files if possible, and the number of rows that were read for it."""
        spec = self._flow.spec.table.source
        opener = self._session.fingerprint.open
        if spec.parquet is not None and not steps:
            cut = pieces.parquet_pieces(path, self._rows, opener)
            if cut is not None:
                return cut, 0
        into = self._spill.file(name)
        arguments = (str(path), spec, columns, self._rows, into, opener, steps, before)
        ((written, read),) = self._executor.all([Call(pieces.rewrite, arguments, "rewrite")])
        return written, read

    def sample(self) -> Records:
        """Return all records."""
        return self._records

    def take(self, positions: np.ndarray) -> Records:
        """Return the records at some positions."""
        return self._records.take(positions)

    def _diverse_columns(self, schema: Schema, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the columns whose diversity is asked for; those that are not published are named later."""
        flow = self._flow
        others = [name for name in columns if schema[name].role != "quasi-identifier"]
        sensitive = [name for name in others if schema[name].role == "sensitive"]
        wanted: list[str] = []
        for criterion in read_criteria(flow.criteria, "covers"):
            if criterion.declared.of_a_column:
                column = criterion.parameters.get("column")
                wanted += sensitive if column is None else [str(column)]
        if flow.spec.steps.diversify is not None:
            column = flow.spec.steps.diversify.column
            wanted += sensitive if column is None else [column]
        return tuple(name for name in dict.fromkeys(wanted) if name in others)

    def refuse_early(self) -> None:
        """Refuse a diversity that not even the whole table has, and weights that none can be."""
        check_weights(self._flow, self._scanned.weights)
        more = self._flow.spec.steps.diversify
        if more is not None:
            schema = self.outline.schema
            others = [name for name in self.outline.columns if schema[name].role != "quasi-identifier"]
            spare = spare_records(self._flow, self._records)
            self._target = target_of_table(more, schema, others, self._scanned.sensitive, spare)
            column, values, _ = self._target
            refuse_many_values(self._flow, column, len(values))

    def boundary_classes(self) -> BoundaryClasses:
        """Return the records that may be generalized together."""
        return BoundaryClasses.of(self._records)

    def order(self, name: str, bounded: bool) -> TableOrder:
        """Return the table in an order."""
        if (name, bounded) not in self._orders:
            file = self._spill.file(f"{name}{'-bounded' if bounded else ''}.npy")
            arguments = self._records, name, self._session.seed, bounded, file
            self._orders[name, bounded] = Call(TableOrder.of, arguments, "sort").done()
        return self._orders[name, bounded]

    # ------------------------------------------------------------------------------------- results

    def begin(self, plan: FlowPlan) -> None:
        """Create the folder of the results, which workers write."""
        session = self._session
        resume_store = session.resume_store
        if resume_store is None:
            self._kept = self._spill.file("results"), os.urandom(32), False
        else:
            self._kept = *resume_store.begin(session.seed), resume_store.fresh
        for run_plan in plan.runs:
            self._batches[run_plan.run.number], self._hidden[run_plan.run.number] = 0, []

    def place(self, run_plan: RunPlan, batch: Batch) -> InFiles:
        """Return the store of a batch's results for a task."""
        return self._place(run_plan.run)

    def _place(self, run: Run) -> InFiles:
        folder, key, fresh = self._kept
        return InFiles(folder, key, fresh, self._spill.file(f"{run.number}-"), bucket_count(self.outline.n))

    def arrived(self, run_plan: RunPlan, batch: Batch, done: BatchDone | BatchFailed) -> None:
        """Count the batch, and note whether it has suppressed records."""
        self._batches[run_plan.run.number] += 1
        if isinstance(done, BatchDone) and done.put:
            self._hidden[run_plan.run.number].append(batch.number)

    def needs_workers(self, run_plan: RunPlan) -> bool:
        """Return whether completing a run needs tasks."""
        flow = self._flow
        return (
            flow.spec.steps.diversify is not None
            or bucket_count(self.outline.n) > 1
            or not flow.draws(run_plan.run)  # criteria of the whole are checked then
            or any(utility.MEASURES[name].of_covers for name in flow.measures)
        )

    def diversified(self, executor: Executor, run_plan: RunPlan, totals: Totals, shared: Shared) -> Totals:
        """Return the diverse results of the run, if the flow wants diversity, in separate files."""
        more = self._flow.spec.steps.diversify
        if more is None:
            return totals
        source = replace(self._place(run_plan.run), fresh=False)
        diverse = replace(source, folder=self._spill.file(f"diverse-{run_plan.run.number}"))
        context = context_of(
            more, self._target, self._scanned.sensitive[self._target[0]], self.outline.domains, self.outline.n,
            run_plan.run.anonymize.k, others=self._others, source=source, results=diverse,
        )  # fmt: skip
        number = run_plan.run.number
        again, self._hidden[number], self._remarks[number] = self._session.step(
            "diversify",
            lambda: diversified(self._session, executor, run_plan, totals, shared, context),
            number,
        )
        self._diverse[number] = diverse
        return again

    def class_calls(self, run_plan: RunPlan, names: Sequence[str], ready: MeasureRequest) -> list[Call]:
        """Return a call for each bucket of classes."""
        place = self._place(run_plan.run)
        count = self._batches[run_plan.run.number]
        return [
            Call(add_classes, (names, f"{place.spill}classes-", count, bucket), "measure")
            for bucket in range(place.buckets)
        ]

    def completed(self, run_plan: RunPlan, totals: Totals, result: RunResult) -> RunResult:
        """Return the result with the cost and promise of its diversity, and with criteria that need more than partitions."""
        flow = self._flow
        findings = result.findings
        undrawn: tuple[str, ...] = ()
        if result.problem is None and not flow.draws(run_plan.run):
            checked, undrawn = without_draw(flow.criteria, totals.guarantee, totals.kind == "matches")
            criteria = [each for each in checked if each.name in OF_THE_WHOLE]
            if criteria:
                findings += check_made(
                    self._session, self._executor, run_plan, totals, self.outline, self._results(run_plan.run),
                    self._scanned, criteria, others=self._others, units=self._unit_file, unit_rows=self._unit_rows,
                )  # fmt: skip
        measures = dict(result.measures)
        for name in flow.measures:
            if name in measures and utility.MEASURES[name].of_covers and totals.kind != "classes":
                measures[name] = self._pairs(run_plan)
        return replace(
            result,
            findings=findings,
            undrawn=undrawn,
            measures=measures,
            said=self._remarks.get(result.number, ()),
        )

    def _pairs(self, run_plan: RunPlan) -> int:
        """Return how many originals the generalized records of a run cover, added up."""
        place, codes = self._results(run_plan.run), self._spill.file("codes.npy")
        calls = (
            Call(pairs_of_batch, (stored, codes), "measure", stored.batch.number)
            for stored in stored_batches(self._session, run_plan, self.outline.n, place)
        )
        return sum(count for _, count in self._executor.answers(calls, self.outline.domains))

    def _results(self, run: Run) -> InFiles:
        """Return the place of a run's results, the diverse ones if there are any."""
        return self._diverse.get(run.number, replace(self._place(run), fresh=False))

    def draw(
        self, executor: Executor, plan: FlowPlan, totals: Totals, result: RunResult
    ) -> tuple[tuple[Finding, ...], Buckets]:
        """Draw and verify batch by batch, distribute the rows to buckets, and shuffle these."""
        (run_plan,) = (run_plan for run_plan in plan.runs if run_plan.run.number == result.number)
        hidden = sorted(self._hidden[result.number])
        findings, buckets = draw(
            self._session, executor, run_plan, totals, result, self.outline,
            place=self._results(run_plan.run), hidden=hidden, fields=self._fields, scanned=self._scanned,
            others=self._others, units=self._unit_file, unit_rows=self._unit_rows,
        )  # fmt: skip
        session = self._session
        if session.owner is not None and not session.replayed and all(each.holds for each in findings):
            buckets = self._remembered(Earlier(session.owner.path.parent), buckets)
        return findings, buckets

    def _remembered(self, earlier: Earlier, buckets: Buckets) -> Buckets:
        """Return the release, which will be remembered when it is published; warn if people were in an earlier one."""
        table = self.outline
        if table.n > REMEMBERED:
            self._session.warn(
                f"anonflow keeps no marks of the people in this release: it has more than {REMEMBERED:,} people; check "
                "yourself that no other release contains them"
            )
            return buckets
        key = earlier.key()
        held = self._flow.table
        if held is not None:
            by, marks = held.unit_columns, unit_marks(held.units, held.unit_columns, key)
        else:
            unit = table.schema.unit_column
            identifiers = tuple(name for name in self._read if table.schema[name].role in UNPUBLISHED)
            by = (unit,) if unit is not None else identifiers or table.schema.quasi_identifiers
            calls = [
                Call(scan.marks_of, (piece, table.schema, self._read, by, key), "look")
                for piece in self._pieces
            ]
            marks = np.concatenate(self._executor.all(calls, self._session.fingerprint))
        overlap = earlier.overlap_of_marks(marks, by, buckets.content)
        if overlap:
            self._session.warn(overlap.sentence())
        return replace(buckets, keep=lambda: earlier.keep_marks(marks, buckets.content))
