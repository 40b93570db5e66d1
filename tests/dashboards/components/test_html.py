"""Fragments of HTML that screens share."""

from __future__ import annotations

import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.components.html import facts


@pytest.mark.parametrize(("columns", "scrolled"), [(4, False), (5, True), (8, True)])
def test_a_table_that_may_be_scrolled_in_a_narrow_window_is_reached_by_keys(
    columns: int, scrolled: bool
) -> None:
    table = facts([f"column {i}" for i in range(columns)], [["a"] * columns])
    assert ('tabindex="0"' in table) == scrolled
