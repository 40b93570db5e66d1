"""Figures of runs against k, and of a column before and after: numbers, names of runs, and the owner's values, all escaped."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Protocol

import numpy as np

from anonflow.drawing.fragments import Fragment
from anonflow.drawing.method_mark import SHAPES, Mark, mark_at
from anonflow.drawing.plots import BLUE, ORANGE, Axis, framed, svg, ticks


@dataclass(frozen=True)
class Point:
    """One run in a figure.

    Attributes
    ----------
    id : int
        Of the run; so it is the key of its mark, ``run:`` and this number.
    group : str
        The group of a line: runs over other quasi-identifiers are not on the same line.
    """

    id: int
    name: str
    algorithm: str
    x: float
    y: float
    group: str = ""

    @property
    def key(self) -> str:
        """The key of its mark."""
        return f"run:{self.id}"


class BeforeAndAfter(Protocol):
    """The attributes of a distribution that its picture needs; :class:`anonflow.utility.distributions.Distribution` has them."""

    name: str
    labels: Sequence[str]
    original: Any
    published: Any
    edges: Any
    dates: bool
    ordered: bool
    beside: str


def against_k(
    points: Sequence[Point],
    up: str,
    look_of: Callable[[str], Mark],
    *,
    chosen: int | None = None,
    number: str = ".4f",
    width: int = 420,
) -> Fragment:
    """Return a measure against k, a line for each method; with a single k, the methods side by side.

    Parameters
    ----------
    points : sequence of Point
        ``x`` is k, ``y`` the measure. Of several runs of a method with the same k the latest is on the line.
    up : str
        What the measure is called.
    look_of : callable
        The look of a method, by its name.
    chosen : int, optional
        Id of the run that gets a ring.
    number : str
        How numbers are written.
    width : int
        In pixels.
    """
    marks = [point for point in points if math.isfinite(point.y)]
    ks = sorted({point.x for point in marks})
    if len(ks) > 1:
        x = k_axis(ks)
        xs = [point.x for point in marks]
    else:
        methods = list(dict.fromkeys(point.algorithm for point in marks))
        x = _side_by_side(f"method (k = {ks[0]:g})" if ks else "", methods)
        xs = [methods.index(point.algorithm) + 0.5 for point in marks]
    height = 290 + x.slant(width) // 2
    place, inside = framed(x, _measure_axis(up, [point.y for point in marks]), height, 20, width)
    if len(ks) > 1:
        for algorithm, group in dict.fromkeys((point.algorithm, point.group) for point in marks):
            series = [point for point in marks if (point.algorithm, point.group) == (algorithm, group)]
            latest = {point.x: point.y for point in sorted(series, key=lambda point: point.id)}
            inside.append(_line([place(*at) for at in sorted(latest.items())], look_of(algorithm).colour))
    for point, across in zip(marks, xs, strict=True):
        title = f"{point.name}: {up.split(',')[0]} {point.y:{number}}"
        inside.append(
            mark_at(look_of(point.algorithm), *place(across, point.y), title, point.key, point.id == chosen)
        )
    return svg(width, height, f"{up} against k, {len(marks)} runs", inside, role="group")


def k_axis(ks: Sequence[float]) -> Axis:
    """Return an axis for at least two ks, in their order: on it the first and the last, and those between whose labels do not overlap."""
    log = ks[-1] > 8 * ks[0]  # otherwise small ks, which are close, would overlap
    places = [math.log(k) for k in ks] if log else list(ks)
    least = 0.09 * (places[-1] - places[0])  # a label's share of an axis
    indices = [0]
    for at in range(1, len(ks) - 1):
        if places[at] - places[indices[-1]] >= least and places[-1] - places[at] >= least:
            indices.append(at)
    labelled = [(k, f"{k:g}") for k in (*(ks[at] for at in indices), ks[-1])]
    margin = 0.06 * (ks[-1] - ks[0])
    low, high = (ks[0] / 1.25, ks[-1] * 1.25) if log else (ks[0] - margin, ks[-1] + margin)
    return Axis("k", low, high, labelled, log)


def _measure_axis(name: str, values: Sequence[float]) -> Axis:
    """Return an axis from 0, or one of equal factors where values are far apart."""
    least, most = min(values, default=0.0), max(values, default=0.0)
    if least > 0 and most > 30 * least:
        low, high = least / 1.8, most * 1.8
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        round_ones = [10.0**power for power in powers if low <= 10.0**power <= high]
        return Axis(name, low, high, [(value, f"{value:g}") for value in round_ones], log=True)
    high = 1.12 * most or 1.0  # the ring stays inside
    return Axis(name, 0.0, high, [(value, f"{value:g}") for value in ticks(0.0, high)])


def _side_by_side(name: str, labels: Sequence[str]) -> Axis:
    return Axis(name, 0.0, float(max(1, len(labels))), [(at + 0.5, label) for at, label in enumerate(labels)])


def _line(places: Sequence[tuple[float, float]], colour: str) -> str:
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    return (
        f'<path class="line" d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>' if places else ""
    )


def overlay(shares: BeforeAndAfter) -> Fragment:
    """Return a column before (bars) and after (diamonds over them; joined by a line where the values are in order)."""
    width, gap = 1000, 0.0
    if shares.edges is None:
        labels = [label or "(empty)" for label in shares.labels]
        edges, gap = np.arange(len(labels) + 1.0), 0.09
        x = _side_by_side(shares.name, labels)
    else:  # missing values have no place among numbers
        edges, labels = np.asarray(shares.edges, float), list(shares.labels[: len(shares.edges) - 1])
        low, high = float(edges[0]), float(edges[-1])
        marks = (
            _date_ticks(low, high) if shares.dates else [(value, f"{value:g}") for value in ticks(low, high)]
        )
        x = Axis(shares.name, low, high, marks)
    before, after = shares.original[: len(labels)], shares.published[: len(labels)]
    most = 1.1 * float(max(*before, *after, 0.0)) or 1.0
    height = 330 + x.slant(width)
    place, inside = framed(
        x,
        Axis("share of records", 0.0, most, [(at, f"{100 * at:g}%") for at in ticks(0.0, most)]),
        height,
        20,
        width,
    )
    for label, left, right, old, new in zip(labels, edges[:-1], edges[1:], before, after, strict=True):
        (u, v), (w, floor) = place(float(left) + gap, float(old)), place(float(right) - gap, 0.0)
        inside.append(
            f'<rect class="before" x="{u:.1f}" y="{v:.1f}" width="{max(1.0, w - u - 1):.1f}" height="{floor - v:.1f}" fill="{BLUE}" '
            f'fill-opacity=".45" stroke="{BLUE}"><title>{escape(label)}: original {old:.1%}, published {new:.1%}</title></rect>'
        )
    middles = [
        place(float(at), float(new)) for at, new in zip((edges[:-1] + edges[1:]) / 2, after, strict=True)
    ]
    if shares.ordered or shares.edges is not None:
        inside.append(
            _line([at for at, label in zip(middles, labels, strict=True) if label != shares.beside], ORANGE)
        )
    inside += [
        mark_at(Mark(ORANGE, "diamond"), *at, label) for at, label in zip(middles, labels, strict=True)
    ]
    inside.append(
        f'<rect x="{width - 200}" y="6" width="14" height="10" fill="{BLUE}" fill-opacity=".45" stroke="{BLUE}"/>'
        f'<text x="{width - 180}" y="16">original</text>'
        f'<path d="{SHAPES["diamond"]}" transform="translate({width - 102} 11)" fill="{ORANGE}"/><text x="{width - 90}" y="16">published</text>'
    )
    return svg(width, height, f"{shares.name}, original and published", inside)


def _date_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return some seven years, months or days between two numbers of days since 1970, and how they are written."""
    unit = "Y" if high - low > 3 * 366 else "M" if high - low > 93 else "D"
    first, last = (np.datetime64(math.ceil(end), "D").astype(f"datetime64[{unit}]") for end in (low, high))
    dates = np.arange(first, last + 1)
    dates = dates[:: max(1, math.ceil(len(dates) / 7))]
    days = dates.astype("datetime64[D]").astype(np.int64).tolist()
    return [(float(day), str(date)) for day, date in zip(days, dates, strict=True) if low <= day <= high]
