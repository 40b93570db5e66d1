"""A run in the background that a screen looks at: a few records first, which compile the method, so that the seconds are its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Hashable
from dataclasses import replace
from enum import Enum
from pathlib import Path
from time import perf_counter
from typing import Any

from anonflow.algorithms.registry import REGISTRY
from anonflow.engine import background
from anonflow.engine.execution.events import (
    Cancelled,
    Event,
    OverBudget,
    PartitionDone,
    RoundDone,
    RunStarted,
)
from anonflow.engine.execution.result import RunResult
from anonflow.engine.execution.totals import infeasible
from anonflow.engine.flows.flow import Flow, Run
from anonflow.errors import BUG, AnonflowError, unforeseen
from anonflow.table import Table

LOG = logging.getLogger("anonflow.engine")

FEW = 40
"""Records, at least, that a method is compiled with."""

BRIEF = 1.0
"""Seconds, at most and beside the compiler's, that a method with a time limit takes when it is compiled."""


_compiled: set[Hashable] = set()
"""The code of methods that this process has compiled, by what runs it."""


class Stage(Enum):
    """How far a run is."""

    WAITING = "waiting"
    COMPILING = "compiling"
    RUNNING = "running"


class StopReason(Enum):
    """Why a run was stopped before its end."""

    CANCELLED = "cancelled"
    LATE = "late"


class Attempt:
    """One run of a flow: whatever keeps it from a result is the problem of its result.

    Parameters
    ----------
    flow : Flow
        With this run alone.
    run : Run
    table : Table
    seed : int
    settings : mapping, optional
        ``scheduler`` and ``workers``, as :func:`anonflow.engine.start` takes them.
    results : pathlib.Path, optional
        The folder of its partitions' results: those that are there are not computed again.
    seconds : float, optional
        The most that it may take.
    words : callable, optional
        Gives the message of an error as it is shown.

    Attributes
    ----------
    share : float
        The finished share, 0 to 1.
    stage : Stage
    stop : StopReason or None
        None while nothing stops it.
    over_budget : str
        That no method keeps its budget of seconds, and what was taken; empty otherwise.
    compiled_in : float
        Seconds that compiling took.
    since : float
        When it, or its compiling, began.
    """

    def __init__(
        self,
        flow: Flow,
        run: Run,
        table: Table,
        seed: int,
        *,
        settings: dict[str, Any] | None = None,
        results: Path | None = None,
        seconds: float | None = None,
        words: Callable[[str], str] = str,
    ) -> None:
        self.run, self.seed = run, seed
        self.share = self.compiled_in = self.since = 0.0
        self.over_budget = ""
        self.stage = Stage.WAITING
        self.stop: StopReason | None = None
        self._flow, self._table = flow, table
        self._settings, self._results, self._seconds, self._words = settings or {}, results, seconds, words
        self._lock = threading.Lock()
        self._handle: background.Handle | None = None

    def result(self, heard: Callable[[Event | None], None]) -> RunResult | None:
        """Do the run; None if it was cancelled.

        Parameters
        ----------
        heard : callable
            Called with each event of the run, and with None when compiling begins.
        """
        with self._lock:
            if self.stop is not None:
                return None
            self.stage, self.since = Stage.RUNNING, perf_counter()
        self._compile(heard)
        handle = self._start(self._flow, self.seed, self._results)
        if handle is None:
            return None
        timer, begin = None, perf_counter()
        if self._seconds is not None:
            timer = threading.Timer(self._seconds, self._stop_late)
            timer.daemon = True
            timer.start()
        try:
            alone = False
            for event in handle.events:
                if isinstance(event, RunStarted):
                    alone = event.partitions == 1
                elif (isinstance(event, RoundDone) and alone) or isinstance(event, PartitionDone):
                    self.share = event.done / event.of
                elif isinstance(event, OverBudget):
                    self.over_budget = event.message
                heard(event)
            result = handle.result().results[0]
        except Cancelled:
            return self._too_long() if self.stop is StopReason.LATE else None
        except AnonflowError as error:
            return self._without(self._words(error.message))
        except MemoryError:
            return self._without("there is not enough memory; use smaller partitions")
        except Exception as error:  # a bug in one run must not end the others, and its words may hold a cell
            return self._without(f"{unforeseen(error)}; {BUG}")
        finally:
            if timer is not None:
                timer.cancel()
        # a short run may end before it is stopped: the cap decides, not which thread is first
        if self._seconds is not None and perf_counter() - begin > self._seconds:
            return self._too_long()
        return replace(result, name=self.run.name, values=dict(self.run.values))

    @property
    def cancelled(self) -> bool:
        """Whether somebody cancelled it."""
        return self.stop is StopReason.CANCELLED

    def cancel(self) -> None:
        """Stop as soon as possible; or never begin."""
        with self._lock:
            self.stop = StopReason.CANCELLED
            handle = self._handle
        if handle is not None:
            handle.cancel()

    def _start(self, flow: Flow, seed: int, results: Path | None = None) -> background.Handle | None:
        with self._lock:
            if self.stop is not None:
                return None
            self.since = perf_counter()
            self._handle = background.start(flow, seed=seed, results=results, **self._settings)
            return self._handle

    def _compile(self, heard: Callable[[Event | None], None]) -> None:
        """Run a few records first: the compiler's seconds would else be those of whichever method is run first on a machine."""
        key = compiled_for(self.run, self._table), str(self._settings.get("scheduler"))
        if key in _compiled or self.run.anonymize.algorithm not in REGISTRY:
            return
        self.stage = Stage.COMPILING
        began = perf_counter()
        heard(None)
        try:
            handle = self._start(brief_flow(self._flow, self.run, self._table), 0)
            if handle is not None:
                handle.result()
        except Cancelled:
            return
        except Exception as error:
            # a few records may be too few for what is asked of all, and whatever else fails here fails again, and is
            # reported, when the run itself is done: it is compiled as far as it came
            LOG.debug("%s while a method was compiled", unforeseen(error))
        finally:
            self.stage = Stage.RUNNING
            self.compiled_in += perf_counter() - began
        _compiled.add(key)

    def _stop_late(self) -> None:
        with self._lock:
            if self.stop is None:
                self.stop = StopReason.LATE
        assert self._handle is not None
        self._handle.cancel()

    def _too_long(self) -> RunResult:
        return self._without(
            f"stopped after {self._seconds:g} s, the most that a run may take here; "
            "use smaller partitions, or a faster method"
        )

    def _without(self, problem: str) -> RunResult:
        return infeasible(self.run, problem, self._table.n)


def brief_flow(flow: Flow, run: Run, table: Table) -> Flow:
    """Return a flow with one run, on the first records of a table, with short time limits.

    Raises
    ------
    SchemaError, DataError
        If a few records are no table under the schema.
    """
    spec = run.anonymize
    few = Table(table.frame.iloc[: max(FEW, 4 * spec.k)], table.schema)
    limits = {
        name: min(BRIEF, spec.options.get(name, option.default))
        for name, option in spec.method.options.items()
        if option.time_limit
    }
    return replace(flow, table=few, runs=(replace(run, anonymize=spec.model_copy(update=limits)),))


def compiled_for(run: Run, table: Table) -> Hashable:
    """Return what tells which code a run needs: its method, its options, and the shapes of the columns."""
    spec = run.anonymize
    options = tuple(sorted((name, repr(value)) for name, value in spec.options.items()))
    shapes = frozenset((domain.shape, domain.kind) for domain in table.domains)
    return spec.algorithm, spec.loss, spec.boundaries, options, shapes
