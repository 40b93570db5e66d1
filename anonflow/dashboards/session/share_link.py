"""Links that restore a configuration: names and parameters, never a cell, a label or a column of somebody's file."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from anonflow import datasets
from anonflow.algorithms.registry import REGISTRY
from anonflow.dashboards.session.draft_spec import ColumnSpec, DraftSpec, DraftSteps
from anonflow.engine.flows.json_schema import flow_schema, words_of
from anonflow.engine.flows.spec import PartitionSpec, SourceSpec
from anonflow.errors import ParameterError

LONGEST = 8000
"""Characters of a link, at most."""


class LinkSpec(BaseModel):
    """What a link holds: parts of a flow."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1]
    steps: DraftSteps
    source: SourceSpec | None = None
    """Of a built-in table; its columns and steps before go with it."""

    columns: dict[str, ColumnSpec] | None = None
    prepare: tuple[dict[str, Any], ...] = ()
    partition: PartitionSpec = PartitionSpec()
    matrix: dict[str, tuple[Any, ...]] = {}


@cache
def flow_words() -> frozenset[str]:
    """Return all texts that a link may hold besides the names of a built-in table's columns: those of the flow format."""
    return frozenset(words_of(flow_schema()))


def link(spec: DraftSpec) -> str:
    """Return the configuration of a draft as the query of a link: ``c=...``, JSON, coded so that it survives being mailed.

    Of a built-in table its name, its options and what its columns are; of an uploaded file nothing at all. Of the rest
    numbers, and texts that anonflow itself knows; a setting that holds any other text is left out whole.
    """
    document, source = spec.document, spec.table.source
    body: dict[str, Any] = {"version": 1, "steps": []}
    words = set(flow_words())
    if source.dataset is not None:
        first = datasets.schema(source.dataset, hierarchies=True)
        words |= set(first) | {source.dataset}
        body["source"] = _filtered(document["table"]["source"], words)
        body["columns"] = {
            name: _column(entry, first[name], words)
            for name, entry in document["table"]["columns"].items()
            if name in first
        }
        # up to the first that holds a text of somebody's: those after it rest on it
        body["prepare"] = list(itertools.takewhile(lambda step: _is_known(step, words), spec.table.prepare))
    for part in ("partition", "matrix"):
        if part in document:
            body[part] = _filtered(document[part], words)
    for step in document["steps"]:
        ((word, settings),) = step.items()
        if isinstance(settings, list):
            body["steps"].append({word: [element for element in settings if _is_known(element, words)]})
        else:
            body["steps"].append({word: _filtered(settings, words)})
    text = json.dumps(body, separators=(",", ":"), sort_keys=True)
    return "c=" + base64.urlsafe_b64encode(text.encode()).decode("ascii").rstrip("=")


def configuration(text: str) -> LinkSpec:
    """Return the content of a link; only its form is checked here, its settings are checked like any draft.

    Raises
    ------
    ParameterError
        If :func:`link` did not make it.
    """
    code = text.removeprefix("?").removeprefix("c=")
    try:
        if len(code) > LONGEST:
            raise ValueError
        # the link leaves out the padding, which base64 wants
        return LinkSpec.model_validate(json.loads(base64.urlsafe_b64decode(code + "=" * (-len(code) % 4))))
    # json recurses: brackets a thousand deep end in a RecursionError
    except (ValueError, RecursionError):
        raise ParameterError("this link holds no configuration; copy it whole, or start without it") from None


def merged(spec: DraftSpec, shared: LinkSpec) -> DraftSpec:
    """Return the first draft of a table with the configuration of a link over it; hierarchies that came with a built-in table are its own."""
    table: dict[str, Any] = {}
    if shared.columns is not None:
        dataset = spec.table.source.dataset
        trees = {} if dataset is None else datasets.schema(dataset, hierarchies=True)
        names = [*(name for name in spec.columns if name in shared.columns), *shared.columns]
        columns = {name: shared.columns[name] for name in names}
        for name, column in columns.items():
            tree = trees.get(name, {}).get("hierarchy") if column.kind == "hierarchy" else None
            columns[name] = column.model_copy(update={"hierarchy": tree})
        table = {"columns": columns, "prepare": shared.prepare or spec.table.prepare}
    whole = spec.with_table(**table).model_copy(
        update={"steps": shared.steps, "partition": shared.partition, "matrix": shared.matrix}
    )
    return DraftSpec.of(whole.document)


def _column(entry: Mapping[str, Any], first: Mapping[str, Any], words: set[str]) -> dict[str, Any]:
    """Return what a built-in table's column is; a hierarchy only if it is the one that came with the table."""
    if entry.get("kind") != "hierarchy":
        return _filtered(entry, words)
    if entry.get("hierarchy") != first.get("hierarchy"):
        return {"role": "quasi-identifier", "kind": "categorical"}
    labels = set(_labels(first["hierarchy"]))
    settings = {key: value for key, value in entry.items() if key != "hierarchy"}
    return _filtered(settings, words | labels)


def _labels(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, Mapping):
        for key, value in tree.items():
            yield str(key)
            yield from _labels(value)
    elif isinstance(tree, list | tuple):
        for child in tree:
            yield from _labels(child)


def _filtered(settings: Mapping[str, Any], words: set[str]) -> dict[str, Any]:
    """Return the settings whose texts are all known."""
    subset = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and key in ("options", *REGISTRY):
            subset[key] = _filtered(value, words)  # one setting of a method does not take the others along
        elif _is_known(key, words) and _is_known(value, words):
            subset[key] = value
    return subset


def _is_known(value: Any, words: set[str]) -> bool:
    """Return whether all texts of a setting are known, so that none comes from a user's data."""
    if isinstance(value, str):
        is_bits = bool(value) and set(value) <= {"0", "1"}
        return value in words or value.replace("_", "-") in words or is_bits
    if isinstance(value, Mapping):
        return all(_is_known(key, words) and _is_known(entry, words) for key, entry in value.items())
    return not isinstance(value, list | tuple) or all(_is_known(entry, words) for entry in value)
