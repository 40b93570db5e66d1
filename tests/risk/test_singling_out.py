"""Conditions that describe exactly one person: against loops, and what must hold of them whatever the release."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.generalization import Generalization
from anonflow.risk.singling_out import (
    Points,
    fits_rows,
    one_end,
    plausible_points,
    unique_conditions,
)
from anonflow.risk.three_questions import three_questions
from tests.naive import three_questions as naive
from tests.strategies import loop

SEED = 2**127


def sides(n: int, hierarchies: bool = False) -> tuple[af.Table, af.Table]:
    """People to release, and as many controls."""
    columns = af.datasets.schema("census_like", hierarchies=hierarchies)
    table = af.Table(af.datasets.census_like(2 * n, 1), columns)
    return table.take(np.arange(n)), table.take(np.arange(n, 2 * n))


def released(table: af.Table, method: str, k: int) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return af.anonymize(table, method, k=k, seed=SEED).release(seed=SEED).frame


@pytest.mark.parametrize("method", ["mondrian", "greedy"])
def test_somebody_has_every_end(method: str) -> None:
    people, _ = sides(120)
    rows = Generalization.parse(released(people, method, 5), people.domains)
    ends = one_end(rows, np.random.default_rng(1))
    assert rows.covers(ends).all()
    assert ((rows.lo != ends.lo) | (rows.hi != ends.hi)).any(axis=0).sum() > 60
    # one cell of each row at most
    changed = (rows.counts() != ends.counts()).sum(axis=0) + (
        (rows.lo != ends.lo) | (rows.hi != ends.hi)
    ).sum(axis=0)
    assert changed.max() == 1
    own = Generalization.of(people.records)
    for j in range(rows.n):
        row = ends.take(np.full(people.n, j))
        assert any(row.covers(own))
    # mondrian's cells are of exactly its class; a greedy row's end may be had by another of its box
    assert (fits_rows(ends, people).sum(axis=1) >= 1).all()


def test_nodes_of_a_hierarchy_stay() -> None:
    frame = pd.DataFrame({"zip": [f"{at:03d}" for at in range(40)], "ill": ["a", "b"] * 20})
    table = af.Table(
        frame, {"zip": {"role": "quasi-identifier", "kind": "positions"}, "ill": {"role": "sensitive"}}
    )
    rows = Generalization.parse(released(table, "greedy", 4), table.domains)
    ends = one_end(rows, np.random.default_rng(1))
    assert (ends.lo == rows.lo).all()
    assert (ends.hi == rows.hi).all()


def test_plausible_values_lie_in_their_cells() -> None:
    score = [*range(30, 50), *"NRNRNRNRNR"]
    frame = pd.DataFrame(
        {"score": score, "city": list("abcde") * 6, "ill": list("uv") * 15, "pay": range(30)}
    )
    schema = {
        "score": {"role": "quasi-identifier", "kind": "numeric", "missing": "value", "codes": ["N", "R"]},
        "city": {"role": "quasi-identifier", "kind": "categorical"},
        "ill": {"role": "sensitive"},
        "pay": {"role": "insensitive"},
    }
    table = af.Table(frame, schema)
    published = released(table, "greedy", 4)
    rows = Generalization.parse(published, table.domains)
    rng = np.random.default_rng(1)
    drawn, people = plausible_points(rows, published, [table], ["ill", "pay"], rng)
    assert drawn.ordered.tolist() == [True, False, False, False, True]
    codes = np.where(np.isnan(drawn.values[:, :3]), -1, drawn.values[:, :3]).astype(np.int32)
    plausible = Generalization.of(type(table.records)(table.domains, codes))
    assert rows.covers(plausible).all()
    assert np.isnan(drawn.values[:, 0]).any()
    assert drawn.values[:, 4].tolist() == published["pay"].tolist()
    assert people.values[:, 4].tolist() == frame["pay"].tolist()
    # the labels of a text column are the same in all of them
    first = dict(zip(published["ill"], drawn.values[:, 3], strict=True))
    assert dict(zip(frame["ill"], people.values[:, 3], strict=True)) == first


@loop("columns", [1, 2, 3])
def test_conditions_are_counted_as_by_loops(columns: int) -> None:
    rng = np.random.default_rng(columns)
    values = rng.integers(0, 20, (40, 3)).astype(float)
    values[rng.random((40, 3)) < 0.1] = np.nan
    points = Points(values, np.array([True, False, True]))
    conditions, mixed = unique_conditions(points, 50, rng, columns)
    assert (conditions.counts(points) == 1).all()
    assert conditions.m == mixed.m
    written = {
        tuple(zip(*each, strict=True))
        for each in zip(
            conditions.columns.tolist(), conditions.low.tolist(), conditions.high.tolist(), strict=True
        )
    }
    assert len(written) == conditions.m > 0
    for some in (conditions, mixed):
        plain = [
            list(zip(*each, strict=True))
            for each in zip(some.columns.tolist(), some.low.tolist(), some.high.tolist(), strict=True)
        ]
        assert some.counts(points).tolist() == naive.fitting(plain, values.tolist())
        # "at least" from the median on, "at most" below it, of what is ordered; else the value
        for condition in plain:
            for at, low, high in condition:
                if not points.ordered[at]:
                    assert low == high or np.isnan([low, high]).all()
                elif np.isfinite(low):
                    assert low >= np.nanmedian(values[:, at])
                    assert high == np.inf
                elif np.isfinite(high):
                    assert high < np.nanmedian(values[:, at])


def test_what_is_not_published_has_no_end() -> None:
    people, _ = sides(60)
    rows = Generalization.parse(released(people, "mondrian", 5), people.domains)
    rows = rows.with_suppressed(np.arange(60) < 10)
    ends = one_end(rows, np.random.default_rng(1))
    assert ends.suppressed_rows().tolist() == (np.arange(60) < 10).tolist()


def test_equal_rows_give_no_condition() -> None:
    points = Points(np.ones((20, 2)), np.array([True, False]))
    conditions, mixed = unique_conditions(points, 10, np.random.default_rng(1))
    assert conditions.m == mixed.m == 0


@pytest.mark.parametrize(("method", "k"), [("mondrian", 20), ("greedy", 5)])
def test_ends_of_tight_ranges_single_out(method: str, k: int) -> None:
    """The goal: more than an outside attacker reaches, whose excess was 0.05 on mondrian with k = 20, where all cells give none."""
    inside, outside = sides(300)
    answer = three_questions(inside, released(inside, method, k), outside, np.random.default_rng(1))[0]
    assert answer.question == "singling out"
    assert answer.interval[0] > 0.1
    assert "narrowed to an end" in answer.how
    assert answer.verdict(0.09) == "failed"


def test_a_release_that_says_nothing_singles_nobody_out() -> None:
    inside, outside = sides(60)
    names = list(inside.qi_columns)
    frame = inside.frame[names].astype(str).assign(**dict.fromkeys(names, "*"))
    answer = three_questions(inside, frame, outside, np.random.default_rng(1))[0]
    assert answer.verdict(0.09) != "failed"
