"""How other tools write cells: read by the definition of each notation, guessed where nothing is said, and said."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonflow.errors import DataError, SchemaError
from anonflow.generalization import Generalization
from anonflow.table import Schema, Table
from anonflow.table.published.notation import Notation, read_interval, readers_of
from anonflow.table.published.published_cells import Range
from tests.strategies import loop

QI = {"role": "quasi-identifier"}


@loop(
    ("text", "inside", "outside"),
    [
        ("27", [27], [26, 28]),
        ("20-29", [20, 29], [19, 30]),
        ("20 - 29", [20, 29], [19, 30]),
        ("20..29", [20, 29], [19, 30]),
        ("-5--2", [-5, -2], [-6, -1]),
        ("[27, 47[", [27, 46.9], [26, 47]),
        ("[27, 47)", [27, 46.9], [26, 47]),
        ("]27, 47]", [27.1, 47], [27, 48]),
        ("(27; 47]", [27.1, 47], [27, 48]),
        ("[27, 47]", [27, 47], [26, 48]),
        ("]27,47[", [27.1, 46.9], [27, 47]),
        (">=90", [90, 1e9], [89]),
        ("≥ 90", [90], [89]),
        (">90", [91], [90]),
        ("<20", [-1e9, 19], [20]),
        ("<= 20", [20], [21]),
        ("90+", [90, 500], [89]),
        ("[-inf, 20[", [-1e9, 19], [20]),
        ("[90, ∞)", [90, 1e12], [89]),
        ("[90,[", [90, 1e12], [89]),
    ],
)  # fmt: skip
def test_intervals_as_they_are_defined(text: str, inside: list[float], outside: list[float]) -> None:
    interval = read_interval(text)
    assert interval is not None
    for numbers, there in ((inside, True), (outside, False)):
        for number in numbers:
            first, last = interval.run(np.array([float(number)]))
            assert (first <= last) == there, (text, number)


@loop("text", ["", "x", "5-2", "[5, 2]", "[5, 5[", "20-", "1-2-3", "[2", "2020-02-30", "*", "[" + " " * 500])
def test_what_is_no_interval(text: str) -> None:
    assert read_interval(text) is None


@given(st.integers(-9, 9), st.integers(0, 5), st.sampled_from(["closed", "right-open", "left-open", "open"]))
def test_ranges_without_brackets_have_the_ends_that_the_schema_says(
    low: int, width: int, ranges: str
) -> None:
    interval = read_interval(f"{low}-{low + width}", ranges)
    points = np.arange(-20, 21).astype(float)
    want = [
        p for p in points
        if (p > low or (p == low and ranges in ("closed", "right-open")))
        and (p < low + width or (p == low + width and ranges in ("closed", "left-open")))
    ]  # fmt: skip
    if width == 0 and ranges != "closed":
        assert interval is None
        return
    assert interval is not None
    first, last = interval.run(points)
    assert points[first : last + 1].tolist() == want


def test_dates_are_ends_too() -> None:
    interval = read_interval("[2020-01-01, 2020-02-01[")
    assert interval is not None
    assert (interval.low, interval.high) == (18262.0, 18293.0)
    assert math.isinf(read_interval(">2020-01-01").high)  # type: ignore[union-attr]
    assert read_interval("[2020-01-01t10:00, 2020-02-01]") == read_interval("[2020-01-01T10:00, 2020-02-01]")


TREE = {"nested": {"*": {"North": ["a", "b"], "South": ["c"]}}}


def people() -> Table:
    frame = pd.DataFrame(
        {
            "age": [20, 29, 30, 47, 90, 95],
            "job": ["p", "q", "r", "p", "q", "r"],
            "town": ["a", "b", "c", "a", "b", "c"],
            "zip": ["101", "102", "201", "202", "103", "203"],
        }
    )
    schema = {
        "age": {**QI, "kind": "numeric"},
        "job": {**QI, "kind": "categorical"},
        "town": {**QI, "kind": "hierarchy", "hierarchy": TREE},
        "zip": {**QI, "kind": "positions"},
    }
    return Table(frame, schema)


def test_a_table_in_other_notations_is_read_and_said() -> None:
    table = people()
    frame = pd.DataFrame(
        {
            "age": ["[20, 30[", "[20, 30[", "[30, 90[", "[30, 90[", ">=90", ""],
            "job": ["{p, q}", "{p, q}", "r", "*", "q", "NA"],
            "town": ["North", "North", "*", "North", "b", "(null)"],
            "zip": ["10*", "10*", "2**", "2**", "***", "NULL"],
        }
    )
    readers = readers_of(table.domains, {})
    parsed = Generalization.parse(frame, table.domains, readers=readers)
    assert parsed.covers(Generalization.of(table.records)).all()
    assert (parsed.lo[0].tolist(), parsed.hi[0].tolist()) == ([0, 0, 2, 2, 4, 0], [1, 1, 3, 3, 5, 5])
    text = " ".join(remark for reader in readers for remark in reader.remarks())
    assert "column 'age': read 4 intervals in brackets, 1 one-sided range, 1 cell that is blank" in text
    assert "column 'job': read 2 lists of values, 1 cell that is" in text
    with pytest.raises(DataError, match="say that another tool made it"):
        Generalization.parse(frame, table.domains, canonical=True)


def test_the_published_notation_is_one_of_the_usual_ones() -> None:
    for ends in (Range("20", "29", False), Range("2020-01-01", "2020-03-31", True)):
        interval = read_interval(ends.text)
        assert interval is not None
        assert (interval.low, interval.high) == ends.points


def test_ranges_that_share_ends_are_remarked_on() -> None:
    table = people()
    frame = table.frame.assign(age=["20-30", "20-30", "30-47", "47-90", "90-95", "90-95"])
    readers = readers_of(table.domains, {})
    parsed = Generalization.parse(frame, table.domains, readers=readers)
    assert parsed.hi[0].tolist() == [2, 2, 3, 4, 5, 5]
    assert any("say notation: right-open" in remark for remark in readers[0].remarks())
    readers = readers_of(table.domains, {"age": Notation("right-open")})
    parsed = Generalization.parse(frame, table.domains, readers=readers)
    assert parsed.hi[0].tolist() == [1, 1, 2, 3, 4, 4]
    assert not readers[0].remarks()


@loop(
    ("column", "cells"),
    [("age", ["{20, 30}"] * 6), ("age", ["old"] * 6), ("job", ["{p, x}"] * 6), ("zip", ["10"] * 6), ("town", ["East"] * 6)],
)  # fmt: skip
def test_what_cannot_be_read_is_counted(column: str, cells: list[str]) -> None:
    table = people()
    frame = table.frame.assign(**{column: cells})
    with pytest.raises(DataError, match=f"column '{column}': 6 cells"):
        Generalization.parse(frame, table.domains, readers=readers_of(table.domains, {}))


def test_numbers_side_by_side_are_a_run() -> None:
    table = people()
    frame = table.frame.assign(age=["{20, 29}", "{29, 20}", "{30}", "47", "{90,95}", "95"])
    parsed = Generalization.parse(frame, table.domains, readers=readers_of(table.domains, {}))
    assert parsed.hi[0].tolist() == [1, 1, 2, 3, 5, 5]


@loop("declared", ["closed", {"ranges": "open", "hidden": ["-"]}, {"hidden": ["?"]}])
def test_a_schema_says_the_notation_and_reads_back(declared: object) -> None:
    schema = Schema({"age": {**QI, "kind": "numeric", "notation": declared}})
    assert schema.to_mapping()["age"]["notation"] == declared
    assert Schema(schema.to_mapping())["age"].notation == schema["age"].notation


@loop("declared", ["half-open", {}, {"ranges": "x"}, {"hidden": "NA"}, {"hidden": [1]}, 3, {"end": "closed"}])
def test_a_wrong_notation_is_one_sentence(declared: object) -> None:
    with pytest.raises(SchemaError, match="column 'age': a notation is one of closed, right-open"):
        Schema({"age": {**QI, "kind": "numeric", "notation": declared}})
