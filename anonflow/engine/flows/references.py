"""Check the names in a flow: methods, losses, criteria, measures, data sets, hierarchies."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anonflow import datasets, loss, risk, strict_yaml, utility
from anonflow.algorithms import REGISTRY, Algorithm
from anonflow.algorithms.budget import AUTO
from anonflow.algorithms.diversity.target import DIVERSITIES, PARAMETERS, check_parameters, sensitive_column
from anonflow.criteria.guarantee import promises_classes, promises_matches
from anonflow.criteria.registry import CRITERIA
from anonflow.criteria.request import read_criteria
from anonflow.errors import AnonflowError, ParameterError
from anonflow.hierarchy import Hierarchy
from anonflow.risk.attacker import AttackerKind
from anonflow.table.coding import stand_in
from anonflow.table.domain import Domain
from anonflow.table.schema import UNPUBLISHED, Schema


def method_problems(algorithm: str, measure: str, options: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the problems of a method's parameters: (parameter, problem) for each."""
    problems = loss_problems(measure)
    method = REGISTRY.get(algorithm)
    if method is None:
        problems.append(("algorithm", strict_yaml.unknown(algorithm, (*REGISTRY, AUTO), "algorithm")))
        return problems
    for name, value in options.items():
        if (gone := method.gone_problem(name, value)) is not None:
            problems.append((name, f"{gone} ({algorithm})"))
        elif name not in method.options:
            names = ("algorithm", "k", "loss", *method.options)
            problems.append((name, strict_yaml.unknown(name, names, f"option of {algorithm}")))
        elif (problem := method.options[name].problem(value)) is not None:
            problems.append((name, f"'{name}' of {algorithm} {problem}"))
    return problems


def column_problems(
    method: Algorithm, options: Mapping[str, Any], domains: Sequence[Domain] | None
) -> list[tuple[str, str]]:
    """Return the problems of a method's options with stand-ins of the columns: (option, problem) for each."""
    return [] if method.option_problems is None else list(method.option_problems(domains, options))


def check_columns(method: Algorithm, options: Mapping[str, Any], domains: Sequence[Domain]) -> None:
    """Refuse columns that the method cannot publish, and options that do not go with them or with one another.

    Raises
    ------
    ParameterError
        With the first problem.
    """
    for domain in domains:
        if (
            domain.kind == "categorical"
            and domain.shape == "set"
            and (problem := method.levels_problem(domain.column))
        ):
            raise ParameterError(problem)
    for _, problem in column_problems(method, options, domains):
        raise ParameterError(problem, subject=method.name)


def stand_ins(schema: Schema) -> list[Domain] | None:
    """Return domains in the place of the table's own, before it is read; None where one of them depends on its cells."""
    domains = [stand_in(schema[name], schema.folder) for name in schema.quasi_identifiers]
    of_schema = [domain for domain in domains if domain is not None]
    return of_schema if len(of_schema) == len(domains) else None


def loss_problems(measure: str) -> list[tuple[str, str]]:
    """Return the problem of an information loss's name, in the form of :func:`method_problems`."""
    try:
        loss.measure_named(measure)
    except AnonflowError as error:
        return [("loss", error.problems[0])]
    return []


def criterion_problem(criterion: Any, method: Algorithm | None, draws: bool, diverse: bool) -> str | None:
    """Return the problem of a criterion for a method in a flow; None if there is none.

    Parameters
    ----------
    criterion : object
    method : Algorithm or None
    draws : bool
        Whether the flow draws a release.
    diverse : bool
        Whether it makes results diverse, so that their diversity needs no check of the rows.
    """
    if isinstance(criterion, str) and criterion not in ("guarantee", *CRITERIA) and "=" not in criterion:
        near = strict_yaml.suggest(criterion, ("guarantee", *CRITERIA))
        if near is not None:
            return f"unknown criterion {strict_yaml.shorten(criterion)} (did you mean {near!r}?)"
    try:
        requests = read_criteria([criterion], "covers" if method is None else method.guarantee)
    except AnonflowError as error:
        return error.problems[0]
    matches = method is not None and promises_matches(method.guarantee) and not diverse
    for request in requests:
        if not draws and request.declared.needs_draw(matches):
            return f"{request.name} is checked on drawn rows: add '- draw: {{}}', and with a matrix pick a run to publish"
    return None


def diversify_problem(
    criterion: str, settings: Mapping[str, Any], schema: Schema | None
) -> tuple[str, str | None]:
    """Return the problem of a step diversify, with its key; None if there is none."""
    if criterion not in DIVERSITIES:
        return "criterion", strict_yaml.unknown(criterion, DIVERSITIES, "criterion")
    named = {name: settings[name] for name in PARAMETERS if settings[name] is not None}
    try:
        check_parameters(criterion, named)
    except AnonflowError as error:
        needed = DIVERSITIES[criterion].needed
        strange = [name for name in named if name not in needed]
        return (*strange, *needed)[0], error.text
    if schema is None:
        return "", None
    roles = {name: column.role for name, column in schema.columns.items()}
    others = tuple(name for name, role in roles.items() if role not in ("quasi-identifier", *UNPUBLISHED))
    sensitive = tuple(name for name, role in roles.items() if role == "sensitive")
    try:
        sensitive_column(settings["column"], sensitive, others)
    except AnonflowError as error:
        return "column", error.text
    return "", None


def attacker_problem(
    attacker: Any, schema: Schema | None = None, method: Algorithm | None = None
) -> str | None:
    """Return the problem of an attacker of a flow, also for a table of this schema and the method of the published run."""
    if not isinstance(attacker, str | Mapping):
        return "an attacker is a name such as linker, or {insider: {c: 2}}"
    for name, kind in risk.ATTACKERS.items():
        if kind.call and (attacker == name or (isinstance(attacker, Mapping) and name in attacker)):
            return f"{name!r} {kind.call}"
    try:
        chosen = risk.attackers_of(attacker)
    except AnonflowError as error:
        return error.problems[0]
    for named_attacker in [attacker for attacker in chosen if isinstance(attacker, AttackerKind)]:
        text = None if schema is None else named_attacker.schema_problem(schema)
        if text is not None:
            return text
        if named_attacker.of_classes and method is not None and not promises_classes(method.guarantee):
            return f"{named_attacker.name!r} needs a release of classes, and {method.name} makes none; leave it out, or take another method"
    return None


def measure_problem(measure: Any) -> str | None:
    """Return the problem of a measure of a flow, as far as it is known without the table."""
    if not isinstance(measure, str) and not (isinstance(measure, Mapping) and len(measure) == 1):
        return "a measure is a name such as gcp, or a name with its options, such as {regression: {formula: 'a ~ b'}}"
    try:
        utility.read_measures([measure])
    except AnonflowError as error:
        return error.problems[0]
    return None


def dataset_problems(name: str, options: Sequence[str]) -> list[tuple[str, str]]:
    """Return the problems of a data set's name and of its options' names: (key, problem) for each."""
    if name not in datasets.names():
        return [("dataset", strict_yaml.unknown(name, datasets.names(), "data set"))]
    parameters = inspect.signature(getattr(datasets, name)).parameters
    return [
        (key, f"'{key}' does not go with the data set {name}") for key in options if key not in parameters
    ]


def check_hierarchy(hierarchy: str | Mapping[str, Any], folder: Path) -> None:
    """Read a hierarchy that needs no values of the table, to check that it is readable.

    Raises
    ------
    HierarchyError
        If it cannot be read or is no tree.
    """
    if isinstance(hierarchy, Mapping) and not {"csv", "nested"} & set(hierarchy):
        return
    Hierarchy.from_mapping(dict(hierarchy) if isinstance(hierarchy, Mapping) else hierarchy, folder=folder)
