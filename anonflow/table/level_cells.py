"""The levels at which a column can be published: its values, nodes, intervals, hidden positions, nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from anonflow.errors import ParameterError
from anonflow.hierarchy import Hierarchy, number_text
from anonflow.hierarchy.calendar import NESTED_UNITS, periods
from anonflow.table.domain import Domain
from anonflow.table.published.published_cells import WHOLE

VALUES = "values"
"""The level at which a column's values are published as they are."""

STEPS = 32
"""Without widths, the first width of a numeric column is the least 1, 2 or 5 times a power of ten that cuts its
domain into at most so many intervals; each further one is twice as wide."""

MOST_WIDTHS = 40
"""Widths of one column."""

_DAYS = (1, 31, 92, 184, 366, 1827, 3653)
"""The most days that the periods of `NESTED_UNITS` have."""

Runs = list[tuple[np.ndarray, np.ndarray]]


def node_runs(tree: Hierarchy) -> tuple[list[str], Runs]:
    """Return the levels of a hierarchy: at level h each leaf is published as its highest ancestor of height at most h.

    Returns
    -------
    labels : list of str, length L
    runs : list of one pair of numpy.ndarray, each shape (L, D + 1), int32
        First and last code of the published run of each code; the last entry is that of a missing number.
    """
    nodes = np.array([tree.at_level(height) for height in range(int(tree.height[0]) + 1)])
    labels = ["values", *(f"level {height}" for height in range(1, len(nodes) - 1)), "*"]
    return labels, [(_with_missing(tree.first[nodes], 0), _with_missing(tree.last[nodes], tree.n_leaves - 1))]


def interval_runs(domain: Domain, widths: Sequence[float] | None) -> tuple[list[str], Runs]:
    """Return the levels of numbers: intervals that begin at multiples of their width; see :func:`node_runs`.

    Parameters
    ----------
    domain : Domain
    widths : sequence of float or None
        In the column's unit, ascending, each a multiple of the one before; None for widths that double, and of dates for
        the periods of the calendar.
    """
    size = domain.size
    codes = np.arange(size)
    lo, hi, labels = [codes], [codes], ["values"]

    def add(label: str, interval: np.ndarray) -> None:
        starts = np.flatnonzero(np.diff(interval, prepend=-np.inf))
        member = np.cumsum(np.diff(interval, prepend=-np.inf) > 0) - 1
        lo.append(starts[member])
        hi.append(np.append(starts[1:], size)[member] - 1)
        labels.append(label)

    if widths is None and domain.dates and size:
        for unit in NESTED_UNITS:
            add(unit, periods(_as_dates(domain.points), unit).astype(np.float64))
        widths = ()
    widths = _default_widths(domain.points) if widths is None else widths
    if len(widths) and size:
        interval = np.floor(domain.points / widths[0])
        for at, width in enumerate(widths):
            if at:  # computed from the intervals before, so that they nest in spite of rounding
                interval = np.floor(interval / round(width / widths[at - 1]))
            add(f"width {number_text(width)}", interval)
    lo.append(np.zeros(size, np.int64))
    hi.append(np.full(size, size - 1))
    return [*labels, "*"], [(_with_missing(np.array(lo), 0), _with_missing(np.array(hi), size - 1))]


def coded_runs(domains: Sequence[Domain], widths: Sequence[float] | None) -> tuple[list[str], Runs]:
    """Return the levels of numbers and the codes beside them; see :func:`interval_runs`, with a pair for the codes, too.

    A code is published as it is at each level but the last, which hides numbers and codes alike.
    """
    numbers, codes = domains
    labels, ((lo, hi),) = interval_runs(numbers, widths)
    lo[:-1, -1], hi[:-1, -1] = numbers.size, -1  # no number where a code is shown
    first = np.tile(np.arange(codes.size), (len(labels), 1))
    last = first.copy()
    first[-1], last[-1] = 0, codes.size - 1
    return labels, [(lo, hi), (_with_missing(first, 0), _with_missing(last, codes.size - 1))]


def _as_dates(points: np.ndarray) -> np.ndarray:
    """Return days since 1970 as dates."""
    return np.floor(points).astype(np.int64).astype("datetime64[D]")


def position_runs(domains: Sequence[Domain]) -> tuple[list[str], Runs]:
    """Return the levels of a code, whose last positions are hidden first; see :func:`node_runs`, with a pair for each position."""
    count = len(domains)
    runs = []
    for position, domain in enumerate(domains):
        hidden = (np.arange(count + 1) > count - 1 - position)[:, None]
        codes = np.arange(domain.size)
        lo = np.where(hidden, 0, codes)
        hi = np.where(hidden, domain.size - 1, codes)
        runs.append((_with_missing(lo, 0), _with_missing(hi, domain.size - 1)))
    return ["values", *(f"{hidden} hidden" for hidden in range(1, count)), "*"], runs


def _with_missing(runs: np.ndarray, end: int) -> np.ndarray:
    """Return the ends of runs (L, D), and those of a missing number, which only the whole domain covers."""
    return np.column_stack([runs, np.full(len(runs), end)]).astype(np.int32)


def _default_widths(points: np.ndarray) -> list[float]:
    span = float(points[-1] - points[0]) if len(points) else 0.0
    if not 0 < span < math.inf:
        return []
    ten = 10.0 ** math.floor(math.log10(span / STEPS))
    width = next(width for width in (ten, 2 * ten, 5 * ten, 10 * ten) if span / width <= STEPS)
    widths: list[float] = []
    while width < span and len(widths) < MOST_WIDTHS:
        widths.append(width)
        width *= 2
    return widths


@dataclass(frozen=True, eq=False)
class CellsAtLevel:
    """The published cells of one coded quasi-identifier (QI) at a level of its column.

    Attributes
    ----------
    share : fractions.Fraction
        How much of the QI the level hides: 0 where values are published as they are, 1 where they are hidden; of a
        node its level as a share of the tree's height, of an interval its width as a share of the domain's, in whole
        thousandths.
    """

    share: Fraction


@dataclass(frozen=True, eq=False)
class RunsAtLevel(CellsAtLevel):
    """The published cells of a QI at a level between its values and nothing.

    Attributes
    ----------
    lo, hi : numpy.ndarray, shape (D + 1,), int32
        The run that each code is published as, the last one that of a missing number.
    """

    lo: np.ndarray
    hi: np.ndarray

    def hold(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Return whether published runs are cells of this level, shape (n,), bool.

        Parameters
        ----------
        first, last : numpy.ndarray, shape (n,), int32
            First and last code of each run; of an empty run, the last one is below the first.
        """
        size = len(self.lo) - 1
        at = np.where((first <= last) & (first < size), first, 0)
        whole = (first == self.lo[-1]) & (last == self.hi[-1])
        return np.asarray((first <= last) & (self.lo[at] == first) & (self.hi[at] == last) | whole)

    def narrowed(self, values: np.ndarray) -> RunsAtLevel:
        """Return the same with cells that end at some values, those of a missing number as they are; see :func:`ends_among`."""
        lo, hi = ends_among(values, self.lo[:-1], self.hi[:-1])
        return replace(self, lo=np.append(lo, self.lo[-1]), hi=np.append(hi, self.hi[-1]))


def ends_among(values: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last of some ascending codes in each run; where a run has none of them, the run itself."""
    if not len(values):
        return lo, hi
    first = values[np.minimum(np.searchsorted(values, lo), len(values) - 1)]
    last = values[np.maximum(np.searchsorted(values, hi, side="right") - 1, 0)]
    some = (first >= lo) & (last <= hi) & (first <= last)
    return np.where(some, first, lo), np.where(some, last, hi)


def cells_at(domains: Sequence[Domain], level: str) -> list[CellsAtLevel]:
    """Return the published cells of a column's values at a level.

    Parameters
    ----------
    domains : sequence of Domain
        The QIs of one column: a position of a code each, or one.
    level : str
        ``values``, ``*``; of a hierarchy ``level 1``, the lowest nodes above the leaves, and so on; of numbers
        ``width 10``, intervals that begin at multiples of 10; of dates also ``month``, ``year`` and other periods; of codes ``2 hidden``, the last two positions.

    Returns
    -------
    list of CellsAtLevel, one for each QI

    Raises
    ------
    ParameterError
        If the column has no such level, or it is below the lowest at which the column is published.
    """
    domain = domains[0]
    if level == VALUES:
        return [CellsAtLevel(Fraction(0))] * len(domains)
    if level == WHOLE:
        return [CellsAtLevel(Fraction(1))] * len(domains)
    number = re.fullmatch(r"level ([1-9][0-9]{0,8})|width ([0-9.eE+-]+)|([1-9][0-9]{0,8}) hidden", level)
    height, width, positions = number.groups() if number else (None, None, None)
    if domain.kind == "positions":
        if positions and int(positions) < len(domains):
            first_hidden = len(domains) - int(positions)
            return [CellsAtLevel(Fraction(int(at >= first_hidden))) for at in range(len(domains))]
    elif domain.hierarchy is not None:
        levels = int(domain.hierarchy.height[0])
        if height and int(height) < levels:
            node = domain.hierarchy.at_level(int(height))
            lo, hi = domain.hierarchy.first[node], domain.hierarchy.last[node]
            if domain.floor is not None and ((lo > domain.floor[:, 0]) | (hi < domain.floor[:, 1])).any():
                raise ParameterError(
                    f"column {domain.column!r}: {level} is below the level at which it is published at least; name a higher one"
                )
            return [_between(Fraction(int(height), levels), lo, hi, domain.size)]
    elif domain.kind == "numeric" and width:
        wide = _width_of(width)
        if wide is not None and domain.size and math.isfinite(float(np.abs(domain.points).max()) / wide):
            return [_between_intervals(domain, [wide], 1, wide)]
    elif domain.dates and domain.size and level in NESTED_UNITS:
        at = NESTED_UNITS.index(level)
        return [_between_intervals(domain, None, 1 + at, _DAYS[at])]
    raise ParameterError(
        f"column {domain.column!r} has no level {level[:40]!r}; its levels are {_levels_of(domains)}"
    )


def _between_intervals(domain: Domain, widths: Sequence[float] | None, at: int, wide: float) -> RunsAtLevel:
    """Return the cells at a level of :func:`interval_runs`, whose intervals are so wide."""
    ((lo, hi),) = interval_runs(domain, widths)[1]
    share = min(wide / domain.width, 1.0) if domain.width else 1.0
    thousandths = Fraction(min(max(math.ceil(1000 * share), 1), 999), 1000)
    return _between(thousandths, lo[at, :-1], hi[at, :-1], domain.size)


def _between(share: Fraction, lo: np.ndarray, hi: np.ndarray, size: int) -> RunsAtLevel:
    return RunsAtLevel(
        share, np.append(lo, 0).astype(np.int32), np.append(hi, max(size - 1, 0)).astype(np.int32)
    )


def _width_of(text: str) -> float | None:
    try:
        width = float(text)
    except ValueError:
        return None
    return width if 0 < width < math.inf else None


def _levels_of(domains: Sequence[Domain]) -> str:
    """Return the levels of a column in words."""
    domain = domains[0]
    if domain.kind == "positions":
        between = [f"{hidden} hidden" for hidden in range(1, len(domains))]
    elif domain.hierarchy is not None:
        between = [f"level {height}" for height in range(1, int(domain.hierarchy.height[0]))]
    elif domain.kind == "numeric":
        between = [*(NESTED_UNITS if domain.dates else ()), "width and a number, such as width 10"]
    else:
        between = []
    return ", ".join([VALUES, *between, WHOLE])
