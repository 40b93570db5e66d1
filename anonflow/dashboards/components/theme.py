"""The look of every screen: one style sheet, light and dark, and the bar over the screens."""

from __future__ import annotations

from typing import Any, ClassVar

import panel as pn
import param
from bokeh.models import InlineStyleSheet
from panel.custom import JSComponent
from panel.theme import Inherit
from panel.theme.native import Native

ACTIONS = ("undo", "redo", "here", "tables")
"""What the bar tells: two of its tools, that a browser has drawn the page, and that the list of tables is opened."""


class Theme(Native):
    """Panel's own components in our colours; set once, on the outermost layout."""

    modifiers: ClassVar[dict[type, dict[str, Any]]] = {
        pn.viewable.Viewable: {"stylesheets": [Inherit, "style/app.css"]},
    }

    @classmethod
    def _patch_modifiers(cls, doc: Any, modifiers: dict[str, Any], cache: dict[str, Any]) -> None:
        """Have all components of a notebook's cell share the text of our style sheet, which has no address there."""
        super()._patch_modifiers(doc, modifiers, cache)
        sheets = modifiers.get("stylesheets", [])
        for at, sheet in enumerate(sheets):
            if isinstance(sheet, str):
                if sheet not in cache:
                    cache[sheet] = InlineStyleSheet(css=sheet)
                sheets[at] = cache[sheet]


class Bar(JSComponent):
    """The steps, the tools, and one line that says what happens."""

    steps = param.List(default=[], doc="Names of the screens.")
    captions = param.List(default=[], doc="A few words on each.")
    step = param.Integer(default=0, doc="The one that is chosen.")
    screen = param.Integer(
        default=0, doc="The one whose screen is shown: until it is the chosen one, a page dims what it shows."
    )
    can_undo = param.Boolean(default=False)
    can_redo = param.Boolean(default=False)
    status = param.String(default="")
    running = param.Boolean(default=False)
    share = param.Number(default=0.0, doc="The finished share of all runs.")
    troubles = param.Integer(default=0, doc="How many things keep the draft from running.")
    dark = param.Boolean(default=False)
    page = param.Boolean(default=True, doc="Whether the app is the whole page, not a notebook's cell.")
    user = param.String(default="", doc="The signed-in user; empty without accounts.")
    numbers = param.List(
        default=[], doc="(number, label, what it means) of what counts most of the chosen run."
    )
    table = param.String(default="", doc="What the table is called that is open; empty if none is.")
    several = param.Boolean(default=False, doc="Whether there may be other tables.")
    tables = param.List(
        default=[],
        doc="(what an address says of it, its name, what there is of it) of the user's others, as the list was opened.",
    )
    unsaved = param.Boolean(default=False, doc="Whether something is lost when the page is left.")
    version = param.Integer(default=0, doc="How many changes have been shown.")
    heard = param.String(default="", doc="The browser's last word: in a saved notebook nobody hears it.")
    number = param.String(default="", doc="Of this page on its server, which takes its workspace up again.")
    folder = param.String(
        default="", doc="The number of its workspace's folder, by which the next server takes it up."
    )

    _esm = "style/bar.js"
    _stylesheets: ClassVar[list[str]] = ["style/bar.css"]

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._listeners: list[Any] = []
        self.drawn: int | None = None

    def listen(self, listener: Any) -> None:
        """Call `listener` with each action of :data:`ACTIONS`."""
        self._listeners.append(listener)

    def _handle_msg(self, data: Any) -> None:
        action = data.get("action") if isinstance(data, dict) else None
        if action == "here" and isinstance(data.get("version"), int):
            self.heard = str(data.get("word", ""))[:40]
            self.drawn = data["version"]  # the part that a browser has drawn, which may be incomplete
        if action in ACTIONS:
            for listener in self._listeners:
                listener(action)
