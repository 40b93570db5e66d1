"""Schemas and tables in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from anonflow.drawing import facts, grid, heading, view
from anonflow.hierarchy.wording import plural

ROWS = 5
"""Records that are shown."""


def schema_view(rows: Sequence[tuple[str, str, str, str]]) -> str:
    """Return columns with their role, kind and details as HTML. It shows labels of boundaries, so it belongs to the owner."""
    return view(f"Schema of {plural(len(rows), 'column')}", grid(["column", "role", "kind", "more"], rows))


def table_view(
    numbers: Sequence[tuple[str, Any]], rows: Sequence[tuple[str, str, str, str, str]], frame: pd.DataFrame
) -> str:
    """Return a table as HTML: its size, its columns (with their distinct values), and its first records."""
    first = frame.head(ROWS)
    records = list(first.itertuples(index=True, name=None))
    return view(
        "Table",
        facts(numbers),
        grid(["column", "role", "kind", "distinct values", "more"], rows, numbers=[3]),
        heading(f"The first {plural(len(first), 'record')}"),
        grid(["", *first.columns], records),
        owner=True,
    )
