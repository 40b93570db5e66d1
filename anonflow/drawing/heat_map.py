"""A grid of shares, before and after, as one picture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import escape

from anonflow.drawing.fragments import Fragment
from anonflow.drawing.plots import BLUE, svg

__all__ = ["heat_map"]

_CELL = 46
_LABEL = 150


def heat_map(labels: Sequence[str], before: np.ndarray, after: np.ndarray, title: str) -> Fragment:
    """Two symmetric matrices in one grid: `before` below the diagonal, `after` above it.

    Parameters
    ----------
    labels : sequence of str, length c
    before, after : numpy.ndarray, shape (c, c), float64
        Between 0 and 1: the darker, the stronger.
    title : str

    Returns
    -------
    Fragment
        An SVG with the numbers in its cells, two decimals.
    """
    c = len(labels)
    names = [str(label) if len(str(label)) <= 18 else f"{str(label)[:17]}…" for label in labels]
    inside = []
    for a in range(c):
        y = _LABEL - 60 + a * _CELL
        inside.append(
            f'<text x="{_LABEL - 8}" y="{y + _CELL / 2 + 4:.0f}" text-anchor="end">{escape(names[a])}</text>'
            f'<text transform="translate({_LABEL + a * _CELL + _CELL / 2 + 4:.0f},{_LABEL - 68}) rotate(-60)">{escape(names[a])}</text>'
        )
        for b in range(c):
            x = _LABEL + b * _CELL
            if a == b:
                inside.append(
                    f'<rect x="{x}" y="{y}" width="{_CELL - 2}" height="{_CELL - 2}" fill="currentColor" fill-opacity=".08"/>'
                )
                continue
            value = float(before[a, b] if a > b else after[a, b])
            side = "in the originals" if a > b else "in the release"
            inside.append(
                f'<rect x="{x}" y="{y}" width="{_CELL - 2}" height="{_CELL - 2}" fill="{BLUE}" fill-opacity="{0.06 + 0.74 * min(1.0, value):.2f}">'
                f"<title>{escape(labels[a])} and {escape(labels[b])}, {side}: {value:.2f}</title></rect>"
                f'<text x="{x + _CELL / 2 - 1:.0f}" y="{y + _CELL / 2 + 4:.0f}" text-anchor="middle" font-size="12">{value:.2f}</text>'
            )
    return svg(_LABEL + c * _CELL + 90, _LABEL - 60 + c * _CELL + 4, title, inside)
