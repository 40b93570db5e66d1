"""Several methods on one table, side by side."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from anonflow import utility
from anonflow.algorithms.anonymize import anonymize
from anonflow.algorithms.budget import check_budget
from anonflow.algorithms.registry import algorithm_named
from anonflow.criteria.verify import verify
from anonflow.engine.execution.result import RunReport, RunResult
from anonflow.errors import InfeasibleError, ParameterError
from anonflow.kernels.jit import compiled_here
from anonflow.table import Table
from anonflow.utility.bounds import lower_bound

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["compare", "compared"]


def compare(
    table: Table,
    algorithms: Sequence[str],
    k: int | Sequence[int] = 10,
    *,
    partition_size: int | str | None = 250,
    loss: str = "ncp",
    seed: int | None = None,
    workers: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    budget: float | None = None,
    bounds: bool = False,
) -> pd.DataFrame:
    """Run methods on a table and put what they cost side by side.

    Parameters
    ----------
    table : Table
        n records.
    algorithms : sequence of str
        Names of :func:`anonflow.algorithms`.
    k : int or sequence of int
    partition_size : int or "auto", optional
        Records in a partition; the whole table with None; the largest that fit the `budget` with ``"auto"``.
    loss : str
        The information loss that the methods keep low.
    seed : int, optional
    workers : int, optional
        Threads.
    options : mapping, optional
        Algorithm -> its own options.
    budget : float, optional
        Seconds for each run, with ``partition_size="auto"``: methods side by side at equal budgets (paper 1,
        section 8.1). The column ``partition size`` is then what was chosen.
    bounds : bool, optional
        Whether to say below which GCP no release with the same k can be: a column ``lower-bound``
        (:meth:`anonflow.algorithms.anonymize.Anonymization.lower_bound`), empty where it does not hold.

    Returns
    -------
    pandas.DataFrame
        A row for each run: algorithm, k, records, gcp, usefulness, suppressed, seconds (of the wall clock),
        checks (passed, of those made: covers and the method's guarantee; or ``infeasible``).

    Raises
    ------
    ParameterError
        If a name, a k, the budget or an option is none.
    """
    return compared(
        table,
        algorithms,
        k,
        partition_size=partition_size,
        budget=budget,
        loss=loss,
        seed=seed,
        workers=workers,
        options=options,
        bounds=bounds,
    ).runs


def compared(
    table: Table,
    algorithms: Sequence[str],
    k: int | Sequence[int] = 10,
    *,
    partition_size: int | str | None = 250,
    loss: str = "ncp",
    seed: int | None = None,
    workers: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    budget: float | None = None,
    bounds: bool = False,
) -> RunReport:
    """What :func:`compare` does, with all that is known of each run.

    Raises
    ------
    ParameterError
        If a name, a k, the budget or an option is none.
    """
    import time

    if isinstance(algorithms, str) or not algorithms:
        raise ParameterError("compare takes a list of algorithms, such as ['greedy', 'mondrian']")
    if not isinstance(table, Table):
        raise ParameterError("compare takes an anonflow.Table; make one with af.Table(frame, schema)")
    several = isinstance(k, Iterable) and not isinstance(k, str)
    ks: list[Any] = list(k) if several else [k]  # type: ignore[arg-type]
    if not ks or any(isinstance(one, bool) or not isinstance(one, int | np.integer) or one < 2 for one in ks):
        raise ParameterError("k must be whole numbers of at least 2")
    ks = [int(one) for one in ks]
    check_budget(partition_size, budget)
    given = dict(options or {})
    for name in (*algorithms, *given):
        algorithm_named(name)
    for name in algorithms:
        algorithm_named(name).check_options(given.get(name, {}))
    begin = time.perf_counter()
    results = []
    least: dict[int, float | None] = {}
    for number, (name, size) in enumerate(itertools.product(algorithms, ks)):
        method = algorithm_named(name)
        about = (number, f"{name} k={size}", name, method.guarantee, size, table.n)
        cut = max(partition_size, size) if isinstance(partition_size, int) else partition_size
        try:
            for _ in range(2):
                compiled, start = compiled_here(), time.perf_counter()
                made = anonymize(
                    table,
                    name,
                    size,
                    partition_size=cut,
                    budget=budget,
                    loss=loss,
                    seed=seed,
                    workers=workers,
                    **given.get(name, {}),
                )
                seconds = time.perf_counter() - start
                if compiled_here() == compiled:
                    break  # else the compiler's seconds are among them: once more, for the method's alone
        except InfeasibleError as error:
            results.append(RunResult(*about, problem=error.message))
            continue
        measures: dict[str, Any] = dict(utility.measure(table, made, ["gcp", "usefulness"]))
        if bounds:
            if size not in least:
                least[size] = lower_bound(table.records, size)
            measures["lower-bound"] = least[size] if made.is_bounded else None
        results.append(
            RunResult(
                *about,
                measures=measures,
                suppressed=int(made.suppressed.sum()),
                seconds=seconds,
                findings=verify(table, made, ["covers", "guarantee"], size).findings,
                values={"partition.size": made.parameters["partition_size"]} if budget is not None else {},
                anonymization=made,
            )
        )
    return RunReport("comparison", tuple(results), seconds=time.perf_counter() - begin)
