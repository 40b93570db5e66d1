"""A release made before the steps that a table has now is coded as the table before it is compared."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.errors import DataError, ParameterError, SchemaError
from anonflow.risk.attackers.earlier_cells import _goes_with, prepared_release
from anonflow.table.prepare import Step
from tests.strategies import loop

QI = {"role": "quasi-identifier"}
STEPS: list[Any] = [
    {"rename": {"column": "years", "to": "age"}},
    {"top-code": {"column": "age", "at": 80}},
    {"round": {"column": "age", "to": 5}},
    {"recode": {"column": "job", "values": {"nurse": "health", "doctor": "health"}, "others": "keep"}},
    {"round": {"column": "pay", "to": 1000}},
    {"date-part": {"column": "born", "part": "year"}},
    {"filter": {"column": "pay", "at-least": 0}},
]
COLUMNS: dict[str, Any] = {
    "age": {**QI, "kind": "numeric"},
    "job": {**QI, "kind": "categorical"},
    "born": {**QI, "kind": "numeric"},
    "pay": {"role": "insensitive"},
    "ill": {"role": "sensitive"},
}


def tables(n: int = 40) -> tuple[af.Table, af.Table]:
    """The same people before the steps and after them."""
    rng = np.random.default_rng(1)
    raw = pd.DataFrame(
        {
            "years": rng.integers(18, 99, n),
            "job": rng.choice(["nurse", "doctor", "clerk", "cook"], n),
            "born": pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), "D"),
            "pay": rng.integers(1000, 9999, n),
            "ill": rng.choice(list("abc"), n),
        }
    )
    old = {"years" if name == "age" else name: entry for name, entry in COLUMNS.items()}
    return af.Table(raw, old), af.Table(raw, af.Schema(COLUMNS, prepare=STEPS))


def release_of(table: af.Table, seed: int) -> af.Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return af.anonymize(table, "mondrian", k=4).release(seed=2**127 + seed)


def test_each_cell_covers_what_it_covered() -> None:
    before, now = tables()
    earlier = release_of(before, 1)
    assert earlier.truth is not None
    coded = prepared_release(now, earlier.frame)
    assert list(coded.columns) == ["age", "job", "born", "pay", "ill"]
    # row by row: whom the earlier release is about is covered still, by values of the new coding
    covering = af.verify(
        now, coded.drop(columns=["pay", "ill"]).iloc[np.argsort(earlier.truth)], ["covers"], k=4
    )
    assert covering
    assert set(coded["pay"]) <= set(now.frame["pay"])
    jobs = {text.strip("{}") for text in coded["job"]}
    assert jobs - {"*"}
    assert {job for text in jobs for job in text.split("|")} <= {"health", "clerk", "cook", "*"}


def test_dates_of_a_file_are_those_of_the_table() -> None:
    frame = pd.DataFrame({"age": [20, 30], "seen": pd.to_datetime(["2020-01-01", "2020-02-01"])})
    table = af.Table(frame, {"age": COLUMNS["age"], "seen": {"role": "insensitive"}})
    assert _goes_with(table, pd.Series(["2020-01-01", "2020-02-01", "*"], name="seen", dtype=object))
    assert not _goes_with(table, pd.Series(["2020-01-01", "2020-03-01"], name="seen", dtype=object))


def test_a_release_of_the_same_coding_stays() -> None:
    _, now = tables()
    release = release_of(now, 2)
    assert prepared_release(now, release.frame).equals(release.frame)
    plain, _ = tables()
    assert prepared_release(plain, release.frame) is release.frame


def test_what_a_step_does_not_take_says_nothing() -> None:
    before, now = tables()
    frame = release_of(before, 1).frame
    frame.loc[0, "job"] = "{clerk|nurse}"
    frame.loc[1, "years"] = "unknown"
    coded = prepared_release(now, frame)
    assert coded.loc[0, "job"] == "{clerk|health}"
    assert coded.loc[1, "age"] == "*"


@loop("with_certificate", [True, False])
def test_the_attacker_who_has_both_codes_them_alike(with_certificate: bool) -> None:
    """Without the steps the two have no value of `pay` in common, and no column `age`: nothing could be compared."""
    before, now = tables()
    earlier, release = release_of(before, 1), release_of(now, 2)
    item = earlier if with_certificate else earlier.frame
    result = af.attack(now, release, af.risk.Intersection(earlier=[item]), k=4).iloc[0]
    assert result["success"] > result["baseline"]


def test_cells_that_cannot_be_coded_are_counted() -> None:
    before, now = tables()
    earlier, release = release_of(before, 1).frame, release_of(now, 2)
    plain = af.attack(now, release, af.risk.Intersection(earlier=[earlier]), k=4)["sentence"][0]
    earlier.loc[:2, "years"] = ["unknown", "about 40", "?"]
    sentence = af.attack(now, release, af.risk.Intersection(earlier=[earlier]), k=4)["sentence"][0]
    more = [int(re.search(r"(\d+) more cells of earlier releases", text)[1]) for text in (plain, sentence)]  # type: ignore[index]
    assert more[1] - more[0] == 3


@pytest.mark.parametrize("error", [SchemaError, ParameterError])
def test_only_cells_are_passed_over(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that cannot be taken at all, such as one whose table file is gone, is no cell that says nothing."""
    before, now = tables()
    earlier = release_of(before, 1)

    def gone(*_: object) -> Any:
        raise error("the table file 'jobs.csv' cannot be read")

    monkeypatch.setattr(Step, "apply", gone)
    with pytest.raises(error, match=r"jobs\.csv"):
        prepared_release(now, earlier.frame)


def test_an_order_that_cannot_be_tested_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"age": range(60), "ill": list("uvw") * 20})
    table = af.Table(frame, {"age": {**QI, "kind": "numeric"}, "ill": {"role": "sensitive"}})
    raw = frame.astype({"age": str})

    def too_large(*_: object) -> Any:
        raise DataError("too many pairs of a row and a person; verify a part of the table")

    monkeypatch.setattr("anonflow.criteria.evidence.consistency_graph", too_large)
    remarks = af.verify(table, raw, "k-anonymity", k=2).remarks
    assert any("was not tested: too many pairs" in remark for remark in remarks)
