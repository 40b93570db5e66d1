"""Singling out: conditions, made from the rows of a release alone, that describe exactly one person of a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from anonflow.generalization import Generalization
from anonflow.table import Table
from anonflow.table.row_marks import row_labels

COLUMNS = 3
"""Of how many columns a condition on a plausible row is made."""

_ROUNDS = 20
"""How often as many conditions are tried as are wanted, at most."""

_BLOCK = 256
"""Conditions that are compared with all people at once."""


# ------------------------------------------------------------------------------- cells as conditions


def fits_rows(rows: Generalization, people: Table, columns: Collection[str] | None = None) -> np.ndarray:
    """Return which row covers which person, on some columns or on all, shape (rows, people), bool."""
    layout, codes = rows.layout, people.codes
    possible = np.ones((rows.n, people.n), bool)
    for t, a in enumerate(layout.ranges.tolist()):
        if columns is None or rows.domains[a].column in columns:
            # each value of the column once, however many people have it
            _, first, value = np.unique(codes[:, a], return_index=True, return_inverse=True)
            low, high = (end[first] for end in people.records.ends(a))
            possible &= ((rows.lo[t][:, None] <= low) & (high <= rows.hi[t][:, None]))[:, value]
    for a, words in layout.words.items():
        if columns is None or rows.domains[a].column in columns:
            values, value = np.unique(codes[:, a], return_inverse=True)
            word, bit = values >> 6, (values & 63).astype(np.uint64)
            has = ((rows.bits[words.start + word] >> bit[:, None]) & np.uint64(1)).T.astype(bool)
            possible &= has[:, value]
    return possible


def same_cells(rows: Generalization, rng: np.random.Generator) -> Generalization:
    """Return the same cells of each column, on other rows: a naive guess."""
    lo, hi, bits = rows.lo.copy(), rows.hi.copy(), rows.bits.copy()
    layout = rows.layout
    # a number's range and the codes beside it, and the positions of a code, are one cell
    order = {
        name: rng.permutation(rows.n) for name in dict.fromkeys(domain.column for domain in rows.domains)
    }
    for t, a in enumerate(layout.ranges.tolist()):
        other = order[rows.domains[a].column]
        lo[t], hi[t] = lo[t, other], hi[t, other]
    for a, words in layout.words.items():
        bits[words] = bits[words][:, order[rows.domains[a].column]]
    return replace(rows, lo=lo, hi=hi, bits=bits)


def one_end(rows: Generalization, rng: np.random.Generator) -> Generalization:
    """Return the rows with one cell each narrowed to a value that somebody has: an end of a range, or a member of a set.

    Parameters
    ----------
    rows : Generalization
    rng : numpy.random.Generator
        Chooses the end.

    Notes
    -----
    Methods publish the least that covers a row's people: of each range somebody has the lower end, and somebody the upper one
    (Cohen and Nissim, 2020, section 3: such releases let predicates single out). The cell that is narrowed is that with the
    most values, where the fewest people share one. A node of a hierarchy says nothing of its leaves, nor ``*`` of a domain's ends:
    they stay. O(rows q).
    """
    layout = rows.layout
    numeric = [t for t, a in enumerate(layout.ranges.tolist()) if rows.domains[a].kind == "numeric"]
    sets = [t for t, a in enumerate(layout.sets.tolist()) if rows.domains[a].kind == "categorical"]
    widths = [rows.hi[t].astype(np.int64) - rows.lo[t] + 1 for t in numeric]
    counts = rows.counts()
    sizes = np.array([*widths, *(counts[t] for t in sets)], np.int64).reshape(
        len(numeric) + len(sets), rows.n
    )
    # the ends of a domain are not published
    sizes[rows.whole()[[*layout.ranges[numeric], *layout.sets[sets]]]] = 0
    if not len(sizes):
        return rows
    lo, hi, bits = rows.lo.copy(), rows.hi.copy(), rows.bits.copy()
    widest = sizes.argmax(axis=0)
    upper = rng.random(rows.n) < 0.5
    for place, t in enumerate(numeric):
        at = np.flatnonzero((widest == place) & (sizes[place] > 1))
        end = np.where(upper[at], hi[t, at], lo[t, at])
        lo[t, at] = hi[t, at] = end
    for place, t in enumerate(sets, len(numeric)):
        at = np.flatnonzero((widest == place) & (sizes[place] > 1))
        a = int(layout.sets[t])
        words = layout.words[a]
        member = _drawn_members(bits[words][:, at], rows.domains[a].size, rng)
        bits[words, at] = 0
        bits[words.start + (member >> 6), at] = np.uint64(1) << (member & 63).astype(np.uint64)
    return replace(rows, lo=lo, hi=hi, bits=bits, aggregates=None)


def _drawn_members(words: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random member of each set, shape (rows,), int64; words of shape (w, rows)."""
    codes = np.arange(size)
    membership = (words[codes >> 6] >> (codes & 63).astype(np.uint64)[:, None]) & np.uint64(1)
    draws = np.where(membership.astype(bool), rng.random(membership.shape), -1.0)
    return draws.argmax(axis=0).astype(np.int64)


# -------------------------------------------------------------------------- conditions on plain values


@dataclass(frozen=True, eq=False)
class Points:
    """People or rows as plain values, a number for each coordinate.

    Attributes
    ----------
    values : numpy.ndarray, shape (n, d), float64
        Codes of quasi-identifiers, numbers or labels of other columns; nan without a value.
    ordered : numpy.ndarray, shape (d,), bool
        Whether "at least" and "at most" say something of a coordinate.
    """

    values: np.ndarray
    ordered: np.ndarray

    def take(self, at: np.ndarray) -> Points:
        """Return those at some positions."""
        return Points(self.values[at], self.ordered)


@dataclass(frozen=True, eq=False)
class Conditions:
    """Conditions on some coordinates each: between two values, ends included.

    Attributes
    ----------
    columns : numpy.ndarray, shape (m, c), int64
        Which coordinates.
    low, high : numpy.ndarray, shape (m, c), float64
    """

    columns: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def m(self) -> int:
        """How many there are."""
        return len(self.columns)

    def take(self, at: np.ndarray) -> Conditions:
        """Return those at some positions."""
        return Conditions(self.columns[at], self.low[at], self.high[at])

    def counts(self, points: Points) -> np.ndarray:
        """Return how many points fit each condition, shape (m,), int64. O(m n c)."""
        fitting = np.empty(self.m, np.int64)
        for start in range(0, self.m, _BLOCK):
            block = slice(start, start + _BLOCK)
            fits = np.ones((len(self.columns[block]), len(points.values)), bool)
            for column, low, high in zip(
                self.columns[block].T, self.low[block].T, self.high[block].T, strict=True
            ):
                coordinates = points.values.T[column]
                fits &= (coordinates >= low[:, None]) & (coordinates <= high[:, None])
            fitting[block] = fits.sum(axis=1)
        return fitting


def plausible_points(
    rows: Generalization,
    frame: pd.DataFrame,
    sides: Sequence[Table],
    names: Sequence[str],
    rng: np.random.Generator,
) -> list[Points]:
    """Return one plausible table of a release, and people, as points with the same coordinates.

    Parameters
    ----------
    rows : Generalization
        The release's.
    frame : pandas.DataFrame
        The release.
    sides : sequence of Table
        People, over the same domains.
    names : sequence of str
        Published columns besides the quasi-identifiers.
    rng : numpy.random.Generator
        Draws a value from each cell, all of them equally likely.

    Returns
    -------
    list of Points
        Of the rows, then of each side.
    """
    layout, domains = rows.layout, rows.domains
    drawn = np.full((rows.n, len(domains)), np.nan)
    for t, a in enumerate(layout.ranges.tolist()):
        count = domains[a].values_in(rows.lo[t], rows.hi[t])
        is_there, codes = count > 0, np.flatnonzero(domains[a].has_value)
        place = np.searchsorted(codes, rows.lo[t, is_there])
        drawn[is_there, a] = codes[place + rng.integers(0, count[is_there])]
    for a, words in layout.words.items():
        drawn[:, a] = _drawn_members(rows.bits[words], domains[a].size, rng)
        if domains[a].kind == "codes":  # a code stands in place of the number before it
            drawn[drawn[:, a] != 0, a - 1] = np.nan
    side_codes = [np.where(side.codes < 0, np.nan, side.codes.astype(float)) for side in sides]
    all_frames = [frame, *(side.frame for side in sides)]
    others, ordered = [], [domain.kind == "numeric" for domain in domains]
    for name in names:
        ordered.append(all(cells[name].dtype.kind in "iuf" for cells in all_frames))
        others.append(
            [cells[name].to_numpy(np.float64) for cells in all_frames]
            if ordered[-1]
            else [labels.astype(float) for labels in row_labels(all_frames, [name])]
        )
    return [
        Points(np.column_stack([coded, *(values[place] for values in others)]), np.array(ordered))
        for place, coded in enumerate([drawn, *side_codes])
    ]


def unique_conditions(
    points: Points, count: int, rng: np.random.Generator, columns: int = COLUMNS
) -> tuple[Conditions, Conditions]:
    """Return conditions that exactly one point fits, and others of the same form whose values are of several points.

    Parameters
    ----------
    points : Points
        One plausible table.
    count : int
        At most so many.
    rng : numpy.random.Generator
    columns : int
        Coordinates in each; fewer where there are not so many.

    Returns
    -------
    tuple of Conditions
        Distinct ones of random points; and the naive guess, in which each value is that of another random point.

    Notes
    -----
    The attack of Giomi, Boenisch, Wehmeyer and Tasnadi (2023) on synthetic tables: of an ordered coordinate "at least" its
    value, if that is not below the median, else "at most" it; of any other one its value. O(count n).
    """
    n, d = points.values.shape
    c = min(columns, d)
    # numpy warns of the median of a column without any number
    values_or_zero = np.where(np.isnan(points.values).all(axis=0), 0.0, points.values)
    middle = np.nanmedian(values_or_zero, axis=0)

    def of(chosen: np.ndarray, point: np.ndarray) -> Conditions:
        value = points.values[point, chosen]
        ordered = points.ordered[chosen]
        above = ordered & (value >= middle[chosen])
        below = ordered & ~above
        return Conditions(chosen, np.where(below, -np.inf, value), np.where(above, np.inf, value))

    right: list[Conditions] = []
    mixed: list[Conditions] = []
    for _ in range(_ROUNDS):
        chosen = np.sort(rng.random((count, d)).argsort(axis=1)[:, :c], axis=1)
        true_conditions, others = (
            of(chosen, rng.integers(0, n, (count, 1))),
            of(chosen, rng.integers(0, n, (count, c))),
        )
        alone = np.flatnonzero(true_conditions.counts(points) == 1)
        right.append(true_conditions.take(alone))
        mixed.append(others.take(alone))
        if sum(batch.m for batch in right) >= count:
            break
    conditions = _joined_conditions(right)
    written = np.column_stack([conditions.columns, conditions.low, conditions.high])
    distinct = np.sort(np.unique(written, axis=0, return_index=True)[1])[:count]
    return conditions.take(distinct), _joined_conditions(mixed).take(distinct)


def _joined_conditions(parts: Sequence[Conditions]) -> Conditions:
    columns, low, high = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("columns", "low", "high")
    )
    return Conditions(columns, low, high)
