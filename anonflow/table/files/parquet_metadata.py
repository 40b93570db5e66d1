"""Which files are Parquet, by name, and the metadata that one carries besides its rows."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

__all__ = ["PARQUET_ENDINGS", "carries_metadata", "is_parquet"]

PARQUET_ENDINGS = (".parquet", ".pq")


def is_parquet(path: str | PathLike[str]) -> bool:
    """Return whether a file is Parquet by its name, in letters of either case."""
    return Path(path).suffix.lower() in PARQUET_ENDINGS


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
