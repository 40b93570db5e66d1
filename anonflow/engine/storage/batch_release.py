"""The tasks for a release of a table in pieces: draw and verify a batch, and distribute its rows to buckets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from anonflow.algorithms.method import Outcome
from anonflow.criteria.graph import covering
from anonflow.criteria.request import CriterionRequest as Criterion
from anonflow.criteria.verification import Finding
from anonflow.criteria.verify import verify
from anonflow.engine.context import Session
from anonflow.engine.execution.batches import (
    ROWS,
    Batch,
    Place,
    Tally,
    batches_of,
    joined,
    tallied,
    values_of_parts,
)
from anonflow.engine.execution.plan import RunPlan, settings_of
from anonflow.engine.execution.tasks import TaskSettings
from anonflow.engine.storage.arrays import OrderedRows, TableOrder, mapped
from anonflow.engine.storage.mapped_columns import MappedColumns
from anonflow.engine.storage.spill import deal, load, save
from anonflow.errors import AnonflowError
from anonflow.generalization import Generalization
from anonflow.release import Certificate, RandomWords, Release
from anonflow.release.draw import bucket_count
from anonflow.release.draw import deal as deal_positions
from anonflow.release.rows import GeneralizedRows, permute_suppressed
from anonflow.risk.attackers.people import chances_of_lists
from anonflow.system import open_descriptor, peak_memory
from anonflow.table import Domain, Records, Schema, Table, row_marks
from anonflow.table.files.read import exact_frame
from anonflow.table.identification.linkage import Candidates
from anonflow.table.row_marks import joint_codes

__all__ = [
    "CLASS",
    "LIST",
    "MARK",
    "POSITION",
    "SHOWN",
    "AttackedRows",
    "BatchDrawn",
    "ReleaseContext",
    "StoredBatch",
    "VerifiedRows",
    "attack_batch",
    "check_batch",
    "covering_batch",
    "deal_rows",
    "draw_batch",
    "draw_hidden",
    "hidden_positions",
    "named_batch",
    "pairs_of_batch",
    "stored_batches",
]

POSITION, MARK, CLASS, LIST = "position", "mark", "class", "list"
SHOWN = "shown:"


@dataclass(frozen=True, eq=False)
class ReleaseContext:
    """The data that every task of a release needs.

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
    criteria : tuple
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
    others : MappedColumns
    overall : mapping
        Column whose diversity is asked for -> how often each text occurs in the table.
    drawn : bool
        Whether the subject of the checks is a release; otherwise it is the method's outcome.
    units : str or None
        The file with the unit and the household of each position, if people have several rows.
    unit_rows : int
        Rows of the unit that has most of them.
    """

    schema: Schema
    domains: tuple[Domain, ...]
    columns: tuple[str, ...]
    kinds: Mapping[str, str]
    k: int
    guarantee: str
    algorithm: str
    criteria: tuple[Criterion, ...]
    n: int
    suppressed: int
    seed: bytes = field(repr=False)
    key: str = field(repr=False)
    spill: str
    others: MappedColumns
    overall: Mapping[str, Mapping[str, int]] = field(default_factory=dict, repr=False)
    drawn: bool = True
    units: str | None = None
    unit_rows: int = 1

    @property
    def dealt(self) -> str:
        """The file with the bucket of every row."""
        return f"{self.spill}dealt"

    @property
    def hidden(self) -> str:
        """The file with the assignment of other columns to suppressed rows."""
        return f"{self.spill}hidden.npz"

    @property
    def blanks(self) -> bool:
        """Whether suppressed records are so few that their other columns are hidden, too."""
        return 0 < self.suppressed < self.enough

    @property
    def enough(self) -> int:
        """Suppressed records of which other columns are published: no unit has more than 1/k of so many."""
        return self.k * self.unit_rows

    @property
    def words(self) -> RandomWords:
        """The words of the draw and of the shuffle."""
        return RandomWords(self.seed)

    def certificate(self, candidates: Candidates, **more: Any) -> Certificate:
        """Return the batch of some rows of the release."""
        return Certificate.of_candidates(self.k, self.guarantee, self.algorithm, candidates, **more)


@dataclass(frozen=True, eq=False)
class StoredBatch:
    """A batch of a run with the places of its rows and results: the input of a task.

    Attributes
    ----------
    settings : TaskSettings
    batch : Batch
    rows : OrderedRows
    place : Place
        Where its results are.
    """

    settings: TaskSettings
    batch: Batch
    rows: OrderedRows
    place: Place

    def outcome(self, domains: tuple[Domain, ...]) -> tuple[np.ndarray, Records, Outcome]:
        """Return the positions of its records in the table, the records, and the method's outcome.

        Raises
        ------
        AnonflowError
            If results are missing.
        """
        positions, records, values = self.rows.load(domains)
        parts = [records.take(at) for at in self.batch.parts]
        part_values = values_of_parts(self.settings, self.batch, values)
        results = self.place.open(self.settings, self.batch, domains, parts, part_values).resumed
        whole = [
            matched
            for _, matched in sorted(results.items())
            if part_values is None or matched.diverse is not None
        ]
        if len(whole) < len(parts):
            raise AnonflowError("results of this run are gone or damaged; run the flow again")
        outcomes = [matched.last for matched in whole]
        return positions, records, joined(self.batch, records, outcomes)[0]


def stored_batches(session: Session, run_plan: RunPlan, n: int, place: Place) -> Iterator[StoredBatch]:
    """Yield the batches of a run of n records in pieces."""
    order = run_plan.order
    assert isinstance(order, TableOrder)
    settings = settings_of(session.flow, run_plan, session.seed)
    for batch in batches_of(run_plan.cuts, n):
        yield StoredBatch(settings, batch, order.rows(batch.start, batch.stop), place)


@dataclass(frozen=True)
class BatchDrawn:
    """The summary of a drawn and verified batch that the client gets.

    Attributes
    ----------
    findings : tuple of Tally
    lists : int
        Classes; 0 where rows have lists of their own.
    memory : int
    hidden : dict
        Column whose diversity is asked for -> how often suppressed records have each text.
    hidden_units : numpy.ndarray, int64
        The units of the suppressed records, if people have several rows.
    """

    findings: tuple[Tally, ...]
    lists: int
    memory: int
    hidden: dict[str, dict[str, int]] = field(default_factory=dict)
    hidden_units: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))


def deal_rows(context: ReleaseContext) -> None:
    """Assign every row to a bucket, and write the assignment to a file.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    with os.fdopen(open_descriptor(context.dealt, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as stream:
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
    origin = permute_suppressed(positions, context.words)
    row = positions[np.argsort(origin)]  # row[t] is the row with the other columns of positions[t]
    save(context.hidden, positions=positions, row=row)


def hidden_positions(spill: str, batches: Sequence[int]) -> np.ndarray:
    """Return the positions of all suppressed records, ascending, int64.

    Raises
    ------
    OSError
        If a file cannot be read.
    """
    parts = [np.zeros(0, np.int64)]
    for number in batches:
        parts.append(load(f"{spill}hidden-{number}.npz")["positions"])
    return np.sort(np.concatenate(parts))


def draw_batch(context: ReleaseContext, stored: StoredBatch) -> BatchDrawn:
    """Draw a batch's assignment, verify its release, and distribute its rows to the buckets.

    Raises
    ------
    VerificationError
        If the matches are not regular.
    AnonflowError, OSError
        If files are gone, or cannot be written.
    """
    return _DrawnBatch(context, stored).dealt()


def check_batch(context: ReleaseContext, stored: StoredBatch) -> BatchDrawn:
    """Verify a method's outcome of a batch without a draw.

    Raises
    ------
    AnonflowError, OSError
        If files are gone.
    """
    return _DrawnBatch(context, stored).checked()


@dataclass(frozen=True, eq=False)
class AttackedRows:
    """Some published rows of a batch, not shuffled; positions are those among these rows.

    Attributes
    ----------
    shown : pandas.DataFrame, m rows
        The published rows.
    origin : numpy.ndarray, shape (m,), int64
        The original of each row's other columns. Suppressed rows look alike, so each has its own.
    candidates : Candidates or None
        Among which originals the one of each row is, where the method says it; of a suppressed row, see `suppressed`.
    positions : numpy.ndarray, shape (m,), int64
        Of the originals in the table.
    suppressed : numpy.ndarray, shape (m,), bool
        Rows whose candidates are all suppressed originals of the table.
    """

    shown: pd.DataFrame
    origin: np.ndarray
    candidates: Candidates | None
    positions: np.ndarray
    suppressed: np.ndarray


def attack_batch(context: ReleaseContext, stored: StoredBatch, partitions: np.ndarray | None) -> AttackedRows:
    """Return the rows of some of a batch's partitions with the truth, for attackers.

    Parameters
    ----------
    context : ReleaseContext
    stored : StoredBatch
    partitions : numpy.ndarray, int64, or None
        Their numbers: suppressed records are left out. None: all rows of the batch.

    Raises
    ------
    AnonflowError, OSError
        If files are gone.
    """
    return _DrawnBatch(context, stored).attacked(partitions)


def covering_batch(
    context: ReleaseContext, stored: StoredBatch, partitions: np.ndarray, codes: np.ndarray
) -> np.ndarray:
    """Return how many rows of a batch, without those of some partitions and hidden ones, cover each of some records, (m,), int64.

    Parameters
    ----------
    context : ReleaseContext
    stored : StoredBatch
    partitions : numpy.ndarray, int64
        Whose rows do not count.
    codes : numpy.ndarray, shape (m, q), int32

    Raises
    ------
    AnonflowError, OSError
        If files are gone.
    """
    drawn = _DrawnBatch(context, stored)
    counted = ~drawn.whole.suppressed
    counted[drawn.of_partitions(partitions)] = False
    return covering(Records(context.domains, codes), drawn.whole.generalization.take(np.flatnonzero(counted)))


def named_batch(context: ReleaseContext, stored: StoredBatch) -> tuple[np.ndarray, np.ndarray | None]:
    """Return positions of a batch's rows, and the probability with which a row that lists a person is that person's.

    Raises
    ------
    AnonflowError, OSError
        If files are gone.
    """
    drawn = _DrawnBatch(context, stored)
    whole = drawn.whole
    chance = chances_of_lists(
        whole.matches, whole.classes, whole.suppressed, context.suppressed, context.enough
    )
    return drawn.positions, chance


def pairs_of_batch(domains: tuple[Domain, ...], stored: StoredBatch, codes: str) -> int:
    """Return how many originals of the whole table a batch's generalized records cover in all; O(m n q / 64) for m of n.

    Parameters
    ----------
    domains : tuple of Domain
    stored : StoredBatch
    codes : str
        The file of the whole table's codes.

    Raises
    ------
    AnonflowError, OSError
        If files are gone.
    """
    generalization = stored.outcome(domains)[2].generalization
    # mapped anew for each part: what was read counts as memory of the process while it is mapped
    originals = (
        Records(domains, np.array(mapped(codes)[start : start + ROWS]))
        for start in range(0, len(mapped(codes)), ROWS)
    )
    return sum(int(covering(part, generalization).sum()) for part in originals)


class _DrawnBatch:
    """A batch's rows while they are distributed to the buckets."""

    def __init__(self, context: ReleaseContext, stored: StoredBatch) -> None:
        self.context = context
        self.batch, self.options = stored.batch, stored.settings.options
        self.positions, self.records, outcome = stored.outcome(context.domains)
        published = outcome.generalization.aggregated(self.records, outcome.classes, outcome.suppressed)
        self.whole = GeneralizedRows(
            published, outcome.matches, outcome.classes, outcome.suppressed, self.positions
        )
        self.kept = np.flatnonzero(~outcome.suppressed)
        self.hidden = np.flatnonzero(outcome.suppressed)

    def dealt(self) -> BatchDrawn:
        context, number = self.context, self.batch.number
        shown = self._shown(self.whole.origin(context.words))
        findings = self._verified(shown)
        place = self.positions.copy()
        if len(self.hidden):
            place[self.hidden] = self._hidden_rows()
        columns = {f"{SHOWN}{name}": _arrow(shown[name], context.kinds.get(name)) for name in context.columns}
        columns[POSITION] = pa.array(place)
        columns[MARK] = pa.array(row_marks(shown, list(shown.columns), context.key))
        labels = 0
        if self.whole.matches is not None:
            columns[LIST] = self._lists(self.whole.matches)
        elif self.whole.classes is not None:
            label, labels = self._classes(self.whole.classes, f"{context.spill}lists-{number}.npz")
            columns[CLASS] = pa.array(label)
        else:
            columns[CLASS] = pa.array(np.where(self.whole.suppressed, np.int32(-1), np.int32(0)))
        bucket = np.memmap(context.dealt, np.uint16, "r", shape=(context.n,))[place]
        deal(pa.table(columns), bucket, bucket_count(context.n), f"{context.spill}drawn-{number}.arrow")
        return BatchDrawn(findings, labels, peak_memory(), self._hidden_values(), self._hidden_units())

    def checked(self) -> BatchDrawn:
        """Return the verifier's findings without a draw."""
        return BatchDrawn(self._verified(None), 0, peak_memory(), self._hidden_values(), self._hidden_units())

    def of_partitions(self, partitions: np.ndarray) -> np.ndarray:
        """Return the rows of some partitions that are not suppressed."""
        parts = [self.batch.parts[p - self.batch.first] for p in partitions.tolist()]
        at = np.concatenate([np.zeros(0, np.int64), *parts])
        return at[~self.whole.suppressed[at]]

    def attacked(self, partitions: np.ndarray | None) -> AttackedRows:
        """Return some partitions, or all rows, as they are published."""
        at = np.arange(self.records.n) if partitions is None else self.of_partitions(partitions)
        origin = self.whole.origin(self.context.words)
        rank = np.full(len(self.positions), -1, np.int64)
        rank[at] = np.arange(len(at))
        return AttackedRows(
            self._shown(origin).iloc[at].reset_index(drop=True),
            rank[origin[at]],
            self._candidates(self.whole.take(at)),
            self.positions[at],
            self.whole.suppressed[at],
        )

    def _candidates(self, rows: GeneralizedRows) -> Candidates | None:
        """Return the candidates of rows, of suppressed ones those among these rows; None if the method does not list them."""
        if rows.matches is None and rows.classes is None:
            return None
        return rows.candidates(np.arange(len(rows.suppressed)))

    def _cells(self, name: str) -> pd.Series:
        cells: pd.Series = self._others[name]
        return cells

    @cached_property
    def _others(self) -> pd.DataFrame:
        """The cells of the other columns."""
        return exact_frame(self.context.others.take(tuple(self.context.kinds), self.positions))

    def _hidden_values(self) -> dict[str, dict[str, int]]:
        """Return how often the batch's suppressed records have each text of the columns whose diversity is asked for."""
        results = {}
        for name in self.context.overall:
            cells = self._cells(name).iloc[self.hidden]
            texts, codes, _ = joint_codes(cells, cells)
            counts = np.bincount(codes, minlength=len(texts)).tolist()
            results[name] = dict(zip(texts, counts, strict=True))
        return results

    def _units(self, at: np.ndarray) -> np.ndarray | None:
        """Return the units of some rows; None if each row counts as a person."""
        if self.context.units is None:
            return None
        return np.array(mapped(self.context.units)[0, self.positions[at]])

    def _hidden_units(self) -> np.ndarray:
        """Return the units of the batch's suppressed records."""
        units = self._units(self.hidden)
        return np.zeros(0, np.int64) if units is None else units

    def _hidden_rows(self) -> np.ndarray:
        """Return the rows in which the other columns of the batch's suppressed records are published; these rows have equal cells."""
        content = load(self.context.hidden)
        everybody, row = content["positions"], content["row"]
        hidden_rows: np.ndarray = row[np.searchsorted(everybody, self.positions[self.hidden])]
        return hidden_rows

    def _shown(self, origin: np.ndarray) -> pd.DataFrame:
        context = self.context
        return self.whole.shown(
            origin, context.columns, self._cells, hidden=context.blanks, kinds=context.kinds
        )

    def _verified(self, shown: pd.DataFrame | None) -> tuple[Tally, ...]:
        """Verify the partitions' rows against their originals, without suppressed rows, which say nothing.

        Rows with lists are verified together, which is faster; if that fails, by partitions, too, to count those that fail.
        """
        parts = [part[~self.whole.suppressed[part]] for part in self.batch.parts]
        parts = [part for part in parts if len(part)]
        if parts and (self.whole.matches is not None or self.whole.classes is not None):
            together = tuple(Tally.of(finding, len(parts)) for finding in self._check(self.kept, shown))
            if all(tally.holds for tally in together):
                return together
            by_part = tallied(self._check(part, shown) for part in parts)
            # what fails together never passes in parts
            return tuple(
                whole if own.holds and not whole.holds else own
                for whole, own in zip(together, by_part, strict=True)
            )
        return tallied(self._check(part, shown) for part in parts)

    def _check(self, at: np.ndarray, shown: pd.DataFrame | None) -> tuple[Finding, ...]:
        context, rows = self.context, self.whole.take(at)
        others = {name: self._cells(name).iloc[at].array for name in context.columns if name in context.kinds}
        units = self._units(at)
        table = Table.coded(self.records.take(at), context.schema, context.columns, others, units)
        criteria, certificate = list(context.criteria), None
        if shown is None:
            subject: Release | VerifiedRows = VerifiedRows.of(context, rows, self.options)
        else:
            candidates = self._candidates(rows)
            if candidates is not None:
                certificate = context.certificate(candidates)
            # the draw is known here: remarks about the order of a batch are not needed
            subject = Release(shown.iloc[at].reset_index(drop=True), certificate, at)
        return verify(table, subject, criteria, context.k, certificate, overall=context.overall).findings

    def _lists(self, matches: np.ndarray) -> pa.Array:
        """Return the originals of each row, ascending positions in the table; a suppressed row has none of its own."""
        listed = (matches >= 0) & ~self.whole.suppressed[:, None]
        candidates = Candidates.of_matches(np.where(listed, self.positions[np.where(listed, matches, 0)], -1))
        offsets, flat = candidates.offsets.astype(np.int32), candidates.originals.astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat))

    def _classes(self, classes: np.ndarray, lists: str) -> tuple[np.ndarray, int]:
        """Return the class of each row, -1 if suppressed; and the classes' members, in a file."""
        label = np.full(len(self.positions), -1, np.int32)
        kinds, member = np.unique(classes[self.kept], return_inverse=True)
        label[self.kept] = member
        own = self.positions[self.kept]
        order = np.lexsort([own, member])
        save(
            lists,
            originals=own[order].astype(np.int32),
            sizes=np.bincount(member, minlength=len(kinds)).astype(np.int64),
        )
        return label, len(kinds)


@dataclass(frozen=True, eq=False)
class VerifiedRows:
    """Some rows of a method's outcome in the verifier's form, not a release.

    Attributes
    ----------
    generalization : Generalization
    suppressed : numpy.ndarray, shape (m,), bool
    k : int
    guarantee : str
    parameters : dict
        The method's options.
    matches : numpy.ndarray, shape (m, w), int32, or None
    """

    generalization: Generalization
    suppressed: np.ndarray
    k: int
    guarantee: str
    parameters: dict[str, Any] = field(default_factory=dict)
    matches: np.ndarray | None = None

    @staticmethod
    def of(context: ReleaseContext, rows: GeneralizedRows, options: Mapping[str, Any]) -> VerifiedRows:
        """Return rows of a batch."""
        return VerifiedRows(
            rows.generalization, rows.suppressed, context.k, context.guarantee, dict(options), rows.matches
        )


def _arrow(cells: Any, kind: str | None) -> pa.Array:
    """Return published cells as an Arrow column: text without a kind."""
    types = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    array = pa.array(cells, from_pandas=True)
    return (array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array).cast(
        types.get(kind or "", pa.string())
    )
