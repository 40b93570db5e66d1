"""A release drawn on the screen Publish."""

from __future__ import annotations

from anonflow.dashboards.publish.model import PublishModel
from anonflow.dashboards.session.workspace import Workspace


def drawn(workspace: Workspace) -> PublishModel:
    """The model of the screen after its release was drawn."""
    model = PublishModel(workspace)
    model.draw()
    model.background.wait(300)
    return model
