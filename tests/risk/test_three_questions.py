"""Singling out, linkability and inference with controls held out, and DiSCO: against loops, and on cases that are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.risk.three_questions import QUESTIONS, Answer, three_questions
from tests.naive import three_questions as naive

COLUMNS = {
    "age": {"role": "quasi-identifier", "kind": "numeric"},
    "city": {"role": "quasi-identifier", "kind": "categorical"},
    "ill": {"role": "sensitive"},
}


def tables(n: int = 40, seed: int = 3, values: int = 3) -> tuple[af.Table, af.Table]:
    """People, and as many controls, over the same domains."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 60, 2 * n),
            "city": rng.choice(["Athens", "Patras", "Volos"], 2 * n),
            "ill": [f"v{one}" for one in rng.integers(0, values, 2 * n)],
        }
    )
    table = af.Table(frame, COLUMNS)
    return table.take(np.arange(n)), table.take(np.arange(n, 2 * n))


def covers(frame: pd.DataFrame, people: af.Table) -> list[list[bool]]:
    rows, own = Generalization.parse(frame, people.domains), Generalization.of(people.records)
    found = [rows.covers(own.take(np.full(rows.n, i))) for i in range(people.n)]
    return np.array(found).T.tolist()


@pytest.mark.parametrize("method", ["greedy", "mondrian"])
def test_the_figures_are_those_of_loops(method: str) -> None:
    people, controls = tables()
    frame = af.anonymize(people, method, k=4, seed=2**100).release(seed=2**101).frame
    answers = {
        one.question: one for one in three_questions(people, frame, controls, np.random.default_rng(5))
    }
    assert set(answers) == set(QUESTIONS)
    for question, reference in (("linkability", naive.linkability), ("inference", naive.inference)):
        for side, figure in ((people, answers[question].success), (controls, answers[question].control)):
            expected = reference(covers(frame, side), frame["ill"].tolist(), side.frame["ill"].tolist())
            assert figure == pytest.approx(expected)
    common = frame["ill"].mode()
    assert answers["inference"].baseline == pytest.approx(
        np.mean(people.frame["ill"].isin(common)) / len(common)
    )
    assert answers["linkability"].baseline == 1 / people.n


def test_the_table_itself_is_singled_out_and_noise_is_not() -> None:
    people, controls = tables(n=60, values=60)
    raw = people.frame.astype(str)
    answers = three_questions(people, raw, controls, np.random.default_rng(1))
    assert [one.verdict(0.09) for one in answers] == ["failed", "failed", "failed"]
    hidden = raw.assign(age="*", city="*", ill=np.random.default_rng(2).permutation(raw["ill"]))
    for one in three_questions(people, hidden, controls, np.random.default_rng(1)):
        if one.question != "singling out":
            assert one.verdict(0.09) in ("too weak", "passed")


def test_without_other_columns_halves_of_the_quasi_identifiers_are_linked() -> None:
    people, controls = tables()
    keys = {name: COLUMNS[name] for name in ("age", "city")}
    inside, outside = (af.Table(one.frame[["age", "city"]], keys) for one in (people, controls))
    both = af.Table(pd.concat([inside.frame, outside.frame]), keys)
    inside, outside = both.take(np.arange(40)), both.take(np.arange(40, 80))
    answers = three_questions(inside, inside.frame.astype(str), outside, np.random.default_rng(1))
    assert [one.question for one in answers] == ["singling out", "linkability"]
    linked = 0.0
    ages, cities = inside.frame["age"].tolist(), inside.frame["city"].tolist()
    for age, city in zip(ages, cities, strict=True):
        rows = [other for one, other in zip(ages, cities, strict=True) if one == age]
        linked += sum(other == city for other in rows) / len(rows) / cities.count(city)
    assert answers[1].success == pytest.approx(linked / 40)


@pytest.mark.parametrize(
    ("success", "control", "baseline", "verdict"),
    [
        (0.10, 0.10, 0.20, "too weak"),
        (0.20, 0.10, 0.20, "too weak"),
        (0.30, 0.29, 0.10, "passed"),
        (0.30, 0.26, 0.10, "not decided"),
        (0.30, 0.10, 0.10, "failed"),
    ],
)
def test_verdicts(success: float, control: float, baseline: float, verdict: str) -> None:
    """Too weak is not passed; a middle below the threshold alone is no pass."""
    answer = Answer("inference", 2000, 2000, success, control, baseline, "")
    assert answer.verdict(0.09) == verdict
    assert answer.excess == pytest.approx(max(0.0, (success - control) / (1 - control)))
    low, high = answer.interval
    assert low <= answer.excess <= high


def test_the_threshold_is_strict() -> None:
    assert Answer("inference", 10**9, 10**9, 0.5, 0.0, 0.0, "").verdict(0.5) == "failed"


@pytest.mark.parametrize("method", ["greedy", "mondrian", "k-concealment"])
def test_disco_is_that_of_loops(method: str) -> None:
    people, _ = tables(n=30, values=2)
    release = af.anonymize(people, method, k=3, seed=2**100).release(seed=2**101)
    row = af.attack(people, release, "disco", k=3).iloc[0]
    cover = covers(release.frame, people)
    assert row["at_risk"] == naive.disco(cover, release.frame["ill"].tolist(), people.frame["ill"].tolist())
    raw = people.frame.astype(str)
    row = af.attack(people, raw, "disco", k=2).iloc[0]
    cover = covers(raw, people)
    keys = list(zip(people.frame["age"], people.frame["city"], strict=True))
    assert f"{naive.replicated_uniques(cover, keys)} are unique and covered" in row["sentence"]
    assert row["at_risk"] == naive.disco(cover, raw["ill"].tolist(), people.frame["ill"].tolist()) > 0


def test_disco_needs_a_column() -> None:
    people, _ = tables()
    keys = af.Table(people.frame.drop(columns="ill"), {name: COLUMNS[name] for name in ("age", "city")})
    with pytest.raises(ParameterError, match="0 sensitive columns"):
        af.attack(keys, af.anonymize(keys, k=3), "disco")
