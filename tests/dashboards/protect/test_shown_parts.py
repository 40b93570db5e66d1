"""On the page Protect only what is on the screen is drawn; the rest follows when it is looked at."""

from __future__ import annotations

import pytest

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.hierarchies.tree_picture import TreeDrawing
from anonflow.dashboards.protect import pattern_grid
from anonflow.dashboards.protect.screen import ProtectScreen
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
    tabs = page.select(lambda part: type(part).__name__ == "Tabs")[0]
    for k in range(3, 9):
        workspace.set_ks([k])
    workspace.set_column("job", role="insensitive")
    workspace.set_algorithms(["pattern-guided"])
    assert drawn == {"board": 0, "tree": 0}
    tabs.active = PATTERNS
    assert drawn == {"board": 1, "tree": 0}
    assert "job" not in screen.board.grid.html
    assert "Used by pattern-guided" in screen.board.summary.object
    workspace.set_ks([4])
    assert drawn["board"] == 1  # a grid has no k
    workspace.set_column("job", role="quasi-identifier", kind="categorical")
    assert "job" in screen.board.grid.html
    tabs.active = HIERARCHIES
    assert drawn["tree"] > 0
    assert screen.tree.column.value == "age"
    before = dict(drawn)
    page.visible = False  # another screen is shown
    workspace.set_column("city", role="insensitive")
    assert drawn == before
    page.visible = True
    assert "city" not in screen.tree.column.options
    workspace.close()
