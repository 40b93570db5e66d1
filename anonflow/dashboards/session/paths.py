"""Flows from strangers may name files of their own folder only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from anonflow import strict_yaml
from anonflow.engine.flows.addresses import is_address
from anonflow.engine.flows.registers import register_holders
from anonflow.engine.flows.spec import FILES
from anonflow.errors import FlowError

__all__ = ["check_confined", "file_of", "names_a_dataset", "paths_in", "safe_name"]


def check_confined(document: Any, folder: Path) -> None:
    """Refuse a flow that would read or write outside `folder`, before anything of it is opened.

    Parameters
    ----------
    document : object
        The flow as its file has it; parts that are no flow at all are left to the loader.
    folder : pathlib.Path
        What its paths are relative to.

    Raises
    ------
    FlowError
        With every place that names such a path; the path itself is not repeated.
    """
    home = folder.resolve()
    problems = _elsewhere(document) + [
        f"{place}: names a file outside the folder of the flow; upload the file and name it without its folder"
        for place, holder, key in paths_in(document)
        if not is_address(holder[key]) and not _inside(holder[key], home)
    ]
    if problems:
        raise FlowError.collected("this flow names files outside its folder", problems)


def _elsewhere(document: Any) -> list[str]:
    """Return the parts of a flow that no dashboard runs: access to other machines, and database queries."""
    problems = [
        f"{place}: names an address; the dashboards contact no other machine: run the flow with anonflow run"
        for place, holder, key in paths_in(document)
        if is_address(holder[key])
    ]
    problems += [
        f"{place}: reads an owner's folder; the dashboards do not: run the flow with anonflow run"
        for place in _beside_criteria(document, "earlier")
    ]
    problems += [
        f"{place}: is read from where the program runs; give the hierarchy to the sensitive column under table.columns"
        for place in _beside_criteria(document, "hierarchy")
    ]
    if isinstance(document, dict) and "earlier" in document:
        problems.append(
            "earlier: the dashboards do not go on from earlier releases: run the flow with anonflow run"
        )
    table = document.get("table") if isinstance(document, dict) else None
    source = table.get("source") if isinstance(table, dict) else None
    if isinstance(source, dict) and "sql" in source:
        problems.append(
            "table.source.sql: the dashboards do not query databases: run the flow with anonflow run"
        )
    return problems


def _beside_criteria(document: Any, key: str) -> Iterator[str]:
    """Yield the place of each file, or folder, that stands with a criterion under a key."""
    steps = document.get("steps") if isinstance(document, dict) else None
    for step in steps if isinstance(steps, list) else ():
        criteria = step.get("verify") if isinstance(step, dict) else None
        for criterion in criteria if isinstance(criteria, list) else ():
            # as a text, t-closeness(t=0.2, hierarchy=FILE)
            if isinstance(criterion, str) and key in criterion:
                yield "steps.verify"
            for name, settings in criterion.items() if isinstance(criterion, dict) else ():
                named = settings.get(key) if isinstance(settings, dict) else None
                if isinstance(named, str | list) or (isinstance(named, dict) and "csv" in named):
                    yield f"steps.verify.{name}.{key}"


def safe_name(name: str) -> str:
    """Return a file name of letters, digits, dots, dashes and underscores, whatever a browser sent."""
    last = PureWindowsPath(PurePosixPath(name).name).name
    kept = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in last
    )
    return kept.lstrip(".-")[-100:] or "table.csv"


def file_of(source: Mapping[str, Any]) -> str | None:
    """Return the file that a source of a flow names; None of a built-in table."""
    return next((str(source[key]) for key in FILES if source.get(key) is not None), None)


def names_a_dataset(path: Path, most: int) -> bool:
    """Return whether a stranger's flow takes a built-in table, or is not a flow at all: it waits for no file; one of more than `most` bytes is none."""
    with path.open("rb") as stream:
        text = stream.read(most + 1).decode("utf-8", "replace")
    if len(text) > most:
        return True
    try:
        table = strict_yaml.loads(text).data["table"]
        return file_of(table["source"]) is None
    except (FlowError, TypeError, KeyError, AttributeError):
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


def paths_in(document: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield every text of a flow that is taken for a path.

    Parameters
    ----------
    document : object
        The flow as its file has it.

    Yields
    ------
    (str, dict, str)
        Where it stands; the mapping that holds it, and its key there.
    """
    if not isinstance(document, dict):
        return
    table = document.get("table")
    if isinstance(table, dict):
        yield from _texts("table.source", table.get("source"), FILES)
        prepare = table.get("prepare")
        for step in prepare if isinstance(prepare, list) else ():
            yield from _texts(
                "table.prepare", step.get("recode") if isinstance(step, dict) else None, ("file",)
            )
        columns = table.get("columns")
        for name, entry in columns.items() if isinstance(columns, dict) else ():
            yield from _texts(f"table.columns.{name}", entry, ("hierarchy",))
            if isinstance(entry, dict):
                yield from _texts(f"table.columns.{name}.hierarchy", entry.get("hierarchy"), ("csv",))
    steps = document.get("steps")
    for step in steps if isinstance(steps, list) else ():
        attackers = step.get("attack") if isinstance(step, dict) else None
        for _, settings, _ in register_holders(attackers):
            yield from _texts("steps.attack", settings, ("population",))
    publish = document.get("publish")
    yield from _texts("publish", publish, ("table", "report"))
    if isinstance(publish, dict):
        yield from _texts("publish.report", publish.get("report"), ("file", "pdf"))


def _texts(place: str, holder: Any, keys: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any], str]]:
    if isinstance(holder, dict):
        for key in keys:
            if isinstance(holder.get(key), str):
                yield f"{place}.{key}", holder, key
