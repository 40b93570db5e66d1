"""Greedy: against the algorithm spelled out, its dead ends, its guarantee, and its results on Adult."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow import loss
from anonflow.algorithms.freeform.greedy import GREEDY, greedy, greedy_matches, greedy_together, spread
from anonflow.algorithms.method import Outcome, Partition
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels import greedy as kernels
from anonflow.partition import lexicographic_order
from anonflow.table.records import Records
from tests.cases import costs as cost_cases
from tests.cases.freeform import DYADIC, UNEVEN, dyadic
from tests.cases.plain_kernels import plainly
from tests.cases.tables import adult
from tests.naive import greedy as naive_greedy
from tests.naive import loss as naive_loss
from tests.strategies import loop


def partition(records: Records, measure: str = "ncp") -> Partition:
    return Partition(records, measure, np.random.default_rng(0))


def assert_k_regular(matches: np.ndarray, k: int) -> None:
    n = len(matches)
    assert matches.shape == (n, k)
    assert np.array_equal(matches[:, 0], np.arange(n))
    for column in matches.T:  # every column is an assignment
        assert np.array_equal(np.sort(column), np.arange(n))
    assert all(len(set(row)) == k for row in matches.tolist())


def assert_good(records: Records, outcome: Outcome, k: int) -> None:
    assert outcome.matches is not None
    assert_k_regular(outcome.matches, k)
    own = Generalization.of(records)
    for column in outcome.matches.T:
        assert outcome.generalization.covers(own.take(column)).all()


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 4]), st.integers(2, 14), st.booleans())
def test_it_agrees_with_a_plain_implementation(seed: int, q: int, n: int, uneven: bool) -> None:
    """Also where costs are equal in exact arithmetic only."""
    rng = np.random.default_rng(seed)
    kinds = UNEVEN if uneven else DYADIC
    records = dyadic(rng, n, rng.integers(0, len(kinds), q).tolist(), kinds)
    k = int(rng.integers(1, (n + 2) // 2 + 1))  # k < (n + 3) / 2: Theorem 5.2 says backtracking is enough
    plain = cost_cases.attributes(records)

    @cache
    def cost(rows: frozenset[int]) -> Fraction:
        return Fraction(naive_loss.join_cost(plain, records.codes, sorted(rows), "ncp"))

    order = lexicographic_order(records).tolist()
    visits = {"lexicographic": order, "spread": [order[at] for at in halves(n)], "input": list(range(n))}
    for visit, visited in visits.items():
        expected, dead = naive_greedy.greedy(cost, visited, k)
        matches, facts = greedy_matches(partition(records), k, visit=visit)
        assert matches.tolist() == expected
        assert facts.tolist() == [dead, 0]


def test_of_two_that_cost_the_same_the_lowest_is_taken() -> None:
    """3 and 5 cost 4 one seventh each; 4/7 - 3/7 is not 5/7 - 4/7 in floating point."""
    frame = pd.DataFrame({"a": [0, 0, 3, 4, 5, 7]})
    table = af.Table(frame, {"a": {"role": "quasi-identifier", "kind": "numeric"}})
    matches, _ = greedy_matches(partition(table.records), 2, visit="lexicographic")
    holder = {match: record for record, match in enumerate(matches[:, 1].tolist())}
    assert holder == {0: 1, 1: 0, 2: 3, 3: 2, 4: 5, 5: 4}


@pytest.mark.parametrize("visit", ["spread", "lexicographic", "input"])
@given(seed=st.integers(0, 2**32), sizes=st.lists(st.integers(2, 9), min_size=1, max_size=6))
def test_partitions_in_one_call_have_what_each_has_alone(visit: Any, seed: int, sizes: list[int]) -> None:
    """Also where dead ends are resolved, which small partitions have."""
    rng = np.random.default_rng(seed)
    records = dyadic(rng, sum(sizes), rng.integers(0, len(UNEVEN), 2).tolist(), UNEVEN)
    k = int(rng.integers(1, min(sizes) + 1))
    starts = np.cumsum([0, *sizes])
    together = greedy_together(partition(records), starts, k, visit=visit)
    assert together is not None
    for start, stop, outcome in zip(starts, starts[1:], together, strict=False):
        alone = greedy(partition(records.take(np.arange(start, stop))), k, visit=visit)
        assert outcome.facts == alone.facts
        assert outcome.matches is not None
        assert alone.matches is not None
        assert outcome.matches.tolist() == alone.matches.tolist()
        for array in ("lo", "hi", "bits"):
            assert np.array_equal(
                getattr(outcome.generalization, array), getattr(alone.generalization, array)
            )


def test_reciprocal_partitions_are_solved_one_after_the_other() -> None:
    records = dyadic(np.random.default_rng(0), 12, [0])
    assert greedy_together(partition(records), np.array([0, 6, 12]), 3, reciprocal=True) is None


def halves(n: int) -> list[int]:
    """0, then the halves of the next power of two, its quarters, its eighths, ... below n."""
    bits = (n - 1).bit_length()
    return [at for i in range(2**bits) if (at := int(f"{i:0{bits or 1}b}"[::-1], 2)) < n]


@given(st.integers(1, 400))
def test_who_chooses_next_is_far_away(n: int) -> None:
    order = spread(n)
    assert sorted(order.tolist()) == list(range(n))
    if n > 4:
        assert np.abs(np.diff(order)).min() >= n / 8


@pytest.mark.slow
@pytest.mark.data
def test_spread_visits_lose_less(data_folder: Path) -> None:
    for k in (5, 10):
        spread_out, in_line = (
            af.anonymize(adult(data_folder), "greedy", k=k, partition_size=250, visit=visit).loss("gcp")
            for visit in ("spread", "lexicographic")
        )
        assert spread_out < 0.93 * in_line


def test_records_come_in_the_order_of_their_partition() -> None:
    """The table's order, or lexicographic: then it is the visit of this name."""
    frame = pd.DataFrame({"a": np.random.default_rng(3).permutation(60)})
    table = af.Table(frame, {"a": {"role": "quasi-identifier", "kind": "numeric"}})
    cells = {
        (order, visit): af.anonymize(table, "greedy", k=4, order=order, visit=visit).frame()["a"].tolist()
        for order in ("lexicographic", "input")
        for visit in ("lexicographic", "input")
    }
    assert cells["lexicographic", "input"] == cells["lexicographic", "lexicographic"]
    assert cells["input", "input"] != cells["input", "lexicographic"]


def test_an_unknown_order_of_visits_is_refused() -> None:
    with pytest.raises(ParameterError, match="greedy: visit must be one of spread, lexicographic, input"):
        GREEDY.check_options({"visit": "random"})


@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from(cost_cases.KINDS), min_size=1, max_size=4),
    st.sampled_from(loss.MEASURES),
)
def test_plain_and_compiled_agree(seed: int, kinds: list[str], measure: str) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 13))
    records = cost_cases.table(rng, n, kinds, rng.choice([1, 2, 5, 70], len(kinds)))
    k = int(rng.integers(1, n + 1))
    part = partition(records, measure)
    matches, facts = greedy_matches(part, k)
    again, same = plainly(greedy_matches, part, k)
    assert np.array_equal(matches, again)
    assert np.array_equal(facts, same)
    assert_good(records, greedy(part, k), k)


@loop("n", [1, 2, 3, 4, 5, 7, 12, 33])
def test_every_k_up_to_n(n: int) -> None:
    records = cost_cases.table(np.random.default_rng(n), n, ["numeric", "categorical"], [9, 4])
    for k in range(1, n + 1):
        outcome = greedy(partition(records), k)
        assert_good(records, outcome, k)
        if k < (n + 3) / 2:
            assert outcome.facts["augmented"] == 0  # Theorem 5.2
    assert outcome.generalization.classes().max() == 0  # k = n: everybody covers everybody


def test_a_dead_end_is_resolved_by_backtracking() -> None:
    # In the second assignment 0 takes 1, 1 takes 0, and 2 is left with nothing but its own record.
    domain = cost_cases.domain_of(
        "x", "numeric", 3, np.arange(3), np.random.default_rng(0), points=np.array([0, 1, 9])
    )
    records = Records((domain,), np.arange(3, dtype=np.int32)[:, None])
    outcome = greedy(partition(records), 2, visit="lexicographic")
    assert outcome.facts == {"backtracked": 1, "augmented": 0}
    assert outcome.matches is not None
    # 1 hands record 0 over to 2 and takes the record that is left
    assert outcome.matches.tolist() == [[0, 2], [1, 0], [2, 1]]


def test_a_dead_end_beyond_the_bound_is_resolved_by_an_augmenting_path() -> None:
    total = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(5, 9))
        records = cost_cases.table(rng, n, ["numeric", "numeric"], [n, n])
        outcome = greedy(partition(records), n - 1)
        assert_good(records, outcome, n - 1)
        total += outcome.facts["augmented"]
    assert total > 0


@loop("function", [kernels.augment, kernels.augment_jit])
def test_an_augmenting_path_moves_two_originals(function: Callable[..., Any]) -> None:
    # original 2 may only take record 0, which original 0 holds; 0 may only move to 1, and its holder 1 to 2
    taken = np.array([[2, -1], [0, -1], [1, 2]], np.int32)
    chosen = np.array([0, 1, -1])
    holder = np.array([0, 1, -1])
    level = np.array([1, 1, 2])
    padded = np.where(np.arange(2) < level[:, None], taken, taken[:, :1]).astype(np.int32)
    end = function(padded, 2, 2, chosen, holder, np.empty(3, np.int64), np.empty(3, np.int64))
    assert end == 2
    assert chosen.tolist() == [1, 2, 0]
    assert holder.tolist() == [2, 0, 1]


@loop("function", [kernels.least, kernels.least_jit])
def test_the_least_of_equal_ones_has_the_lowest_id(function: Callable[..., Any]) -> None:
    ids = np.random.default_rng(0).permutation(3000)
    out = np.ones(3000)
    out[[5, 1030, 2999]] = 0.25
    assert function(out, ids, 3000) == min((5, 1030, 2999), key=lambda s: ids[s])
    assert function(out, ids, 5) == int(np.argmin(ids[:5]))
    assert function(np.full(4, np.inf), ids, 4) == -1
    assert function(out, ids, 0) == -1


def test_equal_records_lose_nothing() -> None:
    records = cost_cases.table(np.random.default_rng(2), 20, cost_cases.KINDS[3:], [5] * 3)
    equal = records.take(np.zeros(20, np.intp))
    outcome = greedy(partition(equal), 20)
    assert_good(equal, outcome, 20)
    assert loss.information_loss(outcome.generalization) == 0


def test_one_and_64_attributes() -> None:
    rng = np.random.default_rng(5)
    for kinds, sizes in ((["categorical"], [1000]), (["hierarchy", "categorical"] * 32, [40, 10_000] * 32)):
        records = cost_cases.table(rng, 60, kinds, sizes)
        assert_good(records, greedy(partition(records), 4), 4)


def test_partitions_threads_and_order_change_no_bits() -> None:
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"a": rng.integers(0, 50, 300), "b": rng.choice(list("xyz"), 300)})
    table = af.Table(
        frame,
        {
            "a": {"role": "quasi-identifier", "kind": "numeric"},
            "b": {"role": "quasi-identifier", "kind": "categorical"},
        },
    )
    runs = [af.anonymize(table, "greedy", k=5, partition_size=40, seed=1, workers=w) for w in (1, 3)]
    assert np.array_equal(runs[0].matches, runs[1].matches)
    assert_k_regular(runs[0].matches, 5)
    assert runs[0].loss("gcp") < af.anonymize(table, "greedy", k=10, partition_size=40).loss("gcp")


@pytest.mark.slow
@pytest.mark.data
def test_adult_loses_at_most_4_5_percent_without_dead_ends(data_folder: Path) -> None:
    from tests.cases.tables import adult

    table = adult(data_folder)
    anon = af.anonymize(table, "greedy", k=10, partition_size=250)
    assert table.n == 30_162
    assert anon.loss("gcp") <= 0.045
    assert_k_regular(anon.matches, 10)
    assert anon.facts["augmented"] == 0
