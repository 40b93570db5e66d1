"""Throwaway draws: they estimate, before the published draw, how often a release would fail a criterion."""

from __future__ import annotations

import math

import numpy as np
import scipy
from scipy.sparse import csr_array

from anonflow.algorithms.diversity.target import Targets
from anonflow.release import draws_of_graph

CONFIDENCE = 0.95
"""Of bounds of the refusal rate, each on one side."""

_CELLS = 1 << 22
"""Counts held at a time."""


def draws_for(risk: float) -> int:
    """Return how many draws show that the chance of a failure is below `risk`, if none of them fails."""
    return math.ceil(math.log(1 - CONFIDENCE) / math.log1p(-risk))


def refusal_at_most(failed: int, draws: int) -> float:
    """Return the upper bound of the chance of a failure, after so many failures in so many independent draws.

    Notes
    -----
    Clopper and Pearson, Biometrika 26, 1934, on one side.
    """
    if failed >= draws:
        return 1.0
    return float(scipy.special.betaincinv(failed + 1, draws - failed, CONFIDENCE))


def refusal_at_least(failed: int, draws: int) -> float:
    """Return the lower bound; see :func:`refusal_at_most`."""
    if failed <= 0:
        return 0.0
    return float(scipy.special.betaincinv(failed, draws - failed + 1, 1 - CONFIDENCE))


def throwaway_draws(
    matches: np.ndarray, values: np.ndarray, targets: Targets, draws: int, secret: bytes
) -> tuple[np.ndarray, np.ndarray]:
    """Draw many times from a graph, and count for which records the criterion fails.

    Parameters
    ----------
    matches : numpy.ndarray, shape (P, w), int32
        ``matches[j]`` lists the originals of generalized record j, padded with -1.
    values : numpy.ndarray, shape (P, c), int64
        Each original's value in every column, numbered as in `targets`.
    targets : Targets
    draws : int
    secret : bytes
        At least 16; of these draws alone, never of the one that is published.

    Returns
    -------
    failed : numpy.ndarray, shape (draws,), bool
        Draws in which some original fails.
    often : numpy.ndarray, shape (P,), int64
        In how many draws each original fails. O(draws P w V) time, 32 MB beside the draws.
    """
    n, width = matches.shape
    failed = np.zeros(draws, bool)
    often = np.zeros(n, np.int64)
    if not n:
        return failed, often
    listed = matches >= 0
    rows = np.nonzero(listed)[0]
    shows = csr_array((np.ones(len(rows), np.int32), (matches[listed], rows)), shape=(n, n))
    block = max(1, _CELLS // (n * max(targets.size, width)))
    start = 0
    for drawn in draws_of_graph(matches, draws, secret, block):
        copies = len(drawn)
        on_row = np.zeros((n, copies, targets.size), np.int32)  # which values each row shows in each draw
        np.put_along_axis(on_row, values[drawn].transpose(1, 0, 2), 1, 2)
        counts = shows @ on_row.reshape(n, copies * targets.size)
        lacking = targets.gaps(counts.reshape(n * copies, targets.size)) > 0
        by_original = lacking.reshape(n, copies)
        failed[start : start + copies] = by_original.any(axis=0)
        often += by_original.sum(axis=1)
        start += copies
    return failed, often
