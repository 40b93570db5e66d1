"""Singling out, linkability and inference with controls held out, and DiSCO: against loops, and on cases that are known."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow.errors import ParameterError
from anonflow.generalization import Generalization
from anonflow.risk.singling_out import same_cells
from anonflow.risk.three_questions import QUESTIONS, Answer, three_questions
from tests.naive import three_questions as naive
from tests.strategies import loop

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
            "ill": [f"v{integer}" for integer in rng.integers(0, values, 2 * n)],
        }
    )
    table = af.Table(frame, COLUMNS)
    return table.take(np.arange(n)), table.take(np.arange(n, 2 * n))


def covers(frame: pd.DataFrame, people: af.Table) -> list[list[bool]]:
    rows, own = Generalization.parse(frame, people.domains), Generalization.of(people.records)
    results = [rows.covers(own.take(np.full(rows.n, i))) for i in range(people.n)]
    return np.array(results).T.tolist()


def fits_cell(cell: str, value: object, codes: tuple[str, ...] = ()) -> bool:
    """Whether a cell covers a value: read by this test, member by member."""
    if cell == "*":
        return True
    for member in cell.strip("{}").split("|"):
        low, dash, high = member.partition("-")
        is_number = isinstance(value, int | np.integer)
        if is_number and member not in codes and low.isdigit():
            if int(low) <= int(value) <= int(high if dash else low):
                return True
        elif member == str(value):
            return True
    return False


def linked(
    frame: pd.DataFrame, sides: tuple[af.Table, af.Table], codes: tuple[str, ...] = ()
) -> tuple[float, float, float]:
    """Success, control and baseline of the strongest way to link, by loops."""
    names = list(sides[0].qi_columns)
    others = [name for name in sides[0].other_columns if name in frame.columns]
    half = len(names) // 2
    splits = [(names[:half], names[half:] + others), (names[::2], names[1::2] + others)]
    if others:
        splits.insert(0, (names, others))
    values = {name: {value for side in sides for value in side.frame[name]} | set(codes) for name in names}
    ways = []
    for columns in splits:
        if not all(columns):
            continue
        sizes = []
        for some in columns:
            keys = [name for name in some if name in names]
            sizes.append(
                [
                    int(
                        np.prod(
                            [sum(fits_cell(row[name], item, codes) for item in values[name]) for name in keys]
                        )
                    )
                    for row in frame.astype(str).to_dict("records")
                ]
            )
        join, meet = [], []
        for side in sides:
            people = side.frame.to_dict("records")
            first, second = (
                [
                    [
                        all(
                            fits_cell(row[name], person[name], codes)
                            if name in names
                            else row[name] == str(person[name])
                            for name in some
                        )
                        for person in people
                    ]
                    for row in frame.astype(str).to_dict("records")
                ]
                for some in columns
            )
            join.append(naive.linkability(first, second, len(frame), side.n))
            meet.append(naive.same_row(first, second, (sizes[0], sizes[1]), side.n))
        ways += [(*join, 1 / sides[0].n), (*meet, 1 / len(frame))]
    return max(ways, key=lambda way: (way[0] > way[2], max(0.0, (way[0] - way[1]) / (1 - way[1]))))


@pytest.mark.parametrize("method", ["greedy", "mondrian"])
def test_the_figures_are_those_of_loops(method: str) -> None:
    people, controls = tables()
    frame = af.anonymize(people, method, k=4, seed=2**100).release(seed=2**101).frame
    answers = {
        three_question.question: three_question
        for three_question in three_questions(people, frame, controls, np.random.default_rng(5))
    }
    assert set(answers) == set(QUESTIONS)
    link = answers["linkability"]
    assert (link.success, link.control, link.baseline) == pytest.approx(linked(frame, (people, controls)))
    for side, figure in (
        (people, answers["inference"].success),
        (controls, answers["inference"].control),
    ):
        expected = naive.inference(covers(frame, side), frame["ill"].tolist(), side.frame["ill"].tolist())
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
    assert [answer.verdict(0.09) for answer in answers] == ["failed", "failed", "failed"]
    hidden = raw.assign(age="*", city="*", ill=np.random.default_rng(2).permutation(raw["ill"]))
    for three_question in three_questions(people, hidden, controls, np.random.default_rng(1)):
        if three_question.question != "singling out":
            assert three_question.verdict(0.09) in ("too weak", "passed")


def test_without_other_columns_halves_of_the_quasi_identifiers_are_linked() -> None:
    people, controls = tables()
    keys = {name: COLUMNS[name] for name in ("age", "city")}
    inside, outside = (af.Table(item.frame[["age", "city"]], keys) for item in (people, controls))
    both = af.Table(pd.concat([inside.frame, outside.frame]), keys)
    inside, outside = both.take(np.arange(40)), both.take(np.arange(40, 80))
    answers = three_questions(inside, inside.frame.astype(str), outside, np.random.default_rng(1))
    assert [answer.question for answer in answers] == ["singling out", "linkability"]
    link = answers[1]
    expected = linked(inside.frame.astype(str), (inside, outside))
    assert (link.success, link.control, link.baseline) == pytest.approx(expected)


CODED = {
    "score": {"role": "quasi-identifier", "kind": "numeric", "missing": "value", "codes": ["N", "R"]},
    "city": {"role": "quasi-identifier", "kind": "categorical"},
    "ill": {"role": "sensitive"},
}


def coded_tables(n: int = 40) -> tuple[af.Table, af.Table]:
    people, controls = tables(n)
    both = pd.concat([people.frame, controls.frame], ignore_index=True).rename(columns={"age": "score"})
    both["score"] = both["score"].astype(object)
    both.loc[::7, "score"], both.loc[3::11, "score"] = "N", "R"
    table = af.Table(both, CODED)
    return table.take(np.arange(n)), table.take(np.arange(n, 2 * n))


def test_a_number_with_codes_is_one_column() -> None:
    """Its range and the codes beside it are never parted: neither between two databases nor in the naive guess."""
    people, controls = coded_tables()
    assert len(people.domains) == 3
    frame = af.anonymize(people, "greedy", k=3, seed=2**100).release(seed=2**101).frame
    link = three_questions(people, frame, controls, np.random.default_rng(5))[1]
    expected = linked(frame, (people, controls), ("N", "R"))
    assert (link.success, link.control, link.baseline) == pytest.approx(expected)
    rows = Generalization.parse(frame, people.domains)
    mixed = same_cells(rows, np.random.default_rng(1))
    cells = {tuple(column) for column in np.concatenate([rows.lo[:1], rows.hi[:1], rows.bits[:1]]).T.tolist()}
    for column in np.concatenate([mixed.lo[:1], mixed.hi[:1], mixed.bits[:1]]).T.tolist():
        assert tuple(column) in cells


def test_people_are_attacked_and_not_their_rows() -> None:
    """Whoever has several rows is attacked by one of them, and a database of controls has people, too."""
    people, controls = tables()
    schema = COLUMNS | {"who": {"role": "unit"}}
    both = af.Table(
        pd.concat([people.frame, controls.frame], ignore_index=True).assign(who=np.arange(80) // 4), schema
    )
    inside, outside = both.take(np.arange(40)), both.take(np.arange(40, 80))
    answers = three_questions(
        inside, inside.frame[["age", "city", "ill"]].astype(str), outside, np.random.default_rng(1)
    )
    assert [(answer.targets, answer.controls) for answer in answers] == [(10, 10)] * 3


def test_the_tightest_rows_link_more_than_rows_at_random() -> None:
    """The goal: at least what an outside attacker reaches, whose excess was 0.03 on releases of this kind."""
    table = af.Table(af.datasets.census_like(600, 1), af.datasets.schema("census_like"))
    inside, outside = table.take(np.arange(300)), table.take(np.arange(300, 600))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frame = af.anonymize(inside, "greedy", k=5, seed=2**100).release(seed=2**101).frame
    link = three_questions(inside, frame, outside, np.random.default_rng(1))[1]
    assert link.excess > 0.03
    assert "lead to the same row" in link.how


@loop(
    ("success", "control", "baseline", "verdict"),
    [
        (0.10, 0.10, 0.20, "too weak"),
        (0.20, 0.10, 0.20, "too weak"),
        (0.30, 0.29, 0.10, "passed"),
        (0.30, 0.26, 0.10, "not decided"),
        (0.30, 0.10, 0.10, "failed"),
    ],
)
def test_a_verdict_needs_the_whole_interval_on_its_side(
    success: float, control: float, baseline: float, verdict: str
) -> None:
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
