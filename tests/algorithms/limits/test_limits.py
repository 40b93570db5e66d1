"""``max-width`` and ``max-set``: every method inside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.algorithms import REGISTRY
from anonflow.algorithms.limits.edges import broken
from anonflow.algorithms.limits.enforce import _runs, limit_blocks, run_within_limits
from anonflow.algorithms.method import Partition
from anonflow.errors import InfeasibleError
from anonflow.generalization import Generalization
from anonflow.partition import limited
from anonflow.table import Table
from tests.checks import TAKE_EVERY_KIND
from tests.strategies import examples, loop

QI = {"role": "quasi-identifier"}


def people(n: int = 120, width: float = 12.0, most: float = 2, seed: int = 4, step: int = 1) -> Table:
    """Ages, jobs and cities; some without an age."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 70, n) // step * float(step)
    age[[2, 5]] = np.nan
    frame = pd.DataFrame(
        {
            "age": age,
            "job": rng.choice(
                ["clerk", "nurse", "smith", "baker", "judge"], n, p=[0.4, 0.3, 0.2, 0.06, 0.04]
            ),
            "city": rng.choice(["a", "b", "c"], n),
            "pay": rng.choice(["low", "high"], n),
        }
    )
    return Table(
        frame,
        {
            "age": {**QI, "kind": "numeric", "missing": "suppress", "max-width": width},
            "job": {**QI, "kind": "categorical", "max-set": most},
            "city": {**QI, "kind": "categorical"},
            "pay": {"role": "sensitive"},
        },
    )


def keeps(table: Table, boxes: Generalization, width: float, most: float) -> np.ndarray:
    """Straight from the arrays: no run of ages wider than the limit, no set of jobs larger."""
    points = table.domains[0].points
    jobs = np.bitwise_count(boxes.bits[0])
    return (points[boxes.hi[0]] - points[boxes.lo[0]] <= width) & (jobs <= most)


@pytest.mark.parametrize("name", TAKE_EVERY_KIND)
@loop("size", [None, 30])
def test_every_method_keeps_limits(name: str, size: int | None) -> None:
    # values that patterns keep are published as they are: with ages by the year few would be alike
    table = people(step=25 if REGISTRY[name].keeps_limits else 1)
    # the limits do not wait for the best there is
    brief: dict[str, Any] = {"optimal": {"time_limit": 0.1}}.get(name, {})
    anon = af.anonymize(table, name, k=4, partition_size=size, seed=1, **brief)
    shown = ~anon.suppressed
    assert keeps(table, anon.generalization, 12, 2)[shown].all()
    assert anon.suppressed[[2, 5]].all()
    assert anon.suppressed.mean() < (0.5 if REGISTRY[name].keeps_limits else 0.1 if size is None else 0.2)
    assert af.verify(table, anon, ["covers", "boundary", anon.guarantee], k=4)
    release = anon.release(seed=7)
    assert af.verify(table, release, ["covers", "boundary", anon.guarantee], k=4)
    free = (
        af.anonymize(table, name, k=4, partition_size=size, seed=1, boundaries=False, **brief)
        if (name != "greedy-cka")
        else None
    )
    if free is not None and not REGISTRY[name].keeps_limits:
        assert not af.verify(table, free, ["boundary"], k=4)


@pytest.mark.parametrize("name", ["greedy", "mondrian", "k-concealment", "pattern-guided"])
def test_limits_and_boundaries_together(name: str) -> None:
    table = people(step=25 if name.startswith("pattern") else 1)
    schema = {
        "age": {**QI, "kind": "numeric", "missing": "suppress", "max-width": 9.0, "boundary": {"width": 25}},
        "job": {**QI, "kind": "categorical", "max-set": 2},
        "pay": {"role": "sensitive"},
    }
    both = Table(table.frame, schema)
    anon = af.anonymize(both, name, k=3, seed=1)
    assert af.verify(both, anon, ["covers", "boundary", anon.guarantee], k=3)
    assert anon.suppressed.sum() < 60


@examples(40)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from("uvwxy")), min_size=4, max_size=24),
    st.sampled_from([0, 1, 3]),
    st.sampled_from([1, 2]),
    st.sampled_from(["greedy", "mondrian", "k-member", "hungarian", "k-concealment"]),
)
def test_any_release_keeps_the_limits(rows: list[tuple[int, str]], width: int, most: int, name: str) -> None:
    frame = pd.DataFrame(rows, columns=["age", "job"])
    schema: dict[str, Any] = {
        "age": {**QI, "kind": "numeric", "max-width": width},
        "job": {**QI, "kind": "categorical", "max-set": most},
    }
    table = Table(frame, schema)
    try:
        anon = af.anonymize(table, name, k=2, seed=3)
    except InfeasibleError:
        return  # its message is checked below
    assert af.verify(table, anon, ["covers", "boundary", anon.guarantee], k=2), (rows, width, most)


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.integers(1, 4)), min_size=1, max_size=7, unique_by=lambda p: p[0]
    ),
    st.integers(0, 12),
    st.integers(2, 4),
)
def test_runs_leave_the_fewest_records_in_short_ones(
    values: list[tuple[int, int]], limit: int, k: int
) -> None:
    values.sort()
    points = np.array([value for value, _ in values], float)
    counts = np.array([count for _, count in values])
    m = len(values)

    def judged(run: list[int]) -> tuple[int, int] | None:
        short = 0
        for label in set(run):
            inside = [i for i in range(m) if run[i] == label]
            if points[inside[-1]] - points[inside[0]] > limit:
                return None
            size = int(counts[inside].sum())
            short += size if size < k else 0
        return short, len(set(run))

    best = min(
        result
        for cuts in range(1 << (m - 1))
        if (result := judged(np.cumsum([0, *(cuts >> i & 1 for i in range(m - 1))]).tolist())) is not None
    )
    assert judged(_runs(points, counts, float(limit), k).tolist()) == best


def test_blocks_keep_the_limits_whatever_is_joined() -> None:
    table = people()
    records = table.records.take(np.flatnonzero((table.codes >= 0).all(axis=1)))
    labels = limit_blocks(records, 4)
    assert keeps(table, Generalization.join_by_class(records, labels), 12, 2).all()


def test_an_edge_that_breaks_a_limit_is_seen() -> None:
    """`broken` against the generalized records themselves."""
    table = people(40)
    records = table.records.take(np.flatnonzero((table.codes >= 0).all(axis=1)))
    rng = np.random.default_rng(1)
    n, k = records.n, 4
    matches = np.stack([np.roll(np.arange(n), -d) for d in range(k)], axis=1).astype(np.int32)
    block = rng.permutation(n)[:12]
    slot = rng.integers(1, k, 12)
    over = broken(records, matches, block, slot)
    for b in range(12):
        for a in range(12):
            row = matches[block[b]].copy()
            row[slot[b]] = matches[block[a], slot[a]]
            boxes = Generalization.join_of(records, row[None, :])
            assert over[a, b] == (not keeps(table, boxes, 12, 2)[0])
    assert over.any()
    assert not over.all()


def test_edges_across_blocks_lower_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    table = people(400, width=15)
    part = Partition(table.records, "ncp", np.random.default_rng(0))
    from anonflow.algorithms.limits import enforce

    crossed = run_within_limits(REGISTRY["greedy"], part, 4, {})
    monkeypatch.setattr(enforce, "improve_within", lambda part, matches, suppressed: matches)
    part = Partition(table.records, "ncp", np.random.default_rng(0))
    inside = run_within_limits(REGISTRY["greedy"], part, 4, {})
    lost = [af.measure(table, result, ["gcp"])["gcp"] for result in (crossed, inside)]
    assert lost[0] < lost[1]
    assert np.array_equal(crossed.suppressed, inside.suppressed)


def test_limits_that_forbid_nothing_change_nothing() -> None:
    table = people(60, width=1000, most=9)
    free = people(60, width=1000, most=9)
    assert limited(table.records) == ()
    anon = af.anonymize(table, "greedy", k=3, seed=1)
    assert anon.frame().equals(af.anonymize(free, "greedy", k=3, seed=1, boundaries=False).frame())
    assert "beyond_limits" not in anon.facts


@pytest.mark.parametrize("name", ["greedy", "mondrian", "k-concealment", "pattern-guided", "k-member"])
def test_where_nothing_can_be_published(name: str) -> None:
    frame = pd.DataFrame({"age": range(0, 400, 10), "job": [str(i) for i in range(40)]})
    schema: dict[str, Any] = {
        "age": {**QI, "kind": "numeric", "max-width": 5},
        "job": {**QI, "kind": "categorical"},
    }
    with pytest.raises(
        InfeasibleError, match=f"{name}: nothing can be published within the boundaries of 'age'"
    ):
        af.anonymize(Table(frame, schema), name, k=2)


@pytest.mark.parametrize("name", ["greedy", "mondrian", "k-concealment", "k-member"])
def test_a_partition_without_a_place_has_the_form_of_the_others(name: str) -> None:
    """Lists or classes where the method has them, and neither where it has none: parts of one table are put together."""
    frame = pd.DataFrame({"age": [0, 10, 20, 30, 50, 50, 51, 51]})
    table = Table(frame, {"age": {**QI, "kind": "numeric", "max-width": 5}})
    outcomes = [
        run_within_limits(
            REGISTRY[name], Partition(table.records.take(at), "ncp", np.random.default_rng(1)), 2, {}
        )
        for at in (np.arange(4), np.arange(4, 8))
    ]
    assert outcomes[0].suppressed.all()
    assert not outcomes[1].suppressed.any()
    for hidden, shown in ((getattr(each, form) for each in outcomes) for form in ("matches", "classes")):
        assert (hidden is None) == (shown is None)


def test_diversity_never_breaks_a_limit() -> None:
    """Widening for diversity is refused where it would; classes that are diverse are fine."""
    table = people(200)
    anon = af.anonymize(table, "mondrian", k=3, seed=1)
    diverse = af.diversify(anon, "p-sensitivity", p=1, seed=1)
    assert af.verify(table, diverse, ["covers", "boundary", "k-anonymity"], k=3)
    for name in ("mondrian", "greedy"):
        with pytest.raises(InfeasibleError, match=r"beyond max-width or max-set of 'age', 'job'"):
            af.diversify(af.anonymize(table, name, k=3, seed=1), "p-sensitivity", p=2, seed=1)


@pytest.mark.parametrize("name", ["greedy", "mondrian", "k-concealment"])
def test_what_became_a_star_throughout_is_beyond_a_limit(name: str) -> None:
    """Only whoever is suppressed, and counted as such, may be wider than a limit."""
    frame = pd.DataFrame({"job": list("aabbcc"), "pay": list("xxyyzz")})
    schema = {"job": {**QI, "kind": "categorical", "max-set": 2}, "pay": {"role": "sensitive"}}
    anon = af.anonymize(Table(frame, schema), name, k=2, seed=1)
    with pytest.raises(InfeasibleError, match="beyond max-width or max-set of 'job'"):
        af.diversify(anon, "p-sensitivity", p=3, seed=1)
