"""A full disk, and a run in pieces that is killed: nothing half published, and the same bits once there is room."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from anonflow import engine
from anonflow.engine.execution import batches
from anonflow.errors import AnonflowError
from tests.cases.flow_files import REPORTED, everything_in, write_flow

SEED = 0x1234567890ABCDEF1234567890ABCDEF

pytestmark = pytest.mark.slow

LIMITED = """
import resource, signal, sys
from anonflow.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
main(["run", sys.argv[2], "--quiet", "--seed-file", sys.argv[3]])
"""
"""The stand-in for a quota: no file may grow beyond some bytes."""


def flow_in(folder: Path, pieces: str) -> Path:
    """A flow whose release takes some hundred thousand bytes."""
    folder.mkdir(exist_ok=True)
    return write_flow(
        folder,
        n=6000,
        source=f"{{csv: people.csv, pieces: {pieces}}}",
        partition="{size: 60}",
        publish=REPORTED,
    )


def undisturbed(folder: Path) -> bytes:
    engine.run(flow_in(folder, "false"), seed=SEED)
    return (folder / "out" / "release.csv").read_bytes()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 260 kB: the table is on it, and not much more."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=260k", "tmpfs", str(place)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("only root can mount a small disk; the stand-in is tested all the same")
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("pieces", ["false", "1000"])
def test_a_disk_that_is_full(tmp_path: Path, small_disk: Path, pieces: str) -> None:
    flow = flow_in(small_disk, pieces)
    with pytest.raises(AnonflowError, match="make room") as caught:
        engine.run(flow, seed=SEED)
    assert caught.value.exit_status == 3
    assert "\n" not in str(caught.value)
    left = everything_in(small_disk)
    assert not [name for name in left if name.startswith("out/") or "pieces-" in name]
    subprocess.run(["mount", "-o", "remount,size=30m", str(small_disk)], check=True)
    assert engine.run(flow, seed=SEED).ok
    assert (small_disk / "out" / "release.csv").read_bytes() == undisturbed(tmp_path / "quiet")


@pytest.mark.parametrize("pieces", ["false", "1000"])
def test_a_quota_that_is_used_up(tmp_path: Path, pieces: str) -> None:
    flow = flow_in(tmp_path / "limited", pieces)
    seed = tmp_path / "seed"
    seed.write_text(f"{SEED:032x}\n", encoding="ascii")
    command = [sys.executable, "-c", LIMITED, "60000", str(flow), str(seed)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600)
    assert done.returncode == 3, done.stderr
    assert "File too large" in done.stderr
    assert "bug" not in done.stderr
    left = everything_in(flow.parent)
    assert not [name for name in left if name.startswith("out/") or "pieces-" in name]
    assert engine.run(flow, seed=SEED).ok
    assert (flow.parent / "out" / "release.csv").read_bytes() == undisturbed(tmp_path / "quiet")


KILLED = """
import os, signal, sys
from anonflow import engine
from anonflow.engine.execution.events import PartitionDone
from anonflow.engine.execution import batches
batches.ROWS, batches.SHARE = 600, 1.0
def listen(event):
    if isinstance(event, PartitionDone) and event.done >= 30:
        os.kill(os.getpid(), signal.SIGKILL)
engine.run(sys.argv[1], on_event=listen, workers=1, seed=int(sys.argv[2]))
"""


def test_a_killed_run_in_pieces_is_picked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "ROWS", 600)
    monkeypatch.setattr(batches, "SHARE", 1.0)
    flow = flow_in(tmp_path / "killed", "1000")
    command = [sys.executable, "-c", KILLED, str(flow), str(SEED)]
    done = subprocess.run(command, check=False, timeout=600)
    assert done.returncode == -signal.SIGKILL
    owner = flow.parent / "owner" / "test"
    assert list(owner.glob("pieces-*"))  # nobody was left to remove them
    assert not (flow.parent / "out").exists()
    messages: list[str] = []
    assert engine.run(flow, on_event=lambda event: messages.append(getattr(event, "message", ""))).ok
    assert any("partitions are there from an earlier run" in item for item in messages)
    assert not list(owner.glob("pieces-*"))
    assert (flow.parent / "out" / "release.csv").read_bytes() == undisturbed(tmp_path / "quiet")


def test_workers_that_are_killed_twice_lose_no_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from anonflow.engine.execution.events import Event, PartitionDone

    monkeypatch.setattr(batches, "ROWS", 600)
    monkeypatch.setattr(batches, "SHARE", 1.0)
    flow = flow_in(tmp_path / "killed", "1000")
    ended: list[int] = []

    def listen(event: Event) -> None:
        if isinstance(event, PartitionDone) and event.done in (10, 40):
            for child in workers_of(os.getpid())[:1]:
                os.kill(child, signal.SIGKILL)
                ended.append(child)

    assert engine.run(flow, seed=SEED, scheduler="processes", workers=2, on_event=listen).ok
    assert len(ended) == 2
    assert (flow.parent / "out" / "release.csv").read_bytes() == undisturbed(tmp_path / "quiet")


def workers_of(parent: int) -> list[int]:
    """The processes that a process started to work for it."""
    results = []
    for task in Path("/proc").glob("[0-9]*/stat"):
        try:
            rest = task.read_text(encoding="utf-8").rpartition(")")[2].split()
            command = (task.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(rest[1]) == parent and b"spawn_main" in command:
            results.append(int(task.parent.name))
    return sorted(results)
