"""Lower the sum of squares within classes: records move, or two change places, between near classes."""

from __future__ import annotations

from typing import Any

import numpy as np

NEAR = 8
"""Classes near a record to which it may go."""

CHUNK = 1 << 20
"""Pairs of a record and a class that are compared at a time."""

SMALL = 1e-12
"""Share of the squares in all that a change must gain: smaller ones may be rounding."""


class _Means:
    """Means, sizes and members of classes, and squared distances to their means.

    A code is a point of its own, the root of half its weight away from the origin: two different ones are the weight apart, squared.
    """

    def __init__(self, points: np.ndarray, codes: np.ndarray, weight: np.ndarray, labels: np.ndarray) -> None:
        self.points, self.codes, self.weight, self.labels = points, codes, weight, labels
        self.size = np.bincount(labels)
        self.members = np.argsort(labels, kind="stable")
        self.start = np.cumsum(self.size) - self.size
        count = len(self.size)
        self.mean = [np.bincount(labels, column, count) / self.size for column in points.T]
        self.values = [int(column.max(initial=0)) + 1 for column in codes.T]
        self.keys, self.share, self.spread = [], [], []
        for column, values in zip(codes.T, self.values, strict=True):
            keys, occurs = np.unique(labels * values + column, return_counts=True)
            share = occurs / self.size[keys // values]
            self.keys.append(keys)
            self.share.append(share)
            self.spread.append(1.0 + np.bincount(keys // values, share**2, count))

    def away(self, i: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the squared distance of each record i from the mean of class c; the arrays broadcast."""
        total = np.zeros(np.broadcast(i, c).shape)
        for column, mean in zip(self.points.T, self.mean, strict=True):
            total += (column[i] - mean[c]) ** 2
        for at, column in enumerate(self.codes.T):
            key = c * self.values[at] + column[i]
            place = np.minimum(np.searchsorted(self.keys[at], key), len(self.keys[at]) - 1)
            share = np.where(self.keys[at][place] == key, self.share[at][place], 0.0)
            total += self.weight[at] / 2 * (self.spread[at][c] - 2 * share)
        return total

    def apart(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Return the squared distance of each record i from record j; the arrays broadcast."""
        total = np.zeros(np.broadcast(i, j).shape)
        for column in self.points.T:
            total += (column[i] - column[j]) ** 2
        for column, weight in zip(self.codes.T, self.weight, strict=True):
            total += weight * (column[i] != column[j])
        return total

    def lost(self, rows: list[int]) -> float:
        """Return the sum of squares of these records around their mean."""
        points, codes = self.points[rows], self.codes[rows]
        total = float(((points - points.mean(axis=0)) ** 2).sum())
        for column, weight in zip(codes.T, self.weight.tolist(), strict=True):
            total += weight / 2 * (len(rows) - float((np.bincount(column) ** 2).sum()) / len(rows))
        return total

    def near(self, rows: np.ndarray) -> np.ndarray:
        """Return the classes nearest to each record but its own, ascending: shape (rows, up to `NEAR`)."""
        count = len(self.size)
        few = min(NEAR, count - 1)
        near = np.empty((len(rows), few), np.int64)
        step = max(1, CHUNK // count)
        for first in range(0, len(rows), step):
            batch = rows[first : first + step]
            away = self.away(batch[:, None], np.arange(count))
            away[np.arange(len(batch)), self.labels[batch]] = np.inf
            # the lowest of equal distances, whatever a partition leaves
            near[first : first + step] = np.sort(np.argsort(away, axis=1, kind="stable")[:, :few], axis=1)
        return near


def exchange_for_squares(
    points: np.ndarray, codes: np.ndarray, weight: np.ndarray, labels: np.ndarray, k: int
) -> tuple[np.ndarray, dict[str, Any]]:
    """Return classes of k to 2k - 1 records whose sum of squares no exchange lowers: a record moves to a near class, or two change places.

    Parameters
    ----------
    points : numpy.ndarray, shape (n, m), float64
    codes : numpy.ndarray, shape (n, c), int64
        At least 0.
    weight : numpy.ndarray, shape (c,), float64
        What two different codes add to a squared distance.
    labels : numpy.ndarray, shape (n,), int64
        Classes of k to 2k - 1 records, or one of all.
    k : int
        At least 2.

    Returns
    -------
    labels : numpy.ndarray, shape (n,), int64
        From 0.
    facts : dict
        The number of classes (`found`) and of `exchanges`.

    Notes
    -----
    Each round finds the best exchange of every record with the classes near it, and makes them in the order of their gains, each if it
    still lowers the sum of squares. After a round only records of changed classes, and of those near them, are compared again.
    Equal gains: the record of lowest position. O(n C (m + c) + n k (m + c)) time for a round of C classes, O(n (m + c)) memory.
    """
    labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    facts: dict[str, Any] = {"found": int(labels.max(initial=-1)) + 1, "exchanges": 0}
    if facts["found"] < 2:
        return labels, facts
    n = len(labels)
    whole = _Means(points, codes, weight, np.zeros(n, np.int64))
    least = SMALL * float(whole.away(np.arange(n), np.zeros(n, np.int64)).sum())
    classes = _Means(points, codes, weight, labels)
    inside = [np.flatnonzero(labels == c).tolist() for c in range(facts["found"])]
    near = classes.near(np.arange(n))
    stale = np.zeros(n, bool)
    changed = np.ones(facts["found"], bool)
    while True:
        rows = np.flatnonzero(changed[labels] | changed[near].any(axis=1))
        gain, into, other = _best(classes, near[rows], rows, k)
        changed[:] = False
        better = np.flatnonzero(gain > least)
        for at in better[np.argsort(-gain[better], kind="stable")].tolist():
            i, j, c = int(rows[at]), int(other[at]), int(into[at])
            home = int(labels[i])
            if home == c or (j >= 0 and labels[j] != c):
                continue  # one of them has moved in this round
            before = inside[home], inside[c]
            after = [*before[0], j] if j >= 0 else before[0].copy(), [*before[1], i]
            after[0].remove(i)
            if j >= 0:
                after[1].remove(j)
            if len(after[0]) < k or len(after[1]) >= 2 * k:
                continue
            if sum(map(classes.lost, before)) - sum(map(classes.lost, after)) <= least:
                continue
            inside[home], inside[c] = after
            changed[[home, c]] = True
            labels[after[0]], labels[after[1]] = home, c
            facts["exchanges"] += 1
        if changed.any():
            classes = _Means(points, codes, weight, labels)
            moved = changed[labels]
            near[moved] = classes.near(np.flatnonzero(moved))
            stale |= ~moved
            continue
        if not stale.any():
            return labels, facts
        near = classes.near(np.arange(n))
        stale[:] = False
        changed[:] = True


def _best(
    classes: _Means, near: np.ndarray, rows: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what each record gains at most, the class into which it goes, and the record that comes back, -1 for none."""
    size, home = classes.size, classes.labels[rows]
    home_distance = classes.away(rows, home)
    target_distance = classes.away(rows[:, None], near)
    a, b = size[home][:, None], size[near]
    # leaving a class of a saves a / (a - 1) squares of the distance, joining one of b costs b / (b + 1) (Hartigan)
    with np.errstate(divide="ignore", invalid="ignore"):
        move = a / (a - 1) * home_distance[:, None] - b / (b + 1) * target_distance
    # also where a record is alone, and was divided by 0
    move = np.where((a > k) & (b < 2 * k - 1), move, -np.inf)
    at = np.argmax(move, axis=1)
    ever = np.arange(len(rows))
    gain, into, other = move[ever, at], near[ever, at], np.full(len(rows), -1)
    for slot in range(int(size.max())):
        for c in range(near.shape[1]):
            target = near[:, c]
            partners = np.flatnonzero(slot < size[target])
            i, j, t = (
                rows[partners],
                classes.members[classes.start[target[partners]] + slot],
                target[partners],
            )
            saved = (
                home_distance[partners]
                - classes.away(j, home[partners])
                + classes.away(j, t)
                - target_distance[partners, c]
                + classes.apart(i, j) * (1 / size[home[partners]] + 1 / size[t])
            )
            better = saved > gain[partners]
            partners = partners[better]
            gain[partners], into[partners], other[partners] = saved[better], target[partners], j[better]
    return gain, into, other
