"""A picture of a hierarchy: root on the left, values on the right, its boundary marked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from typing import Any, Protocol

import numpy as np

from anonflow.drawing.fragments import Fragment, shortened
from anonflow.drawing.plots import BLUE, SKY, svg

BEYOND_LEGEND = "beyond a limit: never published"

STATUS = {
    "limit": "; limit: its values are published as this at the widest",
    "beyond": f"; {BEYOND_LEGEND}",
    "allowed": "",
}
"""What a limit means for a node, by its status."""

ROWS, STILL_ROWS = 120, 40
"""A level is drawn where the picture stays within so many rows; beyond, a node is opened by a click. Fewer where nothing can be clicked."""

OPENED = 400
"""Children of an opened node that are drawn."""

FITS = 24
"""Rows that are seen without scrolling."""

SHOWN = 22
"""Characters of a label; the whole label is its tooltip."""


class DrawnTree(Protocol):
    """What the picture needs of a hierarchy; :class:`anonflow.Hierarchy` has it."""

    labels: tuple[str, ...]
    first: Any
    last: Any

    @property
    def n_nodes(self) -> int:
        """Return how many nodes there are."""

    @property
    def n_leaves(self) -> int:
        """Return how many of them are leaves."""

    def children(self, node: int) -> Any:
        """Return the children of a node."""

    def bounds(self, boundary: Any) -> Any:
        """Return the first and the last leaf that each leaf may be generalized to."""


class TreeDrawing:
    """A drawing of a hierarchy.

    The drawn part of the tree is chosen level by level from the root: a level is drawn when all of it fits into
    ``ROWS`` rows, so that 5 values and 100 are drawn whole, and 10,000 as far as it helps. Then leaves of the
    drawn part get a row each, and other nodes the middle of their children (where the picture is scrolled: the first). O(rows) time and memory, besides
    O(leaves) for the boundary.

    Parameters
    ----------
    boundary : sequence of str
        Labels of nodes beyond which nothing may be generalized.
    picked : collection of str
        Labels that are marked, such as those about to be grouped.
    opened : collection of int
        Nodes whose children are drawn though there are many.
    counts : sequence of int, optional
        Records with each leaf's value, in the hierarchy's order.
    clicked : bool
        Whether nodes can be clicked: their key is ``node:`` and their number; what opens a node has ``open:``.

    Attributes
    ----------
    rows : int
        Rows of the picture.
    whole : bool
        Whether every node is in it.

    Raises
    ------
    HierarchyError
        If the boundary names what is no node.
    """

    def __init__(
        self,
        tree: DrawnTree,
        boundary: Sequence[str] = (),
        picked: Collection[str] = (),
        opened: Collection[int] = (),
        counts: Sequence[int] | None = None,
        clicked: bool = True,
    ) -> None:
        self.tree = tree
        self.limits = set(boundary)
        self.picked = set(picked)
        self.opened = set(opened)
        self.clicked = clicked
        self.counts = None if counts is None else np.concatenate([[0], np.cumsum(np.asarray(counts))])
        self._bounds = tree.bounds(list(boundary)) if boundary else None
        self.shown: dict[int, list[int]] = {}
        self._choose(ROWS if clicked else STILL_ROWS)
        self._place()

    # ------------------------------------------------------------------------------- what is drawn

    def _choose(self, most: int) -> None:
        rows, level = 1, [0]
        automatic = True
        while level:
            inner = [node for node in level if len(self.tree.children(node))]
            children = {node: self.tree.children(node).tolist() for node in inner}
            if automatic and level != [0]:
                automatic = rows + sum(min(len(c), most) - 1 for c in children.values()) <= most
            below: list[int] = []
            for node in inner:
                if not automatic and node not in self.opened:
                    continue
                few = children[node]
                if node in self.opened:
                    few = few[:OPENED]
                elif len(few) > most:
                    few = few[: most // 5]
                self.shown[node] = few
                rows += len(few) - 1 + (len(few) < len(children[node]))
                below += few
            level = below
        self.rows = rows

    @property
    def whole(self) -> bool:
        """Whether every node is drawn."""
        return 1 + sum(len(few) for few in self.shown.values()) == self.tree.n_nodes

    def _place(self) -> None:
        """Rows of drawn nodes, and of what stands for those that are not: ``rest_rows``."""
        self.at: dict[int, float] = {}
        self.rest_rows: dict[int, float] = {}
        self.levels: dict[int, int] = {0: 0}
        row = 0
        small = self.rows <= FITS or not self.clicked
        stack: list[tuple[int, bool]] = [(0, False)]
        while stack:
            node, is_revisit = stack.pop()
            few = self.shown.get(node)
            if few is None:
                self.at[node] = row
                row += 1
            elif is_revisit:
                last = self.rest_rows.get(node, self.at[few[-1]])
                # where the picture is scrolled, the root is to be seen first
                self.at[node] = (self.at[few[0]] + last) / 2 if small else self.at[few[0]]
            else:
                for child in few:
                    self.levels[child] = self.levels[node] + 1
                stack.append((node, True))
                if len(few) < len(self.tree.children(node)):
                    stack.append((~node, True))
                stack += [(child, False) for child in reversed(few)]
                continue
            while stack and stack[-1][0] < 0:
                self.rest_rows[~stack.pop()[0]] = row
                row += 1
        self.rows = row

    # -------------------------------------------------------------------------------- how it looks

    def status(self, node: int) -> str:
        """``limit``, ``beyond`` a limit, or ``allowed`` to be published."""
        if self.tree.labels[node] in self.limits:
            return "limit"
        if self._bounds is None:
            return "allowed"
        lo, hi = int(self.tree.first[node]), int(self.tree.last[node])
        within = self._bounds[lo : hi + 1]
        inside = bool((within[:, 0] <= lo).all() and (within[:, 1] >= hi).all())
        return "allowed" if inside else "beyond"

    def description_of(self, node: int) -> str:
        """Return what a node is, in words."""
        lo, hi = int(self.tree.first[node]), int(self.tree.last[node])
        records = None if self.counts is None else int(self.counts[hi + 1] - self.counts[lo])
        below = "a value" if hi == lo else f"{hi - lo + 1:,} values"
        counted = "" if records is None else f", {records:,} records"
        return f"{_label(self.tree.labels[node])}: {below}{counted}{STATUS[self.status(node)]}"

    def svg(self, title: str = "") -> Fragment:
        """Return the picture; its colours are attributes, which the style sheet of a page can override by the classes of its parts."""
        high, size = (28, 13.0) if self.rows <= 40 else (20, 11.5)
        letter = size * 0.6
        labels = {node: self._text(node) for node in self.at}
        left_out = {node: self._rest(node) for node in self.rest_rows}
        wide = [0.0] * (max(self.levels.values()) + 2)
        for texts, deeper in ((labels, 0), (left_out, 1)):
            for node, text in texts.items():
                level = self.levels[node] + deeper
                wide[level] = max(wide[level], len(text) * letter + 20)
        left = [0.0]
        for width in wide:
            left.append(left[-1] + (width + 34 if width else 0))
        right = left[-1] - 34
        bars = 90.0 if self.counts is not None else 0.0
        self._size = high, left, wide
        parts = [self._edges(node) for node in self.shown]
        parts += [self._node(node, text, right, bars) for node, text in labels.items()]
        parts += [self._stub(node, text) for node, text in left_out.items()]
        return svg(
            right + bars + 12, self.rows * high + 12, title or f"hierarchy of {self.tree.n_leaves:,} values",
            [f'<g font-size="{size}" dominant-baseline="central">', *parts, "</g>"], role="group" if self.clicked else "img",
        )  # fmt: skip

    def _text(self, node: int) -> str:
        text = shortened(_label(self.tree.labels[node]), SHOWN)
        if node not in self.shown and len(self.tree.children(node)):
            below = int(self.tree.last[node] - self.tree.first[node]) + 1
            text = f"{text}  ▸ {below:,}" if self.clicked else f"{text} ({below:,} values)"
        return f"◆ {text}" if self.status(node) == "limit" else text

    def _rest(self, node: int) -> str:
        """Return how many children of a node are not drawn, and how many values these are."""
        rest = self.tree.children(node)[len(self.shown[node]) :]
        values = int(self.tree.last[rest[-1]]) - int(self.tree.first[rest[0]]) + 1
        return f"… {len(rest):,} more" + (f" ({values:,} values)" if values > len(rest) else "")

    def _xy(self, level: int, row: float) -> tuple[float, float]:
        high, left, _ = self._size
        return left[level] + 6, row * high + high / 2 + 6

    def _box(self, level: int, row: float, look: str) -> str:
        high, _, wide = self._size
        x, y = self._xy(level, row)
        return (
            f'<rect x="{x:.1f}" y="{y - high / 2 + 2:.1f}" width="{wide[level]:.1f}" height="{high - 4}" '
            f'rx="{high / 2 - 2:.1f}" {look}/>'
        )

    def _edges(self, node: int) -> str:
        x, y = self._xy(self.levels[node], self.at[node])
        x += self._size[2][self.levels[node]]
        ends = [(child, self.at[child]) for child in self.shown[node]]
        if node in self.rest_rows:
            ends.append((-1, self.rest_rows[node]))
        edges = []
        for child, row in ends:
            u, v = self._xy(self.levels[node] + 1, row)
            bend = (u - x) / 2
            beyond = " beyond" if self.status(node) == "beyond" or child < 0 else ""
            edges.append(
                f'<path class="edge{beyond}" fill="none" stroke="currentColor" stroke-opacity=".35" '
                f'd="M{x:.1f} {y:.1f}C{x + bend:.1f} {y:.1f} {u - bend:.1f} {v:.1f} {u:.1f} {v:.1f}"/>'
            )
        return "".join(edges)

    def _node(self, node: int, text: str, right: float, bars: float) -> str:
        level, row = self.levels[node], self.at[node]
        x, y = self._xy(level, row)
        is_leaf = not len(self.tree.children(node))
        kinds = ["node", self.status(node)]
        kinds += ["leaf"] if is_leaf else []
        kinds += ["picked"] if self.tree.labels[node] in self.picked else []
        description = escape(self.description_of(node), quote=True)
        pressed = "true" if {"limit", "picked"} & set(kinds) else "false"
        says = ""
        if self.clicked:
            says = (
                f' data-key="node:{node}" tabindex="-1" role="button" aria-pressed="{pressed}" '
                f'aria-label="{description}"'
            )
        drawn = (
            f'<g class="{" ".join(kinds)}"{says}><title>{description}</title>'
            f'{self._box(level, row, _look(kinds))}<text x="{x + 10:.1f}" y="{y:.1f}">{escape(text)}</text></g>'
        )
        if node not in self.shown and not is_leaf and self.clicked:
            drawn += self._opener(node, x + self._size[2][level] + 4, y)
        if bars and self.counts is not None and is_leaf:
            leaf = int(self.tree.first[node])
            count = int(self.counts[leaf + 1] - self.counts[leaf])
            most = int(np.diff(self.counts).max()) or 1
            long = 44 * count / most
            drawn += (
                f'<rect class="bar" fill="{SKY}" x="{right + 8:.1f}" y="{y - 4:.1f}" width="{max(long, 1.0):.1f}" height="8" rx="2"/>'
                f'<text class="small" x="{right + 14 + long:.1f}" y="{y:.1f}" font-size="10.5">{count:,}</text>'
            )
        return drawn

    def _opener(self, node: int, x: float, y: float) -> str:
        return (
            f'<g class="more" data-key="open:{node}" tabindex="-1" role="button" '
            f'aria-label="show what is below {escape(_label(self.tree.labels[node]), quote=True)}">'
            f'<rect x="{x:.1f}" y="{y - 8:.1f}" width="20" height="16" rx="8"/>'
            f'<text x="{x + 6:.1f}" y="{y:.1f}">+</text></g>'
        )

    def _stub(self, node: int, text: str) -> str:
        level, row = self.levels[node] + 1, self.rest_rows[node]
        x, y = self._xy(level, row)
        opens = self.clicked and node not in self.opened
        says = f' data-key="open:{node}" tabindex="-1" role="button"' if opens else ""
        return (
            f'<g class="more"{says}>{self._box(level, row, _look(["more"]))}'
            f'<text x="{x + 10:.1f}" y="{y:.1f}" fill-opacity=".65">{text}</text></g>'
        )


def tree(hierarchy: DrawnTree, title: str = "hierarchy", marked: Sequence[str] = ()) -> Fragment:
    """Return a hierarchy as SVG.

    Parameters
    ----------
    hierarchy : Hierarchy
    title : str
        A description of the picture for screen readers.
    marked : sequence of str
        Labels of nodes beyond which nothing may be generalized: a boundary.
    """
    return TreeDrawing(hierarchy, marked, clicked=False).svg(title)


def _look(kinds: Collection[str]) -> str:
    """Return the colours of a node's box."""
    if "limit" in kinds:
        return f'fill="{BLUE}" fill-opacity=".3" stroke="{BLUE}"'
    if "leaf" in kinds:
        return 'fill="none"'
    dashes = ' stroke-dasharray="3 3"' if {"beyond", "more"} & set(kinds) else ""
    return f'fill="none" stroke="{BLUE}"{dashes}'


def _label(label: str) -> str:
    """Return a label as it is shown; the empty one stands for a missing value."""
    return label if label else "(missing)"
