"""The subject of a measurement: originals, generalized records, and the originals of each of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from anonflow.candidate_lists import Candidates
from anonflow.criteria.evidence import Subject, spanning_lists, subject_in_memory
from anonflow.errors import DataError, ParameterError
from anonflow.generalization import Generalization
from anonflow.table import Records, Table
from anonflow.table.records import first_places


@dataclass(frozen=True, eq=False)
class Part:
    """The records of a table or of a partition, and their generalized records.

    Attributes
    ----------
    records : Records
        n originals; domains are those of the whole table.
    generalization : Generalization
        n generalized records.
    candidates : Candidates or None
        The originals that each generalized record stands for, at least one. None where only what a generalized record covers is
        known (k-concealment).
    homogeneous : bool
        Whether the method makes equivalence classes: equal generalized records stand for their own originals.
    own : bool
        Whether row i is original i's, as in an anonymization; a release is shuffled.
    hidden : numpy.ndarray, shape (n,), bool, or None
        Which records are suppressed; None if unknown.
    partitions : sequence of numpy.ndarray, int64, or None
        Positions of each partition's records; None if unknown.
    table : Table or None
        The whole table, and
    subject : object
        what was made of it, as they were given: for measures that need all columns.
    """

    records: Records
    generalization: Generalization
    candidates: Candidates | None
    homogeneous: bool
    own: bool = True
    hidden: np.ndarray | None = None
    partitions: Sequence[np.ndarray] | None = None
    table: Table | None = None
    subject: Any = None

    @cached_property
    def suppressed(self) -> np.ndarray:
        """Which records are suppressed, or cover everything where that is unknown, shape (n,), bool."""
        return self.generalization.suppressed_rows() if self.hidden is None else self.hidden

    @cached_property
    def labels(self) -> np.ndarray:
        """Labels 0.. of equal generalized records, shape (n,), int64."""
        return self.generalization.classes()

    @cached_property
    def keys(self) -> np.ndarray:
        """The keys by which classes of different partitions are compared, shape (2, m), int64.

        Two hashes of 64 bits of the cells of each class: other classes have the same with a chance of 2^-120 or so.
        """
        generalization = self.generalization.take(self.first)
        rows = [*generalization.lo, *generalization.hi, *generalization.bits.view(np.int64)]
        if generalization.aggregates is not None:
            rows += [*np.ascontiguousarray(generalization.aggregates).view(np.int64)]
        odd = np.random.default_rng(0).integers(1 << 62, size=(2, len(rows)), dtype=np.uint64) * np.uint64(2)
        keys = np.zeros((2, len(self.first)), np.uint64)
        for row, factors in zip(rows, (odd + np.uint64(1)).T, strict=True):
            for key, factor in zip(keys, factors, strict=True):
                key += mixed(row.astype(np.uint64) + factor) * factor
        return keys.view(np.int64)

    @cached_property
    def sizes(self) -> np.ndarray:
        """Records of each class, shape (m,), int64."""
        return np.bincount(self.labels)

    @cached_property
    def first(self) -> np.ndarray:
        """Position of the first record of each class, shape (m,), int64."""
        return first_places(self.labels, len(self.sizes))


def mixed(words: np.ndarray) -> np.ndarray:
    """Return words in which each bit depends on all bits of the given ones, by the finalizer of SplitMix64."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def part_of(records: Records | Table, subject: Any) -> Part:
    """Return the measurable parts of a subject.

    Parameters
    ----------
    records : Records or Table
        n originals.
    subject : Anonymization, Outcome, Release, Generalization or pandas.DataFrame
        Anything with a ``generalization`` whose row i is original i's, and perhaps ``matches`` (n, k),
        ``classes`` (n,), ``suppressed`` (n,); or a published table in any order, perhaps with its certificate.

    Raises
    ------
    ParameterError
        If it is none of these.
    DataError
        If it has another number of rows than the table, or its cells cannot be read.
    """
    originals = records.records if isinstance(records, Table) else records
    read = (
        Subject(subject.n, subject, None)
        if isinstance(subject, Generalization)
        else subject_in_memory(subject)
    )
    if read is None:
        raise ParameterError(
            f"cannot measure a {type(subject).__name__}; give an anonymization, a release or a published table"
        )
    if read.rows != originals.n:
        raise DataError(
            f"{read.rows} generalized records for {originals.n} originals; give the table that they were made from"
        )
    return _release(originals, read) if read.generalization is None else _anonymization(originals, read)


def _anonymization(records: Records, subject: Subject) -> Part:
    generalization, listed = subject.generalization, subject.listing
    assert generalization is not None
    homogeneous = listed is None and subject.classes is not None
    if listed is not None:
        _check_listed(listed, records.n)
    elif homogeneous:
        listed = Candidates.of_lists(np.ones(records.n, np.int64), np.arange(records.n))
        generalization = generalization.aggregated(records, subject.classes, subject.suppressed)
    return Part(
        records, generalization, listed, homogeneous, hidden=subject.suppressed, partitions=subject.partitions
    )


def _release(records: Records, subject: Subject) -> Part:
    published = Generalization.parse(subject.published_rows(), records.domains)
    claim = subject.certificate
    listed = None if claim is None else Candidates.of_claim(claim, records.n)
    # a certificate of k-concealment lists the originals of suppressed rows at most
    if listed is not None and listed.sizes[~published.suppressed_rows()].any():
        _check_listed(listed, records.n)
        if published.aggregates is not None:
            published = spanning_lists(published, records, listed)
    else:
        listed = None
    return Part(records, published, listed, False, own=False)


def _check_listed(listed: Candidates, n: int) -> None:
    """Refuse matches that leave a row without an original, or name one that does not exist."""
    if n and (not listed.sizes.all() or not 0 <= listed.originals.min() <= listed.originals.max() < n):
        raise DataError("the matches name no original for some rows, or originals that do not exist")
