"""The advisor: what names, patterns and check digits say, and that it gives its reasons without a value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.errors import SchemaError
from anonflow.table import Schema
from anonflow.table.identification.column_signs import is_card, is_iban, is_national_id, name_says
from anonflow.table.infer import advise, kind_of
from tests.strategies import loop

N = 40


def role_of(name: str, values: Any) -> str:
    (advice,) = advise(pd.DataFrame({name: values}))
    return str(advice.entry["role"])


@loop(
    "name",
    [
        "mobile",
        "MRN",
        "cust_no",
        "userid",
        "account",
        "contact",
        "patient",
        "notes",
        "Telefon",
        "correo",
        "Vorname",
        "apellidos",
        "prénom",
        "customerID",
        "accountNumber",
        "Kundennummer",
        "e-mail",
        "passport",
        "IBAN",
        "dni",
        "LastName",
        "user_name",
        "gps",
        "Kennzeichen",
        "bemerkungen",
        "patientId",
        "lat",
        "Adresse",
        "licence plate",
        "first name",
        "case no",
        "license_plate",
        "policy number",
    ],
)
def test_names_of_identifiers_in_several_languages(name: str) -> None:
    assert role_of(name, [f"v{i % 9}" for i in range(N)]) in ("identifier", "unit"), name_says(name)


@loop(
    "name",
    ["age", "education-num", "native-country", "workclass", "marital-status", "sex", "hours-per-week", "nationality",
     "occupation", "race", "town", "region", "children", "body weight", "weight", "household size", "identity", "valid"],
)  # fmt: skip
def test_names_that_identify_nobody_by_themselves(name: str) -> None:
    assert role_of(name, [i % 9 for i in range(N)]) == "quasi-identifier", name_says(name)


@loop("name", ["Gehalt", "salario", "diagnosis", "Krankheit", "religion", "income class", "target"])
def test_names_of_sensitive_columns(name: str) -> None:
    assert role_of(name, [i % 9 for i in range(N)]) == "sensitive"


def luhn(body: str) -> str:
    return next(body + d for d in "0123456789" if is_card(body + d))


def iban(i: int) -> str:
    body = f"3704{i:014d}"
    check = 98 - int("".join(str(int(c, 36)) for c in f"{body}DE00")) % 97
    return f"DE{check:02d}{body}"


LOOKS = {
    "e-mail": [f"a{i}@example.org" for i in range(N)],
    "web": [f"https://example.org/{i}" for i in range(N)],
    "card": [luhn(f"41111111{i:07d}") for i in range(N)],
    "IBAN": [iban(i) for i in range(N)],
    "national": [f"{i:08d}{'TRWAGMYFPDXBNJZSQVHLCKE'[i % 23]}" for i in range(N)],
    "security": [f"{100 + i}-22-{1000 + i}" for i in range(N)],
    "phone": [f"+49 30 12345{i:02d}" for i in range(N)],
    "coordinates": [f"52.5{i:03d}, 13.4{i:03d}" for i in range(N)],
    "free text": ["he came in late and left early on day " + str(i % 9) for i in range(N)],
    "universal": [f"{i:08x}-1111-4111-8111-111111111111" for i in range(N)],
    "count up": [5000 + i for i in range(N)],
}


@loop("look", LOOKS)
def test_values_speak_where_the_name_does_not(look: str) -> None:
    rng = np.random.default_rng(1)
    (advice,) = advise(pd.DataFrame({"x7": rng.permutation(np.array(LOOKS[look], object))}))
    assert advice.entry == {"role": "identifier"}
    assert look in " ".join(advice.reasons)


def test_numbers_with_a_wrong_check_digit_are_not_recognized() -> None:
    assert is_card("4111 1111 1111 1111")
    assert not is_card("4111 1111 1111 1112")
    assert is_iban("GB82 WEST 1234 5698 7654 32")
    assert not is_iban("GB83 WEST 1234 5698 7654 32")
    for good, bad in (
        ("12345678Z", "12345678A"),
        ("529.982.247-25", "529.982.247-26"),
        ("9434765919", "9434765918"),
    ):
        assert is_national_id(good)
        assert not is_national_id(bad)
    rng = np.random.default_rng(3)
    looked = advise(pd.DataFrame({"x": rng.integers(0, 500, 3000)}))[0]
    assert looked.entry["role"] == "quasi-identifier"  # plain numbers are no cards and no ids


def test_weights_dates_and_codes() -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "fnlwgt": rng.integers(1000, 90000, N),
            "born": pd.date_range("1980-01-01", periods=N).astype(str),
            "pay": [str(i % 7 + 20) for i in range(N - 4)] + ["N", "N", "R", "?"],
            "job": ["?", "clerk", "smith", "NA"] * (N // 4),
            "size": [150 + i % 30 for i in range(N - 2)] + [-9, -9],
            "kids": [i % 4 for i in range(N - 1)] + [999],
        }
    )
    answers = {advice.column: advice for advice in advise(frame)}
    assert answers["fnlwgt"].entry == {"role": "weight"}
    assert "exact dates" in answers["born"].reasons[0]
    assert "36 numbers are mixed with 3 codes" in " ".join(answers["pay"].reasons)
    assert "20 values look like codes" in " ".join(answers["job"].reasons)
    assert "2 values are -9" in " ".join(answers["size"].reasons)
    assert "1 value is 999" in " ".join(answers["kids"].reasons)
    assert role_of("fnlwgt", [-1.0, 2.0, 3.0] * 20) == "quasi-identifier"


def test_reasons_hold_no_value_and_distinctness_only_orders() -> None:
    frame = pd.DataFrame(
        {
            "sex": ["MARKf", "MARKm"] * 20,
            "town": [f"MARK{i % 7}" for i in range(N)],
            "mail": [f"MARK{i}@example.org" for i in range(N)],
        }
    )
    advice = Schema.advise(frame)
    assert advice["column"].tolist() == ["town", "sex", "mail"]
    assert "MARK" not in advice["reasons"].str.cat()
    assert advice["reasons"].str.len().min() > 0
    assert "mail" not in af.Table(frame, Schema.infer(frame)).frame.columns
    with pytest.raises(SchemaError, match="DataFrame"):
        Schema.advise([1])  # type: ignore[arg-type]


@loop(
    "name",
    [
        "mobile", "MRN", "cust_no", "userid", "account", "contact", "patient", "licence plate", "notes",  # as they were reported
        "Telefonnummer", "Handynummer", "Anschrift", "hospital_number", "codice_fiscale", "numéro de sécurité sociale",
        "twitter_handle", "achternaam", "voornaam", "telefoon", "efternamn", "puhelin", "osoite", "nazwisko", "imię", "soyad",
        "telefonszám", "фамилия", "имя", "телефон", "όνομα", "姓名", "氏名", "이름",
    ],
)  # fmt: skip
def test_names_of_identifiers_over_numbers_that_others_may_share(name: str) -> None:
    assert role_of(name, [100 + i % 40 for i in range(N)]) == "identifier"


@loop(
    "name",
    [
        "Pupil name", "student_name", "PatientName", "Schülername", "Patientenname", "name of child", "Mother's name", "employee last name",
        "Names of the participants", "pupil", "pupil no",
    ],
)  # fmt: skip
def test_names_of_people_may_repeat(name: str) -> None:
    assert role_of(name, [f"Ana B{at % 40}" for at in range(N)]) == "identifier"


@loop(
    "name",
    [
        "town name",
        "product_name",
        "school name",
        "hospital name",
        "partner",
        "owner",
        "children",
        "staff size",
        "renamed",
    ],
)
def test_names_of_other_things_are_none_of_people(name: str) -> None:
    assert role_of(name, [f"v{at % 4}" for at in range(N)]) == "quasi-identifier"


@loop("name", ["label", "response", "y", "target", "outcome", "class"])
def test_names_of_targets(name: str) -> None:
    assert role_of(name, [i % 2 for i in range(N)]) == "sensitive"
    assert role_of(f"{name}ish", [f"v{i % 2}" for i in range(N)]) == "quasi-identifier"


def test_several_numbers_below_zero_are_asked_about_together() -> None:
    (advised,) = advise(pd.DataFrame({"hours": [*range(60), -8, -8, -9]}))
    assert any("3 values are -8, -9, and no other is below 0" in reason for reason in advised.reasons)
    (advised,) = advise(pd.DataFrame({"gain": [*range(60), -8, -9, -20]}))
    assert not any("below 0" in reason for reason in advised.reasons)


def test_classes_of_a_school_are_known_to_others() -> None:
    values = [f"{5 + at % 6}{'abC'[at % 3]}" for at in range(N)]
    for name in ("class", "school_class", "Class"):
        assert role_of(name, values) == "quasi-identifier"
    assert role_of("class", [*values[:-1], "good"]) == "sensitive"
    assert role_of("salary-class", [f"{at % 9}k to {at % 9 + 1}k" for at in range(N)]) == "sensitive"


def test_few_whole_numbers_are_codes() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {
            "ward": rng.choice([1, 2, 9], 60),
            "children": rng.integers(0, 8, 60),
            "share": rng.choice([0.5, 1.5], 60),
            "rare": [1] * 58 + [2, 3],
            "seen": rng.choice(["2020-01-01", "2021-01-01"], 60),
        }
    )
    advice = Schema.advise(frame).set_index("column")
    assert advice["kind"].to_dict() == {
        "ward": "categorical", "children": "numeric", "share": "numeric", "rare": "numeric", "seen": "numeric",
    }  # fmt: skip
    assert "3 whole numbers look like codes" in advice.loc["ward", "reasons"]


def test_a_number_among_words_is_perhaps_a_missing_code() -> None:
    words = ["-9"] * 6 + list("abc") * 20
    (reasons,) = Schema.advise(pd.DataFrame({"job": words}))["reasons"]
    assert "6 values look like codes" in reasons


MISSING = "look like codes"


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        (["none"] * 70 + ["asthma", "cancer", "gout"] * 10, 0),  # written as the other answers are
        (
            ["None"] * 70 + ["Asthma", "Cancer", "Gout"] * 10,
            70,
        ),  # so does a program write what it does not know
        (["None"] * 70 + ["asthma", "cancer", "gout"] * 10, 70),
        (["none"] * 70 + ["Asthma", "Cancer", "Gout"] * 10, 70),
        (["none", "na"] * 35 + ["asthma", "cancer", "gout"] * 10, 35),
        (["none"] * 5 + ["12", "15", "17", "20"] * 20, 5),
        (["y", "n"] * 40, 0),
        (["N", "J"] * 40, 0),
        (["N", "E", "S", "W"] * 20, 0),
        (["N", "F", "M"] * 20, 20),
        (["N", "Y", "?"] * 20, 20),
        (["+", "-"] * 20, 0),
        (["-", "low", "high"] * 20, 20),
    ],
)
@pytest.mark.parametrize("name", ["disease", "x"])
def test_an_answer_is_no_code_for_a_missing_value(name: str, values: list[str], codes: int) -> None:
    """What may be such a code is always counted; what stands among its like as an answer is not."""
    (reasons,) = Schema.advise(pd.DataFrame({name: values}))["reasons"]
    assert (MISSING in reasons) == bool(codes), reasons
    assert not codes or f"{codes} values {MISSING}" in reasons
    assert "there is none" not in reasons, "that is what the answer none says"


@pytest.mark.parametrize(
    ("numbers", "codes", "sentence"),
    [
        ([1, 2, 3, 4, 5], [97, 98, 99], "9 values are 97, 98, 99, far from all others"),
        ([1, 2, 3, 4, 5], [98, 99], "6 values are 98, 99, far from all others"),
        ([1, 2, 3, 4, 5], [99], "3 values are 99, far from all others"),
        (list(range(100, 300)), [997, 999], "6 values are 997, 999, far from all others"),
        (list(range(20, 97)), [97, 98, 99], ""),  # the oldest people
        ([1, 2, 3, 4, 5], [98], ""),
    ],
)
def test_codes_of_a_survey_stand_beside_each_other(
    numbers: list[int], codes: list[int], sentence: str
) -> None:
    frame = pd.DataFrame({"x": numbers * 5 + codes * 3})
    (reasons,) = Schema.advise(frame)["reasons"]
    assert ("far from all others" in reasons) == bool(sentence), reasons
    assert sentence in reasons


def several_rows(name: str, people: int = 60, seed: int = 1) -> pd.DataFrame:
    """People with one to four rows each: what they are is the same in all of their rows, what they did is not."""
    rng = np.random.default_rng(seed)
    of = rng.permutation(np.repeat(np.arange(people), rng.integers(1, 5, people)))
    sex, born = rng.choice(["f", "m"], people), rng.integers(1980, 2000, people)
    return pd.DataFrame(
        {
            name: of * 37 % 9973 + 1000,
            "sex": sex[of],
            "born": born[of],
            "subject": rng.choice(["art", "music", "sport"], len(of)),
            "mark": rng.integers(1, 7, len(of)),
        }
    )


ASKED = "is it the number of a person, of role unit, or can others know it?"


@pytest.mark.parametrize("name", ["nr", "code", "x", "ref"])
@pytest.mark.parametrize("text", [False, True])
def test_people_with_several_rows_are_asked_about_whatever_their_column_is_called(
    name: str, text: bool
) -> None:
    frame = several_rows(name)
    if text:
        frame[name] = "K" + frame[name].astype(str)
    reasons = Schema.advise(frame).set_index("column")["reasons"]
    assert "up to 4 rows have the same value, and then the same in columns 'sex' and 'born'" in reasons[name]
    assert reasons[name].endswith(ASKED)
    assert reasons[name].count("?") == 1, "a question comes last"
    assert [column for column in frame if ASKED in reasons[column]] == [name]


def test_nobody_is_asked_about_what_stands_for_no_person() -> None:
    rng = np.random.default_rng(4)
    named = several_rows("nr").rename(columns={"nr": "patient_id"})
    alone = several_rows("nr").drop_duplicates("nr")
    places = pd.DataFrame({"place": rng.integers(0, 60, 240)})
    # what is the same in all rows of a place follows from one another
    places = places.assign(
        district=places.place // 4, region=places.place // 12, sex=rng.choice(["f", "m"], 240)
    )
    by_chance = several_rows("nr").assign(nr=lambda frame: rng.permutation(frame["nr"]))
    for frame in (named, alone, places, by_chance, several_rows("nr", people=8)):
        assert ASKED not in " ".join(Schema.advise(frame)["reasons"])


def test_one_code_is_not_several() -> None:
    pay = [str(20_000 + 17 * (i % 30)) for i in range(N - 1)] + ["N"]
    reasons = " ".join(advise(pd.DataFrame({"pay": pay}))[0].reasons)
    assert "1 code" in reasons
    assert "1 codes" not in reasons


@loop(
    "name", ["Fallnummer", "Aktenzeichen", "Patientenkennung", "Mitgliedsnummer", "Kontonummer", "Vertragsnr"]
)
def test_a_compound_word_may_be_the_name_of_a_persons_number(name: str) -> None:
    values = [f"P{i // 2:06d}" for i in range(N)]
    advice = advise(pd.DataFrame({name: values}))[0]
    assert advice.entry["role"] == "unit"
    assert "one person" in advice.reasons[0]


def almost_empty(*values: object) -> list[object]:
    """Return the cells of 24 records, of whom only the first have a value."""
    return [*values, *[None] * (24 - len(values))]


@loop(
    ("name", "values"),
    [
        ("surname", ["MARK"]),
        ("contact", ["MARK"]),
        ("x7", ["mark@example.org"]),
        ("x7", ["mark@example.org", "-", "n/a"]),
        ("x7", ["+49 30 1234567"]),
        ("x7", ["12345678Z"]),
        ("x7", [4111111111111111]),
        ("x7", ["Mark Mason"]),
        ("x7", ["12 High Street, Ulm"] * 2),
        ("x7", ["he came in late and left early"]),
        ("x7", ["Mason", "Miller", "Smith"]),
    ],
)
def test_what_identifies_a_person_does_so_in_an_almost_empty_column(name: str, values: list[object]) -> None:
    (advice,) = advise(pd.DataFrame({name: almost_empty(*values)}))
    assert advice.entry == {"role": "identifier"}, values
    assert "MARK" not in " ".join(advice.reasons)


@loop(
    ("name", "values", "role"),
    [
        ("hiv", ["positive", "positive"], "sensitive"),
        ("died", ["x"], "quasi-identifier"),
        ("smoker", ["1"] * 13, "quasi-identifier"),
        ("died", [1.0], "quasi-identifier"),
        ("seen", ["2020-01-01"], "quasi-identifier"),
        ("member", [True] * 23, "identifier"),
        ("answer", ["I would rather not say that"] * 13, "quasi-identifier"),
    ],
)
def test_one_value_and_blanks_are_two_states(name: str, values: list[object], role: str) -> None:
    (advice,) = advise(pd.DataFrame({name: almost_empty(*values)}))
    assert advice.entry == {"role": role} | ({"kind": "categorical"} if role == "quasi-identifier" else {})


def test_only_a_column_that_tells_nobody_apart_is_insensitive() -> None:
    assert role_of("land", ["x"] * N) == role_of("land", [None] * N) == "insensitive"
    assert role_of("land", [[1], [2]] * (N // 2)) == "identifier"


@loop(
    ("name", "role"),
    [
        ("hh_id", "household"),
        ("householdNo", "household"),
        ("Haushaltsnummer", "household"),
        ("household", "household"),
        ("hh_size", "quasi-identifier"),
        ("family_name", "identifier"),
        ("Familie", "household"),
        ("SERIALNO", "household"),
        ("Familiennummer", "household"),
        ("patient_id", "unit"),
        ("customer", "unit"),
        ("phone", "identifier"),
    ],
)
def test_numbers_that_repeat_are_those_of_people_with_several_rows_and_of_households(
    name: str, role: str
) -> None:
    assert role_of(name, [100 + i // 3 for i in range(120)]) == role
    assert role_of(name, [100 + i for i in range(120)]) not in ("unit", "household")


def test_what_has_too_few_or_no_values_is_no_number_of_a_person() -> None:
    assert role_of("patient_id", [str(i % 3) for i in range(120)]) == "identifier"
    assert role_of("patient_id", [None] + [str(i // 2) for i in range(119)]) == "identifier"


def test_one_column_says_who_has_several_rows() -> None:
    rows = pd.DataFrame({name: [f"P{i // 2:06d}" for i in range(N)] for name in ("patient_id", "case_no")})
    assert [advised.entry["role"] for advised in advise(rows)] == ["unit", "identifier"]


def test_blanks_beside_numbers_are_values() -> None:
    """Hiding every cell that may be blank loses most of a column in which many are blank."""
    rows = pd.DataFrame({"age": [None if i % 3 else 20.0 + i for i in range(90)]})
    (advised,) = advise(rows)
    assert advised.entry == {"role": "quasi-identifier", "kind": "numeric", "missing": "value"}
    assert "its 60 blanks are published beside ranges" in advised.reasons


def test_a_question_comes_last() -> None:
    rows = pd.DataFrame({"age": [None if i % 3 else 20.0 + i for i in range(90)]})
    rows["amount"] = [1 + 0.123 * i**2 for i in range(90)]
    for advised in advise(rows):
        assert [reason.endswith("?") for reason in advised.reasons].index(True) == len(advised.reasons) - 1
        assert "?;" not in "; ".join(advised.reasons)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("№ учня", "unit"),
        ("ПІБ", "identifier"),
        ("Прізвище", "identifier"),
        ("Медична примітка", "sensitive"),
    ],
)
def test_names_in_cyrillic_letters_are_read(name: str, role: str) -> None:
    cells = [100 + i // 3 for i in range(120)] if name.startswith("№") else [f"в{i % 20}" for i in range(120)]
    assert role_of(name, cells) == role


@pytest.mark.parametrize("name", ["Nombre d'enfants", "Nombre de personnes dans le logement", "Nombre total"])
def test_a_count_in_french_is_no_name_in_spanish(name: str) -> None:
    assert role_of(name, [i % 7 for i in range(120)]) == "quasi-identifier"
    assert role_of(name, [f"Ana{i % 40}" for i in range(120)]) == "identifier"


def test_names_of_weights_may_have_a_remark_and_signs() -> None:
    cells = [20 + 0.1234 * i for i in range(120)]
    for name in ("Pondération finale (calée sur le recensement)", "Poids calé", "pondération"):
        assert role_of(name, cells) == "weight", name


def test_few_numbers_of_an_age_are_amounts() -> None:
    frame = pd.DataFrame({"age": [20, 21, 22, 23, 24] * 12, "RAC1P": [1, 2, 6, 8, 9] * 12})
    assert {name: kind_of(frame[name])["kind"] for name in frame} == {
        "age": "numeric",
        "RAC1P": "categorical",
    }


def test_numbers_beyond_64_bits_with_a_sign_are_no_numbers() -> None:
    frame = pd.DataFrame({"x": np.array([2**64 - 1, 1] * 20, np.uint64), "age": np.arange(40) % 7 + 20})
    entries = {each.column: each.entry for each in advise(frame)}
    assert entries["x"]["kind"] == "categorical"
    af.anonymize(af.Table(frame, entries), "mondrian", k=2)
