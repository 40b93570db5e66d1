"""Murakami 2018 (low information loss), section 4: Tables 8 to 20, Figures 11 and 12.

Values are concealed, never generalized in steps, as there: every QI is of kind suppression. CENSUS is not to be
had: census-like people are generated. The random tables are the paper's but for the draw and for how a
number becomes a value, which it does not say: ours are rounded to whole numbers. NH and Two-phase take all records
of the tables up to 1,000,000, and as many of those of 10,000,000. Two-phase cuts larger tables than 100,000 as the paper does (its
section 3.2.3): sorted, into pieces of 100,000.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

import anonflow as af
from anonflow.utility.bounds import lower_bound
from tests.papers.figures import Claim, Figure, Key, Numbers, Run, ends, falls, rises, spread, timed_run

KS = tuple(range(3, 11))
NH, TWO_PHASE = "NH", "two-phase"
BOTH = "NH against two-phase"
SIZES = {
    **{f"Occ_{size}00k": size * 100_000 for size in range(1, 6)},
    **{
        f"Random_{word}, sd = {sd}": n
        for word, n in (("100k", 100_000), ("1m", 1_000_000), ("10m", 10_000_000))
        for sd in (1.0, 1.5)
    },
}
TABLES = dict(zip(range(8, 19), SIZES))
MOST = 1_000_000
"""NH and Two-phase take so many records at most."""
CUT = 100_000
"""Records in a piece, as in the paper."""
SMALL_CUT = 500
"""Records in a piece where the paper has a hundred pieces (Table 20): a hundred of 100,000 take too long."""
EFFORT = 3.0
"""Effort of the lower bound: with it no QI of 1,000,000 records is left out."""
PASSES = 10
"""Of Two-phase's second phase."""
FEWER = {10_000: (3, 7), 5_000: (10,)}
"""Section 3.2: of Table 13's records so many are taken by each way of Two-phase, for these k, in the full run."""
PHASES, BEST = "two-phase, sparse and cycles", "two-phase, dense and chains"
"""The paper's two phases, and our best: the tables show both beside `two-phase`."""
WAYS: dict[str, dict[str, Any]] = {
    "two-phase, sparse alone": {"start": "sparse", "pairs": "sorted", "improve": "cycles", "p": 0},
    PHASES: {"start": "sparse", "pairs": "sorted", "improve": "cycles"},
    "two-phase, sparse and chains": {"start": "sparse", "pairs": "sorted", "improve": "chains"},
    BEST: {"start": "dense", "improve": "chains"},
}
"""The paper's first phase, its two phases (candidates once, by multiple sorting; negative cycles), and our own."""
MORE = {f"{PHASES}, {near} candidates": {**WAYS[PHASES], "candidates": near} for near in (128, 512)}
"""The paper's two phases with more candidates of a record than 32, the usual number."""
PRINTED_AS = {PHASES: TWO_PHASE, BEST: TWO_PHASE}
EVERY_K, FIRST_K = (13, 14), (8, 9)
"""Tables that show the paper's two phases and our best for every k; for the smallest k alone, to save time."""
VALUES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "the nearest": np.rint,
    "the next below": np.floor,
    "a quarter on, the next below": lambda drawn: np.floor(drawn + 0.25),
    "towards zero": np.trunc,
    "without sign, the nearest": lambda drawn: np.rint(abs(drawn)),
    "without sign, the next below": lambda drawn: np.floor(abs(drawn)),
}
"""How a normal number may become a whole one, which the paper does not say."""
ACROSS: dict[str, str] = {}


@cache
def table(kind: str, n: int) -> af.Table:
    """n records of the kind of some of the paper's tables, as :func:`kind_of` names them."""
    if kind == "Occ":
        frame: pd.DataFrame = af.datasets.census_like(n, seed=1).drop(columns="Salary-class")
    else:
        frame = af.datasets.random_normal(n, 10, sd=float(kind), seed=0)
    return concealed(frame)


def kind_of(case: str) -> str:
    """What tables of a case are drawn from: people, or normal numbers of a standard deviation."""
    return "Occ" if case.startswith("Occ") else case.rpartition(" ")[2]


def taken(case: str, run: Run) -> int:
    """How many records NH and Two-phase take of one of the paper's tables."""
    return min(MOST, SIZES[case]) if run.full else min(600, SIZES[case] // 1_000)


def concealed(frame: pd.DataFrame) -> af.Table:
    """A table whose values are published or concealed."""
    return af.Table(
        frame, {name: {"role": "quasi-identifier", "kind": "suppression"} for name in frame.columns}
    )


@cache
def run_once(
    method: str, kind: str, n: int, k: int, cut: int = CUT, order: str = "lexicographic"
) -> tuple[float, float]:
    """GCP and seconds of NH, or of Two-phase in one of its ways: a table of more records than `cut` is cut in that order."""
    options: dict[str, Any] = {}
    if method == TWO_PHASE:
        options = {"start": "dense", "improve": "reassign", "passes": PASSES}
    elif method in WAYS | MORE:
        # as many labels as a piece has records, for the paper gives no threshold
        options = {"p": min(n, cut), **(WAYS | MORE)[method]}
    if method != NH and n > cut:
        options |= {"partition_size": cut, "order": order}
    name = "nh" if method == NH else "two-phase"
    anon, seconds = timed_run(table(kind, n), name, k, **options)
    return anon.loss("gcp"), seconds


def compared(number: int, run: Run) -> Iterator[Figure]:
    """Tables 8 to 18: NH and Two-phase by k, and the gap between them in percent; the paper's phases and chains."""
    if not run.built_in:
        return
    case = TABLES[number]
    kind, n = kind_of(case), taken(case, run)
    for k in KS if run.full else (3, 10):
        key = Key(f"Table {number}", case, k, NH, "GCP")
        ring, seconds = run_once(NH, kind, n, k)
        yield Figure(key, ring, n)
        yield Figure(key._replace(quantity="seconds"), seconds, n)
        loss, seconds = run_once(TWO_PHASE, kind, n, k)
        yield Figure(key._replace(method=TWO_PHASE), loss, n)
        yield Figure(key._replace(method=TWO_PHASE, quantity="minutes"), seconds / 60, n)
        yield Figure(key._replace(method=BOTH, quantity="gap, %"), 100 * (ring / loss - 1), n)
        if number in EVERY_K or (number in FIRST_K and k == KS[0]):
            for method in (PHASES, BEST):
                loss, seconds = run_once(method, kind, n, k)
                yield Figure(key._replace(method=method), loss, n)
                yield Figure(key._replace(method=method, quantity="minutes"), seconds / 60, n)


def in_ways(run: Run) -> Iterator[Figure]:
    """The paper's two phases and our own, each way, on some of Table 13's records."""
    if not run.built_in:
        return
    case = TABLES[13]
    fewer = FEWER if run.full else {100: (3, 10)}
    for n, k in ((n, k) for n, ks in fewer.items() for k in ks):
        for method in (*WAYS, *MORE) if k > 3 else WAYS:
            loss, seconds = run_once(method, kind_of(case), n, k)
            key = Key("Section 3.2", f"{case}, {n:,} records", k, method, "GCP")
            yield Figure(key, loss, n)
            yield Figure(key._replace(quantity="minutes"), seconds / 60, n)


def generators(run: Run) -> Iterator[Figure]:
    """What NH loses, and the lower bound, by how normal numbers become whole ones; NH by deviation and size as well."""
    if not run.built_in:
        return
    n = 100_000 if run.full else 300
    drawn = np.random.default_rng(0).normal(size=(n, 10))
    for rule, whole in VALUES.items():
        people = numbers_of(whole(drawn))
        for k in (3, 10) if run.full else (3,):
            key = Key("Section 4", f"sd = 1.0, {rule}", k, NH, "GCP")
            yield Figure(key, timed_run(people, "nh", k)[0].loss("gcp"), n)
            bound = lower_bound(people.records, k)
            assert bound is not None
            yield Figure(key._replace(method="lower bound"), bound, n)
    for sd in (0.6, 0.7):
        for size in (n, 10 * n):
            people = numbers_of(np.rint(sd * np.random.default_rng(0).normal(size=(size, 10))))
            key = Key("Section 4", f"sd = {sd}, the nearest, {size:,} records", 3, NH, "GCP")
            yield Figure(key, timed_run(people, "nh", 3)[0].loss("gcp"), size)


def numbers_of(drawn: np.ndarray) -> af.Table:
    """A table of whole numbers."""
    return concealed(pd.DataFrame(drawn.astype(int), columns=[f"q{a + 1}" for a in range(drawn.shape[1])]))


def bounded(place: str, run: Run) -> Iterator[Figure]:
    """Figures 11 and 12: how far Two-phase is above the lower bound at most."""
    if not run.built_in:
        return
    for case, of_paper in SIZES.items():
        if case.startswith("Occ") != (place == "Figure 11") or of_paper == 10_000_000:
            continue
        kind, n = kind_of(case), taken(case, run) if run.full else 300
        for k in KS if run.full else (3, 10):
            bound = lower_bound(table(kind, n).records, k, effort=EFFORT)
            assert bound
            key = Key(place, case, k, TWO_PHASE, "LB_Gap")
            yield Figure(key, run_once(TWO_PHASE, kind, n, k)[0] / bound - 1, n)
            yield Figure(key._replace(method="lower bound", quantity="GCP"), bound, n)


def unsorted(place: str, run: Run) -> Iterator[Figure]:
    """Tables 19 and 20: what is lost by not sorting before the table is cut, by the paper's number of pieces."""
    if not run.built_in:
        return
    for case, of_paper in SIZES.items():
        if case.startswith("Occ") != (place == "Table 19") or of_paper == CUT:
            continue
        pieces = of_paper // CUT
        size = (CUT if of_paper <= MOST else SMALL_CUT) if run.full else 100
        n = (pieces if run.full else min(pieces, 5)) * size
        for k in (3, 10) if run.full and pieces < 10 else (3,):
            in_order, as_it_is = (
                run_once(TWO_PHASE, kind_of(case), n, k, size, order)[0]
                for order in ("lexicographic", "input")
            )
            key = Key(place, case, k, "without sorting", "gap, %")
            yield Figure(key, 100 * (as_it_is / in_order - 1), n)


PARTS = {
    **{f"Table {number}": partial(compared, number) for number in TABLES},
    "Table 19": partial(unsorted, "Table 19"),
    "Table 20": partial(unsorted, "Table 20"),
    "Figure 11": partial(bounded, "Figure 11"),
    "Figure 12": partial(bounded, "Figure 12"),
    "Section 3.2": in_ways,
    "Section 4": generators,
}
RECORDS = {
    **{f"Table {number}": SIZES[case] for number, case in TABLES.items()},
    "Table 19": 500_000,
    "Table 20": 10_000_000,
    "Figure 11": 500_000,
    "Figure 12": 1_000_000,
}
"""Records of the paper's largest table where ours may have fewer."""


def why_not(key: Key, records: int | None) -> str:
    """Why a printed number cannot be compared."""
    of_paper = SIZES.get(key.case, 0)
    if records is None:
        return "left out to save time"
    if of_paper and records < of_paper:
        return f"{records:,} of {of_paper:,} records"
    return ""


def note(key: Key) -> str:
    """What a verdict has to be read with."""
    return "generated people" if key.case.startswith("Occ") else "numbers as values: see Section 4"


def claims(numbers: Numbers, printed: Mapping[Key, str]) -> list[Claim]:
    """What section 4 says of its tables and figures."""
    gaps = {case: numbers.curve(f"Table {number}", case, BOTH, "gap, %") for number, case in TABLES.items()}
    places = {case: f"Table {number}" for number, case in TABLES.items()}
    sizes = {figure.key.case: figure.records for figure in numbers if figure.key.method == BOTH}
    alike: dict[tuple[str, int], list[str]] = {}
    for case, gap in gaps.items():
        if gap:
            alike.setdefault((kind_of(case), sizes[case]), []).append(case)
    if not alike:
        return []
    # larger tables that take no more records rest on the same runs: what they say counts once
    same = {cases[0]: [places[case] for case in cases[1:]] for cases in alike.values()}
    gaps = {case: gaps[case] for case in same}
    results = [
        Claim(
            places[case],
            "Two-phase loses less than NH for every k",
            min(gap.values()) > 0,
            f"NH {min(gap.values()):.0f} to {max(gap.values()):.0f} % above it, on {sizes[case]:,} records"
            + (f"; the same runs as {' and '.join(same[case])}" if same[case] else ""),
        )
        for case, gap in gaps.items()
    ]
    results += [
        Claim(
            places[case],
            "the gap falls as k grows",
            not rises(ends(gap)),
            f"{spread(gap, 3)} %",
            "on generated people both losses grow alike with k",
        )
        for case, gap in gaps.items()
        if len(gap) > 1
    ]
    occ = [numbers.curve(places[case], case, TWO_PHASE)[10] for case in gaps if case.startswith("Occ")]
    results.append(
        Claim(
            "Table 12",
            "more records, less loss (Tables 9 to 12, k = 10)",
            falls(dict(enumerate(occ[1:]))),
            spread(dict(enumerate(occ[1:]))),
        )
    )
    for place in ("Table 19", "Table 20"):
        cases = numbers.cases(place)
        lost = {case: numbers.curve(place, case, "without sorting", "gap, %") for case in cases}
        results.append(
            Claim(
                place,
                "without sorting more is lost",
                all(min(curve.values()) > 0 for curve in lost.values()),
                "; ".join(f"{case}: {spread(curve, 3)} %" for case, curve in lost.items()),
            )
        )
        pieces = [max(lost[case].values()) for case in cases if "1.5" not in case]
        results.append(
            Claim(
                place,
                "the more pieces the table is cut into, the more",
                pieces == sorted(pieces),
                " to ".join(f"{value:.3g} %" for value in (pieces[0], pieces[-1])),
                f"Random_10m is cut into pieces of {SMALL_CUT} records, Random_1m of {CUT:,}"
                if place == "Table 20"
                else "",
            )
        )
    for place in ("Figure 11", "Figure 12"):
        above = {case: numbers.curve(place, case, TWO_PHASE, "LB_Gap") for case in numbers.cases(place)}
        results.append(
            Claim(
                place,
                "the gap to the lower bound grows with k",
                all(rises(ends(curve)) for curve in above.values()),
                "; ".join(f"{case}: {spread(curve, 2)}" for case, curve in above.items()),
                "with sd = 1.5 the bound grows with k as fast as the loss does",
            )
        )
        if place == "Figure 11":
            most = max(max(curve.values()) for curve in above.values())
            text = "it stays below 0.32 for k up to 10"
            results.append(Claim(place, text, most < 0.32, f"{most:.2f} at most"))
        else:
            wide = {sd: above[f"Random_1m, sd = {sd}"][10] for sd in ("1.0", "1.5")}
            measured = f"k = 10: {wide['1.0']:.2f} against {wide['1.5']:.2f}"
            text = "on Random_1m it is larger with sd = 1.0 than with 1.5"
            results.append(Claim(place, text, wide["1.0"] > wide["1.5"], measured))
    return results
