"""The form of diversity: criterion, column, parameters, and the most that the table allows."""

from __future__ import annotations

from contextlib import suppress
from html import escape
from typing import Any

import numpy as np
import panel as pn
import param

from anonflow.algorithms.diversity.target import (
    DIVERSITIES,
    PARAMETERS,
    PRICE,
    check_diversity,
    sensitive_codes,
)
from anonflow.algorithms.diversity.within_partition import WAYS
from anonflow.dashboards.components.draft_form import DraftForm
from anonflow.dashboards.components.html import html, in_lines, stack
from anonflow.dashboards.components.option_field import param_field
from anonflow.engine.flows.spec import DiversifySpec
from anonflow.errors import AnonflowError

NONE = "none"

CRITERIA = {
    NONE: "No diversity is required.",
    **{name: criterion.sentence for name, criterion in DIVERSITIES.items()},
}


def _default(field: str) -> dict[str, Any]:
    return {"default": DiversifySpec.model_fields[field].default}


class DiversityChoice(DraftForm):
    """The step ``diversify`` of the draft."""

    criterion = param.Selector(default=NONE, objects=list(CRITERIA))
    column = param.Selector(default=None, objects=[None], check_on_set=False)
    w = param.Number(bounds=(0, 1), doc="Has no effect; flows may have it.", **_default("w"))
    risk = param.Number(
        bounds=(0, 1), inclusive_bounds=(True, False), doc="That the draw is refused.", **_default("risk")
    )
    way = param.Selector(objects=list(WAYS), doc="Of freeform methods.", **_default("way"))
    problem = param.String(default="", doc="Why this cannot work, with the largest feasible value.")
    feasible = param.String(default="", doc="What the table allows at most.")

    WRITES = ("criterion", "column", *PARAMETERS, "w", "risk", "way")

    def __init__(self, workspace: Any, **params: Any) -> None:
        self._seen: Any = None
        super().__init__(workspace, **params)

    @property
    def needed(self) -> tuple[str, ...]:
        """The parameters of the criterion."""
        return () if self.criterion == NONE else DIVERSITIES[self.criterion].needed

    @property
    def columns(self) -> list[str]:
        """Columns whose values can be diverse: sensitive ones first."""
        columns = self.flow.columns
        return [
            name for role in ("sensitive", "insensitive") for name in columns if columns[name].role == role
        ]

    @property
    def distance(self) -> str:
        """How far values are from each other, where the criterion measures that; else empty."""
        if self.criterion == NONE or not DIVERSITIES[self.criterion].of_distances:
            return ""
        if self.declared(self.column).hierarchy is not None:
            return "Values below one node of the column's hierarchy are closer than others."
        return (
            "Numbers are compared in their order, other values are all equally far from each other: "
            "with a hierarchy of the column (under Hierarchies), those below one node are closer."
        )

    def step(self) -> DiversifySpec | None:
        """Return the step of the flow; None if no diversity is asked for."""
        if self.criterion == NONE:
            return None
        names = ("criterion", "column", *self.needed, "w", "risk", "way")
        return DiversifySpec(**{name: getattr(self, name) for name in names})

    def _read(self) -> None:
        columns = self.columns
        self.param.column.objects = columns or [None]
        step = self.flow.steps.diversify
        changes: dict[str, Any] = {"criterion": NONE}
        if step is not None and step.criterion in DIVERSITIES:
            changes = {"column": self._only(columns), **step.model_dump(exclude_none=True)}
        elif self.column not in columns:
            changes["column"] = columns[0] if columns else None
        with suppress(ValueError):  # numbers that no form takes: the loader says so among the problems
            self.param.update(**changes)
        self._judge()

    def _only(self, columns: list[str]) -> str | None:
        sensitive = [name for name in columns if self.flow.columns[name].role == "sensitive"]
        return sensitive[0] if len(sensitive) == 1 else None

    def _write(self, names: set[str]) -> None:
        self.workspace.draft.put(self.flow.with_steps(diversify=self.step()))
        self._judge()

    def _judge(self) -> None:
        table = self.workspace.data.table
        seen = (table, self.step())
        if seen == self._seen:
            return
        self._seen = seen
        problem = feasible = ""
        if self.criterion != NONE and table is not None:
            parameters = {name: getattr(self, name) for name in self.needed}
            try:
                target = check_diversity(table, self.criterion, self.column, **parameters)
                codes, values, _ = sensitive_codes(table, self.column or table.sensitive[0])
                feasible = target.largest(np.bincount(codes, minlength=values))
            except AnonflowError as error:
                problem = error.text
        self.param.update(problem=problem, feasible=feasible)


for _name, _option in PARAMETERS.items():
    _kind = param.Integer if _option.whole else param.Number
    _end = _option.most if _option.end is None else _option.end
    DiversityChoice.param.add_parameter(
        _name, _kind(default=_option.start, bounds=(_option.least, _end), doc=_option.sentence)
    )


class DiversityForm(pn.viewable.Viewer):
    """Choose a criterion, its column and its parameters."""

    choice = param.ClassSelector(class_=DiversityChoice, constant=True)

    def __init__(self, choice: DiversityChoice, **params: Any) -> None:
        super().__init__(choice=choice, **params)
        words = {"none": NONE} | {name: name for name in CRITERIA if name != NONE}
        of = choice.param
        self.criterion = param_field(of.criterion, "Diversity of the sensitive value", 260, options=words)
        self.sensitive = pn.widgets.Select(label="Sensitive column", options=[], width=220)
        self.numbers = {
            name: param_field(
                of[name],
                option.label,
                max(110, 9 * len(option.label)),
                step=1 if option.whole else option.step,
            )
            for name, option in PARAMETERS.items()
        }
        self.chance = param_field(of.risk, "Chance that the draw is refused", 275, step=0.01)
        ways = {"make classes": "classes", "more rows for all (blind)": "blind"}
        self.way = param_field(of.way, "Against a draw that fails", 240, options=ways)
        self.meaning, self.feasible = html(), html()
        self.first, self.second = in_lines(), in_lines()
        pn.bind(
            lambda column: None if column is None else choice.param.update(column=column),
            self.sensitive,
            watch=True,
        )
        self._show()

    @param.depends(
        *(f"choice.{name}" for name in ("criterion", "column", *PARAMETERS, "problem", "feasible")),
        "choice.workspace.draft.spec",
        watch=True,
    )
    def _show(self) -> None:
        choice = self.choice
        columns = choice.columns
        self.sensitive.param.update(
            options=columns, value=choice.column if choice.column in columns else None
        )
        is_diverse = choice.criterion != NONE
        numbers = [widget for name, widget in self.numbers.items() if name in choice.needed]
        self.first.objects = [self.criterion, *([self.sensitive, *numbers] if is_diverse else [])]
        self.second.objects = [self.chance, self.way] if is_diverse else []
        price = PRICE if is_diverse else ""
        self.meaning.object = f"<p>{escape(CRITERIA[choice.criterion])} {escape(choice.distance)} {price}</p>"
        kind, text = "af-muted", ""
        if choice.problem:
            kind, text = "af-bad", f"<p><b>This cannot work.</b> {escape(choice.problem)}</p>"
        elif is_diverse and choice.feasible:
            kind = "af-good"
            text = f"<p>The whole table allows this; the largest feasible {escape(choice.feasible)}.</p>"
        elif not is_diverse:
            text = "<p>Without diversity, the k records that may belong to a person can all have the same sensitive value: then everybody knows this value.</p>"
        self.feasible.param.update(css_classes=[kind], object=text)

    def __panel__(self) -> pn.viewable.Viewable:
        return stack(self.first, self.meaning, self.feasible, self.second)
