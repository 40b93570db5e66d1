"""The slower freeform methods: hungarian and two-phase on Adult, two-phase on random tables, NH beside it.

Sparse assignments over candidates, renewed for each (``start="sparse"``), on random_normal(10,000, 10), k = 3:
0.3099 where stretches of 1,000 give 0.3335, in 12 s of processor time against 0.8; 20,000 labels of the cycle
search took that to 0.3086 (111 cycles, 5 s). On 100,000 records at k = 3: 0.2007 (154 s of the clock, 237 s of
processor time, 0.67 GiB).
Multiple sorting (``pairs="sorted"``) finds 35 near records of each of 1,000,000 at once in 38 s of processor time and 0.96 GiB, of each
of 100,000 in 3.3 s (`near_once` of ``tests/papers/low_information_loss.py``, on a busy machine): the assignments take the rest.
"""

from __future__ import annotations

from typing import Any

import anonflow as af
from tests.benchmarks.measuring import data_folder, row, seconds
from tests.cases.tables import adult


def run(small: bool) -> list[dict[str, Any]]:
    """The figures of Two-phase."""
    rows = []
    folder = data_folder()
    if folder is not None:
        table = adult(folder)
        if small:
            table = af.Table(table.frame.iloc[:600], table.schema)
        for k, most in ((5, 0.0158), (10, 0.0302)):
            rows += measured("Adult", table, "hungarian", k, small, most, 12.0, partition_size=1_000)
            rows += measured(
                "Adult", table, "hungarian", k, small, None, None, partition_size=1_000, reciprocal=True
            )
        for k, most in ((5, 0.0152), (10, 0.0285)):
            rows += measured("Adult", table, "two-phase", k, small, most, 60.0)
    n = 1_000 if small else 100_000
    frame = af.datasets.random_normal(n, 10, sd=1.0, seed=0)
    qi = {"role": "quasi-identifier", "kind": "suppression"}
    table = af.Table(frame, dict.fromkeys(frame.columns, qi))
    for k, most in ((3, 0.21), (10, 0.39)):
        rows += measured(f"random_normal of {n}", table, "two-phase", k, small, most, None)
        rows += measured(f"random_normal of {n}", table, "nh", k, small, None, None)
    return rows


def measured(
    name: str,
    table: af.Table,
    algorithm: str,
    k: int,
    small: bool,
    most: float | None,
    limit: float | None,
    **options: Any,
) -> list[dict[str, Any]]:
    """Seconds and GCP of one run."""
    if small and algorithm == "two-phase":
        options["kicks"] = 1
    if options.get("reciprocal"):
        name = f"reciprocal, {name}"
    options.setdefault("partition_size", None)
    af.anonymize(af.Table(table.frame.iloc[:100], table.schema), algorithm, k=k, seed=1, **options)
    results = []
    taken = seconds(lambda: results.append(af.anonymize(table, algorithm, k=k, seed=1, **options)), 1)
    return [
        row(f"{algorithm}, {name}, k = {k}", taken, "s", most=None if small else limit),
        row(f"{algorithm}, {name}, k = {k}: GCP", results[-1].loss("gcp"), "", most=None if small else most),
    ]
