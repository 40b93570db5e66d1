"""Numbers as people write them: read, recognized from all values, refused with the form that was seen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.errors import DataError, HierarchyError, SchemaError
from anonflow.table.forms.number_forms import DECIMALS, THOUSANDS, NumberForm, may_be_number, number_forms
from anonflow.table.forms.text_forms import seen
from tests.strategies import loop

QI = {"role": "quasi-identifier", "kind": "numeric"}


@loop(
    ("form", "text", "plain"),
    [
        (NumberForm(","), "1,25", "1.25"),
        (NumberForm(","), " 0,50 ", "0.5"),
        (NumberForm(","), "3,10-", "-3.1"),
        (NumberForm(","), "\u22123,0", "-3"),
        (NumberForm(","), "1,5e3", "1500"),
        (NumberForm(","), "2,50 €", "2.5"),
        (NumberForm(","), "EUR 2,50", "2.5"),
        (NumberForm(","), "-0,0", "0"),
        (NumberForm(","), "0123456789012345678,9", "123456789012345678.9"),
        (NumberForm(","), "1.25", None),
        (NumberForm(","), "1,", None),
        (NumberForm(","), "(3,10)", "-3.1"),
        (NumberForm(","), "(-3,10)", None),
        (NumberForm(","), "(3,10", None),
        (NumberForm(","), "--1", None),
        (NumberForm(","), "-1-", None),
        (NumberForm(","), "€ 1 €", None),
        (NumberForm(","), "€", None),
        (NumberForm(","), "5%", None),
        (NumberForm(None, "."), "1.234.567,8", "1234567.8"),
        (NumberForm(None, "."), "1234", "1234"),
        (NumberForm(None, "."), "1.23", None),
        (NumberForm(None, ","), "$1,234.50", "1234.5"),
        (NumberForm(None, ","), "($1,234.50)", "-1234.5"),
        (NumberForm(None, ","), "12,34", None),
        (NumberForm(",", " "), "1\u00a0234,5", "1234.5"),
        (NumberForm(",", " "), "1\u202f234 567", "1234567"),
        (NumberForm(None, "'"), "CHF 1’234'567.05", "1234567.05"),
        (NumberForm(",", None, True), "12,5 %", "12.5"),
        (NumberForm(None, None, True), "7%", "7"),
    ],
)
def test_a_text_is_one_number_in_a_form(form: NumberForm, text: str, plain: str | None) -> None:
    assert form.read([text]).plain.tolist() == [plain]


@given(
    number=st.decimals(-(10**12), 10**12, places=4),
    decimal=st.sampled_from(DECIMALS),
    thousands=st.sampled_from([None, *THOUSANDS]),
)
def test_what_is_written_is_read_back(number: object, decimal: str, thousands: str | None) -> None:
    form = NumberForm(decimal, thousands)
    if form.problem is None:
        plain = NumberForm().read([f"{number:f}"]).plain.tolist()
        assert form.read([form.written(plain[0])]).plain.tolist() == plain


@loop(
    ("texts", "keys"),
    [
        (["1,25", "2,5"], [{"decimal": ","}]),
        (["1.234,5", "2"], [{"decimal": ",", "thousands": "."}]),
        (["1 234", "5"], [{"thousands": " "}]),
        (["1'234", "5"], [{"thousands": "'"}]),
        (["10%", "12.5%"], [{"percent": True}]),
        (["1.234", "2.345"], [{}, {"decimal": ",", "thousands": "."}]),
        (["1,234", "12"], [{"decimal": ","}, {"thousands": ","}]),
        (["1.234", "0.5"], [{}]),
        (["1.234", "1500"], [{}]),
        (["12.345", "15000"], [{}]),
        (["0.123", "0.345"], [{}]),
        (["1", "2"], [{}]),
        (["2021-01-01"], []),
        (["1,5", "1.5"], []),
        (["0171 234 567"], []),
        ([*[f"{n},5" for n in range(1500)], "x"], []),
    ],
)
def test_each_reading_has_one_form(texts: list[str], keys: list[dict[str, object]]) -> None:
    assert [form.to_mapping() for form in number_forms(texts)] == keys


def test_a_column_that_reads_in_one_way_is_offered_with_three_examples() -> None:
    frame = pd.DataFrame({"pay": ["1,25", "2,5", "10,75", "3,1"] * 5, "city": ["Ulm", "Bonn"] * 10})
    schema = af.Schema.infer(frame)
    assert schema.to_mapping()["pay"] == {**QI, "decimal": ","}
    reason = af.Schema.advise(frame).set_index("column").loc["pay", "reasons"]
    assert "with a decimal comma (1,25 is 1.25; 2,5 is 2.5; 10,75 is 10.75)" in reason
    assert af.Table(frame, schema).domains[0].labels == ("1.25", "2.5", "3.1", "10.75")


def test_a_column_that_reads_in_two_ways_is_asked_about_and_stays_text() -> None:
    frame = pd.DataFrame({"pay": ["1.234", "2.345", "9.100"] * 5, "city": ["Ulm", "Bonn", "Kiel"] * 5})
    schema = af.Schema.infer(frame)
    assert schema.to_mapping()["pay"] == {"role": "quasi-identifier", "kind": "categorical"}
    reason = af.Schema.advise(frame).set_index("column").loc["pay", "reasons"]
    assert 'add decimal: "." to the column, or' in reason
    assert 'add decimal: ",", thousands: "." to the column' in reason
    for keys, low in (({"decimal": "."}, "1.234"), ({"thousands": "."}, "1234")):
        assert af.Table(frame, {"pay": {**QI, **keys}}).domains[0].labels[0] == low


def test_codes_and_blanks_beside_such_numbers_stay() -> None:
    frame = pd.DataFrame(
        {"dose": [f"{n},5" for n in range(20)] + ["N"] * 6 + [None] * 2, "sex": ["F", "M"] * 14}
    )
    entry = af.Schema.infer(frame).to_mapping()["dose"]
    assert entry == {**QI, "codes": ["N"], "missing": "value", "decimal": ","}
    table = af.Table(frame, af.Schema.infer(frame))
    assert table.domains[0].labels[:2] == ("0.5", "1.5")
    assert table.domains[1].labels == ("{}", "", "N")


@loop(
    ("texts", "keys", "words"),
    [
        (
            ["1,25", "2,5"],
            {},
            '2 values are not numbers; its numbers are written with a decimal comma: add decimal: ","',
        ),
        (
            ["1,25", "1.5"],
            {},
            "1 numbers with a decimal point and 1 with a decimal comma; write all of them in one way",
        ),
        (["1,25", "x", "2,5"], {}, "2 numbers with a decimal comma, and 1 other value"),
        (["12%", "15%"], {}, "percent signs: add percent: true to the column"),
        (["12%", "115%"], {"percent": True}, "1 percents above 100; correct them"),
        (["12%", "15"], {"percent": True}, "1 value with a percent sign and 1 without"),
        (["€1", "$2"], {"decimal": "."}, "amounts in 2 currencies"),
        (
            ["1.25", "2.5"],
            {"decimal": ","},
            "2 values are not numbers with a decimal comma; its numbers are written with a decimal point",
        ),
        (["Secretville", "b"], {}, "2 values are not numbers; use kind categorical"),
    ],
)
def test_a_refusal_names_the_form_that_was_seen(
    texts: list[str], keys: dict[str, object], words: str
) -> None:
    with pytest.raises(DataError) as refused:
        af.Table(pd.DataFrame({"pay": texts}), {"pay": {**QI, **keys}})
    assert words in str(refused.value), str(refused.value)
    assert "1,25" not in str(refused.value)
    assert "Secretville" not in str(refused.value)


@loop(
    ("keys", "words"),
    [
        ({"decimal": ";"}, "decimal is one of '.', ','"),
        ({"thousands": "_"}, "thousands is one of"),
        ({"decimal": ",", "thousands": ","}, "decimal and thousands are the same"),
        ({"percent": "yes"}, "percent is true or false"),
        ({"decimal": ",", "dates": "d.m.y"}, "dates do not go with decimal"),
        ({"dates": "d.y.m"}, "dates is one of d.m.y"),
        ({"pivot": 1930}, "pivot goes with dates"),
        ({"dates": "d.m.y", "pivot": "30"}, "pivot is a year"),
    ],
)
def test_keys_that_cannot_be_used_are_a_sentence(keys: dict[str, object], words: str) -> None:
    with pytest.raises(SchemaError) as refused:
        af.Schema({"pay": {**QI, **keys}})
    assert words in str(refused.value)


def test_keys_go_with_every_role_that_is_published() -> None:
    columns = {
        "age": QI,
        "pay": {"role": "sensitive", "decimal": ",", "thousands": "."},
        "left": {"role": "insensitive", "dates": "d.m.y"},
        "w": {"role": "weight", "decimal": ","},
    }
    frame = pd.DataFrame(
        {"age": ["1", "2"], "pay": ["1.250,50", "3"], "left": ["1.2.2003", None], "w": ["1,5", "2"]}
    )
    schema = af.Schema(columns)
    assert schema.to_mapping() == columns
    table = af.Table(frame, schema)
    assert table.frame["pay"].tolist() == ["1250.5", "3"]
    assert table.frame["left"].tolist()[0] == "2003-02-01"
    assert table.frame["left"].isna().tolist() == [
        False,
        True,
    ]
    assert np.array_equal(table.weights, [1.5, 2.0])
    with pytest.raises(
        SchemaError, match="only for the roles quasi-identifier, sensitive, insensitive, weight"
    ):
        af.Schema({"age": QI, "id": {"role": "identifier", "decimal": ","}})


def test_reading_comes_before_the_steps_and_follows_a_new_name() -> None:
    steps = [{"rename": {"column": "Alter", "to": "age"}}, {"top-code": {"column": "age", "at": 2.5}}]
    schema = af.Schema({"age": {**QI, "decimal": ","}}, prepare=steps)
    table = af.Table(pd.DataFrame({"Alter": ["1,5", "9,5"]}), schema)
    assert table.frame["age"].tolist() == ["1.5", "2.5"]
    assert table.preparation.to_list() == steps, "what a column's keys say is not written again as a step"
    assert not table.schema.prepared().preparation
    assert schema.without(["none"]).preparation.steps == schema.preparation.steps


def test_other_refusals_name_the_form_too() -> None:
    frame = pd.DataFrame(
        {"age": ["1,5", "2,5", "3,5"] * 3, "w": ["1,5", "2", "4"] * 3, "pay": ["1,5", "2,5", "7"] * 3}
    )
    tree = {
        "role": "quasi-identifier",
        "kind": "hierarchy",
        "hierarchy": {"intervals": {"step": 1, "levels": 2}},
    }
    with pytest.raises(
        HierarchyError, match=r"no finite number.*its numbers are written with a decimal comma: add"
    ):
        af.Table(frame, {"age": tree})
    weighted = af.Table(
        frame, {"age": {**QI, "decimal": ","}, "w": {"role": "weight"}, "pay": {"role": "sensitive"}}
    )
    anonymization = af.anonymize(weighted, "mondrian", k=3, seed=1)
    with pytest.raises(
        DataError, match="3 weights are missing or no number; its numbers are written with a decimal comma"
    ):
        af.verify(weighted, anonymization, [{"uniqueness": {"most": 0.5}}], k=3)
    with pytest.raises(DataError, match="not numbers; its numbers are written with a decimal comma"):
        af.verify(weighted, anonymization, [{"t-closeness": {"t": 0.5, "distance": "numeric"}}], k=3)
    labels = af.Table(frame, {"age": {**tree, "decimal": ","}}).domains[0].labels
    assert {"1.5", "2.5", "3.5"} <= set(labels)


def test_numbers_that_are_numbers_stay() -> None:
    frame = pd.DataFrame({"pay": [1.5, 2.5]})
    assert af.Table(frame, {"pay": {**QI, "decimal": ","}}).frame["pay"].tolist() == [1.5, 2.5]


def test_a_sentence_of_many_ways_names_each() -> None:
    forms = seen(["1,234", "12"])
    assert forms is not None
    assert forms.form is None
    assert str(forms.sentence(examples=False)).count("add ") == 2


def test_numbers_of_a_list_are_not_negative() -> None:
    assert number_forms(["(1)", "(2)"]) == []
    assert number_forms(["(206)", "365"])[0].read(["(206)"]).plain.tolist() == ["-206"]


def test_a_text_without_a_digit_is_read_in_no_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NumberForm, "read", lambda *texts: pytest.fail("no form reads it"))
    assert number_forms(["1,5", "unknown"]) == []


PIECES = [
    "1",
    "03",
    "2013",
    "5",
    ".",
    ",",
    " ",
    "\u202f",
    "'",
    "-",
    "−",
    "+",
    "(",
    ")",
    "%",
    "€",
    "US$",
    "EUR",
    "SFr.",
    "руб.",
    "e",
    "E+",
    "x",
    "K",
]


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map("".join))
def test_a_text_that_may_be_no_number_is_none_in_any_form(text: str) -> None:
    forms = [
        NumberForm(decimal, thousands, True)
        for decimal in DECIMALS
        for thousands in (None, *THOUSANDS)
        if decimal != thousands
    ]
    assert may_be_number(text) or all(form.read([text]).plain[0] is None for form in forms)
