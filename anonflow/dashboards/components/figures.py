"""Interactive figures: results against k, the risk-utility frontier, distributions before and after."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, NumeralTickFormatter, Range1d, TapTool
from bokeh.plotting import figure

from anonflow.algorithms.registry import look_of
from anonflow.drawing.plots import BLUE, ORANGE
from anonflow.utility.distributions import Distribution
from anonflow.utility.frontier import frontier

FONT = "system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

RING = "ring"
"""The name of what marks the chosen run in a figure."""

Tap = Callable[[int], None]

_DAY = 86_400_000.0
"""Milliseconds, in which figures count time."""


@dataclass(frozen=True)
class Palette:
    """Colours of text and lines; what is behind them shines through.

    Attributes
    ----------
    ink, soft, line, page : str
        Of text, of lesser text, of the grid, and of what is behind.
    """

    ink: str
    soft: str
    line: str
    page: str


LIGHT = Palette("#1d2329", "#5b6670", "#dfe4e8", "#ffffff")
DARK = Palette("#e6e9ec", "#a4b0bb", "#39424c", "#161b20")


@dataclass(frozen=True)
class Point:
    """One run in a figure.

    Attributes
    ----------
    id : int
        Of the run.
    name : str
        Of the run.
    group : str
        The group of a line: runs over other quasi-identifiers are not on the same line.
    """

    id: int
    name: str
    algorithm: str
    x: float
    y: float
    group: str = ""


def look(dark: bool) -> Palette:
    """Return the colours of a light or a dark page."""
    return DARK if dark else LIGHT


def recolour(plot: figure, look: Palette) -> None:
    """Give a figure the colours of a light or a dark page; nothing is drawn anew."""
    before = LIGHT if look is DARK else DARK
    change = {getattr(before, each.name): getattr(look, each.name) for each in fields(Palette)}
    for model in plot.references():
        for name, value in model.properties_with_values(include_defaults=False).items():
            colour = getattr(value, "value", value)
            if isinstance(colour, str) and colour in change and "color" in name:
                setattr(model, name, change[colour])


def _figure(look: Palette, height: int, across: str, up: str, **params: Any) -> figure:
    plot = figure(
        height=height,
        sizing_mode="stretch_width",
        toolbar_location=None,
        tools="",
        background_fill_alpha=0.0,
        border_fill_alpha=0.0,
        outline_line_color=None,
        x_axis_label=across,
        y_axis_label=up,
        **params,
    )
    for axis in (*plot.xaxis, *plot.yaxis):
        axis.axis_line_color = look.line
        axis.major_tick_line_color = look.line
        axis.minor_tick_line_color = None
        axis.major_label_text_color = look.ink
        axis.major_label_text_font = FONT
        axis.major_label_text_font_size = "12px"
        axis.axis_label_text_color = look.soft
        axis.axis_label_text_font = FONT
        axis.axis_label_text_font_size = "12.5px"
        axis.axis_label_text_font_style = "normal"
    plot.xgrid.grid_line_color = None
    plot.ygrid.grid_line_color = look.line
    return plot


def _listen(source: ColumnDataSource, tap: Tap | None) -> None:
    """Call `tap` with the id of a run each time it is tapped."""
    if tap is None:
        return

    def tapped(attr: str, old: list[int], new: list[int]) -> None:
        if new:
            id = int(source.data["id"][new[0]])
            source.selected.indices = []  # so that a second tap is noticed
            tap(id)

    source.selected.on_change("indices", tapped)


def _marks(
    plot: figure, points: Sequence[Point], xs: Sequence[Any], look: Palette, tap: Tap | None
) -> list[Any]:
    """Return the points, each with the look of its method; what was drawn."""
    drawn = []
    for algorithm in dict.fromkeys(point.algorithm for point in points):
        own = [at for at, point in enumerate(points) if point.algorithm == algorithm]
        mark = look_of(algorithm)
        source = ColumnDataSource(
            {
                "x": [xs[at] for at in own],
                "y": [points[at].y for at in own],
                "id": [points[at].id for at in own],
                "name": [points[at].name for at in own],
            }
        )
        drawn.append(
            plot.scatter(
                "x",
                "y",
                source=source,
                marker=mark.shape,
                size=13,
                fill_color=mark.colour,
                line_color=look.page,
                line_width=1.2,
                nonselection_fill_alpha=1.0,
                nonselection_line_alpha=1.0,
            )
        )
        _listen(source, tap)
    return drawn


def _ring(plot: figure, chosen: int | None, look: Palette) -> None:
    plot.scatter(
        "x", "y", source=ColumnDataSource({"x": [], "y": []}), marker="circle", size=24, fill_color=None,
        line_color=look.ink, line_width=2, name=RING,
    )  # fmt: skip
    move_ring(plot, chosen)


def move_ring(plot: figure, chosen: int | None) -> None:
    """Draw the ring of a figure around the mark of a run, and nothing else anew; no ring where the run has no mark."""
    places: dict[str, list[Any]] = {"x": [], "y": []}
    for drawn in plot.renderers:
        data = drawn.data_source.data
        for at, id in enumerate(data.get("id", ())):
            if id == chosen:
                places = {"x": [data["x"][at]], "y": [data["y"][at]]}
    plot.select_one({"name": RING}).data_source.data = places


def _hover(plot: figure, drawn: Sequence[Any], tips: list[tuple[str, str]], tap: Tap | None) -> None:
    plot.add_tools(HoverTool(renderers=list(drawn), tooltips=tips))
    if tap is not None:
        plot.add_tools(TapTool(renderers=list(drawn)))


def against_k(
    points: Sequence[Point],
    up: str,
    look: Palette,
    *,
    chosen: int | None = None,
    tap: Tap | None = None,
    number: str = "0.0000",
    height: int = 270,
) -> figure:
    """Return a measure against k, a line for each method; with a single k, the methods side by side.

    Parameters
    ----------
    points : sequence of Point
        ``x`` is k, ``y`` the measure. Of several runs of a method with the same k the latest is on the line.
    up : str
        What the measure is called.
    chosen : int, optional
        Id of the run that gets a ring.
    tap : callable, optional
        Called with the id of a run whose mark is tapped.
    number : str
        How numbers are written.
    height : int
        In pixels.
    """
    shown = [point for point in points if math.isfinite(point.y)]
    ks = sorted({point.x for point in shown})
    values = [point.y for point in shown if point.y > 0]
    scale = "log" if values and max(values) > 30 * min(values) and len(values) == len(shown) else "linear"
    if len(ks) <= 1:
        methods = list(dict.fromkeys(point.algorithm for point in shown))
        across = "" if not ks else f"method (k = {ks[0]:g})"
        plot = _figure(look, height, across, up, x_range=methods or ["–"], y_axis_type=scale)
        plot.xaxis.major_label_orientation = _turn(methods, 260)
        xs: list[Any] = [point.algorithm for point in shown]
    else:
        plot = _figure(look, height, "k", up, y_axis_type=scale)
        across = "log" if ks[-1] > 8 * ks[0] else "linear"
        if across == "log":  # otherwise small ks, which are close, would overlap
            plot = _figure(look, height, "k", up, y_axis_type=scale, x_axis_type="log")
            plot.x_range = Range1d(ks[0] / 1.25, ks[-1] * 1.25)
        else:
            margin = 0.06 * (ks[-1] - ks[0])
            plot.x_range = Range1d(ks[0] - margin, ks[-1] + margin)
        plot.xaxis.ticker = FixedTicker(ticks=_apart(ks, across == "log"))
        plot.xaxis.formatter = NumeralTickFormatter(format="0")
        xs = [point.x for point in shown]
        for algorithm, group in dict.fromkeys((point.algorithm, point.group) for point in shown):
            own = [p for p in shown if (p.algorithm, p.group) == (algorithm, group)]
            latest = {p.x: p.y for p in sorted(own, key=lambda p: p.id)}
            line = sorted(latest.items())
            colour = look_of(algorithm).colour
            plot.line([x for x, _ in line], [y for _, y in line], line_width=2, line_color=colour)
    if scale == "log":
        plot.yaxis.formatter = NumeralTickFormatter(format="0.[000]")
        plot.y_range = Range1d(min(values) / 1.8, 1.8 * max(values))
    else:
        plot.y_range.start = 0.0
        plot.y_range.end = 1.12 * max(values, default=1.0)  # the ring stays inside
    drawn = _marks(plot, shown, xs, look, tap)
    _ring(plot, chosen, look)
    _hover(plot, drawn, [("run", "@name"), (up.split(",")[0], f"@y{{{number}}}")], tap)
    return plot


def _turn(labels: Sequence[str], room: float) -> float | str:
    """Return how far labels side by side are turned, so that none touches its neighbour, on an axis of so many pixels."""
    each = room / max(1, len(labels))
    if max(map(len, labels), default=0) * 7.2 + 6 <= each:
        return "horizontal"
    slanted = 0.7
    return slanted if each * math.sin(slanted) >= 14 else "vertical"


def _apart(ks: Sequence[float], is_log: bool) -> list[float]:
    """Return the first and the last k, and those between them whose labels do not overlap."""
    places = [math.log(k) for k in ks] if is_log else list(ks)
    least = 0.09 * (places[-1] - places[0])  # a label's share of an axis
    kept = [0]
    for at in range(1, len(ks) - 1):
        if places[at] - places[kept[-1]] >= least and places[-1] - places[at] >= least:
            kept.append(at)
    return [ks[at] for at in kept] + [ks[-1]]


def risk_and_loss(
    points: Sequence[Point],
    across: str,
    look: Palette,
    *,
    chosen: int | None = None,
    tap: Tap | None = None,
    height: int = 380,
) -> figure:
    """Return the risk-utility frontier: every run by its risk and its loss, and a line through those that none beats.

    Parameters
    ----------
    points : sequence of Point
        ``x`` is the risk, ``y`` the GCP, both between 0 and 1.
    across : str
        What the risk is.
    chosen, tap, height
        As for :func:`against_k`.
    """
    shown = [point for point in points if math.isfinite(point.x) and math.isfinite(point.y)]
    plot = _figure(look, height, across, "information loss (GCP), lower is better")
    plot.xgrid.grid_line_color = look.line
    plot.xaxis.formatter = NumeralTickFormatter(format="0.[0] %")
    plot.y_range.start = plot.x_range.start = 0.0
    plot.x_range.end = 1.12 * max((point.x for point in shown), default=1.0)
    plot.y_range.end = 1.15 * (max((point.y for point in shown), default=1.0) or 1.0)
    best = frontier([point.x for point in shown], [point.y for point in shown])
    if len(best):
        # beyond the ends: as safe as the safest at more loss, as good as the best at more risk
        line = [(shown[at].x, shown[at].y) for at in best]
        xs = [line[0][0], *(x for x, _ in line), plot.x_range.end]
        ys = [plot.y_range.end, *(y for _, y in line), line[-1][1]]
        plot.step(xs, ys, mode="after", line_color=look.soft, line_dash="dashed", line_width=1.6)
    risks = [point.x for point in shown]
    drawn = _marks(plot, shown, risks, look, tap)
    _ring(plot, chosen, look)
    _hover(plot, drawn, [("run", "@name"), ("risk", "@x{0.00 %}"), ("GCP", "@y{0.0000}")], tap)
    return plot


def overlay(distribution: Distribution, look: Palette, height: int = 330) -> figure:
    """Return a column before (bars) and after (marks over them; joined by a line where the values are in order)."""
    bars_in_all = len(distribution.labels)
    if distribution.edges is not None:
        plot = _figure(
            look,
            height,
            distribution.name,
            "share of records",
            x_axis_type="datetime" if distribution.dates else "linear",
        )
        edges = distribution.edges * _DAY if distribution.dates else distribution.edges
        left, right = edges[:-1], edges[1:]
        middle: Any = (left + right) / 2
        bars_in_all = len(left)  # missing values have no place among numbers
    else:
        labels = [label or "(empty)" for label in distribution.labels]
        names = [f"{label}{'​' * labels[:at].count(label)}" for at, label in enumerate(labels)]
        plot = _figure(look, height, distribution.name, "share of records", x_range=names)
        plot.xaxis.major_label_orientation = _turn(names, 640)
        middle = names
    source = ColumnDataSource(
        {
            "x": middle,
            "label": list(distribution.labels[:bars_in_all]),
            "before": distribution.original[:bars_in_all],
            "after": distribution.published[:bars_in_all],
        }
    )
    if distribution.edges is not None:
        source.add(left, "left")
        source.add(right, "right")
        bars = plot.quad(
            left="left", right="right", bottom=0, top="before", source=source,
            fill_color=BLUE, fill_alpha=0.45, line_color=BLUE, legend_label="original",
        )  # fmt: skip
    else:
        bars = plot.vbar(
            "x", top="before", width=0.82, source=source,
            fill_color=BLUE, fill_alpha=0.45, line_color=BLUE, legend_label="original",
        )  # fmt: skip
    if distribution.ordered or distribution.edges is not None:
        numbers = [
            at for at, label in enumerate(distribution.labels[:bars_in_all]) if label != distribution.beside
        ]
        plot.line([middle[at] for at in numbers], [distribution.published[at] for at in numbers],
                  line_color=ORANGE, line_width=2, legend_label="published")  # fmt: skip
    dots = plot.scatter(
        "x", "after", source=source, marker="diamond", size=11, fill_color=ORANGE, line_color=look.page,
        legend_label="published",
    )  # fmt: skip
    plot.y_range.start = 0.0
    plot.yaxis.formatter = NumeralTickFormatter(format="0.[0] %")
    legend = plot.legend[0]
    legend.background_fill_alpha = legend.border_line_alpha = 0.0
    legend.label_text_color, legend.label_text_font = look.ink, FONT
    legend.orientation, legend.location = "horizontal", "top_right"
    plot.center.remove(legend)
    plot.add_layout(legend, "above")
    plot.add_tools(
        HoverTool(
            renderers=[bars, dots],
            tooltips=[
                (distribution.name, "@label"),
                ("original", "@before{0.0 %}"),
                ("published", "@after{0.0 %}"),
            ],
        )
    )
    return plot
