"""Worker processes that use more than ``run: memory`` allows: ended by their nanny, named, nothing published, picked up."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import distributed  # noqa: F401  (its defaults must be there before one of them is changed)
import pytest

from anonflow import engine
from anonflow.engine import context
from anonflow.engine.execution import batches, schedulers, tasks
from anonflow.engine.execution.events import Event, EventStream
from anonflow.engine.execution.schedulers import Call, Executor
from anonflow.errors import AnonflowError, ParameterError
from tests.cases.flow_files import everything_in, write_flow

SEED = 0x1234567890ABCDEF1234567890ABCDEF

pytestmark = pytest.mark.slow

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

MEMORY = "run: {scheduler: processes, workers: 2, memory: 900MiB}\n"


@pytest.fixture
def hog(tmp_path: Path) -> Iterator[Path]:
    """The file whose presence makes a partition hungry."""
    wish = tmp_path / "hungry"
    wish.touch()
    source = tmp_path / "hog.py"
    source.write_text(HOG.format(wish=str(wish), ended=str(tmp_path / "ended")), encoding="utf-8")
    with dask.config.set({"distributed.worker.preload": [str(source)]}):
        yield wish


def flow_in(folder: Path, pieces: str, **more: Any) -> Path:
    folder.mkdir(exist_ok=True)
    return write_flow(
        folder, n=1200, source=f"{{csv: people.csv, pieces: {pieces}}}", partition="{size: 100}", **more
    )


@pytest.mark.parametrize(
    ("pieces", "named"), [("false", r"partition 3 of run "), ("300", r"partitions 3 to 5 of run ")]
)
def test_a_partition_that_needs_too_much_memory(
    tmp_path: Path, hog: Path, monkeypatch: pytest.MonkeyPatch, pieces: str, named: str
) -> None:
    from anonflow.engine.owner import checkpoints

    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(batches, "ROWS", 300)
    monkeypatch.setattr(batches, "SHARE", 1.0 if pieces == "300" else 0.0)
    quiet = flow_in(tmp_path / "quiet", "false")
    assert engine.run(quiet, seed=SEED).ok
    flow = flow_in(tmp_path / "limited", pieces, more=MEMORY)
    with pytest.raises(AnonflowError, match=named) as caught:
        engine.run(flow, seed=SEED)
    assert caught.value.exit_status == 3
    assert "memory" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert 2 <= len((tmp_path / "ended").read_text()) <= 5
    owner = flow.parent / "owner" / "test"
    assert not (flow.parent / "out").exists()
    assert not list(owner.glob("pieces-*"))
    assert list((owner / "checkpoints").glob("*.npz"))
    hog.unlink()
    events: list[Event] = []
    assert engine.run(flow, on_event=events.append).ok
    text = f"{9 if pieces == '300' else 11} of 12 partitions are there"
    assert any(text in getattr(event, "message", "") for event in events)
    assert (flow.parent / "out" / "release.csv").read_bytes() == (
        quiet.parent / "out" / "release.csv"
    ).read_bytes()


def test_only_the_hungry_partition_of_a_sweep_is_given_up(
    tmp_path: Path, hog: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions that wait where it ends a worker are not to blame."""
    from anonflow.engine.owner import checkpoints

    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    flow = flow_in(
        tmp_path / "sweep", "false", publish="", more=MEMORY + "matrix: {anonymize.k: [2, 3, 4, 5, 6]}\n"
    )
    events: list[Event] = []
    with pytest.raises(AnonflowError, match=r"partition 3 of run .*3"):
        engine.run(flow, seed=SEED, on_event=events.append)
    assert sum(getattr(event, "level", "") == "error" for event in events) == 1
    hog.unlink()
    events.clear()
    assert engine.run(flow, on_event=events.append).ok
    assert any("59 of 60 partitions are there" in getattr(event, "message", "") for event in events)


@pytest.mark.parametrize("bad", [1, 4])
def test_what_waits_on_a_worker_that_ends_is_not_given_up_with_it(
    monkeypatch: pytest.MonkeyPatch, bad: int
) -> None:
    """One worker, all tasks given to it at once, every death counts: the bad ones are found out one by one."""
    monkeypatch.setattr(schedulers, "LOST", 0)
    calls = [Call(*((signal.raise_signal, (9,)) if i < bad else (abs, (i,))), key=i) for i in range(6)]
    with Executor("processes", 1, EventStream()) as executor:
        arrived = {call.key: result for call, result in executor.stream(calls)}
    problems = [arrived[i] for i in range(bad)]
    assert all(isinstance(item, tasks.Failed) and item.error is not None for item in problems)
    alone = [problem for problem in problems if "every worker that worked on it" in problem.message]
    assert len(alone) == min(bad, schedulers.TRIED)
    if bad < schedulers.TRIED:
        assert [arrived[i] for i in range(bad, 6)] == list(range(bad, 6))


def test_a_worker_that_comes_back_late_is_waited_for(tmp_path: Path) -> None:
    """Dask gives up a worker that is away for 15 seconds (here for one), and never starts another one."""
    source = tmp_path / "late.py"
    source.write_text("import time\n\ndef dask_setup(worker):\n    time.sleep(2)\n", encoding="utf-8")
    settings = {
        "distributed.worker.preload": [str(source)],
        "distributed.deploy.lost-worker-timeout": "1s",
    }
    calls = [Call(signal.raise_signal, (9,), key="bad"), Call(abs, (-1,), key="good")]
    with dask.config.set(settings), Executor("processes", 1, EventStream()) as executor:
        arrived = {call.key: result for call, result in executor.stream(calls)}
    assert isinstance(arrived["bad"], tasks.Failed)
    assert arrived["good"] == 1


def test_an_undisturbed_run_stays_within_its_memory(tmp_path: Path) -> None:
    """The limit of the other tests is one that a worker keeps."""
    assert engine.run(flow_in(tmp_path / "quiet", "false", more=MEMORY), seed=SEED).ok
    assert os.path.exists(tmp_path / "quiet" / "out" / "release.csv")


def test_less_memory_than_a_worker_starts_with_is_refused_at_once(tmp_path: Path) -> None:
    flow = write_flow(tmp_path, more="run: {scheduler: processes, memory: 100MiB}\n")
    with pytest.raises(
        ParameterError, match=r"100MiB is less than a worker process takes .* at least 640MiB"
    ) as caught:
        engine.run(flow)
    assert caught.value.exit_status == 2
    assert everything_in(tmp_path) == {"flow.yaml", "people.csv"}
    assert engine.run(flow, scheduler="threads").ok  # there it is only what decides about pieces


def test_the_least_memory_suffices_to_start(tmp_path: Path) -> None:
    flow = write_flow(
        tmp_path, more=f"run: {{scheduler: processes, workers: 1, memory: {context.LEAST >> 20}MiB}}\n"
    )
    assert engine.run(flow).ok
