"""The README's Python example runs as it stands, and its table names every method there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import anonflow
from tests import ROOT
from tests.docs.before_and_after import PICTURE, drawing

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_example_runs(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
    assert len([line for line in example.splitlines() if line]) <= 12
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", example],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loss = re.search(r"information loss \(GCP\): (0\.\d+)", done.stdout)
    assert loss is not None
    assert 0 < float(loss[1]) < 0.5


def test_the_table_names_every_method() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|", README, re.M)
    assert set(rows) == set(anonflow.algorithms()["name"])


def test_links_lead_somewhere() -> None:
    for link in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (ROOT / link).exists(), link


def test_the_picture_shows_what_a_run_gives() -> None:
    assert PICTURE.read_text(encoding="utf-8") == drawing()


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 200
