"""A picture of a hierarchy: the root on the left, a row for each leaf; a large hierarchy is abbreviated with counts."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

from markupsafe import Markup

from anonflow.drawing.fragments import Fragment, shortened
from anonflow.drawing.plots import BLUE, svg

ROWS = 40
"""The most rows of a picture; a larger hierarchy is folded."""

CHILDREN = 12
"""The most children of a node that are shown; one row counts the others."""

_ROW = 22
_LETTER = 7.2
_GAP = 34
_LONGEST = 30


class DrawnTree(Protocol):
    """The attributes of a hierarchy that the picture needs; :class:`anonflow.Hierarchy` has them."""

    @property
    def labels(self) -> Sequence[str]:
        """Return the labels of the nodes, in preorder."""

    @property
    def first(self) -> Any:
        """Return the first leaf below each node."""

    @property
    def last(self) -> Any:
        """Return the last leaf below each node."""

    def children(self, node: int) -> Any:
        """Return the children of a node."""


class DrawnNode:
    """A node of a picture, or a row that stands for several.

    Attributes
    ----------
    node : int or None
        None if the row stands for children that are not shown.
    text : str
    depth : int
    row : float
        The position from the top; an inner node is in the middle of the nodes below it.
    below : list of DrawnNode
    """

    def __init__(self, node: int | None, text: str, depth: int) -> None:
        self.node, self.text, self.depth = node, text, depth
        self.row = 0.0
        self.below: list[DrawnNode] = []


def arranged(hierarchy: DrawnTree, rows: int = ROWS, children: int = CHILDREN) -> DrawnNode:
    """Return the nodes that are shown, with their positions.

    Parameters
    ----------
    hierarchy : Hierarchy
    rows : int
        About the largest number of rows: nodes are unfolded level by level while there is room.
    children : int
        Children shown of one node.

    Returns
    -------
    DrawnNode
        The root. O(rows * children) time, whatever the size of the hierarchy.
    """
    root = DrawnNode(0, hierarchy.labels[0], 0)
    used, waiting = 1, deque([(root, 0)])
    while waiting:
        parent, node = waiting.popleft()
        below = hierarchy.children(node)
        if not len(below):
            continue
        shown = len(below) if len(below) <= children else children - 1
        more = 1 if shown < len(below) else 0
        if used + shown + more - 1 > rows and parent is not root:
            leaves = int(hierarchy.last[node]) - int(hierarchy.first[node]) + 1
            parent.text = f"{shortened(parent.text, _LONGEST)} ({leaves:,} values)"
            continue
        used += shown + more - 1
        parent.below = [
            DrawnNode(int(child), hierarchy.labels[int(child)], parent.depth + 1) for child in below[:shown]
        ]
        waiting.extend(zip(parent.below, below[:shown].tolist(), strict=True))
        if more:
            rest = below[shown:]
            leaves = int(hierarchy.last[int(rest[-1])]) - int(hierarchy.first[int(rest[0])]) + 1
            text = f"… {len(rest):,} more" + (f" ({leaves:,} values)" if leaves > len(rest) else "")
            parent.below.append(DrawnNode(None, text, parent.depth + 1))
    _place(root, 0)
    return root


def _place(node: DrawnNode, row: int) -> int:
    """Place a node and those below it from `row` on, and return the next free row; recursion is at most ``ROWS`` deep."""
    if not node.below:
        node.row = float(row)
        return row + 1
    for child in node.below:
        row = _place(child, row)
    node.row = (node.below[0].row + node.below[-1].row) / 2
    return row


def tree(hierarchy: DrawnTree, title: str = "hierarchy", marked: Sequence[str] = ()) -> Fragment:
    """Return a hierarchy as SVG.

    Parameters
    ----------
    hierarchy : Hierarchy
    title : str
        A description of the picture for screen readers.
    marked : sequence of str
        Labels of nodes that are drawn filled, such as a boundary.
    """
    root = arranged(hierarchy)
    every = list(_walk(root))
    wide = [0.0] * (1 + max(node.depth for node in every))
    for node in every:
        wide[node.depth] = max(wide[node.depth], 16 + _LETTER * len(shortened(node.text, _LONGEST + 18)))
    left = [8.0]
    for width in wide:
        left.append(left[-1] + width + _GAP)
    wanted = set(marked)
    edges, nodes = [], []
    for node in every:
        x, y = left[node.depth], _ROW * (node.row + 0.5)
        text = shortened(node.text, _LONGEST + 18)
        start = x + 14 + _LETTER * len(text)
        for child in node.below:
            cx, cy = left[child.depth] - 6, _ROW * (child.row + 0.5)
            bend = (left[child.depth] - _GAP + cx) / 2
            edges.append(
                f'<path d="M{start:.0f} {y:.1f}H{left[child.depth] - _GAP:.0f}C{bend:.0f} {y:.1f} {bend:.0f} {cy:.1f} {cx:.0f} {cy:.1f}" '
                'fill="none" stroke="currentColor" stroke-opacity=".35"/>'
            )
        filled = node.node is not None and hierarchy.labels[node.node] in wanted
        dot = BLUE if filled else "none"
        if node.node is not None:
            nodes.append(
                f'<circle cx="{x:.0f}" cy="{y:.1f}" r="4" fill="{dot}" stroke="{BLUE}" stroke-width="1.5"/>'
            )
        soft = ' fill-opacity=".65"' if node.node is None else ""
        nodes.append(
            str(
                Markup('<text x="{}" y="{}"{}>{}</text>').format(
                    f"{x + 10:.0f}", f"{y + 4:.1f}", Markup(soft), text
                )
            )
        )
    height = _ROW * (1 + max(node.row for node in every))
    return svg(left[-1] - _GAP + 8, height, title, [*edges, *nodes])


def _walk(top: DrawnNode) -> list[DrawnNode]:
    nodes, waiting = [], [top]
    while waiting:
        at = waiting.pop()
        nodes.append(at)
        waiting.extend(reversed(at.below))
    return nodes
