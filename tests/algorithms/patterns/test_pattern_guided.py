"""Pattern-guided greedy against its definition and the paper's tables."""

from __future__ import annotations

import json
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anonflow as af
from anonflow import datasets
from anonflow.algorithms.patterns.pattern_guided import place
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.table import Table
from tests.cases.patterns import (
    CMC_NUMBERS,
    MEASURES,
    SCENARIO,
    SCENARIO_IN_ORDER,
    TABLE_3,
    TABLE_6,
    TABLE_7,
    TABLE_8,
    adult_2_to_suppress,
    cmc_to_suppress,
    nursery,
    pattern_masks,
    table,
)
from tests.cases.plain_kernels import plainly
from tests.papers.figures import Key, verdict
from tests.papers.workbook import Workbook
from tests.strategies import WITHOUT_CODES, loop, tables


def naive(codes: list[list[int]], k: int, patterns: list[str]) -> list[tuple[Any, ...] | None]:
    """What each row keeps (None: hidden) by the definition; patterns are texts of 0 and 1 in order."""
    left = list(range(len(codes)))
    out: list[tuple[Any, ...] | None] = [None] * len(codes)
    for pattern in patterns:
        if len(left) < k:
            break
        groups: dict[tuple[Any, ...], list[int]] = {}
        for i in left:
            kept = tuple(c if p == "0" else None for c, p in zip(codes[i], pattern, strict=True))
            groups.setdefault(kept, []).append(i)
        for kept, rows in groups.items():
            if len(rows) >= k:
                for i in rows:
                    out[i] = kept
                    left.remove(i)
    return out


def in_order(patterns: list[str]) -> list[str]:
    """Each once; equally many suppressed columns keep the order of the list."""
    return sorted(dict.fromkeys(patterns), key=lambda p: p.count("1"))


def text(mask: int, q: int) -> str:
    return "".join("1" if mask >> a & 1 else "0" for a in range(q))


@settings(deadline=None)
@given(tables(max_columns=3, kinds=WITHOUT_CODES), st.integers(2, 4), st.data())
def test_rows_are_placed_as_the_heuristic_says(table: Table, k: int, data: st.DataObject) -> None:
    q = table.q
    everything = [format(number, f"0{q}b") for number in range(1 << q)]
    chosen = data.draw(
        st.one_of(st.just(everything), st.lists(st.sampled_from(everything), min_size=1, max_size=5))
    )
    masks = pattern_masks(table.domains, "all" if chosen is everything else chosen)
    order = in_order(chosen)
    assert [text(int(mask), q) for mask in masks] == order
    labels, used = place(table.records, masks, k)
    plain = plainly(place, table.records, masks, k)
    assert (labels == plain[0]).all()
    assert (used == plain[1]).all()
    codes = table.codes.tolist()
    results = [
        None if u < 0 else tuple(c if p == "0" else None for c, p in zip(row, order[u], strict=True))
        for row, u in zip(codes, used.tolist(), strict=True)
    ]
    assert results == naive(codes, k, order)
    for i in range(table.n):
        for j in range(table.n):
            if results[i] is not None and labels[i] == labels[j]:
                assert results[i] == results[j]


def test_hidden_columns_are_published_as_stars() -> None:
    frame = pd.DataFrame({"a": [1, 1, 2, 3], "b": ["x", "x", "y", "y"], "zip": ["12", "12", "23", "23"]})
    schema = {
        "a": {"role": "quasi-identifier", "kind": "numeric"},
        "b": {"role": "quasi-identifier", "kind": "categorical"},
        "zip": {"role": "quasi-identifier", "kind": "positions"},
    }
    table = Table(frame, schema)
    anon = af.anonymize(table, "pattern-guided", k=2)
    assert anon.frame().to_numpy().tolist() == [["1", "x", "12"]] * 2 + [["*", "y", "23"]] * 2
    assert anon.facts["suppressed_entries"] == 2
    anon = af.anonymize(table, "pattern-guided", k=2, patterns=[["zip[1]"], ["a", "zip"]])
    assert anon.frame().to_numpy().tolist() == [["1", "x", "1*"]] * 2 + [["*", "y", "*"]] * 2
    anon = af.anonymize(table, "pattern-guided", k=2, patterns=["0000"])
    assert anon.suppressed.tolist() == [False, False, True, True]
    assert anon.classes is not None
    assert anon.classes[2] == anon.classes[3] != anon.classes[0]


@loop(
    ("patterns", "words"),
    [
        ("some", "'all' or a list"),
        ([], "'all' or a list"),
        ([["agee"]], "did you mean 'age'"),
        (["01"], "1 characters"),
        (["2"], r"\* suppressed, - kept"),
        ([3], "column names"),
    ],
)
def test_patterns_that_cannot_be_read_are_refused(patterns: Any, words: str) -> None:
    table = Table(pd.DataFrame({"age": [1, 1]}), {"age": {"role": "quasi-identifier", "kind": "numeric"}})
    with pytest.raises(ParameterError, match=words):
        af.anonymize(table, "pattern-guided", k=2, patterns=patterns)


def test_all_patterns_of_many_columns_are_refused() -> None:
    table = Table(
        pd.DataFrame({f"c{a}": [0, 0] for a in range(21)}),
        {f"c{a}": {"role": "quasi-identifier", "kind": "numeric"} for a in range(21)},
    )
    with pytest.raises(ParameterError, match="list patterns"):
        af.anonymize(table, "pattern-guided", k=2)


@loop("k", [3, 4])
def test_the_family_of_theorem_4_loses_a_factor_of_k_less_one(k: int) -> None:
    """k rows of ones, and for each column i k - 1 rows with a symbol of their own in column i."""
    m = k
    rows = [[1] * m for _ in range(k)]
    for column in range(m):
        for _ in range(k - 1):
            rows.append([1] * m)
            rows[-1][column] = 2 + column
    table = Table(
        pd.DataFrame(rows, columns=[f"c{a}" for a in range(m)]),
        {f"c{a}": {"role": "quasi-identifier", "kind": "categorical"} for a in range(m)},
    )
    singles = ["".join("1" if a == b else "0" for a in range(m)) for b in range(m)]
    patterns = [*singles, "0" * m, "1" * m]
    anon = af.anonymize(table, "pattern-guided", k=k, patterns=patterns)
    assert anon.facts["suppressed_entries"] == (m - 1) * m**2


@loop("k", TABLE_3)
def test_nursery_tables_3_and_6(k: int) -> None:
    anon = af.anonymize(nursery(), "pattern-guided", k=k)
    measures = af.measure(nursery(), anon, MEASURES)
    row = tuple(round(float(measures[name]), 3) for name in MEASURES[:4])
    assert row == TABLE_3[k]
    assert anon.facts["suppressed_entries"] == TABLE_6[k] == measures["stars"]


@pytest.mark.data
@loop("k", TABLE_7)
def test_cmc_table_7(k: int, data_folder: object) -> None:
    """Equal costs in binary order, the first column as the lowest bit; the pattern that hides all changes no count."""
    for patterns in ({"at-most": 2}, {"at-most": 2, "fallback": "all"}):
        anon = af.anonymize(cmc_to_suppress(), "pattern-guided", k=k, patterns=patterns)
        assert anon.facts["suppressed_entries"] == TABLE_7[k][0]


@pytest.mark.data
def test_the_order_of_itertools_gives_another_number_than_table_7(data_folder: object) -> None:
    columns = cmc_to_suppress().qi_columns
    listed = [list(names) for size in range(3) for names in combinations(columns, size)]
    anon = af.anonymize(cmc_to_suppress(), "pattern-guided", k=2, patterns=listed)
    assert anon.facts["suppressed_entries"] == 4_104
    assert TABLE_7[2][0] == 4_112


@pytest.mark.data
@loop("k", TABLE_7)
def test_cmc_table_7_usefulness(k: int, data_folder: object) -> None:
    """The printed one takes the wife's age and the number of children for numbers."""
    anon = af.anonymize(cmc_to_suppress(), "pattern-guided", k=k, patterns={"at-most": 2, "fallback": "all"})
    usefulness = af.measure(cmc_to_suppress(), anon, ["usefulness"], numeric=CMC_NUMBERS)["usefulness"]
    printed = Workbook(5).printed[Key("Table 7", "CMC", k, "pattern-guided", "usefulness")]
    assert verdict(printed, usefulness) == "equal"


@pytest.mark.data
@loop("k", TABLE_8)
def test_adult_2_table_8(k: int, data_folder: object) -> None:
    """A list in the order that gives the printed numbers; it has the patterns of the four constraints."""
    result = adult_2_to_suppress()
    anon = af.anonymize(result, "pattern-guided", k=k, patterns=SCENARIO_IN_ORDER)
    assert anon.facts["suppressed_entries"] == TABLE_8[k][0]
    listed, meant = (pattern_masks(result.domains, text) for text in (SCENARIO_IN_ORDER, SCENARIO))
    assert set(listed.tolist()) == set(meant.tolist())


@pytest.mark.slow
@pytest.mark.data
def test_two_lists_give_table_8_and_differ_in_race_and_sex(data_folder: object) -> None:
    """All orders of the six units, their patterns in binary order or in that of combinations: 660 lists."""
    people = adult_2_to_suppress()
    names = people.qi_columns
    bits = {name: 1 << a for a, name in enumerate(names)}
    bits["workclass"] |= bits.pop("occupation")
    meant = set(pattern_masks(people.domains, SCENARIO).tolist())
    everything = (1 << len(names)) - 1
    lists: dict[tuple[int, ...], tuple[str, ...]] = {}
    for order in permutations(("age", "workclass", "marital", "race", "sex", "country")):
        units = [bits[name] for name in order]
        binary = [sum(unit for at, unit in enumerate(units) if number >> at & 1) for number in range(64)]
        as_combinations = [sum(some) for size in range(3) for some in combinations(units, size)]
        for masks in (binary, as_combinations):
            listed = [mask for mask in masks if mask in meant - {everything}]
            lists.setdefault((*sorted(listed, key=int.bit_count), everything), order)
    assert len(lists) == 660
    left = list(lists)
    for k, (stars, _) in TABLE_8.items():
        left = [masks for masks in left if _stars(people, masks, k) == stars]
    assert sorted(lists[masks] for masks in left) == [
        ("country", "marital", "workclass", "age", "race", "sex"),
        ("country", "marital", "workclass", "age", "sex", "race"),
    ]
    assert tuple(pattern_masks(people.domains, SCENARIO_IN_ORDER).tolist()) in left


def _stars(people: Table, masks: tuple[int, ...], k: int) -> int:
    used = place(people.records, np.array(masks, np.uint64), k)[1]
    return int(np.array([*map(int.bit_count, masks), people.q])[used].sum())


def test_equally_dear_patterns_keep_their_order() -> None:
    frame = pd.DataFrame({"a": list("xyx"), "b": list("uuv")})
    for patterns, hidden in (([["a"], ["b"]], "a"), ([["b"], ["a"]], "b"), (["10", "01", "10"], "a")):
        facts = af.anonymize(table(frame), "pattern-guided", k=2, patterns=patterns).frame()
        assert (facts[hidden] == "*").sum() == 3
        assert (facts == "*").to_numpy().sum() == 4


def test_several_orders_are_never_dearer() -> None:
    frame = datasets.nursery(classification=False).iloc[::7, :5]
    parameters: dict[str, Any] = {"k": 9, "patterns": {"at-most": 3}, "seed": 3}
    costs = [
        af.anonymize(table(frame), "pattern-guided", **parameters, orders=orders).facts["suppressed_entries"]
        for orders in (1, 2, 5, 20)
    ]
    assert costs == sorted(costs, reverse=True)
    # the first pattern takes the three x and leaves y alone, the second takes two pairs
    two = table(pd.DataFrame({"a": list("xxxy"), "b": list("uvvu"), "c": list("1234")}))
    patterns = [["b", "c"], ["a", "c"]]
    first, second = (
        af.anonymize(two, "pattern-guided", k=2, patterns=patterns, orders=orders) for orders in (1, 2)
    )
    assert first.facts["suppressed_entries"] == 3 * 2 + 3
    assert second.facts["suppressed_entries"] == 4 * 2


@pytest.mark.parametrize("fallback", ["none", "all", "strict"])
@pytest.mark.parametrize("local_search", [False, True])
@settings(max_examples=25)
@given(data=st.data())
def test_an_order_is_chosen_by_its_final_result(
    data: st.DataObject, fallback: str, local_search: bool
) -> None:
    """More orders are never dearer, nor refused where fewer are not, after rows have joined classes or moved between them."""
    n, q, k = (data.draw(st.integers(*bounds)) for bounds in ((4, 12), (2, 4), (2, 3)))
    rows = st.tuples(*[st.sampled_from("xyz")] * q)
    people = table(pd.DataFrame(data.draw(st.lists(rows, min_size=n, max_size=n)), columns=list("abcd")[:q]))
    marks = st.text("01", min_size=q, max_size=q)
    patterns = data.draw(st.lists(marks, min_size=1, max_size=7, unique=True))
    costs = []
    for orders in (1, 2, 5):
        options: dict[str, Any] = {"patterns": patterns, "fallback": fallback, "local_search": local_search}
        try:
            anon = af.anonymize(people, "pattern-guided", k=k, seed=1, orders=orders, **options)
        except InfeasibleError:
            costs.append(n * q + 1)
        else:
            assert af.verify(people, anon, ["covers", "k-anonymity", "pattern"], k=k)
            costs.append(anon.facts["suppressed_entries"])
    assert costs == sorted(costs, reverse=True)


@loop(
    ("rows", "patterns", "hidden"),
    [
        (
            ["0010", "2022", "2011", "1121", "0212", "0120", "0120", "2101", "2220", "0222", "0011"],
            ["-***", "*---", "--**", "---*", "***-", "*--*"],
            22,
        ),
        # the second order alone leaves a row that no class can take
        (["002", "011", "010", "210", "022", "102"], ["-**", "*-*", "-*-"], 12),
    ],
)
def test_the_cheaper_order_may_be_the_dearer_one_before_rows_join(
    rows: list[str], patterns: list[str], hidden: int
) -> None:
    """Under strict the greedy's remainder joins classes; what the greedy alone hides says nothing of the sum."""
    people = table(pd.DataFrame([list(row) for row in rows], columns=list("abcd")[: len(rows[0])]))
    options: dict[str, Any] = {"k": 2, "patterns": patterns, "fallback": "strict", "seed": 1}
    for orders in (1, 2, 6):
        anon = af.anonymize(people, "pattern-guided", orders=orders, **options)
        assert anon.facts["suppressed_entries"] == hidden


@loop("orders", [0, 1001, True, "2", 1.5])
def test_orders_outside_1_to_1000_are_refused(orders: Any) -> None:
    coded = table(pd.DataFrame({"a": ["x", "x"]}))
    with pytest.raises(ParameterError, match="orders must be a whole number of at least 1 and at most 1000"):
        af.anonymize(coded, "pattern-guided", k=2, orders=orders)


@pytest.mark.parametrize("method", ["pattern-guided", "pattern-guided-optimal"])
def test_under_strict_no_row_is_suppressed_beside_the_method(method: str, tmp_path: Path) -> None:
    """Rows that boundaries leave without a place follow no pattern: infeasible, in flows as well."""
    frame = pd.DataFrame({"a": [1, 1, 1, 2, 2, 2, 50], "b": list("aabbaab")})
    columns = {
        "a": {"role": "quasi-identifier", "kind": "numeric", "boundary": {"width": 5}},
        "b": {"role": "quasi-identifier", "kind": "categorical"},
    }
    table, patterns = af.Table(frame, columns), [[], ["b"]]
    anon = af.anonymize(table, method, 2, patterns=patterns, fallback="none")
    assert anon.suppressed[6]
    for request in (
        {"patterns": patterns, "fallback": "strict"},
        {"patterns": {"at-most": 1, "fallback": "strict"}},
    ):
        with pytest.raises(InfeasibleError, match="so not every row can follow"):
            af.anonymize(table, method, 2, **request)
    frame.to_csv(tmp_path / "t.csv", index=False)
    flow = {
        "flow": "strict",
        "version": 1,
        "table": {"source": {"csv": "t.csv"}, "columns": columns},
        "steps": [{"anonymize": {"algorithm": method, "k": 2, "patterns": patterns, "fallback": "strict"}}],
    }
    path = tmp_path / "strict.yaml"
    path.write_text(json.dumps(flow), encoding="utf-8")  # JSON is YAML
    with pytest.raises(InfeasibleError, match="so not every row can follow"):
        af.run(path, scheduler="threads")


WITH_CODES = [
    "all",
    {"never": ["age"]},
    {"at-most": 2},
    ["--*", "**-"],
    [["age"], ["age", "sex"], ["age", "sex", "job"]],
    {"together": ["age", "job"]},
]


@pytest.mark.parametrize("method", ["pattern-guided", "pattern-guided-optimal"])
@settings(deadline=None)
@given(
    seed=st.integers(0, 2**32),
    k=st.integers(2, 5),
    patterns=st.sampled_from(WITH_CODES),
    weight=st.sampled_from([None, {"age": 3}]),
)
def test_numbers_with_codes_are_hidden_as_one_text_is(
    method: str, seed: int, k: int, patterns: Any, weight: Any
) -> None:
    """What patterns show of a column is its value or nothing: whether some values are numbers changes nothing."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 24, 30).astype(str).astype(object)
    age[rng.random(30) < 0.3] = "N"
    age[rng.random(30) < 0.2] = "R"
    frame = pd.DataFrame({"age": age, "sex": rng.choice(["f", "m"], 30), "job": rng.choice(list("abc"), 30)})
    qi = {"role": "quasi-identifier", "kind": "categorical"}
    coded = Table(frame, {"age": {**qi, "kind": "numeric", "codes": ["N", "R"]}, "sex": qi, "job": qi})
    texts = Table(frame, {"age": qi, "sex": qi, "job": qi})
    options: dict[str, Any] = {"patterns": patterns, "weights": weight}
    results = [af.anonymize(table, method, k=k, seed=1, **options) for table in (coded, texts)]
    cells = [result.frame().astype(str) for result in results]
    hidden = [frame == "*" for frame in cells]
    if method == "pattern-guided":
        pd.testing.assert_frame_equal(*cells)
    for frame_of, result in zip(cells, results, strict=True):
        assert bool(af.verify(result.table, result, ["covers", "k-anonymity", "pattern"], k=k))
        assert result.facts["suppressed_entries"] == (frame_of == "*").to_numpy().sum()
    costs = [
        ((stars * ([(weight or {}).get(name, 1) for name in stars])).to_numpy().sum()) for stars in hidden
    ]
    assert costs[0] == costs[1]
