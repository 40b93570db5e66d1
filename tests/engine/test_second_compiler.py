"""A first run has another process compile what its release needs; where that is not possible it compiles alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anonflow.engine import run
from anonflow.engine import second_compiler as module
from anonflow.errors import AnonflowError
from anonflow.kernels import jit
from tests import ROOT
from tests.cases.flow_files import write_flow

RELEASE = """
import runpy
runpy.run_module("anonflow.engine.second_compiler", run_name="__main__")
"""
CARD = """
import anonflow as af
from anonflow import datasets
table = af.Table(datasets.census_like(300, seed=1), datasets.schema("census_like"))
anonymization = af.anonymize(table, "greedy", k=5, seed=1)
af.release_card(anonymization, anonymization.release(seed=1), seed=1)
"""
READY = """
import json
from anonflow.kernels import jit
ready = {f"{twin.py_func.__module__}.{twin.__name__} of {types}" for twin in jit._dispatchers for types in twin.overloads}
print(json.dumps(sorted(ready)))
"""
"""Print the kernels that the process has ready, each type of arguments apart."""


class Process:
    """Stands in for the other process, and says when it was ended."""

    started: list[Process]

    def __init__(self, command: list[str], **streams: Any) -> None:
        assert (command[0], command[-2:]) == (sys.executable, ["-m", module.__name__])
        assert set(streams.values()) == {subprocess.DEVNULL}
        self.ended: list[str] = []
        self.started.append(self)

    def terminate(self) -> None:
        self.ended.append("terminate")

    def wait(self) -> None:
        self.ended.append("wait")


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> list[Process]:
    Process.started = []
    monkeypatch.setattr(module.subprocess, "Popen", Process)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    return Process.started


@pytest.mark.machine
@pytest.mark.parametrize("fails", [False, True])
def test_a_run_that_compiles_has_one_process_beside_it_and_ends_it(
    fails: bool, processes: list[Process], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "announce", lambda is_missing: is_missing())
    if fails:
        with pytest.raises(AnonflowError):
            run(write_flow(tmp_path, n=2))
    else:
        run(write_flow(tmp_path))
    (process,) = processes
    assert process.ended == ["terminate", "wait"]


@pytest.mark.machine
def test_a_later_run_has_none(
    processes: list[Process], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "announce", lambda is_missing: None)
    run(write_flow(tmp_path))
    assert not processes


@pytest.mark.machine
def test_a_single_core_has_no_room_for_it(processes: list[Process], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    with module.second_compiler():
        assert not processes


@pytest.mark.machine
@pytest.mark.slow
def test_it_compiles_what_a_release_and_its_card_need() -> None:
    """With its kernels on disk, a release of another method and its card compile few more: those of the method.

    All are on disk before, so nothing is compiled for this test alone: a process then has ready what it calls, and not what that calls.
    """
    module.main()
    exec(CARD, {})
    compiled, needed = map(ready, (RELEASE, CARD))
    assert compiled
    missing = needed - compiled
    assert len(missing) < len(needed) / 2, missing
    assert all(name.startswith("anonflow.kernels.greedy.") for name in missing), missing


def ready(code: str) -> set[str]:
    """Return the kernels that a process has ready after `code`."""
    command = [sys.executable, "-W", "ignore", "-c", code + READY]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return set(json.loads(done.stdout))
