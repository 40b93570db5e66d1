"""Markup from Python whose marked parts react to the mouse, to touch and to the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn
import param


class Clickable(pn.custom.JSComponent):
    """Markup with parts to click on.

    Parameters
    ----------
    html : str
        Made by this package, every text of the user's table in it escaped. A part that can be clicked has the
        attribute ``data-key``. One element holds it all; where that scrolls, it stays where it is.
    on_click : callable, optional
        Called with the key of a part that was clicked, or on which Enter or the space bar was pressed. Arrow
        keys go from part to part; the tabulator key goes to the part that was last used, and then on.

    Raises
    ------
    ValueError
        If the markup is no text.
    """

    html = param.String(default="", doc="The markup.")

    _esm = "style/clickable.js"

    def __init__(self, on_click: Callable[[str], None] | None = None, **params: Any) -> None:
        params.setdefault("margin", (6, 10))
        super().__init__(**params)
        self._on_click = on_click

    def _handle_msg(self, data: Any) -> None:
        key = data.get("key") if isinstance(data, dict) else None
        if isinstance(key, str) and self._on_click is not None:
            self._on_click(key)
