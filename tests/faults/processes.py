"""The command as a process of its own, with a moment at which something happens to it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from tests import ROOT

EVERYTHING = {"release.csv", "release.csv-metadata.json", "report.html"}
"""What a flow publishes that publishes a table and a report."""

COMMAND = [sys.executable, "-m", "anonflow"]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def anonflow(*arguments: object, **settings: Any) -> subprocess.CompletedProcess[str]:
    """The command, run to its end."""
    usual: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 300, "env": environment()}
    return subprocess.run([*COMMAND, *map(str, arguments)], check=False, **(usual | settings))


def started(*arguments: object, **settings: Any) -> subprocess.Popen[str]:
    """The command, begun in a session of its own."""
    usual: dict[str, Any] = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
        "env": environment(),
        "start_new_session": True,
    }
    return subprocess.Popen([*COMMAND, *map(str, arguments)], **(usual | settings))


def changed(before: str, *arguments: object, **settings: Any) -> subprocess.CompletedProcess[str]:
    """The command, run to its end in a process that did something else first: Python code that changes the package."""
    code = f"import sys\n{textwrap.dedent(before)}\nfrom anonflow.cli import main\nmain()\n"
    usual: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 300, "env": environment()}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, check=False, **(usual | settings))


def published(folder: Path) -> set[str]:
    """The names of what lies in the folder that is published to."""
    return {path.name for path in (folder / "out").glob("*")}
