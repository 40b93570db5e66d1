"""Odd values and arguments from Python: taken for what they are, or refused in our own words."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import anonflow as af
from anonflow.errors import AnonflowError, DataError, ParameterError, SchemaError
from anonflow.hierarchy import Hierarchy
from anonflow.risk import Journalist
from anonflow.table import Table
from anonflow.table.files.read import read_frame
from tests.strategies import loop

QI = {"role": "quasi-identifier"}


def table_of(values: Any, kind: str = "numeric", **more: Any) -> Table:
    return Table(pd.DataFrame({"x": values}), {"x": {**QI, "kind": kind, **more}})


FAR_DATES = pytest.mark.skipif(
    int(pd.__version__.partition(".")[0]) < 3,
    reason="pandas 2 reads text and objects of such years as no dates: the column is refused",
)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([Decimal("1.10"), Decimal("2"), Decimal("-3.5")], "-3.5-1.1"),
        pytest.param(["0001-01-01", "9999-12-31", "2020-02-01"], "0001-01-01/2020-02-01", marks=FAR_DATES),
        pytest.param(
            [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2020, 2, 1)], "0001-01-01/2020-02-01", marks=FAR_DATES
        ),
        (pd.Series(["0001-01-01", "9999-12-31", "2020-02-01"], dtype="datetime64[s]"), "0001-01-01/2020-02-01"),
        (
            pd.to_datetime(
                [f"2020-01-01T00:00:00.00000000{i}" for i in (1, 3)] + ["2020-01-01T00:00:00.000000002"]
            ),
            "2020-01-01T00:00:00.000000001/2020-01-01T00:00:00.000000002",
        ),
        (
            pd.to_datetime(
                [f"2020-01-01T00:00:00.00000{i}" for i in (1, 3)] + ["2020-01-01T00:00:00.000002"]
            ),
            "2020-01-01T00:00:00.000001/2020-01-01T00:00:00.000002",
        ),
    ],
)  # fmt: skip
def test_numbers_and_dates_of_every_sort_publish_and_read_back(values: Any, text: str) -> None:
    table = table_of(values)
    domain = table.domains[0]
    assert domain.run_texts(np.array([0]), np.array([1])) == [text]
    assert domain.read_run(text) == (0, 1)
    anon = af.anonymize(table, "greedy", k=2)
    assert af.verify(table, anon.release().frame, ["covers", "k-regular"], k=2)
    assert 0 < anon.loss("gcp") <= 1


@loop("values", [[2**60, 2**60 + 1, 2**60 + 3], [0.0, 5e-324]])
def test_numbers_that_floats_cannot_tell_apart_cost_by_rank(values: list[Any]) -> None:
    table = table_of(values)
    anon = af.anonymize(table, "mondrian", k=len(values))
    assert anon.loss("gcp") == 1.0
    assert af.verify(table, anon.release().frame, ["covers", "k-anonymity"], k=len(values))
    narrow = af.anonymize(table_of([*values, *values]), "greedy", k=2)
    assert narrow.loss("gcp") == 0.0


def test_a_range_upside_down_covers_nothing() -> None:
    for values, text in (([1, 5, 9], "9-1"), (["2020-01-01", "2020-01-02"], "2020-01-02/2020-01-01")):
        domain = table_of(values).domains[0]
        assert domain.read_run(text) == (domain.size, -1)


@loop(
    ("values", "says"),
    [
        ([[1], [2]], "no single value"),
        ([10**30, 1], "beyond 64 bits"),
        (["1" + "0" * 29, "1"], "beyond 64 bits"),
        ([str(2**63), "1"], "beyond 64 bits"),
        (pd.array([Decimal(10**30), Decimal(1)], pd.ArrowDtype(pa.decimal128(38, 0))), "beyond 64 bits"),
        ([Decimal("0.12345678901234567891"), Decimal("1.5")], "more digits than a float has"),
        ([Decimal("12345678901234567.25"), Decimal(1)], "more digits than a float has"),
        ([str(2**53 + 1), "1.5"], "beside fractions"),
        (pd.array([[1], [2]], pd.ArrowDtype(pa.list_(pa.int64()))), "no single value"),
        (pd.array([{"a": 1}, {"a": 2}], pd.ArrowDtype(pa.struct({"a": pa.int64()}))), "no single value"),
        (pd.to_timedelta([1, 2], unit="D"), "not numbers"),
        ([dt.time(1), dt.time(2)], "not numbers"),
        ([Decimal("Infinity"), Decimal("2")], "1 value is no number"),
        ([dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)], "time zone"),
    ],
)
def test_what_is_no_number_is_refused(values: Any, says: str) -> None:
    with pytest.raises(DataError, match=rf"column 'x': .*{says}") as caught:
        table_of(pd.Series(values))
    assert "2020" not in str(caught.value)


def test_texts_of_long_whole_numbers_stay_apart() -> None:
    """`1234567890123456789` and its neighbour were published as 1234567890123456800: numbers of 19 digits were read as fractions."""
    texts = [str(2**63 - 1 - number) for number in range(3)]
    frame = af.anonymize(table_of(pd.Series(texts * 2)), "mondrian", k=2).frame()
    assert sorted(frame["x"].astype(str)) == sorted(texts * 2)


def test_decimals_are_verified_as_they_are_written() -> None:
    """Decimals of Arrow are numbers to pandas: 1.10 was compared with 1.1, and a release that holds was refused."""
    prices = pd.array([Decimal("1.10"), Decimal("2.05")] * 2, pd.ArrowDtype(pa.decimal128(9, 2)))
    table = Table(
        pd.DataFrame({"x": [1, 1, 2, 2], "s": prices}),
        {"x": {**QI, "kind": "numeric"}, "s": {"role": "sensitive"}},
    )
    release = af.anonymize(table, "mondrian", k=2).release()
    assert af.verify(table, release.frame, k=2)


def test_text_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(DataError, match="column 'x': has characters that no file can hold"):
        table_of(pd.Series(["\ud800", "a"], dtype=object), "categorical")
    table = Table(
        pd.DataFrame({"x": [1, 2], "s": pd.Series(["\ud800", "a"], dtype=object)}),
        {"x": {**QI, "kind": "numeric"}, "s": {"role": "sensitive"}},
    )
    anon = af.anonymize(table, "mondrian", k=2)
    for seed in (None, 2**100):
        with pytest.raises(DataError, match="column 's': has char"):
            anon.release(seed=seed)


@loop("workers", [0, -1, "x", 1.5, True])
def test_workers_are_a_count(workers: Any) -> None:
    with pytest.raises(ParameterError, match="workers must be"):
        af.anonymize(table_of([1, 2]), "mondrian", k=2, workers=workers)


@loop("k", [np.int64(2), np.array([2, 3]), (2,), range(2, 4)])
def test_compare_takes_any_whole_numbers(k: Any) -> None:
    runs = af.compare(table_of(range(6)), ["mondrian"], k=k)
    assert runs["k"].tolist() == np.atleast_1d(np.array(k)).tolist()


@loop("k", [None, 2.5, "5", [2.0], [], [True]])
def test_compare_refuses_other_k(k: Any) -> None:
    with pytest.raises(ParameterError, match="k must be whole numbers"):
        af.compare(table_of(range(6)), ["mondrian"], k=k)


def test_arguments_of_another_sort() -> None:
    table = table_of(range(6))
    anon = af.anonymize(table, "mondrian", k=2)
    calls: list[tuple[type[AnonflowError], Any]] = [
        (ParameterError, lambda: af.anonymize(table, ["greedy"], k=2)),  # type: ignore[arg-type]
        (ParameterError, lambda: af.measure(table, anon, ["c-avg"], k="x")),  # type: ignore[arg-type]
        (ParameterError, lambda: af.measure(table, anon, ["c-avg"], k=0)),
        (ParameterError, lambda: af.measure(table, anon, {"usefulness": {"numeric": 5}})),
        (ParameterError, lambda: af.attack(table, anon, Journalist(5), k=2)),  # type: ignore[arg-type]
        (SchemaError, lambda: af.Schema.infer([1])),  # type: ignore[arg-type]
    ]
    for error, call in calls:
        with pytest.raises(error):
            call()


def test_the_journalist_knows_hierarchies_built_in_memory() -> None:
    tree = Hierarchy.from_nested({"*": {"A": ["a", "b"], "C": ["c", "d"]}})
    table = table_of(list("aabbccdd"), "hierarchy", hierarchy=tree)
    anon = af.anonymize(table, "mondrian", k=2)
    attacks = af.attack(table, anon, Journalist(pd.DataFrame({"x": list("abcd") * 4})))
    assert attacks["success"].tolist() == [0.25]


def test_a_quote_that_is_never_closed_swallows_nobody(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    for text in ('a,b\n1,"2\n3,4\n5,6\n', 'a\n"1\n', 'a,b\n1,2\n3,"é\n'):
        for encoding in ("utf-8", "latin-1", "utf-16"):
            file.write_bytes(text.encode(encoding))
            with pytest.raises(DataError, match=r"a quote is opened after row \d and never closed"):
                read_frame(file, encoding=encoding)
    for text, cells in (
        ('a,b\n1,5" pipe\n3,4\n', [["1", '5" pipe'], ["3", "4"]]),
        ('a\n"x""\ny"\n', [['x"\ny']]),
    ):
        file.write_text(text)
        assert read_frame(file).to_numpy().tolist() == cells


@loop("option", [{"boundary": {"width": 10}}, {"max-width": 10}])
def test_values_that_cost_the_same_stay_within_limits(option: dict[str, Any]) -> None:
    """5 and 1e6 are one number to the kernels where the domain ends at 1e300: nobody is widened to both."""
    values = [5.0, 6.0, 5.0, 6.0, 1e6, 1e6 + 1, 1e6, 1e6 + 1, 1e300, 1e300]
    frame = pd.DataFrame({"x": values, "s": list("ababababab")})
    schema = {"x": {**QI, "kind": "numeric", **option}, "s": {"role": "sensitive"}}
    table = Table(frame, schema)
    for name in ("k-concealment", "greedy", "agglomerative"):
        anon = af.anonymize(table, name, k=2, seed=1)
        assert af.verify(table, anon, ["covers", "boundary", "guarantee"])
        if "boundary" in option:
            diverse = af.diversify(anon, "p-sensitivity", p=2, seed=1)
            assert af.verify(table, diverse, ["covers", "boundary", "guarantee"])


def test_all_that_is_generalized_without_boundaries_is_a_violation() -> None:
    table = table_of([1, 30, 60, 90], boundary={"width": 10})
    anon = af.anonymize(table, "k-member", k=4, boundaries=False)
    assert anon.frame()["x"].tolist() == ["*"] * 4
    assert af.measure(table, anon, "violations") == {"violations": 4}
    assert not af.verify(table, anon, "boundary")
