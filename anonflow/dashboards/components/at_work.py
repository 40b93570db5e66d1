"""The line of what works in the background: what it is at, how far, and a button that cancels it."""

from __future__ import annotations

from collections.abc import Callable

import panel as pn
import param

from anonflow.dashboards.components.html import button, html, progress, stack
from anonflow.dashboards.work.screen_work import Background


class AtWork(pn.viewable.Viewer):
    """What a screen does in the background, shown while it does.

    Parameters
    ----------
    cancel : callable, optional
        What its button calls; that of the background without it.
    """

    background = param.ClassSelector(class_=Background, constant=True)

    def __init__(self, background: Background, cancel: Callable[[], None] | None = None) -> None:
        super().__init__(background=background)
        self.words = html("", "af-doing")
        self.cancel = button("Cancel", cancel or background.cancel, css="af-stop", color="danger", width=120)
        self.line = stack()  # most screens are left before anything is at work
        self._show()

    @param.depends("background.doing", "background.share", watch=True)
    def _show(self) -> None:
        doing = self.background.doing
        lines = [(doing[:1].upper() + doing[1:], self.background.share, "")] if doing else []
        self.words.object = str(progress(lines, "status"))
        if doing and not len(self.line):
            self.line[:] = [self.words, self.cancel]
        self.line.visible = bool(doing)

    def __panel__(self) -> pn.viewable.Viewable:
        return self.line
