"""``partition: {size: auto, budget: SECONDS}``: the size becomes a number before anything is cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from anonflow.algorithms.anonymize import within
from anonflow.algorithms.budget import AUTO, Fitted, fitting_size
from anonflow.algorithms.registry import algorithm_named
from anonflow.engine.execution.plan import why_not
from anonflow.engine.flows.flow import Flow, Run
from anonflow.loss import measure_named
from anonflow.table import Records

__all__ = ["fit_flow", "is_fitted", "sizes_in", "sizes_of"]


def is_fitted(flow: Flow) -> bool:
    """Whether a run of the flow leaves the size of its partitions to a budget."""
    return any(run.partition.size == AUTO for run in flow.runs)


def fit_flow(
    flow: Flow, records: Records, workers: int | None, earlier: Mapping[int, int]
) -> tuple[Flow, dict[int, Fitted]]:
    """The flow with a number for every partition size.

    Parameters
    ----------
    flow : Flow
    records : Records
        All of the table.
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
        if why_not(open_ended, records) is not None:
            runs.append(open_ended)  # has no result, whatever the size
            continue
        if run.number not in earlier:
            fitted[run.number] = _fit(run, records, workers)
        size = earlier[run.number] if run.number in earlier else fitted[run.number].size
        runs.append(_with(run, size=size))
    published = None if flow.published is None else runs[flow.runs.index(flow.published)]
    return replace(flow, runs=tuple(runs), published=published), fitted


def _fit(run: Run, records: Records, workers: int | None) -> Fitted:
    spec = run.anonymize
    method = algorithm_named(spec.algorithm)
    budget = run.partition.budget
    assert budget is not None, "the loader has seen to it"
    return fitting_size(
        method,
        within(records, method, spec.boundaries),
        spec.k,
        budget,
        workers,
        order=run.partition.order,
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
