"""Curves as SVG, panels side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

COLOURS = ("#1b6ca8", "#c1440e", "#4a7c2a", "#8a5aa8", "#b8860b", "#008b8b", "#7f7f7f", "#d6457b")

Curve = dict[float, float]


def drawing(
    panels: Sequence[tuple[str, Mapping[str, Curve]]], across: str = "k", logarithmic: bool = False
) -> str:
    """The curves of some panels, three in a row; a colour for each label, the same in all panels.

    A label that ends in ``(printed)`` is dashed. `logarithmic` is the axis across.
    """
    labels = list(dict.fromkeys(label for _, curves in panels for label in curves))
    bare = list(dict.fromkeys(label.removesuffix(" (printed)") for label in labels))
    colours = {
        label: COLOURS[bare.index(label.removesuffix(" (printed)")) % len(COLOURS)] for label in labels
    }
    width, height, left, top, beside = 380, 300, 52, 34, min(3, len(panels))
    rows = -(-len(panels) // beside)
    key = 16 * -(-len(labels) // (2 * beside)) + 14
    parts = []
    for p, (title, curves) in enumerate(panels):
        ats = sorted({at for curve in curves.values() for at in curve})
        most = 1.05 * max((loss for curve in curves.values() for loss in curve.values()), default=1.0) or 1.0
        least = min(0.0, *(loss for curve in curves.values() for loss in curve.values()), 0.0)
        x0, y0 = (p % beside) * width + left, (p // beside) * height + height - 40
        room = width - left - 20

        def place(
            at: float,
            loss: float,
            x0: float = x0,
            y0: float = y0,
            ats: list[float] = ats,
            span: tuple[float, float] = (least, most),
            room: float = room,
        ) -> tuple[float, float]:
            low, high = (math.log(ats[0]), math.log(ats[-1])) if logarithmic else (ats[0], ats[-1])
            own = math.log(at) if logarithmic else at
            x = x0 + room * ((own - low) / (high - low) if high > low else 0.5)
            return x, y0 - (height - 40 - top) * (loss - span[0]) / (span[1] - span[0])

        y1 = y0 - (height - 40 - top)
        parts.append(
            f'<text x="{x0 + room / 2:.0f}" y="{y1 - 16}" text-anchor="middle" font-weight="bold">{escape(title)}</text>'
        )
        parts.append(f'<path d="M{x0} {y1}V{y0}H{x0 + room}" fill="none" stroke="#444"/>')
        shown = -math.inf
        for at in ats:
            x, _ = place(at, least)
            if x - shown > 34:
                label = f"{at:,.6g}"
                inside = min(x, x0 + room + 20 - 3.7 * len(label))  # a long one at the right would be cut off
                parts.append(f'<text x="{inside:.0f}" y="{y0 + 16}" text-anchor="middle">{label}</text>')
                shown = x
        for tick in range(5):
            loss = least + (most - least) * tick / 4
            y = place(ats[0], loss)[1] if ats else y0
            parts.append(f'<text x="{x0 - 5}" y="{y + 4:.0f}" text-anchor="end">{loss:.2g}</text>')
            parts.append(f'<path d="M{x0} {y:.0f}H{x0 + room}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{x0 + room / 2:.0f}" y="{y0 + 32}" text-anchor="middle">{escape(across)}</text>'
        )
        for label, curve in curves.items():
            points = [place(at, curve[at]) for at in sorted(curve)]
            dashed = ' stroke-dasharray="5 4"' if label.endswith("(printed)") else ""
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            parts.append(
                f'<polyline points="{line}" fill="none" stroke="{colours[label]}" stroke-width="2"{dashed}/>'
            )
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colours[label]}"/>' for x, y in points]
    wide, tall = width * beside, rows * height + key
    for at, label in enumerate(labels):
        x, y = left + (at % (2 * beside)) * width / 2, rows * height + 16 * (at // (2 * beside)) + 8
        dashed = ' stroke-dasharray="5 4"' if label.endswith("(printed)") else ""
        parts.append(
            f'<path d="M{x} {y - 4}h22" stroke="{colours[label]}" stroke-width="2"{dashed}/>'
            f'<text x="{x + 27}" y="{y}" fill="{colours[label]}">{escape(label)}</text>'
        )
        wide = max(wide, round(x + 27 + 6.4 * len(label)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" '
        f'width="{wide}" font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'
    )
