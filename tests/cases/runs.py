"""Runs of flows and of the shell that tests start, stop and take up."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from anonflow import cli, engine
from anonflow.algorithms import registry
from anonflow.algorithms.freeform.greedy import GREEDY
from anonflow.algorithms.method import Algorithm, Outcome, Partition
from anonflow.engine.execution import schedulers, tasks
from anonflow.engine.execution.events import Cancelled, Event, EventStream, PartitionDone
from anonflow.engine.owner import checkpoints
from anonflow.kernels import jit


def shell(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Run the command in this process: exit status, stdout, stderr."""
    with pytest.raises(SystemExit) as caught:
        cli.main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


SEED = 0x1234567890ABCDEF1234567890ABCDEF


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Partitions that greedy worked on, by their first record; every result is worth a file."""
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(schedulers, "AHEAD", 1)  # no worker gets far ahead of who cancels
    monkeypatch.setattr(jit, "announce", lambda is_missing: None)  # no partition is worked on to compile
    done: list[int] = []

    def run(part: Partition, k: int) -> Outcome:
        done.append(int(part.records.codes[0].sum()))
        return GREEDY.run(part, k)

    method = Algorithm("greedy", run, "freeform", "", "k-regular", "", "")
    real = registry.algorithm_named

    def named(name: str) -> Algorithm:
        return method if name == "greedy" else real(name)

    monkeypatch.setattr(tasks, "algorithm_named", named)
    return done


def stopped_after(folder: Path, partitions: int, **settings: Any) -> None:
    """Run the flow of a folder until so many partitions are done, then cancel it."""
    stream = EventStream()

    def listen(event: Event) -> None:
        if isinstance(event, PartitionDone) and event.done == partitions:
            stream.cancel()

    with pytest.raises(Cancelled):
        engine.run(folder / "flow.yaml", on_event=listen, events=stream, workers=1, **settings)
    for thread in threading.enumerate():
        if thread.name.startswith("anonflow_"):
            thread.join()  # what was under way has ended


def published(folder: Path) -> bytes:
    return (folder / "out" / "release.csv").read_bytes()
