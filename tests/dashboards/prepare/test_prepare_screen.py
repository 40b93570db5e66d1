"""The screen Prepare without a browser: steps are added, counted, refused and taken away."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.prepare.screen import PrepareScreen
from anonflow.dashboards.session import open_table
from anonflow.dashboards.session.share_link import link
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work import screen_work
from anonflow.table.prepare import Preparation
from tests.cases.drafts import put_at, value_at
from tests.dashboards.conftest import Hand
from tests.dashboards.data.uploading import send

FRAME = pd.DataFrame(
    {
        "age": [20, 21, 91, 95, 30, 31],
        "town": ["Kiel ", "kiel", "Bonn", "bonn", "x", "x"],
        "born": ["1980-01-01"] * 6,
    }
)


@pytest.fixture
def form() -> PrepareScreen:
    workspace = Workspace()
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric"},
        "town": {"role": "quasi-identifier", "kind": "categorical"},
    }
    workspace.opener.open_frame(FRAME, columns, "people")
    return PrepareScreen(workspace=workspace)


def test_a_step_is_added_and_what_it_changes_is_shown(form: PrepareScreen) -> None:
    form.step.value, form.column.value = "top-code", "age"
    form.fields["at"].value = 90.0
    form.add.clicks += 1
    assert value_at(form.workspace.draft, ("table", "prepare")) == [{"top-code": {"column": "age", "at": 90}}]
    assert form.workspace.data.table.frame["age"].max() == 90
    assert "top-code age: at 90" in form.changes.object
    form.step.value, form.column.value = "recode", "town"
    form.fields["values"].value = "x = Bonn, bonn = Bonn"
    form.add.clicks += 1
    assert set(form.workspace.data.table.frame["town"]) == {"Kiel ", "kiel", "Bonn"}
    form.step.value, form.column.value = "filter", "town"
    form.fields["without"].value = "kiel"
    form.add.clicks += 1
    assert form.workspace.data.table.filtered == 1
    for _ in range(3):
        form.remove.clicks += 1
    assert value_at(form.workspace.draft, ("table", "prepare")) is None
    assert form.workspace.data.table.frame["age"].max() == 95
    assert form.remove.disabled


def test_a_step_that_does_not_go_with_the_table_is_not_added(form: PrepareScreen) -> None:
    form.step.value, form.column.value = "top-code", "town"
    form.fields["at"].value = 5.0
    form.add.clicks += 1
    assert form.wrong.visible
    assert "not numbers" in form.wrong.object
    assert value_at(form.workspace.draft, ("table", "prepare")) is None
    form.step.value = "round"
    form.add.clicks += 1
    assert "Fill in" in form.wrong.object
    form.step.value, form.column.value = "date-part", "born"
    form.fields["part"].value, form.fields["on"].value = "age", "2020-01-01"
    form.add.clicks += 1
    assert not form.wrong.visible


def test_the_data_screen_has_the_card() -> None:
    workspace = Workspace()
    screen = PrepareScreen(workspace=workspace)
    assert screen.nothing.visible
    assert not screen.steps.visible
    workspace.opener.open_frame(FRAME, None, "people")
    assert screen.steps.visible
    assert not screen.nothing.visible


def test_a_link_keeps_steps_of_a_built_in_table_and_no_text_of_somebody() -> None:
    workspace = Workspace()
    workspace.opener.open_dataset("census_like", n=60, seed=1)
    column = next(
        name for name in workspace.data.frame if pd.api.types.is_numeric_dtype(workspace.data.frame[name])
    )
    known = [{"top-code": {"column": column, "at": 60}}, {"round": {"column": column, "to": 5}}]
    other = {"rename": {"column": column, "to": "my secret"}}
    put_at(workspace.draft, ("table", "prepare"), [*known, other, known[0]])
    text = link(workspace.draft.spec)
    again = Workspace()
    again.opener.open_link(text)
    assert value_at(again.draft, ("table", "prepare")) == known
    assert again.data.table is not None
    assert again.data.table.frame[column].astype(float).max() <= 60
    for each in (workspace, again):
        each.close()


def test_a_file_of_codes_is_not_asked_for(form: PrepareScreen) -> None:
    form.step.value = "recode"
    assert list(form.fields) == ["values", "others"]


def test_many_records_are_prepared_off_the_event_loop(
    form: PrepareScreen, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen_work, "FEW", 3)
    aside: list[bool] = []
    changes, code = Preparation.changes, open_table.code

    def watched_changes(steps: Preparation, frame: pd.DataFrame) -> pd.DataFrame:
        aside.append(hand.is_working)
        return changes(steps, frame)

    def watched_code(*args: Any) -> Any:
        aside.append(hand.is_working)
        return code(*args)

    monkeypatch.setattr(Preparation, "changes", watched_changes)
    monkeypatch.setattr(open_table, "code", watched_code)
    form.step.value, form.column.value = "top-code", "age"
    form.fields["at"].value = 90.0
    form.add.clicks += 1
    hand.do_all()
    assert form.workspace.data.table.frame["age"].max() == 90
    assert "top-code age: at 90" in form.changes.object
    assert not form.add.disabled
    assert not form.remove.disabled
    assert len(aside) >= 2
    assert all(aside)
    # what cannot be done is refused as it is of few
    form.fields["at"].value, form.column.value = 5.0, "town"
    form.add.clicks += 1
    hand.do_all()
    assert "not numbers" in form.wrong.object
    assert len(value_at(form.workspace.draft, ("table", "prepare"))) == 1
    assert "top-code age: at 90" in form.changes.object


def test_an_empty_field_is_named_by_its_label(form: PrepareScreen) -> None:
    form.step.value, form.column.value = "top-code", "age"
    form.add.clicks += 1
    assert "Fill in Largest number." in form.wrong.object
    assert form.wrong.visible
    assert value_at(form.workspace.draft, ("table", "prepare")) is None


def test_the_codes_of_a_column_stay_in_a_step_on_its_numbers() -> None:
    workspace = Workspace()
    frame = pd.DataFrame({"age": ["20", "unknown", "95", "30"] * 6, "town": list("abcd") * 6})
    columns = {
        "age": {"role": "quasi-identifier", "kind": "numeric", "codes": ["unknown"]},
        "town": {"role": "quasi-identifier", "kind": "categorical"},
    }
    workspace.opener.open_frame(frame, columns, "people")
    form = PrepareScreen(workspace=workspace)
    form.step.value, form.column.value = "top-code", "age"
    assert form.fields["others"].value == "unknown"
    form.fields["at"].value = 90.0
    form.add.clicks += 1
    assert not form.wrong.visible
    assert sorted(set(workspace.data.table.frame["age"])) == ["20", "30", "90", "unknown"]
    form.column.value = "town"
    assert form.fields["others"].value == ""


CODEBOOK = b"value,label\n10,Farming\n11,Mining\n14,Health\n"


@pytest.fixture
def industries() -> PrepareScreen:
    workspace = Workspace()
    frame = pd.DataFrame(
        {"industry": [10, 11, 14] * 20, "hours": [*range(1, 53), *[99] * 8], "sex": ["f", "m"] * 30}
    )
    columns = {
        "industry": {"role": "quasi-identifier", "kind": "numeric"},
        "hours": {"role": "quasi-identifier", "kind": "numeric"},
        "sex": {"role": "quasi-identifier", "kind": "categorical"},
    }
    workspace.opener.open_frame(frame, columns, "people")
    return PrepareScreen(workspace=workspace)


def test_a_codebook_lets_labels_stand_in_place_of_codes_here_and_in_the_release(
    industries: PrepareScreen,
) -> None:
    workspace = industries.workspace
    industries.column.value = "industry"
    send(industries.codebook, "industries.csv", CODEBOOK)
    assert not industries.wrong.visible
    assert workspace.data.problems == ()
    assert set(workspace.data.table.frame["industry"]) == {"Farming", "Mining", "Health"}
    assert workspace.draft.spec.columns["industry"].kind == "categorical"
    industries.column.value = "hours"
    send(industries.codebook, "hours.csv", b"value,label\n99,refused\n")
    assert workspace.draft.spec.columns["hours"].codes == ("refused",)
    assert workspace.data.problems == ()
    workspace.draft.set_ks([20])
    workspace.start()
    workspace.wait(300)
    published = workspace.runs.chosen_run.result.anonymization.frame()["industry"].astype(str)
    assert set("".join(published).replace("{", "").replace("}", "")) & set("0123456789") == set()
    assert any("|" in cell for cell in published)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a,b\n1,2\n", "does not begin with the line old,new"),
        (b"value,label\n1,x\n1,y\n", "is there already"),
    ],
)
def test_a_file_that_is_no_codebook_is_refused(industries: PrepareScreen, content: bytes, says: str) -> None:
    before = industries.workspace.draft.spec
    send(industries.codebook, "mine.csv", content)
    assert says in industries.wrong.object
    assert "mine.csv" in industries.wrong.object
    assert industries.workspace.draft.spec == before
