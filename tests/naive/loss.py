"""Information loss straight from the table of definitions, cell by cell, over sets of codes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np


@dataclass
class Attribute:
    """A quasi-identifier: `shape` is numeric, tree or set; a tree is its nodes as (first, last, height).

    Of a coded one, code -1 is no number, and adds nothing to a range.
    """

    shape: str
    size: int
    points: Sequence[float]
    counts: Sequence[int]
    weight: float = 1.0
    nodes: Sequence[tuple[int, int, int]] = ()
    coded: bool = False


def closure(attribute: Attribute, codes: set[int]) -> set[int]:
    """What is published for some codes, as the codes it covers."""
    if not codes:
        return codes
    low, high = min(codes), max(codes)
    if attribute.shape == "numeric":
        return set(range(low, high + 1))
    if attribute.shape == "tree":
        around = [
            (last - first, first, last) for first, last, _ in attribute.nodes if first <= low and last >= high
        ]
        _, first, last = min(around)
        return set(range(first, last + 1))
    return set(codes)


def cell_cost(attribute: Attribute, codes: set[int], measure: str) -> float | Fraction:
    """The cost of a closed cell; a Fraction where the definition gives one."""
    size, shape, count = attribute.size, attribute.shape, len(codes)
    if size <= 1 or not codes:
        return Fraction(0)
    if measure == "suppressions":
        return Fraction(int(count == size))
    if measure == "entropy":
        occurrences = [attribute.counts[code] for code in sorted(codes) if attribute.counts[code]]
        total = sum(occurrences)
        return -math.fsum(c / total * math.log2(c / total) for c in occurrences) if total else 0.0
    if shape == "numeric" and measure in ("ncp", "height"):
        points = [Fraction(float(attribute.points[code])) for code in range(size)]
        return (points[max(codes)] - points[min(codes)]) / (points[-1] - points[0])
    if measure == "height" and shape == "set":
        return Fraction(int(count > 1))
    if measure == "height" and shape == "tree":
        low, high = min(codes), max(codes)
        top = max(height for _, _, height in attribute.nodes)
        if count == size:
            return Fraction(1)
        return Fraction(min(h for first, last, h in attribute.nodes if (first, last) == (low, high)), top)
    if measure not in ("ncp", "lm"):
        raise LookupError(f"{measure} has no naive reference: write its definition into {__name__}.cell_cost")
    return Fraction(count - 1, size - 1)


def record_cost(attributes: Sequence[Attribute], cells: Sequence[set[int]], measure: str) -> float | Fraction:
    """The weighted mean of a record's cells."""
    weights = [Fraction(attribute.weight) for attribute in attributes]
    costs = [cell_cost(a, closure(a, cell), measure) for a, cell in zip(attributes, cells, strict=True)]
    if measure == "entropy":
        return float(sum(float(w) * c for w, c in zip(weights, costs, strict=True)) / float(sum(weights)))
    return sum(w * c for w, c in zip(weights, costs, strict=True)) / sum(weights)


def join_cost(
    attributes: Sequence[Attribute], codes: np.ndarray, rows: Sequence[int], measure: str
) -> float | Fraction:
    """The cost of the record that covers some originals; code -1 is the whole domain."""
    cells = []
    for a, attribute in enumerate(attributes):
        members = {int(codes[row, a]) for row in rows}
        if attribute.coded:
            members -= {-1}
        cells.append(set(range(attribute.size)) if -1 in members else members)
    return record_cost(attributes, cells, measure)
