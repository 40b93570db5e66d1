"""The notation of published cells: whoever reads a cell understands the same, and a naive reader with them."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.criteria.description import _contradicting
from anonflow.errors import DataError
from anonflow.generalization import Generalization
from anonflow.release.published_column import PublishedColumn
from anonflow.table.forms.number_forms import NumberForm
from anonflow.table.published.metadata import ColumnMetadata
from anonflow.table.published.release_forms import _plain_cells, _written
from tests.naive.cells import members, stands_for

QI = {"role": "quasi-identifier"}
NUMBERS = ["-20", "-5", "0", "1.5", "53", "56", "59", "1e+20"]
DATES = ["2019-12-31", "2020-01-01", "2020-02-29", "2020-03-31"]
VALUES = ["a", "b", "", "a|b", "*", "{", '"', " a", "53-59", "é"]
WRITTEN = ["a", "b", "", '""', '"a|b"', '"*"', '"{"', '"\\""', '" a"', "53-59", "é"]

ends = st.sampled_from(["numbers", "dates"]).flatmap(
    lambda kind: st.tuples(
        st.just(kind), *[st.integers(0, len(NUMBERS if kind == "numbers" else DATES) - 1)] * 2
    )
)
sets = st.lists(st.sampled_from(WRITTEN), min_size=2, max_size=4).map(lambda texts: f"{{{'|'.join(texts)}}}")


@given(ends)
def test_all_readers_of_a_range_understand_the_same(drawn: tuple[str, int, int]) -> None:
    kind, first, last = drawn
    values = NUMBERS if kind == "numbers" else DATES
    low, high = values[min(first, last)], values[max(first, last)]
    text = low if low == high else f"{low}{'-' if kind == 'numbers' else '/'}{high}"
    original = [float(value) for value in values] if kind == "numbers" else pd.to_datetime(values)
    inside = [stands_for("range", text)(value) for value in values]
    table = af.Table(pd.DataFrame({"a": original}), {"a": {**QI, "kind": "numeric"}})
    cells = pd.Series([text], name="a", dtype=object)
    # the verifier's reading; it knows a single spelling of the whole domain, "*"
    read = Generalization.parse(pd.DataFrame({"a": cells}), table.domains, canonical=not all(inside))
    assert [read.lo[0, 0] <= code <= read.hi[0, 0] for code in range(len(values))] == inside
    assert read.decode()["a"][0] == ("*" if all(inside) else text)
    # ranges of a column, and of a described one
    about = ColumnMetadata("a", "quasi-identifier", "range", "number" if kind == "numbers" else "date")
    for low_end, high_end in (
        af.ranges(cells)[["low", "high"]].iloc[0],
        (PublishedColumn(cells, about).low[0], PublishedColumn(cells, about).high[0]),
    ):
        assert [bool(low_end <= value <= high_end) for value in original] == inside
    # the description's bounds, and its pattern
    bounded = ColumnMetadata("a", "quasi-identifier", "range", about.type, bounds=(low, high))
    assert not _contradicting(bounded, cells).any()
    assert cells.str.fullmatch(str(about.pattern)).all()


@given(st.sampled_from(WRITTEN) | sets)
def test_all_readers_of_a_set_understand_the_same(text: str) -> None:
    named = members(text)
    cells = pd.Series([text], name="a", dtype=object)
    shares = af.shares(cells)
    assert set(shares.columns[shares.iloc[0] > 0]) == {value or "" for value in named}
    about = ColumnMetadata("a", "quasi-identifier", "set", "text")
    assert list(PublishedColumn(cells, about).members[0]) == named
    table = af.Table(
        pd.DataFrame({"a": [None, *VALUES]}, dtype=object),
        {"a": {**QI, "kind": "categorical", "missing": "value"}},
    )
    domain = table.domains[0]
    values = [PublishedColumn(pd.Series([label]), about).members[0][0] for label in domain.labels]
    read = Generalization.parse(pd.DataFrame({"a": cells}), table.domains)
    codes = [code for code in range(domain.size) if int(read.bits[code >> 6, 0]) >> (code & 63) & 1]
    assert {values[code] for code in codes} == set(named)


def test_a_date_that_does_not_exist_is_refused_like_other_cells_that_are_no_range() -> None:
    about = ColumnMetadata("a", "quasi-identifier", "range", "date")
    column = PublishedColumn(pd.Series(["2020-01-01", "2020-02-30"], name="a"), about)
    with pytest.raises(DataError, match="1 cell is not a range"):
        _ = column.low
    plain = ColumnMetadata("a", "insensitive", "exact", "date")
    with pytest.raises(DataError, match="1 cell is not a date"):
        _ = PublishedColumn(pd.Series(["2020-01-01", "53"], name="a"), plain).low


def test_a_number_below_declared_dates_contradicts_the_description() -> None:
    about = ColumnMetadata("a", "quasi-identifier", "range", "date", bounds=("2020-01-01", "2020-12-31"))
    cells = pd.Series(["53-59", "2020-01-05", "*", "2020-02-30"], name="a")
    assert _contradicting(about, cells).tolist() == [True, False, False, True]


def test_a_quoted_code_is_read_back_from_a_release_in_the_form_of_its_source() -> None:
    form = NumberForm(",")
    plain, written = ['"a|b"', '1.5-2.5|"a|b"', "*"], ['"a|b"', '1,5-2,5|"a|b"', "*"]
    assert _written(plain, form) == written
    assert _plain_cells(written, form) == plain
    # a second spelling stays one: the verifier refuses it
    assert _plain_cells(["2,5-2,5"], form) != ["2.5"]


def test_a_quoted_code_beside_numbers_is_a_single_value() -> None:
    about = ColumnMetadata("a", "quasi-identifier", "range-or-code")
    cells = pd.Series(['"a|b"', "53|N", "{N|R}", "53", "53-59", "*", "N"], name="a")
    assert PublishedColumn(cells, about).exact.tolist() == [True, False, False, True, False, False, True]
