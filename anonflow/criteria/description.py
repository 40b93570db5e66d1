"""Check that the description beside a published file agrees with its cells and the schema, and says nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from anonflow.criteria.verification import Finding
from anonflow.hierarchy.wording import plural
from anonflow.table import Schema
from anonflow.table.files.metadata_file import additions, has_other_sentences
from anonflow.table.files.parquet_metadata import carries_metadata, is_parquet
from anonflow.table.files.parquet_reading import parquet_files
from anonflow.table.published.metadata import CODED, EXACT, ColumnMetadata, ReleaseMetadata, SeenCells
from anonflow.table.published.published_cells import WHOLE, PublishedCells, Range, named_values


def description(
    about: ReleaseMetadata,
    schema: Schema,
    frame: pd.DataFrame,
    certificate: Any = None,
    path: str | PathLike[str] | None = None,
) -> Finding:
    """Return whether a description is that of the release; the original is not needed.

    Parameters
    ----------
    about : ReleaseMetadata
        As it was read beside the file.
    schema : Schema
        What the owner declares.
    frame : pandas.DataFrame, n rows
        The published rows as they were read.
    certificate : Certificate, optional
        The owner's certificate: the description must state its guarantee.
    path : path, optional
        Of the published file: the description and the file's metadata are compared with what anonflow writes.

    Notes
    -----
    A description is a function of the published cells and of the schema, so the check computes it again and compares:
    any further content would come from the original. And every cell must be as the description says, in its domain.
    O(n) for each column.
    """
    names = [column.name for column in about.columns]
    if any(name not in schema for name in names) or names != [str(name) for name in frame.columns]:
        return _failing(about, "it describes other columns than the release has")
    promised = [
        (promise, getattr(certificate, name, None))
        for promise, name in ((about.guarantee, "criterion"), (about.k, "k"))
    ]
    if any(None not in pair and pair[0] != pair[1] for pair in promised):
        return _failing(about, "it promises what the certificate does not")
    recomputed = ReleaseMetadata.declared(schema, names, about.guarantee, about.k)
    recomputed = replace(recomputed.seeing(SeenCells.of(frame, recomputed)), version=about.version)
    if recomputed.rows != about.rows:
        return _failing(
            about, f"it describes {plural(about.rows or 0, 'row')}, and the release has {recomputed.rows}"
        )
    differing = [
        ours.name
        for ours, theirs in zip(recomputed.columns, about.columns, strict=True)
        if theirs not in (ours, _as_before(ours))
    ]
    if differing:
        return _failing(about, f"it says of {_list(differing)} more than the schema and the cells say")
    places = [] if path is None else additions(path, about)
    if places:
        return _failing(about, f"anonflow would not have written all that it says of {', '.join(places)}")
    if path is not None and is_parquet(path) and any(map(carries_metadata, parquet_files(path))):
        return _failing(about, "the Parquet file carries metadata that anonflow does not write")
    wrong = np.column_stack([_contradicting(column, frame[column.name]) for column in about.columns])
    if wrong.any():
        columns = [name for at, name in enumerate(names) if wrong[:, at].any()]
        return Finding.of(
            "description",
            np.asarray(wrong.any(axis=1)),
            "published",
            f"the description beside the file: cells of {_list(columns)} are not what it says",
        )
    detail = "the description beside the file says what its cells and the schema say"
    if path is not None and has_other_sentences(about):
        detail += "; not compared: its sentences, which are those of another version of anonflow"
    return Finding("description", True, detail=detail)


def with_promise(
    finding: Finding, about: ReleaseMetadata, failed: Sequence[str], unchecked: Sequence[str]
) -> Finding:
    """Return the finding about a description after the check of its promise.

    Parameters
    ----------
    finding : Finding
        As :func:`description` returns it.
    about : ReleaseMetadata
    failed : sequence of str
        Criteria that it promises and the rows do not keep, or that do not exist.
    unchecked : sequence of str
        Criteria that it promises and that cannot be checked without the original.
    """
    if failed and finding.holds:
        return _failing(
            about, f"it promises {', '.join(failed)} with k = {about.k}, which the rows do not keep"
        )
    if unchecked and finding.holds:
        return replace(
            finding, detail=f"{finding.detail}; {', '.join(unchecked)} is not checked: it needs the original"
        )
    return finding


def _as_before(column: ColumnMetadata) -> ColumnMetadata:
    """Return a column's description as older versions wrote it, without the mark of values that are not published."""
    return replace(column, type="text", withheld=False) if column.withheld else column


def _contradicting(column: ColumnMetadata, cells: pd.Series) -> np.ndarray:
    """Return which cells contradict the description of their column, shape (n,), bool."""
    if column.notation in (EXACT, CODED):  # their type was compared; which texts are codes is not published
        return np.zeros(len(cells), bool)
    published = PublishedCells.of(cells)
    wrong = [text != WHOLE and not _goes_with(column, text) for text in published.texts]
    if column.notation == "positions" and len({len(text) for text in published.texts if text != WHOLE}) > 1:
        return np.ones(len(cells), bool)
    return np.array(wrong, bool)[published.rows]


def _goes_with(column: ColumnMetadata, text: str) -> bool:
    if column.notation == "range":
        ends = Range.read(text)
        if ends is None or column.bounds is None:
            return ends is not None
        return ends.is_inside(Range(*column.bounds, ends.dates))
    if column.notation == "node":
        return text == "" or column.tree is None or text in column.tree
    if column.values is None:
        return True
    values = set(text) - {WHOLE} if column.notation == "positions" else set(named_values(text))
    return values <= set(column.values)


def _list(names: list[str]) -> str:
    return ", ".join(map(repr, names))


def _failing(metadata: ReleaseMetadata, why: str) -> Finding:
    return Finding(
        "description", False, metadata.rows or 0, "published", (), f"the description beside the file: {why}"
    )
