"""Tables for pattern-guided methods, the numbers that Bredereck and others (2013) print, and their scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import anonflow as af
from anonflow import datasets
from anonflow.algorithms.patterns.language import pattern_set
from anonflow.table import Table
from anonflow.table.domain import Domain

MEASURES = ["usefulness", "row-types", "average-class-size", "max-class-size", "stars"]


ADULT_NUMBERS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]


# those of Table 7; in Table 4 all columns are words
CMC_NUMBERS = ["wife_age", "children_born"]


# k: usefulness, number, average size and maximum size of the output row types
TABLE_1 = {
    2: (2.062, 14_589, 2.232, 16),
    3: (2.290, 9_208, 3.536, 18),
    4: (2.470, 6_670, 4.882, 25),
    5: (2.615, 5_199, 6.263, 31),
    6: (2.738, 4_315, 7.546, 42),
    7: (2.851, 3_669, 8.875, 53),
    8: (2.942, 3_193, 10.198, 53),
    9: (3.026, 2_832, 11.498, 52),
    10: (3.106, 2_559, 12.724, 56),
    25: (3.840, 1_046, 31.129, 161),
    50: (4.462, 537, 60.635, 317),
    75: (4.873, 354, 91.980, 317),
    100: (5.151, 274, 118.836, 317),
}


TABLE_3 = {
    2: (3.200, 4_320, 3.000, 3),
    3: (3.200, 4_320, 3.000, 3),
    4: (3.283, 3_240, 4.000, 4),
    5: (3.333, 2_592, 5.000, 5),
    6: (3.867, 1_440, 9.000, 9),
    7: (3.867, 1_440, 9.000, 9),
    8: (3.867, 1_440, 9.000, 9),
    9: (3.867, 1_440, 9.000, 9),
    10: (3.950, 1_080, 12.000, 12),
    25: (4.533, 480, 27.000, 27),
    50: (4.750, 216, 60.000, 60),
    75: (4.833, 162, 80.000, 80),
    100: (5.283, 120, 108.000, 108),
}


TABLE_6 = {k: 12_960 if k <= 5 else 25_920 if k <= 10 else 51_840 if k == 100 else 38_880 for k in TABLE_3}


# k: suppressions of the heuristic and of the integer program
TABLE_7 = {
    2: (4_112, 2_932),
    3: (6_564, 5_216),
    4: (8_252, 7_024),
    5: (8_952, 8_065),
    6: (9_821, 9_012),
    7: (10_339, 9_751),
    8: (10_878, 10_254),
    9: (11_486, 11_051),
    10: (11_678, 11_462),
    25: (13_722, 13_722),
    50: (14_314, 14_314),
    75: (14_730, 14_730),
    100: (14_730, 14_730),
}


# k: suppressions of the heuristic and of the integer program
TABLE_8 = {
    2: (38_312, 29_056),
    3: (55_749, 43_887),
    4: (67_618, 54_162),
    5: (76_363, 61_701),
    6: (83_598, 68_278),
    7: (89_501, 74_160),
    8: (94_086, 79_109),
    9: (98_999, 84_065),
    10: (103_624, 88_026),
    25: (141_697, 125_233),
    50: (173_947, 161_083),
    75: (196_218, 185_870),
    100: (207_417, 197_421),
}


@cache
def nursery() -> Table:
    frame = datasets.nursery().iloc[:, :8]
    return Table(frame, {c: {"role": "quasi-identifier", "kind": "categorical"} for c in frame.columns})


ADULT_2 = ("age", "workclass", "education", "marital", "occupation", "race", "sex", "country", "salary")


SCENARIO = {
    "at-most": 2,
    "never": ["education", "salary"],
    "together": ["workclass", "occupation"],
    "at-most-one-of": ["age", "sex", "race"],
    "fallback": "all",
}


# the scenario's patterns in an order that gives the heuristic's column of Table 8; with race and sex exchanged it does, too,
# and none else of those that test_pattern_guided.py tries
SCENARIO_IN_ORDER = [
    [],
    ["country"],
    ["marital"],
    ["age"],
    ["race"],
    ["sex"],
    ["country", "marital"],
    ["workclass", "occupation"],
    ["country", "age"],
    ["marital", "age"],
    ["country", "race"],
    ["marital", "race"],
    ["country", "sex"],
    ["marital", "sex"],
    list(ADULT_2),
]


def table(frame: pd.DataFrame) -> Table:
    return Table(frame, {name: {"role": "quasi-identifier", "kind": "categorical"} for name in frame.columns})


def best(
    rows: list[tuple[str, ...]], k: int, patterns: list[str], weights: list[int], strict: bool = False
) -> int | None:
    """The least cost of all ways to give each row a pattern or to suppress it; strict: a pattern, if there is a way."""
    least = None
    for chosen in product(patterns if strict else [None, *patterns], repeat=len(rows)):
        kept = [
            None if p is None else (p, tuple(c for c, mark in zip(row, p, strict=True) if mark == "0"))
            for row, p in zip(rows, chosen, strict=True)
        ]
        if all(each is None or kept.count(each) >= k for each in kept):
            cost = sum(
                sum(w for w, mark in zip(weights, p or "1" * len(weights), strict=True) if mark == "1")
                for p in chosen
            )
            least = cost if least is None else min(least, cost)
    return least


@cache
def nursery_to_suppress() -> af.Table:
    frame = datasets.nursery(classification=False)
    return af.Table(frame, {name: {"role": "quasi-identifier", "kind": "suppression"} for name in frame})


@cache
def adult_to_suppress() -> af.Table:
    frame = datasets.adult().drop(columns="fnlwgt")
    return af.Table(frame, {name: {"role": "quasi-identifier", "kind": "suppression"} for name in frame})


@cache
def cmc_to_suppress() -> af.Table:
    frame = datasets.cmc()
    return af.Table(frame, {name: {"role": "quasi-identifier", "kind": "suppression"} for name in frame})


@cache
def adult_2_to_suppress() -> af.Table:
    frame = adult_2()
    return af.Table(frame, {name: {"role": "quasi-identifier", "kind": "suppression"} for name in frame})


def every_row_follows(patterns: Mapping[str, Any], columns: Sequence[str]) -> list[Any]:
    """The problem of the integer program: hiding everything is a pattern, and needs k rows as any other."""
    return [{**patterns, "fallback": "strict"}, list(columns)]


def scenario(name: str) -> tuple[Table, Any]:
    if name == "cmc":
        return table(datasets.cmc()), {"at-most": 2, "fallback": "all"}
    return table(adult_2()), SCENARIO


def adult_2() -> pd.DataFrame:
    frame = datasets.adult()[
        [
            "age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country",
            "salary-class",
        ]
    ]  # fmt: skip
    return frame.set_axis(list(ADULT_2), axis=1)


def pattern_masks(
    domains: Sequence[Domain], patterns: Any = "all", weights: Any = None, fallback: Any = None
) -> np.ndarray:
    """Patterns of suppression: bit a is set where quasi-identifier a is suppressed."""
    return pattern_set(domains, patterns, weights, fallback).masks
