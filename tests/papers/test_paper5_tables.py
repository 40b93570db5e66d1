"""Bredereck 2013, Tables 1, 3 and 6, heuristic columns: every printed digit.

Table 1 (Adult) is the UCI training file without fnlwgt, ``?`` a value; Tables 3 and 6 (Nursery) have the eight
attributes without the class. 12,690 suppressions in Table 6 are a misprint of 12,960.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import anonflow as af
from anonflow import datasets
from anonflow.algorithms.method import Outcome
from tests.cases.patterns import (
    ADULT_NUMBERS,
    MEASURES,
    TABLE_1,
    TABLE_3,
    TABLE_6,
    adult_to_suppress,
    nursery_to_suppress,
)
from tests.naive import patterns

SLOW = [pytest.param(k, marks=pytest.mark.slow) for k in TABLE_1 if k != 2]


def check(measured: dict[str, float | int], expected: tuple[float, int, float, int]) -> None:
    assert f"{measured['usefulness']:.3f}" == f"{expected[0]:.3f}"
    assert measured["row-types"] == expected[1]
    assert f"{measured['average-class-size']:.3f}" == f"{expected[2]:.3f}"
    assert measured["max-class-size"] == expected[3]


def naive(table: af.Table, k: int) -> tuple[Outcome, int]:
    """The naive heuristic with all patterns, its classes joined, and its suppressions."""
    labels, stars = patterns.greedy(table.codes, k)
    return Outcome.of_classes(table.records, labels, stars == table.q), int(stars.sum())


@pytest.mark.parametrize("k", TABLE_3)
def test_nursery_naive(k: int) -> None:
    result, stars = naive(nursery_to_suppress(), k)
    measured = af.measure(nursery_to_suppress(), result, MEASURES, numeric=[])
    check(measured, TABLE_3[k])
    assert measured["stars"] == stars == TABLE_6[k]


@pytest.mark.data
@pytest.mark.parametrize("k", [pytest.param(2, marks=pytest.mark.slow), *SLOW])
def test_adult_naive(k: int, data_folder: Path) -> None:
    result, stars = naive(adult_to_suppress(), k)
    measured = af.measure(adult_to_suppress(), result, MEASURES, numeric=ADULT_NUMBERS)
    check(measured, TABLE_1[k])
    assert measured["stars"] == stars


@pytest.mark.parametrize("k", TABLE_3)
def test_nursery_gives_table_3_and_table_6(k: int) -> None:
    anon = af.anonymize(nursery_to_suppress(), "pattern-guided", k=k, seed=0)
    measured = af.measure(nursery_to_suppress(), anon, MEASURES, numeric=[])
    check(measured, TABLE_3[k])
    assert measured["stars"] == TABLE_6[k]


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("k", TABLE_1)
def test_adult_gives_table_1(k: int, data_folder: Path) -> None:
    anon = af.anonymize(adult_to_suppress(), "pattern-guided", k=k, seed=0)
    check(af.measure(adult_to_suppress(), anon, MEASURES, numeric=ADULT_NUMBERS), TABLE_1[k])


@pytest.mark.slow
@pytest.mark.data
def test_adult_suppressions_are_the_naive_ones(data_folder: Path) -> None:
    anon = af.anonymize(adult_to_suppress(), "pattern-guided", k=10, seed=0)
    assert af.measure(adult_to_suppress(), anon, "stars") == {"stars": naive(adult_to_suppress(), 10)[1]}


def test_patterns_come_in_the_papers_order() -> None:
    assert patterns.all_patterns(3) == [0b000, 0b001, 0b010, 0b100, 0b011, 0b101, 0b110, 0b111]


@pytest.mark.parametrize("m", [3, 5])
def test_theorem_4s_family(m: int) -> None:
    frame = datasets.theorem4(m)
    codes = np.stack([np.unique(frame[name], return_inverse=True)[1] for name in frame], axis=1)
    columns = list(frame)
    listed = [
        sum(1 << (m - 1 - columns.index(name)) for name in names) for names in datasets.theorem4_patterns(m)
    ]
    _, stars = patterns.greedy(codes, m, sorted(listed, key=lambda pattern: (pattern.bit_count(), pattern)))
    assert stars.sum() == (m - 1) * m * m
    # the optimum: each row gives up one cell, the rows of ones along the diagonal
    best = codes.copy()
    for row in range(m * m):
        best[row, row if row < m else (row - m) // (m - 1)] = -1
    assert np.unique(best, axis=0, return_counts=True)[1].min() >= m
