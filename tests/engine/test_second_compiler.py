"""A first run has another process compile what its release needs; where that is not possible it compiles alone."""

from __future__ import annotations

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

CARD = """
import anonflow as af
from anonflow import datasets
from anonflow.kernels import jit
table = af.Table(datasets.census_like(300, seed=1), datasets.schema("census_like"))
af.release_card(af.anonymize(table, "greedy", k=5, seed=1))
print(jit.compiled_here(), jit.ready_here())
"""


class Process:
    """Stands in for the other process, and says when it was ended."""

    started: list[Process]

    def __init__(self, command: list[str], **streams: Any) -> None:
        assert command[0] == sys.executable
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
def test_it_compiles_what_a_release_and_its_card_need(tmp_path: Path) -> None:
    """With its kernels on disk, a release of another method and its card compile few more."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    for command in (["-m", module.__name__], ["-c", CARD]):
        result = subprocess.run(
            [sys.executable, *command], env=environment, check=True, capture_output=True, text=True
        )
    compiled, ready = map(int, result.stdout.split())
    assert compiled < ready / 2, (compiled, ready)
