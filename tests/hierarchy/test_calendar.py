"""Periods of the calendar: which one a day lies in, its label, and hierarchies of dates."""

from __future__ import annotations

import datetime
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.errors import HierarchyError
from anonflow.hierarchy import Hierarchy
from anonflow.hierarchy.calendar import NESTED_UNITS, UNITS, period_labels, periods
from tests.strategies import loop

DATES = st.lists(st.dates(datetime.date(1000, 1, 1)), min_size=1, max_size=20)


def naive(day: datetime.date, unit: str) -> str:
    """The label of a day's period, from its definition."""
    year, week, weekday = day.isocalendar()
    decade, lustrum = day.year // 10 * 10, day.year // 5 * 5
    return {
        "day": day.isoformat(),
        "month": f"{day.year:04d}-{day.month:02d}",
        "quarter": f"{day.year:04d}-Q{(day.month + 2) // 3}",
        "half": f"{day.year:04d}-H{1 if day.month < 7 else 2}",
        "year": f"{day.year:04d}",
        "5-years": f"{lustrum:04d}-{lustrum + 4:04d}",
        "10-years": f"{decade:04d}-{decade + 9:04d}",
        "week": f"{year:04d}-W{week:02d}",
        "weekday": str(weekday),
    }[unit]


@given(days=DATES, unit=st.sampled_from(UNITS))
def test_a_period_is_that_of_its_definition(days: list[datetime.date], unit: str) -> None:
    array = np.array(days, "datetime64[D]")
    labels = period_labels(array, unit)
    assert labels == [naive(day, unit) for day in days]
    number = periods(array, unit).tolist()
    assert [number[0] == each for each in number] == [labels[0] == label for label in labels]


@given(days=DATES)
def test_periods_lie_in_the_next(days: list[datetime.date]) -> None:
    array = np.array(days, "datetime64[D]")
    for low, high in itertools.pairwise(NESTED_UNITS):
        above: dict[int, int] = {}
        for period, larger in zip(periods(array, low).tolist(), periods(array, high).tolist(), strict=True):
            assert above.setdefault(period, larger) == larger


@given(days=DATES)
def test_a_hierarchy_of_dates_has_the_periods_of_each_day(days: list[datetime.date]) -> None:
    tree = Hierarchy.from_mapping(
        {"calendar": ["month", "quarter", "year"]}, values=[day.isoformat() for day in days]
    )
    assert list(tree.leaves) == sorted({day.isoformat() for day in days})
    for day in days:
        path = [tree.labels[node] for node in tree.ancestors(tree.leaf_index(day.isoformat()))]
        expected = [naive(day, unit) for unit in ("day", "month", "quarter", "year")]
        assert [label for label in path if label in expected] == expected


@loop(
    ("spec", "words"),
    [
        ({"calendar": ["year", "month"]}, "each level must lie in the next"),
        ({"calendar": ["month", "week"]}, "each level must lie in the next"),
        ({"calendar": ["month", "month"]}, "each level must lie in the next"),
        ({"calendar": ["monat"]}, "a level is none of day, month"),
        ({"calendar": []}, "name the levels as a list"),
        ({"calendar": "month"}, "must be a list of levels"),
        ({"calendar": {}}, "calendar needs levels"),
        ({"calendar": {"levels": ["month"], "rot": "*"}}, "unknown key"),
    ],
)
def test_levels_that_do_not_nest_are_a_sentence(spec: object, words: str) -> None:
    with pytest.raises(HierarchyError, match=words):
        Hierarchy.from_mapping(spec, values=["2020-01-31"])


def test_levels_are_taken_if_each_lies_in_the_next() -> None:
    firsts = [datetime.date(year, month, 1) for year in range(2009, 2022) for month in range(1, 13)]
    days = [first - datetime.timedelta(before) for first in firsts for before in (0, 1)]
    of = {unit: [naive(day, unit) for day in days] for unit in UNITS}
    lies_in = {
        (low, high)
        for low, high in itertools.permutations(UNITS, 2)
        if len({*zip(of[low], of[high], strict=True)}) == len(set(of[low]))
    }
    for levels in itertools.chain.from_iterable(itertools.product(UNITS, repeat=many) for many in (1, 2, 3)):
        try:
            Hierarchy.from_mapping({"calendar": list(levels)}, values=["2020-01-31"])
        except HierarchyError:
            assert not lies_in.issuperset(itertools.pairwise(levels)), levels
        else:
            assert lies_in.issuperset(itertools.pairwise(levels)), levels


@loop("value", ["31.12.2020", "x", "2020-02-30", "2020-13"])
def test_values_that_are_no_dates_are_a_sentence(value: str) -> None:
    with pytest.raises(HierarchyError, match="1 value that is no date") as refused:
        Hierarchy.from_mapping({"calendar": ["week"]}, values=["2020-01-31", value])
    assert value not in str(refused.value)


PARTIAL = ["1984", "1984-07", "1984-07-09", "1984-07-20", "1984-08-01", "1985-01-02", "1985", "1985-02-03"]


@pytest.mark.parametrize("method", ["greedy", "mondrian", "full-domain", "k-member", "k-concealment"])
def test_a_partial_date_is_published_as_its_period_at_least(method: str) -> None:
    frame = pd.DataFrame({"born": PARTIAL * 2, "sex": ["F", "M"] * 8})
    schema = {
        "born": {
            "role": "quasi-identifier",
            "kind": "hierarchy",
            "hierarchy": {"calendar": ["month", "year"]},
        },
        "sex": {"role": "sensitive"},
    }
    table = af.Table(frame, schema)
    anonymization = af.anonymize(table, method, k=2, seed=1)
    cells = anonymization.frame()["born"]
    assert not cells.str.contains("?", regex=False).any()
    for born, cell in zip(frame["born"], cells, strict=True):
        assert cell == "*" or born.startswith(cell), "a period holds all of the date"
        assert cell != born or cell in ("1984", "1984-07", "1985") or len(cell) == 10
    assert af.verify(table, anonymization.release(seed="f" * 32), ["covers"], k=2)


def test_a_release_of_an_exact_day_does_not_cover_a_partial_date() -> None:
    frame = pd.DataFrame({"born": ["1984-07", "1984-07-09"]})
    entry = {"role": "quasi-identifier", "kind": "hierarchy", "hierarchy": {"calendar": ["month", "year"]}}
    table = af.Table(frame, {"born": entry})
    assert not af.verify(table, pd.DataFrame({"born": ["1984-07-09", "1984-07-09"]}), ["covers"], k=2)
    assert af.verify(table, pd.DataFrame({"born": ["1984-07", "1984-07-09"]}), ["covers"], k=2)


def test_partial_dates_are_offered_as_periods() -> None:
    frame = pd.DataFrame({"born": PARTIAL * 2, "sex": ["F", "M"] * 8})
    entry = af.Schema.infer(frame).to_mapping()["born"]
    assert entry == {
        "role": "quasi-identifier",
        "kind": "hierarchy",
        "hierarchy": {"calendar": ["month", "year"]},
    }
    reason = af.Schema.advise(frame).set_index("column").loc["born", "reasons"]
    assert "and 6 are a month or a year alone" in reason
    with pytest.raises(af.errors.DataError, match=r"with kind hierarchy and hierarchy: .calendar: "):
        af.Table(frame, {"born": {"role": "quasi-identifier", "kind": "numeric"}})


def test_whole_columns_of_dates_are_recoded_to_periods() -> None:
    """Levels of a numeric column of dates are not widths of days since 1970."""
    days = [f"2021-{month:02d}-{day:02d}" for month in range(1, 13) for day in (1, 15, 28)]
    table = af.Table(
        pd.DataFrame({"admitted": days}), {"admitted": {"role": "quasi-identifier", "kind": "numeric"}}
    )
    anonymization = af.anonymize(table, "full-domain", k=3)
    assert anonymization.facts["levels"] == {"admitted": "month"}
    assert anonymization.frame()["admitted"].iloc[0] == "2021-01-01/2021-01-28"
    assert af.anonymize(table, "full-domain", k=4).facts["levels"] == {"admitted": "quarter"}
    fixed = af.anonymize(table, "full-domain", k=3, levels={"admitted": "half"})
    assert fixed.frame()["admitted"].iloc[0] == "2021-01-01/2021-06-28"
    wide = af.anonymize(table, "full-domain", k=3, widths={"admitted": [30, 60]})
    assert wide.facts["levels"]["admitted"].startswith("width")
