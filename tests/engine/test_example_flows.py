"""The flows that come with the package: each runs, verifies and publishes, on fewer records than it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from anonflow import engine
from anonflow.algorithms import REGISTRY
from tests import ROOT

FLOWS = sorted((ROOT / "flows").glob("*.yaml"))
BUILT_IN = [path for path in FLOWS if path.stem != "adult"]


@pytest.mark.filterwarnings("ignore::anonflow.release.ReleaseWarning")
@pytest.mark.parametrize("path", BUILT_IN, ids=lambda path: path.stem)
def test_an_example_flow_runs(path: Path, tmp_path: Path) -> None:
    text = re.sub(r"\bn: \d+", "n: 240", path.read_text(encoding="utf-8"))
    (tmp_path / "flows").mkdir()
    copy = tmp_path / "flows" / path.name
    copy.write_text(text, encoding="utf-8")
    report = engine.run(copy)
    assert report.ok, report.problems
    assert report.published
    assert all(item.exists() for item in report.published)


def test_each_family_has_an_example() -> None:
    used = {run.anonymize.algorithm for path in FLOWS for run in engine.load_flow(path).runs}
    assert {REGISTRY[name].family for name in used} == {method.family for method in REGISTRY.values()}


@pytest.mark.parametrize("path", FLOWS, ids=lambda path: path.stem)
def test_an_example_says_what_it_shows(path: Path) -> None:
    assert path.read_text(encoding="utf-8").startswith("# ")
