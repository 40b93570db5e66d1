"""Microaggregation by maximum distance to average vector, as the paper spells it out."""

from __future__ import annotations

from collections.abc import Sequence


def clusters(rows: Sequence[Sequence[float | str]], k: int, weights: Sequence[float]) -> list[list[int]]:
    """The clusters in the order in which they are made, each with its rows in ascending order.

    Parameters
    ----------
    rows : sequence of sequence of float or str
        Numbers are compared by squared difference, texts by equality.
    k : int
    weights : sequence of float
        What different texts add, by column; of numbers the factor of the squared difference.
    """

    def apart(left: Sequence[float | str], right: Sequence[float | str]) -> float:
        total = 0.0
        for x, y, weight in zip(left, right, weights, strict=True):
            if isinstance(x, str) or isinstance(y, str):
                total += weight * (x != y)
            else:
                total += weight * (x - y) ** 2
        return total

    def average(some: Sequence[int]) -> list[float | str]:
        mean: list[float | str] = []
        for column in range(len(rows[0])):
            cells = [rows[i][column] for i in some]
            texts = [cell for cell in cells if isinstance(cell, str)]
            if texts:
                mean.append(min(set(texts), key=lambda text: (-texts.count(text), text)))
            else:
                mean.append(sum(float(cell) for cell in cells) / len(cells))
        return mean

    def furthest(some: Sequence[int], point: Sequence[float | str]) -> int:
        return max(some, key=lambda i: (apart(rows[i], point), -i))

    def around(some: list[int], centre: int) -> list[int]:
        return sorted(sorted(some, key=lambda i: (apart(rows[i], rows[centre]), i))[:k])

    left, classes = list(range(len(rows))), []
    while len(left) >= 3 * k:
        r = furthest(left, average(left))
        s = furthest(left, rows[r])
        classes.append(around(left, r))
        left = [i for i in left if i not in classes[-1]]
        classes.append(around(left, s if s in left else left[0]))
        left = [i for i in left if i not in classes[-1]]
    if len(left) >= 2 * k:
        classes.append(around(left, furthest(left, average(left))))
        left = [i for i in left if i not in classes[-1]]
    return [*classes, left] if left else classes


def sum_of_squares(
    rows: Sequence[Sequence[float]], labels: Sequence[int], numbers: int, weights: Sequence[float]
) -> float:
    """The squared distances between the members of each class, divided by its size.

    Parameters
    ----------
    rows : sequence of sequence of float
        Numbers first, then codes, which are equal or their weight apart.
    labels : sequence of int
    numbers : int
        Columns of numbers.
    weights : sequence of float
    """
    total = 0.0
    for label in set(labels):
        some = [row for row, own in zip(rows, labels, strict=True) if own == label]
        for left in some:
            for right in some:
                apart = sum((x - y) ** 2 for x, y in zip(left[:numbers], right[:numbers], strict=True))
                codes = zip(left[numbers:], right[numbers:], weights, strict=True)
                total += (apart + sum(weight * (x != y) for x, y, weight in codes)) / (2 * len(some))
    return total


def cheapest_exchange(
    rows: Sequence[Sequence[float]], labels: Sequence[int], k: int, numbers: int, weights: Sequence[float]
) -> float:
    """The least sum of squares after a record moves or two change places, in classes of k to 2k - 1; infinite if none can."""
    least = float("inf")
    for i in range(len(rows)):
        moves = [{i: label} for label in set(labels)]
        swaps = [{i: labels[j], j: labels[i]} for j in range(len(rows))]
        for change in (*moves, *swaps):
            after = [change.get(row, label) for row, label in enumerate(labels)]
            if after == list(labels) or any(not k <= after.count(label) < 2 * k for label in set(labels)):
                continue
            least = min(least, sum_of_squares(rows, after, numbers, weights))
    return least
