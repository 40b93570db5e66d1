"""Slow work of a screen: off the event loop, in the queue of the runs or at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import param

from anonflow.dashboards.session.screen_words import on_screen
from anonflow.dashboards.work import fair_queue
from anonflow.errors import BUG, AnonflowError, unforeseen

FEW = 20_000
"""Records up to which a screen computes at once; with more, in a thread of its own."""


class Turns(Protocol):
    """What a workspace gives to work that is done aside."""

    def aside(self, work: Callable[[], None]) -> None:
        """Have `work` done in a thread, in line with the runs of everybody."""

    def later(self, change: Callable[[], None]) -> None:
        """Have `change` called where params may change."""


class Background:
    """One work at a time for one screen.

    The result of a superseded work is discarded: only the latest one's is passed on.

    Parameters
    ----------
    at_once : bool
        Whether it begins at once, in a thread of its own, instead of waiting in line with the runs of everybody.
    """

    def __init__(self, workspace: Turns, at_once: bool = False) -> None:
        self._workspace = workspace
        self._at_once = at_once
        self._latest = 0
        self._over = threading.Event()
        self._over.set()

    @property
    def busy(self) -> bool:
        """Whether something is being done."""
        return not self._over.is_set()

    def of_records(
        self, n: int, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[str], None]
    ) -> None:
        """Do `work` on `n` records: at once where there are few, else aside; what was going on is superseded."""
        if n > FEW:
            self.start(work, done, failed)
            return
        self.forget()
        try:
            result = work()
        except AnonflowError as error:
            failed(on_screen(error.message))
        else:
            done(result)

    def start(
        self, work: Callable[[], Any], done: Callable[[Any], None], failed: Callable[[str], None]
    ) -> None:
        """Do `work` in the background, then call `done` with its result, or `failed` with a sentence."""
        self._latest += 1
        own = self._latest
        self._over.clear()

        def finish(call: Callable[[Any], None], answer: Any) -> None:
            if own != self._latest:
                return
            try:
                call(answer)
            finally:
                if own == self._latest:  # `call` may have started the next one
                    self._over.set()

        def at_work() -> None:
            try:
                result = work()
            except AnonflowError as error:
                call, answer = failed, on_screen(error.message)
            except MemoryError:
                call, answer = failed, "there is not enough memory for this; take a smaller table"
            except Exception as error:  # in a thread nobody hears it, and its words may hold a cell
                call, answer = failed, f"{unforeseen(error)}; {BUG}"
            else:
                call, answer = done, result
            self._workspace.later(lambda: finish(call, answer))

        if self._at_once:
            fair_queue.begin_thread(at_work, "anonflow-aside")
        else:
            self._workspace.aside(at_work)

    def compute(
        self,
        owner: param.Parameterized,
        flag: str,
        work: Callable[[], Any],
        done: Callable[[Any], Mapping[str, Any] | None],
        **before: Any,
    ) -> None:
        """Do `work` in the background for `owner`, whose param `flag` is true meanwhile.

        Parameters
        ----------
        done : callable
            Takes the result, and returns what other params become by it. Where the work fails, ``problem`` says why.
        **before
            What other params are until then.
        """

        def end(**changes: Any) -> None:
            owner.param.update(**{flag: False, **changes})

        owner.param.update(**{flag: True, "problem": "", **before})
        self.start(work, lambda result: end(**(done(result) or {})), lambda problem: end(problem=problem))

    def forget(self) -> None:
        """Discard the running work: its result is not shown."""
        self._latest += 1
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
