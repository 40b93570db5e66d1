"""Small parts of screens."""

from __future__ import annotations

import pandas as pd
import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from bokeh.models import NumberFormatter, StringFormatter

from anonflow.dashboards.components.html import Table


def test_columns_of_a_table_share_what_is_alike() -> None:
    """Each change of a page walks over all its models: a fifth of them were editors and formatters, two for each column."""
    people = pd.DataFrame({"name": ["Ada"], "city": ["Volos"], "age": [40], "share": [0.5]})
    table = Table(
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
    alike = Table(people[["name", "city"]], show_index=False).get_root()
    assert (
        len(alike.references()) == len(Table(people[["name"]], show_index=False).get_root().references()) + 1
    )
