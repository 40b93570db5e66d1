"""Estimate the time and memory of a flow's runs beforehand, from short stretches of the same table."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike

from anonflow.algorithms.anonymize import within
from anonflow.algorithms.pilots import PilotModel, TimedTable, run_pilots
from anonflow.engine.execution.budgets import opens
from anonflow.engine.execution.schedulers import checked_workers
from anonflow.engine.flows.flow import Flow
from anonflow.engine.flows.loader import load_flow
from anonflow.engine.staging import staged
from anonflow.engine.storage.choice import table_of
from anonflow.errors import AnonflowError, FlowError, ParameterError
from anonflow.loss import measure_named
from anonflow.release.randomness import checked_seed
from anonflow.system import with_peak

SECONDS = 2.0
"""Seconds that the stretches of one method may take."""


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
    """

    name: str
    seconds: float | None = None
    memory: int | None = None
    largest: int = 0
    problem: str = ""
    elapsed: float | None = None

    def error(self, seconds: float) -> float | None:
        """Return the relative error of the estimate: 0.5 if it was wrong by half of the true value; None without an estimate."""
        return None if self.seconds is None or seconds <= 0 else self.seconds / seconds - 1.0


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
    table = flow.table
    if table is None:
        raise ParameterError("time and memory can only be expected of a flow with its table in memory")
    threads = checked_workers(workers) or os.cpu_count() or 1
    cut: dict[tuple[bool, str], TimedTable] = {}
    models: dict[tuple[object, ...], PilotModel] = {}
    answers = []
    for run in flow.runs:
        if stopped():
            break
        if opens(run):
            answers.append(ExpectedRun(run.name, problem="its budget decides how long it takes"))
            continue
        spec = run.anonymize
        method = spec.method
        try:
            # each method may refuse the table; the records are the same for all that do not
            whole = within(table.records, method, spec.boundaries)
            place = spec.boundaries, run.partition.order
            if place not in cut:
                cut[place] = TimedTable.of(whole, run.partition.order)
            records = cut[place]
            size = method.partition_size(run.partition.cut, spec.k, spec.options) or records.n
            cuts = records.cuts(size, spec.k)
            key = (*place, spec.algorithm, spec.k, spec.loss, repr(sorted(spec.options.items())), size)
            if key not in models:
                models[key] = run_pilots(
                    method, records, spec.k, loss=measure_named(spec.loss), options=spec.options, seconds=seconds,
                    largest=size, peak=with_peak,
                )  # fmt: skip
            model = models[key]
            expected = model.expected(*cuts.lengths, threads)
        except AnonflowError as error:
            answers.append(ExpectedRun(run.name, problem=error.message))
            continue
        records_seen = model.pilots[-1].records
        answers.append(
            ExpectedRun(run.name, expected.seconds, expected.memory, records_seen, elapsed=expected.wall)
        )
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
