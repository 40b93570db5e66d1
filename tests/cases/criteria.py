"""Small random tables of every kind of QI, and releases of them: valid, nearly valid, and wild."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from anonflow.generalization import Generalization
from anonflow.table import Table
from tests.naive.criteria import Case, graph_of, leaves_below

TREE = {"north": {"fjord": ["a", "b"], "c": None}, "south": ["d", "e", "f"]}
KINDS = ("numeric", "categorical", "hierarchy", "suppression", "positions")
VALUES = {
    "numeric": [str(v) for v in range(6)],
    "categorical": list("pqrst"),
    "hierarchy": list("abcdef"),
    "suppression": list("xyz"),
    "positions": ["11", "12", "21", "22"],
}


def random_table(rng: np.random.Generator, n: int, others: int = 1) -> tuple[Table, list[str]]:
    """n records over one to three QIs of any kind, and `others` sensitive columns."""
    kinds = list(rng.choice(KINDS, size=rng.integers(1, 4)))
    columns: dict[str, Any] = {}
    schema: dict[str, Any] = {}
    for a, kind in enumerate(kinds):
        few = VALUES[kind][: rng.integers(2, len(VALUES[kind]) + 1)]
        columns[f"q{a}"] = rng.choice(few, size=n)
        schema[f"q{a}"] = {"role": "quasi-identifier", "kind": str(kind)}
        if kind == "hierarchy":
            schema[f"q{a}"]["hierarchy"] = {"nested": {"everything": TREE}}
    for s in range(others):
        columns[f"s{s}"] = rng.choice(["1", "2", "5"][: rng.integers(1, 4)], size=n)
        schema[f"s{s}"] = {"role": "sensitive"}
    return Table(pd.DataFrame(columns, dtype="str"), schema), [str(kind) for kind in kinds]


def regular_matches(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    """A random k-regular graph with every record matching itself: (n, k), column 0 is 0..n-1."""
    order = rng.permutation(n)
    shifts = np.concatenate([[0], rng.choice(np.arange(1, n), size=k - 1, replace=False)])
    place = np.argsort(order)
    return np.stack([order[(place + shift) % n] for shift in shifts], axis=1).astype(np.int32)


def random_generalization(rng: np.random.Generator, table: Table, k: int) -> tuple[Generalization, str]:
    """Generalized records that cover their own originals, in one of several manners."""
    n = table.n
    manner = str(rng.choice(["regular", "classes", "wild", "star"]))
    if manner == "regular" and k <= n:
        return Generalization.join_of(table.records, regular_matches(rng, n, k)), manner
    if manner == "classes":
        labels = np.sort(rng.integers(0, max(1, n // k), size=n))
        return Generalization.join_by_class(table.records, labels), manner
    lists = np.full((n, 4), -1)
    lists[:, 0] = np.arange(n)
    for j in range(n):
        extra = rng.integers(0, 4)
        lists[j, 1 : 1 + extra] = rng.integers(0, n, size=extra)
    boxes = Generalization.join_of(table.records, lists)
    if manner == "star":
        boxes = boxes.with_suppressed(rng.random(n) < 0.3)
    return boxes, manner


def anonymization(generalization: Generalization, k: int, **more: Any) -> SimpleNamespace:
    """Something that the verifier takes for an anonymization."""
    return SimpleNamespace(generalization=generalization, k=k, **more)


def release_frame(
    table: Table, generalization: Generalization, rng: np.random.Generator, carry: np.ndarray | None = None
) -> pd.DataFrame:
    """What would be published: row j carries the other columns of original ``carry[j]``; shuffled."""
    suppressed = generalization.suppressed_rows()
    frame = generalization.decode(suppressed=suppressed)
    at = np.arange(table.n) if carry is None else carry
    for name in table.other_columns:
        frame[name] = table.frame[name].to_numpy()[at]
    return frame.iloc[rng.permutation(table.n)].reset_index(drop=True)


def naive_case(
    table: Table, kinds: list[str], frame: pd.DataFrame, k: int, own: bool = False, others: bool = True
) -> Case:
    """The same question for the naive reference, from texts alone."""
    rows, originals = (
        list(zip(*(each[name].tolist() for name in table.qi_columns))) for each in (frame, table.frame)
    )
    below = leaves_below(TREE)
    trees = [below if kind == "hierarchy" else None for kind in kinds]
    graph = graph_of(originals, rows, kinds, trees)
    rest = None
    shown = rows
    if others and table.other_columns:
        own_others, other_cells = (
            list(zip(*(each[name].tolist() for name in table.other_columns))) for each in (table.frame, frame)
        )
        rest = (["\0".join(row) for row in own_others], ["\0".join(row) for row in other_cells])
        shown = [row + more for row, more in zip(rows, other_cells)]
    blank = [all(cell == "*" for cell in row) for row in shown]
    return Case(graph, rows, k, rest, blank, own)
