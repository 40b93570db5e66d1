"""Maximum distance to average vector: clusters of k records around those that are furthest from the average."""

from __future__ import annotations

import numpy as np

from anonflow.kernels.jit import jit


def _distances(
    points: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    left: np.ndarray,
    count: int,
    point: np.ndarray,
    code: np.ndarray,
    out: np.ndarray,
) -> None:
    """Compute squared distances of some records to a point: squared differences of numbers, and a constant for each different code."""
    for place in range(count):
        i = left[place]
        total = 0.0
        for a in range(points.shape[1]):
            away = points[i, a] - point[a]
            total += away * away
        for a in range(codes.shape[1]):
            if codes[i, a] != code[a]:
                total += weight[a]
        out[place] = total


_distances_jit = jit(_distances, borrows=True)


def _average(
    points: np.ndarray,
    codes: np.ndarray,
    left: np.ndarray,
    count: int,
    seen: np.ndarray,
    point: np.ndarray,
    code: np.ndarray,
) -> None:
    """Compute the average of some records: the mean of numbers, the most frequent code, of equally frequent ones the lowest."""
    for a in range(points.shape[1]):
        total = 0.0
        for place in range(count):
            total += points[left[place], a]
        point[a] = total / count
    for a in range(codes.shape[1]):
        for place in range(count):
            seen[codes[left[place], a]] += 1
        best = codes[left[0], a]
        for place in range(count):
            record_code = codes[left[place], a]
            if seen[record_code] > seen[best] or (seen[record_code] == seen[best] and record_code < best):
                best = record_code
        code[a] = best
        for place in range(count):
            seen[codes[left[place], a]] = 0


_average_jit = jit(_average, borrows=True)


def _furthest(away: np.ndarray, count: int) -> int:
    """Return the position of the greatest distance, the first of ties."""
    best = 0
    for place in range(1, count):
        if away[place] > away[best]:
            best = place
    return best


_furthest_jit = jit(_furthest, borrows=True)


def _leave(
    left: np.ndarray,
    count: int,
    away: np.ndarray,
    k: int,
    nearest: np.ndarray,
    labels: np.ndarray,
    cluster: int,
) -> int:
    """Make the k nearest records a cluster and move the others together. The first of equally near records come first."""
    filled = 0
    for place in range(count):
        # most records end here: few are nearer than the k-th so far
        if filled == k and away[place] >= away[nearest[k - 1]]:
            continue
        at = filled if filled < k else k - 1
        while at > 0 and away[nearest[at - 1]] > away[place]:
            nearest[at] = nearest[at - 1]
            at -= 1
        nearest[at] = place
        filled += filled < k
    for at in range(k):
        labels[left[nearest[at]]] = cluster
    rest = 0
    for place in range(count):
        if labels[left[place]] < 0:
            left[rest] = left[place]
            rest += 1
    return rest


_leave_jit = jit(_leave, borrows=True)


def mdav_clusters(
    points: np.ndarray, codes: np.ndarray, weight: np.ndarray, values: int, k: int, labels: np.ndarray
) -> int:
    """Cluster records by maximum distance to the average vector.

    Parameters
    ----------
    points : numpy.ndarray, shape (n, m), float64, C-contiguous
        Numbers, in units in which their squared differences add up.
    codes : numpy.ndarray, shape (n, c), int64, C-contiguous
        Not negative.
    weight : numpy.ndarray, shape (c,), float64
        How much two different codes add to a squared distance.
    values : int
        More than the largest code.
    k : int
        At least 1, at most n.
    labels : numpy.ndarray, shape (n,), int64
        Written: the cluster of each record, from 0.

    Returns
    -------
    int
        Number of clusters. O(n^2 (m + c) / k) time for small k, O(n + values) memory.
    """
    n = len(labels)
    labels[:] = -1
    left = np.arange(n)
    away = np.empty(n)
    nearest = np.empty(k, np.int64)
    seen = np.zeros(values, np.int64)
    point = np.empty(points.shape[1])
    code = np.empty(codes.shape[1], np.int64)
    count, clusters = n, 0
    while count >= 2 * k:
        _average_jit(points, codes, left, count, seen, point, code)
        _distances_jit(points, codes, weight, left, count, point, code, away)
        far = left[_furthest_jit(away, count)]
        _distances_jit(points, codes, weight, left, count, points[far], codes[far], away)
        # of fewer than 3k records one cluster leaves fewer than 2k, which are the last one
        last = count < 3 * k
        # before the cluster leaves, while `away` and `left` still agree
        opposite = left[_furthest_jit(away, count)]
        count = _leave_jit(left, count, away, k, nearest, labels, clusters)
        clusters += 1
        if last:
            break
        if labels[opposite] >= 0:  # all that are left are equally far from the first centre
            opposite = left[0]
        _distances_jit(points, codes, weight, left, count, points[opposite], codes[opposite], away)
        count = _leave_jit(left, count, away, k, nearest, labels, clusters)
        clusters += 1
    if count:
        for place in range(count):
            labels[left[place]] = clusters
        clusters += 1
    return clusters


mdav_clusters_jit = jit(mdav_clusters)
