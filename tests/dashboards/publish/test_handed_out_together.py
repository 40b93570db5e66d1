"""One file for the public, one for the owner; figures that stand alone; the same run as a script."""

from __future__ import annotations

import io
import runpy
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
import anonflow as af
from anonflow.dashboards.components.figure_files import figures_of_run, figures_of_runs
from anonflow.dashboards.publish.model import OWNER, PUBLIC, TABLES, PublishModel
from anonflow.dashboards.publish.screen import PublishScreen
from anonflow.dashboards.session.workspace import Workspace
from anonflow.table.files.metadata_file import ENDINGS, KINDS
from tests.dashboards.publish.drawing import drawn


@pytest.fixture(scope="module")
def done() -> Iterator[Workspace]:
    workspace = Workspace()
    workspace.opener.open_dataset("census_like", n=60, seed=2)
    workspace.draft.set_algorithms(["greedy", "mondrian"])
    workspace.draft.set_ks([3, 4])
    workspace.start()
    workspace.wait(300)
    yield workspace
    workspace.close()


def names(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert all(entry.date_time == (1980, 1, 1, 0, 0, 0) for entry in archive.infolist()), "no time"
        return {name: archive.read(name) for name in archive.namelist()}


def test_one_file_for_the_public_and_one_for_the_owner(done: Workspace) -> None:
    model = drawn(done)
    public, owner = names(model.content("public")), names(model.content("owner"))
    refused = {"sav", "dta"}  # Salary-class is no name for them
    assert set(public) == {model.file_name(file) for file in PUBLIC if file not in ("public", *refused)}
    assert set(owner) == {
        model.file_name(file) for file in OWNER if file not in ("owner", "releases", "seed")
    }
    for file in ("csv", "parquet", "report"):
        assert public[model.file_name(file)] == model.content(file)
    secrets = [model.content("seed").strip(), model.content("certificate")]
    for content in [*public.values(), *owner.values()]:
        assert secrets[0] not in content
    assert secrets[1] not in public.values()
    assert b"" not in public.values()
    assert set(PublishScreen(workspace=done).buttons) == set(PUBLIC | OWNER)


def test_the_screen_offers_every_kind_of_file_that_the_shell_writes(done: Workspace, tmp_path: Path) -> None:
    assert set(ENDINGS) - set(KINDS) == {".pq", ".zsav"}, "spellings of Parquet and SPSS"
    workspace = Workspace()
    frame = pd.DataFrame(
        {"age": [20 + at % 9 for at in range(60)], "town": list("ab") * 30, "ill": list("xyz") * 20}
    )
    frame.to_csv(tmp_path / "people.csv", index=False)
    workspace.opener.open_file("people.csv", tmp_path / "people.csv")
    workspace.data.confirm(dict.fromkeys(workspace.draft.spec.columns, ""))
    workspace.draft.set_algorithms(["greedy"])
    workspace.draft.set_ks([3])
    workspace.start()
    workspace.wait(300)
    model = drawn(workspace)
    for content_of, content in names(model.content("public")).items():
        path = tmp_path / content_of
        if path.suffix == ".zip" and "parts" in path.name:
            for part, rows in names(content).items():
                (tmp_path / part).parent.mkdir(exist_ok=True)
                (tmp_path / part).write_bytes(rows)
        path.write_bytes(content)
    for file in TABLES:
        assert model.obstacle(file) == ""
        read = af.read_release(str(tmp_path / model.file_name(file)).removesuffix(".zip"))
        pd.testing.assert_frame_equal(
            read.frame.astype(str), model.publication.release.frame.astype(str), check_dtype=False
        )
        assert read.about == model.publication.release.about
    workspace.close()
    # a name that SPSS and Stata do not take
    screen = PublishScreen(workspace=done)
    screen.model.draw()
    screen.model.background.wait(300)
    assert {file for file in TABLES if screen.buttons[file].disabled} == {"sav", "dta"}
    assert "Salary-class" in screen.about["sav"].object
    assert screen.model.content("sav") == b""


def test_figures_stand_alone_and_hold_no_value(done: Workspace) -> None:
    result = done.runs.finished[0].result
    files = figures_of_run(result) | figures_of_runs([run.result for run in done.runs.finished])
    assert {
        "loss-by-column.svg",
        "cells.svg",
        "gcp-against-k.svg",
        "risk-and-utility.svg",
    } <= set(files)
    values = {
        str(value)
        for name in ("Marital", "Education")
        for value in done.data.frame[name]
        if not str(value).isdecimal()
    }
    for name, content in files.items():
        root = ElementTree.fromstring(content)
        assert root.tag == "{http://www.w3.org/2000/svg}svg", name
        assert not [value for value in values if f">{value}<" in content.decode()]
    inside = names(drawn(done).content("figures"))
    assert inside == figures_of_run(PublishModel(done).run.result)


def test_figures_tell_nothing_that_no_cell_shows(done: Workspace) -> None:
    """Attack: solve the loss on the domain of the originals for a suppressed person's value."""
    result = done.runs.finished[0].result
    other = tuple(replace(column, loss=column.loss / 2, whole=0.0) for column in result.columns)
    assert figures_of_run(result) == figures_of_run(replace(result, columns=other, spread=((0, 1),)))


def test_the_script_gives_the_same_release(
    done: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = drawn(done)
    for file in ("flow", "script", "seed"):
        (tmp_path / model.file_name(file)).write_bytes(model.content(file))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [model.file_name("script"), model.file_name("seed")])
    runpy.run_path(model.file_name("script"), run_name="__main__")
    (table,) = tmp_path.glob("out/*.csv")
    again = pd.read_csv(table, dtype=str, keep_default_na=False)
    first = pd.read_csv(io.BytesIO(model.content("csv")), dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(again, first)


def test_the_address_is_there_to_be_copied(done: Workspace) -> None:
    screen = PublishScreen(workspace=done)
    link = PublishModel(done).link()
    assert link.startswith("c=")
    assert f'data-copy="?{escape(link)}"' in screen.link.object
