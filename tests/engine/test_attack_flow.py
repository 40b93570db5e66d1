"""Attackers in a flow: on the release that would be published, told to the owner, some of it in the report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from anonflow import engine
from anonflow.errors import DataError
from tests.cases.flow_files import people, write_flow

SEED = 0x1234567890ABCDEF1234567890ABCDEF
STEPS = "  - draw: {}\n  - attack: [prosecutor, {insider: {c: 1}}, order, homogeneity]\n"


def test_attackers_of_a_flow(tmp_path: Path) -> None:
    report = engine.run(write_flow(tmp_path, steps=STEPS), seed=SEED)
    assert report.attacks is not None
    assert list(report.attacks["attacker"]) == ["prosecutor", "insider", "order", "homogeneity"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "What an attacker can do with it" in page
    assert "prosecutor" in page
    # what was counted against the truth is the owner's alone
    assert "insider" not in page
    assert "The order of the rows" not in page
    record = json.loads((tmp_path / "owner" / "test" / "record.json").read_text())
    assert [row["attacker"] for row in record["attacks"]] == list(report.attacks["attacker"])


def test_the_same_seed_attacks_the_same_people(tmp_path: Path) -> None:
    flow = write_flow(tmp_path, n=300, steps="  - draw: {}\n  - attack: [{insider: {c: 1, targets: 20}}]\n")
    first = engine.run(flow, seed=SEED).attacks
    again = engine.run(flow, seed=SEED, scheduler="threads", workers=1).attacks
    assert first is not None
    assert first.equals(again)


def test_the_report_has_the_page_without_being_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = engine.run(write_flow(tmp_path))
    assert report.attacks is not None
    usual = {"prosecutor", "marketer", "linker", "linkable-columns", "homogeneity"}
    assert set(report.attacks["attacker"]) == usual
    monkeypatch.setattr("anonflow.engine.report.attacks.MOST", 10)
    assert engine.run(tmp_path / "flow.yaml").attacks is None
    assert "What an attacker" not in (tmp_path / "out" / "report.html").read_text()


def test_a_flow_without_a_release_is_not_attacked(tmp_path: Path) -> None:
    assert engine.run(write_flow(tmp_path, publish="")).attacks is None


def test_a_journalist_reads_a_register(tmp_path: Path) -> None:
    (tmp_path / "register.csv").write_text("\n".join(people(200, seed=9)) + "\n")
    steps = "  - draw: {}\n  - attack: [{journalist: {population: register.csv}}, {presence: {population: register.csv}}]\n"
    report = engine.run(write_flow(tmp_path, steps=steps))
    assert report.attacks is not None
    assert "Of a register of 200 people" in report.attacks.loc[1, "sentence"]
    assert "register of 200 people" in report.attacks.loc[0, "sentence"]
    (tmp_path / "register.csv").unlink()
    (tmp_path / "out" / "release.csv").unlink()
    with pytest.raises(DataError, match=r"register\.csv"):
        engine.run(tmp_path / "flow.yaml")
    assert not (tmp_path / "out" / "release.csv").exists()


def test_a_seed_does_not_lead_from_the_attacked_to_the_draw(tmp_path: Path) -> None:
    """The generator that picks targets is not seeded with the flow's secret itself."""
    seen: list[int] = []
    from anonflow import risk

    real = risk.attack

    def noting(*given: object, seed: int, **more: object) -> object:
        seen.append(seed)
        return real(*given, seed=seed, **more)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(risk, "attack", noting)
        engine.run(write_flow(tmp_path, steps=STEPS), seed=SEED)
    assert seen
    assert SEED not in seen
    assert not np.isin(seen, [SEED & (2**64 - 1)]).any()
