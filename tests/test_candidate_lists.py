"""Which originals each row may be of: lists, shared lists, claims that are read and checked."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from anonflow import candidate_lists
from anonflow.candidate_lists import Candidates
from anonflow.errors import DataError
from anonflow.release.certificate import Certificate
from tests.strategies import loop


def listing_of(lists: list[list[int]]) -> Candidates:
    return Candidates.of_lists(
        np.array([len(each) for each in lists]),
        np.array([place for each in lists for place in each], np.int32),
    )


@loop("ascending", [True, False])
def test_rows_that_list_a_stranger_or_one_original_twice_are_told(ascending: bool) -> None:
    rng = np.random.default_rng(5)
    n = 30
    for _ in range(200):
        lists = [rng.integers(-1, n + 1, rng.integers(0, 6)).tolist() for _ in range(rng.integers(1, 8))]
        if ascending:
            lists = [sorted(each) for each in lists]
        bad = [len(set(each)) < len(each) or any(not 0 <= place < n for place in each) for each in lists]
        assert listing_of(lists).strangers(n).tolist() == bad


def test_what_a_file_says_is_checked_before_it_is_read() -> None:
    """Random arrays are lists, and ascend, exactly where reading them row by row says so."""
    rng = np.random.default_rng(6)
    sound, ascending = 0, 0
    for _ in range(4_000):
        lists, n = int(rng.integers(1, 4)), 4
        originals = np.sort(rng.integers(-1, n + 1, int(rng.integers(0, 5))))
        ends = np.sort(rng.integers(0, len(originals) + 1, lists))
        offsets = np.append(0, ends)
        offsets[-1] = len(originals)
        rng.shuffle(offsets[int(rng.integers(0, lists + 1)) :])
        row_list = rng.integers(-1 if rng.random() < 0.2 else 0, lists + (rng.random() < 0.2), 3)
        candidates = Candidates(row_list, offsets, originals)
        cuts = offsets.tolist()
        is_sound = (
            cuts[0] == 0
            and cuts[-1] == len(originals)
            and cuts == sorted(cuts)
            and all(0 <= place < lists for place in row_list.tolist())
        )
        assert candidates.is_sound == is_sound
        if is_sound:
            members = [originals[start:stop].tolist() for start, stop in itertools.pairwise(cuts)]
            good = all(
                sorted(set(places)) == places and all(0 <= place < n for place in places)
                for places in members
            )
            assert candidates.is_ascending(n) == good
            sound, ascending = sound + 1, ascending + good
    assert min(sound, sound - ascending, ascending) > 100
    assert not Candidates(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)).is_sound
    assert not Candidates(np.zeros(1), np.zeros(2, np.int64), np.zeros(0, np.int64)).is_sound


def test_lists_that_ascend_are_not_sorted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorting all of a table's lists took a seventh of the time in which a release of 320,000 records was drawn."""
    sorted_lists = []
    real = np.lexsort

    def lexsort(keys):
        sorted_lists.append(len(keys))
        return real(keys)

    monkeypatch.setattr(np, "lexsort", lexsort)
    assert listing_of([[0, 1, 4], [], [1], [0, 2]]).strangers(5).tolist() == [False] * 4
    assert sorted_lists == []
    assert listing_of([[1, 0, 1], [1]]).strangers(5).tolist() == [True, False]
    assert sorted_lists == [2]


def random_lists(rng: np.random.Generator, n: int) -> tuple[Candidates, list[list[int]]]:
    """Rows that share lists, leave some out and have empty ones; the same as lists of numbers."""
    lists = [sorted(rng.choice(n, rng.integers(0, 5), replace=False).tolist()) for _ in range(6)]
    row_list = rng.integers(0, len(lists), rng.integers(0, 12))
    offsets = np.concatenate([[0], np.cumsum([len(members) for members in lists])]).astype(np.int64)
    originals = np.array([place for members in lists for place in members], np.int32)
    return Candidates(row_list, offsets, originals), [lists[t] for t in row_list.tolist()]


def test_shared_lists_read_as_those_of_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_lists, "_ROWS", 3)
    monkeypatch.setattr(candidate_lists, "_PAIRS", 4)
    rng = np.random.default_rng(6)
    n = 9
    for _ in range(300):
        listed, rows = random_lists(rng, n)
        apart = Candidates.of_lists(
            np.array([len(members) for members in rows], np.int64),
            np.array([place for members in rows for place in members], np.int32),
        )
        pairs = [(row, place) for row, members in enumerate(rows) for place in members]
        middle = len(rows) // 2
        for same in (listed, apart):
            assert same.sizes.tolist() == [len(members) for members in rows]
            assert [tuple(pair) for pair in np.stack(same.pairs(), axis=1).tolist()] == pairs
            assert np.stack(same.pairs(middle), axis=1).tolist() == [
                list(pair) for pair in pairs if pair[0] >= middle
            ]
            assert same.counts(n).tolist() == [sum(place == at for _, place in pairs) for at in range(n)]
            assert same.any(lambda row, original: original == row).tolist() == [
                row in members for row, members in enumerate(rows)
            ]
            assert same.strangers(n - 1).tolist() == [n - 1 in members for members in rows]
            in_blocks = [
                (row, original[start:stop].tolist())
                for rows_of_block, starts, original in same.blocks()
                for row, start, stop in zip(
                    rows_of_block.tolist(), starts, [*starts[1:], len(original)], strict=True
                )
            ]
            assert in_blocks == [(row, members) for row, members in enumerate(rows) if members]


def test_classes_share_lists_and_are_complete() -> None:
    labels = np.array([3, 1, 3, 1, 7])
    classes = Candidates.of_classes(labels)
    assert len(classes.offsets) == 4
    assert np.stack(classes.pairs(), axis=1).tolist() == [
        [row, place] for row in range(5) for place in np.flatnonzero(labels == labels[row])
    ]
    complete = classes.complete_components(5)
    assert complete is not None
    assert complete.tolist() == [0, 1, 0, 1, 2]


def test_a_claim_that_is_no_lists_is_refused() -> None:
    damaged = [
        np.zeros((2, 2)),
        np.zeros(3, int),
        SimpleNamespace(offsets=np.array([0, 2]), originals=np.array([1])),
        SimpleNamespace(offsets=np.array([0, 2, 1]), originals=np.array([1])),
        SimpleNamespace(offsets=np.array([1, 1]), originals=np.array([1])),
        SimpleNamespace(offsets=np.array([]), originals=np.array([])),
        SimpleNamespace(candidates=Candidates(np.array([1]), np.array([0, 1]), np.array([0]))),
        SimpleNamespace(candidates=Candidates(np.array([-1]), np.array([0, 1]), np.array([0]))),
    ]
    for claim in damaged:
        with pytest.raises(DataError, match="damaged"):
            Candidates.of_claim(claim)
    with pytest.raises(DataError, match="is about 1 rows, the release has 2"):
        Candidates.of_claim(np.array([[0]]), 2)


def test_the_lists_of_a_matrix_are_where_they_are_wanted_and_a_certificate_copies_none() -> None:
    """Of ten million rows the lists are in files; one copy takes 400 MB."""
    arrays: list[np.ndarray] = []

    def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        arrays.append(np.empty(shape, dtype))
        return arrays[-1]

    matches = np.array([[2, 0, -1], [1, 2, 0], [0, 1, -1]], np.int32)
    lists = Candidates.of_matches(matches, np.array([2, 0, 1]), empty)
    certificate = Certificate.of_candidates(2, "k-regular", "greedy", lists)
    assert lists.unshared
    assert [lists.pairs(row, row + 1)[1].tolist() for row in range(3)] == [[0, 1], [0, 2], [0, 1, 2]]
    assert certificate.list_offsets is arrays[0]
    assert certificate.list_originals is arrays[1]
    assert certificate.row_list is lists.row_list
    assert Candidates.of_claim(certificate) is certificate.candidates


def test_the_lists_of_a_matrix_are_the_same_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate_lists, "_ROWS", 3)
    rng = np.random.default_rng(0)
    matches = np.stack([rng.permutation(20)[:4] for _ in range(20)]) - 1
    rows = rng.permutation(20)
    expected = [sorted(number for number in matches[row].tolist() if number >= 0) for row in rows]
    lists = Candidates.of_matches(matches, rows)
    assert [lists.pairs(row, row + 1)[1].tolist() for row in range(20)] == expected


@loop("size", [1, 3, 1000])
def test_parts_have_every_list_once(size: int) -> None:
    rng = np.random.default_rng(size)
    for _ in range(100):
        sizes = rng.integers(0, 5, int(rng.integers(0, 12)))
        parts = Candidates.of_lists(sizes, np.zeros(sizes.sum(), np.int32)).parts(size)
        assert [part for start, stop in parts for part in range(start, stop)] == list(range(len(sizes)))
        assert all(sizes[start : stop - 1].sum() <= size for start, stop in parts)


def test_rows_that_list_an_original_are_counted_whoever_shares_a_list() -> None:
    rng = np.random.default_rng(8)
    for _ in range(200):
        lists = [sorted(rng.choice(6, int(rng.integers(0, 4)), False).tolist()) for _ in range(4)]
        alone = listing_of(lists)
        for row_list in (alone.row_list, rng.integers(0, 4, 7)):
            candidates = Candidates(row_list, alone.offsets, alone.originals)
            naive = [sum(place in lists[number] for number in row_list.tolist()) for place in range(6)]
            assert candidates.counts(6).tolist() == naive
            assert candidates.sizes.tolist() == [len(lists[number]) for number in row_list.tolist()]


def test_originals_are_together_that_lists_join_in_the_order_of_the_first() -> None:
    rng = np.random.default_rng(9)
    for _ in range(300):
        n = int(rng.integers(1, 25))
        lists = [
            rng.integers(0, n, int(rng.integers(0, 4))).tolist() for _ in range(int(rng.integers(0, 20)))
        ]
        group = list(range(n))
        for members in lists:
            joined = {group[place] for place in members}
            group = [min(joined) if label in joined else label for label in group]
        number = {label: at for at, label in enumerate(dict.fromkeys(group))}
        assert listing_of(lists).components(n).tolist() == [number[label] for label in group]


def test_a_chain_of_lists_takes_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of 5,000 originals in any order: the rounds grow with the logarithm."""
    rounds = []
    parts = Candidates.parts
    monkeypatch.setattr(Candidates, "parts", lambda lists, *size: rounds.append(1) or parts(lists, *size))
    for order in (np.arange(5_000), np.random.default_rng(3).permutation(5_000)):
        rounds.clear()
        chain = np.stack([order[:-1], order[1:]], axis=1).astype(np.int32)
        assert not Candidates.of_lists(np.full(len(chain), 2), chain.ravel()).components(5_000).any()
        assert len(rounds) < 30


def test_sets_of_some_size_cover_each_member_of_a_list_alike() -> None:
    """A list of k is a set; each member of a longer one begins a set, which goes on from the list's end to its start."""
    rng = np.random.default_rng(7)
    for _ in range(200):
        lists = [
            rng.choice(50, rng.integers(0, 9), replace=False).tolist() for _ in range(rng.integers(0, 6))
        ]
        k = int(rng.integers(1, 6))
        expected = [
            [members[(start + step) % len(members)] for step in range(k)]
            for members in lists
            if len(members) >= k
            for start in range(1 if len(members) == k else len(members))
        ]
        sets = listing_of(lists).sets_of_size(k)
        assert sets.shape == (len(expected), k)
        assert sets.tolist() == expected
