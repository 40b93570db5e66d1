"""Paper 2 (low information loss), section 4: Tables 8 to 20, Figures 11 and 12.

Values are concealed, never generalized in steps, as there: every QI is of kind suppression. CENSUS is not to be
had: census-like people are generated. The random tables are the paper's but for the draw and for how a
number becomes a value, which it does not say: ours are rounded to whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

import pandas as pd

import anonflow as af
from anonflow.utility.bounds import lower_bound
from tests.papers.figures import Claim, Figure, Key, Numbers, Run, made

KS = tuple(range(3, 11))
NH, TWO_PHASE, BOTH = "NH", "two-phase", "NH against two-phase"
SIZES = {
    **{f"Occ_{size}00k": size * 100_000 for size in range(1, 6)},
    **{
        f"Random_{word}, sd = {sd}": n
        for word, n in (("100k", 100_000), ("1m", 1_000_000), ("10m", 10_000_000))
        for sd in (1.0, 1.5)
    },
}
TABLES = dict(zip(range(8, 19), SIZES))
WHOLE = {8: (3, 10), 13: (3, 10), 14: (3, 10)}
"""Where Two-phase runs on as many records as in the paper, and for which k; ten passes of its second phase."""
SHORT = {"passes": 10}
ACROSS: dict[str, str] = {}


@cache
def table(case: str, n: int) -> af.Table:
    """n records of the kind of one of the paper's tables."""
    if case.startswith("Occ"):
        frame: pd.DataFrame = af.datasets.census_like(n, seed=1).drop(columns="Salary-class")
    else:
        frame = af.datasets.random_normal(n, 10, sd=float(case.rpartition(" ")[2]), seed=0)
    return concealed(frame)


def concealed(frame: pd.DataFrame) -> af.Table:
    """A table whose values are published or concealed."""
    return af.Table(
        frame, {name: {"role": "quasi-identifier", "kind": "suppression"} for name in frame.columns}
    )


def pair(place: str, case: str, people: af.Table, k: int, both: bool = True) -> Iterator[Figure]:
    """NH and Two-phase, and the gap between them in percent."""
    key = Key(place, case, k, NH, "GCP")
    ring, taken = made(people, "nh", k)
    yield Figure(key, ring.loss("gcp"), people.n)
    yield Figure(key._replace(quantity="seconds"), taken, people.n)
    if both:
        key = key._replace(method=TWO_PHASE)
        anon, taken = made(people, "two-phase", k, **SHORT)
        yield Figure(key, anon.loss("gcp"), people.n)
        yield Figure(key._replace(quantity="minutes"), taken / 60, people.n)
        gap = 100 * (ring.loss("gcp") / anon.loss("gcp") - 1)
        yield Figure(key._replace(method=BOTH, quantity="gap, %"), gap, people.n)


def compared(number: int, run: Run) -> Iterator[Figure]:
    """Tables 8 to 18: NH and Two-phase by k."""
    if not run.built_in:
        return
    place, case = f"Table {number}", TABLES[number]
    of_paper = SIZES[case]
    for k in KS if run.full else (3, 10):
        if not run.full:
            yield from pair(place, case, table(case, min(600, 100 * of_paper // 100_000)), k)
        elif k in WHOLE.get(number, ()):
            yield from pair(place, case, table(case, of_paper), k)
        elif number <= 12 or of_paper == 100_000:
            # one twentieth of the paper's records
            yield from pair(place, case, table(case, of_paper // 20), k)
        elif of_paper == 1_000_000 and k in (3, 10):
            yield from pair(place, case, table(case, of_paper), k, both=False)


def bounded(place: str, run: Run) -> Iterator[Figure]:
    """Figures 11 and 12: how far Two-phase is above the lower bound at most."""
    if not run.built_in:
        return
    for case, of_paper in SIZES.items():
        if case.startswith("Occ") != (place == "Figure 11") or of_paper == 10_000_000:
            continue
        n = {100_000: 5_000, 1_000_000: 20_000}.get(of_paper, of_paper // 20) if run.full else 300
        people = table(case, n)
        for k in (3, 6, 10) if run.full else (3, 10):
            bound = lower_bound(people.records, k)
            assert bound
            anon, _ = made(people, "two-phase", k, **SHORT)
            key = Key(place, case, k, TWO_PHASE, "LB_Gap")
            yield Figure(key, anon.loss("gcp") / bound - 1, n)
            yield Figure(key._replace(method="bound", quantity="GCP"), bound, n)


def unsorted(place: str, run: Run) -> Iterator[Figure]:
    """Tables 19 and 20: what is lost by not sorting before the table is cut, by the paper's number of pieces."""
    if not run.built_in:
        return
    for case, of_paper in SIZES.items():
        if case.startswith("Occ") != (place == "Table 19") or of_paper == 100_000:
            continue
        pieces = of_paper // 100_000
        size = (1_000 if pieces < 100 else 100) if run.full else 100
        people = table(case, (pieces if run.full else min(pieces, 5)) * size)
        for k in (3, 10) if run.full else (3,):
            along = [
                made(people, "two-phase", k, partition_size=size, order=order, **SHORT)[0].loss("gcp")
                for order in ("lexicographic", "input")
            ]
            key = Key(place, case, k, "without sorting", "gap, %")
            yield Figure(key, 100 * (along[1] / along[0] - 1), people.n)


PARTS = {
    **{f"Table {number}": lambda run, number=number: compared(number, run) for number in TABLES},
    "Table 19": lambda run: unsorted("Table 19", run),
    "Table 20": lambda run: unsorted("Table 20", run),
    "Figure 11": lambda run: bounded("Figure 11", run),
    "Figure 12": lambda run: bounded("Figure 12", run),
}


def why_not(key: Key, records: int | None) -> str:
    """Why a printed number cannot be compared."""
    of_paper = SIZES.get(key.case, 0)
    if records is None:
        if of_paper == 10_000_000:
            return "10,000,000 records take hours"
        return (
            "Two-phase takes hours on 1,000,000 records" if of_paper == 1_000_000 else "left out to save time"
        )
    if of_paper and records < of_paper:
        return f"{records:,} of {of_paper:,} records"
    return ""


def claims(numbers: Numbers, printed: Mapping[Key, str]) -> list[Claim]:
    """What the paper says of its figures."""
    return []
