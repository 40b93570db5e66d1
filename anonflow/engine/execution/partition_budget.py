"""``partition: {size: auto, budget: SECONDS}``: the size becomes a number before anything is cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from anonflow.algorithms.anonymize import within
from anonflow.algorithms.budget import AUTO, Fitted, fitting_cuts
from anonflow.algorithms.registry import algorithm_named
from anonflow.engine.execution.plan import BoundaryClasses, Order, cuts_of
from anonflow.engine.flows.flow import Flow, Run
from anonflow.errors import InfeasibleError
from anonflow.loss import measure_named
from anonflow.table import Domain, Records

__all__ = ["fit_flow", "is_fitted", "sizes_in", "sizes_of"]


def is_fitted(flow: Flow) -> bool:
    """Whether a run of the flow leaves the size of its partitions to a budget."""
    return any(run.partition.size == AUTO for run in flow.runs)


def fit_flow(
    flow: Flow,
    domains: tuple[Domain, ...],
    n: int,
    classes: BoundaryClasses,
    order: Callable[[str, bool], Order],
    workers: int | None,
    earlier: Mapping[int, int],
) -> tuple[Flow, dict[int, Fitted]]:
    """The flow with a number for every partition size.

    Parameters
    ----------
    flow : Flow
    domains : tuple of Domain
    n : int
        Records of the table.
    classes : BoundaryClasses
    order : callable
        As :func:`anonflow.engine.execution.plan.plan_flow` takes it: a few partitions are read along it, and timed.
    workers : int, optional
    earlier : mapping
        Run -> size that an earlier run chose: it is taken again, and nothing is timed.

    Returns
    -------
    flow : Flow
    fitted : dict
        Run -> what its size was found by, of the runs that were timed.

    Raises
    ------
    ParameterError
        If a method refuses an option.
    """
    fitted: dict[int, Fitted] = {}
    runs = []
    for run in flow.runs:
        if run.partition.size != AUTO:
            runs.append(_with(run, size=run.partition.size, budget=None))
            continue
        open_ended = _with(run, size=None)
        try:
            cuts_of(open_ended, n, classes)
        except InfeasibleError:
            runs.append(open_ended)  # has no result, whatever the size
            continue
        if run.number not in earlier:
            bounded = run.anonymize.boundaries and bool(classes.names)
            fitted[run.number] = _fit(run, domains, n, classes, order(run.partition.order, bounded), workers)
        size = earlier[run.number] if run.number in earlier else fitted[run.number].size
        runs.append(_with(run, size=size))
    published = None if flow.published is None else runs[flow.runs.index(flow.published)]
    return replace(flow, runs=tuple(runs), published=published), fitted


def _fit(
    run: Run, domains: tuple[Domain, ...], n: int, classes: BoundaryClasses, order: Order, workers: int | None
) -> Fitted:
    spec = run.anonymize
    method = algorithm_named(spec.algorithm)
    budget = run.partition.budget
    assert budget is not None, "the loader has seen to it"

    def rows(cut: slice) -> Records:
        return within(order.rows(cut.start, cut.stop).load(domains)[1], method, spec.boundaries)

    return fitting_cuts(
        method,
        lambda size: cuts_of(_with(run, size=size), n, classes),
        rows,
        n,
        spec.k,
        budget,
        workers,
        loss=measure_named(spec.loss),
        options=spec.options,
    )


def _with(run: Run, **values: Any) -> Run:
    return replace(run, partition=run.partition.model_copy(update=values))


def sizes_of(flow: Flow) -> dict[int, int]:
    """The sizes that budgets were given, by run."""
    return {
        run.number: run.partition.cut
        for run in flow.runs
        if run.partition.budget is not None and run.partition.cut is not None
    }


def sizes_in(kept: Any) -> dict[int, int]:
    """Partition sizes by run out of what a file keeps; what is no size is left out."""
    if not isinstance(kept, Mapping):
        return {}
    return {
        int(run): size
        for run, size in kept.items()
        if str(run).isdigit() and type(size) is int and 2 <= size < 1 << 40
    }
