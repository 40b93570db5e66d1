"""Sets of columns that single people out, against every set and every record."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.errors import ParameterError, SchemaError
from anonflow.risk import key_sets
from tests.cases.flow_files import flow_text
from tests.cases.runs import shell
from tests.naive import key_sets as naive
from tests.strategies import loop

QI = {"role": "quasi-identifier"}


@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 4), st.integers(1, 4))
def test_minimal_uniques_by_definition(seed: int, n: int, q: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, 3, (n, q)), columns=list("abcd")[:q])
    rows = frame.to_numpy().tolist()
    result = key_sets(frame, list(frame.columns), most)
    most = min(most, q)
    per_record = [naive.minimal_uniques(rows, i, most) for i in range(n)]
    assert result.counts.tolist() == [len(sets) for sets in per_record]
    assert result.scores.tolist() == [naive.score(rows, i, most) for i in range(n)]
    assert result.least.tolist() == [min(map(len, sets), default=0) for sets in per_record]
    for at, each in enumerate(result.sets):
        assert result.uniques[at] == sum(naive.is_unique(rows, i, each) for i in range(n))
        assert result.minimal[at] == sum(each in sets for sets in per_record)
        sizes = frame.groupby([frame.columns[a] for a in each]).size()
        assert (result.classes[at], result.smallest[at]) == (len(sizes), sizes.min())


def test_the_riskiest_come_first() -> None:
    frame = pd.DataFrame({"age": [1, 1, 2, 2, 9], "sex": list("fmfmf"), "zip": list("aaaab")})
    sets = key_sets(frame, ["age", "sex", "zip"], 2)
    assert sets.riskiest()["position"].tolist()[0] == 4  # unique on its age alone, and on its code alone
    assert sets.riskiest(1)["smallest"].tolist() == [1]
    table = sets.frame()
    assert table["average risk"].is_monotonic_decreasing
    assert table["columns"][0] == "age, sex"
    parts = sets.contributions().set_index("column")["minimal uniques"]
    assert parts["age"] == 5
    assert "are unique on a set of at most 2 columns" in repr(sets)


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 3), st.floats(0.01, 1.0))
def test_intrusion_is_shared_out_by_the_scores(seed: int, n: int, q: int, fraction: float) -> None:
    """The file's figure by taking every record out; records' figures average to it and follow the scores."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, 4, (n, q)), columns=list("abc")[:q])
    rows = frame.to_numpy().tolist()
    sets = key_sets(frame, list(frame.columns), 2)
    chances = sets.intrusion(fraction)
    expected = naive.intrusion(rows, fraction)
    alone = np.array([naive.is_unique(rows, i, range(q)) for i in range(n)])
    if np.isnan(expected):
        assert np.isnan(chances).all()
        return
    assert (chances[~alone] == 0).all()
    assert ((chances >= 0) & (chances <= 1)).all()
    if alone.any():
        assert chances[alone].mean() == pytest.approx(expected, abs=1e-9)
        order = np.argsort(sets.scores[alone], kind="stable")
        assert (np.diff(chances[alone][order]) >= -1e-12).all()


def test_the_riskiest_have_a_chance_that_a_match_is_right() -> None:
    frame = pd.DataFrame({"age": [1, 1, 2, 2, 9, 3, 3], "sex": list("fmfmfff"), "town": ["a"] * 7})
    sets = key_sets(frame, ["age", "sex", "town"], 2)
    top = sets.riskiest(fraction=0.1)
    # 5 records are alone, and one pair is not
    assert sets.intrusion(0.1)[sets.alike == 1].mean() == pytest.approx(0.1 * 5 / (0.1 * 5 + 0.9 * 2))
    assert top["dis"].is_monotonic_decreasing
    assert top["dis"][0] > top["dis"][1]
    assert "dis" not in sets.riskiest()
    for wrong in (0, 1.5, -0.1, True, "many"):
        with pytest.raises(ParameterError, match="above 0 and at most 1"):
            sets.riskiest(fraction=wrong)  # type: ignore[arg-type]


@loop(
    ("columns", "most", "words"),
    [(["age"], 0, "at least 1"), (["age"], True, "at least 1"), ([], 2, "at least one column")],
)
def test_bad_input_is_one_sentence(columns: list[str], most: int, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        key_sets(pd.DataFrame({"age": [1, 2]}), columns, most)


def test_too_many_sets_and_unknown_columns() -> None:
    wide = pd.DataFrame({f"c{i}": [1, 2] for i in range(60)})
    with pytest.raises(ParameterError, match=r"36,050 sets of up to 3 of 60 columns; name fewer"):
        key_sets(wide, list(wide.columns), 3)
    with pytest.raises(SchemaError, match="no column"):
        key_sets(wide, ["age"], 1)


def test_several_key_sets_are_verified_each() -> None:
    schema = af.Schema(
        {
            "age": {**QI, "kind": "numeric"},
            "town": {**QI, "kind": "categorical"},
            "ill": {"role": "sensitive"},
        }
    )
    rows = pd.DataFrame(
        {"age": ["1-2"] * 4 + ["3"] * 2, "town": ["a", "a", "b", "b", "a", "a"], "ill": list("xxyyxx")}
    )
    check = af.verify(schema, rows, {"key-sets": {"sets": [["age"], ["town"], ["age", "ill"]]}}, k=3)
    assert [finding.holds for finding in check] == [False, False, False]
    assert [finding.positions for finding in check] == [(4, 5), (2, 3), (0, 1, 2, 3, 4, 5)]
    assert all(af.verify(schema, rows, {"key-sets": {"sets": [["age"], ["town"]]}}, k=2))
    for wrong, words in (
        ([["shoe"]], "not a published column"),
        ("age", "list of lists"),
        ([], "list of lists"),
    ):
        with pytest.raises(ParameterError, match=words):
            af.verify(schema, rows, {"key-sets": {"sets": wrong}}, k=2)


def test_the_shell_shows_positions_to_the_owner_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.DataFrame({"age": [1, 1, 2, 2, 9], "sex": list("fmfmf")})
    frame.to_csv(tmp_path / "people.csv", index=False)
    schema = {"age": {**QI, "kind": "numeric"}, "sex": {**QI, "kind": "categorical"}}
    (tmp_path / "schema.yaml").write_text(json.dumps({"columns": schema}))
    arguments = [tmp_path / "people.csv", "--schema", tmp_path / "schema.yaml"]
    status, out, _ = shell(capsys, "risk", *arguments)
    assert status == 0
    assert "age, sex" in out
    assert "position" not in out
    assert "position" in shell(capsys, "risk", *arguments, "--owner")[1]
    assert "dis" not in shell(capsys, "risk", *arguments, "--owner")[1]
    assert "dis" in shell(capsys, "risk", *arguments, "--owner", "--fraction", 0.1)[1]
    status, out, _ = shell(capsys, "risk", *arguments, "--json")
    assert "riskiest" not in json.loads(out)
    assert json.loads(out)["sets"][0]["columns"] == "age, sex"
    assert shell(capsys, "risk", *arguments, "--columns", 0)[0] == 2


PEOPLE = {
    "age": {**QI, "kind": "numeric"},
    "sex": {**QI, "kind": "categorical"},
    "zip": {**QI, "kind": "positions"},
    "ill": {"role": "sensitive"},
}


def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, 60),
            "sex": rng.choice(["f", "m"], 60),
            "zip": [f"1{code:02}" for code in rng.integers(0, 40, 60)],
            "ill": rng.choice(["flu", "cold", "cough"], 60),
        }
    )


def covering(release: pd.DataFrame, keys: list[str]) -> list[int]:
    """How many rows cover each person on some columns, cell by cell."""

    def fits(cell: str, value: str) -> bool:
        if cell == "*" or value in cell.strip("{}").split("|"):
            return True
        if "*" in cell:
            return len(cell) == len(value) and all(c in ("*", v) for c, v in zip(cell, value, strict=True))
        low, dash, high = cell.partition("-")
        return bool(dash) and int(low) <= int(value) <= int(high)

    rows = release.astype(str).to_dict("records")
    return [
        sum(all(fits(row[name], person[name]) for name in keys) for row in rows)
        for person in people().astype(str).to_dict("records")
    ]


@pytest.mark.parametrize("method", ["greedy", "k-member"])
def test_attackers_who_know_some_columns(method: str) -> None:
    table = af.Table(people(), PEOPLE)
    release = af.anonymize(table, method, k=3, seed=2**100).release(seed=2**101)
    sets = [["zip", "age"], ["sex"]]
    seen = af.attack(table, release, ["prosecutor", "marketer"], sets=sets)
    assert seen["keys"].tolist() == ["zip, age"] * 2 + ["sex"] * 2
    for keys in sets:
        among = covering(release.frame, keys)
        rows = seen[seen["keys"] == ", ".join(keys)].set_index("attacker")
        assert rows.loc["prosecutor", "worst"] == pytest.approx(1 / min(among))
        assert rows.loc["marketer", "success"] == pytest.approx(np.mean([1 / many for many in among]))
        assert rows.loc["marketer", "sentence"].startswith(f"By {', '.join(keys)} alone: ")
    whole = af.attack(table, release, ["prosecutor"]).iloc[0]
    assert "keys" not in whole
    everything = af.attack(table, release, ["prosecutor"], sets=[["age", "sex", "zip"]]).iloc[0]
    assert (everything["worst"], everything["targets"]) == (whole["worst"], whole["targets"])


def test_key_sets_without_names_of_attackers_in_files_and_without_the_original(tmp_path: Path) -> None:
    table = af.Table(people(), PEOPLE)
    release = af.anonymize(table, "k-member", k=3, seed=2**100).release(seed=2**101)
    usual = af.attack(table, release, sets=[["age"], ["sex", "zip"]])
    assert set(usual["attacker"]) == {"prosecutor", "marketer", "linker", "linkable-columns", "homogeneity"}
    assert len(usual) == 10
    in_flow = af.attack(
        table, release, [{"key-sets": {"sets": [["age"]], "attackers": ["linker"]}}, "linker"]
    )
    assert in_flow["attacker"].tolist() == ["linker", "linker"]
    assert in_flow["keys"].iloc[0] == "age"
    assert in_flow["worst"].iloc[0] <= in_flow["worst"].iloc[1]
    alone = af.attack(table.schema, release.frame, "prosecutor", k=3, sets=[["age"], ["sex"]])
    for name, worst in zip(("age", "sex"), alone["worst"], strict=True):
        assert worst == 1 / release.frame[name].value_counts().min()


@loop(
    ("sets", "words"),
    [
        ([["age", "ill"]], "'ill' is sensitive; make it one in the schema"),
        ([["age", "shoe"]], "'shoe' is not in the schema"),
        ([], "list of lists of quasi-identifiers"),
        (["age"], "list of lists of quasi-identifiers"),
        ([[]], "list of lists of quasi-identifiers"),
        ([[3]], "list of lists of quasi-identifiers"),
    ],
)
def test_key_sets_that_are_none_are_one_sentence(sets: object, words: str) -> None:
    table = af.Table(people(), PEOPLE)
    with pytest.raises(ParameterError, match=words):
        af.attack(table, people().astype(str), "prosecutor", k=2, sets=sets)
    if sets:
        with pytest.raises(ParameterError, match=words):
            af.attack(table, people().astype(str), {"key-sets": {"sets": sets}}, k=2)
    with pytest.raises(ParameterError, match="key-sets: has the parameters sets"):
        af.attack(table, people().astype(str), "key-sets", k=2)


def test_the_shell_verifies_and_attacks_each_key_set(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.yaml").write_text(json.dumps({"columns": PEOPLE}))
    table = af.Table.read(tmp_path / "people.csv", tmp_path / "schema.yaml")
    af.anonymize(table, "k-member", k=3, seed=2**100).release(seed=2**101).write(tmp_path / "r.csv")
    files = [
        "--original", tmp_path / "people.csv", "--release", tmp_path / "r.csv", "--schema", tmp_path / "schema.yaml",
        "--k", 3, "--keys", "age,sex", "--keys", "zip",
    ]  # fmt: skip
    status, out, _ = shell(capsys, "verify", *files, "--json")
    checks = json.loads(out)["checks"]
    assert status == 0
    assert [check["criterion"] for check in checks].count("key-sets") == 2
    assert [item["criterion"] for item in checks].count("covers") == 1
    status, out, _ = shell(capsys, "attack", *files, "--attacker", "prosecutor", "--json")
    assert [row["keys"] for row in json.loads(out)] == ["age, sex", "zip"]
    assert "By zip alone" in shell(capsys, "attack", *files)[1]
    status, _, err = shell(capsys, "attack", *files, "--keys", "ill")
    assert (status, "'ill' is sensitive" in err) == (2, True)
    assert shell(capsys, "attack", *files, "--keys", ",")[0] == 2


def test_a_flow_attacks_each_key_set(tmp_path: Path) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    columns = "".join(f"    {name}: {json.dumps(column)}\n" for name, column in PEOPLE.items())
    flow = flow_text(
        "people",
        columns,
        "steps:\n  - anonymize: {algorithm: k-member, k: 3}\n  - draw: {}\n"
        "  - attack: [{key-sets: {sets: [[age, sex], [zip]], attackers: [prosecutor]}}]\n"
        "publish: {table: out/people.csv, report: out/report.html}\n",
    )
    (tmp_path / "people.yaml").write_text(flow)
    report = af.run(tmp_path / "people.yaml")
    assert report.attacks["keys"].tolist() == ["age, sex", "zip"]
    assert all(text.startswith("By ") for text in report.attacks["sentence"])
    # who may own a row by some columns is found by the originals: these figures are the owner's
    assert "By age, sex alone" not in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    (tmp_path / "wrong.yaml").write_text(flow.replace("[[age, sex], [zip]]", "[age]"))
    with pytest.raises(af.errors.FlowError, match="list of lists of quasi-identifiers"):
        af.run(tmp_path / "wrong.yaml")
