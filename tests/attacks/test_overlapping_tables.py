"""Overlapping tables: two tables share people, and each is released once; intersect what the two releases allow of them.

Figures, 300 people each, 200 of them in both, mondrian, k = 5, a sensitive value with six values: of the shared people it is named
right for 0.41 from one release and for 0.45 from both. It cannot be prevented once both are published: the second release must say how
many people are in the first, the attacker `intersection` must not be weaker than counting by hand (within 0.02).
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.errors import ParameterError
from anonflow.release import Release, ReleaseWarning
from tests.cases.released_twice import NAMED, SCHEMA, people


def released(frame: pd.DataFrame) -> tuple[af.Table, Release]:
    table = af.Table(frame, SCHEMA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReleaseWarning)
        return table, af.anonymize(table, "mondrian", k=5).release(seed=2**127)


def shares(table: af.Table, release: Release, values: list[str]) -> dict[object, np.ndarray]:
    """For each person, by the label in the frame's index, how often each value is shown by the rows that list it."""
    assert release.certificate is not None
    shown = [values.index(value) for value in release.frame["ill"]]
    counts = np.zeros((table.n, len(values)))
    for row in range(table.n):
        counts[release.certificate.of(row), shown[row]] += 1
    return dict(zip(table.frame.index, counts / counts.sum(axis=1, keepdims=True), strict=True))


def right(weights: np.ndarray, truth: int) -> float:
    best = np.isclose(weights, weights.max())
    return float(best[truth] / best.sum())


def test_people_in_both_are_named_more_often() -> None:
    frame = people()
    (item, first), (two, second) = released(frame.iloc[:300]), released(frame.iloc[100:])
    values = sorted(set(frame["ill"]))
    earlier, later = shares(item, first, values), shares(two, second, values)
    prior = np.array([(second.frame["ill"] == value).mean() for value in values])
    rates = []
    for label in two.frame.index:
        truth = values.index(two.frame.loc[label, "ill"])
        both = later[label] * earlier[label] / prior if label in earlier else later[label]
        rates.append((label in earlier, right(later[label], truth), right(both, truth)))
    shared = np.array([rate[1:] for rate in rates if rate[0]])
    assert len(shared) == 200
    assert shared[:, 1].mean() > shared[:, 0].mean() + 0.02
    by_hand = np.mean([rate[2] for rate in rates])
    row = af.attack(two, second, "linker", k=5, earlier=[(item, first)]).iloc[-1]
    assert by_hand - 0.02 <= row["success"] <= by_hand + 0.02
    assert row["baseline"] == pytest.approx(np.mean([rate[1] for rate in rates]))


def test_the_second_table_is_told_how_many_it_shares(tmp_path: Path) -> None:
    frame = people()
    first = af.anonymize(af.Table(frame.iloc[:300], NAMED), "mondrian", k=5)
    second = af.anonymize(af.Table(frame.iloc[100:], NAMED), "greedy", k=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first.release(owner=tmp_path)
    with pytest.warns(ReleaseWarning, match="200 of 300 people are in an earlier release"):
        second.release(owner=tmp_path)


def test_without_an_earlier_release_there_is_nothing_to_intersect() -> None:
    table, release = released(people(40))
    with pytest.raises(ParameterError, match="at least one"):
        af.attack(table, release, af.risk.Intersection([]), k=5)
