"""The plan of a flow: orders, cuts, and the steps of each task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from anonflow import partition as partitions
from anonflow.algorithms.anonymize import check_k
from anonflow.algorithms.diversity.target import DIVERSITIES, Targets, sensitive_column, targets_of
from anonflow.algorithms.diversity.within_partition import Request
from anonflow.criteria.classes import UNIQUENESS, check_uniqueness
from anonflow.criteria.registry import CRITERIA
from anonflow.criteria.request import read_criteria
from anonflow.engine.execution.batches import Batch, Rows, batches_of
from anonflow.engine.execution.tasks import TaskSettings
from anonflow.engine.flows.flow import Flow, Run
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.loss import measure_named
from anonflow.partition import Cuts
from anonflow.table import Domain, Records, Table
from anonflow.table.sampling_weights import WeightSummary

STEPS = ("match", "verify", "measure")
"""The steps of a task for each of its partitions."""


class Order(Protocol):
    """A table in an order along which partitions are cut."""

    def rows(self, start: int, stop: int) -> Rows:
        """Return the rows of some consecutive places."""


@dataclass(frozen=True, eq=False)
class BoundaryClasses:
    """The classes of records that may be generalized together within their boundaries.

    Attributes
    ----------
    names : tuple of str
        The bounded columns; none if there are no boundaries.
    sizes : numpy.ndarray, shape (c,), int64
        Records of each class; one class without boundaries.
    layers : numpy.ndarray, int64, or None
        Without regard to boundaries; None if each row counts as a person.
    most : int
        Rows of the unit that has most of them.
    """

    names: tuple[str, ...]
    sizes: np.ndarray
    layers: np.ndarray | None = None
    most: int = 1

    @classmethod
    def of(cls, records: Records) -> BoundaryClasses:
        """Return those of a table in memory."""
        names = partitions.bounded(records)
        if records.units is not None:
            free = np.bincount(partitions.kept_apart(partitions.unbounded(records)))
            bounded_sizes = np.bincount(partitions.kept_apart(records)) if names else free
            return cls(names, bounded_sizes, free, int(np.bincount(records.units).max()))
        labels = partitions.boundary_classes(records) if names else np.zeros(records.n, np.int64)
        return cls(names, np.bincount(labels))


@dataclass(frozen=True, eq=False)
class RunPlan:
    """A run, the order that its partitions are cut along, the cuts, and the diversity of each partition.

    Attributes
    ----------
    run : Run
    order : Order
    cuts : Cuts
    diversity : Request or None
        None where none is asked for, or where the whole table is made diverse at once: covers reach across partitions.
    """

    run: Run
    order: Order
    cuts: Cuts
    diversity: Request | None = None


@dataclass(frozen=True, eq=False)
class FlowPlan:
    """The plan of a flow's runs.

    Attributes
    ----------
    n : int
        Records of the table.
    runs : tuple of RunPlan
        Those that may have a result.
    problems : dict
        Run -> why it can have none.
    """

    n: int
    runs: tuple[RunPlan, ...]
    problems: dict[int, str]

    @property
    def partitions(self) -> int:
        """The number of partitions of all runs."""
        return sum(len(run_plan.cuts) for run_plan in self.runs)

    def batches(self) -> Iterator[tuple[RunPlan, Batch]]:
        """Yield every task, run after run."""
        for run_plan in self.runs:
            for batch in batches_of(run_plan.cuts, self.n):
                yield run_plan, batch


def plan_flow(
    flow: Flow,
    n: int,
    classes: BoundaryClasses,
    order: Callable[[str, bool], Order],
    targets: Targets | None = None,
) -> FlowPlan:
    """Sort and cut the table: each order once, for all runs that use it.

    Parameters
    ----------
    flow : Flow
    n : int
        Records of the table.
    classes : BoundaryClasses
    order : callable
        Name, and whether boundary classes stand one after the other in it -> order.
    targets : Targets, optional
        Of the flow's diversity.

    Raises
    ------
    ParameterError
        If a partition size does not go with a k, or the way blind is impossible.
    InfeasibleError
        If the flow has a single run, and no partition can meet it.
    """
    orders: dict[tuple[str, bool], Order] = {}
    runs, problems = [], {}
    for run in flow.runs:
        try:
            cuts = cuts_of(run, n, classes)
            diversity = _diversity_of(flow, run, n, targets)
        except InfeasibleError as error:
            if len(flow.runs) == 1:
                raise
            problems[run.number] = error.message
            continue
        name = run.partition.order, run.anonymize.boundaries and bool(classes.names)
        if name not in orders:
            orders[name] = order(*name)
        runs.append(RunPlan(run, orders[name], cuts, diversity))
    return FlowPlan(n, tuple(runs), problems)


def _diversity_of(flow: Flow, run: Run, n: int, targets: Targets | None) -> Request | None:
    """Return the diversity of each partition of a run."""
    step, spec = flow.spec.steps.diversify, run.anonymize
    if step is None or targets is None or CRITERIA[spec.method.guarantee].of_covers:
        return None
    method = spec.algorithm, measure_named(spec.loss), spec.options
    return Request.of(targets, n, spec.k, method, step.way, float(step.risk))


def why_not(run: Run, records: Records) -> str | None:
    """Return why a run can have no result with any method; None if it may have one.

    Raises
    ------
    ParameterError
        If the partition size is smaller than k.
    """
    try:
        cuts_of(run, records.n, BoundaryClasses.of(records))
    except InfeasibleError as error:
        return error.message
    return None


def cuts_of(run: Run, n: int, classes: BoundaryClasses) -> Cuts:
    """Return the partitions of a run.

    Parameters
    ----------
    run : Run
    n : int
        Records of the table.
    classes : BoundaryClasses

    Raises
    ------
    ParameterError
        If the partition size is smaller than k.
    InfeasibleError
        If no partition can be cut.
    """
    k = check_k(run.anonymize.k, n)
    partitions.refuse_large_units(classes.most, n, k)
    size = run.anonymize.method.partition_size(run.partition.cut, k, run.anonymize.options)
    if run.anonymize.boundaries:
        cuts = partitions.cut_classes(classes.sizes, classes.names, size, k)
        run.anonymize.method.check_complete(run.anonymize.options, n - int(cuts.counts.sum()))
        return cuts
    whole = np.array([n], np.int64) if classes.layers is None else classes.layers
    return partitions.cut_classes(whole, (), size, k)


def spare_records(flow: Flow, records: Records) -> int:
    """Return how many records a run of a flow may suppress without a class of their own: fewer than k, 0 if it suppresses nobody."""
    narrow = bool(partitions.bounded(records) or partitions.limited(records))
    steps = [run.anonymize for run in flow.runs]
    return max(
        step.k - 1
        if step.method.hides or step.method.is_diverse(step.options) or (narrow and step.boundaries)
        else 0
        for step in steps
    )


def refuse_early(flow: Flow, table: Table) -> tuple[Targets, np.ndarray] | None:
    """Refuse a diversity that not even the whole table has, and invalid weights, before any work.

    Returns
    -------
    targets : Targets
    values : numpy.ndarray, shape (n, 1), int64
        As :func:`anonflow.algorithms.diversity.target.targets_of` gives them; None without diversity.

    Raises
    ------
    InfeasibleError
        With the largest feasible value.
    ParameterError
        If the column is none of the table's, or classes of k cannot hold all its values, as delta-disclosure wants; and as
        :func:`_check_weights`.
    DataError
        As :func:`_check_weights`.
    """
    _check_weights(flow, table)
    diversify = flow.spec.steps.diversify
    if diversify is None:
        return None
    column = sensitive_column(diversify.column, table.sensitive, table.other_columns)
    targets, values = targets_of(
        table,
        [{"criterion": diversify.criterion, "column": column, **diversify.needed}],
        spare_records(flow, table.records),
    )
    _refuse_many_values(flow, column, targets.size)
    return targets, values


def refuse_large_partitions(plan: FlowPlan, domains: Sequence[Domain], memory: int, allowed: str) -> None:
    """Refuse a run whose method takes more memory for its largest partition than a worker may use, before any work.

    Parameters
    ----------
    plan : FlowPlan
    domains : sequence of Domain
    memory : int
        Bytes.
    allowed : str
        What they are called.

    Raises
    ------
    ParameterError
        With the size of partitions that would do.
    """
    for run_plan in plan.runs:
        spec = run_plan.run.anonymize
        lengths, _ = run_plan.cuts.lengths
        largest = int(lengths.max(initial=0))
        need = spec.method.memory_for(domains, largest, spec.k, spec.options)
        if need <= memory:
            continue
        most = spec.method.most_records(domains, largest, spec.k, spec.options, memory)
        fits = f"take partitions of at most {most:,}, or " if most >= spec.k else ""
        raise ParameterError(
            f"{run_plan.run.name}: a partition of {largest:,} records takes about {need / 2**30:.2g} GiB, more than "
            f"{allowed}; {fits}give it more memory"
        )


def _check_weights(flow: Flow, table: Table) -> None:
    """Refuse weights that cannot be used, or that the flow's criteria do not accept.

    Parameters
    ----------
    flow : Flow
    table : Table

    Raises
    ------
    DataError
        If a weight is missing, no number, or below 1.
    ParameterError
        If the criterion uniqueness has neither a sampling fraction nor a weight, or both, or weights are unequal.
    """
    name = flow.schema.weight_column
    weights = None if table.weights is None else WeightSummary.of(table.weights)
    if weights is not None:
        weights.check(name, table.frame[name])
    for criterion in read_criteria(flow.criteria, "covers"):
        if criterion.name == UNIQUENESS.name:
            check_uniqueness(criterion.parameters.get("fraction"), weights)


def _refuse_many_values(flow: Flow, column: str, values: int) -> None:
    """Refuse a diversity that classes of a flow's smallest k cannot have in a column with so many values.

    Raises
    ------
    ParameterError
        The error says what to do.
    """
    diversify = flow.spec.steps.diversify
    if diversify is not None:
        least = min(run.anonymize.k for run in flow.runs)
        DIVERSITIES[diversify.criterion].target.check_k(column, values, least)


def first_of_each_method(flow: Flow, plan: FlowPlan, entropy: int) -> list[tuple[TaskSettings, RunPlan]]:
    """Return a run for each method and loss of a flow, with the settings of its tasks."""
    first: dict[tuple[str, str], tuple[TaskSettings, RunPlan]] = {}
    for run_plan in plan.runs:
        key = (run_plan.run.anonymize.algorithm, run_plan.run.anonymize.loss)
        first.setdefault(key, (settings_of(flow, run_plan, entropy), run_plan))
    return list(first.values())


def settings_of(flow: Flow, run_plan: RunPlan, entropy: int) -> TaskSettings:
    """Return the settings of a run's tasks."""
    spec = run_plan.run.anonymize
    return TaskSettings(
        run_plan.run.number, spec.algorithm, spec.k, spec.loss, spec.options, flow.criteria, entropy,
        spec.boundaries, diversity=run_plan.diversity,
    )  # fmt: skip
