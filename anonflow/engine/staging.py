"""Files at addresses that a run reads or writes: while it runs, they are in the owner's folder."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa

from anonflow.engine.flows.addresses import beside, fetch_package, fetched, is_address, shown_address
from anonflow.engine.flows.flow import Flow
from anonflow.engine.flows.spec import SourceSpec
from anonflow.engine.owner.folder import OwnerFolder
from anonflow.errors import AnonflowError, DataError
from anonflow.table.arrow import plain_table
from anonflow.table.files.metadata_file import PACKAGE, metadata_path
from anonflow.table.schema import check_names

FOLDER = "staging"
"""In the owner's folder."""

ROWS = 1 << 16
"""Rows of a Parquet row group."""


@contextmanager
def staged(flow: Flow, source: Any = None) -> Iterator[Flow]:
    """Yield a flow whose source and targets are local files; these are deleted afterwards.

    Parameters
    ----------
    flow : Flow
    source : Dask DataFrame, or what speaks Arrow's PyCapsule interface, optional
        In place of the flow's source: written piece by piece, and never held as a whole.

    Yields
    ------
    Flow

    Raises
    ------
    DataError
        If the source cannot be fetched, or is no frame.
    """
    named = flow.spec.table.source.file
    table = flow.targets[0]
    elsewhere = [text for text in (named, *flow.targets) if is_address(text)]
    if source is None and not elsewhere:
        yield flow
        return
    name = shown_address(named) if source is None and named is not None else "the source"
    folder_name = shown_address(beside(table, "")).rstrip("/") if is_address(table) else ""
    if flow.path is None:
        with (
            TemporaryDirectory(prefix="anonflow-") as place,
            _names_of_user(brought := _brought(flow, source, Path(place)), name, folder_name),
        ):
            yield brought
        return
    owner = OwnerFolder(flow.owner_folder)
    owner.make()
    folder = owner.path / FOLDER
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was ended
    folder.mkdir(mode=0o700)
    try:
        with _names_of_user(brought := _brought(flow, source, folder), name, folder_name):
            yield brought
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _names_of_user(flow: Flow, source: str, folder: str) -> Iterator[None]:
    """Give problems with a source, or with the folder of a release, the names that the user knows."""
    try:
        yield
    except AnonflowError as error:
        for copy, name in (
            (flow.staged_source, source),
            (flow.table_path and flow.table_path.parent, folder),
        ):
            if copy is not None and name and any(str(copy) in problem for problem in error.problems):
                raise error.renamed(str(copy), name) from None
        raise


def _brought(flow: Flow, source: Any, folder: Path) -> Flow:
    flow = replace(flow, staging=folder)
    spec, written = flow.spec.table.source, flow.targets[0]
    if is_address(written) and flow.table_path is not None:
        package = metadata_path(flow.table_path)
        if package is not None and package.name == PACKAGE:
            package.parent.mkdir(mode=0o700)
            fetch_package(beside(written, PACKAGE), package)
    if source is not None:
        place = folder / "source"
        place.mkdir(mode=0o700)
        _write_parts(source, place, flow.needed)
        staged_spec = SourceSpec(parquet=place.name, pieces=True if spec.pieces is None else spec.pieces)
        table = flow.spec.table.model_copy(update={"source": staged_spec})
        return replace(flow, staged_source=place, spec=flow.spec.model_copy(update={"table": table}))
    if is_address(spec.file):
        inside = folder / "source"
        inside.mkdir(mode=0o700)
        place = fetched(str(spec.file), inside, several=spec.parquet is not None)
        return replace(flow, staged_source=place)
    return flow


def _write_parts(source: Any, folder: Path, named: Collection[str]) -> None:
    """Write a frame as Parquet files of plain columns, one for each part of it; `named` are the ones that are needed."""
    import pyarrow.parquet as pq

    kinds: pa.Schema | None = None
    try:
        for number, part in enumerate(_parts(source)):
            plain = plain_table(part, named)
            try:
                plain = plain if kinds is None else plain.select(kinds.names).cast(kinds)
            except (pa.ArrowException, KeyError, ValueError):
                raise DataError(
                    f"the source: part {number} has other columns, or columns of other types, than the first; "
                    "give each column one type"
                ) from None
            kinds = plain.schema
            pq.write_table(plain, folder / f"part-{number:06d}.parquet", row_group_size=ROWS)
    except (pa.ArrowException, TypeError) as error:
        raise DataError(
            f"the source: the {type(source).__name__} cannot be read as a table ({type(error).__name__}); give a "
            "frame with named columns of one kind each"
        ) from None


def _parts(source: Any) -> Iterator[pa.Table]:
    if hasattr(type(source), "__arrow_c_stream__") or hasattr(type(source), "__arrow_c_array__"):
        if isinstance(source, pd.DataFrame):
            yield _table_of(source)
            return
        reader = pa.RecordBatchReader.from_stream(source)
        empty = True
        for batch in reader:
            if batch.num_rows or empty:
                yield pa.Table.from_batches([batch])
            empty = False
        if empty:
            yield reader.schema.empty_table()
    elif hasattr(source, "npartitions") and hasattr(source, "partitions"):
        for number in range(source.npartitions):
            yield _table_of(_computed(source, number))
    else:
        raise _no_frame(source)


def _table_of(frame: pd.DataFrame) -> pa.Table:
    check_names(list(frame.columns))
    return pa.Table.from_pandas(frame, preserve_index=False)


def _no_frame(source: Any) -> DataError:
    return DataError(
        f"a source is a Dask DataFrame, or a frame with Arrow's PyCapsule interface, not a {type(source).__name__}; "
        "name files in the flow"
    )


def _computed(source: Any, number: int) -> pd.DataFrame:
    """Return a part of a Dask DataFrame.

    Raises
    ------
    DataError
        If it is no frame, or its computation fails: what the caller's code raises may hold a cell.
    """
    try:
        part = source.partitions[number].compute()
    except Exception as error:
        raise DataError(
            f"the source: part {number} cannot be computed ({type(error).__name__}); compute it alone, and see what is wrong"
        ) from None
    if not isinstance(part, pd.DataFrame):
        raise _no_frame(source)
    return part
