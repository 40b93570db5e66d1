"""Patterns that say at which level each column is published: against their definition, every solution there is, full-domain."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.algorithms.patterns.language import pattern_grid, pattern_set
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.table.level_cells import cells_at
from tests.strategies import examples, loop

TOWNS = {"north": {"a": ["a1", "a2"], "b": ["b1"]}, "south": ["c", "d"]}
"""c and d are their own nodes of height 0: the branch is shorter."""
ABOVE = {
    "level 1": {"a1": "a", "a2": "a", "b1": "b", "c": "south", "d": "south"},
    "level 2": {"a1": "north", "a2": "north", "b1": "north", "c": "south", "d": "south"},
}
QI = {"role": "quasi-identifier"}
COLUMNS = {
    "town": {**QI, "kind": "hierarchy", "hierarchy": {"nested": {"*": TOWNS}}},
    "age": {**QI, "kind": "numeric"},
    "sex": {**QI, "kind": "suppression"},
}
PATTERNS = [
    ("values", "values", "values"),
    ("values", "values", "*"),
    ("level 1", "values", "values"),
    ("level 1", "width 10", "values"),
    ("level 2", "width 10", "values"),
    ("level 2", "width 20", "*"),
    ("*", "width 20", "values"),
    ("values", "*", "values"),
    ("level 2", "*", "*"),
]
SHARES = {"values": 0, "*": 1, "level 1": Fraction(1, 3), "level 2": Fraction(2, 3)}
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a1", "a2", "b1", "c", "d"]),
        st.sampled_from([20, 25, 31, 38, 47]),
        st.sampled_from("fm"),
    ),
    min_size=3,
    max_size=6,
)


def people(rows: list[tuple[str, int, str]]) -> af.Table:
    return af.Table(pd.DataFrame(rows, columns=["town", "age", "sex"]), COLUMNS)


def written(pattern: tuple[str, ...]) -> dict[str, Any]:
    """A pattern as it stands in a flow; a column that is published as it is need not be named."""
    return {"levels": {c: level for c, level in zip(COLUMNS, pattern, strict=True) if level != "values"}}


def listed(patterns: list[tuple[str, ...]]) -> list[Any]:
    return [written(p) if set(p) != {"values"} else [] for p in patterns]


def shown(row: tuple[str, int, str], pattern: tuple[str, ...]) -> tuple[Any, ...]:
    """What a row agrees on with its class: the node, the number of the interval, the value, or nothing."""
    cells: list[Any] = []
    for value, level in zip(row, pattern, strict=True):
        if level == "*":
            cells.append(None)
        elif level.startswith("width"):
            cells.append(int(value) // int(level.split()[1]))
        else:
            cells.append(ABOVE[level][str(value)] if level in ABOVE else value)
    return tuple(cells)


def cost_of(rows: list[tuple[str, int, str]], pattern: tuple[str, ...] | None) -> Fraction:
    if pattern is None:
        return Fraction(3)
    ages = [age for _, age, _ in rows]
    width = max(ages) - min(ages)
    total = Fraction(0)
    for level in pattern:
        if level.startswith("width"):
            share = min(Fraction(int(level.split()[1]), width), Fraction(1)) if width else Fraction(1)
            thousandths = -(-1000 * share.numerator // share.denominator)
            total += Fraction(min(thousandths, 999), 1000)
        else:
            total += SHARES[level]
    return total


def in_order(rows: list[tuple[str, int, str]], patterns: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return sorted(patterns, key=lambda pattern: cost_of(rows, pattern))


def greedy(
    rows: list[tuple[str, int, str]], k: int, patterns: list[tuple[str, ...]]
) -> list[tuple[Any, ...] | None]:
    """Pattern and cells of each row by the definition; None: hidden."""
    left = list(range(len(rows)))
    out: list[tuple[Any, ...] | None] = [None] * len(rows)
    for pattern in in_order(rows, patterns):
        if len(left) < k:
            break
        for cells in dict.fromkeys(shown(rows[i], pattern) for i in left):
            same = [i for i in left if shown(rows[i], pattern) == cells]
            if len(same) >= k:
                for i in same:
                    out[i] = (pattern, cells)
                    left.remove(i)
    return out


@examples(60)
@given(ROWS, st.integers(2, 3), st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=5, unique=True))
def test_rows_are_placed_as_the_heuristic_says(
    rows: list[tuple[str, int, str]], k: int, patterns: list[tuple[str, ...]]
) -> None:
    table = people(rows)
    anon = af.anonymize(table, "pattern-guided", k, patterns=listed(patterns))
    expected = greedy(rows, k, patterns)
    frame = anon.frame()
    for i, j in product(range(len(rows)), repeat=2):
        if expected[i] is not None and expected[i] == expected[j]:
            assert (frame.iloc[i] == frame.iloc[j]).all()
    for i, place in enumerate(expected):
        row = frame.iloc[i]
        if place is None:
            assert set(row) == {"*"}
            continue
        pattern = place[0]
        if table.domains[0].size > 1:
            named = {"values": rows[i][0], "*": "*"} | {
                level: above[rows[i][0]] for level, above in ABOVE.items()
            }
            assert row["town"] == named[pattern[0]]
        if pattern[1] == "values" and table.domains[1].size > 1:
            assert row["age"] == str(rows[i][1])
    total = sum((cost_of(rows, place[0] if place else None) for place in expected), Fraction(0))
    if anon.facts.get("cost") is not None:
        assert anon.facts["cost"] == pytest.approx(float(total))
    assert af.verify(table, anon, ["covers", "k-anonymity", "pattern"], k=k)
    assert af.verify(table, anon.release(), ["covers", "k-anonymity"], k=k)


@examples(25)
@given(
    ROWS,
    st.integers(2, 3),
    st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3, unique=True),
    st.booleans(),
)
def test_no_solution_is_better(
    rows: list[tuple[str, int, str]], k: int, patterns: list[tuple[str, ...]], strict: bool
) -> None:
    least: Fraction | None = None
    for chosen in product(patterns if strict else [None, *patterns], repeat=len(rows)):
        cells = [None if p is None else (p, shown(row, p)) for row, p in zip(rows, chosen, strict=True)]
        if all(each is None or cells.count(each) >= k for each in cells):
            cost = sum((cost_of(rows, p) for p in chosen), Fraction(0))
            least = cost if least is None else min(least, cost)
    options: dict[str, Any] = {"patterns": listed(patterns), "fallback": "strict" if strict else "none"}
    if least is None:
        with pytest.raises(InfeasibleError):
            af.anonymize(people(rows), "pattern-guided-optimal", k, **options)
        return
    anon = af.anonymize(people(rows), "pattern-guided-optimal", k, **options)
    assert anon.facts["proven"] is True
    assert anon.facts["cost"] == pytest.approx(float(least))
    assert af.verify(people(rows), anon, ["covers", "k-anonymity", "pattern"], k=k)


def crowd(n: int = 200) -> af.Table:
    rng = np.random.default_rng(3)
    towns, ages = rng.choice(["a1", "a2", "b1", "c", "d"], n), rng.integers(18, 80, n)
    return people(list(zip(towns.tolist(), ages.tolist(), rng.choice(list("fm"), n).tolist(), strict=True)))


def test_one_pattern_is_full_domain_generalization_at_its_levels() -> None:
    table, levels = crowd(), {"town": "level 1", "age": "width 10", "sex": "values"}
    whole = af.anonymize(table, "full-domain", 5, levels=levels, widths={"age": [10]}, limit=1.0)
    anon = af.anonymize(table, "pattern-guided", 5, patterns={"levels": levels})
    assert whole.suppressed.any()
    assert anon.frame().equals(whole.frame())


def test_more_levels_never_lose_more() -> None:
    """Local recoding by a list of patterns: whoever finds no class at fine levels finds one at coarse ones."""
    table = crowd()
    fine = {"town": "level 1", "age": "width 10"}
    every = {"town": ["values", "level 1", "level 2", "*"], "age": ["values", "width 10", "width 20", "*"]}
    item = af.anonymize(table, "pattern-guided", 5, patterns={"levels": fine})
    many = af.anonymize(table, "pattern-guided", 5, patterns={"levels": every})
    better = af.anonymize(table, "pattern-guided", 5, patterns={"levels": every}, local_search=True)
    assert better.facts["cost"] <= many.facts["cost"] < item.facts["cost"]
    assert many.facts["generalized_entries"] > 0
    assert better.facts["cost"] == pytest.approx(many.facts["cost"] - better.facts["saved"])
    for anon in (item, many, better):
        assert af.verify(table, anon, ["covers", "k-anonymity", "pattern"], k=5)
    assert not af.verify(table, many, [{"pattern": {"patterns": {"levels": fine}}}], k=5)


def test_the_criterion_sees_a_row_at_another_level() -> None:
    table = crowd()
    anon = af.anonymize(
        table, "pattern-guided", 5, patterns={"levels": {"town": "level 1", "age": "width 10"}}
    )
    release = anon.release()
    for patterns, holds in (
        ({"levels": {"town": "level 1", "age": "width 10"}}, True),
        ([{"levels": {"town": ["level 2", "level 1"], "age": ["values", "width 10"]}}], True),
        ({"levels": {"town": "level 2", "age": "width 10"}}, False),
        ({"levels": {"town": "level 1", "age": "width 20"}}, False),
        ({"levels": {"town": "level 1"}}, False),
        ([[], {"at-most": 3}], False),
    ):
        check = af.verify(table, anon, [{"pattern": {"patterns": patterns}}], k=5)
        assert bool(check) is holds, patterns
        assert bool(af.verify(table, release, [{"pattern": {"patterns": patterns}}], k=5)) is holds
    for patterns, problem in (
        ({"levels": {"town": 1}}, "levels of another form"),
        ({"levels": {"city": "level 1"}}, "is no quasi-identifier"),
        ({"levels": {"town": "level 9"}}, "has no level"),
    ):
        with pytest.raises(ParameterError, match=problem):
            af.verify(table, anon, [{"pattern": {"patterns": patterns}}], k=5)


def test_patterns_beyond_a_boundary_or_a_limit_are_left_out() -> None:
    rows = [("a1", 20, "f"), ("a2", 25, "f"), ("c", 31, "m"), ("d", 38, "m")]
    frame = pd.DataFrame(rows, columns=["town", "age", "sex"])
    every = [
        {"levels": {"town": ["values", "level 1", "level 2", "*"], "age": ["width 10", "width 20", "*"]}}
    ]
    bounded = {**COLUMNS, "town": {**COLUMNS["town"], "boundary": ["a", "b", "south"]}}
    bounded["age"] = {**COLUMNS["age"], "max-width": 9}
    anon = af.anonymize(af.Table(frame, bounded), "pattern-guided", 2, patterns=every)
    assert anon.frame().to_numpy().tolist() == [["a", "20-25", "f"]] * 2 + [["south", "31-38", "m"]] * 2
    assert af.verify(af.Table(frame, bounded), anon, ["boundary", "k-anonymity", "pattern"], k=2)
    narrow = af.Table(frame, {**bounded, "age": {**COLUMNS["age"], "max-width": 4}})
    with pytest.raises(InfeasibleError, match="nothing can be published within the boundaries"):
        af.anonymize(narrow, "pattern-guided", 2, patterns=every)


def test_at_least_and_missing_numbers_are_values_to_the_criterion() -> None:
    """What a column is published as at best is its value, though it is a node or a star."""
    frame = pd.DataFrame(
        {"town": ["a1", "a2", "c", "c", "d", "d"], "age": [20, 20, 31, 31, None, None], "sex": list("ffmmmm")}
    )
    columns = {**COLUMNS, "town": {**COLUMNS["town"], "at-least": 1}}
    columns["age"] = {**COLUMNS["age"], "missing": "suppress"}
    table = af.Table(frame, columns)
    for patterns in (["---"], {"levels": {"age": ["values", "width 10"]}}, {"at-most": 0}):
        anon = af.anonymize(table, "pattern-guided", 2, patterns=patterns)
        assert anon.frame().to_numpy().tolist() == [
            ["a", "20", "f"], ["a", "20", "f"], ["south", "31", "m"], ["south", "31", "m"],
            ["south", "*", "m"], ["south", "*", "m"],
        ]  # fmt: skip
        assert af.verify(table, anon, ["covers", "k-anonymity", "pattern"], k=2)
    hidden = af.anonymize(table, "pattern-guided", 2, patterns=["-*-"])
    assert not af.verify(table, hidden, [{"pattern": {"patterns": ["---"]}}], k=2)
    deeper = af.Table(frame, {**columns, "town": {**COLUMNS["town"], "at-least": 2}})
    with pytest.raises(ParameterError, match="level 1 is below the level at which it is published at least"):
        af.anonymize(deeper, "pattern-guided", 2, patterns={"levels": {"town": "level 1"}})


def test_positions_of_codes() -> None:
    frame = pd.DataFrame({"zip": ["121", "122", "341", "352"]})
    table = af.Table(frame, {"zip": {**QI, "kind": "positions"}})
    patterns = {"levels": {"zip": ["1 hidden", "2 hidden"]}}
    anon = af.anonymize(table, "pattern-guided", 2, patterns=patterns)
    assert anon.frame()["zip"].tolist() == ["12*", "12*", "3**", "3**"]
    assert af.verify(table, anon, ["pattern", "k-anonymity"], k=2)
    assert not af.verify(table, anon, [{"pattern": {"patterns": {"levels": {"zip": "1 hidden"}}}}], k=2)


def test_the_grid_and_the_order() -> None:
    table = crowd()
    patterns = [{"levels": {"town": ["*", "values", "level 1"], "age": ["width 31", "values"]}}, ["sex"]]
    grid = pattern_grid(table, patterns)
    assert grid[["town", "age", "sex"]].to_numpy().tolist() == [
        ["-", "-", "-"], ["level 1", "-", "-"], ["-", "width 31", "-"], ["level 1", "width 31", "-"],
        ["*", "-", "-"], ["-", "-", "*"], ["*", "width 31", "-"],
    ]  # fmt: skip
    assert grid["suppressed"].tolist() == [0, 0, 0, 0, 1, 1, 1]
    third, half = 1 / 3, grid["cost"][2]
    assert 0.5 <= half < 0.6
    assert grid["cost"].tolist() == pytest.approx([0, third, half, third + half, 1, 1, 1 + half])
    weighted = pattern_set(table.domains, patterns, {"town": 3})
    assert (weighted.costs / weighted.unit).tolist() == sorted(weighted.costs / weighted.unit)
    assert pattern_grid(table, patterns, {"town": 3})["cost"].max() == pytest.approx(3 + half)
    for same in ("none", "strict"):
        assert pattern_grid(table, patterns, fallback=same).equals(grid)
    for listed in ("all", patterns):
        with pytest.raises(ParameterError, match="fallback is 'strict'"):
            pattern_grid(table, listed, fallback="bad")
    last = pattern_grid(table, patterns, fallback="all").iloc[-1]
    assert last[["town", "age", "sex"]].tolist() == ["*", "*", "*"]
    assert last["suppressed"] == last["cost"] == 3


@loop(
    ("patterns", "problem"),
    [
        ({"levels": {"town": "level 3"}}, "no level 'level 3'; its levels are values, level 1, level 2, \\*"),
        ({"levels": {"age": "width -1"}}, "width and a number, such as width 10"),
        ({"levels": {"age": "width e"}}, "width and a number"),
        ({"levels": {"sex": "level 1"}}, "its levels are values, \\*"),
        ({"levels": {"Town": "level 1"}}, "did you mean 'town'"),
        ({"levels": {"town": 1}}, "are texts such as"),
        ({"levels": {"town": []}}, "are texts such as"),
        ({"levels": {}}, "levels is a mapping of columns"),
        ({"levels": ["town"]}, "levels is a mapping of columns"),
        ({"levels": {"town": "level 1"}, "at-most": 2}, "levels go with fallback alone, not with 'at-most'"),
        ({"levels": {"age": [f"width {w}" for w in range(1, 62)]}}, "are 64, 63 are possible"),
    ],
)
def test_levels_that_cannot_be_used_are_refused(patterns: Any, problem: str) -> None:
    for method in ("pattern-guided", "pattern-guided-optimal"):
        with pytest.raises(ParameterError, match=problem):
            af.anonymize(crowd(20), method, 2, patterns=patterns)


def test_levels_make_at_most_as_many_patterns_as_are_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anonflow.algorithms.patterns.language.MOST", 2)
    domains = crowd(20).domains
    levels = {"town": ["values", "*"], "age": ["values", "*"]}
    assert len(pattern_set(domains, {"levels": levels}).costs) == 4
    with pytest.raises(ParameterError, match="the levels make more than 4 patterns; name fewer of them"):
        pattern_set(domains, {"levels": {**levels, "age": ["values", "width 10", "*"]}})


def test_patterns_are_of_at_most_63_columns() -> None:
    frame = pd.DataFrame({f"c{at}": list("xy") for at in range(64)})
    domains = af.Table(frame, {name: {**QI, "kind": "categorical"} for name in frame}).domains
    everything = ["*" * 63, "-" * 63]
    assert len(pattern_set(domains[:63], everything).costs) == 2
    with pytest.raises(ParameterError, match="at most 63 quasi-identifiers"):
        pattern_set(domains, [pattern + pattern[0] for pattern in everything])


def test_levels_of_a_column_without_a_hierarchy() -> None:
    frame = pd.DataFrame({"a": list("xxy"), "b": ["1", "2", "2"]})
    table = af.Table(frame, {name: {**QI, "kind": "categorical"} for name in frame})
    assert [cells.share for cells in cells_at(table.domains[:1], "*")] == [1]
    anon = af.anonymize(table, "pattern-guided", 2, patterns={"levels": {"b": ["values", "*"]}})
    assert anon.frame().to_numpy().tolist() == [["x", "*"], ["x", "*"], ["*", "*"]]
    with pytest.raises(ParameterError, match="its levels are values, \\*"):
        af.anonymize(table, "pattern-guided", 2, patterns={"levels": {"a": "level 1"}})


def test_a_flow_with_levels(tmp_path: Path) -> None:
    crowd().frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "flow.yaml").write_text(
        """
flow: levels
version: 1
table:
  source: {csv: people.csv}
  columns:
    town: {role: quasi-identifier, kind: hierarchy, hierarchy: {nested: {"*": {north: {a: [a1, a2], b: [b1]}, south: [c, d]}}}}
    age: {role: quasi-identifier, kind: numeric}
    sex: {role: quasi-identifier, kind: suppression}
steps:
  - anonymize:
      algorithm: pattern-guided
      k: 5
      patterns: [{levels: {town: [values, level 1], age: [width 10, width 20]}}]
      fallback: all
  - draw: {}
  - verify: [covers, guarantee, pattern]
""",
        encoding="utf-8",
    )
    assert af.run(tmp_path / "flow.yaml").ok


def test_a_flow_in_partitions_measures_the_intervals_that_it_publishes(tmp_path: Path) -> None:
    """The oldest person is hidden: the intervals of both partitions end at the same ages of others."""
    ages, towns = [103, *range(60, 75), *range(20, 28)], ["B"] + ["P"] * 23
    pd.DataFrame({"age": ages, "town": towns}).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "flow.yaml").write_text(
        """
flow: levels
version: 1
table:
  source: {csv: people.csv}
  columns: {age: {role: quasi-identifier, kind: numeric}, town: {role: quasi-identifier, kind: suppression}}
partition: {size: 12}
steps:
  - anonymize: {algorithm: pattern-guided, k: 2, patterns: [{levels: {age: width 60}}]}
  - draw: {}
  - verify: [covers, guarantee, pattern]
  - measure: [ncp]
""",
        encoding="utf-8",
    )
    run = af.run(tmp_path / "flow.yaml")
    (result,) = run.results
    assert run.ok
    assert result.anonymization is not None
    assert sorted(result.anonymization.frame()["age"]) == ["*", *["20-27"] * 8, *["60-74"] * 15]
    assert result.measures["ncp"] == pytest.approx(result.anonymization.loss())


SUPPRESSED_FOR_DIVERSITY = """
flow: levels
version: 1
table:
  source: {csv: people.csv}
  columns: {age: {role: quasi-identifier, kind: numeric}, town: {role: quasi-identifier, kind: suppression}, ill: {role: sensitive}}
partition: {size: 9}
steps:
  - anonymize: {algorithm: METHOD, k: 3, patterns: [{levels: {age: width 20}}]}
  - diversify: {criterion: p-sensitivity, p: 2, column: ill}
  - draw: {}
  - verify: [covers, guarantee, pattern]
  - measure: [ncp]
"""


@pytest.mark.parametrize("method", ["pattern-guided", "pattern-guided-optimal"])
def test_no_interval_ends_at_a_value_of_people_who_are_suppressed_for_diversity(
    method: str, tmp_path: Path
) -> None:
    """All in B have one illness, and so have all in C: they are suppressed, and nobody else is 39."""
    ages, towns = [*range(22, 28), *range(45, 51), *[39] * 6], [*"P" * 12, *"BBBCCC"]
    frame = pd.DataFrame({"age": ages, "town": towns, "ill": [*"xy" * 6, *"xxxyyy"]})
    frame.to_csv(tmp_path / "people.csv", index=False)
    qi = {"role": "quasi-identifier"}
    schema = {
        "age": {**qi, "kind": "numeric"},
        "town": {**qi, "kind": "suppression"},
        "ill": {"role": "sensitive"},
    }
    anon = af.anonymize(
        af.Table(frame, schema), method, k=3, patterns=[{"levels": {"age": "width 20"}}], seed=2**127
    )
    assert set(anon.frame()["age"]) == {"22-39", "45-50"}
    diverse = af.diversify(anon, "p-sensitivity", p=2, seed=2**127)
    assert diverse.suppressed.tolist() == [False] * 12 + [True] * 6
    assert set(diverse.frame()["age"]) == {"22-27", "45-50", "*"}
    diverse.release(seed=2**127)  # would warn
    (tmp_path / "flow.yaml").write_text(SUPPRESSED_FOR_DIVERSITY.replace("METHOD", method), encoding="utf-8")
    run = af.run(tmp_path / "flow.yaml", seed=2**127)
    assert run.ok
    (result,) = run.results
    assert result.anonymization is not None
    assert set(result.anonymization.frame()["age"]) == {"22-27", "45-50", "*"}
    assert result.measures["ncp"] == pytest.approx(result.anonymization.loss())
