"""Frames of other libraries, by Arrow's PyCapsule interface: polars, DuckDB relations, pyarrow."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from anonflow.errors import DataError
from anonflow.threads import by_column


def pandas_frame(data: Any, named: Collection[str] | None = None) -> Any:
    """Return an object with Arrow's PyCapsule interface as a pandas frame; return anything else, and a pandas frame, unchanged.

    Parameters
    ----------
    data : object
        With ``__arrow_c_stream__`` it is read once, from its first row to its last.
    named : collection of str, optional
        The columns that are needed (:func:`plain_table`).

    Returns
    -------
    pandas.DataFrame or object

    Raises
    ------
    DataError
        If its columns are not plain values, or it cannot be read.
    """
    if isinstance(data, pd.DataFrame) or not hasattr(type(data), "__arrow_c_stream__"):
        return data
    try:
        return exact_frame(plain_table(pa.table(data), named))
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise DataError(
            f"the {type(data).__name__} cannot be read as a table ({type(error).__name__}); give a frame "
            "whose columns have names, and types that pyarrow knows"
        ) from None


def plain_table(table: pa.Table, named: Collection[str] | None = None) -> pa.Table:
    """Return the same rows without metadata, dictionaries, views and run lengths: as a Parquet file of them would be read.

    Parameters
    ----------
    table : pyarrow.Table
    named : collection of str, optional
        The columns that are needed, all without it. Another one with lists or structures becomes empty.

    Raises
    ------
    DataError
        If a column that is needed holds lists or structures, or has text that is not UTF-8.
    """
    check_nested("the frame cannot be used", table.schema, named)
    for name, column in zip(table.column_names, table.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            raise DataError(f"column {name!r}: is not text in UTF-8, or is damaged; write it again") from None
    columns = by_column(_dense_column, table.columns, len(table))
    return pa.table(columns, names=table.column_names)


def _dense_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column's values themselves, texts of one kind; none of lists or structures."""
    if pa.types.is_nested(column.type) and not pa.types.is_run_end_encoded(column.type):
        return pa.chunked_array([pa.nulls(len(column))])
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    kind = column.type
    if pa.types.is_dictionary(kind):
        # no cast knows dictionaries of views
        kind = _plain_type(kind.value_type)
        chunks = [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in column.chunks]
        return pa.chunked_array(chunks, kind)
    return column.cast(_plain_type(kind))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_string_view(kind) or pa.types.is_large_string(kind) else kind


def table_of_frame(frame: pd.DataFrame) -> pa.Table:
    """Return a published frame as an Arrow table of plain columns, without its index and without metadata.

    Parameters
    ----------
    frame : pandas.DataFrame
        A column of objects has texts, also where none is there: other rows of its table may have some.
    """
    table = plain_table(pa.Table.from_pandas(frame, preserve_index=False))
    fields = [
        field.with_type(pa.string()) if pa.types.is_null(field.type) else field for field in table.schema
    ]
    return table.cast(pa.schema(fields))


_WIDE = {"int64": "Int64", "uint64": "UInt64"}


_EXACT = 1 << 53
"""The largest whole number below which every whole number is a float."""


def exact_frame(table: pa.Table, *, split_blocks: bool = False) -> pd.DataFrame:
    """Return a frame of an Arrow table; whole numbers that floats cannot hold stay exact beside missing values.

    Parameters
    ----------
    table : pyarrow.Table
    split_blocks : bool
        Whether columns stay apart: numbers in one piece, none of them missing, are then not copied, and cannot be changed.

    Raises
    ------
    DataError
        If a date is none of the years 1 to 9999.

    Notes
    -----
    Whole numbers beside missing ones become floats otherwise, and 2^53 + 1 would be published as 2^53.
    """
    table = as_written(table)
    for field, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_date(field.type):
            _check_years(field.name, column)
    frame = table.to_pandas(split_blocks=split_blocks)
    for at, field in enumerate(table.schema):
        dtype = _WIDE.get(str(field.type))
        if dtype is not None and frame.iloc[:, at].dtype.kind == "f" and _has_wide(table.column(at)):
            frame.isetitem(at, pd.array(table.column(at).to_pylist(), dtype=dtype))
    return frame


def _check_years(name: str, days: pa.ChunkedArray) -> None:
    """Refuse dates that Python does not know, such as DuckDB's `infinity`."""
    ends = pc.min_max(days.cast(pa.date32()).cast(pa.int32()))
    first, last = ((end - datetime.date(1970, 1, 1)).days for end in (datetime.date.min, datetime.date.max))
    if ends["min"].as_py() is not None and not first <= ends["min"].as_py() <= ends["max"].as_py() <= last:
        raise DataError(f"column {name!r}: has a date before the year 1 or after 9999; correct it")


def as_written(table: pa.Table) -> pa.Table:
    """Return floats of 32 bits as floats of 64 bits with the same shortest text, and whole numbers as they are.

    Otherwise 0.1 would be published as 0.10000000149011612. Each still reads as the same float of 32 bits, and their order stays.
    """
    for at, field in enumerate(table.schema):
        if pa.types.is_float32(field.type):
            numbers = table.column(at)
            wide = numbers.cast(pa.float64())
            written = numbers.cast(pa.string()).cast(pa.float64())
            whole = pc.and_(pc.equal(pc.floor(wide), wide), pc.less(pc.abs(wide), float(_EXACT)))
            table = table.set_column(at, field.name, pc.if_else(whole, wide, written))
    return table


def frame_as_written(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a pandas frame with its floats of 32 bits as :func:`as_written` has them."""
    for at, kind in enumerate(map(str, frame.dtypes)):
        if kind.lower() in ("float32", "float[pyarrow]"):
            numbers = pa.table({"": pa.array(frame.iloc[:, at], pa.float32(), from_pandas=True)})
            frame = frame.copy(deep=False)
            frame.isetitem(at, as_written(numbers).column(0).to_numpy())
    return frame


def _has_wide(column: pa.ChunkedArray) -> bool:
    """Return whether a column of whole numbers has some that floats cannot be trusted with."""
    ends = pc.min_max(column)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    return least is not None and (least < -_EXACT or most > _EXACT)


def check_nested(subject: str, fields: pa.Schema, named: Collection[str] | None) -> None:
    """Refuse columns of lists or structures, or with an unknown time zone, that are needed.

    Parameters
    ----------
    subject : str
        Beginning of the message.
    fields : pyarrow.Schema
    named : collection of str or None
        The columns that are needed; None is all.

    Raises
    ------
    DataError
        If there are any.
    """
    nested = [
        f"column {field.name!r}: holds lists or structures"
        for field in fields
        if pa.types.is_nested(field.type)
        and not pa.types.is_run_end_encoded(field.type)
        and (named is None or field.name in named)
    ]
    nested += [
        f"column {field.name!r}: holds intervals of months and days; write them as numbers or text"
        for field in fields
        if pa.types.is_interval(field.type) and (named is None or field.name in named)
    ]
    nested += [
        f"column {field.name!r}: has a time zone that is not known here; write its times as UTC"
        for field in fields
        if pa.types.is_timestamp(field.type)
        and not is_time_zone(field.type.tz)
        and (named is None or field.name in named)
    ]
    if nested:
        raise DataError.collected(subject, nested)


def is_time_zone(name: str | None) -> bool:
    """Return whether times with a time zone, or none, can be read."""
    try:
        return name is None or pa.lib.string_to_tzinfo(name) is not None
    except (pa.ArrowException, ValueError, LookupError, OSError):
        return False
