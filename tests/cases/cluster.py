"""A Dask cluster on this machine, for tests of real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT


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
        for _ in range(3000):  # five minutes
            if self.file.exists() and self.file.stat().st_size:
                break
            assert self.scheduler.poll() is None
            time.sleep(0.1)
        self.address = json.loads(self.file.read_text())["address"]

    def _start(self, part: str, *arguments: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{part}", *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(ROOT), "DASK_DISTRIBUTED__WORKER__DAEMON": "false"}, cwd=self.home,
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
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    home = tmp_path / "cluster"
    home.mkdir()
    started = Cluster(home)
    try:
        yield started
    finally:
        started.close()
