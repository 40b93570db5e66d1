"""Households and years: households of rows that are people each, keys with a scope, lists for the owner alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import engine
from anonflow.errors import FlowError, HierarchyError, ParameterError, SchemaError
from anonflow.release import Earlier
from tests.cases.runs import shell

QI = {"role": "quasi-identifier"}
HOMES: dict[str, Any] = {
    "home": {"role": "household"},
    "age": {**QI, "kind": "numeric"},
    "town": {**QI, "kind": "categorical"},
    "ill": {"role": "sensitive"},
}
SERIAL: dict[str, Any] = {**HOMES, "number": {"role": "identifier"}}
SEED = 2**127


def people(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {
            "number": np.arange(n),
            "home": np.arange(n) // 3,
            "age": rng.integers(20, 80, n),
            "town": rng.choice(["Hull", "York"], n),
            "ill": rng.choice(["flu", "cold"], n),
        }
    )


def test_a_household_of_rows_that_are_people_is_attacked() -> None:
    table = af.Table(people(), HOMES)
    assert table.records.units is None
    assert table.unit_rows == 1
    anon = af.anonymize(table, "mondrian", k=5, seed=SEED)
    (row,) = af.attack(table, anon.release(seed=SEED), "linker").to_dict("records")
    alone = af.Table(people(), {name: column for name, column in HOMES.items() if name != "home"})
    (of_rows,) = af.attack(alone, af.anonymize(alone, "mondrian", k=5, seed=SEED), "linker").to_dict(
        "records"
    )
    assert row["success"] == pytest.approx(of_rows["success"])
    assert row["worst"] == pytest.approx(of_rows["worst"])
    assert row["households"] == 20
    sizes = np.bincount(anon.classes)[anon.classes]
    assert anon.classes is not None
    expected = np.array(
        [
            1 - np.prod([1 - (classes == label).sum() / size for label, size in set(zip(classes, of, strict=True))])
            for classes, of in zip(anon.classes.reshape(20, 3), sizes.reshape(20, 3), strict=True)
        ]
    )  # fmt: skip
    assert row["household_success"] == pytest.approx(expected.mean())
    assert row["household_worst"] == pytest.approx(expected.max())
    assert "unit" not in set(af.attack(table, anon)["attacker"])
    assert [finding.criterion for finding in af.verify(table, anon)] == ["covers", "k-anonymity"]


def test_a_household_without_units_on_disk_gives_the_same_figures(tmp_path: Path) -> None:
    people().to_csv(tmp_path / "people.csv", index=False)
    rows = []
    for pieces in ("true", "false"):
        flow = tmp_path / f"{pieces}.yaml"
        flow.write_text(
            f"flow: homes-{pieces}\nversion: 1\ntable:\n  source: {{csv: people.csv, pieces: {pieces}}}\n"
            f"  columns: {json.dumps(HOMES)}\npartition: {{size: 20}}\n"
            "steps:\n  - anonymize: {algorithm: mondrian, k: 5}\n  - draw: {}\n  - verify: [covers, guarantee]\n"
            f"  - attack: [linker]\npublish: {{table: out/{pieces}.csv}}\n"
        )
        report = engine.run(flow, seed=SEED)
        assert report.ok
        assert report.attacks is not None
        rows.append(
            report.attacks[["households", "household_success", "household_worst"]].to_numpy().tolist()
        )
    np.testing.assert_allclose(rows[0], rows[1])


def test_people_without_a_number_are_known_by_what_they_are_and_not_by_their_household() -> None:
    assert af.Table(people(), HOMES).unit_columns == ("age", "town")


def test_serial_numbers_of_two_years_raise_no_alarm(tmp_path: Path) -> None:
    def schema(scope: str | None) -> dict[str, Any]:
        column = {"role": "identifier"} if scope is None else {"role": "identifier", "scope": scope}
        return {**SERIAL, "number": column}

    earlier = Earlier(tmp_path)
    first = af.Table(people(), schema("survey-2024"))
    earlier.keep(first, af.anonymize(first, "mondrian", k=5, seed=SEED).release(seed=SEED))
    again = earlier.overlap(af.Table(people(), schema("survey-2024")))
    assert again.again == 60
    assert "'number of survey-2024'" in again.sentence()
    assert not earlier.overlap(af.Table(people(), schema("survey-2025")))
    assert not earlier.overlap(af.Table(people(), schema(None)))
    assert af.Schema(schema("survey-2024")).to_mapping()["number"] == schema("survey-2024")["number"]


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ({"role": "identifier", "scope": 3}, "scope is a text"),
        ({"role": "household", "scope": "a"}, "'scope' only for the roles identifier, unit"),
        ({**QI, "kind": "numeric", "scope": "a"}, "scope is for the roles identifier and unit"),
    ],
)
def test_scopes_that_cannot_be(column: dict[str, Any], problem: str) -> None:
    with pytest.raises(SchemaError, match=problem):
        af.Schema({**HOMES, "number": column})


def test_who_was_released_before_is_listed_for_the_owner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = people()
    table = af.Table(frame, SERIAL)
    af.anonymize(table, "mondrian", k=5, seed=SEED).release(seed=SEED, owner=tmp_path / "owner")
    later = frame.assign(number=np.where(frame["number"] < 57, frame["number"] + 1000, frame["number"]))
    matched = Earlier(tmp_path / "owner").matched(af.Table(later, SERIAL))
    assert matched.to_dict("list") == {"position": [57, 58, 59], "releases": [1, 1, 1]}
    later.to_csv(tmp_path / "later.csv", index=False)
    (tmp_path / "schema.yaml").write_text(f"columns: {json.dumps(SERIAL)}\n")
    command = ("risk", tmp_path / "later.csv", "--schema", tmp_path / "schema.yaml", "--earlier")
    status, text, _ = shell(capsys, *command, tmp_path / "owner")
    assert status == 0
    assert "3 of 60 records were released before" in text
    status, text, _ = shell(capsys, *command, tmp_path / "owner", "--json")
    assert json.loads(text)["released"] == matched.to_dict("records")
    assert shell(capsys, *command, tmp_path / "nothing")[0] == 2
    others = af.Table(later.iloc[40:].reset_index(drop=True), SERIAL)
    af.anonymize(others, "mondrian", k=5, seed=SEED).release(seed=SEED, owner=tmp_path / "other")
    status, text, _ = shell(capsys, *command, tmp_path / "owner", "--earlier", tmp_path / "other", "--json")
    released = json.loads(text)["released"]
    assert [each["position"] for each in released] == list(range(40, 60))
    assert [each["releases"] for each in released] == [1] * 17 + [2] * 3


def test_labels_that_a_hierarchy_lacks_are_shown_to_the_owner_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = {"*": {"North": ["Hull"], "South": ["Bath"]}}
    schema = {**HOMES, "town": {**QI, "kind": "hierarchy", "hierarchy": {"nested": tree}}}
    york = int((people()["town"] == "York").sum())
    with pytest.raises(HierarchyError) as caught:
        af.Table(people(), schema)
    assert "York" not in str(caught.value)
    assert caught.value.labels == {"town": {"York": york}}
    people().to_csv(tmp_path / "people.csv", index=False)
    flow = tmp_path / "flow.yaml"
    flow.write_text(
        f"flow: labels\nversion: 1\ntable:\n  source: {{csv: people.csv}}\n  columns: {json.dumps(schema)}\n"
        "steps:\n  - anonymize: {algorithm: mondrian, k: 5}\n  - draw: {}\npublish: {table: out/r.csv}\n"
    )
    status, text, problems = shell(capsys, "run", flow, "--quiet")
    assert status == 2
    assert "York" not in text + problems
    assert "labels.csv: has these labels, for the owner alone" in problems
    file = tmp_path / "owner" / "labels" / "labels.csv"
    assert file.read_text() == f"column,label,cells\ntown,York,{york}\n"
    assert file.stat().st_mode & 0o077 == 0
    with pytest.raises(HierarchyError) as caught:
        af.Table.read(tmp_path / "people.csv", schema)
    assert caught.value.labels == {"town": {"York": york}}
    people().replace("York", "Bath").to_csv(tmp_path / "people.csv", index=False)
    assert shell(capsys, "run", flow, "--quiet")[0] == 0
    assert not file.exists()


def weighted(n: int = 240) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {"age": rng.integers(20, 90, n), "sex": rng.choice(["F", "M"], n), "weight": np.full(n, 10.0)}
    )


WEIGHTED: dict[str, Any] = {
    "age": {**QI, "kind": "numeric"},
    "sex": {**QI, "kind": "categorical"},
    "weight": {"role": "weight"},
}


def test_the_population_is_attacked_where_classes_overlap() -> None:
    """Classes of k-member lie inside the ranges of others, and a class may be * throughout."""
    table = af.Table(weighted(), WEIGHTED)
    anon = af.anonymize(table, "k-member", k=4, seed=SEED)
    release = anon.release(seed=SEED)
    sizes = np.bincount(anon.classes)[anon.classes]
    for subject, settings in ((release, {}), (release.frame, {"k": 4})):
        (row,) = af.attack(table, subject, "population", **settings).to_dict("records")
        assert row["targets"] == 240
        assert "are not estimated: classes of this release overlap" in row["sentence"]
        assert 0 < row["success"] <= (1 / (10 * sizes)).mean() * 2
    assert "population" in set(af.attack(table, release)["attacker"])
    with pytest.raises(ParameterError, match="need classes"):
        af.attack(table, af.anonymize(table, "greedy", k=4, seed=SEED), "population")


def test_a_flow_says_before_it_runs_that_a_method_makes_no_classes(tmp_path: Path) -> None:
    weighted().to_csv(tmp_path / "people.csv", index=False)
    flow = tmp_path / "flow.yaml"
    text = (
        f"flow: weights\nversion: 1\ntable:\n  source: {{csv: people.csv}}\n  columns: {json.dumps(WEIGHTED)}\n"
        "steps:\n  - anonymize: {algorithm: METHOD, k: 5}\n  - draw: {}\n  - attack: [population]\n"
        "publish: {table: out/r.csv}\n"
    )
    flow.write_text(text.replace("METHOD", "greedy"))
    with pytest.raises(FlowError, match="'population' needs a release of classes, and greedy makes none"):
        engine.load_flow(flow)
    flow.write_text(text.replace("METHOD", "k-member"))
    report = engine.run(flow)
    assert report.ok
    assert report.attacks is not None
    assert report.attacks["attacker"].tolist() == ["population"]
