"""Versions of the flow format: a newer one is refused, an older one is put into newer words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anonflow import engine
from anonflow.engine.flows import spec, versions
from anonflow.errors import FlowError
from tests.cases.flow_files import write_flow


def older(folder: Path, more: str = "") -> Path:
    """A flow in words that version 2 (of this test) changes: ``cut`` was ``partition``."""
    path = write_flow(folder, publish="", more=more)
    text = path.read_text(encoding="utf-8").replace("partition: {size: 20}", "cut: {size: 20}")
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def second(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were a version 2, which says ``partition`` for what version 1 calls ``cut``."""

    def converter(data: dict[str, Any]) -> None:
        if "cut" in data:
            data["partition"] = data.pop("cut")

    monkeypatch.setattr(spec, "VERSION", 2)
    monkeypatch.setitem(versions.CONVERTERS, 1, converter)


@pytest.mark.usefixtures("second")
def test_an_older_flow_is_read_in_newer_words(tmp_path: Path) -> None:
    flow = engine.load_flow(older(tmp_path))
    assert flow.spec.partition.size == 20
    assert engine.run(flow).ok


@pytest.mark.usefixtures("second")
def test_problems_of_an_older_flow_have_their_places(tmp_path: Path) -> None:
    path = older(tmp_path, more="rnu: {}\n")
    line = 1 + path.read_text(encoding="utf-8").splitlines().index("rnu: {}")
    with pytest.raises(FlowError, match=rf"flow.yaml:{line}:1: unknown key 'rnu'"):
        engine.load_flow(path)


def test_this_version_has_no_such_key(tmp_path: Path) -> None:
    with pytest.raises(FlowError, match="unknown key 'cut'"):
        engine.load_flow(older(tmp_path))


def test_a_version_that_nothing_converts_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spec, "VERSION", 2)
    with pytest.raises(FlowError, match="version 1 is too old"):
        engine.load_flow(write_flow(tmp_path))


@pytest.mark.parametrize("version", ["2", "99", "0", "true", "one", "1.0", '"1"'])
def test_other_versions_are_refused_in_one_line(tmp_path: Path, version: str) -> None:
    path = write_flow(tmp_path, more="rnu: {}\n")
    text = path.read_text(encoding="utf-8").replace("version: 1", f"version: {version}")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FlowError, match="reads version 1 of the format") as caught:
        engine.load_flow(path)
    assert len(caught.value.problems) == 1
