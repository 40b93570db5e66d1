"""What reciprocal graphs cost: the loss and the processor's time of each method with them, beside the same without."""

from __future__ import annotations

import time
from typing import Any

import anonflow as af
from tests.benchmarks.measuring import data_folder, row
from tests.cases.tables import adult

RUNS: tuple[tuple[str, int | None], ...] = (
    ("greedy", 250),
    ("sort-greedy", 250),
    ("hungarian", 250),
    ("min-cost-flow", 250),
    ("nh", None),
    ("two-phase", None),
)
"""Methods with the size of their partitions."""

KS = (3, 4, 5, 10)

PROVED = ((2, 30), (3, 20), (4, 12), (5, 12))
"""k and the size of partitions in which optimal proves its result within seconds."""

RECORDS = 1_000


def run(small: bool) -> list[dict[str, Any]]:
    """The figures: shares of the loss, ratios of times."""
    rows: list[dict[str, Any]] = []
    for name, table in tables(30 if small else RECORDS):
        for k in KS[:1] if small else KS:
            for method, size in RUNS:
                rows += measured(f"{name}, k = {k}", table, method, k, size)
    for name, table in tables(8 if small else 60):
        for k, size in ((3, 8),) if small else PROVED:
            rows += measured(f"{name}, k = {k}", table, "optimal", k, size, time_limit=5.0)
    return rows


def tables(n: int) -> list[tuple[str, af.Table]]:
    """n records each."""
    drawn = [
        (
            f"census-like {n}",
            af.Table(af.datasets.census_like(n, seed=1), af.datasets.schema("census_like")),
        )
    ]
    folder = data_folder()
    if folder is not None:
        table = adult(folder)
        rows = table.frame.sample(n, random_state=1).reset_index(drop=True)
        drawn.append((f"Adult {n}", af.Table(rows, table.schema)))
    return drawn


def measured(
    name: str, table: af.Table, method: str, k: int, size: int | None, **more: Any
) -> list[dict[str, Any]]:
    """By how much the loss is greater, and how many times as long it takes."""
    losses, times = [], []
    for reciprocal in (False, True):
        options: dict[str, Any] = {"partition_size": size, "reciprocal": reciprocal, "workers": 1, **more}
        few = af.Table(table.frame.iloc[: 8 if method == "optimal" else 100], table.schema)
        af.anonymize(few, method, k=k, seed=1, **options)  # compiles
        begin = time.process_time()
        anon = af.anonymize(table, method, k=k, seed=1, **options)
        times.append(max(time.process_time() - begin, 1e-3))
        af.verify(table, anon).raise_if_failed()
        losses.append(anon.loss())
    where = f"in {size}" if size else "whole"
    return [
        row(f"{name}, {method} {where}: loss added by reciprocal", 100 * (losses[1] / losses[0] - 1), "%"),
        row(f"{name}, {method} {where}: times as long", times[1] / times[0], ""),
    ]
