"""A run on a few records: it compiles the method, so that the seconds of the whole run are the method's alone."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from anonflow.engine.flows.flow import Flow, Run
from anonflow.table import Table

FEW = 40
"""Records, at least, that a method is compiled with."""

BRIEF = 1.0
"""Seconds, at most and beside the compiler's, that a method with a time limit takes when it is compiled."""


def brief_flow(flow: Flow, run: Run, table: Table) -> Flow:
    """Return a flow with one run, on the first records of a table, with short time limits.

    Raises
    ------
    SchemaError, DataError
        If a few records are no table under the schema.
    """
    spec = run.anonymize
    few = Table(table.frame.iloc[: max(FEW, 4 * spec.k)], table.schema)
    limits = {
        name: min(BRIEF, spec.options.get(name, option.default))
        for name, option in spec.method.options.items()
        if option.time_limit
    }
    return replace(flow, table=few, runs=(replace(run, anonymize=spec.model_copy(update=limits)),))


def compiled_for(run: Run, table: Table) -> Hashable:
    """Return what tells which code a run needs: its method, its options, and the shapes of the columns."""
    spec = run.anonymize
    options = tuple(sorted((name, repr(value)) for name, value in spec.options.items()))
    shapes = frozenset((domain.shape, domain.kind) for domain in table.domains)
    return spec.algorithm, spec.loss, spec.boundaries, options, shapes
