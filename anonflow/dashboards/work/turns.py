"""The turns of one user's work: on the event loop, and in the queue for a free processor."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from anonflow.dashboards.work.fair_queue import FairQueue, Ticket, local_line


class Turns:
    """What the threads of a user hand over to the event loop, and the user's place in the queue.

    Parameters
    ----------
    schedule : callable, optional
        Takes a callable and has it called where params may change: a server's event loop. At once without it.
    line : FairQueue, optional
        The queue of all users' work; by default that of the process.
    """

    def __init__(
        self,
        schedule: Callable[[Callable[[], None]], None] | None = None,
        line: FairQueue | None = None,
    ) -> None:
        self.line = line or local_line()
        self.schedule = schedule or (lambda change: change())
        self._pending: deque[Callable[[], None]] = deque()

    def aside(self, work: Callable[[], None], on_move: Callable[[], None] = lambda: None) -> Ticket:
        """Have `work` done in a thread of its own, in line with the work of everybody, as :meth:`FairQueue.join` does."""
        return self.line.join(id(self), work, on_move)

    def later(self, change: Callable[[], None]) -> None:
        """Have `change` called where params may change; for work that ends in another thread."""
        self._pending.append(change)
        self.schedule(self._make_changes)

    def _make_changes(self) -> None:
        """Make the changes that wait; none is lost with the page that was to make it."""
        while True:
            try:
                change = self._pending.popleft()
            except IndexError:
                return
            try:
                change()
            except BaseException:
                if self._pending:
                    self.schedule(self._make_changes)
                raise

    def move(self, schedule: Callable[[Callable[[], None]], None]) -> None:
        """Continue on another event loop; what waits is done there."""
        self.schedule = schedule
        self.schedule(self._make_changes)

    def end(self) -> None:
        """Leave the queue."""
        self.line.forget(id(self))
