"""The differences of two flows, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anonflow.algorithms.registry import REGISTRY
from anonflow.dashboards.session.draft_spec import ColumnSpec, DraftSpec, written
from anonflow.drawing.fragments import shortened
from anonflow.engine.flows.spec import DiversifySpec, PartitionSpec
from anonflow.hierarchy.wording import plural

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


def settings(spec: DraftSpec) -> dict[str, Any]:
    """Return every setting of a flow by its place, such as ``anonymize.k`` or ``table.columns.age.kind``."""
    whole = spec.model_dump(by_alias=True, exclude_none=True)
    steps = {word: step or "yes" for word, step in whole.pop("steps").items() if step != ()}
    return dict(_changed_places("", {**whole, **steps}))


def _changed_places(place: str, at: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(at, dict):
        yield place, at
        return
    for key, value in at.items():
        yield from _changed_places(f"{place}.{key}" if place else str(key), value)


def differences(first: DraftSpec, second: DraftSpec) -> list[tuple[str, str, str]]:
    """Return where two flows differ.

    Parameters
    ----------
    first, second : DraftSpec
        Names, files to publish to, and what a search wanted and tried are no differences.

    Returns
    -------
    list of (str, str, str)
        Place, what the first says, what the second says; a dash where one says nothing.
    """
    return [
        (in_words(place), _value_text(a), _value_text(b)) for place, a, b in _changed_settings(first, second)
    ]


def _changed_settings(first: DraftSpec, second: DraftSpec) -> Iterator[tuple[str, Any, Any]]:
    a, b = settings(first), settings(second)
    for place in dict.fromkeys([*a, *b]):
        pair = a.get(place, ABSENT), b.get(place, ABSENT)
        if pair[0] != pair[1] and not place.startswith(("flow", "publish", "target.")):
            yield place, *pair


def in_words(place: str) -> str:
    """Return the reader's name of a place in a flow: ``table.columns.age.kind`` is ``kind of age``."""
    if place.startswith("table.columns."):
        column, dot, field = place.removeprefix("table.columns.").rpartition(".")
        return f"{field} of {column}" if dot else field
    return _WORDS.get(place, place.removeprefix("anonymize."))


def changes(before: DraftSpec, after: DraftSpec) -> str:
    """Return an edit of a flow as a sentence, in the words of the screens."""
    sentences = [
        *_listed_changes("method", "methods", before.algorithms, after.algorithms),
        *_listed_changes("k", "k", before.ks, after.ks),
        *_column_changes(before.columns, after.columns),
        *_cut_changes(before.partition, after.partition),
        *_change_of("diversity", _diversity(before.steps.diversify), _diversity(after.steps.diversify)),
        *_change_of("steps before", _step_names(before), _step_names(after)),
    ]
    prefixes = ("anonymize.algorithm", "anonymize.k", "matrix.anonymize.", "table.columns.", "table.prepare", "partition.", "diversify")  # fmt: skip
    sentences += [
        _change(_named(place), first, second)
        for place, first, second in _changed_settings(before, after)
        if not place.startswith(prefixes)
    ]
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


def _listed_changes(single: str, several: str, first: Sequence[Any], second: Sequence[Any]) -> list[str]:
    word = single if len(first) == len(second) == 1 else several
    return _change_of(word, _value_text(first), _value_text(second))


def _change_of(word: str, first: str, second: str) -> list[str]:
    return [] if first == second else [f"{word}: {first} → {second}"]


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


def _column_changes(before: Mapping[str, ColumnSpec], after: Mapping[str, ColumnSpec]) -> list[str]:
    sentences = []
    for name in dict.fromkeys([*before, *after]):
        first, second = before.get(name, ColumnSpec()), after.get(name, ColumnSpec())
        if first == second:
            continue
        if name not in after:
            sentences.append(f"{name} is not published any more")
            continue
        old, new = written(first), written(second)
        for key, words in _ENTRY.items():
            if old.get(key) != new.get(key) and not (key == "kind" and key not in new):
                sentences.append(_change(words.format(name), old.get(key, ABSENT), new.get(key, ABSENT)))
        if first.hierarchy != second.hierarchy:
            if second.hierarchy is None:
                sentences.append(f"{name} has no hierarchy any more")
            else:
                sentences.append(f"{name} has {'a' if first.hierarchy is None else 'another'} hierarchy")
        if first.boundary != second.boundary:
            sentences.append(_boundary(name, second))
    return sentences


def _boundary(name: str, column: ColumnSpec) -> str:
    if column.boundary is None:
        return f"no limits for {name} any more"
    if column.interval is not None:
        return f"{name} stays in intervals of {_value_text(column.interval)}"
    return f"limits of {name}: {_value_text(column.limit_labels)}"


def _cut_changes(before: PartitionSpec, after: PartitionSpec) -> list[str]:
    def words(cut: PartitionSpec) -> str:
        if cut.size is None:
            return "the whole table at once"
        order = "" if cut.order == "lexicographic" else f", in {cut.order} order"
        if cut.size == "auto":
            return f"the largest partitions that fit {_value_text(cut.budget)} s{order}"
        return f"partitions of {plural(cut.size, 'record')}{order}"

    first, second = words(before), words(after)
    if first != second:
        return [f"works on {second}, before on {first}"]
    return _change_of("cut along", before.order, after.order)


def _diversity(step: DiversifySpec | None) -> str:
    if step is None:
        return "none"
    numbers = {key: value for key, value in written(step).items() if key not in ("criterion", "column")}
    rest = ", ".join(f"{key} = {_value_text(value)}" for key, value in numbers.items())
    return step.criterion + (f" of {step.column}" if step.column else "") + (f" with {rest}" if rest else "")


def _step_names(spec: DraftSpec) -> str:
    return ", ".join(next(iter(step), "") for step in spec.table.prepare) or "none"


def _value_text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return shortened(", ".join(map(str, value)), 48)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return shortened(value, 48)
