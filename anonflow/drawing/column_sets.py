"""A picture of sets of columns: dots for the columns of a set, and a bar for the records that are unique on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from anonflow.drawing.fragments import Fragment, shortened
from anonflow.drawing.plots import BLUE, SKY, svg

_STEP, _ROW, _BAR = 24, 25, 270
_LETTER = 7.6
"""Pixels of a letter, at most."""


def column_sets(
    columns: Sequence[str],
    rows: Sequence[tuple[Sequence[int], float, float, str]],
    title: str,
) -> Fragment:
    """Return rows of dots with bars, in the form of UpSet (Lex and others 2014).

    Parameters
    ----------
    columns : sequence of str
    rows : sequence of (members, share, part, text)
        Positions in `columns`; the lengths of the bar and of its dark part, both between 0 and 1; and the text beside it.
    title : str
    """
    matrix = 12 + _STEP * len(columns)
    left = matrix + 12
    names = [shortened(name, 16) for name in columns]
    # names are slanted by 58 degrees, and texts stand beside the bars: leave room for the longest of both
    head = math.ceil(22 + _LETTER * math.sin(math.radians(58)) * max(map(len, names), default=0))
    texts = math.ceil(18 + _LETTER * max((len(text) for *_, text in rows), default=0))
    width, foot = left + _BAR + texts, head + _ROW * len(rows)
    inside = []
    for at, name in enumerate(names):
        x = 12 + _STEP * at + _STEP / 2
        inside.append(
            f'<text transform="translate({x + 4:.0f} {head - 8}) rotate(-58)">{escape(name)}</text>'
        )
    most = max((share for _, share, _, _ in rows), default=0.0) or 1.0
    for number, (members, share, part, text) in enumerate(rows):
        y = head + _ROW * number + _ROW / 2
        if number % 2 == 0:
            inside.append(
                f'<rect x="0" y="{y - _ROW / 2:.1f}" width="{width}" height="{_ROW}" fill-opacity=".045"/>'
            )
        xs = [12 + _STEP * at + _STEP / 2 for at in range(len(columns))]
        inside += [
            f'<circle cx="{x:.0f}" cy="{y:.1f}" r="3" fill-opacity=".16"/>'
            for at, x in enumerate(xs)
            if at not in members
        ]
        chosen = sorted(members)
        if len(chosen) > 1:
            inside.append(
                f'<path d="M{xs[chosen[0]]:.0f} {y:.1f}H{xs[chosen[-1]]:.0f}" stroke="currentColor" stroke-width="2.5"/>'
            )
        inside += [f'<circle cx="{xs[at]:.0f}" cy="{y:.1f}" r="6"/>' for at in chosen]
        members_named = escape(", ".join(columns[at] for at in chosen))
        inside.append(
            f"<g><title>{members_named}: {escape(text)}</title>"
            f'<rect x="{left}" y="{y - 8:.1f}" width="{_BAR}" height="16" rx="2" fill-opacity=".08"/>'
            f'<rect x="{left}" y="{y - 8:.1f}" width="{_BAR * share / most:.1f}" height="16" rx="2" fill="{SKY}"/>'
            f'<rect x="{left}" y="{y - 8:.1f}" width="{_BAR * part / most:.1f}" height="16" rx="2" fill="{BLUE}"/></g>'
            f'<text x="{left + _BAR + 10}" y="{y + 4.5:.1f}">{escape(text)}</text>'
        )
    return svg(width, foot + 4, title, inside)
