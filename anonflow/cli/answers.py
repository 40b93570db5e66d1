"""The output of ``--json`` as JSON Schema, on which a pipeline may rely. Keys may be added; no key is renamed or removed."""

from __future__ import annotations

from typing import Any

_NUMBER: dict[str, Any] = {"type": ["number", "null"]}
_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_TRUTH: dict[str, Any] = {"type": "boolean"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_ANY: dict[str, Any] = {}


def _mapping(description: str, /, **keys: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a mapping with all of these keys; an underscore stands for a space."""
    named = {name.replace("_", " ") if name in _SPACED else name: entry for name, entry in keys.items()}
    return {"description": description, "type": "object", "properties": named, "required": list(named)}


def _list_of(description: str, /, **keys: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "type": "array", "items": _mapping("One of them.", **keys)}


_SPACED = {"minimal_uniques", "smallest_class", "average_risk"}

_RUNS = _list_of(
    "The runs, one for each method and k; seconds are those of the method on each partition, added up; what else was measured "
    "stands under the measure's name.",
    algorithm=_TEXT, k={"type": "integer", "minimum": 1}, records=_COUNT, gcp=_NUMBER, usefulness=_NUMBER,
    suppressed=_COUNT, seconds=_NUMBER, checks=_TEXT,
)  # fmt: skip

_ANSWERS: dict[str, dict[str, Any]] = {
    "run": _mapping(
        "The result of a flow; progress is a line of JSON for each event on the standard error.",
        ok=_TRUTH, unchanged=_TRUTH, flow=_TEXT, runs=_RUNS, published=_TEXTS, owner={"type": ["string", "null"]},
        attacks={"type": "array", "items": {"type": "object"}}, warnings=_TEXTS, problems=_TEXTS, seconds=_NUMBER,
    ),
    "compare": _mapping(
        "What the methods cost.", ok=_TRUTH, runs=_RUNS, problems=_TEXTS, seconds=_NUMBER
    ),
    "search": _mapping(
        "What a search for a flow's target has tried, in this order, and picked.",
        ok=_TRUTH,
        trials=_list_of(
            "The trials.", algorithm=_TEXT, k={"type": "integer", "minimum": 1}, size={"type": ["integer", "null"]},
            options=_TEXT, loss=_NUMBER, risk=_NUMBER, disclosure=_NUMBER, signs={"type": ["boolean", "null"]}, seconds=_NUMBER,
            expected=_NUMBER, frontier=_TRUTH, meets=_TRUTH, picked=_TRUTH, problem=_TEXT, without=_TEXT,
        ),
        ended=_TEXT, sentence=_TEXT, flow={"type": ["string", "null"]}, seconds=_NUMBER,
    ),
    "plan": _mapping(
        "What a flow will do, and what its runs are expected to take; memory in bytes.",
        flow=_TEXT, steps=_list_of("The steps, in their order.", step=_TEXT, what=_TEXT),
        runs=_list_of(
            "The runs; null where nothing is expected, and the problem says why.",
            run=_TEXT, seconds=_NUMBER, memory={"type": ["integer", "null"]}, records=_COUNT, problem=_TEXT,
        ),
    ),
    "validate": _list_of(
        "The flow files in the order in which they were given; a file with a problem has no name.",
        file=_TEXT, ok=_TRUTH, flow={"type": ["string", "null"]}, runs=_COUNT, problems=_TEXTS,
    ),
    "verify": _mapping(
        "Whether a release keeps what it promises.",
        holds=_TRUTH, records=_COUNT, k={"type": ["integer", "null"]},
        checks=_list_of(
            "The criteria.", criterion=_TEXT, parameters={"type": "object"}, holds=_TRUTH, failed=_COUNT, side=_TEXT,
            positions={"type": "array", "items": _COUNT}, detail=_TEXT,
        ),
        remarks=_TEXTS,
    ),
    "describe": {
        "description": "What a receiver of a release sees; with --release, the figures of anybody's release.",
        "anyOf": [
            _mapping(
                "What a receiver sees.",
                rows=_COUNT, columns=_list_of("The columns.", name=_TEXT, role=_TEXT, cells=_TEXT), can=_TEXTS, cannot=_TEXTS,
            ),
            _mapping(
                "Figures of anybody's release.",
                figures=_list_of("The figures.", figure=_TEXT, column=_TEXT, value=_ANY, not_seen=_TEXT),
            ),
        ],
    },
    "attack": _list_of(
        "The attackers.", attacker=_TEXT, targets=_COUNT, success=_NUMBER, worst=_NUMBER, sentence=_TEXT
    ),
    "risk": _mapping(
        "The risk before anonymization.",
        sets=_list_of(
            "Sets of columns.", columns=_TEXT, size=_COUNT, uniques=_COUNT, minimal_uniques=_COUNT, smallest_class=_COUNT,
            average_risk=_NUMBER,
        ),
        columns=_list_of("The columns.", column=_TEXT),
    ),
    "prepare": _list_of(
        "The steps.", step=_TEXT, column={"type": ["string", "null"]}, changed=_COUNT, removed=_COUNT, distinct=_COUNT, left=_COUNT
    ),
    "schema": _mapping("A guess at the schema of a table.", columns={"type": "object"}, reasons={"type": "object"}),
    "init": _mapping("The flow that was made.", flow=_TEXT),
    "algorithms": {
        "description": "The methods; with a NAME, its options.",
        "anyOf": [
            _list_of(
                "The methods.", name=_TEXT, family=_TEXT, guarantee=_TEXT, complexity=_TEXT, paper=_TEXT, summary=_TEXT
            ),
            _list_of("The options of one.", option=_TEXT, value=_TEXT, default=_ANY, meaning=_TEXT),
        ],
    },
    "datasets": _list_of(
        "The tables to start with.", name=_TEXT, rows=_NUMBER, columns=_NUMBER, origin=_TEXT, licence=_TEXT, available=_TRUTH
    ),
}  # fmt: skip


def answers_schema() -> dict[str, Any]:
    """Return a JSON Schema (2020-12) with a definition under ``$defs`` for the answer of each command.

    Returns
    -------
    dict
        Plain data.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Answers of anonflow --json",
        "$defs": _ANSWERS,
    }
