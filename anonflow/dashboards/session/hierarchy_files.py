"""Hierarchy files that are dropped beside a table: matched with its columns by their names, and attached in one edit."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from anonflow.dashboards.session.draft_spec import ColumnSpec
from anonflow.dashboards.session.paths import safe_name
from anonflow.errors import AnonflowError, HierarchyError
from anonflow.hierarchy import Hierarchy
from anonflow.table.coding import column_values

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
    """What became of hierarchy files: the columns that have one now, and why the others have none."""

    columns: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()

    def sentences(self) -> list[str]:
        """Return one on the columns, and one on each file that was refused."""
        names, number = ", ".join(self.columns), len(self.columns)
        many = "1 hierarchy was" if number == 1 else f"{number} hierarchies were"
        return [*([f"{many} attached: {names}"] if number else []), *self.refusals]


def attach(workspace: Workspace, files: Mapping[str, Path]) -> Attached:
    """Give quasi-identifiers and sensitive columns the hierarchies of these files, by name, as one edit; the files are copied."""
    edits: dict[str, Mapping[str, Any]] = {}
    refusals: list[str] = []
    columns = workspace.draft.spec.columns
    names = [] if workspace.named is None else [str(column) for column in workspace.named.columns]
    for name, path in files.items():
        column = matched_column(name, names)
        if column is None:
            refusals.append(f"{name}: no column has its name")
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
            _check(workspace, tree, column)
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
        workspace.set_columns(edits)
    return Attached(tuple(edits), tuple(refusals))


def copy_hierarchy(workspace: Workspace, spec: Any, column: str) -> None:
    """Give another column the hierarchy that one has, as under ``hierarchy`` of a flow, as one edit."""
    values = [value for value in _values(workspace, column)[0] if value]
    _check(workspace, Hierarchy.from_mapping(spec, folder=workspace.draft.folder, values=values), column)
    before = workspace.draft.spec.columns.get(column, ColumnSpec())
    workspace.set_column(column, **declared_hierarchy(before, spec), boundary=None)


def declared_hierarchy(before: ColumnSpec, spec: Any) -> dict[str, Any]:
    """Return what declares a hierarchy of a column. A sensitive one stays so: its hierarchy is the distance of t-closeness."""
    if before.role == "sensitive":
        return {"role": "sensitive", "hierarchy": spec}
    return {"role": "quasi-identifier", "kind": "hierarchy", "hierarchy": spec}


def _check(workspace: Workspace, tree: Hierarchy, column: str) -> None:
    values, counts = _values(workspace, column)
    if "" in values and "" not in tree.leaves:
        tree = tree.extended("")
    tree.check_values(values, column, counts.tolist())


def _values(workspace: Workspace, column: str) -> tuple[list[str], np.ndarray]:
    assert workspace.named is not None
    return column_values(workspace.named[column], column)
