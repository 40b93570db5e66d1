"""Read the table of a flow batch by batch into files that are mapped: its columns as they were, and its codes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from anonflow.engine.context import Session
from anonflow.engine.execution.schedulers import Call
from anonflow.engine.flows import source
from anonflow.engine.flows.fingerprint import Fingerprint
from anonflow.engine.flows.flow import Flow
from anonflow.engine.storage.arrays import create_array, mapped, write_rows
from anonflow.engine.storage.mapped_columns import MappedColumns, written_columns
from anonflow.engine.storage.spill import Spill
from anonflow.errors import DataError
from anonflow.table import Schema, Table
from anonflow.table.arrow import exact_frame
from anonflow.table.domain import missing_cells
from anonflow.table.files.csv_reading import csv_batches
from anonflow.table.files.parquet_reading import parquet_batches, parquet_fields, plain_values
from anonflow.table.frame import check_columns
from anonflow.table.named_settings import NO_ROW_KEPT, NO_ROW_PREPARED
from anonflow.table.per_unit import check_recipes, check_unit_column
from anonflow.table.prepare import Preparation

TOGETHER = 1 << 18
"""Rows whose codes are written together."""


def load_of(session: Session, spill: Spill, rows: int) -> Table:
    """Return :func:`load` of a run; it ends where the run is cancelled.

    Raises
    ------
    AnonflowError
        As :func:`load`, and if a file cannot be written.
    """
    arguments = session.flow, session.fingerprint, session.seed, spill, rows, session.events.check
    return Call(load, arguments, "load").done()


def load(
    flow: Flow, fingerprint: Fingerprint, seed: int, spill: Spill, rows: int, check: Callable[[], None]
) -> Table:
    """Return the table of a flow; its columns and codes are mapped.

    Parameters
    ----------
    flow : Flow
    fingerprint : Fingerprint
        Of its files.
    seed : int
        The run's: rows beyond a cap are left out by it.
    spill : Spill
        Where the files are.
    rows : int
        That are read together.
    check : callable
        Called for each batch; what it raises ends the reading.

    Raises
    ------
    DataError, SchemaError, HierarchyError
        If it cannot be read, has changed, or does not go with its columns.
    OSError
        If a file cannot be written.

    Notes
    -----
    A batch is held at a time, or the columns that preparation steps name; then a column while it is coded. The rows of people
    with several rows are held while they are combined. What was read before such a treatment is deleted after it.
    """
    if flow.table is not None:
        # the caller's table keeps its codes in memory
        table = copy.copy(flow.table)
        table.records = replace(table.records, codes=_matrix(spill, table.n, list(table.codes.T)))
        return table
    schema, steps = flow.schema, flow.schema.preparation
    with source.problems_name_the_file(flow, fingerprint):
        fields, batches = _source(flow, fingerprint, rows)
        if flow.spec.table.units is not None:
            fields, batches = _of_units(flow, seed, spill, rows, fields, batches)
        source_rows, treated = None, []
        if steps:
            names = [name for name in fields.names if name in schema.needed]
            needed = pa.schema([fields.field(name) for name in names])
            raw = written_columns(spill.file("before"), needed, _checked_batches(batches(names), check))
            if not raw.rows:
                raise DataError("the table has no rows")
            source_rows, treated = raw.rows, [raw]
            fields, batches = _prepared_source(steps, raw, fields.names, rows)
        check_columns(fields.names, schema)
        names = [name for name in fields.names if name in schema]
        filter_ = _Filter(schema, names)
        columns = written_columns(
            spill.file("columns"),
            pa.schema([fields.field(name) for name in names]),
            filter_.rows(_checked_batches(batches(names), check)),
        )
        for before in treated:
            before.delete()
        if not columns.rows:
            nothing = NO_ROW_PREPARED if steps else "the table has no rows"
            raise DataError(NO_ROW_KEPT if filter_.read else nothing)
        with fingerprint.others_read():
            table = Table(columns.frame(), schema.prepared(), _matrix=partial(_matrix, spill))
    table.preparation = steps
    table.filtered = 0 if source_rows is None else source_rows - filter_.read
    table.dropped = filter_.read - columns.rows
    table.unnamed = tuple(name for name in fields.names if name not in schema)
    table.unpublished = tuple(name for name in fields.names if name not in table.frame.columns)
    return table


def _matrix(spill: Spill, n: int, codes: Sequence[np.ndarray]) -> np.ndarray:
    """Write columns of codes as rows of a file; return it, shape (n, q), int32."""
    file = spill.file("codes.npy")
    create_array(file, (n, len(codes)), np.int32)
    for start in range(0, n, TOGETHER):
        write_rows(file, start, np.stack([column[start : start + TOGETHER] for column in codes], axis=1))
    return mapped(file)


Batches = Callable[[Sequence[str] | None], Iterator[pa.RecordBatch]]
"""The batches of a source, with some of its columns or all."""


def _source(flow: Flow, fingerprint: Fingerprint, rows: int) -> tuple[pa.Schema, Batches]:
    """Return the columns of a flow's source, and its batches."""
    opener = fingerprint.open
    spec, path = flow.spec.table.source, flow.source_path
    frame = source.frame_of(flow, fingerprint)
    if frame is not None:
        return _of_table(held_table(frame), rows)
    if path is None:
        raise DataError("the flow names no source")
    if spec.parquet is not None:
        fields = parquet_fields(path, opener=opener, named=flow.needed)

        def of_files(names: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
            chosen = fields if names is None else pa.schema([fields.field(name) for name in names])
            yield from parquet_batches(path, chosen, rows, opener=opener)

        return plain_values(fields.empty_table()).schema, of_files
    parts = csv_batches(path, **spec.csv_form, opener=opener)
    first = next(parts)

    def of_csv(names: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        for batch in chain([first], parts):
            yield batch if names is None else batch.select(list(names))

    return first.schema, of_csv


def _of_table(table: pa.Table, rows: int) -> tuple[pa.Schema, Batches]:
    return table.schema, lambda names: iter(
        (table if names is None else table.select(names)).to_batches(rows)
    )


def _of_units(
    flow: Flow, seed: int, spill: Spill, rows: int, fields: pa.Schema, batches: Batches
) -> tuple[pa.Schema, Batches]:
    """Return the columns and batches of a source after the treatment of people with several rows."""
    units, schema = flow.spec.table.units, flow.schema
    assert units is not None
    names: list[str] = fields.names
    if units.recipes is not None:
        check_recipes(names, units.unit, units.recipes, units.rows)
        names = list(dict.fromkeys([units.unit, *units.recipes]))
    else:
        check_unit_column(names, units.unit)
        if not schema.preparation:
            names = [name for name in names if name in schema or name == units.unit]
    needed = pa.schema([fields.field(name) for name in names])
    columns = written_columns(spill.file("source"), needed, batches(names))
    if not columns.rows:
        raise DataError("the table has no rows")
    combined = held_table(source.per_unit(units, columns.frame(), seed))
    columns.delete()
    after, of_units = _of_table(combined, rows)
    return after if units.recipes is not None else fields, of_units


def _checked_batches(
    batches: Iterable[pa.RecordBatch], check: Callable[[], None]
) -> Iterator[pa.RecordBatch]:
    """Yield batches; `check` is called before each."""
    for batch in batches:
        check()
        yield batch


def _prepared_source(
    steps: Preparation, raw: MappedColumns, names: Sequence[str], rows: int
) -> tuple[pa.Schema, Batches]:
    """Return the columns and batches of a source after the preparation steps.

    The steps see whole columns, as in a table in memory: types and counts of cells that cannot be read are those of all rows.
    Only the columns that they name are held.

    Parameters
    ----------
    steps : Preparation
    raw : MappedColumns
        The columns that are needed.
    names : sequence of str
        Of all columns of the source.
    rows : int
        Of a batch.
    """
    named = [name for name in raw.fields.names if name in {step.column for step in steps.steps}]
    # columns that no step names only have their place in the frame, and take no memory
    cells, nothing = raw.frame(named), np.broadcast_to(np.int8(0), raw.rows)
    frame = pd.DataFrame({name: cells[name] if name in named else nothing for name in names}, copy=False)
    after = steps.apply(frame)
    place = after.index.to_numpy()
    changed = held_table(after[[name for name in after.columns if name in named or name not in names]])
    fields = pa.schema(
        [
            changed.schema.field(name)
            if name in changed.column_names
            else raw.fields.field(name)
            if name in raw.fields.names
            else pa.field(name, pa.null())
            for name in after.columns
        ]
    )

    def of_prepared(chosen: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        others = [name for name in chosen or fields.names if name not in changed.column_names]
        for start in range(0, len(place), rows):
            part = changed.slice(start, rows)
            other_columns = raw.take(others, place[start : start + rows]) if others else part
            columns = [
                (part if name in changed.column_names else other_columns).column(name)
                for name in chosen or fields.names
            ]
            yield from pa.table(columns, names=list(chosen or fields.names)).combine_chunks().to_batches()

    return fields, of_prepared


class _Filter:
    """Rows on their way into files: those without a value that is needed are left out.

    Attributes
    ----------
    read : int
        Rows so far.
    """

    def __init__(self, schema: Schema, names: Sequence[str]) -> None:
        self._schema = schema
        self._needed = [name for name in names if schema[name].missing == "drop"]
        self.read = 0

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what is left of each batch."""
        for batch in batches:
            self.read += batch.num_rows
            table = _without_empty_texts(pa.Table.from_batches([batch]), self._schema)
            if self._needed:
                cells = exact_frame(table.select(self._needed))
                missing = np.logical_or.reduce([missing_cells(cells[name]) for name in self._needed])
                table = table.filter(pa.array(~missing))
            yield from table.combine_chunks().to_batches()


def held_table(frame: pd.DataFrame) -> pa.Table:
    """Return a table in memory as an Arrow table of plain columns.

    Raises
    ------
    DataError
        If a column has values of several kinds, which no file could hold.
    """
    columns = {}
    for name in frame.columns:
        try:
            columns[str(name)] = pa.array(frame[name], from_pandas=True)
        except (pa.ArrowException, UnicodeError):
            raise DataError(
                f"column {str(name)!r}: has values of several kinds, which cannot be stored in pieces; make them "
                "of one kind, or set source.pieces to false"
            ) from None
    return plain_values(pa.table(columns))


def _without_empty_texts(table: pa.Table, schema: Schema) -> pa.Table:
    """Return the same as :class:`anonflow.table.Table` has it: what no CSV file can tell from a missing value is one."""
    for at, field in enumerate(table.schema):
        text = pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        if text and schema[field.name].empty_is_missing:
            cells = table.column(at)
            empty = pc.fill_null(pc.equal(cells, ""), False)
            if pc.any(empty).as_py():
                table = table.set_column(at, field, pc.if_else(empty, pa.scalar(None, field.type), cells))
    return table
