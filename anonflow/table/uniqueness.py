"""How many records stand alone: the sizes of classes of equal records, before anything is generalized."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from anonflow.errors import SchemaError

__all__ = ["Uniqueness", "class_labels", "refined", "unique_as_added"]


class Uniqueness:
    """Counts of records whose values on some columns few others share.

    Parameters
    ----------
    frame : pandas.DataFrame, n rows
    columns : sequence of str
        Usually the quasi-identifiers; without any, all records are equal.

    Attributes
    ----------
    n : int
        Records.

    Raises
    ------
    SchemaError
        If the frame lacks a column.

    Notes
    -----
    The sizes of the classes are counted and sorted once, in O(n q + n log n) time; every question after that is
    a binary search, so that a slider may ask at each step. Invariant: ``_sizes`` increases, ``_records[i]`` is
    the number of records in the ``i`` smallest classes. A missing value equals another missing value.
    """

    def __init__(self, frame: pd.DataFrame, columns: Sequence[str]) -> None:
        self.n = len(frame)
        labels = class_labels(frame, columns)
        self._sizes = np.sort(np.bincount(labels)) if self.n else np.zeros(0, dtype=np.int64)
        self._records = np.concatenate([[0], np.cumsum(self._sizes)])

    def at_risk(self, k: int) -> int:
        """Return records whose class has fewer than `k`."""
        return int(self._records[np.searchsorted(self._sizes, k, side="left")])

    @property
    def unique(self) -> int:
        """Records that no other equals."""
        return self.at_risk(2)

    @property
    def classes(self) -> int:
        """Classes of equal records."""
        return len(self._sizes)


def unique_as_added(frame: pd.DataFrame, columns: Sequence[str]) -> list[int]:
    """Return unique records on the first column, the first two, and so on.

    Parameters
    ----------
    frame : pandas.DataFrame, n rows
    columns : sequence of str

    Returns
    -------
    list of int
        One count per column; it never decreases. Time O(q n): each column refines the classes of those before it.

    Raises
    ------
    SchemaError
        If the frame lacks a column.
    """
    _check(frame, columns)
    labels = np.zeros(len(frame), dtype=np.int64)
    counts = []
    for name in columns:
        labels = refined(labels, frame[name])
        counts.append(int((np.bincount(labels) == 1).sum()) if len(frame) else 0)
    return counts


def class_labels(frame: pd.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """(n,) int64 labels 0 .. classes-1, equal where records are equal on `columns`.

    Raises
    ------
    SchemaError
        If the frame lacks a column.
    """
    _check(frame, columns)
    labels = np.zeros(len(frame), dtype=np.int64)
    for name in columns:
        labels = refined(labels, frame[name])
    return labels


def _check(frame: pd.DataFrame, columns: Sequence[str]) -> None:
    lacking = [name for name in columns if name not in frame.columns]
    if lacking:
        raise SchemaError(f"the table has no column {lacking[0]!r}; name one of its {frame.shape[1]} columns")


def refined(labels: np.ndarray, cells: pd.Series | np.ndarray) -> np.ndarray:
    """Return labels of classes, divided by the values of one more column: 0 .. classes - 1, shape (n,), int64."""
    codes, values = pd.factorize(cells, use_na_sentinel=False)
    # both factors are at most n, so the product of two labels stays far below 2^63
    return np.asarray(pd.factorize(labels * max(len(values), 1) + codes)[0], dtype=np.int64)
