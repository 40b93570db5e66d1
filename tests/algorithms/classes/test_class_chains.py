"""Chains between classes: sizes, losses, threads, plain twins, and the best classes there are."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow import loss
from anonflow.algorithms.classes.class_chains import ImproveEffort, class_states, cut_large, improve_labels
from anonflow.algorithms.classes.k_member import k_member_labels
from anonflow.algorithms.classes.mondrian import mondrian_labels
from anonflow.algorithms.method import Partition
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.classes.class_state import classes_of, renew_class, renew_class_jit
from anonflow.kernels.costs import load
from anonflow.table.records import Records
from tests.cases import costs as cost_cases
from tests.cases.freeform import DYADIC, dyadic
from tests.cases.plain_kernels import plainly
from tests.naive import clusters as naive
from tests.naive import loss as naive_loss
from tests.strategies import examples, loop, tables

METHODS = ("k-member", "agglomerative", "mondrian", "greedy-cka")


def partition(records: Records, measure: str = "ncp", seed: int = 0) -> Partition:
    return Partition(records, measure, np.random.default_rng(seed))


def total(records: Records, labels: np.ndarray, measure: str) -> float:
    """The loss summed over records, from the definitions and not from the kernels."""
    return float(loss.record_costs(Generalization.join_by_class(records, labels), measure).sum())


def random_records(rng: np.random.Generator, n: int, kinds: list[str]) -> Records:
    return cost_cases.table(rng, n, kinds, rng.choice([1, 2, 5, 70], len(kinds)))


KINDS = st.lists(st.sampled_from(cost_cases.KINDS), min_size=1, max_size=4)


@given(st.integers(0, 2**32), KINDS, st.sampled_from(loss.MEASURES))
def test_a_renewed_class_is_the_join_of_its_records(seed: int, kinds: list[str], measure: str) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 14))
    records = random_records(rng, n, kinds)
    plan = partition(records, measure).plan
    own = Generalization.of(records)
    origin = load(plan, own.lo, own.hi, own.bits)
    labels = np.zeros(n, np.int64)
    members = np.arange(n)
    without = np.array([np.delete(members, i) for i in range(n)])
    expected = Generalization.join_of(records, without)
    rest = load(plan, expected.lo, expected.hi, expected.bits)
    whole = class_states(partition(records, measure), labels)
    for renew in (renew_class, renew_class_jit):
        classes = classes_of(plan, labels, 1, n + 3)
        renew(plan, origin, classes, 0)
        for name in ("lo", "hi", "bits", "count", "only", "mass", "mlog", "base", "cost"):
            assert np.array_equal(getattr(classes.rest, name)[..., :n], getattr(rest, name)), name
            assert np.array_equal(getattr(classes.joined, name), getattr(whole, name)), name
        assert np.array_equal(classes.worth[:n], whole.cost[0] - rest.cost)
        assert classes.most[0] == max(0.0, classes.worth[:n].max())


@examples(60)
@given(
    st.integers(0, 2**32),
    KINDS,
    st.sampled_from(loss.MEASURES),
    st.sampled_from(["k-member", "mondrian", "one class"]),
)
def test_sizes_losses_and_plain_twins(seed: int, kinds: list[str], measure: str, start: str) -> None:
    """In every round classes have k records, no loss rises, and what is said to be gained is gained."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 20))
    k = int(rng.integers(2, max(3, n // 3)))
    records = random_records(rng, n, kinds)
    if start == "k-member":
        labels, _ = k_member_labels(partition(records, measure), k)
    elif start == "mondrian":
        labels, _ = mondrian_labels(partition(records, measure), k)
    else:
        labels = np.zeros(n, np.int64)
    losses = [total(records, labels, measure)]

    def seen(labels: np.ndarray) -> None:
        assert np.bincount(labels).min() >= k
        losses.append(total(records, labels, measure))

    effort = ImproveEffort(rounds=2, kicks=4, threads=1)
    improved, facts = improve_labels(partition(records, measure, seed), labels, k, effort, seen=seen)
    assert all(after <= before + 1e-9 for before, after in pairwise(losses))
    assert facts["found"] == len(set(improved.tolist())) == int(improved.max()) + 1
    assert losses[0] - losses[-1] == pytest.approx(facts["gained"], abs=1e-9)
    plain, same = plainly(improve_labels, partition(records, measure, seed), labels, k, effort)
    assert np.array_equal(improved, plain)
    assert facts == same


@pytest.mark.slow
def test_threads_change_nothing() -> None:
    """More than one block, and as many threads as one likes."""
    rng = np.random.default_rng(3)
    records = cost_cases.table(
        rng, 1_800, ["numeric", "categorical", "hierarchy", "missing"], [50, 9, 20, 30]
    )
    labels, result = k_member_labels(partition(records), 3)
    assert result > 512
    results = [
        improve_labels(
            partition(records, seed=5), labels, 3, ImproveEffort(rounds=3, kicks=2, threads=threads)
        )
        for threads in (1, 2, 5)
    ]
    for improved, facts in results[1:]:
        assert np.array_equal(improved, results[0][0])
        assert facts == results[0][1]
    assert results[0][1]["chains"] > 0
    assert results[0][1]["kicks"] > 0
    assert total(records, results[0][0], "ncp") < 0.97 * total(records, labels, "ncp")


def optima(count: int, measure: str, kicks: int) -> tuple[int, int]:
    """How often k-member and chains after it reach the least loss there is, on tables of 8 to 10 records."""
    alone = reached = 0
    for seed in range(count):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(8, 11)), int(rng.integers(2, 4))
        records = dyadic(rng, n, rng.integers(0, len(DYADIC), 3).tolist())
        plain = cost_cases.attributes(records)

        @cache
        def cost(rows: frozenset[int], plain: Any = plain, records: Records = records) -> Fraction:
            return Fraction(naive_loss.join_cost(plain, records.codes, sorted(rows), measure))

        def lost(labels: np.ndarray, cost: Any = cost) -> Fraction:
            classes = [frozenset(np.flatnonzero(labels == c).tolist()) for c in set(labels.tolist())]
            return sum((len(rows) * cost(rows) for rows in classes), Fraction(0))

        best = naive.least_loss(cost, n, k)
        labels, _ = k_member_labels(partition(records, measure, seed), k)
        improved, _ = improve_labels(
            partition(records, measure, seed), labels, k, ImproveEffort(rounds=1, kicks=kicks)
        )
        assert best <= lost(improved) <= lost(labels)
        alone += lost(labels) == best
        reached += lost(improved) == best
    return alone, reached


@pytest.mark.slow
@loop("measure", ["ncp", "height"])
def test_the_best_classes_of_small_tables(measure: str) -> None:
    alone, reached = optima(40, measure, 100)
    assert reached >= 39
    assert alone < 26


@given(tables(min_n=6, max_n=16), st.sampled_from(METHODS), st.integers(2, 3))
def test_verified_after_each_method(table: af.Table, method: str, k: int) -> None:
    anon = af.anonymize(table, method, k=k, seed=1, improve="chains", rounds=2, kicks=3)
    assert af.verify(table, anon, ["covers", "k-anonymity"], k=k)
    before = af.anonymize(table, method, k=k, seed=1)
    assert anon.loss() <= before.loss() + 1e-12


@pytest.mark.parametrize("method", [*METHODS, "mdav"])
def test_kicks_lose_no_more_than_none(method: str) -> None:
    """Deeper chains alone may end with classes that lose more than those of short chains."""
    losses = []
    for seed in (2, 12, 18, 19):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(20, 45))
        frame = pd.DataFrame({"a": rng.integers(0, 30, n), "b": rng.choice(list("uvwxy"), n)})
        tree = af.Hierarchy.from_nested({"*": {"left": ["u", "v"], "right": ["w", "x", "y"]}})
        qi = {"role": "quasi-identifier"}
        schema = {"a": {**qi, "kind": "numeric"}, "b": {**qi, "kind": "hierarchy", "hierarchy": tree}}
        table = af.Table(frame, schema)
        losses.append(
            [
                af.anonymize(table, method, k=4, seed=1, improve="chains", rounds=rounds, kicks=kicks).loss()
                for rounds in (1, 3)
                for kicks in (0, 1, 4)
            ]
        )
    lost = np.array(losses).reshape(-1, 3)
    assert (lost[:, 1:] <= lost[:, :1] + 1e-12).all()


@pytest.mark.parametrize("method", METHODS)
def test_boundaries_and_limits_are_kept(method: str) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 300),
            "job": rng.choice(list("abcdefg"), 300),
            "city": rng.choice(["x1", "x2", "y1", "y2"], 300),
        }
    )
    qi = {"role": "quasi-identifier"}
    tree = af.Hierarchy.from_nested({"*": {"x": ["x1", "x2"], "y": ["y1", "y2"]}})
    schema = {
        "age": {**qi, "kind": "numeric", "max-width": 12},
        "job": {**qi, "kind": "categorical", "max-set": 3},
        "city": {**qi, "kind": "hierarchy", "hierarchy": tree, "boundary": ["x", "y"]},
    }
    table = af.Table(frame, schema)
    options: dict[str, Any] = {"improve": "chains", "rounds": 3, "kicks": 10}
    before = af.anonymize(table, method, k=4, seed=1)
    anon = af.anonymize(table, method, k=4, seed=1, **options)
    assert af.verify(table, anon, ["covers", "k-anonymity", "boundary"], k=4)
    assert anon.loss() < before.loss()
    assert anon.classes is not None
    for label in set(anon.classes[~anon.suppressed].tolist()):
        rows = frame[(anon.classes == label) & ~anon.suppressed]
        assert rows["age"].max() - rows["age"].min() <= 12
        assert rows["job"].nunique() <= 3
        assert rows["city"].str[0].nunique() == 1
    again = af.anonymize(table, method, k=4, seed=1, workers=3, threads=2, **options)
    assert np.array_equal(again.classes, anon.classes)


def test_large_classes_are_cut_first() -> None:
    """Equal records in runs, others by k-member; where entropy would rise, not at all."""
    rng = np.random.default_rng(1)
    records = cost_cases.table(rng, 90, ["numeric", "categorical"], [30, 4])
    part = partition(records)
    own = Generalization.of(records)
    origin = load(part.plan, own.lo, own.hi, own.bits)
    labels = np.repeat([0, 1], [80, 10])
    cut, gained = cut_large(part, origin, labels, 10)
    assert len(set(cut[labels == 0].tolist())) == 8
    assert len(set(cut[labels == 1].tolist())) == 1
    assert gained == pytest.approx(total(records, labels, "ncp") - total(records, cut, "ncp"))
    equal = records.take(np.zeros(25, np.int64))
    part = partition(equal)
    own = Generalization.of(equal)
    origin = load(part.plan, own.lo, own.hi, own.bits)
    cut, gained = cut_large(part, origin, np.zeros(25, np.int64), 10)
    assert sorted(np.bincount(cut).tolist()) == [12, 13]
    assert gained == 0.0
    # two rare values cost 1 bit without the frequent one, 0.16 with it
    frame = pd.DataFrame({"a": ["x"] * 980 + ["y"] * 10 + ["z"] * 10})
    table = af.Table(frame, {"a": {"role": "quasi-identifier", "kind": "categorical"}})
    part = partition(table.records, "entropy")
    labels = np.zeros(1_000, np.int64)
    improved, _ = improve_labels(part, labels, 300, ImproveEffort(rounds=1, kicks=5))
    assert total(table.records, improved, "entropy") <= total(table.records, labels, "entropy")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "options",
    [
        {"improve": "chain"},
        {"improve": True},
        {"improve": "chains", "rounds": 0},
        {"improve": "chains", "rounds": 1.5},
        {"improve": "chains", "kicks": -1},
        {"improve": "chains", "kicks": True},
        {"improve": "chains", "threads": 0},
    ],
    ids=str,
)
def test_bad_options_are_refused(method: str, options: dict[str, Any]) -> None:
    table = af.Table(pd.DataFrame({"a": [1, 2, 3]}), {"a": {"role": "quasi-identifier", "kind": "numeric"}})
    with pytest.raises(ParameterError, match=f"{method}: (improve|rounds|kicks|threads) must be"):
        af.anonymize(table, method, k=2, **options)


@pytest.mark.parametrize("method", METHODS)
def test_fewer_than_two_classes_stay_one(method: str) -> None:
    table = af.Table(pd.DataFrame({"a": [1, 2, 3]}), {"a": {"role": "quasi-identifier", "kind": "numeric"}})
    anon = af.anonymize(table, method, k=2, seed=1, improve="chains", kicks=5)
    assert anon.classes is not None
    assert anon.classes.tolist() == [0, 0, 0]
    assert anon.facts["chains"] == 0
