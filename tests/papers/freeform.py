"""Paper 1 (freeform generalization), section 8: Figures 6 to 10 on census-like people and on Adult.

CENSUS is not to be had: census-like people have its cardinalities (Table 2) and are generated. Partitions and
their sizes are the paper's; where a method takes the whole table, tables are smaller than in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import anonflow as af
from tests.benchmarks.bench_greedy import adult
from tests.benchmarks.bench_optimal import losses, sample
from tests.benchmarks.measuring import data_folder
from tests.papers.figures import Claim, Figure, Key, Numbers, Run, made

OURS = ("greedy", "sort-greedy", "hungarian")
OTHERS = ("nh", "k-concealment")
OPTIONS: dict[str, dict[str, Any]] = {"k-concealment": {"randomized": False}}
PARTITIONS = {"greedy": 250, "sort-greedy": 150, "hungarian": 100, "nh": None}
SLOW = ("sort-greedy", "hungarian")
CENSUS, ADULT = "census-like", "Adult"
ACROSS = {
    "Figure 6": "records",
    "Figure 7b": "records",
    "Figure 9": "d",
    "Figure 9 (slope)": "d",
    "Figure 10": "records",
}


def tables(run: Run, n: int) -> Iterator[tuple[str, af.Table]]:
    """The first n records of census-like people and of Adult."""
    if run.built_in:
        frame = af.datasets.census_like(n, seed=1)
        yield CENSUS, af.Table(frame, af.datasets.schema("census_like"))
    folder = data_folder() if run.real else None
    if folder is not None:
        table = adult(folder)
        yield ADULT, af.Table(table.frame.iloc[:n], table.schema)


def one(
    key: Key, table: af.Table, method: str, k: int, partition_size: int | None = None
) -> Iterator[Figure]:
    """GCP and seconds of a run; nothing for k above n."""
    if k > table.n:
        return
    anon, seconds = made(
        table, method, k, partition_size=partition_size, workers=1, **OPTIONS.get(method, {})
    )
    yield Figure(key._replace(quantity="GCP"), anon.loss("gcp"), table.n)
    yield Figure(key._replace(quantity="seconds"), seconds, table.n)


def table_2(run: Run) -> Iterator[Figure]:
    """Cardinalities of the generated people."""
    if run.built_in:
        n = 500_000 if run.full else 20_000
        frame = af.datasets.census_like(n, seed=1)
        for name in frame.columns[:8]:
            yield Figure(Key("Table 2", "CENSUS", 0, name, "cardinality"), frame[name].nunique(), n)


def figure_6(run: Run) -> Iterator[Figure]:
    """GCP under partitioning, by the number of records."""
    sizes = {10: (10_000, 30_000, 100_000), 25: (10_000, 30_000), 50: (10_000, 30_000)}
    for k, ns in sizes.items() if run.full else ((10, (500, 1_000)),):
        for n in ns:
            for name, table in tables(run, n):
                if run.full and name == ADULT and n > 30_000:
                    continue
                for method, size in PARTITIONS.items():
                    key = Key("Figure 6", f"{name}, k = {k}", table.n, method, "")
                    yield from one(key, table, method, k, size)
    if run.full and run.built_in:
        for name, table in tables(Run(full=True), 500_000):
            for method in ("greedy", "nh"):
                key = Key("Figure 6", f"{name}, k = 10", table.n, method, "")
                yield from one(key, table, method, 10, PARTITIONS[method])


def figure_7a(run: Run) -> Iterator[Figure]:
    """The share of the way from k-concealment to the optimum, on samples of 14 records."""
    numbers, ks = range(30 if run.full else 3), tuple(range(2, 8)) if run.full else (2, 4)
    for name, table in tables(run, 30_162 if run.full else 500):
        found, proved, _ = losses(table, numbers, ks, 10.0 if run.full else 5.0)
        case = f"{name}, 14 records"
        worst, best = found["k-concealment"].mean(axis=0), found["optimal"].mean(axis=0)
        for at, k in enumerate(ks):
            for method in (*OURS, "nh", "min-cost-flow"):
                gain = (worst[at] - found[method][:, at].mean()) / (worst[at] - best[at])
                yield Figure(Key("Figure 7a", case, k, method, "gain"), float(gain), 14)
            share = float(proved[:, at].mean())
            yield Figure(Key("Figure 7a", case, k, "optimal", "share proved"), share, 14)


def figure_7b(run: Run) -> Iterator[Figure]:
    """Seconds by the number of records, k = 6: means over five samples. Of the full run only."""
    if not run.full:
        return
    for name, table in tables(run, 5_000):
        for n in (10, 12, 14, 16):
            for method in (*OURS, "nh", "k-concealment", "min-cost-flow", "optimal"):
                options = {"time_limit": 20} if method == "optimal" else OPTIONS.get(method, {})
                made(sample(table, n, 0), method, 2, **options)
                taken = [made(sample(table, n, number), method, 6, **options)[1] for number in range(5)]
                key = Key("Figure 7b", f"{name}, k = 6", n, method, "seconds")
                yield Figure(key, float(np.mean(taken)), n)


def figure_8(run: Run) -> Iterator[Figure]:
    """GCP by k, whole tables."""
    sizes = {1_000: (10, 25, 50, 100, 150), 2_000: (10, 50, 150)} if run.full else {300: (10, 50)}
    for n, ks in sizes.items():
        for name, table in tables(run, n):
            for k in ks:
                for method in (*OURS, *OTHERS, *(("min-cost-flow",) if n <= 1_000 else ())):
                    key = Key("Figure 8", f"{name}, {n:,} records", k, method, "")
                    yield from one(key, table, method, k)


def figure_9(run: Run) -> Iterator[Figure]:
    """GCP by the number of QIs, and its slope from d = 2 on."""
    n, ds, ks = (1_000, range(2, 9), (30, 50)) if run.full else (200, (2, 5, 8), (30,))
    for name, table in tables(run, n):
        names = [label for label, column in table.schema.items() if column.role == "quasi-identifier"]
        for k in ks:
            first: dict[str, float] = {}
            for d in ds:
                schema = af.Schema({column: table.schema[column] for column in names[:d]})
                part = af.Table(table.frame[names[:d]], schema)
                for method in (*OURS, *OTHERS):
                    for figure in one(Key("Figure 9", f"{name}, k = {k}", d, method, ""), part, method, k):
                        yield figure
                        if figure.key.quantity != "GCP":
                            continue
                        first.setdefault(method, figure.value)
                        if d > 2:
                            slope = (figure.value - first[method]) / (d - 2)
                            yield Figure(figure.key._replace(quantity="slope"), slope, part.n)


def figure_10(run: Run) -> Iterator[Figure]:
    """GCP by the number of records, whole tables; the quadratic and cubic methods on the smaller ones."""
    sizes = {15: (1_000, 2_000, 4_000, 8_000, 16_000), 50: (1_000, 2_000, 4_000, 8_000)}
    for k, ns in sizes.items() if run.full else ((15, (100, 300)),):
        for n in ns:
            for name, table in tables(run, n):
                for method in (*OURS, *OTHERS):
                    if method in SLOW and n * k > 60_000:
                        continue
                    key = Key("Figure 10", f"{name}, k = {k}", table.n, method, "")
                    yield from one(key, table, method, k)


PARTS = {
    "Table 2": table_2,
    "Figure 6": figure_6,
    "Figure 7a": figure_7a,
    "Figure 7b": figure_7b,
    "Figure 8": figure_8,
    "Figure 9": figure_9,
    "Figure 10": figure_10,
}


def why_not(key: Key, records: int | None) -> str:
    """Why a printed number cannot be compared."""
    return ""


def claims(numbers: Numbers, printed: Mapping[Key, str]) -> list[Claim]:
    """What the paper says of its figures."""
    return []
