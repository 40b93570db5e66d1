"""A picture of the risk-utility frontier: every run by its risk and its loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from markupsafe import Markup

from anonflow.drawing.fragments import shortened
from anonflow.drawing.method_mark import Mark, mark_at
from anonflow.drawing.plots import WIDTH, frame_of, svg

_RIGHT = 190


def risk_and_loss(
    points: Sequence[tuple[str, str, float, float]],
    best: Sequence[int],
    across: str,
    up: str,
    looks: Mapping[str, Mark],
    keys: Sequence[str] = (),
    chosen: int | None = None,
) -> Markup:
    """Return runs as marks, each method with its own colour and shape, and a line through those that no other beats.

    Parameters
    ----------
    points : sequence of (str, str, float, float)
        Method, name of the run, risk and loss; both axes begin at 0.
    best : sequence of int
        Positions of the points on the frontier, by increasing risk.
    across, up : str
        Names of the axes.
    looks : mapping of str to Mark
        The look of each method.
    keys : sequence of str, optional
        Of the marks, which can be clicked then.
    chosen : int, optional
        Position of the point that gets a ring.
    """
    height = 360
    place, inside = frame_of(
        [x for _, _, x, _ in points], [y for *_, y in points], height, across, up, _RIGHT, zero=True
    )
    if len(best):
        corners = [place(*points[at][2:]) for at in best]
        path = f"M{corners[0][0]:.1f} 26V{corners[0][1]:.1f}"
        for px, py in corners[1:]:
            path += f"H{px:.1f}V{py:.1f}"
        path += f"H{WIDTH - _RIGHT}"
        inside.append(
            f'<path d="{path}" fill="none" stroke="currentColor" stroke-opacity=".55" stroke-width="1.5" '
            'stroke-dasharray="6 4"/>'
        )
    for at, (method, name, x, y) in enumerate(points):
        title = f"{name}: {across} {x:.4g}, {up} {y:.4g}"
        key = keys[at] if keys else ""
        inside.append(mark_at(looks[method], *place(x, y), title, key, is_chosen=at == chosen))
    for row, method in enumerate(dict.fromkeys(method for method, *_ in points)):
        y = 40 + 22 * row
        inside.append(mark_at(looks[method], WIDTH - _RIGHT + 20, y, method))
        inside.append(f'<text x="{WIDTH - _RIGHT + 34}" y="{y + 4}">{escape(shortened(method, 20))}</text>')
    return svg(
        WIDTH, height, f"{up} against {across}, {len(points)} runs", inside, "group" if keys else "img"
    )
