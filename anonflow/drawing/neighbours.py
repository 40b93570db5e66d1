"""A picture of a record and the records among which it is hidden: originals left, generalized records right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from anonflow.drawing.fragments import shortened
from anonflow.drawing.plots import BLUE, ORANGE, svg

_LETTER = 7.9
_ROW = 30
_LONGEST = 60


def around_one(
    originals: Sequence[str],
    rows: Sequence[str],
    edges: Iterable[tuple[int, int]],
    *,
    left: str = "originals",
    right: str = "generalized records",
    solid: bool = True,
) -> Markup:
    """Return the generalization graph around one record, which is the first on either side.

    Parameters
    ----------
    originals, rows : sequence of str
        Names of the vertices, the chosen record and its generalized record first.
    edges : iterable of (int, int)
        Positions in `originals` and `rows`. Those of the chosen record are thick, those of its generalized record
        thick and dashed, the others thin.
    left, right : str
        Names of the two sides.
    solid : bool
        Whether edges are matches; edges that only cover are dotted.
    """
    names = [shortened(text, _LONGEST) for text in originals], [shortened(text, _LONGEST) for text in rows]
    x = 24 + _LETTER * max(map(len, (left, *names[0])))
    y = x + 220
    width = y + 24 + _LETTER * max(map(len, (right, *names[1])))
    tops = [40.0, 40.0]
    most = max(len(originals), len(rows), 1)
    for side in (0, 1):
        # the shorter side stands in the middle
        tops[side] += _ROW * (most - max(1, len(names[side]))) / 2
    dots = "" if solid else ' stroke-dasharray="2 4"'

    def line(i: int, j: int, style: str) -> str:
        return (
            f'<line x1="{x + 7:.0f}" y1="{tops[0] + _ROW * i:.0f}" x2="{y - 7:.0f}" y2="{tops[1] + _ROW * j:.0f}" '
            f"{style}/>"
        )

    thin, ours, theirs = [], [], []
    for i, j in edges:
        if i == 0:
            ours.append(line(i, j, f'stroke="{ORANGE}" stroke-width="2.5"{dots}'))
        elif j == 0:
            dashes = dots or ' stroke-dasharray="7 3"'
            theirs.append(line(i, j, f'stroke="{BLUE}" stroke-width="2"{dashes}'))
        else:
            thin.append(line(i, j, f'stroke="currentColor" stroke-opacity=".28"{dots}'))
    inside = [
        f'<text x="{x:.0f}" y="16" text-anchor="end" fill-opacity=".7">{Markup.escape(left)}</text>',
        f'<text x="{y:.0f}" y="16" fill-opacity=".7">{Markup.escape(right)}</text>',
        *thin,
        *theirs,
        *ours,
    ]
    for side, at, full in ((0, x, originals), (1, y, rows)):
        for place, (name, whole) in enumerate(zip(names[side], full, strict=True)):
            inside.append(_vertex(at, tops[side] + _ROW * place, name, whole, side == 0, place == 0))
    return svg(width, 56 + _ROW * (most - 1), f"{len(originals)} originals and {len(rows)} rows", inside)


def _vertex(x: float, y: float, name: str, whole: str, is_left: bool, chosen: bool) -> str:
    anchor = Markup(' text-anchor="end"') if is_left else Markup("")
    weight = Markup(' font-weight="700"') if chosen else Markup("")
    ring = f' stroke="{ORANGE}" stroke-width="3"' if chosen else ""
    text = Markup('<text x="{}" y="{}"{}{}>{}<title>{}</title></text>').format(
        f"{x - 13 if is_left else x + 13:.0f}", f"{y + 5:.0f}", anchor, weight, name, whole
    )
    return f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{7 if chosen else 5}" fill="{BLUE}"{ring}/>{text}'
