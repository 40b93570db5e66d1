"""Numbers near the largest: read, released, verified, measured and attacked, and nothing overflows on the way."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import risk
from anonflow.errors import AnonflowError
from anonflow.release import ReleaseWarning
from anonflow.utility.measures import MEASURES, measures_of_analyses

SEED = 1 << 100

COLUMNS = {
    "x": {"role": "quasi-identifier", "kind": "numeric"},
    "c": {"role": "quasi-identifier", "kind": "categorical"},
    "s": {"role": "sensitive"},
}


def frame(scale: float, n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    x = rng.uniform(-1.0, 1.0, n)
    s = 0.9 * x + rng.uniform(-0.1, 0.1, n)
    return pd.DataFrame({"x": x * scale, "c": rng.choice(["a", "b"], n), "s": s * scale})


HUGE, PLAIN = (af.Table(frame(scale), COLUMNS) for scale in (2.0**1023, 1.0))


@pytest.mark.parametrize("analyses", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("method", ["greedy", "mondrian"])
def test_they_are_measured_as_smaller_ones_are(method: str, analyses: bool) -> None:
    huge, plain = (af.anonymize(table, method, k=5, seed=SEED) for table in (HUGE, PLAIN))
    # a question and a regression need one; the others that learn from all columns learn from ranks
    options: dict[str, Any] = {"question": {"where": {"c": "a"}}, "classification": {"target": "c"}}
    for name in MEASURES:
        if analyses != (name in measures_of_analyses()):
            continue
        if name == "regression" or (MEASURES[name].extra and importlib.util.find_spec("sklearn") is None):
            continue
        big, small = (
            af.measure(table, result, [{name: options.get(name, {})}])[name]
            for table, result in ((HUGE, huge), (PLAIN, plain))
        )
        # a draw of its own stands for the release, and draws depend on the table: 60 records differ by chance
        bounds = {"rel": 0.2, "abs": 0.1} if analyses else {"rel": 1e-12, "abs": 0.0}
        assert big == pytest.approx(small, **bounds), name


def test_they_are_verified_and_attacked_as_smaller_ones_are() -> None:
    """What is drawn depends on the records, so numbers of the two differ a little; what is said does not."""
    answers = []
    for table in (HUGE, PLAIN):
        with pytest.warns(ReleaseWarning) as warned:
            release = af.anonymize(table, "greedy", k=5, seed=SEED).release(seed=SEED)
        check = af.verify(
            table, release, ["covers", "k-regular", {"t-closeness": {"t": 0.9, "distance": "numeric"}}], k=5
        )
        attacks = af.attack(table, release, k=5)
        assert np.isfinite(attacks["success"]).all()
        assert len(risk.describe(table, release.frame).frame())
        answers.append(
            (
                [str(warning.message)[:40] for warning in warned],
                [(item.criterion, item.holds) for item in check],
                attacks["attacker"].tolist(),
            )
        )
    assert answers[0] == answers[1]


def test_a_schema_is_guessed() -> None:
    assert list(af.Schema.infer(frame(2.0**1023))) == ["x", "c", "s"]
    whole = pd.DataFrame({"x": np.arange(-20, 20) * 2.0**1018})
    assert af.Schema.infer(whole)["x"].role == "quasi-identifier"


@pytest.mark.parametrize("width", [5e-324, 1e-300])
def test_an_interval_too_narrow_to_be_counted_holds_one_number(width: float) -> None:
    table = af.Table(
        pd.DataFrame({"x": [1.0, 1.0, 2.0, 2.0, 1e300, 1e300, 2e300, 2e300]}),
        {"x": {"role": "quasi-identifier", "kind": "numeric", "boundary": {"width": width}}},
    )
    assert af.anonymize(table, "greedy", k=2, seed=SEED).frame()["x"].nunique() == 4


@pytest.mark.parametrize("width", [4, 5.5, 2.0**61])
def test_intervals_of_whole_numbers_beyond_every_float_are_exact(width: float) -> None:
    """Of 2**60 a float64 has every 256th whole number only."""
    first = 2**60
    table = af.Table(
        pd.DataFrame({"x": [first + at for at in range(44)]}),
        {"x": {"role": "quasi-identifier", "kind": "numeric", "boundary": {"width": width}}},
    )
    cells = af.anonymize(table, "mondrian", k=2, seed=SEED).frame()["x"].unique()
    ends = [[int(end) for end in cell.split("-")] for cell in cells if cell != "*"]
    assert len(ends) > 1
    assert all(low // Fraction(width) == high // Fraction(width) for low, high in ends)


@pytest.mark.parametrize("method", ["mondrian", "greedy", "k-member"])
def test_widths_of_whole_numbers_beyond_every_float_are_exact(method: str) -> None:
    """Of 2**60 a float64 has every 256th whole number only: rounded, ranges were wider than max-width, and the verifier agreed."""
    first, limit = 2**60, 100
    table = af.Table(
        pd.DataFrame({"x": [first + 101 * (at // 2) + at % 2 for at in range(16)]}),
        {"x": {"role": "quasi-identifier", "kind": "numeric", "max-width": limit}},
    )
    anonymization = af.anonymize(table, method, k=2, seed=SEED)
    cells = anonymization.frame()["x"]
    ends = [[int(end) for end in cell.split("-")] for cell in cells if cell != "*"]
    assert ends
    assert all(high - low <= limit for low, high in ends)
    assert af.verify(table, anonymization, ["boundary"])
    narrow = replace(table.schema["x"], limit=0.5)
    assert not af.verify(
        af.Table(table.frame, {"x": narrow.to_mapping()}), pd.DataFrame({"x": cells}), ["boundary"]
    )


@pytest.mark.parametrize("pieces", ["false", "30"])
def test_a_flow_is_run(tmp_path: Path, pieces: str) -> None:
    frame(2.0**1023).to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "flow.yaml").write_text(
        f"flow: huge\nversion: 1\ntable:\n  source: {{csv: people.csv, pieces: {pieces}}}\n  columns:\n"
        "    x: {role: quasi-identifier, kind: numeric}\n    c: {role: quasi-identifier, kind: categorical}\n"
        "    s: {role: sensitive}\npartition: {size: 20}\nsteps:\n  - anonymize: {algorithm: greedy, k: 5}\n"
        "  - measure: [gcp, usefulness, row-types]\npublish: {table: out/t.csv, report: out/r.html}\n"
    )
    assert af.run(tmp_path / "flow.yaml", seed=SEED, workers=1).ok


@pytest.mark.parametrize("pieces", ["false", "30"])
def test_a_huge_partition_is_the_whole_table(tmp_path: Path, pieces: str) -> None:
    people = frame(1.0)
    people.to_csv(tmp_path / "people.csv", index=False)
    results = []
    for size in (len(people), 10**20):
        (tmp_path / "flow.yaml").write_text(
            f"flow: huge\nversion: 1\ntable:\n  source: {{csv: people.csv, pieces: {pieces}}}\n  columns:\n"
            "    x: {role: quasi-identifier, kind: numeric}\n    c: {role: quasi-identifier, kind: categorical}\n"
            f"    s: {{role: sensitive}}\npartition: {{size: {size}}}\nsteps:\n  - anonymize: {{algorithm: mondrian, k: 5}}\n"
            "publish: {table: out/t.csv}\n"
        )
        assert af.run(tmp_path / "flow.yaml", seed=SEED, workers=1, fresh=True).ok
        results.append((tmp_path / "out" / "t.csv").read_bytes())
    assert results[0] == results[1]


def test_a_huge_partition_or_budget_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anonflow.algorithms.budget.MOST_EFFORT", 25)  # what no budget goes beyond
    table = af.Table(
        frame(1.0),
        {
            "x": {"role": "quasi-identifier", "kind": "numeric"},
            "c": {"role": "quasi-identifier", "kind": "categorical"},
            "s": {"role": "sensitive"},
        },
    )
    whole = af.anonymize(table, "mondrian", k=5, seed=SEED).frame()
    assert af.anonymize(table, "mondrian", k=5, seed=SEED, partition_size=10**20).frame().equals(whole)
    assert len(af.compare(table, ["mondrian"], k=[5], partition_size=10**20)) == 1
    long = af.anonymize(table, "two-phase", k=5, budget=1e308)
    assert long.frame().shape == whole.shape
    assert long.facts["kicks"] <= 100
    assert (
        af.anonymize(table, "mondrian", k=5, partition_size="auto", budget=1e308).frame().shape == whole.shape
    )


def test_a_number_beyond_every_float_is_refused_where_it_stands() -> None:
    far = 10**400
    frame = pd.DataFrame({"age": range(40), "ill": list("uv") * 20})
    age = {"role": "quasi-identifier", "kind": "numeric"}
    for column, words in (
        (age | {"weight": far}, "weight must be a positive number"),
        (age | {"max-width": far}, "max-width must be a number"),
        (age | {"boundary": {"width": far}}, "a boundary is"),
        (
            age | {"kind": "hierarchy", "hierarchy": {"intervals": {"step": far}}},
            "step must be a finite number",
        ),
    ):
        with pytest.raises(AnonflowError, match=words):
            af.Table(frame, {"age": column})
    with pytest.raises(AnonflowError, match="1 value that is no finite number"):
        af.Hierarchy.from_intervals([1, far], step=10, levels=2)
    for target, words in (
        ({"loss": far}, "loss is a number"),
        ({"loss": 0.1, "time": far}, "time is a duration"),
    ):
        with pytest.raises(AnonflowError, match=words):
            af.search(af.Table(frame, {"age": age}), target)
