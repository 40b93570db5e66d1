"""Ejection chains as two-phase uses them: for every kind of column, the same whatever runs them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anonflow as af
from anonflow.algorithms.freeform import chains
from anonflow.algorithms.freeform.chains import improve_by_chains
from anonflow.algorithms.freeform.two_phase import two_phase
from anonflow.errors import ParameterError
from anonflow.table import Table
from tests.cases.freeform import MEASURES, assert_regular, part_of, total
from tests.cases.tables import random_table
from tests.checks import check_result
from tests.strategies import regular_matches, tables


@settings(deadline=None, max_examples=40)
@given(tables(min_n=3, max_n=10), st.data(), st.sampled_from(MEASURES))
def test_regular_never_worse_and_plain_and_compiled_agree(
    table: Table, data: st.DataObject, measure: str
) -> None:
    k = data.draw(st.integers(2, table.n))
    matches = data.draw(regular_matches(table.n, k))
    found = []
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        patch.setattr(chains, "LEAST", 4)
        patch.setattr(chains, "LONGEST", 4)
        for compiled in (True, False):
            part = part_of(table, measure)
            found.append(improve_by_chains(part, matches.copy(), 5, 2, 2, pool, compiled))
    assert (found[0][0] == found[1][0]).all()
    assert found[0][1] == found[1][1]
    assert_regular(found[0][0])
    assert total(table, found[0][0], measure) <= total(table, matches, measure) + 1e-9


@pytest.mark.parametrize("measure", MEASURES)
def test_threads_do_not_show(measure: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "LEAST", 64)
    monkeypatch.setattr(chains, "_PIECE", 32)
    table = random_table(500)
    results = []
    for threads in (1, 2, 5):
        part = part_of(table, measure)
        results.append(two_phase(part, 5, rounds=3, kicks=3, threads=threads).matches)
    assert (results[0] == results[1]).all()
    assert (results[0] == results[2]).all()


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


@pytest.mark.parametrize("measure", MEASURES)
def test_the_default_loses_less_than_reassignment(measure: str) -> None:
    table = random_table(400)
    ours = af.anonymize(table, "two-phase", k=5, loss=measure, seed=3)
    check_result(ours)
    again = af.anonymize(table, "two-phase", k=5, loss=measure, seed=3)
    assert (ours.matches == again.matches).all()
    assert ours.loss(measure) <= af.anonymize(
        table, "two-phase", k=5, loss=measure, seed=3, improve="reassign"
    ).loss(measure)
    assert ours.facts["kicks_kept"] <= ours.facts["kicks_tried"] <= 10 * 400


@pytest.mark.parametrize("option", [{"rounds": -1}, {"kicks": -1}, {"improve": "chain"}])
def test_options_out_of_range(option: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match="two-phase"):
        two_phase(part_of(random_table(5)), 2, **option)  # type: ignore[arg-type]


def test_more_matches_than_places_can_be_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    part = part_of(random_table(5))

    class Many(np.ndarray):
        shape = (2**27, 16)  # type: ignore[assignment]

    with ThreadPoolExecutor(1) as pool, pytest.raises(ParameterError, match="smaller partitions"):
        improve_by_chains(part, np.empty((1, 1), np.int32).view(Many), 5, 1, 1, pool)
