"""Steps before: what each does to cells, what it counts, and its bad input."""

from __future__ import annotations

import datetime
import math
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.errors import DataError, SchemaError
from anonflow.risk.register import RegisterCounts
from anonflow.table.prepare import STEPS, Preparation
from tests.strategies import loop

QI = {"role": "quasi-identifier"}


def after(cells: list[Any], name: str, dtype: Any = None, **options: Any) -> list[Any]:
    """What a step makes of a column; None is missing."""
    frame = pd.DataFrame({"c": pd.Series(cells, dtype=dtype)})
    done = Preparation([{name: {"column": "c", **options}}]).apply(frame)
    return [None if pd.isna(cell) else cell for cell in done.iloc[:, 0].tolist()]


def test_numbers_are_coded_at_the_top_and_the_bottom() -> None:
    assert after([17, 90, 91], "top-code", at=90) == [17, 90, 90]
    assert after([17, 90, 91], "bottom-code", at=18) == [18, 90, 91]
    assert after(["17", None, "91.5"], "top-code", at=90) == ["17", None, "90"]
    assert after([1.5, math.nan], "top-code", at=0.1) == [0.1, None]
    assert after([17, 91], "top-code", at=90.5) == [17.0, 90.5]
    assert after([1 << 60, (1 << 60) + 1], "top-code", at=1 << 62) == [1 << 60, (1 << 60) + 1]


def test_rounding_is_exact_and_halves_go_up() -> None:
    assert after([1499, 1500, 2500, -1500, -1501], "round", to=1000) == [1000, 2000, 3000, -1000, -2000]
    assert after(["0.25", "0.35", "-0.05"], "round", to=0.1) == ["0.3", "0.4", "0"]
    assert after([0.1, 0.2, 0.3], "round", to=0.1) == [0.1, 0.2, 0.3]


def test_intervals_have_their_lower_end() -> None:
    assert after([19, 20, 29, 30], "intervals", width=10) == ["[10, 20)", "[20, 30)", "[20, 30)", "[30, 40)"]
    assert after(["0.3", None, "-0.1"], "intervals", width=0.1) == ["[0.3, 0.4)", None, "[-0.1, 0)"]
    assert after([5, 3], "intervals", width=5, start=3) == ["[3, 8)", "[3, 8)"]


@given(
    st.lists(st.decimals(-1000, 1000, places=2), min_size=1, max_size=8),
    st.decimals("0.01", 50, places=2),
    st.sampled_from([0, 1, 2.5]),
)
def test_every_number_lies_in_its_interval(numbers: list[Decimal], width: Decimal, start: float) -> None:
    texts = after([str(number) for number in numbers], "intervals", width=float(width), start=start)
    for number, text in zip(numbers, texts, strict=True):
        low, high = (Decimal(end) for end in text[1:-1].split(", "))
        assert low <= number < high
        steps = ((number - Decimal(str(start))) / width).to_integral_value(ROUND_FLOOR)
        assert low == Decimal(str(start)) + steps * width


def test_values_are_recoded_by_a_table() -> None:
    table = {"farmer": "field", "clerk": None}
    assert after(["farmer", "clerk", "boss", None], "recode", values=table) == ["field", None, "boss", None]
    assert after(["farmer", "boss"], "recode", values=table, others="missing") == ["field", None]
    assert after([1, 2, 3], "recode", values={1: "one", 2: 7}) == ["one", "7", "3"]
    with pytest.raises(DataError, match=r"1 cell has a value that `recode` does not name") as refused:
        after(["farmer", "boss"], "recode", values=table, others="refuse")
    assert "boss" not in str(refused.value)


@loop("dates", ["text", "stamps"])
def test_parts_of_dates(dates: str) -> None:
    cells: Any = ["1980-02-29", "2000-12-31", None]
    cells = cells if dates == "text" else list(pd.to_datetime(pd.Series(cells)))
    assert after(cells, "date-part", part="year") == ["1980", "2000", None]
    assert after(cells, "date-part", part="month") == ["2", "12", None]
    assert after(cells, "date-part", part="year-month") == ["1980-02", "2000-12", None]
    assert after(cells, "date-part", part="age", on="2021-02-28") == ["40", "20", None]
    assert after(cells, "date-part", part="age", on=datetime.date(2021, 3, 1)) == ["41", "20", None]
    assert after([None, None], "date-part", part="year") == [None, None]


@given(st.dates(datetime.date(1900, 1, 1), datetime.date(2020, 1, 1)))
def test_ages_are_birthdays_that_have_passed(born: datetime.date) -> None:
    on = datetime.date(2020, 6, 15)
    birthdays = sum(
        (born.month, born.day) <= (on.month, on.day) or year < 2020 for year in range(born.year + 1, 2021)
    )
    assert after([born.isoformat()], "date-part", part="age", on=on) == [str(birthdays)]


def test_texts_are_made_alike() -> None:
    assert after(["  Lyon ", "Bad  Ems", "\t", None], "normalize-text") == ["Lyon", "Bad Ems", None, None]
    assert after(["Kiel", "KIEL"], "normalize-text", case="lower") == ["kiel", "kiel"]
    assert after(["Besan\u00e7on", "Besanc\u0327on"], "normalize-text") == ["Besan\u00e7on"] * 2
    assert after(["Besan\u00e7on"], "normalize-text", accents="remove", case="upper") == ["BESANCON"]


def test_codes_are_cut() -> None:
    codes = ["37218", "37218-1234", "01230", None]
    assert after(codes, "prefix", length=5) == ["37218", "37218", "01230", None]
    assert after(codes, "suffix", length=2) == ["18", "34", "30", None]
    assert after([37218, 1230], "prefix", length=3) == ["372", "123"]
    short = ["37218", "372", "3", None]
    assert after(short, "prefix", length=4, shorter="keep") == ["3721", "372", "3", None]
    assert after(short, "suffix", length=4, shorter="missing") == ["7218", None, None, None]
    for step in ("prefix", "suffix"):
        with pytest.raises(
            DataError, match=f"2 cells have fewer than the 4 characters of `{step}`"
        ) as refused:
            after(short, step, length=4)
        assert "372" not in str(refused.value)


def test_rows_are_filtered() -> None:
    assert after(["17", "18", "65", None], "filter", **{"at-least": 18}) == ["18", "65"]
    assert after([17, 18, 65], "filter", **{"at-least": 18, "at-most": 20}) == [18]
    assert after(["a", "b", None], "filter", values=["a"], missing="keep") == ["a", None]
    assert after(["a", "b", None], "filter", without=["a"]) == ["b"]
    assert after([1, 2], "filter", values=[2]) == [2]


def test_what_each_step_changes_is_counted() -> None:
    frame = pd.DataFrame({"age": [17, 40, 91, 95], "town": ["Kiel", "kiel ", None, "Bonn"]})
    steps = Preparation(
        [
            {"filter": {"column": "age", "at-least": 18}},
            {"top-code": {"column": "age", "at": 90}},
            {"normalize-text": {"column": "town", "case": "lower"}},
            {"rename": {"column": "town", "to": "city"}},
        ]
    )
    changes = steps.changes(frame)
    assert changes["changed"].tolist() == [0, 2, 2, 0]
    assert changes["removed"].tolist() == [1, 0, 0, 0]
    assert changes["left"].tolist() == [3, 2, 2, 2]
    assert frame["age"].tolist() == [17, 40, 91, 95]
    assert Preparation(steps.to_list()).to_list() == steps.to_list()


def test_a_table_is_prepared_once_and_verified_against_what_it_became() -> None:
    frame = pd.DataFrame({"age": [20, 21, 91, 95, 30], "town": ["Kiel ", "kiel", "Bonn", "bonn", "x"]})
    schema = af.Schema(
        {"age": {**QI, "kind": "numeric"}, "city": {**QI, "kind": "categorical"}},
        prepare=[
            {"rename": {"column": "town", "to": "city"}},
            {"normalize-text": {"column": "city", "case": "lower"}},
            {"filter": {"column": "city", "without": ["x"]}},
            {"top-code": {"column": "age", "at": 90}},
        ],
    )
    table = af.Table(frame, schema)
    assert table.filtered == 1
    assert table.frame["age"].tolist() == [20, 21, 90, 90]
    again = af.Table(table.frame, table.schema)
    assert again.frame.equals(table.frame)
    release = af.anonymize(table, "mondrian", k=2).release(seed=1 << 100).frame
    assert af.verify(table, release, ["covers", "k-anonymity"], k=2)
    assert sorted(release["age"].astype(str)) == ["20-21", "20-21", "90", "90"]


def test_a_register_is_prepared_alike() -> None:
    frame = pd.DataFrame({"age": [20, 20, 91, 95]})
    schema = af.Schema(
        {"age": {**QI, "kind": "numeric"}}, prepare=[{"top-code": {"column": "age", "at": 90}}]
    )
    table = af.Table(frame, schema)
    register = pd.DataFrame({"age": [20, 20, 92, 93, 99]})
    release = af.anonymize(table, "mondrian", k=2).release(seed=1 << 100).frame
    counts = RegisterCounts.of(release, table.schema, register, table)
    assert sorted(counts.of_row.tolist()) == [2, 2, 3, 3]
    alone = RegisterCounts.of(release, schema, register)
    assert sorted(alone.of_row.tolist()) == [2, 2, 3, 3]
    assert register["age"].tolist() == [20, 20, 92, 93, 99]


BAD: list[tuple[Any, str]] = [
    ("top-code", "a list of steps"),
    ([5], "needs one name with its options"),
    ([{"top-cod": {}}], "did you mean 'top-code'"),
    ([{"top-code": {"at": 3}}], "name of its column"),
    ([{"top-code": {"column": "age"}}], "top-code needs at"),
    ([{"top-code": {"column": "age", "at": "x"}}], "at must be a number"),
    ([{"bottom-code": {"column": "age", "at": math.inf}}], "at must be a number"),
    ([{"round": {"column": "age", "to": 0}}], "positive"),
    ([{"intervals": {"column": "age", "width": -1}}], "positive"),
    ([{"intervals": {"column": "age", "width": 1, "begin": 2}}], "unknown key 'begin'"),
    ([{"recode": {"column": "age", "values": []}}], "must be a mapping"),
    ([{"recode": {"column": "age"}}], "needs values or a table file, one of the two"),
    ([{"recode": {"column": "age", "values": {"a": "b"}, "file": "codes.csv"}}], "one of the two"),
    ([{"recode": {"column": "age", "file": "no-such.csv"}}], "table file 'no-such.csv' cannot be read"),
    ([{"recode": {"column": "age", "file": ""}}], "path of a CSV file"),
    ([{"recode": {"column": "age", "file": 3}}], "file must be the path of a CSV file"),
    ([{"recode": {"column": "age", "values": {"a": ["b"]}}}], "texts and numbers"),
    ([{"recode": {"column": "age", "values": {"a": "b"}, "others": "drop"}}], "one of keep, missing, refuse"),
    ([{"date-part": {"column": "born", "part": "age"}}], "age needs it"),
    ([{"date-part": {"column": "born", "part": "age", "on": "2020-02-30"}}], "must be a date"),
    ([{"date-part": {"column": "born", "part": "year", "on": "2020-02-20"}}], "goes with the part age"),
    ([{"normalize-text": {"column": "c", "case": "title"}}], "one of keep, lower, upper"),
    ([{"prefix": {"column": "zip"}}], "prefix needs length"),
    ([{"suffix": {"column": "zip", "length": 0}}], "length must be"),
    ([{"prefix": {"column": "zip", "length": 2.5}}], "length must be"),
    ([{"prefix": {"column": "zip", "length": 2, "shorter": "pad"}}], "one of refuse, keep, missing"),
    ([{"numbers": {"column": "age", "decimal": ";"}}], "one of ., ,"),
    (
        [{"numbers": {"column": "age", "decimal": ".", "thousands": "."}}],
        "decimal and thousands are the same",
    ),
    ([{"numbers": {"column": "age", "others": "N"}}], "must be a list of texts"),
    ([{"dates": {"column": "born"}}], "dates needs order"),
    ([{"dates": {"column": "born", "order": "d.y.m"}}], "must be one of d.m.y"),
    ([{"filter": {"column": "age"}}], "needs at-least"),
    ([{"filter": {"column": "age", "at-least": 5, "at-most": 4}}], "no row would stay"),
    ([{"filter": {"column": "age", "values": "a"}}], "must be a list"),
    ([{"rename": {"column": "age", "to": " "}}], "must not be empty"),
]


@loop(("steps", "words"), BAD)
def test_bad_steps_are_a_sentence(steps: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=words) as refused:
        Preparation(steps)
    assert "\n" not in refused.value.problems[0]


@loop(
    ("steps", "words"),
    [
        ([{"top-code": {"column": "agee", "at": 3}}], "did you mean 'age'"),
        ([{"top-code": {"column": "town", "at": 3}}], "not numbers; recode them in a step before"),
        ([{"top-code": {"column": "born", "at": 3}}], "take date-part before"),
        ([{"date-part": {"column": "age", "part": "year"}}], "has no dates"),
        ([{"date-part": {"column": "born", "part": "age", "on": "1990-01-01"}}], "1 date is after"),
        ([{"normalize-text": {"column": "age"}}], "holds no text"),
        ([{"rename": {"column": "age", "to": "town"}}], "is taken"),
        ([{"filter": {"column": "age", "at-least": 1000}}], "leave no row"),
    ],
)
def test_steps_that_do_not_go_with_the_table_are_a_sentence(steps: Any, words: str) -> None:
    frame = pd.DataFrame({"age": [1, 2], "town": ["Secretville", "b"], "born": ["1980-01-01", "1999-01-01"]})
    schema = af.Schema({"age": {**QI, "kind": "numeric"}}, prepare=steps)
    with pytest.raises((DataError, SchemaError), match=words) as refused:
        af.Table(frame, schema)
    assert "Secretville" not in str(refused.value)


def test_the_advice_about_codes_in_a_sensitive_column_is_taken() -> None:
    frame = pd.DataFrame({"age": [1, 2, 3], "dose": ["12", "N", "27"]})
    steps = [{"round": {"column": "dose", "to": 10}}]
    columns = {"age": {**QI, "kind": "numeric"}, "dose": {"role": "sensitive"}}
    with pytest.raises(DataError, match="'dose': 1 value is no number; recode them in a step before, or"):
        af.Table(frame, af.Schema(columns, prepare=steps))
    before = {"recode": {"column": "dose", "values": {"N": None}}}
    table = af.Table(frame, af.Schema(columns, prepare=[before, *steps]))
    assert table.frame["dose"].fillna("").tolist() == ["10", "", "30"]


def test_every_step_is_here() -> None:
    named = {
        name
        for steps, _ in BAD
        if isinstance(steps, list)
        for entry in steps
        if isinstance(entry, dict)
        for name in entry
    }
    assert set(STEPS) <= named


def test_types_rest_on_the_column_and_not_on_its_values() -> None:
    for dtype in ("int64", "float64", "Int64", "str"):
        for name, options in (("top-code", {"at": 5}), ("round", {"to": 2}), ("intervals", {"width": 3})):
            step = Preparation([{name: {"column": "c", **options}}])
            few = [
                step.apply(pd.DataFrame({"c": pd.Series(cells, dtype=dtype)}))["c"].dtype
                for cells in ([], [1], [1, 9])
            ]
            assert len(set(map(str, few))) == 1
    assert (
        np.dtype("int64")
        == Preparation([{"top-code": {"column": "c", "at": 5}}]).apply(pd.DataFrame({"c": [1, 9]}))["c"].dtype
    )


def test_a_table_file_recodes_as_its_values_do(tmp_path: Path) -> None:
    (tmp_path / "codes.csv").write_text('old,new\n1,one\n"a,b",two\ngone,\n', encoding="utf-8-sig")
    step = {"recode": {"column": "c", "file": "codes.csv", "others": "missing"}}
    steps = Preparation([step], tmp_path)
    frame = pd.DataFrame({"c": ["1", "a,b", "gone", "else"]})
    assert steps.apply(frame)["c"].tolist()[:2] == ["one", "two"]
    assert steps.apply(frame)["c"].isna().tolist() == [False, False, True, True]
    assert steps.to_list() == [step]
    assert steps.files == ("codes.csv",)
    assert "file codes.csv" in steps.steps[0].words
    values = {
        "recode": {"column": "c", "values": {"1": "one", "a,b": "two", "gone": None}, "others": "missing"}
    }
    assert Preparation([values]).apply(frame).equals(steps.apply(frame))
    schema = af.Schema({"c": {"role": "quasi-identifier", "kind": "suppression"}}, tmp_path, [step])
    assert af.Table(frame, schema).frame["c"].iloc[0] == "one"


BAD_FILES: list[tuple[bytes, str]] = [
    (b"", "does not begin with the line old,new"),
    (b"a,b\n1,2\n", "does not begin with the line old,new"),
    (b"old,new\n", "has 0 values"),
    (b"old,new\n1,2,3\n", "line 2: has 3 cells"),
    (b"old,new\n1,2\n1,3\n", "line 3: its value is there already"),
    (b"old,new\n\xff,2\n", "is not in UTF-8"),
    (b'old,new\n"a"b,2\n', "is no CSV file"),
]


@pytest.mark.parametrize(("content", "words"), BAD_FILES)
def test_bad_table_files_are_a_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "codes.csv").write_bytes(content)
    with pytest.raises(SchemaError, match=words) as refused:
        Preparation([{"recode": {"column": "c", "file": "codes.csv"}}], tmp_path)
    assert "\xff" not in str(refused.value)


@loop(
    ("part", "expected"),
    [
        ("day", ["2021-02-15", "2020-12-31"]),
        ("quarter", ["2021-Q1", "2020-Q4"]),
        ("half", ["2021-H1", "2020-H2"]),
        ("5-years", ["2020-2024", "2020-2024"]),
        ("10-years", ["2020-2029", "2020-2029"]),
        ("week", ["2021-W07", "2020-W53"]),
        ("weekday", ["1", "4"]),
        ("year", ["2021", "2020"]),
        ("year-month", ["2021-02", "2020-12"]),
    ],
)
def test_parts_of_the_calendar(part: str, expected: list[str]) -> None:
    frame = pd.DataFrame({"day": ["2021-02-15", "2020-12-31", None]})
    steps = Preparation([{"date-part": {"column": "day", "part": part}}])
    cells = steps.apply(frame)["day"]
    assert cells.tolist()[:2] == expected
    assert cells.isna().tolist() == [False, False, True]


@loop(
    ("unknown", "ages"),
    [
        ("youngest", ["35", "35", "36", "30", None]),
        ("oldest", ["36", "36", "36", "30", None]),
        ("missing", [None, None, "36", "30", None]),
    ],
)
def test_ages_of_people_whose_day_of_birth_is_not_known(unknown: str, ages: list[str | None]) -> None:
    frame = pd.DataFrame({"born": ["1984", "1984-07", "1984-06", "1990-01-02", None]})
    option = {"column": "born", "part": "age", "on": "2020-07-15"}
    cells = Preparation([{"date-part": option | {"unknown-day": unknown}}]).apply(frame)["born"]
    assert [None if pd.isna(cell) else cell for cell in cells] == ages
    with pytest.raises(
        DataError, match="2 dates are a month or a year alone and do not say the age; say unknown-day"
    ):
        Preparation([{"date-part": option}]).apply(frame)


def test_parts_that_a_partial_date_has() -> None:
    frame = pd.DataFrame({"born": ["1984", "1984-07", "1990-01-02"]})
    years = Preparation([{"date-part": {"column": "born", "part": "year"}}]).apply(frame)["born"]
    assert years.tolist() == ["1984", "1984", "1990"]
    with pytest.raises(
        DataError, match="1 date is a month or a year alone and does not say the month; take a longer"
    ):
        Preparation([{"date-part": {"column": "born", "part": "month"}}]).apply(frame)


def test_steps_that_read_numbers_and_dates() -> None:
    steps = [
        {"numbers": {"column": "pay", "decimal": ",", "others": ["N"]}},
        {"dates": {"column": "born", "order": "d.m.y", "pivot": 1930}},
        {"date-part": {"column": "born", "part": "age", "on": "2020-07-15"}},
    ]
    frame = pd.DataFrame({"pay": ["1,5", "N", None], "born": ["1.2.84", "2. März 1990", None]})
    after = Preparation(steps).apply(frame)
    assert after["pay"].tolist()[:2] == ["1.5", "N"]
    assert after["born"].tolist()[:2] == ["36", "30"]


@pytest.mark.parametrize(
    "step",
    [
        {"top-code": {"column": "age", "at": 60}},
        {"bottom-code": {"column": "age", "at": 30}},
        {"round": {"column": "age", "to": 5}},
        {"intervals": {"column": "age", "width": 10}},
    ],
)
def test_codes_beside_numbers_stay_in_steps_that_work_on_numbers(step: dict[str, Any]) -> None:
    numbers, codes = ["17", "33", "82", "64"], ["unknown", "refused"]
    frame = pd.DataFrame({"age": [*numbers[:2], codes[0], None, *numbers[2:], codes[1]]})
    with pytest.raises(
        DataError, match=r"2 values are not numbers; .* codes stay: name them under 'others' of the step"
    ):
        Preparation([step]).apply(frame)
    ((name, options),) = step.items()
    done = Preparation([{name: {**options, "others": codes}}]).apply(frame)["age"]
    alone = Preparation([step]).apply(pd.DataFrame({"age": numbers}))["age"].tolist()
    assert done.isna().tolist() == [False, False, False, True, False, False, False]
    assert done.dropna().tolist() == [*alone[:2], codes[0], *alone[2:], codes[1]]
    with pytest.raises(SchemaError, match="must be a list of texts"):
        Preparation([{name: {**options, "others": [7]}}])
