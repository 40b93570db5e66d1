"""Durations in the notation of flows and options."""

from __future__ import annotations

import re

from anonflow.errors import ParameterError

DURATION = r"^(\d{1,6}(\.\d{1,6})?[smhd]|0)$"
DURATION_WORDS = "a number and one of s, m, h, d, such as 12h or 7d; or 0"
"""A duration, as a regular expression and in words."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_NAMES = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}


def seconds_of(text: str) -> float:
    """Return the seconds of a duration such as ``30m``, ``12h`` or ``7d``; ``0`` is zero seconds.

    Raises
    ------
    ParameterError
        If it is not a duration.
    """
    if re.fullmatch(DURATION, text.strip()) is None:
        raise ParameterError(f"a duration is {DURATION_WORDS}")
    number = text.strip()
    return 0.0 if number == "0" else float(number[:-1]) * _UNITS[number[-1]]


def in_words(seconds: float) -> str:
    """Return seconds in the largest unit of which they are at least one: ``5 minutes``."""
    unit = next((unit for unit in _NAMES if seconds >= _UNITS[unit]), "s")
    number = f"{seconds / _UNITS[unit]:.3g}"
    return f"{number} {_NAMES[unit][:-1] if number == '1' else _NAMES[unit]}"
