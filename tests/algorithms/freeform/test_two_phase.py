"""Two-phase: regular, never worse than its start, the same whatever runs it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow import engine
from anonflow import loss as losses
from anonflow.algorithms.freeform.hungarian import hungarian_matches
from anonflow.algorithms.freeform.two_phase import (
    SLACK,
    TWO_PHASE,
    stretches,
    two_phase_matches,
)
from anonflow.algorithms.method import Partition
from anonflow.algorithms.near_blocks import near_blocks
from anonflow.errors import FlowError, ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.costs import load
from anonflow.kernels.freeform.reassign import cover, cover_jit, slot_costs, slot_costs_jit
from anonflow.kernels.state import empty_state
from anonflow.partition import lexicographic_order
from anonflow.table import Table
from tests.cases.flow_files import write_flow
from tests.cases.freeform import MEASURES, assert_regular, part_of, total
from tests.cases.plain_kernels import KERNELS
from tests.cases.tables import random_table
from tests.checks import check_result
from tests.strategies import examples, loop, tables


@examples(40)
@given(tables(min_n=2, max_n=9), st.data(), st.sampled_from(MEASURES))
def test_plain_and_compiled_agree_and_start_is_not_beaten(
    table: Table, data: st.DataObject, measure: str
) -> None:
    k = data.draw(st.integers(1, table.n))
    improvement = data.draw(st.sampled_from(["chains", "cycles"]))
    results = []
    for kernels in KERNELS:
        with kernels():
            part = part_of(table, measure)
            results.append(two_phase_matches(part, k, 5, 2, rounds=1, kicks=1, improvement=improvement))
    assert (results[0][0] == results[1][0]).all()
    assert results[0][1] == results[1][1]
    assert_regular(results[0][0])
    start = two_phase_matches(part_of(table, measure), k, 5, rounds=0, kicks=0)[0]
    assert total(table, results[0][0], measure) <= total(table, start, measure) + 1e-9


def along_the_lexicographic_order(part: Partition, size: int, k: int) -> np.ndarray:
    """The matches of a dense start in stretches of this order."""
    matches = np.empty((part.n, k), np.int32)
    for rows in stretches(lexicographic_order(part.records), size, k):
        matches[rows] = rows[hungarian_matches(part.take(rows), k, SLACK)]
    return matches


@examples(20)
@given(tables(min_n=4, max_n=12), st.integers(2, 3))
def test_a_dense_start_is_never_worse_than_along_the_lexicographic_order(table: Table, k: int) -> None:
    """So few records are all in the windows that choose the order."""
    part = part_of(table)
    plain = along_the_lexicographic_order(part, 4, k)
    start, facts = two_phase_matches(part, k, 4, start="dense", rounds=0, kicks=0)
    assert facts["start"] == "dense"
    assert_regular(start)
    assert total(table, start, "gcp") <= total(table, plain, "gcp") + 1e-9


@pytest.mark.parametrize("threads", [1, 3])
def test_a_dense_start_takes_a_space_filling_order_where_it_loses_less(threads: int) -> None:
    frame = pd.DataFrame(list(itertools.product(range(8), repeat=3)), columns=list("abc"))
    table = Table(frame, {name: {"role": "quasi-identifier", "kind": "numeric"} for name in frame})
    part = part_of(table)
    plain = along_the_lexicographic_order(part, 64, 8)
    start = two_phase_matches(part, 8, 64, threads, start="dense", rounds=0, kicks=0)[0]
    # cubes of two values in each column, instead of slices
    assert total(table, start, "gcp") < 0.9 * total(table, plain, "gcp")


@examples(30)
@given(tables(min_n=3, max_n=6), st.data(), st.sampled_from(MEASURES))
def test_slot_costs_are_those_of_the_exchange(table: Table, data: st.DataObject, measure: str) -> None:
    n = table.n
    k = data.draw(st.integers(2, n))
    part = part_of(table, measure)
    matches = hungarian_matches(part, k)
    own = Generalization.of(table.records)
    origin = load(part.plan, own.lo, own.hi, own.bits)
    block = np.array(data.draw(st.permutations(range(n))))[: data.draw(st.integers(2, n))]
    slot = np.array([data.draw(st.integers(1, k - 1)) for _ in block])
    costs = np.empty((len(block), len(block)))
    plain = np.empty_like(costs)
    for kernel, out in ((slot_costs_jit, costs), (slot_costs, plain)):
        room = (empty_state(part.plan, len(block)), empty_state(part.plan, len(block)))
        kernel(part.plan, origin, matches, block, slot, *room, out)
    assert (costs == plain).all()
    for a, b in itertools.product(range(len(block)), repeat=2):
        row = matches[block[b]].copy()
        i = matches[block[a], slot[a]]
        if i in np.delete(row, slot[b]):
            assert costs[a, b] == np.inf
            continue
        changed = matches.copy()
        changed[block[b], slot[b]] = i
        boxes = Generalization.join_of(table.records, changed)
        assert costs[a, b] == pytest.approx(losses.record_costs(boxes, measure)[block[b]], abs=1e-9)
    made_by = [empty_state(part.plan, n) for _ in range(2)]
    cover(part.plan, origin, matches, 0, table.n, made_by[0])
    cover_jit(part.plan, origin, matches, 0, table.n, made_by[1])
    boxes = Generalization.join_of(table.records, matches)
    assert made_by[0].cost == pytest.approx(losses.record_costs(boxes, measure), abs=1e-9)
    assert (made_by[0].cost == made_by[1].cost).all()


def test_threads_do_not_show() -> None:
    table = random_table(400)
    results = [
        two_phase_matches(part_of(table), 5, 64, workers, improvement="cycles")[0] for workers in (1, 2, 5)
    ]
    assert (results[0] == results[1]).all()
    assert (results[0] == results[2]).all()


def test_what_is_gained_adds_up_over_partitions() -> None:
    table = random_table(120)
    settings: dict[str, Any] = {"k": 4, "partition_size": 30, "seed": 1, "start": "dense", "kicks": 0}
    first = af.anonymize(table, "two-phase", rounds=0, **settings)
    last = af.anonymize(table, "two-phase", rounds=5, **settings)
    assert first.facts["gained"] == 0
    assert last.facts["gained"] == pytest.approx(table.n * (first.loss("ncp") - last.loss("ncp")))
    assert last.facts["gained"] > 0


def test_far_apart_records_stay_apart_when_stretches_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anonflow.algorithms.freeform.two_phase.STRETCH", 50)
    table = random_table(230)
    matches, facts = two_phase_matches(part_of(table), 3, 40, start="sparse", improvement="cycles")
    assert_regular(matches)
    assert facts["gained"] > 0


def test_blocks_hold_what_grows_least() -> None:
    table = random_table(60)
    part = part_of(table)
    own = Generalization.of(table.records)
    origin = load(part.plan, own.lo, own.hi, own.bits)
    rows = np.random.default_rng(1).permutation(60)
    blocks = near_blocks(part.plan, origin, origin, rows, 7)
    assert sorted(np.concatenate(blocks).tolist()) == list(range(60))
    assert [len(block) for block in blocks] == [7] * 8 + [4]
    pair = Generalization.join_of(table.records, np.column_stack([np.full(60, rows[0]), np.arange(60)]))
    growth = losses.record_costs(pair, "ncp")
    assert growth[blocks[0]].max() <= np.delete(growth, blocks[0]).min() + 1e-9


def test_stretches_keep_k_records() -> None:
    for n, size, k in itertools.product((1, 5, 10, 11, 20, 23), (5, 10), (1, 3, 5)):
        if k <= n:
            parts = stretches(np.arange(n), size, k)
            assert np.concatenate(parts).tolist() == list(range(n))
            assert min(map(len, parts)) >= k


@loop("measure", MEASURES)
def test_result_keeps_its_guarantee(measure: str) -> None:
    table = random_table(200)
    anon = af.anonymize(table, "two-phase", k=4, loss=measure, seed=3, kicks=1)
    check_result(anon)
    assert anon.loss(measure) <= af.anonymize(table, "hungarian", k=4, loss=measure).loss(measure) + 1e-9
    again = af.anonymize(table, "two-phase", k=4, loss=measure, seed=3, kicks=1)
    assert (anon.matches == again.matches).all()


def test_all_records_equal_or_all_in_one() -> None:
    same = pd.DataFrame({"age": [3] * 12})
    table = Table(same, {"age": {"role": "quasi-identifier", "kind": "numeric"}})
    anon = af.anonymize(table, "two-phase", k=12)
    check_result(anon)
    assert anon.loss() == 0
    check_result(af.anonymize(random_table(9), "two-phase", k=9))


@loop("option", [{"first": 0}, {"rounds": -1}, {"threads": 0}])
def test_options_out_of_range(option: dict[str, int]) -> None:
    with pytest.raises(ParameterError, match="two-phase"):
        TWO_PHASE.check_options(option)


@loop(
    "option", [{"block": 256}, {"passes": 60}, {"restarts": 20}, {"improve": "reassign"}, {"improve": "both"}]
)
def test_what_earlier_versions_had_is_gone_with_a_sentence(option: dict[str, Any], tmp_path: Path) -> None:
    (name,) = option
    with pytest.raises(ParameterError, match=rf"two-phase: '{name}.*' is gone; .*chains"):
        af.anonymize(random_table(9), "two-phase", k=2, **option)
    text = f"{{algorithm: two-phase, k: 3, {name}: {option[name]}}}"
    with pytest.raises(FlowError) as caught:
        engine.load_flow(write_flow(tmp_path, anonymize=text))
    assert len(caught.value.problems) == 1
    assert f"'{name}" in caught.value.problems[0]
    assert "is gone; " in caught.value.problems[0]
