"""Mondrian on 500,000 census-like records beside one lexicographic sort of the same columns."""

from __future__ import annotations

import time

import numpy as np

from anonflow import datasets
from anonflow.algorithms.classes.mondrian import mondrian_labels
from anonflow.algorithms.method import Partition
from anonflow.table import Table


def run(small: bool) -> list[dict[str, object]]:
    """Rows of name, figure, unit, goal, met."""
    n = 5_000 if small else 500_000
    table = Table(datasets.census_like(n, 1), datasets.schema("census_like"))
    part = Partition(table.records, "ncp", np.random.default_rng(0))
    mondrian_labels(part, 10)
    columns = [np.ascontiguousarray(table.codes[:, a]) for a in range(table.q)]
    ratios, seconds = [], []
    for _ in range(5):
        start = time.perf_counter()
        np.lexsort(columns)
        middle = time.perf_counter()
        mondrian_labels(part, 10)
        seconds.append(time.perf_counter() - middle)
        ratios.append(seconds[-1] / (middle - start))
    ratio = float(np.median(ratios))
    return [
        {
            "name": f"Mondrian, {n:,} census-like records",
            "figure": float(np.median(seconds)),
            "unit": "s",
            "goal": None,
            "met": None,
        },
        {
            "name": f"Mondrian, {n:,}, ratio to np.lexsort",
            "figure": ratio,
            "unit": "x",
            "goal": "<= 4",
            "met": small or ratio <= 4,
        },
    ]
