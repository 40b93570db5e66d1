"""The grid of patterns: rows are patterns, columns are quasi-identifiers, cells are clicked."""

from __future__ import annotations

from html import escape
from typing import Any

import panel as pn
import param

from anonflow.dashboards.components.clickable import Clickable
from anonflow.dashboards.components.html import button, html, in_lines, labelled, notice, say, soft, stack
from anonflow.dashboards.components.option_field import param_field
from anonflow.dashboards.components.shown_part import ShownPart
from anonflow.dashboards.protect.patterns import METHODS, PatternChoice
from anonflow.hierarchy.wording import plural
from anonflow.option import plain_number

HIDDEN = "hidden"

SHOWN = 200
"""Patterns that are shown."""


def board(choice: PatternChoice) -> str:
    """Return the grid as markup; a cell's key is ``cell:row:column``, the cross of a row ``drop:row``."""
    grid = choice.grid
    if grid is None or not len(grid):
        return ""
    names = choice.names
    head = "".join(f'<th scope="col" title="{escape(name)}">{escape(name)}</th>' for name in names)
    suppressed, cost = grid.columns[-2:]
    is_list = choice.form == "list"
    rows = []
    for at, row in enumerate(grid.head(SHOWN).to_dict("records")):
        cells = []
        for column, name in enumerate(names):
            hidden = row[name] == "*"
            level = "" if row[name] in ("*", "-") else escape(str(row[name]))
            state = HIDDEN if hidden else level or "kept"
            label = f"pattern {(at + 1)}, {escape(name)}: {state}"
            cells.append(
                f'<td><div class="cell{" hidden" if hidden else ""}" data-key="cell:{at}:{column}" role="button" '
                f'tabindex="-1" aria-pressed="{"true" if hidden else "false"}" aria-label="{label}">'
                f"{'✱ ' if hidden else ''}{state}</div></td>"
            )
        drop = (
            f'<td><div class="cross" data-key="drop:{at}" role="button" tabindex="-1" '
            f'aria-label="remove pattern {at + 1}">✕</div></td>'
            if is_list and len(grid) > 1
            else "<td></td>"
        )
        rows.append(
            f'<tr><th class="row" scope="row">{at + 1}</th>{"".join(cells)}'
            f'<td class="number">{row[suppressed]}</td><td class="number">{row[cost]:g}</td>{drop}</tr>'
        )
    return (
        f'<div class="grid"><table><thead><tr><td></td>{head}<th>{HIDDEN}</th><th>cost</th><td></td></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


class PatternBoard(ShownPart):
    """Patterns: all, by predicates, or clicked one by one; always with the grid."""

    choice = param.ClassSelector(class_=PatternChoice)

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        choice = self.choice
        self.form = pn.widgets.RadioButtonGroup.from_param(
            choice.param.form,
            label="Patterns",
            options={
                "All patterns": "all",
                "Predicates": "predicates",
                "A list of my own": "list",
                "With levels, as in the flow": "levels",
            },
            sizing_mode="stretch_width",
        )
        self.at_most = pn.widgets.IntInput(
            label="At most so many hidden", placeholder="any number", value=None, start=0, width=250
        )
        self.never = pn.widgets.CheckBoxGroup(
            label="Never hidden", options=[], inline=True, css_classes=["af-boxes"]
        )
        fallbacks = {
            "is hidden completely, and counted": "none",
            "is hidden completely: this is one of the patterns": "all",
            "is not allowed: every row follows a pattern": "strict",
        }
        self.fallback = param_field(
            choice.param.fallback, "A row that no pattern fits (fallback)", 330, options=fallbacks
        )
        self.pair = pn.widgets.CheckBoxGroup(
            label="Columns of a rule", options=[], inline=True, css_classes=["af-boxes"]
        )
        self.tie = button("Hide together", lambda: self._rule("together"))
        self.rival = button("At most one of them", lambda: self._rule("at_most_one_of"))
        self.rules = Clickable(on_click=self._drop_rule, sizing_mode="stretch_width")
        self.weighted = pn.widgets.Select(label="Cost of hiding a cell of", options=[], width=220)
        self.weight = pn.widgets.FloatInput(label="counts as", value=1.0, start=0.001, step=0.5, width=110)
        self.grid = Clickable(on_click=self._click, sizing_mode="stretch_width")
        self.add = button("Add a pattern", choice.add)
        self.fresh = button("Start again: one column at a time", lambda: choice.start_list(True))
        self.summary, self.problem = html(), notice("af-bad")
        self.predicates = stack(
            in_lines(self.at_most, labelled(self.never)),
            in_lines(labelled(self.pair), pn.Row(self.tie, self.rival, margin=(18, 0, 0, 0))),
            self.rules,
            self.fallback,
        )
        self.listing = in_lines(self.add, self.fresh)
        pn.bind(lambda number: choice.param.update(at_most=number), self.at_most, watch=True)
        pn.bind(self._set_never, self.never, watch=True)
        pn.bind(self._weighted, self.weighted, watch=True)
        pn.bind(self._weigh, self.weight, watch=True)
        self.draw_after(
            choice,
            ["form", "at_most", "never", "together", "at_most_one_of", "rows", "weights", "grid", "problem"],
            self._show,
        )
        self.draw_after(choice.workspace.data, ["table", "algorithms"], self._show)
        self.draw_once_shown(self._show)

    def _set_never(self, names: list[str]) -> None:
        if names != self._shown_never():
            self.choice.never = list(names)

    def _shown_never(self) -> list[str]:
        return [name for name in self.choice.never if name in self.choice.columns]

    def _click(self, key: str) -> None:
        part, _, rest = key.partition(":")
        row, _, column = rest.partition(":")
        names = self.choice.names
        if part == "cell" and row.isdecimal() and column.isdecimal() and int(column) < len(names):
            self.choice.toggle(int(row), names[int(column)])
        elif part == "drop" and row.isdecimal():
            self.choice.remove(int(row))

    def _rule(self, name: str) -> None:
        columns = list(self.pair.value)
        if len(columns) < 2:
            self.choice.problem = "choose at least two columns that the rule is about"
            return
        self.choice.param.update(**{name: [*getattr(self.choice, name), columns]})
        self.pair.value = []

    def _drop_rule(self, key: str) -> None:
        name, _, at = key.partition(":")
        if name in ("together", "at_most_one_of") and at.isdecimal():
            groups = list(getattr(self.choice, name))
            if int(at) < len(groups):
                del groups[int(at)]
                self.choice.param.update(**{name: groups})

    def _weighted(self, column: str | None) -> None:
        self.weight.value = float(self.choice.weights.get(column, 1.0))

    def _weigh(self, number: float | None) -> None:
        column = self.weighted.value
        if column is None or number in (None, self.choice.weights.get(column, 1.0)):
            return
        weights = {name: other for name, other in self.choice.weights.items() if name != column}
        if number != 1:
            weights[column] = plain_number(number)
        self.choice.weights = weights

    def _show(self) -> None:
        choice = self.choice
        columns = list(choice.columns)
        if self.weighted.options != columns:
            self.pair.options = list(columns)
            self.weighted.param.update(options=columns, value=columns[0] if columns else None)
        self.at_most.value = choice.at_most
        self.never.param.update(options=columns, value=self._shown_never())
        self._weighted(self.weighted.value)
        self.predicates.visible = choice.form == "predicates"
        self.listing.visible = choice.form == "list"
        self.rules.html = self._rules()
        self.grid.html = board(choice)
        n = 0 if choice.grid is None else len(choice.grid)
        if choice.form == "list" and n:
            n = len(dict.fromkeys(map(tuple, choice.rows)))
        used = [name for name in choice.workspace.data.algorithms if name in METHODS]
        remark = f" The first {SHOWN} are shown." if n > SHOWN else ""
        people = (
            f"Used by {' and '.join(used)}."
            if used
            else "No method that uses patterns is chosen: choose pattern-guided under Methods."
        )
        text = (
            f"{plural(n, 'pattern')}, tried in the order of their cost, and of the list where costs are equal; "
            f"click a cell to hide or keep a column.{remark} {people}"
        )
        say(self.summary, "" if choice.grid is None else soft(text))
        say(self.problem, choice.problem)
        # red only where a chosen method is kept from running
        self.problem.css_classes = ["af-bad" if used else "af-note"]

    def _rules(self) -> str:
        rules = []
        for name, words_of_rule in {
            "together": "hidden together: ",
            "at_most_one_of": "at most one hidden of: ",
        }.items():
            for at, group in enumerate(getattr(self.choice, name)):
                rules.append(
                    f'<span class="rule">{words_of_rule}<b>{escape(", ".join(group))}</b> <span class="cross" role="button" '
                    f'tabindex="-1" data-key="{name}:{at}" aria-label="remove the rule">✕</span></span>'
                )
        return f'<div class="legend">{"".join(rules)}</div>' if rules else ""

    def __panel__(self) -> pn.viewable.Viewable:
        weights = in_lines(self.weighted, self.weight)
        return stack(self.form, self.predicates, self.listing, self.problem, self.summary, self.grid, weights)
