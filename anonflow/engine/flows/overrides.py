"""Keys of a flow that are set from outside: ``steps.anonymize.k=20``, also from an environment variable."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from anonflow import strict_yaml
from anonflow.errors import ParameterError

_KEY = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_VARIABLE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


def overridden(
    document: strict_yaml.Document, settings: Sequence[str], environment: Mapping[str, str] | None = None
) -> strict_yaml.Document:
    """Return a flow's document with keys set from outside.

    Parameters
    ----------
    document : Document
        As the file has it; it is not changed.
    settings : sequence of str
        Each ``KEY=VALUE``: the keys from the outside in, with dots between them, where a step is named by itself
        (``steps.anonymize.k``) and an entry of another list by its number from 0; the value as YAML. ``${env:NAME}`` as the
        whole value stands for that environment variable, read as YAML, too; no other is looked at.
    environment : mapping, optional
        The process's own without it.

    Returns
    -------
    Document
        Its digest tells it from the file's, so that another setting is another flow to a replay.

    Raises
    ------
    ParameterError
        If a setting has another form, the flow has no such key, or an environment variable is not set.
    """
    if not settings:
        return document
    variables = os.environ if environment is None else environment
    data = deepcopy(document.data)
    digest = hashlib.sha256(document.digest or b"")
    seen: set[str] = set()
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or _KEY.fullmatch(key) is None:
            raise ParameterError("--set takes KEY=VALUE, such as steps.anonymize.k=20")
        if key in seen:
            raise ParameterError(f"--set {key}: is given twice; give it once")
        seen.add(key)
        named = _VARIABLE.fullmatch(text)
        if named is not None:
            if named[1] not in variables:
                raise ParameterError(f"--set {key}: there is no environment variable {named[1]}; set it")
            text = variables[named[1]]
        value = strict_yaml.loads(text, f"--set {key}", ParameterError).data
        _put(data, key, value)
        digest.update(f"{len(key)}:{key}{len(text)}:{text}".encode("utf-8", "surrogateescape"))
    changed = document.with_data(data)
    changed.digest = digest.digest()
    return changed


def _put(data: Any, key: str, value: Any) -> None:
    """Set one key; missing mappings on the path are created."""
    names = key.split(".")
    part = data
    for at, name in enumerate(names):
        held, is_last = _holder(part, name), at == len(names) - 1
        if held is None:
            so_far = ".".join(names[: at + 1])
            raise ParameterError(
                f"--set {key}: "
                + (
                    f"the flow has no {so_far!r}; add it to the file"
                    if not is_last
                    else f"the flow has no step or entry {name!r} there; add it to the file"
                    if isinstance(part, list)
                    else "is not a key of this flow; see 'anonflow schema --flow'"
                )
            )
        holder, place = held
        if is_last:
            holder[place] = value
        elif isinstance(part, dict) and part.get(name) is None:
            part[name] = {}
        part = holder[place]


def _holder(part: Any, name: str) -> tuple[Any, Any] | None:
    """Return the mapping or list that has an entry of this name, and its key or number there; None if nothing has.

    A mapping may get it; a list has its steps by name, and its other entries by number.
    """
    if isinstance(part, dict):
        return part, name
    if isinstance(part, list):
        step = next((entry for entry in part if isinstance(entry, dict) and name in entry), None)
        if step is not None:
            return step, name
        if name.isdecimal() and int(name) < len(part):
            return part, int(name)
    return None
