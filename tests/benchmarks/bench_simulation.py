"""A billion records in four million partitions, without the records: what client and scheduler hold, and what a task costs.

The runner is the real one, on two worker processes: plan, bounded submission, events, and the adding up of results. Its
storage works by numbers only, and its method gives back generalized records of the right size at once. Sorting and
shuffling are not done. ``ANONFLOW_SIMULATE`` names the number of records, 1,000,000,000 without it.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from anonflow import datasets, engine, utility
from anonflow.algorithms.method import Outcome
from anonflow.criteria.verification import Finding
from anonflow.engine.context import Session
from anonflow.engine.execution import schedulers
from anonflow.engine.execution.batches import Batch, BatchDone, BatchFailed, Shared, summary_of, tallied
from anonflow.engine.execution.plan import BoundaryClasses, plan_flow
from anonflow.engine.execution.schedulers import Call, Executor
from anonflow.engine.execution.tasks import Matched, Measured, TaskSettings, measure
from anonflow.engine.partitions import Partitions
from anonflow.engine.storage.disk import OnDisk
from anonflow.generalization import Generalization
from anonflow.system import peak_memory
from anonflow.table import Records, Table
from tests.benchmarks.measuring import row

SIZE = 250
MIB = 1 << 20

FLOW = """
flow: simulation
version: 1
table:
  source: {dataset: census_like, n: 20000}
  columns:
    Age: {role: quasi-identifier, kind: numeric}
    Country: {role: quasi-identifier, kind: categorical}
    Occupation: {role: quasi-identifier, kind: categorical}
partition: {size: 250}
steps:
  - anonymize: {algorithm: greedy, k: 10}
  - measure: [gcp]
"""


@dataclass(frozen=True)
class Numbers:
    """Rows that are none."""

    count: int


@dataclass(frozen=True)
class Order:
    """A table that is in order, since it has no rows."""

    def rows(self, start: int, stop: int) -> Numbers:
        return Numbers(stop - start)


class Simulated(OnDisk):
    """A table of any number of records, none of which lies anywhere."""

    def __init__(self, table: Table, n: int) -> None:
        self.table, self.n = table, n
        self.batches = 0

    def sample(self) -> Records:
        return self.table.records

    def boundary_classes(self) -> BoundaryClasses:
        return BoundaryClasses((), np.array([self.n], np.int64))

    def order(self, name: str, bounded: bool) -> Any:
        return Order()

    def begin(self, plan: Any) -> None:
        pass

    def place(self, item: Any, batch: Batch) -> Any:
        return None

    def arrived(self, item: Any, batch: Batch, done: BatchDone | BatchFailed) -> None:
        self.batches += 1

    def take(self, positions: np.ndarray) -> Records:
        return self.table.records.take(positions % self.table.n)

    def needs_workers(self, item: Any) -> bool:
        return False

    def completed(self, item: Any, totals: Any, result: Any) -> Any:
        return result

    def diversified(self, executor: Any, item: Any, totals: Any, shared: Any) -> Any:
        return totals

    def class_calls(self, item: Any, names: Sequence[str], ready: Any) -> list[Call]:
        return [Call(utility.class_sums, ({name: [self.last.classes[name][0]] for name in names},))]

    last: Any = None


def simulated(shared: Shared, settings: TaskSettings, batch: Batch, rows: Numbers, place: None) -> BatchDone:
    """What a batch of that many rows tells the client."""
    table = _table()
    m = min(rows.count, table.n)
    records = table.records.take(np.arange(m))
    whole = Outcome(
        Generalization.of(records),
        matches=(np.arange(m)[:, None] + np.arange(10)) % m,
        suppressed=np.zeros(m, bool),
    )
    summary = summary_of(shared.measures[settings.run], records, whole)
    summary.classes.clear()
    counts = np.array([stop - start for start, stop in batch.bounds], np.int64)
    own = measure(records, Matched(whole, 0.0))
    assert isinstance(own, Measured)
    finding = (Finding("covers", True), Finding("k-regular", True))
    return BatchDone(
        counts, np.full(len(counts), 0.01), np.zeros(len(counts)), {"match": 0.0}, tallied([finding] * len(counts)),
        own, summary, {}, 0, None, False, 0, peak_memory(),
    )  # fmt: skip


_KEPT: list[Table] = []


def _table() -> Table:
    if not _KEPT:
        flow = engine.flow_from(_document())
        frame = datasets.load("census_like", n=2000, seed=1)
        _KEPT.append(Table(frame, flow.schema))
    return _KEPT[0]


def _document() -> Any:
    from anonflow import strict_yaml

    return strict_yaml.loads(FLOW, name="simulation")


def run(small: bool) -> list[dict[str, Any]]:
    """Seconds, memory and bytes for each partition."""
    n = 2_000_000 if small else int(os.environ.get("ANONFLOW_SIMULATE", "1000000000"))
    flow = engine.flow_from(_document())
    table = _table()
    events = engine.EventStream()
    session = Session(flow, events, seed=5, scheduler="threads" if small else "processes", workers=2)
    storage = Simulated(table, n)
    storage.last = summary_of(
        utility.asked(table.records, ["gcp", "usefulness"], 10),
        table.records,
        Outcome(Generalization.of(table.records)),
    )
    plan = plan_flow(flow, n, storage.boundary_classes(), storage.order)
    sent: list[int] = []
    real = schedulers._Sent.send

    def noted(own: Any, group: Any) -> None:
        if len(sent) < 200:
            import cloudpickle

            sent.append(len(cloudpickle.dumps(group)) // len(group))
        real(own, group)

    peaks: list[int] = []

    def arrived(own: Any, item: Any, batch: Batch, done: Any) -> None:
        own.batches += 1
        if own.batches in (200, 1000) or own.batches % 5000 == 0:
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)

    with (
        mock.patch("anonflow.engine.partitions.solve_batch", simulated),
        mock.patch.object(schedulers._Sent, "send", noted),
        mock.patch.object(Simulated, "arrived", arrived),
        Executor(session.scheduler, 2, events) as executor,
    ):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        start, cpu = time.perf_counter(), time.process_time()
        (result,) = Partitions(session, storage, executor, plan, table).compute()
        wall, own = time.perf_counter() - start, time.process_time() - cpu
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    assert result.ok
    title = f"{n:,} records, {plan.partitions:,} partitions, {storage.batches:,} tasks"
    early = peaks[0] if peaks else before
    return [
        row(f"{title}: whole", wall, "s"),
        row(
            f"{title}: client and scheduler, processor time for a partition",
            1e6 * own / plan.partitions,
            "us",
        ),
        row(f"{title}: client and scheduler, memory before", before, "MiB"),
        row(f"{title}: client and scheduler, peak memory after 200 tasks", early, "MiB"),
        row(f"{title}: client and scheduler, peak memory", after, "MiB", most=None if small else early + 256),
        row(f"{title}: sent for a task", float(np.mean(sent)) if sent else 0.0, "bytes"),
        row(
            f"{title}: sent for a partition",
            float(np.mean(sent)) * storage.batches / plan.partitions if sent else 0.0,
            "bytes",
        ),
    ]
