"""A newcomer's flow: from a file to a release in three commands."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import anonflow as af
from anonflow import cli
from anonflow.engine.flows.loader import load_flow


def shell(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[Any, str, str]:
    with pytest.raises(SystemExit) as left:
        cli.main([str(each) for each in arguments])
    return left.value.code, *capsys.readouterr()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    af.datasets.census_like(60, seed=1)[["Age", "Gender", "Salary-class"]].to_csv("people.csv", index=False)
    return tmp_path


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        return True


def test_a_release_in_three_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = shell(capsys, "init", "people.csv", "--yes", "--k", 5, "--algorithm", "mondrian")
    assert (status, out) == (
        0, "wrote people.flow.yaml; check the roles in it, then: anonflow run people.flow.yaml\n",
    )  # fmt: skip
    assert shell(capsys, "validate", "people.flow.yaml")[0] == 0
    assert shell(capsys, "run", "people.flow.yaml", "--quiet")[0] == 0
    assert len(pd.read_csv(folder / "out" / "people.csv")) == 60
    assert (folder / "out" / "people.html").is_file()


@pytest.mark.parametrize(
    ("stem", "name"),
    [("fälle", "falle"), ("журнал", "table"), ("_år 2025", "ar-2025"), ("名.v2", "v2"), ("a" * 90, "a" * 64)],
)
def test_a_file_may_have_any_name(stem: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A flow's name has plain letters alone, and `init` wrote fälle into it, which the flow then refused."""
    Path("people.csv").rename(f"{stem}.csv")
    assert shell(capsys, "init", f"{stem}.csv", "--yes", "--k", 5, "--algorithm", "mondrian")[0] == 0
    assert load_flow(f"{stem}.flow.yaml").name == name


def test_without_answers_the_method_is_auto(capsys: pytest.CaptureFixture[str]) -> None:
    assert shell(capsys, "init", "people.csv", "--yes")[0] == 0
    (run,) = load_flow("people.flow.yaml").runs
    assert (run.anonymize.algorithm, run.anonymize.k, run.budget) == ("auto", 10, 10.0)


@pytest.mark.parametrize(("k", "threshold"), [(2, 0.51), (5, 0.21), (10, 0.11), (12, 0.09), (200, 0.01)])
def test_checks_a_report_and_a_threshold_are_in_the_flow(
    k: int, threshold: float, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shell(capsys, "init", "people.csv", "--yes", "--k", k)[0] == 0
    spec = load_flow("people.flow.yaml").spec
    assert spec.steps.draw is not None
    assert spec.steps.verify == ("covers", "guarantee")
    assert (spec.publish.report.file, spec.publish.report.threshold) == ("out/people.html", threshold)
    assert 1 / k < threshold < 1 / k + 0.0101


def test_blanks_are_values_for_every_method(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.read_csv("people.csv")
    frame["Age"] = frame["Age"].astype(float).mask(frame.index % 4 == 0)
    for algorithm in ("greedy", "pattern-guided", "full-domain"):
        # levels of categories need hierarchies, which this table has not
        columns = ["Age", "Salary-class"] if algorithm == "full-domain" else list(frame)
        frame[columns].to_csv("blanks.csv", index=False)
        output = f"{algorithm}.yaml"
        arguments = ("blanks.csv", "--yes", "--k", 5, "--algorithm", algorithm, "-o", output)
        assert shell(capsys, "init", *arguments)[0] == 0
        assert load_flow(output).schema["Age"].missing == "value"
        assert shell(capsys, "run", output, "--quiet", "--again")[0] == 0


def test_it_asks_what_others_can_know(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [
        "Age=i",
        "Age,Sex=ide",
        "Age, Gender=ide",
        "Salary-class=quasi",
        "Age=quasi-identifier",
        "",
        "1",
        "4",
    ]
    monkeypatch.setattr("sys.stdin", Terminal("".join(f"{answer}\n" for answer in answers)))
    status, _, err = shell(capsys, "init", "people.csv", "-o", "asked.yaml")
    assert status == 0
    assert "Age: quasi-identifier; it has" in err
    assert "unknown role 'i'" in err  # it may be two roles
    assert "unknown column 'Sex'" in err
    assert "  Age, Gender: identifier" in err
    assert "at least 2" in err
    flow = load_flow("asked.yaml")
    assert {name: flow.schema[name].role for name in flow.schema} == {
        "Age": "quasi-identifier", "Gender": "identifier", "Salary-class": "quasi-identifier",
    }  # fmt: skip
    assert flow.schema["Salary-class"].kind == "categorical"
    assert flow.runs[0].anonymize.k == 4


def test_who_leaves_has_no_file(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(""))  # the end of what is typed
    monkeypatch.setattr(os, "_exit", sys.exit)
    status, _, err = shell(capsys, "init", "people.csv")
    assert status == 130, err
    assert {path.name for path in folder.iterdir()} == {"people.csv"}


def test_a_role_that_is_named_is_not_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("\n"))
    roles = ["--role", "Age,Gender=identifier", "--role", "Gender=insensitive"]
    assert (
        shell(capsys, "init", "people.csv", *roles, "--role", "Salary-class=quasi-identifier", "--k", 3)[0]
        == 0
    )
    schema = load_flow("people.flow.yaml").schema
    assert [schema[name].role for name in schema] == ["identifier", "insensitive", "quasi-identifier"]


def test_the_form_of_a_file_and_its_place_are_in_the_flow(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "flows").mkdir()
    frame = pd.read_csv("people.csv").assign(Town=["Zürich", "Genève", "Köln"] * 20)
    frame.to_csv("staff.csv", index=False, sep=";", encoding="latin-1")
    arguments = ("init", "staff.csv", "--yes", "-o", "flows/staff.yaml", "--publish", "public/staff.parquet",
        "--algorithm", "mondrian", "--k", 5)  # fmt: skip
    assert shell(capsys, *arguments)[0] == 0
    spec = load_flow("flows/staff.yaml").spec
    assert (spec.table.source.csv, spec.table.source.delimiter) == ("../staff.csv", ";")
    assert spec.publish.table == "../public/staff.parquet"
    assert shell(capsys, "run", "flows/staff.yaml", "--quiet")[0] == 0
    assert len(pd.read_parquet("public/staff.parquet")) == 60


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nobody.csv"], "nobody.csv"),
        (["people.csv", "-o", "people.csv"], "exists already"),
        (["people.csv", "--role", "Age"], "--role takes COLUMNS=ROLE"),
        (["people.csv", "--role", "age=sensitive"], "did you mean 'Age'?"),
        (["people.csv", "--role", "Age=sensible"], "did you mean 'sensitive'?"),
        (["people.csv", "--k", "1"], "--k"),
        (["people.csv", "--algorithm", "greed"], "did you mean 'greedy'?"),
        (["people.csv", "--publish", "out/people.xyz"], "people.xyz"),
        (
            ["people.csv", "--publish", "people2.csv"],
            "anonflow: people.flow.yaml: the owner's folder would lie inside the folder that is published to; publish to",
        ),
    ],
)
def test_wrong_words_leave_no_file(
    arguments: list[str], words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = shell(capsys, "init", *arguments, "--yes")
    assert (status, out) == (2, "")
    assert words in err
    assert {path.name for path in folder.iterdir()} == {"people.csv"}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_name_that_no_flow_can_hold(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = os.fsdecode(b"Stra\xdfe.csv")
    (folder / "people.csv").rename(folder / file)
    status, out, err = shell(capsys, "init", file, "--yes", "-o", "people.yaml")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "rename it, or set LANG=C.UTF-8" in err
    assert not (folder / "people.yaml").exists()


def test_what_is_left_out_by_guess_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.read_csv("people.csv", dtype=str)
    columns = {"x7": ["Mark Mason"], "x8": ["mark@example.org"], "died": ["x"]}
    frame = frame.assign(**{name: cells + [None] * 59 for name, cells in columns.items()})
    frame.to_csv("sparse.csv", index=False)
    status, _, err = shell(
        capsys, "init", "sparse.csv", "--yes", "--k", 5, "--algorithm", "mondrian", "--role", "x8=identifier"
    )
    assert status == 0
    assert err == "left out of the release by guess: x7; to publish one, add --role COLUMNS=ROLE\n"
    assert shell(capsys, "run", "sparse.flow.yaml", "--quiet")[0] == 0
    release = pd.read_csv("out/sparse.csv", dtype=str)
    assert "Mark" not in release.to_csv()
    assert not (release["died"] == "x").any()


FORMS = "born;weight;city\n" + "".join(
    f"{day}.{day % 12 + 1}.1984;{60 + day},5;{city}\n" for day in range(1, 29) for city in ("Ulm", "Bonn")
)


def test_the_forms_of_numbers_and_dates_are_in_the_flow(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "forms.csv").write_text(FORMS)
    assert shell(capsys, "init", "forms.csv", "--yes", "--k", 3, "--algorithm", "mondrian")[0] == 0
    text = (folder / "forms.flow.yaml").read_text()
    assert (
        "# weight: its numbers are written with a decimal comma (61,5 is 61.5; 62,5 is 62.5; 63,5 is 63.5)"
        in text
    )
    flow = load_flow("forms.flow.yaml")
    assert flow.schema.to_mapping()["weight"] == {
        "role": "quasi-identifier",
        "kind": "numeric",
        "decimal": ",",
    }
    assert flow.schema.to_mapping()["born"]["dates"] == "d.m.y"
    assert shell(capsys, "run", "forms.flow.yaml", "--quiet")[0] == 0
    status, out, _ = shell(capsys, "schema", "forms.csv")
    assert status == 0
    assert 'decimal: ","' in out.replace("'", '"')
    status, out, _ = shell(capsys, "prepare", "forms.csv", "--schema", "forms.flow.yaml")
    assert status == 0
    assert "numbers weight: decimal ," in out


def test_another_role_keeps_the_form(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "forms.csv").write_text(FORMS)
    arguments = ("--yes", "--k", 3, "--role", "weight=sensitive", "--role", "born=identifier")
    assert shell(capsys, "init", "forms.csv", *arguments)[0] == 0
    columns = load_flow("forms.flow.yaml").schema.to_mapping()
    assert columns["weight"] == {"role": "sensitive", "decimal": ","}
    assert columns["born"] == {"role": "identifier"}


def test_a_source_says_which_of_two_readings_is_meant(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "two.csv").write_text(
        "pay;city\n" + "".join(f"{n}.{n}00;Ulm\n{n}.234;Bonn\n" for n in range(1, 10))
    )
    status, out, _ = shell(capsys, "schema", "two.csv")
    assert status == 0
    assert "can be read in 2 ways" in out
    assert "kind: categorical" in out
    assert shell(capsys, "init", "two.csv", "--yes", "--source", "thousands=.", "--k", 3)[0] == 0
    flow = load_flow("two.flow.yaml")
    assert flow.schema.to_mapping()["pay"] == {
        "role": "quasi-identifier",
        "kind": "numeric",
        "thousands": ".",
    }
    assert "--source takes" in shell(capsys, "schema", "two.csv", "--source", "decimal=;")[2]


def test_decimal_commas_without_quotes_are_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "commas.csv").write_text("sex,age,w\nF,30,1,25\nM,31,2\nF,32,3,5\nM,30,4\nF,31,5\n")
    status, _, err = shell(capsys, "schema", "commas.csv")
    assert status == 2
    assert (
        "2 rows have more or fewer than 3 cells (lines 2, 4), as decimal commas without quotes make them; put"
        in err
    )


def test_a_release_in_the_form_of_its_source_is_verified(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "forms.csv").write_text(FORMS)
    assert shell(capsys, "init", "forms.csv", "--yes", "--k", 3, "--algorithm", "mondrian")[0] == 0
    flow = folder / "forms.flow.yaml"
    text = flow.read_text()
    flow.write_text(text.replace("dates: d.m.y", "dates: d.m.y, write: source"))
    assert shell(capsys, "run", flow, "--quiet")[0] == 0
    released = pd.read_csv(folder / "out" / "forms.csv", dtype=str)
    assert released["born"].str.fullmatch(r"\d\d\.\d\d\.1984(/\d\d\.\d\d\.1984)?|\*").all()
    arguments = ("--release", "out/forms.csv", "--schema", flow, "--k", 3)
    status, out, err = shell(capsys, "verify", "--original", "forms.csv", *arguments)
    assert status == 0, out + err
    assert shell(capsys, "describe", "out/forms.csv")[0] == 0


def test_verify_takes_the_separators_of_the_flows_source(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "forms.csv").write_text(FORMS)
    (folder / "wages.yaml").write_text(
        'flow: wages\nversion: 1\ntable:\n  source: {csv: forms.csv, delimiter: ";", decimal: ","}\n'
        "  columns:\n    weight: {role: quasi-identifier, kind: numeric}\n    city: {role: sensitive}\n"
        "steps:\n  - anonymize: {algorithm: mondrian, k: 3}\npublish: {table: out/wages.csv}\n"
    )
    assert shell(capsys, "run", "wages.yaml", "--quiet")[0] == 0
    arguments = ("--release", "out/wages.csv", "--schema", "wages.yaml", "--k", 3)
    status, out, err = shell(capsys, "verify", "--original", "forms.csv", *arguments)
    assert status == 0, out + err
    assert shell(capsys, "verify", *arguments)[0] == 0
