"""Attackers in a flow: on the release that would be published, told to the owner, some of it in the report."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import engine, risk
from anonflow.engine.flows.fingerprint import Fingerprint
from anonflow.engine.publish import listed_sizes
from anonflow.errors import DataError, FlowError, ParameterError
from tests.cases.flow_files import COLUMNS, REPORTED, people, write_flow

SEED = 0x1234567890ABCDEF1234567890ABCDEF
STEPS = "  - draw: {}\n  - attack: [prosecutor, {insider: {c: 1}}, order, homogeneity]\n"


def test_attackers_of_a_flow(tmp_path: Path) -> None:
    report = engine.run(write_flow(tmp_path, steps=STEPS, publish=REPORTED), seed=SEED)
    assert report.attacks is not None
    assert list(report.attacks["attacker"]) == ["prosecutor", "insider", "order", "homogeneity"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "What an attacker can do with it" in page
    assert "homogeneity" in page
    # what was counted against the truth, or on the originals, is the owner's alone
    assert "insider" not in page
    assert "prosecutor" not in page
    assert "The order of the rows" not in page
    record = json.loads((tmp_path / "owner" / "test" / "record.json").read_text())
    assert [row["attacker"] for row in record["attacks"]] == list(report.attacks["attacker"])


def test_the_same_seed_attacks_the_same_people(tmp_path: Path) -> None:
    flow = write_flow(
        tmp_path,
        steps="  - draw: {}\n  - attack: [{insider: {c: 1, targets: 20}}]\n",
    )
    first = engine.run(flow, seed=SEED).attacks
    again = engine.run(flow, seed=SEED, again=True, scheduler="threads", workers=1).attacks
    assert first is not None
    assert first.equals(again)


def test_the_report_has_the_page_without_being_asked(tmp_path: Path) -> None:
    report = engine.run(write_flow(tmp_path, publish=REPORTED))
    assert report.attacks is not None
    usual = {"prosecutor", "marketer", "linker", "linkable-columns", "homogeneity"}
    assert set(report.attacks["attacker"]) == usual


def test_attackers_that_no_sample_lets_run_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The matches of a whole table link all rows: no part of a large release can be attacked alone."""
    for module in ("anonflow.engine.publish", "anonflow.engine.report.attacks"):
        monkeypatch.setattr(f"{module}.MOST", 30)
    steps = "  - draw: {}\n  - attack: [prosecutor, linker, homogeneity]\n"
    report = engine.run(write_flow(tmp_path, steps=steps, partition="{size: null}"), seed=SEED)
    assert report.attacks is not None
    assert report.attacks["attacker"].tolist() == ["linker"]
    (warning,) = [warning for warning in report.warnings if "not tried" in warning]
    assert "prosecutor, homogeneity" in warning


def test_an_attacker_who_cannot_be_tried_is_left_out_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(self: object, context: object) -> None:
        raise ParameterError("more than it can list")

    monkeypatch.setattr(risk.LinkableColumns, "attack", refuses)
    report = engine.run(write_flow(tmp_path, publish=REPORTED))
    assert report.attacks is not None
    assert set(report.attacks["attacker"]) == {"prosecutor", "marketer", "linker", "homogeneity"}


@pytest.mark.parametrize(
    ("algorithm", "pieces"),
    [
        ("greedy", "false"),
        ("k-concealment", "70"),
        *(
            pytest.param(*other, marks=pytest.mark.slow)
            for other in (
                ("greedy", "70"),
                ("mondrian", "false"),
                ("mondrian", "70"),
                ("k-concealment", "false"),
            )
        ),
    ],
)
def test_of_a_large_table_a_sample_is_attacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithm: str, pieces: str
) -> None:
    """Whole partitions; who is covered by how many rows is counted in the whole release."""
    monkeypatch.setattr("anonflow.engine.publish.MOST", 150)
    monkeypatch.setattr("anonflow.engine.report.attacks.SAMPLE", 90)
    flow = write_flow(
        tmp_path, n=300, anonymize=f"{{algorithm: {algorithm}, k: 4}}", partition="{size: 30}",
        source=f"{{csv: people.csv, pieces: {pieces}}}", publish="{table: out/t.csv, report: out/report.html}",
    )  # fmt: skip
    attacks = engine.run(flow, seed=SEED).attacks
    assert attacks is not None
    by_name = attacks.set_index("attacker")
    assert {"prosecutor", "marketer", "linker", "linkable-columns", "homogeneity"} == set(by_name.index)
    assert by_name.loc["marketer", "targets"] == 90
    assert by_name.loc["marketer", "sentence"].startswith("Of a sample of 90 people: ")
    assert (
        by_name.loc["marketer", "low"] < by_name.loc["marketer", "success"] < by_name.loc["marketer", "high"]
    )
    page = (tmp_path / "out" / "report.html").read_text()
    # without lists, whoever may own a row is found by the originals: nothing of it is published
    assert ("What an attacker can do with it" in page) == (algorithm != "k-concealment")
    loaded = engine.load_flow(flow)
    table = af.Table.read(loaded.source_path, loaded.schema)
    whole = af.attack(table, tmp_path / "out" / "t.csv", ["marketer"], k=4)
    # naive: rows that cover a person, over everybody
    assert by_name.loc["marketer", "success"] == pytest.approx(whole.loc[0, "success"], rel=0.5)
    linker = by_name.loc["linker"]
    if algorithm == "k-concealment":
        assert linker["targets"] == 90
    else:
        assert linker["targets"] == 300
        assert linker["low"] == linker["success"] == linker["high"] <= 0.25


def test_a_sample_of_everybody_is_what_the_whole_table_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = "  - draw: {}\n  - attack: [prosecutor, marketer, linker, homogeneity, {insider: {c: 1}}]\n"
    results = []
    for name, most in (("whole", 1000), ("sample", 120)):
        monkeypatch.setattr("anonflow.engine.publish.MOST", most)
        for pieces in ("false", "70"):
            folder = tmp_path / f"{name}-{pieces}"
            folder.mkdir()
            source = f"{{csv: people.csv, pieces: {pieces}}}"
            flow = write_flow(folder, n=130, steps=steps, source=source, partition="{size: 20}")
            attacks = engine.run(flow, seed=SEED).attacks
            assert attacks is not None
            results.append(attacks)
    numbers = ["attacker", "success", "worst", "at_risk"]
    for each in results[1:]:
        pd.testing.assert_frame_equal(results[0][numbers].iloc[:4], each[numbers].iloc[:4])
        assert each.loc[4, "success"] == pytest.approx(1 / 3, abs=0.25)
    # a small table in pieces is no sample: rates and sentences are those of the table in memory
    pd.testing.assert_frame_equal(results[0].iloc[:4], results[1].iloc[:4])


@pytest.mark.parametrize("algorithm", ["greedy", "mondrian", "k-concealment"])
@pytest.mark.parametrize("hidden", [2, pytest.param(30, marks=pytest.mark.slow)])
def test_a_small_table_in_pieces_is_attacked_whole(tmp_path: Path, algorithm: str, hidden: int) -> None:
    """With its suppressed records: fewer than k have no other columns, more of them are one class."""
    header, *rows = people(130)
    rows[:hidden] = ["," + row.partition(",")[2] for row in rows[:hidden]]
    attacks = []
    for pieces in ("false", "70"):
        folder = tmp_path / pieces
        folder.mkdir()
        flow = write_flow(
            folder, data="\n".join([header, *rows, ""]).encode(), partition="{size: 20}",
            source=f"{{csv: people.csv, pieces: {pieces}}}", anonymize=f"{{algorithm: {algorithm}, k: 4}}",
            columns=COLUMNS.replace("numeric}", "numeric, missing: suppress}"),
        )  # fmt: skip
        report = engine.run(flow, seed=SEED)
        attacks.append(report.attacks)
    assert attacks[0] is not None
    pd.testing.assert_frame_equal(*attacks)


def test_what_no_sample_can_be_taken_of_has_the_linker_at_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("anonflow.engine.publish", "anonflow.engine.report.attacks"):
        monkeypatch.setattr(f"{name}.MOST", 40)
    for pieces in ("false", "70"):
        (tmp_path / pieces).mkdir()
        flow = write_flow(
            tmp_path / pieces,
            n=100,
            partition="{}",
            source=f"{{csv: people.csv, pieces: {pieces}}}",
            publish=REPORTED,
        )
        attacks = engine.run(flow, seed=SEED).attacks
        assert attacks is not None
        assert list(attacks["attacker"]) == ["linker"]
        # no report, and nobody asked: a large table is not attacked for nothing
        text = flow.read_text(encoding="utf-8").replace(", report: out/report.html", "")
        flow.write_text(text, encoding="utf-8")
        assert engine.run(flow, seed=SEED).attacks is None
        assert attacks.loc[0, "success"] == pytest.approx(1 / 3)


def test_a_flow_without_a_release_is_not_attacked(tmp_path: Path) -> None:
    assert engine.run(write_flow(tmp_path, publish="")).attacks is None


def test_a_journalist_reads_a_register(tmp_path: Path) -> None:
    (tmp_path / "register.csv").write_text("\n".join(people(200, seed=9)) + "\n")
    steps = "  - draw: {}\n  - attack: [{journalist: {population: register.csv}}, {presence: {population: register.csv}}]\n"
    report = engine.run(write_flow(tmp_path, steps=steps, publish=REPORTED))
    assert report.attacks is not None
    assert "Of a register of 200 people" in report.attacks.loc[1, "sentence"]
    assert "register of 200 people" in report.attacks.loc[0, "sentence"]
    (tmp_path / "register.csv").unlink()
    (tmp_path / "out" / "release.csv").unlink()
    with pytest.raises(FlowError, match=r"no such file 'register\.csv'"):
        engine.run(tmp_path / "flow.yaml")
    assert not (tmp_path / "out" / "release.csv").exists()


ALL_KEYS = "{{{name}: {{population: register.csv}}}}"
SOME_KEYS = "{{key-sets: {{sets: [[age]], attackers: [{{{name}: {{population: register.csv}}}}]}}}}"


@pytest.mark.parametrize("name", ["journalist", "presence"])
def test_a_register_without_a_quasi_identifier_is_refused_when_the_flow_is_read(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "register.csv").write_text("city,zip\nAthens,10431\n")
    for attacker in (ALL_KEYS, SOME_KEYS):
        flow = write_flow(
            tmp_path, steps=f"  - draw: {{}}\n  - attack: [{attacker.format(name=name)}]\n", publish=REPORTED
        )
        with pytest.raises(FlowError, match=f"'{name}': the population lacks the columns 'age'; ") as caught:
            engine.load_flow(flow)
        assert len(caught.value.problems) == 1
        assert "flow.yaml:13:" in caught.value.problems[0]


def test_a_register_of_a_set_of_keys_needs_these_alone(tmp_path: Path) -> None:
    (tmp_path / "register.csv").write_text("age\n" + "\n".join(map(str, range(18, 81))) + "\n")
    flow = write_flow(
        tmp_path,
        steps=f"  - draw: {{}}\n  - attack: [{SOME_KEYS.format(name='presence')}]\n",
        publish=REPORTED,
    )
    attacks = engine.run(flow).attacks
    assert attacks is not None
    assert list(attacks["keys"]) == ["age"]
    assert "63 people" in attacks.loc[0, "sentence"]
    files = [file.path for file in Fingerprint.of(engine.load_flow(flow)).others]
    assert str(tmp_path / "register.csv") in list(map(str, files))


def test_a_register_is_named_as_the_columns_before_the_steps(tmp_path: Path) -> None:
    (tmp_path / "register.csv").write_text("years,city\n30,Athens\n")
    (tmp_path / "people.csv").write_text("years,city\n" + "30,Athens\n40,Patras\n" * 10)
    source = "{csv: people.csv}\n  prepare: [{rename: {column: years, to: age}}]"
    columns = "\n".join(f"    {name}: {{role: quasi-identifier, kind: {kind}}}"
                        for name, kind in (("age", "numeric"), ("city", "categorical"))) + "\n"  # fmt: skip
    steps = f"  - draw: {{}}\n  - attack: [{ALL_KEYS.format(name='presence')}]\n"
    data = (tmp_path / "people.csv").read_bytes()
    report = engine.run(
        write_flow(tmp_path, source=source, columns=columns, steps=steps, data=data, publish=REPORTED)
    )
    assert report.attacks is not None


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("age,city\n", ParameterError, "no people"),
        ("age,city\nold,Athens\n", DataError, "'age'"),
    ],
)
@pytest.mark.parametrize("pieces", ["false", "30"])
def test_a_register_that_cannot_be_used_is_found_before_anonymizing(
    tmp_path: Path, text: str, error: type[Exception], match: str, pieces: str
) -> None:
    (tmp_path / "register.csv").write_text(text)
    steps = f"  - draw: {{}}\n  - attack: [{ALL_KEYS.format(name='journalist')}]\n"
    flow = write_flow(
        tmp_path, steps=steps, source=f"{{csv: people.csv, pieces: {pieces}}}", publish=REPORTED
    )
    seen: list[object] = []
    with pytest.raises(error, match=match):
        engine.run(flow, on_event=seen.append)
    assert not [event for event in seen if type(event).__name__ == "PartitionDone"]
    assert not [event for event in seen if getattr(event, "step", "") == "cut"]


WEIGHTED = "age,city,w\n" + "".join(f"{20 + row},Athens,{{}}\n" for row in range(40))


@pytest.mark.parametrize(
    ("weights", "verify", "error", "match"),
    [
        ((2, 0), "covers", DataError, "column 'w': 20 weights are zero or negative"),
        ((2, -3), "covers", DataError, "20 weights are zero or negative"),
        ((2, 0.5), "covers", DataError, "20 weights are below 1"),
        ((2, ""), "covers", DataError, "20 weights are missing or no number"),
        (("two", 2), "covers", DataError, "20 weights are missing or no number"),
        ((2, 3), "uniqueness(most=0.5)", ParameterError, "the weights are unequal"),
        ((2, 2), "uniqueness(most=0.5, fraction=0.1)", ParameterError, "leave the sampling fraction out"),
    ],
)
@pytest.mark.parametrize("pieces", ["false", "30"])
def test_weights_that_cannot_be_used_are_found_before_anonymizing(
    tmp_path: Path,
    weights: tuple[object, object],
    verify: str,
    error: type[Exception],
    match: str,
    pieces: str,
) -> None:
    flow = write_flow(
        tmp_path, source=f"{{csv: people.csv, pieces: {pieces}}}", data=WEIGHTED.format(*weights * 20).encode(),
        columns="    age: {role: quasi-identifier, kind: numeric}\n    w: {role: weight}\n",
        anonymize="{algorithm: mondrian, k: 3}", steps=f"  - verify: [covers, '{verify}']\n",
    publish=REPORTED)  # fmt: skip
    seen: list[object] = []
    with pytest.raises(error, match=match):
        engine.run(flow, on_event=seen.append)
    assert not [event for event in seen if getattr(event, "step", "") == "cut"]


def test_uniqueness_is_of_the_whole_table(tmp_path: Path) -> None:
    """Of each batch by itself the models would say something else."""
    for pieces in ("false", "15"):
        flow = write_flow(
            tmp_path, source=f"{{csv: people.csv, pieces: {pieces}}}", data=WEIGHTED.format(*[2] * 40).encode(),
            columns="    age: {role: quasi-identifier, kind: numeric}\n    w: {role: weight}\n",
            anonymize="{algorithm: mondrian, k: 3}", steps="  - verify: [covers, 'uniqueness(most=0.5)']\n",
        publish=REPORTED)  # fmt: skip
        details = {finding.criterion: finding.detail for finding in engine.run(flow).results[0].findings}
        assert "a share of about 0 of the population" in details["uniqueness"]


def test_a_seed_does_not_lead_from_the_attacked_to_the_draw(tmp_path: Path) -> None:
    """The generator that picks targets is not seeded with the flow's secret itself."""
    seen: list[int] = []
    from anonflow import risk

    real = risk.attack

    def noting(*args: object, seed: int, **more: object) -> object:
        seen.append(seed)
        return real(*args, seed=seed, **more)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(risk, "attack", noting)
        engine.run(write_flow(tmp_path, steps=STEPS, publish=REPORTED), seed=SEED)
    assert seen
    assert SEED not in seen
    assert not np.isin(seen, [SEED & (2**64 - 1)]).any()


def test_of_fewer_than_k_suppressed_units_nobody_is_listed() -> None:
    """Their rows are published from k units on, whose rows are several each."""
    for suppressed, listed in ((5, [(2, 6)]), (6, [(2, 6), (6, 6)])):
        result: Any = SimpleNamespace(
            sizes={2: 6, suppressed: suppressed}, suppressed=suppressed, kind="classes", k=3
        )
        assert listed_sizes(result, unit_rows=2) == listed
