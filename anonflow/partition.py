"""Partitions: an order of the records and the cuts in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anonflow.errors import InfeasibleError, ParameterError
from anonflow.hierarchy.wording import plural
from anonflow.table import Domain, Records, equal_columns

MOST_RECORDS = 1 << 53
"""A partition of so many records is the whole table, and no larger number is needed."""

ORDERS = ("lexicographic", "input", "random")


def too_few(n: int, k: int) -> InfeasibleError:
    """Return the error for n < k records; it names a possible k if there is one."""
    if n < 2:
        return InfeasibleError(
            f"{plural(n, 'record')} cannot hide anybody; take a table of at least k = {k} records"
        )
    return InfeasibleError(f"{plural(n, 'record')} cannot hide among k = {k}; use a k of at most {n}")


def lexicographic_order(records: Records) -> np.ndarray:
    """Return positions of the records in lexicographic order, QIs with fewer distinct values first.

    Few values first means that large changes between neighbours are rare (Doka 2015, section 5). Equal records
    keep their order; QIs with equally many values keep the schema's.

    Parameters
    ----------
    records : Records
        n records over q QIs.

    Returns
    -------
    numpy.ndarray, shape (n,), int64
        O(q n) time; 8 bytes a record besides, and 2 for each 16 bits that a record's codes have together.
    """
    positions = np.arange(records.n, dtype=np.int64)
    for digit in reversed(_sort_digits(records)):
        positions = positions[np.argsort(digit[positions], kind="stable")]
    return positions


def space_filling_order(records: Records) -> np.ndarray:
    """Return positions of the records along Hilbert's curve through the ranks of all QIs, by Skilling's steps.

    All QIs weigh alike on it: runs of neighbours are narrow in each of them, where those of a lexicographic order are very
    narrow in the first and wide in the last. Equal records keep their order.

    Parameters
    ----------
    records : Records
        n records over q QIs.

    Returns
    -------
    numpy.ndarray, shape (n,), int64
        O(q n) time; 2 q bytes a record, and 24.

    Notes
    -----
    Skilling, Programming the Hilbert curve, AIP Conference Proceedings 707, 2004.
    """
    n, q = records.codes.shape
    ranks = np.empty((q, n), np.uint8)
    for a in range(q):
        codes = records.codes[:, a] - records.codes[:, a].min(initial=0)  # -1 is no number
        counts = np.bincount(codes)
        # the middle rank of a value's records, in 256 steps
        ranks[a] = ((2 * np.cumsum(counts) - counts) * 128 // max(n, 1))[codes]
    for bit in range(7, 0, -1):
        lower = np.uint8((1 << bit) - 1)
        for a in range(q):
            high = ranks[a] >> np.uint8(bit) & np.uint8(1) > 0
            exchanged = np.where(high, np.uint8(0), (ranks[0] ^ ranks[a]) & lower)
            ranks[0] ^= np.where(high, lower, exchanged)
            ranks[a] ^= exchanged
    for a in range(1, q):
        ranks[a] ^= ranks[a - 1]
    flipped = np.zeros(n, np.uint8)
    for bit in range(7, 0, -1):
        flipped[ranks[-1] >> np.uint8(bit) & np.uint8(1) > 0] ^= np.uint8((1 << bit) - 1)
    # bit by bit, the highest of all QIs first
    bits = np.unpackbits(ranks ^ flipped, axis=1).reshape(q, n, 8).transpose(2, 0, 1).reshape(8 * q, n)
    positions = np.arange(n, dtype=np.int64)
    for digit in np.packbits(bits, axis=0)[::-1]:
        positions = positions[np.argsort(digit[positions], kind="stable")]
    return positions


def _sort_digits(records: Records) -> list[np.ndarray]:
    """Return the records' codes as digits of 16 bits, the first first: numpy sorts these in one pass over their bytes."""
    digits: list[np.ndarray] = []
    room = 0
    for a in first_to_last(records.domains):
        codes = records.codes[:, a] + 1  # from 0: -1 is no number
        rest = records.domains[a].size.bit_length()
        while rest:
            if not room:
                digits.append(np.zeros(records.n, np.uint16))
                room = 16
            bits = min(room, rest)
            rest, room = rest - bits, room - bits
            part = (codes >> rest) & ((1 << bits) - 1)
            digits[-1] = digits[-1] << np.uint16(bits) | part.astype(np.uint16)
    return digits


def first_to_last(domains: Sequence[Domain]) -> list[int]:
    """Return the QIs in the order that the lexicographic order compares them: fewer distinct values first."""
    blank = [domain.has_missing or domain.has_codes for domain in domains]
    present = [
        int(np.count_nonzero(domain.counts)) + extra for domain, extra in zip(domains, blank, strict=True)
    ]
    return sorted(range(len(domains)), key=lambda a: (present[a], a))


def bounded(records: Records) -> tuple[str, ...]:
    """Return the columns with a boundary, each once."""
    return tuple(dict.fromkeys(domain.column for domain in records.domains if domain.bound is not None))


def limited(records: Records) -> tuple[int, ...]:
    """Return the QIs whose ``max-width`` or ``max-set`` is less than their whole domain."""
    return tuple(
        a
        for a, domain in enumerate(records.domains)
        if domain.limit is not None
        and domain.size
        and domain.limit
        < (domain.size if domain.shape == "set" else domain.exact_points[-1] - domain.exact_points[0])
    )


def unbounded(records: Records) -> Records:
    """Return the same records without boundaries and limits."""
    if not bounded(records) and not limited(records):
        return records
    free = tuple(replace(domain, bound=None, limit=None) for domain in records.domains)
    return Records(free, records.codes, records.units)


def boundary_classes(records: Records) -> np.ndarray:
    """Return the equivalence classes of the maximum allowed microdata (MAM): the records that may be generalized together.

    Each value of a bounded quasi-identifier (QI) is generalized as far as its boundary lets it; records that
    are then equal on every bounded QI are one class. Records of two classes have no generalization in common
    that keeps both boundaries (Miller 2008, Property 1), those of one class have.

    Parameters
    ----------
    records : Records
        n records.

    Returns
    -------
    numpy.ndarray, shape (n,), int64
        Labels 0.., one for all without a bounded QI. O(b n log n) for b bounded QIs.

    Notes
    -----
    Miller 2008, Definition 9. A record without a number, which only the whole domain covers, breaks no boundary
    and forms a class with the others that have none.
    """
    rows = []
    for a, domain in enumerate(records.domains):
        if domain.bound is not None:
            codes = records.codes[:, a]
            rows += [np.where(codes < 0, -1, domain.bound[codes, end]) for end in (0, 1)]
    return equal_columns(rows, records.n)


def unit_layers(place: np.ndarray, units: np.ndarray, within: np.ndarray) -> np.ndarray:
    """Return layers of records with at most one record of each person: the records that may be generalized together.

    Parameters
    ----------
    place : numpy.ndarray, shape (n,), int64
        Position of each record in lexicographic order, among those of its label.
    units : numpy.ndarray, shape (n,), int64
        The unit of each record.
    within : numpy.ndarray, shape (n,), int64
        Labels 0.. of parts that are layered separately.

    Returns
    -------
    numpy.ndarray, shape (n,), int64
        The layer inside its label. A label with n records, m of them of one unit, has m layers of at least n // m records.
        O(n log n).

    Notes
    -----
    Units are assigned one after the other, the records of each unit to consecutive layers; these differ, since there
    are as many layers as the largest unit has records. So every layer has k records if and only if m <= n / k. Every
    release in which a row lists k records of k units needs this, so no possible release is refused. Units follow each
    other in lexicographic order of their first record: every layer is a thinned copy of the table.
    """
    n = len(place)
    unit_in_label = equal_columns([within, units], n)
    first = np.full(int(unit_in_label.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, unit_in_label, place)
    layers_of_label = np.zeros(int(within.max(initial=-1)) + 1, np.int64)
    np.maximum.at(layers_of_label, within, np.bincount(unit_in_label)[unit_in_label])
    order = np.lexsort([place, first[unit_in_label], within])
    start = np.cumsum(np.bincount(within)) - np.bincount(within)
    label = within[order]
    layers = np.empty(n, np.int64)
    layers[order] = (np.arange(n) - start[label]) % layers_of_label[label]
    return layers


def kept_apart(records: Records) -> np.ndarray:
    """Return labels 0.. of records that may be generalized together: boundary classes, layered if people have several rows.

    Parameters
    ----------
    records : Records

    Returns
    -------
    numpy.ndarray, shape (n,), int64
    """
    labels = boundary_classes(records)
    if records.units is None:
        return labels
    place = np.empty(records.n, np.int64)
    place[lexicographic_order(records)] = np.arange(records.n)
    return equal_columns([labels, unit_layers(place, records.units, labels)], records.n)


def sizes_kept_apart(records: Records) -> np.ndarray:
    """Return how many records have each label of :func:`kept_apart`, shape (classes,), int64."""
    if records.units is None and not bounded(records):
        return np.array([records.n], np.int64)
    return np.bincount(kept_apart(records))


def refuse_large_units(rows: int, n: int, k: int) -> None:
    """Refuse a unit with so many rows that k units per row are impossible.

    Parameters
    ----------
    rows : int
        Of the unit that has most of them.
    n, k : int

    Raises
    ------
    InfeasibleError
        If it has more than n / k.
    """
    if rows * k > n:
        most = n // rows
        advice = f"use a k of at most {most}, " if most >= 2 else ""
        raise InfeasibleError(
            f"one unit has {rows:,} of {n:,} rows, more than n/k = {n // k:,}: no row can list k = {k} units with each in it "
            f"once; {advice}keep fewer rows of a unit, or make one row of each unit"
        )


def ordered(
    records: Records, order: str, rng: np.random.Generator | None = None, boundaries: bool = False
) -> np.ndarray:
    """Return positions of the records in an order that partitions are cut along.

    Parameters
    ----------
    records : Records
    order : {"lexicographic", "input", "random"}
    rng : numpy.random.Generator, optional
        For ``random``.
    boundaries : bool, optional
        Whether the classes of :func:`boundary_classes` follow one another, each in that order; the input of :func:`cuts`.

    Returns
    -------
    numpy.ndarray, shape (n,), int64

    Raises
    ------
    ParameterError
        If the order is unknown, or random without a generator.
    """
    if order == "lexicographic":
        positions = lexicographic_order(records)
    elif order == "input":
        positions = np.arange(records.n, dtype=np.int64)
    elif order == "random" and rng is not None:
        places = random_places(random_key(rng), 0, records.n)
        positions = np.argsort(places, kind="stable").astype(np.int64)
    elif order == "random":
        raise ParameterError("partition order random needs a generator")
    else:
        raise ParameterError(f"unknown partition order {order!r} (known: {', '.join(ORDERS)})")
    if boundaries and (bounded(records) or records.units is not None):
        positions = positions[np.argsort(kept_apart(records)[positions], kind="stable")]
    return positions


def random_key(rng: np.random.Generator) -> int:
    """Return the key of a random order: 128 bits of a generator's."""
    return int.from_bytes(rng.bytes(16), "little")


def random_places(key: int, start: int, count: int) -> np.ndarray:
    """Return the sort keys of consecutive records for a random order: a keyed hash of each record's position in the table.

    Parameters
    ----------
    key : int
        As :func:`random_key` gives it.
    start, count : int
        Position of the first record, and how many there are.

    Returns
    -------
    numpy.ndarray, shape (count,), int64
        Numbers of 63 bits, independent of how a table is divided; equal ones keep the table's order. Philox
        (Salmon, Moraes, Dror and Shaw, SC 2011) with the position as its counter.
    """
    block = start // 4  # four numbers of 64 bits for each count
    words = np.random.Philox(key=key, counter=block).random_raw(start - 4 * block + count)
    # 63 bits: positive as int64
    return (words[start - 4 * block :] >> np.uint64(1)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Cuts:
    """The cuts of an order of the records; partitions are computed when needed.

    The memory does not grow with the number of partitions.

    Attributes
    ----------
    starts, counts : numpy.ndarray, shape (c,), int64
        The runs of records that may be cut, in order: each boundary class of at least k records, or all records.
    runs : numpy.ndarray, shape (c,), int64
        How many partitions each is cut into.
    size : int or None
        Records in a partition; None is a whole run of them.
    """

    starts: np.ndarray
    counts: np.ndarray
    runs: np.ndarray
    size: int | None

    def __len__(self) -> int:
        return int(self.runs.sum())

    @property
    def lengths(self) -> tuple[np.ndarray, np.ndarray]:
        """The different numbers of records that partitions have, ascending, and how many partitions have each."""
        size = self.counts if self.size is None else np.full(len(self.counts), self.size, np.int64)
        last = self.counts - (self.runs - 1) * size
        sizes = np.concatenate([last, size])
        lengths, label = np.unique(sizes, return_inverse=True)
        times = np.concatenate([np.ones(len(last), np.int64), self.runs - 1])
        number = np.bincount(label, times, len(lengths)).astype(np.int64)
        return lengths[number > 0], number[number > 0]

    def longest(self, most: int) -> list[slice]:
        """Up to `most` of the partitions with the most records, from all over the order; O(c)."""
        length = int(self.lengths[0][-1])
        size = self.counts if self.size is None else np.full(len(self.counts), self.size, np.int64)
        at_end = (self.counts - (self.runs - 1) * size == length).astype(np.int64)
        before = np.where(size == length, self.runs - 1, 0)
        ends = np.cumsum(before + at_end)
        picks = np.linspace(0, ends[-1] - 1, min(most, int(ends[-1])) + 2)[1:-1]
        picked = []
        for at in np.rint(picks).astype(np.int64).tolist():
            run = int(np.searchsorted(ends, at, "right"))
            number = at - int(ends[run] - before[run] - at_end[run])
            begin = number if number < before[run] else int(self.runs[run]) - 1
            start = int(self.starts[run] + begin * size[run])
            picked.append(slice(start, start + length))
        return picked

    def __iter__(self) -> Iterator[slice]:
        for start, count, runs in zip(
            *(part.tolist() for part in (self.starts, self.counts, self.runs)), strict=True
        ):
            size = self.size or count
            for begin in range(start, start + (runs - 1) * size, size):
                yield slice(begin, begin + size)
            yield slice(start + (runs - 1) * size, start + count)


def cut(n: int, size: int | None, k: int) -> list[slice]:
    """Cut ``range(n)`` into runs of `size`; a last one of fewer than k joins its neighbour.

    Parameters
    ----------
    n : int
        Number of records.
    size : int or None
        Records in a partition, at least k; None is one partition.
    k : int

    Returns
    -------
    list of slice
        Every run has at least k records.

    Raises
    ------
    ParameterError
        If `size` is smaller than k.
    InfeasibleError
        If there are fewer than k records.
    """
    return list(cut_classes(np.array([n], np.int64), (), size, k))


def cut_classes(sizes: np.ndarray, names: Sequence[str], size: int | None, k: int) -> Cuts:
    """Cut an order in which the boundary classes follow one another.

    Parameters
    ----------
    sizes : numpy.ndarray, shape (c,), int64
        Records of each class, in the order; one class without boundaries.
    names : sequence of str
        The bounded columns.
    size : int or None
        Records in a partition; None is a whole class.
    k : int

    Returns
    -------
    Cuts
        Runs of at least k records, as :func:`cuts` gives them. O(c) memory.

    Raises
    ------
    ParameterError
        If `size` is smaller than k.
    InfeasibleError
        If there are fewer than k records, or no class has k of them.
    """
    n = int(sizes.sum())
    if n < k:
        raise too_few(n, k)
    if size is not None and size < k:
        raise ParameterError(f"partition size {size} is smaller than k = {k}; use at least {k}")
    large = sizes >= k
    if not large.any():
        raise InfeasibleError(
            f"within the boundaries of {', '.join(repr(name) for name in names)} no record has k = {k} like it "
            f"(at most {sizes.max()}); lower k, allow wider generalizations, or do without boundaries"
        )
    starts, counts = (np.cumsum(sizes) - sizes)[large], sizes[large]
    runs = np.ones(len(counts), np.int64)
    if size is not None:
        runs = -(-counts // size)
        # a last one of fewer than k joins its neighbour
        runs -= (runs > 1) & (counts - (runs - 1) * size < k)
    return Cuts(starts, counts, runs, size)


def plan(
    records: Records,
    size: int | None,
    k: int,
    order: str = "lexicographic",
    rng: np.random.Generator | None = None,
) -> list[np.ndarray]:
    """Return the partitions of some records: their positions, each partition in the order's order.

    Parameters
    ----------
    records : Records
    size : int or None
        Records in a partition; None is the whole table.
    k : int
    order : {"lexicographic", "input", "random"}
    rng : numpy.random.Generator, optional
        For ``random``.

    Returns
    -------
    list of numpy.ndarray, int64
        Together each position once; each of at least k records.

    Raises
    ------
    ParameterError
        If the order is unknown or the size is smaller than k.
    InfeasibleError
        If there are fewer than k records.
    """
    runs = cut(records.n, size, k)
    positions = ordered(records, order, rng)
    return [positions[run] for run in runs]


def cuts(records: Records, size: int | None, k: int) -> list[slice]:
    """Cut ``ordered(records, ..., boundaries=True)`` so that no partition holds two boundary classes.

    Parameters
    ----------
    records : Records
    size : int or None
        Records in a partition; None is a whole class.
    k : int

    Returns
    -------
    list of slice
        Runs of at least k records. What lies between them are the classes of fewer than k records, which no
        generalization within the boundaries can hide (Miller 2008, Property 6): they have to be suppressed.

    Raises
    ------
    ParameterError
        If `size` is smaller than k.
    InfeasibleError
        If there are fewer than k records, or no class has k of them.
    """
    if records.units is not None:
        refuse_large_units(int(np.bincount(records.units).max()), records.n, k)
    return list(cut_classes(sizes_kept_apart(records), bounded(records), size, k))


def divided(
    records: Records,
    size: int | None,
    k: int,
    order: str = "lexicographic",
    rng: np.random.Generator | None = None,
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the partitions of some records inside their boundary classes, and the records that are left out.

    Parameters
    ----------
    records : Records
    size : int or None
        Records in a partition; None is a whole class.
    k : int
    order : {"lexicographic", "input", "random"}
    rng : numpy.random.Generator, optional
        For ``random``.

    Returns
    -------
    parts : list of numpy.ndarray, int64
        Positions, each part of at least k records of one class; without boundaries those of :func:`plan`.
    left : numpy.ndarray, int64
        Ascending positions of the records of classes of fewer than k (Miller 2008's OUT), to be suppressed: the
        fewest with which the others can be generalized within the boundaries (Properties 5 and 6).

    Raises
    ------
    ParameterError
        If the order is unknown or the size is smaller than k.
    InfeasibleError
        If there are fewer than k records, or no class has k of them.
    """
    runs = cuts(records, size, k)
    positions = ordered(records, order, rng, boundaries=True)
    parts = [positions[run] for run in runs]
    outside = np.ones(records.n, bool)
    for part in parts:
        outside[part] = False
    return parts, np.flatnonzero(outside)
