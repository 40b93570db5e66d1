"""Attacks that cannot be made are refused with a reason, and the choices of attackers follow their seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import anonflow as af
from anonflow import risk
from anonflow.errors import DataError, ParameterError
from anonflow.risk import attack_context
from anonflow.risk.attacker import WholeRelease
from anonflow.risk.three_questions import three_questions

SEED = 2**127


@pytest.fixture(scope="module")
def table() -> af.Table:
    frame = af.datasets.census_like(60, seed=1)[["Age", "Gender", "Salary-class"]]
    roles = {
        "Age": {"role": "quasi-identifier", "kind": "numeric"},
        "Gender": {"role": "quasi-identifier", "kind": "categorical"},
        "Salary-class": {"role": "sensitive"},
    }
    return af.Table(frame, roles)


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
def test_a_certificate_of_other_rows_attacks_nobody(table: af.Table) -> None:
    first, second = (af.anonymize(table, "greedy", 3, partition_size=size) for size in (12, 30))
    release, other = first.release(SEED), second.release(SEED + 1)
    assert risk.attack(table, release, ["linker"], k=3)["targets"].tolist() == [60]
    with pytest.raises(DataError, match="lists people whom they do not cover"):
        risk.attack(table, replace(release, certificate=other.certificate), ["linker"], k=3)


def test_attackers_say_where_they_are_tried(table: af.Table) -> None:
    def declaring(declaration: str) -> list[str]:
        return [name for name, kind in risk.ATTACKERS.items() if getattr(kind, declaration)]

    assert set(declaring("beside_register")) == {"prosecutor", "marketer", "linker", "linkable-columns"}
    assert declaring("of_earlier") == ["linker"]
    assert declaring("takes_releases") == ["intersection"]
    assert declaring("of_strangers") == ["prosecutor"]
    assert declaring("of_sets") == ["key-sets"]
    # twelve rows, each with a list of three people
    whole = WholeRelease(table, release=None, sizes=[(3, 12)], k=3)
    exact = {name: kind.of_whole(whole) for name, kind in risk.ATTACKERS.items()}
    assert {name: success.rate for name, success in exact.items() if success is not None} == {
        "linker": pytest.approx(1 / 3)
    }
    named = exact["linker"]
    assert risk.ATTACKERS["unit"].of_whole(replace(whole, people=named)) is named


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
def test_too_many_pairs_are_refused_before_they_are_listed(
    table: af.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = af.anonymize(table, "mondrian", 20).release(SEED).frame
    context = risk.AttackContext.of(table, frame, 20)
    monkeypatch.setattr(attack_context, "PAIRS", 100)
    with pytest.raises(ParameterError, match="more than 100 pairs of a person and a row"):
        _ = context.pairs


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
def test_a_replay_needs_what_it_draws_again(table: af.Table) -> None:
    anonymization = af.anonymize(table, "greedy", 3)
    release = anonymization.release(SEED)
    for subject in (release.frame, release):
        with pytest.raises((ParameterError, DataError), match=r"replay|truth"):
            risk.attack(table, subject, [risk.Replayer([SEED])], k=3)


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
def test_the_targets_of_an_insider_follow_the_seed(table: af.Table) -> None:
    release = af.anonymize(table, "mondrian", 3).release(SEED)
    rates = [
        risk.attack(table, release, [risk.Insider(c=1, targets=3)], k=3, seed=seed)["success"].item()
        for seed in (1, 1, 2, 3, 4, 5)
    ]
    assert rates[0] == rates[1]
    assert len(set(rates)) > 1


def test_an_attack_draws_by_its_seed(table: af.Table) -> None:
    """With the original and without it."""
    frame = af.anonymize(table, "mondrian", 3).frame()
    for original in (table, table.schema):
        rows = frame.assign(**{"Salary-class": table.frame["Salary-class"]})
        drawn = [risk.AttackContext.of(original, rows, 3, seed=seed).rng.random() for seed in (1, 1, 2)]
        assert drawn[0] == drawn[1] != drawn[2]


def test_three_questions_need_people_to_hold_out(table: af.Table) -> None:
    nobody = table.take(np.zeros(0, np.int64))
    with pytest.raises(ParameterError, match="too few records to hold some out"):
        three_questions(table, table.frame, nobody, np.random.default_rng(1))
