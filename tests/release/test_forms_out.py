"""Releases in the forms that people hand out: SPSS, Stata, folders of Parquet files; written, read back, verified, attacked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.errors import DataError, FlowError
from anonflow.release import ReleaseWarning, tables
from anonflow.table.files import statistics_writing
from anonflow.table.files.statistics_writing import write_statistics, writing_problems
from tests.cases.runs import shell

QI = {"role": "quasi-identifier"}
SCHEMA: dict[str, Any] = {
    "age": {**QI, "kind": "numeric"},
    "sex": {**QI, "kind": "categorical"},
    "ill": {"role": "sensitive"},
    "cost": {"role": "insensitive"},
    "insured": {"role": "insensitive"},
}


def people(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 90, n),
            "sex": [None if at == 5 else text for at, text in enumerate(rng.choice(["F", "M"], n))],
            "ill": rng.choice(["flu", "cold", "größer, {als}"], n),
            "cost": rng.choice([1.5, 2.25, 1e9 + 0.125], n),
            "insured": rng.choice([True, False], n),
        }
    )


def flow_in(folder: Path, table: str) -> Path:
    people().to_csv(folder / "people.csv", index=False)
    path = folder / "flow.yaml"
    path.write_text(
        "flow: forms\nversion: 1\ntable:\n  source: {csv: people.csv}\n"
        f"  columns: {json.dumps(SCHEMA)}\n"
        "steps:\n  - anonymize: {algorithm: greedy, k: 3}\n  - draw: {}\n  - verify: [covers, guarantee]\n"
        f"publish: {{table: {table}}}\n"
    )
    return path


@pytest.mark.parametrize("name", ["release.sav", "release.zsav", "release.dta", "release.parquet/"])
def test_a_release_is_written_read_verified_and_attacked(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = af.Table(people(), SCHEMA)
    release = af.anonymize(table, "greedy", k=3).release(seed=1)
    place = f"{tmp_path}/{name}"
    release.write(place)
    again = af.read_release(place.rstrip("/"))
    for column in release.frame.columns:
        texts = [
            ["" if pd.isna(cell) else str(cell) for cell in frame[column]]
            for frame in (release.frame, again.frame)
        ]
        assert texts[0] == texts[1], column
    check = af.verify(table, place, ["covers", "k-regular"], 3)
    assert check, check.frame()
    assert af.verify(table, place, k=3)
    people().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.yaml").write_text(f"columns: {json.dumps(SCHEMA)}\n")
    common = ("--release", place, "--schema", tmp_path / "schema.yaml", "--k", 3)
    for command in ("verify", "attack"):
        status, _, problems = shell(capsys, command, *common, "--original", tmp_path / "people.csv")
        assert status == 0, problems
    # without the original, k and the promise are those of the description beside
    status, output, _ = shell(capsys, "verify", *common[:4])
    assert status == 1
    assert "needs the original table" in output
    assert "description" in output


def test_texts_are_codes_with_labels_for_other_programs(tmp_path: Path) -> None:
    import pyreadstat

    frame = pd.DataFrame({"sex": ["M", None, "F"], "n": [1, 2, 3], "far": ["x" * 200, "y", ""]})
    for name, read in (("t.sav", pyreadstat.read_sav), ("t.dta", pyreadstat.read_dta)):
        write_statistics(frame, tmp_path / name)
        cells, about = read(tmp_path / name)
        assert about.variable_value_labels == {"sex": {1: "F", 2: "M"}}
        assert cells["sex"].fillna(0).tolist() == [2, 0, 1]
        assert cells["far"].tolist() == ["x" * 200, "y", ""]


@pytest.mark.parametrize("ending", [".sav", ".dta"])
def test_numbers_of_a_csv_file_are_numbers_for_other_programs(ending: str, tmp_path: Path) -> None:
    """A weight is weighted with: its code would count in its place. Codes with zeros in front stay texts, and so do sets of numbers."""
    import pyreadstat

    weights, codes = ["100.0", "33.5"] * 2, ["01", "10"] * 2
    data = pd.DataFrame(
        {"size": ["1", "2", "1", "2"], "weight": weights, "code": codes, "pay": ["7", None, "7", "8"]}
    )
    data.to_csv(tmp_path / "people.csv", index=False)
    schema = {
        "size": {**QI, "kind": "categorical"},
        "weight": {"role": "insensitive"},
        "code": {"role": "insensitive"},
        "pay": {"role": "sensitive"},
    }
    table = af.Table.read(tmp_path / "people.csv", schema)
    with pytest.warns(ReleaseWarning, match="unique"):
        release = af.anonymize(table, "mondrian", k=2).release(seed="5e" * 16)
    path = tmp_path / f"release{ending}"
    release.write(path)
    cells, about = getattr(pyreadstat, f"read_{ending[1:]}")(path)
    assert sorted(cells["weight"]) == sorted(map(float, weights))
    assert sorted(cells["pay"].dropna()) == [7, 7, 8]
    assert list(about.variable_value_labels) == ["size", "code"]
    check = af.verify(table, path, ["covers", "guarantee"], k=2, certificate=release.certificate)
    assert check, check.frame().to_string()
    assert all(each.criterion != "description" for each in check)
    described = af.read_release(path).about
    assert described is not None
    assert [described[name].type for name in ("weight", "pay", "code")] == ["number", "integer", "text"]


def test_numbers_beside_hidden_ones_are_no_codes(tmp_path: Path) -> None:
    import pyreadstat

    write_statistics(pd.DataFrame({"weight": ["33.5", "*", "2"], "sex": ["F", "*", "M"]}), tmp_path / "t.sav")
    cells, about = pyreadstat.read_sav(tmp_path / "t.sav")
    assert cells["weight"].tolist() == ["33.5", "*", "2"]
    assert list(about.variable_value_labels) == ["sex"]


def test_what_such_files_do_not_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="column 'text': has cells that such a file does not hold"):
        write_statistics(pd.DataFrame({"text": ["ends in a blank ", "b"]}), tmp_path / "t.sav")
    with pytest.raises(DataError, match="column 'native-country'"):
        write_statistics(pd.DataFrame({"native-country": [1]}), tmp_path / "t.dta")
    with pytest.raises(DataError, match=r"cannot write these columns; publish \.csv"):
        write_statistics(pd.DataFrame({"pay": [np.inf, 1.0]}), tmp_path / "t.dta")
    assert len(writing_problems(["age", "AGE", "if", "a b", "_x", "n" * 33])) == 5


def test_a_flow_with_such_a_column_is_refused_before_it_runs(tmp_path: Path) -> None:
    path = flow_in(tmp_path, "out/r.dta")
    path.write_text(path.read_text().replace('"cost"', '"cost in euros"'))
    with pytest.raises(FlowError, match="'cost in euros': SPSS and Stata take names"):
        af.run(path)


def test_a_flow_without_the_package_is_refused_before_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics_writing, "find_spec", lambda name: None)
    with pytest.raises(FlowError, match="need the package pyreadstat"):
        af.run(flow_in(tmp_path, "out/r.sav"))


def test_a_folder_of_files_is_published_whole_and_replaced_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "FILE_ROWS", 25)
    path = flow_in(tmp_path, "out/release.parquet/")
    report = af.run(path)
    assert report.ok
    folder = tmp_path / "out" / "release.parquet"
    names = [f"part-{number:06d}.parquet" for number in range(3)]
    assert sorted(file.name for file in folder.iterdir()) == names
    assert sorted(file.name for file in folder.parent.iterdir()) == ["datapackage.json", "release.parquet"]
    rows = pd.concat([pd.read_parquet(file) for file in sorted(folder.iterdir())])
    assert sorted(rows["ill"]) == sorted(people()["ill"])
    assert af.verify(af.Table(people(), SCHEMA), folder, k=3)
    assert af.run(path).unchanged
    monkeypatch.setattr(tables, "FILE_ROWS", 1000)
    assert af.run(path, again=True).ok
    assert [file.name for file in folder.iterdir()] == names[:1]
    assert sorted(file.name for file in folder.parent.iterdir()) == ["datapackage.json", "release.parquet"]


@pytest.mark.parametrize("name", ["release.parquet/", "release.sav"])
def test_a_table_on_disk_is_published_in_the_same_forms(name: str, tmp_path: Path) -> None:
    path = flow_in(tmp_path, f"out/{name}")
    path.write_text(
        path.read_text()
        .replace("{csv: people.csv}", "{csv: people.csv, pieces: true}")
        .replace("steps:", "partition: {size: 20}\nsteps:")
    )
    report = af.run(path)
    assert report.ok
    assert report.release is None
    place = tmp_path / "out" / name
    assert af.verify(af.Table.read(tmp_path / "people.csv", SCHEMA), place, ["covers", "k-regular"], 3)
    assert len(af.read_release(place).frame) == 60


def test_a_folder_of_others_is_not_replaced(tmp_path: Path) -> None:
    path = flow_in(tmp_path, "out/release.parquet/")
    (tmp_path / "out" / "release.parquet").mkdir(parents=True)
    (tmp_path / "out" / "release.parquet" / "mine.parquet").write_bytes(b"")
    with pytest.raises(FlowError, match="has files that anonflow did not write"):
        af.run(path)


def test_folders_of_another_name_are_read_as_parquet(tmp_path: Path) -> None:
    table = af.Table(people(), SCHEMA)
    release = af.anonymize(table, "greedy", k=3).release(seed=1)
    folder = tmp_path / "handed over"
    folder.mkdir()
    for number in range(2):
        release.frame.iloc[number * 30 : (number + 1) * 30].to_parquet(
            folder / f"{number}.parquet", index=False
        )
    assert af.verify(table, folder, ["covers"], 3)
    assert len(af.attack(table, folder, "prosecutor", k=3)) == 1


def test_frames_with_a_schema_are_attacked_and_compared() -> None:
    frame = people()
    release = af.anonymize(frame, "greedy", k=3, schema=SCHEMA).release(seed=1)
    attacked = af.attack(frame, release, "prosecutor", schema=SCHEMA)
    assert attacked.equals(af.attack(af.Table(frame, SCHEMA), release, "prosecutor"))
    assert af.compare(frame, ["greedy"], 3, schema=SCHEMA)["checks"].notna().all()
