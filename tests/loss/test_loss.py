"""Information loss against its definitions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonflow import loss
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.hierarchy import Hierarchy
from anonflow.kernels.costs import load
from anonflow.loss.costs import ROUNDED, at_most_above, even_shares, excess_of, rounded_down
from anonflow.loss.registry import LOSSES
from anonflow.table.domain import Domain
from anonflow.table.records import Records
from tests.cases import costs as cost_cases
from tests.naive import loss as naive
from tests.strategies import loop


def _domain(kind: str, size: int, **more: object) -> Domain:
    points = np.arange(size, dtype=np.float64)
    return Domain("a", kind, tuple(map(str, range(size))), points, np.ones(size, np.int64), **more)  # type: ignore[arg-type]


def _runs(domain: Domain, *runs: tuple[int, int]) -> Generalization:
    lo, hi = np.array(runs, np.int32).T
    return Generalization((domain,), lo[None].copy(), hi[None].copy(), np.zeros((0, len(runs)), np.uint64))


@given(st.integers(0, 2**32), st.lists(st.sampled_from(cost_cases.KINDS), min_size=1, max_size=6))
def test_every_cell_costs_what_its_definition_says(seed: int, kinds: list[str]) -> None:
    rng = np.random.default_rng(seed)
    records = cost_cases.table(rng, 7, kinds, rng.choice([1, 2, 3, 9, 70], len(kinds)))
    generalization, rows = cost_cases.random_joins(rng, records)
    plain = cost_cases.attributes(records)
    for measure in loss.MEASURES:
        costs = loss.record_costs(generalization, measure)
        for j, row in enumerate(rows):
            expected = float(naive.join_cost(plain, records.codes, [i for i in row if i >= 0], measure))
            assert costs[j] == pytest.approx(expected, abs=1e-12)
        plan = loss.plan(records.domains, measure)
        priced = load(plan, generalization.lo, generalization.hi, generalization.bits).cost
        assert priced == pytest.approx(costs, abs=1e-6, rel=1.01 * ROUNDED), measure


@given(st.integers(0, 2**32), st.lists(st.sampled_from(cost_cases.KINDS), min_size=1, max_size=4))
def test_costs_that_are_equal_are_equal_in_a_plan(seed: int, kinds: list[str]) -> None:
    """To the last bit, and others are in the order of exact arithmetic."""
    rng = np.random.default_rng(seed)
    domains, columns = [], []
    for a, kind in enumerate(kinds):
        size = int(rng.choice([2, 3, 4, 6, 8]))
        codes = rng.integers(0, size, 12)
        points = np.sort(rng.choice(7, size, replace=False)) if size < 8 else np.arange(8)
        weight, unit = float(rng.choice([1.0, 2.0, 0.5, 0.1])), float(rng.choice([1, 10, 2500]))
        domains.append(cost_cases.domain_of(f"c{a}", kind, size, codes, rng, weight, points * unit / 10))
        columns.append(codes)
    records = Records(tuple(domains), np.ascontiguousarray(np.array(columns).T.astype(np.int32)))
    generalization, rows = cost_cases.random_joins(rng, records)
    plain = cost_cases.attributes(records)
    for attribute in plain:  # numbers and weights as they are written
        attribute.points = [round(10 * point) for point in attribute.points]
        attribute.weight = Fraction(str(attribute.weight))
    for measure in ("ncp", "lm", "height", "suppressions"):
        plan = loss.plan(records.domains, measure)
        cost = load(plan, generalization.lo, generalization.hi, generalization.bits).cost
        exact = [naive.join_cost(plain, records.codes, [i for i in row if i >= 0], measure) for row in rows]
        for i, j in combinations(range(12), 2):
            assert (cost[i] < cost[j], cost[i] > cost[j]) == (exact[i] < exact[j], exact[i] > exact[j])
        assert cost == pytest.approx(np.array([float(each) for each in exact]), abs=1e-9)


@loop(
    ("points", "steps"),
    [
        ([0, 3, 4, 5, 7], 7),
        ([-10, 10, 40, 30_000], 3_001),
        ([0.1, 0.3, 0.4], 3),
        ([1.25, 1.5, 2], 3),
        ([7], 0),
        ([0, 1 / 3, 1], 0),
        ([0, 1e300], 0),
        ([0, 1e-300], 0),
        ([2.0**60, 2.0**61], 0),
    ],
)
def test_numbers_lie_on_steps(points: list[float], steps: int) -> None:
    values = np.array(points, np.float64)
    domain = Domain("a", "numeric", tuple(map(str, points)), values, np.ones(len(points), np.int64))
    assert domain.steps == steps


def test_fine_numbers_are_priced_as_they_are() -> None:
    """A column with more steps than a plan keeps exact, beside one with few."""
    fine = Domain("pay", "numeric", ("0", "1", "99999"), np.array([0.0, 1, 99_999]), np.ones(3, np.int64))
    few = _domain("numeric", 8)
    release = Generalization(
        (fine, few),
        np.array([[0, 1], [3, 4]], np.int32),
        np.array([[1, 2], [4, 5]], np.int32),
        np.zeros((0, 2), np.uint64),
    )
    cost = load(loss.plan((fine, few)), release.lo, release.hi, release.bits).cost
    assert cost == pytest.approx(loss.record_costs(release), abs=1e-14)
    narrow = loss.plan((fine, few)).points[3:]
    assert len(set(np.diff(narrow).tolist())) == 1


def test_each_loss_of_a_numeric_cell_follows_its_definition() -> None:
    domain = Domain("age", "numeric", ("0", "10", "40"), np.array([0.0, 10, 40]), np.array([1, 1, 2]))
    release = _runs(domain, (0, 0), (0, 1), (1, 2), (0, 2))
    assert loss.cell_costs(release, "ncp")[0].tolist() == [0, 0.25, 0.75, 1]
    assert loss.cell_costs(release, "lm")[0].tolist() == [0, 0.5, 0.5, 1]
    assert loss.cell_costs(release, "height")[0].tolist() == [0, 0.25, 0.75, 1]
    assert loss.cell_costs(release, "suppressions")[0].tolist() == [0, 0, 0, 1]
    assert loss.cell_costs(release, "entropy")[0] == pytest.approx([0, 1, 0.9182958340544896, 1.5])


def test_a_missing_number_costs_the_whole_domain() -> None:
    domain = _domain("numeric", 5, has_missing=True)
    own = Generalization.of(Records((domain,), np.array([[-1], [2]], np.int32)))
    for measure in ("ncp", "lm", "height", "suppressions"):
        assert loss.record_costs(own, measure).tolist() == [1, 0]
    assert loss.record_costs(own, "em")[0] == pytest.approx(np.log2(5))


@loop("kind", ["numeric", "categorical", "suppression"])
@loop("measure", loss.MEASURES)
def test_a_domain_of_one_value_costs_nothing(kind: str, measure: str) -> None:
    tree = Hierarchy.suppression(["0"]) if kind == "suppression" else None
    own = Generalization.of(Records((_domain(kind, 1, hierarchy=tree),), np.zeros((3, 1), np.int32)))
    assert loss.information_loss(own, measure) == 0


def test_entropy_is_not_monotone() -> None:
    domain = Domain("a", "categorical", ("x", "y", "z"), np.arange(3.0), np.array([980, 10, 10]))
    bits = np.array([[0b110, 0b111]], np.uint64)
    none = np.zeros((0, 2), np.int32)
    two, three = loss.record_costs(Generalization((domain,), none, none, bits), "entropy")
    assert two == pytest.approx(1)
    assert three == pytest.approx(0.1614, abs=1e-4)


def test_heights_and_totals_of_a_hierarchy() -> None:
    tree = Hierarchy.from_nested({"*": {"deep": {"mid": {"a": None, "b": None}, "c": None}, "d": None}})
    domain = Domain("city", "hierarchy", tree.leaves, np.arange(4.0), np.ones(4, np.int64), hierarchy=tree)
    release = _runs(domain, (0, 0), (0, 1), (0, 2), (0, 3))
    assert loss.cell_costs(release, "il")[0] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert loss.cell_costs(release, "gcp")[0] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert loss.height_total(release) == pytest.approx(2)
    assert loss.suppressed_cells(release) == 1


def test_a_root_with_one_child_is_still_the_root() -> None:
    tree = Hierarchy.from_nested({"*": {"all": {"a": None, "b": None}}})
    domain = Domain("x", "hierarchy", tree.leaves, np.arange(2.0), np.ones(2, np.int64), hierarchy=tree)
    assert loss.cell_costs(_runs(domain, (0, 1)), "height")[0].tolist() == [1]


def test_weights_count_in_the_loss_and_not_in_the_height() -> None:
    first, second = _domain("numeric", 3, weight=3.0), _domain("categorical", 4)
    release = Generalization(
        (first, second), np.array([[0]], np.int32), np.array([[1]], np.int32), np.array([[0b0111]], np.uint64)
    )
    assert loss.information_loss(release) == pytest.approx((3 * 0.5 + 2 / 3) / 4)
    assert loss.height_total(release) == pytest.approx(1.5)


def test_the_widest_numbers() -> None:
    domain = Domain("x", "numeric", ("a", "b", "c"), np.array([-1.7e308, 0, 1.7e308]), np.ones(3, np.int64))
    assert loss.cell_costs(_runs(domain, (0, 1), (0, 2)))[0].tolist() == [0.5, 1]


def test_no_records_and_what_covers_nothing() -> None:
    domain = _domain("numeric", 3)
    assert loss.information_loss(Generalization.of(Records((domain,), np.zeros((0, 1), np.int32)))) == 0
    assert loss.information_loss(_runs(domain, (3, -1))) == 0


def test_the_order_of_columns_changes_no_share() -> None:
    """Not even where the parts of all columns together are too many, so that some columns share a unit and others another one."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        sizes, order = rng.integers(2, 400, 5).tolist(), rng.permutation(5)
        domains = [_domain("numeric", size, weight=float(rng.choice([0.5, 1, 2, 3]))) for size in sizes]
        for measure in LOSSES.values():
            shares = even_shares(domains, measure)
            assert shares[order].tolist() == even_shares([domains[a] for a in order], measure).tolist()


def test_bounds_are_shown_rounded_to_the_safe_side() -> None:
    for thousandths in range(2001):
        excess, bound = excess_of(thousandths / 1000, 0.5), rounded_down(thousandths / 7000)
        assert excess is not None
        assert bound is not None
        assert excess == pytest.approx(max(thousandths / 500 - 1, 0))
        percent = int(at_most_above(excess).removeprefix("at most ").removesuffix("%"))
        assert percent - 1 < 100 * excess <= percent
        assert bound <= thousandths / 7000 < bound + 1.0001e-4
    assert excess_of(0.3, 0.0) is None
    assert at_most_above(None) == ""
    assert rounded_down(None) is None


def test_names_of_losses_have_aliases() -> None:
    assert [loss.measure_named(name) for name in ("gcp", "em", "il", "lm")] == [
        "ncp",
        "entropy",
        "height",
        "lm",
    ]
    with pytest.raises(ParameterError, match="did you mean 'entropy'"):
        loss.measure_named("entrpy")
    with pytest.raises(ParameterError):
        loss.measure_named(None)  # type: ignore[arg-type]


def test_entropy_of_large_sets_is_counted_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    records = cost_cases.table(rng, 60, ["categorical"], [200])
    generalization, _ = cost_cases.random_joins(rng, records)
    whole = loss.record_costs(generalization, "entropy")
    monkeypatch.setattr("anonflow.loss.entropy._CHUNK", 1)
    assert np.array_equal(loss.record_costs(generalization, "entropy"), whole)


def test_a_loss_without_a_naive_reference_or_a_price_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who adds a loss reads what else it needs."""
    attribute = naive.Attribute("set", 3, [0, 1, 2], [1, 1, 1])
    with pytest.raises(LookupError, match=r"half-lm has no naive reference: .* tests.naive.loss.cell_cost"):
        naive.cell_cost(attribute, {0, 1}, "half-lm")
    plain = LOSSES["lm"]
    for cell, kind in (("run", "numeric"), ("set", "categorical")):
        odd = replace(
            plain,
            range_form=lambda domain, share, pools: (99, 0, 0.0, domain.points),
            set_form=lambda domain, share, pools: (99, 0, 0.0, 0),
        )
        monkeypatch.setitem(LOSSES, "lm", odd)
        with pytest.raises(ParameterError, match=f"lm: the kernels have no form 99 of a {cell}'s price"):
            loss.plan((_domain(kind, 3),), "lm")
