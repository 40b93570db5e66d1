"""Choose the storage of a flow's table, in memory or in pieces on disk, and check that it is possible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from anonflow import utility
from anonflow.criteria.guarantee import promises_classes
from anonflow.criteria.registry import CRITERIA
from anonflow.criteria.request import read_criteria
from anonflow.engine.context import Session
from anonflow.engine.execution.schedulers import Call
from anonflow.engine.flows import source
from anonflow.engine.flows.fingerprint import Fingerprint
from anonflow.engine.flows.flow import Flow
from anonflow.engine.storage.disk import OnDisk
from anonflow.engine.storage.load import load
from anonflow.engine.storage.memory import InMemory
from anonflow.engine.storage.spill import Spill
from anonflow.engine.storage.storage import Storage
from anonflow.errors import DataError
from anonflow.system import total_memory
from anonflow.table import Table
from anonflow.table.files.read import open_file, parquet_files

__all__ = ["ROWS", "pieces_of", "storage_of", "table_of", "text_in_memory"]

ROWS = 1 << 18
"""Default number of rows that are read together."""

_CELL = 100
"""Bytes that a cell takes, from the file to the release, where a table is in memory."""

_TEXT = 30
"""How many times its size a CSV file takes in memory."""


def storage_of(session: Session) -> Storage:
    """Return the storage of a run's table.

    Raises
    ------
    DataError
        As :func:`pieces_of`.
    """
    rows = pieces_of(session.flow)
    if rows is None:
        return InMemory(session)
    reasons = _reasons(session.flow)
    if reasons:
        tell = session.events.log if session.flow.spec.table.source.pieces is not None else session.warn
        tell(f"the results are held in memory: {'; '.join(reasons)}")
        return InMemory(session, rows)
    return OnDisk(session, rows)


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
        table, _ = Call(load, (flow, fingerprint, seed, spill, rows, lambda: None), "load").done()
        yield table


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
        about = [pq.ParquetFile(open_file(file)).metadata for file in parquet_files(path)]
    except (pa.ArrowException, OSError, DataError):
        return 0
    return sum(columns.num_rows * columns.num_columns for columns in about) * _CELL


def _reasons(flow: Flow) -> list[str]:
    """Return what in the flow needs the results of all rows at once: quantities that are not sums over partitions."""
    criteria = read_criteria(flow.criteria, "covers")
    methods = [run.anonymize.method for run in flow.runs]
    of_diversity = [criterion for criterion in criteria if criterion.declared.of_a_column]
    covers = any(CRITERIA[method.guarantee].of_covers for method in methods)
    by_class = any(criterion.parameters.get("per") == "class" for criterion in of_diversity)
    freeform = any(not promises_classes(method.guarantee) for method in methods)
    reasons = []
    for name, measure in utility.MEASURES.items():
        if name in flow.spec.steps.measures and measure.needs_all_rows:
            reasons.append(
                f"the measure {name} needs all rows"
                + (f" ({measure.instead} does not)" if measure.instead else "")
            )
    for name in dict.fromkeys(criterion.name for criterion in criteria):
        if CRITERIA[name].needs_all_rows:
            reasons.append(f"the criterion {name} needs all rows")
    if of_diversity and (covers or (by_class and freeform)):
        reasons.append(
            "the diversity of rows that only read alike (k-concealment, or per: class of matches) needs all rows"
        )
    return reasons
