"""The dashboards: screens over the engine. Their state is in params and in one flow; they have no logic of their own."""

from anonflow.dashboards.session.draft import Draft
from anonflow.dashboards.session.publication import Publication
from anonflow.dashboards.session.workspace import Workspace
from anonflow.dashboards.work.jobs import FinishedRun
from anonflow.dashboards.work.user_limits import Limits

__all__ = ["Draft", "FinishedRun", "Limits", "Publication", "Workspace"]
