"""Near records by multiple sorting, against all pairs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.algorithms.freeform import near_pairs, two_phase
from anonflow.algorithms.freeform.near_pairs import costs_of_difference, sorted_pairs
from anonflow.algorithms.freeform.two_phase_candidates import sparse_matches
from anonflow.generalization import Generalization
from anonflow.kernels.costs import load
from tests.cases.freeform import assert_regular, part_of, total
from tests.cases.plain_kernels import plainly
from tests.naive import two_phase as naive
from tests.strategies import examples, loop

KINDS = ("suppression", "categorical")


def normal(n: int) -> af.Table:
    frame = af.datasets.random_normal(n, 4, seed=1)
    return af.Table(frame, {str(name): {"role": "quasi-identifier", "kind": "suppression"} for name in frame})


def table_of(rows: list[tuple[int, ...]], kinds: tuple[str, ...], weights: tuple[float, ...]) -> af.Table:
    frame = pd.DataFrame(rows, columns=[f"q{a}" for a in range(len(kinds))]).astype(str)
    return af.Table(
        frame,
        {
            f"q{a}": {"role": "quasi-identifier", "kind": kind, "weight": weight}
            for a, (kind, weight) in enumerate(zip(kinds, weights, strict=True))
        },
    )


@st.composite
def drawn(draw: st.DrawFn) -> af.Table:
    q = draw(st.integers(1, 4))
    rows = draw(st.lists(st.tuples(*q * [st.integers(0, 3)]), min_size=1, max_size=12))
    kinds = tuple(draw(st.sampled_from(KINDS)) for _ in range(q))
    return table_of(rows, kinds, tuple(draw(st.sampled_from((1.0, 2.0))) for _ in range(q)))


@examples(60)
@given(
    drawn(), st.data(), st.sampled_from(("ncp", "lm", "suppressions")), st.booleans(), st.sampled_from((0, 2))
)
def test_sorted_pairs_are_the_nearest_of_all(
    table: af.Table, data: st.DataObject, measure: str, large: bool, few: int
) -> None:
    part, n = part_of(table, measure), table.n
    own = Generalization.of(part.records)
    origin = load(part.plan, own.lo, own.hi, own.bits)
    costs = costs_of_difference(part.records, part.plan)
    assert costs is not None
    count = data.draw(st.integers(1, n))
    with ThreadPoolExecutor(2) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_pairs, "FEW", few)
        if large:
            # numbers that do not fit 64 bits: records are told apart column by column
            patch.setattr(near_pairs, "_code_digits", lambda codes: None)
        case = (part.records, part.plan, origin, costs, count, pool)
        near, plain = sorted_pairs(*case), plainly(sorted_pairs, *case)
    np.testing.assert_array_equal(near, plain)
    rows = part.records.codes.tolist()
    wanted = naive.least_distances(rows, costs.tolist(), count)
    for i in range(n):
        assert len(set(near[i].tolist())) == count
        results = [
            sum(c for c, a, b in zip(costs, rows[i], rows[j], strict=True) if a != b)
            for j in near[i].tolist()
        ]
        assert sorted(results) == pytest.approx(wanted[i])


def test_few_records_of_many_columns_do_not_list_all_sets_of_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """2^20 sets took 10 s, of which a table of 60 records looks at a few dozen."""
    rng, q = np.random.default_rng(3), near_pairs.MOST
    rows = [tuple(row) for row in rng.integers(0, 4, (60, q)).tolist()]
    part = part_of(table_of(rows, ("suppression",) * q, tuple(map(float, rng.integers(1, 4, q)))))
    own = Generalization.of(part.records)
    origin = load(part.plan, own.lo, own.hi, own.bits)
    costs = costs_of_difference(part.records, part.plan)
    assert costs is not None
    listed = 0

    def counted(columns: range, size: int) -> Iterator[tuple[int, ...]]:
        nonlocal listed
        for hidden in combinations(columns, size):
            listed += 1
            assert listed < 1_000
            yield hidden

    monkeypatch.setattr(near_pairs, "combinations", counted)
    with ThreadPoolExecutor(1) as pool:
        near = plainly(sorted_pairs, part.records, part.plan, origin, costs, 5, pool)
    wanted = naive.least_distances(rows, costs.tolist(), 5)
    far = [(costs * (part.records.codes[i] != part.records.codes[near[i]])).sum(axis=1) for i in range(60)]
    assert all(sorted(own) == pytest.approx(best) for own, best in zip(far, wanted, strict=True))


@loop("last", [False, True])
def test_of_equally_near_records_those_come_first_that_differ_where_most_pairs_do(last: bool) -> None:
    """So that the matches of a record differ from it in the same columns, and joining them conceals few."""
    rng = np.random.default_rng(5)
    few, some, spread = (rng.integers(0, values, 400) for values in (2, 3, 40))
    columns = (few, some, spread) if last else (spread, some, few)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    part = part_of(table_of(rows, ("suppression",) * 3, (1.0, 1.0, 1.0)))
    own = Generalization.of(part.records)
    origin = load(part.plan, own.lo, own.hi, own.bits)
    costs = costs_of_difference(part.records, part.plan)
    assert costs is not None
    # equal but for their last bits, as costs are that were added or rounded in another order
    costs = costs * (1 + 1e-12 * np.arange(3)) if last else costs * (1 - 1e-12 * np.arange(3))
    with ThreadPoolExecutor(1) as pool:
        near = sorted_pairs(part.records, part.plan, origin, costs, 20, pool)
    codes = part.records.codes
    differs = codes[near] != codes[:, None]
    single = differs.sum(axis=2) == 1
    assert single.mean() > 0.5
    assert differs[single][:, 2 if last else 0].all()


@loop(("k", "many", "way"), [(3, 59, "sorted"), (3, 60, "all"), (4, 59, "sorted"), (5, 59, "all")])
def test_many_records_are_sorted_for_few_assignments(k: int, many: int, way: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(two_phase, "MANY", many)
        chosen, named, other = (
            af.anonymize(
                normal(60), "two-phase", k=k, start="sparse", candidates=4, kicks=0, seed=1, pairs=pairs
            )
            for pairs in ("auto", way, {"all": "sorted", "sorted": "all"}[way])
        )
    assert chosen.matches is not None
    assert named.matches is not None
    assert other.matches is not None
    assert (chosen.matches == named.matches).all()
    assert (chosen.matches != other.matches).any()


def test_many_records_are_found_by_sorting_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few values: no record is left to be compared with all."""
    part = part_of(normal(2_000))
    own = Generalization.of(part.records)
    origin = load(part.plan, own.lo, own.hi, own.bits)
    costs = costs_of_difference(part.records, part.plan)
    left: list[int] = []
    monkeypatch.setattr(near_pairs, "FEW", 0)
    monkeypatch.setattr(near_pairs, "_among_all", lambda plan, origin, rows, *more: left.append(len(rows)))
    assert costs is not None
    with ThreadPoolExecutor(1) as pool:
        near = sorted_pairs(part.records, part.plan, origin, costs, 5, pool)
    assert left == [0]
    shares = (part.records.codes[near] != part.records.codes[:, None]).mean(axis=2)
    assert (np.diff(shares, axis=1) >= 0).all()


@loop(
    ("column", "measure"),
    [
        ({"kind": "numeric"}, "ncp"),
        ({"kind": "hierarchy", "hierarchy": {"nested": {"*": {"a": ["1", "2"], "b": ["3"]}}}}, "ncp"),
        ({"kind": "categorical"}, "entropy"),
    ],
)
def test_costs_that_depend_on_values_are_not_sorted(column: dict[str, object], measure: str) -> None:
    cells = [1, 2, 3, 1, 2] if column["kind"] == "numeric" else ["1", "2", "3", "1", "2"]
    table = af.Table(pd.DataFrame({"q": cells}), {"q": {"role": "quasi-identifier"} | column})
    part = part_of(table, measure)
    assert costs_of_difference(part.records, part.plan) is None
    with ThreadPoolExecutor(1) as pool:
        among_all, by_sorting = (
            sparse_matches(part, 3, 2, pool, pairs=pairs)[0] for pairs in ("all", "sorted")
        )
    np.testing.assert_array_equal(among_all, by_sorting)


@loop("k", [2, 3, 6])
def test_two_phase_starts_from_sorted_pairs(k: int) -> None:
    table = normal(80)
    with ThreadPoolExecutor(1) as pool:
        matches, _ = sparse_matches(part_of(table), k, 1, pool, pairs="sorted")
        assert_regular(matches)
        # for k = 2 costs do not change between choosing and matching: over all edges both are optima
        whole = [sparse_matches(part_of(table), 2, table.n, pool, pairs=p)[0] for p in ("all", "sorted")]
    losses = [total(table, result, "ncp") for result in whole]
    assert losses[0] == pytest.approx(losses[1])
    anon = af.anonymize(table, "two-phase", k, start="sparse", pairs="sorted", seed=1)
    assert af.verify(table, anon, ["covers", "k-regular"])
