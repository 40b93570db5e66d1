"""The list of runs, of which one is chosen: that of the workspace, on every screen."""

from __future__ import annotations

from typing import Any

import panel as pn
import param

from anonflow.dashboards.session.workspace import Workspace


def names_of_runs(workspace: Workspace) -> dict[str, int]:
    """Return the runs that have a result: name -> id."""
    return {
        f"{run.name} (#{run.id})": run.id
        for run in workspace.runs.finished
        if run.result.anonymization is not None
    }


class RunSelect(param.Parameterized):
    """The run that is explored and published, among those that have a result."""

    workspace = param.ClassSelector(class_=Workspace, constant=True)

    def __init__(self, workspace: Workspace, label: str, width: int = 300, **params: Any) -> None:
        super().__init__(workspace=workspace, **params)
        self.select = pn.widgets.Select(label=label, options={}, width=width)
        pn.bind(self._choose, self.select, watch=True)
        self._show()

    @param.depends("workspace.runs.finished", "workspace.runs.chosen", watch=True)
    def _show(self) -> None:
        options, chosen = names_of_runs(self.workspace), self.workspace.runs.chosen
        # together: alone, new options would choose their first
        self.select.param.update(options=options, value=chosen if chosen in options.values() else None)

    def _choose(self, id: int | None) -> None:
        if id not in (None, self.workspace.runs.chosen):
            self.workspace.runs.choose(id)
