"""The JSON Schema of flows agrees with the loader on every example."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from anonflow import strict_yaml
from anonflow.engine.flows.json_schema import flow_schema
from anonflow.errors import FlowError
from anonflow.table.schema import COLUMN_KEYS
from tests import ROOT

VALID = sorted(
    [*(ROOT / "tests" / "engine" / "flows" / "valid").glob("*.yaml"), *(ROOT / "flows").glob("*.yaml")]
)
# what a schema can see without looking into files, or at what goes with what
SEEN = {
    "attack", "column", "k_text", "loss", "algorithm", "misspelt", "scheduler", "step", "version",
    "seed", "name",
}  # fmt: skip


def problems_of(path: Path) -> list[str]:
    data = json.loads(json.dumps(strict_yaml.read(path, error=FlowError).data))
    return [f"{path.stem}: {error.message}" for error in _validator().iter_errors(data)]


@cache
def _validator() -> Any:
    return jsonschema.Draft202012Validator(flow_schema())


def test_it_is_a_json_schema() -> None:
    _validator().check_schema(flow_schema())
    text = json.dumps(flow_schema())
    assert "Among how many records each one hides." in text
    assert "greedy" in text


def test_each_key_of_a_column_is_said_in_a_sentence() -> None:
    columns = flow_schema()["$defs"]["TableSpec"]["properties"]["columns"]["additionalProperties"]
    assert {key: form["description"] for key, form in columns["properties"].items()} == COLUMN_KEYS
    assert all(len(form) > 1 for form in columns["properties"].values())


def test_valid_flows_are_valid() -> None:
    assert [problem for path in VALID for problem in problems_of(path)] == []


def test_invalid_flows_are_seen() -> None:
    refused = {
        path.stem
        for path in (ROOT / "tests" / "engine" / "flows" / "invalid").glob("*.yaml")
        if _refused(path)
    }
    assert SEEN - {"attack", "column"} <= refused


def _refused(path: Path) -> bool:
    try:
        return bool(problems_of(path))
    except FlowError:
        return True
