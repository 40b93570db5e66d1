"""A release in the form of its source: written so, read back, verified; plain without being told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.errors import DataError, SchemaError
from anonflow.release import read_release
from anonflow.risk.register import register_table
from anonflow.table import Schema
from anonflow.table.files.metadata_file import metadata_path, read_metadata
from anonflow.table.forms.date_forms import DATES, DateForm
from anonflow.table.forms.number_forms import NumberForm
from anonflow.table.published import release_forms
from anonflow.table.published.release_forms import _plain_cells, _written, plain_release
from tests.strategies import loop

QI = {"role": "quasi-identifier", "kind": "numeric"}
COLUMNS: dict[str, Any] = {
    "pay": {**QI, "decimal": ",", "thousands": ".", "write": "source", "codes": ["N"]},
    "hired": {**QI, "dates": "d/m/y", "write": "source"},
    "rate": {"role": "sensitive", "decimal": ",", "percent": True, "write": "source"},
    "left": {"role": "insensitive", "dates": "d.m.y"},
}


def table(columns: dict[str, Any] = COLUMNS) -> af.Table:
    frame = pd.DataFrame(
        {
            "pay": [f"1.{200 + n},5" for n in range(22)] + ["N", "N"],
            "hired": [f"{n + 1}/03/2013" for n in range(24)],
            "rate": ["12,5 %", "3%", "7,25%"] * 8,
            "left": ["1.2.2014", None, "3.4.2015"] * 8,
        }
    )
    return af.Table(frame, columns)


@loop("ending", ["csv", "parquet", "sav"])
def test_a_release_is_written_as_told_and_verified(
    ending: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if ending == "sav":
        pytest.importorskip("pyreadstat")
    people = table()
    release = af.anonymize(people, "mondrian", k=3, seed=1).release(seed=2)
    path = tmp_path_factory.mktemp("out") / f"release.{ending}"
    release.write(path)
    if ending != "sav":
        raw = pd.read_csv(path, dtype=str) if ending == "csv" else pd.read_parquet(path)
        assert raw["pay"].str.fullmatch(r"1\.2\d\d,5(-1\.2\d\d,5)?(\|N)?|N|\*").all()
        assert raw["hired"].str.fullmatch(r"\d\d/03/2013(/\d\d/03/2013)?|\*").all()
        assert set(raw["rate"]) == {"12,5%", "3%", "7,25%"}
        assert set(raw["left"].dropna()) == {"2014-02-01", "2015-04-03"}
    if ending != "sav":
        pd.testing.assert_frame_equal(
            plain_release(path).fillna(""), release.frame.fillna(""), check_dtype=False
        )
        again = read_release(path)
        assert again.about == release.about
        assert again.column("hired").low.notna().any()
        assert af.verify(people, path, ["covers", "k-anonymity"], k=3)


@loop("ending", ["csv", "parquet"])
def test_without_a_description_the_schema_says_the_form(
    ending: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    people = table()
    release = af.anonymize(people, "mondrian", k=3, seed=1).release(seed=2)
    path = tmp_path_factory.mktemp("out") / f"release.{ending}"
    release.write(path)
    beside = metadata_path(path)
    assert beside is not None
    beside.unlink()
    if ending == "parquet":
        pd.read_parquet(path).to_parquet(path)  # without what the file itself says of its columns
    assert af.verify(people, path, ["covers", "k-anonymity"], k=3)
    assert af.attack(people, path, k=3)["worst"].max() <= 1 / 3
    assert read_release(path, people.schema).column("hired").low.notna().any()
    release.frame.to_csv(plain := path.with_name("plain.csv"), index=False)
    assert af.verify(people, plain, ["covers", "k-anonymity"], k=3), "plain cells are read as they are"


@loop("form", [DateForm("d.m.y"), DateForm("ymd"), NumberForm(",")])
def test_all_cells_of_a_column_are_read_at_once(
    tmp_path_factory: pytest.TempPathFactory, form: DateForm | NumberForm
) -> None:
    """A thousand ranges of dates once took 40 s: each was read by itself, with patterns compiled anew."""
    tmp_path = tmp_path_factory.mktemp("out")
    kind = "numeric" if isinstance(form, NumberForm) else "dates"
    days = [f"{1950 + at // 9}-0{1 + at % 9}-03" for at in range(120)]
    plain = [
        f"{first}/{last}" if kind == "dates" else f"{at}.5-{at + 2}.5"
        for at, (first, last) in enumerate(zip(days, days[9:], strict=False))
    ]
    frame = pd.DataFrame({"at": [*plain, "*"]})
    schema = Schema(
        {"at": {"role": "quasi-identifier", "kind": "numeric", "write": "source", **form.to_mapping()}}
    )
    release_forms.in_source_forms(frame, {"at": form}).to_csv(tmp_path / "release.csv", index=False)
    real, calls = type(form).read, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(form), "read", lambda self, texts: calls.append(len(texts)) or real(self, texts))
        read = plain_release(tmp_path / "release.csv", schema)
    assert read["at"].tolist() == frame["at"].tolist()
    assert len(calls) == 1


def test_cells_in_another_spelling_are_refused(tmp_path: Path) -> None:
    people = table()
    path = tmp_path / "release.csv"
    af.anonymize(people, "mondrian", k=3, seed=1).release(seed=2).write(path)
    text = path.read_text()
    changed = text.replace("7,25%", "7.25", 1)
    assert changed != text
    path.write_text(changed)
    with pytest.raises(
        DataError, match="'rate': 1 cell is not written with a decimal comma and percent signs"
    ):
        read_release(path)
    with pytest.raises(DataError, match="'rate': 1 cell"):
        af.verify(people, path, ["covers"], k=3)


def test_without_being_told_a_release_is_plain(tmp_path: Path) -> None:
    columns = {name: entry | {"write": "plain"} for name, entry in COLUMNS.items()}
    people = table(columns)
    path = tmp_path / "release.csv"
    release = af.anonymize(people, "mondrian", k=3, seed=1).release(seed=2)
    release.write(path)
    pd.testing.assert_frame_equal(plain_release(path).fillna(""), release.frame.fillna(""), check_dtype=False)
    about = read_metadata(path)
    assert about is not None
    assert all(column.form is None for column in about.columns)


@given(
    low=st.integers(-(10**9), 10**9),
    width=st.integers(0, 10**6),
    decimal=st.sampled_from([".", ","]),
    thousands=st.sampled_from([None, ",", ".", " ", "'"]),
    percent=st.booleans(),
)
def test_ranges_of_numbers_are_read_back(
    low: int, width: int, decimal: str, thousands: str | None, percent: bool
) -> None:
    form = NumberForm(decimal, thousands, percent)
    if form.problem is None:
        plain = [
            f"{low}",
            f"{low}-{low + width}",
            f"{low / 8}-{(low + width) / 8}".replace(".0", ""),
            "5|N",
            "{N|R}",
            "*",
            "1e+300",
        ]
        assert _plain_cells(_written(plain, form), form) == plain


@given(
    days=st.tuples(st.dates(), st.dates()),
    form=st.sampled_from(
        [DateForm(dates, pivot) for dates in DATES if "y" in dates for pivot in (None, 1930)]
    ),
)
def test_ranges_of_dates_are_read_back(days: tuple[Any, Any], form: DateForm) -> None:
    first, last = (day.isoformat() for day in sorted(days))
    plain = [first, f"{first}/{last}", f"{first}T10:00:00/{last}T11:30:00", f"{first}T10:00:00Z"]
    assert _plain_cells(_written(plain, form), form) == plain


@loop(
    ("entry", "words"),
    [
        ({**QI, "dates": "excel", "write": "source"}, "serial numbers are published as dates"),
        ({**QI, "write": "source"}, "write: source goes with decimal"),
        ({**QI, "decimal": ",", "write": "as it was"}, "write is one of plain, source"),
        (
            {"role": "quasi-identifier", "kind": "categorical", "decimal": ",", "write": "source"},
            "write: source goes with kind numeric",
        ),
    ],
)
def test_what_cannot_be_written_so_is_a_sentence(entry: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        af.Schema({"pay": entry})


def test_a_release_without_its_original_and_a_register_are_read_with_the_schema(tmp_path: Path) -> None:
    people = table()
    release = af.anonymize(people, "mondrian", k=3, seed=1).release(seed=2)
    path = tmp_path / "release.csv"
    release.write(path)
    schema = af.Schema(COLUMNS)
    assert af.verify(schema, path, ["k-anonymity"], k=3)
    register = pd.DataFrame(
        {"pay": ["1.200,5", "1.203,5", "N"], "hired": ["1/03/2013", "4/03/2013", "24/03/2013"]}
    )
    coded = register_table(register, schema)
    assert coded.n == 3
    assert coded.domains[0].labels == ("1200.5", "1203.5")
