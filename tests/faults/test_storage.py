"""Storage that fails: full disks, folders that vanish, files that hang, cannot be read, or belong to somebody else."""

from __future__ import annotations

import errno
import itertools
import json
import operator
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

import numpy as np
import pandas as pd
import pytest

import anonflow as af
from anonflow import engine
from anonflow.engine.execution import batches, schedulers, tasks
from anonflow.engine.execution.events import Event, PartitionDone, StepStarted
from anonflow.engine.execution.schedulers import Call
from anonflow.engine.owner import checkpoints
from anonflow.engine.storage import arrays, load, spill
from anonflow.errors import BUG, AnonflowError, DataError
from anonflow.kernels import cache
from tests.cases.flow_files import REPORTED, everything_in, write_flow
from tests.cases.nobody import NOBODY, needs_root, python_as_nobody
from tests.cases.runs import stopped_after
from tests.faults.processes import EVERYTHING, environment, published

SEED = 0x1234567890ABCDEF1234567890ABCDEF

STAGES = {
    "columns are written": (load, "written_columns"),
    "codes are written": (load, "write_rows"),
    "an order is written": (arrays, "write_rows"),
    "a partition is solved": (tasks, "solve"),
    "results are written": (spill, "new_array"),
    "published columns are written": (spill, "written_columns"),
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


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What the flow publishes where nothing happens."""
    flow = flow_in(tmp_path_factory.mktemp("quiet"), "false")
    assert engine.run(flow, seed=SEED, workers=1).ok
    return (flow.parent / "out" / "release.csv").read_bytes()


@pytest.mark.parametrize("stage", STAGES)
def test_faults_inside_a_worker_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quiet: bytes, stage: str
) -> None:
    """Fault: a task breaks. Said: why, with status 3 and no cell. On disk: nothing published or put aside; the same bits later."""
    home, name = STAGES[stage]
    real = getattr(home, name)
    flow = flow_in(tmp_path)
    for fault, (error, text) in FAULTS.items():
        if "solved" in stage and "disk" in fault:
            continue
        calls: list[int] = []

        def broken(*args: Any, error: Any = error, calls: list[int] = calls, **named: Any) -> Any:
            calls.append(1)
            if len(calls) >= (2 if home is tasks else 1):
                raise error()
            return real(*args, **named)

        broken.__name__ = name
        with monkeypatch.context() as patch:
            patch.setattr(home, name, broken)
            with pytest.raises(AnonflowError) as caught:
                engine.run(flow, seed=SEED, workers=1)
        assert calls, fault
        assert caught.value.exit_status == 3, fault
        assert text in str(caught.value), fault
        assert "Athens" not in str(caught.value), fault
        left = everything_in(flow.parent)
        assert not [item for item in left if item.startswith("out") or "pieces-" in item or "lock" in item], (
            fault
        )
    assert engine.run(flow, seed=SEED, workers=1).ok
    assert (flow.parent / "out" / "release.csv").read_bytes() == quiet


LIMITED = """
import resource, signal, sys
from anonflow.cli import main
if __name__ == "__main__":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)), resource.RLIM_INFINITY))
    main()
"""


@pytest.mark.slow
@pytest.mark.machine
def test_no_room_for_what_workers_put_aside(tmp_path: Path) -> None:
    """Fault: a quota while spilling. Said: make room, status 3. On disk: nothing of it."""
    flow = write_flow(
        tmp_path, n=3000, source="{csv: people.csv, pieces: 1500}", partition="{size: 60}", publish=REPORTED,
        more="run: {scheduler: processes, workers: 1}\n",
    )  # fmt: skip
    script = tmp_path / "limited.py"
    script.write_text(LIMITED, encoding="ascii")
    command = [sys.executable, str(script), "15000", "run", str(flow), "--quiet"]
    done = subprocess.run(
        command, env=environment(), check=False, capture_output=True, text=True, timeout=600, cwd=tmp_path
    )
    assert done.returncode == 3, done.stderr
    assert "File too large" in done.stderr
    assert "make room" in done.stderr
    assert "bug" not in done.stderr
    left = everything_in(tmp_path)
    assert not [item for item in left if item.startswith("out") or "pieces-" in item or "lock" in item]


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS])
def test_a_file_system_that_takes_no_space_in_advance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Fault: a file system, or a C library, without fallocate. The array is written as anywhere else."""

    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", refused)
    array = arrays.write_array(str(tmp_path / "array.npy"), np.arange(12).reshape(6, 2))
    assert array.tolist() == np.arange(12).reshape(6, 2).tolist()


def test_a_full_disk_is_noticed_where_an_array_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: no room for an array. It is an error before anybody maps it: a missing page would end the process."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        arrays.create_array(str(tmp_path / "array.npy"), (6, 2), np.int32)


def test_a_worker_that_does_not_reach_the_files_of_a_run(tmp_path: Path) -> None:
    """Fault: a worker of a cluster without the owner's folder. Said: that, not that the cluster is lost or a disk full."""
    codes, positions = (
        arrays.write_array(str(tmp_path / name), values)
        for name, values in (("codes.npy", np.zeros((4, 1), np.int32)), ("order.npy", np.arange(4)))
    )
    rows = arrays.TableOrder(codes, positions).rows(1, 3)
    (tmp_path / "codes.npy").unlink()
    group = schedulers._Packed(
        schedulers._Group((Call(operator.methodcaller("load", ()), (rows,)),)), "a task"
    )
    _, (failed,) = group()
    assert "owner's folder" in failed.error.message
    assert "room" not in failed.error.message
    assert "bug" not in failed.error.message


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
    sys.addaudithook(opens)
    return flow
def opens(event, arguments):
    if event == "open" and str(arguments[0]).endswith("people.csv"):
        os.write(1, b"opens\\n")
runner.load_flow = then
from anonflow.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.machine
@pytest.mark.parametrize(("rows", "number"), [("false", signal.SIGINT), (20, signal.SIGTERM)])
def test_storage_that_hangs_can_be_left(tmp_path: Path, rows: object, number: signal.Signals) -> None:
    """Fault: a mount that answers nothing. Said, once it is interrupted: nothing was published, 130, at once."""
    flow = flow_in(tmp_path, rows)
    running = subprocess.Popen(
        [sys.executable, "-c", HANGS, "run", str(flow), "--quiet"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    assert running.stdout is not None
    assert running.stdout.readline() == "opens\n"
    running.send_signal(number)
    _, err = running.communicate(timeout=600)
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


@pytest.mark.parametrize("rows", ["false", 20])
def test_a_clock_that_jumps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quiet: bytes, rows: object
) -> None:
    """Fault: the clock is set again and again. Said: nothing. On disk: the same bits, and what was kept is found."""
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(batches, "ROWS", 20)
    for jump in (-3e8, 3e8, -1.0):
        flow = flow_in(tmp_path / f"{jump}", rows)
        times = itertools.count(1)

        def jumping(jump: float = jump, times: Iterator[int] = times) -> float:
            return 1.7e9 + jump * next(times)

        monkeypatch.setattr(time, "time", jumping)
        stopped_after(flow.parent, 2, seed=SEED)
        events: list[Event] = []
        assert engine.run(flow, on_event=events.append, workers=1).ok
        assert next(times) > 1
        assert any("are there from an earlier run" in getattr(event, "message", "") for event in events), jump
        assert (flow.parent / "out" / "release.csv").read_bytes() == quiet, jump
        report = engine.run(flow, on_event=events.append, workers=1, again=True)
        assert report.ok
        assert 0 <= report.seconds < 3e8, jump


# ------------------------------------------------------------------------------ a user who is not root


AS_NOBODY = """
import contextlib, io, json, sys
from anonflow import cli
for flow in sys.argv[1:]:
    words = io.StringIO()
    with contextlib.redirect_stderr(words), contextlib.redirect_stdout(words):
        try:
            cli.main(["run", flow, "--quiet"])
        except SystemExit as left:
            status = left.code
    print(json.dumps([status, words.getvalue()]))
"""
"""One process that runs several flows."""

CLOSED = {
    "home": "the owner's folder cannot be made: Permission denied; move the flow to a folder where you may write",
    "people.csv": "people.csv: cannot be read (PermissionError)",
    "owner/test": "Permission denied",
    "flow.yaml": "is not readable",
}
"""What is somebody else's, and what is said of it."""


def give(*paths: Path) -> None:
    for path in paths:
        os.chown(path, NOBODY, NOBODY)


def home_without(place: Path, closed: str) -> Path:
    """A flow of nobody's, but for something in its folder."""
    place.mkdir()
    flow = write_flow(place, publish=REPORTED)
    (place / "owner" / "test").mkdir(parents=True, mode=0o700)
    give(place, place / "owner", place / "owner" / "test", flow, place / "people.csv")
    if closed == "home":
        shutil.rmtree(place / "owner")
        os.chown(place, 0, 0)
    elif closed:
        os.chown(place / closed, 0, 0)
        (place / closed).chmod(0o700 if closed == "owner/test" else 0o600)
    return flow


@needs_root
@pytest.mark.slow
def test_a_user_who_is_not_root() -> None:
    """Everything of a run is theirs alone; of what is somebody else's they are told what to do, status 2, and nothing is written."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        home.chmod(0o755)
        other = home / "other"  # for compiled kernels
        shutil.copytree(str(cache.folder()), other / "kernels" / Path(str(cache.folder())).name)
        give(other, *other.rglob("*"))
        flows = [home_without(home / name.replace("/", "-"), name) for name in CLOSED]
        before = [everything_in(flow.parent) for flow in flows]
        flows.append(home_without(home / "open", ""))
        done = python_as_nobody(
            "-c", AS_NOBODY, *flows,
            cwd=other, HOME=str(other), TMPDIR=str(other), NUMBA_CACHE_DIR=str(other / "kernels"),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(answers) == len(flows)
        for flow, names, text, (status, words) in zip(flows, before, CLOSED.values(), answers):
            assert status == 2, words
            assert text in words
            assert "bug" not in words
            assert everything_in(flow.parent) == names, words
        assert answers[-1][0] == 0, answers[-1]
        assert published(home / "open") == EVERYTHING
        for path in (home / "open" / "owner").rglob("*"):
            assert path.stat().st_uid == NOBODY
            assert not path.stat().st_mode & 0o077
