"""What a budget makes of `auto` and of single methods: seconds beside the budget, and loss beside that of the best fixed choice.

A fixed choice is a method with its options, run whole; the best one is that of least loss among those that took no longer than the
budget allows, of all methods for `auto`, of the same method for the others. Twenty percent over the budget, and five percent over the loss, are the goals.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import anonflow as af
from anonflow.errors import AnonflowError
from tests.benchmarks.measuring import data_folder, row
from tests.cases.tables import adult

K = 10
BUDGETS = (2.0, 5.0, 15.0)
LATE, WORSE = 1.2, 1.05

CHAINS = {"improve": "chains"}
FIXED: dict[str, tuple[tuple[str, int | None, dict[str, Any]], ...]] = {
    "k-regular": (
        ("greedy", 250, {}),
        ("greedy", 5_000, {}),
        ("hungarian", 250, {}),
        ("hungarian", 1_000, {}),
        ("two-phase", None, {"first": 250, "rounds": 1, "kicks": 0}),
        ("two-phase", None, {"first": 500, "kicks": 0}),
        ("two-phase", None, {"kicks": 0}),
        ("two-phase", None, {"kicks": 3}),
        ("two-phase", None, {"kicks": 10}),
    ),
    "k-anonymity": (
        ("mondrian", None, {}),
        ("mondrian", None, {**CHAINS, "rounds": 6, "kicks": 3}),
        ("k-member", 250, {**CHAINS, "kicks": 0}),
        ("k-member", 1_000, {**CHAINS, "kicks": 0}),
        ("k-member", 5_000, {**CHAINS, "kicks": 0}),
        ("k-member", 5_000, {**CHAINS, "rounds": 6, "kicks": 10}),
        ("k-member", 5_000, {**CHAINS, "rounds": 6, "kicks": 50}),
        ("k-member", 5_000, {**CHAINS, "rounds": 6, "kicks": 150}),
    ),
}


SINGLE: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "k-regular": (("greedy", {"partition_size": "auto"}), ("two-phase", {})),
    "k-anonymity": (("k-member", {"partition_size": "auto", **CHAINS}),),
}
"""Methods that have a budget without `auto`."""


def tables(small: bool) -> Iterator[tuple[str, af.Table]]:
    """Six tables: real and generated ones, of 1,500 to 50,000 records and 4 to 10 columns."""
    folder = data_folder()
    if folder is not None:
        whole = adult(folder)
        yield "Adult", af.Table(whole.frame.iloc[:400], whole.schema) if small else whole
        if not small:
            yield "Adult, 5,000", af.Table(whole.frame.iloc[:5_000].reset_index(drop=True), whole.schema)
    sizes = (400,) if small else (10_000, 50_000)
    for n in sizes:
        frame = af.datasets.census_like(n, seed=1)
        yield f"people, {n:,}", af.Table(frame, af.datasets.schema("census_like"))
    for n, q in ((300, 4),) if small else ((1_500, 4), (20_000, 10)):
        frame = af.datasets.random_normal(n, q, seed=1)
        yield (
            f"normal, {n:,} x {q}",
            af.Table(frame, {name: {"role": "quasi-identifier", "kind": "numeric"} for name in frame}),
        )


def timed(table: af.Table, *arguments: Any, **options: Any) -> tuple[float, float]:
    """Seconds and loss of a run."""
    start = time.perf_counter()
    anon = af.anonymize(table, *arguments, k=K, seed=1, **options)
    return time.perf_counter() - start, float(anon.loss())


def run(small: bool) -> list[dict[str, Any]]:
    """For each table, guarantee and budget: seconds over the budget, and loss over that of the best fixed choice."""
    rows = []
    for title, table in tables(small):
        few = af.Table(table.frame.iloc[:300], table.schema)
        for guarantee, choices in FIXED.items():
            fixed = []
            for algorithm, size, options in choices[:1] if small else choices:
                try:
                    timed(
                        few, algorithm, partition_size=min(size or 300, 300), **options
                    )  # kernels are ready
                    fixed.append((algorithm, *timed(table, algorithm, partition_size=size, **options)))
                except AnonflowError:
                    continue  # fewer records than a partition needs
            budgeted = (("auto", {"guarantee": guarantee}), *SINGLE[guarantee])
            for budget, (name, settings) in itertools.product((1.0,) if small else BUDGETS, budgeted):
                seconds, loss = timed(table, name, budget=budget, **settings)
                in_time = (
                    lost for method, took, lost in fixed if name in ("auto", method) and took <= LATE * budget
                )
                best = min(in_time, default=loss)
                goals: tuple[dict[str, Any], ...] = ({}, {}) if small else ({"most": LATE}, {"most": WORSE})
                place = f"{title}, {guarantee}, {name}, {budget:g} s"
                rows.append(row(f"{place}: seconds over budget", seconds / budget, "times", **goals[0]))
                rows.append(
                    row(
                        f"{place}: loss {loss:.5f} over the best fixed choice's",
                        loss / best,
                        "times",
                        **goals[1],
                    )
                )
    return rows
