"""Slow work of a screen: off the event loop, in the queue of the runs or at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import param

from anonflow.dashboards.session.screen_words import WAITING, on_screen
from anonflow.dashboards.work import fair_queue
from anonflow.dashboards.work.turns import Turns
from anonflow.engine.execution.events import Cancelled
from anonflow.errors import BUG, AnonflowError, unforeseen

FEW = 20_000
"""Records up to which a screen computes at once; with more, in a thread of its own."""


class Background(param.Parameterized):
    """One work at a time for one screen.

    The result of a superseded work is discarded: only the latest one's is passed on. One whose turn has not come is not begun.

    Parameters
    ----------
    at_once : bool
        Whether it begins at once, in a thread of its own, instead of waiting in line with the runs of everybody.
    """

    doing = param.String(
        default="",
        doc="What is being done, in a few words; empty while nothing is, or where the screen does not show it.",
    )
    share = param.Number(default=None, allow_None=True, doc="The finished share; None where it is not known.")

    def __init__(self, turns: Turns, at_once: bool = False) -> None:
        super().__init__()
        self._turns = turns
        self._thread = threading.local()
        self._stopped: Callable[[], None] = lambda: None
        self._at_once = at_once
        self._latest = 0
        self._over = threading.Event()
        self._over.set()

    @property
    def busy(self) -> bool:
        """Whether something is being done."""
        return not self._over.is_set()

    def of_records(
        self,
        n: int,
        work: Callable[[], Any],
        take_result: Callable[[Any], None],
        failed: Callable[[str], None],
        words: str = "",
        stopped: Callable[[], None] = lambda: None,
    ) -> None:
        """Do `work` on `n` records: at once where there are few, else as :meth:`start` does; what was going on is superseded."""
        if n > FEW:
            self.start(work, take_result, failed, words, stopped)
            return
        self.forget()
        self._thread.number = self._latest
        try:
            result = work()
        except AnonflowError as error:
            failed(on_screen(error.message))
        else:
            take_result(result)

    def start(
        self,
        work: Callable[[], Any],
        take_result: Callable[[Any], None],
        failed: Callable[[str], None],
        words: str = "",
        stopped: Callable[[], None] = lambda: None,
    ) -> None:
        """Do `work` in the background, then call `take_result` with its result, `failed` with a sentence, or `stopped` once it is cancelled; `words` say what it is."""
        self._stopped = stopped
        self._latest += 1
        work_number = self._latest
        self._over.clear()
        self.param.update(doing=WAITING if words and not self._at_once else words, share=None)

        def finish(call: Callable[[Any], None], answer: Any) -> None:
            if work_number != self._latest:
                return
            try:
                call(answer)
            finally:
                if work_number == self._latest:  # `call` may have started the next one
                    self.doing = ""
                    self._over.set()

        def at_work() -> None:
            if work_number != self._latest:
                return
            self._thread.number = work_number
            try:
                if words:
                    self.tell(words)
                result = work()
            except AnonflowError as error:
                call, answer = failed, on_screen(error.message)
            except MemoryError:
                call, answer = failed, "there is not enough memory for this; take a smaller table"
            except Exception as error:  # in a thread nobody hears it, and its words may hold a cell
                call, answer = failed, f"{unforeseen(error)}; {BUG}"
            else:
                call, answer = take_result, result
            self._turns.later(lambda: finish(call, answer))

        if self._at_once:
            fair_queue.begin_thread(at_work, "anonflow-aside")
        else:
            self._turns.aside(at_work)

    def tell(self, words: str, count: int = 0, of: int = 0) -> None:
        """From the work: show what it is at, `count` of `of` steps, and end it here if nobody waits for it any more.

        Raises
        ------
        Cancelled
            If it was cancelled, or superseded.
        """
        work_number = getattr(self._thread, "number", self._latest)
        if work_number != self._latest:
            raise Cancelled("cancelled")

        def show() -> None:
            if work_number == self._latest and self.busy:
                self.param.update(doing=words, share=count / of if of else None)

        self._turns.later(show)

    def cancel(self) -> None:
        """End what is being done, at its next step; its owner can begin again at once."""
        if self.busy:
            self.forget()
            self._stopped()

    def forget(self) -> None:
        """Discard the running work: its result is not shown."""
        self._latest += 1
        self.doing = ""
        self._over.set()

    def wait(self, timeout: float | None = None) -> None:
        """Wait for the end, from another thread than the event loop's.

        Raises
        ------
        TimeoutError
            If that takes longer than `timeout` seconds.
        """
        if not self._over.wait(timeout):
            raise TimeoutError("the work is not over yet")
