"""Drafts of flow files: read, looked at and edited by places, as their files have them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anonflow import strict_yaml
from anonflow.dashboards import Draft, Workspace
from anonflow.dashboards.session.draft_spec import DraftSpec
from anonflow.errors import AnonflowError


def value_at(draft: Draft, path: Sequence[str], default: Any = None) -> Any:
    """Return what is at `path`; a step of ``steps`` is named by its word, ``("steps", "anonymize", "k")``."""
    document = draft.document
    at: Any = {
        **document,
        "steps": {word: step for entry in document["steps"] for word, step in entry.items()},
    }
    for key in path:
        at = at.get(key) if isinstance(at, dict) else None
    return default if at is None else at


def put_at(draft: Draft, path: Sequence[str], value: Any) -> None:
    """Put a value there, as one step of the history."""
    draft.put(draft.spec.changed([(path, value)]))


def read_draft(text: str, folder: Path = Path()) -> Draft:
    """Return the draft of a flow file."""
    return Draft(spec=DraftSpec.read(strict_yaml.loads(text), folder), folder=folder)


def problems_of(draft: Draft) -> tuple[str, ...]:
    """Return what the loader says of the flow, without the data."""
    try:
        draft.flow()
    except AnonflowError as error:
        return error.problems
    return ()


def open_flow(workspace: Workspace, text: str) -> None:
    """Open a flow file as the screen Data does."""
    file = workspace.place.path / "given.yaml"
    file.write_text(text, encoding="utf-8")
    workspace.opener.read_project_file(file)()
