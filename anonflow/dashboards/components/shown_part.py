"""Parts of a page that are built when they are first shown, and drawn only while they are on the screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import panel as pn
import param
from markupsafe import Markup

from anonflow.dashboards.components.html import head, stack
from anonflow.dashboards.session.workspace import Workspace


class ShownPart(pn.viewable.Viewer):
    """A part of a page that is drawn while it is shown, as what holds it says, such as tabs; changes that come while it is hidden are drawn together afterwards.

    Without this, every change of the draft would redraw the parts of all tabs and screens that were ever opened, on the
    event loop that all users share.
    """

    shown = param.Boolean(default=True)

    def __init__(self, **params: Any) -> None:
        self._due: dict[Callable[[], None], None] = {}
        super().__init__(**params)
        # before what subclasses do when they are shown
        self.param.watch(self._draw_due, "shown")

    def draw_after(
        self, owner: param.Parameterized, names: str | Sequence[str], draw: Callable[[], None]
    ) -> None:
        """Call `draw` after each change of params of `owner`: at once while this is shown, else once when it is."""
        # not a dependency of a method: while this is hidden, nothing is drawn
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


class LatePart(ShownPart):
    """A part of a page that is built when it is first shown, and then kept; it is hidden until it is told otherwise.

    A page opens on the event loop that all users share: the parts of hidden tabs would take most of that time, and many
    users never look at them.
    """

    def __init__(self, build: Callable[[], Any], **params: Any) -> None:
        super().__init__(**{"shown": False, **params})
        self._place = stack()
        self._part: Any = None

        def first() -> None:
            self._part = build()
            self._place.append(self._part)

        self.draw_once_shown(first)
        # after the part was built
        self.param.watch(self._tell_part, "shown")

    def _tell_part(self, *events: Any) -> None:
        if isinstance(self._part, ShownPart):
            self._part.shown = self.shown

    def __panel__(self) -> pn.viewable.Viewable:
        return self._place


class Screen(ShownPart):
    """A screen over a workspace; it is shown while its page is visible."""

    workspace = param.ClassSelector(class_=Workspace, constant=True)

    title: ClassVar[str] = ""

    def lay_out(self, lead: str, *inside: Any, badge: Markup | None = None) -> None:
        """Make the page of its title, of what it is about, and of some parts."""
        self._page = pn.Column(head(self.title, lead, badge), *inside, sizing_mode="stretch_width")
        self._page.link(self, visible="shown")

    def __panel__(self) -> pn.viewable.Viewable:
        return self._page
