"""A cluster without workers: said within seconds, waited for as long as the flow says, then status 3; resumable."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from anonflow import engine
from anonflow.engine.execution import presence
from anonflow.engine.execution.events import Event, EventStream, PartitionDone
from anonflow.engine.execution.presence import WorkerPresence
from anonflow.errors import AnonflowError
from tests.cases.flow_files import REPORTED, write_flow
from tests.faults.processes import anonflow, changed, environment

SEED = 0x1234567890ABCDEF1234567890ABCDEF


class Cluster:
    """A Dask scheduler, and workers that come and go."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.file = home / "scheduler.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._start(
            "dask_scheduler",
            "--port",
            "0",
            "--host",
            "127.0.0.1",
            "--no-dashboard",
            "--scheduler-file",
            self.file,
        )
        while not (self.file.exists() and self.file.stat().st_size):
            assert self.scheduler.poll() is None
            time.sleep(0.1)
        import json

        self.address = json.loads(self.file.read_text())["address"]

    def _start(self, part: str, *arguments: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{part}", *map(str, arguments)],
            env=environment(DASK_DISTRIBUTED__WORKER__DAEMON="false"), cwd=self.home,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def add_worker(self) -> None:
        number = len(self.workers)
        self.workers.append(
            self._start(
                "dask_worker", "--scheduler-file", self.file, "--nthreads", "1", "--no-nanny", "--no-dashboard",
                "--name", number,
            )
        )  # fmt: skip

    def kill_workers(self) -> None:
        for worker in self.workers:
            worker.send_signal(signal.SIGKILL)

    def close(self) -> None:
        for process in (self.scheduler, *self.workers):
            process.kill()
            process.wait(20)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    home = tmp_path / "cluster"
    home.mkdir()
    started = Cluster(home)
    try:
        yield started
    finally:
        started.close()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, int]]:
    """When a run looked for workers, and how many threads they had."""
    seen: list[tuple[float, int]] = []
    ask = WorkerPresence._ask

    def noted(own: WorkerPresence) -> int | None:
        threads = ask(own)
        if threads is not None:
            seen.append((own._looked, threads))
        return threads

    monkeypatch.setattr(WorkerPresence, "_ask", noted)
    return seen


def is_said_at_once(looks: list[tuple[float, int]]) -> bool:
    """Whether the last look is the first one, since there are no workers, at which that may be said."""
    first = max((at for at in range(1, len(looks)) if looks[at - 1][1]), default=0)
    since = looks[first][0]
    between = median(late - early for (early, _), (late, _) in pairwise(looks[first:]))
    assert between < 2 * presence.LOOK  # the machine may pause once
    return looks[-2][0] - since < presence.SILENT <= looks[-1][0] - since


def test_it_may_be_said_within_ten_seconds() -> None:
    assert presence.SILENT + 2 * presence.LOOK < 10


@pytest.mark.slow
def test_one_that_never_had_workers(tmp_path: Path, cluster: Cluster) -> None:
    """Fault: nobody started workers. Said: that there are none, and how to start some. On disk: nothing."""
    flow = write_flow(
        tmp_path, more=f'run: {{scheduler: "{cluster.address}", wait: 12s}}\n', publish=REPORTED
    )
    begin = time.monotonic()
    done = anonflow("run", flow, "--quiet", timeout=240)  # the usual wait is five minutes
    assert done.returncode == 3
    assert time.monotonic() - begin >= 12
    waiting = (
        f"warning: {cluster.address}: the cluster has no workers; waiting 12 seconds for one. Start some with"
    )
    ended = f"anonflow: {cluster.address}: the cluster has no workers, and none came in 12 seconds; nothing was published"
    lines = done.stderr.splitlines()
    assert [line.startswith(begins) for line, begins in zip(lines[-2:], (waiting, ended), strict=True)] == [
        True
    ] * 2
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "owner").exists()


@pytest.mark.slow
def test_it_is_said_within_ten_seconds_and_a_worker_that_comes_is_used(
    tmp_path: Path, cluster: Cluster, looks: list[tuple[float, int]]
) -> None:
    flow = write_flow(tmp_path, more=f'run: {{scheduler: "{cluster.address}"}}\n', publish=REPORTED)
    messages: list[str] = []
    at_once: list[bool] = []

    def listen(event: Event) -> None:
        messages.append(getattr(event, "message", ""))
        if "has no workers; waiting 5 minutes for one" in messages[-1]:
            at_once.append(is_said_at_once(looks))
            cluster.add_worker()

    assert engine.run(flow, on_event=listen, seed=SEED).ok
    assert at_once == [True]
    assert any("has workers again" in message for message in messages)


@pytest.mark.slow
def test_all_workers_are_killed_in_the_middle(
    tmp_path: Path, cluster: Cluster, looks: list[tuple[float, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault: no worker is left. Said: within ten seconds, and at the end with status 3. On disk: what is done, to go on with."""
    from anonflow.engine.owner import checkpoints

    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    flow = write_flow(
        tmp_path,
        source="{dataset: census_like, n: 20000}",
        columns=(
            "    Age: {role: quasi-identifier, kind: numeric}\n"
            "    Country: {role: quasi-identifier, kind: categorical}\n"
            "    Occupation: {role: quasi-identifier, kind: categorical}\n"
        ),
        partition="{size: 2000}",
        anonymize="{algorithm: greedy, k: 25}",
        publish="{table: out/release.csv}",
        more=f'run: {{scheduler: "{cluster.address}", wait: 15s}}\n',
    )
    cluster.add_worker()
    at_once: list[bool] = []

    def listen(event: Event) -> None:
        if isinstance(event, PartitionDone) and event.done == 1:
            cluster.kill_workers()
        if "has no workers; waiting 15 seconds for one" in getattr(event, "message", ""):
            at_once.append(is_said_at_once(looks))

    with pytest.raises(
        AnonflowError, match=r"none came in 15 seconds; nothing was published.*continues where"
    ) as caught:
        engine.run(flow, seed=SEED, on_event=listen)
    assert caught.value.exit_status == 3
    assert at_once == [True]
    assert not (tmp_path / "out").exists()
    again: list[Event] = []
    assert engine.run(flow, scheduler="threads", on_event=again.append).ok
    assert any("are there from an earlier run" in getattr(event, "message", "") for event in again)
    whole = (tmp_path / "out" / "release.csv").read_bytes()
    assert engine.run(flow, scheduler="threads", seed=SEED, fresh=True).ok
    assert (tmp_path / "out" / "release.csv").read_bytes() == whole


HALTED = """
import sys
from anonflow.cli import main
from anonflow.engine.execution.events import EventStream, PartitionDone

emit = EventStream.emit

def halted(own, event):
    emit(own, event)
    if isinstance(event, PartitionDone):
        sys.stdin.read()

EventStream.emit = halted
main()
"""
"""A run that halts after a partition, until its input ends."""


@pytest.mark.slow
def test_nothing_of_dask_is_said_when_the_scheduler_dies(tmp_path: Path, cluster: Cluster) -> None:
    """Fault: the scheduler is killed. Said: one line of ours, status 3. On disk: nothing published."""
    cluster.add_worker()
    flow = write_flow(
        tmp_path,
        source="{dataset: census_like, n: 30000}",
        columns="    Age: {role: quasi-identifier, kind: numeric}\n    Country: {role: quasi-identifier, kind: categorical}\n",
        partition="{size: 3000}",
        anonymize="{algorithm: greedy, k: 50}",
        publish=REPORTED,
    )
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
    _, rest = running.communicate(timeout=200)
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
    monkeypatch.setattr("anonflow.engine.execution.presence.time.monotonic", lambda: now[0])
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


@pytest.mark.parametrize("wait", ["5", "-1s", "soon", "1w"])
def test_a_wait_is_a_duration(tmp_path: Path, wait: str) -> None:
    with pytest.raises(AnonflowError, match="'wait' must be a number and one of s, m, h, d") as caught:
        engine.run(write_flow(tmp_path, more=f"run: {{wait: '{wait}'}}\n", publish=REPORTED))
    assert caught.value.exit_status == 2


@pytest.mark.slow
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
    done = changed(broken, "run", flow, "--quiet", "--scheduler", "processes", timeout=120)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == (
        "anonflow: the worker processes cannot be started; use fewer of them, or the scheduler threads; a script "
        "starts a run below \"if __name__ == '__main__':\""
    )
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
