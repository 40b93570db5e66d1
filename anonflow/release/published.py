"""What is published: a table, the owner's proof beside it, and its file."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

import numpy as np

from anonflow.errors import AnonflowWarning, DataError, ParameterError
from anonflow.release.certificate import Certificate
from anonflow.release.tables import write_table
from anonflow.release.view import release_view
from anonflow.table import Schema
from anonflow.table.arrow import table_of_frame
from anonflow.table.schema import UNPUBLISHED
from anonflow.table.spreadsheets import formula_warning, read_published
from anonflow.table.texts import text_type

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = ["Release", "ReleaseWarning", "read_release", "write_release"]


class ReleaseWarning(AnonflowWarning):
    """Something about a release that its owner must know before publishing it."""


@dataclass(frozen=True, eq=False)
class Release:
    """What is published, and the owner's proof.

    Attributes
    ----------
    frame : pandas.DataFrame
        The published table: plain text and numbers, rows in random order, a fresh RangeIndex.
    certificate : Certificate or None
        The owner's; None for a release read from a file.
    truth : numpy.ndarray, shape (n,), int64, or None
        For each published row the original whose other columns it carries: the owner's, in memory only, so that
        attacks can be judged. It is in no file.

    Notes
    -----
    A pickle has the frame only: whoever gets it gets neither the certificate nor the truth.
    """

    frame: pd.DataFrame
    certificate: Certificate | None = None
    truth: np.ndarray | None = field(default=None, repr=False)

    def write(self, path: str | PathLike[str]) -> None:
        """Write the published table (not the certificate) as CSV or Parquet, by the name's ending.

        Raises
        ------
        ParameterError
            If the name ends in neither.
        DataError, AnonflowError
            If the file cannot be written.

        Warns
        -----
        ReleaseWarning
            If cells of a CSV file begin like a formula, and have an apostrophe before them now.
        """
        write_table(self.frame, path)
        told = formula_warning(self.frame, path)
        if told:
            warnings.warn(told, ReleaseWarning, stacklevel=2)

    def to_arrow(self) -> pa.Table:
        """The published rows as an Arrow table of plain columns, as a Parquet file has them."""
        return table_of_frame(self.frame)

    def to_polars(self) -> Any:
        """The published rows as a polars frame.

        Raises
        ------
        ParameterError
            If polars is not installed.
        """
        try:
            import polars
        except ModuleNotFoundError:
            raise ParameterError(
                "to_polars needs the package polars; install it with: pip install polars"
            ) from None
        return polars.from_arrow(self.to_arrow())

    def __getstate__(self) -> dict[str, Any]:
        return {"frame": self.frame, "certificate": None, "truth": None}

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        return f"Release({len(self.frame)} rows, {len(self.frame.columns)} columns)"

    def _repr_html_(self) -> str:
        made = self.certificate
        if made is None:
            return release_view(self.frame, ())
        proof = [("guarantee", made.criterion), ("k", made.k), ("method", made.algorithm)]
        return release_view(self.frame, proof)


def write_release(release: Release, path: str | PathLike[str]) -> None:
    """Write a published table as CSV or Parquet, by the name's ending; the file appears whole.

    Parameters
    ----------
    release : Release
        Its certificate is not written: that is the owner's.
    path : path
        As for :func:`anonflow.release.tables.write_table`.

    Raises
    ------
    ParameterError
        If the name ends otherwise.
    DataError, AnonflowError
        If the file cannot be written.
    """
    write_table(release.frame, path)


def read_release(
    path: str | PathLike[str], schema: Schema | Mapping[str, Any] | str | PathLike[str]
) -> Release:
    """Read a published table back; every cell of a CSV file stays text, as it was before it was made safe.

    Parameters
    ----------
    path : path
        CSV (UTF-8, commas) or Parquet.
    schema : Schema, mapping or path
        The schema that the release was made with.

    Returns
    -------
    Release
        Without a certificate: load that from the owner's folder with :meth:`Certificate.load`.

    Raises
    ------
    DataError
        If the file cannot be read, has no rows, or its columns are not those that the schema publishes.
    SchemaError
        If the schema has problems.
    """
    schema = Schema.of(schema)
    frame = read_published(path)
    published = [name for name, column in schema.columns.items() if column.role not in UNPUBLISHED]
    names = [str(name) for name in frame.columns]
    problems = [f"column {name!r}: missing from the release" for name in published if name not in names]
    for name in names:
        if name not in schema:
            problems.append(f"column {name!r}: is in the release, but not in the schema")
        elif schema[name].role in UNPUBLISHED:
            problems.append(f"column {name!r}: is in the release, but the schema says {schema[name].role}")
    if problems:
        raise DataError.collected(f"{fspath(path)}: does not go with the schema", problems)
    if not len(frame):
        raise DataError(f"{fspath(path)}: the release has no rows")
    for name in schema.quasi_identifiers:
        if frame[name].isna().any():  # the empty cell of a CSV file, which stands for a missing value
            frame[name] = frame[name].astype(object).fillna("").astype(text_type())
    return Release(frame)
