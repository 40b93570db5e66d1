"""A file that was never drawn, or never shuffled, and cells with a second spelling.

Figure: a table with everybody's own values in the original order passed every criterion from files alone, with no word. The
verifier must say that a draw cannot be read off a file, remark on the order (p below 1e-6) and on own values, and stay
silent about real releases (no remark besides the first in 40 of 40). A cell that is not written as anonflow writes it
is a covert channel that marks rows: none of the spellings below may pass.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.criteria.order import chance
from anonflow.errors import DataError, ParameterError
from anonflow.release import Certificate
from tests.cases.runs import shell

SCHEMA = {
    "age": {"role": "quasi-identifier", "kind": "numeric"},
    "born": {"role": "quasi-identifier", "kind": "numeric"},
    "work": {"role": "quasi-identifier", "kind": "categorical"},
    "ill": {"role": "sensitive"},
}


def table(n: int = 200, seed: int = 1) -> af.Table:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "born": pd.to_datetime("1950-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), unit="D"),
            "work": rng.choice(list("abcd"), n),
            "ill": rng.choice(list("uvwxyz"), n),
        }
    )
    return af.Table(frame, SCHEMA)


def test_own_values_in_the_original_order_are_remarked_on() -> None:
    people = table()
    undrawn = af.anonymize(people, "greedy", k=4).frame().assign(ill=people.frame["ill"])
    check = af.verify(people, undrawn, ["covers", "k-regular"], k=4)
    assert check  # from the file alone nothing is wrong
    first, order, values = check.remarks
    assert "cannot be read off a file" in first
    assert "original table's order" in order
    assert "own records' values" in values
    assert check.to_mapping()["remarks"] == list(check.remarks)
    assert order in repr(check)


def test_a_drawn_file_that_was_not_shuffled() -> None:
    people = table()
    anonymization = af.anonymize(people, "greedy", k=4)
    release = anonymization.release()
    assert release.truth is not None
    generalized = anonymization.frame()
    # put each row back to the record that it was generalized from
    text = generalized.agg("|".join, axis=1)
    place = release.frame[list(generalized.columns)].agg("|".join, axis=1)
    if text.is_unique:
        unshuffled = release.frame.set_index(place).loc[text].reset_index(drop=True)
        remarks = af.verify(people, unshuffled, ["covers"], k=4).remarks
        assert len(remarks) == 2
        assert "order" in remarks[1]


@pytest.mark.parametrize("method", ["greedy", "mondrian"])
def test_real_releases_are_not_suspected(method: str) -> None:
    for seed in range(20):
        people = table(80, seed)
        release = af.anonymize(people, method, k=4).release()
        assert len(af.verify(people, release.frame, ["covers"], k=4).remarks) == 1


def test_the_chance_of_a_count() -> None:
    assert chance(3, [1, 2, 3, 4] * 25) == pytest.approx(51 / 101)
    assert chance(5, [1] * 999) > 1e-3 * 0.9
    assert chance(40, [1] * 999) < 1e-6


SPELLINGS = [
    ("age", "1e1-1e400"),
    ("age", "020-30"),
    ("age", "20.0-30"),
    ("age", "\u0662\u0660-30"),
    ("age", "30-20"),
    ("age", "20-20"),
    ("age", "-5-30"),
    ("age", "20-900"),
    ("age", "-0-30"),
    ("age", "20-30 "),
    ("work", "{b|a}"),
    ("work", "{a|a|b}"),
    ("work", "{a}"),
    ("work", "{a|b|c|d}"),
    ("work", "{a|q}"),
    ("born", "1950-01-02/1940-01-01"),
    ("born", "19500102/19600101"),
    ("born", "1950-01-02/2500-01-01"),
]


def test_a_second_spelling_is_refused() -> None:
    people = table()
    release = af.anonymize(people, "mondrian", k=4).release().frame.astype(object)
    assert af.verify(people, release, ["covers"], k=4)
    for column, cell in SPELLINGS:
        frame = release.copy()
        frame.loc[7, column] = cell
        with pytest.raises(DataError, match="1 cell is no generalization"):
            af.verify(people, frame, ["covers"], k=4)


def test_a_range_inside_the_domain_may_end_between_values() -> None:
    people = af.Table(pd.DataFrame({"age": [10, 20, 30, 40], "ill": list("abcd")}),
                      {"age": SCHEMA["age"], "ill": SCHEMA["ill"]})  # fmt: skip
    frame = pd.DataFrame({"age": ["10-25", "10-25", "25-40", "25-40"], "ill": list("abcd")})
    assert af.verify(people, frame, ["covers", "k-anonymity"], k=2)


def test_what_a_certificate_cannot_check_is_no_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = table(60)
    release = af.anonymize(people, "mondrian", k=4).release()
    bare = release.frame.drop(columns="ill")
    check = af.verify(people, bare, ["covers", "k-anonymity"], k=4, certificate=release.certificate)
    assert not check
    assert check["certificate"].holds is None
    assert "certificate: not checked" in repr(check)
    assert json.loads(check.to_json())["checks"][-1]["holds"] is None
    assert check.frame()["holds"].isna().sum() == 1
    with pytest.raises(af.errors.VerificationError, match="not checked"):
        check.raise_if_failed()
    people.frame.to_csv(tmp_path / "a.csv", index=False)
    bare.to_csv(tmp_path / "b.csv", index=False)
    assert isinstance(release.certificate, Certificate)
    release.certificate.save(tmp_path / "c.npz")
    (tmp_path / "s.yaml").write_text(
        "columns:\n" + "".join(f"  {name}: {json.dumps(column)}\n" for name, column in SCHEMA.items())
    )
    status, out, err = shell(
        capsys, "verify", "--original", tmp_path / "a.csv", "--release", tmp_path / "b.csv",
        "--schema", tmp_path / "s.yaml", "--certificate", tmp_path / "c.npz", "--criterion", "covers",
    )  # fmt: skip
    assert status == 1
    assert "not checked" in out
    assert "cannot be read off a file" in err


def test_a_certificate_of_another_release_gives_no_figures() -> None:
    """An attacker's figures along lists that are not those of the rows would be any numbers: 0.25 for 0.33, before."""
    people = table(60)
    anonymization = af.anonymize(people, "greedy", k=4)
    release = anonymization.release()
    proof = release.certificate
    assert proof is not None
    everybody = np.arange(60, dtype=np.int32)
    forged = [
        af.anonymize(table(60, 2), "greedy", k=4).release().certificate,
        replace(proof, row_list=proof.row_list[::-1].copy(), row_marks=None, key=""),
        replace(proof, row_list=everybody * 0, list_offsets=np.array([0, 60]), list_originals=everybody, row_marks=None, key=""),
    ]  # fmt: skip
    for attacker in ("linker", "homogeneity", "linkable-columns"):
        for each in forged:
            with pytest.raises(DataError, match="not that of these rows"):
                af.attack(people, release.frame, attacker, k=4, certificate=each)
        assert len(af.attack(people, release.frame, attacker, k=4, certificate=proof)) == 1
    with pytest.raises(ParameterError, match="Certificate"):
        af.attack(people, release.frame, "linker", k=4, certificate=anonymization.matches)
