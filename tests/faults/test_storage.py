"""Storage that fails: full disks, folders that vanish, files that hang, cannot be read, or belong to somebody else."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import anonflow as af
from anonflow import engine
from anonflow.engine.execution import batches, tasks
from anonflow.engine.execution.events import Event, PartitionDone, StepStarted
from anonflow.engine.storage import batch_release, external_sort, pieces, scan
from anonflow.errors import BUG, AnonflowError, DataError
from tests.cases.flow_files import REPORTED, everything_in, write_flow
from tests.cases.nobody import NOBODY, needs_root, python_as_nobody
from tests.faults.processes import EVERYTHING, environment, published

SEED = 0x1234567890ABCDEF1234567890ABCDEF

STAGES = {
    "the source is rewritten": (pieces, "rewrite"),
    "a piece is looked at": (scan, "scan"),
    "a piece is sorted": (external_sort, "sort_piece"),
    "ranges are merged": (external_sort, "merge_range"),
    "a partition is solved": (tasks, "solve"),
    "rows are dealt": (batch_release, "deal"),
}

FAULTS: dict[str, tuple[Callable[[], BaseException], str]] = {
    "the disk is full": (lambda: OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
    "the disk fails": (lambda: OSError(errno.EIO, "Input/output error"), "Input/output error"),
    "the memory is full": (MemoryError, "memory"),
    "a bug": (lambda: ZeroDivisionError("Athens"), BUG),
}


def flow_in(folder: Path, rows: object = 20) -> Path:
    folder.mkdir(exist_ok=True)
    return write_flow(
        folder, source=f"{{csv: people.csv, pieces: {rows}}}", publish="{table: out/release.csv}"
    )


@pytest.mark.parametrize(
    ("stage", "fault"),
    [
        pytest.param(
            stage,
            fault,
            marks=[] if (at + 2) % len(FAULTS) == list(FAULTS).index(fault) else [pytest.mark.slow],
        )
        for at, stage in enumerate(STAGES)
        for fault in FAULTS
        if "solved" not in stage or "disk" not in fault
    ],
)
def test_a_fault_inside_a_worker_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, fault: str
) -> None:
    """Fault: a task breaks. Said: why, with status 3 and no cell. On disk: nothing published or put aside; the same bits later."""
    flow = flow_in(tmp_path / "broken")
    home, name = STAGES[stage]
    real, (error, text) = getattr(home, name), FAULTS[fault]
    calls: list[int] = []

    def broken(*args: Any, **named: Any) -> Any:
        calls.append(1)
        if len(calls) >= (1 if name == "rewrite" else 2):
            raise error()
        return real(*args, **named)

    broken.__name__ = name
    with monkeypatch.context() as patch:
        patch.setattr(home, name, broken)
        with pytest.raises(AnonflowError) as caught:
            engine.run(flow, seed=SEED, workers=1)
    assert calls
    assert caught.value.exit_status == 3
    assert text in str(caught.value)
    assert "Athens" not in str(caught.value)
    left = everything_in(flow.parent)
    assert not [item for item in left if item.startswith("out") or "pieces-" in item or "lock" in item]
    assert engine.run(flow, seed=SEED, workers=1).ok
    quiet = flow_in(tmp_path / "quiet", "false")
    assert engine.run(quiet, seed=SEED, workers=1).ok
    assert (flow.parent / "out" / "release.csv").read_bytes() == (
        quiet.parent / "out" / "release.csv"
    ).read_bytes()


LIMITED = """
import resource, signal, sys
from anonflow.cli import main
if __name__ == "__main__":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY))
    main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_no_room_for_what_is_put_aside(tmp_path: Path, scheduler: str) -> None:
    """Fault: a quota while spilling, in this process and in workers. Said: make room, status 3. On disk: nothing of it."""
    flow = write_flow(
        tmp_path, n=6000, source="{csv: people.csv, pieces: 3000}", partition="{size: 60}", publish=REPORTED
    )
    script = tmp_path / "limited.py"
    script.write_text(LIMITED, encoding="ascii")
    command = [sys.executable, str(script), "30000", "run", str(flow), "--quiet", "--scheduler", scheduler]
    done = subprocess.run(
        command, env=environment(), check=False, capture_output=True, text=True, timeout=600, cwd=tmp_path
    )
    assert done.returncode == 3, done.stderr
    assert "File too large" in done.stderr
    assert "make room" in done.stderr
    assert "bug" not in done.stderr
    left = everything_in(tmp_path)
    assert not [item for item in left if item.startswith("out") or "pieces-" in item or "lock" in item]


@pytest.mark.parametrize("rows", ["false", 20])
@pytest.mark.parametrize("step", ["anonymize", "draw", "publish"])
def test_the_owners_folder_vanishes(tmp_path: Path, step: str, rows: object) -> None:
    """Fault: the storage of the owner's folder is gone. Said: which file cannot be written or read. Never a bug."""
    flow = flow_in(tmp_path, rows)

    def listen(event: Event) -> None:
        if isinstance(event, StepStarted) and event.step == step:
            shutil.rmtree(tmp_path / "owner")

    error = None
    try:
        assert engine.run(flow, seed=SEED, workers=1, on_event=listen).ok
    except AnonflowError as caught:
        error = caught
    if error is not None:
        assert error.exit_status in (2, 3)
        assert BUG not in str(error)
        assert "\n" not in str(error)
        assert not (tmp_path / "out").exists()
    else:  # it was made again, with all that belongs to a release
        assert {"certificate.npz", "record.json", "seed"} <= everything_in(tmp_path / "owner" / "test")
    assert not list(tmp_path.rglob("lock"))


@pytest.mark.parametrize("rows", ["false", 20])
def test_the_source_vanishes(tmp_path: Path, rows: object) -> None:
    """Fault: the storage of the table is gone. Said: which file, status 2. On disk: nothing published."""
    flow = flow_in(tmp_path, rows)

    def listen(event: Event) -> None:
        if isinstance(event, PartitionDone):
            (tmp_path / "people.csv").unlink(missing_ok=True)

    with pytest.raises(DataError, match=r"people\.csv: has changed|people\.csv: cannot be read") as caught:
        engine.run(flow, workers=1, on_event=listen)
    assert caught.value.exit_status == 2
    assert not (tmp_path / "out").exists()


HANGS = """
import os, pathlib, sys
import anonflow.engine
runner = sys.modules["anonflow.engine.run"]
load = runner.load_flow
def then(path, **settings):
    flow = load(path, **settings)
    os.unlink(flow.source_path)
    pathlib.Path.is_file = lambda self: True  # as a mount would say that has just answered
    os.mkfifo(flow.source_path)  # whoever opens it waits for ever
    print("hangs", flush=True)
    return flow
runner.load_flow = then
from anonflow.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("rows", ["false", 20])
def test_storage_that_hangs_can_be_left(tmp_path: Path, rows: object, number: signal.Signals) -> None:
    """Fault: a mount that answers nothing. Said, once it is interrupted: nothing was published, 130, at once."""
    flow = flow_in(tmp_path, rows)
    running = subprocess.Popen(
        [sys.executable, "-c", HANGS, "run", str(flow), "--quiet"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    assert running.stdout is not None
    assert running.stdout.readline() == "hangs\n"
    time.sleep(2)
    assert running.poll() is None
    running.send_signal(number)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert err == "anonflow: interrupted; nothing was published\n"
    assert not [
        item
        for item in everything_in(tmp_path)
        if item.startswith("out") or "pieces-" in item or "lock" in item
    ]


@pytest.mark.parametrize("file", ["source", "hierarchy", "flow", "schema"])
def test_a_pipe_is_no_file(tmp_path: Path, file: str) -> None:
    """Fault: a path that nobody writes to. Said at once, instead of waiting for ever; status 2."""
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    columns = "    city: {role: quasi-identifier, kind: hierarchy, hierarchy: pipe.csv}\n"
    flows: dict[str, Callable[[], object]] = {
        "source": lambda: engine.run(write_flow(tmp_path, source="{csv: pipe.csv}", publish=REPORTED)),
        "hierarchy": lambda: engine.run(write_flow(tmp_path, columns=columns, publish=REPORTED)),
        "flow": lambda: engine.run(pipe),
        "schema": lambda: af.Schema.read(pipe),
    }
    with pytest.raises(
        AnonflowError, match=r"is not a file|no ordinary file|no such hierarchy file"
    ) as caught:
        flows[file]()
    assert caught.value.exit_status == 2


def encrypted(frame: pd.DataFrame, file: Path) -> None:
    """Write a frame as Parquet that is encrypted, its footer too."""
    import base64

    import pyarrow as pa
    import pyarrow.parquet as pq

    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class Keys(encryption.KmsClient):  # type: ignore[misc, name-defined]
        def __init__(self, settings: object) -> None:
            super().__init__()

        def wrap_key(self, key: bytes, name: str) -> bytes:
            return base64.b64encode(key)

        def unwrap_key(self, key: bytes, name: str) -> bytes:
            return base64.b64decode(key)

    factory = encryption.CryptoFactory(lambda settings: Keys(settings))
    table = pa.Table.from_pandas(frame)
    settings = encryption.EncryptionConfiguration(
        footer_key="footer", column_keys={"column": list(frame.columns)}
    )
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), settings)
    with pq.ParquetWriter(file, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("rows", ["false", 20])
def test_encrypted_parquet(tmp_path: Path, rows: object) -> None:
    """Fault: a table that cannot be read without keys. Said: that it is encrypted, status 2. On disk: nothing."""
    flow = write_flow(tmp_path, source=f"{{parquet: t.parquet, pieces: {rows}}}", publish=REPORTED)
    encrypted(pd.read_csv(tmp_path / "people.csv"), tmp_path / "t.parquet")
    before = everything_in(tmp_path)
    with pytest.raises(DataError, match=r"t\.parquet: is encrypted; decrypt it") as caught:
        engine.run(flow, workers=1)
    assert caught.value.exit_status == 2
    assert everything_in(tmp_path) == before


@pytest.mark.parametrize(
    ("rows", "jump"),
    [
        ("false", -3e8),
        (20, -1.0),
        *(pytest.param("false", jump, marks=pytest.mark.slow) for jump in (3e8, -1.0)),
        *(pytest.param(20, jump, marks=pytest.mark.slow) for jump in (-3e8, 3e8)),
    ],
)
def test_a_clock_that_jumps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: object, jump: float
) -> None:
    """Fault: the clock is set again and again. Said: nothing. On disk: the same bits, and what was kept is found."""
    from anonflow.engine.owner import checkpoints
    from tests.cases.runs import stopped_after

    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(batches, "ROWS", 20)
    quiet = flow_in(tmp_path / "quiet", "false")
    assert engine.run(quiet, seed=SEED, workers=1).ok
    flow = flow_in(tmp_path / "jumps", rows)
    true, times = time.time, [0]

    def jumping() -> float:
        times[0] += 1
        return true() + jump * times[0]

    monkeypatch.setattr(time, "time", jumping)
    stopped_after(flow.parent, 2, seed=SEED)
    events: list[Event] = []
    assert engine.run(flow, on_event=events.append, workers=1).ok
    assert times[0]
    assert any("are there from an earlier run" in getattr(event, "message", "") for event in events)
    assert (flow.parent / "out" / "release.csv").read_bytes() == (
        quiet.parent / "out" / "release.csv"
    ).read_bytes()
    took = engine.run(flow, on_event=events.append, workers=1)
    assert took.ok
    assert 0 <= took.seconds < 600


# ------------------------------------------------------------------------------ a user who is not root


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder below ones that anybody may pass."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        home = Path(folder) / "home"
        home.mkdir()
        yield home


def give(*paths: Path) -> None:
    for path in paths:
        os.chown(path, NOBODY, NOBODY)


def as_nobody(home: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    other = home.parent / "other"  # for compiled kernels
    other.mkdir()
    give(other)
    return python_as_nobody("-m", "anonflow", *arguments, cwd=other, HOME=str(other), TMPDIR=str(other))


@needs_root
@pytest.mark.slow
def test_a_user_who_is_not_root(home: Path) -> None:
    """No fault: everything is theirs, and nobody else's."""
    flow = write_flow(home, publish=REPORTED)
    give(home, flow, home / "people.csv")
    done = as_nobody(home, "run", flow, "--quiet")
    assert done.returncode == 0, done.stderr
    assert published(home) == EVERYTHING
    for path in (home / "owner").rglob("*"):
        assert path.stat().st_uid == NOBODY
        assert not path.stat().st_mode & 0o077


@needs_root
@pytest.mark.slow
@pytest.mark.parametrize(
    ("closed", "says"),
    [
        (
            "home",
            "the owner's folder cannot be made: Permission denied; move the flow to a folder where you may write",
        ),
        ("people.csv", "people.csv: cannot be read (PermissionError)"),
        ("owner/test", "Permission denied"),
        ("flow.yaml", "is not readable"),
    ],
)
def test_a_user_who_may_not(home: Path, closed: str, says: str) -> None:
    """Fault: something is somebody else's. Said: what, and what to do, status 2. On disk: nothing."""
    flow = write_flow(home, publish=REPORTED)
    (home / "owner" / "test").mkdir(parents=True, mode=0o700)
    give(home, home / "owner", home / "owner" / "test", flow, home / "people.csv")
    if closed == "home":
        shutil.rmtree(home / "owner")
        os.chown(home, 0, 0)
    else:
        os.chown(home / closed, 0, 0)
        (home / closed).chmod(0o700 if closed == "owner/test" else 0o600)
    before = everything_in(home)
    done = as_nobody(home, "run", flow, "--quiet")
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert "bug" not in done.stderr
    assert everything_in(home) == before
