"""Doka 2015 (freeform generalization), section 8: Figures 6 to 10 on census-like people and on Adult.

CENSUS, the paper's table, is not to be had: census-like people have its cardinalities (Table 2) and are generated; Adult
is a second table. Partitions and their sizes are the paper's, and beside them are sizes that take equal times here; where a
method takes the whole table, the slowest take smaller ones than in the paper, and each claim says how small.

The paper leaves open in which order Greedy's records choose on a whole table, and which program its "k-c" is. A `Reading`
names a curve for each; the claims are judged under the paper's, and under anonflow's defaults beside it.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import anonflow as af
from anonflow.algorithms.anonymize import Anonymization
from anonflow.algorithms.classes.agglomerative import DISTANCES
from anonflow.algorithms.freeform.nh import halves
from anonflow.algorithms.registry import algorithm_named
from anonflow.generalization import Generalization
from anonflow.kernels.costs import load, widen_jit
from anonflow.kernels.row_costs import increase_row_jit
from anonflow.kernels.state import copy_state
from anonflow.partition import cut, lexicographic_order
from anonflow.release.draw import decompose
from tests.benchmarks.bench_optimal import sample
from tests.benchmarks.measuring import data_folder
from tests.cases.freeform import part_of, total
from tests.cases.tables import adult
from tests.papers.figures import (
    Claim,
    Figure,
    Key,
    Numbers,
    Run,
    ends,
    listed,
    rises,
    spread,
    timed_run,
)

OURS = ("greedy", "sort-greedy", "hungarian")
OTHERS = ("nh", "k-c")
PRINTED = {"nh": "NH", "k-c": "k-c"}
ON_TREES = "k-concealment on trees"
ORDERS: dict[str, dict[str, Any]] = {
    "greedy": {"visit": "input"},
    "greedy, spread": {"visit": "spread"},
    "greedy, lexicographic": {"visit": "lexicographic"},
}
"""In which order the records of a whole table choose: as they come, far apart, and along the lexicographic order."""
AGGLOMERATIVE: dict[str, dict[str, Any]] = {f"agglomerative, {dist}": {"dist": dist} for dist in DISTANCES}
CONCEALING: dict[str, dict[str, Any]] = {
    "k-concealment": {"randomized": False},
    "k-concealment, randomized": {"randomized": True, "near": "pairs"},
    ON_TREES: {"randomized": False},
    f"{ON_TREES}, randomized": {"randomized": True, "near": "pairs"},
}
"""Tassa 2012's methods, deterministic and randomized, on sets and ranges or with a hierarchy for every QI."""
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    **{way: ("greedy", options) for way, options in ORDERS.items()},
    "sort-greedy": ("sort-greedy", {"edges": "weight"}),
    "hungarian": ("hungarian", {}),
    "nh": ("nh", {}),
    **{way: ("agglomerative", options) for way, options in AGGLOMERATIVE.items()},
    **{way: ("k-concealment", options) for way, options in CONCEALING.items()},
    "min-cost-flow": ("min-cost-flow", {}),
}
"""A method and its options for each curve; sort-greedy's are the paper's, anonflow's default loses less."""


WHOLE_TABLE = tuple(way for way in WAYS if way != "min-cost-flow")
"""What Figures 9 and 10 have."""


class Reading(NamedTuple):
    """Which curves are the paper's Greedy on a whole table, and its k-c."""

    greedy: str
    k_c: str


PAPER = Reading("greedy", "agglomerative, weighted")
DEFAULTS = Reading("greedy, spread", "k-concealment")
READING = f"the paper's: greedy's records as they come, k-c is {PAPER.k_c}"
READING_BESIDE = "anonflow's defaults: greedy spread, k-c is k-concealment"
ORDER_NAMES = ("as they come", "spread", "lexicographic")
"""Those of `ORDERS`, in words."""
TIES = ("lowest", "highest", "nearest", "next", "last", "random")
"""Which of equally cheap records greedy takes, by position along the lexicographic order."""
PARTITIONS = {"greedy": 250, "sort-greedy": 150, "hungarian": 100, "nh": None}
WHOLE = {10: (2_000, 10_000, 100_000, 500_000), 25: (2_000, 10_000, 100_000), 50: (2_000, 10_000, 100_000)}
"""Figure 6: numbers of records for each k; of Adult all 30,162 instead of more."""
STEP, SAMPLED = 5, 8
"""Figure 6 with equal times: steps of the sizes that are tried, and the partitions that are timed."""
WITH_PAPER_SIZE, EQUAL_TIMES = " with the paper's size", "Figure 6 with equal times"
SAMPLES, TIMED, LIMIT, SMALL_LIMIT = 100, 20, 30.0, 120.0
"""Figure 7: samples of 14 records in 7a and in 7b, and seconds for the optimum of one.

The small run allows more seconds than it needs: its numbers must not depend on how busy the machine is.
"""
BY_K = dict.fromkeys((1000, 10000), (10, 25, 50, 100, 150))
"""Figure 8: k for each number of records; of Adult 1,000 alone."""
BY_D = {1_000: ((2, 4, 6, 8), (30, 50)), 10_000: ((2, 4, 6, 8), (30, 50))}
"""Figure 9: numbers of QIs, and k, for each number of records, 10,000 in the paper; of Adult 1,000 alone."""
SIZES = {k: tuple(1_000 * 2**power for power in range(7)) for k in (15, 50)}
"""Figure 10: numbers of records for each k; of Adult 16,000 at most."""
RISING = "Figure 9, columns by rising cardinality"
TIED = 30
"""Figure 9: the k for which greedy's rules for ties are compared, at d = 2."""
LARGEST = {
    "sort-greedy": 10_000,
    "hungarian": 10_000,
    "min-cost-flow": 4_000,
    **{way: 16_000 for way in ORDERS if way != PAPER.greedy},
    **{way: 32_000 for way in AGGLOMERATIVE if way != PAPER.k_c},
}
"""Figures 8 to 10: records at most, for the methods that keep all pairs of records, and for other readings than the paper's;
min-cost-flow is in Figure 8 alone."""
MOST = {"sort-greedy": 1_000_000, "hungarian": 1_000_000}
"""Figures 8 to 10: n k at most."""
CENSUS, ADULT = "census-like", "Adult"
GREATEST = "greatest gain on NH and k-c"
PRINTED_AS: dict[str, str] = {}
COMPILED: set[str] = set()
"""The ways whose kernels were compiled or loaded in this process: no timed run does so."""
ACROSS = {
    "Figure 6": "records",
    EQUAL_TIMES: "records",
    "Figure 7b": "records",
    "Figure 9": "d",
    RISING: "d",
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


def measured_case(
    run: Run, key: Key, table: af.Table, k: int, partition_size: int | None = None
) -> Iterator[Figure]:
    """GCP and seconds of a run in the key's way, or those that are stored; nothing for k above n."""
    if k > table.n:
        return
    keys = [key._replace(quantity=quantity) for quantity in ("GCP", "seconds")]
    stored = [figure for figure in (known(run, key) for key in keys) if figure is not None]
    if len(stored) == len(keys):
        yield from stored
        return
    method, options = chosen(key.method, partition_size)
    if key.method not in COMPILED:
        COMPILED.add(key.method)
        timed_run(af.Table(table.frame.iloc[:20], table.schema), method, 2, workers=1, **options)
    anon, seconds = timed_run(table, method, k, partition_size=partition_size, workers=1, **options)
    for key, value in zip(keys, (anon.loss("gcp"), seconds), strict=True):
        yield Figure(key, value, table.n)


def chosen(way: str, partition_size: int | None = None) -> tuple[str, dict[str, Any]]:
    """A method and its options; records of a whole table come in the order of the table, those of a partition along its own."""
    method, options = WAYS[way]
    if partition_size is None and options == ORDERS["greedy"]:
        return method, {**options, "order": "input"}
    return method, options


def known(run: Run, key: Key) -> Figure | None:
    """The stored number of a key: of Figure 8, too, where Figure 9 has the same run on all QIs."""
    figure = run.stored.by_key.get(key)
    if figure is None and key.place == "Figure 8":
        name, _, size = key.case.partition(", ")
        case = f"{name}, k = {key.at:g}" + ("" if size == "1,000 records" else f", {size}")
        same = run.stored.by_key.get(Key("Figure 9", case, 8, key.method, key.quantity))
        return same and replace(same, key=key)
    return figure


def under(numbers: Numbers, reading: Reading) -> Numbers:
    """The figures with the reading's curves named `greedy` and `k-c`.

    Where its greedy was not run, as in partitions, the records come as they do there.
    """
    names = {reading.greedy: "greedy", reading.k_c: "k-c"}
    run = {(key.place, key.quantity) for key in numbers.by_key if key.method == reading.greedy}
    results = []
    for figure in numbers:
        key = figure.key
        if key.method == "greedy" and reading.greedy != "greedy" and (key.place, key.quantity) in run:
            continue
        results.append(replace(figure, key=key._replace(method=names.get(key.method, key.method))))
    return Numbers(results)


def fits(method: str, n: int, k: int) -> bool:
    """Whether a method is run on n records: the slowest have limits."""
    return n <= LARGEST.get(method, n) and n * k <= MOST.get(method, math.inf)


def solved(run: Run, key: Key, table: af.Table, k: int, ways: Iterable[str]) -> Iterator[Figure]:
    """GCP and seconds of a table in some ways."""
    for way in ways:
        if fits(way, table.n, k):
            yield from measured_case(run, key._replace(method=way), in_form(table, way), k)


def in_form(table: af.Table, way: str) -> af.Table:
    """The table as a way takes it: with hierarchies, or as it is."""
    return on_trees(table) if ON_TREES in way else table


@cache
def on_trees(table: af.Table) -> af.Table:
    """The table with a hierarchy for every QI: neighbouring values by threes, those by threes, up to the root.

    Tassa 2012 generalizes to nodes of such trees; those of its competitors' runs are printed nowhere.
    """
    frame, schema = table.frame.copy(), dict(table.schema.items())
    for name, column in table.schema.items():
        if column.role != "quasi-identifier":
            continue
        leaves = list(map(str, sorted(frame[name].unique().tolist())))
        frame[name] = frame[name].astype(str)
        tree: Any = leaves
        level = 0
        while len(tree) > 3:
            level += 1
            parts = [tree[start : start + 3] for start in range(0, len(tree), 3)]
            tree = [(f"level {level}, node {number}", part) for number, part in enumerate(parts)]
        schema[name] = af.Schema(
            {
                name: {
                    "role": "quasi-identifier",
                    "kind": "hierarchy",
                    "hierarchy": {"nested": {"*": _nested(tree)}},
                }
            }
        )[name]
    return af.Table(frame, af.Schema(schema))


def _nested(part: list[Any]) -> Any:
    """Nodes and what is below them, as a nested hierarchy."""
    return part if isinstance(part[0], str) else {name: _nested(below) for name, below in part}


def least_seconds(work: Callable[[], Any]) -> float:
    """Seconds of processor time of a function, the least of three runs."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def divided(table: af.Table, size: int | None, k: int) -> None:
    """Sort a table and cut it into partitions of `size`, or as NH does."""
    lexicographic_order(table.records)
    if size is None:
        halves(table.n, k)
    else:
        cut(table.n, size, k)


def ratio(run: Run, case: str, table: af.Table, k: int) -> Iterator[Figure]:
    """Figure 6d to f: seconds of partitioning and of one partition with its k assignments, by those of NH.

    Every method but NH works on all its partitions at a time, each on a machine; NH has as many machines as greedy,
    so that each takes as many records as a partition of greedy has. Of the middle partition; processor time, the
    least of three runs. Or the stored ones.
    """
    keys = {method: Key("Figure 6", case, table.n, method, "of NH's time") for method in PARTITIONS}
    stored = [figure for figure in (known(run, key) for key in keys.values()) if figure is not None]
    if len(stored) == len(keys):
        yield from stored
        return
    taken = {}
    for method, size in PARTITIONS.items():
        partitioned = least_seconds(partial(divided, table, size, k))
        taken[method] = partitioned + seconds_of_a_partition(
            table, method, size or PARTITIONS["greedy"] or table.n, k, parts=1
        )
    for method, seconds in taken.items():
        yield Figure(keys[method], seconds / taken["nh"], table.n)


def seconds_of_a_partition(table: af.Table, method: str, size: int, k: int, parts: int) -> float:
    """Seconds of a partition of `size` records with its k assignments: the mean over some, the least of three runs.

    The partitions are spread evenly along the lexicographic order; a single one is the middle one.
    """
    order, size = lexicographic_order(table.records), min(size, table.n)
    starts = np.linspace(0, table.n - size, parts + 2)[1:-1].astype(int)
    partitions = [part_of(table.take(order[start : start + size]), "ncp") for start in starts]

    def work() -> None:
        for part in partitions:
            matches = algorithm_named(method).run(part, k, **WAYS[method][1]).matches
            assert matches is not None
            decompose(matches)

    work()
    return least_seconds(work) / parts


def size_in_time(table: af.Table, method: str, most: float, k: int) -> tuple[int, float]:
    """The largest partition, in steps, that a method processes in so many seconds at most, and its seconds."""
    greatest_size = PARTITIONS["greedy"]
    assert greatest_size is not None
    least, above = math.ceil(k / STEP), math.ceil(greatest_size / STEP) + 1
    seconds = seconds_of_a_partition(table, method, least * STEP, k, SAMPLED)
    while above - least > 1:
        middle = (least + above) // 2
        taken = seconds_of_a_partition(table, method, middle * STEP, k, SAMPLED)
        if taken <= most:
            least, seconds = middle, taken
        else:
            above = middle
    return least * STEP, seconds


def equal_times(run: Run) -> Iterator[Figure]:
    """Figure 6 with partitions that take as long as greedy's: their sizes, their seconds, GCP. Of the full run only.

    Sort-greedy and hungarian take the largest partition that they process in the seconds of greedy's; with the paper's
    sizes they stand beside it. A method's seconds are those of a partition.
    """
    if not run.full:
        return
    for k, n in itertools.product((min(WHOLE), max(WHOLE)), WHOLE[min(WHOLE)][:2]):
        for name, table in tables(run, n):
            sizes = {}
            for method in OURS:
                size = PARTITIONS[method]
                assert size is not None
                sizes[method if method == "greedy" else f"{method}{WITH_PAPER_SIZE}"] = (
                    size,
                    seconds_of_a_partition(table, method, size, k, SAMPLED),
                )
            for method in OURS[1:]:
                sizes[method] = size_in_time(table, method, sizes["greedy"][1], k)
            for label, (size, seconds) in sizes.items():
                key = Key(EQUAL_TIMES, f"{name}, k = {k}", table.n, label, "partition size")
                yield Figure(key, size, table.n)
                yield Figure(key._replace(quantity="seconds"), seconds, table.n)
                method = label.removesuffix(WITH_PAPER_SIZE)
                anon, _ = timed_run(table, method, k, partition_size=size, workers=1, **WAYS[method][1])
                yield Figure(key._replace(quantity="GCP"), anon.loss("gcp"), table.n)


def table_2(run: Run) -> Iterator[Figure]:
    """Cardinalities of the generated people."""
    if run.built_in:
        n = 500_000 if run.full else 20_000
        frame = af.datasets.census_like(n, seed=1)
        for name in frame.columns[:8]:
            yield Figure(Key("Table 2", "CENSUS", 0, name, "cardinality"), frame[name].nunique(), n)


def figure_6(run: Run) -> Iterator[Figure]:
    """GCP under partitioning, by the number of records."""
    for k, ns in WHOLE.items() if run.full else ((10, (500, 1_000)),):
        done = set()
        for n in ns:
            for name, table in tables(run, n):
                if (name, table.n) in done:
                    continue
                done.add((name, table.n))
                for way, size in {**PARTITIONS, DEFAULTS.greedy: PARTITIONS["greedy"]}.items():
                    key = Key("Figure 6", f"{name}, k = {k}", table.n, way, "")
                    yield from measured_case(run, key, table, k, size)
                if run.full:
                    yield from ratio(run, f"{name}, k = {k}", table, k)


def figure_7a(run: Run) -> Iterator[Figure]:
    """Mean GCP on samples of 14 records, and the share of the way from k-c to the optimum."""
    numbers, ks = range(SAMPLES if run.full else 3), tuple(range(2, 8)) if run.full else (2, 4)
    for name, table in tables(run, 30_162 if run.full else 500):
        samples = [sample(table, 14, number) for number in numbers]
        measured = []
        for k in ks:
            key = Key("Figure 7a", f"{name}, 14 records", k, "", "GCP")
            optima = [
                af.anonymize(item, "optimal", k=k, seed=1, time_limit=LIMIT if run.full else SMALL_LIMIT)
                for item in samples
            ]
            share = float(np.mean([anon.facts["proven"] for anon in optima]))
            yield Figure(key._replace(method="optimal", quantity="share proved"), share, 14)
            measured.append(Figure(key._replace(method="optimal"), _mean(optima), 14))
            for way in WAYS:
                method, options = chosen(way)
                anons = [timed_run(in_form(item, way), method, k, **options)[0] for item in samples]
                measured.append(Figure(key._replace(method=way), _mean(anons), 14))
        yield from measured
        yield from gains(under(Numbers(measured), PAPER))


def _mean(anons: list[Anonymization]) -> float:
    return float(np.mean([anon.loss("gcp") for anon in anons]))


def gains(numbers: Numbers) -> Iterator[Figure]:
    """The share of the way from k-c to the optimum at each point of Figure 7a."""
    for figure in numbers.at_place("Figure 7a"):
        key = figure.key
        if key.quantity != "GCP" or key.method not in (*OURS, "nh", "min-cost-flow"):
            continue
        worst, best = (numbers.by_key[key._replace(method=name)].value for name in ("k-c", "optimal"))
        gain = (worst - figure.value) / (worst - best)
        yield replace(figure, key=key._replace(quantity="gain"), value=gain)


def figure_7b(run: Run) -> Iterator[Figure]:
    """Seconds by the number of records, k = 6: means over some samples. Of the full run only."""
    if not run.full:
        return
    for name, table in tables(run, 5_000):
        for n in (8, 11, 14):
            for way in (*WAYS, "optimal"):
                method, options = ("optimal", {"time_limit": LIMIT}) if way == "optimal" else chosen(way)
                samples = [in_form(sample(table, n, number), way) for number in range(TIMED)]
                timed_run(samples[0], method, 2, **options)
                taken = [timed_run(item, method, 6, **options)[1] for item in samples]
                key = Key("Figure 7b", f"{name}, k = 6", n, way, "seconds")
                yield Figure(key, float(np.mean(taken)), n)


def figure_8(run: Run) -> Iterator[Figure]:
    """GCP by k, whole tables."""
    for n, ks in (BY_K if run.full else {300: (10, 50)}).items():
        for name, table in tables(run, n):
            if name == ADULT and n > 1_000:
                continue
            for k in ks:
                yield from solved(run, Key("Figure 8", f"{name}, {n:,} records", k, "", ""), table, k, WAYS)


def figure_9(run: Run) -> Iterator[Figure]:
    """GCP by the number of QIs, and its slope from d = 2 on; at d = 2 greedy with other rules for ties, too."""
    yield from by_columns(run, "Figure 9", WHOLE_TABLE, rising=False)


def figure_9_rising(run: Run) -> Iterator[Figure]:
    """Figure 9 with the columns of fewest values first, in the ways that take little time."""
    yield from by_columns(run, RISING, (*ORDERS, "nh", *AGGLOMERATIVE), rising=True)


def by_columns(run: Run, place: str, ways: tuple[str, ...], rising: bool) -> Iterator[Figure]:
    """GCP by the number of QIs, in the order of the table or by rising cardinality, and its slope from d = 2 on."""
    for n, (ds, ks) in (BY_D if run.full else {200: ((2, 5, 8), (30,))}).items():
        for name, table in tables(run, n):
            if name == ADULT and n > 1_000:
                continue
            names = list(table.schema.quasi_identifiers)
            if rising:
                names.sort(key=lambda column: int(table.frame[column].nunique()))
            for k in ks:
                case = f"{name}, k = {k}" + (f", {n:,} records" if n > 1_000 else "")
                first: dict[str, float] = {}
                for d in ds:
                    schema = af.Schema({column: table.schema[column] for column in names[:d]})
                    part = af.Table(table.frame[names[:d]], schema)
                    for figure in solved(run, Key(place, case, d, "", ""), part, k, ways):
                        yield figure
                        if figure.key.quantity != "GCP":
                            continue
                        first.setdefault(figure.key.method, figure.value)
                        if d > 2:
                            slope = (figure.value - first[figure.key.method]) / (d - 2)
                            yield Figure(figure.key._replace(quantity="slope"), slope, part.n)
                    if not rising and d == 2 and k <= TIED and n <= LARGEST["min-cost-flow"]:
                        yield from tied(run, case, part, k)


def tied(run: Run, case: str, table: af.Table, k: int) -> Iterator[Figure]:
    """Greedy at d = 2 with other rules for ties, which the paper leaves open."""
    for rule in TIES:
        key = Key("Figure 9", case, 2, f"greedy, ties to the {rule}", "GCP")
        if figure := known(run, key):
            yield figure
            continue
        loss = total(table, greedy_by_rule(table, k, rule), "ncp") / table.n
        yield Figure(key, loss, table.n)


def greedy_by_rule(table: af.Table, k: int, rule: str) -> np.ndarray:
    """The matches of Algorithm 1 with records as they come, of equally cheap records the one that a rule says.

    Positions p of records along the lexicographic order, i's own is at: ``lowest`` p, ``highest`` p, ``nearest`` |p - at|,
    ``next`` the least (p - at) mod n, ``last`` the least (at - p) mod n, ``random``.
    """
    part = part_of(table, "ncp")
    n, plan = table.n, part.plan
    own = Generalization.of(part.records)
    origin = load(plan, own.lo, own.hi, own.bits)
    joined = copy_state(origin)
    place = np.argsort(lexicographic_order(part.records))
    rng = np.random.default_rng(2015)
    used = np.eye(n, dtype=bool)
    matches = np.empty((n, k), np.int32)
    matches[:, 0] = np.arange(n)
    costs = np.empty((n, n))
    for d in range(1, k):
        for i in range(n):
            increase_row_jit(plan, origin, i, joined, 0, n, costs[i])
        free, taken = np.ones(n, bool), np.full(n, -1)
        for i in range(n):
            rank = {
                "lowest": place,
                "highest": -place,
                "nearest": abs(place - place[i]),
                "next": (place - place[i]) % n,
                "last": (place[i] - place) % n,
                "random": rng.permutation(n),
            }[rule]
            open_to = free & ~used[i]
            holder = -1
            if not open_to.any():
                # Lemma 5.1: the nearest predecessor that finds another one hands its own over
                holder = next(y for y in range(i)[::-1] if not used[i, taken[y]] and (free & ~used[y]).any())
                taken[i] = taken[holder]
                open_to = free & ~used[holder]
            of = i if holder < 0 else holder
            at = np.flatnonzero(open_to)
            row = costs[of, at]
            least = at[row == row.min()]
            taken[of] = least[np.argmin(rank[least])]
            free[taken[of]] = False
        matches[taken, d] = np.arange(n)
        used[np.arange(n), taken] = True
        for i in range(n):
            widen_jit(plan, joined, taken[i], origin, i)
    return matches


def figure_10(run: Run) -> Iterator[Figure]:
    """GCP by the number of records, whole tables; the quadratic and cubic methods on the smaller ones."""
    for k, ns in SIZES.items() if run.full else ((15, (100, 300)),):
        for n in ns:
            for name, table in tables(run, n):
                if name == ADULT and n > 16_000:
                    continue
                key = Key("Figure 10", f"{name}, k = {k}", table.n, "", "")
                yield from solved(run, key, table, k, WHOLE_TABLE)


PARTS = {
    "Table 2": table_2,
    "Figure 6": figure_6,
    EQUAL_TIMES: equal_times,
    "Figure 7a": figure_7a,
    "Figure 7b": figure_7b,
    "Figure 8": figure_8,
    "Figure 9": figure_9,
    RISING: figure_9_rising,
    "Figure 10": figure_10,
}


def gain_of_figure_8(run: Run) -> Iterator[Figure]:
    """Figure 8, and how far the best freeform method is below the worse of NH and k-c at most, in percent."""
    measured = []
    for figure in figure_8(run):
        measured.append(figure)
        yield figure
    yield from greatest(under(Numbers(measured), PAPER))


def greatest(numbers: Numbers) -> Iterator[Figure]:
    """The greatest gain among people, with the records of the largest table."""
    gains = []
    for case in (case for case in numbers.cases("Figure 8") if case.startswith(CENSUS)):
        curves = {method: numbers.curve("Figure 8", case, method) for method in (*OURS, *OTHERS)}
        for k in curves["nh"]:
            worse = max(curves[method][k] for method in OTHERS if k in curves[method])
            best = min(curves[method][k] for method in OURS if k in curves[method])
            gains.append(100 * (1 - best / worse))
    if gains:
        records = max(figure.records for figure in numbers)
        yield Figure(Key("Figure 8", GREATEST, 0, "best of ours", "%"), max(gains), records)


PARTS["Figure 8"] = gain_of_figure_8
RECORDS = {
    "Figure 6": 500_000,
    "Figure 7a": 14,
    "Figure 7b": 14,
    "Figure 8": 10_000,
    "Figure 9": 10_000,
    "Figure 10": 64_000,
}
"""Records of the paper's largest table, of which ours may have fewer."""


def why_not(key: Key, records: int | None) -> str:
    """Why a printed number cannot be compared."""
    return ""


def note(key: Key) -> str:
    """What a verdict has to be read with."""
    return "generated people" if key.case in ("CENSUS", GREATEST) else ""


def claims(numbers: Numbers, printed: Mapping[Key, str]) -> list[Claim]:
    """What section 8 says of its figures, under the paper's reading and under anonflow's defaults."""
    beside = judged(numbers, DEFAULTS)
    return [
        *judged(numbers, PAPER),
        *(replace(claim, reading=READING_BESIDE) for claim in beside if not claim.ours),
    ]


def readings(numbers: Numbers) -> pd.DataFrame:
    """How well each order of greedy's records and each program as k-c fit the paper: claims that hold, and single runs.

    Claims about time are left out, since ours are other programs.
    """
    rows = {}
    for k_c in (*AGGLOMERATIVE, *CONCEALING):
        fits = [fit(numbers, Reading(greedy, k_c)) for greedy in ORDERS]
        rows[k_c] = [f"{each.hold} of {each.claims}; {each.below} of {each.runs} runs" for each in fits]
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(ORDER_NAMES)).rename_axis("k-c")


class Fit(NamedTuple):
    """How many claims hold under a reading, and in how many runs of Figures 8 to 10 one of the three is below NH or k-c, as in the paper."""

    hold: int
    below: int
    claims: int
    runs: int


def fit(numbers: Numbers, reading: Reading) -> Fit:
    """How well a reading fits the paper."""
    claims = [claim for claim in judged(numbers, reading) if not claim.ours and not claim.timing]
    curves = under(numbers, reading)
    pairs = [
        pair
        for place in ("Figure 8", "Figure 9", "Figure 10")
        for name in (CENSUS, ADULT)
        for pair in _pairs(curves, place, name, OURS, OTHERS)
    ]
    hold = sum(claim.holds is True for claim in claims)
    return Fit(hold, len(pairs) - len(_not_below(pairs)), len(claims), len(pairs))


def judged(stored: Numbers, reading: Reading) -> list[Claim]:
    """What section 8 says of its figures under a reading, for each table apart."""
    numbers = under(stored, reading)
    return [
        claim
        for name in (CENSUS, ADULT)
        if any(case.startswith(name) for case in numbers.cases("Figure 6"))
        for claim in (
            *_partitions(numbers, name),
            *_equal_times(numbers, name),
            *_optimal(numbers, name),
            *_whole(numbers, name),
            *_times(numbers, name),
            *_rising(numbers, name),
        )
    ]


def _cases(numbers: Numbers, place: str, name: str) -> list[str]:
    return [case for case in numbers.cases(place) if case.startswith(name)]


class Pair(NamedTuple):
    """Two methods at one point of a figure; `at` is what runs along the axis."""

    k: int
    at: float
    lower: str
    upper: str
    values: tuple[float, float]
    records: int


def _pairs(
    numbers: Numbers,
    place: str,
    name: str,
    lower: tuple[str, ...],
    upper: tuple[str, ...],
    quantity: str = "GCP",
) -> list[Pair]:
    """Each method of `lower` beside each of `upper`, wherever both are measured."""
    results = []
    for figure in numbers.at_place(place):
        key = figure.key
        if not key.case.startswith(name) or key.method not in lower or key.quantity != quantity:
            continue
        k = int(key.at if place == "Figure 8" else key.case.split("k = ")[1].split(",")[0])
        for other in upper:
            twin = numbers.by_key.get(key._replace(method=other))
            if twin is not None:
                values = (figure.value, twin.value)
                results.append(Pair(k, key.at, key.method, other, values, figure.records))
    return results


def _most(pairs: list[Pair]) -> tuple[int, ...]:
    """The most records on which two methods are compared, for each two and each k."""
    most: dict[tuple[int, str, str], int] = {}
    for pair in pairs:
        case = (pair.k, pair.lower, pair.upper)
        most[case] = max(most.get(case, 0), pair.records)
    return tuple(most.values())


def _ordered(
    numbers: Numbers,
    place: str,
    name: str,
    says: str,
    lower: tuple[str, ...],
    upper: tuple[str, ...],
    why: str = "",
    **fields: Any,
) -> Claim:
    """That each method of `lower` loses less than each of `upper`, wherever both are measured."""
    pairs = _pairs(numbers, place, name, lower, upper)
    stated: dict[str, Any] = {"records": _most(pairs), "of_paper": RECORDS[place]} | fields
    if not pairs:
        return Claim(place, f"{name}: {says}", None, "", **stated)
    ratios = [first / other for first, other in (pair.values for pair in pairs)]
    above = _not_below(pairs)
    measured = f"{min(ratios):.2f} to {max(ratios):.2f} of it"
    if above:
        of_methods = Counter(pair.lower for pair in above)
        counts = ", ".join(f"{method} {of_methods[method]}" for method in lower if of_methods[method])
        ats = listed(sorted({pair.at for pair in above}))
        measured += f"; not in {len(above)} of {len(pairs)} runs ({counts}), at {ats}"
    return Claim(place, f"{name}: {says}", not above, measured, why, **stated)


def _not_below(pairs: list[Pair]) -> list[Pair]:
    return [pair for pair in pairs if not pair.values[0] < pair.values[1]]


def _range(ratios: Iterable[float], digits: int = 2) -> str:
    """The least and the greatest ratio: `0.63 to 0.93`, or one of them where they round to the same."""
    values = list(ratios)
    texts = dict.fromkeys(f"{value:.{digits}f}" for value in (min(values), max(values)))
    return " to ".join(texts)


def _by_table(pairs: list[Pair]) -> str:
    """Where methods lose more, by table: `greedy for k = 10 on 2,000 records`."""
    parts = []
    for lower, k in dict.fromkeys((pair.lower, pair.k) for pair in pairs):
        sizes = sorted({pair.records for pair in pairs if (pair.lower, pair.k) == (lower, k)})
        parts.append(f"{lower} for k = {k} on {listed(sizes)} records")
    return "; ".join(parts)


def _partitions(numbers: Numbers, name: str) -> Iterator[Claim]:
    yield _ordered(numbers, "Figure 6", name, "greedy is below NH", ("greedy",), ("nh",))
    pairs = _pairs(numbers, "Figure 6", name, ("greedy",), ("sort-greedy",))
    ratios: dict[int, dict[float, float]] = {
        k: {pair.records: pair.values[0] / pair.values[1] for pair in pairs if pair.k == k} for k in WHOLE
    }
    above = _not_below(pairs)
    yield Claim(
        "Figure 6",
        f"{name}: greedy is below sort-greedy",
        not above,
        "; ".join(f"k = {k}: {spread(curve, 3)} of it" for k, curve in ratios.items())
        + f", on {' to '.join(f'{n:,}' for n in ends(ratios[10]))} records for k = 10",
        f"it is above in {len(above)} of {len(pairs)} runs{_longer(numbers, name)}",
        records=_most(pairs),
        of_paper=RECORDS["Figure 6"],
    )
    pairs = [
        pair
        for pair in _pairs(numbers, "Figure 6", name, ("greedy", "sort-greedy"), ("hungarian",))
        if pair.k == max(WHOLE)
    ]
    largest = max(pair.records for pair in pairs)
    last = [pair for pair in pairs if pair.records == largest]
    greedy, second = (pair.values[0] for pair in last)
    yield Claim(
        "Figure 6",
        f"{name}: as k grows ({max(WHOLE)}), both are below hungarian",
        not _not_below(last),
        f"{greedy:.3f} and {second:.3f} against {last[0].values[1]:.3f}, on {largest:,} records",
        f"hungarian's better assignment is worth more than larger partitions: above it are {_by_table(_not_below(pairs))}",
        records=_most(last),
        of_paper=RECORDS["Figure 6"],
    )


def _longer(numbers: Numbers, name: str) -> str:
    """How much longer a partition of sort-greedy takes than one of greedy, both of the paper's sizes."""
    pairs = _pairs(
        numbers, EQUAL_TIMES, name, (f"sort-greedy{WITH_PAPER_SIZE}",), ("greedy",), quantity="seconds"
    )
    if not pairs:
        return ""
    ratios = _range((first / other for first, other in (pair.values for pair in pairs)), 1)
    return (
        f"; with the paper's sizes a partition of sort-greedy takes {ratios} times as long as one of greedy here, so the time "
        f"budgets are not equal (with equal ones: {EQUAL_TIMES})"
    )


def _equal_times(numbers: Numbers, name: str) -> Iterator[Claim]:
    """Figure 6 with partitions that take equal times, which the paper's sizes are meant to have."""
    several = (
        ("greedy is below sort-greedy", ("greedy",), "sort-greedy", tuple(WHOLE)),
        (
            f"as k grows ({max(WHOLE)}), greedy and sort-greedy are below hungarian",
            ("greedy", "sort-greedy"),
            "hungarian",
            (max(WHOLE),),
        ),
    )
    for says, lower, upper, ks in several:
        pairs = [pair for pair in _pairs(numbers, EQUAL_TIMES, name, lower, (upper,)) if pair.k in ks]
        if not pairs:
            continue
        above = _not_below(pairs)
        ratios = "; ".join(
            f"{pair.lower} {pair.values[0] / pair.values[1]:.3f} of it (k = {pair.k}, {pair.records:,} records)"
            for pair in pairs
        )
        yield Claim(
            EQUAL_TIMES,
            f"{name}: with partitions that take as long as greedy's, {says}",
            not above,
            f"{ratios}; {_sizes_in_time(numbers, name)}",
            f"above it are {_by_table(above)}" if above else "",
            ours=True,
            records=_most(pairs),
            of_paper=RECORDS["Figure 6"],
        )


def _sizes_in_time(numbers: Numbers, name: str) -> str:
    """The sizes of partitions that were chosen by their time."""
    texts = []
    for method in OURS[1:]:
        sizes = [
            figure.value
            for figure in numbers.at_place(EQUAL_TIMES)
            if figure.key.case.startswith(name)
            and (figure.key.method, figure.key.quantity) == (method, "partition size")
        ]
        texts.append(f"{_range(sizes, 0)} for {method}")
    return f"records of a partition: {', '.join(texts)}, {PARTITIONS['greedy']} for greedy"


def _optimal(numbers: Numbers, name: str) -> Iterator[Claim]:
    case = f"{name}, 14 records"
    by_k = Numbers(gains(numbers))
    curves = {
        method: by_k.curve("Figure 7a", case, method, "gain") for method in (*OURS, "nh", "min-cost-flow")
    }
    if not all(curves.values()):
        return
    sizes: dict[str, Any] = {"records": (14,), "of_paper": RECORDS["Figure 7a"]}
    ks = list(curves["nh"])
    nearest = {k: max((gain[k], method) for method, gain in curves.items())[1] for k in ks if k > 2}
    best = [k for k, method in nearest.items() if method == "hungarian"]
    rest = [f"{method} is nearer for k = {k:g}" for k, method in nearest.items() if method != "hungarian"]
    yield Claim(
        "Figure 7a",
        f"{name}: hungarian is the nearest to the optimum (but for min-cost-flow at k = 2)",
        not rest,
        f"for k = {listed(best)}; its gain is {spread(curves['hungarian'], 2)}",
        ", ".join(rest),
        **sizes,
    )
    losses = {
        method: float(np.mean(list(numbers.curve("Figure 7a", case, method).values())))
        for method in (*OURS, *OTHERS, "min-cost-flow")
    }
    worst = max(losses, key=losses.__getitem__)
    yield Claim(
        "Figure 7a",
        f"{name}: k-c is the worst performer on average",
        worst == "k-c",
        ", ".join(f"{method} {loss:.3f}" for method, loss in losses.items()) + " in the mean over k",
        f"on samples of 14 records {worst} loses more",
        **sizes,
    )
    mean = {method: float(np.mean(list(gain.values()))) for method, gain in curves.items()}
    second = max((method for method in mean if method != "hungarian"), key=mean.__getitem__)
    between = [k for k in ks if curves["min-cost-flow"][k] > curves["sort-greedy"][k]]
    yield Claim(
        "Figure 7a",
        f"{name}: sort-greedy follows closely",
        second == "sort-greedy" and mean["hungarian"] - mean["sort-greedy"] < 0.1,
        ", ".join(f"{method} {value:.2f}" for method, value in mean.items()) + " in the mean over k",
        f"it is {mean['hungarian'] - mean['sort-greedy']:.2f} behind hungarian in the mean"
        + (f", and behind min-cost-flow for k = {listed(between)}" if between else ""),
        **sizes,
    )
    yield Claim(
        "Figure 7a",
        f"{name}: min-cost-flow is optimal for k = 2",
        curves["min-cost-flow"][2] > 1 - 1e-6,
        f"gain {curves['min-cost-flow'][2]:.4f}",
        **sizes,
    )
    worse = [k for k in ks if curves["min-cost-flow"][k] < curves["nh"][k]]
    yield Claim(
        "Figure 7a",
        f"{name}: it loses its lead as k grows, and is behind NH from k = 6 on",
        worse == [6, 7],
        f"behind for {'k = ' + listed(worse) if worse else 'no k'}; gain {spread(curves['min-cost-flow'], 2)}",
        "our NH cuts and orders its rings in its own way, the cited work's being in no source of ours",
        **sizes,
    )


def _whole(numbers: Numbers, name: str) -> Iterator[Claim]:
    for place in ("Figure 8", "Figure 9", "Figure 10"):
        for other, reason in (("k-c", _beside_rings), ("nh", _few)):
            says = f"greedy, sort-greedy and hungarian are below {PRINTED[other]}"
            yield _ordered(numbers, place, name, says, OURS, (other,), reason(numbers, place, name))
        if place == "Figure 8":
            yield from _by_k(numbers, name)
    yield from _slopes(numbers, name)
    case = f"{name}, k = 15"
    yield _ordered(
        numbers,
        "Figure 10",
        case,
        "k-c is below NH",
        OTHERS[1:],
        OTHERS[:1],
        _beside_rings(numbers, "Figure 10", name),
    )


def _beside_rings(numbers: Numbers, place: str, name: str) -> str:
    """What k-c loses beside NH: the paper's is below it for small k alone."""
    pairs = _pairs(numbers, place, name, ("k-c",), ("nh",))
    if not pairs:
        return ""
    above = sorted({pair.k for pair in _not_below(pairs)})
    ratios = _range(first / other for first, other in (pair.values for pair in pairs))
    return f"k-c loses {ratios} of NH, and {f'more than it at k = {listed(above)}' if above else 'never more than it'}"


def _few(numbers: Numbers, place: str, name: str) -> str:
    """Where NH is below, and what greedy loses beside it there and at the other end of the figure."""
    above = _not_below(_pairs(numbers, place, name, OURS, ("nh",)))
    if not above:
        return ""
    parts = []
    for method, records in dict.fromkeys((pair.lower, pair.records) for pair in above):
        pairs = [pair for pair in above if (pair.lower, pair.records) == (method, records)]
        ks = listed(sorted({pair.k for pair in pairs}))
        ats = listed(sorted({pair.at for pair in pairs}))
        where = f" at d = {ats}" if place == "Figure 9" else ""
        parts.append(f"{method}{where} on {records:,} records (k = {ks})")
    text = "above it are " + "; ".join(parts)
    ratios: dict[float, list[float]] = {}
    for pair in _pairs(numbers, place, name, ("greedy",), ("nh",)):
        ratios.setdefault(pair.at, []).append(pair.values[0] / pair.values[1])
    along = ", ".join(f"{_range(ratios[at])} at {listed([at])}" for at in sorted(ratios))
    text += f". Greedy loses, of NH's loss, by {ACROSS.get(place, 'k')}: {along}"
    return text + (_by_rules(numbers, name) if place == "Figure 9" else "")


def _slopes(numbers: Numbers, name: str) -> Iterator[Claim]:
    """Figure 9's slopes, for each table and k apart."""
    for case in _cases(numbers, "Figure 9", name):
        methods = (*OURS, *OTHERS)
        curves = {method: numbers.curve("Figure 9", case, method, "slope") for method in methods}
        losses = {method: numbers.curve("Figure 9", case, method) for method in methods}
        if not all(curves.values()):
            continue
        slopes = {method: list(curve.values())[-1] for method, curve in curves.items()}
        ranked = sorted(slopes, key=slopes.__getitem__)
        reasons = []
        if ranked[-2:] != ["nh", "k-c"]:
            last = {method: list(losses[method].values())[-1] for method in methods}
            at_last = sorted(last, key=last.__getitem__).index("k-c")
            reasons.append(
                f"k-c's slope is the {_rank(ranked.index('k-c'))}: its loss at d = 8, "
                f"{last['k-c']:.3f}, is the {_rank(at_last)} of the five"
            )
        starts = {method: next(iter(losses[method].values())) for method in methods}
        if set(ranked[:2]) != {"sort-greedy", "hungarian"}:
            least = ranked[0] if ranked[0] not in ("sort-greedy", "hungarian") else ranked[1]
            reasons.append(
                f"{least}'s slope is the {_rank(ranked.index(least))}, for what it loses at d = 2: "
                + ", ".join(f"{method} {starts[method]:.3f}" for method in methods)
            )
        yield Claim(
            "Figure 9",
            f"{case}: the slope to d = 8 is worst for k-c, then NH; best for sort-greedy and hungarian",
            ranked[-2:] == ["nh", "k-c"] and set(ranked[:2]) == {"sort-greedy", "hungarian"},
            " < ".join(f"{method} {slopes[method]:.3f}" for method in ranked),
            "; ".join(reasons),
            records=(numbers.by_key[Key("Figure 9", case, 8, "nh", "GCP")].records,),
            of_paper=RECORDS["Figure 9"],
        )


def _rising(numbers: Numbers, name: str) -> Iterator[Claim]:
    """Figure 9 with the columns of fewest values first; the paper does not say which columns it takes."""
    pairs = [pair for pair in _pairs(numbers, RISING, name, ("greedy",), ("nh",)) if pair.at == 2]
    if not pairs:
        return
    above = _not_below(pairs)
    losses = "; ".join(
        f"{pair.values[0]:.4f} against {pair.values[1]:.4f} (k = {pair.k}, {pair.records:,} records)"
        for pair in pairs
    )
    yield Claim(
        RISING,
        f"{name}: with the two columns of fewest values, greedy is below NH",
        not above,
        losses,
        f"above it are {_by_table(above)}" if above else "",
        ours=True,
        records=_most(pairs),
        of_paper=RECORDS["Figure 9"],
    )


def _rank(place: int) -> str:
    """A place among five from below, as a word: 0 is the lowest."""
    return ("lowest", "second lowest", "third lowest", "second highest", "highest")[place]


def _by_rules(numbers: Numbers, name: str) -> str:
    """What greedy loses at d = 2 by each rule for ties, beside NH."""
    case = f"{name}, k = {TIED}"
    losses = [numbers.curve("Figure 9", case, f"greedy, ties to the {rule}").get(2) for rule in TIES]
    known = [loss for loss in losses if loss is not None]
    ring = numbers.curve("Figure 9", case, "nh").get(2)
    if not known or ring is None or min(known) < ring:
        return ""
    return (
        f". No rule for greedy's ties changes that: at d = 2, k = {TIED}, on {min(BY_D):,} records {len(known)} of "
        f"them give {min(known):.3f} to {max(known):.3f}, NH {ring:.3f}"
    )


def _by_k(numbers: Numbers, name: str) -> Iterator[Claim]:
    case = f"{name}, {min(BY_K):,} records"
    sizes: dict[str, Any] = {"records": (min(BY_K),), "of_paper": min(BY_K)}
    curves = {m: numbers.curve("Figure 8", case, m) for m in (*OURS, *OTHERS, "min-cost-flow")}
    if not all(curves.values()):
        return
    better = {k: min((curves[method][k], method) for method in OTHERS)[1] for k in curves["nh"]}
    apart = {k: curves[better[k]][k] - curves["hungarian"][k] for k in better}
    first, *_, last = better
    yield Claim(
        "Figure 8",
        f"{case}: the distance to earlier methods widens as k grows",
        rises(ends(apart)),
        f"from the better of NH and k-c to hungarian: {spread(apart, 3)} of GCP for k = {first:g} to {last:g}",
        f"the better one is {better[last]} at k = {last:g}, {better[first]} at k = {first:g}",
        **sizes,
    )
    ahead = {k: curves["greedy"][k] / curves["hungarian"][k] - 1 for k in curves["greedy"]}
    yield Claim(
        "Figure 8",
        f"{case}: the one between greedy and hungarian narrows",
        not rises(ends(ahead)),
        " to ".join(f"{100 * value:.0f} %" for value in ends(ahead).values()),
        **sizes,
    )
    says = "min-cost-flow is above every freeform method"
    yield _ordered(numbers, "Figure 8", name, says, OURS, ("min-cost-flow",), of_paper=min(BY_K))


def _times(numbers: Numbers, name: str) -> Iterator[Claim]:
    case = f"{name}, k = 6"
    taken = {m: numbers.curve("Figure 7b", case, m, "seconds") for m in (*OURS, *OTHERS, "optimal")}
    if taken["optimal"]:
        grown = list(taken["optimal"].values())
        others = max(max(curve.values()) for method, curve in taken.items() if method != "optimal")
        yield Claim(
            "Figure 7b",
            f"{name}: the optimum takes far longer than the rest, and ever longer",
            grown[-1] > grown[0] and grown[-1] > 10 * others,
            f"{grown[0]:.2g} to {grown[-1]:.2g} s against {others:.2g} s at most",
            timing=True,
            records=(int(max(taken["optimal"])),),
            of_paper=RECORDS["Figure 7b"],
        )
    yield from _ratios(numbers, name)
    for place in ("Figure 8", "Figure 10"):
        pairs = _pairs(numbers, place, name, OURS, ("k-c",), "seconds")
        short = [
            pair.values[0] < ring.values[1]
            for pair, ring in zip(
                pairs,
                _beside(pairs, _pairs(numbers, place, name, OURS, ("nh",), "seconds")),
                strict=True,
            )
        ]
        slower = [pair.values[0] > pair.values[1] for pair in pairs]
        both = sum(not (a or b) for a, b in zip(short, slower, strict=True))
        yield Claim(
            place,
            f"{name}: greedy, sort-greedy and hungarian take longer than NH and less long than k-c",
            both == len(pairs) if pairs else None,
            f"{both} of {len(pairs)} runs",
            f"they take longer than k-c in {sum(slower)} runs, less long than NH in {sum(short)}",
            timing=True,
            records=_most(pairs),
            of_paper=RECORDS[place],
        )


def _beside(pairs: list[Pair], others: list[Pair]) -> list[Pair]:
    """Of other pairs those of the same run of the first method."""
    by_run = {(pair.k, pair.at, pair.lower, pair.records): pair for pair in others}
    return [by_run[pair.k, pair.at, pair.lower, pair.records] for pair in pairs]


def _ratios(numbers: Numbers, name: str) -> Iterator[Claim]:
    """Figure 6d to f."""
    quantity = "of NH's time"
    curves = [
        numbers.curve("Figure 6", case, method, quantity)
        for case in _cases(numbers, "Figure 6", name)
        for method in OURS
    ]
    if not all(curves):
        return
    sizes: dict[str, Any] = {
        "records": _most(_pairs(numbers, "Figure 6", name, OURS, ("nh",), quantity)),
        "of_paper": RECORDS["Figure 6"],
    }
    last = [list(curve.values())[-1] for curve in curves]
    yield Claim(
        "Figure 6",
        f"{name}: with equal parallelism the three approach NH's time as the table grows",
        all(not rises(ends(curve)) for curve in curves),
        f"{min(last):.2f} to {max(last):.2f} of it on the largest tables, "
        f"{max(max(curve.values()) for curve in curves):.2f} at most",
        timing=True,
        **sizes,
    )
    yield Claim(
        "Figure 6",
        f"{name}: in the end they take less time than NH",
        max(last) < 1,
        f"{min(last):.2f} to {max(last):.2f} of it",
        "our NH sorts and halves, which takes as long as sorting and cutting; the cited work's partitioning is in no source of "
        "ours, and is said to take longer",
        timing=True,
        **sizes,
    )
