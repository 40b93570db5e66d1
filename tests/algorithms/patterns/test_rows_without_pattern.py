"""How many rows follow no pattern: the fact of a run, the criterion's count and the words of errors agree."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow import engine
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.table import Table
from tests.cases.patterns import table
from tests.cases.runs import shell
from tests.strategies import loop

METHODS = ("pattern-guided", "pattern-guided-optimal")
LISTS: tuple[Any, ...] = (
    "all",
    [[]],
    [["a"]],
    [[], ["b"]],
    [["a", "b"]],
    {"at-most": 1},
    {"at-most": 1, "never": "a", "fallback": "all"},
    [{"levels": {"c": "width 10"}}, []],
    [{"levels": {"c": "width 1000", "a": ["values", "*"], "b": "*"}}],
    [{"levels": {"c": "width 10", "a": "*", "b": "*"}}],
)


def counted(anon: af.Anonymization, k: int) -> int:
    """The number that the criterion names."""
    detail = af.verify(anon.table, anon, ["pattern"], k=k)["pattern"].detail
    match = re.search(r"(\d+) rows? (?:is|are) hidden whole and follows? no pattern", detail)
    return int(match[1]) if match else 0


@pytest.mark.parametrize("method", METHODS)
def test_partitions_hide_the_rows_together_that_are_too_few_in_each(method: str) -> None:
    """One row is left in each of two partitions: together they are k, and all columns hidden is a pattern."""
    five = table(pd.DataFrame({"a": list("xxyzz"), "b": list("uuvww")}))
    parameters: dict[str, Any] = {"patterns": [[]], "fallback": "all", "k": 2, "order": "input"}
    anon = af.anonymize(five, method, partition_size=3, **parameters)
    assert anon.suppressed.sum() == counted(anon, 2) == anon.facts["rows_without_pattern"] == 1
    six = table(pd.DataFrame({"a": list("xxyzzv"), "b": list("uuvwwu")}))
    anon = af.anonymize(six, method, partition_size=3, **parameters)
    assert anon.suppressed.sum() == 2
    assert counted(anon, 2) == anon.facts["rows_without_pattern"] == 0
    assert "without a pattern" not in repr(anon)
    anon = af.anonymize(six, method, partition_size=3, **{**parameters, "fallback": "none"})
    assert counted(anon, 2) == anon.facts["rows_without_pattern"] == 2
    assert repr(anon).endswith(", 2 suppressed, 2 without a pattern)")
    assert "without a pattern" in anon._repr_html_()


@given(
    st.lists(
        st.tuples(st.sampled_from("xy"), st.sampled_from("uuuv"), st.sampled_from([1, 1, 12, 35, None])),
        min_size=4,
        max_size=9,
    ),
    st.integers(2, 3),
    st.sampled_from(LISTS),
    st.sampled_from(["none", "all", None]),
    st.sampled_from([None, 4]),
    st.booleans(),
    st.sampled_from(METHODS),
)
def test_the_fact_is_what_the_criterion_counts(
    rows: list[tuple[Any, ...]],
    k: int,
    patterns: Any,
    fallback: str | None,
    size: int | None,
    narrow: bool,
    method: str,
) -> None:
    if isinstance(patterns, dict) and "fallback" in patterns:
        fallback = None
    columns: dict[str, Any] = {
        "a": {"role": "quasi-identifier", "kind": "categorical"},
        "b": {"role": "quasi-identifier", "kind": "categorical"},
        "c": {"role": "quasi-identifier", "kind": "numeric", "missing": "suppress"},
    }
    if narrow:
        columns["c"]["boundary"] = {"width": 30}
    frame = pd.DataFrame(rows, columns=list("abc"))
    if frame["c"].isna().all():
        return
    people = Table(frame, columns)
    try:
        anon = af.anonymize(people, method, k, patterns=patterns, fallback=fallback, partition_size=size)
    except InfeasibleError:
        return
    assert anon.facts["rows_without_pattern"] == counted(anon, k)
    assert af.verify(people, anon, ["covers", "k-anonymity", "pattern"], k=k)


FLOW = """
flow: nowhere
version: 1
table:
  source: {csv: people.csv, pieces: PIECES}
  columns:
    a: {role: quasi-identifier, kind: categorical}
    b: {role: quasi-identifier, kind: categorical}
    s: {role: sensitive}
partition: {size: 30, order: input}
steps:
  - anonymize: {algorithm: METHOD, k: 4, patterns: [[]], fallback: FALLBACK}
  - verify: [covers, guarantee, pattern]
"""


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("pieces", ["false", "60"])
def test_a_run_counts_rows_without_a_pattern_in_memory_and_in_pieces(
    method: str, pieces: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = np.array([f"n{i // 5}" if i % 30 > 2 else f"own{i}" for i in range(120)])
    frame = pd.DataFrame({"a": names, "b": "x", "s": np.arange(120) % 3})
    frame.loc[0, "b"] = "y"
    frame.to_csv(tmp_path / "people.csv", index=False)
    text = FLOW.replace("PIECES", pieces).replace("METHOD", method)
    path = tmp_path / "nowhere.yaml"
    path.write_text(text.replace("FALLBACK", "all"))
    report = engine.run(path)
    assert report.ok
    assert report.results[0].suppressed >= 4
    assert report.results[0].without_pattern == 0
    assert report.remarks == ()
    path.write_text(text.replace("FALLBACK", "none"))
    report = engine.run(path)
    rows = report.results[0].suppressed
    assert report.results[0].without_pattern == rows >= 12
    assert report.remarks == (f"{report.results[0].name}: {rows} rows follow no pattern and are suppressed",)
    assert report.remarks[0] in repr(report)
    assert report.remarks[0] in report._repr_html_()
    if pieces == "false":  # else the findings of batches are added up, without their words
        detail = report.results[0].findings[-1].detail
        assert f"{rows:,} rows are hidden whole and follow no pattern" in detail
    status, _, err = shell(capsys, "run", path, "--quiet")
    assert status == 0
    assert f"anonflow: {report.remarks[0]}" in err.splitlines()
    status, out, _ = shell(capsys, "run", path, "--json")
    assert report.remarks[0] in json.loads(out)["warnings"]


def test_errors_name_the_method_that_was_called_and_count_one_row_as_one() -> None:
    rows = table(pd.DataFrame({"a": list("xxxy"), "b": list("uuuv")}))
    for method in METHODS:
        with pytest.raises(InfeasibleError, match=rf"^{method}: 1 row agrees with fewer than k = 2 rows"):
            af.anonymize(rows, method, 2, patterns=[[]], fallback="strict", **LOCAL.get(method, {}))
        for patterns, words in (
            (["01x"], "a pattern as text has 2 characters"),
            ({"at-most": "x"}, "at-most is a number"),
            (
                [{"at-most": 1, "fallback": "all"}, {"at-most": 0, "fallback": "strict"}],
                "patterns name fallback",
            ),
        ):
            with pytest.raises(ParameterError, match=rf"^{method}: {words}"):
                af.anonymize(rows, method, 2, patterns=patterns)


LOCAL = {"pattern-guided": {"local_search": True}}


@loop("names", [("all", "none"), ("none", "strict"), ("all", "strict")])
def test_patterns_that_name_two_fallbacks_are_refused(names: tuple[str, str]) -> None:
    rows = table(pd.DataFrame({"a": list("xxxy"), "b": list("uuuv")}))
    for first, second in (names, names[::-1]):
        patterns = [{"at-most": 1, "fallback": first}, {"levels": {"a": "*"}, "fallback": second}]
        words = f"patterns name fallback '{names[0]}' and '{names[1]}'; name one"
        for method in METHODS:
            with pytest.raises(ParameterError, match=f"^{method}: {words}$"):
                af.anonymize(rows, method, 2, patterns=patterns)
        with pytest.raises(ParameterError, match=words):
            af.verify(rows, rows.frame, [{"pattern": {"patterns": patterns}}], k=2)
