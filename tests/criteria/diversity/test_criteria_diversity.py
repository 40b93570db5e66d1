"""Diversity criteria against brute force, and against pyCANON."""

from __future__ import annotations

import itertools
import math
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from anonflow.algorithms.diversity.target import target_of
from anonflow.candidate_lists import Candidates
from anonflow.criteria import verify
from anonflow.criteria.diversity.diversity_target import too_frequent
from anonflow.errors import DataError, ParameterError
from anonflow.generalization import Generalization
from anonflow.hierarchy import Hierarchy
from anonflow.release import Certificate, Release, publish
from anonflow.table import Table
from tests.cases.criteria import anonymization, naive_case, random_generalization, random_table, release_frame
from tests.naive import criteria as naive
from tests.strategies import loop, seeded

QI = {"role": "quasi-identifier"}

REQUESTS: list[tuple[dict[str, dict[str, Any]], Any]] = [
    ({"p-sensitivity": {"p": 2}}, lambda shown, whole: naive.distinct(shown, 2)),
    ({"l-diversity": {"l": 2}}, lambda shown, whole: naive.frequency(shown, 2)),
    ({"l-diversity": {"l": 1.5}}, lambda shown, whole: naive.frequency(shown, 1.5)),
    ({"entropy-l-diversity": {"l": 1.8}}, lambda shown, whole: naive.entropy(shown, 1.8)),
    ({"entropy-l-diversity": {"l": 2}}, lambda shown, whole: naive.entropy(shown, 2)),
    ({"recursive-l-diversity": {"l": 2, "c": 2}}, lambda shown, whole: naive.recursive(shown, 2, 2)),
    ({"recursive-l-diversity": {"l": 1, "c": 0.9}}, lambda shown, whole: naive.recursive(shown, 1, 0.9)),
    (
        {"t-closeness": {"t": 0.2}},
        lambda shown, whole: not shown or naive.emd_numeric(shown, whole) <= 0.2 + 1e-12,
    ),
    (
        {"t-closeness": {"t": 0.25, "distance": "equal"}},
        lambda shown, whole: not shown or naive.emd_equal(shown, whole) <= 0.25 + 1e-12,
    ),
    ({"beta-likeness": {"beta": 0.5}}, lambda shown, whole: naive.beta_like(shown, whole, 0.5)),
    (
        {"enhanced-beta-likeness": {"beta": 1.5}},
        lambda shown, whole: naive.beta_like(shown, whole, 1.5, True),
    ),
]


@seeded(75, 25)
@loop("per", ["class", "matches"])
def test_diversity_by_definition(per: str, seeds: range) -> None:
    outcomes: dict[int, set[bool]] = {}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(3, 7)), int(rng.integers(2, 4))
        table, kinds = random_table(rng, n)
        result, _ = random_generalization(rng, table, k)
        frame = release_frame(table, result, rng)
        if rng.random() < 0.2:
            frame.iloc[0] = "*"
        case = naive_case(table, kinds, frame, k)
        if case.matches() is None:
            continue
        groups = case.shown(per, frame["s0"].tolist())
        whole = table.frame["s0"].tolist()
        wanted = [
            {name: {**more, "per": per} for name, more in criterion.items()} for criterion, _ in REQUESTS
        ]
        findings = verify(table, frame, wanted, k=k).findings
        for at, ((criterion, judge), finding) in enumerate(zip(REQUESTS, findings, strict=True)):
            want = [judge(values, whole) for values in groups]
            assert finding.holds == all(want), (seed, criterion)
            assert finding.failed == want.count(False), (seed, criterion)
            outcomes.setdefault(at, set()).add(finding.holds)
    assert all(seen == {True, False} for seen in outcomes.values())


@loop("alpha", [0.4, 0.5, 0.8])
def test_alpha_k_anonymity_by_definition(alpha: float) -> None:
    seen = set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        labels = np.sort(rng.integers(0, 3, 10))
        values = "".join(rng.choice(list("abc"), 10))
        table, _, shown = disease(values, labels.tolist())
        finding = verify(table, shown, {"alpha-k-anonymity": {"alpha": alpha, "per": "class"}}, k=3)
        groups = [[values[i] for i in range(10) if labels[i] == label] for label in labels]
        want = [naive.alpha_k(group, alpha, 3) for group in groups]
        assert finding["alpha-k-anonymity"].failed == want.count(False), seed
        seen.add(bool(finding))
    assert False in seen
    assert True in seen or alpha < 0.8


@loop("delta", [0.3, 0.5, 0.7, 1.0])
def test_delta_disclosure_by_definition(delta: float) -> None:
    seen = set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        labels = np.repeat(np.arange(3), 4)
        values = "".join(rng.choice(list("ab"), 12))
        table, _, shown = disease(values, labels.tolist())
        finding = verify(table, shown, {"delta-disclosure": {"delta": delta}}, k=4)["delta-disclosure"]
        want = [naive.delta_disclosed(list(values[i : i + 4]), list(values), delta) for i in (0, 4, 8)]
        assert finding.holds == all(want), seed
        assert finding.failed == 4 * want.count(False)
        seen.add(finding.holds)
    assert True in seen or delta < 0.5
    assert False in seen


def test_delta_disclosure_is_refused_where_classes_cannot_hold_every_value() -> None:
    table, _, shown = disease("abcabc", [0, 0, 0, 1, 1, 1])
    assert verify(table, shown, "delta-disclosure(delta=1)", k=3)
    with pytest.raises(ParameterError, match="has 3 values, more than k = 2"):
        verify(table, shown, "delta-disclosure(delta=1)", k=2)
    # other criteria have another name in the papers
    assert verify(table, shown, "(alpha,k)-anonymity(alpha=0.34)", k=3)["alpha-k-anonymity"].holds
    assert not verify(table, shown, "alpha-k-anonymity(alpha=0.3)", k=3)


def disease(values: str, labels: list[int]) -> tuple[Table, Any, pd.DataFrame]:
    n = len(values)
    frame = pd.DataFrame({"age": np.arange(n), "d": list(values)})
    table = Table(frame, {"age": {**QI, "kind": "numeric"}, "d": {"role": "sensitive"}})
    boxes = Generalization.join_by_class(table.records, np.array(labels))
    shown = boxes.decode()
    shown["d"] = frame["d"]
    return table, anonymization(boxes, 2, classes=np.array(labels)), shown


def test_classes_and_matches_are_told_apart() -> None:
    table, own, shown = disease("aabbab", [0, 0, 0, 0, 1, 1])
    for subject in (own, shown):
        finding = verify(table, subject, "l-diversity(l=2)", k=2)["l-diversity"]
        assert finding.holds
        assert "classes" in finding.detail
    finding = verify(table, shown, "l-diversity(l=2)", k=3)["l-diversity"]
    assert "matches" in finding.detail
    assert verify(table, shown, "l-diversity(l=2)")["l-diversity"].holds


def test_matches_are_counted_only_where_rows_say_whose_they_are() -> None:
    """Neither rows without their table, nor after records were deleted, nor with means in the place of ranges."""
    table, _, shown = disease("aabbab", [0, 0, 0, 0, 1, 1])
    means = Table(
        table.frame, {"age": {**QI, "kind": "numeric", "aggregate": "mean"}, "d": {"role": "sensitive"}}
    )
    of_means = shown.assign(age=["1.5"] * 4 + ["4.5"] * 2)
    for original, rows, another_tool in (
        (table.schema, shown, False),
        (table, shown[:4], True),
        (means, of_means, False),
    ):
        options = {"k": 2, "another_tool": another_tool}
        assert verify(original, rows, "p-sensitivity(p=2, per=class)", **options)["p-sensitivity"].holds
        with pytest.raises(ParameterError, match="of these rows only classes can be judged"):
            verify(original, rows, "p-sensitivity(p=2, per=matches)", **options)


def test_equal_rows_of_a_freeform_release_are_no_classes() -> None:
    """Rows 1-2 show one value twice, but whoever matches them matches rows 0-1, too."""
    frame = pd.DataFrame({"age": [0, 0, 1, 1, 1, 1, 2, 2], "d": list("abababab")})
    table = Table(frame, {"age": {**QI, "kind": "numeric"}, "d": {"role": "sensitive"}})
    shown = pd.DataFrame({"age": ["0", "0", "0-1", "0-1", "1-2", "1-2", "2", "2"], "d": list("abaabbab")})
    for guarantee in ("k-regular", "k-concealment"):
        release = SimpleNamespace(frame=shown, guarantee=guarantee, k=2)
        check = verify(table, release, ["covers", "k-anonymity", "k-regular", "l-diversity(l=2)"])
        check.raise_if_failed()
        assert "values on the rows of matches" in check["l-diversity"].detail
        assert not verify(table, release, "l-diversity(l=2, per=class)")
    classes = verify(table, SimpleNamespace(frame=shown, guarantee="k-anonymity", k=2), "l-diversity(l=2)")
    assert classes["l-diversity"].positions == (2, 3, 4, 5)
    alone = verify(table, shown, "l-diversity(l=2)", k=2)["l-diversity"]
    assert not alone.holds
    assert "per=matches" in alone.detail
    boxes = Generalization.of(table.records)
    ring = np.column_stack([np.arange(8), (np.arange(8) + 1) % 8])
    own = anonymization(boxes, 2, matches=ring, guarantee="k-regular")
    with pytest.raises(ParameterError, match="draw"):
        verify(table, own, "l-diversity(l=2, per=class)")


def test_a_value_may_be_called_star() -> None:
    """Nothing is hidden where as many rows as people have ``*`` for a value."""
    frame = pd.DataFrame({"age": [1, 2, 3, 4], "d": ["*", "a", "*", "a"]})
    table = Table(frame, {"age": {**QI, "kind": "numeric"}, "d": {"role": "sensitive"}})
    shown = pd.DataFrame({"age": ["*"] * 4, "d": ["*", "a", "a", "*"]})
    verify(table, shown, ["covers", "k-anonymity", "l-diversity(l=2)"], k=4).raise_if_failed()
    hidden = pd.DataFrame({"age": ["*", "2-4", "2-4", "2-4"], "d": ["*", "a", "a", "*"]})
    assert verify(table, hidden, "covers", k=3)
    assert not verify(table, hidden, "k-anonymity", k=3), "a row alone that is somebody's"
    hidden = pd.DataFrame({"age": ["*", "1-3", "1-3", "1-3"], "d": ["*", "*", "a", "*"]})
    assert verify(table, hidden, ["covers", "k-anonymity"], k=3)


def test_the_homogeneous_class_is_named() -> None:
    table, own, shown = disease("aaabab", [0, 0, 0, 1, 1, 1])
    finding = verify(table, shown, "p-sensitivity(p=2)", k=3)["p-sensitivity"]
    assert (finding.failed, finding.side, finding.positions) == (3, "published", (0, 1, 2))
    assert verify(table, own, "p-sensitivity(p=2)", k=3)["p-sensitivity"].positions == (0, 1, 2)


def test_diversity_along_a_certificate() -> None:
    n, k = 12, 3
    table, _, _ = disease("abc" * 4, [0] * n)
    matches = np.array([[j, (j + 1) % n, (j + 2) % n] for j in range(n)])
    boxes = Generalization.join_of(table.records, matches)
    shown = boxes.decode()
    shown["d"] = table.frame["d"].to_numpy()[matches[:, 1]]
    finding = verify(table, shown, "p-sensitivity(p=3)", k=k, certificate=matches)["p-sensitivity"]
    assert finding.holds
    assert finding.detail.startswith("column 'd', values on the rows of matches")
    shown["d"] = ["a"] * 4 + ["b"] * 8
    finding = verify(table, shown, "p-sensitivity(p=2)", k=k, certificate=matches)["p-sensitivity"]
    assert finding.side == "original"
    # original i is listed by rows i, i - 1, i - 2
    assert finding.positions == tuple(i for i in range(n) if len({(i - t) % n < 4 for t in range(3)}) == 1)
    with pytest.raises(ParameterError, match="draw"):
        verify(table, anonymization(boxes, k, matches=matches), "p-sensitivity(p=2)")


def test_a_concealed_table_carries_its_own_values() -> None:
    table, _, _ = disease("abab", [0] * 4)
    boxes = Generalization.join_of(table.records, np.array([[0, 1], [1, 2], [2, 3], [3, 0]]))
    assert verify(table, anonymization(boxes, 2), "p-sensitivity(p=2)")


def test_distances_follow_the_column_or_the_hierarchy() -> None:
    tree = {"any": {"respiratory": ["flu", "cold"], "digestive": ["ulcer", "colic"]}}
    values = ["flu", "cold", "ulcer", "colic"]
    frame = pd.DataFrame({"age": range(4), "d": values})
    table = Table(frame, {"age": {**QI, "kind": "numeric"}, "d": {"role": "sensitive"}})
    boxes = Generalization.join_by_class(table.records, np.array([0, 0, 1, 1]))
    shown = boxes.decode()
    shown["d"] = values

    def distance(**more: Any) -> bool:
        return bool(verify(table, shown, {"t-closeness": {**more}}, k=2))

    built = Hierarchy.from_nested(tree)
    # half of the mass crosses the root, whose height is all of the tree's
    for hierarchy in (built, {"nested": tree}):
        assert distance(t=0.5, hierarchy=hierarchy)
        assert not distance(t=0.49, hierarchy=hierarchy)
    assert distance(t=0.5)
    assert not distance(t=0.49)
    # within a branch mass moves half as far: 1/4 of it is in the wrong leaf on either side
    mixed = shown.copy()
    mixed["d"] = ["flu", "ulcer", "cold", "colic"]
    assert distance(t=0.5, hierarchy=built)
    assert bool(verify(table, mixed, {"t-closeness": {"t": 0.25, "hierarchy": built}}, k=2))
    assert not verify(table, mixed, {"t-closeness": {"t": 0.24, "hierarchy": built}}, k=2)
    with pytest.raises(DataError, match="not numbers"):
        distance(t=0.5, distance="numeric")
    with pytest.raises(DataError, match="no leaves"):
        distance(t=0.5, hierarchy=Hierarchy.from_nested({"any": ["flu", "cold"]}))


def test_t_closeness_of_the_paper() -> None:
    """Li et al., section 4: salaries 3k..11k, classes {3,4,5}k at 0.375 and {6,8,11}k at 0.167."""
    salary = [3, 4, 5, 6, 11, 8, 7, 9, 10]
    frame = pd.DataFrame({"age": range(9), "salary": salary})
    table = Table(frame, {"age": {**QI, "kind": "numeric"}, "salary": {"role": "sensitive"}})
    for labels, most in ((np.array([0, 0, 0, 1, 1, 1, 2, 2, 2]), 0.375),):
        boxes = Generalization.join_by_class(table.records, labels)
        finding = verify(table, anonymization(boxes, 3), f"t-closeness(t={most})")["t-closeness"]
        assert finding.holds
        assert not verify(table, anonymization(boxes, 3), f"t-closeness(t={most - 0.001})")
        result = verify(table, anonymization(boxes, 3), "t-closeness(t=0.17)")["t-closeness"]
        assert 3 not in result.positions
        assert 0 in result.positions


@seeded(20, 4)
def test_pycanon_agrees_on_classes(seeds: range) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pycanon import anonymity
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n = 60
        frame = pd.DataFrame({"a": rng.integers(0, 9, n), "b": rng.choice(list("pqr"), n)})
        frame["s"] = rng.choice(list("uvwx"), n, p=[0.4, 0.3, 0.2, 0.1])
        schema = {
            "a": {**QI, "kind": "numeric"},
            "b": {**QI, "kind": "categorical"},
            "s": {"role": "sensitive"},
        }
        table = Table(frame, schema)
        labels = np.argsort(np.lexsort((frame["a"], frame["b"]))) // 12
        boxes = Generalization.join_by_class(table.records, labels)
        shown = boxes.decode().astype(object)
        shown["s"] = frame["s"].astype(object)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            k = int(anonymity.k_anonymity(shown, ["a", "b"]))
            l = int(anonymity.l_diversity(shown, ["a", "b"], ["s"]))
            entropy = int(anonymity.entropy_l_diversity(shown, ["a", "b"], ["s"]))
            t = float(anonymity.t_closeness(shown, ["a", "b"], ["s"]))
        assert verify(table, shown, "k-anonymity", k=k)
        assert not verify(table, shown, "k-anonymity", k=k + 1)
        assert verify(table, shown, f"p-sensitivity(p={l})", k=k)
        assert not verify(table, shown, f"p-sensitivity(p={l + 1})", k=k)
        assert verify(table, shown, f"entropy-l-diversity(l={entropy})", k=k)
        # pyCANON rounds an entropy of exactly log l down
        assert not verify(table, shown, f"entropy-l-diversity(l={entropy + 1 + 1e-6})", k=k)
        assert verify(table, shown, f"t-closeness(t={t + 1e-9}, distance=equal)", k=k)
        assert not verify(table, shown, f"t-closeness(t={t - 1e-9}, distance=equal)", k=k)


def test_a_certificate_tells_a_hidden_row_from_a_value_called_star() -> None:
    frame = pd.DataFrame({"age": [1, 2, 9], "d": ["a", "*", "*"]})
    table = Table(frame, {"age": {**QI, "kind": "numeric"}, "d": {"role": "sensitive"}})
    shown = pd.DataFrame({"age": ["1-2", "*", "1-2"], "d": ["*", "*", "a"]})
    listed = Certificate(
        2,
        "k-regular",
        "greedy",
        np.array([0, 1, 0], np.int32),
        np.array([0, 2, 3]),
        np.array([0, 1, 2], np.int32),
    )
    check = verify(table, shown, ["covers", "k-regular", "p-sensitivity(p=2)"], certificate=listed)
    check.raise_if_failed()


def test_classes_that_read_the_same_are_told_apart_by_the_certificate() -> None:
    """Who runs the method again knows all classes: the first shows a alone, the second b."""
    frame = pd.DataFrame({"age": [1, 2, 1, 2, 3, 3], "d": list("aabbab")})
    table = Table(frame, {"age": {**QI, "kind": "numeric"}, "d": {"role": "sensitive"}})
    shown = pd.DataFrame({"age": ["1-2"] * 4 + ["3"] * 2, "d": list("aabbab")})
    lists = np.array([0, 0, 1, 1, 2, 2], np.int32)
    listed = Certificate(
        2, "k-anonymity", "k-member", lists, np.array([0, 2, 4, 6]), np.arange(6, dtype=np.int32)
    )
    alone = verify(table, shown, "p-sensitivity(p=2)", k=2)["p-sensitivity"]
    assert alone.holds
    assert "holds only against attackers who cannot rerun the method" in alone.detail
    assert verify(table, shown, "p-sensitivity(p=2)", certificate=listed)["p-sensitivity"].failed == 4
    assert verify(table, Release(shown, listed), "p-sensitivity(p=2)")["p-sensitivity"].failed == 4


def test_a_release_is_counted_along_its_own_certificate() -> None:
    n, k = 12, 3
    table, _, _ = disease("abc" * 4, [0] * n)
    matches = np.array([[j, (j + 1) % n, (j + 2) % n] for j in range(n)])
    boxes = Generalization.join_of(table.records, matches)
    nobody = np.zeros(n, bool)
    subject = anonymization(boxes, k, matches=matches, classes=None, suppressed=nobody, table=table)
    subject.algorithm, subject.guarantee = "greedy", "k-regular"
    release = publish(subject, 2**127, rehearsal=True)
    own = verify(table, release, "p-sensitivity(p=2)")["p-sensitivity"]
    finding = verify(table, release, "p-sensitivity(p=2)", certificate=release.certificate)["p-sensitivity"]
    assert (own.holds, own.failed, own.positions) == (finding.holds, finding.failed, finding.positions)
    assert "rerun" not in own.detail


def test_what_no_draw_changes_is_known_before_it() -> None:
    table, _, _ = disease("ababab", [0] * 6)
    closed = np.array(
        [[0, 1, 2, -1], [1, 0, 2, -1], [2, 0, 1, -1], [3, 4, 5, -1], [4, 3, 5, -1], [5, 3, 4, -1]]
    )
    boxes = Generalization.join_of(table.records, closed)
    subject = anonymization(boxes, 3, matches=closed, guarantee="k-regular")
    assert verify(table, subject, "p-sensitivity(p=2)")["p-sensitivity"].holds
    assert not verify(table, subject, "p-sensitivity(p=3)")


def test_complete_components_of_a_listing() -> None:
    def labels(*rows: list[int]) -> list[int] | None:
        width = max(map(len, rows))
        result = Candidates.of_claim(
            np.array([row + [-1] * (width - len(row)) for row in rows])
        ).complete_components(len(rows))
        return None if result is None else result.tolist()

    assert labels([0, 1], [1, 0], [2]) == [0, 0, 1]
    assert labels([0, 2], [1], [2, 0]) == [0, 1, 0]
    assert labels([0, 1], [1, 2], [2, 0]) is None
    assert labels([0, 1], [1, 0], [2, 1]) is None
    assert labels([0, 0], [1, 0]) is None
    assert labels([0, 1], [0, 1], [0, 1]) is None
    assert labels([0, 5], [1, 0]) is None


@loop(
    ("request_", "union"),
    [
        (request_, name in ("l-diversity", "beta-likeness", "enhanced-beta-likeness", "p-sensitivity"))
        for request_ in REQUESTS
        for name in request_[0]
    ],
)
def test_independent_rows_keep_a_criterion_as_often_as_said(request_: Any, union: bool) -> None:
    """Whoever is told that the risk is kept, keeps it; and a bound of values added up is no more than that many times the chance."""
    (wanted, holds), rng = request_, np.random.default_rng(3)
    name, parameters = next(iter(wanted.items()))
    for _ in range(12):
        counts = rng.integers(1, 9, rng.integers(2, 5))
        whole = [value for value, count in enumerate(counts.tolist()) for _ in range(count)]
        target = target_of(name, parameters, counts / counts.sum(), True)
        for rows in (1, 3, 6):
            chance = math.fsum(
                math.prod(counts[value] / counts.sum() for value in rows_of)
                for rows_of in itertools.product(range(len(counts)), repeat=rows)
                if not holds(list(rows_of), whole)
            )
            for risk in (0.5, 0.1, 0.01, 1e-4):
                unsafe = target.unsafe(rows, risk)
                assert unsafe > 0 or chance <= risk * (1 + 1e-9), (counts, rows, risk)
                if union and holds(whole, whole):
                    assert unsafe == 0 or len(counts) * chance > risk * (1 - 1e-9), (counts, rows, risk)


@loop("request_", REQUESTS)
def test_one_more_of_a_wanted_value_brings_a_group_nearer(request_: Any) -> None:
    rng, compared = np.random.default_rng(5), 0
    name, parameters = next(iter(request_[0].items()))
    for _ in range(40):
        share = rng.dirichlet(np.full(4, 2.0))
        counts = rng.integers(0, 4, 4).astype(np.float64)
        target = target_of(name, parameters, share, True)
        gap, nearer = target.gaps(counts[None, :])[0], target.gaps(counts + np.eye(4))
        lowers = nearer < gap - 1e-12
        if lowers.any():
            assert target.wanted(counts).tolist() == lowers.tolist(), (counts, share)
            compared += 1
    assert compared


def test_one_row_in_l_is_not_one_too_many() -> None:
    """49 times 1 / 49 is a little less than 1 in binary fractions."""
    for l in range(2, 120):
        for times in (1, 3):
            rows = l * times
            fewer = math.fsum(math.comb(rows, x) * (l - 1) ** (rows - x) / l**rows for x in range(times + 1))
            bound = too_frequent(np.array([1 / l]), rows, rows * (1 / l))
            assert bound == pytest.approx(1 - fewer, rel=1e-9, abs=1e-12), (l, times)


def test_of_many_values_the_most_frequent_are_awaited() -> None:
    """More sets of p - 1 values than can be tried: with enough rows each of the p most frequent values is surely there."""
    target = target_of("p-sensitivity", {"p": 3}, np.array([0.4, 0.3, 0.2, *[0.1 / 300] * 300]), False)
    for rows, risk in itertools.product((1, 2, 5, 20, 60, 200), (0.5, 0.01, 1e-6)):
        absent = math.fsum((1 - share) ** rows for share in (0.4, 0.3, 0.2))
        want = max(0.0, math.log(absent / risk))
        assert target.unsafe(rows, risk) == pytest.approx(want, abs=1e-12), (rows, risk)


@loop("most", [2**53 + 1, 2**61, 2**62, 2**63, 10**20])
def test_no_group_has_more_values_than_rows(most: int) -> None:
    """l = 2^62 times four rows of one value is 2^64, which 64 bits take for 0: l-diversity held."""
    frame = pd.DataFrame({"age": [30] * 4 + [50] * 4, "ill": list("aaaabbbb")})
    about = {"age": {"role": "quasi-identifier", "kind": "numeric"}, "ill": {"role": "sensitive"}}
    table = Table(frame, about)
    requests: list[tuple[str, dict[str, Any]]] = [
        ("l-diversity", {"l": most}),
        ("p-sensitivity", {"p": most}),
        ("entropy-l-diversity", {"l": most}),
        ("recursive-l-diversity", {"l": most, "c": 2}),
    ]
    for name, parameters in requests:
        (finding,) = verify(table, frame, [{name: parameters}], k=4).findings
        assert finding.holds is False, name
        target = target_of(name, parameters, np.array([0.5, 0.5]), True)
        assert target.gaps(np.array([[4, 4]]))[0] > 0, name
