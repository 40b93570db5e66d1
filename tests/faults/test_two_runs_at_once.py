"""Two runs of one flow at once: the second is refused with a sentence, and what a lost process left is taken over."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from anonflow import engine
from anonflow.engine.execution.events import Event, PartitionDone
from anonflow.engine.owner.folder import Holder, locked
from anonflow.errors import AnonflowError, FlowError
from tests.cases.flow_files import REPORTED, everything_in, write_flow
from tests.cases.runs import shell
from tests.faults.processes import EVERYTHING, environment, published
from tests.strategies import loop

HOLD = """
import sys
from anonflow import engine
from anonflow.engine.execution.events import PartitionDone
def wait(event):
    if isinstance(event, PartitionDone):
        print("at work", flush=True)
        sys.stdin.read()
engine.run(sys.argv[1], on_event=wait)
"""


@pytest.fixture
def at_work(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that is in the middle of a run of ``flow.yaml``."""
    flow = write_flow(tmp_path, publish=REPORTED)
    running = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(flow)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == "at work\n"
        yield running
    finally:
        running.kill()
        running.communicate()


@pytest.mark.slow
@pytest.mark.machine
def test_the_second_is_refused_and_a_killed_one_is_no_hindrance(
    tmp_path: Path, at_work: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Fault: two runs of one flow. Said: which process to wait for, status 3. On disk: nothing is changed."""
    before = everything_in(tmp_path)
    status, _, err = shell(capsys, "run", tmp_path / "flow.yaml", "--quiet")
    assert status == 3
    assert err == (
        f"anonflow: {tmp_path / 'owner' / 'test'}: another run of this flow is at work, and two would write the "
        f"same files; wait until process {at_work.pid} is over, or stop it with 'kill {at_work.pid}'\n"
    )
    assert everything_in(tmp_path) == before
    os.kill(at_work.pid, signal.SIGKILL)
    at_work.wait()
    assert (tmp_path / "owner" / "test" / "lock").exists()
    assert shell(capsys, "run", tmp_path / "flow.yaml", "--quiet")[0] == 0
    assert published(tmp_path) == EVERYTHING
    assert not (tmp_path / "owner" / "test" / "lock").exists()


def test_the_lock_is_there_for_the_length_of_a_run(tmp_path: Path) -> None:
    flow = write_flow(tmp_path, publish=REPORTED)
    lock = tmp_path / "owner" / "test" / "lock"
    seen = []

    def listen(event: Event) -> None:
        if isinstance(event, PartitionDone):
            seen.append((Holder.read(lock.read_text()), lock.stat().st_mode & 0o777))
            with pytest.raises(AnonflowError, match="another run of this flow is at work") as caught:
                engine.run(flow)
            assert caught.value.exit_status == 3

    assert engine.run(flow, on_event=listen, workers=1).ok
    assert set(seen) == {(Holder.this(), 0o600)}
    assert not lock.exists()


@pytest.mark.parametrize("flock", [True, False], ids=["with flock", "without"])
def test_two_flows_with_one_target_do_not_mix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flock: bool
) -> None:
    """Fault: a second flow begins while the first is at work. Said: which file it is. Without locks nothing is held, and both run."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    if not flock:
        without_locks(monkeypatch)
    for folder in ("first", "second", "temporary"):
        (tmp_path / folder).mkdir()
    publish = REPORTED.replace("out/", "../out/")
    first, second = (write_flow(tmp_path / name, publish=publish) for name in ("first", "second"))
    refused = []

    def listen(event: Event) -> None:
        if isinstance(event, PartitionDone) and not refused:
            try:
                engine.run(second)
            except AnonflowError as error:
                refused.append(error)

    assert engine.run(first, on_event=listen, workers=1).ok
    assert len(refused) == flock
    for error in refused:
        assert "release.csv: another run is at work and writes this file; wait until it is over" in str(error)
    assert not everything_in(tmp_path / "temporary")
    assert engine.run(first).unchanged
    assert engine.run(second).ok


HERE = Holder.this()
STALE = {
    "a process that is over": replace(HERE, process=2**22 + 1, started="1"),
    "another process with its number": replace(HERE, started="1"),
    "before the machine was switched off": replace(HERE, boot="another"),
}


@pytest.mark.parametrize("flock", [True, False], ids=["with flock", "without"])
@pytest.mark.parametrize("left", [*STALE, "half a line", "an empty file"])
def test_what_a_lost_process_left_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str, flock: bool
) -> None:
    if not flock:
        without_locks(monkeypatch)
    text = STALE[left].text() if left in STALE else '{"process": 1' if left == "half a line" else ""
    (tmp_path / "lock").write_text(text)
    with locked(tmp_path):
        assert Holder.read((tmp_path / "lock").read_text()) == HERE
    assert everything_in(tmp_path) == set()


def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, kind: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)


@loop(
    ("number", "error", "words"),
    [
        (errno.ENOSPC, AnonflowError, "make room and run again"),
        (errno.EDQUOT, AnonflowError, "make room and run again"),
        (errno.EIO, FlowError, "move the flow to a folder where you may write"),
    ],
)
def test_a_lock_that_cannot_be_taken_is_said(
    tmp_path: Path, number: int, error: type[AnonflowError], words: str
) -> None:
    with (
        mock.patch.object(fcntl, "flock", side_effect=OSError(number, os.strerror(number))),
        pytest.raises(error, match=f"cannot be written to: {os.strerror(number)}; {words}$"),
        locked(tmp_path),
    ):
        pass


def test_a_lock_that_its_holder_deletes_meanwhile_is_taken_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, file = fcntl.flock, tmp_path / "lock"

    def let_go(descriptor: int, kind: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        file.unlink()
        lock(descriptor, kind)

    monkeypatch.setattr(fcntl, "flock", let_go)
    with locked(tmp_path):
        assert Holder.read(file.read_text()) == HERE


def test_a_holder_that_has_not_written_its_name_yet_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    with (
        mock.patch.object(fcntl, "flock", side_effect=BlockingIOError),
        pytest.raises(AnonflowError, match=r"at work.*; wait until it is over$"),
        locked(tmp_path),
    ):
        pass


def test_a_machine_that_does_not_say_when_it_began_goes_by_its_name(tmp_path: Path) -> None:
    with (
        mock.patch.object(Path, "read_text", side_effect=FileNotFoundError),
        locked(tmp_path),
        pytest.raises(AnonflowError, match=f"kill {os.getpid()}"),
        locked(tmp_path),
    ):
        pass


def test_a_file_system_without_locks_goes_by_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_locks(monkeypatch)
    with locked(tmp_path), pytest.raises(AnonflowError, match=f"kill {os.getpid()}"), locked(tmp_path):
        pass
    assert everything_in(tmp_path) == set()


def test_another_machine_is_believed(tmp_path: Path) -> None:
    """On shared storage nobody here can see whether it still runs: said is what to delete."""
    (tmp_path / "lock").write_text(replace(HERE, machine="other\x1b[2J", boot="another").text())
    with (
        pytest.raises(
            AnonflowError, match=r"process \d+ on the machine other.* is over; .* delete .*lock"
        ) as caught,
        locked(tmp_path),
    ):
        pass
    assert "\x1b" not in str(caught.value)
    assert (tmp_path / "lock").exists()


def test_a_link_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "owner").mkdir()
    (tmp_path / "precious").write_text("stays")
    (tmp_path / "owner" / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(FlowError, match="cannot be written to"), locked(tmp_path / "owner"):
        pass
    assert (tmp_path / "precious").read_text() == "stays"
