"""Measures of analyses in flows: every option reaches its measure, and what is wrong is one sentence before work."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import cli, engine
from anonflow.errors import AnonflowError
from anonflow.strict_yaml import loads
from anonflow.utility import MEASURES, measures_of_analyses

SEED = 2**128 - 159

COLUMNS = """\
    age: {role: quasi-identifier, kind: numeric}
    job: {role: quasi-identifier, kind: categorical}
    sex: {role: quasi-identifier, kind: categorical}
    income: {role: insensitive}
    rich: {role: sensitive}
"""

REQUESTS = {
    "k-marginals": "{tables: 3, seed: 7, by: sex}",
    "k-marginals-3": "{tables: 2, seed: 7, by: rich}",
    "pair-distance": "{tables: 3, seed: 8, by: sex}",
    "association": "{tables: 2, seed: 8, by: sex}",
    "propensity": "{tables: 3, seed: 9, by: sex}",
    "regression": "{formula: 'income ~ age + job', tables: 3, seed: 9, by: sex}",
    "classification": "{target: sex, tables: 2, seed: 9, by: rich}",
    "question": "{where: {age: {from: 30, to: 39}}, among: {job: [clerk, cook]}, tables: 3, seed: 9, by: sex}",
}
PACKAGES = {"scikit-learn": "sklearn"}


def installed(name: str) -> bool:
    extra = MEASURES[name].extra
    return not extra or importlib.util.find_spec(PACKAGES[extra]) is not None


def people(smallest: int = 70) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    n = 160
    age = rng.integers(20, 60, n)
    income = age * 100 + rng.normal(0, 300, n).round()
    sex = np.repeat(["f", "m"], [smallest, n - smallest])
    return pd.DataFrame(
        {
            "age": age,
            "job": rng.choice(["clerk", "cook", "nurse"], n),
            "sex": rng.permutation(sex),
            "income": income,
            "rich": np.where(income > 4000, "yes", "no"),
        }
    )


def flow(folder: Path, measures: str, frame: pd.DataFrame | None = None) -> Path:
    (people() if frame is None else frame).to_csv(folder / "people.csv", index=False)
    path = folder / "flow.yaml"
    path.write_text(
        f"flow: test\nversion: 1\ntable:\n  source: {{csv: people.csv}}\n  columns:\n{COLUMNS}"
        "partition: {size: 80}\nsteps:\n  - anonymize: {algorithm: mondrian, k: 4}\n  - draw: {}\n"
        f"  - measure: [{measures}]\npublish: {{report: out/report.html}}\n",
        encoding="utf-8",
    )
    return path


def test_every_option_of_every_measure_is_asked_for_here() -> None:
    assert set(REQUESTS) == set(measures_of_analyses())
    for name, options in REQUESTS.items():
        assert set(loads(options, "test").data) == set(MEASURES[name].options), name


@pytest.mark.slow
def test_a_flow_measures_what_python_measures(tmp_path: Path) -> None:
    wanted = {name: options for name, options in REQUESTS.items() if installed(name)}
    path = flow(tmp_path, ", ".join(f"{{{name}: {options}}}" for name, options in wanted.items()))
    (result,) = engine.run(path, seed=SEED).results
    anonymization = result.anonymization
    assert anonymization is not None
    own = af.measure(
        anonymization.table,
        anonymization,
        [{name: loads(text, "test").data} for name, text in wanted.items()],
    )
    assert {key: result.measures[key] for key in own} == own
    # measured against the originals: told in the owner's report, never in a published one
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "What an analysis loses" not in page
    assert "k-marginals" not in page


@pytest.mark.slow
def test_the_shell_compares_by_every_measure_and_tells_the_owner(tmp_path: Path, capsys: Any) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.yaml").write_text(f"columns:\n{COLUMNS}", encoding="utf-8")
    wanted = {name: options for name, options in REQUESTS.items() if installed(name)}
    arguments = ["compare", tmp_path / "people.csv", "--schema", tmp_path / "schema.yaml", "--k", "4"]
    arguments += [
        "--algorithms",
        "mondrian",
        "--csv",
        tmp_path / "runs.csv",
        "--html",
        tmp_path / "runs.html",
    ]
    for name, options in wanted.items():
        arguments += ["--measure", f"{{{name}: {options}}}"]
    with pytest.raises(SystemExit) as left:
        cli.main([str(each) for each in arguments])
    assert left.value.code == 0, capsys.readouterr().err
    runs = pd.read_csv(tmp_path / "runs.csv")
    page = (tmp_path / "runs.html").read_text(encoding="utf-8")
    for name, options in wanted.items():
        by = loads(options, "test").data["by"]
        for key in (name, *(f"{name}-{part}" for part in MEASURES[name].parts), f"{name}-worst-by-{by}"):
            assert f">{key}<" in page
            assert np.isfinite(runs[key]).all()
    frame = people()
    among = frame[frame["job"].isin(["clerk", "cook"])]
    assert runs["question-truth"].tolist() == [pytest.approx(among["age"].between(30, 39).mean())]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * bool(MEASURES[name].extra)) for name in REQUESTS]
)
def test_every_option_matters(name: str) -> None:
    """Without it, or with another value, the measure gives something else."""
    if not installed(name):
        pytest.skip(f"needs {MEASURES[name].extra}")
    table = af.Table(people(), loads(f"columns:\n{COLUMNS}", "test").data["columns"])
    anonymization = af.anonymize(table, "mondrian", k=4, seed=SEED)
    options = loads(REQUESTS[name], "test").data

    def numbers(**changed: Any) -> dict[str, Any]:
        own = {key: value for key, value in (options | changed).items() if value is not None}
        return dict(af.measure(table, anonymization, [{name: own}]))

    whole = numbers()
    others: dict[str, Any] = {
        "tables": 5, "seed": 11, "by": None, "formula": "income ~ age", "target": "job",
        "where": {"age": {"from": 30, "to": 34}}, "among": None,
    }  # fmt: skip
    for option in options:
        assert numbers(**{option: others[option]}) != whole, option


@pytest.mark.parametrize(
    ("measures", "words"),
    [
        ("{k-marginals: {tabels: 3}}", "unknown option 'tabels'"),
        ("{k-marginals: {by: sx}}", "there is no column 'sx' (did you mean 'sex'?)"),
        (
            "{regression: {formula: income ~ agee}}",
            "formula: there is no column 'agee' (did you mean 'age'?)",
        ),
        ("regression", "'regression' needs the option 'formula'"),
        ("{question: {where: {agee: 3}}}", "there is no column 'agee'"),
        ("{question: {where: {age: {form: 3}}}}", "a range is {from: NUMBER, to: NUMBER}"),
        ("{classification: {target: jb}}", "there is no column 'jb' (did you mean 'job'?)"),
        ("{k-marginals: {by: sex}}", "the smallest subgroup of 'sex' has 5 people, and an analysis needs 50"),
    ],
)
def test_what_is_wrong_is_a_sentence(tmp_path: Path, measures: str, words: str) -> None:
    name = measures.strip("{").partition(":")[0]
    if not installed(name):
        pytest.skip(f"needs {MEASURES[name].extra}")
    with pytest.raises(AnonflowError) as error:
        engine.run(flow(tmp_path, measures, people(smallest=5)), seed=SEED)
    assert words in str(error.value)
    assert not (tmp_path / "out").exists()
    lines = [line for line in str(error.value).splitlines() if words in line]
    assert len(lines) == 1
