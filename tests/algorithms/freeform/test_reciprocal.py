"""Reciprocal graphs: symmetric, regular, as spelled out, for every n and k; through release, verifier and flow."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
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
from anonflow import loss as losses
from anonflow.algorithms.freeform import min_cost_flow
from anonflow.algorithms.freeform.chains import improve_by_chains
from anonflow.algorithms.freeform.hungarian import HUNGARIAN
from anonflow.algorithms.freeform.min_cost_flow import mutual_flow_matches
from anonflow.algorithms.freeform.nh import halves, mutual_ring_matches, nh_matches
from anonflow.algorithms.freeform.optimal import optimal
from anonflow.algorithms.freeform.optimal_model import all_sets
from anonflow.algorithms.freeform.optimal_symmetric import SymmetricPrices, SymmetricSets
from anonflow.algorithms.freeform.reciprocal import reciprocal_matches
from anonflow.algorithms.method import Partition, Progress
from anonflow.errors import FlowError, ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.costs import load
from anonflow.kernels.freeform import links
from anonflow.kernels.freeform import symmetric as kernels
from anonflow.kernels.freeform.ring import nearest_rings
from anonflow.kernels.state import GRID
from anonflow.partition import lexicographic_order
from anonflow.table import Table
from tests.cases import costs as cost_cases
from tests.cases.bounds import naive_cost, random_records
from tests.cases.flow_files import flow_text
from tests.cases.freeform import DYADIC, MEASURES, dyadic, part_of, total
from tests.cases.plain_kernels import KERNELS, plainly
from tests.cases.tables import mixed
from tests.checks import Ticks, check_release, check_result
from tests.naive import loss as naive_loss
from tests.naive import reciprocal as naive
from tests.strategies import examples, loop, seeded, tables

METHODS = ("greedy", "sort-greedy", "hungarian")
EVERY = (*METHODS, "nh", "min-cost-flow", "optimal")
FLOW = flow_text(
    "mutual",
    """\
    a: {role: quasi-identifier, kind: numeric}
    b: {role: quasi-identifier, kind: categorical}
    pay: {role: sensitive}
""",
    """\
partition: {size: 31}
steps:
  - anonymize: {algorithm: greedy, k: 4, reciprocal: true}
  - draw: {}
  - verify: [covers, guarantee]
""",
)


def numbers(n: int, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {"a": rng.integers(0, 50, n), "b": rng.choice(list("xyz"), n), "pay": rng.choice(list("lh"), n)}
    )
    qi = {"role": "quasi-identifier"}
    schema: dict[str, Any] = {"a": qi | {"kind": "numeric"}, "b": qi | {"kind": "categorical"}}
    return Table(frame, schema | {"pay": {"role": "sensitive"}})


def cost_of(table: Table, measure: str) -> naive.Cost:
    """What a record costs that covers some originals."""

    @cache
    def cost(rows: frozenset[int]) -> Any:
        cover = Generalization.join_of(table.records, np.array([sorted(rows)]))
        return float(losses.record_costs(cover, measure)[0])

    return cost


def assert_mutual(matches: np.ndarray, k: int) -> None:
    """Symmetric, regular of degree k or, where n (k - 1) is odd, k + 1; columns are assignments and inverses."""
    n = len(matches)
    degree = k + n * (k - 1) % 2
    assert naive.is_symmetric_regular(matches.tolist(), degree)
    assert (np.sort(matches, axis=0) == np.arange(n)[:, None]).all()
    start = 1
    if degree % 2 == 0:
        assert (matches[matches[:, 1], 1] == np.arange(n)).all()
        start = 2
    for d in range(start, degree, 2):
        assert (matches[matches[:, d], d + 1] == np.arange(n)).all()


@examples(40)
@given(tables(min_n=2, max_n=9), st.data(), st.sampled_from(MEASURES), st.sampled_from(METHODS))
def test_plain_and_compiled_agree(table: Table, data: st.DataObject, measure: str, method: Any) -> None:
    k = data.draw(st.integers(2, table.n))
    part = part_of(table, measure)
    matches, facts = reciprocal_matches(part, k, method)
    again, same = plainly(reciprocal_matches, part, k, method)
    assert (matches == again).all()
    assert (facts == same).all()
    assert_mutual(matches, k)


@examples(40)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 4]), st.integers(3, 13), st.booleans())
def test_it_agrees_with_a_plain_implementation(seed: int, q: int, n: int, greedy: bool) -> None:
    rng = np.random.default_rng(seed)
    records = dyadic(rng, n, rng.integers(0, len(DYADIC), q).tolist())
    k = int(rng.integers(2, (n + 2) // 2 + 1))  # k < (n + 3) / 2: exchanging links is enough
    k = k - 1 if n * (k - 1) % 2 else k
    plain = cost_cases.attributes(records)

    @cache
    def cost(rows: frozenset[int]) -> Fraction:
        return Fraction(naive_loss.join_cost(plain, records.codes, sorted(rows), "ncp"))

    order = lexicographic_order(records).tolist()
    expected, exchanged = naive.rounds(cost, order, k, greedy)
    part = Partition(records, "ncp", np.random.default_rng(0))
    matches, facts = reciprocal_matches(part, k, "greedy" if greedy else "sort-greedy")
    assert [set(row) for row in matches.tolist()] == expected
    assert facts.tolist() == [exchanged, 0]


@pytest.mark.parametrize("method", METHODS)
@loop("n", [2, 3, 4, 5, 6, 7, 8, 11, 12, 33])
def test_every_k_up_to_n(method: Any, n: int) -> None:
    records = cost_cases.table(np.random.default_rng(n), n, ["numeric", "categorical"], [9, 4])
    part = Partition(records, "ncp", np.random.default_rng(0))
    for k in range(2, n + 1):
        matches, facts = reciprocal_matches(part, k, method)
        assert_mutual(matches, k)
        degree = matches.shape[1]
        if 2 * degree < n + 3:
            assert facts[1] == 0


def test_dead_ends_are_met_and_resolved_both_ways() -> None:
    exchanged = whole = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(5, 12))
        records = cost_cases.table(rng, n, ["numeric", "numeric"], [n, n])
        part = Partition(records, "ncp", rng)
        for k in range(2, n):
            matches, facts = reciprocal_matches(part, k, "greedy")
            assert_mutual(matches, k)
            exchanged += int(facts[0])
            whole += int(facts[1])
    assert exchanged > 0
    assert whole > 0


def test_hungarian_is_near_the_least_two_factor() -> None:
    """One step of two, small enough to search: never below the least, on average hardly above."""
    value = least = 0.0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = 7
        records = cost_cases.table(rng, n, ["numeric", "categorical"], [30, 4])
        plain = cost_cases.attributes(records)
        price = {
            (i, j): 2 * float(naive_loss.join_cost(plain, records.codes, sorted((i, j)), "ncp"))
            for i, j in itertools.permutations(range(n), 2)
        }
        matches, _ = reciprocal_matches(Partition(records, "ncp", rng), 3, "hungarian")
        mine = sum(price[j, int(matches[j, 1])] for j in range(n))
        best = naive.least_two_factor(price, n)
        assert mine >= best - 1e-9
        value, least = value + mine, least + best
    assert value <= 1.05 * least


@examples(15)
@given(tables(min_n=3, max_n=8), st.data(), st.sampled_from(MEASURES))
def test_chains_of_links_end_where_no_exchange_lowers_the_loss(
    table: Table, data: st.DataObject, measure: str
) -> None:
    k = data.draw(st.integers(1, table.n))
    start, _ = reciprocal_matches(part_of(table, measure), k, "sort-greedy")
    cost = cost_of(table, measure)
    answers = []
    for kind in KERNELS:
        seen: list[Progress] = []
        part = replace(part_of(table, measure), watch=seen.append)
        with kind(), ThreadPoolExecutor(2) as pool:
            matches, facts = improve_by_chains(part, start, table.n, 100, 0, pool, mutual=True)
        answers.append((matches.tolist(), facts))
    assert answers[0] == answers[1]
    assert naive.is_symmetric_regular(matches.tolist(), start.shape[1])
    rows = [frozenset(row) for row in matches.tolist()]
    total = sum(map(cost, rows))
    assert total <= sum(cost(frozenset(row)) for row in start.tolist()) + 1e-9
    assert (facts["chains"] > 0) == (matches.tolist() != start.tolist())
    assert [progress.loss for progress in seen[-1:]] == pytest.approx([total] * bool(seen), abs=1e-9)
    if (
        measure != "entropy"
    ):  # a wider cell may cost less there, and the search goes on only while what it cuts gains
        assert naive.best_exchange(rows, cost) > -1e-9


@loop(("n", "k"), [(40, 4), (41, 4), (70, 5), (9, 9)])
def test_two_phase_is_reciprocal_and_loses_less_than_hungarian(n: int, k: int) -> None:
    table = numbers(n)
    ours = af.anonymize(table, "two-phase", k=k, seed=1, reciprocal=True, first=20)
    check_result(ours)
    assert ours.matches is not None
    assert naive.is_symmetric_regular(ours.matches.tolist(), k + n * (k - 1) % 2)
    assert ours.facts["one_more_match"] == (n if n * (k - 1) % 2 else 0)
    whole = af.anonymize(table, "two-phase", k=k, seed=1, reciprocal=True)
    assert whole.loss() <= af.anonymize(table, "hungarian", k=k, reciprocal=True).loss()
    again = af.anonymize(table, "two-phase", k=k, seed=1, reciprocal=True, first=20, workers=2)
    np.testing.assert_array_equal(ours.matches, again.matches)


def test_chains_of_links_are_the_only_improvement_of_reciprocal_graphs() -> None:
    with pytest.raises(ParameterError, match="reciprocal needs improve: chains"):
        af.anonymize(numbers(9), "two-phase", k=3, reciprocal=True, improve="cycles")


@loop("kernel", [kernels.pair_cycles, kernels.pair_cycles_jit])
def test_cycles_into_pairs(kernel: Any) -> None:
    """(0 1 2 3), (4 5 6), (7 8): every other link, the cheaper half; an odd cycle leaves the dearest over."""
    to = np.array([1, 2, 3, 0, 5, 6, 4, 8, 7])
    costs = np.ones((9, 9))
    costs[0, 1] = costs[1, 0] = 5.0
    costs[4, 5] = costs[6, 4] = 3.0
    near, size = np.zeros((9, 2), np.int32), np.ones(9, np.int64)
    kernel(to, costs, near, size, 1)
    assert near[:4, 1].tolist() == [3, 2, 1, 0]
    assert near[[5, 6, 7, 8], 1].tolist() == [6, 5, 8, 7]
    assert size.tolist() == [2, 2, 2, 2, 1, 2, 2, 2, 2]


@loop("kernel", [links.exchange_links, links.exchange_links_jit])
def test_ends_are_exchanged_where_that_is_cheaper(kernel: Any) -> None:
    at = np.array([0.0, 1.0, 10.0, 11.0])
    costs = np.abs(at[:, None] - at)
    costs[np.arange(4), np.arange(4)] = np.inf
    near = np.array([[0, 2], [1, 3], [2, 0], [3, 1]], np.int32)
    assert kernel(costs, near, 1, 1, 9) == 1
    assert near[:, 1].tolist() == [1, 0, 3, 2]
    costs[0, 1] = costs[1, 0] = np.inf  # linked before: stays as it is
    near = np.array([[0, 2], [1, 3], [2, 0], [3, 1]], np.int32)
    assert kernel(costs, near, 1, 1, 9) == 0


@loop("kernel", [kernels.orient_unused, kernels.orient_unused_jit])
@loop("n", [3, 4, 7, 10])
def test_unused_pairs_get_a_direction_each(kernel: Any, n: int) -> None:
    level = 1 if n % 2 else 2
    near = np.column_stack([np.arange(n), np.arange(n)[::-1]])[:, :level].astype(np.int32)
    arcs = np.ones((n, n), bool)
    kernel(near, level, arcs)
    free = np.ones((n, n), bool)
    free[np.arange(n)[:, None], near] = False
    assert ((arcs ^ arcs.T) == free).all()
    assert not (arcs & arcs.T).any()
    assert (arcs.sum(axis=0) == arcs.sum(axis=1)).all()


@examples(40)
@given(tables(min_n=2, max_n=30), st.data())
def test_rings_that_reach_both_ways(table: Table, data: st.DataObject) -> None:
    """As spelled out; symmetric, of degree k but for one ring of an odd size; of odd k at the price of other rings."""
    n = table.n
    k = data.draw(st.integers(1, n))
    part = part_of(table)
    matches, count = mutual_ring_matches(part, k)
    plain, same = plainly(mutual_ring_matches, part, k)
    assert (matches == plain).all()
    assert count == same
    rows = [set(row[row >= 0].tolist()) for row in matches]
    assert all(j in rows[i] for j, row in enumerate(rows) for i in row)
    degree = np.array([len(row) for row in rows])
    assert ((matches >= 0).sum(axis=1) == degree).all()
    assert (matches[:, 0] == np.arange(n)).all()
    assert set(degree.tolist()) <= {k, k + 1}
    more = np.flatnonzero(degree == k + 1)
    assert (len(more) > 0) == (n * (k - 1) % 2 == 1)
    assert len(more) < 2 * k + 2
    assert all(rows[j] <= set(more.tolist()) for j in more)
    sizes = np.diff(2 * halves(n // 2, k // 2) if k % 2 == 0 else halves(n, k))
    sizes[-1] += n - sizes.sum()
    assert count == len(sizes)
    origin = load(
        part.plan, *(getattr(Generalization.of(table.records), name) for name in ("lo", "hi", "bits"))
    )
    order = lexicographic_order(table.records)
    nearest_rings(part.plan, origin, order, np.concatenate([[0], np.cumsum(sizes)]))
    assert rows == naive.mutual_rings(order.tolist(), sizes.tolist(), k)
    if k % 2:
        assert total(table, matches, "ncp") == pytest.approx(total(table, nh_matches(part, k)[0], "ncp"))


@examples(40)
@given(tables(min_n=2, max_n=9), st.data(), st.sampled_from(MEASURES))
def test_the_halved_flow_in_plain_and_compiled(table: Table, data: st.DataObject, measure: str) -> None:
    k = data.draw(st.integers(1, table.n))
    part = part_of(table, measure)
    matches, facts = mutual_flow_matches(part, k)
    plain, same = plainly(mutual_flow_matches, part, k)
    assert (matches == plain).all()
    assert (facts == same).all()
    assert naive.is_symmetric_regular(matches.tolist(), k + table.n * (k - 1) % 2)
    assert (np.diff(matches[:, 1:], axis=1) > 0).all()


def test_the_halved_flow_is_near_the_least_symmetric_graph() -> None:
    """Links priced each alone, small enough to try every graph: never below the least, mostly the least."""
    mine = least = 0.0
    reached = completed = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = 5 + seed % 3
        records = cost_cases.table(rng, n, ["numeric", "categorical"], [30, 4])
        part = Partition(records, "ncp", rng)
        plain = cost_cases.attributes(records)

        @cache
        def price(i: int, j: int, plain: Any = plain, records: Any = records) -> float:
            return float(naive_loss.join_cost(plain, records.codes, sorted({i, j}), "ncp"))

        for k in (2, 3, 4):
            matches, facts = mutual_flow_matches(part, k)
            degree = matches.shape[1]
            ours = sum(price(j, int(i)) for j, row in enumerate(matches) for i in row)
            best = min(
                sum(price(j, i) for j, row in enumerate(rows) for i in row)
                for rows in naive.symmetric_graphs(n, degree)
            )
            assert ours >= best - 1e-9
            mine, least = mine + ours, least + best
            reached += ours <= best + 1e-9
            completed += int(facts[0])
    assert mine <= 1.01 * least
    assert reached >= 110
    assert completed > 0


@pytest.mark.parametrize("k", [3, 4, 6, 8])
def test_a_flow_that_cannot_be_completed_gives_way_to_sort_greedy(
    monkeypatch: pytest.MonkeyPatch, k: int
) -> None:
    """No table is known where that happens; there is no proof for more than half of the records as matches."""
    monkeypatch.setattr(min_cost_flow, "complete_links_jit", lambda *_: False)
    part = part_of(numbers(9))
    matches, facts = mutual_flow_matches(part, k)
    assert facts.tolist() == [0, 1]
    assert naive.is_symmetric_regular(matches.tolist(), k + 9 * (k - 1) % 2)


@loop("kernel", [kernels.halve_trails, kernels.halve_trails_jit])
def test_every_other_link_of_a_trail(kernel: Any) -> None:
    """(0 1 2 3) gives its cheaper half; (4 5 6) one link, and leaves over where it starts."""
    half = np.zeros((7, 7), bool)
    costs = np.ones((7, 7))
    for i, j in ((0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (5, 6), (6, 4)):
        half[i, j] = half[j, i] = True
    costs[1, 2] = costs[2, 1] = 3.0
    near, size = np.zeros((7, 2), np.int32), np.ones(7, np.int64)
    kernel(half, costs, near, size)
    assert not half.any()
    assert near[:4, 1].tolist() == [1, 0, 3, 2]
    assert near[[5, 6], 1].tolist() == [6, 5]
    assert size.tolist() == [2, 2, 2, 2, 1, 2, 2]


@seeded(10, 4)
@loop("measure", MEASURES)
def test_optimal_is_the_least_symmetric_graph(measure: str, seeds: range) -> None:
    """Every kind of QI, every loss, entropy too: all symmetric graphs are tried."""
    for seed in seeds:
        n = 4 + seed % 4
        records = random_records(200 + seed, n)
        price = naive_cost(records, measure)
        cost = cache(lambda rows, price=price: price(sorted(rows)))
        for k in range(2, n + 1):
            ours = optimal(Partition(records, measure, np.random.default_rng(seed)), k, reciprocal=True)
            degree = k + n * (k - 1) % 2
            assert ours.matches is not None
            assert naive.is_symmetric_regular(ours.matches.tolist(), degree)
            assert ours.facts["proven"]
            assert ours.facts["one_more_match"] == (n if degree > k else 0)
            assert ours.facts["cost"] == pytest.approx(naive.least_symmetric(cost, n, degree), abs=1e-6)
            assert ours.facts["cost"] <= ours.facts["start"]


def test_bounds_of_symmetric_graphs_hold_whatever_the_prices() -> None:
    part = part_of(numbers(8))
    own = Generalization.of(part.records)
    model = SymmetricSets(all_sets(part.plan, load(part.plan, own.lo, own.hi, own.bits), 3))
    best = round(optimal(part, 3, reciprocal=True).facts["cost"] / GRID)
    rng = np.random.default_rng(0)
    for _ in range(200):
        prices = np.triu(rng.integers(-(2**44), 2**44, (8, 8)), 1)
        reduced = model.reduced(SymmetricPrices(prices - prices.T, np.zeros(8, np.int64)))
        assert model.least(reduced).sum() <= best
    choices = model.choices(reciprocal_matches(part, 3, "greedy")[0])
    assert (np.sort(model.matches(choices)) == np.sort(reciprocal_matches(part, 3, "greedy")[0])).all()
    # prices cancel in a symmetric graph
    assert reduced[choices].sum() == model.cost(choices)


@loop("k", [2, 4, 5])
def test_no_symmetric_graph_loses_less_than_the_optimal_one(k: int) -> None:
    table = numbers(10, seed=k)
    ours = af.anonymize(table, "optimal", k=k, reciprocal=True)
    check_result(ours)
    assert ours.facts["proven"]
    assert ours.loss() >= af.anonymize(table, "optimal", k=k).loss() - 1e-12
    for other in ("greedy", "sort-greedy", "hungarian", "min-cost-flow", "nh", "two-phase"):
        assert ours.loss() <= af.anonymize(table, other, k=k, seed=1, reciprocal=True).loss() + 1e-12


@pytest.mark.parametrize("limit", [0, 0.2, pytest.param(1.5, marks=pytest.mark.slow)])
def test_optimal_keeps_its_limit_and_begins_with_two_phase_where_there_is_time(
    limit: float, ticks: Ticks
) -> None:
    table, begin = numbers(99), ticks.now
    ours = af.anonymize(table, "optimal", k=6, seed=1, time_limit=limit, reciprocal=True)
    assert ticks.now - begin < limit + 10 * ticks.tick, "few looks at the clock follow the limit"
    check_result(ours)
    assert ours.facts["lower_bound"] <= ours.facts["cost"] <= ours.facts["start"]
    other = af.anonymize(table, "two-phase" if limit > 1 else "greedy", k=6, seed=1, reciprocal=True)
    assert ours.facts["start"] == pytest.approx(other.loss() * 99)


# ------------------------------------------------------------------------------------ through the house


@pytest.mark.parametrize(
    ("method", "n", "k"),
    [
        pytest.param(method, n, k, marks=[pytest.mark.slow] * ((i + n + k) % 2))
        for i, method in enumerate(EVERY)
        for n in (40, 41)
        for k in (2, 3, 4, 5)
    ],
)
@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
def test_a_release_of_partitions(method: str, n: int, k: int) -> None:
    people = mixed(n)
    # without proof, which takes optimal seconds
    brief = {"time_limit": 0.1} if method == "optimal" else {}
    anon = af.anonymize(people, method, k=k, partition_size=13, seed=1, reciprocal=True, **brief)
    check_result(anon, k)
    rows = [set(row[row >= 0].tolist()) for row in anon.matches]
    assert all(j in rows[i] for j, row in enumerate(rows) for i in row)
    more = sum(len(row) == k + 1 for row in rows)
    assert {len(row) for row in rows} <= {k, k + 1}
    assert more == anon.facts["one_more_match"]
    # a table of an even number of records has no odd partition, another one has one
    assert (more > 0) == (n * (k - 1) % 2 == 1)
    assert more < 26
    assert af.verify(people, anon, ["covers", "guarantee"], k=k)
    release = anon.release(seed=2**127)
    check_release(anon, release)
    assert af.verify(people, release, ["covers", "k-regular"], k=k)
    assert af.verify(people, release, ["covers", "k-regular"], k=k, certificate=release.certificate)
    af.measure(people, anon, ["gcp", "usefulness"])


@seeded(4000, 1000)
def test_each_match_is_drawn_as_often_as_its_record_has_matches(seeds: range) -> None:
    table = numbers(11)
    anon = af.anonymize(table, "greedy", k=4, partition_size=6, reciprocal=True)
    degrees = (anon.matches >= 0).sum(axis=1)
    assert set(degrees.tolist()) == {4, 5}
    from anonflow.release import RandomWords, draw_assignment

    times = len(seeds)
    counts = np.zeros((11, 11))
    for seed in seeds:
        counts[np.arange(11), draw_assignment(anon.matches, RandomWords(seed + 2**127))] += 1
    for j, row in enumerate(anon.matches):
        row = row[row >= 0]
        share = counts[j, row] / times
        assert share.sum() == pytest.approx(1)
        assert np.abs(share - 1 / degrees[j]).max() < 5 * np.sqrt(0.25 * 0.75 / times)


def test_even_k_takes_even_partitions() -> None:
    assert HUNGARIAN.partition_size(251, 10, {"reciprocal": True}) == 250
    assert HUNGARIAN.partition_size(251, 10, {"reciprocal": False}) == 251
    assert HUNGARIAN.partition_size(251, 5, {"reciprocal": True}) == 251
    assert HUNGARIAN.partition_size(250, 10, {"reciprocal": True}) == 250
    assert HUNGARIAN.partition_size(None, 10, {"reciprocal": True}) is None
    assert HUNGARIAN.partition_size(11, 10, {"reciprocal": True}) == 10
    assert af.anonymize(numbers(120), "greedy", k=4, partition_size=31, reciprocal=True).facts[
        "one_more_match"
    ] == 0  # fmt: skip


@pytest.mark.parametrize("method", EVERY)
def test_wrong_values_are_refused(method: str) -> None:
    with pytest.raises(ParameterError, match="reciprocal must be true or false"):
        af.anonymize(numbers(9), method, k=3, reciprocal="yes")


def test_methods_without_it_say_so() -> None:
    with pytest.raises(ParameterError, match="mondrian: unknown option 'reciprocal'"):
        af.anonymize(numbers(9), "mondrian", k=3, reciprocal=True)


@pytest.mark.parametrize("method", EVERY[:-1])
def test_workers_change_no_bits_and_equal_records_lose_nothing(method: str) -> None:
    runs = [
        af.anonymize(numbers(90), method, k=5, partition_size=20, seed=1, workers=w, reciprocal=True)
        for w in (1, 3)
    ]
    assert (runs[0].matches == runs[1].matches).all()
    equal = Table(pd.DataFrame({"a": [7] * 10}), {"a": {"role": "quasi-identifier", "kind": "numeric"}})
    assert af.anonymize(equal, method, k=10, reciprocal=True).loss() == 0


def test_a_flow_gives_mutual_matches(tmp_path: Path) -> None:
    people = numbers(93)
    people.frame.to_csv(tmp_path / "people.csv", index=False)
    path = tmp_path / "mutual.yaml"
    path.write_text(FLOW)
    report = af.run(path)
    assert report.ok
    anon = report.results[0].anonymization
    assert anon is not None
    mine = af.anonymize(people, "greedy", k=4, partition_size=31, reciprocal=True)
    assert (anon.matches == mine.matches).all()
    assert 0 < anon.facts["one_more_match"] < 62
    path.write_text(FLOW.replace("true", "perhaps"))
    with pytest.raises(FlowError, match="reciprocal"):
        af.run(path)


@pytest.mark.slow
@pytest.mark.data
def test_adult_loses_at_most_5_percent_more(data_folder: Path) -> None:
    from tests.cases.tables import adult

    table = adult(data_folder)
    for k in (5, 10):
        plain = af.anonymize(table, "greedy", k=k, partition_size=250).loss()
        assert af.anonymize(table, "greedy", k=k, partition_size=250, reciprocal=True).loss() <= 1.05 * plain
