"""Pictures of matches: records as points with arrows, and generalization graphs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from markupsafe import Markup

from anonflow.drawing.fragments import Fragment, shortened
from anonflow.drawing.plots import BLUE, ORANGE, WIDTH, frame_of, svg

_LETTER = 7.4


def points_and_matches(
    labels: Sequence[str],
    x: Iterable[float],
    y: Iterable[float],
    matches: Iterable[Sequence[int]],
    across: str,
    up: str,
    boxes: Sequence[int] = (),
) -> Fragment:
    """Return records as points over two numeric quasi-identifiers, and an arrow to each generalized record that they match.

    Parameters
    ----------
    labels : sequence of str, length n
    x, y : iterable of float, length n
        In the units of the columns.
    matches : iterable of sequences of int, length n
        For each generalized record j the originals that it matches, itself among them; -1 stands for no match. An arrow goes
        from i to j where i matches j, as in Doka 2015, Figure 2(a).
    across, up : str
        Names of the axes.
    boxes : sequence of int
        Generalized records that are drawn as their published rectangle.
    """
    x, y = [float(value) for value in x], [float(value) for value in y]
    listed = [[int(i) for i in row if i >= 0] for row in matches]
    height = 420
    place, axes = frame_of(x, y, height, across, up)
    inside = list(axes)
    for j in boxes:
        left, low = place(min(x[i] for i in listed[j]), min(y[i] for i in listed[j]))
        right, high = place(max(x[i] for i in listed[j]), max(y[i] for i in listed[j]))
        inside.append(
            f'<rect x="{left - 9:.1f}" y="{high - 9:.1f}" width="{right - left + 18:.1f}" height="{low - high + 18:.1f}" '
            f'rx="6" fill="{ORANGE}" fill-opacity=".12" stroke="{ORANGE}" stroke-dasharray="5 4"/>'
        )
    pairs = {(i, j) for j, row in enumerate(listed) for i in row if i != j}
    for i, j in sorted(pairs):
        (ax, ay), (bx, by) = place(x[i], y[i]), place(x[j], y[j])
        inside += _arrow(ax, ay, bx, by, bent=(j, i) in pairs)
    for at, label in enumerate(labels):
        px, py = place(x[at], y[at])
        inside.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="5" fill="{BLUE}"/>')
        inside.append(
            str(
                Markup('<text x="{}" y="{}" font-weight="600">{}</text>').format(
                    f"{px + 8:.1f}", f"{py - 8:.1f}", shortened(label)
                )
            )
        )
    return svg(WIDTH, height, f"{len(labels)} records and their matches", inside)


def _arrow(ax: float, ay: float, bx: float, by: float, bent: bool) -> list[str]:
    """Return an arrow that ends shortly before both points; arrows in opposite directions bend apart."""
    length = math.hypot(bx - ax, by - ay) or 1.0
    ux, uy = (bx - ax) / length, (by - ay) / length
    bow = 14.0 if bent else 0.0
    mx, my = (ax + bx) / 2 - uy * bow, (ay + by) / 2 + ux * bow
    sx, sy, ex, ey = ax + 7 * ux, ay + 7 * uy, bx - 8 * ux, by - 8 * uy
    back = math.atan2(ey - my, ex - mx)
    head = " ".join(
        f"{ex - 9 * math.cos(back + turn):.1f},{ey - 9 * math.sin(back + turn):.1f}" for turn in (-0.4, 0.4)
    )
    return [
        f'<path d="M{sx:.1f} {sy:.1f}Q{mx:.1f} {my:.1f} {ex:.1f} {ey:.1f}" fill="none" stroke="currentColor" '
        'stroke-opacity=".55"/>',
        f'<polygon points="{ex:.1f},{ey:.1f} {head}" fill-opacity=".55"/>',
    ]


def generalization_graph(
    originals: Sequence[str],
    published: Sequence[str],
    matches: Iterable[Sequence[int]],
    covers: Iterable[tuple[int, int]] = (),
    assignment: Sequence[int] | None = None,
) -> Fragment:
    """Return the graph between originals (left) and generalized records (right).

    Parameters
    ----------
    originals, published : sequence of str, length n each
        Names of the vertices.
    matches : iterable of sequences of int, length n
        For each generalized record j the originals that it matches, drawn as solid lines; -1 stands for no match.
    covers : iterable of (i, j)
        Further edges that lie on no assignment, drawn as dotted lines.
    assignment : sequence of int, length n, optional
        For each generalized record the original to which it is assigned, drawn as a thick line.
    """
    row, top = 30, 34
    left = 24 + _LETTER * max(len(shortened(text)) for text in ("originals", *originals))
    right = left + 260
    width = right + 24 + _LETTER * max(len(shortened(text)) for text in ("generalized records", *published))
    listed = [[int(i) for i in line if i >= 0] for line in matches]
    solid = {(i, j) for j, line in enumerate(listed) for i in line}

    def line(i: int, j: int, style: str) -> str:
        return f'<line x1="{left + 7:.0f}" y1="{top + row * i}" x2="{right - 7:.0f}" y2="{top + row * j}" {style}/>'

    inside = [
        f'<text x="{left:.0f}" y="14" text-anchor="end" fill-opacity=".7">originals</text>',
        f'<text x="{right:.0f}" y="14" fill-opacity=".7">generalized records</text>',
    ]
    dotted = 'stroke="currentColor" stroke-opacity=".45" stroke-dasharray="2 4"'
    inside += [line(i, j, dotted) for i, j in sorted(set(covers) - solid)]
    inside += [line(i, j, 'stroke="currentColor" stroke-opacity=".6"') for i, j in sorted(solid)]
    for j, i in enumerate(() if assignment is None else assignment):
        inside.append(line(int(i), j, f'stroke="{ORANGE}" stroke-width="3"'))
    for names, at, end in ((originals, left, True), (published, right, False)):
        for place, name in enumerate(names):
            y = top + row * place
            inside.append(f'<circle cx="{at:.0f}" cy="{y}" r="5" fill="{BLUE}"/>')
            anchor = Markup(' text-anchor="end"') if end else ""
            x = at - 12 if end else at + 12
            inside.append(
                str(
                    Markup('<text x="{}" y="{}"{}>{}</text>').format(
                        f"{x:.0f}", y + 5, anchor, shortened(name)
                    )
                )
            )
    height = top + row * max(len(originals), len(published))
    return svg(width, height, f"generalization graph of {len(originals)} records", inside)
