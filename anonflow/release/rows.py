"""Rows of a release: the original of each one's other columns, its published cells, its candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from anonflow.candidate_lists import Candidates
from anonflow.errors import DataError
from anonflow.generalization import Generalization
from anonflow.release.draw import draw_assignment, draw_by_parts, permute_classes
from anonflow.release.randomness import RandomWords
from anonflow.table.forms.text_columns import (
    categories_at,
    check_characters,
    factorized,
    texts_at,
    value_text,
)
from anonflow.table.published.published_cells import WHOLE
from anonflow.table.records import matches_among

_EXACT = 1 << 53  # up to it float64 has every whole number


@dataclass(frozen=True, eq=False)
class PlainColumn:
    """A column's values, to be published in another order without any trace of the original column.

    Attributes
    ----------
    code : numpy.ndarray, shape (n,), integer
        Which value each record has; -1 for a missing one.
    values : numpy.ndarray
        Bools or numbers if all values are (missing ones become NaN), otherwise text; the last is a missing one.
    """

    code: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, cells: pd.Series, name: str, hidden: bool) -> PlainColumn:
        """Read a column.

        Parameters
        ----------
        cells : pandas.Series, n values
        name : str
            The column, for messages.
        hidden : bool
            Whether some rows get ``*`` instead; the column is text then.

        Raises
        ------
        DataError
            If the cells are lists or other values that are no single value, bytes, or text that is no Unicode.
        """
        code, distinct = factorized(cells, name)
        # numpy makes an integer of a date in nanoseconds
        values = [
            value.item()
            if isinstance(value, np.generic) and not isinstance(value, np.datetime64 | np.timedelta64)
            else value
            for value in list(distinct)
        ]
        numbers = None if hidden else _as_numbers(values, bool((code < 0).any()))
        if numbers is not None:
            return cls(code, numbers)
        if any(isinstance(value, bytes) for value in values):
            raise DataError(f"column {name!r}: holds bytes; decode them to text")
        texts = [value_text(value) for value in values]
        check_characters(texts, name)
        return cls(code, np.array([*texts, None], object))

    def at(self, records: np.ndarray, hidden: np.ndarray | None, coded: bool = False) -> Any:
        """Return the values of some records.

        Parameters
        ----------
        records : numpy.ndarray, shape (m,), integer
        hidden : numpy.ndarray, shape (m,), bool, optional
            Rows that get ``*`` instead.
        coded : bool
            Whether texts become categories.

        Returns
        -------
        numpy.ndarray or pandas array, m values
        """
        code = self.code[records]
        if self.values.dtype != object:
            return self.values[code]  # a missing one, -1, is the NaN at the end
        code, texts = np.where(code < 0, len(self.values) - 1, code), self.values
        if hidden is not None and hidden.any():
            code, texts = np.where(hidden, len(texts), code), np.append(texts, WHOLE)
        return (categories_at if coded else texts_at)(texts, code)


def _as_numbers(values: list[Any], missing: bool) -> np.ndarray | None:
    """Return the values as plain numbers, NaN last if any is missing; None where they must be text."""
    kinds = {type(value) for value in values}
    if kinds == {bool} and not missing:
        return np.array(values, bool)
    if kinds == {int} and not missing and all(-(1 << 63) <= value < 1 << 63 for value in values):
        return np.array(values, np.int64)
    if not kinds or not kinds <= {int, float}:
        return None
    if any(isinstance(value, int) and abs(value) > _EXACT for value in values):
        return None
    return np.array([*values, np.nan], np.float64)


def drawn_originals(
    matches: np.ndarray | None,
    classes: np.ndarray | None,
    suppressed: np.ndarray,
    words: RandomWords,
    frozen: np.ndarray | None = None,
    parts: Sequence[np.ndarray] = (),
) -> np.ndarray:
    """Draw the original whose other columns each generalized record of a table is published with, shape (n,), int64.

    Parameters
    ----------
    matches : numpy.ndarray, shape (n, w), integer, or None
    classes : numpy.ndarray, shape (n,), integer, or None
        Without both, each record but the suppressed ones carries its own columns.
    suppressed : numpy.ndarray, shape (n,), bool
        These records are one class.
    words : RandomWords
    frozen : numpy.ndarray, shape (n,), bool, optional
        Of matches: records that carry their own columns, because these were drawn for an earlier release; whole components.
    parts : sequence of numpy.ndarray, integer
        Partitions, if there are some: large tables are drawn from by them.

    Raises
    ------
    VerificationError
        If the matches are not regular.
    DataError
        If a suppressed record has matches besides itself.
    """
    alone = np.flatnonzero(suppressed)
    drawn = np.arange(len(suppressed), dtype=np.int64)
    if matches is not None:
        if frozen is None:
            drawn = draw_by_parts(matches, words, parts)
        else:
            free = np.flatnonzero(~frozen)
            drawn[free] = free[draw_assignment(matches_among(matches, free), words, free)]
        if (drawn[alone] != alone).any():
            raise DataError("suppressed records have matches besides themselves; give each a row of its own")
    elif classes is not None:
        members = np.flatnonzero(~suppressed)
        drawn[members] = members[permute_classes(classes[members], words, members)]
    drawn[alone] = alone[permute_classes(np.zeros(len(alone), np.int8), words, alone)]
    return drawn


def blocks(
    generalization: Generalization,
    suppressed: np.ndarray,
    origin: np.ndarray,
    columns: Sequence[str],
    table: pd.DataFrame,
    order: np.ndarray,
    hidden: bool,
    size: int | None = None,
) -> Iterator[pd.DataFrame]:
    """Yield the published table: generalized records, and the other columns of each one's original, in blocks of rows.

    Parameters
    ----------
    generalization : Generalization
        n generalized records, as their cells are published.
    suppressed : numpy.ndarray, shape (n,), bool
    origin : numpy.ndarray, shape (n,), int64
        The original of each.
    columns : sequence of str
        The published ones, in their order.
    table : pandas.DataFrame
        With the originals' cells of every column that is not a quasi-identifier.
    order : numpy.ndarray, shape (n,), int64
        Of the rows.
    hidden : bool
        Whether the other columns of suppressed records are published as ``*``.
    size : int, optional
        Rows of a block, whose texts are categories; without it all rows, and texts.

    Raises
    ------
    DataError
        If a column's cells cannot be published.
    """
    quasi_identifiers = {domain.column for domain in generalization.domains}
    others = {
        name: PlainColumn.of(table[name], name, hidden) for name in columns if name not in quasi_identifiers
    }
    coded, size = size is not None, size or max(1, len(order))
    for start in range(0, max(1, len(order)), size):
        at = order[start : start + size]
        blank = suppressed[at]
        records = generalization.take(at)
        published = (records.decode_categories if coded else records.decode)(suppressed=blank)
        values = {
            name: published[name].array
            if name in published.columns
            else others[name].at(origin[at], blank if hidden else None, coded)
            for name in columns
        }
        yield pd.DataFrame(values, index=pd.RangeIndex(start, start + len(at)))


def candidates(
    matches: np.ndarray | None,
    classes: np.ndarray | None,
    suppressed: np.ndarray,
    order: np.ndarray,
    empty: Callable[..., np.ndarray] = np.empty,
) -> Candidates:
    """Return the candidate originals of each row, for all rows in some order.

    They are matches, or the members of a class, or empty; suppressed rows are one class.

    Parameters
    ----------
    matches, classes, suppressed : numpy.ndarray or None
        As :func:`drawn_originals` takes them.
    order : numpy.ndarray, shape (n,), int64
    empty : callable
        Makes large arrays, as :func:`numpy.empty` does.
    """
    if classes is not None:
        return Candidates.of_classes(np.where(suppressed, -1, classes)).take(order)
    blank = suppressed[order]
    if matches is None:
        listed = Candidates.of_nobody(len(order))
    elif not blank.any():
        return Candidates.of_matches(matches, order, empty)
    else:
        listed = Candidates.of_matches(matches, order[~blank], empty)
        row_list = np.zeros(len(order), np.int32)
        row_list[~blank] = listed.row_list
        listed = Candidates(row_list, listed.offsets, listed.originals)
    return listed.with_class(blank, np.sort(order[blank]))
