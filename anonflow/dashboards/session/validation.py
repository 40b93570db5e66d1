"""Validation of a draft before its runs; and the flow of each single run."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anonflow import engine
from anonflow.algorithms.diversity.target import DIVERSITIES
from anonflow.algorithms.registry import algorithm_named
from anonflow.criteria.guarantee import promises_classes
from anonflow.dashboards.session.draft import Draft
from anonflow.dashboards.session.screen_words import on_screen
from anonflow.engine.execution.plan import refuse_early, why_not
from anonflow.engine.flows.references import check_columns
from anonflow.errors import AnonflowError
from anonflow.partition import too_few
from anonflow.table import Schema, Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Judgement", "code", "judged", "running_flow", "single_document"]

MOST = 200
"""The most runs of one start."""


@dataclass(frozen=True)
class Judgement:
    """The runs of a draft that may work, as far as is known before they run.

    Attributes
    ----------
    runs : tuple of Run
        Those that may have a result.
    problems : tuple of str
        The problems that prevent all runs, one sentence each; empty if there are runs.
    impossible : dict
        Name of a run that can have no result, or several with commas -> why, where others can.
    """

    runs: tuple[engine.Run, ...] = ()
    problems: tuple[str, ...] = ()
    impossible: Mapping[str, str] = field(default_factory=dict)


def code(
    frame: pd.DataFrame, columns: Mapping[str, Any], folder: Path, prepare: Any, source: Mapping[str, Any]
) -> tuple[Table | None, tuple[str, ...]]:
    """Return the table under these columns, after the preparation steps; or their problems."""
    try:
        schema = Schema(columns, folder=folder, prepare=prepare)
        return Table(frame, schema.with_separators(source.get("decimal"), source.get("thousands"))), ()
    except AnonflowError as error:
        return None, tuple(map(on_screen, error.problems))


def judged(draft: Draft, table: Table, source: Mapping[str, Any]) -> Judgement:
    """Return which runs of a draft can work on a table, and which cannot.

    Parameters
    ----------
    draft : Draft
    table : Table
        n records, coded under the draft's columns.
    source : mapping
        Where the table came from.

    Notes
    -----
    A run that can have no result does not keep the others from theirs. What holds for every run is a problem of the draft.
    """
    wrong: dict[str, str] = {}
    problems: dict[str, None] = {}
    number = _combinations(draft)
    if number > MOST:
        return Judgement(problems=(_too_many(number),))
    try:
        runs = draft.flow().runs
    except AnonflowError as error:
        runs, wrong = _one_by_one(draft, table.n)
        if not runs:
            return Judgement(problems=tuple(dict.fromkeys([*wrong.values()] if wrong else _words_of(error))))
    if len(runs) > MOST:
        return Judgement(problems=(_too_many(len(runs)),))
    if draft.get(("table", "source")) != dict(source):
        problems["the flow names another table than the one that is open; open that one"] = None
    try:
        refuse_early(_only(draft, runs[0]) if wrong else draft.flow(), table)
    except AnonflowError as error:
        problems[on_screen(error.message)] = None
    possible = []
    for run in runs:
        try:
            check_columns(run.anonymize.method, run.anonymize.options, table.domains)
            problem = why_not(run, table.records)
        except AnonflowError as error:
            problem = error.message
        if problem is None:
            possible.append(run)
        else:
            wrong[run.name] = on_screen(problem)
    if problems or not possible:
        return Judgement(problems=tuple(dict.fromkeys([*problems, *wrong.values()])))
    return Judgement(tuple(possible), (), _by_reason(wrong))


def _too_many(number: int) -> str:
    return f"{number} runs at once; choose fewer methods or values, at most {MOST} in all"


def _combinations(draft: Draft) -> int:
    matrix = draft.get(("matrix",), {})
    number = 1
    for values in matrix.values() if isinstance(matrix, dict) else ():
        number *= len(values) if isinstance(values, list) else 1
    return number


def _words_of(error: AnonflowError) -> tuple[str, ...]:
    # a draft is no file that somebody has seen: what is wrong, without line and column
    places = tuple(text for _, text in getattr(error, "found", ()))
    return tuple(map(on_screen, places or error.problems))


def _one_by_one(draft: Draft, n: int) -> tuple[tuple[engine.Run, ...], dict[str, str]]:
    """Return the runs of a draft that load on their own, and why the others do not."""
    matrix = draft.get(("matrix",), {})
    runs: list[engine.Run] = []
    wrong: dict[str, str] = {}
    if not isinstance(matrix, dict) or not all(isinstance(values, list) for values in matrix.values()):
        return (), {}
    for values in itertools.product(*matrix.values()):
        chosen = dict(zip(matrix, values, strict=True))
        k = chosen.get("anonymize.k", draft.get(("steps", "anonymize", "k")))
        try:
            runs += _restricted(draft, chosen).flow().runs
        except AnonflowError as error:
            name = " ".join(f"{key.rpartition('.')[2]}={value}" for key, value in chosen.items())
            few = isinstance(k, int) and not isinstance(k, bool) and k > n
            wrong[name.removeprefix("algorithm=")] = "; ".join(
                [too_few(n, k).message] if few else _words_of(error)
            )
    return tuple(runs), wrong


def _restricted(draft: Draft, chosen: Mapping[str, Any]) -> Draft:
    """Return the draft with one combination of its matrix alone."""
    document = dict(draft.document)
    if chosen:
        document["matrix"] = {key: [value] for key, value in chosen.items()}
    return Draft(document=document, folder=draft.folder)


def _only(draft: Draft, run: engine.Run) -> engine.Flow:
    return _restricted(draft, run.values).flow()


def _by_reason(wrong: Mapping[str, str]) -> dict[str, str]:
    """Return the runs that one reason keeps from a result, together."""
    names: dict[str, list[str]] = {}
    for name, reason in wrong.items():
        names.setdefault(reason, []).append(name)
    return {", ".join(group): reason for reason, group in names.items()}


def single_document(document: Mapping[str, Any], run: engine.Run) -> dict[str, Any]:
    """Return the flow of one run of a draft: without the matrix, and with what its release is published as.

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
    steps = [
        {"anonymize": settings} if "anonymize" in step else copy.deepcopy(step) for step in document["steps"]
    ]
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
    """Return what is run to compare: the same without the draw, the attacks, the files, and what only a draw can show.

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
    if "verify" in by_name and not promises_classes(guarantee):
        # the diversity of what is not in classes is a property of the release
        criteria = by_name["verify"]["verify"]
        by_name["verify"]["verify"] = [
            criterion for criterion in criteria if _criterion(criterion) not in DIVERSITIES
        ]
    return Draft(document=left, folder=folder).flow()


def _criterion(request: Any) -> str:
    return next(iter(request), "") if isinstance(request, Mapping) else str(request).partition("=")[0]
