"""Ejection chains as two-phase uses them: for every kind of column, the same whatever runs them."""

from __future__ import annotations

import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonflow as af
from anonflow.algorithms.freeform import chains
from anonflow.algorithms.freeform.chains import chain_memory, improve_by_chains
from anonflow.algorithms.freeform.two_phase import two_phase
from anonflow.algorithms.method import Progress
from anonflow.errors import ParameterError
from anonflow.table import Table
from tests.cases.freeform import MEASURES, assert_regular, part_of, total
from tests.cases.plain_kernels import KERNELS
from tests.cases.tables import random_table
from tests.checks import check_result
from tests.strategies import examples, loop, regular_matches, tables


@examples(40)
@given(tables(min_n=3, max_n=8), st.data(), st.sampled_from(MEASURES))
def test_regular_never_worse_and_plain_and_compiled_agree(
    table: Table, data: st.DataObject, measure: str
) -> None:
    k = data.draw(st.integers(2, table.n))
    matches = data.draw(regular_matches(table.n, k))
    results = []
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(chains, "LEAST", 4)
        patch.setattr(chains, "LONGEST", 4)
        for kernels in KERNELS:
            with kernels():
                results.append(improve_by_chains(part_of(table, measure), matches.copy(), 5, 2, 2, pool))
    assert (results[0][0] == results[1][0]).all()
    assert results[0][1] == results[1][1]
    assert_regular(results[0][0])
    assert total(table, results[0][0], measure) <= total(table, matches, measure) + 1e-9


BY_MEASURE = [
    pytest.param(measure, marks=[pytest.mark.slow] * (measure == "entropy")) for measure in MEASURES
]
"""Entropy takes as long as the others together."""


@pytest.mark.parametrize("measure", BY_MEASURE)
@pytest.mark.parametrize("reciprocal", [False, True])
def test_threads_do_not_show(measure: str, reciprocal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "LEAST", 64)
    monkeypatch.setattr(chains, "_PIECE", 32)
    table = random_table(200 if reciprocal else 300)
    results = []
    for threads in (1, 2, 5):
        part = part_of(table, measure)
        outcome = two_phase(part, 5, first=100, rounds=3, kicks=3, reciprocal=reciprocal, threads=threads)
        results.append(outcome.matches)
    assert (results[0] == results[1]).all()
    assert (results[0] == results[2]).all()


def test_codes_of_more_than_16_bits_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "LEAST", 64)
    table = random_table(300)
    short = two_phase(part_of(table), 5, first=100, rounds=3, kicks=3).matches
    monkeypatch.setattr(chains, "SHORT", 0)
    assert (two_phase(part_of(table), 5, first=100, rounds=3, kicks=3).matches == short).all()


def test_kicks_and_rounds_lower_the_loss() -> None:
    table = random_table(600)
    results = [
        af.anonymize(table, "two-phase", k=5, seed=1, rounds=rounds, kicks=kicks)
        for rounds, kicks in ((0, 0), (1, 0), (8, 0), (8, 10))
    ]
    losses = [result.loss() for result in results]
    assert losses == sorted(losses, reverse=True)
    assert losses[1] < 0.97 * losses[0]
    assert losses[3] < 0.99 * losses[2]
    assert [result.facts["chains"] > 0 for result in results] == [False, True, True, True]


@pytest.mark.slow
def test_kicks_of_links_lower_the_loss_further() -> None:
    table = random_table(300)
    results = [
        af.anonymize(table, "two-phase", k=5, seed=1, reciprocal=True, kicks=kicks) for kicks in (0, 10)
    ]
    assert results[1].loss() < 0.995 * results[0].loss()
    assert 0 < results[1].facts["kicks_kept"] <= results[1].facts["kicks_tried"] <= 3000
    assert results[0].facts["kicks_tried"] == 0
    budgeted = af.anonymize(table, "two-phase", k=5, seed=1, reciprocal=True, budget=0.3)
    assert budgeted.parameters["kicks"] >= 0


@pytest.mark.slow
@loop(("kind", "k"), [("categorical", 5), ("numeric", 3), ("suppression", 10)])
def test_memory_is_what_was_stated(kind: str, k: int) -> None:
    rng = np.random.default_rng(1)
    n = 3_000
    frame = pd.DataFrame({f"q{a}": rng.integers(0, 90, n).astype(str) for a in range(6)})
    if kind == "numeric":
        frame = frame.astype(int)
    table = Table(frame, {name: {"role": "quasi-identifier", "kind": kind} for name in frame})
    part = part_of(table)
    stated = chain_memory(table.records.domains, n, k, 32)
    matches = ((np.arange(n)[:, None] + np.arange(k)) % n).astype(np.int32)
    with ThreadPoolExecutor(1) as pool:
        improve_by_chains(part, matches, 32, 1, 0, pool)
        tracemalloc.start()
        improve_by_chains(part, matches, 32, 1, 0, pool)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert 0.6 * stated < peak < 1.3 * stated


@pytest.mark.parametrize("measure", BY_MEASURE)
def test_chains_lose_no_more_than_cycles(measure: str) -> None:
    """By default; where many matches cost the same (height), with twice as many kicks."""
    table = random_table(100)
    kicks = 20 if measure == "height" else 10
    ours = af.anonymize(table, "two-phase", k=5, loss=measure, seed=3, kicks=kicks)
    check_result(ours)
    cycles = af.anonymize(table, "two-phase", k=5, loss=measure, seed=3, improve="cycles")
    assert ours.loss(measure) <= cycles.loss(measure)
    assert ours.facts["kicks_kept"] <= ours.facts["kicks_tried"] <= kicks * 100


@loop("option", [{"rounds": -1}, {"kicks": -1}, {"improve": "chain"}])
def test_options_out_of_range(option: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match="two-phase"):
        af.anonymize(random_table(5), "two-phase", k=2, **option)  # type: ignore[arg-type]


def test_more_matches_than_places_can_be_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    part = part_of(random_table(5))

    class Many(np.ndarray):
        shape = (2**27, 16)  # type: ignore[assignment]

    with ThreadPoolExecutor(1) as pool, pytest.raises(ParameterError, match="smaller partitions"):
        improve_by_chains(part, np.empty((1, 1), np.int32).view(Many), 5, 1, 1, pool)


def test_a_watch_sees_every_round_and_ends_the_run_with_what_it_raises() -> None:
    table = random_table(300)
    seen: list[Progress] = []
    watched = af.anonymize(table, "two-phase", k=4, seed=1, kicks=3, watch=seen.append)
    alone = af.anonymize(table, "two-phase", k=4, seed=1, kicks=3)
    assert (watched.matches == alone.matches).all()
    assert [step.done for step in seen] == list(range(1, watched.facts["rounds"] + 1))
    assert all(step.done <= step.of for step in seen)
    assert [step.loss for step in seen] == sorted((step.loss for step in seen), reverse=True)
    assert seen[-1].loss == pytest.approx(300 * watched.loss())

    class Stopped(Exception):
        pass

    def stop(step: Progress) -> None:
        if step.done == 2:
            raise Stopped

    with pytest.raises(Stopped):
        af.anonymize(table, "two-phase", k=4, seed=1, kicks=3, watch=stop)


@pytest.mark.parametrize("k", [2, pytest.param(40, marks=pytest.mark.slow)])
def test_any_k_in_partitions_and_within_boundaries_and_limits(k: int) -> None:
    rng = np.random.default_rng(3)
    qi = {"role": "quasi-identifier"}
    frame = pd.DataFrame({"a": rng.integers(0, 100, 900), "b": rng.choice(list("uvwxyz"), 900)})
    schema = {
        "a": qi | {"kind": "numeric", "boundary": {"width": 50}},
        "b": qi | {"kind": "categorical", "max-set": 5},
    }
    for size in (None, 300):
        anon = af.anonymize(Table(frame, schema), "two-phase", k=k, seed=2, kicks=1, partition_size=size)
        check_result(anon, k)
        assert anon.facts["rounds"] > 0
