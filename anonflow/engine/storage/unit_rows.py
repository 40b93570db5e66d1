"""The treatment of people with several rows in a source in pieces, before everything else: a cap, or one row for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from anonflow.engine.execution.schedulers import Call, Executor
from anonflow.engine.flows.fingerprint import Fingerprint
from anonflow.engine.flows.spec import UnitsSpec
from anonflow.engine.storage.pieces import Piece, held_table, read_piece
from anonflow.engine.storage.scan import owner_hashes
from anonflow.engine.storage.spill import Spill, deal, read_batch, write_batches
from anonflow.engine.storage.unit_labels import refuse_many_rows
from anonflow.table.files.read import exact_frame, has_wide
from anonflow.table.per_unit import (
    check_recipes,
    check_unit_column,
    combined_rows,
    joint_number_type,
    kept_by_cap,
    number_type,
    refuse_blank_units,
    refuse_several,
)

__all__ = ["needed_columns", "rows_of_units"]


@dataclass(frozen=True, eq=False)
class _Look:
    """The content of a piece.

    Attributes
    ----------
    hashes : numpy.ndarray, shape (m,), uint64
        Of the unit of each row.
    blank : int
        Rows without one.
    numbers : dict
        Column with a recipe -> :func:`anonflow.table.per_unit.number_type`.
    missing, wide : frozenset of str
        Columns with cells without a value; with whole numbers that floats cannot hold.
    """

    hashes: np.ndarray
    blank: int
    numbers: Mapping[str, str | None]
    missing: frozenset[str]
    wide: frozenset[str]


@dataclass(frozen=True)
class _Whole:
    """The column types of the whole source, for reading a part of it.

    Attributes
    ----------
    numbers : dict
        The number types as which texts are read.
    missing, wide : frozenset of str
    """

    numbers: Mapping[str, str | None]
    missing: frozenset[str]
    wide: frozenset[str]

    def frame(self, table: pa.Table) -> pd.DataFrame:
        """Return rows as a frame, with the types that the frame of the whole source has."""
        frame = table.to_pandas()
        for at, field in enumerate(table.schema):
            if field.name not in self.missing:
                continue
            if field.name in self.wide:
                dtype = "UInt64" if pa.types.is_unsigned_integer(field.type) else "Int64"
                frame.isetitem(at, pd.array(table.column(at).to_pylist(), dtype=dtype))
            elif pa.types.is_integer(field.type):
                frame.isetitem(at, frame.iloc[:, at].astype(np.float64))
            elif pa.types.is_boolean(field.type):
                frame.isetitem(at, frame.iloc[:, at].astype(object))
        return frame


def needed_columns(units: UnitsSpec, names: Sequence[str]) -> list[str]:
    """Return the columns of a source that are read for its people.

    Raises
    ------
    DataError, ParameterError
        If one is missing, or a new column has the name of another.
    """
    if units.recipes is None:
        check_unit_column(names, units.unit)
        return list(names)
    check_recipes(names, units.unit, units.recipes, units.rows)
    return list(dict.fromkeys([units.unit, *units.recipes]))


def rows_of_units(
    executor: Executor,
    fingerprint: Fingerprint,
    spill: Spill,
    units: UnitsSpec,
    pieces: Sequence[Piece],
    columns: Sequence[str],
    rows: int,
    seed: int,
) -> tuple[list[Piece], pa.Schema]:
    """Return the rows after the treatment of people with several rows, the same as for a table in memory, and their columns.

    Parameters
    ----------
    executor : Executor
    fingerprint : Fingerprint
        Of the source.
    spill : Spill
    units : UnitsSpec
    pieces : sequence of Piece
        The source.
    columns : sequence of str
        As :func:`needed_columns` gives them.
    rows : int
        Of a piece.
    seed : int
        Of the rows that a cap leaves out.

    Returns
    -------
    pieces : list of Piece
        Arrow files.
    fields : pyarrow.Schema

    Raises
    ------
    DataError
        If it cannot be read or has changed, has too many rows, a unit is blank, or a column does not go with its recipe.

    Notes
    -----
    The client holds the unit of each row, 8 bytes a row, and for a while about 40. Units are distributed to buckets of
    about as many rows as a piece, in the order in which they first appear: bucket after bucket, they have the same
    order as in memory. A unit with more rows than that is a bucket of its own.
    """
    recipes = dict(units.recipes or {})
    refuse_many_rows(units.unit, sum(piece.rows for piece in pieces))
    if not pieces:
        added = [units.rows] if units.rows is not None else []
        return [], pa.schema([(name, pa.string()) for name in [*columns, *added]])
    looks: list[_Look] = executor.all(
        [Call(look, (piece, columns, units.unit, list(recipes)), "scan") for piece in pieces], fingerprint
    )
    refuse_blank_units(units.unit, sum(each.blank for each in looks))
    label = _by_first_place(np.concatenate([each.hashes for each in looks]))
    starts = np.cumsum([0, *(len(each.hashes) for each in looks)]).tolist()
    kept = np.ones(len(label), bool) if units.cap is None else kept_by_cap(label, units.cap, seed)
    if units.recipes is None:
        calls = [
            Call(
                take,
                (piece, columns, kept[start : start + piece.rows], spill.file(f"capped-{p}.arrow")),
                "cap",
            )
            for p, (piece, start) in enumerate(zip(pieces, starts, strict=False))
        ]
        capped: list[tuple[Piece, pa.Schema]] = executor.all(calls, fingerprint)
        return [piece for piece, _ in capped if piece.rows], capped[0][1]
    label[kept] = _by_first_place(label[kept])
    whole = _Whole(
        {name: joint_number_type(each.numbers[name] for each in looks) for name in recipes},
        frozenset().union(*(each.missing for each in looks)),
        frozenset().union(*(each.wide for each in looks)),
    )
    sizes = np.bincount(label[kept])
    bucket = (np.cumsum(sizes) - sizes) // rows
    buckets = int(bucket[-1]) + 1
    of_row = np.where(kept, bucket[label], -1)
    dealt = [spill.file(f"dealt-{p}.arrow") for p in range(len(pieces))]
    calls = [
        Call(deal_rows, (piece, columns, of_row[start : start + piece.rows], buckets, into), "deal")
        for p, (piece, start, into) in enumerate(zip(pieces, starts, dealt, strict=False))
    ]
    executor.all(calls, fingerprint)
    calls = [
        Call(combine, (dealt, number, units, whole, spill.file(f"units-{number}.arrow")), "combine")
        for number in range(buckets)
    ]
    combined: list[tuple[Piece, pa.Schema, dict[str, int]]] = executor.all(calls)
    refuse_several({name: sum(part[2][name] for part in combined) for name in combined[0][2]})
    fields = _joint_fields([part[1] for part in combined])
    executor.all(
        [Call(cast, (piece, fields), "cast") for piece, own, _ in combined if not own.equals(fields)]
    )
    return [piece for piece, _, _ in combined], fields


def look(
    fingerprint: Fingerprint, piece: Piece, columns: Sequence[str], unit: str, named: Sequence[str]
) -> _Look:
    """Scan a piece: the units of its rows, and the columns with recipes.

    Raises
    ------
    DataError
        If it cannot be read or has changed.
    """
    table = read_piece(piece, columns, fingerprint.open)
    frame = exact_frame(table.select(list(dict.fromkeys([unit, *named]))))
    hashes, blank = owner_hashes(frame[unit])
    return _Look(
        hashes,
        int(blank.sum()),
        {name: number_type(frame[name]) for name in named},
        frozenset(name for name in frame.columns if table.column(name).null_count),
        frozenset(
            name
            for name in frame.columns
            if str(table.schema.field(name).type) in ("int64", "uint64") and has_wide(table.column(name))
        ),
    )


def take(
    fingerprint: Fingerprint, piece: Piece, columns: Sequence[str], kept: np.ndarray, into: str
) -> tuple[Piece, pa.Schema]:
    """Write the rows of a piece that a cap keeps; return them as a piece, and their columns.

    Raises
    ------
    DataError, OSError
        If it cannot be read or has changed, or the file cannot be written.
    """
    table = read_piece(piece, columns, fingerprint.open).filter(pa.array(kept)).combine_chunks()
    return _written(table, into), table.schema


def deal_rows(
    fingerprint: Fingerprint,
    piece: Piece,
    columns: Sequence[str],
    bucket: np.ndarray,
    buckets: int,
    into: str,
) -> None:
    """Distribute the rows of a piece to the buckets of their units; -1 for rows that a cap leaves out.

    Raises
    ------
    DataError, OSError
        If it cannot be read or has changed, or the file cannot be written.
    """
    table = read_piece(piece, columns, fingerprint.open)
    kept = bucket >= 0
    table = table.filter(pa.array(kept))
    if table.num_rows:
        deal(table, bucket[kept], buckets, into)
    else:
        empty = pa.RecordBatch.from_pylist([], schema=table.schema)
        write_batches(into, [empty] * buckets)


def combine(
    dealt: Sequence[str], number: int, units: UnitsSpec, whole: _Whole, into: str
) -> tuple[Piece, pa.Schema, dict[str, int]]:
    """Write one row for each unit of a bucket; return them as a piece, their columns, and the units with several values.

    Raises
    ------
    DataError, OSError
        If a column does not go with its recipe, or a file cannot be read or written.
    """
    frame = whole.frame(pa.Table.from_batches([read_batch(file, number) for file in dealt]))
    assert units.recipes is not None
    label = np.asarray(pd.factorize(frame[units.unit])[0], np.int64)
    rows, several = combined_rows(frame, label, units.unit, units.recipes, units.rows, whole.numbers)
    table = held_table(rows).combine_chunks()
    return _written(table, into), table.schema, several


def cast(piece: Piece, fields: pa.Schema) -> None:
    """Write a piece again with the column types of the whole source: a column without values has no type of its own.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    batch = read_batch(piece.path)
    columns = [pa.array(column.to_pylist(), field.type) for column, field in zip(batch, fields, strict=True)]
    write_batches(piece.path, [pa.RecordBatch.from_arrays(columns, schema=fields)])


def _written(table: pa.Table, into: str) -> Piece:
    """Write a table of one batch; return it as a piece."""
    write_batches(into, table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)])
    return Piece(into, None, table.num_rows)


def _by_first_place(labels: np.ndarray) -> np.ndarray:
    """Return labels 0.. in the order in which they first appear, shape (n,), int64."""
    _, first, label = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[label]


def _joint_fields(parts: Sequence[pa.Schema]) -> pa.Schema:
    """Return the columns of several parts: of types that a part without any value of a column does not know."""
    fields = []
    for at, field in enumerate(parts[0]):
        types = [part.field(at).type for part in parts if not pa.types.is_null(part.field(at).type)]
        fields.append(field.with_type(types[0] if types else pa.string()))
    return pa.schema(fields)
