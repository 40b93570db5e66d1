"""The tables that the papers print, against the verifier, the loss and what the papers say of them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import anonflow as af
from anonflow import datasets
from anonflow.criteria import consistency_graph
from anonflow.generalization import Generalization
from anonflow.hierarchy import EMPTY
from tests.strategies import loop

SEVEN = ["covers", "k-anonymity", "(1,k)", "(k,1)", "(k,k)", "k-concealment", "k-regular"]


def table_of(name: str) -> af.Table:
    return af.Table(datasets.load(name), datasets.schema(name))


def met(table: af.Table, published: object, k: int) -> set[str]:
    """The criteria that hold."""
    return {
        finding.criterion for finding in af.verify(table, published, SEVEN, k=k).findings if finding.holds
    }


# --------------------------------------------------------------------------------------- Doka 2015


def test_paper_1_table_1_derives_from_its_matches() -> None:
    table, matches = table_of("freeform_example"), datasets.freeform_example_matches()
    assert (matches[:, 0] == np.arange(8)).all()
    assert np.bincount(matches.ravel()).tolist() == [3] * 8
    derived = Generalization.join_of(table.records, matches)
    printed = Generalization.parse(datasets.freeform_example_anonymized(), table.domains)
    assert (derived.lo == printed.lo).all()
    assert (derived.hi == printed.hi).all()
    # the ranges that span the whole domain are published as *
    shown = derived.decode(index=table.index).replace({"Salary": {"*": "20-59"}})
    assert shown.equals(datasets.freeform_example_anonymized())


def test_paper_1_table_1_is_3_regular_and_covers_more() -> None:
    table = table_of("freeform_example")
    printed = datasets.freeform_example_anonymized()
    # the printed 20-59 spans the domain, which has one way to be written
    assert met(table, printed.replace({"Salary": {"20-59": "*"}}), 3) == set(SEVEN) - {"k-anonymity"}
    graph = consistency_graph(table.records, Generalization.parse(printed, table.domains))
    covered = graph.degrees()[1][graph.published.label]
    assert (covered >= 3).all()
    assert covered[[3, 4]].tolist() == [5, 5]
    subject = SimpleNamespace(
        generalization=Generalization.join_of(table.records, datasets.freeform_example_matches()),
        matches=datasets.freeform_example_matches(),
        k=3,
    )
    assert af.verify(table, subject, ["covers", "k-regular"])
    assert af.measure(table, subject, "discernibility")["discernibility"] == covered.sum() > 24


def test_paper_1_table_1_costs() -> None:
    table = table_of("freeform_example")
    parsed = Generalization.parse(datasets.freeform_example_anonymized(), table.domains)
    age = np.array([6, 6, 11, 13, 19, 11, 2, 17]) / 31
    salary = np.array([9, 9, 18, 39, 15, 18, 27, 8]) / 39
    assert af.measure(table, parsed, "gcp")["gcp"] == pytest.approx((age + salary).mean() / 2)


# --------------------------------------------------------------------------------------- Murakami 2018


def test_paper_2_tables_1_to_3_are_one() -> None:
    people = datasets.zip_example()
    assert people.drop(columns="Income").equals(datasets.zip_example_public())
    assert people.drop(columns="Name").equals(datasets.zip_example_private())
    assert table_of("zip_example").q == 7


@pytest.mark.parametrize(
    ("frame", "stars", "holds"),
    [
        (datasets.zip_example_global(), 28, set(SEVEN)),
        (datasets.zip_example_local(), 15, set(SEVEN)),
        (datasets.zip_example_heterogeneous(), 12, set(SEVEN) - {"k-anonymity"}),
        (datasets.zip_example_heterogeneous(mended=False), 12, {"covers"}),
    ],
    ids=["table 4", "table 5", "table 6 mended", "table 6"],
)
def test_paper_2_tables_4_to_6(frame: object, stars: int, holds: set[str]) -> None:
    table = table_of("zip_example")
    text = " ".join(frame.to_numpy().ravel().tolist())  # type: ignore[attr-defined]
    assert text.count("*") == stars
    counts = met(table, frame, 2)
    assert counts & {"covers", "k-regular", "k-anonymity"} == holds & {"covers", "k-regular", "k-anonymity"}
    if "k-regular" in holds:
        assert holds - {"k-anonymity"} <= counts
    parsed = Generalization.parse(frame, table.domains)  # type: ignore[arg-type]
    # the first digit is 9 everywhere: a domain of one value is never published as *
    hidden = sum(domain.size == 1 for domain in table.domains)
    assert hidden == 1
    assert af.measure(table, parsed, "stars")["stars"] == stars


def test_paper_2_table_6_as_printed_fails_at_r3() -> None:
    table = table_of("zip_example")
    finding = af.verify(table, datasets.zip_example_heterogeneous(mended=False), "k-regular", k=2)[
        "k-regular"
    ]
    assert (finding.failed, finding.positions) == (1, (2,))
    assert "13 of 14" in finding.detail


def test_paper_2_loss_is_stars_over_cells() -> None:
    """Its GCP counts hidden sites: NCP with suppression is the share of cells that are ``*``."""
    table = table_of("zip_example")
    parsed = Generalization.parse(datasets.zip_example_local(), table.domains)
    assert af.measure(table, parsed, "gcp")["gcp"] == pytest.approx(15 / 49)


# --------------------------------------------------------------------------------------- Miller 2008


@loop(("which", "violations"), [("MM1", [2, 3, 6]), ("MM2", [])])
def test_paper_3_figure_4(which: str, violations: list[int]) -> None:
    table = table_of("location_example")
    assert table.qi_columns == ("Age", "Location", "Sex", "Race")
    parsed = Generalization.parse(datasets.location_example_masked(which), table.domains)
    check = af.verify(
        table, SimpleNamespace(generalization=parsed, k=2), ["covers", "k-anonymity", "boundary"]
    )
    assert check["covers"].holds
    assert check["k-anonymity"].holds
    assert check["boundary"].holds == (not violations)
    assert list(check["boundary"].positions) == violations


def test_paper_3_figure_2_and_3() -> None:
    table = table_of("location_example")
    tree = table.domains[1].hierarchy
    assert tree is not None
    values = [leaf for leaf in tree.leaves if not leaf.startswith(EMPTY)]
    assert values == ["San Diego", "Los Angeles", "Wichita", "Kansas City", "Lincoln"]
    assert set(datasets.location_boundary()) <= set(tree.labels)
    # MAGSet: San Diego up to California, Wichita up to Kansas, Lincoln up to the Midwest
    bound = table.domains[1].bound
    assert bound is not None
    of_values = bound[[tree.leaf_index(value) for value in values]]
    assert of_values.tolist() == [[0, 1], [0, 1], [3, 4], [3, 4], [3, 6]], (
        "a leaf without values after Los Angeles and Lincoln"
    )
    assert table.sensitive == ("Diagnosis", "Income")
    with pytest.raises(af.errors.ParameterError):
        datasets.location_example_masked("MM3")


def test_paper_3_height_loss_of_figure_4() -> None:
    """Definitions 10 and 11: ranges by width, nodes by height, summed over all cells."""
    table = table_of("location_example")
    parsed = Generalization.parse(datasets.location_example_masked("MM2"), table.domains)
    age = 2 * 2 / 22 + 3 * 17 / 22 + 2 * 15 / 22
    location = 2 * 1 / 3 + 3 * 1 / 3
    sex_and_race = 5 + 5
    total = (age + location + sex_and_race) / (7 * 4)
    assert af.measure(table, parsed, "il")["il"] == pytest.approx(total)


# --------------------------------------------------------------------------------------- Tassa 2012


def test_paper_4_table_1() -> None:
    table = table_of("patients_example")
    anonymous = Generalization.parse(datasets.patients_anonymized(), table.domains)
    concealed = Generalization.parse(datasets.patients_concealed(), table.domains)
    assert met(table, SimpleNamespace(generalization=anonymous, k=2), 2) >= {
        "covers",
        "k-anonymity",
        "k-concealment",
    }
    counts = met(table, SimpleNamespace(generalization=concealed, k=2), 2)
    assert counts >= {"covers", "k-concealment"}
    assert "k-anonymity" not in counts
    losses = [af.measure(table, result, ["gcp", "lm", "em"]) for result in (anonymous, concealed)]
    assert all(losses[1][name] < losses[0][name] for name in losses[0])


EXPECTED = {
    "anonymous": {"k-anonymity", "(1,k)", "(k,1)", "(k,k)", "k-concealment"},
    "(1,k)": {"(1,k)"},
    "(k,1)": {"(k,1)"},
    "(k,k)": {"(1,k)", "(k,1)", "(k,k)", "k-concealment"},
    "concealed": {"(1,k)", "k-concealment"},
    "(k,k)-only": {"(1,k)", "(k,1)", "(k,k)"},
}


@loop("k", [3, 4, 6])
@loop("name", EXPECTED)
def test_paper_4_appendix_a(name: str, k: int) -> None:
    example = datasets.concealment_examples(k)[name]
    table = af.Table(example[["value"]], {"value": {"role": "quasi-identifier", "kind": "categorical"}})
    parsed = Generalization.parse(example[["generalized"]].set_axis(["value"], axis=1), table.domains)
    # the owner's view, row i of original i, and the published one
    for subject in (SimpleNamespace(generalization=parsed, k=k), parsed.decode()):
        counts = met(table, subject, k)
        assert "covers" in counts
        assert counts - {"covers", "k-regular"} == EXPECTED[name]


def test_paper_4_appendix_a_needs_k_of_3() -> None:
    assert list(datasets.concealment_examples(3)) == list(EXPECTED)
    for k in (2, 1, 3.0, True):
        with pytest.raises(af.errors.ParameterError):
            datasets.concealment_examples(k)  # type: ignore[arg-type]
