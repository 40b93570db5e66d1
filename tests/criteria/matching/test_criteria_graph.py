"""The consistency graph and its flows: every domain size and shape, against dense matrices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

import anonflow as af
from anonflow.criteria.evidence import collect, subject_of
from anonflow.criteria.matching import graph, max_flow
from anonflow.criteria.matching.graph import consistency_graph, covered_pairs, covering, merge
from anonflow.criteria.verify import verify
from anonflow.errors import DataError
from anonflow.generalization import Generalization
from anonflow.table import Domain, Records
from tests.cases.criteria import random_table
from tests.checks import adjacency
from tests.naive.criteria import regular_flow
from tests.strategies import loop


def coded(sizes: list[tuple[str, int]], n: int, seed: int, missing: float = 0.0) -> Records:
    """Random records over domains of these kinds and sizes."""
    rng = np.random.default_rng(seed)
    domains, columns = [], []
    for a, (kind, size) in enumerate(sizes):
        column = rng.integers(0, size, n).astype(np.int32)
        if kind != "categorical":
            column[rng.random(n) < (0.2 if kind == "coded" else missing)] = -1
        labels = tuple(str(v) for v in range(size))
        counts = np.bincount(column[column >= 0], minlength=size).astype(np.int64)
        points = np.arange(size, dtype=np.float64)
        has_none = bool((column < 0).any())
        beside = {"has_codes": True} if kind == "coded" else {"has_missing": has_none}
        domains.append(
            Domain(
                f"q{a}",
                "categorical" if kind == "categorical" else "numeric",
                labels,
                points,
                counts,
                **beside,
            )
        )
        columns.append(column)
    return Records(tuple(domains), np.ascontiguousarray(np.stack(columns, axis=1)))


def dense(u: int, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    covers = np.zeros((u, len(start) - 1), bool)
    for b in range(len(start) - 1):
        covers[end[start[b] : start[b + 1]], b] = True
        assert (np.diff(end[start[b] : start[b + 1]]) > 0).all()
    return covers


@pytest.mark.parametrize(
    "sizes",
    [
        [("numeric", 1)],
        [("numeric", 5000)],
        [("categorical", 2)],
        [("categorical", 64)],
        [("categorical", 65), ("numeric", 3)],
        [("categorical", 200), ("numeric", 1024)],
        [("categorical", 1500), ("numeric", 1025)],
        [("numeric", 4), ("categorical", 9), ("numeric", 2500), ("categorical", 128), ("categorical", 129)],
        [("numeric", 3)] * 64,
        [("coded", 9)],
        [("coded", 1500), ("categorical", 9), ("numeric", 4), ("coded", 3)],
    ],
    ids=lambda sizes: f"{len(sizes)} QIs, {sizes[0][0]} {sizes[0][1]}",
)
def test_covered_pairs_are_those_of_the_definition(sizes: list[tuple[str, int]]) -> None:
    for seed, n in ((0, 1), (1, 63), (2, 64), (3, 65), (4, 300)):
        records = coded(sizes, n, seed, missing=0.1 if seed % 2 else 0.0)
        rng = np.random.default_rng(seed)
        lists = rng.integers(0, n, (n, int(rng.integers(1, 4))))
        # in every second table no row is hidden, so that whole pieces of rows are ranges
        boxes = Generalization.join_of(records, lists).with_suppressed(rng.random(n) < 0.1 * (seed % 2))
        covers = adjacency(records, boxes)
        assert np.array_equal(dense(n, *covered_pairs(records, boxes)), covers)
        merged = consistency_graph(records, boxes)
        again = dense(merged.originals.size, merged.start, merged.end)
        assert np.array_equal(again[merged.originals.label][:, merged.published.label], covers)
        of_original, of_row = merged.degrees()
        assert np.array_equal(of_original[merged.originals.label], covers.sum(axis=1))
        assert np.array_equal(of_row[merged.published.label], covers.sum(axis=0))


def test_all_records_equal_and_boxes_that_cover_nothing() -> None:
    records = coded([("numeric", 1), ("categorical", 1)], 40, 0)
    boxes = Generalization.of(records)
    merged = consistency_graph(records, boxes)
    assert (merged.edges, merged.originals.size, merged.published.size) == (1, 1, 1)
    records = coded([("numeric", 9)], 40, 0)
    boxes = Generalization.of(records)
    lo, hi = boxes.lo.copy(), boxes.hi.copy()
    lo[:], hi[:] = 9, -1
    nothing = Generalization(boxes.domains, lo, hi, boxes.bits)
    assert consistency_graph(records, nothing).edges == 0


def test_small_chunks_and_parts_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    records = coded([("numeric", 30), ("categorical", 12), ("numeric", 1500)], 200, 5, missing=0.1)
    rng = np.random.default_rng(5)
    boxes = Generalization.join_of(records, rng.integers(0, 200, (200, 3))).with_suppressed(
        rng.random(200) < 0.05
    )
    start, end = covered_pairs(records, boxes)
    for name, small in (("_CHUNK_WORDS", 1), ("_WORDS", 0), ("_FEW", 4)):
        monkeypatch.setattr(graph, name, small)
        again = covered_pairs(records, boxes)
        assert np.array_equal(start, again[0])
        assert np.array_equal(end, again[1])


def test_rows_are_compared_with_the_records_near_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of twice as many rows, each with its neighbours, twice as many pairs are looked at, not four times."""
    monkeypatch.setattr(graph, "_FEW", 16)
    monkeypatch.setattr(graph, "_WORDS", 0)
    compare, pairs = graph._covered_by_bits, []

    def counted(records: Records, boxes: Generalization) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        pairs.append(records.n * boxes.n)
        return compare(records, boxes)

    monkeypatch.setattr(graph, "_covered_by_bits", counted)
    looked_at = []
    for n in (1000, 2000):
        records = coded([("numeric", n), ("categorical", 3)], n, 5)
        order = np.argsort(records.codes[:, 0], kind="stable")
        lists = np.stack([order, np.roll(order, 1)], axis=1)
        lists[0] = order[:2]
        pairs.clear()
        consistency_graph(records, Generalization.join_of(records, lists))
        looked_at.append(sum(pairs))
    assert looked_at[1] < 3 * looked_at[0] < n * n


def test_too_many_edges_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    records = coded([("numeric", 30)], 100, 5)
    boxes = Generalization.of(records).with_suppressed(np.arange(100) < 50)
    monkeypatch.setattr(graph, "EDGE_LIMIT", 20)
    with pytest.raises(DataError, match="edges"):
        consistency_graph(records, boxes)


def test_positions_of_merged_rows() -> None:
    merged = merge([np.array([2, 1, 2, 1, 3, 2])], 6)
    assert merged.count.tolist() == [2, 3, 1]
    assert merged.first.tolist() == [1, 0, 4]
    assert merged.positions(np.array([1, 2])).tolist() == [0, 2, 4, 5]
    assert merged.positions(np.array([1, 0]), np.array([2, 1])).tolist() == [0, 1, 2]
    assert merged.positions(np.array([], int)).tolist() == []


def test_flows_with_thinned_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fits through a share of the edges is the answer; what does not is tried with all of them."""
    rng = np.random.default_rng(0)
    for thin in (False, True):
        if thin:
            monkeypatch.setattr(max_flow, "_MANY", 0)
            monkeypatch.setattr(max_flow, "_KEPT", -3)
        rng = np.random.default_rng(0)
        for _ in range(60):
            n, k = int(rng.integers(2, 9)), 2
            covers = rng.random((n, n)) < 0.6
            left, right = np.nonzero(covers)
            each = np.full(n, k)
            flow = max_flow.largest_flow(each, each, left, right, np.ones(len(left), int), need=k)
            assert flow.value == regular_flow(covers.tolist(), k, [False] * n)
            assert flow.edge.sum() == flow.value
            assert (flow.edge <= 1).all()
            assert flow.unsent.sum() == flow.unmet.sum() == n * k - flow.value
            assert np.array_equal(np.bincount(left, flow.edge, n) + flow.unsent, each)
            assert np.array_equal(np.bincount(right, flow.edge, n) + flow.unmet, each)


@pytest.mark.parametrize("block", [1, 1000])
def test_vertices_with_the_same_edges_are_one_vertex_of_the_network(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the right side lacks is as little as by a matching of copies, and without it all of the rest can be met."""
    monkeypatch.setattr(max_flow, "_BLOCK", block)
    rng = np.random.default_rng(5)
    seen = set()
    for _ in range(120):
        lists, rights, lefts = int(rng.integers(1, 5)), int(rng.integers(1, 7)), int(rng.integers(1, 14))
        covers = (rng.random((lists, rights)) < rng.choice([0.3, 0.7]))[rng.integers(0, lists, lefts)]
        supply, demand = rng.integers(0, 4, lefts), rng.integers(0, 5, rights)
        left, right = np.nonzero(covers)
        order = rng.permutation(len(left))
        lacks = max_flow.unmet(supply, demand, left[order].astype(np.int32), right[order])
        assert (lacks >= 0).all()
        assert (lacks <= demand).all()
        for needed, matched in ((demand, (demand - lacks).sum()), (demand - lacks, (demand - lacks).sum())):
            slots = np.repeat(np.repeat(covers, supply, axis=0), needed, axis=1)
            pairs = maximum_bipartite_matching(csr_matrix(slots)) if slots.size else np.zeros(0) - 1
            assert (pairs >= 0).sum() == matched
        seen.add((bool(lacks.any()), len(np.unique(covers, axis=0)) < lefts))
    assert len(seen) == 4


def test_lists_that_only_sum_up_alike_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    class Equal:
        def integers(self, low: int, high: int, size: int) -> np.ndarray:
            return np.ones(size, np.int64)

    monkeypatch.setattr(max_flow.np.random, "default_rng", lambda seed: Equal())
    ones = np.ones(2, np.int64)
    assert max_flow.unmet(ones, ones, np.array([0, 1]), np.array([0, 1])).tolist() == [0, 0]


def test_flows_too_large_are_refused() -> None:
    huge = np.array([2**31])
    with pytest.raises(DataError, match="certificate"):
        max_flow.largest_flow(huge, huge, np.array([0]), np.array([0]))


def test_the_longer_list_is_not_searched() -> None:
    """Covers looks through the originals with equal other columns where they are fewer than those covered."""
    rng = np.random.default_rng(3)
    table, _ = random_table(rng, 40, others=2)
    boxes = Generalization.of(table.records).with_suppressed(np.arange(40) < 30)
    frame = boxes.decode()
    frame["s0"], frame["s1"] = table.frame["s0"].to_numpy(), table.frame["s1"].to_numpy()
    assert verify(table, frame, "covers", k=5)
    evidence = collect(table, subject_of(frame), 5, None)
    assert evidence.rest is not None
    moved = frame.copy()
    moved["s0"] = "5"
    assert not verify(table, moved, "covers", k=5) or (table.frame["s0"] == "5").all()


def test_a_perfect_matching_is_found_where_a_flow_finds_one() -> None:
    rng = np.random.default_rng(7)
    seen = set()
    for n in [*range(1, 9), 40] * 12:
        edge = np.sort(rng.choice(n * n, min(n * n, int(rng.integers(1, 3 * n + 1))), replace=False))
        left, right = edge % n, edge // n
        starts = np.append(0, np.cumsum(np.bincount(right, minlength=n)))
        values = np.ones(n, np.int64)
        perfect = max_flow.largest_flow(values, values, left, right).value == n
        assert max_flow.matched_all(starts, left, n) == perfect
        seen.add(perfect)
    assert seen == {True, False}
    assert not max_flow.matched_all(np.zeros(3, int), np.zeros(0, int), 2)


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_rows_that_cover_a_record_are_counted_in_blocks(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "_BLOCK", block)
    records = coded([("numeric", 6), ("categorical", 3)], 40, 5, missing=0.1)
    rows = Generalization.join_of(records, np.random.default_rng(1).integers(0, 40, (23, 2)))
    counts = covering(records, rows)
    assert counts.tolist() == adjacency(records, rows).sum(axis=1).tolist()
    assert counts.min() < counts.max()


def test_lists_of_a_graph_are_whom_each_row_covers() -> None:
    records = coded([("numeric", 4), ("categorical", 3)], 60, 3)
    rng = np.random.default_rng(4)
    published = Generalization.join_by_class(records, rng.integers(0, 15, records.n)).take(
        rng.permutation(records.n)
    )
    covers = np.stack(
        [published.covers(Generalization.of(records).take(np.full(60, i))) for i in range(60)], axis=1
    )
    bipartite = consistency_graph(records, published)
    keep = rng.random(bipartite.edges) < 0.7
    for part, mask in ((bipartite, np.ones(bipartite.edges, bool)), (bipartite.only(keep), keep)):
        kept_pairs = np.zeros((bipartite.published.size, bipartite.originals.size), bool)
        kept_pairs[bipartite.box[mask], bipartite.end[mask]] = True
        expected = covers & kept_pairs[bipartite.published.label][:, bipartite.originals.label]
        row, original = part.lists().pairs()
        pairs = np.zeros_like(covers)
        pairs[row, original] = True
        assert len(row) == pairs.sum()
        assert (pairs == expected).all()


@loop("k", [9, 2**31, 2**40, 2**61, 2**62, 2**63, 10**20])
def test_no_release_is_regular_of_more_than_its_records(k: int) -> None:
    """k = 2^62 times four equal people is 2^64, which 64 bits take for 0: the release held."""
    frame = pd.DataFrame({"age": [30] * 4 + [50] * 4})
    table = af.Table(frame, {"age": {"role": "quasi-identifier", "kind": "numeric"}})
    (finding,) = verify(table, frame, "k-regular", k=k).findings
    assert finding.holds is False
    assert finding.failed == 8
