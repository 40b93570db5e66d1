"""What begins in a thread of its own in a session begins here when a test says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest


class Hand:
    """Works that a session began, done by the test itself, one after the other."""

    def __init__(self) -> None:
        self.works: list[Callable[[], None]] = []
        self.names: list[str] = []
        self.is_working = False

    def begin(self, work: Callable[[], None], name: str) -> None:
        """Take a work, and do nothing; the progress that is shown as time goes by is left out."""
        if name != "anonflow-progress":
            self.works.append(work)
            self.names.append(name)

    def do(self) -> None:
        """Do the work that came first."""
        self.is_working = True
        try:
            self.works.pop(0)()
        finally:
            self.is_working = False

    def do_all(self) -> None:
        """Do all works, and those that begin meanwhile."""
        while self.works:
            self.do()


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hand]:
    """No session of the test begins a thread: the test does the works."""
    threads = pytest.importorskip("anonflow.dashboards.work.fair_queue", reason="the dashboards are an extra")
    hand = Hand()
    monkeypatch.setattr(threads, "begin_thread", hand.begin)
    yield hand
    hand.do_all()  # the queue is one for all tests: nobody stays in it
