"""Boundaries: Miller 2008's properties, each a test, and every method inside them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow import datasets
from anonflow.criteria.boundaries import beyond_cells
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.generalization import Generalization
from anonflow.partition import boundary_classes, cuts, divided, ordered, plan
from anonflow.table import Table
from tests.cases.boundaries import (
    TREE,
    Case,
    cases,
    hierarchy,
    people,
)
from tests.checks import SOON, TAKE_EVERY_KIND
from tests.strategies import examples, loop


def published(case: Case, classes: np.ndarray) -> Generalization:
    return Generalization.join_by_class(case.table.records, classes)


def cells_beyond(case: Case, generalization: Generalization) -> int:
    """Cells beyond their own original's boundary, straight from the arrays."""
    beyond = 0
    for t, a in enumerate(generalization.layout.ranges):
        bound = case.table.domains[a].bound
        if bound is not None:
            own = bound[case.table.codes[:, a]]
            beyond += int(((generalization.lo[t] < own[:, 0]) | (generalization.hi[t] > own[:, 1])).sum())
    return beyond


@given(cases(max_n=12))
def test_classes_are_those_of_equal_maximum_allowed_values(case: Case) -> None:
    labels = boundary_classes(case.table.records)
    magvals = case.magvals()
    for i in range(case.n):
        for j in range(case.n):
            # without a mark a column has no boundary: everybody's is the root
            assert (labels[i] == labels[j]) == (magvals[i] == magvals[j])


@given(cases())
def test_property_1_a_cluster_of_different_boundaries_breaks_one(case: Case) -> None:
    labels = boundary_classes(case.table.records)
    for i, j in combinations(range(case.n), 2):
        if labels[i] != labels[j]:
            classes = np.arange(case.n)
            classes[j] = i
            assert cells_beyond(case, published(case, classes)) >= 1


@examples(60)
@given(cases(), st.integers(2, 3))
def test_properties_2_and_4_generalization_alone_will_do_if_and_only_if_mam_is_k_anonymous(
    case: Case, k: int
) -> None:
    sizes = np.bincount(boundary_classes(case.table.records))
    assert case.maskable(list(range(case.n)), k) == bool((sizes >= k).all())


@given(cases(max_n=12))
def test_property_3_mam_itself_keeps_every_boundary(case: Case) -> None:
    generalization = published(case, boundary_classes(case.table.records))
    assert cells_beyond(case, generalization) == 0
    # as far as the boundaries let each value go
    records, layout = case.table.records, generalization.layout
    lo, hi = generalization.lo.copy(), generalization.hi.copy()
    for t, a in enumerate(layout.ranges):
        bound = records.domains[a].bound
        if bound is not None:
            lo[t], hi[t] = bound[records.codes[:, a]].T
        else:
            lo[t], hi[t] = 0, records.domains[a].size - 1
    bits = generalization.bits | np.bitwise_or.reduce(generalization.bits, axis=1, keepdims=True)
    mam = Generalization(records.domains, lo, hi, bits)
    assert cells_beyond(case, mam) == 0
    pairs = set(zip(boundary_classes(records).tolist(), mam.classes().tolist(), strict=True))
    assert len(pairs) == len(set(mam.classes().tolist())) == len(set(boundary_classes(records).tolist()))


@given(cases(max_n=12), st.integers(2, 3))
def test_property_5_without_out_generalization_is_enough(case: Case, k: int) -> None:
    out = case.out(k)
    if len(out) == case.n:
        with pytest.raises(InfeasibleError, match=r"boundaries|use a k"):
            divided(case.table.records, None, k)
        return
    parts, left = divided(case.table.records, None, k)
    assert set(left.tolist()) == out
    classes = np.full(case.n, len(parts))
    for number, part in enumerate(parts):
        assert len(part) >= k
        classes[part] = number
    kept = np.flatnonzero(classes < len(parts))
    assert (
        cells_beyond(case, published(case, np.where(classes < len(parts), classes, 1000 + np.arange(case.n))))
        == 0
    )
    assert sorted([*kept, *left]) == list(range(case.n))


@examples(40)
@given(cases(max_n=5), st.integers(2, 3))
def test_property_6_no_subset_with_a_record_of_out_can_be_masked(case: Case, k: int) -> None:
    out = case.out(k)
    for size in range(1, case.n + 1):
        for rows in combinations(range(case.n), size):
            if out & set(rows):
                assert not case.maskable(list(rows), k)


@given(cases(max_n=12), st.integers(2, 3), st.sampled_from(["lexicographic", "input", "random"]))
def test_partitions_lie_inside_classes(case: Case, k: int, order: str) -> None:
    if len(case.out(k)) == case.n:
        return
    records = case.table.records
    parts, left = divided(records, k, k, order, np.random.default_rng(3))
    labels = boundary_classes(records)
    assert all(len(set(labels[part])) == 1 and len(part) >= k for part in parts)
    assert sorted(np.concatenate([*parts, left]).tolist()) == list(range(case.n))
    runs = cuts(records, k, k)
    along = ordered(records, order, np.random.default_rng(3), boundaries=True)
    assert [along[run].tolist() for run in runs] == [part.tolist() for part in parts]


def test_without_boundaries_partitions_are_those_of_the_plan() -> None:
    frame = pd.DataFrame({"a": np.arange(50) % 7})
    table = Table(frame, {"a": {"role": "quasi-identifier", "kind": "numeric"}})
    for order in ("lexicographic", "input", "random"):
        parts, left = divided(table.records, 12, 3, order, np.random.default_rng(1))
        expected = plan(table.records, 12, 3, order, np.random.default_rng(1))
        assert [part.tolist() for part in parts] == [part.tolist() for part in expected]
        assert not len(left)


@pytest.mark.parametrize("name", TAKE_EVERY_KIND)
@loop("size", [None, 9])
def test_every_method_keeps_boundaries(name: str, size: int | None) -> None:
    table = people()
    anon = af.anonymize(table, name, k=4, partition_size=size, seed=1, **SOON.get(name, {}))
    check = af.verify(table, anon, ["covers", "boundary", anon.guarantee], k=4)
    assert check, check.frame()
    sizes = np.bincount(boundary_classes(table.records))
    out = sizes[boundary_classes(table.records)] < 4
    assert 0 < out.sum() < table.n
    assert anon.suppressed[out].all()
    assert anon.facts["beyond_boundaries"] == out.sum()
    if anon.matches is not None:
        assert (anon.matches[out, 0] == np.flatnonzero(out)).all()
        assert (anon.matches[out, 1:] == -1).all()
    release = anon.release(seed=7)
    assert af.verify(table, release, ["covers", "boundary", anon.guarantee], k=4)


@pytest.mark.parametrize("name", sorted(set(TAKE_EVERY_KIND) - {"greedy-cka"}))
def test_without_boundaries_their_violations_can_be_counted(name: str) -> None:
    table = people()
    anon = af.anonymize(table, name, k=4, seed=1, boundaries=False, **SOON.get(name, {}))
    assert anon.parameters["boundaries"] is False
    assert "beyond_boundaries" not in anon.facts
    check = af.verify(table, anon, ["covers", anon.guarantee, "boundary"], k=4)
    assert check["covers"].holds
    assert not check["boundary"].holds
    assert check["boundary"].failed > 2
    assert anon.generalization.domains[0].bound is not None


def test_where_nothing_can_be_published() -> None:
    table = people(6)
    with pytest.raises(InfeasibleError, match=r"boundaries of 'age', 'place'.*lower k"):
        af.anonymize(table, "mondrian", k=4)
    with pytest.raises(ParameterError, match="True or False"):
        af.anonymize(table, "mondrian", k=4, boundaries="no")  # type: ignore[arg-type]


def test_patterns_that_a_boundary_forbids_are_not_used() -> None:
    table = people()
    anon = af.anonymize(table, "pattern-guided", k=4, seed=1)
    shown = anon.frame()[~anon.suppressed]
    assert (shown["place"] != "*").all()
    with pytest.raises(InfeasibleError, match="pattern-guided: nothing can be published"):
        af.anonymize(table, "pattern-guided", k=4, patterns=[["place"]])


@pytest.mark.parametrize("name", ["mondrian", "greedy", "k-concealment", "pattern-guided"])
def test_violations_are_the_verifiers(name: str) -> None:
    """One cell each: the same number as the criterion finds, none inside the boundaries."""
    table = people()
    free = af.anonymize(table, name, k=4, seed=1, boundaries=False)
    counted = af.measure(table, free, ["violations"])["violations"]
    detail = af.verify(table, free, ["boundary"], k=4)["boundary"].detail
    parts = detail.split("cells beyond: ")[1].split(", ")
    assert counted == sum(int(cell.rsplit(" ", 1)[1]) for cell in parts) > 2
    assert counted == cells_beyond_of(table, free.generalization, free.suppressed)
    # the table says what is allowed, not the generalization: that may be of a schema without boundaries
    bare = tuple(replace(domain, bound=None) for domain in free.generalization.domains)
    loose = replace(free.generalization, domains=bare)
    assert af.measure(table, loose, "violations")["violations"] == cells_beyond_of(
        table, loose, free.suppressed
    )
    within = af.anonymize(table, name, k=4, seed=1)
    assert af.measure(table, within, "violations") == {"violations": 0}
    with pytest.raises(ParameterError, match="its own original"):
        af.measure(table, within.release(seed=3), "violations")


def cells_beyond_of(table: Table, generalization: Generalization, suppressed: np.ndarray) -> int:
    beyond = 0
    for t, a in enumerate(generalization.layout.ranges):
        bound = table.domains[a].bound
        if bound is not None:
            for i in np.flatnonzero(~suppressed & (table.codes[:, a] >= 0)).tolist():
                low, high = bound[table.codes[i, a]]
                beyond += bool(generalization.lo[t, i] < low or generalization.hi[t, i] > high)
    return beyond


def test_figure_4_counts_three_cells_against_none() -> None:
    """Miller 2008, Figure 4: MM1 has three violating cells (r3, r4, r7), MM2 none."""
    schema = {
        "Age": {"role": "quasi-identifier", "kind": "numeric"},
        "Location": hierarchy(TREE, set(datasets.location_boundary())),
        "Sex": {"role": "quasi-identifier", "kind": "suppression"},
        "Race": {"role": "quasi-identifier", "kind": "suppression"},
    }
    table = Table(datasets.location_example(), schema)
    for which, rows in (("MM1", [2, 3, 6]), ("MM2", [])):
        parsed = Generalization.parse(datasets.location_example_masked(which), table.domains)
        assert af.measure(table, parsed, "violations") == {"violations": len(rows)}
        assert np.flatnonzero(beyond_cells(table.records, parsed).any(axis=0)).tolist() == rows


def test_violations_of_limits_are_counted() -> None:
    frame = pd.DataFrame({"age": [1, 2, 9, 10], "job": list("abca")})
    schema = {
        "age": {"role": "quasi-identifier", "kind": "numeric", "max-width": 2},
        "job": {"role": "quasi-identifier", "kind": "categorical", "max-set": 2},
    }
    table = Table(frame, schema)
    boxes = Generalization.join_of(table.records, np.array([[0, 1], [0, 2], [0, 3], [1, 3]]))
    assert af.measure(table, boxes, "violations") == {"violations": 3}
    whole = Generalization.join_of(table.records, np.array([[0, 1, 2, 3]] * 4))
    assert af.measure(table, whole, "violations") == {"violations": 0}  # suppressed rows


@pytest.mark.parametrize("name", ["greedy-cka", "mondrian", "greedy", "k-concealment", "pattern-guided"])
@loop("text", [("p-sensitivity", {"p": 2}), ("l-diversity", {"l": 1.5})])
def test_constrained_p_sensitive_and_l_diverse(name: str, text: tuple[str, dict[str, Any]]) -> None:
    """Inside the classes of the maximum allowed microdata; where one cannot reach p or l the table is refused.

    Covers of k-concealment and classes of patterns are suppressed.
    """
    table = people(200)
    frame = table.frame.copy()
    # one class of the maximum allowed microdata shows one value only
    labels = boundary_classes(table.records)
    sizes = np.bincount(labels)
    poor = labels == int(np.argmax(np.where((sizes >= 4) & (sizes < 40), sizes, 0)))
    assert 4 <= poor.sum() < 40
    frame.loc[poor, "pay"] = "low"
    table = Table(frame, table.schema)
    criterion, parameters = text
    anon = af.anonymize(table, name, k=3, seed=1)
    assert not anon.suppressed[poor].all()
    if name not in ("k-concealment", "pattern-guided"):
        with pytest.raises(InfeasibleError, match="a partition or boundary has less diversity"):
            af.diversify(anon, criterion, **parameters, seed=2)
        return
    diverse = af.diversify(anon, criterion, **parameters, seed=2)
    assert diverse.suppressed[poor].all()
    assert not diverse.suppressed.all()
    assert af.verify(table, diverse, ["covers", "boundary"], k=3)
    assert af.measure(table, diverse, "violations") == {"violations": 0}
    if diverse.classes is not None:
        shown = frame["pay"].to_numpy()
        for label in set(diverse.classes[~diverse.suppressed].tolist()):
            values = shown[diverse.classes == label]
            assert len(set(values)) >= 2
            if criterion == "l-diversity":
                assert max((values == v).mean() for v in ("low", "high")) <= 1 / 1.5 + 1e-9
