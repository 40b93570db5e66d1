"""Run several methods on one table and compare them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import pandas as pd

from anonflow.engine.execution.events import Event
from anonflow.engine.execution.result import RunReport
from anonflow.engine.execution.totals import infeasible
from anonflow.engine.flows.flow import Flow
from anonflow.engine.flows.references import measure_problem
from anonflow.engine.run import run
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.kernels.jit import compiled_here
from anonflow.loss.costs import excess_of
from anonflow.option import check_whole
from anonflow.release.randomness import checked_seed
from anonflow.table import Schema, Table
from anonflow.utility.bounds import lower_bound


def compare(
    table: Any,
    algorithms: Sequence[str],
    k: int | Sequence[int] = 10,
    *,
    partition_size: int | str | None = None,
    loss: str = "ncp",
    seed: int | None = None,
    workers: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    budget: float | None = None,
    guarantee: str | None = None,
    bounds: bool = False,
    measures: Sequence[str | Mapping[str, Any]] = (),
    schema: Schema | Mapping[str, Any] | str | PathLike[str] | None = None,
) -> pd.DataFrame:
    """Run methods on a table and return their losses and times as a table.

    Parameters
    ----------
    table : Table, or frame
        n records; a frame with its `schema`.
    algorithms : sequence of str
        Names of :func:`anonflow.algorithms`, or ``auto``: the method that loses least in the `budget`.
    k : int or sequence of int
    partition_size : int or "auto", optional
        Records in a partition; by default the whole table, as :func:`anonflow.anonymize` and flows have it; the largest that fit the
        `budget` with ``"auto"``.
    loss : str
        The information loss that the methods keep low.
    seed : int, optional
    workers : int, optional
        Threads.
    options : mapping, optional
        Algorithm -> its own options.
    budget : float, optional
        Seconds for each run, with ``partition_size="auto"``, or of methods that have an effort: a comparison at equal
        budgets (Doka 2015, section 8.1). The column ``size`` is then what was chosen.
    guarantee : {"k-regular", "k-anonymity"}, optional
        Of the method ``auto``.
    bounds : bool, optional
        Whether to add a lower bound of the GCP of all releases with the same k: a column ``lower-bound``
        (:meth:`anonflow.algorithms.anonymize.Anonymization.lower_bound`), and ``lower-bound-excess``, by which share of it the GCP is at most
        above the least there is; empty where it does not hold.
    measures : sequence, optional
        Further measures, as :func:`anonflow.measure` takes them: a column for each number.
    schema : Schema, mapping or path, optional
        Where the table is a frame.

    Returns
    -------
    pandas.DataFrame
        A row for each run: algorithm, k, records, gcp, usefulness, suppressed, seconds (that the method took,
        added up over its partitions, without those of the compiler), checks (passed, of those made: covers and the method's guarantee; or ``infeasible``).

    Raises
    ------
    ParameterError
        If a name, a k, the budget, the guarantee, a measure or an option is unknown or outside its domain.
    SchemaError, HierarchyError, DataError
        If the frame does not go with its schema.
    """
    if schema is not None:
        table = Table.of(table, schema, "compare")
    return compared(
        table,
        algorithms,
        k,
        partition_size=partition_size,
        budget=budget,
        guarantee=guarantee,
        loss=loss,
        seed=seed,
        workers=workers,
        options=options,
        bounds=bounds,
        measures=measures,
    ).runs


def compared(
    table: Table,
    algorithms: Sequence[str],
    k: int | Sequence[int] = 10,
    *,
    partition_size: int | str | None = None,
    loss: str = "ncp",
    seed: int | None = None,
    workers: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    budget: float | None = None,
    guarantee: str | None = None,
    bounds: bool = False,
    measures: Sequence[str | Mapping[str, Any]] = (),
    on_event: Callable[[Event], None] | None = None,
) -> RunReport:
    """Run :func:`compare` and return all results of each run; `on_event` is called as by :func:`anonflow.run`.

    Raises
    ------
    ParameterError
        If a name, a k, the budget, the guarantee or an option is unknown or outside its domain.
    """
    if isinstance(algorithms, str) or not algorithms:
        raise ParameterError("compare takes a list of algorithms, such as ['greedy', 'mondrian']")
    if not isinstance(table, Table):
        raise ParameterError(
            "compare takes an anonflow.Table; make one with af.Table(frame, schema), or say schema= of a frame"
        )
    several = isinstance(k, Iterable) and not isinstance(k, str)
    ks: list[Any] = list(k) if several else [k]  # type: ignore[arg-type]
    for number in ks or [None]:
        check_whole(number, 2, "k must be whole numbers of at least 2")
    for measure in measures:
        problem = measure_problem(measure)
        if problem is not None:
            raise ParameterError(f"compare: {problem}")
    flow = Flow.for_table(
        table,
        algorithms,
        [int(number) for number in ks],
        partition_size=partition_size,
        budget=budget,
        guarantee=guarantee,
        loss=loss,
        options=options,
        measure=("gcp", "usefulness", *measures),
    )
    secret = checked_seed(seed)
    begin = time.perf_counter()
    for _ in range(2):
        compiled = compiled_here()
        report = _run(flow, table, secret, workers, on_event)
        if compiled_here() == compiled:
            break  # otherwise the methods' seconds include the compiler's: run again, for the methods alone
    least: dict[tuple[int, bool], float | None] = {}
    results = []
    for result in report.results:
        anonymization = result.anonymization
        if anonymization is not None:
            numbers = dict(result.measures)
            if bounds:
                key = result.k, anonymization.is_regular
                if anonymization.is_bounded and key not in least:
                    least[key] = lower_bound(table.records, result.k, regular=anonymization.is_regular)
                bound = least[key] if anonymization.is_bounded else None
                numbers["lower-bound"] = bound
                numbers["lower-bound-excess"] = None if bound is None else excess_of(numbers["gcp"], bound)
            size = (
                {"partition.size": anonymization.parameters["partition_size"]} if budget is not None else {}
            )
            result = replace(result, measures=numbers, values=size)
        results.append(result)
    return replace(report, results=tuple(results), seconds=time.perf_counter() - begin)


def _run(
    flow: Flow, table: Table, seed: int, workers: int | None, on_event: Callable[[Event], None] | None
) -> RunReport:
    try:
        return run(flow, seed=seed, workers=workers, on_event=on_event)
    except InfeasibleError as error:  # raised if there is only one run
        return RunReport(flow.name, (infeasible(flow.runs[0], error.message, table.n),))
