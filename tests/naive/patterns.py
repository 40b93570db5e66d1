"""The greedy heuristic of pattern-guided k-anonymity (Bredereck 2013, Algorithm 1), written down plainly."""

from __future__ import annotations

import numpy as np


def all_patterns(q: int) -> list[int]:
    """All patterns in the heuristic's order, as numbers whose most significant bit is the first column.

    A set bit is a suppressed column. Fewer suppressed columns come first, equal ones by the number.
    """
    return sorted(range(2**q), key=lambda pattern: (pattern.bit_count(), pattern))


def greedy(codes: np.ndarray, k: int, patterns: list[int] | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Assign each row to an instance of a pattern.

    Parameters
    ----------
    codes : (n, q) integers, from 0.
    patterns : in the order of use; all of them without.

    Returns
    -------
    labels : (n,) int64, equal for the rows of an output row type; the remainder of fewer than k is one more.
    stars : (n,) int64, suppressed cells of each row.
    """
    n, q = codes.shape
    if patterns is None:
        patterns = all_patterns(q)
    sizes = [int(column.max()) + 1 for column in codes.T]
    weights = np.ones(q, np.int64)
    for column in range(1, q):
        weights[column] = weights[column - 1] * sizes[column - 1]
        assert float(weights[column]) * sizes[column] < 2**62, "too many combinations for plain keys"
    labels = np.full(n, -1, np.int64)
    stars = np.full(n, q, np.int64)
    left = np.arange(n)
    digits = codes.astype(np.int64) * weights
    used = 0
    for pattern in patterns:
        if len(left) < k:
            break
        kept = [column for column in range(q) if not pattern >> (q - 1 - column) & 1]
        key = digits[left][:, kept].sum(axis=1) if len(left) < 100 else _sum(digits, left, kept)
        order = np.argsort(key)
        ordered = key[order]
        starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        lengths = np.diff(np.append(starts, len(ordered)))
        if lengths.max() < k:
            continue
        instance = np.repeat(np.arange(len(starts)), lengths)
        fits = np.repeat(lengths >= k, lengths)
        rows = left[order[fits]]
        labels[rows] = used + instance[fits]
        stars[rows] = pattern.bit_count()
        used += len(starts)
        left = np.delete(left, order[fits])
    return np.unique(labels, return_inverse=True)[1].astype(np.int64), stars


def _sum(digits: np.ndarray, left: np.ndarray, kept: list[int]) -> np.ndarray:
    key = np.zeros(len(left), np.int64)
    for column in kept:
        key += digits[left, column]
    return key
