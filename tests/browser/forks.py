"""Servers as children of a process that has imported everything: a start takes a sixth of the processor's seconds."""

from __future__ import annotations

import atexit
import faulthandler
import os
import subprocess
import sys
import tempfile
from multiprocessing import get_context
from pathlib import Path

import anonflow.cli.exit_status
import anonflow.dashboards.app
import anonflow.dashboards.server.server
from tests import ROOT


def command(arguments: tuple[str, ...], log: Path) -> None:
    """Run the command in this process, as a shell does: it leads a session, its streams are a file, and beside that are temporary ones."""
    os.setsid()
    os.chdir(ROOT)
    streams = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in (1, 2):
        os.dup2(streams, number)
    os.close(streams)
    faulthandler.enable()
    tempfile.tempdir = str(log.parent)
    os.environ["TMPDIR"] = tempfile.tempdir
    sys.argv[1:] = arguments
    try:
        anonflow.cli.main()
    finally:
        atexit._run_exitfuncs()  # a child of multiprocessing ends without them


class Fork:
    """The command in such a child, which is asked as a `subprocess.Popen` is."""

    def __init__(self, *arguments: str, log: Path) -> None:
        forks = get_context("forkserver")
        forks.set_forkserver_preload([__name__])
        self._process = forks.Process(target=command, args=(arguments, log))
        self._process.start()
        self.pid = int(self._process.pid or 0)

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("anonflow", timeout)
        return self._process.exitcode

    def terminate(self) -> None:
        self._process.terminate()

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)
