"""What attackers, criteria and reports say of one person is in the singular."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import risk
from anonflow.algorithms.cohorts import Outlook
from anonflow.criteria.registry import CRITERIA
from anonflow.dashboards.components.released_before import _given_away
from anonflow.errors import AnonflowError, InfeasibleError
from anonflow.hierarchy.wording import plural, verb_of
from anonflow.release import Release
from anonflow.risk.attacker import Households
from anonflow.risk.attackers.linkers import linker_of_lists
from anonflow.risk.attackers.own_rows import OwnRowsTest
from anonflow.risk.attackers.people import PeopleAtRisk
from anonflow.risk.three_questions import Answer
from anonflow.table.identification.earlier import Overlap

NOUNS = "people|records|rows|originals|releases|households|units|columns|values|cells|lines|groups|times|classes|intervals|ranges"
ONE = re.compile(rf"(?<![\d.,])1 (?:[a-z-]+ )?(?:{NOUNS})\b|(?<![\d.,])1 (?:are|have|were|do)\b")
"""A count of one before a plural; `1 of 10 rows` is none."""

COLUMNS: dict[str, dict[str, Any]] = {
    "who": {
        "role": "quasi-identifier",
        "kind": "hierarchy",
        "hierarchy": {"nested": {"*": {"all": ["a", "b"]}}},
    },
    "ill": {"role": "sensitive"},
}
WITH_UNITS: dict[str, dict[str, Any]] = {**COLUMNS, "name": {"role": "unit"}, "home": {"role": "household"}}


def plurals_of_one(text: str) -> list[str]:
    return [match.group() for match in ONE.finditer(text)]


def released(n: int, columns: dict[str, dict[str, Any]], cell: str) -> tuple[af.Table, Release]:
    """A table of n records of one person, and their rows; others with the value b are nobody's."""
    frame = pd.DataFrame({"who": ["a"] * n, "ill": ["x"] * n, "name": ["i"] * n, "home": ["h"] * n})
    table = af.Table(frame[list(columns)], columns)
    return table, Release(pd.DataFrame({"who": [cell] * n, "ill": ["x"] * n}), None, np.arange(n))


def attackers() -> list[Any]:
    """Every attacker that can be made of a small register."""
    register = pd.DataFrame({"who": ["a", "b"]})
    chosen: list[Any] = [risk.Population(fraction=0.5), risk.Insider(1), risk.Insider(2)]
    for kind in risk.ATTACKERS.values():
        with suppress(TypeError, AnonflowError):
            chosen.append(kind(population=register) if kind.takes_register else kind())
    return chosen


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
def test_attackers_count_one_person_in_the_singular() -> None:
    sentences: list[str] = []
    for n in (1, 2):
        for columns in (COLUMNS, WITH_UNITS):
            for cell in ("a", "all"):
                table, release = released(n, columns, cell)
                for attacker in attackers():
                    with suppress(AnonflowError):
                        sentences.append(
                            f"{attacker.knows} {risk.attack(table, release, attacker, k=2)['sentence'][0]}"
                        )
    assert len(sentences) > 40
    assert [(text, wrong) for text in sentences if (wrong := plurals_of_one(text))] == []


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
def test_criteria_count_one_record_in_the_singular() -> None:
    sentences: list[str] = []
    for n in (1, 2):
        for columns in (COLUMNS, WITH_UNITS):
            table, release = released(n, columns, "a")
            for name in CRITERIA:
                for whole in (table, table.schema):
                    with suppress(AnonflowError):
                        sentences.append(repr(af.verify(whole, release.frame, name, k=2)))
    assert len(sentences) > 20
    assert [(text, wrong) for text in sentences if (wrong := plurals_of_one(text))] == []


def test_sentences_of_one_are_singular() -> None:
    sentences = [
        Households(1, 0.5, 0.5).sentence(),
        linker_of_lists([(1, 1)], 2).sentence,
        Overlap(1, 1, 1, "name", few=1, alone=1).sentence(),
        Answer("inference", 1, 1, 1.0, 0.0, 0.5, "It guesses.").sentence(),
        *OwnRowsTest(1, 0, 0, 0.5, 1.0, 1.0, PeopleAtRisk(np.ones(1)), 0.5).remarks(),
        *risk.PopulationRisk(1, 1.0, None, (), "there are few", np.ones(1)).sentences(),
        _given_away(Outlook(2, 1, 1, {}, 1)),
    ]
    assert [(text, wrong) for text in sentences if (wrong := plurals_of_one(text))] == []


def test_nouns_and_verbs_follow_the_count() -> None:
    assert [plural(count, "person", "are") for count in (0, 1, 2)] == [
        "0 people are",
        "1 person is",
        "2 people are",
    ]
    assert [plural(count, "other person") for count in (1, 1_000)] == ["1 other person", "1,000 other people"]
    assert [verb_of(1, verb) for verb in ("have", "lose", "do")] == ["has", "loses", "does"]
    assert plurals_of_one("1 rows, 11 rows, 1 of 10 rows, 1 more cells are there") == [
        "1 rows",
        "1 more cells",
    ]


def test_a_failing_run_counts_what_is_left_in_the_singular() -> None:
    with pytest.raises(InfeasibleError) as refused:
        af.anonymize(released(1, COLUMNS, "a")[0], "mondrian", k=2)
    assert plurals_of_one(str(refused.value)) == []
