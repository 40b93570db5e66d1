"""How long a call will take, shown in a notebook or a terminal while it works."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

LONG, FIRST, APART = 10.0, 2.0, 1.0
"""Seconds: what is expected to take longer says so, after so many, and anew after so many more."""


def rough(seconds: float) -> float:
    """Return expected seconds with two digits: they are no better than that."""
    return float(f"{seconds:.2g}")


class Countdown:
    """Parts of a call that are done; who reads along sees how long the others will take if the whole takes over 10 seconds.

    Parameters
    ----------
    name : str
        What works.
    parts : int
        How many parts of about the same size it has.
    clock, show : callable, optional
        Seconds of a clock, and what shows a text; by default the notebook's cell, each second, or a line in a terminal, each ten
        seconds, and nothing elsewhere.
    hint : str
        What would take less time, where a part is at work for long.
    expect : callable, optional
        Seconds that all parts are expected to take, None if that cannot be estimated; called once, where a part is at work for long.
    """

    def __init__(
        self,
        name: str,
        parts: int,
        clock: Callable[[], float] = time.monotonic,
        show: Callable[[str], None] | None = None,
        hint: str = "",
        expect: Callable[[], float | None] | None = None,
    ) -> None:
        self.name, self.parts, self.clock, self.hint, self.expect = name, parts, clock, hint, expect
        self.expected: float | None = None
        self.apart = APART
        if show is None:
            show = notebook_cell()
        if show is None:
            show, self.apart = terminal_line(), LONG
        self.show = show
        self.done = 0
        self.start = self.first = clock()
        self.next = self.start
        self.is_shown = False

    def announce(self, text: str, expected: float) -> None:
        """Show what is expected before the work starts; from then on the seconds are named with it."""
        self.expected = rough(expected)
        if self.show is not None:
            self.show(text)
            self.is_shown = True

    def wait(self) -> None:
        """Say that a part is at work for long, as long as none that are done tell how long the others take."""
        now = self.clock()
        if self.show is None or self.done > 1 or now < max(self.start + LONG, self.next):
            return
        if self.expect is not None:
            expect, self.expect = self.expect, None
            expected = expect()
            self.expected = None if expected is None else rough(expected)
            now = self.clock()
        self.next = now + self.apart
        passed = now - self.start
        of = f" of about {self.expected:,.0f}" if self.expected is not None and passed < self.expected else ""
        self.show(f"{self.name}: at work for {passed:,.0f}{of} s{self.hint}")
        self.is_shown = True

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
        self.next = now + self.apart
        expected = (now - self.first) / (self.done - 1) * (self.parts - 1)
        if self.is_shown or expected > LONG:
            seconds = max(1, round(expected - (now - self.first)))
            self.show(
                f"{self.name}: {self.done:,} of {self.parts:,} partitions, about {seconds:,} of {expected:,.0f} s are left"
            )
            self.is_shown = True


def terminal_line() -> Callable[[str], None] | None:
    """Return what writes a line to a terminal; None where nobody reads along, as in a pipeline or another thread."""
    stream = sys.stderr
    if stream is None or not stream.isatty() or threading.current_thread() is not threading.main_thread():
        return None

    def show(text: str) -> None:
        stream.write(f"anonflow: {text}\n")
        stream.flush()

    return show


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
