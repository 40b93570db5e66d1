"""The table that a flow names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anonflow import datasets
from anonflow.engine.flows.fingerprint import Fingerprint
from anonflow.engine.flows.flow import Flow
from anonflow.errors import DataError
from anonflow.table import Table
from anonflow.table.read import read_csv, read_parquet

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["frame_of", "read"]


def read(flow: Flow, fingerprint: Fingerprint) -> Table:
    """Read and code the table of a flow, where nobody has it already.

    Parameters
    ----------
    flow : Flow
    fingerprint : Fingerprint
        Of its files.

    Raises
    ------
    DataError, SchemaError, HierarchyError
        If it cannot be read, has changed, or does not go with its columns.
    """
    if flow.table is not None:
        return flow.table
    frame = frame_of(flow)
    source = flow.spec.table.source
    if frame is None and source.csv is not None:
        frame = read_csv(
            flow.folder / source.csv,
            delimiter=source.delimiter,
            encoding=source.encoding,
            missing=source.missing,
            opener=fingerprint.open,
        )
    elif frame is None and source.parquet is not None:
        frame = read_parquet(flow.folder / source.parquet, opener=fingerprint.open)
    elif frame is None:
        raise DataError("the flow names no source")
    with fingerprint.others_read():
        return Table(frame, flow.schema)


def frame_of(flow: Flow) -> pd.DataFrame | None:
    """The rows of a table that lies in no file: one that somebody has in memory, or a data set; else None.

    Raises
    ------
    DataError
        If the data set cannot be had.
    """
    if flow.table is not None:
        return flow.table.frame
    source = flow.spec.table.source
    if source.dataset is None:
        return None
    given = source.model_dump(include=source.model_fields_set - {"dataset", "pieces"})
    return datasets.load(source.dataset, **given)
