"""Unknown names, and what they were probably meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["shorten", "suggest", "unknown"]


def shorten(text: str, limit: int = 40) -> str:
    """`text` in quotes, cut at `limit` characters."""
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")


def suggest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that `name` was probably meant to be, or None."""
    names = list(known)
    folded = {other.casefold().replace("_", "-"): other for other in names}
    near = difflib.get_close_matches(name[:100].casefold().replace("_", "-"), list(folded), 1, 0.6)
    return folded[near[0]] if near else None


def unknown(name: str, known: Iterable[str], what: str = "key") -> str:
    """``unknown key 'foo' (did you mean 'for'?)``, or the known ones where none is near.

    Parameters
    ----------
    name : str
        The name nothing has.
    known : iterable of str
        The names there are.
    what : str
        What it is a name of.
    """
    names = list(known)
    near = suggest(name, names)
    if near is not None:
        return f"unknown {what} {shorten(name)} (did you mean {near!r}?)"
    if names and len(names) <= 12:
        return f"unknown {what} {shorten(name)}; known are {', '.join(names)}"
    return f"unknown {what} {shorten(name)}"
