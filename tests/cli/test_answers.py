"""What ``--json`` answers is what its JSON Schema says, for every command that has the option."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.main import get_command

import anonflow as af
from anonflow.cli import exit_status  # noqa: F401  (importing puts every command among the others)
from anonflow.cli.answers import answers_schema
from anonflow.cli.command_line import app
from tests.cases.runs import shell

FLOW = """\
flow: people
version: 1
table:
  source: {csv: people.csv}
  prepare: [top-code: {column: Age, at: 80}]
  columns:
    Age: {role: quasi-identifier, kind: numeric}
    Gender: {role: quasi-identifier, kind: categorical}
    Salary-class: {role: sensitive}
steps:
  - anonymize: {algorithm: mondrian, k: 3}
  - draw: {}
  - verify: [covers, guarantee]
publish: {table: out/r.csv}
"""


def validator(**more: str) -> Any:
    return jsonschema.Draft202012Validator({**answers_schema(), **more})


def is_answer(command: str, text: str) -> Any:
    """The answer, if it is as the schema of the command says."""
    answer = json.loads(text)
    of_command = validator(**{"$ref": f"#/$defs/{command}"})
    assert [error.message for error in of_command.iter_errors(answer)] == []
    return answer


def test_every_command_that_answers_in_json_has_its_schema() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    answering = {
        name
        for name, command in commands.items()
        if any("--json" in parameter.opts for parameter in command.params)
    }
    assert answering == set(answers_schema()["$defs"])
    assert set(commands) - answering == {"dashboard"}
    validator().check_schema(answers_schema())


def test_the_schema_refuses_what_lacks_a_key() -> None:
    assert not validator(**{"$ref": "#/$defs/verify"}).is_valid({"holds": True})


def test_answers_are_as_their_schema_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    columns = ["Age", "Gender", "Salary-class"]
    af.datasets.census_like(60, seed=7)[columns].to_csv("people.csv", index=False)
    Path("flow.yaml").write_text(FLOW)
    Path("bad.yaml").write_text("flow: bad\n")

    def answer(command: str, *arguments: object, status: int = 0) -> Any:
        ended, out, err = shell(capsys, command, *arguments, "--json")
        assert ended == status, err
        return is_answer(command, out)

    assert answer("validate", "flow.yaml", "bad.yaml", status=2)[0]["flow"] == "people"
    assert answer("run", "flow.yaml")["published"][0] == "out/r.csv"
    planned = answer("plan", "flow.yaml", "--seconds", "0.1")
    assert planned["steps"][0]["step"] == "load"
    assert all(run["seconds"] > 0 and run["records"] <= 60 for run in planned["runs"])
    options = ("--release", "out/r.csv", "--schema", "flow.yaml")
    assert answer("verify", *options, "--k", 3)["holds"] is True
    assert answer("verify", *options, "--k", 30, status=1)["holds"] is False
    assert answer("describe", "out/r.csv")["rows"] == 60
    assert answer("describe", *options)["figures"]
    assert answer("attack", *options, "--k", 3)
    assert answer("risk", "people.csv", "--schema", "flow.yaml", "--owner")["riskiest"]
    assert answer("prepare", "people.csv", "--schema", "flow.yaml")[0]["column"] == "Age"
    table = ("people.csv", "--schema", "flow.yaml", "--k", "2", "--algorithms", "mondrian")
    assert answer("compare", *table)["runs"][0]["algorithm"] == "mondrian"
    assert list(answer("schema", "people.csv")["columns"]) == columns
    assert answer("init", "people.csv", "--yes", "-o", "new.yaml") == {"flow": "new.yaml"}
    wanted = FLOW + "target: {risk: 0.5, time: 10m}\n"
    Path("wanted.yaml").write_text(wanted)
    assert answer("search", "wanted.yaml", "-o", "picked.yaml", "--quiet")["ok"] is True
    assert answer("run", "picked.yaml")["ok"] is True
    assert answer("algorithms")
    assert answer("algorithms", "greedy")
    assert answer("datasets")
    ended, out, _ = shell(capsys, "schema", "--answers")
    assert (ended, json.loads(out)) == (0, answers_schema())
