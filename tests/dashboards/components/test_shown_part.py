"""A part of a page that is drawn only while it is on the screen."""

from __future__ import annotations

import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
import panel as pn
import param

from anonflow.dashboards.components.html import stack
from anonflow.dashboards.components.shown_part import LatePart, ShownPart


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


def test_a_late_part_is_built_when_it_is_first_shown_and_kept() -> None:
    built: list[ShownPart] = []

    class Words(ShownPart):
        def __panel__(self) -> pn.viewable.Viewable:
            return pn.pane.HTML("words")

    def build() -> ShownPart:
        built.append(Words())
        return built[-1]

    late = LatePart(build)
    place = late.__panel__()
    assert (built, list(place)) == ([], [])
    late.shown = True
    assert len(place) == len(built) == 1
    assert built[0].shown
    late.shown = False
    assert not built[0].shown
    late.shown = True
    assert len(place) == len(built) == 1
    assert built[0].shown


def test_a_hidden_part_has_no_models_until_it_is_visible() -> None:
    """A page with its hidden parts opened on the event loop that all users share."""
    inside, beside = pn.pane.HTML("inside"), pn.pane.HTML("beside")
    hidden = stack(inside, visible=False)
    root = pn.Column(hidden, beside).get_root()
    place, below = root.children
    assert (place.children, inside._models) == ([], {})
    hidden.append(second := pn.pane.HTML("second"))
    assert place.children == []
    hidden.visible = True
    assert (len(place.children), len(inside._models), len(second._models)) == (2, 1, 1)
    assert root.children == [place, below], "whatever stands beside it stays as it is"
    first = place.children[0]
    hidden.visible = False
    hidden.append(pn.pane.HTML("third"))
    hidden.visible = True
    assert (len(place.children), place.children[0]) == (3, first)
