"""Tables with boundaries, and the plain data that they were made of."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import anonflow as af
from anonflow import datasets
from anonflow.table import Table
from tests.naive import boundaries as naive

COUNTRIES = {
    "America": {
        "North-America": ["United-States", "Canada", "Outlying-US(Guam-USVI-etc)"],
        "Middle-America": [
            "Cuba", "Dominican-Republic", "El-Salvador", "Guatemala", "Haiti", "Honduras", "Jamaica", "Mexico",
            "Nicaragua", "Puerto-Rico", "Trinadad&Tobago",
        ],
        "South-America": ["Columbia", "Ecuador", "Peru"],
    },
    "Asia": {
        "East-Asia": ["China", "Hong", "Japan", "Taiwan"],
        "South-Asia": ["Cambodia", "India", "Iran", "Laos", "Philippines", "Thailand", "Vietnam", "South"],
    },
    "Europe": {
        "West-Europe": [
            "England", "France", "Germany", "Holand-Netherlands", "Ireland", "Italy", "Portugal", "Scotland",
        ],
        "East-Europe": ["Greece", "Hungary", "Poland", "Yugoslavia"],
    },
    "Unknown": ["?"],
}  # fmt: skip

MARITAL = {
    "married": ["Married-civ-spouse", "Married-AF-spouse", "Married-spouse-absent"],
    "alone": ["Divorced", "Never-married", "Separated", "Widowed"],
}

TREE = datasets.location_tree()


PARENT = naive.parents(TREE)


NODES = sorted(PARENT)


LEAVES = ("San Diego", "Los Angeles", "Wichita", "Kansas City", "Lincoln")


DIGITS = {"any": {"low": ["0", "1"], "high": ["2", "3"]}}


DIGIT_PARENT = naive.parents(DIGITS)


def hierarchy(tree: Any, marked: set[str]) -> dict[str, Any]:
    entry: dict[str, Any] = {"role": "quasi-identifier", "kind": "hierarchy"}
    entry["hierarchy"] = af.Hierarchy.from_nested(tree)
    return entry | ({"boundary": sorted(marked)} if marked else {})


class Case:
    """A table with two hierarchies, and the plain data that it was made of."""

    def __init__(self, places: list[str], digits: list[str], marks: tuple[set[str], set[str]]) -> None:
        self.values = (places, digits)
        self.marks = marks
        self.parents = (PARENT, DIGIT_PARENT)
        frame = pd.DataFrame(
            {"place": places, "digit": digits, "other": [str(i % 3) for i in range(len(places))]}
        )
        schema = {
            "place": hierarchy(TREE, marks[0]),
            "digit": hierarchy(DIGITS, marks[1]),
            "other": {"role": "quasi-identifier", "kind": "categorical"},
        }
        self.table = Table(frame, schema)
        self.n = len(places)

    def magvals(self) -> list[tuple[str, ...]]:
        return [
            tuple(
                naive.magval(column[i], parent, marked)
                for column, parent, marked in zip(self.values, self.parents, self.marks, strict=True)
            )
            for i in range(self.n)
        ]

    def maskable(self, rows: list[int], k: int) -> bool:
        return naive.can_be_masked(rows, self.values, self.parents, self.marks, k)

    def out(self, k: int) -> set[int]:
        magvals = self.magvals()
        return {i for i in range(self.n) if magvals.count(magvals[i]) < k}


@st.composite
def cases(draw: st.DrawFn, max_n: int = 6) -> Case:
    n = draw(st.integers(2, max_n))
    places = draw(st.lists(st.sampled_from(LEAVES), min_size=n, max_size=n))
    digits = draw(st.lists(st.sampled_from("0123"), min_size=n, max_size=n))
    marks = draw(st.sets(st.sampled_from(NODES), max_size=4))
    return Case(places, digits, (marks, draw(st.sets(st.sampled_from(["low", "high", "1"]), max_size=2))))


def people(n: int = 120) -> Table:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "age": rng.choice([20.0, 30, 40, 55, 60], n),
            "place": rng.choice(LEAVES, n, p=[0.45, 0.3, 0.15, 0.02, 0.08]),
            "job": rng.choice(["clerk", "nurse", "smith"], n),
            "pay": rng.choice(["low", "high"], n),
        }
    )
    frame.loc[frame.index.isin([3, 9, 40, 41, 42]), "age"] = np.nan
    age = {"role": "quasi-identifier", "kind": "numeric", "boundary": {"width": 25}, "missing": "suppress"}
    return Table(
        frame,
        {
            "age": age,
            "place": hierarchy(TREE, {"California", "Kansas", "Midwest"}),
            "job": {"role": "quasi-identifier", "kind": "categorical"},
            "pay": {"role": "sensitive"},
        },
    )


EIGHT = ("education-num", "workclass", "marital-status", "occupation", "race", "sex", "age", "native-country")


def adult_schema(bounded: tuple[str, ...]) -> dict[str, Any]:
    def tree(nested: Any) -> dict[str, Any]:
        return {
            "role": "quasi-identifier",
            "kind": "hierarchy",
            "hierarchy": af.Hierarchy.from_nested({"*": nested}),
        }

    numbers = list(map(str, range(1, 17)))
    schooling = {
        f"{8 * a + 1}..{8 * a + 8}": {
            f"{8 * a + 4 * b + 1}..{8 * a + 4 * b + 4}": {
                f"{8 * a + 4 * b + 2 * c + 1}..{8 * a + 4 * b + 2 * c + 2}": numbers[
                    8 * a + 4 * b + 2 * c : 8 * a + 4 * b + 2 * c + 2
                ]
                for c in range(2)
            }
            for b in range(2)
        }
        for a in range(2)
    }
    ages = {
        f"{low}..{low + 19}": {
            f"{ten}..{ten + 9}": {
                f"{five}..{five + 4}": [str(age) for age in range(five, five + 5)] for five in (ten, ten + 5)
            }
            for ten in (low, low + 10)
        }
        for low in range(0, 100, 20)
    }
    schema = {name: {"role": "quasi-identifier", "kind": "suppression"} for name in EIGHT}
    schema["education-num"] = tree(schooling)
    schema["marital-status"] = tree(MARITAL)
    schema["age"] = tree(ages)
    schema["native-country"] = tree(COUNTRIES)
    marks = {
        "native-country": [*COUNTRIES["America"], "Asia", "Europe", "Unknown"],
        "age": [f"{ten}..{ten + 9}" for ten in range(0, 100, 10)],
    }
    for name in bounded:
        schema[name]["boundary"] = marks[name]
    return schema


@cache
def adult_table(bounded: tuple[str, ...]) -> Table:
    frame = datasets.adult()
    frame = frame.iloc[np.random.default_rng(2008).permutation(len(frame))[:10_000]]
    frame = frame.loc[:, list(EIGHT)].astype(str).reset_index(drop=True)
    return Table(frame, adult_schema(bounded))
