"""An even start: a d-regular graph among the covers, changed along random cycles, and an assignment drawn from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

import anonflow as af
from anonflow.algorithms.concealment.covered import Covered
from anonflow.algorithms.concealment.even_start import even_matches, evenly_dealt, evenly_started
from anonflow.algorithms.concealment.expansion import DistinctRecords, unloaded
from anonflow.algorithms.method import Partition
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.concealment import switch, switch_jit
from tests.cases.concealment import LOSSES, part_of, small
from tests.cases.tables import sampled
from tests.strategies import loop


def covers_of(part: Partition, boxes: Generalization) -> np.ndarray:
    """``[j, i]``: whether record j covers original i."""
    own = Generalization.of(part.records)
    return np.array([boxes.take(np.full(part.n, j)).covers(own) for j in range(part.n)])


def by_flows(covers: np.ndarray, d: int) -> np.ndarray:
    """Which edges are on some d-regular graph among the covers: by a flow for each edge."""
    n = len(covers)
    values = np.zeros_like(covers)
    for j, i in np.argwhere(covers).tolist():
        left = covers.copy()
        left[j, i] = False
        room = np.zeros((2 * n + 2, 2 * n + 2), np.int32)
        room[0, 1 : n + 1] = room[n + 1 : -1, -1] = d
        room[1 : n + 1, n + 1 : -1] = left
        room[0, 1 + j] -= 1
        room[n + 1 + i, -1] -= 1
        values[j, i] = maximum_flow(csr_array(room), 0, 2 * n + 1).flow_value == n * d - 1
    return values


def may_be_drawn(covers: np.ndarray, matches: np.ndarray) -> np.ndarray:
    """The same, along one such graph: another one differs by cycles on which a record takes what the next gives up."""
    graph = np.zeros_like(covers)
    graph[np.arange(len(covers))[:, None], matches] = True
    takes = (covers & ~graph) @ graph.T
    reach = np.eye(len(covers), dtype=bool)
    for _ in covers:
        reach |= reach @ takes
    return covers & (graph | reach.T @ graph)


def test_how_many_are_equally_likely() -> None:
    for k in range(2, 200):
        d = even_matches(k)
        assert d <= k
        assert 1 / d <= 1 / k + 0.05 + 1e-12
        assert 1 / d <= 5 / (4 * k) + 1e-12


def test_cycles_find_the_edges_that_flows_find() -> None:
    seen = set()
    for seed in range(6):
        matches = (np.arange(8)[:, None] + np.arange(2)) % 8
        covers = np.random.default_rng(seed).random((8, 8)) < 0.1 + 0.05 * seed
        covers[np.arange(8)[:, None], matches] = True
        possible = may_be_drawn(covers, matches)
        np.testing.assert_array_equal(by_flows(covers, 2), possible)
        seen.add(matches.size < possible.sum() < covers.sum())
    assert any(seen), "some edges are possible besides the graph, and some are not"


@loop("loss", LOSSES)
@loop("few", [0, 3])
@loop("chained", [False, True])
def test_k_rows_may_be_drawn_for_everybody(loss: str, few: int, chained: bool) -> None:
    for seed in range(3):
        part = part_of(small(seed, 11, few) if few else small(seed, 11), loss)
        merged = DistinctRecords.of(part)
        for k in (2, 5, 7, 11):
            boxes, matches, _, _ = evenly_started(merged, k, chained)
            d = even_matches(k)
            result = unloaded(part.records, part.plan, boxes)
            covers = covers_of(part, result)
            assert matches.shape == (part.n, d)
            assert covers[np.arange(part.n)[:, None], matches].all()
            possible = may_be_drawn(covers, matches)
            assert possible.sum(axis=0).min() >= k
            assert possible.sum(axis=1).min() >= k


def test_some_records_are_widened_for_the_draw() -> None:
    """Otherwise the test above would not see that step."""
    parts = [part_of(small(seed, 40)) for seed in range(12)]
    assert sum(evenly_started(DistinctRecords.of(part), 5)[3] for part in parts) > 0


def test_plain_and_compiled_switches_agree_and_stay_regular() -> None:
    for seed, few in ((1, 5), (2, 2), (3, 9)):
        part = part_of(small(seed, 30, few))
        merged = DistinctRecords.of(part)
        boxes, matches, _, _ = evenly_started(merged, 5)
        lists = Covered.of(merged, boxes)
        covers = covers_of(part, unloaded(part.records, part.plan, boxes))
        results = []
        for change in (switch, switch_jit):
            graph = matches.copy()
            rows = (np.argsort(graph, axis=None, kind="stable") // 4).reshape(-1, 4).astype(np.int32)
            cycles = change(
                graph, rows, lists.start, lists.stop, lists.ends, lists.originals, lists.members, lists.begin,
                np.random.default_rng(seed).random(2_000),
            )  # fmt: skip
            assert cycles > 0
            for j in range(part.n):
                assert len(set(graph[j].tolist())) == 4
                assert sorted(np.argwhere(graph == j)[:, 0].tolist()) == sorted(rows[j].tolist())
            assert covers[np.arange(part.n)[:, None], graph].all()
            assert (np.sort(graph) != np.sort(matches)).any()
            results.append((graph, rows))
        for item, other in zip(*results, strict=True):
            np.testing.assert_array_equal(item, other)


@pytest.mark.parametrize("chained", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_row_is_likely_anybodys(chained: bool) -> None:
    """1,600 deals of the same records: no edge beyond 1/4, as far as so many can tell, and more than 4 rows for everybody."""
    part = part_of(small(4, 40))
    merged = DistinctRecords.of(part)
    boxes, matches, _, _ = evenly_started(merged, 5, chained)
    result = unloaded(part.records, part.plan, boxes)
    named = Generalization(result.domains, result.lo.copy(), result.hi, result.bits)
    deals, counts = 1_600, np.zeros((part.n, part.n))
    for deal in range(deals):
        # numbers in place of what is published, to see whose each record is
        named.lo[0] = np.arange(part.n)
        dealt = evenly_dealt(merged, boxes, named, matches, np.random.default_rng(deal))
        assert sorted(dealt.lo[0].tolist()) == list(range(part.n))
        counts[dealt.lo[0], np.arange(part.n)] += 1
    assert (counts <= deals * covers_of(part, result)).all()
    assert counts.max() / deals < 0.25 + 5 * (0.25 * 0.75 / deals) ** 0.5
    assert (counts > 0).sum(axis=0).min() >= 5


def test_an_even_start_is_that_of_who_asks_for_nothing_else() -> None:
    table = sampled("nursery", 40)
    usual = af.anonymize(table, "k-concealment", k=5, seed=2**90)
    even = af.anonymize(table, "k-concealment", k=5, seed=2**90, start="even")
    assert usual.frame().equals(even.frame())
    assert usual.facts["evenly_drawn"] == 4
    others: list[dict[str, Any]] = [
        {"q": 9}, {"near": "pairs"}, {"randomized": False}, {"target": "(k,k)-concealment"}, {"exact": True},
    ]  # fmt: skip
    for options in others:
        if "exact" not in options:
            anon = af.anonymize(table, "k-concealment", k=5, seed=2**90, **options)
            assert "evenly_drawn" not in anon.facts
        with pytest.raises(ParameterError, match="start='expansion'"):
            af.anonymize(table, "k-concealment", k=5, seed=2**90, start="even", **options)


def test_chains_on_the_graph_lower_the_loss_and_keep_the_guarantee() -> None:
    table = sampled("nursery", 150)
    usual = af.anonymize(table, "k-concealment", k=5, seed=2**90)
    chained = af.anonymize(table, "k-concealment", k=5, seed=2**90, improve="chains")
    assert chained.loss() < 0.99 * usual.loss()
    assert af.verify(table, chained, ["covers", "k-concealment"], k=5)
    assert chained.facts["evenly_drawn"] == 4
    for options in ({"start": "expansion"}, {"q": 9}, {"randomized": False}, {"target": "(k,k)"}):
        with pytest.raises(ParameterError, match="improve='chains' is for the even start"):
            af.anonymize(table, "k-concealment", k=5, seed=2**90, improve="chains", **options)  # type: ignore[arg-type]


def test_copies_of_few_records_still_cover_k() -> None:
    part = part_of(small(5, 60, 1))
    boxes, matches, _, _ = evenly_started(DistinctRecords.of(part), 20)
    assert matches.shape == (60, 16)
    result = unloaded(part.records, part.plan, boxes)
    covers = covers_of(part, result)
    assert min(covers.sum(axis=0).min(), covers.sum(axis=1).min()) >= 20
