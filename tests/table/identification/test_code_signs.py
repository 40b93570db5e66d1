"""Codes that look like numbers, and sampling weights: by their names, zeros, check digits and shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.errors import DataError
from anonflow.table import Schema
from anonflow.table.identification.code_signs import code_values
from anonflow.table.identification.weight_signs import weight_name
from anonflow.table.infer import advise, infer_columns, kind_of
from anonflow.table.sampling_weights import checked_weights
from tests.strategies import loop

N = 60
RNG = np.random.default_rng(1)


def repeated(values: list[Any]) -> list[Any]:
    return [values[i % len(values)] for i in range(N)]


def entry_of(name: str, values: list[Any]) -> dict[str, Any]:
    return infer_columns(pd.DataFrame({name: values}))[name]


def prefixes(lengths: Any) -> dict[str, Any]:
    return {
        "role": "quasi-identifier",
        "kind": "hierarchy",
        "hierarchy": {"prefixes": {"lengths": lengths}},
    }


POSITIONS = {"role": "quasi-identifier", "kind": "positions"}
CATEGORIES = {"role": "quasi-identifier", "kind": "categorical"}
NUMBERS = {"role": "quasi-identifier", "kind": "numeric"}

WARDS = ["72301", "72302", "37218", "37218-1234", "37219", "1230", "01230", "723", "3721", "no answer given"]


@loop(
    ("name", "values", "expected"),
    [
        ("employer", ["00345", "00346", "01200", "00007"], POSITIONS),
        ("x", ["01", "02", "03"], POSITIONS),
        ("x", ["007", "12", "4567"], prefixes([1, 2])),
        ("x", ["007", None, "123", "456"], prefixes([1, 2, 3])),
        ("ward", ["4711", "4712", "5801"], POSITIONS),
        ("Ward No", ["4711", "4712", "58012"], prefixes([1, 2, 3, 4])),
        ("zip", WARDS, prefixes([1, 2, 3])),
        ("zip", ["37218", "37218-1234", "01230"], prefixes("zip")),
        ("PLZ", ["10115", "80331", "01067"], POSITIONS),
        ("icd10", ["E11.65", "J45", "A00.1"], prefixes("icd-10")),
        ("nace_rev2", ["62.01", "01.1", "10.71"], prefixes("nace")),
        ("isco08", ["2512", "5120", "0110"], prefixes("isco")),
        ("NAICS", ["541511", "722511", "61"], prefixes("naics")),
        ("nuts3", ["DE111", "DE112", "FR101"], prefixes("nuts")),
        ("ean", ["4006381333931", "4006381333948", "4006381333955", "4006381333962", "4006381333979"], prefixes([1, 2, 3, 4])),
        ("state", [str(i) for i in range(1, 57)], CATEGORIES),
        ("RAC1P", [str(i) for i in range(1, 9)], CATEGORIES),
        ("RAC1P", list(range(1, 10)), CATEGORIES),
        ("children", list(range(8)), NUMBERS),
        ("hour", ["00", "07", "12", "23", "08", "09", "10", "11", "13", "14"], NUMBERS),
        ("icd", ["E11.65", "J45", "A00.1", "unknown"], prefixes([1, 2, 3])),
        ("decade", [10, 20, 30, 40, 50, 60, 70, 110], NUMBERS),
        ("state tax", ["1200", "3400", "9800", "11", "5", "7777", "8", "90", "31", "14"], NUMBERS),
        ("plant height", [f"{x / 10}" for x in range(30, 70)], NUMBERS),
        ("rent", ["21340", "48010", "51999", "64200", "71550", "30110", "18200", "99000", "10500", "43100"], NUMBERS),
        ("born", ["1984-02-29", "1985-01-01", "1990-01-01"], NUMBERS),
        ("size", ["0.5", "0.25", "10", "1", "2", "3", "4", "5", "6", "7"], NUMBERS),
    ],
)  # fmt: skip
def test_codes_are_no_amounts(name: str, values: list[Any], expected: dict[str, Any]) -> None:
    assert entry_of(name, repeated(values)) | {"role": "quasi-identifier"} == expected


def test_all_that_is_guessed_can_be_published() -> None:
    """Zeros stay in the release, whatever the guess."""
    frame = pd.DataFrame(
        {
            "employer": repeated(["00345", "00346", "01200", "00007"]),
            "zip": repeated(WARDS),
            "icd": repeated(["E11.65", "J45", "A00.1"]),
            "code": repeated(["007", "12", "4567", None]),
            "age": RNG.integers(20, 60, N),
        }
    )
    table = af.Table(frame, infer_columns(frame))
    release = af.anonymize(table, "mondrian", k=3).release(seed=1 << 100)
    assert af.verify(table, release, ["covers", "k-anonymity"], k=3)
    known = set(frame["employer"])
    for cell in set(release.frame["employer"]):
        assert any(all(a in ("*", b) for a, b in zip(cell, code, strict=True)) for code in known)


def test_reasons_name_the_sign_and_the_step() -> None:
    advice = {
        each.column: each
        for each in advise(pd.DataFrame({"employer": repeated(["00345", "01200"]), "zip": repeated(WARDS)}))
    }
    assert advice["employer"].reasons == ("its name is that of codes",)
    assert "a step `prefix`" in " ".join(advice["zip"].reasons)
    assert not any("3721" in reason for reason in advice["zip"].reasons)


def test_a_role_that_is_chosen_later_keeps_the_zeros() -> None:
    assert kind_of(pd.Series(repeated(["00345", "00346", "01200"]), name="x")) == {"kind": "positions"}
    for name, values in (("icd", ["E11.65", "J45"]), ("zip", WARDS), ("nace", ["62.01", "01.1"])):
        assert {"role": "quasi-identifier"} | kind_of(pd.Series(repeated(values), name=name)) == entry_of(
            name, repeated(values)
        )


def test_one_code_and_blanks_are_two_states() -> None:
    assert entry_of("x", [None] * 54 + ["007"] * 6) == CATEGORIES


def test_codes_that_are_nearly_unique_stand_for_people() -> None:
    assert entry_of("x", [f"{i:05d}" for i in RNG.permutation(9_999)[:N]])["role"] == "identifier"


def test_check_digits() -> None:
    siren = ["732829320", "552100554", "542065479", "775670417", "552032534"]
    assert code_values("x", siren)
    assert not code_values("x", [*siren, "552032535"])
    assert not code_values("x", siren[:3])


WEIGHTS = np.round(RNG.lognormal(6, 1, N) + 1, 4)
BODIES = np.round(RNG.normal(75, 12, N), 1)


@loop(
    "name",
    ["PWGTP", "WGTP", "PERWT", "HHWT", "wt", "pond", "fexp", "ASECWT", "wtmec2yr", "_LLCPWT", "factor_expansion", "FAC_EXP", "pondera",
     "Hochrechnungsfaktor", "personengewicht", "pspwght", "dweight", "survey weight", "fnlwgt", "hrf"],
)  # fmt: skip
def test_weights_by_the_names_that_offices_use(name: str) -> None:
    assert weight_name(name) == "weight"
    assert entry_of(name, [int(weight) for weight in WEIGHTS]) == {"role": "weight"}
    assert entry_of(name, repeated(["a", "b"]))["role"] != "weight"


@loop("name", ["weight", "gewicht", "Gewicht", "peso", "poids", "factor"])
def test_weights_of_bodies_are_no_sampling_weights(name: str) -> None:
    assert entry_of(name, list(WEIGHTS)) == {"role": "weight"}
    assert entry_of(name, [int(weight) for weight in WEIGHTS]) == {"role": "weight"}
    assert entry_of(name, list(BODIES)) == NUMBERS
    assert entry_of(name, [int(body) for body in BODIES]) == NUMBERS
    assert entry_of(name, list(RNG.integers(2_400, 4_600, N))) == NUMBERS


@loop("name", ["pspwght", "dweight", "weight", "Gewicht"])
def test_scaled_weights_stop_nobody_and_are_not_generalized(name: str) -> None:
    """Surveys divide their weights by the mean; the role weight refuses them, and who opened such a file could not go on."""
    scaled = RNG.lognormal(0, 0.4, N)
    scaled = np.round(scaled / scaled.mean(), 4)
    frame = pd.DataFrame({name: scaled, "age": RNG.integers(20, 60, N)})
    entries = infer_columns(frame)
    assert entries[name] == {"role": "insensitive"}
    assert "some are below 1" in " ".join(advise(frame)[0].reasons)
    with pytest.raises(
        DataError, match=r"below 1; .*of weights that were scaled choose the role insensitive"
    ):
        checked_weights(Schema({name: {"role": "weight"}, "age": {**NUMBERS}}), frame)


@loop("name", ["income", "diagnosis"])
def test_a_guess_of_numbers_in_a_form_with_codes_can_be_used(name: str) -> None:
    """It declared how the numbers of a sensitive column are written, and the codes beside them kept the table from opening."""
    cells = [f"{18 + at} {100 + at}" if at % 5 else "NS"[at % 2] for at in range(N)]
    frame = pd.DataFrame({name: cells, "age": RNG.integers(20, 60, N)})
    entries = infer_columns(frame)
    assert entries[name]["role"] == "sensitive"
    assert af.Table(frame, entries).n == N
    without = infer_columns(frame.assign(**{name: [f"{18 + at} {100 + at}" for at in range(N)]}))
    assert without[name] == {"role": "sensitive", "thousands": " "}


def test_one_weight_has_the_role() -> None:
    frame = pd.DataFrame(
        {"PWGTP": WEIGHTS, "WGTP": WEIGHTS, "pwgtp1": WEIGHTS, "age": RNG.integers(20, 60, N)}
    )
    entries = infer_columns(frame)
    assert {name: entry["role"] for name, entry in entries.items()} == {
        "PWGTP": "weight", "WGTP": "identifier", "pwgtp1": "identifier", "age": "quasi-identifier",
    }  # fmt: skip
    Schema(entries)


def test_the_shape_of_weights_is_a_reason() -> None:
    (advice,) = advise(pd.DataFrame({"v7": WEIGHTS}))
    assert advice.entry == NUMBERS
    assert "role weight" in " ".join(advice.reasons)
    (amounts,) = advise(pd.DataFrame({"v7": np.round(WEIGHTS, 2)}))
    assert "role weight" not in " ".join(amounts.reasons)


@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_numbers_with_the_name_of_codes(dtype: str) -> None:
    codes = pd.Series(repeated([4711, 4712, 5801])).astype(dtype)
    frame = pd.DataFrame({"ward": codes, "age": RNG.integers(20, 60, N)})
    assert infer_columns(frame)["ward"] == POSITIONS
    release = af.anonymize(af.Table(frame, infer_columns(frame)), "mondrian", k=3).release(seed=1 << 100)
    assert {len(cell) for cell in release.frame["ward"]} <= {1, 4}
    (advice, _) = advise(frame.assign(ward=pd.Series(repeated([1067, 80331])).astype(dtype)))
    assert "4 to 5 characters: if they lost zeros" in " ".join(advice.reasons)


def test_a_rare_code_does_not_make_codes_amounts() -> None:
    assert entry_of("RAC1P", [1] * 30 + [2] * 10 + [6] * 5 + [8, 8, 9, 9, 3, 5, 5]) == CATEGORIES
