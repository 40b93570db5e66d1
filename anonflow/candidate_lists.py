"""Which originals each row may be of: lists of originals, which the rows of a class share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from anonflow.errors import DataError
from anonflow.threads import in_blocks

_PAIRS = 1 << 21
"""Pairs of a row and a candidate that are processed at a time."""

_ROWS = 1 << 15
"""Rows whose lists are looked at together."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The candidate originals of each row.

    Attributes
    ----------
    row_list : numpy.ndarray, shape (m,), integer
        The list of each row; rows of an equivalence class share one.
    offsets : numpy.ndarray, shape (l + 1,), int64
    originals : numpy.ndarray, shape (e,), integer
        List t is ``originals[offsets[t] : offsets[t + 1]]``; each original at most once in a list, unless it is a claim.
    """

    row_list: np.ndarray
    offsets: np.ndarray
    originals: np.ndarray

    @classmethod
    def of_matches(
        cls,
        matches: np.ndarray,
        rows: np.ndarray | None = None,
        empty: Callable[..., np.ndarray] = np.empty,
    ) -> Candidates:
        """Return those of a matrix, shape (m, w), each row a list of its own, ascending.

        Parameters
        ----------
        matches : numpy.ndarray, shape (m, w), integer
            -1 is no original.
        rows : numpy.ndarray, integer, optional
            The rows that are meant, in their order; all of them without it.
        empty : callable
            Makes the arrays of the lists, as :func:`numpy.empty` does.
        """
        count = len(matches) if rows is None else len(rows)

        def listed(start: int, stop: int) -> np.ndarray:
            return matches[start:stop] if rows is None else np.take(matches, rows[start:stop], axis=0)

        def measure(start: int, stop: int) -> None:
            np.sum(listed(start, stop) >= 0, axis=1, out=ends[start + 1 : stop + 1])

        def write(start: int, stop: int) -> None:
            part = listed(start, stop)
            # places without an original come last, and are cut off
            ascending = np.sort(np.where(part < 0, np.iinfo(matches.dtype).max, part), axis=1)
            is_candidate = np.arange(matches.shape[1]) < np.diff(ends[start : stop + 1])[:, None]
            originals[ends[start] : ends[stop]] = ascending[is_candidate]

        ends = empty((count + 1,), np.int64)
        ends[0] = 0
        in_blocks(measure, count, _ROWS)
        np.cumsum(ends, out=ends)
        originals = empty((int(ends[-1]),), matches.dtype)
        in_blocks(write, count, _ROWS)
        return cls(np.arange(count, dtype=np.int32), ends, originals)

    @classmethod
    def of_classes(cls, labels: np.ndarray) -> Candidates:
        """Return those of equivalence classes: equal labels, one list; row j is in the class of original j."""
        _, row_list = np.unique(labels, return_inverse=True)
        return cls(row_list, _ends(np.bincount(row_list)), np.argsort(row_list, kind="stable"))

    @classmethod
    def of_lists(cls, sizes: np.ndarray, originals: np.ndarray) -> Candidates:
        """Return rows with lists of their own, which have these sizes and stand one after the other."""
        return cls(np.arange(len(sizes), dtype=np.int32), _ends(sizes), originals)

    @classmethod
    def of_nobody(cls, m: int) -> Candidates:
        """Return m rows without candidates."""
        return cls(np.zeros(m, np.int64), np.zeros(2, np.int64), np.empty(0, np.int64))

    @classmethod
    def of_claim(cls, claim: Any, rows: int | None = None) -> Candidates:
        """Return those that somebody claims: positions may be out of range, and stand twice in a list.

        Parameters
        ----------
        claim : object with ``candidates``, or with ``offsets`` and ``originals``, or numpy.ndarray, shape (n, k)
            In a matrix -1 is no original.
        rows : int, optional
            How many rows there must be.

        Raises
        ------
        DataError
            If it is none of them, or has another number of rows.
        """
        claimed = getattr(claim, "candidates", None)
        if isinstance(claimed, cls):
            lists = claimed
        elif hasattr(claim, "offsets") and hasattr(claim, "originals"):
            offsets = np.asarray(claim.offsets)
            lists = cls(np.arange(offsets.size - 1, dtype=np.int32), offsets, np.asarray(claim.originals))
        else:
            lists = cls(*_parts_of_matrix(np.asarray(claim)))
        if not lists.is_sound:
            raise DataError("the certificate is damaged; use the one that was made with the release")
        if rows is not None and lists.rows != rows:
            raise DataError(
                f"the certificate is about {lists.rows} rows, the release has {rows}; "
                "use the one that was made with the release"
            )
        if lists.offsets.dtype == np.int64:
            return lists
        return cls(lists.row_list, lists.offsets.astype(np.int64), lists.originals)

    def with_class(self, rows: np.ndarray, originals: np.ndarray) -> Candidates:
        """Return the same, but some of the rows, given as a mask, share a list; as it is if that list is empty."""
        if not len(originals):
            return self
        return Candidates(
            np.where(rows, len(self.offsets) - 1, self.row_list),
            np.append(self.offsets, self.offsets[-1] + len(originals)),
            np.concatenate([self.originals, originals]),
        )

    def take(self, rows: np.ndarray | slice) -> Candidates:
        """Return those of some of the rows."""
        return Candidates(self.row_list[rows], self.offsets, self.originals)

    def without(self, rows: np.ndarray) -> Candidates:
        """Return the same, without candidates for some of the rows, given as a mask."""
        if not rows.any():
            return self
        row_list = np.where(rows, len(self.offsets) - 1, self.row_list)
        return Candidates(row_list, np.append(self.offsets, self.offsets[-1]), self.originals)

    @property
    def is_sound(self) -> bool:
        """Whether its arrays are lists, and rows that have one each; whoever reads a file or a claim asks this first."""
        arrays = self.row_list, self.offsets, self.originals
        if not all(array.ndim == 1 and array.dtype.kind in "iu" for array in arrays) or not len(self.offsets):
            return False
        return (
            self.offsets[0] == 0
            and self.offsets[-1] == len(self.originals)
            and bool((self.offsets[1:] >= self.offsets[:-1]).all())
            and (not self.rows or 0 <= self.row_list.min() <= self.row_list.max() < len(self.offsets) - 1)
        )

    def is_ascending(self, n: int) -> bool:
        """Return whether every list has positions in a table of n records, ascending."""
        if len(self.originals) and not 0 <= self.originals.min() <= self.originals.max() < n:
            return False
        falls = np.zeros(len(self.originals), bool)
        np.less_equal(self.originals[1:], self.originals[:-1], out=falls[1:])
        starts = self.offsets[:-1]
        falls[starts[starts < len(self.originals)]] = False  # the next list may start lower
        return not falls.any()

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.row_list)

    @property
    def sizes(self) -> np.ndarray:
        """How many candidates each row has, shape (m,), int64; O(m), and not kept."""
        sizes = np.diff(self.offsets)
        return sizes if self.unshared else sizes[self.row_list]

    @cached_property
    def unshared(self) -> bool:
        """Whether each row has a list of its own, in the order of the rows."""
        if self.rows != len(self.offsets) - 1:
            return False
        return bool((self.row_list == np.arange(self.rows, dtype=self.row_list.dtype)).all())

    def pairs(self, start: int = 0, stop: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of a row and a candidate, row by row, of consecutive rows: the row and the original of each.

        Returns
        -------
        row : numpy.ndarray, shape (e,), int32
        original : numpy.ndarray, shape (e,), integer
        """
        lists = self.row_list[start:stop]
        sizes = self.offsets[lists + 1] - self.offsets[lists]
        row = np.repeat(np.arange(start, start + len(sizes), dtype=np.int32), sizes)
        if self.unshared:
            return row, self.originals[self.offsets[start] : self.offsets[start + len(sizes)]]
        before = self.offsets[lists] - (np.cumsum(sizes) - sizes)
        return row, self.originals[np.arange(len(row)) + np.repeat(before, sizes)]

    def sets_of_size(self, k: int) -> np.ndarray:
        """Return sets of k originals of a list: of a longer list, from each of its members on the k that follow, shape (s, k)."""
        sizes = np.diff(self.offsets)
        count = np.where(sizes == k, 1, np.where(sizes > k, sizes, 0))
        first, size = (np.repeat(values, count)[:, None] for values in (self.offsets[:-1], sizes))
        at = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        return self.originals[first + (at[:, None] + np.arange(k)) % size]

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield rows with candidates, some at a time: the rows, where each one's pairs start, the pairs' originals."""
        sizes_of_rows = self.sizes
        ends = np.cumsum(sizes_of_rows)
        cuts = np.searchsorted(ends, np.arange(_PAIRS, ends[-1] if len(ends) else 0, _PAIRS)) + 1
        for start, stop in pairwise([0, *np.unique(cuts).tolist(), self.rows]):
            sizes = sizes_of_rows[start:stop]
            rows = np.flatnonzero(sizes)
            if len(rows):
                yield start + rows, (np.cumsum(sizes) - sizes)[rows], self.pairs(start, stop)[1]

    def any(self, test: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
        """Return rows of which a pair passes a test of rows and originals, shape (m,), bool."""
        failing = np.zeros(self.rows, bool)
        for start in range(0, self.rows, _ROWS):
            row, original = self.pairs(start, start + _ROWS)
            failing[row[test(row, original)]] = True
        return failing

    def counts(self, n: int) -> np.ndarray:
        """Return how many rows list each of n originals, shape (n,), int64."""
        lists, counts = len(self.offsets) - 1, np.zeros(n, np.int64)
        rows_of_list = None if self.unshared else np.bincount(self.row_list, minlength=lists)
        for start, stop in self.parts():
            sizes = np.diff(self.offsets[start : stop + 1])
            rows = 1 if rows_of_list is None else np.repeat(rows_of_list[start:stop], sizes)
            np.add.at(counts, self.originals[self.offsets[start] : self.offsets[stop]], rows)
        return counts

    def parts(self, size: int = _PAIRS) -> list[tuple[int, int]]:
        """Return the lists in parts with about `size` originals: the first list of each part, and the first after it."""
        cuts = np.searchsorted(self.offsets, np.arange(size, len(self.originals), size))
        return list(pairwise(np.unique([0, *cuts, len(self.offsets) - 1]).tolist()))

    def strangers(self, n: int) -> np.ndarray:
        """Return rows that list a position outside a table of n records, or one twice; shape (m,), bool."""
        sizes = np.diff(self.offsets)
        bad = np.zeros(len(sizes), bool)
        if not len(self.originals):
            return bad[self.row_list]
        if self.originals.min() < 0 or self.originals.max() >= n:
            outside = (self.originals < 0) | (self.originals >= n)
            bad[np.repeat(np.arange(len(sizes)), sizes)[outside]] = True
        if (sizes == sizes[0]).all():
            lists = self.originals.reshape(-1, sizes[0])
            if not (lists[:, 1:] > lists[:, :-1]).all():
                lists = np.sort(lists, axis=1)
                bad |= (lists[:, 1:] == lists[:, :-1]).any(axis=1)
            return bad[self.row_list]
        number, originals = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes), self.originals
        # lists ascend nearly always: then there is nothing to sort
        if not ((originals[1:] > originals[:-1]) | (number[1:] != number[:-1])).all():
            order = np.lexsort((originals, number))
            number, originals = number[order], originals[order]
            twice = (number[1:] == number[:-1]) & (originals[1:] == originals[:-1])
            bad[number[1:][twice]] = True
        return bad[self.row_list]

    def components(self, n: int) -> np.ndarray:
        """Return labels of the originals that lists join, directly or through others, shape (n,), int64.

        Each original takes the least label of its lists, so does whoever's label it has, and then the label of its label, until none changes
        (Zhang 2020). Several times as fast as a search of the graph, in O(n) memory.
        """
        label, before = np.arange(n, dtype=np.int32), np.empty(0, np.int32)
        while not np.array_equal(label, before):
            before = label
            label = before.copy()
            for start, stop in self.parts():
                sizes = np.diff(self.offsets[start : stop + 1])
                originals = self.originals[self.offsets[start] : self.offsets[stop]]
                begins = (self.offsets[start:stop] - self.offsets[start])[sizes > 0]
                if len(begins):
                    least = np.minimum.reduceat(before[originals], begins)
                    np.minimum.at(label, originals, np.repeat(least, sizes[sizes > 0]))
            np.minimum.at(label, before, label.copy())
            label = label[label]
        return (np.cumsum(label == np.arange(n)) - 1)[label]

    def owner_groups(self, owner: np.ndarray) -> np.ndarray:
        """Return labels of the originals: those of one owner are equal where rows list both, directly or through others.

        Parameters
        ----------
        owner : numpy.ndarray, shape (n,), int64
            Labels 0.. .

        Returns
        -------
        numpy.ndarray, shape (n,), int64
            O(e log e) for the owners with several originals.
        """
        several = np.bincount(owner)[owner] > 1
        edges = [np.zeros((2, 0), np.int64)]
        for start, stop in self.parts():
            originals = self.originals[self.offsets[start] : self.offsets[stop]].astype(np.int64)
            number = np.repeat(np.arange(stop - start), np.diff(self.offsets[start : stop + 1]))
            shared = several[originals]
            originals, number = originals[shared], number[shared]
            key = number * len(several) + owner[originals]
            order = np.argsort(key, kind="stable")
            same = np.flatnonzero(key[order][1:] == key[order][:-1])
            edges.append(np.stack([originals[order[same]], originals[order[same + 1]]]))
        start, stop = np.concatenate(edges, axis=1)
        graph = coo_array((np.ones(len(start), np.int8), (start, stop)), shape=(len(owner), len(owner)))
        return np.asarray(connected_components(graph, directed=False)[1], np.int64)

    def complete_components(self, n: int) -> np.ndarray | None:
        """Return the component of each row, shape (n,), int64, if in all of them every row lists every original.

        No draw changes which values the rows of such a component show. None if another component is among them.

        Parameters
        ----------
        n : int
            Number of originals.
        """
        sizes = self.sizes
        if self.rows != n or not n or not sizes.all() or self.strangers(n).any():
            return None
        row, original = self.pairs()
        least = np.minimum.reduceat(original, np.cumsum(sizes) - sizes).astype(np.int64)
        # complete: all originals of a row are in rows with that row's least original, as many as it lists
        label = np.full(n, -1, np.int64)
        label[original] = least[row]
        same = (label[original] == least[row]).all() and (
            sizes == np.bincount(least, minlength=n)[least]
        ).all()
        return np.unique(least, return_inverse=True)[1].astype(np.int64) if same else None


def _ends(sizes: np.ndarray) -> np.ndarray:
    ends = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    return ends


def _parts_of_matrix(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the lists of a matrix without its -1, as they stand; of anything else, what is not sound."""
    if matrix.ndim != 2 or matrix.dtype.kind not in "iu":
        return np.empty(0, np.int32), np.empty(0, np.int64), matrix
    present = matrix >= 0
    row_list = np.arange(len(matrix), dtype=np.int32)
    if present.all():
        offsets = np.arange(len(matrix) + 1, dtype=np.int64) * matrix.shape[1]
        return row_list, offsets, np.ascontiguousarray(matrix).reshape(-1)
    return row_list, _ends(present.sum(axis=1)), matrix[present]
