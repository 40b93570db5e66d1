"""On the page Protect only what is on the screen is drawn; the rest follows when it is looked at."""

from __future__ import annotations

import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
import panel as pn

from anonflow.dashboards.hierarchies.editor import HierarchyBuilder
from anonflow.dashboards.protect import pattern_grid
from anonflow.dashboards.protect.pattern_grid import PatternBoard
from anonflow.dashboards.protect.screen import ProtectScreen
from anonflow.dashboards.protect.target_search import TargetCard
from anonflow.drawing.trees import TreeDrawing
from tests.cases.protect import people

HIERARCHIES, PATTERNS = 2, 3


def test_hidden_tabs_are_not_drawn_and_are_right_when_they_are_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = {"board": 0, "tree": 0}

    def counted(name: str, function):
        def count(*arguments):
            drawn[name] += 1
            return function(*arguments)

        return count

    monkeypatch.setattr(pattern_grid, "board", counted("board", pattern_grid.board))
    monkeypatch.setattr(TreeDrawing, "svg", counted("tree", TreeDrawing.svg))
    workspace = people()
    screen = ProtectScreen(workspace=workspace)
    page = screen.__panel__()
    screen.unfold.clicks += 1
    tabs = page.select(lambda part: type(part).__name__ == "Tabs")[0]
    for k in range(3, 9):
        workspace.draft.set_ks([k])
    workspace.data.set_column("job", role="insensitive")
    workspace.draft.set_algorithms(["pattern-guided"])
    assert drawn == {"board": 0, "tree": 0}
    tabs.active = PATTERNS
    assert drawn == {"board": 1, "tree": 0}
    assert "job" not in screen.board.grid.html
    assert "Used by pattern-guided" in screen.board.summary.object
    workspace.draft.set_ks([4])
    assert drawn["board"] == 1  # a grid has no k
    workspace.data.set_column("job", role="quasi-identifier", kind="categorical")
    assert "job" in screen.board.grid.html
    tabs.active = HIERARCHIES
    assert drawn["tree"] > 0
    assert screen.tree.column.value == "age"
    before = dict(drawn)
    page.visible = False  # another screen is shown
    workspace.data.set_column("city", role="insensitive")
    assert drawn == before
    page.visible = True
    assert "city" not in screen.tree.column.options
    workspace.close()


def test_an_opening_builds_the_shown_tab_alone_and_each_other_tab_when_it_is_first_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A page opens on the event loop that all users share."""
    built = []
    for part in (HierarchyBuilder, PatternBoard, TargetCard):
        begin = part.__init__

        def count(self, *positional, begin=begin, **named) -> None:
            built.append(type(self))
            begin(self, *positional, **named)

        monkeypatch.setattr(part, "__init__", count)
    workspace = people()
    screen = ProtectScreen(workspace=workspace)
    page = screen.__panel__()
    root = page.get_root()
    first, most = sum(1 for _ in root.references()), 40
    assert first < most, "k, methods and tabs are built for a page when they are unfolded"
    screen.unfold.clicks += 1
    assert sum(1 for _ in root.references()) > first + most
    tabs = page.select(pn.Tabs)[0]
    before = len(list(page.select()))
    assert built == []
    assert page.select(pn.widgets.Tabulator) == []
    for at, (kind, parts) in enumerate(
        ((TargetCard, 10), (HierarchyBuilder, 30), (PatternBoard, 20), (None, 5), (None, 3)), start=1
    ):
        tabs.active = at
        assert built[at - 1 :] == [kind] * (kind is not None)
        after = len(list(page.select()))
        assert after >= before + parts
        before = after
    for at in range(6):
        tabs.active = at
    assert built == [TargetCard, HierarchyBuilder, PatternBoard]
    assert len(list(page.select())) == before
    workspace.close()
