"""An anonymization in a notebook: the owner's view."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from anonflow.drawing import facts, grid, heading, note, plots, view
from anonflow.loss import cell_costs

if TYPE_CHECKING:
    from anonflow.algorithms.anonymization import Anonymization

__all__ = ["anonymization_view", "sizes_of"]

ROWS = 4
"""Records that are shown before and after."""


def sizes_of(made: Anonymization) -> tuple[tuple[int, int], ...]:
    """How many generalized records (second) match, or share a class with, how many originals (first).

    Empty for methods that have neither matches nor classes.
    """
    if made.matches is not None:
        sizes = (made.matches >= 0).sum(axis=1)
    elif made.classes is not None:
        sizes = np.bincount(made.classes)[made.classes]
    else:
        return ()
    values, counts = np.unique(sizes, return_counts=True)
    return tuple(zip(values.tolist(), counts.tolist(), strict=True))


def anonymization_view(made: Anonymization) -> str:
    """The anonymization as HTML: what it cost, column by column, and a few records before and after.

    O(n q) time.
    """
    table = made.table
    numbers = [
        ("k", made.k),
        ("records", f"{made.n:,}"),
        ("guarantee", made.guarantee),
        ("information loss (GCP)", f"{made.loss('ncp'):.4f}"),
        ("suppressed", f"{int(made.suppressed.sum()):,}"),
    ]
    costs = cell_costs(made.generalization, "ncp").mean(axis=1)
    names = table.qi_columns
    losses = [
        float(np.mean([costs[a] for a, domain in enumerate(table.domains) if domain.column == name]))
        for name in names
    ]
    parts = [
        facts(numbers),
        heading("Information loss by column"),
        plots.bars(names, losses, "Information loss by column"),
        *_sizes(made),
        heading("Records and what they become"),
        _changes(made),
    ]
    return view(f"Anonymization by {made.algorithm.name}", *parts, owner=True)


def _sizes(made: Anonymization) -> list[Markup]:
    sizes = sizes_of(made)
    if not sizes:
        return [
            note("This method has neither matches nor classes: af.verify says among how many each record is.")
        ]
    kind = "Matches of each generalized record" if made.matches is not None else "Class sizes"
    if len(sizes) == 1:
        return [heading(kind), note(f"Each of the {made.n:,} records has {sizes[0][0]:,}.")]
    return [
        heading(kind),
        plots.columns(sizes, kind, "matches" if made.matches is not None else "records in the class"),
    ]


def _changes(made: Anonymization) -> Markup:
    few = np.arange(min(ROWS, made.n))
    before = made.table.frame.iloc[few]
    after = made.generalization.take(few).decode(suppressed=made.suppressed[few])
    rows = []
    for at in few.tolist():
        cells = []
        for name in made.table.qi_columns:
            old, new = str(before[name].iloc[at]), str(after[name].iloc[at])
            cells.append(new if old == new else Markup("<i>{}</i>{}").format(_cut(old), _cut(new)))
        rows.append([at, *cells])
    return grid(["", *made.table.qi_columns], rows)


def _cut(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"
