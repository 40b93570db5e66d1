"""The columns of a table in files that every task maps into memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa

from anonflow.system import open_descriptor
from anonflow.table.files.read import exact_frame

__all__ = ["MappedColumns", "written_columns"]


@dataclass(frozen=True)
class MappedColumns:
    """The columns of a table in files, each of them in one piece.

    Attributes
    ----------
    path : str
        Beginning of the files' names.
    fields : pyarrow.Schema
        Texts with offsets of 64 bits.
    rows : int
    """

    path: str
    fields: pa.Schema
    rows: int

    def table(self, names: Sequence[str] | None = None) -> pa.Table:
        """Return some columns, or all: only what is looked at is read.

        Raises
        ------
        OSError
            If a file cannot be read.
        """
        chosen = range(len(self.fields)) if names is None else map(self.fields.get_field_index, names)
        columns = {self.fields.field(at).name: self._column(at) for at in chosen}
        return pa.table(columns) if columns else pa.table({})

    def frame(self, names: Sequence[str] | None = None) -> pd.DataFrame:
        """Return some columns, or all, as a frame: numbers and texts stay in the files, unless some numbers are missing.

        Raises
        ------
        OSError
            If a file cannot be read.
        """
        frame = exact_frame(self.table(names), split_blocks=True)
        return frame if len(frame.columns) else pd.DataFrame(index=pd.RangeIndex(self.rows))

    def take(self, names: Sequence[str], positions: np.ndarray) -> pa.Table:
        """Return some columns of the rows at some positions, in their order; only these rows are read.

        Raises
        ------
        OSError
            If a file cannot be read.
        """
        order = np.argsort(
            positions, kind="stable"
        )  # so that the files are read from their beginning to their end
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        ascending = pa.array(positions[order])
        return self.table(names).take(ascending).combine_chunks().take(pa.array(place))

    def _column(self, at: int) -> pa.Array:
        kind = self.fields.field(at).type
        if pa.types.is_null(kind):
            return pa.nulls(self.rows)
        file = f"{self.path}-{at}"
        valid = _mapped(f"{file}-valid") if os.path.exists(f"{file}-valid") else None
        buffers = [valid, _mapped(file)]
        if _is_text(kind):
            buffers.insert(1, _mapped(f"{file}-ends"))
        return pa.Array.from_buffers(kind, self.rows, buffers)


def written_columns(path: str, fields: pa.Schema, batches: Iterable[pa.RecordBatch]) -> MappedColumns:
    """Write record batches as columns, readable by the owner only; one batch is held at a time, and a bit for each cell.

    Parameters
    ----------
    path : str
        Beginning of the files' names.
    fields : pyarrow.Schema
        Of the batches: plain values, no lists or dictionaries.
    batches : iterable of pyarrow.RecordBatch

    Raises
    ------
    OSError
        If they cannot be written.
    """
    fields = pa.schema([field.with_type(_stored_type(field.type)) for field in fields])
    writers = [_ColumnFiles(f"{path}-{at}", field.type) for at, field in enumerate(fields)]
    rows = 0
    try:
        for batch in batches:
            rows += batch.num_rows
            for column, writer in zip(batch.columns, writers, strict=True):
                writer.append(column)
        for writer in writers:
            writer.finish()
    finally:
        for writer in writers:
            writer.close()
    return MappedColumns(path, fields, rows)


class _ColumnFiles:
    """A column while its cells are appended to its files."""

    def __init__(self, file: str, kind: pa.DataType) -> None:
        self._file, self._kind = file, kind
        self._streams: dict[str, BinaryIO] = {}
        self._valid: list[np.ndarray] = []
        self._truths: list[np.ndarray] = []
        self._size = 0
        if not pa.types.is_null(kind):
            self._write("", np.zeros(0, np.uint8))
        if _is_text(kind):
            self._write("-ends", np.zeros(1, np.int64))

    def _write(self, ending: str, content: np.ndarray) -> None:
        if ending not in self._streams:
            descriptor = open_descriptor(f"{self._file}{ending}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            self._streams[ending] = os.fdopen(descriptor, "wb")
        self._streams[ending].write(np.ascontiguousarray(content).data)

    def append(self, cells: pa.Array) -> None:
        kind = self._kind
        if pa.types.is_null(kind) or not len(cells):
            return
        cells = cells.cast(kind)
        start, stop = cells.offset, cells.offset + len(cells)
        self._valid.append(np.asarray(cells.is_valid()))
        if pa.types.is_boolean(kind):
            self._truths.append(cells.fill_null(False).to_numpy(zero_copy_only=False))
        elif _is_text(kind):
            _, ends, texts = cells.buffers()
            ends = np.frombuffer(ends, np.int64)[start : stop + 1]
            self._write("-ends", ends[1:] - ends[0] + self._size)
            if texts is not None:
                self._write("", np.frombuffer(texts, np.uint8)[ends[0] : ends[-1]])
            self._size += int(ends[-1] - ends[0])
        else:
            width = kind.bit_width // 8
            self._write("", np.frombuffer(cells.buffers()[1], np.uint8)[start * width : stop * width])

    def finish(self) -> None:
        if self._truths:
            self._write("", np.packbits(np.concatenate(self._truths), bitorder="little"))
        if not all(part.all() for part in self._valid):
            self._write("-valid", np.packbits(np.concatenate(self._valid), bitorder="little"))

    def close(self) -> None:
        for stream in self._streams.values():
            stream.close()


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)


def _stored_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary(kind) else kind


def _mapped(path: str) -> pa.Buffer:
    return pa.py_buffer(np.memmap(path, np.uint8, "r") if os.path.getsize(path) else b"")
