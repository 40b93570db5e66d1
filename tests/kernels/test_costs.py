"""The cost kernels: against the loss, against each other, plain against compiled, and at the extremes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonflow import loss
from anonflow.generalization import Generalization
from anonflow.hierarchy import Hierarchy
from anonflow.kernels import costs, prices, row_costs
from anonflow.kernels.jit import NO_NANS, jit, popcount
from anonflow.kernels.state import GRID, State, copy_state, on_grid, take
from anonflow.loss.costs import ROUNDED, even_shares
from anonflow.table.domain import Domain
from anonflow.table.records import Records
from tests.cases import costs as cost_cases
from tests.cases.plain_kernels import plainly
from tests.strategies import examples

NEAR = {"entropy": 1e-6}  # sums of c log2 c are rounded to be exact


def assert_same(first: State, second: State) -> None:
    for name, a, b in zip(State._fields, first, second, strict=True):
        assert np.array_equal(a, b), name


def check(
    records: Records, measure: str, rng: np.random.Generator, plain: bool = True, pairs: int = 30
) -> None:
    """Everything that holds for the costs of a table."""
    plan = loss.plan(records.domains, measure)
    first, _ = cost_cases.random_joins(rng, records)
    second, _ = cost_cases.random_joins(rng, records)
    own = Generalization.of(records)
    states = [costs.load(plan, g.lo, g.hi, g.bits) for g in (own, first, second)]
    near = NEAR.get(measure, 1e-12)
    weights = np.array([domain.weight for domain in records.domains])
    shares = even_shares(records.domains, loss.LOSSES[measure])
    assert shares == pytest.approx(weights / weights.sum(), rel=ROUNDED)
    for state, generalization in zip(states, (own, first, second), strict=True):
        assert state.cost == pytest.approx(shares @ loss.cell_costs(generalization, measure), abs=near)
        assert state.cost == pytest.approx(
            loss.record_costs(generalization, measure), abs=near, rel=1.01 * ROUNDED
        )
        assert np.array_equal(on_grid(state.cost), state.cost)
        for got, want in zip(
            costs.unload(plan, state),
            (generalization.lo, generalization.hi, generalization.bits),
            strict=True,
        ):
            assert np.array_equal(got, want)
        if plain:
            assert_same(
                state,
                plainly(costs.load, plan, generalization.lo, generalization.hi, generalization.bits),
            )
    n = records.n
    out, again = np.empty(n), np.empty(n)
    for A, a in ((states[0], own), (states[1], first)):
        for i in {0, n - 1, n // 2}:
            B = states[2]
            joined = a.take(np.full(n, i)).join(second)
            whole = costs.load(plan, joined.lo, joined.hi, joined.bits)
            row_costs.join_row_jit(plan, A, i, B, 0, n, out)
            assert np.array_equal(out, whole.cost)
            row_costs.increase_row_jit(plan, A, i, B, 0, n, again)
            assert np.array_equal(again, whole.cost - B.cost)
            costs.join_pairs_jit(plan, A, np.full(n, i), B, np.arange(n), again)
            assert np.array_equal(again, whole.cost)
            widened = copy_state(B)
            for j in range(n):
                costs.widen_jit(plan, widened, j, A, i)
            assert_same(widened, whole)
            if plain:
                row_costs.join_row(plan, A, i, B, 0, n, again)
                assert np.array_equal(again, whole.cost)
                row_costs.increase_row(plan, A, i, B, 0, n, again)
                assert np.array_equal(again, whole.cost - B.cost)
                costs.join_pairs(plan, A, np.full(n, i), B, np.arange(n), again)
                assert np.array_equal(again, whole.cost)
                widened = copy_state(B)
                for j in range(n):
                    costs.widen(plan, widened, j, A, i)
                assert_same(widened, whole)


@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from(cost_cases.KINDS), min_size=1, max_size=5),
    st.sampled_from(loss.MEASURES),
)
@examples(60)
def test_all_kinds_and_measures(seed: int, kinds: list[str], measure: str) -> None:
    rng = np.random.default_rng(seed)
    records = cost_cases.table(
        rng, int(rng.integers(1, 9)), kinds, rng.choice([1, 2, 3, 9, 64, 65, 150], len(kinds))
    )
    check(records, measure, rng)


@pytest.mark.parametrize("measure", loss.MEASURES)
@pytest.mark.parametrize(
    ("kinds", "sizes"),
    [
        (["numeric"], [50]),
        (["categorical"], [2]),
        (["categorical"], [1000]),
        (["hierarchy"], [500]),
        (["hierarchy", "categorical", "suppression", "numeric"] * 16, [5, 1000, 2, 30] * 16),
        (["categorical"] * 64, [2] * 32 + [70] * 32),
    ],
    ids=["one numeric", "set of 2", "set of 1000", "one tree", "64 mixed", "64 sets"],
)
def test_one_and_64_attributes(kinds: Sequence[str], sizes: Sequence[int], measure: str) -> None:
    rng = np.random.default_rng(3)
    check(cost_cases.table(rng, 40, kinds, sizes), measure, rng, plain=len(kinds) == 1)


@pytest.mark.parametrize("measure", loss.MEASURES)
def test_one_record_and_all_records_equal(measure: str) -> None:
    rng = np.random.default_rng(4)
    records = cost_cases.table(rng, 12, cost_cases.KINDS, [7] * 6)
    check(records.take(np.zeros(1, np.intp)), measure, rng)
    equal = records.take(np.zeros(12, np.intp))
    check(equal, measure, rng)
    plan = loss.plan(records.domains, measure)
    own = Generalization.of(equal)
    state = costs.load(plan, own.lo, own.hi, own.bits)
    out = np.empty(12)
    row_costs.increase_row_jit(plan, state, 0, state, 0, 12, out)
    assert not out.any()


@cache
def large_tree() -> Hierarchy:
    groups = np.arange(100_000) // 100
    labels = ["*", *(f"g{g}" for g in range(1000)), *(f"v{v}" for v in range(100_000))]
    return Hierarchy(labels, [-1] + [0] * 1000 + (groups + 1).tolist())


@pytest.mark.slow
@pytest.mark.parametrize("measure", loss.MEASURES)
def test_sets_of_10000_values_and_100000_leaves(measure: str) -> None:
    rng = np.random.default_rng(6)
    leaves, tree = 100_000, large_tree()
    n = 30
    large, wide = rng.integers(0, leaves, n), rng.integers(0, 10_000, n)
    large[1:9] = large[0] // 100 * 100 + np.arange(8)
    domains = (
        Domain(
            "t",
            "hierarchy",
            tree.leaves,
            np.arange(leaves, dtype=float),
            np.bincount(large, minlength=leaves),
            hierarchy=tree,
        ),
        cost_cases.domain_of("s", "categorical", 10_000, wide, rng),
    )
    records = Records(domains, np.ascontiguousarray(np.stack([large, wide], axis=1).astype(np.int32)))
    check(records, measure, rng, plain=False)


def test_rows_longer_than_a_block_and_parts_of_them() -> None:
    rng = np.random.default_rng(7)
    records = cost_cases.table(rng, 2500, cost_cases.KINDS, [40, 40, 40, 90, 40, 5])
    for measure in ("ncp", "entropy", "height"):
        plan = loss.plan(records.domains, measure)
        g, _ = cost_cases.random_joins(rng, records)
        state = costs.load(plan, g.lo, g.hi, g.bits)
        out, part = np.full((2, 2500), np.nan)
        row_costs.join_row_jit(plan, state, 3, state, 0, 2500, out)
        row_costs.join_row_jit(plan, state, 3, state, 1000, 2100, part)
        assert np.array_equal(part[1000:2100], out[1000:2100])
        assert np.isnan(part[:1000]).all()
        assert np.isnan(part[2100:]).all()


def test_order_of_attributes_changes_no_cost() -> None:
    rng = np.random.default_rng(8)
    records = cost_cases.table(rng, 50, [*cost_cases.KINDS] * 3, rng.integers(2, 90, 18))
    turned = Records(records.domains[::-1], np.ascontiguousarray(records.codes[:, ::-1]))
    both = []
    for item in (records, turned):
        plan = loss.plan(item.domains, "ncp")
        own = Generalization.of(item)
        state = costs.load(plan, own.lo, own.hi, own.bits)
        out = np.empty(50)
        row_costs.join_row_jit(plan, state, 3, state, 0, 50, out)
        both.append(out)
    assert np.array_equal(*both)


def test_values_nearer_than_the_grid_stay_covered() -> None:
    points = np.array([0.0, 1.0, 1.0 + 2.0**-40, 2.0**20])
    domain = Domain("x", "numeric", tuple("abcd"), points, np.ones(4, np.int64))
    plan = loss.plan((domain,), "ncp")
    own = Generalization.of(Records((domain,), np.arange(4, dtype=np.int32)[:, None]))
    lo, hi, _ = costs.unload(plan, costs.load(plan, own.lo, own.hi, own.bits))
    assert (lo[0] <= own.lo[0]).all()
    assert (hi[0] >= own.hi[0]).all()


def test_move_and_take() -> None:
    rng = np.random.default_rng(9)
    records = cost_cases.table(rng, 9, cost_cases.KINDS, [9] * 6)
    plan = loss.plan(records.domains, "entropy")
    own = Generalization.of(records)
    state = costs.load(plan, own.lo, own.hi, own.bits)
    index = np.array([0, 1, 7, 3, 4, 5, 6, 7, 8])
    for function in (costs.move, costs.move_jit):
        moved = copy_state(state)
        function(moved, 2, 7, state)
        assert_same(moved, take(state, index))


@given(st.integers(1, 2**40), st.floats(0, 1))
def test_bits_of_entropy(mass: int, share: float) -> None:
    mlog = share * mass * np.log2(mass)
    expected = max(np.log2(mass) - mlog / mass, 0.0)
    assert prices.bit_cost(1.0, float(mass), mlog) == pytest.approx(expected, abs=1e-12)
    assert prices.bit_cost(1.0, float(mass), mlog) == prices.bit_cost_jit(1.0, float(mass), mlog)
    assert prices.bit_cost(1.0, float(mass), mlog) % GRID == 0


def test_powers_of_two_have_exact_bits() -> None:
    assert [prices.bit_cost(1.0, 2.0**e, 0.0) for e in range(50)] == list(range(50))


@given(st.integers(1, 2**64 - 1))
def test_bits_of_words(word: int) -> None:
    assert popcount(np.uint64(word)) == word.bit_count()
    for function in (prices.lowest, prices.lowest_jit):
        assert function(np.uint64(word)) == (word & -word).bit_length() - 1


@pytest.mark.slow
def test_costs_are_simd() -> None:
    """The loops that decide the running time are made of vectors on every machine that has them."""
    rng = np.random.default_rng(1)
    records = cost_cases.table(rng, 3, cost_cases.KINDS, [5] * 6)
    plan = loss.plan(records.domains, "ncp")
    own = Generalization.of(records)
    state = costs.load(plan, own.lo, own.hi, own.bits)
    for plain in (row_costs.add_linear, row_costs.add_singles, row_costs.add_nodes):
        fresh = numba.njit(nogil=True, error_model="numpy")(plain)  # a cached one has no assembly to look at
        fresh(plan, state, 0, state, 0, 3, np.zeros(3))
        text = fresh.inspect_asm(fresh.signatures[0])
        assert re.search(r"addpd|fadd\s+v\d+\.2d", text), "no packed addition of doubles"


def test_the_switchboard_takes_plain_functions_and_one_subset_of_fast_math() -> None:
    with pytest.raises(ValueError, match="NO_NANS"):
        jit(costs.move, frozenset({"reassoc"}))
    with pytest.raises(ValueError, match="plain"):
        jit(costs.move_jit)
    assert frozenset({"nnan", "nsz"}) == NO_NANS
