"""Plots as inline SVG: numbers and column names in, escaped text out."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["bars", "columns", "scatter", "stacked"]

WIDTH = 760
_ROW = 26
_MOST = 60
"""More bars than this are summed up, so that a histogram stays readable."""


def _label_width(labels: Sequence[str]) -> int:
    return min(240, 16 + max((len(_short(label)) for label in labels), default=0) * 8)


def _short(label: str) -> str:
    return label if len(label) <= 28 else label[:27] + "…"


def _svg(height: float, title: str, inside: list[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(inside)}</svg>"
    )


def bars(labels: Sequence[str], shares: Sequence[float], title: str) -> str:
    """Horizontal bars for shares between 0 and 1.

    Raises
    ------
    None
    """
    left = _label_width(labels)
    room = WIDTH - left - 70
    inside = []
    for i, (label, share) in enumerate(zip(labels, shares, strict=True)):
        y = i * _ROW
        inside.append(
            f'<text x="{left - 10}" y="{y + 17}" text-anchor="end">{escape(_short(label))}</text>'
            f'<rect class="track" x="{left}" y="{y + 4}" width="{room}" height="17" rx="2"/>'
            f'<rect class="a" x="{left}" y="{y + 4}" width="{room * min(1.0, share):.1f}" height="17" rx="2"/>'
            f'<text x="{left + room + 8}" y="{y + 17}">{100 * share:.1f} %</text>'
        )
    return _svg(max(1, len(labels)) * _ROW, title, inside)


def stacked(labels: Sequence[str], shares: Sequence[tuple[float, float, float]], title: str) -> str:
    """Horizontal bars, each of three parts that add up to 1.

    Raises
    ------
    None
    """
    left = _label_width(labels)
    room = WIDTH - left - 10
    inside = []
    for i, (label, parts) in enumerate(zip(labels, shares, strict=True)):
        y, x = i * _ROW, float(left)
        inside.append(f'<text x="{left - 10}" y="{y + 17}" text-anchor="end">{escape(_short(label))}</text>')
        for name, share in zip("abc", parts, strict=True):
            width = room * share
            inside.append(
                f'<rect class="{name}" x="{x:.1f}" y="{y + 4}" width="{max(0.0, width):.1f}" height="17">'
                f"<title>{100 * share:.1f} %</title></rect>"
            )
            x += width
    return _svg(max(1, len(labels)) * _ROW, title, inside)


def columns(counts: Sequence[tuple[int, int]], title: str, unit: str) -> str:
    """A histogram: upright bars for (value, count).

    Raises
    ------
    None
    """
    binned = _binned(counts)
    height, top, bottom, left = 220, 12, 40, 64
    most = max((count for _, count in binned), default=1) or 1
    step = (WIDTH - left - 10) / max(1, len(binned))
    inside = [
        f'<line class="axis" x1="{left}" y1="{height - bottom}" x2="{WIDTH - 10}" y2="{height - bottom}"/>',
        f'<text class="soft" x="{left - 8}" y="{top + 10}" text-anchor="end">{most:,}</text>',
        f'<text class="soft" x="{left - 8}" y="{height - bottom}" text-anchor="end">0</text>',
        f'<text class="soft" x="{(left + WIDTH) / 2:.0f}" y="{height - 4}" text-anchor="middle">{escape(unit)}</text>',
    ]
    every = max(1, len(binned) // 12)
    for i, (label, count) in enumerate(binned):
        tall = (height - top - bottom) * count / most
        x = left + i * step
        wide = min(step * 0.86, 60)
        inside.append(
            f'<rect class="a" x="{x + (step - wide) / 2:.1f}" y="{height - bottom - tall:.1f}" '
            f'width="{wide:.1f}" height="{tall:.1f}"><title>{escape(label)}: {count:,}</title></rect>'
        )
        if i % every == 0:
            inside.append(
                f'<text class="soft" x="{x + step / 2:.1f}" y="{height - bottom + 17}" text-anchor="middle">{escape(label)}</text>'
            )
    return _svg(height, title, inside)


def _binned(counts: Sequence[tuple[int, int]]) -> list[tuple[str, int]]:
    if len(counts) <= _MOST:
        return [(str(value), count) for value, count in counts]
    low, high = counts[0][0], counts[-1][0]
    width = -(-(high - low + 1) // _MOST)
    found: dict[int, int] = {}
    for value, count in counts:
        found[(value - low) // width] = found.get((value - low) // width, 0) + count
    return [
        (f"{low + at * width}–{low + (at + 1) * width - 1}", count) for at, count in sorted(found.items())
    ]


def scatter(points: Sequence[tuple[str, float, float]], title: str, across: str, up: str) -> str:
    """Labelled points, both axes from 0.

    Raises
    ------
    None
    """
    height, top, bottom, left, right = 330, 14, 44, 64, 150
    wide = max((x for _, x, _ in points), default=1.0) * 1.05 or 1.0
    tall = max((y for _, _, y in points), default=1.0) * 1.08 or 1.0
    inside = [
        f'<line class="axis" x1="{left}" y1="{height - bottom}" x2="{WIDTH - right}" y2="{height - bottom}"/>',
        f'<line class="axis" x1="{left}" y1="{top}" x2="{left}" y2="{height - bottom}"/>',
        f'<text class="soft" x="{(left + WIDTH - right) / 2:.0f}" y="{height - 6}" text-anchor="middle">{escape(across)}</text>',
        f'<text class="soft" x="{left}" y="{top - 3}" text-anchor="middle">{escape(up)}</text>',
        f'<text class="soft" x="{left - 8}" y="{top + 14}" text-anchor="end">{tall:.3g}</text>',
        f'<text class="soft" x="{WIDTH - right}" y="{height - bottom + 17}" text-anchor="middle">{wide:.3g}</text>',
        f'<text class="soft" x="{left - 8}" y="{height - bottom + 4}" text-anchor="end">0</text>',
    ]
    for label, x, y in points:
        px = left + (WIDTH - left - right) * x / wide
        py = height - bottom - (height - top - bottom) * y / tall
        inside.append(
            f'<circle class="a" cx="{px:.1f}" cy="{py:.1f}" r="5"><title>{escape(label)}</title></circle>'
            f'<text x="{px + 9:.1f}" y="{py + 4:.1f}">{escape(_short(label))}</text>'
        )
    return _svg(height, title, inside)
