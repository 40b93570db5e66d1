"""Bounds from prices of records: the linear relaxation itself on small tables, and below every optimum where a search is cut short."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.algorithms.freeform.optimal import optimal
from anonflow.algorithms.method import Partition
from anonflow.generalization import Generalization
from anonflow.kernels.costs import load
from anonflow.loss import MONOTONE, record_costs
from anonflow.table import Records, Table
from anonflow.utility import bounds
from anonflow.utility.record_prices import CoveredSets, PricedRecords, priced_total
from anonflow.utility.subject import part_of
from tests.cases.bounds import naive_cost, random_records
from tests.cases.plain_kernels import plainly
from tests.naive import bounds as naive
from tests.strategies import examples, loop, seeded, tables


def total(records: Records, k: int, measure: str, limit: int, covered: CoveredSets | None = None) -> float:
    """The bound from prices, from a search of some limit that begins with nothing but sets that a release covers."""
    weighted = bounds._WeightedRecords.of(records, k, measure)
    hidden = Generalization.of(weighted.records.take(np.zeros(1, int))).with_suppressed(np.ones(1, bool))
    whole = float(load(weighted.plan, hidden.lo, hidden.hi, hidden.bits).cost[0])
    priced = PricedRecords(weighted.plan, weighted.origin(), weighted.weight, k, whole / k)
    return priced_total(priced, np.zeros(len(weighted.weight)), limit, covered)


def relaxed(seed: int, measure: str) -> tuple[Records, int, naive.Cost, float]:
    """Random records, k, what it costs to cover some of them, and the optimum of the linear relaxation."""
    n, k = 5 + seed % 5, 2 + seed % 3
    records = random_records(seed, n)
    cost = naive_cost(records, measure)
    hidden = Generalization.of(records).with_suppressed(np.ones(n, bool))
    return records, k, cost, naive.least_fractional(cost, n, k, float(record_costs(hidden, measure)[0]))


@seeded(30, 6)
@loop("measure", MONOTONE)
def test_it_is_the_linear_relaxation_and_a_search_that_is_cut_short_is_below(
    measure: str, seeds: range
) -> None:
    for seed in seeds:
        records, k, _, least = relaxed(seed, measure)
        for limit in (0, 50, 300):
            assert total(records, k, measure, limit) <= least + 1e-9
        assert total(records, k, measure, 10**6) == pytest.approx(least, rel=1e-3, abs=1e-4)


@seeded(30, 4)
@loop("measure", MONOTONE)
def test_sets_that_any_release_covers_neither_raise_it_above_nor_keep_it_below(
    measure: str, seeds: range
) -> None:
    for seed in seeds:
        records, k, cost, least = relaxed(300 + seed, measure)
        rng = np.random.default_rng(seed)
        rows = np.array([rng.choice(records.n, k, replace=False) for _ in range(6)])
        label = bounds._WeightedRecords.of(records, k, measure).label
        # the search has to prove the prices even where a release's costs are wrong
        for wrong in (0.5, 1.0, 2.0):
            covered = CoveredSets(
                label[rows].astype(np.int32), wrong * np.array([cost(set_) for set_ in rows.tolist()])
            )
            for limit in (0, 50, 300):
                assert total(records, k, measure, limit, covered) <= least + 1e-9
            if wrong >= 1:
                priced = total(records, k, measure, 10**6, covered)
                assert priced == pytest.approx(least, rel=1e-3, abs=1e-4)


@seeded(20, 6)
@loop("measure", MONOTONE)
def test_never_above_an_optimum_found_by_trying_everything(measure: str, seeds: range) -> None:
    for seed in seeds:
        n = 4 + seed % 3
        records = random_records(200 + seed, n)
        cost = naive_cost(records, measure)
        hidden = Generalization.of(records).with_suppressed(np.ones(n, bool))
        whole = float(record_costs(hidden, measure)[0])
        for k in (2, 3):
            bound = bounds.lower_bound(records, k, measure, regular=True)
            assert bound is not None
            assert n * bound <= naive.least_classes(cost, n, k, whole) + 1e-10
            if n < 6:
                assert n * bound <= naive.least_regular(cost, n, k) + 1e-10


@examples(30)
@given(tables(min_n=3, max_n=8), st.data(), st.sampled_from(MONOTONE))
def test_never_above_the_optimal_method_nor_below_the_bound_of_all_releases(
    table: Table, data: st.DataObject, measure: str
) -> None:
    k = data.draw(st.integers(2, table.n))
    best = optimal(Partition(table.records, measure, np.random.default_rng(0)), k)
    least = record_costs(best.generalization, measure).mean()
    alike, regular = (bounds.lower_bound(table.records, k, measure, regular=way) for way in (False, True))
    assert alike is not None
    assert regular is not None
    assert alike - 1e-12 <= regular <= least + 1e-12


@examples(10)
@given(tables(min_n=2, max_n=7), st.data(), st.sampled_from(MONOTONE))
def test_plain_and_compiled_agree(table: Table, data: st.DataObject, measure: str) -> None:
    k = data.draw(st.integers(2, table.n))
    for limit in (30, 1_000):
        case = (table.records, k, measure, limit)
        assert total(*case) == plainly(total, *case)


def test_nobody_can_be_covered_in_place_of_others() -> None:
    # 4 has to be covered by two records, its own and that of a 0: each of them costs 0.4
    frame = pd.DataFrame({"a": [0, 0, 0, 4, 10, 10]})
    table = Table(frame, {"a": {"role": "quasi-identifier", "kind": "numeric"}})
    assert bounds.lower_bound(table.records, 2) == pytest.approx(0.4 / 6)
    assert bounds.lower_bound(table.records, 2, regular=True) == pytest.approx(0.8 / 6)
    anon = af.anonymize(table, "optimal", k=2)
    assert anon.loss() == pytest.approx(0.8 / 6)
    assert anon.lower_bound() == pytest.approx(0.8 / 6)
    bound = anon.lower_bound()
    assert af.measure(table, anon, "lower-bound") == pytest.approx(
        {"lower-bound": bound, "lower-bound-excess": 0.0}, abs=1e-9
    )
    # a bare generalization may be any
    assert af.measure(table, anon.generalization, "lower-bound", k=2) == pytest.approx(
        {"lower-bound": 0.4 / 6}
    )


def test_a_suppressed_record_costs_no_more_than_its_price() -> None:
    # three records would have the outlier's cost, so the outlier is suppressed
    frame = pd.DataFrame({"a": [0, 0, 0, 10]})
    table = Table(frame, {"a": {"role": "quasi-identifier", "kind": "numeric"}})
    assert bounds.lower_bound(table.records, 3) == pytest.approx(1 / 4)
    assert bounds.lower_bound(table.records, 3, regular=True) == pytest.approx(1 / 4)


def test_which_results_are_regular() -> None:
    table = Table(af.datasets.census_like(40, seed=2), af.datasets.schema("census_like"))
    for name in ("greedy", "k-member", "mondrian"):
        anon = af.anonymize(table, name, k=3)
        assert anon.is_regular
        assert bounds.is_regular(part_of(table.records, anon), 3)
        assert not bounds.is_regular(part_of(table.records, anon), 40)
    assert not af.anonymize(table, "k-concealment", k=3).is_regular


@loop("measure", MONOTONE)
def test_no_method_is_below(measure: str) -> None:
    table = af.Table(af.datasets.census_like(60, seed=4), af.datasets.schema("census_like"))
    for name in ("two-phase", "hungarian", "mondrian", "k-member"):
        anon = af.anonymize(table, name, k=4, loss=measure)
        alike, bound = bounds.lower_bound(table.records, 4, measure), anon.lower_bound()
        assert alike is not None
        assert bound is not None
        assert alike <= bound <= anon.loss(measure)
        assert bound > alike or measure == "suppressions", name


def test_what_a_release_covers_is_where_the_prices_of_a_large_table_begin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    handed: list[CoveredSets | None] = []

    def recorded(records: PricedRecords, start: np.ndarray, limit: int, covered: CoveredSets | None) -> float:
        handed.append(covered)
        return priced_total(records, start, limit, covered)

    monkeypatch.setattr(bounds, "priced_total", recorded)
    table = af.Table(af.datasets.census_like(60, seed=9), af.datasets.schema("census_like"))
    anon = af.anonymize(table, "two-phase", k=3, seed=0)
    small = anon.lower_bound()
    assert handed.pop() is None
    monkeypatch.setattr(bounds, "SEARCH", 1e5)
    monkeypatch.setattr(bounds, "LIMIT", 2_000)
    large = anon.lower_bound(effort=40)
    (covered,) = handed
    assert covered is not None
    cost, label = naive_cost(table.records, "ncp"), bounds._WeightedRecords.of(table.records, 3, "ncp").label
    assert anon.matches is not None
    originals = [sorted(label[row].tolist()) for row in anon.matches]
    assert sorted(covered.sets.tolist()) == sorted(map(list, {tuple(members) for members in originals}))
    first = {place: row for row, place in reversed(list(enumerate(label.tolist())))}
    costs = [cost([first[place] for place in members]) for members in covered.sets.tolist()]
    assert covered.cost == pytest.approx(costs)
    assert small is not None
    assert large is not None
    assert large == pytest.approx(small, rel=0.01)
    assert large < anon.loss()
