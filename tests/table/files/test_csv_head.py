"""Shapes of CSV files that people have: what is read, what is refused, in memory and in pieces alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import anonflow as af
from anonflow.cli.commands import shape_of
from anonflow.errors import DataError
from anonflow.table.files.csv_form import SAMPLE
from anonflow.table.files.csv_head import CsvShape
from anonflow.table.files.csv_reading import csv_batches, csv_form, read_csv
from tests.cases.runs import shell
from tests.strategies import loop

QI = {"role": "quasi-identifier", "kind": "numeric"}
ROWS = "23,Ulm\n25,Kiel\n31,Ulm\n"
TABLE = {"age": ["23", "25", "31"], "town": ["Ulm", "Kiel", "Ulm"]}


def both(folder: Path, text: str, *, encoding: str = "utf-8", **shape: Any) -> dict[str, list[Any]]:
    """Return the cells of a file, which are the same in memory and in pieces; its form is detected."""
    file = folder / "people.csv"
    file.write_bytes(text.encode(encoding))
    settings: dict[str, Any] = {"delimiter": "auto", "encoding": "auto", "shape": CsvShape(**shape)}
    frame = read_csv(file, **settings)
    pieces = pa.Table.from_batches(list(csv_batches(file, **settings))).to_pandas()
    pd.testing.assert_frame_equal(frame, pieces)
    return frame.to_dict("list")


def problem(folder: Path, text: str, **shape: Any) -> str:
    """Return the problem of a file, which is the same in memory and in pieces; it has no cell."""
    with pytest.raises(DataError) as caught:
        both(folder, text, **shape)
    with pytest.raises(DataError) as again:
        list(csv_batches(folder / "people.csv", delimiter="auto", shape=CsvShape(**shape)))
    assert str(caught.value) == str(again.value)
    assert "Ulm" not in str(caught.value)
    return str(caught.value)


@loop(
    ("text", "shape"),
    [
        ("age,town,\n" + ROWS, {}),  # the header ends with the delimiter
        ("age,town,,\n" + ROWS.replace("\n", ",,\n"), {}),  # all lines do
        ("age,town\n" + ROWS.replace("\n", ",\n"), {}),  # the rows do
        ("sep=;\nage;town\n" + ROWS.replace(",", ";"), {}),
        ('"sep=,"\r\nage,town\r\n' + ROWS.replace("\n", "\r\n"), {}),
        ("# exported, in May\nage,town\n" + ROWS + "# end\n", {"comment": "#"}),
        ("age,town\n23,Ulm\n#25,Kiel\n25,Kiel\n31,Ulm\n", {"comment": "#"}),
        ("A report\n\nof people, and towns, and more\nage,town\n" + ROWS, {"skip": 3}),
        (",age,town\n0,23,Ulm\n1,25,Kiel\n2,31,Ulm\n", {"index": "drop"}),
        ("age,town\n1,23,Ulm\n2,25,Kiel\n3,31,Ulm\n", {"index": "drop"}),  # R's row names
        (ROWS, {"header": False, "names": ("age", "town")}),
        ("age,town\n" + ROWS + "79,Total\n", {"footer": 1}),
        ("age,town\n" + ROWS + "79,\n\n26,\n", {"footer": 2}),
        ("r,age,town\n".replace("r", "") + "a,23,Ulm\nb,25,Kiel\nc,31,Ulm\n", {"index": "drop"}),
    ],
)
def test_files_of_many_shapes_are_the_same_table(tmp_path: Path, text: str, shape: dict[str, Any]) -> None:
    assert both(tmp_path, text, **shape) == TABLE, text


def test_rows_without_a_cell_at_the_end_are_no_people(tmp_path: Path) -> None:
    """Spreadsheets write `;;` below the last row: each was a person, published, and counted among the k."""
    file = tmp_path / "people.csv"
    file.write_text("age;town\n20;Ulm\n;\n31;\n" + '"";\n' + ";\n" * 300)
    frame = read_csv(file, delimiter=";")
    assert frame["age"].fillna("").tolist() == ["20", "", "31"]
    batches = pa.Table.from_batches(list(csv_batches(file, delimiter=";")))
    assert batches.to_pandas().equals(frame)
    assert read_csv(file, delimiter=";", shape=CsvShape(footer=1))["age"].fillna("").tolist() == ["20", ""]
    assert len(read_csv(file, delimiter=";", shape=CsvShape(footer=0))) == 304
    file.write_text('age\n20\n""\n')  # of one column it is a missing value
    assert read_csv(file)["age"].isna().tolist() == [False, True]
    file.write_text("age;town\n;\n;\n")
    assert list(read_csv(file, delimiter=";").columns) == ["age", "town"]


def test_a_release_has_rows_of_people_of_whom_nothing_is_known(tmp_path: Path) -> None:
    """They were left out where it was read, and then its verification failed."""
    people = pd.DataFrame({"age": ["20", "31", None, None] * 3, "town": ["Ulm", "Bonn", None, None] * 3})
    entry = {"role": "quasi-identifier", "kind": "categorical", "missing": "value"}
    table = af.Table(people, {"age": entry, "town": entry})
    for name in ("with.csv", "without.csv"):
        release = af.anonymize(table, "mondrian", k=3).release(seed=2**127)
        release.write(tmp_path / name)
        if name == "without.csv":
            for path in tmp_path.glob("without*"):
                if path.name != name:
                    path.unlink()
        published = af.read_release(tmp_path / name, table.schema)
        assert af.verify(table, published, k=3), name


def test_names_where_the_file_has_none(tmp_path: Path) -> None:
    assert list(both(tmp_path, ROWS, header=False)) == ["column 1", "column 2"]
    assert both(tmp_path, "23,Ulm\n", header=False) == {"column 1": ["23"], "column 2": ["Ulm"]}
    assert list(both(tmp_path, ",age\n0,23\n1,25\n", index="row")) == ["row", "age"]
    assert both(tmp_path, "age,23\n23,24\n25,26\n", header=True) == {"age": ["23", "25"], "23": ["24", "26"]}
    assert both(tmp_path, "age,town\n") == {"age": [], "town": []}


@loop(
    ("text", "shape", "words"),
    [
        (",age\n0,23\n1,25\n", {}, "its first column has no name and counts the rows, as an index does; set index: drop"),
        ("age,town\n1,23,Ulm\n2,25,Kiel\n", {}, "its first column has no name and counts the rows"),
        ("age,,town\n23,x,Ulm\n25,y,Ulm\n", {}, "column 2 has no name"),
        ("age,town,\n23,Ulm,\n25,Ulm,x\n", {}, "column 3 has no name and is not empty"),
        ("# exported\nage,town\n" + ROWS, {}, 'line 1 looks like a comment; set comment: "#"'),
        ("A report\n\nage,town\n" + ROWS, {}, "what stands above line 3 has fewer cells than the rows, as titles have; set skip: 2"),
        ("A report,,\nSource: x,,\nage,town,ill\n23,Ulm,flu\n25,Ulm,\n", {}, "above line 3 has fewer cells than the rows, as titles have; set skip: 2"),
        ("A report\nage;town\n" + ROWS.replace(",", ";"), {}, "above line 2 has fewer cells than the rows, as titles have; set skip: 1"),
        ("# made, in May\nage;town\n" + ROWS.replace(",", ";"), {}, "line 1 looks like a comment"),
        ("age,town\n" + ROWS + "79,Total\n", {}, "its last row looks like a total and not like a record; set footer: 1"),
        ("town,age,n\n" + "Ulm,23,1\n" * 200 + "Gesamt:,,200\n", {}, "its last row looks like a total"),
        (ROWS, {}, "its first line looks like a record and not like names of columns; set header: false"),
        ("2020-01-01,x\n2020-02-01,y\n2021-01-01,z\n", {}, "looks like a record"),
        ("a@b.org,x\nc@b.org,y\nd@b.org,z\n", {}, "looks like a record"),
        ("age,town,age\n23,Ulm,3\n", {}, "columns 1 and 3 have the same name"),
        ("age,town\n" + ROWS, {"index": "drop"}, "its first column has a name; leave out index"),
        (ROWS, {"header": False, "names": ("age",)}, "its rows have 2 cells, and the source has 1 names"),
        ('age,town\n23,"Ulm\n\n"\n25\n31,Ulm,9\n33,Ulm\n', {}, "2 rows have more or fewer than 2 cells (lines 5, 6); check"),
        (
            "age,town\n" + "23,Ulm\n23\n" * 14, {},
            "14 rows have more or fewer than 2 cells (lines 3, 5, 7, 9, 11, 13, 15, 17, 19, 21 and 4 more); check",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(
    tmp_path: Path, text: str, shape: dict[str, Any], words: str
) -> None:
    assert words in problem(tmp_path, text, **shape), text


@loop(
    "text",
    [
        "age,town\nage,23\n23,Ulm\n",
        "country,2019,2020\nA,3,4\nB,5,6\n",
        "a,b\na,b\nb,a\n",
        "1,2\nx,y\nz,w\n",
        "age,coverage\n20,total\n21,part\n22,total\n",
        "age,coverage,town\n20,part,Ulm\n22,total,Ulm\n",
    ],
)
def test_names_that_look_odd_are_names(tmp_path: Path, text: str) -> None:
    assert list(both(tmp_path, text)) == text.split("\n", 1)[0].split(",")


def test_a_header_may_be_longer_than_the_sample(tmp_path: Path) -> None:
    names = [f"{at}: which of these | those; do you " + "prefer " * 66 for at in range(300)]
    text = ",".join(names) + "\n" + (",".join(str(at) for at in range(300)) + "\n") * 5
    assert len(names[0]) > 480
    assert len(",".join(names)) > 2 * SAMPLE
    assert list(both(tmp_path, text)) == names
    assert csv_form(tmp_path / "people.csv").columns == 300


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "cp1252", "mac-roman"])
def test_shapes_in_other_encodings(tmp_path: Path, encoding: str) -> None:
    text = "Übersicht über alle\r\nâge;prénom;\r\n23;Jérôme Müßig\r\n25;Zoë Gärtner\r\n"
    cells = {"âge": ["23", "25"], "prénom": ["Jérôme Müßig", "Zoë Gärtner"]}
    assert both(tmp_path, text, encoding=encoding, skip=1) == cells


def test_windows_letters_are_not_taken_for_those_of_a_mac(tmp_path: Path) -> None:
    for text in ("town\nŠkoda\n", "town\nTomaš\n", "town\ncœur\n", "town\nl’eau – 5 €\n", "town\nMünchen\n"):
        assert list(both(tmp_path, text, encoding="cp1252").values()) == [text.split("\n")[1:2]]


@pytest.mark.parametrize("pieces", ["true", "false"])
def test_a_flow_says_the_shape(tmp_path: Path, pieces: str) -> None:
    (tmp_path / "people.csv").write_text("A title\n" + "".join(f"{20 + at},A,{at % 2}\n" for at in range(30)))
    flow = tmp_path / "people.flow.yaml"
    flow.write_text(f"""\
flow: people
version: 1
table:
  source: {{csv: people.csv, header: false, names: [age, town, x], skip: 1, pieces: {pieces}}}
  columns:
    age: {{role: quasi-identifier, kind: numeric}}
steps:
  - anonymize: {{algorithm: mondrian, k: 3}}
""")
    assert af.run(flow).ok
    assert af.run(flow).results[0].records == 30
    flow.write_text(flow.read_text().replace("header: false, ", ""))
    with pytest.raises(af.errors.FlowError, match="add header: false"):
        af.run(flow)


def test_init_writes_the_shape_into_the_flow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("".join(f"{20 + at % 9},{'AB'[at % 2]}\n" for at in range(30)))
    status, out, err = shell(capsys, "init", "people.csv", "--yes", "--k", "3", "--algorithm", "mondrian")
    assert status == 2
    assert "give --source header=false" in err + out
    keys = ["--source", "header=false", "--source", "names=age,town"]
    assert shell(capsys, "init", "people.csv", "--yes", "--k", "3", "--algorithm", "mondrian", *keys)[0] == 0
    assert "header: false" in Path("people.flow.yaml").read_text()
    assert shell(capsys, "run", "people.flow.yaml", "--quiet")[0] == 0
    assert list(pd.read_csv("out/people.csv").columns) == ["age", "town"]
    assert shell(capsys, "schema", "people.csv", "--source", "heather=1")[0] == 2


def test_another_delimiter_is_named_where_rows_are_torn(tmp_path: Path) -> None:
    file = tmp_path / "wages.csv"
    file.write_text("town;wage;share\nUlm;1,5;2,5\nKiel;2,5;1,5\nUlm;3,0;7,5\n")
    with pytest.raises(DataError, match="semicolons are between its cells; set delimiter: ';' in the source"):
        read_csv(file)
    assert list(read_csv(file, delimiter=";")) == ["town", "wage", "share"]


@loop(
    ("above", "key", "advice"),
    [
        ("", None, "give --source header=false"),
        ("A report\n\nage,town,pay\n", "skip=2", "give --source skip=2"),
        ("# made in May\nage,town,pay\n", "comment=#", "give --source comment=#"),
    ],
)
def test_every_command_takes_the_shape_of_a_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    above: str,
    key: str | None,
    advice: str,
) -> None:
    """Each command that reads a table says what to give, and does its work with it."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{20 + at % 5},{'AB'[at % 2]},{at % 3}\n" for at in range(40))
    Path("people.csv").write_text(above + rows)
    keys = ["--source", key] if key else ["--source", "header=false", "--source", "names=age,town,pay"]
    columns = {
        "age": QI,
        "town": {"role": "quasi-identifier", "kind": "categorical"},
        "pay": {"role": "sensitive"},
    }
    Path("schema.yaml").write_text(
        json.dumps({"columns": columns, "prepare": [{"top-code": {"column": "age", "at": 90}}]})
    )
    table = af.Table.read("people.csv", "schema.yaml", shape=shape_of(keys[1::2]))
    af.anonymize(table, "mondrian", k=4).release(seed=1).frame.to_csv("release.csv", index=False)
    both = ["--original", "people.csv", "--release", "release.csv", "--schema", "schema.yaml"]
    for command in (
        ["schema", "people.csv"],
        ["prepare", "people.csv", "--schema", "schema.yaml"],
        ["verify", *both, "--k", "4"],
        ["describe", *both],
        ["attack", *both, "--k", "4"],
        ["risk", "people.csv", "--schema", "schema.yaml"],
        ["compare", "people.csv", "--schema", "schema.yaml", "--k", "4", "--algorithms", "mondrian"],
    ):
        status, _, err = shell(capsys, *command)
        assert status == 2, command
        assert advice in err, command
        status, _, err = shell(capsys, *command, *keys)
        assert status in (0, 1), (command, err)
