"""Published cells read back as ranges and shares hold the originals, whatever is published."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from tests.strategies import loop


def _column(values: list, kind: str, classes: list[int], **column: object) -> tuple[pd.Series, pd.Series]:
    """A column as it was, and as it is published for some classes of records."""
    from anonflow.generalization import Generalization

    frame = pd.DataFrame({"a": values})
    table = af.Table(frame, {"a": {"role": "quasi-identifier", "kind": kind, **column}})
    boxes = Generalization.join_by_class(table.records, np.array(classes))
    return frame["a"], boxes.closure().decode()["a"]


labels = st.text(st.sampled_from('ab|{}" *-é'), max_size=4)


@given(
    st.lists(
        st.tuples(st.floats(-1e6, 1e6, allow_subnormal=False), st.integers(0, 3)), min_size=2, max_size=12
    )
)
def test_ranges_hold_the_originals(rows: list[tuple[float, int]]) -> None:
    values, classes = [round(row[0], 3) + 0.0 for row in rows], [row[1] for row in rows]
    original, published = _column(values, "numeric", classes)
    read = af.ranges(published, domain=(min(values), max(values)))
    for label in set(classes):
        mine = [value for value, item in zip(values, classes, strict=True) if item == label]
        rows_of = read[np.array(classes) == label]
        assert set(rows_of["low"]) == {min(mine)}
        assert set(rows_of["high"]) == {max(mine)}
    assert ((read["low"] <= original) & (original <= read["high"])).all()
    assert np.allclose(read["middle"], (read["low"] + read["high"]) / 2)


@given(st.lists(st.tuples(labels, st.integers(0, 3)), min_size=2, max_size=12))
def test_shares_hold_the_originals(rows: list[tuple[str, int]]) -> None:
    values, classes = [row[0] for row in rows], [row[1] for row in rows]
    original, published = _column(values, "categorical", classes)
    read = af.shares(published, values=sorted(set(values)))
    for at, (value, label) in enumerate(zip(original, classes, strict=True)):
        mine = {item for item, other in rows if other == label}
        assert read.loc[at, value] == pytest.approx(1 / len(mine))
        assert {name for name in read.columns if read.loc[at, name] > 0} == mine
    assert np.allclose(read.sum(axis=1), 1)


def test_values_that_are_not_given_stand_in_the_order_of_their_text() -> None:
    read = af.shares(pd.Series(["{e|z}", "d", "{b|c|f}", "a", "d"]))
    assert read.columns.tolist() == ["a", "b", "c", "d", "e", "f", "z"]


def test_labels_of_a_hierarchy_are_spread_over_what_is_below() -> None:
    tree = {"any": {"north": ["Oslo", "Turku"], "south": ["Rome"]}}
    _, published = _column(
        ["Oslo", "Turku", "Rome", "Rome", "Oslo", "Rome"],
        "hierarchy",
        [0, 0, 1, 1, 2, 2],
        hierarchy={"nested": tree},
    )
    assert published.tolist() == ["north", "north", "Rome", "Rome", "*", "*"]
    read = af.shares(published, hierarchy=af.Hierarchy.from_nested(tree))
    assert read.columns.tolist() == ["Oslo", "Turku", "Rome"]
    assert read.iloc[0].tolist() == [0.5, 0.5, 0]
    assert read.iloc[2].tolist() == [0, 0, 1]
    assert np.allclose(read.iloc[4], 1 / 3)


def test_dates_numbers_stars_and_an_index() -> None:
    cells = pd.Series(["2020-01-01/2020-01-03", "2020-02-01", "*"], index=[5, 6, 7], name="seen")
    read = af.ranges(cells)
    assert read.index.tolist() == [5, 6, 7]
    assert read.loc[5, "middle"] == pd.Timestamp("2020-01-02")
    assert read.loc[7, ["low", "high"]].tolist() == [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-02-01")]
    assert af.ranges(pd.Series([1, 2])).to_numpy().tolist() == [[1, 1, 1], [2, 2, 2]]
    assert af.ranges(pd.Series(["-500--20", "1e-05-0.5"]))["low"].tolist() == [-500, 1e-05]
    assert af.ranges(pd.Series(["*"]), domain=(0, 10)).iloc[0].tolist() == [0, 10, 5]
    assert af.shares(pd.Series(["{|a}", "a"]))[""].tolist() == [0.5, 0]


@loop(
    ("call", "says"),
    [
        (lambda: af.ranges(pd.Series(["marker", "1-2"], name="a")), "'a': 1 cell does not hold a range"),
        (lambda: af.ranges(pd.Series(["*"], name="a")), "'a': contains nothing but"),
        (lambda: af.ranges(pd.Series(["1-2"], name="a"), domain=(3, 1)), "the lowest and the highest"),
        (lambda: af.ranges(pd.Series(["1-2"], name="a"), domain=("x", 1)), "the lowest and the highest"),
        (lambda: af.shares(pd.Series(["*"], name="a")), "'a': contains nothing but"),
        (lambda: af.shares(pd.Series(["marker"], name="a"), values=["b"]), "'a': 1 cell names a value"),
        (lambda: af.shares(pd.Series(["b"], name="a"), values=["b", "b"]), "given twice"),
    ],
)
def test_wrong_cells_are_named_by_column_and_count(call, says: str) -> None:
    with pytest.raises((af.errors.DataError, af.errors.ParameterError), match=says) as caught:
        call()
    assert "marker" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_dates_with_codes_have_ends_where_a_date_may_be() -> None:
    """Cells of dates, of a code alone, and of both: the ends are those of the dates, and a code alone has none."""
    days = [f"2020-0{month}-0{day}" for month in (1, 2, 3) for day in (1, 2, 3)]
    frame = pd.DataFrame({"day": [*days, *["unknown"] * 3, days[0], "unknown"]}, dtype=object)
    table = af.Table(frame, {"day": {"role": "quasi-identifier", "kind": "numeric", "codes": ["unknown"]}})
    column = af.anonymize(table, "k-member", k=3, seed=1).release(seed=2**127).column("day")
    assert column.has_dates
    for text, (low, high) in zip(column.cells, column.ends[column.codes], strict=True):
        dates = [part for part in text.replace("|", "/").split("/") if part != "unknown"]
        if dates:
            assert (str(low)[:10], str(high)[:10]) == (min(dates), max(dates))
        else:
            assert np.isnat(low)
            assert np.isnat(high)
    exact = [text == "unknown" or (text in days) for text in column.cells]
    assert column.exact.tolist() == exact
    assert any(exact)
