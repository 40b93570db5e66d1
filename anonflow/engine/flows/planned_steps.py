"""What a flow will do, step by step, before it does anything: for the shell, a notebook, and who follows its events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anonflow.algorithms.budget import AUTO
from anonflow.engine.flows.addresses import is_address, shown_address

__all__ = ["outline"]

_MOST = 6
"""Runs that are named; of more, how many there are."""


def outline(flow: Any) -> list[tuple[str, str]]:
    """Return the steps of a flow in their order, each with what it does; nothing is read.

    Parameters
    ----------
    flow : Flow

    Returns
    -------
    list of (str, str)
        Names of steps, as events, the seconds of each step and Dask's labels have them, and a few words: names and
        numbers of the flow.
    """
    spec = flow.spec
    source, steps = spec.table.source, spec.steps
    file = source.file and (shown_address(source.file) if is_address(source.file) else source.file)
    name = source.dataset or (f"a query to {file}" if source.sql else file) or "a table in memory"
    where = {None: "", False: ", in memory", True: ", in pieces"}
    pieces = source.pieces
    place = where[pieces] if pieces is None or isinstance(pieces, bool) else f", in pieces of {pieces:,} rows"
    rows = [("load", f"{name}{place}")]
    if flow.schema.preparation:
        rows.append(("prepare", "; ".join(step.words for step in flow.schema.preparation.steps)))
    if any(run.partition.size == AUTO or run.budget is not None for run in flow.runs):
        rows.append(("fit", "what the budget leaves open is timed on some partitions"))
    cuts = dict.fromkeys((run.partition.order, run.partition.size) for run in flow.runs)
    rows.append(("cut", "; ".join(_cut(order, size) for order, size in cuts)))
    named = [run.name for run in flow.runs]
    more = f" and {len(named) - _MOST:,} more" if len(named) > _MOST else ""
    rows.append(("match", f"each partition: {', '.join(named[:_MOST])}{more}"))
    criteria = ", ".join(_named(entry) for entry in steps.verify or ("covers", "guarantee"))
    rows.append(("verify", f"each partition: {criteria}"))
    rows.append(("measure", f"each partition: {', '.join(flow.measures)}"))
    if steps.diversify is not None:
        rows.append(("diversify", f"each partition: {_named(steps.diversify.asked)}"))
    picked = flow.published
    if picked is not None and flow.draws(picked):
        rows.append(("draw", f"an assignment of {picked.name}, and a shuffle"))
        rows.append(("verify", "the release, before anything is written"))
        if steps.attack:
            rows.append(("attack", ", ".join(_named(entry) for entry in steps.attack)))
    written = [shown_address(path) if is_address(path) else path for path in flow.targets if path is not None]
    if written:
        rows.append(("publish", ", ".join(written)))
    return rows


def _cut(order: str, size: Any) -> str:
    what = (
        "the whole table" if size is None else f"partitions of {size if size == AUTO else format(size, ',')}"
    )
    return f"{order} order, {what}"


def _named(request: Any) -> str:
    """Return a criterion or an attacker in a few words; of a hierarchy no labels, which are a column's values."""
    if not isinstance(request, Mapping):
        return str(request)
    return ", ".join(
        f"{name}({', '.join(f'{key}={_shown(value)}' for key, value in given.items())})"
        if isinstance(given, Mapping)
        else f"{name}({given})"
        for name, given in request.items()
    )


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, str | int | float | list | tuple) else "..."
