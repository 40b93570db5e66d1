"""Minimum-cost flow against its definition."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.algorithms.freeform.hungarian import hungarian_matches
from anonflow.algorithms.freeform.min_cost_flow import min_cost_flow_matches
from anonflow.table import Table
from tests.cases.freeform import MEASURES, assert_regular, part_of, total
from tests.cases.plain_kernels import plainly
from tests.checks import check_result
from tests.strategies import examples, loop, tables


@examples(40)
@given(tables(min_n=2, max_n=9), st.data(), st.sampled_from(MEASURES))
def test_plain_and_compiled_agree(table: Table, data: st.DataObject, measure: str) -> None:
    k = data.draw(st.integers(2, table.n))
    part = part_of(table, measure)
    matches = min_cost_flow_matches(part, k)
    assert (matches == plainly(min_cost_flow_matches, part, k)).all()
    assert_regular(matches)


@examples(40)
@given(tables(min_n=2, max_n=9), st.sampled_from(MEASURES))
def test_k_of_two_is_optimal(table: Table, measure: str) -> None:
    part = part_of(table, measure)
    result = total(table, min_cost_flow_matches(part, 2), measure)
    assert result == pytest.approx(total(table, hungarian_matches(part, 2), measure), abs=1e-6)


def test_the_sum_of_pairs_is_least() -> None:
    rng = np.random.default_rng(3)
    table = Table(
        pd.DataFrame({"a": rng.integers(0, 50, 5)}), {"a": {"role": "quasi-identifier", "kind": "numeric"}}
    )
    values = table.frame["a"].to_numpy().astype(float)
    price = np.abs(values[:, None] - values)
    moves = [p for p in itertools.permutations(range(5)) if all(i != j for j, i in enumerate(p))]
    least = min(
        sum(price[j, i] + price[j, h] for j, (i, h) in enumerate(zip(a, b, strict=True)))
        for a, b in itertools.combinations(moves, 2)
        if all(i != h for i, h in zip(a, b, strict=True))
    )
    matches = min_cost_flow_matches(part_of(table), 3)
    assert price[np.arange(5)[:, None], matches].sum() == least


@loop("k", [2, 5, 30])
def test_result_keeps_its_guarantee(k: int) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 9, 30), "b": rng.choice(list("xyz"), 30)})
    qi = {"role": "quasi-identifier"}
    table = Table(frame, {"a": qi | {"kind": "numeric"}, "b": qi | {"kind": "categorical"}})
    check_result(af.anonymize(table, "min-cost-flow", k=k))


def test_equal_records_cost_nothing() -> None:
    table = Table(pd.DataFrame({"a": [7] * 6}), {"a": {"role": "quasi-identifier", "kind": "numeric"}})
    assert total(table, min_cost_flow_matches(part_of(table), 6), "ncp") == 0
