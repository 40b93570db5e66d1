"""The better direction of every number on a screen, read from its declaration."""

from __future__ import annotations

from anonflow import utility
from anonflow.engine.execution.result import BETTER

_ARROWS = {"lower": " ↓", "higher": " ↑", "": ""}


def better(name: str) -> str:
    """Return which is better of a measure, or of a column of a run's row: ``lower``, ``higher``, or nothing if neither is."""
    measure = utility.MEASURES.get(name)
    return measure.better if measure is not None else BETTER.get(name, "")


def direction(name: str) -> str:
    """Return such as ``lower is better``."""
    return f"{better(name)} is better" if better(name) else ""


def sentence(name: str) -> str:
    """Return a measure's description and its better direction, from its declaration."""
    end = direction(name)
    return " ".join(filter(None, (utility.MEASURES[name].sentence, end and f"{end.capitalize()}.")))


def directed(label: str, name: str) -> str:
    """Return such as ``information loss (GCP), lower is better``."""
    return ", ".join(filter(None, (label, direction(name))))


def arrow(label: str, name: str) -> str:
    """Return the same in a narrow place, such as ``GCP ↓``."""
    return label + _ARROWS[better(name)]
