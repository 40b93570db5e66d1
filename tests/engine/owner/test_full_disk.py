"""A full disk, and a run in pieces that is killed: nothing half published, and the same bits once there is room."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from anonflow import engine
from anonflow.engine.execution import batches
from anonflow.errors import AnonflowError
from tests.cases.flow_files import REPORTED, everything_in, write_flow
from tests.cases.runs import shell

SEED = 0x1234567890ABCDEF1234567890ABCDEF

pytestmark = pytest.mark.slow


@contextmanager
def quota(size: int) -> Iterator[None]:
    """The stand-in for a quota: no file of this process may grow beyond some bytes."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


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


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What the flow publishes where nothing happens."""
    folder = tmp_path_factory.mktemp("quiet")
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
        gc.collect()  # an error and its traceback have arrays that are mapped from the disk
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("pieces", ["false", "1000"])
def test_a_disk_that_is_full(small_disk: Path, undisturbed: bytes, pieces: str) -> None:
    flow = flow_in(small_disk, pieces)
    with pytest.raises(AnonflowError, match="make room") as caught:
        engine.run(flow, seed=SEED)
    assert caught.value.exit_status == 3
    assert "\n" not in str(caught.value)
    left = everything_in(small_disk)
    assert not [name for name in left if name.startswith("out/") or "pieces-" in name]
    subprocess.run(["mount", "-o", "remount,size=30m", str(small_disk)], check=True)
    assert engine.run(flow, seed=SEED).ok
    assert (small_disk / "out" / "release.csv").read_bytes() == undisturbed


@pytest.mark.parametrize("pieces", ["false", "1000"])
def test_a_quota_that_is_used_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], undisturbed: bytes, pieces: str
) -> None:
    flow = flow_in(tmp_path / "limited", pieces)
    seed = tmp_path / "seed"
    seed.write_text(f"{SEED:032x}\n", encoding="ascii")
    with quota(60_000):
        status, _, err = shell(capsys, "run", flow, "--quiet", "--seed-file", seed)
    assert status == 3, err
    assert "File too large" in err
    assert "make room" in err
    assert "bug" not in err
    left = everything_in(flow.parent)
    assert not [name for name in left if name.startswith("out/") or "pieces-" in name or "lock" in name]
    assert engine.run(flow, seed=SEED).ok
    assert (flow.parent / "out" / "release.csv").read_bytes() == undisturbed


KILLED = """
import os, signal, sys
from anonflow import engine
from anonflow.engine.owner import checkpoints
checkpoints.EVERY = 0.0
from anonflow.engine.execution.events import PartitionDone
from anonflow.engine.execution import batches
batches.ROWS, batches.SHARE = 600, 1.0
def listen(event):
    if isinstance(event, PartitionDone) and event.done >= 30:
        os.kill(os.getpid(), signal.SIGKILL)
engine.run(sys.argv[1], on_event=listen, workers=1, seed=int(sys.argv[2]))
"""


@pytest.mark.machine
def test_a_killed_run_in_pieces_is_picked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: bytes
) -> None:
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
    assert (flow.parent / "out" / "release.csv").read_bytes() == undisturbed
