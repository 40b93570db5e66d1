"""Workspaces outlive their pages: taken up by their browser alone, kept for a while, ended in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.server import seats as module
from anonflow.dashboards.server.seats import Seat, Seats
from anonflow.dashboards.session.draft_spec import NO_FLOW
from anonflow.dashboards.session.workspace import Workspace
from tests.dashboards.conftest import Hand


def page(connections: int = 1) -> Any:
    session = SimpleNamespace(destroyed=False, connection_count=connections)
    return SimpleNamespace(session_context=SimpleNamespace(session=session))


def gone(document: Any) -> None:
    document.session_context.session.connection_count = 0


@pytest.fixture
def workspaces() -> Iterator[list[Workspace]]:
    workspaces: list[Workspace] = []
    yield workspaces
    for workspace in workspaces:
        workspace.close()


def at_once(change: Callable[[], None]) -> None:
    change()


def begun(seats: Seats, workspaces: list[Workspace], key: str, document: Any, with_work: bool = True) -> Seat:
    workspace = Workspace()
    workspaces.append(workspace)
    seat = seats.add(key, workspace, document, NO_FLOW)
    seat.seen = True
    if with_work:
        workspace.opener.open_dataset("census_like", n=30, seed=1)
    return seat


def test_a_browsers_next_page_takes_up_what_its_last_one_left(workspaces: list[Workspace]) -> None:
    seats = Seats(60.0, at_once)
    first, second = page(), page()
    seat = begun(seats, workspaces, "anna", first)
    begun(seats, workspaces, "ben", second)
    assert seats.free_of("anna") is None  # its page is there: another tab gets a session of its own
    assert seats.free_of("anna", seat.number) is seat  # it is about to go
    assert seats.free_of("ben", seat.number) is None  # which others cannot say of it
    assert seats.free_of("", seat.number) is None
    gone(first)
    assert seats.free_of("anna") is seat
    assert seats.free_of("") is None
    messages = []
    seat.moved = lambda: messages.append("moved")
    number, again = seat.number, page()
    seats.take_up(seat, again, at_once)
    assert messages == ["moved"]
    assert seat.number != number
    assert seats.leave(first) is None  # the page that is gone has nothing any more
    assert seats.shown == 2


def test_only_work_is_kept_and_not_for_ever(
    workspaces: list[Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    seats = Seats(60.0, at_once)
    empty, full = page(), page()
    nothing = begun(seats, workspaces, "anna", empty, with_work=False)
    work = begun(seats, workspaces, "anna", full)
    assert seats.leave(empty) is nothing.workspace
    assert seats.leave(full) is None
    assert (seats.shown, seats.kept) == (0, 1)
    now[0] += 59
    seats.sweep()
    assert seats.free_of("anna") is work
    now[0] += 2
    seats.sweep()
    assert seats.kept == 0
    assert not work.workspace.folder.exists()
    # a server that keeps nothing hands everything back
    none = Seats(0.0, at_once)
    last = page()
    assert none.leave(last) is None
    left = begun(none, workspaces, "anna", last)
    assert none.leave(last) is left.workspace


def test_a_page_that_was_never_drawn_loses_no_work(
    workspaces: list[Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that is loaded anew before it was drawn, as after a restart: its session is not the one that has the work."""
    now = [100.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    seats = Seats(60.0, at_once)
    document = page(connections=0)
    seat = begun(seats, workspaces, "anna", document)
    seat.seen = False
    assert seats.free_of("anna") is None  # it may be about to be drawn
    now[0] += module.LOADING
    assert seats.free_of("anna") is seat
    assert seats.leave(document) is None
    assert seats.free_of("anna") is seat
    assert seat.workspace.folder.exists()


def test_a_revoked_key_opens_nothing(workspaces: list[Workspace]) -> None:
    seats = Seats(60.0, at_once)
    shown, left = page(), page()
    seat, other = begun(seats, workspaces, "anna", shown), begun(seats, workspaces, "anna", left)
    assert seats.leave(left) is None
    seats.revoke("anna")
    assert not other.workspace.folder.exists()
    gone(shown)
    assert seats.free_of("anna") is None
    assert seats.leave(shown) is seat.workspace


def test_room_is_made_by_the_one_that_was_left_first(
    workspaces: list[Workspace], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(module, "monotonic", lambda: now[0])
    seats = Seats(60.0, at_once)
    pages = [page(), page()]
    seat, two = (begun(seats, workspaces, "anna", document) for document in pages)
    assert not seats.make_room()
    for document in reversed(pages):
        seats.leave(document)
        now[0] += 1
    assert seats.make_room()
    assert seat.workspace.folder.exists()
    # it is on disk, for its browser to go on with
    assert two.workspace.closed
    assert (two.workspace.folder.parent / "draft.yaml").exists()
    two.workspace.place.delete()


def test_runs_go_on_without_a_page_and_no_change_is_lost(workspaces: list[Workspace], hand: Hand) -> None:
    seats = Seats(60.0, at_once)
    document = page()
    seat = begun(seats, workspaces, "anna", document)
    workspace = seat.workspace
    lost: list[Any] = []
    workspace.turns.schedule = lost.append  # a page that is gone makes no changes any more
    watched: list[Any] = []
    workspace.runs.param.watch(watched.append, "finished")
    workspace.draft.set_algorithms(["mondrian"])
    arrived: list[str] = []
    workspace.turns.line.join(
        "anna", lambda: workspace.turns.later(lambda: arrived.append("here")), lambda: None
    )
    workspace.start()
    batch = workspace.starts.batch
    assert batch is not None
    assert seats.leave(document) is None
    hand.do_all()
    assert arrived == ["here"]
    assert len(workspace.runs.finished) == 1
    assert not workspace.starts.running
    assert watched == []  # whoever looked is gone
    workspace.draft.set_ks([4])
    assert workspace.place is not None
    assert "4" in (workspace.place.path / "draft.yaml").read_text()  # the draft is kept still
