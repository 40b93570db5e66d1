"""Generalized rows of a release: the original of each row's other columns, its published cells, its candidates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from anonflow.candidate_lists import Candidates
from anonflow.errors import DataError
from anonflow.release.draw import draw_assignment, permute_classes
from anonflow.release.randomness import RandomWords
from anonflow.release.values import PlainColumn

if TYPE_CHECKING:
    import pandas as pd

    from anonflow.generalization import Generalization

__all__ = ["GeneralizedRows", "permute_suppressed"]


@dataclass(frozen=True, eq=False)
class GeneralizedRows:
    """The generalized records of a table, with whatever links them to originals.

    Attributes
    ----------
    generalization : Generalization
        m generalized records.
    matches : numpy.ndarray, shape (m, w), integer, or None
        Among these rows.
    classes : numpy.ndarray, shape (m,), integer, or None
    suppressed : numpy.ndarray, shape (m,), bool

    Notes
    -----
    Suppressed records without a class are one class of the whole table: their part of the draw is
    :func:`permute_suppressed`, and until then each carries its own columns.
    """

    generalization: Generalization
    matches: np.ndarray | None
    classes: np.ndarray | None
    suppressed: np.ndarray

    def origin(self, words: RandomWords) -> np.ndarray:
        """Draw the original whose other columns each row is published with, shape (m,), int64.

        Raises
        ------
        VerificationError
            If the matches are not regular.
        DataError
            If a suppressed record has matches besides itself.
        """
        own = np.arange(len(self.suppressed), dtype=np.int64)
        if self.matches is not None:
            drawn = draw_assignment(self.matches, words)
            if (drawn != own)[self.suppressed].any():
                raise DataError(
                    "suppressed records have matches besides themselves; give each a row of its own"
                )
            return drawn
        if self.classes is not None:
            kept = np.flatnonzero(~self.suppressed)
            own[kept] = kept[permute_classes(self.classes[kept], words, kept)]
        return own

    def blocks(
        self,
        origin: np.ndarray,
        columns: Sequence[str],
        table: pd.DataFrame,
        order: np.ndarray,
        hidden: bool,
        size: int | None = None,
    ) -> Iterator[pd.DataFrame]:
        """Yield the published table: generalized records, and the other columns of each row's original, in blocks of rows.

        Parameters
        ----------
        origin : numpy.ndarray, shape (n,), int64
        columns : sequence of str
            The published ones, in their order.
        table : pandas.DataFrame
            With the originals' cells of every column that is not a quasi-identifier.
        order : numpy.ndarray, shape (n,), int64
            Of the rows.
        hidden : bool
            Whether the other columns of suppressed records are published as ``*``.
        size : int, optional
            Rows of a block; all without it.

        Raises
        ------
        DataError
            If a column's cells cannot be published.
        """
        import pandas as pd

        quasi_identifiers = {domain.column for domain in self.generalization.domains}
        others = {
            name: PlainColumn.of(table[name], name, hidden)
            for name in columns
            if name not in quasi_identifiers
        }
        size = size or max(1, len(order))
        for start in range(0, max(1, len(order)), size):
            at = order[start : start + size]
            suppressed = self.suppressed[at]
            published = self.generalization.take(at).decode(suppressed=suppressed)
            values = {
                name: published[name].array
                if name in published.columns
                else others[name].at(origin[at], suppressed if hidden else None)
                for name in columns
            }
            yield pd.DataFrame(values, index=pd.RangeIndex(start, start + len(at)))

    def candidates(self, order: np.ndarray, empty: Callable[..., np.ndarray] = np.empty) -> Candidates:
        """Return the candidate originals of each row, for all rows in some order.

        They are matches, or the members of a class, or empty; suppressed rows without a class are one class.

        Parameters
        ----------
        order : numpy.ndarray, shape (n,), int64
        empty : callable
            Makes large arrays, as :func:`numpy.empty` does.
        """
        if self.classes is not None:
            return Candidates.of_classes(np.where(self.suppressed, -1, self.classes)).take(order)
        suppressed = self.suppressed[order]
        if self.matches is None:
            known = Candidates.of_nobody(len(order))
        else:
            known = Candidates.of_matches(self.matches, order[~suppressed], empty)
            row_list = np.zeros(len(order), np.int64)
            row_list[~suppressed] = known.row_list
            known = Candidates(row_list, known.offsets, known.originals)
        return known.with_class(suppressed, np.sort(order[suppressed]))


def permute_suppressed(positions: np.ndarray, words: RandomWords) -> np.ndarray:
    """Draw the other columns of suppressed records, which are one class of the whole table.

    Parameters
    ----------
    positions : numpy.ndarray, shape (m,), int64
        Of all suppressed records of the table, ascending.
    words : RandomWords

    Returns
    -------
    numpy.ndarray, shape (m,), int64
        The position of the original that each carries.
    """
    return positions[permute_classes(np.zeros(len(positions), np.int8), words, positions)]
