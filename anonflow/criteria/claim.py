"""The owner's claim of which originals each published row matches, checked in O(nk)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from anonflow.errors import DataError
from anonflow.generalization import Generalization
from anonflow.table import Records
from anonflow.threads import in_threads

__all__ = ["Listing"]

_ROWS = 1 << 15
"""Rows checked at a time."""

_LISTS = 1 << 12
"""Rows whose originals are compared at a time: with some ten for each row, what is compared stays in the cache of a core."""


@dataclass(frozen=True, eq=False)
class Listing:
    """For each published row the positions of the originals that it matches.

    Attributes
    ----------
    start : numpy.ndarray, shape (n + 1,), int64
        Row j lists ``end[start[j]:start[j + 1]]``.
    end : numpy.ndarray, shape (E,), int32 or int64
        Positions of originals.
    """

    start: np.ndarray
    end: np.ndarray

    @classmethod
    def of(cls, claim: Any, rows: int | None = None) -> Listing:
        """Return a listing from a certificate, or from a matrix of matches.

        Parameters
        ----------
        claim : object with ``offsets`` and ``originals``, or numpy.ndarray, shape (n, k)
            In a matrix -1 is no original.
        rows : int, optional
            How many rows there must be.

        Raises
        ------
        DataError
            If it is neither of them, or has another number of rows.
        """
        if hasattr(claim, "offsets") and hasattr(claim, "originals"):
            start, end = np.asarray(claim.offsets), np.asarray(claim.originals)
            sound = (
                start.ndim == end.ndim == 1
                and len(start) > 0
                and start[0] == 0
                and start[-1] == len(end)
                and bool((np.diff(start) >= 0).all())
            )
        else:
            matrix = np.asarray(claim)
            sound = matrix.ndim == 2 and matrix.dtype.kind in "iu"
            if sound:
                present = matrix >= 0
                if present.all():
                    start = np.arange(len(matrix) + 1, dtype=np.int64) * matrix.shape[1]
                    end = np.ascontiguousarray(matrix).reshape(-1)
                else:
                    start = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
                    end = matrix[present]
        if not sound or end.dtype.kind not in "iu":
            raise DataError("the certificate is damaged; use the one that was made with the release")
        if rows is not None and len(start) - 1 != rows:
            raise DataError(
                f"the certificate is about {len(start) - 1} rows, the release has {rows}; "
                "use the one that was made with the release"
            )
        return cls(start.astype(np.int64), end)

    @property
    def rows(self) -> int:
        """Number of published rows."""
        return len(self.start) - 1

    @cached_property
    def degrees(self) -> np.ndarray:
        """Number of originals of each row, shape (n,), int64."""
        return np.diff(self.start)

    def entries(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield some entries after the other: the row and the original of each."""
        for begin in range(0, self.rows, _ROWS):
            stop = min(self.rows, begin + _ROWS)
            row = np.repeat(np.arange(begin, stop), self.degrees[begin:stop])
            yield row, self.end[self.start[begin] : self.start[stop]]

    def any(self, test: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """Return rows of which an entry passes a test of rows and originals, shape (rows,), bool."""
        failing = np.zeros(self.rows, bool)
        for row, end in self.entries():
            failing[row[test(row, end)]] = True
        return failing

    def counts(self, n: int) -> np.ndarray:
        """Return how many rows list each of n originals, shape (n,), int64."""
        counts = np.zeros(n, np.int64)
        size = max(n, _ROWS)  # as many entries at a time as there are counts
        for begin in range(0, len(self.end), size):
            counts += np.bincount(self.end[begin : begin + size], minlength=n)
        return counts

    @cached_property
    def row(self) -> np.ndarray:
        """The published row of each entry, shape (E,), int32."""
        return np.repeat(np.arange(self.rows, dtype=np.int32), self.degrees)

    def complete_components(self, n: int) -> np.ndarray | None:
        """Return the component of each row, shape (n,), int64, if in all of them every row lists every original.

        No draw changes which values the rows of such a component show. None if another component is among them.

        Parameters
        ----------
        n : int
            Number of originals.
        """
        if self.rows != n or self.strangers(n).any():
            return None
        degree = self.degrees
        if not n or not degree.all():
            return None
        least = np.minimum.reduceat(self.end, self.start[:-1]).astype(np.int64)
        # complete: all originals of a row are in rows with that row's least original, as many as it lists
        label = np.full(n, -1, np.int64)
        label[self.end] = least[self.row]
        rows = np.bincount(least, minlength=n)
        same = (label[self.end] == least[self.row]).all() and (degree == rows[least]).all()
        return np.unique(least, return_inverse=True)[1].astype(np.int64) if same else None

    def _degree(self) -> int:
        """Return the degree of all rows, or -1."""
        d = int(self.degrees[0]) if self.rows else 0
        return d if d and bool((self.degrees == d).all()) else -1

    def strangers(self, n: int) -> np.ndarray:
        """Return rows that list a position outside the table, or one twice; shape (rows,), bool."""
        bad = np.zeros(self.rows, bool)
        if not len(self.end):
            return bad
        outside = (self.end < 0) | (self.end >= n)
        if outside.any():
            bad[self.row[outside]] = True
        d = self._degree()
        if d > 0:
            lists = self.end.reshape(-1, d)
            if d > 1 and not (lists[:, 1:] > lists[:, :-1]).all():
                lists = np.sort(lists, axis=1)
                bad |= (lists[:, 1:] == lists[:, :-1]).any(axis=1)
            return bad
        # rows ascend, and the originals of each of them nearly always: then there is nothing to sort
        if ((self.end[1:] > self.end[:-1]) | (self.row[1:] != self.row[:-1])).all():
            return bad
        order = np.lexsort((self.end, self.row))
        row, end = self.row[order], self.end[order]
        twice = (row[1:] == row[:-1]) & (end[1:] == end[:-1])
        bad[row[1:][twice]] = True
        return bad

    def uncovered(self, records: Records, published: Generalization) -> np.ndarray:
        """Return rows that do not cover an original they list; shape (rows,), bool, O(E q), in threads.

        An original's codes lie together: it is looked up once, not once for each quasi-identifier.

        Parameters
        ----------
        records : Records
            Every listed position must exist.
        published : Generalization
        """
        bad = np.zeros(self.rows, bool)
        layout = published.layout

        def check(begin: int) -> None:
            stop = min(self.rows, begin + _LISTS)
            degrees = self.degrees[begin:stop]
            listed = records.take(self.end[self.start[begin] : self.start[stop]])
            outside = np.zeros(listed.n, bool)
            for t, a in enumerate(layout.ranges):
                low, high = listed.ends(int(a))
                outside |= low < np.repeat(published.lo[t, begin:stop], degrees)
                outside |= high > np.repeat(published.hi[t, begin:stop], degrees)
            entry = np.arange(listed.n)
            for t, a in enumerate(layout.sets):
                code = listed.codes[:, a]
                words = published.bits[layout.offset[t] : layout.offset[t + 1], begin:stop]
                word = np.repeat(words, degrees, axis=1)[code >> 6, entry]
                outside |= (word >> (code & 63).astype(np.uint64)) & np.uint64(1) == 0
            bad[begin:stop][np.repeat(np.arange(stop - begin), degrees)[outside]] = True

        in_threads(check, range(0, self.rows, _LISTS))
        return bad
