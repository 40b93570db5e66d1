"""Screens over the engine: state in params, one flow behind all of them, no logic of their own."""

from anonflow.dashboards.draft import Draft
from anonflow.dashboards.limits import Limits
from anonflow.dashboards.publication import Publication
from anonflow.dashboards.workspace import Run, Workspace

__all__ = ["Draft", "Limits", "Publication", "Run", "Workspace"]
