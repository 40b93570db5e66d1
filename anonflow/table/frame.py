"""A table of people: a frame, its schema, and its records coded for the kernels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from anonflow.drawing import share
from anonflow.errors import SHOWN, AnonflowError, DataError, ParameterError, SchemaError
from anonflow.hierarchy.wording import plural
from anonflow.large_arrays import IN_MEMORY, Arrays
from anonflow.strict_yaml import suggest
from anonflow.table.arrow import frame_as_written, pandas_frame
from anonflow.table.coding import code_column
from anonflow.table.domain import Domain, missing_cells
from anonflow.table.files.csv_head import PLAIN, CsvShape
from anonflow.table.files.read import read_frame
from anonflow.table.identification.uniqueness import Uniqueness
from anonflow.table.named_settings import NO_ROW_KEPT, NO_ROW_PREPARED
from anonflow.table.records import Records
from anonflow.table.sampling_weights import weights_of
from anonflow.table.schema import UNPUBLISHED, Schema, check_names, did_you_mean
from anonflow.table.view import table_view

_TOGETHER = 1 << 16
"""Records whose codes are put together, so that a file is written from its beginning to its end."""

COUNTED = 100_000
"""The most records for which a notebook counts unique ones: a repr must be fast."""


class Table:
    """A table of people with its schema, coded.

    Parameters
    ----------
    frame : pandas.DataFrame, or what speaks Arrow's PyCapsule interface
        One row per person; a frame of polars, a DuckDB relation or a pyarrow table are read as a Parquet file of them
        would be. It is not changed. The schema's preparation steps are applied first.
    schema : Schema, mapping or path
        Anything that :meth:`Schema.of` takes.

    Attributes
    ----------
    frame : pandas.DataFrame
        The published columns, in the table's order; without identifiers, unnamed columns, and the records that a
        ``missing: drop`` rule removes.
    schema : Schema
        Its columns, without the preparation steps, which have been applied.
    preparation : Preparation
        The preparation steps that were applied.
    filtered : int
        Records that a step left out.
    identifiers : pandas.DataFrame
        The identifiers of the same records: the owner's, to recognize people in a later table.
    records : Records
        The quasi-identifiers (QIs) as codes, over domains in schema order.
    unpublished : tuple of str
        Columns that are not published: identifiers, and those that the schema does not name.
    unnamed : tuple of str
        The columns of the frame that the schema does not name.
    dropped : int
        Records left out because a value was missing.
    whole_owners : WholeOwners or None
        Of a sample of a larger table that is attacked.
    file : pathlib.Path or None
        The file that it was read from, by :meth:`read`.
    arrays : Arrays
        Where arrays of its size are made.

    Raises
    ------
    SchemaError
        If the schema has problems, or names columns that the frame does not have.
    DataError
        If the frame has duplicate or unnamed columns, no rows, or values that do not fit their kind.
    HierarchyError
        If a hierarchy cannot be read, or values of the table are not among its leaves.
    """

    def __init__(
        self,
        frame: Any,
        schema: Schema | Mapping[str, Any] | str | PathLike[str],
        *,
        _records: Records | None = None,
        _matrix: Callable[[int, Sequence[np.ndarray]], np.ndarray] | None = None,
        _arrays: Arrays = IN_MEMORY,
        _tell: Callable[[str, int, int], None] = lambda words, at, of: None,
    ) -> None:
        declared = Schema.of(schema)
        self.schema = declared.prepared()
        self.preparation = declared.preparation
        self.dropped = self.filtered = 0
        self.unpublished: tuple[str, ...] = ()
        self.unnamed: tuple[str, ...] = ()
        self.whole_owners: WholeOwners | None = None
        self.file: Path | None = None
        self.arrays = _arrays
        # a part of a table: checked, cut down to what is published, and coded before
        if _records is not None:
            self.frame, self.records = frame, _records
            self.identifiers = frame.iloc[:, :0]
            return
        frame = pandas_frame(frame, declared.needed)
        if isinstance(frame, pd.DataFrame):
            frame = frame_as_written(frame)
        if self.preparation and isinstance(frame, pd.DataFrame):
            before = len(frame)
            frame = self.preparation.apply(frame)
            self.filtered = before - len(frame)
            if before and not len(frame):
                raise DataError(NO_ROW_PREPARED)
        _check_frame(frame, self.schema)
        frame = _without_empty_texts(frame, self.schema)
        columns = self.schema.columns
        rows = np.ones(len(frame), bool)
        for name, column in columns.items():
            if column.missing == "drop":
                rows &= ~missing_cells(frame[name])
        self.dropped = int(len(frame) - rows.sum())
        if not rows.any():
            raise DataError(NO_ROW_KEPT)
        published = [n for n in frame.columns if n in columns and columns[n].role not in UNPUBLISHED]
        self.unpublished = tuple(str(name) for name in frame.columns if name not in published)
        self.unnamed = tuple(str(name) for name in frame.columns if name not in columns)
        self.frame = frame.loc[rows, published] if self.dropped else frame[published]
        identifying = [n for n in frame.columns if n in columns and columns[n].role in UNPUBLISHED]
        self.identifiers = frame.loc[rows, identifying] if self.dropped else frame[identifying]
        self.records = self._coded(_matrix or partial(_matrix_of, _arrays), _tell)

    @classmethod
    def of(
        cls, table: Any, schema: Schema | Mapping[str, Any] | str | PathLike[str] | None, taker: str
    ) -> Table:
        """Return a table from the arguments of a public function: a table, or a frame and its schema.

        Parameters
        ----------
        table : Table, or frame as :class:`Table` takes it
        schema : Schema, mapping, path or None
            Of a frame.
        taker : str
            The function's name, for messages.

        Raises
        ------
        ParameterError
            If it is a frame without a schema, or a table with one.
        DataError, SchemaError, HierarchyError
            As :class:`Table`.
        """
        if schema is None:
            if not isinstance(table, cls):
                raise ParameterError(
                    f"{taker} takes an anonflow.Table; make one with af.Table(frame, schema), or say schema= of a frame"
                )
            return table
        if isinstance(table, cls):
            raise ParameterError(f"{taker}: the table has its schema already; leave schema out")
        return cls(table, schema)

    @classmethod
    def read(
        cls,
        path: str | PathLike[str],
        schema: Schema | Mapping[str, Any] | str | PathLike[str],
        *,
        delimiter: str = ",",
        encoding: str = "utf-8",
        missing: Sequence[str] = (),
        sheet: str | None = None,
        labels: bool = True,
        user_missing: bool = False,
        shape: CsvShape = PLAIN,
        arrays: Arrays = IN_MEMORY,
    ) -> Table:
        """Read a table from a file: CSV, Parquet, SPSS, Stata, SAS, Excel.

        Parameters
        ----------
        path : path
        schema : Schema, mapping or path
        delimiter, encoding, missing, sheet, labels, user_missing, shape, arrays
            As :func:`anonflow.table.files.read.read_frame` takes them; its codes are where the arrays are, too.

        Raises
        ------
        DataError, SchemaError, HierarchyError
            As :class:`Table`, and if the file cannot be read.
        """
        schema = Schema.of(schema)
        frame = read_frame(
            path,
            delimiter=delimiter,
            encoding=encoding,
            missing=missing,
            sheet=sheet,
            labels=labels,
            user_missing=user_missing,
            named=schema.needed,
            shape=shape,
            arrays=arrays,
        )
        try:
            table = cls(frame, schema.with_separators(shape.decimal, shape.thousands), _arrays=arrays)
        except AnonflowError as error:
            raise error.in_file(fspath(path)) from None
        table.file = Path(path)
        return table

    @classmethod
    def coded(
        cls,
        records: Records,
        schema: Schema,
        columns: Sequence[str],
        others: Mapping[str, Any],
        units: np.ndarray | None = None,
        households: np.ndarray | None = None,
    ) -> Table:
        """Return a part of a table whose quasi-identifiers are known as codes only.

        Parameters
        ----------
        records : Records
            m records.
        schema : Schema
        columns : sequence of str
            The published ones, in the table's order.
        others : mapping
            The cells of those that are no quasi-identifiers, m each.
        units, households : numpy.ndarray, shape (m,), int64, optional
            Whose each record is.

        Returns
        -------
        Table
            In its frame, quasi-identifiers are empty.
        """
        nothing = np.broadcast_to(np.nan, records.n)
        cells = {name: others.get(name, nothing) for name in columns}
        frame = pd.DataFrame(cells, index=pd.RangeIndex(records.n), copy=False)
        part = cls(frame, schema, _records=records)
        owners = {part.schema.unit_column: units, part.schema.household_column: households}
        named = {name: labels for name, labels in owners.items() if name is not None and labels is not None}
        if named:
            part.identifiers = pd.DataFrame(named, copy=False)
        return part

    def _coded(
        self,
        matrix: Callable[[int, Sequence[np.ndarray]], np.ndarray],
        tell: Callable[[str, int, int], None],
    ) -> Records:
        domains: list[Domain] = []
        codes: list[np.ndarray] = []
        errors: list[AnonflowError] = []
        for at, name in enumerate(self.qi_columns):
            tell(f"coding column {name}", at, len(self.qi_columns))
            try:
                coded = code_column(self.frame[name], self.schema[name], self.schema.folder)
            except AnonflowError as error:
                errors.append(error)
                continue
            domains += coded.domains
            codes += coded.codes
        if errors:
            problems = [problem for error in errors for problem in error.problems]
            collected = type(errors[0]).collected("the table does not match its schema", problems)
            raise collected.with_labels(*errors)
        check_units(self.schema, self.unit, self.household)
        # of a row a person every k records are of k units
        units = None if self.schema.unit_column is None else self.unit
        return Records(tuple(domains), matrix(self.n, codes), units)

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.frame)

    @property
    def q(self) -> int:
        """Number of coded QIs; every position of a code counts."""
        return len(self.records.domains)

    @property
    def index(self) -> pd.Index:
        """The frame's index: the owner's, never published."""
        return self.frame.index

    @property
    def domains(self) -> tuple[Domain, ...]:
        """The domains of the coded QIs, in schema order."""
        return self.records.domains

    @property
    def codes(self) -> np.ndarray:
        """The records' codes, shape (n, q), int32."""
        return self.records.codes

    @cached_property
    def qi_columns(self) -> tuple[str, ...]:
        """Names of the QI columns, in schema order."""
        return self.schema.quasi_identifiers

    @cached_property
    def other_columns(self) -> tuple[str, ...]:
        """Published columns that are no QIs, in the table's order."""
        return tuple(name for name in self.frame.columns if self.schema[name].role != "quasi-identifier")

    @property
    def unit_columns(self) -> tuple[str, ...]:
        """What identifies people in another table: identifiers with their scopes, or quasi-identifiers if there are none."""
        return tuple(self._keys.values())

    @property
    def units(self) -> pd.DataFrame:
        """The cells of :attr:`unit_columns`: the owner's, never published."""
        names = list(self._keys)
        cells = self.identifiers if set(names) <= set(self.identifiers.columns) else self.frame
        return cells[names].rename(columns=self._keys)

    @cached_property
    def _keys(self) -> dict[str, str]:
        """The columns that identify people, each with its name and scope."""
        schema = self.schema
        if schema.unit_column is not None:
            names: tuple[str, ...] = (schema.unit_column,)
        else:
            names = tuple(str(name) for name in self.identifiers.columns if name != schema.household_column)
        scopes = {name: schema[name].scope if name in schema else None for name in names or self.qi_columns}
        return {name: name if scope is None else f"{name} of {scope}" for name, scope in scopes.items()}

    @cached_property
    def unit(self) -> np.ndarray | None:
        """The unit of each row, labels 0.., shape (n,), int64; None if each row counts as a person.

        With households alone each row has a unit of its own.
        """
        if self.schema.unit_column is None and self.household is not None:
            return np.arange(self.n)
        return self._labels(self.schema.unit_column)

    @cached_property
    def unit_rows(self) -> int:
        """Rows of the unit that has most of them; 1 if each row counts as a person.

        Of fewer than k times so many suppressed records nothing is published: one unit may have more than 1/k of them.
        """
        return 1 if self.unit is None or not self.n else int(np.bincount(self.unit).max())

    @cached_property
    def household(self) -> np.ndarray | None:
        """The household of each row's person, labels 0.., shape (n,), int64; None without such a column."""
        return self._labels(self.schema.household_column)

    @property
    def weights(self) -> np.ndarray | None:
        """The column of the role ``weight``, shape (n,), float64, nan for other values than numbers; None without one."""
        name = self.schema.weight_column
        return None if name is None or name not in self.frame.columns else weights_of(self.frame[name])

    def _labels(self, name: str | None) -> np.ndarray | None:
        """Return the labels of a column that is not published; None where the table is a part without it."""
        if name is None or name not in self.identifiers.columns:
            return None
        return np.asarray(pd.factorize(self.identifiers[name])[0], np.int64)

    @cached_property
    def sensitive(self) -> tuple[str, ...]:
        """Names of the sensitive columns, in the table's order."""
        return tuple(name for name in self.frame.columns if self.schema[name].role == "sensitive")

    def take(self, index: np.ndarray) -> Table:
        """Return the table of some of its records, over the same domains.

        Parameters
        ----------
        index : numpy.ndarray, integer
            Positions.

        Raises
        ------
        IndexError
            If a position does not exist.
        """
        part = Table(self.frame.iloc[index], self.schema, _records=self.records.take(index))
        part.unpublished, part.unnamed = self.unpublished, self.unnamed
        part.preparation = self.preparation
        part.identifiers = self.identifiers.iloc[index]
        return part

    def with_others(self, cells: Mapping[str, Any]) -> Table:
        """Return the table of the same people with other values in columns that are no quasi-identifiers.

        Parameters
        ----------
        cells : mapping
            Column -> n values.
        """
        other = self.take(np.arange(self.n))
        other.frame = other.frame.assign(**cells)
        return other

    def without(self, names: Collection[str]) -> Table:
        """Return the table of the same people without some of its columns that are no quasi-identifiers.

        Parameters
        ----------
        names : collection of str
        """
        part = Table(self.frame.drop(columns=list(names)), self.schema.without(names), _records=self.records)
        part.identifiers, part.whole_owners = self.identifiers, self.whole_owners
        return part

    def with_keys(self, names: Collection[str]) -> Table:
        """Return the table of the same people with some of its quasi-identifiers alone, over the same domains.

        Parameters
        ----------
        names : collection of str
            At least one.
        """
        unknown = [name for name in self.qi_columns if name not in names]
        positions = [a for a, domain in enumerate(self.domains) if domain.column in names]
        records = Records(
            tuple(self.domains[a] for a in positions),
            np.ascontiguousarray(self.records.codes[:, positions]),
            self.records.units,
        )
        part = Table(self.frame.drop(columns=unknown), self.schema.without(unknown), _records=records)
        part.identifiers = self.identifiers
        part.whole_owners = self.whole_owners
        return part

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        return f"Table({self.n} records, {len(self.qi_columns)} quasi-identifiers, {len(self.other_columns)} other columns)"

    def _repr_html_(self) -> str:
        numbers: list[tuple[str, Any]] = [
            ("records", f"{self.n:,}"),
            ("quasi-identifiers", len(self.qi_columns)),
            ("other columns", len(self.other_columns)),
        ]
        if self.dropped:
            numbers.append(("left out for a missing value", f"{self.dropped:,}"))
        if self.n <= COUNTED:
            unique = Uniqueness(self.frame, self.qi_columns).unique
            numbers.append(("unique on the quasi-identifiers", f"{unique:,} ({share(unique, self.n)})"))
        rows = []
        for name in map(str, self.frame.columns):
            column = self.schema[name]
            sizes = [int((domain.counts > 0).sum()) for domain in self.domains if domain.column == name]
            distinct = " / ".join(f"{size:,}" for size in sizes)
            rows.append((name, column.role, column.kind or "", distinct, column.details))
        return table_view(numbers, rows, self.frame)


def _matrix_of(arrays: Arrays, n: int, codes: Sequence[np.ndarray]) -> np.ndarray:
    """Return columns of codes as one array, shape (n, q), int32."""
    matrix = arrays.empty((n, len(codes)), np.int32)
    for start in range(0, n, _TOGETHER):
        batch = slice(start, start + _TOGETHER)
        for a, column in enumerate(codes):
            matrix[batch, a] = column[batch]
    return matrix


@dataclass(frozen=True, eq=False)
class WholeOwners:
    """Of a part of a larger table: how many rows the owners of its records have in all of it.

    Attributes
    ----------
    unit_rows : numpy.ndarray, shape (m,), int64
        Of the unit of each record.
    household_rows : numpy.ndarray, shape (m,), int64, or None
        Of its household.
    """

    unit_rows: np.ndarray
    household_rows: np.ndarray | None = None

    @classmethod
    def of(cls, unit: np.ndarray, household: np.ndarray | None, at: np.ndarray) -> WholeOwners:
        """Return that of the records at some positions of a table, from the labels of all its records."""
        return cls(
            np.bincount(unit)[unit[at]], None if household is None else np.bincount(household)[household[at]]
        )


def _check_frame(frame: pd.DataFrame, schema: Schema) -> None:
    if not isinstance(frame, pd.DataFrame):
        raise DataError(
            "a table is made of a pandas DataFrame, or of a frame that speaks Arrow's PyCapsule interface; read files "
            "with Table.read, compute a lazy frame (collect) before, and run a Dask DataFrame by af.run(flow, source=frame)"
        )
    check_columns(list(frame.columns), schema)
    if not len(frame):
        raise DataError("the table has no rows")
    nested = [
        f"column {name!r}: holds lists or structures"
        for name, column in schema.columns.items()
        if column.role not in (*UNPUBLISHED, "quasi-identifier") and _is_nested(frame[name])
    ]
    if nested:
        raise DataError.collected("the frame cannot be used", nested)


def _is_nested(cells: pd.Series) -> bool:
    """Return whether some of a column's Python objects are no single values."""
    kinds = set(map(type, cells)) if pd.api.types.is_object_dtype(cells.dtype) else ()
    return any(issubclass(kind, list | tuple | dict | set | frozenset | np.ndarray) for kind in kinds)


def _without_empty_texts(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return the same frame, or one in which empty texts are missing where no published file could tell the two apart."""
    for name in schema:
        cells = frame[name]
        if not schema[name].empty_is_missing:
            continue
        if isinstance(cells.dtype, pd.StringDtype):
            empty = (cells == "").fillna(False).to_numpy(dtype=bool)
        elif isinstance(cells.dtype, pd.CategoricalDtype) or pd.api.types.is_object_dtype(cells.dtype):
            empty = np.array([isinstance(cell, str) and not cell for cell in cells], bool)
        else:
            continue
        if empty.any():
            frame = frame.assign(**{name: cells.mask(empty)})
    return frame


def check_columns(names: list[Any], schema: Schema) -> None:
    """Refuse columns that do not agree with a schema.

    Raises
    ------
    DataError
        If names are not text, or occur twice.
    SchemaError
        If the schema names columns that the table does not have.
    """
    check_names(names)
    present = set(names)
    # search the nearest name only for the message: the time grows with the number of names
    absent = [name for name in schema if name not in present]
    if len(absent) == len(schema) and not any(suggest(name, names) for name in absent[:SHOWN]):
        # the message has no names of the table: if the header is missing, they are a person's values
        raise SchemaError(
            "none of the schema's columns is in the table; see that it has a header, and the right delimiter"
        )
    if absent:
        raise SchemaError.collected(
            "the schema names columns that the table does not have",
            [
                f"column {name!r}: not in the table{did_you_mean(name, names) if number < SHOWN else ''}"
                for number, name in enumerate(absent)
            ],
        )


def check_units(schema: Schema, unit: np.ndarray | None, household: np.ndarray | None) -> None:
    """Refuse rows without a person, and people of two households.

    Parameters
    ----------
    schema : Schema
    unit, household : numpy.ndarray, shape (n,), int64, or None
        Labels 0.., -1 where a cell is blank; None without such a column.

    Raises
    ------
    DataError
        If there are any.
    """
    sides = (("unit", schema.unit_column, unit), ("household", schema.household_column, household))
    for role, name, labels in sides:
        blank = 0 if labels is None else int(np.count_nonzero(labels < 0))
        if blank:
            raise DataError(
                f"column {name!r}: {plural(blank, 'row', 'have')} no {role}; every row needs one: fill them in, or leave these rows out"
            )
    if unit is not None and household is not None:
        first = np.full(int(unit.max()) + 1, -1)
        first[unit[::-1]] = household[::-1]
        torn = len(np.unique(unit[first[unit] != household]))
        if torn:
            raise DataError(
                f"column {schema.household_column!r}: {plural(torn, 'unit', 'are')} in several households; a unit has one"
            )
