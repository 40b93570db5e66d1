"""What a draft says at a place, as its file has it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anonflow.dashboards import Draft


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
