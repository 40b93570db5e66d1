"""Diversity as a step: against Algorithm 7 spelled out, every method, suppressed records, one draw, errors."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import anonflow as af
from anonflow import datasets
from anonflow.algorithms.diversity.diversify import diversity_rng
from anonflow.algorithms.diversity.refusal import (
    draws_for,
    refusal_at_least,
    refusal_at_most,
    throwaway_draws,
)
from anonflow.algorithms.diversity.target import (
    DIVERSITIES,
    Target,
    Targets,
    sensitive_codes,
    sensitive_column,
    target_of,
)
from anonflow.algorithms.diversity.widen_matches import widened
from anonflow.algorithms.diversity.within_partition import Request, diverse_partition
from anonflow.algorithms.method import Outcome, Partition
from anonflow.criteria.diversity.diversity import Spread, judged
from anonflow.errors import DataError, InfeasibleError, ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.costs import load, unload
from anonflow.risk.attackers.minimality import lists_of
from anonflow.table import Table
from tests.cases import costs as cost_cases
from tests.cases.freeform import dyadic
from tests.naive import diversify as naive
from tests.naive import loss as naive_loss
from tests.strategies import KINDS, examples, loop, tables

SEED = 2**127 + 11
REQUESTS: list[dict[str, Any]] = [
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


def target_for(criterion: str, value: float, values: np.ndarray, size: int) -> Target:
    name = {"p": "p-sensitivity", "l": "l-diversity"}[criterion]
    return target_of(name, {criterion: value}, np.bincount(values, minlength=size) / len(values))


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
    request = float(most) if rng.random() < 0.5 else max(1.0, float(most) - 0.5)
    joins = [frozenset({j, *rng.integers(0, n, int(rng.integers(0, 2))).tolist()}) for j in range(n)]
    lists = np.full((n, 2), -1)
    for j, join in enumerate(joins):
        lists[j, : len(join)] = sorted(join)
    result = Generalization.join_of(records, lists)
    part = Partition(records, "ncp", Random())
    boxes = load(part.plan, result.lo, result.hi, result.bits)
    shown = np.eye(3, dtype=np.int64)[values]
    zones, nobody = np.zeros(n, np.int64), np.zeros(n, bool)
    _, failing = widened(part, boxes, shown, zones, nobody, target_for(criterion, request, values, 3))
    assert not failing.any()
    label = records.classes()
    first = [int(np.flatnonzero(label == label[i])[0]) for i in range(n)]
    texts = [str(value) for value in values]
    limit = request / (1 + 1e-12)
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


@given(st.integers(0, 2**32), st.integers(3, 6), st.sampled_from(["recursive-l-diversity", "l-diversity"]))
def test_algorithm_7_looks_at_suppressed_records_too(seed: int, n: int, criterion: str) -> None:
    """SlotRows that cover everything are on matchings like others: nobody's values fail without its being said."""
    records, _, _, rng = setting(seed, n)
    values = rng.integers(0, 3, n)
    suppressed = rng.random(n) < 0.4
    result = Generalization.of(records).with_suppressed(suppressed)
    part = Partition(records, "ncp", Random())
    boxes = load(part.plan, result.lo, result.hi, result.bits)
    request = {"l": 2.0, "c": 1.5} if criterion.startswith("recursive") else {"l": 1.5}
    target = target_of(criterion, request, np.bincount(values, minlength=3) / n)
    shown = np.eye(3, dtype=np.int64)[values]
    _, failing = widened(part, boxes, shown, np.zeros(n, np.int64), suppressed, target)
    lo, hi, bits = unload(part.plan, boxes)
    wide = Generalization(records.domains, lo, hi, bits).closure()
    own = Generalization.of(records)
    edges = np.array([wide.covers(own.take(np.full(n, i))) for i in range(n)])  # [original, row]
    rows = naive.matches(n, [frozenset({j}) for j in range(n)], lambda box, i: bool(edges[i, min(box)]))
    for i in range(n):
        counts = shown[sorted(rows[i])].sum(axis=0)
        assert (target.gaps(counts[None, :])[0] > 0) == failing[i]


# ------------------------------------------------------------------------------------------ all methods


@cache
def people(n: int = 120) -> Table:
    frame = datasets.census_like(n, seed=3)
    return Table(frame, datasets.schema("census_like"))


def check_of(parameters: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {parameters["criterion"]: {key: value for key, value in parameters.items() if key != "criterion"}}


@pytest.mark.parametrize(
    ("algorithm", "parameters"),
    [
        pytest.param(
            algorithm,
            parameters,
            marks=[pytest.mark.slow] * ((i + j) % 2),
            id=f"{algorithm}-{parameters['criterion']}",
        )
        for i, algorithm in enumerate(
            ["k-concealment", "mondrian", "agglomerative", "pattern-guided", "greedy", "nh"]
        )
        for j, parameters in enumerate(REQUESTS)
    ],
)
def test_a_diversified_release_passes_from_its_file(
    algorithm: str, parameters: dict[str, Any], tmp_path: Path
) -> None:
    table = people()
    anon = af.anonymize(table, algorithm, 4, seed=1)
    before = anon.frame()
    if algorithm == "pattern-guided" and parameters["criterion"] in ("l-diversity", "t-closeness"):
        # its classes are not united but suppressed, since a union might follow no pattern
        with pytest.raises(InfeasibleError, match="suppressed"):
            af.diversify(anon, **parameters, seed=5)
        return
    diverse = af.diversify(anon, **parameters, seed=5)
    assert anon.frame().equals(before)  # the result it was made from stays as it is
    assert diverse.facts["diversity"] == parameters["criterion"]
    if anon.matches is None:  # classes and covers are widened; a graph is another one
        assert diverse.generalization.covers(anon.generalization).all()
        assert diverse.loss() >= anon.loss()
    release = diverse.release(seed=SEED)
    path = tmp_path / "release.csv"
    release.write(path)
    claims = ["covers", "guarantee", check_of(parameters)]
    af.verify(table, path, ["covers", diverse.guarantee, check_of(parameters)], k=4).raise_if_failed()
    af.verify(table, release, claims, k=4, certificate=release.certificate).raise_if_failed()
    if anon.matches is not None:
        assert release.certificate is not None
        assert (
            not release.certificate.extra_covers
        )  # rows cover what they list, and no more for diversity's sake
        release.certificate.save(tmp_path / "certificate")
        read = type(release.certificate).load(tmp_path / "certificate")
        assert np.array_equal(read.originals, release.certificate.originals)
        af.verify(table, path, claims, k=4, certificate=read).raise_if_failed()


def test_enough_diversity_changes_nothing() -> None:
    for algorithm in ("k-concealment", "mondrian"):
        anon = af.anonymize(people(), algorithm, 4, seed=1)
        diverse = af.diversify(anon, "l-diversity", l=1, seed=5)
        assert diverse.facts["widened"] == 0
        assert diverse.frame().equals(anon.frame())


def test_the_same_seed_makes_the_same_graph() -> None:
    anon = af.anonymize(people(), "greedy", 4, seed=1)
    diverse = af.diversify(anon, "l-diversity", l=1.3, seed=5)
    again = af.diversify(anon, "l-diversity", l=1.3, seed=5)
    assert diverse.facts["widened"] > 0
    assert np.array_equal(diverse.matches, again.matches)
    assert diverse.frame().equals(again.frame())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
@pytest.mark.parametrize("parameters", REQUESTS, ids=lambda request: str(request["criterion"]))
def test_small_tables_keep_the_risk(parameters: dict[str, Any]) -> None:
    """Of tables of under 15 records as many draws fail as is said: rows are far from independent there."""
    failed = draws = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(8, 15))
        frame = pd.DataFrame({"age": rng.integers(0, 30, n), "ill": rng.choice(list("abcd"), n)})
        table = Table(
            frame, {"age": {"role": "quasi-identifier", "kind": "numeric"}, "ill": {"role": "sensitive"}}
        )
        try:
            diverse = af.diversify(af.anonymize(table, "greedy", 3), **parameters, seed=seed)
        except InfeasibleError:
            continue
        for draw in range(25):
            draws += 1
            failed += not af.verify(table, diverse.release(seed=SEED + draw), check_of(parameters), k=3)
    assert draws >= 200
    assert failed <= 0.01 * draws + 3 * math.sqrt(0.01 * draws)


def test_partitions_are_made_diverse_one_by_one() -> None:
    """The step is a function of one partition's outcome: what an engine does partition by partition is the same."""
    table = people(240)
    codes, values, _ = sensitive_codes(table, "Salary-class")
    anon = af.anonymize(table, "greedy", 4, partition_size=60, seed=1)
    diverse = af.diversify(anon, "p-sensitivity", p=2, seed=7, risk=0)
    assert anon.partitions is not None
    target = target_of("p-sensitivity", {"p": 2}, np.bincount(codes, minlength=values) / len(codes))

    class Never(Request):
        def rematch(self, part: Partition, k: int) -> Any:
            raise AssertionError("nobody is matched anew where everything closes")

    request = Never(Targets((target,)), table.n, 4, "greedy", "ncp", {}, "classes", 0, 4)
    for number, at in enumerate(anon.partitions):
        place = np.full(table.n, -1, np.int32)
        place[at] = np.arange(len(at))
        outcome = Outcome(anon.generalization.take(at), matches=place[anon.matches[at]])
        mine = table.records.take(at)
        part = Partition(mine, "ncp", diversity_rng(7, number, mine))
        alone = diverse_partition(part, outcome, codes[at][:, None], request).outcome
        assert alone.matches is not None
        listed = diverse.matches[at][:, : alone.matches.shape[1]]
        assert np.array_equal(np.where(listed >= 0, place[listed], -1), alone.matches)
        assert np.array_equal(alone.generalization.lo, diverse.generalization.take(at).lo)


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
@pytest.mark.parametrize("algorithm", ["greedy", "mondrian", "k-concealment"])
def test_several_sensitive_columns(algorithm: str) -> None:
    """A second column does not undo what the first was made diverse for."""
    frame = datasets.census_like(120, seed=3)
    rng = np.random.default_rng(1)
    frame["ill"] = rng.choice(["flu", "cold", "gout"], 120, p=[0.6, 0.3, 0.1])
    table = Table(frame, {**datasets.schema("census_like"), "ill": {"role": "sensitive"}})
    anon = af.anonymize(table, algorithm, 4, seed=1)
    diverse = af.diversify(anon, "p-sensitivity", p=2, column="ill", seed=1, risk=0)
    result = af.diversify(diverse, "l-diversity", l=1.3, column="Salary-class", seed=1, risk=0)
    assert [each["column"] for each in result.parameters["diversified"]] == ["ill", "Salary-class"]
    claims = ["covers", {"p-sensitivity": {"p": 2, "column": "ill"}}]
    claims.append({"l-diversity": {"l": 1.3, "column": "Salary-class"}})
    af.verify(table, result.release(seed=SEED), claims, k=4).raise_if_failed()


@pytest.mark.parametrize("parameters", REQUESTS, ids=lambda request: str(request["criterion"]))
def test_reciprocal_graphs_stay_reciprocal(parameters: dict[str, Any]) -> None:
    table = people(121)
    anon = af.anonymize(table, "greedy", 4, seed=1, reciprocal=True)
    diverse = af.diversify(anon, **parameters, seed=2)
    edges = {(j, int(i)) for j, row in enumerate(diverse.matches) for i in row if i >= 0}
    assert edges == {(i, j) for j, i in edges}
    release = diverse.release(seed=SEED)
    claims = ["covers", "k-regular", check_of(parameters)]
    af.verify(table, release, claims, k=4, certificate=release.certificate).raise_if_failed()


# ----------------------------------------------------------------------------- the blind way and its bound


def test_the_blind_way_needs_as_many_rows_as_the_shares_say() -> None:
    """A value of 75%, 600 people, 1%: 39 rows; and one fewer is too few by the exact chance."""
    target = target_of("p-sensitivity", {"p": 2}, np.array([0.75, 0.25]))
    rows = Targets((target,)).rows_needed(5, 600, 0.01)
    assert rows == 39
    fails = [0.75**many + 0.25**many for many in (rows - 1, rows)]
    assert 600 * fails[0] > 0.01 >= 600 * fails[1]
    assert Targets((target,)).rows_needed(50, 600, 0.01) == 50
    alike = target_of("l-diversity", {"l": 2}, np.array([0.5, 0.5]))
    assert Targets((alike,)).rows_needed(5, 600, 0.01) is None


@pytest.mark.parametrize("share", [0.5, 0.6, 0.77, 0.95])
@pytest.mark.parametrize(
    "parameters",
    [
        *REQUESTS,
        {"criterion": "entropy-l-diversity", "l": 1.5},
        {"criterion": "entropy-l-diversity", "l": 1.1},
    ],
    ids=lambda request: "-".join(map(str, request.values())),
)
def test_rows_that_are_enough_fail_as_rarely_as_they_say(parameters: dict[str, Any], share: float) -> None:
    """By the exact chance of two values: before, 5 rows were enough for the entropy at a share of 77%, and all draws failed."""
    needed = {name: value for name, value in parameters.items() if name != "criterion"}
    target = target_of(parameters["criterion"], needed, np.array([share, 1 - share]))
    for rows in range(1, 200):
        many = np.arange(rows + 1)
        chance = [math.comb(rows, a) * share**a * (1 - share) ** (rows - a) for a in many.tolist()]
        fails = float(np.sum(chance, where=target.gaps(np.column_stack([many, rows - many])) > 0))
        for risk in (0.01, 1e-5):
            assert target.unsafe(rows, risk) > 0 or fails <= risk * (1 + 1e-9), (rows, risk)


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
@pytest.mark.parametrize("algorithm", ["greedy", "mondrian"])
def test_the_blind_way_looks_at_nobodys_value(algorithm: str) -> None:
    """Whoever has which value: the same graph, or a refusal."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(0, 90, 200), "ill": rng.permutation(["flu", "cold"] * 100)})
    schema = {"age": {"role": "quasi-identifier", "kind": "numeric"}, "ill": {"role": "sensitive"}}
    results = []
    for _ in range(3):
        table = Table(frame.assign(ill=rng.permutation(frame["ill"].to_numpy())), schema)
        anon = af.anonymize(table, algorithm, 4, seed=1)
        results.append(af.diversify(anon, "p-sensitivity", p=2, seed=5, way="blind"))
        release = results[-1].release(seed=SEED)
        assert af.verify(table, release, ["covers", "guarantee", "p-sensitivity(p=2)"], k=4)
    assert all(each.frame().equals(results[0].frame()) for each in results)
    assert "the method did not look at them" in results[0].facts["promise"]
    sorted_by_age = Table(frame.assign(ill=np.where(frame["age"] < 45, "flu", "cold")), schema)
    with pytest.raises(InfeasibleError, match="values follow the quasi-identifiers"):
        af.diversify(af.anonymize(sorted_by_age, algorithm, 4), "p-sensitivity", p=2, way="blind")
    small = af.anonymize(table, algorithm, 4, partition_size=8)
    with pytest.raises(InfeasibleError, match="use larger partitions"):
        af.diversify(small, "p-sensitivity", p=2, way="blind")
    with pytest.raises(ParameterError, match="needs a method with matches or classes"):
        af.diversify(af.anonymize(table, "k-concealment", 4, seed=1), "p-sensitivity", p=2, way="blind")


def test_the_bound_of_the_refusal_rate() -> None:
    """Clopper and Pearson's, by its definition: so few failures have a chance of 5% at the bound."""
    for failed, draws in ((0, 299), (3, 299), (12, 40), (39, 40)):
        bound = refusal_at_most(failed, draws)
        chance = sum(math.comb(draws, f) * bound**f * (1 - bound) ** (draws - f) for f in range(failed + 1))
        assert chance == pytest.approx(0.05)
        least = refusal_at_least(failed, draws)
        above = sum(
            math.comb(draws, f) * least**f * (1 - least) ** (draws - f) for f in range(failed, draws + 1)
        )
        assert above == pytest.approx(0.05 if failed else 1.0)
    assert refusal_at_most(40, 40) == 1
    assert draws_for(0.01) == 299
    assert refusal_at_most(0, 299) <= 0.01 < refusal_at_most(0, 298)


def test_throwaway_draws_are_as_likely_as_all_matchings_say() -> None:
    """A ring of four in twos has two assignments, each with probability one half: 0 and 1 share a value, 2 and 3 do."""
    ring = np.array([[0, 1], [1, 2], [2, 3], [3, 0]], np.int32)
    target = Targets((target_of("p-sensitivity", {"p": 2}, np.array([0.5, 0.5])),))
    # original i is listed by rows i and i - 1; either assignment leaves two originals with one value
    for values, chance in (([0, 0, 1, 1], 1.0), ([0, 1, 0, 1], 0.0), ([0, 1, 1, 1], 1.0)):
        failed, often = throwaway_draws(ring, np.array(values)[:, None], target, 400, b"x" * 16)
        assert failed.mean() == chance
        if values == [0, 0, 1, 1]:
            assert abs(often / 400 - 0.5).max() < 0.12


def test_records_are_visited_in_a_random_order() -> None:
    anon = af.anonymize(people(), "k-concealment", 4, seed=1)
    results = [
        af.diversify(anon, "p-sensitivity", p=4, column="Salary-class", seed=seed) for seed in (1, 2, 1)
    ]
    assert results[0].frame().equals(results[2].frame())
    assert not results[0].frame().equals(results[1].frame())


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


@pytest.mark.filterwarnings("ignore:column:anonflow.release.ReleaseWarning")
@pytest.mark.parametrize("algorithm", ["mondrian", "k-concealment", "greedy", "greedy-cka"])
def test_a_boundary_class_without_diversity_refuses_or_is_suppressed(algorithm: str) -> None:
    """Classes are not suppressed alone, which would tell why; covers of k-concealment promise less."""
    ill = ["flu", "cold"] * 6 + ["flu", "flu", "cold", "flu", "flu", "flu"] + ["cold"] * 6
    table = towns(ill, ["A", "B"] * 6 + ["C", "D"] * 3 + ["E", "F"] * 3)
    anon = af.anonymize(table, algorithm, 3, seed=1)
    assert not anon.suppressed.any()
    if algorithm != "k-concealment":
        with pytest.raises(InfeasibleError, match="a partition or boundary has less diversity"):
            af.diversify(anon, "l-diversity", l=1.5, seed=2)
        return
    diverse = af.diversify(anon, "l-diversity", l=1.5, seed=2)
    suppressed = int(diverse.suppressed.sum())
    assert diverse.suppressed[12:].all()
    assert not diverse.suppressed[:12].any()
    assert diverse.facts["compared"].endswith(
        f"; {suppressed} more records are suppressed for diversity; larger partitions have more"
    )
    release = diverse.release(seed=SEED)
    assert af.verify(table, release, ["covers", "guarantee", "boundary", "l-diversity(l=1.5)"], k=3)


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("full-domain", {"limit": 0.6}),
        ("local-recoding", {"rounds": 1}),
        ("pattern-guided", {"patterns": [[]]}),
        ("mondrian", {}),
    ],
)
def test_what_a_method_suppresses_in_a_new_run_is_counted(algorithm: str, options: dict[str, Any]) -> None:
    """One partition: no larger one is advised."""
    town = ["A"] * 6 + ["B"] * 6 + ["C"] * 2
    frame = pd.DataFrame({"town": town, "ill": ["flu", "cold"] * 3 + ["flu"] * 6 + ["flu", "cold"]})
    columns = {"town": {"role": "quasi-identifier", "kind": "suppression"}, "ill": {"role": "sensitive"}}
    anon = af.anonymize(af.Table(frame, columns), algorithm, 3, seed=1, **options)
    diverse = af.diversify(anon, "p-sensitivity", p=2, seed=2)
    more = int(diverse.suppressed.sum() - anon.suppressed.sum())
    assert more == (0 if algorithm == "mondrian" else 6)
    clause = f"; {more} more records are suppressed for diversity" if more else ""
    assert diverse.facts["compared"].endswith(" before it was made diverse" + clause)


def test_all_suppressed_is_refused() -> None:
    table = towns(["flu"] * 6 + ["cold"] * 6, ["A", "B"] * 3 + ["C", "D"] * 3)
    for algorithm in ("mondrian", "k-concealment"):
        anon = af.anonymize(table, algorithm, 3, seed=1)
        with pytest.raises(InfeasibleError, match="less diversity than is asked for"):
            af.diversify(anon, "p-sensitivity", p=2)
        free = af.anonymize(table, algorithm, 3, seed=1, boundaries=False)
        diverse = af.diversify(free, "p-sensitivity", p=2)
        assert not diverse.suppressed.any()
        assert af.verify(table, diverse.release(seed=SEED), ["covers", "p-sensitivity(p=2)"], k=3)


# ------------------------------------------------------------------------------------------------ errors


def test_what_the_table_does_not_have_is_refused_with_the_largest_value() -> None:
    table = towns(["flu"] * 9 + ["cold"] * 3, ["A"] * 12)
    anon = af.anonymize(table, "mondrian", 3)
    entropy = math.exp(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)))
    for request, words in (
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
            af.diversify(anon, **request)
    diverse = af.diversify(anon, "l-diversity", l=1.3333)
    assert af.verify(table, diverse.release(seed=SEED), ["l-diversity(l=1.3333)"], k=3)


@loop(
    ("parameters", "words"),
    [
        ({"criterion": "l-diversty", "l": 2}, "did you mean 'l-diversity'"),
        ({"criterion": "l-diversity"}, "l-diversity needs l, a number of at least 1"),
        ({"criterion": "l-diversity", "l": 0.5}, "needs l, a number of at least 1"),
        ({"criterion": "l-diversity", "l": math.nan}, "needs l, a number"),
        ({"criterion": "l-diversity", "l": 10**400}, "needs l, a number"),
        ({"criterion": "l-diversity", "l": 2, "p": 2}, "takes l, not p"),
        ({"criterion": "l-diversity", "l": 2, "colum": 2}, "takes l, not colum"),
        ({"criterion": "p-sensitivity", "p": 1.5}, "needs p, a whole number"),
        ({"criterion": "recursive-l-diversity", "l": 2}, "needs c"),
        ({"criterion": "l-diversity", "l": 2, "column": "Salary"}, "did you mean 'Salary-class'"),
        ({"criterion": "l-diversity", "l": 2, "column": "Age"}, "'Age' is not a sensitive column"),
        ({"criterion": "l-diversity", "l": 1.1, "way": "both"}, "way is classes or blind"),
        ({"criterion": "l-diversity", "l": 1.1, "w": 2}, "w is a number between 0 and 1"),
        ({"criterion": "l-diversity", "l": 1.1, "risk": 1}, "risk is a number between 0 and 1"),
    ],
)
def test_parameters_outside_their_domain_are_refused(parameters: dict[str, Any], words: str) -> None:
    anon = af.anonymize(people(), "mondrian", 4)
    with pytest.raises(ParameterError, match=words):
        af.diversify(anon, **parameters)


def test_without_a_column_the_only_sensitive_one_is_meant() -> None:
    assert sensitive_column(None, ("ill",), ("town", "ill")) == "ill"
    for sensitive, words in (((), "no"), (("town", "ill"), "2")):
        with pytest.raises(ParameterError, match=f"the schema has {words} sensitive columns; name one"):
            sensitive_column(None, sensitive, ("town", "ill"))


def test_only_an_anonymization_will_do() -> None:
    with pytest.raises(ParameterError, match="takes an Anonymization"):
        af.diversify(people(), "l-diversity", l=1.1)  # type: ignore[arg-type]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.sampled_from(range(len(REQUESTS))))
def test_gaps_agree_with_the_verifier(counts: list[int], which: int) -> None:
    """A group has no gap exactly if the verifier passes it."""
    request = {key: value for key, value in REQUESTS[which].items() if key != "criterion"}
    name = REQUESTS[which]["criterion"]
    group = np.array(counts)
    overall = np.maximum(group[::-1], 1)
    texts = tuple(f"v{v}" for v in range(len(group)))
    spread = Spread(csr_array(group[None, :]), np.zeros(1, np.int64), "published", texts, overall)
    if not group.sum():
        return
    good, _ = judged(spread, DIVERSITIES[name], request)
    target = target_of(name, request, overall / overall.sum())
    assert bool(good[0]) == (target.gaps(group[None, :])[0] == 0)


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
@examples(25)
@given(st.sampled_from(["k-concealment", "mondrian", "forest", "pattern-guided"]), st.data())
def test_any_table_keeps_the_criterion_or_is_refused(algorithm: str, data: st.DataObject) -> None:
    """Whatever its columns: the release keeps the criterion, or what was asked is refused."""
    table = data.draw(tables(min_n=3, kinds=KINDS))
    values = data.draw(st.sampled_from(REQUESTS))
    k = data.draw(st.integers(2, table.n))
    try:
        anon = af.anonymize(table, algorithm, k, seed=1)
        diverse = af.diversify(anon, **values, seed=2)
    except InfeasibleError:
        return
    assert diverse.generalization.covers(anon.generalization).all()
    per = "class" if diverse.classes is not None else "matches"
    ((name, parameters),) = check_of(values).items()
    claims = ["covers", "guarantee", {name: {**parameters, "per": per}}]
    af.verify(table, diverse.release(seed=SEED), claims, k=k).raise_if_failed()


ILLNESSES = af.Hierarchy.from_nested(
    {"any": {"lung": ["flu", "cold"], "stomach": ["ulcer", "gastritis"], "none": None}}
)


def ill(n: int, hierarchy: Any = None) -> Table:
    rng = np.random.default_rng(n)
    age, organ = rng.integers(20, 60, n), rng.choice(["lung", "stomach"], n)
    # what the young and the old have differs, but below the same nodes
    young = np.where(organ == "lung", "flu", "ulcer")
    old = np.where(organ == "lung", "cold", "gastritis")
    illness = np.where(rng.random(n) < 0.1, "none", np.where(age < 40, young, old))
    frame = pd.DataFrame({"age": age, "illness": illness})
    declared = {"role": "sensitive", **({} if hierarchy is None else {"hierarchy": hierarchy})}
    return Table(frame, {"age": {"role": "quasi-identifier", "kind": "numeric"}, "illness": declared})


@pytest.mark.parametrize("method", ["mondrian", "greedy"])
def test_the_hierarchy_of_a_sensitive_column_is_the_distance_of_t_closeness(method: str) -> None:
    table = ill(400, ILLNESSES)
    anon = af.diversify(af.anonymize(table, method, 4, seed=1), "t-closeness", t=0.35, seed=2)
    release = anon.release(seed=3)
    per = "class" if anon.classes is not None else "matches"
    request = {"t": 0.35, "per": per}
    assert af.verify(table, release, {"t-closeness": request}, k=4)
    # the same as if the tree stood with the criterion; by equal distances it is further
    plain = ill(400)
    assert af.verify(plain, release, {"t-closeness": {**request, "hierarchy": ILLNESSES}}, k=4)
    assert not af.verify(plain, release, {"t-closeness": request}, k=4)
    assert not af.verify(table, release, {"t-closeness": {**request, "distance": "equal"}}, k=4)
    # closeness along the tree asks for less than closeness of all values
    stricter = af.diversify(af.anonymize(plain, method, 4, seed=1), "t-closeness", t=0.35, seed=2)
    assert anon.loss("gcp") < stricter.loss("gcp")


def test_a_value_that_the_tree_of_a_sensitive_column_lacks_is_refused_before_work() -> None:
    short = af.Hierarchy.from_nested({"any": ["flu", "cold"]})
    table = ill(60, short)
    with pytest.raises(DataError, match="3 sensitive values are no leaves"):
        af.diversify(af.anonymize(table, "mondrian", 4, seed=1), "t-closeness", t=0.2)
    # other criteria need no distance
    assert af.diversify(af.anonymize(table, "mondrian", 4, seed=1), "l-diversity", l=1.5).n == 60


@pytest.mark.parametrize(
    ("algorithm", "options"),
    [
        ("two-phase", {"reciprocal": True}),
        ("local-recoding", {}),
        ("greedy", {}),
        pytest.param("full-domain", {"limit": 0.3}, marks=pytest.mark.slow),
        pytest.param("mondrian", {}, marks=pytest.mark.slow),
    ],
)
def test_lists_name_k_people_where_people_have_several_rows(algorithm: str, options: dict[str, Any]) -> None:
    """Random tables: no person has more than one in k of the rows of a list, also where classes were united or formed anew."""
    passed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(12, 40)), int(rng.integers(2, 5))
        frame = pd.DataFrame(
            {
                "id": rng.integers(0, rng.integers(n // 2, n), n),
                "age": rng.integers(0, 40, n),
                "sex": rng.choice(list("mf"), n),
                "ill": rng.choice(list("aaab"), n),
            }
        )
        columns = {
            "id": {"role": "unit"},
            "age": {"role": "quasi-identifier", "kind": "numeric"},
            "sex": {"role": "quasi-identifier", "kind": "suppression"},
            "ill": {"role": "sensitive"},
        }
        try:
            anon = af.anonymize(af.Table(frame, columns), algorithm, k, seed=seed, **options)
            diverse = af.diversify(anon, "p-sensitivity", p=2, seed=seed)
        except InfeasibleError:
            continue
        passed += 1
        label = lists_of(diverse)
        assert label is not None
        for each in np.unique(label[label >= 0]):
            rows = frame["id"][label == each]
            assert rows.value_counts().max() * k <= len(rows), (seed, each)
    assert passed >= 5
