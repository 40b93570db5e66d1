"""Ejection chains beside every other method: seconds against loss, as figures and as pictures, ``out/chains.svg``
and, for the README's table, ``out/methods.svg``.

What the defaults of :mod:`anonflow.algorithms.freeform.chains` were chosen by: Adult (30,162 complete rows, 8 QIs), k = 10,
processor seconds on a machine that others used as well, of single runs. Chains alone, then with 3 rounds of kicks, from

- Hungarian in stretches of 1,000 (6.3 s, 0.02996): 0.02864 after 4.2 s, 0.02841 after 11.1 s;
- of 500 (2.7 s, 0.03051): 0.02889 after 4.4 s, 0.02859 after 11.5 s; of 250 (1.7 s, 0.03143): 0.02934 and 0.02898;
- greedy in partitions of 1,000 (3.2 s, 0.03578): 0.03060 after 5.5 s.

Optimal assignments were more than the start needs. With auctions whose smallest bid is a share of the mean least increase
(`SLACK`), in one sitting (start; then 8 rounds of chains; then 3 rounds of kicks; processor seconds in all):

- optimal, stretches of 1,000: 6.4 s, 0.02996; 0.02860; 0.02839, 17.7 s;
- auctions of 0.2, 0.5 and 1.0 in 1,000: 2.3, 2.1, 1.9 s, 0.02995, 0.03000, 0.03009; 0.02858, 0.02860, 0.02860; 0.02838, 0.02840,
  0.02841, 13.7, 13.5, 13.3 s: what the assignments lose, chains make up;
- auctions of 0.5 in 2,000: 4.0 s, 0.02963; 0.02840; 0.02823, 15.4 s (the default);
- of 0.3 in 3,000: 6.4 s, 0.02950; 0.02833; 0.02816, 17.7 s; of 0.5 in 4,000: 7.6 s, 0.02947; 0.02831 after chains;
- shortest augmenting paths of our own after column and row reduction (Jonker and Volgenant 1987) solve 27 of these problems
  in 0.33 s, scipy in 0.58, auctions of 0.2 in 0.11, of 0.5 in 0.07.

From the first of the list before:

- Steps from each record whose closing is tested: 12 give 0.02853 in 6.7 s, 32 give 0.02844 in about 9 s (three rounds, three
  of kicks); at most 5 records in a chain 0.02848 in 7.7 s. All three lie on one curve.
- 16 candidates: 0.02831 after 21 s, where 32 give 0.02820 after 26 s and 0.02830 after 18 s.
- Visits after a kick, at most: 4 give 0.02850 after 12 s, 8 give 0.02843 after 15 s, 16 give 0.02837 after 16 s.
- Following the three best steps from the first record instead of one: chains alone 0.02861 in 3.3 s (one step: 0.02869 in
  2.1 s), but with kicks 0.02841 after 19 s (one step: 0.02833 after 20 s). Steps drawn at random instead of kicks: 0.02857 after
  7 s, 0.02851 after 13 s (kicks: 0.02838 after 11 s). Neither is kept.
- A kick at a random record and a random holder of its candidate: 0.02801 in 18 s of processor time (10 kicks), 0.02775 in 53 (40). At the
  costliest of four records, and the holder that gains most: 0.02791 in 23, 0.02764 in 68; prices up to 1.4 mean costs instead of 2
  0.02796 in 19, 0.02769 in 53, but more loss at k = 5 and on normal numbers. Of eight records no less loss than of four (people of the
  synthetic census). The costliest of two slots, the nearer of two candidates: no gain.
- The assignment problems of the start are not solved faster after the least of each column, of each row or both is
  subtracted (1,000 records, nine of them: 0.19 to 0.23 s).

On random_normal(100,000, 10), from Hungarian in stretches of 1,000: candidates along two lexicographic orders 0.2196 (k = 3) and
0.3783 (k = 10); along five, four of them drawn anew each round, 0.2144 and 0.3767; along eleven 0.2138 (k = 3).
Adult does not care (0.02842 either way).

A start by patterns needs no near records (processor seconds, a busy machine): 100,000 at k = 10 0.3472 in 2 s where the dense start has
0.3704 in 86 by the clock; at k = 3 0.2016 in 13 s, with 4 kicks 0.2007 in 34, with 10 0.1996 in 60; without kicks 10,000 at k = 10
0.4902 and by the dense start 0.5147, at k = 5 0.4008 and 0.4226. At k = 10 chains find nothing to gain after it: to conceal a column less
takes other matches for most of a record at once. Exchanges at falling temperatures with a loss that also counts how many matches differ
(0.4575 in 9 s for 20,000, the start has 0.4464) do not come back to it, and classes that begin with the records that have the
fewest near ones have 0.480.

Exchanges of several matches at once by small assignments, after chains have converged, on Adult. Of m near records, those that hold each
other's candidates or matches, the j costliest matches are freed and given back by optimal assignments; the result is taken where the loss
falls. By how much the loss falls in a second of processor, in millionths: k = 10, after 10 rounds of kicks, j = 1 with 10 records 0.37,
j = 2 with 6 to 60 records 0.25 to 0.99, j = 3 with 16 and 30 records 0.90 and 0.99, all nine matches of 30 records 0.17; kicks 2.5 to 4.3. k = 5,
after chains: 1.3 to 13, kicks 31. Assignments alone end at 0.02788 where kicks are at 0.02781 after the same 17 s, and between rounds of kicks
they gain nothing that is seen (0.02781). None is kept. Nor are: kicks at those of four records that cost most above what their cheapest
candidates would cost (88.8 millionths in four rounds, as they are 88.9); of two candidates the one that fewer records have among their nearest
(94.4, of two seeds: too few to tell); dense stretches along a Hilbert curve (7 or 3 bits for each QI: 0.0327 to 0.0345 after the start and
0.0299 to 0.0306 after chains, along the lexicographic order 0.0296 and 0.0284).

Who finds near records of random_normal(100,000, 10) by suppression (processor seconds; share of the nine nearest; the row ``near`` has most
of it): multiple sorting 3.5 s, all; all pairs 258 s; lexicographic orders with random columns first, eight neighbours on each side, five
0.1 s, 91%, twenty 0.2 s, 99.5%; twenty random projections 0.5 s, 7%, eighty 2.0 s, 20%. scikit-learn (estimated from 100 records): BallTree
on Hamming distances 1,090 s, KDTree on one-hot columns 3,313 s, all pairs by one-hot columns 137 s; KDTree on sixteen projections 429 s, 41%.
So near records are found already: what the default start loses there is not for want of candidates.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import anonflow as af
from anonflow.algorithms.freeform.near_pairs import costs_of_difference, sorted_pairs
from tests.benchmarks.curves import Curve, draw
from tests.benchmarks.measuring import data_folder, row
from tests.cases.freeform import part_of
from tests.cases.scale import WORKERS
from tests.cases.scale import measured as flow_record
from tests.cases.tables import adult

GLANCE: dict[str, dict[str, tuple[tuple[str, dict[str, Any]], ...]]] = {
    "freeform (k-regular)": {
        "nh": (("nh", {}),),
        "greedy": tuple(("greedy", {"partition_size": size}) for size in (100, 250, 1_000)),
        "hungarian": tuple(("hungarian", {"partition_size": size}) for size in (100, 250, 1_000)),
        "two-phase, chains": tuple(("two-phase", {"kicks": kicks}) for kicks in (0, 2, 10)),
    },
    "classes (k-anonymity)": {
        "mondrian": (("mondrian", {}),),
        "agglomerative": (("agglomerative", {}),),
        "k-member": (("k-member", {}),),
        "k-member, chains": (
            ("k-member", {"improve": "chains"}),
            *(("k-member", {"improve": "chains", "rounds": 6, "kicks": kicks}) for kicks in (2, 5, 20)),
        ),
    },
}
"""Panel -> curve -> runs of ``out/methods.svg``: the 5,000 records of the README's table."""

SHORT = {"Adult": "adult", "random_normal": "normal"}
"""Names of tables in those of rows."""

KICKS = (0, 2, 10, 40)
"""Of the curve of chains."""

OTHERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("greedy", {"partition_size": 250}),
    ("sort-greedy", {"partition_size": 250}),
    ("nh", {}),
    ("min-cost-flow", {"partition_size": 250}),
    ("hungarian", {"partition_size": 250}),
    ("hungarian", {"partition_size": 1_000}),
)
"""The other methods that end in a k-regular graph, at settings of about the same seconds."""

DEFAULTS: dict[str, tuple[Any, ...]] = {
    "start": ("dense", "sparse"),
    "first": (500, 1_000, 2_000, 4_000),
    "candidates": (16, 32, 64),
    "rounds": (2, 4, 8, 16),
    "kicks": (0, 5, 10, 20),
}
"""Options of two-phase, and values around their defaults; but for its own, an option is tried with `FEW_KICKS`."""

FEW_KICKS = 5
"""Half of the default: differences of the options before are seen in half of the time."""

GOALS = {
    ("Adult", 10): ((5.0, 0.0284), (15.0, 0.0279), (120.0, 0.0275)),
    ("Adult", 5): ((2.5, 0.0147), (8.0, 0.0145), (45.0, 0.0143)),
    ("random_normal", 3): ((30.0, 0.200),),
    ("random_normal", 10): ((90.0, 0.365),),
}
"""Table and k -> budgets in seconds, and the loss to be reached with each."""

STARTS = {("random_normal", k): {"start": "patterns"} for k in (3, 10)}
"""Options of two-phase with which a goal is tried, where they are not the defaults."""

TABLE_ROWS = {
    "glance": 2,
    "adult-10": 15,
    "adult-5": 4,
    "normal-3": 3,
    "normal-10": 6,
    "others": 40,
    "defaults": 4,
    "census": 5,
    "near": 4,
    "pieces-1m": 15,
    "pieces-10m": 150,
}
"""Rows of the table, and about how many minutes each takes on two quiet cores; ``--rows adult-5,census`` runs some."""

QUICK = ("glance", "adult-10", "adult-5", "normal-3", "normal-10", "others", "defaults", "census", "near")
"""Those that run where none are named."""

LARGE: dict[str, Any] = {"first": 250, "rounds": 4, "kicks": 0}
"""Options of two-phase for tables of half a million records and more."""

SIZE = 5_000
"""Records in their partitions."""


def run(small: bool, rows: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The figures, and the pictures, of some rows of the table; of all but the largest without names.

    Seconds of goals are medians of three runs.
    """
    wanted = tuple(rows) or QUICK
    unknown = sorted(set(wanted) - set(TABLE_ROWS))
    if unknown:
        raise ValueError(f"no row {', '.join(unknown)}; there are {', '.join(TABLE_ROWS)}")
    figures = glance(small) if "glance" in wanted else []
    panels: list[tuple[str, dict[str, Curve]]] = []
    if {"adult-10", "adult-5", "normal-3", "normal-10", "others"} & set(wanted):
        for name, table in tables(small):
            for k in (goal[1] for goal in GOALS if goal[0] == name):
                curves: dict[str, Curve] = {}
                few = af.Table(table.frame.iloc[:200], table.schema)
                af.anonymize(few, "two-phase", k=k, kicks=1)  # compiles
                if f"{SHORT[name]}-{k}" in wanted:
                    figures += within_budgets(name, table, k, curves, small)
                if "others" in wanted:
                    figures += beside(name, table, k, curves, small)
                if curves:
                    panels.append((f"{name}, k = {k}: GCP", curves))
    if "defaults" in wanted:
        figures += around_the_defaults(small)
    if "census" in wanted:
        figures += census(300 if small else 500_000)
    if "near" in wanted:
        _, table = list(tables(small))[-1]
        figures += near(table, 20 if small else 100)
    for row_name, n in (("pieces-1m", 1_000_000), ("pieces-10m", 10_000_000)):
        if row_name in wanted:
            figures += in_pieces(2_000 if small else n, small)
    if panels:
        draw("chains", panels, "seconds", small)
    return figures


def within_budgets(
    name: str, table: af.Table, k: int, curves: dict[str, Curve], small: bool
) -> list[dict[str, Any]]:
    """Chains with the seconds of each goal: the median of three."""
    rows: list[dict[str, Any]] = []
    label = "two-phase, improve chains"
    for budget, most in GOALS[name, k][: 1 if small else None]:
        runs = sorted(
            measured(table, "two-phase", k, budget=0.5 if small else budget, **STARTS.get((name, k), {}))
            for _ in range(1 if small else 3)
        )
        taken, loss = runs[len(runs) // 2]
        curves.setdefault(label, {})[taken] = loss
        goals = (None, None) if small else (1.1 * budget, most)
        rows += figures(f"{name}, k = {k}, {label}, budget {budget:g} s", taken, loss, *goals)
    return rows


def beside(name: str, table: af.Table, k: int, curves: dict[str, Curve], small: bool) -> list[dict[str, Any]]:
    """The other methods, and chains with numbers of kicks."""
    rows: list[dict[str, Any]] = []
    for algorithm, options in OTHERS:
        if not small and algorithm == "min-cost-flow" and name == "random_normal":
            continue  # an hour
        label = ", ".join([algorithm, *(f"{key} {value}" for key, value in options.items())])
        taken, loss = measured(table, algorithm, k, **options)
        curves[label] = {taken: loss}
        rows += figures(f"{name}, k = {k}, {label}", taken, loss)
    label = "two-phase, improve chains"
    for kicks in (0, 1) if small else KICKS:
        taken, loss = measured(table, "two-phase", k, kicks=kicks)
        curves.setdefault(label, {})[taken] = loss
        rows += figures(f"{name}, k = {k}, {label}, {kicks} kicks", taken, loss)
    return rows


def around_the_defaults(small: bool) -> list[dict[str, Any]]:
    """Seconds and loss of two-phase on the first table, k = 10, by each option on its own."""
    name, table = next(tables(small))
    rows: list[dict[str, Any]] = []
    for option, values in DEFAULTS.items():
        for value in values[:2] if small else values:
            options = {"kicks": FEW_KICKS} | {option: value}
            if not small:
                few = af.Table(table.frame.iloc[:200], table.schema)
                af.anonymize(few, "two-phase", k=10, seed=1, **options)  # compiles
            rows += figures(f"{name}, k = 10, {option} {value}", *measured(table, "two-phase", 10, **options))
    return rows


def census(n: int) -> list[dict[str, Any]]:
    """Chains in partitions of 5,000 beside hungarian in partitions of 100, on two threads: shares of its loss and time."""
    table = af.Table(af.datasets.census_like(n, seed=1), af.datasets.schema("census_like"))
    few = af.Table(table.frame.iloc[:200], table.schema)
    taken, processor, losses = [], [], []
    runs = (("hungarian", 100, {}), ("two-phase", SIZE, {**LARGE, "threads": 1}))
    for algorithm, size, options in runs:
        af.anonymize(few, algorithm, k=10, seed=1, **options)  # compiles
        begin, busy = time.perf_counter(), time.process_time()
        anon = af.anonymize(table, algorithm, k=10, seed=1, partition_size=min(size, n), workers=2, **options)
        taken.append(time.perf_counter() - begin)
        processor.append(time.process_time() - busy)
        losses.append(anon.loss())
    name = f"census-like {n}, k = 10, two-phase in partitions of {SIZE}"
    goals: dict[str, Any] = {"most": 2.0} if n >= 500_000 else {}
    return [
        *figures(f"{name}, 2 threads", taken[1], losses[1]),
        *figures(f"census-like {n}, k = 10, hungarian in partitions of 100, 2 threads", taken[0], losses[0]),
        row(f"{name}: times hungarian's seconds", taken[1] / taken[0], "", **goals),
        row(f"{name}: times hungarian's processor seconds", processor[1] / processor[0], ""),
        row(
            f"{name}: below hungarian's loss",
            1 - losses[1] / losses[0],
            "",
            least=0.15 if goals else None,
        ),
    ]


def near(table: af.Table, questions: int) -> list[dict[str, Any]]:
    """Who finds near records, where a value is published or concealed: processor seconds for all records on one core, and what is found.

    Found is the share of the nine nearest of some records. scikit-learn is asked for these alone, and the seconds of the rest follow.
    """
    codes = table.records.codes.astype(np.int16)
    n, q = codes.shape
    count, reach = 10, 8
    rng = np.random.default_rng(0)
    some = rng.choice(n, questions, replace=False)
    differing = (codes[some, None] != codes[None]).sum(axis=2)
    differing[np.arange(questions), some] = q + 1
    least = np.partition(differing, count - 2, axis=1)[:, count - 2]

    def figures_of(name: str, taken: float, candidates: np.ndarray) -> list[dict[str, Any]]:
        hits = [
            min(int((differing[place, np.unique(line)] <= least[place]).sum()), count - 1)
            for place, line in enumerate(candidates)
        ]
        title = f"random_normal {n:,} x {q}, near records, {name}"
        return [row(title, taken, "s"), row(f"{title}: found", float(np.mean(hits)) / (count - 1), "")]

    def along(lines: list[np.ndarray]) -> np.ndarray:
        windows = []
        for line in lines:
            rank = np.empty(n, np.int64)
            rank[line] = np.arange(n)
            windows.append(line[(rank[some][:, None] + np.arange(-reach, reach + 1)).clip(0, n - 1)])
        return np.concatenate(windows, axis=1)

    part = part_of(table)
    costs = costs_of_difference(part.records, part.plan)
    assert costs is not None
    rows: list[dict[str, Any]] = []
    with ThreadPoolExecutor(1) as pool:
        few = part.take(np.arange(count))
        sorted_pairs(few.records, few.plan, few.originals(), costs, count, pool)  # compiles
        begin = time.process_time()
        pairs = sorted_pairs(part.records, part.plan, part.originals(), costs, count, pool)
        rows += figures_of("multiple sorting", time.process_time() - begin, pairs[some])
    for orders in (5, 20):
        begin = time.process_time()
        lines = [np.lexsort(codes[:, rng.permutation(q)].T) for _ in range(orders)]
        rows += figures_of(f"{orders} lexicographic orders", time.process_time() - begin, along(lines))
    begin = time.process_time()
    lines = [
        np.argsort(sum(rng.normal(size=codes.max() + 1)[column] for column in codes.T), kind="stable")
        for _ in range(20)
    ]
    rows += figures_of("20 random projections", time.process_time() - begin, along(lines))
    if importlib.util.find_spec("sklearn") is not None:
        from sklearn.neighbors import NearestNeighbors

        onehot = np.concatenate(
            [np.eye(codes.max() + 1, dtype=np.float32)[column] for column in codes.T], axis=1
        )
        for name, algorithm, metric, values in (
            ("BallTree on Hamming distances", "ball_tree", "hamming", codes),
            ("KDTree on one-hot columns", "kd_tree", "euclidean", onehot),
            ("all pairs by one-hot columns", "brute", "euclidean", onehot),
        ):
            begin = time.process_time()
            search = NearestNeighbors(n_neighbors=count, algorithm=algorithm, metric=metric, n_jobs=1).fit(
                values
            )
            built = time.process_time()
            nearest = search.kneighbors(values[some], return_distance=False)
            taken = built - begin + (time.process_time() - built) * n / questions
            rows += figures_of(f"scikit-learn, {name}", taken, nearest)
    return rows


def in_pieces(n: int, small: bool) -> list[dict[str, Any]]:
    """Chains beside greedy on random_normal in pieces, two workers of 4 GiB."""
    options = ", ".join(f"{key}: {value}" for key, value in LARGE.items())
    runs = {
        "greedy in 250s": ("{size: 250}", "{algorithm: greedy, k: 10}"),
        f"two-phase in {SIZE}s": (
            f"{{size: {SIZE}}}",
            f"{{algorithm: two-phase, k: 10, threads: 1, {options}}}",
        ),
    }
    rows: list[dict[str, Any]] = []
    taken, losses = [], []
    with tempfile.TemporaryDirectory() as home:
        source = Path(home) / "table.parquet"
        af.datasets.write_random_normal(source, n, 10, rows=1_000 if small else 1 << 17)
        for number, (name, (partition, anonymize)) in enumerate(runs.items()):
            record = flow_record(
                Path(home) / str(number), source, "numeric", partition, anonymize,
                *(("1000", "{scheduler: threads, workers: 1}") if small else ("true", WORKERS)),
            )  # fmt: skip
            taken.append(record["steps"]["anonymize"])
            losses.append(record["runs"][0]["gcp"])
            rows += figures(f"random_normal {n:,} x 10 in pieces, k = 10, {name}", taken[-1], losses[-1])
    name = f"random_normal {n:,} x 10 in pieces, k = 10, two-phase"
    return [
        *rows,
        row(f"{name}: times greedy's seconds", taken[1] / taken[0], "", most=None if small else 4.0),
        row(f"{name}: below greedy's loss", 1 - losses[1] / losses[0], "", least=None if small else 0.15),
    ]


def glance(small: bool) -> list[dict[str, Any]]:
    """Processor seconds against loss, for 5,000 census-like records, k = 10: the figures, and the picture."""
    # not fewer: two-phase searches tables of up to 64 records longest
    table = af.Table(
        af.datasets.census_like(100 if small else 5_000, seed=1), af.datasets.schema("census_like")
    )
    rows: list[dict[str, Any]] = []
    panels: list[tuple[str, dict[str, Curve]]] = []
    for title, lines in GLANCE.items():
        more, curves = against_time(
            "census-like 5,000, k = 10, processor", table, 10, lines, time.process_time
        )
        rows += more
        panels.append((f"{title}: GCP", curves))
    draw("methods", panels, "processor seconds", small)
    return rows


def against_time(
    name: str,
    table: af.Table,
    k: int,
    lines: Mapping[str, tuple[tuple[str, dict[str, Any]], ...]],
    clock: Callable[[], float],
) -> tuple[list[dict[str, Any]], dict[str, Curve]]:
    """The runs of each curve, verified: the figures, and the curves."""
    few = af.Table(table.frame.iloc[:100], table.schema)
    rows: list[dict[str, Any]] = []
    curves: dict[str, Curve] = {}
    for label, runs in lines.items():
        curves[label] = {}
        for algorithm, options in runs:
            af.anonymize(few, algorithm, k=k, seed=1, **options)  # compiles
            begin = clock()
            anon = af.anonymize(table, algorithm, k=k, seed=1, **options)
            taken = max(clock() - begin, 1e-3)
            af.verify(table, anon).raise_if_failed()
            curves[label][taken] = anon.loss()
            text = " ".join([algorithm, *(f"{option}={value}" for option, value in options.items())])
            rows += figures(f"{name}: {text}", taken, anon.loss())
    return rows, curves


def tables(small: bool) -> Iterator[tuple[str, af.Table]]:
    """The tables, one after the other."""
    folder = data_folder()
    if folder is not None:
        table = adult(folder)
        yield "Adult", af.Table(table.frame.iloc[:100], table.schema) if small else table
    frame = af.datasets.random_normal(100 if small else 100_000, 10, sd=1.0, seed=0)
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
