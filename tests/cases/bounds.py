"""Random records beside the naive cost of covering some of them."""

from __future__ import annotations

import functools

import numpy as np

from anonflow.table import Records
from tests.cases import costs as cost_cases
from tests.naive import bounds as naive
from tests.naive.loss import join_cost


def naive_cost(records: Records, measure: str) -> naive.Cost:
    """The naive cost of covering some records, kept."""
    attributes = cost_cases.attributes(records)

    @functools.cache
    def of(rows: tuple[int, ...]) -> float:
        return float(join_cost(attributes, records.codes, rows, measure))

    return lambda rows: of(tuple(sorted(rows)))


def random_records(seed: int, n: int, kinds: tuple[str, ...] = cost_cases.KINDS) -> Records:
    rng = np.random.default_rng(seed)
    chosen = rng.choice(kinds, int(rng.integers(1, 5)))
    sizes = [int(size) for size in rng.integers(1, 7, len(chosen))]
    return cost_cases.table(rng, n, chosen.tolist(), sizes)
