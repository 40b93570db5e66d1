"""A table that is published every year, from the screens: who was released before, what going on costs, and that it runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")

from anonflow.dashboards.publish.screen import PublishScreen
from anonflow.dashboards.risk.screen import RiskScreen
from anonflow.dashboards.session.workspace import Workspace
from anonflow.errors import FlowError
from anonflow.release import Earlier
from tests.cases.released_twice import NAMED, people


def session(owner: Path | None, frame: pd.DataFrame, algorithm: str = "k-member", k: int = 10) -> Workspace:
    workspace = Workspace(owner=owner)
    workspace.open_frame(frame, NAMED, "people")
    workspace.set_algorithms([algorithm])
    workspace.set_ks([k])
    workspace.start()
    workspace.wait(300)
    return workspace


def draw(workspace: Workspace) -> Any:
    screen = PublishScreen(workspace=workspace)
    screen.model.draw()
    screen.model.background.wait(300)
    return screen


@pytest.fixture
def second(tmp_path: Path) -> Iterator[Workspace]:
    """The table of the second year, beside an owner's folder that remembers the first."""
    first = session(tmp_path, people(180).iloc[:150])
    draw(first)
    first.close()
    later = people(180).iloc[10:].assign(age=lambda frame: frame["age"] + 1)
    workspace = session(tmp_path, later)
    yield workspace
    workspace.close()


def test_a_run_goes_on_from_the_releases_of_the_session_before(second: Workspace, tmp_path: Path) -> None:
    screen = PublishScreen(workspace=second)
    model, plain = screen.model, second.chosen_run
    assert screen.released.visible
    assert "150" in screen.known.object
    assert "140 of 170" in screen.known.object
    assert screen.people.end == 10
    model.people = 4
    screen.go_on.clicks += 1
    second.wait(300)
    run = second.chosen_run
    assert run is not plain
    assert run.spec.document["earlier"] == {"people": 4}
    facts = run.result.anonymization.facts
    assert facts["held_back"] > 0
    for text in (f"{facts['held_back']:,}", "held back", "without earlier releases", "all releases leave"):
        assert text in screen.known.object
    model.draw()
    model.background.wait(300)
    publication = model.publication
    assert publication.ok
    assert len(model.shared) == 1, "not the release that was drawn just now"
    assert not publication.again
    assert not any("earlier release" in warning for warning in publication.warnings)
    assert "An attacker who has 2 releases of these people" in publication.report.decode()
    history = Earlier(tmp_path).history()
    assert len(history.releases) == 2
    assert history.people_left.min() >= 4
    assert str(tmp_path) not in model.content("flow").decode()
    assert screen.go_on.label == "Run again without earlier releases"
    screen.go_on.clicks += 1
    second.wait(300)
    assert second.chosen_run.spec.earlier is None


def test_a_plain_second_release_says_whom_it_leaves_alone(second: Workspace) -> None:
    screen = draw(second)
    assert "140 of 170 people are in an earlier release" in screen.second.object
    assert "here all releases together leave" in screen.second.object


def test_risk_lists_the_releases_that_have_these_people(second: Workspace) -> None:
    screen = RiskScreen(workspace=second)
    screen.model.background.wait(300)
    assert screen.released.visible
    assert "140 of 170" in screen.parts["released"].object
    strangers = session(second.owner, people(60).assign(name=lambda frame: "x" + frame["name"]))
    try:
        screen = RiskScreen(workspace=strangers)
        screen.model.background.wait(300)
        assert not screen.released.visible
        assert not PublishScreen(workspace=strangers).released.visible
    finally:
        strangers.close()


def test_of_components_no_number_of_people_can_be_chosen(tmp_path: Path) -> None:
    first = session(tmp_path, people(60), "greedy", 3)
    draw(first)
    second = session(tmp_path, people(60), "greedy", 3)
    try:
        screen = PublishScreen(workspace=second)
        assert screen.released.visible
        assert not screen.people.visible
        screen.go_on.clicks += 1
        second.wait(300)
        assert second.chosen_run.result.anonymization.facts["persisting"] == 60
        assert second.chosen_run.spec.document["earlier"] == {}
    finally:
        first.close()
        second.close()


def test_without_a_memory_of_releases_no_flow_goes_on(tmp_path: Path) -> None:
    workspace = session(None, people(60))
    try:
        assert not PublishScreen(workspace=workspace).released.visible
        with pytest.raises(FlowError, match="remembers no releases"):
            workspace.apply(workspace.chosen, [(("earlier",), {"people": 2})])
        assert "remembers no releases" in workspace.problems[0]
    finally:
        workspace.close()
