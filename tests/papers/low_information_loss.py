"""Murakami 2018 (low information loss), section 4: Tables 8 to 20, Figures 11 and 12.

Values are concealed, never generalized in steps, as there: every QI is of kind suppression. CENSUS is not to be
had: census-like people are generated. The random tables are the paper's but for the draw and for how a
number becomes a value, which it does not say: ours are rounded to whole numbers. NH and Two-phase take all records
of the tables up to 1,000,000, and as many of those of 10,000,000. Two-phase cuts larger tables than 100,000 as the paper does (its
section 3.2.3): sorted, into pieces of 100,000.

`two-phase` is the paper's own algorithm and is what claims are judged by. Our ways of the two phases stand beside it, under names of
their own; where they take long they run for the smallest and the largest k alone.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import anonflow as af
from anonflow.algorithms.freeform.near_pairs import costs_of_difference, sorted_pairs
from anonflow.utility.bounds import lower_bound
from tests.cases.freeform import part_of
from tests.papers.figures import (
    Claim,
    Figure,
    Key,
    Numbers,
    Run,
    ends,
    falls,
    listed,
    rises,
    spread,
    timed_run,
)

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
SMALL_CUT = 1_000
"""Records in a piece where the paper's two phases are cut both ways: two to a hundred pieces of 100,000 take too long."""
EFFORT = 3.0
"""Effort of the lower bound: with it no QI of 1,000,000 records is left out."""
FEWER = {TABLES[13]: {10_000: (3, 7), 5_000: (10,)}, TABLES[8]: {5_000: (10,)}}
"""Section 3.2: of a case's records so many are taken by each way of Two-phase, for these k, in the full run."""
FEWEST = {TABLES[13]: {100: (3, 10)}}
"""The same in the small run."""
SORTED = {"start": "sparse", "pairs": "sorted"}
"""The paper's first phase: candidates are chosen once, by multiple sorting."""
QUICK, DENSE, SPARSE, PATTERNS = (
    "two-phase, chains alone",
    "two-phase, dense and chains",
    "two-phase, sparse and chains",
    "two-phase, patterns and chains",
)
"""Our ways of the two phases."""
OURS = (QUICK, DENSE, SPARSE)
"""Those whose least loss is judged: patterns at the smallest and the largest k alone would bend the curve of all k."""
FIRST = "two-phase, sparse alone"
WAYS: dict[str, dict[str, Any]] = {
    FIRST: {**SORTED, "improve": "cycles", "p": 0},
    TWO_PHASE: {**SORTED, "improve": "cycles"},
    SPARSE: {**SORTED, "improve": "chains"},
    DENSE: {"start": "dense", "improve": "chains"},
    QUICK: {"start": "dense", "improve": "chains", "kicks": 0},
    PATTERNS: {"start": "patterns", "improve": "chains"},
}
"""The paper's first phase, its two phases (then negative cycles), and ours."""
MORE = {f"{TWO_PHASE}, {near} candidates": {**WAYS[TWO_PHASE], "candidates": near} for near in (128, 512)}
"""The paper's two phases with more candidates of a record than 32, the usual number."""
ENDS = (KS[0], KS[-1])
PHASES_AT = dict.fromkeys(range(8, 17), KS)
"""Table -> k with the paper's two phases."""
OURS_AT = PHASES_AT | dict.fromkeys((9, 10, 11, 12, 15, 16), ENDS)
"""The same with our ways of them: of the larger tables the smallest and the largest, because they take long."""
SAME = {17: 15, 18: 16}
"""Tables of 10,000,000 records -> the tables whose records they share, as far as they are taken; our runs are theirs."""
SPARSE_AT = {13: (3,), 14: (3,)}
"""Table -> k for which a sparse start is tried before chains."""
PATTERNS_AT = dict.fromkeys((8, 13, 14), ENDS)
"""Table -> k for which a start by patterns is tried before chains."""
WITHOUT = "without sorting"
"""Of Tables 19 and 20, in the paper's name; ours are named after their way, and after their pieces if they are smaller."""
PRINTED_AS = dict.fromkeys((*OURS, PATTERNS), TWO_PHASE)
CANDIDATES = 32
"""The usual number of candidates of a record."""
FEW_CANDIDATES = "a record chooses among 32 candidates; with more, Two-phase loses less (Section 3.2)"
NEAR_AMONG = (10_000, 100_000, 1_000_000)
"""Records among which multiple sorting seeks them at once."""
VALUES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "the nearest": np.rint,
    "the next below": np.floor,
    "a quarter on, the next below": lambda drawn: np.floor(drawn + 0.25),
    "towards zero": np.trunc,
    "without sign, the nearest": lambda drawn: np.rint(abs(drawn)),
    "without sign, the next below": lambda drawn: np.floor(abs(drawn)),
}
"""How a normal number may become a whole one, which the paper does not say; the second and third are those of another mean."""


class Source(NamedTuple):
    """What the values of a random table may be: normal numbers of a deviation, made whole, so many values of a QI at most."""

    deviation: float
    rule: str = "the nearest"
    values: int = 0

    def __str__(self) -> str:
        most = f", {self.values} values" if self.values else ""
        return f"sd = {self.deviation:.5g}, {self.rule}{most}"


BOUND = "lower bound"
ROOT = 1.5**0.5
"""The deviation if the 1.5 of the paper is a variance."""
SOURCES: dict[Source, dict[tuple[int, int], tuple[str, ...]]] = {
    Source(1.0): {(1, 3): (NH, BOUND, TWO_PHASE), (1, 10): (NH, BOUND), (10, 3): (NH,)},
    Source(1.5): {(1, 3): (NH, BOUND, TWO_PHASE), (1, 10): (NH, BOUND), (10, 3): (NH,)},
    **{
        Source(sd, values=5): {(1, 3): (NH, BOUND, TWO_PHASE), (1, 10): (NH, BOUND), (10, 3): (NH,)}
        for sd in (1.0, 1.5)
    },
    **{Source(sd, values=7): {(1, 3): (NH, BOUND), (1, 10): (NH,)} for sd in (1.0, 1.5)},
    **{Source(sd, values=3): {(1, 3): (NH, BOUND), (10, 3): (NH,)} for sd in (1.0, 1.5)},
    Source(ROOT): {(1, 3): (NH, BOUND, TWO_PHASE), (1, 10): (NH, BOUND), (10, 3): (NH,)},
    **{Source(sd): {(1, 3): (NH,), (10, 3): (NH,)} for sd in (0.6, 0.7, 0.75)},
    **{
        Source(sd, rule): {(1, 3): (NH, BOUND)}
        for rule in VALUES
        for sd in (1.0, 1.5)
        if rule not in ("the nearest", "towards zero")
    },
    Source(1.0, "towards zero"): {(1, 3): (NH, BOUND), (10, 3): (NH,)},
    Source(ROOT, "towards zero"): {(1, 3): (NH, BOUND), (10, 3): (NH,)},
    Source(1.5, "towards zero"): {(1, 3): (NH, BOUND)},
}
"""Source -> hundred thousands of records and k -> what is computed."""
ACROSS: dict[str, str] = {}
READING = "the paper's"


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
    if method != NH:
        # as many labels as a piece has records, for the paper gives no threshold
        options = {"p": min(n, cut), **(WAYS | MORE)[method]}
    if method != NH and n > cut:
        options |= {"partition_size": cut, "order": order}
    name = "nh" if method == NH else "two-phase"
    anon, seconds = timed_run(table(kind, n), name, k, **options)
    return anon.loss("gcp"), seconds


@cache
def bound_once(kind: str, n: int, k: int) -> float:
    """The lower bound of n records of a kind."""
    bound = lower_bound(table(kind, n).records, k, effort=EFFORT)
    assert bound
    return bound


def ways_at(number: int, k: int) -> list[str]:
    """The ways of Two-phase that a table shows for a k."""
    both, ours = k in PHASES_AT.get(number, ()), k in OURS_AT.get(SAME.get(number, number), ())
    return [
        *([TWO_PHASE] if both else []),
        *([QUICK] if OURS_AT.get(number) == KS else []),
        *([DENSE] if ours else []),
        *([SPARSE] if k in SPARSE_AT.get(number, ()) else []),
        *([PATTERNS] if k in PATTERNS_AT.get(number, ()) else []),
    ]


def loss_and_time(run: Run, key: Key, kind: str, n: int) -> tuple[Figure, Figure]:
    """GCP and time of a method on n records of a kind: those that are stored at its key, or measured now."""
    unit, long = ("seconds", 1) if key.method == NH else ("minutes", 60)
    keys = key, key._replace(quantity=unit)
    stored = [run.stored.by_key[name] for name in keys if name in run.stored.by_key]
    if len(stored) == len(keys) and all(figure.records == n for figure in stored):
        return stored[0], stored[1]
    loss, seconds = run_once(key.method, kind, n, int(key.at))
    return Figure(keys[0], loss, n), Figure(keys[1], seconds / long, n)


def compared(number: int, run: Run) -> Iterator[Figure]:
    """Tables 8 to 18: NH and Two-phase by k, and the gap between them in percent; our ways of Two-phase beside it."""
    if not run.built_in:
        return
    case = TABLES[number]
    kind, n = kind_of(case), taken(case, run)
    for k in KS if run.full else (3, 10):
        key = Key(f"Table {number}", case, k, NH, "GCP")
        ring, seconds = loss_and_time(run, key, kind, n)
        yield from (ring, seconds)
        for method in ways_at(number, k):
            loss, minutes = loss_and_time(run, key._replace(method=method), kind, n)
            yield from (loss, minutes)
            if method == TWO_PHASE:
                gap = 100 * (ring.value / loss.value - 1)
                yield Figure(key._replace(method=BOTH, quantity="gap, %"), gap, n)


def in_ways(run: Run) -> Iterator[Figure]:
    """The paper's two phases and our own, each way, on some records of a random table and on some people."""
    if not run.built_in:
        return
    for case, fewer in (FEWER if run.full else FEWEST).items():
        for n, k in ((n, k) for n, ks in fewer.items() for k in ks):
            for method in (*WAYS, *MORE) if k > 3 else WAYS:
                key = Key("Section 3.2", f"{case}, {n:,} records", k, method, "GCP")
                yield from loss_and_time(run, key, kind_of(case), n)


def near_records(run: Run) -> Iterator[Figure]:
    """Section 3.2.1: multiple sorting finds candidates among all records of a random table at once, without cutting it."""
    if not run.built_in:
        return
    for n in NEAR_AMONG if run.full else (300,):
        differing, seconds = near_once(n)
        key = Key(
            "Section 3.2.1", f"normal numbers, sd = 1.0, {n:,} records", CANDIDATES, "multiple sorting", ""
        )
        yield Figure(key._replace(quantity="differing values"), differing, n)
        yield Figure(key._replace(quantity="minutes"), seconds / 60, n)


@cache
def near_once(n: int) -> tuple[float, float]:
    """In how many values a record differs from one of its nearest on average, and seconds of processor time."""
    part = part_of(table("1.0", n))
    start = time.process_time()
    costs = costs_of_difference(part.records, part.plan)
    assert costs is not None
    count = min(CANDIDATES + KS[0], n)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        near = sorted_pairs(part.records, part.plan, part.originals(), costs, count, pool)
    seconds = time.process_time() - start
    codes = part.records.codes
    differing = sum(float((codes[near[:, place]] != codes).sum()) for place in range(1, count))
    return differing / (n * (count - 1)), seconds


def generators(run: Run) -> Iterator[Figure]:
    """What NH and Two-phase lose, and the lower bound, by what random tables may be drawn from."""
    if not run.built_in:
        return
    for source, wanted in SOURCES.items():
        for (hundreds, k), methods in wanted.items():
            n = hundreds * (CUT if run.full else 300)
            for method in methods:
                key = Key("Section 4", f"{source}, {n:,} records", k, method, "GCP")
                loss, seconds = drawn_once(source, n, k, method)
                yield Figure(key, loss, n)
                if method != BOUND:
                    yield Figure(key._replace(quantity="minutes"), seconds / 60, n)


@cache
def drawn_once(source: Source, n: int, k: int, method: str) -> tuple[float, float]:
    """GCP and seconds of a method, or the lower bound, on n records of a source; the tables' own source has their runs."""
    if (
        source.rule == "the nearest"
        and not source.values
        and source.deviation in (1.0, 1.5)
        and method != BOUND
    ):
        return run_once(method, str(source.deviation), n, k)
    people = drawn_from(source, n)
    if method == BOUND:
        bound = lower_bound(people.records, k, effort=EFFORT)
        assert bound is not None
        return bound, 0.0
    options = {} if method == NH else {"p": n, **WAYS[method]}
    anon, seconds = timed_run(people, "nh" if method == NH else "two-phase", k, **options)
    return anon.loss("gcp"), seconds


@cache
def drawn_from(source: Source, n: int) -> af.Table:
    """n records of a source."""
    whole = VALUES[source.rule](source.deviation * np.random.default_rng(0).normal(size=(n, 10)))
    if source.values:
        whole = whole.clip(-(source.values // 2), source.values // 2)
    return concealed(pd.DataFrame(whole.astype(int), columns=[f"q{a + 1}" for a in range(whole.shape[1])]))


def bounded(place: str, run: Run) -> Iterator[Figure]:
    """Figures 11 and 12: how far Two-phase, and our ways of it, are above the lower bound at most."""
    if not run.built_in:
        return
    for number, case in TABLES.items():
        of_paper = SIZES[case]
        if case.startswith("Occ") != (place == "Figure 11") or of_paper > MOST:
            continue
        kind, n = kind_of(case), taken(case, run) if run.full else 300
        for k in KS if run.full else (3, 10):
            bound = bound_once(kind, n, k)
            key = Key(place, case, k, BOUND, "GCP")
            for method in ways_at(number, k):
                at_table = Key(f"Table {number}", case, k, method, "GCP")
                loss = loss_and_time(run, at_table, kind, n)[0].value
                yield Figure(key._replace(method=method, quantity="LB_Gap"), loss / bound - 1, n)
            yield Figure(key, bound, n)


def unsorted(place: str, run: Run) -> Iterator[Figure]:
    """Tables 19 and 20: what is lost by not sorting before the table is cut, by the paper's number of pieces.

    Ours is cut into the paper's pieces of 100,000 records where the table has at most 1,000,000. The paper's two phases take smaller
    pieces, of one size for all tables, so that the number of pieces alone differs.
    """
    if not run.built_in:
        return
    for case, of_paper in SIZES.items():
        if case.startswith("Occ") != (place == "Table 19") or of_paper == CUT:
            continue
        pieces = of_paper // CUT
        few = pieces if run.full else min(pieces, 12)
        size = SMALL_CUT if run.full else 100
        yield from cut_both_ways(place, case, few, size)


def cut_both_ways(place: str, case: str, pieces: int, cut: int) -> Iterator[Figure]:
    """By how much the loss grows if a table of so many pieces is cut as it is instead of sorted, and the minutes of both."""
    n, k = pieces * cut, KS[0]
    apart = f"pieces of {SMALL_CUT:,}"
    key = Key(place, case, k, f"{WITHOUT}, {apart}", "gap, %")
    in_order, as_it_is = (
        run_once(TWO_PHASE, kind_of(case), n, k, cut, order) for order in ("lexicographic", "input")
    )
    yield Figure(key, 100 * (as_it_is[0] / in_order[0] - 1), n)
    yield Figure(key._replace(quantity="minutes"), as_it_is[1] / 60, n)
    yield Figure(key._replace(method=f"sorted, {apart}", quantity="minutes"), in_order[1] / 60, n)


PARTS: dict[str, Callable[[Run], Iterator[Figure]]] = {
    **{f"Table {number}": partial(compared, number) for number in TABLES},
    "Table 19": partial(unsorted, "Table 19"),
    "Table 20": partial(unsorted, "Table 20"),
    "Figure 11": partial(bounded, "Figure 11"),
    "Figure 12": partial(bounded, "Figure 12"),
    "Section 3.2": in_ways,
    "Section 3.2.1": near_records,
    "Section 4": generators,
}
RECORDS = {
    **{f"Table {number}": SIZES[case] for number, case in TABLES.items()},
    "Table 19": 500_000,
    "Table 20": 10_000_000,
    "Figure 11": 500_000,
    "Figure 12": 10_000_000,
}
"""Records of the paper's largest table where ours may have fewer."""


def why_not(key: Key, records: int | None) -> str:
    """Why a printed number cannot be compared."""
    of_paper = SIZES.get(key.case, 0)
    if key.method in PRINTED_AS:
        return "our way, not the paper's"
    if records is None:
        return "left out to save time"
    if of_paper and records < of_paper:
        return f"{records:,} of {of_paper:,} records"
    return ""


def note(key: Key) -> str:
    """What a verdict has to be read with."""
    return "generated people" if key.case.startswith("Occ") else "numbers as values: see Section 4"


def best(numbers: Numbers, place: str, case: str, quantity: str = "GCP") -> dict[float, float]:
    """The least of our ways of Two-phase at each k."""
    result: dict[float, float] = {}
    for method in OURS:
        for k, value in numbers.curve(place, case, method, quantity).items():
            result[k] = min(value, result.get(k, value))
    return dict(sorted(result.items()))


def runs_alike(numbers: Numbers) -> dict[str, list[str]]:
    """Case -> places of the larger cases that take no more records, so that they rest on the same runs and count once."""
    sizes = {
        figure.key.case: figure.records
        for figure in numbers
        if figure.key.method == NH and figure.key.quantity == "GCP"
    }
    alike: dict[tuple[str, int], list[int]] = {}
    for number, case in TABLES.items():
        if case in sizes:
            alike.setdefault((kind_of(case), sizes[case]), []).append(number)
    return {TABLES[first]: [f"Table {number}" for number in rest] for first, *rest in alike.values()}


def claims(numbers: Numbers, printed: Mapping[Key, str]) -> list[Claim]:
    """What section 4 says of its tables and figures, by the paper's own two phases; the same of ours is marked as ours."""
    same = runs_alike(numbers)
    if not same:
        return []
    results = [claim for case in same for claim in headline_claims(numbers, case, same[case])]
    results += [claim for case in same for claim in trend_claims(numbers, case)]
    gaps = {case: gap_of(numbers, case) for case in same}
    largest = {case: max(gap.values()) for case, gap in gaps.items() if gap}
    if largest:
        most = max(largest, key=lambda case: largest[case])
        text = "the gap exceeds 40 % in some instances"
        measured = f"{largest[most]:.0f} % on {most}"
        results.append(Claim(place_of(most), text, largest[most] > 40, measured, **at_size(numbers, most)))
    results += deviation_claims(numbers)
    losses: dict[float, float] = {}
    occ = [case for case in same if case.startswith("Occ")]
    for case in occ:
        curve = numbers.curve(place_of(case), case, TWO_PHASE)
        losses |= {float(SIZES[case]): curve[KS[0]]} if KS[0] in curve else {}
    complete = len(losses) > 1
    texts = [f"Occ_{n / CUT:.0f}00k {loss:.4g}" for n, loss in losses.items()]
    results.append(
        Claim(
            "Table 12",
            f"more records, less loss (k = {KS[0]})",
            falls(losses) if complete else None,
            ", ".join(texts),
            records=tuple(int(n) for n in losses),
            of_paper=RECORDS["Table 12"],
        )
    )
    for place in ("Table 19", "Table 20"):
        results += cut_claims(numbers, place) if numbers.at_place(place) else []
    for place in ("Figure 11", "Figure 12"):
        results += bound_claims(numbers, place) if numbers.at_place(place) else []
    not_run = "the paper's two phases were not run for it (What was run)"
    return [replace(claim, why=not_run) if claim.holds is None else claim for claim in results]


def place_of(case: str) -> str:
    """The table of a case."""
    return next(f"Table {number}" for number, name in TABLES.items() if name == case)


def gap_of(numbers: Numbers, case: str) -> dict[float, float]:
    """How many percent NH is above the paper's two phases, by k."""
    return numbers.curve(place_of(case), case, BOTH, "gap, %")


def gap_of_ours(numbers: Numbers, case: str) -> dict[float, float]:
    """How many percent NH is above the least of our ways, by k."""
    place = place_of(case)
    ring = numbers.curve(place, case, NH)
    return {k: 100 * (ring[k] / loss - 1) for k, loss in best(numbers, place, case).items() if k in ring}


def at_size(numbers: Numbers, case: str) -> dict[str, Any]:
    """The records that a claim about a case rests on."""
    records = max(figure.records for figure in numbers.at_place(place_of(case)))
    return {"records": (records,), "of_paper": SIZES[case]}


def headline_claims(numbers: Numbers, case: str, same: list[str]) -> list[Claim]:
    """Two-phase loses less than NH."""
    place, gap, own = place_of(case), gap_of(numbers, case), gap_of_ours(numbers, case)
    worse = [k for k, value in gap.items() if value <= 0]
    few = f", run for {at_each(gap)} alone" if 0 < len(gap) < len(numbers.curve(place, case, NH)) else ""
    beside = f"; the same runs as {' and '.join(same)}" if same else ""
    results = [
        Claim(
            place,
            f"Two-phase loses less than NH for every k{few}",
            not worse if gap else None,
            (f"{at_each(gap)}: NH {from_to(gap)} % above it" if gap else "")
            + (f" (below it for k = {listed(worse)})" if worse else "")
            + (beside if gap else ""),
            FEW_CANDIDATES,
            **at_size(numbers, case),
        )
    ]
    if own:
        text, measured = (
            "our best at each k loses less than NH",
            f"{at_each(own)}: NH {from_to(own)} % above it",
        )
        why = "no way of ours is below NH for every k"
        results.append(
            Claim(
                place,
                text,
                min(own.values()) > 0,
                measured + beside,
                why,
                ours=True,
                **at_size(numbers, case),
            )
        )
    return results


def trend_claims(numbers: Numbers, case: str) -> list[Claim]:
    """The gap between NH and Two-phase falls as k grows."""
    place, gap, own = place_of(case), gap_of(numbers, case), gap_of_ours(numbers, case)
    text, size = "the gap falls as k grows", at_size(numbers, case)
    long = len(gap) > 1
    why = "on generated people both losses grow alike with k"
    results = [
        Claim(
            place,
            text,
            not rises(ends(gap)) if long else None,
            f"{spread(gap, 3)} %" if long else "",
            why,
            **size,
        )
    ]
    if len(own) > 1:
        measured = f"{spread(own, 3)} %"
        results.append(Claim(place, text, not rises(ends(own)), measured, why, ours=True, **size))
    return results


def deviation_claims(numbers: Numbers) -> list[Claim]:
    """On large random tables the gap is smaller with the larger deviation."""
    narrow, wide = TABLES[15], TABLES[16]
    text = "on large random tables the gap is smaller with the larger deviation"
    results = []
    for gap_by_k, ours in ((gap_of, False), (gap_of_ours, True)):
        gaps = gap_by_k(numbers, narrow), gap_by_k(numbers, wide)
        pairs = {k: (gaps[0][k], gaps[1][k]) for k in gaps[0] if k in gaps[1]}
        if pairs or not ours:
            results.append(
                Claim(
                    "Table 16",
                    text,
                    all(less > more for less, more in pairs.values()) if pairs else None,
                    ", ".join(
                        f"k = {k:g}: {a:.0f} against {b:.0f} %" for k, (a, b) in ends_of(pairs).items()
                    ),
                    ours=ours,
                )
            )
    return results


def ends_of(pairs: Mapping[float, tuple[float, float]]) -> dict[float, tuple[float, float]]:
    """The first and the last of some pairs."""
    ks = list(pairs)
    return {k: pairs[k] for k in dict.fromkeys((*ks[:1], *ks[-1:]))}


def cut_claims(numbers: Numbers, place: str) -> list[Claim]:
    """What is said of Tables 19 and 20, for the smallest k."""
    figures = [figure for figure in numbers.at_place(place) if figure.key.quantity == "gap, %"]
    results = []
    for name in dict.fromkeys(figure.key.method for figure in figures):
        lost = by_case(figures, name)
        size: dict[str, Any] = {
            "records": tuple(f.records for f in figures if f.key.method == name and f.key.at == KS[0]),
            "of_paper": RECORDS[place],
        }
        measured = ", ".join(f"{case}: {value:.3g} %" for case, value in lost.items())
        grows = [
            lost[few] <= lost[many]
            for few in lost
            for many in lost
            if kind_of(few) == kind_of(many) and SIZES[few] < SIZES[many]
        ]
        few_pieces = "the pieces are smaller than the paper's"
        results.append(
            Claim(place, "without sorting more is lost", min(lost.values()) > 0, measured, few_pieces, **size)
        )
        if grows:
            text = "the more pieces the table is cut into, the more"
            results.append(Claim(place, text, all(grows), measured, few_pieces, **size))
    return results


def by_case(figures: list[Figure], name: str) -> dict[str, float]:
    """The values of a name for the smallest k, by case."""
    return {
        figure.key.case: figure.value
        for figure in figures
        if figure.key.method == name and figure.key.at == KS[0]
    }


def bound_claims(numbers: Numbers, place: str) -> list[Claim]:
    """What is said of Figures 11 and 12: by the paper's two phases, and by the least of ours at each k."""
    cases = numbers.cases(place)
    results = []
    for ours in (False, True):
        above = {
            case: best(numbers, place, case, "LB_Gap")
            if ours
            else numbers.curve(place, case, TWO_PHASE, "LB_Gap")
            for case in cases
        }
        whole = {case: curve for case, curve in above.items() if len(curve) > 1}
        results.append(
            Claim(
                place,
                "the gap to the lower bound grows with k",
                all(rises(ends(curve)) for curve in whole.values()) if whole else None,
                "; ".join(f"{case}: {spread(curve, 2)}" for case, curve in whole.items()),
                "the bound grows with k as fast as the loss does",
                ours=ours,
                **at_sizes(numbers, place, whole),
            )
        )
        results.append(
            below_claim(numbers, place, above, ours) if place == "Figure 11" else wider_claim(above, ours)
        )
    return results


def at_sizes(numbers: Numbers, place: str, curves: Mapping[str, Any]) -> dict[str, Any]:
    """The records that a claim about some cases of a figure rests on, and those of its largest table."""
    records = tuple(max(f.records for f in numbers.at_place(place) if f.key.case == case) for case in curves)
    return {
        "records": records,
        "of_paper": RECORDS[place] if place == "Figure 12" else max(records, default=0),
    }


def below_claim(
    numbers: Numbers, place: str, above: Mapping[str, Mapping[float, float]], ours: bool
) -> Claim:
    """Figure 11: the gap to the bound stays small."""
    curves = {case: curve for case, curve in above.items() if curve}
    most = max((value for curve in curves.values() for value in curve.values()), default=0.0)
    complete = all(KS[-1] in curve for curve in above.values())
    cases: dict[str, list[str]] = {}
    for case, curve in curves.items():
        cases.setdefault(at_each(curve), []).append(case)
    runs = "; ".join(f"{', '.join(names)}: {ks}" for ks, names in cases.items())
    return Claim(
        place,
        "it stays below 0.32 for k up to 10",
        False if most >= 0.32 else True if complete else None,
        f"{most:.2f} at most ({runs})",
        "no way of ours stays below it" if ours else FEW_CANDIDATES,
        ours=ours,
        **at_sizes(numbers, place, curves),
    )


def wider_claim(above: Mapping[str, Mapping[float, float]], ours: bool) -> Claim:
    """Figure 12: with the smaller deviation the gap to the bound is larger."""
    narrow, wide = above.get(TABLES[15], {}), above.get(TABLES[16], {})
    pairs = {k: (narrow[k], wide[k]) for k in narrow if k in wide}
    return Claim(
        "Figure 12",
        "on Random_1m it is larger with sd = 1.0 than with 1.5",
        all(larger > smaller for larger, smaller in pairs.values()) if pairs else None,
        ", ".join(f"k = {k:g}: {a:.2f} against {b:.2f}" for k, (a, b) in ends_of(pairs).items()),
        ours=ours,
        records=(MOST,) if pairs else (),
        of_paper=MOST if pairs else 0,
    )


def at_each(curve: Mapping[float, float]) -> str:
    """The k of a curve as text."""
    ks = sorted(curve)
    if len(ks) > 2 and ks[-1] - ks[0] == len(ks) - 1:
        return f"k = {ks[0]:g} to {ks[-1]:g}"
    return f"k = {listed(ks)}" if ks else "not run"


def from_to(curve: Mapping[float, float]) -> str:
    """The least and the largest value of a curve as text."""
    values = sorted(curve.values())
    texts = dict.fromkeys(f"{value:.3g}" for value in (*values[:1], *values[-1:]))
    return " to ".join(texts)


def sizes(numbers: Numbers) -> pd.DataFrame:
    """What was run of Tables 8 to 18 by the paper's two phases and by *chains alone*, in processor minutes, and hours of the rest.

    The rest are the k that were not run, and the records of the paper that were not taken: minutes per record as on this table for its
    smallest k, or else as on the table of 100,000 records of its kind, and by k as on Table 13 or 14.
    """
    rows = []
    for number, case in TABLES.items():
        place, kind, n = f"Table {number}", kind_of(case), taken(case, Run(full=True))
        by_k = 14 if kind == "1.5" else 13
        of_kind = {"Occ": 8, "1.0": 13, "1.5": 14}[kind]
        for way in (TWO_PHASE, QUICK):
            shape = numbers.curve(f"Table {by_k}", TABLES[by_k], way, "minutes")
            own = numbers.curve(place, case, way, "minutes")
            least = numbers.curve(f"Table {of_kind}", TABLES[of_kind], way, "minutes")[KS[0]] / CUT
            unit = own[KS[0]] / n if KS[0] in own else least
            every = {k: own.get(k, unit * n * shape[k] / shape[KS[0]]) * SIZES[case] / n for k in KS}
            # what takes fewer records than the paper's is not run at its size
            rest = sum(every.values()) - (sum(own.values()) if n == SIZES[case] else 0.0)
            rows.append(
                {
                    "table": number,
                    "case": case,
                    "way": way,
                    "records": f"{n:,}",
                    "k": at_each(own).removeprefix("k = "),
                    "minutes": f"{sum(own.values()):.1f}",
                    "hours of the rest": f"{rest / 60:.1f}",
                }
            )
    return pd.DataFrame(rows).set_index("table")


COMPARED = ((NH, CUT, 3), (TWO_PHASE, CUT, 3), (NH, CUT, 10), (NH, MOST, 3))
"""Method, records and k by which sources are compared with printed numbers; the paper prints no lower bound."""


def fitted(numbers: Numbers, printed: Mapping[Key, str]) -> pd.DataFrame:
    """What each source loses, and by how many percent it is off the printed numbers of Tables 13 to 16 at most.

    Nothing stands where a method was not run.
    """
    theirs = {
        number: {
            run: float(printed[Key(f"Table {number}", case, run[2], run[0], "GCP")])
            for run in COMPARED
            if run[1] == SIZES[case]
        }
        for number, case in TABLES.items()
        if number in (13, 14, 15, 16)
    }
    empty = [None] * (1 + len(theirs))
    rows: list[list[Any]] = [
        [
            f"printed, Tables {small} and {large}",
            *({**theirs[small], **theirs[large]}[run] for run in COMPARED),
            *empty,
        ]
        for small, large in ((13, 15), (14, 16))
    ]
    for source in SOURCES:
        own = {
            (method, n, k): numbers.curve("Section 4", f"{source}, {n:,} records", method).get(k)
            for method, n, k in (*COMPARED, (BOUND, CUT, 3))
        }
        off = []
        for values in theirs.values():
            pairs = [(own[run], value) for run, value in values.items()]
            apart = [100 * abs(mine / value - 1) for mine, value in pairs if mine is not None]
            off.append(max(apart) if apart else None)
        rows.append([str(source), *own.values(), *off])
    names = [f"{method}, {n:,}, k = {k}" for method, n, k in (*COMPARED, (BOUND, CUT, 3))]
    text = [[row[0], *("" if value is None else f"{value:.3g}" for value in row[1:])] for row in rows]
    columns = ["source", *names, *(f"off Table {number}, %" for number in theirs)]
    return pd.DataFrame(text, columns=columns).set_index("source")


def pieces_of_paper(printed: Mapping[Key, str]) -> pd.DataFrame:
    """What 100,000 records of each random table lose by the printed numbers: a table's loss, more by what it loses unsorted.

    A table that is cut as it is loses what its pieces of 100,000 records lose on average; if the paper's tables of one deviation are
    drawn alike, that is the loss of its table of 100,000.
    """
    rows = {}
    for tables in ((13, 15, 17), (14, 16, 18)):
        for number in tables:
            losses = []
            for k in KS:
                key = Key(f"Table {number}", TABLES[number], k, TWO_PHASE, "GCP")
                gap = printed.get(Key("Table 20", TABLES[number], k, WITHOUT, "gap, %"), "0")
                losses.append(f"{float(printed[key]) * (1 + float(gap) / 100):.3f}")
            rows[f"Table {number}, {TABLES[number]}"] = losses
    return pd.DataFrame.from_dict(rows, orient="index", columns=[f"k = {k}" for k in KS])
