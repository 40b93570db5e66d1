"""Which files and folders are Parquet, by name, and the metadata that one carries besides its rows."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path

PARQUET_ENDINGS = (".parquet", ".pq")

FOLDER_ENDING = f"{PARQUET_ENDINGS[0]}/"
"""What the name of a folder of Parquet files ends with."""


def is_parquet(path: str | PathLike[str]) -> bool:
    """Return whether a file is Parquet by its name, in letters of either case."""
    return Path(path).suffix.lower() in PARQUET_ENDINGS


def in_folder(path: str | PathLike[str]) -> bool:
    """Return whether a name is that of a folder of Parquet files: a text that ends with a slash."""
    return isinstance(path, str) and path.endswith("/") and is_parquet(path)


def is_part(path: Path) -> bool:
    """Return whether a file has the name of one in a folder of Parquet files that anonflow wrote."""
    return re.fullmatch(r"part-\d{6,}\.parquet", path.name) is not None


def carries_metadata(path: str | PathLike[str]) -> bool:
    """Return whether a file is Parquet with metadata of keys and values, or statistics of columns.

    Published files have neither: both may tell more than the rows do.
    """
    import pyarrow.parquet as pq

    if not is_parquet(path):
        return False
    with pq.ParquetFile(path) as file:
        footer, schema = file.metadata, file.schema_arrow
        return (
            bool(footer.metadata)
            or bool(schema.metadata)
            or any(set(field.metadata or {}) - {b"PARQUET:field_id"} for field in schema)
            or any(
                footer.row_group(group).column(column).is_stats_set
                for group in range(footer.num_row_groups)
                for column in range(footer.num_columns)
            )
        )
