"""Files of statistics programs, workbooks and databases: labels, missing codes, kinds, and what is wrong with them."""

from __future__ import annotations

import contextlib
import datetime
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.dashboards.session.draft_spec import NO_FLOW
from anonflow.dashboards.session.files.paths import check_confined
from anonflow.dashboards.session.files.table_sources import read_upload
from anonflow.dashboards.work.user_limits import Limits
from anonflow.errors import AnonflowError, DataError, FlowError
from anonflow.table.files import opening, parquet_reading
from anonflow.table.files.csv_head import CsvShape
from anonflow.table.files.query import read_query
from anonflow.table.files.read import read_frame
from tests.cases.flow_files import everything_in
from tests.cases.runs import shell
from tests.cases.sas_files import write_sas

LABELS = {"sex": {1: "male", 2: "female"}, "age": {99: "refused"}}


def people() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "sex": [1.0, 2.0, 1.0, 2.0] * 6,
            "age": [20.0, 31.0, 42.0, 99.0] * 6,
            "pay": [1.5, 2.5, 3.0, 4.0] * 6,
            "city": ["Ulm", "", "Köln", "Bonn"] * 6,
        }
    )


def write_stats(path: Path) -> Path:
    stats = pytest.importorskip("pyreadstat")
    if path.suffix in (".sav", ".zsav"):
        stats.write_sav(
            people(), path, variable_value_labels=LABELS, missing_ranges={"age": [99]},
            compress=path.suffix == ".zsav",
        )  # fmt: skip
    elif path.suffix == ".dta":
        frame = people().astype({"age": object})
        frame.loc[frame["age"] == 99, "age"] = "a"
        labels = {"sex": LABELS["sex"], "age": {"a": "refused"}}
        stats.write_dta(frame, path, variable_value_labels=labels, missing_user_values={"age": ["a"]})
    elif path.suffix == ".por":
        stats.write_por(people().replace("Köln", "Kiel").rename(columns=str.upper), path)
    else:
        stats.write_xport(people(), path)
    return path


@pytest.mark.parametrize("ending", [".sav", ".zsav", ".dta"])
def test_labels_and_missing_codes(tmp_path: Path, ending: str) -> None:
    file = write_stats(tmp_path / f"people{ending}")
    frame = read_frame(file)
    assert frame["sex"].tolist()[:2] == ["male", "female"]
    assert frame["age"].isna().sum() == 6  # the code is missing, and the ages that are left are numbers
    assert frame["age"].dropna().tolist()[:3] == [20, 31, 42]
    assert str(frame["age"].dtype) == "Int64"
    assert frame["pay"].tolist()[:3] == [1.5, 2.5, 3.0]
    assert frame["city"].isna().sum() == 6
    assert read_frame(file, labels=False)["sex"].tolist()[:2] == [1, 2]
    kept = read_frame(file, user_missing=True)["age"]
    assert not kept.isna().any()
    assert str(kept.tolist()[3]) == (
        "a" if ending == ".dta" else "99"
    )  # only some ages have a label: codes stay


@pytest.mark.parametrize("ending", [".por", ".xpt"])
def test_transport_files(tmp_path: Path, ending: str) -> None:
    frame = read_frame(write_stats(tmp_path / f"people{ending}"))
    assert frame.shape == (24, 4)
    assert [str(name).lower() for name in frame.columns] == ["sex", "age", "pay", "city"]


def test_periods_and_dates_of_stata_in_any_format_are_dates(tmp_path: Path) -> None:
    """What is counted from 1960 was published as its count where pyreadstat does not know the format; pandas says the same of the periods."""
    stats = pytest.importorskip("pyreadstat")
    file = tmp_path / "periods.dta"
    starts = {"tm": "MS", "tq": "QS", "th": "6MS", "tw": "7D", "td": "D", "tc": "D"}
    frame = pd.DataFrame(
        {name: pd.date_range("1959-01-01", periods=9, freq=step) for name, step in starts.items()}
    )
    frame.iloc[3] = None
    frame.to_stata(file, convert_dates={name: name for name in starts}, write_index=False)
    read, other = read_frame(file), pd.read_stata(file)
    for name in starts:
        assert pd.to_datetime(read[name]).tolist()[:3] == other[name].tolist()[:3]
        assert read[name].isna().tolist() == other[name].isna().tolist()
    days = pd.DataFrame({"day": [-1.0, 20000.0, None]})
    for form in ("%tdDD/NN/CCYY", "%-td", "%dD_m_Y", "%d"):
        stats.write_dta(days, file, variable_format={"day": form})
        assert read_frame(file)["day"].tolist() == [
            datetime.date(1959, 12, 31),
            datetime.date(2014, 10, 4),
            None,
        ]
    stats.write_dta(
        pd.DataFrame({"at": [1.7e12 + 250]}), file, variable_format={"at": "%tcDDmonCCYY_HH:MM:SS"}
    )
    assert read_frame(file)["at"].tolist() == [
        pd.Timestamp("2023-11-13 22:13:20.250") - pd.DateOffset(years=10)
    ]


@pytest.mark.parametrize("ending", [".sav", ".por", ".xpt"])
def test_months_and_durations_are_not_their_counts_or_cut(tmp_path: Path, ending: str) -> None:
    """A stay of two days was published as 00:00:00, and a month as the seconds since 1582, or the days since 1960."""
    stats = pytest.importorskip("pyreadstat")
    file = tmp_path / f"stays{ending}"
    day = 86_400
    if ending == ".xpt":
        write, months, form, duration = stats.write_xport, [20_000.0, 20_031.0], "MONYY7", "TIME12.2"
    else:
        write = stats.write_sav if ending == ".sav" else stats.write_por
        origin = (datetime.date(2014, 10, 4) - datetime.date(1582, 10, 14)).days - 20_000
        months, form, duration = [(origin + 20_000.0) * day, (origin + 20_031.0) * day], "MOYR8", "DTIME12"
    frame = pd.DataFrame({"MONTH": months, "STAY": [2.0 * day, 3600.5], "CLOCK": [3600.25, day - 1.0]})
    write(frame, file, variable_format={"MONTH": form, "STAY": duration, "CLOCK": "TIME8"})
    read = read_frame(file)
    assert read["MONTH"].tolist() == [datetime.date(2014, 10, 4), datetime.date(2014, 11, 4)]
    assert read["STAY"].tolist() == [2 * day, 3600.5]  # seconds
    assert read["CLOCK"].tolist() == [datetime.time(1, 0, 0, 250_000), datetime.time(23, 59, 59)]


def test_a_date_of_no_year_is_one_sentence(tmp_path: Path) -> None:
    stats = pytest.importorskip("pyreadstat")
    file = tmp_path / "far.sav"
    for far in (1e13, -1e13, 1e300):
        stats.write_sav(pd.DataFrame({"born": [13e9, far]}), file, variable_format={"born": "DATE11"})
        with pytest.raises(
            DataError, match=r"^column 'born': has a date before the year 1 or after 9999; correct"
        ):
            read_frame(file)


def test_two_codes_with_one_label_stay_two_values(tmp_path: Path) -> None:
    stats = pytest.importorskip("pyreadstat")
    file = tmp_path / "answers.sav"
    labels = {"answer": {1.0: "yes", 8.0: "other", 9.0: "other"}}
    stats.write_sav(pd.DataFrame({"answer": [1.0, 8.0, 9.0]}), file, variable_value_labels=labels)
    assert read_frame(file)["answer"].tolist() == [1, 8, 9]
    stats.write_sav(pd.DataFrame({"answer": [1.0, 8.0, 8.0]}), file, variable_value_labels=labels)
    assert read_frame(file)["answer"].tolist() == ["yes", "other", "other"]


def write_sas_people(path: Path, repeats: int = 6) -> Path:
    """A SAS table on several pages where there are many rows."""
    ages = [20.0, None, "A", 42.5]
    return write_sas(
        path,
        {
            "age": ages * repeats,
            "city": ["Ulm", "", "Köln", "Bonn"] * repeats,
            "sex": [1.0, 2.0, 1.0, 2.0] * repeats,
        },
    )


def test_a_sas_table(tmp_path: Path) -> None:
    """Another reader, that of pandas, says the same of the file."""
    pytest.importorskip("pyreadstat")
    file = write_sas_people(tmp_path / "people.sas7bdat", 700)
    frame = read_frame(file)
    assert frame["age"].isna().tolist() == [False, True, True, False] * 700
    assert frame["age"].dropna().tolist() == [20.0, 42.5] * 700
    assert frame["city"].fillna("-").tolist() == ["Ulm", "-", "Köln", "Bonn"] * 700
    assert str(frame["sex"].dtype) == "int64"
    other = pd.read_sas(file, encoding="utf-8")
    assert isinstance(other, pd.DataFrame)
    assert other["age"].fillna(-1).tolist() == frame["age"].fillna(-1).tolist()
    assert other["city"].fillna("-").tolist() == frame["city"].fillna("-").tolist()
    assert other["sex"].tolist() == frame["sex"].tolist()
    kept = read_frame(file, user_missing=True)["age"].tolist()
    assert kept[2:4] == ["A", "42.5"]  # the code is a value; what has none stays missing
    assert pd.isna(kept[1])


def test_a_torn_sas_table_is_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("pyreadstat")
    whole = write_sas_people(tmp_path / "people.sas7bdat", 700).read_bytes()
    torn = tmp_path / "torn.sas7bdat"
    for content in (b"age,city\n1,Ulm\n", whole[:40], whole[:1024], whole[:6000], b""):
        torn.write_bytes(content)
        with pytest.raises(
            DataError, match=r"is not a readable \.sas7bdat file; save it again, or export it as CSV$"
        ):
            read_frame(torn)


def write_workbook(path: Path, sheets: dict[str, list[list[Any]]]) -> Path:
    book = pytest.importorskip("openpyxl").Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_sheet(tmp_path: Path) -> None:
    born = datetime.datetime(1980, 5, 17)
    rows = [
        ["age", "city", "pay", "born", "mixed", None],
        [20, "Ulm", 1.5, born, 7],
        [31, None, 2, born, "x"],
        [None],
    ]
    file = write_workbook(tmp_path / "people.xlsx", {"one": rows, "two": [["a"], [1]]})
    frame = read_frame(file)
    assert frame["age"].tolist() == [20, 31]
    assert str(frame["age"].dtype) == "int64"
    assert frame["pay"].tolist() == [1.5, 2.0]
    assert frame["mixed"].tolist() == ["7", "x"]
    assert frame["city"].isna().tolist() == [False, True]
    assert frame["born"].tolist() == [born, born]
    assert read_frame(file, sheet="two").to_dict("list") == {"a": [1]}


PEOPLE_ROWS: list[list[Any]] = [[20, "Ulm", 1.5], [31, "Bonn", 2.5], [44, "Kiel", 3.5]]
NAMES_ROW = ["age", "city", "pay"]


@pytest.mark.parametrize(
    ("above", "skip"),
    [
        ([["Survey of 2024", None, None], NAMES_ROW], 1),
        ([["Survey of 2024"], [None, "of the town"], NAMES_ROW], 2),
        ([["Survey of 2024"], [], NAMES_ROW], 2),
        ([[], NAMES_ROW], 0),
        ([["person", None, "work"], NAMES_ROW], 1),  # headings of groups, each merged over its columns
    ],
)
def test_rows_above_a_sheets_header_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], above: list[list[Any]], skip: int
) -> None:
    """Such a workbook was refused, and had to be changed by hand."""
    file = write_workbook(tmp_path / "people.xlsx", {"one": [*above, *PEOPLE_ROWS]})
    if skip:
        with pytest.raises(DataError, match=f"has fewer cells .*; set skip: {skip} in the source") as refusal:
            read_frame(file)
        assert "Survey" not in str(refusal.value)
        assert shell(capsys, "schema", str(file))[0] == 2
    frame = read_frame(file, shape=CsvShape(skip=skip))
    assert frame.to_dict("list") == {
        "age": [20, 31, 44],
        "city": ["Ulm", "Bonn", "Kiel"],
        "pay": [1.5, 2.5, 3.5],
    }
    assert "age:" in shell(capsys, "schema", str(file), "--source", f"skip={skip}")[1]


def test_a_flow_leaves_out_rows_above_a_sheets_header(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [["Survey of 2024"], [], ["age", "city"], *([20 + n, "Ulm"] for n in range(24))]
    write_workbook(tmp_path / "p.xlsx", {"one": rows})
    status, _, err = shell(capsys, "run", flow(tmp_path, "{excel: p.xlsx, skip: 2}"))
    assert status == 0, err
    assert len(pd.read_csv(tmp_path / "out" / "people.csv")) == 24
    # what is beside a flow is read as the flow says
    assert shell(capsys, "run", flow(tmp_path, "{excel: p.xlsx, skip: 30}"))[0] == 2


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (
            [["age", None, "pay"]],
            "the first row of the sheet must be the header, but row 1 has no name in column B",
        ),
        (
            [["person", None, "pay"], ["age", "city", None]],
            "the names of the columns are in two rows, rows 1 and 2",
        ),
        ([["Survey of 2024"], ["person", None, "pay"], ["age", "city", None]], "in two rows, rows 2 and 3"),
        ([["age", "age", "pay"]], "two columns have the same name"),
    ],
)
def test_a_header_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, header: list[list[Any]], expected: str
) -> None:
    file = write_workbook(tmp_path / "people.xlsx", {"one": [*header, *PEOPLE_ROWS]})
    with pytest.raises(DataError, match=expected) as refusal:
        read_frame(file)
    assert not {"Survey", "person", "Ulm", "Bonn"} & set(re.findall(r"\w+", str(refusal.value)))
    assert "skip" not in str(refusal.value), "a record would become the header"


SHEET, TEXTS = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
SPACE = "http://schemas.openxmlformats.org"


def parts_of(file: Path) -> dict[str, str]:
    with zipfile.ZipFile(file) as packed:
        return {name: packed.read(name).decode() for name in packed.namelist()}


def repacked(file: Path, part: str, change: Callable[[str], str]) -> Path:
    """The workbook with one of its parts changed."""
    parts = parts_of(file)
    after = change(parts[part])
    assert after != parts[part]
    return packed(file, parts | {part: after})


def packed(file: Path, parts: dict[str, str]) -> Path:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return file


def small_workbook(folder: Path) -> Path:
    """A workbook that has its texts apart from its cells, as those of Excel."""
    rows = [["age", "city"], *([20 + n, "Ulm"] for n in range(24))]
    file = write_workbook(folder / "people.xlsx", {"one": rows})
    parts = parts_of(file)
    texts = ["age", "city", "Ulm"]
    for at, text in enumerate(texts):
        parts[SHEET] = parts[SHEET].replace(f't="inlineStr"><is><t>{text}</t></is>', f't="s"><v>{at}</v>')
    parts[TEXTS] = (
        f'<sst xmlns="{SPACE}/spreadsheetml/2006/main">{"".join(f"<si><t>{text}</t></si>" for text in texts)}</sst>'
    )
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    types = "[Content_Types].xml"
    parts[types] = parts[types].replace(
        "</Types>", f'<Override PartName="/{TEXTS}" ContentType="{kind}"/></Types>'
    )
    assert kind in parts[types]
    return packed(file, parts)


def test_a_formula_that_no_program_computed_is_not_a_blank(tmp_path: Path) -> None:
    """openpyxl writes formulas without their values: a column of them was published as missing without a word."""
    rows: list[list[Any]] = [["age", "double", None, "=A2"], [20, "=A2*2"], [31, 62], [44, "=A4*2"]]
    file = write_workbook(tmp_path / "people.xlsx", {"Data": rows})
    with pytest.raises(
        DataError,
        match=r"2 formulas without a stored value \(such as B2\), as .*; open it in a spreadsheet and",
    ):
        read_frame(file)
    computed = tmp_path / "computed.xlsx"
    stored = b'<c r="B2" t="str"><f>A2</f><v></v></c>'  # a formula with an empty text, as Excel writes it
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(computed, "w") as new:
        for part in old.namelist():
            content = old.read(part)
            content = content.replace(b'<c r="B2"><f>A2*2</f><v /></c>', stored)
            new.writestr(part, content.replace(b"<f>A4*2</f><v />", b"<f>A4*2</f><v>88</v>"))
    assert read_frame(computed)["double"].isna().tolist() == [True, False, False]
    assert read_frame(computed)["double"].tolist()[1:] == [62, 88]


def test_a_total_below_a_sheet_is_no_person(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[list[Any]] = [
        ["town", "people", "share"],
        ["Ulm", 2, 0.5],
        ["Bonn", 2, 0.5],
        ["Total", 4, 1.0],
    ]
    file = write_workbook(tmp_path / "people.xlsx", {"Data": rows})
    with pytest.raises(
        DataError, match=r"its last row looks like a total .*; set footer: 1 in the source to leave"
    ):
        read_frame(file)
    assert read_frame(file, shape=CsvShape(footer=1))["town"].tolist() == ["Ulm", "Bonn"]
    assert read_frame(file, shape=CsvShape(footer=0))["people"].tolist() == [2, 2, 4]
    assert len(read_frame(file, shape=CsvShape(footer=4))) == 0
    assert shell(capsys, "schema", file, "--source", "footer=1")[0] == 0
    _, source = read_upload(file, Limits(), shape=CsvShape(footer=1))
    assert source.model_dump(exclude_defaults=True) == {"excel": "people.xlsx", "footer": 1}
    columns = "town: {role: sensitive}, people: {role: quasi-identifier, kind: numeric}"
    flow = tmp_path / "flow.yaml"
    flow.write_text(
        "flow: totals\nversion: 1\ntable:\n  source: {excel: people.xlsx, footer: 1}\n"
        f"  columns: {{{columns}}}\nsteps: [{{anonymize: {{algorithm: mondrian, k: 2}}}}]\n"
    )
    assert af.run(flow).runs["records"].tolist() == [2]


def test_merged_cells_below_the_header_are_refused(tmp_path: Path) -> None:
    """A ward that is written once for its patients was missing for all but the first."""
    openpyxl = pytest.importorskip("openpyxl")
    file = write_workbook(
        tmp_path / "people.xlsx",
        {"Data": [["Wards"], ["age", "ward"], [20, "surgery"], [31, None], [44, "eye"]]},
    )
    book = openpyxl.load_workbook(file)
    book["Data"].merge_cells("A1:B1")
    book.save(file)
    assert read_frame(file, shape=CsvShape(skip=1))["ward"].tolist()[0] == "surgery"
    book["Data"].merge_cells("B3:B4")
    book.save(file)
    with pytest.raises(
        DataError, match=r"1 range of merged cells below the header \(such as B3:B4\), of which .*; unmerge"
    ):
        read_frame(file, shape=CsvShape(skip=1))


def test_a_sheet_is_read_to_its_end_whatever_size_it_claims(tmp_path: Path) -> None:
    """Other programs than Excel write the size of a sheet before they know it."""
    file = repacked(
        small_workbook(tmp_path), SHEET, lambda text: re.sub(r'ref="A1:B25"', 'ref="A1:A3"', text)
    )
    assert read_frame(file).shape == (24, 2)


def test_a_text_that_many_cells_share_is_counted_in_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small workbook whose table would not fit into memory."""
    file = repacked(small_workbook(tmp_path), TEXTS, lambda text: text.replace("Ulm", "U" * 200_000))
    assert file.stat().st_size < 10_000
    assert read_frame(file)["city"].str.len().sum() == 24 * 200_000
    for module in (opening, parquet_reading):
        monkeypatch.setattr(module, "total_memory", lambda: 1_000_000)
    with pytest.raises(
        DataError, match=r"people\.xlsx: unpacks to more than the 0\.001 GB of memory"
    ) as caught:
        read_frame(file)
    # pieces are no help before the whole workbook is read
    assert "save it as CSV or Parquet, and run that in pieces" in str(caught.value)
    with pytest.raises(DataError, match=r"this server takes at most 0\.3 MB"):
        read_upload(file, Limits(upload_bytes=300_000))
    assert len(read_upload(file, Limits(upload_bytes=1_000_000))[0]) == 24


@pytest.mark.slow
def test_rows_far_away_are_not_waited_for(tmp_path: Path) -> None:
    """A reader that fills the gap to the next row would need a day for it."""
    file = repacked(
        small_workbook(tmp_path),
        SHEET,
        lambda text: re.sub(
            r'<row r="25".*</row>', '<row r="2000000"><c r="A2000000"><v>1</v></c></row>', text
        ),
    )
    with pytest.raises(DataError, match=r"more rows than a sheet may have \(1,048,576\)"):
        read_frame(file)


@pytest.mark.parametrize(
    ("part", "before", "after"),
    [
        (SHEET, "</sheetData>", "</sheet"),
        (SHEET, 't="s"><v>1</v>', 't="s"><v>77</v>'),
        (SHEET, 't="s"><v>1</v>', 't="s"><v>a</v>'),
        (SHEET, "<v>20</v>", f"<v>{'9' * 400}</v>"),
        (SHEET, 'r="A2"', 'r="2A"'),
        (TEXTS, "</sst>", ""),
        (TEXTS, "<sst", "<!DOCTYPE sst [<!ENTITY a 'b'>]><nothing"),
        ("xl/workbook.xml", "<sheets>", "<sheets><sheet name='x' sheetId='9' r:id='rId99'/>"),
        ("xl/styles.xml", "</styleSheet>", "</"),
    ],
)  # fmt: skip
def test_a_damaged_workbook_is_one_sentence(tmp_path: Path, part: str, before: str, after: str) -> None:
    file = small_workbook(tmp_path)
    repacked(file, part, lambda text: text.replace(before, after, 1))
    with pytest.raises(
        DataError, match=r"is not a readable Excel workbook; save it again as \.xlsx, or export it as CSV$"
    ):
        read_frame(file)


def test_a_torn_archive_is_one_sentence(tmp_path: Path) -> None:
    whole = small_workbook(tmp_path).read_bytes()
    torn = tmp_path / "torn.xlsx"
    rng = np.random.default_rng(7)
    for _ in range(200):
        content = bytearray(whole)
        for at in rng.integers(0, len(whole), 8):
            content[at] = rng.integers(256)
        torn.write_bytes(bytes(content))
        with contextlib.suppress(DataError):  # nothing else
            read_frame(torn)


def test_whole_numbers_beyond_64_bits_are_numbers(tmp_path: Path) -> None:
    file = repacked(
        small_workbook(tmp_path), SHEET, lambda text: text.replace("<v>20</v>", f"<v>{1 << 70}</v>")
    )
    assert read_frame(file)["age"].tolist()[:2] == [float(1 << 70), 21.0]


def write_database(path: Path) -> Path:
    with pytest.importorskip("duckdb").connect(str(path)) as connection:
        connection.execute(
            "create table people as select 20 + range as age, ['Ulm', 'Bonn'][1 + range % 2] as city, "
            "(range / 2)::decimal(9, 1) as pay, 'low' as level from range(24)"
        )
    return path


def test_a_query(tmp_path: Path) -> None:
    frame = read_query(
        "select age, city, pay from people where age < 24 order by age", write_database(tmp_path / "p.duckdb")
    )
    assert frame["age"].tolist() == [20, 21, 22, 23]
    assert frame["city"].tolist() == ["Ulm", "Bonn"] * 2
    assert frame["pay"].tolist() == [0.0, 0.5, 1.0, 1.5]
    assert str(frame["pay"].dtype) == "float64"


def test_decimals_of_a_query_stay_as_they_are_where_floats_would_round_them(tmp_path: Path) -> None:
    """Two account numbers of 29 digits are two accounts; sums and numbers with a point are numbers."""
    pytest.importorskip("duckdb")
    sql = (
        "select account::decimal(38, 0) as account, share::decimal(38, 20) as share, pay::decimal(9, 2) as pay, (select sum(1)) as total, "
        "null::decimal(5, 2) as blank "
        "from (values ('12345678901234567890123456789', '0.12345678901234567891', '0.1'), "
        "('12345678901234567890123456788', '0.12345678901234567892', '12.30')) people(account, share, pay)"
    )
    read = read_query(sql, write_database(tmp_path / "p.duckdb"))
    assert [*map(str, read["account"])] == ["12345678901234567890123456789", "12345678901234567890123456788"]
    assert [*map(str, read["share"])] == ["0.12345678901234567891", "0.12345678901234567892"]
    assert read.dtypes[["pay", "total", "blank"]].tolist() == [np.float64] * 3
    assert read["pay"].tolist() == [0.1, 12.3]


def test_a_decimal_of_a_query_is_the_number_that_is_written(tmp_path: Path) -> None:
    """0.3333333333 was published as 0.33333333330000003."""
    pytest.importorskip("duckdb")
    sql = "select (i / 3.0)::decimal(30, 10) as share from range(300) numbers(i)"
    shares = read_query(sql, write_database(tmp_path / "p.duckdb"))["share"].tolist()
    assert shares == [float(f"{number / 3:.10f}") for number in range(300)]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        (
            "select date 'infinity' as died",
            "column 'died': has a date before the year 1 or after 9999; correct it",
        ),
        (
            "select interval 3 month as stay",
            "column 'stay': holds intervals of months and days; write them as numbers",
        ),
    ],
)
def test_values_that_no_column_has_are_one_sentence(tmp_path: Path, sql: str, words: str) -> None:
    """The first ended in a traceback, the second was published as `<DateOffset: months=3>`."""
    pytest.importorskip("duckdb")
    with pytest.raises(DataError, match=words):
        read_query(sql, write_database(tmp_path / "p.duckdb"))


def flow(
    folder: Path,
    source: str,
    columns: str = "age: {role: quasi-identifier, kind: numeric, missing: suppress}",
) -> Path:
    file = folder / "flow.yaml"
    file.write_text(
        f"flow: others\nversion: 1\ntable:\n  source: {source}\n"
        f"  columns: {{{columns}, city: {{role: quasi-identifier, kind: categorical}}}}\n"
        "partition: {size: 8}\n"
        "steps: [{anonymize: {algorithm: mondrian, k: 2}}]\n"
        "publish: {table: out/people.csv}\n",
        encoding="utf-8",
    )
    return file


@pytest.mark.parametrize("pieces", ["", ", pieces: 8"])
@pytest.mark.parametrize("kind", ["stats", "stata", "sas", "excel", "sql"])
def test_flows_run_on_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, pieces: str
) -> None:
    if kind == "stats":
        write_stats(tmp_path / "people.sav")
        source = "{stats: people.sav"
    elif kind == "stata":
        write_stats(tmp_path / "people.dta")
        source = "{stats: people.dta"
    elif kind == "sas":
        pytest.importorskip("pyreadstat")
        write_sas_people(tmp_path / "people.sas7bdat")
        source = "{stats: people.sas7bdat"
    elif kind == "excel":
        write_workbook(tmp_path / "p.xlsx", {"one": [["age", "city"], *([20 + n, "Ulm"] for n in range(24))]})
        source = "{excel: p.xlsx, sheet: one"
    else:
        write_database(tmp_path / "p.duckdb")
        source = '{sql: "select age, city from people", database: p.duckdb'
    status, _, err = shell(capsys, "run", flow(tmp_path, f"{source}{pieces}}}"))
    assert status == 0, err
    assert len(pd.read_csv(tmp_path / "out" / "people.csv")) == 24
    record = (tmp_path / "owner" / "others" / "record.json").read_text(encoding="utf-8")
    assert '"source": "' in record  # hashed as every source


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{stats: nobody.sav}", "no such file"),
        ("{stats: text.csv}", "is a file that ends in .sav or"),
        ("{excel: text.csv}", "is a file that ends in .xlsx or .xlsm"),
        ("{stats: torn.sav}", "is not a readable .sav file"),
        ("{stats: declared.dta}", "is not a readable .dta file"),
        ("{stats: torn.sav, sheet: one}", "'sheet' does not go with a stats source"),
        ("{excel: torn.xlsx}", "is not a readable Excel workbook"),
        ("{sql: select 1}", "a query needs 'database'"),
        (
            "{database: torn.duckdb}",
            "a source names exactly one of csv, parquet, stats, excel, sql and dataset",
        ),
        ("{sql: select 1, database: torn.duckdb}", "is not a DuckDB database that can be opened"),
        ("{sql: drop table people, database: p.duckdb}", "a source asks by one SELECT"),
        ("{sql: select 1; select 2, database: p.duckdb}", "a source asks by one SELECT"),
        ("{sql: selec, database: p.duckdb}", "is not SQL that DuckDB can read"),
        ("{sql: select nobody from people, database: p.duckdb}", "names a column that does not exist"),
        ("{sql: select cast(city as int) from people, database: p.duckdb}", "converts a value"),
        ('{sql: "select age, age from people", database: p.duckdb}', "two columns the same name"),
        ("{sql: \"from read_csv('text.csv')\", database: p.duckdb}", "uses a file or a network"),
        ("{sql: \"from 'text.csv'\", database: p.duckdb}", "uses a file or a network"),
        ("{stats: people.sav, codes: kept}", "must be one of missing or values"),
        ("{excel: empty.xlsx}", "the first row of the sheet must be the header"),
        ("{excel: twice.xlsx}", "two columns have the same name"),
        ("{excel: wide.xlsx}", "rows have more cells than the header"),
        ("{excel: twice.xlsx, sheet: nobody}", "has no sheet 'nobody'; it has 1 sheet,"),
    ],
)
def test_bad_sources_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str, expected: str
) -> None:
    for name in ("text.csv", "torn.sav", "torn.xlsx", "torn.duckdb"):
        (tmp_path / name).write_text("age,city\n1,Ulm\n", encoding="utf-8")
    write_database(tmp_path / "p.duckdb")
    write_stats(tmp_path / "people.sav")
    declared = write_stats(tmp_path / "declared.dta")
    declared.write_bytes(declared.read_bytes().replace(b"<N>", b"<N>\xff\xff\xff\x7f", 1))
    write_workbook(tmp_path / "empty.xlsx", {"one": []})
    write_workbook(tmp_path / "twice.xlsx", {"one": [["a", "a"], [1, 2]]})
    write_workbook(tmp_path / "wide.xlsx", {"one": [["a"], [1, 2]]})
    before = everything_in(tmp_path)
    status, out, err = shell(capsys, "run", flow(tmp_path, source))
    assert (status, out) == (2, "")
    messages = [line for line in err.splitlines() if expected in line]
    assert len(messages) == 1, err
    assert "Ulm" not in err
    assert set(everything_in(tmp_path)) - set(before) == {"flow.yaml"}


def test_a_database_is_never_written_to(tmp_path: Path) -> None:
    file = write_database(tmp_path / "p.duckdb")
    before = everything_in(tmp_path), file.read_bytes()
    for sql in (
        "create table t as select 1",
        "copy people to 'x.csv'",
        "attach 'x.duckdb' as y",
        "install httpfs",
    ):
        with pytest.raises(DataError):
            read_query(sql, file)
    assert (everything_in(tmp_path), file.read_bytes()) == before


@pytest.mark.parametrize(
    ("package", "name", "extra"),
    [("pyreadstat", "people.sav", "stats"), ("openpyxl", "people.xlsx", "excel")],
)
def test_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, name: str, extra: str
) -> None:
    (tmp_path / name).write_bytes(b"")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DataError, match=rf"pip install 'anonflow\[{extra}\]'$"):
        read_frame(tmp_path / name)


def test_a_missing_duckdb_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(DataError, match=r"pip install 'anonflow\[sql\]'$"):
        read_query("select 1", tmp_path / "p.duckdb")


def test_the_dashboards_ask_no_database(tmp_path: Path) -> None:
    query = NO_FLOW.changed([(("table", "source"), {"sql": "select 1", "database": "p.duckdb"})])
    with pytest.raises(FlowError, match="the dashboards do not query databases"):
        check_confined(query, tmp_path)


def test_a_table_is_read_from_them(tmp_path: Path) -> None:
    columns = {"sex": {"role": "quasi-identifier", "kind": "categorical"}, "age": {"role": "insensitive"}}
    table = af.Table.read(write_stats(tmp_path / "people.sav"), columns, labels=False)
    assert sorted(set(table.frame["sex"])) == [1, 2]
    with pytest.raises(AnonflowError, match="rename or convert it"):
        read_frame(tmp_path / "people.xls")
