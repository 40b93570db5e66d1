"""Six users' jobs from the first command to the last figure: how many commands they take, and where they stumble.

A stumble is what a machine can see: a refusal, or a warning. Each job is done by the README, the documentation, `--help` and messages
alone, on a generated table of its kind. A number here that grows is a worse way for somebody.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import strict_yaml
from anonflow.errors import AnonflowWarning
from tests.cases.runs import shell

pytestmark = pytest.mark.slow

N = 400


class Journey:
    """The commands of somebody's job in a folder, and their stumbles."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.commands = 0
        self.stumbles: list[str] = []
        self._capsys = capsys

    def __call__(self, *arguments: str, status: int = 0) -> str:
        """Give a command; what it says."""
        self.commands += 1
        ended, out, err = shell(self._capsys, *arguments)
        output = f"{out}\n{err}"
        assert ended == status, output
        if ended >= 2:
            self.stumbles.append(output.strip().splitlines()[-1])
        self.stumbles += [line for line in output.splitlines() if line.startswith("warning:")]
        return output

    def write(self, name: str, **columns: object) -> pd.DataFrame:
        """Write a table of the folder."""
        frame = pd.DataFrame(columns)
        frame.to_csv(self.folder / name, index=False)
        return frame

    def ends(self, commands: int, *stumbles: str) -> None:
        """The job is done in so many commands, with these stumbles, each named by a word of it."""
        assert self.commands <= commands
        assert len(self.stumbles) == len(stumbles), self.stumbles
        for output, word in zip(self.stumbles, stumbles, strict=True):
            assert word in output


@pytest.fixture
def journey(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Journey:
    monkeypatch.chdir(tmp_path)
    return Journey(tmp_path, capsys)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def survey(rng: np.random.Generator) -> dict[str, object]:
    return {
        "age": rng.integers(18, 90, N),
        "sex": rng.choice(["f", "m"], N),
        "education": rng.choice(["low", "middle", "high"], N),
        "children": rng.integers(0, 5, N),
        "income": rng.choice(["low", "middle", "high"], N),
    }


def test_a_privacy_officer_signs(journey: Journey, rng: np.random.Generator) -> None:
    """Patients with several visits: who stands alone, a flow, a release, and a report to be signed."""
    journey.write(
        "hospital.csv",
        patient=[f"p{at // 2}" for at in range(N)],
        age=rng.integers(18, 90, N),
        sex=rng.choice(["f", "m"], N),
        postcode=[f"{10000 + 10 * code:05d}" for code in rng.integers(0, 40, N)],
        bmi=np.where(rng.random(N) < 0.2, np.nan, np.round(rng.normal(26, 4, N), 1)),
        diagnosis=rng.choice(["flu", "asthma", "cancer", "none"], N, p=[0.3, 0.2, 0.1, 0.4]),
    )
    journey("init", "hospital.csv", "--yes", "--algorithm", "two-phase")
    flow = strict_yaml.read(journey.folder / "hospital.flow.yaml").data
    assert flow["table"]["columns"]["patient"] == {"role": "unit"}
    assert flow["table"]["columns"]["bmi"]["missing"] == "value"
    assert "unique" in journey("risk", "hospital.csv", "--schema", "hospital.flow.yaml")
    output = journey("run", "hospital.flow.yaml")
    assert "for the person at highest risk, who has 2 rows" in output
    assert (journey.folder / "out" / "hospital.html").is_file()
    journey(
        "verify",
        "--release",
        "out/hospital.csv",
        "--original",
        "hospital.csv",
        "--schema",
        "hospital.flow.yaml",
    )
    journey.ends(4)


def test_a_statistical_office_publishes(journey: Journey, rng: np.random.Generator) -> None:
    """Decimal commas, semicolons, households, weights: a file for SPSS."""
    frame = pd.DataFrame(
        {
            "household": np.repeat(np.arange(N // 2), 2),
            "PWGTP": rng.integers(50, 150, N),
            "age": rng.integers(18, 90, N),
            "sex": rng.choice(["1", "2"], N),
            "hours": [f"{value:.1f}".replace(".", ",") for value in rng.choice([20, 30, 38.5, 40], N)],
        }
    )
    frame.to_csv(journey.folder / "office.csv", sep=";", index=False)
    output = journey("init", "office.csv", "--yes", "--algorithm", "k-member")
    assert "between semicolons" in output
    columns = strict_yaml.read(journey.folder / "office.flow.yaml").data["table"]["columns"]
    assert columns["household"]["role"] == "household"
    assert columns["PWGTP"]["role"] == "weight"
    path = journey.folder / "office.flow.yaml"
    path.write_text(path.read_text().replace("out/office.csv", "out/office.sav"))
    assert "households somebody is named" in journey("run", "office.flow.yaml")
    assert len(pd.read_csv(journey.folder / "office.csv", sep=";")) == N
    journey(
        "verify", "--release", "out/office.sav", "--original", "office.csv", "--schema", "office.flow.yaml"
    )
    journey.ends(3)


def test_a_data_engineer_has_it_in_a_pipeline(journey: Journey, rng: np.random.Generator) -> None:
    """Checked before it runs, run twice, a gate on the result, and a change that needs a word."""
    journey.write("people.csv", **survey(rng))
    journey("init", "people.csv", "--yes", "--k", "5", "--algorithm", "greedy")
    journey("validate", "people.flow.yaml")
    assert "seconds expected" in journey("plan", "people.flow.yaml")
    journey("run", "people.flow.yaml")
    first = (journey.folder / "out" / "people.csv").read_bytes()
    assert "published already" in journey("run", "people.flow.yaml")
    assert (journey.folder / "out" / "people.csv").read_bytes() == first
    assert "needs the original table" in journey(
        "verify", "--release", "out/people.csv", "--schema", "people.flow.yaml", status=1
    )
    (journey.folder / "out" / "people.csv").write_bytes(first.replace(b"low", b"high", 3))
    journey(
        "verify",
        "--release",
        "out/people.csv",
        "--original",
        "people.csv",
        "--schema",
        "people.flow.yaml",
        status=1,
    )
    journey.ends(7)


def test_an_analyst_computes_with_a_release(journey: Journey, rng: np.random.Generator) -> None:
    """A release as it was downloaded: a count that is certain, a mean, a table, a regression."""
    frame = journey.write("people.csv", **survey(rng))
    journey("init", "people.csv", "--yes", "--k", "5", "--algorithm", "two-phase")
    journey("run", "people.flow.yaml")
    release = af.read_release(journey.folder / "out" / "people.csv")
    middle_aged = af.count(release, {"age": (40, 59)})
    assert middle_aged.certain <= frame["age"].between(40, 59).sum() <= middle_aged.possible
    tables = af.plausible(release, 5, seed=1)
    (mean,) = tables.mean("age").to_dict("records")
    assert mean["least"] <= mean["low"] <= frame["age"].mean() <= mean["high"] <= mean["most"]
    assert len(tables.crosstab("sex", "income")) > 0
    journey.ends(2)


def test_a_teacher_shows_it(journey: Journey, rng: np.random.Generator) -> None:
    """A school's pupils, in lines of Python, and a page that compares methods: both on the whole table."""
    born = pd.Timestamp("2012-01-01") + pd.to_timedelta(rng.integers(0, 2000, 120), unit="D")
    frame = pd.DataFrame(
        {
            "Pupil name": [f"{first} B." for first in rng.choice(["Ana", "Ben", "Cem"], 120)],
            "Born": born.strftime("%m/%d/%Y"),
            "Class": [
                f"{year}{part}"
                for year, part in zip(rng.integers(5, 9, 120), rng.choice(["a", "b"], 120), strict=True)
            ],
            "Siblings": rng.choice(["0", "1", "2", "3+"], 120),
            "Height": np.where(rng.random(120) < 0.1, np.nan, rng.integers(130, 180, 120)),
            "Points": np.round(rng.normal(60, 15, 120), 1),
        }
    )
    frame.to_csv(journey.folder / "class.csv", index=False)
    journey("init", "class.csv", "--yes", "--k", "5")
    columns = strict_yaml.read(journey.folder / "class.flow.yaml").data["table"]["columns"]
    assert columns["Pupil name"] == {"role": "identifier"}
    assert columns["Class"]["role"] == "quasi-identifier"
    table = af.Table.read(journey.folder / "class.csv", schema=columns)
    anonymization = af.anonymize(table, "mondrian", k=5)
    assert 0 < anonymization.loss("gcp") < 1
    output = journey(
        "compare", "class.csv", "--schema", "class.flow.yaml", "--algorithms", "mondrian,greedy,two-phase", "--k", "3,5",
        "--html", "class.html",
    )  # fmt: skip
    assert (
        len(re.findall(r"^(?:mondrian|greedy|two-phase) k=", output, re.M)) == 6
        or output.count("two-phase") >= 2
    )
    assert (journey.folder / "class.html").is_file()
    assert "the whole table" in output
    seen = af.compare(table, ["mondrian"], 5)
    assert seen["gcp"].tolist() == [pytest.approx(anonymization.loss("gcp"))]
    release = anonymization.release()
    assert af.verify(table, release)
    with pytest.warns(AnonflowWarning, match="condition on 'Class'"):
        assert af.count(release, {"Class": "7A"}).uniform == 0
    journey.ends(2)


def test_a_contributor_adds_an_attacker(journey: Journey, rng: np.random.Generator) -> None:
    """Its class alone: tried by name of the object, with its figures in the same frame."""
    from anonflow.risk.attacker import AttackerKind, Success

    class Oldest(AttackerKind):
        name = "oldest"
        does = "points at the oldest row"
        knows = "who is the oldest"

        def attack(self, context: af.risk.AttackContext) -> Success:
            return Success(1, 0.0, 0.0, 0, 1 / context.k, "It found nobody.")

    frame = pd.DataFrame(survey(rng))
    table = af.Table(
        frame, {"age": {"role": "quasi-identifier", "kind": "numeric"}, "sex": {"role": "insensitive"}}
    )
    release = af.anonymize(table, "mondrian", k=5).release()
    seen: Callable[..., pd.DataFrame] = af.attack
    assert seen(table, release, [Oldest(), "prosecutor"])["attacker"].tolist() == ["oldest", "prosecutor"]
    journey.ends(0)
