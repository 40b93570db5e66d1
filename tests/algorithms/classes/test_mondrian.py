"""Mondrian against its definition."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonflow.algorithms import anonymize
from anonflow.algorithms.classes.mondrian import mondrian_labels
from anonflow.algorithms.method import Partition
from anonflow.errors import ParameterError
from anonflow.table import Table
from tests.cases.plain_kernels import plainly
from tests.naive import mondrian as naive
from tests.strategies import WITHOUT_CODES, loop, tables


def nested(tree: Any, node: int) -> Any:
    children = tree.children(node).tolist()
    return [nested(tree, child) for child in children] if children else int(tree.first[node])


def columns_of(table: Table) -> list[tuple[Any, ...]]:
    columns: list[tuple[Any, ...]] = []
    for a, domain in enumerate(table.domains):
        codes = table.codes[:, a].tolist()
        if domain.shape == "set":
            columns.append(("set", codes))
        elif domain.hierarchy is None:
            columns.append(("numeric", [None if c < 0 else Fraction(domain.points[c]) for c in codes]))
        else:
            columns.append(("tree", codes, nested(domain.hierarchy, 0)))
    return columns


def classes_of(labels: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)}


def assert_as_defined(table: Table, k: int, relaxed: bool) -> None:
    part = Partition(table.records, "ncp", np.random.default_rng(0))
    weights = [Fraction(domain.weight) for domain in table.domains]
    expected = naive.mondrian(columns_of(table), weights, table.n, k, relaxed)
    labels, count = mondrian_labels(part, k, relaxed)
    assert classes_of(labels) == expected
    assert count == len(expected)
    plain, _ = plainly(mondrian_labels, part, k, relaxed)
    assert (labels == plain).all()
    assert np.bincount(labels).min() >= k


@settings(deadline=None)
@given(tables(min_n=2, max_n=14, kinds=WITHOUT_CODES), st.integers(2, 4), st.booleans())
def test_the_classes_are_those_of_the_definition(table: Table, k: int, relaxed: bool) -> None:
    assert_as_defined(table, min(k, table.n), relaxed)


@loop("relaxed", [False, True])
def test_few_rows_with_values_far_apart_are_cut_as_defined(relaxed: bool) -> None:
    """So few values of a wide domain that they are sorted, not counted."""
    qi = {"role": "quasi-identifier", "kind": "numeric"}
    frame = pd.DataFrame({"first": np.arange(50) // 5, "then": np.random.default_rng(3).permutation(50)})
    assert_as_defined(Table(frame, {"first": {**qi, "weight": 100}, "then": qi}), 2, relaxed)


def test_it_publishes_tight_ranges_and_sets() -> None:
    frame = pd.DataFrame({"age": [20, 21, 60, 66], "job": ["a", "b", "c", "c"]})
    schema = {
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "job": {"role": "quasi-identifier", "kind": "categorical"},
    }
    anon = anonymize(Table(frame, schema), "mondrian", k=2)
    assert anon.frame().to_numpy().tolist() == [["20-21", "{a|b}"]] * 2 + [["60-66", "c"]] * 2
    assert anon.matches is None
    assert anon.classes is not None


def test_strict_keeps_equal_values_together_and_relaxed_does_not() -> None:
    table = Table(pd.DataFrame({"a": [1, 1, 1, 2]}), {"a": {"role": "quasi-identifier", "kind": "numeric"}})
    assert len(set(anonymize(table, "mondrian", k=2, mode="strict").classes.tolist())) == 1  # type: ignore[union-attr]
    assert len(set(anonymize(table, "mondrian", k=2, mode="relaxed").classes.tolist())) == 2  # type: ignore[union-attr]
    with pytest.raises(ParameterError, match="strict"):
        anonymize(table, "mondrian", k=2, mode="sideways")


@loop("q", [1, 64])
def test_few_and_many_columns_and_wide_domains(q: int) -> None:
    rng = np.random.default_rng(q)
    n = 600
    frame = pd.DataFrame({f"c{a}": rng.integers(0, 1000 if a % 2 else 3, n) for a in range(q)})
    kinds = ["categorical", "numeric", "suppression"]
    table = Table(frame, {f"c{a}": {"role": "quasi-identifier", "kind": kinds[a % 3]} for a in range(q)})
    part = Partition(table.records, "ncp", rng)
    for relaxed in (False, True):
        labels, count = mondrian_labels(part, 5, relaxed)
        assert np.bincount(labels, minlength=count).min() >= 5


def test_equal_records_are_one_class() -> None:
    table = Table(pd.DataFrame({"a": ["x"] * 9}), {"a": {"role": "quasi-identifier", "kind": "categorical"}})
    labels, count = mondrian_labels(Partition(table.records, "ncp", np.random.default_rng(0)), 2)
    assert count == 1
    assert labels.tolist() == [0] * 9
