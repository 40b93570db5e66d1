"""A picture of shares before and after, in one grid."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from markupsafe import escape

from anonflow.drawing.fragments import Fragment, shortened
from anonflow.drawing.plots import BLUE, ORANGE, svg

_CELL = 46
_LABEL = 150
_LETTER = 7.2
"""Pixels of a letter of a name, at most."""


def heat_map(labels: Sequence[str], before: np.ndarray, after: np.ndarray, title: str) -> Fragment:
    """Return two symmetric matrices in one grid: `before` below the diagonal, `after` above it.

    Parameters
    ----------
    labels : sequence of str, length c
    before, after : numpy.ndarray, shape (c, c), float64
        Between 0 and 1; larger shares are darker.
    title : str

    Returns
    -------
    Fragment
        An SVG with the numbers in its cells, two decimals.
    """
    before, after = np.asarray(before), np.asarray(after)
    cells = []
    for a, b in np.ndindex(before.shape):
        if a != b:
            value = float(before[a, b] if a > b else after[a, b])
            side = "in the originals" if a > b else "in the release"
            cells.append((a, b, BLUE, min(1.0, value), f"{value:.2f}", side))
    return _grid(labels, cells, title)


def difference_map(labels: Sequence[str], difference: np.ndarray, title: str) -> Fragment:
    """Return a symmetric matrix of differences, below the diagonal: blue stands for more than before, orange for less.

    Parameters
    ----------
    labels : sequence of str, length c
    difference : numpy.ndarray, shape (c, c), float64
        Between -1 and 1; the largest is the darkest.
    title : str
    """
    difference = np.asarray(difference)
    most = float(np.abs(difference).max(initial=0.0)) or 1.0
    cells = []
    for a, b in np.ndindex(difference.shape):
        if a > b:
            value = round(float(difference[a, b]), 2) + 0.0  # no -0.00
            side = "stronger in the release" if value > 0 else "weaker in the release"
            cells.append((a, b, BLUE if value > 0 else ORANGE, abs(value) / most, f"{value:+.2f}", side))
    return _grid(labels, cells, title)


def _grid(
    labels: Sequence[str], cells: Sequence[tuple[int, int, str, float, str, str]], title: str
) -> Fragment:
    """Return the grid with these cells: row, column, colour, darkness between 0 and 1, number, and description."""
    c = len(labels)
    names = [shortened(str(label), 18) for label in labels]
    # names above the grid are slanted by 60 degrees: leave room for the longest
    head = 22 + _LETTER * math.sin(math.radians(60)) * max(map(len, names), default=0)
    inside = []
    for a in range(c):
        y = head + a * _CELL
        inside.append(
            f'<text x="{_LABEL - 8}" y="{y + _CELL / 2 + 4:.0f}" text-anchor="end">{escape(names[a])}</text>'
            f'<text transform="translate({_LABEL + a * _CELL + _CELL / 2 + 4:.0f},{head - 8:.0f}) rotate(-60)">{escape(names[a])}</text>'
            f'<rect x="{_LABEL + a * _CELL}" y="{y:.0f}" width="{_CELL - 2}" height="{_CELL - 2}" fill="currentColor" fill-opacity=".08"/>'
        )
    for a, b, colour, dark, number, side in cells:
        x, y = _LABEL + b * _CELL, head + a * _CELL
        inside.append(
            f'<rect x="{x}" y="{y:.0f}" width="{_CELL - 2}" height="{_CELL - 2}" fill="{colour}" fill-opacity="{0.06 + 0.74 * dark:.2f}">'
            f"<title>{escape(labels[a])} and {escape(labels[b])}, {side}: {number}</title></rect>"
            f'<text x="{x + _CELL / 2 - 1:.0f}" y="{y + _CELL / 2 + 4:.0f}" text-anchor="middle" font-size="12">{number}</text>'
        )
    return svg(_LABEL + c * _CELL + 90, math.ceil(head + c * _CELL + 4), title, inside)
