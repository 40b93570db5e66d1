"""A queue in which nobody is served for a while: what waits can be looked at, however busy the machine is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from anonflow.dashboards.work.fair_queue import FairQueue


@contextmanager
def held_slots(line: FairQueue) -> Iterator[None]:
    """Hold all free slots of a queue."""
    go = threading.Event()
    for slot in range(line.slots):
        line.join(f"slot {slot}", lambda: go.wait(900), lambda: None)
    try:
        yield
    finally:
        go.set()
