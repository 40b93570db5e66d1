"""k-member and greedy-cka: against the definition, their guarantees, Figure 4 and the shapes of Miller 2008's tables."""

from __future__ import annotations

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
from anonflow import datasets, loss
from anonflow.algorithms.classes.greedy_cka import greedy_cka
from anonflow.algorithms.classes.k_member import k_member, k_member_labels
from anonflow.algorithms.method import Partition
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.classes import clusters
from anonflow.kernels.costs import widen_jit
from anonflow.kernels.row_costs import join_row_jit
from anonflow.kernels.state import take
from anonflow.partition import boundary_classes
from anonflow.table import Table
from anonflow.table.records import Records
from tests.cases import costs as cost_cases
from tests.cases.boundaries import Case, adult_table, cases
from tests.cases.freeform import DYADIC, dyadic
from tests.cases.plain_kernels import plainly
from tests.naive import clusters as naive
from tests.naive import loss as naive_loss


def partition(records: Records, measure: str = "ncp", seed: int = 0) -> Partition:
    return Partition(records, measure, np.random.default_rng(seed))


@given(
    st.integers(0, 2**32), st.sampled_from([1, 2, 4]), st.integers(1, 14), st.sampled_from(["ncp", "height"])
)
def test_it_agrees_with_a_plain_implementation(seed: int, q: int, n: int, measure: str) -> None:
    rng = np.random.default_rng(seed)
    records = dyadic(rng, n, rng.integers(0, len(DYADIC), q).tolist())
    k = int(rng.integers(1, n + 2))
    plain = cost_cases.attributes(records)

    @cache
    def cost(rows: frozenset[int]) -> Fraction:
        return Fraction(naive_loss.join_cost(plain, records.codes, sorted(rows), measure))

    first = int(np.random.default_rng(seed).integers(n))
    expected = naive.k_member(cost, n, k, first)
    labels, result = k_member_labels(partition(records, measure, seed), k)
    assert result == len(expected)
    assert [sorted(cluster) for cluster in expected] == [
        np.flatnonzero(labels == c).tolist() for c in range(result)
    ]


@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from(cost_cases.KINDS), min_size=1, max_size=4),
    st.sampled_from(loss.MEASURES),
)
def test_plain_and_compiled_agree(seed: int, kinds: list[str], measure: str) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    records = cost_cases.table(rng, n, kinds, rng.choice([1, 2, 5, 70], len(kinds)))
    k = int(rng.integers(1, n + 1))
    labels, result = k_member_labels(partition(records, measure), k)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters, "BLOCK", 3)  # the compiled kernel has all in one block, and prices all
        again, same = plainly(k_member_labels, partition(records, measure), k)
    assert np.array_equal(labels, again)
    assert result == same == n // k
    sizes = np.bincount(labels)
    assert sizes.min() >= k
    outcome = k_member(partition(records, measure), k)
    assert outcome.generalization.covers(Generalization.of(records)).all()


@pytest.mark.parametrize("measure", ["ncp", "entropy"])
def test_bounds_change_no_choice(measure: str) -> None:
    """Several blocks: each record that joins costs least of all that are left, each first record is the furthest."""
    rng = np.random.default_rng(7)
    n, k = 700, 9
    records = cost_cases.table(rng, n, ["numeric", "hierarchy", "suppression"], [70, 5, 70])
    part = partition(records, measure, seed=7)
    plan, origin = part.plan, part.originals()
    head = int(np.random.default_rng(7).integers(n))
    left, prices = np.ones(n, bool), np.empty(n)
    expected = np.full(n, -1)
    for c in range(n // k):
        join_row_jit(plan, origin, head, origin, 0, n, prices)
        head = int(np.where(left, prices, -np.inf).argmax())
        cluster = take(origin, np.array([head]))
        left[head], expected[head] = False, c
        for _ in range(k - 1):
            join_row_jit(plan, cluster, 0, origin, 0, n, prices)
            member = int(np.where(left, prices, np.inf).argmin())
            widen_jit(plan, cluster, 0, origin, member)
            left[member], expected[member] = False, c
    labels, result = k_member_labels(part, k)
    assert result == n // k
    assert np.array_equal(labels[~left], expected[~left])


@given(cases(max_n=12), st.integers(2, 3))
def test_greedy_cka_suppresses_out_and_nothing_else(case: Case, k: int) -> None:
    """Also when it is handed records of several boundary classes."""
    records = case.table.records
    outcome = greedy_cka(partition(records), k)
    assert set(np.flatnonzero(outcome.suppressed).tolist()) == case.out(k)
    assert outcome.facts["out"] == len(case.out(k))
    assert outcome.classes is not None
    within = boundary_classes(records)
    kept = ~outcome.suppressed
    for label in set(outcome.classes[kept].tolist()):
        members = kept & (outcome.classes == label)
        assert members.sum() >= k
        assert len(set(within[members].tolist())) == 1


def test_classes_within_boundaries_have_no_violation_as_in_figure_4() -> None:
    """Clustered within Figure 2's boundaries the seven people have no violation; k-member has some."""
    schema = {
        "Age": {"role": "quasi-identifier", "kind": "numeric"},
        "Location": {
            "role": "quasi-identifier",
            "kind": "hierarchy",
            "hierarchy": af.Hierarchy.from_nested(datasets.location_tree()),
            "boundary": list(datasets.location_boundary()),
        },
        "Sex": {"role": "quasi-identifier", "kind": "suppression"},
        "Race": {"role": "quasi-identifier", "kind": "suppression"},
    }
    table = Table(datasets.location_example(), schema)
    assert (
        boundary_classes(table.records).tolist()
        == boundary_classes(table.records)[[0, 0, 2, 2, 4, 4, 2]].tolist()
    )
    within = af.anonymize(table, "greedy-cka", k=2, loss="height", seed=1)
    assert not within.suppressed.any()
    assert within.frame().to_numpy().tolist() == datasets.location_example_masked("MM2").to_numpy().tolist()
    for seed in range(4):
        free = af.anonymize(table, "k-member", k=2, loss="height", seed=seed, boundaries=False)
        check = af.verify(table, free, ["covers", "k-anonymity", "boundary"], k=2)
        assert [check["covers"].holds, check["k-anonymity"].holds] == [True, True]
    assert af.verify(table, within, ["covers", "k-anonymity", "boundary"], k=2)


def test_information_loss_by_height_is_the_papers() -> None:
    """Definitions 10 and 11: cluster sizes times heights; a suppressed record loses one per QI."""
    case = Case(
        ["San Diego", "Los Angeles", "Wichita", "Kansas City", "Lincoln", "Wichita"],
        ["0", "1", "2", "2", "3", "2"],
        ({"California", "Kansas", "Midwest"}, set()),
    )
    anon = af.anonymize(case.table, "greedy-cka", k=2, loss="height", seed=3)
    assert anon.suppressed.tolist() == [False] * 4 + [True, False]
    # place: California 1 of 3, Kansas 1 of 3 (one value at most stays itself); digit: low 1 of 2, 2 itself
    assert anon.classes is not None
    rows = anon.frame()
    heights = {"California": 1 / 3, "Kansas": 1 / 3, "low": 1 / 2, "*": 1.0}
    place = rows["place"].map(lambda text: heights.get(text, 0.0))
    digit = rows["digit"].map(lambda text: heights.get(text, 0.0))
    other = rows["other"].map(lambda text: float(text == "*" or text.startswith("{")))
    total = float((place + digit + other).sum())
    assert anon.loss("height") * case.n * 3 == pytest.approx(total)


def test_greedy_cka_without_boundaries_is_refused() -> None:
    table = Table(pd.DataFrame({"a": [1, 2, 3]}), {"a": {"role": "quasi-identifier", "kind": "numeric"}})
    with pytest.raises(ParameterError, match="k-member"):
        af.anonymize(table, "greedy-cka", k=2, boundaries=False)


# Miller 2008, section 5. Figures 6 and 7 are pictures: these trees are like them, and the shapes are compared.


@pytest.mark.slow
@pytest.mark.data
def test_adult_as_in_paper_3(data_folder: Path) -> None:
    """Tables 1 and 2: how violations and suppressions grow."""
    item, two = ("native-country",), ("native-country", "age")
    beyond: dict[tuple[str, ...], list[int]] = {item: [], two: []}
    suppressed: dict[tuple[str, ...], list[int]] = {item: [], two: []}
    for k in (2, 4, 7, 10):
        for bounded in (item, two):
            table = adult_table(bounded)
            about: dict[str, Any] = {"k": k, "loss": "height", "seed": 1, "workers": 1}
            free = af.anonymize(table, "k-member", boundaries=False, **about)
            within = af.anonymize(table, "greedy-cka", **about)
            check = af.verify(table, free, ["covers", "k-anonymity", "boundary"], k=k)
            assert check["covers"].holds
            assert check["k-anonymity"].holds
            cells = free.generalization
            over = 0
            for t, a in enumerate(cells.layout.ranges):
                bound = cells.domains[a].bound
                if bound is not None:
                    own = bound[table.codes[:, a]]
                    over += int(((cells.lo[t] < own[:, 0]) | (cells.hi[t] > own[:, 1])).sum())
            beyond[bounded].append(over)
            suppressed[bounded].append(int(within.suppressed.sum()))
            assert af.verify(table, within, ["covers", "k-anonymity", "boundary"], k=k)
    for bounded in (item, two):
        assert beyond[bounded] == sorted(beyond[bounded])
        assert beyond[bounded][0] > 100
    assert all(more > 2 * less for less, more in zip(beyond[item], beyond[two], strict=True))
    assert max(suppressed[item]) == 0
    assert suppressed[two] == sorted(suppressed[two])
    assert 0 < suppressed[two][-1] < 500
