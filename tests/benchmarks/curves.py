"""Curves as SVG, panels side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from tests import ROOT

COLOURS = ("#1b6ca8", "#c1440e", "#4a7c2a", "#8a5aa8", "#b8860b", "#008b8b", "#7f7f7f", "#d6457b")

Curve = dict[float, float]


def draw(name: str, panels: Sequence[tuple[str, Mapping[str, Curve]]], across: str, small: bool) -> None:
    """Write curves along powers of ten to ``out``."""
    picture = ROOT / "out" / f"{name}{'-small' if small else ''}.svg"
    picture.parent.mkdir(exist_ok=True)
    picture.write_text(drawing(panels, across, logarithmic=True), encoding="utf-8")


def drawing(
    panels: Sequence[tuple[str, Mapping[str, Curve]]], across: str = "k", logarithmic: bool = False
) -> str:
    """The curves of some panels, three in a row; a colour for each label, the same in all panels.

    A label that ends in ``(printed)`` is dashed. Where there are more labels than colours, the others have dotted lines and
    squares in the same colours. `logarithmic` is the axis across, with powers of ten below it.
    """
    labels = list(dict.fromkeys(label for _, curves in panels for label in curves))
    bare = list(dict.fromkeys(label.removesuffix(" (printed)") for label in labels))
    places = {label: bare.index(label.removesuffix(" (printed)")) for label in labels}
    colours = {label: COLOURS[at % len(COLOURS)] for label, at in places.items()}
    square = {label: at >= len(COLOURS) for label, at in places.items()}
    strokes = {label: _dashes(label, square[label]) for label in labels}
    width, height, left, top, beside = 380, 300, 52, 34, min(3, len(panels))
    rows = -(-len(panels) // beside)
    # of a line and its label: two below a panel, fewer if they are long
    apart = max(width / 2, 27 + 7 * max((len(label) for label in labels), default=0))
    in_row = 2 * beside if apart == width / 2 else max(1, int((width * beside - left) / apart))
    key = 16 * -(-len(labels) // in_row) + 14
    parts = []
    for p, (title, curves) in enumerate(panels):
        ats = sorted({at for curve in curves.values() for at in curve})
        below = powers(ats) if logarithmic and ats else ats
        ends = (below[0], below[-1]) if below else (1.0, 10.0)
        most = 1.05 * max((loss for curve in curves.values() for loss in curve.values()), default=1.0) or 1.0
        least = min(0.0, *(loss for curve in curves.values() for loss in curve.values()), 0.0)
        x0, y0 = (p % beside) * width + left, (p // beside) * height + height - 40
        room = width - left - 20

        def place(
            at: float,
            loss: float,
            x0: float = x0,
            y0: float = y0,
            ends: tuple[float, float] = ends,
            span: tuple[float, float] = (least, most),
            room: float = room,
        ) -> tuple[float, float]:
            low, high = (math.log(ends[0]), math.log(ends[1])) if logarithmic else ends
            own = math.log(at) if logarithmic else at
            x = x0 + room * ((own - low) / (high - low) if high > low else 0.5)
            return x, y0 - (height - 40 - top) * (loss - span[0]) / (span[1] - span[0])

        y1 = y0 - (height - 40 - top)
        parts.append(
            f'<text x="{x0 + room / 2:.0f}" y="{y1 - 16}" text-anchor="middle" font-weight="bold">{escape(title)}</text>'
        )
        parts.append(f'<path d="M{x0} {y1}V{y0}H{x0 + room}" fill="none" stroke="#444"/>')
        shown = -math.inf
        for at in below:
            x, _ = place(at, least)
            if x - shown > 34:
                label = f"{at:,.10g}"
                inside = min(x, x0 + room + 20 - 3.7 * len(label))  # a long one at the right would be cut off
                parts.append(f'<text x="{inside:.0f}" y="{y0 + 16}" text-anchor="middle">{label}</text>')
                shown = x
        for loss in round_steps(least, most):
            y = place(ends[0], loss)[1]
            parts.append(f'<text x="{x0 - 5}" y="{y + 4:.0f}" text-anchor="end">{loss:.6g}</text>')
            parts.append(f'<path d="M{x0} {y:.0f}H{x0 + room}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{x0 + room / 2:.0f}" y="{y0 + 32}" text-anchor="middle">{escape(across)}</text>'
        )
        for label, curve in curves.items():
            points = [place(at, curve[at]) for at in sorted(curve)]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            parts.append(
                f'<polyline points="{line}" fill="none" stroke="{colours[label]}" stroke-width="2"{strokes[label]}/>'
            )
            size = 3 if len(points) > 1 else 4.5
            parts += [_mark(x, y, size, colours[label], square[label]) for x, y in points]
    wide, tall = width * beside, rows * height + key
    for at, label in enumerate(labels):
        x, y = left + (at % in_row) * apart, rows * height + 16 * (at // in_row) + 8
        parts.append(
            f'<path d="M{x} {y - 4}h22" stroke="{colours[label]}" stroke-width="2"{strokes[label]}/>'
            f"{_mark(x + 11, y - 4, 3, colours[label], square[label])}"
            f'<text x="{x + 27}" y="{y}" fill="{colours[label]}">{escape(label)}</text>'
        )
        wide = max(wide, math.ceil(x + 27 + 7 * len(label)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" '
        f'width="{wide}" font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )


def _dashes(label: str, square: bool) -> str:
    """The attribute of a line: dashed, dotted, or none."""
    pattern = "5 4" if label.endswith("(printed)") else "2 3" if square else ""
    return f' stroke-dasharray="{pattern}"' if pattern else ""


def _mark(x: float, y: float, size: float, colour: str, square: bool) -> str:
    """A point of a curve."""
    if square:
        return (
            f'<path d="M{x - size:.1f} {y - size:.1f}h{2 * size}v{2 * size}h{-2 * size}z" fill="{colour}"/>'
        )
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{colour}"/>'


def powers(values: Sequence[float]) -> list[float]:
    """The powers of ten around and between ascending positive values."""
    least, most = math.floor(math.log10(values[0])), math.ceil(math.log10(values[-1]))
    return [10.0**power for power in range(least, max(most, least + 1) + 1)]


def round_steps(least: float, most: float) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, at most eight of them, from `least` to `most`."""
    rough = (most - least) / 6
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [step * tick for tick in range(math.ceil(least / step), math.floor(most / step) + 1)]
