"""The form of diversity: criterion, column, parameters, and the most that the table allows."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import param

from anonflow.algorithms.diversity.target import DIVERSITIES, PARAMETERS, check_diversity, sensitive_codes
from anonflow.algorithms.diversity.within_partition import WAYS
from anonflow.dashboards.components.draft_form import DraftForm
from anonflow.dashboards.protect import texts
from anonflow.errors import AnonflowError

__all__ = ["CRITERIA", "NONE", "DiversityChoice"]

NONE = "none"

CRITERIA = {
    NONE: texts.NO_DIVERSITY,
    **{name: criterion.sentence for name, criterion in DIVERSITIES.items()},
}


class DiversityChoice(DraftForm):
    """The step ``diversify`` of the draft.

    Parameters
    ----------
    workspace : Workspace
    """

    criterion = param.Selector(default=NONE, objects=list(CRITERIA))
    column = param.Selector(default=None, objects=[None], check_on_set=False)
    w = param.Number(default=0.15, bounds=(0, 1), doc="Has no effect; flows may have it.")
    risk = param.Number(
        default=0.01, bounds=(0, 1), inclusive_bounds=(True, False), doc="That the draw is refused."
    )
    way = param.Selector(default="classes", objects=list(WAYS), doc="Of freeform methods.")
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
        columns = self.workspace.draft.get(("table", "columns"), {})
        roles = {name: entry.get("role") for name, entry in columns.items() if isinstance(entry, dict)}
        return [name for name, role in roles.items() if role == "sensitive"] + [
            name for name, role in roles.items() if role == "insensitive"
        ]

    @property
    def distance(self) -> str:
        """How far values are from each other, where the criterion measures that; else empty."""
        if self.criterion == NONE or not DIVERSITIES[self.criterion].of_distances:
            return ""
        entry = self.workspace.draft.get(("table", "columns", self.column or ""), {})
        if isinstance(entry, dict) and entry.get("hierarchy") is not None:
            return texts.DISTANCE_OF_HIERARCHY
        return texts.DISTANCE_OF_VALUES

    def step(self) -> dict[str, Any] | None:
        """Return the step as a flow has it; None if no diversity is asked for."""
        if self.criterion == NONE:
            return None
        settings: dict[str, Any] = {"criterion": self.criterion}
        if self.column is not None:
            settings["column"] = self.column
        for name in self.needed:
            value = getattr(self, name)
            settings[name] = int(value) if float(value).is_integer() else float(value)
        if self.w != 0.15:
            settings["w"] = float(self.w)
        if self.risk != 0.01:
            settings["risk"] = float(self.risk)
        if self.way != "classes":
            settings["way"] = self.way
        return settings

    def _read(self) -> None:
        columns = self.columns
        self.param.column.objects = columns or [None]
        settings = self.workspace.draft.get(("steps", "diversify"))
        changes: dict[str, Any] = {}
        if isinstance(settings, dict) and settings.get("criterion") in DIVERSITIES:
            changes["criterion"] = settings["criterion"]
            changes["column"] = settings.get("column", self._only(columns))
            changes["way"] = settings.get("way", "classes")
            for name in (*PARAMETERS, "w", "risk"):
                number = settings.get(name)
                if isinstance(number, int | float) and not isinstance(number, bool):
                    whole = name in PARAMETERS and PARAMETERS[name].whole
                    changes[name] = int(number) if whole else float(number)
        else:
            changes["criterion"] = NONE
            if self.column not in columns:
                changes["column"] = columns[0] if columns else None
        with suppress(ValueError):  # numbers that no form takes: the loader says so among the problems
            self.param.update(**changes)
        self._judge()

    def _only(self, columns: list[str]) -> str | None:
        entries = self.workspace.draft.get(("table", "columns"), {})
        sensitive = [name for name in columns if entries[name].get("role") == "sensitive"]
        return sensitive[0] if len(sensitive) == 1 else None

    def _write(self, names: set[str]) -> None:
        draft = self.workspace.draft
        steps = [step for step in draft.get(("steps",), []) if "diversify" not in step]
        own_step = self.step()
        if own_step is not None:
            # the loader wants it between the method and the draw
            after = next((at for at, step in enumerate(steps) if "anonymize" in step), -1)
            steps.insert(after + 1, {"diversify": own_step})
        draft.set(("steps",), steps)
        self._judge()

    def _judge(self) -> None:
        table = self.workspace.table
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
