"""The result of a search as a flow: this flow runs the picked settings, without timing."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from anonflow.engine.search.trials import SearchReport, SearchTarget, Setup, Trial
from anonflow.errors import InfeasibleError

LONGEST = 200
"""Characters of a problem, at most."""


def target_section(report: SearchReport, picked: int | None = None) -> dict[str, Any]:
    """Return the section target of a flow: the requirements, and the trials.

    Parameters
    ----------
    report : SearchReport
    picked : int, optional
        The trial that the flow runs; by default the picked one.
    """
    chosen = report.picked if picked is None else picked
    trials = []
    for at, trial in enumerate(report.trials):
        trials.append({**_tried(trial), **({"picked": True} if at == chosen else {})})
    return {**_wanted(report.target), "tried": trials}


def _wanted(target: SearchTarget) -> dict[str, Any]:
    entries: dict[str, Any] = {
        key: float(value)
        for key in ("loss", "risk", "disclosure")
        if (value := getattr(target, key)) is not None
    }
    if target.signs:
        entries["signs"] = list(target.signs)
    return {**entries, "time": f"{f'{target.seconds:.6f}'.rstrip('0').rstrip('.')}s"}


def _tried(trial: Trial) -> dict[str, Any]:
    setup = trial.candidate.setup
    digits = {"loss": 6, "risk": 6, "disclosure": 6, "seconds": 3, "expected": 3}
    figures = {key: getattr(trial, key) for key in digits}
    entry = {
        "algorithm": setup.algorithm,
        "k": trial.candidate.k,
        "size": setup.size,
        "options": dict(setup.options) or None,
        "diversify": dict(setup.diversity) or None,
        **{
            key: value if value is None else round(float(value), digits[key])
            for key, value in figures.items()
        },
        "signs": None if trial.signs is None else bool(trial.signs),
        "problem": None if trial.problem is None else trial.problem[:LONGEST],
    }
    return {key: value for key, value in entry.items() if value is not None}


def with_diversity(steps: Sequence[Mapping[str, Any]], setup: Setup) -> list[dict[str, Any]]:
    """Return the steps of a flow with the diversity of a setup; a step diversify comes right after anonymize.

    Parameters
    ----------
    steps : sequence of mapping
        As a flow has them.
    setup : Setup
    """
    diversity = dict(setup.diversity)
    new_steps: list[dict[str, Any]] = []
    base: Any = {}
    for step in steps:
        ((name, settings),) = step.items()
        if name == "diversify":
            base = {} if "criterion" in diversity else settings
        else:
            new_steps.append({name: settings})
    if base or diversity:
        new_steps.insert(1, {"diversify": {**base, **diversity}})
    return new_steps


def picked_document(document: Mapping[str, Any], report: SearchReport) -> dict[str, Any]:
    """Return a flow that runs the pick of a search, and lists its trials.

    If no trial meets the target, and one does without some columns, the flow runs that one, and does not publish these columns.

    Parameters
    ----------
    document : mapping
        The flow with the open target, as plain data.
    report : SearchReport

    Raises
    ------
    InfeasibleError
        If nothing has a result.
    """
    at = report.picked if report.answer is None else report.answer
    if at is None:
        raise InfeasibleError(f"search: {report.sentence()} Raise the target or its time.")
    best = report.trials[at]
    setup = best.candidate.setup
    flow = copy.deepcopy(
        {key: value for key, value in document.items() if key not in ("matrix", "target", "partition")}
    )
    if report.answer is not None:
        columns = flow["table"]["columns"]
        flow["table"]["columns"] = {
            name: column for name, column in columns.items() if name not in best.without
        }
    steps = []
    for step in flow["steps"]:
        (name, settings), *_ = step.items()
        if name == "anonymize":
            base = {key: settings[key] for key in ("loss", "boundaries") if key in (settings or {})}
            settings = {"algorithm": setup.algorithm, "k": best.candidate.k, **base, **dict(setup.options)}
        steps.append({name: settings})
    steps = with_diversity(steps, setup)
    partition = {key: value for key, value in (document.get("partition") or {}).items() if key == "order"}
    if setup.size is not None:
        partition["size"] = setup.size
    picked: dict[str, Any] = {}
    for key, value in flow.items():
        if key == "steps" and partition:
            picked["partition"] = partition
        picked[key] = steps if key == "steps" else value
    publish = picked.get("publish")
    if isinstance(publish, dict):
        publish.pop("run", None)
    return {**picked, "target": target_section(report, at)}
