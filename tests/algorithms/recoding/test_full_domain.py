"""Full-domain generalization and local recoding: against every node of small lattices, and their bad input."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.algorithms.method import Partition
from anonflow.algorithms.recoding.full_domain import search
from anonflow.algorithms.recoding.lattice import Lattice, column_levels
from anonflow.errors import InfeasibleError, ParameterError
from tests.cases.city_lattice import ROWS, reference
from tests.cases.plain_kernels import plainly
from tests.strategies import CITIES, TREE, city_tree, loop, tables

LEVELLED = ("numeric", "hierarchy", "suppression", "positions", "coded")


def people(cities: list[str], ages: list[int], codes: list[str]) -> af.Table:
    qi = {"role": "quasi-identifier"}
    schema = {
        "city": {**qi, "kind": "hierarchy", "hierarchy": city_tree()},
        "age": {**qi, "kind": "numeric"},
        "code": {**qi, "kind": "positions"},
    }
    return af.Table(pd.DataFrame({"city": cities, "age": ages, "code": codes}), schema)


@given(ROWS, st.integers(2, 4), st.sampled_from([0.0, 0.1, 0.3, 1.0]))
def test_no_node_of_the_lattice_loses_less(rows: list[tuple[str, int, str]], k: int, limit: float) -> None:
    # all cities of the tree belong to the domain: costs count leaves
    table = people(*(list(column) for column in zip(*rows, strict=True)))
    anon = af.anonymize(table, "full-domain", k=k, limit=limit, loss="lm", widths={"age": [2, 4]})
    best = reference(rows, k, limit, ["x"] * len(rows))
    assert best is not None
    # beside suppressed records intervals are narrowed in the end
    assert anon.loss("lm") * len(rows) <= best[0] + 1e-9
    assert anon.suppressed.any() or anon.loss("lm") * len(rows) == pytest.approx(best[0], abs=1e-9)
    assert anon.facts["optimal"]
    assert anon.facts["gap"] == 0
    assert anon.facts["checked"] + anon.facts["pruned"] == anon.facts["nodes"]
    assert af.verify(table, anon, ["covers", "k-anonymity"], k=k)


@pytest.mark.parametrize("method", ["full-domain", "local-recoding"])
@given(
    tables(min_n=3, max_n=8, kinds=LEVELLED, max_columns=3),
    st.data(),
)
def test_every_kind_of_column_and_every_loss(method: str, table: af.Table, data: st.DataObject) -> None:
    loss = data.draw(st.sampled_from(["ncp", "lm", "entropy", "height", "suppressions"]))
    k = data.draw(st.integers(2, 3))
    options = {} if method == "local-recoding" else {"limit": data.draw(st.sampled_from([0.0, 0.4]))}
    anon = af.anonymize(table, method, k=k, loss=loss, **options)
    assert af.verify(table, anon, ["covers", "k-anonymity"], k=k)
    assert anon.partitions[0].size == table.n


@given(tables(min_n=4, max_n=12, kinds=("numeric", "hierarchy", "suppression")))
def test_each_column_has_one_level(table: af.Table) -> None:
    anon = af.anonymize(table, "full-domain", k=2, limit=0.5)
    levels = column_levels(table.records)
    chosen = anon.facts["levels"]
    for column in levels:
        level = column.labels.index(chosen[column.column])
        for a, lo in zip(column.qis, column.lo, strict=True):
            row = list(anon.generalization.layout.ranges).index(a)
            shown = np.flatnonzero(~anon.suppressed)
            codes = table.records.codes[shown, a]
            expected = lo[level][codes]
            # an interval of numbers begins at the least value that is in it, but the whole domain
            if (
                table.records.domains[a].kind == "numeric"
                and not anon.generalization.hidden()[a][shown].any()
            ):
                expected = np.array([codes[expected == first].min() for first in expected], codes.dtype)
            assert (anon.generalization.lo[row][shown] == expected).all()


@given(tables(min_n=4, max_n=8, kinds=LEVELLED, max_columns=3))
def test_local_recoding_never_loses_more_than_one_round(table: af.Table) -> None:
    whole = af.anonymize(table, "full-domain", k=2, limit=1.0)
    local = af.anonymize(table, "local-recoding", k=2)
    assert local.loss("ncp") <= whole.loss("ncp") + 1e-12
    assert sum(local.facts["published_by_round"]) == (~local.suppressed).sum()


@given(tables(min_n=2, max_n=12, kinds=LEVELLED))
def test_plain_and_compiled_kernels_agree(table: af.Table) -> None:
    compiled, plain = (Lattice(table.records, column_levels(table.records), "ncp") for _ in range(2))
    for node in list(np.ndindex(compiled.shape))[:20]:
        both = compiled.groups(np.array(node), 2), plainly(plain.groups, np.array(node), 2)
        assert both[0].suppressed == both[1].suppressed
        assert both[0].loss == both[1].loss
        assert (both[0].size == both[1].size).all()


def test_pycanon_agrees_on_k() -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pycanon import anonymity
    except ImportError:
        pytest.skip("pycanon is not installed")
    rng = np.random.default_rng(4)
    table = people(
        list(rng.choice(CITIES, 60)), list(rng.integers(20, 60, 60)), list(rng.choice(["00", "01", "10"], 60))
    )
    for limit in (0.0, 0.2):
        anon = af.anonymize(table, "full-domain", k=4, limit=limit)
        published = anon.frame()[~anon.suppressed]
        sizes = published.value_counts()
        assert anonymity.k_anonymity(published, list(published.columns)) == sizes.min() >= 4


def test_every_node_that_is_not_counted_loses_no_less() -> None:
    rng = np.random.default_rng(9)
    table = people(
        list(rng.choice(CITIES, 50)), list(rng.integers(20, 60, 50)), list(rng.choice(["00", "01", "10"], 50))
    )
    for k, limit in ((3, 0.0), (3, 0.1), (6, 0.0), (10, 0.3)):
        report = search(Partition(table.records, "ncp", rng), k, limit)
        nodes = [report.lattice.groups(np.array(node), k) for node in np.ndindex(report.lattice.shape)]
        feasible = [groups.loss for groups in nodes if groups.suppressed <= int(limit * table.n + 1e-9)]
        assert report.best.loss == pytest.approx(min(feasible), abs=1e-12)
        assert report.checked < len(nodes)


@given(tables(min_n=4, max_n=9, kinds=("coded", "suppression"), max_columns=2), st.integers(2, 3))
def test_no_levels_of_numbers_with_codes_lose_less(table: af.Table, k: int) -> None:
    """Each combination of levels is published by itself: the search finds the one that loses least."""
    anon = af.anonymize(table, "full-domain", k=k, limit=0.5)
    losses = []
    labels = {each.column: each.labels for each in column_levels(table.records)}
    for chosen in itertools.product(*labels.values()):
        try:
            fixed = af.anonymize(
                table, "full-domain", k=k, limit=0.5, levels=dict(zip(labels, chosen, strict=True))
            )
        except InfeasibleError:
            continue
        losses.append(fixed.loss("ncp"))
    assert anon.loss("ncp") == pytest.approx(min(losses), abs=1e-12)


def test_widths_are_intervals_at_multiples() -> None:
    table = people(["San Diego"] * 8, [20, 21, 24, 25, 29, 30, 34, 39], ["00"] * 8)
    anon = af.anonymize(table, "full-domain", k=3, limit=0, widths={"age": [5, 10]})
    assert anon.facts["levels"]["age"] == "width 10"
    assert sorted(set(anon.frame()["age"])) == ["20-29", "30-39"]


def test_suppression_is_limited_and_counted() -> None:
    table = people(["San Diego"] * 9 + ["Lincoln"], [20] * 9 + [29], ["00"] * 10)
    free = af.anonymize(table, "full-domain", k=3, limit=0.1)
    assert free.suppressed.sum() == 1
    assert set(free.frame()["age"][:9]) == {"20"}
    held = af.anonymize(table, "full-domain", k=3, limit=0.0)
    assert held.suppressed.sum() == 0


@pytest.mark.parametrize("method", ["full-domain", "local-recoding", "pattern-guided", "local-suppression"])
def test_no_interval_ends_at_a_value_that_is_hidden_or_the_release_says_so(method: str) -> None:
    """The oldest person is suppressed, because nobody else is from there, so nobody may read this age off the others' interval."""
    ages, towns = [103, 61, 62, 63, 64, 65, 66, 21, 22, 23], [*"BPPPPPPPPP"]
    qi, widths = {"role": "quasi-identifier"}, {"age": [60]}
    schema = {"age": {**qi, "kind": "numeric"}, "town": {**qi, "kind": "suppression"}}
    table = af.Table(pd.DataFrame({"age": ages, "town": towns}), schema)
    options: dict[str, Any] = {
        "full-domain": {"widths": widths, "limit": 0.1, "levels": {"age": "width 60", "town": "values"}},
        "local-recoding": {"widths": widths},
        "pattern-guided": {"patterns": [{"levels": {"age": "width 60"}}]},
        "local-suppression": {"sets": [["age", "town"]], "generalize": True, "widths": widths},
    }[method]
    anon = af.anonymize(table, method, k=2, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        release = anon.release(seed=2**127)
    assert af.verify(table, release, ["covers", "guarantee"])
    if method == "pattern-guided":
        wide = [
            {"pattern": {"patterns": [{"levels": {"age": width}}]}} for width in ("width 60", "width 120")
        ]
        assert [bool(af.verify(table, release, [criterion])) for criterion in wide] == [True, False]
    if method == "local-suppression":  # here this age is in an interval of its own row
        assert anon.frame()["age"][0] != "*"
    else:
        assert anon.suppressed.tolist() == [True] + [False] * 9
        assert set(anon.frame()["age"][1:]) == {"61-66", "21-23"}
        assert not caught


def test_a_time_limit_keeps_the_best_and_says_the_gap() -> None:
    rng = np.random.default_rng(3)
    columns = {f"q{c}": rng.integers(0, 50, 60) for c in range(3)}
    schema = {name: {"role": "quasi-identifier", "kind": "numeric"} for name in columns}
    table = af.Table(pd.DataFrame(columns), schema)
    anon = af.anonymize(table, "full-domain", k=5, time_limit=0.001)
    assert af.verify(table, anon, ["covers", "k-anonymity"], k=5)
    exact = af.anonymize(table, "full-domain", k=5)
    assert exact.loss("ncp") >= anon.loss("ncp") - anon.facts["gap"] - 1e-9


def test_boundaries_and_widths_of_columns_are_kept() -> None:
    qi = {"role": "quasi-identifier"}
    frame = pd.DataFrame({"age": [20, 21, 22, 23, 40, 41, 42, 43], "city": ["Wichita", "Topeka"] * 4})
    schema = {
        "age": {**qi, "kind": "numeric", "boundary": {"width": 10}},
        "city": {
            **qi,
            "kind": "hierarchy",
            "hierarchy": city_tree(),
            "boundary": ["Kansas", "West", "Lincoln"],
        },
    }
    table = af.Table(frame, schema)
    anon = af.anonymize(table, "full-domain", k=3, widths={"age": [5, 10, 20]})
    assert af.verify(table, anon, ["covers", "k-anonymity", "boundary"], k=3)
    limited = af.Table(frame, {**schema, "age": {**qi, "kind": "numeric", "max-width": 3}})
    anon = af.anonymize(limited, "full-domain", k=3)
    assert af.verify(limited, anon, ["covers", "k-anonymity", "boundary"], k=3)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"widths": {"age": [5, 12]}}, "do not nest"),
    ({"widths": {"agee": [5]}}, "no numeric quasi-identifier"),
    ({"widths": {"age": [0]}}, "positive numbers"),
    ({"widths": {"age": []}}, "positive numbers"),
    ({"widths": [5]}, "mapping"),
    ({"limit": 1.5}, "at most 1"),
    ({"limit": -0.1}, "at least 0"),
    ({"time_limit": 0}, "time_limit"),
]


@loop(("options", "words"), BAD)
def test_bad_options_are_a_sentence(options: dict[str, Any], words: str) -> None:
    table = people(["San Diego"] * 4, [20, 21, 22, 23], ["00"] * 4)
    with pytest.raises(ParameterError, match=words) as refused:
        af.anonymize(table, "full-domain", k=2, **options)
    assert "\n" not in str(refused.value)


def test_a_column_without_a_hierarchy_is_named() -> None:
    frame = pd.DataFrame({"job": ["a", "b", "c"], "sex": ["f", "m", "f"]})
    schema = {name: {"role": "quasi-identifier", "kind": "categorical"} for name in frame}
    with pytest.raises(ParameterError, match=r"no hierarchy for 'job', 'sex'.*kind: suppression"):
        af.anonymize(af.Table(frame, schema), "full-domain", k=2)


def test_a_lattice_too_large_is_refused_before_it_is_built() -> None:
    columns = {f"q{c}": np.arange(40) * 7 % 41 for c in range(10)}
    schema = {name: {"role": "quasi-identifier", "kind": "numeric"} for name in columns}
    with pytest.raises(ParameterError, match=r"lattice of [0-9,]+ nodes.*fewer levels"):
        af.anonymize(af.Table(pd.DataFrame(columns), schema), "full-domain", k=2)


def test_fewer_records_than_k() -> None:
    table = people(["San Diego"] * 3, [20, 21, 22], ["00"] * 3)
    with pytest.raises(InfeasibleError):
        af.anonymize(table, "local-recoding", k=4)


def test_partitions_are_not_cut() -> None:
    table = people([*CITIES] * 4, list(range(20, 40)), ["00", "01", "10", "11"] * 5)
    whole = af.anonymize(table, "full-domain", k=2)
    sized = af.anonymize(table, "full-domain", k=2, partition_size=5)
    assert sized.parameters["partition_size"] is None
    assert (whole.generalization.lo == sized.generalization.lo).all()


def test_the_tree_of_the_reference_is_that_of_the_strategies() -> None:
    assert set(TREE["*"]) == {"West", "Midwest"}


def test_a_later_round_of_local_recoding_may_take_a_lower_level() -> None:
    """Whom the first round leaves may agree on the column that it hid."""
    rows = [("same", f"b{at}") for at in range(4)] + [(f"a{at}", f"d{at % 2}") for at in range(12)]
    schema = {name: {"role": "quasi-identifier", "kind": "suppression"} for name in ("a", "b")}
    table = af.Table(pd.DataFrame(rows, columns=["a", "b"]), schema)
    anon = af.anonymize(table, "local-recoding", k=4)
    assert anon.facts["levels"] == {"a": "*", "b": "values"}
    assert anon.facts["published_by_round"] == [12, 4]
    assert set(anon.frame()[:4].itertuples(index=False, name=None)) == {("same", "*")}
