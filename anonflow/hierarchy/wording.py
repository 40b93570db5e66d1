"""Texts for numbers, counts and problems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anonflow.errors import HierarchyError

_SINGULAR = {"are": "is", "have": "has", "were": "was", "do": "does"}


def plural(count: int, noun: str, verb: str = "") -> str:
    """`1 value`, `2 values`, `2 people` of `person`; with a verb, as several take it: `1 cell begins`, `2 cells begin`."""
    if count != 1:
        noun = noun.removesuffix("person") + "people" if noun.endswith("person") else noun + "s"
    return f"{count:,} {noun}" + (f" {verb_of(count, verb)}" if verb else "")


def verb_of(count: int, verb: str) -> str:
    """`is` of 1 and `are` of 2; the verb is given as several take it."""
    return verb if count != 1 else _SINGULAR.get(verb, verb + "s")


def no_such(count: int, nouns: str) -> str:
    """`1 value is no number`, `2 values are not numbers`: how many values of a column are none."""
    return f"1 value is no {nouns.removesuffix('s')}" if count == 1 else f"{count:,} values are not {nouns}"


def some(lines: Sequence[int], limit: int = 5) -> str:
    """`line 3`, `lines 3, 7`, `lines 3, 7, 9, 10, 11 and 4 more`."""
    text = ", ".join(str(line) for line in lines[:limit])
    rest = f" and {len(lines) - limit:,} more" if len(lines) > limit else ""
    return ("line " if len(lines) == 1 else "lines ") + text + rest


def fail(where: str, problems: Sequence[str]) -> None:
    """Raise one HierarchyError for all `problems`, if there are any.

    Raises
    ------
    HierarchyError
        If there are problems.
    """
    if problems:
        raise HierarchyError.collected(where, [f"{where}: {problem}" for problem in problems])


def number_text(number: float | np.integer | np.floating) -> str:
    """Return the shortest text that reads back as `number`; whole numbers without `.0`."""
    if isinstance(number, (int, np.integer)):
        return str(int(number))
    value = float(number)
    # from 1e16 on Python writes floats with an exponent
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)
