"""Dates as people write them: read, recognized from all values, refused with the form that was seen."""

from __future__ import annotations

import datetime
import re
from collections import defaultdict
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.errors import DataError
from anonflow.table.forms import date_forms as date_forms_module
from anonflow.table.forms.date_forms import DATES, DateForm, date_forms, may_be_date
from tests.strategies import loop

QI = {"role": "quasi-identifier", "kind": "numeric"}


@loop(
    ("dates", "text", "plain"),
    [
        ("d.m.y", "01/03/2013", "2013-03-01"),
        ("d.m.y", "31.12.2014", "2014-12-31"),
        ("d.m.y", "1. 2. 2014", "2014-02-01"),
        ("d.m.y", "1.2/2013", None),
        ("d.m.y", "29.2.2013", None),
        ("d.m.y", "29-2-2012", "2012-02-29"),
        ("d.m.y", "3. März 2013", "2013-03-03"),
        ("d.m.y", "3 MÄRZ 2013", "2013-03-03"),
        ("d.m.y", "1er août 2013", "2013-08-01"),
        ("d.m.y", "3 de marzo de 2013", "2013-03-03"),
        ("d.m.y", "March 3, 2013", "2013-03-03"),
        ("d.m.y", "3-Mar-2013", "2013-03-03"),
        ("d.m.y", "18MAY1944", "1944-05-18"),
        ("d.m.y", "3MÄR2013:08:30:15", "2013-03-03T08:30:15"),
        ("d.m.y", "18ABC1944", None),
        ("d.m.y", "5 мая 2013", "2013-05-05"),
        ("d.m.y", "5 μαΐου 2013", "2013-05-05"),
        ("d.m.y", "5 září 2013", "2013-09-05"),
        ("d.m.y", "5 kesäkuuta 2013", "2013-06-05"),
        ("d.m.y", "5 Kasım 2013", "2013-11-05"),
        ("d.m.y", "5 fog 2013", None),
        ("d.m.y", "14.10.2024 8:30", "2024-10-14T08:30:00"),
        ("d.m.y", "14.10.2024, 08:30:15", "2024-10-14T08:30:15"),
        ("d.m.y", "14.10.2024T08:30:15.25+0200", "2024-10-14T08:30:15.25+02:00"),
        ("d.m.y", "14.10.2024 24:00", None),
        ("m/d/y", "12/31/2014", "2014-12-31"),
        ("m/d/y", "31/12/2014", None),
        ("m/d/y", "12/31/2014 11:59 PM", "2014-12-31T23:59:00"),
        ("m/d/y", "12/31/2014 12:00 am", "2014-12-31T00:00:00"),
        ("m/d/y", "31 Dec 2014", "2014-12-31"),
        ("y/m/d", "2014/12/31", "2014-12-31"),
        ("y/m/d", "2014.7.1", "2014-07-01"),
        ("y/m/d", "2013年3月1日", "2013-03-01"),
        ("y/m/d", "2013년 3월 1일", "2013-03-01"),
        ("y/m/d", "1984", "1984"),
        ("y/m/d", "1984-7", "1984-07"),
        ("d.m.y", "07/1984", "1984-07"),
        ("d.m.y", "July 1984", "1984-07"),
        ("ymd", "20130301", "2013-03-01"),
        ("ymd", "20130001", None),
        ("ymd", "20130300", "2013-03"),
        ("ymd", "20130000", "2013"),
        ("ymd", "2013-03-01", None),
        ("ymd", "01032013", None),
        ("dmy", "01032013", "2013-03-01"),
        ("dmy", "00032013", "2013-03"),
        ("mdy", "03012013", "2013-03-01"),
        ("mdy", "03312013 ", "2013-03-31"),
        ("dmy", "29022013", None),
        ("dmy", "1032013", "2013-03-01"),
        ("dmy", "132013", None),
        ("ymd", "8121231", "0812-12-31"),
        ("d.m.y", "20130301", None),
        ("excel", "41334", "2013-03-01"),
        ("excel", "41334.5", "2013-03-01T12:00:00"),
        ("excel", "1", "1900-01-01"),
        ("excel", "60", None),
        ("excel", "61", "1900-03-01"),
        ("excel-1904", "0", "1904-01-01"),
        ("excel", "-3", None),
    ],
)
def test_a_text_is_one_date_in_a_form(dates: str, text: str, plain: str | None) -> None:
    assert DateForm(dates).read([text]).plain.tolist() == [plain]


@loop(
    ("pivot", "text", "plain"),
    [
        (1930, "1.2.30", "1930-02-01"),
        (30, "1.2.29", "2029-02-01"),
        (1950, "1.2.49", "2049-02-01"),
        (0, "1.2.99", "1999-02-01"),
        (2000, "1.2.99", "2099-02-01"),
        (1930, "29.2.30", None),
    ],
)
def test_a_pivot_is_the_first_year_of_two_digits(pivot: int, text: str, plain: str | None) -> None:
    assert DateForm("d.m.y", pivot).read([text]).plain.tolist() == [plain]


@given(
    day=st.dates(datetime.date(1000, 1, 1)), dates=st.sampled_from([form for form in DATES if "y" in form])
)
def test_every_day_is_read_in_every_order(day: datetime.date, dates: str) -> None:
    parts = {"d": f"{day.day:02d}", "m": f"{day.month:02d}", "y": str(day.year)}
    text = "".join(parts.get(letter, letter) for letter in dates)
    form = DateForm(dates)
    assert form.read([text]).plain.tolist() == [day.isoformat()]
    assert form.cell(day.isoformat()) == text
    if form.sign:
        plain = "".join(
            {"d": str(day.day), "m": str(day.month), "y": str(day.year)}.get(letter, letter)
            for letter in dates
        )
        assert form.read([plain]).plain.tolist() == [day.isoformat()]


PIECES = [
    "1", "03", "2013", "13", "Mar", "März", "mai", "μαΐου", "mar.", "st", "er", ".", "/", "-", "‑", " ", "\u00a0", ", ", " de ", " of ",
    "年", "月", "日", "T08:30", " 8:30 pm", "Z", "v", "_",
]  # fmt: skip


@given(
    st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join), min_size=1, max_size=6)
)
def test_a_text_that_is_not_tried_is_no_date(texts: list[str]) -> None:
    """Patterns are tried where a text begins like a date; nothing that they fit is left out, and no text is read otherwise beside others."""
    for dates in ("d.m.y", "m/d/y", "y-m-d"):
        form = DateForm(dates)
        alone = [form.read([text]).plain[0] for text in texts]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(date_forms_module, "_MAY_FIT", defaultdict(lambda: re.compile("")))
            assert form.read(texts).plain.tolist() == alone
        assert all(may_be_date(text) for text, plain in zip(texts, alone, strict=True) if plain is not None)


@pytest.mark.parametrize("repeated", ["a", "a.", "de ", ".", " ", "-"])
def test_a_long_text_is_told_in_one_pass(repeated: str) -> None:
    """Whoever uploads a table chooses its texts: of a million letters the square of their number would be hours."""
    for beginning in ("1 ", "12.", "1 a ", "a "):
        assert not may_be_date(beginning + repeated * 1_000_000)


@loop(
    ("texts", "orders"),
    [
        (["01/03/2013", "14/10/2024"], ["dmy"]),
        (["01/03/2013", "10/14/2024"], ["mdy"]),
        (["01/03/2013", "02/04/2013"], ["dmy", "mdy"]),
        (["01/01/2013"], ["dmy"]),
        (["31/12/2014", "12/31/2014"], []),
        (["1984", "1984-07", "1984-07-09"], ["ymd"]),
        (["1984", "1985"], []),
        (["3 March 2013"], ["dmy"]),
        (["12.5", "1.25"], []),
        (["20130301", "20130000"], ["ymd"]),
        (["14032013", "1042013"], ["dmy"]),
        (["01032013", "01042013"], ["dmy", "mdy"]),
        (["20130301", "1.2.2013"], []),
        (["20139901"], []),
        (["12345678", "99999999"], []),
    ],
)
def test_each_reading_has_one_order(texts: list[str], orders: list[str]) -> None:
    assert [form.order for form in date_forms(texts)] == orders


def test_dates_of_one_order_are_offered_with_three_examples() -> None:
    days = ["01/03/2013", "14/10/2024", "01/02/2019", "31/08/2010"] * 4
    frame = pd.DataFrame({"hired": days, "sex": ["F", "M"] * 8})
    schema = af.Schema.infer(frame)
    assert schema.to_mapping()["hired"] == {**QI, "dates": "d/m/y"}
    reason = af.Schema.advise(frame).set_index("column").loc["hired", "reasons"]
    assert "(01/03/2013 is 2013-03-01; 14/10/2024 is 2024-10-14; 01/02/2019 is 2019-02-01)" in reason
    table = af.Table(frame, schema)
    assert table.domains[0].dates == "date"
    assert table.domains[0].labels[0] == "2010-08-31"


@loop(
    "cells",
    [
        ["20130301", "19841231", "20101015"],
        [20130301, 19841231, 20101015],
        [20130301.0, None, 20101015.0],
        ["20130301", None, "19840000"],
    ],
)
def test_eight_digits_are_dates(cells: list[Any]) -> None:
    """As text, as whole numbers, and as those beside blanks; a day or a month that is not known is 00."""
    frame = pd.DataFrame({"admitted": cells * 5, "sex": ["F", "M", "F"] * 5})
    entry = af.Schema.infer(frame).to_mapping()["admitted"]
    assert entry["dates"] == "ymd"
    reason = af.Schema.advise(frame).set_index("column").loc["admitted", "reasons"]
    assert "its dates are written with eight digits, the year first (20130301 is 2013-03-01" in reason
    domain = af.Table(frame, {"admitted": entry}).domains[0]
    assert "2013-03-01" in domain.labels
    assert (domain.dates or "months and years") == ("months and years" if "19840000" in cells else "date")


@loop("cells", [[20139901, 20130301], [12345678, 23456789], ["00000001", "00000002"], [2013030, 2013031]])
def test_whole_numbers_of_other_kinds_are_no_dates(cells: list[Any]) -> None:
    frame = pd.DataFrame({"amount": cells * 5, "sex": ["F", "M"] * 5})
    assert "dates" not in af.Schema.infer(frame).to_mapping()["amount"]


def test_the_year_2000_may_have_two_digits() -> None:
    frame = pd.DataFrame({"born": ["31.12.84", "30.11.00", "29.02.00"] * 5, "sex": ["F", "M", "F"] * 5})
    reason = af.Schema.advise(frame).set_index("column").loc["born", "reasons"]
    assert "have years of two digits" in reason
    table = af.Table(frame, {"born": {**QI, "dates": "d.m.y", "pivot": 30}})
    assert table.domains[0].labels == ("1984-12-31", "2000-02-29", "2000-11-30")


def test_dates_of_two_orders_are_asked_about_and_stay_text() -> None:
    frame = pd.DataFrame({"hired": ["01/03/2013", "02/04/2014"] * 5, "sex": ["F", "M"] * 5})
    assert af.Schema.infer(frame)["hired"].kind == "categorical"
    reason = af.Schema.advise(frame).set_index("column").loc["hired", "reasons"]
    assert "add dates: d/m/y to the column, or" in reason
    assert "add dates: m/d/y" in reason


def test_years_of_two_digits_are_asked_about() -> None:
    frame = pd.DataFrame({"born": ["31.12.84", "30.11.05"] * 5, "sex": ["F", "M"] * 5})
    assert af.Schema.infer(frame)["born"].kind == "categorical"
    reason = af.Schema.advise(frame).set_index("column").loc["born", "reasons"]
    assert "have years of two digits" in reason
    assert "dates: d.m.y, pivot: 30" in reason
    with pytest.raises(DataError, match="10 dates with a year of two digits; say the first year"):
        af.Table(frame, {"born": {**QI, "dates": "d.m.y"}})
    table = af.Table(frame, {"born": {**QI, "dates": "d.m.y", "pivot": 1930}})
    assert table.domains[0].labels == ("1984-12-31", "2005-11-30")


@loop(
    ("texts", "keys", "words"),
    [
        (
            ["31/12/2014", "1/2/2014"],
            {},
            "its dates are written with the day before the month: add dates: d/m/y",
        ),
        (
            ["31/12/2014", "12/31/2014"],
            {},
            "1 dates with the day before the month and 1 with the month before the day; write",
        ),
        (["31/12/2014", "12/31/2014"], {"dates": "d/m/y"}, "write all of them in one way"),
        (["31/12/2014", "30/11/2013"], {"dates": "m/d/y"}, "add dates: d/m/y to the column"),
        (["1.2.2014 08:00Z", "1.2.2014 08:00"], {"dates": "d.m.y"}, "dates with and without a time zone"),
    ],
)
def test_a_refusal_names_the_order_that_was_seen(
    texts: list[str], keys: dict[str, object], words: str
) -> None:
    with pytest.raises(DataError) as refused:
        af.Table(pd.DataFrame({"day": texts}), {"day": {**QI, **keys}})
    assert words in str(refused.value), str(refused.value)
    assert "2014" not in str(refused.value)


def test_serial_numbers_are_dates_on_request() -> None:
    for cells in (["41334", "41335.5"], [41334, 41335.5]):
        table = af.Table(pd.DataFrame({"day": cells}), {"day": {**QI, "dates": "excel"}})
        assert table.domains[0].labels == ("2013-03-01T00:00:00", "2013-03-02T12:00:00")


def test_the_year_00_is_a_year_of_two_digits() -> None:
    assert [form.dates for form in date_forms(["14.09.00", "08.10.58", "29.02.00"])] == ["d/m/y"]
    assert DateForm("d.m.y", 30).read(["14.09.00"]).plain.tolist() == ["2000-09-14"]


def test_names_before_days_are_the_month_before_the_day() -> None:
    assert date_forms(["May 18, 1944", "Oct 3 2001"])[0].dates == "m/d/y"
    assert date_forms(["18 May 1944"])[0].dates == "d/m/y"
