"""Sorting and selecting inside kernels: against numpy, plain and compiled, with ties, and stable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonflow.kernels import ordering

SIZES = (0, 1, 2, 15, 16, 17, 31, 32, 33, 48, 49, 250, 1000)
"""Around the runs that are sorted by insertion, and around their powers of two."""


def cases(n: int, dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(n)
    some = [
        rng.permutation(n),
        rng.integers(0, 3, n),
        np.zeros(n),
        np.arange(n),
        np.arange(n)[::-1],
        -rng.integers(0, 9, n),
    ]
    if dtype is float:
        some += [
            rng.random(n),
            np.where(rng.random(n) < 0.3, np.inf, rng.random(n)),
            np.where(rng.random(n) < 0.5, 0.0, -0.0),
        ]
    return [np.ascontiguousarray(values, dtype) for values in some]


@pytest.mark.parametrize("order", [ordering.stable_order, ordering.stable_order_jit])
@pytest.mark.parametrize("dtype", [float, np.int64])
def test_the_order_is_numpys_stable_one(dtype: type, order: Callable[..., Any]) -> None:
    for n in SIZES:
        for values in cases(n, dtype):
            before = values.copy()
            positions = order(values)
            assert positions.dtype == np.int64, n
            assert np.array_equal(positions, np.argsort(values, kind="stable")), n
            assert np.array_equal(values, before), n


@pytest.mark.parametrize("sort", [ordering.sort, ordering.sort_jit])
@pytest.mark.parametrize("dtype", [float, np.int64])
def test_numbers_are_sorted_in_place(dtype: type, sort: Callable[..., Any]) -> None:
    for n in SIZES:
        for values in cases(n, dtype):
            room = np.concatenate([values, values[:5]])
            sort(room[:n])
            assert np.array_equal(room, np.concatenate([np.sort(values), values[:5]])), n


@pytest.mark.parametrize("least", [ordering.least, ordering.least_jit])
def test_the_least_are_those_before_a_partition(least: Callable[..., Any]) -> None:
    for n in SIZES[1:]:
        for values in cases(n, float):
            for m in sorted({1, 2, n // 2, n - 1, n} - {0}):
                if m > n:
                    continue
                for begin in {0, n // 3}:
                    key, place = np.empty(m), np.empty(m, np.int32)
                    least(values, begin, key, place)
                    where = f"{m} of {n} from {begin}"
                    assert key[0] == np.partition(values, m - 1)[m - 1], where
                    assert np.array_equal(np.sort(key), np.sort(values)[:m]), where
                    assert np.array_equal(values[place], key), where
                    assert len(set(place.tolist())) == m, where


@given(st.lists(st.sampled_from([0.0, 0.5, 1.0, np.inf, -1.0]), max_size=200))
def test_plain_and_compiled_agree(numbers: list[float]) -> None:
    values = np.array(numbers, float)
    want = sorted(range(len(numbers)), key=numbers.__getitem__)
    assert ordering.stable_order(values).tolist() == ordering.stable_order_jit(values).tolist() == want
