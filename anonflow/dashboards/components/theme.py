"""The look of every screen: one style sheet, light and dark, and the bar over the screens."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import panel as pn
import param
from panel.custom import JSComponent
from panel.theme import Inherit
from panel.theme.native import Native

ACTIONS = ("undo", "redo", "here", "tables")
"""What the bar tells: two of its tools, that a browser has drawn the page, and that the list of tables is opened."""

_STYLE = Path(__file__).parent / "style"


class Theme(Native):
    """Panel's own components in our colours; set once, on the outermost layout."""

    modifiers: ClassVar[dict[type, dict[str, Any]]] = {
        pn.viewable.Viewable: {"stylesheets": [Inherit, "style/app.css"]},
    }


class Bar(JSComponent):
    """The steps, the tools, and one line that says what happens.

    Parameters
    ----------
    steps, captions : list of str
        Names of the screens, and a few words on each.
    step : int
        The one that is shown.
    share : float
        The finished share of all runs.
    troubles : int
        How many things keep the draft from running.
    page : bool
        Whether the app is the whole page, not a notebook's cell.
    user : str
        The signed-in user; empty without accounts.
    numbers : list of (str, str, str)
        What counts most of the chosen run: number, label, and what it means.
    table : str
        What the table is called that is open; empty if none is.
    several : bool
        Whether there may be other tables.
    tables : list of (str, str, str)
        The user's other tables, as they were when the list was opened: what an address says of each, its name, and what there is of it.
    unsaved : bool
        Whether something is lost when the page is left.
    version : int
        How many changes have been shown.
    heard : str
        The word of the browser that was heard last: in a saved notebook nobody hears it.
    number : str
        Of this page on its server, which takes its workspace up again.
    """

    steps = param.List(default=[])
    captions = param.List(default=[])
    step = param.Integer(default=0)
    can_undo = param.Boolean(default=False)
    can_redo = param.Boolean(default=False)
    status = param.String(default="")
    running = param.Boolean(default=False)
    share = param.Number(default=0.0)
    troubles = param.Integer(default=0)
    dark = param.Boolean(default=False)
    page = param.Boolean(default=True)
    user = param.String(default="")
    numbers = param.List(default=[])
    table = param.String(default="")
    several = param.Boolean(default=False)
    tables = param.List(default=[])
    unsaved = param.Boolean(default=False)
    version = param.Integer(default=0)
    heard = param.String(default="")
    number = param.String(default="")

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
