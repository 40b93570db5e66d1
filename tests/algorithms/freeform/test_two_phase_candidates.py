"""Two-phase over candidate edges: neighbours, sparse assignments and cycles, each against its definition."""

from __future__ import annotations

import functools
import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow import loss as losses
from anonflow.algorithms.freeform.two_phase import pattern_matches, two_phase, two_phase_matches
from anonflow.algorithms.freeform.two_phase_candidates import (
    MatchedRecords,
    cancel_all,
    near_records,
    nearness,
    slot_rows,
    sparse_assignment,
    sparse_matches,
)
from anonflow.algorithms.method import Partition, Progress
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.costs import load
from anonflow.kernels.freeform.cycles import cancel_cycles, cancel_cycles_jit, exchange, exchange_jit
from anonflow.kernels.freeform.reassign import cover_jit
from anonflow.kernels.freeform.slot_rows import SlotRows
from anonflow.kernels.state import State, empty_state
from anonflow.table import Table
from tests.cases.freeform import MEASURES, assert_regular, part_of
from tests.cases.plain_kernels import KERNELS, plainly
from tests.cases.tables import random_table
from tests.checks import check_result
from tests.naive import two_phase as naive
from tests.strategies import examples, loop, tables


def shuffled(matches: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A copy in which random pairs of records have exchanged a match each, wherever no edge is doubled."""
    n, k = matches.shape
    out = matches.copy()
    for _ in range(n):
        a, b = rng.integers(n, size=2)
        d, e = rng.integers(1, k, size=2)
        if a != b and out[b, e] not in out[a] and out[a, d] not in out[b]:
            out[a, d], out[b, e] = out[b, e], out[a, d]
    return out


def ring(n: int, k: int) -> np.ndarray:
    """Record j matches j and the next k - 1."""
    return ((np.arange(n)[:, None] + np.arange(k)) % n).astype(np.int32)


def state_of(part: Partition, matches: np.ndarray | None = None) -> State:
    """The originals, or the generalized records that cover their matches."""
    own = Generalization.of(part.records)
    origin = load(part.plan, own.lo, own.hi, own.bits)
    if matches is None:
        return origin
    joined = empty_state(part.plan, part.n)
    cover_jit(part.plan, origin, matches, 0, part.n, joined)
    return joined


def cost_of(table: Table, measure: str) -> naive.Cost:
    def cost(rows: Any) -> float:
        boxes = Generalization.join_of(table.records, np.array([rows]))
        return float(losses.record_costs(boxes, measure)[0])

    return cost


@examples(30)
@given(tables(min_n=2, max_n=8), st.data(), st.sampled_from(MEASURES))
def test_near_records_grow_least(table: Table, data: st.DataObject, measure: str) -> None:
    n, part = table.n, part_of(table, measure)
    matches = ring(n, data.draw(st.integers(1, n)))
    origin, joined = state_of(part), state_of(part, matches)
    count = data.draw(st.integers(1, n))
    with ThreadPoolExecutor(2) as pool:
        case = (part.plan, origin, joined, count, pool)
        near, plain = near_records(*case), plainly(near_records, *case)
    np.testing.assert_array_equal(near, plain)
    cost = cost_of(table, measure)
    growth = np.array([[cost([*row, i]) - cost(row) for row in matches.tolist()] for i in range(n)])
    for i in range(n):
        assert len(set(near[i])) == count
        assert growth[i, near[i]].max() <= np.delete(growth[i], near[i]).min(initial=np.inf) + 1e-9


@examples(80)
@given(st.integers(1, 5), st.integers(0, 2**32), st.sampled_from([1, 8, 64]))
def test_a_sparse_assignment_is_the_least_there_is(n: int, seed: int, unit: int) -> None:
    """Whether the costs, as whole numbers, have a common factor or not."""
    rng = np.random.default_rng(seed)
    edges = [edge for edge in itertools.product(range(n), repeat=2) if rng.random() < 0.7]
    costs = rng.integers(0, 3 if unit == 1 else unit, len(edges)) / unit
    left, right = (np.array([edge[side] for edge in edges], np.int64) for side in (0, 1))
    assignment = sparse_assignment(left, right, costs, n)
    by_edge = dict(zip(edges, costs.tolist(), strict=True))
    wanted = naive.least_assignment(n, set(edges), by_edge)
    if wanted is None:
        assert assignment is None
        return
    assert assignment is not None
    assert sorted(assignment.tolist()) == list(range(n))
    assert sum(by_edge[i, int(j)] for i, j in enumerate(assignment)) == wanted


@examples(30)
@given(tables(min_n=2, max_n=7), st.data(), st.sampled_from(MEASURES))
def test_sparse_matches_are_regular_and_greedy(table: Table, data: st.DataObject, measure: str) -> None:
    n, part = table.n, part_of(table, measure)
    k = data.draw(st.integers(2, n))
    count = data.draw(st.integers(1, n))
    with ThreadPoolExecutor(2) as pool:
        result, _ = sparse_matches(part, k, count, pool)
        plain, _ = plainly(sparse_matches, part, k, count, pool)
        whole = sparse_matches(part, 2, n, pool)[0]
    np.testing.assert_array_equal(result, plain)
    assert_regular(result)
    # over all edges the first assignment is the least there is: the optimum for k = 2
    cost = cost_of(table, measure)
    edges = {(i, j) for i, j in itertools.product(range(n), repeat=2) if i != j}
    least = naive.least_assignment(n, edges, {(i, j): cost([j, i]) for i, j in edges})
    assert least is not None
    assert naive.total(whole, cost) == pytest.approx(least, abs=n * 2.0**-20)


def test_a_single_candidate_that_all_share_is_enough() -> None:
    """The next along the order are candidates, too: nobody is left without."""
    frame = random_table(40).frame.assign(age=[50] + [17 + i % 2 * 70 for i in range(39)])
    table = Table(frame, random_table(40).schema)
    with ThreadPoolExecutor(1) as pool:
        assert_regular(sparse_matches(part_of(table), 6, 1, pool)[0])


def assert_same_rows(left: SlotRows, right: SlotRows) -> None:
    """To the last bit: a row that was renewed is the one that is computed anew."""
    np.testing.assert_array_equal(left.word, right.word)
    np.testing.assert_array_equal(left.drop, right.drop)


@examples(60)
@given(tables(min_n=3, max_n=7), st.data(), st.sampled_from(MEASURES))
def test_an_exchange_is_priced_as_a_whole(table: Table, data: st.DataObject, measure: str) -> None:
    n, part = table.n, part_of(table, measure)
    k = data.draw(st.integers(2, n - 1))
    matches = shuffled(ring(n, k), np.random.default_rng(data.draw(st.integers(0, 99))))
    rows = data.draw(st.lists(st.integers(0, n - 1), min_size=2, max_size=4))
    record = np.array(rows)
    slot = np.array([data.draw(st.integers(1, k - 1)) for _ in rows])
    if len(set(zip(record, slot, strict=True))) < len(rows):
        return
    lost = matches[record, slot]
    gained = np.roll(lost, 1).astype(np.int64)
    origin, cost = state_of(part), cost_of(table, measure)
    before = naive.total(matches, cost)
    wanted = matches.copy()
    wanted[record, slot] = gained
    double = any(len(set(row)) < k for row in wanted.tolist())
    change = naive.total(wanted, cost) - before
    for kernel in (exchange, exchange_jit):
        now = matches.copy()
        graph = MatchedRecords(part.plan, origin, now, origin)
        slots = slot_rows(graph)
        result = kernel(slots, now, record, slot, gained, len(rows))
        if double or result == 0.0:
            assert double or change >= -1e-9
            np.testing.assert_array_equal(now, matches)
        else:
            assert result == pytest.approx(change, abs=1e-9)
            np.testing.assert_array_equal(now, wanted)
        assert slots.drop[::k] == pytest.approx([cost(row) for row in now.tolist()], abs=1e-9)
        assert_same_rows(slots, slot_rows(graph))


@examples(30)
@given(tables(min_n=3, max_n=8), st.data(), st.sampled_from(MEASURES))
def test_cycles_only_lower_the_loss_and_keep_the_degrees(
    table: Table, data: st.DataObject, measure: str
) -> None:
    n, part = table.n, part_of(table, measure)
    k = data.draw(st.integers(2, n - 1))
    t, p = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 200))
    start = shuffled(ring(n, k), np.random.default_rng(data.draw(st.integers(0, 99))))
    origin, cost = state_of(part), cost_of(table, measure)
    near = np.tile(np.arange(n, dtype=np.int32), (n, 1))
    roots = np.array(data.draw(st.permutations(range(n))), np.int64)
    answers = []
    for kernel in (cancel_cycles, cancel_cycles_jit):
        matches = start.copy()
        graph = MatchedRecords(part.plan, origin, matches, origin)
        slots = slot_rows(graph)
        cycles, change, taken = kernel(slots, matches, part.plan, origin, origin, near.copy(), roots, t, p)
        assert_regular(matches)
        np.testing.assert_array_equal(matches[:, 0], np.arange(n))
        assert taken <= p
        assert (cycles > 0) == (change < 0)
        assert change == pytest.approx(naive.total(matches, cost) - naive.total(start, cost), abs=1e-9)
        assert_same_rows(slots, slot_rows(graph))
        answers.append((matches.tolist(), cycles, change, taken))
    assert answers[0] == answers[1]


@loop("seed", range(6))
def test_labels_find_the_cycles_of_the_papers_steps(seed: int) -> None:
    n, k, t, p = 6 + seed, 3 + seed % 2, 1 + seed % 3, 20 + 100 * (seed % 2)
    part, rng = part_of(random_table(n, seed)), np.random.default_rng(seed)
    start, roots, origin = shuffled(ring(n, k), rng), rng.permutation(n), state_of(part)
    near = np.tile(np.arange(n, dtype=np.int32), (n, 1))

    def cost(row: Any) -> float:
        """In the plan's numbers, whose sums are exact."""
        return float(state_of(part, np.tile(np.array(row, np.int32), (n, 1))).cost[row[0]])

    wanted = naive.cancelled(start, cost, roots.tolist(), t, p)
    assert wanted[1] > 0
    for kernel in (cancel_cycles, cancel_cycles_jit):
        matches = start.copy()
        slots = slot_rows(MatchedRecords(part.plan, origin, matches, origin))
        cycles, _, taken = kernel(slots, matches, part.plan, origin, origin, near.copy(), roots, t, p)
        assert (matches.tolist(), cycles, taken) == wanted


@examples(30)
@given(tables(min_n=4, max_n=9), st.data())
def test_candidates_sought_with_a_label_are_those_of_the_generalized_records(
    table: Table, data: st.DataObject
) -> None:
    n, part = table.n, part_of(table)
    k = data.draw(st.integers(2, n - 1))
    count = data.draw(st.integers(k, n))
    seed = data.draw(st.integers(0, 99))
    start = shuffled(ring(n, k), np.random.default_rng(seed))
    origin, joined = state_of(part), empty_state(part.plan, n)
    cover_jit(part.plan, origin, start, 0, n, joined)
    with ThreadPoolExecutor(1) as pool:
        sought = near_records(part.plan, origin, joined, count, pool)
    roots = np.array(data.draw(st.permutations(range(n))), np.int64)
    answers = []
    later = np.full_like(sought, -1)
    for kernel, near in (
        (cancel_cycles_jit, sought),
        (cancel_cycles_jit, later.copy()),
        (cancel_cycles, later),
    ):
        matches = start.copy()
        slots = slot_rows(MatchedRecords(part.plan, origin, matches, joined))
        counts = kernel(slots, matches, part.plan, origin, joined, near, roots, 2, 100)
        assert ((near == sought).all(axis=1) | (near == -1).all(axis=1)).all()
        answers.append((matches.tolist(), counts))
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.slow
def test_cycles_are_found_where_there_are_some() -> None:
    """A bad start of 36 records: whoever looks long enough finds most of what trades of two would give."""
    table = random_table(36)
    part, cost = part_of(table), cost_of(table, "ncp")
    origin, matches = state_of(part), ring(36, 4)
    slots = slot_rows(MatchedRecords(part.plan, origin, matches, origin))
    first = before = float(slots.drop[::4].sum())
    near = np.tile(np.arange(36, dtype=np.int32), (36, 1))
    rng = np.random.default_rng(0)
    total = 0
    for _ in range(30):
        roots = rng.permutation(36).astype(np.int64)
        cycles = cancel_cycles_jit(slots, matches, part.plan, origin, origin, near, roots, 2, 6000)[0]
        total += cycles
        now = float(slots.drop[::4].sum())
        assert now <= before
        before = now
        if not cycles:
            break
    assert total > 20
    assert before < 0.8 * first
    assert naive.best_trade(matches, cost) > -0.02 * before


@examples(30)
@given(tables(min_n=3, max_n=6), st.data(), st.sampled_from(MEASURES))
def test_no_negative_cycle_is_left(table: Table, data: st.DataObject, measure: str) -> None:
    n, part = table.n, part_of(table, measure)
    k = data.draw(st.integers(2, min(n - 1, 3)))
    start = shuffled(ring(n, k), np.random.default_rng(data.draw(st.integers(0, 99))))
    most = data.draw(st.sampled_from([3, 20, 10**6]))
    cost = functools.cache(lambda row: cost_of(table, measure)(list(row)))
    answers = []
    with ThreadPoolExecutor(1) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setattr("anonflow.algorithms.freeform.two_phase_candidates.LABELS", 7)
        for kernels in KERNELS:
            matches = start.copy()
            graph = MatchedRecords(part.plan, state_of(part), matches, state_of(part, start))
            seen: list[Progress] = []
            with kernels():
                result = cancel_all(graph, n, most, np.random.default_rng(1), pool, seen.append)
            assert_regular(matches)
            np.testing.assert_array_equal(matches[:, 0], np.arange(n))
            assert 0 < seen[-1].done <= most
            assert seen[-1].loss == pytest.approx(naive.total(matches, cost_of(table, measure)), abs=1e-9)
            falling = [progress.loss for progress in seen]
            assert falling == sorted(falling, reverse=True)
            answers.append((matches.tolist(), result))
    assert answers[0] == answers[1]
    cycles, finished = result
    assert (cycles > 0) == (matches.tolist() != start.tolist())
    assert finished or most < 10**6
    if finished:
        assert naive.best_cycle(matches, lambda row: cost(tuple(sorted(row)))) > -1e-9


@examples(20)
@given(tables(min_n=4, max_n=7), st.sampled_from(MEASURES), st.integers(0, 99))
def test_the_default_finishes_on_small_tables(table: Table, measure: str, seed: int) -> None:
    """All simple cycles are enumerated."""
    anon = af.anonymize(table, "two-phase", k=3, loss=measure, seed=seed, improve="cycles")
    matches = anon.matches
    assert matches is not None
    assert anon.facts["finished"] is True
    cost = functools.cache(lambda row: cost_of(table, measure)(list(row)))
    assert naive.best_cycle(matches, lambda row: cost(tuple(sorted(row)))) > -1e-9


def best_trade_left(table: Table, k: int, p: int | None) -> float:
    """By how much the best trade between two records still lowers the loss of a release improved by cycles."""
    anon = af.anonymize(table, "two-phase", k=k, seed=1, improve="cycles", p=p)
    check_result(anon)
    matches = anon.matches
    assert matches is not None
    slots = range(1, k)
    covered = [
        matches,
        *(
            np.column_stack([np.delete(matches, s, axis=1), np.full(table.n, i)])
            for s in slots
            for i in range(table.n)
        ),
    ]
    rows = np.sort(np.concatenate(covered), axis=1)
    costs = losses.record_costs(Generalization.join_of(table.records, rows), "ncp")
    cost = dict(zip(map(tuple, rows.tolist()), costs.tolist(), strict=True))
    return naive.best_trade(matches, lambda row: cost[tuple(sorted(row))])


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
def test_no_trade_between_two_records_is_left(seed: int) -> None:
    """The default, on tables of 80 records; with the first 80 labels alone some are left in each."""
    table = random_table(80, seed)
    assert best_trade_left(table, 3, 80) < -1e-3
    assert best_trade_left(table, 3, None) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
def test_trades_are_sought_beyond_the_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels for a few long cycles only: cycles of two records are sought to the end."""
    monkeypatch.setattr("anonflow.algorithms.freeform.two_phase.LEAST_LABELS", 0)
    assert best_trade_left(random_table(300, 1), 3, None) == pytest.approx(0.0, abs=1e-9)


def test_without_labels_nothing_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of no labels no share is done: whoever draws the progress would divide by 0. No candidates are sought, in O(n^2)."""
    monkeypatch.delattr("anonflow.algorithms.freeform.two_phase_candidates.near_records")
    seen: list[Progress] = []
    part = replace(part_of(random_table(80)), watch=seen.append)
    outcome = two_phase(part, 3, improve="cycles", p=0)
    assert (outcome.facts["cycles"], outcome.facts["finished"]) == (0, False)
    assert all(progress.of > 0 for progress in seen)


@loop("improve", ["chains", "cycles"])
@loop("start", ["auto", "dense", "sparse"])
def test_every_start_and_improvement_keeps_the_guarantee(start: str, improve: str) -> None:
    table = random_table(150)
    options: dict[str, Any] = {"start": start, "improve": improve, "kicks": 1, "candidates": 6, "p": 400}
    anon = af.anonymize(table, "two-phase", k=4, seed=3, **options)
    check_result(anon)
    again = af.anonymize(table, "two-phase", k=4, seed=3, workers=1, **options)
    np.testing.assert_array_equal(anon.matches, again.matches)


def suppressed(frame: pd.DataFrame, **weights: float) -> Table:
    kind = {"role": "quasi-identifier", "kind": "suppression"}
    return Table(frame, {name: kind | {"weight": weights.get(name, 1.0)} for name in frame})


@loop("improve", ["chains", "cycles"])
def test_a_start_by_patterns_has_the_classes_of_pattern_guided(improve: str) -> None:
    table = suppressed(af.datasets.random_normal(150, 5, sd=1.0, seed=4))
    classes = af.anonymize(table, "pattern-guided", k=4)
    assert classes.classes is not None
    assert classes.suppressed.sum() >= 4  # they are a class, too
    matches, facts = two_phase_matches(part_of(table), 4, start="patterns", rounds=0, kicks=0)
    assert_regular(matches)
    assert facts["start"] == "patterns"
    assert (classes.classes[matches] == classes.classes[:, None]).all()
    options: dict[str, Any] = {"start": "patterns", "improve": improve, "kicks": 1, "candidates": 6, "p": 400}
    anon = af.anonymize(table, "two-phase", k=4, seed=3, **options)
    check_result(anon)
    assert anon.loss() <= classes.loss()
    again = af.anonymize(table, "two-phase", k=4, seed=3, workers=1, **options)
    np.testing.assert_array_equal(anon.matches, again.matches)


def test_a_start_by_patterns_conceals_what_costs_least() -> None:
    frame = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    for weights, pairs in (({"a": 2.0}, [1, 0, 3, 2]), ({"b": 2.0}, [2, 3, 0, 1])):
        part = part_of(suppressed(frame, **weights))
        assert pattern_matches(part, 2)[:, 1].tolist() == pairs


def test_records_that_no_pattern_takes_join_the_last_class() -> None:
    frame = pd.DataFrame({"a": [0, 0, 1, 1, 2], "b": [0, 0, 1, 1, 2]})
    matches = pattern_matches(part_of(suppressed(frame)), 2)
    assert_regular(matches)
    assert sorted(matches[2:, 1].tolist()) == [2, 3, 4]


def test_a_start_by_patterns_needs_values_that_are_published_or_concealed() -> None:
    with pytest.raises(ParameterError, match=r"start: patterns needs .* take another start"):
        af.anonymize(random_table(9), "two-phase", k=2, start="patterns")


@examples(30)
@given(tables(min_n=4, max_n=9), st.data(), st.sampled_from(MEASURES))
def test_nearness_compares_the_nearest(table: Table, data: st.DataObject, measure: str) -> None:
    n, part = table.n, part_of(table, measure)
    k = data.draw(st.integers(1, n // 2))
    cut = data.draw(st.integers(k, n - k))
    order = np.array(data.draw(st.permutations(range(n))))
    halves, whole = [order[:cut], order[cut:]], [order]
    rng = np.random.default_rng(0)
    result = nearness(part.plan, state_of(part), halves, whole, k, rng)
    assert result == plainly(nearness, part.plan, state_of(part), halves, whole, k, rng)
    cost = cost_of(table, measure)

    def nearest(parts: list[np.ndarray]) -> float:
        return sum(
            sum(sorted(cost([int(i), int(j)]) for j in rows)[:k]) for rows in parts for i in rows.tolist()
        )

    assert result == pytest.approx(nearest(whole) / nearest(halves) if nearest(halves) else 1.0)


def test_a_start_is_chosen_by_what_stretches_lose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anonflow.algorithms.freeform.two_phase_candidates.SAMPLE", 300)
    frame = af.datasets.random_normal(300, 6, sd=1.0, seed=0)
    qi = {"role": "quasi-identifier", "kind": "suppression"}
    table = Table(frame, dict.fromkeys(frame.columns, qi))
    starts = {
        (first, k): two_phase_matches(part_of(table), k, first=first, rounds=0, kicks=0)[1]["start"]
        for first in (20, 300)
        for k in (3, 5)
    }
    assert starts == {(20, 3): "sparse", (300, 3): "dense", (20, 5): "dense", (300, 5): "dense"}


def test_blocks_bound_where_sparse_matches_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anonflow.algorithms.freeform.two_phase.STRETCH", 50)
    table = random_table(230)
    matches, facts = two_phase_matches(part_of(table), 3, start="sparse", candidates=8, improvement="cycles")
    assert_regular(matches)
    assert facts["gained"] >= 0


@loop(
    "option",
    [{"start": "warm"}, {"improve": "all"}, {"candidates": 0}, {"t": 0}, {"p": -1}, {"kicks": -1}],
)
def test_options_out_of_range(option: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="two-phase"):
        af.anonymize(random_table(5), "two-phase", k=2, **option)
