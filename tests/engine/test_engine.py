"""The engine for real: the same bits on every scheduler, events, cancelling, the owner's folder, the report."""

from __future__ import annotations

import inspect
import json
import os
import stat
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import datasets, engine
from anonflow.engine import context, publish
from anonflow.engine.context import Session
from anonflow.engine.countdowns import Countdowns
from anonflow.engine.execution import batches, events, plan, tasks
from anonflow.engine.owner.folder import OwnerFolder, read_seed_file
from anonflow.engine.storage.storage import Storage
from anonflow.engine.targets import check_target
from anonflow.errors import AnonflowError, DataError, FlowError, InfeasibleError, ParameterError
from anonflow.release.tables import write_table
from anonflow.table.identification import earlier
from anonflow.table.row_marks import unit_marks
from anonflow.whole_file import write_whole
from tests.cases.flow_files import CENSUS_COLUMNS, REPORTED, everything_in, people, write_flow
from tests.cases.runs import shell
from tests.cases.workers import Workers

SEED = 0x1234567890ABCDEF1234567890ABCDEF


def released(folder: Path, **settings: Any) -> bytes:
    report = engine.run(folder / "flow.yaml", **{"seed": SEED, "again": True, **settings})
    assert report.ok
    return (folder / "out" / "release.csv").read_bytes()


# ---------------------------------------------------------------------------------------- results


def test_a_run_publishes_what_it_verified(tmp_path: Path) -> None:
    report = engine.run(write_flow(tmp_path, publish=REPORTED))
    assert report.ok
    assert report.release is not None
    frame = pd.read_csv(tmp_path / "out" / "release.csv", dtype=str)
    assert list(frame.columns) == ["age", "city", "income"]
    assert len(frame) == 60
    original = pd.read_csv(tmp_path / "people.csv", dtype=str)
    assert sorted(frame["income"]) == sorted(original["income"])
    assert list(report.runs.columns[:8]) == [
        "algorithm", "k", "records", "gcp", "usefulness", "suppressed", "seconds", "checks",
    ]  # fmt: skip
    assert report.runs.loc[0, "checks"] == "2/2"
    assert [path.name for path in report.published] == [
        "release.csv",
        "release.csv-metadata.json",
        "report.html",
    ]
    assert "zip" in report.warnings[0]
    assert "2/2" in repr(report)
    assert "<table" in report._repr_html_()


def test_the_engine_and_anonymize_agree(tmp_path: Path) -> None:
    report = engine.run(write_flow(tmp_path), seed=SEED)
    table = af.Table.read(tmp_path / "people.csv", engine.load_flow(tmp_path / "flow.yaml").schema)
    anon = af.anonymize(table, "greedy", k=3, partition_size=20, seed=SEED)
    theirs = report.results[0].anonymization
    assert theirs is not None
    assert theirs.matches is not None
    assert anon.matches is not None
    np.testing.assert_array_equal(theirs.matches, anon.matches)
    assert theirs.frame().equals(anon.frame())
    assert report.results[0].measures["gcp"] == pytest.approx(anon.loss("gcp"), rel=1e-12)
    losses = [column.loss for column in report.results[0].columns]
    assert np.mean(losses) == pytest.approx(anon.loss("gcp"), rel=1e-12)


@pytest.mark.parametrize("order", ["lexicographic", "input", "random"])
def test_bits_do_not_depend_on_workers(tmp_path: Path, order: str) -> None:
    write_flow(tmp_path, partition=f"{{size: 12, order: {order}}}")
    assert len({released(tmp_path, workers=workers) for workers in (1, 2, 5)}) == 1


def test_another_seed_gives_another_release(tmp_path: Path) -> None:
    write_flow(tmp_path)
    first = released(tmp_path)
    engine.run(tmp_path / "flow.yaml", seed=SEED + 1, again=True)
    assert (tmp_path / "out" / "release.csv").read_bytes() != first
    engine.run(tmp_path / "flow.yaml", again=True)
    assert (tmp_path / "out" / "release.csv").read_bytes() != first


def test_workers_give_the_same_bits(tmp_path: Path, workers: Workers) -> None:
    write_flow(tmp_path)
    assert released(tmp_path) == released(tmp_path, scheduler="processes", workers=2)
    assert workers.sent


def test_a_matrix_gives_a_row_for_each_run(tmp_path: Path) -> None:
    path = write_flow(
        tmp_path,
        publish="{table: out/x.parquet, report: out/x.html, run: {anonymize.k: 3, partition.size: 20}}",
        more="matrix: {anonymize.k: [2, 3], partition.size: [20, 30]}\n",
    )
    report = engine.run(path, seed=SEED)
    assert report.ok
    assert report.runs[["k", "size"]].to_numpy().tolist() == [[2, 20], [2, 30], [3, 20], [3, 30]]
    assert report.release is not None
    assert report.release.certificate.k == 3
    alone = tmp_path / "alone"
    alone.mkdir()
    write_flow(alone)
    engine.run(alone / "flow.yaml", seed=SEED)
    ours = pd.read_parquet(tmp_path / "out" / "x.parquet").astype(str)
    theirs = pd.read_csv(alone / "out" / "release.csv", dtype=str)
    assert ours.equals(theirs.astype(ours.dtypes))


def test_an_infeasible_run_of_a_matrix_is_told_and_nothing_published(tmp_path: Path) -> None:
    path = write_flow(
        tmp_path,
        partition="{}",
        publish="{report: out/x.html}",
        more="matrix: {anonymize.k: [2, 61]}\n",
    )
    report = engine.run(path)
    assert not report.ok
    assert report.runs["checks"].tolist() == ["2/2", "infeasible"]
    assert "cannot hide among k = 61" in report.problems[0]
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "owner").exists()


def test_an_infeasible_flow_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InfeasibleError, match="60 records"):
        engine.run(write_flow(tmp_path, partition="{}", anonymize="{algorithm: greedy, k: 61}"))


def test_a_flow_without_a_draw_publishes_its_report_only(tmp_path: Path) -> None:
    report = engine.run(write_flow(tmp_path, publish="{report: out/r.html}"))
    assert report.ok
    assert report.release is None
    assert everything_in(tmp_path / "out") == {"r.html"}


def test_a_draw_without_a_file_hands_the_release_back(tmp_path: Path) -> None:
    report = engine.run(write_flow(tmp_path, publish="", steps="  - draw: {}\n"))
    assert report.release is not None
    assert len(report.release.frame) == 60
    assert report.published == ()


def test_criteria_of_the_whole_release(tmp_path: Path) -> None:
    path = write_flow(
        tmp_path, steps="  - verify: [covers, guarantee, {p-sensitivity: {p: 1, column: income}}]\n"
    )
    report = engine.run(path)
    assert report.runs.loc[0, "checks"] == "3/3"


def test_a_failed_check_publishes_nothing(tmp_path: Path) -> None:
    path = write_flow(tmp_path, steps="  - verify: [covers, {p-sensitivity: {p: 40, column: income}}]\n")
    before = everything_in(tmp_path)
    report = engine.run(path)
    assert not report.ok
    assert report.release is None
    assert report.published == ()
    assert "p-sensitivity" in report.problems[0]
    seed = {"owner", "owner/test", "owner/test/key", "owner/test/unfinished.json"}
    assert everything_in(tmp_path) == before | {"flow.yaml", "people.csv"} | seed, (
        "of the draw, its seed alone"
    )


# ------------------------------------------------------------------------------------------- plan


def planned(flow: engine.Flow, table: af.Table) -> plan.FlowPlan:
    storage = Storage(Session(flow, engine.EventStream(), seed=SEED), None)
    storage.table = table
    return plan.plan_flow(flow, table.n, plan.BoundaryClasses.of(table.records), storage.order)


def test_planning_computes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = engine.load_flow(write_flow(tmp_path))
    table = af.Table.read(tmp_path / "people.csv", flow.schema)

    def never(*_: Any) -> None:
        raise AssertionError("computed")

    for name in ("match", "check", "measure"):
        monkeypatch.setattr(tasks, name, never)
    result = planned(flow, table)
    assert result.partitions == 3
    assert [(item.run.number, batch.number) for item, batch in result.batches()] == [(0, 0), (0, 1), (0, 2)]


def test_partitions_are_those_of_anonymize(tmp_path: Path) -> None:
    from anonflow import partition
    from anonflow.algorithms.solve import partition_rng

    flow = engine.load_flow(write_flow(tmp_path, partition="{size: 19, order: random}"))
    table = af.Table.read(tmp_path / "people.csv", flow.schema)
    (item,) = planned(flow, table).runs
    expected = partition.plan(table.records, 19, 3, "random", partition_rng(SEED, -1))
    for cut, theirs in zip(item.cuts, expected, strict=True):
        ours, *_ = item.order.rows(cut.start, cut.stop).load(table.domains)
        np.testing.assert_array_equal(ours, theirs)


def test_rows_that_travel_take_nothing_else_along(tmp_path: Path) -> None:
    """Another process gets the rows of its task, not the table."""
    import pickle

    flow = engine.load_flow(write_flow(tmp_path, n=5000))
    table = af.Table.read(tmp_path / "people.csv", flow.schema)
    (item,) = planned(flow, table).runs
    rows = item.order.rows(20, 40)
    sent = pickle.dumps(rows)
    assert len(sent) < 2000
    again = pickle.loads(pickle.dumps(pickle.loads(sent)))  # a scheduler hands them on
    for ours, theirs in zip(again.load(table.domains), rows.load(table.domains), strict=True):
        np.testing.assert_array_equal(getattr(ours, "codes", ours), getattr(theirs, "codes", theirs))


# ----------------------------------------------------------------------------------------- events


def test_events_tell_the_whole_story(tmp_path: Path) -> None:
    heard: list[events.Event] = []
    stream = engine.EventStream()
    report = engine.run(write_flow(tmp_path), on_event=heard.append, events=stream)
    assert list(stream) == heard
    assert isinstance(heard[0], events.FlowStarted)
    assert isinstance(heard[-1], events.FlowDone)
    assert heard[-1].ok
    done = [event for event in heard if isinstance(event, events.PartitionDone)]
    assert sorted(event.partition for event in done) == [0, 1, 2]
    assert [event.done for event in done] == [1, 2, 3]
    assert {event.of for event in done} == {3}
    weighted = sum(event.loss * event.records for event in done) / 60
    assert weighted == pytest.approx(report.results[0].measures["gcp"], rel=1e-12)
    steps = [event.step for event in heard if isinstance(event, events.StepDone)]
    assert steps == ["load", "cut", "anonymize", "draw", "verify", "attack", "publish"]
    times = [event.at for event in heard]
    assert times == sorted(times)


def test_events_are_plain_data_without_values(tmp_path: Path) -> None:
    heard: list[events.Event] = []
    engine.run(write_flow(tmp_path), on_event=heard.append)
    text = json.dumps([event.to_mapping() for event in heard])
    for city in ("Athens", "Patras", "modest"):
        assert city not in text


def test_what_a_stream_holds_does_not_grow_with_the_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PAST", 10)
    stream = engine.EventStream()
    stream.log("first")
    heard: list[events.Event] = []
    stream.listen(heard.append)
    for p in range(95):
        stream.emit(
            events.PartitionDone(run=0, partition=p, done=p + 1, of=95, records=2, seconds=0.0, loss=0.0)
        )
    stream.log("last")
    stream.close()
    late = list(stream)
    assert len(heard) == 96
    assert [getattr(event, "message", "") for event in (late[0], late[-1])] == ["first", "last"]
    done = [event.done for event in late if isinstance(event, events.PartitionDone)]
    assert done == list(range(96 - len(done), 96))
    assert 10 <= len(done) <= 20


def test_a_background_run_can_be_followed(tmp_path: Path) -> None:
    handle = engine.start(write_flow(tmp_path))
    kinds = [event.kind for event in handle.events]
    assert kinds[0] == "flow-started"
    assert kinds[-1] == "flow-done"
    assert handle.result().ok
    assert not handle.running


def test_a_background_error_is_raised_by_the_result(tmp_path: Path) -> None:
    handle = engine.start(tmp_path / "none.yaml")
    with pytest.raises(FlowError):
        handle.result()


def test_cancel_from_another_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    def match(*arguments: Any) -> Any:
        begun.append(1)
        if len(begun) == 5:
            stream.cancel()
        return real(*arguments)

    real = tasks.match_together
    monkeypatch.setattr(tasks, "match_together", match)
    write_flow(tmp_path, n=400, partition="{size: 3}")
    stream = engine.EventStream()
    with pytest.raises(engine.Cancelled) as caught:
        engine.run(tmp_path / "flow.yaml", events=stream, workers=2)
    assert len(begun) < 25  # of 67 batches: no worker gets far ahead
    assert caught.value.exit_status == 130
    assert everything_in(tmp_path) == {"flow.yaml", "people.csv"}


def test_partitions_in_one_call_give_the_same_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where that call fails: then they are solved one after the other."""
    real, answers = tasks.solve_together, []

    def counted(*settings: Any) -> Any:
        answers.append(real(*settings))
        return answers[-1]

    def out_of_memory(*settings: Any) -> Any:
        answers.append(None)
        raise MemoryError

    releases = set()
    for name, share, together in (
        ("alone", 0.0, real),
        ("together", 1.0, counted),
        ("failing", 1.0, out_of_memory),
    ):
        monkeypatch.setattr(batches, "SHARE", share)
        monkeypatch.setattr(tasks, "solve_together", together)
        folder = tmp_path / name
        folder.mkdir()
        assert engine.run(write_flow(folder, n=90), seed=2**127).ok
        releases.add((folder / "out" / "release.csv").read_bytes())
    assert len(releases) == 1
    assert [None if outcomes is None else len(outcomes) for outcomes in answers] == [5, None]


def test_a_bug_in_a_task_names_the_partition_and_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **settings: Any) -> Any:
        raise KeyError("Athens")

    monkeypatch.setattr(tasks, "solve", broken)
    with pytest.raises(AnonflowError) as caught:
        engine.run(write_flow(tmp_path, partition="{}"))
    assert caught.value.exit_status == 3
    assert "partition 0 of run 'greedy k=3'" in str(caught.value)
    assert "KeyError" in str(caught.value)
    assert "Athens" not in str(caught.value)
    assert everything_in(tmp_path) == {"flow.yaml", "people.csv"}


def test_thousands_of_partitions_that_fail_are_a_few_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **settings: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(tasks, "solve", broken)
    stream = engine.EventStream()
    lines: list[str] = []
    stream.listen(
        lambda event: lines.append(event.message) if getattr(event, "level", "") == "error" else None
    )
    with pytest.raises(AnonflowError, match="partition 0 of run 'greedy k=3': there is not enough memory"):
        engine.run(write_flow(tmp_path, n=400, partition="{size: 4}"), events=stream)
    assert len(lines) == 11
    assert lines[-1] == "90 more failed"


def verifier_that(breaks: Callable[[int], bool], how: Callable[[Any], Any]) -> Callable[..., Any]:
    """The verifier, but for calls that a function chooses by the number of records and of calls before."""
    real, calls = tasks.verify, []

    def verifier(table: Any, *arguments: Any, **settings: Any) -> Any:
        calls.append(table.n)
        result = real(table, *arguments, **settings)
        return how(result) if breaks(len(calls)) else result

    return verifier


def test_a_batch_that_fails_its_check_is_checked_by_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three partitions are one batch: the first call is about all, and of those after it the second fails."""

    def failed(result: Any) -> Any:
        return SimpleNamespace(
            findings=tuple(replace(each, holds=False, failed=1) for each in result.findings)
        )

    monkeypatch.setattr(batches, "SHARE", 1.0)
    monkeypatch.setattr(tasks, "verify", verifier_that(lambda call: call in (1, 3), failed))
    report = engine.run(write_flow(tmp_path, steps="  - verify: [covers]\n", publish=""))
    assert [finding.detail for finding in report.results[0].findings] == ["2 of 3 partitions"]
    assert not report.ok


def test_a_bug_of_the_verifier_names_the_partition_and_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(result: Any) -> Any:
        raise KeyError("Athens")

    monkeypatch.setattr(batches, "SHARE", 1.0)
    monkeypatch.setattr(tasks, "verify", verifier_that(lambda call: call in (1, 3), broken))
    with pytest.raises(AnonflowError) as caught:
        engine.run(write_flow(tmp_path, steps="  - verify: [covers]\n", publish=""))
    assert "partition 1 of run 'greedy k=3'" in str(caught.value)
    assert "KeyError" in str(caught.value)
    assert "Athens" not in str(caught.value)


# ---------------------------------------------------------------------------- owner, seeds, replay


def test_the_owners_folder(tmp_path: Path) -> None:
    report = engine.run(write_flow(tmp_path), seed=SEED)
    home = tmp_path / "owner" / "test"
    assert report.owner == home
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert stat.S_IMODE(home.parent.stat().st_mode) == 0o700
    kept = {path.name for path in home.iterdir()}
    assert kept == {"certificate.npz", "seed", "record.json", "key"}
    for path in home.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_seed_file(home / "seed") == SEED
    record = json.loads((home / "record.json").read_text())
    assert record["flow"] == "test"
    assert record["runs"][0]["k"] == 3
    assert record["versions"]["anonflow"] == af.__version__
    assert record["steps"].keys() >= {"load", "cut", "anonymize", "match", "verify", "measure", "draw"}
    assert record["peak-memory-bytes"] > 10**6
    spent = record["client-steps"]
    assert list(spent) == ["load", "cut", "combine", "anonymize", "draw", "verify", "attack", "publish"]
    assert all(seconds >= 0 for step in spent.values() for seconds in step.values())
    assert sum(step["seconds"] for step in spent.values()) <= record["seconds"] + 0.001
    assert f"{SEED:x}" not in json.dumps(record)
    assert f"{SEED:x}".encode() not in (home / "certificate.npz").read_bytes()


def test_people_are_hashed_while_the_table_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashing, marked = threading.Event(), []

    def hashed(*settings: Any) -> np.ndarray:
        hashing.set()
        marked.append(unit_marks(*settings))
        return marked[-1]

    def written(*settings: Any) -> Any:
        assert hashing.wait(300), "nobody hashes the people meanwhile"
        return write_table(*settings)

    monkeypatch.setattr(publish, "FEW_ROWS", 0)
    monkeypatch.setattr(earlier, "unit_marks", hashed)
    monkeypatch.setattr(publish, "write_table", written)
    assert engine.run(write_flow(tmp_path), seed=SEED).ok
    (marks,) = marked  # once
    (file,) = (tmp_path / "owner" / earlier.MEMORY).glob("*.npz")
    with np.load(file) as arrays:
        assert any(np.array_equal(arrays[name], np.sort(marks)) for name in arrays.files)


def test_a_part_of_a_step_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    session = cast("Session", SimpleNamespace(seconds={"anonymize": 1.0}, client_seconds={}))
    monkeypatch.setattr(context, "clocks", lambda: (7.0, 20.0))
    assert Session.spent(session, "combine", (4.0, 15.0), of="anonymize") == 3.0
    assert Session.spent(session, "anonymize", (2.0, 11.0)) == 5.0
    assert session.seconds == {"combine": 3.0, "anonymize": 3.0}
    assert session.client_seconds == {"combine": (3.0, 5.0), "anonymize": (2.0, 4.0)}


def test_hashes_in_the_record_are_keyed(tmp_path: Path) -> None:
    import hashlib

    engine.run(write_flow(tmp_path))
    record = OwnerFolder(tmp_path / "owner" / "test").record()
    plain = hashlib.sha256((tmp_path / "people.csv").read_bytes()).hexdigest()
    assert record["hashes"]["source"] is not None
    assert record["hashes"]["source"] != plain


def test_replay_repeats_a_run(tmp_path: Path) -> None:
    path = write_flow(tmp_path)
    engine.run(path)
    first = (tmp_path / "out" / "release.csv").read_bytes()
    (tmp_path / "out" / "release.csv").unlink()
    report = engine.run(path, replay=tmp_path / "owner" / "test", workers=1)
    assert (tmp_path / "out" / "release.csv").read_bytes() == first
    assert not any("released before" in warning for warning in report.warnings)


@pytest.mark.parametrize("changed", ["flow.yaml", "people.csv"])
def test_replay_refuses_what_has_changed(tmp_path: Path, changed: str) -> None:
    path = write_flow(tmp_path)
    engine.run(path)
    with (tmp_path / changed).open("a") as stream:
        stream.write("\n" if changed == "flow.yaml" else "30,Volos,10431,low\n")
    with pytest.raises(FlowError, match="has changed since"):
        engine.run(path, replay=tmp_path / "owner" / "test")


def test_replay_needs_a_record(tmp_path: Path) -> None:
    with pytest.raises(FlowError, match="no readable run record"):
        engine.run(write_flow(tmp_path), replay=tmp_path)


def test_a_second_draw_warns_and_keeps_the_first_certificate(tmp_path: Path) -> None:
    path = write_flow(tmp_path)
    engine.run(path)
    home = tmp_path / "owner" / "test"
    first = (home / "certificate.npz").read_bytes()
    report = engine.run(path, again=True)
    assert any("intersect" in warning for warning in report.warnings)
    assert (home / "earlier" / "0001" / "certificate.npz").read_bytes() == first
    assert stat.S_IMODE((home / "earlier").stat().st_mode) == 0o700
    engine.run(path, again=True)
    assert (home / "earlier" / "0002" / "seed").exists()


@pytest.mark.parametrize("text", ["", "abc", "0x" + "1" * 32, "1" * 31, "g" * 32, "1" * 2000])
def test_seed_files_are_checked(tmp_path: Path, text: str) -> None:
    (tmp_path / "seed").write_text(text)
    with pytest.raises(FlowError, match="32 hexadecimal"):
        read_seed_file(tmp_path / "seed")


@pytest.mark.parametrize("seed", [-1, True, "abc", 1.5])
def test_seeds_are_whole_numbers(tmp_path: Path, seed: Any) -> None:
    with pytest.raises(ParameterError, match="seed"):
        engine.run(write_flow(tmp_path), seed=seed)


def test_the_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "x.csv"
    target.write_text("old")

    def fail(path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(AnonflowError, match="No space left") as caught:
        write_whole(target, fail)
    assert caught.value.exit_status == 3
    assert target.read_text() == "old"
    assert everything_in(tmp_path) == {"x.csv"}


def test_a_written_file_has_what_the_umask_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never changed to be read: it is the whole process's, and other threads make files, too."""
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(os, "umask", lambda mask: pytest.fail("the umask is every thread's"))
            write_whole(tmp_path / "x.csv", lambda path: path.write_text("new"))
            write_whole(tmp_path / "seed", lambda path: path.write_text("new"), mode=0o600)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x.csv").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "seed").stat().st_mode) == 0o600


def test_targets_are_tried_before_the_work(tmp_path: Path) -> None:
    check_target(tmp_path / "a" / "b" / "x.csv")
    assert everything_in(tmp_path) == set()
    (tmp_path / "file").write_text("")
    with pytest.raises(FlowError, match="cannot be written"):
        check_target(tmp_path / "file" / "x.csv")
    with pytest.raises(FlowError, match="is a folder"):
        check_target(tmp_path)


# ----------------------------------------------------------------------------------------- report


def test_the_report_holds_no_value_and_asks_nobody(tmp_path: Path) -> None:
    from html.parser import HTMLParser

    engine.run(write_flow(tmp_path, publish=REPORTED))
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for value in ("Athens", "Patras", "Volos", "Chania", "modest", "10431"):
        assert value not in page
    assert "http" not in page.replace("http-equiv", "")
    assert "<script" not in page
    assert "prefers-color-scheme: dark" in page
    assert page.count("<svg") == 2

    class Strict(HTMLParser):
        void = ("meta", "line", "rect", "circle", "link", "br")

        def __init__(self) -> None:
            super().__init__()
            self.open: list[str] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag not in self.void:
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if tag not in self.void:
                assert self.open.pop() == tag

    parser = Strict()
    parser.feed(page)
    assert parser.open == []


def test_the_owners_warnings_stay_out_of_the_report(tmp_path: Path) -> None:
    path = write_flow(tmp_path, publish=REPORTED)
    engine.run(path)
    report = engine.run(path, again=True)
    assert any("released before" in warning for warning in report.warnings)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "released before" not in page
    assert "zip" not in page


def test_the_chart_of_cells_says_what_the_receiver_counts(tmp_path: Path) -> None:
    """A number with its codes is one cell, and so are all positions of a code."""
    rng = np.random.default_rng(1)
    ages = [*map(str, rng.integers(0, 30, 48)), *[""] * 12]
    rows = [f"{age},{rng.choice(['12345', '12349', '99999'])},x" for age in ages]
    columns = """\
    age: {role: quasi-identifier, kind: numeric, missing: value}
    zip: {role: quasi-identifier, kind: positions}
    pay: {role: sensitive}
"""
    data = "\n".join(["age,zip,pay", *rows]).encode() + b"\n"
    for method in ("mondrian", "greedy"):
        flow = write_flow(tmp_path, columns=columns, anonymize=f"{{algorithm: {method}, k: 4}}", data=data)
        report = engine.run(flow, seed=SEED)
        seen = {column.name: column for column in af.read_release(report.published[0]).summary().columns}
        shares = {column.column: column.shares for column in report.results[0].published}
        for name, share in shares.items():
            assert share == pytest.approx((seen[name].exact, seen[name].generalized, seen[name].hidden)), name
            assert 0 < share[0] < 1, "the test shows nothing"


def test_names_are_escaped_in_the_report(tmp_path: Path) -> None:
    lines = people()
    lines[0] = "<script>alert(1)</script>,city,zip,income"
    columns = (
        '    "<script>alert(1)</script>": {role: quasi-identifier, kind: numeric}\n'
        "    city: {role: quasi-identifier, kind: categorical}\n"
    )
    engine.run(write_flow(tmp_path, publish=REPORTED, columns=columns, data="\n".join(lines).encode()))
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


# ---------------------------------------------------------------------------------------- compare


def test_compare_gives_a_row_for_each_run() -> None:
    frame = datasets.load("census_like", n=300, seed=2)
    table = af.Table(frame, datasets.schema("census_like"))
    runs = af.compare(table, ["greedy"], k=[5, 10], partition_size=100)
    assert runs["k"].tolist() == [5, 10]
    assert runs["checks"].tolist() == ["2/2", "2/2"]
    assert runs["gcp"].is_monotonic_increasing
    assert list(runs.columns) == [
        "algorithm", "k", "records", "gcp", "usefulness", "suppressed", "seconds", "checks",
    ]  # fmt: skip
    assert af.compare(table, ["greedy"], k=301)["checks"].tolist() == ["infeasible"]


@pytest.mark.parametrize(
    ("names", "k"), [("greedy", 5), ([], 5), (["greedy"], []), (["greedy"], 1), (["gredy"], 5)]
)
def test_compare_checks_what_it_is_given(names: Any, k: Any) -> None:
    table = af.Table(datasets.load("freeform_example"), datasets.schema("freeform_example"))
    with pytest.raises(ParameterError):
        af.compare(table, names, k)


def test_errors_of_the_table_reach_the_caller(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        engine.run(write_flow(tmp_path, data=b"age,city,zip,income\n"))


OF_DRAWN_ROWS = (
    "  - verify: [guarantee, {linkable-columns: {threshold: 1}}, {l-diversity: {l: 1, column: income}}]\n"
)


@pytest.mark.parametrize("pieces", ["false", "40"])
def test_what_drawn_rows_alone_show_is_checked_for_the_run_that_is_drawn(tmp_path: Path, pieces: str) -> None:
    """The other runs say so; before, the whole flow ended with an error that asked for a draw."""
    verify = (
        OF_DRAWN_ROWS
        if pieces == "false"
        else OF_DRAWN_ROWS.replace("{linkable-columns: {threshold: 1}}, ", "")
    )
    flow = write_flow(
        tmp_path,
        source=f"{{csv: people.csv, pieces: {pieces}}}",
        steps="  - draw: {}\n" + verify,
        publish="{run: {anonymize.k: 3, anonymize.algorithm: greedy}, table: out/release.csv}",
        more="matrix: {anonymize.k: [3, 4], anonymize.algorithm: [greedy, mondrian]}\n",
    )
    report = engine.run(flow, seed=SEED)
    assert report.ok
    names = {criterion for criterion in ("linkable-columns", "l-diversity") if criterion in verify}
    for result in report.results:
        checked = {finding.criterion for finding in result.findings}
        assert checked | set(result.undrawn) >= names, result.name
        assert checked.isdisjoint(result.undrawn), result.name
        drawn, of_classes = result.name.startswith("greedy k=3"), "mondrian" in result.name
        assert set(result.undrawn) == (set() if drawn else names - {"l-diversity"} if of_classes else names)
    left_open = [line for line in report.remarks if "not drawn, so not checked for" in line]
    assert len(left_open) == sum(bool(result.undrawn) for result in report.results)
    assert left_open


def test_what_drawn_rows_alone_show_is_refused_where_nothing_is_drawn(tmp_path: Path) -> None:
    """Before anything is computed; classes have their diversity without a draw."""
    matrix = "matrix: {anonymize.k: [3, 4]}\n"
    for more in ("", matrix):
        flow = write_flow(tmp_path, steps=OF_DRAWN_ROWS, publish="", more=more)
        with pytest.raises(FlowError) as refused:
            engine.load_flow(flow)
        assert len(refused.value.problems) == 2
        for name, problem in zip(("linkable-columns", "l-diversity"), refused.value.problems, strict=True):
            assert f"{name} is checked on drawn rows: add '- draw: {{}}'" in problem
    classes = write_flow(
        tmp_path, steps=OF_DRAWN_ROWS.replace("{linkable-columns: {threshold: 1}}, ", ""), publish="",
        anonymize="{algorithm: mondrian, k: 3}",
    )  # fmt: skip
    assert engine.run(classes, seed=SEED).ok


def test_a_comparison_counts_the_partitions_of_its_runs() -> None:
    started: list[tuple[str, int, list[int]]] = []

    def start(name: str, parts: int) -> Any:
        steps: list[int] = []
        started.append((name, parts, steps))
        return SimpleNamespace(step=lambda: steps.append(1))

    table = af.Table(af.datasets.census_like(100, seed=1), af.datasets.schema("census_like"))
    engine.compared(table, ["mondrian"], [5, 6], partition_size=25, on_event=Countdowns(start))
    assert len(started) >= 3  # once more where kernels were compiled
    counted = {name: (parts, len(steps)) for name, parts, steps in started}
    assert counted == {"2 runs": (1, 1), "mondrian k=5": (4, 4), "mondrian k=6": (4, 4)}


@pytest.mark.parametrize(
    ("partitions", "expected"), [(1, ["announced", "wait", "step"]), (2, ["announced", "step"])]
)
def test_runs_on_the_whole_table_show_how_long_they_have_been_at_work(
    partitions: int, expected: list[str]
) -> None:
    """All together: none of them has parts that are done. In partitions each run has a countdown, and the whole says nothing."""
    calls: list[str] = []
    whole = SimpleNamespace(
        step=lambda: calls.append("step"),
        wait=lambda: calls.append("wait"),
        announce=lambda text, seconds: calls.append(text),
    )
    countdowns = Countdowns(lambda name, parts: cast(Any, whole if parts == 1 else SimpleNamespace()))
    countdowns.wait()
    countdowns(events.FlowStarted(flow="a", runs=("b", "c"), scheduler="threads", workers=1))
    countdowns(events.Expectation(level="info", message="announced", seconds=50.0))
    countdowns(events.RunStarted(run=0, name="b", partitions=partitions))
    countdowns.wait()
    countdowns(events.FlowDone(ok=True, seconds=1.0))
    assert calls == expected


def test_compare_and_anonymize_have_one_default_for_partitions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    defaults = {
        inspect.signature(call).parameters["partition_size"].default for call in (af.anonymize, af.compare)
    }
    assert defaults == {None}
    frame = af.datasets.census_like(600, seed=1)
    table = af.Table(frame, af.datasets.schema("census_like"))
    loss = af.anonymize(table, "mondrian", k=5, seed=1).loss("gcp")
    assert af.compare(table, ["mondrian"], 5, seed=1)["gcp"].tolist() == [pytest.approx(loss)]
    frame.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "schema.yaml").write_text(f"columns:\n{CENSUS_COLUMNS}")
    _, _, err = shell(
        capsys, "compare", tmp_path / "people.csv", "--schema", tmp_path / "schema.yaml",
        "--k", "5", "--algorithms", "mondrian",
    )  # fmt: skip
    assert "the whole table" in err
