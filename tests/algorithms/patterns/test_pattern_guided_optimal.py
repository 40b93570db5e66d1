"""pattern-guided-optimal: against every solution there is, the paper's tables, Theorem 4's family."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow import datasets
from anonflow.algorithms.patterns import row_choices
from anonflow.algorithms.patterns.integer_program import _in_time, improved
from anonflow.algorithms.patterns.row_choices import RowChoices, choices_of
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.kernels.jit import method_clock
from tests.cases.patterns import (
    ADULT_2,
    TABLE_6,
    TABLE_7,
    TABLE_8,
    best,
    every_row_follows,
    nursery,
    pattern_masks,
    scenario,
    table,
)
from tests.naive.row_choices import least_cost
from tests.strategies import EVERYTHING, examples, loop, seeded


@examples(60)
@given(
    st.lists(
        st.tuples(*[st.sampled_from("xy"), st.sampled_from("xyz"), st.sampled_from("xy")]),
        min_size=2,
        max_size=6,
    ),
    st.integers(2, 3),
    st.lists(
        st.sampled_from(["000", "001", "010", "100", "011", "101"]), min_size=1, max_size=3, unique=True
    ),
    st.tuples(*[st.sampled_from([1, 1, 2])] * 3),
)
def test_no_solution_is_better(
    rows: list[tuple[str, ...]], k: int, patterns: list[str], weights: tuple[int, ...]
) -> None:
    if len(rows) < k:
        return
    coded = table(pd.DataFrame(rows, columns=["a", "b", "c"]))
    parameters: dict[str, Any] = {"patterns": patterns, "weights": dict(zip("abc", weights, strict=True))}
    anon = af.anonymize(coded, "pattern-guided-optimal", k=k, **parameters)
    optimum = best(rows, k, patterns, list(weights))
    assert anon.facts["proven"] is True
    assert anon.facts["cost"] == anon.facts["lower_bound"] == optimum
    heuristic = af.anonymize(coded, "pattern-guided", k=k, **parameters)
    assert heuristic.facts["cost"] == anon.facts["heuristic"] >= optimum
    assert af.verify(coded, anon, ["covers", "k-anonymity", "pattern"], k=k)
    stopped = af.anonymize(coded, "pattern-guided-optimal", k=k, **parameters, time_limit=0)
    assert stopped.facts["lower_bound"] <= optimum <= stopped.facts["cost"] == stopped.facts["heuristic"]


@examples(150)
@given(
    st.lists(
        st.tuples(*[st.sampled_from("xy"), st.sampled_from("xyz"), st.sampled_from("xy")]),
        min_size=2,
        max_size=6,
    ),
    st.integers(2, 3),
    st.lists(
        st.sampled_from(["000", "001", "010", "100", "011", "101", "111"]),
        min_size=1,
        max_size=4,
        unique=True,
    ),
    st.tuples(*[st.sampled_from([1, 1, 2])] * 3),
)
def test_no_solution_is_better_where_every_row_follows_a_pattern(
    rows: list[tuple[str, ...]], k: int, patterns: list[str], weights: tuple[int, ...]
) -> None:
    if len(rows) < k:
        return
    coded = table(pd.DataFrame(rows, columns=["a", "b", "c"]))
    parameters: dict[str, Any] = {
        "patterns": patterns,
        "weights": dict(zip("abc", weights, strict=True)),
        "fallback": "strict",
    }
    optimum = best(rows, k, patterns, list(weights), strict=True)
    if optimum is None:
        with pytest.raises(InfeasibleError, match=r"agrees? with fewer than k|there is no way for every row"):
            af.anonymize(coded, "pattern-guided-optimal", k=k, **parameters)
    else:
        anon = af.anonymize(coded, "pattern-guided-optimal", k=k, **parameters)
        assert anon.facts["proven"] is True
        assert anon.facts["cost"] == anon.facts["lower_bound"] == optimum
        assert anon.facts["rows_without_pattern"] == 0
        assert anon.suppressed.sum() == 0 or ("111" in patterns and anon.suppressed.sum() >= k)
        assert af.verify(coded, anon, ["covers", "k-anonymity", "pattern"], k=k)
    for local_search in (False, True):
        try:
            heuristic = af.anonymize(coded, "pattern-guided", k=k, **parameters, local_search=local_search)
        except InfeasibleError:
            assert "111" not in patterns  # else all rows could be suppressed, or join a class
            continue
        assert optimum is not None
        assert heuristic.facts["cost"] >= optimum
        assert heuristic.facts["rows_without_pattern"] == 0
        assert af.verify(coded, heuristic, ["covers", "k-anonymity", "pattern"], k=k)


def test_what_goes_wrong_in_a_solver_is_not_taken_for_want_of_time() -> None:
    def no_room() -> None:
        raise MemoryError

    with pytest.raises(MemoryError):
        _in_time(method_clock() + 60, no_room)
    assert _in_time(method_clock() - 60, threading.Event().wait) is None
    assert _in_time(method_clock() + 60, lambda: 3) == 3


def test_rows_that_no_instance_joins_are_parts_of_their_own() -> None:
    """Eight values of a QI that is never hidden: eight programs, the sum of whose optima is the optimum."""
    rng = np.random.default_rng(5)
    cells = {"own": np.repeat(list("abcdefgh"), 9), **{name: rng.choice(list("xyz"), 72) for name in "pqr"}}
    frame = pd.DataFrame(cells)
    parameters: dict[str, Any] = {"k": 3, "patterns": {"never": ["own"]}}
    whole = af.anonymize(table(frame), "pattern-guided-optimal", **parameters).facts
    costs = []
    for _, part in frame.groupby("own"):
        coded = table(part.reset_index(drop=True))
        alone = af.anonymize(coded, "pattern-guided-optimal", **parameters).facts
        assert alone["proven"] is True
        costs.append(alone["cost"])
    assert whole["proven"] is True
    assert whole["cost"] == sum(costs)
    records = table(frame).records
    masks = pattern_masks(records.domains, parameters["patterns"])
    parts = choices_of(records, masks, np.bitwise_count(masks).astype(np.int64), None, 3).components()
    own = records.codes[:, 0]
    types = np.unique(records.codes, axis=0)
    assert len(np.unique(parts)) == len(np.unique(own)) == 8
    assert len(parts) == len(types)


@loop("m", [3, 4, 5])
def test_theorem_4_the_heuristic_loses_a_factor_of_m_less_one(m: int) -> None:
    frame = datasets.theorem4(m)
    patterns = [list(pattern) for pattern in datasets.theorem4_patterns(m)]
    anon = af.anonymize(table(frame), "pattern-guided-optimal", k=m, patterns=patterns)
    assert anon.facts["proven"] is True
    assert anon.facts["cost"] == m**2
    assert anon.facts["heuristic"] == (m - 1) * m**2
    assert anon.facts["gap"] == 0


@pytest.mark.parametrize("k", [pytest.param(k, marks=[pytest.mark.slow] * (k != 25)) for k in TABLE_6])
def test_nursery_table_6(k: int) -> None:
    """The cheapest feasible pattern of each row proves the heuristic optimal."""
    anon = af.anonymize(nursery(), "pattern-guided-optimal", k=k)
    assert anon.facts["proven"] is True
    assert anon.facts["suppressed_entries"] == anon.facts["lower_bound"] == TABLE_6[k]


@pytest.mark.data
@pytest.mark.parametrize(
    "k", [pytest.param(k, marks=() if k in (10, 25, 100) else pytest.mark.slow) for k in TABLE_7]
)
def test_cmc_is_solved(k: int, data_folder: object) -> None:
    """57 patterns: Table 7, both columns; the heuristic meets the optimum from k = 25 on."""
    result, patterns = scenario("cmc")
    facts = af.anonymize(result, "pattern-guided-optimal", k=k, patterns=patterns, time_limit=3600).facts
    assert facts["proven"] is True
    assert (facts["heuristic"], facts["cost"]) == TABLE_7[k]


@pytest.mark.slow
@pytest.mark.data
@loop("k", [*([2] * EVERYTHING), 25, 100])
def test_adult_2_with_its_four_constraints_table_8(k: int, data_folder: object) -> None:
    """Every row follows a pattern. The printed optimum is within a relative gap of 0.0001, its solver's default."""
    result, predicates = scenario("adult-2")
    patterns = every_row_follows(predicates, ADULT_2)
    parameters: dict[str, Any] = {"k": k, "patterns": patterns, "time_limit": 3600}
    anon = af.anonymize(result, "pattern-guided-optimal", **parameters)
    facts = anon.facts
    assert (1 - 1e-4) * TABLE_8[k][1] <= facts["cost"] <= TABLE_8[k][1]
    assert facts["cost"] == facts["suppressed_entries"]
    assert facts["proven"] is True
    assert facts["lower_bound"] <= facts["cost"] <= facts["local_search"] <= facts["heuristic"]
    assert facts["gap"] == pytest.approx(1 - facts["lower_bound"] / facts["cost"])
    assert af.verify(result, anon, ["covers", "k-anonymity", "pattern"], k=k)


@loop("limit", [-1, "10", True, float("nan")])
def test_time_limits_that_are_no_seconds_are_refused(limit: Any) -> None:
    coded = table(pd.DataFrame({"a": ["x", "x"]}))
    with pytest.raises(ParameterError, match="time_limit"):
        af.anonymize(coded, "pattern-guided-optimal", k=2, time_limit=limit)


def test_partitions_add_up() -> None:
    frame = pd.DataFrame({"a": list("xxyyzzxxyyzz"), "b": list("uvuvuvuvuvuv")})
    anon = af.anonymize(table(frame), "pattern-guided-optimal", k=2, partition_size=4)
    assert anon.facts["proven"] is True
    assert anon.facts["gap"] == 0
    assert anon.facts["cost"] == anon.facts["suppressed_entries"]


def test_the_enumerations_are_gone_with_a_sentence() -> None:
    frame = pd.DataFrame({"a": list("xxyyxy"), "b": list("uvuvuv")})
    with pytest.raises(ParameterError, match="'exact' is gone; leave it out: the integer program proves"):
        af.anonymize(table(frame), "pattern-guided-optimal", k=2, exact="two")


def least(choices: RowChoices) -> int:
    """The optimum of the paper's program, with all choices in it."""
    return least_cost(choices.rows, choices.kind, choices.instance, choices.cost, choices.k)


def small_choices(seed: int, free: bool, k: int = 2) -> Any:
    """The choices of 8 rows of three columns, under five patterns; with suppression without k rows, if free."""
    rng = np.random.default_rng(seed)
    records = table(pd.DataFrame({name: rng.choice(list("xyz"), 8) for name in "abc"})).records
    masks = pattern_masks(records.domains, ["001", "010", "100", "011", "111"])
    return choices_of(records, masks, np.bitwise_count(masks).astype(np.int64), 3 if free else None, k)


@seeded(12, 2)
@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("most", [0, row_choices.COMPARED])
def test_instances_within_cheaper_ones_are_not_needed(
    free: bool, most: int, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_choices, "COMPARED", most)
    dropped = 0
    for seed in seeds:
        choices = small_choices(seed, free)
        left = choices.part(np.arange(len(choices.kind)))
        left.drop_dominated()
        dropped += len(choices.kind) - len(left.kind)
        fewer = left.part(np.arange(len(left.kind)))  # instances are numbered anew
        assert least(choices) == least(fewer)
    assert dropped > 0


def test_only_an_instance_of_the_same_or_more_rows_makes_another_needless() -> None:
    """Rows 0 and 1 share two instances; the dearer goes, not the one with a third row, nor suppression."""
    kind = np.array([0, 1, 0, 1, 0, 1, 2, 0, 1, 2])
    instance = np.array([0, 0, 1, 1, 2, 2, 2, -1, -1, -1])
    cost = np.array([1, 1, 2, 2, 3, 3, 3, 4, 4, 4])
    choices = RowChoices(2, np.arange(3), np.ones(3, np.int64), kind, instance, instance, cost)
    choices.drop_dominated()
    assert choices.instance.tolist() == [0, 0, 2, 2, 2, -1, -1, -1]


@seeded(20, 3)
@loop("free", [True, False])
def test_the_integer_program_finds_the_least_without_a_start(free: bool, seeds: range) -> None:
    solved = 0
    for seed in seeds:
        choices = small_choices(seed, free)
        amount, bound = improved(choices, None, method_clock() + 60)
        if amount is None:
            assert not free
            continue
        solved += 1
        assert (amount >= 0).all()
        assert (np.bincount(choices.kind, amount, minlength=len(choices.rows)) == choices.rows).all()
        inside = choices.instance >= 0
        sizes = np.bincount(choices.instance[inside], amount[inside])
        assert ((sizes == 0) | (sizes >= choices.k)).all()
        assert bound == least(choices) == choices.cost_of(amount)
    assert solved
