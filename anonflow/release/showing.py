"""A release in a notebook: what is published, and apart from it what is the owner's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anonflow.drawing import facts, grid, note, view

if TYPE_CHECKING:
    from anonflow.release.publish import Release

__all__ = ["release_view"]

ROWS = 5
"""Published rows that are shown."""


def release_view(release: Release) -> str:
    """The first published rows as HTML, and what the certificate proves."""
    numbers = [("rows", f"{len(release.frame):,}"), ("columns", len(release.frame.columns))]
    certificate = release.certificate
    if certificate is not None:
        numbers += [
            ("guarantee", certificate.criterion),
            ("k", certificate.k),
            ("method", certificate.algorithm),
        ]
    first = release.frame.head(ROWS)
    kept = "" if certificate is None else " The certificate that goes with it stays with the owner."
    return view(
        "Release",
        facts(numbers),
        grid(["", *first.columns], list(first.itertuples(index=True, name=None))),
        note("release.frame is what may be published, as release.write(path) writes it." + kept),
    )
