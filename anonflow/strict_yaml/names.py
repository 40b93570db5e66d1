"""Suggestions for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from anonflow.errors import SHOWN


def shorten(text: str) -> str:
    """Return `text` in quotes, cut at 40 characters."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def suggest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that `name` was probably meant to be, or None."""
    names = list(known)
    folded = {other.casefold().replace("_", "-"): other for other in names}
    near = difflib.get_close_matches(name[:100].casefold().replace("_", "-"), list(folded), 1, 0.6)
    return folded[near[0]] if near else None


def did_you_mean(name: object, names: Sequence[str]) -> str:
    """Return the end of a message about an unknown name: the nearest known one, else the first of them."""
    near = suggest(str(name), names)
    if near:
        return f" (did you mean {near!r}?)"
    rest = f", and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f" (known: {', '.join(names[:SHOWN])}{rest})"


def is_it(name: str, others: Iterable[str]) -> str:
    """Return the end of a message about a missing name: the one among unknown names that is probably meant, or nothing."""
    near = suggest(name, others)
    return f" (is it {near!r}?)" if near else ""


def unknown(name: str, known: Iterable[str], kind: str = "key", likely: str | None = None) -> str:
    """Return ``unknown key 'foo' (did you mean 'for'?)``, or the list of known names if no name is similar.

    Parameters
    ----------
    name : str
        The unknown name.
    known : iterable of str
        The known names.
    kind : str
        The kind of the thing that it names, such as ``key``.
    likely : str, optional
        The known name that is meant, where something else than its letters says so.
    """
    names = list(known)
    near = likely or suggest(name, names)
    if near is not None:
        return f"unknown {kind} {shorten(name)} (did you mean {near!r}?)"
    if names and len(names) <= 12:
        return f"unknown {kind} {shorten(name)}; known are {', '.join(names)}"
    return f"unknown {kind} {shorten(name)}"
