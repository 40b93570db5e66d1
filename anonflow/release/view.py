"""A release in a notebook: the published rows, and separately the owner's part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from anonflow.drawing import facts, grid, note, view

ROWS = 5
"""Published rows that are shown."""


def release_view(frame: pd.DataFrame, proof: Sequence[tuple[str, Any]]) -> str:
    """Return the first published rows as HTML, and the proof of the certificate if there is one."""
    numbers = [("rows", f"{len(frame):,}"), ("columns", len(frame.columns)), *proof]
    first = frame.head(ROWS)
    certificate_note = " The certificate that goes with it stays with the owner." if proof else ""
    return view(
        "Release",
        facts(numbers),
        grid(["", *first.columns], list(first.itertuples(index=True, name=None))),
        note("release.frame is what may be published, as release.write(path) writes it." + certificate_note),
    )
