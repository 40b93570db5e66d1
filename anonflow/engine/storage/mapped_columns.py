"""The columns of a table in files that every task maps into memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow as pa

from anonflow.system import open_descriptor
from anonflow.table.arrow import exact_frame
from anonflow.table.forms.text_columns import text_type
from anonflow.table.records import places_in
from anonflow.threads import run_each


@dataclass(frozen=True)
class MappedColumns:
    """The columns of a table in files, each of them in one piece.

    Attributes
    ----------
    path : str
        Beginning of the files' names.
    fields : pyarrow.Schema
        Texts with offsets of 64 bits; of a column with a dictionary its numbers.
    rows : int
    dictionaries : mapping
        Column -> the texts that its numbers stand for, each once; -1 is a missing one.
    """

    path: str
    fields: pa.Schema
    rows: int
    dictionaries: Mapping[str, np.ndarray] = field(default_factory=dict)

    def table(self, names: Sequence[str] | None = None) -> pa.Table:
        """Return some columns, or all, numbers for texts of a dictionary: only what is looked at is read.

        Raises
        ------
        OSError
            If a file cannot be read.
        """
        chosen = range(len(self.fields)) if names is None else map(self.fields.get_field_index, names)
        columns = {self.fields.field(at).name: self._column(at) for at in chosen}
        return pa.table(columns) if columns else pa.table({})

    def frame(self, names: Sequence[str] | None = None) -> pd.DataFrame:
        """Return some columns, or all, as a frame.

        Texts stay in the files, and numbers of which none is missing (texts before pandas 3 do not). Other cells are copied:
        numbers with missing ones 8 bytes each; dates, decimals and truth values with missing ones as Python objects. Columns with a
        dictionary are categories, which stay in the files.

        Raises
        ------
        OSError
            If a file cannot be read.
        """
        frame = exact_frame(self.table(names), split_blocks=True)
        if not len(frame.columns):
            return pd.DataFrame(index=pd.RangeIndex(self.rows))
        coded = {
            name: pd.Categorical.from_codes(frame[name].to_numpy(), pd.Index(texts, dtype=text_type()))
            for name, texts in self.dictionaries.items()
            if name in frame.columns
        }
        return pd.DataFrame({**frame, **coded}, copy=False) if coded else frame

    def take(self, names: Sequence[str], positions: np.ndarray) -> pa.Table:
        """Return some columns of the rows at some positions, in their order; only these rows are read.

        Raises
        ------
        OSError
            If a file cannot be read.
        """
        # so that the files are read from their beginning to their end
        order = np.argsort(positions, kind="stable")
        place = places_in(order, len(order))
        ascending = pa.array(positions[order])
        return self.table(names).take(ascending).combine_chunks().take(pa.array(place))

    def delete(self) -> None:
        """Delete the files; what is mapped stays readable, and where a system keeps such files they go with their run."""
        for at in range(len(self.fields)):
            for ending in ("", "-ends", "-valid"):
                with suppress(OSError):
                    os.unlink(f"{self.path}-{at}{ending}")

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
    """Write record batches as columns, readable by the owner only. One batch is held at a time; its columns are written side by side.

    Parameters
    ----------
    path : str
        Beginning of the files' names.
    fields : pyarrow.Schema
        Of the batches: plain values, or dictionaries of texts; no lists.
    batches : iterable of pyarrow.RecordBatch

    Raises
    ------
    OSError
        If they cannot be written.
    """
    columns = [
        _CodedFile(f"{path}-{at}")
        if pa.types.is_dictionary(field.type)
        else _ColumnFiles(f"{path}-{at}", _stored_type(field.type))
        for at, field in enumerate(fields)
    ]
    rows = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for batch in batches:
            rows += batch.num_rows
            run_each(pool, lambda pair: pair[0].append(pair[1]), zip(columns, batch.columns, strict=True))
    for column in columns:
        column.finish()
    stored = pa.schema([field.with_type(column.kind) for field, column in zip(fields, columns, strict=True)])
    texts = {
        field.name: column.texts
        for field, column in zip(fields, columns, strict=True)
        if isinstance(column, _CodedFile)
    }
    return MappedColumns(path, stored, rows, texts)


class _CodedFile:
    """A column of texts while its cells are appended to a file as the numbers of these texts, -1 where one is missing.

    The numbers are as wide as pandas has them for as many categories, so that it need not copy them: a column with more texts than
    its numbers can hold is written again.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._place: dict[str, int] = {}
        self._width = np.dtype(np.int8)
        _append(file, np.zeros(0, np.uint8))

    @property
    def kind(self) -> pa.DataType:
        return pa.from_numpy_dtype(self._width)

    @property
    def texts(self) -> np.ndarray:
        return np.array([*self._place, None], object)[:-1]

    def append(self, cells: pa.DictionaryArray) -> None:
        place = [self._place.setdefault(text, len(self._place)) for text in cells.dictionary.to_pylist()]
        width = pd.Categorical.from_codes(np.zeros(0, np.int8), pd.RangeIndex(len(self._place))).codes.dtype
        # more texts than its numbers can count: the file is written again with wider ones, which happens twice at most
        if width != self._width:
            wider = np.fromfile(self._file, self._width).astype(width)
            os.truncate(self._file, 0)
            _append(self._file, wider)
            self._width = width
        at = cells.indices.fill_null(len(place)).to_numpy(zero_copy_only=False)
        _append(self._file, np.array([*place, -1], width)[at])

    def finish(self) -> None:
        """Nothing waits."""


class _ColumnFiles:
    """A column while its cells are appended to its files, which are open only then: a table may have thousands of columns."""

    def __init__(self, file: str, kind: pa.DataType) -> None:
        self._file, self.kind = file, kind
        self._valid, self._truths = _Bits(f"{file}-valid"), _Bits(file)
        self._missing = False
        self._size = 0
        if not pa.types.is_null(kind):
            _append(file, np.zeros(0, np.uint8))
        if _is_text(kind):
            _append(f"{file}-ends", np.zeros(1, np.int64))

    def append(self, cells: pa.Array) -> None:
        kind = self.kind
        if pa.types.is_null(kind) or not len(cells):
            return
        cells = cells.cast(kind)
        start, stop = cells.offset, cells.offset + len(cells)
        self._missing |= cells.null_count > 0
        self._valid.append(np.asarray(cells.is_valid()))
        if pa.types.is_boolean(kind):
            self._truths.append(cells.fill_null(False).to_numpy(zero_copy_only=False))
        elif _is_text(kind):
            _, ends, texts = cells.buffers()
            ends = np.frombuffer(ends, np.int64)[start : stop + 1]
            _append(f"{self._file}-ends", ends[1:] - ends[0] + self._size)
            if texts is not None:
                _append(self._file, np.frombuffer(texts, np.uint8)[ends[0] : ends[-1]])
            self._size += int(ends[-1] - ends[0])
        else:
            width = kind.bit_width // 8
            _append(self._file, np.frombuffer(cells.buffers()[1], np.uint8)[start * width : stop * width])

    def finish(self) -> None:
        self._truths.finish()
        self._valid.finish()
        # without a missing cell Arrow needs no file of which are there
        if not self._missing:
            with suppress(FileNotFoundError):
                os.unlink(f"{self._file}-valid")


class _Bits:
    """Bits that are appended to a file, eight to a byte; those that fill no byte yet wait."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._waiting = np.zeros(0, bool)

    def append(self, bits: np.ndarray) -> None:
        # batches have any number of rows, bytes have eight bits
        bits = np.concatenate([self._waiting, bits])
        full = len(bits) - len(bits) % 8
        _append(self._file, np.packbits(bits[:full], bitorder="little"))
        self._waiting = bits[full:].copy()

    def finish(self) -> None:
        if len(self._waiting):
            _append(self._file, np.packbits(self._waiting, bitorder="little"))


def _append(file: str, content: np.ndarray) -> None:
    with os.fdopen(open_descriptor(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "wb") as stream:
        stream.write(np.ascontiguousarray(content).data)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)


def _stored_type(kind: pa.DataType) -> pa.DataType:
    # the whole column is one array: its texts may exceed the 2 GiB of 32-bit ends
    if pa.types.is_string(kind):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary(kind) else kind


def _mapped(path: str) -> pa.Buffer:
    # an empty file cannot be mapped
    return pa.py_buffer(np.memmap(path, np.uint8, "r") if os.path.getsize(path) else b"")
