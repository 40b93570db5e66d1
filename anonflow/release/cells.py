"""Read published cells as numbers: the ends of ranges, and the shares of a set's values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from anonflow.errors import DataError, ParameterError, setting
from anonflow.hierarchy import Hierarchy
from anonflow.hierarchy.wording import plural
from anonflow.table.published.published_cells import (
    WHOLE,
    PublishedCells,
    Range,
    category_text,
    coded_parts,
    named_values,
    values_of,
)


def ranges(
    cells: pd.Series, domain: tuple[object, object] | None = None, codes: Sequence[str] | None = None
) -> pd.DataFrame:
    """Read a published column of numbers or dates: the lower end, the upper end and the middle of each cell.

    Parameters
    ----------
    cells : pandas.Series, length n
        Of a numeric quasi-identifier, as published: ``53-59``, ``53``, ``*``, ``2020-01-01/2020-03-31``.
    domain : (low, high), optional
        What ``*`` stands for; the smallest and the largest end in the column without it.
    codes : sequence of str, optional
        Of a column with codes beside its numbers: these, ``""`` for a blank. ``53-59|N`` is a range that may also be a code,
        ``N`` and ``{N|R}`` are no number.

    Returns
    -------
    pandas.DataFrame, n rows
        ``low``, ``high`` and ``middle``, float64 in the column's unit, or dates; under the cells' index. With codes they are
        missing where a cell is no number, and ``number`` is what part of the cell's members is one: 1, 1/2 of ``53-59|N``,
        0 of ``N``; ``*`` stands for a number and every code.

    Raises
    ------
    DataError
        If cells are neither ranges nor ``*``, or all are ``*`` and there is no domain, or a date does not exist.
    ParameterError
        If the domain is not an ordered pair.

    Notes
    -----
    O(n). A person's value lies between `low` and `high`; its exact position is not published. If the middle replaces
    it, a mean has an error of at most half the mean width, usually by much less, since errors of single cells cancel.

    Examples
    --------
    >>> import pandas as pd
    >>> ranges(pd.Series(["20-30", "25", "*"]))
        low  high  middle
    0  20.0  30.0    25.0
    1  25.0  25.0    25.0
    2  20.0  30.0    25.0
    """
    published = PublishedCells.of(cells)
    runs, parts = _beside_codes(published.texts, codes)
    read = [None if run in (None, WHOLE) else Range.read(str(run).replace(" ", "T")) for run in runs]
    dates = any(ends is not None for ends in read) and all(ends is None or ends.dates for ends in read)
    good = [
        run in (None, WHOLE) if ends is None else ends.dates == dates
        for run, ends in zip(runs, read, strict=True)
    ]
    if not all(good):
        raise DataError(
            f"column {cells.name!r}: {plural(published.count(~np.array(good)), 'cell', 'do')} not hold a range; is it numeric? "
            + setting("shares", "shares() reads the others")
        )
    unknown = np.array([ends is None for ends in read], bool)
    ends = values_of([None if pair is None else (pair.low, pair.high) for pair in read], dates)
    if dates and np.isnat(ends[~unknown]).any():
        raise DataError(f"column {cells.name!r}: has a date that does not exist; correct it")
    ends[unknown] = _domain(domain, ends[~unknown], dates, str(cells.name))
    low, high = (values[published.rows] for values in ends.T)
    middle = low + (high - low) / 2
    result = pd.DataFrame({"low": low, "high": high, "middle": middle}, index=cells.index)
    if codes is not None:
        number = parts[published.rows]
        result = result.where(np.repeat((number > 0)[:, None], 3, axis=1)).assign(number=number)
    return result


def shares(
    cells: pd.Series, values: Sequence[str] | None = None, hierarchy: Hierarchy | None = None
) -> pd.DataFrame:
    """Read a published column of categories: how much of each cell belongs to each value.

    Parameters
    ----------
    cells : pandas.Series, length n
        Of a categorical, suppression or hierarchy quasi-identifier, as published: ``Private``,
        ``{Private|State-gov}``, ``*``, the label of a node.
    values : sequence of str, optional
        All values there are, D of them: what ``*`` stands for. Without it those that the cells name, sorted by
        text; of a hierarchy its leaves.
    hierarchy : Hierarchy, optional
        Whose labels are read as the values below them.

    Returns
    -------
    pandas.DataFrame, shape (n, D), float64
        A column for each value, under the cells' index; each row adds up to 1. A cell is spread evenly over its
        values. The empty cell, a missing value, is the value ``""``.

    Raises
    ------
    DataError
        If cells name values that are not in `values`, or all are ``*`` and no values are given.
    ParameterError
        If a value is given twice.

    Notes
    -----
    O(n D). The sum of a column estimates how many people have the value, and the product of two columns' shares how
    many have both, as if the columns were independent inside a cell.

    Examples
    --------
    >>> import pandas as pd
    >>> shares(pd.Series(["a", "{a|b}", "*"]), values=["a", "b", "c"]).round(2)
          a     b     c
    0  1.00  0.00  0.00
    1  0.50  0.50  0.00
    2  0.33  0.33  0.33
    """
    published = PublishedCells.of(cells)
    named = [_values_of_text(text, hierarchy) for text in published.texts]
    if values is None:
        values = (
            hierarchy.leaves
            if hierarchy is not None
            else sorted({value for members in named for value in members or ()})
        )
    if not values:
        raise DataError(f"column {cells.name!r}: contains nothing but '*'; give the values it may have")
    column = {value: number for number, value in enumerate(values)}
    if len(column) < len(values):
        raise ParameterError("a value is given twice")
    table = np.zeros((len(named), len(values)))
    unknown = np.zeros(len(named), bool)
    for u, members in enumerate(named):
        places = range(len(values)) if members is None else [column.get(value, -1) for value in members]
        unknown[u] = -1 in places
        if not unknown[u]:
            table[u, list(places)] = 1 / len(places)
    if unknown.any():
        raise DataError(
            f"column {cells.name!r}: {plural(published.count(unknown), 'cell', 'name')} a value that is not among those given"
        )
    return pd.DataFrame(table[published.rows], index=cells.index, columns=list(values))


def _beside_codes(texts: Sequence[str], codes: Sequence[str] | None) -> tuple[list[str | None], np.ndarray]:
    """Return the numbers of each text (None without a number), and which part of its members is a number."""
    if codes is None:
        return list(texts), np.ones(len(texts))
    labels = {category_text(code or None) for code in codes}
    runs: list[str | None] = []
    parts = np.ones(len(texts))
    for u, text in enumerate(texts):
        run, members = (None, [text]) if text in labels else coded_parts(text)
        runs.append(run if labels.issuperset(members) else text)  # a text with a strange code is no range
        numbers = 0 if run is None else 1
        parts[u] = 1 / (1 + len(labels)) if text == WHOLE else numbers / (numbers + len(members))
    return runs, parts


def _domain(domain: tuple[object, object] | None, ends: np.ndarray, dates: bool, name: str) -> np.ndarray:
    """Return the ends of the domain that `*` stands for, shape (2,), from those of the other cells if it is not given."""
    if domain is None:
        if not len(ends):
            raise DataError(f"column {name!r}: contains nothing but '*'; give the domain it has")
        return np.array([ends[:, 0].min(), ends[:, 1].max()])
    try:
        low, high = domain
        form = "datetime64[us]" if dates else np.float64
        whole = np.array([pd.Timestamp(end).to_datetime64() if dates else end for end in (low, high)], form)  # type: ignore[arg-type]
        is_ordered = bool(whole[0] <= whole[1])
    except (TypeError, ValueError):
        is_ordered = False
    if not is_ordered:
        raise ParameterError("domain is the lowest and the highest value, such as (17, 90)")
    return whole


def _values_of_text(text: str, hierarchy: Hierarchy | None) -> list[str] | None:
    """Return the values that a published text names; None for `*`, all of them."""
    if text == WHOLE:
        return None
    if hierarchy is not None and text in hierarchy.labels:
        return list(hierarchy.leaves_below(text))
    return [value or "" for value in named_values(text)]
