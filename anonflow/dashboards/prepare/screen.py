"""The screen Prepare: preparation steps, and the changes of each."""

from __future__ import annotations

from typing import Any

import panel as pn
import param

from anonflow.dashboards.components.html import empty, head
from anonflow.dashboards.prepare.steps_before import StepsBefore
from anonflow.dashboards.session.screen_words import NO_TABLE
from anonflow.dashboards.session.workspace import Workspace


class PrepareScreen(pn.viewable.Viewer):
    """The preparation steps of the open table."""

    workspace = param.ClassSelector(class_=Workspace, constant=True)
    title = param.String(default="Prepare", constant=True)

    def __init__(self, workspace: Workspace, **params: Any) -> None:
        super().__init__(workspace=workspace, **params)
        self.nothing = empty(NO_TABLE)
        self.nothing.visible = workspace.param.frame.rx().rx.is_(None)
        self.before = StepsBefore(workspace=workspace)

    def __panel__(self) -> pn.viewable.Viewable:
        return pn.Column(
            head(
                "Prepare",
                "Statistical offices recode a table before they anonymize it: ages above 90 become 90, incomes are rounded, a date of birth "
                "becomes a year. Without a step, the table stays as it is.",
            ),
            self.nothing,
            self.before,
            sizing_mode="stretch_width",
        )
