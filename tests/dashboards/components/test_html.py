"""Small parts of screens."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
import panel as pn
from bokeh.models import NumberFormatter, StringFormatter

from anonflow.dashboards.components.html import LightTable, html, say, stack


def test_columns_of_a_table_share_what_is_alike() -> None:
    """Each change of a page walks over all its models: a fifth of them were editors and formatters, two for each column."""
    people = pd.DataFrame({"name": ["Ada"], "city": ["Volos"], "age": [40], "share": [0.5]})
    table = LightTable(
        people,
        show_index=False,
        formatters={"share": NumberFormatter(format="0.0%")},
        text_align={"city": "right"},
    )
    name, city, age, share = table.get_root().columns
    assert name.editor is city.editor
    assert len({id(column.editor) for column in (name, age, share)}) == 3
    assert len({id(column.formatter) for column in (name, city, age, share)}) == 4
    assert (type(city.formatter), city.formatter.text_align) == (StringFormatter, "right")
    assert share.formatter.format == "0.0%"
    alike = LightTable(people[["name", "city"]], show_index=False).get_root()
    assert (
        len(alike.references())
        == len(LightTable(people[["name"]], show_index=False).get_root().references()) + 1
    )


def test_a_pane_of_markup_makes_no_row_beside_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Panel makes a row for each pane, which nobody sees, and tells it of each change: a fifteenth of the calls of a screen's first showing."""
    rows: list[Any] = []
    monkeypatch.setattr(pn.Row, "__init__", lambda row, *parts, **params: rows.append(row))
    pane = html("before", "af-note", visible=False)
    place = stack(pane)
    root = place.get_root()
    say(pane, "after")
    assert rows == []
    assert (root.children[0].visible, root.children[0].css_classes) == (True, ["af-note"])
    assert "after" in root.children[0].text
    assert "alone" in html("alone").get_root().text
