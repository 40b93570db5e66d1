"""Local suppression for sets of columns: against integer programs, and counts of plain loops."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.algorithms.registry import REGISTRY
from anonflow.criteria.matching import graph
from anonflow.engine.search.space import Space
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.release import ReleaseWarning
from tests.cases.column_sets import COLUMNS, ROWS, TABLES, kinds, may_be, table
from tests.cases.runs import shell
from tests.naive.compatible import fewest, is_shown, names_nobody
from tests.strategies import examples

pytestmark = pytest.mark.filterwarnings(
    "ignore:intervals of .* end at a value:anonflow.release.ReleaseWarning"
)
"""Releases with generalized numbers say which intervals end at hidden values: test_full_domain looks at that."""

PAIRS = list(itertools.combinations(range(4), 2))
FEWEST = 17
"""Cells of them that must be hidden so that no pair of columns names anybody, for k = 3."""


def cells_of(anon: Any) -> list[list[str]]:
    cells: list[list[str]] = anon.frame().to_numpy().tolist()
    return cells


def hidden_by(people: Any, **options: Any) -> int:
    return int(af.anonymize(table(people), "local-suppression", **options).facts["hidden_cells"])


def test_ten_people_lose_the_fewest_cells() -> None:
    """Each condition alone takes fewer: 8 cells let everybody have three rows, 17 let every row have three people."""
    assert fewest(ROWS, PAIRS, 3, for_rows=False) == 8
    assert fewest(ROWS, PAIRS, 3) == FEWEST
    for rows in ("compatible", "matches"):  # one of the eleven choices of so few cells leaves three matches
        anon = af.anonymize(table(ROWS, COLUMNS), "local-suppression", k=3, rows=rows)
        assert int((anon.frame() == "*").sum(axis=None)) == anon.facts["hidden_cells"] == FEWEST
        assert anon.facts["hidden_cells_bound"] == FEWEST
        assert names_nobody(ROWS, cells_of(anon), PAIRS, 3, matches=rows == "matches")


def test_rows_that_agree_with_each_other_are_not_enough() -> None:
    """Six hidden cells let every row agree with three, ``*`` with all; some people are then compatible with one row only."""
    rows = [list(row) for row in ROWS]
    for i, c in ((0, 0), (3, 3), (5, 3), (9, 0), (9, 1), (9, 3)):
        rows[i][c] = "*"
    agree = all(
        sum(all(is_shown(a[c], b[c]) or b[c] == "*" for c in pair) for b in rows) >= 3
        for pair in PAIRS
        for a in rows
    )
    assert agree
    assert not names_nobody(ROWS, rows, PAIRS, 3)
    frame = pd.DataFrame(rows, columns=COLUMNS)
    assert not af.verify(table(ROWS, COLUMNS), frame, {"key-sets": {"of": 2, "hidden": "any"}}, k=3)


@examples(60)
@given(rows=TABLES, data=st.data())
def test_nobody_is_named_and_no_cell_can_be_shown_again(rows: list[list[str]], data: st.DataObject) -> None:
    q = len(rows[0])
    k, of = data.draw(st.integers(2, 4)), data.draw(st.integers(1, q))
    sets = list(itertools.combinations(range(q), of))
    people, counted = table(rows), data.draw(st.sampled_from(["compatible", "matches"]))
    matches = counted == "matches"
    anon = af.anonymize(people, "local-suppression", k=k, of=of, rows=counted)
    cells = cells_of(anon)
    assert names_nobody(rows, cells, sets, k, matches=matches)
    for i, c in itertools.product(range(len(rows)), range(q)):
        if cells[i][c] == "*":
            cells[i][c] = rows[i][c]
            assert not names_nobody(rows, cells, sets, k, matches=matches)
            cells[i][c] = "*"
    assert (
        anon.facts["hidden_cells"] == sum(row.count("*") for row in cells) >= anon.facts["hidden_cells_bound"]
    )
    assert af.verify(people, anon, ["covers", "guarantee"], k=k)
    assert not anon.facts["generalized_cells"]


def test_hidden_cells_are_nearly_the_fewest() -> None:
    """Over small tables at most 2% more than the solver's; many lose exactly as few."""
    rng = np.random.default_rng(7)
    mine = best = equal = 0
    for _ in range(10):
        q, k = int(rng.integers(3, 5)), int(rng.integers(2, 4))
        rows = rng.choice(
            list("abcde"), (int(rng.integers(8, 20)), q), p=[0.4, 0.25, 0.15, 0.12, 0.08]
        ).tolist()
        least = fewest(rows, itertools.combinations(range(q), 2), k)
        hidden = hidden_by(rows, k=k, rows="compatible")
        assert hidden >= least
        mine, best, equal = mine + hidden, best + least, equal + (hidden == least)
    assert mine <= 1.02 * best
    assert equal >= 7


@examples(40)
@given(rows=TABLES)
def test_an_important_cell_is_hidden_only_where_its_row_needs_it(rows: list[list[str]]) -> None:
    q, k = len(rows[0]), 2
    sets = list(itertools.combinations(range(q), 2))
    anon = af.anonymize(
        table(rows), "local-suppression", k=k, importance={"c0": 5, "c1": 1}, rows="compatible"
    )
    cells = cells_of(anon)
    assert names_nobody(rows, cells, sets, k)
    for i in range(len(rows)):
        if cells[i][0] == "*":
            others = [list(row) for row in cells]
            others[i] = [rows[i][0], *["*"] * (q - 1)]
            assert not names_nobody(rows, others, sets, k)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"generalize": True},
        {"generalize": True, "of": 3, "widths": {"age": [5, 10]}},
        {"levels": {"town": "level 1", "zip": "1 hidden"}},
        {"sets": [["age", "town"], ["zip", "job", "income"]], "importance": {"age": 1}},
    ],
)
def test_every_kind_of_column(options: dict[str, Any], subtests: Any) -> None:
    for seed in range(2):
        with subtests.test(seed=seed):
            people = kinds(16, seed)
            anon = af.anonymize(people, "local-suppression", k=3, **options)
            names = list(people.qi_columns)
            chosen = options.get("sets") or list(itertools.combinations(names, options.get("of", 2)))
            sets = [[names.index(name) for name in columns] for columns in chosen]
            originals = people.frame[names].to_numpy().tolist()
            assert names_nobody(originals, cells_of(anon), sets, 3, may_be, matches=True)
            for subject in (anon, anon.release(seed=2**127)):
                assert af.verify(people, subject, ["covers", "guarantee"], k=3)
            if "levels" in options:
                assert set(anon.frame()["town"]) <= {"north", "coast", "hills", "*"}
                assert set(anon.frame()["zip"].str[1]) <= {"*", np.nan}


def test_generalizing_first_loses_less() -> None:
    people = kinds(40, 5)
    hidden, raised = (af.anonymize(people, "local-suppression", k=3, generalize=g) for g in (False, True))
    assert raised.loss() < 0.8 * hidden.loss()
    assert raised.facts["generalized_cells"]
    assert "hidden_cells_bound" not in raised.facts


def test_boundaries_and_limits_are_kept() -> None:
    for more in (
        {"town": {"boundary": ["north", "south"]}},
        {"age": {"max-width": 8}},
        {"job": {"max-set": 2}},
    ):
        people = kinds(40, 3, **more)
        for generalize in (False, True):
            anon = af.anonymize(people, "local-suppression", k=3, of=2, generalize=generalize)
            assert af.verify(people, anon, ["covers", "boundary", "guarantee"], k=3), (more, generalize)


def test_named_sets_pass_from_the_published_file(tmp_path: Path) -> None:
    people = table(ROWS, ["a, b", "c (and) d", "e+f|", "g;=é"])
    sets = [["a, b", "c (and) d"], ["e+f|", "g;=é"]]
    anon = af.anonymize(people, "local-suppression", k=3, sets=sets)
    assert names_nobody(ROWS, cells_of(anon), [(0, 1), (2, 3)], 3)
    file = tmp_path / "release.csv"
    anon.release(seed=2**127).write(file)
    assert af.verify(people, file, ["covers", "guarantee"], k=3)
    assert af.verify(people, file, {"key-sets": {"sets": sets, "hidden": "any"}}, k=3)
    assert not af.verify(people, file, {"key-sets": {"of": 2, "hidden": "any"}}, k=3)
    with pytest.raises(ParameterError, match="'town' in a set is no quasi-identifier"):
        af.verify(people, file, {"key-sets": {"sets": [["town"]], "hidden": "any"}}, k=3)


def test_no_attacker_who_knows_one_set_wins_more_than_one_time_in_three() -> None:
    people = table(ROWS, COLUMNS)
    release = af.anonymize(people, "local-suppression", k=3).release(seed=2**127)
    attacked = af.attack(people, release, sets=[[COLUMNS[a], COLUMNS[b]] for a, b in PAIRS])
    assert len(attacked) >= len(PAIRS)
    assert attacked["success"].max() <= 1 / 3


def test_whoever_knows_everybody_on_a_set_names_nobody() -> None:
    """The attacker `linker` excludes what lies on no complete matching: only `matches` holds it off."""
    frame = af.datasets.census_like(150, seed=1)
    columns = ("Age", "Gender", "Marital", "Race", "Workclass")
    kinds_of = af.datasets.schema("census_like")
    people = af.Table(frame[list(columns)], {name: kinds_of[name] for name in columns})
    sets = [list(pair) for pair in itertools.combinations(columns, 2)]
    worst = {}
    for rows, generalize in itertools.product(("matches", "compatible"), (False, True)):
        anon = af.anonymize(people, "local-suppression", k=3, rows=rows, generalize=generalize)
        attacked = af.attack(people, anon.release(seed=2**127), sets=sets).set_index("attacker")
        assert attacked.loc["prosecutor", "worst"].max() <= 1 / 3
        worst[rows, generalize] = attacked.loc["linker", "worst"].max()
        assert bool(af.verify(people, anon, {"key-sets": {"of": 2, "hidden": "any"}}, k=3))
    assert worst["matches", False] <= 1 / 3
    assert worst["matches", True] <= 1 / 3
    assert max(worst["compatible", False], worst["compatible", True]) == 1


@examples(60)
@given(rows=TABLES, data=st.data())
def test_the_criterion_counts_as_plain_loops_do(rows: list[list[str]], data: st.DataObject) -> None:
    q = len(rows[0])
    cells = [
        ["*" if c in hidden else value for c, value in enumerate(row)]
        for row in rows
        for hidden in [data.draw(st.sets(st.integers(0, q - 1)))]
    ]
    pairs = list(itertools.combinations(range(q), 2))
    frame = pd.DataFrame(cells, columns=[f"c{c}" for c in range(q)])
    for counted in ("compatible", "matches"):
        criteria = {"key-sets": {"of": 2, "hidden": "any", "rows": counted}}
        verdict = af.verify(table(rows), frame, criteria, k=3)
        assert bool(verdict) == names_nobody(rows, cells, pairs, 3, matches=counted == "matches")
    alone = af.verify(table(rows).schema, frame, {"key-sets": {"of": 2, "hidden": "any"}}, k=3)
    assert alone.findings[0].holds is None
    equal = af.verify(table(rows), frame, {"key-sets": {"of": 2}}, k=3)
    blank = sum(set(row) == {"*"} for row in cells)
    if not 0 < blank < 3:
        same = all(
            sum([a[c] for c in pair] == [b[c] for c in pair] for b in cells) >= 3
            for pair in pairs
            for a in cells
        )
        assert bool(equal) == same


def test_a_table_of_people_with_several_rows_is_refused() -> None:
    frame = pd.DataFrame({"person": list("aabbccdd"), "sex": list("mfmfmfmf"), "age": list("11223344")})
    schema: dict[str, Any] = {
        name: {"role": "quasi-identifier", "kind": "suppression"} for name in ("sex", "age")
    }
    people = af.Table(frame, {"person": {"role": "unit"}, **schema})
    with pytest.raises(ParameterError, match="make one row of each person first"):
        af.anonymize(people, "local-suppression", k=2)


def test_diversity_afterwards_is_refused() -> None:
    frame = pd.DataFrame(ROWS, columns=COLUMNS).assign(ill=list("abababcabc"))
    schema = {name: {"role": "quasi-identifier", "kind": "suppression"} for name in COLUMNS}
    anon = af.anonymize(af.Table(frame, {**schema, "ill": {"role": "sensitive"}}), "local-suppression", k=3)
    with pytest.raises(ParameterError, match="cannot be made diverse"):
        af.diversify(anon, "l-diversity", l=2)
    assert REGISTRY["k-concealment"].diversity_problem is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"sets": [["sex", "incme"]]},
            r"'incme' in a set is no quasi-identifier \(did you mean 'income'\?\)",
        ),
        ({"sets": [["sex", "income"], ["income", "sex"]]}, "the set income, sex occurs twice"),
        ({"sets": [["sex", "sex"]]}, "the set sex, sex has a column twice"),
        ({"sets": "sex"}, "sets is a list of lists of columns"),
        ({"sets": []}, "sets is a list of lists of columns"),
        ({"sets": [[]]}, "sets is a list of lists of columns"),
        ({"of": 5}, "of is 5, and there are 4 quasi-identifiers"),
        ({"of": 2, "sets": [["sex"]]}, "take either sets or of, not both"),
        ({"importance": {"town": 1}}, "importance of 'town', which is no quasi-identifier"),
        ({"importance": {"sex": "high"}}, "the importance of 'sex' must be a number"),
        ({"importance": 3}, "importance maps columns to numbers"),
        ({"levels": {"sex": "level 1"}}, r"column 'sex' has no level 'level 1'; its levels are values, \*"),
        ({"levels": {"town": "*"}}, "levels names 'town', which is no quasi-identifier"),
        ({"levels": 2}, "levels maps columns to levels"),
        ({"widths": {"sex": [2]}}, "which is no numeric quasi-identifier"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        af.anonymize(table(ROWS, COLUMNS), "local-suppression", k=3, **options)


def test_more_than_the_people_there_are_is_infeasible() -> None:
    with pytest.raises(InfeasibleError):
        af.anonymize(table(ROWS, COLUMNS), "local-suppression", k=11)


def test_a_flow_from_the_file_to_the_report(tmp_path: Path) -> None:
    pd.DataFrame(ROWS, columns=COLUMNS).to_csv(tmp_path / "people.csv", index=False)
    columns = "".join(f"    {name}: {{role: quasi-identifier, kind: suppression}}\n" for name in COLUMNS)
    flow = tmp_path / "ten.yaml"
    flow.write_text(
        f"flow: ten\nversion: 1\ntable:\n  source: {{csv: people.csv}}\n  columns:\n{columns}"
        "steps:\n  - anonymize: {algorithm: local-suppression, k: 3}\n  - draw: {}\n  - verify: [covers, guarantee]\n"
        "publish: {table: out/ten.csv, report: out/ten.html}\n"
    )
    report = af.run(flow)
    assert report.ok
    assert report.results[0].guarantee == "key-sets(of=2, hidden=any, rows=matches)"
    text = (tmp_path / "out" / "ten.html").read_text()
    assert "10 records, each hidden on the named sets of columns among k = 3" in text
    assert "every person is compatible with at least 3 published rows" in text
    assert "Verified: covers, key-sets." in text
    assert "province, activity: from the data" in text
    assert af.verify(table(ROWS, COLUMNS), tmp_path / "out" / "ten.csv", ["covers", "guarantee"])


def test_without_criteria_the_promise_is_checked_and_nothing_on_all_columns(tmp_path: Path) -> None:
    people = table(ROWS, COLUMNS)
    release = af.anonymize(people, "local-suppression", k=3).release(seed=2**127)
    release.write(tmp_path / "release.csv")
    for subject in (release, tmp_path / "release.csv"):
        checked = af.verify(people, subject)
        assert checked
        assert {finding.criterion for finding in checked} == {"covers", "key-sets"}
    assert not af.verify(people, release.frame, k=3)


def test_a_search_compares_it_only_where_it_is_named() -> None:
    """It loses less than methods that protect all columns together, because it promises less."""
    tried = {setup.algorithm for setup in Space().setups(100, 3, False)}
    assert "local-suppression" not in tried
    assert {"mondrian", "k-concealment"} <= tried
    named = Space(algorithms=("local-suppression",)).setups(100, 3, False)
    assert [setup.algorithm for setup in named] == ["local-suppression"]


def test_sets_of_the_shell_are_read_as_the_release_promises(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.DataFrame(ROWS, columns=COLUMNS)
    frame.to_csv(tmp_path / "people.csv", index=False)
    columns = "".join(f"  {name}: {{role: quasi-identifier, kind: suppression}}\n" for name in COLUMNS)
    (tmp_path / "schema.yaml").write_text(f"columns:\n{columns}")
    release = af.anonymize(table(ROWS, COLUMNS), "local-suppression", k=3).release(seed=2**127)
    release.write(tmp_path / "release.csv")
    files = [
        "--original", tmp_path / "people.csv", "--release", tmp_path / "release.csv", "--schema", tmp_path / "schema.yaml",
    ]  # fmt: skip
    status, out, _ = shell(capsys, "verify", *files, "--keys", "income")
    assert status == 0
    assert "income: every person is matched with at least" in out


def test_an_interval_ends_at_a_hidden_value_only_where_somebody_needs_it() -> None:
    ages = [33, 32, 30, 64, 103, 31, 26, 98, 58, 109, 60, 49, 62, 95]
    frame = pd.DataFrame({"age": ages, "town": list("RRPQPPPPPRRQQB"), "sex": list("fmmfmfmffmfmmf")})
    qi = {"role": "quasi-identifier"}
    kinds = {"age": "numeric", "town": "suppression", "sex": "suppression"}
    table = af.Table(frame, {name: {**qi, "kind": kind} for name, kind in kinds.items()})
    anon = af.anonymize(table, "local-suppression", k=2, of=2, generalize=True, widths={"age": [10, 40]})
    assert set(anon.frame()["age"]) == {"30-33", "49-62", "95-109", "*"}  # 64, 95 and 109 are hidden
    assert af.verify(table, anon)
    narrower = replace(anon, generalization=anon.generalization.narrowed(table.records))
    assert set(narrower.frame()["age"]) == {"30-33", "49-62", "98-103", "*"}
    assert not af.verify(table, narrower)
    with pytest.warns(ReleaseWarning, match="that is hidden in every row"):
        anon.release(seed=2**127)


def test_more_pairs_than_can_be_listed_keep_intervals_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method that worked must not end because of a check that it does not need."""
    frame = pd.DataFrame({"age": [21, 22, 23, 24, 25, 29, 50, 51], "town": list("PPPPPQQQ")})
    table = af.Table(
        frame,
        {
            "age": {"role": "quasi-identifier", "kind": "numeric"},
            "town": {"role": "quasi-identifier", "kind": "suppression"},
        },
    )
    options: dict[str, Any] = {"k": 2, "of": 2, "generalize": True, "widths": {"age": [10]}}
    assert set(af.anonymize(table, "local-suppression", **options).frame()["age"]) == {"21-25", "50-51", "*"}
    monkeypatch.setattr(graph, "EDGE_LIMIT", 1)
    assert set(af.anonymize(table, "local-suppression", **options).frame()["age"]) == {"21-29", "50-51", "*"}
