"""What the workbooks of `notebooks/papers` are made of: figures, their printed twins, claims and verdicts."""

from __future__ import annotations

import csv
import math
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import anonflow as af
from anonflow.algorithms.anonymize import Anonymization
from anonflow.release import SeedWarning

TIMES = ("seconds", "minutes", "of NH's time")
"""Quantities that are never compared, nor shown where a workbook's output is checked."""


class Key(NamedTuple):
    """Where a number stands: `at` is what runs along the table or the axis, mostly k."""

    place: str
    case: str
    at: float
    method: str
    quantity: str


@dataclass(frozen=True)
class Figure:
    """A number that anonflow gave, and the number of records it was computed on."""

    key: Key
    value: float
    records: int

    def to_json(self) -> dict[str, Any]:
        """As it is stored: nine digits, times three."""
        digits = 3 if self.key.quantity in TIMES else 9
        return {**self.key._asdict(), "value": float(f"{self.value:.{digits}g}"), "records": self.records}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Figure:
        """What was stored."""
        return cls(Key(*(stored[name] for name in Key._fields)), stored["value"], stored["records"])


class Numbers:
    """Figures by key, and curves of them."""

    def __init__(self, figures: Iterable[Figure]) -> None:
        self.by_key = {figure.key: figure for figure in figures}

    def __iter__(self) -> Iterator[Figure]:
        return iter(self.by_key.values())

    def __len__(self) -> int:
        return len(self.by_key)

    def curve(self, place: str, case: str, method: str, quantity: str = "GCP") -> dict[float, float]:
        """The values by what runs along the axis, ascending."""
        return dict(sorted(self._curves.get((place, case, method, quantity), {}).items()))

    @cached_property
    def _curves(self) -> dict[tuple[str, str, str, str], dict[float, float]]:
        """All curves, by place, case, method and quantity."""
        curves: dict[tuple[str, str, str, str], dict[float, float]] = {}
        for key, figure in self.by_key.items():
            curves.setdefault((key.place, key.case, key.method, key.quantity), {})[key.at] = figure.value
        return curves

    def at_place(self, place: str) -> Numbers:
        """Those of one table or figure."""
        return Numbers(figure for figure in self if figure.key.place == place)

    def cases(self, place: str) -> list[str]:
        """The cases of a table or figure, in order of appearance."""
        return list(dict.fromkeys(key.case for key in self.by_key if key.place == place))

    def methods(self, place: str, case: str) -> list[str]:
        """The methods of a case, in order of appearance."""
        return list(
            dict.fromkeys(key.method for key in self.by_key if (key.place, key.case) == (place, case))
        )


@dataclass(frozen=True)
class Run:
    """What is asked for: full or small, on tables that anyone can make, on real ones.

    `stored` are numbers of an earlier full run that need not be measured again; a paper's module may ignore them.
    """

    full: bool
    built_in: bool = True
    real: bool = False
    stored: Numbers = field(default_factory=lambda: Numbers([]))


@dataclass(frozen=True)
class Claim:
    """What a paper says of a figure, and whether it is so here; None where nothing was measured.

    `ours` marks a statement that the paper does not make: it is shown and not counted. `records` are the most records
    that the claim rests on, for each method and k where they differ, `of_paper` are the paper's; where a claim states
    none, the records at its place count. `reading` names another reading of the paper under which the claim is judged; empty is the
    paper's.
    """

    place: str
    says: str
    holds: bool | None
    measured: str
    why: str = ""
    timing: bool = False
    ours: bool = False
    records: tuple[int, ...] = ()
    of_paper: int = 0
    reading: str = ""

    @property
    def reduced(self) -> bool:
        """Whether some comparison has fewer records than the paper's."""
        return any(records < self.of_paper for records in self.records)

    @property
    def size(self) -> str:
        """The records as text: `64,000`, or `4,000 to 32,000 of 64,000` where some are fewer than the paper's."""
        if not self.records:
            return ""
        ends = dict.fromkeys(f"{records:,}" for records in (min(self.records), max(self.records)))
        return " to ".join(ends) + (f" of {self.of_paper:,}" if self.reduced else "")


def printed(path: Path) -> dict[Key, str]:
    """The numbers of a paper as they are printed, by where they stand."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    results = {
        Key(row["place"], row["case"], float(row["at"]), row["method"], row["quantity"]): row["value"]
        for row in rows
    }
    assert len(results) == len(rows), f"{path.name} has a number twice"
    return results


def verdict(number: str, value: float, why_not: str = "") -> str:
    """How near a value is to a printed number.

    `equal` when it rounds to what is printed (a tie does not), else within so many percent (up to 50), else `same order` of
    magnitude (up to a factor of 10), else `differs`. With a reason: not comparable, and the reason.
    """
    if why_not:
        return f"not comparable: {why_not}"
    expected = float(number)
    decimals = len(number.partition(".")[2])
    if abs(value - expected) < 0.5 * 10**-decimals * (1 - 1e-6):
        return "equal"
    if expected == 0:
        return "differs"
    apart = abs(value / expected - 1)
    if apart <= 0.5:
        return f"within {math.ceil(100 * apart - 1e-9)} %"
    return "same order" if 0.1 <= value / expected <= 10 else "differs"


def timed_run(table: af.Table, method: str, k: int, **options: Any) -> tuple[Anonymization, float]:
    """A run, and its seconds of processor time."""
    options = {"partition_size": None, **options}
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeedWarning)  # measured, never published
        anon = af.anonymize(table, method, k, seed=options.pop("seed", 1), **options)
    return anon, time.process_time() - start


def rises(curve: dict[float, float]) -> bool:
    """Whether a curve never falls."""
    values = list(curve.values())
    return values == sorted(values)


def falls(curve: dict[float, float]) -> bool:
    """Whether a curve never rises."""
    values = list(curve.values())
    return values == sorted(values, reverse=True)


def ends(curve: dict[float, float]) -> dict[float, float]:
    """The first and the last value of a curve."""
    ats = list(curve)
    return {at: curve[at] for at in (*ats[:1], *ats[-1:])}


def spread(curve: dict[float, float], digits: int = 4) -> str:
    """The first and the last value of a curve, as text."""
    values = [*curve.values()]
    return f"{values[0]:.{digits}g} to {values[-1]:.{digits}g}" if values else "nothing"


def listed(ats: Iterable[float]) -> str:
    """Places on an axis as text: `8, 9, 10`."""
    return ", ".join(f"{at:,.6g}" for at in ats)


def below(lower: dict[float, float], upper: dict[float, float]) -> list[float]:
    """Where both curves have a value and the first is not the smaller one."""
    return [at for at in lower if at in upper and not lower[at] < upper[at]]
