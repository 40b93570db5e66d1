"""Small sets of columns that identify people: minimal sample uniques, their scores, and the risk of every set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from anonflow.errors import ParameterError
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.option import check_whole
from anonflow.table.identification.population import intrusion
from anonflow.table.identification.uniqueness import class_labels, refined

MOST_SETS = 20_000
"""The most sets of columns."""


@dataclass(frozen=True, eq=False, repr=False)
class KeySets:
    """Every set of up to m columns, and the records that are unique on it; see :func:`key_sets`.

    Attributes
    ----------
    columns : tuple of str
    most : int
        m, the size of the largest sets.
    sets : tuple of tuple of int
        Positions in `columns`; small sets first.
    uniques : numpy.ndarray, shape (sets,), int64
        Records that are unique on each set.
    minimal : numpy.ndarray, shape (sets,), int64
        Those of them that are not unique on any subset of the set: its minimal sample uniques.
    classes : numpy.ndarray, shape (sets,), int64
        Classes of equal records.
    smallest : numpy.ndarray, shape (sets,), int64
        Records of the smallest class.
    scores : numpy.ndarray, shape (n,), int64
        SUDA's score of each record.
    counts : numpy.ndarray, shape (n,), int64
        How many minimal sample uniques each record has.
    least : numpy.ndarray, shape (n,), int64
        The size of each record's smallest minimal sample unique; 0 if it has none.
    alike : numpy.ndarray, shape (n,), int64
        How many records are equal to each on all columns, itself among them.
    """

    columns: tuple[str, ...]
    most: int
    sets: tuple[tuple[int, ...], ...]
    uniques: np.ndarray
    minimal: np.ndarray
    classes: np.ndarray
    smallest: np.ndarray
    scores: np.ndarray
    counts: np.ndarray
    least: np.ndarray
    alike: np.ndarray

    def frame(self) -> pd.DataFrame:
        """Return a row for each set, riskiest first: columns, size, uniques, minimal uniques, smallest class, average risk.

        The average risk is classes / records: that of the marketer who knows these columns.
        """
        n = max(len(self.scores), 1)
        rows = pd.DataFrame(
            {
                "columns": [", ".join(self.columns[a] for a in key_set) for key_set in self.sets],
                "size": [len(key_set) for key_set in self.sets],
                "uniques": self.uniques,
                "minimal uniques": self.minimal,
                "smallest class": self.smallest,
                "average risk": self.classes / n,
            }
        )
        return rows.sort_values(
            ["average risk", "size"], ascending=[False, True], kind="stable", ignore_index=True
        )

    def riskiest(self, most: int = 20, fraction: float | None = None) -> pd.DataFrame:
        """Return the positions of the records with the highest scores, for the owner only.

        Parameters
        ----------
        most : int
            Records.
        fraction : float, optional
            The sampling fraction; adds the column ``dis`` (:meth:`intrusion`).

        Returns
        -------
        pandas.DataFrame
            position, score, minimal uniques, smallest.

        Raises
        ------
        ParameterError
            If the fraction is not above 0 and at most 1.
        """
        order = np.argsort(-self.scores, kind="stable")[:most]
        order = order[self.scores[order] > 0]
        columns = {
            "position": order,
            "score": self.scores[order],
            "minimal uniques": self.counts[order],
            "smallest": self.least[order],
        }
        if fraction is not None:
            columns["dis"] = self.intrusion(fraction)[order]
        return pd.DataFrame(columns)

    def intrusion(self, fraction: float) -> np.ndarray:
        """Return the chance that a unique match with each record is right, shape (n,), float64, for the owner only.

        Parameters
        ----------
        fraction : float
            n / N of a simple random sample.

        Returns
        -------
        numpy.ndarray
            0 for a record that is not unique on all columns; nan for all records if it is not estimable.

        Raises
        ------
        ParameterError
            If the fraction is not above 0 and at most 1.

        Notes
        -----
        The mean over unique records is the file's (:func:`anonflow.table.identification.population.intrusion`; Skinner and Elliot 2002).
        As in DIS-SUDA (Elliot and others 2005) SUDA's scores distribute it. The paper prints no formula; ours: the odds
        d / (1 - d) are proportional to the score, and to 1 if only larger sets are unique. O(n).
        """
        classes = np.bincount(self.alike) // np.maximum(np.arange(int(self.alike.max(initial=0)) + 1), 1)
        mean = intrusion(np.repeat(np.arange(len(classes)), classes), fraction)
        alone = self.alike == 1
        # not a number differs from itself
        chances = np.where(alone, mean, 0.0) if mean == mean else np.full(len(alone), math.nan)
        if not 0 < mean < 1:
            return chances
        score = np.maximum(self.scores[alone], 1).astype(np.float64)
        # the mean grows with the factor, so bisection finds the factor
        low, high = -60.0 - math.log(score.max()), 60.0
        for _ in range(100):
            factor = (low + high) / 2
            odds = score * math.exp(factor)
            low, high = (factor, high) if (odds / (1 + odds)).mean() < mean else (low, factor)
        chances[alone] = odds / (1 + odds)
        return chances

    def contributions(self) -> pd.DataFrame:
        """Return how many minimal sample uniques each column is part of, and their share of all."""
        part = np.zeros(len(self.columns), np.int64)
        for key_set, count in zip(self.sets, self.minimal.tolist(), strict=True):
            part[list(key_set)] += count
        whole = max(int(self.minimal.sum()), 1)
        return pd.DataFrame({"column": self.columns, "minimal uniques": part, "share": part / whole})

    def __repr__(self) -> str:
        records, special = plural(len(self.scores), "record"), int((self.counts > 0).sum())
        are = verb_of(special, "are")
        lines = [
            f"KeySets of {records}: {special} {are} unique on a set of at most {plural(self.most, 'column')}"
        ]
        lines += [
            f"  {row['columns']}: {row['uniques']} unique, average risk {row['average risk']:.3g}"
            for row in self.frame().head(5).to_dict("records")
        ]
        return "\n".join(lines)


def key_sets(frame: pd.DataFrame, columns: Sequence[str], most: int = 3) -> KeySets:
    """Return minimal sample uniques and the risk of every set of up to `most` columns.

    Parameters
    ----------
    frame : pandas.DataFrame, n rows
    columns : sequence of str
        The columns that others may know.
    most : int
        m, the largest size of a set; at least 1.

    Returns
    -------
    KeySets

    Raises
    ------
    ParameterError
        If m is not a whole number of at least 1, no column is named, or there are more than 20,000 sets.
    SchemaError
        If the frame lacks a column.

    Notes
    -----
    A set of columns on which a record is unique, though on no part of it, is a minimal sample unique of it (Elliot,
    Manning, Ford 2002; SUDA2: Manning, Haglin, Keane 2008). Its score is the product of (columns - i) for i from its size to
    m, so that small ones weigh more; a record's score is their sum. Sets are taken by size, each as its first columns'
    classes, refined by one more: O(sets n), exact, where SUDA2 prunes. A record is not unique on any proper subset
    exactly if it is not unique on any subset that lacks one column.
    """
    check_whole(most, 1, "the largest number of columns in a set must be a whole number of at least 1")
    columns = tuple(str(name) for name in columns)
    if not columns:
        raise ParameterError("key_sets: name at least one column that others may know")
    q, n = len(columns), len(frame)
    most = min(int(most), q)
    set_count = sum(math.comb(q, size) for size in range(1, most + 1))
    if set_count > MOST_SETS:
        raise ParameterError(
            f"key_sets: {set_count:,} sets of up to {most} of {q} columns; name fewer columns or smaller sets"
        )
    single = [class_labels(frame, [name]) for name in columns]
    labels: dict[tuple[int, ...], np.ndarray] = {(): np.zeros(n, np.int64)}
    unique_on: dict[tuple[int, ...], np.ndarray] = {(): np.full(n, n == 1)}
    sets: list[tuple[int, ...]] = []
    figures: list[tuple[int, int, int, int]] = []
    scores, counts, least = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    for size in range(1, most + 1):
        weight = math.prod(max(q - i, 1) for i in range(size, most + 1))
        labels_here: dict[tuple[int, ...], np.ndarray] = {}
        unique_here: dict[tuple[int, ...], np.ndarray] = {}
        for key_set in combinations(range(q), size):
            label = refined(labels[key_set[:-1]], single[key_set[-1]])
            class_sizes = np.bincount(label, minlength=1)
            alone = class_sizes[label] == 1
            special = alone.copy()
            for part in combinations(key_set, size - 1):
                special &= ~unique_on[part]
            scores += weight * special
            counts += special
            least[special & (least == 0)] = size
            sets.append(key_set)
            figures.append(
                (int(alone.sum()), int(special.sum()), len(class_sizes), int(class_sizes.min(initial=n)))
            )
            if size < most:
                labels_here[key_set], unique_here[key_set] = label, alone
        labels, unique_on = labels_here, unique_here
    table = np.array(figures, np.int64).reshape(-1, 4)
    whole = class_labels(frame, columns)
    alike = np.bincount(whole, minlength=1)[whole]
    return KeySets(
        columns, most, tuple(sets), table[:, 0], table[:, 1], table[:, 2], table[:, 3], scores, counts, least,
        alike,
    )  # fmt: skip
