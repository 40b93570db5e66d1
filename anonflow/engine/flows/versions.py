"""Versions of the flow format: an older flow is converted to the newest version before it is checked."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from anonflow.engine.flows import spec
from anonflow.strict_yaml import Document

Converter = Callable[[dict[str, Any]], None]

CONVERTERS: dict[int, Converter] = {}
"""Version -> what makes a flow of it, in place, one of the version that follows. There is one version so far: the
next one puts its converter from 1 here, and raises ``spec.VERSION``."""


def newest(document: Document) -> tuple[Document, str | None]:
    """Return a flow in the newest version of the format.

    Parameters
    ----------
    document : Document

    Returns
    -------
    document : Document
        The same flow if its version is the newest, or not a version; places are those of the file.
    problem : str or None
        Why its version cannot be read.
    """
    data = document.data
    if not isinstance(data, dict) or "version" not in data:
        return document, None
    version = data["version"]
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        return document, f"this anonflow reads version {spec.VERSION} of the format: a whole number"
    if version > spec.VERSION:
        return document, (
            f"this anonflow reads version {spec.VERSION} of the format, and not version {version}; "
            "install a newer anonflow"
        )
    if version == spec.VERSION:
        return document, None
    data = deepcopy(data)
    for step in range(version, spec.VERSION):
        if step not in CONVERTERS:
            return (
                document,
                f"this anonflow reads version {spec.VERSION} of the format; version {version} is too old",
            )
        CONVERTERS[step](data)
        data["version"] = step + 1
    return document.with_data(data), None
