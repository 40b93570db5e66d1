"""The pages of workspaces: a workspace outlives its page, and its browser's next page continues it."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from anonflow.dashboards.session.draft_spec import NO_FLOW, DraftSpec
from anonflow.dashboards.session.workspace import Workspace

LOADING = 5.0
"""Seconds that a page may take until a browser has drawn it: so long its workspace is not free."""


@dataclass(eq=False)
class Seat:
    """A workspace, and the page that shows it."""

    key: str = field(repr=False)
    """A secret of the browser that it belongs to; empty for nobody's."""
    workspace: Workspace
    document: Any
    """Of the page; None while no page shows it."""
    begun: DraftSpec = field(repr=False)
    """The draft that every session begins with: as long as that is all there is, nothing is lost with it."""
    seen: bool = False
    """Whether a browser has drawn the page."""
    number: str = ""
    """Of the page: what it tells when it is about to go. No secret."""
    since: float = field(default_factory=lambda: monotonic())
    """Since when this page, or no page, shows it."""
    moved: Callable[[], None] = lambda: None
    """Called when another page takes the workspace up."""

    @property
    def names(self) -> tuple[str, str]:
        """What an address may say of it: the number of its page, and that of its folder, which outlives the server."""
        return self.number, self.workspace.place.number

    @property
    def has_work(self) -> bool:
        """Whether work would be lost with it."""
        workspace = self.workspace
        return bool(workspace.runs.finished or workspace.starts.running) or workspace.draft.spec != self.begun

    @property
    def is_free(self) -> bool:
        """Whether its page is gone."""
        if self.document is None:
            return True
        if not self.seen and monotonic() - self.since < LOADING:
            return False
        context = self.document.session_context
        session = None if context is None else context.session
        return session is None or session.destroyed or session.connection_count == 0


class Seats:
    """All workspaces of a server, each kept for some seconds without a page. Everything happens on the event loop; only :attr:`shown` is asked elsewhere."""

    def __init__(self, seconds: float, schedule: Callable[[Callable[[], None]], None]) -> None:
        self.seconds = seconds
        self._schedule = schedule
        self._seats: list[Seat] = []
        self._guard = threading.Lock()

    def _all(self) -> list[Seat]:
        with self._guard:
            return list(self._seats)

    @property
    def _waiting(self) -> list[Seat]:
        """Those that no page shows."""
        return [seat for seat in self._all() if seat.document is None]

    @property
    def shown(self) -> int:
        """How many workspaces a page shows."""
        return sum(seat.document is not None for seat in self._all())

    def of(self, document: Any) -> Seat | None:
        """Return the seat of a page."""
        return next((seat for seat in self._all() if seat.document is document), None)

    def add(self, key: str, workspace: Workspace, document: Any, begun: DraftSpec = NO_FLOW) -> Seat:
        """Return a new workspace, its page, and the draft that every session begins with."""
        seat = Seat(key, workspace, document, begun, number=secrets.token_hex(8))
        with self._guard:
            self._seats.append(seat)
        return seat

    def of_key(self, key: str) -> list[Seat]:
        """Return the workspaces of a browser; the one that was shown last is the first."""
        seats = [seat for seat in self._all() if key and seat.key == key]
        return sorted(seats, key=lambda seat: seat.since, reverse=True)

    def free_of(self, key: str, leaving: str = "") -> Seat | None:
        """Return the workspace with work in it of a browser whose page is gone; the one that was left last.

        A page that is loaded anew is asked for before it is gone: `leaving` is its number.
        """
        seats = self.of_key(key)
        goes = [seat for seat in seats if leaving and seat.number == leaving]
        if goes:
            return goes[0]
        seats = [seat for seat in seats if seat.is_free and seat.has_work]
        now = monotonic()  # a page that is gone, and was not looked at yet, was left last
        return max(seats, key=lambda seat: seat.since if seat.document is None else now, default=None)

    def take_up(self, seat: Seat, document: Any, schedule: Callable[[Callable[[], None]], None]) -> None:
        """Show a workspace in another page."""
        seat.moved()
        seat.document, seat.seen, seat.since, seat.number = document, False, monotonic(), secrets.token_hex(8)
        seat.moved = lambda: None
        seat.workspace.move(schedule)

    def leave(self, document: Any) -> Workspace | None:
        """End a page that is gone for good: keep its workspace for a while if there is work in it, else return it."""
        seat = self.of(document)
        if seat is None:
            return None  # another page shows it by now
        if self.seconds and seat.key and seat.has_work:
            seat.document, seat.since = None, monotonic()
            seat.moved = lambda: None
            seat.workspace.move(self._schedule)
            return None
        self._remove(seat)
        return seat.workspace

    @property
    def with_work(self) -> list[Workspace]:
        """The workspaces with a table and work in them that a browser may come back to."""
        return [
            seat.workspace
            for seat in self._all()
            if seat.key and seat.has_work and seat.workspace.data.frame is not None
        ]

    def make_room(self) -> bool:
        """Leave the workspace that has been without a page the longest on disk, for its browser to go on with; whether there was one."""
        waiting = self._waiting
        if not waiting:
            return False
        self._close(min(waiting, key=lambda seat: seat.since), keep=True)
        return True

    @property
    def kept(self) -> int:
        """How many workspaces are kept that no page shows."""
        return len(self._waiting)

    def sweep(self) -> None:
        """End the workspaces that have been without a page for too long."""
        now = monotonic()
        for seat in self._waiting:
            if now - seat.since >= self.seconds:
                self._close(seat)

    def revoke(self, key: str) -> None:
        """Revoke the key of a browser: what is kept for it ends, and so does what a page shows."""
        for seat in self.of_key(key):
            seat.key = ""
            if seat.document is None:
                self._close(seat)

    def _close(self, seat: Seat, keep: bool = False) -> None:
        self._remove(seat)
        seat.workspace.close(keep=keep and bool(seat.key) and seat.workspace.data.frame is not None)

    def _remove(self, seat: Seat) -> None:
        with self._guard:
            if seat in self._seats:
                self._seats.remove(seat)
