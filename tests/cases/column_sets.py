"""Tables whose columns are known set by set: few values, and a column of every kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import anonflow as af

TABLES = st.integers(2, 4).flatmap(
    lambda q: st.lists(st.lists(st.sampled_from("aaabbcd"), min_size=q, max_size=q), min_size=4, max_size=14)
)

ROWS = [
    row.split()
    for row in (
        "2 A F high", "3 A F low", "3 A F low", "2 A M low", "4 B F high",
        "2 B F medium", "4 B F high", "2 B F low", "2 A M high", "3 A M medium",
    )
]  # fmt: skip
"""Ten people."""
COLUMNS = ["province", "activity", "sex", "income"]

TREE = {"*": {"north": ["a", "b"], "south": {"coast": ["c", "d"], "hills": ["e"]}}}
ABOVE = {
    "a": ["north"], "b": ["north"], "c": ["coast", "south"], "d": ["coast", "south"], "e": ["hills", "south"],
}  # fmt: skip


def table(rows: Any, columns: list[str] | None = None) -> af.Table:
    frame = pd.DataFrame(rows, columns=columns or [f"c{at}" for at in range(len(rows[0]))])
    return af.Table(frame, {name: {"role": "quasi-identifier", "kind": "suppression"} for name in frame})


def kinds(n: int, seed: int, **more: Any) -> af.Table:
    """People with a column of every kind."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 40, n).astype(float),
            "job": rng.choice(["cook", "judge", "nurse"], n),
            "town": rng.choice(list("abcde"), n),
            "zip": [f"{a}{b}" for a, b in rng.integers(1, 4, (n, 2))],
            "income": rng.choice(["1", "2", "3", "refused"], n),
        }
    )
    frame.loc[[1, 4], "age"] = np.nan
    role = {"role": "quasi-identifier"}
    schema = {
        "age": {**role, "kind": "numeric", "missing": "suppress"},
        "job": {**role, "kind": "categorical"},
        "town": {**role, "kind": "hierarchy", "hierarchy": {"nested": TREE}},
        "zip": {**role, "kind": "positions"},
        "income": {**role, "kind": "numeric", "codes": ["refused"]},
    }
    for name, settings in more.items():
        schema[name] = {**schema[name], **settings}
    return af.Table(frame, schema)


def may_be(cell: str, value: Any) -> bool:
    """Whether a published cell of `kinds` covers a value."""
    if cell == "*":
        return True
    if isinstance(value, float):
        low, _, high = cell.partition("-")
        return not np.isnan(value) and float(low) <= value <= float(high or low)
    if len(value) == 2 and value.isdigit():
        return all(a in ("*", b) for a, b in zip(cell, value, strict=True))
    return cell == value or cell in ABOVE.get(value, [])
