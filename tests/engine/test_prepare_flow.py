"""Steps before in flows: the same release in memory and in pieces, shown by the shell, refused with their place."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from anonflow import engine
from anonflow.engine.flows.loader import load_flow
from anonflow.errors import FlowError
from tests.cases.runs import shell

FLOW = """\
flow: prepared
version: 1
table:
  source: {{{source}, pieces: {pieces}}}
  prepare:
    - filter: {{column: age, at-least: 18}}
    - top-code: {{column: age, at: 80}}
    - rename: {{column: town, to: city}}
    - normalize-text: {{column: city, case: lower}}
    - date-part: {{column: born, part: year}}
    - round: {{column: income, to: 1000}}
    - prefix: {{column: zip, length: 5}}
  columns:
    age: {{role: quasi-identifier, kind: numeric}}
    city: {{role: quasi-identifier, kind: suppression}}
    born: {{role: quasi-identifier, kind: numeric}}
    zip: {{role: quasi-identifier, kind: positions}}
    trade: {{role: quasi-identifier, kind: hierarchy, hierarchy: {{prefixes: nace}}}}
    income: {{role: sensitive}}
    note: {{role: insensitive}}
partition: {{order: lexicographic}}
steps:
  - anonymize: {{algorithm: mondrian, k: 3}}
  - draw: {{}}
  - verify: [covers, guarantee]
publish: {{table: out/release.csv, report: out/report.html}}
"""

N = 60


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [10 + (7 * i) % 83 for i in range(N)],
            "town": [["Kiel", " kiel", "Bonn"][i % 3] for i in range(N)],
            "born": [f"{1930 + i}-0{1 + i % 9}-11" for i in range(N)],
            "zip": [["01067", "01067-1234", "80331"][i % 3] for i in range(N)],
            "trade": [["62.01", "62.1", "01.1"][i % 3] for i in range(N)],
            "income": [None if i % 11 == 0 else 777 * i for i in range(N)],
            "note": [f"n{i % 4}" for i in range(N)],
        }
    )


def flow_in(folder: Path, source: str, pieces: str) -> Path:
    folder.mkdir()
    people().to_csv(folder / "people.csv", index=False)
    people().to_parquet(folder / "people.parquet", index=False)
    path = folder / "flow.yaml"
    path.write_text(FLOW.format(source=source, pieces=pieces), encoding="utf-8")
    return path


@pytest.mark.parametrize("source", ["csv: people.csv", "parquet: people.parquet"])
def test_the_same_release_in_memory_and_in_pieces(tmp_path: Path, source: str) -> None:
    texts = []
    for pieces in ("false", "13"):
        path = flow_in(tmp_path / pieces, source, pieces)
        report = engine.run(path, seed=1 << 100)
        assert report.ok, report.problems
        filtered = int((people()["age"] < 18).sum())
        assert f"{filtered} rows are left out by a filter" in " ".join(report.warnings)
        release = pd.read_csv(path.parent / "out" / "release.csv", dtype=str)
        assert len(release) == N - filtered
        assert set(release["city"]) <= {"kiel", "bonn", "*"}
        assert {len(code) for code in release["zip"]} <= {1, 5}
        assert set(release["trade"]) <= {"62.01", "62.1", "01.1", "62*", "62.0*", "*"}
        assert all(float(income) % 1000 == 0 for income in release["income"].dropna())
        assert f"{filtered} rows were left out" in (path.parent / "out" / "report.html").read_text("utf-8")
        record = json.loads((path.parent / "owner" / "prepared" / "record.json").read_text("utf-8"))
        assert record["prepare"][1] == {"top-code": {"column": "age", "at": 80}}
        release["income"] = release["income"].astype(float)
        texts.append(release.sort_values(list(release.columns)).to_csv(index=False))
    assert texts[0] == texts[1]


def test_the_shell_shows_what_steps_change_and_verifies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = flow_in(tmp_path / "a", "csv: people.csv", "false")
    assert engine.run(path, seed=1 << 100).ok
    people_file, release = str(path.parent / "people.csv"), str(path.parent / "out" / "release.csv")
    status, out, _ = shell(capsys, "prepare", people_file, "--schema", path, "--json")
    assert status == 0
    shown = json.loads(out)
    assert [row["column"] for row in shown] == ["age", "age", "town", "city", "born", "income", "zip"]
    assert shown[0]["removed"] == int((people()["age"] < 18).sum())
    assert "top-code age: at 80" in shell(capsys, "prepare", people_file, "--schema", path)[1]
    files = ["--original", people_file, "--release", release, "--schema", path]
    assert shell(capsys, "verify", *files, "--k", "3")[0] == 0


def test_problems_have_their_place(tmp_path: Path) -> None:
    path = flow_in(tmp_path / "a", "csv: people.csv", "false")
    path.write_text(path.read_text("utf-8").replace("at: 80", "att: 80"), encoding="utf-8")
    with pytest.raises(FlowError) as refused:
        load_flow(path)
    assert any(
        "flow.yaml:7:" in problem and "did you mean 'at'" in problem for problem in refused.value.problems
    )


def test_a_schema_without_steps_has_nothing_to_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    schema = tmp_path / "schema.yaml"
    schema.write_text("columns:\n  age: {role: quasi-identifier, kind: numeric}\n", encoding="utf-8")
    status, _, error = shell(capsys, "prepare", tmp_path / "people.csv", "--schema", schema)
    assert status == 2
    assert "no steps under 'prepare:'" in error
