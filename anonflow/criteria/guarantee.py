"""A guarantee: the criteria that a method promises, joined to a text, and what follows from them for the rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, unquote

_JOINED = re.compile(r"\s+and\s+|;\s*")

OF_CLASSES = frozenset({"k-anonymity"})
"""Under these, equal rows are a class, in which originals and rows are drawn; nobody is in two."""
OF_MATCHES = frozenset({"k-regular"})
"""Under these, each row is drawn from the k originals that it matches, and equal rows may be equal by chance."""


def promised_criteria(guarantee: str | None) -> list[str]:
    """Return the criteria of a guarantee, as they are written; none without one."""
    return _JOINED.split(guarantee.strip()) if guarantee else []


def promises_classes(guarantee: str | None) -> bool:
    """Return whether results with this guarantee are equivalence classes."""
    return not OF_CLASSES.isdisjoint(promised_criteria(guarantee))


def promises_matches(guarantee: str | None) -> bool:
    """Return whether results with this guarantee are k-regular graphs."""
    return not OF_MATCHES.isdisjoint(promised_criteria(guarantee))


def promises_one_in_k(guarantee: str | None) -> bool:
    """Return whether nobody's row is found with a probability above 1/k, by whoever knows all quasi-identifiers and the method."""
    return promises_classes(guarantee) or promises_matches(guarantee)


def sets_text(sets: Iterable[Iterable[str]]) -> str:
    """Return sets of columns as a guarantee has them, such as ``[age+sex|zip]``; signs in names are written as in addresses."""
    return f"[{'|'.join('+'.join(quote(name, safe='') for name in columns) for columns in sets)}]"


def sets_of_text(text: str) -> list[list[str]]:
    """Return the sets of columns that :func:`sets_text` wrote."""
    return [[unquote(name) for name in columns.split("+")] for columns in text.strip("[]").split("|")]
