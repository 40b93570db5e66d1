"""Which originals each generalized record covers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anonflow.algorithms.concealment.expansion import DistinctRecords
from anonflow.kernels.concealment import covered_jit
from anonflow.kernels.state import State


@dataclass(frozen=True, eq=False)
class Covered:
    """Which originals each generalized record covers, copies of an original listed once.

    Attributes
    ----------
    originals : numpy.ndarray, shape (E,), int64
        Different originals, record after record.
    row : numpy.ndarray, shape (E,), int64
        The record that covers each of them.
    ends : numpy.ndarray, shape (E,), int64
        Copies up to and including this one.
    start, stop : numpy.ndarray, shape (P,), int64
        Copies before a record's first and up to its last.
    members, begin : numpy.ndarray, shape (P,) and (u,), int64
        The copies of different original t are ``members[begin[t] : begin[t] + count[t]]``.
    """

    originals: np.ndarray
    row: np.ndarray
    ends: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    members: np.ndarray
    begin: np.ndarray

    @classmethod
    def of(cls, merged: DistinctRecords, boxes: State) -> Covered:
        """O(P u q) time, O(E) memory."""
        n = merged.part.n
        inside = np.empty(len(merged.first), bool)
        lists = []
        for j in range(n):
            covered_jit(merged.state, boxes, j, inside)
            lists.append(np.flatnonzero(inside))
        sizes = np.array([len(rows) for rows in lists])
        originals = np.concatenate(lists)
        ends = np.cumsum(merged.count[originals])
        stop = ends[np.cumsum(sizes) - 1]
        return cls(
            originals,
            np.repeat(np.arange(n), sizes),
            ends,
            np.concatenate([[0], stop[:-1]]),
            stop,
            np.argsort(merged.label, kind="stable"),
            np.cumsum(merged.count) - merged.count,
        )
