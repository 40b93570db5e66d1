"""k-concealment, agglomerative and forest against their definitions and naive references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.algorithms.classes.agglomerative import DISTANCES, agglomerative_labels
from anonflow.algorithms.classes.forest import forest_labels
from anonflow.algorithms.concealment.components import Components
from anonflow.algorithms.concealment.components import _widen as widen
from anonflow.algorithms.concealment.expansion import DistinctRecords, expanded, floor, optimal
from anonflow.algorithms.concealment.k_concealment import TARGETS
from anonflow.algorithms.method import Partition
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.generalization import Generalization
from anonflow.kernels.concealment import (
    expand,
    expand_jit,
    mend,
    mend_jit,
    near,
    near_jit,
)
from anonflow.kernels.state import empty_state
from anonflow.loss import record_costs
from anonflow.release import ReleaseWarning
from tests.cases.concealment import LOSSES, codes_of, oracle, part_of, small
from tests.cases.plain_kernels import plainly
from tests.cases.tables import mixed, sampled
from tests.naive import concealment as naive
from tests.strategies import examples, loop


def costs_of(table: af.Table, sets: list[frozenset[int]], loss: str) -> list[float]:
    cost, _ = oracle(table, loss)
    return [cost(members) for members in sets]


# ------------------------------------------------------------------------------------- references


@loop("seed", range(6))
def test_covering_and_concealing_are_algorithms_3_and_5(seed: int) -> None:
    table = small(seed, 12)
    cost, covers = oracle(table, "ncp")
    for k in (2, 3):
        first = naive.expansion(table.n, k, cost, covers)
        both = naive.cover_all(table.n, k, first, cost, covers)
        kk = af.anonymize(table, "k-concealment", k=k, target="(k,k)", randomized=False, order="input")
        np.testing.assert_allclose(
            record_costs(kk.generalization, "ncp").sum(), sum(cost(m) for m in both), atol=1e-9
        )
        last = naive.conceal(table.n, k, both, cost, covers)
        hidden = af.anonymize(table, "k-concealment", k=k, randomized=False, order="input")
        np.testing.assert_allclose(
            record_costs(hidden.generalization, "ncp").sum(), sum(cost(m) for m in last), atol=1e-9
        )


def test_plain_and_compiled_kernels_agree() -> None:
    for loss in LOSSES:
        part = part_of(small(3, 30), loss)
        merged = DistinctRecords.of(part)
        u = len(merged.first)
        results = []
        for nearest, grown, mended in ((near, expand, mend), (near_jit, expand_jit, mend_jit)):
            ids, costs = np.empty((u, 5), np.int32), np.empty((u, 5))
            nearest(floor(part.plan), merged.state, 0, u, ids, costs)
            boxes = empty_state(part.plan, u)
            grown(part.plan, merged.state, merged.count, 0, u, 4, ids, costs, boxes)
            boxes = merged.spread(boxes)
            mended(part.plan, merged.state, np.arange(u), 4, boxes)
            results.append(boxes)
        for item, other in zip(*results, strict=True):
            np.testing.assert_array_equal(item, other)
        clusters = agglomerative_labels(part, 3, DISTANCES["log"], True)[0]
        same = plainly(agglomerative_labels, part, 3, DISTANCES["log"], True)[0]
        np.testing.assert_array_equal(same, clusters)
        np.testing.assert_array_equal(plainly(forest_labels, part, 3)[0], forest_labels(part, 3)[0])


# ------------------------------------------------------------------------------------- what is promised


PEOPLE: tuple[Callable[[], af.Table], ...] = (
    lambda: mixed(40),
    lambda: sampled("nursery", 50),
    lambda: small(1, 30, few=2),
)


@pytest.mark.parametrize(
    ("target", "loss", "randomized", "at"),
    [
        pytest.param(
            target, loss, randomized, at, marks=[pytest.mark.slow] * ((i + j + randomized + at) % 3 > 0)
        )
        for i, target in enumerate(TARGETS)
        for j, loss in enumerate(LOSSES)
        for randomized in (False, True)
        for at in range(len(PEOPLE))
    ],
)
def test_every_target_holds(target: str, loss: str, randomized: bool, at: int) -> None:
    """Quick: each pair of a target, a loss, a table, and of randomized or not."""
    table = PEOPLE[at]()
    for k in (2, 4):
        anon = af.anonymize(
            table, "k-concealment", k=k, target=target, randomized=randomized, loss=loss, seed=5
        )
        assert anon.guarantee == TARGETS[target]
        requests = ["covers", TARGETS[target]]
        if target == "(k,k)-concealment":
            requests += ["(k,k)"]
        assert af.verify(table, anon, requests, k=k)


def test_both_sides_of_the_two_sided_concealment() -> None:
    """Every generalized record has k matches, too: counted by brute force."""
    for seed in range(8):
        table = small(seed, 12)
        for target, originals in (("(k,1)-concealment", False), ("(k,k)-concealment", True)):
            anon = af.anonymize(table, "k-concealment", k=3, target=target, seed=seed)
            own = Generalization.of(table.records)
            graph = np.array(
                [anon.generalization.covers(own.take(np.full(table.n, i))) for i in range(table.n)]
            )
            matches = naive.matches(graph)
            assert matches.sum(axis=0).min() >= 3
            assert not originals or matches.sum(axis=1).min() >= 3


@examples(60)
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_components_are_the_matches_of_the_definition(seed: int, n: int) -> None:
    """Strong components of the reference against Definition 6: all perfect matchings."""
    rng = np.random.default_rng(seed)
    graph = rng.random((n, n)) < rng.choice([0.2, 0.35, 0.6])
    np.fill_diagonal(graph, True)
    np.testing.assert_array_equal(naive.matches(graph), naive.matches_by_matchings(graph))


def _covers(part: Partition, boxes: Any) -> np.ndarray:
    result = Generalization(part.records.domains, *codes_of(part, boxes))
    own = Generalization.of(part.records)
    return np.array([result.covers(own.take(np.full(part.n, i))) for i in range(part.n)])


@loop("few", [2, 5])
def test_components_kept_up_to_date_are_those_found_anew(few: int) -> None:
    assert sum(merged_components(seed, few) for seed in range(4)) > 0  # they did merge


def merged_components(seed: int, few: int) -> int:
    """How many components merge while boxes are widened; after each step they are those found anew."""
    part = part_of(small(seed, 16, few))
    merged = DistinctRecords.of(part)
    boxes = merged.spread(expanded(merged, 2))
    kept = Components(merged, boxes)
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(8):
        widen(part.plan, merged, boxes, int(rng.integers(part.n)), int(rng.integers(len(merged.first))), kept)
        anew = Components(merged, boxes)
        graph = _covers(part, boxes)
        wanted = naive.matches(graph)
        for item in (kept, anew):
            at = item.of[merged.label]
            np.testing.assert_array_equal(graph & (at[:, None] == at[None, :]), wanted)
        np.testing.assert_array_equal(anew.of_original[merged.label], wanted.sum(axis=1))
        np.testing.assert_array_equal(anew.of_box, wanted.sum(axis=0))
        parts.append(len(np.unique(kept.of)))
    return parts[0] - parts[-1]


def test_randomness_comes_from_the_seed() -> None:
    table = sampled("nursery", 60)
    item, same, other = (af.anonymize(table, "k-concealment", k=4, seed=seed).frame() for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(item, same)
    assert not item.equals(other)
    plain = [af.anonymize(table, "k-concealment", k=4, randomized=False, seed=s).frame() for s in (1, 2)]
    pd.testing.assert_frame_equal(*plain)


# ---------------------------------------------------------------------------------------- releasing


@pytest.mark.filterwarnings("ignore:column:anonflow.release.ReleaseWarning")
def test_what_should_not_be_released_warns() -> None:
    table = sampled("nursery", 60)
    for target in ("(k,1)", "(1,k)", "(k,k)", "(k,1)-concealment"):
        anon = af.anonymize(table, "k-concealment", k=3, target=target)
        with pytest.warns(ReleaseWarning, match="for study"):
            anon.release()
    with pytest.warns(ReleaseWarning, match="randomized=True"):
        af.anonymize(table, "k-concealment", k=3, randomized=False).release()


def test_a_randomized_release_does_not_warn(recwarn: pytest.WarningsRecorder) -> None:
    anon = af.anonymize(sampled("nursery", 60), "k-concealment", k=3, seed=1)
    release = anon.release(seed=2**127)
    assert not [
        warning
        for warning in recwarn
        if "randomized" in str(warning.message) or "study" in str(warning.message)
    ]
    assert af.verify(anon.table, release, ["covers", "k-concealment"], k=3, certificate=release.certificate)


def test_a_flow_says_it_too(tmp_path: Any) -> None:
    from anonflow import engine
    from tests.cases.flow_files import REPORTED, write_flow

    flow = write_flow(
        tmp_path, publish=REPORTED, anonymize="{algorithm: k-concealment, k: 3, target: '(k,k)'}"
    )
    report = engine.run(flow)
    assert report.ok
    page = next(path for path in report.published if path.suffix == ".html").read_text(encoding="utf-8")
    assert "every published row covers at least 3 originals" in page
    assert "A row that covers a person need not be a match" in page
    assert any("for study" in warning for warning in report.warnings)
    assert report.results[0].guarantee == "(k,k)"


@loop(
    ("options", "words"),
    [
        ({"target": "k"}, "target must be one of"),
        ({"target": ["concealment"]}, "target must be one of"),
        ({"near": "far"}, "near must be one of expansion, pairs"),
        ({"randomized": 1}, "randomized must be true or false"),
        ({"exact": "no"}, "exact must be true or false"),
        ({"q": 3}, "greater than k - 1 = 3"),
        ({"q": 60}, "at most 59"),
        ({"q": 5.5}, "q must be a whole number"),
    ],
)
def test_options_outside_their_domain_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        af.anonymize(sampled("nursery", 60), "k-concealment", k=4, **options)


@loop("randomized", [False, True])
@loop("target", TARGETS)
def test_one_column_and_as_many_as_there_are(target: str, randomized: bool) -> None:
    """One QI, k up to n, and nothing but copies."""
    qi = {"x": {"role": "quasi-identifier", "kind": "numeric"}}
    for cells in (range(8), [5] * 8):
        table = af.Table(pd.DataFrame({"x": cells}), qi)
        for k in (2, 7, 8):
            anon = af.anonymize(table, "k-concealment", k=k, target=target, randomized=randomized, seed=k)
            assert af.verify(table, anon, ["covers", "guarantee"], k=k)


def test_too_large_k_and_unknown_options_are_refused() -> None:
    table = sampled("nursery", 60)
    with pytest.raises(InfeasibleError):
        af.anonymize(table, "k-concealment", k=61)
    with pytest.raises(ParameterError, match="too many choices"):
        af.anonymize(table, "k-concealment", k=12, exact=True)
    for name, option in (("agglomerative", {"dist": "far"}), ("agglomerative", {"modified": 1})):
        with pytest.raises(ParameterError):
            af.anonymize(table, name, k=3, **option)
    part = part_of(table)
    assert optimal(DistinctRecords.of(part), 2).cost.shape == (60,)


@pytest.mark.parametrize("algorithm", ["k-concealment", "agglomerative", "forest"])
def test_equal_records_lose_nothing(algorithm: str) -> None:
    frame = pd.DataFrame({"x": np.repeat([1, 5, 9], 6), "y": np.repeat(list("abc"), 6)})
    qi = {"role": "quasi-identifier"}
    table = af.Table(frame, {"x": {**qi, "kind": "numeric"}, "y": {**qi, "kind": "categorical"}})
    options = {"randomized": False} if algorithm == "k-concealment" else {}
    assert af.anonymize(table, algorithm, k=6, **options).loss() == 0.0


# ---------------------------------------------------------------------- the classes of Figure 1


def region(covers: np.ndarray, k: int) -> frozenset[str]:
    """Which of the five classes a generalization belongs to; covers[i, j]: record j covers original i."""
    names = set()
    if covers.sum(axis=1).min() >= k:
        names.add("(1,k)")
    if covers.sum(axis=0).min() >= k:
        names.add("(k,1)")
    if names == {"(1,k)", "(k,1)"}:
        names.add("(k,k)")
    if naive.matches(covers).sum(axis=1).min() >= k:
        names.add("k-concealment")
    columns = [covers[:, j].tobytes() for j in range(len(covers))]
    if min(columns.count(column) for column in columns) >= k:
        names.add("k-anonymity")
    return frozenset(names)


REGIONS = {
    "none": frozenset(),
    "(1,k) only": frozenset({"(1,k)"}),
    "(k,1) only": frozenset({"(k,1)"}),
    "(k,k) only": frozenset({"(1,k)", "(k,1)", "(k,k)"}),
    "concealed, not (k,1)": frozenset({"(1,k)", "k-concealment"}),
    "concealed and (k,k)": frozenset({"(1,k)", "(k,1)", "(k,k)", "k-concealment"}),
    "k-anonymous": frozenset({"(1,k)", "(k,1)", "(k,k)", "k-concealment", "k-anonymity"}),
}


@loop("name", REGIONS)
def test_every_region_of_figure_1_has_an_example_that_the_verifier_knows(name: str) -> None:
    k, n = 3, 8
    rng = np.random.default_rng(11)
    for _ in range(400_000):
        covers = rng.random((n, n)) < rng.choice([0.25, 0.4, 0.6])
        if rng.random() < 0.4:
            # one record that covers everybody, and a triangle: what separates concealment from the rest
            covers = np.triu(covers)
            covers[:, int(rng.integers(n))] = True
        if rng.random() < 0.3:
            half = np.arange(n) < n // 2
            covers = half[:, None] == half[None, :]
        if rng.random() < 0.3:
            # two groups, and people between them: covered by the one group, covering the other
            covers = np.zeros((n, n), bool)
            covers[:3, :3] = covers[5:, 5:] = covers[3:5, :3] = covers[5:, 3:5] = True
        if rng.random() < 0.5:
            m = int(rng.integers(3, 7))
            covers[:m, :m] = True
        np.fill_diagonal(covers, True)
        if region(covers, k) == REGIONS[name]:
            break
    else:
        raise AssertionError(f"no example of {name}")
    names = [f"p{i}" for i in range(n)]
    table = af.Table(
        pd.DataFrame({"who": names}), {"who": {"role": "quasi-identifier", "kind": "categorical"}}
    )
    cells = []
    for j in range(n):
        members = [names[i] for i in np.flatnonzero(covers[:, j])]
        cells.append(
            "*" if len(members) == n else members[0] if len(members) == 1 else "{" + "|".join(members) + "}"
        )
    frame = pd.DataFrame({"who": cells})
    for criterion in ("(1,k)", "(k,1)", "(k,k)", "k-concealment", "k-anonymity"):
        holds = bool(af.verify(table, frame, [criterion], k=k))
        assert holds == (criterion in REGIONS[name]), criterion


@pytest.mark.slow
@pytest.mark.data
def test_adult(data_folder: Any) -> None:
    from tests.cases.tables import adult

    anon = af.anonymize(adult(data_folder, 10_000), "k-concealment", k=10, seed=1)
    assert anon.loss() < 0.0475
    assert af.verify(anon.table, anon, ["covers", "guarantee"], k=10)
