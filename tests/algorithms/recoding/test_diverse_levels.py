"""Diversity inside full-domain generalization and local recoding: against every node, and where it is not monotone."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.algorithms.diversity.target import SensitiveValues, Targets, target_of
from anonflow.algorithms.method import Partition
from anonflow.algorithms.recoding.full_domain import search
from anonflow.errors import InfeasibleError
from tests.cases.city_lattice import ROWS, reference
from tests.strategies import CITIES, city_tree, examples

QI = {"role": "quasi-identifier"}
SCHEMA = {
    "city": {**QI, "kind": "hierarchy", "hierarchy": city_tree()},
    "age": {**QI, "kind": "numeric"},
    "code": {**QI, "kind": "positions"},
    "ill": {"role": "sensitive"},
}
REQUESTS: list[dict[str, Any]] = [
    {"criterion": "l-diversity", "l": 2},
    {"criterion": "l-diversity", "l": 1.4},
    {"criterion": "p-sensitivity", "p": 2},
    {"criterion": "entropy-l-diversity", "l": 1.6},
    {"criterion": "recursive-l-diversity", "c": 2, "l": 2},
    {"criterion": "t-closeness", "t": 0.25},
    {"criterion": "beta-likeness", "beta": 0.6},
    {"criterion": "alpha-k-anonymity", "alpha": 0.6},
]


def table_of(rows: Sequence[tuple[str, int, str]], ill: Sequence[str]) -> af.Table:
    city, age, code = zip(*rows, strict=True)
    return af.Table(pd.DataFrame({"city": city, "age": age, "code": code, "ill": ill}), SCHEMA)


def as_defined(parameters: dict[str, Any], ill: Sequence[str]) -> Callable[[Sequence[str]], bool]:
    """The criterion by its definition, for a class that shows some values."""
    whole = Counter(ill)

    def diverse(shown: Sequence[str]) -> bool:
        count, n = Counter(shown), len(shown)
        falling = sorted(count.values(), reverse=True)
        shares = {value: count[value] / n for value in whole}
        name = parameters["criterion"]
        if name == "l-diversity":
            return falling[0] * parameters["l"] <= n * (1 + 1e-12)
        if name == "alpha-k-anonymity":
            return falling[0] <= parameters["alpha"] * n * (1 + 1e-12)
        if name == "p-sensitivity":
            return len(count) >= parameters["p"]
        if name == "entropy-l-diversity":
            return -sum(c / n * np.log(c / n) for c in falling) >= np.log(parameters["l"]) - 1e-12
        if name == "recursive-l-diversity":
            return falling[0] < parameters["c"] * sum(falling[parameters["l"] - 1 :])
        if name == "t-closeness":
            return sum(abs(shares[v] - whole[v] / len(ill)) for v in whole) / 2 <= parameters["t"] + 1e-12
        return all(shares[v] / (whole[v] / len(ill)) - 1 <= parameters["beta"] * (1 + 1e-12) for v in whole)

    return diverse


@examples(60)
@given(
    ROWS, st.data(), st.integers(2, 4), st.sampled_from([0.0, 0.1, 0.3, 0.6, 1.0]), st.sampled_from(REQUESTS)
)
def test_no_node_whose_classes_are_diverse_loses_less(
    rows: list[tuple[str, int, str]], data: st.DataObject, k: int, limit: float, request: dict[str, Any]
) -> None:
    ill = data.draw(st.lists(st.sampled_from("abc"), min_size=len(rows), max_size=len(rows)))
    table = table_of(rows, ill)
    diverse = as_defined(request, ill)
    plain = af.anonymize(table, "full-domain", k=k, limit=limit, loss="lm", widths={"age": [2, 4]})
    best = reference(rows, k, limit, ill, diverse)
    if best is None:
        with pytest.raises(InfeasibleError):
            af.diversify(plain, **request)
        return
    anon = af.diversify(plain, **request)
    assert anon.loss("lm") * len(rows) == pytest.approx(best[0], abs=1e-9)
    assert anon.facts["optimal"]
    assert anon.facts["diversity"] == request["criterion"]
    parameters = {name: value for name, value in request.items() if name != "criterion"}
    assert af.verify(table, anon, ["covers", "k-anonymity", {request["criterion"]: parameters}], k=k)


@given(st.lists(st.integers(0, 4), min_size=2, max_size=4), st.sampled_from(REQUESTS))
def test_no_fewer_records_can_go(counts: list[int], wanted: dict[str, Any]) -> None:
    parameters = {name: value for name, value in wanted.items() if name != "criterion"}
    everybody = np.array(counts) + 1
    target = target_of(wanted["criterion"], parameters, everybody / everybody.sum())
    group = np.array([counts])
    if not target.gaps(group)[0] > 0:
        return
    stay = np.array(list(product(*(range(c + 1) for c in counts))))
    fewest = sum(counts) - stay[target.gaps(stay) == 0].sum(axis=1).max()
    bound = int(target.least_removed(group)[0])
    assert 1 <= bound <= fewest
    if wanted["criterion"] in ("p-sensitivity", "l-diversity", "alpha-k-anonymity"):
        assert bound == fewest
    assert Targets((target, target)).least_removed(np.concatenate([group, group], axis=1))[0] == bound


def people(ill: str, towns: str) -> af.Table:
    """One column of three levels: a and b are A, c is C, and all are `*`."""
    tree = af.Hierarchy.from_nested({"*": {"A": ["a", "b"], "C": ["c", "d"]}})
    frame = pd.DataFrame({"town": list(towns), "ill": list(ill)})
    schema = {"town": {**QI, "kind": "hierarchy", "hierarchy": tree}, "ill": {"role": "sensitive"}}
    return af.Table(frame, schema)


def test_a_higher_node_may_suppress_more() -> None:
    """Of A, a is diverse and b is not; together they are not. The search takes the lower node."""
    table = people("xyxyxyxxxxxxyyyyyy", "aaaaaabbbbbbcccccc")
    low = af.diversify(af.anonymize(table, "full-domain", k=3, limit=0.7), l=2)
    assert low.facts["levels"] == {"town": "values"}
    assert low.suppressed.sum() == 12
    target = target_of("l-diversity", {"l": 2}, np.array([0.5, 0.5]))
    values = (table.frame["ill"] == "y").to_numpy(np.int64)[:, None]
    sensitive = SensitiveValues(Targets((target,)), values)
    part = Partition(table.records, "ncp", np.random.default_rng(1), sensitive)
    lattice = search(part, 3, 1.0).lattice
    hidden = [lattice.diverse(lattice.groups(np.array([level]), 3), 3) for level in (0, 1)]
    assert [groups.suppressed for groups in hidden] == [12, 18]
    assert [groups.below for groups in hidden] == [12, 12]


def test_suppressed_records_are_a_class_to_be_diverse() -> None:
    """Three of b show x alone: with k = 3 they may not be suppressed by themselves."""
    table = people("xyxyxyxyxyxxxyyxyx", "aaaaaaaaaabbbccccc")
    plain = af.anonymize(table, "full-domain", k=3, limit=0.5)
    anon = af.diversify(plain, "p-sensitivity", p=2)
    assert anon.facts["levels"] == {"town": "level 1"}
    assert af.verify(table, anon, ["k-anonymity", "p-sensitivity(p=2)"], k=3)
    four = af.diversify(af.anonymize(table, "full-domain", k=4, limit=0.5), "p-sensitivity", p=2)
    assert four.facts["levels"] == {"town": "values"}
    assert four.suppressed.sum() == 3


@pytest.mark.parametrize("method", ["full-domain", "local-recoding"])
def test_more_diversity_than_the_whole_table_has_where_few_are_suppressed(method: str) -> None:
    """Of seven people four have x; the one of town c is alone."""
    table = people("xyxyxyx", "aaaaaac")
    options = {"limit": 0.3} if method == "full-domain" else {}
    plain = af.anonymize(table, method, k=3, **options)
    anon = af.diversify(plain, "l-diversity", l=2)
    assert np.flatnonzero(anon.suppressed).tolist() == [6]
    assert af.verify(table, anon, ["k-anonymity", "l-diversity(l=2)"], k=3)
    with pytest.raises(InfeasibleError, match=r"of the whole table has; the largest feasible l is 1\.75"):
        af.diversify(af.anonymize(table, "mondrian", k=3), "l-diversity", l=2)
    with pytest.raises(InfeasibleError, match="of the whole table has"):
        af.diversify(plain, "l-diversity", l=3)


def test_records_that_a_limit_suppresses_count_for_no_class() -> None:
    """The person of 90 is suppressed by every method, and what is published is diverse."""
    frame = pd.DataFrame({"age": [20, 21, 22, 23, 24, 25, 90], "ill": list("xyxyxyx")})
    table = af.Table(frame, {"age": {**QI, "kind": "numeric", "max-width": 10}, "ill": {"role": "sensitive"}})
    plain = af.anonymize(table, "k-member", k=3, seed=1)
    assert plain.suppressed.sum() == 1
    anon = af.diversify(plain, "l-diversity", l=2)
    assert af.verify(table, anon, ["k-anonymity", "l-diversity(l=2)"], k=3)


@pytest.mark.parametrize("method", ["full-domain", "local-recoding"])
@pytest.mark.parametrize("criterion", [None, "p-sensitivity"])
def test_a_star_for_everybody_is_a_class(method: str, criterion: str | None) -> None:
    table = people("xyxy", "abcd")
    options = {"limit": 1.0} if method == "full-domain" else {}
    anon = af.anonymize(table, method, k=3, **options)
    if criterion:
        anon = af.diversify(anon, criterion, p=2)
    assert not anon.suppressed.any()
    assert set(anon.frame()["town"]) == {"*"}
    assert anon.facts["levels"] == {"town": "*"}
    assert af.verify(table, anon, ["covers", "k-anonymity", "p-sensitivity(p=2)"], k=3)


@pytest.mark.parametrize("method", ["full-domain", "local-recoding"])
@examples(30)
@given(ROWS, st.data(), st.integers(2, 3), st.sampled_from(REQUESTS))
def test_every_class_is_diverse_within_limits(
    method: str, rows: list[tuple[str, int, str]], data: st.DataObject, k: int, request: dict[str, Any]
) -> None:
    ill = data.draw(st.lists(st.sampled_from("abc"), min_size=len(rows), max_size=len(rows)))
    schema: dict[str, Any] = dict(SCHEMA)
    if data.draw(st.booleans()):
        schema["city"] = {**schema["city"], "boundary": ["Kansas", "West", "Lincoln"]}
    if data.draw(st.booleans()):
        schema["age"] = {**schema["age"], "max-width": 4}
    table = af.Table(table_of(rows, ill).frame, schema)
    try:
        anon = af.diversify(af.anonymize(table, method, k=k), **request)
    except InfeasibleError:
        return
    parameters = {name: value for name, value in request.items() if name != "criterion"}
    wanted = ["covers", "k-anonymity", "boundary", {request["criterion"]: parameters}]
    assert af.verify(table, anon, wanted, k=k)


def random_people(n: int) -> af.Table:
    rng = np.random.default_rng(7)
    rows = list(
        zip(
            rng.choice(CITIES, n),
            rng.integers(20, 60, n).tolist(),
            rng.choice(["00", "01", "10"], n),
            strict=True,
        )
    )
    return table_of(rows, list(rng.choice(list("abcd"), n, p=[0.4, 0.3, 0.2, 0.1])))


@pytest.mark.parametrize("method", ["full-domain", "local-recoding"])
def test_pycanon_agrees_on_l_and_t(method: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pycanon import anonymity
    except ImportError:
        pytest.skip("pycanon is not installed")
    table = random_people(80)
    plain = af.anonymize(table, method, k=4)
    for criterion, parameters in (("p-sensitivity", {"p": 3}), ("t-closeness", {"t": 0.35})):
        anon = af.diversify(plain, criterion, **parameters)
        assert 0 < anon.loss("ncp") < 1
        published = anon.release(seed=2**127).frame
        names = ["city", "age", "code"]
        if criterion == "p-sensitivity":
            assert anonymity.l_diversity(published, names, ["ill"]) >= 3
        else:
            assert anonymity.t_closeness(published, names, ["ill"]) <= 0.35 + 1e-9


def test_a_column_of_the_release_keeps_one_level() -> None:
    anon = af.diversify(af.anonymize(random_people(80), "full-domain", k=4, limit=0.1), "l-diversity", l=2)
    levels = {len(str(cell).strip("*")) for cell in anon.frame()["code"][~anon.suppressed]}
    assert len(levels) == 1
    assert anon.suppressed.sum() <= 8


FLOW = """
flow: levels
version: 1
table:
  source: {{csv: people.csv{pieces}}}
  columns:
    city: {{role: quasi-identifier, kind: hierarchy, hierarchy: city.csv}}
    age: {{role: quasi-identifier, kind: numeric}}
    ill: {{role: sensitive}}
steps:
  - anonymize: {{algorithm: full-domain, k: 4, limit: 0.1}}
  - diversify: {{criterion: l-diversity, l: 2}}
  - draw: {{}}
  - verify: [covers, guarantee, l-diversity(l=2)]
publish: {{table: out/{name}.csv}}
"""


def test_a_flow_chooses_diverse_levels_in_memory_and_in_pieces(tmp_path: Path) -> None:
    random_people(60).frame.to_csv(tmp_path / "people.csv", index=False)
    city_tree().to_csv(tmp_path / "city.csv")
    seen = []
    for name, pieces in (("memory", ""), ("pieces", ", pieces: true")):
        (tmp_path / f"{name}.yaml").write_text(FLOW.format(name=name, pieces=pieces))
        report = af.run(tmp_path / f"{name}.yaml", seed=2**127 + 1)
        assert report.ok
        seen.append((tmp_path / "out" / f"{name}.csv").read_bytes())
    assert seen[0] == seen[1]


def test_a_flow_may_ask_for_more_than_the_whole_table_has(tmp_path: Path) -> None:
    """Eleven of 21 people have x; one of them lives alone in Lincoln, and the limit allows to suppress two."""
    frame = pd.DataFrame(
        {"city": ["Wichita"] * 20 + ["Lincoln"], "age": [30] * 20 + [50], "ill": list("xy") * 10 + ["x"]}
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    city_tree().to_csv(tmp_path / "city.csv")
    for name, pieces in (("memory", ""), ("pieces", ", pieces: true")):
        (tmp_path / f"{name}.yaml").write_text(FLOW.format(name=name, pieces=pieces))
        assert af.run(tmp_path / f"{name}.yaml", seed=2**127 + 1).ok
        published = pd.read_csv(tmp_path / "out" / f"{name}.csv")
        assert published.value_counts().to_dict() == {
            ("Wichita", "30", "x"): 10,
            ("Wichita", "30", "y"): 10,
            ("*", "*", "*"): 1,
        }


def test_suppressed_records_that_are_not_diverse_are_named() -> None:
    """The limit is not the reason: everybody might be suppressed."""
    table = people("xyxyxyxyxyxxxyyxyx", "aaaaaaaaaabbbccccc")
    target = target_of("l-diversity", {"l": 2}, np.array([0.5, 0.5]))
    values = (table.frame["ill"] == "y").to_numpy(np.int64)[:, None]
    part = Partition(
        table.records, "ncp", np.random.default_rng(1), SensitiveValues(Targets((target,)), values)
    )
    with pytest.raises(InfeasibleError) as caught:
        search(part, 3, 1.0, levels={"town": "values"})
    assert "the suppressed records are a class that is not diverse" in str(caught.value)
    assert "suppress at most" not in str(caught.value)


def test_given_levels_stay_where_the_others_are_chosen_again() -> None:
    ages = [20, 21, 22, 23, 40, 41, 42, 43] * 3
    frame = pd.DataFrame({"age": ages, "sex": ["f", "m"] * 12, "ill": ["x", "x", "y", "y"] * 6})
    keys = {"age": "numeric", "sex": "suppression"}
    schema = {name: {"role": "quasi-identifier", "kind": kind} for name, kind in keys.items()}
    table = af.Table(frame, {**schema, "ill": {"role": "sensitive"}})
    anon = af.anonymize(table, "full-domain", k=2, levels={"sex": "values"})
    diverse = af.diversify(anon, "p-sensitivity", p=2)
    assert anon.facts["levels"]["sex"] == diverse.facts["levels"]["sex"] == "values"
    assert anon.facts["levels"]["age"] != diverse.facts["levels"]["age"]
    assert set(diverse.frame()["sex"]) == {"f", "m"}
