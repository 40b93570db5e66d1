"""Marginal tables of two and three columns: distances between those of a release and of the originals."""

from __future__ import annotations

import itertools

import numpy as np

from anonflow.utility.analyses.comparison import Comparison

MOST = 100
"""More marginals than this are sampled, as SDNist does."""


def distances(comparison: Comparison, ways: int, most: int | None = None) -> np.ndarray:
    """Return total variation distances of marginals, each the mean over the plausible tables, shape (marginals,), float64.

    Parameters
    ----------
    comparison : Comparison
    ways : int
        Columns of a marginal.
    most : int, optional
        If there are more marginals, so many are drawn, always the same.

    Returns
    -------
    numpy.ndarray
        Between 0 and 1. Suppressed rows are in no cell. O(marginals m n).
    """
    coded = comparison.coded
    c = len(coded.sizes)
    chosen = list(itertools.combinations(range(c), min(ways, c)))
    if most is not None and len(chosen) > most:
        at = np.random.default_rng(0).choice(len(chosen), most, replace=False)
        chosen = [chosen[i] for i in np.sort(at)]
    distances = []
    for columns in chosen:
        key = _keys(coded.original, columns, coded.sizes)
        table_distances = []
        for table in coded.tables:
            other = _keys(table, columns, coded.sizes)
            _, cell = np.unique(np.concatenate([key, other]), return_inverse=True)
            p = np.bincount(cell[: len(key)], minlength=cell.max() + 1) / len(key)
            q = np.bincount(cell[len(key) :], minlength=cell.max() + 1) / max(len(other), 1)
            lost = comparison.lost if len(other) else 1.0
            table_distances.append((np.abs(p - (1 - lost) * q).sum() + lost) / 2)
        distances.append(np.mean(table_distances))
    return np.array(distances)


def _keys(codes: np.ndarray, columns: tuple[int, ...], sizes: tuple[int, ...]) -> np.ndarray:
    key = np.zeros(len(codes), np.int64)
    for column in columns:
        key = key * sizes[column] + codes[:, column]
    return key


def k_marginals(comparison: Comparison, ways: int) -> dict[str, float]:
    """Return SDNist's score: 1000 for equal tables, 0 for tables with nothing in common."""
    return {"": float(1000 * (1 - distances(comparison, ways, MOST).mean()))}


def pair_distance(comparison: Comparison) -> dict[str, float]:
    """Return the mean distance over all pairs of columns, and that of the worst pair."""
    values = distances(comparison, 2)
    return {"": float(values.mean()), "worst": float(values.max())}
