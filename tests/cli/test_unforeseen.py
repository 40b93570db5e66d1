"""Bugs of our own: what is said of them names their place, and never a cell, whoever runs into them."""

from __future__ import annotations

import errno
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anonflow as af
from anonflow import datasets
from anonflow.cli.commands import write_new
from anonflow.errors import BUG, AnonflowError, unforeseen

CELL = "Jane Doe"
MESSAGE = re.compile(rf"ZeroDivisionError at test_unforeseen\.py:\d+; {BUG}")


class Broken:
    """A run with a bug, whose words hold a cell."""

    @property
    def events(self) -> Any:
        raise ZeroDivisionError(CELL)


def test_the_place_is_where_it_was_raised() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        Broken().events  # noqa: B018
    assert MESSAGE.fullmatch(f"{unforeseen(caught.value)}; {BUG}")
    assert unforeseen(KeyError(CELL)) == "KeyError at an unknown place"


def test_an_error_is_one_line_whatever_a_file_is_called(tmp_path: Path) -> None:
    for name in ("a\nb.csv", "a\x1b[2Jb.csv", "a\u2028b.csv"):
        with pytest.raises(AnonflowError) as caught:
            af.Table.read(tmp_path / name, {"a": {"role": "quasi-identifier", "kind": "numeric"}})
        assert str(caught.value).isprintable()
        assert "does not exist" in str(caught.value)
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), again.problems) == (str(caught.value), caught.value.problems)


@pytest.fixture
def workspace() -> Iterator[Any]:
    pytest.importorskip("param", reason="the dashboards are an extra")
    from anonflow.dashboards import Workspace

    item = Workspace()
    yield item
    item.close()


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_file_that_is_half_written_goes_and_a_full_disk_is_no_wrong_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """`anonflow init` and `schema -o` ended with status 2 on a full disk, and left half a file on Ctrl-C."""
    really = Path.open

    class Full:
        def __init__(self, path: Path, *arguments: Any, **options: Any) -> None:
            really(path, *arguments, **options).close()

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *error: object) -> None:
            pass

        def write(self, text: str) -> None:
            raise error

    monkeypatch.setattr(Path, "open", lambda path, *arguments, **options: Full(path, *arguments, **options))
    with pytest.raises((AnonflowError, KeyboardInterrupt)) as caught:
        write_new(tmp_path / "people.yaml", "flow: people\n")
    assert type(caught.value) in (AnonflowError, KeyboardInterrupt)  # status 3, or 130
    assert not list(tmp_path.iterdir())


def test_in_a_run_of_the_dashboard(workspace: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anonflow.engine.background.start", lambda flow, **settings: Broken())
    workspace.opener.open_dataset("census_like", n=50, seed=3)
    workspace.start()
    workspace.wait()
    (run,) = workspace.runs.finished
    assert MESSAGE.fullmatch(run.result.problem)


def test_in_what_the_dashboard_does_aside(workspace: Any) -> None:
    from anonflow.dashboards.work.screen_work import Background

    heard: list[str] = []
    background = Background(workspace.turns)
    background.start(lambda: Broken().events, lambda result: heard.append("done"), heard.append)
    background.wait()
    (text,) = heard
    assert MESSAGE.fullmatch(text)


def test_in_a_run_of_the_explorer(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ipywidgets", reason="the widgets are an extra")
    from anonflow.widgets import Exploration

    monkeypatch.setattr("anonflow.engine.background.start", lambda flow, **settings: Broken())
    model = Exploration(af.Table(datasets.census_like(50, seed=3), datasets.schema("census_like")))
    model.methods = ("greedy",)
    model.start()
    model.wait()
    (finished,) = model.finished
    assert MESSAGE.fullmatch(finished.result.problem)
