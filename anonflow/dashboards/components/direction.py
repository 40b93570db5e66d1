"""The better direction of every number on a screen, read from its declaration."""

from __future__ import annotations

from anonflow import utility
from anonflow.engine.execution.result import BETTER

_ARROWS = {"lower": " ↓", "higher": " ↑", "": ""}


def better(name: str) -> str:
    """Return which is better of a measure, or of a column of a run's row: ``lower``, ``higher``, or nothing if neither is."""
    measure = utility.MEASURES.get(name)
    return measure.better if measure is not None else BETTER.get(name, "")


def directed(label: str, name: str) -> str:
    """Return such as ``information loss (GCP), lower is better``."""
    which = better(name)
    return f"{label}, {which} is better" if which else label


def arrow(label: str, name: str) -> str:
    """Return the same in a narrow place, such as ``GCP ↓``."""
    return label + _ARROWS[better(name)]
