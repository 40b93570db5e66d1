"""The queue of the runs: the user who was served longest ago comes next, so each user gets a turn."""

from __future__ import annotations

import heapq
import itertools
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Hashable
from functools import cache, partial

from anonflow.errors import unforeseen

LOG = logging.getLogger("anonflow.dashboards")


class Ticket:
    """A place in the queue, from :meth:`FairQueue.join`: so many works come before this one; -1 when it has begun, or left."""

    def __init__(
        self, line: FairQueue, owner: Hashable, work: Callable[[], None], on_move: Callable[[], None]
    ):
        self._line = line
        self.owner = owner
        self.work = work
        self.on_move = on_move
        self.place = -1

    def leave(self) -> bool:
        """Leave the queue; return False if the work has begun already."""
        return self._line._leave(self)


class FairQueue:
    """Work of several users for a fixed number of slots.

    Invariant: a free slot goes to the waiting user who was served longest ago (users never served come
    first, in the order in which they came), and to the oldest work of that user. So between two works of one
    user every other user who waits gets a turn. O(w log w) for each change with w waiting works.

    Parameters
    ----------
    slots : int
        How many works are done at the same time, each in a thread of its own.

    Attributes
    ----------
    ended : int
        Works that were begun and are over, however they ended.
    """

    def __init__(self, slots: int) -> None:
        self.slots = max(1, slots)
        self._lock = threading.Lock()
        self._waiting: list[Ticket] = []
        self._busy: dict[Ticket, Hashable] = {}
        self._served: dict[Hashable, int] = {}
        self._clock = itertools.count(1)
        self.ended = 0

    @property
    def waiting(self) -> int:
        """Works that wait."""
        return len(self._waiting)

    @property
    def busy(self) -> int:
        """Works that are being done."""
        return len(self._busy)

    def join(self, owner: Hashable, work: Callable[[], None], on_move: Callable[[], None]) -> Ticket:
        """Join the queue.

        `work` is called in a thread of its own when it is its turn; its errors are logged, without their messages. `on_move` is called whenever
        `place` of the ticket has changed; from any thread, and outside the queue's lock.
        """
        ticket = Ticket(self, owner, work, on_move)
        with self._lock:
            self._waiting.append(ticket)
        self._move()
        return ticket

    def forget(self, owner: Hashable) -> None:
        """Remove the waiting works of a user who has left."""
        with self._lock:
            self._waiting = [ticket for ticket in self._waiting if ticket.owner != owner]
            self._served.pop(owner, None)
        self._move()

    def _leave(self, ticket: Ticket) -> bool:
        with self._lock:
            if ticket not in self._waiting:
                return False
            self._waiting.remove(ticket)
        self._move()
        return True

    def _order(self) -> list[Ticket]:
        """Return the waiting works in the order in which they will be served, if nobody else comes."""
        queues: dict[Hashable, deque[Ticket]] = {}
        for ticket in self._waiting:
            queues.setdefault(ticket.owner, deque()).append(ticket)
        turns = [(self._served.get(owner, 0), came, owner) for came, owner in enumerate(queues)]
        heapq.heapify(turns)
        last = max(self._served.values(), default=0)
        order = []
        while turns:
            _, came, owner = heapq.heappop(turns)
            order.append(queues[owner].popleft())
            last += 1
            if queues[owner]:
                heapq.heappush(turns, (last, came, owner))
        return order

    def _move(self) -> None:
        """Fill the free slots, and update the places of all others."""
        begun, moved = [], []
        with self._lock:
            order = self._order()
            while order and len(self._busy) < self.slots:
                ahead = order.pop(0)
                self._waiting.remove(ahead)
                ahead.place = -1
                self._busy[ahead] = ahead.owner
                self._served[ahead.owner] = next(self._clock)
                begun.append(ahead)
            for place, ticket in enumerate(order):
                if ticket.place != place:
                    ticket.place = place
                    moved.append(ticket)
        for ticket in begun:
            begin_thread(partial(self._do, ticket), "anonflow-slot")
        for ticket in moved:
            ticket.on_move()

    def _do(self, ticket: Ticket) -> None:
        try:
            ticket.work()
        except Exception as error:  # its message may contain a cell, and the thread would print it
            LOG.error(unforeseen(error))
        finally:
            with self._lock:
                self._busy.pop(ticket, None)
                self.ended += 1
            self._move()


def begin_thread(work: Callable[[], None], name: str) -> None:
    """Begin `work` in a thread of its own, which ends with the process: the one place where a session begins threads."""
    threading.Thread(target=work, name=name, daemon=True).start()


@cache
def local_line() -> FairQueue:
    """Return the queue of this process, for a single user: as many slots as processors."""
    return FairQueue(os.cpu_count() or 1)
