"""Hungarian and NH against their definitions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from anonflow.algorithms.freeform import hungarian
from anonflow.algorithms.freeform.hungarian import hungarian_matches
from anonflow.algorithms.freeform.nh import halves, nh_matches
from anonflow.kernels.freeform.auction import auction, auction_jit
from anonflow.table import Table
from tests.cases.freeform import MEASURES, assert_regular, part_of, total
from tests.cases.plain_kernels import plainly
from tests.strategies import examples, loop, tables


@settings(deadline=None)
@given(tables(min_n=2, max_n=5), st.data(), st.sampled_from(MEASURES))
def test_each_assignment_is_optimal(table: Table, data: st.DataObject, measure: str) -> None:
    n = table.n
    k = data.draw(st.integers(2, n))
    matches = hungarian_matches(part_of(table, measure), k)
    assert_regular(matches)
    for d in range(1, k):
        result = total(table, matches[:, : d + 1], measure)
        used = [set(row) for row in matches[:, :d].tolist()]
        best = min(
            total(table, np.column_stack([matches[:, :d], to]), measure)
            for to in itertools.permutations(range(n))
            if not any(i in used[j] for j, i in enumerate(to))
        )
        assert result == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("bid", [auction, auction_jit])
@examples(60)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 12), slack=st.sampled_from([0.01, 0.5, 2.0]))
def test_an_auction_comes_as_near_as_it_says(bid: Any, seed: int, n: int, slack: float) -> None:
    """A permutation without forbidden edges, at most n bids above the least sum."""
    rng = np.random.default_rng(seed)
    costs = rng.integers(1, 9, (n, n)).astype(float)
    costs[rng.random((n, n)) < 0.3] = np.inf
    costs[np.arange(n), rng.permutation(n)] = 5.0
    to = np.empty(n, np.int64)
    assert bid(costs, slack, 10**6, to, np.empty(n))
    assert sorted(to.tolist()) == list(range(n))
    taken = costs[np.arange(n), to].sum()
    least = costs[linear_sum_assignment(costs)].sum()
    smallest = slack * costs.min(axis=0).mean()
    assert least <= taken <= least + n * smallest + 1e-9


@loop("bid", [auction, auction_jit])
def test_an_auction_that_comes_to_no_end_says_so(bid: Any) -> None:
    to, price = np.empty(3, np.int64), np.empty(3)
    assert not bid(np.ones((3, 3)), 0.1, 2, to, price)
    assert not bid(np.zeros((3, 3)), 0.1, 100, to, price)
    assert not bid(-np.ones((3, 3)), 0.1, 100, to, price)


@examples(40)
@given(tables(min_n=2, max_n=9), st.data(), st.sampled_from(MEASURES), st.booleans())
def test_nearly_optimal_assignments(table: Table, data: st.DataObject, measure: str, short: bool) -> None:
    """Regular, plain as compiled; without bids they are the optimal ones."""
    k = data.draw(st.integers(2, table.n))
    part = part_of(table, measure)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hungarian, "BIDS", 0 if short else 20)
        matches = hungarian_matches(part, k, slack=0.5)
        assert (matches == plainly(hungarian_matches, part, k, slack=0.5)).all()
    assert_regular(matches)
    if short:
        assert (matches == hungarian_matches(part, k)).all()


@settings(deadline=None)
@given(tables(min_n=2, max_n=9), st.data(), st.sampled_from(MEASURES))
def test_plain_and_compiled_agree(table: Table, data: st.DataObject, measure: str) -> None:
    k = data.draw(st.integers(2, table.n))
    part = part_of(table, measure)
    assert (hungarian_matches(part, k) == plainly(hungarian_matches, part, k)).all()
    compiled, plain = nh_matches(part, k), plainly(nh_matches, part, k)
    assert (compiled[0] == plain[0]).all()
    assert compiled[1] == plain[1]
    assert_regular(compiled[0])


@given(st.integers(2, 500), st.integers(2, 20))
def test_halves_keep_k_and_stay_below_twice_k(n: int, k: int) -> None:
    n = max(n, k)
    sizes = np.diff(halves(n, k))
    assert sizes.sum() == n
    assert sizes.min() >= k
    assert sizes.max() <= 2 * k - 1


@given(tables(min_n=4, max_n=12))
def test_a_ring_covers_the_records_that_follow(table: Table) -> None:
    matches, rings = nh_matches(part_of(table), 2)
    followers = matches[:, 1]
    seen: set[int] = set()
    count = 0
    for start in range(table.n):
        if start in seen:
            continue
        count += 1
        at, length = start, 0
        while at not in seen:
            seen.add(at)
            at, length = int(followers[at]), length + 1
        assert at == start
        assert 2 <= length <= 3
    assert count == rings


def test_equal_records_cost_nothing() -> None:
    import pandas as pd

    table = Table(pd.DataFrame({"a": [7] * 6, "b": ["x"] * 6}), {
        "a": {"role": "quasi-identifier", "kind": "numeric"},
        "b": {"role": "quasi-identifier", "kind": "categorical"},
    })  # fmt: skip
    for matches in (hungarian_matches(part_of(table), 6), nh_matches(part_of(table), 3)[0]):
        assert_regular(matches)
        assert total(table, matches, "ncp") == 0
