"""Optimal against brute force, against min-cost flow, and against its own bound."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.algorithms.freeform.min_cost_flow import min_cost_flow_matches
from anonflow.algorithms.freeform.optimal import optimal
from anonflow.algorithms.freeform.optimal_model import all_sets, as_matches, near_sets, positions
from anonflow.algorithms.freeform.two_phase import two_phase_matches
from anonflow.algorithms.method import Partition
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.costs import load
from anonflow.kernels.state import GRID
from anonflow.table import Table
from tests.cases import costs as cost_cases
from tests.cases.bounds import naive_cost, random_records
from tests.cases.freeform import MEASURES, assert_regular, part_of, total
from tests.cases.plain_kernels import KERNELS
from tests.checks import Ticks, check_result
from tests.naive import bounds as naive
from tests.strategies import examples, loop, seeded, tables


def census(n: int, seed: int = 0) -> Table:
    return Table(af.datasets.census_like(n, seed=seed), af.datasets.schema("census_like"))


@seeded(25, 9)
@loop("measure", MEASURES)
def test_nothing_is_better(measure: str, seeds: range) -> None:
    """Every kind of QI, every loss, entropy too, which may fall when more is covered."""
    for seed in seeds:
        n = 3 + seed % 3
        records = random_records(200 + seed, n)
        cost = naive_cost(records, measure)
        for k in range(2, n + 1):
            part = Partition(records, measure, np.random.default_rng(seed))
            best = optimal(part, k)
            assert best.facts["proven"]
            assert best.matches is not None
            assert_regular(best.matches)
            assert best.facts["cost"] == pytest.approx(naive.least_regular(cost, n, k), abs=1e-6)


@examples(25)
@given(tables(min_n=2, max_n=9), st.data(), st.sampled_from(MEASURES))
def test_k_of_two_is_a_minimum_cost_flow(table: Table, data: st.DataObject, measure: str) -> None:
    part = part_of(table, measure)
    best = optimal(part, 2)
    assert best.facts["proven"]
    assert best.facts["cost"] == pytest.approx(
        total(table, min_cost_flow_matches(part, 2), measure), abs=1e-6
    )


@examples(25)
@given(tables(min_n=2, max_n=9), st.data(), st.sampled_from(MEASURES))
def test_facts_are_those_of_the_result(table: Table, data: st.DataObject, measure: str) -> None:
    k = data.draw(st.integers(2, table.n))
    best = optimal(part_of(table, measure), k)
    facts = best.facts
    assert best.matches is not None
    assert_regular(best.matches)
    assert facts["cost"] == pytest.approx(total(table, best.matches, measure), abs=1e-6)
    assert 0 <= facts["lower_bound"] <= facts["cost"] <= facts["start"]
    assert facts["proven"] == (facts["gap"] == 0)
    again = optimal(part_of(table, measure), k)
    assert again.matches is not None
    assert (again.matches == best.matches).all()


@loop("measure", MEASURES)
@loop("kernels", KERNELS)
def test_sets_cost_what_their_joins_cost(measure: str, kernels: Any) -> None:
    for seed in range(10):
        records = random_records(300 + seed, 6)
        part = Partition(records, measure, np.random.default_rng(0))
        own = Generalization.of(records)
        origin = load(part.plan, own.lo, own.hi, own.bits)
        cost = naive_cost(records, measure)
        with kernels():
            sets = all_sets(part.plan, origin, 3)
        assert len(sets.cost) == math.comb(6, 3)
        expected = [cost(row) for row in sets.members.tolist()]
        assert sets.cost * GRID == pytest.approx(expected, abs=1e-6)


def test_sets_of_near_records_hold_the_start_and_grow_to_all_of_them() -> None:
    part = part_of(census(9))
    own = Generalization.of(part.records)
    origin = load(part.plan, own.lo, own.hi, own.bits)
    matches, _ = two_phase_matches(part, 3)
    cost = total(census(9), matches, "ncp")
    for room in (0, 40, 10_000):
        sets = near_sets(part.plan, origin, 3, matches, room)
        copies = positions(sets, matches)
        assert sum(copies.values()) == 9
        assert sum(int(sets.cost[s]) * times for s, times in copies.items()) * GRID == pytest.approx(cost)
        assert_regular(as_matches(sets, copies))
    assert len(sets.cost) == math.comb(9, 3)


def test_bounds_hold_whatever_the_prices() -> None:
    part = part_of(census(8, seed=2))
    own = Generalization.of(part.records)
    sets = all_sets(part.plan, load(part.plan, own.lo, own.hi, own.bits), 3)
    best = round(optimal(part, 3).facts["cost"] / GRID)
    rng = np.random.default_rng(0)
    for _ in range(200):
        prices = rng.integers(-(2**46), 2**47, 8)
        assert sets.lagrangian(prices, sets.reduced(prices)) <= best


@loop("k", [2, 3, 5])
def test_fourteen_records_in_seconds(k: int) -> None:
    table = census(14, seed=k)
    anon = af.anonymize(table, "optimal", k=k, time_limit=60)
    check_result(anon)
    assert anon.facts["proven"]
    for other in ("hungarian", "two-phase", "greedy", "min-cost-flow"):
        assert anon.loss() <= af.anonymize(table, other, k=k, seed=1).loss() + 1e-12
    bound = anon.lower_bound()
    assert bound is not None
    assert bound <= anon.loss()


def test_partitions_add_up() -> None:
    table = census(40)
    anon = af.anonymize(table, "optimal", k=3, partition_size=10)
    check_result(anon)
    assert anon.facts["proven"]
    assert anon.facts["gap"] == 0
    assert anon.facts["cost"] == pytest.approx(anon.loss() * table.n)


@pytest.mark.parametrize("limit", [0, 0.2, pytest.param(1, marks=pytest.mark.slow)])
@loop("measure", ["ncp", "entropy"])
def test_a_limit_is_kept_and_the_start_is_never_lost(limit: float, measure: str, ticks: Ticks) -> None:
    begin = ticks.now
    best = optimal(part_of(census(150, seed=1), measure), 6, time_limit=limit)
    assert ticks.now - begin < limit + 10 * ticks.tick, "few looks at the clock follow the limit"
    assert best.matches is not None
    assert_regular(best.matches)
    facts = best.facts
    assert not facts["proven"]
    assert facts["lower_bound"] <= facts["cost"] <= facts["start"]
    assert (facts["lower_bound"] > 0) == (measure == "ncp")
    assert facts["gap"] == pytest.approx(1 - facts["lower_bound"] / facts["cost"])


@pytest.mark.slow
@loop(("n", "k"), [(70, 4), (120, 4)])
def test_where_nothing_is_proved_no_more_is_lost_than_by_two_phase(n: int, k: int) -> None:
    table = census(n, seed=1)
    ours = af.anonymize(table, "optimal", k=k, seed=5, time_limit=1.0)
    assert not ours.facts["proven"]
    two_phase = af.anonymize(table, "two-phase", k=k, seed=5)
    assert ours.facts["start"] == pytest.approx(two_phase.loss() * n)
    assert ours.loss() <= two_phase.loss() + 1e-12


def test_a_gap_is_enough() -> None:
    records = cost_cases.table(
        np.random.default_rng(3), 14, ["numeric", "categorical"] * 3, [9, 5, 9, 4, 9, 7]
    )
    part = Partition(records, "ncp", np.random.default_rng(0))
    exact, rough = optimal(part, 6), optimal(part, 6, gap=0.2)
    assert exact.facts["proven"]
    assert rough.facts["gap"] <= 0.2
    assert rough.facts["cost"] >= exact.facts["cost"]
    assert rough.facts["lower_bound"] <= exact.facts["cost"] + 1e-9


def test_everybody_among_everybody_and_too_few() -> None:
    table = census(6)
    anon = af.anonymize(table, "optimal", k=6)
    check_result(anon)
    assert anon.facts["proven"]
    with pytest.raises(InfeasibleError):
        af.anonymize(table, "optimal", k=7)


def test_equal_records_cost_nothing() -> None:
    table = Table(pd.DataFrame({"a": [7] * 9}), {"a": {"role": "quasi-identifier", "kind": "numeric"}})
    anon = af.anonymize(table, "optimal", k=4)
    assert anon.facts["cost"] == 0
    assert anon.facts["proven"]


@loop("option", [{"time_limit": -1}, {"time_limit": True}, {"gap": 1}, {"gap": "no"}])
def test_time_limits_and_gaps_outside_their_domain_are_refused(option: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match=next(iter(option))):
        af.anonymize(census(5), "optimal", k=2, **option)  # type: ignore[arg-type]


def test_too_large_a_partition_is_refused() -> None:
    with pytest.raises(ParameterError, match="partition_size of 1000 at most"):
        af.anonymize(census(1_001), "optimal", k=2)


@pytest.mark.data
@pytest.mark.parametrize("sample", [0, *(pytest.param(sample, marks=pytest.mark.slow) for sample in (1, 2))])
def test_adult_samples_are_proved(sample: int, data_folder: object) -> None:
    frame = af.datasets.adult(complete=True)
    schema = af.datasets.schema("adult")
    rng = np.random.default_rng(sample)
    for n, ks in ((8, (2, 3, 4, 5)), (14, (2, 4, 6))):
        rows = frame.iloc[rng.choice(len(frame), n, replace=False)].reset_index(drop=True)
        table = Table(rows, {c: e for c, e in schema.items() if c in rows.columns})
        for k in ks:
            anon = af.anonymize(table, "optimal", k=k)
            assert anon.facts["proven"]
            if k == 2:
                flow = af.anonymize(table, "min-cost-flow", k=2)
                assert anon.loss() == pytest.approx(flow.loss(), abs=1e-8)


SOLVED = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell starts this in the background
from ortools.sat.python import cp_model
from anonflow.algorithms.freeform.column_generation import solver_of
from anonflow.kernels.jit import method_clock
model = cp_model.CpModel()
model.maximize(model.new_int_var(0, 9, "x"))
solver_of(model, method_clock() + 60.0, 0.0)
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_still_reaches_python_after_a_solver() -> None:
    """CP-SAT took the signal for itself, and gave it back to nobody: the next Ctrl-C ended a notebook's kernel."""
    ended = subprocess.run([sys.executable, "-c", SOLVED], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "interrupted\n")
