"""The release of a table in pieces: drawn and verified batch by batch, dealt to buckets, shuffled and written there.

It is never in one place. :func:`draw` is the client's part; the functions before it are what its tasks do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa

from anonflow.algorithms.method import Outcome
from anonflow.algorithms.seeds import derived_seed
from anonflow.criteria.diversity import of_one_class
from anonflow.criteria.graph import covering
from anonflow.criteria.request import DIVERSITY, read_criteria
from anonflow.criteria.request import CriterionRequest as Criterion
from anonflow.criteria.verification import Finding
from anonflow.criteria.verify import verify
from anonflow.engine.context import Session
from anonflow.engine.execution.batches import Batch, Place, Tally, batches_of, joined, tallied
from anonflow.engine.execution.plan import RunPlan, settings_of
from anonflow.engine.execution.result import RunResult
from anonflow.engine.execution.schedulers import Call, Executor
from anonflow.engine.execution.tasks import TaskSettings, peak_memory
from anonflow.engine.execution.totals import Totals
from anonflow.engine.publish import listed_sizes
from anonflow.engine.report.attacks import MOST, AttackedPart, attacked_part, is_attacked, sampled
from anonflow.engine.storage.external_sort import OTHER, POSITION, StoredRows, codes_of
from anonflow.engine.storage.scan import Found, Sketch, published_kind, sketched
from anonflow.engine.storage.spill import deal, read_batch, save, write_batches
from anonflow.errors import AnonflowError, VerificationError
from anonflow.generalization import Generalization
from anonflow.release import Certificate, RandomWords, Release
from anonflow.release.certificate import versions
from anonflow.release.columns import linked_in_sample, unique_together
from anonflow.release.draw import bucket_count, draw_assignment, permute_buckets, permute_classes
from anonflow.release.draw import deal as deal_positions
from anonflow.release.publish import plain_values
from anonflow.release.randomness import seed_of_table
from anonflow.release.tables import write_parts
from anonflow.table import Domain, Records, Schema, Table, row_marks
from anonflow.table.domain import WHOLE
from anonflow.table.row_marks import KEY_LENGTH, Content, joint_codes
from anonflow.table.spreadsheets import formula_cells, formula_sentence

if TYPE_CHECKING:
    from anonflow.engine.storage.batch_files import InFiles
    from anonflow.engine.storage.outline import Outline

__all__ = [
    "AttackedRows",
    "BatchDrawn",
    "Bucket",
    "Buckets",
    "ReleaseContext",
    "attack_batch",
    "check_batch",
    "check_made",
    "covering_batch",
    "deal_rows",
    "draw",
    "draw_batch",
    "draw_hidden",
    "hidden_positions",
    "pairs_of_batch",
    "shuffle_bucket",
]

_MARK, _CLASS, _LIST = "mark", "class", "list"
_SHOWN = "shown:"


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
        columns = {
            f"{_SHOWN}{name}": _arrow(shown[name], context.kinds.get(name)) for name in context.columns
        }
        columns[POSITION] = pa.array(place)
        columns[_MARK] = pa.array(row_marks(shown, list(shown.columns), context.key))
        labels = 0
        if self.whole.matches is not None:
            columns[_LIST] = self._lists()
        elif self.whole.classes is not None:
            label, labels = self._classes(f"{context.spill}lists-{batch.number}.npz")
            columns[_CLASS] = pa.array(label)
        else:
            columns[_CLASS] = pa.array(np.where(self.whole.suppressed, np.int32(-1), np.int32(0)))
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
            subject = _Made(context, made, at, options or {})
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


class _Made:
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


@dataclass(frozen=True)
class Bucket:
    """What the client is told of a bucket.

    Attributes
    ----------
    rows, lists, originals : int
        Rows; those with a list of their own, and how many originals these have in all.
    memory : int
    formulas : int
        Cells that begin like a formula.
    content : Content
        Of its rows in their order.
    """

    rows: int
    lists: int
    originals: int
    memory: int
    formulas: int = 0
    content: Content = field(default_factory=lambda: Content(0, 0))


def shuffle_bucket(context: ReleaseContext, offsets: Sequence[int], bucket: int) -> Bucket:
    """Put a bucket's rows together, shuffle them, and see that they are the rows that were verified.

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
        if _CLASS in part.column_names:
            label = part[_CLASS].to_numpy().astype(np.int64)
            at = part.column_names.index(_CLASS)
            part = part.set_column(at, _CLASS, pa.array(np.where(label < 0, -1, label + offset)))
        parts.append(part)
    table = pa.concat_tables(parts).combine_chunks()
    order = np.argsort(table[POSITION].to_numpy(), kind="stable")
    members = np.arange(len(order), dtype=np.int64)
    bounds = np.array([0, len(order)], np.int64)
    order = order[permute_buckets(members, bounds, np.array([bucket], np.int64), context.words)]
    table = table.take(pa.array(order)).combine_chunks()
    shown = table.select([f"{_SHOWN}{name}" for name in context.columns]).rename_columns(
        list(context.columns)
    )
    marks = table[_MARK].to_numpy()
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
    if _LIST in table.column_names:
        column = table[_LIST].combine_chunks()
        flat = column.flatten().to_numpy()
        sizes = np.diff(column.offsets.to_numpy()).astype(np.int64)
        kept |= {"sizes": sizes, "originals": flat}
        lists, originals = int((sizes > 0).sum()), len(flat)
        suppressed = sizes == 0
    else:
        kept["label"] = table[_CLASS].to_numpy()
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
    keep: Callable[[], None] = lambda: None

    @property
    def release(self) -> None:
        """None: it is nowhere as a whole."""

    def attack(self) -> pd.DataFrame | None:
        """How often attackers win against a sample of its people."""
        return self.attacks()

    def remember(self) -> None:
        """Keep in the owner's folder whom the release is about."""
        self.keep()

    @property
    def content(self) -> Content:
        """Of its rows in their order."""
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
    *, place: InFiles, hidden: Sequence[int], fields: Mapping[str, pa.DataType], found: Found,
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
    sample = _sample(session, executor, one, context, place)
    if sample is not None:
        for told in linked_in_sample(*sample, context.k):
            session.warn(told)
    buckets: list[Bucket] = []
    if all(finding.holds for finding in findings):
        calls = [Call(shuffle_bucket, (b,), "shuffle") for b in range(bucket_count(context.n))]
        buckets = session.step("shuffle", lambda: executor.all(calls, context, offsets), result.number)
        for bucket in buckets:
            session.used(bucket.memory)
        if session.flow.table_path is not None:
            names = formula_cells(pd.DataFrame(columns=list(context.columns)))
            formulas = names + sum(bucket.formulas for bucket in buckets)
            sentence = formula_sentence(formulas, session.flow.table_path)
            if sentence:
                session.warn(sentence)

    def attacks() -> pd.DataFrame | None:
        if not is_attacked(session.flow, context.n):
            return None
        return session.step(
            "attack",
            lambda: _attacked(session, executor, one, context, totals, result, place, sample),
            result.number,
        )

    return findings, Buckets(context, totals.kind, buckets, len(offsets), hidden, attacks)


def _attacked(
    session: Session,
    executor: Executor,
    one: RunPlan,
    context: ReleaseContext,
    totals: Totals,
    result: RunResult,
    place: Place,
    sample: tuple[Table, Release] | None,
) -> pd.DataFrame | None:
    """Attack a sample of partitions; without one, only what needs no sample."""
    part = None
    if sample is not None:
        table, release = sample
        elsewhere = np.zeros(table.n, np.int64)
        calls = _sample_calls(session, one, context, place, covering_batch, True, table.codes)
        for _, count in executor.answers(calls, context):
            elsewhere += count
        part = AttackedPart(table, release, elsewhere)
    sizes = listed_sizes(result.sizes, totals.kind, result.suppressed, result.k)
    return attacked_part(
        session.flow, session.fingerprint, part, totals.guarantee, sizes, result.k, session.seed
    )


def _sample_calls(
    session: Session,
    one: RunPlan,
    context: ReleaseContext,
    place: Place,
    function: Callable[..., Any],
    every: bool,
    *more: Any,
) -> Iterator[Call]:
    """Calls with the partitions of the sample that each batch has; of `every` batch, or of those that have some."""
    picked = sampled(len(one.cuts), context.n, session.seed)
    settings = settings_of(session.flow, one.run, session.seed)
    for batch in batches_of(one.cuts, context.n):
        own = picked[(picked >= batch.first) & (picked < batch.first + len(batch.bounds))]
        if every or len(own):
            rows = one.order.rows(batch.start, batch.stop)
            yield Call(function, (settings, batch, rows, place, own, *more), "attack", batch.number)


def _sample(
    session: Session, executor: Executor, one: RunPlan, context: ReleaseContext, place: Place
) -> tuple[Table, Release] | None:
    """Some partitions as they are published, in memory; None where a partition is too large for that."""
    if int(one.cuts.lengths[0][-1]) > MOST:
        return None
    calls = _sample_calls(session, one, context, place, attack_batch, False)
    found = dict(executor.answers(calls, context))
    attacked = [found[number] for number in sorted(found) if len(found[number].codes)]
    return _put_together(context, attacked, session.seed) if attacked else None


def _put_together(
    context: ReleaseContext, attacked: Sequence[AttackedRows], seed: int
) -> tuple[Table, Release]:
    """The sample as a table and its release, in random order."""
    starts = np.cumsum([0, *(len(each.codes) for each in attacked)])[:-1].tolist()
    records = Records(context.domains, np.concatenate([each.codes for each in attacked]))
    others = {
        name: pd.concat([each.others[name] for each in attacked], ignore_index=True).array
        for name in context.kinds
    }
    table = Table.coded(records, context.schema, context.columns, others)
    shown = pd.concat([each.shown for each in attacked], ignore_index=True)
    truth = np.concatenate([each.origin + start for each, start in zip(attacked, starts, strict=True)])
    order = np.random.default_rng(derived_seed(seed, "attacked rows")).permutation(len(truth))
    proof = None
    if all(each.matches is not None for each in attacked):
        lists = []
        for each, start in zip(attacked, starts, strict=True):
            assert each.matches is not None
            lists += [np.sort(row[row >= 0]) + start for row in each.matches]
        lists = [lists[row] for row in order.tolist()]
        proof = _proof(context, np.arange(len(lists)), lists)
    elif all(each.classes is not None for each in attacked):
        used, labels = 0, []
        for each in attacked:
            assert each.classes is not None
            own = np.unique(each.classes, return_inverse=True)[1]
            labels.append(own + used)
            used += int(own.max(initial=-1)) + 1
        label = np.concatenate(labels)
        members = np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])
        proof = _proof(context, label[order], members)
    return table, Release(shown.iloc[order].reset_index(drop=True), proof, truth[order])


def _proof(context: ReleaseContext, row_list: np.ndarray, lists: Sequence[np.ndarray]) -> Certificate:
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    return Certificate(
        context.k, context.guarantee, context.algorithm, row_list.astype(np.int32), offsets,
        np.concatenate(lists).astype(np.int32),
    )  # fmt: skip


def _context(
    session: Session, totals: Totals, result: RunResult, table: Outline, place: InFiles,
    fields: Mapping[str, pa.DataType], found: Found,
) -> ReleaseContext:  # fmt: skip
    schema = table.schema
    said, quiet = sketched(found)
    for told in said:
        session.warn(told)
    weak = totals.texts.get("warning")
    if weak:
        session.warn(weak)
    kinds = {
        name: published_kind(name, fields[name], found, 0 < totals.suppressed < result.k)
        for name in table.columns
        if schema[name].role != "quasi-identifier"
    }
    seed = seed_of_table(session.seed, found.content.to_bytes())
    key = RandomWords(seed).lanes("marks", 0, 2 * KEY_LENGTH // 8).tobytes().hex()[:KEY_LENGTH]
    return ReleaseContext(
        schema, table.domains, table.columns, kinds, result.k, totals.guarantee, result.algorithm,
        tuple(read_criteria(session.flow.criteria, totals.guarantee)), table.n, totals.suppressed,
        seed, key, place.spill, found.texts(), together=tuple(quiet) if len(quiet) > 1 else (),
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
    drawn: dict[int, BatchDrawn] = {}
    together: list[Sketch] = []
    for number, done in executor.answers(calls, context):
        session.used(done.memory)
        both = zip(together, done.together, strict=True)
        together = [one.then(other) for one, other in both] if together else list(done.together)
        drawn[number] = replace(done, together=())
    if together:
        unique, about = [one.alone for one in together], together[-1].level > 0
        for told in unique_together(context.together, unique, context.n, about):
            session.warn(told)
    in_order = [drawn[number] for number in range(len(drawn))]
    tallies: tuple[Tally, ...] = ()
    for done in in_order:
        tallies = tuple(a.then(b) for a, b in zip(tallies, done.findings)) if tallies else done.findings
    return [0, *accumulate(done.lists for done in in_order)][:-1], _with_hidden(context, in_order, tallies)


def check_made(
    session: Session, executor: Executor, one: RunPlan, totals: Totals, table: Outline, place: InFiles,
    found: Found, asked: Sequence[Criterion],
) -> tuple[Finding, ...]:  # fmt: skip
    """Check criteria that look at more than a partition's quasi-identifiers, of a run that is not drawn.

    Parameters
    ----------
    session : Session
    executor : Executor
    one : RunPlan
    totals : Totals
    table : Outline
    place : InFiles
        Where the results of batches are.
    found : Found
    asked : sequence of CriterionRequest

    Raises
    ------
    ParameterError, DataError
        As :func:`anonflow.verify`.
    AnonflowError
        If results are gone.
    """
    kinds = {name: "" for name in table.columns if table.schema[name].role != "quasi-identifier"}
    context = ReleaseContext(
        table.schema, table.domains, table.columns, kinds, one.run.anonymize.k, totals.guarantee,
        one.run.anonymize.algorithm, tuple(asked), table.n, totals.suppressed, b"", "", place.spill,
        found.texts(), False,
    )  # fmt: skip
    settings = settings_of(session.flow, one.run, session.seed)
    calls = (
        Call(
            check_batch,
            (settings, batch, one.order.rows(batch.start, batch.stop), place),
            "verify",
            batch.number,
        )
        for batch in batches_of(one.cuts, table.n)
    )
    checked = dict(executor.answers(calls, context))
    in_order = [checked[number] for number in range(len(checked))]
    tallies: tuple[Tally, ...] = ()
    for done in in_order:
        session.used(done.memory)
        tallies = tuple(a.then(b) for a, b in zip(tallies, done.findings)) if tallies else done.findings
    return tuple(tally.finding() for tally in _with_hidden(context, in_order, tallies))


def _with_hidden(
    context: ReleaseContext, batches: Sequence[BatchDrawn], tallies: tuple[Tally, ...]
) -> tuple[Tally, ...]:
    """The same with what is to be said of the suppressed records, which are one class wherever they lie."""
    if not context.suppressed:
        return tallies
    shown: dict[str, dict[str, int]] = {name: {} for name in context.overall}
    for done in batches:
        for name, counts in done.hidden.items():
            for text, count in counts.items():
                shown[name][text] = shown[name].get(text, 0) + count
    sensitive = [name for name in context.columns if context.schema[name].role == "sensitive"]
    findings: list[Finding | None] = []
    for one in context.asked:
        if one.name in DIVERSITY:
            given = one.parameters.get("column")
            findings += [
                of_one_class(one.name, one.parameters, name, shown[name], context.overall[name])
                if context.suppressed >= context.k
                else None
                for name in (sensitive if given is None else [str(given)])
            ]
        else:
            alone = one.name == "pattern" or not tallies
            findings.append(_of_suppressed(context, one) if alone else None)
    if not tallies:  # nobody else is there
        return tuple(Tally(own, 1, int(own.holds is True), own.failed) for own in findings if own is not None)
    return tuple(
        tally if own is None else tally.then(Tally(own, 1, int(own.holds is True), own.failed))
        for tally, own in zip(tallies, findings, strict=True)
    )


def _of_suppressed(context: ReleaseContext, asked: Criterion) -> Finding:
    """A criterion of the suppressed records' quasi-identifiers: all are alike, so that k of them say it."""
    few = min(context.suppressed, context.k)
    records = Records(context.domains, np.zeros((few, len(context.domains)), np.int32))
    everyone = np.ones(few, bool)
    made = Generalization.of(records).with_suppressed(everyone)
    nobody = _Made(context, Outcome(made, suppressed=everyone), np.arange(few), {})
    nobody.suppressed = everyone
    table = Table.coded(records, context.schema, (), {})
    (finding,) = verify(table, nobody, [asked], context.k).findings
    return replace(finding, failed=context.suppressed if finding.holds is False else 0)
