"""Greedy: cells a second on a whole table, and Adult in partitions of 250."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np

import anonflow as af
from anonflow.algorithms.freeform.greedy import greedy
from anonflow.algorithms.method import Partition
from tests.benchmarks.measuring import data_folder, row, seconds
from tests.cases.freeform import census
from tests.cases.tables import adult

K = 10


def run(small: bool) -> list[dict[str, Any]]:
    """The figures of Greedy."""
    n = 1_000 if small else 10_000
    records = census(n)
    part = Partition(records, "ncp", np.random.default_rng(0))
    greedy(Partition(records.take(np.arange(50)), "ncp", part.rng), K)
    part.plan  # noqa: B018
    taken = seconds(lambda: greedy(part, K), 1 if small else 3)
    cells = n * n * records.q * (K - 1) / taken
    rows = [
        row(f"greedy, whole table of {n}: cost cells", cells / 1e9, "1e9/s", least=None if small else 1.5)
    ]
    tracemalloc.start()
    greedy(part, K)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    rows.append(
        row(
            f"greedy, whole table of {n}: memory / (n (q + k) 8 B)",
            peak / (n * (records.q + K) * 8),
            "",
            most=12,
        )
    )
    folder = data_folder()
    if folder is not None:
        table = adult(folder)
        if small:
            table = af.Table(table.frame.iloc[:1_000], table.schema)
        settings = {"partition_size": 250, "k": K}
        rows += [
            row(
                "greedy, Adult in 250s, one thread",
                seconds(lambda: af.anonymize(table, "greedy", workers=1, **settings)),
                "s",
                most=1,
            ),
            row(
                "greedy, Adult in 250s, all threads",
                seconds(lambda: af.anonymize(table, "greedy", **settings)),
                "s",
                most=1,
            ),
            row(
                "greedy, Adult in 250s: GCP",
                af.anonymize(table, "greedy", **settings).loss("gcp"),
                "",
                most=None if small else 0.045,
            ),
        ]
    return rows
