"""The form of a column's hierarchy: from intervals, groups, positions, prefixes, periods or a file; and its boundary."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import param

from anonflow.dashboards.components.draft_form import DraftForm
from anonflow.dashboards.session.draft_spec import ColumnSpec, written
from anonflow.dashboards.session.files.hierarchy_files import copy_hierarchy, declared_hierarchy
from anonflow.drawing.trees import TreeDrawing
from anonflow.errors import AnonflowError, HierarchyError
from anonflow.hierarchy import Hierarchy
from anonflow.hierarchy.calendar import UNITS, is_partial, partial_leaf
from anonflow.hierarchy.grouping import CHOOSE_GROUP, Grouping
from anonflow.option import plain_number
from anonflow.table.coding import column_values
from anonflow.table.forms.text_forms import Form
from anonflow.table.identification.suggested_hierarchy import (
    CALENDAR,
    NESTED,
    are_dates,
    is_number,
    steps_over,
)
from anonflow.table.schema import form_of

WAYS = {
    "used": "as it is",
    "calendar": "periods of the calendar",
    "intervals": "intervals",
    "groups": "groups",
    "file": "CSV file",
    "positions": "positions",
    "prefixes": "prefixes",
    "given": "comes with the table",
}
"""The sources of a hierarchy."""

FROM_LOWEST = ("day", "weekday", "week", *UNITS[1:-2])
"""Periods of the calendar in the order of a hierarchy."""


class HierarchyChoice(DraftForm):
    """The hierarchy of one column, built and previewed; used when it is said so.

    Columns are quasi-identifiers, and sensitive ones, whose hierarchy is the distance of t-closeness and has no boundary.
    `tree` is what is drawn: the hierarchy that the parameters describe. It becomes the draft's by :meth:`use`, one
    edit that can be undone, or by a click on a boundary, which means the same and says the boundary, too. The
    column's values are read once for a table.
    """

    column = param.Selector(default=None, objects=[None], check_on_set=False)
    way = param.Selector(default="groups", objects=list(WAYS))
    step = param.Number(default=10.0, bounds=(0, None), inclusive_bounds=(False, True))
    levels = param.Integer(default=3, bounds=(1, 20))
    fanout = param.Integer(default=2, bounds=(2, 100))
    origin = param.Number(default=0.0)
    hide = param.Selector(default="right", objects=["right", "left"])
    lengths = param.String(
        default="1, 2", doc="Of prefixes: numbers between commas, or the name of a classification."
    )
    periods = param.List(default=list(CALENDAR), doc="Of dates: the periods above them, in any order.")
    clicks = param.Selector(
        default="group", objects=["group", "boundary"], doc="Of groups: what a click means."
    )
    picked = param.List(default=[], doc="Labels about to be grouped.")
    opened = param.List(default=[], doc="Nodes that were opened in the drawing.")
    tree = param.Parameter(default=None, doc="The Hierarchy that is drawn, or None.")
    problem = param.String(default="", doc="Why there is none, or what the last click could not do.")
    used = param.Boolean(default=False, doc="Whether the draft has just this hierarchy.")
    boundary = param.List(default=[], doc="Labels of the draft's boundary of this column.")

    def __init__(self, workspace: Any, **params: Any) -> None:
        self._grouping: Grouping | None = None
        self._file: dict[str, Any] | None = None
        self._values: tuple[Any, str, Form | None, list[str], np.ndarray] | None = None
        self._busy = False
        self._seen: Any = None
        super().__init__(workspace, **params)
        # not dependencies: nothing is drawn before the form was read for the first time
        self.param.watch(self._column_chosen, "column")
        self.param.watch(
            self._built, ["way", "step", "levels", "fanout", "origin", "hide", "lengths", "periods"]
        )
        self._column_chosen()

    # ---------------------------------------------------------------------------------- the values

    def values(self) -> tuple[list[str], np.ndarray]:
        """Return the column's distinct values as its form has them plainly, and their counts."""
        frame, column = self.workspace.data.named, self.column
        if frame is None or column not in frame.columns:
            return [], np.zeros(0, np.int64)
        form = form_of(written(self.entry))
        if isinstance(form, str):  # said where the columns are
            form = None
        if self._values is None or self._values[0] is not frame or self._values[1:3] != (column, form):
            values, counts = column_values(frame[column], column)
            if form is not None:
                values, counts = _read_by_form(values, counts, form)
            self._values = frame, column, form, values, counts
        return self._values[3], self._values[4]

    @property
    def entry(self) -> ColumnSpec:
        """The entry of the column in the draft."""
        return self.declared(self.column)

    @property
    def columns(self) -> list[str]:
        """Columns that can have a hierarchy: quasi-identifiers, then sensitive ones."""
        return [*self.quasi_identifiers, *self.columns_of("sensitive")]

    @property
    def is_sensitive(self) -> bool:
        """Whether the column is sensitive: its hierarchy says how far values are from each other."""
        return self.entry.role == "sensitive"

    @property
    def has_hierarchy(self) -> bool:
        """Whether the draft has a hierarchy of the column."""
        return self.entry.hierarchy is not None

    @property
    def ways(self) -> dict[str, str]:
        """The ways that make sense for the column."""
        try:
            values = [value for value in self.values()[0] if value]
        except AnonflowError:
            values = []
        are_codes = bool(values) and not any("*" in value for value in values)
        suits = {
            "used": self.has_hierarchy,
            "calendar": are_dates(values),
            "intervals": bool(values) and all(map(is_number, values)),
            "positions": are_codes and len({len(value) for value in values}) == 1,
            "prefixes": are_codes and max(map(len, values), default=0) > 1,
            "given": self.workspace.data.given_hierarchy(self.column) is not None,
        }
        return {words: way for way, words in WAYS.items() if suits.get(way, True)}

    # ------------------------------------------------------------------------------------ the tree

    def spec(self) -> dict[str, Any] | str | None:
        """Return what a schema has under ``hierarchy`` for what is drawn; None where nothing is.

        Raises
        ------
        HierarchyError
            If it has too many levels for a flow file.
        """
        if self.way == "intervals":
            spec: dict[str, Any] = {"step": plain_number(self.step), "levels": self.levels}
            if self.fanout != 2:
                spec["fanout"] = self.fanout
            if self.origin:
                spec["origin"] = plain_number(self.origin)
            return {"intervals": spec}
        if self.way == "positions":
            return {"positions": {"hide": self.hide}}
        if self.way == "prefixes":
            return {"prefixes": {"lengths": _lengths(self.lengths)}}
        if self.way == "calendar":
            if not self.periods:
                raise HierarchyError(
                    "choose the periods that a date is generalized to, such as month and year"
                )
            return {"calendar": [unit for unit in FROM_LOWEST if unit in self.periods]}
        if self.way == "groups":
            return None if self._grouping is None else self._grouping.spec()
        if self.way == "file":
            return self._file
        if self.way == "given":
            return self.workspace.data.given_hierarchy(self.column)
        return self.entry.hierarchy

    def counts(self) -> list[int]:
        """Return records of each leaf of the tree."""
        if self.tree is None:
            return []
        values, counts = self.values()
        records_of = dict(zip(values, counts.tolist(), strict=True))
        records_of |= {_leaf(value): count for value, count in records_of.items()}
        return [records_of.get(leaf, 0) for leaf in self.tree.leaves]

    def drawing(self) -> TreeDrawing | None:
        """Return the tree with its boundary, as it is to be shown."""
        if self.tree is None:
            return None
        boundary = [label for label in self.boundary if label in self.tree] if self.used else []
        return TreeDrawing(self.tree, boundary, self.picked, self.opened, self.counts())

    def _column_chosen(self, *events: param.parameterized.Event) -> None:
        """Another column: its own hierarchy, or the one it would most likely get."""
        self._grouping = self._file = None
        self._busy = True
        try:
            self.param.update(picked=[], opened=[], problem="", tree=None, clicks="group")
            self._guess()
            ways = list(self.ways.values())
            self.way = "given" if ways[0] == "groups" and "given" in ways else ways[0]
        finally:
            self._busy = False
        self._built()

    def _guess(self) -> None:
        """Intervals that suit the column: some twenty narrow ones, doubled until they cover it."""
        try:
            numbers = [float(value) for value in self.values()[0] if is_number(value)]
        except AnonflowError:
            numbers = []
        if numbers:
            step, levels = steps_over(min(numbers), max(numbers))
            self.param.update(step=step, levels=levels, fanout=2, origin=0.0)
        declared = self.entry.tree
        periods = declared.get("calendar")
        self.periods = list(periods) if isinstance(periods, list) else list(CALENDAR)
        intervals = declared.get("intervals")
        if isinstance(intervals, dict):
            for name in {"step", "levels", "fanout", "origin"} & set(intervals):
                with suppress(ValueError):
                    self.param.update(**{name: intervals[name]})

    def _built(self, *events: param.parameterized.Event) -> None:
        """Draw the tree of the parameters, or show why there is none."""
        if self._busy:
            return
        tree, used, problem = None, False, ""
        try:
            tree = None if self.column is None else self._make()
            used = tree is not None and self.has_hierarchy and self.entry.hierarchy == self.spec()
        except AnonflowError as error:
            problem = error.problems[0]
        self.param.update(
            tree=tree,
            problem=problem,
            used=used,
            boundary=list(self.entry.limit_labels),
            picked=[label for label in self.picked if tree is not None and label in tree],
        )

    def _make(self) -> Hierarchy | None:
        values, counts = self.values()
        present = [value for value in values if value]
        if self.way == "groups" and self._grouping is None:
            self._grouping = self._first_groups(values)
        spec = self.spec()
        if spec is None:
            return None
        tree = Hierarchy.from_mapping(spec, folder=self.workspace.draft.folder, values=present)
        if "" in values and "" not in tree.leaves:
            tree = tree.extended("")
        if isinstance(spec, dict) and "calendar" in spec:
            values = [_leaf(value) for value in values]
        tree.check_values(values, str(self.column), counts.tolist())
        return tree

    def _first_groups(self, values: list[str]) -> Grouping:
        """Return the tree that is drawn now, to go on with; else all values side by side."""
        if self.tree is not None and set(self.tree.leaves) == set(values) and len(self.tree.leaves) > 1:
            return Grouping.of(self.tree)
        if len(values) > NESTED:
            raise HierarchyError(
                f"{len(values):,} values are too many to group by hand; upload a CSV file instead"
            )
        ordered = sorted(values, key=float) if values and all(map(is_number, values)) else values
        return Grouping.flat(ordered)

    # ----------------------------------------------------------------------------------- the edits

    def use(self) -> None:
        """Take the tree that is drawn into the draft; boundaries that it still has are kept."""
        self._use([label for label in self.boundary if self.tree is not None and label in self.tree])

    def _use(self, boundary: list[str]) -> None:
        if self.tree is None or self.column is None:
            return

        def use(column: str) -> None:
            declared = declared_hierarchy(self.entry, self.spec())
            self.workspace.data.set_column(column, **declared, boundary=boundary or None)

        self.attempt(partial(use, self.column), "problem")

    def export(self) -> bytes:
        """Return the tree that is drawn, as the CSV file that is read back here.

        Raises
        ------
        HierarchyError
            If there is no hierarchy, or a text file cannot hold it.
        """
        if self.tree is None:
            raise HierarchyError("there is no hierarchy to export; choose a column that has one")
        with tempfile.TemporaryDirectory(prefix="anonflow-") as place:
            path = Path(place) / "hierarchy.csv"
            self.tree.to_csv(path)
            return path.read_bytes()

    @property
    def others(self) -> list[str]:
        """Columns that the hierarchy could be copied to."""
        return [name for name in self.columns if name != self.column]

    def copy_to(self, column: str) -> None:
        """Give another column the hierarchy that is drawn, as one edit; `problem` says why it cannot have it."""

        def copy() -> None:
            spec = self.spec()
            if spec is None or self.tree is None:
                raise HierarchyError("there is no hierarchy to copy; choose a column that has one")
            copy_hierarchy(self.workspace, spec, column)

        if not self.attempt(copy, "problem"):
            self.problem = f"{column}: {self.problem}"

    def drop(self) -> None:
        """Remove the hierarchy: the column is then published as sets of values, or ranges; a sensitive one as it is."""
        if self.column is None or not self.has_hierarchy:
            return
        if self.is_sensitive:
            self.workspace.data.set_column(self.column, hierarchy=None)
            return
        values = self.values()[0]
        numbers = bool(values) and all(map(is_number, values))
        self.workspace.data.set_column(self.column, kind="numeric" if numbers else "categorical")

    def click(self, key: str) -> None:
        """Answer a click on the drawing, ``node:`` or ``open:`` and a number: a boundary, or a label that is picked for a group."""
        act, _, number = key.partition(":")
        if self.tree is None or not number.isdecimal() or int(number) >= self.tree.n_nodes:
            return
        node = int(number)
        label = self.tree.labels[node]
        if act == "open":
            self.opened = [*self.opened, node]
        elif self.way == "groups" and self.clicks == "group":
            self.pick(label)
        else:
            self.bound(label)

    def bound(self, label: str) -> None:
        """Make a node a limit that nothing is generalized beyond, or no longer; the root takes all limits away."""
        assert self.tree is not None
        if self.is_sensitive:
            self.problem = "a sensitive column has no limit: it is published as it is, and its hierarchy is the distance of t-closeness"
            return
        before = [other for other in self.boundary if other in self.tree] if self.used else []
        if label == self.tree.labels[0]:
            after = []
        elif label in before:
            after = [other for other in before if other != label]
        else:
            after = [*before, label]
        # in the order of the tree, whatever the order of the clicks
        self._use(sorted(after, key=self.tree.node))

    def pick(self, label: str) -> None:
        """Mark a label for a group, or no longer."""
        self.picked = [picked for picked in self.picked if picked != label] + [label] * (
            label not in self.picked
        )

    def group(self, name: str) -> None:
        """Put the picked labels under a new node."""
        picked = list(self.picked)
        self._regroup(lambda tree: tree.group(picked, name))

    def dissolve(self) -> None:
        """Dissolve the picked groups."""

        if not self.picked:
            self.problem = CHOOSE_GROUP
            return
        picked = list(self.picked)
        self._regroup(lambda tree: reduce(Grouping.dissolve, picked, tree))

    def rename(self, name: str) -> None:
        """Rename the picked group."""
        if len(self.picked) != 1:
            self.problem = "choose the one group that is to be renamed"
            return
        self._regroup(lambda tree: tree.rename(self.picked[0], name))

    def _regroup(self, change: Callable[[Grouping], Grouping]) -> None:
        if self._grouping is None:
            return
        grouping = self._grouping

        def regroup() -> None:
            self._grouping = change(grouping)

        if self.attempt(regroup, "problem"):
            self.param.update(picked=[], opened=[])
            self._built()

    def take_file(self, path: Path, delimiter: str = ";") -> None:
        """Read an uploaded hierarchy file, as :meth:`anonflow.Hierarchy.from_csv` does; it is drawn, and is used when it is said so."""
        try:
            read = Hierarchy.from_csv(path, delimiter)
            if read.n_nodes > NESTED:
                raise HierarchyError(
                    f"the tree has {read.n_nodes:,} nodes, and this screen takes {NESTED:,}; name the file in the flow instead"
                )
            self._file = Grouping.of(read).spec()
        except HierarchyError as error:
            self._file = None
            self.param.update(tree=None, used=False, problem=error.problems[0])
            return
        if self.way == "file":
            self._built()
        else:
            self.way = "file"

    # ------------------------------------------------------------------------------------ the draft

    def _read(self) -> None:
        names = self.columns
        frame = self.workspace.data.named
        if names != (self.param.column.objects or []):
            self.param.column.objects = names or [None]
        other = self._values is not None and self._values[0] is not frame
        if self.column not in names or other:
            self._values, self._seen = None, None
            before, self.column = self.column, names[0] if names else None
            if before == self.column:
                self._column_chosen()
            return
        seen = (self.column, self.entry)
        if seen == self._seen:
            return
        self._seen = seen
        if self.way == "used" and not self.has_hierarchy:
            self.way = next(iter(self.ways.values()))
        self._built()


def _lengths(text: str) -> list[int] | str:
    """Return numbers between commas as a list, another text as it is: the name of a classification."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    return [int(part) for part in parts] if parts and all(map(str.isdecimal, parts)) else text.strip()


def _read_by_form(values: list[str], counts: np.ndarray, form: Form) -> tuple[list[str], np.ndarray]:
    """Return values as a form reads them, and their counts; what the form does not read stays."""
    total: dict[str, int] = {}
    for value, plain, count in zip(values, form.read(values).plain.tolist(), counts.tolist(), strict=True):
        text = value if plain is None else plain
        total[text] = total.get(text, 0) + count
    return sorted(total), np.array([total[text] for text in sorted(total)], np.int64)


def _leaf(value: str) -> str:
    """Return the leaf of a value among dates: that of a year or a month stands for a day that is not known."""
    return partial_leaf(value) if is_partial(value) else value
