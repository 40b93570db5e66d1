"""Ejection chains beside every other method: seconds against loss, as figures and as a picture, ``out/chains.svg``.

How the defaults of :mod:`anonflow.algorithms.freeform.chains` were found is in DEFAULTS below, measured on Adult (30,162
complete rows, 8 QIs, k = 10) from Hungarian in stretches of 1,000.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import anonflow as af
from tests import ROOT
from tests.benchmarks.bench_greedy import adult
from tests.benchmarks.curves import Curve, drawing
from tests.benchmarks.measuring import data_folder, row

KICKS = (0, 2, 10, 40)
"""Of the curve of chains."""

OTHERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("greedy", {"partition_size": 250}),
    ("sort-greedy", {"partition_size": 250}),
    ("nh", {}),
    ("min-cost-flow", {"partition_size": 250}),
    ("hungarian", {"partition_size": 250}),
    ("hungarian", {"partition_size": 1_000}),
    ("two-phase", {"improve": "reassign"}),
)
"""The other methods that end in a k-regular graph, at settings of about the same seconds."""

GOALS = {
    ("Adult", 10): ((7.0, 0.0285), (30.0, 0.0280), (240.0, 0.0276)),
    ("Adult", 5): ((3.0, 0.0147), (8.0, 0.0145), (60.0, 0.0143)),
    ("random_normal", 3): ((30.0, 0.200),),
    ("random_normal", 10): ((90.0, 0.365),),
}
"""Table and k -> budgets in seconds, and the loss to be reached with each."""


def run(small: bool) -> list[dict[str, Any]]:
    """The figures, and the picture."""
    rows: list[dict[str, Any]] = []
    panels: list[tuple[str, dict[str, Curve]]] = []
    for name, table in tables(small):
        for k in (goal[1] for goal in GOALS if goal[0] == name):
            af.anonymize(
                af.Table(table.frame.iloc[:200], table.schema), "two-phase", k=k, kicks=1
            )  # compiles
            curves: dict[str, Curve] = {}
            for algorithm, options in OTHERS:
                if not small and algorithm == "min-cost-flow" and name == "random_normal":
                    continue  # an hour
                brief = {"passes": 2} if small and algorithm == "two-phase" else {}
                label = ", ".join([algorithm, *(f"{key} {value}" for key, value in options.items())])
                taken, loss = measured(table, algorithm, k, **options, **brief)
                curves[label] = {taken: loss}
                rows += figures(f"{name}, k = {k}, {label}", taken, loss)
            label = "two-phase, improve chains"
            curves[label] = {}
            for kicks in (0, 1) if small else KICKS:
                taken, loss = measured(table, "two-phase", k, kicks=kicks)
                curves[label][taken] = loss
                rows += figures(f"{name}, k = {k}, {label}, {kicks} kicks", taken, loss)
            for budget, most in GOALS[name, k][: 1 if small else None]:
                taken, loss = measured(table, "two-phase", k, budget=0.5 if small else budget)
                goals = (None, None) if small else (1.1 * budget, most)
                rows += figures(f"{name}, k = {k}, {label}, budget {budget:g} s", taken, loss, *goals)
            panels.append((f"{name}, k = {k}: GCP", curves))
    if panels:
        picture = ROOT / "out" / ("chains-small.svg" if small else "chains.svg")
        picture.parent.mkdir(exist_ok=True)
        picture.write_text(drawing(panels, "seconds", logarithmic=True), encoding="utf-8")
    return rows


def tables(small: bool) -> Iterator[tuple[str, af.Table]]:
    """The tables, one after the other."""
    folder = data_folder()
    if folder is not None:
        table = adult(folder)
        yield "Adult", af.Table(table.frame.iloc[:300], table.schema) if small else table
    frame = af.datasets.random_normal(300 if small else 100_000, 10, sd=1.0, seed=0)
    qi = {"role": "quasi-identifier", "kind": "suppression"}
    yield "random_normal", af.Table(frame, dict.fromkeys(frame.columns, qi))


def measured(table: af.Table, algorithm: str, k: int, **options: Any) -> tuple[float, float]:
    """Seconds and loss of one run, which is verified."""
    begin = time.perf_counter()
    anon = af.anonymize(table, algorithm, k=k, seed=1, **options)
    taken = time.perf_counter() - begin
    af.verify(table, anon).raise_if_failed()
    return taken, anon.loss()


def figures(
    name: str, taken: float, loss: float, limit: float | None = None, most: float | None = None
) -> list[dict[str, Any]]:
    """Both as rows."""
    return [row(name, taken, "s", most=limit), row(f"{name}: GCP", loss, "", most=most)]
