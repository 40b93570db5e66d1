"""Diversity as a step: against Algorithms 7 and 8 spelled out, every method, suppressed records, one draw, errors."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import anonflow as af
from anonflow import datasets
from anonflow.algorithms.diversity.merge_classes import united
from anonflow.algorithms.diversity.target import Target
from anonflow.algorithms.diversity.widen_matches import Shown, widened
from anonflow.algorithms.method import Partition
from anonflow.criteria.diversity import Spread, _judged
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.costs import load, unload
from anonflow.table import Table
from tests.cases import costs as cost_cases
from tests.cases.freeform import dyadic
from tests.naive import diversify as naive
from tests.naive import loss as naive_loss
from tests.strategies import tables

SEED = 2**127 + 11
ASKED: list[dict[str, Any]] = [
    {"criterion": "p-sensitivity", "p": 2},
    {"criterion": "l-diversity", "l": 1.3},
    {"criterion": "entropy-l-diversity", "l": 1.3},
    {"criterion": "recursive-l-diversity", "c": 9, "l": 2},
    {"criterion": "t-closeness", "t": 0.3},
]


class Random(np.random.Generator):
    """A generator whose permutations change nothing: records are visited in their order."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def permutation(self, x: Any, axis: int = 0) -> np.ndarray:
        return np.arange(x)


def target_for(criterion: str, asked: float, values: np.ndarray, size: int) -> Target:
    name = {"p": "p-sensitivity", "l": "l-diversity"}[criterion]
    return Target(name, {criterion: asked}, np.bincount(values, minlength=size) / len(values))


def setting(seed: int, n: int) -> tuple[Any, naive.Cost, naive.Covers, np.random.Generator]:
    rng = np.random.default_rng(seed)
    records = dyadic(rng, n, rng.integers(0, 4, int(rng.integers(1, 3))).tolist())
    plain = cost_cases.attributes(records)

    @cache
    def cost(rows: frozenset[int]) -> Fraction:
        return Fraction(naive_loss.join_cost(plain, records.codes, sorted(rows), "ncp"))

    @cache
    def covers(box: frozenset[int], i: int) -> bool:
        return all(
            int(records.codes[i, a]) in naive_loss.closure(attribute, {int(records.codes[m, a]) for m in box})
            for a, attribute in enumerate(plain)
        )

    return records, cost, covers, rng


@given(st.integers(0, 2**32), st.integers(2, 6), st.sampled_from(["p", "l"]))
def test_algorithm_7_as_spelled_out(seed: int, n: int, criterion: str) -> None:
    records, cost, covers, rng = setting(seed, n)
    values = rng.integers(0, 3, n)
    most = {"p": len(set(values.tolist())), "l": n / np.bincount(values).max()}[criterion]
    asked = float(most) if rng.random() < 0.5 else max(1.0, float(most) - 0.5)
    joins = [frozenset({j, *rng.integers(0, n, int(rng.integers(0, 2))).tolist()}) for j in range(n)]
    lists = np.full((n, 2), -1)
    for j, join in enumerate(joins):
        lists[j, : len(join)] = sorted(join)
    made = Generalization.join_of(records, lists)
    part = Partition(records, "ncp", Random())
    boxes = load(part.plan, made.lo, made.hi, made.bits)
    shown = Shown(values, np.arange(n)[:, None], np.ones(n, bool), 3)
    widened(part, boxes, shown, np.zeros(n, np.int64), target_for(criterion, asked, values, 3), 0.01)
    label = records.classes()
    first = [int(np.flatnonzero(label == label[i])[0]) for i in range(n)]
    texts = [str(value) for value in values]
    limit = asked / (1 + 1e-12)
    expected = naive.algorithm_7(
        n, joins, texts, sorted(set(first)), first, cost, covers, criterion, limit
    )  # fmt: skip
    wide = np.full((n, n), -1)
    for j, join in enumerate(expected):
        wide[j, : len(join)] = sorted(join)
    right = Generalization.join_of(records, wide)
    lo, hi, bits = unload(part.plan, boxes)
    assert np.array_equal(lo, right.lo)
    assert np.array_equal(hi, right.hi)
    assert np.array_equal(bits, right.bits)


@given(
    st.integers(0, 2**32), st.integers(2, 14), st.sampled_from(["p", "l"]), st.sampled_from([0.0, 0.125, 1.0])
)
def test_algorithm_8_as_spelled_out(seed: int, n: int, criterion: str, w: float) -> None:
    records, cost, _, rng = setting(seed, n)
    values = rng.integers(0, 3, n)
    labels = np.unique(rng.integers(0, max(1, n // 2), n), return_inverse=True)[1]
    b = int(labels.max()) + 1
    # halves and quarters, whose gaps have no rounding to speak of, or a whole number of values
    asked = float(len(set(values.tolist()))) if criterion == "p" else 1.0 + (n > 3) * 0.25
    if criterion == "l" and n / np.bincount(values).max() < asked:
        asked = 1.0
    clusters = [np.flatnonzero(labels == c).tolist() for c in range(b)]
    made = Generalization.join_by_class(records, labels).take(np.array([c[0] for c in clusters] + [0]))
    part = Partition(records, "ncp", np.random.default_rng(0))
    boxes = load(part.plan, made.lo, made.hi, made.bits)
    counts = np.zeros((b + 1, 3), np.int64)
    np.add.at(counts, (labels, values), 1)
    target = target_for(criterion, asked, values, 3)
    into, unions = united(part.plan, boxes, counts, np.zeros(b + 1, np.int64), b, 2, target, w)
    found = [np.flatnonzero(into[labels] == c).tolist() for c in np.unique(into[labels])]
    # prices are rounded: what is checked is that every union was one of the cheapest
    assert unions == b - len(found)
    texts = [str(value) for value in values]
    assert all(not naive.lacks(criterion, asked, (texts[i] for i in cluster)) for cluster in found)
    expected = naive.algorithm_8(clusters, texts, cost, criterion, asked, Fraction(w))
    if criterion == "p":
        assert found == expected


# ------------------------------------------------------------------------------------------ all methods


@cache
def people(n: int = 120) -> Table:
    frame = datasets.census_like(n, seed=3)
    return Table(frame, datasets.schema("census_like"))


def check_of(asked: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {asked["criterion"]: {key: value for key, value in asked.items() if key != "criterion"}}


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: str(asked["criterion"]))
@pytest.mark.parametrize(
    "algorithm", ["k-concealment", "mondrian", "agglomerative", "pattern-guided", "greedy", "nh"]
)
def test_a_diversified_release_passes_from_its_file(
    algorithm: str, asked: dict[str, Any], tmp_path: Path
) -> None:
    table = people()
    anon = af.anonymize(table, algorithm, 4, seed=1)
    before = anon.frame()
    if algorithm == "pattern-guided" and asked["criterion"] == "t-closeness":
        # its classes are not united but suppressed, since a union might follow no pattern
        with pytest.raises(InfeasibleError, match="every record would have to be suppressed"):
            af.diversify(anon, **asked, seed=5)
        return
    made = af.diversify(anon, **asked, seed=5)
    assert anon.frame().equals(before)  # the result it was made from stays as it is
    assert made.facts["diversity"] == asked["criterion"]
    assert made.generalization.covers(anon.generalization).all()
    assert made.loss() >= anon.loss()
    release = made.release(seed=SEED)
    path = tmp_path / "release.csv"
    release.write(path)
    claims = ["covers", "guarantee", check_of(asked)]
    af.verify(table, path, ["covers", made.guarantee, check_of(asked)], k=4).raise_if_failed()
    af.verify(table, release, claims, k=4, certificate=release.certificate).raise_if_failed()
    if anon.matches is not None:
        assert np.array_equal(made.matches, anon.matches)  # extra covers are no matches
        assert release.certificate is not None
        assert release.certificate.extra_covers
        release.certificate.save(tmp_path / "certificate")
        read = type(release.certificate).load(tmp_path / "certificate")
        assert read.extra_covers
        assert np.array_equal(read.originals, release.certificate.originals)
        af.verify(table, path, claims, k=4, certificate=read).raise_if_failed()


def test_enough_diversity_changes_nothing() -> None:
    for algorithm in ("k-concealment", "mondrian"):
        anon = af.anonymize(people(), algorithm, 4, seed=1)
        made = af.diversify(anon, "l-diversity", l=1, seed=5)
        assert made.facts["widened"] == 0
        assert made.frame().equals(anon.frame())


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
def test_the_widening_does_not_look_at_the_draw() -> None:
    """The draws of a k-regular result are those it would have had without: the same seed, the same owners."""
    anon = af.anonymize(people(), "greedy", 4, seed=1)
    made = af.diversify(anon, "l-diversity", l=1.3, seed=5)
    again = af.diversify(anon, "l-diversity", l=1.3, seed=5)
    assert made.facts["widened"] > 0
    assert np.array_equal(made.generalization.lo, again.generalization.lo)
    for seed in (SEED, SEED + 1):
        plain, wide = anon.release(seed=seed), made.release(seed=seed)
        assert np.array_equal(plain.truth, wide.truth)


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
def test_the_draw_rarely_fails() -> None:
    """Of many draws as many fail as the risk allows, and not all of what k rows alone would fail."""
    anon = af.anonymize(people(), "greedy", 4, seed=1)
    made = af.diversify(anon, "l-diversity", l=1.3, seed=5, risk=0.05)
    bare = failed = 0
    for seed in range(40):
        release = made.release(seed=SEED + seed)
        failed += not af.verify(people(), release, "l-diversity(l=1.3)", k=4)
        bare += not af.verify(people(), anon.release(seed=SEED + seed), "l-diversity(l=1.3)", k=4)
    assert failed <= 6  # 40 draws at 0.05: more than 6 has a chance of about 0.003
    assert bare >= 30


def test_records_are_visited_in_a_random_order() -> None:
    anon = af.anonymize(people(), "k-concealment", 4, seed=1)
    made = [af.diversify(anon, "p-sensitivity", p=4, column="Salary-class", seed=seed) for seed in (1, 2, 1)]
    assert made[0].frame().equals(made[2].frame())
    assert not made[0].frame().equals(made[1].frame())


# ------------------------------------------------------------------------------ suppressed and boundaries


def towns(values: list[str], towns_of: list[str]) -> Table:
    frame = pd.DataFrame({"age": np.arange(len(values)) % 7, "town": towns_of, "ill": values})
    tree = {
        "*": {
            "north": {"A": None, "B": None},
            "south": {"C": None, "D": None},
            "west": {"E": None, "F": None},
        }
    }
    return Table(
        frame,
        {
            "age": {"role": "quasi-identifier", "kind": "numeric"},
            "town": {
                "role": "quasi-identifier",
                "kind": "hierarchy",
                "hierarchy": {"nested": tree},
                "boundary": ["north", "south", "west"],
            },
            "ill": {"role": "sensitive"},
        },
    )


@pytest.mark.parametrize("algorithm", ["mondrian", "k-concealment", "greedy"])
def test_a_boundary_class_without_diversity_is_suppressed(algorithm: str) -> None:
    ill = ["flu", "cold"] * 6 + ["flu", "flu", "cold", "flu", "flu", "flu"] + ["cold"] * 6
    table = towns(ill, ["A", "B"] * 6 + ["C", "D"] * 3 + ["E", "F"] * 3)
    anon = af.anonymize(table, algorithm, 3, seed=1)
    assert not anon.suppressed.any()
    made = af.diversify(anon, "l-diversity", l=1.5, seed=2)
    assert made.suppressed[12:].all()
    assert not made.suppressed.all()
    if algorithm != "mondrian":
        assert not made.suppressed[:12].any()
    release = made.release(seed=SEED)
    assert af.verify(table, release, ["covers", "guarantee", "boundary", "l-diversity(l=1.5)"], k=3)


def test_all_suppressed_is_refused() -> None:
    table = towns(["flu"] * 6 + ["cold"] * 6, ["A", "B"] * 3 + ["C", "D"] * 3)
    for algorithm in ("mondrian", "k-concealment"):
        anon = af.anonymize(table, algorithm, 3, seed=1)
        with pytest.raises(InfeasibleError, match="every record would have to be suppressed"):
            af.diversify(anon, "p-sensitivity", p=2)
        free = af.anonymize(table, algorithm, 3, seed=1, boundaries=False)
        made = af.diversify(free, "p-sensitivity", p=2)
        assert not made.suppressed.any()
        assert af.verify(table, made.release(seed=SEED), ["covers", "p-sensitivity(p=2)"], k=3)


# ------------------------------------------------------------------------------------------------ errors


def test_what_the_table_does_not_have_is_refused_with_the_largest_value() -> None:
    table = towns(["flu"] * 9 + ["cold"] * 3, ["A"] * 12)
    anon = af.anonymize(table, "mondrian", 3)
    entropy = math.exp(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)))
    for asked, words in (
        ({"criterion": "l-diversity", "l": 1.5}, "largest feasible l is 1.3333"),
        ({"criterion": "p-sensitivity", "p": 3}, "largest feasible p is 2"),
        (
            {"criterion": "entropy-l-diversity", "l": 1.9},
            f"largest feasible l is {math.floor(entropy * 10000) / 10000:g}",
        ),
        ({"criterion": "recursive-l-diversity", "c": 4, "l": 3}, "largest feasible l is 2"),
        ({"criterion": "recursive-l-diversity", "c": 0.5, "l": 2}, "use a larger c"),
    ):
        with pytest.raises(InfeasibleError, match=words):
            af.diversify(anon, **asked)
    made = af.diversify(anon, "l-diversity", l=1.3333)
    assert af.verify(table, made.release(seed=SEED), ["l-diversity(l=1.3333)"], k=3)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"criterion": "l-diversty", "l": 2}, "did you mean 'l-diversity'"),
        ({"criterion": "l-diversity"}, "l-diversity needs l, a number of at least 1"),
        ({"criterion": "l-diversity", "l": 0.5}, "needs l, a number of at least 1"),
        ({"criterion": "l-diversity", "l": math.nan}, "needs l, a number"),
        ({"criterion": "l-diversity", "l": 10**400}, "needs l, a number"),
        ({"criterion": "l-diversity", "l": 2, "p": 2}, "takes l, not p"),
        ({"criterion": "p-sensitivity", "p": 1.5}, "needs p, a whole number"),
        ({"criterion": "recursive-l-diversity", "l": 2}, "needs c"),
        ({"criterion": "l-diversity", "l": 2, "column": "Salary"}, "did you mean 'Salary-class'"),
        ({"criterion": "l-diversity", "l": 2, "column": "Age"}, "'Age' is no sensitive column"),
        ({"criterion": "l-diversity", "l": 1.1, "w": 2}, "w is a number between 0 and 1"),
        ({"criterion": "l-diversity", "l": 1.1, "risk": 0}, "risk is a number between 0 and 1"),
    ],
)
def test_wrong_parameters(asked: dict[str, Any], words: str) -> None:
    anon = af.anonymize(people(), "mondrian", 4)
    with pytest.raises(ParameterError, match=words):
        af.diversify(anon, **asked)


def test_only_an_anonymization_will_do() -> None:
    with pytest.raises(ParameterError, match="takes an Anonymization"):
        af.diversify(people(), "l-diversity", l=1.1)  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.sampled_from(range(len(ASKED))))
def test_gaps_agree_with_the_verifier(counts: list[int], which: int) -> None:
    """A group has no gap exactly if the verifier passes it."""
    asked = {key: value for key, value in ASKED[which].items() if key != "criterion"}
    name = ASKED[which]["criterion"]
    group = np.array(counts)
    overall = np.maximum(group[::-1], 1)
    texts = tuple(f"v{v}" for v in range(len(group)))
    spread = Spread(csr_array(group[None, :]), np.zeros(1, np.int64), "published", texts, overall)
    if not group.sum():
        return
    good, _ = _judged(spread, name, asked)
    target = Target(name, asked, overall / overall.sum())
    assert bool(good[0]) == (target.gaps(group[None, :])[0] == 0)


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
@settings(max_examples=25)
@given(tables(min_n=3), st.sampled_from(["k-concealment", "mondrian", "forest", "pattern-guided"]), st.data())
def test_any_table(table: Table, algorithm: str, data: st.DataObject) -> None:
    """Whatever its columns: the release keeps the criterion, or what was asked is refused."""
    asked = data.draw(st.sampled_from(ASKED))
    k = data.draw(st.integers(2, table.n))
    try:
        anon = af.anonymize(table, algorithm, k, seed=1)
        made = af.diversify(anon, **asked, seed=2)
    except InfeasibleError:
        return
    assert made.generalization.covers(anon.generalization).all()
    per = "class" if made.classes is not None else "matches"
    ((name, parameters),) = check_of(asked).items()
    claims = ["covers", "guarantee", {name: {**parameters, "per": per}}]
    af.verify(table, made.release(seed=SEED), claims, k=k).raise_if_failed()
