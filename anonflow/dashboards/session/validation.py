"""Validation of a draft before its runs; and the flow that each single run is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from anonflow import engine
from anonflow.dashboards.session.draft_spec import DraftSpec, written
from anonflow.dashboards.session.screen_words import on_screen
from anonflow.engine.execution.plan import refuse_early, why_not
from anonflow.engine.flows.references import check_columns
from anonflow.engine.flows.spec import SourceSpec
from anonflow.errors import AnonflowError
from anonflow.partition import too_few
from anonflow.table import Schema, Table

if TYPE_CHECKING:
    import pandas as pd

MOST = 200
"""The most runs of one start."""


@dataclass(frozen=True)
class Judgement:
    """The runs of a draft that may work, as far as is known before they run."""

    runs: tuple[engine.Run, ...] = ()
    """Those that may have a result."""
    problems: tuple[str, ...] = ()
    """The problems that prevent all runs, one sentence each; empty if there are runs."""
    impossible: Mapping[str, str] = field(default_factory=dict)
    """Name of a run that can have no result, or several with commas -> why, where others can."""
    flow: engine.Flow | None = None
    """The flow as the engine has it, where there are runs."""


def code(
    frame: pd.DataFrame,
    spec: DraftSpec,
    folder: Path,
    source: SourceSpec,
    tell: Callable[[str, int, int], None] = lambda words, count, of: None,
) -> tuple[Table | None, tuple[str, ...]]:
    """Return a frame as the table of a flow, after the preparation steps; or the problems of its columns. Before each column, `tell` is called with words, and how many of all are coded."""
    columns = {name: written(column) for name, column in spec.columns.items()}
    try:
        schema = Schema(columns, folder=folder, prepare=list(spec.table.prepare))
        return Table(frame, schema.with_separators(source.decimal, source.thousands), _tell=tell), ()
    except AnonflowError as error:
        return None, tuple(map(on_screen, error.problems))


def judged(spec: DraftSpec, folder: Path, table: Table, source: SourceSpec) -> Judgement:
    """Return which runs of a draft can work on a table of n records, coded under its columns and read from `source`, and which cannot.

    A run that can have no result does not keep the others from theirs. What holds for every run is a problem of the draft.
    """
    wrong: dict[str, str] = {}
    problems: dict[str, None] = {}
    number = math.prod(map(len, spec.matrix.values()))
    if number > MOST:
        return Judgement(
            problems=(f"{number} runs at once; choose fewer methods or values, at most {MOST} in all",)
        )
    try:
        flow = spec.loaded(folder)
        runs = flow.runs
    except AnonflowError as error:
        flows, wrong = _one_by_one(spec, folder, table.n)
        if not flows:
            return Judgement(problems=tuple(dict.fromkeys(wrong.values() if wrong else _words_of(error))))
        flow, runs = flows[0], tuple(run for variant in flows for run in variant.runs)
    if spec.table.source != source:
        problems["the flow names another table than the one that is open; open that one"] = None
    try:
        refuse_early(flow, table)
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
    names: dict[str, list[str]] = {}
    for name, reason in wrong.items():
        names.setdefault(reason, []).append(name)
    return Judgement(tuple(possible), (), {", ".join(group): reason for reason, group in names.items()}, flow)


def _words_of(error: AnonflowError) -> tuple[str, ...]:
    # a draft is no file that somebody has seen: what is wrong, without line and column
    places = tuple(text for _, text in getattr(error, "found", ()))
    return tuple(map(on_screen, places or error.problems))


def _one_by_one(spec: DraftSpec, folder: Path, n: int) -> tuple[list[engine.Flow], dict[str, str]]:
    """Return the flow of each combination of a matrix that loads on its own, and why the others do not."""
    flows: list[engine.Flow] = []
    wrong: dict[str, str] = {}
    for values in itertools.product(*spec.matrix.values()):
        chosen = dict(zip(spec.matrix, values, strict=True))
        alone = spec.model_copy(update={"matrix": {key: (value,) for key, value in chosen.items()}})
        try:
            flows.append(alone.loaded(folder))
        except AnonflowError as error:
            name = " ".join(f"{key.rpartition('.')[2]}={value}" for key, value in chosen.items())
            few = alone.ks[0] > n
            wrong[name.removeprefix("algorithm=")] = "; ".join(
                [too_few(n, alone.ks[0]).message] if few else _words_of(error)
            )
    return flows, wrong
