"""The registers that attackers of a flow use: files beside the flow, with the table's quasi-identifiers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from anonflow import risk
from anonflow.engine.flows.flow import Flow
from anonflow.engine.flows.spec import SourceSpec
from anonflow.errors import AnonflowError
from anonflow.risk.attack import OF_SETS
from anonflow.strict_yaml import shorten
from anonflow.table.files.read import column_names, read_frame
from anonflow.table.schema import Schema


def register_holders(attackers: Any) -> Iterator[tuple[str, Any, tuple[str, ...] | None]]:
    """Yield each attacker with a register: also those that are tried by sets of columns.

    Parameters
    ----------
    attackers : object
        The list under ``attack``, as it is written.

    Yields
    ------
    (str, object, tuple of str or None)
        The attacker's name; what is written below it; and which quasi-identifiers it knows, None for all.
    """
    for attacker in attackers if isinstance(attackers, list | tuple) else ():
        if isinstance(attacker, str) and attacker in risk.WITH_REGISTER:
            yield attacker, None, None
        for name, settings in attacker.items() if isinstance(attacker, Mapping) else ():
            if name in risk.WITH_REGISTER:
                yield name, settings, None
            elif name in OF_SETS and isinstance(settings, Mapping):
                columns = _set_columns(settings.get("sets"))
                for inner, below, _ in register_holders(settings.get("attackers")):
                    yield inner, below, columns


def _set_columns(sets: Any) -> tuple[str, ...]:
    """Return the columns of all sets; another form than a list of lists of names is refused elsewhere."""
    inside = (
        [keys for keys in sets if isinstance(keys, list | tuple)] if isinstance(sets, list | tuple) else []
    )
    return tuple(dict.fromkeys(name for keys in inside for name in keys if isinstance(name, str)))


def register_problem(
    attackers: Any, schema: Schema | None, source: SourceSpec | None, folder: Path
) -> str | None:
    """Return the problems of the registers of attackers, as far as their first line shows them.

    Parameters
    ----------
    attackers : object
        A list of attackers, as it is written.
    schema : Schema or None
    source : SourceSpec or None
        The table's: a register is written in the same way. Without schema and source only the form is checked.
    folder : pathlib.Path
        What files are relative to.
    """
    for name, settings, columns in register_holders(attackers):
        file = settings.get("population") if isinstance(settings, Mapping) and len(settings) == 1 else None
        if not isinstance(file, str):
            return f"{name!r} needs the file of a population: {{{name}: {{population: register.csv}}}}"
        if "\0" in file or not (folder / file).exists():
            return f"{name!r}: no such file {shorten(file)}; the path is relative to the flow"
        if schema is None or source is None:
            continue
        try:
            names = column_names(folder / file, **source.csv_form)
            risk.check_register(names, schema, schema.preparation, columns)
        except AnonflowError as error:
            return f"{name!r}: {error.problems[0]}"
    return None


def check_registers(flow: Flow) -> None:
    """Read and code the registers of a flow's attackers, so that errors are found before anonymizing.

    Raises
    ------
    ParameterError, DataError, HierarchyError
        If one lacks a quasi-identifier or has no people, or a value is in no hierarchy.
    """
    for _, settings, columns in register_holders(flow.spec.steps.attack):
        risk.register_table(_register_frame(flow, settings["population"]), flow.schema, columns)


def with_registers(flow: Flow, attackers: Any) -> list[Any]:
    """Return attackers with the frame of a register in place of its file's name.

    Raises
    ------
    DataError
        If a file cannot be read.
    """
    return [_with_register(flow, attacker) for attacker in attackers]


def _with_register(flow: Flow, attacker: Any) -> Any:
    if not isinstance(attacker, Mapping):
        return attacker
    read = {}
    for name, settings in attacker.items():
        if name in risk.WITH_REGISTER:
            settings = {"population": _register_frame(flow, settings["population"])}
        elif name in OF_SETS and isinstance(settings, Mapping) and "attackers" in settings:
            settings = {**settings, "attackers": with_registers(flow, settings["attackers"])}
        read[name] = settings
    return read


def _register_frame(flow: Flow, file: str) -> pd.DataFrame:
    source = flow.spec.table.source
    return read_frame(flow.folder / file, **source.csv_form)
