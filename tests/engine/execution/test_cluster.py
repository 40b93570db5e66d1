"""A running Dask cluster by address, and what happens when workers die: same bits, nothing half published."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from anonflow import engine
from anonflow.engine.execution import schedulers, tasks
from anonflow.engine.execution.events import Event, EventStream, PartitionDone, StepStarted
from anonflow.engine.execution.schedulers import Call, Executor
from anonflow.errors import AnonflowError, DataError, ParameterError
from tests import ROOT
from tests.cases.flow_files import everything_in, write_flow

SEED = 0x1234567890ABCDEF1234567890ABCDEF

pytestmark = pytest.mark.slow

HEAVY = {
    "source": "{dataset: census_like, n: 20000}",
    "columns": (
        "    Age: {role: quasi-identifier, kind: numeric}\n"
        "    Country: {role: quasi-identifier, kind: categorical}\n"
        "    Occupation: {role: quasi-identifier, kind: categorical}\n"
    ),
    "partition": "{size: 2000}",
    "anonymize": "{algorithm: greedy, k: 25}",
    "publish": "{table: out/release.csv}",
}
"""Ten partitions, about a third of a second each."""


def released(folder: Path, **settings: Any) -> bytes:
    report = engine.run(folder / "flow.yaml", seed=SEED, fresh=True, **settings)
    assert report.ok
    return (folder / "out" / "release.csv").read_bytes()


def test_a_cluster_by_address_gives_the_same_bits(
    tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    write_flow(tmp_path)
    address, _ = cluster
    threads = released(tmp_path)
    assert released(tmp_path, scheduler=address) == threads
    assert (
        released(tmp_path, scheduler=address) == threads
    )  # and again: no name of the first run is in the way
    flow = write_flow(tmp_path, more=f'run: {{scheduler: "{address}"}}\n')
    assert engine.run(flow, seed=SEED).ok
    done = subprocess.run(
        [sys.executable, "-m", "anonflow", "run", str(flow), "--scheduler", address],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("pieces", ["false", "50"])
def test_a_source_that_changes_is_noticed_by_the_workers(
    tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]], pieces: str
) -> None:
    """The workers of a cluster compare what they read of a file with what the client read first."""
    address, _ = cluster
    parquet = tmp_path / "t.parquet"
    flow = write_flow(tmp_path, source=f"{{parquet: t.parquet, pieces: {pieces}}}", n=200)
    frame = pd.read_csv(tmp_path / "people.csv")
    frame.to_parquet(parquet, row_group_size=30)

    def listen(event: Event) -> None:
        if isinstance(event, StepStarted) and event.step == "cut":
            frame.assign(income="new").to_parquet(tmp_path / "new", row_group_size=30)
            os.replace(tmp_path / "new", parquet)

    with pytest.raises(DataError, match="has changed since the run began") as caught:
        engine.run(flow, seed=SEED, scheduler=address, on_event=listen)
    assert caught.value.exit_status == 2
    assert not (tmp_path / "out").exists()
    assert engine.run(flow, seed=SEED, scheduler=address).ok


def test_a_worker_that_is_killed_loses_nothing(
    tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    write_flow(tmp_path, **HEAVY)
    threads = released(tmp_path)
    address, (_, first, _) = cluster

    def listen(event: Event) -> None:
        if isinstance(event, PartitionDone) and event.done == 2:
            first.send_signal(signal.SIGKILL)

    assert released(tmp_path, scheduler=address, on_event=listen) == threads


def test_local_workers_that_are_killed_twice_lose_nothing(tmp_path: Path) -> None:
    write_flow(tmp_path, **HEAVY)
    threads = released(tmp_path)
    killed = []

    def listen(event: Event) -> None:
        if isinstance(event, PartitionDone) and event.done in (2, 5):
            # a killed one is listed until its parent has waited for it
            alive = next(worker for worker in worker_processes() if worker not in killed)
            os.kill(alive, signal.SIGKILL)
            killed.append(alive)

    assert released(tmp_path, scheduler="processes", workers=2, on_event=listen) == threads
    assert len(set(killed)) == 2


def test_local_workers_answer_this_machine_only(tmp_path: Path) -> None:
    seen: dict[str, set[str]] = {}

    def listen(event: Event) -> None:
        if isinstance(event, PartitionDone):
            for process in (os.getpid(), *worker_processes()):
                seen.setdefault("own" if process == os.getpid() else "workers", set()).update(hosts(process))

    write_flow(tmp_path)
    released(tmp_path, scheduler="processes", workers=2, on_event=listen)
    assert seen == {"own": {"0100007F"}, "workers": {"0100007F"}}


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


def test_a_lost_cluster_publishes_nothing_and_is_picked_up(
    tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    from anonflow.engine.owner import checkpoints

    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    quiet = tmp_path / "quiet"
    quiet.mkdir()
    write_flow(quiet, **HEAVY)
    whole = released(quiet)
    flow = write_flow(tmp_path, **HEAVY)
    address, started = cluster

    def listen(event: Event) -> None:
        if isinstance(event, PartitionDone) and event.done == 1:  # the last one has not been sent
            for process in started:
                process.kill()

    with pytest.raises(AnonflowError, match="cluster is lost") as caught:
        engine.run(flow, seed=SEED, scheduler=address, on_event=listen)
    assert caught.value.exit_status == 3
    assert not (tmp_path / "out").exists()
    again: list[Event] = []
    assert engine.run(flow, on_event=again.append).ok
    assert (tmp_path / "out" / "release.csv").read_bytes() == whole
    assert any("from an earlier run" in str(event.to_mapping()) for event in again)


def test_no_cluster_at_the_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedulers, "CONNECT", 1)
    with pytest.raises(AnonflowError, match="no scheduler answers"):
        engine.run(write_flow(tmp_path), scheduler="tcp://127.0.0.1:9")
    assert everything_in(tmp_path) == {"flow.yaml", "people.csv"}


@pytest.mark.parametrize("name", ["yarn", "tcp://", "tcp://host", "http://host:1", "tcp://a b:1", ""])
def test_what_is_no_scheduler_is_refused(tmp_path: Path, name: str) -> None:
    flow = write_flow(tmp_path)
    if name:
        with pytest.raises(ParameterError, match="unknown scheduler"):
            engine.run(flow, scheduler=name)
    else:
        assert engine.run(flow, scheduler=name).ok


def test_a_worker_without_memory_names_the_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_flow(tmp_path)
    solve = tasks.solve
    seen: list[int] = []

    def greedy_for_memory(*args: Any) -> Any:
        seen.append(1)
        if len(seen) == 2:
            raise MemoryError
        return solve(*args)

    monkeypatch.setattr(tasks, "solve", greedy_for_memory)
    with pytest.raises(AnonflowError, match=r"partition 1 of run .*not enough memory.*smaller partitions"):
        engine.run(tmp_path / "flow.yaml", workers=1)
    assert len(seen) == 3
    assert not (tmp_path / "out").exists()


def test_a_task_that_ends_every_worker_is_given_up() -> None:
    """The executor's own machinery: a task that kills whoever runs it, among tasks that do not."""
    calls = [Call(signal.raise_signal, (9,), key="bad"), Call(len, ([1, 2],), key="good")]
    with Executor("processes", 2, EventStream()) as executor:
        arrived = {call.key: result for call, result in executor.stream(calls)}
    assert arrived["good"] == 2
    failed = arrived["bad"]
    assert isinstance(failed, tasks.Failed)
    assert failed.error is not None
    assert "smaller partitions" in failed.error.message


def test_cancelling_on_a_cluster_stops_soon(
    tmp_path: Path, cluster: tuple[str, list[subprocess.Popen[bytes]]]
) -> None:
    flow = write_flow(tmp_path, **HEAVY)
    address, _ = cluster
    stream = EventStream()

    def listen(event: Event) -> None:
        if isinstance(event, PartitionDone):
            stream.cancel()
            cancelled.append(time.monotonic())

    cancelled: list[float] = []
    thread_count = threading.active_count()
    with pytest.raises(AnonflowError):
        engine.run(flow, scheduler=address, events=stream, on_event=listen)
    assert time.monotonic() - cancelled[0] < 30
    assert not (tmp_path / "out").exists()
    assert threading.active_count() <= thread_count + 4
