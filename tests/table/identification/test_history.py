"""What several releases leave of people together, beside an attacker who tries every world."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonflow.candidate_lists import Candidates
from anonflow.table.identification.earlier import MEMORY, Earlier
from anonflow.table.identification.history import History
from anonflow.table.identification.released_people import ReleasedPeople
from tests.naive.repeated import Published, left
from tests.strategies import examples


def released(lists: dict[int, set[int]], number: int = 0) -> ReleasedPeople:
    """A release: person -> the people on the list of the row with this person's other columns."""
    people = sorted(lists)
    rank = {person: at for at, person in enumerate(people)}
    sizes = np.array([len(lists[person]) for person in people])
    # in any order: those of real tables are in that of their rows
    originals = [rank[other] for person in people for other in sorted(lists[person], reverse=True)]
    tracks = Candidates.of_lists(sizes, np.array(originals, np.int64))
    values = {"ill": np.array([person % 3 for person in people], np.uint64)}
    return ReleasedPeople(
        np.array(people, np.uint64), f"{number}", tracks=tracks, values=values, k=2, criterion="k-anonymity"
    )


@st.composite
def releases(draw: st.DrawFn) -> list[dict[int, set[int]]]:
    """Some releases of at most 6 people, each with a perfect matching of people and rows: their own."""
    several = []
    for _ in range(draw(st.integers(1, 3))):
        people = sorted(draw(st.sets(st.integers(0, 5), min_size=1)))
        several.append({person: {person} | draw(st.sets(st.sampled_from(people))) for person in people})
    return several


@examples(100)
@given(releases())
def test_people_and_values_left_are_those_of_all_worlds(years: list[dict[int, set[int]]]) -> None:
    history = History(tuple(released(lists, number) for number, lists in enumerate(years)))
    naive = left(
        [Published([frozenset(lists[person]) for person in sorted(lists)], sorted(lists)) for lists in years]
    )
    assert history.marks.tolist() == sorted(naive)
    assert history.people_left.tolist() == [len(naive[person].rows) for person in sorted(naive)]
    of_value = [len({int(str(value)) % 3 for value in naive[person].values}) for person in sorted(naive)]
    assert history.values_left("ill").tolist() == of_value
    grown = History(history.releases[:1])
    for each in history.releases[1:]:
        grown = grown.then(each)
        assert grown.people_left.min() > 0  # what the next one begins with
    assert {*zip(*grown.pairs, strict=True)} == {*zip(*history.pairs, strict=True)}


def test_rows_with_hidden_columns_are_not_published() -> None:
    """The people of rows without a list are those of no release."""
    history = History((released({1: {1, 2}, 2: {1, 2}, 3: set()}),))
    assert history.marks.tolist() == [1, 2]
    assert history.people_left.tolist() == [2, 2]
    assert history.cohorts.tolist() == [0, 0]


def test_releases_of_the_same_time_are_read_in_the_order_of_their_files(tmp_path: Path) -> None:
    earlier = Earlier(tmp_path)
    earlier.key()
    seals = "35162840"
    for seal in seals:
        arrays = ReleasedPeople(np.array([1], np.uint64), seal, "2026-01-01T00:00:00+00:00").arrays
        np.savez(tmp_path / MEMORY / f"20260101-000000-{seal}.npz", **arrays)
    assert [each.seal for each in earlier.releases()] == sorted(seals)


def test_a_release_counts_once() -> None:
    history = History((released({1: {1, 2}, 2: {1, 2}}),))
    assert history.then(history.releases[0]) is history
