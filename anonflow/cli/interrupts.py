"""The effect of Ctrl-C and SIGTERM on a command, from its first import to the end of its process.

This module is loaded before anything that takes time, so it loads next to nothing itself.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any, Protocol

    class Cancellable(Protocol):
        """The object that a signal cancels: a run's events, or a search.

        Attributes
        ----------
        publishing : bool
            Whether it writes files: then it is no longer cancelled.
        ends_itself : bool
            Whether it then ends by itself, with a result.
        """

        publishing: bool
        ends_itself: bool

        def cancel(self) -> None:
            """Stop as soon as possible."""


INTERRUPTED = 130
"""The exit status of a command that was interrupted; nothing was published then."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)

IMPATIENT = 3
"""The number of signals that end the process at once, without waiting for clean-up."""


class Interrupts:
    """The signals of this process that ask it to stop.

    Attributes
    ----------
    came : int
        How many of them came while the command was at work.

    Notes
    -----
    A command that holds nothing on disk ends at once: an exception that is raised in the middle of an import may be
    turned into another, or lost. A run is cancelled, so that it removes its temporary files. While it writes its
    published files it is not stopped, because status 130 would then be wrong. When the status is known, a signal ends
    the process with that status.
    """

    def __init__(self) -> None:
        self._restore: Callable[[], None] = lambda: None
        self._forget()

    def _forget(self) -> None:
        """Reset the state before a command; a process may call several."""
        self.came = 0
        self._events: Cancellable | None = None
        self._writing = False
        self._status: int | None = None

    def begin(self, to_the_end: bool) -> None:
        """Handle the signals; permanently if the process ends with the command. Only the main thread can do this."""
        self._forget()
        try:
            before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        except ValueError:
            return
        if to_the_end:
            # the first function that is registered runs last: after it Python removes all handlers, and a signal kills
            atexit.register(lambda: [signal.signal(number, signal.SIG_IGN) for number in SIGNALS])
        hook = sys.unraisablehook
        # an interruption that cannot be caught, and pipes to processes that have ended
        silent = (KeyboardInterrupt, BrokenPipeError)
        sys.unraisablehook = lambda lost: None if issubclass(lost.exc_type, silent) else hook(lost)
        if not to_the_end:
            self._restore = lambda: _restore(before, hook)

    def end(self) -> None:
        """Handle the signals as before the command, unless the process ends with it."""
        self._restore()
        self._restore = lambda: None

    def follow(self, events: Cancellable) -> None:
        """Begin a run, which a signal cancels until it publishes, or a search, which a signal ends."""
        self._events = events

    def hold(self) -> None:
        """Files are written from here on: finish them before a signal ends the process."""
        self._writing = True

    @property
    def too_late(self) -> bool:
        """Whether files are being, or were, written."""
        return self._writing or (self._events is not None and self._events.publishing)

    def over(self, status: int) -> None:
        """End the command, whose result is printed: a later signal ends the process with its status."""
        self._status = status

    def _handle(self, number: int, frame: FrameType | None) -> Any:
        if self._status is not None:
            os._exit(self._status)
        self.came += 1
        if self.too_late:
            return
        if self._events is not None and self.came < IMPATIENT:
            if self.came == 1:
                self._events.cancel()
                if self._events.ends_itself:
                    self.came = 0
                    self._events = None
                    return
                raise KeyboardInterrupt
            return
        try:
            os.write(2, b"anonflow: interrupted; nothing was published\n")
        finally:
            os._exit(INTERRUPTED)


def _restore(handlers: dict[signal.Signals, Any], hook: Any) -> None:
    sys.unraisablehook = hook
    for number, handler in handlers.items():
        signal.signal(number, handler)


INTERRUPTS = Interrupts()
"""Those of this process."""
