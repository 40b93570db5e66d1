"""The script that sets another project's attackers beside ours: what they are given, and what it prints."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pandas as pd
import pytest

import anonflow as af
from tests.benchmarks import compare_attackers


def test_they_get_people_controls_and_a_plausible_table_of_the_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    received: list[dict[str, pd.DataFrame]] = []
    releases: list[Any] = []

    def theirs(python: str, frames: dict[str, pd.DataFrame], attacks: int) -> dict[str, Any]:
        received.append(frames)
        return {
            "singling out": [0.1, 0.05, 0.15, 0.2, 0.11, 0.12],
            "linkability": "Error",
            "inference": "Error",
        }

    def plausible(release: Any, **options: Any) -> Any:
        releases.append(release)
        return af.analysis.plausible(release, **options)

    monkeypatch.setattr(compare_attackers, "theirs", theirs)
    monkeypatch.setattr(compare_attackers.af, "plausible", plausible)
    rows = compare_attackers.lines("python", 60, 10, "mondrian", 5)
    (frames,), (release,) = received, releases
    assert {name: len(frame) for name, frame in frames.items()} == {"ori": 60, "syn": 60, "control": 60}
    assert list(frames["syn"].columns) == list(frames["ori"].columns)
    assert not set(frames["ori"].index) & set(frames["control"].index)
    # every plausible value lies in the cell of its row
    age, plain = release.column("Age"), frames["syn"]["Age"]
    assert ((age.low <= plain) & (plain <= age.high))[age.cells != "*"].all()
    assert [row.split("|")[2].strip() for row in rows] == list(compare_attackers.QUESTIONS)
    assert "| 0.100 (0.050 to 0.150) | 0.200, 0.110, 0.120 |" in rows[0]
    assert "| Error | Error |" in rows[1]
    assert all(row.count("|") == compare_attackers.HEADER.splitlines()[0].count("|") for row in rows)


def test_an_environment_without_it_is_a_sentence(
    tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare_attackers, "THEIRS", "import no_such_attackers")
    assert compare_attackers.main(["--python", sys.executable, "--small"]) == 2
    assert "does not run there: ModuleNotFoundError" in capsys.readouterr().err
    assert compare_attackers.main(["--python", str(tmp_path / "none"), "--small"]) == 2


@pytest.mark.slow
def test_it_runs_where_it_is_installed(capsys: pytest.CaptureFixture[str]) -> None:
    """ANONYMETER_PYTHON names the interpreter of an environment that has it."""
    python = os.environ.get("ANONYMETER_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import anonymeter"], capture_output=True, check=False).returncode:
        pytest.skip("anonymeter is not installed there")
    assert compare_attackers.main(["--python", python, "--small"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 5


def test_ours_alone_need_no_environment(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        row
        for method in compare_attackers.RECODING
        for row in compare_attackers.lines(None, 40, 10, method, 4)
    ]
    assert len(rows) == 2 * len(compare_attackers.QUESTIONS)
    assert all("| not run | not run |" in row for row in rows)
    assert compare_attackers.main(["--small"]) == 0
    assert "mondrian, k = 20" in capsys.readouterr().out
