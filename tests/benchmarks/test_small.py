"""Every benchmark runs, on small inputs; how fast is for `python -m tests.benchmarks` to say."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT
from tests.benchmarks import bench_client, measuring
from tests.benchmarks.bench_scale import not_divided

SLOW = {
    "analyses",
    "boundaries",
    "census",
    "chains",
    "classes",
    "clicks",
    "concealment",
    "cores",
    "coverage",
    "crosstabs",
    "diversity",
    "expected",
    "import",
    "freeform",
    "downcoding",
    "optimal",
    "patterns",
    "peers",
    "quickstart",
    "reciprocal",
    "recoding",
    "scale",
    "screens",
    "sessions",
    "structure",
    "verify",
    "yearly",
}
"""Over 0.3 s, small as they are: processes and solvers have to start."""

MACHINE = {"clicks", "sessions"}
"""Those that need a browser, or many sessions at a server."""

WHOLE = {"client"}
"""Those that a test runs as they are, and not small."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name, marks=[pytest.mark.slow] * (name in SLOW) + [pytest.mark.machine] * (name in MACHINE)
        )
        for name in measuring.modules()
        if name not in WHOLE
    ],
)
def test_it_runs_small(name: str) -> None:
    are_figures(measuring.modules()[name].run(small=True))


def are_figures(figures: list[dict[str, Any]]) -> None:
    assert isinstance(figures, list)
    for figure in figures:
        assert set(figure) == set(measuring.FIELDS)
        assert math.isfinite(figure["figure"])
        assert figure["met"] in (True, False, None)
        assert (figure["met"] is None) == (not figure["goal"])


@pytest.mark.slow
def test_processes_take_no_more_of_the_client_than_threads() -> None:
    """100,000 x 10 in memory on processes once took two to four times what threads take."""
    figures = bench_client.run(small=False)
    are_figures(figures)
    assert figures[-1]["figure"] < 1.25, figures


@pytest.mark.slow
def test_one_command_prints_them(tmp_path: Path) -> None:
    written = tmp_path / "figures.json"
    command = [sys.executable, "-m", "tests.benchmarks", "--small", "--json", str(written), "import"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    document = json.loads(written.read_text(encoding="utf-8"))
    assert document["small"] is True
    assert document["machine"]["cores"] >= 1
    for figure in document["figures"]:
        assert figure["name"] in done.stdout


def test_a_missed_goal_is_seen() -> None:
    assert measuring.row("a", 2.0, "s", most=1)["met"] is False
    assert measuring.row("a", 2.0, "s", least=3)["met"] is False
    assert measuring.row("a", 2.0, "s", least=1, most=3)["met"] is True
    assert measuring.row("a", 2.0, "s")["met"] is None
    assert "NO" in measuring.table([measuring.row("a", 2.0, "s", most=1)])


def test_what_a_processor_did_alone_follows_from_wall_and_processor_seconds() -> None:
    for alone, divided, processors in ((3.0, 8.0, 2), (0.0, 4.0, 4), (2.0, 0.0, 16)):
        assert not_divided(alone + divided / processors, alone + divided, processors) == pytest.approx(alone)
    assert not_divided(5.0, 4.0, 1) == 5.0  # one processor divides nothing
    assert not_divided(5.0, 0.0, 2) == 5.0  # and who waits does not wait less
