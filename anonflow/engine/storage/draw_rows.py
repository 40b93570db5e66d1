"""What is published of a table in pieces: drawn and verified unit by unit, dealt to shelves, shuffled there."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from anonflow.criteria.request import Asked as Criterion
from anonflow.criteria.verification import Finding
from anonflow.criteria.verify import verify
from anonflow.engine.execution.tasks import Matched, Settings, peak_memory
from anonflow.engine.large.sorting import OTHER, POSITION, Ordered, codes_of
from anonflow.engine.large.spill import read_batch, write_batches
from anonflow.engine.large.units import Joined, Keep, Unit, UnitDone, join, results_of, save
from anonflow.errors import VerificationError
from anonflow.release import Certificate, RandomWords, Release
from anonflow.release.draw import deal, draw_assignment, permute_classes, permute_shelves, shelf_count
from anonflow.release.publish import plain_values
from anonflow.table import Domain, Records, Schema, Table, row_marks
from anonflow.table.domain import WHOLE

__all__ = [
    "Shelved",
    "Showing",
    "UnitReleased",
    "deal_rows",
    "draw_hidden",
    "hidden_positions",
    "release_unit",
    "shuffle_shelf",
]

_MARK, _CLASS, _LIST = "mark", "class", "list"
_SHOWN = "shown:"


@dataclass(frozen=True, eq=False)
class Showing:
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
        Criteria that are checked unit by unit.
    n : int
        Records.
    suppressed : int
        How many of them are.
    seed : int
        A secret.
    key : str
        Of the marks.
    dealt : str
        The file with the shelf of every row.
    hidden : str or None
        The file that says which suppressed row carries whose other columns.
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
    seed: int = field(repr=False)
    key: str = field(repr=False)
    dealt: str
    hidden: str | None

    @property
    def blanks(self) -> bool:
        """Whether suppressed records are so few that their other columns are hidden, too."""
        return 0 < self.suppressed < self.k

    @property
    def words(self) -> RandomWords:
        """The words of the draw and of the shuffle."""
        return RandomWords(self.seed)


@dataclass(frozen=True)
class UnitReleased:
    """What the client is told of a unit that was drawn and verified.

    Attributes
    ----------
    findings : tuple of tuple of Finding
    lists : int
        Classes; 0 where rows have lists of their own.
    memory : int
    """

    findings: tuple[tuple[Finding, ...], ...]
    lists: int
    memory: int


def deal_rows(n: int, seed: int, into: str) -> None:
    """Deal every row to a shelf, into a file.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    with os.fdopen(os.open(into, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
        for block in deal(n, RandomWords(seed)):
            stream.write(block.tobytes())


def draw_hidden(files: Sequence[str], seed: int, into: str) -> None:
    """Permute the other columns of all suppressed records among them, into a file.

    Raises
    ------
    OSError
        If a file cannot be read or written.
    """
    positions = hidden_positions(files)
    origin = permute_classes(np.zeros(len(positions), np.int8), RandomWords(seed), positions)
    row = np.empty_like(positions)
    row[origin] = positions  # row[t] is the row that carries the other columns of positions[t]
    save(into, positions=positions, row=row)


def hidden_positions(files: Sequence[str]) -> np.ndarray:
    """The positions of all suppressed records, ascending, int64.

    Raises
    ------
    OSError
        If a file cannot be read.
    """
    parts = [np.zeros(0, np.int64)]
    for file in files:
        with np.load(file) as content:
            parts.append(content["positions"])
    return np.sort(np.concatenate(parts))


def release_unit(
    showing: Showing, settings: Settings, ordered: Ordered, unit: Unit, done: UnitDone, keep: Keep,
    into: str, lists: str,
) -> UnitReleased:  # fmt: skip
    """Draw a unit's assignment, verify what would be published of it, and deal its rows to the shelves.

    Parameters
    ----------
    showing : Showing
    settings : Settings
    ordered : Ordered
    unit : Unit
    done : UnitDone
    keep : Keep
    into : str
        The file for the rows: a record batch for each shelf.
    lists : str
        The file for the lists of classes, where there are classes.

    Returns
    -------
    UnitReleased

    Raises
    ------
    VerificationError
        If the matches are not regular.
    AnonflowError, OSError
        If files are gone, or cannot be written.
    """
    rows = ordered.rows(unit.bounds[0][0], unit.bounds[-1][1])
    begin = unit.bounds[0][0]
    positions = rows[POSITION].to_numpy()
    records = Records(showing.domains, codes_of(rows))
    parts = [records.take(np.arange(start - begin, stop - begin)) for start, stop in unit.bounds]
    results = results_of(done.file, settings, showing.domains, unit, parts, keep)
    joined = join([one.matched.outcome for one in results if isinstance(one.matched, Matched)])
    return _Unit(showing, rows, positions, records, joined).release(unit, into, lists)


class _Unit:
    """A unit's rows on their way to the shelves."""

    def __init__(
        self, showing: Showing, rows: pa.Table, positions: np.ndarray, records: Records, joined: Joined
    ) -> None:
        self.showing = showing
        self.rows = rows
        self.positions = positions
        self.records = records
        self.joined = joined
        self.kept = np.flatnonzero(~joined.suppressed)
        self.hidden = np.flatnonzero(joined.suppressed)

    def release(self, unit: Unit, into: str, lists: str) -> UnitReleased:
        origin = self._origin()
        shown = self._shown(origin)
        findings = self._verified(unit, shown)
        place = self.positions.copy()
        if len(self.hidden):
            place[self.hidden] = self._hidden_rows()
        columns = {
            f"{_SHOWN}{name}": _arrow(shown[name], self.showing.kinds.get(name))
            for name in self.showing.columns
        }
        columns[POSITION] = pa.array(place)
        columns[_MARK] = pa.array(row_marks(shown, list(shown.columns), self.showing.key))
        labels = 0
        if self.joined.matches is not None:
            columns[_LIST] = self._lists()
        elif self.joined.classes is not None:
            label, labels = self._classes(lists)
            columns[_CLASS] = pa.array(label)
        else:
            columns[_CLASS] = pa.array(np.where(self.joined.suppressed, np.int32(-1), np.int32(0)))
        dealt = np.memmap(self.showing.dealt, np.uint16, "r", shape=(self.showing.n,))[place]
        shelves = shelf_count(self.showing.n)
        order = np.argsort(dealt, kind="stable")
        table = pa.table(columns).take(pa.array(order)).combine_chunks()
        whole = table.to_batches()[0]
        ends = np.cumsum(np.bincount(dealt, minlength=shelves))
        starts = np.concatenate([[0], ends[:-1]])
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        write_batches(into, [whole.slice(start, end - start) for start, end in pairs])
        return UnitReleased(findings, labels, peak_memory())

    def _origin(self) -> np.ndarray:
        """Whose other columns each row of the unit carries: suppressed rows their own, for now."""
        made, words = self.joined, self.showing.words
        origin = np.arange(len(self.positions), dtype=np.int64)
        if made.matches is not None:
            return draw_assignment(made.matches, words, self.positions)
        if made.classes is not None and len(self.kept):
            at = permute_classes(made.classes[self.kept], words, self.positions[self.kept])
            origin[self.kept] = self.kept[at]
        return origin

    def _hidden_rows(self) -> np.ndarray:
        """Where the other columns of the unit's suppressed records are published: all of these rows look alike."""
        assert self.showing.hidden is not None
        with np.load(self.showing.hidden) as content:
            everybody, row = content["positions"], content["row"]
        found: np.ndarray = row[np.searchsorted(everybody, self.positions[self.hidden])]
        return found

    def _shown(self, origin: np.ndarray) -> pd.DataFrame:
        made, showing = self.joined, self.showing
        published = made.generalization.decode(suppressed=made.suppressed)
        hidden = made.suppressed if showing.blanks else None
        columns: dict[str, Any] = {}
        for name in showing.columns:
            if name in published.columns:
                columns[name] = published[name].array
                continue
            kind = showing.kinds[name]
            cells = self.rows[f"{OTHER}{name}"].to_pandas()
            values = plain_values(cells, origin, hidden=hidden, name=name, text=kind == "text")
            columns[name] = np.asarray(values, np.float64) if kind == "float" else values
        return pd.DataFrame(columns, index=pd.RangeIndex(len(origin)))

    def _verified(self, unit: Unit, shown: pd.DataFrame) -> tuple[tuple[Finding, ...], ...]:
        """Rows that are not suppressed, against their originals: with their lists at once, else by partitions.

        The originals of these rows are among the unit's; rows that are suppressed say nothing.
        """
        made = self.joined
        if made.matches is not None or made.classes is not None:
            return (self._check(self.kept, shown),) if len(self.kept) else ()
        begin = unit.bounds[0][0]
        parts = [self.kept[(self.kept >= a - begin) & (self.kept < b - begin)] for a, b in unit.bounds]
        return tuple(self._check(part, shown) for part in parts if len(part))

    def _check(self, at: np.ndarray, shown: pd.DataFrame) -> tuple[Finding, ...]:
        showing, made = self.showing, self.joined
        others = {
            name: self.rows[f"{OTHER}{name}"].to_pandas().iloc[at].array
            for name in showing.columns
            if name in showing.kinds
        }
        table = Table.coded(self.records.take(at), showing.schema, showing.columns, others)
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
        release = Release(frame, certificate)
        return verify(table, release, list(showing.asked), showing.k, certificate).findings

    def _certificate(self, member: np.ndarray, sizes: np.ndarray, flat: np.ndarray) -> Certificate:
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        showing = self.showing
        return Certificate(
            showing.k, showing.guarantee, showing.algorithm, member.astype(np.int32), offsets,
            flat.astype(np.int32),
        )  # fmt: skip

    def _lists(self) -> pa.Array:
        """The originals of each row, ascending positions in the table; a suppressed row has none of its own."""
        assert self.joined.matches is not None
        matches = self.joined.matches
        given = (matches >= 0) & ~self.joined.suppressed[:, None]
        far = np.iinfo(np.int64).max
        lists = np.sort(np.where(given, self.positions[np.where(given, matches, 0)], far), axis=1)
        sizes = given.sum(axis=1)
        flat = lists[np.arange(lists.shape[1]) < sizes[:, None]].astype(np.int32)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat))

    def _classes(self, lists: str) -> tuple[np.ndarray, int]:
        """The class of each row, -1 if suppressed; and the classes' members, in a file."""
        assert self.joined.classes is not None
        label = np.full(len(self.positions), -1, np.int32)
        kinds, member = np.unique(self.joined.classes[self.kept], return_inverse=True)
        label[self.kept] = member
        own = self.positions[self.kept]
        order = np.lexsort([own, member])
        save(
            lists,
            originals=own[order].astype(np.int32),
            sizes=np.bincount(member, minlength=len(kinds)).astype(np.int64),
        )
        return label, len(kinds)


def _arrow(cells: Any, kind: str | None) -> pa.Array:
    """Published cells as an Arrow column: text without a kind."""
    types = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    array = pa.array(cells, from_pandas=True)
    return (array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array).cast(
        types.get(kind or "", pa.string())
    )


@dataclass(frozen=True)
class Shelved:
    """What the client is told of a shelf.

    Attributes
    ----------
    rows, lists, originals : int
        Rows; those with a list of their own, and how many originals these have in all.
    memory : int
    """

    rows: int
    lists: int
    originals: int
    memory: int


def shuffle_shelf(
    showing: Showing, shelf: int, files: Sequence[str], offsets: Sequence[int], into: str, claims: str
) -> Shelved:
    """Put a shelf's rows together, shuffle them, and see that they are the rows that were verified.

    Parameters
    ----------
    showing : Showing
    shelf : int
    files : sequence of str
        Of the units.
    offsets : sequence of int
        The number of each unit's first class.
    into : str
        The file for the published rows.
    claims : str
        The file for what the certificate says of them.

    Returns
    -------
    Shelved

    Raises
    ------
    VerificationError
        If rows are not those that were verified.
    OSError
        If a file cannot be read or written.
    """
    parts = []
    for file, offset in zip(files, offsets, strict=True):
        part = pa.Table.from_batches([read_batch(file, shelf)])
        if _CLASS in part.column_names:
            label = part[_CLASS].to_numpy().astype(np.int64)
            at = part.column_names.index(_CLASS)
            part = part.set_column(at, _CLASS, pa.array(np.where(label < 0, -1, label + offset)))
        parts.append(part)
    table = pa.concat_tables(parts).combine_chunks()
    order = np.argsort(table[POSITION].to_numpy(), kind="stable")
    members = np.arange(len(order), dtype=np.int64)
    bounds = np.array([0, len(order)], np.int64)
    order = order[permute_shelves(members, bounds, np.array([shelf], np.int64), showing.words)]
    table = table.take(pa.array(order)).combine_chunks()
    shown = table.select([f"{_SHOWN}{name}" for name in showing.columns]).rename_columns(
        list(showing.columns)
    )
    marks = table[_MARK].to_numpy()
    frame = shown.to_pandas()
    if (row_marks(frame, list(showing.columns), showing.key) != marks).any():
        raise VerificationError("rows changed on their way to the release; nothing was published")
    write_batches(into, shown.to_batches() or [pa.RecordBatch.from_pylist([], schema=shown.schema)])
    whole = np.logical_and.reduce(
        [(frame[name] == WHOLE).to_numpy(bool, na_value=False) for name in showing.schema.quasi_identifiers]
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
    save(claims, **kept)
    return Shelved(len(order), lists, originals, peak_memory())
