"""Choose the values that a flow leaves to budgets, before its table is cut: method, partition size, effort."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from anonflow.algorithms import REGISTRY, Algorithm
from anonflow.algorithms.anonymize import within
from anonflow.algorithms.budget import AUTO, Choice, choose, choose_method, is_open
from anonflow.algorithms.pilots import TimedTable
from anonflow.engine.execution.plan import BoundaryClasses, Order, cuts_of
from anonflow.engine.flows.flow import Flow, Run
from anonflow.engine.flows.spec import AnonymizeSpec
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.loss import measure_named
from anonflow.table import Domain, Records


def opens(run: Run) -> bool:
    """Return whether a run leaves something to a budget."""
    return is_open(run.anonymize.algorithm, run.partition.size, run.anonymize.budget)


def is_fitted(flow: Flow) -> bool:
    """Return whether a run of the flow leaves something to a budget."""
    return any(opens(run) for run in flow.runs)


def fit_flow(
    flow: Flow,
    domains: tuple[Domain, ...],
    n: int,
    classes: BoundaryClasses,
    order: Callable[[str, bool], Order],
    workers: int | None,
    earlier: Mapping[int, Choice],
    memory: int,
) -> tuple[Flow, dict[int, Choice], dict[int, Choice]]:
    """Return the flow with a method, a number for every partition size, and all options.

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
        Run -> the choice of an earlier run: it is used again, without timing.
    memory : int
        Bytes that a partition may take at most.

    Returns
    -------
    flow : Flow
    choices : dict
        Run -> the choice, of now or of an earlier run.
    fitted : dict
        Those that were timed now.

    Raises
    ------
    ParameterError
        If a method refuses an option.
    """
    choices: dict[int, Choice] = {}
    fitted: dict[int, Choice] = {}
    runs = []
    for run in flow.runs:
        if not opens(run):
            runs.append(_with_size(run, run.partition.size, budget=None))
            continue
        bounded = run if run.partition.size != AUTO else _with_size(run, None)
        try:
            cuts_of(bounded, n, classes)
        except InfeasibleError:
            runs.append(bounded)  # has no result with any choice
            continue
        if run.number in earlier:
            choice = earlier[run.number]
        else:
            within_classes = run.anonymize.boundaries and bool(classes.names)
            along = order(run.partition.order, within_classes)
            sizes = classes.sizes if within_classes else np.array([n], np.int64)
            choice = fitted[run.number] = _fit(run, domains, sizes, classes.names, along, workers, memory)
        choices[run.number] = choice
        runs.append(_with_choice(run, choice))
    published = None if flow.published is None else runs[flow.runs.index(flow.published)]
    return replace(flow, runs=tuple(runs), published=published), choices, fitted


def _fit(
    run: Run,
    domains: tuple[Domain, ...],
    sizes: np.ndarray,
    names: tuple[str, ...],
    along: Order,
    workers: int | None,
    memory: int,
) -> Choice:
    spec = run.anonymize
    budget = run.budget
    assert budget is not None, "the loader has checked it"

    def rows(cut: slice) -> Records:
        return within(along.rows(cut.start, cut.stop).load(domains)[1], spec.method, spec.boundaries)

    seen = TimedTable(sizes, names, rows)

    def most(method: Algorithm, options: Mapping[str, Any]) -> int:
        return method.most_records(domains, seen.n, spec.k, options, memory)

    loss, order = measure_named(spec.loss), run.partition.order
    if spec.algorithm == AUTO:
        return choose_method(
            str(spec.guarantee), seen, spec.k, budget, workers, order=order, loss=loss, most=most
        )
    return choose(
        spec.method,
        seen,
        spec.k,
        budget,
        workers,
        size=run.partition.size,
        order=order,
        loss=loss,
        options=spec.options,
        most=most,
    )


def _with_choice(run: Run, choice: Choice) -> Run:
    """Return the run with its choice; it keeps its budget."""
    spec = run.anonymize
    settings = AnonymizeSpec(
        algorithm=choice.algorithm,
        k=spec.k,
        loss=spec.loss,
        boundaries=spec.boundaries,
        budget=spec.budget,
        **choice.options,
    )
    return replace(_with_size(run, choice.size), anonymize=settings)


def _with_size(run: Run, size: int | str | None, **values: Any) -> Run:
    return replace(run, partition=run.partition.model_copy(update={"size": size, **values}))


def kept_choice(choice: Choice) -> dict[str, Any]:
    """Return a choice in the form of the owner's files."""
    return {
        "algorithm": choice.algorithm,
        "partition-size": choice.size,
        "options": dict(choice.options),
        "budget": choice.budget,
    }


def choices_in(entries: Any) -> dict[int, Choice]:
    """Return the choices by run that a file contains; anything else is left out."""
    choices = {}
    for run, choice in (entries if isinstance(entries, Mapping) else {}).items():
        if not str(run).isdecimal() or not isinstance(choice, Mapping):
            continue
        name, size, options = choice.get("algorithm"), choice.get("partition-size"), choice.get("options")
        budget = choice.get("budget")
        usable = size is None or (type(size) is int and 1 <= size < 1 << 40)
        if name not in REGISTRY or not usable or not isinstance(options, Mapping):
            continue
        try:
            REGISTRY[name].check_options(options)
        except ParameterError:
            continue
        seconds = float(budget) if isinstance(budget, int | float) else 0.0
        choices[int(run)] = Choice(name, size, dict(options), seconds, 0.0)
    return choices
