"""A release: the published table, the owner's certificate, and the files."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from anonflow.errors import AnonflowWarning, DataError, ParameterError
from anonflow.hierarchy.wording import plural
from anonflow.large_arrays import IN_MEMORY, Arrays
from anonflow.release.certificate import Certificate
from anonflow.release.published_column import PublishedColumn
from anonflow.release.summary import ReleaseSummary, summary_of
from anonflow.release.tables import write_described, write_table
from anonflow.release.view import release_view
from anonflow.table import Schema
from anonflow.table.arrow import table_of_frame
from anonflow.table.files.metadata_file import metadata_path, read_metadata
from anonflow.table.forms.text_columns import text_type
from anonflow.table.published.metadata import CODED, ReleaseMetadata
from anonflow.table.published.published_cells import code_name, rows_of_stars
from anonflow.table.published.release_forms import plain_release
from anonflow.table.schema import UNPUBLISHED
from anonflow.table.spreadsheets import formula_warning

_UNTOLD = "the meaning of the cells is not known; read the release with read_release"


class ReleaseWarning(AnonflowWarning):
    """A warning that whoever publishes a release, or computes with it, must read first."""


@dataclass(frozen=True, eq=False)
class Release:
    """A release: the published table and the owner's certificate.

    Attributes
    ----------
    frame : pandas.DataFrame
        The published table: plain text and numbers, rows in random order, a fresh RangeIndex. While a large release lies in files of
        its run, texts are categories: each of them once, and numbers.
    certificate : Certificate or None
        The owner's; None for a release read from a file.
    truth : numpy.ndarray, shape (n,), int64, or None
        For each published row, the original whose other columns it has. It belongs to the owner and is in memory only,
        to evaluate attacks; it is never written to a file.
    about : ReleaseMetadata or None
        The description of its columns, for a file beside the published one; it is computed from the frame and the
        schema's declarations.
    arrays : Arrays
        Where arrays of its size are made.

    Notes
    -----
    A pickle has the published parts only, neither the certificate nor the truth.
    """

    frame: pd.DataFrame
    certificate: Certificate | None = None
    truth: np.ndarray | None = field(default=None, repr=False)
    about: ReleaseMetadata | None = field(default=None, repr=False)
    arrays: Arrays = field(default=IN_MEMORY, repr=False)

    def column(self, name: str) -> PublishedColumn:
        """Return a column to compute with: low, high, middle, width, members, ``contains``, ``share_of``.

        Parameters
        ----------
        name : str
            ``NAME (code)`` is what :attr:`PublishedColumn.categories` of numbers with codes is.

        Raises
        ------
        DataError
            If there is no such column, or the release has no description.
        """
        if self.about is None:
            raise DataError(_UNTOLD)
        coded = {
            code_name(column.name): column.name for column in self.about.columns if column.notation == CODED
        }
        if name in coded and name not in self.frame.columns:
            return self.column(coded[name]).categories
        metadata = self.about[name]
        return PublishedColumn(self.frame[name], metadata, not metadata.is_generalized and self._withholds)

    @cached_property
    def _withholds(self) -> bool:
        """Whether suppressed rows have ``*`` in the other columns."""
        assert self.about is not None
        generalized, others = (
            [c.name for c in self.about.columns if c.is_generalized is flag] for flag in (True, False)
        )
        hidden = rows_of_stars(self.frame, generalized)
        return bool(hidden.any() and rows_of_stars(self.frame[hidden], others).all())

    def to_frame(self, cells: str = "text") -> pd.DataFrame:
        """Return the published table in other types.

        Parameters
        ----------
        cells : {"text", "nullable", "interval"}
            ``text``: as published. ``nullable``: the cells that are one value, in pandas' nullable types, and missing
            elsewhere. ``interval``: ranges as closed intervals (missing where it is not published what ``*`` stands for), sets
            and nodes as tuples of values, and columns that are published as they were as ``nullable``. Beside a column
            of numbers with codes stands ``NAME (code)``: which code a cell is, or ``number``.

        Returns
        -------
        pandas.DataFrame, n rows

        Raises
        ------
        ParameterError
            If it is another word.
        DataError
            If the release has no description, or cells do not fit it.
        """
        if cells not in ("text", "nullable", "interval"):
            raise ParameterError("to_frame: cells is text, nullable or interval")
        if cells == "text":
            return self.frame.copy()
        columns = {str(name): self.column(str(name)) for name in self.frame.columns}
        coded = [column.categories for column in columns.values() if column.about.notation == CODED]
        columns = {column.name: column for column in coded} | columns
        columns = {name: columns[name] for name in [*map(str, self.frame.columns), *columns]}
        return pd.DataFrame(
            {
                name: column.intervals() if cells == "interval" else column.nullable()
                for name, column in columns.items()
            }
        )

    def summary(self) -> ReleaseSummary:
        """Return the receiver's view of the release: rows, columns, kinds of cells, and the questions that it can answer.

        Raises
        ------
        DataError
            If the release has no description, or cells do not fit it.
        """
        if self.about is None:
            raise DataError(_UNTOLD)
        return summary_of(self.about, [self.column(column.name) for column in self.about.columns])

    def write(self, path: str | PathLike[str]) -> None:
        """Write the published table as CSV, Parquet, SPSS or Stata, by the name's ending, with a description of its cells beside it.

        The certificate is not written. The other file is ``NAME.csv-metadata.json`` (W3C CSVW), or ``datapackage.json``
        (Frictionless) for other files.

        Raises
        ------
        ParameterError
            If the name has another ending.
        DataError, AnonflowError
            If the file cannot be written.

        Warns
        -----
        ReleaseWarning
            If cells of a CSV file begin like a formula, and have an apostrophe before them now.
        """
        write_release(self, path)
        warning = formula_warning(self.frame, path)
        if warning:
            warnings.warn(warning, ReleaseWarning, stacklevel=2)

    def to_arrow(self) -> pa.Table:
        """Return the published rows as an Arrow table of plain columns, as a Parquet file has them."""
        return table_of_frame(self.frame)

    def to_polars(self) -> Any:
        """Return the published rows as a polars frame.

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
        return {"frame": self.frame, "certificate": None, "truth": None, "about": self.about}

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        return f"Release({len(self.frame)} rows, {len(self.frame.columns)} columns)"

    def _repr_html_(self) -> str:
        certificate = self.certificate
        if certificate is None:
            return release_view(self.frame, ())
        proof = [
            ("guarantee", certificate.criterion),
            ("k", certificate.k),
            ("method", certificate.algorithm),
        ]
        return release_view(self.frame, proof)


def write_release(release: Release, path: str | PathLike[str]) -> None:
    """Write a published table as CSV, Parquet, SPSS or Stata, by the name's ending, with its description; files appear whole.

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
        If the files cannot be written.
    """

    def write(draft: Path) -> ReleaseMetadata | None:
        return write_table(release.frame, draft, release.about)

    write_described(path, write)


def read_release(
    path: str | PathLike[str], schema: Schema | Mapping[str, Any] | str | PathLike[str] | None = None
) -> Release:
    """Read a published table back; every cell of a CSV file stays text, as it was before it was made safe.

    Parameters
    ----------
    path : path
        CSV (UTF-8, commas) or Parquet.
    schema : Schema, mapping or path, optional
        The schema that the release was made with. Without it, what the file beside the release says of its columns; where
        both are there they must agree, and what the schema has of domains and hierarchies is added.

    Returns
    -------
    Release
        With ``about``, so that :meth:`Release.column` can be asked; without a certificate: load that from the owner's
        folder with :meth:`Certificate.load`.

    Raises
    ------
    DataError
        If a file cannot be read, the release has no rows, its columns are not those that the schema publishes, or cells,
        rows or columns are not what the description says; or if there is neither a description nor a schema.
    SchemaError, HierarchyError
        If the schema, or a hierarchy of it, has problems.

    Warns
    -----
    ReleaseWarning
        If rows or columns that the description is about are not there: somebody has removed them, or the file is cut off.
    """
    if schema is not None:
        schema = Schema.of(schema)
    frame = plain_release(path, schema)
    metadata = read_metadata(path)
    if metadata is None and schema is None:
        beside = metadata_path(path)
        raise DataError(
            f"{fspath(path)}: no description says what its cells mean; give the schema"
            + ("" if beside is None else f", or put {beside.name} beside it")
        )
    if schema is not None:
        _check_columns(frame, schema, path)
    if not len(frame):
        raise DataError(f"{fspath(path)}: the release has no rows")
    described = metadata is not None
    if metadata is not None:
        metadata = _of_what_is_there(frame, metadata, path)
    if schema is not None:
        declared = ReleaseMetadata.of_schema(schema, frame)
        metadata = declared if metadata is None else metadata.agreeing(declared, fspath(path))
    assert metadata is not None
    for column in metadata.columns:
        if column.is_generalized and frame[column.name].isna().any():
            # the empty cell of a CSV file, which stands for a missing value
            frame[column.name] = frame[column.name].astype(object).fillna("").astype(text_type())
    release = Release(frame, about=metadata)
    if described:
        for column in metadata.columns:
            release.column(column.name).check()
    return release


def _check_columns(frame: pd.DataFrame, schema: Schema, path: str | PathLike[str]) -> None:
    """Refuse columns that a schema does not publish.

    Raises
    ------
    DataError
        If they are not.
    """
    published = [name for name, column in schema.columns.items() if column.role not in UNPUBLISHED]
    names = [str(name) for name in frame.columns]
    problems = [f"column {name!r}: missing from the release" for name in published if name not in names]
    for name in names:
        if name not in schema:
            problems.append(f"column {name!r}: is in the release, but not in the schema")
        elif schema[name].role in UNPUBLISHED:
            problems.append(f"column {name!r}: is in the release, but the schema says {schema[name].role}")
    if problems:
        raise DataError.collected(f"{fspath(path)}: does not match the schema", problems)


def _of_what_is_there(
    frame: pd.DataFrame, metadata: ReleaseMetadata, path: str | PathLike[str]
) -> ReleaseMetadata:
    """Return the description of the rows and columns that are there; some may have been removed, none added.

    Raises
    ------
    DataError
        If it is one of other rows and columns.
    """
    place = fspath(metadata_path(path) or path)
    names, described = [str(name) for name in frame.columns], [column.name for column in metadata.columns]
    problems = [
        f"column {name!r}: is in the release, but not described" for name in names if name not in described
    ]
    rows = len(frame) if metadata.rows is None else metadata.rows
    if rows < len(frame):
        problems.append(f"describes {plural(rows, 'row')}, and the release has {len(frame):,}")
    if problems:
        raise DataError.collected(
            f"{place}: does not match the release", [f"{place}: {problem}" for problem in problems]
        )
    if (rows, len(described)) != (len(frame), len(names)):
        warnings.warn(
            f"{fspath(path)}: has {len(frame):,} of {rows:,} rows and {len(names)} of {len(described)} columns that its description "
            "is about; what is there is read as it says, and the rest is missing from every estimate",
            ReleaseWarning,
            stacklevel=3,
        )
    columns = tuple(metadata[name] for name in names)
    return replace(metadata, columns=columns, rows=len(frame))
