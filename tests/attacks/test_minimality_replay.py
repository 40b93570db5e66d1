"""Ask why a method changed what it changed: exchange values inside the published classes, and run it again.

The attacker knows everybody's quasi-identifiers and the method. Some changes are explained by few ways to give people their values.

Before: exchanges of single records between classes named 14 to 31 of 600 people of Adult with certainty, although each class had
two values. Now: classes are united along a tree that quasi-identifiers determine, and nobody's value is more probable than its share in
the published class, neither with the seed nor without it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import engine
from anonflow.algorithms.diversity.diversify import diversity_rng
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.release.randomness import checked_seed
from anonflow.risk import Minimality
from tests.cases.flow_files import REPORTED, write_flow
from tests.naive import minimality as naive


def people(ill: str) -> af.Table:
    frame = pd.DataFrame({"age": np.arange(len(ill)) ** 2, "ill": list(ill)})
    return af.Table(
        frame, {"age": {"role": "quasi-identifier", "kind": "numeric"}, "ill": {"role": "sensitive"}}
    )


def united_with_the_next(table: af.Table) -> Any:
    """Pairs of neighbours; those whose values are equal are united with the next ones: a rule that looks at values."""
    anon = af.anonymize(table, "agglomerative", 2)
    values = table.frame["ill"].tolist()
    label = np.arange(table.n) // 2
    for pair in range(table.n // 2 - 1):
        if values[2 * pair] == values[2 * pair + 1] and label[2 * pair] == pair:
            label[2 * pair + 2 : 2 * pair + 4] = label[2 * pair]
    generalization = type(anon.generalization).join_by_class(table.records, label)
    return replace(anon, generalization=generalization, classes=label, replay=united_with_the_next)


def test_a_reason_that_names_people_is_found() -> None:
    """The first pair is united with the second: its two people have the same value, and half of their four rows show it."""
    result = af.attack(people("aabcbc"), united_with_the_next(people("aabcbc")), "minimality").iloc[0]
    assert (result["worst"], result["at_risk"]) == (1.0, 4)
    assert "is certain of the value of 2 of 6 people" in result["sentence"]
    assert "the classes promise 50.0% at most" in result["sentence"]


def test_exchanges_that_are_drawn_find_it_too() -> None:
    """Twelve pairs of people, too many ways to try all."""
    table = people("aabc" * 6)
    result = Minimality(exchanges=400).attack(
        af.risk.AttackContext.of(table, united_with_the_next(table), 2, seed=1)
    )
    assert result.counted
    assert result.worst == 1.0
    assert "is certain of the value of 12 of 24 people" in result.sentence


def joined_by_a_record(table: af.Table) -> Any:
    """Boundaries whose people share a value are suppressed with one record of another value: a rule that looks at values."""
    anon = af.anonymize(table, "greedy-cka", 3, seed=1)
    values, zone = table.frame["ill"].to_numpy(), (table.frame["age"].to_numpy() >= 10).astype(int)
    suppressed = np.zeros(table.n, bool)
    for mine in (zone == 0, zone == 1):
        if len(set(values[mine])) == 1:
            suppressed |= mine
            suppressed[np.flatnonzero(values != values[mine][0])[:1]] = True
    generalization = type(anon.generalization).join_by_class(table.records, zone).with_suppressed(suppressed)
    label = np.where(suppressed, 2, zone)
    classes = np.unique(label, return_inverse=True)[1].astype(np.int64)
    return replace(
        anon, generalization=generalization, classes=classes, suppressed=suppressed, replay=joined_by_a_record
    )


def test_a_record_that_joins_suppressed_ones_names_them() -> None:
    """It passes every criterion; an attacker who runs it again knows whose value differs, so such a request is refused."""
    frame = pd.DataFrame({"age": [3, 7, 1, 6, 9, 6, 16, 14, 19], "ill": list("vuvvuvuuu")})
    age = {"role": "quasi-identifier", "kind": "numeric", "boundary": {"width": 10}}
    table = af.Table(frame, {"age": age, "ill": {"role": "sensitive"}})
    joined = joined_by_a_record(table)
    assert np.flatnonzero(joined.suppressed).tolist() == [0, 6, 7, 8]
    assert af.verify(table, joined, ["covers", "k-anonymity", {"p-sensitivity": {"p": 2}}], k=3)
    result = af.attack(table, joined, "minimality").iloc[0]
    assert (result["worst"], result["at_risk"]) == (1.0, 4)
    assert "is certain of the value of 4 of 9 people" in result["sentence"]
    for method in ("greedy-cka", "greedy", "mondrian", "k-concealment"):
        anon = af.anonymize(table, method, 3, seed=1)
        with pytest.raises(InfeasibleError, match="less diversity than is asked for") as caught:
            af.diversify(anon, "p-sensitivity", p=2, seed=1)
        assert "would have to" not in str(caught.value)  # other ways exist, and tell values


@pytest.mark.parametrize("method", ["greedy", "mondrian"])
def test_a_method_that_looks_at_nobody_gives_no_reason(method: str) -> None:
    table = people("aabbabab")
    diverse = af.diversify(af.anonymize(table, method, 2, seed=1), "p-sensitivity", p=2, seed=1)
    result = af.attack(table, diverse, "minimality").iloc[0]
    assert result["at_risk"] == 0
    assert result["low"] == result["success"] == result["high"] == result["baseline"]


def test_it_says_what_it_needs() -> None:
    table = people("aabbabab")
    graph = af.anonymize(table, "greedy", 3, seed=1)
    with pytest.raises(ParameterError, match="a draw, or covers alone, decide"):
        af.attack(table, graph, "minimality")
    with pytest.raises(ParameterError, match="give the result whose steps are run again"):
        af.attack(table, graph.release(), "minimality")
    with pytest.raises(ParameterError, match="column names a published column"):
        af.attack(table, af.anonymize(table, "mondrian", 2), {"minimality": {"column": "age"}})
    with pytest.raises(ParameterError, match="exchanges must be a whole number of at least 1"):
        Minimality(exchanges=0)


def test_a_flow_tries_it_for_the_owner(tmp_path: Path) -> None:
    steps = (
        "  - diversify: {criterion: p-sensitivity, p: 2, column: income}\n  - draw: {}\n"
        "  - attack: [{minimality: {exchanges: 3}}, homogeneity: {column: income}]\n"
    )
    report = engine.run(write_flow(tmp_path, steps=steps, publish=REPORTED), seed=2**127 + 3)
    assert report.attacks is not None
    assert list(report.attacks["attacker"]) == ["minimality", "homogeneity"]
    assert report.attacks["at_risk"].tolist() == [0, 0]
    assert "asks why it changed" not in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def starts(table: af.Table) -> dict[int, int]:
    """For each record a seed with which the clusters of `k-member` start there."""
    seeds: dict[int, int] = {}
    seed = 0
    while len(seeds) < table.n:
        first = diversity_rng(checked_seed(seed), 0, table.records).integers(table.n)
        seeds.setdefault(int(first), seed)
        seed += 1
    return seeds


@pytest.mark.parametrize(
    "ill",
    [
        "aabbab",
        "aaabbb",
        pytest.param("aabbabab", marks=pytest.mark.slow),
        pytest.param("aaaabbab", marks=pytest.mark.slow),
    ],
)
def test_without_the_seed_a_replay_of_every_start_names_nobody(ill: str) -> None:
    """Every start and every way to deal the values, all equally likely: nobody's value is more probable than its share."""
    anon = af.anonymize(people(ill), "greedy", 2, seed=1)
    seeds = starts(anon.table)
    files: dict[tuple[int, tuple[str, ...]], Any] = {}

    def file_of(seed: int, values: tuple[str, ...]) -> Any:
        if (seed, values) not in files:
            try:
                diverse = af.diversify(
                    anon.of_table(people("".join(values))), "p-sensitivity", p=2, seed=seed
                )
                cells = diverse.frame()["age"].tolist()
                files[seed, values] = (tuple(sorted(zip(cells, values))), tuple(cells))
            except InfeasibleError:
                files[seed, values] = (None, ())
        return files[seed, values]

    for seed in seeds.values():
        file, cells = file_of(seed, tuple(ill))
        same = [
            values
            for values in naive.deals(ill)
            for other in seeds.values()
            if file_of(other, values)[0] == file
        ]
        for i, cell in enumerate(cells):
            shown = [value for text, value in file if text == cell]
            for value in set(ill):
                known = Fraction(sum(values[i] == value for values in same), len(same))
                assert known <= Fraction(shown.count(value), len(shown)), (seed, i)


@pytest.mark.parametrize(
    ("method", "options", "kind"),
    [
        ("k-member", {}, "numeric"),
        ("mondrian", {}, "numeric"),
        ("greedy-cka", {"distinct_first": True}, "numeric"),
        ("full-domain", {"limit": 0.3}, "numeric"),
        pytest.param("local-recoding", {}, "numeric", marks=pytest.mark.slow),
        pytest.param("pattern-guided", {}, "suppression", marks=pytest.mark.slow),
    ],
)
def test_a_method_that_names_people_says_so(method: str, options: dict[str, Any], kind: str) -> None:
    """Every exchange on random tables: values are certain exactly where the promise says that they may be."""
    certain, promises = 0, set()
    for seed in range(8):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(
            {
                "age": rng.integers(0, 8, 10),
                "sex": rng.choice(list("mf"), 10),
                "ill": rng.choice(list("aab"), 10),
            }
        )
        columns = {
            "age": {"role": "quasi-identifier", "kind": kind},
            "sex": {"role": "quasi-identifier", "kind": "suppression"},
            "ill": {"role": "sensitive"},
        }
        table = af.Table(frame, columns)
        try:
            diverse = af.diversify(
                af.anonymize(table, method, 2, seed=seed, **options), "p-sensitivity", p=2, seed=seed
            )
        except InfeasibleError:
            continue
        promises.add("may know values for certain" in diverse.facts["promise"])
        result = af.attack(table, diverse, "minimality").iloc[0]
        assert result["low"] == result["high"]  # all exchanges
        certain += int(re.search(r"certain of the value of (\d+) of", result["sentence"]).group(1))  # type: ignore[union-attr]
        if certain:
            break  # one person is enough where the promise says that there may be some
    assert promises == {certain > 0}
