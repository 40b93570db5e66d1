"""The form of suppression patterns: all, predicates, or a list whose cells are clicked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import param

from anonflow.algorithms.patterns.language import FALLBACKS, columns_to_hide, pattern_grid
from anonflow.algorithms.patterns.pattern_guided import has_levels
from anonflow.algorithms.registry import REGISTRY
from anonflow.dashboards.components.draft_form import DraftForm
from anonflow.errors import AnonflowError

if TYPE_CHECKING:
    import pandas as pd

FORMS = ("all", "predicates", "list", "levels")
"""How patterns are said: all 2^q of them, predicates that they meet, one by one, or with levels as the flow has them."""

METHODS = tuple(name for name, method in REGISTRY.items() if method.hides)
"""The methods that take patterns."""

MOST = 256
"""Patterns that can be clicked one by one."""

ALL = 12
"""Quasi-identifiers up to which all patterns are shown."""


class PatternChoice(DraftForm):
    """The option ``patterns`` of the pattern-guided methods, and ``weights``.

    Both pattern-guided methods are given the same, under ``options`` of the step. A row of `rows` is the set of the
    quasi-identifiers that its pattern hides; positions of a code are quasi-identifiers of their own (``zip[3]``).
    """

    form = param.Selector(default="all", objects=list(FORMS))
    at_most = param.Integer(default=None, bounds=(0, None), allow_None=True, doc="So many may be hidden.")
    never = param.List(default=[], doc="Columns that are never hidden.")
    together = param.List(default=[], doc="Lists of columns that are hidden all or not at all.")
    at_most_one_of = param.List(default=[], doc="Lists of columns of which at most one is hidden.")
    fallback = param.Selector(
        default="none", objects=list(FALLBACKS), doc="What becomes of a row that no pattern can take."
    )
    rows = param.List(
        default=[], doc="Of a list: a sorted tuple of hidden quasi-identifiers for each pattern."
    )
    levelled = param.Parameter(
        default=None,
        doc="Patterns with levels, as the flow has them: they are shown, and changed in the flow.",
    )
    weights = param.Dict(
        default={}, doc="Column -> what hiding one of its entries costs; 1 where none is named."
    )
    problem = param.String(default="", doc="Why the patterns cannot be used.")
    grid = param.Parameter(default=None, doc="The patterns as af.pattern_grid has them, or None.")

    WRITES = (
        "form", "at_most", "never", "together", "at_most_one_of", "fallback", "rows", "levelled", "weights",
    )  # fmt: skip

    def __init__(self, workspace: Any, **params: Any) -> None:
        self._seen: Any = None
        super().__init__(workspace, **params)

    @property
    def names(self) -> tuple[str, ...]:
        """The coded quasi-identifiers: columns, or positions of codes; empty while the columns are not valid."""
        table = self.workspace.data.table
        return () if table is None else tuple(domain.name for domain in columns_to_hide(table.domains))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that predicates and weights may name."""
        return self.quasi_identifiers

    def value(self) -> Any:
        """Return what a flow has under ``patterns``."""
        if self.form == "list":
            return [list(row) for row in dict.fromkeys(tuple(row) for row in self.rows)]
        if self.form == "levels" and self.levelled is not None:
            return self.levelled
        if self.form in ("all", "levels"):
            return "all"
        value: dict[str, Any] = {}
        if self.at_most is not None:
            value["at-most"] = self.at_most
        if self.never:
            value["never"] = list(self.never)
        for key, groups in (("together", self.together), ("at-most-one-of", self.at_most_one_of)):
            if groups:
                value[key] = [list(group) for group in groups]
        if self.fallback != "none":
            value["fallback"] = self.fallback
        # no predicate yet: as many as there are may be hidden
        return value or {"at-most": len(self.names)}

    # ----------------------------------------------------------------------------------- the clicks

    def toggle(self, row: int, name: str) -> None:
        """Hide a coded quasi-identifier in a pattern of the grid that is shown, or keep it; what is no list yet becomes one."""
        rows = self._listed()
        if rows is None or not 0 <= row < len(rows) or name not in self.names:
            return
        hidden = set(rows[row]) ^ {name}
        rows[row] = tuple(column for column in self.names if column in hidden)
        self.param.update(form="list", rows=rows)

    def add(self, hidden: Sequence[str] = ()) -> None:
        """Add a pattern that hides some quasi-identifiers."""
        rows = self._listed()
        if rows is None:
            return
        self.param.update(
            form="list", rows=[*rows, tuple(column for column in self.names if column in hidden)]
        )

    def remove(self, row: int) -> None:
        """Take a pattern out of the list; the last one stays."""
        rows = self._listed()
        if rows is not None and len(rows) > 1 and 0 <= row < len(rows):
            self.param.update(form="list", rows=[*rows[:row], *rows[row + 1 :]])

    def start_list(self, row_per_column: bool = False) -> None:
        """Begin a list of its own: nothing hidden, and each quasi-identifier alone if so wished."""
        rows: list[tuple[str, ...]] = [()]
        if row_per_column:
            rows += [(name,) for name in self.names]
        self.param.update(form="list", rows=rows)

    def _listed(self) -> list[tuple[str, ...]] | None:
        """Return the patterns that are shown, as a list; None where they are too many to be clicked."""
        if self.form == "list":
            return [tuple(row) for row in self.rows]
        if self.form == "levels":
            self.problem = (
                "patterns with levels are changed in the flow; choose another form to click patterns"
            )
            return None
        if self.grid is None:
            return None
        if len(self.grid) > MOST:
            self.problem = f"{len(self.grid):,} patterns are too many to click: narrow them with predicates, or begin a list"
            return None
        return _rows_of(self.grid, self.names)

    # ------------------------------------------------------------------------------------ the draft

    def _read(self) -> None:
        step = self.flow.method
        places = [step.options, *(step.of_methods.get(name, {}) for name in reversed(METHODS))]
        patterns = ([place["patterns"] for place in places if "patterns" in place] or ["all"])[-1]
        weights = ([place["weights"] for place in places if place.get("weights")] or [{}])[-1]
        changes = self._state_of(patterns) | {"weights": dict(weights)}
        if self.value_of(patterns) != self.value():
            self.param.update(**changes)
        else:
            self.param.update(weights=dict(weights))
        self._judge()

    def value_of(self, patterns: Any) -> Any:
        """Return a list with its rows as lists, so that what is read equals what was written."""
        if isinstance(patterns, list):
            return [list(row) if isinstance(row, list | tuple) else row for row in patterns]
        return patterns

    def _state_of(self, patterns: Any) -> dict[str, Any]:
        if has_levels({"patterns": patterns}):
            return {"form": "levels", "levelled": patterns}
        if isinstance(patterns, dict):
            options = {str(key).replace("_", "-"): value for key, value in patterns.items()}
            at_most = options.get("at-most")
            return {
                "form": "predicates",
                "at_most": at_most if isinstance(at_most, int) and at_most >= 0 else None,
                "never": _pattern_columns(options.get("never")),
                "together": _groups(options.get("together")),
                "at_most_one_of": _groups(options.get("at-most-one-of")),
                "fallback": options["fallback"] if options.get("fallback") in FALLBACKS else "none",
            }
        if isinstance(patterns, list):
            return {"form": "list", "rows": self._rows(patterns)}
        return {"form": "all"}

    def _rows(self, patterns: list[Any]) -> list[tuple[str, ...]]:
        if all(isinstance(row, list) and all(name in self.names for name in row) for row in patterns):
            return [tuple(name for name in self.names if name in row) for row in patterns]
        table = self.workspace.data.table
        if table is None:
            return []
        try:  # texts of 0 and 1, whole codes, predicates in a list
            return _rows_of(pattern_grid(table, patterns), self.names)
        except AnonflowError:
            return []

    def _write(self, names: set[str]) -> None:
        if self.form == "list" and not self.rows:
            with self.quietly():  # to begin with: nothing hidden, and each quasi-identifier alone
                self.rows = [(), *((name,) for name in self.names)]
        step = self.flow.method.without("patterns", "weights")
        weights = {name: number for name, number in self.weights.items() if number != 1}
        settings = {
            key: setting
            for key, setting in (("patterns", self.value()), ("weights", weights))
            if setting and setting != "all"
        }
        of_methods = {}
        for name in METHODS:
            others = step.of_methods.get(name, {})
            of_methods[name] = {
                key: setting for key, setting in others.items() if key not in ("patterns", "weights")
            } | settings
        self.workspace.draft.put(self.flow.with_steps(anonymize=step.with_own(of_methods)))
        self._judge()

    def _judge(self) -> None:
        """Show the grid of the choice, or why there is none."""
        table, problem, grid = self.workspace.data.table, "", None
        seen = (table, self.form, self.value(), dict(self.weights), self.rows)
        if seen == self._seen and not self.problem:
            return
        self._seen = seen
        if table is None:
            problem = "The columns are not valid yet: see the screen Data."
        elif self.form == "levels" and self.levelled is None:
            problem = 'The flow has no patterns with levels; write {levels: {column: "level 1"}} under patterns there.'
        elif self.form == "all" and (q := len(self.names)) > ALL:
            positions = "" if q == len(self.columns) else ", each position of a code counted,"
            problem = (
                f"All patterns of {q} quasi-identifiers{positions} are {2**q:,}: too many to show. "
                "Choose predicates, or list patterns."
            )
        else:
            try:
                grid = pattern_grid(table, self.value(), self.weights or None)
            except AnonflowError as error:
                problem = error.text
        if grid is not None and self.form == "list":
            grid = self._in_order_of_rows(grid)
        self.param.update(problem=problem, grid=grid)

    def _in_order_of_rows(self, grid: pd.DataFrame) -> pd.DataFrame:
        """Return the grid with its rows where they were clicked: nothing jumps; preferred is what costs less, then what is first."""
        places = {row: at for at, row in enumerate(_rows_of(grid, self.names))}
        order = [places[tuple(row)] for row in self.rows if tuple(row) in places]
        return grid.iloc[order].reset_index(drop=True)


def _rows_of(grid: pd.DataFrame, names: Sequence[str]) -> list[tuple[str, ...]]:
    hidden = grid[list(names)].to_numpy() == "*"
    return [tuple(name for name, is_hidden in zip(names, row, strict=True) if is_hidden) for row in hidden]


def _pattern_columns(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _groups(value: Any) -> list[list[str]]:
    if not isinstance(value, list) or not value:
        return []
    return (
        [_pattern_columns(value)]
        if all(isinstance(group, str) for group in value)
        else [_pattern_columns(group) for group in value]
    )
