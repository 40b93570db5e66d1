"""A billion records in four million partitions, without the records: what client and scheduler hold, and what a task costs.

The client is the real one, on two worker processes: it solves, draws and shuffles by the code that it has for a table in
pieces: plan, bounded submission, events, and the adding up of results. Its tasks work by numbers only: each gives back at
once a result of the right size, and no file has more than a row. The order of the table, an array of 8 bytes a record that
the client sorts, is left out. ``ANONFLOW_SIMULATE`` names the number
of records, 1,000,000,000 without it.
"""

from __future__ import annotations

import os
import pickle
import resource
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from distributed.protocol.pickle import dumps

from anonflow import datasets, engine, utility
from anonflow.algorithms.method import Outcome
from anonflow.criteria.verification import Finding
from anonflow.engine.context import Session
from anonflow.engine.execution import schedulers
from anonflow.engine.execution.batches import Batch, BatchDone, BatchFailed, Shared, summary_of, tallied
from anonflow.engine.execution.plan import BoundaryClasses, plan_flow
from anonflow.engine.execution.schedulers import Call, Executor
from anonflow.engine.execution.tasks import TaskSettings, measure
from anonflow.engine.partitions import Partitions
from anonflow.engine.storage import release
from anonflow.engine.storage.arrays import TableOrder, write_array
from anonflow.engine.storage.batch_release import BatchDrawn, ReleaseContext
from anonflow.engine.storage.disk import OnDisk
from anonflow.engine.storage.mapped_columns import MappedColumns
from anonflow.engine.storage.shuffle_buckets import Bucket
from anonflow.generalization import Generalization
from anonflow.release.draw import bucket_count
from anonflow.system import peak_memory
from anonflow.table import Table
from tests.benchmarks.measuring import row

SIZE = 250
COUNTED = 200
"""Tasks of a phase whose messages are measured."""

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


class Simulated(OnDisk):
    """A table of any number of records, none of which lies anywhere."""

    def __init__(self, session: Session, table: Table, n: int, folder: Path) -> None:
        self.table, self.n, self.batches = table, n, 0
        self._session = session
        codes = write_array(str(folder / "codes.npy"), table.codes[:1])
        self.ordered = TableOrder(codes, write_array(str(folder / "order.npy"), np.zeros(1, np.int64)))

    def order(self, name: str, bounded: bool) -> TableOrder:
        return self.ordered

    def begin(self, plan: Any) -> None:
        pass

    def place(self, item: Any, batch: Batch) -> Any:
        return None

    def arrived(self, item: Any, batch: Batch, done: BatchDone | BatchFailed) -> None:
        self.batches += 1

    def needs_workers(self, item: Any) -> bool:
        return False

    def completed(self, item: Any, totals: Any, result: Any) -> Any:
        return result

    def class_calls(self, item: Any, names: Sequence[str], ready: Any) -> list[Call]:
        return [Call(utility.class_sums, ({name: [self.last.classes[name][0]] for name in names},))]

    last: Any = None


def deal_rows(context: ReleaseContext) -> None:
    """Assign no row to a bucket."""


def draw_batch(context: ReleaseContext, stored: Any) -> BatchDrawn:
    """Return the summary of a drawn batch."""
    findings = [(Finding("covers", True), Finding("k-regular", True))] * len(stored.batch.bounds)
    return BatchDrawn(tallied(findings), 0, peak_memory())


def shuffle_bucket(context: ReleaseContext, offsets: Sequence[int], bucket: int) -> Bucket:
    """Return the summary of a shuffled bucket."""
    rows = context.n // bucket_count(context.n)
    return Bucket(rows, rows, 10 * rows, peak_memory())


def solve_batch(shared: Shared, settings: TaskSettings, batch: Batch, rows: Any, place: None) -> BatchDone:
    """Return the summary of a batch that was solved."""
    table = _table()
    m = min(batch.stop - batch.start, table.n)
    records = table.records.take(np.arange(m))
    whole = Outcome(
        Generalization.of(records),
        matches=(np.arange(m)[:, None] + np.arange(10)) % m,
        suppressed=np.zeros(m, bool),
    )
    summary = summary_of(shared.measures[settings.run], records, whole)
    summary.classes.clear()
    counts = np.array([stop - start for start, stop in batch.bounds], np.int64)
    own = measure(records, whole)
    finding = (Finding("covers", True), Finding("k-regular", True))
    return BatchDone(
        counts, np.full(len(counts), 0.01), np.zeros(len(counts)), {"match": 0.0}, tallied([finding] * len(counts)),
        own, summary, {}, 0, None, False, 0, peak_memory(),
    )  # fmt: skip


NOWHERE: Any = SimpleNamespace()
"""Where results of batches are that none writes."""

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


def seconds_of_threads() -> dict[str, float]:
    """Return the processor seconds of this process: of the loop that has the scheduler and its messages, and of the client."""
    tick = os.sysconf("SC_CLK_TCK")
    seconds = {"client": 0.0, "scheduler": 0.0}
    for thread in threading.enumerate():
        try:
            stat = Path(f"/proc/self/task/{thread.native_id}/stat").read_text()
        except OSError:  # it has ended
            continue
        user, system = stat.rpartition(")")[2].split()[11:13]
        seconds["scheduler" if "loop" in thread.name.lower() else "client"] += (
            int(user) + int(system)
        ) / tick
    return seconds


@dataclass
class Phase:
    """What a phase cost the process with client and scheduler."""

    name: str
    tasks: int = 0
    wall: float = 0.0
    seconds: dict[str, float] = field(default_factory=dict)
    sent: list[int] = field(default_factory=list)
    answered: list[int] = field(default_factory=list)

    def rows(self, title: str, partitions: int) -> Iterator[dict[str, Any]]:
        """Yield the figures, for each partition of the table."""
        own = f"{title}, {self.name}, {self.tasks:,} tasks"
        yield row(f"{own}: whole", self.wall, "s")
        for side, seconds in self.seconds.items():
            yield row(f"{own}: {side}, processor time for a partition", 1e6 * seconds / partitions, "us")
        for name, sizes in (("sent to workers", self.sent), ("answers of workers", self.answered)):
            size = float(np.mean(sizes)) if sizes else 0.0
            yield row(f"{own}: {name}, for a partition", size * self.tasks / partitions, "bytes")


def run(small: bool) -> list[dict[str, Any]]:
    """Seconds, memory and bytes for each partition, of each phase."""
    n = 2_000_000 if small else int(os.environ.get("ANONFLOW_SIMULATE", "1000000000"))
    flow = engine.flow_from(_document())
    table = _table()
    events = engine.EventStream()
    session = Session(flow, events, seed=5, scheduler="threads" if small else "processes", workers=2)
    phases: list[Phase] = []
    peaks: list[int] = []
    send, stream = schedulers._Sent.send, Executor.stream

    def sending(own: Any, group: Any) -> None:
        if len(phases[-1].sent) < COUNTED:
            phases[-1].sent.append(len(dumps(group)) // len(group))
        send(own, group)

    def streaming(own: Any, calls: Any, *shared: Any, **options: Any) -> Iterator[Any]:
        for call, answer in stream(own, calls, *shared, **options):
            phase = phases[-1]
            phase.tasks += 1
            if phase.tasks <= COUNTED:
                phase.answered.append(len(pickle.dumps(answer)))
            if phase.name == "solve" and phase.tasks in (200, 1000):
                peaks.append(peak())
            yield call, answer

    def timed(name: str, work: Callable[[], Any]) -> Any:
        phases.append(Phase(name))
        start, before = time.perf_counter(), seconds_of_threads()
        result = work()
        after = seconds_of_threads()
        phases[-1].wall = time.perf_counter() - start
        phases[-1].seconds = {side: after[side] - before[side] for side in after}
        return result

    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

    module = "anonflow.engine.storage"
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())
        storage = Simulated(session, table, n, Path(folder))
        storage.last = summary_of(
            utility.asked(table.records, ["gcp", "usefulness"], 10),
            table.records,
            Outcome(Generalization.of(table.records)),
        )
        for place, function in (
            ("anonflow.engine.partitions.solve_batch", solve_batch),
            (f"{module}.release.deal_rows", deal_rows),
            (f"{module}.release.draw_batch", draw_batch),
        ):
            stack.enter_context(mock.patch(place, function))
        stack.enter_context(mock.patch.object(schedulers._Sent, "send", sending))
        stack.enter_context(mock.patch.object(Executor, "stream", streaming))
        executor = stack.enter_context(Executor(session.scheduler, 2, events))
        before = peak()
        plan = plan_flow(flow, n, BoundaryClasses((), np.array([n], np.int64)), storage.order)
        (result,) = timed("solve", lambda: Partitions(session, storage, executor, plan, table).compute())
        assert result.ok
        context = ReleaseContext(
            table.schema, table.domains, tuple(table.frame.columns), {}, 10, "k-regular", "greedy", (), n, 0, bytes(16), "", "",
            MappedColumns("", pa.schema([]), n),
        )  # fmt: skip
        offsets, tallies = timed(
            "draw", lambda: release._draw(session, executor, plan.runs[0], context, NOWHERE, ())
        )
        assert [tally.checked for tally in tallies] == [plan.partitions] * 2
        calls = [Call(shuffle_bucket, (bucket,), "shuffle") for bucket in range(bucket_count(n))]
        buckets = timed("shuffle", lambda: executor.all(calls, context, offsets))
        assert len(buckets) == bucket_count(n)
    title = f"{n:,} records, {plan.partitions:,} partitions"
    early = peaks[0] if peaks else before
    rows = [each for phase in phases for each in phase.rows(title, plan.partitions)]
    return [
        *rows,
        row(f"{title}: client and scheduler, memory before", before, "MiB"),
        row(f"{title}: client and scheduler, peak memory after 200 tasks", early, "MiB"),
        row(
            f"{title}: client and scheduler, peak memory", peak(), "MiB", most=None if small else early + 256
        ),
    ]
