"""What tasks do for a release of a table in pieces: draw and verify a batch, and deal its rows to buckets."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from anonflow.algorithms.method import Outcome
from anonflow.criteria.graph import covering
from anonflow.criteria.request import CriterionRequest as Criterion
from anonflow.criteria.verification import Finding
from anonflow.criteria.verify import verify
from anonflow.engine.execution.batches import Batch, Place, Tally, joined, tallied
from anonflow.engine.execution.tasks import TaskSettings, peak_memory
from anonflow.engine.storage.external_sort import OTHER, POSITION, StoredRows, codes_of
from anonflow.engine.storage.scan import Sketch
from anonflow.engine.storage.spill import deal, read_batch, save
from anonflow.errors import AnonflowError
from anonflow.release import Certificate, RandomWords, Release
from anonflow.release.draw import bucket_count, draw_assignment, permute_classes
from anonflow.release.draw import deal as deal_positions
from anonflow.release.publish import plain_values
from anonflow.table import Domain, Records, Schema, Table, row_marks
from anonflow.table.row_marks import joint_codes

if TYPE_CHECKING:
    pass

__all__ = [
    "CLASS",
    "LIST",
    "MARK",
    "SHOWN",
    "AttackedRows",
    "BatchDrawn",
    "ReleaseContext",
    "VerifiedRows",
    "attack_batch",
    "check_batch",
    "covering_batch",
    "deal_rows",
    "draw_batch",
    "draw_hidden",
    "hidden_positions",
    "pairs_of_batch",
]

MARK, CLASS, LIST = "mark", "class", "list"
SHOWN = "shown:"


@dataclass(frozen=True, eq=False)
class ReleaseContext:
    """What every task of a release needs to know.

    Attributes
    ----------
    schema : Schema
    domains : tuple of Domain
    columns : tuple of str
        The published ones, in the table's order.
    kinds : dict
        Other column -> what its cells are published as.
    k : int
    guarantee, algorithm : str
    asked : tuple
        Criteria that are checked batch by batch.
    n : int
        Records.
    suppressed : int
        How many of them are.
    seed : bytes
        A secret, of this table's draw.
    key : str
        Of the marks.
    spill : str
        Beginning of the names of files that are gone with the run.
    overall : mapping
        Column whose diversity is asked for -> how often each text occurs in the table.
    drawn : bool
        Whether what is checked is a release; else it is what the method made.
    together : tuple of str
        Other columns that may be unique together, those with the most values first.
    """

    schema: Schema
    domains: tuple[Domain, ...]
    columns: tuple[str, ...]
    kinds: Mapping[str, str]
    k: int
    guarantee: str
    algorithm: str
    asked: tuple[Criterion, ...]
    n: int
    suppressed: int
    seed: bytes = field(repr=False)
    key: str = field(repr=False)
    spill: str
    overall: Mapping[str, Mapping[str, int]] = field(default_factory=dict, repr=False)
    drawn: bool = True
    together: tuple[str, ...] = ()

    @property
    def dealt(self) -> str:
        """The file with the bucket of every row."""
        return f"{self.spill}dealt"

    @property
    def hidden(self) -> str:
        """The file that says which suppressed row carries whose other columns."""
        return f"{self.spill}hidden.npz"

    @property
    def blanks(self) -> bool:
        """Whether suppressed records are so few that their other columns are hidden, too."""
        return 0 < self.suppressed < self.k

    @property
    def words(self) -> RandomWords:
        """The words of the draw and of the shuffle."""
        return RandomWords(self.seed)


@dataclass(frozen=True)
class BatchDrawn:
    """What the client is told of a batch that was drawn and verified.

    Attributes
    ----------
    findings : tuple of Tally
    lists : int
        Classes; 0 where rows have lists of their own.
    memory : int
    hidden : dict
        Column whose diversity is asked for -> how often suppressed records have each text.
    together : sequence of Sketch
        Of the first of the columns that may be unique together, of the first two, and so on.
    """

    findings: tuple[Tally, ...]
    lists: int
    memory: int
    hidden: dict[str, dict[str, int]] = field(default_factory=dict)
    together: Sequence[Sketch] = ()


def deal_rows(context: ReleaseContext) -> None:
    """Deal every row to a bucket, into a file.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    with os.fdopen(os.open(context.dealt, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
        for block in deal_positions(context.n, context.words):
            stream.write(block.tobytes())


def draw_hidden(context: ReleaseContext, batches: Sequence[int]) -> None:
    """Permute the other columns of all suppressed records among them, into a file.

    Raises
    ------
    OSError
        If a file cannot be read or written.
    """
    positions = hidden_positions(context.spill, batches)
    origin = permute_classes(np.zeros(len(positions), np.int8), context.words, positions)
    row = np.empty_like(positions)
    row[origin] = positions  # row[t] is the row that carries the other columns of positions[t]
    save(context.hidden, positions=positions, row=row)


def hidden_positions(spill: str, batches: Sequence[int]) -> np.ndarray:
    """The positions of all suppressed records, ascending, int64.

    Raises
    ------
    OSError
        If a file cannot be read.
    """
    parts = [np.zeros(0, np.int64)]
    for number in batches:
        with np.load(f"{spill}hidden-{number}.npz") as content:
            parts.append(content["positions"])
    return np.sort(np.concatenate(parts))


def draw_batch(
    context: ReleaseContext, settings: TaskSettings, batch: Batch, rows: StoredRows, place: Place
) -> BatchDrawn:
    """Draw a batch's assignment, verify what would be published of it, and deal its rows to the buckets.

    Parameters
    ----------
    context : ReleaseContext
    settings : TaskSettings
    batch : Batch
    rows : StoredRows
    place : Place
        Where its results are.

    Returns
    -------
    BatchDrawn

    Raises
    ------
    VerificationError
        If the matches are not regular.
    AnonflowError, OSError
        If files are gone, or cannot be written.
    """
    return _loaded(context, settings, batch, rows, place).dealt(batch)


def check_batch(
    context: ReleaseContext, settings: TaskSettings, batch: Batch, rows: StoredRows, place: Place
) -> BatchDrawn:
    """Verify what a method made of a batch, where nothing is drawn; takes and raises what :func:`draw_batch` does."""
    return _loaded(context, settings, batch, rows, place).checked(batch, settings)


@dataclass(frozen=True, eq=False)
class AttackedRows:
    """Some partitions of a batch as they are published, in no random order; positions are those among these rows.

    Attributes
    ----------
    codes : numpy.ndarray, shape (m, q), int32
        Of the originals.
    others : dict
        Other column -> the originals' cells.
    shown : pandas.DataFrame, m rows
        The published rows.
    origin : numpy.ndarray, shape (m,), int64
        Whose other columns each row carries.
    matches : numpy.ndarray, shape (m, w), int64, or None
    classes : numpy.ndarray, shape (m,), int64, or None
    """

    codes: np.ndarray
    others: dict[str, pd.Series]
    shown: pd.DataFrame
    origin: np.ndarray
    matches: np.ndarray | None
    classes: np.ndarray | None


def attack_batch(
    context: ReleaseContext,
    settings: TaskSettings,
    batch: Batch,
    rows: StoredRows,
    place: Place,
    partitions: np.ndarray,
) -> AttackedRows:
    """The rows of some of a batch's partitions with the truth, for who attacks them.

    Parameters
    ----------
    context : ReleaseContext
    settings : TaskSettings
    batch : Batch
    rows : StoredRows
    place : Place
    partitions : numpy.ndarray, int64
        Their numbers. Suppressed records are left out.

    Raises
    ------
    AnonflowError, OSError
        If files are gone.
    """
    return _loaded(context, settings, batch, rows, place).attacked(batch, partitions)


def covering_batch(
    context: ReleaseContext,
    settings: TaskSettings,
    batch: Batch,
    rows: StoredRows,
    place: Place,
    partitions: np.ndarray,
    codes: np.ndarray,
) -> np.ndarray:
    """How many rows of a batch, but for those of some partitions, cover each of some records, shape (m,), int64.

    Parameters
    ----------
    context : ReleaseContext
    settings : TaskSettings
    batch : Batch
    rows : StoredRows
    place : Place
    partitions : numpy.ndarray, int64
        Of which only the suppressed records count.
    codes : numpy.ndarray, shape (m, q), int32

    Raises
    ------
    AnonflowError, OSError
        If files are gone.
    """
    drawn = _loaded(context, settings, batch, rows, place)
    counted = np.ones(drawn.records.n, bool)
    counted[drawn.of_partitions(batch, partitions)] = False
    made = drawn.whole.generalization.take(np.flatnonzero(counted))
    return covering(Records(context.domains, codes), made)


def pairs_of_batch(
    domains: tuple[Domain, ...],
    settings: TaskSettings,
    batch: Batch,
    rows: StoredRows,
    place: Place,
    files: Sequence[str],
) -> int:
    """How many originals of the whole table a batch's generalized records cover in all; O(m n q / 64) for m of n.

    Parameters
    ----------
    domains : tuple of Domain
    settings : TaskSettings
    batch : Batch
    rows : StoredRows
    place : Place
    files : sequence of str
        The whole table, in any order.

    Raises
    ------
    AnonflowError, OSError
        If files are gone.
    """
    _, made = _outcome(domains, settings, batch, rows.table(), place)
    found = 0
    for file in files:
        part = Records(domains, codes_of(read_batch(file)))
        found += int(covering(part, made.generalization).sum())
    return found


def _outcome(
    domains: tuple[Domain, ...], settings: TaskSettings, batch: Batch, table: pa.Table, place: Place
) -> tuple[Records, Outcome]:
    records = Records(domains, codes_of(table))
    there = place.open(settings, batch, domains, [records.take(at) for at in batch.parts]).found
    if len(there) < len(batch.bounds):
        raise AnonflowError("results of this run are gone or damaged; run the flow again")
    return records, joined(batch, records, [there[p].matched.outcome for p in sorted(there)])[0]


def _loaded(
    context: ReleaseContext, settings: TaskSettings, batch: Batch, rows: StoredRows, place: Place
) -> _DrawnBatch:
    table = rows.table()
    records, whole = _outcome(context.domains, settings, batch, table, place)
    return _DrawnBatch(context, table, records, whole)


class _DrawnBatch:
    """A batch's rows on their way to the buckets."""

    def __init__(self, context: ReleaseContext, rows: pa.Table, records: Records, whole: Outcome) -> None:
        self.context = context
        self.rows = rows
        self.positions = rows[POSITION].to_numpy()
        self.records = records
        self.whole = whole
        self.kept = np.flatnonzero(~whole.suppressed)
        self.hidden = np.flatnonzero(whole.suppressed)

    def dealt(self, batch: Batch) -> BatchDrawn:
        context = self.context
        shown = self._shown(self._origin())
        findings = self._verified(batch, shown)
        place = self.positions.copy()
        if len(self.hidden):
            place[self.hidden] = self._hidden_rows()
        columns = {f"{SHOWN}{name}": _arrow(shown[name], context.kinds.get(name)) for name in context.columns}
        columns[POSITION] = pa.array(place)
        columns[MARK] = pa.array(row_marks(shown, list(shown.columns), context.key))
        labels = 0
        if self.whole.matches is not None:
            columns[LIST] = self._lists()
        elif self.whole.classes is not None:
            label, labels = self._classes(f"{context.spill}lists-{batch.number}.npz")
            columns[CLASS] = pa.array(label)
        else:
            columns[CLASS] = pa.array(np.where(self.whole.suppressed, np.int32(-1), np.int32(0)))
        bucket = np.memmap(context.dealt, np.uint16, "r", shape=(context.n,))[place]
        deal(pa.table(columns), bucket, bucket_count(context.n), f"{context.spill}drawn-{batch.number}.arrow")
        together = Sketch.of_rows(
            [self.rows[f"{OTHER}{name}"].to_pandas() for name in context.together]
        ) if context.together else ()  # fmt: skip
        return BatchDrawn(tallied(findings), labels, peak_memory(), self._hidden_values(), together)

    def checked(self, batch: Batch, settings: TaskSettings) -> BatchDrawn:
        """What the verifier finds without a draw."""
        findings = self._verified(batch, None, settings.options)
        return BatchDrawn(tallied(findings), 0, peak_memory(), self._hidden_values())

    def of_partitions(self, batch: Batch, partitions: np.ndarray) -> np.ndarray:
        """The rows of some partitions that are not suppressed."""
        parts = [batch.parts[p - batch.first] for p in partitions.tolist()]
        at = np.concatenate([np.zeros(0, np.int64), *parts])
        return at[~self.whole.suppressed[at]]

    def attacked(self, batch: Batch, partitions: np.ndarray) -> AttackedRows:
        """Some partitions as they are published."""
        context, made = self.context, self.whole
        at, origin = self.of_partitions(batch, partitions), self._origin()
        rank = np.full(len(self.positions), -1, np.int64)
        rank[at] = np.arange(len(at))
        matches = None
        if made.matches is not None:
            given = made.matches[at]
            matches = np.where(given >= 0, rank[np.where(given >= 0, given, 0)], -1)
        return AttackedRows(
            np.ascontiguousarray(self.records.codes[at]),
            {name: self.rows[f"{OTHER}{name}"].to_pandas().iloc[at] for name in context.kinds},
            self._shown(origin).iloc[at].reset_index(drop=True),
            rank[origin[at]],
            matches,
            None if made.classes is None else made.classes[at],
        )

    def _hidden_values(self) -> dict[str, dict[str, int]]:
        """How often the batch's suppressed records have each text of the columns whose diversity is asked for."""
        found = {}
        for name in self.context.overall:
            cells = self.rows[f"{OTHER}{name}"].to_pandas().iloc[self.hidden]
            texts, codes, _ = joint_codes(cells, cells)
            counts = np.bincount(codes, minlength=len(texts)).tolist()
            found[name] = dict(zip(texts, counts, strict=True))
        return found

    def _origin(self) -> np.ndarray:
        """Whose other columns each row of the batch carries: suppressed rows their own, for now."""
        made, words = self.whole, self.context.words
        origin = np.arange(len(self.positions), dtype=np.int64)
        if made.matches is not None:
            return draw_assignment(made.matches, words, self.positions)
        if made.classes is not None and len(self.kept):
            at = permute_classes(made.classes[self.kept], words, self.positions[self.kept])
            origin[self.kept] = self.kept[at]
        return origin

    def _hidden_rows(self) -> np.ndarray:
        """Where the other columns of the batch's suppressed records are published: all of these rows look alike."""
        with np.load(self.context.hidden) as content:
            everybody, row = content["positions"], content["row"]
        found: np.ndarray = row[np.searchsorted(everybody, self.positions[self.hidden])]
        return found

    def _shown(self, origin: np.ndarray) -> pd.DataFrame:
        made, context = self.whole, self.context
        published = made.generalization.decode(suppressed=made.suppressed)
        hidden = made.suppressed if context.blanks else None
        columns: dict[str, Any] = {}
        for name in context.columns:
            if name in published.columns:
                columns[name] = published[name].array
                continue
            kind = context.kinds[name]
            cells = self.rows[f"{OTHER}{name}"].to_pandas()
            values = plain_values(cells, origin, hidden=hidden, name=name, text=kind == "text")
            columns[name] = np.asarray(values, np.float64) if kind == "float" else values
        return pd.DataFrame(columns, index=pd.RangeIndex(len(origin)))

    def _verified(
        self, batch: Batch, shown: pd.DataFrame | None, options: Mapping[str, Any] | None = None
    ) -> tuple[tuple[Finding, ...], ...]:
        """Rows that are not suppressed, against their originals: with their lists at once, else by partitions.

        The originals of these rows are among the batch's; rows that are suppressed say nothing.
        """
        made = self.whole
        if made.matches is not None or made.classes is not None:
            return (self._check(self.kept, shown, options),) if len(self.kept) else ()
        parts = [part[~made.suppressed[part]] for part in batch.parts]
        return tuple(self._check(part, shown, options) for part in parts if len(part))

    def _check(
        self, at: np.ndarray, shown: pd.DataFrame | None, options: Mapping[str, Any] | None
    ) -> tuple[Finding, ...]:
        context, made = self.context, self.whole
        others = {
            name: self.rows[f"{OTHER}{name}"].to_pandas().iloc[at].array
            for name in context.columns
            if name in context.kinds
        }
        table = Table.coded(self.records.take(at), context.schema, context.columns, others)
        if shown is None:
            subject = VerifiedRows(context, made, at, options or {})
            return verify(table, subject, list(context.asked), context.k, overall=context.overall).findings
        certificate = None
        rank = np.full(len(self.positions), -1, np.int32)
        rank[at] = np.arange(len(at), dtype=np.int32)
        if made.matches is not None:
            given = made.matches[at] >= 0
            flat = np.where(given, rank[np.where(given, made.matches[at], 0)], np.iinfo(np.int32).max)
            flat = np.sort(flat, axis=1)
            sizes = given.sum(axis=1)
            certificate = self._certificate(
                np.arange(len(at)), sizes, flat[np.arange(flat.shape[1]) < sizes[:, None]]
            )
        elif made.classes is not None:
            _, member = np.unique(made.classes[at], return_inverse=True)
            certificate = self._certificate(member, np.bincount(member), np.argsort(member, kind="stable"))
        frame = shown.iloc[at].reset_index(drop=True)
        # who drew it knows: what the order of a batch looks like is not asked
        release = Release(frame, certificate, at)
        return verify(
            table, release, list(context.asked), context.k, certificate, overall=context.overall
        ).findings

    def _certificate(self, member: np.ndarray, sizes: np.ndarray, flat: np.ndarray) -> Certificate:
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        context = self.context
        return Certificate(
            context.k, context.guarantee, context.algorithm, member.astype(np.int32), offsets,
            flat.astype(np.int32),
        )  # fmt: skip

    def _lists(self) -> pa.Array:
        """The originals of each row, ascending positions in the table; a suppressed row has none of its own."""
        assert self.whole.matches is not None
        matches = self.whole.matches
        given = (matches >= 0) & ~self.whole.suppressed[:, None]
        far = np.iinfo(np.int64).max
        lists = np.sort(np.where(given, self.positions[np.where(given, matches, 0)], far), axis=1)
        sizes = given.sum(axis=1)
        flat = lists[np.arange(lists.shape[1]) < sizes[:, None]].astype(np.int32)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat))

    def _classes(self, lists: str) -> tuple[np.ndarray, int]:
        """The class of each row, -1 if suppressed; and the classes' members, in a file."""
        assert self.whole.classes is not None
        label = np.full(len(self.positions), -1, np.int32)
        kinds, member = np.unique(self.whole.classes[self.kept], return_inverse=True)
        label[self.kept] = member
        own = self.positions[self.kept]
        order = np.lexsort([own, member])
        save(
            lists,
            originals=own[order].astype(np.int32),
            sizes=np.bincount(member, minlength=len(kinds)).astype(np.int64),
        )
        return label, len(kinds)


class VerifiedRows:
    """Some rows of a batch's outcome, none of them suppressed, as the verifier takes what a method made."""

    def __init__(
        self, context: ReleaseContext, whole: Outcome, at: np.ndarray, options: Mapping[str, Any]
    ) -> None:
        self.generalization = whole.generalization.take(at)
        self.suppressed = np.zeros(len(at), bool)
        self.k, self.guarantee, self.parameters = context.k, context.guarantee, dict(options)
        self.matches = None
        if whole.matches is not None:
            rank = np.full(len(whole.suppressed), -1, np.int32)
            rank[at] = np.arange(len(at), dtype=np.int32)
            given = whole.matches[at]
            self.matches = np.where(given >= 0, rank[np.where(given >= 0, given, 0)], -1)


def _arrow(cells: Any, kind: str | None) -> pa.Array:
    """Published cells as an Arrow column: text without a kind."""
    types = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    array = pa.array(cells, from_pandas=True)
    return (array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array).cast(
        types.get(kind or "", pa.string())
    )
