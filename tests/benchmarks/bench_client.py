"""What the process that starts a run holds: 100,000 records with 10 quasi-identifiers in memory, on threads and on processes."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from anonflow import datasets
from tests.benchmarks.bench_scale import COLUMNS, GIB, measured
from tests.benchmarks.measuring import row

SCHEDULERS = ("threads", "processes")


def peaks(n: int) -> dict[str, float]:
    """GiB that the client holds at the most, for each scheduler."""
    with tempfile.TemporaryDirectory() as home:
        source = Path(home) / "people.parquet"
        datasets.write_random_normal(source, n, COLUMNS, rows=1 << 17)
        return {
            scheduler: measured(
                Path(home) / scheduler,
                source,
                "numeric",
                "{size: 250}",
                "{algorithm: greedy, k: 10}",
                "false",
                f"{{scheduler: {scheduler}, workers: 2}}",
            )["peak-memory-bytes"]
            / GIB
            for scheduler in SCHEDULERS
        }


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
