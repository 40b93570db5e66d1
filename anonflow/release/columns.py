"""How much published columns besides the quasi-identifiers reveal about identities, in spite of the shuffle."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from anonflow.candidate_lists import Candidates
from anonflow.generalization import Generalization
from anonflow.hierarchy.wording import plural
from anonflow.table import Table
from anonflow.table.identification.linkage import TOGETHER, linkage
from anonflow.table.identification.uniqueness import unique_as_added

_OWN_VALUE = 0.2
"""Share of records with a unique value from which a column is reported."""

_OWN_COMBINATION = 0.5
"""The same for combinations of columns: they are more often unique, and harder to know."""

_MISPLACED = 0.1
"""Share of the runs by which a random order has more that a column may have, and is still in the table's order."""

# As a logarithm: by chance, fewer than 1 of 1,000 orders are so near to the table's.
_CHANCE = math.log(1000)

_LINKED = 0.05
"""Share of the rows with a candidate above half-way between 1/k and certainty, from which on a column is named."""

_LOOKED_AT = 2_000
"""Number of rows whose candidates are compared before a release; the rows' order is random, so they are a sample."""

_FOLLOWS, _FOLLOWED = 0.95, 0.9
"""The chance that records with one value of a column have one value of another, from which on this follows; if by chance alone it is less."""

_COMPARED = 20_000
"""Records by which columns are compared before there is a release, at most."""

_COVERED = 300
"""The same if candidates are not listed and must be searched."""


def told_by_columns(
    table: Table, origin: Sequence[int] | np.ndarray, candidates: Candidates, k: int
) -> list[str]:
    """Return warnings about the other columns of a release, a sentence each, with counts and names of columns.

    Parameters
    ----------
    table : Table
        n originals.
    origin : numpy.ndarray, shape (m,), integer
        The original whose other columns each of m rows carries; of rows without candidates whatever.
    candidates : Candidates
        Of these rows.
    k : int
        What the release promises.

    Returns
    -------
    list of str
        Nearly unique or sorted columns, combinations that are nearly unique, and columns that follow from
        quasi-identifiers. O(n log n) for each column.
    """
    sentences, names = told_by_values(table), list(table.other_columns)
    if names:
        sentences += _told_by_linkage(table, names, np.asarray(origin), candidates, k)
    return sentences


def told_by_dependence(table: Table) -> list[str]:
    """Return warnings about other columns from which a quasi-identifier follows, or which follow from one, a sentence each.

    Parameters
    ----------
    table : Table
        n originals; of more than 20,000 some are looked at, the same each time.

    Returns
    -------
    list of str
        A column follows from another if two records with equal values there have equal values here with a probability
        of 0.95 or more, and of any two records at most 0.9 have. O(n log n) for each pair of columns.
    """
    rows: slice | np.ndarray = slice(None)
    if table.n > _COMPARED:
        # evenly over the table: its first rows may be of one kind
        rows = np.arange(_COMPARED) * table.n // _COMPARED
    codes = {
        name: _codes_of(table.frame[name].iloc[rows]) for name in (*table.qi_columns, *table.other_columns)
    }
    qi_codes = [(name, codes[name]) for name in table.qi_columns]
    sentences = []
    for name in table.other_columns:
        column_codes = codes[name]
        if column_codes is None:
            continue
        below = [qi for qi, of_qi in qi_codes if of_qi is not None and _follows(of_qi, column_codes)]
        above = [qi for qi, of_qi in qi_codes if of_qi is not None and _follows(column_codes, of_qi)]
        words = [
            *([f"tells {' and '.join(map(repr, below))}"] if below else []),
            *([f"follows from {' and '.join(map(repr, above))}"] if above else []),
        ]
        if words:
            sentences.append(
                f"column {name!r} {' and '.join(words)}: whoever reads it in a row knows more than the ranges beside it "
                "say; make it a quasi-identifier, or leave it out"
            )
    return sentences


def _codes_of(cells: pd.Series) -> np.ndarray | None:
    """Return a number for each distinct value, -1 for a missing one; None of values that cannot be compared."""
    try:
        return np.asarray(pd.factorize(cells)[0])
    except TypeError:
        return None


def _follows(column: np.ndarray, from_column: np.ndarray) -> bool:
    """Return whether records with equal values in a column have equal values in another one, and not by chance."""
    both = (column >= 0) & (from_column >= 0)
    column, from_column = column[both], from_column[both]
    if len(column) < 2:
        return False
    # two records with equal values there: how often do they agree here, and how often do any two?
    sizes = np.bincount(from_column)
    together = int(np.count_nonzero(sizes[from_column] > 1))
    if 2 * together < len(column):  # nearly unique values: another sentence says it
        return False
    pairs = np.unique(from_column.astype(np.int64) * (int(column.max()) + 1) + column, return_counts=True)
    within = sizes[pairs[0] // (int(column.max()) + 1)]
    in_pairs = within > 1
    equal = float((pairs[1][in_pairs] * (pairs[1][in_pairs] - 1) / (within[in_pairs] - 1)).sum()) / together
    counts, n = np.bincount(column), len(column)
    chance = float((counts / n * (counts - 1) / (n - 1)).sum())
    return equal >= _FOLLOWS and chance <= _FOLLOWED


def told_by_values(table: Table) -> list[str]:
    """Return warnings about other columns, and combinations of them, that are nearly unique or sorted, a sentence each."""
    sentences, quiet = [], []
    for name in table.other_columns:
        sentence = _told_by_column(name, table.frame[name])
        if sentence:
            sentences.append(sentence)
        else:
            quiet.append(name)
    return sentences + _told_together(table.frame, quiet)


def _told_by_column(name: str, cells: pd.Series) -> str | None:
    try:
        at, distinct = pd.factorize(cells)
    except TypeError:
        return None  # refused when the column is rebuilt
    counts = np.bincount(at[at >= 0], minlength=len(distinct))
    filled = at[at >= 0]
    extra_runs = int((filled[1:] != filled[:-1]).sum()) + 1 - len(counts)
    alone = int((counts == 1).sum())
    if len(counts) > 1 and alone >= _OWN_VALUE * counts.sum():
        return (
            f"column {name!r} is nearly unique: {plural(alone, 'record', 'have')} a value "
            "that nobody else has, which undoes the shuffle; leave it out or make it coarser"
        )
    if len(counts) > 1 and stands_in_order(counts, extra_runs):
        breaks = f", but for {plural(extra_runs, 'break')}" if extra_runs else ""
        return (
            f"column {name!r} is monotone: its {len(counts)} values stand in the table's order{breaks}, "
            "which undoes the shuffle; leave it out or put the table in another order"
        )
    return None


def stands_in_order(counts: np.ndarray, extra_runs: int) -> bool:
    """Return whether a column's values, all but a few, are in the table's order, and not by chance.

    Notes
    -----
    Values with counts c have sum of c (n - c + 1) / n runs in a random order on average (Wald and Wolfowitz, 1940).
    At most C(n - v, e) (v + e)! of the n! / prod c! orders have e runs more than the v values.
    """
    n, v = int(counts.sum()), len(counts)
    usual = float((counts * (n - counts + 1) / n).sum()) - v
    if extra_runs > max(4.0, _MISPLACED * usual) or extra_runs > n - v:
        return False
    # the number of orders, and of those with so few breaks, as logarithms: both are far too large for floats
    orders = math.lgamma(n + 1) - sum(math.lgamma(count + 1) for count in counts.tolist())
    places = math.lgamma(n - v + 1) - math.lgamma(extra_runs + 1) - math.lgamma(n - v - extra_runs + 1)
    return orders - places - math.lgamma(v + extra_runs + 1) > _CHANCE


def _told_together(frame: pd.DataFrame, names: list[str]) -> list[str]:
    """Return the smallest set of columns whose combination is unique for many records, though each column alone is not."""
    n = len(frame)
    if len(names) < 2 or n < 2:
        return []
    try:
        names = sorted(names, key=lambda name: -frame[name].nunique(dropna=False))
        unique = unique_as_added(frame, names)
    except TypeError:
        return []
    if unique[-1] < _OWN_COMBINATION * n:
        return []
    needed = next(at for at, count in enumerate(unique) if count >= _OWN_COMBINATION * n) + 1
    listed = ", ".join(map(repr, names[:needed]))
    return [
        f"columns {listed} together are nearly unique: {unique[needed - 1]} of {n} records have a combination that "
        f"nobody else has ({unique[-1]} with all other columns); whoever knows these values of a person finds the "
        "row: leave some out or make them coarser"
    ]


def _told_by_linkage(
    table: Table, names: list[str], origin: np.ndarray, candidates: Candidates, k: int
) -> list[str]:
    looked_at = np.arange(min(len(origin), _LOOKED_AT))
    columns = {name: table.frame[name] for name in names}
    rows = {name: cells.iloc[origin[looked_at]] for name, cells in columns.items()}
    try:
        links = linkage(table.records, columns, rows, candidates.take(looked_at))
    except TypeError:
        return []
    threshold = (1 + 1 / k) / 2
    linked = [link for link in links if link.above(threshold) >= _LINKED]
    if len(linked) > 1 and linked[-1].column == TOGETHER:
        linked.pop()  # said column by column
    return [
        (
            f"the columns {', '.join(map(repr, names))} together lead"
            if link.column == TOGETHER
            else f"column {link.column!r} "
            + (f"follows from {' and '.join(map(repr, link.uses))} and " if link.uses else "")
            + "leads"
        )
        + f" back to people: {'they name' if link.column == TOGETHER else 'it names'} a row's person with probability {link.mean:.2f} on average "
        f"instead of {1 / k:.2f}, and above {threshold:.2f} for {100 * link.above(threshold):.0f}% of the rows; "
        + (
            "leave some of them out, or make them quasi-identifiers"
            if link.column == TOGETHER
            else "leave it out, or make it a quasi-identifier"
        )
        for link in linked
    ]


def covering(table: Table, generalization: Generalization, rows: np.ndarray) -> Candidates:
    """Return the originals that some generalized records cover: the candidates if no matches are listed.

    Parameters
    ----------
    table : Table
    generalization : Generalization
    rows : numpy.ndarray, shape (m,), integer
        The first ``_COVERED`` of them are looked at; the others have no candidates. O(n q) for each.
    """
    lists = [
        np.flatnonzero(generalization.covers_records(row, table.records)) for row in rows[:_COVERED].tolist()
    ]
    sizes = [len(covers) for covers in lists]
    offsets = np.concatenate([[0], np.cumsum(sizes), [sum(sizes)]]).astype(np.int64)
    row_list = np.minimum(np.arange(len(rows)), len(lists))  # the last list is empty
    originals = np.concatenate(lists) if lists else np.empty(0, np.int64)
    return Candidates(row_list, offsets, originals)
