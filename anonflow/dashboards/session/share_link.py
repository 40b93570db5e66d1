"""Links that restore a configuration: names and parameters, never a cell, a label or a column of somebody's file."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from anonflow import datasets
from anonflow.algorithms.registry import REGISTRY
from anonflow.engine.flows.json_schema import flow_schema, words_of
from anonflow.errors import ParameterError

__all__ = ["configuration", "link", "merged"]

LONGEST = 8000
"""Characters of a link, at most."""


@cache
def _known_words() -> frozenset[str]:
    """Return all texts that a link may hold besides the names of a built-in table's columns: those of the flow format."""
    return frozenset(words_of(flow_schema()))


class _Unknown(Exception):
    """The error for a text that may come from a user's data."""


def link(document: Mapping[str, Any]) -> str:
    """Return the configuration of a draft as the query of a link.

    Of a built-in table its name, its options and what its columns are; of an uploaded file nothing at all. Of the rest
    numbers, and texts that anonflow itself knows; a setting that holds any other text is left out whole.

    Parameters
    ----------
    document : mapping
        The draft's.

    Returns
    -------
    str
        ``c=...``: JSON, coded so that it survives being mailed; O(its length).
    """
    table = document.get("table", {})
    source = table.get("source", {})
    kept: dict[str, Any] = {"version": 1}
    words = set(_known_words())
    if "dataset" in source:
        first = datasets.schema(source["dataset"], hierarchies=True)
        words |= set(first) | {source["dataset"]}
        kept["source"] = _filtered(source, words)
        kept["columns"] = {
            name: _column(entry, first[name], words)
            for name, entry in table.get("columns", {}).items()
            if name in first
        }
        kept["prepare"] = _known_steps(table.get("prepare", []), words)
    for part in ("partition", "matrix"):
        if isinstance(document.get(part), Mapping):
            kept[part] = _filtered(document[part], words)
    kept["steps"] = []
    for step in document.get("steps", []):
        (word, settings), *_ = step.items()
        if isinstance(settings, Mapping):
            kept["steps"].append({word: _filtered(settings, words)})
        else:
            kept["steps"].append({word: [element for element in settings if _is_known(element, words)]})
    text = json.dumps(kept, separators=(",", ":"), sort_keys=True)
    return "c=" + base64.urlsafe_b64encode(text.encode()).decode("ascii").rstrip("=")


def configuration(text: str) -> dict[str, Any]:
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
        content = json.loads(base64.urlsafe_b64decode(code + "=" * (-len(code) % 4)))
        if (
            not isinstance(content, dict)
            or content.get("version") != 1
            or not isinstance(content.get("steps"), list)
        ):
            raise ValueError
    except (ValueError, RecursionError):
        raise ParameterError("this link holds no configuration; copy it whole, or start without it") from None
    return content


def merged(document: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return a first draft with the configuration of a link over it.

    Parameters
    ----------
    document : mapping
        Of the table that is open.
    shared : mapping
        Of :func:`configuration`.

    Returns
    -------
    dict
        Columns that the table does not have are left out; hierarchies that came with a built-in table are its own.
    """
    merged_document = {key: value for key, value in document.items() if key != "matrix"}
    columns = {name: dict(entry) for name, entry in document["table"]["columns"].items()}
    declared = shared.get("columns")
    if isinstance(declared, Mapping):
        source = document["table"]["source"]
        trees = datasets.schema(source["dataset"], hierarchies=True) if "dataset" in source else {}
        for name in [name for name in columns if name not in declared]:
            del columns[name]
        for name, entry in declared.items():
            if isinstance(entry, Mapping):
                columns[name] = {key: value for key, value in entry.items() if key != "hierarchy"}
                if entry.get("kind") == "hierarchy":
                    columns[name] |= {"hierarchy": trees.get(name, {}).get("hierarchy")}
    merged_document["table"] = {**document["table"], "columns": columns}
    if isinstance(shared.get("prepare"), list) and shared["prepare"] and isinstance(declared, Mapping):
        merged_document["table"]["prepare"] = shared["prepare"]
    for part in ("partition", "matrix"):
        if isinstance(shared.get(part), Mapping):
            merged_document[part] = dict(shared[part])
    steps = [dict(step) for step in shared["steps"] if isinstance(step, Mapping) and len(step) == 1]
    if any("anonymize" in step for step in steps):
        merged_document["steps"] = steps
    return merged_document


def _known_steps(steps: Any, words: set[str]) -> list[Any]:
    """Return the steps before up to the first that holds a text of somebody's: those after it rest on it."""
    kept: list[Any] = []
    for step in steps if isinstance(steps, list) else []:
        if not _is_known(step, words):
            break
        kept.append(step)
    return kept


def _column(entry: Mapping[str, Any], first: Mapping[str, Any], words: set[str]) -> dict[str, Any]:
    """Return what a built-in table's column is; a hierarchy only if it is the one that came with the table."""
    if entry.get("kind") != "hierarchy":
        return _filtered(entry, words)
    if entry.get("hierarchy") != first.get("hierarchy"):
        return {"role": "quasi-identifier", "kind": "categorical"}
    labels = set(_labels(first["hierarchy"]))
    kept = {key: value for key, value in entry.items() if key != "hierarchy"}
    return _filtered(kept, words | labels)


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
    kept = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and key in ("options", *REGISTRY):
            kept[key] = _filtered(value, words)  # one setting of a method does not take the others along
        elif _is_known(key, words) and _is_known(value, words):
            kept[key] = value
    return kept


def _is_known(value: Any, words: set[str]) -> bool:
    try:
        _check(value, words)
    except _Unknown:
        return False
    return True


def _check(value: Any, words: set[str]) -> None:
    if isinstance(value, str):
        if (
            value not in words
            and value.replace("_", "-") not in words
            and not (value and set(value) <= {"0", "1"})
        ):
            raise _Unknown
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            _check(key, words)
            _check(entry, words)
    elif isinstance(value, list | tuple):
        for entry in value:
            _check(entry, words)
