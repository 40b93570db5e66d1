"""How strongly columns are associated, in the originals and in the release."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from anonflow.analysis.conditions import numbers_of
from anonflow.table import Table
from anonflow.utility.analyses.comparison import TABLES, Comparison, comparison_of
from anonflow.utility.subject import part_of


@dataclass(frozen=True, eq=False)
class Associations:
    """The associations of all pairs of columns; see :func:`matrices`.

    Attributes
    ----------
    columns : tuple of str
    before, after : numpy.ndarray, shape (c, c), float64
        Between 0 and 1.
    """

    columns: tuple[str, ...]
    before: np.ndarray
    after: np.ndarray


def associations_of(table: Table, subject: Any) -> Associations:
    """Return the associations of a table and of its release.

    Parameters
    ----------
    table : Table
    subject : Anonymization or Release

    Raises
    ------
    DataError
        If the two do not go together.
    """
    part = replace(part_of(table, subject), table=table, subject=subject)
    names, before, after = matrices(comparison_of(part, TABLES, 0))
    return Associations(tuple(names), before, after)


def matrices(comparison: Comparison) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return names, and the associations of all pairs of columns before and after, shape (c, c), float64 each.

    The association of two columns of numbers is the absolute correlation (Pearson), of two others Cramer's V, and of one
    of each the correlation ratio (the root of the share of variance that the category explains). All are between 0 and
    1; a column that does not vary has 0. After: the mean over the plausible tables, times the share of rows that are
    not suppressed.
    """
    names = [str(name) for name in comparison.original.columns]
    numeric = [
        numbers_of(comparison.original[name]) is not None
        and all(numbers_of(table[name]) is not None for table in comparison.tables)
        for name in names
    ]
    coded = comparison.coded

    def matrix_of(frame: pd.DataFrame, codes: np.ndarray) -> np.ndarray:
        strength = np.eye(len(names))
        values = [np.asarray(numbers_of(frame[name])) if is_number else None
                  for name, is_number in zip(names, numeric, strict=True)]  # fmt: skip
        for a in range(len(names)):
            for b in range(a):
                strength[a, b] = strength[b, a] = _strength(values[a], values[b], codes[:, a], codes[:, b])
        return strength

    before = matrix_of(comparison.original, coded.original)
    table_matrices = [
        matrix_of(table, codes)
        for table, codes in zip(comparison.tables, coded.tables, strict=True)
        if len(table)
    ]
    after = np.mean(table_matrices, axis=0) * comparison.kept if table_matrices else np.zeros_like(before)
    return names, before, after


def association(comparison: Comparison) -> dict[str, float]:
    """Return the mean and the largest absolute change over all pairs of columns.

    In suppressed rows the association is completely lost; this does not compensate for an association that is too
    strong in the others.
    """
    names, before, after = matrices(comparison)
    if len(names) < 2:
        return {"": 0.0, "worst": 0.0}
    change = np.abs(comparison.kept * before - after) + comparison.lost * before
    change = change[np.tril_indices(len(names), -1)]
    return {"": float(change.mean()), "worst": float(change.max())}


def _strength(x: np.ndarray | None, y: np.ndarray | None, a: np.ndarray, b: np.ndarray) -> float:
    if x is not None and y is not None:
        both = ~(np.isnan(x) | np.isnan(y))
        return _correlation(x[both], y[both])
    if x is not None:
        return _correlation_ratio(x, b)
    return _cramer(a, b) if y is None else _correlation_ratio(y, a)


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    x, y = _centred(x), _centred(y)
    scale = np.sqrt((x * x).sum()) * np.sqrt((y * y).sum())
    return min(1.0, abs(float((x * y).sum() / scale))) if scale > 0 else 0.0


def _centred(x: np.ndarray) -> np.ndarray:
    """Return differences from the mean, in units of the largest number: squares of these add up."""
    if not len(x):
        return x
    x = x / max(float(np.abs(x).max()), np.finfo(float).tiny)
    return np.asarray(x - x.mean())


def _cramer(a: np.ndarray, b: np.ndarray) -> float:
    a, b = np.unique(a, return_inverse=True)[1], np.unique(b, return_inverse=True)[1]
    rows, columns = int(a.max(initial=-1)) + 1, int(b.max(initial=-1)) + 1
    if min(rows, columns) < 2:
        return 0.0
    table = np.bincount(a * columns + b, minlength=rows * columns).reshape(rows, columns)
    expected = table.sum(axis=1)[:, None] * table.sum(axis=0)[None] / len(a)
    chi = ((table - expected) ** 2 / expected).sum()
    return min(1.0, float(np.sqrt(chi / len(a) / (min(rows, columns) - 1))))


def _correlation_ratio(numbers: np.ndarray, groups: np.ndarray) -> float:
    has_number = ~np.isnan(numbers)
    numbers, groups = numbers[has_number], groups[has_number]
    if not len(numbers):
        return 0.0
    groups = np.unique(groups, return_inverse=True)[1]
    counts = np.bincount(groups)
    numbers = _centred(numbers)
    total = (numbers**2).sum()
    between = (np.bincount(groups, numbers) ** 2 / counts).sum()
    return min(1.0, float(np.sqrt(between / total))) if total > 0 else 0.0
