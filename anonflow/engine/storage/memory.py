"""The partitions of all runs of a flow: computed as one graph, told as they arrive, combined run by run."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from anonflow.algorithms.anonymize import within
from anonflow.algorithms.registry import algorithm_named
from anonflow.engine.context import Session
from anonflow.engine.execution.combine import combine, infeasible
from anonflow.engine.execution.events import PartitionDone, RunDone, RunStarted, StepDone, StepStarted
from anonflow.engine.execution.plan import Plan, RunPlan, compile_flow, settings_of, why_not
from anonflow.engine.execution.result import RunResult
from anonflow.engine.execution.schedulers import stream
from anonflow.engine.execution.tasks import Failed, PartitionResult
from anonflow.errors import BUG, AnonflowError, InfeasibleError
from anonflow.table import Table

__all__ = ["compute"]


def compute(session: Session, table: Table, plan: Plan) -> list[RunResult]:
    """Compute the partitions of all runs of a flow, and combine those of each run when its last is there.

    Parameters
    ----------
    session : Session
    table : Table
    plan : Plan
        Its orders and cuts.

    Returns
    -------
    list of RunResult
        In the order of the flow's runs.

    Raises
    ------
    Cancelled
        If the run was cancelled.
    AnonflowError
        If a partition broke, or the cluster was lost.
    """
    graph, leaves = compile_flow(session.flow, plan, table.records, session.seed)
    plans = {one.run.number: one for one in plan.runs}
    waiting = {number: len(one.cuts) for number, one in plans.items()}
    arrived: dict[int, dict[int, PartitionResult]] = {number: {} for number in plans}
    results: dict[int, RunResult] = {}
    for one in session.flow.runs:
        if one.number in plans:
            partitions = waiting[one.number]
            session.events.emit(RunStarted(run=one.number, name=one.name, partitions=partitions))
        else:
            problem = why_not(one, table.records) or ""
            results[one.number] = _told(session, infeasible(one, problem, table.n))
    names, found = _find(session, table, plan)
    begin = time.perf_counter()
    session.events.emit(StepStarted(step="anonymize", tasks=len(leaves)))
    combining = 0.0
    broken: list[AnonflowError] = []
    left = tuple(key for key, at in leaves.items() if at not in found)
    earlier = ((at, result) for at, result in found.items())
    now = ((leaves[key], result) for key, result in _stream(session, graph, left))
    for (number, partition), result in itertools.chain(earlier, now):
        if _broke(session, plans[number], partition, result, broken):
            continue
        if (number, partition) not in found and session.keeper is not None:
            session.keeper.add(names[number, partition], result, session.seed)
        arrived[number][partition] = result
        session.used(result.memory)
        _tell_partition(session, plans[number], partition, result, len(arrived[number]))
        if len(arrived[number]) == waiting[number]:
            start = time.perf_counter()
            parts = arrived.pop(number)
            ordered = [parts[p] for p in range(len(parts))]
            results[number] = _told(
                session, combine(session.flow, table, plan, plans[number], ordered, session.seed)
            )
            combining += time.perf_counter() - start
    if broken:
        raise broken[0]
    seconds = time.perf_counter() - begin
    session.seconds["anonymize"], session.seconds["combine"] = seconds - combining, combining
    session.events.emit(StepDone(step="anonymize", seconds=seconds))
    return [results[one.number] for one in session.flow.runs]


def _stream(session: Session, graph: dict[str, Any], left: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if left:
        memory = session.flow.spec.run.memory_bytes
        yield from stream(graph, left, session.scheduler, session.workers, session.events, memory)


def _find(
    session: Session, table: Table, plan: Plan
) -> tuple[dict[tuple[int, int], str], dict[tuple[int, int], PartitionResult]]:
    """What an earlier run left that this one needs."""
    if session.keeper is None:
        return {}, {}
    settings = {one.run.number: settings_of(session.flow, one.run, session.seed) for one in plan.runs}
    seen = {
        one.run.number: within(
            table.records, algorithm_named(one.run.anonymize.algorithm), one.run.anonymize.boundaries
        )
        for one in plan.runs
    }
    names, found = session.keeper.find(settings, plan, seen)
    if found:
        session.events.log(f"{len(found)} of {len(names)} partitions are there from an earlier run")
    return names, found


def _told(session: Session, result: RunResult) -> RunResult:
    session.events.emit(RunDone(run=result.number, ok=result.ok, row=result.row()))
    return result


def _broke(
    session: Session, plan: RunPlan, partition: int, result: PartitionResult, broken: list[AnonflowError]
) -> bool:
    """Whether a partition broke, by a bug or for want of memory: the others go on, to be kept.

    Wrong parameters, and the infeasible where there is one run, end the flow at once.
    """
    failed = result.matched
    if not isinstance(failed, Failed):
        return False
    error = failed.error
    if isinstance(error, InfeasibleError) and len(session.flow.runs) > 1:
        return False
    if error is not None and type(error) is not AnonflowError:
        raise error
    where = f"partition {partition} of run {plan.run.name!r}"
    if error is None:
        error = AnonflowError(f"{where}: {failed.message}; {BUG}")
        error.add_note(failed.trace)
    else:
        error = AnonflowError(f"{where}: {error.message}")
    broken.append(error)
    session.events.log(f"{where}: {failed.message}; the other partitions go on", "error")
    return True


def _tell_partition(
    session: Session, plan: RunPlan, partition: int, result: PartitionResult, done: int
) -> None:
    if isinstance(result.matched, Failed):
        return
    assert result.measured is not None
    measured = result.measured
    weights = np.array([d.weight for d in result.matched.outcome.generalization.domains])
    cells = measured.records * float(weights.sum())
    session.events.emit(
        PartitionDone(
            run=plan.run.number,
            partition=partition,
            done=done,
            of=len(plan.cuts),
            records=measured.records,
            seconds=result.matched.seconds,
            loss=float(measured.costs @ weights / cells) if cells else 0.0,
        )
    )
