"""Tables of Tabulator with few models: their columns share what edits and what formats cells."""

from __future__ import annotations

import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.components.light_table import LightTable


def test_columns_of_one_kind_share_their_editor_and_their_formatter() -> None:
    texts = {f"text {at}": ["a", "b"] for at in range(30)}
    numbers = {f"number {at}": [1, 2] for at in range(30)}
    table = LightTable(pd.DataFrame(texts | numbers), show_index=False)
    columns = table.get_root().columns
    for part in ("editor", "formatter"):
        assert len({getattr(column, part).id for column in columns}) == 2, part
        kinds = {column.field.split()[0]: type(getattr(column, part)).__name__ for column in columns}
        assert kinds["text"].startswith("String")
        assert kinds["number"] != kinds["text"]


def test_what_differs_is_not_shared_nor_are_two_pages() -> None:
    table = LightTable(
        pd.DataFrame({"left": ["a"], "right": ["a"], "plain": ["a"]}),
        text_align={"left": "left", "right": "right"},
        editors={"plain": None},
        show_index=False,
    )
    first, second = table.get_root(), table.get_root()
    aligned = {column.field: column.formatter.text_align for column in first.columns}
    assert (aligned["left"], aligned["right"]) == ("left", "right")
    assert [type(column.editor).__name__ for column in first.columns] == [
        "StringEditor",
        "StringEditor",
        "CellEditor",
    ]
    assert first.columns[0].editor.id != second.columns[0].editor.id, "a model belongs to one page"
