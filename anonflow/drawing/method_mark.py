"""The look of a method in every picture: a colour and a shape that no other method has; and small pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from markupsafe import Markup

from anonflow.drawing.plots import COLOURS

SHAPES = {
    "circle": "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0 -5 0Z",
    "square": "M-4.5 -4.5H4.5V4.5H-4.5Z",
    "triangle": "M0 -5.5L5.5 4.5H-5.5Z",
    "diamond": "M0 -6L5.5 0L0 6L-5.5 0Z",
    "inverted_triangle": "M0 5.5L5.5 -4.5H-5.5Z",
    "hex": "M-2.9 -5H2.9L5.8 0L2.9 5H-2.9L-5.8 0Z",
    "star": "M0 -6L1.7 -2L6 -1.6L2.8 1.3L3.7 5.5L0 3.3L-3.7 5.5L-2.8 1.3L-6 -1.6L-1.7 -2Z",
    "square_pin": "M-5 -5Q0 -2 5 -5Q2 0 5 5Q0 2 -5 5Q-2 0 -5 -5Z",
}
"""Outlines around (0, 0)."""


@dataclass(frozen=True)
class Mark:
    """The look of one method.

    Attributes
    ----------
    colour : str
        ``#rrggbb``, of middle brightness: readable on a light page and on a dark one.
    shape : str
        A name of ``SHAPES``.
    """

    colour: str
    shape: str

    @classmethod
    def by_name(cls, name: str) -> Mark:
        """Return the look of a method that declares none, computed from its name, so that it never changes."""
        at = sum(name.encode())
        return cls(COLOURS[at % len(COLOURS)], list(SHAPES)[at % len(SHAPES)])

    def svg(self, size: int = 14) -> Markup:
        """Return the mark alone, to be shown beside the method's name."""
        return Markup(
            f'<svg viewBox="-7 -7 14 14" width="{size}" height="{size}" aria-hidden="true" '
            f'style="vertical-align:-2px"><path d="{SHAPES[self.shape]}" fill="{self.colour}"/></svg>'
        )


def mark_at(look: Mark, x: float, y: float, title: str, key: str = "", is_chosen: bool = False) -> str:
    """Return a mark at its place in a picture; with a key it can be clicked, and the chosen one has a ring."""
    place, text = f'transform="translate({x:.1f} {y:.1f})"', escape(title)
    if not key:
        return f'<path d="{SHAPES[look.shape]}" {place} fill="{look.colour}"><title>{text}</title></path>'
    ring = ' class="ring" stroke="currentColor" stroke-width="2"' if is_chosen else ""
    return (
        f'<g class="mark" {place} data-key="{escape(key)}" role="button" tabindex="-1" aria-label="{text}">'
        f'<circle r="12" fill="transparent"{ring}/><path d="{SHAPES[look.shape]}" fill="{look.colour}"/><title>{text}</title></g>'
    )


def sparkline(values: Sequence[float], title: str, most: float | None = None) -> Markup:
    """Return upright bars without axes, for a cell of a table.

    Parameters
    ----------
    values : sequence of float
        No value is negative.
    title : str
        A description of the bars: the tooltip, which screen readers read.
    most : float, optional
        The value of a full bar; by default the largest value.
    """
    width, tall = 96, 22
    top = max([*values, 0.0]) if most is None else most
    step = width / max(1, len(values))
    wide = max(1.0, min(step - 1.0, 14.0))
    bars = []
    for at, value in enumerate(values):
        high = 0.0 if top <= 0 else min(1.0, max(0.0, value / top)) * (tall - 2)
        bars.append(f"M{at * step:.1f} {tall}v-{max(high, 0.6):.1f}h{wide:.1f}V{tall}z")
    return Markup(
        f'<svg viewBox="0 0 {width} {tall}" width="{width}" height="{tall}" role="img" aria-label="{escape(title)}" '
        f'style="vertical-align:middle"><title>{escape(title)}</title>'
        f'<path d="{"".join(bars)}" fill="currentColor" fill-opacity=".6"/></svg>'
    )
