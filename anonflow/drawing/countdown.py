"""How long a call will take, shown in a notebook while it works."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

__all__ = ["Countdown", "notebook_cell"]

LONG, FIRST, APART = 10.0, 2.0, 1.0
"""Seconds: what is expected to take longer says so, after so many, and anew after so many more."""


class Countdown:
    """Parts of a call that are done; a notebook shows how long the others will take if the whole takes over 10 seconds.

    Parameters
    ----------
    name : str
        What works.
    parts : int
        How many parts of about the same size it has.
    clock, show : callable, optional
        Seconds of a clock, and what shows a text; by default the notebook's cell, and nothing elsewhere.
    """

    def __init__(
        self,
        name: str,
        parts: int,
        clock: Callable[[], float] = time.monotonic,
        show: Callable[[str], None] | None = None,
    ) -> None:
        self.name, self.parts, self.clock = name, parts, clock
        self.show = notebook_cell() if show is None else show
        self.done = 0
        self.start = self.first = clock()
        self.next = self.start
        self.is_shown = False

    def step(self) -> None:
        """Count a part that is done."""
        self.done += 1
        now = self.clock()
        if self.show is None or (now < self.next and self.done < self.parts):
            return
        if self.done == self.parts:
            if self.is_shown:
                self.show(f"{self.name}: {now - self.start:,.0f} s")
            return
        if self.done == 1:  # it may have waited for the compiler, or for another run
            self.first, self.next = now, now + FIRST
            return
        self.next = now + APART
        expected = (now - self.first) / (self.done - 1) * (self.parts - 1)
        if self.is_shown or expected > LONG:
            left = max(1, round(expected - (now - self.first)))
            self.show(
                f"{self.name}: {self.done:,} of {self.parts:,} partitions, about {left:,} of {expected:,.0f} s are left"
            )
            self.is_shown = True


def notebook_cell() -> Callable[[str], None] | None:
    """Return what shows a text in the notebook's cell, each over the one before; None where nobody reads along."""
    ipython: Any = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    # a cell that may ask a question is read by a person; a stored notebook that a program runs keeps the same outputs
    if not getattr(getattr(shell, "kernel", None), "_allow_stdin", False):
        return None
    handle: Any = None

    def show(text: str) -> None:
        nonlocal handle
        content = {"text/plain": text}
        if handle is None:
            handle = ipython.display.display(content, raw=True, display_id=True)
        else:
            handle.update(content, raw=True)

    return show
