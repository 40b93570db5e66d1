"""What the client knows of a table in pieces, and of a run over it: sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from anonflow import utility
from anonflow.algorithms.assembly import gathered_facts
from anonflow.algorithms.registry import algorithm_named
from anonflow.engine.execution.combine import column_losses, infeasible, merged
from anonflow.engine.execution.result import RunResult
from anonflow.engine.flows.flow import Run
from anonflow.engine.large.units import UnitDone, added
from anonflow.table import Domain, Schema
from anonflow.utility.measures import Asked

__all__ = ["Outline", "facts_of", "guarantee_of", "result_of"]


@dataclass(frozen=True, eq=False)
class Outline:
    """A table without its records: what a report says of it.

    Attributes
    ----------
    n, dropped : int
        Records, and those left out for a missing value.
    columns : tuple of str
        The published ones, in the table's order.
    schema : Schema
    domains : tuple of Domain
    """

    n: int
    dropped: int
    columns: tuple[str, ...]
    schema: Schema
    domains: tuple[Domain, ...]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The columns, and no rows."""
        return pd.DataFrame(columns=pd.Index(self.columns, dtype="str"))


def facts_of(done: Sequence[UnitDone]) -> dict[str, Any]:
    """What a method said about all its partitions."""
    return gathered_facts([one.facts for one in done])


def guarantee_of(run: Run, done: Sequence[UnitDone]) -> str:
    """The criterion that a run's method promises."""
    return str(facts_of(done).get("guarantee") or algorithm_named(run.anonymize.algorithm).guarantee)


def result_of(
    run: Run,
    outline: Outline,
    done: Sequence[UnitDone],
    ready: Asked,
    sums: Sequence[Mapping[str, tuple[float, ...]]],
) -> RunResult:
    """A run's units put together.

    Parameters
    ----------
    run : Run
    outline : Outline
    done : sequence of UnitDone
        In order.
    ready : Asked
        The measures.
    sums : sequence of mapping
        What each shelf adds to the measures of classes; none of these without it.

    Returns
    -------
    RunResult
    """
    suppressed = sum(one.suppressed for one in done)
    limits = [name for name in outline.schema.quasi_identifiers if outline.schema[name].limit is not None]
    method = algorithm_named(run.anonymize.algorithm)
    if suppressed == outline.n and limits and run.anonymize.boundaries:
        problem = (
            f"{method.name}: nothing can be published within the boundaries of {', '.join(map(repr, limits))}; "
            "allow wider generalizations, lower k, or do without boundaries"
        )
        return infeasible(run, problem, outline.n)
    sizes = _sum([one.sizes for one in done])
    pairs = [(size, int(sizes[size])) for size in np.flatnonzero(sizes).tolist()]
    if done[0].kind == "classes" and suppressed:
        pairs = sorted([*pairs, (suppressed, suppressed)])
    found = utility.finish_sums(ready, sums) if sums else {}
    rest = Asked({name: ready.prepared[name] for name in done[0].measures})
    found |= utility.finalize(rest, utility.combine(rest, [one.measures for one in done]))
    return RunResult(
        run.number,
        run.name,
        method.name,
        guarantee_of(run, done),
        run.anonymize.k,
        outline.n,
        measures={name: found[name] for name in ready.prepared},
        suppressed=suppressed,
        seconds=sum(told.seconds for one in done for told in one.partitions),
        findings=merged([findings for one in done for findings in one.findings]),
        columns=column_losses(outline.domains, [added([one.measured for one in done])], outline.n),
        sizes=_together(pairs),
        spread=tuple(enumerate(_sum([one.spread for one in done]).tolist())),
        values=dict(run.values),
    )


def _together(pairs: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    sums: dict[int, int] = {}
    for size, count in pairs:
        sums[size] = sums.get(size, 0) + count
    return tuple(sums.items())


def _sum(arrays: Sequence[np.ndarray]) -> np.ndarray:
    total = np.zeros(max(len(one) for one in arrays), np.int64)
    for one in arrays:
        total[: len(one)] += one
    return total
