"""Tables that tests of several rooms share: all kinds of columns, and the data sets."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import anonflow as af
from anonflow import datasets
from anonflow.table import Table
from tests.strategies import city_tree

QIS = ("age", "workclass", "education", "marital-status", "occupation", "race", "sex", "native-country")


def mixed(n: int) -> Table:
    """All kinds side by side, with missing values and two weights."""
    rng = np.random.default_rng(n)
    age = rng.integers(18, 80, n).astype(float)
    age[:3] = np.nan
    frame = pd.DataFrame(
        {
            "age": age,
            "job": rng.choice(["clerk", "nurse", "", "co|ok"], n),
            "city": rng.choice(["San Diego", "Wichita", "Topeka", "Lincoln"], n),
            "zip": rng.choice(["9412", "9413", "8001"], n),
            "sex": rng.choice(["f", "m"], n),
            "born": rng.choice(pd.date_range("1980-01-01", periods=9).to_numpy(), n),
            "pay": rng.choice(["low", "high"], n),
        }
    )
    qi = {"role": "quasi-identifier"}
    return Table(
        frame,
        {
            "age": {**qi, "kind": "numeric", "missing": "suppress", "weight": 2},
            "job": {**qi, "kind": "categorical"},
            "city": {**qi, "kind": "hierarchy", "hierarchy": city_tree()},
            "zip": {**qi, "kind": "positions", "weight": 0.5},
            "sex": {**qi, "kind": "suppression"},
            "born": {**qi, "kind": "numeric"},
            "pay": {"role": "sensitive"},
        },
    )


@cache
def sampled(name: str, n: int) -> Table:
    frame = datasets.load(name)
    schema = datasets.schema(name)
    part = frame.sample(n, random_state=3) if len(frame) > n else frame
    return Table(part.reset_index(drop=True), {c: e for c, e in schema.items() if c in part.columns})


TABLES: dict[str, Callable[[], Table]] = {
    "mixed": lambda: mixed(40),
    "six": lambda: mixed(6),
    "equal": lambda: Table(
        pd.DataFrame({"a": ["x"] * 7, "b": [1] * 7}),
        {
            "a": {"role": "quasi-identifier", "kind": "categorical"},
            "b": {"role": "quasi-identifier", "kind": "numeric"},
        },
    ),
    **{
        name: partial(sampled, name, 60)
        for name in datasets.names()
        if name not in ("adult", "cmc")  # fetched ones are covered by data tests
    },
}


def random_table(n: int, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "age": rng.integers(17, 90, n),
        "work": rng.choice(list("abcdefg"), n),
        "place": rng.choice(list("uvwxyz"), n),
    })  # fmt: skip
    qi = {"role": "quasi-identifier"}
    return Table(frame, {
        "age": qi | {"kind": "numeric"}, "work": qi | {"kind": "categorical"}, "place": qi | {"kind": "suppression"},
    })  # fmt: skip


@cache
def adult(folder: Path, rows: int | None = None) -> af.Table:
    """The 30,162 complete rows of Adult's training split, or the first ones: age numeric, seven categorical QIs."""
    frame = pd.read_csv(folder / "arx" / "adult.csv.gz", sep=";", na_filter=False, nrows=rows)
    schema: dict[str, Any] = {name: {"role": "quasi-identifier", "kind": "categorical"} for name in QIS}
    schema["age"]["kind"] = "numeric"
    schema["salary-class"] = {"role": "sensitive"}
    return af.Table(frame, schema)
