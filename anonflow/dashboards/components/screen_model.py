"""The model of a screen, or of a card: what it computes of a workspace, in the background."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import param

from anonflow.dashboards.session.runs import Noted
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.jobs import FinishedRun
from anonflow.dashboards.work.screen_work import Background


class ScreenModel(param.Parameterized):
    """What is computed of a workspace, one work at a time; with ``AT_ONCE`` it does not wait in line with the runs of everybody."""

    workspace = param.ClassSelector(class_=Workspace, constant=True)
    busy = param.Boolean(default=False, doc="Whether something is being computed.")
    problem = param.String(default="", doc="Why there is no result.")

    AT_ONCE: ClassVar[bool] = False

    def __init__(self, workspace: Workspace, **params: Any) -> None:
        super().__init__(workspace=workspace, **params)
        self.background = Background(workspace.turns, at_once=self.AT_ONCE)

    @property
    def run(self) -> FinishedRun | None:
        """The chosen run, None if no run with a result is chosen."""
        return self.workspace.runs.chosen_run

    @property
    def noted(self) -> Noted:
        """What screens found out about the runs."""
        return self.workspace.runs.noted

    def compute(
        self,
        work: Callable[[], Any],
        take_result: Callable[[Any], Mapping[str, Any] | None],
        words: str = "",
        **before: Any,
    ) -> None:
        """Do `work` in the background; ``busy`` is true meanwhile.

        Parameters
        ----------
        take_result : callable
            Takes the result, and returns what other params become by it. Where the work fails, ``problem`` says why.
        words : str
            What it is; without, the screen says nothing of it.
        **before
            What other params are until then.
        """

        def end(**changes: Any) -> None:
            self.param.update(busy=False, **changes)

        self.param.update(busy=True, problem="", **before)
        self.background.start(
            work,
            lambda result: end(**(take_result(result) or {})),
            lambda problem: end(problem=problem),
            words,
            end,
        )
