"""What the reason for uniting or closing gives away: against every permutation, and on a case that is known by hand."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.algorithms.diversity.minimality import enumerated_excess, minimality_excess
from anonflow.errors import InfeasibleError, ParameterError
from tests.naive import minimality as naive


def with_the_next(values: tuple[int, ...]) -> tuple[Any, list[list[int]]]:
    """Pairs of neighbours; one whose values are equal is united with the next one, once, from the left."""
    pairs = [list(range(at, min(at + 2, len(values)))) for at in range(0, len(values), 2)]
    classes: list[list[int]] = []
    while pairs:
        item = pairs.pop(0)
        if len({values[i] for i in item}) == 1 and pairs:
            item += pairs.pop(0)
        classes.append(item)
    listed = [next(each for each in classes if i in each) for i in range(len(values))]
    return tuple((tuple(label), tuple(sorted(values[i] for i in label))) for label in classes), listed


def test_a_union_that_says_who_failed() -> None:
    """Only the first pair unites with the second: that it was alike is certain, though half of four rows show it."""
    assert naive.excess((0, 0, 1, 2), with_the_next) == Fraction(1, 2)
    assert enumerated_excess((0, 0, 1, 2), with_the_next) == 0.5


def test_symmetric_unions_say_nothing() -> None:
    def symmetric(values: tuple[int, ...]) -> tuple[Any, list[list[int]]]:
        alike = values[0] == values[1] or values[2] == values[3]
        classes = [[0, 1, 2, 3]] if alike else [[0, 1], [2, 3]]
        listed = [next(each for each in classes if i in each) for i in range(4)]
        return tuple((tuple(label), tuple(sorted(values[i] for i in label))) for label in classes), listed

    assert enumerated_excess((0, 0, 1, 1), symmetric) == 0


@given(st.lists(st.integers(0, 2), min_size=2, max_size=6))
def test_the_excess_is_that_of_counting_every_permutation(values: list[int]) -> None:
    excess = enumerated_excess(tuple(values), with_the_next)
    assert excess == pytest.approx(float(naive.excess(values, with_the_next)))


def towns(ages: list[int], ill: str) -> af.Table:
    frame = pd.DataFrame({"age": ages, "ill": list(ill)})
    return af.Table(
        frame, {"age": {"role": "quasi-identifier", "kind": "numeric"}, "ill": {"role": "sensitive"}}
    )


def published(anon: Any, values: tuple[int, ...], texts: str, **request: Any) -> tuple[Any, list[list[int]]]:
    """One run of the step, read off the result as anybody would."""
    table = towns(anon.table.frame["age"].tolist(), "".join(texts[v] for v in values))
    again = af.anonymize(table, anon.algorithm.name, anon.k, seed=1)
    diverse = af.diversify(again, **request, seed=0)
    rows = diverse.frame()["age"].tolist()
    if diverse.classes is not None:
        listed = [np.flatnonzero(diverse.classes == label).tolist() for label in diverse.classes]
    else:
        listed = [sorted(int(i) for i in row if i >= 0) for row in diverse.matches]
    return tuple(
        sorted((row, tuple(sorted(values[i] for i in people))) for row, people in zip(rows, listed))
    ), listed


@pytest.mark.parametrize("algorithm", ["mondrian", "k-member", "greedy"])
def test_the_steps_own_excess(algorithm: str) -> None:
    """United classes and closed graphs: as every permutation says."""
    ages, ill = [1, 2, 4, 5, 40, 41], "aabbab"
    anon = af.anonymize(towns(ages, ill), algorithm, 2, seed=1)
    request = {"criterion": "p-sensitivity", "p": 2, "risk": 0}
    once = cache(lambda values: published(anon, values, "ab", **request))  # 20 ways among 720 permutations
    expected = naive.excess([0, 0, 1, 1, 0, 1], once)
    excess = minimality_excess(anon, **request)
    assert excess == pytest.approx(float(expected))
    assert Fraction(0) <= expected <= 1


def test_identifiers_stay_where_they_are() -> None:
    """Values are dealt anew; columns that are not published are not looked for."""
    people = towns([1, 2, 4, 5, 40, 41], "aabbab")
    named = af.Table(
        people.frame.assign(name=list("uvwxyz")),
        people.schema.to_mapping() | {"name": {"role": "identifier"}},
    )
    excess = [
        minimality_excess(af.anonymize(each, "agglomerative", 2), "p-sensitivity", p=2)
        for each in (people, named)
    ]
    assert excess[0] is not None
    assert excess[0] == excess[1]


def test_larger_tables_and_open_graphs_are_not_bounded() -> None:
    ages = list(range(12))
    anon = af.anonymize(towns(ages, "abcdefghijkl"), "greedy", 3)
    assert minimality_excess(anon, "p-sensitivity", p=2) is None  # 12! ways
    few = af.anonymize(towns(ages, "abababababab"), "greedy", 4)
    # a draw decides what rows show
    assert minimality_excess(few, "p-sensitivity", p=1, way="blind") is None
    assert "the attacker minimality measures it" in af.diversify(anon, "p-sensitivity", p=2).facts["promise"]
    with pytest.raises(InfeasibleError, match="largest feasible"):
        minimality_excess(few, "p-sensitivity", p=3)
    with pytest.raises(ParameterError, match="takes an Anonymization"):
        minimality_excess(few.table)  # type: ignore[arg-type]
