"""What `.ci/run` makes of the oldest versions: a contradiction fails, and where no index answers they are skipped; and of tests tried again."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import ROOT, conftest

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")

CONTRADICTION = """error: No solution found when resolving dependencies
  cause: Because numba==0.60.0 depends on numpy>=1.22,<2.1 and anonflow depends on numpy>=2.4, ...
"""
UNREACHABLE = """error: Failed to fetch: `https://index.example.org/simple/numpy/`
  cause: Connection refused (os error 111)
"""
BROKEN = "error: The build backend returned an error\n"


def lowest_versions(folder: Path, message: str, status: int) -> subprocess.CompletedProcess[str]:
    """Run the function of `.ci/run` beside a uv that ends so, and a Python that runs nothing."""
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    function = re.search(r"^lowest_versions\(\) \{\n.*?^\}\n", text, re.MULTILINE | re.DOTALL)[0]
    (folder / "bin").mkdir()
    (folder / "lowest").mkdir()
    (folder / "message").write_text(message, encoding="utf-8")
    programs = {
        "uv": f'echo "$1 $2" >> {folder}/asked; echo "numpy==2.0.2" > lowest.txt; cat {folder}/message >&2; exit {status}',
        "python3.11": f"mkdir -p .venv/bin && cp {folder}/bin/pytest .venv/bin/python",
        "pytest": f'echo "$@" >> {folder}/asked',
    }
    for name, line in programs.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        (folder / "bin" / name).chmod(0o755)
    return subprocess.run(
        ["bash", "-uo", "pipefail", "-c", f"{function}\nlowest_versions"],
        env={"work": str(folder), "bin": str(folder / "bin"), "PATH": f"{folder}/bin:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize(("message", "status"), [(CONTRADICTION, 1), (BROKEN, 2)])
def test_bounds_that_cannot_be_installed_fail(tmp_path: Path, message: str, status: int) -> None:
    done = lowest_versions(tmp_path, message, status)
    assert done.returncode != 0
    assert message in done.stdout
    assert "skipped" not in done.stdout
    assert (tmp_path / "asked").read_text() == "pip compile\n"


def test_without_an_index_they_are_skipped_and_it_is_said(tmp_path: Path) -> None:
    done = lowest_versions(tmp_path, UNREACHABLE, 2)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("uv reaches no package index here: the oldest versions are skipped\n")
    assert (tmp_path / "asked").read_text() == "pip compile\n"


def test_where_they_install_the_tests_run(tmp_path: Path) -> None:
    done = lowest_versions(tmp_path, "", 0)
    assert done.returncode == 0, done.stderr
    assert "numpy==2.0.2" in done.stdout
    compiled, installed, tested = (tmp_path / "asked").read_text().splitlines()
    assert (compiled, installed) == ("pip compile", "pip install")
    assert tested.startswith("-m pytest ")
    for folder in tested.partition(" -k ")[0].split()[2:]:
        assert folder.startswith("-") or (ROOT / folder).exists(), folder


def test_only_tests_that_need_the_machine_count_as_tried_again() -> None:
    """Each is named once, with the first line of why it failed. What another test left to the collector is chance, and none of the more than three that refuse a change."""
    lines: list[str] = []
    reports = [
        SimpleNamespace(nodeid=nodeid, keywords=keywords, longreprtext=text)
        for nodeid, keywords, text in (
            ("b", {"machine": 1}, "assert x\nE   no answer\nE   at all"),
            ("a", {}, ""),
            ("b", {"machine": 1}, "E   no answer"),
        )
    ]
    reporter: Any = SimpleNamespace(stats={"rerun": reports}, write_line=lines.append)
    conftest.pytest_terminal_summary(reporter)
    assert lines == ["tried again after another test: a", "tried again: b", "    no answer"]
