"""Paper 5 (pattern-guided k-anonymity), sections 3.5 and 3.6: Tables 1, 3 and 6.

The others have no numbers in our copy. Mondrian is another implementation there, so its columns are orientation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import anonflow as af
from tests.benchmarks.measuring import data_folder
from tests.cases.patterns import ADULT_NUMBERS, MEASURES, TABLE_1, adult_to_suppress, nursery_to_suppress
from tests.papers.figures import Claim, Figure, Key, Numbers, Run, listed, made, spread

KS = tuple(TABLE_1)
NAMES = {
    "usefulness": "usefulness",
    "row-types": "output row types",
    "average-class-size": "average size",
    "max-class-size": "maximum size",
    "stars": "suppressions",
}
HEURISTIC, PROGRAM = "pattern-guided", "integer program"
ACROSS: dict[str, str] = {}


def measured(
    place: str, case: str, method: str, table: af.Table, k: int, numeric: list[str], **options: object
) -> Iterator[Figure]:
    """The paper's measures of one run, and its seconds."""
    algorithm = {HEURISTIC: HEURISTIC, "Mondrian": "mondrian", PROGRAM: "pattern-guided-optimal"}[method]
    anon, taken = made(table, algorithm, k, **options)
    key = Key(place, case, k, method, "")
    found = af.measure(
        table, anon, [name for name in MEASURES if name != "stars" or place == "Table 6"], numeric=numeric
    )
    for name, value in found.items():
        yield Figure(key._replace(quantity=NAMES[name]), float(value), table.n)
    yield Figure(key._replace(quantity="seconds"), taken, table.n)


def ranges(table: af.Table, numeric: list[str]) -> af.Table:
    """A table for Mondrian: numbers and sets instead of suppression."""
    kinds = {name: "numeric" if name in numeric else "categorical" for name in table.frame.columns}
    return af.Table(
        table.frame, {name: {"role": "quasi-identifier", "kind": kind} for name, kind in kinds.items()}
    )


def table_1(run: Run) -> Iterator[Figure]:
    """Adult, the heuristic and Mondrian."""
    if not run.real or data_folder() is None:
        return
    free = adult_to_suppress()
    frame = free.frame.copy()
    cut = ranges(af.Table(frame, free.schema), ADULT_NUMBERS)
    for k in KS if run.full else (10,):
        yield from measured("Table 1", "Adult", HEURISTIC, free, k, ADULT_NUMBERS)
        yield from measured("Table 1", "Adult", "Mondrian", cut, k, ADULT_NUMBERS)


def table_3(run: Run) -> Iterator[Figure]:
    """Nursery, the heuristic and Mondrian."""
    if not run.built_in:
        return
    cut = ranges(nursery_to_suppress(), [])
    for k in KS:
        yield from measured("Table 3", "Nursery", HEURISTIC, nursery_to_suppress(), k, [])
        yield from measured("Table 3", "Nursery", "Mondrian", cut, k, [])


def table_6(run: Run) -> Iterator[Figure]:
    """Nursery, the heuristic and the integer program."""
    if not run.built_in:
        return
    for k in KS:
        yield from measured("Table 6", "Nursery", HEURISTIC, nursery_to_suppress(), k, [])
    for k in KS if run.full else (2, 10, 100):
        yield from measured(
            "Table 6", "Nursery", PROGRAM, nursery_to_suppress(), k, [], patterns="all", time_limit=60
        )


PARTS = {"Table 1": table_1, "Table 3": table_3, "Table 6": table_6}


def why_not(key: Key, records: int | None) -> str:
    """Why a printed number cannot be compared."""
    return "needs Adult" if records is None else ""


def said_of(ks: Sequence[float]) -> str:
    """Some of the paper's k, as text."""
    return "every k" if len(ks) == len(KS) else f"k = {listed(ks)}" if ks else "no k"


def _other(key: Key) -> bool:
    return key.method == PROGRAM and key.quantity != "suppressions"


def note(key: Key) -> str:
    """What a verdict has to be read with."""
    return "another Mondrian" if key.method == "Mondrian" else "one of many optima" if _other(key) else ""


def claims(numbers: Numbers, printed: Mapping[Key, str]) -> list[Claim]:
    """What sections 3.5 and 3.6 say of these tables."""
    found = []
    other = "our Mondrian publishes tight ranges and sets and is another implementation than the paper's"
    for place, case in (("Table 1", "Adult"), ("Table 3", "Nursery")):
        for quantity in ("usefulness", "average size", "maximum size"):
            key = Key(place, case, 0, "", quantity)
            before = {
                k: [float(printed[key._replace(at=k, method=name)]) for name in (HEURISTIC, "Mondrian")]
                for k in KS
            }
            said = [k for k, (ours, theirs) in before.items() if ours <= theirs]
            pair = [numbers.curve(place, case, name, quantity) for name in (HEURISTIC, "Mondrian")]
            here = [k for k in pair[0] if pair[0][k] <= pair[1][k]]
            found.append(
                Claim(
                    place,
                    f"{quantity}: the heuristic is at least as good as Mondrian for {said_of(said)} (as printed)",
                    here == said if pair[0] else None,
                    f"for {said_of(here)}" if pair[0] else "",
                    other if pair[0] else "needs Adult",
                )
            )
    cost = numbers.curve("Table 6", "Nursery", HEURISTIC, "suppressions")
    least = numbers.curve("Table 6", "Nursery", PROGRAM, "suppressions")
    found.append(
        Claim(
            "Table 6",
            "the heuristic's suppressions are optimal for every k",
            cost == least if least else None,
            f"{spread(cost, 6)}, the integer program the same" if cost == least else "not for every k",
        )
    )
    key = Key("Table 6", "Nursery", 0, "", "average size")
    sizes = {
        k: [float(printed[key._replace(at=k, method=name)]) for name in (HEURISTIC, PROGRAM)] for k in KS
    }
    said = [k for k, (ours, theirs) in sizes.items() if theirs > ours]
    pair = [numbers.curve("Table 6", "Nursery", name, "average size") for name in (HEURISTIC, PROGRAM)]
    here = [k for k in pair[0] if pair[1][k] > pair[0][k] * (1 + 1e-9)]
    found.append(
        Claim(
            "Table 6",
            f"with as few suppressions the integer program has larger classes for {said_of(said)} (as printed)",
            here == said,
            f"for {said_of(here)}",
            "optima are many; ours is searched for from the heuristic's, and has its classes",
        )
    )
    for place, case, method in (("Table 1", "Adult", "Mondrian"), ("Table 6", "Nursery", PROGRAM)):
        ours = numbers.curve(place, case, HEURISTIC, "seconds")
        theirs = numbers.curve(place, case, method, "seconds")
        if ours:
            fewest = min(theirs[k] / ours[k] for k in ours)
            words = (
                "faster than Mondrian" if method == "Mondrian" else "at least 25 times as fast as the program"
            )
            found.append(
                Claim(
                    place,
                    f"the heuristic is {words}" + (" up to k = 50" if method == "Mondrian" else ""),
                    fewest > (1 if method == "Mondrian" else 25),
                    f"the other takes {fewest:.2g} times as long at least",
                    other if method == "Mondrian" else "ours proves the heuristic optimal by the relaxation",
                    timing=True,
                )
            )
    return found
