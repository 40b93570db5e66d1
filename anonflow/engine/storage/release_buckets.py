"""The release of a table in pieces: drawn, verified, shuffled and written without ever being in one place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from anonflow.criteria.request import read_criteria
from anonflow.criteria.verification import Finding
from anonflow.engine.context import Session
from anonflow.engine.execution.batches import Place, Tally, batches_of
from anonflow.engine.execution.plan import RunPlan, settings_of
from anonflow.engine.execution.result import RunResult
from anonflow.engine.execution.schedulers import Call, Executor
from anonflow.engine.execution.totals import Totals
from anonflow.engine.storage.draw_rows import (
    Bucket,
    ReleaseContext,
    deal_rows,
    draw_batch,
    draw_hidden,
    hidden_positions,
    shuffle_bucket,
)
from anonflow.engine.storage.scan import Found, published_kind, sketched
from anonflow.engine.storage.spill import read_batch
from anonflow.release import Certificate, RandomWords
from anonflow.release.certificate import versions
from anonflow.release.draw import shelf_count
from anonflow.release.tables import write_parts
from anonflow.table.marks import KEY_LENGTH

if TYPE_CHECKING:
    from anonflow.engine.storage.disk import InFiles, Outline

__all__ = ["Buckets", "draw"]


@dataclass(frozen=True, eq=False)
class Buckets:
    """A release in its buckets: shuffled, verified, and not yet written.

    Attributes
    ----------
    context : ReleaseContext
    kind : {"matches", "classes", "none"}
    buckets : sequence of Bucket
    batches : int
        That have files with the lists of classes, where there are classes.
    hidden : sequence of int
        Batches with suppressed records.
    """

    context: ReleaseContext
    kind: str
    buckets: Sequence[Bucket]
    batches: int
    hidden: Sequence[int]

    @property
    def release(self) -> None:
        """None: it is nowhere as a whole."""

    def attack(self) -> None:
        """Nobody was asked to attack: that was refused."""

    @property
    def _claims(self) -> list[str]:
        return [f"{self.context.spill}claims-{number}.npz" for number in range(len(self.buckets))]

    @property
    def _lists(self) -> list[str]:
        return [f"{self.context.spill}lists-{number}.npz" for number in range(self.batches)]

    def write_release(self, path: Path) -> None:
        """Write the published table; one bucket is held at a time.

        Raises
        ------
        DataError, AnonflowError
            If it cannot be written.
        """
        write_parts(
            path,
            (
                pa.Table.from_batches([read_batch(f"{self.context.spill}bucket-{number}.arrow")])
                for number in range(len(self.buckets))
            ),
        )

    def write_certificate(self, path: Path) -> None:
        """Write the owner's proof: as that of a release in memory.

        Raises
        ------
        DataError, AnonflowError
            If it cannot be written.
        """
        context, n = self.context, self.context.n
        nothing = np.zeros(0, np.int32)
        head = Certificate(
            context.k, context.guarantee, context.algorithm, nothing, np.zeros(1, np.int64), nothing,
            versions(), key=context.key,
        )  # fmt: skip
        suppressed = hidden_positions(context.spill, self.hidden)
        if self.kind == "matches":
            lists, entries = sum(b.lists for b in self.buckets), sum(b.originals for b in self.buckets)
        elif self.kind == "classes":
            lists, entries = sum(len(sizes) for sizes in self._of(self._lists, "sizes")), n - len(suppressed)
        else:
            lists, entries = 1, 0
        if len(suppressed):
            lists, entries = lists + 1, entries + len(suppressed)
        head.save_in_parts(
            path,
            {
                "row_list": (n, self._row_lists(lists, bool(len(suppressed)))),
                "list_offsets": (lists + 1, _ends(self._sizes(suppressed))),
                "list_originals": (entries, self._originals(suppressed)),
                "row_marks": (n, self._of(self._claims, "marks")),
            },
        )

    def _of(self, files: Iterable[str], name: str) -> Iterator[np.ndarray]:
        for file in files:
            with np.load(file) as content:
                yield content[name]

    def _row_lists(self, lists: int, suppressed: bool) -> Iterator[np.ndarray]:
        """The list of each row. Classes come after the suppressed records' list, rows' own lists before it."""
        if self.kind == "matches":
            used = 0
            for sizes in self._of(self._claims, "sizes"):
                own = sizes > 0
                yield np.where(own, used + np.cumsum(own) - 1, lists - 1)
                used += int(own.sum())
            return
        first, last = (int(suppressed), 0) if self.kind == "classes" else (0, 1)
        for label in self._of(self._claims, "label"):
            yield np.where(label < 0, last, label + first)

    def _sizes(self, suppressed: np.ndarray) -> Iterator[np.ndarray]:
        one = [np.array([len(suppressed)])] if len(suppressed) else []
        if self.kind == "classes":
            yield from one
            yield from self._of(self._lists, "sizes")
            return
        if self.kind == "matches":
            for sizes in self._of(self._claims, "sizes"):
                yield sizes[sizes > 0]
        else:
            yield np.zeros(1, np.int64)
        yield from one

    def _originals(self, suppressed: np.ndarray) -> Iterator[np.ndarray]:
        one = [suppressed] if len(suppressed) else []
        if self.kind == "classes":
            yield from one
            yield from self._of(self._lists, "originals")
            return
        if self.kind == "matches":
            yield from self._of(self._claims, "originals")
        yield from one


def _ends(sizes: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    total = 0
    yield np.zeros(1, np.int64)
    for part in sizes:
        ends = total + np.cumsum(part)
        if len(ends):
            total = int(ends[-1])
            yield ends


def draw(
    session: Session, executor: Executor, one: RunPlan, totals: Totals, result: RunResult, table: Outline,
    place: InFiles, hidden: Sequence[int], fields: Mapping[str, pa.DataType], found: Found,
) -> tuple[tuple[Finding, ...], Buckets]:  # fmt: skip
    """Draw and verify batch by batch, deal the rows to buckets, and shuffle these.

    Parameters
    ----------
    session : Session
    executor : Executor
    one : RunPlan
    totals : Totals
    result : RunResult
    table : Outline
    place : InFiles
        Where the results of batches are.
    hidden : sequence of int
        Batches with suppressed records.
    fields : mapping
        Published column -> its type in the source.
    found : Found

    Returns
    -------
    findings : tuple of Finding
    buckets : Buckets
        Shuffled, if every check passed.

    Raises
    ------
    AnonflowError
        If something cannot be drawn, or put aside.
    """
    context = _context(session, totals, result, table, place, fields, found)
    offsets, tallies = session.step(
        "draw", lambda: _draw(session, executor, one, context, place, hidden), result.number
    )
    findings = tuple(tally.finding() for tally in tallies)
    buckets: list[Bucket] = []
    if all(finding.holds for finding in findings):
        calls = [Call(shuffle_bucket, (b,), "shuffle") for b in range(shelf_count(context.n))]
        buckets = session.step("shuffle", lambda: executor.all(calls, context, offsets), result.number)
        for bucket in buckets:
            session.used(bucket.memory)
    return findings, Buckets(context, totals.kind, buckets, len(offsets), hidden)


def _context(
    session: Session, totals: Totals, result: RunResult, table: Outline, place: InFiles,
    fields: Mapping[str, pa.DataType], found: Found,
) -> ReleaseContext:  # fmt: skip
    schema = table.schema
    for told in sketched(found):
        session.warn(told)
    weak = totals.texts.get("warning")
    if weak:
        session.warn(weak)
    kinds = {
        name: published_kind(name, fields[name], found, 0 < totals.suppressed < result.k)
        for name in table.columns
        if schema[name].role != "quasi-identifier"
    }
    key = RandomWords(session.seed).lanes("marks", 0, 2 * KEY_LENGTH // 8).tobytes().hex()[:KEY_LENGTH]
    return ReleaseContext(
        schema, table.domains, table.columns, kinds, result.k, totals.guarantee, result.algorithm,
        tuple(read_criteria(session.flow.criteria, totals.guarantee)), table.n, totals.suppressed,
        session.seed, key, place.spill,
    )  # fmt: skip


def _draw(
    session: Session,
    executor: Executor,
    one: RunPlan,
    context: ReleaseContext,
    place: Place,
    hidden: Sequence[int],
) -> tuple[list[int], tuple[Tally, ...]]:
    """The number of each batch's first class, and what was found."""
    first = [Call(deal_rows, (), "deal")]
    if hidden:
        first.append(Call(draw_hidden, (hidden,), "draw"))
    executor.all(first, context)
    settings = settings_of(session.flow, one.run, session.seed)
    calls: Iterator[Call] = (
        Call(
            draw_batch,
            (settings, batch, one.order.rows(batch.start, batch.stop), place),
            "draw-verify",
            batch.number,
        )
        for batch in batches_of(one.cuts, context.n)
    )
    drawn: dict[int, Any] = {}
    for number, done in executor.answers(calls, context):
        drawn[number] = done
        session.used(done.memory)
    in_order = [drawn[number] for number in range(len(drawn))]
    tallies: tuple[Tally, ...] = ()
    for done in in_order:
        tallies = tuple(a.then(b) for a, b in zip(tallies, done.findings)) if tallies else done.findings
    return [0, *accumulate(done.lists for done in in_order)][:-1], tallies
