"""The receiver's view of a release: kinds of cells, and the questions that it can answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from anonflow.hierarchy.wording import plural
from anonflow.release.published_column import PublishedColumn
from anonflow.table.published.metadata import AGGREGATED, CODED, ReleaseMetadata

_KINDS = {
    "range": "ranges",
    "class-mean": "means of classes",
    "class-median": "medians of classes",
    "set": "sets of values",
    "node": "nodes of a hierarchy",
    "suppression": "values or *",
    "positions": "codes with hidden positions",
    CODED: "ranges, codes, or one of both",
    "exact": "as it was",
}


@dataclass(frozen=True)
class ColumnSummary:
    """The summary of one column.

    Attributes
    ----------
    name : str
    role : str
        As in a schema.
    cells : str
        What kind of cells it has, in words.
    exact : float or None
        Share of the rows with one value. Which labels of a hierarchy are values is not known if it is not public: then None.
    generalized : float or None
        Share of the rows with more than one value; None likewise.
    hidden : float or None
        Share of the rows with ``*``, or whose cell is not published.
    domain : bool
        Whether the domain of ``*`` is published.
    """

    name: str
    role: str
    cells: str
    exact: float | None
    generalized: float | None
    hidden: float
    domain: bool

    def to_mapping(self) -> dict[str, Any]:
        """Return the mapping that is written as JSON."""
        return dict(self.__dict__)


@dataclass(frozen=True, repr=False)
class ReleaseSummary:
    """The summary of a release.

    Attributes
    ----------
    rows : int
    hidden_rows : int
        Rows whose generalized columns all are ``*``.
    guarantee : str or None
    k : int or None
    version : str
        The version of anonflow that computed it, if the release says so.
    columns : tuple of ColumnSummary
    can, cannot : tuple of str
        Questions that it can answer, and those that it cannot, a sentence each.
    """

    rows: int
    hidden_rows: int
    guarantee: str | None
    k: int | None
    version: str
    columns: tuple[ColumnSummary, ...]
    can: tuple[str, ...]
    cannot: tuple[str, ...]

    def frame(self) -> pd.DataFrame:
        """Return the columns as a table: column, role, cells, exact, generalized, hidden, domain."""
        names = ("column", "role", "cells", "exact", "generalized", "hidden", "domain")
        return pd.DataFrame([tuple(column.__dict__.values()) for column in self.columns], columns=names)

    def to_mapping(self) -> dict[str, Any]:
        """Return the mapping that is written as JSON."""
        return {
            "rows": self.rows,
            "hidden_rows": self.hidden_rows,
            "guarantee": self.guarantee,
            "k": self.k,
            "version": self.version,
            "columns": [column.to_mapping() for column in self.columns],
            "can": list(self.can),
            "cannot": list(self.cannot),
        }

    def to_json(self) -> str:
        """Return the same as a JSON text."""
        return json.dumps(self.to_mapping(), indent=2, ensure_ascii=False)

    def headline(self) -> str:
        """Return rows, columns and promise, a sentence."""
        promise = (
            "" if self.guarantee is None else f"; {self.guarantee}" + (f", k = {self.k}" if self.k else "")
        )
        hidden = f", {self.hidden_rows:,} of them hidden" if self.hidden_rows else ""
        return f"{plural(self.rows, 'row')}{hidden}, {plural(len(self.columns), 'column')}{promise}"

    def __repr__(self) -> str:
        lines = [f"  {c.name}: {c.cells}, {_shares_text(c)}" for c in self.columns]
        can = [f"  + {sentence}" for sentence in self.can]
        cannot = [f"  - {sentence}" for sentence in self.cannot]
        return "\n".join([self.headline(), *lines, *can, *cannot])


def _shares_text(column: ColumnSummary) -> str:
    if column.exact is None or column.generalized is None:
        return f"hidden {column.hidden:.0%}, which of the others are values is not published"
    return f"exact {column.exact:.0%}, generalized {column.generalized:.0%}, hidden {column.hidden:.0%}"


def summary_of(about: ReleaseMetadata, columns: Sequence[PublishedColumn]) -> ReleaseSummary:
    """Return the receiver's view of a release.

    Parameters
    ----------
    about : ReleaseMetadata
        Its description.
    columns : sequence of PublishedColumn
        At least one.

    Returns
    -------
    ReleaseSummary
        From the release alone, in O(n) for each column. Counts, shares and names of columns, never a cell.

    Raises
    ------
    DataError
        If cells do not fit the description.
    """
    rows = len(columns[0])
    hidden = np.ones(rows, bool)
    generalized = [column for column in columns if column.about.is_generalized]
    for column in generalized:
        hidden &= column.hidden
    seen = tuple(_of_column(column) for column in columns)
    pairs = list(zip(columns, seen, strict=True))
    return ReleaseSummary(
        rows,
        int(hidden.sum()) if generalized else 0,
        about.guarantee,
        about.k,
        about.version,
        seen,
        tuple(_can(pairs)),
        tuple(_cannot(pairs, about.guarantee, about.k)),
    )


def _of_column(column: PublishedColumn) -> ColumnSummary:
    metadata = column.about
    column.check()
    hidden = float(column.hidden.mean()) if len(column) else 0.0
    exact = float(column.exact.mean()) if len(column) else 0.0
    is_known = metadata.notation != "node" or metadata.tree is not None or hidden == 1
    return ColumnSummary(
        metadata.name,
        metadata.role,
        _KINDS[metadata.notation],
        exact if is_known else None,
        max(0.0, 1 - exact - hidden) if is_known else None,
        hidden,
        metadata.has_domain or not metadata.is_generalized,
    )


def _can(pairs: list[tuple[PublishedColumn, ColumnSummary]]) -> list[str]:
    whole = [c.name for c, seen in pairs if not c.about.is_generalized and not seen.hidden]
    visible = [c for c, seen in pairs if seen.hidden < 1]
    numbers = [c for c in visible if c.about.notation == "range"]
    bounded = [c.name for c in numbers if c.about.bounds is not None or not c.hidden.any()]
    generalized = [c.name for c in visible if c.about.is_generalized]
    named = [
        c.name
        for c in visible
        if c.about.is_generalized and c.about.notation not in ("range", CODED, *AGGREGATED)
    ]
    return _of_columns(
        ("counts, means and relations of {} among themselves: exact", whole),
        (
            "means, sums and counts between two values of {}: certain bounds, and estimates between them",
            bounded,
        ),
        (
            "the same of {}, of the rows that are not hidden",
            [c.name for c in numbers if c.name not in bounded],
        ),
        (
            "the mean and the sum of {} over all rows that are not hidden: exact, but for rounding",
            [c.name for c in visible if c.about.notation == "class-mean"],
        ),
        ("how many people have a value of {}: at least and at most so many", named),
        (
            "how generalized columns and exact ones go together, up to the width of the cells",
            generalized if whole else [],
        ),
    )


def _cannot(
    pairs: list[tuple[PublishedColumn, ColumnSummary]], guarantee: str | None, k: int | None
) -> list[str]:
    several = "several people" if k is None else f"{k} people or more"
    owners = f"whose row a row is, and what one person's values are: a row may be that of {several}"
    if (guarantee or "").startswith("key-sets"):  # whoever knows all columns may find a single row
        owners = f"whose row a row is, from one of the named sets of columns alone: there it may be that of {several}"
    partly = [(c, seen) for c, seen in pairs if 0 < seen.hidden < 1]
    inside = [
        c.name
        for c, seen in pairs
        if c.about.is_generalized and (seen.generalized or 0) > 0 and c.about.notation not in AGGREGATED
    ]
    return [
        owners,
        *_of_columns(
            ("anything about {}: every cell is hidden", [c.name for c, seen in pairs if seen.hidden == 1]),
            (
                "what the hidden cells of {} may be: their domain is not published",
                [c.name for c, seen in partly if not seen.domain],
            ),
            (
                "which labels of {} are values, and which are groups: the hierarchy is not published",
                [c.name for c, seen in pairs if seen.exact is None],
            ),
            (
                "the values of {} in the rows that are hidden",
                [c.name for c, _ in partly if not c.about.is_generalized],
            ),
            (
                "how the numbers of {} are spread around those of their classes: the variance of the cells is smaller",
                [c.name for c, seen in pairs if c.about.notation in AGGREGATED and seen.hidden < 1],
            ),
            ("where in its cell a value of {} lies: an even spread is an assumption", inside),
        ),
    ]


def _of_columns(*sentences: tuple[str, list[str]]) -> list[str]:
    """Return the sentences that are about some column, with the columns' names."""
    return [text.format(", ".join(names)) for text, names in sentences if names]
