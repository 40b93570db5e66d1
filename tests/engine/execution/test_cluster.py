"""Local processes and a running Dask cluster by address, and what happens when workers die: same bits, nothing half published."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anonflow import engine
from anonflow.engine import context
from anonflow.engine.execution import batches, schedulers, tasks
from anonflow.engine.execution.events import Event, EventStream, PartitionDone, StepStarted
from anonflow.engine.owner import checkpoints
from anonflow.errors import AnonflowError, DataError, ParameterError
from tests import ROOT
from tests.cases.cluster import Cluster
from tests.cases.flow_files import everything_in, write_flow
from tests.cases.workers import Workers, end_worker

SEED = 0x1234567890ABCDEF1234567890ABCDEF

ADDRESS = "tcp://host:1"
"""Where the workers of a test are, too."""

MANY = {"n": 2000, "partition": "{size: 100}", "anonymize": "{algorithm: greedy, k: 25}"}
"""Twenty partitions, more than are sent to two workers at once."""


def released(folder: Path, **settings: Any) -> bytes:
    report = engine.run(folder / "flow.yaml", seed=SEED, fresh=True, again=True, **settings)
    assert report.ok
    return (folder / "out" / "release.csv").read_bytes()


# ------------------------------------------------------------------------------------ real processes


@pytest.mark.slow
@pytest.mark.machine
def test_a_cluster_by_address_gives_the_same_bits(tmp_path: Path, cluster: Cluster) -> None:
    """Twice, so that no name of the first run is in the way; with a worker that is killed; and from the shell."""
    flow = write_flow(tmp_path, **MANY)
    address = cluster.address
    for _ in range(2):
        cluster.add_worker()
    first = cluster.workers[0]
    threads = released(tmp_path)
    assert released(tmp_path, scheduler=address) == threads

    def listen(event: Event) -> None:
        if isinstance(event, PartitionDone) and event.done == 2:
            first.send_signal(signal.SIGKILL)

    assert released(tmp_path, scheduler=address, on_event=listen) == threads
    assert first.wait() == -signal.SIGKILL
    done = subprocess.run(
        [sys.executable, "-m", "anonflow", "run", str(flow), "--again", "--scheduler", address],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.machine
def test_local_workers_answer_this_machine_only_and_lose_nothing_when_two_are_killed(tmp_path: Path) -> None:
    """Within the least memory that a flow may give them."""
    write_flow(tmp_path, **MANY, more=f"run: {{memory: {context.LEAST >> 20}MiB}}\n")
    threads = released(tmp_path)
    killed = []
    seen: dict[str, set[str]] = {}
    environment = dict(os.environ)

    def listen(event: Event) -> None:
        if isinstance(event, PartitionDone) and event.done == 1:
            for process in (os.getpid(), *worker_processes()):
                seen.setdefault("own" if process == os.getpid() else "workers", set()).update(hosts(process))
        if isinstance(event, PartitionDone) and event.done in (2, 5):
            # a killed one is listed until its parent has waited for it
            alive = next(worker for worker in worker_processes() if worker not in killed)
            os.kill(alive, signal.SIGKILL)
            killed.append(alive)

    assert released(tmp_path, scheduler="processes", workers=2, on_event=listen) == threads
    assert len(set(killed)) == 2
    assert seen == {"own": {"0100007F"}, "workers": {"0100007F"}}
    # what Dask writes there for its workers would hide the warnings of later processes
    assert dict(os.environ) == environment


def hosts(process: int) -> set[str]:
    """The addresses that a process listens on, as the kernel writes them."""
    sockets = set()
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(OSError):
            sockets.add(os.readlink(descriptor))
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()
    ]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


def worker_processes() -> list[int]:
    """The processes below this one that run a worker."""
    results = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            command = (status.parent / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        if lines.get("PPid", "").strip() == str(os.getpid()) and b"spawn_main" in command:
            results.append(int(lines["Pid"]))
    return sorted(results)


@pytest.mark.slow
@pytest.mark.machine
def test_no_cluster_at_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedulers, "CONNECT", 1)
    with pytest.raises(AnonflowError, match="no scheduler answers"):
        engine.run(write_flow(tmp_path), scheduler="tcp://127.0.0.1:9")
    assert everything_in(tmp_path) == {"flow.yaml", "people.csv"}


# ------------------------------------------------------------------------------- workers of the test


@pytest.mark.parametrize("pieces", ["false", "50"])
def test_a_source_that_changes_is_noticed_by_the_workers(
    tmp_path: Path, workers: Workers, pieces: str
) -> None:
    """The workers of a cluster compare what they read of a file with what the client read first."""
    parquet = tmp_path / "t.parquet"
    flow = write_flow(tmp_path, source=f"{{parquet: t.parquet, pieces: {pieces}}}", n=200)
    frame = pd.read_csv(tmp_path / "people.csv")
    frame.to_parquet(parquet, row_group_size=30)

    def listen(event: Event) -> None:
        if isinstance(event, StepStarted) and event.step == "cut":
            frame.assign(income="new").to_parquet(tmp_path / "new", row_group_size=30)
            os.replace(tmp_path / "new", parquet)

    with pytest.raises(DataError, match="has changed since the run began") as caught:
        engine.run(flow, seed=SEED, scheduler=ADDRESS, on_event=listen)
    assert caught.value.exit_status == 2
    assert not (tmp_path / "out").exists()
    assert engine.run(flow, seed=SEED, scheduler=ADDRESS).ok


@pytest.mark.parametrize("pieces", ["false", "500"])
def test_workers_that_end_lose_nothing(
    tmp_path: Path, workers: Workers, monkeypatch: pytest.MonkeyPatch, pieces: str
) -> None:
    """Two of them, before they solve a batch and after they solved and wrote one."""
    monkeypatch.setattr(batches, "ROWS", 300)
    monkeypatch.setattr(batches, "SHARE", 1.0)
    write_flow(tmp_path, **MANY)
    threads = released(tmp_path)
    write_flow(tmp_path, source=f"{{csv: people.csv, pieces: {pieces}}}", **MANY)
    solve = batches.solve_batch
    solved: list[int] = []

    @functools.wraps(solve)
    def solve_batch(shared: Any, settings: Any, batch: Any, *rest: Any) -> Any:
        solved.append(batch.number)
        if batch.number == 2 and solved.count(2) == 1:
            end_worker()
        result = solve(shared, settings, batch, *rest)
        if batch.number == 5 and solved.count(5) == 1:
            end_worker()
        return result

    monkeypatch.setattr(batches, "solve_batch", solve_batch)
    monkeypatch.setattr("anonflow.engine.partitions.solve_batch", solve_batch)
    assert released(tmp_path, scheduler="processes", workers=2) == threads
    assert workers.ended == 2
    assert (solved.count(2), solved.count(5)) == (2, 2)


def test_a_lost_cluster_publishes_nothing_and_is_picked_up(
    tmp_path: Path, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(schedulers, "AHEAD", 1)
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    write_flow(quiet, partition="{size: 6}")
    flow = write_flow(tmp_path, partition="{size: 6}")
    whole = released(quiet)

    def listen(event: Event) -> None:
        if isinstance(event, PartitionDone) and event.done == 1:  # the last one has not been sent
            workers.status = "closed"

    with pytest.raises(AnonflowError, match="cluster is lost") as caught:
        engine.run(flow, seed=SEED, scheduler=ADDRESS, on_event=listen)
    assert caught.value.exit_status == 3
    assert not (tmp_path / "out").exists()
    again: list[Event] = []
    assert engine.run(flow, on_event=again.append).ok
    assert (tmp_path / "out" / "release.csv").read_bytes() == whole
    assert any("from an earlier run" in str(event.to_mapping()) for event in again)


def test_cancelling_on_a_cluster_publishes_nothing(tmp_path: Path, workers: Workers) -> None:
    flow = write_flow(tmp_path, **MANY)
    stream = EventStream()
    heard: list[Event] = []

    def listen(event: Event) -> None:
        heard.append(event)
        if isinstance(event, PartitionDone):
            stream.cancel()

    with pytest.raises(AnonflowError):
        engine.run(flow, scheduler=ADDRESS, events=stream, on_event=listen)
    assert sum(isinstance(event, PartitionDone) for event in heard) == 1
    assert not (tmp_path / "out").exists()


def test_what_is_no_scheduler_is_refused(tmp_path: Path) -> None:
    flow = write_flow(tmp_path)
    for name in (
        "yarn",
        "tcp://",
        "tcp://host",
        "http://host:1",
        "tcp://a b:1",
        "tcp://[::1",
        "tcp://::1:80",
        5,
    ):
        with pytest.raises(ParameterError, match="unknown scheduler"):
            engine.run(flow, scheduler=name)  # type: ignore[arg-type]
    assert engine.run(flow, scheduler="").ok


def test_a_worker_without_memory_names_the_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_flow(tmp_path)
    solve = tasks.solve
    seen: list[int] = []

    def greedy_for_memory(*args: Any, **settings: Any) -> Any:
        seen.append(1)
        if len(seen) == 2:
            raise MemoryError
        return solve(*args, **settings)

    monkeypatch.setattr(tasks, "solve", greedy_for_memory)
    with pytest.raises(AnonflowError, match=r"partition 1 of run .*not enough memory.*smaller partitions"):
        engine.run(tmp_path / "flow.yaml", workers=1)
    assert len(seen) == 3
    assert not (tmp_path / "out").exists()
