"""Expansion, plain and randomized: Algorithms 1, 2 and 6, and what makes them fast."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.algorithms.concealment.expansion import (
    DistinctRecords,
    expanded,
    expanded_among,
    floor,
    randomly_expanded,
)
from anonflow.generalization import Generalization
from anonflow.kernels.concealment import (
    expand_jit,
    near_jit,
    within,
    within_jit,
)
from anonflow.kernels.costs import widen_jit
from anonflow.kernels.row_costs import join_row_jit
from anonflow.kernels.state import copy_state, empty_state, take
from anonflow.loss import record_costs
from tests.cases.concealment import LOSSES, codes_of, oracle, part_of, small
from tests.cases.tables import sampled
from tests.naive import concealment as naive
from tests.strategies import loop


@loop("loss", LOSSES)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
def test_expansion_is_algorithm_2(seed: int, loss: str) -> None:
    table = small(seed, 14)
    cost, covers = oracle(table, loss)
    for k in (2, 3, 5):
        anon = af.anonymize(
            table, "k-concealment", k=k, target="(k,1)", randomized=False, order="input", loss=loss
        )
        wanted = [cost(members) for members in naive.expansion(table.n, k, cost, covers)]
        np.testing.assert_allclose(record_costs(anon.generalization, loss), wanted, atol=1e-9)


@loop("loss", LOSSES)
def test_exact_is_algorithm_1_and_no_worse_than_expansion(loss: str) -> None:
    table = small(7, 9)
    cost, _ = oracle(table, loss)
    for k in (2, 3, 4):
        best = af.anonymize(
            table,
            "k-concealment",
            k=k,
            target="(k,1)",
            exact=True,
            randomized=False,
            order="input",
            loss=loss,
        )
        costs = record_costs(best.generalization, loss)
        np.testing.assert_allclose(costs, naive.exhaustive(table.n, k, cost), atol=1e-9)
        greedy = af.anonymize(
            table, "k-concealment", k=k, target="(k,1)", randomized=False, order="input", loss=loss
        )
        if loss == "ncp":
            assert (costs <= record_costs(greedy.generalization, loss) + 1e-12).all()
            ratio = record_costs(greedy.generalization, loss).sum() / max(costs.sum(), 1e-12)
            assert ratio <= max(k - 1, 1) + 1e-9  # Proposition 13


@pytest.mark.parametrize("loss", ["ncp", "height"])
def test_few_neighbours_change_nothing(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking at the nearest first is exact: with any number of them the same comes out."""
    from anonflow.algorithms.concealment import expansion

    part = part_of(sampled("nursery", 60), loss)
    merged = DistinctRecords.of(part)
    results = []
    for nearest in (4, 16, 60):
        monkeypatch.setattr(expansion, "NEAREST", nearest)
        results.append(copy_state(expanded(merged, 7)))
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].cost, other.cost)
        np.testing.assert_array_equal(results[0].lo, other.lo)


def test_where_the_nearest_are_all_there_are_no_step_looks_further() -> None:
    part = part_of(small(1, 30, 3))
    merged, steps = DistinctRecords.of(part), []
    u = len(merged.first)
    for m in (2, u):
        ids, costs = np.empty((u, m), np.int32), np.empty((u, m))
        near_jit(part.plan, merged.state, 0, u, ids, costs)
        boxes = empty_state(part.plan, u)
        steps.append(expand_jit(part.plan, merged.state, merged.count, 0, u, 5, ids, costs, boxes))
    assert steps[0] > steps[1] == 0


def test_q_is_respected() -> None:
    """With q = k - 1 + 1 neighbours, a record's random set is among its k nearest."""
    frame = pd.DataFrame({"x": np.arange(30) ** 2})
    table = af.Table(frame, {"x": {"role": "quasi-identifier", "kind": "numeric"}})
    part = part_of(table, seed=4)
    by_pairs = randomly_expanded(DistinctRecords.of(part), 3, 3, part.rng, pairs=True)
    boxes = Generalization(part.records.domains, *codes_of(part, by_pairs))
    for i in range(30):
        near_by = np.argsort(np.abs(frame["x"] - frame["x"][i]), kind="stable")[:4]
        assert boxes.lo[0, i] >= near_by.min()
        assert boxes.hi[0, i] <= near_by.max()
    grown = Generalization(part.records.domains, *codes_of(part, expanded(DistinctRecords.of(part), 4)))
    some = [
        codes_of(part, randomly_expanded(DistinctRecords.of(part), 3, 3, part.rng))[:2] for _ in range(20)
    ]
    assert all((lo >= grown.lo).all() and (hi <= grown.hi).all() for lo, hi in some)
    assert len({lo.tobytes() + hi.tobytes() for lo, hi in some}) == 20
    wide = af.anonymize(table, "k-concealment", k=3, q=25, seed=1).loss()
    assert wide > af.anonymize(table, "k-concealment", k=3, q=3, seed=1).loss()


@loop("loss", LOSSES)
@loop("seed", range(3))
def test_neighbours_are_what_expansion_goes_on_with(seed: int, loss: str) -> None:
    part = part_of(small(seed, 30, 4), loss)
    merged = DistinctRecords.of(part)
    q = 9
    boxes, ids = expanded_among(merged, 4, q)
    for item, other in zip(boxes, expanded(merged, 4), strict=True):
        np.testing.assert_array_equal(item, other)
    wide = expanded(merged, q + 1)
    one_of_each = part.records.take(merged.first)
    result = Generalization(part.records.domains, *codes_of(part, wide)).closure()
    own = Generalization.of(one_of_each)
    for i, row in enumerate(ids):
        listed = list(dict.fromkeys(row.tolist()))
        assert listed[0] == i
        copies = merged.count[listed]
        assert copies.sum() >= q + 1 > copies[:-1].sum()
        covered = result.take(np.full(len(listed), i)).covers(own.take(np.array(listed)))
        assert covered.all()


@loop("m", [1, 3, 12])
def test_boxes_are_looked_into(m: int) -> None:
    part = part_of(small(1, 30, 3))
    merged = DistinctRecords.of(part)
    u, need = len(merged.first), 8
    m = min(m, u)
    wide = expanded(merged, need)
    ids, costs = np.empty((u, m), np.int32), np.empty((u, m))
    near_jit(part.plan, merged.state, 0, u, ids, costs)
    result = Generalization(part.records.domains, *codes_of(part, wide)).closure()
    own = Generalization.of(part.records.take(merged.first))
    for kernel in (within, within_jit):
        out = np.empty((u, need), np.int32)
        kernel(merged.state, merged.count, wide, 0, u, ids, out)
        for i in range(u):
            order = [*ids[i].tolist(), *(j for j in range(u) if j not in ids[i])]
            inside = result.take(np.full(u, i)).covers(own.take(np.array(order)))
            wanted: list[int] = []
            for j, covered in zip(order, inside, strict=True):
                if covered and merged.count[wanted].sum() < need:
                    wanted.append(j)
            assert out[i].tolist() == wanted + [i] * (need - len(wanted))


def test_among_copies_the_widening_stays_near() -> None:
    """Records with k copies lose nothing, so whatever else they may be is a random widening: to what is near."""
    cells = np.repeat([*range(10), 1000], 8)
    qi = {"x": {"role": "quasi-identifier", "kind": "numeric"}}
    part = part_of(af.Table(pd.DataFrame({"x": cells}), qi), seed=2)
    for pairs in (False, True):
        boxes = randomly_expanded(DistinctRecords.of(part), 3, 4, part.rng, pairs=pairs)
        lo, hi, _ = codes_of(part, boxes)
        near_by = cells < 6
        assert (lo[0] < hi[0])[near_by].any()  # about half are widened
        assert (lo[0] == hi[0])[near_by].any()
        assert (hi[0] - lo[0])[near_by].max() <= 4


@loop("loss", LOSSES)
def test_a_floor_is_monotone_and_below(loss: str) -> None:
    """Widening never lowers a pair's cost under the floor, nor does it ever exceed the loss."""
    part = part_of(sampled("nursery", 40), loss)
    merged = DistinctRecords.of(part)
    below, u = floor(part.plan), len(merged.first)
    for i in range(0, u, 7):
        box = take(merged.state, np.array([i]))
        before = np.empty(u)
        join_row_jit(below, box, 0, merged.state, np.int64(0), np.int64(u), before)
        for by in range(0, u, 5):
            widen_jit(part.plan, box, 0, merged.state, by)
            low, true = np.empty(u), np.empty(u)
            join_row_jit(below, box, 0, merged.state, np.int64(0), np.int64(u), low)
            join_row_jit(part.plan, box, 0, merged.state, np.int64(0), np.int64(u), true)
            assert (before <= low).all()
            assert (low <= true).all()
            before = low
