"""Distributions of cells, one record at a time: each cell is spread evenly over what it may stand for."""

from __future__ import annotations

import itertools
from collections.abc import Sequence


def over_members(cells: Sequence[Sequence[int]], size: int) -> list[float]:
    """Each cell is a list of codes; the share of all cells that every code gets."""
    shares = [0.0] * size
    for members in cells:
        for code in members:
            shares[code] += 1 / len(members) / len(cells)
    return shares


def over_widths(cells: Sequence[tuple[float, float]], edges: Sequence[float]) -> list[float]:
    """Each cell is an interval of numbers; bins are half open, the last one is closed."""
    shares = [0.0] * (len(edges) - 1)
    for low, high in cells:
        for b, (first, last) in enumerate(itertools.pairwise(edges)):
            if low == high:
                inside = first <= low < last or (b == len(shares) - 1 and low == last)
                part = 1.0 if inside else 0.0
            else:
                part = max(0.0, min(high, last) - max(low, first)) / (high - low)
            shares[b] += part / len(cells)
    return shares
