"""How a CSV file is written is found out where it is asked for: in flows, in the shell and in the dashboards by one function."""

from __future__ import annotations

import gzip
import io
import re
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

import anonflow as af
from anonflow.dashboards.session.files.table_sources import read_upload
from anonflow.dashboards.work.user_limits import Limits
from anonflow.errors import DataError
from anonflow.table.files.csv_form import SAMPLE, form_of
from anonflow.table.files.csv_reading import csv_form
from anonflow.table.files.read import read_frame
from tests.cases.runs import shell

ROWS = "name{0}city{0}pay\nZoë{0}Köln{0}1,5\nJan{0}Ulm{0}2,5\n"


def form(text: str, encoding: str = "utf-8") -> tuple[str, str, int]:
    result = form_of(io.BytesIO(text.encode(encoding)))
    return result.delimiter, result.encoding, result.columns


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("cp1252", "cp1252"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
        ("utf-32", "utf-32"),
    ],
)
def test_delimiter_and_encoding_are_found_and_the_cells_are_the_same(
    tmp_path: Path, delimiter: str, written: str, text: str
) -> None:
    file = tmp_path / "people.csv"
    file.write_bytes(ROWS.format(delimiter).encode(written))
    assert form(ROWS.format(delimiter), written) == (delimiter, text, 3)
    frame = read_frame(file, delimiter="auto", encoding="auto")
    assert frame.to_dict("list") == {"name": ["Zoë", "Jan"], "city": ["Köln", "Ulm"], "pay": ["1,5", "2,5"]}


def test_the_form_of_odd_files_is_detected() -> None:
    assert form("") == (",", "utf-8", 0)
    assert form("a\n1\n2\n") == (",", "utf-8", 1)
    assert form('"a,x,y";b\n"1,2,3";2\n')[0] == ";"  # a delimiter in quotes is none
    assert form("a;b,c\n1;2\n3;4\n")[0] == ";"  # every row has one more, not only the header
    assert form("a,b;c\r\n1,5;2\r\n3,5;4\r\n")[0] in ",;"
    assert form("a;b\n" + "x;1\n" * SAMPLE)[::2] == (";", 2)  # the beginning is enough
    late = ("a;b\n" + "x;1\n" * SAMPLE + "ö;2\n").encode("cp1252")
    assert form_of(io.BytesIO(late)).encoding == "cp1252"  # and for the encoding it is not
    assert (
        form_of(io.BytesIO(b"a,b\n\x81,\xff\n")).encoding == "mac-roman"
    )  # \x81 is a control sign in Latin-1
    for text in (
        "name,town\nAnaïs,Köln\nÅse,Århus\n",
        "a,b\nçà,où\nÈve,Êtes\n",
        "a,b\nKöln,1\nZürich,2\nMünster,3\n",
    ):
        assert form_of(io.BytesIO(text.encode("mac-roman"))).encoding == "mac-roman"
        assert form_of(io.BytesIO(text.encode("cp1252"))).encoding == "cp1252"
    assert form_of(io.BytesIO(b"a,b\n1,\xc3")).encoding == "cp1252"  # cut inside a character
    known = form_of(io.BytesIO(b"a;b\n1;2\n"), delimiter=",", encoding="utf-8")
    assert (known.delimiter, known.columns) == (",", 1)


def test_letters_are_not_read_in_another_encoding_without_a_word(tmp_path: Path) -> None:
    """One line of Windows in a file of UTF-8 made all others `KÃ¶ln`, and Cyrillic words became `Ìîñêâà`: both were published."""
    file = tmp_path / "people.csv"
    long = "\n".join(f"{age};Köln" for age in range(2 * SAMPLE // 10))
    for text, line in (("20;Köln\n21;Zoë", 4), (long, long.count("\n") + 3)):
        mixed = f"age;town\n{text}\n".encode() + "50;Köln\n".encode("cp1252")
        file.write_bytes(mixed)
        with pytest.raises(
            DataError, match=f"mostly UTF-8, and not so in line {line}: two encodings .* save it in one"
        ):
            read_frame(file, delimiter="auto", encoding="auto")
        assert read_frame(file, delimiter=";", encoding="cp1252")["town"].iloc[-1] == "Köln"
    file.write_bytes("age;town\n20;Köln\n21;Zoë".encode()[:-1])  # cut inside a character
    with pytest.raises(DataError, match=r"mostly UTF-8, and not so in line 3:"):
        csv_form(file)
    for encoding, towns in {
        "cp1251": "Москва Тула",
        "koi8-r": "Москва Тула",
        "cp1253": "Αθήνα Πάτρα",
        "gbk": "北京 上海",
        "shift-jis": "東京 大阪",
        "cp1255": "ירושלים חיפה",
    }.items():
        file.write_bytes(
            ("age;town;sex\n" + "".join(f"20;{town};m\n" for town in towns.split())).encode(encoding)
        )
        with pytest.raises(
            DataError, match=r"is not UTF-8, and its letters .* set encoding in the source, such as cp1251"
        ):
            csv_form(file)
        assert read_frame(file, delimiter=";", encoding=encoding)["town"].tolist() == towns.split()
    for word in ("————————", "Þórðæði", "naïve", "« été »", "12 °C", "«««««", "crème brûlée"):
        assert form(f"a;b\n1;{word}\n2;Köln\n", "cp1252")[1] == "cp1252"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"age":52,"sex":"m"}\n{"age":54,"sex":"w"}\n', "is JSON; save it"),
        (b'[{"age":52,\n"sex":"m"}]\n', "is JSON; save it"),
        (b"<!DOCTYPE html>\n<html><td>age</td></html>\n", "is a page of the web or XML; save the table"),
        (gzip.compress(b"age,sex\n52,m\n", mtime=0), r"is packed by gzip; let its name end in \.csv\.gz"),
        (b"PK\x03\x04\x14\x00rest\n", "is an Excel workbook or an archive"),
        (b"PAR1\x15\x04rest\n", "is a Parquet file"),
    ],
)
def test_another_kind_of_file_is_not_read_as_rows(tmp_path: Path, content: bytes, words: str) -> None:
    """The first record of JSON became the names of the columns, which are published."""
    file = tmp_path / "people.csv"
    file.write_bytes(content)
    for call in (csv_form, read_frame, partial(read_frame, encoding="latin-1")):
        with pytest.raises(DataError, match=words):
            call(file)


def test_what_is_known_is_not_looked_for(tmp_path: Path) -> None:
    file = tmp_path / "people.csv.gz"
    file.write_bytes(gzip.compress(b"a;b\n1;2\n"))
    assert csv_form(file, encoding="utf-8").delimiter == ";"
    assert csv_form(file, delimiter=",").columns == 1
    with pytest.raises(DataError, match="does not exist"):
        csv_form(tmp_path / "nobody.csv")
    (tmp_path / "torn.csv.gz").write_bytes(file.read_bytes()[:12])
    with pytest.raises(
        DataError, match=r"cannot be read \(OSError\); check that the file is complete and packed by gzip$"
    ):
        csv_form(tmp_path / "torn.csv.gz")


def test_the_dashboards_find_the_same(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    for encoding in ("cp1252", "utf-16"):
        file.write_bytes(ROWS.format(";").encode(encoding))
        frame, source = read_upload(file, Limits())
        assert source.model_dump(exclude_defaults=True) == {
            "csv": "people.csv",
            "delimiter": ";",
            "encoding": encoding,
        }
        assert list(frame.columns) == ["name", "city", "pay"]
    file.write_text(ROWS.format(",").replace("1,5", "1").replace("2,5", "2"), encoding="utf-8")
    assert read_upload(file, Limits())[1].model_dump(exclude_defaults=True) == {"csv": "people.csv"}


def people(path: Path, delimiter: str, encoding: str = "utf-8") -> Path:
    frame = pd.DataFrame(
        {"age": range(20, 44), "city": ["Köln", "Ulm", "Bonn"] * 8, "pay": ["low", "high"] * 12}
    )
    frame.to_csv(path, sep=delimiter, index=False, encoding=encoding)
    return path


def test_schema_says_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = people(tmp_path / "people.csv", ";", "cp1252")
    status, out, err = shell(capsys, "schema", file)
    assert status == 0
    assert "3 columns between semicolons, encoding cp1252" in err
    assert "city" in out
    status, _, err = shell(capsys, "schema", people(tmp_path / "usual.csv", ","))
    assert (status, err) == (0, "")


@pytest.mark.parametrize("more", [(), ("--delimiter", ",")])
def test_schema_says_so_of_one_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    file = tmp_path / "one.csv"
    file.write_text("age city\n" + "".join(f"{n} Ulm\n" for n in range(20)), encoding="utf-8")
    _, _, err = shell(capsys, "schema", file, *more)
    assert "has one column" in err
    assert "name the delimiter" in err


def test_compare_says_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "schema.yaml"
    schema.write_text(
        "columns: {age: {role: quasi-identifier, kind: numeric}, city: {role: quasi-identifier, kind: categorical}}\n"
    )
    arguments = ("--schema", schema, "--k", "3", "--algorithms", "mondrian")
    status, out, err = shell(capsys, "compare", people(tmp_path / "tabs.csv", "\t"), *arguments)
    assert status == 0
    assert "3 columns between tabs, encoding utf-8" in err
    assert "mondrian" in out


COLUMNS = "{age: {role: quasi-identifier, kind: numeric}, city: {role: quasi-identifier, kind: categorical}}"


@pytest.mark.parametrize("command", ["risk", "prepare", "compare", "verify", "attack", "describe"])
def test_commands_read_a_table_as_its_flow_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Delimiter, encoding and texts for missing values hold for the other commands, too; detected without a flow."""
    frame = pd.DataFrame({"age": range(24), "city": ["Ulm", "Köln", "keine", "Bonn"] * 6})
    usual, other = tmp_path / "usual.csv", tmp_path / "other.csv"
    frame.replace("keine", "").to_csv(usual, index=False)
    frame.to_csv(other, sep=";", index=False, encoding="cp1252")
    schema, flow = tmp_path / "schema.yaml", tmp_path / "flow.yaml"
    prepared = "prepare: [{bottom-code: {column: age, at: 12}}]"
    schema.write_text(f"columns: {COLUMNS}\n{prepared}\n")
    source = '{csv: other.csv, delimiter: ";", encoding: cp1252, missing: [keine]}'
    flow.write_text(
        f"flow: other\nversion: 1\ntable:\n  source: {source}\n  columns: {COLUMNS}\n  {prepared}\n"
        "steps: [{anonymize: {algorithm: mondrian, k: 2}}]\npublish: {table: out/release.csv}\n"
    )
    status, _, err = shell(capsys, "run", flow, "--quiet")
    assert status == 0, err
    release = ["--release", tmp_path / "out" / "release.csv"]

    def answer(file: Path, described: Path, *more: object) -> tuple[int, str, str]:
        arguments: dict[str, list[object]] = {
            "risk": [file],
            "prepare": [file],
            "compare": [file, "--k", 2, "--algorithms", "mondrian", "--quiet"],
            "verify": [*release, "--original", file, "--k", 2],
            "attack": [*release, "--original", file, "--k", 2],
            "describe": [*release, "--original", file],
        }
        return shell(capsys, command, *arguments[command], "--schema", described, *more)

    def shown(text: str) -> str:
        # seconds differ; `compare` has a column of them, its last
        return re.sub(r"\d+\.\d+ s\b|\d+ ms\b|\d+\.\d\d$", "", text, flags=re.MULTILINE)

    status, out, _ = answer(usual, schema)
    assert status == 0
    assert shown(answer(other, flow)[1]) == shown(out)
    status, _, err = answer(other, schema)
    assert "2 columns between semicolons, encoding cp1252" in err
    assert answer(other, flow, "--delimiter", ",")[0] == 2


def test_a_source_with_problems_is_no_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, flow = people(tmp_path / "people.csv", ";"), tmp_path / "flow.yaml"
    flow.write_text(
        f"flow: wrong\nversion: 1\ntable:\n  source: {{csv: people.csv, delimiter: 5}}\n  columns: {COLUMNS}\n"
    )
    status, _, err = shell(capsys, "risk", file, "--schema", flow)
    assert status == 2
    assert err.startswith(f"anonflow: {flow}:4:40: ")
    assert "must be text; put it in quotes" in err


@pytest.mark.parametrize("pieces", ["", ", pieces: 8"])
def test_a_flow_finds_out_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pieces: str
) -> None:
    people(tmp_path / "people.csv", "|", "cp1252")
    flow = tmp_path / "flow.yaml"
    flow.write_text(
        "flow: found\nversion: 1\ntable:\n"
        f"  source: {{csv: people.csv, delimiter: auto, encoding: auto{pieces}}}\n"
        "  columns: {age: {role: quasi-identifier, kind: numeric}, city: {role: quasi-identifier, kind: categorical}}\n"
        "partition: {size: 8}\n"
        "steps: [{anonymize: {algorithm: mondrian, k: 2}}]\n"
    )
    status, _, err = shell(capsys, "run", flow)
    assert status == 0, err
    assert "people.csv: 3 columns between bars, encoding cp1252" in err


def test_a_table_is_read_so(tmp_path: Path) -> None:
    file = people(tmp_path / "people.csv", ";", "utf-16")
    columns = {"age": {"role": "quasi-identifier", "kind": "numeric"}}
    assert af.Table.read(file, columns, delimiter="auto", encoding="auto").n == 24
    with pytest.raises(DataError, match=r"or auto$"):
        af.Table.read(file, columns, delimiter="automatic")
