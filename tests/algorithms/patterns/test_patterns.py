"""Patterns as predicates, weights and grids: against their definitions and the paper's two scenarios."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import anonflow as af
from anonflow.algorithms.patterns.language import mask_costs, pattern_grid, whole_costs
from anonflow.errors import ParameterError
from anonflow.table import Table
from tests.cases.patterns import ADULT_2, SCENARIO, pattern_masks
from tests.strategies import loop


def table(columns: tuple[str, ...] | list[str], n: int = 2) -> Table:
    return Table(
        pd.DataFrame({name: ["x"] * n for name in columns}),
        {name: {"role": "quasi-identifier", "kind": "categorical"} for name in columns},
    )


def hidden(masks: np.ndarray, columns: tuple[str, ...] | list[str]) -> list[frozenset[str]]:
    return [frozenset(name for a, name in enumerate(columns) if int(mask) >> a & 1) for mask in masks]


def meets(pattern: frozenset[str], settings: dict[str, Any], columns: list[str]) -> bool:
    """The meaning of the predicates, one pattern at a time."""
    if settings.get("fallback") == "all" and len(pattern) == len(columns):
        return True
    return (
        len(pattern) <= settings.get("at-most", len(columns))
        and not pattern & set(settings.get("never", []))
        and all(pattern >= set(group) or not pattern & set(group) for group in settings.get("together", []))
        and all(len(pattern & set(group)) <= 1 for group in settings.get("at-most-one-of", []))
    )


@st.composite
def predicates(draw: st.DrawFn) -> tuple[list[str], dict[str, Any]]:
    columns = [f"c{a}" for a in range(draw(st.integers(2, 6)))]
    some = st.lists(st.sampled_from(columns), min_size=2, max_size=3, unique=True)
    settings: dict[str, Any] = {"fallback": draw(st.sampled_from(["all", "none"]))}
    if draw(st.booleans()):
        settings["at-most"] = draw(st.integers(0, 6))
    if draw(st.booleans()):
        settings["never"] = draw(st.lists(st.sampled_from(columns), max_size=2, unique=True))
    settings["together"] = draw(st.lists(some, max_size=2))
    settings["at-most-one-of"] = draw(st.lists(some, max_size=2))
    return columns, settings


@given(predicates())
def test_predicates_mean_what_they_say(case: tuple[list[str], dict[str, Any]]) -> None:
    columns, text = case
    try:
        masks = pattern_masks(table(columns).domains, text)
    except ParameterError as error:
        assert "contradictory" in str(error)  # noqa: PT017
        # what it refuses: some columns are said to go together, and no pattern but the fallback hides them
        plain = {**text, "fallback": "none"}
        marks = list(product([False, True], repeat=len(columns)))
        patterns = [frozenset(c for c, m in zip(columns, row, strict=True) if m) for row in marks]
        reached = frozenset().union(*(p for p in patterns if meets(p, plain, columns)))
        assert any(not set(group) <= reached for group in text["together"])
        return
    result = hidden(masks, columns)
    assert len(set(result)) == len(result)
    for row in product([False, True], repeat=len(columns)):
        pattern = frozenset(c for c, mark in zip(columns, row, strict=True) if mark)
        assert (pattern in result) == meets(pattern, text, columns)
    assert [len(pattern) for pattern in result] == sorted(len(pattern) for pattern in result)


def test_the_papers_scenarios() -> None:
    """CMC: 57 patterns of at most two and all; Adult-2: 15 by four constraints and all."""
    ten = [f"c{a}" for a in range(10)]
    assert len(pattern_masks(table(ten).domains, {"at-most": 2, "fallback": "all"})) == 57
    masks = pattern_masks(table(ADULT_2).domains, SCENARIO)
    assert len(masks) == 15
    result = hidden(masks, ADULT_2)
    assert result[0] == frozenset()
    assert result[-1] == frozenset(ADULT_2)
    assert frozenset({"workclass", "occupation"}) in result
    assert frozenset({"age", "marital"}) in result
    assert frozenset({"age", "sex"}) not in result


def test_predicates_stand_for_their_patterns_in_binary_order_with_the_first_column_as_lowest_bit() -> None:
    four = ["a", "b", "c", "d"]
    at_most_two = [frozenset(text) for text in ("", "a", "b", "c", "d", "ab", "ac", "bc", "ad", "bd", "cd")]
    assert hidden(pattern_masks(table(four).domains, {"at-most": 2}), four) == at_most_two
    in_binary = sorted(range(16), key=lambda number: (number.bit_count(), number))  # lowest bit: a
    assert at_most_two == hidden(np.array(in_binary[:11], np.uint64), four)
    as_combinations = [frozenset(pair) for pair in combinations(four, 2)]
    assert at_most_two[5:] != as_combinations
    three = ["a", "b", "c"]
    named = [frozenset(name) for name in ("", "a", "b", "c", "ab", "ac", "bc")]
    assert hidden(pattern_masks(table(three).domains, {"at-most": 2}), three) == named
    everything = pattern_masks(table(three).domains, {"at-most": 2, "fallback": "all"})
    assert hidden(everything, three) == [*named, frozenset(three)]
    assert (pattern_masks(table(three).domains, {"at-most": 2}, fallback="all") == everything).all()
    assert hidden(pattern_masks(table(three).domains, "all"), three)[1:4] == [frozenset(x) for x in "cba"]
    beside = pattern_masks(table(three).domains, [["c"], {"at-most": 1, "never": "a"}, ["a"]])
    assert hidden(beside, three) == [frozenset(x) for x in ("", "c", "b", "a")]
    # columns that go together count as many; by weight, then by the order
    weighted = pattern_masks(table(three).domains, {"together": ["a", "b"], "at-most": 2}, {"c": 2})
    assert hidden(weighted, three) == [frozenset(x) for x in ("", "ab", "c")]


def test_predicates_beside_patterns_in_a_list() -> None:
    masks = pattern_masks(table(["a", "b", "c"]).domains, [{"at-most": 1}, ["a", "b"], "011", {"never": "a"}])
    assert {"".join(sorted(p)) for p in hidden(masks, ["a", "b", "c"])} == {"", "a", "b", "c", "ab", "bc"}


def test_many_columns_with_few_patterns() -> None:
    columns = [f"c{a}" for a in range(40)]
    assert len(pattern_masks(table(columns).domains, {"at_most": 2})) == 1 + 40 + 780
    with pytest.raises(ParameterError, match="lower at-most"):
        pattern_masks(table(columns).domains, {"at-most": 6})


@given(st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.6, 1, 2, 2.5]), min_size=1, max_size=6))
def test_weights_order_patterns_and_equal_costs_are_equal(weights: list[float]) -> None:
    columns = [f"c{a}" for a in range(len(weights))]
    domains = table(columns).domains
    given_weights = dict(zip(columns, weights, strict=True))
    masks = pattern_masks(domains, "all", given_weights)
    tenths = [round(10 * weight) for weight in weights]
    sums = [sum(t for a, t in enumerate(tenths) if int(mask) >> a & 1) for mask in masks]
    numbers = [
        int("".join("1" if int(mask) >> a & 1 else "0" for a in range(len(weights))), 2) for mask in masks
    ]
    assert sorted(zip(sums, numbers, strict=True)) == list(zip(sums, numbers, strict=True))
    whole, unit = whole_costs(domains, given_weights)
    assert (whole / unit).tolist() == [tenth / 10 for tenth in tenths]
    assert (mask_costs(masks, whole) / unit).tolist() == [total / 10 for total in sums]


def test_weights_decide_what_is_hidden() -> None:
    frame = pd.DataFrame({"a": ["x", "y"], "b": ["u", "v"], "c": ["w", "w"]})
    schema = {name: {"role": "quasi-identifier", "kind": "categorical"} for name in frame}
    both = {"patterns": [["a", "b"], ["a", "b", "c"]], "k": 2}
    assert af.anonymize(Table(frame, schema), "pattern-guided", **both).facts == {
        "suppressed_entries": 4,
        "rows_without_pattern": 0,
    }
    anon = af.anonymize(Table(frame, schema), "pattern-guided", **both, weights={"a": 2.5})
    assert anon.facts == {"suppressed_entries": 4, "rows_without_pattern": 0, "cost": 7.0}
    # either a or b has to go: the one that is named first does, unless it is the dearer one
    two = pd.DataFrame({"a": ["x", "x", "y"], "b": ["u", "v", "u"], "c": ["w"] * 3})
    either = {"k": 2, "patterns": [["a"], ["b"]]}
    assert af.anonymize(Table(two, schema), "pattern-guided", **either).suppressed.tolist() == [0, 1, 0]
    dear = af.anonymize(Table(two, schema), "pattern-guided", **either, weights={"a": 2})
    assert dear.suppressed.tolist() == [0, 0, 1]


def test_a_grid_shows_patterns_back() -> None:
    grid = pattern_grid(table(ADULT_2), SCENARIO, {"age": 3})
    assert grid.shape == (15, len(ADULT_2) + 2)
    assert list(grid.columns) == [*ADULT_2, "suppressed", "cost"]
    assert grid.iloc[0].tolist() == ["-"] * 9 + [0, 0.0]
    assert grid.iloc[-1].tolist() == ["*"] * 9 + [9, 11.0]
    assert grid["cost"].is_monotonic_increasing
    assert (grid[["education", "salary"]].iloc[:-1] == "-").all(axis=None)
    # what is shown can be given
    rows = ["".join(row) for row in grid[list(ADULT_2)].to_numpy()]
    for marks in ("-*", "01", "□☆"):
        patterns = [row.translate(str.maketrans("-*", marks)) for row in rows]
        again = pattern_masks(table(ADULT_2).domains, patterns, {"age": 3})
        assert again.tolist() == pattern_masks(table(ADULT_2).domains, SCENARIO, {"age": 3}).tolist()


def test_a_grid_keeps_quasi_identifiers_that_are_named_as_its_own_columns() -> None:
    names = ("cost", "suppressed", "pattern-cost")
    role = {"role": "quasi-identifier", "kind": "suppression"}
    people = Table(pd.DataFrame({name: ["x", "y"] for name in names}), dict.fromkeys(names, role))
    grid = pattern_grid(people, ["*--", "-**"], {"suppressed": 2})
    assert list(grid.columns) == [*names, "pattern-suppressed", "pattern-pattern-cost"]
    assert grid.to_numpy().tolist() == [["*", "-", "-", 1, 1.0], ["-", "*", "*", 2, 3.0]]


def test_positions_of_a_code_are_patterns_of_their_own() -> None:
    frame = pd.DataFrame({"zip": ["123", "123"], "a": ["x", "x"]})
    schema = {
        "zip": {"role": "quasi-identifier", "kind": "positions"},
        "a": {"role": "quasi-identifier", "kind": "categorical"},
    }
    domains = Table(frame, schema).domains
    assert len(pattern_masks(domains, {"never": "zip"})) == 2
    assert len(pattern_masks(domains, {"never": "zip[0]"})) == 8
    assert len(pattern_masks(domains, {"together": ["zip", "a"]})) == 2
    # any part of the code beside a would be two
    assert len(pattern_masks(domains, {"at-most-one-of": ["zip", "a"]})) == 9


@loop(
    ("patterns", "words"),
    [
        ({"never": ["a"], "together": ["a", "b"]}, "contradictory.*'a' and 'b'.*'a' is never"),
        ({"at-most-one-of": ["a", "b"], "together": ["b", "a"]}, "contradictory.*at most one of 'a' and 'b'"),
        ({"at-most": 1, "together": ["a", "b"]}, "contradictory.*at most 1"),
        ({"at-most": 2, "together": [["a", "b"], ["b", "c"]]}, "contradictory.*they are 3"),
        ({"never": "c", "together": [["a", "b"], ["b", "c"]]}, "contradictory.*'a' and 'b'.*'c' is never"),
        ({"never": ["aa"]}, "no quasi-identifier 'aa'.*did you mean"),
        ({"never": ["a", "a"]}, "names column 'a' twice"),
        ({"never": [1]}, "list of columns"),
        ({"together": ["a"]}, "at least 2 columns"),
        ({"together": "a"}, "list of columns"),
        ({"at-most-one-of": ["a", "nothing"]}, "no quasi-identifier 'nothing'"),
        ({"at-most": True}, "at-most is a number"),
        ({"at-most": -1}, "at-most is a number"),
        ({"at-most": "2"}, "at-most is a number"),
        ({"at-least": 2}, "no predicate 'at-least'.*did you mean 'at-most'"),
        ({"fallback": "some"}, "'all'.*or 'none'"),
        ([{}], "none are given"),
        ({}, "'all' or a list"),
        (3, "'all' or a list"),
    ],
)
def test_predicates_that_cannot_be_used_are_refused(patterns: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words) as caught:
        af.anonymize(table(["a", "b", "c"]), "pattern-guided", k=2, patterns=patterns)
    assert "\n" not in str(caught.value)


@loop(
    ("weights", "words"),
    [
        ({"z": 1}, "no quasi-identifier 'z'"),
        ({"a": 0}, "above 0"),
        ({"a": -2}, "above 0"),
        ({"a": float("nan")}, "above 0"),
        ({"a": float("inf")}, "above 0"),
        ({"a": "2"}, "above 0"),
        ({"a": True}, "above 0"),
        ({"a": 1 / 3, "b": 999999.1234567}, "digits"),
        ([1, 2], "mapping"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(weights: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        af.anonymize(table(["a", "b", "c"]), "pattern-guided", k=2, weights=weights)


@given(st.integers(2, 5), st.integers(2, 5), st.data())
def test_predicates_and_the_list_of_their_patterns_publish_the_same(
    rows: int, k: int, data: st.DataObject
) -> None:
    assume(rows >= k)
    columns = ["a", "b", "c"]
    cells = data.draw(
        st.lists(st.lists(st.sampled_from("xyz"), min_size=3, max_size=3), min_size=rows, max_size=rows)
    )
    result = Table(
        pd.DataFrame(cells, columns=columns),
        {name: {"role": "quasi-identifier", "kind": "categorical"} for name in columns},
    )
    texts = {"at-most": 1, "never": ["b"], "fallback": "all"}
    item = af.anonymize(result, "pattern-guided", k=k, patterns=texts)
    other = af.anonymize(result, "pattern-guided", k=k, patterns=[[], ["a"], ["c"], columns])
    assert item.frame().equals(other.frame())
    for anon in (item, other):
        assert af.verify(result, anon, ["covers", "k-anonymity", "pattern"], k=k)


def test_the_verifier_reads_predicates_on_its_own() -> None:
    frame = pd.DataFrame({"a": ["x", "x", "y"], "b": ["u", "v", "u"], "c": ["w", "w", "z"]})
    result = Table(frame, {name: {"role": "quasi-identifier", "kind": "categorical"} for name in frame})
    shown = frame.assign(b="*")
    shown.loc[2, ["a", "c"]] = "*"

    def failed(patterns: Any) -> int:
        return af.verify(result, shown, [{"pattern": {"patterns": patterns}}])["pattern"].failed

    # two rows hide b; the third hides all and is a suppressed row, which is always allowed
    assert failed({"at-most": 1}) == 0
    assert failed({"at_most": 0}) == failed({"never": "b"}) == failed({"together": ["a", "b"]}) == 2
    assert failed({"together": ["a", "c"], "at-most-one-of": [["a", "b"], ["b", "c"]]}) == 0
    assert failed([["a"], {"at-most": 0}]) == 2
    assert failed([["b"], {"at-most": 0}]) == failed([{"at-most": 0}, {"never": ["a"]}]) == 0
    # as the method takes them, without a name in between
    assert af.verify(result, shown, {"pattern": {"at-most": 0}})["pattern"].failed == 2
    for odd in ({"at-most": "x"}, {"never": 5}, {"together": [1]}, {"at-most-one-of": 5}):
        with pytest.raises(ParameterError, match=r"of another form|no quasi-identifier"):
            failed(odd)
    with pytest.raises(ParameterError, match="'d'"):
        failed({"never": ["d"]})
    with pytest.raises(ParameterError, match="'at-least'"):
        failed({"at-least": 1})
