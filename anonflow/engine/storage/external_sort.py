"""A lexicographic order of a table that is in pieces: sort each, cut all at sampled rows, merge the cuts.

The order is that of :func:`anonflow.partition.lexicographic_order`, ties included: equal records stand in the order of
the table. A row is compared by its codes, the QI with the fewest values first, and at last by its position.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anonflow.engine.flows.fingerprint import Fingerprint
from anonflow.engine.storage.pieces import Piece, kept_rows, read_piece
from anonflow.engine.storage.scan import Coder
from anonflow.engine.storage.spill import as_numpy, read_batch, write_batches
from anonflow.partition import first_to_last, random_places
from anonflow.table import Domain, Records, Schema
from anonflow.table.files.read import exact_frame

__all__ = [
    "OTHER",
    "POSITION",
    "Ordered",
    "SortContext",
    "StoredRows",
    "class_sizes",
    "codes_of",
    "merge_range",
    "order_columns",
    "sort_piece",
    "splitters",
]

SAMPLE = 256
"""Rows of each piece that the cuts are chosen from."""

POSITION = "position"
_RANDOM = "random"
_CODE = "code:"
_BOUND = "bound:"
_LAYER = "layer"
OTHER = "other:"


def order_columns(
    order: str, domains: Sequence[Domain], bounded: bool, layered: bool = False
) -> tuple[str, ...]:
    """Return the columns that rows are compared by, the first first; those of boundary classes and layers before all others."""
    ends = [a for a, domain in enumerate(domains) if bounded and domain.bound is not None]
    compared = {
        "lexicographic": [f"{_CODE}{a}" for a in first_to_last(domains)],
        "random": [_RANDOM],
        "input": [],
    }[order]
    classes = [f"{_BOUND}{a}:{end}" for a in ends for end in (0, 1)] + [_LAYER] * layered
    return (*classes, *compared, POSITION)


def codes_of(rows: pa.Table | pa.RecordBatch) -> np.ndarray:
    """Return the codes of some rows, shape (m, q), int32, C-contiguous."""
    q = sum(name.startswith(_CODE) for name in rows.schema.names)
    codes = np.empty((rows.num_rows, q), np.int32)
    for a in range(q):
        codes[:, a] = rows.column(f"{_CODE}{a}").to_numpy()
    return codes


@dataclass(frozen=True, eq=False)
class SortContext:
    """The data that every task of a sort needs.

    Attributes
    ----------
    coders : sequence of Coder
    fingerprint : Fingerprint
        Of the source.
    bounds : mapping
        Coded QI -> the boundary of each of its codes, as :class:`~anonflow.table.Domain` has it.
    schema : Schema
    columns : tuple of str
        Those that are published.
    compared : tuple of str
        As :func:`order_columns` gives them.
    key : int or None
        Of a random order.
    layers : str or None
        The file with the layer of each position, where people have several rows.
    """

    coders: Sequence[Coder]
    fingerprint: Fingerprint
    bounds: Mapping[int, np.ndarray]
    schema: Schema
    columns: tuple[str, ...]
    compared: tuple[str, ...]
    key: int | None
    layers: str | None


def sort_piece(context: SortContext, piece: Piece, start: int, into: str) -> np.ndarray:
    """Code a piece, sort it, and write it to a file.

    Parameters
    ----------
    context : SortContext
    piece : Piece
    start : int
        Position of its first kept row in the table.
    into : str
        The file that is written.

    Returns
    -------
    numpy.ndarray, shape (s, number of compared columns), int64
        A sample of its rows.

    Raises
    ------
    DataError, OSError
        If it cannot be read or has changed, or the file cannot be written.
    """
    schema, columns, compared = context.schema, context.columns, context.compared
    table = read_piece(piece, columns, context.fingerprint.open, schema)
    qis = {coder.name for coder in context.coders}
    needed = [name for name in columns if schema[name].missing == "drop" or name in qis]
    frame = exact_frame(table.select(needed))
    kept = kept_rows(frame, schema)
    if not kept.all():
        frame, table = frame[kept], table.filter(pa.array(kept))
    codes = np.concatenate([coder.code(frame[coder.name]) for coder in context.coders], axis=1)
    rows = {f"{_CODE}{a}": np.ascontiguousarray(codes[:, a]) for a in range(codes.shape[1])}
    for name in compared:
        if name.startswith(_BOUND):
            a, end = map(int, name.removeprefix(_BOUND).split(":"))
            own, bound = rows[f"{_CODE}{a}"], context.bounds[a]
            rows[name] = np.where(own < 0, -1, bound[own, end]).astype(np.int64)
    if context.layers is not None:
        rows[_LAYER] = np.load(context.layers, mmap_mode="r")[start : start + len(codes)].astype(np.int64)
    if _RANDOM in compared:
        assert context.key is not None
        rows[_RANDOM] = random_places(context.key, start, len(codes))
    rows[POSITION] = np.arange(start, start + len(codes), dtype=np.int64)
    keys = [rows[name] for name in compared[:-1]]
    order = np.lexsort(keys[::-1]) if keys else np.arange(len(codes))
    others = {
        f"{OTHER}{name}": table.column(name).take(pa.array(order)) for name in columns if name not in qis
    }
    written = pa.table({**{name: pa.array(cells[order]) for name, cells in rows.items()}, **others})
    write_batches(into, written.combine_chunks().to_batches() or [_empty(written)])
    at = (
        order[np.linspace(0, len(order) - 1, min(SAMPLE, len(order))).astype(np.int64)]
        if len(order)
        else order
    )
    return np.stack([rows[name][at].astype(np.int64) for name in compared], axis=1)


def _empty(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=table.schema)


def splitters(samples: Sequence[np.ndarray], ranges: int) -> np.ndarray:
    """Return rows to cut at, so that about equally many rows lie between two.

    Parameters
    ----------
    samples : sequence of numpy.ndarray
        As :func:`sort_piece` gives them.
    ranges : int
        Number of ranges wanted.

    Returns
    -------
    numpy.ndarray, shape (at most ranges - 1, c), int64, ascending
    """
    rows = np.concatenate(samples)
    rows = rows[np.lexsort(rows.T[::-1])]
    at = np.unique(np.arange(1, ranges) * len(rows) // ranges)
    rows_at: np.ndarray = rows[at[at > 0]]
    return rows_at


def merge_range(
    files: Sequence[str], compared: Sequence[str], low: np.ndarray | None, high: np.ndarray | None, into: str
) -> tuple[int, np.ndarray, np.ndarray]:
    """Merge the rows of one range, in order.

    Parameters
    ----------
    files : sequence of str
        Sorted pieces, in the table's order.
    compared : sequence of str
    low, high : numpy.ndarray, shape (c,), int64, or None
        The first row of the range, and the first of the next; None at the ends.
    into : str
        The file that is written.

    Returns
    -------
    rows : int
        In the file.
    classes : numpy.ndarray, shape (c, b), int64
        The columns that distinguish its boundary classes and layers, in order.
    sizes : numpy.ndarray, shape (c,), int64
        Their rows.

    Raises
    ------
    OSError
        If a file cannot be read or written.
    """
    parts: list[pa.RecordBatch] = []
    for file in files:
        rows = read_batch(file)
        keys = [as_numpy(rows.column(name)) for name in compared]
        start = 0 if low is None else _place(keys, low)
        stop = rows.num_rows if high is None else _place(keys, high)
        if stop > start or not parts:
            parts.append(rows.slice(start, stop - start))
    table = pa.Table.from_batches(parts).combine_chunks()
    order = np.lexsort([table.column(name).to_numpy() for name in reversed(compared)])
    table = table.take(pa.array(order)).combine_chunks()
    write_batches(into, table.to_batches() or [_empty(table)])
    apart = sum(name.startswith(_BOUND) or name == _LAYER for name in compared)
    ends = np.empty((table.num_rows, apart), np.int64)
    for b in range(ends.shape[1]):
        ends[:, b] = table.column(compared[b]).to_numpy()
    starts = np.flatnonzero(np.append(True, (ends[1:] != ends[:-1]).any(axis=1))[: len(ends)])
    return table.num_rows, ends[starts], np.diff(np.append(starts, len(ends)))


def class_sizes(classes: Sequence[np.ndarray], sizes: Sequence[np.ndarray]) -> np.ndarray:
    """Return the rows of each boundary class of a table, from ranges that follow each other; a class may be in several."""
    keys, counts = np.concatenate(classes), np.concatenate(sizes)
    new = np.append(True, (keys[1:] != keys[:-1]).any(axis=1))[: len(keys)]
    return np.bincount(np.cumsum(new) - 1, counts).astype(np.int64)


def _place(keys: Sequence[np.ndarray], row: np.ndarray) -> int:
    """Return how many rows of a sorted piece come before a row; O(c log m)."""
    low, high = 0, len(keys[0])
    for key, value in zip(keys, row.tolist(), strict=True):
        part = key[low:high]
        low, high = (
            low + int(np.searchsorted(part, value, "left")),
            low + int(np.searchsorted(part, value, "right")),
        )
    return low


@dataclass(frozen=True)
class StoredRows:
    """Some rows of a table in order, in files.

    Attributes
    ----------
    parts : tuple of (str, int, int)
        File, first row, number of rows.
    """

    parts: tuple[tuple[str, int, int], ...]

    def table(self) -> pa.Table:
        """Return the rows with all their columns.

        Raises
        ------
        OSError
            If a file cannot be read.
        """
        batches = [read_batch(file).slice(first, count) for file, first, count in self.parts]
        return pa.Table.from_batches(batches).combine_chunks()

    def load(self, domains: tuple[Domain, ...]) -> tuple[np.ndarray, Records]:
        """Return their positions in the table, and the records.

        Raises
        ------
        OSError
            If a file cannot be read.
        """
        rows = self.table()
        return rows[POSITION].to_numpy(), Records(domains, codes_of(rows))


@dataclass(frozen=True)
class Ordered:
    """A table in order, in files one after the other.

    Attributes
    ----------
    files : tuple of str
    ends : tuple of int
        How many rows there are up to the end of each.
    """

    files: tuple[str, ...]
    ends: tuple[int, ...]

    def rows(self, start: int, stop: int) -> StoredRows:
        """Return the rows of some consecutive places."""
        parts = []
        at = bisect_right(self.ends, start)
        while start < stop:
            begin = self.ends[at - 1] if at else 0
            count = min(stop, self.ends[at]) - start
            if count:
                parts.append((self.files[at], start - begin, count))
            start, at = start + count, at + 1
        return StoredRows(tuple(parts))
