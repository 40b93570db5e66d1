"""Partitions: the order of the records and the cuts in it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonflow.errors import InfeasibleError, ParameterError
from anonflow.partition import cut, lexicographic_order, ordered, plan, space_filling_order
from anonflow.table import Records, Table
from tests.strategies import tables


@given(st.integers(1, 200), st.integers(1, 12), st.integers(1, 80))
def test_cuts_cover_everything_once_and_none_is_too_small(n: int, k: int, size: int) -> None:
    if n < k:
        with pytest.raises(InfeasibleError):
            cut(n, size, k)
    elif size < k and size < n:
        with pytest.raises(ParameterError):
            cut(n, size, k)
    else:
        runs = cut(n, size, k)
        positions = [at for run in runs for at in range(run.start, run.stop)]
        assert positions == list(range(n))
        assert all(run.stop - run.start >= k for run in runs)
        assert all(run.stop - run.start <= max(size + k, k) for run in runs)


@given(tables())
def test_lexicographic_order_is_by_falling_rarity_of_values(table: Table) -> None:
    codes = table.codes
    widths = [len(set(codes[:, a].tolist())) for a in range(table.q)]
    first_to_last = sorted(range(table.q), key=lambda a: (widths[a], a))
    expected = sorted(range(table.n), key=lambda i: tuple(codes[i, a] for a in first_to_last))
    assert lexicographic_order(table.records).tolist() == expected


@given(st.data())
def test_columns_with_any_number_of_values_are_compared_whole(data: st.DataObject) -> None:
    """Codes of one bit up to 21 bits, with cells without a number: their digits cross the borders of words."""
    sizes = data.draw(
        st.lists(st.sampled_from([1, 2, 40, 255, 256, 65_535, 65_536, 70_000, 1 << 20]), max_size=6)
    )
    row = st.tuples(*(st.sampled_from([-1, 0, size // 2, size - 1]) for size in sizes))
    rows = data.draw(st.lists(row, max_size=30))
    frame = pd.DataFrame({"number": [0.0, 1.0]})
    (domain,) = Table(frame, {"number": {"role": "quasi-identifier", "kind": "numeric"}}).domains
    domains = tuple(replace(domain, labels=range(size)) for size in sizes)  # type: ignore[arg-type]
    records = Records(domains, np.array(rows, np.int32).reshape(len(rows), len(sizes)))
    assert lexicographic_order(records).tolist() == sorted(range(len(rows)), key=lambda i: rows[i])


@given(st.integers(1, 4), st.integers(1, 3), st.randoms(use_true_random=False))
def test_neighbours_on_a_grid_differ_by_one_step_of_one_column_along_a_space_filling_order(
    q: int, bits: int, random: Random
) -> None:
    rows = list(itertools.product(range(1 << bits), repeat=q))
    random.shuffle(rows)
    frame = pd.DataFrame(rows, columns=[f"c{a}" for a in range(q)])
    table = Table(frame, {name: {"role": "quasi-identifier", "kind": "numeric"} for name in frame})
    line = frame.to_numpy()[space_filling_order(table.records)]
    assert (np.abs(np.diff(line, axis=0)).sum(axis=1) == 1).all()


@given(tables())
def test_a_space_filling_order_has_each_record_once_and_equal_ones_together(table: Table) -> None:
    order = space_filling_order(table.records).tolist()
    assert sorted(order) == list(range(table.n))
    rows = [tuple(row) for row in table.codes[order].tolist()]
    runs = [row for row, _ in itertools.groupby(rows)]
    assert len(runs) == len(set(rows))
    assert all(i < j for i, j in itertools.pairwise(order) if (table.codes[i] == table.codes[j]).all())


@given(tables(min_n=3), st.integers(2, 3))
def test_a_plan_is_a_division_of_the_records(table: Table, k: int) -> None:
    for order in ("lexicographic", "input", "random"):
        parts = plan(table.records, k, k, order, np.random.default_rng(0))
        assert sorted(np.concatenate(parts).tolist()) == list(range(table.n))
        assert min(map(len, parts)) >= k


def test_an_unknown_order_is_refused() -> None:
    table = Table(pd.DataFrame({"a": [1, 2]}), {"a": {"role": "quasi-identifier", "kind": "numeric"}})
    with pytest.raises(ParameterError, match="known"):
        ordered(table.records, "sideways")
    with pytest.raises(ParameterError, match="generator"):
        ordered(table.records, "random")
