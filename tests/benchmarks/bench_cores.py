"""Cores: how many times as fast a method is on all of them as on one, and the share of it that only one core does."""

from __future__ import annotations

from functools import partial
from typing import Any

import anonflow as af
from anonflow import datasets
from anonflow.algorithms.registry import algorithm_named
from tests.benchmarks.measuring import data_folder, machine, row, seconds
from tests.cases.tables import adult

LEAST = 0.95
"""Share of the cores that must work: 1.9 of 2."""

LATER = 16
"""Cores for which the serial share says the most that can be had (Amdahl 1967)."""

CASES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "two-phase": ("two-phase", 30_162, {"kicks": 0}),
    "two-phase, 10 kicks": ("two-phase", 30_162, {"kicks": 10}),
    "k-member": ("k-member", 30_162, {}),
    "k-member, chains and 10 kicks": ("k-member", 30_162, {"improve": "chains", "kicks": 10}),
    "hungarian, partitions of 250": ("hungarian", 30_162, {"partition_size": 250}),
    "greedy, partitions of 250": ("greedy", 30_162, {"partition_size": 250}),
}
"""Name -> method, records of Adult, settings."""


def run(small: bool) -> list[dict[str, Any]]:
    """Times as fast as on one core, the serial share, and what 16 cores could bring."""
    cores = 2 if small else machine()["cores"]
    folder = data_folder()
    people = (
        adult(folder)
        if folder is not None
        else af.Table(datasets.census_like(30_162, seed=0), datasets.schema("census_like"))
    )
    rows = []
    for name, (method, n, settings) in CASES.items():
        table = af.Table(people.frame.iloc[: 600 if small else n], people.schema)
        has_threads = "threads" in algorithm_named(method).options
        calls = [
            partial(
                af.anonymize, table, method, k=10, seed=1, workers=workers,
                **settings, **({"threads": workers} if has_threads else {}),
            )
            for workers in (1, cores)
        ]  # fmt: skip
        alone, together = (call() for call in calls)
        assert alone.frame().equals(together.frame()), name
        taken = [seconds(call, 1 if small else 3) for call in calls]
        faster = taken[0] / taken[1]
        serial = min(1.0, max(0.0, (cores / faster - 1) / (cores - 1))) if cores > 1 else 1.0
        goal = LEAST * cores if cores == 2 and not small else None
        rows += [
            row(f"{name}, k = 10, {table.n} records: one core", taken[0], "s"),
            row(f"{name}: {cores} cores", faster, "times", least=goal),
            row(f"{name}: serial share", 100 * serial, "%"),
            row(f"{name}: so {LATER} cores, at most", 1 / (serial + (1 - serial) / LATER), "times"),
        ]
    return rows
