"""A part of a page that is drawn only while it is on the screen."""

from __future__ import annotations

import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
import param

from anonflow.dashboards.components.shown_part import ShownPart


class Numbers(param.Parameterized):
    first = param.Integer(0)
    second = param.Integer(0)


def test_changes_are_drawn_at_once_while_it_is_shown_and_once_afterwards() -> None:
    numbers, drawn = Numbers(), []
    part = ShownPart()
    part.draw_after(numbers, ["first", "second"], lambda: drawn.append((numbers.first, numbers.second)))
    numbers.first = 1
    assert drawn == [(1, 0)]
    part.shown = False
    numbers.first = 2
    numbers.second = 3
    numbers.second = 4
    assert drawn == [(1, 0)]
    part.shown = True
    assert drawn == [(1, 0), (2, 4)]
    part.shown = False
    part.shown = True
    assert len(drawn) == 2
