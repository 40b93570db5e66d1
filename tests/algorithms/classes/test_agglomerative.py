"""agglomerative and forest: against their definitions, the sizes of parts, forest's ratio, Adult."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import anonflow as af
from anonflow import loss
from anonflow.algorithms.classes.agglomerative import (
    AGGLOMERATIVE,
    DISTANCES,
    agglomerative,
    agglomerative_labels,
)
from anonflow.algorithms.classes.forest import forest, forest_labels
from anonflow.algorithms.method import Partition
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.classes.forest import split
from anonflow.table.records import Records
from tests.cases import costs as cost_cases
from tests.cases.freeform import DYADIC, dyadic
from tests.cases.plain_kernels import plainly
from tests.cases.tables import adult
from tests.naive import agglomerative as naive
from tests.naive import loss as naive_loss


def partition(records: Records, measure: str = "ncp") -> Partition:
    return Partition(records, measure, np.random.default_rng(0))


def costs_of(records: Records, measure: str = "ncp") -> naive.Cost:
    plain = cost_cases.attributes(records)

    @cache
    def cost(rows: frozenset[int]) -> Fraction:
        return Fraction(naive_loss.join_cost(plain, records.codes, sorted(rows), measure))

    return cost


def clusters(labels: np.ndarray, number: int) -> list[list[int]]:
    return [np.flatnonzero(labels == c).tolist() for c in range(number)]


@given(
    st.integers(0, 2**32),
    st.sampled_from([1, 2, 4]),
    st.integers(1, 12),
    st.sampled_from(sorted(DISTANCES)),
    st.booleans(),
)
@example(266, 1, 12, "weighted", False).via("three records are left over that were joined in another order")
def test_agglomerative_as_spelled_out(seed: int, q: int, n: int, dist: str, modified: bool) -> None:
    rng = np.random.default_rng(seed)
    records = dyadic(rng, n, rng.integers(0, len(DYADIC), q).tolist())
    k = int(rng.integers(1, n + 1))
    expected = naive.agglomerative(costs_of(records), n, k, dist, modified)
    labels, result = agglomerative_labels(partition(records), k, DISTANCES[dist], modified)
    assert clusters(labels, result) == expected


@given(
    st.integers(0, 2**32),
    st.lists(st.sampled_from(cost_cases.KINDS), min_size=1, max_size=4),
    st.sampled_from(loss.MEASURES),
    st.sampled_from(sorted(DISTANCES)),
    st.booleans(),
)
def test_plain_and_compiled_agree(
    seed: int, kinds: list[str], measure: str, dist: str, modified: bool
) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 20))
    records = cost_cases.table(rng, n, kinds, rng.choice([1, 2, 5, 70], len(kinds)))
    k = int(rng.integers(1, n + 1))
    part = partition(records, measure)
    for method in (
        lambda: agglomerative_labels(part, k, DISTANCES[dist], modified),
        lambda: forest_labels(part, k),
    ):
        (labels, result), (again, same) = method(), plainly(method)
        assert np.array_equal(labels, again)
        assert result == same == labels.max() + 1
        assert np.bincount(labels).min() >= k
    for outcome in (agglomerative(part, k, dist=dist, modified=modified), forest(part, k)):
        assert outcome.generalization.covers(Generalization.of(records)).all()


def test_modified_clusters_have_k_records_but_where_leftovers_went() -> None:
    records = cost_cases.table(np.random.default_rng(5), 60, ["numeric", "categorical"], [20, 6])
    labels, result = agglomerative_labels(partition(records), 4, DISTANCES["log"], True)
    assert result == 60 // 4
    assert set(np.bincount(labels).tolist()) == {4}


def test_options_are_checked() -> None:
    with pytest.raises(ParameterError, match="dist must be one of"):
        AGGLOMERATIVE.check_options({"dist": "far"})
    with pytest.raises(ParameterError, match="modified must be true or false"):
        AGGLOMERATIVE.check_options({"modified": 1})


# ---------------------------------------------------------------------------------------------- forest


def tree_of(rng: np.random.Generator, n: int) -> np.ndarray:
    """Edges of a random tree over n records, each to an earlier one, under random names."""
    name = rng.permutation(n)
    to = np.full(n, -1, np.int64)
    narrow = rng.integers(1, 4)
    for i in range(1, n):
        to[name[i]] = name[
            int(rng.integers(max(0, i - narrow), i)) if rng.random() < 0.5 else int(rng.integers(i))
        ]
    return to


@given(st.integers(0, 2**32), st.integers(2, 6), st.integers(1, 60))
def test_parts_of_a_tree(seed: int, k: int, n: int) -> None:
    """At least k records, at most 3k - 3, and no edge of the tree serves two parts."""
    n = max(n, k)
    rng = np.random.default_rng(seed)
    to = tree_of(rng, n)
    labels = np.zeros(n, np.int64)
    parts = split(to, k, labels)
    sizes = np.bincount(labels, minlength=parts)
    assert sizes.min() >= k
    assert sizes.max() <= max(2 * k - 1, 3 * k - 3)
    used = [sum(item) for item in zip(*(edges_of_part(to, labels == c) for c in range(parts)), strict=True)]
    assert max(used, default=0) <= 1


def edges_of_part(to: np.ndarray, inside: np.ndarray) -> list[bool]:
    """Which edges (from each record but the root) the least subtree over some records has."""
    n = len(to)
    below = inside.astype(int)
    left = [i for i in range(n) if to[i] >= 0]
    degree = np.bincount(to[to >= 0], minlength=n)
    ready = [i for i in left if degree[i] == 0]
    while ready:
        i = ready.pop()
        below[to[i]] += below[i]
        degree[to[i]] -= 1
        if degree[to[i]] == 0 and to[to[i]] >= 0:
            ready.append(int(to[i]))
    total = int(inside.sum())
    return [bool(0 < below[i] < total) for i in left]


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 4]), st.integers(2, 14))
def test_forest_edges_as_spelled_out(seed: int, q: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    records = dyadic(rng, n, rng.integers(0, len(DYADIC), q).tolist())
    k = int(rng.integers(2, n + 1))
    to = naive.forest_edges(costs_of(records), n, k)
    expected = np.zeros(n, np.int64)
    count = split(np.array(to, np.int64), k, expected)
    labels, result = forest_labels(partition(records), k)
    assert result == count
    assert np.array_equal(labels, expected)


@given(st.integers(0, 2**32), st.integers(4, 9), st.integers(2, 3))
def test_forest_is_within_its_ratio(seed: int, n: int, k: int) -> None:
    """Suppression of single values is a tree measure: a set costs at most the edges of a tree over it."""
    rng = np.random.default_rng(seed)
    records = cost_cases.table(rng, n, ["suppression"] * 3, [2, 3, 3])
    cost = costs_of(records)
    labels, result = forest_labels(partition(records), k)
    spent = sum(len(c) * cost(frozenset(c)) for c in clusters(labels, result))
    least = naive.least_loss(cost, n, k)
    assert least <= spent <= (3 * k - 3) * least


# ------------------------------------------------------------------------------------------------ Adult


@pytest.mark.slow
@pytest.mark.data
def test_adult(data_folder: Path) -> None:
    """10,000 records, k = 10: far below forest, and verified; the time grows with the square of the records."""
    table = adult(data_folder, 10_000)
    near, trees = (af.anonymize(table, method, 10, seed=1) for method in ("agglomerative", "forest"))
    assert near.loss() < 0.052
    for measure in ("ncp", "lm"):
        assert near.loss(measure) < 0.7 * trees.loss(measure), measure
    for anon in (near, trees):
        assert af.verify(table, anon, ["covers", "k-anonymity"])
