"""The command as a process of its own, with a moment at which something happens to it."""

from __future__ import annotations

import json
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


def changed(before: str, *arguments: object, **settings: Any) -> subprocess.CompletedProcess[str]:
    """The command, run to its end in a process that did something else first: Python code that changes the package."""
    code = f"import sys\n{textwrap.dedent(before)}\nfrom anonflow.cli import main\nmain()\n"
    usual: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 300, "env": environment()}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, check=False, **(usual | settings))


FORKS = """
import json, os, sys
import anonflow.cli.exit_status, anonflow.engine

def child():
    for line in sys.stdin:
        if os.fork() == 0:
            return json.loads(line)
        print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
    os._exit(0)

request = child()
for number, place in enumerate(request["streams"]):
    if place is None:
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)
        continue
    if place == "left":
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
    os.dup2(writer, number)
    os.close(writer)
os.chdir(request["folder"])
sys.argv[1:] = request["arguments"]
from anonflow.cli import main
main()
"""
"""A process that has imported everything, and whose children run the command in a folder with the streams that they are given."""


class Forks:
    """The command in children of one process, which import nothing any more."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._process = subprocess.Popen(
            [sys.executable, "-c", FORKS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )

    def run(
        self,
        folder: Path,
        *arguments: str,
        stdout: str | None = "",
        stderr: str | None = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run the command in a folder; a stream is None where it is closed, and ``left`` where its reader has left."""
        places = {name: self._home / name for name in ("stdout", "stderr")}
        for place in places.values():
            place.unlink(missing_ok=True)
        streams = ["/dev/null", *(str(places[name]) if place == "" else place
                                  for name, place in (("stdout", stdout), ("stderr", stderr)))]  # fmt: skip
        request = {"streams": streams, "folder": str(folder), "arguments": arguments}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        status = int(self._process.stdout.readline())
        texts = (place.read_text() if place.exists() else "" for place in places.values())
        return subprocess.CompletedProcess(list(arguments), status, *texts)

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def published(folder: Path) -> set[str]:
    """The names of what lies in the folder that is published to."""
    return {path.name for path in (folder / "out").glob("*")}
