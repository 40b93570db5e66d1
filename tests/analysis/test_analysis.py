"""Counts with bounds, the mixture behind plausible tables, the tables themselves, and how they are pooled."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

import anonflow as af
from anonflow.analysis import certain, mixture, models
from anonflow.analysis.candidates import CandidateTable
from anonflow.analysis.conditions import rows_that_meet
from anonflow.analysis.plausible_tables import NUMBER
from anonflow.errors import AnonflowWarning, DataError, ParameterError
from anonflow.release import Release
from tests import strategies
from tests.benchmarks import bench_crosstabs
from tests.naive import analysis as naive
from tests.strategies import examples, loop

SEED = 1 << 100


@pytest.fixture(scope="module")
def small() -> tuple[af.Table, Release]:
    frame = af.datasets.census_like(400, seed=1)
    table = af.Table(frame, af.datasets.schema("census_like"))
    return table, af.anonymize(table, "greedy", k=5, partition_size=100, seed=SEED).release(seed=SEED)


# --- counts ---------------------------------------------------------------------------------------------

CELLS = st.tuples(st.integers(0, 20), st.integers(0, 6)).map(lambda pair: (pair[0], pair[0] + pair[1]))
SETS = st.sets(st.sampled_from("abcd"), min_size=1)
NARROW = st.tuples(st.integers(0, 9), st.integers(0, 2)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@pytest.mark.filterwarnings("ignore:condition on")
@examples(30)
@given(st.lists(st.tuples(CELLS, SETS), min_size=1, max_size=12), CELLS, SETS)
def test_counts_are_those_of_the_values_one_by_one(rows: Any, ages: tuple[int, int], jobs: set[str]) -> None:
    frame = pd.DataFrame(
        {
            "age": [f"{low}-{high}" if low < high else str(low) for (low, high), _ in rows],
            "job": [f"{{{'|'.join(sorted(job))}}}" if len(job) > 1 else next(iter(job)) for _, job in rows],
        }
    )
    own = sorted({value for _, job in rows for value in job})
    counts = af.count(frame, {"age": ages, "job": sorted(jobs)}, classes=2)
    answer = naive.count(
        [{"age": age, "job": job & set(own)} for age, job in rows], {"age": ages, "job": jobs}
    )
    assert (counts.certain, counts.possible) == answer[:2]
    assert counts.uniform == pytest.approx(answer[2])
    assert counts.certain - 1e-9 <= counts.fitted <= counts.possible + 1e-9


@pytest.mark.filterwarnings("ignore:condition on")
@examples(25)
@given(strategies.tables(min_n=6, kinds=("numeric", "categorical")), st.data())
def test_the_truth_is_between_the_bounds(table: af.Table, data: st.DataObject) -> None:
    kinds = {name: table.schema[name].kind for name in table.qi_columns}
    if table.frame[list(table.qi_columns)].isna().any().any():
        return
    release = af.anonymize(table, "mondrian", k=3, seed=SEED).generalization.decode()
    name = data.draw(st.sampled_from(table.qi_columns))
    cells = table.frame[name]
    if kinds[name] == "numeric":
        low, high = sorted(data.draw(st.tuples(st.sampled_from(list(cells)), st.sampled_from(list(cells)))))
        truth, where = int(cells.between(low, high).sum()), (low, high)
    else:
        value = data.draw(st.sampled_from(list(cells)))
        truth, where = int((cells == value).sum()), [value]
    if (release[name] == "*").all():  # nothing is known of it
        return
    counts = af.count(release, {name: where}, schema=table.schema)
    assert counts.certain <= truth <= counts.possible


@pytest.mark.filterwarnings("ignore:condition on")
@given(
    st.lists(
        st.tuples(CELLS, st.booleans(), st.sampled_from("abc"), st.booleans()), min_size=1, max_size=8
    ).filter(lambda rows: not all(row[1] for row in rows) and not all(row[3] for row in rows)),
    CELLS,
    st.sampled_from("abc"),
    st.data(),
)
def test_a_star_may_stand_for_what_no_cell_names(
    rows: Any, ages: tuple[int, int], job: str, data: st.DataObject
) -> None:
    """The domain is not published: whoever is hidden may be the oldest, or the only one with a job."""
    frame = pd.DataFrame(
        {
            "age": ["*" if hidden else f"{low}-{high}" for (low, high), hidden, _, _ in rows],
            "job": ["*" if hidden else value for _, _, value, hidden in rows],
        }
    )
    people = [data.draw(st.integers(0, 40) if hidden else st.integers(*cell)) for cell, hidden, _, _ in rows]
    by_age = af.count(frame, {"age": ages}, classes=1)
    assert by_age.certain <= sum(ages[0] <= age <= ages[1] for age in people) <= by_age.possible
    by_job = af.count(frame, {"job": job}, classes=1)
    assert by_job.certain <= sum(value == job for _, _, value, _ in rows) <= by_job.possible
    assert by_job.certain == sum(value == job and not hidden for _, _, value, hidden in rows)


def test_a_star_of_a_published_domain_is_in_it(tmp_path: Path) -> None:
    schema = {
        "age": {"role": "quasi-identifier", "kind": "numeric", "domain": {"low": 0, "high": 99}},
        "job": {"role": "quasi-identifier", "kind": "categorical", "domain": ["a", "b", "c"]},
        "ill": {"role": "sensitive"},
    }
    frame = pd.DataFrame({"age": ["20-29", "*"], "job": ["a", "*"], "ill": ["x", "y"]})
    frame.to_csv(tmp_path / "r.csv", index=False)
    release = af.read_release(tmp_path / "r.csv", schema)
    assert af.count(release, {"age": {"to": 99}}).certain == 2
    with pytest.warns(AnonflowWarning, match="condition on 'age': no cell of the release names such a value"):
        assert af.count(release, {"age": {"from": 100}}).possible == 0
    assert af.count(release, {"job": ["a", "b", "c"]}).certain == 2
    assert af.count(release, {"job": "c"}).uniform == pytest.approx(1 / 3)
    with pytest.warns(
        AnonflowWarning, match="condition on 'job': no cell of the release names such a value"
    ) as caught:
        assert af.count(release, {"job": "d", "ill": "x"}).possible == 0
    assert len(caught) == 1


@pytest.mark.filterwarnings("ignore:condition on")
def test_a_hidden_position_may_be_any_character() -> None:
    frame = pd.DataFrame({"zip": ["94107", "941**", "9****", "*"]})
    schema = {"zip": {"role": "quasi-identifier", "kind": "positions"}}
    shown, other = (af.count(frame, {"zip": code}, schema=schema) for code in ("94107", "94199"))
    assert (shown.certain, shown.possible) == (1, 4)
    assert (other.certain, other.possible) == (0, 3)


@pytest.mark.filterwarnings("ignore:condition on")
def test_whole_ends_prove_no_whole_numbers() -> None:
    frame = pd.DataFrame({"x": ["1-2", "2"]})  # 1.5 may be behind the first
    both = af.count(frame, {"x": [1, 2]})
    assert (both.certain, both.possible, both.uniform) == (1, 2, 2.0)
    half = af.count(frame, {"x": [1.5]})
    assert (half.certain, half.possible, half.uniform) == (0, 1, 0.0)


def test_a_column_that_is_hidden_throughout_says_nothing() -> None:
    frame = pd.DataFrame({"age": ["*", "*"], "job": ["a", "b"]})
    hidden = af.count(frame, {"age": {"from": 30}, "job": "a"})
    assert (hidden.certain, hidden.possible) == (0, 1)
    assert np.isnan([hidden.uniform, hidden.fitted]).all()


@pytest.mark.parametrize("kind", ["numeric", "categorical", "positions", "suppression"])
def test_a_release_that_hides_a_column_throughout_can_be_computed_with(kind: str) -> None:
    """Whatever kind the description gives it: it blocks no other column, and its own bounds are 0 and n."""
    frame = pd.DataFrame({"code": [14, 25, 36, 47, 58, 69], "sex": list("mwmwmw"), "ill": list("uvwuvw")})
    schema = {
        "code": {"role": "quasi-identifier", "kind": kind},
        "sex": {"role": "quasi-identifier", "kind": "suppression"},
        "ill": {"role": "sensitive"},
    }
    release = af.anonymize(af.Table(frame.astype({"code": str}), schema), "pattern-guided", k=3).release()
    assert (release.frame["code"] == "*").all()
    hidden = af.count(release, {"code": 14 if kind == "numeric" else "14"})
    assert (hidden.certain, hidden.possible) == (0, 6)
    assert np.isnan([hidden.uniform, hidden.fitted]).all()
    assert af.count(release, {"ill": "u"}).certain == 2
    assert (af.plausible(release, m=1, seed=1).tables[0]["code"] == "*").all()


# --- numbers with codes ---------------------------------------------------------------------------------

PAY = {
    "pay": {"role": "quasi-identifier", "kind": "numeric", "codes": ["N"], "missing": "value"},
    "ill": {"role": "sensitive"},
}


def coded(cell: tuple[tuple[int, int] | None, set[str]]) -> str:
    """A published cell of a range, or none, and codes."""
    run, codes = cell
    if run is None:
        return "{" + "|".join(sorted(codes)) + "}" if len(codes) > 1 else next(iter(codes))
    low, high = run
    return "|".join([f"{low}-{high}" if low < high else str(low), *sorted(codes)])


def coded_cells(narrow: Any) -> Any:
    """Cells of numbers with the code N, or blank."""
    return st.tuples(st.none() | narrow, st.sets(st.sampled_from(["N", ""]))).filter(
        lambda cell: cell[0] is not None or cell[1]
    )


def test_codes_and_blanks_are_categories_beside_the_number(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"pay": ["20-29", "53-59|N", "N", "{|N}", "40|", "", "33", "*"] * 30, "ill": ["x", "y"] * 120}
    )
    frame.to_csv(tmp_path / "r.csv", index=False)
    release = af.read_release(tmp_path / "r.csv", PAY)
    for tables in (af.plausible(release, m=3, seed=1), af.plausible(frame, m=3, seed=1, schema=PAY)):
        for table in tables:
            assert list(table.columns) == ["pay", "ill", "pay (code)"]
            number, code = table["pay"], table["pay (code)"]
            assert (number.notna() == (code == "number")).all()
            first = [number[at::8] for at in range(7)]
            assert first[0].between(20, 29).all()
            assert (first[1].between(53, 59) | (code[1::8] == "N")).all()
            assert (code[2::8] == "N").all()
            assert set(code[3::8]) <= {"", "N"}
            assert set(first[4].dropna()) <= {40.0}
            assert set(code[4::8]) <= {"", "number"}
            assert (code[5::8] == "").all()
            assert (first[6] == 33).all()
        everybody = tables.mean("pay")
        assert everybody["low"].item() >= 20
        assert everybody["least"].item() == -np.inf  # a number may be behind *
        shares = tables.crosstab("pay (code)", "ill")["estimate"]
        assert shares.sum() == pytest.approx(1)
        refused = tables.share({"pay": "N"})
        assert refused["estimate"].item() == pytest.approx(shares.loc["N"].sum())
        assert (refused["least"].item(), refused["most"].item()) == pytest.approx((1 / 8, 4 / 8))
        assert tables.share({"pay (code)": "N"}).equals(refused)
        tables.write(tmp_path / "t.parquet")
    counts = af.count(release, {"pay": "N"})
    assert (counts.certain, counts.possible) == (30, 120)
    assert 30 <= counts.fitted <= 120


def test_plausible_values_and_columns_are_those_of_the_release_in_other_types() -> None:
    """A category without its quotes also where every cell is one, and a column for codes also where no cell has any."""
    schema = {
        "town": {"role": "quasi-identifier", "kind": "suppression"},
        "pay": {"role": "quasi-identifier", "kind": "numeric", "codes": ["N"]},
    }
    frame = pd.DataFrame({"town": ["p|q", "r"] * 30, "pay": [20 + at // 6 for at in range(60)]})
    release = af.anonymize(af.Table(frame, schema), "mondrian", k=2).release(seed="ab" * 16)
    assert set(release.frame["town"]) == {'"p|q"', "r"}
    for table in af.plausible(release, m=2, seed=1):
        assert set(table) == set(release.to_frame("nullable"))
        assert set(table["town"]) == {"p|q", "r"}
        assert (table["pay (code)"] == "number").all()
    assert af.count(release, {"town": "p|q"}).certain == 30


@pytest.mark.filterwarnings("ignore:condition on")
@examples(40)
@given(st.lists(coded_cells(NARROW), min_size=1, max_size=4), NARROW, st.data())
def test_bounds_of_numbers_with_codes_are_those_of_all_tables(
    rows: Any, wanted: tuple[int, int], data: st.DataObject
) -> None:
    group = data.draw(st.lists(st.sampled_from("ab"), min_size=len(rows), max_size=len(rows)))
    frame = pd.DataFrame({"pay": [coded(cell) for cell in rows], "ill": group})
    cells = [[*(range(run[0], run[1] + 1) if run is not None else ()), *codes] for run, codes in rows]
    every = naive.completions(
        [{"pay": set(map(str, cell)), "ill": {own}} for cell, own in zip(cells, group, strict=True)]
    )
    candidates = CandidateTable.of(frame, PAY)
    if candidates["pay"].low is None:
        return  # no number at all
    for where, meets in (
        ({"pay": wanted}, lambda pay: pay not in ("N", "") and wanted[0] <= int(pay) <= wanted[1]),
        ({"pay": ["N", "3"]}, lambda pay: pay in ("N", "3")),
        ({"pay": ""}, lambda pay: pay == ""),
    ):
        counts = af.count(frame, where, schema=PAY, classes=1)
        own = [sum(meets(row["pay"]) for row in each) for each in every]
        assert counts.possible == max(own)
        assert counts.certain == min(own) or "3" in where["pay"]  # 3.5 may be behind a range, too
    numbers = [[float(row["pay"]) for row in each if row["pay"] not in ("N", "")] for each in every]
    some = [each for each in numbers if each]
    means = [sum(each) / len(each) for each in some]
    assert tuple(
        float(end[0]) for end in certain.mean_bounds(candidates, "pay", np.ones(candidates.n))
    ) == pytest.approx((min(means), max(means)))
    for at in (0.25, 0.5, 0.9):
        quantiles = [float(np.quantile(each, at)) for each in some]
        ends = certain.quantile_bounds(candidates, "pay", [at])
        assert tuple(float(end[0]) for end in ends) == pytest.approx((min(quantiles), max(quantiles)))
    for value in sorted(set(group)):
        own = [
            float(np.mean(mine))
            for each in every
            if (
                mine := [
                    float(row["pay"]) for row in each if row["pay"] not in ("N", "") and row["ill"] == value
                ]
            )
        ]
        least, most = certain.group_mean_bounds(candidates, "pay", "ill", [value], np.ones(candidates.n))
        if own:
            assert (least[0], most[0]) == pytest.approx((min(own), max(own)))
        else:
            assert np.isnan([least[0], most[0]]).all()


def test_texts_beside_numbers_that_are_published_as_they_were_are_no_numbers() -> None:
    frame = pd.DataFrame({"age": ["20-29", "25", "30"] * 4, "pay": ["10", "N", "30"] * 4})
    tables = af.plausible(frame, m=2, seed=1)
    assert tables.mean("pay")[["estimate", "least", "most"]].iloc[0].tolist() == [20, 20, 20]
    assert tables.group_means("pay", by="age")["estimate"].max() == 30


def test_columns_can_be_left_out() -> None:
    frame = af.datasets.census_like(200, seed=1)
    release = af.anonymize(
        af.Table(frame, af.datasets.schema("census_like")), "mondrian", k=5, seed=SEED
    ).release(seed=SEED)
    tables = af.plausible(release, m=2, seed=1, columns=["Gender", "Age"])
    assert list(tables[0].columns) == ["Age", "Gender"]
    few, every = (CandidateTable.of(release, columns=names) for names in (["Age"], None))
    assert few.matches == every.matches  # the classes are those of the whole release
    with pytest.raises(ParameterError, match=r"no column 'Agee' \(did you mean 'Age'\?\)"):
        af.plausible(release, columns=["Agee"])
    with pytest.raises(ParameterError, match="columns is a list of columns' names, at least one"):
        af.plausible(release, columns="Age")


# --- certain bounds of other estimates ------------------------------------------------------------------


@examples(40)
@given(st.lists(st.tuples(NARROW, st.sets(st.sampled_from("ab"), min_size=1)), min_size=2, max_size=4))
def test_bounds_are_those_of_all_tables_that_cells_allow(rows: Any) -> None:
    frame = pd.DataFrame(
        {
            "x": [f"{low}-{high}" if low < high else str(low) for (low, high), _ in rows],
            "g": [f"{{{'|'.join(sorted(job))}}}" if len(job) > 1 else next(iter(job)) for _, job in rows],
        }
    )
    tables = af.plausible(frame, m=2, seed=1, classes=1)
    every = naive.completions([{"x": cell, "g": job} for cell, job in rows])
    numbers = np.array([[row["x"] for row in each] for each in every], float)

    def ends(pooled: pd.DataFrame) -> list[tuple[float, float]]:
        return list(zip(pooled["least"], pooled["most"], strict=True))

    means = numbers.mean(axis=1)
    assert ends(tables.mean("x")) == [pytest.approx((means.min(), means.max()))]
    quantiles = np.quantile(numbers, [0.25, 0.5], axis=1)
    expected = [pytest.approx((each.min(), each.max())) for each in quantiles]
    assert ends(tables.quantiles("x", [0.25, 0.5])) == expected
    shares = [np.mean([row["g"] == "a" and row["x"] <= 5 for row in each]) for each in every]
    assert ends(tables.share({"g": ["a"], "x": {"to": 5}})) == [pytest.approx((min(shares), max(shares)))]
    for group, pair in zip(
        tables.group_means("x", by="g").index, ends(tables.group_means("x", by="g")), strict=True
    ):
        own = [mean for each in every if (mean := naive.mean_of_group(each, "x", "g", group)) is not None]
        assert pair == pytest.approx((min(own), max(own)))
    frequencies = tables.crosstab("g", "g")
    for (a, b), pair in zip(frequencies.index, ends(frequencies), strict=True):
        own = [np.mean([row["g"] == a == b for row in each]) for each in every]
        if a == b:
            assert pair == pytest.approx((min(own), max(own)))


@examples(40)
@given(st.lists(st.sets(st.sampled_from(["1", "2", "5", "none"]), min_size=1), min_size=2, max_size=4))
def test_bounds_of_sets_of_numbers_are_those_of_all_tables(cells: list[set[str]]) -> None:
    """A grade without a kind is a category: its cells are sets, and its mean is that of the members that are numbers."""
    sets = ["{" + "|".join(sorted(cell)) + "}" if len(cell) > 1 else next(iter(cell)) for cell in cells]
    candidates = CandidateTable.of(pd.DataFrame({"grade": [*sets, "{1|none}"]}))
    every = naive.completions([{"grade": cell} for cell in [*cells, {"1", "none"}]])
    numbers = [[float(row["grade"]) for row in each if row["grade"] != "none"] for each in every]
    some = [each for each in numbers if each]
    for ends, figures in (
        (certain.mean_bounds(candidates, "grade", np.ones(candidates.n)), list(map(np.mean, some))),
        (certain.quantile_bounds(candidates, "grade", [0.3]), [np.quantile(each, 0.3) for each in some]),
    ):
        assert tuple(float(end[0]) for end in ends) == pytest.approx((min(figures), max(figures)))


def test_a_code_that_is_hidden_in_part_may_be_any_number() -> None:
    frame = pd.DataFrame({"zip": ["41", "4*", "*"]})
    candidates = CandidateTable.of(frame, {"zip": {"role": "quasi-identifier", "kind": "positions"}})
    ends = certain.mean_bounds(candidates, "zip", np.ones(3))
    assert tuple(float(end[0]) for end in ends) == (-np.inf, np.inf)


def test_bounds_of_hidden_rows_are_infinite() -> None:
    tables = af.plausible(pd.DataFrame({"x": ["1-2", "*", "3"], "g": ["a", "a", "b"]}), m=2, seed=1)
    assert tables.mean("x")[["least", "most"]].to_numpy().tolist() == [[-np.inf, np.inf]]
    assert tables.quantiles("x", [0.1, 0.5])[["least", "most"]].to_numpy().tolist() == [
        [-np.inf, 2.2],
        [1, 3],
    ]
    groups = tables.group_means("x", by="g")
    assert groups["least"].tolist() == [-np.inf, 3]
    assert np.isnan(tables.share(lambda item: (item["x"] > 1).to_numpy())["least"]).all()


def test_a_count_is_told_with_its_share() -> None:
    frame = pd.DataFrame({"age": ["20-29", "25", "30-39", "*"], "sex": ["f", "m", "f", "f"]})
    counts = af.count(frame, {"age": {"to": 29}, "sex": "f"})
    assert (counts.rows, counts.certain, counts.possible) == (4, 1, 2)
    assert counts.uniform == 1.5
    assert counts.frame().loc["possible"].tolist() == [2, 0.5]
    dates = pd.DataFrame({"day": ["2020-01-01/2020-01-31", "2020-02-10"]})
    assert af.count(dates, {"day": ("2020-01-01", "2020-02-01")}).certain == 1


@pytest.mark.parametrize("value", ["2020-02-10", pd.Timestamp("2020-02-10"), datetime.date(2020, 2, 10)])
def test_a_date_is_a_condition_in_a_release_and_in_a_complete_table(value: Any) -> None:
    cells = pd.DataFrame({"day": ["2020-02-01/2020-02-20", "2020-02-10", "2020-02-10", "*", "2020-03-01"]})
    counts = af.count(cells, {"day": value})
    assert (counts.certain, counts.possible) == (2, 4)
    days = pd.to_datetime(pd.Series(["2020-02-10", "2020-02-11", None]))
    assert rows_that_meet(pd.DataFrame({"day": days}), {"day": value}).tolist() == [True, False, False]
    assert rows_that_meet(pd.DataFrame({"day": days}), {"day": ["", value]}).tolist() == [True, False, True]
    texts = pd.DataFrame({"day": ["2020-02-10", "2020-02-11"]})
    assert rows_that_meet(texts, {"day": value}).tolist() == [True, False]


@loop(
    "where",
    [
        {"day": (2019, 2020)},
        {"day": {"from": "2019"}},
        {"day": 2020},
        {"day": ["2020"]},
        {"day": "10.02.2020"},
        {"day": ["2020-02-10", "02/10/2020"]},
        {"age": ("2019-01-01", None)},
    ],
)
def test_a_number_is_no_date(where: Any) -> None:
    frame = pd.DataFrame({"day": ["2020-01-01/2020-01-31", "2020-02-10"], "age": ["20-29", "30"]})
    complete = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-02-10"]), "age": [25, 30]})
    with pytest.raises(
        ParameterError, match=r"has dates; give .* such as 2020-12-31|no dates; give from and to as numbers"
    ):
        af.count(frame, where)
    with pytest.raises(ParameterError, match="dates; give"):
        rows_that_meet(complete, where)


@loop(
    ("where", "words"),
    [
        ({}, "a condition is a mapping such as {age: {from: 30, to: 39}, sex: Female}"),
        ({"agee": 3}, "there is no column 'agee' (did you mean 'age'?)"),
        ({"age": {"form": 1}}, "a range is {from: NUMBER, to: NUMBER}"),
        ({"age": {"from": "old"}}, "from and to are numbers or dates"),
        ({"age": (30, 20)}, "from is larger than to"),
        ({"sex": {"from": 1}}, "has no numbers; give values instead"),
        ({"sex": [["f"]]}, "give a value, a list of values"),
        ({"sex": []}, "give a value, a list of values"),
    ],
)
def test_conditions_that_cannot_be_read(where: Any, words: str) -> None:
    frame = pd.DataFrame({"age": ["20-29", "30"], "sex": ["f", "{f|m}"]})
    with pytest.raises(ParameterError) as error:
        af.count(frame, where)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


# --- the model ------------------------------------------------------------------------------------------


@examples(25)
@given(
    st.lists(
        st.lists(st.sets(st.integers(0, 3), min_size=1), min_size=2, max_size=2), min_size=2, max_size=8
    ),
    st.integers(1, 3),
    st.integers(0, 99),
)
def test_a_round_of_em_is_the_one_by_hand(cells: list[list[set[int]]], classes: int, seed: int) -> None:
    frame = pd.DataFrame(
        {name: ["{" + "|".join(f"v{v}" for v in sorted(row[a])) + "}" if len(row[a]) > 1 else f"v{min(row[a])}"
                for row in cells] for a, name in enumerate("ab")}
    )  # fmt: skip
    candidates = CandidateTable.of(frame)
    coded = [
        [set(np.flatnonzero(column.member[column.at[i]]).tolist()) for column in candidates.columns]
        for i in range(len(cells))
    ]
    rng = np.random.default_rng(seed)
    sizes = [column.size for column in candidates.columns]
    start = mixture.Mixture(
        rng.dirichlet(np.ones(classes)), tuple(rng.dirichlet(np.full(d, 5.0), classes).T for d in sizes)
    )
    size = mixture.Model(candidates, classes).fit(rng, rounds=1, start=start)
    shares, chances = naive.em_round(
        coded, start.shares.tolist(), [chance.tolist() for chance in start.chances], mixture.PRIOR
    )
    np.testing.assert_allclose(size.shares, shares, rtol=1e-4)
    for own, item in zip(size.chances, chances, strict=True):
        np.testing.assert_allclose(own, item, rtol=1e-3, atol=1e-5)


@loop("k", [2, 3, 5])
def test_a_value_that_is_there_occurs_as_often_as_draws_from_an_urn_say(k: int) -> None:
    answer = naive.occurrences(1e-9, k, mixture.ALIKE)
    assert mixture.occurrences(k) == pytest.approx(answer, rel=1e-6)
    assert 1 < answer < k


@examples(20)
@given(
    st.lists(st.tuples(st.sets(st.integers(0, 4), min_size=1), CELLS), min_size=2, max_size=6),
    st.integers(2, 7),
    st.integers(0, 99),
)
def test_chances_of_a_hull_are_those_of_its_definition(rows: Any, k: int, seed: int) -> None:
    """In the model's counts, in the expected part of a condition, and in what is drawn."""
    frame = pd.DataFrame(
        {
            "a": [
                f"{{{'|'.join(f'v{v}' for v in sorted(s))}}}" if len(s) > 1 else f"v{min(s)}" for s, _ in rows
            ],
            "x": [f"{low}-{high}" if low < high else str(low) for _, (low, high) in rows],
        }
    )
    candidates = CandidateTable.of(frame, k=k)
    model = mixture.Model(candidates, 2)
    rng = np.random.default_rng(seed)
    chances = tuple(rng.dirichlet(np.ones(column.size), 2).T for column in candidates.columns)
    start = mixture.Mixture(np.array([0.4, 0.6]), chances)
    for place, column in enumerate(candidates.columns):
        for value in range(column.size):
            share = np.arange(column.size) == value
            parts = model.expected(start, place, share.astype(float))
            for cell in range(len(column.member)):
                covered = np.flatnonzero(column.member[cell]).tolist()
                for group in range(2):
                    own = {v: float(chances[place][v, group]) for v in covered}
                    expected = naive.chances_of_hull(own, k, column.numeric, mixture.ALIKE, mixture.NEAR)
                    assert parts[cell, group] == pytest.approx(expected.get(value, 0.0), abs=1e-8)


def test_a_code_beside_a_range_has_what_its_class_says() -> None:
    candidates = CandidateTable.of(
        pd.DataFrame({"pay": ["50-60|N", "N", "50", "60"], "ill": list("xyxy")}), PAY, k=10
    )
    column = candidates["pay"]
    own = np.where(column.is_number, 0.6 / column.is_number.sum(), 0.4)
    start = mixture.Mixture(np.ones(1), (own[:, None], np.full((2, 1), 0.5)))
    parts = mixture.Model(candidates, 1).expected(start, 0, (~column.is_number).astype(float))
    there = mixture.occurrences(10) / 10
    assert parts[column.at[0], 0] == pytest.approx(there + (1 - there - 2 / 10) * 0.4)
    assert parts[column.at[1], 0] == 1


def test_values_are_drawn_with_the_chances_of_the_model() -> None:
    frame = pd.DataFrame({"a": ["{u|v|w}", "u"] * 4000, "x": ["1-4", "2"] * 4000})
    candidates = CandidateTable.of(frame, k=5)
    model = mixture.Model(candidates, 1)
    chances = (np.array([[0.7], [0.2], [0.1]]), np.linspace(1, 2, candidates["x"].size)[:, None])
    drawn = model.draw(
        mixture.Mixture(np.ones(1), (chances[0], chances[1] / chances[1].sum())), np.random.default_rng(0)
    )
    for place, name in enumerate("ax"):
        column = candidates[name]
        cell = column.at[0]
        seen = np.bincount(drawn[name][column.at == cell], minlength=column.size) / 4000
        every = np.eye(column.size)
        expected = [
            model.expected(mixture.Mixture(np.ones(1), chances), place, every[v])[cell, 0]
            for v in range(column.size)
        ]
        np.testing.assert_allclose(seen, expected, atol=0.03)
        assert (drawn[name][column.at != cell] == column.first[1 - cell]).all()


def test_which_values_a_hull_has_for_certain() -> None:
    """Each member of a set, and of a label; of the codes that fit a pattern, or of a hidden cell, only both of two values."""
    tree = af.Hierarchy.from_nested({"Any": {"West": {"a": None, "b": None}, "East": {"c": None}}})
    frame = pd.DataFrame(
        {"zip": ["94107", "94108", "9410*"], "city": ["a", "West", "c"], "job": ["{p|q}", "p", "*"]}
    )
    schema = {
        "zip": {"role": "quasi-identifier", "kind": "positions"},
        "city": {"role": "quasi-identifier", "kind": "hierarchy", "hierarchy": tree},
        "job": {"role": "quasi-identifier", "kind": "categorical"},
    }
    candidates = CandidateTable.of(frame, schema, k=3)
    assert [int(column.present.sum()) for column in candidates.columns] == [0, 2, 4]
    hidden = candidates["job"].present[candidates["job"].at[2]]
    assert hidden.all()
    # where whole rows are suppressed, a hidden cell is no hull: its value is drawn by the class alone
    for cities, hull in ((["{a|b}", "b", "c"], True), (["{a|b}", "b", "*"], False)):
        own = CandidateTable.of(pd.DataFrame({"city": cities, "job": ["p", "q", "*"]}), k=3)
        chances = tuple(np.full((column.size, 1), 0.1) for column in own.columns)
        chances[1][:] = [[0.9], [0.1]]
        start = mixture.Mixture(np.ones(1), chances)
        part = mixture.Model(own, 1).expected(start, 1, np.array([1.0, 0.0]))[own["job"].at[2], 0]
        assert (part < 0.7) if hull else part == pytest.approx(0.9)


def test_the_model_finds_a_relation_that_single_cells_hide() -> None:
    """Half of the cells of b are hidden; where they are not, b is a."""
    rng = np.random.default_rng(0)
    a = rng.choice(["x", "y"], 2000)
    frame = pd.DataFrame(
        {"a": a, "b": np.where(rng.random(2000) < 0.5, "{p|q}", np.where(a == "x", "p", "q"))}
    )
    tables = af.plausible(frame, m=3, seed=1)
    for table in tables:
        assert ((table["a"] == "x") == (table["b"] == "p")).mean() > 0.97


# --- plausible tables -----------------------------------------------------------------------------------


def contradicted(release: pd.DataFrame, table: pd.DataFrame) -> int:
    """Cells of a plausible table that the release does not cover."""
    wrong = 0
    for name in release.columns:
        for text, value in zip(release[name], table[name], strict=True):
            if text == "*":
                continue
            if isinstance(text, str) and text.startswith("{"):
                wrong += str(value) not in text[1:-1].split("|")
            elif isinstance(text, str) and not isinstance(value, str):
                low, _, high = text.partition("-")
                wrong += not float(low) <= value <= float(high or low)
            else:
                wrong += text != value
    return wrong


def test_no_cell_is_contradicted(small: tuple[af.Table, Release]) -> None:
    _, release = small
    for result in (release, release.frame):
        for table in af.plausible(result, m=2, seed=3):
            assert contradicted(release.frame, table) == 0
            assert list(table.columns) == list(release.frame.columns)


def test_nothing_but_the_release_is_looked_at(small: tuple[af.Table, Release]) -> None:
    """The certificate lists originals; a plausible table is the same without it, and with another's row order."""
    _, release = small
    own = af.plausible(release, m=2, seed=3)
    bare = af.plausible(Release(release.frame), m=2, seed=3, k=5)
    for item, two in zip(own, bare, strict=True):
        pd.testing.assert_frame_equal(item, two)
    assert not own[0].equals(own[1])
    assert not own[0].equals(af.plausible(release, m=2, seed=4)[0])


def test_every_table_says_that_it_is_nobody(small: tuple[af.Table, Release], tmp_path: Path) -> None:
    tables = af.plausible(small[1], m=2, seed=3)
    assert all("No row describes a real person" in table.attrs["notice"] for table in tables)
    assert "no real person" in repr(tables)
    assert "mixture of 2 latent classes over 9 columns (Age, " in tables.model
    tables.write(tmp_path / "t.csv")
    tables.write(tmp_path / "t.parquet")
    for back in (pd.read_csv(tmp_path / "t.csv"), pq.read_table(tmp_path / "t.parquet").to_pandas()):
        assert back.columns[0] == NUMBER == "plausible table (no real person)"
        assert back[NUMBER].value_counts().to_dict() == {1: 400, 2: 400}


def test_other_notations_are_read() -> None:
    tree = af.Hierarchy.from_nested({"Any": {"West": {"a": None, "b": None}, "East": {"c": None}}})
    frame = pd.DataFrame(
        {
            "zip": ["94107", "941**", "9*1**", "*"] * 3,
            "city": ["a", "West", "Any", "c"] * 3,
            "day": ["2020-01-01/2020-01-05", "2020-01-03", "*", "2020-01-02"] * 3,
            "score": [1.5, np.nan, 2.0, 2.5] * 3,
            "seen": [True, False, True, True] * 3,
        }
    )
    schema = {
        "zip": {"role": "quasi-identifier", "kind": "positions"},
        "city": {"role": "quasi-identifier", "kind": "hierarchy", "hierarchy": tree},
        "day": {"role": "quasi-identifier", "kind": "numeric"},
        "score": {"role": "insensitive"},
        "seen": {"role": "insensitive"},
    }
    (table,) = af.plausible(frame, m=1, seed=1, schema=schema)
    assert set(table["zip"]) == {"94107"}
    assert set(table["city"]) <= {"a", "b", "c"}
    assert table["day"].between("2020-01-01", "2020-01-05").all()
    pd.testing.assert_series_equal(table["score"], frame["score"])


@pytest.mark.filterwarnings("ignore:condition on")
@loop("declared", [False, True])
def test_a_label_of_a_hierarchy_that_is_not_public_may_be_any_value(declared: bool) -> None:
    """Whoever reads it cannot know which values are below it: what the cells name limits nothing."""
    places = {"Any": {"West": {"a": None, "b": None}, "East": {"c": None, "d": None}}}
    frame = pd.DataFrame({"city": list("aaaaccdd"), "ill": list("uvuvuvuv")})
    column = {"role": "quasi-identifier", "kind": "hierarchy", "hierarchy": {"nested": places}}
    schema = {"city": column | ({"domain": "hierarchy"} if declared else {}), "ill": {"role": "sensitive"}}
    release = af.anonymize(af.Table(frame, schema), "k-member", k=4).release(seed=2**100)
    labels = release.frame["city"]
    assert set(labels) == {"a", "East"}
    leaf = af.count(release, {"city": "a"})
    assert leaf.certain == leaf.uniform == leaf.fitted == 4
    for value in "abcd":
        truth = int((frame["city"] == value).sum())
        counts = af.count(release, {"city": value})
        assert counts.certain <= truth <= counts.possible
    assert af.count(release, {"city": "z"}).possible == (0 if declared else 8)
    share = af.plausible(release, m=2, seed=1).share({"city": "c"})
    assert share["least"].item() <= 0.25 <= share["most"].item()


def test_numbers_that_a_file_has_as_text_are_numbers_and_codes_are_not() -> None:
    frame = pd.DataFrame(
        {
            "age": ["20-30", "25", "40", "31"],
            "pay": ["1.50", "2", "-3.0", None],
            "ward": ["007", "12", "012", "7"],
        }
    )
    schema = {
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "pay": {"role": "insensitive"},
        "ward": {"role": "insensitive"},
    }
    (table,) = af.plausible(frame, m=1, seed=1, schema=schema)
    assert table["pay"].dropna().tolist() == [1.5, 2.0, -3.0]
    assert table["ward"].tolist() == ["007", "12", "012", "7"]
    assert af.count(frame, {"pay": {"from": 1.5}}, schema=schema).certain == 2
    assert af.count(frame, {"ward": "7"}, schema=schema).certain == 1


def test_numbers_with_very_many_ends_are_drawn_within_their_cells() -> None:
    rng = np.random.default_rng(2)
    low = rng.normal(0, 1000, 3000)
    frame = pd.DataFrame({"x": [f"{a:.3f}-{a + 50:.3f}" for a in low.tolist()]})
    (table,) = af.plausible(frame, m=1, seed=1, classes=3)
    assert ((table["x"] >= low - 1e-3) & (table["x"] <= low + 50.001)).all()


@loop(
    ("change", "words"),
    [
        ({"m": 0}, "m must be a whole number of at least 1"),
        ({"m": True}, "m must be a whole number"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"classes": 1.5}, "classes must be a whole number"),
        ({"k": 0}, "k must be a whole number of at least 1"),
        ({"release": 3}, "cannot compute with a int; give a release or a published table"),
    ],
)
def test_plausible_refuses_parameters_outside_their_domain(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        af.plausible(**{"release": pd.DataFrame({"a": ["1-2", "2"]}), "m": 2, **change})


def test_tables_that_say_nothing() -> None:
    with pytest.raises(DataError, match="no rows"):
        af.plausible(pd.DataFrame({"a": pd.Series([], dtype="str")}))
    (table,) = af.plausible(pd.DataFrame({"a": ["*", "*"], "b": ["x", "{x|y}"]}), m=1, seed=1)
    assert table["a"].tolist() == ["*", "*"]


# --- pooling --------------------------------------------------------------------------------------------

NUMBERS = st.lists(st.floats(-50, 50).map(lambda x: round(x, 3)), min_size=2, max_size=6, unique=True)


@given(NUMBERS, st.floats(0.1, 9), st.sampled_from([None, 20, 5000]))
def test_pooling_is_by_the_rules(estimates: list[float], variance: float, rows: int | None) -> None:
    answer = naive.pooled(estimates, [variance] * len(estimates), rows)
    for target, df in (("originals", len(estimates) - 1), ("population", answer["df"])):
        (row,) = af.combine(
            estimates,
            [variance] * len(estimates),
            target=target,
            rows=rows,  # type: ignore[arg-type]
        ).itertuples()
        assert row.estimate == pytest.approx(np.mean(estimates))
        assert row.error**2 == pytest.approx(answer[target], rel=1e-6)
        assert row.missing == pytest.approx(answer["missing"], rel=1e-6)
        reach = stats.t.ppf(0.975, df) * row.error
        assert (row.low, row.high) == pytest.approx((row.estimate - reach, row.estimate + reach), rel=1e-6)
        assert row.note == ("mostly assumption" if row.missing > 0.5 else "")


def test_groups_are_pooled_from_the_tables_that_have_them() -> None:
    """With the degrees of freedom of each group, and without a sampling error of 0 where one row cannot tell it."""
    first = (
        {"a": 2.0, "b": 5.0, "c": 1.0},
        {"a": 1.0, "b": np.nan, "c": np.nan},
        {"a": 4.0, "b": 0.0, "c": 0.0},
    )
    second = {"a": 3.0, "b": np.nan, "c": np.nan}, {"a": 1.0, "b": np.nan, "c": np.nan}, first[2]
    third = {"a": 4.0, "b": 7.0, "c": np.nan}, {"a": 1.0, "b": 2.0, "c": np.nan}, first[2]
    pooled = af.combine([first, second, third], target="population")
    assert pooled["estimate"].tolist() == [3.0, 6.0, 1.0]
    assert pooled["note"].tolist()[1:] == ["mostly assumption"] * 2
    expected = naive.pooled([2.0, 3.0, 4.0], [1.0] * 3, 4.0)
    assert pooled.loc["a", "error"] ** 2 == pytest.approx(expected["population"])
    reach = stats.t.ppf(0.975, expected["df"]) * pooled.loc["a", "error"]
    assert pooled.loc["a", "high"] == pytest.approx(3.0 + reach)
    assert pooled.loc["b", "error"] ** 2 == pytest.approx(2.0 + 1.5 * 2.0)
    assert pooled.loc["c", ["error", "low", "high"]].isna().all()
    tables = af.plausible(
        pd.DataFrame({"g": ["{x|y}", "x", "y", "x", "x"], "n": [1.0, 2, 3, 4, 6]}), m=6, seed=1
    )
    alone = tables.group_means("n", by="g", target="population").loc["y"]
    assert np.isnan(alone["error"]) or alone["error"] > 0
    with pytest.raises(ParameterError, match="rows, less parameters, must be more than 0"):
        af.combine([1.0, 2.0], rows=0)


def test_what_does_not_differ_between_tables_is_known() -> None:
    (row,) = af.combine([0.1] * 3, [0.25] * 3).itertuples()  # the mean of the three is not 0.1
    assert (row.estimate, row.error, row.missing) == (0.1, 0, 0)
    (row,) = af.combine([2.0, 2.0, 2.0], [0.25] * 3).itertuples()
    assert (row.error, row.low, row.high, row.missing) == (0, 2, 2, 0)
    (row,) = af.combine([2.0, 2.0, 2.0], [0.25] * 3, target="population").itertuples()
    assert (row.error, row.missing) == (0.5, 0)
    assert np.isnan(af.combine([1.0, 2.0])["missing"]).all()


@loop(
    ("arguments", "words"),
    [
        (([1.0],), "at least two plausible tables"),
        (([1.0, 2.0], [1.0]), "a variance for each estimate"),
        (([{"a": 1}, {"b": 1}],), "have different names"),
        ((["x", "y"],), "an estimate is a number"),
    ],
)
def test_what_cannot_be_pooled(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        af.combine(*arguments)
    with pytest.raises(ParameterError, match="one of originals, population"):
        af.combine([1.0, 2.0], target="everybody")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="needs the variance"):
        af.combine([1.0, 2.0], target="population")


# --- analyses -------------------------------------------------------------------------------------------


def test_analyses_of_exact_columns_are_those_of_the_originals(small: tuple[af.Table, Release]) -> None:
    table, release = small
    tables = af.plausible(release, m=3, seed=3)
    (row,) = tables.share({"Salary-class": "10K to 20K"}).itertuples()
    assert row.estimate == (table.frame["Salary-class"] == "10K to 20K").mean()
    assert row.error == 0
    (row,) = tables.share(lambda item: (item["Age"] > 0).to_numpy(), target="population").itertuples()
    assert row.estimate == 1


def test_analyses_are_near_the_truth(small: tuple[af.Table, Release]) -> None:
    table, release = small
    tables = af.plausible(release, m=5, seed=3)
    frame = table.frame
    assert tables.mean("Age")["estimate"][0] == pytest.approx(frame["Age"].mean(), abs=1.5)
    assert tables.quantiles("Age", [0.5]).loc["quantile 0.5", "estimate"] == pytest.approx(
        frame["Age"].median(), abs=3
    )
    shares = tables.crosstab("Gender", "Marital")
    truth = frame.groupby(["Gender", "Marital"]).size() / len(frame)
    assert shares["estimate"].sum() == pytest.approx(1)
    assert (shares["estimate"] - truth.reindex(shares.index).fillna(0)).abs().max() < 0.05
    means = tables.group_means("Age", by="Gender")["estimate"]
    np.testing.assert_allclose(means, frame.groupby("Gender")["Age"].mean().reindex(means.index), atol=2.5)


def test_words_for_columns_that_are_not_there(small: tuple[af.Table, Release]) -> None:
    tables = af.plausible(small[1], m=2, seed=3)
    for call, words in (
        (lambda: tables.mean("Agee"), "no column 'Agee' (did you mean 'Age'?)"),
        (lambda: tables.mean("Gender"), "has no numbers; take shares"),
        (lambda: tables.quantiles("Age", [1.5]), "numbers between 0 and 1"),
        (lambda: tables.crosstab("Gender", "x"), "no column 'x'"),
        (lambda: tables.share(lambda item: 3), "True or False for each row"),
    ):
        with pytest.raises(ParameterError) as error:
            call()
        assert words in str(error.value)


def test_bits_do_not_depend_on_the_matrix_library(small: tuple[af.Table, Release]) -> None:
    """Products of many numbers are sparse ones, which run on one thread."""
    model = mixture.Model(CandidateTable.of(small[1]), 3)
    assert all(sparse.issparse(hull.entries) and sparse.issparse(hull.common) for hull in model._hulls)


@pytest.mark.slow
def test_a_pooled_logistic_regression_is_that_of_the_model_behind_the_people() -> None:
    """People whose coefficients are known: half of their groups are hidden in sets, their ages in ranges."""
    api = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(5)
    n = 1_500
    age, group = rng.integers(20, 60, n), rng.choice(["a", "b"], n)
    chance = 1 / (1 + np.exp(-(-4.0 + 0.1 * age + 1.0 * (group == "b"))))
    frame = pd.DataFrame({"age": age, "group": group, "ill": np.where(rng.random(n) < chance, "yes", "no")})
    low = age - rng.integers(0, 3, n)
    release = frame.assign(
        age=[f"{a}-{b}" for a, b in zip(low.tolist(), (low + 2).tolist(), strict=True)],
        group=np.where(rng.random(n) < 0.3, "{a|b}", group),
    )
    tables = af.plausible(release, m=10, seed=1, classes=6)
    pooled = tables.regress("ill ~ age + group", target="population")
    term = next(name for name in pooled.index if name.startswith("group="))
    sign = 1.0 if term == "group=b" else -1.0
    assert abs(pooled.loc["age", "estimate"] - 0.1) < 3 * pooled.loc["age", "error"]
    assert abs(pooled.loc[term, "estimate"] - sign) < 3 * pooled.loc[term, "error"]
    assert pooled.loc["age", "error"] < 0.012
    # by hand: statsmodels' own fits of the tables, and Rubin's rules
    fits = []
    for table in tables:
        dummy = (table["group"] == term[-1]).astype(float)
        outcome = (table["ill"] == "yes").astype(float)
        matrix = api.add_constant(np.column_stack([table["age"], dummy]))
        fits.append(api.Logit(outcome.to_numpy(), matrix).fit(disp=0))
    np.testing.assert_allclose(pooled["estimate"], np.mean([fit.params for fit in fits], axis=0), rtol=1e-5)
    for at in range(3):
        rules = naive.pooled(
            [fit.params[at] for fit in fits], [fit.bse[at] ** 2 for fit in fits], float(n - 3)
        )
        assert pooled["error"].iloc[at] ** 2 == pytest.approx(rules["population"], rel=1e-4)
        assert pooled["missing"].iloc[at] == pytest.approx(rules["missing"], rel=1e-3)
    handed = af.combine(fits, target="population")
    np.testing.assert_allclose(handed["estimate"], pooled["estimate"], rtol=1e-5)
    np.testing.assert_allclose(handed["high"], pooled["high"], rtol=1e-4)
    # the originals' own answer is nearer than the population's
    own = tables.regress("ill ~ age + group")
    truth = api.Logit(
        (frame["ill"] == "yes").astype(float).to_numpy(),
        api.add_constant(np.column_stack([frame["age"], frame["group"] == term[-1]]).astype(float)),
    ).fit(disp=0)
    assert (own["error"] < pooled["error"]).all()
    assert (np.abs(own["estimate"] - truth.params) < 4 * own["error"] + 1e-9).all()


# --- weights of a survey --------------------------------------------------------------------------------

WEIGHTED = st.lists(
    st.tuples(st.integers(-9, 9), st.sampled_from("ab"), st.integers(1, 40).map(lambda w: w / 8)),
    min_size=3,
    max_size=12,
)


@examples(40)
@given(WEIGHTED)
def test_weighted_estimates_are_those_of_their_definition(rows: Any) -> None:
    table = pd.DataFrame(rows, columns=["x", "g", "w"]).assign(x=lambda frame: frame["x"].astype(float))
    numbers, groups, weights = (list(each) for each in zip(*rows, strict=True))
    value, variance, df = models.mean(table, "x", "w")
    assert (value, variance) == pytest.approx(naive.weighted_mean(numbers, weights))
    assert df == len(rows) - 1
    assert models.mean(table, "x", weights)[:2] == pytest.approx((value, variance))
    where = {"x": (0, 5)}
    met = [float(0 <= number <= 5) for number in numbers]
    assert models.share(table, where, "w")[:2] == pytest.approx(naive.weighted_mean(met, weights))
    ends = [0.1, 0.5, 0.8]
    expected = [naive.weighted_quantile(numbers, weights, at) for at in ends]
    assert models.quantiles(table, "x", ends, "w")[0].tolist() == expected
    cells, spread, _ = models.crosstab(table, "g", "g", {"g": ["a", "b"]}, "w")
    for group in "ab":
        mine = [float(own == group) for own in groups]
        assert (cells[group, group], spread[group, group]) == pytest.approx(
            naive.weighted_mean(mine, weights)
        )
    means, spread, _ = models.group_means(table, "x", "g", ["a", "b"], "w")
    for group in "ab":
        mine = [(y, w) for y, own, w in rows if own == group]
        if len(mine) > 1:
            assert (means[group], spread[group]) == pytest.approx(
                naive.weighted_mean(*zip(*mine, strict=True))
            )
        else:
            assert np.isnan(spread[group])


@examples(20)
@given(WEIGHTED)
def test_equal_weights_change_nothing(rows: Any) -> None:
    table = pd.DataFrame(rows, columns=["x", "g", "w"]).assign(x=lambda frame: frame["x"].astype(float))
    same = [2.5] * len(rows)
    for estimate in (
        lambda *weights: models.mean(table, "x", *weights),
        lambda *weights: models.share(table, {"g": "a"}, *weights),
        lambda *weights: models.crosstab(table, "g", "g", {"g": ["a", "b"]}, *weights),
        lambda *weights: models.group_means(table, "x", "g", ["a", "b"], *weights),
    ):
        for plain, weighted in zip(estimate(), estimate(same), strict=True):
            np.testing.assert_allclose(np.asarray(plain), np.asarray(weighted), rtol=1e-9, atol=1e-12)


@loop("kind", ["linear", "logistic"])
def test_a_weighted_regression_is_that_of_its_definition(kind: str) -> None:
    rng = np.random.default_rng(4)
    n = 160
    table = pd.DataFrame(
        {"x": rng.normal(0, 3, n).round(2), "g": rng.choice(["a", "b", "c"], n), "w": rng.integers(1, 30, n)}
    )
    line = 0.4 * table["x"] + (table["g"] == "b")
    table["y"] = (
        line + rng.normal(0, 1, n)
        if kind == "linear"
        else np.where(rng.random(n) < 1 / (1 + np.exp(-line)), "u", "t")
    )
    design = models.Design.of("y ~ x + g + x:g", [table])
    value, variance, df = design.fit(table, "w")
    assert design.kind == kind
    assert df == n - 6
    first, *others = design.known["g"]
    matrix = [
        [1.0, x, *(float(g == other) for other in others), *(x * (g == other) for other in others)]
        for x, g in zip(table["x"], table["g"], strict=True)
    ]
    outcome = table["y"] if kind == "linear" else (table["y"] == "u").astype(float)
    beta, spread = naive.weighted_regression(
        matrix, outcome.tolist(), table["w"].tolist(), kind == "logistic"
    )
    assert value.index[2:4].tolist() == [f"g={other}" for other in others]
    np.testing.assert_allclose(value, beta, rtol=1e-6)
    np.testing.assert_allclose(variance, spread, rtol=1e-5)
    assert first not in others


@examples(40)
@given(
    st.lists(
        st.tuples(coded_cells(NARROW), st.sets(st.sampled_from("ab"), min_size=1), st.integers(1, 5)),
        min_size=1,
        max_size=4,
    )
)
def test_weighted_bounds_are_those_of_all_tables_that_cells_allow(rows: Any) -> None:
    frame = pd.DataFrame(
        {
            "pay": [coded(cell) for cell, _, _ in rows],
            "g": ["{a|b}" if len(group) > 1 else next(iter(group)) for _, group, _ in rows],
        }
    )
    schema = {**PAY, "g": {"role": "quasi-identifier", "kind": "categorical"}}
    candidates = CandidateTable.of(frame, schema)
    if candidates["pay"].low is None:
        return
    weights = np.array([weight for _, _, weight in rows], float)
    cells = [
        {str(v) for v in (*(range(run[0], run[1] + 1) if run is not None else ()), *codes)}
        for (run, codes), _, _ in rows
    ]
    every = naive.completions(
        [{"pay": cell, "g": group} for cell, (_, group, _) in zip(cells, rows, strict=True)]
    )

    def of(each: Any, keep: Any) -> tuple[list[float], list[float]]:
        pairs = [
            (float(row["pay"]), weight)
            for row, weight in zip(each, weights, strict=True)
            if row["pay"] not in ("N", "") and keep(row)
        ]
        return [number for number, _ in pairs], [weight for _, weight in pairs]

    def ends(bounds: Any) -> tuple[float, float]:
        return float(bounds[0][0]), float(bounds[1][0])

    pairs = [pair for each in every if (pair := of(each, lambda row: True))[0]]
    means = [float(np.average(*pair[:1], weights=pair[1])) for pair in pairs]
    assert ends(certain.mean_bounds(candidates, "pay", weights)) == pytest.approx((min(means), max(means)))
    for at in (0.25, 0.6):
        quantiles = [naive.weighted_quantile(*pair, at) for pair in pairs]
        bounds = ends(certain.quantile_bounds(candidates, "pay", [at], weights))
        assert bounds == (min(quantiles), max(quantiles))
    mine = [pair for each in every if (pair := of(each, lambda row: row["g"] == "a"))[0]]
    if mine:
        means = [float(np.average(pair[0], weights=pair[1])) for pair in mine]
        bounds = ends(certain.group_mean_bounds(candidates, "pay", "g", ["a"], weights))
        assert bounds == pytest.approx((min(means), max(means)))
    shares = [float(weights @ [row["g"] == "a" for row in each] / weights.sum()) for each in every]
    assert ends(certain.share_bounds(candidates, {"g": "a"}, weights)) == pytest.approx(
        (min(shares), max(shares))
    )


def test_estimates_of_a_release_take_its_weights() -> None:
    frame = af.datasets.census_like(400, seed=1).assign(
        weight=lambda own: np.where(own["Gender"] == "Female", 12.0, 30.0)
    )
    schema = {**af.datasets.schema("census_like"), "weight": {"role": "weight"}}
    release = af.anonymize(af.Table(frame, schema), "greedy", k=5, partition_size=100, seed=SEED).release(
        seed=SEED
    )
    tables = af.plausible(release, m=4, seed=1)
    weights = release.frame["weight"].to_numpy(float)
    results = {
        "mean": tables.mean("Age", weights="weight"),
        "quantiles": tables.quantiles("Age", weights="weight"),
        "share": tables.share({"Marital": "Widowed"}, weights="weight"),
        "crosstab": tables.crosstab("Marital", "Gender", weights="weight"),
        "group_means": tables.group_means("Age", by="Marital", weights="weight"),
        "regress": tables.regress("Age ~ Education", weights="weight"),
    }
    truth = np.average(frame["Age"], weights=frame["weight"])
    assert results["mean"]["estimate"].item() == pytest.approx(truth, abs=1.5)
    assert results["mean"]["least"].item() <= truth <= results["mean"]["most"].item()
    for name, result in results.items():
        if name != "regress":
            slack = 1e-9
            assert (result["least"] <= result["low"] + slack).all(), name
            assert (result["high"] <= result["most"] + slack).all(), name
    pd.testing.assert_frame_equal(results["mean"], tables.mean("Age", weights=weights))
    assert results["crosstab"]["estimate"].sum() == pytest.approx(1)
    assert not np.isclose(results["mean"]["estimate"], tables.mean("Age")["estimate"]).all()


@loop(
    ("weights", "words"),
    [
        ("w", "no column 'w'"),
        ("g", "a column of numbers, or a number for each row"),
        ([1.0], "a number for each row"),
        ([1.0, -1.0], "must be numbers of at least 0"),
        ([1.0, np.nan], "must be numbers of at least 0"),
        ([0, 0], "one above 0"),
    ],
)
def test_weights_that_are_none(weights: Any, words: str) -> None:
    table = pd.DataFrame({"x": [1.0, 2.0], "g": ["a", "b"]})
    with pytest.raises(ParameterError, match=words):
        models.mean(table, "x", weights)


def test_a_regression_of_many_categories_multiplies_their_numbers_and_not_their_columns() -> None:
    """Each row has a constant, and one value of each category: so many entries, and not a column for each value."""
    rng = np.random.default_rng(3)
    values = [f"v{at:02}" for at in range(80)]
    table = pd.DataFrame(
        {"a": rng.choice(values, 4000), "b": rng.choice(values, 4000), "y": rng.normal(0, 1, 4000)}
    )
    design = models.Design.of("y ~ a + b", [table])
    _, matrix, names = design.matrix(table)
    assert len(names) == 159
    assert matrix.nnz <= 3 * len(table)
    dense = matrix.toarray()
    direct = np.linalg.lstsq(dense, table["y"].to_numpy(), rcond=None)[0]
    np.testing.assert_allclose(design.fit(table)[0], direct, rtol=1e-6, atol=1e-9)


def test_an_outcome_that_is_certain_has_wide_intervals_and_no_error() -> None:
    table = pd.DataFrame(
        {"x": [1.0, 2, 3, 4, 5, 6], "g": ["a", "a", "a", "b", "b", "b"], "y": list("nnyyyy")}
    )
    value, variance, _ = models.Design.of("y ~ g", [table]).fit(table)
    assert np.isfinite(value).all()
    assert variance["g=b"] > value["g=b"] ** 2


def test_a_value_that_some_tables_lack_has_its_coefficient_from_the_others() -> None:
    frame = pd.DataFrame({"g": ["{b|c}", *["a", "b"] * 6], "y": [3.0, *[1.0, 2.0, 1.5, 2.5] * 3]})
    tables = af.plausible(frame, m=8, seed=1, k=2)
    having = [table for table in tables if (table["g"] == "c").any()]
    assert 1 < len(having) < 8
    pooled = tables.regress("y ~ g")
    assert pooled.loc["g=c", "note"] == "mostly assumption"
    first = models.Design.of("y ~ g", tables.tables).fit(having[0])[0]
    assert np.isfinite(first).all()
    assert pooled.loc["g=c", "estimate"] == pytest.approx(first["g=c"], abs=0.5)
    with pytest.raises(ParameterError, match="contain the same information"):
        models.Design.of("y ~ g + h", [frame.assign(h=frame["g"])]).fit(frame.assign(h=frame["g"]))


def test_intervals_of_cross_tables_cover_nine_cells_of_ten(small: tuple[af.Table, Release]) -> None:
    inside = bench_crosstabs.covered(bench_crosstabs.cells(*small))
    assert len(inside) > 100
    assert inside.mean() >= 0.9


@pytest.mark.slow
@loop(("method", "k"), [("greedy", 5), ("two-phase", 10), ("mondrian", 5)])
def test_so_do_those_of_other_releases(method: str, k: int) -> None:
    originals = af.datasets.census_like(600, seed=8), af.datasets.schema("census_like")
    inside = bench_crosstabs.covered(bench_crosstabs.cells(*bench_crosstabs.released(*originals, method, k)))
    assert len(inside) > 100
    assert inside.mean() >= 0.9
