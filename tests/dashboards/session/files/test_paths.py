"""Names of uploaded files, which anybody may choose."""

from __future__ import annotations

import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.session.files.paths import MOST_BYTES, safe_name


def test_letters_of_all_alphabets_stay() -> None:
    for name in ("журнал_школи.xlsx", "enquête-2024.csv", "名簿.csv", "हिन्दी.csv"):
        assert safe_name(name) == name
    assert safe_name("e\u0301t\u00e9.csv") == "\u00e9t\u00e9.csv"  # as another system writes it


def test_two_names_of_equal_length_stay_two() -> None:
    assert safe_name("hierarchy_Клас.csv") != safe_name("hierarchy_Мова.csv")


def test_what_has_a_meaning_to_a_system_goes() -> None:
    assert safe_name("../../etc/passwd") == "passwd"
    assert safe_name("C:\\\\temp\\\\a b<c>.csv") == "a-b-c-.csv"
    assert safe_name(".hidden.csv") == "hidden.csv"
    assert safe_name("a\u202egnp.csv") == "a-gnp.csv"  # a sign that turns the reading direction
    assert safe_name("a\u2028b\n.csv") == "a-b-.csv"
    assert safe_name("") == safe_name("...") == safe_name(".csv") == safe_name("😀.csv") == "table.csv"


def test_a_long_name_keeps_its_ending_and_fits_a_system() -> None:
    for letter in ("a", "ж", "名", "😀"):
        name = safe_name(letter * 300 + ".csv")
        assert name.endswith(".csv")
        assert len(name) <= 100
        assert len(name.encode()) <= MOST_BYTES
