"""A release taken apart into disjoint assignments: every match in exactly one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.errors import ParameterError, VerificationError
from anonflow.release import assignments
from anonflow.table import Table
from tests.naive import draw as naive
from tests.strategies import examples, tables

METHODS = ("greedy", "sort-greedy", "hungarian", "min-cost-flow", "nh", "two-phase")


def assert_apart(matches: np.ndarray, apart: np.ndarray, suppressed: np.ndarray) -> None:
    """Each column's entries are that record's matches, each once; rows are assignments where they are whole."""
    n = len(matches)
    assert apart.dtype == np.int32
    assert apart.shape == ((matches >= 0).sum(axis=1).max(), n)
    edges = Counter((i, j) for j, row in enumerate(matches.tolist()) for i in row if i >= 0)
    taken = Counter(
        (i, j) for row in apart.tolist() for j, i in enumerate(row) if i >= 0 and not suppressed[j]
    )
    assert taken == Counter({edge: 1 for edge in edges if not suppressed[edge[1]]})
    assert (apart[:, suppressed] == np.flatnonzero(suppressed)).all()
    for row in apart:
        originals = row[row >= 0]
        assert len(set(originals.tolist())) == len(originals)
        assert set(originals.tolist()) == set(np.flatnonzero(row >= 0).tolist())


@examples(40)
@given(tables(min_n=2, max_n=14), st.data(), st.sampled_from(METHODS))
def test_assignments_of_every_method_are_disjoint(table: Table, data: st.DataObject, method: str) -> None:
    k = data.draw(st.integers(2, table.n))
    anon = af.anonymize(table, method, k=k, partition_size=data.draw(st.integers(k, table.n)))
    apart = anon.assignments()
    assert apart.shape == (k, table.n)
    assert (np.sort(apart, axis=1) == np.arange(table.n)).all()
    assert_apart(anon.matches, apart, anon.suppressed)


@examples(40)
@given(tables(min_n=3, max_n=14), st.data(), st.sampled_from(METHODS[:5]))
def test_assignments_of_reciprocal_graphs_share_no_edge(
    table: Table, data: st.DataObject, method: str
) -> None:
    k = data.draw(st.integers(2, table.n))
    size = data.draw(st.integers(k, table.n))
    anon = af.anonymize(table, method, k=k, partition_size=size, reciprocal=True)
    assert_apart(anon.matches, anon.assignments(), anon.suppressed)


@examples(40)
@given(st.lists(st.tuples(st.integers(1, 12), st.integers(0, 99)), min_size=1, max_size=4), st.data())
def test_of_graphs_side_by_side(sizes: list[tuple[int, int]], data: st.DataObject) -> None:
    parts = [naive.shifts(n, data.draw(st.integers(1, n)), seed) for n, seed in sizes]
    matches = naive.beside(*parts)
    own = (matches >= 0).sum(axis=1) == 1
    # a record with one match other than itself is not a suppressed one
    own &= matches[:, 0] == np.arange(len(matches))
    if ((matches >= 0).sum(axis=1) == 1).sum() != own.sum():
        return
    assert_apart(matches, assignments(matches), own)


def test_with_suppressed_records() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": [*rng.integers(0, 25, 20), 80], "b": rng.choice(list("xy"), 21)})
    qi = {"role": "quasi-identifier"}
    schema = {"a": qi | {"kind": "numeric", "boundary": {"width": 30}}, "b": qi | {"kind": "categorical"}}
    anon = af.anonymize(Table(frame, schema), "greedy", k=3)
    assert anon.suppressed.sum() == 1
    assert_apart(anon.matches, anon.assignments(), anon.suppressed)


def test_what_cannot_be_taken_apart_is_refused() -> None:
    table = Table(pd.DataFrame({"a": range(9)}), {"a": {"role": "quasi-identifier", "kind": "numeric"}})
    with pytest.raises(ParameterError, match="mondrian makes no matches"):
        af.anonymize(table, "mondrian", k=3).assignments()
    with pytest.raises(VerificationError, match="not regular"):
        assignments(np.array([[0, 1], [1, 2], [2, 1]], np.int32))
