"""`at-least`: every method publishes nothing below a level of a hierarchy, and the verifier sees whether it did."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.algorithms import REGISTRY
from anonflow.errors import HierarchyError, ParameterError, SchemaError
from anonflow.generalization import Generalization
from anonflow.risk.singling_out import plausible_points
from anonflow.utility.analyses.comparison import comparison_of
from tests.strategies import CITIES, city_tree, loop

QI = {"role": "quasi-identifier"}
REGIONS = {
    "San Diego": "West",
    "Los Angeles": "West",
    "Wichita": "Kansas",
    "Topeka": "Kansas",
    "Lincoln": "Lincoln",
}


def frame(n: int) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {"city": rng.choice(CITIES, n), "age": rng.integers(20, 26, n), "ill": rng.choice(list("ab"), n)}
    )


def schema(**city: Any) -> dict[str, Any]:
    return {
        "city": {**QI, "kind": "hierarchy", "hierarchy": city_tree(), **city},
        "age": {**QI, "kind": "numeric"},
        "ill": {"role": "sensitive"},
    }


OPTIONS: dict[str, dict[str, Any]] = {"full-domain": {"limit": 0.2}}


@pytest.mark.parametrize("name", list(REGISTRY))
def test_no_method_publishes_a_leaf(name: str) -> None:
    table = af.Table(frame(14), schema(**{"at-least": 1}))
    anon = af.anonymize(table, name, k=2, seed=2**127 + 3, **OPTIONS.get(name, {}))
    cells = anon.frame()["city"].tolist()
    assert set(cells) <= {"West", "Kansas", "Midwest", "Lincoln", "*"}
    assert af.verify(table, anon, ["covers", "guarantee"], k=2)
    # what it costs counts from the values, as without
    free = af.Table(frame(14), schema())
    wide = {"West": 1 / 4, "Kansas": 1 / 4, "Midwest": 2 / 4, "Lincoln": 0.0, "*": 1.0}
    own = anon.generalization
    age = (own.hi - own.lo)[1] / (len(free.domains[1].labels) - 1)
    assert anon.loss("ncp") == pytest.approx(np.mean([wide[cell] for cell in cells] + age) / 2)


@pytest.mark.parametrize("name", ["greedy", "mondrian"])
def test_a_release_is_verified_with_the_lowest_level(name: str) -> None:
    table = af.Table(frame(30), schema(**{"at-least": 1}))
    anon = af.anonymize(table, name, k=3, seed=2**127 + 3)
    release = anon.release(seed=2**127 + 4).frame
    assert af.verify(table, release, ["covers", "k-anonymity" if anon.classes is not None else "(1,k)"], k=3)
    finer = (
        af.anonymize(af.Table(frame(30), schema()), name, k=3, seed=2**127 + 3).release(seed=2**127 + 4).frame
    )
    assert set(finer["city"]) & set(CITIES) - {"Lincoln"}
    assert not af.verify(table, finer, ["covers"], k=3)


def test_equal_at_the_level_is_equal() -> None:
    """Mondrian does not cut below the level: what reads the same stays together."""
    table = af.Table(frame(30), schema(**{"at-least": 2}))
    anon = af.anonymize(table, "mondrian", k=4)
    rows = anon.frame().astype(str).agg("|".join, axis=1)
    assert rows.groupby(anon.classes).nunique().max() == 1
    assert rows.nunique() == len(set(anon.classes.tolist()))


def test_other_schemas_say_it_too() -> None:
    declared = af.Schema({"city": {**QI, "kind": "hierarchy", "hierarchy": "city.csv", "at-least": 1}})
    assert declared.to_mapping()["city"]["at-least"] == 1
    assert "at least level 1" in declared["city"].details


BAD: list[tuple[dict[str, Any], str]] = [
    ({"at-least": 0}, "whole number of at least 1"),
    ({"at-least": 1.5}, "whole number of at least 1"),
    ({"at-least": True}, "whole number of at least 1"),
    ({"at-least": 3}, "would hide the whole column"),
    ({"at-least": 2, "boundary": ["Kansas", "West", "Lincoln"]}, "a boundary is below level 2"),
]


@loop(("city", "words"), BAD)
def test_bad_levels_are_a_sentence(city: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        af.Table(frame(10), schema(**city))


def test_a_kind_without_levels_is_refused() -> None:
    with pytest.raises(SchemaError, match="at-least goes with kind hierarchy, not numeric"):
        af.Schema({"age": {**QI, "kind": "numeric", "at-least": 1}})


def test_full_domain_starts_at_the_level() -> None:
    table = af.Table(frame(30), schema(**{"at-least": 1}))
    anon = af.anonymize(table, "full-domain", k=2, limit=0.5)
    assert anon.facts["levels"]["city"] in ("level 1", "level 2", "*")
    assert (
        anon.facts["nodes"] < af.anonymize(af.Table(frame(30), schema()), "full-domain", k=2).facts["nodes"]
    )
    with pytest.raises(ParameterError):
        af.anonymize(table, "full-domain", k=2, limit=2)


# --- a node with one child is a node of its own level ---------------------------------------------------------

WARDS = {"*": {"hospital A": {"medicine": ["cardiology", "oncology"], "surgery": ["trauma"]}, "clinic B": {"nephrology": ["dialysis"]}}}  # fmt: skip


def wards(**more: Any) -> af.Table:
    cells = ["cardiology", "oncology", "trauma", "trauma", "dialysis", "dialysis"]
    ward = {"role": "quasi-identifier", "kind": "hierarchy", "hierarchy": {"nested": WARDS}, **more}
    return af.Table(pd.DataFrame({"ward": cells}), {"ward": ward})


@pytest.mark.parametrize(
    "method", ["mondrian", "k-member", "greedy", "full-domain", "local-recoding", "pattern-guided"]
)
def test_a_node_with_one_child_is_published_at_least(method: str) -> None:
    """`at-least: 1` published the leaves trauma and dialysis."""
    table = wards(**{"at-least": 1})
    anonymization = af.anonymize(table, method, k=2)
    assert anonymization.frame()["ward"].tolist() == ["medicine"] * 2 + ["surgery"] * 2 + ["nephrology"] * 2
    assert af.verify(table, anonymization)


@pytest.mark.parametrize(
    ("level", "cells", "height", "ncp"),
    [
        ("level 1", ["medicine", "medicine", "surgery", "surgery", "nephrology", "nephrology"], 1 / 3, 1 / 9),
        ("level 2", ["hospital A"] * 4 + ["clinic B"] * 2, 2 / 3, 4 / 9),
        ("*", ["*"] * 6, 1.0, 1.0),
    ],
)
def test_one_level_has_the_labels_of_this_level(
    level: str, cells: list[str], height: float, ncp: float
) -> None:
    """A level mixed hospital A with dialysis, true labels were refused, and heights were those of the child."""
    table = wards()
    anonymization = af.anonymize(table, "full-domain", k=2, levels={"ward": level}, limit=1.0)
    assert anonymization.frame()["ward"].tolist() == cells
    assert anonymization.loss("height") == pytest.approx(height)
    assert anonymization.loss("ncp") == pytest.approx(ncp)
    release = pd.DataFrame({"ward": cells})
    for lowest in ({}, {"at-least": 1}):
        assert af.verify(wards(**lowest), release, ["covers", "k-anonymity"], k=2)
    again = af.verify(wards(**{"at-least": 1}), pd.DataFrame({"ward": ["medicine", "medicine", "trauma", "trauma", "surgery", "surgery"]}), ["covers"], k=2)  # fmt: skip
    assert not again


def test_a_boundary_names_a_node_with_one_child() -> None:
    table = wards(boundary=["medicine", "surgery", "nephrology"])
    for method in ("mondrian", "greedy"):
        cells = af.anonymize(table, method, k=2).frame()["ward"].tolist()
        assert cells == ["medicine", "medicine", "trauma", "trauma", "dialysis", "dialysis"]


def test_a_node_with_one_child_counts_its_values_once() -> None:
    """Its run is longer than its child's; what it covers is the same value."""
    domain = wards().domains[0]
    assert domain.size == 7
    assert domain.has_value.sum() == 4
    assert repr(domain) == "Domain('ward', hierarchy, 4 values)"
    lo, hi = domain.hierarchy.first, domain.hierarchy.last
    values = dict(zip(domain.hierarchy.labels, domain.values_in(lo, hi).tolist(), strict=True))
    assert (values["surgery"], values["trauma"], values["hospital A"], values["*"]) == (1, 1, 3, 4)
    plain = wards(hierarchy={"nested": {"*": {"x": ["cardiology", "oncology"], "y": ["trauma", "dialysis"]}}})
    assert plain.domains[0].hierarchy == plain.domains[0].hierarchy.spread()


def test_plausible_values_of_a_node_with_one_child_are_values() -> None:
    table = wards()
    root = pd.DataFrame({"ward": ["*"] * 60})
    rows = Generalization.parse(root, table.domains)
    drawn, _ = plausible_points(rows, root, [table], [], np.random.default_rng(1))
    codes = np.flatnonzero(table.domains[0].has_value)
    assert set(drawn.values[:, 0]) == set(codes)


def test_a_label_does_not_begin_as_that_of_a_leaf_without_values() -> None:
    with pytest.raises(HierarchyError, match="a label begins with the character NUL") as caught:
        wards(hierarchy={"nested": {"*": ["trauma", "dialysis", "cardiology", "oncology", "\0secret"]}})
    assert "secret" not in str(caught.value)


def test_plausible_tables_have_no_leaf_without_values() -> None:
    table = wards()
    anonymization = af.anonymize(table, "full-domain", k=2, levels={"ward": "level 2"}, limit=1.0)
    part = SimpleNamespace(table=table, subject=anonymization, generalization=anonymization.generalization)
    comparison = comparison_of(part, 5, 1)
    cells = {cell for plausible in comparison.tables for cell in plausible["ward"]}
    assert cells <= {"cardiology", "oncology", "trauma", "dialysis"}
