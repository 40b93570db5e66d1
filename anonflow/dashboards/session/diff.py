"""The differences of two flows, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from anonflow.algorithms.registry import REGISTRY
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
    """Return every setting of a flow by its place, such as ``anonymize.k`` or ``table.columns.age.kind``."""
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
    """Return where two flows differ.

    Parameters
    ----------
    first, second : mapping
        Flows as their files have them; names, files to publish to, and what a search wanted and tried are no differences.

    Returns
    -------
    list of (str, str, str)
        Place, what the first says, what the second says; a dash where one says nothing.
    """
    a, b = settings(first), settings(second)
    pairs = []
    for place in dict.fromkeys([*a, *b]):
        if place in ("flow", "version") or place.startswith(("publish", "target.")):
            continue
        if a.get(place, ABSENT) != b.get(place, ABSENT):
            pairs.append(
                (in_words(place), _value_text(a.get(place, ABSENT)), _value_text(b.get(place, ABSENT)))
            )
    return pairs


def in_words(place: str) -> str:
    """Return the reader's name of a place in a flow: ``table.columns.age.kind`` is ``kind of age``."""
    if place.startswith("table.columns."):
        column, dot, field = place.removeprefix("table.columns.").rpartition(".")
        return f"{field} of {column}" if dot else field
    return _WORDS.get(place, place.removeprefix("anonymize."))


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return an edit of a flow as a sentence, in the words of the screens."""
    sentences = [
        *_listed_changes("method", "methods", "algorithm", before, after),
        *_listed_changes("k", "k", "k", before, after),
        *_column_changes(before, after),
        *_cut_changes(before, after),
        *_diversity_changes(before, after),
        *_prepared_changes(before, after),
    ]
    known = ("anonymize.algorithm", "anonymize.k", "matrix.anonymize.", "table.columns.", "table.prepare", "partition.", "diversify")  # fmt: skip
    a, b = settings(before), settings(after)
    for place in dict.fromkeys([*a, *b]):
        if place in ("flow", "version", "partition") or place.startswith(("publish", *known)):
            continue
        first, second = a.get(place, ABSENT), b.get(place, ABSENT)
        if first != second:
            sentences.append(_change(_named(place), first, second))
    if len(sentences) > 3:
        sentences = [*sentences[:3], f"{len(sentences) - 3} more"]
    return "; ".join(sentences) or "nothing that runs differently"


def _change(setting: str, first: Any, second: Any) -> str:
    if second == ABSENT:
        return f"{setting} as at first"
    if first == ABSENT:
        return f"{setting}: {_value_text(second)}"
    return f"{setting}: {_value_text(first)} → {_value_text(second)}"


def _named(place: str) -> str:
    """Return a setting of the method as the screens call it."""
    if place.startswith(("anonymize.options.", "options.")):
        *_, method, name = place.rsplit(".", 2)
        options = REGISTRY[method].options if method in REGISTRY else {}
        option = options.get(name.replace("-", "_"))
        return f"{option.label if option is not None else name} of {method}"
    return in_words(place)


def _step(document: Mapping[str, Any], word: str) -> Mapping[str, Any]:
    steps = document.get("steps")
    settings_of = next(
        (step[word] for step in steps or () if isinstance(step, Mapping) and word in step), None
    )
    return settings_of if isinstance(settings_of, Mapping) else {}


def _listed_changes(
    single: str, several: str, key: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> list[str]:
    def values(document: Mapping[str, Any]) -> list[Any]:
        listed = (document.get("matrix") or {}).get(f"anonymize.{key}")
        return listed if isinstance(listed, list) else [_step(document, "anonymize").get(key)]

    first, second = values(before), values(after)
    if first == second:
        return []
    word = single if len(first) == len(second) == 1 else several
    return [f"{word}: {_value_text(first)} → {_value_text(second)}"]


_ENTRY = {
    "role": "role of {}",
    "kind": "kind of {}",
    "weight": "weight of {}",
    "missing": "{} without a value",
    "max-width": "widest range of {}",
    "max-set": "largest set of {}",
    "at-least": "least level of {}",
    "codes": "codes of {}",
    "code-weight": "weight of the codes of {}",
    "domain": "public values of {}",
    "notation": "notation of {}",
}
"""The names of a column's settings."""


def _column_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    first, second = ((document.get("table") or {}).get("columns") or {} for document in (before, after))
    sentences = []
    for name in dict.fromkeys([*first, *second]):
        old, new = first.get(name) or {}, second.get(name) or {}
        if old == new:
            continue
        if not new:
            sentences.append(f"{name} is not published any more")
            continue
        for key, words in _ENTRY.items():
            if old.get(key) != new.get(key) and not (key == "kind" and key not in new):
                sentences.append(_change(words.format(name), old.get(key, ABSENT), new.get(key, ABSENT)))
        if old.get("hierarchy") != new.get("hierarchy"):
            if "hierarchy" not in new:
                sentences.append(f"{name} has no hierarchy any more")
            else:
                sentences.append(f"{name} has {'another' if 'hierarchy' in old else 'a'} hierarchy")
        if old.get("boundary") != new.get("boundary"):
            sentences.append(_boundary(name, new.get("boundary")))
    return sentences


def _boundary(name: str, boundary: Any) -> str:
    if boundary is None:
        return f"no limits for {name} any more"
    if isinstance(boundary, Mapping):
        return f"{name} stays in intervals of {_value_text(boundary.get('width'))}"
    return f"limits of {name}: {_value_text(boundary)}"


def _cut_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    def words(document: Mapping[str, Any]) -> str:
        cut = document.get("partition") or {}
        size = cut.get("size")
        if size is None:
            return "the whole table at once"
        order = f", in {cut['order']} order" if cut.get("order", "lexicographic") != "lexicographic" else ""
        if size == "auto":
            return f"the largest partitions that fit {_value_text(cut.get('budget'))} s{order}"
        return f"partitions of {_value_text(size)} record{'' if size == 1 else 's'}{order}"

    first, second = words(before), words(after)
    if first != second:
        return [f"works on {second}, before on {first}"]
    orders = [(document.get("partition") or {}).get("order", "lexicographic") for document in (before, after)]
    return [] if orders[0] == orders[1] else [f"cut along: {orders[0]} → {orders[1]}"]


def _diversity_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    def words(document: Mapping[str, Any]) -> str:
        step = _step(document, "diversify")
        if not step:
            return "none"
        rest = ", ".join(
            f"{key} = {_value_text(value)}"
            for key, value in step.items()
            if key not in ("criterion", "column")
        )
        return " ".join(
            [
                str(step.get("criterion")),
                *([f"of {step['column']}"] if "column" in step else []),
                *([f"with {rest}"] if rest else []),
            ]
        )

    first, second = words(before), words(after)
    return [] if first == second else [f"diversity: {first} → {second}"]


def _prepared_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    first, second = ((document.get("table") or {}).get("prepare") or [] for document in (before, after))
    if first == second:
        return []

    def words(steps: Any) -> str:
        names = [next(iter(step), "") for step in steps if isinstance(step, Mapping)]
        return ", ".join(map(str, names)) or "none"

    return [f"steps before: {words(first)} → {words(second)}"]


def _value_text(value: Any) -> str:
    if isinstance(value, list):
        return shortened(", ".join(map(str, value)), 48)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return shortened(value, 48)
