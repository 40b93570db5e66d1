"""What cannot work, said before anything is run; and the flow of each run alone."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonflow import engine
from anonflow.algorithms.patterns.language import pattern_masks
from anonflow.algorithms.registry import algorithm_named
from anonflow.criteria.request import DIVERSITY
from anonflow.dashboards.session.draft import Draft
from anonflow.engine.execution.plan import refuse_early, why_not
from anonflow.errors import AnonflowError
from anonflow.table import Schema, Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["code", "problems_of", "running_flow", "single_document"]

PATTERNS = 16
"""Quasi-identifiers up to which all patterns are no question."""

MOST = 200
"""Runs that one start may ask for."""


def code(
    frame: pd.DataFrame, columns: Mapping[str, Any], folder: Path, prepare: Any = None
) -> tuple[Table | None, tuple[str, ...]]:
    """The table under these columns, after the steps before; or what is wrong with them."""
    try:
        return Table(frame, Schema(columns, folder=folder, prepare=prepare)), ()
    except AnonflowError as error:
        return None, error.problems


def problems_of(draft: Draft, table: Table, source: Mapping[str, Any]) -> tuple[str, ...]:
    """What keeps the draft from running on a table, as far as can be told before it runs.

    Parameters
    ----------
    draft : Draft
    table : Table
        n records, coded under the draft's columns.
    source : mapping
        Where the table came from.

    Returns
    -------
    tuple of str
        One sentence each, the same only once.
    """
    try:
        flow = draft.flow()
    except AnonflowError as error:
        # a draft is no file that somebody has seen: what is wrong, without line and column
        return tuple(text for _, text in error.found) or error.problems
    found: dict[str, None] = {}
    if draft.get(("table", "source")) != dict(source):
        found["the flow names another table than the one that is open; open that one"] = None
    if len(flow.runs) > MOST:
        found[f"{len(flow.runs)} runs at once; choose fewer methods or values, at most {MOST} in all"] = None
        return tuple(found)
    try:
        refuse_early(flow, table)
    except AnonflowError as error:
        found[error.message] = None
    for run in flow.runs:
        try:
            _check_patterns(run, table)
            problem = why_not(run, table.records)
        except AnonflowError as error:
            problem = error.message
        if problem is not None:
            found[problem] = None
    return tuple(found)


def _check_patterns(run: engine.Run, table: Table) -> None:
    """Refuse patterns that name what is no column, or contradict each other.

    Raises
    ------
    ParameterError
        As :func:`anonflow.algorithms.patterns.language.pattern_masks`.
    """
    options = run.anonymize.options
    if not run.anonymize.method.hides:
        return
    patterns, weights = options.get("patterns", "all"), options.get("weights")
    if patterns != "all" or weights is not None or table.q > PATTERNS:
        pattern_masks(table.domains, patterns, weights)


def single_document(document: Mapping[str, Any], run: engine.Run) -> dict[str, Any]:
    """The flow of one run of a draft: without the matrix, and with what its release is published as.

    Parameters
    ----------
    document : mapping
        The draft's.
    run : anonflow.engine.Run
        Of the draft's flow.
    """
    spec = run.anonymize
    settings: dict[str, Any] = {"algorithm": spec.algorithm, "k": spec.k, "loss": spec.loss}
    if not spec.boundaries:
        settings["boundaries"] = False
    for key in ("guarantee", "budget"):
        if getattr(spec, key) is not None:
            settings[key] = getattr(spec, key)
    settings |= spec.options
    steps = []
    for step in document["steps"]:
        steps.append({"anonymize": settings} if "anonymize" in step else copy.deepcopy(step))
    if not any("draw" in step for step in steps):
        after = max(at for at, step in enumerate(steps) if {"anonymize", "diversify"} & set(step))
        steps.insert(after + 1, {"draw": {}})
    name = document["flow"]
    single: dict[str, Any] = {key: copy.deepcopy(document[key]) for key in ("flow", "version", "table")}
    cut = {
        key: getattr(run.partition, key)
        for key in ("order", "size", "budget")
        if key in run.partition.model_fields_set
    }
    if cut:
        single["partition"] = cut
    single["steps"] = copy.deepcopy(steps)
    single["publish"] = {"table": f"out/{name}.csv", "report": f"out/{name}.html"}
    return single


def running_flow(single: Mapping[str, Any], folder: Path) -> engine.Flow:
    """What is run to compare: the same without the draw, the attacks, the files, and what only a draw can show.

    Raises
    ------
    FlowError
        If it is no valid flow.
    """
    left = {key: value for key, value in single.items() if key != "publish"}
    left["steps"] = [dict(step) for step in single["steps"] if not {"draw", "attack"} & set(step)]
    by_name = {key: step for step in left["steps"] for key in step}
    settings = by_name["anonymize"]["anonymize"]
    guarantee = settings.get("guarantee") or algorithm_named(settings["algorithm"]).guarantee
    if "verify" in by_name and guarantee != "k-anonymity":
        # the diversity of what is not in classes is a property of the release
        asked = by_name["verify"]["verify"]
        by_name["verify"]["verify"] = [one for one in asked if _criterion(one) not in DIVERSITY]
    return Draft(document=left, folder=folder).flow()


def _criterion(asked: Any) -> str:
    return next(iter(asked), "") if isinstance(asked, Mapping) else str(asked).partition("=")[0]
