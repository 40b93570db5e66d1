"""Risk in the population: estimators against their definitions, on populations that are known, and where they refuse."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln

import anonflow as af
from anonflow.errors import DataError, ParameterError
from anonflow.risk import Population, population_risk
from anonflow.table.identification.population import (
    dankar,
    individual_risk,
    pitman,
    slide_negative_binomial,
    zayatz,
)
from anonflow.table.sampling_weights import WeightSummary, sampling_fraction
from tests.cases.runs import shell
from tests.naive import population as naive
from tests.strategies import loop

QI = {"role": "quasi-identifier"}
SCHEMA: dict[str, Any] = {
    "age": {**QI, "kind": "numeric"},
    "town": {**QI, "kind": "categorical"},
    "ill": {"role": "sensitive"},
}


def sampled(rng: np.random.Generator, cells: np.ndarray, fraction: float) -> np.ndarray:
    """Class sizes of a simple random sample."""
    chosen = rng.permutation(cells)[: round(len(cells) * fraction)]
    sizes = np.bincount(chosen)
    return sizes[sizes > 0]


def chinese_restaurant(rng: np.random.Generator, alpha: float, theta: float, people: int) -> np.ndarray:
    """The class of each person by Pitman's urn, one after the other."""
    sizes: list[float] = []
    at = np.empty(people, np.int64)
    for i in range(people):
        new = (theta + alpha * len(sizes)) / (theta + i)
        if rng.random() < new:
            at[i] = len(sizes)
            sizes.append(1.0)
        else:
            # with probability size - alpha of an old table: by a person seated before, corrected by rejection
            while True:
                table = int(at[rng.integers(i)])
                if rng.random() < (sizes[table] - alpha) / sizes[table]:
                    break
            at[i] = table
            sizes[table] += 1
    return at


@loop("sizes", [[1, 1, 2, 3], [1, 1, 1, 4, 4, 7], [2, 2, 3], [1, 2, 2, 5, 9]])
@loop("people", [20, 60, 200])
def test_zayatz_by_definition(sizes: list[int], people: int) -> None:
    if people < sum(sizes) + 1:
        people = sum(sizes) + 1
    estimate = zayatz(np.array(sizes), sum(sizes) / people)
    assert estimate.uniques == pytest.approx(naive.zayatz(sizes, people), rel=1e-8, abs=1e-12)
    assert estimate.low <= estimate.high


@loop(("f", "people"), [(1, 1.5), (1, 40), (2, 9), (3, 31), (5, 50), (40, 100), (7, 7)])
def test_individual_risk_by_definition(f: int, people: float) -> None:
    result = individual_risk(np.array([f]), np.array([float(people)]))[0]
    assert result == pytest.approx(naive.individual_risk(f, people), rel=1e-6)
    assert 1 / (people + 1e-9) * 0.5 < result <= 1 / f + 1e-12 or people > 4 * f


def test_individual_risks_of_large_classes_are_finite_and_fall() -> None:
    sizes = np.array([1, 2, 3, 4, 10, 100, 10_000])
    risks = individual_risk(sizes, sizes * 20.0)
    assert np.isfinite(risks).all()
    assert (np.diff(risks) < 0).all()
    assert risks[-1] == pytest.approx(1 / 200_000, rel=1e-3)


def test_pitman_is_at_the_greatest_likelihood() -> None:
    rng = np.random.default_rng(3)
    sizes = sampled(rng, chinese_restaurant(rng, 0.4, 20.0, 1500), 0.2)
    estimate = pitman(sizes, 0.2)
    people = round(int(sizes.sum()) / 0.2)
    grid = [(a, t) for a in np.linspace(0.05, 0.9, 12) for t in np.geomspace(2, 200, 14)]
    best = max(grid, key=lambda at: naive.pitman_log_likelihood(sizes.tolist(), *at))
    near = naive.pitman_singletons(best[0], best[1], people)
    assert estimate.uniques == pytest.approx(near, rel=0.4)


@loop(("alpha", "theta", "people"), [(0.0001, 5.0, 50), (0.3, 2.0, 40), (0.7, 10.0, 100)])
def test_singletons_of_pitmans_partition(alpha: float, theta: float, people: int) -> None:
    logs = (
        gammaln(theta + alpha + people - 1)
        + gammaln(theta + 1)
        - gammaln(theta + alpha)
        - gammaln(theta + people)
    )
    assert people * math.exp(logs) == pytest.approx(naive.pitman_singletons(alpha, theta, people), rel=1e-9)


def test_pitman_finds_the_uniques_of_its_own_populations() -> None:
    covered = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        cells = chinese_restaurant(rng, 0.5, 30.0, 4000)
        true = int((np.bincount(cells) == 1).sum())
        estimate = pitman(sampled(rng, cells, 0.1), 0.1)
        assert estimate.is_there
        assert estimate.uniques == pytest.approx(true, rel=0.5)
        covered += estimate.low <= true <= estimate.high
    assert covered >= 4


def test_snb_finds_the_uniques_of_its_own_populations() -> None:
    covered = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        sizes = 1 + rng.negative_binomial(0.4, 0.05, 3000)
        true = int((sizes == 1).sum())
        sample = rng.binomial(sizes, 0.3)
        estimate = slide_negative_binomial(sample[sample > 0], 0.3)
        assert estimate.is_there
        assert estimate.uniques == pytest.approx(true, rel=0.25)
        covered += estimate.low <= true <= estimate.high
    assert covered >= 4


def test_a_real_table_as_the_population() -> None:
    """A built-in table's key cells, sampled: which estimate is how far off is what the guide prints."""
    frame = af.datasets.census_like(4000, seed=1)
    cells = pd.factorize(frame[["Age", "Gender", "Education", "Marital"]].astype(str).agg("/".join, axis=1))[
        0
    ]
    true = int((np.bincount(cells) == 1).sum())
    rng = np.random.default_rng(0)
    for fraction in (0.1, 0.5):
        chosen, all_of_them = dankar(sampled(rng, cells, fraction), fraction)
        assert len(all_of_them) == 3
        assert chosen.is_there
        assert true / 4 < chosen.uniques < 4 * true


def test_dankars_rule_picks_by_the_sampling_fraction() -> None:
    rng = np.random.default_rng(2)
    sizes = 1 + rng.negative_binomial(0.4, 0.05, 3000)
    for fraction, names in ((0.1, {"pitman"}), (0.3, {"snb", "zayatz"})):
        sample = rng.binomial(sizes, fraction)
        chosen, (by_zayatz, by_pitman, by_snb) = dankar(sample[sample > 0], fraction)
        assert chosen.model in names
        if fraction > 0.1:
            assert chosen.uniques == min(by_zayatz.uniques, by_snb.uniques)
        else:
            assert chosen is by_pitman


def test_where_models_fail_they_say_so_and_it_is_no_zero() -> None:
    alone = np.ones(30, np.int64)
    for model in (pitman, slide_negative_binomial):
        result = model(alone, 0.05)
        assert math.isnan(result.uniques)
        assert result.why.startswith("not estimable: every record")
    assert dankar(alone, 0.05)[0].model == "zayatz"
    assert math.isnan(pitman(np.array([50, 50]), 0.1).uniques)
    assert math.isnan(slide_negative_binomial(np.array([5, 5, 5, 5]), 0.1).uniques)
    assert math.isnan(zayatz(np.array([], np.int64), 0.1).uniques)
    whole = pitman(np.array([1, 1, 4]), 1.0)
    assert (whole.uniques, whole.why) == (2.0, "the sample is the population")


def people(n: int = 300, **more: Any) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 90, n),
            "town": rng.choice(list("abc"), n),
            "ill": rng.choice(list("xyz"), n),
        }
    )
    return frame.assign(**more)


@pytest.mark.slow
def test_the_whole_is_told_side_by_side() -> None:
    risk = population_risk(af.Table(people(), SCHEMA), fraction=0.1)
    assert risk.records == 300
    assert risk.people == pytest.approx(3000)
    assert risk.chosen is not None
    assert risk.frame()["model"].tolist() == ["zayatz", "pitman", "snb"]
    assert risk.frame()["chosen"].sum() == 1
    table = af.Table(people(), SCHEMA)
    sizes = np.bincount(table.records.classes())
    by_hand = sum(f * naive.individual_risk(int(f), f / 0.1) for f in sizes)
    assert risk.expected == pytest.approx(by_hand, rel=1e-6)
    assert risk.average == pytest.approx(by_hand / 300, rel=1e-6)
    assert 0 <= risk.above(0.09) <= 1
    assert "expected to be linked correctly" in repr(risk)


def test_weights_say_the_fraction_or_refuse_the_models() -> None:
    schema = SCHEMA | {"w": {"role": "weight"}}
    equal = population_risk(af.Table(people(w=10.0), schema))
    assert equal.risks == pytest.approx(population_risk(af.Table(people(), SCHEMA), fraction=0.1).risks)
    assert equal.chosen is not None
    weights = np.where(np.arange(300) % 2, 5.0, 15.0)
    unequal = population_risk(af.Table(people(w=weights), schema))
    assert unequal.chosen is None
    assert "unequal" in unequal.refused
    assert "not estimated: the weights are unequal" in repr(unequal)
    assert len(unequal.risks) == 300
    assert sampling_fraction(weights) is None


@loop(
    ("weight", "words"),
    [(0, "300 weights are zero or negative"), (-1, "zero or negative"), (0.5, "below 1"), ("x", "no number"), (None, "missing")],
)  # fmt: skip
def test_bad_weights_are_one_sentence(weight: Any, words: str) -> None:
    table = af.Table(people(w=weight), SCHEMA | {"w": {"role": "weight"}})
    with pytest.raises(DataError, match=words):
        population_risk(table)


def test_weights_of_pieces_add_up() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        weights = rng.choice([np.nan, np.inf, -1.0, 0.0, 0.5, 1.0, 2.0, 7.0], rng.integers(0, 12))
        cut = int(rng.integers(0, len(weights) + 1))
        whole = WeightSummary.of(weights)
        assert WeightSummary.of(weights[:cut]).then(WeightSummary.of(weights[cut:])) == whole
        numbers = [w for w in weights.tolist() if math.isfinite(w)]
        assert whole.wrong == (
            len(weights) - len(numbers), sum(w <= 0 for w in numbers), sum(0 < w < 1 for w in numbers)
        )  # fmt: skip
        assert whole.equal == (len(set(numbers)) < 2) or not numbers


@loop("fraction", [0, -0.1, 1.01, True, "x", math.nan])
def test_bad_fractions_are_one_sentence(fraction: Any) -> None:
    with pytest.raises(ParameterError, match="a sampling fraction is a number above 0 and at most 1"):
        population_risk(af.Table(people(), SCHEMA), fraction=fraction)


def test_what_else_is_refused() -> None:
    table = af.Table(people(), SCHEMA)
    with pytest.raises(ParameterError, match="needs a sampling fraction"):
        population_risk(table)
    weighted = af.Table(people(w=2), SCHEMA | {"w": {"role": "weight"}})
    with pytest.raises(ParameterError, match="leave the sampling fraction out"):
        population_risk(weighted, fraction=0.5)
    release = af.anonymize(table, "greedy", k=4, seed=1).release(seed=2**127).frame
    with pytest.raises(ParameterError, match="overlap"):
        population_risk(table, release, fraction=0.1)
    with pytest.raises(af.errors.SchemaError, match="a second weight"):
        af.Schema(SCHEMA | {"w": {"role": "weight"}, "v": {"role": "weight"}})
    with pytest.raises(ParameterError, match="threshold"):
        Population(0.1, threshold=2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
def test_of_a_release_and_as_an_attacker() -> None:
    schema = SCHEMA | {"w": {"role": "weight"}}
    table = af.Table(people(w=20), schema)
    release = af.anonymize(table, "mondrian", k=5, seed=1).release(seed=2**127)
    assert "w" in release.frame.columns
    risk = population_risk(table, release)
    assert risk.chosen is not None
    assert risk.chosen.uniques < population_risk(table).frame()["uniques"].max()
    assert risk.average < population_risk(table).average
    result = af.attack(table, release).set_index("attacker")
    assert result.loc["population", "success"] == pytest.approx(risk.average)
    assert result.loc["population", "low"] == result.loc["population", "high"]
    alone = af.attack(af.Schema(schema), release.frame, "population", k=5)
    assert alone["success"][0] == pytest.approx(risk.average)
    assert population_risk(af.Schema(schema), release.frame).average == pytest.approx(risk.average)


def test_an_anonymization_without_classes_is_refused_as_its_release_is() -> None:
    table = af.Table(people(), SCHEMA)
    anon = af.anonymize(table, "greedy", k=4, seed=1)
    with pytest.raises(ParameterError, match="overlap"):
        population_risk(table, anon, fraction=0.1)
    assert population_risk(table, af.anonymize(table, "mondrian", k=4), fraction=0.1).records == table.n
    with pytest.raises(ParameterError, match="its table"):
        population_risk(table.schema, anon, fraction=0.1)


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
def test_a_weight_does_not_keep_other_attackers_from_a_freeform_release(tmp_path: Path) -> None:
    schema = SCHEMA | {"w": {"role": "weight"}}
    table = af.Table(people(w=20), schema)
    release = af.anonymize(table, "greedy", k=4, seed=1).release(seed=2**127)
    result = af.attack(table, release)["attacker"].tolist()
    assert "linker" in result
    assert "population" not in result
    with pytest.raises(ParameterError, match="overlap"):
        af.attack(table, release, "population")


def hidden_few() -> tuple[af.Table, af.Anonymization]:
    """40 records in classes, and two that are suppressed beside k = 5."""
    kinds = {"nested": {"*": {"x": ["a", "b"], "y": ["c"]}}}
    schema = {
        "kind": {**QI, "kind": "hierarchy", "hierarchy": kinds, "boundary": ["x", "y"]},
        "sex": {**QI, "kind": "categorical"},
        "w": {"role": "weight"},
    }
    frame = pd.DataFrame(
        {"kind": ["a"] * 20 + ["b"] * 20 + ["c"] * 2, "sex": ["f", "m"] * 21, "w": [10] * 20 + [20] * 22}
    )
    table = af.Table(frame, schema)
    anon = af.anonymize(table, "mondrian", k=5, seed=1)
    assert anon.suppressed.sum() == 2
    return table, anon


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
def test_rows_that_say_nothing_have_no_risk_and_no_weight() -> None:
    table, anon = hidden_few()
    release = anon.release(seed=2**127)
    assert (release.frame["w"] == "*").sum() == 2
    before, after = (af.verify(table, each, "average-risk(most=1)", k=5) for each in (anon, release))
    assert before["average-risk"].detail == after["average-risk"].detail
    risk = population_risk(table, release)
    assert risk.records == 40
    assert risk.people == 20 * 10 + 20 * 20
    result = af.attack(table, release).set_index("attacker")
    assert result.loc["population", "targets"] == 40


def test_the_shell_prints_every_model_of_the_population(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.yaml").write_text(json.dumps({"columns": SCHEMA}))
    arguments = [tmp_path / "people.csv", "--schema", tmp_path / "schema.yaml"]
    status, out, err = shell(capsys, "risk", *arguments, "--fraction", 0.1)
    assert status == 0, err
    assert "expected to be linked correctly" in out
    assert [
        line.split()[0] for line in out.splitlines() if line.split()[:1] in (["zayatz"], ["pitman"], ["snb"])
    ]
    status, _, err = shell(capsys, "risk", *arguments, "--fraction", 2)
    assert status == 2
    assert "a sampling fraction is a number" in err


def test_average_risk_and_the_share_at_risk_can_be_enforced() -> None:
    schema = af.Schema({"age": {**QI, "kind": "numeric"}, "w": {"role": "weight"}})
    rows = pd.DataFrame({"age": ["1-2"] * 4 + ["3-4"] * 2})
    requests = ["average-risk(most=0.34)", "share-at-risk(threshold=0.25, most=0.34)"]
    assert af.verify(schema, rows, requests, k=2)  # (4 / 4 + 2 / 2) / 6, and 2 of 6 above 1 / 4
    for wrong in (
        "average-risk(most=0.33)",
        "share-at-risk(threshold=0.25)",
        "share-at-risk(threshold=0.2, most=0.9)",
    ):
        check = af.verify(schema, rows, wrong, k=2)
        assert not check
        assert check[wrong.split("(")[0]].positions
    weighted = rows.assign(w=10)
    mean = (4 * naive.individual_risk(4, 40) + 2 * naive.individual_risk(2, 20)) / 6
    assert af.verify(schema, weighted, f"average-risk(most={mean + 1e-6})", k=2)
    assert not af.verify(schema, weighted, f"average-risk(most={mean - 1e-6})", k=2)
    table = af.Table(people(), SCHEMA)
    release = af.anonymize(table, "greedy", k=4, seed=1).release(seed=2**127)
    with pytest.raises(ParameterError, match="its guarantee bounds its risks"):
        af.verify(table, release, "average-risk(most=0.5)")


def release_of(sizes: list[int], weight: list[float] | None = None) -> tuple[af.Table, pd.DataFrame]:
    """A release of classes of such sizes, that is its own original."""
    age = np.repeat(np.arange(len(sizes)), sizes)
    frame = pd.DataFrame({"age": age, "ill": "flu"})
    schema: dict[str, Any] = {"age": {**QI, "kind": "numeric"}, "ill": {"role": "sensitive"}}
    if weight is not None:
        frame["w"] = weight
        schema["w"] = {"role": "weight"}
    return af.Table(frame, schema), frame.astype({"age": str})


@pytest.mark.slow
@loop("fraction", [0.05, 0.5])
def test_uniqueness_is_enforced_as_dankars_rule_estimates_it(fraction: float) -> None:
    sizes = [1] * 30 + [2] * 20 + [3] * 10 + [5] * 8 + [9] * 4
    table, frame = release_of(sizes)
    chosen, _ = dankar(np.array(sizes), fraction)
    share = min(1.0, chosen.uniques * fraction / sum(sizes))
    for most, holds in ((share + 1e-6, True), (share - 1e-6, False)):
        (finding,) = af.verify(
            table, frame, {"uniqueness": {"most": most, "fraction": fraction}}, k=2
        ).findings
        assert finding.holds is holds
        assert chosen.model in finding.detail
    alone = af.verify(table.schema, frame, {"uniqueness": {"most": 0.5, "fraction": fraction}}, k=2)
    assert alone.findings[0].holds is (share <= 0.5)


def test_uniqueness_takes_equal_weights_and_no_others() -> None:
    sizes = [1] * 30 + [2] * 20 + [3] * 10
    table, frame = release_of(sizes, [20.0] * 100)
    by_weight = af.verify(table, frame, "uniqueness(most=0.5)", k=2).findings[0]
    plain = af.verify(*release_of(sizes), "uniqueness(most=0.5, fraction=0.05)", k=2).findings[0]
    assert by_weight.detail == plain.detail
    table, frame = release_of(sizes, [20.0] * 99 + [30.0])
    with pytest.raises(ParameterError, match="the weights are unequal"):
        af.verify(table, frame, "uniqueness(most=0.5)", k=2)
    with pytest.raises(ParameterError, match="leave the sampling fraction out"):
        af.verify(table, frame, "uniqueness(most=0.5, fraction=0.05)", k=2)
    with pytest.raises(ParameterError, match="needs the sampling fraction"):
        af.verify(*release_of(sizes), "uniqueness(most=0.5)", k=2)


def test_uniqueness_that_is_not_estimable_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    from anonflow.table.identification.population import Estimate

    nothing = Estimate("zayatz", math.nan, math.nan, math.nan, "not estimable")
    monkeypatch.setattr("anonflow.criteria.classes.dankar", lambda sizes, fraction: (nothing, [nothing]))
    checked = af.verify(*release_of([1, 2, 3]), "uniqueness(most=1, fraction=0.5)", k=2)
    assert checked.findings[0].holds is None
    assert not checked


@loop("text", ["average-risk(most=1)", "share-at-risk(threshold=1)", "uniqueness(most=1, fraction=0.1)"])
def test_risks_of_classes_are_not_asked_of_rows_that_overlap(text: str) -> None:
    """Attack: drop the certificate of a freeform release; counting rows that read alike would call its people unique."""
    table = af.Table(people(), SCHEMA)
    release = af.anonymize(table, "greedy", k=5, seed=2**100).release(seed=2**101)
    with pytest.raises(ParameterError, match="rows of this release overlap"):
        af.verify(table, release.frame, text, k=5)


@loop("as_text", ["register", "table"])
def test_a_register_of_texts_is_compared_with_a_table_of_numbers(as_text: str) -> None:
    """A file of CSV is text throughout, a data set and Parquet have numbers."""
    frame = pd.DataFrame({"age": [30, 31, 32, 33, 34, 35], "zip": [1, 1, 2, 2, 3, 3], "ill": list("uvuvuv")})
    columns: dict[str, Any] = {
        "age": {**QI, "kind": "numeric"}, "zip": {**QI, "kind": "categorical"}, "ill": {"role": "sensitive"},
    }  # fmt: skip
    register = pd.concat([frame, frame])[["age", "zip"]]
    texts = af.Table(frame.astype(str) if as_text == "table" else frame, columns)
    plain = af.Table(frame, columns)
    answers = [
        af.attack(
            table,
            af.anonymize(table, "mondrian", k=2, seed=1),
            ["journalist", "presence"],
            register=each,
            seed=1,
        )
        for table, each in (
            (plain, register),
            (texts, register.astype(str) if as_text == "register" else register),
        )
    ]
    assert answers[0].equals(answers[1])
    with pytest.raises(DataError, match="'age'"):
        af.attack(plain, frame.astype(str), "journalist", k=2, register=register.assign(age="old"))
