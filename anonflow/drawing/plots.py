"""Plots as inline SVG, from numbers and names of columns, which are escaped."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from anonflow.drawing.fragments import Fragment, shortened

WIDTH = 760
BLUE, SKY, ORANGE = "#2a7fb8", "#7fb8de", "#d9731a"
COLOURS = ("#2a7fb8", "#d9731a", "#009e73", "#b8609a", "#a08a00", "#56b4e9", "#8a8a8a")
"""Colours of lines, after Okabe and Ito, darkened for contrast with white; the marks differ, too."""
_ROW = 26
_LETTERS = 28
"""Characters of a label that are shown."""
_BAR_LETTERS = 40
"""Of a label beside bars; a tooltip has all."""
_MOST = 60
"""A histogram with more bars unites neighbouring bars, so that it stays readable."""


def _label_width(labels: Sequence[str]) -> int:
    return 16 + 8 * min(_BAR_LETTERS, max(map(len, labels), default=0))


def svg(width: float, height: float, title: str, inside: Sequence[str], role: str = "img") -> Fragment:
    """Return an SVG of escaped pieces, in the colour of the text around it; its role is ``group`` where parts can be clicked.

    Colours are attributes, so that the style sheet of a page can override them.
    """
    return Fragment(
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" role="{role}" '
        f'aria-label="{escape(title)}" fill="currentColor" font-size="13" '
        'font-family="system-ui, -apple-system, Segoe UI, Roboto, DejaVu Sans, sans-serif" '
        f'style="max-width:100%;height:auto"><title>{escape(title)}</title>{"".join(inside)}</svg>'
    )


def label(text: str, longest: int, place: str) -> str:
    """Return a text with the attributes of its place; where it is cut, its tooltip is the whole, and so do screen readers read it."""
    whole = f"<title>{escape(text)}</title>" if len(text) > longest else ""
    return f"<text {place}>{whole}{escape(shortened(text, longest))}</text>"


def bars(labels: Sequence[str], shares: Sequence[float], title: str) -> Fragment:
    """Return horizontal bars for shares between 0 and 1."""
    left = _label_width(labels)
    room = WIDTH - left - 70
    inside = []
    for i, (name, share) in enumerate(zip(labels, shares, strict=True)):
        y = i * _ROW
        inside.append(
            label(name, _BAR_LETTERS, f'x="{left - 10}" y="{y + 17}" text-anchor="end"')
            + f'<rect class="track" fill-opacity=".1" x="{left}" y="{y + 4}" width="{room}" height="17" rx="2"/>'
            f'<rect class="a" fill="{BLUE}" x="{left}" y="{y + 4}" width="{room * min(1.0, share):.1f}" height="17" rx="2"/>'
            f'<text x="{left + room + 8}" y="{y + 17}">{100 * share:.1f}%</text>'
        )
    return svg(WIDTH, max(1, len(labels)) * _ROW, title, inside)


def stacked(labels: Sequence[str], shares: Sequence[tuple[float, float, float]], title: str) -> Fragment:
    """Return horizontal bars, each of three parts that add up to 1."""
    left = _label_width(labels)
    room = WIDTH - left - 10
    inside = []
    for i, (column, parts) in enumerate(zip(labels, shares, strict=True)):
        y, x = i * _ROW, float(left)
        inside.append(label(column, _BAR_LETTERS, f'x="{left - 10}" y="{y + 17}" text-anchor="end"'))
        for name, fill, share in zip("abc", (BLUE, SKY, ORANGE), parts, strict=True):
            width = room * share
            inside.append(
                f'<rect class="{name}" fill="{fill}" x="{x:.1f}" y="{y + 4}" width="{max(0.0, width):.1f}" height="17">'
                f"<title>{100 * share:.1f}%</title></rect>"
            )
            x += width
    return svg(WIDTH, max(1, len(labels)) * _ROW, title, inside)


def columns(counts: Sequence[tuple[int, int]], title: str, unit: str) -> Fragment:
    """Return a histogram: upright bars for (value, count)."""
    binned = _binned_sizes(counts)
    height, top, bottom, left = 220, 12, 40, 64
    most = max((count for _, count in binned), default=1) or 1
    step = (WIDTH - left - 10) / max(1, len(binned))
    inside = [
        f'<line class="axis" stroke="currentColor" stroke-opacity=".4" x1="{left}" y1="{height - bottom}" x2="{WIDTH - 10}" y2="{height - bottom}"/>',
        f'<text class="soft" fill-opacity=".7" x="{left - 8}" y="{top + 10}" text-anchor="end">{most:,}</text>',
        f'<text class="soft" fill-opacity=".7" x="{left - 8}" y="{height - bottom}" text-anchor="end">0</text>',
        f'<text class="soft" fill-opacity=".7" x="{(left + WIDTH) / 2:.0f}" y="{height - 4}" text-anchor="middle">{escape(unit)}</text>',
    ]
    widest = max((len(label) for label, _ in binned), default=1) * 7.5 + 8
    every = max(1, math.ceil(widest / step))  # labels never overlap
    for i, (label, count) in enumerate(binned):
        tall = (height - top - bottom) * count / most
        x = left + i * step
        wide = min(step * 0.86, 60)
        inside.append(
            f'<rect class="a" fill="{BLUE}" x="{x + (step - wide) / 2:.1f}" y="{height - bottom - tall:.1f}" '
            f'width="{wide:.1f}" height="{tall:.1f}"><title>{escape(label)}: {count:,}</title></rect>'
        )
        if i % every == 0:
            inside.append(
                f'<text class="soft" fill-opacity=".7" x="{x + step / 2:.1f}" y="{height - bottom + 17}" text-anchor="middle">{escape(label)}</text>'
            )
    return svg(WIDTH, height, title, inside)


def _binned_sizes(counts: Sequence[tuple[int, int]]) -> list[tuple[str, int]]:
    if len(counts) <= _MOST:
        return [(str(value), count) for value, count in counts]
    low, high = counts[0][0], counts[-1][0]
    width = -(-(high - low + 1) // _MOST)
    bins: dict[int, int] = {}
    for value, count in counts:
        bins[(value - low) // width] = bins.get((value - low) // width, 0) + count
    return [(f"{low + at * width}–{low + (at + 1) * width - 1}", count) for at, count in sorted(bins.items())]


Place = Callable[[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Axis:
    """An axis of a picture.

    Attributes
    ----------
    low, high : float
        Its ends.
    ticks : sequence of (float, str)
        Places on it, and what stands there.
    log : bool
        Whether equal factors are equally long, not equal differences.
    """

    name: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = False

    @classmethod
    def over(cls, name: str, values: Sequence[float], zero: bool = False) -> Axis:
        """Return an axis with round numbers on which all values lie; it may begin at 0."""
        low, high = (min(values), max(values)) if len(values) else (0.0, 1.0)
        low = 0.0 if zero else low - 0.06 * (high - low)
        high += 0.06 * ((high - low) or abs(high) or 1.0)
        return cls(name, low, high, [(value, f"{value:g}") for value in ticks(low, high)])

    def share(self, value: float) -> float:
        """Return how far along the axis a value is, between 0 and 1."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def slant(self, wide: int) -> int:
        """Return how many pixels slanted texts need below an axis of so many; 0 where they have room side by side."""
        longest = max((len(shortened(text, _LETTERS)) for _, text in self.ticks), default=0)
        return (
            round(4.7 * longest) if len(self.ticks) > 1 and longest * 7.2 + 6 > wide / len(self.ticks) else 0
        )


def frame_of(
    x: Sequence[float],
    y: Sequence[float],
    height: int,
    across: str,
    up: str,
    right: int = 40,
    zero: bool = False,
) -> tuple[Place, list[str]]:
    """Return a function that places points between axes, and the pieces that draw the axes.

    Parameters
    ----------
    x, y : sequence of float
        All points, in the units of the axes.
    height : int
        Height of the picture in pixels; its width is ``WIDTH``.
    across, up : str
        What the axes are called.
    right : int
        Room beside the plot, in pixels.
    zero : bool
        Whether the axes begin at 0.
    """
    return framed(Axis.over(across, x, zero), Axis.over(up, y, zero), height, right)


def framed(x: Axis, y: Axis, height: int, right: int = 40, width: int = WIDTH) -> tuple[Place, list[str]]:
    """Return what :func:`frame_of` does, for two axes; texts below the picture that have no room side by side are slanted."""
    slanted = x.slant(width - 64 - right)
    before_first = (width - 64 - right) // (2 * max(1, len(x.ticks)))
    top, left, bottom = 26, max(64, slanted * 6 // 5 - before_first), 46 + slanted
    wide = width - left - right
    tall = height - top - bottom

    def place(a: float, b: float) -> tuple[float, float]:
        return left + wide * x.share(a), height - bottom - tall * y.share(b)

    pieces = [
        f'<path d="M{left} {top}V{height - bottom}H{width - right}" fill="none" stroke="currentColor" stroke-opacity=".4"/>',
        f'<text x="{left + wide / 2:.0f}" y="{height - 6}" text-anchor="middle" fill-opacity=".7">{escape(x.name)}</text>',
        f'<text x="{left - 8}" y="{top - 12}" text-anchor="start" fill-opacity=".7">{escape(y.name)}</text>',
    ]
    for value, text in x.ticks:
        px, _ = place(value, y.low)
        turned = f' transform="rotate(-40 {px:.1f} {height - bottom + 17})"' if slanted else ""
        pieces.append(
            f'<text x="{px:.1f}" y="{height - bottom + 17}" text-anchor="{"end" if slanted else "middle"}" fill-opacity=".7"{turned}>'
            f"{escape(shortened(text, _LETTERS))}</text>"
        )
    for value, text in y.ticks:
        _, py = place(x.low, value)
        pieces.append(
            f'<text x="{left - 8}" y="{py + 4:.1f}" text-anchor="end" fill-opacity=".7">{text}</text>'
            f'<path d="M{left} {py:.1f}H{width - right}" stroke="currentColor" stroke-opacity=".12"/>'
        )
    return place, pieces


def ticks(low: float, high: float) -> list[float]:
    """Return four to eight round numbers between two numbers."""
    step = 10.0 ** math.floor(math.log10((high - low) / 4)) if high > low else 1.0
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 8)
    return [round(step * at, 12) + 0.0 for at in range(math.ceil(low / step), math.floor(high / step) + 1)]


def lines(series: Mapping[str, Sequence[tuple[float, float]]], title: str, across: str, up: str) -> Fragment:
    """Return lines through points, each with a colour, a mark and its name; both axes begin at 0.

    Parameters
    ----------
    series : mapping
        Name -> points (x, y), in the order of the line.
    title, across, up : str
    """
    height, right = 340, 170
    points = [point for line in series.values() for point in line]
    place, inside = frame_of(
        [x for x, _ in points], [y for _, y in points], height, across, up, right, zero=True
    )
    ends = []
    for at, (name, line) in enumerate(series.items()):
        colour = COLOURS[at % len(COLOURS)]
        placed = [place(x, y) for x, y in line]
        path = "L".join(f"{px:.1f} {py:.1f}" for px, py in placed)
        inside.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>' if placed else "")
        for (px, py), (x, y) in zip(placed, line, strict=True):
            inside.append(_series_mark(at, px, py, colour, f"{name}: {x:g}, {y:.4g}"))
        if placed:
            ends.append((placed[-1][1], at, name, colour))
    below = -math.inf
    for py, at, name, colour in sorted(ends):
        below = max(below + 18, py)
        inside.append(_series_mark(at, WIDTH - right + 16, below, colour, name))
        inside.append(
            f'<text x="{WIDTH - right + 28}" y="{below + 4:.1f}">{escape(shortened(name, _LETTERS))}</text>'
        )
    return svg(WIDTH, max(height, below + 12), title, inside)


_MARKS = (
    "M-4.5 0A4.5 4.5 0 1 0 4.5 0A4.5 4.5 0 1 0 -4.5 0Z",
    "M-4 -4H4V4H-4Z",
    "M0 -5L5 4H-5Z",
    "M0 -5.5L5.5 0L0 5.5L-5.5 0Z",
    "M0 5L5 -4H-5Z",
    "M-5 -1.5H-1.5V-5H1.5V-1.5H5V1.5H1.5V5H-1.5V1.5H-5Z",
)


def _series_mark(at: int, x: float, y: float, colour: str, title: str) -> str:
    return (
        f'<path d="{_MARKS[at % len(_MARKS)]}" transform="translate({x:.1f} {y:.1f})" fill="{colour}">'
        f"<title>{escape(title)}</title></path>"
    )


def scatter(points: Sequence[tuple[str, float, float]], title: str, across: str, up: str) -> Fragment:
    """Return labelled points; both axes begin at 0."""
    height, top, bottom, left, right = 330, 14, 44, 64, 150
    wide = max((x for _, x, _ in points), default=1.0) * 1.05 or 1.0
    tall = max((y for _, _, y in points), default=1.0) * 1.08 or 1.0
    inside = [
        f'<line class="axis" stroke="currentColor" stroke-opacity=".4" x1="{left}" y1="{height - bottom}" x2="{WIDTH - right}" y2="{height - bottom}"/>',
        f'<line class="axis" stroke="currentColor" stroke-opacity=".4" x1="{left}" y1="{top}" x2="{left}" y2="{height - bottom}"/>',
        f'<text class="soft" fill-opacity=".7" x="{(left + WIDTH - right) / 2:.0f}" y="{height - 6}" text-anchor="middle">{escape(across)}</text>',
        f'<text class="soft" fill-opacity=".7" x="{left}" y="{top - 3}" text-anchor="middle">{escape(up)}</text>',
        f'<text class="soft" fill-opacity=".7" x="{left - 8}" y="{top + 14}" text-anchor="end">{tall:.3g}</text>',
        f'<text class="soft" fill-opacity=".7" x="{WIDTH - right}" y="{height - bottom + 17}" text-anchor="middle">{wide:.3g}</text>',
        f'<text class="soft" fill-opacity=".7" x="{left - 8}" y="{height - bottom + 4}" text-anchor="end">0</text>',
    ]
    for label, x, y in points:
        px = left + (WIDTH - left - right) * x / wide
        py = height - bottom - (height - top - bottom) * y / tall
        inside.append(
            f'<circle class="a" fill="{BLUE}" cx="{px:.1f}" cy="{py:.1f}" r="5"><title>{escape(label)}</title></circle>'
            f'<text x="{px + 9:.1f}" y="{py + 4:.1f}">{escape(shortened(label, _LETTERS))}</text>'
        )
    return svg(WIDTH, height, title, inside)
