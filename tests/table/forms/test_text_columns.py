"""One text of a value: as a category, in a published cell, and where cells are compared."""

from __future__ import annotations

import datetime
import decimal
import math
import re
import uuid
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.errors import DataError
from anonflow.hierarchy import number_text
from anonflow.release import ReleaseWarning
from anonflow.release.rows import PlainColumn
from anonflow.table.forms.text_columns import value_text
from anonflow.table.published.published_cells import Range, range_pattern, reads_as_number
from anonflow.table.row_marks import cell_text
from tests.strategies import loop

VALUES: list[tuple[Any, str]] = [
    ("a", "a"),
    (True, "True"),
    (np.bool_(False), "False"),
    (3, "3"),
    (np.int8(3), "3"),
    (2**70, "1180591620717411303424"),
    (1e16, "1e+16"),
    (-0.0, "0"),
    (np.float32(0.1), "0.10000000149011612"),
    (datetime.date(2020, 1, 2), "2020-01-02"),
    (datetime.datetime(2020, 1, 2), "2020-01-02"),
    (datetime.time(0), "00:00:00"),
    (pd.Timestamp("2020-01-02T03:04:05.123456789"), "2020-01-02T03:04:05.123456789"),
    (pd.Timestamp("2020-01-02", tz="UTC"), "2020-01-02T00:00:00+00:00"),
    (pd.Timedelta("1D"), "1 days 00:00:00"),
    (np.datetime64("2020-01-02", "ns"), "2020-01-02T00:00:00.000000000"),
    (np.timedelta64(1, "ns"), "1 nanoseconds"),
    (pd.Period("2020-01"), "2020-01"),
    (decimal.Decimal("1.50"), "1.50"),
    (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
]

KEPT = {"q": {"role": "quasi-identifier", "kind": "categorical"}}


def everywhere(value: Any) -> list[str]:
    """The texts of a value as a category, as what a release shows, and as what is compared."""
    column = pd.Series([value, "another"], dtype=object, name="q")
    labels = af.Table(pd.DataFrame({"q": column}), KEPT).domains[0].labels
    (category,) = set(labels) - {"another"}
    return [category, PlainColumn.of(column, "q", False).at(np.arange(2), None)[0], cell_text(value, False)]


@pytest.mark.parametrize(("value", "text"), VALUES, ids=repr)
def test_a_value_reads_the_same_everywhere(value: Any, text: str) -> None:
    assert value_text(value) == text
    assert everywhere(value) == [text] * 3


@given(
    st.one_of(
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.dates(),
        st.datetimes(timezones=st.sampled_from([None, datetime.UTC])),
        st.times(),
        st.timedeltas(),
        st.decimals(allow_nan=False, allow_infinity=False),
        st.booleans(),
    )
)
def test_any_value_reads_the_same_everywhere(value: Any) -> None:
    assert everywhere(value) == [value_text(value)] * 3


@pytest.mark.parametrize("cells", [[True, 1, 1, 0], [1, True, 0, 1], [np.True_, 1, 1.0, 0], [1, 0, True, decimal.Decimal(1)]])  # fmt: skip
def test_a_bool_is_no_number_in_any_column(cells: list[Any]) -> None:
    """pandas takes both for one value: whoever came first, also a suppressed person, changed how the others' cells read."""
    texts = ["0", "1", "1", "True"]
    frame = pd.DataFrame({"sex": ["f"] * 4, "x": pd.Series(cells, dtype=object)})
    schema = {"sex": {"role": "quasi-identifier", "kind": "suppression"}, "x": {"role": "sensitive"}}
    table = af.Table(frame, schema)
    with pytest.warns(ReleaseWarning, match="nearly unique"):
        release = af.anonymize(table, "mondrian", k=2, seed=2**127).release(seed=2**127)
    assert sorted(release.frame["x"]) == texts
    assert af.verify(table, release, ["covers"])
    merged = release.frame.assign(x=["0", "1", "1", "1"])
    assert not af.verify(table, merged, ["covers"])
    for kind in ("categorical", "suppression"):
        coded = af.Table(frame[["x"]], {"x": {"role": "quasi-identifier", "kind": kind}})
        assert sorted(coded.domains[0].labels) == ["0", "1", "True"]
    with pytest.raises(DataError, match="1 value is no number"):
        af.Table(frame[["x"]], {"x": {"role": "quasi-identifier", "kind": "numeric"}})


def test_spans_of_time_are_seen_by_attackers() -> None:
    """Fault: an attacker compared P1DT0H0M0S of the originals with the published 1 days 00:00:00."""
    frame = pd.DataFrame({"q": [1, 1, 2, 2], "rest": pd.to_timedelta([1, 1, 2, 2], "D")})
    table = af.Table(
        frame, {"q": {"role": "quasi-identifier", "kind": "numeric"}, "rest": {"role": "sensitive"}}
    )
    release = af.anonymize(table, "mondrian", k=2).release()
    assert set(release.frame["rest"]) == {cell_text(value, False) for value in frame["rest"]}


# -------------------------------------------------------------------------------------------- dates


@given(
    st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)),
    st.integers(0, 9),
    st.sampled_from(["", "Z", "+02:00"]),
)
def test_a_published_date_is_one_for_every_reader(moment: datetime.datetime, digits: int, zone: str) -> None:
    fraction = f".{moment.microsecond:06d}000"[: digits + 1] if digits else ""
    text = f"{moment:%Y-%m-%dT%H:%M:%S}{fraction}{zone}"
    assert re.fullmatch(range_pattern(dates=True), text)
    assert reads_as_number(text)
    assert Range.read(text) == (text, text, True)
    low = af.ranges(pd.Series([text]))["low"][0]
    stamp = pd.Timestamp(text)
    assert low == (stamp.tz_convert("UTC").tz_localize(None) if zone else stamp)


@loop("text", ["2020-01-01foo", "2020-01-01T10", "20200101/20200102", "2020-1-1"])
def test_what_is_no_date_is_refused(text: str) -> None:
    assert Range.read(text) is None
    with pytest.raises(DataError, match="does not hold a range"):
        af.ranges(pd.Series([text]))


def test_dates_that_do_not_exist_and_those_of_other_tools() -> None:
    with pytest.raises(DataError, match="column 'born': has a date that does not exist"):
        af.ranges(pd.Series(["2020-99-99"], name="born"))
    spaced = af.ranges(pd.Series(["2020-01-01 10:00:00/2020-01-02"]))
    assert spaced["low"][0] == pd.Timestamp("2020-01-01 10:00")


@given(st.text("0123456789-+.eE_ {[*|inf", max_size=7))
def test_what_python_reads_as_a_number_is_one_text(text: str) -> None:
    """Ranges and sets are told apart before any number is read: that changes nothing."""

    def read(kind: type) -> float | None:
        try:
            return kind(text)
        except ValueError:
            return None

    number = next((value for value in (read(int), read(float)) if value is not None), None)
    expected = text if number is None or not math.isfinite(number) else number_text(number)
    assert cell_text(text, True) == expected
    assert cell_text(text, False) == text
