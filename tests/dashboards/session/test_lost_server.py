"""A server that was killed while runs were at work: its session goes on with the runs that were done, and names the others."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

pytest.importorskip("param", reason="the dashboards are an extra")
from anonflow.dashboards.session.folders import SessionFolders
from anonflow.dashboards.session.workspace import Workspace
from tests.dashboards.conftest import Hand

WAIT = 300.0


def begun(home: Path) -> Workspace:
    workspace = Workspace(place=SessionFolders(home=home).begin("a key"))
    workspace.open_dataset("census_like", n=80, seed=3)
    workspace.set_algorithms(["mondrian"])
    return workspace


def lost(workspace: Workspace) -> None:
    """What the system does to the lock of a process that is killed."""
    fcntl.flock(workspace._place._lock, fcntl.LOCK_UN)


def resumed(home: Path) -> Workspace:
    workspace = Workspace(place=SessionFolders(home=home).begin("a key"))
    assert workspace.is_resumed
    workspace.resume()
    return workspace


def test_runs_that_were_done_come_back_with_measures_and_notes(tmp_path: Path) -> None:
    first = begun(tmp_path / "home")
    first.set_ks([3, 5])
    first.start()
    first.wait(WAIT)
    first.edit_run(1, label="the first", note="for the paper", pinned=True)
    lost(first)
    again = resumed(tmp_path / "home")
    before, after = first.runs, again.runs
    assert [run.name for run in after] == [run.name for run in before]
    assert [run.result.measures for run in after] == [run.result.measures for run in before]
    assert (after[0].label, after[0].note, after[0].pinned) == ("the first", "for the paper", True)
    assert "Not finished" not in again.status
    assert "have their measures" in again.status
    # they have no records any more, and are run again for them
    assert again.chosen is None
    again.start()
    again.wait(WAIT)
    assert again.chosen_run is not None
    again.close()


def test_runs_that_were_at_work_are_named_and_run_again(tmp_path: Path, hand: Hand) -> None:
    first = begun(tmp_path / "home")
    first.set_ks([3])
    first.start()
    hand.do_all()
    assert first._place.unfinished == []
    first.set_ks([3, 5])
    first.start()
    lost(first)
    again = resumed(tmp_path / "home")
    assert "Not finished: mondrian k=3, mondrian k=5; press Run again." in again.status
    assert [run.name for run in again.runs] == ["mondrian k=3"]
    assert not again.running
    first._batch.abandon()  # it would write into the folder, too, as no killed server does
    again.start()
    hand.do_all()
    assert sorted(run.result.k for run in again.runs) == [3, 3, 5]
    lost(again)
    last = resumed(tmp_path / "home")
    assert "Not finished" not in last.status
    last.close()


def test_a_draft_that_was_invalid_when_the_server_was_lost_comes_back(tmp_path: Path) -> None:
    first = begun(tmp_path / "home")
    for name in list(first.draft.get(("table", "columns"))):
        first.set_column(name, role="insensitive")
    assert first.problems
    lost(first)
    again = resumed(tmp_path / "home")
    assert again.frame.equals(first.frame)
    assert again.draft.document == first.draft.document
    assert again.problems == first.problems
    again.close()


@pytest.mark.parametrize("text", ["{", '"a"', "[1, null]", ""])
def test_what_cannot_be_read_names_no_run(tmp_path: Path, text: str) -> None:
    first = begun(tmp_path / "home")
    (first._place.path / "unfinished.json").write_text(text)
    lost(first)
    again = resumed(tmp_path / "home")
    assert "Not finished" not in again.status
    again.close()
