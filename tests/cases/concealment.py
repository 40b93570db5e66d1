"""Small tables for k-concealment whose costs are quarters, and what closures of their records cost and cover."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import anonflow as af
from anonflow.algorithms.method import Partition
from anonflow.generalization import Generalization
from anonflow.loss import measure_named, record_costs
from tests.naive import concealment as naive

LOSSES = ("ncp", "entropy", "height", "suppressions")


TOWNS = {"*": {"west": ["a", "b"], "east": ["c", "d"], "far": ["e"]}}


def small(seed: int, n: int, few: int = 5) -> af.Table:
    """Four QIs whose costs are quarters and halves: sums are exact, and ties are ties for every reader."""
    rng = np.random.default_rng(seed)
    qi = {"role": "quasi-identifier"}
    age = rng.integers(0, few, n)
    age[:2] = [0, 4]
    frame = pd.DataFrame(
        {
            "age": age,
            "job": ["p", "q", "r", "s", "t", *rng.choice(list("pqrst")[:few], n - 5)],
            "town": rng.choice(list("abcde"), n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    return af.Table(
        frame,
        {
            "age": {**qi, "kind": "numeric"},
            "job": {**qi, "kind": "categorical"},
            "town": {**qi, "kind": "hierarchy", "hierarchy": {"nested": TOWNS}},
            "sex": {**qi, "kind": "suppression"},
        },
    )


def part_of(table: af.Table, loss: str = "ncp", seed: int = 0) -> Partition:
    return Partition(table.records, measure_named(loss), np.random.default_rng(seed))


def oracle(table: af.Table, loss: str) -> tuple[naive.Cost, naive.Covers]:
    """Costs of closures and what they cover, from the public generalization alone."""
    n, records = table.n, table.records
    own = Generalization.of(records)

    @cache
    def closure(members: frozenset[int]) -> Generalization:
        first = sorted(members)
        lists = np.array([first])
        return Generalization.join_of(records, np.pad(lists, ((0, n - 1), (0, 0)), mode="edge")).take(
            np.array([0])
        )

    @cache
    def cost(members: frozenset[int]) -> float:
        return float(record_costs(closure(members), loss)[0])

    @cache
    def covers(members: frozenset[int], i: int) -> bool:
        return bool(closure(members).covers(own.take(np.array([i])))[0])

    return cost, covers


def codes_of(part: Partition, boxes: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from anonflow.kernels.costs import unload

    return unload(part.plan, boxes)
