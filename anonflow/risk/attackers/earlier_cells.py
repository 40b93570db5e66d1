"""Convert an earlier release, from before a table's preparation steps, to the same coding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from anonflow.errors import DataError, HierarchyError
from anonflow.generalization import Generalization
from anonflow.table import Domain, Table
from anonflow.table.forms.text_columns import value_text
from anonflow.table.prepare import Preparation, Step
from anonflow.table.published.published_cells import WHOLE, Range, category_text, named_values, set_text


def prepared_release(table: Table, frame: pd.DataFrame) -> pd.DataFrame:
    """Return an earlier release with the column names and the coding of a table's preparation steps.

    Parameters
    ----------
    table : Table
        The table after its preparation steps.
    frame : pandas.DataFrame
        The earlier release, of the table with or without these steps.

    Returns
    -------
    pandas.DataFrame
        A column whose cells fit the table does not change. In any other column the steps code both ends of a range and
        each member of a set; a cell that cannot be coded becomes ``*``. Rows that a filter would remove stay, because
        nobody knows whose they are.
    """
    steps = table.preparation
    if not steps:
        return frame
    names = steps.renamed(map(str, frame.columns))
    # a release with the new name already had the step
    names = {old: new for old, new in names.items() if new not in frame.columns}
    before = {new: old for old, new in names.items()}
    frame = frame.rename(columns=names)
    for name in table.frame.columns:
        changes = _steps_of(steps, before.get(name, name))
        if name in frame.columns and changes and not _goes_with(table, frame[name]):
            domains = [domain for domain in table.domains if domain.column == name]
            frame = frame.assign(**{name: _coded(frame[name], changes, domains)})
    return frame


def _steps_of(steps: Preparation, name: str) -> list[Step]:
    """Return the steps that change the cells of a column, in their order."""
    changes = []
    for step in steps.steps:
        if step.column == name and step.name == "rename":
            name = step.options["to"]
        elif step.column == name and step.name != "filter" and step.declared:  # a release has plain cells
            changes.append(step)
    return changes


def _goes_with(table: Table, cells: pd.Series) -> bool:
    """Return whether all cells of a published column are written as a release of the table writes them."""
    domains = [domain for domain in table.domains if domain.column == cells.name]
    if not domains:
        values = {value_text(value) for value in table.frame[cells.name].unique()}
        return all(value_text(value) in values for value in cells.unique() if value != WHOLE)
    distinct = cells.drop_duplicates()
    return all(text == WHOLE or _as_published(text, domains) == text for text in distinct)


def _coded(cells: pd.Series, steps: list[Step], domains: Sequence[Domain]) -> pd.Series:
    at, distinct = pd.factorize(cells, use_na_sentinel=False)
    coded = [value if value == WHOLE else _coded_cell(value, steps, bool(domains)) for value in distinct]
    if domains:
        coded = [_as_published(text, domains) for text in coded]
    return pd.Series(np.array(coded, object)[at], index=cells.index, name=cells.name).infer_objects()


def _coded_cell(cell: Any, steps: list[Step], generalized: bool) -> Any:
    """Return a cell after the steps: a range by its ends, a set by its members, ``*`` if a step cannot code it."""
    if not generalized or not isinstance(cell, str):
        coded = _after(cell, steps)
        return WHOLE if coded is None else coded[0]
    ends = Range.read(cell)
    if ends is not None:
        first, last = (_after(end if ends.dates else float(end), steps) for end in (ends.low, ends.high))
        if first is None or last is None:
            return WHOLE
        numbers = all(isinstance(end[0], int | float | np.number) for end in (first, last))
        joined = Range(value_text(first[0]), value_text(last[0]), not numbers)
        return joined.text if joined.low == joined.high or Range.read(joined.text) is not None else WHOLE
    members = [_after(value or "", steps) for value in named_values(cell)]
    if any(member is None for member in members):
        return WHOLE
    return set_text(sorted({category_text(_member(member[0])) for member in members if member is not None}))


def _as_published(text: Any, domains: Sequence[Domain]) -> str:
    """Return a cell as a release of the table writes it: ``*`` for the whole domain, and for a cell that covers no value of it."""
    try:
        read = Generalization.parse(pd.DataFrame({domains[0].column: [text]}), domains)
    except (DataError, HierarchyError):
        return WHOLE
    return WHOLE if (read.lo > read.hi).any() else str(read.decode().iloc[0, 0])


def _member(value: Any) -> str | None:
    return None if pd.isna(value) else value_text(value)


def _after(value: Any, steps: list[Step]) -> tuple[Any] | None:
    """Return a value after the steps, in a tuple, or None if a step cannot code it."""
    frame = pd.DataFrame({steps[0].column: [value]})
    try:
        for step in steps:
            frame = step.apply(frame.set_axis([step.column], axis=1))
    except (DataError, HierarchyError):
        return None
    return (frame.iloc[0, 0],)
