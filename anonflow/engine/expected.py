"""Estimate the time and memory of a flow's runs beforehand, from short stretches of the same table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike

from anonflow.algorithms.anonymize import within
from anonflow.algorithms.method import Outcome
from anonflow.algorithms.pilots import SMALLEST, PilotModel, TimedTable, run_pilots
from anonflow.engine.execution.budgets import opens
from anonflow.engine.execution.schedulers import checked_workers
from anonflow.engine.flows.flow import Flow, Run
from anonflow.engine.flows.loader import load_flow
from anonflow.engine.staging import staged
from anonflow.engine.storage.storage import table_of
from anonflow.errors import AnonflowError, FlowError, ParameterError
from anonflow.loss import measure_named
from anonflow.release.randomness import checked_seed
from anonflow.system import with_peak
from anonflow.table import Table

SECONDS = 2.0
"""Seconds that the stretches of one method may take."""

BUDGET = "its budget decides how long it takes"
"""Why nothing is expected of a run that leaves something to a budget."""


@dataclass(frozen=True)
class ExpectedRun:
    """The expected time and memory of a run.

    Attributes
    ----------
    name : str
        Of the run.
    seconds : float or None
        Of the processor, added up over partitions; None where a budget decides, or it cannot run.
    memory : int or None
        Bytes beyond what is held before.
    largest : int
        Records of the longest stretch that was run.
    problem : str
        Why there is no estimate.
    elapsed : float or None
        Seconds until it is done, with partitions in parallel, and other programs as busy as now.
    loss : float or None
        A guess: that of a stretch as long as a partition.
    """

    name: str
    seconds: float | None = None
    memory: int | None = None
    largest: int = 0
    problem: str = ""
    elapsed: float | None = None
    loss: float | None = None

    def error(self, seconds: float) -> float | None:
        """Return the relative error of the estimate: 0.5 if it was wrong by half of the true value; None without an estimate."""
        return None if self.seconds is None or seconds <= 0 else self.seconds / seconds - 1.0


def expected_runs(
    table: Table,
    runs: Sequence[Run],
    *,
    workers: int | None,
    seconds: float,
    peak: Callable[[Callable[[], Outcome]], tuple[Outcome, int]] | None = None,
) -> Iterator[ExpectedRun]:
    """Yield what each run over a table is expected to take, when it is asked for.

    A method with its options, one k and one loss is run on stretches once, for all sizes of partitions.

    Parameters
    ----------
    table : Table
        In memory.
    runs : sequence of Run
    workers : int, optional
        As many as there are processors without it.
    seconds : float
        That the stretches of one method may take; the first is run in any case.
    peak : callable, optional
        As :func:`anonflow.algorithms.pilots.run_pilots` takes it; without it no memory is expected.

    Raises
    ------
    ParameterError
        If `workers` is no number of them.
    """
    threads = checked_workers(workers) or os.cpu_count() or 1
    keys = [
        (spec.boundaries, run.partition.order, spec.algorithm, spec.k, spec.loss, repr(sorted(spec.options.items())))
        for run in runs
        for spec in [run.anonymize]
    ]  # fmt: skip
    tables: dict[object, TimedTable] = {}
    models: dict[object, PilotModel | AnonflowError] = {}

    def expected(run: Run, key: tuple[object, ...]) -> ExpectedRun:
        spec, order = run.anonymize, run.partition.order
        method = spec.method
        # each method may refuse the table; the records are the same for all that do not
        records = within(table.records, method, spec.boundaries)
        if key[:2] not in tables:
            tables[key[:2]] = TimedTable.of(records, order)
        timed = tables[key[:2]]

        def size_of(alike: Run) -> int:
            return method.partition_size(alike.partition.cut, spec.k, spec.options) or timed.n

        cuts = timed.cuts(size_of(run), spec.k)
        if key not in models:
            sizes = [size_of(alike) for alike, alike_key in zip(runs, keys, strict=True) if alike_key == key]
            try:
                models[key] = run_pilots(
                    method, timed, spec.k, loss=measure_named(spec.loss), options=spec.options, seconds=seconds,
                    largest=max(sizes), smallest=min(SMALLEST, *sizes), peak=peak,
                )  # fmt: skip
            except AnonflowError as error:
                models[key] = error
        model = models[key]
        if isinstance(model, AnonflowError):
            raise model
        whole, longest = model.expected(*cuts.lengths, threads), model.pilots[-1].records
        return ExpectedRun(
            run.name, whole.seconds, whole.memory, longest, elapsed=whole.wall, loss=whole.loss
        )

    for run, key in zip(runs, keys, strict=True):
        try:
            if opens(run):
                yield ExpectedRun(run.name, problem=f"{BUDGET}: {run.budget:g} s")
            else:
                yield expected(run, key)
        except AnonflowError as error:
            yield ExpectedRun(run.name, problem=error.message)


def expected_of(
    flow: Flow,
    *,
    workers: int | None = None,
    seconds: float = SECONDS,
    stopped: Callable[[], bool] = lambda: False,
) -> list[ExpectedRun]:
    """Return the expected time and memory of each run of a flow.

    Parameters
    ----------
    flow : Flow
        With its table in memory.
    workers : int, optional
    seconds : float
        That the stretches of one method, with its options and one k, may take; the first is run in any case.
    stopped : callable, optional
        Called before each run: if it returns True, the remaining runs are left out.

    Raises
    ------
    ParameterError
        If the table is not in memory, or `workers` is no number of them.

    Notes
    -----
    Stretches of 128 records and more are run, as the partitions are cut, and seconds and memory taken to grow with a power of the
    records (:class:`anonflow.algorithms.pilots.PilotModel`). What diversity, checks and measures take is not in it. Memory is
    that of this process, which other threads use, too.
    """
    if flow.table is None:
        raise ParameterError("time and memory can only be expected of a flow with its table in memory")
    runs = expected_runs(flow.table, flow.runs, workers=workers, seconds=seconds, peak=with_peak)
    answers: list[ExpectedRun] = []
    while len(answers) < len(flow.runs) and not stopped():
        answers.append(next(runs))
    return answers


def read_and_expect(
    flow: str | PathLike[str] | Flow, *, workers: int | None = None, seconds: float = SECONDS
) -> list[ExpectedRun]:
    """Read the table of a flow, and return what each of its runs is expected to take; nothing is written.

    Parameters
    ----------
    flow : path or Flow
    workers, seconds : optional
        As :func:`expected_of` takes them.

    Raises
    ------
    FlowError, DataError, SchemaError, HierarchyError
        If the flow, or what it names, cannot be used; if it has a target and nothing is picked yet.
    """
    loaded = flow if isinstance(flow, Flow) else load_flow(flow)
    if loaded.space is not None:
        raise FlowError(
            f"{loaded.name}: has a target, and nothing is picked yet; search first: anonflow search FLOW --output PICKED"
        )
    with staged(loaded) as staged_flow, table_of(staged_flow, checked_seed(None)) as table:
        return expected_of(loaded.over(table), workers=workers, seconds=seconds)
