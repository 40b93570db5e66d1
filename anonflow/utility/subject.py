"""The subject of a measurement: originals, generalized records, and the originals of each of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from anonflow.candidate_lists import Candidates
from anonflow.criteria.evidence import spanning_lists
from anonflow.errors import DataError, ParameterError
from anonflow.generalization import Generalization
from anonflow.table import Records, Table
from anonflow.table.arrow import pandas_frame
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
    suppressed : int
        Suppressed records.
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
    suppressed: int
    own: bool = True
    hidden: np.ndarray | None = None
    partitions: Sequence[np.ndarray] | None = None
    table: Table | None = None
    subject: Any = None

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
                key += _mixed(row.astype(np.uint64) + factor) * factor
        return keys.view(np.int64)

    @cached_property
    def sizes(self) -> np.ndarray:
        """Records of each class, shape (m,), int64."""
        return np.bincount(self.labels)

    @cached_property
    def first(self) -> np.ndarray:
        """Position of the first record of each class, shape (m,), int64."""
        return first_places(self.labels, len(self.sizes))


def _mixed(words: np.ndarray) -> np.ndarray:
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
    subject = pandas_frame(subject)
    own = records.records if isinstance(records, Table) else records
    generalization = (
        subject if isinstance(subject, Generalization) else getattr(subject, "generalization", None)
    )
    if isinstance(generalization, Generalization):
        _check_rows(generalization.n, own.n)
        # a generalization alone has no matches or classes: its attribute `classes` is a method
        return _anonymization(own, generalization, None if subject is generalization else subject)
    frame = subject if isinstance(subject, pd.DataFrame) else getattr(subject, "frame", None)
    if isinstance(frame, pd.DataFrame):
        _check_rows(len(frame), own.n)
        return _release(own, frame, getattr(subject, "certificate", None))
    raise ParameterError(
        f"cannot measure a {type(subject).__name__}; give an anonymization, a release or a published table"
    )


def _anonymization(records: Records, generalization: Generalization, subject: Any) -> Part:
    matches = getattr(subject, "matches", None)
    classes = getattr(subject, "classes", None)
    suppressed = getattr(subject, "suppressed", None)
    partitions = getattr(subject, "partitions", None)
    count = int((generalization.suppressed_rows() if suppressed is None else suppressed).sum())
    if matches is not None:
        listed = _listed(matches, records.n)
    elif classes is not None:
        listed = Candidates.of_lists(np.ones(records.n, np.int64), np.arange(records.n))
        generalization = generalization.aggregated(records, classes, suppressed)
    else:
        listed = None
    homogeneous = matches is None and classes is not None
    return Part(records, generalization, listed, homogeneous, count, hidden=suppressed, partitions=partitions)


def _release(records: Records, frame: pd.DataFrame, certificate: Any) -> Part:
    published = Generalization.parse(frame, records.domains)
    hiding = published.suppressed_rows()
    hidden = int(hiding.sum())
    listed = None if certificate is None else Candidates.of_claim(certificate, records.n)
    # a certificate of k-concealment lists the originals of suppressed rows at most
    if listed is not None and listed.sizes[~hiding].any():
        listed = _listed(certificate, records.n)
        if published.aggregates is not None:
            published = spanning_lists(published, records, listed)
    else:
        listed = None
    return Part(records, published, listed, False, hidden, own=False)


def _listed(claim: Any, n: int) -> Candidates:
    """Return the originals of a matrix of matches, or of a certificate."""
    listed = Candidates.of_claim(claim, n)
    if n and (not listed.sizes.all() or not 0 <= listed.originals.min() <= listed.originals.max() < n):
        raise DataError("the matches name no original for some rows, or originals that do not exist")
    return listed


def _check_rows(rows: int, n: int) -> None:
    if rows != n:
        raise DataError(
            f"{rows} generalized records for {n} originals; give the table that they were made from"
        )
