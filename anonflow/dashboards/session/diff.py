"""What differs between two flows, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from anonflow.drawing.fragments import shortened

__all__ = ["changes", "differences", "in_words", "settings"]

ABSENT = "–"

_WORDS = {
    "anonymize.algorithm": "method",
    "anonymize.k": "k",
    "matrix.anonymize.algorithm": "methods",
    "matrix.anonymize.k": "several k",
    "anonymize.loss": "information loss kept low",
    "anonymize.boundaries": "boundaries",
    "partition.size": "partition size",
    "partition.order": "partition order",
    "partition.budget": "time budget",
}


def settings(document: Mapping[str, Any]) -> dict[str, Any]:
    """Every setting of a flow by its place, such as ``anonymize.k`` or ``table.columns.age.kind``."""
    return dict(_places("", document))


def _places(place: str, at: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(at, Mapping):
        for key, value in at.items():
            yield from _places(f"{place}.{key}" if place else str(key), value)
    elif place == "steps" and isinstance(at, list):
        for step in at:
            if isinstance(step, Mapping):
                for word, value in step.items():
                    # a step without settings is a setting: it is there
                    yield from _places(str(word), value) if value else iter([(str(word), "yes")])
    else:
        yield place, at


def differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Where two flows differ.

    Parameters
    ----------
    first, second : mapping
        Flows as their files have them; names and files to publish to are no differences.

    Returns
    -------
    list of (str, str, str)
        Place, what the first says, what the second says; a dash where one says nothing.
    """
    a, b = settings(first), settings(second)
    pairs = []
    for place in dict.fromkeys([*a, *b]):
        if place in ("flow", "version") or place.startswith("publish"):
            continue
        if a.get(place, ABSENT) != b.get(place, ABSENT):
            pairs.append((in_words(place), _said(a.get(place, ABSENT)), _said(b.get(place, ABSENT))))
    return pairs


def in_words(place: str) -> str:
    """A place of a flow as people call it: ``table.columns.age.kind`` is ``kind of age``."""
    if place.startswith("table.columns."):
        column, dot, what = place.removeprefix("table.columns.").rpartition(".")
        return f"{what} of {column}" if dot else what
    return _WORDS.get(place, place.removeprefix("anonymize."))


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """An edit of a flow as a sentence."""
    sentences = []
    for place, first, second in differences(before, after):
        if second == ABSENT:
            sentences.append(f"{place} taken away")
        elif first == ABSENT:
            sentences.append(f"{place} set to {second}")
        else:
            sentences.append(f"{place} from {first} to {second}")
    if len(sentences) > 3:
        sentences = [*sentences[:3], f"{len(sentences) - 3} more"]
    return "; ".join(sentences) or "nothing that runs differently"


def _said(value: Any) -> str:
    if isinstance(value, list):
        return shortened(", ".join(map(str, value)), 48)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return shortened(value, 48)
