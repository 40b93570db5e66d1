"""Schemas and tables in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anonflow.drawing import facts, grid, heading, share, view
from anonflow.hierarchy import Hierarchy, number_text
from anonflow.table.schema import MISSING_RULES, Column

if TYPE_CHECKING:
    from anonflow.table.frame import Table
    from anonflow.table.schema import Schema

__all__ = ["schema_view", "table_view"]

ROWS = 5
"""Records that are shown."""

COUNTED = 100_000
"""Unique records are counted for at most so many: a repr answers at once."""


def schema_view(schema: Schema) -> str:
    """The columns and what they are, as HTML; labels of boundaries are shown, so it is the owner's."""
    rows = [
        (name, column.role, column.kind or "", _details(column)) for name, column in schema.columns.items()
    ]
    return view(f"Schema of {len(schema)} columns", grid(["column", "role", "kind", "more"], rows))


def table_view(table: Table) -> str:
    """The table's size, its columns, and its first records, as HTML."""
    numbers: list[tuple[str, Any]] = [
        ("records", f"{table.n:,}"),
        ("quasi-identifiers", len(table.qi_columns)),
        ("other columns", len(table.other_columns)),
    ]
    if table.dropped:
        numbers.append(("left out for a missing value", f"{table.dropped:,}"))
    if table.n <= COUNTED:
        from anonflow.table.uniqueness import Uniqueness

        unique = Uniqueness(table.frame, table.qi_columns).unique
        numbers.append(("unique on the quasi-identifiers", f"{unique:,} ({share(unique, table.n)})"))
    rows = []
    for name in map(str, table.frame.columns):
        column = table.schema[name]
        sizes = [int((domain.counts > 0).sum()) for domain in table.domains if domain.column == name]
        rows.append(
            (
                name,
                column.role,
                column.kind or "",
                " / ".join(f"{size:,}" for size in sizes),
                _details(column),
            )
        )
    first = table.frame.head(ROWS)
    records = list(first.itertuples(index=True, name=None))
    return view(
        "Table",
        facts(numbers),
        grid(["column", "role", "kind", "distinct values", "more"], rows, numbers=[3]),
        heading(f"The first {len(first)} records"),
        grid(["", *first.columns], records),
        owner=True,
    )


def _details(column: Column) -> str:
    said = []
    if isinstance(column.hierarchy, Hierarchy):
        tree = column.hierarchy
        said.append(f"{tree.n_leaves:,} leaves, height {int(tree.height[0])}")
    elif isinstance(column.hierarchy, str):
        said.append(f"from {column.hierarchy}")
    elif column.hierarchy is not None:
        said.append(f"from {next(iter(column.hierarchy))}")
    if isinstance(column.boundary, tuple):
        said.append("boundary " + ", ".join(column.boundary))
    elif column.boundary is not None:
        said.append(f"boundary: width {number_text(column.boundary)}")
    if column.limit is not None:
        said.append(
            f"at most {number_text(column.limit)} " + ("wide" if column.kind == "numeric" else "values")
        )
    if column.kind is not None and column.missing not in (None, MISSING_RULES[column.kind][0]):
        said.append(f"missing: {column.missing}")
    if column.weight != 1.0:
        said.append(f"weight {number_text(column.weight)}")
    return "; ".join(said)
