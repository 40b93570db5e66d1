"""Patterns on the page Protect without a browser: the grid, predicates, cells that are clicked, weights."""

from __future__ import annotations

import pandas as pd
import pytest

from anonflow import Table
from anonflow.algorithms.patterns.language import pattern_grid

pytest.importorskip("panel", reason="the dashboards are an extra")
from anonflow.dashboards.protect.pattern_grid import PatternBoard, board
from anonflow.dashboards.protect.patterns import METHODS, PatternChoice
from anonflow.dashboards.session.workspace import Workspace
from tests.cases.drafts import put_at, value_at
from tests.cases.protect import people, steps_back


@pytest.fixture
def workspace() -> Workspace:
    return people()


def patterns_of(workspace: Workspace) -> object:
    return value_at(workspace.draft, ("steps", "anonymize", "options", "pattern-guided", "patterns"))


def test_the_grid_is_that_of_the_library(workspace: Workspace) -> None:
    choice = PatternChoice(workspace)
    assert choice.grid.equals(pattern_grid(workspace.data.table, "all"))
    choice.param.update(form="predicates", at_most=1, never=["age"])
    assert choice.grid.equals(pattern_grid(workspace.data.table, {"at-most": 1, "never": ["age"]}))
    assert patterns_of(workspace) == {"at-most": 1, "never": ["age"]}
    choice.together = [["city", "job"]]
    assert "go together" in choice.problem
    assert choice.grid is None
    choice.at_most = 2
    choice.fallback = "all"
    assert choice.problem == ""
    wanted = {"at-most": 2, "never": ["age"], "together": [["city", "job"]], "fallback": "all"}
    assert patterns_of(workspace) == wanted
    choice.param.update(together=[], at_most_one_of=[["city", "job"]])
    assert patterns_of(workspace)["at-most-one-of"] == [["city", "job"]]
    workspace.draft.undo()
    assert (choice.together, choice.at_most_one_of) == ([["city", "job"]], [])


def test_a_column_called_cost_has_its_own_cells() -> None:
    workspace = Workspace()
    frame = pd.DataFrame({"cost": ["a", "b", "a"], "age": ["x", "y", "y"]})
    role = {"role": "quasi-identifier", "kind": "suppression"}
    workspace.opener.open_table(Table(frame, {"cost": role, "age": role}))
    choice = PatternChoice(workspace)
    shown = board(choice)
    assert shown.count('aria-pressed="true"') == shown.count('aria-pressed="false"') == 4


def test_numbers_with_codes_are_one_column_of_the_grid() -> None:
    workspace = Workspace()
    role = {"role": "quasi-identifier", "kind": "categorical"}
    frame = pd.DataFrame({"age": ["30", "31", "N", "30", "N", "31"] * 3, "sex": list("fm" * 9)})
    workspace.opener.open_table(
        Table(frame, {"age": {**role, "kind": "numeric", "codes": ["N"]}, "sex": role})
    )
    choice = PatternChoice(workspace)
    assert choice.names == ("age", "sex")
    assert len(choice.grid) == 4
    workspace.draft.set_algorithms(["pattern-guided"])
    workspace.draft.set_ks([4])
    choice.start_list(row_per_column=True)
    choice.toggle(0, "age")
    assert patterns_of(workspace) == [["age"], ["sex"]]
    assert (choice.problem, workspace.data.problems, workspace.data.impossible) == ("", (), {})
    assert "age[code]" not in board(choice)
    workspace.start()
    workspace.wait(300)
    assert workspace.runs.finished[0].ok
    workspace.close()


def test_contradictory_patterns_are_said_before_run(workspace: Workspace) -> None:
    choice = PatternChoice(workspace)
    workspace.draft.set_algorithms(["pattern-guided"])
    choice.param.update(form="predicates", together=[["city", "job"]], never=["city"])
    assert any("contradictory" in problem for problem in workspace.data.problems)


def test_cells_are_clicked(workspace: Workspace) -> None:
    choice = PatternChoice(workspace)
    view = PatternBoard(choice=choice)
    choice.start_list()
    assert patterns_of(workspace) == [[]]
    before = steps_back(workspace)
    view._click("cell:0:1")
    assert patterns_of(workspace) == [["city"]]
    assert steps_back(workspace) == before + 1
    choice.add()
    view._click("cell:1:0")
    view._click("cell:1:2")
    assert patterns_of(workspace) == [["city"], ["age", "job"]]
    view._click("cell:1:2")
    assert choice.rows == [("city",), ("age",)]
    view._click("drop:0")
    assert patterns_of(workspace) == [["age"]]
    view._click("drop:0")  # the last one stays
    assert patterns_of(workspace) == [["age"]]
    for key in ("cell:9:0", "cell:0:9", "cell:a:b", "cell:\u00b2:0", "nonsense", "drop:x", "drop:\u00b2"):
        view._click(key)
    assert patterns_of(workspace) == [["age"]]
    workspace.draft.undo()
    assert choice.rows == [("city",), ("age",)]
    assert view.grid.html.count('aria-pressed="true"') == 2


def test_a_list_begins_with_each_column_alone(workspace: Workspace) -> None:
    choice = PatternChoice(workspace)
    choice.form = "list"
    assert patterns_of(workspace) == [[], ["age"], ["city"], ["job"]]
    assert len(choice.grid) == 4
    choice.form = "all"
    assert patterns_of(workspace) is None
    workspace.draft.undo()
    assert choice.form == "list"


def test_a_click_on_predicates_makes_a_list_of_them(workspace: Workspace) -> None:
    choice = PatternChoice(workspace)
    choice.param.update(form="predicates", at_most=1)
    choice.toggle(0, "job")
    assert choice.form == "list"
    assert choice.rows[0] == ("job",)
    assert len(choice.rows) == 4
    assert patterns_of(workspace) == [["job"], ["age"], ["city"]]  # twice the same is said once


def test_methods_that_take_patterns_are_known_by_what_they_do(workspace: Workspace) -> None:
    """Another method whose name begins alike takes none: problems of patterns do not keep it from running."""
    view = PatternBoard(choice=PatternChoice(workspace))
    workspace.data.algorithms = ["pattern-free"]
    view._show()
    assert view.problem.css_classes == ["af-note"]
    workspace.data.algorithms = ["pattern-guided"]
    view._show()
    assert view.problem.css_classes == ["af-bad"]


def test_weights_and_patterns_run(workspace: Workspace) -> None:
    choice = PatternChoice(workspace)
    choice.weights = {"age": 3, "job": 1}
    assert value_at(workspace.draft, ("steps", "anonymize", "options", "pattern-guided", "weights")) == {
        "age": 3
    }
    assert choice.grid["cost"].max() == 5
    choice.param.update(form="predicates", at_most=2, fallback="all")
    workspace.draft.set_algorithms(["pattern-guided", "pattern-guided-optimal"])
    workspace.draft.set_ks([3])
    assert workspace.data.problems == ()
    for run in workspace.draft.flow().runs:
        assert run.anonymize.options["weights"] == {"age": 3}
        assert run.anonymize.options["patterns"]["at-most"] == 2
    choice.weights = {"age": -1}
    assert "above 0" in choice.problem


def test_patterns_of_a_flow_are_read(workspace: Workspace) -> None:
    put_at(
        workspace.draft,
        ("steps", "anonymize", "options"),
        {METHODS[0]: {"patterns": ["010", ["age"], {"at-most": 0}]}},
    )
    choice = PatternChoice(workspace)
    assert choice.form == "list"
    assert set(choice.rows) == {(), ("city",), ("age",)}
    put_at(workspace.draft, ("steps", "anonymize", "options"), {METHODS[0]: {"patterns": "junk"}})
    assert choice.form in ("all", "list")


def test_patterns_with_levels_are_shown_and_stay_as_the_flow_has_them(workspace: Workspace) -> None:
    place = ("steps", "anonymize", "options", "pattern-guided", "patterns")
    choice = PatternChoice(workspace)
    view = PatternBoard(choice=choice)
    choice.form = "levels"
    assert "no patterns with levels" in choice.problem
    choice.form = "all"
    patterns = [["city"], {"levels": {"age": ["width 10", "*"]}}]
    put_at(workspace.draft, place, patterns)
    assert choice.form == "levels"
    assert choice.grid.equals(pattern_grid(workspace.data.table, patterns))
    assert "width 10</div>" in view.grid.html
    for click in (lambda: view._click("cell:0:1"), choice.add, lambda: choice.remove(0)):
        click()
        assert patterns_of(workspace) == patterns
        assert "are changed in the flow" in choice.problem
    choice.weights = {"age": 2}
    assert patterns_of(workspace) == patterns
    choice.form = "predicates"
    assert patterns_of(workspace) != patterns
    workspace.draft.undo()
    assert choice.value() == patterns


def test_all_patterns_are_counted_by_what_they_hide() -> None:
    frame = pd.DataFrame({f"q{a}": list("abab") * 5 for a in range(10)})
    frame["zip"] = ["011", "022", "033", "044"] * 5
    frame["age"] = [*map(str, range(20, 39)), "N"]
    role = {"role": "quasi-identifier"}
    schema = {name: {**role, "kind": "categorical"} for name in frame}
    schema["age"] = {**role, "kind": "numeric", "codes": ["N"]}
    workspace = Workspace()
    workspace.opener.open_table(Table(frame, schema))
    assert len(PatternChoice(workspace).grid) == 2**12
    schema["zip"] = {**role, "kind": "positions"}
    workspace.opener.open_table(Table(frame, schema))
    choice = PatternChoice(workspace)
    assert "of 14 quasi-identifiers, each position of a code counted, are 16,384: too many" in choice.problem
    form = PatternBoard(choice=choice)
    assert not form.summary.visible
    choice.param.update(form="predicates", at_most=1)
    assert "15 patterns" in form.summary.object


def test_too_many_patterns_are_said() -> None:
    item = Workspace()
    frame = pd.DataFrame({f"q{a}": list("abab") * 5 for a in range(14)})
    path = item.folder / "given.csv"
    frame.to_csv(path, index=False)
    item.opener.open_file("wide.csv", path)
    choice = PatternChoice(item)
    assert "too many to show" in choice.problem
    assert board(choice) == ""
    choice.param.update(form="predicates", at_most=4)
    assert choice.problem == ""
    choice.toggle(0, "q0")
    assert "too many to click" in choice.problem
    assert choice.form == "predicates"


def test_the_board_escapes_headers(tmp_path: object) -> None:
    item = Workspace()
    path = item.folder / "given.csv"
    path.write_text('"<img src=x>",b\n' + "".join(f"{'xy'[i % 2]},{i % 3}\n" for i in range(30)))
    item.opener.open_file("x.csv", path)
    assert "<img" not in board(PatternChoice(item))
