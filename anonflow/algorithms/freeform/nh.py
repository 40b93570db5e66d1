"""NH (Wong, Mamoulis and Cheung, SIGMOD 2010): ring generalization inside small parts."""

from __future__ import annotations

import numpy as np

from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.generalization import Generalization
from anonflow.kernels.costs import load
from anonflow.kernels.ring import nearest_rings, nearest_rings_jit
from anonflow.partition import lexicographic_order

__all__ = ["NH", "halves", "nh", "nh_matches"]


def nh(part: Partition, k: int) -> Outcome:
    """Rings of k to 2k - 1 records, each record covering itself and the k - 1 that follow it in its ring.

    Parameters
    ----------
    part : Partition
        P records, P >= k.
    k : int

    Returns
    -------
    Outcome
        With matches. Facts: the number of `rings`.

    Notes
    -----
    The k-regular graph is the fixed motif of the cited work. Its partitioning and ring order are not in our
    sources, so these are ours: records in lexicographic order, quasi-identifiers of few values first, halved
    at the middle while both halves keep k records; in each part a ring by nearest neighbour. A part of
    exactly k records is homogeneous. O(P log P + P k q) time, O(P (q + k)) memory.
    """
    matches, rings = nh_matches(part, k)
    return Outcome.of_matches(part.records, matches, rings=rings)


def nh_matches(part: Partition, k: int, compiled: bool = True) -> tuple[np.ndarray, int]:
    """The matches of :func:`nh`, shape (P, k), int32, and the number of rings.

    Parameters
    ----------
    part : Partition
    k : int
    compiled : bool, optional
        Whether compiled kernels do it; the plain ones give the same.
    """
    own = Generalization.of(part.records)
    origin = load(part.plan, own.lo, own.hi, own.bits, compiled)
    order = lexicographic_order(part.records)
    starts = halves(part.n, k)
    (nearest_rings_jit if compiled else nearest_rings)(part.plan, origin, order, starts)
    sizes = np.diff(starts)
    first = np.repeat(starts[:-1], sizes)
    size = np.repeat(sizes, sizes)
    place = np.arange(part.n) - first
    matches = np.empty((part.n, k), np.int32)
    for d in range(k):
        matches[order, d] = order[first + (place + d) % size]
    return matches, len(sizes)


def halves(n: int, k: int) -> np.ndarray:
    """Where the parts start when ``range(n)`` is halved while both halves keep at least k; the last entry is n.

    Parameters
    ----------
    n, k : int
        ``n >= k``.

    Returns
    -------
    numpy.ndarray, shape (parts + 1,), int64
        Every part has k to 2k - 1 records. O(n / k).
    """
    sizes = np.array([n], np.int64)
    while (large := sizes >= 2 * k).any():
        split = np.stack([np.where(large, sizes // 2, sizes), np.where(large, sizes - sizes // 2, 0)], axis=1)
        sizes = split[split > 0]
    return np.concatenate([[0], np.cumsum(sizes)])


NH = Algorithm(
    name="nh",
    run=nh,
    family="freeform",
    paper="Wong, Mamoulis, Cheung: Non-homogeneous generalization in privacy preserving data publishing. SIGMOD 2010",
    guarantee="k-regular",
    complexity="O(n log n + n k q)",
    summary="a baseline: fast, more loss than greedy",
    colour="#009e73",
    shape="triangle",
)
