"""Columns beside the quasi-identifiers that tell them, or follow from them."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from anonflow.release.columns import _follows, stands_in_order, told_by_dependence
from anonflow.table import Schema, Table


def naive(column: list[int], key: list[int]) -> bool:
    """The definition, record by record."""
    shares, chances = [], []
    for a, b in enumerate(key):
        others = [column[c] == column[a] for c, d in enumerate(key) if c != a and d == b]
        if others:
            shares.append(sum(others) / len(others))
    for a, b in itertools.permutations(column, 2):
        chances.append(a == b)
    enough = 2 * len(shares) >= len(column)
    return enough and sum(shares) / len(shares) >= 0.95 and sum(chances) / len(chances) <= 0.9


@pytest.mark.parametrize("seed", range(8))
def test_a_column_follows_from_another_by_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(20):
        n = int(rng.integers(2, 40))
        key = rng.integers(0, rng.integers(1, 8), n)
        column = np.where(rng.random(n) < rng.choice([0, 0.02, 0.5]), rng.integers(0, 4, n), key // 2)
        assert _follows(column, key) == naive(column.tolist(), key.tolist())


def test_both_directions_are_named() -> None:
    rng = np.random.default_rng(0)
    fine = rng.integers(0, 12, 400)
    frame = pd.DataFrame({"area": fine // 3, "block": fine, "mood": rng.integers(0, 4, 400)})
    schema = Schema(
        {
            "area": {"role": "quasi-identifier", "kind": "categorical"},
            "block": {"role": "insensitive"},
            "mood": {"role": "sensitive"},
        }
    )
    (sentence,) = told_by_dependence(Table(frame, schema))
    assert sentence.startswith("column 'block' tells 'area': ")


@pytest.mark.parametrize("first", [0, 20_000])
def test_of_many_records_some_of_all_parts_are_compared(first: int) -> None:
    """45,000 records, of which the first, or the last, 25,000 follow: less often than 95 of 100 have."""
    rng = np.random.default_rng(0)
    area, mood = rng.integers(0, 12, 45_000), rng.integers(0, 4, 45_000)
    copy = area.copy()
    schema = Schema(
        {"area": {"role": "quasi-identifier", "kind": "categorical"}, "copy": {"role": "insensitive"}}
    )
    (sentence,) = told_by_dependence(Table(pd.DataFrame({"area": area, "copy": copy}), schema))
    assert sentence.startswith("column 'copy' tells 'area' and follows from 'area': ")
    others = slice(25_000, None) if first == 0 else slice(first)
    copy[others] = mood[others]
    assert told_by_dependence(Table(pd.DataFrame({"area": area, "copy": copy}), schema)) == []


@pytest.mark.parametrize(("few", "n"), [(3, 8), (4, 14), (5, 13), (5, 14), (6, 13), (7, 14)])
def test_a_sorted_column_stands_in_order_where_chance_sorts_fewer_than_one_in_a_thousand(
    few: int, n: int
) -> None:
    """Of two values: by counting the orders in which they make two runs."""
    orders = [np.isin(np.arange(n), places) for places in itertools.combinations(range(n), few)]
    sorted_orders = sum(int((order[1:] != order[:-1]).sum()) == 1 for order in orders)
    assert sorted_orders == 2
    assert stands_in_order(np.array([few, n - few]), 0) == (sorted_orders / len(orders) < 1 / 1000)
