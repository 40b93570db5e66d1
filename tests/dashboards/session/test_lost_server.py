"""A server that was killed while runs were at work: its session goes on with the runs that were done, and names the others."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

import pytest

pytest.importorskip("param", reason="the dashboards are an extra")
from anonflow.dashboards.session.files.folders import SessionFolders
from anonflow.dashboards.session.workspace import Workspace
from anonflow.engine.execution import tasks
from tests.cases.drafts import value_at
from tests.dashboards.conftest import Hand


def begun(home: Path) -> Workspace:
    workspace = Workspace(place=SessionFolders(home=home).begin("a key"))
    workspace.opener.open_dataset("census_like", n=80, seed=3)
    workspace.draft.set_algorithms(["mondrian"])
    return workspace


def lost(workspace: Workspace) -> None:
    """What the system does to the lock of a process that is killed."""
    fcntl.flock(workspace.place._lock, fcntl.LOCK_UN)


def resumed(home: Path) -> Workspace:
    workspace = Workspace(place=SessionFolders(home=home).begin("a key"))
    assert workspace.opener.is_resumed
    workspace.opener.resume()
    return workspace


def test_runs_that_were_done_come_back_with_measures_and_notes(tmp_path: Path, hand: Hand) -> None:
    first = begun(tmp_path / "home")
    first.draft.set_ks([3, 5])
    first.start()
    hand.do_all()
    first.runs.edit(1, label="the first", note="for the paper", pinned=True)
    lost(first)
    again = resumed(tmp_path / "home")
    before, after = first.runs.finished, again.runs.finished
    assert [run.name for run in after] == [run.name for run in before]
    assert [run.result.measures for run in after] == [run.result.measures for run in before]
    assert (after[0].label, after[0].note, after[0].pinned) == ("the first", "for the paper", True)
    assert "Not finished" not in again.starts.status
    assert "your runs are there" in again.starts.status
    assert [run.seed for run in after] == [run.seed for run in before]
    again.close()


def test_without_runs_none_are_to_be_run_again(tmp_path: Path) -> None:
    first = begun(tmp_path / "home")
    lost(first)
    again = resumed(tmp_path / "home")
    assert again.starts.status == "Your table is open again, as the server kept it."
    again.close()


def test_runs_come_back_with_their_results_and_releases_are_drawn_again(tmp_path: Path, hand: Hand) -> None:
    """Nothing is solved a second time, and the same run draws the same release."""
    first = begun(tmp_path / "home")
    first.draft.set_ks([3, 5])
    first.start()
    hand.do_all()
    first.runs.delete(1)
    first.draft.set_ks([5])  # the draft is another than that of the run
    first.data.set_column("Gender", role="insensitive")
    first.start()
    hand.do_all()
    first.runs.choose(2)
    first.owner = tmp_path / "owner"
    drawn = first.publish(2)
    assert drawn.again == ""
    first.runs.note_drawn("the table", first.runs.of(2))
    first.close(keep=True)
    again = resumed(tmp_path / "home")
    assert [run.id for run in again.runs.finished] == [2, 3]
    assert again.runs.chosen_run is None  # not yet
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks, "solve", None)
        hand.do_all()
    assert again.runs.chosen_run is not None
    assert again.runs.chosen_run.id == 2
    for kept in again.runs.finished:
        assert kept.result.anonymization is not None
    assert again.runs.noted.drawn == {"the table": [(2, "mondrian k=5")]}
    again.owner = tmp_path / "owner"
    repeated = again.publish(2)
    assert repeated.tables[".csv"] == drawn.tables[".csv"] != b""
    assert repeated.tables[".parquet"] == drawn.tables[".parquet"] != b""
    assert (repeated.again, repeated.warnings) == (
        "",
        drawn.warnings,
    )  # it is the same release, not a second one
    assert not again.starts.running
    assert "your runs are there" in again.starts.status
    again.close()
    assert not again.folder.exists()


def test_results_of_runs_that_are_gone_are_deleted(tmp_path: Path, hand: Hand) -> None:
    first = begun(tmp_path / "home")
    first.draft.set_ks([3, 5])
    first.start()
    hand.do_all()
    results = first.place.path / "results"
    assert len(list(results.iterdir())) == 2
    assert results.stat().st_mode & 0o777 == 0o700
    first.runs.delete(1)
    assert len(list(results.iterdir())) == 1
    first.opener.open_dataset("census_like", n=90, seed=4)
    assert list(results.iterdir()) == []
    first.close()
    assert not results.exists()


def test_without_stored_results_runs_have_their_measures(tmp_path: Path, hand: Hand) -> None:
    first = begun(tmp_path / "home")
    first.draft.set_ks([3])
    first.start()
    hand.do_all()
    shutil.rmtree(first.place.path / "results")
    measures = [run.result.measures for run in first.runs.finished]
    first.close(keep=True)
    again = resumed(tmp_path / "home")
    hand.do_all()
    assert again.runs.chosen_run is None
    assert [run.result.measures for run in again.runs.finished] == measures
    again.start()
    hand.do_all()
    assert again.runs.chosen_run is not None
    again.close()


def test_runs_that_were_at_work_are_named_and_run_again(tmp_path: Path, hand: Hand) -> None:
    first = begun(tmp_path / "home")
    first.draft.set_ks([3])
    first.start()
    hand.do_all()
    assert first.place.unfinished == {}
    first.draft.set_ks([3, 5])
    first.start()
    seeds = {job.run.name: job.seed for job in first.starts.batch.jobs}
    lost(first)
    again = resumed(tmp_path / "home")
    hand.works.pop()  # the result of the run that was done is read
    assert "Not finished: mondrian k=3, mondrian k=5; press Run again." in again.starts.status
    assert [run.name for run in again.runs.finished] == ["mondrian k=3"]
    assert not again.starts.running
    first.starts.batch.abandon()  # it would write into the folder, too, as no killed server does
    again.start()
    hand.do_all()
    assert sorted(run.result.k for run in again.runs.finished) == [3, 3, 5]
    assert {
        run.result.name: run.seed for run in again.runs.finished[1:]
    } == seeds  # what is stored of them is not computed again
    lost(again)
    last = resumed(tmp_path / "home")
    assert "Not finished" not in last.starts.status
    last.close()


def test_a_run_that_was_not_finished_is_remembered_until_it_is_run_again(tmp_path: Path, hand: Hand) -> None:
    first = begun(tmp_path / "home")
    first.draft.set_ks([3, 5])
    first.start()
    seeds = dict(first.runs.unfinished)
    lost(first)
    again = resumed(tmp_path / "home")
    assert first.starts.batch is not None
    first.starts.batch.abandon()  # it would write into the folder, too, as no killed server does
    again.draft.set_ks([3])
    again.start()
    hand.do_all()
    assert again.place.unfinished == {"mondrian k=5": seeds["mondrian k=5"]}
    again.draft.set_ks([5])
    again.start()
    hand.do_all()
    assert again.place.unfinished == {}
    assert {run.name: run.seed for run in again.runs} == seeds
    again.close()


def test_a_draft_that_was_invalid_when_the_server_was_lost_comes_back(tmp_path: Path) -> None:
    first = begun(tmp_path / "home")
    for name in list(value_at(first.draft, ("table", "columns"))):
        first.data.set_column(name, role="insensitive")
    assert first.data.problems
    lost(first)
    again = resumed(tmp_path / "home")
    assert again.data.frame.equals(first.data.frame)
    assert again.draft.document == first.draft.document
    assert again.data.problems == first.data.problems
    again.close()


@pytest.mark.parametrize("text", ["{", '"a"', "[1, null]", ""])
def test_what_cannot_be_read_names_no_run(tmp_path: Path, text: str) -> None:
    first = begun(tmp_path / "home")
    (first.place.path / "unfinished.json").write_text(text)
    lost(first)
    again = resumed(tmp_path / "home")
    assert "Not finished" not in again.starts.status
    again.close()
