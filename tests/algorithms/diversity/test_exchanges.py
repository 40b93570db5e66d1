"""What the reason for a union tells: values exchanged inside published classes, and the step run again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import datasets
from anonflow.algorithms.diversity.minimality import minimality_excess, minimality_shares
from anonflow.algorithms.diversity.target import PRICE, targets_of
from anonflow.engine.flows.json_schema import flow_schema


def people(ill: str) -> af.Table:
    frame = pd.DataFrame({"age": np.arange(len(ill)) ** 2, "ill": list(ill)})
    return af.Table(
        frame, {"age": {"role": "quasi-identifier", "kind": "numeric"}, "ill": {"role": "sensitive"}}
    )


@pytest.mark.parametrize("method", ["k-member", "greedy", "agglomerative"])
@pytest.mark.parametrize("ill", ["aabbabab", "aaaabbab", "aaaaaabb", "aaabacab"])
@pytest.mark.parametrize(
    "criterion", [{"criterion": "p-sensitivity", "p": 2}, {"criterion": "t-closeness", "t": 0.3}]
)
def test_unions_of_equal_classes_add_nothing_to_anybodys_share(
    method: str, ill: str, criterion: dict[str, Any]
) -> None:
    """Every way to deal the values: an attacker who runs the method again knows no more than the counts."""
    anon = af.anonymize(people(ill), method, 2, seed=1)
    assert minimality_excess(anon, **criterion) == pytest.approx(0, abs=1e-12)


def test_a_seed_gives_the_same_exchanges_and_another_one_others() -> None:
    anon = af.anonymize(people("aabbabab" * 3), "k-member", 2, seed=1)
    shares = [minimality_shares(anon, "t-closeness", t=0.3, seed=seed, exchanges=20) for seed in (1, 1, 2)]
    assert shares[0].equals(shares[1])
    assert not shares[0].equals(shares[2])


def test_it_does_not_matter_who_has_the_first_value() -> None:
    """Before, values were numbered as they came: random deals that a union depends on told the first person's value."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {"age": rng.integers(0, 8, 12), "sex": rng.choice(list("mf"), 12), "ill": rng.choice(list("aab"), 12)}
    )
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "sex": {"role": "quasi-identifier", "kind": "suppression"},
        "ill": {"role": "sensitive"},
    }
    table = af.Table(frame, columns)
    diverse = af.diversify(af.anonymize(table, "mondrian", 2, seed=4), "p-sensitivity", p=2, seed=4)
    assert af.attack(table, diverse, "minimality").iloc[0]["at_risk"] == 0
    other = table.with_others({"ill": frame["ill"].map({"a": "b", "b": "a"})})
    codes = [
        targets_of(each, [{"criterion": "l-diversity", "column": "ill", "l": 1.1}])[1]
        for each in (table, other)
    ]
    assert (codes[0] == 1 - codes[1]).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("criterion", "numbers"),
    [
        ("p-sensitivity", {"p": 2}),
        ("l-diversity", {"l": 1.5}),
        ("entropy-l-diversity", {"l": 1.5}),
        ("recursive-l-diversity", {"c": 2, "l": 2}),
        ("t-closeness", {"t": 0.25}),
        ("beta-likeness", {"beta": 1}),
        ("enhanced-beta-likeness", {"beta": 1}),
        ("delta-disclosure", {"delta": 1}),
        ("alpha-k-anonymity", {"alpha": 0.6}),
    ],
)
def test_unions_of_different_sizes_tell_little_and_make_nobody_certain(
    criterion: str, numbers: dict[str, float]
) -> None:
    """Three classes of two people and one of three, whatever the criterion; by t-closeness most, up to 0.171."""
    rng = np.random.default_rng(1)
    rng.integers(3)
    frame = pd.DataFrame(
        {"age": rng.integers(0, 9, 9), "sex": rng.choice(list("mf"), 9), "ill": rng.choice(list("aab"), 9)}
    )
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "sex": {"role": "quasi-identifier", "kind": "suppression"},
        "ill": {"role": "sensitive"},
    }
    anon = af.anonymize(af.Table(frame, columns), "k-member", 2, seed=1)
    assert sorted(np.bincount(anon.classes)) == [2, 2, 2, 3]
    assert minimality_excess(anon, criterion, seed=1, **numbers) <= (
        0.172 if criterion == "t-closeness" else 0.1
    )
    shares = minimality_shares(anon, criterion, seed=1, **numbers)
    assert not ((shares["probability"] > 1 - 1e-9) & (shares["share"] < 1)).any()


def tables() -> list[Any]:
    return ["census", pytest.param("adult", marks=pytest.mark.data)]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["greedy", "hungarian", "k-member", "mondrian"])
@pytest.mark.parametrize("table", tables())
def test_exchanges_inside_published_classes_name_nobody(method: str, table: str, request: Any) -> None:
    """Before, exchanges of single records between classes named 14 to 31 of 600 people of Adult for certain."""
    if table == "adult":
        request.getfixturevalue("data_folder")
        frame = datasets.adult(complete=True).iloc[:300].reset_index(drop=True)
        records = af.Table(frame, datasets.schema("adult"))
    else:
        records = af.Table(datasets.census_like(200, seed=4), datasets.schema("census_like"))
    anon = af.anonymize(records, method, 5, seed=2)
    shares = minimality_shares(anon, "p-sensitivity", p=2, seed=2, exchanges=100)
    assert len(shares) == records.n
    seen = shares[shares["kept"] >= 30]
    assert len(seen) > 0.5 * records.n
    by_chance = seen["share"] ** seen["kept"]
    assert not ((seen["probability"] == 1) & (by_chance < 1e-6)).any()
    assert (shares["share"] < 1).all()
    # 100 exchanges, hundreds of people: five standard errors
    error = np.sqrt(seen["share"] * (1 - seen["share"]) / seen["kept"])
    spare = 0.1 if method == "mondrian" else 0.0  # its classes have different sizes
    assert (seen["probability"] - seen["share"] <= 5 * error + spare).all()


@pytest.mark.parametrize("method", ["greedy", "mondrian"])
def test_a_partition_without_diversity_refuses_the_whole_table(method: str) -> None:
    """Suppressing it alone would tell everybody's value in it."""
    anon = af.anonymize(people("aaaaaaaa" + "abababab"), method, 2, partition_size=8)
    assert len(anon.partitions) == 2
    with pytest.raises(af.errors.InfeasibleError, match="has less diversity than is asked for"):
        af.diversify(anon, "p-sensitivity", p=2, seed=1)


@pytest.mark.slow
@pytest.mark.data
def test_the_price_of_diversity_is_as_it_is_said_where_diversity_is_offered(data_folder: Path) -> None:
    """Unions cost freeform methods what they cost diverse `k-member`."""
    frame = datasets.adult(complete=True).iloc[:600].reset_index(drop=True)
    records = af.Table(frame, datasets.schema("adult"))
    losses = []
    for method in ("greedy", "k-member"):
        anon = af.anonymize(records, method, 5, seed=1)
        requests: list[tuple[str, dict[str, float]]] = [
            ("p-sensitivity", {"p": 2}), ("entropy-l-diversity", {"l": 1.5}), ("t-closeness", {"t": 0.15}),
        ]  # fmt: skip
        diverse = [af.diversify(anon, criterion, seed=1, **numbers) for criterion, numbers in requests]
        losses.append([f"{each.loss():.3f}" for each in (anon, *diverse)])
    assert re.findall(r"0\.\d{3}", PRICE) == losses[0]
    assert losses[0][1:] == losses[1][1:]
    assert PRICE in json.dumps(flow_schema())
