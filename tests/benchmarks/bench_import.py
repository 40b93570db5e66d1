"""How much processor time a process takes that imports this package, its engine, or prints the shell's help."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from typing import Any

from tests import ROOT
from tests.benchmarks.measuring import row

WORK = {
    "import anonflow": ("import anonflow", 0.3),
    "import anonflow.engine": ("import anonflow.engine", 1.0),
    "anonflow --help": ("from anonflow.cli import main; sys.argv = ['anonflow', '--help']; main()", 0.3),
}
"""Name -> what a fresh interpreter does, and the goal in seconds, its own start included."""

CODE = "import atexit, sys, time; atexit.register(lambda: print(time.process_time(), file=sys.stderr)); {}"


def run(small: bool) -> list[dict[str, Any]]:
    """Each in fresh interpreters: the median, in one of them if `small`."""
    rows = []
    # as people start it: byte code is stored
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for name, (work, most) in WORK.items():
        times = []
        for _ in range(1 if small else 7):
            command = [sys.executable, "-c", CODE.format(work)]
            process = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
            )
            times.append(float(process.stderr))
        rows.append(row(name, statistics.median(times), "s of processor", most=most))
    return rows
