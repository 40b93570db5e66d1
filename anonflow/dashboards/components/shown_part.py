"""A part of a page that draws itself only while it is on the screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import panel as pn
import param

__all__ = ["ShownPart"]


class ShownPart(pn.viewable.Viewer):
    """A part of a page that is drawn while it is shown; changes that come while it is hidden are drawn together afterwards.

    Parameters
    ----------
    shown : bool
        Whether it is on the screen. What holds it, such as tabs, says so.

    Notes
    -----
    Without this, every change of the draft would redraw the parts of all tabs and screens that were ever opened, on the
    event loop that all users share.
    """

    shown = param.Boolean(default=True)

    def __init__(self, **params: Any) -> None:
        self._due: dict[Callable[[], None], None] = {}
        super().__init__(**params)
        self.param.watch(self._draw_due, "shown")

    def draw_after(
        self, owner: param.Parameterized, names: str | Sequence[str], draw: Callable[[], None]
    ) -> None:
        """Call `draw` after each change of params of `owner`: at once while this is shown, else once when it is."""
        owner.param.watch(lambda *events: self.draw_once_shown(draw), names)

    def draw_once_shown(self, draw: Callable[[], None]) -> None:
        """Call `draw` at once while this is shown, else once when it is."""
        if self.shown:
            draw()
        else:
            self._due[draw] = None

    def _draw_due(self, *events: Any) -> None:
        if self.shown:
            due, self._due = self._due, {}
            for draw in due:
                draw()
