"""Choose the storage of a flow's table, in memory or in pieces on disk, and check that it is possible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from anonflow.engine.context import Session
from anonflow.engine.execution.schedulers import Call
from anonflow.engine.flows import source
from anonflow.engine.flows.fingerprint import Fingerprint
from anonflow.engine.flows.flow import Flow
from anonflow.engine.storage.load import load
from anonflow.engine.storage.spill import Spill
from anonflow.engine.storage.storage import Storage
from anonflow.errors import DataError
from anonflow.large_arrays import IN_MEMORY, Arrays
from anonflow.system import total_memory
from anonflow.table import Table
from anonflow.table.files.csv_reading import is_csv
from anonflow.table.files.opening import open_file
from anonflow.table.files.parquet_reading import parquet_files

ROWS = 1 << 18
"""Default number of rows that are read together."""

_CELL = 100
"""Bytes that a cell takes, from the file to the release, where a table is in memory."""

_TEXT = 30
"""How many times its size a CSV file takes in memory."""

MUCH = 1 << 30
"""Bytes that a table may take in memory where it is only looked at."""


def storage_of(session: Session) -> Storage:
    """Return the storage of a run's table.

    Raises
    ------
    DataError
        As :func:`pieces_of`.
    """
    return Storage(session, pieces_of(session.flow))


@contextmanager
def table_of(flow: Flow, seed: int) -> Iterator[Table]:
    """Yield the table of a flow: in memory, or mapped from temporary files where a run works on it in pieces.

    Raises
    ------
    DataError, SchemaError, HierarchyError
        If it cannot be read, or does not go with its columns.
    AnonflowError
        If it cannot be written.
    """
    rows, fingerprint = pieces_of(flow), Fingerprint.of(flow)
    if rows is None:
        yield source.read(flow, fingerprint, seed)
        return
    with Spill(None) as spill:
        yield Call(load, (flow, fingerprint, seed, spill, rows, lambda: None), "load").done()


@contextmanager
def arrays_for(path: Path | None) -> Iterator[Arrays]:
    """Yield where the arrays of a table in a file are made: in temporary files that are mapped, if they would take much memory.

    Raises
    ------
    AnonflowError
        If it cannot be written.
    """
    if path is None or _need(path, is_csv(path)) <= MUCH:
        yield IN_MEMORY
        return
    with Spill(None) as spill:
        yield spill


def pieces_of(flow: Flow) -> int | None:
    """Return the rows that are read together, if the flow's table is worked on in pieces; else None.

    It is where the source says ``pieces: N``, or where the table would take more memory than ``run: memory`` allows,
    half of the machine's without it; never with ``pieces: false``.

    Raises
    ------
    DataError
        If the source cannot be read.
    """
    source = flow.spec.table.source
    if source.pieces is False:
        return None
    if source.pieces is not None:
        return ROWS if source.pieces is True else source.pieces
    if flow.source_path is None or flow.table is not None or source.form not in ("csv", "parquet"):
        return None
    allowed = flow.spec.run.memory_bytes or _half_of_memory()
    return ROWS if _need(flow.source_path, source.csv is not None) > allowed else None


def text_in_memory() -> int:
    """Return the default size of the largest CSV file that is processed in memory, in bytes."""
    return _half_of_memory() // _TEXT


def _half_of_memory() -> int:
    return total_memory() // 2


def _need(path: Path, text: bool) -> int:
    """Return about how many bytes a table would take in memory."""
    if text:
        try:
            return path.stat().st_size * _TEXT
        except OSError:
            return 0  # the reader reports it
    try:
        footers = [pq.ParquetFile(open_file(file)).metadata for file in parquet_files(path)]
    except (pa.ArrowException, OSError, DataError):
        return 0
    return sum(columns.num_rows * columns.num_columns for columns in footers) * _CELL
