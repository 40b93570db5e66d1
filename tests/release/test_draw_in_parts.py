"""A table that is drawn part by part, or shuffled bucket by bucket, gets what it gets as a whole."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from anonflow.release import RandomWords, draw, draw_assignment, draw_permutation, permute_classes
from anonflow.release.draw import bucket_count, deal, permute_buckets
from tests.strategies import loop

WORDS = RandomWords(2**127 + 5)


def rings(parts: list[np.ndarray], n: int, k: int) -> np.ndarray:
    """Each part is a ring: record j of it matches itself and the k - 1 that follow."""
    matches = np.full((n, k), -1, np.int64)
    for part in parts:
        for s in range(min(k, len(part))):
            matches[part, s] = np.roll(part, -s)
    return matches


@loop("mixed", [False, True])
def test_an_assignment_does_not_depend_on_how_the_table_is_cut(mixed: bool) -> None:
    """Also where a part's positions ascend: its components are keyed by positions in the table, not in the part."""
    n, rng = 90, np.random.default_rng(1)
    parts = [np.arange(0, 60, 2), np.arange(1, 60, 2), np.array([60]), np.arange(61, n)]
    if mixed:
        parts = [rng.permutation(part) for part in parts]
    matches = rings(parts, n, 4)
    whole = draw_assignment(matches, WORDS)
    rank = np.empty(n, np.int64)
    for part in parts:
        rank[part] = np.arange(len(part))
        matched = matches[part] >= 0
        own = np.where(matched, rank[np.where(matched, matches[part], part[0])], -1)
        np.testing.assert_array_equal(part[draw_assignment(own, WORDS, part)], whole[part])


def test_equal_parts_at_different_places_are_drawn_apart() -> None:
    matches = rings([np.arange(40)], 40, 8)
    draws = {draw_assignment(matches, WORDS, np.arange(40) + start).tobytes() for start in range(0, 400, 40)}
    assert len(draws) == 10


def test_classes_do_not_depend_on_how_the_table_is_cut() -> None:
    labels = np.random.default_rng(2).integers(0, 9, 200)
    whole = permute_classes(labels, WORDS)
    for some in (np.flatnonzero(labels < 4), np.flatnonzero(labels >= 4)[::-1]):
        np.testing.assert_array_equal(some[permute_classes(labels[some], WORDS, some)], whole[some])


@pytest.mark.slow
def test_a_shuffle_over_buckets_is_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draw, "BUCKET", 2)
    assert bucket_count(4) == 2
    times = 12_000
    seen = Counter(tuple(draw_permutation(4, RandomWords(2**100 + i)).tolist()) for i in range(times))
    expected = times / math.factorial(4)
    chi = sum((seen[order] - expected) ** 2 / expected for order in seen)
    assert len(seen) == 24
    assert chi < 49.7  # 23 degrees of freedom, 0.1 %


def test_buckets_are_shuffled_alone_as_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draw, "BUCKET", 40)
    n = 500
    whole = draw_permutation(n, WORDS)
    np.testing.assert_array_equal(np.sort(whole), np.arange(n))
    dealt = np.concatenate(list(deal(n, WORDS)))
    alone = []
    for bucket in range(bucket_count(n)):
        members = np.flatnonzero(dealt == bucket)
        alone.append(permute_buckets(members, np.array([0, len(members)]), np.array([bucket]), WORDS))
    np.testing.assert_array_equal(np.concatenate(alone), whole)


@loop(("n", "count"), [(0, 1), (1, 1), (1 << 17, 1), ((1 << 17) + 1, 2), (10**7, 128)])
def test_numbers_of_buckets(n: int, count: int) -> None:
    assert bucket_count(n) == count
