"""Original records as codes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from anonflow.table.domain import Domain
from anonflow.threads import in_blocks, in_threads

TAKEN = 1 << 17
"""Rows that a thread takes together."""


@dataclass(frozen=True, eq=False)
class Records:
    """Original records, coded.

    Attributes
    ----------
    domains : tuple of Domain, length q
    codes : numpy.ndarray, shape (n, q), int32, C-contiguous
        The code of each value; -1 where a numeric QI has no number. Only the whole domain covers that where the column
        suppresses missing values (``has_missing``); every run does where another QI has its code (``has_codes``).
    units : numpy.ndarray, shape (n,), int64, or None
        The unit of each record, if people have several: two records of a person are never in the same partition.
    """

    domains: tuple[Domain, ...]
    codes: np.ndarray
    units: np.ndarray | None = None

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.codes)

    @property
    def q(self) -> int:
        """Number of coded QIs."""
        return len(self.domains)

    def take(self, index: np.ndarray) -> Records:
        """Return the records at some positions, over the same domains.

        Raises
        ------
        IndexError
            If a position does not exist.
        """
        units = None if self.units is None else self.units[index]
        return Records(self.domains, take_positions(self.codes, index, 0), units)

    def fingerprint(self) -> str:
        """Return a hash of the values in their order, independent of other records: 64 hexadecimal digits, O(n q)."""
        total = hashlib.sha256()
        for domain, codes in zip(self.domains, self.codes.T, strict=True):
            used, places, _ = ranked_values(codes)
            texts = [domain.labels[code] if code >= 0 else "" for code in used.tolist()]
            content = repr((domain.name, self.n, texts)).encode()
            total.update(len(content).to_bytes(8, "big") + content + places.astype("<i4").tobytes())
        return total.hexdigest()

    @classmethod
    def joined(cls, parts: Sequence[Records]) -> Records:
        """Return the records of several partitions, at least one, one after the other."""
        units = [part.units for part in parts if part.units is not None]
        codes = np.concatenate([part.codes for part in parts])
        return cls(parts[0].domains, codes, np.concatenate(units) if len(units) == len(parts) else None)

    def ends(self, a: int) -> tuple[np.ndarray, np.ndarray]:
        """Return first and last codes of each record's own run on QI `a`: the least that it may be published as.

        That is its code, the run of the level that the column is published at least, or without a number the whole domain, or
        none: ``(D, -1)``, which every run covers, of a record that has a code instead.

        Returns
        -------
        lo, hi : numpy.ndarray, shape (n,), int32
        """
        codes = self.codes[:, a]
        size = self.domains[a].size
        if self.domains[a].has_codes:
            return np.where(codes < 0, np.int32(size), codes), codes
        floor = self.domains[a].floor
        if floor is not None:
            return floor[codes, 0], floor[codes, 1]
        if not self.domains[a].has_missing:
            return codes, codes
        last = np.int32(size - 1)
        return np.where(codes < 0, np.int32(0), codes), np.where(codes < 0, last, codes)

    def at_floor(self) -> Records:
        """Return the same with one code for all values that have the same lowest published level; unchanged without such values.

        A method need not distinguish values that its result cannot distinguish.
        """
        if all(domain.floor is None for domain in self.domains):
            return self
        codes = self.codes.copy()
        for a, domain in enumerate(self.domains):
            if domain.floor is not None:
                codes[:, a] = domain.floor[codes[:, a], 0]
        return Records(self.domains, codes, self.units)

    def classes(self) -> np.ndarray:
        """Return labels of equal records, shape (n,), int64, O(q n log n)."""
        return equal_columns(self.codes.T, self.n)


def equal_columns(rows: Iterable[np.ndarray], n: int) -> np.ndarray:
    """Return labels 0.. of the equal columns of a matrix given by its rows.

    The labels are refined row after row, so no two different columns can meet. O(rows n log n).

    Parameters
    ----------
    rows : iterable of numpy.ndarray, each shape (n,), integer
    n : int
        Number of columns, needed where there are no rows.

    Returns
    -------
    numpy.ndarray, shape (n,), int64
        In the lexicographic order of the columns.
    """
    labels = np.zeros(n, np.int64)
    for row in rows:
        code, values = _ranks(row)
        if values > 1:
            labels = _ranks(labels * values + code)[0]
    return labels


def ranked_values(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct values, ascending, the rank of each value, and how often each distinct one occurs.

    Parameters
    ----------
    values : numpy.ndarray, shape (n,), numbers or datetime64
        None is missing.

    Notes
    -----
    O(n + d log d) for d distinct values, where :func:`numpy.unique` sorts all n. Of equal values the first is kept: 0.0 or -0.0.
    """
    rank, number = _ranks(values.view(np.int64) if values.dtype.kind == "M" else values)
    distinct = np.empty(number, values.dtype)
    distinct[rank[::-1]] = values[::-1]
    return distinct, rank, np.bincount(rank, minlength=number)


def first_places(labels: np.ndarray, distinct: int) -> np.ndarray:
    """Return where each of the labels 0 to `distinct` - 1 occurs first, shape (distinct,), int64; O(n)."""
    places = np.empty(distinct, np.int64)
    places[labels[::-1]] = np.arange(len(labels) - 1, -1, -1)
    return places


def take_positions(array: np.ndarray, index: np.ndarray, axis: int) -> np.ndarray:
    """Return the rows or columns at some positions, contiguous: :func:`numpy.take`, which is three times as fast as an index.

    It would read a mask as the positions 0 and 1, so the positions of a mask are taken.
    """
    index = np.asarray(index)
    if index.dtype == bool:
        index = np.flatnonzero(index)
    if axis == 1 and len(index) > TAKEN and index.min() >= 0 and index.max() < array.shape[1]:
        rows = np.empty((len(array), len(index)), array.dtype)
        in_threads(lambda row: np.take(array[row], index, out=rows[row], mode="clip"), range(len(array)))
        return rows
    return np.take(array, index, axis=axis)


def take_into(out: np.ndarray, array: np.ndarray, at: np.ndarray) -> None:
    """Put the rows at some positions, all of which exist, into an array: in threads, and without another copy of them.

    Parameters
    ----------
    out : numpy.ndarray, shape (m, ...)
        Not `array` itself, but it may be mapped from a file.
    array : numpy.ndarray, shape (n, ...)
        Of the same type.
    at : numpy.ndarray, shape (m,), integer
    """

    def block(start: int, stop: int) -> None:
        # the other modes copy once more
        np.take(array, at[start:stop], axis=0, out=out[start:stop], mode="clip")

    in_blocks(block, len(at), TAKEN)


def places_in(at: np.ndarray, n: int, dtype: type[np.signedinteger] = np.int64) -> np.ndarray:
    """Return where each of the numbers 0 to n - 1 stands among some, -1 where it does not, shape (n,)."""
    place = np.full(n, -1, dtype)
    place[at] = np.arange(len(at), dtype=dtype)
    return place


def matches_among(matches: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the matches of some records as places among these, shape (len(at), w), int32; -1, no match, stays."""
    place = places_in(at, len(matches) + 1, np.int32)  # the last one is that of -1
    return place[matches[at]]


def rank_within(labels: np.ndarray) -> np.ndarray:
    """Return how many earlier entries are equal to each one, shape (n,), int64; O(n log n)."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    rank = np.empty(len(labels), np.int64)
    rank[order] = np.arange(len(labels)) - np.repeat(starts, np.diff(np.append(starts, len(labels))))
    return rank


def _ranks(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the rank of each value among the distinct ones, shape (n,), int64, and how many these are."""
    if values.dtype == bool:
        values = values.view(np.int8)
    if len(values) and values.dtype.kind in "iu":
        least, most = int(values.min()), int(values.max())
        if most - least < 8 * len(values):
            # values that lie near each other are ranked in a table of them, without sorting
            at = (values - values.dtype.type(least)).astype(np.int64, copy=False)
            occurs = np.zeros(most - least + 1, bool)
            occurs[at] = True
            rank = np.cumsum(occurs, dtype=np.int32 if len(occurs) < 1 << 31 else np.int64)
            return rank[at] - np.int64(1), int(rank[-1])
    at, distinct = pd.factorize(values)
    return places_in(np.argsort(distinct), len(distinct))[at], len(distinct)
