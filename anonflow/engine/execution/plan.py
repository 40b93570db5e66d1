"""A flow as a Dask graph: partition-level tasks match, verify, measure, and what each run still needs.

Keys tell nothing but names and numbers: ``match-2-17`` is the method on partition 17 of run 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anonflow import partition as partitions
from anonflow.algorithms.anonymize import check_k, partition_rng
from anonflow.engine.execution import tasks
from anonflow.engine.flows.flow import Flow, Run
from anonflow.errors import InfeasibleError
from anonflow.table import Records

__all__ = ["Plan", "RunPlan", "compile_flow", "first_of_each_method", "plan_flow", "settings_of", "why_not"]


@dataclass(frozen=True, eq=False)
class RunPlan:
    """A run and its cuts.

    Attributes
    ----------
    run : Run
    order : str
        Name of the order that its partitions are cut along.
    cuts : tuple of slice
        Of that order.
    """

    run: Run
    order: str
    cuts: tuple[slice, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """Orders and cuts of all runs of a flow.

    Attributes
    ----------
    orders : dict of numpy.ndarray, each shape (n,), int64
        Positions of the records in each order that a run uses.
    runs : tuple of RunPlan
    """

    orders: dict[str, np.ndarray]
    runs: tuple[RunPlan, ...]

    def index(self, run: RunPlan) -> list[np.ndarray]:
        """Table positions of each partition's records."""
        return [self.orders[run.order][cut] for cut in run.cuts]

    def left(self, run: RunPlan) -> np.ndarray:
        """Table positions of the records that are in no partition: too few lie within their boundaries."""
        order = self.orders[run.order]
        out = np.ones(len(order), bool)
        for cut in run.cuts:
            out[cut] = False
        return np.sort(order[out])


def plan_flow(runs: Sequence[Run], records: Records, entropy: int) -> Plan:
    """Sort and cut: every order once, for all runs that use it.

    Parameters
    ----------
    runs : sequence of Run
    records : Records
    entropy : int
        The flow's seed.

    Raises
    ------
    ParameterError, InfeasibleError
        If a k or a partition size does not go with the number of records.
    """
    orders: dict[str, np.ndarray] = {}
    plans = []
    for run in runs:
        cuts = tuple(_cuts(run, records))
        kept = run.anonymize.boundaries and bool(partitions.bounded(records))
        order = f"{run.partition.order}-bounded" if kept else run.partition.order
        if order not in orders:
            orders[order] = partitions.ordered(
                records, run.partition.order, partition_rng(entropy, -1), boundaries=kept
            )
        plans.append(RunPlan(run, order, cuts))
    return Plan(orders, tuple(plans))


def why_not(run: Run, records: Records) -> str | None:
    """Why a run can have no result, whatever its method does; None if it may have one.

    Raises
    ------
    ParameterError
        If the partition size is smaller than k.
    """
    try:
        _cuts(run, records)
    except InfeasibleError as error:
        return error.message
    return None


def _cuts(run: Run, records: Records) -> list[slice]:
    k = check_k(run.anonymize.k, records.n)
    size = run.anonymize.method.partition_size(run.partition.cut, k, run.anonymize.options)
    if run.anonymize.boundaries:
        return partitions.cuts(records, size, k)
    return partitions.cut(records.n, size, k)


def compile_flow(
    flow: Flow, plan: Plan, records: Records, entropy: int
) -> tuple[dict[str, Any], dict[str, tuple[int, int]]]:
    """The graph of all runs of a flow; building it computes nothing.

    Parameters
    ----------
    flow : Flow
    plan : Plan
    records : Records
    entropy : int

    Returns
    -------
    graph : dict
        Key -> task, as Dask takes it. Runs with the same cuts share their partitions.
    leaves : dict
        Key -> (number of the run, number of the partition); the graph's results, in order.
    """
    graph: dict[str, Any] = {"records": records}
    leaves: dict[str, tuple[int, int]] = {}
    graph.update({f"order-{name}": positions for name, positions in plan.orders.items()})
    sharing: dict[tuple[str, tuple[tuple[int, int], ...]], int] = {}
    for one in plan.runs:
        bounds = tuple((cut.start, cut.stop) for cut in one.cuts)
        shared = sharing.setdefault((one.order, bounds), len(sharing))
        r = one.run.number
        settings = settings_of(flow, one.run, entropy)
        graph[f"settings-{r}"] = settings
        for p, (start, stop) in enumerate(bounds):
            where, name = f"part-{shared}-{p}", f"{r}-{p}"
            graph.setdefault(where, (tasks.part, "records", f"order-{one.order}", start, stop))
            graph[f"match-{name}"] = (tasks.match, f"settings-{r}", where, p)
            graph[f"verify-{name}"] = (tasks.check, f"settings-{r}", where, f"match-{name}")
            graph[f"measure-{name}"] = (tasks.measure, where, f"match-{name}")
            graph[f"done-{name}"] = (tasks.finish, f"match-{name}", f"verify-{name}", f"measure-{name}")
            leaves[f"done-{name}"] = (r, p)
    return graph, leaves


def first_of_each_method(flow: Flow, plan: Plan, entropy: int) -> list[tuple[tasks.Settings, RunPlan]]:
    """A run for each method and loss of a flow, with what its tasks are told."""
    found: dict[tuple[str, str], tuple[tasks.Settings, RunPlan]] = {}
    for one in plan.runs:
        key = (one.run.anonymize.algorithm, one.run.anonymize.loss)
        found.setdefault(key, (settings_of(flow, one.run, entropy), one))
    return list(found.values())


def settings_of(flow: Flow, run: Run, entropy: int) -> tasks.Settings:
    """What a run does with each of its partitions."""
    spec = run.anonymize
    return tasks.Settings(
        run.number, spec.algorithm, spec.k, spec.loss, spec.options, flow.criteria, entropy, spec.boundaries
    )
