"""Tables of Tabulator with few parts: a page builds, sends and draws each part of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import panel as pn


class LightTable(pn.widgets.Tabulator):
    """A table whose columns share what edits and what formats their cells, where these are equal; Panel makes two for each column."""

    def _get_column_definitions(self, col_names: list[str], df: Any) -> list[Any]:
        columns = super()._get_column_definitions(col_names, df)
        parts: dict[tuple[Any, ...], Any] = {}
        for column in columns:
            for name in ("editor", "formatter"):
                part = getattr(column, name)
                settings = part.properties_with_values(include_defaults=False)
                setattr(column, name, parts.setdefault((type(part), repr(settings)), part))
        return columns


def titled(columns: Mapping[str, tuple[str, int, str]]) -> dict[str, Any]:
    """Return how a table of Tabulator shows columns, from the title, the width and the tooltip of each."""
    return {
        "titles": {name: title for name, (title, _, _) in columns.items()},
        "widths": {name: width for name, (_, width, _) in columns.items()},
        "header_tooltips": {name: tip for name, (_, _, tip) in columns.items() if tip},
    }
