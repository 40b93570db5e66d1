"""A cluster without workers: said within seconds, waited for as long as the flow says, then status 3; resumable."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from anonflow import engine
from anonflow.engine.execution import presence, schedulers
from anonflow.engine.execution.events import Event, EventStream, PartitionDone
from anonflow.engine.execution.presence import WorkerPresence
from anonflow.engine.owner import checkpoints
from anonflow.errors import AnonflowError
from tests.cases.cluster import Cluster, cluster
from tests.cases.flow_files import REPORTED, write_flow
from tests.cases.workers import Workers, workers
from tests.faults.processes import anonflow, changed, environment

__all__ = ["cluster", "workers"]

SEED = 0x1234567890ABCDEF1234567890ABCDEF


# ------------------------------------------------------------------- a clock and workers of the test


def test_it_may_be_said_within_ten_seconds() -> None:
    assert presence.SILENT + 2 * presence.LOOK < 10


class Client:
    """A client whose scheduler has so many threads, one number after another."""

    def __init__(self, threads: list[int | None]) -> None:
        self.status = "running"
        self.scheduler = self
        self._threads = threads

    def ncores(self) -> None:
        """Never called: the answers are here."""

    def sync(self, function: Any, **settings: Any) -> dict[str, int]:
        threads = self._threads.pop(0)
        if threads is None:
            raise OSError
        return {"worker": threads} if threads else {}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(presence, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_an_absence_is_said_once_and_ends(clock: list[float]) -> None:
    events = EventStream()
    messages: list[str] = []
    events.listen(lambda event: messages.append(getattr(event, "message", "")))
    presence = WorkerPresence(Client([2, 0, 0, None, 0, 0, 3, *[0] * 99]), "tcp://h:1", 20, events)
    for _ in range(7):
        presence.look()
        presence.look()  # not sooner than a second later
        clock[0] += 3
    assert presence.threads == 3
    assert [word for word in ("no workers", "again") for item in messages if word in item] == [
        "no workers",
        "again",
    ]
    begun = clock[0]

    def wait() -> None:
        for _ in range(99):
            presence.look()
            clock[0] += 1

    with pytest.raises(AnonflowError, match="none came in 20 seconds"):
        wait()
    assert clock[0] - begun == 20
    assert len(messages) == 3


@pytest.mark.parametrize(("wait", "reported_at"), [(300.0, 4), (6.0, 3), (1.0, 1)])
def test_an_absence_is_said_at_the_first_look_at_which_it_may_be(
    clock: list[float], wait: float, reported_at: int
) -> None:
    """Four seconds after the last look with workers, or after half of a shorter wait."""
    events = EventStream()
    reports: list[float] = []
    events.listen(lambda event: reports.append(clock[0]))
    look = WorkerPresence(Client([2, *[0] * 999]), "tcp://h:1", wait, events).look
    look()
    clock[0] += 1  # the first look without workers
    absent = clock[0]

    def wait_for_workers() -> None:
        while True:
            look()
            clock[0] += 0.25

    with pytest.raises(AnonflowError, match="none came in"):
        wait_for_workers()
    assert clock[0] - absent == wait
    assert reports == ([absent + reported_at] if reported_at < wait else [])


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock is a second later than the one before."""
    seconds = iter(range(10_000))
    monkeypatch.setattr(presence, "time", SimpleNamespace(monotonic=lambda: float(next(seconds))))


def test_a_run_without_workers_ends(tmp_path: Path, workers: Workers, ticking: None) -> None:
    """Said: that there are none, and how to start some. On disk: nothing."""
    workers.count = 0
    flow = write_flow(tmp_path, more="run: {scheduler: 'tcp://h:1', wait: 6s}\n", publish=REPORTED)
    messages: list[str] = []
    with pytest.raises(
        AnonflowError,
        match=r"^tcp://h:1: the cluster has no workers, and none came in 6 seconds; nothing was published",
    ) as caught:
        engine.run(flow, on_event=lambda event: messages.append(getattr(event, "message", "")))
    assert caught.value.exit_status == 3
    text = "tcp://h:1: the cluster has no workers; waiting 6 seconds for one. Start some with"
    assert sum(message.startswith(text) for message in messages) == 1
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "owner").exists()


def test_workers_come_go_and_come_again(
    tmp_path: Path, workers: Workers, ticking: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run takes the first worker that comes; without any later it ends, and what is done is there to go on with."""
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(schedulers, "AHEAD", 1)
    monkeypatch.setattr(schedulers, "TOGETHER_MOST", 1)
    workers.count = 0
    flow = write_flow(tmp_path, partition="{size: 6}", more="run: {scheduler: 'tcp://h:1', wait: 9s}\n")
    messages: list[str] = []

    def listen(event: Event) -> None:
        messages.append(getattr(event, "message", ""))
        if "has no workers; waiting 9 seconds for one" in messages[-1] and not workers.sent:
            workers.count = 1
        if isinstance(event, PartitionDone) and event.done == 2:
            workers.count = 0

    with pytest.raises(
        AnonflowError, match=r"none came in 9 seconds; nothing was published.*continues where"
    ) as caught:
        engine.run(flow, seed=SEED, on_event=listen)
    assert caught.value.exit_status == 3
    words = [word for message in messages for word in ("no workers", "workers again") if word in message]
    assert words == ["no workers", "workers again", "no workers"]
    assert not (tmp_path / "out").exists()
    again: list[Event] = []
    assert engine.run(flow, scheduler="threads", on_event=again.append).ok
    assert any("are there from an earlier run" in getattr(event, "message", "") for event in again)
    whole = (tmp_path / "out" / "release.csv").read_bytes()
    assert engine.run(flow, scheduler="threads", seed=SEED, fresh=True, again=True).ok
    assert (tmp_path / "out" / "release.csv").read_bytes() == whole


@pytest.mark.parametrize("wait", ["5", "-1s", "soon", "1w"])
def test_a_wait_is_a_duration(tmp_path: Path, wait: str) -> None:
    with pytest.raises(AnonflowError, match="'wait' must be a number and one of s, m, h, d") as caught:
        engine.run(write_flow(tmp_path, more=f"run: {{wait: '{wait}'}}\n", publish=REPORTED))
    assert caught.value.exit_status == 2


# ------------------------------------------------------------------------------------ real processes


@pytest.mark.slow
@pytest.mark.machine
def test_one_that_never_had_workers(tmp_path: Path, cluster: Cluster) -> None:
    """Fault: nobody started workers. Said: that there are none, and how to start some. On disk: nothing."""
    flow = write_flow(tmp_path, more=f'run: {{scheduler: "{cluster.address}", wait: 2s}}\n', publish=REPORTED)
    done = anonflow("run", flow, "--quiet", timeout=290)  # the usual wait is five minutes
    assert done.returncode == 3
    waiting = (
        f"warning: {cluster.address}: the cluster has no workers; waiting 2 seconds for one. Start some with"
    )
    ended = f"anonflow: {cluster.address}: the cluster has no workers, and none came in 2 seconds; nothing was published"
    lines = done.stderr.splitlines()
    assert [line.startswith(begins) for line, begins in zip(lines[-2:], (waiting, ended), strict=True)] == [
        True
    ] * 2
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "owner").exists()


@pytest.mark.slow
@pytest.mark.machine
def test_a_worker_that_comes_is_used_and_another_one_after_it_was_killed(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: nobody started workers, and then none is left. Said: so, each time. On disk: the same bits."""
    monkeypatch.setattr(schedulers, "AHEAD", 1)
    flow = write_flow(
        tmp_path, partition="{size: 6}", more=f'run: {{scheduler: "{cluster.address}"}}\n', publish=REPORTED
    )
    assert engine.run(flow, scheduler="threads", seed=SEED).ok
    whole = (tmp_path / "out" / "release.csv").read_bytes()
    messages: list[str] = []

    def listen(event: Event) -> None:
        messages.append(getattr(event, "message", ""))
        if "has no workers; waiting 5 minutes for one" in messages[-1]:
            cluster.add_worker()
        if isinstance(event, PartitionDone) and event.done == 1:
            cluster.kill_workers()

    assert engine.run(flow, on_event=listen, seed=SEED, fresh=True, again=True).ok
    assert sum("has workers again" in message for message in messages) == len(cluster.workers) == 2
    assert (tmp_path / "out" / "release.csv").read_bytes() == whole


HALTED = """
import sys
from anonflow.cli import main
from anonflow.engine.execution import schedulers
from anonflow.engine.execution.events import EventStream, PartitionDone

schedulers.AHEAD = schedulers.TOGETHER_MOST = 1

emit = EventStream.emit

def halted(own, event):
    emit(own, event)
    if isinstance(event, PartitionDone):
        sys.stdin.read()

EventStream.emit = halted
main()
"""
"""A run that halts after a partition, until its input ends; the others are not sent yet."""


@pytest.mark.slow
@pytest.mark.machine
def test_nothing_of_dask_is_said_when_the_scheduler_dies(tmp_path: Path, cluster: Cluster) -> None:
    """Fault: the scheduler is killed. Said: one line of ours, status 3. On disk: nothing published."""
    cluster.add_worker()
    flow = write_flow(tmp_path, n=1000, publish=REPORTED)
    arguments = ["run", str(flow), "--scheduler", cluster.address, "--log-level", "debug"]
    running = subprocess.Popen(
        [sys.executable, "-c", HALTED, *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    messages = []
    assert running.stderr is not None
    for line in running.stderr:
        messages.append(line)
        if line.startswith("debug: partition"):
            break
    cluster.close()
    _, rest = running.communicate(timeout=600)
    assert running.returncode == 3, rest
    last = rest.splitlines()[-1]
    assert last.startswith(f"anonflow: {cluster.address}: the cluster is lost; nothing was published.")
    foreign = [
        line
        for line in [*messages, *rest.splitlines()]
        if "distributed" in line or "Traceback" in line or "tornado" in line
    ]
    assert not foreign
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.machine
@pytest.mark.parametrize("program", ["/bin/false", "/does/not/exist"])
def test_processes_that_cannot_be_started(tmp_path: Path, program: str) -> None:
    """Fault: no worker process lives. Said: what to do, status 3, soon. On disk: nothing."""
    flow = write_flow(tmp_path, n=200, publish=REPORTED)
    # Python's resource tracker starts before the fault: one that dies is started again for each semaphore, and a
    # finalizer that writes to the closed one prints a traceback now and then
    broken = f"""
        from multiprocessing import resource_tracker, spawn
        resource_tracker.ensure_running()
        spawn.set_executable({program!r})
    """
    done = changed(broken, "run", flow, "--quiet", "--scheduler", "processes", timeout=290)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == (
        "anonflow: the worker processes cannot be started; use fewer of them, or the scheduler threads; a script "
        "starts a run below \"if __name__ == '__main__':\""
    )
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
