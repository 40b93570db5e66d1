"""Uniqueness: the sizes of classes of equal records before any generalization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from anonflow.errors import SchemaError


class Uniqueness:
    """Counts of records that share their values on some columns with few others.

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
    _check_named(frame, columns)
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
    _check_named(frame, columns)
    labels = np.zeros(len(frame), dtype=np.int64)
    for name in columns:
        labels = refined(labels, frame[name])
    return labels


def _check_named(frame: pd.DataFrame, columns: Sequence[str]) -> None:
    lacking = [name for name in columns if name not in frame.columns]
    if lacking:
        raise SchemaError(f"the table has no column {lacking[0]!r}; name one of its {frame.shape[1]} columns")


def keys_of_owners(labels: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Return labels of owners with equal rows: 0.. for the multisets of their rows' classes, shape (owners,), int64.

    Parameters
    ----------
    labels : numpy.ndarray, shape (n,), int64
        The class of each row, 0.. .
    owner : numpy.ndarray, shape (n,), int64
        Its owner, 0.. without gaps.

    Notes
    -----
    A person's rows, all together, are one quasi-identifier. O(n log n).
    """
    order = np.lexsort((labels, owner))
    row_labels, person = labels[order], owner[order]
    rows = np.bincount(person)
    start = np.cumsum(rows) - rows
    keys = np.zeros(len(rows), np.int64)
    live = np.arange(len(rows))
    classes = int(labels.max(initial=0)) + 1
    for place in range(int(rows.max(initial=0))):
        live = live[rows[live] > place]
        pairs = keys[live] * classes + row_labels[start[live] + place]
        keys[live] = np.unique(pairs, return_inverse=True)[1]
    # keys were compared among owners with at least as many rows: equal ones count with as many
    return np.unique(np.stack([rows, keys]), axis=1, return_inverse=True)[1].ravel().astype(np.int64)


def at_least_one(
    chance: np.ndarray,
    person: np.ndarray,
    times: np.ndarray | None = None,
    group: np.ndarray | None = None,
) -> np.ndarray:
    """For each owner the probability that one of its chances comes true: 1 - product of (1 - chance).

    Parameters
    ----------
    chance : numpy.ndarray, shape (n,), float64
        Between 0 and 1.
    person : numpy.ndarray, shape (n,), int64
        Labels 0.. .
    times : numpy.ndarray, shape (n,), float64, optional
        For how many such chances each stands, the same for all of an owner; 1 without it.
    group : numpy.ndarray, shape (n,), int64, optional
        Labels. An owner's chances of one group exclude each other: they add up, to 1 at most. Without it all are independent.
    """
    missed = np.ones(int(person.max(initial=-1)) + 1)
    if group is not None and len(person) > len(missed):
        _, first, number = np.unique(
            person * (int(group.max(initial=0)) + 1) + group, return_index=True, return_inverse=True
        )
        chance = np.minimum(np.bincount(number, chance), 1.0)
        person, times = person[first], None if times is None else times[first]
    np.multiply.at(missed, person, 1 - chance if times is None else (1 - chance) ** times)
    return 1 - missed


def refined(labels: np.ndarray, cells: pd.Series | np.ndarray) -> np.ndarray:
    """Return labels of classes, divided by the values of one more column: 0 .. classes - 1, shape (n,), int64."""
    codes, values = pd.factorize(cells, use_na_sentinel=False)
    # both factors are at most n, so the product of two labels stays far below 2^63
    return np.asarray(pd.factorize(labels * max(len(values), 1) + codes)[0], dtype=np.int64)
