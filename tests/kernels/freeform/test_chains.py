"""Ejection chains: prices to the last bit, chains against their definition, undone without a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonflow.algorithms.freeform.chains import search_of
from anonflow.algorithms.freeform.reciprocal import reciprocal_matches
from anonflow.algorithms.method import Partition
from anonflow.generalization import Generalization
from anonflow.kernels.costs import load, widen_jit
from anonflow.kernels.freeform import chains, descent, slot_rows, symmetric_chains, two_hops
from anonflow.kernels.freeform.chains import Search
from anonflow.kernels.freeform.descent import DRAWS
from anonflow.kernels.freeform.slot_rows import SlotRows
from anonflow.kernels.state import Plan, State, take
from anonflow.table import Table
from tests.naive import chains as naive
from tests.strategies import examples, regular_matches, tables

MEASURES = ("ncp", "lm", "entropy", "height", "suppressions")
BOTH = pytest.mark.parametrize("compiled", [True, False])


class Graph(NamedTuple):
    plan: Plan
    origin: State
    rows: SlotRows
    search: Search

    def cost(self, originals: list[int] | np.ndarray) -> float:
        """Of the generalized record that covers some originals, by the kernels that all methods share."""
        joined = take(self.origin, np.array([originals[0]]))
        for i in originals[1:]:
            widen_jit(self.plan, joined, 0, self.origin, int(i))
        return float(joined.cost[0])

    def loss(self) -> float:
        return sum(self.cost(row) for row in self.search.matches)

    def bits(self) -> list[bytes]:
        """Everything that a search changes."""
        kept = (self.search.matches, self.search.holders, self.search.turn, self.search.waiting)
        return [part.tobytes() for part in (*kept, self.rows.word, self.rows.drop)]


def graph_of(
    table: Table, measure: str, matches: np.ndarray, near: np.ndarray, compiled: bool = True
) -> Graph:
    part = Partition(table.records, measure, np.random.default_rng(0))
    own = Generalization.of(table.records)
    origin = load(part.plan, own.lo, own.hi, own.bits)
    search = search_of(matches.copy(), near.shape[1])
    search.near[:] = near
    rows = slot_rows.empty_rows(part.plan, origin, matches.shape[1])
    kernel("renew_span", compiled)(rows, search.matches, 0, len(matches))
    return Graph(part.plan, origin, rows, search)


def kernel(name: str, compiled: bool) -> Callable[..., Any]:
    room = next(
        room
        for room in (chains, descent, slot_rows, symmetric_chains, two_hops)
        if hasattr(room, f"{name}_jit")
    )
    return getattr(room, f"{name}_jit" if compiled else name)


def assert_consistent(graph: Graph) -> None:
    """k-regular, both sides agree, rows are those of the matches."""
    matches, holders, turn = graph.search.matches, graph.search.holders, graph.search.turn
    n, k = matches.shape
    assert (matches[:, 0] == np.arange(n)).all()
    assert (holders[:, 0] == np.arange(n) * k).all()
    assert all(len(set(row)) == k for row in matches.tolist())
    assert (np.bincount(matches.ravel(), minlength=n) == k).all()
    assert (matches.ravel()[holders] == np.arange(n)[:, None]).all()
    assert (holders[matches, turn].ravel() == np.arange(n * k)).all()
    fresh = graph.rows._replace(
        num=graph.rows.num.copy(), word=np.zeros_like(graph.rows.word), drop=np.zeros_like(graph.rows.drop)
    )
    fresh = fresh._replace(num=fresh.word.view(np.float64))
    slot_rows.renew_span_jit(fresh, matches, 0, n)
    assert fresh.word.tobytes() == graph.rows.word.tobytes()
    assert fresh.drop.tobytes() == graph.rows.drop.tobytes()
    assert not graph.search.waiting.any()


def assert_mutual(graph: Graph) -> None:
    """Consistent, and i stands in j's row where j stands in i's."""
    assert_consistent(graph)
    rows = [set(row) for row in graph.search.matches.tolist()]
    assert all(j in rows[i] for j, row in enumerate(rows) for i in row)


@st.composite
def graphs(draw: st.DrawFn, compiled: bool = True, min_n: int = 3, max_n: int = 8) -> Graph:
    table = draw(tables(min_n=min_n, max_n=max_n))
    n = table.n
    k = draw(st.integers(2, n))
    matches = draw(regular_matches(n, k))
    near = np.array([draw(st.permutations(range(n))) for _ in range(n)], np.int32)
    return graph_of(table, draw(st.sampled_from(MEASURES)), matches, near, compiled)


@BOTH
@examples(60)
@given(data=st.data())
def test_rows_are_priced_to_the_last_bit(data: st.DataObject, compiled: bool) -> None:
    graph = data.draw(graphs(compiled))
    n, k = graph.search.matches.shape
    ups = np.empty((n * k, n))
    kernel_rises, kernel_of = kernel("rises", compiled), kernel("rises_of", compiled)
    for j, row in enumerate(graph.search.matches.tolist()):
        whole = graph.cost(row)
        assert graph.rows.drop[j * k] == whole
        for s in range(k):
            rest = [a for d, a in enumerate(row) if s == 0 or d != s]
            least = graph.cost(rest)
            if s:
                assert graph.rows.drop[j * k + s] == whole - least
            kernel_rises(graph.rows, j * k + s, np.arange(n), n, ups[j * k + s])
            assert ups[j * k + s].tolist() == [graph.cost([*rest, i]) - least for i in range(n)]
    for i in range(n):
        back = np.empty(n * k)
        kernel_of(graph.rows, i, np.arange(n * k), n * k, back)
        assert back.tolist() == ups[:, i].tolist()


@BOTH
@examples(60)
@given(data=st.data())
def test_a_chain_is_the_one_that_the_definition_finds(data: st.DataObject, compiled: bool) -> None:
    graph = data.draw(graphs())
    n, k = graph.search.matches.shape
    depth, steps = data.draw(st.integers(2, 5)), data.draw(st.sampled_from([1, 2, 100]))
    graph.search.block[:] = data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    work = kernel("chain_scratch", compiled)(k, n, depth, steps)
    holders = [[divmod(place, k) for place in line[1:]] for line in graph.search.holders.tolist()]
    arguments = (graph.search.near.tolist(), holders, graph.search.block.tolist(), graph.cost)
    for i in range(n):
        for s in range(1, k):
            result = kernel("chain", compiled)(graph.rows, graph.search, i, s, work)
            wanted = naive.chain(graph.search.matches.tolist(), *arguments, i, s, depth, steps)
            links = zip(work.record[:result], work.slot[:result], work.gained[:result], strict=True)
            assert [tuple(map(int, link)) for link in links] == wanted


@BOTH
@examples(40)
@given(data=st.data())
def test_every_chain_keeps_the_graph_and_lowers_the_loss(data: st.DataObject, compiled: bool) -> None:
    graph = data.draw(graphs())
    n, k = graph.search.matches.shape
    work = kernel("chain_scratch", compiled)(k, n, 5, 8)
    before = graph.loss()
    for _ in range(2):
        for i in range(n):
            for s in range(1, k):
                length = kernel("chain", compiled)(graph.rows, graph.search, i, s, work)
                if length:
                    kernel("hand_on", compiled)(graph.rows, graph.search, work, length, False)
                    now = graph.loss()
                    assert now < before
                    before = now
                assert_consistent(graph)


@BOTH
@examples(40)
@given(data=st.data())
def test_what_a_journal_takes_back_leaves_no_trace(data: st.DataObject, compiled: bool) -> None:
    graph = data.draw(graphs())
    n, k = graph.search.matches.shape
    work = kernel("chain_scratch", compiled)(k, n, 4, 8)
    before, bits = graph.loss(), graph.bits()
    journal = np.empty((data.draw(st.sampled_from([4, 200])), 4), np.int64)
    facts = np.zeros(5, np.int64)
    queue = np.arange(n + 1)
    graph.search.waiting[:] = True
    change = kernel("descend", compiled)(
        graph.rows, graph.search, False, work, queue, n, 100, np.inf, journal, facts
    )
    assert graph.loss() == before + change
    assert_consistent(graph)
    assert facts[4] <= len(journal)
    kernel("take_back", compiled)(graph.rows, graph.search, work, journal, facts[4])
    assert graph.bits() == bits


@examples(40)
@given(st.data())
def test_kicks_never_raise_the_loss_and_plain_and_compiled_agree(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    n = len(graph.search.matches)
    matches = graph.search.matches.copy()
    members = np.array(data.draw(st.permutations(range(n))), np.int64)
    lanes = np.random.default_rng(data.draw(st.integers(0, 99))).integers(
        2**32, size=(20, DRAWS), dtype=np.uint32
    )
    sizes = np.array([4, 8, 1000, data.draw(st.sampled_from([1, 2, 30])), 50], np.int64)
    answers = []
    for compiled in (True, False):
        again = Graph(graph.plan, graph.origin, graph.rows, search_of(matches.copy(), n))
        again.search.near[:] = graph.search.near
        slot_rows.renew_span_jit(again.rows, again.search.matches, 0, n)
        before = again.loss()
        facts = np.zeros(5, np.int64)
        change = kernel("block_chains", compiled)(
            again.rows, again.search, False, members, lanes, 0.5, sizes, facts
        )
        assert change <= 0
        assert again.loss() == before + change
        assert_consistent(again)
        answers.append((again.bits(), change, facts.tolist()))
    assert answers[0] == answers[1]


@BOTH
@examples(40)
@given(data=st.data())
def test_a_kick_begins_at_the_costliest_record_and_takes_from_the_holder_that_gains_most(
    data: st.DataObject, compiled: bool
) -> None:
    """What other blocks hold is another thread's: it has no part in the choice."""
    graph = data.draw(graphs())
    search, (n, k) = graph.search, graph.search.matches.shape
    search.block[:] = data.draw(st.lists(st.sampled_from([0, 0, 1]), min_size=n, max_size=n))
    members = np.flatnonzero(search.block == 0)
    if not len(members):
        return
    work = kernel("chain_scratch", compiled)(k, n, 4, 8)
    lanes = np.random.default_rng(data.draw(st.integers(0, 99))).integers(
        2**32, size=(30, DRAWS), dtype=np.uint32
    )
    drop = graph.rows.drop.copy()
    for lane in lanes:
        answers = []
        for of_others in (0.0, np.inf):
            graph.rows.drop[:] = np.where(np.repeat(search.block, k) == 0, drop, of_others)
            answer = kernel("kick", compiled)(graph.rows, search, False, members, lane, work)
            answers.append(
                (answer, work.record[:2].tolist(), work.slot[:2].tolist(), work.gained[:2].tolist())
            )
        assert answers[0] == answers[1]
        if not answers[0][0][0]:
            continue
        i, j = work.record[:2].tolist()
        drawn = [int(members[int(draw) * len(members) // 2**32]) for draw in lane[:4]]
        assert i in drawn
        assert drop[i * k] == max(drop[record * k] for record in drawn)
        holders = search.holders[work.gained[0], 1:]
        gains = drop[holders[search.block[holders // k] == 0]]
        assert drop[j * k + work.slot[1]] == gains.max()


@BOTH
@examples(30)
@given(table=tables(min_n=4, max_n=9), data=st.data())
def test_chains_and_kicks_of_links_keep_them_mutual(
    table: Table, data: st.DataObject, compiled: bool
) -> None:
    """Every graph in between is symmetric and regular, no chain raises the loss, and a journal undoes all of it."""
    n = table.n
    measure = data.draw(st.sampled_from(MEASURES))
    part = Partition(table.records, measure, np.random.default_rng(0))
    start, _ = reciprocal_matches(part, data.draw(st.integers(2, n - 1)), "sort-greedy")
    near = np.array([data.draw(st.permutations(range(n))) for _ in range(n)], np.int32)
    graph = graph_of(table, measure, start.astype(np.int32), near, compiled)
    k = start.shape[1]
    search = graph.search
    search.block[:] = data.draw(st.lists(st.sampled_from([0, 0, 1]), min_size=n, max_size=n))
    members = np.flatnonzero(search.block == 0)
    work = kernel("chain_scratch", compiled)(k, n, 10, 1)
    before = graph.loss()
    for i in members.tolist():
        for s in range(1, k):
            length = kernel("symmetric_chain", compiled)(graph.rows, search, i, s, work)
            if length:
                assert (search.block[work.record[:length]] == 0).all()
                kernel("hand_on", compiled)(graph.rows, search, work, length, True)
                now = graph.loss()
                assert now < before
                before = now
                assert_mutual(graph)
    if not len(members):
        return
    lanes = np.random.default_rng(data.draw(st.integers(0, 99))).integers(
        2**32, size=(30, DRAWS), dtype=np.uint32
    )
    journal = np.empty((200, 4), np.int64)
    for lane in lanes:
        bits = graph.bits()
        length, price = kernel("kick", compiled)(graph.rows, search, True, members, lane, work)
        if not length:
            continue
        assert length == 4
        assert len(set(work.record[:4].tolist())) == 4
        assert (search.block[work.record[:4]] == 0).all()
        entries = kernel("note", compiled)(search, work, length, journal, 0)
        kernel("hand_on", compiled)(graph.rows, search, work, length, True)
        assert_mutual(graph)
        assert graph.loss() == before + price
        kernel("take_back", compiled)(graph.rows, search, work, journal, entries)
        assert graph.bits() == bits
    facts = np.zeros(5, np.int64)
    change = kernel("block_chains", compiled)(
        graph.rows, search, True, members, lanes, 0.5, np.array([10, 1, 1000, 16, 200], np.int64), facts
    )
    assert change <= 0
    assert graph.loss() == before + change
    assert_mutual(graph)


@BOTH
@examples(40)
@given(data=st.data())
def test_candidates_are_the_cheapest_of_those_looked_at(data: st.DataObject, compiled: bool) -> None:
    graph = data.draw(graphs())
    matches = graph.search.matches
    n, k = matches.shape
    orders = np.array([data.draw(st.permutations(range(n))) for _ in range(2)], np.int64)
    ranks = np.argsort(orders, axis=1)
    reach, shifts = (
        data.draw(st.integers(0, 2)),
        np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=2))),
    )
    room = data.draw(st.integers(1, n))
    before = [data.draw(st.permutations(range(n)))[: data.draw(st.integers(0, room))] for _ in range(n)]
    search = graph.search._replace(near=np.full((n, room), -1, np.int32))
    for i, known in enumerate(before):
        search.near[i, : len(known)] = known
    kernel("two_hops", compiled)(
        graph.rows,
        search,
        orders,
        ranks,
        reach,
        shifts.astype(np.int64),
        data.draw(st.integers(0, k - 1)),
        0,
        n,
    )
    for i in range(n):
        held = {int(j) for a in matches[i] for j in np.flatnonzero((matches == a).any(axis=1))}
        seen = {int(b) for j in held for b in matches[j]} | {int((i + shift) % n) for shift in shifts}
        seen |= set(before[i])
        for at, line in zip(ranks, orders, strict=True):
            seen |= set(line[max(at[i] - reach, 0) : at[i] + reach + 1].tolist())
        seen -= set(matches[i].tolist())
        price = {b: graph.cost([*matches[i], b]) for b in seen}
        results = [b for b in search.near[i].tolist() if b >= 0]
        assert len(set(results)) == len(results) == min(room, len(seen))
        assert set(results) <= seen
        assert [price[b] for b in results] == sorted(price.values())[: len(results)]
        assert (search.near[i, len(results) :] == -1).all()
