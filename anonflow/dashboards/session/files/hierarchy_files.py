"""Hierarchies and codebooks that are dropped beside a table: matched with its columns by their names, and attached in one edit."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from anonflow.dashboards.session.draft_spec import ColumnSpec, DraftSpec
from anonflow.dashboards.session.files.paths import safe_name
from anonflow.errors import AnonflowError, HierarchyError
from anonflow.hierarchy import Hierarchy
from anonflow.table.coding import column_values
from anonflow.table.identification.value_signs import numbers_in
from anonflow.table.infer import kind_of
from anonflow.table.prepare import Preparation, table_of_file

if TYPE_CHECKING:
    from anonflow.dashboards.session.workspace import Workspace

MOST = 5_000_000
"""Bytes of an uploaded hierarchy."""

_WORD = re.compile(r"hierarch(?:y|ies)", re.IGNORECASE)


def is_hierarchy_name(name: str) -> bool:
    """Return whether a file says by its name that it holds a hierarchy."""
    return name.lower().endswith((".csv", ".txt")) and _WORD.search(name) is not None


def matched_column(name: str, columns: Collection[str]) -> str | None:
    """Return the column that a hierarchy file is for, by its name, such as ``adult_hierarchy_age.csv``: the longest that fits; None where no column has it."""
    stem = Path(name).name.rpartition(".")[0].lower()
    without = _WORD.sub("", stem).strip("-_. ")
    fits = [
        column
        for column in columns
        if any(re.search(rf"(?:^|[-_. ]){re.escape(column.lower())}$", text) for text in (stem, without))
    ]
    return max(fits, key=len, default=None)


def read_hierarchy(path: Path) -> tuple[Hierarchy, str]:
    """Return a hierarchy file, and what stands between its columns.

    Raises
    ------
    HierarchyError
        If it is larger than :data:`MOST`, or no hierarchy.
    """
    if path.stat().st_size > MOST:
        raise HierarchyError(f"the file has more than {MOST // 1_000_000} MB; name it in a flow instead")
    with path.open("rb") as stream:
        first = stream.readline(100_000).decode("utf-8", "replace")
    delimiter = max(";,\t|", key=first.count)
    return Hierarchy.from_csv(path, delimiter), delimiter


class Attached(NamedTuple):
    """What became of the files: the columns that have a hierarchy now, or labels in place of codes, and why the others have none."""

    columns: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    labelled: tuple[str, ...] = ()

    def sentences(self) -> list[str]:
        """Return one on the columns, and one on each file that was refused."""
        names, number = ", ".join(self.columns), len(self.columns)
        subject = "1 hierarchy was" if number == 1 else f"{number} hierarchies were"
        labels = f"Labels stand in place of codes: {', '.join(self.labelled)}; the screen Prepare has them as steps"
        return [
            *([f"{subject} attached: {names}"] if number else []),
            *([labels] if self.labelled else []),
            *self.refusals,
        ]


def attach(workspace: Workspace, files: Mapping[str, Path]) -> Attached:
    """Give columns the hierarchies and the labels of these files, by name, as one edit; the files of hierarchies are copied."""
    edits: dict[str, Mapping[str, Any]] = {}
    steps: dict[str, dict[str, Any]] = {}
    refusals: list[str] = []
    columns = workspace.draft.spec.columns
    names = [] if workspace.data.named is None else [str(column) for column in workspace.data.named.columns]
    for name, path in files.items():
        column = matched_column(name, names)
        if column is None:
            refusals.append(f"{name}: no column has its name")
            continue
        if is_codebook(path):
            try:
                steps[column] = labelled(column, path)
            except AnonflowError as error:
                refusals.append(f"{name}: {error.problems[0].replace(path.name, name)}")
            continue
        before = columns.get(column, ColumnSpec())
        role = before.role
        if role not in ("quasi-identifier", "sensitive", None):
            refusals.append(
                f"{name}: {column} is {role}, and only quasi-identifiers and sensitive columns have a hierarchy"
            )
            continue
        try:
            tree, delimiter = read_hierarchy(path)
            _check_covers_values(workspace, tree, column)
        except AnonflowError as error:
            refusals.append(f"{name}: {error.problems[0].replace(str(path), name)}")
            continue
        place = safe_name(name)
        if path.resolve() != (workspace.folder / place).resolve():
            shutil.copyfile(path, workspace.folder / place)
        os.chmod(workspace.folder / place, 0o600)
        spec = place if delimiter == ";" else {"csv": place, "delimiter": delimiter}
        edits[column] = {**declared_hierarchy(before, spec), "boundary": None}
    if edits:
        workspace.data.set_columns(edits)
    if steps:
        before_them = workspace.draft.spec.table.prepare
        workspace.draft.put(with_steps(workspace, [*before_them, *steps.values()]))
    return Attached(tuple(edits), tuple(refusals), tuple(steps))


def is_codebook(path: Path) -> bool:
    """Return whether a file begins as a codebook does, with the line value,label."""
    with path.open("rb") as stream:
        first = stream.readline(100).decode("utf-8-sig", "replace")
    return [cell.strip().lower() for cell in first.split(",")] == ["value", "label"]


def labelled(column: str, path: Path) -> dict[str, Any]:
    """Return the step that puts the labels of a codebook in place of a column's values."""
    return {"recode": {"column": column, "values": table_of_file(path)}}


def with_steps(workspace: Workspace, steps: Sequence[Mapping[str, Any]]) -> DraftSpec:
    """Return the draft with these preparation steps, and its columns under the names that they have after them.

    Of a numeric column whose numbers a new step makes labels, all of them or some codes, the kind is guessed again.
    """
    spec, folder, frame = workspace.draft.spec, workspace.draft.folder, workspace.data.frame
    names = [str(name) for name in frame.columns]
    old_steps = spec.table.prepare
    before, after = (Preparation(list(part), folder).renamed(names) for part in (old_steps, steps))
    new = {before.get(name, name): after.get(name, name) for name in names}
    columns = {new.get(name, name): column for name, column in spec.columns.items()}
    for step in steps[len(old_steps) :]:
        name = step.get("recode", {}).get("column")
        column = columns.get(name)
        if column is None or column.kind != "numeric":
            continue
        recoded = Preparation(list(steps), folder).apply(frame)[name]
        if np.isnan(numbers_in(recoded.dropna())).any():
            columns[name] = ColumnSpec(role=column.role, weight=column.weight, **kind_of(recoded))
    return spec.with_table(prepare=tuple(steps), columns=columns)


def copy_hierarchy(workspace: Workspace, spec: Any, column: str) -> None:
    """Give another column the hierarchy that one has, as under ``hierarchy`` of a flow, as one edit."""
    values = [value for value in _values(workspace, column)[0] if value]
    _check_covers_values(
        workspace, Hierarchy.from_mapping(spec, folder=workspace.draft.folder, values=values), column
    )
    before = workspace.draft.spec.columns.get(column, ColumnSpec())
    workspace.data.set_column(column, **declared_hierarchy(before, spec), boundary=None)


def declared_hierarchy(before: ColumnSpec, spec: Any) -> dict[str, Any]:
    """Return what declares a hierarchy of a column. A sensitive one stays so: its hierarchy is the distance of t-closeness."""
    if before.role == "sensitive":
        return {"role": "sensitive", "hierarchy": spec}
    return {"role": "quasi-identifier", "kind": "hierarchy", "hierarchy": spec}


def _check_covers_values(workspace: Workspace, tree: Hierarchy, column: str) -> None:
    values, counts = _values(workspace, column)
    if "" in values and "" not in tree.leaves:
        tree = tree.extended("")
    tree.check_values(values, column, counts.tolist())


def _values(workspace: Workspace, column: str) -> tuple[list[str], np.ndarray]:
    assert workspace.data.named is not None
    return column_values(workspace.data.named[column], column)
