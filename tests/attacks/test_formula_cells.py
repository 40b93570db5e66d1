"""Cells that spreadsheets execute, and pickles that carry the certificate.

Figure: ``=HYPERLINK(...)`` in a sensitive column reached the receiver's spreadsheet as a formula. No text cell of a written CSV
file may begin like one; reading back must give every text as it was; published ranges must stay as they are.
"""

from __future__ import annotations

import csv
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow import engine
from anonflow.release import ReleaseWarning, read_release
from anonflow.table.spreadsheets import formula_cells, guarded_text, unguarded_text

ODD = ["=1+1", "+1 (555) 0100", "-", "@SUM(A1)", "\tx", "\rx", "'=x", "''@y", "'quoted", "plain", "-12", "+7"]
SCHEMA = {
    "temperature": {"role": "quasi-identifier", "kind": "numeric"},
    "town": {"role": "quasi-identifier", "kind": "categorical"},
    "note": {"role": "sensitive"},
}


def table() -> af.Table:
    rng = np.random.default_rng(1)
    n = 96
    return af.Table(
        pd.DataFrame(
            {
                "temperature": rng.integers(-500, 500, n),
                "town": rng.choice(["=cmd", "-x", "a", "b"], n),
                "note": ODD * 8,
            }
        ),
        SCHEMA,
    )


def test_no_cell_of_a_csv_file_is_executed(tmp_path: Path) -> None:
    people = table()
    release = af.anonymize(people, "mondrian", k=4).release()
    with pytest.warns(ReleaseWarning, match="cells begin like a formula"):
        release.write(tmp_path / "r.csv")
    with (tmp_path / "r.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        for name, cell in row.items():
            if name != "temperature" and cell not in ("-12", "+7"):
                assert cell[:1] not in tuple("=+-@\t\r"), name
    # ranges of negative numbers are what verifiers and receivers expect
    assert [row["temperature"] for row in rows] == release.frame["temperature"].tolist()
    changed = sum(row["note"] != cell for row, cell in zip(rows, release.frame["note"], strict=True))
    changed += sum(row["town"] != cell for row, cell in zip(rows, release.frame["town"], strict=True))
    assert changed == formula_cells(release.frame) >= 64
    back = read_release(tmp_path / "r.csv", SCHEMA)
    pd.testing.assert_frame_equal(back.frame, release.frame)
    assert af.verify(
        people, tmp_path / "r.csv", ["covers", "k-anonymity"], k=4, certificate=release.certificate
    )


@given(st.text(max_size=8))
def test_every_text_comes_back(text: str) -> None:
    written = guarded_text(text)
    assert unguarded_text(written) == text
    assert written == text or written == f"'{text}"


@given(st.sampled_from("=+-@\t\r"), st.text(max_size=6))
def test_what_begins_like_a_formula_is_a_number_or_guarded(first: str, rest: str) -> None:
    written = guarded_text(first + rest)
    assert written[0] == "'" or (first in "+-" and written[1:2] in (*"0123456789.",))


@pytest.mark.parametrize("text", ["-500--20", "-5", "-1.5-2", "-3e-05-4", "53-59", "+7", ".5"])
def test_numbers_and_ranges_stay(text: str) -> None:
    assert guarded_text(text) == text


def test_names_of_columns_are_guarded_too(tmp_path: Path) -> None:
    frame = table().frame.rename(columns={"note": "=note"})
    schema = {("=note" if name == "note" else name): column for name, column in SCHEMA.items()}
    release = af.anonymize(af.Table(frame, schema), "mondrian", k=4).release()
    with pytest.warns(ReleaseWarning, match="formula"):
        release.write(tmp_path / "r.csv")
    assert "'=note" in (tmp_path / "r.csv").read_text(encoding="utf-8").splitlines()[0]
    assert list(read_release(tmp_path / "r.csv", schema).frame.columns) == list(frame.columns)


def test_a_pickle_has_no_certificate() -> None:
    release = af.anonymize(table(), "mondrian", k=4).release()
    assert release.certificate is not None
    back = pickle.loads(pickle.dumps(release))
    assert back.certificate is None
    assert back.truth is None
    pd.testing.assert_frame_equal(back.frame, release.frame)


def test_the_engine_counts_them(tmp_path: Path) -> None:
    table().frame.to_parquet(tmp_path / "people.parquet", index=False)
    (tmp_path / "flow.yaml").write_text(
        "flow: odd\nversion: 1\ntable:\n  source: {parquet: people.parquet}\n  columns:\n"
        "    temperature: {role: quasi-identifier, kind: numeric}\n"
        "    town: {role: quasi-identifier, kind: categorical}\n    note: {role: sensitive}\n"
        "steps:\n  - anonymize: {algorithm: mondrian, k: 4}\n  - draw: {}\npublish: {table: out/r.csv}\n"
    )
    report = engine.run(tmp_path / "flow.yaml")
    assert any("begin like a formula" in warning for warning in report.warnings)
