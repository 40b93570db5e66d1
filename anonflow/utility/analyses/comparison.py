"""Originals and plausible tables of a release: the input of every measure of an analysis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from weakref import ref

import numpy as np
import pandas as pd

from anonflow.analysis.candidates import CandidateTable
from anonflow.analysis.conditions import numbers_of, written_numbers
from anonflow.analysis.models import texts
from anonflow.analysis.plausible_tables import plausible_of
from anonflow.errors import DataError, ParameterError
from anonflow.hierarchy.wording import plural
from anonflow.release import Release, publish
from anonflow.table import Table
from anonflow.table.domain import Domain, missing_cells
from anonflow.table.forms.numbers import numbers_of as values_in
from anonflow.table.forms.text_columns import text_type
from anonflow.table.published.published_cells import IS_NUMBER, code_name, rows_of_stars
from anonflow.table.schema import did_you_mean
from anonflow.utility.subject import Part

TABLES = 5
"""Default number of plausible tables that a measure averages over."""

LEAST = 50
"""The least number of originals in a subgroup: an analysis of fewer does not describe the method."""

BINS = 20
"""Numbers with more distinct values than this are put into so many intervals, equally full in the originals."""

STEP = 0x0A17
"""Of the draw, apart from those of releases."""


@dataclass(frozen=True, eq=False)
class ComparedCodes:
    """Columns as small codes, the same for originals and plausible tables.

    Attributes
    ----------
    sizes : tuple of int
        Codes of each column.
    original : numpy.ndarray, shape (n, c), int64
    tables : tuple of numpy.ndarray, each shape (rows, c), int64
    """

    sizes: tuple[int, ...]
    original: np.ndarray
    tables: tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Originals and plausible tables that are compared.

    Attributes
    ----------
    original : pandas.DataFrame
        The originals' published columns.
    tables : tuple of pandas.DataFrame
        Plausible tables of the rows that are not suppressed, with the same columns.
    lost : float
        The share of rows that are suppressed.
    sources : tuple of numpy.ndarray, shape (rows,), int64, or None
        For each row of each table the original whose other columns it carries, -1 where it is not among these
        originals; None where it is not known.
    """

    original: pd.DataFrame
    tables: tuple[pd.DataFrame, ...]
    lost: float
    sources: tuple[np.ndarray, ...] | None = None

    @cached_property
    def kept(self) -> float:
        """The share of rows that are not suppressed."""
        return 1.0 - self.lost

    @cached_property
    def coded(self) -> ComparedCodes:
        """All columns as codes."""
        columns: list[np.ndarray] = []
        per_table: list[list[np.ndarray]] = [[] for _ in self.tables]
        sizes = []
        for name in self.original.columns:
            numbers = numbers_of(self.original[name])
            if numbers is not None and all(numbers_of(table[name]) is not None for table in self.tables):
                edges = _edges(numbers)
                parts = [_intervals_of(numbers, edges)]
                parts += [_intervals_of(np.asarray(numbers_of(table[name])), edges) for table in self.tables]
                sizes.append(len(edges) + 2)
            else:
                words = pd.concat(
                    [texts(self.original[name]), *(texts(table[name]) for table in self.tables)]
                )
                codes, values = pd.factorize(words)
                ends = np.cumsum([len(self.original), *map(len, self.tables)])
                parts = np.split(codes.astype(np.int64), ends[:-1])
                sizes.append(len(values))
            columns.append(parts[0])
            for table_columns, part in zip(per_table, parts[1:], strict=True):
                table_columns.append(part)
        return ComparedCodes(
            tuple(sizes),
            np.column_stack(columns),
            tuple(np.column_stack(table_columns) for table_columns in per_table),
        )

    def subgroup(self, name: str, value: str) -> Comparison:
        """Return the same for the records with a value in a column."""
        members = (texts(self.original[name]) == value).to_numpy()
        masks = [(texts(table[name]) == value).to_numpy() for table in self.tables]
        tables = tuple(
            table[mask].reset_index(drop=True) for table, mask in zip(self.tables, masks, strict=True)
        )
        sources = None
        if self.sources is not None:
            place = np.where(members, np.cumsum(members) - 1, -1)
            sources = tuple(place[source[mask]] for source, mask in zip(self.sources, masks, strict=True))
        original = self.original[members].reset_index(drop=True)
        lost = 0.0
        if self.lost:
            # share of the subgroup, not of all: its missing records are suppressed, or have another value now
            rows = np.mean([len(table) for table in tables])
            lost = float(np.clip(1 - rows / len(original), 0.0, 1.0))
        return Comparison(original, tables, lost, sources)

    def groups(self, name: Any) -> list[str]:
        """Return the values of a column that name subgroups.

        Raises
        ------
        ParameterError
            If there is no such column, or a subgroup has too few people.
        """
        if name not in self.original.columns:
            raise ParameterError(
                f"by: there is no column {name!r}{did_you_mean(str(name), tuple(map(str, self.original.columns)))}"
            )
        sizes = texts(self.original[name]).value_counts()
        if int(sizes.min()) < LEAST:
            raise ParameterError(
                f"by: the smallest subgroup of {name!r} has {plural(int(sizes.min()), 'person')}, and an analysis needs {LEAST}; "
                "unite its rare values, or name another column"
            )
        return sorted(map(str, sizes.index))


def _edges(numbers: np.ndarray) -> np.ndarray:
    """Return where intervals of numbers begin but the first: at distinct values, or equally full."""
    values = numbers[~np.isnan(numbers)]
    distinct = np.unique(values)
    if len(distinct) <= BINS:
        return np.asarray(distinct[1:] / 2 + distinct[:-1] / 2)
    return np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1)[1:-1], method="lower"))


def _intervals_of(numbers: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Return the interval of each number; missing ones are one of their own."""
    codes = np.searchsorted(edges, numbers, side="right").astype(np.int64)
    return np.where(np.isnan(numbers), len(edges) + 1, codes)


_latest: tuple[Callable[[], Any], Callable[[], Any], tuple[int, int], Comparison] | None = None
"""The last comparison, with weak references to its table and subject."""


def comparison_of(part: Part, m: int, seed: int) -> Comparison:
    """Return originals and plausible tables of a measurement; they are kept for the next measure of the same subject.

    Parameters
    ----------
    part : Part
        With its table and its subject.
    m, seed : int
        Plausible tables, and their seed.

    Raises
    ------
    ParameterError
        If the part has no table: then it has quasi-identifiers only.
    DataError
        If the release has other columns than the table.

    Notes
    -----
    For an anonymization we measure what a draw would publish: a separate draw is computed for this, with words of its own.
    """
    global _latest
    # a frame may change between two measurements, an anonymization does not
    owner = part.subject if hasattr(part.subject, "algorithm") else part
    if _latest is not None:
        other, table, settings, comparison = _latest
        if other() is owner and table() is part.table and settings == (m, seed):
            return comparison
    comparison = _compared(part, m, seed)
    _latest = ref(owner), ref(part.table), (m, seed), comparison
    return comparison


def _compared(part: Part, m: int, seed: int) -> Comparison:
    table, subject = part.table, part.subject
    if not isinstance(table, Table):
        raise ParameterError("measures of an analysis need the table and its release; give both to measure")
    release = subject
    if hasattr(subject, "generalization") and hasattr(subject, "algorithm"):
        release = publish(subject, (1 << 127) + seed, step=STEP, rehearsal=True)
    elif hasattr(subject, "decode"):  # a generalization alone: rows carry their own columns
        others = table.frame[list(table.other_columns)].reset_index(drop=True)
        release = Release(pd.concat([subject.decode(), others], axis=1)[list(table.frame.columns)])
    frame = getattr(release, "frame", release)
    absent = [name for name in table.frame.columns if name not in frame.columns]
    if absent:
        raise DataError(
            f"column {absent[0]!r}: missing from the release; an analysis needs all that the table publishes"
        )
    hidden = part.generalization.suppressed_rows() if release is subject else None
    rows = rows_of_stars(frame, table.qi_columns) if hidden is None else hidden
    visible_rows = np.flatnonzero(~rows)
    original = originals_of(table)
    if not len(visible_rows):
        return Comparison(original, (original.iloc[:0],) * m, 1.0)
    trees = {
        d.column: d.hierarchy.gathered()
        for d in table.domains
        if d.kind == "hierarchy" and d.hierarchy is not None
    }
    visible_frame = frame[list(table.frame.columns)].iloc[visible_rows].reset_index(drop=True)
    certificate = getattr(release, "certificate", None)
    candidates = CandidateTable.of(Release(visible_frame, certificate), table.schema, trees=trees)
    tables = tuple(_as_originals(drawn, table.domains) for drawn in plausible_of(candidates, m, seed).tables)
    truth = getattr(release, "truth", None)
    sources = None if truth is None else (np.asarray(truth)[visible_rows],) * m
    return Comparison(original, tables, float(rows.mean()), sources)


def _as_originals(drawn: pd.DataFrame, domains: Sequence[Domain]) -> pd.DataFrame:
    """Return a plausible table with the columns of the originals: with one for codes, too, where no row shows anything else."""
    columns = {}
    for domain in domains:
        cells, beside = drawn[domain.column], code_name(domain.column)
        if domain.has_codes and beside not in drawn.columns:
            are_numbers = numbers_of(cells) is not None
            columns[beside] = pd.Series(
                [IS_NUMBER] * len(cells) if are_numbers else texts(cells), dtype=text_type()
            )
    return drawn.assign(**columns)


def originals_of(table: Table) -> pd.DataFrame:
    """Return the originals, with numbers and dates that a file has as text: those of numeric columns, and all that read so.

    Numbers with codes are two columns, as in plausible tables: the numbers, and beside them the codes (:func:`code_name`).
    """
    frame = table.frame.reset_index(drop=True)
    columns = {str(name): written_numbers(frame[name]) for name in table.other_columns}
    for domain in table.domains:
        cells = frame[domain.column]
        if domain.kind != "numeric":
            continue
        if domain.has_codes:
            codes, missing = table.schema[domain.column].codes, missing_cells(cells)
            is_code = cells.isin(list(codes)).to_numpy(dtype=bool)
            beside = np.where(missing, "", np.where(is_code, cells.astype(str), IS_NUMBER))
            columns[code_name(domain.column)] = pd.Series(beside, dtype="str")
            cells = cells.where(~is_code & ~missing).infer_objects()
            columns[domain.column] = cells
        if numbers_of(cells) is None:
            present = cells[~missing_cells(cells)]  # in any spelling that the table takes, such as +5
            values, dates = values_in(present, domain.column)
            numbers = values if dates is not None else values.astype(np.float64)
            columns[domain.column] = pd.Series(numbers, present.index).reindex(frame.index)
    return frame.assign(**columns)


def by_group(
    comparison: Comparison, by: str | None, value: Callable[[Comparison], dict[str, float]], better: str
) -> dict[str, float]:
    """Return a measure for all records, and for the subgroup with the worst value.

    Parameters
    ----------
    comparison : Comparison
    by : str or None
        The column of the subgroups.
    value : callable
        Comparison -> suffix -> number; the suffix ``""`` is the measure.
    better : {"lower", "higher"}

    Returns
    -------
    dict of str -> float
        With ``worst-by-COLUMN`` where there are subgroups.
    """
    numbers: dict[str, float] = dict(value(comparison))
    if by is not None:
        group_values = [value(comparison.subgroup(by, group))[""] for group in comparison.groups(by)]
        numbers[f"worst-by-{by}"] = max(group_values) if better == "lower" else min(group_values)
    return numbers
