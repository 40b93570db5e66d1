"""Python as a user who is not root, wherever Python and the checkout lie."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import ROOT

NOBODY = 65534

needs_root = pytest.mark.skipif(
    os.geteuid() != 0,
    reason="only root can be somebody else; all other tests are run by who is not root then",
)


def python_as_nobody(
    *arguments: object, cwd: Path, timeout: float = 600, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python with `arguments` as the user nobody, with no environment but `environment`, to its end.

    Nobody can read Python, its packages and the checkout, though they may lie below folders that are root's
    alone (a home, a folder of ``mktemp -d``): a folder that is open already is used without the way to it.
    """
    with ExitStack() as stack:
        opened: list[int] = []

        def by_descriptor(path: str | Path) -> str:
            opened.append(os.open(path, os.O_RDONLY))
            stack.callback(os.close, opened[-1])
            return f"/proc/self/fd/{opened[-1]}"

        python = by_descriptor(os.path.realpath(sys.executable))
        home = by_descriptor(sys.base_prefix)
        folders = [by_descriptor(folder) for folder in (ROOT, *sys.path) if os.path.isdir(folder or ".")]
        return subprocess.run(
            [python, *map(str, arguments)],
            env={
                "PYTHONHOME": home,
                "PYTHONPATH": os.pathsep.join(folders),
                "PYTHONDONTWRITEBYTECODE": "1",
                "LD_LIBRARY_PATH": f"{home}/lib",
                "LC_ALL": "C.UTF-8",
                **environment,
            },
            cwd=cwd, pass_fds=opened, user=NOBODY, group=NOBODY, extra_groups=[],
            capture_output=True, text=True, check=False, timeout=timeout,
        )  # fmt: skip
