"""A table on disk: its columns, codes and orders are files that are mapped into memory, and its results are in files, too.

The source is read batch by batch (:mod:`load`) into columns (:mod:`mapped_columns`) and codes (:mod:`arrays`); results are kept in
a file for each batch of partitions, and published rows are distributed to shuffle buckets and shuffled there
(:mod:`release`). No task holds more than a batch or a bucket; the client holds a column while it is coded, and an order
while it sorts. Temporary files are in the owner's folder (:mod:`spill`), which all workers must reach, and are
deleted afterwards.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType

import numpy as np

from anonflow import utility
from anonflow.algorithms.diversity.target import Targets
from anonflow.criteria.verification import Finding
from anonflow.engine.context import Session
from anonflow.engine.execution.batches import Batch, BatchDone, BatchFailed
from anonflow.engine.execution.plan import (
    FlowPlan,
    RunPlan,
    refuse_early,
)
from anonflow.engine.execution.result import RunResult
from anonflow.engine.execution.schedulers import Call, Executor
from anonflow.engine.execution.tasks import OF_THE_WHOLE, without_draw
from anonflow.engine.execution.totals import Totals
from anonflow.engine.flows.flow import Run
from anonflow.engine.storage.arrays import (
    TableOrder,
    write_array,
)
from anonflow.engine.storage.batch_files import InFiles
from anonflow.engine.storage.batch_release import pairs_of_batch, stored_batches
from anonflow.engine.storage.class_buckets import add_classes
from anonflow.engine.storage.load import load_of
from anonflow.engine.storage.release import check_made, draw
from anonflow.engine.storage.shuffle_buckets import Buckets
from anonflow.engine.storage.spill import Spill
from anonflow.release import Earlier
from anonflow.release.draw import bucket_count
from anonflow.table import Table
from anonflow.table.row_marks import unit_marks
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

    table: Table

    def __init__(self, session: Session, rows: int) -> None:
        self._session = session
        self._flow = session.flow
        self._rows = rows
        self._spill = Spill.of(session.owner)
        self._executor: Executor
        self._batches: dict[int, int] = {}
        self._hidden: dict[int, list[int]] = {}
        self._values: np.ndarray | None = None
        self._orders: dict[tuple[str, bool], TableOrder] = {}
        self._unit_file: str | None = None

    def __enter__(self) -> OnDisk:
        self._spill.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._spill.__exit__(kind, error, trace)

    # ------------------------------------------------------------------------------- load and sort

    def load(self, executor: Executor) -> Table:
        """Read the source batch by batch into files.

        Raises
        ------
        DataError, SchemaError, HierarchyError
            If it cannot be read, has changed, or does not go with its columns.
        AnonflowError
            If a file cannot be written.
        """
        self._executor = executor
        self.table, self._columns = load_of(self._session, self._spill, self._rows)
        if self.table.unit is not None:
            owners = [side for side in (self.table.unit, self.table.household) if side is not None]
            content = self._spill.file("units.npy"), np.stack(owners)
            self._unit_file = str(Call(write_array, content, "load").done().filename)
        return self.table

    def refuse_early(self) -> Targets | None:
        """Refuse a diversity that not even the whole table has, and weights that none can be; return its targets."""
        diversity = refuse_early(self._flow, self.table)
        if diversity is None:
            return None
        targets, values = diversity
        self._values = Call(write_array, (self._spill.file("values.npy"), values), "code").done()
        return targets

    def order(self, name: str, bounded: bool) -> TableOrder:
        """Return the table in an order."""
        if (name, bounded) not in self._orders:
            file = self._spill.file(f"{name}{'-bounded' if bounded else ''}.npy")
            arguments = self.table.records, name, self._session.seed, bounded, self._values, file
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
        return InFiles(folder, key, fresh, self._spill.file(f"{run.number}-"), bucket_count(self.table.n))

    def arrived(self, run_plan: RunPlan, batch: Batch, done: BatchDone | BatchFailed) -> None:
        """Count the batch, and note whether it has suppressed records."""
        self._batches[run_plan.run.number] += 1
        if isinstance(done, BatchDone) and done.put:
            self._hidden[run_plan.run.number].append(batch.number)

    def needs_workers(self, run_plan: RunPlan) -> bool:
        """Return whether completing a run needs tasks."""
        flow = self._flow
        return (
            bucket_count(self.table.n) > 1
            or not flow.draws(run_plan.run)  # criteria of the whole are checked then
            or any(utility.MEASURES[name].of_covers for name in flow.measures)
        )

    def class_calls(self, run_plan: RunPlan, names: Sequence[str], ready: MeasureRequest) -> list[Call]:
        """Return a call for each bucket of classes."""
        place = self._place(run_plan.run)
        count = self._batches[run_plan.run.number]
        return [
            Call(add_classes, (names, f"{place.spill}classes-", count, bucket), "measure")
            for bucket in range(place.buckets)
        ]

    def completed(self, run_plan: RunPlan, totals: Totals, result: RunResult) -> RunResult:
        """Return the result with criteria and measures that need more than partitions."""
        flow = self._flow
        findings = result.findings
        undrawn: tuple[str, ...] = ()
        if result.problem is None and not flow.draws(run_plan.run):
            checked, undrawn = without_draw(flow.criteria, totals.guarantee, totals.kind == "matches")
            criteria = [each for each in checked if each.name in OF_THE_WHOLE]
            if criteria:
                findings += check_made(
                    self._session, self._executor, run_plan, totals, self.table, self._results(run_plan.run),
                    criteria, others=self._columns, units=self._unit_file,
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
        )

    def _pairs(self, run_plan: RunPlan) -> int:
        """Return how many originals the generalized records of a run cover, added up."""
        place, codes = self._results(run_plan.run), self._spill.file("codes.npy")
        calls = (
            Call(pairs_of_batch, (stored, codes), "measure", stored.batch.number)
            for stored in stored_batches(self._session, run_plan, self.table.n, place)
        )
        return sum(count for _, count in self._executor.answers(calls, self.table.domains))

    def _results(self, run: Run) -> InFiles:
        """Return the place of a run's results."""
        return replace(self._place(run), fresh=False)

    def draw(
        self, executor: Executor, plan: FlowPlan, totals: Totals, result: RunResult
    ) -> tuple[tuple[Finding, ...], Buckets]:
        """Draw and verify batch by batch, distribute the rows to buckets, and shuffle these."""
        (run_plan,) = (run_plan for run_plan in plan.runs if run_plan.run.number == result.number)
        hidden = sorted(self._hidden[result.number])
        findings, buckets = draw(
            self._session, executor, run_plan, totals, result, self.table,
            place=self._results(run_plan.run), hidden=hidden,
            others=self._columns, units=self._unit_file,
        )  # fmt: skip
        session = self._session
        if session.owner is not None and not session.replayed and all(each.holds for each in findings):
            buckets = self._remembered(Earlier(session.owner.path.parent), buckets)
        return findings, buckets

    def _remembered(self, earlier: Earlier, buckets: Buckets) -> Buckets:
        """Return the release, which will be remembered when it is published; warn if people were in an earlier one."""
        table = self.table
        if table.n > REMEMBERED:
            self._session.warn(
                f"anonflow keeps no marks of the people in this release: it has more than {REMEMBERED:,} people; check "
                "yourself that no other release contains them"
            )
            return buckets
        by = table.unit_columns
        marks = unit_marks(table.units, by, earlier.key())
        overlap = earlier.overlap_of_marks(marks, by, buckets.content)
        if overlap:
            self._session.warn(overlap.sentence())
        return replace(buckets, keep=lambda: earlier.keep_marks(marks, buckets.content))
