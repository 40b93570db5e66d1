"""A table in pieces on disk: read, coded and sorted piece by piece; what is made of it lies in files, too.

The source is read piece by piece (:mod:`pieces`, :mod:`scan`); each piece is coded and sorted, the pieces are merged into
one order (:mod:`external_sort`), results are kept in a file for each batch, and what is published is dealt to shuffle
buckets and shuffled there (:mod:`release`). No task holds more than a piece, a batch or a bucket,
and the client holds none. What is put aside lies in the owner's folder (:mod:`spill`), which all workers must reach, and
is gone afterwards.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pandas as pd

from anonflow.algorithms.method import Outcome
from anonflow.criteria.verification import Finding
from anonflow.engine.context import Session
from anonflow.engine.execution.batches import Batch, BatchDone, BatchFailed
from anonflow.engine.execution.plan import BoundaryClasses, FlowPlan, RunPlan
from anonflow.engine.execution.result import RunResult
from anonflow.engine.execution.schedulers import Call, Executor
from anonflow.engine.execution.tasks import PartitionResult, TaskSettings
from anonflow.engine.execution.totals import Totals
from anonflow.engine.flows.flow import Run
from anonflow.engine.owner.checkpoints import Checkpoints, domains_digest
from anonflow.engine.storage import external_sort, pieces, scan
from anonflow.engine.storage.class_buckets import add_classes, deal_classes
from anonflow.engine.storage.external_sort import Ordered
from anonflow.engine.storage.release import Buckets, draw
from anonflow.engine.storage.spill import Spill, save
from anonflow.errors import DataError
from anonflow.partition import bounded
from anonflow.release.draw import shelf_count
from anonflow.table import Domain, Records, Schema
from anonflow.table.frame import check_columns
from anonflow.utility.measures import MeasureRequest

__all__ = ["OnDisk", "Outline"]


@dataclass(frozen=True, eq=False)
class Outline:
    """A table without its records: what a report says of it.

    Attributes
    ----------
    n, dropped : int
        Records, and those left out for a missing value.
    columns : tuple of str
        The published ones, in the table's order.
    unnamed : tuple of str
        Columns of the source that the schema does not name.
    schema : Schema
    domains : tuple of Domain
    """

    n: int
    dropped: int
    columns: tuple[str, ...]
    unnamed: tuple[str, ...]
    schema: Schema
    domains: tuple[Domain, ...]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The columns, and no rows."""
        return pd.DataFrame(columns=pd.Index(self.columns, dtype="str"))


@dataclass(frozen=True)
class InFiles:
    """Where the results of a run are kept, and by which secret they are named.

    Attributes
    ----------
    folder : str
        A file for each batch.
    key : bytes
    fresh : bool
        Whether what is there is not used.
    spill : str
        Beginning of the names of files that are gone with the run.
    buckets : int
        That classes are dealt to, where they are measured.
    """

    folder: str
    key: bytes = field(repr=False)
    fresh: bool
    spill: str
    buckets: int

    def open(
        self, settings: TaskSettings, batch: Batch, domains: tuple[Domain, ...], parts: Sequence[Records]
    ) -> BatchFiles:
        """The results of a batch."""
        store = Checkpoints(Path(self.folder), self.key)
        names = store.names(settings, domains_digest(domains), parts, batch.first)
        file = Path(self.folder) / f"{hashlib.sha256(''.join(names).encode()).hexdigest()}.npz"
        there = {} if self.fresh else store.read(file, dict.fromkeys(names, domains))
        found = {p: there[name] for p, name in enumerate(names, batch.first) if name in there}
        return BatchFiles(self, store, batch, names, file, found)


@dataclass(frozen=True, eq=False)
class BatchFiles:
    """The results of a batch in their file.

    Attributes
    ----------
    place : InFiles
    store : Checkpoints
    batch : Batch
    names : sequence of str
        Of each partition's result.
    file : pathlib.Path
    found : mapping
        Partition -> what an earlier run left of it.
    """

    place: InFiles
    store: Checkpoints
    batch: Batch
    names: Sequence[str]
    file: Path
    found: Mapping[int, PartitionResult]

    def keep(self, results: Mapping[int, PartitionResult]) -> None:
        """Write the results, if there are new ones."""
        if results.keys() - self.found.keys():
            self.store.write(
                self.file, {self.names[p - self.batch.first]: each for p, each in results.items()}
            )

    def put(self, positions: np.ndarray, whole: Outcome, classes: Mapping[str, list[Any]]) -> bool:
        """Write the positions of suppressed records, and the classes; whether there are such records."""
        hidden = bool(whole.suppressed.any())
        if hidden:
            file = f"{self.place.spill}hidden-{self.batch.number}.npz"
            save(file, positions=np.sort(positions[whole.suppressed]))
        if classes:
            deal_classes(classes, f"{self.place.spill}classes-{self.batch.number}.arrow", self.place.buckets)
        return hidden


class OnDisk:
    """A table in pieces, and all that is made of it in files. Nothing here holds a record.

    Parameters
    ----------
    session : Session
    rows : int
        Of a piece.
    """

    outline: Outline

    def __init__(self, session: Session, rows: int) -> None:
        assert session.owner is not None
        session.owner.make()
        self._session = session
        self._flow = session.flow
        self._rows = rows
        self._spill = Spill(session.owner.path)
        self._executor: Executor
        self._batches: dict[int, int] = {}
        self._hidden: dict[int, list[int]] = {}
        self._orders: dict[tuple[str, bool], tuple[Ordered, np.ndarray]] = {}

    def __enter__(self) -> OnDisk:
        self._spill.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._spill.__exit__(kind, error, trace)

    # ------------------------------------------------------------------------------- load and sort

    def load(self, executor: Executor) -> Outline:
        """Read the source once: its domains, and what its other columns would tell.

        Raises
        ------
        DataError
            If it cannot be read or has changed, or no record is left.
        """
        self._executor = executor
        flow = self._flow
        schema, path = flow.schema, flow.source_path
        assert path is not None
        fingerprint = self._session.fingerprint
        fields = pieces.fields_of(path, flow.spec.table.source, fingerprint.open)
        check_columns(fields.names, schema)
        columns = tuple(name for name in fields.names if name in schema and schema[name].role != "identifier")
        self._fields = {name: fields.field(name).type for name in columns}
        self._pieces = self._cut_source(path, columns)
        looks = executor.all(
            [Call(scan.scan, (piece, schema, columns), "scan") for piece in self._pieces], fingerprint
        )
        if not looks:
            raise DataError("the table has no rows")
        self._starts = [0]
        whole = looks[0]
        for look in looks[1:]:
            self._starts.append(whole.kept)
            whole = whole.then(look)
        if not whole.rows:
            raise DataError("the table has no rows")
        if not whole.kept:
            raise DataError(
                "every record has a missing value that the schema drops; say missing: value or suppress"
            )
        self._found: scan.Found = whole
        with fingerprint.others_read():
            self._coders, domains = scan.coders(whole, schema)
        unnamed = tuple(name for name in fields.names if name not in schema)
        self.outline = Outline(whole.kept, whole.rows - whole.kept, columns, unnamed, schema, domains)
        return self.outline

    def _cut_source(self, path: Path, columns: tuple[str, ...]) -> list[pieces.Piece]:
        source = self._flow.spec.table.source
        opener = self._session.fingerprint.open
        found = None if source.parquet is None else pieces.parquet_pieces(path, self._rows, opener)
        if found is None:
            into = self._spill.file("source-")
            given = (str(path), source, columns, self._rows, into, opener)
            (found,) = self._executor.all([Call(pieces.rewrite, given, "rewrite")])
        assert found is not None
        return found

    def sample(self) -> Records:
        """A few records that have every value that the table has, column by column."""
        return scan.stand_in(self._coders, self.outline.domains, self._found)

    def refuse_early(self) -> None:
        """What needs the whole table was refused when this storage was chosen."""

    def boundary_classes(self) -> BoundaryClasses:
        """Who may be generalized together: counted in an order that the first run with boundaries needs."""
        table = self.outline
        names = bounded(Records(table.domains, np.empty((0, len(table.domains)), np.int32)))
        within = [run for run in self._flow.runs if run.anonymize.boundaries] if names else []
        if not within:
            return BoundaryClasses((), np.array([table.n], np.int64))
        return BoundaryClasses(names, self._sorted(within[0].partition.order, True)[1])

    def order(self, name: str, bounded: bool) -> Ordered:
        """The table in an order."""
        return self._sorted(name, bounded)[0]

    def _sorted(self, name: str, bounded: bool) -> tuple[Ordered, np.ndarray]:
        """Sort the pieces, and merge them; the rows of each boundary class."""
        if (name, bounded) in self._orders:
            return self._orders[name, bounded]
        table, executor, spill = self.outline, self._executor, self._spill
        compared = external_sort.order_columns(name, table.domains, bounded)
        begin = f"{name}-bounded" if bounded else name
        files = [spill.file(f"{begin}-piece-{p}.arrow") for p in range(len(self._pieces))]
        samples = executor.all(
            [
                Call(
                    external_sort.sort_piece,
                    (piece, start, table.schema, table.columns, compared, file),
                    "sort",
                )
                for piece, start, file in zip(self._pieces, self._starts, files, strict=True)
            ],
            self._coders,
            self._session.fingerprint,
            {a: domain.bound for a, domain in enumerate(table.domains) if domain.bound is not None},
        )
        cuts = external_sort.splitters(samples, -(-table.n // self._rows))
        ends = list(pairwise([None, *cuts, None]))
        merged = [spill.file(f"{begin}-range-{b}.arrow") for b in range(len(ends))]
        ranges = executor.all(
            [
                Call(external_sort.merge_range, (files, compared, low, high, into), "merge")
                for (low, high), into in zip(ends, merged, strict=True)
            ]
        )
        for file in files:
            os.unlink(file)
        counts, classes, sizes = zip(*ranges, strict=True)
        ordered = Ordered(tuple(merged), tuple(np.cumsum(counts).tolist()))
        self._orders[name, bounded] = ordered, external_sort.class_sizes(classes, sizes)
        return self._orders[name, bounded]

    # ------------------------------------------------------------------------------------- results

    def begin(self, plan: FlowPlan) -> None:
        """Make the folder of the results, which workers write themselves."""
        session = self._session
        resume_store = session.resume_store
        if resume_store is None:
            self._kept = self._spill.file("results"), os.urandom(32), False
        else:
            self._kept = *resume_store.begin(session.seed), resume_store.fresh
        for one in plan.runs:
            self._batches[one.run.number], self._hidden[one.run.number] = 0, []

    def place(self, one: RunPlan, batch: Batch) -> InFiles:
        """Where a task puts the results of a batch."""
        return self._place(one.run)

    def _place(self, run: Run) -> InFiles:
        folder, key, fresh = self._kept
        return InFiles(folder, key, fresh, self._spill.file(f"{run.number}-"), shelf_count(self.outline.n))

    def arrived(self, one: RunPlan, batch: Batch, done: BatchDone | BatchFailed) -> None:
        """Count the batch, and note whether it has suppressed records."""
        self._batches[one.run.number] += 1
        if isinstance(done, BatchDone) and done.put:
            self._hidden[one.run.number].append(batch.number)

    def class_calls(self, one: RunPlan, names: Sequence[str], ready: MeasureRequest) -> list[Call]:
        """A call for each bucket that classes were dealt to."""
        place = self._place(one.run)
        count = self._batches[one.run.number]
        return [
            Call(add_classes, (names, f"{place.spill}classes-", count, bucket), "measure")
            for bucket in range(place.buckets)
        ]

    def completed(self, one: RunPlan, totals: Totals, result: RunResult) -> RunResult:
        """The result as it is: what needs all rows at hand was refused."""
        return result

    def draw(
        self, executor: Executor, plan: FlowPlan, totals: Totals, result: RunResult
    ) -> tuple[tuple[Finding, ...], Buckets]:
        """Draw and verify batch by batch, deal the rows to buckets, and shuffle these."""
        (one,) = (one for one in plan.runs if one.run.number == result.number)
        hidden = sorted(self._hidden[result.number])
        return draw(
            self._session, executor, one, totals, result, self.outline,
            replace(self._place(one.run), fresh=False), hidden, self._fields, self._found,
        )  # fmt: skip
