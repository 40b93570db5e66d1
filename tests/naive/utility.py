"""Measures of a release by their definitions, row by row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def usefulness(columns: Sequence[Sequence], numeric: Sequence[bool], labels: Sequence[int]) -> float:
    """Loukides and Shao: mean over classes of the sum over attributes of the attribute diversity."""
    classes: dict[int, list[int]] = {}
    for row, label in enumerate(labels):
        classes.setdefault(int(label), []).append(row)
    return usefulness_of_sets(columns, numeric, list(classes.values()))


def usefulness_of_sets(
    columns: Sequence[Sequence], numeric: Sequence[bool], originals: Sequence[Sequence[int]]
) -> float:
    """The same for classes given as the originals that each stands for (repeats count once)."""
    total = 0.0
    for rows in originals:
        for column, is_number in zip(columns, numeric, strict=True):
            values = {column[row] for row in rows}
            if is_number:
                width = max(column) - min(column)
                total += (max(values) - min(values)) / width if width else 0.0
            else:
                total += len(values) / len(set(column))
    return total / len(originals)


def discernibility(labels: Sequence[int], k: int) -> int:
    """Bayardo and Agrawal: size squared for classes of at least k, n times size for smaller ones."""
    sizes = [list(labels).count(label) for label in set(labels)]
    return sum(size * size if size >= k else len(labels) * size for size in sizes)


def covered(boxes: Sequence[Sequence[set]], rows: Sequence[Sequence]) -> int:
    """How many pairs of a generalized record (a set of values for each column) and a row it covers."""
    return sum(
        all(value in cell for value, cell in zip(row, box, strict=True)) for box in boxes for row in rows
    )


def count_estimate(boxes: Sequence[Sequence[set]], request: dict[int, set]) -> float:
    """The expected number of records in a query if each is uniform over the values of its cells."""
    total = 0.0
    for box in boxes:
        share = 1.0
        for column, values in request.items():
            share *= len(box[column] & values) / len(box[column])
        total += share
    return total


def count_exact(rows: Sequence[Sequence], request: dict[int, set]) -> int:
    """How many rows a query has."""
    return sum(all(row[column] in values for column, values in request.items()) for row in rows)


def class_sizes(labels: Sequence[int]) -> np.ndarray:
    """Sizes of the classes, falling."""
    return np.sort(np.unique(labels, return_counts=True)[1])[::-1]
