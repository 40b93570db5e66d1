"""The table that a flow names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pandas as pd

from anonflow import datasets
from anonflow.engine.flows.fingerprint import Fingerprint
from anonflow.engine.flows.flow import Flow
from anonflow.engine.flows.spec import UnitsSpec
from anonflow.errors import DataError, HierarchyError, ParameterError, SchemaError
from anonflow.release.randomness import derived_seed
from anonflow.table import Table
from anonflow.table.files.csv_reading import read_csv
from anonflow.table.files.opening import must_fit
from anonflow.table.files.parquet_reading import read_parquet
from anonflow.table.files.query import read_query
from anonflow.table.files.statistics_files import read_statistics
from anonflow.table.files.workbooks import read_workbook
from anonflow.table.per_unit import capped_rows, one_row_per_unit


def read(flow: Flow, fingerprint: Fingerprint, seed: int) -> Table:
    """Read and code the table of a flow, unless it is in memory.

    Parameters
    ----------
    flow : Flow
    fingerprint : Fingerprint
        Of its files.
    seed : int
        The run's: rows beyond a cap are left out by it.

    Raises
    ------
    DataError, SchemaError, HierarchyError
        If it cannot be read, has changed, or does not go with its columns.
    """
    if flow.table is not None:
        return flow.table
    frame = frame_of(flow, fingerprint)
    source, path = flow.spec.table.source, flow.source_path
    if frame is None and path is not None and source.csv is not None:
        frame = read_csv(
            path,
            **source.csv_form,
            opener=fingerprint.open,
        )
    elif frame is None and path is not None:
        frame = read_parquet(path, opener=fingerprint.open, named=flow.needed)
    elif frame is None:
        raise DataError("the flow names no source")
    with problems_name_the_file(flow, fingerprint):
        frame = per_unit(flow.spec.table.units, frame, seed)
        with fingerprint.others_read():
            return Table(frame, flow.schema)


@contextmanager
def problems_name_the_file(flow: Flow, fingerprint: Fingerprint) -> Iterator[None]:
    """Name the source, if it is a file, in problems with its table that name no file.

    Parameters
    ----------
    flow : Flow
    fingerprint : Fingerprint
        Of its files.

    Raises
    ------
    DataError, SchemaError, HierarchyError, ParameterError
        Any that is raised inside.
    """
    try:
        yield
    except (DataError, SchemaError, HierarchyError, ParameterError) as error:
        path = flow.source_path
        files = (file.path for file in (*fingerprint.source, *fingerprint.others))
        if path is None or flow.table is not None or error.message.startswith((str(path), *files)):
            raise
        raise error.in_file(path) from None


def per_unit(units: UnitsSpec | None, frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Return the rows of a source after the treatment of people with several rows.

    Parameters
    ----------
    units : UnitsSpec or None
        What the flow says of them.
    frame : pandas.DataFrame
    seed : int
        The run's.

    Raises
    ------
    DataError, ParameterError
        If a column is missing, a unit blank, or a column's values do not go with its recipe.
    """
    if units is None:
        return frame
    if units.cap is not None:
        frame = capped_rows(frame, units.unit, units.cap, seed=derived_seed(seed, "capped rows"))
    if units.recipes is None:
        return frame
    return one_row_per_unit(frame, units.unit, units.recipes, rows=units.rows)


def frame_of(flow: Flow, fingerprint: Fingerprint) -> pd.DataFrame | None:
    """Return the rows of a table that is read as a whole; None of CSV and Parquet files, which can be read in pieces.

    Parameters
    ----------
    flow : Flow
    fingerprint : Fingerprint
        Of its files.

    Raises
    ------
    DataError
        If a data set cannot be had, or a file cannot be read or has changed.
    """
    if flow.table is not None:
        return flow.table.frame
    source, path = flow.spec.table.source, flow.source_path
    if source.stats is not None and path is not None:
        return read_statistics(
            path,
            labels=source.labels,
            user_missing=source.codes == "values",
            opener=fingerprint.open,
            fits=must_fit(path),
        )
    if source.excel is not None and path is not None:
        return read_workbook(
            path,
            sheet=source.sheet,
            skip=source.skip,
            footer=source.footer,
            opener=fingerprint.open,
            fits=must_fit(path),
        )
    if source.sql is not None and path is not None:
        with fingerprint.source_read():
            return read_query(source.sql, path)
    if source.dataset is None:
        return None
    options = source.model_dump(include=source.model_fields_set - {"dataset", "pieces"})
    return datasets.load(source.dataset, **options)
