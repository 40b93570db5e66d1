"""What the process that starts a run holds: 100,000 records with 10 quasi-identifiers in memory, on threads and on processes."""

from __future__ import annotations

from typing import Any

from tests.benchmarks.measuring import row
from tests.cases.scale import COLUMNS, SCHEDULERS, peaks


def run(small: bool) -> list[dict[str, Any]]:
    """The client's peak on threads and on processes, and one beside the other."""
    n = 2_000 if small else 100_000
    held = peaks(n)
    rows = [
        row(f"{n:,} x {COLUMNS} in memory, {scheduler}: client's peak memory", held[scheduler], "GiB")
        for scheduler in SCHEDULERS
    ]
    beside = held["processes"] / held["threads"]
    return [
        *rows,
        row(f"{n:,} x {COLUMNS} in memory: client's peak on processes / on threads", beside, "", most=1.15),
    ]
