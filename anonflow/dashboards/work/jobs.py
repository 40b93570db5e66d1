"""A job: one run of the draft in the engine, and its result."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from anonflow import engine
from anonflow.algorithms.registry import REGISTRY
from anonflow.dashboards.session.draft_spec import DraftSpec, MethodSpec
from anonflow.dashboards.session.screen_words import on_screen
from anonflow.dashboards.work.fair_queue import Ticket
from anonflow.engine.brief import brief_flow, compiled_for
from anonflow.engine.execution.events import PartitionDone, RoundDone, RunStarted
from anonflow.engine.execution.totals import infeasible
from anonflow.engine.flows.spec import PartitionSpec
from anonflow.errors import BUG, AnonflowError, unforeseen
from anonflow.table import Table

LOG = logging.getLogger("anonflow.dashboards")

_compiled: set[tuple[Any, ...]] = set()
"""The methods whose code this process has compiled."""


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """A finished run."""

    id: int
    """Of this workspace."""
    spec: DraftSpec = field(repr=False)
    """The flow that repeats this run alone, given the seed."""
    seed: int = field(repr=False)
    """A secret."""
    result: engine.RunResult
    """Its anonymization is the owner's."""
    when: float
    """Seconds since 1970."""
    label: str = ""
    """The user's name for it; empty for its own name."""
    note: str = field(default="", repr=False)
    """The user's note."""
    pinned: bool = False
    """Whether it stands first, and stays when others go."""

    @property
    def name(self) -> str:
        """The name that the user gave the run; by default one such as ``greedy k=10``."""
        return self.label or self.result.name

    @property
    def ok(self) -> bool:
        """Whether there is a result and every check passed."""
        return self.result.ok

    @property
    def losses(self) -> dict[str, float]:
        """The mean loss (NCP) of each column of quasi-identifiers, each between 0 and 1."""
        return {column.column: column.loss for column in self.result.columns}

    def row(self) -> dict[str, Any]:
        """Return the run as a row of the table of runs, with its id and name first."""
        return {"id": self.id, "name": self.name, **self.result.row()}


class Job:
    """One run of the draft: it waits, works, and ends.

    Parameters
    ----------
    run : anonflow.engine.Run
        Of the draft's flow.
    spec : DraftSpec
        The flow of this run alone, as it will be handed to the owner.
    flow : anonflow.engine.Flow
        What is run: the same without draw and publication.
    settings : dict
        How: ``scheduler`` and ``workers``, as :func:`anonflow.engine.start` takes them.
    seconds : float or None
        Cap on the run's time.
    seed : int, optional
        A secret; a new one without it.
    results : callable, optional
        Gives the folder of its partitions' results for its seed: those that are there are not computed again.

    Attributes
    ----------
    share : float
        The finished share, 0 to 1.
    compiled_in : float
        Seconds that compiling took.
    seed : int
        A secret, its own.
    """

    def __init__(
        self,
        run: engine.Run,
        spec: DraftSpec,
        flow: engine.Flow,
        table: Table,
        settings: dict[str, Any],
        seconds: float | None,
        seed: int | None = None,
        results: Callable[[int], Path] | None = None,
    ) -> None:
        self.run = run
        self.spec = spec
        self.seed = secrets.randbits(128) if seed is None else seed
        self.share = 0.0
        self.ticket: Ticket | None = None
        self.begun = False
        self.ended = False
        self.cancelled = False
        self.compiling = False
        self.compiled_in = 0.0
        self._since = 0.0
        self._flow = flow
        self._table = table
        self._settings = settings
        self._seconds = seconds
        self._results = None if results is None else results(self.seed)
        self._lock = threading.Lock()
        self._handle: engine.Handle | None = None
        self._late = False

    def work(self, progressed: Callable[[], None]) -> engine.RunResult | None:
        """Do the run.

        Parameters
        ----------
        progressed : callable
            Called when :attr:`share` has changed.

        Returns
        -------
        RunResult or None
            With a problem if there is no result; None if it was cancelled.
        """
        with self._lock:
            if self.cancelled:
                return None
            self.begun, self._since = True, perf_counter()
        self._compile(progressed)
        with self._lock:
            if self._is_cancelled():  # in the meantime
                return None
            self._since = perf_counter()
            self._handle = handle = engine.start(
                self._flow, seed=self.seed, results=self._results, **self._settings
            )
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
                    progressed()
            result = handle.result().results[0]
        except engine.Cancelled:
            return self._too_long() if self._late else None
        except AnonflowError as error:
            return self._without(on_screen(error.message))
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

    def _compile(self, progressed: Callable[[], None]) -> None:
        """Run a few records first, so that the seconds and the progress of the run are its method's alone.

        The compiler's seconds would otherwise be those of whichever method is run first on a machine.
        """
        key = compiled_for(self.run, self._table), str(self._settings.get("scheduler"))
        if key in _compiled or self.run.anonymize.algorithm not in REGISTRY:
            return
        self.compiling = True
        began = perf_counter()
        progressed()
        try:
            brief = brief_flow(self._flow, self.run, self._table)
            with self._lock:
                if self.cancelled:
                    return
                self._handle = handle = engine.start(brief, seed=0, **self._settings)
            handle.result()
        except engine.Cancelled:
            return
        except Exception as error:
            # a few records may be too few for what is asked of all, and whatever else fails here fails again, and is
            # reported, when the run itself is done: it is compiled as far as it came
            LOG.debug("%s while a method was compiled", unforeseen(error))
        finally:
            self.compiling = False
            self.compiled_in += perf_counter() - began
        _compiled.add(key)

    @property
    def doing(self) -> str:
        """Show the current step in a few words; the progress moves meanwhile."""
        if self.ended or self.share >= 1.0:
            return "done"
        if not self.begun:
            return "waiting"
        seconds = f"{perf_counter() - self._since:.0f} s"
        if self.compiling:
            return f"compiling, once on this machine ({seconds})"
        if self.share <= 0.0:
            return f"at work for {seconds}"
        return f"{self.share:.0%} of its partitions"

    def _is_cancelled(self) -> bool:
        return self.cancelled

    def cancel(self) -> None:
        """Stop as soon as possible; or never begin."""
        with self._lock:
            self.cancelled = True
            handle = self._handle
        if handle is not None:
            handle.cancel()
        if self.ticket is not None:
            self.ticket.leave()

    @property
    def stopped(self) -> bool:
        """Whether it was ended from outside: a partition of it may still be computed somewhere."""
        return self.begun and (self.cancelled or self._late)

    def final_spec(self, result: engine.RunResult) -> DraftSpec:
        """Return the flow that repeats a result: what a budget left open is what was chosen."""
        anon = result.anonymization
        if anon is None or "budget" not in anon.parameters:
            return self.spec
        options = {name: anon.parameters[name] for name in anon.algorithm.options if name in anon.parameters}
        method = self.spec.method.model_dump(include={"k", "loss", "boundaries"})
        step = MethodSpec(algorithm=anon.algorithm.name, **method, **options)
        cut = PartitionSpec(order=self.spec.partition.order, size=anon.parameters["partition_size"])
        return self.spec.with_steps(anonymize=step).model_copy(update={"partition": cut})

    def _stop_late(self) -> None:
        self._late = True
        assert self._handle is not None
        self._handle.cancel()

    def _too_long(self) -> engine.RunResult:
        return self._without(
            f"stopped after {self._seconds:g} s, the most that a run may take here; "
            "use smaller partitions, or a faster method"
        )

    def _without(self, problem: str) -> engine.RunResult:
        return infeasible(self.run, problem, self._table.n)


def sentence(jobs: list[Job]) -> str:
    """Return the progress of the runs, in plain words."""
    ended = sum(job.ended for job in jobs)
    at_work = [job for job in jobs if job.begun and not job.ended]
    if at_work:
        names = ", ".join(f"{job.run.name} ({job.doing})" for job in at_work)
        return f"Running {names}; {ended} of {len(jobs)} run{'' if len(jobs) == 1 else 's'} done."
    places = [job.ticket.place for job in jobs if job.ticket is not None and job.ticket.place >= 0]
    if places:
        place = min(places) + 1
        return f"Waiting for a free processor: you are {_ordinal(place)} in the queue; {ended} of {len(jobs)} run{'' if len(jobs) == 1 else 's'} done."
    return f"{ended} of {len(jobs)} run{'' if len(jobs) == 1 else 's'} done."


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def summary(jobs: list[Job], seconds: float) -> str:
    """Return how the runs ended."""
    of = len(jobs)
    if any(job.cancelled for job in jobs):
        done = sum(job.share == 1.0 and not job.cancelled for job in jobs)
        if not done:
            return "Cancelled: no run was done."
        return f"Cancelled: {done} of {of} runs {'was' if done == 1 else 'were'} done and {'is' if done == 1 else 'are'} kept."
    compiled = min(seconds, sum(job.compiled_in for job in jobs))
    words = f", {compiled:.1f} s of them to compile methods, once on this machine" if compiled >= 0.1 else ""
    return f"Done: {of} run{'s' if of > 1 else ''} in {seconds:.1f} s{words}."
