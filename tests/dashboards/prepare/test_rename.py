"""Rename on the screen Prepare: the column goes on under its new name on every screen, and back."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.data.column_form import ColumnChoice
from anonflow.dashboards.prepare.screen import PrepareScreen
from anonflow.dashboards.session.workspace import Workspace
from anonflow.errors import ParameterError
from tests.cases.drafts import value_at

FRAME = pd.DataFrame({"years": [20, 30, 40, 50, 60, 95], "ill": list("ababab")})
COLUMNS = {"years": {"role": "quasi-identifier", "kind": "numeric"}, "ill": {"role": "sensitive"}}


@pytest.fixture
def form() -> Iterator[PrepareScreen]:
    workspace = Workspace()
    workspace.opener.open_frame(FRAME, COLUMNS, "people")
    yield PrepareScreen(workspace=workspace)
    workspace.close()


def renamed(form: PrepareScreen, to: str) -> None:
    form.step.value, form.column.value = "rename", form.workspace.data.named.columns[0]
    form.fields["to"].value = to
    form.add.clicks += 1


def test_a_column_is_renamed_with_all_that_is_declared(form: PrepareScreen) -> None:
    workspace = form.workspace
    renamed(form, "age")
    assert not form.wrong.visible
    assert value_at(workspace.draft, ("table", "columns")) == {"age": COLUMNS["years"], "ill": COLUMNS["ill"]}
    assert workspace.data.problems == ()
    assert list(workspace.data.table.frame.columns) == ["age", "ill"]
    assert form.column.options == ["age", "ill"]
    assert list(ColumnChoice(workspace=workspace).table()["column"]) == ["age", "ill"]
    workspace.data.set_column("age", weight=2.0)
    assert workspace.data.table.schema["age"].weight == 2.0
    with pytest.raises(ParameterError, match="no such column"):
        workspace.data.set_column("years", weight=1.0)
    # the next step is of the new name, the file's columns are as they were
    form.step.value, form.column.value = "top-code", "age"
    form.fields["at"].value = 90
    form.add.clicks += 1
    assert workspace.data.table.frame["age"].max() == 90
    assert list(workspace.data.frame.columns) == ["years", "ill"]


def test_it_is_taken_back_and_undone_as_one(form: PrepareScreen) -> None:
    workspace = form.workspace
    renamed(form, "age")
    form.remove.clicks += 1
    assert value_at(workspace.draft, ("table", "columns")) == COLUMNS
    renamed(form, "age")
    renamed(form, "lived")
    assert list(workspace.data.named.columns) == ["lived", "ill"]
    workspace.draft.undo()
    assert list(workspace.data.named.columns) == ["age", "ill"]
    assert workspace.data.problems == ()


def test_a_taken_name_is_refused(form: PrepareScreen) -> None:
    renamed(form, "ill")
    assert "is taken" in form.wrong.object
    assert value_at(form.workspace.draft, ("table", "prepare")) is None
    assert value_at(form.workspace.draft, ("table", "columns")) == COLUMNS


def test_screens_look_again_only_where_something_changed(form: PrepareScreen) -> None:
    workspace = form.workspace
    assert workspace.data.named is workspace.data.frame
    renamed(form, "age")
    first = workspace.data.named
    workspace.data.set_column("age", weight=2.0)
    assert workspace.data.named is first
