"""A flow that runs in the background, for a dashboard."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from os import PathLike
from typing import Any

from anonflow.engine.execution.events import EventStream
from anonflow.engine.execution.result import RunReport
from anonflow.engine.flows.flow import Flow
from anonflow.engine.run import run


class Handle:
    """A flow that runs in the background.

    Attributes
    ----------
    events : EventStream
        Iterate over it to follow the run; ``events.cancel()`` stops it.
    """

    def __init__(self, flow: str | PathLike[str] | Flow, settings: dict[str, Any]) -> None:
        self.events = EventStream()
        self._end: Future[RunReport] = Future()

        def work() -> None:
            try:
                self._end.set_result(run(flow, events=self.events, **settings))
            except BaseException as error:  # `result` raises it in the caller's thread, an interruption, too
                self._end.set_exception(error)

        self._thread = threading.Thread(target=work, name="anonflow-run", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether it is still running."""
        return self._thread.is_alive()

    def cancel(self) -> None:
        """Stop as soon as possible; no release is published."""
        self.events.cancel()

    def result(self, timeout: float | None = None) -> RunReport:
        """Wait for the end.

        Raises
        ------
        TimeoutError
            If it is not over after `timeout` seconds.
        AnonflowError
            What :func:`run` raises.
        """
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError("the flow is still running")
        return self._end.result()


def start(flow: str | PathLike[str] | Flow, **settings: Any) -> Handle:
    """Run a flow in the background.

    Parameters
    ----------
    flow : path or Flow
    **settings
        Those of :func:`run`.

    Returns
    -------
    Handle
        Its ``result()`` waits for the report, and raises the errors of the run.
    """
    return Handle(flow, settings)
