"""Ranks and places of equal values, beside their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonflow.table import records
from anonflow.table.records import (
    first_places,
    matches_among,
    places_in,
    ranked_values,
    take_into,
    take_positions,
)


@pytest.mark.parametrize("dtype", [np.float64, np.int64, "M8[us]"])
@given(values=st.lists(st.sampled_from([-2, 0, 1, 7, 10**12])))
def test_ranks_are_those_of_sorted_values(values: list[int], dtype: Any) -> None:
    array = np.array(values, np.int64).astype(dtype)
    distinct, rank, counts = ranked_values(array)
    assert distinct.dtype == array.dtype
    assert distinct.tolist() == sorted(set(array.tolist()))
    assert (distinct[rank] == array).all()
    assert counts.tolist() == [array.tolist().count(value) for value in distinct.tolist()]


def test_zeros_of_both_signs_are_one_value() -> None:
    distinct, rank, counts = ranked_values(np.array([0.0, -1.5, -0.0, 1e300]))
    assert (distinct.tolist(), rank.tolist(), counts.tolist()) == (
        [-1.5, 0.0, 1e300],
        [1, 0, 1, 2],
        [1, 2, 1],
    )
    for zeros in ([0.0, -0.0], [-0.0, 0.0]):
        (zero,) = ranked_values(np.array(zeros))[0]
        assert np.signbit(zero) == np.signbit(zeros[0]), "the first is kept"


@given(st.lists(st.integers(0, 5)))
def test_first_places_are_the_first(labels: list[int]) -> None:
    labels = [sorted(set(labels)).index(label) for label in labels]
    distinct = len(set(labels))
    places = first_places(np.array(labels, np.int64), distinct)
    assert places.tolist() == [labels.index(label) for label in range(distinct)]


@given(st.permutations(range(6)), st.integers(0, 6))
def test_places_are_found_again(order: list[int], count: int) -> None:
    at = np.array(order[:count], np.int64)
    places = places_in(at, 6)
    assert places[at].tolist() == list(range(count))
    assert (np.delete(places, at) == -1).all()


def test_matches_are_places_among_the_records_that_stay() -> None:
    matches = np.array([[0, 3], [1, -1], [2, -1], [3, 0]])
    assert matches_among(matches, np.array([3, 0, 1])).tolist() == [[0, 1], [1, 0], [2, -1]]


@pytest.mark.parametrize("together", [1, 100])
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_and_columns_are_taken_by_positions_and_by_masks(
    monkeypatch: pytest.MonkeyPatch, axis: int, together: int
) -> None:
    monkeypatch.setattr("anonflow.table.records.TAKEN", together)
    array = np.arange(12).reshape(4, 3)
    mask = np.arange(array.shape[axis]) != 1
    for index in (mask, np.flatnonzero(mask), np.array([-1, 0, 0]), np.empty(0, np.int64)):
        expected = array[index] if axis == 0 else array[:, index]
        assert take_positions(array, index, axis).tolist() == expected.tolist()
        assert take_positions(array, index, axis).flags.c_contiguous
    with pytest.raises(IndexError):
        take_positions(array, np.array([9]), axis)


@pytest.mark.parametrize("shape", [(30,), (30, 3)])
@pytest.mark.parametrize("dtype", [bool, np.int32, np.uint64, np.float64])
def test_rows_are_put_into_an_array_in_blocks(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], dtype: Any
) -> None:
    monkeypatch.setattr(records, "TAKEN", 7)
    rng = np.random.default_rng(0)
    array, at = rng.integers(0, 2, shape).astype(dtype), rng.integers(0, 30, 50)
    out = np.empty((50, *shape[1:]), dtype)
    take_into(out, array, at)
    np.testing.assert_array_equal(out, array[at])
