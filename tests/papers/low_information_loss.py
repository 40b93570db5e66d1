"""Paper 2 (low information loss), section 4: Tables 8 to 20, Figures 11 and 12.

Values are concealed, never generalized in steps, as there: every QI is of kind suppression. CENSUS is not to be
had: census-like people are generated. The random tables are the paper's but for the draw and for how a
number becomes a value, which it does not say: ours are rounded to whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache, partial

import pandas as pd

import anonflow as af
from anonflow.utility.bounds import lower_bound
from tests.papers.figures import Claim, Figure, Key, Numbers, Run, ends, falls, made, rises, spread

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
WHOLE = {13: (3,)}
"""Tables for which Two-phase runs on as many records as in the paper, and for which k."""
SCALE, BOUND_SCALE = 100, 400
"""The other tables have one record for so many of the paper's."""
PASSES = 10
"""Of Two-phase's second phase."""
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


@cache
def run_once(method: str, case: str, n: int, k: int) -> tuple[float, float]:
    """GCP and seconds of a method."""
    options = {"start": "dense", "passes": PASSES} if method == "two-phase" else {}
    anon, taken = made(table(case, n), method, k, **options)
    return anon.loss("gcp"), taken


def compared(number: int, run: Run) -> Iterator[Figure]:
    """Tables 8 to 18: NH and Two-phase by k, and the gap between them in percent."""
    place, case = f"Table {number}", TABLES[number]
    of_paper = SIZES[case]
    if not run.built_in or (run.full and of_paper == 10_000_000):
        return
    for k in KS if run.full else (3, 10):
        n = of_paper // SCALE if run.full else min(600, of_paper // 1_000)
        if run.full and number in WHOLE:
            n = of_paper
        if run.full and k not in WHOLE.get(number, (3, 10) if of_paper == 1_000_000 else KS):
            continue
        key = Key(place, case, k, NH, "GCP")
        ring, taken = run_once("nh", case, n, k)
        loss, longer = run_once("two-phase", case, n, k)
        yield Figure(key, ring, n)
        yield Figure(key._replace(quantity="seconds"), taken, n)
        yield Figure(key._replace(method=TWO_PHASE), loss, n)
        yield Figure(key._replace(method=TWO_PHASE, quantity="minutes"), longer / 60, n)
        yield Figure(key._replace(method=BOTH, quantity="gap, %"), 100 * (ring / loss - 1), n)


def bounded(place: str, run: Run) -> Iterator[Figure]:
    """Figures 11 and 12: how far Two-phase is above the lower bound at most."""
    if not run.built_in:
        return
    for case, of_paper in SIZES.items():
        if case.startswith("Occ") != (place == "Figure 11") or of_paper == 10_000_000:
            continue
        n = 1_000 + of_paper // BOUND_SCALE if run.full else 300
        for k in KS if run.full and of_paper < 1_000_000 else (3, 10):
            bound = lower_bound(table(case, n).records, k)
            assert bound
            key = Key(place, case, k, TWO_PHASE, "LB_Gap")
            yield Figure(key, run_once("two-phase", case, n, k)[0] / bound - 1, n)
            yield Figure(key._replace(method="lower bound", quantity="GCP"), bound, n)


def unsorted(place: str, run: Run) -> Iterator[Figure]:
    """Tables 19 and 20: what is lost by not sorting before the table is cut, by the paper's number of pieces."""
    if not run.built_in:
        return
    for case, of_paper in SIZES.items():
        if case.startswith("Occ") != (place == "Table 19") or of_paper == 100_000:
            continue
        pieces = of_paper // 100_000
        size = (100 if pieces < 100 else 70) if run.full else 100
        people = table(case, (pieces if run.full else min(pieces, 5)) * size)
        for k in (3, 10) if run.full and pieces < 100 else (3,):
            along = [
                made(people, "two-phase", k, partition_size=size, order=order, start="dense", passes=PASSES)[
                    0
                ].loss("gcp")
                for order in ("lexicographic", "input")
            ]
            key = Key(place, case, k, "without sorting", "gap, %")
            yield Figure(key, 100 * (along[1] / along[0] - 1), people.n)


PARTS = {
    **{f"Table {number}": partial(compared, number) for number in TABLES},
    "Table 19": partial(unsorted, "Table 19"),
    "Table 20": partial(unsorted, "Table 20"),
    "Figure 11": partial(bounded, "Figure 11"),
    "Figure 12": partial(bounded, "Figure 12"),
}


def why_not(key: Key, records: int | None) -> str:
    """Why a printed number cannot be compared."""
    of_paper = SIZES.get(key.case, 0)
    if records is None:
        if of_paper == 10_000_000:
            return "10,000,000 records take hours"
        return "left out to save time"
    if of_paper and records < of_paper:
        return f"{records:,} of {of_paper:,} records"
    return ""


def note(key: Key) -> str:
    """What a verdict has to be read with."""
    return "generated people" if key.case.startswith("Occ") else "another draw"


def claims(numbers: Numbers, printed: Mapping[Key, str]) -> list[Claim]:
    """What section 4 says of its tables and figures."""
    gaps = {case: numbers.curve(f"Table {number}", case, BOTH, "gap, %") for number, case in TABLES.items()}
    gaps = {case: gap for case, gap in gaps.items() if gap}
    if not gaps:
        return []
    places = {case: f"Table {number}" for number, case in TABLES.items()}
    found = [
        Claim(
            places[case],
            "Two-phase loses less than NH for every k",
            min(gap.values()) > 0,
            f"NH {min(gap.values()):.0f} to {max(gap.values()):.0f} % above it",
        )
        for case, gap in gaps.items()
    ]
    found += [
        Claim(
            places[case],
            "the gap falls as k grows",
            not rises(ends(gap)),
            f"{spread(gap, 3)} %",
            "on tables of some thousand people the gap hardly depends on k",
        )
        for case, gap in gaps.items()
        if len(gap) > 1
    ]
    occ = [numbers.curve(places[case], case, TWO_PHASE)[10] for case in gaps if case.startswith("Occ")]
    found.append(
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
        found.append(
            Claim(
                place,
                "without sorting more is lost",
                all(min(curve.values()) > 0 for curve in lost.values()),
                "; ".join(f"{case}: {spread(curve, 3)} %" for case, curve in lost.items()),
            )
        )
        pieces = [max(lost[case].values()) for case in cases if "1.5" not in case]
        found.append(
            Claim(
                place,
                "the more pieces the table is cut into, the more",
                pieces == sorted(pieces),
                " to ".join(f"{value:.3g} %" for value in (pieces[0], pieces[-1])),
            )
        )
    for place in ("Figure 11", "Figure 12"):
        above = {case: numbers.curve(place, case, TWO_PHASE, "LB_Gap") for case in numbers.cases(place)}
        found.append(
            Claim(
                place,
                "the gap to the lower bound grows with k",
                all(rises(ends(curve)) for curve in above.values()),
                "; ".join(f"{case}: {spread(curve, 2)}" for case, curve in above.items()),
                "of tables this small any release conceals most, and so does the bound",
            )
        )
        if place == "Figure 11":
            most = max(max(curve.values()) for curve in above.values())
            said = "it stays below 0.32 for k up to 10"
            found.append(Claim(place, said, most < 0.32, f"{most:.2f} at most"))
        else:
            wide = {sd: above[f"Random_1m, sd = {sd}"][10] for sd in ("1.0", "1.5")}
            here = f"k = 10: {wide['1.0']:.2f} against {wide['1.5']:.2f}"
            said = "on Random_1m it is larger with sd = 1.0 than with 1.5"
            found.append(Claim(place, said, wide["1.0"] > wide["1.5"], here))
    return found
