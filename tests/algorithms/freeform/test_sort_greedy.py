"""SortGreedy against its definition; dead ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow import loss as losses
from anonflow.algorithms.freeform.sort_greedy import sort_greedy_matches, unusual
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.freeform.sort_greedy import sorted_assignment, sorted_assignment_jit
from anonflow.kernels.state import on_grid
from anonflow.table import Table
from tests.cases.freeform import MEASURES, assert_regular, part_of, total
from tests.cases.plain_kernels import plainly
from tests.cases.tables import adult
from tests.checks import check_result
from tests.strategies import examples, loop, tables


@examples(60)
@given(tables(min_n=2, max_n=9), st.data(), st.sampled_from(MEASURES))
def test_plain_and_compiled_agree(table: Table, data: st.DataObject, measure: str) -> None:
    k = data.draw(st.integers(2, table.n))
    part = part_of(table, measure)
    compiled, plain = sort_greedy_matches(part, k), plainly(sort_greedy_matches, part, k)
    assert (compiled[0] == plain[0]).all()
    assert (compiled[1] == plain[1]).all()
    assert_regular(compiled[0])


@examples(60)
@given(st.integers(2, 8), st.integers(0, 10_000), st.integers(1, 20))
def test_cheapest_free_edges_come_first(n: int, seed: int, values: int) -> None:
    rng = np.random.default_rng(seed)
    costs = rng.integers(0, values, (n, n)).astype(float)
    costs[np.arange(n), np.arange(n)] = np.inf
    took: dict[int, int] = {}
    for _, i, j in sorted((costs[i, j], i, j) for i in range(n) for j in range(n) if i != j):
        if i not in took and j not in took.values():
            took[i] = j
    edges = np.argsort(costs, axis=None, kind="stable")
    used = np.arange(n, dtype=np.int32)[:, None]
    chosen, holder, facts = np.empty(n, np.int64), np.empty(n, np.int64), np.zeros(2, np.int64)
    sorted_assignment_jit(costs, edges, rng.permutation(n), used, 1, chosen, holder, facts)
    assert sorted(chosen.tolist()) == list(range(n))
    assert (holder[chosen] == np.arange(n)).all()
    assert np.isfinite(costs[np.arange(n), chosen]).all()
    assert facts.sum() == n - len(took)
    if len(took) == n:
        assert dict(enumerate(chosen.tolist())) == took


@examples(40)
@given(tables(min_n=2, max_n=8), st.data(), st.sampled_from(MEASURES), st.booleans())
def test_the_second_assignment_follows_the_definition(
    table: Table, data: st.DataObject, measure: str, relative: bool
) -> None:
    """The second assignment, from the definition, where no dead end comes up."""
    n, part = table.n, part_of(table, measure)
    pairs = np.array([[[j, i] for j in range(n)] for i in range(n)]).reshape(-1, 2)
    joint = losses.record_costs(Generalization.join_of(table.records, pairs), measure).reshape(n, n)
    own = losses.record_costs(Generalization.of(table.records), measure)
    weight = {(i, j): joint[i, j] - own[j] for i in range(n) for j in range(n) if i != j}
    if relative:
        weight = {
            (i, j): value
            - np.mean([w for (a, _), w in weight.items() if a == i])
            - np.mean([w for (_, b), w in weight.items() if b == j])
            for (i, j), value in weight.items()
        }
    result, facts = sort_greedy_matches(part, 2, relative=relative)
    if facts.any():
        return
    took = {int(result[j, 1]): j for j in range(n)}
    # whatever was left out has a dearer or equally dear edge at none of its ends
    for (i, j), value in weight.items():
        before = min(weight[i, took[i]], weight[int(result[j, 1]), j])
        assert before <= value + 1e-9


@examples(60)
@given(st.integers(2, 7), st.integers(0, 10_000))
def test_unusual_weights_follow_their_definition(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    costs = rng.random((n, n))
    costs[np.arange(n), rng.permutation(n)] = np.inf
    weights = unusual(costs)
    for i in range(n):
        for j in range(n):
            if costs[i, j] == np.inf:
                assert weights[i, j] == np.inf
                continue
            row = [c for c in costs[i] if c < np.inf]
            column = [c for c in costs[:, j] if c < np.inf]
            assert weights[i, j] == pytest.approx(costs[i, j] - np.mean(row) - np.mean(column), abs=1e-9)


@given(st.integers(2, 40), st.integers(0, 10_000), st.sampled_from([3, 7, 60_060]))
def test_unusual_weights_have_the_order_of_exact_arithmetic(n: int, seed: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    whole = rng.integers(0, 4, (n, n))
    costs = whole * float(on_grid(1 / parts))
    there = np.ones((n, n), bool)
    there[np.arange(n), rng.permutation(n)] = False
    costs[~there] = np.inf
    whole[~there] = 0
    exact = ((n - 1) * whole - whole.sum(axis=1)[:, None] - whole.sum(axis=0)[None, :])[there]
    assert np.array_equal(
        np.unique(exact, return_inverse=True)[1], np.unique(unusual(costs)[there], return_inverse=True)[1]
    )


@pytest.mark.slow
@pytest.mark.data
def test_relative_weights_lose_less(data_folder: Path) -> None:
    table = adult(data_folder)
    few = Table(table.frame.iloc[:9_000], table.schema)
    relative, plain = (
        af.anonymize(few, "sort-greedy", k=10, partition_size=150, edges=edges).loss("gcp")
        for edges in ("relative", "weight")
    )
    assert relative < 0.95 * plain


def test_an_unknown_order_of_edges_is_refused() -> None:
    table = Table(pd.DataFrame({"a": [7] * 6}), {"a": {"role": "quasi-identifier", "kind": "numeric"}})
    with pytest.raises(ParameterError, match="edges"):
        af.anonymize(table, "sort-greedy", k=2, edges="cheapest")


@loop("kernel", [sorted_assignment, sorted_assignment_jit])
def test_a_dead_end_is_resolved_by_a_neighbour(kernel: Callable[..., Any]) -> None:
    # Only edges of the diagonal are used. 0 and 1 take each other's record, 2 has its own left.
    costs = np.array([[np.inf, 0.0, 5.0], [0.0, np.inf, 7.0], [5.0, 6.0, np.inf]])
    facts = np.zeros(2, np.int64)
    chosen, holder = np.empty(3, np.int64), np.empty(3, np.int64)
    edges = np.argsort(costs, axis=None, kind="stable")
    used = np.array([[0, -1], [1, -1], [2, -1]], np.int32)
    kernel(costs, edges, np.arange(3), used, 1, chosen, holder, facts)
    # its nearest predecessor is 1, which hands over record 0 and takes record 2
    assert chosen.tolist() == [1, 2, 0]
    assert holder.tolist() == [2, 0, 1]
    assert facts.tolist() == [1, 0]


@loop("measure", MEASURES)
def test_result_keeps_its_guarantee_up_to_k_of_n(measure: str) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 30, 24), "b": rng.choice(list("xyz"), 24)})
    qi = {"role": "quasi-identifier"}
    table = Table(frame, {"a": qi | {"kind": "numeric"}, "b": qi | {"kind": "categorical"}})
    for k in (2, 5, 13, 23, 24):
        anon = af.anonymize(table, "sort-greedy", k=k, loss=measure)
        check_result(anon)
        assert (
            anon.matches == af.anonymize(table, "sort-greedy", k=k, loss=measure, workers=1).matches
        ).all()


def test_equal_records_cost_nothing() -> None:
    table = Table(pd.DataFrame({"a": [7] * 6}), {"a": {"role": "quasi-identifier", "kind": "numeric"}})
    matches, _ = sort_greedy_matches(part_of(table), 6)
    assert_regular(matches)
    assert total(table, matches, "ncp") == 0
