"""Boundaries, widths and patterns: by hand, and against brute force on random tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonflow.criteria import verify
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.table import Table
from tests.cases.criteria import TREE, anonymization, random_generalization, release_frame
from tests.naive.criteria import cell_covers, has_perfect_matching, leaves_below
from tests.strategies import seeded

QI = {"role": "quasi-identifier"}
BELOW = leaves_below(TREE)
NODES = ("fjord", "north", "south", "c")
"""fjord is below north: its leaves stop there, and the leaf c has a boundary of its own."""


def bounded_table(rng: np.random.Generator, n: int) -> Table:
    frame = pd.DataFrame(
        {
            "age": rng.integers(0, 12, n),
            "place": rng.choice(list("abcdef"), n),
            "s": rng.choice(list("uv"), n),
        }
    )
    schema = {
        "age": {**QI, "kind": "numeric", "boundary": {"width": 6}},
        "place": {
            **QI,
            "kind": "hierarchy",
            "hierarchy": {"nested": {"everything": TREE}},
            "boundary": list(NODES),
        },
        "s": {"role": "sensitive"},
    }
    return Table(frame, schema)


def within(age: int, place: str, row: list[str]) -> bool:
    """Whether a published row goes no further than the boundaries of a person's values."""
    if all(cell == "*" for cell in row):
        return True
    low, _, high = row[0].partition("-")
    if row[0] == "*" or not age // 6 == int(low) // 6 == int(high or low) // 6:
        return False
    own = next(node for node in ("fjord", "c", "north", "south") if place in BELOW[node])
    return row[1] != "*" and set(BELOW.get(row[1], [row[1]])) <= set(BELOW[own])


@seeded(400, 100)
def test_boundaries_by_definition(seeds: range) -> None:
    seen = set()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 7))
        table = bounded_table(rng, n)
        if min(domain.size for domain in table.domains) < 2 or {0, 11} - set(table.frame["age"]):
            continue  # a whole domain within one interval is published as *, too
        if rng.random() < 0.5:
            group = (
                table.frame["age"].to_numpy() // 6 * 10 + table.frame["place"].isin(list("abc")).to_numpy()
            )
            boxes = Generalization.join_by_class(table.records, group)
        else:
            boxes, _ = random_generalization(rng, table, 2)
        stars = boxes.suppressed_rows()
        people = list(zip(table.frame["age"].tolist(), table.frame["place"].tolist(), strict=True))
        rows = boxes.decode(suppressed=stars).to_numpy().tolist()
        own = [within(*person, row) for person, row in zip(people, rows, strict=True)]
        finding = verify(table, anonymization(boxes, 2, suppressed=stars), "boundary")["boundary"]
        assert (finding.holds, finding.failed) == (all(own), own.count(False)), seed
        frame = release_frame(table, boxes, rng)
        shown = frame[["age", "place"]].to_numpy().tolist()
        graph = [
            [
                within(age, place, row)
                and cell_covers(row[0], str(age), "numeric")
                and cell_covers(row[1], place, "hierarchy", BELOW)
                and frame["s"].iloc[j] == table.frame["s"].iloc[i]
                for j, row in enumerate(shown)
            ]
            for i, (age, place) in enumerate(people)
        ]
        release = verify(table, frame, "boundary", k=2)["boundary"].holds
        assert release == has_perfect_matching(graph), seed
        assert release or not all(own)
        seen.add((all(own), release))
    assert {(True, True), (False, False)} <= seen


@seeded(200, 50)
def test_patterns_by_definition(seeds: range) -> None:
    seen = set()
    names = set()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n, q = 6, 3
        frame = pd.DataFrame({f"q{a}": rng.choice(list("xyz"), n) for a in range(q)})
        table = Table(frame, {name: {**QI, "kind": "suppression"} for name in frame})
        if min(domain.size for domain in table.domains) < 2:
            continue
        stars = rng.random((n, q)) < 0.4
        shown = frame.mask(stars, "*")
        patterns = ["".join(rng.choice(list("*-"), q)) for _ in range(4)]
        marks = ["".join("*" if star else "-" for star in row) for row in stars]
        want = [mark in patterns or mark == "***" for mark in marks]
        listed = {"none": "***" in patterns, "all": True, "strict": "***" in patterns}
        wanted = [{"patterns": patterns}, *({"patterns": patterns, "fallback": name} for name in listed)]
        finding, *others = verify(table, shown, [{"pattern": each} for each in wanted], k=2).findings
        assert (finding.holds, finding.failed) == (all(want), want.count(False)), seed
        seen.add(all(want))
        blank = [mark == "***" for mark in marks]
        for finding, (fallback, follow) in zip(others, listed.items(), strict=True):
            followed = follow and sum(blank) >= 2
            want = [
                (followed or fallback != "strict") if hidden else mark in patterns
                for mark, hidden in zip(marks, blank, strict=True)
            ]
            assert (finding.holds, finding.failed) == (all(want), want.count(False)), (seed, fallback)
            counted = 0 if followed else sum(blank)
            words = (
                "1 row is hidden whole and follows"
                if counted == 1
                else f"{counted} rows are hidden whole and follow"
            )
            assert (f"{words} no pattern" in finding.detail) == (counted > 0)
            names.add((fallback, all(want), counted > 0))
    assert seen == {True, False}
    assert names >= {
        ("none", True, True),
        ("all", True, True),
        ("strict", False, True),
        ("strict", False, False),
    }


def test_the_fallback_of_a_pattern_is_read() -> None:
    frame = pd.DataFrame({"a": list("xxy"), "b": list("uuv")})
    table = Table(frame, {name: {**QI, "kind": "suppression"} for name in frame})
    shown = frame.copy()
    shown.loc[2] = "*"
    for patterns in (
        {"at-most": 0, "fallback": "strict"},
        {"patterns": "all", "fallback": "strict"},
        {"patterns": [[], ["a", "b"]], "fallback": "strict"},
        {"patterns": [{"at-most": 0, "fallback": "strict"}]},
    ):
        assert verify(table, shown, {"pattern": patterns}, k=2)["pattern"].positions == (2,)
    assert verify(table, shown, {"pattern": {"patterns": [[]]}})["pattern"].holds
    shown.loc[1] = "*"
    strict = {"patterns": [[], ["a", "b"]], "fallback": "strict"}
    assert verify(table, shown, {"pattern": strict}, k=2)["pattern"].holds
    assert not verify(table, shown, {"pattern": strict}, k=3)["pattern"].holds
    with pytest.raises(ParameterError, match="fallback must be one of none, all, strict"):
        verify(table, shown, {"pattern": {"patterns": [[]], "fallback": "some"}})
    with pytest.raises(ParameterError, match="fallback is 'strict'"):
        verify(table, shown, {"pattern": {"at-most": 1, "fallback": "some"}})
    with pytest.raises(ParameterError, match="needs k"):
        verify(table, shown, {"pattern": {"patterns": [[]], "fallback": "strict"}})


def test_a_pattern_has_no_half_generalized_cells() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "b": list("pqrs")})
    table = Table(frame, {"a": {**QI, "kind": "numeric"}, "b": {**QI, "kind": "categorical"}})
    shown = pd.DataFrame({"a": ["1-2", "2", "*", "*"], "b": ["p", "{p|q}", "r", "*"]})
    assert verify(table, shown, "pattern", k=2)["pattern"].positions == (0, 1)


def test_widths_and_set_sizes_are_limits_of_the_rows() -> None:
    frame = pd.DataFrame({"age": [20, 24, 29, 40, 41], "work": list("aabcc")})
    schema = {
        "age": {**QI, "kind": "numeric", "max-width": 5},
        "work": {**QI, "kind": "categorical", "max-set": 1},
    }
    table = Table(frame, schema)
    boxes = Generalization.join_by_class(table.records, np.array([0, 0, 1, 1, 1]))
    for subject in (anonymization(boxes, 2), boxes.decode()):
        finding = verify(table, subject, "boundary", k=2)["boundary"]
        assert (finding.failed, finding.positions) == (3, (2, 3, 4))
        assert "age 3" in finding.detail
        assert "work 3" in finding.detail
    mask = np.array([False, False, True, True, True])
    stars = boxes.with_suppressed(mask)
    assert verify(table, anonymization(stars, 2, suppressed=mask), "boundary")


def test_intervals_bound_numbers() -> None:
    frame = pd.DataFrame({"age": [20, 24, 29, 30, 39]})
    table = Table(frame, {"age": {**QI, "kind": "numeric", "boundary": {"width": 10}}})
    inside = Generalization.join_by_class(table.records, np.array([0, 0, 0, 1, 1]))
    beyond = Generalization.join_by_class(table.records, np.array([0, 0, 1, 1, 1]))
    assert verify(table, anonymization(inside, 2), "boundary")
    assert verify(table, inside.decode(), "boundary", k=2)
    assert verify(table, anonymization(beyond, 2), "boundary")["boundary"].positions == (2, 3, 4)
    finding = verify(table, beyond.decode(), "boundary", k=2)["boundary"]
    assert finding.positions == (2, 3, 4)
    classes = np.array([[0, 1, 2]] * 3 + [[3, 4, -1]] * 2)
    assert verify(table, inside.decode(), "boundary", k=2, certificate=classes)
    wrong = np.array([[0, 1, -1]] * 2 + [[2, 3, 4]] * 3)
    finding = verify(table, beyond.decode(), "boundary", k=2, certificate=wrong)["boundary"]
    assert finding.positions == (2, 3, 4)


def test_no_boundary_says_so() -> None:
    table = Table(pd.DataFrame({"a": [1, 2]}), {"a": {**QI, "kind": "numeric"}})
    own = anonymization(Generalization.of(table.records), 2)
    assert "no boundary" in verify(table, own, "boundary")["boundary"].detail


def test_missing_numbers_are_covered_by_stars_only() -> None:
    frame = pd.DataFrame({"age": [20.0, 30.0, np.nan, 40.0]})
    table = Table(frame, {"age": {**QI, "kind": "numeric", "missing": "suppress"}})
    rows = pd.DataFrame({"age": ["20-30", "20-30", "*", "40"]})
    assert verify(table, rows, "covers", k=2)
    assert not verify(table, rows.assign(age=["20-30", "20-30", "20-30", "*"]), "covers", k=2)
    assert verify(table, rows.assign(age=["20-30", "20-30", "*", "*"]), ["covers", "k-regular"], k=2)


def test_a_row_that_shows_a_columns_one_value_is_not_suppressed() -> None:
    """It covers as much as a suppressed row beside it, yet may not go beyond a boundary."""
    frame = pd.DataFrame({"age": [1, 2, 30, 31, 32], "sex": ["f"] * 5})
    schema: dict[str, Any] = {
        "age": {"role": "quasi-identifier", "kind": "numeric", "boundary": {"width": 10}},
        "sex": {"role": "quasi-identifier", "kind": "categorical"},
    }
    table = Table(frame, schema)
    shown = pd.DataFrame({"age": ["1-2", "1-2", "*", "*", "*"], "sex": ["f", "f", "*", "*", "*"]})
    assert verify(table, shown, "boundary", k=2)
    shown.loc[4, "sex"] = "f"
    assert not verify(table, shown, "boundary", k=2)
