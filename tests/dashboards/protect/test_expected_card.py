"""What runs are expected to take, on the page Protect: beside each method before, and how wrong it was after."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.protect import expected_card
from anonflow.dashboards.protect.expected_card import ExpectedCard, wrong_by
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.fair_queue import FairQueue
from anonflow.engine.expected import ExpectedRun
from tests.dashboards.conftest import Hand


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    workspace = Workspace(line=FairQueue(1))
    workspace.opener.open_dataset("census_like", n=120, seed=1)
    workspace.draft.set_algorithms(["mondrian"])
    workspace.draft.set_ks([3, 5])
    yield workspace
    workspace.close()


def test_each_run_has_an_expectation_and_after_it_the_error(workspace: Workspace, hand: Hand) -> None:
    card = ExpectedCard(workspace)
    card.expect()
    assert card.busy
    assert card.start.disabled
    hand.do_all()
    assert not card.busy
    assert [answer.name for answer in card.answers] == ["mondrian k=3", "mondrian k=5"]
    assert all(answer.seconds and answer.memory is not None for answer in card.answers)
    assert "mondrian k=3" in card.shown.object
    assert "What it took" not in card.shown.object
    workspace.start()
    hand.do_all()
    assert [name for name, _, _ in card.errors()] == ["mondrian k=3", "mondrian k=5"]
    assert "What it took" in card.shown.object
    assert " too " in card.shown.object or "right" in card.shown.object
    workspace.draft.set_ks([4])
    assert card.answers == ()
    assert len(card.errors()) == 2
    workspace.opener.open_dataset("patients_example")
    assert card.errors() == []


def test_seconds_of_the_compiler_are_told_beside_those_expected(
    workspace: Workspace, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = ExpectedCard(workspace)
    for seconds in (12.5, 0.0):
        monkeypatch.setattr(
            expected_card, "CompileTimer", lambda seconds=seconds: SimpleNamespace(seconds=seconds)
        )
        card.expect()
        hand.do_all()
        assert ("s of them to compile methods, once on this machine." in card.shown.object) == bool(seconds)


def test_what_cannot_be_expected_is_a_sentence() -> None:
    workspace = Workspace()
    card = ExpectedCard(workspace)
    card.expect()
    assert not card.busy
    assert "no table is open" in card.shown.object
    workspace.close()


def test_errors_are_told_in_words() -> None:
    assert wrong_by(ExpectedRun("a", 1.5), 1.0) == "50% too long"
    assert wrong_by(ExpectedRun("a", 0.5), 1.0) == "50% too short"
    assert wrong_by(ExpectedRun("a", 1.0), 1.0) == "right"
    assert wrong_by(ExpectedRun("a"), 1.0) == ""
