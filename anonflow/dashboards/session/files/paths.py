"""Flows from strangers may name files of their own folder only."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from anonflow import strict_yaml
from anonflow.dashboards.session.draft_spec import DraftSpec
from anonflow.engine.flows.addresses import is_address
from anonflow.engine.flows.registers import register_holders
from anonflow.engine.flows.spec import FILES
from anonflow.errors import FlowError
from anonflow.table.identification.earlier import OWNER

MOST_BYTES = 200
"""Of the name of a file."""


def check_confined(spec: DraftSpec, folder: Path) -> None:
    """Refuse a flow that would read or write outside `folder`, before anything of it is opened.

    Raises
    ------
    FlowError
        With every place that names such a path; the path itself is not repeated.
    """
    home, paths = folder.resolve(), [(place, holder[key]) for place, holder, key in paths_in(spec.document)]
    problems = [
        f"{place}: names an address; the dashboards contact no other machine: run the flow with anonflow run"
        for place, path in paths
        if is_address(path)
    ]
    problems += [
        f"{place}: reads an owner's folder; the dashboards do not: run the flow with anonflow run"
        for place in _beside_criteria(spec, "earlier")
    ]
    problems += [
        f"{place}: is read from where the program runs; give the hierarchy to the sensitive column under table.columns"
        for place in _beside_criteria(spec, "hierarchy")
    ]
    if spec.earlier is not None and spec.earlier.owner != (OWNER,):
        problems.append(
            "earlier.owner: the dashboards go on from the releases that they remember themselves, or that are uploaded on the screen Risk or Publish; "
            "leave owner out, or run the flow with anonflow run"
        )
    if spec.table.source.sql is not None:
        problems.append(
            "table.source.sql: the dashboards do not query databases: run the flow with anonflow run"
        )
    problems += [
        f"{place}: names a file outside the folder of the flow; upload the file and name it without its folder"
        for place, path in paths
        if not is_address(path) and not _inside(path, home)
    ]
    if problems:
        raise FlowError.collected("this flow names files outside its folder", problems)


def _beside_criteria(spec: DraftSpec, key: str) -> Iterator[str]:
    """Yield the place of each file, or folder, that stands with a criterion under a key."""
    for criterion in spec.steps.verify:
        if isinstance(criterion, str):
            # as a text, t-closeness(t=0.2, hierarchy=FILE)
            if key in criterion:
                yield "steps.verify"
            continue
        for name, settings in criterion.items():
            named = settings.get(key) if isinstance(settings, dict) else None
            if isinstance(named, str | list) or (isinstance(named, dict) and "csv" in named):
                yield f"steps.verify.{name}.{key}"


def safe_name(name: str) -> str:
    """Return a file name of letters of any alphabet, digits, dots, dashes and underscores, whatever a browser sent."""
    last = unicodedata.normalize("NFC", PureWindowsPath(PurePosixPath(name).name).name)
    # L, M and N: letters, the signs above and below them, and digits; none of these turns the reading direction or is a separator
    letters = "".join(
        letter if unicodedata.category(letter)[0] in "LMN" or letter in "._-" else "-" for letter in last
    )
    # names of files have at most 255 bytes, some of them for what the session puts before this one
    short = letters[-100:].encode()[-MOST_BYTES:].decode("utf-8", "ignore")
    plain = short.lstrip(".-")
    if plain and ("." in plain or "." not in short):
        return plain
    return f"table.{plain or 'csv'}"  # nothing but an ending is left


def names_a_dataset(path: Path, most: int) -> bool:
    """Return whether a stranger's flow takes a built-in table, or is not a flow at all: it waits for no file; one of more than `most` bytes is none."""
    with path.open("rb") as stream:
        text = stream.read(most + 1).decode("utf-8", "replace")
    try:
        return len(text) > most or DraftSpec.of(strict_yaml.loads(text).data).table.source.file is None
    except FlowError:
        return True


def _inside(path: str, home: Path) -> bool:
    if "\0" in path or "\\" in path or PureWindowsPath(path).drive or PurePosixPath(path).is_absolute():
        return False
    if ".." in PurePosixPath(path).parts:
        return False
    try:
        # a link inside the folder may lead out of it
        return (home / path).resolve().is_relative_to(home)
    except (OSError, RuntimeError):
        return False


def paths_in(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield every text of a flow that is taken for a path: where it stands, the mapping that holds it, and its key there."""
    table, publish = document["table"], document.get("publish", {})
    yield from _texts("table.source", table["source"], FILES)
    for step in table.get("prepare", ()):
        yield from _texts("table.prepare", step.get("recode"), ("file",))
    for name, column in table["columns"].items():
        yield from _texts(f"table.columns.{name}", column, ("hierarchy",))
        yield from _texts(f"table.columns.{name}.hierarchy", column.get("hierarchy"), ("csv",))
    for step in document["steps"]:
        for _, settings, _ in register_holders(step.get("attack")):
            yield from _texts("steps.attack", settings, ("population",))
    yield from _texts("publish", publish, ("table",))
    yield from _texts("publish.report", publish.get("report"), ("file", "pdf"))


def _texts(place: str, holder: Any, keys: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any], str]]:
    if isinstance(holder, dict):
        for key in keys:
            if isinstance(holder.get(key), str):
                yield f"{place}.{key}", holder, key
