"""Lower bounds against their definitions: below every optimum, and the (k,1)-optimum where that is affordable."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow import cli
from anonflow.algorithms.anonymize import Anonymization
from anonflow.algorithms.freeform.optimal import optimal
from anonflow.algorithms.method import Partition
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.generalization import Generalization
from anonflow.loss import MONOTONE, record_costs
from anonflow.table import Table
from anonflow.utility import bounds
from tests.cases import costs as cost_cases
from tests.cases.bounds import naive_cost, random_records
from tests.cases.flow_files import REPORTED, write_flow
from tests.cases.plain_kernels import plainly
from tests.naive import bounds as naive
from tests.strategies import examples, loop, seeded, tables

NEAR = {"abs": 1e-10}


@seeded(40, 10)
@loop("measure", MONOTONE)
def test_each_bound_is_what_it_says(measure: str, seeds: range) -> None:
    for seed in seeds:
        n = 3 + seed % 5
        records = random_records(seed, n)
        cost = naive_cost(records, measure)
        for k in (2, 3, n):
            least = [naive.cover_bound(cost, n, i, k) for i in range(n)]
            assert bounds.pair_costs(records, k, measure) == pytest.approx(
                [naive.pair_bound(cost, n, i, k) for i in range(n)], **NEAR
            )
            covered, exact = bounds.cover_costs(records, k, measure)
            assert exact.all()
            assert covered == pytest.approx(least, **NEAR)
            assert (bounds.relaxed_costs(records, k, measure) <= np.array(least) + 1e-10).all()
            assert bounds.record_bounds(records, k, measure) == pytest.approx(least, **NEAR)


@loop("measure", MONOTONE)
def test_hierarchies_and_suppression_are_exact_without_a_search(measure: str) -> None:
    for seed in range(60):
        n = 3 + seed % 5
        records = random_records(seed, n, ("hierarchy", "suppression"))
        cost = naive_cost(records, measure)
        for k in (2, 3):
            least = [naive.cover_bound(cost, n, i, k) for i in range(n)]
            assert bounds.relaxed_costs(records, k, measure) == pytest.approx(least, **NEAR)


@seeded(30, 8)
@loop("measure", MONOTONE)
def test_a_search_that_is_cut_short_still_bounds(measure: str, seeds: range) -> None:
    for seed in seeds:
        records = random_records(seed, 12)
        whole, _ = bounds.cover_costs(records, 4, measure)
        pairs = bounds.pair_costs(records, 4, measure)
        for joins in (0, 3, 10, 30):
            cut, exact = bounds.cover_costs(records, 4, measure, joins)
            assert (pairs - 1e-12 <= cut).all()
            assert (cut <= whole).all()
            assert (cut[exact] == whole[exact]).all()


@examples(30)
@given(tables(min_n=2, max_n=9), st.data(), st.sampled_from(MONOTONE))
def test_plain_and_compiled_agree(table: Table, data: st.DataObject, measure: str) -> None:
    k = data.draw(st.integers(2, table.n))
    records = table.records
    for item in (bounds.relaxed_costs, bounds.pair_costs):
        assert (item(records, k, measure) == plainly(item, records, k, measure)).all()
    for joins in (5, 10_000):
        compiled = bounds.cover_costs(records, k, measure, joins)
        plain = plainly(bounds.cover_costs, records, k, measure, joins)
        assert (compiled[0] == plain[0]).all()
        assert (compiled[1] == plain[1]).all()


@seeded(40, 10)
@loop("measure", MONOTONE)
def test_never_above_an_optimum_found_by_trying_everything(measure: str, seeds: range) -> None:
    for seed in seeds:
        n = 4 + seed % 2
        records = random_records(100 + seed, n)
        cost = naive_cost(records, measure)
        for k in (2, 3):
            assert bounds.record_bounds(records, k, measure).sum() <= naive.least_regular(cost, n, k) + 1e-10


@examples(60)
@given(tables(min_n=3, max_n=8), st.data(), st.sampled_from(MONOTONE))
def test_never_above_the_optimal_method(table: Table, data: st.DataObject, measure: str) -> None:
    k = data.draw(st.integers(2, table.n))
    best = optimal(Partition(table.records, measure, np.random.default_rng(0)), k)
    least = record_costs(best.generalization, measure).mean()
    bound = bounds.lower_bound(table.records, k, measure)
    assert bound is not None
    assert 0 <= bound <= least + 1e-12
    smaller = bounds.record_bounds(table.records, max(2, k - 1), measure)
    assert (smaller <= bounds.record_bounds(table.records, k, measure) + 1e-12).all(), "monotone in k"


@pytest.mark.parametrize("algorithm", ["greedy", "hungarian", "nh", "mondrian", "k-member", "min-cost-flow"])
@loop("measure", MONOTONE)
def test_no_method_is_below(algorithm: str, measure: str) -> None:
    frame = af.datasets.census_like(60, seed=4)
    table = af.Table(frame, af.datasets.schema("census_like"))
    anon = af.anonymize(table, algorithm, k=4, loss=measure)
    bound = anon.lower_bound()
    assert bound is not None
    assert 0 <= bound <= anon.loss(measure)
    assert bound > 0 or measure == "suppressions"  # no whole domain has to be hidden there


def test_equal_records_cost_nothing() -> None:
    table = Table(
        pd.DataFrame({"a": [1, 1, 1, 5, 5, 5, 9, 9, 9], "b": list("xxxyyyzzz")}),
        {
            "a": {"role": "quasi-identifier", "kind": "numeric"},
            "b": {"role": "quasi-identifier", "kind": "categorical"},
        },
    )
    assert bounds.lower_bound(table.records, 3) == 0
    assert (bounds.pair_costs(table.records, 3) == 0).all()
    four = bounds.record_bounds(table.records, 4)
    # the nearest other value is half the width away, and a second category of three
    assert four == pytest.approx([0.5] * 9)


def test_a_missing_number_costs_its_whole_domain_and_is_covered_by_nothing_else() -> None:
    frame = pd.DataFrame({"a": pd.array([0.0, 1.0, 10.0, None], dtype="float64")})
    table = Table(frame, {"a": {"role": "quasi-identifier", "kind": "numeric", "missing": "suppress"}})
    assert bounds.record_bounds(table.records, 2) == pytest.approx([0.1, 0.1, 0.9, 1.0])


def test_entropy_has_no_bound() -> None:
    table = Table(
        pd.DataFrame({"a": list("xxyyz")}), {"a": {"role": "quasi-identifier", "kind": "categorical"}}
    )
    assert bounds.lower_bound(table.records, 2, "em") is None
    with pytest.raises(ParameterError, match="entropy"):
        bounds.record_bounds(table.records, 2, "entropy")
    with pytest.raises(ParameterError, match="entropy"):
        af.measure(table, af.anonymize(table, "greedy", k=2), {"lower-bound": {"loss": "entropy"}})
    anon = af.anonymize(table, "greedy", k=2, loss="entropy")
    assert anon.lower_bound() is None
    assert "below" not in anon.summary()
    assert anon.lower_bound("gcp") is not None


def test_bounds_refuse_parameters_outside_their_domain() -> None:
    table = Table(
        pd.DataFrame({"a": list("xyz")}), {"a": {"role": "quasi-identifier", "kind": "categorical"}}
    )
    with pytest.raises(InfeasibleError, match="lower k"):
        bounds.lower_bound(table.records, 4)
    with pytest.raises(ParameterError, match="effort"):
        bounds.record_bounds(table.records, 2, effort=-1)
    with pytest.raises(ParameterError, match="unknown information loss"):
        bounds.lower_bound(table.records, 2, "nc")
    with pytest.raises(ParameterError, match="needs k"):
        af.measure(table, Generalization.of(table.records), "lower-bound")


def test_too_much_work_falls_back_on_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    records = random_records(7, 12)
    table = cost_cases.table(
        np.random.default_rng(1), 12, ["hierarchy", "categorical", "numeric", "suppression"], [6, 4, 9, 3]
    )
    for item in (records, table):
        full = bounds.record_bounds(item, 4)
        monkeypatch.setattr(bounds, "PAIRS", 0)
        relaxed = bounds.record_bounds(item, 4)
        for most in (200, 60, 20, 0):
            monkeypatch.setattr(bounds, "COMBINATIONS", most)
            less = bounds.record_bounds(item, 4)
            assert (less >= 0).all()
            assert (less <= relaxed).all()
            assert (relaxed <= full + 1e-12).all()
        monkeypatch.undo()


def test_more_effort_leaves_no_qi_out(monkeypatch: pytest.MonkeyPatch) -> None:
    records = random_records(7, 12)
    exact = bounds.relaxed_costs(records, 4)
    monkeypatch.setattr(bounds, "PAIRS", 0)
    monkeypatch.setattr(bounds, "COMBINATIONS", 12)
    assert (bounds.record_bounds(records, 4) < exact).any()
    assert (bounds.record_bounds(records, 4, effort=0) < exact).any()  # never fewer than usual
    assert (bounds.record_bounds(records, 4, effort=1_000) >= exact).all()


def test_a_result_shows_its_bound_once_it_is_computed() -> None:
    frame = af.datasets.census_like(150, seed=1)
    table = af.Table(frame, af.datasets.schema("census_like"))
    anon = af.anonymize(table, "greedy", k=3)
    assert "below" not in repr(anon)
    bound = anon.lower_bound("gcp")
    assert bound is not None
    assert anon.lower_bound() == bound == bounds.lower_bound(table.records, 3, regular=True)
    text = (
        f"GCP {anon.loss('gcp'):.4f}, no k-regular or k-anonymous release can be below {int(bound * 1e4) / 1e4:.4f}, "
        f"so it is at most {np.ceil(100 * (anon.loss('gcp') / bound - 1)):.0f}% above the least"
    )
    assert anon.summary() == text
    assert text in repr(anon)
    excess = anon.loss("gcp") / bound - 1
    assert af.measure(table, anon, "lower-bound") == {"lower-bound": bound, "lower-bound-excess": excess}
    pairs = anon.lower_bound("gcp", effort=0)
    assert pairs is not None
    assert pairs <= bound
    runs = af.compare(table, ["greedy", "mondrian"], k=[3, 5], bounds=True, seed=1)
    assert (runs["lower-bound"] > 0).all()
    assert (runs["lower-bound"] <= runs["gcp"]).all()
    assert runs["lower-bound"].iloc[0] == bound == runs["lower-bound"].iloc[2]
    assert runs["lower-bound-excess"].tolist() == (runs["gcp"] / runs["lower-bound"] - 1).tolist()
    assert "lower-bound" not in af.compare(table, ["greedy"], k=3)


def test_no_bound_where_a_record_covers_fewer_than_k() -> None:
    table = Table(
        pd.DataFrame({"a": list("xxyyz")}), {"a": {"role": "quasi-identifier", "kind": "categorical"}}
    )
    anon = af.anonymize(table, "greedy", k=2)
    anon.algorithm = SimpleNamespace(guarantee="k-concealment", name="k-concealment")  # type: ignore[assignment]
    assert anon.is_bounded
    assert anon.lower_bound() is not None
    bare = Anonymization(
        table,
        anon.algorithm,
        2,
        Generalization.of(table.records),
        matches=None,
        classes=None,
        suppressed=np.zeros(5, bool),
        facts={},
        parameters={"loss": "ncp"},
    )
    assert not bare.is_bounded
    assert bare.lower_bound() is None


def said_below(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[list[float], list[str]]:
    """The columns "no release below" and "above the least" of what a command prints."""
    with pytest.raises(SystemExit) as caught:
        cli.main([str(argument) for argument in arguments])
    out = capsys.readouterr().out
    assert caught.value.code in (0, None)
    header, *lines = out.splitlines()
    columns = {}
    for title in ("no release below", "above the least"):
        stop = header.index(title) + len(title)
        columns[title] = [line[stop - len(title) : stop].strip() for line in lines]
    below = [float(cell) for cell in columns["no release below"] if re.fullmatch(r"0\.\d{4}", cell)]
    return below, [cell for cell in columns["above the least"] if re.fullmatch(r"at most \d+%", cell)]


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
def test_flows_and_the_shell_say_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow = write_flow(tmp_path, steps="  - measure: [gcp, lower-bound]\n", publish=REPORTED)
    report = af.run(flow)
    row = report.runs.iloc[0]
    assert 0 < row["lower-bound"] <= row["gcp"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert f"{int(row['lower-bound'] * 1e4) / 1e4:.4f}" not in page  # it counts on the originals
    table = report.results[0].anonymization
    assert table is not None
    assert table.lower_bound("gcp") == row["lower-bound"]
    below, above = said_below(capsys, "run", flow, "--again")
    assert below == [int(row["lower-bound"] * 1e4) / 1e4]
    assert row["lower-bound-excess"] == pytest.approx(row["gcp"] / row["lower-bound"] - 1)
    assert above == [f"at most {np.ceil(100 * row['lower-bound-excess']):.0f}%"]
    html = tmp_path / "compared.html"
    below, above = said_below(
        capsys, "compare", tmp_path / "people.csv", "--schema", flow, "--k", "3,5", "--bounds",
        "--algorithms", "greedy,mondrian", "--partition-size", 20, "--html", html,
    )  # fmt: skip
    assert len(above) == 4
    assert re.findall(r"at most \d+%", html.read_text(encoding="utf-8")) == above
    assert len(below) == 4
    assert below[0] == below[2] == int(row["lower-bound"] * 1e4) / 1e4
    assert below[1] == below[3] > below[0]


@pytest.mark.slow
def test_the_bounds_of_paper_2_on_random_normal() -> None:
    frame = af.datasets.random_normal(100_000, 10, sd=1.0, seed=0)
    qi = {"role": "quasi-identifier", "kind": "suppression"}
    table = af.Table(frame, dict.fromkeys(frame.columns, qi))
    # sketches of the same relaxation on this table gave 0.154 and 0.252
    assert bounds.lower_bound(table.records, 3) == pytest.approx(0.154, abs=0.001)
    assert bounds.lower_bound(table.records, 10) == pytest.approx(0.252, abs=0.001)
