"""Pictures that compare numbers: shaded tables, pairs of bars, and rates with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from markupsafe import Markup

from anonflow.drawing.fragments import shortened
from anonflow.drawing.plots import BLUE, ORANGE, WIDTH, label, svg, ticks

_WIDE_LABEL = 250

_LETTER = 8
"""Pixels of a letter of a label: an upper bound of the average."""

_PAIR_LETTERS = 28
"""Of a label beside pairs of bars."""

_PAIR = 520
"""Width of the picture of pairs of bars: narrow, because it stands beside others and must not be scaled down."""


def heat(
    columns: Sequence[str],
    rows: Sequence[str],
    values: Sequence[Sequence[float | None]],
    darkest: float = 1.0,
) -> Markup:
    """Return a table of shares between 0 and 1, each printed as a number and shaded by its size.

    Parameters
    ----------
    columns, rows : sequence of str
    values : sequence of sequences, a row each
        None leaves the cell empty.
    darkest : float
        The share with the darkest shade.
    """
    head = Markup("").join(
        Markup('<th scope="col">{}</th>').format(shortened(column, 24)) for column in columns
    )
    body = []
    for name, line in zip(rows, values, strict=True):
        cells = Markup("").join(_shaded(value, darkest) for value in line)
        body.append(Markup('<tr><th scope="row">{}</th>{}</tr>').format(shortened(name, 40), cells))
    return Markup(
        '<div class="scroll goes-on" tabindex="0" role="region" aria-label="Shaded table, may be wider than the page">'
        '<table class="heat"><thead><tr><td></td>{}</tr></thead><tbody>{}</tbody></table></div>'
    ).format(head, Markup("").join(body))


def _shaded(value: float | None, darkest: float) -> Markup:
    if value is None:
        return Markup("<td>–</td>")
    share = min(1.0, max(0.0, value) / (darkest or 1.0))
    # mixed with the page's colour, so that dark text is readable on a light page, and light text on a dark one
    return Markup('<td style="background:color-mix(in srgb, {} {}%, transparent)">{}</td>').format(
        BLUE, f"{62 * share:.0f}", f"{100 * value:.1f}%"
    )


def pairs(
    labels: Sequence[str],
    first: Sequence[float],
    second: Sequence[float],
    names: tuple[str, str],
    title: str,
) -> Markup:
    """Return two horizontal bars for each label, for shares between 0 and 1; the second ones are hatched."""
    left = 16 + _LETTER * min(_PAIR_LETTERS, max(map(len, labels), default=0))
    room = _PAIR - left - 66
    inside = [
        f'<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        f'<rect width="6" height="6" fill="{ORANGE}"/><path d="M0 0V6" stroke="#fff" stroke-opacity=".55" stroke-width="2"/>'
        "</pattern></defs>"
    ]
    for at, (name, fill) in enumerate(zip(names, (BLUE, "url(#hatch)"), strict=True)):
        inside.append(
            f'<rect x="2" y="{2 + 18 * at}" width="13" height="13" rx="2" fill="{fill}"/>'
            f'<text x="21" y="{13 + 18 * at}">{escape(shortened(name, 60))}</text>'
        )
    for i, (column, a, b) in enumerate(zip(labels, first, second, strict=True)):
        y = 46 + i * 40
        inside.append(label(column, _PAIR_LETTERS, f'x="{left - 10}" y="{y + 19}" text-anchor="end"'))
        for at, (share, fill) in enumerate(((a, BLUE), (b, "url(#hatch)"))):
            top = y + at * 15
            inside.append(
                f'<rect fill-opacity=".1" x="{left}" y="{top}" width="{room}" height="13" rx="2"/>'
                f'<rect fill="{fill}" x="{left}" y="{top}" width="{room * min(1.0, share):.1f}" height="13" rx="2"/>'
                f'<text x="{left + room + 8}" y="{top + 11}" font-size="12">{100 * share:.1f}%</text>'
            )
    return svg(_PAIR, 50 + 40 * len(labels), title, inside)


def intervals(rows: Sequence[tuple[str, float, float, float, float]], title: str) -> Markup:
    """Return rates with their intervals, and beside each rate the bound that it must not exceed.

    Parameters
    ----------
    rows : sequence of (str, float, float, float, float)
        Name, rate, low, high, and the bound; the numbers are between 0 and 1, on one axis.
    title : str
    """
    room = WIDTH - _WIDE_LABEL - 80
    most = min(1.0, 1.15 * max((max(high, base) for _, _, _, high, base in rows), default=1.0)) or 1.0
    inside = []

    def at(value: float) -> float:
        return _WIDE_LABEL + room * min(1.0, value / most)

    foot = 30 + 34 * len(rows)
    for value in ticks(0.0, most):
        inside.append(
            f'<path d="M{at(value):.1f} 22V{foot}" stroke="currentColor" stroke-opacity=".15"/>'
            f'<text x="{at(value):.1f}" y="14" text-anchor="middle" font-size="12" fill-opacity=".7">{100 * value:.3g}%</text>'
        )
    for i, (name, rate, low, high, base) in enumerate(rows):
        y = 42 + 34 * i
        inside.append(
            label(name, 32, f'x="{_WIDE_LABEL - 12}" y="{y + 5}" text-anchor="end"')
            + f'<path d="M{at(low):.1f} {y}H{at(high):.1f}M{at(low):.1f} {y - 5}v10M{at(high):.1f} {y - 5}v10" '
            f'stroke="{BLUE}" stroke-width="2" fill="none"/>'
            f'<circle cx="{at(rate):.1f}" cy="{y}" r="5.5" fill="{BLUE}"/>'
            f'<path d="M{at(base):.1f} {y - 11}v22" stroke="{ORANGE}" stroke-width="3"/>'
            f'<text x="{at(max(high, base)) + 9:.1f}" y="{y + 5}">{100 * rate:.3g}%</text>'
        )
    return svg(WIDTH, foot + 8, title, inside)
