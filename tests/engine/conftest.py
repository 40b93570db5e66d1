"""A cluster of two workers, and workers that a test owns, for tests of the engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.cases.workers import workers

__all__ = ["workers"]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two worker processes, started from the shell; the address and the three processes."""
    home = tmp_path / "cluster"
    home.mkdir()
    file = home / "scheduler.json"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "DASK_DISTRIBUTED__WORKER__DAEMON": "false"}
    quiet: dict[str, Any] = {
        "env": env,
        "cwd": home,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
    }
    started = [
        subprocess.Popen(
            [
                sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--host", "127.0.0.1",
                "--no-dashboard", "--scheduler-file", str(file),
            ],
            **quiet,
        )
    ]  # fmt: skip
    try:
        while not (file.exists() and file.stat().st_size):
            assert started[0].poll() is None
            time.sleep(0.1)
        started += [
            subprocess.Popen(
                [
                    sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file),
                    "--nthreads", "1", "--no-nanny", "--no-dashboard", "--name", str(number),
                ],
                **quiet,
            )
            for number in range(2)
        ]  # fmt: skip
        yield json.loads(file.read_text())["address"], started
    finally:
        for process in started:
            process.kill()
            process.wait(20)
