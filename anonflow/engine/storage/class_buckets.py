"""Measures of classes over a table in pieces: records with equal cells are one class, also in different batches.

Each batch distributes its classes to buckets by their cells, so all parts of a class are in the same bucket; the part
of a bucket's classes in a measure is a few numbers. No task holds more than a batch's classes, or a bucket's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from anonflow import utility
from anonflow.engine.storage.spill import as_numpy, deal, read_batch
from anonflow.utility.measures import MeasureRequest

__all__ = ["add_classes", "deal_classes"]

_CELL, _SIZE, _SPREAD = "cell:", "size", "spread"
_LEAST, _GREATEST, _VALUES, _BITS = "least:", "greatest:", "values:", "bits:"
_USEFULNESS = "usefulness"


def deal_classes(chunks: Mapping[str, list[Any]], into: str, buckets: int) -> None:
    """Distribute a batch's classes to buckets.

    Parameters
    ----------
    chunks : mapping
        The batch's part of each requested measure of :func:`anonflow.utility.measures_by_class`.
    into : str
        The file that is written: a record batch for each bucket, a row for each class.
    buckets : int

    Raises
    ------
    OSError
        If it cannot be written.
    """
    columns: dict[str, pa.Array] = {}
    cells = np.zeros((0, 0), np.int64)
    for name, (chunk,) in chunks.items():
        if name == _USEFULNESS:
            cells = chunk["keys"]
            columns |= _columns_of(chunk)
        else:
            cells, sizes = chunk[:2]
            columns[_SIZE] = pa.array(sizes)
    columns |= {f"{_CELL}{r}": pa.array(row) for r, row in enumerate(cells)}
    deal(pa.table(columns), _bucket(cells, buckets), buckets, into)


def _columns_of(chunk: Mapping[str, Any]) -> dict[str, pa.Array]:
    if "spread" in chunk:
        return {_SPREAD: pa.array(chunk["spread"])}
    classes = chunk["keys"].shape[1]
    columns: dict[str, pa.Array] = {}
    for a, part in enumerate(chunk["found"]):
        if isinstance(part, np.ndarray):
            columns |= {f"{_BITS}{a}:{w}": pa.array(word) for w, word in enumerate(part)}
        elif part[0].dtype.kind == "f":
            columns[f"{_LEAST}{a}"], columns[f"{_GREATEST}{a}"] = map(pa.array, part)
        else:
            owner, value = part
            offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=classes))])
            order = np.argsort(owner, kind="stable")
            columns[f"{_VALUES}{a}"] = pa.ListArray.from_arrays(
                pa.array(offsets.astype(np.int32)), pa.array(value[order])
            )
    return columns


def _bucket(cells: np.ndarray, buckets: int) -> np.ndarray:
    """Return a bucket for each column of cells, the same for the same cells, shape (m,), int64."""
    odd = np.random.default_rng(0).integers(1, 1 << 62, len(cells), dtype=np.uint64) * np.uint64(
        2
    ) + np.uint64(1)
    mixed = (cells.view(np.uint64) * odd[:, None]).sum(axis=0, dtype=np.uint64)
    bucket: np.ndarray = ((mixed >> np.uint64(32)) % np.uint64(buckets)).astype(np.int64)
    return bucket


def add_classes(
    ready: MeasureRequest, names: Sequence[str], files: str, count: int, bucket: int
) -> dict[str, tuple[float, ...]]:
    """Return the part of a bucket's classes in each measure.

    Parameters
    ----------
    ready : MeasureRequest
    names : sequence of str
        The measures.
    files : str
        Beginning of the names of the batches' files.
    count : int
        Batches.
    bucket : int

    Returns
    -------
    dict
        As :func:`anonflow.utility.class_sums` gives it.

    Raises
    ------
    OSError
        If a file cannot be read.
    """
    batches = [read_batch(f"{files}{number}.arrow", bucket) for number in range(count)]
    chunks = [{name: [_chunk(name, batch)] for name in names} for batch in batches if batch.num_rows]
    if not chunks:
        chunks = [{name: [_chunk(name, batches[0])] for name in names}]
    return utility.class_sums(
        ready, {name: [part for chunk in chunks for part in chunk[name]] for name in names}
    )


def _chunk(name: str, rows: pa.RecordBatch) -> Any:
    columns = rows.schema.names
    cells = np.stack([as_numpy(rows[at]) for at in columns if at.startswith(_CELL)])
    if name != _USEFULNESS:
        return cells, as_numpy(rows[_SIZE])
    if _SPREAD in columns:
        return {"keys": cells, "spread": as_numpy(rows[_SPREAD])}
    chunk: list[Any] = []
    numbers = {int(at.split(":")[1]) for at in columns if at.startswith((_LEAST, _VALUES, _BITS))}
    for a in sorted(numbers):
        if f"{_LEAST}{a}" in columns:
            chunk.append((as_numpy(rows[f"{_LEAST}{a}"]), as_numpy(rows[f"{_GREATEST}{a}"])))
        elif f"{_VALUES}{a}" in columns:
            lists = rows[f"{_VALUES}{a}"]
            counts = lists.value_lengths().to_numpy()
            chunk.append((np.repeat(np.arange(len(counts)), counts), lists.flatten().to_numpy()))
        else:
            words = [at for at in columns if at.startswith(f"{_BITS}{a}:")]
            chunk.append(np.stack([as_numpy(rows[at]) for at in words]))
    return {"keys": cells, "found": chunk}
