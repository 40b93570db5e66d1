"""greedy-cka that takes different sensitive values first: against its definition, its guarantee, and uniting afterwards."""

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
from anonflow import loss
from anonflow.algorithms.classes.greedy_cka import greedy_cka
from anonflow.algorithms.classes.k_member import k_member_labels
from anonflow.algorithms.diversity.target import SensitiveValues, Targets, target_of
from anonflow.algorithms.method import Partition
from anonflow.errors import InfeasibleError
from anonflow.kernels.classes import clusters
from anonflow.kernels.row_costs import join_row_jit
from anonflow.kernels.state import Plan, State
from anonflow.table.records import Records
from tests.cases import costs as cost_cases
from tests.cases.flow_files import flow_text
from tests.cases.freeform import DYADIC, dyadic
from tests.cases.plain_kernels import KERNELS, plainly
from tests.naive import clusters as naive
from tests.naive import loss as naive_loss
from tests.strategies import examples, loop, seeded


def sensitive(rng: np.random.Generator, n: int, needs: list[int]) -> SensitiveValues:
    """One column for each number of different values, numbered one after the other."""
    columns, each = [], []
    for need in needs:
        size = int(rng.integers(1, 5))
        columns.append(rng.integers(0, size, n) + sum(len(target.overall) for target in each))
        each.append(target_of("p-sensitivity", {"p": need}, np.full(size, 1 / size)))
    return SensitiveValues(Targets(tuple(each)), np.array(columns, np.int64).T.copy())


def partition(records: Records, values: SensitiveValues, measure: str, seed: int = 0) -> Partition:
    return Partition(records, measure, np.random.default_rng(seed), values)


@given(st.integers(0, 2**32), st.integers(2, 14), st.sampled_from([[2], [3], [2, 2], [1]]))
def test_it_agrees_with_a_plain_implementation(seed: int, n: int, needs: list[int]) -> None:
    rng = np.random.default_rng(seed)
    records = dyadic(rng, n, rng.integers(0, len(DYADIC), 2).tolist())
    k = int(rng.integers(1, n + 1))
    values = sensitive(rng, n, needs)
    plain = cost_cases.attributes(records)

    @cache
    def cost(rows: frozenset[int]) -> Fraction:
        return Fraction(naive_loss.join_cost(plain, records.codes, sorted(rows), "ncp"))

    first = int(np.random.default_rng(seed).integers(n))
    expected = naive.diverse(cost, n, k, first, list(map(tuple, values.values.tolist())), needs)
    for kernels in KERNELS:
        with kernels():
            labels, result = k_member_labels(partition(records, values, "ncp", seed), k, values)
        assert result == len(expected)
        assert [sorted(cluster) for cluster in expected] == [
            np.flatnonzero(labels == c).tolist() for c in range(result)
        ]
        if not result:
            assert not labels.any()
            assert any(len(set(column)) < need for column, need in zip(values.values.T, needs, strict=True))


@examples(40)
@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from(cost_cases.KINDS), min_size=1, max_size=4),
    st.sampled_from(["ncp", "entropy", "height"]),
    st.integers(1, 4),
)
def test_plain_and_compiled_agree(seed: int, kinds: list[str], measure: str, need: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    records = cost_cases.table(rng, n, kinds, rng.choice([1, 2, 5, 70], len(kinds)))
    values = sensitive(rng, n, [need])
    k = int(rng.integers(1, n + 1))
    labels, result = k_member_labels(partition(records, values, measure), k, values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters, "BLOCK", 3)
        again, same = plainly(k_member_labels, partition(records, values, measure), k, values)
    assert np.array_equal(labels, again)
    assert result == same
    for label in range(result):
        members = labels == label
        assert members.sum() >= k
        assert len(set(values.values[members, 0].tolist())) >= need
    outcome = greedy_cka(partition(records, values, measure), k, distinct_first=True)
    assert outcome.suppressed.all() == (not result)
    # without sensitive values, or without the option, it is greedy-cka
    other = greedy_cka(Partition(records, measure, np.random.default_rng(0)), k, distinct_first=True)
    usual = greedy_cka(partition(records, values, measure), k)
    assert other.classes is not None
    assert usual.classes is not None
    assert (other.classes == usual.classes).all()


@seeded(8, 2)
@loop("kind", [None, *cost_cases.KINDS])
@loop("measure", loss.MEASURES)
def test_no_block_left_out_has_a_better_record(seeds: range, kind: str | None, measure: str) -> None:
    """Whatever has joined: bounds of each block enclose each cost in it; the least cost, and at first the greatest, wins."""
    for seed in seeds:
        compare_with_all_records(np.random.default_rng(seed), kind, measure)


def compare_with_all_records(rng: np.random.Generator, kind: str | None, measure: str) -> None:
    n = int(rng.integers(20, 60))
    if kind is None:
        # frequent and rare values: the entropy of a set falls where a frequent one joins
        frame = pd.DataFrame(
            {
                name: rng.geometric(share, n).clip(max=9).astype(str)
                for name, share in (("a", 0.3), ("b", 0.8))
            }
        )
        columns = {name: {"role": "quasi-identifier", "kind": "categorical"} for name in frame}
        records = af.Table(frame, columns).records
    else:
        records = cost_cases.table(rng, n, [kind, kind], [5, 70])
    # few records have a second value: the one that joins for it is far, and nearer ones follow
    target = target_of("p-sensitivity", {"p": int(rng.integers(1, 3))}, np.full(2, 1 / 2))
    values = SensitiveValues(Targets((target,)), (rng.random((n, 1)) < 0.15).astype(np.int64))
    near, far = clusters.nearest, clusters.furthest

    def priced(plan: Plan, A: State, i: int, work: State, blocks: clusters.Blocks, count: int) -> list[Any]:
        prices = np.empty(n)
        join_row_jit(plan, A, i, work, 0, n, prices)
        return [
            (b, prices[s], blocks.ids[s], s)
            for b in range(count)
            for s in range(b * clusters.BLOCK, b * clusters.BLOCK + blocks.filled[b])
        ]

    def nearest(*arguments: Any) -> int:
        blocks, fits = arguments[4], arguments[6]
        prices = priced(*arguments[:6])
        assert all(blocks.near[b] <= price for b, price, *_ in prices)
        at: int = near(*arguments)
        assert at == min([(price, i, s) for _, price, i, s in prices if fits[i]], default=(0, 0, -1))[2]
        return at

    def furthest(*arguments: Any) -> int:
        prices = priced(*arguments[:6])
        assert all(arguments[4].far[b] >= price for b, price, *_ in prices)
        at: int = far(*arguments)
        assert at == min((-price, i, s) for _, price, i, s in prices)[2]
        return at

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters, "BLOCK", 3)
        patch.setattr(clusters, "nearest", nearest)
        patch.setattr(clusters, "furthest", furthest)
        plainly(k_member_labels, partition(records, values, measure), int(rng.integers(2, 12)), values)


def people(n: int = 400) -> af.Table:
    frame = af.datasets.census_like(n, seed=1)
    return af.Table(frame, af.datasets.schema("census_like"))


COLUMN = "Salary-class"


@loop(
    ("criterion", "parameters"),
    [
        ("p-sensitivity", {"p": 4}),
        ("l-diversity", {"l": 2.5}),
        ("entropy-l-diversity", {"l": 3}),
        ("recursive-l-diversity", {"c": 2.0, "l": 2}),
        ("t-closeness", {"t": 0.5}),
    ],
)
def test_every_criterion_is_kept(criterion: str, parameters: dict[str, Any]) -> None:
    """What different values alone do not give, uniting classes afterwards does."""
    table = people()
    anon = af.anonymize(table, "greedy-cka", 5, seed=1, distinct_first=True)
    diverse = af.diversify(anon, criterion, column=COLUMN, seed=1, **parameters)
    text = ", ".join(f"{name}={value}" for name, value in {**parameters, "column": COLUMN}.items())
    assert af.verify(table, diverse, ["covers", "k-anonymity", f"{criterion}({text})"])
    assert not diverse.suppressed.any()


def test_it_loses_less_than_uniting_classes_afterwards() -> None:
    table = people()
    losses = []
    for first in (False, True):
        anon = af.anonymize(table, "greedy-cka", 5, seed=1, distinct_first=first)
        losses.append(af.diversify(anon, "p-sensitivity", p=5, column=COLUMN, seed=1).loss())
    assert losses[1] < 0.9 * losses[0]


def test_a_boundary_class_that_lacks_values_refuses_the_table() -> None:
    frame = people().frame.copy()
    frame.loc[frame["Age"] >= 60, COLUMN] = frame[COLUMN].iloc[0]
    columns = dict(af.Schema(af.datasets.schema("census_like")).to_mapping())
    columns["Age"] = {"role": "quasi-identifier", "kind": "numeric", "boundary": {"width": 20}}
    table = af.Table(frame, columns)
    anon = af.anonymize(table, "greedy-cka", 3, seed=1, distinct_first=True)
    assert not anon.suppressed.any()
    with pytest.raises(InfeasibleError, match="the suppressed records have less diversity"):
        af.diversify(anon, "p-sensitivity", p=2, column=COLUMN, seed=1)


def test_a_flow_sets_distinct_first_for_greedy_cka(tmp_path: Path) -> None:
    table = people(120)
    table.frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "flow.yaml").write_text(
        flow_text(
            "distinct",
            """\
    Age: {role: quasi-identifier, kind: numeric}
    Education: {role: quasi-identifier, kind: categorical}
    Salary-class: {role: sensitive}
""",
            """\
partition: {size: 60}
steps:
  - anonymize: {algorithm: greedy-cka, k: 4, distinct-first: true}
  - diversify: {criterion: p-sensitivity, p: 3}
  - verify: [covers, guarantee, "p-sensitivity(p=3)"]
""",
        ),
        encoding="utf-8",
    )
    report = af.run(tmp_path / "flow.yaml")
    assert report.ok
    whole = af.anonymize(
        af.Table(
            pd.read_csv(tmp_path / "people.csv"),
            {
                "Age": {"role": "quasi-identifier", "kind": "numeric"},
                "Education": {"role": "quasi-identifier", "kind": "categorical"},
                COLUMN: {"role": "sensitive"},
            },
        ),
        "greedy-cka", 4, distinct_first=True, partition_size=60,
    )  # fmt: skip
    assert af.diversify(whole, "p-sensitivity", p=3).n == report.results[0].records
