"""One record and the records that hide it: the part of the generalization graph around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from anonflow.generalization import Generalization
from anonflow.option import check_whole
from anonflow.utility.before_after import texts_of
from anonflow.utility.distributions import MISSING

MOST = 40
"""More records than this are not listed on either side; ``originals_in_all`` and ``rows_in_all`` count them."""


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The records around one record; for the owner's eyes only.

    Attributes
    ----------
    record : int
        Its position in the table.
    kind : {"matches", "class", "covers", "suppressed"}
        The meaning of an edge: a match of a k-regular graph, a record of the same equivalence class, or only a cover
        (k-concealment). A suppressed record has one edge, to itself.
    originals : numpy.ndarray, shape (a,), int64
        Positions of original records, `record` first: those that its generalized record stands for.
    rows : numpy.ndarray, shape (b,), int64
        Generalized records, each by the position of its own original, `record` first: those that may be published with
        its other columns. One row represents a class, because its rows are equal.
    edges : numpy.ndarray, shape (e, 2), int64
        Where in `originals` and where in `rows` each edge ends.
    originals_in_all, rows_in_all : int
        Their number, which may exceed that of the listed ones.
    """

    record: int
    kind: Literal["matches", "class", "covers", "suppressed"]
    originals: np.ndarray
    rows: np.ndarray
    edges: np.ndarray
    originals_in_all: int
    rows_in_all: int

    def texts(self, anonymization: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the originals as they would be published ungeneralized, and the rows as they are published.

        Where an original has no value, it is called missing, and so is an empty cell that is published as one.

        Returns
        -------
        originals, rows : pandas.DataFrame
            A row for each of :attr:`originals` and :attr:`rows`, text.
        """
        records = anonymization.table.records.take(self.originals)
        rows = anonymization.published.take(self.rows).decode(
            suppressed=np.asarray(anonymization.suppressed, bool)[self.rows]
        )
        for domain in records.domains:
            if domain.kind not in ("positions", "codes", "numeric") and "" in domain.labels:
                rows[domain.column] = rows[domain.column].replace("", MISSING)
        return texts_of(records).astype(object), rows


def neighbourhood(anonymization: Any, record: int, most: int = MOST) -> Neighbourhood:
    """Return the records among which a record is hidden.

    Parameters
    ----------
    anonymization : Anonymization
        n generalized records, with their matches, their classes or neither.
    record : int
        Position of an original, from 0.
    most : int
        Records listed on either side, at least 1.

    Returns
    -------
    Neighbourhood
        O(n k) of a graph, O(n) of classes, O(n q) of covers.

    Raises
    ------
    ParameterError
        If there is no record at that position.
    """
    n = anonymization.generalization.n
    i = check_whole(record, 0, f"no record at this position; the table has records 0 to {n - 1}", most=n - 1)
    alone = np.array([i], np.int64)
    if anonymization.suppressed[i]:
        return Neighbourhood(i, "suppressed", alone, alone, np.zeros((1, 2), np.int64), 1, 1)
    if anonymization.matches is not None:
        return _of_matches(anonymization.matches, i, most)
    if anonymization.classes is not None:
        members = np.flatnonzero(anonymization.classes == anonymization.classes[i])
        first_members = _first(i, members, most)
        edges = np.stack([np.arange(len(first_members)), np.zeros(len(first_members), np.int64)], axis=1)
        return Neighbourhood(i, "class", first_members, alone, edges, len(members), len(members))
    return _of_covers(anonymization, i, most)


def _of_matches(matches: np.ndarray, i: int, most: int) -> Neighbourhood:
    positions = matches[i][matches[i] >= 0].astype(np.int64)
    others = np.flatnonzero((matches == i).any(axis=1))
    left, right = _first(i, positions, most), _first(i, others, most)
    inside = (matches[right][:, :, None] == left).any(axis=1)  # rows by originals
    return Neighbourhood(i, "matches", left, right, np.argwhere(inside.T), len(positions), len(others))


def _of_covers(anonymization: Any, i: int, most: int) -> Neighbourhood:
    generalization, records = anonymization.generalization, anonymization.table.records
    others = np.flatnonzero(
        generalization.covers(Generalization.of(records.take(np.full(generalization.n, i))))
    )
    # the other direction: the originals that the generalized record of i covers
    originals = Generalization.of(records)
    positions = np.flatnonzero(generalization.take(np.full(generalization.n, i)).covers(originals))
    left, right = _first(i, positions, most), _first(i, others, most)
    pairs = np.argwhere(np.ones((len(left), len(right)), bool))
    holds = generalization.take(right[pairs[:, 1]]).covers(originals.take(left[pairs[:, 0]]))
    return Neighbourhood(i, "covers", left, right, pairs[holds], len(positions), len(others))


def _first(i: int, positions: np.ndarray, most: int) -> np.ndarray:
    """Record `i`, then the others in order, at most `most` in all."""
    return np.concatenate([[i], positions[positions != i]])[:most].astype(np.int64)
