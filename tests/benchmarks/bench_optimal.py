"""Optimal on small samples of Adult, how far other methods are above it, and what lower bounds take.

The samples are of 14 of Adult's complete rows, as in paper 1's section 8.2 (its Figure 7a); without the data they
are synthetic. The excess of a method is its loss over the least known, less one; the gain is what Figure 7a
shows: the share of the distance from k-concealment ("k-c") to the optimum that a method gains, of the
mean losses.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import anonflow as af
from anonflow.algorithms import REGISTRY
from anonflow.utility.bounds import lower_bound
from tests.benchmarks.bench_greedy import adult
from tests.benchmarks.measuring import data_folder, row

FREEFORM = ("two-phase", "hungarian", "sort-greedy", "greedy", "min-cost-flow", "nh")
OTHERS = ("k-concealment", "agglomerative", "forest", "k-member", "mondrian")
MOST = 0.03
"""Two-phase's mean excess, at most."""


def run(small: bool) -> list[dict[str, Any]]:
    """Samples of 8 and of 14 records, and bounds."""
    table = people(small)
    rows = eight(table, 2 if small else 10)
    rows += fourteen(
        table, range(2 if small else 50), (2, 4) if small else range(2, 8), 5 if small else 10, small
    )
    return rows + bounds(table, small)


def people(small: bool) -> af.Table:
    """Adult, or synthetic people where the data are not at hand."""
    folder = data_folder()
    if folder is None:
        frame = af.datasets.census_like(500, seed=0)
        return af.Table(frame, af.datasets.schema("census_like"))
    table = adult(folder)
    return af.Table(table.frame.iloc[:500], table.schema) if small else table


def sample(table: af.Table, n: int, number: int) -> af.Table:
    """n records drawn without replacement; domains are the sample's own, as in a table of its own."""
    at = np.random.default_rng(number).choice(table.n, n, replace=False)
    return af.Table(table.frame.iloc[at].reset_index(drop=True), table.schema)


def eight(table: af.Table, samples: int) -> list[dict[str, Any]]:
    """Whether and how soon optimality is proved on 8 records."""
    proved, longest = 0, 0.0
    af.anonymize(sample(table, 8, 0), "optimal", k=3)
    for number in range(samples):
        for k in range(2, 6):
            begin = time.perf_counter()
            made = af.anonymize(sample(table, 8, number), "optimal", k=k, time_limit=10)
            longest = max(longest, time.perf_counter() - begin)
            proved += bool(made.facts["proven"])
    share = proved / (4 * samples)
    return [
        row(f"optimal, {samples} samples of 8, k = 2 to 5: share proved", share, "", least=1),
        row(f"optimal, {samples} samples of 8, k = 2 to 5: longest", longest, "s", most=10),
    ]


def losses(
    table: af.Table, numbers: range, ks: Any, limit: float
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """GCP of every method, (samples, ks); whether optimal has proved it, and its seconds."""
    methods = ["optimal", *(name for name in FREEFORM + OTHERS if name in REGISTRY)]
    shape = (len(numbers), len(ks))
    found = {name: np.empty(shape) for name in methods}
    proved, taken = np.zeros(shape, bool), np.empty(shape)
    for a, number in enumerate(numbers):
        one = sample(table, 14, number)
        for b, k in enumerate(ks):
            for name in methods:
                options = {"time_limit": limit} if name == "optimal" else {}
                begin = time.perf_counter()
                made = af.anonymize(one, name, k=k, seed=number, **options)
                if name == "optimal":
                    taken[a, b] = time.perf_counter() - begin
                    proved[a, b] = made.facts["proven"]
                found[name][a, b] = made.loss()
    return found, proved, taken


def fourteen(table: af.Table, numbers: range, ks: Any, limit: float, small: bool) -> list[dict[str, Any]]:
    """Excess and gain of every method for each k."""
    found, proved, taken = losses(table, numbers, ks, limit)
    freeform = [name for name in found if name not in OTHERS]
    best = np.min([found[name] for name in freeform], axis=0)
    rows = []
    what = f"{len(numbers)} samples of 14"
    for b, k in enumerate(ks):
        rows.append(
            row(
                f"optimal, {what}, k = {k}: share proved",
                proved[:, b].mean(),
                "",
                least=1 if k == 2 else None,
            )
        )
        rows.append(row(f"optimal, {what}, k = {k}: longest", taken[:, b].max(), "s", most=60))
    for name, loss in found.items():
        excess = 100 * (loss / best - 1)
        goal = 1e-6 if name == "optimal" else 100 * MOST if name == "two-phase" and not small else None
        rows.append(row(f"{name}, {what}: mean excess", float(excess.mean()), "%", most=goal))
        rows += [row(f"{name}, {what}, k = {k}: excess", excess[:, b].mean(), "%") for b, k in enumerate(ks)]
    worst = found["k-concealment"].mean(axis=0)
    rows += [
        row(f"{name}, {what}, k = {k}: gain", float((worst[b] - loss[:, b].mean()) / span), "")
        for name, loss in found.items()
        for b, k in enumerate(ks)
        if (span := worst[b] - best[:, b].mean()) > 0
    ]
    return rows


def bounds(table: af.Table, small: bool) -> list[dict[str, Any]]:
    """Lower bounds: seconds and values, on Adult and on paper 2's random table."""
    lower_bound(sample(table, 50, 0).records, 3)
    rows = []
    for k in (5, 10):
        begin = time.perf_counter()
        bound = lower_bound(table.records, k)
        rows.append(row(f"lower bound, {table.n} people, k = {k}", time.perf_counter() - begin, "s"))
        rows.append(row(f"lower bound, {table.n} people, k = {k}: GCP", bound or 0.0, "", least=0))
    n = 2_000 if small else 100_000
    frame = af.datasets.random_normal(n, 10, sd=1.0, seed=0)
    qi = {"role": "quasi-identifier", "kind": "suppression"}
    random = af.Table(frame, dict.fromkeys(frame.columns, qi))
    for k, least, most in ((3, 0.153, 0.155), (10, 0.251, 0.253)):
        begin = time.perf_counter()
        bound = lower_bound(random.records, k)
        rows.append(row(f"lower bound, random_normal of {n}, k = {k}", time.perf_counter() - begin, "s"))
        goal = {} if small else {"least": least, "most": most}
        rows.append(row(f"lower bound, random_normal of {n}, k = {k}: GCP", bound or 0.0, "", **goal))
    return rows
