"""A picture of the lattice of full-domain generalization: the loss of each node, which nodes are anonymous, the optimum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from anonflow.drawing.plots import BLUE, ORANGE, svg

_HIGH, _GAP, _BETWEEN, _MARGIN = 30, 10, 44, 70
_LETTER = 7.2


@dataclass(frozen=True)
class LatticeBox:
    """A node of the picture.

    Attributes
    ----------
    text : str
        The text inside the node.
    description : str
        The description of the node in words, shown as its tooltip.
    height : int
        The row of the node, from the bottom.
    loss : float
        Between 0 and 1; a larger loss is darker.
    anonymous : bool
        Whether the node is anonymous; otherwise its border is dashed, and it has no colour.
    mark : str
        The text above the node, such as "optimum"; empty for most nodes.
    key : str
        The key that a click on the node sends; empty if it cannot be clicked.
    """

    text: str
    description: str
    height: int
    loss: float
    anonymous: bool
    mark: str = ""
    key: str = ""


def lattice(nodes: Sequence[LatticeBox], edges: Sequence[tuple[int, int]], title: str) -> Markup:
    """Return nodes in rows by their height, with lines between nodes that differ by one level.

    Parameters
    ----------
    nodes : sequence of LatticeBox
    edges : sequence of (int, int)
        Positions in `nodes`, the lower one first.
    title : str
    """
    rows = sorted({node.height for node in nodes}, reverse=True)
    wide = 22 + _LETTER * max((len(node.text) for node in nodes), default=1)
    members = {row: [at for at, node in enumerate(nodes) if node.height == row] for row in rows}
    most = max((len(row) for row in members.values()), default=1)
    width = max(320.0, most * (wide + _GAP) + 2 * _MARGIN)
    place: dict[int, tuple[float, float]] = {}
    for line, row in enumerate(rows):
        row_members = members[row]
        start = (width - len(row_members) * (wide + _GAP) + _GAP) / 2
        for t, at in enumerate(row_members):
            place[at] = start + t * (wide + _GAP), 26 + line * (_HIGH + _BETWEEN)
    marked = {at for at, node in enumerate(nodes) if node.mark}
    lines = []
    for low, high in sorted(edges, key=lambda edge: bool(marked & set(edge))):
        (x, y), (u, v) = place[low], place[high]
        strong = bool(marked & {low, high})
        y -= 20 if low in marked else 0  # no line goes through the text above a node
        lines.append(
            f'<path class="edge" d="M{x + wide / 2:.0f} {y:.0f}L{u + wide / 2:.0f} {v + _HIGH:.0f}" fill="none" '
            f'stroke="currentColor" stroke-opacity="{0.5 if strong else 0.16}"/>'
        )
    boxes = [_box(node, *place[at], wide) for at, node in enumerate(nodes)]
    height = 26 + len(rows) * (_HIGH + _BETWEEN) - _BETWEEN + 12
    drawn = svg(width, height, title, [*lines, *boxes])
    # the picture keeps its width: a row of many nodes is scrolled, because shrinking would make it unreadable
    plain = str(drawn).replace(
        "max-width:100%;height:auto", f"min-width:{min(width, 1400):.0f}px;max-width:{width:.0f}px"
    )
    if any(node.key for node in nodes):  # what is inside a picture cannot be reached by a screen reader
        plain = plain.replace('role="img"', 'role="group"', 1)
    return Markup('<div class="scroll lattice">{}</div>').format(Markup(plain))


def _box(node: LatticeBox, x: float, y: float, wide: float) -> str:
    share = min(1.0, max(0.0, node.loss))
    fill = f'fill="{BLUE}" fill-opacity="{0.06 + 0.54 * share:.2f}"' if node.anonymous else 'fill="none"'
    border = "" if node.anonymous else ' stroke-dasharray="4 3"'
    strong = (
        f'stroke="{ORANGE}" stroke-width="3"' if node.mark else 'stroke="currentColor" stroke-opacity=".55"'
    )
    key = (
        f' data-key="{escape(node.key)}" role="button" tabindex="-1" style="cursor:pointer" '
        f'aria-label="{escape(": ".join(filter(None, (node.mark, node.text, node.description))))}"'
        if node.key
        else ""
    )
    mark = (
        f'<text x="{x + wide / 2:.0f}" y="{y - 7:.0f}" text-anchor="middle" font-weight="600">{escape(node.mark)}</text>'
        if node.mark
        else ""
    )
    return (
        f'{mark}<g class="node"{key}><title>{escape(node.description)}</title>'
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{wide:.0f}" height="{_HIGH}" rx="7" {fill} {strong}{border}/>'
        f'<text x="{x + wide / 2:.0f}" y="{y + 20:.0f}" text-anchor="middle">{escape(node.text)}</text></g>'
    )
