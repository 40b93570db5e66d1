"""Risk before anything is done: people, households and the smallest sets, against every record and every set."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.errors import ParameterError
from anonflow.risk import population_risk
from anonflow.risk.before import risk_before, smallest_sets
from tests.naive import key_sets as naive

QI = {"role": "quasi-identifier", "kind": "suppression"}


def people(seed: int, n: int, **more: Any) -> af.Table:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, 3, (n, 3)).astype(str), columns=list("abc"))
    columns: dict[str, Any] = dict.fromkeys("abc", QI)
    for name, (cells, role) in more.items():
        frame[name] = cells
        columns[name] = {"role": role}
    return af.Table(frame, columns)


@given(st.integers(0, 2**32), st.integers(2, 10), st.integers(1, 3))
def test_numbers_are_those_of_every_record(seed: int, n: int, most: int) -> None:
    rng = np.random.default_rng(seed + 1)
    owner = rng.integers(0, 4, n)
    home = owner // 2
    table = people(
        seed, n, person=([f"p{a}" for a in owner], "unit"), home=([f"h{a}" for a in home], "household")
    )
    rows = table.frame[list("abc")].to_numpy().tolist()
    risk = risk_before(table, most)
    sizes = [rows.count(row) for row in rows]
    assert risk.sizes.tolist() == sizes
    assert risk.unique == sizes.count(1)
    assert risk.above(0.5) == sizes.count(1)
    assert math.isclose(risk.average, sum(1 / size for size in sizes) / n)
    minimal = [naive.minimal_uniques(rows, i, most) for i in range(n)]
    assert risk.special == sum(bool(sets) for sets in minimal)
    for s, count in risk.unique_by_size():
        assert count == sum(any(len(each) <= s for each in sets) for sets in minimal)
    for owners, labels in ((risk.people, owner), (risk.households, home)):
        assert owners is not None
        whose = {a: [size for size, b in zip(sizes, labels, strict=True) if a == b] for a in set(labels)}
        classes = {
            a: Counter(tuple(row) for row, b in zip(rows, labels, strict=True) if a == b) for a in whose
        }
        risks = [
            1 - math.prod(1 - times / rows.count(list(row)) for row, times in of_owner.items())
            for of_owner in classes.values()
        ]
        assert owners.number == len(whose)
        assert owners.most_rows == max(map(len, whose.values()))
        assert owners.alone == sum(1 in own for own in whose.values())
        assert math.isclose(owners.average, sum(risks) / len(risks))
        assert math.isclose(owners.highest, max(risks))
    every = smallest_sets(table, risk.sets, range(n))
    for sets, least in zip(minimal, every, strict=True):
        size = min(map(len, sets), default=0)
        assert [tuple("abc".index(a) for a in each) for each in least] == sorted(
            each for each in sets if len(each) == size
        )


def test_the_population_is_that_of_the_fraction_or_the_weight() -> None:
    plain = people(1, 40)
    assert risk_before(plain).population is None
    result = risk_before(plain, 2, 0.1).population
    assert result is not None
    assert result.people == 400
    assert result.sentences() == population_risk(plain, fraction=0.1).sentences()
    weighted = people(1, 40, stands_for=([5.0] * 40, "weight"))
    assert risk_before(weighted).population is not None
    with pytest.raises(ParameterError, match="leave the sampling fraction out"):
        risk_before(weighted, 2, 0.1)
    with pytest.raises(ParameterError, match="fraction"):
        risk_before(plain, 2, 1.5)


def test_nobody_is_unique() -> None:
    table = af.Table(pd.DataFrame({"a": ["x"] * 4, "b": ["y"] * 4}), {"a": QI, "b": QI})
    risk = risk_before(table)
    assert (risk.unique, risk.special, risk.records) == (0, 0, 4)
    assert smallest_sets(table, risk.sets, [0]) == [[]]
    assert risk.people is None
