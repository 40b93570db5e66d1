"""Rows of a query to a DuckDB database; the query is read-only and reaches no other file and no network."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from anonflow.errors import DataError
from anonflow.option import check_text
from anonflow.table.arrow import exact_frame, plain_table
from anonflow.whole_file import as_path

_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    # the order of groups and of joined rows is then the same each time
    "threads": "1",
    "lock_configuration": "true",
}


def read_query(sql: str, database: str | PathLike[str]) -> pd.DataFrame:
    """Run a query on a database file and return its rows.

    Parameters
    ----------
    sql : str
        One SELECT.
    database : path
        A DuckDB file. It is opened to be read, and the query reaches no other file and no network.

    Raises
    ------
    DataError
        If duckdb is not installed, the file is missing or no database, the query is no single SELECT, or it fails: the
        error then has the kind of the problem, never the database's message, which may contain a value.
    """
    name = fspath(as_path(database))
    check_text("the query", sql)
    try:
        import duckdb
    except ModuleNotFoundError:
        raise DataError(
            f"{name}: a query needs the package duckdb; install it with: pip install 'anonflow[sql]'"
        ) from None
    if not Path(database).is_file():
        raise DataError(f"{name}: does not exist; check the path")
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise _failed(name, error) from None
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise DataError(f"{name}: a source asks by one SELECT; leave other statements out")
    try:
        try:
            connection = duckdb.connect(name, read_only=True, config=_CLOSED)
        except duckdb.PermissionException:  # DuckDB would fetch what reads another kind of database
            raise _no_database(name) from None
        with connection:
            table = connection.sql(sql).to_arrow_table()
    except duckdb.Error as error:
        raise _failed(name, error) from None
    if len(set(table.column_names)) < table.num_columns:
        raise DataError(f"{name}: the query gives two columns the same name; name them with AS")
    columns = [_as_numbers(column) for column in table.columns]
    return exact_frame(plain_table(pa.table(columns, names=table.column_names)))


def _as_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return decimals, as which DuckDB returns sums of integers and numbers with a point, as floats; as they are if floats would round some."""
    if not pa.types.is_decimal(column.type):
        return column
    # pyarrow's own cast is one bit off for some: 0.3333333333 would be published as 0.33333333330000003
    numbers = column.cast(pa.string()).cast(pa.float64())
    try:
        exact = pc.all(pc.equal(numbers.cast(column.type), column)).as_py()
    except pa.ArrowInvalid:  # a rounded number has a digit more than the column
        exact = False
    return column if exact is False else numbers  # None where all are missing


_WHY = {
    "ParserException": "is not SQL that DuckDB can read",
    "CatalogException": "names a table or function that the database does not have",
    "BinderException": "names a column that does not exist, or mixes types",
    "PermissionException": "uses a file or a network, which a source may not do",
    "ConversionException": "converts a value that cannot be converted",
    "InvalidInputException": "cannot be answered by this database",
}


def _no_database(name: str) -> DataError:
    return DataError(
        f"{name}: is not a DuckDB database that can be opened; see that nobody else writes to it"
    )


def _failed(name: str, error: Exception) -> DataError:
    kind = type(error).__name__
    if kind == "IOException":
        return _no_database(name)
    return DataError(f"{name}: the query {_WHY.get(kind, 'fails')} ({kind}); try it in DuckDB first")
