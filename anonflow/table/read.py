"""Files into frames without guessing: every CSV cell is text, an empty one is missing."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonflow.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_csv", "read_frame", "read_parquet"]


def read_frame(
    path: str | PathLike[str], *, delimiter: str = ",", encoding: str = "utf-8", missing: Sequence[str] = ()
) -> pd.DataFrame:
    """Read a table from a CSV or Parquet file, told apart by the name's ending.

    Parameters
    ----------
    path : path
        ``.parquet`` or ``.pq``; ``.csv``, ``.tsv``, ``.txt``, ``.data``, also gzipped (``.gz``).
    delimiter, encoding : str
        Of a CSV file.
    missing : sequence of str
        Texts that stand for a missing value in a CSV file, besides the empty cell.

    Raises
    ------
    DataError
        If the file does not exist or is not what its name says.
    """
    file = Path(path)
    suffixes = [suffix.lower() for suffix in file.suffixes]
    last = (
        suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else suffixes[-1] if suffixes else ""
    )
    if last in (".parquet", ".pq"):
        return read_parquet(file)
    if last in (".csv", ".tsv", ".txt", ".data"):
        return read_csv(file, delimiter=delimiter, encoding=encoding, missing=missing)
    raise DataError(f"{fspath(path)}: a table is a .csv or .parquet file; rename or convert it")


def read_parquet(path: str | PathLike[str]) -> pd.DataFrame:
    """Read a Parquet file; pandas metadata in it is not obeyed.

    Raises
    ------
    DataError
        If the file is missing, no Parquet file, or has columns that are no plain values.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = fspath(path)
    _must_exist(Path(path))
    try:
        table = pq.read_table(Path(path))
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{name}: is no readable Parquet file ({type(error).__name__})") from None
    nested = [
        f"column {field.name!r}: holds lists or structures"
        for field in table.schema
        if pa.types.is_nested(field.type)
    ]
    if nested:
        raise DataError.collected(f"{name}: cannot be used", nested)
    _check_names(name, table.column_names)
    return table.replace_schema_metadata(None).to_pandas()


def read_csv(
    path: str | PathLike[str], *, delimiter: str = ",", encoding: str = "utf-8", missing: Sequence[str] = ()
) -> pd.DataFrame:
    """Read a CSV file with a header; cells stay text, empty ones and those in `missing` are missing.

    Parameters
    ----------
    path : path
        May be gzipped (``.gz``).
    delimiter : str
        One character.
    encoding : str
        A codec that Python knows.
    missing : sequence of str

    Raises
    ------
    DataError
        If the file is missing or empty, not in the encoding, has rows of another length than the header
        (how many), or a column name twice.
    """
    import pandas as pd
    import pyarrow as pa
    from pyarrow import csv

    name = fspath(path)
    _must_exist(Path(path))
    if len(delimiter) != 1:
        raise DataError(f"{name}: the delimiter must be one character")
    try:
        encoding = codecs.lookup(encoding).name
    except LookupError:
        raise DataError(
            f"{name}: unknown encoding {encoding!r}; name one that Python knows, such as utf-8"
        ) from None
    ragged: list[int] = []

    def count(row: Any) -> str:
        ragged.append(1)
        return "skip"

    def options(names: list[str]) -> dict[str, Any]:
        return {
            "read_options": csv.ReadOptions(encoding=encoding),
            "parse_options": csv.ParseOptions(
                delimiter=delimiter,
                newlines_in_values=True,
                ignore_empty_lines=True,
                invalid_row_handler=count,
            ),
            "convert_options": csv.ConvertOptions(
                column_types={name: pa.string() for name in names}, strings_can_be_null=False
            ),
        }

    try:
        if encoding == "utf-8":
            # pyarrow would only find it in a cell that it converts, and never in a ragged row
            decoder = codecs.getincrementaldecoder(encoding)()
            with pa.input_stream(str(path), compression="detect") as stream:
                while block := stream.read(1 << 22):
                    decoder.decode(block)
            decoder.decode(b"", True)
        with (
            pa.input_stream(str(path), compression="detect") as stream,
            csv.open_csv(stream, **options([])) as reader,
        ):
            names = list(reader.schema.names)
        _check_names(name, names)
        ragged.clear()
        with pa.input_stream(str(path), compression="detect") as stream:
            table = csv.read_csv(stream, **options(names))
    except UnicodeError:
        raise DataError(f"{name}: is not {encoding}; name its encoding in the source") from None
    except pa.ArrowInvalid as error:
        text = str(error)
        if "Empty CSV" in text:
            raise DataError(f"{name}: is empty; a CSV file has a header and rows") from None
        if "UTF8" in text or "utf8" in text:
            raise DataError(f"{name}: is not {encoding}; name its encoding in the source") from None
        raise DataError(f"{name}: is no readable CSV file; check its quotes and delimiter") from None
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{name}: cannot be read ({type(error).__name__})") from None
    if ragged:
        raise DataError(
            f"{name}: {len(ragged)} rows have more or fewer than {len(names)} cells; check the delimiter and quotes"
        )
    frame = table.to_pandas()
    blank = {"", *missing}
    for column in frame.columns:
        cells = frame[column]
        where = cells.isin(list(blank))
        if where.any():
            frame[column] = cells.mask(where, pd.NA)
    return frame


def _must_exist(path: Path) -> None:
    if not path.exists():
        raise DataError(f"{path}: does not exist; check the path")
    if not path.is_file():
        raise DataError(f"{path}: is no file; name a CSV or Parquet file")


def _check_names(name: str, columns: Sequence[str]) -> None:
    problems = []
    seen: dict[str, int] = {}
    for place, column in enumerate(columns, 1):
        first = seen.setdefault(column, place)
        if first != place:
            # by their places: where the header is missing, these are a person's values
            problems.append(f"{name}: columns {first} and {place} have the same name; rename one")
    if any(not column.strip() for column in columns):
        problems.append(f"{name}: a column has no name; the first line must be the header")
    if problems:
        raise DataError.collected(f"{name}: its header cannot be used", problems)
