"""Worker processes that use more than ``run: memory`` allows: ended by their nanny, named, nothing published, picked up."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import distributed  # noqa: F401  (its defaults must be there before one of them is changed)
import pytest

from anonflow import engine
from anonflow.engine.execution import batches, schedulers, tasks
from anonflow.engine.execution.events import Event, EventStream
from anonflow.engine.execution.schedulers import Call, Executor
from anonflow.engine.owner import checkpoints
from anonflow.errors import AnonflowError, ParameterError
from tests.cases.flow_files import everything_in, write_flow
from tests.cases.workers import Workers, end_worker

SEED = 0x1234567890ABCDEF1234567890ABCDEF

HOG = """
import pathlib, time
import numpy as np
from anonflow.engine.execution import tasks

match = getattr(tasks, "not_hungry", tasks.match)  # a worker reads this file twice
tasks.not_hungry = match

def hungry(settings, records, partition):
    if partition == 3 and settings.k == 3 and pathlib.Path({wish!r}).exists():
        with open({ended!r}, "a") as stream:
            stream.write("x")
        held = []
        for _ in range(6000):  # far beyond the limit, until somebody ends it
            if len(held) < 20:
                held.append(np.ones(1 << 23))
            time.sleep(0.02)
    return match(settings, records, partition)

tasks.match = hungry
"""
"""Read by every worker process: partition 3 of the run with k = 3 takes 64 MB after another, as long as a file is there."""

MEMORY = "run: {scheduler: processes, workers: 1, memory: 900MiB}\n"


def flow_in(folder: Path, pieces: str, **more: Any) -> Path:
    folder.mkdir(exist_ok=True)
    return write_flow(
        folder, n=1200, source=f"{{csv: people.csv, pieces: {pieces}}}", partition="{size: 100}", **more
    )


def hungry_while(wish: Path) -> Callable[..., Any]:
    """The task of :data:`HOG` for workers of the test: it ends them at once."""
    match = tasks.match

    def hungry(settings: Any, records: Any, partition: int) -> Any:
        if partition == 3 and settings.k == 3 and wish.exists():
            end_worker()
        return match(settings, records, partition)

    return hungry


def is_given_up_and_picked_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch, pieces: str, named: str, wish: Path
) -> None:
    """The run names the hungry partition and publishes nothing; the next one adds what is missing, with the same bits."""
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(batches, "ROWS", 300)
    monkeypatch.setattr(batches, "SHARE", 0.0 if pieces == "false" else 1.0)
    quiet = flow_in(folder / "quiet", "false")
    assert engine.run(quiet, seed=SEED).ok
    flow = flow_in(folder / "limited", pieces, more=MEMORY)
    wish.touch()
    with pytest.raises(AnonflowError, match=named) as caught:
        engine.run(flow, seed=SEED)
    assert caught.value.exit_status == 3
    assert "memory" in str(caught.value)
    assert "\n" not in str(caught.value)
    owner = flow.parent / "owner" / "test"
    assert not (flow.parent / "out").exists()
    assert not list(owner.glob("pieces-*"))
    assert list((owner / "checkpoints").glob("*.npz"))
    wish.unlink()
    events: list[Event] = []
    assert engine.run(flow, on_event=events.append).ok  # within the same memory
    text = f"{11 if pieces == 'false' else 9} of 12 partitions are there"
    assert any(text in getattr(event, "message", "") for event in events)
    assert (flow.parent / "out" / "release.csv").read_bytes() == (
        quiet.parent / "out" / "release.csv"
    ).read_bytes()


@pytest.mark.slow
@pytest.mark.machine
def test_a_partition_that_needs_too_much_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedulers, "LOST", 0)
    wish, ended, source = (tmp_path / name for name in ("hungry", "ended", "hog.py"))
    source.write_text(HOG.format(wish=str(wish), ended=str(ended)), encoding="utf-8")
    with dask.config.set({"distributed.worker.preload": [str(source)]}):
        is_given_up_and_picked_up(tmp_path, monkeypatch, "false", r"partition 3 of run ", wish)
    assert 2 <= len(ended.read_text()) <= 3


@pytest.mark.parametrize(
    ("pieces", "named"), [("false", r"partition 3 of run "), ("300", r"partitions 3 to 5 of run ")]
)
def test_a_partition_that_ends_every_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: Workers, pieces: str, named: str
) -> None:
    wish = tmp_path / "hungry"
    monkeypatch.setattr(tasks, "match", hungry_while(wish))
    monkeypatch.setattr(tasks, "solve_together", lambda *settings: None)
    is_given_up_and_picked_up(tmp_path, monkeypatch, pieces, named, wish)
    assert workers.ended == 4  # two among other tasks, two with it alone
    assert workers.settings["memory_limit"] == 900 << 20


def test_only_the_hungry_partition_of_a_sweep_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: Workers
) -> None:
    """Partitions that wait where it ends a worker are not to blame."""
    wish = tmp_path / "hungry"
    wish.touch()
    monkeypatch.setattr(tasks, "match", hungry_while(wish))
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    flow = flow_in(
        tmp_path / "sweep", "false", publish="", more=MEMORY + "matrix: {anonymize.k: [2, 3, 4, 5, 6]}\n"
    )
    events: list[Event] = []
    with pytest.raises(AnonflowError, match=r"partition 3 of run .*3"):
        engine.run(flow, seed=SEED, on_event=events.append)
    assert sum(getattr(event, "level", "") == "error" for event in events) == 1
    wish.unlink()
    events.clear()
    assert engine.run(flow, on_event=events.append).ok
    assert any("59 of 60 partitions are there" in getattr(event, "message", "") for event in events)
    assert workers.ended


@pytest.mark.slow
@pytest.mark.machine
def test_a_task_that_ends_every_worker_is_given_up_though_workers_come_back_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask gives up a worker that is away for 15 seconds (here for one), and never starts another one."""
    source = tmp_path / "late.py"
    source.write_text("import time\n\ndef dask_setup(worker):\n    time.sleep(2)\n", encoding="utf-8")
    settings = {
        "distributed.worker.preload": [str(source)],
        "distributed.deploy.lost-worker-timeout": "1s",
    }
    monkeypatch.setattr(schedulers, "LOST", 0)
    calls = [Call(signal.raise_signal, (9,), key="bad"), Call(len, ([1, 2],), key="good")]
    with dask.config.set(settings), Executor("processes", 1, EventStream()) as executor:
        arrived = {call.key: result for call, result in executor.stream(calls)}
    assert arrived["good"] == 2
    failed = arrived["bad"]
    assert isinstance(failed, tasks.Failed)
    assert failed.error is not None
    assert "smaller partitions" in failed.error.message


def test_less_memory_than_a_worker_starts_with_is_refused_at_once(tmp_path: Path) -> None:
    flow = write_flow(tmp_path, more="run: {scheduler: processes, memory: 100MiB}\n")
    with pytest.raises(
        ParameterError, match=r"100MiB is less than a worker process takes .* at least 640MiB"
    ) as caught:
        engine.run(flow)
    assert caught.value.exit_status == 2
    assert everything_in(tmp_path) == {"flow.yaml", "people.csv"}
    assert engine.run(flow, scheduler="threads").ok  # there it is only what decides about pieces
