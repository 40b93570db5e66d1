"""The consistency graph of a table and its release: which row may be whose, by the quasi-identifiers alone.

Vertices are distinct originals and distinct generalized records, each with the number of its copies; an
edge says that the generalized record covers the original. The graph is never a dense matrix: for every
generalized record, the covered originals are the bits left over when one packed bitset per QI is ANDed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from anonflow.candidate_lists import Candidates
from anonflow.errors import DataError
from anonflow.generalization import Generalization
from anonflow.table.domain import Domain
from anonflow.table.records import Records, equal_columns, first_places

EDGE_LIMIT = 250_000_000
"""More edges than this are refused: they would exceed 32-bit positions and a few GiB."""

PEOPLE = 50_000_000
"""Pairs of an edge and a person up to which people are counted where it matters how long that takes."""

_COARSE = 1024
"""Larger domains are put into about as many buckets, and their edges checked one by one."""

_CHUNK_WORDS = 1 << 17
"""Words of bitset processed at a time: one MiB fits the cache."""

_BLOCK = 1 << 16
"""Generalized records that :func:`covering` processes together."""

_PARTS, _FEW = 4, 1024
"""Generalized records are divided into so many parts, each with the records near it, until a part has so few."""

_WORDS = 1 << 20
"""A part whose bitset has no more words than this is not divided: threads would wait for each other between many small parts."""

_ALL = ~np.uint64(0)


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """Equal rows of something, merged.

    Attributes
    ----------
    label : numpy.ndarray, shape (n,), int64
        Which distinct row each of the n rows is.
    first : numpy.ndarray, shape (u,), int64
        The first position of each distinct row.
    count : numpy.ndarray, shape (u,), int64
        Its number of copies.
    """

    label: np.ndarray
    first: np.ndarray
    count: np.ndarray

    @property
    def size(self) -> int:
        """Number of distinct rows, u."""
        return len(self.first)

    @cached_property
    def _groups(self) -> tuple[np.ndarray, np.ndarray]:
        order = np.argsort(self.label, kind="stable")
        return order, np.concatenate([[0], np.cumsum(self.count)])

    def positions(self, distinct: np.ndarray, at_most: np.ndarray | None = None) -> np.ndarray:
        """Return the positions of the copies of some distinct rows, ascending.

        Parameters
        ----------
        distinct : numpy.ndarray, integer
            Distinct rows, each named once.
        at_most : numpy.ndarray, integer, optional
            How many copies of each to name, the first ones; all of them without it.

        Returns
        -------
        numpy.ndarray, int64
        """
        order, start = self._groups
        length = self.count[distinct]
        if at_most is not None:
            length = np.minimum(length, at_most)
        return np.sort(order[runs(start[distinct], length)])


@dataclass(frozen=True, eq=False)
class Bipartite:
    """Distinct originals, distinct generalized records with their copies, and the edges between them.

    Attributes
    ----------
    originals, published : DistinctRows
        u distinct originals and v distinct generalized records.
    start : numpy.ndarray, shape (v + 1,), int64
        The edges of generalized record b are ``end[start[b]:start[b + 1]]``.
    end : numpy.ndarray, shape (E,), int32
        The distinct original of each edge, ascending within a generalized record.
    """

    originals: DistinctRows
    published: DistinctRows
    start: np.ndarray
    end: np.ndarray

    @property
    def edges(self) -> int:
        """Number of edges between distinct vertices."""
        return len(self.end)

    @cached_property
    def box(self) -> np.ndarray:
        """The distinct generalized record of each edge, shape (E,), int32."""
        return np.repeat(np.arange(self.published.size, dtype=np.int32), np.diff(self.start))

    def only(self, keep: np.ndarray) -> Bipartite:
        """Return the same vertices with some of the edges, `keep` (E,) bool."""
        edges_before = np.concatenate([[0], np.cumsum(keep)])
        return Bipartite(self.originals, self.published, edges_before[self.start], self.end[keep])

    def degrees(self) -> tuple[np.ndarray, np.ndarray]:
        """Return how many published rows each distinct original has an edge to, and the other way round.

        Returns
        -------
        originals : numpy.ndarray, shape (u,), int64
        published : numpy.ndarray, shape (v,), int64
            Copies count: O(E).
        """
        of_original = np.bincount(self.end, self.published.count[self.box], self.originals.size)
        of_box = np.bincount(self.box, self.originals.count[self.end], self.published.size)
        return of_original.astype(np.int64), of_box.astype(np.int64)

    def lists(self) -> Candidates:
        """Return the originals that each row has an edge to; equal rows share a list. O(pairs of a distinct row and an original)."""
        members = Candidates.of_classes(self.originals.label)
        originals = Candidates(self.end, members.offsets, members.originals).pairs()[1]
        offsets = np.concatenate([[0], np.cumsum(self.degrees()[1])])
        return Candidates(self.published.label, offsets, originals)

    def people(self, person: np.ndarray, too_many: str = "") -> np.ndarray:
        """Return how many people's originals each distinct generalized record has an edge to, shape (v,), int64.

        Parameters
        ----------
        person : numpy.ndarray, shape (n,), int64
            Of each original, 0 and more.
        too_many : str, optional
            What an error says where there are more than 50 million pairs of an edge and a person; without it they are counted.

        Raises
        ------
        DataError
            If there are too many.
        """
        kind, people = np.unique(np.stack([self.originals.label, person]), axis=1)
        # degrees count rows, which is faster than counting people
        if len(people) == len(person) == int(person.max(initial=-1)) + 1:  # a row a person
            return self.degrees()[1]
        offsets = np.searchsorted(kind, np.arange(self.originals.size + 1))
        of_edges = Candidates(self.end, offsets, people)
        if too_many and of_edges.sizes.sum() > PEOPLE:
            raise DataError(too_many)
        edge, people = of_edges.pairs()
        box = np.unique(np.stack([self.box[edge].astype(np.int64), people]), axis=1)[0]
        return np.bincount(box, minlength=self.published.size).astype(np.int64)


def merge(rows: list[np.ndarray], n: int) -> DistinctRows:
    """Merge the equal columns of a matrix given by its rows, in lexicographic order, O(rows n log n).

    Parameters
    ----------
    rows : list of numpy.ndarray, each shape (n,), integer
    n : int
    """
    label = equal_columns(rows, n)
    count = np.bincount(label)
    return DistinctRows(label, first_places(label, len(count)), count)


def consistency_graph(
    records: Records, published: Generalization, apart: np.ndarray | None = None
) -> Bipartite:
    """Return which originals each generalized record covers, equal ones merged.

    Parameters
    ----------
    records : Records
        n originals.
    published : Generalization
        m generalized records over the same domains.
    apart : numpy.ndarray, shape (m,), bool, optional
        Published rows that are not merged with rows outside the mask.

    Returns
    -------
    Bipartite
        Time O(v u q / 64 + E) at most, for u, v distinct ones and E edges; where generalized records cover what lies near them,
        u is a small part of them. Memory O((u D + n) / 64 + E) with D at most 1,024 values a QI.

    Raises
    ------
    DataError
        If there are more than ``EDGE_LIMIT`` edges.

    Notes
    -----
    Definition 1 and section 4.2 of Tassa 2012 (k-concealment).
    """
    few_first = _few_first(records)
    originals = merge([records.codes[:, a] for a in few_first], records.n)
    # the same order on both sides: the records that a chunk of boxes covers then lie close together
    rows = published.cell_numbers(few_first)
    if apart is not None:
        rows.append(apart.astype(np.int64))
    boxes = merge(rows, published.n)
    start, end = covered_pairs(records.take(originals.first), published.take(boxes.first))
    return Bipartite(originals, boxes, start, end)


def covering(
    records: Records, rows: Generalization, among: np.ndarray | None = None, workers: int | None = None
) -> np.ndarray:
    """Return how many of some generalized records cover each of some records, shape (records.n,), int64.

    Parameters
    ----------
    records : Records
        u distinct ones.
    rows : Generalization
    among : numpy.ndarray, shape (m,), integer, optional
        Those that count; all without it.
    workers : int, optional
        Threads; as many as the machine has cores without it.

    Returns
    -------
    numpy.ndarray
        O(m u q / 64) time; the edges are never all in memory.
    """
    originals = merge([records.codes[:, a] for a in _few_first(records)], records.n)
    distinct = records.take(originals.first)
    if among is None:
        among = np.arange(rows.n)

    def of_block(start: int) -> np.ndarray:
        boxes = rows.take(among[start : start + _BLOCK])
        counts = np.zeros(distinct.n, np.int64)
        for _, end in _covered_records(distinct, boxes):
            counts += np.bincount(end, minlength=distinct.n)
        return counts

    counts = np.zeros(distinct.n, np.int64)
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        for part in pool.map(of_block, range(0, len(among), _BLOCK)):
            counts += part
    return counts[originals.label]


def _few_first(records: Records) -> list[int]:
    """Return the QIs, those with few values first: records in this order lie close together if they are covered together."""
    return sorted(range(records.q), key=lambda a: records.domains[a].size)


def covered_pairs(records: Records, boxes: Generalization) -> tuple[np.ndarray, np.ndarray]:
    """Return the records that each generalized record covers.

    Parameters
    ----------
    records : Records
        u records; in lexicographic order it goes faster.
    boxes : Generalization
        v generalized records.

    Returns
    -------
    start : numpy.ndarray, shape (v + 1,), int64
    end : numpy.ndarray, shape (E,), int32
        Generalized record b covers the records ``end[start[b]:start[b + 1]]``, ascending.

    Raises
    ------
    DataError
        If there are more than ``EDGE_LIMIT`` edges.
    """
    counts: list[np.ndarray] = [np.zeros(1, np.int64)]
    ends: list[np.ndarray] = []
    total = 0
    for degrees, end in _covered_records(records, boxes):
        counts.append(degrees)
        ends.append(end)
        total += len(end)
        if total > EDGE_LIMIT:
            raise DataError(
                f"the release covers so much that its consistency graph has over {EDGE_LIMIT:,} edges; "
                "verify partition by partition, or with the owner's certificate"
            )
    return np.cumsum(np.concatenate(counts)), np.concatenate(ends) if ends else np.empty(0, np.int32)


def _covered_records(
    records: Records, boxes: Generalization, among: np.ndarray | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield, for some generalized records after the other, how many records each covers, and these records.

    Each part of the generalized records is compared with the records that its join covers: few, where parts are neighbours. `among`
    are the positions of all records that they may cover.
    """
    if among is None and boxes.n <= _FEW:
        yield from _covered_by_bits(records, boxes)
        return
    # records in order lie close together, so parts of them are compared with few boxes
    near = _near(records, boxes, np.arange(records.n, dtype=np.int32) if among is None else among)
    if boxes.n > _FEW and boxes.n * len(near) > 64 * _WORDS:
        for part in np.array_split(np.arange(boxes.n), _PARTS):
            yield from _covered_records(records, boxes.take(part), near)
        return
    for degrees, end in _covered_by_bits(records.take(near), boxes):
        yield degrees, near[end]


def _near(records: Records, boxes: Generalization, among: np.ndarray) -> np.ndarray:
    """Return those of some positions whose records the join of generalized records covers; what they cover is among them."""
    layout, near = boxes.layout, among
    for t, a in enumerate(layout.ranges):
        domain, low, high = records.domains[a], boxes.lo[t].min(), boxes.hi[t].max()
        if low > 0 or high < domain.size - 1:
            codes = records.codes[near, a]
            near = near[(low <= codes) & (codes <= high) | ((codes < 0) & domain.has_codes)]
    for a, span in layout.words.items():
        # values that no set has: records with them are covered by none of these boxes
        words = np.bitwise_or.reduce(boxes.bits[span], axis=1)
        inside = np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)
        if not inside[: records.domains[a].size].all():
            near = near[inside[records.codes[near, a]]]
    return near


def _covered_by_bits(records: Records, boxes: Generalization) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the same as :func:`_covered_records`; every generalized record is compared with every record, in O(v u q / 64)."""
    u, v = records.n, boxes.n
    words = -(-u // 64)
    filters = _filters(records, boxes)
    chunk = max(1, _CHUNK_WORDS // max(words, 1))
    # bits beyond the last record are never set: they would be read as records
    last = np.full(words, _ALL)
    if u % 64:
        last[-1] = (np.uint64(1) << np.uint64(u % 64)) - np.uint64(1)
    for begin in range(0, v, chunk):
        stop = min(v, begin + chunk)
        bits = np.broadcast_to(last, (stop - begin, words)).copy()
        for keep in filters:
            keep.narrow(bits, begin, stop)
        row, end = _bits_set(bits)
        for keep in filters:
            if keep.coarse:
                exact = keep.check(begin + row, end)
                row, end = row[exact], end[exact]
        yield np.bincount(row, minlength=stop - begin).astype(np.int64), end


def _filters(records: Records, boxes: Generalization) -> list[_RangeFilter | _SetFilter]:
    """Return one filter for each QI that narrows anything."""
    layout = boxes.layout
    whole = boxes.whole()
    filters: list[_RangeFilter | _SetFilter] = []
    for t, a in enumerate(layout.ranges):
        if not whole[a].all():
            filters.append(
                _RangeFilter(records.domains[a], records.codes[:, a], boxes.lo[t], boxes.hi[t], whole[a])
            )
    for a, words in layout.words.items():
        if not whole[a].all():
            filters.append(_SetFilter(records.domains[a], records.codes[:, a], boxes.bits[words]))
    return filters


class _RangeFilter:
    """The records in the run of each box on one range QI: a difference of two prefix bitsets."""

    def __init__(
        self, domain: Domain, codes: np.ndarray, lo: np.ndarray, hi: np.ndarray, whole: np.ndarray
    ) -> None:
        self.codes, self.lo, self.hi, self.whole = codes, lo, hi, whole
        self.coarse = domain.size > _COARSE
        # every run covers a record that has a code instead of a number
        self.coded = codes < 0 if domain.has_codes else np.zeros(len(codes), bool)
        free = np.zeros(-(-len(codes) // 64) * 64, np.uint8)
        free[: len(codes)] = self.coded
        self.free = np.packbits(free, bitorder="little").view(np.uint64)
        step = -(-domain.size // _COARSE)
        size = -(-domain.size // step)
        # code -1, no value, gets the last bucket, which no run but the whole domain reaches
        bucket = np.where(codes < 0, size, codes // step)
        below = np.zeros((size + 1, -(-len(codes) // 64) * 64), np.uint8)
        below[np.minimum(bucket + 1, size), np.arange(len(codes))] = bucket < size
        packed = np.packbits(below, axis=1, bitorder="little").view(np.uint64)
        self.below = np.bitwise_or.accumulate(packed, axis=0)
        self.not_below = ~self.below
        nothing = lo > hi
        self.first = np.where(nothing, size, lo // step)
        self.after = np.where(nothing, 0, hi // step + 1)

    def narrow(self, left: np.ndarray, begin: int, stop: int) -> None:
        # boxes with the whole domain drop nothing
        partial = np.flatnonzero(~self.whole[begin:stop])
        first, after = self.first[begin:stop][partial], self.after[begin:stop][partial]
        if len(partial) == stop - begin and not self.free.any():
            left &= self.below[after]
            left &= self.not_below[first]
        elif len(partial):
            left[partial] &= (self.below[after] & self.not_below[first]) | self.free

    def check(self, box: np.ndarray, record: np.ndarray) -> np.ndarray:
        codes = self.codes[record]
        return self.whole[box] | self.coded[record] | ((self.lo[box] <= codes) & (codes <= self.hi[box]))


class _SetFilter:
    """The records in the set of each box on one set QI: ORs of bitsets, four or eight values at a time."""

    def __init__(self, domain: Domain, codes: np.ndarray, words: np.ndarray) -> None:
        self.codes, self.words = codes, words
        self.coarse = domain.size > _COARSE
        members = np.ascontiguousarray(words.T)  # (v, words of the domain)
        bucket = codes
        size = domain.size
        if self.coarse:
            step = -(-size // _COARSE)
            size = -(-size // step)
            bucket = codes // step
            flags = np.unpackbits(members.view(np.uint8), axis=1, bitorder="little")
            flags = np.pad(flags, ((0, 0), (0, max(0, size * step - flags.shape[1]))))[:, : size * step]
            coarse = flags.reshape(len(members), size, step).max(axis=2)
            packed = np.packbits(coarse, axis=1, bitorder="little")
        else:
            packed = members.view(np.uint8)
        width = 8 if size <= 128 else 4
        if width == 4:
            packed = np.stack([packed & 15, packed >> 4], axis=2).reshape(len(packed), -1)
        self.digits = packed[:, : -(-size // width)]
        single = np.zeros((self.digits.shape[1] * width, -(-len(codes) // 64) * 64), np.uint8)
        single[bucket, np.arange(len(codes))] = 1
        bitsets = np.packbits(single, axis=1, bitorder="little").view(np.uint64)
        self.tables = []
        for d in range(self.digits.shape[1]):
            table = np.zeros((1 << width, bitsets.shape[1]), np.uint64)
            for bit in range(width):
                table[1 << bit : 2 << bit] = table[: 1 << bit] | bitsets[d * width + bit]
            self.tables.append(table)

    def narrow(self, left: np.ndarray, begin: int, stop: int) -> None:
        distinct = merge(list(self.digits[begin:stop].T), stop - begin)
        digits = self.digits[begin:stop][distinct.first]
        inside = self.tables[0][digits[:, 0]]
        for d, table in enumerate(self.tables[1:], start=1):
            used = np.flatnonzero(digits[:, d])
            if len(used):
                inside[used] |= table[digits[used, d]]
        left &= inside[distinct.label]

    def check(self, box: np.ndarray, record: np.ndarray) -> np.ndarray:
        codes = self.codes[record]
        inside = self.words[codes >> 6, box] >> (codes & 63).astype(np.uint64)
        return (inside & np.uint64(1)).astype(bool)


def _bits_set(bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return row and place of every bit that is set, row by row."""
    words = bits.shape[1]
    at = np.flatnonzero(bits)
    flags = np.unpackbits(bits.reshape(-1)[at].view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    word, bit = np.nonzero(flags)
    at = at[word]
    return at // words, (at % words * 64 + bit).astype(np.int32)


def runs(start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Return the integers of the runs ``start[t] : start[t] + length[t]``, one after the other."""
    total = int(length.sum())
    before = np.cumsum(length) - length
    return np.repeat(start - before, length) + np.arange(total)
