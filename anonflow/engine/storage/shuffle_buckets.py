"""The shuffle buckets of a release in pieces: combined, shuffled, and written one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from anonflow.engine.storage.batch_release import (
    CLASS,
    LIST,
    MARK,
    POSITION,
    SHOWN,
    ReleaseContext,
    hidden_positions,
)
from anonflow.engine.storage.spill import load, read_batch, save, write_batches
from anonflow.errors import VerificationError
from anonflow.release.certificate import versions
from anonflow.release.draw import permute_buckets
from anonflow.release.tables import has_returns, write_parts
from anonflow.system import peak_memory
from anonflow.table import row_marks
from anonflow.table.domain import WHOLE
from anonflow.table.identification.linkage import Candidates
from anonflow.table.metadata import ReleaseMetadata
from anonflow.table.row_marks import Content
from anonflow.table.spreadsheets import formula_cells

__all__ = ["Bucket", "Buckets", "shuffle_bucket"]


@dataclass(frozen=True)
class Bucket:
    """The summary of a bucket that the client gets.

    Attributes
    ----------
    rows, lists, originals : int
        Rows; those with a list of their own, and how many originals these have in all.
    memory : int
    formulas : int
        Cells that begin like a formula.
    content : Content
        Of its rows in their order.
    returns : bool
        Whether a text has a carriage return, for which all of a CSV file is quoted.
    """

    rows: int
    lists: int
    originals: int
    memory: int
    formulas: int = 0
    content: Content = field(default_factory=lambda: Content(0, 0))
    returns: bool = False


def shuffle_bucket(context: ReleaseContext, offsets: Sequence[int], bucket: int) -> Bucket:
    """Combine a bucket's rows, shuffle them, and check that they are the verified rows.

    Parameters
    ----------
    context : ReleaseContext
    offsets : sequence of int
        The number of each batch's first class.
    bucket : int

    Returns
    -------
    Bucket

    Raises
    ------
    VerificationError
        If rows are not those that were verified.
    OSError
        If a file cannot be read or written.
    """
    parts = []
    for number, offset in enumerate(offsets):
        part = pa.Table.from_batches([read_batch(f"{context.spill}drawn-{number}.arrow", bucket)])
        if CLASS in part.column_names:
            label = part[CLASS].to_numpy().astype(np.int64)
            at = part.column_names.index(CLASS)
            part = part.set_column(at, CLASS, pa.array(np.where(label < 0, -1, label + offset)))
        parts.append(part)
    table = pa.concat_tables(parts).combine_chunks()
    order = np.argsort(table[POSITION].to_numpy(), kind="stable")
    members = np.arange(len(order), dtype=np.int64)
    bounds = np.array([0, len(order)], np.int64)
    order = order[permute_buckets(members, bounds, np.array([bucket], np.int64), context.words)]
    table = table.take(pa.array(order)).combine_chunks()
    shown = table.select([f"{SHOWN}{name}" for name in context.columns]).rename_columns(list(context.columns))
    marks = table[MARK].to_numpy()
    frame = shown.to_pandas()
    if (row_marks(frame, list(context.columns), context.key) != marks).any():
        raise VerificationError("rows changed on their way to the release; nothing was published")
    write_batches(
        f"{context.spill}bucket-{bucket}.arrow",
        shown.to_batches() or [pa.RecordBatch.from_pylist([], schema=shown.schema)],
    )
    whole = np.logical_and.reduce(
        [(frame[name] == WHOLE).to_numpy(bool, na_value=False) for name in context.schema.quasi_identifiers]
    )
    kept: dict[str, np.ndarray] = {"marks": marks}
    lists = originals = 0
    if LIST in table.column_names:
        column = table[LIST].combine_chunks()
        flat = column.flatten().to_numpy()
        sizes = np.diff(column.offsets.to_numpy()).astype(np.int64)
        kept |= {"sizes": sizes, "originals": flat}
        lists, originals = int((sizes > 0).sum()), len(flat)
        suppressed = sizes == 0
    else:
        kept["label"] = table[CLASS].to_numpy()
        suppressed = kept["label"] < 0
    if (suppressed & ~whole).any():
        raise VerificationError("suppressed rows are not * throughout; nothing was published")
    save(f"{context.spill}claims-{bucket}.npz", **kept)
    return Bucket(
        len(order),
        lists,
        originals,
        peak_memory(),
        formula_cells(frame) - formula_cells(frame[:0]),
        Content.of(frame, list(context.columns)),
        has_returns(frame),
    )


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
    attacks : callable
        Tries the attackers of the flow.
    keep : callable
        Keeps in the owner's folder whom the release is about.
    """

    context: ReleaseContext
    kind: str
    buckets: Sequence[Bucket]
    batches: int
    hidden: Sequence[int]
    attacks: Callable[[], pd.DataFrame | None]
    keep: Callable[[], Path | None] = lambda: None

    @property
    def release(self) -> None:
        """None: it is never completely in memory."""

    def attack(self) -> pd.DataFrame | None:
        """Return how often attackers win against a sample of its people."""
        return self.attacks()

    def remember(self) -> Path | None:
        """Store marks of the released people in the owner's folder."""
        return self.keep()

    @property
    def content(self) -> Content:
        """The content of the rows, in their order."""
        whole = self.buckets[0].content
        for bucket in self.buckets[1:]:
            whole = whole.then(bucket.content)
        return whole

    @property
    def _claims(self) -> list[str]:
        return [f"{self.context.spill}claims-{number}.npz" for number in range(len(self.buckets))]

    @property
    def _lists(self) -> list[str]:
        return [f"{self.context.spill}lists-{number}.npz" for number in range(self.batches)]

    def write_release(self, path: Path) -> ReleaseMetadata | None:
        """Write the published table, one bucket after the other, and its description.

        Raises
        ------
        DataError, AnonflowError
            If it cannot be written.
        """
        context = self.context
        return write_parts(
            path,
            (
                pa.Table.from_batches([read_batch(f"{self.context.spill}bucket-{number}.arrow")])
                for number in range(len(self.buckets))
            ),
            any(bucket.returns for bucket in self.buckets),
            ReleaseMetadata.declared(context.schema, context.columns, context.guarantee, context.k),
        )

    def write_certificate(self, path: Path) -> None:
        """Write the owner's certificate, as for a release in memory.

        Raises
        ------
        DataError, AnonflowError
            If it cannot be written.
        """
        context, n = self.context, self.context.n
        head = context.certificate(Candidates.of_nobody(0), versions=versions(), key=context.key)
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
            yield load(file)[name]

    def _row_lists(self, lists: int, suppressed: bool) -> Iterator[np.ndarray]:
        """Yield the list of each row. Classes come after the suppressed records' list, rows' own lists before it."""
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
        counts = [np.array([len(suppressed)])] if len(suppressed) else []
        if self.kind == "classes":
            yield from counts
            yield from self._of(self._lists, "sizes")
            return
        if self.kind == "matches":
            for sizes in self._of(self._claims, "sizes"):
                yield sizes[sizes > 0]
        else:
            yield np.zeros(1, np.int64)
        yield from counts

    def _originals(self, suppressed: np.ndarray) -> Iterator[np.ndarray]:
        lists = [suppressed] if len(suppressed) else []
        if self.kind == "classes":
            yield from lists
            yield from self._of(self._lists, "originals")
            return
        if self.kind == "matches":
            yield from self._of(self._claims, "originals")
        yield from lists


def _ends(sizes: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    total = 0
    yield np.zeros(1, np.int64)
    for part in sizes:
        ends = total + np.cumsum(part)
        if len(ends):
            total = int(ends[-1])
            yield ends
