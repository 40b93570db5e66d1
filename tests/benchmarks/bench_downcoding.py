"""What minimal generalization gives away: finer cells that are guessed, and values that are ruled out, from the releases of all methods."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import anonflow as af
from anonflow import datasets, risk
from anonflow.algorithms import REGISTRY
from anonflow.errors import AnonflowError
from tests.benchmarks.measuring import data_folder, row
from tests.cases.recoding import QI, adult_levels, heart_levels
from tests.checks import SOON

K = 5
FEW = ["age", "education", "occupation", "marital-status"]
ATTACKERS = [risk.Downcoding(), risk.Refinement(targets=1_000)]


def tables(small: bool) -> Iterator[tuple[str, af.Table]]:
    """Census-like and Nursery with hierarchies; Adult and heart where the data is."""
    n = 60 if small else 1_000
    frame = datasets.census_like(n, seed=3)
    schema: dict[str, Any] = datasets.schema("census_like")
    schema |= {
        name: {**QI, "kind": "suppression"}
        for name, entry in schema.items()
        if entry.get("kind") == "categorical"
    }
    yield "census-like", af.Table(frame, schema)
    nursery = datasets.nursery().sample(n, random_state=3).reset_index(drop=True)
    yield "Nursery", af.Table(nursery, datasets.schema("nursery", hierarchies=True))
    folder = data_folder()
    if folder is None or small:
        return
    adult = adult_levels(folder, n)
    yield "Adult", adult
    few = {name: entry for name, entry in adult.schema.to_mapping().items() if name in FEW}
    yield "Adult, 4 columns", af.Table(adult_levels(folder, 5 * n).frame[FEW], few)
    yield "heart", heart_levels(folder, n)


def run(small: bool) -> list[dict[str, object]]:
    """Rows of name, figure, unit, goal, met."""
    rows: list[dict[str, Any]] = []
    for title, table in tables(small):
        for name in ["local-recoding", "mondrian", "agglomerative"] if small else REGISTRY:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of short seeds and columns that follow
                try:
                    release = af.anonymize(
                        table, name, K, partition_size=None, seed=1, **SOON.get(name, {})
                    ).release(seed=2**127)
                except AnonflowError:  # codes without positions, no levels, no assignment in time
                    continue
            for attacker in ATTACKERS:
                try:
                    result = af.attack(table, release, attacker, seed=1).iloc[0]
                except AnonflowError:
                    continue
                text = f"{title} {table.n:,} x {table.q}, {name}: {attacker.name}"
                rows.append(row(f"{text}, right", result["success"], "of the people"))
                if attacker.name == "downcoding":
                    rows.append(row(f"{text}, without minimality", result["baseline"], "of the people"))
    return rows
