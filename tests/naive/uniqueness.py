"""Records that no other equals, by comparing each with each."""

from __future__ import annotations

from collections.abc import Sequence


def unique_on(rows: Sequence[tuple[str, ...]], columns: int) -> int:
    """Rows whose first `columns` cells no other row has."""
    cut = [row[:columns] for row in rows]
    return sum(sum(item == other for other in cut) == 1 for item in cut)


def at_risk(rows: Sequence[tuple[str, ...]], k: int) -> int:
    """Rows that fewer than k rows equal, themselves included."""
    return sum(sum(row == other for other in rows) < k for row in rows)
