"""Doka 2015 (freeform generalization), section 8: Figures 6 to 10 on census-like people and on Adult.

CENSUS is not to be had: census-like people have its cardinalities (Table 2) and are generated. Partitions and
their sizes are the paper's; where a method takes the whole table, tables are smaller than in the paper.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

import anonflow as af
from tests.benchmarks.bench_optimal import losses, sample
from tests.benchmarks.measuring import data_folder
from tests.cases.tables import adult
from tests.papers.figures import Claim, Figure, Key, Numbers, Run, below, ends, listed, made, rises, spread

OURS = ("greedy", "sort-greedy", "hungarian")
OTHERS = ("nh", "k-concealment")
OPTIONS: dict[str, dict[str, Any]] = {
    "greedy": {"visit": "lexicographic"},
    "sort-greedy": {"edges": "weight"},
    "k-concealment": {"randomized": False},
}
"""As in the paper; anonflow's defaults lose less."""
PARTITIONS = {"greedy": 250, "sort-greedy": 150, "hungarian": 100, "nh": None}
WHOLE = {10: (2_000, 10_000, 100_000, 500_000), 25: (2_000, 10_000, 100_000), 50: (2_000, 10_000, 100_000)}
"""Figure 6: numbers of records for each k; of Adult all 30,162 instead of more."""
SAMPLES, TIMED, LIMIT, SMALL_LIMIT = 100, 20, 30.0, 120.0
"""Figure 7: samples of 14 records in 7a and in 7b, and seconds for the optimum of one.

The small run allows more seconds than it needs: its numbers must not depend on how busy the machine is.
"""
BY_K = 1_000, (10, 25, 50, 100)
"""Figure 8: records, of the paper's two tables the smaller one, and k."""
MOST = {"sort-greedy": 60_000, "hungarian": 60_000, "k-concealment": 240_000}
"""Figure 10: n k at most, for the methods that take longest."""
CENSUS, ADULT = "census-like", "Adult"
GREATEST = "greatest gain on NH and k-concealment"
ACROSS = {
    "Figure 6": "records",
    "Figure 7b": "records",
    "Figure 9": "d",
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
    for k, ns in WHOLE.items() if run.full else ((10, (500, 1_000)),):
        done = set()
        for n in ns:
            for name, table in tables(run, n):
                if (name, table.n) in done:
                    continue
                done.add((name, table.n))
                for method, size in PARTITIONS.items():
                    key = Key("Figure 6", f"{name}, k = {k}", table.n, method, "")
                    yield from one(key, table, method, k, size)


def figure_7a(run: Run) -> Iterator[Figure]:
    """The share of the way from k-concealment to the optimum, on samples of 14 records."""
    numbers, ks = range(SAMPLES if run.full else 3), tuple(range(2, 8)) if run.full else (2, 4)
    given = {name: OPTIONS.get(name, {}) for name in (*OURS, *OTHERS, "min-cost-flow")}
    for name, table in tables(run, 30_162 if run.full else 500):
        found, proved, _ = losses(table, numbers, ks, LIMIT if run.full else SMALL_LIMIT, given)
        case = f"{name}, 14 records"
        worst, best = found["k-concealment"].mean(axis=0), found["optimal"].mean(axis=0)
        for at, k in enumerate(ks):
            for method in (*OURS, "nh", "min-cost-flow"):
                gain = (worst[at] - found[method][:, at].mean()) / (worst[at] - best[at])
                yield Figure(Key("Figure 7a", case, k, method, "gain"), float(gain), 14)
            share = float(proved[:, at].mean())
            yield Figure(Key("Figure 7a", case, k, "optimal", "share proved"), share, 14)


def figure_7b(run: Run) -> Iterator[Figure]:
    """Seconds by the number of records, k = 6: means over some samples. Of the full run only."""
    if not run.full:
        return
    for name, table in tables(run, 5_000):
        for n in (8, 11, 14):
            for method in (*OURS, "nh", "k-concealment", "min-cost-flow", "optimal"):
                options = {"time_limit": LIMIT} if method == "optimal" else OPTIONS.get(method, {})
                made(sample(table, n, 0), method, 2, **options)
                taken = [made(sample(table, n, number), method, 6, **options)[1] for number in range(TIMED)]
                key = Key("Figure 7b", f"{name}, k = 6", n, method, "seconds")
                yield Figure(key, float(np.mean(taken)), n)


def figure_8(run: Run) -> Iterator[Figure]:
    """GCP by k, whole tables."""
    n, ks = BY_K if run.full else (300, (10, 50))
    for name, table in tables(run, n):
        for k in ks:
            for method in (*OURS, *OTHERS, "min-cost-flow"):
                key = Key("Figure 8", f"{name}, {n:,} records", k, method, "")
                yield from one(key, table, method, k)


def figure_9(run: Run) -> Iterator[Figure]:
    """GCP by the number of QIs, and its slope from d = 2 on."""
    n, ds, ks = (1_000, (2, 4, 6, 8), (30, 50)) if run.full else (200, (2, 5, 8), (30,))
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
    sizes = {15: (1_000, 2_000, 4_000, 8_000), 50: (1_000, 2_000, 4_000)}
    for k, ns in sizes.items() if run.full else ((15, (100, 300)),):
        for n in ns:
            for name, table in tables(run, n):
                if name == ADULT and n > 4_000:
                    continue
                for method in (*OURS, *OTHERS):
                    if n * k > MOST.get(method, math.inf):
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


def gain_of_figure_8(run: Run) -> Iterator[Figure]:
    """How far the best freeform method is below the worse of NH and k-concealment at most, in percent."""
    found = Numbers(figure_8(run))
    gains = []
    for case in (case for case in found.cases("Figure 8") if case.startswith(CENSUS)):
        curves = {method: found.curve("Figure 8", case, method) for method in (*OURS, *OTHERS)}
        for k in curves["nh"]:
            worse = max(curves[method][k] for method in OTHERS)
            gains.append(100 * (1 - min(curves[method][k] for method in OURS) / worse))
    yield from found
    if gains:
        yield Figure(Key("Figure 8", GREATEST, 0, "best of ours", "%"), max(gains), BY_K[0])


PARTS["Figure 8"] = gain_of_figure_8
RECORDS = {"Figure 6": 500_000, "Figure 8": 10_000, "Figure 9": 10_000, "Figure 10": 64_000}
"""Records of the paper's largest table where ours may have fewer."""


def why_not(key: Key, records: int | None) -> str:
    """Why a printed number cannot be compared."""
    return ""


def note(key: Key) -> str:
    """What a verdict has to be read with."""
    return "generated people" if key.case in ("CENSUS", GREATEST) else ""


def claims(numbers: Numbers, printed: Mapping[Key, str]) -> list[Claim]:
    """What section 8 says of its figures, for each table apart."""
    return [
        claim
        for name in (CENSUS, ADULT)
        if any(case.startswith(name) for case in numbers.cases("Figure 6"))
        for claim in (
            *_partitions(numbers, name),
            *_optimal(numbers, name),
            *_whole(numbers, name),
            *_times(numbers, name),
        )
    ]


def _cases(numbers: Numbers, place: str, name: str) -> list[str]:
    return [case for case in numbers.cases(place) if case.startswith(name)]


def _ordered(
    numbers: Numbers,
    place: str,
    name: str,
    says: str,
    lower: tuple[str, ...],
    upper: tuple[str, ...],
    why: str = "",
) -> Claim:
    """That each method of `lower` loses less than each of `upper`, wherever both are measured."""
    above: Counter[str] = Counter()
    places: set[float] = set()
    ratios = []
    for case in _cases(numbers, place, name):
        for a in lower:
            for b in upper:
                one, other = (numbers.curve(place, case, method) for method in (a, b))
                ratios += [one[at] / other[at] for at in one if at in other]
                above[a] += len(below(one, other))
                places.update(below(one, other))
    here = f"{min(ratios):.2f} to {max(ratios):.2f} of it"
    if places:
        counts = ", ".join(f"{method} {count}" for method, count in above.items() if count)
        here += (
            f"; not in {sum(above.values())} of {len(ratios)} runs ({counts}), at {listed(sorted(places))}"
        )
    return Claim(place, f"{name}: {says}", not places, here, why)


def _partitions(numbers: Numbers, name: str) -> Iterator[Claim]:
    yield _ordered(numbers, "Figure 6", name, "greedy is below NH", ("greedy",), ("nh",))
    curves = {
        k: [numbers.curve("Figure 6", f"{name}, k = {k}", method) for method in PARTITIONS] for k in WHOLE
    }
    ratios = {k: {n: greedy[n] / second[n] for n in greedy} for k, (greedy, second, *_) in curves.items()}
    yield Claim(
        "Figure 6",
        f"{name}: greedy is below sort-greedy",
        all(ratio < 1 for curve in ratios.values() for ratio in curve.values()),
        "; ".join(f"k = {k}: {spread(curve, 3)} of it" for k, curve in ratios.items())
        + f", on {' to '.join(f'{n:,}' for n in ends(ratios[10]))} records for k = 10",
        "sort-greedy's better assignment is worth more than greedy's larger partitions, the less so the larger k is and, "
        "with people, the table",
    )
    greedy, second, hungarian = (list(curve.values())[-1] for curve in curves[50][:3])
    yield Claim(
        "Figure 6",
        f"{name}: as k grows (50), both are below hungarian",
        max(greedy, second) < hungarian,
        f"{greedy:.3f} and {second:.3f} against {hungarian:.3f}, on {list(curves[50][0])[-1]:,} records",
        "hungarian's better assignment is worth more than larger partitions, but for greedy's on the largest table",
    )


def _optimal(numbers: Numbers, name: str) -> Iterator[Claim]:
    case = f"{name}, 14 records"
    gains = {
        method: numbers.curve("Figure 7a", case, method, "gain") for method in (*OURS, "nh", "min-cost-flow")
    }
    ks = list(gains["nh"])
    nearest = {k: max((gain[k], method) for method, gain in gains.items())[1] for k in ks if k > 2}
    best = [k for k, method in nearest.items() if method == "hungarian"]
    rest = "".join(f", {method} for k = {k}" for k, method in nearest.items() if method != "hungarian")
    yield Claim(
        "Figure 7a",
        f"{name}: hungarian is the nearest to the optimum (but for min-cost-flow at k = 2)",
        not rest,
        f"for k = {listed(best)}{rest}; its gain is {spread(gains['hungarian'], 2)}",
        "on some k min-cost-flow or NH is nearer",
    )
    mean = {method: float(np.mean(list(gain.values()))) for method, gain in gains.items()}
    second = max((method for method in mean if method != "hungarian"), key=mean.__getitem__)
    yield Claim(
        "Figure 7a",
        f"{name}: sort-greedy follows closely",
        second == "sort-greedy" and mean["hungarian"] - mean["sort-greedy"] < 0.1,
        ", ".join(f"{method} {value:.2f}" for method, value in mean.items()) + " in the mean over k",
        "min-cost-flow lies between them at small k; sort-greedy is ahead of greedy, but not close to hungarian",
    )
    yield Claim(
        "Figure 7a",
        f"{name}: min-cost-flow is optimal for k = 2",
        gains["min-cost-flow"][2] > 1 - 1e-6,
        f"gain {gains['min-cost-flow'][2]:.4f}",
    )
    worse = [k for k in ks if gains["min-cost-flow"][k] < gains["nh"][k]]
    yield Claim(
        "Figure 7a",
        f"{name}: it loses its lead as k grows, and is behind NH from k = 6 on",
        worse == [6, 7],
        f"behind for {'k = ' + listed(worse) if worse else 'no k'}; gain {spread(gains['min-cost-flow'], 2)}",
        "our NH cuts and orders its rings in its own way, the cited work's being in no source of ours",
    )


def _whole(numbers: Numbers, name: str) -> Iterator[Claim]:
    reasons = {
        "k-concealment": "it asks for less than k-regularity, and ours is well below NH, where the paper's is near it",
        "nh": "on few attributes NH's neighbours along the sort order are the nearest records",
    }
    for place in ("Figure 8", "Figure 9", "Figure 10"):
        for other, why in reasons.items():
            says = f"greedy, sort-greedy and hungarian are below {other}"
            yield _ordered(numbers, place, name, says, OURS, (other,), why)
        if place == "Figure 8":
            yield from _by_k(numbers, name)
    ring = "greedy and sort-greedy start from a higher loss at d = 2 than the others"
    for case in _cases(numbers, "Figure 9", name):
        slopes = {m: list(numbers.curve("Figure 9", case, m, "slope").values())[-1] for m in (*OURS, *OTHERS)}
        ranked = sorted(slopes, key=slopes.__getitem__)
        yield Claim(
            "Figure 9",
            f"{case}: the slope to d = 8 is worst for k-concealment, then NH; best for sort-greedy and hungarian",
            ranked[-2:] == ["nh", "k-concealment"] and set(ranked[:2]) == {"sort-greedy", "hungarian"},
            " < ".join(f"{method} {slopes[method]:.3f}" for method in ranked),
            ring,
        )
    case = f"{name}, k = 15"
    yield _ordered(numbers, "Figure 10", case, "k-concealment is below NH", OTHERS[1:], OTHERS[:1])


def _by_k(numbers: Numbers, name: str) -> Iterator[Claim]:
    case = f"{name}, {BY_K[0]:,} records"
    curves = {m: numbers.curve("Figure 8", case, m) for m in (*OURS, *OTHERS, "min-cost-flow")}
    apart = {k: min(curves[m][k] for m in OTHERS) - curves["hungarian"][k] for k in curves["nh"]}
    yield Claim(
        "Figure 8",
        f"{case}: the distance to earlier methods widens as k grows",
        rises(ends(apart)),
        f"from the better of NH and k-concealment to hungarian: {spread(apart, 3)} of GCP",
        "the better one is k-concealment, which gains on hungarian as k grows",
    )
    ahead = {k: curves["greedy"][k] / curves["hungarian"][k] - 1 for k in curves["greedy"]}
    yield Claim(
        "Figure 8",
        f"{case}: the one between greedy and hungarian narrows",
        not rises(ends(ahead)),
        " to ".join(f"{100 * value:.0f} %" for value in ends(ahead).values()),
    )
    yield _ordered(
        numbers, "Figure 8", name, "min-cost-flow is above every freeform method", OURS, ("min-cost-flow",)
    )


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
        )
    for place in ("Figure 8", "Figure 10"):
        between = []
        for one in _cases(numbers, place, name):
            curves = {m: numbers.curve(place, one, m, "seconds") for m in (*OURS, *OTHERS)}
            between += [
                curves["nh"][at] <= curves[m][at] <= curves["k-concealment"][at]
                for m in OURS
                for at in curves[m]
                if at in curves["k-concealment"]
            ]
        yield Claim(
            place,
            f"{name}: greedy, sort-greedy and hungarian take longer than NH and less long than k-concealment",
            all(between),
            f"{sum(between)} of {len(between)} runs",
            "our k-concealment is faster than its competitors' were",
            timing=True,
        )
