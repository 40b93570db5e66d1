"""The values that each published cell may stand for, column by column: the basis of all analyses of a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from anonflow.analysis.conditions import written_numbers
from anonflow.criteria.guarantee import promises_classes, promises_matches
from anonflow.errors import AnonflowError, DataError, ParameterError
from anonflow.hierarchy import Hierarchy
from anonflow.option import check_whole
from anonflow.release.cells import ranges, shares
from anonflow.table import Schema, equal_columns
from anonflow.table.published.metadata import AGGREGATED, CODED, EXACT, ColumnMetadata, hierarchy_of
from anonflow.table.published.published_cells import (
    WHOLE,
    PublishedCells,
    code_cells,
    code_name,
    coded_cell,
    fits,
    quoted_value,
    stars,
)
from anonflow.table.schema import did_you_mean
from anonflow.table.spreadsheets import changed_texts

VALUES = 128
"""Numbers with more candidate values than this are put into as many intervals, equally full."""

GRID = 50
"""A column of numbers with fewer ends than this gets values in between: they need not be ends of ranges."""

EXACT_VALUES = 32
"""Columns that are published as they are have at most so many values in a model: intervals, or the rarest as one."""


@dataclass(frozen=True, eq=False)
class CandidateColumn:
    """One published column: each distinct cell, and the values that it may stand for.

    Attributes
    ----------
    name : str
    at : numpy.ndarray, shape (n,), int64
        For each row its distinct cell, 0 to u - 1.
    member : numpy.ndarray, shape (u, D), bool
        Which of the D candidate values a cell may stand for; at least one.
    whole : numpy.ndarray, shape (u,), bool
        Hidden cells (``*``).
    codes : numpy.ndarray, shape (C,), object
        Of numbers with codes beside them: the codes, empty of a missing value. They are the last C of the D candidates.
    coded : bool
        Whether there may be codes beside its numbers, also where no cell has any.
    unbounded : bool
        Whether these may stand for values that no cell names: their domain is not published.
    labels : bool
        Whether cells are labels of a hierarchy that is not public: any value may be below a label. An empty cell is a missing value.
    values : numpy.ndarray, shape (D,), object, or None
        The values of categories; None for numbers.
    low, high : numpy.ndarray, shape (u,), float64, or None
        The ends of cells of numbers, both included (dates: days since 1970-01-01); NaN of a cell that is a code.
    points : numpy.ndarray, float64, or None
        The ends of all rows, and values between them, ascending, as often as they occur.
    edges : numpy.ndarray, shape (D - C + 1,), float64, or None
        Candidate value d of a number is the interval from ``edges[d]`` up to, without, ``edges[d + 1]``.
    exact : bool
        Whether no cell is generalized: then there is no draw.
    dates : bool
        Whether the numbers are days.
    whole_numbers : bool
        Whether all ends are whole numbers.
    cells : pandas.Series
        As published, n rows.
    patterns : tuple of str or None
        Of codes with hidden positions: each distinct cell, as long as a code.
    """

    name: str
    at: np.ndarray
    member: np.ndarray
    whole: np.ndarray
    cells: pd.Series
    values: np.ndarray | None = None
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    points: np.ndarray | None = None
    edges: np.ndarray | None = None
    exact: bool = False
    dates: bool = False
    whole_numbers: bool = False
    unbounded: bool = True
    labels: bool = False
    codes: np.ndarray = field(default_factory=lambda: np.array([], object))
    coded: bool = False
    patterns: tuple[str, ...] | None = None

    @property
    def numeric(self) -> bool:
        """Whether its values are numbers."""
        return self.low is not None

    @property
    def size(self) -> int:
        """Number of candidate values, D."""
        return self.member.shape[1]

    @property
    def is_number(self) -> np.ndarray:
        """Which candidates are numbers, shape (D,), bool."""
        return np.arange(self.size) < (self.size - len(self.codes) if self.numeric else 0)

    @property
    def numbers(self) -> np.ndarray:
        """Which cells may be a number, shape (u,), bool."""
        return np.asarray((self.member & self.is_number).any(axis=1))

    @cached_property
    def first(self) -> np.ndarray:
        """The first candidate of each cell, shape (u,), int64."""
        return self.member.argmax(axis=1)

    @cached_property
    def present(self) -> np.ndarray:
        """Values that some original has if a cell is a hull, shape (u, D), bool: the ends of a range, the members of a set.

        Those of a label, too, which is the lowest above all originals; and both of two values, if a cell is hidden.
        """
        present = self.member & ~self.is_number
        if self.numeric:
            rows = np.flatnonzero(self.numbers)
            last = self.size - 1 - (self.member & self.is_number)[rows, ::-1].argmax(axis=1)
            present[rows, self.first[rows]] = present[rows, last] = True
        both = self.size == 2 and not self.numeric
        present[(self.width == 1) | (self.whole & (not both))] = False
        if self.patterns is not None:
            present[:] = False
        return present

    @cached_property
    def width(self) -> np.ndarray:
        """How many candidates each cell has, shape (u,), int64."""
        return self.member.sum(axis=1)

    @cached_property
    def entries(self) -> sparse.csr_matrix:
        """The candidates of each cell as ones, shape (u, D), cell by cell in ascending order."""
        ends = np.concatenate([[0], np.cumsum(self.width)])
        values = np.nonzero(self.member)[1]
        return sparse.csr_matrix((np.ones(len(values)), values, ends), shape=self.member.shape)

    def take(self, rows: np.ndarray) -> CandidateColumn:
        """Return the same of some rows."""
        return replace(self, at=self.at[rows], cells=self.cells.iloc[rows])


@dataclass(frozen=True, eq=False)
class CandidateTable:
    """A release as the candidate values of its cells.

    Attributes
    ----------
    columns : tuple of CandidateColumn
        In the release's order.
    n : int
        Rows.
    matches : int or None
        How many originals each row stands for with equal chances, where ranges and sets are the hulls of these: k of a
        k-regular release, the mean size of classes if it has these. None where nothing is known of them.
    """

    columns: tuple[CandidateColumn, ...]
    n: int
    matches: int | None = None

    def __getitem__(self, name: str) -> CandidateColumn:
        for column in self.columns:
            if column.name == name:
                return column
            if column.coded and code_name(column.name) == name:
                return _categories(code_cells(column.cells), None, exact=False)
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names of all columns of a plausible table, with those beside numbers that have codes."""
        return (*self.names, *(code_name(column.name) for column in self.columns if column.coded))

    @cached_property
    def suppressed(self) -> np.ndarray:
        """Rows that hide all generalized columns, shape (n,), bool."""
        hidden = [column.whole[column.at] for column in self.columns if not column.exact]
        return np.all(hidden, axis=0) if hidden else np.zeros(self.n, bool)

    def take(self, rows: np.ndarray) -> CandidateTable:
        """Return the same of some rows."""
        return CandidateTable(tuple(column.take(rows) for column in self.columns), len(rows), self.matches)

    @classmethod
    def of(
        cls,
        release: Any,
        schema: Schema | Mapping[str, Any] | None = None,
        k: int | None = None,
        trees: Mapping[str, Hierarchy] | None = None,
        columns: Sequence[str] | None = None,
    ) -> CandidateTable:
        """Read a release.

        Parameters
        ----------
        release : Release or pandas.DataFrame
            n published rows. Of a certificate only k and the criterion are looked at, which are published anyway.
        schema : Schema or mapping, optional
            Says which columns are numbers, and has the trees of hierarchies. Without it that is what the release tells
            of its columns; without it, a column is numbers if all its cells are, and labels of a hierarchy stand for
            themselves.
        k : int, optional
            Of a k-regular release: how many originals each row stands for.
        trees : mapping, optional
            Column -> its hierarchy, instead of the schema's.
        columns : sequence of str, optional
            Those to read; all without it.

        Raises
        ------
        DataError
            If there are no rows, or a column does not read as the schema says.
        ParameterError
            If it is no release, k is below 1, or a column is not there.
        """
        frame = release if isinstance(release, pd.DataFrame) else getattr(release, "frame", None)
        if not isinstance(frame, pd.DataFrame):
            raise ParameterError(
                f"cannot compute with a {type(release).__name__}; give a release or a published table"
            )
        if not len(frame):
            raise DataError("the release has no rows")
        metadata = getattr(release, "about", None)
        promise = getattr(release, "certificate", None) or metadata  # both say k and the criterion
        criterion = getattr(promise, "criterion", None) or getattr(promise, "guarantee", None) or ""
        if k is None:
            k = getattr(promise, "k", None)
        else:
            check_whole(k, 1, "k must be a whole number of at least 1")
        if k is not None and promise is None:
            criterion = "k-regular"
        declared = None if schema is None else Schema.of(schema)
        described = {} if metadata is None else {column.name: column for column in metadata.columns}
        names = _chosen_names(frame, columns)
        read = tuple(
            _column_candidates(frame[name], described[name])
            if declared is None and name in described
            else _declared_column(frame[name], declared, trees or {})
            for name in names
        )
        code_names = [code_name(column.name) for column in read if column.coded]
        if not set(code_names).isdisjoint(names):
            raise DataError(
                f"column {next(name for name in code_names if name in names)!r}: has the name of the column that is computed for codes; "
                "leave it out with columns="
            )
        general = [column.at for column in read if not column.exact]
        for name in frame.columns:
            generalized = (
                described[name].is_generalized
                if name in described
                else declared is not None and name in declared and declared[name].kind is not None
            )
            if name not in names and generalized:  # classes are those of the whole release
                general.append(PublishedCells.of(frame[name]).rows.astype(np.int64))
        return cls(read, len(frame), _matches(general, len(frame), criterion, k))


def _chosen_names(frame: pd.DataFrame, columns: Sequence[str] | None) -> list[str]:
    every = [str(name) for name in frame.columns]
    if columns is None:
        return every
    if isinstance(columns, str) or not len(columns):
        raise ParameterError("columns is a list of columns' names, at least one")
    for name in columns:
        if name not in every:
            raise ParameterError(
                f"columns: there is no column {name!r}{did_you_mean(str(name), tuple(every))}"
            )
    return [name for name in every if name in set(columns)]


def _matches(general: Sequence[np.ndarray], n: int, criterion: str, k: int | None) -> int | None:
    """Return how many originals a row stands for, from the cells of the generalized columns, shape (n,) each."""
    if k is not None and promises_matches(criterion):
        return int(k)
    if k is None or not promises_classes(criterion):
        return None
    # suppressed rows are one class
    return max(int(k), round(n / (int(equal_columns(list(general), n).max()) + 1)))


def _column_candidates(cells: pd.Series, metadata: ColumnMetadata) -> CandidateColumn:
    """Return a column as the release describes it."""
    if metadata.notation == CODED:
        return _range_column(cells, coded=True)
    values_are_unknown = metadata.bounds is None and metadata.values is None and metadata.tree is None
    if values_are_unknown and stars(cells).all():  # it stays as it is
        return _categories(cells, None, exact=True)
    if metadata.notation == "range":
        return _range_column(cells, metadata.bounds, metadata.has_domain and not metadata.missing)
    if metadata.notation == "positions":
        return _code_column(cells)
    if metadata.notation in AGGREGATED:
        return _aggregated(cells)
    if metadata.notation == EXACT:
        return _as_it_was(cells)
    closed = metadata.has_domain and not metadata.missing
    column = _categories(cells, metadata.tree, exact=False, declared=metadata.values, closed=closed)
    return replace(column, labels=metadata.notation == "node" and metadata.tree is None)


def _declared_column(
    cells: pd.Series, schema: Schema | None, trees: Mapping[str, Hierarchy]
) -> CandidateColumn:
    name = str(cells.name)
    column = schema[name] if schema is not None and name in schema else None
    published_as_is = column is not None and column.role != "quasi-identifier"
    kind = None if column is None else column.kind
    if column is not None and column.has_codes:
        return _range_column(cells, coded=True)
    if column is not None and column.aggregate is not None:
        return _aggregated(cells)
    if pd.api.types.is_bool_dtype(cells.dtype):
        return _categories(cells, None, exact=True)
    if pd.api.types.is_numeric_dtype(cells.dtype) or pd.api.types.is_datetime64_any_dtype(cells.dtype):
        return _exact_numbers(cells)
    if published_as_is:
        return _as_it_was(cells)
    if stars(cells).all():  # its values are unknown: it stays as it is
        return _categories(cells, None, exact=True)
    if kind == "numeric" or (kind is None and _reads_as_numbers(cells)):
        return _range_column(cells)
    tree = trees.get(name)
    if tree is None and column is not None and kind == "hierarchy" and schema is not None:
        tree = hierarchy_of(column, schema)
    if kind == "positions":
        return _code_column(cells)
    # a missing value is in no tree
    closed = tree is not None and column is not None and column.missing != "value"
    return _categories(cells, tree, exact=False, closed=closed)


def _as_it_was(cells: pd.Series) -> CandidateColumn:
    """Return a column that is published as it was: numbers, also where a file has them as text, or categories."""
    if pd.api.types.is_bool_dtype(cells.dtype):
        return _categories(cells, None, exact=True)
    read = written_numbers(cells)
    if pd.api.types.is_numeric_dtype(read.dtype) or pd.api.types.is_datetime64_any_dtype(read.dtype):
        return _exact_numbers(read)
    hidden = stars(cells)
    visible = cells[~hidden]
    numbers = (
        hidden.any() and len(visible) and written_numbers(visible) is not visible and not cells.isna().any()
    )
    return _range_column(cells) if numbers else _categories(cells, None, exact=True)


def _aggregated(cells: pd.Series) -> CandidateColumn:
    """Return a column of means of several people, unchanged: they do not show a person's number."""
    column = _categories(cells.astype(str), None, exact=True)
    return replace(column, whole=np.ones(len(column.whole), bool))


def _reads_as_numbers(cells: pd.Series) -> bool:
    distinct = pd.Series(pd.unique(cells))
    if distinct.isna().any():
        return False
    try:
        ranges(distinct)
    except AnonflowError:
        return False
    return True


def _exact_numbers(cells: pd.Series) -> CandidateColumn:
    """Return numbers as they were: intervals, equally full, and one more for those that are missing."""
    dates = pd.api.types.is_datetime64_any_dtype(cells.dtype)
    numbers = (
        cells.astype("int64").to_numpy(np.float64) if dates else cells.to_numpy(np.float64, na_value=np.nan)
    )
    missing = cells.isna().to_numpy()
    present = numbers[~missing]
    distinct = np.unique(present)
    if len(distinct) > EXACT_VALUES:
        inner = np.unique(np.quantile(present, np.linspace(0, 1, EXACT_VALUES + 1)[1:-1], method="lower"))
        at = np.searchsorted(inner, numbers, side="right")
    else:
        at = np.searchsorted(distinct, numbers)
    at = np.where(missing, at.max(initial=0) + 1, at)
    at = np.unique(at, return_inverse=True)[1].astype(np.int64)
    size = int(at.max()) + 1
    return CandidateColumn(
        str(cells.name), at, np.eye(size, dtype=bool), np.zeros(size, bool), cells, exact=True
    )


def _range_column(
    cells: pd.Series, bounds: tuple[str, str] | None = None, closed: bool = False, *, coded: bool = False
) -> CandidateColumn:
    """Return a column of ranges: the ends of all rows are candidate values, and what lies between where they are few.

    Codes beside the numbers, and a missing value, are candidates of their own.
    """
    published = PublishedCells.of(cells)
    at, whole = published.rows, published.hidden
    parts = [coded_cell(text) if coded and text != WHOLE else (text, []) for text in published.texts]
    if all(run in (None, WHOLE) for run, _ in parts) and (coded or bounds is None):
        return _categories(cells, None, exact=bool(whole.all()))  # no number at all
    codes = sorted({code for _, members in parts for code in members})
    runs = [WHOLE if run is None else run for run, _ in parts]
    ends = ranges(pd.Series(runs, name=cells.name, dtype=object), bounds)
    dates = pd.api.types.is_datetime64_any_dtype(ends["low"].dtype)
    low, high = (_plain_numbers(ends[name], dates) for name in ("low", "high"))
    numbers = np.array([run is not None for run, _ in parts], bool)
    points = _points(low, high, at[numbers[at]], whole)
    starts = _starts(np.unique(points), points)
    edges = np.append(starts, np.inf)
    first = np.maximum(np.searchsorted(starts, low, side="right") - 1, 0)
    last = np.maximum(np.searchsorted(starts, high, side="right") - 1, 0)
    places = np.arange(len(starts))
    member = (places >= first[:, None]) & (places <= last[:, None]) & numbers[:, None]
    beside = np.array([[code in members for code in codes] for _, members in parts], bool)
    member = np.hstack([member, beside.reshape(len(parts), len(codes)) | whole[:, None]])
    return CandidateColumn(
        str(cells.name),
        at.astype(np.int64),
        member,
        whole,
        cells,
        low=np.where(numbers, low, np.nan),
        high=np.where(numbers, high, np.nan),
        points=points,
        edges=edges,
        exact=bool((~numbers | (low == high)).all() and ((numbers + beside.sum(axis=1)) == 1).all()),
        dates=dates,
        whole_numbers=_whole_numbers(np.concatenate([low[numbers], high[numbers]])),
        unbounded=not closed,
        codes=np.array([quoted_value(code) for code in codes], object),
        coded=coded,
    )


def _whole_numbers(ends: np.ndarray) -> bool:
    """Return whether they are whole, and small enough for floats to distinguish neighbours."""
    return bool(((ends == np.floor(ends)) & (np.abs(ends) < 2.0**53)).all())


def _plain_numbers(cells: pd.Series, dates: bool) -> np.ndarray:
    if dates:
        return ((cells - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)).to_numpy(np.float64)
    return cells.to_numpy(np.float64)


def _points(low: np.ndarray, high: np.ndarray, at: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return the ends of all rows that say something, with values in between where these are few, ascending."""
    rows = at[~whole[at]] if not whole.all() else at
    ends = np.concatenate([low[rows], high[rows]])
    least, greatest = float(ends.min()), float(ends.max())
    distinct = np.unique(ends)
    if len(distinct) < GRID and greatest > least:
        step = np.linspace(0, 1, GRID + 1)
        grid = least * (1 - step) + greatest * step  # the difference of the two may be no number
        if (distinct == np.floor(distinct)).all():
            grid = np.unique(np.round(grid))
        ends = np.concatenate([ends, grid])
    return np.sort(ends)


def _starts(distinct: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return where each candidate value begins: values themselves, or intervals with equally many ends."""
    if len(distinct) <= VALUES:
        return distinct
    quantiles = np.quantile(points, np.linspace(0, 1, VALUES + 1)[:-1], method="lower")
    return np.unique(quantiles)


def _categories(
    cells: pd.Series,
    tree: Hierarchy | None,
    exact: bool,
    *,
    declared: Sequence[str | None] | None = None,
    closed: bool = False,
) -> CandidateColumn:
    """Return a column of categories; `declared` are the values that there are, `closed` whether ``*`` is one of these."""
    published = PublishedCells.of(cells)
    at, whole, texts = published.rows, published.hidden, np.array(published.texts, object)
    if exact:
        codes, values = pd.factorize(texts, sort=True)
        if whole.any() and len(values) > 1:  # a suppressed row's own value, which is hidden with the others
            values, member = _values_of(texts, None, None, str(cells.name))
            return CandidateColumn(str(cells.name), at, member, whole, cells, values=values)
        codes = _rare_as_one(codes, at)
        size = int(codes.max()) + 1
        member = np.eye(size, dtype=bool)[codes]
        return CandidateColumn(str(cells.name), at, member, whole, cells, exact=True)
    values, member = _values_of(texts, tree, declared, str(cells.name))
    single = not whole.any() and bool((member.sum(axis=1) == 1).all())
    if single:
        cells = changed_texts(cells, partial(map, quoted_value))
    if single and len(values) > EXACT_VALUES:
        codes = _rare_as_one(member.argmax(axis=1), at)
        size = int(codes.max()) + 1
        return CandidateColumn(
            str(cells.name),
            at,
            np.eye(size, dtype=bool)[codes],
            np.zeros(len(texts), bool),
            cells,
            exact=True,
        )
    return CandidateColumn(
        str(cells.name),
        at,
        member,
        whole,
        cells,
        values=values,
        exact=single,
        unbounded=not closed,
    )


def _values_of(
    texts: np.ndarray, tree: Hierarchy | None, declared: Sequence[str | None] | None, name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return all values that cells name, or that are declared, and which of them each cell may stand for."""
    domain = None if declared is None else ["" if value is None else value for value in declared]
    table = shares(pd.Series(texts, name=name), values=domain, hierarchy=tree)
    return np.array(table.columns, object), table.to_numpy() > 0


def _rare_as_one(codes: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return codes of the most frequent values, and one for the others."""
    counts = np.bincount(codes[at])
    frequent = np.argsort(-counts, kind="stable")[: EXACT_VALUES - 1]
    rank = np.full(len(counts), len(frequent))
    rank[np.sort(frequent)] = np.arange(len(frequent))
    return np.unique(rank[codes], return_inverse=True)[1]


def _code_column(cells: pd.Series) -> CandidateColumn:
    """Return codes with hidden positions: the codes that some row shows in full, where one goes with a pattern."""
    published = PublishedCells.of(cells)
    texts = published.texts
    longest = max(map(len, texts))
    patterns = [WHOLE * longest if text == WHOLE else text for text in texts]
    full = [text for text in patterns if WHOLE not in text]
    values: list[str] = sorted(set(full))
    rows: list[list[int]] = []
    for pattern in patterns:
        fitting = [code for code, value in enumerate(values) if fits(value, pattern)]
        if not fitting:
            values.append(pattern)
            fitting = [len(values) - 1]
        rows.append(fitting)
    member = np.zeros((len(texts), len(values)), bool)
    for u, fitting in enumerate(rows):
        member[u, list(fitting)] = True
    return CandidateColumn(
        str(cells.name),
        published.rows.astype(np.int64),
        member,
        published.hidden,
        cells,
        values=np.array(values, object),
        exact=not any(WHOLE in text for text in texts),
        patterns=tuple(patterns),
    )
