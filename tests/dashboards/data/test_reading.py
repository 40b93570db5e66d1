"""What takes long while a table is opened says how far it is and can be cancelled; it is looked at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards import Workspace
from anonflow.dashboards.app import App
from anonflow.dashboards.data.screen import OWN, DataScreen
from anonflow.dashboards.session.open_table import UNCODED
from anonflow.dashboards.work import screen_work
from anonflow.errors import DataError, FlowError
from anonflow.table import infer
from tests.dashboards.conftest import Hand
from tests.dashboards.data.uploading import send

PEOPLE = "age,town,income\n" + "".join(
    f"{20 + i % 9},{('Volos', 'Patras')[i % 2]},{('low', 'high')[i % 3 == 0]}\n" for i in range(60)
)


@pytest.fixture
def workspace(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setattr(screen_work, "FEW", 10)  # sixty records are many
    item = Workspace()
    yield item
    item.close()


@pytest.fixture
def screen(workspace: Workspace) -> DataScreen:
    item = DataScreen(workspace=workspace)
    item.way.value = OWN
    return item


def heard(background: Any, at: str = "") -> list[str]:
    """What a background says from now on; it is cancelled once, when that begins with `at`."""
    words: list[str] = []

    def note(event: Any) -> None:
        words.append(event.new)
        if at and event.new.startswith(at) and "" not in words:
            background.cancel()

    background.param.watch(note, "doing")
    return words


def test_a_file_is_read_column_by_column_and_each_is_looked_at_once(
    screen: DataScreen, workspace: Workspace, hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    def advice(name: str, *cells: Any) -> infer.Advice:
        looked.append(name)
        return look(name, *cells)

    look = infer._advice
    monkeypatch.setattr(infer, "_advice", advice)
    reading, counting = heard(screen.reading), heard(screen.choice.background)
    send(screen.dropper, "people.csv", PEOPLE.encode())
    assert reading == ["Reading people.csv"]
    hand.do_all()
    assert reading[1:4] == [f"looking at column {name}" for name in ("age", "town", "income")]
    assert [words for words in counting if words.startswith("counting column")] == [
        f"counting column {name}" for name in ("age", "town", "income")
    ]
    assert looked == ["age", "town", "income"]
    screen.choice.choose("town", "role", "sensitive")
    hand.do_all()
    screen.choice.infer()
    hand.do_all()
    assert looked == ["age", "town", "income"]
    assert screen.choice.declared("town").role == "quasi-identifier"


@pytest.mark.parametrize("at", ["Reading", "looking at column town"])
def test_a_file_whose_reading_is_cancelled_is_gone(
    screen: DataScreen, workspace: Workspace, hand: Hand, at: str
) -> None:
    line = screen._source[2]
    send(screen.dropper, "first.csv", PEOPLE.encode())
    hand.do_all()
    frame, status = workspace.data.frame, workspace.starts.status
    heard(screen.reading, at)
    send(screen.dropper, "people.csv", PEOPLE.encode())
    hand.do_all()
    assert workspace.data.frame is frame
    assert workspace.starts.status == status
    assert not screen.reading.busy
    assert not line.visible
    assert not screen._ways_in.loading
    assert not screen.wrong.visible
    assert not list(workspace.folder.parent.glob("reading-*"))
    assert not (workspace.folder / "people.csv").exists()
    send(screen.dropper, "people.csv", PEOPLE.encode())  # it is taken again
    hand.do_all()
    assert workspace.data.table_name == "people.csv"


def test_a_file_that_is_refused_leaves_the_open_one_of_its_name(workspace: Workspace, tmp_path: Path) -> None:
    for name, text in (("good", PEOPLE), ("bad", "age,age\n1,2\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    workspace.opener.open_file("people.csv", tmp_path / "good")
    with pytest.raises(DataError):
        workspace.opener.open_file("people.csv", tmp_path / "bad")
    assert (workspace.folder / "people.csv").read_text(encoding="utf-8") == PEOPLE


@pytest.mark.parametrize("at", ["looking at the columns", "counting column town"])
def test_counting_is_cancelled_and_begun_again(
    screen: DataScreen, workspace: Workspace, hand: Hand, at: str
) -> None:
    choice = screen.choice
    words = heard(choice.background, at)
    send(screen.dropper, "people.csv", PEOPLE.encode())
    hand.do_all()
    assert words[-2:] == [at, ""]
    assert not choice.counting
    assert "cancelled" in choice.refusal
    assert list(choice.rows["column"]) == ["age", "town", "income"]
    assert set(choice.rows["type"]) == {"not counted"}
    assert choice.choose("income", "role", "insensitive")
    choice.infer()
    hand.do_all()
    assert list(choice.rows["distinct"]) == [9, 2, 2]
    assert choice.bars


def test_coding_that_is_cancelled_says_how_to_go_on(hand: Hand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen_work, "FEW", 30)
    space = Workspace(aside=True)
    app = App(workspace=space)
    screen = DataScreen(workspace=space)
    words, shares = heard(space.data.coder, "coding column Gender"), []
    space.data.coder.param.watch(lambda event: shares.append(event.new), "share")
    space.opener.open_dataset("census_like", n=60, seed=3)
    assert app.at_work.line.visible
    hand.do_all()
    assert words == ["coding the table", "coding column Age", "coding column Gender", ""]
    assert shares == [0.0, 0.125]
    assert not app.at_work.line.visible
    assert not space.data.coding
    assert space.data.table is None
    assert space.data.problems == (UNCODED,)
    assert "cancelled" in screen.trouble.object
    assert "cannot be used" not in screen.trouble.object

    # an edit of something else does not begin it again: the button does, and an edit of a column
    space.draft.set_ks([3])
    assert not hand.works
    with pytest.raises(FlowError, match="cancelled"):
        space.start()
    assert screen.code.visible
    screen.code.param.trigger("clicks")
    hand.do_all()
    assert space.data.table.n == 60
    assert space.data.problems == ()
    assert not screen.trouble.visible
    assert not screen.code.visible
    space.data.set_column("Education", role="insensitive")
    app.at_work.cancel.param.trigger("clicks")
    assert space.data.table is None
    space.draft.undo()
    hand.do_all()
    assert space.data.table.n == 60
    space.close()
