"""Whether the description beside a published file says what its cells and the schema say, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from anonflow.criteria.verification import Finding
from anonflow.table import Schema
from anonflow.table.metadata import ReleaseMetadata, SeenCells

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["description"]


def description(about: ReleaseMetadata, schema: Schema, frame: pd.DataFrame | None) -> Finding | None:
    """A finding that fails where a description is not that of the release; None where it is.

    Parameters
    ----------
    about : ReleaseMetadata
        As it was read beside the file.
    schema : Schema
        What the owner declares.
    frame : pandas.DataFrame or None
        The published rows as they were read.

    Notes
    -----
    A description is a function of the published cells and of the schema, so it is made again and compared: what it says
    beyond that would be of the original.
    """
    if frame is None:
        return None
    names = [column.name for column in about.columns]
    if any(name not in schema for name in names) or names != [str(name) for name in frame.columns]:
        return _failing(about, "it describes other columns than the release has")
    own = ReleaseMetadata.declared(schema, names, about.guarantee, about.k)
    own = replace(own.seeing(SeenCells.of(frame, own.ranges)), version=about.version)
    if own.rows != about.rows:
        return _failing(about, f"it describes {about.rows} rows, and the release has {own.rows}")
    differing = [ours.name for ours, theirs in zip(own.columns, about.columns, strict=True) if ours != theirs]
    if differing:
        listed = ", ".join(map(repr, differing))
        return _failing(about, f"it says of {listed} what neither the schema nor the cells say")
    return None


def _failing(about: ReleaseMetadata, why: str) -> Finding:
    return Finding(
        "description", False, about.rows or 0, "published", (), f"the description beside the file: {why}"
    )
