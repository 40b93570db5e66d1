"""An anonymization in a notebook: the owner's view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from markupsafe import Markup

from anonflow.drawing import facts, grid, heading, note, plots, view
from anonflow.drawing.fragments import shortened
from anonflow.generalization import Generalization
from anonflow.loss import cell_costs
from anonflow.table import Table

ROWS = 4
"""Records that are shown before and after."""


class MatchesOrClasses(Protocol):
    """The part of a result that has matches, or classes, or neither."""

    @property
    def matches(self) -> np.ndarray | None:
        """Shape (n, k), int32."""

    @property
    def classes(self) -> np.ndarray | None:
        """Shape (n,), int64."""


def sizes_of(anonymization: MatchesOrClasses) -> tuple[tuple[int, int], ...]:
    """Return how many generalized records (second) match, or share a class with, how many originals (first).

    Empty for methods that have neither matches nor classes.
    """
    if anonymization.matches is not None:
        sizes = (anonymization.matches >= 0).sum(axis=1)
    elif anonymization.classes is not None:
        sizes = np.bincount(anonymization.classes)[anonymization.classes]
    else:
        return ()
    values, counts = np.unique(sizes, return_counts=True)
    return tuple(zip(values.tolist(), counts.tolist(), strict=True))


def anonymization_view(
    method: str,
    numbers: Sequence[tuple[str, Any]],
    table: Table,
    generalization: Generalization,
    suppressed: np.ndarray,
    anonymization: MatchesOrClasses,
    levels: Markup | None = None,
) -> str:
    """Return an anonymization as HTML: its loss, column by column, and a few records before and after.

    Parameters
    ----------
    method : str
    numbers : sequence of (str, object)
        What is said first.
    table : Table
        n records.
    generalization : Generalization
    suppressed : numpy.ndarray, shape (n,), bool
    anonymization : MatchesOrClasses
    levels : markupsafe.Markup, optional
        The lattice, of methods that choose levels.

    Notes
    -----
    O(n q) time.
    """
    costs = cell_costs(generalization, "ncp").mean(axis=1)
    names = table.qi_columns
    losses = [
        float(np.mean([costs[a] for a, domain in enumerate(table.domains) if domain.column == name]))
        for name in names
    ]
    parts = [
        facts(numbers),
        heading("Information loss by column"),
        plots.bars(names, losses, "Information loss by column"),
        *([heading("Levels of the columns"), levels] if levels is not None else []),
        *_sizes_view(anonymization, table.n),
        heading("Records and what they become"),
        _changes(table, generalization, suppressed),
    ]
    return view(f"Anonymization by {method}", *parts, owner=True)


def _sizes_view(anonymization: MatchesOrClasses, n: int) -> list[Markup]:
    sizes = sizes_of(anonymization)
    if not sizes:
        return [
            note("This method has neither matches nor classes: af.verify says among how many each record is.")
        ]
    kind = "Matches of each generalized record" if anonymization.matches is not None else "Class sizes"
    if len(sizes) == 1:
        return [heading(kind), note(f"Each of the {n:,} records has {sizes[0][0]:,}.")]
    return [
        heading(kind),
        plots.columns(
            sizes, kind, "matches" if anonymization.matches is not None else "records in the class"
        ),
    ]


def _changes(table: Table, generalization: Generalization, suppressed: np.ndarray) -> Markup:
    few = np.arange(min(ROWS, table.n))
    before = table.frame.iloc[few]
    after = generalization.take(few).decode(suppressed=suppressed[few])
    rows = []
    for at in few.tolist():
        cells = []
        for name in table.qi_columns:
            old, new = str(before[name].iloc[at]), str(after[name].iloc[at])
            cells.append(
                new if old == new else Markup("<i>{} →</i> {}").format(shortened(old, 40), shortened(new, 40))
            )
        rows.append([at, *cells])
    return grid(["", *table.qi_columns], rows)
