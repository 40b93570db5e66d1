"""Pattern-guided: the heuristic on large tables, its local search, and the integer program with its proven gap.

The scenarios are Bredereck 2013's: Nursery with all 256 patterns (Table 6), CMC with at most two suppressions (57 patterns), Adult-2
with four constraints (15), the latter two with the fallback of suppressing everything.
"""

from __future__ import annotations

import resource
import sys
import time
from typing import Any

import pandas as pd

import anonflow as af
from tests.benchmarks.measuring import data_folder, row, seconds
from tests.cases.patterns import TABLE_6, nursery, scenario, table

KS = tuple(TABLE_6)


def run(small: bool) -> list[dict[str, object]]:
    """Rows of name, figure, unit, goal, met."""
    rows = []
    folder = data_folder()
    af.anonymize(table(pd.DataFrame({"a": list("xxyy"), "b": list("uvuv")})), "pattern-guided-optimal", k=2)
    if folder is not None:
        heart = pd.read_csv(
            folder / "large" / "heart_2020_cleaned.csv.gz", dtype=str, nrows=2_000 if small else None
        )
        people = table(heart.iloc[:, :12])
        items: list[Any] = []
        taken = seconds(lambda: items.append(af.anonymize(people, "pattern-guided", k=10, seed=1)), 1)
        rows.append(
            row(f"pattern-guided, {people.n:,} x 12, 4,096 patterns", taken, "s", most=None if small else 8)
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        if sys.platform == "linux":
            rows.append(row("memory of the process until then", peak, "GiB", most=3))
        adult = table(af.datasets.adult().drop(columns="fnlwgt").iloc[: 500 if small else None])
        taken = seconds(lambda: af.anonymize(adult, "pattern-guided", k=10, seed=1), 1)
        rows.append(row("pattern-guided, Adult x 14, 16,384 patterns", taken, "s", most=None if small else 4))
    for k in KS[:2] if small else KS:
        rows += solved("Nursery", nursery(), "all", k, 20, most=TABLE_6[k])
    if folder is not None:
        for name in ("cmc", "adult-2"):
            people, patterns = scenario(name)
            if small:
                people = af.Table(people.frame.iloc[:300], people.schema)
            for k in KS[:1] if small else KS:
                rows += solved(name, people, patterns, k, 2 if small else 15, most=None)
    return rows


def solved(
    name: str, people: af.Table, patterns: Any, k: int, limit: float, most: float | None
) -> list[dict[str, object]]:
    """Heuristic, local search and integer program on one table."""
    start = time.perf_counter()
    facts = af.anonymize(
        people, "pattern-guided-optimal", k=k, patterns=patterns, time_limit=limit, seed=1
    ).facts
    taken = time.perf_counter() - start
    text = f"{name}, k = {k}"
    return [
        row(f"{text}: heuristic", facts["heuristic"], "entries"),
        row(f"{text}: with local search", facts["local_search"], "entries", most=facts["heuristic"]),
        row(f"{text}: integer program", facts["cost"], "entries", most=most, least=most),
        row(f"{text}: proven gap", 100 * facts["gap"], "%"),
        row(f"{text}: time for a limit of {limit:g} s", taken, "s", most=limit + 1),
    ]
